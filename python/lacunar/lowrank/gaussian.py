"""`GaussianRegressor`: rows and targets as one Gaussian, so that a prediction knows how uncertain it is with what the
row shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from lacunar import _linalg
from lacunar._answers import NamedArray
from lacunar._cuts import cuts_of
from lacunar._products import row_product
from lacunar._random import fixed_seed, generator
from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Bools, Floats
from lacunar.explanation import Explanation, named_outputs
from lacunar.lowrank.em import run_em
from lacunar.lowrank.patterns import PATTERN_NUMBERS, MaskPattern, patterns_of
from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.lowrank.regression import binned_residuals, fit_variances
from lacunar.lowrank.ridge import fold_ridge
from lacunar.lowrank.shapley import shapley_values
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns, scaled_rows, scales_of
from lacunar.observed.door import (
    ScoreMixin,
    TakesMissing,
    cells_of,
    check_numbers,
    column_names,
    read_target,
    require_y,
    validate_X,
)
from lacunar.observed.rules import BOUNDED_COLUMNS, COUNT, Flag, Instance, Number, Rule, Sometimes, floats

LARGEST_FULL = 100  # columns, beyond which the covariance is of low rank
_SLOWEST = 0.9  # rate at which EM may be taken to shrink the distance to its limit
_STAGES = (2000, 10_000)  # rows of the first stages of EM
_WARM_STEPS = 12  # of low rank, from a model of much the same rows; a third of those from none
_LAST_STEPS = 8  # on all rows, where there are more than that
_FOLDS = 5
# Of shrinkage="auto": values from the largest to the least, folds, rows at most, rows for each column from which none changes anything, and
# steps and tolerance of EM, which begins at the model of the value before.
_SHRINKAGES = (409.6, 102.4, 25.6, 6.4, 1.6, 0.4)
_SHRINKAGE_FOLDS, _SHRINKAGE_ROWS, _ENOUGH_ROWS, _SHRINKAGE_STEPS, _SHRINKAGE_TOL = 3, 1000, 30, 15, 1e-2
_EDGES = 48  # of bins of variances
_LEAST_VARIANCE = 1e-12  # in units of the target's


@whole_answers
class GaussianRegressor(ScoreMixin, RegressorMixin, TakesMissing):
    """Linear regression by the joint Gaussian of columns and targets, learned by EM from rows with
    missing entries.

    A row's target is predicted by its conditional expectation given the entries that the row shows,
    and `return_std` is the conditional standard deviation: it grows with what is missing, by how
    much that entry told.

    Parameters
    ----------
    shrinkage : float or "auto", default="auto"
        Rows' worth of independent columns added to the covariance. "auto" tries 0.4 to 410 on three
        folds of 1,000 rows at most, and is 0.4 where there are 30 rows for each column and target,
        which settle the covariance.
    n_components : int or None, default=None
        Rank of the covariance of the columns, beside noise. None is full rank up to 100 columns,
        and chosen by `LowRankPosterior` beyond; then the target is regressed on the completed
        columns.
    max_iter : int, default=100
        Steps of EM, longer than EM's own by what its rate allows.
    tol : float, default=1e-4
        Largest change of a correlation at which they stop.
    warm_start : bool, default=False
        Whether `fit` begins at the model that is there, if it has as many columns and targets, and
        keeps the shrinkage of that. Low rank then makes a third of the steps.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Draws the rows of the first stages. None is a fixed draw.
    n_jobs : int, default=None
        Threads: None is one, -1 all processors that this process may use.

    Attributes
    ----------
    shrinkage_ : float
        Rows' worth of independent columns that were added; absent where the covariance is of low
        rank.
    location_ : ndarray of shape (d + targets,)
        Means of the standardised columns and targets.
    covariance_ : ndarray of shape (d + targets, d + targets)
        Of the same; absent where the covariance is of low rank.
    posterior_ : LowRankPosterior
        Only with low rank: the model of the columns.
    coef_, intercept_ : ndarrays of shape (d, targets), (targets,)
        Only with low rank: the regression on completed columns, standardised.
    label_variance_, spread_scale_ : ndarrays of shape (targets,)
        Only with low rank: the variance of a target is the first, and the second times what the
        missing entries leave.
    mean_, scale_, observed_columns_ : ndarrays of shape (d,)
        What is subtracted from every column, what it is divided by then, and whether it is used:
        not where `fit` never observed it, or saw one value in all rows.
    reach_ : ndarray of shape (d,)
        How many standard deviations from its mean an entry counts at most: k - 1 in a column of k <
        30 entries, any number from 30 on.
    label_mean_, label_scale_ : ndarrays of shape (targets,)
        Mean and standard deviation of every target; the latter is 1 where the target is constant.
    one_target_ : bool
        Whether y had one dimension.
    n_iter_ : int
        Steps of the fit.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        In `fit`: infinite entries; a target that no row knows.

    See Also
    --------
    lacunar.uncertainty.MaskConformalRegressor : Intervals that hold where columns are not Gaussian.
    SLRMRegressor : Low rank for tables of any size.

    Notes
    -----
    With L the inverse covariance and m what a row lacks, target included: E[x_m | x_o] = mu_m -
    L_mm^-1 L_mo (x_o - mu_o) with covariance L_mm^-1. EM of Little and Rubin, "Statistical Analysis
    with Missing Data", section 11.2. Rows that lack the same columns share the factorisation:
    O(patterns m^3 + n d^2) a step, on 2,000 and 10,000 rows before all.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import GaussianRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = X @ [3.0, 1.0, 0.0] + 0.1 * rng.normal(size=400)
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> rows = [[1, 1, 0], [np.nan, 1, 0], [1, np.nan, 0]]
    >>> mean, std = GaussianRegressor().fit(X, y).predict(rows, return_std=True)
    >>> std.round(1)
    array([0.2, 3. , 1. ])
    """

    _schema: ClassVar[dict[str, Rule]] = {
        **BOUNDED_COLUMNS,
        "shrinkage_": Sometimes(Number(low=0)),
        "location_": Sometimes(floats("joint")),
        "covariance_": Sometimes(floats("joint", "joint")),
        "posterior_": Sometimes(Instance(LowRankPosterior)),
        "coef_": Sometimes(floats("d", "targets")),
        "intercept_": Sometimes(floats("targets")),
        **dict.fromkeys(("label_variance_", "spread_scale_"), Sometimes(floats("targets"))),
        "label_mean_": floats("targets"),
        "label_scale_": floats("targets", low=np.finfo(np.float64).tiny),
        "one_target_": Flag(),
        "n_iter_": COUNT,
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        shrinkage: float | Literal["auto"] = "auto",
        n_components: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        warm_start: bool = False,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.shrinkage = shrinkage
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any) -> GaussianRegressor:
        """Fit to rows and targets, both with missing values.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : array-like of shape (n,) or (n, targets)
            NaN where unknown.

        Returns
        -------
        self
        """
        before = vars(self).copy() if self.warm_start else {}
        table = validate_X(self, X, reset=True, sparse_missing=self.sparse_missing)
        labels = self._checked(y, table)
        columns = fit_columns(table, np.ones(table.shape[0]), standardize=True)
        self.mean_, self.scale_, self.observed_columns_, self.reach_ = columns
        self.label_mean_ = np.nanmean(labels, axis=0)
        scale = np.nanstd(labels, axis=0)
        self.label_scale_ = np.where(scales_of(self.label_mean_, scale)[1], 1.0, scale)
        Z, Y = scale_columns(table, columns).to_dense(), (labels - self.label_mean_) / self.label_scale_
        for name in (
            "shrinkage_",
            "covariance_",
            "posterior_",
            "coef_",
            "intercept_",
            "label_variance_",
            "spread_scale_",
        ):
            self.__dict__.pop(name, None)
        if self.n_components is None and Z.shape[1] <= LARGEST_FULL:
            self._fit_full(np.column_stack([Z, Y]), before)
        else:
            self._fit_low_rank(Z, Y, before.get("posterior_"))
        return self

    def _checked(self, y: Any, table: Observed) -> Floats:
        require_y(self, y, "Pass NaN for unlabelled rows.")
        labels = read_target(y, y_numeric=True, multi_output=True, unknown="some").values
        check_consistent_length(table, labels)
        self.one_target_ = labels.ndim == 1
        return labels.reshape(len(labels), -1)

    # -- full covariance --------------------------------------------------------------------------------------------

    def _fit_full(self, joint: Floats, before: dict[str, Any]) -> None:
        model = self._start(joint.shape[1], before)
        self.shrinkage_ = self._chosen_shrinkage(joint, before)
        order = generator(fixed_seed(self.random_state)).permutation(len(joint))
        self.n_iter_ = 0
        for rows in (*_STAGES, len(joint)):
            if rows > len(joint) or (rows == len(joint) and rows in _STAGES and self.n_iter_):
                continue
            last = rows == len(joint)
            steps = min(self.max_iter, _LAST_STEPS) if last and self.n_iter_ else self.max_iter
            sample = joint if last else joint[np.sort(order[:rows])]
            model, n_steps = fit_gaussian(sample, model, self.shrinkage_, steps, self.tol)
            self.n_iter_ += n_steps
        self.location_, self.covariance_ = model

    def _chosen_shrinkage(self, joint: Floats, before: dict[str, Any]) -> float:
        """The parameter; for "auto" that of the fit `before`, or by targets of rows left out."""
        if self.shrinkage != "auto":
            return float(self.shrinkage)
        targets = len(self.label_mean_)
        known = np.flatnonzero(~np.isnan(joint[:, -targets:]).all(axis=1))
        if len(known) >= _ENOUGH_ROWS * joint.shape[1] or len(known) <= _SHRINKAGE_FOLDS:
            return _SHRINKAGES[-1]
        if len(before.get("covariance_", ())) == joint.shape[1] and "shrinkage_" in before:
            return float(before["shrinkage_"])
        order = generator(fixed_seed(self.random_state)).permutation(known)[:_SHRINKAGE_ROWS]
        return best_shrinkage(joint[np.sort(order)], targets)

    def _start(self, p: int, before: dict[str, Any]) -> Gaussian:
        """Where EM starts: the model of the fit `before`, in standard deviations there as here; else independent columns.

        Units are those of either fit: what an outlier did to the scales of one is no part of the start of the other.
        """
        if len(before.get("covariance_", ())) != p:
            return Gaussian(np.zeros(p), np.eye(p))
        return Gaussian(before["location_"], before["covariance_"])

    # -- low rank -----------------------------------------------------------------------------------------------------

    def _fit_low_rank(self, Z: Floats, Y: Floats, before: LowRankPosterior | None) -> None:
        """The regression on completed columns, and its errors out of fold by the variance that missing entries
        leave. EM begins at the model `before`, if it has as many columns and components.
        """
        seed = fixed_seed(self.random_state)
        if before is not None and len(before.mean_) != Z.shape[1]:
            before = None
        if before is not None and self.n_components not in (None, len(before.components_)):
            before = None
        posterior = LowRankPosterior(self.n_components, random_state=seed, n_jobs=self.n_jobs)
        if before is not None:
            posterior.set_params(max_iter=_WARM_STEPS)
        self.posterior_ = posterior.fit(Z, start=before)
        self.n_iter_ = self.posterior_.n_iter_
        self.location_ = np.concatenate([self.posterior_.mean_, np.zeros(Y.shape[1])])
        completed = self.posterior_.complete(Z)
        d, targets = Z.shape[1], Y.shape[1]
        self.coef_, self.intercept_ = np.zeros((d, targets)), np.zeros(targets)
        squares, rng = np.full_like(Y, np.nan), generator(seed)
        for t in range(targets):
            known = np.flatnonzero(~np.isnan(Y[:, t]))
            y = Y[known, t : t + 1]
            if len(known) < 2:
                squares[known, t] = 0.0
                continue
            folds = np.array_split(rng.permutation(len(known)), min(_FOLDS, len(known)))
            fit = fold_ridge(completed[known], y, cuts_of(folds, len(known)))
            self.coef_[:, t], self.intercept_[t] = fit.coef[:, 0], fit.intercept[0]
            squares[known, t] = (y - fit.oof)[:, 0] ** 2
        variances = self._missing_variance(Z)
        edges = np.maximum(variances.max(axis=0, initial=0.0), 1e-300)[:, None] * np.geomspace(1e-4, 1.0, _EDGES)
        residuals = binned_residuals(squares, variances, edges)
        self.label_variance_, self.spread_scale_ = fit_variances(residuals, np.zeros(targets))

    def _missing_variance(self, Z: Floats) -> Floats:
        """Variance (n, targets) of the regression that the missing entries leave: b_m (W_m C W_m^T + sigma^2 I) b_m.

        C is the covariance of the latent coordinates, given what a row shows.
        """
        hidden, model = np.isnan(Z).astype(np.float64), self.posterior_
        variance = model.noise_variance_ * row_product(hidden, self.coef_**2, self.n_jobs)
        _, inverse = model.features(Z)
        for t in range(self.coef_.shape[1]):
            along = row_product(hidden, self.coef_[:, t, None] * model.components_.T, self.n_jobs)
            variance[:, t] += model.noise_variance_ * np.einsum("nk,nkl,nl->n", along, inverse, along)
        return variance

    # -- answers ------------------------------------------------------------------------------------------------------

    def _standardised(self, X: Any) -> Floats:
        """Rows (m, d) in units of the columns that `fit` saw, NaN where missing."""
        check_is_fitted(self, "location_")
        columns = ColumnScale(self.mean_, self.scale_, self.observed_columns_, self.reach_)
        return scaled_rows(self, X, columns, sparse_missing=self.sparse_missing).to_dense()

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Conditional expectation of the targets.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
        return_std : bool, default=False
            Whether to return conditional standard deviations too: exact under the model.

        Returns
        -------
        y : ndarray of shape (m,) or (m, targets)
        std : ndarray of the same shape
            Only with `return_std=True`.
        """
        Z = self._standardised(X)
        expected, variance = self._expected(Z, with_variance=return_std)
        if not return_std:
            return expected[:, 0] if self.one_target_ else expected
        std = np.sqrt(np.maximum(variance, _LEAST_VARIANCE)) * self.label_scale_
        return (expected[:, 0], std[:, 0]) if self.one_target_ else (expected, std)

    def complete(self, X: Any) -> Floats:
        """Rows with missing entries replaced by their conditional expectation, given what the row
        shows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        rows : ndarray of shape (m, d)
            In the units of X; a column that training never saw is 0.
        """
        Z = self._standardised(X)
        if "covariance_" in vars(self):
            completed = np.column_stack([Z, np.full((len(Z), len(self.label_mean_)), np.nan)])
            for group in self._groups(Z, Gaussian(self.location_, self.covariance_)):
                completed[group.rows[:, None], group.columns[group.own]] = group.mean
            completed = completed[:, : Z.shape[1]]
        else:
            completed = self.posterior_.complete(Z)
        return np.asarray(completed * self.scale_ + self.mean_)

    def _drawn_rows(self, n: int) -> Floats:
        """Rows (n, d) without missing entries, drawn from the Gaussian of the columns, in the units of X."""
        rng, d = generator(fixed_seed(self.random_state)), len(self.mean_)
        normal = rng.normal(size=(n, d))
        if "covariance_" in vars(self):
            Z = normal @ np.linalg.cholesky(self.covariance_[:d, :d]).T
        else:
            noise, components = self.posterior_.noise_variance_, self.posterior_.components_
            Z = np.sqrt(noise) * normal + rng.normal(size=(n, len(components))) @ components
        return np.asarray((Z + self.location_[:d]) * self.scale_ + self.mean_)

    def _expected(self, Z: Floats, *, with_variance: bool) -> tuple[Floats, Floats]:
        """Means (m, targets) of the targets, and variances of the standardised ones, which low rank has only where they are asked for."""
        mean, variance = self._conditional(Z) if "covariance_" in vars(self) else self._regressed(Z, with_variance)
        return mean * self.label_scale_ + self.label_mean_, variance

    def _conditional(self, Z: Floats) -> tuple[Floats, Floats]:
        """Means and variances (m, targets) of the standardised targets."""
        targets = len(self.label_mean_)
        mean, variance = np.empty((len(Z), targets)), np.empty((len(Z), targets))
        for group in self._groups(Z, Gaussian(self.location_, self.covariance_)):
            last = slice(group.covariance.shape[1] - targets, None)
            mean[group.rows] = group.mean[:, last]
            variance[group.rows] = np.einsum("njj->nj", group.covariance)[group.own][:, last]
        return mean, variance

    def _regressed(self, Z: Floats, with_variance: bool) -> tuple[Floats, Floats]:
        mean = row_product(self.posterior_.complete(Z), self.coef_, self.n_jobs) + self.intercept_
        variance = self.spread_scale_ * self._missing_variance(Z) if with_variance else np.zeros_like(mean)
        return mean, variance + self.label_variance_

    def _groups(self, Z: Floats, model: Gaussian) -> Iterator[MaskGroup]:
        """Conditional moments of standardised rows (n, d) whose targets are unknown."""
        return conditionals(np.column_stack([Z, np.full((len(Z), len(self.label_mean_)), np.nan)]), model)

    def value_of_measuring(self, X: Any, *, target: int | None = None, cost: Any = None, n: int = 1) -> Floats:
        """Expected fall of the variance of the target if a missing entry were measured.

        Under the model Var(y | x_o) falls by Cov(x_j, y | x_o)^2 / Var(x_j | x_o), whatever the
        value turns out to be.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
        target : int or None, default=None
            Column of y; None is the mean over all, each in units of its own variance, or the only
            one.
        cost : array-like of shape (d,), optional
            Above 0: values are divided by it.
        n : int, default=1
            Entries to buy for a row. With more than one, the first that a greedy plan buys keep
            their value given those before, and the other entries get theirs after the plan's first
            n - 1.

        Returns
        -------
        value : ndarray of shape (m, d)
            In squared units of y, or in shares of the target's variance where there are several; 0
            where the entry is known.
        """
        Z = self._standardised(X)
        price = check_prices(cost, Z.shape[1])
        if not isinstance(n, Integral) or n < 1:
            raise ValueError(f"n must be a whole number of at least 1; got {n!r}. Pass the number of entries to buy.")
        targets = len(self.label_mean_)
        if target is not None and not 0 <= int(target) < targets:
            raise ValueError(f"target must be a column of y from 0 to {targets - 1}; got {target!r}.")
        target_weights = np.full(targets, 1 / targets) if target is None else np.eye(targets)[int(target)]
        if target is not None or targets == 1:
            target_weights = target_weights * self.label_scale_**2
        return NamedArray(self._values(Z, target_weights, price, int(n)), column_names(self))

    def explain(self, X: Any) -> Explanation:
        """What each value adds to a prediction: Shapley values of E[target | entries], over which
        entries of the row are shown.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        explanation : Explanation
            `values` of shape (m, d), or (m, d, targets), which with `base_values`, the means of the
            targets, sum to `predict(X)`. 0 where the entry is missing: under a Gaussian an absence
            says nothing.

        Notes
        -----
        Exact for rows that show up to 14 entries: all their sets, O(2^k) a row. Of rows that show
        more, means over 64 permutations and their reverses, with standard errors; one permutation
        is one Cholesky factor of the columns that a row shows. Values of correlated columns share
        what they both say of the target (Aas, Jullum and Loland, "Explaining individual predictions
        when features are dependent", 2021).
        """
        Z = self._standardised(X)
        values, errors = shapley_values(Z, *self._linear_game(), fixed_seed(self.random_state))
        base = self._expected(np.full((1, Z.shape[1]), np.nan), with_variance=False)[0]
        targets = slice(None) if values.shape[2] > 1 or not self.one_target_ else 0
        return Explanation(
            (values * self.label_scale_)[:, :, targets],
            np.repeat(base, len(Z), axis=0)[:, targets],
            cells_of(self, X, self.sparse_missing),
            column_names(self),
            None if targets == 0 else named_outputs(None, values.shape[2]),
            (errors * self.label_scale_)[:, :, targets],
            np.zeros_like(values[:, :, targets]),
        )

    def _linear_game(self) -> tuple[Floats, Floats]:
        """Mean and covariance of standardised columns and targets, by which `predict` is a conditional expectation."""
        if "covariance_" in vars(self):
            return self.location_, self.covariance_
        own = self.posterior_.components_.T @ self.posterior_.components_
        own += self.posterior_.noise_variance_ * np.eye(len(own))
        shared = own @ self.coef_
        return self.location_, np.block([[own, shared], [shared.T, self.coef_.T @ shared]])

    def _values(self, Z: Floats, target_weights: Floats, price: Floats, n: int = 1) -> Floats:
        """`value_of_measuring` of standardised rows (m, d), of the sum of the standardised targets' variances times
        `target_weights` (targets,).
        """
        targets = len(self.label_mean_)
        covariance = self.covariance_ if "covariance_" in vars(self) else self._low_rank_covariance()
        gains = np.zeros_like(Z)
        for group in self._groups(Z, Gaussian(self.location_, covariance)):
            d = group.columns.shape[1] - targets
            values = greedy_values(group.covariance, d, target_weights, price[group.columns[:, :d]], n)
            gains[group.rows[:, None], group.columns[group.own][:, :d]] = values[group.own]
        return gains

    def _low_rank_covariance(self) -> Floats:
        """Covariance (d + targets, d + targets) that the low rank and the regression stand for."""
        model = self.posterior_
        own = model.components_.T @ model.components_ + model.noise_variance_ * np.eye(len(model.mean_))
        root = np.sqrt(self.spread_scale_)  # of what missing entries leave: the share that is an error
        shared = own @ self.coef_ * root
        within = self.coef_.T @ own @ self.coef_ * np.outer(root, root)
        return np.block([[own, shared], [shared.T, within + np.diag(np.maximum(self.label_variance_, 1e-9))]])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


# -- Gaussians of rows with missing entries ---------------------------------------------------------------------------


class Gaussian(NamedTuple):
    """Mean and covariance of p columns."""

    mean: Floats  # (p,)
    covariance: Floats  # (p, p)


class MaskGroup(NamedTuple):
    """A `MaskPattern`, and the conditional covariance of every pattern in it."""

    rows: NDArray[np.int64]
    own: NDArray[np.int64]
    columns: NDArray[np.int64]
    mean: Floats  # (n, m): conditional expectation of it
    covariance: NDArray[Any]  # (patterns, m, m)


def conditionals(joint: Floats, model: Gaussian) -> Iterator[MaskGroup]:
    """Conditional expectations and covariances of what rows (n, p) lack. O(m^3) a pattern, O(p^2) a row."""
    missing = np.isnan(joint)
    precision, pull = _precision_and_pull(joint, missing, model)
    for rows, own, columns in patterns_of(missing):
        covariance = np.linalg.inv(precision[columns[:, :, None], columns[:, None, :]])
        expected = np.empty((len(rows), columns.shape[1]))
        step = max(PATTERN_NUMBERS // columns.shape[1] ** 2, 1)
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            right = pull[rows[block, None], columns[own[block]]]
            expected[block] = (
                model.mean[columns[own[block]]] - np.matmul(covariance[own[block]], right[:, :, None])[:, :, 0]
            )
        yield MaskGroup(rows, own, columns, expected, covariance)


def _precision_and_pull(joint: Floats, missing: Bools, model: Gaussian) -> tuple[Floats, Floats]:
    """The inverse covariance L (p, p), and (x - mean) L (n, p) with 0 for x - mean where x is missing."""
    precision = np.linalg.inv(model.covariance)
    precision = (precision + precision.T) / 2
    return precision, row_product(np.where(missing, 0.0, joint - model.mean), precision)


def _expect(joint: Floats, missing: Bools, model: Gaussian, patterns: list[MaskPattern], completed: Floats) -> Floats:
    """The E step: fills what `completed` (n, p) lacks by its expectation and returns the sum (p, p) of conditional
    covariances.

    The same as sums over `conditionals`, which holds every covariance, in one pass.
    """
    precision, pull = _precision_and_pull(joint, missing, model)
    covariance = np.zeros_like(precision)
    for rows, own, columns in patterns:
        m = columns.shape[1]
        starts = np.searchsorted(own, np.arange(len(columns) + 1))
        work = np.empty(m * (m + 2))
        if not _linalg.conditional_moments(
            precision, pull, model.mean, rows, starts, columns, completed, covariance, work
        ):
            raise ValueError(
                "the covariance of X and y must be positive definite; columns repeat each other and shrinkage is next "
                "to nothing. Use a larger shrinkage."
            )
    return covariance


def fit_gaussian(
    joint: Floats, model: Gaussian, shrinkage: float, max_iter: int, tol: float, toward: Floats | None = None
) -> tuple[Gaussian, int]:
    """EM for the mean and covariance of standardised rows (n, p) with missing entries, and the number of steps.

    `shrinkage` rows' worth of the unit matrix, or of the covariance `toward`, are added. Steps are longer than EM's own, by what the last ones tell of
    its rate, while the covariance stays above a fifth of EM's.
    """
    n, p = joint.shape
    missing = np.isnan(joint)
    patterns, completed = patterns_of(missing), np.ascontiguousarray(np.where(missing, 0.0, joint))
    added = shrinkage * (np.eye(p) if toward is None else toward)

    def step(state: tuple[Gaussian, float, float]) -> tuple[tuple[Gaussian, float, float], float]:
        model, relax, before = state
        covariance = _expect(joint, missing, model, patterns, completed)
        mean = completed.mean(axis=0)
        centred = completed - mean
        target = (centred.T @ centred + covariance + added) / (n + shrinkage)
        change = target - model.covariance
        size = float(np.sqrt(np.mean(change**2)))
        relax = next_relax(relax, size / max(before, 1e-300))
        new = _further(model, Gaussian(mean, (target + target.T) / 2), relax)
        return (new, relax, size), float(np.abs(change).max())

    (model, _, _), n_iter, _ = run_em(step, (model, 1.0, np.inf), max_iter=max_iter, tol=tol)
    return model, n_iter


def best_shrinkage(joint: Floats, targets: int) -> float:
    """The shrinkage that predicts the targets, the last columns of standardised rows (n, p), best where rows are left out."""
    folds = np.arange(len(joint)) % _SHRINKAGE_FOLDS
    models = [Gaussian(np.zeros(joint.shape[1]), np.eye(joint.shape[1]))] * _SHRINKAGE_FOLDS
    best, least = _SHRINKAGES[0], np.inf
    for shrinkage in _SHRINKAGES:
        loss = 0.0
        for fold in range(_SHRINKAGE_FOLDS):
            rows = joint[folds != fold]
            models[fold], _ = fit_gaussian(rows, models[fold], shrinkage, _SHRINKAGE_STEPS, _SHRINKAGE_TOL)
            loss += _squared_error(joint[folds == fold], models[fold], targets)
        if loss > least:  # less shrinkage is worse still
            break
        best, least = shrinkage, loss
    return best


def _squared_error(joint: Floats, model: Gaussian, targets: int) -> float:
    """The sum of squared errors of known targets, the last columns of rows (n, p), by their expectations given the other columns."""
    hidden, known = joint.copy(), joint[:, -targets:]
    hidden[:, -targets:] = np.nan
    total = 0.0
    for group in conditionals(hidden, model):
        total += float(np.nansum((known[group.rows] - group.mean[:, -targets:]) ** 2))
    return total


def next_relax(relax: float, ratio: float) -> float:
    """Length of the next step from the ratio of the last two, 1 - relax (1 - r) where EM shrinks the distance by r.

    2 / (2 - r) is the best for rates from 0 to r.
    """
    rate = 1 - (1 - min(ratio, 1.0)) / relax
    return 2 / (2 - min(max(rate, 0.0), _SLOWEST))


def _further(old: Gaussian, new: Gaussian, relax: float) -> Gaussian:
    longer = old.covariance + relax * (new.covariance - old.covariance)
    try:
        np.linalg.cholesky(longer - 0.2 * new.covariance)
    except np.linalg.LinAlgError:
        return new
    return Gaussian(old.mean + relax * (new.mean - old.mean), longer)


def greedy_values(covariance: Floats, d: int, target_weights: Floats, price: Floats, n: int) -> Floats:
    """Values (patterns, d) of the missing columns, which come before the targets in `covariance` (patterns, m, m), over
    `price`.

    Of the plan's first n - 1 columns the values at the time they were bought, of the others those after.
    """
    C = covariance.copy()
    bought = np.zeros((len(C), d))
    done = np.zeros((len(C), d), dtype=bool)
    at = np.arange(len(C))
    for k in range(min(n, d)):
        variance = np.einsum("njj->nj", C)[:, :d]
        gains = np.einsum("njt,t->nj", C[:, :d, d:] ** 2, target_weights) / np.maximum(variance, 1e-12) / price
        gains[done] = -1.0
        if k == min(n, d) - 1:
            break
        best = np.argmax(gains, axis=1)
        bought[at, best], done[at, best] = gains[at, best], True
        column = C[at, :, best]
        C -= column[:, :, None] * column[:, None, :] / np.maximum(C[at, best, best], 1e-12)[:, None, None]
    return np.where(done, bought, gains) if d else bought


def check_prices(cost: Any, n_columns: int) -> Floats:
    """What measuring an entry of each column costs, (n_columns,); None is 1."""
    price = np.ones(n_columns) if cost is None else check_numbers(np.atleast_1d(cost), "cost", ensure_2d=False)
    if price.shape != (n_columns,) or not (price > 0).all():
        raise ValueError(
            f"cost must be {n_columns} numbers above 0, one a column; got shape {price.shape}, least "
            f"{price.min(initial=np.inf):g}. Give every column a price."
        )
    return price
