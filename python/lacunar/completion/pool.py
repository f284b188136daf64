"""The pool of experts: what it is told of rows and columns, which experts it has, and its place in a classifier."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from lacunar import _core
from lacunar._snapshot import going_back
from lacunar.completion.features import FeatureState
from lacunar.completion.graph import Graph, diffusion_features, read_adjacency
from lacunar.completion.ids import IdTable
from lacunar.completion.model import (
    Member,
    Model,
    OnlineLogistic,
    Pairs,
    Places,
    Predicted,
    Trials,
    WithReserve,
    in_turn,
)
from lacunar.completion.side import Floats, Identity, IdentityState, Mix, MixedState, SideInformation, SideState
from lacunar.completion.tuning import tune
from lacunar.observed.rules import Instance, Number, Rule, check_parts, floats, whole

MOST_FEATURES = 16  # of one side; more are turned into so many directions
_MOST_LEVELS = 64  # of a category that has majorities of its own
_MOST_NUMBERS = 2**24  # of one expert's covariances at the beginning: 128 MB
_DIFFUSION = 5.0
_SLICE = 4096  # trials between two looks for Ctrl-C; the cuts change no bit
_GRAPH_FEATURES = 7
_MIX = (0.6, 0.2, 0.2)  # info, const, own
_MOST_VERTICES = 4000  # up to which the matrix exponentiated gradient takes part
_COUNTS = ("n_seen", "n_updates", "n_mistakes")
_RULE = {
    "smoothing": 1.0, "refit_growth": 1.25, "first_refit": 32, "sweeps": 4, "mixer_variance": 0.1, "mixer_noise": 0.0,
}  # fmt: skip
_MODEL = {
    "rank": 0, "row_bias": True, "col_bias": True, "features": False, "pair_features": 0, "bias": 1.0, "factor": 0.5,
    "feature": 0.5, "common": 1.0, "start": 0.3, "noise": 0.0, "doubt": 0.0, "refit": True,
}  # fmt: skip


def bilinear_experts(*, features: bool, same: bool) -> dict[str, dict[str, Any]]:
    """The bilinear experts by name: biases, factors, features, and pairs of vertices of one graph."""
    made: dict[str, dict[str, Any]] = {
        "biases": {},
        "recent biases": {"noise": 1e-3, "refit": False},
        "recent rank 2": {"rank": 2, "noise": 1e-3, "refit": False, "factor": 1.0},
        "rank 1": {"rank": 1},
        "rank 2": {"rank": 2},
        "cautious rank 2": {"rank": 2, "factor": 1.0, "doubt": 0.3},
    }
    if features:
        made |= {"features": {"features": True}, "features, rank 2": {"features": True, "rank": 2}}
    if same:
        alone = {"row_bias": False, "col_bias": False}
        made["shared neighbours"] = {"pair_features": _GRAPH_FEATURES, **alone}
        made["shared neighbours, biases"] = {"pair_features": _GRAPH_FEATURES + MOST_FEATURES}
    made["rank 5"] = {"rank": 5}
    return {name: _MODEL | options for name, options in made.items()}


class Known:
    """What the pool is told of one side: features (size, d), groups (size, G) of categories, a graph of neighbours.

    `room` bounds d. What has grown since the side began is encoded in the same way.
    """

    def __init__(self, described: SideInformation, state: SideState, room: int) -> None:
        while isinstance(state, MixedState):
            state = state.base
            described = described.side if isinstance(described, Mix) else described
        self._state, self.adjacency = state, None
        self._features: Floats | None = None  # of vertices that do not grow
        self._groups: list[tuple[int, int]] = []  # first place in the factor, levels
        self.names: list[str] = []
        self._turn = np.zeros((0, 0))
        if isinstance(described, Graph):
            self.adjacency = read_adjacency(described.adjacency)[0]
            self._features = diffusion_features(self.adjacency, max(room - 1, 1), _DIFFUSION, normalize=True)
        elif isinstance(state, FeatureState):
            self._of_features(state, room)
        elif state.kind == "dense" and not state.grows and state.size:
            self._features = _modes(state.dense(), room)

    def _of_features(self, state: FeatureState, room: int) -> None:
        first = 0
        for column in state.table_columns:
            width = 1 if column["levels"] is None else len(column["levels"])
            if column["levels"] is not None and 0 < width <= _MOST_LEVELS:
                self._groups.append((first, width))
                self.names.append(column["name"])
            first += width
        raw = state.factor()[0]
        self._turn = np.eye(raw.shape[1])
        if raw.shape[1] > room:
            self._turn = np.linalg.svd(raw, full_matrices=False)[2][:room].T

    @property
    def d(self) -> int:
        """Features."""
        return self._turn.shape[1] if self._features is None else self._features.shape[1]

    @property
    def is_kernel(self) -> bool:
        """Whether there is a kernel of which features and groups say little."""
        return self.adjacency is None and self._state.kind != "factor"

    def plain(self, first: int = 0) -> dict[str, Any]:
        """For the core: what is known of the vertices from `first` on."""
        size = self._state.size - first
        raw = self._state.factor()[0][first:] if self._turn.size else np.zeros((size, 0))
        features = raw @ self._turn if self._features is None else self._features[first:]
        groups = np.full((size, len(self._groups)), -1, np.int32)
        for k, (start, width) in enumerate(self._groups):
            block = raw[:, start : start + width]
            groups[:, k] = np.where(block.any(axis=1), block.argmax(axis=1), -1)
        made = {
            "size": size,
            "d": self.d,
            "phi": np.ascontiguousarray(features, dtype=np.float64).reshape(size, self.d),
            "levels": [width for _, width in self._groups],
            "groups": groups,
        }
        if self.adjacency is not None and first == 0:
            A = self.adjacency
            made |= {"indptr": A.indptr.astype(np.int64), "near": A.indices.astype(np.int32), "weight": A.data}
        return made

    def snapshot(self) -> dict[str, Any]:
        """How features were turned, and those of a graph: another machine may find other eigenvectors."""
        return {
            "turn": self._turn.copy(),
            "modes": np.zeros((0, 0)) if self._features is None else self._features.copy(),
        }

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Of a snapshot of the same side."""
        sizes = (self._turn.shape, (0, 0) if self._features is None else self._features.shape)
        for name, (n, d) in zip(("turn", "modes"), sizes, strict=True):
            given = kept[name]
            if not isinstance(given, np.ndarray) or given.shape != (n, d) or given.dtype != np.float64:
                raise ValueError(f"{name} must be of shape {(n, d)}; it is not. Take the snapshot again.")
            if not np.isfinite(given).all():
                raise ValueError(f"{name} must be finite; it is not. Take the snapshot again.")
        self._turn = kept["turn"].copy()
        if self._features is not None:
            self._features = kept["modes"].copy()


def _log_odds(p: Floats) -> Floats:
    made: Floats = np.log(p / (1.0 - p))
    return made


def _modes(K: Floats, room: int) -> Floats:
    """The leading directions (n, room) of a kernel: their products are its nearest of that rank."""
    n = len(K)
    values, vectors = scipy.linalg.eigh(K, subset_by_index=[max(n - room, 0), n - 1])
    made: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return made


def _mixed(state: SideState) -> SideState:
    """With a share of what all have in common and of an id's own, as `Mix` does it."""
    return state if isinstance(state, MixedState | IdentityState) else MixedState(state, *_MIX)


def _room(others: int) -> int:
    """Features of a side whose coefficients every one of `others` vertices keeps, with their covariance."""
    return max(1, min(MOST_FEATURES, int(np.sqrt(_MOST_NUMBERS / max(others, 1))) - 3))


class PoolModel(Model):
    """A pool for every task (threshold), on one table of ids a side."""

    def __init__(self, options: Any, n_tasks: int) -> None:
        sides = [Identity() if each is None else each for each in (options.rows, options.cols)]
        tables = [IdTable(each, name) for each, name in zip(sides, ("rows", "cols"), strict=True)]
        self._begin(tables, n_tasks)
        rows, cols = tables
        self.known = [
            Known(rows.described, rows.side, _room(cols.side.size)),
            Known(cols.described, cols.side, _room(rows.side.size)),
        ]
        graphs = [each.adjacency is not None for each in self.known]
        self._same = all(graphs) and rows.side.digest == cols.side.digest
        if options.randomized:
            raise ValueError(
                "randomized must be False for the pool; got True. Pass experts=None for the learner of the paper."
            )
        tuning = tune(options, rows.side, cols.side)
        states = _mixed(rows.side), _mixed(cols.side)
        few = rows.side.size + cols.side.size <= _MOST_VERTICES
        taking_part = few and (self._same or any(each.is_kernel for each in self.known))
        self.members = [
            [Member(rows, cols, tuning, prior=float(options.prior), tol=options.tol, sides=states)]
            if taking_part
            else []
            for _ in range(n_tasks)
        ]
        self.gammas = np.array([tuning.gamma])
        self.curves = [OnlineLogistic(tuning.gamma) for _ in range(n_tasks)]
        self._make_pools(n_tasks)

    def _make_pools(self, n_tasks: int) -> None:
        features = any(each.d for each in self.known)
        experts = bilinear_experts(features=features, same=self._same)
        options = {**_RULE, "extra": len(self.members[0]), "same": self._same, "bilinear": list(experts.values())}
        told = [each.plain() for each in self.known]
        self.pools = [_core.PairPool(options, *told) for _ in range(n_tasks)]
        self._sizes = [table.side.size for table in self.tables]
        groups = [
            f"{name} of {table.name} x {other}"
            for each, table, other in zip(self.known, self.tables, ("column", "row"), strict=True)
            for name in each.names
        ]
        votes = [
            f"neighbours of {table.name}"
            for each, table in zip(self.known, self.tables, strict=True)
            if each.adjacency is not None
        ]
        self.names = [
            "majority",
            "majority of columns",
            "majority of rows",
            *groups,
            *votes,
            *experts,
            "same pair",
            *(["matrix exponentiated gradient"] * len(self.members[0])),
            "mixture",
            "mixture by counts",
        ]

    # -- scores -------------------------------------------------------------------------------------------------------

    def _grow(self) -> None:
        """Takes in the vertices that the side information has gained."""
        for side, (table, known) in enumerate(zip(self.tables, self.known, strict=True)):
            if table.side.size > self._sizes[side]:
                more = known.plain(self._sizes[side])
                for pool in self.pools:
                    pool.grow(side, more)
                self._sizes[side] = table.side.size

    def _at(self, places: Places) -> list[NDArray[np.int32]]:
        self._grow()
        return [np.ascontiguousarray(places[id(table)], dtype=np.int32) for table in self.tables]

    def probabilities(self, scores: Floats) -> Floats:
        """P(y = 1) of scores (n, L)."""
        made: Floats = 0.5 * (1.0 + scores)
        return made

    @in_turn
    def expert_scores(self, pairs: Pairs, policy: str) -> list[Floats]:
        """2 P(y = 1) - 1, (n, 1), for every task."""
        return [each[:, None] for each in self._asked(self._vertices(pairs, policy))]

    @in_turn
    def score_one(self, pair: tuple[Hashable, Hashable], policy: str) -> Floats:
        """2 P(y = 1) - 1 of every task for one pair, (L, 1)."""
        return np.array(self._asked(self._vertices(([pair[0]], [pair[1]]), policy)))

    def _asked(self, places: Places) -> list[Floats]:
        i, j = self._at(places)
        made = []
        for k, pool in enumerate(self.pools):
            out, extra = np.empty(len(i)), np.empty((len(i), len(self.members[k])))
            for e, member in enumerate(self.members[k]):
                p = self.curves[k].probabilities(member.scores(i.astype(np.int64), j.astype(np.int64)))
                extra[:, e] = np.where((i < 0) | (j < 0), np.nan, _log_odds(p))
            pool.ask(i, j, extra, out)
            made.append(2 * out - 1)
        return made

    def sign_one(self, pair: tuple[Hashable, Hashable], policy: str) -> None:
        """None: signs cost what values do."""
        return None

    def recall(self, pair: tuple[Hashable, Hashable], at: Places) -> Floats:
        """Nothing: a pool predicts when it learns."""
        return np.zeros((len(self.pools), 1))

    # -- learning -------------------------------------------------------------------------------------------------------

    @in_turn
    def learn_one(self, at: Places, y: Floats, scores: Floats, calibrate: bool, predicted: Predicted) -> bool:
        """One placed pair with labels y (L,)."""
        i, j = self._at(at)
        made = self._run(i, j, np.asarray(y, dtype=np.float64)[None])
        self._count(at, 1, 1, int((predicted(made, self.n_seen) != y).any()))
        return True

    @in_turn
    def learn(self, pairs: Pairs, y: Floats, calibrate: bool, predicted: Predicted, *, values: bool) -> Trials:
        """A stream with labels y (n, L), in order. After an exception no trial was learned; new ids are known, as if asked about."""
        at = self._vertices(pairs, "learn")
        i, j = self._at(at)
        with going_back(WithReserve(self)):
            scores = self._run(i, j, y)
            wrong = (predicted(scores, self.n_seen) != y).any(axis=1)
            self._count(at, len(y), len(y), int(wrong.sum()))
            return Trials(scores, self.probabilities(scores), np.ones(len(y), dtype=bool), wrong)

    def _run(self, i: NDArray[np.int32], j: NDArray[np.int32], y: Floats) -> Floats:
        """Scores (n, L) before each label."""
        made = np.empty(y.shape)
        for k, pool in enumerate(self.pools):
            labels, out = np.ascontiguousarray(y[:, k]), np.empty(len(y))
            extra = self._odds_of_members(k, i, j, labels)
            for first in range(0, len(y), _SLICE):
                part = slice(first, first + _SLICE)
                pool.run(i[part], j[part], labels[part], extra[part], out[part], None)
            made[:, k] = 2 * out - 1
        return made

    def _odds_of_members(self, k: int, i: NDArray[np.int32], j: NDArray[np.int32], y: Floats) -> Floats:
        """Log-odds (n, E) of the experts of a task that the core does not have."""
        made = np.empty((len(y), len(self.members[k])))
        for e, member in enumerate(self.members[k]):
            scores, _ = member.run(i.astype(np.int64), j.astype(np.int64), y, self.n_seen, values=True, ahead=False)
            made[:, e] = _log_odds(self.curves[k].learn_block(scores, y))
        return made

    # -- weights --------------------------------------------------------------------------------------------------------

    @property
    def weights(self) -> Floats:
        """Shares of experts and mixtures, (L, E)."""
        return np.array([pool.weights() for pool in self.pools])

    def path(self) -> tuple[NDArray[np.int64], Floats]:
        """Trials (T,) at which the weights were written down, and the weights, (T, L, E)."""
        made = [pool.state(False)["path"].reshape(-1, 1 + len(self.names)) for pool in self.pools]
        return made[0][:, 0].astype(np.int64), np.stack([each[:, 1:] for each in made], axis=1)

    # -- snapshots ------------------------------------------------------------------------------------------------------

    @in_turn
    def snapshot(self, *, ids: bool = False) -> dict[str, Any]:
        """What learning changes, as plain data. With `ids`, all that was learned."""
        self._grow()
        return {
            **({"tables": [table.snapshot() for table in self.tables]} if ids else {}),
            "engines": [[member.engine.snapshot() for member in task] for task in self.members],
            "curves": [list(curve.values) for curve in self.curves],
            **({"known": [each.snapshot() for each in self.known]} if ids else {}),
            "fresh": [np.array(sorted(table.fresh), np.int64) for table in self.tables],
            "pools": [pool.state(ids) for pool in self.pools],
            **{name: getattr(self, name) for name in _COUNTS},
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go back to a snapshot; one with ids is for a model that was just made. ValueError where it is not of these options."""
        if "tables" in snapshot:
            self._restore_ids(snapshot)
        for table, fresh in zip(self.tables, snapshot["fresh"], strict=True):
            whole("fresh", distinct=True, high=table.side.size - 1).check(fresh, "fresh vertices", {})
            table.fresh = set(fresh.tolist())
        for task, engines in zip(self.members, snapshot["engines"], strict=True):
            for member, engine in zip(task, engines, strict=True):
                member.engine.restore(engine)
        for curve, values in zip(self.curves, snapshot["curves"], strict=True):
            curve.values = [float(v) for v in values]
            if len(curve.values) != 5 or not np.isfinite(curve.values).all():
                raise ValueError("curves must be five finite numbers; they are not. Take the snapshot again.")
        for pool, kept in zip(self.pools, snapshot["pools"], strict=True):
            if "tables" in snapshot:
                self._check_pool(pool, kept)
            pool.set_state(kept)
        self.n_seen, self.n_updates, self.n_mistakes = (int(snapshot[name]) for name in _COUNTS)

    def _restore_ids(self, snapshot: Mapping[str, Any]) -> None:
        for table, kept in zip(self.tables, snapshot["tables"], strict=True):
            table.restore(kept)
        for known, kept in zip(self.known, snapshot["known"], strict=True):
            known.restore(kept)
        self._make_pools(len(self.pools))
        if min(int(snapshot[name]) for name in _COUNTS) < 0:
            raise ValueError("counts must not be negative; they are. Take the snapshot again.")

    def _check_pool(self, pool: Any, kept: Any) -> None:
        """Every array of a state that comes out of a file."""
        begun = pool.state(False)
        rules: dict[str, Rule] = {
            name: floats(len(part), dtype=np.float64)
            for name, part in begun.items()
            if isinstance(part, np.ndarray) and name != "path"
        }
        sizes = {"rows": self._sizes[0], "cols": self._sizes[1]}
        n = len(kept["seen_labels"])
        rules |= {
            "path": Instance(np.ndarray),
            "n_seen": Number(whole=True, low=n, high=n),
            "next_refit": Number(low=1),
            "seen_rows": whole(n, dtype=np.int32, high=self._sizes[0] - 1),
            "seen_cols": whole(n, dtype=np.int32, high=self._sizes[1] - 1),
            "seen_labels": Instance(np.ndarray),
        }
        check_parts(kept, rules, "a snapshot of a pool", sizes)
        labels, path = kept["seen_labels"], kept["path"]
        if labels.dtype != np.int8 or not np.isin(labels, (-1, 1)).all():
            raise ValueError("labels of a snapshot must be -1 or 1; they are not. Take it again.")
        if (
            path.dtype != np.float64
            or path.ndim != 1
            or path.size % (1 + len(self.names))
            or not np.isfinite(path).all()
        ):
            raise ValueError("the path of weights must be finite rows; it is not. Take the snapshot again.")
