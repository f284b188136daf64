"""`options="paper"`: Algorithms 1 and 2 of Ganti and Willett (2015) and SMPCR, step by step as printed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array

from lacunar._codes import row_codes
from lacunar.lowrank.trackers import NotFiniteError, PerColumnRls
from lacunar.observed import Observed
from lacunar.regression._label import lasso_on_sums
from lacunar.regression._solvers import Progress, Subspace, orthonormal_columns

_Floats = NDArray[np.float64]

GAMMA = 1e-3  # of (6), what section 6 sets
LAM1 = 10.0  # lambda_1 must be finite; the paper prints no value
PENALTY = 1e-3  # lambda_2 and lambda_3, which must be positive; the paper prints no value
_SAME_RANK = 1e-10  # as in the core


def gate_passes(rows: Observed, U: _Floats, gamma: float) -> NDArray[np.bool_]:
    """The indicator of (6) by row: whether lambda_min(U_O^T U_O) D / o >= 1 - gamma. O(o d^2 + d^3) a row."""
    D, d = U.shape
    counts, least = rows.row_counts, np.zeros(rows.shape[0])
    enough = np.flatnonzero(counts >= d)  # the matrix of others is singular
    for start in range(0, len(enough), 1024):
        some = enough[start : start + 1024]
        parts = (U[rows.indices[rows.indptr[i] : rows.indptr[i + 1]]] for i in some)
        least[some] = np.linalg.eigvalsh(np.stack([part.T @ part for part in parts]))[:, 0]
    passes: NDArray[np.bool_] = (counts > 0) & (least * D >= (1 - gamma) * counts)
    return passes


def shortest_codes(rows: Observed, basis: _Floats) -> _Floats:
    """Least-squares codes (n, d) without a ridge, the shortest one where a row leaves several."""
    codes = np.zeros((rows.shape[0], basis.shape[1]))
    for i in np.flatnonzero(rows.row_counts):
        entries = slice(rows.indptr[i], rows.indptr[i + 1])
        x = rows.values[entries].astype(np.float64)
        codes[i] = np.linalg.lstsq(basis[rows.indices[entries]], x, rcond=_SAME_RANK)[0]
    return codes


def given_start(U0: Any, w0: Any, D: int, d: int) -> tuple[_Floats | None, _Floats | None]:
    """U0 and w0, checked; None where not given."""
    U = None if U0 is None else check_array(U0, dtype=np.float64, input_name="U0")
    w = None if w0 is None else check_array(w0, dtype=np.float64, ensure_2d=False, input_name="w0")
    if U is not None and U.shape != (D, d):
        raise ValueError(f"U0 must have shape ({D}, {d}), one row a column of X; got {U.shape}. Change n_components.")
    if U is not None and np.abs(U.T @ U - np.eye(d)).max() > 1e-8:
        raise ValueError("U0 must have orthonormal columns; got others. Pass np.linalg.qr(U0)[0].")
    if w is not None and w.shape != (d,):
        raise ValueError(f"w0 must have shape ({d},), one weight a component; got {w.shape}. Change n_components.")
    return U, w


def refuse_extra(**given: Any) -> None:
    """Refuses what only the paper's algorithm is given."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} is for options='paper' only; got one with options=None. Leave it out, or set options."
            )


def first_weights(rows: Observed, y: _Floats, U: _Floats, lam2: float) -> _Floats:
    """Step 1: the lasso (4) of the known labels on the projections of their rows."""
    known = ~np.isnan(y)
    if not known.any():
        return np.zeros(U.shape[1])
    codes = shortest_codes(rows[np.flatnonzero(known)], U)
    start = np.zeros(U.shape[1])
    return lasso_on_sums(codes.T @ codes, codes.T @ y[known], len(codes), lam2, 0.0, start, sweeps=100_000)


def validation_error(rows: Observed, y: _Floats, U: _Floats, w: _Floats, gamma: float) -> float:
    """Step 9: mean squared error of (6), which is 0 for rows that the gate refuses."""
    made, passes = np.zeros(len(y)), np.flatnonzero(gate_passes(rows, U, gamma))
    made[passes] = row_codes(rows[passes], U, 0.0).code @ w
    with np.errstate(over="ignore"):
        return float(np.mean((made - y) ** 2))


def _cuts(n: int, passes: int, validate: str) -> Iterator[slice]:
    """Rows between two validations, in the order of the rows."""
    size = 1 if validate == "step" else n
    for _ in range(passes):
        for start in range(0, n, size):
            yield slice(start, start + size)


def fit_slrm(
    rows: Observed,
    y: _Floats,
    held: tuple[Observed, _Floats],
    U: _Floats,
    w: _Floats,
    *,
    lam1: float,
    lam2: float,
    lam3: float,
    rho: float,
    delta: float,
    gamma: float,
    passes: int,
    constant_passes: int,
    validate: str,
    precision: str,
    progress: Progress | None,
) -> tuple[Subspace, list[float]]:
    """Algorithm 1 from U and w: the iterate with the least validation error, and the errors. The last one without `held` rows."""
    n = rows.shape[0]
    tracker = PerColumnRls(
        U, w, precision=precision, lam1=lam1, lam2=lam2, lam3=lam3, rho=rho, delta=delta, orthonormal=True,
        constant_until=max(constant_passes * n, 1), continuous=False,
    )  # fmt: skip
    known = np.flatnonzero(~np.isnan(held[1]))
    held_rows, held_labels = held[0][known], held[1][known]
    best = U, w
    errors: list[float] = []
    for step, cut in enumerate(_cuts(n, passes, validate), start=1):
        try:
            tracker.run(rows[cut], np.ascontiguousarray(y[cut]), undo=False)
        except NotFiniteError as error:
            if np.isfinite(min(errors, default=np.inf)):
                warnings.warn(
                    f"the weights overflow after validation {step - 1} with rho={rho:g}; what was best on held-out rows is kept. Use a "
                    "smaller rho.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
                break
            raise NotFiniteError(
                f"rho must keep the weights finite; with rho={rho:g} they overflow at the start. Use a smaller rho, or "
                "smaller values in X."
            ) from error
        if len(known):
            U, w = tracker.basis(), tracker.w.copy()
            errors.append(validation_error(held_rows, held_labels, U, w, gamma))
            if errors[-1] < min(errors[:-1], default=np.inf):
                best = U, w
            if progress is not None:
                progress(step, errors[-1])
    U, w = best if errors else (tracker.basis(), tracker.w.copy())
    found = Subspace(U, np.zeros(len(U)), 0.0, None, 1.0, w[:, None], passes, True, tracker.n_singular)
    return found, errors


def fit_smpcr(
    rows: Observed,
    y: _Floats,
    U: _Floats,
    w: _Floats,
    *,
    lam: float,
    rho: float,
    delta: float,
    passes: int,
    constant_passes: int,
    precision: str,
) -> Subspace:
    """PETRELS over all rows, then stochastic proximal steps for the lasso (4) on the codes of its last basis."""
    tracker = PerColumnRls(U, precision=precision, delta=delta)
    for _ in range(passes):
        tracker.run(rows, undo=False)
    used = np.flatnonzero(~np.isnan(y) & (rows.row_counts > 0))
    codes, labels = shortest_codes(rows[used], tracker.v), y[used]
    w = _proximal_steps(codes, labels, w, lam, rho, passes, max(constant_passes * len(used), 1))
    if not np.isfinite(w).all():
        raise NotFiniteError(
            f"rho must keep the weights finite; with rho={rho:g} they overflow. Use a smaller rho, or smaller values in X."
        )
    Q, root = orthonormal_columns(tracker.v)
    return Subspace(Q, np.zeros(len(Q)), 0.0, None, 1.0, (root @ w)[:, None], passes, True, tracker.n_singular)


def _proximal_steps(
    codes: _Floats, labels: _Floats, w: _Floats, lam: float, rho: float, passes: int, until: int
) -> _Floats:
    """w after a step of step 8 for every row and pass, without lambda_3."""
    n = len(labels)
    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks at the end
        for t in range(1, passes * n + 1):
            a, label = codes[(t - 1) % n], labels[(t - 1) % n]
            eta = rho if t <= until else rho / t
            w = w - 2 * eta * (a @ w - label) * a
            w = np.sign(w) * np.maximum(np.abs(w) - eta * lam, 0.0)
    return w
