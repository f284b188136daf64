"""The closed form: covariance from the tables of sums, its eigenvectors, the number of components."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar import _moments
from lacunar._moments import Sums
from lacunar.observed import Observed
from lacunar.subspace._model import Model, tail_noise
from lacunar.subspace._solve import Spectrum, dense_spectrum

_Floats = NDArray[np.float64]
_LARGE = 1000  # columns from which products with rows beat forming the covariance
_LARGEST_TABLE = 8000  # columns up to which three (d, d) tables are formed when independence fails
_PROBES = 2000  # random pairs of columns that independence is checked on
_DEPENDENT = 0.25  # mean relative gap of joint counts, beyond sampling noise, that independence forgives


def covariance_of(sums: Sums, *, center: bool, weights: str, p: Any, pseudo_count: float) -> _Floats:
    """Covariance (d, d), or second moment where not centred; "auto" weights are "pairwise"."""
    how = "pairwise" if weights == "auto" else weights
    rate = None if p is None else np.asarray(p, dtype=np.float64)
    made = _moments.covariance if center else _moments.second_moment
    return made(sums, how, p=rate, pseudo_count=pseudo_count)


def scale_of(variance: _Floats) -> _Floats:
    """Standard deviations (d,) of columns of these variances; 1 for a constant one."""
    made: _Floats = np.sqrt(np.where(variance > 1e-14 * max(float(variance.max()), 1e-300), variance, 1.0))
    return made


def model_of(spectrum: Spectrum, k: int, d: int) -> Model:
    """The model of the top k eigenpairs, about mean 0."""
    values = np.maximum(spectrum.values[:k], 0.0)
    return Model(np.zeros(d), spectrum.vectors[:k], values, tail_noise(values, spectrum.trace, d))


def number_of_components(n_components: Any, C: _Floats, m: int) -> int:
    """An int as it is, a share of variance as the fewest components that reach it, None as min(m, d)."""
    d = len(C)
    if n_components is None:
        return min(m, d)
    if isinstance(n_components, Integral):
        return int(n_components)
    values = np.maximum(dense_spectrum(C, d).values, 0.0)
    share = np.cumsum(values) / max(float(np.trace(C)), 1e-300)
    return min(int(np.searchsorted(share, float(n_components)) + 1), d)


def matrix_free(rows: Observed, solver: str, weights: str, n_components: Any, rng: np.random.Generator) -> bool:
    """Whether to go without a (d, d) table: large d, an int of components, and columns seen independently (or no choice)."""
    d = rows.shape[1]
    if solver != "auto":
        return solver == "matrix-free"
    possible = isinstance(n_components, Integral) and n_components < d and weights in ("auto", "kappa")
    if not possible or d < _LARGE:
        return False
    return d > _LARGEST_TABLE or weights == "kappa" or independent(rows, rng)


def independent(rows: Observed, rng: np.random.Generator) -> bool:
    """Whether joint counts of random pairs are kappa n_i n_j / m up to their own sampling noise. O(nnz + probes n)."""
    m, d = rows.shape
    mask = rows.with_values(np.ones(rows.nnz)).to_scipy().tocsc()
    pair = rng.integers(d, size=(2, _PROBES))
    pair = pair[:, pair[0] != pair[1]]
    joint = np.asarray(mask[:, pair[0]].multiply(mask[:, pair[1]]).sum(axis=0)).ravel()
    n = np.bincount(rows.indices, minlength=d).astype(np.float64)
    entries = rows.row_counts.astype(np.float64)
    kappa = _moments.kappa_of(n, float(np.sum(entries * (entries - 1))), m)
    expected = kappa * n[pair[0]] * n[pair[1]] / m
    gap = np.sum((joint - expected) ** 2) - np.sum(expected)  # what Poisson counts would leave is taken away
    return bool(gap <= _DEPENDENT**2 * np.sum(expected**2))
