"""Base of the classifier and the regressor: views of the table, posterior, folds, time limit, and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from numbers import Integral, Real
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted

from lacunar._answers import ColumnTable, NamedArray
from lacunar._cuts import Cut, cuts_among, cuts_of, tested_rows
from lacunar._log import say, warn_user
from lacunar._random import fixed_seed, generator
from lacunar._threads import one_blas_thread, thread_count
from lacunar._typing import Floats, Ints
from lacunar.encode import Remarks
from lacunar.karma.base import row_weights
from lacunar.karma.selection import TICK
from lacunar.learner.added import LearnedFrom
from lacunar.learner.dependence import FEWEST_ROWS as FEWEST_DEPENDENT
from lacunar.learner.dependence import MOST_ROWS_LOOKED_AT, grouping_column, neighbours_are_alike
from lacunar.learner.ensemble import PILOT_ROWS, Ensemble
from lacunar.learner.explain import Explains
from lacunar.learner.folds import even_folds, large_cuts, repeats, units_in, units_of
from lacunar.learner.importance import ChangeableView, permutation_importance
from lacunar.learner.kept import KeptRows
from lacunar.learner.masks import FEWEST_ROWS, MOST_ROWS_COMPARED, MaskComparison
from lacunar.learner.members import MEMBERS, ROWS_OF_KERNELS, GaussianMember, members_of
from lacunar.learner.targets import TargetVariance
from lacunar.learner.trees import worth_reading
from lacunar.learner.views import Reads, TableViews, TrainingSet, View, drawn, with_texts
from lacunar.lowrank.gaussian import check_prices
from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.observed import Observed
from lacunar.observed.cells import cut
from lacunar.observed.contract import check_stored, refuse_sparse_format
from lacunar.observed.door import SparseMissing, TakesMissing, as_array, refuse_file, unmasked
from lacunar.observed.names import absent_columns, columns_by_name
from lacunar.observed.rules import Array, Instance, Number, Optional, Rule
from lacunar.uncertainty.shift import evenly, further_hidden

_ALWAYS_SEEN = 0.01  # share missing in training, below which a column is completed where it is missing
MOST_FOLDED = 20_000  # rows; of more a few parts are held out
_VIEWED = 40_000  # rows from which columns and the low-rank model are learned
# Training rows that are copied, copies with further entries hidden, and copies of a row.
_MOST_COPIED, _COPIES, _MOST_TIMES = 1000, 1000, 10
_BYTES_A_ROW, _BYTES_AN_ENTRY, _FEWEST_SAMPLED = 16_000, 120, 1_000  # of a row that is folded
_FEW_COPIES = 0.01  # of the rows, which may repeat others and yet be judged as independent
_LARGE_BYTES_AN_ENTRY = (
    60  # of a row of a large table: its views, and what boosting and the linear members make of them
)
_FOLDS, _FOLDS_OF_FEW, _FEW_ROWS = 3, 5, 400
_EM_ROWS, _EM_ROWS_A_SECOND = 4_000, 150
BATCH = 20_000  # rows seen at once
_EM_SHARE, _EM_STEPS, _EM_RANK = 0.1, (8, 36), 40  # of a time limit, for the low-rank model
_EM_SECONDS = 2e-10  # of a step, for a row, a column and the square of the rank, roughly
_AFTER_SHARE = 0.08  # of a time limit, for what rows leave open
_MEMBERS_SHARE = 0.9  # of a time limit, when members must have ended
_AMPLE = 1.5  # times the seconds that members take at most, roughly, from which a time limit limits nothing
# Copies of training rows settle the order in which entries are measured.
_FEWEST_SETTLED, _SETTLED, _SETTLED_ENTRIES, _MOST_TIMES_SETTLED = 50, 300, 60_000, 3
_SETTLED_TERMS = 3_000_000  # of entries for every pair of classes
_HIDDEN_SHARE, _SETTLING_STEPS = 0.75, 3


class Table(NamedTuple):
    """A table of any kind, from which rows can be taken; rows of weight 0 are in it, and do not count."""

    X: Any
    n: int
    counted: Ints  # rows of a weight above 0, in ascending order
    # (n, means) of the target by level and by pair of levels, of a large table, in which a row's own target has no part
    means: Floats | None = None

    @classmethod
    def of(cls, X: Any) -> Table:
        """Sparse matrices by rows; what is no table goes on to the encoder, which says so."""
        refuse_file(X)
        if sp.issparse(X):
            refuse_sparse_format(X)
            X = check_stored(X).tocsr()
        X = unmasked(X)
        if not (hasattr(X, "shape") or hasattr(X, "columns")):
            array = as_array(X)
            X = np.asarray(X, dtype=object) if array.dtype.kind in "US" else array  # numbers beside text stay numbers
        return cls(X, _num_samples(X), np.arange(_num_samples(X)))

    @property
    def columns(self) -> int:
        """Roughly, for what is no table is refused by the encoder."""
        return int((*getattr(self.X, "shape", ()), 1, 1)[1])

    def take(self, rows: Ints) -> Any:
        if len(rows) == self.n and np.array_equal(rows, np.arange(self.n)):
            return self.X
        return self.X[rows] if isinstance(self.X, Observed) else _safe_indexing(self.X, rows)


class Target(NamedTuple):
    """The target of some rows, and their weights."""

    labels: Ints | None  # numbers of classes; None for regression
    Y: Floats  # (n, q)
    n_classes: int
    weight: Floats | None  # mean 1
    groups: Ints | None = None  # numbers of the groups that rows belong to

    def take(self, places: Ints) -> Target:
        labels = None if self.labels is None else self.labels[places]
        weight = None if self.weight is None else self.weight[places] / self.weight[places].mean()
        groups = None if self.groups is None else self.groups[places]
        return Target(labels, self.Y[places], self.n_classes, weight, groups)


class Part(NamedTuple):
    """What was learned of a group of targets, where there is a low-rank model."""

    posterior: LowRankPosterior
    ensemble: Ensemble
    target_variance: TargetVariance
    kept: KeptRows


class Learned(NamedTuple):
    """An ensemble, and what is learned of the rows that weighed it."""

    ensemble: Ensemble
    values: Floats  # of the tested rows
    judged: TrainingSet  # the tested rows
    tested: Ints  # their places among the rows with a target
    after: TrainingSet  # those of them from which is learned what rows leave open
    rows_after: Ints  # and their places
    target_variance: TargetVariance | None  # of these
    kept: KeptRows | None


class LacunarBase(Explains, TakesMissing):
    """Base of both learners: encodes the table, folds it, trains members, pools them."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "members": [StrOptions({"auto"}), list, tuple],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split"]), Iterable, None],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), None],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _schema: ClassVar[dict[str, Rule]] = {
        "views_": Instance(TableViews),
        "posterior_": Optional(Instance(LowRankPosterior)),
        "always_seen_": Array("b", ("t",)),
        "masks_": Instance(MaskComparison),
        "seed_": Number(whole=True, low=0),
    }
    _of_labels: ClassVar[bool]  # whether the task is classification
    members: str | Sequence[str]
    cv: Any
    time_limit: float | None
    memory_limit: float | None
    sparse_missing: SparseMissing
    random_state: Any
    n_jobs: int | None
    verbose: bool | int

    # -- the table ------------------------------------------------------------------------------------------------------

    def _fit_table(self, table: Table, weight: Floats | None, rows: Ints, target: Target) -> tuple[View | None, Table]:
        """Learn the columns and the posterior, from a sample of a large table; all rows as the members see them, None of a large table, which gets means.

        `target` is that of some rows, by which columns of text are judged.
        """
        self._names()  # a name that is wrong is refused before any work is done
        thread_count(self.n_jobs)  # refuses what is no number of threads before anything is learned
        # Drawn once: a RandomState moves on.
        self.seed_ = int(generator(fixed_seed(self.random_state)).integers(2**31 - 1))
        most = min(self._most_rows(table.columns), _VIEWED)
        part = table.counted[self._part(None, len(table.counted), most)]
        self.views_ = TableViews(sparse_missing=self.sparse_missing)
        view = self.views_.fit_transform(
            table.take(part), lambda shown: self._learned_from(part, table, shown, rows, target)
        )
        self.n_features_in_ = self.views_.encoder_.n_features_in_
        names = getattr(self.views_.encoder_, "feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        for column, what in self.views_.what_is_added():
            say(self.verbose, "column %s: %s", self._table_names()[column], what)
        self.always_seen_ = np.isnan(view.T).mean(axis=0) < _ALWAYS_SEEN
        self.masks_ = MaskComparison().fit(view.T[:, self.views_.of_one_], self.seed_)
        self.posterior_ = self._posterior(view.Z, None if weight is None else weight[part])
        self._warn_of_no_posterior()
        if len(part) == len(table.counted):
            return view.among(part, table.n), table
        return None, table._replace(means=self._learned_means(table, rows, target))

    def _learned_means(self, table: Table, rows: Ints, target: Target) -> Floats | None:
        """Learn means of the target by level from all rows with a target; for every row those of other folds."""
        if not self.views_.added_.has_means:
            return None
        encoded = self.views_.encoded(table.take(rows[k : k + BATCH]) for k in range(0, len(rows), BATCH))
        shown = with_texts(View(encoded.table, encoded.table), encoded.texts).T
        cuts = self._cuts_of_part(rows, table, shown, target)
        weight = np.ones(len(rows)) if target.weight is None else target.weight
        own = self.views_.added_.learn(encoded, target.Y, weight, cuts)
        means = np.full((table.n, own.shape[1]), np.nan)
        means[rows] = own
        return means

    def _learned_from(self, part: Ints, table: Table, view: View, rows: Ints, target: Target) -> LearnedFrom:
        """Targets and folds of a part of the table, which the view shows, where `rows` of the table have a target."""
        place = np.full(table.n, -1)
        place[part] = np.arange(len(part))
        among = np.flatnonzero(place[rows] >= 0)
        places, of_part = place[rows[among]], target.take(among)
        cuts = self._cuts_of_part(rows[among], table, view.take(places).T, of_part) if len(among) else []
        Y, weight = np.full((len(part), target.Y.shape[1]), np.nan), np.ones(len(part))
        groups = None if of_part.groups is None else np.full(len(part), -1)
        Y[places] = of_part.Y
        if of_part.weight is not None:
            weight[places] = of_part.weight
        if groups is not None and of_part.groups is not None:
            groups[places] = of_part.groups
        in_part = [(places[train], places[test]) for train, test in cuts]
        return LearnedFrom(Y, weight, in_part, self.seed_, groups, numbers=not self._of_labels)

    def _cuts_of_part(self, rows: Ints, table: Table, T: Floats, target: Target) -> list[Cut]:
        """Cuts of some rows by which columns of text are judged, and means by level learned: those of the members, but of many rows a few folds."""
        units = units_of(T) if target.groups is None else units_in(target.groups)
        if len(rows) > MOST_FOLDED and (self.cv is None or isinstance(self.cv, Integral)):
            return cuts_of(even_folds(target.labels, units, _FOLDS, self.seed_), len(rows))
        return self._cuts(rows, table, units, target)[0]

    def _posterior(self, Z: Floats, weight: Floats | None) -> LowRankPosterior | None:
        if Z.shape[1] < 2 or len(Z) < 4:
            return None
        started, (most, steps) = perf_counter(), self._em_budget(*Z.shape)
        try:
            posterior = LowRankPosterior(random_state=self.seed_, max_rows=most, max_iter=steps).fit(Z, weight=weight)
        except Exception as error:
            warn_user(
                f"the low-rank model could not be fitted and is left out: {type(error).__name__}: {error}",
            )
            return None
        what = "" if self.time_limit is None else f", {steps} steps on at most {most:,} rows"
        say(self.verbose, "low-rank model: %.1f s%s", perf_counter() - started, what)
        return posterior

    def _em_budget(self, n: int, p: int) -> tuple[int, int]:
        """Rows and steps of EM: fewer where time is short, by numbers and not by the clock, and the same for limits between two powers of two."""

        def step(rows: int) -> float:
            return _EM_SECONDS * min(rows, n) * p * min(p, _EM_RANK) ** 2

        if self.time_limit is None or _EM_SHARE * self.time_limit >= _EM_STEPS[1] * step(_EM_ROWS):
            return _EM_ROWS, _EM_STEPS[1]
        limit = 2.0 ** np.floor(np.log2(self.time_limit))
        most = int(np.clip(_EM_ROWS_A_SECOND * limit, 300, _EM_ROWS))
        return most, int(np.clip(_EM_SHARE * limit / step(most), *_EM_STEPS))

    def _with_always_seen(self, view: View) -> View:
        """Entries of columns that training always saw, completed where they are missing."""
        columns = self.always_seen_ & np.isnan(view.T).any(axis=0)
        if self.posterior_ is None or not columns.any():
            return view
        rows = np.flatnonzero(np.isnan(view.T[:, columns]).any(axis=1))
        lacking = view.take(rows)
        completed = self.views_.completed(lacking, self.posterior_.complete(lacking.Z), columns)
        Z, T = view.Z.copy(), view.T.copy()
        Z[rows], T[rows] = completed.Z, completed.T
        return View(Z, T)

    def _predicted(self, ensemble: Ensemble, view: View) -> Floats:
        """Predictions of an ensemble for rows; where a row has a level that training never had, the average over the
        levels that it had.
        """

        def predict(rows: View) -> Floats:
            return ensemble.predict(rows, self.posterior_, self.n_jobs)

        return self.views_.averaged(self._with_always_seen(view), predict, logs=self._of_labels)

    def _viewed(self, table: Table, rows: Ints, remarks: Remarks, *, completed: bool = False) -> View:
        """Some rows as members see them, made a batch at a time: in single precision where they are many, and completed as they are seen."""
        remarks.rows = rows[:BATCH]
        own = None if table.means is None else table.means[remarks.rows]
        view = self.views_.transform(table.take(remarks.rows), remarks, own=own)
        view = self._with_always_seen(view) if completed else view
        if len(rows) <= BATCH:
            return view
        T: Any = np.empty((len(rows), view.T.shape[1]), dtype=np.float32)
        Z = T  # one array as long as both hold the same: numbers of which none is clipped
        for first in range(0, len(rows), BATCH):
            part = rows[first : first + BATCH]
            if first:
                view = self._viewed(table, part, remarks, completed=completed)
            if Z is T and not np.array_equal(view.Z, view.T, equal_nan=True):
                Z = np.empty((len(rows), view.Z.shape[1]), dtype=np.float32)
                Z[:first, : T.shape[1]] = T[:first, : Z.shape[1]]
            T[first : first + len(part)] = view.T
            if Z is not T:
                Z[first : first + len(part)] = view.Z
        return View(Z, T)

    def _in_batches(self, X: Any, answer: Callable[[View], Floats]) -> Floats:
        """What `answer` says of all rows as they came, a batch at a time; a warning where they lack other entries than the training rows did."""
        table = Table.of(columns_by_name(self, X, reset=False))  # once: it may warn
        step = max(-(-table.n // MOST_ROWS_COMPARED), 1)
        answers, compared, remarks = [], [], Remarks()
        for first in range(0, max(table.n, 1), BATCH):
            batch = np.arange(first, min(first + BATCH, table.n))
            remarks.rows = batch
            view = self.views_.transform(table.X if table.n <= BATCH else table.take(batch), remarks, learner=self)
            compared.append(self.views_.comparable(view.T[-first % step :: step]))
            answers.append(answer(view))
        remarks.warn()
        absent = [str(name) for name in absent_columns(self, X)]  # which were warned of by name
        self._warn_of_masks(np.vstack(compared), absent)
        return np.vstack(answers)

    def _warn_of_masks(self, T: Floats, absent: Sequence[str]) -> None:
        differences = self.masks_.differences(T, self._column_names(), absent)
        if differences:
            warn_user(
                f"the rows to predict lack other entries than the training rows did, or hold other values, by a comparison of {len(T)} of them: {'; '.join(dict.fromkeys(differences))}. Where only "
                "observed values differ, the values themselves may have changed rather than which of them are missing. Predictions, probabilities and intervals "
                "were learned from rows whose entries are missing as they were in training, and may be far off: train on rows like these.",
                once_of=self.masks_,
            )

    def _column_names(self) -> list[str]:
        """For every column of a view's T that is made of one column of the table the name of that."""
        names = self._table_names()
        return [names[j] for j in self.views_.source_[self.views_.of_one_]]

    def _table_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return [str(name) for name in names]

    def importance(self, X: Any, y: Any, *, n_repeats: int = 5, random_state: Any = None) -> ColumnTable:
        """How much worse predictions get when a column's values, or which of them are missing, are
        those of other rows.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (m, d)
            Rows that the model has not seen say most.
        y : array-like of shape (m,) or (m, targets)
            Labels or numbers.
        n_repeats : int, default=5
            Permutations of every column.
        random_state : int, RandomState or None, default=None
            Draws them; None is seed 0.

        Returns
        -------
        table : dict of columns, which prints as a table and has `to_frame`
            "column"; "value" and "value_sd", mean and standard deviation of the rise of the loss
            when observed values are permuted among the rows that have one; "missing" and
            "missing_sd", the same when the column is missing in as many other rows, and filled by
            the low-rank model where it was missing. The loss of labels is the log loss, that of
            numbers the squared error in units of the targets' variance.
            `lacunar.plotting.ImportanceDisplay` draws it.

        Notes
        -----
        2 d n_repeats predictions of all rows. Columns that say the same share their importance
        (Breiman 2001, section 10).
        """
        check_is_fitted(self)
        loss, view = self._loss(y), self.views_.transform(X, learner=self)
        check_consistent_length(view.Z, y)
        complete = None if self.posterior_ is None else self.posterior_.complete
        table = ChangeableView(self.views_, view, complete)

        def losses(tables: Iterable[ChangeableView]) -> list[float]:
            return [loss(table.view) for table in tables]

        return ColumnTable(
            permutation_importance(self._table_names(), table, losses, n_repeats, generator(fixed_seed(random_state)))
        )

    def _loss(self, y: Any) -> Callable[[View], float]:
        """The mean loss of predictions from views, as they came, of the rows whose labels or numbers are y."""
        raise NotImplementedError

    def _fit_target_variance(self, training: TrainingSet) -> TargetVariance:
        """The variance of the targets given a row."""
        assert training.posterior is not None
        return TargetVariance().fit(training.posterior, training.view.Z, training.Y)

    def _parts(self) -> list[Part]:
        """What was learned of every group of targets."""
        raise NotImplementedError

    def _measuring(self, part: Part) -> TargetVariance:
        """What entries are worth is learned when it is first asked for."""
        view = self.views_.shown(part.kept.T)
        Z = self._with_always_seen(view).Z
        measuring = part.target_variance.with_joint(part.posterior, Z, part.kept.target_, self.seed_)
        self._settle_order(measuring, part.ensemble, view, part.kept.target_)
        return measuring

    def _settle_order(self, target_variance: TargetVariance, ensemble: Ensemble, view: View, target: Floats) -> None:
        """Let one order of the columns say what to measure where, by more than a standard error, it tells more of rows with entries hidden than the Gaussian's."""
        n_copies = _settled(view.Z.shape[1], ensemble.n_classes_)
        if len(view.T) < _FEWEST_SETTLED or not n_copies:
            return
        rng = generator(self.seed_)
        places = evenly(len(view.T), n_copies)
        places = np.tile(places, min(-(-n_copies // len(places)), _MOST_TIMES_SETTLED))
        view, target = view.take(places), target[places]
        hidden = (rng.random(view.T.shape) < _HIDDEN_SHARE) & ~np.isnan(view.T)
        losses = []
        for target_variance.one_order_ in (False, True):
            predicted = self._predicted(ensemble, self._measured(view, hidden, target_variance))
            if ensemble.n_classes_:
                losses.append(-predicted[np.arange(len(places)), target[:, 0].astype(np.intp)])
            else:
                losses.append(((predicted - target) ** 2).mean(axis=1))
        gain = losses[0] - losses[1]
        target_variance.one_order_ = bool(gain.mean() > gain.std() / np.sqrt(len(gain)))

    def _measured(self, view: View, hidden: NDArray[np.bool_], target_variance: TargetVariance) -> View:
        """The view with hidden entries of T, of which the most valuable ones are measured one after another."""
        assert self.posterior_ is not None
        hidden = hidden.copy()
        for _ in range(_SETTLING_STEPS):
            gains = target_variance.gains(self.posterior_, self.views_.with_hidden(view, hidden).Z)
            of_column = np.zeros(hidden.shape)
            for place, column in enumerate(self.views_.places_):
                of_column[:, column] = np.maximum(of_column[:, column], gains[:, place])
            hidden[np.arange(len(hidden)), np.where(hidden, of_column, -1.0).argmax(axis=1)] = False
        return self.views_.with_hidden(view, hidden)

    def _unit_of_values(self) -> float:
        """What `value_of_measuring` has for a variance of 1 of the targets that the members learn."""
        return 1.0

    def _copies(self, training: TrainingSet, ensemble: Ensemble, values: Floats) -> tuple[View, Ints, Floats]:
        """Copies of training rows with further entries hidden, which rows they copy, and what is predicted of them, as `values` are (copies, q).

        The ensemble has seen the rows. What it says of a copy, less the share of what it knows too well of the row itself by which the
        copy is still that row, is about what it would say without having seen it.
        """
        rng = generator(self.seed_)
        places = evenly(training.n, _MOST_COPIED)
        optimism = ensemble.predict(training.view.take(places), self.posterior_, self.n_jobs) - values[places]
        times = int(np.clip(_COPIES / len(places), 1, _MOST_TIMES))
        view, copied = training.as_came.take(places), np.tile(places, times)
        hidden = np.vstack([further_hidden(view.T, rng) for _ in range(times)])
        rows = training.as_came.take(copied)
        share_left = 1 - hidden.sum(axis=1) / np.maximum((~np.isnan(rows.T)).sum(axis=1), 1)
        copies = self.views_.with_hidden(rows, hidden)
        predicted = self._predicted(ensemble, copies)
        return copies, copied, predicted - share_left[:, None] * np.tile(optimism, (times, 1))

    def _lacked(self, view: View, target_variance: TargetVariance | None, q: int) -> tuple[Floats, Floats]:
        """What rows lack as they came: how many of columns that training always saw, and Var(target | row) (m, q)."""
        always_seen = np.isnan(view.T[:, self.always_seen_]).sum(axis=1).astype(np.float64)
        if target_variance is None or self.posterior_ is None:
            return always_seen, np.ones((len(view.Z), q))
        return always_seen, target_variance.variances(self.posterior_, view.Z)

    def value_of_measuring(self, X: Any, *, cost: Any = None) -> Floats:
        """What a missing entry is expected to tell about the target, if it were measured.

        Of numbers the fall of their variance, under a Gaussian of columns and target. Of labels the
        mutual information of class and entry, where the rows of every class are a Gaussian.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (m, d)
            Rows with entries to measure.
        cost : array-like of shape (d,), default=None
            Prices of the columns, above 0: values are divided by them.

        Returns
        -------
        value : ndarray of shape (m, d)
            Prints with the names of the columns, and has `to_frame`. 0 where the entry is known. Of
            numbers in squared units of y, or where there are several targets the mean of the shares
            of their variances, as `lowrank.GaussianRegressor` has it; of labels in nats, as
            `lacunar.uncertainty.value_of_measuring`.

        Notes
        -----
        Of numbers Cov(x_j, y | row)^2 / Var(x_j | row), of labels I(class; x_j | row), exact under
        the model; of a category the level that tells most. The model is of full Gaussians up to 100
        columns (a category counts a column a level), learned from 100,000 entries at most, and of
        low rank beyond; the first question learns it, and takes longer. Where training rows with
        entries hidden are predicted better after one order of the columns for all rows, the value
        is that of a row that shows nothing: Cov(x_j, y)^2 / Var(x_j), or I(class; x_j). Several
        entries at once, and averages over resampled rows:
        `lacunar.uncertainty.value_of_measuring`.
        """
        check_is_fitted(self)
        price = check_prices(cost, self.n_features_in_)
        view, of_column = self.views_.transform(X, learner=self), self.views_.source_[self.views_.places_]
        values = np.zeros((len(view.Z), self.n_features_in_))
        for part in self._parts():
            measuring = part.kept.answer("measuring", partial(self._measuring, part))
            gains, of_group = measuring.gains(part.posterior, view.Z), np.zeros_like(values)
            for place, column in enumerate(of_column):  # of the levels of a category the one that tells most
                of_group[:, column] = np.maximum(of_group[:, column], gains[:, place])
            values += of_group
        return NamedArray(values * self._unit_of_values() / price, self._table_names())

    # -- learning -------------------------------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        """Names of members to train, most worthwhile first."""
        of_task = members_of(labels=self._of_labels)
        if isinstance(self.members, str):
            return of_task
        unfit = [name for name in self.members if name not in of_task]
        if unfit or not len(self.members):
            raise ValueError(
                f"members of a {type(self).__name__} must be 'auto' or a list of some of {', '.join(of_task)}; got "
                f"{list(self.members)!r}. {f'Leave {unfit[0]!r} out' if unfit else 'Name at least one'}."
            )
        return [name for name in of_task if name in self.members]

    def _warn_of_no_posterior(self) -> None:
        """Say that a member that was asked for by name has nothing to learn from."""
        if self.posterior_ is None and GaussianMember.name in self.members and not isinstance(self.members, str):
            warn_user(
                "member 'gaussian' is left out: it needs the low-rank model, and that at least four rows and two columns of numbers or "
                "categories that vary. Name another member, or use members='auto'.",
            )

    def _weight(self, sample_weight: Any, n_rows: int) -> Floats | None:
        """Weights of the rows, None where all are equal."""
        return None if sample_weight is None else row_weights(sample_weight, np.empty((n_rows, 1)))

    def _cuts(self, rows: Ints, table: Table, units: Ints, target: Target) -> tuple[list[Cut], bool]:
        """Cuts of the kept rows, and whether those are independent; a splitter splits all rows of the table that count.

        Of a number of folds groups, or else copies of a row, share one, whose numbers are `units`; of many rows a few parts are held out.
        """
        if self.cv is None or isinstance(self.cv, Integral):
            wished = int(self.cv or (_FOLDS_OF_FEW if len(rows) < _FEW_ROWS else _FOLDS))
            splits = min(wished, len(rows), int(units.max(initial=-1)) + 1)
            if len(rows) > MOST_FOLDED:
                cuts = large_cuts(target.labels, units, self.seed_)
            else:
                cuts = cuts_of(even_folds(target.labels, units, splits, self.seed_), len(rows))
            return cuts, target.groups is None and repeats(units) <= _FEW_COPIES * len(rows)
        known = target.Y[:, 0] if target.labels is None else target.labels
        whole = np.zeros(table.n, dtype=known.dtype)
        whole[rows] = known
        groups = None
        if target.groups is not None:
            groups = np.zeros(table.n, dtype=np.intp)
            groups[rows] = target.groups
        # Splits that are given number all rows of the table.
        among = table.counted if hasattr(self.cv, "split") else np.arange(table.n)
        parts = self._splits(whole[among], None if groups is None else groups[among], labels=target.labels is not None)
        return self._checked_cuts([(among[train], among[test]) for train, test in parts], rows, table.n), False

    def _splits(self, y: NDArray[Any], groups: Ints | None, *, labels: bool) -> list[Cut]:
        """What a splitter makes of rows."""
        splitter = check_cv(self.cv, y, classifier=labels)
        try:
            splits = list(splitter.split(np.zeros((len(y), 1)), y, groups))
        except ValueError as error:
            if groups is None and "groups" in str(error):
                raise ValueError(
                    f"fit must be told the groups that {type(splitter).__name__} keeps together; got groups=None. Pass groups=, one for each row of X."
                ) from None
            raise
        return [(np.sort(train), np.sort(test)) for train, test in splits]

    def _checked_cuts(self, splits: list[Cut], rows: Ints, n: int) -> list[Cut]:
        """A splitter's parts of all n rows as cuts of the kept rows."""
        cuts = [(train, test) for train, test in cuts_among(splits, rows, n) if len(train)]
        times = np.bincount(np.concatenate([np.zeros(0, np.intp), *(test for _, test in cuts)]), minlength=len(rows))
        both = sum(len(np.intersect1d(train, test)) for train, test in cuts)
        if (times > 1).any() or both or not times.any():
            raise ValueError(
                f"cv must test rows, no row twice, and none that it trains on in the same split; of {len(rows)} rows with a target {type(self.cv).__name__} "
                f"tests {int((times > 0).sum())}, {int((times > 1).sum())} of them more than once, and {both} in a split that trains on them. Use a number of "
                "folds, KFold, StratifiedKFold, GroupKFold with fit(..., groups=...), or TimeSeriesSplit."
            )
        return cuts

    def _warn_of_dependence(self, table: Table, rows: Ints, judged: TrainingSet, residuals: Floats) -> None:
        """Say once that a column names groups, or that neighbours are alike, where the folds take rows as independent; of the tested `rows`."""
        if (
            not (self.cv is None or isinstance(self.cv, Integral))
            or judged.groups is not None
            or judged.n < FEWEST_DEPENDENT
        ):
            return
        name = self._grouping_column(table, rows, judged)
        if name is not None:
            warn_user(
                f"rows of one {cut(name)!r} are alike, in other columns and in what is to be predicted: scores, weights of members and intervals are those of new "
                f"rows of a {cut(name)!r} that training has seen. If rows to predict are of other ones, pass groups= to fit, such as that column, and leave the "
                "column out of X.",
            )
        elif neighbours_are_alike(residuals, judged.labels, judged.Y):
            warn_user(
                "errors out of fold of neighbouring rows are alike: rows seem to be in the order of time, or of groups, and scores, weights of members and intervals "
                "are those of new rows between them. If rows to predict are later ones, use cv=TimeSeriesSplit(5); if they are of other groups, pass groups= to fit.",
            )

    def _grouping_column(self, table: Table, rows: Ints, judged: TrainingSet) -> Any:
        """The name of a column that names groups; None where there is none, or the table is sparse."""
        if sp.issparse(table.X) or isinstance(table.X, Observed):
            return None
        rows = rows[:MOST_ROWS_LOOKED_AT]
        cells = self.views_.encoder_._columns(table.take(rows), reset=False)
        of_column, n = self.views_.source_[self.views_.places_], len(rows)
        columns = ((self._table_names()[j], column.values, of_column != j) for j, column in enumerate(cells))
        return grouping_column(columns, judged.as_came.Z[:n, : len(of_column)], judged.Y[:n])

    def _sample(self, rows: Ints, labels: Ints | None) -> Ints:
        """Places among `rows` of those that members learn from: all of them, or as many as the memory limit allows."""
        chosen = self._part(labels, len(rows), self._most_rows(self.n_features_in_))
        if len(chosen) < len(rows):
            warn_user(
                f"memory_limit={self.memory_limit:g} MiB lets members learn from {len(chosen):,} of {len(rows):,} rows. Raise it, or leave "
                "it out for all rows.",
            )
        return chosen

    def _part(self, labels: Ints | None, n: int, most: int) -> Ints:
        """All of n rows, or at most about so many, with the classes in their shares."""
        return np.arange(n) if n <= most else drawn(labels, n, most / n, 1, self.seed_)

    def _most_rows(self, columns: int) -> int:
        """Rows that members may learn from: what a folded row takes is kernel values with landmarks, its views, and its places in trees."""
        if self.memory_limit is None:
            return np.iinfo(np.intp).max
        a_row, limit = _BYTES_A_ROW + _BYTES_AN_ENTRY * columns, self.memory_limit * 2**20
        if limit < MOST_FOLDED * a_row:
            return int(max(limit / a_row, _FEWEST_SAMPLED))
        left = limit - ROWS_OF_KERNELS * a_row  # which learn from so many rows of a large table
        return int(max(left / (_LARGE_BYTES_AN_ENTRY * max(columns, 1)), MOST_FOLDED))

    def _trained(
        self, table: Table, view: View | None, rows: Ints, target: Target, deadline: float, share: float = 1.0
    ) -> Learned:
        """An ensemble for the rows whose targets are known, and what these leave open, in a share of the time limit."""
        chosen = self._sample(rows, target.labels)
        training = self._training(table, view, rows[chosen], target.take(chosen), deadline)
        if training.hurried and share * float(self.time_limit or 0.0) >= _AMPLE * self._expected_seconds(training):
            training.deadline = np.inf  # answers then do not hinge on the clock
        judged = training.judged
        after, rows_after = judged.thinned(self._share_after(judged))
        started = perf_counter()
        target_variance = None if self.posterior_ is None else self._fit_target_variance(after)
        training.deadline -= perf_counter() - started  # the same again for the rows as they came
        kept = KeptRows().fit(after, self.seed_) if after.view.T.shape[1] else None
        ensemble = Ensemble()
        with one_blas_thread():
            training.reads = self._worth_reading(training)
            if training.reads != "columns":
                assert training.posterior is not None
                training.view = training.view.with_latent(training.posterior)
            names = [name for name in self._names() if self._suits(name, training)]
            values = ensemble.fit(training, names, int(self.verbose))
        self._warn_of_shortened(ensemble)
        return Learned(ensemble, values, judged, chosen[training.tested], after, rows_after, target_variance, kept)

    def _training(self, table: Table, view: View | None, rows: Ints, target: Target, deadline: float) -> TrainingSet:
        """What members learn from: some rows of the table, and how they are folded."""
        large, came, remarks = len(rows) > MOST_FOLDED, None, Remarks()
        if view is not None or not large:
            came = self._viewed(table, rows, remarks) if view is None else view.take(rows)
            completed = self._with_always_seen(came)
        else:
            completed = self._viewed(table, rows, remarks, completed=True)
        remarks.warn()
        # Rows with the same entries are copies, whatever means they have of other rows' targets.
        shown = (completed.T if came is None else came.T)[:, self.views_.of_one_]
        units = units_of(shown) if target.groups is None else units_in(target.groups)
        cuts, independent = self._cuts(rows, table, units, target)
        tested = tested_rows(cuts)
        as_came = self._viewed(table, rows[tested], Remarks()) if came is None else came.take(tested)
        return TrainingSet(
            view=completed,
            as_came=as_came,
            categorical=self.views_.categorical_,
            labels=target.labels,
            Y=target.Y,
            n_classes=target.n_classes,
            cuts=cuts,
            independent=independent,
            units=units if large else None,
            groups=target.groups,
            weight=target.weight,
            posterior=self.posterior_,
            seed=self.seed_,
            n_jobs=self.n_jobs,
            deadline=deadline,
        )

    def _worth_reading(self, training: TrainingSet) -> Reads:
        """Whether members of a large table read latent coordinates, and trees these alone."""
        if not training.large or training.posterior is None or training.n_classes == 1 or not training.view.T.shape[1]:
            return "columns"
        started, reads = perf_counter(), worth_reading(training)
        say(self.verbose, "of columns and latent coordinates trees read %s: %.1f s", reads, perf_counter() - started)
        return reads

    def _expected_seconds(self, training: TrainingSet) -> float:
        """What the members take at most, roughly, by numbers alone and not by the clock."""
        names = [name for name in self._names() if self._suits(name, training)]
        targets = 1 if training.n_classes else training.Y.shape[1]
        times = targets * max(len(training.cuts) / _FOLDS, 1.0)
        return times * sum(MEMBERS[name].seconds(training) for name in names if MEMBERS[name].takes_part(training))

    def _suits(self, name: str, training: TrainingSet) -> bool:
        """Whether a member takes part: in a large table only if it was named or is made for large tables."""
        return not training.large or not isinstance(self.members, str) or MEMBERS[name].for_large(training)

    def _share_after(self, training: TrainingSet) -> float:
        """Of the rows, from which is learned what rows leave open: as many as a time limit allows, by a pilot."""
        if self.posterior_ is None or not training.hurried:
            return 1.0
        pilot, rows = training.thinned(min(PILOT_ROWS / training.n, 1.0))
        started = perf_counter()
        self._fit_target_variance(pilot)
        a_row = max(perf_counter() - started, TICK) / len(rows)
        return float(np.clip(_AFTER_SHARE * training.left() / a_row, len(rows), training.n) / training.n)

    def _warn_of_shortened(self, ensemble: Ensemble) -> None:
        """Warn of what the time limit cost."""
        if ensemble.shortened_:
            what = "; ".join(f"{name}: {text}" for name, text in ensemble.shortened_.items())
            warn_user(
                f"time_limit={self.time_limit:g} has shortened members ({what}). `report_` says so too; raise time_limit for whole ones.",
            )

    def _deadline(self) -> float:
        """The time when members must end, a little before the limit, for the steps after them."""
        return np.inf if self.time_limit is None else perf_counter() + _MEMBERS_SHARE * float(self.time_limit)

    def _check_loaded(self) -> None:
        """Refuse a model file whose parts do not fit together: rows with nothing observed and rows of means are predicted."""
        if "views_" not in vars(self):
            return
        if self.n_features_in_ != self.views_.encoder_.n_features_in_:
            raise ValueError(
                f"views_ must be of n_features_in_={self.n_features_in_} columns; got {self.views_.encoder_.n_features_in_}. Fit again"
            )
        try:
            t, p = len(self.views_.kept_), max(len(self.views_.places_), 1)
            nothing_and_means = np.array([[np.nan], [0.0]])
            view = View(np.tile(nothing_and_means, p), np.tile(nothing_and_means, t))
            with np.errstate(all="ignore"):
                self._try(view)
                for part in self._parts():
                    self._try_kept(part)
                self.masks_.compare(np.repeat(view.T[:, self.views_.of_one_], FEWEST_ROWS, axis=0))
        except Exception as error:
            raise ValueError(
                f"the parts of the model do not fit together ({type(error).__name__}: {error}). Fit again"
            ) from None

    def _try(self, view: View) -> None:
        raise NotImplementedError

    def _try_kept(self, part: Part) -> None:
        """Refuse kept rows that are not rows of this table, or have other targets."""
        kept, c = part.kept, part.ensemble.n_classes_
        q = 1 if c else part.target_variance.coef_.shape[1]
        labels_known = not c or np.isin(kept.target_, np.arange(c)).all()
        if kept.table_.shape[1] != len(self.views_.kept_) or kept.target_.shape[1] != q or not labels_known:
            raise ValueError(f"kept rows of shape {kept.table_.shape} have {kept.target_.shape[1]} targets")

    def _trial_rows(self) -> list[Any]:
        """Tables of one row that hold what the columns of `fit` held."""
        return self.views_.encoder_._trial_rows() if "views_" in vars(self) else []

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags


def _add_shortened(table: dict[str, list[Any]], ensembles: Sequence[Ensemble]) -> None:
    """Add a column that says how the time limit shortened each member, and rows for members that were left out."""
    table["shortened"] = [
        ensembles[number].shortened_.get(name, "")
        for number, name in zip(table["target"], table["member"], strict=True)
    ]
    for number, ensemble in enumerate(ensembles):
        for name, text in ensemble.shortened_.items():
            if name not in table["member"]:
                row = {
                    "target": number,
                    "member": name,
                    "score": np.nan,
                    "weight": 0.0,
                    "seconds": 0.0,
                    "rows": 0,
                    "tested": ensemble.tested_,
                    "folds": 0,
                    "completed": "",
                    "shortened": text,
                }
                for column, value in row.items():
                    table[column].append(value)


def _settled(columns: int, n_classes: int) -> int:
    """Copies of rows on which two orders of measuring are compared."""
    pairs = max(n_classes, 1) ** 2
    return int(min(_SETTLED, _SETTLED_ENTRIES // columns, _SETTLED_TERMS // (columns * pairs)))


def report(ensembles: Sequence[Ensemble]) -> ColumnTable:
    """Columns of a small table: member, its own score, its weight, its seconds, rows that it learned from and was weighed on, in how many folds, and how it completes rows."""
    names = ("target", "member", "score", "weight", "seconds", "rows", "tested", "folds", "completed")
    table: dict[str, list[Any]] = {name: [] for name in names}
    for number, ensemble in enumerate(ensembles):
        weights = np.atleast_2d(ensemble.weights()).mean(axis=0)
        of_members = (ensemble.scores_, weights, ensemble.seconds_, ensemble.rows_)
        lines = [
            (*line, *ensemble.folds_and_completed(member))
            for member, *line in zip(
                ensemble.members_, ensemble.names_, *(values.tolist() for values in of_members), strict=True
            )
        ]
        lines += [
            (name, score, 0.0, seconds, rows, folds, completed)
            for name, (score, seconds, rows, folds, completed) in ensemble.dropped_.items()
        ]
        for *line, folds, completed in lines:
            for column, value in zip(names, (number, *line, ensemble.tested_, folds, completed), strict=True):
                table[column].append(value)
    if any(ensemble.shortened_ for ensemble in ensembles):
        _add_shortened(table, ensembles)
    if len(ensembles) == 1:
        del table["target"]
    return ColumnTable(table)
