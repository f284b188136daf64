"""`LowRankGaussian`, the model of rows that all of this folder learns, and what estimators with it share: latent coordinates, imputation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from lacunar._latent import LatentRows, latent_rows
from lacunar._lock import WholeCopies, reads
from lacunar._products import row_product
from lacunar._typing import Floats
from lacunar.observed import Observed
from lacunar.observed.columns import standardised
from lacunar.observed.door import SparseMissing, TakesMissing, check_numbers, in_container, validate_X
from lacunar.observed.stored import over_files


class LowRankGaussian(NamedTuple):
    """Rows x = mean + sum_i z_i sizes_i components_i + noise, the latent coordinates z normal with variance `prior` each.

    Latent coordinates of an observed part of a row are argmin |x_o - mean_o - basis_o z|^2 + ridge |z|^2: posterior means where ridge = noise / prior.
    """

    mean: Floats  # (D,)
    components: Floats  # (k, D)
    ridge: float
    noise: float | None = None  # variance of an entry; None where it is not estimated
    prior: float = 1.0
    sizes: Floats | float = 1.0  # (k,)
    variances: Floats = np.empty(0)  # (k,): of rows along components, where these are principal

    @classmethod
    def principal(cls, mean: Floats, components: Floats, variances: Floats, noise: float) -> LowRankGaussian:
        """The model of orthonormal components (k, D) along which rows have `variances` (k,), noise included."""
        sizes = np.sqrt(np.maximum(variances - noise, 0.0))
        return cls(mean, components, noise, noise, 1.0, sizes, variances)

    @property
    def basis(self) -> Floats:
        """Columns (D, k): components times their sizes."""
        basis: Floats = self.components.T
        return basis if isinstance(self.sizes, float) else basis * self.sizes

    def latent(
        self, rows: Observed, *, residual: bool = False, inverse: bool = False, n_jobs: int | None = None
    ) -> LatentRows:
        """Latent coordinates of rows less the mean; options as of `latent_rows`."""
        return latent_rows(rows, self.basis, self.ridge, residual=residual, inverse=inverse, n_jobs=n_jobs)


class SubspaceModel(WholeCopies, ClassNamePrefixFeaturesOutMixin, TransformerMixin, TakesMissing):
    """Base of estimators whose `_gaussian` is the model of rows standardised by `mean_` and `scale_`, about mean 0."""

    components_: Any  # (k, D), an array; trackers have a property
    mean_: Floats
    scale_: Floats
    sparse_missing: SparseMissing
    n_jobs: int | None

    def _gaussian(self) -> LowRankGaussian:
        raise NotImplementedError

    def _unit(self) -> Floats | float:
        """Divisor of latent coordinates along components, () or (k,), before users get them."""
        return 1.0

    def _check_rows(self, X: Any, *, reset: bool = False) -> Observed:
        return validate_X(self, X, reset=reset, sparse_missing=self.sparse_missing)

    def _standardised(self, rows: Observed) -> Observed:
        return standardised(rows, self.mean_, self.scale_, self.n_jobs)

    def _in_units(self, rows: Floats) -> Floats:
        """Standardised complete rows (m, D) in the units of the data."""
        return rows * self.scale_ + self.mean_

    def _unknown_columns(self) -> NDArray[np.bool_] | None:
        """Columns (D,) whose missing entries `impute` leaves missing; None if there are none."""
        return None

    def _latent(self, rows: Observed, model: LowRankGaussian, **options: bool) -> LatentRows:
        return model.latent(self._standardised(rows), n_jobs=self.n_jobs, **options)

    def _complete(self, latent: Floats, model: LowRankGaussian) -> Floats:
        return self._in_units(row_product(latent * self._unit(), model.components, self.n_jobs))

    def _transformed(self, rows: Observed, model: LowRankGaussian) -> Floats:
        """Latent coordinates (m, k) along the components, in the units that users get."""
        latent: Floats = self._latent(rows, model).latent * model.sizes / self._unit()
        return latent

    @reads
    @over_files
    def transform(self, X: Any) -> Any:
        """Latent coordinates of rows: ridge regression of the observed entries on `components_`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, D)
            Rows.

        Returns
        -------
        latent : ndarray of shape (m, n_components)
            Zeros for a row with nothing observed.
        """
        check_is_fitted(self)
        return self._transformed(self._check_rows(X), self._gaussian())

    @reads
    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Complete rows, in the units of the data, of latent coordinates.

        Parameters
        ----------
        X : array-like of shape (m, n_components)
            Latent coordinates, as `transform` returns them.

        Returns
        -------
        rows : ndarray of shape (m, D)
        """
        check_is_fitted(self)
        model, latent = self._gaussian(), check_numbers(X, "X")
        if latent.shape[1] != len(model.components):
            raise ValueError(
                f"X must have one column a component, {len(model.components)}; got {latent.shape[1]}. Pass what transform returned."
            )
        return self._complete(latent, model)

    @reads
    def impute(self, X: Any) -> Any:
        """Rows with what is missing filled in from their latent coordinates; observed entries stay.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, D)
            Rows.

        Returns
        -------
        rows : ndarray of shape (m, D)
            NaN stays in a column without any observed entry in `fit` that the model leaves out
            (`unseen="drop"` of `POPCA`).
        """
        check_is_fitted(self)
        return in_container(self, self._filled(X), X)

    @over_files
    def _filled(self, X: Any) -> Floats:
        rows = self._check_rows(X)
        filled = self._completed(rows)
        if (unknown := self._unknown_columns()) is not None:
            filled[:, unknown] = np.nan
        filled[rows.row_numbers, rows.indices] = rows.values
        return filled

    def _completed(self, rows: Observed) -> Floats:
        """Complete rows (m, D) of the model: its values replace observed entries too."""
        model = self._gaussian()
        return self._complete(self._transformed(rows, model), model)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)
