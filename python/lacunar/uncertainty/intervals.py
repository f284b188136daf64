"""`MaskConformalRegressor`: prediction intervals whose coverage does not depend on what a row lacks."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from copy import copy, deepcopy
from itertools import repeat
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin, _fit_context, clone
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from lacunar._random import fixed_seed, generator
from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Floats, Ints
from lacunar.encode import Remarks
from lacunar.lowrank import GaussianRegressor
from lacunar.observed.door import ScoreMixin, read_target, require_y
from lacunar.observed.ids import read_groups
from lacunar.observed.rules import Anything, Instance, Number, Optional, Rule, whole
from lacunar.uncertainty.boosted import BoostedGaussian
from lacunar.uncertainty.conformal import (
    TAILS,
    End,
    LowerBound,
    Tail,
    check_levels,
    hold_predictions,
    interval_scores,
    intervals_at,
    lowest_ends,
    quantiles_at,
    quantiles_of_rows,
    skewed_interval,
    warn_of_infinite,
)
from lacunar.uncertainty.deviation import (
    FEWEST_BY_COLUMNS,
    MOST_BY_COLUMNS,
    ColumnDeviation,
    PredictiveDeviation,
    is_less,
    sigma_by_columns,
    sigma_out_of_fold,
)
from lacunar.uncertainty.masks import (
    MaskConformal,
    answers_of,
    as_numbers,
    count_missing,
    encoder_of,
    fit_with_groups,
    group_folds,
    readable_rows,
    rows_of,
    with_copies,
)
from lacunar.uncertainty.power import TargetPower
from lacunar.uncertainty.shift import evenly

_LEAST_STD = 1e-150  # whose square is above 0
_FEWEST_CHOOSING = 100  # rows, from which the default chooses its base
_FOLDS, _FOLDS_OF_FEW, _MANY = 5, 10, 400  # rows, from which a fifth is not missed
_MEAN_OVER = 50  # residuals, evenly spaced among the sorted ones


class TrainingRows(NamedTuple):
    """Rows and targets of training, in which fold each of them is left out, and what is known of them."""

    rows: Any  # (n, d)
    target: Floats  # (n,)
    fold: Ints  # (n,)
    groups: Ints | None  # (n,)
    weights: Floats | None  # (n,)

    def parts(self) -> Iterator[tuple[Any, Floats, Ints | None]]:
        """All rows, their targets and groups, then those without each fold."""
        yield self.rows, self.target, self.groups
        for k in range(int(self.fold.max()) + 1):
            inside = np.flatnonzero(self.fold != k)
            yield (
                _safe_indexing(self.rows, inside),
                self.target[inside],
                None if self.groups is None else self.groups[inside],
            )

    def gaussians(self) -> list[GaussianRegressor]:
        """A model of all rows, and one without each fold, whose EM begins at the first."""
        fitted: list[GaussianRegressor] = []
        for rows, target, _ in self.parts():
            start = deepcopy(fitted[0]) if fitted else GaussianRegressor(warm_start=True)
            fitted.append(start.fit(rows, target))
        return fitted

    def boosted(self, gaussians: Sequence[GaussianRegressor]) -> Iterator[BoostedGaussian]:
        """Trees on what each of the `gaussians` leaves of the target."""
        for (rows, target, _), gaussian in zip(self.parts(), gaussians, strict=True):
            yield BoostedGaussian().fit(rows, target, gaussian)


class OutOfFold(NamedTuple):
    """Predictions out of fold of the rows of all tables, one table after another, and what their scores are multiplied by."""

    mean: Floats  # (N,)
    sigma: Floats  # (N,)
    tables: list[Any]  # rows as they came, and copies with further entries hidden

    @property
    def n_missing(self) -> Floats:
        return np.concatenate([count_missing(table) for table in self.tables])


class Base(NamedTuple):
    """A model of all rows, then those without each fold, of a target that was transformed by a power."""

    models: Iterable[Any]
    power: TargetPower | None = None
    gaussians: Sequence[GaussianRegressor] = ()  # which say how much of y a mask hides, where the models do not


class Candidate(NamedTuple):
    """A base, and intervals around it."""

    name: str
    fitted: MaskConformalRegressor
    predicted: OutOfFold
    scores: Floats  # (n,) of intervals of the rows that count


@whole_answers
class MaskConformalRegressor(ScoreMixin, RegressorMixin, MaskConformal):
    """Prediction intervals around any regressor that takes missing values, for the mask in hand.

    Ordinary conformal intervals hold on average over masks: asked for 90 %, they give complete rows
    97 % and rows that lack nine of ten entries 50 %. Here residuals out of fold are divided by a
    scale that knows what the row lacks, so that one quantile serves all.

    Parameters
    ----------
    estimator : estimator or None, default=None
        With `fit` and `predict`, taking missing values. None chooses from 100 rows on, by interval
        scores out of fold, among `GaussianRegressor`, gradient boosting of what it leaves, averaged
        over draws of missing entries, and both on a power-transformed target; of fewer rows, and
        for "cv+", it is `GaussianRegressor`. These read text, categories and dates as the numbers
        that `lacunar.encode.TableEncoder` makes of them, and those are counted as entries.
    level : float, default=0.9
        Coverage asked for.
    masks : {"natural", "any"}, default="natural"
        Whether rows to predict lack entries as the training rows do, or whatever they may. With
        "any", and for estimators without `predict(X, return_std=True)`, scales are learned from
        three more copies of every row with a random share of its entries hidden, up to 90 %. Where
        an entry is missing because of its own value, hidden entries are not like it, and intervals
        from copies are wider than needed.
    method : {"refit", "cv+"}, default="refit"
        "refit" predicts by a model of all rows and takes the quantile of residuals out of fold;
        nothing is guaranteed for finite samples. "cv+" [1]_ keeps the models of the folds; coverage
        is at least 2 level - 1 on average over rows like those of training.
    cv : int or None, default=None
        Folds. None is five, or ten of 100 to 400 rows: models without a fifth of those predict
        clearly worse than the one of all rows, and their residuals make intervals too wide. Where
        rows are in groups, groups are counted.
    lower_bound : float, "auto", "observed" or None, default="auto"
        Below which no end lies: a number, the smallest target of training, or with "auto" 0 where
        no target of training is below 0, as of prices and counts; a lower end then is below 0 only
        to hold a prediction that is. That takes at most 1 / (n + 1) of the coverage, on average
        over rows like the n of training. None is no bound: pass it where targets below 0 are still
        to come.
    random_state : int, RandomState or None, default=None
        Draws folds and masks. None is a fixed draw.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to all rows.
    has_text_ : bool
        Whether X was an array with text, which the estimator gets as a frame, as new rows are.
    estimators_ : list of estimators
        Fitted without each fold, for "cv+"; else empty.
    gaussian_ : GaussianRegressor or None
        The model that tells how much of y a mask hides, where the estimator does not say itself.
    gaussians_ : list of GaussianRegressor
        The same of the folds, for "cv+".
    encoder_ : TableEncoder or None
        Makes numbers of the columns of a frame for it, or for the default.
    scores_ : ConformalScores
        Of rows and of copies, in arrays of shape (N,): `scores_`, residuals out of fold over their
        scales; `n_missing_`, numbers of missing entries; `copied_`, whether it is a copy.
    score_fold_ : ndarray of int of shape (N,)
        The fold that each of `scores_` comes from.
    deviation_ : PredictiveDeviation or None
        The regression of squared residuals on log variance, number missing, prediction and squared
        prediction; None where the estimator's own standard deviation is the scale.
    column_deviation_ : ColumnDeviation or None
        Small trees on the entries of a row: what its scale is multiplied by, where noise grows by a
        column and intervals out of fold are better so by more than a standard error. From 100 rows
        on; the scale of an estimator with its own standard deviations stays.
    prediction_mean_, prediction_scale_ : float
        Mean and standard deviation of predictions out of fold, in which `deviation_` takes them.
    power_ : TargetPower or None
        What the target is transformed by; ends are transformed back.
    interval_scores_ : dict of str to float
        By base that was tried, mean widths of intervals out of fold, plus 2 / (1 - level) times how
        far outside the target is; of the best one also with noise by columns. Another than the
        first is taken where it is better by more than a standard error.
    least_target_ : float
        Smallest target of training.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    Coverage for every mask and any distribution cannot be guaranteed without infinite intervals
    [2]_: coverage by number missing is measured, in the page on uncertainty. Costs a fit of the
    estimator to all rows and one without each fold, and as many of the Gaussian, which starts from
    the one of all rows; the default as many of each base that it tries. The power transformation is
    Yeo and Johnson's, of a power between 0 and 2, and straight beyond the targets of training.

    References
    ----------
    .. [1] R. F. Barber, E. J. Candes, A. Ramdas, R. J. Tibshirani, "Predictive inference with the
       jackknife+", 2021.
    .. [2] M. Zaffran, J. Josse, Y. Romano, A. Dieuleveut, "Predictive uncertainty quantification
       with missing covariates", 2024, arXiv 2405.15641.
    .. [3] R. J. Tibshirani, R. F. Barber, E. J. Candes, A. Ramdas, "Conformal prediction under
       covariate shift", 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.uncertainty import MaskConformalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> y = X @ [3.0, 1.0, 0.0] + 0.5 * rng.normal(size=500)
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> interval = MaskConformalRegressor().fit(X, y).predict_interval([[1, 1, 1], [np.nan, 1, 1]])
    >>> (interval[:, 1] - interval[:, 0]).round()
    array([ 2., 10.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MaskConformal._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), None],
        "cv": [*MaskConformal._parameter_constraints["cv"], None],
        "method": [StrOptions({"refit", "cv+"})],
        "lower_bound": [Interval(Real, None, None, closed="neither"), StrOptions({"auto", "observed"}), None],
    }
    _schema: ClassVar[dict[str, Rule]] = {
        **MaskConformal._schema,
        **dict.fromkeys(("encoder_", "estimators_", "gaussian_", "gaussians_"), Anything()),
        "score_fold_": whole("N"),
        "power_": Optional(Instance(TargetPower)),
        "interval_scores_": Anything(),
        "least_target_": Number(),
        "deviation_": Optional(Instance(PredictiveDeviation)),
        "column_deviation_": Optional(Instance(ColumnDeviation)),
        "prediction_mean_": Number(),
        "prediction_scale_": Number(low=0, above=True),
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        level: float = 0.9,
        masks: Literal["natural", "any"] = "natural",
        method: Literal["refit", "cv+"] = "refit",
        cv: int | None = None,
        lower_bound: LowerBound = "auto",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.level = level
        self.masks = masks
        self.method = method
        self.cv = cv
        self.lower_bound = lower_bound
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    @all_or_nothing
    def fit(self, X: Any, y: Any, groups: Any = None, likelihood_ratio: Any = None) -> MaskConformalRegressor:
        """Fit the estimator, to all rows and without each fold, and the scale of its residuals.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            A frame with columns that are not numbers goes to a given estimator as it is.
        y : array-like of shape (n,)
        groups : array-like of shape (n,), default=None
            To which person, place or batch a row belongs, as numbers or text: folds leave out whole
            groups, so that residuals are those of rows of new groups. An estimator whose `fit`
            takes groups is told of them.
        likelihood_ratio : array-like of shape (n,), default=None
            How much denser rows to predict are than training rows at each training row, up to a
            factor: scores weigh so (Tibshirani et al. 2019). For a known shift of the columns; the
            estimator is fitted as without it.

        Returns
        -------
        self
        """
        require_y(self, y, "Pass one for every row.")
        rows = readable_rows(self, X, reset=True)
        target = read_target(y, y_numeric=True).values
        check_consistent_length(rows, target)
        groups = read_groups(groups, len(target), np.arange(len(target)))
        cv = self.cv or _default_folds(len(target) if groups is None else int(groups.max()) + 1)
        if len(target) < cv:
            raise ValueError(f"X must have at least cv={cv} rows; got n_samples = {len(target)}. Lower cv.")
        weights = self._read_ratios(likelihood_ratio, len(target))
        rng = generator(fixed_seed(self.random_state))
        fold = group_folds(groups, len(target), cv, rng)
        self.encoder_ = encoder_of(rows)
        self.least_target_ = float(target.min())
        own = self.method != "refit" or (self.estimator is not None and not self._learns_scale(self.estimator))
        tables = [self._as_read(table, Remarks()) for table in ([rows] if own else with_copies(rows, rng))]
        training = TrainingRows(tables[0], target, fold, groups, weights)
        best, means = None, {}
        for name, base in self._bases(training):
            one = copy(self)
            predicted = one._calibrate(base, tables, training)
            candidate = Candidate(name, one, predicted, one._fit_scores(predicted, training))
            means[name] = float(candidate.scores[: len(target)].mean())
            if best is None or is_less(candidate.scores, best.scores):
                best = candidate
        assert best is not None
        fitted = best.fitted
        if not own and len(target) >= FEWEST_BY_COLUMNS and tables[0].shape[1] <= MOST_BY_COLUMNS:
            one = copy(fitted)
            scores = one._fit_by_columns(best.predicted, training)
            means[f"{best.name}, noise by columns"] = float(scores[: len(target)].mean())
            fitted = one if is_less(scores, best.scores) else fitted
        self.__dict__.update(vars(fitted))
        self.interval_scores_ = means
        return self

    def _bases(self, training: TrainingRows) -> Iterator[tuple[str, Base]]:
        """Names of candidate bases and the bases, the simplest first."""
        rows, target = training.rows, training.target
        if self.estimator is not None:
            models = (fit_with_groups(clone(self.estimator), *part) for part in training.parts())
            numbers = None if _has_std(self.estimator) else training._replace(rows=as_numbers(rows, self.encoder_))
            yield "given", Base(models, gaussians=() if numbers is None else numbers.gaussians())
            return
        gaussians = training.gaussians()
        yield "Gaussian", Base(gaussians)
        if self.method == "cv+" or len(target) < _FEWEST_CHOOSING:
            return
        yield "boosted", Base(training.boosted(gaussians))
        power = TargetPower().fit(target)
        if power.bends:
            training = training._replace(target=power.transform(target))
            gaussians = training.gaussians()
            yield "Gaussian, power", Base(gaussians, power)
            yield "boosted, power", Base(training.boosted(gaussians), power)

    def _learns_scale(self, base: Any) -> bool:
        """Whether scales are learned from residuals; else they are the standard deviations of the estimator itself."""
        own = _has_std(base) and not isinstance(base, BoostedGaussian)
        return self.method == "refit" and (self.masks == "any" or not own)

    def _calibrate(self, base: Base, tables: list[Any], training: TrainingRows) -> OutOfFold:
        """Store the base in this object; returns what it predicts out of fold."""
        self.power_, fold = base.power, training.fold
        pairs = zip(base.models, base.gaussians or repeat(None), strict=False)
        self.estimator_, self.gaussian_ = next(pairs)
        self.estimators_, self.gaussians_ = [], []
        mean, std = np.empty((2, len(tables), len(fold)))
        for k, (model, gaussian) in enumerate(pairs):
            outside = np.flatnonzero(fold == k)
            for t, table in enumerate(tables):
                part = _safe_indexing(table, outside)
                with rows_of(table, fold != k):
                    mean[t, outside], std[t, outside] = self._mean_and_std(part, model, gaussian)
            if self.method == "cv+":
                self.estimators_.append(model)
                self.gaussians_ += [gaussian] if gaussian is not None else []
        self.score_fold_ = np.tile(fold, len(tables)).astype(np.int64)
        return self._scaled(mean.ravel(), std.ravel(), tables, training)

    def _scaled(self, mean: Floats, std: Floats, tables: list[Any], training: TrainingRows) -> OutOfFold:
        """Predictions out of fold (N,) with their scales, learned where they are not the estimator's own."""
        self.prediction_mean_, self.prediction_scale_ = float(mean.mean()), float(mean.std() + 1e-9)
        self.deviation_: PredictiveDeviation | None = None
        self.column_deviation_: ColumnDeviation | None = None
        predicted = OutOfFold(mean, std, tables)
        if self._learns_scale(self.estimator_):
            standard, variance = self._standard(mean, std)
            columns = standard, self._residuals(mean, training), variance, predicted.n_missing
            self.deviation_ = PredictiveDeviation().fit(*columns)
            predicted = predicted._replace(sigma=sigma_out_of_fold(*columns, self.score_fold_))
        return predicted

    def _residuals(self, mean: Floats, training: TrainingRows) -> Floats:
        """Targets of the rows of all tables, transformed, less predictions (N,)."""
        y = training.target
        target = y if self.power_ is None else self.power_.transform(y)
        return np.tile(target, len(mean) // len(y)) - mean

    def _fit_scores(self, predicted: OutOfFold, training: TrainingRows) -> Floats:
        """Scores of predictions out of fold of all tables; returns the interval scores of the rows that count."""
        y, weights = training.target, training.weights
        mean, sigma, tables = predicted
        self.scores_ = self._scores_of(self._residuals(mean, training) / sigma, tables, weights)
        n = self._n_counted(predicted)
        own = None if weights is None else np.tile(weights, n // len(y))
        ends = self._around(mean[:n], sigma[:n], predicted.n_missing[:n], own)
        low, high = skewed_interval(self.level, ends).T
        scores = interval_scores(low, high, np.tile(y, n // len(y)), self.level)
        return scores if own is None else scores * own

    def _fit_by_columns(self, predicted: OutOfFold, training: TrainingRows) -> Floats:
        """The same with scales that depend on what the entries of a row are."""
        rows = np.vstack([self._numbers(table) for table in predicted.tables])
        n = self._n_counted(predicted)
        scores = self.scores_.scores_[:n]
        self.column_deviation_ = ColumnDeviation().fit(rows[:n], scores, predicted.sigma[:n])
        sigma = sigma_by_columns(rows, scores, predicted.sigma, self.score_fold_)
        return self._fit_scores(predicted._replace(sigma=sigma), training)

    def _n_counted(self, predicted: OutOfFold) -> int:
        """How many of the first rows are like those to predict."""
        return len(predicted.mean) if self.masks == "any" else len(predicted.tables[0])

    def _numbers(self, rows: Any) -> Floats:
        """Rows as numbers with NaN (m, columns); what is to be said of the rows, the model says."""
        return as_numbers(rows, None if isinstance(rows, np.ndarray) else self.encoder_, Remarks())

    def _as_read(self, rows: Any, remarks: Remarks | None = None) -> Any:
        """Rows as the estimator reads them: the bases of the default read numbers."""
        encoded = self.estimator is None and self.encoder_ is not None
        return as_numbers(rows, self.encoder_, remarks) if encoded else rows

    def _rows(self, X: Any) -> Any:
        return self._as_read(readable_rows(self, X, reset=False))

    def _standard(self, mean: Floats, std: Floats) -> tuple[Floats, Floats]:
        """Predictions in their own standard deviations, and variances, as `deviation_` takes them."""
        return (mean - self.prediction_mean_) / self.prediction_scale_, np.maximum(std, _LEAST_STD) ** 2

    def _mean_and_std(self, rows: Any, model: Any, gaussian: GaussianRegressor | None) -> tuple[Floats, Floats]:
        """Predictions and standard deviations (n,)."""
        if gaussian is None:
            mean, std = model.predict(rows, return_std=True)
            return mean, np.maximum(std, np.finfo(np.float64).tiny)
        mean = answers_of(model.predict(rows), rows, "predictions")
        return mean, gaussian.predict(self._numbers(rows), return_std=True)[1]

    def _mean_and_sigma(self, rows: Any) -> tuple[Floats, Floats]:
        """Predictions by the model of all rows, and what their scores are multiplied with (n,)."""
        mean, sigma = self._mean_and_std(rows, self.estimator_, self.gaussian_)
        if self.deviation_ is not None:
            sigma = self.deviation_.sigma(*self._standard(mean, sigma), count_missing(rows))
        if self.column_deviation_ is not None:
            sigma = self.column_deviation_.sigma(self._numbers(rows), sigma)
        return mean, sigma

    def predict(self, X: Any) -> Floats:
        """Predictions of the estimator fitted to all rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        y : ndarray of shape (m,)
            Where the target is transformed, means of the target over the residuals out of fold.
        """
        check_is_fitted(self, "estimator_")
        power = self.power_
        if power is None:
            rows = self._rows(X)
            return answers_of(self.estimator_.predict(rows), rows, "predictions")
        mean, sigma = self._mean_and_sigma(self._rows(X))
        scores = np.sort(self.scores_.scores_[~self.scores_.copied_])
        total = np.zeros(len(mean))
        for place in evenly(len(scores), _MEAN_OVER):
            total += power.inverse(mean + scores[place] * sigma)
        return np.asarray(total / min(len(scores), _MEAN_OVER))

    def predict_interval(
        self, X: Any, level: float | Sequence[float] | None = None, likelihood_ratio: Any = None
    ) -> Floats:
        """Lower and upper ends of the intervals.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
        level : float, sequence of floats or None, default=None
            Coverage asked for, between 0 and 1; None is that of the constructor.
        likelihood_ratio : array-like of shape (m,), default=None
            The same of these rows, in the units of `fit`; None is the mean of the training rows'
            ratios.

        Returns
        -------
        intervals : ndarray of shape (m, 2), or (m, levels, 2) for a sequence of levels
            Lower and upper ends. Each tail is calibrated apart, so that a skewed target has skewed
            intervals; ends are infinite where training rows are too few for the level, as a warning
            says.
        """
        levels = check_levels(self.level if level is None else level)
        intervals, least = intervals_at(levels, self._ends(X, likelihood_ratio), skewed_interval), self._least_end()
        if self.lower_bound == "auto" and (intervals[..., 0] <= least).any():
            hold_predictions(intervals, self.predict(X), least)
        warn_of_infinite(intervals, levels, self._n_scores, two_tails=True)
        return intervals

    def predict_quantiles(
        self, X: Any, level: float | Sequence[float] = (0.1, 0.5, 0.9), likelihood_ratio: Any = None
    ) -> Floats:
        """Quantiles of the target, from the residuals of the intervals with their signs.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
        level : float or sequence of floats, default=(0.1, 0.5, 0.9)
            Shares of the target that are to be below, between 0 and 1.
        likelihood_ratio : array-like of shape (m,), default=None
            The same of these rows, in the units of `fit`; None is the mean of the training rows'
            ratios.

        Returns
        -------
        quantiles : ndarray of shape (m, levels), or (m,) for one float
            None is below that of a smaller level. Those of .05 and .95 are the ends of the interval
            of level .9, but for one that holds a prediction below the bound; infinite where
            training rows are too few for the level, as a warning says.
        """
        levels = check_levels(level)
        quantiles = quantiles_at(levels, self._ends(X, likelihood_ratio))
        warn_of_infinite(quantiles, levels, self._n_scores, two_tails=False)
        return quantiles

    @property
    def _n_scores(self) -> int:
        """Scores of rows as they came, copies not counted."""
        return int((~self.scores_.copied_).sum())

    def _trial_rows(self) -> list[Any]:
        """Tables of one row that the estimator, or what makes numbers for it, reads."""
        encoder = vars(self).get("encoder_") if self.estimator is None else None
        return super()._trial_rows() if encoder is None else self._as_frames(encoder._trial_rows())

    def _ends(self, X: Any, likelihood_ratio: Any) -> End:
        """Ends of the intervals of rows, as a function of level, tail of the scores and side."""
        check_is_fitted(self, "estimator_")
        rows = self._rows(X)
        n_missing = count_missing(rows)
        own = self._own_ratios(likelihood_ratio, len(n_missing))
        if self.estimators_:
            return self._ends_around_folds(rows, own)
        return self._around(*self._mean_and_sigma(rows), n_missing, own)

    def _around(self, mean: Floats, sigma: Floats, n_missing: Floats, own: Floats | None) -> End:
        """Ends around predictions (m,) of rows that lack so many entries."""

        def end(level: float, tail: Tail, side: int) -> Floats:
            learned, scores = self.deviation_ is not None or self.column_deviation_ is not None, self.scores_
            reach = scores.near(n_missing, level, tail, own) if learned else scores.overall(level, tail, own)
            return self._in_units(mean + side * (reach * sigma))

        return end

    def _in_units(self, ends: Floats) -> Floats:
        """Ends in units of the target, none below the bound."""
        ends = ends if self.power_ is None else self.power_.inverse(ends)
        return np.maximum(ends, self._least_end())

    def _least_end(self) -> Floats:
        """The number (1,) below which no end lies."""
        return lowest_ends(self.lower_bound, np.array([self.least_target_]))

    def _ends_around_folds(self, rows: Any, own: Floats | None) -> End:
        """Quantiles over training rows of the predictions without their folds, less and plus their scores: (11)
        of CV+.
        """
        gaussians: list[Any] = self.gaussians_ or [None] * len(self.estimators_)
        predicted = [self._mean_and_std(rows, *pair) for pair in zip(self.estimators_, gaussians, strict=True)]

        def end(level: float, tail: Tail, side: int) -> Floats:
            scores = TAILS[tail](self.scores_.scores_)
            ends = np.empty((len(rows), len(scores)))
            for j, (mean, std) in enumerate(predicted):
                left_out = self.score_fold_ == j
                ends[:, left_out] = std[:, None] * scores[left_out] + side * mean[:, None]
            return self._in_units(side * quantiles_of_rows(ends, level, self.scores_.weights_, own))

        return end


def _default_folds(n: int) -> int:
    """How many folds n rows or groups are cut into."""
    return _FOLDS_OF_FEW if _FEWEST_CHOOSING <= n < _MANY else _FOLDS


def _has_std(base: Any) -> bool:
    """Whether predictions come with standard deviations."""
    return "return_std" in inspect.signature(base.predict).parameters
