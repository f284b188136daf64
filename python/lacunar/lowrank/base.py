"""What estimators with a low-dimensional subspace share: codes of rows, complete rows, imputation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from lacunar._codes import Codes, row_codes
from lacunar._products import row_product
from lacunar._turns import WholeCopies, reads
from lacunar.lowrank.parts import centred
from lacunar.observed import Observed
from lacunar.observed.door import TakesMissing, check_numbers, in_container, validate_X
from lacunar.observed.stored import over_files

_Floats = NDArray[np.float64]


class Coding(NamedTuple):
    """How a model codes a standardised row: code = argmin |x_o - basis_o z|^2 + ridge |z|^2, times `size`, divided by `unit`."""

    components: _Floats  # (k, D): a row is code * unit times them
    basis: _Floats  # (D, k): the components times 1 / size
    ridge: float
    size: _Floats | float = 1.0  # (k,)
    unit: _Floats | float = 1.0  # (k,): of the codes that users get


class SubspaceModel(WholeCopies, ClassNamePrefixFeaturesOutMixin, TransformerMixin, TakesMissing):  # type: ignore[misc]
    """Base of estimators that say by `_coding` how rows are coded, in columns standardised by `mean_` and `scale_`."""

    components_: Any
    mean_: _Floats
    scale_: _Floats
    sparse_missing: Any
    n_jobs: int | None

    def _coding(self) -> Coding:
        raise NotImplementedError

    def _check_rows(self, X: Any, *, reset: bool = False) -> Observed:
        return validate_X(self, X, reset=reset, sparse_missing=self.sparse_missing)

    def _standardised(self, rows: Observed) -> Observed:
        return centred(rows, self.mean_, self.scale_, n_jobs=self.n_jobs)

    def _in_units(self, rows: _Floats) -> _Floats:
        """Standardised complete rows (m, D) in the units of the data."""
        return rows * self.scale_ + self.mean_

    def _unknown_columns(self) -> NDArray[np.bool_] | None:
        """Columns (D,) whose missing entries `impute` leaves missing; None if there are none."""
        return None

    def _coded(self, rows: Observed, coding: Coding, **asked: bool) -> Codes:
        return row_codes(self._standardised(rows), coding.basis, coding.ridge, n_jobs=self.n_jobs, **asked)

    def _complete(self, codes: _Floats, coding: Coding) -> _Floats:
        return self._in_units(row_product(codes * coding.unit, coding.components, self.n_jobs))

    @reads
    @over_files
    def transform(self, X: Any) -> Any:
        """Codes of rows: ridge regression of the observed entries on `components_`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, D)
            Rows.

        Returns
        -------
        codes : ndarray of shape (m, n_components)
            Zeros for a row with nothing observed.
        """
        check_is_fitted(self)
        rows, coding = self._check_rows(X), self._coding()
        return self._coded(rows, coding).code * coding.size / coding.unit

    @reads
    def inverse_transform(self, X: ArrayLike) -> _Floats:
        """Complete rows, in the units of the data, of codes.

        Parameters
        ----------
        X : array-like of shape (m, n_components)
            Codes.

        Returns
        -------
        rows : ndarray of shape (m, D)
        """
        check_is_fitted(self)
        coding, codes = self._coding(), check_numbers(X, "X")
        if codes.shape[1] != len(coding.components):
            raise ValueError(
                f"X must have one column a component, {len(coding.components)}; got {codes.shape[1]}. Pass what transform returned."
            )
        return self._complete(codes, coding)

    @reads
    def impute(self, X: Any) -> Any:
        """Rows with what is missing filled in from their codes; observed entries stay.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, D)
            Rows.

        Returns
        -------
        rows : ndarray of shape (m, D)
            NaN stays in a column without any observed entry in `fit` that the model leaves out (`unseen="drop"` of `POPCA`).
        """
        check_is_fitted(self)
        return in_container(self, self._filled(X), X)

    @over_files
    def _filled(self, X: Any) -> _Floats:
        rows = self._check_rows(X)
        made = self._completed(rows)
        if (unknown := self._unknown_columns()) is not None:
            made[:, unknown] = np.nan
        made[rows.row_numbers, rows.indices] = rows.values
        return made

    def _completed(self, rows: Observed) -> _Floats:
        """What the model says of all entries of rows, observed ones too."""
        coding = self._coding()
        return self._complete(self._coded(rows, coding).code * coding.size / coding.unit, coding)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)
