"""Subspaces followed along a stream of partially observed rows: `PETRELS`, `GROUSE`, and the arrays that a pass
changes.

`Tracker` and its classes are those arrays and their passes; `SubspaceTracker`, `PETRELS` and `GROUSE` are the
estimators.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lacunar import _core
from lacunar._latent import LARGEST_CORE_RANK
from lacunar._lock import WholeRows, changes, reads, within_row
from lacunar._random import generator
from lacunar._state import all_or_nothing
from lacunar._typing import Floats
from lacunar.lowrank.em import first_basis
from lacunar.lowrank.model import LowRankGaussian, SubspaceModel
from lacunar.observed import Observed
from lacunar.observed.batches import RowBatches
from lacunar.observed.door import check_numbers, refuse_tiny
from lacunar.observed.rules import COUNT, Anything, Array, Flag, Number, Parts, Rule, Word, check_parts, floats
from lacunar.observed.stored import over_files

Forget = float | Literal["window", "auto"]

_SLICE = 2**13  # rows between two chances to interrupt
_USUAL = 10  # components where their number is not given
_RECENT = 0.05  # weight of a row in the running residual
_UNIT = 256.0  # units of values are its powers, so that no digit is lost


class NotFiniteError(ValueError):
    """The step of a row left the finite numbers; that row is not learned, and those before it are."""


def forgetting(forget: Forget) -> dict[str, Any]:
    """The options of the core for `forget`: a fixed factor, the growing window 1 - 3 / (t + 300), or the factor that
    `Memories` learns.
    """
    kinds = {"window": "window", "auto": "adaptive"}
    kind, keep = (kinds[forget], 1.0) if isinstance(forget, str) else ("fixed", forget)
    return {"forgetting": kind, "keep": float(keep), "lost": 3.0, "start": 300.0}


def _doubles(*shape: int | str, **more: Any) -> Array:
    return floats(*shape, dtype=np.float64, **more)


_FORGETTING: dict[str, Rule] = {
    "forgetting": Word(("window", "adaptive", "fixed")),
    "keep": Number(low=0, high=1),
    "lost": Number(low=0),
    "start": Number(low=0),
}


def usual_size(rows: Observed) -> float:
    """The power of 256 nearest to the median modulus of the first row's non-zero values; 1 where there are none.

    Trackers divide values by it, since `delta` and the limits of inverse correlations are set for values near 1.
    """
    sizes = np.abs(rows.values[: next((int(count) for count in rows.row_counts if count), 0)].astype(np.float64))
    median = np.median(sizes[sizes > 0]) if np.any(sizes > 0) else 1.0
    return float(_UNIT ** np.round(np.log(median) / np.log(_UNIT)))


class Trace(NamedTuple):
    """Predictions and relative residuals (n,) of rows before the tracker learned them; residuals of rows that it has not
    reached are NaN.
    """

    prediction: Floats
    residual: Floats

    @classmethod
    def of(cls, rows: Observed) -> Trace:
        """The trace of rows before a pass."""
        return cls(np.zeros(rows.shape[0]), np.full(rows.shape[0], np.nan))

    @property
    def n_learned(self) -> int:
        """Number of learned rows, which come first in the order of the pass."""
        return int(np.count_nonzero(~np.isnan(self.residual)))


class Tracker:
    """The arrays of a tracker, which a pass over rows changes in place."""

    rules: ClassVar[dict[str, Rule]] = {"v": _doubles("D", "d"), "clock": _doubles(_core.RLS_CLOCK)}
    option_rules: ClassVar[dict[str, Rule]] = {"ridge": Number(low=0)}
    screen_rules: ClassVar[dict[str, Rule]] = {
        **dict.fromkeys(("deviation", "left_out"), _doubles("D", low=0)),
        "level": _doubles(3, low=0),
    }
    v: Floats
    clock: Floats
    options: dict[str, Any]

    def run(
        self,
        rows: Observed,
        labels: Floats | None = None,
        order: NDArray[np.int64] | None = None,
        trace: Trace | None = None,
    ) -> Trace:
        """Learn the rows in `order` and return the trace, which is filled row by row; an interrupt leaves no row half
        learned.
        """
        order = np.arange(rows.shape[0]) if order is None else order
        trace = trace or Trace.of(rows)
        if (unit := self.options.get("unit", 1.0)) != 1:
            rows = rows.with_values(rows.values * rows.dtype.type(1 / unit))
        self._add_columns(rows)
        for start in range(0, len(order), _SLICE):
            bad = within_row(self._pass, rows, labels, order[start : start + _SLICE], *trace)
            if bad >= 0:
                raise NotFiniteError(
                    f"values must stay finite; those of row {int(order[start + bad])} overflow. Scale the columns, or "
                    "clip outliers. The rows before it are learned."
                )
        return trace

    def _add_columns(self, rows: Observed) -> None:
        """Extend the arrays by columns that the tracker sees for the first time."""

    def _pass(self, rows: Observed, labels: Any, order: Any, prediction: Floats, residual: Floats) -> int:
        raise NotImplementedError

    def basis(self) -> Floats:
        """A basis (D, d) of the subspace, not orthonormal in general."""
        return self.v

    def ridge(self) -> float:
        """The ridge on latent coordinates."""
        return float(self.options["ridge"])

    def sigma2(self) -> float | None:
        """Variance of an entry's noise, or None where it is not learned or too little was seen."""
        return None

    @property
    def n_singular(self) -> int:
        """Rows whose latent coordinates needed a rescuing ridge."""
        return int(self.clock[5])

    def state(self) -> dict[str, Any]:
        """Arrays and options, from which `from_state` goes on bit for bit."""
        return {name: getattr(self, name) for name in (*self._rules(self.options), "options")}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The tracker whose `state` this is, on the same arrays where they can be written to."""
        if set(state) != {*cls._rules(state.get("options")), "options"}:
            raise ValueError(
                f"the state must be that of {cls.__name__}; got {sorted(map(str, state))[:20]}. Fit again."
            )
        tracker = cls.__new__(cls)
        for name, value in state.items():
            shared = isinstance(value, dict) or value.flags.writeable
            setattr(tracker, name, value if shared else value.copy())
        return tracker

    @classmethod
    def check(cls, state: Any, shape: tuple[int, int]) -> None:
        """A state out of a file, of a basis of this shape: every part against every other. ValueError where they do not
        fit.
        """
        D, d = shape
        options = state.get("options") if isinstance(state, dict) else None
        optional: dict[str, Rule] = {"robust": Flag(), "scout": Flag(), "unit": Number(low=0, above=True)}
        named = {name: rule for name, rule in optional.items() if isinstance(options, dict) and name in options}
        rules = {**cls._rules(options), "options": Parts(cls.option_rules | named)}
        check_parts(state, rules, "state_", {"D": D, "d": d})

    @classmethod
    def _rules(cls, options: Any) -> dict[str, Rule]:
        """Rules of the arrays of a tracker with these options."""
        robust = isinstance(options, dict) and options.get("robust")
        return {**cls.rules, **cls.screen_rules} if robust else cls.rules

    def _add_screen(self) -> None:
        """Add the arrays of the screen that leaves outlying cells out, where the options have `robust`."""
        if self.options.get("robust"):
            self.deviation, self.left_out, self.level = np.zeros(len(self.v)), np.zeros(len(self.v)), np.zeros(3)


class ForgettingTracker(Tracker):
    """A tracker that forgets; where `forget` is "auto", it follows every fourth column at eight factors beside its own
    ("memories") to learn which factor predicts best.
    """

    memory_rules: ClassVar[dict[str, Rule]] = {
        "memory_v": _doubles("places", "d", _core.MEMORIES),
        "memory_seen": _doubles("places", _core.MEMORIES),
        "memory_inverse": _doubles("d", "d", _core.MEMORIES),
        "memory_lines": _doubles(_core.MEMORY_LINES, _core.MEMORIES),
        "memory_rows": _doubles(1),
    }
    scout_rules: ClassVar[dict[str, Rule]] = {
        "scout_v": _doubles("D", "d"),
        "scout_inverse": _doubles("d", "d"),
        "scout_seen": _doubles("D", low=0),
        "scout_line": _doubles(_core.SCOUT_LINES),
    }

    def _add_memories(self, delta: float) -> None:
        """Add the arrays of the memories, which start from the basis, where `forget` is "auto"."""
        if self.options["forgetting"] != "adaptive":
            return
        every, d, count = self.v[:: _core.MEMORY_EVERY], self.v.shape[1], _core.MEMORIES
        self.memory_v = np.repeat(every[:, :, None], count, axis=2)
        self.memory_seen = np.zeros((len(every), count))
        self.memory_inverse = np.repeat(delta * np.eye(d)[:, :, None], count, axis=2)
        self.memory_lines = np.repeat([[0.0], [1.0], [-np.log(count)]], count, axis=1)
        self.memory_rows = np.zeros(1)

    def _add_scout(self, delta: float) -> None:
        """Add the arrays of the scout, which starts from the basis, where the options have `scout`."""
        if self.options.get("scout"):
            D, d = self.v.shape
            self.scout_v, self.scout_inverse = self.v.copy(), delta * np.eye(d)
            self.scout_seen, self.scout_line = np.zeros(D), np.array([0.0, 0.0, 0.0, 0.0, 1.0])

    @classmethod
    def _rules(cls, options: Any) -> dict[str, Rule]:
        options = options if isinstance(options, dict) else {}
        memories = cls.memory_rules if options.get("forgetting") == "adaptive" else {}
        return {**super()._rules(options), **memories, **(cls.scout_rules if options.get("scout") else {})}

    @classmethod
    def check(cls, state: Any, shape: tuple[int, int]) -> None:
        super().check(state, shape)
        places = -(-shape[0] // _core.MEMORY_EVERY)
        if len(state.get("memory_v", range(places))) != places:
            raise ValueError(f"state_['memory_v'] must have {places} places; got {len(state['memory_v'])}")


class PerColumnRls(ForgettingTracker):
    """PETRELS, and SLRM's Algorithms 1 and 2: an inverse correlation (d, d) for every column that was ever observed."""

    rules: ClassVar[dict[str, Rule]] = {
        **Tracker.rules,
        **dict.fromkeys(("t", "t_inverse", "latent_products"), _doubles("d", "d")),
        **dict.fromkeys(("w", "labelled"), _doubles("d")),
        "labels": _doubles(1),
        "discount": _doubles("D"),
        "pool": floats("slots", "stride"),
        "slot": Array("i", ("D",), low=-1, dtype=np.int32),
    }
    option_rules: ClassVar[dict[str, Rule]] = {
        **Tracker.option_rules,
        **_FORGETTING,
        "lam1": Number(low=0, finite=False),
        **dict.fromkeys(("lam2", "lam3", "rho"), Number(low=0)),
        **dict.fromkeys(("cap", "delta"), Number(low=0, above=True)),
        "constant_until": Number(whole=True, low=0),
        **dict.fromkeys(("continuous", "orthonormal", "automatic"), Flag()),
    }

    def __init__(self, basis: Floats, w: Floats | None = None, *, precision: str = "float64", **options: Any) -> None:
        D, d = basis.shape
        self.v, self.t, self.t_inverse = np.ascontiguousarray(basis, dtype=np.float64).copy(), np.eye(d), np.eye(d)
        self.w = np.zeros(d) if w is None else np.array(w, dtype=np.float64)
        self.slot, self.discount = np.full(D, -1, np.int32), np.zeros(D)
        stride = _core.rls_stride(d, precision == "float32")
        self.pool = np.zeros((0, stride), np.dtype(precision))
        self.latent_products, self.labelled, self.labels = np.zeros((d, d)), np.zeros(d), np.zeros(1)
        self.clock = np.zeros(_core.RLS_CLOCK)
        plain = {"lam1": np.inf, "lam2": 0.0, "lam3": 0.0, "rho": 0.0, "constant_until": 1, "continuous": True}
        rule = {"ridge": 0.0, "automatic": False, "cap": 1e6, "delta": 10.0, "orthonormal": False, **forgetting(1.0)}
        self.options = {**plain, **rule, **options}
        self._add_memories(self.options["delta"])
        self._add_screen()
        self._add_scout(self.options["delta"])

    @classmethod
    def check(cls, state: Any, shape: tuple[int, int]) -> None:
        super().check(state, shape)
        pool, used = state["pool"], state["slot"][state["slot"] >= 0]
        stride = _core.rls_stride(shape[1], pool.dtype == np.float32)
        if pool.dtype not in (np.float32, np.float64) or pool.shape[1] != stride:
            raise ValueError(
                f"state_['pool'] must have {stride} numbers a column; got {pool.dtype} of shape {pool.shape}"
            )
        if not np.array_equal(np.sort(used), np.arange(len(pool))):
            raise ValueError(
                f"state_['slot'] must give each of {len(pool)} places of the pool to one column; it does not"
            )

    def _add_columns(self, rows: Observed) -> None:
        fresh = np.unique(rows.indices[self.slot[rows.indices] < 0])
        if len(fresh):
            blocks = np.broadcast_to(self._first(), (len(fresh), self.pool.shape[1]))
            # One new block may come out of concatenate in the order of Fortran, which the core refuses.
            pool = np.ascontiguousarray(np.concatenate([self.pool, blocks]))
            slot = self.slot.copy()
            slot[fresh] = np.arange(len(self.pool), len(pool), dtype=np.int32)
            self.pool, self.slot = pool, slot

    def _first(self) -> NDArray[Any]:
        """delta I in the layout of the pool: packed triangles of floats, blocks of eight columns of doubles."""
        d = self.v.shape[1]
        block = np.zeros(self.pool.shape[1], self.pool.dtype)
        i = np.arange(d)
        if self.pool.dtype == np.float32:
            block[i * (i + 3) // 2] = self.options["delta"]
        else:
            block[np.cumsum(i // 8 * 8 + 8) - (i // 8 * 8 + 8) + i] = self.options["delta"]
        return block

    def _pass(self, rows: Observed, labels: Any, order: Any, prediction: Floats, residual: Floats) -> int:
        entries = (rows.indptr, rows.indices, rows.values, order, labels)
        return _core.rls_pass(*entries, self.options, self.state(), prediction, residual)

    def basis(self) -> Floats:
        return self.v @ self.t

    def label_sums(self) -> tuple[Floats, Floats, float]:
        """Discounted sums over labelled rows of a a^T and y a, and their number."""
        return self.latent_products, self.labelled, float(self.labels[0])


class SharedRls(ForgettingTracker):
    """PETRELS with one correlation for all columns, an automatic ridge and the sums behind label weights."""

    rules: ClassVar[dict[str, Rule]] = {
        **Tracker.rules,
        **dict.fromkeys(("inverse", "latent_products"), _doubles("d", "d")),
        **dict.fromkeys(("w", "labelled"), _doubles("d")),
        **dict.fromkeys(("count", "discount"), _doubles("D")),
        "sums": _doubles(_core.SHARED_SUMS),
    }
    option_rules: ClassVar[dict[str, Rule]] = {
        **Tracker.option_rules,
        **_FORGETTING,
        "lam1": Number(low=0, finite=False),
        "automatic": Flag(),
    }
    sums: Floats
    latent_products: Floats
    labelled: Floats
    w: Floats

    def __init__(self, basis: Floats, *, delta: float = 10.0, **options: Any) -> None:
        D, d = basis.shape
        self.v, self.inverse = np.ascontiguousarray(basis, dtype=np.float64).copy(), delta * np.eye(d)
        self.count, self.discount = np.zeros(D), np.zeros(D)
        self.sums, self.latent_products = np.zeros(_core.SHARED_SUMS), np.zeros((d, d))
        self.labelled, self.w, self.clock = np.zeros(d), np.zeros(d), np.zeros(_core.RLS_CLOCK)
        self.options = {"lam1": np.inf, "ridge": 0.0, "automatic": False, **forgetting("window"), **options}
        self._add_memories(delta)
        self._add_screen()
        self._add_scout(delta)

    def _pass(self, rows: Observed, labels: Any, order: Any, prediction: Floats, residual: Floats) -> int:
        entries = (rows.indptr, rows.indices, rows.values, order, labels)
        return _core.shared_pass(*entries, self.options, self.state(), prediction, residual)

    def ridge(self) -> float:
        """Noise over signal from the running sums where the ridge is automatic and enough rows were seen, else the
        option.
        """
        if not self.options["automatic"] or self.sigma2() is None:
            return super().ridge()
        return _core.shared_ridge(self.sums, self.v.shape[1], float(self.options["ridge"]))

    def label_sums(self) -> tuple[Floats, Floats, float]:
        """Discounted sums over labelled rows of a a^T and y a, and their number."""
        return self.latent_products, self.labelled, float(self.sums[1])

    def sigma2(self) -> float | None:
        residual, freedom, looks = self.sums[3], self.sums[4], self.sums[2]
        return float(residual / freedom) if looks >= 1 and freedom > 0 else None


class Grouse(Tracker):
    """Tracker of GROUSE: one geodesic step a row, greedy or damped."""

    rules: ClassVar[dict[str, Rule]] = Tracker.rules | dict.fromkeys(("t", "t_inverse"), _doubles("d", "d"))
    option_rules: ClassVar[dict[str, Rule]] = Tracker.option_rules | {"damping": Number(low=0)}

    def __init__(self, basis: Floats, *, damping: float = 1.0, ridge: float = 0.0, **options: Any) -> None:
        d = basis.shape[1]
        self.v, self.t, self.t_inverse = np.ascontiguousarray(basis, dtype=np.float64).copy(), np.eye(d), np.eye(d)
        self.clock = np.zeros(_core.RLS_CLOCK)
        self.options = {"damping": damping, "ridge": ridge, **options}
        self._add_screen()

    def _pass(self, rows: Observed, labels: Any, order: Any, prediction: Floats, residual: Floats) -> int:
        entries = (rows.indptr, rows.indices, rows.values, order)
        return _core.grouse_pass(*entries, self.options, self.state(), prediction, residual)

    def basis(self) -> Floats:
        return self.v @ self.t


class SubspaceTracker(RowBatches, SubspaceModel):
    """Base of `PETRELS` and `GROUSE`, which make the arrays of their tracker in `_start`."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "init": [StrOptions({"svd", "random"}), "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "robust": ["boolean"],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }
    _written: ClassVar[tuple[str, ...]] = ("state_",)
    _schema: ClassVar[dict[str, Rule]] = {
        **dict.fromkeys(("n_samples_seen_", "n_iter_"), COUNT),
        "residual_": Number(low=0),
        "state_": Anything(),
    }
    n_components: int | None
    init: Any
    max_iter: int
    ridge: Any
    robust: bool
    sparse_missing: Any
    random_state: Any
    n_jobs: int | None
    state_: dict[str, Any]
    _tracker_class: ClassVar[type[Tracker]]

    def _start(self, basis: Floats) -> Tracker:
        raise NotImplementedError

    def _robust_option(self) -> dict[str, bool]:
        """The option `robust` of the tracker's arrays, or none."""
        return {"robust": True} if self.robust else {}

    @changes
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> SubspaceTracker:
        """Follow the rows of X from a fresh start, `max_iter` times, the later passes in random
        order.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : ignored

        Returns
        -------
        self
        """
        rows = self._check_rows(X, reset=True)
        refuse_tiny(rows.values, "X")
        rng = generator(self.random_state)
        self._reset(rows, rng)
        for number in range(self.max_iter):
            self._follow(rows, None if number == 0 else rng.permutation(rows.shape[0]))
        self.n_iter_ = self.max_iter
        return self

    @changes
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> SubspaceTracker:
        """Follow further rows; the first call makes the start from its own rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
            Any number of rows; how they are split between calls makes no difference after the
            first.
        y : ignored

        Returns
        -------
        self
            The first call learns all of its rows or none. After an error or an interrupt in a later
            one its first rows are learned, each of them whole: `n_samples_seen_` says how many in
            all.

        Raises
        ------
        ValueError
            For another number of columns or infinite entries: the model is then as it was; for
            values that overflow: the rows before are learned.
        """
        if not hasattr(self, "state_"):
            return self._follow_first(X)
        rows = self._check_rows(X, reset=False)
        refuse_tiny(rows.values, "X")
        self._follow(rows, None)
        return self

    @all_or_nothing
    def _follow_first(self, X: Any) -> SubspaceTracker:
        rows = self._check_rows(X, reset=True)
        refuse_tiny(rows.values, "X")
        self._reset(rows, generator(self.random_state))
        self._follow(rows, None)
        return self

    @property
    @reads
    def components_(self) -> Floats:
        """Orthonormal rows (n_components, D) that span the subspace; their order is the basis's.
        O(D k^2) to read out.
        """
        check_is_fitted(self, "state_")
        basis, triangle = np.linalg.qr(self._tracker().basis())
        signs = np.where(np.diag(triangle) < 0, -1.0, 1.0)
        return np.ascontiguousarray((basis * signs).T)

    @property
    @reads
    def n_singular_(self) -> int:
        """Rows with too few entries for a code of their own without rescue."""
        return self._tracker().n_singular

    def _tracker(self) -> Tracker:
        check_is_fitted(self, "state_")
        return self._tracker_class.from_state(self.state_)

    def _check_loaded(self) -> None:
        """Refuse a loaded state of another number of columns or components."""
        if "state_" in vars(self):
            self._tracker_class.check(self.state_, (self.n_features_in_, self._rank(self.n_features_in_)))

    def _reset(self, rows: Observed, rng: np.random.Generator) -> None:
        tracker = self._start(self._first_basis(rows, rng))
        tracker.options["unit"] = usual_size(rows)
        self.state_ = tracker.state()
        self.n_samples_seen_, self.residual_, self.n_iter_ = 0, 1.0, 1

    def _first_basis(self, rows: Observed, rng: np.random.Generator) -> Floats:
        D = rows.shape[1]
        k = self._rank(D)
        if k > D:
            raise ValueError(
                f"n_components must be at most the number of columns; got {k} for {D} columns. Lower n_components."
            )
        if k > LARGEST_CORE_RANK:
            raise ValueError(
                f"n_components must be at most {LARGEST_CORE_RANK} for a stream; got {k}. Use fewer, or a batch method "
                "such as SLRMRegressor or POPCA."
            )
        if isinstance(self.init, str):
            if self.init == "svd":
                return first_basis(rows, k, rng)[0]
            return np.asarray(np.linalg.qr(rng.normal(size=(D, k)))[0])
        init = check_numbers(self.init, "init")
        if init.shape != (k, D):
            raise ValueError(
                f"init must have shape ({k}, {D}), one component a row; got {init.shape}. Pass 'svd' or 'random' "
                "instead."
            )
        return np.asarray(np.linalg.qr(init.T)[0])

    def _rank(self, D: int) -> int:
        """n_components for D columns: a subspace smaller than the whole space where the parameter is None."""
        if self.n_components is not None:
            return int(self.n_components)
        return max(min(_USUAL, D - 1), 1) if isinstance(self.init, str) else max(len(self.init), 1)

    def _follow(self, rows: Observed, order: NDArray[np.int64] | None) -> None:
        tracker, trace = self._tracker(), Trace.of(rows)
        seen, residual = self.n_samples_seen_, self.residual_

        def keep() -> None:
            n, recent = trace.n_learned, residual
            counted = (rows.row_counts > 0)[:n]
            for value in trace.residual[:n][counted] if order is None else ():
                recent += _RECENT * (float(value) - recent)
            self.state_, self.residual_ = tracker.state(), recent
            self.n_samples_seen_ = seen + n

        with WholeRows(self, keep):
            tracker.run(rows, None, order, trace)

    def _gaussian(self) -> LowRankGaussian:
        check_is_fitted(self, "state_")
        components = self.components_
        return LowRankGaussian(np.zeros(components.shape[1]), components, self._tracker().ridge())

    def _standardised(self, rows: Observed) -> Observed:
        return rows  # columns of a stream are taken as they come

    def _in_units(self, rows: Floats) -> Floats:
        return rows

    @reads
    @over_files
    def score_samples(self, X: Any) -> Floats:
        """Relative residual |x - U a|^2 / |x|^2 of every row on its observed entries; 0 for an
        empty row.

        A value that stays high says that the subspace has changed.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, D)
            Rows.

        Returns
        -------
        residuals : ndarray of shape (m,)
        """
        check_is_fitted(self)
        rows = self._check_rows(X)
        squared_residuals = self._latent(rows, self._gaussian(), residual=True).residual
        squares = np.square(rows.values, dtype=np.float64)
        size = np.bincount(rows.row_numbers, squares, minlength=rows.shape[0]).astype(np.float64)
        return np.divide(squared_residuals, size, out=np.zeros_like(size), where=size > 0)


class PETRELS(SubspaceTracker):
    """Follow a subspace along a stream of partially observed rows by recursive least squares.

    Every row is coded in the subspace so far by ridge regression on its observed entries, and the
    rows of the basis that belong to those entries take one exact least-squares step, older rows
    being forgotten ([1]_).

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the subspace, 1 to 64. None: the rows of `init` where it is an array, else 10,
        or one less than there are columns where these are fewer than 11.
    forget : "auto", "window" or float, default="auto"
        What a step multiplies the past by: lambda in [1]_. "auto" learns it: every fourth column is
        followed at eight factors from .8 to 1 side by side, weighed by how well they predict
        entries before they learn them, and the tracker remembers 1.4 times as many rows as their
        weighted geometric mean. It remembers at least as many as show a column k / 2 times, and
        just those while rows leave over three times what they did. A second tracker that remembers
        as many rows as show a column 2.5 k times (at least 20) runs beside it and takes its place
        where it surely predicts entries better, as after a part of the directions was exchanged;
        the more columns are out, the surer that must be. "window" is 1 - 3 / (t + 300), which
        forgets wrong beginnings and then averages. A number in (0, 1] is that, 1 forgets nothing.
    correlation : {"per-column", "shared"}, default="per-column"
        An inverse correlation (k, k) for every column, as in [1]_, or one for all of them scaled by
        how often a column was seen: less exact where columns differ in how they are missing, at D k
        instead of D k^2 / 2 numbers and a third of the time.
    ridge : "auto" or float, default="auto"
        Ridge on latent coordinates. "auto" is noise over signal, learned along the stream, with
        `correlation="shared"`. With `correlation="per-column"` it is 1e-3, and with `forget="auto"`
        noise over signal where that is less.
    delta : float, default=10.0
        What the inverse correlations start from, in units of the inverse mean square of a code.
    precision : {"float64", "float32"}, default="float64"
        Of the stored inverse correlations of `correlation="per-column"`; arithmetic is float64.
        Worth it when D k^2 numbers are more than the cache.
    robust : bool, default=False
        Leave cells out of a step that lie far from a Huber code of their row: beyond 4 deviations,
        or up to 12 where such cells are rare. Deviations are running ones of columns times a
        running level of rows. So that a subspace that changes is followed, a row of 2 k cells or
        more that leaves more over is judged by its own deviation, and a column whose cells are far
        more often in succession than by chance is learned.
    init : {"svd", "random"} or array of shape (n_components, D), default="svd"
        Where to start: singular vectors of the first rows given, filled with zeros; a random
        subspace; or a basis.
    max_iter : int, default=1
        Passes of `fit`.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn; an int gives the same result again.
    n_jobs : int, default=None
        Threads of `transform`. Following is sequential by nature.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, D)
        Orthonormal rows that span the subspace.
    residual_ : float
        Running mean of the relative residuals that rows had before their own steps, without cells
        that were left out.
    n_samples_seen_ : int
        Rows learned from.
    n_iter_ : int
        Passes over the rows of `fit`; 1 of a stream.
    n_singular_ : int
        Rows with too few entries for a code of their own without rescue.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (D,)
        Only when X has column names.

    Notes
    -----
    A row of o entries costs O(o k^2 + k^3), whatever D is: forgetting is applied to a column when
    it is next seen, and what is known of it is never less than of a new one. `forget="auto"` costs
    up to twice as much and three more bases of memory. `robust=True` costs 1.1 times as much, or
    1.3. Updates are symmetric to the last bit; others grow as forget^-t.

    References
    ----------
    .. [1] Y. Chi, Y. C. Eldar, R. Calderbank, "PETRELS: Parallel Subspace Estimation and Tracking
       by Recursive Least Squares from Partial Observations", 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import PETRELS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 12))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> tracker = PETRELS(2, random_state=0).fit(X)
    >>> bool(tracker.residual_ < 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceTracker._parameter_constraints,
        "forget": [StrOptions({"auto", "window"}), Interval(Real, 0, 1, closed="right")],
        "correlation": [StrOptions({"per-column", "shared"})],
        "ridge": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "delta": [Interval(Real, 0, None, closed="neither")],
        "precision": [StrOptions({"float64", "float32"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        forget: float | Literal["auto", "window"] = "auto",
        correlation: Literal["per-column", "shared"] = "per-column",
        ridge: float | Literal["auto"] = "auto",
        delta: float = 10.0,
        precision: Literal["float64", "float32"] = "float64",
        robust: bool = False,
        init: Any = "svd",
        max_iter: int = 1,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.forget = forget
        self.correlation = correlation
        self.ridge = ridge
        self.delta = delta
        self.precision = precision
        self.robust = robust
        self.init = init
        self.max_iter = max_iter
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def _tracker_class(self) -> type[Tracker]:  # type: ignore[override]
        return SharedRls if self.correlation == "shared" else PerColumnRls

    def _start(self, basis: NDArray[np.float64]) -> Tracker:
        keep = {**forgetting(self.forget), **self._robust_option()}
        automatic = self.ridge == "auto"
        first = 1e-3 if automatic else float(self.ridge)
        if self.forget == "auto":
            keep["scout"] = True
        if self.correlation == "shared":
            return SharedRls(basis, delta=self.delta, ridge=first, automatic=automatic, **keep)
        # A column that comes late or was out for long else fits its first rows in idle directions, which are noise.
        keep["cap"] = 1.0
        return PerColumnRls(basis, precision=self.precision, delta=self.delta, ridge=first, automatic=automatic, **keep)


class GROUSE(SubspaceTracker):
    """Follow a subspace along a stream of partially observed rows by rank-one rotations.

    Every row is coded in the subspace so far, and the subspace is turned towards what it left over
    ([1]_). The greedy step re-converges fast after a change but keeps a floor of noise; a smaller
    `damping` trades one for the other.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the subspace, 1 to 64. None: the rows of `init` where it is an array, else 10,
        or one less than there are columns where these are fewer than 11.
    damping : float, default=1.0
        Factor of the greedy step's angle, in (0, 1].
    ridge : float, default=1e-3
        Ridge on latent coordinates.
    robust : bool, default=False
        Leave cells out of a step that lie far from a Huber code of their row: beyond 4 deviations,
        or up to 12 where such cells are rare. Deviations are running ones of columns times a
        running level of rows. So that a subspace that changes is followed, a row of 2 k cells or
        more that leaves more over is judged by its own deviation, and a column whose cells are far
        more often in succession than by chance is learned.
    init : {"svd", "random"} or array of shape (n_components, D), default="svd"
        Where to start: singular vectors of the first rows given, filled with zeros; a random
        subspace; or a basis.
    max_iter : int, default=1
        Passes of `fit`.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn; an int gives the same result again.
    n_jobs : int, default=None
        Threads of `transform`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, D)
        Orthonormal rows that span the subspace.
    residual_ : float
        Running mean of the relative residuals that rows had before their own steps, without cells
        that were left out.
    n_samples_seen_, n_singular_, n_features_in_ : int
        Numbers of rows learned from, of rows with too few entries for latent coordinates of their
        own, and of columns of X.
    n_iter_ : int
        Passes over the rows of `fit`; 1 of a stream.
    feature_names_in_ : ndarray of shape (D,)
        Only when X has column names.

    Notes
    -----
    The rotation is kept as a small matrix beside the basis, so that a row of o entries costs O(o
    k^2 + k^3), whatever D is. A row whose residual is 0, as where the subspace fits all of its few
    entries, or whose code is 0, makes no step: it says of no direction that it is better.
    `robust=True` costs 1.1 to 1.4 times as much, also where 5 % of the cells are wrong.

    References
    ----------
    .. [1] L. Balzano, R. Nowak, B. Recht, "Online Identification and Tracking of Subspaces from
       Highly Incomplete Information", 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import GROUSE
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 12))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> bool(GROUSE(2, ridge=0, random_state=0).fit(X).residual_ < 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceTracker._parameter_constraints,
        "damping": [Interval(Real, 0, 1, closed="right")],
    }
    _tracker_class = Grouse

    def __init__(
        self,
        n_components: int | None = None,
        *,
        damping: float = 1.0,
        ridge: float = 1e-3,
        robust: bool = False,
        init: Any = "svd",
        max_iter: int = 1,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.damping = damping
        self.ridge = ridge
        self.robust = robust
        self.init = init
        self.max_iter = max_iter
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _start(self, basis: NDArray[np.float64]) -> Tracker:
        return Grouse(basis, damping=float(self.damping), ridge=float(self.ridge), **self._robust_option())
