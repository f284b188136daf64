"""Fitted trees of scikit-learn as plain arrays, whose leaves the compiled core sums.

What has no public name in scikit-learn is read here alone, by `inside`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from lacunar import _core
from lacunar._symmetric import SymmetricBoosting, SymmetricTree
from lacunar._threads import thread_count
from lacunar._typing import Floats
from lacunar.observed.rules import Array, Flag, Number, Rule, floats, whole

T = TypeVar("T", bound="Trees")
Boosting: TypeAlias = HistGradientBoostingClassifier | HistGradientBoostingRegressor | SymmetricBoosting
Forest: TypeAlias = ExtraTreesClassifier | ExtraTreesRegressor

_WORDS = 8  # of 32 bits: categories 0 to 255
_GRID = 2.0**-26  # in standard deviations of a target: what a forest can tell apart


# Attributes of scikit-learn's trees that no public name gives, by what has them.
BOOSTING_INSIDE = ("_predictors", "_baseline_prediction")
PREPROCESSOR_INSIDE = "_preprocessor"  # of a boosting with columns of categories
HISTOGRAM_TREE_INSIDE = ("nodes", "raw_left_cat_bitsets")
HISTOGRAM_NODE_INSIDE = (
    "is_leaf", "is_categorical", "bitset_idx", "feature_idx", "num_threshold", "left", "right", "missing_go_to_left", "value"
)  # fmt: skip
FOREST_TREE_INSIDE = ("missing_go_to_left",)  # of `tree_`, beside what scikit-learn documents


def inside(owner: Any, name: str) -> Any:
    """A part of scikit-learn's fitted trees; an error that names scikit-learn's version where it is called otherwise."""
    try:
        return owner[name] if isinstance(owner, np.ndarray) else getattr(owner, name)
    except (AttributeError, ValueError) as error:
        raise RuntimeError(
            f"scikit-learn {sklearn.__version__} has no {type(owner).__name__}.{name}, from which lacunar takes fitted trees. Install a "
            "version of scikit-learn that lacunar is tested with, or name members without trees"
        ) from error


class Trees(BaseEstimator):
    """Sums of trees: a start value for each of k outputs plus the leaf that a row reaches in every tree.

    Arrays of nodes stand one tree after another, children behind their node; the array of a leaf's values has one row a leaf and one
    column, added to the output of its tree, or k columns.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "n_columns_": Number(whole=True, low=0),
        "rounds_": Flag(),
        "start_": floats("outputs"),
        "roots_": Array("i", ("trees",), low=0),
        "outputs_": Array("i", ("trees",), low=0),
        "feature_": whole("nodes", low=-1, dtype=np.int32),
        "threshold_": Array("f", ("nodes",), finite=False),
        "left_": whole("nodes", dtype=np.int32),
        "right_": whole("nodes", dtype=np.int32),
        "missing_left_": Array("i", ("nodes",), low=0, high=1, dtype=np.uint8),
        "category_set_": whole("nodes", low=-1, dtype=np.int32),
        "sets_": Array("i", ("sets", _WORDS), low=0, dtype=np.uint32),
        "values_": Array("f", ("leaves", "width"), dtype=np.float32),
    }

    def sums(self, rows: Floats, n_jobs: int | None = None) -> Floats:
        """Values (m, k) of rows (m, d), NaN where an entry is missing. O(m trees depth)."""
        out: Floats = np.tile(self.start_, (len(rows), 1))
        # Thresholds of forests are of numbers in single precision.
        seen = rows.astype(np.float32) if self.rounds_ else rows
        rows = np.ascontiguousarray(seen, dtype=np.float64)
        self._packed().add(rows, out, thread_count(n_jobs))
        return out

    def _packed(self) -> _core.Forest:
        """The trees as the core walks them, packed when they are first asked. Neither copies nor files hold them."""
        packed: _core.Forest | None = self.__dict__.get("_forest")
        if packed is None:
            packed = self._forest = _core.Forest(
                self.roots_, self.outputs_, self.feature_, self.threshold_, self.left_, self.right_, self.missing_left_,
                self.category_set_, self.sets_, self.values_, self.n_columns_, len(self.start_),
            )  # fmt: skip
        return packed

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_forest", None)
        return state

    @classmethod
    def of_boosting(cls, models: Sequence[Boosting], categorical: NDArray[np.bool_], n_iter: int | None = None) -> Self:
        """The mean of boostings of one kind over the same columns after so many iterations, or all, in units of their raw predictions.

        One output, or k classes.
        """
        builder = _Builder()
        share = 1.0 / len(models)
        for model in models:
            if isinstance(model, SymmetricBoosting):
                for symmetric in model.trees_[:n_iter]:
                    builder.add_symmetric_tree(symmetric, model, share)
                continue
            columns, levels = _columns_of(categorical), levels_of(model, categorical)
            for iteration in inside(model, "_predictors")[:n_iter]:
                for output, tree in enumerate(iteration):
                    builder.add_histogram_tree(tree, columns, levels, output, share)
        start = np.mean([_start_of(model) for model in models], axis=0)
        return builder.finish(cls(), start, len(categorical), rounds=False)

    @classmethod
    def of_forest(cls, model: Forest, n_columns: int) -> Self:
        """The mean over the trees of a forest: shares of classes (k columns), or one value an output."""
        builder = _Builder()
        for estimator in model.estimators_:
            builder.add_tree(estimator.tree_, 1.0 / len(model.estimators_))
        return builder.finish(cls(), np.zeros(builder.width), n_columns, rounds=True)


def _columns_of(categorical: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Columns in the order that histogram gradient boosting gives them."""
    return np.concatenate([np.flatnonzero(categorical), np.flatnonzero(~categorical)])


def _start_of(model: Boosting) -> Floats:
    """What a model says before its first tree, one value an output."""
    return model.start_ if isinstance(model, SymmetricBoosting) else np.ravel(inside(model, "_baseline_prediction"))


def levels_of(model: Boosting, categorical: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """For every categorical column the levels that the model knows, in the order of its own numbers."""
    if not categorical.any():
        return []
    if isinstance(model, SymmetricBoosting):
        return [model.levels_[j].astype(np.int64) for j in np.flatnonzero(categorical)]
    known = inside(model, "_preprocessor").named_transformers_["encoder"].categories_
    return [np.asarray([c for c in levels if c == c], dtype=np.int64) for levels in known]


class _Builder:
    """Collects trees into the arrays of `Trees`."""

    def __init__(self) -> None:
        self._nodes: list[dict[str, NDArray[Any]]] = []
        self._roots: list[int] = []
        self._outputs: list[int] = []
        self._values: list[NDArray[np.float32]] = []
        self._sets: list[NDArray[np.uint32]] = []
        self._n_nodes = self._n_leaves = 0
        self.width = 1

    def add_histogram_tree(
        self, tree: Any, columns: NDArray[np.intp], levels: list[NDArray[np.int64]], output: int, share: float
    ) -> None:
        """A tree of histogram gradient boosting, whose nodes come in depth-first order."""
        nodes = inside(tree, "nodes")
        leaf = inside(nodes, "is_leaf").astype(bool)
        categorical = inside(nodes, "is_categorical").astype(bool) & ~leaf
        sets = np.full(len(nodes), -1, dtype=np.int32)
        for node in np.flatnonzero(categorical):
            sets[node] = len(self._sets)
            self._sets.append(
                _category_set(
                    inside(tree, "raw_left_cat_bitsets")[inside(nodes, "bitset_idx")[node]],
                    levels[inside(nodes, "feature_idx")[node]],
                    bool(inside(nodes, "missing_go_to_left")[node]),
                )
            )
        self._add(
            leaf,
            columns[inside(nodes, "feature_idx")],
            inside(nodes, "num_threshold"),
            inside(nodes, "left"),
            inside(nodes, "right"),
            inside(nodes, "missing_go_to_left"),
            sets,
            share * inside(nodes, "value")[leaf][:, None],
            output,
        )

    def add_symmetric_tree(self, tree: SymmetricTree, model: SymmetricBoosting, share: float) -> None:
        """A symmetric tree, whose nodes come level by level; those of a level are alike."""
        depth, n_leaves = len(tree.columns), len(tree.values)
        thresholds, sets = np.zeros(depth), np.full(depth, -1, dtype=np.int32)
        for level, (column, left) in enumerate(zip(tree.columns, tree.left, strict=True)):
            if model.categorical[column]:
                sets[level] = len(self._sets)
                self._sets.append(_level_set(left, model.levels_[column].astype(np.int64)))
            else:  # the first code is that of missing numbers; all or none of the others may go left
                thresholds[level] = np.r_[-np.inf, model.edges_[column], np.inf][left.sum() - 1]
        missing_left = np.array([left[0] for left in tree.left])
        nodes = np.repeat(np.arange(depth), 2 ** np.arange(depth))  # the level of every inner node
        place, leaves = np.arange(len(nodes)), np.zeros(n_leaves, dtype=np.intp)
        self._add(
            np.arange(len(nodes) + n_leaves) >= len(nodes),
            np.r_[tree.columns[nodes], leaves],
            np.r_[thresholds[nodes], leaves],
            np.r_[2 * place + 1, leaves],
            np.r_[2 * place + 2, leaves],
            np.r_[missing_left[nodes], leaves],
            np.r_[sets[nodes], leaves - 1].astype(np.int32),
            share * tree.values,
            0,
        )

    def add_tree(self, tree: Any, share: float) -> None:
        """A tree of a forest; a classifier's nodes hold shares of classes."""
        leaf = tree.children_left < 0
        values = tree.value[leaf]
        values = values[:, 0, :] if values.shape[1] == 1 else values[:, :, 0]
        self._add(
            leaf,
            tree.feature,
            tree.threshold,
            tree.children_left,
            tree.children_right,
            inside(tree, "missing_go_to_left"),
            np.full(len(leaf), -1, dtype=np.int32),
            share * values,
            0,
        )

    def _add(
        self,
        leaf: NDArray[np.bool_],
        feature: NDArray[Any],
        threshold: NDArray[Any],
        left_child: NDArray[Any],
        right_child: NDArray[Any],
        missing_left: NDArray[Any],
        sets: NDArray[np.int32],
        values: Floats,
        output: int,
    ) -> None:
        leaves = self._n_leaves + np.cumsum(leaf) - 1
        self._nodes.append(
            {
                "feature_": np.where(leaf, -1, feature).astype(np.int32),
                "threshold_": np.where(leaf, 0.0, threshold),
                "left_": np.where(leaf, leaves, left_child.astype(np.int64) + self._n_nodes).astype(np.int32),
                "right_": np.where(leaf, 0, right_child.astype(np.int64) + self._n_nodes).astype(np.int32),
                "missing_left_": missing_left.astype(np.uint8),
                "category_set_": sets,
            }
        )
        self._roots.append(self._n_nodes)
        self._outputs.append(output)
        self._values.append(values.astype(np.float32))
        self.width = values.shape[1]
        self._n_nodes, self._n_leaves = self._n_nodes + len(leaf), self._n_leaves + len(values)

    def finish(self, trees: T, start: Floats, n_columns: int, *, rounds: bool) -> T:
        for name in self._nodes[0]:
            setattr(trees, name, np.concatenate([nodes[name] for nodes in self._nodes]))
        trees.rounds_ = rounds
        trees.n_columns_, trees.start_ = n_columns, np.asarray(start, dtype=np.float64)
        trees.roots_, trees.outputs_ = np.array(self._roots, dtype=np.int32), np.array(self._outputs, dtype=np.int32)
        trees.values_ = np.ascontiguousarray(np.concatenate(self._values))
        trees.sets_ = np.array(self._sets, dtype=np.uint32).reshape(-1, _WORDS)
        return trees


def _level_set(left: NDArray[np.bool_], levels: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Bits of the levels whose codes go left; levels that were not learned are as missing, the first code."""
    flags = np.full(32 * _WORDS, left[0])
    flags[levels] = left[1:]
    packed: NDArray[np.uint32] = np.packbits(flags, bitorder="little").view(np.uint32)
    return packed


def _category_set(bits: NDArray[np.uint32], levels: NDArray[np.int64], missing_left: bool) -> NDArray[np.uint32]:
    """Bits over all levels: the model's own numbers translated, levels that it has never seen where a missing entry goes."""
    flags = np.full(32 * _WORDS, missing_left)
    place = np.arange(len(levels))
    flags[levels] = (bits[place // 32] >> (place % 32).astype(np.uint32)) & 1
    packed: NDArray[np.uint32] = np.packbits(flags, bitorder="little").view(np.uint32)
    return packed


def on_grid(Y: Floats) -> Floats:
    """Standardised targets rounded to multiples of 2^-26, sums of which are exact.

    Splits of several columns often part a small node's rows alike. Their gains are then equal, and sums in another order, or targets that differ in
    their last bit between machines or units, would choose another column.
    """
    return np.asarray(np.round(Y / _GRID) * _GRID, dtype=np.float64)
