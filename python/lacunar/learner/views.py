"""The views that members have of a table, numbers (Z) and levels (T), and training sets of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_n_features, _num_samples

from lacunar._cuts import Cut, cuts_among, cuts_of, tested_rows
from lacunar._log import warn_user
from lacunar._random import generator
from lacunar._typing import Floats, Ints
from lacunar.encode import Remarks, TableEncoder
from lacunar.learner.added import MANY_LEVELS, AddedColumns, Encoded, LearnedFrom
from lacunar.learner.folds import even_folds
from lacunar.learner.pairs import PairMeans
from lacunar.learner.tails import go_on_straight
from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.observed import Observed
from lacunar.observed.columns import column_spread, scales_of
from lacunar.observed.door import SparseMissing, as_observed
from lacunar.observed.rules import Array, Instance, Items, Number, Rule, floats, whole
from lacunar.observed.sentinels import warn_of_sentinels

MOST_LEVELS = 250  # of a category that trees split natively: their sets hold 256 bits
_SHOWN_LEVELS = 60  # of a category that become columns of their own, the most frequent first
# Standard deviations, beyond which a number, and one of a skewed column, says no more to kernels and linear models.
_CLIP, _LONG_CLIP = 8.0, 30.0
# Where targets go on straight beyond a third of the farthest number of training, numbers say more up to three times the farthest, in columns
# with one so many standard deviations away: others hardly ever hold one beyond the usual cut.
_FURTHER, _FAR = 3.0, 5.0
_LARGEST = 1e15  # standard deviations, for trees in single precision
_MOST_LATENT = 20  # coordinates that members read, the first of which explain most
_LATENT_ROWS = 2**15  # whose latent coordinates are computed at once
_FOLDS_OF_SAMPLES = 3
_KNOTS = 128  # quantiles by which the values of a skewed column have normal scores
_STRAIGHT = 0.8  # share of the variance of a column's normal scores that its values explain, below which it is skewed
_SMALLEST_SD = 0.25  # of a category's column, so that a rare level does not outweigh all others
_MOST_DRAWN = 32  # levels of training that a row with an unseen one is predicted with
_UNSEEN = "predicted as the average over those that it saw"


Reads: TypeAlias = Literal["columns", "both", "latent"]  # of trees: T, latent coordinates beside it, or these alone


class View(NamedTuple):
    """Rows of a table as arrays: Z for linear models and kernels, T for trees, and latent coordinates where members
    read them.

    Rows of a large training set are in single precision, all others in double.
    """

    Z: Floats  # (n, p) standardised numbers, normal scores of skewed ones, and categories as 0/1, NaN where missing
    T: Floats  # (n, d) standardised numbers and levels of categories, NaN where missing
    latent: Floats | None = None  # (n, k)

    def take(self, rows: NDArray[np.intp]) -> View:
        """Some of the rows; the same arrays where those are all of them."""
        all_rows = len(rows) == len(self.T) and np.array_equal(rows, np.arange(len(rows)))
        return self if all_rows else self._changed(lambda array: array[rows])

    def among(self, rows: NDArray[np.intp], n: int) -> View:
        """The same rows at their places among n, of which nothing is known of all others."""

        def placed(array: Floats) -> Floats:
            whole = np.full((n, array.shape[1]), np.nan, dtype=array.dtype)
            whole[rows] = array
            return whole

        return self if len(rows) == n else self._changed(placed)

    def in_double(self) -> View:
        """The same in double precision."""
        return self._changed(lambda array: np.asarray(array, dtype=np.float64))

    def _changed(self, change: Callable[[Floats], Floats]) -> View:
        return View(change(self.Z), change(self.T), None if self.latent is None else change(self.latent))

    def with_latent(self, posterior: LowRankPosterior, most: int | None = _MOST_LATENT) -> View:
        """The same with the first latent coordinates, or with all of them, in the precision of the rows."""
        latent = np.empty((len(self.Z), len(posterior.components_[:most])), dtype=self.Z.dtype)
        for first in range(0, len(self.Z), _LATENT_ROWS):
            rows = slice(first, first + _LATENT_ROWS)
            latent[rows] = posterior.latent(self.Z[rows])[:, : latent.shape[1]]
        return self._replace(latent=latent)

    def read(self, reads: Reads) -> list[Floats]:
        """The arrays that trees read, as blocks of columns."""
        parts = {"columns": (self.T,), "both": (self.T, self.leading), "latent": (self.leading,)}[reads]
        return [part for part in parts if part is not None]

    @property
    def leading(self) -> Floats | None:
        """The latent coordinates that members read (n, 20 at most)."""
        return None if self.latent is None else self.latent[:, :_MOST_LATENT]

    @property
    def n_missing(self) -> Floats:
        """Missing entries of every row, (n,)."""
        return np.asarray(np.isnan(self.T).sum(axis=1), dtype=np.float64)


@dataclass
class TrainingSet:
    """The rows with known targets that members learn from, and the cuts into rows to learn from and rows to test on."""

    view: View
    as_came: View  # the tested rows before columns that training always saw were completed
    categorical: NDArray[np.bool_]  # columns of T
    labels: Ints | None  # (n,) numbers of classes, None for regression
    Y: Floats  # (n, q) standardised targets, or 2 onehot - 1 of the classes (one column for two)
    n_classes: int  # 0 for regression
    cuts: list[Cut]  # no row is tested twice; some may never be
    weight: Floats | None  # (n,), mean 1
    posterior: LowRankPosterior | None
    seed: int
    n_jobs: int | None = None
    deadline: float = np.inf  # by perf_counter
    units: Ints | None = None  # of a large table: rows of one number stay in one fold; None where all rows are folded
    reads: Reads = "columns"
    a_row: dict[str, float] = field(
        default_factory=dict
    )  # seconds of a member's least fit, where there is a time limit
    shortened: dict[str, str] = field(default_factory=dict)  # what the time limit cost a member, by name
    learned: Ints | None = None  # rows that cuts and the final models learn from, None for all
    groups: Ints | None = None  # (n,) numbers of the groups that rows belong to, where they are known
    independent: bool = True  # whether a row tells as much of one that is left out with it as of any other

    @property
    def n(self) -> int:
        return len(self.Y)

    @property
    def tested(self) -> Ints:
        """Rows that some cut tests, in ascending order: members return values of these."""
        return tested_rows(self.cuts)

    @property
    def tested_by(self) -> Ints:
        """The number of the cut that tests each of the rows in `tested`."""
        numbers = [np.full(len(test), k) for k, (_, test) in enumerate(self.cuts)]
        return np.concatenate(numbers)[np.argsort(np.concatenate([test for _, test in self.cuts]))]

    @property
    def judged(self) -> TrainingSet:
        """The tested rows alone, in double precision: weights, calibration and residuals come from them."""
        judged = self.take(self.tested)
        return replace(judged, view=judged.view.in_double(), as_came=judged.as_came.in_double())

    def weights(self, rows: Ints) -> Floats | None:
        return None if self.weight is None else self.weight[rows]

    def left(self) -> float:
        """Seconds left."""
        return self.deadline - perf_counter()

    def note(self, name: str) -> Callable[[str], None]:
        """Record how the time limit shortened a member."""
        return lambda text: self.shortened.__setitem__(name, text)

    @property
    def hurried(self) -> bool:
        """Whether there is a time limit."""
        return bool(np.isfinite(self.deadline))

    @property
    def large(self) -> bool:
        """Whether small parts are held out, and members learn from all other rows."""
        return self.units is not None

    def thinned(self, share: float) -> tuple[TrainingSet, Ints]:
        """A sample of the rows with every class in its share, at least one more of each than there are cuts; and which
        rows these are.
        """
        rows = np.arange(self.n) if share >= 1.0 else drawn(self.labels, self.n, share, len(self.cuts) + 1, self.seed)
        return self.take(rows), rows

    def take(self, rows: Ints) -> TrainingSet:
        """Some of the rows, by ascending numbers; a cut that keeps no test row is dropped."""
        if len(rows) == self.n:
            return self
        came = np.isin(self.tested, rows)
        return replace(
            self,
            view=self.view.take(rows),
            as_came=self.as_came if came.all() else self.as_came.take(np.flatnonzero(came)),
            labels=None if self.labels is None else self.labels[rows],
            Y=self.Y[rows],
            cuts=cuts_among(self.cuts, rows, self.n),
            weight=None if self.weight is None else self.weight[rows] / self.weight[rows].mean(),
            learned=None if self.learned is None else np.flatnonzero(np.isin(rows, self.learned)),
            units=None if self.units is None else np.unique(self.units[rows], return_inverse=True)[1],
            groups=None if self.groups is None else self.groups[rows],
        )

    def learning_from(self, rows: Ints) -> TrainingSet:
        """The same rows and tests, but only some of the rows, by ascending numbers, are learned from."""
        cuts = [(np.intersect1d(train, rows), test) for train, test in self.cuts]
        return replace(self, cuts=cuts, learned=np.intersect1d(self.final, rows))

    def sample(self, rows: Ints, most: int) -> TrainingSet:
        """Of a large table at most so many of some rows, drawn as in `thinned`, in double precision and in folds of their own."""
        labels = None if self.labels is None else self.labels[rows]
        if len(rows) > most:
            rows = rows[drawn(labels, len(rows), most / len(rows), _FOLDS_OF_SAMPLES + 1, self.seed)]
        part = self.take(rows)
        assert part.units is not None
        cuts = cuts_of(even_folds(part.labels, part.units, _FOLDS_OF_SAMPLES, self.seed), part.n)
        return replace(part, view=part.view.in_double(), as_came=part.view, cuts=cuts, units=None, learned=None)

    @property
    def final(self) -> Ints:
        """Rows that the final models learn from."""
        return np.arange(self.n) if self.learned is None else self.learned

    @property
    def all_in_cuts(self) -> bool:
        """Whether every row that final models learn from is learned from by some cut: then the mean of the cuts' models has learned from all."""
        among = np.zeros(self.n, dtype=bool)
        for train, _ in self.cuts:
            among[train] = True
        return bool(among[self.final].all())


def drawn(labels: Ints | None, n: int, share: float, fewest: int, seed: int) -> Ints:
    """A share of n rows, as large of every class and so many of each at least."""
    order = generator(seed).permutation(n)
    if labels is None:
        return np.sort(order[: max(int(share * n), fewest)])
    order = order[np.argsort(labels[order], kind="stable")]
    sizes = np.bincount(labels)
    place = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    enough = np.maximum(np.ceil(share * sizes), np.minimum(sizes, fewest))
    return np.sort(order[place < np.repeat(enough, sizes)])


def shares_of_levels(n_levels: int) -> Floats:
    """Where the levels stand that a row with an unseen one is predicted with, as shares of their number."""
    n_drawn = min(n_levels, _MOST_DRAWN)
    return np.asarray((np.arange(n_drawn) + 0.5) / n_drawn)


def over_levels(
    values: Floats, unseen: NDArray[np.bool_], of_draws: Callable[[Ints, Ints], Sequence[Floats]], *, logs: bool
) -> Floats:
    """Values (m, k) in which rows with unseen levels in some columns, `unseen` (m, d), have the mean of those with levels of training.

    `of_draws` gives these for rows that lack the same columns, one array a level. Of `logs` the mean is that of the probabilities.
    """
    for columns in np.unique(unseen[unseen.any(axis=1)], axis=0):
        rows = np.flatnonzero((unseen == columns).all(axis=1))
        draws = of_draws(rows, np.flatnonzero(columns))
        values[rows] = np.log(np.mean(np.exp(draws), axis=0)) if logs else np.mean(draws, axis=0)
    return values


class TableViews(BaseEstimator):
    """Any table as a `View`: an encoder, the scales of its columns, and the levels that become columns.

    Parameters
    ----------
    sparse_missing : {"absent", "nan"}
        As in `Observed.from_scipy`.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "encoder_": Instance(TableEncoder),
        "added_": Instance(AddedColumns),
        "kept_": whole("t", distinct=True),
        "source_": whole("t", low=-1),  # column of the table, -1 of a pair
        "mean_": floats("t"),
        "scale_": floats("t", low=np.finfo(np.float64).tiny),
        "categorical_": Array("b", ("t",)),
        "levels_": Items(Array("i", ("l",), low=0, ascending=True), length="t", alike=False),
        "level_mean_": Items(floats("l"), length="t", alike=False),
        "level_scale_": Items(floats("l", low=1e-3), length="t", alike=False),
        "knots_": Items(floats("k"), length="t", alike=False),
        "cut_": floats("t", low=0),
        "n_rows_": Number(whole=True, low=1),
    }

    def __init__(self, *, sparse_missing: SparseMissing = "absent") -> None:
        self.sparse_missing = sparse_missing

    def fit_transform(self, X: Any, learned: Callable[[View], LearnedFrom] | None = None) -> View:
        """Learn what the columns hold, and show these rows. Columns of which nothing was observed, and constant ones, are left out.

        Where `learned` says what the targets are, by what the rows show, columns of text and of many levels are judged by them, and where numbers are cut.
        """
        table = self._readable(X, warn_counts=True)
        self.encoder_ = TableEncoder(
            categories="ordinal", max_categories=MOST_LEVELS, text="drop", handle_unknown="other"
        )
        self.added_, self.n_rows_ = AddedColumns(), _num_samples(table)
        if isinstance(table, Observed):
            self._fit_columns(self._fit_sparse(table))
            return self._with_cuts(self._of_sparse(table), learned)
        remarks = Remarks()
        cells = self.encoder_._learn(table, remarks)
        encoded = self.encoder_._encoded(cells, remarks)
        remarks.warn()
        self._fit_columns(list(encoded.T))
        view = self._of_encoded(encoded)
        rows = Encoded(self._texts(cells), encoded, self._level_counts(), self.encoder_.source_)
        targets = None
        if learned is not None and (rows.texts or len(rows.n_levels) > 1):
            targets = learned(with_texts(view, rows.texts))
        if targets is not None and targets.enough:
            columns = self.added_.fit_transform(rows, view.T, self.categorical_, targets)
            if columns.shape[1]:
                encoded = np.hstack([encoded, columns])
                self._fit_columns(list(encoded.T))
                view = self._of_encoded(encoded)
        _warn_of_dropped(self.encoder_, {maker.column_ for maker in self.added_.makers})
        return self._with_cuts(view, learned)

    def _fit_columns(self, columns: list[Floats]) -> None:
        """Which columns are kept, and their scales; columns (n,) are those of the encoder and then those added, or their observed entries.

        Means of the target replace their levels: beside a level, the mean over rows of other folds would tell of the fold of a row.
        """
        is_categorical, n_encoded = self.encoder_.is_categorical_, len(self.encoder_.source_)
        if len(columns) == n_encoded:
            numbers = [column for column, flag in zip(columns, is_categorical, strict=True) if not flag]
            warn_of_sentinels(self.encoder_.get_feature_names_out()[~is_categorical], numbers)
        source = np.r_[self.encoder_.source_, self.added_.source_]
        categorical = np.r_[is_categorical, np.zeros(len(columns) - n_encoded, dtype=bool)]
        replaced = categorical & np.isin(source, [means.column_ for means in self.added_.level_means_])
        varies = np.array([_varies(column, self.n_rows_) for column in columns], dtype=bool)
        self.kept_ = np.flatnonzero(varies & ~replaced)
        self.source_, self.categorical_ = source[self.kept_], categorical[self.kept_]
        self._fit_scales([columns[j] for j in self.kept_])

    def _texts(self, cells: list[Any]) -> dict[int, NDArray[np.object_]]:
        """Text by column, "" where missing, of the columns that are judged as text or as many levels."""
        return {j: self.encoder_._text_of(cells[j], j) for j in self._wordy()}

    def _level_counts(self) -> dict[int, int]:
        """Numbers of levels of the categories, by column of the encoded table."""
        known, source = self.encoder_.categories_, self.encoder_.source_
        counts = {int(j): known[source[j]] for j in np.flatnonzero(self.encoder_.is_categorical_)}
        return {j: len(levels) for j, levels in counts.items() if levels is not None}

    def what_is_added(self) -> list[tuple[int, str]]:
        """What is done with every column of text or of many levels, by its number in the table."""
        added = [(means.column_, "means of the target by level") for means in self.added_.level_means_]
        added += [(text.column_, "numbers of its character n-grams") for text in self.added_.text_numbers_]
        names = getattr(self.encoder_, "feature_names_in_", [f"x{j}" for j in range(self.encoder_.n_features_in_)])
        pairs = [self.encoder_.source_[pair.places_] for pair in self.added_.pair_means_]
        for first, *others in pairs:
            of_others = " and ".join(str(names[j]) for j in others)
            added.append((int(first), f"means of the target by its levels and those of {of_others}"))
        return added

    def _wordy(self) -> list[int]:
        columns = zip(self.encoder_.kinds_, self.encoder_.categories_, strict=True)
        return [
            j
            for j, (kind, known) in enumerate(columns)
            if kind == "dropped" or len(() if known is None else known) > MANY_LEVELS
        ]

    def _fit_sparse(self, table: Observed) -> list[Floats]:
        """The encoder of a table of numbers alone, and the observed entries of its columns in the order of the rows."""
        by_column = sp.csr_array((table.values, table.indices, table.indptr), shape=table.shape).tocsc()
        seen = np.diff(by_column.indptr) > 0
        self.encoder_.fit(np.where(seen, 0.0, np.nan)[None])
        return [column.astype(np.float64) for column in np.split(by_column.data, by_column.indptr[1:-1])]

    def _fit_scales(self, columns: list[Floats]) -> None:
        self.mean_, self.scale_ = np.zeros(len(columns)), np.ones(len(columns))
        self.levels_: list[NDArray[np.int64]] = []
        self.level_mean_: list[Floats] = []
        self.level_scale_: list[Floats] = []
        self.knots_: list[Floats] = []  # standardised quantiles of skewed numbers; none of other columns
        for j, column in enumerate(columns):
            seen = column[~np.isnan(column)]
            shown = _shown_levels(seen) if self.categorical_[j] else np.zeros(0, dtype=np.int64)
            shares = np.array([np.mean(seen == level) for level in shown])
            self.levels_.append(shown)
            self.level_mean_.append(shares)
            self.level_scale_.append(np.sqrt(2) * np.maximum(np.sqrt(shares * (1 - shares)), _SMALLEST_SD))
            if not self.categorical_[j]:
                self.mean_[j], self.scale_[j] = _mean_and_scale(seen)
            self.knots_.append(
                np.zeros(0) if self.categorical_[j] else _knots(self._standardised(seen, self.mean_[j], self.scale_[j]))
            )
        self.cut_: Floats = np.array([_LONG_CLIP if len(knots) else _CLIP for knots in self.knots_])

    def _with_cuts(self, view: View, learned: Callable[[View], LearnedFrom] | None) -> View:
        """The view with numbers cut further out, where targets go on straight there."""
        usual, farthest = self.cut_, np.max(np.abs(view.T), axis=0, where=~np.isnan(view.T), initial=0.0)
        far = ~self.categorical_ & (self.source_ >= 0) & (farthest > _FAR)
        if learned is None or not far.any() or not (targets := learned(self._without_pairs(view))).numbers:
            return view
        self.cut_ = np.where(far, farthest / _FURTHER, usual)
        trial = self._numbers(view.T)
        self.cut_ = np.where(far, np.maximum(usual, _FURTHER * farthest), usual)
        whole = self._numbers(view.T)
        if go_on_straight(whole, trial, targets):
            return View(whole, view.T)
        self.cut_ = usual
        return view

    def encoded(self, batches: Iterable[Any]) -> Encoded:
        """All rows of a large table, of which means by level and by pair of levels are learned."""
        texts: dict[int, list[NDArray[np.object_]]] = {means.column_: [] for means in self.added_.level_means_}
        tables = []
        for batch in batches:
            cells = TableEncoder._columns(self.encoder_, batch, reset=False)
            with np.errstate(over="ignore"):
                tables.append(self.encoder_._encoded(cells, Remarks()).astype(np.float32))
            for j, of_column in texts.items():
                of_column.append(self.encoder_._text_of(cells[j], j))
        whole = {j: np.concatenate(of_column) for j, of_column in texts.items()}
        return Encoded(whole, np.vstack(tables), self._level_counts(), self.encoder_.source_)

    def transform(
        self, X: Any, remarks: Remarks | None = None, *, learner: Any = None, own: Floats | None = None
    ) -> View:
        """Rows as the members see them. What is to be said of batches goes to `remarks`; without one it is said at once.

        Names and numbers of columns are refused in the name of the learner, where there is one. Training rows of a large table have means of their `own`.
        """
        table = self._readable(X)
        if isinstance(table, Observed):
            return self._of_sparse(table)
        noted = Remarks() if remarks is None else remarks
        cells = TableEncoder._columns(self.encoder_ if learner is None else learner, table, reset=False)
        encoded = self.encoder_._encoded(cells, noted)
        if self.added_.source_.size:
            texts = self._texts(cells) if self.added_.makers else {}
            encoded = np.hstack([encoded, self.added_.transform(texts, encoded, own)])
        noted.meaning = _UNSEEN
        if remarks is None:
            noted.warn()
        return self._of_encoded(encoded)

    def _of_encoded(self, encoded: Floats) -> View:
        """Rows (m, outputs) of the encoder as the members see them."""
        encoded = encoded[:, self.kept_]
        numbers = self._standardised(encoded, self.mean_, self.scale_)
        return self.shown(np.ascontiguousarray(np.where(self.categorical_, encoded, numbers)))

    def shown(self, T: Floats) -> View:
        """Rows of which T is known."""
        return View(self._numbers(T), T)

    def _of_sparse(self, table: Observed) -> View:
        """Rows of a sparse table, in which every column holds numbers."""
        _check_n_features(self.encoder_, table, reset=False)
        if not len(self.kept_):
            return self.shown(np.zeros((len(table), 0)))
        place = np.full(table.shape[1], -1)
        place[self.kept_] = np.arange(len(self.kept_))
        observed = place[table.indices] >= 0
        columns = place[table.indices[observed]]
        values = self._standardised(
            table.values[observed].astype(np.float64), self.mean_[columns], self.scale_[columns]
        )
        indptr = np.concatenate([[0], np.cumsum(observed)])[table.indptr]
        shape = table.shape[0], len(self.kept_)
        return self.shown(Observed(indptr, columns.astype(table.indices.dtype), values, shape).to_dense())

    @staticmethod
    def _standardised(values: Floats, mean: Floats, scale: Floats) -> Floats:
        # Halves: differences of large numbers overflow. So may quotients, which are clipped.
        with np.errstate(over="ignore"):
            return np.clip((0.5 * values - 0.5 * mean) / (0.5 * scale), -_LARGEST, _LARGEST)

    def _numbers(self, T: Floats) -> Floats:
        """Z of T: categories become columns, one a level."""
        blocks = [self._block(T[:, j], j) for j in self.of_one_]
        return np.ascontiguousarray(np.hstack(blocks)) if blocks else np.zeros((len(T), 1))

    def _block(self, column: Floats, j: int) -> Floats:
        if not self.categorical_[j]:
            numbers = np.clip(column, -self.cut_[j], self.cut_[j])
            if not len(self.knots_[j]):
                return numbers[:, None]
            return np.column_stack([numbers, _normal_scores(column, self.knots_[j])])
        open_ = np.isnan(column) | (column == self._n_levels(j))
        flags = np.where(open_[:, None], np.nan, column[:, None] == self.levels_[j])
        return np.clip((flags - self.level_mean_[j]) / self.level_scale_[j], -_CLIP, _CLIP)

    def completed(self, view: View, Z: Floats, columns: NDArray[np.bool_]) -> View:
        """The view with missing entries of some columns of T filled from a completed Z: numbers as they are, the likeliest level of a category."""
        T, completed, first = view.T.copy(), view.Z.copy(), 0
        for j in range(T.shape[1]):
            block = slice(first, first + self._width(j))
            first = block.stop
            if columns[j] and self.source_[j] >= 0:
                missing = np.isnan(T[:, j])
                T[missing, j] = self._values_of(Z[missing, block], j)
                completed[missing, block] = Z[missing, block]
        answer = self.with_pairs(View(completed, T))
        had = (self.source_ < 0) & ~np.isnan(view.T)  # means of training rows, in which their own targets have no part
        answer.T[had] = view.T[had]
        return answer

    def _n_levels(self, j: int) -> float:
        """Of a column of T the number of levels that training had, which stands for an unseen one in T; NaN of numbers."""
        known = self.encoder_.categories_[self.source_[j]]
        return float(len(known)) if self.categorical_[j] and known is not None else np.nan

    def _unseen(self, T: Floats) -> NDArray[np.bool_]:
        return np.asarray(np.array([self._n_levels(j) for j in range(T.shape[1])]) == T)

    def comparable(self, T: Floats) -> Floats:
        """T with inf for a level that training never had: it is observed, and neither larger nor smaller than those of training. Columns of pairs say nothing more."""
        return np.where(self._unseen(T), np.inf, T)[:, self.of_one_]

    def averaged(self, view: View, predict: Callable[[View], Floats], *, logs: bool) -> Floats:
        """Predictions of a view; of rows with an unseen level the mean over the levels of training, each counted once.

        A level that comes anew is as one drawn from all levels, of which those of training are a sample, however many rows they have. Of `logs` the
        mean is that of the probabilities. Of more than 32 levels 32, evenly spaced, are taken.
        """

        def of_draws(rows: Ints, columns: Ints) -> list[Floats]:
            return [predict(drawn) for drawn in self._drawn(view.take(rows), columns)]

        return over_levels(predict(view), self._unseen(view.T), of_draws, logs=logs)

    def _drawn(self, view: View, columns: Ints) -> Iterator[View]:
        """The view with one after another of the levels of training in some columns of T."""
        n_levels = np.array([self._n_levels(j) for j in columns])
        for share in shares_of_levels(int(n_levels.max())):
            T, Z = view.T.copy(), view.Z.copy()
            T[:, columns] = np.floor(share * n_levels)
            for j in columns:
                Z[:, self.places_ == j] = self._block(T[:, j], j)
            yield self.with_pairs(View(Z, T))

    def with_hidden(self, view: View, hidden: NDArray[np.bool_]) -> View:
        """The view with entries of T (n, d) missing, and with what Z says of them; a mean by pair of levels is where either level is."""
        Z, hidden = view.Z.copy(), hidden.copy()
        for _, either, of_T, _ in self._pairs():
            hidden[:, of_T] = hidden[:, either].any(axis=1, keepdims=True)
        # Where there is nothing to learn from, Z has a column of zeros, and no places.
        Z[:, : len(self.places_)][hidden[:, self.places_]] = np.nan
        return View(Z, np.where(hidden, np.nan, view.T))

    def _pairs(self) -> Iterator[tuple[PairMeans, Ints, Ints, Ints]]:
        """What makes means by pair of levels, the columns of T that hold the levels, those that hold means, and of which targets."""
        first = len(self.encoder_.source_) + int((self.added_.source_ >= 0).sum())
        for pair in self.added_.pair_means_:
            of_means = np.arange(first, first + pair.mean_.shape[2])
            of_T = np.flatnonzero(np.isin(self.kept_, of_means))
            yield pair, np.searchsorted(self.kept_, pair.places_), of_T, self.kept_[of_T] - first
            first += len(of_means)

    def with_pairs(self, view: View) -> View:
        """The view, which is changed, with the means by pair of those levels that T holds."""
        for pair, either, of_T, targets in self._pairs():
            means = pair.transform(view.T[:, either])[:, targets]
            view.T[:, of_T] = self._standardised(means, self.mean_[of_T], self.scale_[of_T])
        return view

    def _check_loaded(self) -> None:
        """Refuse a model file whose means by pair are of other levels than those of its columns."""
        counts = self._level_counts()
        for pair in self.added_.pair_means_:
            sizes = [counts.get(int(place), -1) + 1 for place in pair.places_]
            whole = sizes == pair.sizes_.tolist() and np.prod(sizes[:-1]) == len(pair.mean_)
            if not whole or pair.mean_.shape[1] != sizes[-1] or not np.isin(pair.places_, self.kept_).all():
                raise ValueError(
                    f"mean_ of a pair must be of the levels {sizes} of its columns; got {pair.mean_.shape}"
                )

    def _without_pairs(self, view: View) -> View:
        """The view of which rows with the same entries are the same."""
        return view._replace(T=view.T[:, self.of_one_])

    @property
    def of_one_(self) -> Ints:
        """The columns of T that are made of one column of the table."""
        return np.flatnonzero(self.source_ >= 0)

    def _values_of(self, block: Floats, j: int) -> Floats:
        """Entries of T from columns of Z."""
        if not self.categorical_[j]:
            return block[:, 0]
        chances = block * self.level_scale_[j] + self.level_mean_[j]
        if len(self.levels_[j]) == 1:  # the second of two levels; levels are 0 and 1
            return np.asarray(chances[:, 0] > 0.5, dtype=np.float64)
        return np.asarray(self.levels_[j][np.argmax(chances, axis=1)], dtype=np.float64)

    def _width(self, j: int) -> int:
        if self.source_[j] < 0:  # kernels and linear models tell pairs by the levels themselves
            return 0
        return len(self.levels_[j]) if self.categorical_[j] else 1 + bool(len(self.knots_[j]))

    @property
    def places_(self) -> NDArray[np.intp]:
        """For every column of Z the column of T that it is made of."""
        return np.repeat(np.arange(len(self.kept_)), [self._width(j) for j in range(len(self.kept_))])

    def _readable(self, X: Any, *, warn_counts: bool = False) -> Any:
        """Sparse input as its observed entries, other tables unchanged."""
        if not sp.issparse(X) and not isinstance(X, Observed):
            return X
        table = as_observed(X, sparse_missing=self.sparse_missing, warn_counts=warn_counts)
        if 0 in table.shape:
            raise ValueError(
                f"X must have rows and columns; got a table of shape {table.shape}. Check how it was made."
            )
        return table


def with_texts(view: View, texts: Mapping[int, NDArray[np.object_]]) -> View:
    """The view with a column of T for every column of text, so that rows which differ in it are no copies."""
    columns = [np.unique(text.astype(str), return_inverse=True)[1].astype(np.float64) for text in texts.values()]
    return View(view.Z, np.column_stack([view.T, *columns]))


def _varies(column: Floats, n_rows: int) -> bool:
    """Whether a column takes several values or is missing in some rows; given are all of its rows (NaN where missing)
    or its observed entries.
    """
    seen = column[~np.isnan(column)]
    return bool(seen.size) and (seen.size < n_rows or bool(np.any(seen != seen[0])))


def _shown_levels(seen: Floats) -> NDArray[np.int64]:
    """Levels that become columns: the second of two levels, else the most frequent ones, in ascending order."""
    levels, counts = np.unique(seen.astype(np.int64), return_counts=True)
    if len(levels) == 2 and levels[1] == 1:
        return levels[1:]
    return np.sort(levels[np.argsort(-counts, kind="stable")[:_SHOWN_LEVELS]])


def _mean_and_scale(seen: Floats) -> tuple[float, float]:
    """Mean and standard deviation of observed numbers; that of numbers that are all alike is their size."""
    spread = column_spread(Observed.from_dense(seen[:, None]), None)
    mean, scale = float(spread.mean[0]), float(scales_of(spread.mean, spread.deviation)[0][0])
    # Of subnormal numbers too few digits are left to tell them apart.
    return mean, scale if scale >= np.finfo(np.float64).tiny else 1.0


def _knots(numbers: Floats) -> Floats:
    """Quantiles of standardised numbers that are skewed or have long tails; none of others, whose normal scores say nothing new."""
    knots = np.quantile(numbers, _shares(min(_KNOTS, len(numbers))), method="inverted_cdf")
    scores = _normal_scores(numbers, knots)
    if not (np.std(numbers) and np.std(scores)):  # constant, or so small that squares vanish
        return np.zeros(0)
    return np.zeros(0) if np.corrcoef(numbers, scores)[0, 1] ** 2 >= _STRAIGHT else knots


def _shares(n_knots: int) -> Floats:
    return np.asarray((np.arange(n_knots) + 0.5) / n_knots)


def _normal_scores(numbers: Floats, knots: Floats) -> Floats:
    """Normal scores of numbers among quantiles; equal quantiles share their mean, and what is beyond them has that of the last."""
    values, place, counts = np.unique(knots, return_inverse=True, return_counts=True)
    scores = np.bincount(place, ndtri(_shares(len(knots)))) / counts
    return np.asarray(np.interp(numbers, values, scores))


def _warn_of_dropped(encoder: TableEncoder, used: set[int]) -> None:
    names = getattr(encoder, "feature_names_in_", np.arange(encoder.n_features_in_))
    columns = enumerate(zip(names, encoder.kinds_, strict=True))
    dropped = [str(name) for j, (name, kind) in columns if kind == "dropped" and j not in used]
    if dropped:
        warn_user(
            f"columns of text with more than {MOST_LEVELS} different values, or nearly as many as rows, are left out as identifiers, or text that tells nothing of the target: "
            f"{', '.join(dropped[:10])}{' ...' if len(dropped) > 10 else ''}. Make numbers of them if they say something.",
        )
