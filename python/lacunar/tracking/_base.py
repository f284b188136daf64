"""What the trackers share: the start, streaming, codes, imputation, change detection."""

from __future__ import annotations

from contextlib import nullcontext
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from lacunar._factor import Codes, Tracker, first_basis, row_codes
from lacunar._products import row_product
from lacunar._random import generator
from lacunar._snapshot import all_or_nothing
from lacunar.observed import Observed
from lacunar.observed.batches import RowBatches
from lacunar.observed.door import validate_X
from lacunar.observed.rules import COUNT, Number, Rule

_Floats = NDArray[np.float64]
_USUAL = 10  # components where their number is not given
_RECENT = 0.05  # weight of a row in the running residual


class SubspaceTracker(RowBatches, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the trackers: subclasses make the state and say which ridge its codes have."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "init": [StrOptions({"svd", "random"}), "array-like"],
        "max_passes": [Interval(Integral, 1, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }
    _held: ClassVar[dict[str, Rule]] = {"n_samples_seen_": COUNT, "residual_": Number(low=0)}
    n_components: int | None
    init: Any
    max_passes: int
    ridge: Any
    sparse_missing: Any
    random_state: Any
    n_jobs: int | None
    _tracker_class: ClassVar[type[Tracker]]

    def _start(self, basis: _Floats) -> Tracker:
        raise NotImplementedError

    def _ridge(self, tracker: Tracker) -> float:
        return float(tracker.options["ridge"])

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> SubspaceTracker:
        """Follow the rows of X from a fresh start, `max_passes` times, the later passes in random order.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : ignored

        Returns
        -------
        self
        """
        rows = validate_X(self, X, reset=True, sparse_missing=self.sparse_missing)
        rng = generator(self.random_state)
        self._reset(rows, rng)
        for number in range(self.max_passes):
            self._follow(rows, None if number == 0 else rng.permutation(rows.shape[0]), undo=False)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> SubspaceTracker:
        """Follow further rows; the first call makes the start from its own rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
            Any number of rows; how they are split between calls makes no difference after the first.
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For another number of columns, infinite entries, or values that overflow: the model is then as it was.
        """
        first = not hasattr(self, "tracker_")
        rows = validate_X(self, X, reset=first, sparse_missing=self.sparse_missing)
        if first:
            self._reset(rows, generator(self.random_state))
        self._follow(rows, None, undo=True)
        return self

    @property
    def components_(self) -> _Floats:
        """Orthonormal rows (n_components, D) that span the subspace; their order is the basis's. O(D k^2) to read out."""
        check_is_fitted(self, "tracker_")
        basis, triangle = np.linalg.qr(self._restored().basis())
        signs = np.where(np.diag(triangle) < 0, -1.0, 1.0)
        return np.ascontiguousarray((basis * signs).T)

    @property
    def n_singular_(self) -> int:
        """Rows with too few entries for a code of their own without rescue."""
        return self._restored().n_singular

    def _restored(self) -> Tracker:
        check_is_fitted(self, "tracker_")
        return self._tracker_class.restored(self.tracker_)

    def _check_loaded(self) -> None:
        """A tracker of these columns and components."""
        if "tracker_" in vars(self):
            self._tracker_class.check(self.tracker_, (self.n_features_in_, self._wanted(self.n_features_in_)))

    def _reset(self, rows: Observed, rng: np.random.Generator) -> None:
        self.tracker_ = self._start(self._first_basis(rows, rng)).state()
        self.n_samples_seen_, self.residual_ = 0, 1.0

    def _first_basis(self, rows: Observed, rng: np.random.Generator) -> _Floats:
        D = rows.shape[1]
        k = self._wanted(D)
        if k > D:
            raise ValueError(
                f"n_components must be at most the number of columns; got {k} for {D} columns. Lower n_components."
            )
        if isinstance(self.init, str):
            if self.init == "svd":
                return first_basis(rows, k, rng)[0]
            return np.asarray(np.linalg.qr(rng.normal(size=(D, k)))[0])
        given = check_array(self.init, dtype=np.float64, input_name="init")
        if given.shape != (k, D):
            raise ValueError(
                f"init must have shape ({k}, {D}), one component a row; got {given.shape}. Pass 'svd' or 'random' instead."
            )
        return np.asarray(np.linalg.qr(given.T)[0])

    def _wanted(self, D: int) -> int:
        """n_components for D columns: a subspace smaller than the whole space where the parameter is None."""
        if self.n_components is not None:
            return int(self.n_components)
        return max(min(_USUAL, D - 1), 1) if isinstance(self.init, str) else max(len(self.init), 1)

    def _follow(self, rows: Observed, order: NDArray[np.int64] | None, *, undo: bool) -> None:
        tracker, counted = self._restored(), rows.row_counts > 0
        with tracker.undone(rows) if undo else nullcontext():
            _, residual = tracker.run(rows, None, order, undo=False)
            recent = self.residual_
            for value in residual[counted] if order is None else ():
                recent += _RECENT * (float(value) - recent)
            state = tracker.state()
        # All that can fail comes before the first change.
        self.tracker_, self.residual_, self.n_samples_seen_ = state, recent, self.n_samples_seen_ + rows.shape[0]

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _codes(self, X: Any, *, left: bool = False) -> tuple[Observed, Codes, _Floats]:
        check_is_fitted(self, "tracker_")
        rows = validate_X(self, X, reset=False, sparse_missing=self.sparse_missing)
        components = self.components_
        ridge = self._ridge(self._restored())
        return rows, row_codes(rows, components.T, ridge, left=left, n_jobs=self.n_jobs), components

    def transform(self, X: Any) -> _Floats:
        """Codes of rows: ridge regression of the observed entries on `components_`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, D)

        Returns
        -------
        codes : ndarray of shape (m, n_components)
            Zeros for a row with nothing observed.
        """
        codes: _Floats = self._codes(X)[1].code
        return codes

    def inverse_transform(self, X: ArrayLike) -> _Floats:
        """Complete rows (m, D) of codes (m, n_components).

        Parameters
        ----------
        X : array-like of shape (m, n_components)
            Codes.

        Returns
        -------
        rows : ndarray of shape (m, D)
        """
        components, codes = self.components_, check_array(X, dtype=np.float64)
        if codes.shape[1] != len(components):
            raise ValueError(
                f"X must have one column a component, {len(components)}; got {codes.shape[1]}. Pass what transform returned."
            )
        made: _Floats = row_product(codes, components, self.n_jobs)
        return made

    def impute(self, X: Any) -> _Floats:
        """Rows (m, D) with what is missing filled in from their codes; observed entries stay.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, D)
            Rows.

        Returns
        -------
        rows : ndarray of shape (m, D)
        """
        rows, found, components = self._codes(X)
        made: _Floats = row_product(found.code, components, self.n_jobs)
        made[np.repeat(np.arange(rows.shape[0]), rows.row_counts), rows.indices] = rows.values
        return made

    def score_samples(self, X: Any) -> _Floats:
        """Relative residual |x - U a|^2 / |x|^2 of every row on its observed entries; 0 for an empty row.

        A value that stays high says that the subspace has changed.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, D)
            Rows.

        Returns
        -------
        residuals : ndarray of shape (m,)
        """
        rows, found, _ = self._codes(X, left=True)
        index = np.repeat(np.arange(rows.shape[0]), rows.row_counts)
        size = np.bincount(index, np.square(rows.values, dtype=np.float64), minlength=rows.shape[0]).astype(np.float64)
        relative: _Floats = np.divide(found.left, size, out=np.zeros_like(size), where=size > 0)
        return relative

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
