"""From standardised rows and centred labels to a subspace: EM, ALS, the stream, and PETRELS with steps of w."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar._codes import row_codes
from lacunar.lowrank.em import first_basis, fit_als, fit_em
from lacunar.lowrank.parts import Parts
from lacunar.lowrank.trackers import NotFiniteError, PerColumnRls, SharedRls, forgetting
from lacunar.observed import Observed
from lacunar.regression._label import lasso_on_sums
from lacunar.regression._rows import Labelled, rows_of

_Floats = NDArray[np.float64]
Progress = Callable[[int, float], None]


class Subspace(NamedTuple):
    """x = mean + basis z + noise: basis (D, d), ridge on z (sigma^2 / tau), sigma^2 (None: not estimated).

    `weights` (d, targets) are label weights that belong to the factorisation, None when labels are regressed on codes.
    """

    basis: _Floats
    mean: _Floats
    ridge: float
    sigma2: float | None
    tau: float
    weights: _Floats | None
    n_iter: int
    converged: bool
    n_singular: int

    def rotated(self) -> Subspace:
        """The same model with basis = U diag(s), U orthonormal, s falling."""
        u, s, right = np.linalg.svd(self.basis, full_matrices=False)
        signs = np.where(u[np.argmax(np.abs(u), axis=0), np.arange(u.shape[1])] < 0, -1.0, 1.0)
        weights = None if self.weights is None else (right * signs[:, None]) @ self.weights
        return self._replace(basis=u * signs * s, weights=weights)


def _targets(part: Labelled) -> int:
    return int(part[1].shape[1])


def append_labels(part: Labelled, weight: float) -> Observed:
    """Rows with the known labels, times `weight`, as further columns: (5) is the factorisation of that table."""
    rows, y = part
    n, D = rows.shape
    known = ~np.isnan(y)
    counts = np.diff(rows.indptr) + known.sum(axis=1)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
    label_row, label = np.nonzero(known)
    shift = np.concatenate([[0], np.cumsum(known.sum(axis=1))])[:-1]
    own = np.arange(rows.nnz) + np.repeat(shift, np.diff(rows.indptr))
    indices[own], values[own] = rows.indices, rows.values
    rest = np.ones(indptr[-1], dtype=bool)
    rest[own] = False
    indices[rest], values[rest] = D + label, weight * y[label_row, label]
    return Observed(indptr, indices, values, (n, D + y.shape[1]))


def fit_batch(
    parts: Parts,
    d: int,
    *,
    solver: str,
    lam1: float,
    ridge: float | None,
    max_iter: int,
    tol: float,
    mean: bool,
    rng: np.random.Generator,
    n_jobs: int | None,
    progress: Progress | None,
) -> Subspace:
    """EM or ALS over parts of rows and labels; with finite lam1 the labels are columns of weight 1 / sqrt(lam1)."""
    joint = np.isfinite(lam1)
    weight = 1 / np.sqrt(lam1) if joint else 0.0
    tables = parts.map(append_labels, weight) if joint else parts.map(rows_of)
    options: dict[str, Any] = {
        "rng": rng,
        "max_iter": max_iter,
        "tol": tol,
        "mean": mean,
        "n_jobs": n_jobs,
        "progress": progress,
    }
    model = fit_em(tables, d, **options) if solver == "em" else fit_als(tables, d, ridge=ridge, **options)
    D = len(model.basis) - (parts.each(_targets)[0] if joint else 0)
    # ALS codes of rows with a label have seen it: weights that fit them overstate what a code without one tells.
    weights = model.basis[D:].T / weight if joint and solver == "em" else None
    found = Subspace(
        np.ascontiguousarray(model.basis[:D]),
        model.mean[:D],
        model.ridge if ridge is None else ridge,
        model.sigma2,
        model.tau,
        weights,
        model.n_iter,
        model.converged,
        model.n_singular,
    )
    return found.rotated() if solver == "em" else found  # the columns of ALS are all of length 1


def start_stream(
    rows: Observed, d: int, *, state: str, lam1: float, ridge: float | None, forget: Any, delta: float, precision: str,
    rng: np.random.Generator,
) -> PerColumnRls | SharedRls:  # fmt: skip
    """The tracker behind solver="stochastic", from the singular vectors of its first rows."""
    basis, _ = first_basis(rows, d, rng)
    keep = forgetting(forget)
    if state == "shared":
        first = 1e-3 if ridge is None else ridge
        return SharedRls(basis, delta=delta, lam1=lam1, ridge=first, automatic=ridge is None, **keep)
    options: dict[str, Any] = {
        "lam1": lam1,
        "ridge": 1e-3 if ridge is None else ridge,
        "delta": delta,
        "precision": precision,
    }
    return PerColumnRls(basis, **options, **keep)


def stream_weights(tracker: PerColumnRls | SharedRls, lam1: float, lam2: float) -> _Floats | None:
    """Weights (d,) of (4) from a tracker's sums over labelled rows, in its own coordinates; None without any."""
    second, first, labels = tracker.label_sums()
    if not labels > 0:
        return None
    unit = float(np.trace(second)) / len(first) / labels
    start: _Floats = np.zeros(len(first))
    lam2 = max(lam2, 1e-9 * unit)
    if (
        lam2 > 0
    ):  # from the minimiser without |w|_1, not from the weights before: batches of other sizes must end at the same bits
        start = np.asarray(np.linalg.solve(second / labels + lam2 * np.eye(len(first)), first / labels))
    return lasso_on_sums(second, first, labels, lam1, lam2, start)


def read_stream(tracker: PerColumnRls | SharedRls, lam1: float, lam2: float) -> Subspace:
    """The subspace of a tracker with the ridge its codes have, and weights of (4) from its sums over labelled rows."""
    found = stream_weights(tracker, lam1, lam2)
    weights = None if found is None else found[:, None]
    if isinstance(tracker, SharedRls):
        ridge, sigma2 = tracker.ridge(), tracker.sigma2()
    else:
        ridge, sigma2 = float(tracker.options["ridge"]), None
    tau = sigma2 / ridge if sigma2 is not None and ridge > 0 else 1.0
    return Subspace(
        tracker.v, np.zeros(len(tracker.v)), ridge, sigma2, tau, weights, 1, True, tracker.n_singular
    ).rotated()


def fit_interleaved(
    rows: Observed,
    y: _Floats,
    d: int,
    *,
    lam2: float,
    rho: float,
    delta: float,
    ridge: float,
    max_passes: int,
    constant_passes: int,
    patience: int,
    holdout: NDArray[np.intp],
    precision: str,
    rng: np.random.Generator,
    progress: Progress | None,
) -> tuple[Subspace, list[float]]:
    """PETRELS with a proximal step of w after every row; the pass that is best on held-out rows, and the errors."""
    train = np.setdiff1d(np.arange(rows.shape[0]), holdout)
    basis, _ = first_basis(rows[train], d, rng)
    tracker = PerColumnRls(
        basis,
        _first_weights(rows, y, train, basis, lam2),
        precision=precision,
        lam2=lam2,
        rho=rho,
        delta=delta,
        ridge=ridge,
        constant_until=max(constant_passes * len(train), 1),
    )
    best, errors, waited = None, [], 0
    for number in range(1, max_passes + 1):
        order = train if number == 1 else rng.permutation(train)
        try:
            tracker.run(rows, np.ascontiguousarray(y), order.astype(np.int64), undo=False)
        except NotFiniteError as error:
            if best is not None:  # a pass that overflows ends the search; what was best on held-out rows stays
                break
            raise NotFiniteError(
                f"rho must keep the weights finite; with rho={rho:g} they overflow in pass {number}. Use a smaller rho, or "
                "standardised columns (scale=True)."
            ) from error
        U, root = orthonormal_columns(tracker.v)
        w = root @ tracker.w
        errors.append(_validation(rows, y, holdout if len(holdout) else train, U, w, ridge))
        if progress is not None:
            progress(number, errors[-1])
        if errors[-1] <= min(errors):
            best, waited = (U, w, number), 0
        else:
            waited += 1
        if waited >= patience or not np.isfinite(errors[-1]):
            break
    assert best is not None
    U, w, number = best
    return Subspace(U, np.zeros(len(U)), ridge, None, 1.0, w[:, None], len(errors), True, tracker.n_singular), errors


def _first_weights(rows: Observed, y: _Floats, train: NDArray[np.intp], basis: _Floats, lam2: float) -> _Floats:
    from sklearn.linear_model import Lasso

    codes, known = row_codes(rows[train], basis, 0.0).code, ~np.isnan(y[train])
    if not known.any():
        return np.zeros(basis.shape[1])
    return np.asarray(Lasso(alpha=max(lam2 / 2, 1e-9), fit_intercept=False).fit(codes[known], y[train][known]).coef_)


def orthonormal_columns(V: _Floats) -> tuple[_Floats, _Floats]:
    """U = V S with S = (V^T V)^(-1/2), and S: weights w of codes in V are S w of codes in U."""
    u, s, right = np.linalg.svd(V, full_matrices=False)
    return u @ right, (right.T / np.where(s > 0, s, 1.0)) @ right


def _validation(rows: Observed, y: _Floats, held: NDArray[np.intp], U: _Floats, w: _Floats, ridge: float) -> float:
    known = held[~np.isnan(y[held])]
    if not len(known):
        return 0.0
    codes = row_codes(rows[known], U, ridge).code
    return float(np.mean((codes @ w - y[known]) ** 2))
