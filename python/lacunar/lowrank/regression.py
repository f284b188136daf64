"""Base of regressors through a low-rank subspace: reads labels, fits label weights, predicts."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import nnls
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from lacunar._latent import LARGEST_CORE_RANK
from lacunar._lock import reads
from lacunar._products import row_product
from lacunar._typing import Floats
from lacunar.lowrank.em import Fit
from lacunar.lowrank.model import LowRankGaussian, SubspaceModel
from lacunar.lowrank.parts import RowParts, fit_columns_over, in_parts
from lacunar.lowrank.ridge import Alpha, fit_labels
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, scale_columns, standardised_blocks
from lacunar.observed.door import FileScoreMixin, check_squares, check_sums, flat_target, read_target, require_y
from lacunar.observed.rules import COLUMNS, COUNT, Array, Flag, Number, OneOrMany, Optional, Rule, floats
from lacunar.observed.stored import over_files

Labelled = tuple[Observed, Floats]  # rows, and labels (n, targets), NaN where unknown

_COMPONENTS = 10  # of n_components=None
# Entries that carry a component: so many a column, or so many a row and a column.
_A_COLUMN, _A_LINE = 3.0, 1.25
_SPREADS = 48  # edges of bins of variances that missing entries leave
_LEAST_SPREAD = 1e-5  # the lowest, in units of the largest
_LATENT_ROWS = 2**14  # whose covariances are held at once
_FLAT = 1e-12  # standard deviation of labels, in units of their mean, below which they are constant
_REWEIGHTED, _PRIOR_ROWS = 20, 2.0  # steps of the fit of variances, and rows that its prior is worth
_LEAST_NOISE = 1e-3  # of a column, in its own variances: less is rounding, or a column that others repeat
_LEVERAGES, _LEAST_FREE = 2**20, 0.05  # products that are held at once for leverages, and the least of one less these
_MORE_ALIKE = 0.9  # times as far apart as standardised noise, at most, is noise of one size


class SubspaceRegression(FileScoreMixin, RegressorMixin, SubspaceModel):
    """Rows have latent coordinates by ridge regression on their observed entries; y is linear in these."""

    _schema: ClassVar[dict[str, Rule]] = {
        **COLUMNS,
        "components_": floats("k", "d"),
        "sizes_": floats("k"),
        "coef_": OneOrMany(("k",), "targets"),
        "intercept_": OneOrMany((), "targets"),
        "labelled_": Array("b", ("targets",)),
        "label_scale_": floats("targets", low=np.finfo(np.float64).tiny),
        **dict.fromkeys(("label_mean_", "label_variance_", "spread_scale_"), floats("targets", finite=False)),
        "one_target_": Flag(),
        "n_components_": COUNT,
        "ridge_": Number(low=0),
        "tau_": Number(low=0),
        "sigma2_": Optional(Number(low=0)),
        "converged_": Flag(),
        "n_iter_": COUNT,
        "n_singular_": COUNT,
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "standardize": ["boolean"],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _several_targets: ClassVar[bool] = True
    clip: float | None = 8.0
    standardize: bool
    random_state: Any
    verbose: int
    _one_scale: bool | None = None  # whether one number divides all columns, where that is decided before a fit

    # -- input ----------------------------------------------------------------------------------------------------

    def _check_labels(self, y: Any, rows: Observed) -> tuple[Floats, bool]:
        """Labels (n, targets), NaN where unknown, and whether there was one column."""
        require_y(self, y, "Pass NaN for unlabelled rows.")
        labels = read_target(y, y_numeric=True, multi_output=True, unknown="all").values
        labels = labels if self._several_targets else flat_target(labels)
        check_consistent_length(rows, labels)
        return labels.reshape(len(labels), -1), labels.ndim == 1

    def _check_rank(self, D: int) -> int:
        """Number of components to fit to D columns: `n_components`, or the default, which `_fit_columns` lowers where
        there are few entries.
        """
        rank = min(_COMPONENTS, D) if self.n_components is None else int(self.n_components)
        if rank > D:
            raise ValueError(
                f"n_components must be at most the number of columns, {D}; got {rank}. Lower n_components, or set None "
                f"for the smaller of {_COMPONENTS} and the number of columns."
            )
        self.n_components_ = rank
        return rank

    def _check_streamed(self, labels: Floats, instead: str) -> None:
        """Raise unless there is one target, and at most 64 components; `instead` names estimators without these
        limits.
        """
        name = type(self).__name__
        if labels.shape[1] != 1:
            raise ValueError(f"{name} takes one target; y has {labels.shape[1]}. Use {instead}, or one model a target.")
        if self.n_components_ > LARGEST_CORE_RANK:
            raise ValueError(
                f"n_components must be at most {LARGEST_CORE_RANK} for {name}; got {self.n_components_}. Use fewer, or "
                f"{instead}."
            )

    def _check_loaded(self) -> None:
        """Raise where a model file says that y had one column, and has weights of several."""
        if "one_target_" in vars(self) and self.one_target_ and self.labelled_.shape != (1,):
            raise ValueError(f"labelled_ must be of one target; got shape {self.labelled_.shape}. Fit again")

    def _begin(self, X: Any, y: Any, *, later: bool = False) -> Labelled:
        """Rows with standardised columns and centred labels, whose means and scales are those of a new fit.

        Columns of one value are left out, unless rows that come `later` may have others.
        """
        return self._begin_with(*self._read(X, y), later=later)

    def _read(self, X: Any, y: Any) -> Labelled:
        """Rows and labels of a new fit, checked."""
        rows = self._check_rows(X, reset=True)
        labels, self.one_target_ = self._check_labels(y, rows)
        self._check_rank(rows.shape[1])
        return rows, labels

    def _begin_with(self, rows: Observed, labels: Floats, *, later: bool = False) -> Labelled:
        centred = self._fit_scales(rows, labels, later=later)
        return self._standardised(rows), centred

    def _fit_scales(self, rows: Observed, labels: Floats, *, later: bool = False) -> Floats:
        """Store means and scales of columns and labels; the centred labels."""
        self._fit_columns(rows, later=later)
        self._fit_label_means(*label_totals(labels))
        centred = labels - self.label_mean_
        self._fit_label_scales(*label_squares(centred))
        return centred

    def _fit_columns(self, rows: Observed | RowParts, *, later: bool = False) -> None:
        columns, counts = fit_columns_over(rows, self.n_jobs)
        if not self.standardize:
            with np.errstate(over="ignore"):
                squares = columns.mean**2 + columns.scale**2
            check_sums(squares, "squares")
            check_squares(counts > 0, columns.mean, squares)
        self.mean_ = columns.mean if self.standardize else np.zeros_like(columns.mean)
        self.scale_ = columns.scale if self.standardize else np.ones_like(columns.scale)
        self.observed_columns_ = columns.seen if self.standardize and not later else counts > 0
        if self.n_components is None and not later:
            self.n_components_ = min(self.n_components_, carried_rank(counts))
        if self._one_scale:
            self._divide_by_one()

    def _fit_label_means(self, count: Floats, total: Floats) -> None:
        """Store label means (targets,), and whether a target has a known label, from the number and sum of the known
        ones.
        """
        self.labelled_ = count > 0
        self.label_mean_ = total / np.maximum(count, 1)

    def _fit_label_scales(self, count: Floats, squares: Floats) -> None:
        """Store the standard deviations of the labels (targets,), 1 where they do not differ, from the number and
        squares of centred labels.

        Penalties are in their units, so that the unit of y changes no fit.
        """
        deviation = np.sqrt(squares / np.maximum(count, 1))
        least = np.maximum(_FLAT * np.abs(self.label_mean_), np.finfo(np.float64).tiny)
        self.label_scale_ = np.where(deviation > least, deviation, 1.0)

    def _find_one_scale(self, model: LowRankGaussian, rows: Labelled | RowParts) -> bool:
        """Divide all columns by one number, their largest standard deviation, where their noise is more alike in units
        of X than standardised; whether that is so. `model` is that of the standardised `rows`.
        """
        if not self.standardize or self._one_scale is not None:
            return False
        count, squares = in_parts(rows).total(noise_sums, model, self.n_jobs)
        noise = squares / np.maximum(count, 1)
        noisy = noise > _LEAST_NOISE
        # Where another column is the largest, `clip` would cut it off.
        if not noisy.any() or self.scale_[noisy].max() < self.scale_[count > 0].max():
            return False
        logs = np.log(np.maximum(noise, _LEAST_NOISE)) / 2
        apart, apart_in_units = (weighted_spread(one, count) for one in (logs, logs + np.log(self.scale_)))
        if not apart_in_units < _MORE_ALIKE * apart:
            return False
        self._divide_by_one()
        return True

    def _divide_by_one(self) -> None:
        """Divide all columns by their largest standard deviation."""
        self.scale_ = np.full_like(self.scale_, self.scale_.max(where=self.observed_columns_, initial=0.0))

    def _columns(self) -> tuple[ColumnScale, float | None]:
        """How columns are standardised, and the largest absolute value after that."""
        columns = ColumnScale(self.mean_, self.scale_, self.observed_columns_)
        return columns, self.clip if self.standardize else None

    def _standardised(self, rows: Observed) -> Observed:
        return scale_columns(rows, *self._columns(), n_jobs=self.n_jobs)

    # -- the fitted model -------------------------------------------------------------------------------------------

    def _store(
        self, fit: Fit, rows: Labelled | RowParts, alpha: Alpha, l1_ratio: float = 0.0, intercept: float = 0.0
    ) -> None:
        """Store the model, and label weights: those of the fit, with an `intercept`, or a regression on latent coordinates.

        `rows` are standardised, with centred labels.
        """
        model = fit.model
        self.n_components_ = len(model.components)
        self.ridge_, self.tau_ = float(model.ridge), float(model.prior)
        self.sigma2_ = None if model.noise is None else float(model.noise)
        self.n_iter_, self.converged_, self.n_singular_ = fit.n_iter, fit.converged, fit.n_singular
        basis = model.basis
        sizes = np.linalg.norm(basis, axis=0)
        self.sizes_ = np.where(sizes > 0, sizes, 1.0)
        self.components_ = np.ascontiguousarray((basis / self.sizes_).T)
        self.mean_ = self.mean_ + self.scale_ * model.mean
        centred = model._replace(components=self.components_, sizes=self.sizes_)
        weights, shift = fit.weights, np.full_like(self.label_mean_, intercept)
        if weights is None:
            fitted = centred, self.n_jobs
            latent = latent_labelled(rows, *fitted) if isinstance(rows, tuple) else rows.map(latent_labelled, *fitted)
            labels = fit_labels(latent, alpha, l1_ratio, spread=self.label_scale_)
            weights, shift = labels.weights, np.nan_to_num(labels.intercept)
        coef, intercepts = weights / self.sizes_[:, None], self.label_mean_ + shift
        self.coef_ = coef[:, 0] if self.one_target_ else coef
        self.intercept_ = float(intercepts[0]) if self.one_target_ else intercepts
        self._store_variances(centred, rows, weights, shift)

    def _store_variances(
        self, model: LowRankGaussian, rows: Labelled | RowParts, weights: Floats, shift: Floats
    ) -> None:
        """Store the variances of labels around their predictions."""
        packed = (model.noise or 0.0) * packed_squares(weights)
        row = Observed.from_dense(np.ones((1, len(self.scale_))))
        least = (model.latent(row, inverse=True).inverse @ packed)[0]  # of a complete row
        largest = model.prior * np.sum(weights**2, axis=0)  # of a row with nothing observed
        edges = least + np.maximum(largest - least, 0.0) * np.geomspace(_LEAST_SPREAD, 1.0, _SPREADS)[:, None]
        terms = model, weights, shift, packed, edges.T, self.n_jobs
        sums = Residuals(*in_parts(rows).total(residual_sums, *terms))
        if self.sigma2_ is None:
            with np.errstate(invalid="ignore"):  # a target without labels has no variance
                self.label_variance_ = sums.squares.sum(axis=1) / sums.rows.sum(axis=1)
            self.spread_scale_ = np.ones_like(self.label_variance_)
        else:
            self.label_variance_, self.spread_scale_ = fit_variances(sums, least)

    def _weights(self) -> Floats:
        """Label weights (d, targets) of latent coordinates of variance `tau_`."""
        return self.coef_.reshape(len(self.sizes_), -1) * self.sizes_[:, None]

    def _missing_variance(self, inverse: Floats) -> Floats:
        """Variance (n, targets) of the prediction w z that the missing entries leave: sigma^2 w M^-1 w."""
        assert self.sigma2_ is not None
        return self.sigma2_ * row_product(inverse, packed_squares(self._weights()), self.n_jobs)

    @property
    @reads
    def feature_coef_(self) -> Floats:
        """Weights of the columns, in units of y by unit of column: U w, which no rotation of the
        subspace changes.
        """
        check_is_fitted(self, "components_")
        weights: Floats = ((self.components_.T @ self.coef_).T / self.scale_).T
        return weights

    def _gaussian(self) -> LowRankGaussian:
        zero = np.zeros(len(self.scale_))
        return LowRankGaussian(zero, self.components_, self.ridge_, self.sigma2_, self.tau_, self.sizes_)

    @reads
    @over_files
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted labels; without a known label in `fit`, an error.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, D)
        return_std : bool, default=False
            Whether to return standard deviations too: what the missing entries leave open, and the
            noise of the label.

        Returns
        -------
        y : ndarray of shape (m,) or (m, targets)
        std : ndarray of the same shape
            Only with `return_std=True`.
        """
        check_is_fitted(self, "components_")
        rows = self._check_rows(X)
        posterior = self._latent(rows, self._gaussian(), inverse=return_std and self.sigma2_ is not None)
        if not self.labelled_.all():
            raise ValueError(
                "predict needs labels: y had no known value in fit. Fit again with the labels of some rows."
            )
        labels = self.intercept_ + row_product(posterior.latent, self._weights(), self.n_jobs)
        if not return_std:
            return labels[:, 0] if self.one_target_ else labels
        if self.sigma2_ is None:
            raise ValueError("return_std needs a noise model; this solver learns none. Use SLRMRegressor.")
        std = np.sqrt(
            np.maximum(self.spread_scale_ * self._missing_variance(posterior.inverse) + self.label_variance_, 0.0)
        )
        return (labels[:, 0], std[:, 0]) if self.one_target_ else (labels, std)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._several_targets
        return tags


def carried_rank(counts: Floats) -> int:
    """Components that columns of `counts` (D,) entries carry, at least 1; more fit the rows exactly, leave no noise, and
    code new rows without bounds.

    A component takes three entries of a column; or, of columns with fewer rows than these, 1.25 for each of its numbers.
    """
    seen = counts[counts > 0]
    if not len(seen):
        return 1
    return max(int(seen.sum() / min(_A_COLUMN * len(seen), _A_LINE * (len(seen) + seen.max()))), 1)


# -- steps over parts of the rows ---------------------------------------------------------------------------------


def latent_labelled(part: Labelled, model: LowRankGaussian, n_jobs: int | None) -> tuple[Floats, Floats]:
    """Latent coordinates (n, d) of rows, and labels (n, targets)."""
    rows, labels = part
    latent = np.empty((rows.shape[0], len(model.components)))
    for at, block in standardised_blocks(rows, model.mean, n_jobs=n_jobs):
        latent[at] = model.latent(block, n_jobs=n_jobs).latent
    return latent, labels


def noise_sums(part: Labelled, model: LowRankGaussian, n_jobs: int | None) -> tuple[Floats, Floats]:
    """Number of entries and sum of squared noise (D,) of every column. O(nnz d^2 + n d^3).

    An entry of leverage h on its row's latent coordinates leaves a residual e with E e^2 = (1 - h) sigma^2.
    """
    rows, D = part[0], part[0].shape[1]
    count, squares = np.zeros((2, D))
    pairs = np.ascontiguousarray(packed_squares(model.basis.T).T)
    most = max(_LEVERAGES * rows.shape[0] // max(rows.nnz * pairs.shape[1], 1), 1)
    for _, block in standardised_blocks(rows, model.mean, most, n_jobs=n_jobs):
        latent = model.latent(block, inverse=True, n_jobs=n_jobs)
        at, columns = block.row_numbers, block.indices
        residuals = block.values - np.einsum("ij,ij->i", latent.latent[at], model.basis[columns])
        leverages = np.einsum("ij,ij->i", latent.inverse[at], pairs[columns])
        count += np.bincount(columns, minlength=D)
        squares += np.bincount(columns, residuals**2 / np.maximum(1 - leverages, _LEAST_FREE), minlength=D)
    return count, squares


def weighted_spread(values: Floats, weight: Floats) -> float:
    """Weighted standard deviation of values (D,)."""
    return float(np.sqrt(np.average((values - np.average(values, weights=weight)) ** 2, weights=weight)))


def label_totals(labels: Floats) -> tuple[Floats, Floats]:
    """Number and sum (targets,) of the known labels of every target, of labels (n, targets)."""
    return np.sum(~np.isnan(labels), axis=0, dtype=np.float64), np.nansum(labels, axis=0)


def label_squares(centred: Floats) -> tuple[Floats, Floats]:
    """Number and sum of squares (targets,) of the known labels of every target, of centred labels (n, targets)."""
    return np.sum(~np.isnan(centred), axis=0, dtype=np.float64), np.nansum(centred**2, axis=0)


def packed_squares(weights: Floats) -> Floats:
    """w w^T of every target, so that a packed symmetric matrix M times it is w M w: (d (d + 1) / 2, targets)."""
    row, column = np.tril_indices(len(weights))
    twice = np.where(row == column, 1.0, 2.0)
    return twice[:, None] * weights[row] * weights[column]


class Residuals(NamedTuple):
    """Of rows with a label, by target and bin of the variance that their missing entries leave: number, squares of
    residuals, variances.
    """

    rows: Floats  # (targets, bins)
    squares: Floats
    variances: Floats


def residual_sums(
    part: Labelled, model: LowRankGaussian, weights: Floats, shift: Floats, packed: Floats, edges: Floats,
    n_jobs: int | None,
) -> Residuals:  # fmt: skip
    """Sums of the residuals of label weights (d, targets), in bins between `edges` (targets, bins - 1). O(n d^3), some
    rows at a time.
    """
    rows, labels = part
    sums = binned_residuals(np.empty((0, len(edges))), np.empty((0, len(edges))), edges)
    for at, block in standardised_blocks(rows, model.mean, _LATENT_ROWS, n_jobs=n_jobs):
        posterior = model.latent(block, inverse=bool(packed.any()), n_jobs=n_jobs)
        squares = (labels[at] - shift - posterior.latent @ weights) ** 2
        variances = posterior.inverse @ packed if packed.any() else np.zeros_like(squares)
        for total, terms in zip(sums, binned_residuals(squares, variances, edges), strict=True):
            total += terms
    return sums


def binned_residuals(squares: Floats, variances: Floats, edges: Floats) -> Residuals:
    """Sums of the rows (n, targets) whose squared residual is not NaN, in bins between `edges` (targets, bins - 1) of
    their variances.
    """
    sums = Residuals(*(np.zeros((len(edges), edges.shape[1] + 1)) for _ in range(3)))
    for t in range(len(edges)):
        known = ~np.isnan(squares[:, t])
        bins = np.searchsorted(edges[t], variances[known, t])
        for total, terms in zip(sums, (None, squares[known, t], variances[known, t]), strict=True):
            total[t] = np.bincount(bins, terms, minlength=total.shape[1])
    return sums


def fit_variances(sums: Residuals, least: Floats) -> tuple[Floats, Floats]:
    """a and b, by target, of squared residuals a + b v: v the variance that the missing entries leave, `least`
    (targets,) for a complete row.

    b is 1 and a >= 0 where y is linear in the latent coordinates. Where y depends on the entries themselves, their
    noise is no error: a complete row leaves less than `least`, so that a can be negative; a + b v never is. Maximum of
    the Gaussian likelihood over bins of v with a + b least >= 0 and b >= 0, by least squares weighted with the fit
    before (iterated), and two rows that say b = 1 or what explains all residuals.
    """
    label, scale = np.full(len(sums.rows), np.nan), np.ones(len(sums.rows))
    for t in np.flatnonzero(sums.rows.sum(axis=1) > 0):
        full = sums.rows[t] > 0
        count = sums.rows[t, full]
        v, r = np.maximum(sums.variances[t, full] / count - least[t], 0.0), sums.squares[t, full] / count
        square, mean = count @ r / count.sum(), count @ v / count.sum()
        usual = min(square / max(mean, 1e-300), 1.0)
        coef = np.array([max(square - mean, 0.0), usual])
        prior = np.sqrt(_PRIOR_ROWS) / max(square, 1e-300) * mean
        for _ in range(_REWEIGHTED):
            root = np.sqrt(count) / np.maximum(coef[0] + coef[1] * v, 1e-6 * square + 1e-300)
            rows = np.column_stack([np.append(root, 0.0), np.append(root * v, prior)])
            coef = nnls(rows, np.append(root * r, prior * usual))[0]
        label[t], scale[t] = coef[0] - coef[1] * least[t], coef[1]
    return label, scale
