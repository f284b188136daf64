"""`PoolModel`: pools of experts that learn pairs, with the features, groups and graphs of both sides."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar._eigen import SAME, canonical_turn, completed
from lacunar._lock import within_row
from lacunar._typing import Floats
from lacunar.completion.features import FeatureState
from lacunar.completion.graph import Graph, diffusion_features, read_adjacency
from lacunar.completion.modes import KernelModes, leading_modes
from lacunar.completion.pair_model import UNKNOWN, Batch, OneTrial, PairModel, Pairs, Trials
from lacunar.completion.side import (
    Join,
    JoinedState,
    Mix,
    MixedState,
    SideInformation,
    SideState,
)
from lacunar.observed.rules import Instance, Number, Rule, check_parts, floats, whole

MOST_FEATURES = 16  # of one side; more are projected on so many directions
_MOST_LEVELS = 64  # of a category that has majorities of its own
_MOST_NUMBERS = 2**24  # of one expert's covariances at the beginning: 128 MB
_DIFFUSION = 5.0
_PRODUCT_VARIANCE = 4.0  # of the coefficients of products of features
_MOST_TASKS = 127  # the pool of their share keeps a label in a byte
_ALIKE = 8  # of a pair: the edge, common neighbours, degrees, products of features
_RULE = {
    "trials": 1, "smoothing": 1.0, "refit_growth": 1.25, "first_refit": 32, "refit_share": 0.005, "mixer_variance": 0.2,
    "correction_variance": 0.02,
}  # fmt: skip
_MODEL = {
    "rank": 0, "row_bias": True, "col_bias": True, "features": False, "pair_features": 0, "bias": 1.0, "factor": 0.5,
    "feature": 0.5, "common": 1.0, "start": 0.3, "noise": 0.0, "doubt": 0.0, "refit": True, "sweeps": 8,
    "mirrored": False, "linked": False, "products": False,
}  # fmt: skip
# Of several thresholds: experts that the pool of their share has beside all others, since fits from several starts err
# apart; those of the pool of one threshold; and those that are other pools' answers.
_SHARE = {f"narrow rank {rank}": _MODEL | {"rank": rank, "factor": 0.1} for rank in (10, 5, 2)}
_THRESHOLD = ("recent biases", "cautious rank 2", "recent features", "fast rank 5", "rank 5")
_OUTSIDE = ("lower threshold", "share of thresholds")


def bilinear_experts(*, features: bool, products: bool, same: bool, shared_ids: bool) -> dict[str, dict[str, Any]]:
    """Options of the bilinear experts by name.

    features: a side has some; products: both have those of a graph or kernel; same: both have the same side
    information; shared_ids: an id may be a row and a column.
    """
    experts: dict[str, dict[str, Any]] = {
        "biases": {"sweeps": 4},
        "recent biases": {"noise": 1e-3, "refit": False},
        "fast rows": {"noise": 0.1, "refit": False, "col_bias": False},
        "fast columns": {"noise": 0.1, "refit": False, "row_bias": False},
        "recent rank 2": {"rank": 2, "noise": 1e-3, "refit": False, "factor": 1.0},
        "rank 1": {"rank": 1, "sweeps": 6},
        "rank 2": {"rank": 2, "sweeps": 6},
        "cautious rank 2": {"rank": 2, "factor": 1.0, "doubt": 0.3, "sweeps": 4},
    }
    if features:
        recent = {"features": True, "feature": 3.0, "noise": 1e-3, "refit": False}
        experts |= {
            "features": {"features": True},
            "features, rank 2": {"features": True, "rank": 2},
            "recent features": recent,
        }
    alone = {"row_bias": False, "col_bias": False}
    if products:
        experts["products of features"] = {"products": True, "common": _PRODUCT_VARIANCE, "refit": False, **alone}
    if same:
        experts["alike"] = {"pair_features": _ALIKE, **alone}
        experts["alike, biases"] = {"pair_features": _ALIKE + MOST_FEATURES}
    if shared_ids:
        experts["both ways"] = {"rank": 2, "mirrored": True, "sweeps": 4}
        experts["links so far"] = {"linked": True, "refit": False, **alone}
    experts["fast rank 5"] = {"rank": 5, "noise": 0.03, "refit": False, "factor": 1.0}
    experts["rank 5"] = {"rank": 5}
    return {name: _MODEL | options for name, options in experts.items()}


class _SideItem:
    """One item of the side information of a side as arrays for the pool: features (size, d), levels (size, G) of
    categories, a graph.
    """

    def __init__(self, described: SideInformation, state: SideState, most_features: int) -> None:
        self.state, self.adjacency = state, None
        self.fixed: Floats | None = None  # features (size, d) where vertices do not grow
        self.modes: KernelModes | None = None  # gives features where a kernel grows
        self.rotation = np.zeros((0, 0))
        self.blocks: list[tuple[int, int]] = []  # of a category: its first column in the factor, its number of levels
        self.names: list[str] = []
        if isinstance(described, Graph):
            self.adjacency = read_adjacency(described.adjacency, described.ids)[0]
            self.fixed = diffusion_features(self.adjacency, max(most_features - 1, 1), _DIFFUSION, normalize=True)
        elif isinstance(state, FeatureState):
            self._of_features(state, most_features)
        elif state.kind == "dense" and state.grows:
            self.modes = KernelModes(state, most_features)
        elif state.kind == "dense" and state.size:
            self.fixed = leading_modes(state.dense(), most_features)

    def _of_features(self, state: FeatureState, most_features: int) -> None:
        first = 0
        for column in state.table_columns:
            width = 1 if column["levels"] is None else len(column["levels"])
            if column["levels"] is not None and 0 < width <= _MOST_LEVELS:
                self.blocks.append((first, width))
                self.names.append(column["name"])
            first += width
        raw = state.factor()[0]
        self.rotation = np.eye(raw.shape[1])
        if raw.shape[1] > most_features:
            self.rotation = _axes(raw, most_features)

    @property
    def has_modes(self) -> bool:
        """Whether features come from a graph or a kernel."""
        return self.fixed is not None or self.modes is not None

    @property
    def d(self) -> int:
        """Features of a vertex."""
        if self.modes is not None:
            return self.modes.most
        return self.rotation.shape[1] if self.fixed is None else self.fixed.shape[1]

    def raw(self, first: int, n: int) -> Floats:
        """Rows (n, d) of the factor for n vertices from `first` on."""
        return self.state.factor()[0][first:] if self.rotation.size else np.zeros((n, 0))

    def features(self, raw: Floats, first: int) -> Floats:
        """Features (n, d) of n vertices from `first` on. raw: their rows of the factor."""
        if self.modes is not None:
            return self.modes.features(range(first, self.state.size))
        features: Floats = raw @ self.rotation if self.fixed is None else self.fixed[first:]
        return features

    def arrays(self) -> dict[str, Floats]:
        """What is computed once: the rotation of features, and the features of a graph or kernel."""
        modes = self.fixed if self.modes is None else self.modes.modes
        return {"rotation": self.rotation, "modes": np.zeros((0, 0)) if modes is None else modes}

    def groups(self, raw: Floats) -> NDArray[np.int32]:
        """Level (n, G) of every category, -1 for none. raw: rows (n, d) of the factor."""
        levels = np.full((len(raw), len(self.blocks)), -1, np.int32)
        for k, (start, width) in enumerate(self.blocks):
            block = raw[:, start : start + width]
            levels[:, k] = np.where(block.any(axis=1), block.argmax(axis=1), -1)
        return levels


def _compared(raw: Floats) -> Floats:
    """Standardised features (size, D), rows of length 1: the product of two rows is the vertices' similarity."""
    if not 0 < raw.size <= _MOST_NUMBERS:
        return np.zeros((len(raw), 0))
    standardised: Floats = (raw - raw.mean(axis=0)) / np.maximum(raw.std(axis=0), 1e-3)
    standardised /= np.maximum(np.linalg.norm(standardised, axis=1), 1e-12)[:, None]
    return standardised


class SideFeatures:
    """Features (at most `most_features`), categories and graph of one side, from all items of its side information."""

    def __init__(self, described: SideInformation, state: SideState, most_features: int) -> None:
        parts = list(_parts(described, state))
        self._items = [_SideItem(*part, max(1, most_features // len(parts))) for part in parts]
        self.names = [name for item in self._items for name in item.names]
        self.adjacency = next((item.adjacency for item in self._items if item.adjacency is not None), None)
        self.d = sum(item.d for item in self._items)
        self.has_modes = any(item.has_modes for item in self._items)
        self._modes = [item.modes for item in self._items if item.modes is not None]

    def plain(self, first: int, n_vertices: int) -> dict[str, Any]:
        """Arrays for the core: features, levels and edges of vertices `first` to `n_vertices`."""
        size = n_vertices - first
        widths = [width for item in self._items for _, width in item.blocks]
        raws = [(item, item.raw(first, size)) for item in self._items]
        compared = np.zeros((0, 0)) if first else np.hstack([_compared(raw) for _, raw in raws])
        tables = {
            "size": size,
            "d": self.d,
            "phi": np.hstack([item.features(raw, first) for item, raw in raws]).reshape(size, self.d),
            "levels": widths,
            "groups": np.hstack([item.groups(raw) for item, raw in raws]).reshape(size, len(widths)),
            "wide": compared.shape[1],
            "compared": compared,
        }
        if self.adjacency is not None and first == 0:
            A = self.adjacency
            tables |= {"indptr": A.indptr.astype(np.int64), "near": A.indices.astype(np.int32), "weight": A.data}
        return {
            name: np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part for name, part in tables.items()
        }

    def state(self) -> list[dict[str, Any]]:
        """The rotation and the modes of every item, since another machine may find other eigenvectors."""
        return [{name: part.copy() for name, part in item.arrays().items()} for item in self._items]

    def take(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Restore a `state` of the same side information."""
        for item, part in zip(self._items, state, strict=True):
            rules: dict[str, Rule] = {
                name: floats(*array.shape, dtype=np.float64) for name, array in item.arrays().items()
            }
            check_parts(part, rules, "a state", {})
            item.rotation = part["rotation"].copy()
            if item.fixed is not None:
                item.fixed = part["modes"].copy()
            if item.modes is not None:
                item.modes.set_modes(part["modes"].copy())

    # -- kernels that grow --------------------------------------------------------------------------------------------

    @property
    def has_growing_kernel(self) -> bool:
        """Whether new vertices may add a direction to the features."""
        return bool(self._modes)

    @property
    def landmarks(self) -> list[list[int]]:
        """For every kernel that grows, the vertices that added a direction."""
        return [list(modes.landmarks) for modes in self._modes]

    def set_landmarks(self, landmarks: Sequence[Sequence[int]], n_vertices: int) -> None:
        """Restore the landmarks of a state; ValueError for vertices that add no direction."""
        rule = whole("landmarks", distinct=True, high=n_vertices - 1)
        for modes, vertices in zip(self._modes, landmarks, strict=True):
            rule.check(np.array(vertices, np.int64), "landmarks", {})
            modes.set_landmarks(vertices)

    @property
    def settled(self) -> bool:
        """Whether no vertex can add a direction any more."""
        return all(modes.full for modes in self._modes)

    @property
    def n_directions(self) -> int:
        """Number of directions that vertices have added."""
        return sum(len(modes.landmarks) for modes in self._modes)

    def open(self, vertex: int) -> None:
        """Let a vertex add its direction, where it has one, before it is learned for the first time."""
        for modes in self._modes:
            if modes.opens(vertex):
                modes.open(vertex)


def _parts(described: SideInformation, state: SideState) -> Iterator[tuple[SideInformation, SideState]]:
    """Items of side information inside `Mix` and lists, each with its state."""
    if isinstance(state, MixedState) and isinstance(described, Mix):
        yield from _parts(described.side, state.base)
    elif isinstance(state, JoinedState) and isinstance(described, Join):
        for side, part in zip(described.sides, state.parts, strict=True):
            yield from _parts(side, part)
    else:
        yield described, state


def _log_odds(p: Floats) -> Floats:
    odds: Floats = np.log(np.maximum(p, 1e-300) / np.maximum(1.0 - p, 1e-300))
    return odds


def _axes(raw: Floats, most_features: int) -> Floats:
    """The leading right singular vectors (D, most_features) of features (n, D), D > most_features; those of value 0
    complete them.
    """
    _, sizes, axes = np.linalg.svd(raw, full_matrices=False)
    rank = int(np.sum(sizes > SAME * sizes.max(initial=0.0)))
    sizes, axes = sizes[:rank], axes[:rank].T
    return completed(axes @ canonical_turn(sizes, axes, most_features), most_features)


def _most_features(others: int) -> int:
    """How many features a side may have: each of `others` vertices stores a coefficient of every one and their
    covariance.
    """
    return max(1, min(MOST_FEATURES, int(np.sqrt(_MOST_NUMBERS / max(others, 1))) - 3))


class PoolModel(PairModel):
    """A pool for every task (threshold), on one table of ids a side.

    Of several thresholds a first pool learns which share of them is reached: one label says something of all of them,
    and what it predicts is an expert of the pools of the thresholds.
    """

    def __init__(self, options: Any, n_tasks: int) -> None:
        if n_tasks > _MOST_TASKS:
            raise ValueError(f"thresholds must be at most {_MOST_TASKS}; got {n_tasks}. Keep fewer of them.")
        self._begin(options)
        rows, cols = self._tables = self.rows, self.cols
        self.side_features = [
            SideFeatures(rows.described, rows.side, _most_features(cols.base)),
            SideFeatures(cols.described, cols.side, _most_features(rows.base)),
        ]
        alike = rows.side.digest == cols.side.digest
        self.has_growing_kernel = any(side.has_growing_kernel for side in self.side_features)
        # Directions of rows are not those of columns.
        self._same = alike and not self.has_growing_kernel and min(side.d for side in self.side_features) > 0
        self._shared_ids = self._same or (rows.alike and cols.alike and rows.base == cols.base)
        self._make_pools(n_tasks)

    def _make_pools(self, n_tasks: int) -> None:
        features = any(side.d for side in self.side_features)
        products = all(side.has_modes for side in self.side_features)
        experts = bilinear_experts(features=features, products=products, same=self._same, shared_ids=self._shared_ids)
        self._sizes = self._sizes_now()
        tables = [side.plain(0, size) for side, size in zip(self.side_features, self._sizes, strict=True)]
        options = {"extra": 0, "same": self._same, "shared_ids": self._shared_ids}

        def pool(experts: dict[str, dict[str, Any]], options: dict[str, Any], trials: int = 1) -> _core.PairPool:
            options = _RULE | options | {"trials": trials, "bilinear": list(experts.values())}
            return _core.PairPool(options, *tables)

        outside: Sequence[str] = ()
        self.pools, self._trials = [], [1] * n_tasks
        if n_tasks > 1:  # the answer of the share's pool stands for most experts at every threshold
            self.pools, self._trials = [pool(experts | _SHARE, options, n_tasks)], [n_tasks, *self._trials]
            experts, outside = {name: experts[name] for name in _THRESHOLD if name in experts}, _OUTSIDE
            options = {"extra": len(outside), "same": False, "shared_ids": False}
        self.task_pools = [pool(experts, options) for _ in range(n_tasks)]
        self.pools += self.task_pools
        self._directions = [side.n_directions for side in self.side_features]  # that the pools know of
        self._named = [len(table.number) for table in self._tables]
        self._mirror(self._tables[0].number)
        self.names = [*self._counting_experts(), *experts, "same pair", *outside, "mixture", "mixture by counts"]

    def _counting_experts(self) -> list[str]:
        """Names of the experts that count labels: of rows and columns, of categories and of neighbours."""
        sides = list(zip(self.side_features, self._tables, ("column", "row"), strict=True))
        groups = [f"{name} of {table.name} x {other}" for side, table, other in sides for name in side.names]
        votes = [f"neighbours of {table.name}" for side, table, _ in sides if side.adjacency is not None]
        return ["majority", "majority of columns", "majority of rows", *groups, *votes]

    # -- scores -------------------------------------------------------------------------------------------------------

    def _sizes_now(self) -> list[int]:
        """Vertices of both sides: every one has a name or is the spare one."""
        return [len(table.number) + (table.spare != UNKNOWN) for table in self._tables]

    def _grow(self) -> None:
        """Add to the pools the vertices that the side information has gained."""
        named = [len(table.number) for table in self._tables]
        sizes = self._sizes_now()
        if (sizes, named) == (self._sizes, self._named):
            return
        for side, features in enumerate(self.side_features):
            for pool in self.pools:  # each from its own size, since an earlier call may have failed half-way
                if pool.size(side) < sizes[side]:
                    pool.grow(side, features.plain(pool.size(side), sizes[side]))
            self._sizes[side] = max(self._sizes[side], sizes[side])
        for side, table in enumerate(self._tables):  # a vertex may get its name late
            if named[side] != self._named[side]:
                self._mirror(islice(reversed(table.number), max(named[side] - self._named[side], 0)))
                self._named[side] = named[side]

    def _mirror(self, names: Iterable[Hashable]) -> None:
        """Tell the pools which of `names` are both a row and a column."""
        if not self._shared_ids:
            return
        rows, cols = (table.number for table in self._tables)
        pairs = np.array([(rows[k], cols[k]) for k in names if k in rows and k in cols], np.int32).reshape(-1, 2)
        pairs = pairs[(pairs < self._sizes).all(axis=1)]
        for pool in self.pools:
            pool.set_shared(*(np.ascontiguousarray(part) for part in pairs.T))

    def probabilities(self, scores: Floats) -> Floats:
        """P(y = 1) of scores (n, L)."""
        p: Floats = 0.5 * (1.0 + scores)
        return p

    def score_one(self, pair: tuple[Hashable, Hashable], policy: str) -> Floats:
        """2 P(y = 1) - 1 of every task for one pair, (L,)."""
        i, j = self._vertices_one(pair, policy)
        self._grow()
        mirrored = self._other_side_one(pair[0], i, 0), self._other_side_one(pair[1], j, 1)
        p = np.empty((len(self.pools), 1))
        for k, pool in enumerate(self.pools):
            p[k] = pool.ask_one(i, j, *mirrored, self.outside_odds(k, p)[0].tolist())
        scores: Floats = self.task_scores(p)[0]
        return scores

    def _other_side(self, ids: list[Hashable], vertices: NDArray[np.int32], side: int) -> NDArray[np.int32]:
        """Vertices (n,) on the other side of ids that were never learned on this one; -1 for all other ids."""
        others = np.full(len(ids), UNKNOWN, np.int32)
        if self._shared_ids:
            for k in np.flatnonzero((vertices == UNKNOWN) | (vertices == self._tables[side].spare)):
                others[k] = self._other_side_one(ids[k], int(vertices[k]), side)
        return others

    def _other_side_one(self, name: Hashable, vertex: int, side: int) -> int:
        """`_other_side` of one id."""
        if not self._shared_ids or vertex not in (UNKNOWN, self._tables[side].spare):
            return UNKNOWN
        return self._tables[1 - side].number.get(name, UNKNOWN)

    def scores(self, pairs: Pairs, policy: str) -> Floats:
        """2 P(y = 1) - 1 of every task, (n, L)."""
        i, j = (np.ascontiguousarray(part, dtype=np.int32) for part in self._vertices(pairs, policy))
        self._grow()
        mirrored = self._other_side(pairs[0], i, 0), self._other_side(pairs[1], j, 1)
        p = np.empty((len(self.pools), len(i)))
        for k, pool in enumerate(self.pools):
            pool.ask(i, j, *mirrored, self.outside_odds(k, p), p[k])
        return self.task_scores(p)

    def task_scores(self, p: Floats) -> Floats:
        """2 P(y = 1) - 1 of every task (n, L), from the answers of all pools (pools, n)."""
        scores: Floats = 2 * p[-len(self.task_pools) :].T - 1
        return scores

    def outside_odds(self, k: int, p: Floats) -> Floats:
        """Log-odds (n, E) that pool k takes from the answers p (pools, n) of the pools before it: of the threshold
        below, nan for the lowest, and of the share. The first pool takes none.
        """
        if k == 0:
            return np.empty((p.shape[1], 0))
        lower = _log_odds(p[k - 1]) if k > 1 else np.full(p.shape[1], np.nan)
        return np.column_stack([lower, _log_odds(p[0])])

    # -- learning ------------------------------------------------------------------------------------------------------

    def one(self, pair: tuple[Hashable, Hashable], y: Sequence[float]) -> OnePoolTrial:
        """One pair with labels y (L,)."""
        i, j = self._vertices_one(pair, "learn")
        self._grow()
        return OnePoolTrial(self, i, j, [sum(y), *y] if len(self.pools) > 1 else y)

    def batch(self, pairs: Pairs, y: Floats, *, values: bool) -> PoolBatch:
        """Pairs with labels y (n, L)."""
        labels = np.column_stack([y.sum(axis=1), y]) if len(self.pools) > 1 else y
        batch = PoolBatch(self, self._vertices(pairs, "learn"), labels)
        self._grow()
        return batch

    def n_learned(self, task: int) -> int:
        """Trials that the pool of a task has learned."""
        return self.pools[task].n_seen

    # -- kernels that grow --------------------------------------------------------------------------------------------

    def first_trials(self, i: NDArray[np.int32], j: NDArray[np.int32]) -> NDArray[np.int64]:
        """Trials, ascending, at which a vertex comes for the first time on a side that may still add directions."""
        trials: set[int] = set()
        for side, table, vertices in zip(self.side_features, self._tables, (i, j), strict=True):
            if not side.settled and table.fresh:
                values, places = np.unique(vertices, return_index=True)
                trials.update(places[np.isin(values, list(table.fresh))].tolist())
        return np.array(sorted(trials), np.int64)

    def open(self, i: int, j: int) -> None:
        """Let the vertices of a pair that were never learned add their directions, and tell the pools."""
        for k, (side, table, vertex) in enumerate(zip(self.side_features, self._tables, (i, j), strict=True)):
            if not side.has_growing_kernel:
                continue
            if vertex in table.fresh:
                side.open(vertex)
            if side.n_directions != self._directions[k]:
                self._renew(k)

    def _renew(self, side: int) -> None:
        """Replace the features of a side in the pools."""
        phi = self.side_features[side].plain(0, self._sizes[side])["phi"]
        for pool in self.pools:
            pool.set_features(side, phi)
        self._directions[side] = self.side_features[side].n_directions

    # -- weights -------------------------------------------------------------------------------------------------------

    @property
    def weights(self) -> Floats:
        """Shares of experts and mixtures, (L, E)."""
        return np.array([pool.weights() for pool in self.task_pools])

    def path(self) -> tuple[NDArray[np.int64], Floats]:
        """Trials (T,) at which refits began, and the weights (T, L, E) then."""
        paths = [pool.state(False)["path"].reshape(-1, 1 + len(self.names)) for pool in self.task_pools]
        return paths[0][:, 0].astype(np.int64), np.stack([path[:, 1:] for path in paths], axis=1)

    # -- state ---------------------------------------------------------------------------------------------------------

    def _learned(self) -> dict[str, Any]:
        self._grow()
        return {
            "side_features": [side.state() for side in self.side_features],
            "landmarks": [side.landmarks for side in self.side_features],
            "pools": [pool.state(True) for pool in self.pools],
        }

    def _take(self, state: Mapping[str, Any]) -> None:
        self._take_features(state)
        for k, (side, landmarks) in enumerate(zip(self.side_features, state["landmarks"], strict=True)):
            if landmarks != side.landmarks:
                side.set_landmarks(landmarks, self._sizes[k])
                self._renew(k)
        for pool, part in zip(self.pools, state["pools"], strict=True):
            pool.set_state(part)

    def _take_features(self, state: Mapping[str, Any]) -> None:
        """Restore the features of a state, make the pools anew from them and check the pools' states against these."""
        for side, part in zip(self.side_features, state["side_features"], strict=True):
            side.take(part)
        self._make_pools(len(self.task_pools))
        for pool, trials, part in zip(self.pools, self._trials, state["pools"], strict=True):
            self._check_pool(pool, trials, part, int(state["n_seen"]))

    def _check_pool(self, pool: _core.PairPool, trials: int, state: Mapping[str, Any], n: int) -> None:
        """Check every array of a pool's state of n trials; a file may hold anything."""
        begun = pool.state(False)
        rules: dict[str, Rule] = {
            name: floats(len(part), dtype=np.float64)
            for name, part in begun.items()
            if isinstance(part, np.ndarray) and name != "path"
        }
        sizes = {"rows": self._sizes[0], "cols": self._sizes[1]}
        rules |= {
            "path": Instance(np.ndarray),
            "n_seen": Number(whole=True, low=n, high=n),
            "next_refit": Number(low=1),
            "seen_rows": whole(n, dtype=np.int32, high=self._sizes[0] - 1),
            "seen_cols": whole(n, dtype=np.int32, high=self._sizes[1] - 1),
            "seen_labels": Instance(np.ndarray),
        }
        check_parts(state, rules, "a state of a pool", sizes)
        labels, path = state["seen_labels"], state["path"]
        if labels.dtype != np.int8 or labels.shape != (n,) or not np.isin(labels, range(-trials, trials + 1, 2)).all():
            raise ValueError(f"labels of a state must be {n} sums of {trials} signs; they are not. Take it again.")
        if path.dtype != np.float64 or path.ndim != 1 or path.size % (1 + pool.hedged) or not np.isfinite(path).all():
            raise ValueError("the path of weights must be finite rows; it is not. Take the state again.")


class OnePoolTrial(OneTrial):
    """The steps of one pair through the pools of all tasks."""

    _model: PoolModel

    def __init__(self, model: PoolModel, i: int, j: int, y: Sequence[float]) -> None:
        super().__init__(model, i, j, y)
        self._p = np.zeros((len(y), 1))  # P(y = 1) of every pool
        self._begun = model.pools[0].n_seen  # that of every pool between two trials
        self._due = model.has_growing_kernel

    def run(self) -> None:
        """See `OneTrial`."""
        if not self._due:
            self._learn(0, self._model.pools[0])

    def keep(self) -> None:
        """See `OneTrial`."""
        pools = self._model.pools
        if self._due:  # its directions must be there before any pool learns
            self._model.open(*self._pair)
        elif pools[0].n_seen == self._begun:
            return
        for k, pool in enumerate(pools):
            if pool.n_seen == self._begun:
                self._learn(k, pool)
            self._p[k] = pool.mixture
        signs = self._y[-len(self._model.task_pools) :]
        wrong = (self._model.task_scores(self._p)[0] >= 0) != (np.array(signs) > 0)
        self._count(True, bool(wrong.any()))

    def _learn(self, task: int, pool: _core.PairPool) -> None:
        within_row(pool.learn_one, *self._pair, self._y[task], self._model.outside_odds(task, self._p)[0].tolist())


class PoolBatch(Batch):
    """The steps of a batch of pairs through the pools of all tasks."""

    _model: PoolModel

    def trials(self) -> Trials:
        """The predictions."""
        scores = self._model.task_scores(self._answers)
        return Trials(scores, self._model.probabilities(scores), self._updated, self._wrong)

    def _learn(self, task: int, start: int, stop: int) -> None:
        part = slice(start, stop)
        extra = self._model.outside_odds(task, self._answers[:, part])
        arrays = self._i[part], self._j[part], self._labels[task, part], extra, self._answers[task, part]
        within_row(self._model.pools[task].run, *arrays, None)

    def _note(self, start: int, stop: int) -> None:
        positive = self._model.task_scores(self._answers[:, start:stop]) >= 0
        signs = self._labels[-positive.shape[1] :, start:stop].T
        self._wrong[start:stop] = (positive != (signs > 0)).any(axis=1)

    def _cuts(self) -> NDArray[np.int64]:
        return self._model.first_trials(self._i, self._j)

    def _open(self, trial: int) -> None:
        self._model.open(int(self._i[trial]), int(self._j[trial]))
