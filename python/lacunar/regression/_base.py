"""What regressors through a hidden subspace share: columns, labels, the fitted subspace, prediction."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from lacunar._codes import row_codes
from lacunar._products import row_product
from lacunar.lowrank.parts import Parts, Whole, fit_columns_over, in_parts
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale
from lacunar.observed.door import check_magnitude, validate_X
from lacunar.observed.rules import COLUMNS, COUNT, Array, Flag, Number, OneOrMany, Rule, floats
from lacunar.regression._label import fit_labels_over
from lacunar.regression._paper import gate_passes
from lacunar.regression._rows import code_labelled, codes_and_labels, label_sums, standardised
from lacunar.regression._solvers import Subspace

_Floats = NDArray[np.float64]


_COMPONENTS = 10  # of n_components=None


class SubspaceRegression(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Rows are coded in a subspace by ridge regression on their observed entries; y is linear in the code."""

    _held: ClassVar[dict[str, Rule]] = {
        **COLUMNS,
        "basis_": floats("d", "k"),
        "U_": floats("d", "k"),
        "sizes_": floats("k"),
        "weights_": floats("k", "targets"),
        "coef_": OneOrMany(("k",), "targets"),
        "labelled_": Array("b", ("targets",)),
        **dict.fromkeys(("label_mean_", "intercepts_", "label_variance_"), floats("targets", finite=False)),
        "one_target_": Flag(),
        "n_components_": COUNT,
        "ridge_": Number(low=0),
        "tau_": Number(low=0),
        "sigma2_": Number(low=0, optional=True),
        "converged_": Flag(),
        "n_iter_": COUNT,
        "n_singular_": COUNT,
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "center": ["boolean"],
        "scale": ["boolean"],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
        "gate": [Interval(Real, 0, 1, closed="left"), None],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    n_components: int | None
    center: bool
    scale: bool
    clip: float | None
    gate: float | None
    sparse_missing: Any
    random_state: Any
    n_jobs: int | None
    verbose: int

    def _check_rows(self, X: Any, *, reset: bool) -> Observed:
        return validate_X(self, X, reset=reset, sparse_missing=self.sparse_missing)

    def _check_labels(self, y: Any, rows: Observed) -> tuple[_Floats, bool]:
        """Labels (n, targets), NaN where unknown, and whether there was one column."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. Pass NaN for unlabelled rows."
            )
        labels = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
        check_consistent_length(rows, labels)
        check_magnitude(labels, "y")
        if labels.ndim > 2:
            raise ValueError(f"y must have shape (n,) or (n, targets); got {labels.shape}. Flatten it.")
        if labels.ndim == 2 and labels.shape[1] == 1 and not get_tags(self).target_tags.multi_output:
            labels = column_or_1d(labels, warn=True)
        return labels.reshape(len(labels), -1), labels.ndim == 1

    def _check_loaded(self) -> None:
        """One target where there was one, and a tracker of these columns and components."""
        if "one_target_" in vars(self) and self.one_target_ and self.labelled_.shape != (1,):
            raise ValueError(f"labelled_ must be of one target; got shape {self.labelled_.shape}. Fit again")

    @property
    def _printed(self) -> bool:
        """Whether the algorithm of the paper is asked for to the letter."""
        return getattr(self, "options", None) == "paper"

    def _refuse_unprinted(self, **allowed: tuple[Any, ...]) -> None:
        """Refuses parameters that the paper's algorithm does not have."""
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ValueError(
                    f"options='paper' has no {name}: it must be {values[0]!r}; got {getattr(self, name)!r}. Leave it, or set options=None."
                )

    def _check_rank(self, D: int) -> int:
        """Components to fit."""
        rank = min(_COMPONENTS, D) if self.n_components is None else int(self.n_components)
        if rank > D:
            raise ValueError(
                f"n_components must be at most the number of columns, {D}; got {rank}. Lower n_components, or set None for the "
                f"smaller of {_COMPONENTS} and the number of columns."
            )
        self.n_components_ = rank
        return rank

    def _fit_columns(self, rows: Observed | Parts) -> None:
        found = fit_columns_over(in_parts(rows))
        zero, one = np.zeros_like(found.center), np.ones_like(found.center)
        self.center_ = found.center if self.center and not self._printed else zero
        self.scale_ = found.scale if self.scale and not self._printed else one
        self.observed_columns_ = np.ones_like(found.seen) if self._printed else found.seen

    def _center_labels(self, labels: _Floats) -> None:
        """Label means (targets,), which the paper does not subtract, and whether a target has a known label."""
        known = ~np.isnan(labels)
        self.labelled_ = known.any(axis=0)
        total = np.where(known, labels, 0.0).sum(axis=0)
        self.label_mean_ = (0.0 if self._printed else 1.0) * total / np.maximum(known.sum(axis=0), 1)

    def _standardised(self, rows: Observed) -> Observed:
        return standardised(
            rows, ColumnScale(self.center_, self.scale_, self.observed_columns_), None if self._printed else self.clip
        )

    def _adopt(self, found: Subspace, rows: Observed, labels: _Floats, alpha: Any, l1_ratio: float) -> None:
        self._adopt_over(found, Whole((rows, labels)), alpha, l1_ratio)

    def _adopt_over(self, found: Subspace, parts: Parts, alpha: Any, l1_ratio: float) -> None:
        """Store the subspace, and label weights: those of the factorisation, or a regression on the codes.

        Parts are pairs of standardised rows and centred labels.
        """
        self.basis_, self.ridge_, self.tau_ = found.basis, float(found.ridge), float(found.tau)
        self.sigma2_ = None if found.sigma2 is None else float(found.sigma2)
        self.n_iter_, self.converged_, self.n_singular_ = found.n_iter, found.converged, found.n_singular
        sizes = np.linalg.norm(found.basis, axis=0)
        self.sizes_ = np.where(sizes > 0, sizes, 1.0)  # of the columns of the basis, whose directions are U
        self.U_ = found.basis / self.sizes_
        self.center_ = self.center_ + self.scale_ * found.mean
        coded = parts.map(code_labelled, found.mean, self.basis_, self.ridge_, self.sigma2_ is not None, self.n_jobs)
        weights, shift = found.weights, np.zeros_like(self.label_mean_)
        if weights is None:
            fit = fit_labels_over(coded.map(codes_and_labels), alpha, l1_ratio, intercept=not self._printed)
            weights, shift = fit.weights, np.nan_to_num(fit.intercept)
        self.weights_, self.intercepts_ = weights, self.label_mean_ + shift
        coef = weights / self.sizes_[:, None]
        self.coef_ = coef[:, 0] if self.one_target_ else coef
        self.intercept_ = float(self.intercepts_[0]) if self.one_target_ else self.intercepts_
        known, left, inverse = coded.total(label_sums, weights, shift)
        with np.errstate(invalid="ignore"):  # a target without labels has no variance
            self.label_variance_, self.spread_scale_ = left / known, np.ones_like(known)
            if self.sigma2_ is not None:
                open_still = np.einsum("tt->t", self._spread(inverse, weights)) / known
                # Where y depends on the entries themselves, their noise is no error: the residuals say how much of it is.
                self.spread_scale_ = np.minimum(self.label_variance_ / np.maximum(open_still, 1e-300), 1.0)
                self.label_variance_ = np.maximum(self.label_variance_ - open_still, 0.0)

    def _spread(self, inverse: _Floats, weights: _Floats) -> _Floats:
        """Variance (n, targets) of w z that the missing entries leave: sigma^2 w M^-1 w."""
        d = len(weights)
        row, column = np.tril_indices(d)
        twice = np.where(row == column, 1.0, 2.0)
        products = twice[:, None] * weights[row] * weights[column]
        assert self.sigma2_ is not None
        spread: _Floats = self.sigma2_ * row_product(inverse, products, self.n_jobs)
        return spread

    @property
    def feature_coef_(self) -> _Floats:
        """Weights of the columns, in units of y by unit of column: U w, which no rotation of the subspace changes."""
        check_is_fitted(self, "basis_")
        made: _Floats = ((self.U_ @ self.coef_).T / self.scale_).T
        return made

    @property
    def _n_features_out(self) -> int:
        return int(self.basis_.shape[1])

    def _codes(self, X: Any, *, inverse: bool = False) -> tuple[Observed, Any]:
        check_is_fitted(self, "basis_")
        rows = self._standardised(self._check_rows(X, reset=False))
        return rows, row_codes(rows, self.basis_, self.ridge_, left=True, inverse=inverse, n_jobs=self.n_jobs)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted labels; without a known label in `fit`, an error.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, D)
        return_std : bool, default=False
            Whether to return standard deviations too: what the missing entries leave open, and the noise of the label.

        Returns
        -------
        y : ndarray of shape (m,) or (m, targets)
        std : ndarray of the same shape
            Only with `return_std=True`.
        """
        rows, found = self._codes(X, inverse=return_std and getattr(self, "sigma2_", None) is not None)
        if not self.labelled_.all():
            raise ValueError(
                "predict needs labels: y had no known value in fit. Fit again with the labels of some rows."
            )
        made = self.intercepts_ + row_product(found.code, self.weights_, self.n_jobs)
        gamma = self._gamma()
        if gamma is not None:
            made[~gate_passes(rows, self.U_, float(gamma))] = self.label_mean_
        if not return_std:
            return made[:, 0] if self.one_target_ else made
        if self.sigma2_ is None:
            raise ValueError("return_std needs a noise model; this solver learns none. Use solver='em' or 'als'.")
        scale = getattr(self, "spread_scale_", 1.0)  # model files of 0.1.0 have none
        std = np.sqrt(scale * self._spread(found.inverse, self.weights_) + self.label_variance_)
        return (made[:, 0], std[:, 0]) if self.one_target_ else (made, std)

    def _gamma(self) -> float | None:
        """gamma of (6), None without a gate."""
        return self.gate

    def transform(self, X: Any) -> _Floats:
        """Codes (m, n_components) of rows in the coordinates of `U_`: posterior means; zeros for an empty row.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, D)
            Rows.

        Returns
        -------
        codes : ndarray of shape (m, n_components)
        """
        codes: _Floats = self._codes(X)[1].code * self.sizes_
        return codes

    def inverse_transform(self, X: Any) -> _Floats:
        """Complete rows (m, D), in the units of the data, of codes (m, n_components).

        Parameters
        ----------
        X : array-like of shape (m, n_components)
            Codes.

        Returns
        -------
        rows : ndarray of shape (m, D)
        """
        check_is_fitted(self, "basis_")
        codes = check_array(X, dtype=np.float64)
        if codes.shape[1] != self.U_.shape[1]:
            raise ValueError(
                f"X must have one column a component, {self.U_.shape[1]}; got {codes.shape[1]}. Pass what transform returned."
            )
        made: _Floats = row_product(codes, self.U_.T, self.n_jobs) * self.scale_ + self.center_
        return made

    def impute(self, X: Any) -> _Floats:
        """Rows (m, D) with what is missing filled in; observed entries stay.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, D)
            Rows.

        Returns
        -------
        rows : ndarray of shape (m, D)
        """
        check_is_fitted(self, "basis_")
        rows = self._check_rows(X, reset=False)
        made = self.inverse_transform(self.transform(rows))
        made[np.repeat(np.arange(rows.shape[0]), rows.row_counts), rows.indices] = rows.values
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
