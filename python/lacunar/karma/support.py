"""`OnlineModel`: Algorithm 1 over the rows it stores, for kernels of any gamma."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar._typing import Floats
from lacunar.karma.steps import STEP_RULE, AlgorithmOne, clock_at, diverged
from lacunar.kernels import KernelForm, RowSums, refuse_range
from lacunar.observed import Observed
from lacunar.observed.memory import mark_private
from lacunar.observed.rules import Instance, Number, ObservedTable, Rule, check_parts, floats

_ARRAYS = ("rows", "first", "second", "clock")
_STATE: dict[str, Rule] = {
    **STEP_RULE,
    "form": Instance(KernelForm),
    "budget": Number(whole=True, low=1, optional=True),
    "block": Number(whole=True, low=1),
    "first": floats("rows", "n_outputs", dtype=np.float64),
    "second": floats("rows", "n_outputs", dtype=np.float64),
    "clock": floats(4, dtype=np.float64),
}
_ROWS, _PAIRS = 2**14, 2**28  # rows and kernel values between two chances to interrupt, at most


def row_scales(form: KernelForm, rows: Observed) -> NDArray[Any] | None:
    """1 / sqrt(k(x, x)) of every row in its own precision, None without the cosine."""
    return form.row_scale(form.raw_diagonal(rows)).astype(rows.dtype) if form.cosine else None


def row_kernel(form: KernelForm, rows: Observed) -> dict[str, Any]:
    """The kernel between these rows and any others, as the core takes it."""
    longest = int(rows.row_counts.max(initial=0))  # no row shares more columns with one of these
    table, coefficients = form.table(longest).astype(rows.dtype), form.coefficients()
    composed = {"degree": form.degree, "coef0": form.coef0, "shrink": 1 / (1 + form.coef0)}
    return dict(zip(("on_sum", "on_count", "constant"), coefficients, strict=True)) | {"table": table} | composed


def _longer(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    """An array of at least `size` that begins with the first `used` of this one; itself where it is long enough."""
    if len(array) >= size:
        return array
    longer = np.empty((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[:used] = array[:used]
    return longer


class Support(NamedTuple):
    """`n_rows` rows of a table of `n_features` columns; the arrays may be longer, with room for more rows.

    The first `n_rows` rows are never changed in place: an older `Support` of the same arrays stays what it was.
    """

    n_features: int
    n_rows: int
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[Any]
    scale: NDArray[Any] | None
    first: Floats
    second: Floats

    @classmethod
    def of(cls, rows: Observed, first: Floats, second: Floats, form: KernelForm) -> Support:
        """Support of rows and their coefficients (n, outputs)."""
        # Copies: more rows are written to them, and those of a mapped file are not writable.
        indptr, indices, values, *own = map(np.array, (rows.indptr, rows.indices, rows.values, first, second))
        return cls(rows.shape[1], rows.shape[0], indptr, indices, values, row_scales(form, rows), *own)

    @classmethod
    def empty(cls, form: KernelForm, n_features: int, n_outputs: int, dtype: np.dtype[Any]) -> Support:
        """Support without rows."""
        rows = Observed(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, dtype), (0, n_features))
        return cls.of(rows, np.zeros((0, n_outputs)), np.zeros((0, n_outputs)), form)

    @property
    def rows(self) -> Observed:
        """The rows, without a copy."""
        used = int(self.indptr[self.n_rows])
        arrays = (
            mark_private(self.indptr[: self.n_rows + 1]),
            mark_private(self.indices[:used]),
            mark_private(self.values[:used]),
        )
        return Observed._trusted(*arrays, (self.n_rows, self.n_features))

    @property
    def coefficients(self) -> tuple[Floats, Floats]:
        """First and second coefficients, (n_rows, outputs) each, without copies."""
        return self.first[: self.n_rows], self.second[: self.n_rows]

    def with_room(self, rows: int, entries: int) -> Support:
        """The same in longer arrays, for more rows and entries; amortised O(what is added)."""
        used, size = int(self.indptr[self.n_rows]), self.n_rows + rows
        return self._replace(
            indptr=_longer(self.indptr, self.n_rows + 1, size + 1),
            indices=_longer(self.indices, used, used + entries),
            values=_longer(self.values, used, used + entries),
            scale=None if self.scale is None else _longer(self.scale, self.n_rows, size),
            first=_longer(self.first, self.n_rows, size),
            second=_longer(self.second, self.n_rows, size),
        )

    def folded(self, scale: float, reach: float) -> Support:
        """first <- scale first, second <- second - reach first."""
        first, second = self.coefficients
        with np.errstate(over="ignore", invalid="ignore"):  # the next row finds what is not finite
            return self._replace(first=scale * first, second=second - reach * first)


class _Stored(NamedTuple):
    """All that steps change: steps taken, scale, reach and what was lost are the clock."""

    support: Support
    clock: Floats


class OnlineModel(AlgorithmOne):
    """Algorithm 1 of Hazan, Livni and Mansour over support rows: the same iterates as `PrimalModel` where both exist.

    Only rows with a slope are stored. v = scale * sum_i first_i phi(x_i); `second` holds what the mean of the iterates
    must not count twice, so that a step moves no older coefficient. A block of rows is compared with the stored rows at
    once and then followed row by row; sums run in order of arrival, so that every block size makes the same decisions
    to the bit. O(stored rows) kernel values a row.

    With a `budget`, the stored rows of least |coef| sqrt(k(x, x)) leave after every block: no value f(x) moves by more
    than what `lost` grows by times sqrt(k(x, x)).
    """

    def __init__(
        self,
        form: KernelForm,
        n_features: int,
        n_outputs: int,
        *,
        budget: int | None = None,
        block: int = 1024,
        **options: Any,
    ) -> None:
        super().__init__(form, n_features, n_outputs, **options)
        self.budget, self.block = budget, block
        self._stored = _Stored(Support.empty(form, n_features, n_outputs, self.dtype), np.array([0.0, 1.0, 0.0, 0.0]))

    @property
    def rows(self) -> Observed:
        """The stored rows."""
        return self._stored.support.rows

    @property
    def first(self) -> Floats:
        """Coefficients (stored rows, outputs) of v but for its scale."""
        return self._stored.support.coefficients[0]

    @property
    def second(self) -> Floats:
        """What the mean of the iterates must not count, (stored rows, outputs)."""
        return self._stored.support.coefficients[1]

    @property
    def clock(self) -> Floats:  # type: ignore[override]
        """Steps, scale, reach, lost: see step_clock.hpp."""
        return self._stored.clock

    @property
    def lost(self) -> float:
        """Sum over dropped rows of |coef| sqrt(k(x, x)), each at the time it was dropped."""
        return float(self.clock[3])

    def begin_at(self, rows: Observed, coef: Floats, t: int) -> None:
        """Start from v = sum_i coef_i phi(x_i), coef (rows, outputs), as iterate and as mean of the first t."""
        clock, total = clock_at(t, rho=self.rho, eta=self.eta, loss=self.loss, iterate=self.iterate)
        support = Support.of(rows.astype(self.dtype), coef / clock[1], -total * coef, self.form)
        self._stored = _Stored(support, np.append(clock, 0.0))

    def steps(
        self,
        rows: Observed,
        targets: Floats,
        weight: Floats | None = None,
        *,
        n_threads: int = 1,
        order: NDArray[np.int64] | None = None,
        decisions: Floats | None = None,
    ) -> Floats:
        """One step a row, in `order`; returns the values (n, outputs) that rows had before their step, also in `decisions`.

        An interrupt keeps the last full block.
        """
        order = np.arange(rows.shape[0]) if order is None else order
        data = self._readable(rows)
        decisions = np.zeros((rows.shape[0], self.n_outputs)) if decisions is None else decisions
        arrays: dict[str, Any] = {**self._arrays(data), "decisions": decisions, "n_threads": n_threads}
        lesson = self.lesson(data, targets, weight, row_scales(self.form, data))
        start = 0
        while start < len(order):
            part = order[start : start + self._rows_at_once()]
            bad = self._learn(arrays, lesson, part)
            if bad >= 0:
                raise diverged(int(part[bad]), self.eta, self.eta0, self.rho)
            start += len(part)
        return decisions

    def _readable(self, rows: Observed) -> Observed:
        """Rows in the model's precision; every kernel value between rows that pass is finite, by Cauchy and Schwarz."""
        refuse_range(self.form.range_needed(RowSums.of(rows)), self.form.gamma, self.dtype)
        return rows.astype(self.dtype)

    def _arrays(self, data: Observed) -> dict[str, Any]:
        return {
            "kernel": row_kernel(self.form, data),
            "n_cols": self.n_features,
            "indptr": data.indptr,
            "indices": data.indices,
            "values": data.values,
        }

    def _rows_at_once(self) -> int:
        """Whole blocks, between two chances to interrupt; one block where a budget holds after each."""
        if self.budget is not None:
            return self.block
        rows = min(_ROWS, _PAIRS // max(self._stored.support.n_rows, 1))
        return max(rows // self.block, 1) * self.block

    def _learn(self, arrays: dict[str, Any], lesson: dict[str, Any], order: NDArray[np.int64]) -> int:
        """Steps for these rows; -1, or the place in `order` of the row that diverged."""
        done, valued, indptr = 0, False, arrays["indptr"]
        while done < len(order):
            part = order[done:]
            entries = int((indptr[part + 1] - indptr[part]).sum())
            support, clock = self._stored.support.with_room(len(part), entries), self.clock.copy()
            reached, n_rows = _core.online_descend(
                **arrays,
                lesson=lesson | {"order": part},
                rule=self.step_rule(),
                block=self.block,
                support=support._asdict(),
                clock=clock[:3],
                valued=valued,
            )
            if reached < 0:
                return done - 1 - reached
            done += reached
            support = support._replace(n_rows=n_rows)
            if done < len(order):  # the scale is about to leave the floats or, once values are made, all is forgotten
                valued = bool(clock[1] == 0)
                support, clock[1:3] = support.folded(clock[1], clock[2]), (1.0, 0.0)
            stored = _Stored(support, clock)
            # At once, so that an interrupt keeps no half of a block.
            self._stored = self._within_budget(stored) if done == len(order) else stored
        return -1

    def _expand(self, rows: Observed, coef: Floats, n_threads: int) -> Floats:
        """Sums (n, outputs) of coef_i k(x_i, .) over the stored rows, one after the other."""
        data, values, support = self._readable(rows), np.zeros((rows.shape[0], self.n_outputs)), self._stored.support
        coef = np.ascontiguousarray(coef)
        step = max(_PAIRS // max(support.n_rows, 1), 1024)
        for start in range(0, len(values), step):
            block = values[start : start + step]
            part = data[start : start + step]
            own: dict[str, Any] = {"scale": row_scales(self.form, part), "support": support._asdict(), "coef": coef}
            _core.online_decide(**self._arrays(part), **own, decisions=block, n_threads=n_threads)
        return values

    def _within_budget(self, stored: _Stored) -> _Stored:
        """Without the rows of least size beyond the budget."""
        support, clock = stored.support, stored.clock.copy()
        if self.budget is None or support.n_rows <= self.budget:
            return stored
        rows, (first, second) = support.rows, support.coefficients
        size = np.abs(self._coef_of(stored)).max(axis=1) * np.sqrt(self.form.diagonal(rows))
        largest = np.sort(np.argsort(-size, kind="stable")[: self.budget])
        gone = np.setdiff1d(np.arange(len(size)), largest)
        clock[3] += size[gone].sum()
        return _Stored(Support.of(rows[largest], first[largest], second[largest], self.form), clock)

    def coef(self, iterate: str | None = None) -> Floats:
        """Coefficients (stored rows, outputs) of v_(T+1), of the mean of v_1 to v_T, or of that with weights t."""
        return self._coef_of(self._stored, iterate)

    def _coef_of(self, stored: _Stored, iterate: str | None = None) -> Floats:
        t, scale, reach, _ = stored.clock
        first, second = stored.support.coefficients
        iterate = iterate or self.iterate
        if iterate == "last" or t == 0:
            return np.asarray(scale * first)
        self._refuse_iterate(iterate)
        if iterate == "weighted":
            return np.asarray((reach * first - second) / (t * (t + 1) / 2))
        return np.asarray(((reach - scale) * first - second) / t)

    def decide(self, rows: Observed, *, iterate: str | None = None, n_threads: int = 1) -> Floats:
        """Values (n, outputs) of rows."""
        return self._expand(rows, self.coef(iterate), n_threads)

    def state(self) -> dict[str, Any]:
        """Everything, as arrays and plain values; `from_state` goes on bit for bit."""
        return self._shared_state() | {name: getattr(self, name) for name in ("budget", "block", *_ARRAYS)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> OnlineModel:
        """The model whose `state` this is. ValueError where its parts contradict each other."""
        check_parts({name: state.get(name) for name in STEP_RULE}, STEP_RULE, "state_", {})
        check_parts(
            state, _STATE | {"rows": ObservedTable(("rows", "n_features"), np.dtype(state["dtype"]))}, "state_", {}
        )
        model = cls(**{name: value for name, value in state.items() if name not in _ARRAYS})
        rows, first, second = state["rows"], np.asarray(state["first"]), np.asarray(state["second"])
        model._stored = _Stored(Support.of(rows, first, second, model.form), np.array(state["clock"]))
        return model
