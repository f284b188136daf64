"""Gradient boosting of symmetric trees, in which all nodes of a level share one split.

They are grown here since no library that lacunar depends on grows them: CatBoost, which does, takes 270 MB of disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax

from lacunar import _core
from lacunar._typing import Floats, Ints

_DEPTH, _RATE, _PENALTY = 6, 0.1, 3.0
_TINY = float(np.finfo(np.float64).eps)
_BINS = 33  # of a column of numbers
_GRID = 2.0**-26  # of gradients and hessians, so that sums of them are exact, and equal splits are equally good


class SymmetricTree(NamedTuple):
    """The splits of a tree, root first: their columns, which codes of a column go left, and the values of its leaves (2^depth, outputs)."""

    columns: NDArray[np.int32]
    left: list[NDArray[np.bool_]]
    values: Floats


class SymmetricBoosting:
    """Boosting of symmetric trees by Newton steps: half the squared error of numbers, or log loss of classes.

    A rule of several columns that none of them tells of alone, as an exclusive or, is found by it: every level cuts all nodes, whether they gain or not,
    and a split counts by all of them. A split of a category tells one level from all others in every other tree, and in those between the levels of
    larger steps from those of smaller ones, of which many share what they say. It is grown, stopped and asked as scikit-learn's histogram gradient boosting is.
    """

    def __init__(self, categorical: NDArray[np.bool_], *, of_labels: bool) -> None:
        self.categorical = categorical
        self.of_labels = of_labels
        self.max_iter, self.n_iter_no_change, self.early_stopping = 100, 10, True
        self.trees_: list[SymmetricTree] = []

    def set_params(self, **parameters: Any) -> Self:
        """Set `max_iter`, `n_iter_no_change` or `early_stopping`."""
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    @property
    def n_iter_(self) -> int:
        return len(self.trees_)

    def fit(
        self,
        X: Floats,
        y: NDArray[Any],
        sample_weight: Floats | None = None,
        X_val: Floats | None = None,
        y_val: NDArray[Any] | None = None,
        sample_weight_val: Floats | None = None,
    ) -> Self:
        """Grow on to `max_iter` trees, or until the last `n_iter_no_change` of them gained nothing on the rows held out."""
        if not self.trees_:
            self._begin(X, y, sample_weight)
            self._watched = None if X_val is None else _Rows(self, X_val, y_val, sample_weight_val)
            self.validation_score_ = [] if self._watched is None else [-self._watched.loss()]
        while self.n_iter_ < self.max_iter and not self._stops():
            self.trees_.append(self._tree())
            if self._watched is not None:
                self._watched.add(self.trees_[-1])
                self.validation_score_.append(-self._watched.loss())
        return self

    def _begin(self, X: Floats, y: NDArray[Any], weight: Floats | None) -> None:
        """Learn bins, levels and the start, the best constant."""
        self.edges_ = [_edges(column) for column in X.T]
        self.levels_ = [np.unique(column[~np.isnan(column)]) for column in X.T]
        self._n_codes = np.array(
            [1 + len(self.levels_[j]) if flag else 2 + len(self.edges_[j]) for j, flag in enumerate(self.categorical)],
            dtype=np.int32,
        )
        if self.of_labels:
            self.classes_ = np.unique(y)
        self.start_ = np.zeros(1)
        target = _targets(self, y)
        share = np.average(target, axis=0, weights=weight)
        if self.of_labels:
            share = np.clip(share, _TINY, 1.0 - _TINY)
        self.start_ = np.log(share) if target.shape[1] > 1 else share
        if self.of_labels and target.shape[1] == 1:
            self.start_ = np.log(share / (1.0 - share))
        self._learned = _Rows(self, X, y, weight)

    def _stops(self) -> bool:
        if self._watched is None or not self.early_stopping or self.n_iter_ < self.n_iter_no_change:
            return False
        scores = self.validation_score_[-self.n_iter_no_change - 1 :]
        return max(scores[1:]) <= scores[0]

    def _tree(self) -> SymmetricTree:
        """The next tree, which the learned rows have been led through."""
        rows = self._learned
        pairs = rows.pairs()
        single = self.categorical & (self.n_iter_ % 2 == 0)
        ranks = self._ranks(rows.codes, pairs, self.categorical & ~single)
        ranked = np.array([rank[codes] for rank, codes in zip(ranks, rows.codes, strict=True)])
        columns, places, leaf = _core.symmetric_tree(
            ranked, self._n_codes, single.astype(np.uint8), pairs, _PENALTY, _DEPTH
        )
        left = [ranks[j] == k if single[j] else ranks[j] <= k for j, k in zip(columns, places, strict=True)]
        sums = np.zeros((2**_DEPTH, *pairs.shape[1:]))
        np.add.at(sums, leaf, pairs)
        values = -_RATE * sums[:, :, 0] / (sums[:, :, 1] + _PENALTY)
        rows.raw += values[leaf]
        return SymmetricTree(columns, left, values)

    def _ranks(self, codes: NDArray[np.uint8], pairs: Floats, ordered: NDArray[np.bool_]) -> list[NDArray[np.uint8]]:
        """Of every column the places of its codes in the order in which splits cut: levels of ordered ones by their rows' step, of one output in turn."""
        ranks = [np.arange(n, dtype=np.uint8) for n in self._n_codes]
        output = self.n_iter_ // 2 % pairs.shape[1]
        for j in np.flatnonzero(ordered):
            gradient, hessian = (np.bincount(codes[j], pairs[:, output, k], self._n_codes[j]) for k in (0, 1))
            ranks[j] = np.argsort(np.argsort(gradient / (hessian + _PENALTY), kind="stable")).astype(np.uint8)
        return ranks

    def coded(self, X: Floats) -> NDArray[np.uint8]:
        """Codes (d, n) of rows (n, d): 0 where missing or of a level that was not learned."""
        codes = np.empty(X.shape[::-1], dtype=np.uint8)
        for j, column in enumerate(X.T):
            if self.categorical[j]:
                place = np.searchsorted(self.levels_[j], column)
                known = np.append(self.levels_[j], np.nan)[place] == column
                codes[j] = np.where(known, place + 1, 0)
            else:
                codes[j] = np.where(np.isnan(column), 0, np.searchsorted(self.edges_[j], column) + 1)
        return codes

    def leaves(self, codes: NDArray[np.uint8], tree: SymmetricTree) -> Ints:
        """The leaf that rows of codes (d, n) reach."""
        leaf = np.zeros(codes.shape[1], dtype=np.intp)
        for column, left in zip(tree.columns, tree.left, strict=True):
            leaf = 2 * leaf + ~left[codes[column]]
        return leaf

    def staged_predict(self, X: Floats) -> Iterator[Floats]:
        """Raw values (m, outputs) after every tree."""
        codes = self.coded(X)
        raw = np.tile(self.start_, (len(X), 1))
        for tree in self.trees_:
            raw = raw + tree.values[self.leaves(codes, tree)]
            yield raw

    staged_decision_function = staged_predict


class _Rows:
    """Rows of known targets as codes (d, n), and what the trees so far say of them, (n, outputs)."""

    def __init__(self, model: SymmetricBoosting, X: Floats, y: Any, weight: Floats | None) -> None:
        self._model, self.codes, self._target = model, model.coded(X), _targets(model, y)
        self._weight = np.ones(len(X)) if weight is None else weight
        self.raw = np.tile(model.start_, (len(X), 1))

    def add(self, tree: SymmetricTree) -> None:
        self.raw += tree.values[self._model.leaves(self.codes, tree)]

    def pairs(self) -> Floats:
        """Gradients and hessians (n, outputs, 2)."""
        if not self._model.of_labels:
            gradient, hessian = self.raw - self._target, np.ones_like(self.raw)
        else:
            chances = np.exp(log_softmax(self.raw, axis=1)) if self.raw.shape[1] > 1 else expit(self.raw)
            gradient, hessian = chances - self._target, chances * (1.0 - chances)
        pairs = self._weight[:, None, None] * np.stack([gradient, hessian], axis=2)
        return np.asarray(np.round(pairs / _GRID) * _GRID)

    def loss(self) -> float:
        """Mean loss."""
        if not self._model.of_labels:
            losses = 0.5 * ((self.raw - self._target) ** 2).sum(axis=1)
        elif self.raw.shape[1] == 1:
            losses = np.logaddexp(0.0, np.where(self._target > 0, -self.raw, self.raw))[:, 0]
        else:
            losses = -(self._target * log_softmax(self.raw, axis=1)).sum(axis=1)
        return float(np.average(losses, weights=self._weight))


def _targets(model: SymmetricBoosting, y: NDArray[Any]) -> Floats:
    """Targets (n, outputs): numbers, whether a row is of the second of two classes, or which of several it is of."""
    if not model.of_labels:
        return np.asarray(y, dtype=np.float64)[:, None]
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    return np.asarray(y[:, None] == classes, dtype=np.float64)


def _edges(column: Floats) -> Floats:
    """Numbers between the bins of a column: between all of its values where they are few, or quantiles."""
    values = np.unique(column[~np.isnan(column)])
    if len(values) <= _BINS:
        return 0.5 * values[1:] + 0.5 * values[:-1]
    shares = np.arange(1, _BINS) / _BINS
    return np.unique(np.nanquantile(column, shares, method="midpoint"))
