"""The state of subspace trackers, and one pass of each over rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar.observed import Observed
from lacunar.observed.rules import Array, Flag, Number, Parts, Rule, Word, check_parts, floats

_Floats = NDArray[np.float64]
Forget = float | Literal["window", "auto"]

_SLICE = 2**13  # rows between two chances to interrupt


class NotFiniteError(ValueError):
    """A step left the finite numbers; the tracker is as it was before the call."""


def forgetting(forget: Forget) -> dict[str, Any]:
    """`forget` in the words of the core: a fixed factor, the growing window 1 - 3 / (t + 300), or the adaptive window."""
    if forget == "window":
        return {"forgetting": "window", "keep": 1.0, "lost": 3.0, "start": 300.0}
    if forget == "auto":
        return {"forgetting": "adaptive", "keep": 1.0, "lost": 3.0, "start": 20.0}
    return {"forgetting": "fixed", "keep": float(forget), "lost": 3.0, "start": 300.0}


def _doubles(*shape: int | str, **more: Any) -> Array:
    return floats(*shape, dtype=np.float64, **more)


_FORGETTING: dict[str, Rule] = {
    "forgetting": Word(("window", "adaptive", "fixed")),
    "keep": Number(low=0, high=1),
    "lost": Number(low=0),
    "start": Number(low=0),
}


class Tracker:
    """Arrays that a pass over rows changes in place, undone when the pass fails."""

    by_column: ClassVar[tuple[str, ...]] = ("v",)
    whole: ClassVar[tuple[str, ...]] = ("clock",)
    rules: ClassVar[dict[str, Rule]] = {"v": _doubles("D", "d"), "clock": _doubles(_core.RLS_CLOCK)}
    option_rules: ClassVar[dict[str, Rule]] = {"ridge": Number(low=0)}
    v: _Floats
    clock: _Floats
    options: dict[str, Any]

    def run(
        self,
        rows: Observed,
        label: _Floats | None = None,
        order: NDArray[np.int64] | None = None,
        *,
        undo: bool = True,
    ) -> tuple[_Floats, _Floats]:
        """One pass; predictions and relative residuals (n,) of the rows before their own steps.

        With `undo` a pass that fails leaves the tracker as it was, for a copy of what the rows can reach.
        """
        order = np.arange(rows.shape[0]) if order is None else order
        traces = np.zeros(rows.shape[0]), np.zeros(rows.shape[0])
        with self.undone(rows) if undo else nullcontext():
            self._make_room(rows)
            for start in range(0, len(order), _SLICE):
                bad = self._pass(rows, label, order[start : start + _SLICE], *traces)
                if bad >= 0:
                    raise NotFiniteError(
                        f"values must stay finite; those of row {int(order[start + bad])} overflow. Scale the columns, or "
                        "clip outliers. The model is as it was before."
                    )
        return traces

    @contextmanager
    def undone(self, rows: Observed) -> Iterator[None]:
        """Whatever is raised within, of overflow, memory or Ctrl-C, leaves the arrays as they were before passes over `rows`."""
        touched = np.unique(rows.indices)
        columns: Any = slice(None) if self._moves_all(rows) or 2 * len(touched) > len(self.v) else touched
        saved = self._save(columns)
        try:
            yield
        except BaseException:
            self._restore(columns, saved)
            raise

    def _make_room(self, rows: Observed) -> None:
        """What columns seen for the first time need."""

    def _pass(self, rows: Observed, label: Any, order: Any, prediction: _Floats, residual: _Floats) -> int:
        raise NotImplementedError

    def _moves_all(self, rows: Observed) -> bool:
        """Whether a pass may turn columns that these rows do not observe."""
        return True

    def _save(self, columns: Any) -> list[NDArray[Any]]:
        parts = [getattr(self, name)[columns].copy() for name in self.by_column]
        return parts + [getattr(self, name).copy() for name in self.whole]

    def _restore(self, columns: Any, saved: list[NDArray[Any]]) -> None:
        parts = iter(saved)
        for name in self.by_column:
            getattr(self, name)[columns] = next(parts)
        for name in self.whole:
            getattr(self, name)[...] = next(parts)

    def basis(self) -> _Floats:
        """A basis (D, d) of the subspace, not orthonormal in general."""
        return self.v

    @property
    def n_steps(self) -> int:
        """Rows with an observed entry so far."""
        return int(self.clock[0])

    @property
    def n_singular(self) -> int:
        """Rows whose code needed a rescuing ridge."""
        return int(self.clock[5])

    def state(self) -> dict[str, Any]:
        """Arrays and options: `restored` goes on bit for bit."""
        return {name: getattr(self, name) for name in (*self.by_column, *self.whole, "options")}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Tracker:
        """The tracker whose `state` this is, on the same arrays where they can be written to."""
        made = cls.__new__(cls)
        cls._refuse_foreign(state)
        for name, value in state.items():
            shared = isinstance(value, dict) or value.flags.writeable
            setattr(made, name, value if shared else value.copy())
        return made

    @classmethod
    def check(cls, state: Any, shape: tuple[int, int]) -> None:
        """A state out of a file, of a basis of this shape: every part against every other. ValueError where they do not fit."""
        D, d = shape
        check_parts(state, {**cls.rules, "options": Parts(cls.option_rules)}, "tracker_", {"D": D, "d": d})

    @classmethod
    def _refuse_foreign(cls, state: dict[str, Any]) -> None:
        """The state may come out of a file, and the core trusts what it is given a size for."""
        arrays = {*cls.by_column, *cls.whole}
        sound = set(state) == arrays | {"options"} and isinstance(state["options"], dict)
        if not sound or any(np.asarray(state[name]).dtype.kind not in "fi" for name in arrays):
            raise ValueError(
                f"the state must be that of {cls.__name__}; got {sorted(map(str, state))[:20]}. Fit again."
            )
        if len({np.shape(state[name])[:1] for name in cls.by_column}) > 1 or np.ndim(state["v"]) != 2:
            raise ValueError(
                f"the state of {cls.__name__} must have one row a column in {', '.join(cls.by_column)}. Fit again."
            )
        slot = np.asarray(state.get("slot", -1))
        if "slot" in state and not (slot.min(initial=-1) >= -1 and slot.max(initial=-1) < len(state["pool"])):
            raise ValueError(f"the state of {cls.__name__} must have its slots inside the pool. Fit again.")


class PerColumnRls(Tracker):
    """PETRELS, and SLRM's Algorithms 1 and 2: an inverse correlation (d, d) for every column that was ever observed."""

    by_column = ("v", "slot", "discount")
    whole = ("clock", "t", "t_inverse", "w", "codes", "labelled", "labels", "pool")
    rules: ClassVar[dict[str, Rule]] = {
        **Tracker.rules,
        **dict.fromkeys(("t", "t_inverse", "codes"), _doubles("d", "d")),
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
        **dict.fromkeys(("continuous", "orthonormal"), Flag()),
    }

    def __init__(self, basis: _Floats, w: _Floats | None = None, *, precision: str = "float64", **options: Any) -> None:
        D, d = basis.shape
        self.v, self.t, self.t_inverse = np.ascontiguousarray(basis, dtype=np.float64).copy(), np.eye(d), np.eye(d)
        self.w = np.zeros(d) if w is None else np.array(w, dtype=np.float64)
        self.slot, self.discount = np.full(D, -1, np.int32), np.zeros(D)
        stride = _core.rls_stride(d, precision == "float32")
        self.pool = np.zeros((0, stride), np.dtype(precision))
        self.codes, self.labelled, self.labels = np.zeros((d, d)), np.zeros(d), np.zeros(1)
        self.clock = np.zeros(_core.RLS_CLOCK)
        plain = {"lam1": np.inf, "lam2": 0.0, "lam3": 0.0, "rho": 0.0, "constant_until": 1, "continuous": True}
        rule = {"ridge": 0.0, "cap": 1e6, "delta": 10.0, "orthonormal": False, **forgetting(1.0)}
        self.options = {**plain, **rule, **options}

    @classmethod
    def check(cls, state: Any, shape: tuple[int, int]) -> None:
        super().check(state, shape)
        pool, used = state["pool"], state["slot"][state["slot"] >= 0]
        stride = _core.rls_stride(shape[1], pool.dtype == np.float32)
        if pool.dtype not in (np.float32, np.float64) or pool.shape[1] != stride:
            raise ValueError(
                f"tracker_['pool'] must have {stride} numbers a column; got {pool.dtype} of shape {pool.shape}"
            )
        if not np.array_equal(np.sort(used), np.arange(len(pool))):
            raise ValueError(
                f"tracker_['slot'] must give each of {len(pool)} places of the pool to one column; it does not"
            )

    def _make_room(self, rows: Observed) -> None:
        fresh = np.unique(rows.indices[self.slot[rows.indices] < 0])
        if len(fresh):
            room = np.broadcast_to(self._first(), (len(fresh), self.pool.shape[1]))
            first = len(self.pool)
            # One new block may come out of concatenate in the order of Fortran, which the core refuses.
            self.pool = np.ascontiguousarray(np.concatenate([self.pool, room]))
            self.slot[fresh] = np.arange(first, len(self.pool), dtype=np.int32)

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

    def _moves_all(self, rows: Observed) -> bool:
        return bool(self.options["orthonormal"])

    def _save(self, columns: Any) -> list[NDArray[Any]]:
        slots = self.slot[columns]
        self._slots = slots[slots >= 0]
        parts = [getattr(self, name)[columns].copy() for name in self.by_column]
        rest = [getattr(self, name).copy() for name in self.whole[:-1]]
        return [*parts, *rest, self.pool[self._slots], self.pool]

    def _restore(self, columns: Any, saved: list[NDArray[Any]]) -> None:
        parts = iter(saved)
        for name in self.by_column:
            getattr(self, name)[columns] = next(parts)
        for name in self.whole[:-1]:
            getattr(self, name)[...] = next(parts)
        kept, self.pool = (
            parts  # a pass that saw new columns had moved to a longer pool, and the slots of those are -1 again
        )
        self.pool[self._slots] = kept

    def _pass(self, rows: Observed, label: Any, order: Any, prediction: _Floats, residual: _Floats) -> int:
        state: dict[str, Any] = {name: getattr(self, name) for name in (*self.by_column, *self.whole)}
        entries: dict[str, Any] = {"indptr": rows.indptr, "indices": rows.indices, "values": rows.values}
        asked: dict[str, Any] = {"order": order, "label": label, "options": self.options}
        return _core.rls_pass(**entries, **asked, **state, prediction=prediction, residual=residual)

    def basis(self) -> _Floats:
        made: _Floats = self.v @ self.t
        return made

    def label_sums(self) -> tuple[_Floats, _Floats, float]:
        """Discounted sums over labelled rows of a a^T and y a, and their number."""
        return self.codes, self.labelled, float(self.labels[0])


class SharedRls(Tracker):
    """PETRELS with one correlation for all columns, an automatic ridge and the sums behind label weights."""

    by_column = ("v", "count", "discount")
    whole = ("clock", "inverse", "sums", "codes", "labelled", "w")
    rules: ClassVar[dict[str, Rule]] = {
        **Tracker.rules,
        **dict.fromkeys(("inverse", "codes"), _doubles("d", "d")),
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
    sums: _Floats
    codes: _Floats
    labelled: _Floats
    w: _Floats

    def __init__(self, basis: _Floats, *, delta: float = 10.0, **options: Any) -> None:
        D, d = basis.shape
        self.v, self.inverse = np.ascontiguousarray(basis, dtype=np.float64).copy(), delta * np.eye(d)
        self.count, self.discount = np.zeros(D), np.zeros(D)
        self.sums, self.codes = np.zeros(_core.SHARED_SUMS), np.zeros((d, d))
        self.labelled, self.w, self.clock = np.zeros(d), np.zeros(d), np.zeros(_core.RLS_CLOCK)
        self.options = {"lam1": np.inf, "ridge": 0.0, "automatic": False, **forgetting("window"), **options}

    def _moves_all(self, rows: Observed) -> bool:
        """V is normalised every so many steps."""
        every = max(1024, len(self.v) // 16)
        return int(self.clock[0]) // every != (int(self.clock[0]) + rows.shape[0]) // every

    def _pass(self, rows: Observed, label: Any, order: Any, prediction: _Floats, residual: _Floats) -> int:
        entries = (rows.indptr, rows.indices, rows.values, order, label, self.options)
        state = (self.v, self.inverse, self.count, self.discount, self.sums, self.codes, self.labelled, self.w)
        return _core.shared_pass(*entries, *state, self.clock, prediction, residual)

    def ridge(self) -> float:
        """The ridge on codes: sigma^2 / tau of the running sums, when it is automatic and they mean something."""
        if not self.options["automatic"] or self.sigma2() is None:
            return float(self.options["ridge"])
        return _core.shared_ridge(self.sums, self.v.shape[1], float(self.options["ridge"]))

    def label_sums(self) -> tuple[_Floats, _Floats, float]:
        """Discounted sums over labelled rows of a a^T and y a, and their number."""
        return self.codes, self.labelled, float(self.sums[1])

    def sigma2(self) -> float | None:
        """Variance of an entry's noise, or None before enough was seen."""
        left, freedom, looks = self.sums[3], self.sums[4], self.sums[2]
        return float(left / freedom) if looks >= 1 and freedom > 0 else None


class Grouse(Tracker):
    """GROUSE, greedy or damped."""

    whole = ("clock", "t", "t_inverse")
    rules: ClassVar[dict[str, Rule]] = Tracker.rules | dict.fromkeys(("t", "t_inverse"), _doubles("d", "d"))
    option_rules: ClassVar[dict[str, Rule]] = Tracker.option_rules | {"damping": Number(low=0)}

    def __init__(self, basis: _Floats, *, damping: float = 1.0, ridge: float = 0.0) -> None:
        d = basis.shape[1]
        self.v, self.t, self.t_inverse = np.ascontiguousarray(basis, dtype=np.float64).copy(), np.eye(d), np.eye(d)
        self.clock = np.zeros(_core.RLS_CLOCK)
        self.options = {"damping": damping, "ridge": ridge}

    def _pass(self, rows: Observed, label: Any, order: Any, prediction: _Floats, residual: _Floats) -> int:
        entries = (rows.indptr, rows.indices, rows.values, order, self.options["damping"], self.options["ridge"])
        return _core.grouse_pass(*entries, self.v, self.t, self.t_inverse, self.clock, residual)

    def basis(self) -> _Floats:
        made: _Floats = self.v @ self.t
        return made
