"""The closed form: covariance from the tables of sums, the number of components, and whether to go without tables."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar import _moments
from lacunar._moments import Sums
from lacunar.subspace._diagnostics import Probe
from lacunar.subspace._model import Model, tail_noise
from lacunar.subspace._solve import Spectrum, dense_spectrum

_Floats = NDArray[np.float64]
_LARGE = 1000  # columns from which products with rows beat forming the covariance
_LARGEST_TABLE = 8000  # columns up to which tables are formed unless solver="dense" asks for more
_TABLES = 8  # of (d, d) doubles, that forming and decomposing a covariance holds at its peak


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


def model_of(spectrum: Spectrum, k: int, n: NDArray[Any]) -> Model:
    """The model of the top k eigenpairs, about mean 0; columns without entries (n = 0, of (d,)) share no noise."""
    values = np.maximum(spectrum.values[:k], 0.0)
    noise = tail_noise(values, spectrum.trace, int(np.sum(n > 0)))
    return Model(np.zeros(len(n)), spectrum.vectors[:k], values, noise)


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


def matrix_free(model: Any, d: int, n_components: Any, probe: Probe | None) -> bool:
    """Whether a POPCA goes without (d, d) tables: from 1,000 columns, where weights are of expected counts or may be.

    "auto" weights are, where columns are seen independently of each other (`probe`), or tables would be too large.

    Raises
    ------
    ValueError
        When tables are needed and too large, and were not asked for by solver="dense".
    """
    if model.solver != "auto":
        return bool(model.solver == "matrix-free")
    possible = isinstance(n_components, Integral) and n_components < d and model.weights != "pairwise"
    if d > _LARGEST_TABLE and not possible:
        refuse_tables(d, f"n_components={n_components!r} and weights={model.weights!r}")
    if not possible or d < _LARGE:
        return False
    chosen = model.weights != "auto" or d > _LARGEST_TABLE
    return chosen or (probe is not None and probe.independent())


def probed(model: Any, d: int) -> bool:
    """Whether `matrix_free` may want a probe of joint counts."""
    return bool(model.solver == "matrix-free" or (model.solver == "auto" and d >= _LARGE))


def refuse_tables(d: int, what: str) -> None:
    """Say that tables would be too large, and what to do."""
    size = _TABLES * 8 * d**2 / 2**30
    raise ValueError(
        f"{what} need tables of {d} x {d} numbers, {size:.0f} GiB in all; beyond {_LARGEST_TABLE} columns they must be asked "
        "for. Use fit with an integer n_components (or 'holdout') and weights='auto', or solver='dense' if they fit in memory."
    )


def check_stream(solver: str, d: int) -> None:
    """Refuse tables too large for a stream, which cannot go without."""
    if solver == "auto" and d > _LARGEST_TABLE:
        refuse_tables(d, "partial_fit and merge")
