"""What SLRM, MPCR and SMPCR as printed share: rows as they come, latent coordinates by least squares, labels linear in them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from lacunar._core import RLS_MOST_RANK
from lacunar._lock import reads
from lacunar._products import row_product
from lacunar._typing import Floats
from lacunar.lowrank.model import LowRankGaussian, SubspaceModel
from lacunar.lowrank.parts import count
from lacunar.observed import Observed
from lacunar.observed.columns import standardised
from lacunar.observed.door import FileScoreMixin, Unknown, check_numbers, flat_target, read_target, require_y
from lacunar.observed.rules import COUNT, Rule, floats
from lacunar.observed.stored import over_files

_COMPONENTS = 10  # of d=None
_SAME_RANK = 1e-10  # as in the core


class PrintedRegression(FileScoreMixin, RegressorMixin, SubspaceModel):
    """Base of the methods of the paper: x = U a and y = w a, without means, scales, ridge and intercept ((1)
    and (2)).
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "components_": floats("k", "d"),
        **dict.fromkeys(("sizes_", "coef_"), floats("k")),
        **dict.fromkeys(("n_components_", "n_iter_", "n_singular_"), COUNT),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "d": [Interval(Integral, 1, None, closed="left"), None],
        "lam": [Interval(Real, 0, None, closed="left")],
        "rho": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, 0, None, closed="neither")],
        "constant_rounds": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "U0": ["array-like", None],
        "w0": ["array-like", None],
        "random_state": ["random_state"],
    }
    sparse_missing = "absent"
    n_jobs = None
    d: int | None
    random_state: Any

    # -- input --------------------------------------------------------------------------------------------------------

    def _begin(self, X: Any, y: Any) -> tuple[Observed, Floats]:
        """Rows in float64 and labels (n,), NaN where unknown, of a new fit."""
        rows = self._check_rows(X, reset=True)
        labels = self._check_labels(y, rows)
        count(rows)  # which refuses squares that overflow
        D = rows.shape[1]
        self.n_components_ = min(_COMPONENTS, D) if self.d is None else int(self.d)
        if self.n_components_ > D:
            raise ValueError(f"d must be at most the number of columns, {D}; got {self.n_components_}. Lower d.")
        return self._standardised(rows), labels

    def _check_labels(self, y: Any, rows: Observed, unknown: Unknown = "some") -> Floats:
        """Labels (n,), NaN where unknown: some of them, or "all"."""
        require_y(self, y, "Pass NaN for unlabelled rows.")
        labels = flat_target(read_target(y, y_numeric=True, multi_output=True, unknown=unknown).values)
        if labels.ndim != 1:
            raise ValueError(
                f"{type(self).__name__} takes one target; y has {labels.shape[1]}. Fit one model a target, or use "
                "SLRMRegressor."
            )
        check_consistent_length(rows, labels)
        return labels

    # -- the fitted model ---------------------------------------------------------------------------------------------

    def _store(self, U: Floats, w: Floats, n_iter: int, n_singular: int) -> None:
        """Keep a basis (D, d) and the label weights (d,) of latent coordinates in it."""
        sizes = np.linalg.norm(U, axis=0)
        self.sizes_ = np.where(sizes > 0, sizes, 1.0)
        self.components_ = np.ascontiguousarray((U / self.sizes_).T)
        self.coef_ = w / self.sizes_
        self.n_iter_, self.n_singular_ = n_iter, n_singular

    def _gaussian(self) -> LowRankGaussian:
        return LowRankGaussian(np.zeros(self.components_.shape[1]), self.components_, 0.0, sizes=self.sizes_)

    def _standardised(self, rows: Observed) -> Observed:
        return standardised(rows, np.zeros(rows.shape[1]))

    def _in_units(self, rows: Floats) -> Floats:
        return rows

    @property
    @reads
    def feature_coef_(self) -> Floats:
        """Weights of the columns of complete rows (D,): U w, which no rotation of the subspace
        changes.
        """
        check_is_fitted(self, "components_")
        weights: Floats = self.components_.T @ self.coef_
        return weights

    @reads
    @over_files
    def predict(self, X: Any) -> Any:
        """Predicted labels.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, D)
            Rows.

        Returns
        -------
        y : ndarray of shape (m,)
            0 for a row with nothing observed.
        """
        check_is_fitted(self, "components_")
        rows = self._check_rows(X)
        latent = self._latent(rows, self._gaussian()).latent
        predictions = row_product(latent, (self.coef_ * self.sizes_)[:, None])[:, 0]
        predictions[~self._predictable(rows)] = 0.0
        return predictions

    def _predictable(self, rows: Observed) -> NDArray[np.bool_]:
        """Rows (n,) that are predicted from their entries."""
        return rows.row_counts > 0


def check_start(U0: Any, w0: Any, D: int, d: int) -> tuple[Floats | None, Floats | None]:
    """U0 (D, d) and w0 (d,), where stochastic steps begin, checked; None where they are None."""
    if d > RLS_MOST_RANK:
        raise ValueError(f"d must be at most {RLS_MOST_RANK} for stochastic steps; got {d}. Lower d, or use MPCR.")
    U = None if U0 is None else check_numbers(U0, "U0")
    w = None if w0 is None else check_numbers(w0, "w0", ensure_2d=False)
    if U is not None and U.shape != (D, d):
        raise ValueError(f"U0 must have shape ({D}, {d}), one row a column of X; got {U.shape}. Change d.")
    if U is not None and np.abs(U.T @ U - np.eye(d)).max() > 1e-8:
        raise ValueError("U0 must have orthonormal columns; got others. Pass np.linalg.qr(U0)[0].")
    if w is not None and w.shape != (d,):
        raise ValueError(f"w0 must have shape ({d},), one weight a component; got {w.shape}. Change d.")
    return U, w


def shortest_latent(rows: Observed, basis: Floats) -> Floats:
    """Least-squares latent coordinates (n, d) without a ridge, the shortest one where a row leaves several."""
    latent = np.zeros((rows.shape[0], basis.shape[1]))
    for i in np.flatnonzero(rows.row_counts):
        entries = slice(rows.indptr[i], rows.indptr[i + 1])
        x = rows.values[entries].astype(np.float64)
        latent[i] = np.linalg.lstsq(basis[rows.indices[entries]], x, rcond=_SAME_RANK)[0]
    return latent
