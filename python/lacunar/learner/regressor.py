"""`LacunarRegressor`: the answer to "I have a table with missing values and numbers to predict"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context, clone
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from lacunar._answers import ColumnTable
from lacunar._state import all_or_nothing, whole_answers
from lacunar._trees import on_grid
from lacunar._typing import Floats, Ints
from lacunar.explanation import named_outputs
from lacunar.learner.base import LacunarBase, Learned, Part, Table, Target, report
from lacunar.learner.ensemble import Ensemble
from lacunar.learner.kept import KeptRows
from lacunar.learner.masks import FEWEST_ROWS
from lacunar.learner.targets import TargetVariance
from lacunar.learner.views import View
from lacunar.observed.door import (
    ScoreMixin,
    SparseMissing,
    flat_target,
    read_target,
    refuse_uncounted,
    require_y,
    warn_if_unlabelled,
)
from lacunar.observed.ids import read_groups
from lacunar.observed.rules import Array, Flag, Instance, Items, Optional, Rule, floats
from lacunar.uncertainty.conformal import (
    LowerBound,
    Tail,
    check_levels,
    hold_predictions,
    intervals_at,
    lowest_ends,
    quantiles_at,
    warn_of_infinite,
)
from lacunar.uncertainty.deviation import MOST_BY_COLUMNS
from lacunar.uncertainty.intervals import MaskConformalRegressor
from lacunar.uncertainty.shift import ExtraMissingVariance, Lacking, evenly

_FEWEST_RESIDUALS = 10  # from which a scale is learned
# Of intervals by value: tables that have them, and what they are learned from.
_LEAST_MISSING, _MOST_COLUMNS, _MOST_TARGETS, _MOST_ROWS = 0.01, 40, 3, 1000
_FOLDS_BY_VALUE = 3
_SURE = 2.0  # standard errors, beyond which a batch's predictions are off to one side


class Spread:
    """How far one target may be from its predictions of some rows, in its own units."""

    def __init__(self, rows: Lacking, deviation: ExtraMissingVariance, mean: float, scale: float) -> None:
        self.values, self.scale = rows.predicted * scale + mean, scale
        self.sigma, self.distance = deviation.sigma(rows), deviation.distances(rows)

    def std(self) -> Floats:
        """Predictions and standard deviations (m, 2)."""
        return np.column_stack([self.values, self.sigma * self.scale])

    def end(self, level: float, tail: Tail, side: int) -> Floats:
        """Ends of intervals (m,), as `conformal` asks for them."""
        return np.asarray(self.values + side * (self.distance(level, tail) * self.scale))

    def intervals(self, levels: Any) -> Floats:
        """Lower and upper ends, (m, k, 2), or (m, 2) of one level."""
        return intervals_at(levels, self.end)

    def quantiles(self, levels: Any) -> Floats:
        """Quantiles of the target (m, k), or (m,) of one level."""
        return quantiles_at(levels, self.end)


class ValueSpread:
    """How far one target may be from what a joint Gaussian, and trees on columns that it completes, expect of it.

    A mask that told members something in training, and no longer does, leads them astray; these read values alone.
    """

    def __init__(self, conformal: MaskConformalRegressor, Z: Floats, mean: float, scale: float) -> None:
        self.conformal, self.Z, self.mean, self.scale = conformal, Z, mean, scale
        self.values = conformal.predict(Z) * scale + mean

    def intervals(self, levels: Any) -> Floats:
        """Lower and upper ends, (m, k, 2), or (m, 2) of one level."""
        return np.asarray(self.conformal.predict_interval(self.Z, levels) * self.scale + self.mean)

    def quantiles(self, levels: Any) -> Floats:
        """Quantiles of the target (m, k), or (m,) of one level."""
        return np.asarray(self.conformal.predict_quantiles(self.Z, levels) * self.scale + self.mean)


@whole_answers
class LacunarRegressor(ScoreMixin, RegressorMixin, MultiOutputMixin, LacunarBase):
    """Predict a number for rows with missing values: you choose nothing and fill nothing in.

    `fit` trains five kinds of learners on the table as it is and pools them by how well they
    predict rows that they have not seen. Columns may be numbers, text, categories or dates.

    - `fit(X, y)`; y may be several targets with gaps in each, and `groups` say where rows belong;
    - `predict_interval(X)` gives an interval that holds the number, `predict(X)` the number;
    - `explain(X)` says what each value and each gap of a row adds to its prediction.

    Parameters
    ----------
    members : "auto" or list of str, default="auto"
        Of "linear", "gaussian", "kernels", "boosting" and "forest".
    cv : int, splitter, iterable of splits or None, default=None
        How rows are held out, such as TimeSeriesSplit for rows in the order of time.
    time_limit : float, default=None
        Seconds that `fit` may take, roughly: members learn less, or are left out.
    memory_limit : float, default=None
        MiB that members may take beyond the data, roughly; None is all rows.
    sparse_missing : {"absent", "nan"}, default="absent"
        What is missing in a sparse matrix: entries it does not store, or stored NaN.
    random_state : int, RandomState or None, default=None
        Folds, trees and subsamples; None is seed 0.
    n_jobs : int, default=None
        Threads. Answers do not depend on it.
    verbose : bool or int, default=False
        A line for every member.

    Attributes
    ----------
    weights_ : ndarray of shape (members,) or (targets, members)
        Of the members in the sum. With targets known in different rows, a list with one for each
        group of targets.
    members_ : list of str
        Members that were trained.
    report_ : dict of lists
        Columns "member", "score" (R2 out of fold), "weight", "seconds", "rows" (that the member
        learned from), "tested" (rows that weigh the members), "folds" (of these rows; 0 where the
        member is judged out of bag), "completed" (what stands for a missing entry inside the
        member; empty where it reads the entry as missing): it prints as a table, and
        `report_.to_frame()` is a frame. Where `time_limit` cost something, "shortened" says what,
        and members that were left out have a row. Of more than 20,000 rows members of a weight
        below .02 are dropped, and have a row of weight 0.
    out_of_fold_ : ndarray of shape (n,) or (n, targets)
        Predictions of the training rows by members that had not seen them; NaN where the target is
        unknown, of rows that `cv` never tests, and of more than 20,000 rows in all but the held-out
        parts.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        Infinite numbers, no known target, members that are none of these, weights that are negative
        or all zero, text that reads in two ways, a frame without any column of `fit` or with two of
        one name.

    Warns
    -----
    UserWarning
        A column names groups of like rows, or neighbouring rows are alike, and neither `groups` nor
        a splitter says so (from 100 rows on); `time_limit` has shortened members; a member fails
        and is left out, or one that was named has nothing to learn from; rows to predict lack other
        entries than the training rows did (compared where there are 50 rows or more of both: shares
        missing, columns missing together, and observed values where others are missing); a column
        of text that tells nothing of the target is left out; words in a column of numbers or dates
        are missing, and categories that `fit` never saw; a frame lacks columns, or has others.

    See Also
    --------
    LacunarClassifier : The same for labels.
    lacunar.uncertainty.MaskConformalRegressor : Intervals around any regressor.
    lacunar.lowrank.SLRMRegressor : The low-rank Gaussian alone, with standard deviations.

    Notes
    -----
    Members are kernel machines over observed entries, a low-rank Gaussian with ridge regression,
    gradient boosting, extremely randomised trees and ridge regression on values and missing
    flags.
    Trees and KARMA's kernels read a missing entry as missing; ridge regression
    reads the mean of its column beside a flag, and the Gaussian and radial kernels read rows that
    are completed by a model of the training rows, which sees no target, or by column means, mostly
    beside flags. A column that more than 99 of 100 training rows show is completed for all members
    where a row lacks it.

    `members`: "auto" is all of them that the table allows. Of more than 20,000 rows it is
    "linear" and "boosting", and "kernels" where the latent coordinates of the low-rank model
    help boosting to predict; the others take part there if they are named.

    `cv`: a number of folds, three or below 400 rows five where it is None, of whole groups where
    `fit` is told of `groups`; GroupKFold, StratifiedGroupKFold or LeaveOneGroupOut; TimeSeriesSplit
    for rows in the order of time, which are then judged by earlier rows alone; or pairs (rows to
    train on, rows to test on). All members share it. No row may be tested twice, and some may never
    be. Of more than 20,000 rows a number or None stands for held-out parts of a tenth of the rows,
    20,000 at most, on which members are weighed. Boosting is the mean of three models of up to
    45,000 other rows each, of more than 90,000 rows of two models of a half each: together they
    learn from every row. Kernels of at most 3,000 independent rows are tested on some 24 parts of
    these folds.

    `time_limit`: members share the seconds, and a share that is too short for all of a member pays
    for fewer trees, iterations, landmarks or rows; a member for which nothing is left is left out,
    but one is always trained. A warning and `report_` say what was shortened. A limit half again as
    long as members take at most on a core of today, by the size of the table, limits nothing:
    answers are those without one, and a slower or busy machine may exceed it.
    `memory_limit`: of more rows than fit members learn from a sample, and a warning says of how
    many.

    Weights w >= 0 of M members minimise, in units of the best member's, the sum of squared
    errors out of fold + (1 + 1600/n) M |w - w0|^2 + 50 (sum of w - 1)^2. A member whose mean
    error is z standard errors above the least one has w0 proportional to exp(-z^2 / 8): equal
    weights where the rows do not tell members apart, and next to none where they speak against
    one. Rows whose target or residual is beyond six standard deviations count less, so that
    none decides alone. All members but trees read a column that is skewed or has long tails as
    it is and as normal scores, cut at 8 or 30 standard deviations, so that a gross error does
    little harm; where ridge regression shows, out of fold, that targets go on straight beyond a
    third of the farthest number of a column, at three times the farthest. Kernels: Hazan, Livni and
    Mansour, ICML 2015; Gaussian: the latent model of Ganti and Willett, 2015, by EM. Rows whose
    target is missing (NaN) teach the low-rank Gaussian. O(n^2 d) up to 2,000 rows, O(n (1500 + d)
    d) to 20,000. Of more rows boosting learns from all (700 trees a model at most, until 100 of
    them gain nothing on a held-out part), ridge regression from as many as have 1e7 inputs, the
    kernels from 10,000; where latent coordinates help boosting they are columns of it, and they and
    their products inputs of ridge regression. Columns and the low-rank model are learned from
    40,000 rows at most, means of the target by category from all.

    Boosting of fewer than 5,000 rows, 100 columns at most and one output compares small, usual and
    symmetric trees by the rows held out. All nodes of a level of a symmetric tree share a split, so
    that rules of several columns are found of which no column tells alone.

    Predictions of a row with a category that `fit` never saw are means over the categories that it
    saw (32 of them where there are more), each counted once. Of a column with more than 40
    categories the mean of the target by category may stand for the category: from rows of other
    folds, shrunk as random effects are. Trees may have means by pair, or by three, of categories
    whose levels together tell more than each alone. Of text with as many different values truncated
    singular vectors of the TF-IDF of character n-grams may be columns. Each is taken where a ridge
    regression on it tells something of what boosting leaves out of fold.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import LacunarRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=200)
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> model = LacunarRegressor(members=["gaussian", "kernels"]).fit(X[:150], y[:150])
    >>> bool(model.score(X[150:], y[150:]) > 0.7)
    True
    """

    _of_labels = False
    _schema: ClassVar[dict[str, Rule]] = {
        **LacunarBase._schema,
        "ensembles_": Items(Instance(Ensemble), length="groups"),
        "targets_": Items(Array("i", ("in_group",), low=0), length="groups", alike=False),
        "target_variance_": Items(Optional(Instance(TargetVariance)), length="groups"),
        "deviations_": Items(Optional(Items(Instance(ExtraMissingVariance))), length="groups"),
        "kept_": Items(Optional(Instance(KeptRows)), length="groups"),
        "target_mean_": floats("q"),
        "target_scale_": floats("q", low=np.finfo(np.float64).tiny),
        "least_target_": floats("q"),
        "flat_": Flag(),
        "out_of_fold_": Instance(np.ndarray),
    }

    def __init__(
        self,
        *,
        members: str | Sequence[str] = "auto",
        cv: Any = None,
        time_limit: float | None = None,
        memory_limit: float | None = None,
        sparse_missing: SparseMissing = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.members = members
        self.cv = cv
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Train the members and their weights.

        Parameters
        ----------
        X : frame (pandas, polars, Arrow), array with NaN, sparse matrix or Observed, shape (n, d)
            Numbers, booleans, categories, text and dates; missing entries are NaN, None or NA.
        y : array-like of shape (n,) or (n, targets)
            Numbers; NaN, None or NA where unknown, of which a warning says how many there are.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows.
        groups : array-like of shape (n,), default=None
            To which person, place or batch a row belongs, as numbers or text: folds are of whole
            groups, so that scores, weights, probabilities and intervals are those of rows of new
            groups. `cv` may be a splitter that reads them, such as GroupKFold.

        Returns
        -------
        self : LacunarRegressor
        """
        deadline = self._deadline()
        require_y(self, y, "Pass one number a row.")
        table = Table.of(X)
        numbers = read_target(y, y_numeric=True, multi_output=True, unknown="some", allow_tiny=True).values
        y_checked = flat_target(numbers)
        check_consistent_length(table.X, y_checked)
        self.flat_ = y_checked.ndim == 1
        Y = y_checked.reshape(len(y_checked), -1)
        weight = self._weight(sample_weight, len(Y))
        warn_if_unlabelled(~np.isnan(Y))
        refuse_uncounted(~np.isnan(Y), weight)
        counted = np.ones(len(Y), dtype=bool) if weight is None else weight > 0
        self.target_mean_, self.target_scale_ = _scales(Y[counted], None if weight is None else weight[counted])
        self.least_target_ = np.min(Y[counted], axis=0, where=~np.isnan(Y[counted]), initial=np.inf)
        table = table._replace(counted=np.flatnonzero(counted))
        scaled = (Y - self.target_mean_) / self.target_scale_
        known = np.flatnonzero(~np.isnan(scaled).all(axis=1) & counted)
        of_known = None if weight is None else weight[known] / weight[known].mean()
        view, table = self._fit_table(
            table, weight, known, Target(None, scaled[known], 0, of_known, read_groups(groups, len(Y), known))
        )
        self.ensembles_: list[Ensemble] = []
        self.target_variance_: list[TargetVariance | None] = []
        self.deviations_: list[list[ExtraMissingVariance] | None] = []
        self.kept_: list[KeptRows | None] = []
        self.targets_: list[Ints] = []
        self.out_of_fold_ = np.full(Y.shape, np.nan)
        patterns = _groups(~np.isnan(scaled) & counted[:, None])
        for n_left, (targets, rows) in zip(range(len(patterns), 0, -1), patterns, strict=True):
            time = max(deadline - perf_counter(), 0.0)
            until = deadline if np.isinf(deadline) else deadline - time * (n_left - 1) / n_left
            of_rows = None if weight is None else weight[rows] / weight[rows].mean()
            target = Target(None, scaled[np.ix_(rows, targets)], 0, of_rows, read_groups(groups, len(Y), rows))
            learned = self._trained(table, view, rows, target, until, 1 / len(patterns))
            ensemble, values, judged, tested = learned[:4]
            self.ensembles_.append(ensemble)
            self._fit_deviations(learned)
            if n_left == len(patterns):
                self._warn_of_dependence(table, rows[tested], judged, judged.Y - values)
            self.targets_.append(targets)
            self.out_of_fold_[np.ix_(rows[tested], targets)] = (
                values * self.target_scale_[targets] + self.target_mean_[targets]
            )
        if self.flat_:
            self.out_of_fold_ = self.out_of_fold_[:, 0]
        return self

    def _fit_deviations(self, learned: Learned) -> None:
        """Standard deviations of the targets of one group, from residuals out of fold, and how much more rows need that lack more."""
        training, target_variance, values = learned.after, learned.target_variance, learned.values[learned.rows_after]
        residuals = training.Y - values
        self.target_variance_.append(target_variance)
        self.kept_.append(learned.kept)
        if training.n < _FEWEST_RESIDUALS:
            self.deviations_.append(None)
            return
        rows = self._lacking(training.as_came, values, target_variance)
        view, copied, predicted = self._copies(training, learned.ensemble, values)
        errors = training.Y[copied] - predicted
        copies = self._lacking(view, predicted, target_variance)
        cut = training.tested_by if len(rows) * view.T.shape[1] <= MOST_BY_COLUMNS else None
        self.deviations_.append(
            [
                ExtraMissingVariance().fit(row, residual, cut, copy, copied, error)
                for row, residual, copy, error in zip(rows, residuals.T, copies, errors.T, strict=True)
            ]
        )

    def _parts(self) -> list[Part]:
        parts = zip(self.ensembles_, self.target_variance_, self.kept_, strict=True)
        return [
            Part(self.posterior_, ensemble, target_variance, kept)
            for ensemble, target_variance, kept in parts
            if self.posterior_ is not None and target_variance is not None and kept is not None
        ]

    def _value_intervals(self, kept: KeptRows) -> list[MaskConformalRegressor]:
        """Intervals of every target that rest on values alone, for batches whose masks tell something else than those of training.

        None where training rows lack next to nothing, are in groups or in time order, or are too few for the comparison, and of wide tables and many targets.
        """
        Z, Y = self.views_.shown(kept.T).Z, kept.target_
        fits = len(Z) >= FEWEST_ROWS and Z.shape[1] <= _MOST_COLUMNS and Y.shape[1] <= _MOST_TARGETS
        if not fits or not kept.independent_ or np.isnan(Z).mean() < _LEAST_MISSING:
            return []
        rows = evenly(len(Z), _MOST_ROWS)
        conformal = MaskConformalRegressor(cv=_FOLDS_BY_VALUE, lower_bound=None, random_state=self.seed_)
        return [clone(conformal).fit(Z[rows], on_grid(y[rows])) for y in Y.T]

    def _lacking(self, view: View, values: Floats, target_variance: TargetVariance | None) -> list[Lacking]:
        """Of every target what the rows lack as they came, and its predictions, (m, q) in `values`."""
        always_seen, variances = self._lacked(view, target_variance, values.shape[1])
        pairs = zip(variances.T, values.T, strict=True)
        return [Lacking(view.T, always_seen, variance, value) for variance, value in pairs]

    def _unit_of_values(self) -> float:
        return float(self.target_scale_[0] ** 2) if len(self.target_scale_) == 1 else 1.0 / len(self.target_scale_)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted numbers.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (m, d)
        return_std : bool, default=False
            Whether standard deviations come too: of the target around its prediction, given what
            the row has and lacks.

        Returns
        -------
        values : ndarray of shape (m,) or (m, targets)
        std : ndarray of the same shape
            Only with `return_std`.
        """
        if not return_std:
            check_is_fitted(self)
            return self._shaped(self._in_batches(X, self._values))
        values, std = np.moveaxis(self._spread(X, lambda spread: spread.std()), -1, 0)
        return values, std

    def predict_interval(
        self, X: Any, level: float | Sequence[float] = 0.9, *, lower_bound: LowerBound = "auto"
    ) -> Floats:
        """Intervals that hold for what a row lacks: of rows that lack about as many entries a share
        of `level` is inside.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (m, d)
        level : float or sequence of floats, default=0.9
            Coverage asked for, between 0 and 1.
        lower_bound : float, "auto", "observed" or None, default="auto"
            Below which no end lies: a number, the smallest target of training, or with "auto" 0
            where no target of training is below 0, as of prices and counts; a lower end then is
            below 0 only to hold a prediction that is. None is no bound: pass it where targets below
            0 are still to come.

        Returns
        -------
        intervals : ndarray of shape (m, [targets], [levels], 2)
            Several targets and a sequence of levels have a dimension. Lower and upper ends, both as
            far from the prediction but for the bound; infinite where training rows are too few for
            the level.

        Notes
        -----
        Prediction plus and minus a quantile of |residual| / std out of fold times std, among
        training rows that lack about as many entries (cross-conformal, Vovk 2015). Of 100 rows or
        more std also depends on what the entries are, where that makes better intervals out of
        fold, as where noise grows by a column. Rows that lack more, or other columns, than nearly
        all training rows have wider ones, by the residuals of copies of training rows with further
        entries hidden, at random and by their own values. Where 50 rows or more come whose observed
        values are not those of training, beyond chance, what masks told the members may no longer
        hold, as when training entries were missing by their own values; neither does it for a row
        that lacks or has two columns together as next to no training row did, as where those lacked
        blocks of columns. Ends then are means of these and of those of
        `lacunar.uncertainty.MaskConformalRegressor`, which rest on values alone: the middle is
        another than the prediction. Where the middles of the batch are off the
        mean of the training targets, beyond chance, rows with gaps reach as much farther to that
        side. All this is measured, not guaranteed;
        `lacunar.uncertainty.MaskConformalRegressor(method="cv+")` has a guarantee for rows like
        those of training.
        """
        levels = check_levels(level)
        intervals = self._spread(
            X, lambda spread: spread.intervals(levels), lower_bound, sides=np.array([-1, 1]), are_intervals=True
        )
        warn_of_infinite(intervals, levels, self._fewest_scores(), two_tails=True)
        return intervals

    def predict_quantiles(
        self, X: Any, level: float | Sequence[float] = (0.1, 0.5, 0.9), *, lower_bound: LowerBound = "auto"
    ) -> Floats:
        """Quantiles of the target that hold for what a row lacks: of rows that lack about as many
        entries a share of `level` is below.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (m, d)
        level : float or sequence of floats, default=(0.1, 0.5, 0.9)
            Shares of the target that are to be below, between 0 and 1.
        lower_bound : float, "auto", "observed" or None, default="auto"
            Below which no quantile lies: see `predict_interval`.

        Returns
        -------
        quantiles : ndarray of shape (m, [targets], [levels])
            Several targets and a sequence of levels have a dimension. None is below that of a
            smaller level; infinite where training rows are too few for the level.

        Notes
        -----
        Prediction plus a quantile of residual / std out of fold times std: the residuals of
        `predict_interval` with their signs. Those of .05 and .95 are about the ends of the interval
        of level .9 where residuals are symmetric, and follow a skewed target where they are not.
        """
        levels = check_levels(level)
        quantiles = self._spread(X, lambda spread: spread.quantiles(levels), lower_bound, sides=levels - 0.5)
        warn_of_infinite(quantiles, levels, self._fewest_scores(), two_tails=False)
        return quantiles

    def _fewest_scores(self) -> int:
        """Training rows with a residual out of fold, of the target that has fewest."""
        return min(len(target.scores_.scores_) for targets in self.deviations_ for target in targets or [])

    def _spread(
        self,
        X: Any,
        answer: Callable[[Any], Floats],
        lower_bound: LowerBound = None,
        *,
        sides: Any = None,
        are_intervals: bool = False,
    ) -> Floats:
        """What `answer` says of the spread of every target, (m, ...) or (m, targets, ...), nothing below the bound.

        With `sides`, negative for ends below the middle and positive for those above, half of it may rest on values alone
        where observed values are no longer those of training, and of rows whose masks are not.
        """
        check_is_fitted(self)
        if None in self.deviations_:
            raise ValueError(
                f"standard deviations, intervals and quantiles need at least {_FEWEST_RESIDUALS} rows with a known target; fit had fewer. Give more."
            )
        least, changed, offsets = lowest_ends(lower_bound, self.least_target_), False, np.zeros(0)

        def answers(view: View) -> Floats:
            nonlocal changed, offsets
            T, spreads = self.views_.comparable(view.T), self._spreads(view)
            compared = sides is not None and len(T) >= FEWEST_ROWS  # the last few rows of many are as those before
            if compared:
                changed = self.masks_.values_changed(T)
            ends = np.stack([answer(one) for one in spreads], axis=1)
            one_each = (-1,) + (1,) * (ends.ndim - 2)
            unseen = self.masks_.has_unseen_pair(T) if sides is not None else np.zeros(len(T), dtype=bool)
            rows = np.flatnonzero(changed | unseen)
            by_value = self._value_spreads(view.take(rows)) if len(rows) else []
            if by_value:
                ends[rows] = (ends[rows] + np.stack([answer(one) for one in by_value], axis=1)) / 2
            if by_value and changed:
                middles = [(one.values + value.values) / 2 for one, value in zip(spreads, by_value, strict=True)]
                offsets = self._offsets(np.column_stack(middles)) if compared else offsets
                gaps, away = np.isnan(view.T).any(axis=1), offsets.reshape(one_each)
                ends[gaps] += np.where(sides * away > 0, away, 0.0)
            ends = np.maximum(ends, least.reshape(one_each))
            if are_intervals and lower_bound == "auto":
                hold_predictions(ends, np.column_stack([one.values for one in spreads]), least)
            return ends

        return self._shaped(self._in_batches(X, answers))

    def _offsets(self, middles: Floats) -> Floats:
        """How far the middles (m, targets) of a batch are from the training targets, in the mean and beyond chance (targets,).

        Where large values are missing that are expected to be as others are, middles are off to one side.
        """
        away = self.target_mean_ - middles.mean(axis=0)
        chance = np.sqrt(middles.var(axis=0) / len(middles) + self.target_scale_**2 / self.masks_.n_)
        return np.asarray(np.sign(away) * np.maximum(np.abs(away) - _SURE * chance, 0.0))

    def _value_spreads(self, view: View) -> list[Any]:
        """The same by value, where every group of targets has intervals by value; else none."""
        spreads: dict[int, ValueSpread] = {}
        for kept, targets in zip(self.kept_, self.targets_, strict=True):
            conformals = kept.answer("intervals by value", partial(self._value_intervals, kept)) if kept else []
            for conformal, target in zip(conformals, targets, strict=False):
                spreads[target] = ValueSpread(conformal, view.Z, self.target_mean_[target], self.target_scale_[target])
        whole = len(spreads) == len(self.target_mean_)
        return [spreads[target] for target in sorted(spreads)] if whole else []

    def _spreads(self, view: View) -> list[Spread]:
        """Of every target how far it may be from its predictions of rows as they came."""
        spreads: dict[int, Spread] = {}
        for ensemble, deviations, target_variance, targets in zip(
            self.ensembles_, self.deviations_, self.target_variance_, self.targets_, strict=True
        ):
            assert deviations is not None
            predicted = self._predicted(ensemble, view)
            rows = self._lacking(view, predicted, target_variance)
            for row, deviation, target in zip(rows, deviations, targets, strict=True):
                spreads[target] = Spread(row, deviation, self.target_mean_[target], self.target_scale_[target])
        return [spreads[target] for target in sorted(spreads)]

    def _shaped(self, values: Floats) -> Floats:
        return values[:, 0] if self.flat_ else values

    def _values(self, view: View) -> Floats:
        """Predictions (m, targets) of rows as they came."""
        values = np.empty((len(view.Z), len(self.target_mean_)))
        for ensemble, targets in zip(self.ensembles_, self.targets_, strict=True):
            values[:, targets] = self._predicted(ensemble, view)
        return values * self.target_scale_ + self.target_mean_

    def _explained(self, view: View) -> Floats:
        """Predictions (m, targets)."""
        return self._values(view)

    def _explained_names(self) -> tuple[list[str] | None, bool]:
        return None if self.flat_ else named_outputs(None, len(self.target_mean_)), self.flat_

    def _loss(self, y: Any) -> Callable[[View], float]:
        target = read_target(y, y_numeric=True, multi_output=True).values.reshape(-1, len(self.target_mean_))
        return lambda view: float((((self._values(view) - target) / self.target_scale_) ** 2).mean())

    def _try(self, view: View) -> None:
        targets = np.sort(np.concatenate(self.targets_))
        if not np.array_equal(targets, np.arange(len(self.target_mean_))):
            raise ValueError(f"groups of targets hold {targets}, not every one of {len(self.target_mean_)} once")
        self._values(view)
        if None not in self.deviations_:
            for spread in self._spreads(view):
                spread.end(0.5, "both", 1)

    @property
    def members_(self) -> list[str]:
        """Members that were trained."""
        return list(self.ensembles_[0].names_)

    @property
    def weights_(self) -> Floats | list[Floats]:
        """Of the members in the sum."""
        weights = [ensemble.weights() for ensemble in self.ensembles_]
        return weights[0] if len(weights) == 1 else weights

    @property
    def report_(self) -> ColumnTable:
        """Members and what is said of them, as columns; with the number of the group of targets
        where there are several.
        """
        return report(self.ensembles_)


def _scales(Y: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the known targets, per column."""
    known = ~np.isnan(Y)
    weights = known * (np.ones(len(Y)) if weight is None else weight)[:, None]
    total = np.maximum(weights.sum(axis=0), 1e-300)
    # In units of a power of two, which changes no digit: squares of small numbers vanish.
    exponent = np.frexp(np.abs(Y).max(axis=0, initial=0.0, where=known))[1]
    Y = np.ldexp(np.where(known, Y, 0.0), -exponent)
    mean = (Y * weights).sum(axis=0) / total
    deviation = np.sqrt((np.where(known, Y - mean, 0.0) ** 2 * weights).sum(axis=0) / total)
    scale = np.ldexp(deviation, exponent)
    varies = (deviation > 1e-12 * np.maximum(np.abs(mean), 1e-280)) & (scale >= np.finfo(np.float64).tiny)
    return np.ldexp(mean, exponent), np.where(varies, scale, 1.0)


def _groups(known: NDArray[np.bool_]) -> list[tuple[Ints, Ints]]:
    """Targets that are known in the same rows, and those rows."""
    patterns, group = np.unique(known, axis=1, return_inverse=True)
    return [(np.flatnonzero(group.ravel() == k), np.flatnonzero(patterns[:, k])) for k in range(patterns.shape[1])]
