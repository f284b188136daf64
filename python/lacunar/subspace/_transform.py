"""What a fitted POPCA does with rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from lacunar._factor import row_codes
from lacunar._products import row_product
from lacunar._random import fixed_seed, generator
from lacunar.observed import Observed
from lacunar.observed.door import validate_X
from lacunar.subspace._model import Model, hidden_cells, hidden_errors, posterior
from lacunar.subspace._options import Printed

_Floats = NDArray[np.float64]
_HIDDEN = 0.1  # share of observed entries that score hides


class FittedSubspace(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Codes, imputation, covariance and score from `mean_`, `scale_`, `components_`, `explained_variance_`, `noise_variance_`."""

    components_: _Floats
    mean_: _Floats
    scale_: _Floats
    explained_variance_: _Floats
    noise_variance_: float
    n_seen_per_feature_: NDArray[np.float64]
    sparse_missing: Any
    whiten: bool
    options: Any
    random_state: Any
    n_jobs: int | None

    @property
    def _how(self) -> Any:
        """The parameters, as printed or as they are."""
        return Printed(self) if self.options == "paper" else self

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _model(self) -> Model:
        check_is_fitted(self, "components_")
        zero = np.zeros(len(self.mean_))
        return Model(zero, self.components_, self.explained_variance_, self.noise_variance_)

    def _rows(self, X: Any) -> tuple[Observed, Observed]:
        """Rows as they came and standardised."""
        check_is_fitted(self, "components_")
        rows = validate_X(self, X, reset=False, sparse_missing=self.sparse_missing)
        centre, scale = self.mean_[rows.indices], self.scale_[rows.indices]
        return rows, rows.with_values((rows.values.astype(np.float64) - centre) / scale)

    def _unwhitened(self) -> _Floats:
        return np.sqrt(np.maximum(self.explained_variance_, 1e-300)) if self.whiten else np.ones(len(self.components_))

    def transform(self, X: Any, *, return_std: bool = False) -> Any:
        """Codes of rows from their observed entries: posterior means, or least squares where `codes="ls"`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
        return_std : bool, default=False
            Return posterior standard deviations (m, k), too.

        Returns
        -------
        Z : ndarray of shape (m, k), or (Z, std)
            Zeros for a row with nothing observed; a complete row is shrunk by (l - s2) / l.
        """
        _, table = self._rows(X)
        model, unit = self._model(), self._unwhitened()
        found = posterior(model, table, inverse=return_std, n_jobs=self.n_jobs)
        size = np.sqrt(np.maximum(model.values - model.noise, 0.0))
        Z = found.code * size
        if self._how.codes == "ls":
            Z = row_codes(table, model.components.T, 0.0, n_jobs=self.n_jobs).code
        if not return_std:
            return Z / unit
        diagonal = np.cumsum(np.arange(1, len(size) + 1)) - 1
        return Z / unit, np.sqrt(model.noise * found.inverse[:, diagonal]) * size / unit

    def inverse_transform(self, X: ArrayLike) -> _Floats:
        """Complete rows (m, d) of codes (m, k).

        Parameters
        ----------
        X : array-like of shape (m, k)
            Codes.

        Returns
        -------
        rows : ndarray of shape (m, d)
        """
        check_is_fitted(self, "components_")
        Z = check_array(X, dtype=np.float64)
        if Z.shape[1] != len(self.components_):
            raise ValueError(
                f"X must have one column a component, {len(self.components_)}; got {Z.shape[1]}. Pass what transform returned."
            )
        rows = row_product(Z * self._unwhitened(), self.components_, self.n_jobs)
        made: _Floats = rows * self.scale_ + self.mean_
        return made

    def impute(self, X: Any) -> _Floats:
        """Rows (m, d) with what is missing filled in from their codes; observed entries stay.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
            Rows.

        Returns
        -------
        rows : ndarray of shape (m, d)
            NaN stays in a column without any observed entry in `fit` (`unseen="drop"`): nothing is known of it.
        """
        rows, _ = self._rows(X)
        made = self.inverse_transform(self.transform(X))
        made[:, self.n_seen_per_feature_ == 0] = np.nan
        made[np.repeat(np.arange(rows.shape[0]), rows.row_counts), rows.indices] = rows.values
        return made

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the root mean squared error, in units of `scale_`, at a tenth of the entries, hidden and then imputed.

        Which are hidden is drawn from `random_state`. An error on entries that were used would be 0 for short rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
            Rows.
        y : object
            Ignored.

        Returns
        -------
        score : float
        """
        _, table = self._rows(X)
        seen, hidden = hidden_cells(table, _HIDDEN, generator(fixed_seed(self.random_state)))
        if not hidden.any():
            raise ValueError(
                f"X must have entries to hide a tenth of; got {table.nnz} observed entries. Score more rows."
            )
        return -float(np.sqrt(np.mean(hidden_errors(self._model(), table, seen, hidden, self.n_jobs))))

    def get_covariance(self) -> _Floats:
        """Model covariance (d, d) of raw columns: components' variances plus noise. Positive definite; O(d^2 k).

        Returns
        -------
        covariance : ndarray of shape (d, d)
        """
        model = self._model()
        basis = model.basis()
        made: _Floats = (basis @ basis.T + model.noise * np.eye(len(basis))) * np.outer(self.scale_, self.scale_)
        return made

    def get_precision(self) -> _Floats:
        """Inverse (d, d) of `get_covariance()`, by the k x k identity of Woodbury.

        Returns
        -------
        precision : ndarray of shape (d, d)
        """
        model = self._model()
        basis, noise = model.basis(), model.noise
        inner = np.linalg.solve(basis.T @ basis + noise * np.eye(basis.shape[1]), basis.T)
        made: _Floats = (np.eye(len(basis)) - basis @ inner) / noise / np.outer(self.scale_, self.scale_)
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
