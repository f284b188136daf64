"""Latent coordinates of partially observed rows in a basis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lacunar import _core
from lacunar._threads import thread_count
from lacunar._typing import Floats
from lacunar.observed import Observed
from lacunar.observed.door import LARGEST

LARGEST_CORE_RANK = 64  # beyond, a row's matrix is LAPACK's
_RESCUE = 1e-8  # ridge of a singular row, in units of its mean diagonal


class LatentRows(NamedTuple):
    """Latent coordinates of rows; `residual` and `inverse` are empty where `latent_rows` was called without them."""

    latent: Floats  # (n, d)
    residual: Floats  # (n,): squared residual on the observed entries
    inverse: Floats  # (n, d (d + 1) / 2): lower triangle, by rows, of (V_O^T V_O + ridge I)^-1
    n_singular: int


def latent_rows(
    rows: Observed,
    basis: Floats,
    ridge: float,
    *,
    residual: bool = False,
    inverse: bool = False,
    n_jobs: int | None = None,
) -> LatentRows:
    """Coordinates (V_O^T V_O + ridge I)^-1 V_O^T x_O of rows (n, D) in a basis (D, d); zero for an empty row.

    With `ridge` = sigma^2 and coordinates of unit variance this is the posterior mean, sigma^2 times the inverse its
    covariance. O(o d^2 + d^3) a row of o entries; the same for any number of threads.
    """
    n, d = rows.shape[0], basis.shape[1]
    if rows.shape[1] != len(basis):  # a model file may say anything, and the core reads without a look
        raise ValueError(f"a basis of {len(basis)} columns does not fit rows of shape {rows.shape}")
    latent, residuals = np.zeros((n, d)), np.zeros(n if residual else 0)
    inverses = np.zeros((n if inverse else 0, d * (d + 1) // 2))
    if d > LARGEST_CORE_RANK:
        n_singular = _large_rows(rows, basis, ridge, latent, residuals, inverses)
    else:
        n_singular = _core.latent_rows(
            rows.indptr,
            rows.indices,
            rows.values,
            np.ascontiguousarray(basis, dtype=np.float64),
            float(ridge),
            latent,
            residuals if residual else None,
            inverses if inverse else None,
            thread_count(n_jobs),
        )
    _refuse_overflow(latent)
    return LatentRows(latent, residuals, inverses, int(n_singular))


def _refuse_overflow(latent: Floats) -> None:
    """ValueError where a row's latent coordinates (n, d) are not finite."""
    finite = np.isfinite(latent)
    if not finite.all():
        raise ValueError(
            f"X must hold values whose sums float64 can hold; those of row {int(np.argmin(finite.all(axis=1)))} "
            f"overflow. Leave out values beyond {LARGEST:g}, or scale the columns."
        )


def _large_rows(
    rows: Observed, basis: Floats, ridge: float, latent: Floats, residuals: Floats, inverses: Floats
) -> int:
    """Fills what `latent_rows` returns; the number of rows that needed rescue."""
    d, n_singular = basis.shape[1], 0
    lower = np.tril_indices(d)
    for i in range(rows.shape[0]):
        entries = slice(rows.indptr[i], rows.indptr[i + 1])
        part, x = basis[rows.indices[entries]], rows.values[entries].astype(np.float64)
        gram = part.T @ part
        mean = np.trace(gram) / d
        try:
            factor = cho_factor(gram + ridge * np.eye(d), lower=True)
        except np.linalg.LinAlgError:
            n_singular += 1
            factor = cho_factor(gram + max(ridge, _RESCUE * (mean or 1.0)) * np.eye(d), lower=True)
        latent[i] = cho_solve(factor, part.T @ x)
        if len(residuals):
            residuals[i] = np.sum((x - part @ latent[i]) ** 2)
        if len(inverses):
            inverses[i] = cho_solve(factor, np.eye(d))[lower]
    return n_singular
