"""Columns added for text, for categories of many levels and for pairs of categories, kept where boosting predicts better with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV

from lacunar._random import generator
from lacunar._threads import one_openmp_thread
from lacunar._typing import Floats, Ints
from lacunar.learner.folds import error_of_sum
from lacunar.learner.levels import LevelMeans, without_own
from lacunar.learner.pairs import Pair, PairMeans, likely_pairs
from lacunar.learner.texts import TextNumbers
from lacunar.observed.rules import Instance, Items, Rule

MANY_LEVELS = 40  # of a category, from which the mean of the target stands beside the level
_FEWEST_A_LEVEL = 2  # rows on average, for means of levels to say something of new rows
_FEWEST_ROWS, _MOST_TARGETS = 30, 10
_PILOT_ROWS, _PILOT_CUTS, _PILOT_TARGETS = 4000, 3, 3
_PILOT_TREES, _PILOT_LEAVES, _PILOT_PENALTIES = 50, 15, tuple(np.logspace(0, 5, 11))
_GAIN = 0.005  # of the loss, from which columns are added: they cost every member time
_SURE = 1.5  # standard errors of the gain


class LearnedFrom(NamedTuple):
    """The targets that added columns learn from, and the folds."""

    Y: Floats  # (n, q), NaN where unknown
    weight: Floats  # (n,)
    cuts: Sequence[tuple[Ints, Ints]]  # training and test rows of every fold
    seed: int
    groups: Ints | None  # (n,) of the rows, where they are known
    numbers: bool  # whether the targets are numbers, and not of classes

    @property
    def enough(self) -> bool:
        """Whether there are enough rows to judge added columns."""
        known = ~np.isnan(self.Y).all(axis=1)
        return bool(known.sum() >= _FEWEST_ROWS and self.Y.shape[1] <= _MOST_TARGETS and len(self.cuts) > 1)


class Encoded(NamedTuple):
    """Training rows of which columns may be made."""

    texts: Mapping[int, NDArray[np.object_]]  # text and many levels by column of the table, "" where missing
    table: Floats  # (n, outputs) as the encoder has them
    n_levels: Mapping[int, int]  # of the categories, by column of the encoded table
    source: Ints  # (outputs,): column of the table


class _Block(NamedTuple):
    """Columns that may be added, and what makes them of new rows."""

    maker: LevelMeans | TextNumbers
    columns: Floats


class AddedColumns(BaseEstimator):
    """Means of the target by level and by pair of levels, and numbers of text, for the columns where they help."""

    _schema: ClassVar[dict[str, Rule]] = {
        "level_means_": Items(Instance(LevelMeans)),
        "text_numbers_": Items(Instance(TextNumbers), alike=False),
        "pair_means_": Items(Instance(PairMeans), alike=False),
    }

    def __init__(self) -> None:
        self.level_means_: list[LevelMeans] = []
        self.text_numbers_: list[TextNumbers] = []
        self.pair_means_: list[PairMeans] = []

    def fit_transform(self, rows: Encoded, T: Floats, categorical: NDArray[np.bool_], learned: LearnedFrom) -> Floats:
        """Columns (n, added) for training rows, of which T (n, d) is known already."""
        blocks = [*self._of_levels(rows.texts, learned), *self._of_texts(rows.texts, learned)]
        pairs = [*self._of_pairs(rows, learned)]
        pilot = _Pilot(T, categorical, learned, len(blocks) + len(pairs))
        taken = [block for block in blocks if pilot.is_better_with(block.columns)]
        self.level_means_ = [block.maker for block in taken if isinstance(block.maker, LevelMeans)]
        self.text_numbers_ = [block.maker for block in taken if isinstance(block.maker, TextNumbers)]
        columns = [block.columns for block in taken]
        for means, of_pair in pairs:
            if not self._replaced(rows.source[means.places_]) and pilot.is_better_with(of_pair):
                self.pair_means_.append(means)
                columns.append(of_pair)
        return np.hstack([np.zeros((len(T), 0)), *columns])

    def _replaced(self, columns: Ints) -> bool:
        """Whether one of some columns of the table has means by level in the place of its levels."""
        return not {means.column_ for means in self.level_means_}.isdisjoint(columns.tolist())

    def _of_levels(self, texts: Mapping[int, NDArray[np.object_]], learned: LearnedFrom) -> Iterator[_Block]:
        for column, levels in texts.items():
            shown = levels[levels != ""]
            if len(shown) >= _FEWEST_A_LEVEL * len(set(shown)):
                means = LevelMeans().fit(levels, learned.Y, learned.weight, column)
                yield _Block(means, without_own(levels, learned.Y, learned.weight, learned.cuts))

    def _of_texts(self, texts: Mapping[int, NDArray[np.object_]], learned: LearnedFrom) -> Iterator[_Block]:
        for column, cells in texts.items():
            numbers = TextNumbers().fit(cells, column, learned.seed)
            yield _Block(numbers, numbers.transform(cells))

    def _of_pairs(self, rows: Encoded, learned: LearnedFrom) -> Iterator[tuple[PairMeans, Floats]]:
        Y, weight = learned.Y, learned.weight
        for pair in likely_pairs(rows.table, rows.n_levels, Y, weight, _FEWEST_A_LEVEL, learned.seed):
            yield PairMeans().fit(pair, Y, weight), pair.without_own(Y, weight, learned.cuts)

    def learn(self, rows: Encoded, Y: Floats, weight: Floats, cuts: Sequence[tuple[Ints, Ints]]) -> Floats:
        """Learn the means again, from all rows of a large table, of which a part said which are taken; those of its rows (n, means), of other folds."""
        own = []
        for level_means in self.level_means_:
            levels = rows.texts[level_means.column_]
            level_means.fit(levels, Y, weight, level_means.column_)
            own.append(without_own(levels, Y, weight, cuts))
        for pair_means in self.pair_means_:
            pair = Pair.of(rows.table, pair_means.places_.tolist(), pair_means.sizes_.tolist())
            pair_means.fit(pair, Y, weight)
            own.append(pair.without_own(Y, weight, cuts))
        return np.hstack(own)

    def transform(self, texts: Mapping[int, NDArray[np.object_]], table: Floats, own: Floats | None = None) -> Floats:
        """Columns (m, added) of encoded rows whose text is given by column; training rows have means of their `own` (m, means)."""
        of_levels = [means.transform(texts[means.column_]) for means in self.level_means_]
        of_texts = [numbers.transform(texts[numbers.column_]) for numbers in self.text_numbers_]
        of_pairs = [pair.transform(table[:, pair.places_]) for pair in self.pair_means_]
        if own is not None:
            n_levels = sum(means.shape[1] for means in of_levels)
            of_levels, of_pairs = [own[:, :n_levels]], [own[:, n_levels:]]
        return np.hstack([np.zeros((len(table), 0)), *of_levels, *of_texts, *of_pairs])

    @property
    def has_means(self) -> bool:
        """Whether some columns are means of the target."""
        return bool(self.level_means_ or self.pair_means_)

    @property
    def makers(self) -> list[LevelMeans | TextNumbers]:
        """What makes the columns of one column each, in their order; those of pairs follow."""
        return [*self.level_means_, *self.text_numbers_]

    @property
    def source_(self) -> NDArray[np.intp]:
        """Number of the column of the table that each column is made of, -1 of a pair."""
        numbers = [maker.column_ for maker in self.makers] + [-1] * len(self.pair_means_)
        widths = [means.mean_.shape[1] for means in self.level_means_]
        widths += [len(text.components_) for text in self.text_numbers_]
        widths += [pair.mean_.shape[2] for pair in self.pair_means_]
        return np.repeat(np.array(numbers, dtype=np.intp), widths)


class _Pilot:
    """A small boosting on a sample of training rows; its residuals show whether further columns help."""

    def __init__(self, T: Floats, categorical: NDArray[np.bool_], learned: LearnedFrom, n_blocks: int) -> None:
        known = np.flatnonzero(~np.isnan(learned.Y).all(axis=1))
        shown = np.zeros(len(T), dtype=bool)
        shown[generator(learned.seed).permutation(known)[:_PILOT_ROWS]] = True
        self._seed, self._weight, self._groups = learned.seed, learned.weight, learned.groups
        cuts = learned.cuts[:_PILOT_CUTS] if n_blocks else []
        self._cuts = [(train[shown[train]], test[shown[test]]) for train, test in cuts]
        self._left = learned.Y[:, :_PILOT_TARGETS].copy()
        with one_openmp_thread():
            self._left -= self._of_trees(T, categorical)
        # Of what is left every part is learned from the others: only tested rows have something left.
        tests = [test for _, test in self._cuts]
        self._cuts = [(np.concatenate([*tests[:k], *tests[k + 1 :]]), test) for k, test in enumerate(tests)]

    def is_better_with(self, columns: Floats) -> bool:
        """Whether columns (n, k) predict part of the residuals, which are then reduced by it."""
        scale = np.nanstd(columns, axis=0)
        numbers = np.nan_to_num((columns - np.nanmean(columns, axis=0)) / np.where(scale > 0, scale, 1.0))
        left = self._left - self._predicted(numbers, RidgeCV(_PILOT_PENALTIES))
        rows = np.concatenate([test for _, test in self._cuts])
        falls = (self._weight[:, None] * (self._left**2 - left**2))[rows]
        before, gain = np.nansum((self._weight[:, None] * self._left**2)[rows]), float(np.nansum(falls))
        groups = None if self._groups is None else self._groups[rows]
        helps = gain > _GAIN * before and gain > _SURE * error_of_sum(falls, groups)
        if helps:
            self._left = left
        return bool(helps)

    def _of_trees(self, T: Floats, categorical: NDArray[np.bool_]) -> Floats:
        """Predictions of trees for the tested rows (n, q), 0 for all others."""
        trees = HistGradientBoostingRegressor(
            max_iter=_PILOT_TREES,
            max_leaf_nodes=_PILOT_LEAVES,
            categorical_features=categorical,
            early_stopping=False,
            random_state=self._seed,
        )
        return self._predicted(T, trees if T.shape[1] else DummyRegressor())

    def _predicted(self, X: Floats, model: Any) -> Floats:
        predicted = np.zeros_like(self._left)
        for (train, test), k in product(self._cuts, range(self._left.shape[1])):
            train = train[~np.isnan(self._left[train, k])]
            if len(train) and len(test):
                model.fit(X[train], self._left[train, k], sample_weight=self._weight[train])
                predicted[test, k] = model.predict(X[test])
        return predicted
