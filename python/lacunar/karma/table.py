"""`PrimalModel`: KARMA in its own feature space, one weight table instead of support rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar._typing import Floats
from lacunar.karma.steps import STEP_RULE, AlgorithmOne, Iterate, clock_at, overflowed
from lacunar.kernels import KernelForm
from lacunar.observed import Observed
from lacunar.observed.rules import Instance, Number, ObservedTable, Rule, check_parts, floats

_LINE = 64  # bytes of a cache line: wide loads that straddle two of them cost twice


def aligned_zeros(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros (size,) that begin at a cache line."""
    buffer = np.zeros(size * dtype.itemsize + _LINE, np.uint8)
    start = -buffer.ctypes.data % _LINE
    return buffer[start : start + size * dtype.itemsize].view(dtype)


def aligned_copy(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Values (size,) in an array that begins at a cache line."""
    copy = aligned_zeros(values.size, dtype)
    copy[:] = values
    return copy


class FeatureMap(NamedTuple):
    """A kernel of gamma 1, 2 or 3 on a number of columns, with its table whole or folded to 2^hash_bits entries.

    (s + a n) g(n / c) is an inner product of x~ (values, constant, sqrt(a) indicators) with itself, repeated once for
    all, once for every common column (weight 1 / c, with gamma = 3 also 1 / c^2) and once for every common pair (2 /
    c^2), since n^2 = n + 2 C(n, 2).
    """

    form: KernelForm
    n_columns: int
    hash_bits: int = 0

    @property
    def weight(self) -> tuple[float, float, float]:
        """Weights of the inner products: of that for all, for a common column, and for a common pair."""
        form, c = self.form, self.form.count_scale
        singles = 1 / c + (1 / c**2 if form.gamma == 3 else 0.0)
        return 1 / form.trace, singles / form.trace, 2 / c**2 / form.trace

    @property
    def options(self) -> dict[str, Any]:
        """The map as the core takes it."""
        return {
            "gamma": int(self.form.gamma),
            "n_cols": self.n_columns,
            "constant": float(self.form.constant),
            "indicator": float(np.sqrt(self.form.indicators)),
            "weight": self.weight,
            "hash_bits": self.hash_bits,
        }

    @property
    def entries(self) -> int:
        """Entries of the table of one output."""
        return int(_core.primal_table_shape(self.options)[2])


_PROBES = np.array([0.25, 0.5, 2.0, 3.0, 7.0]), np.array([0, 1, 2, 3, 5])  # sums, in a unit, and counts of a few pairs


def has_map(form: KernelForm) -> bool:
    """Whether the features of `FeatureMap` are those of the kernel: gamma 1, 2 or 3, and its values on a few pairs.

    A kernel that has other factors, or is composed, has another value there.
    """
    if form.gamma not in (1, 2, 3):
        return False
    counts = _PROBES[1]
    with np.errstate(all="ignore"):  # of constants that `range_needed` will refuse
        sums = _PROBES[0] * (1 + form.constant**2 + form.indicators)  # none of these hides the others
        values = form.combine(sums, counts)
        form.compose(values)
        n = counts + (form.constant != 0)
        terms = np.stack([np.ones(len(n)), n * (form.gamma > 1), n * (n - 1) / 2 * (form.gamma > 2)])
        expected = (sums + form.constant**2 + form.indicators * n) * (FeatureMap(form, 0).weight @ terms)
    return np.allclose(values, expected, rtol=1e-9, atol=0.0, equal_nan=True)


def choose_map(form: KernelForm, n_columns: int, outputs: int, dtype: np.dtype[np.floating], memory: int) -> FeatureMap:
    """The whole table if two of it (weights and their average) fit in `memory` bytes, else the largest folded one that
    does.
    """
    columns = n_columns + (form.constant != 0)
    width = -(-columns * (2 if form.indicators else 1) // 16) * 16
    rows = 1 + (form.gamma > 1) * columns + (form.gamma > 2) * columns * (columns - 1) // 2
    budget = memory // (2 * outputs * dtype.itemsize)
    if rows < 2**31 and rows * width <= budget:
        return FeatureMap(form, n_columns)
    return FeatureMap(form, n_columns, max(int(np.log2(max(budget, 2))), 4))


_HEAD: dict[str, Rule] = {
    **STEP_RULE,
    "form": Instance(KernelForm),
    "hash_bits": Number(whole=True, low=0, high=40),
}
_PENDING = ("pending_rows", "pending_first", "pending_second")  # of the states of wide tables
_SERVED = 2**24  # entries of a table kept between two calls of `decide`: small calls would only make it anew
_LOOK = 8  # a first sweep may be hopeless after one in so many rows
_SAMPLE = 2048  # rows that tell how large the objective is
_BLOCK = 2048  # rows of a wide table: fewer read the table more often, more compare more rows with one another
_CACHES = 2**23  # bytes of a table from which on rows of data miss the caches


class AscentResult(NamedTuple):
    """Dual coordinates (n, outputs) and, as the largest over outputs, relative gap; primal and dual
    by output.
    """

    coef: Floats
    gap: float
    primal: Floats
    dual: Floats
    n_iter: int
    converged: bool


class PrimalModel(AlgorithmOne):
    """Linear learner on the explicit features of a kernel with gamma 1, 2 or 3.

    `partial_fit` is Algorithm 1 of Hazan, Livni and Mansour, with the same iterates as over support
    rows; `ascend` is dual coordinate ascent on the batch objective. One row costs O(o^2) for gamma
    = 2, with o entries observed, whatever the number of rows.

    On a wide table, one that no cache holds, steps are taken by blocks of rows, so that the table
    is read once a block instead of once a row. The last rows, up to a whole block of them, are
    pending: kept as support rows with their coefficients, not yet in the table. Blocks are counted
    from the first row ever seen, so that how calls are cut makes no difference to a bit.
    """

    def __init__(
        self,
        form: KernelForm,
        n_features: int,
        n_outputs: int,
        *,
        memory_limit: int = 2**31,
        hash_bits: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(form, n_features, n_outputs, **options)
        chosen_map = choose_map(form, n_features, n_outputs, self.dtype, memory_limit)
        self.map = chosen_map if hash_bits is None else FeatureMap(form, n_features, hash_bits)
        self.first = aligned_zeros(self.map.entries * n_outputs, self.dtype)
        self.second = None if self.iterate == "last" else aligned_zeros(self.first.size, self.dtype)
        self.wide = _is_wide(self.map, self.dtype)
        self._served: tuple[Iterate, NDArray[Any]] | None = None
        self._begin_over_tables()

    def _begin_over_tables(self) -> None:
        """Steps over the tables as they are."""
        self._begin(self.map.options, self.first, self.second, block=_BLOCK if self.wide else 0)

    @property
    def clock(self) -> Floats:
        """Steps taken, scale and reach (3,): see step_clock.hpp."""
        return super().clock[:3]

    def partial_fit(self, rows: Observed, targets: Floats, weight: Floats | None = None, **options: Any) -> Floats:
        """As that of `AlgorithmOne`."""
        self._served = None
        return super().partial_fit(rows, targets, weight, **options)

    def _factors(self, data: Observed) -> NDArray[Any] | None:
        return super()._factors(data) if self.wide else None

    def _largest_feature(self, data: Observed, scale: Floats | None) -> float:
        values = data.values
        form, largest = self.form, max(values.max(initial=0), -values.min(initial=0))
        entry = max(float(largest), abs(form.constant), float(np.sqrt(form.indicators)))
        if self.map.hash_bits:  # several may fall on one entry
            seen = int(data.row_counts.max(initial=0)) + 1
            entry *= 2 * seen * (1 + seen + seen * (seen - 1) / 2)
        return entry if scale is None else entry * float(scale.max(initial=0))

    def _with_stored(self) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Both tables with the pending rows in them; the model's own where there are none."""
        if not self.wide or not len(self._stored()[1]):
            return self.first, self.second
        first = aligned_copy(self.first, self.dtype)
        second = None if self.second is None else aligned_copy(self.second, self.dtype)
        self._core.add_stored(first, second)
        return first, second

    def _arrays(self, rows: Observed) -> dict[str, Any]:
        """Rows and the map of their features, as the core takes them."""
        return {"indptr": rows.indptr, "indices": rows.indices, "values": rows.values, "form": self.map.options}

    def _values(self, rows: Observed, weights: NDArray[Any], n_threads: int, *, by_blocks: bool) -> Floats:
        values = np.zeros((rows.shape[0], self.n_outputs))
        _core.primal_decide(
            **self._arrays(rows),
            row_scale=self._row_scale(rows),
            table=weights,
            decisions=values,
            n_threads=n_threads,
            blocked=by_blocks,
        )
        return values

    def weights(self, iterate: Iterate | None = None) -> NDArray[Any]:
        """The table of an iterate: v_T, Theorem 2's mean of v_1 to v_T, or the mean with weights t."""
        iterate = iterate or self.iterate
        self._refuse_iterate(iterate)
        t, scale, reach = self.clock
        first, second = self._with_stored()
        if iterate == "last" or t == 0:
            return aligned_copy(scale * first, self.dtype)
        assert second is not None
        if iterate == "weighted":
            whole, total = reach, t * (t + 1) / 2
        else:
            whole, total = reach - scale, t
        return aligned_copy((whole / total) * first - second / total, self.dtype)

    def _serve(self, iterate: Iterate) -> NDArray[Any]:
        """`weights`, computed once until the model learns again."""
        if self._served is not None and self._served[0] == iterate:
            return self._served[1]
        weights = self.weights(iterate)
        if weights.size <= _SERVED:
            self._served = iterate, weights
        return weights

    def decide(
        self, rows: Observed, *, iterate: Iterate | None = None, n_threads: int = 1, table: NDArray[Any] | None = None
    ) -> Floats:
        """Values (n, outputs) of rows. O(o^2) a row for gamma = 2."""
        weights = self._serve(iterate or self.iterate) if table is None else table
        return self._values(rows.astype(self.dtype), weights, n_threads, by_blocks=self.wide)

    def ascend(
        self,
        rows: Observed,
        targets: Floats,
        upper: Floats,
        *,
        tol: float,
        max_iter: int,
        rng: np.random.Generator,
        n_threads: int = 1,
        progress: Callable[[int, float], None] | None = None,
        before: AscentResult | None = None,
        until: Callable[[], bool] | None = None,
        diagonal: Floats | None = None,
        hopeless: Callable[[], bool] | None = None,
    ) -> AscentResult:
        """Minimise 1/2 |v|^2 + sum_i upper_i loss(f(x_i)) by dual coordinate ascent, to a relative
        duality gap.

        The same objective as the solvers over a Gram; afterwards the model is its solution. It goes
        on from what it found `before` on the same rows with other `upper`, and ends without a gap
        after a sweep where `until()`, or after an eighth of the first one where `hopeless()`.
        `diagonal` (n,) is k(x, x) of the rows where the caller has it. O(o^2) a row and sweep.
        """
        data, targets = rows.astype(self.dtype), np.ascontiguousarray(targets)
        idle, nothing = np.zeros(len(upper), np.int32), np.zeros((len(upper), self.n_outputs))
        beta = nothing.copy() if before is None else before.coef
        if before is None:
            self.first[:] = 0.0
        self.second, self.iterate, self._served = None, "last", None
        options: dict[str, Any] = self._arrays(data) | {"scale": self._row_scale(data), "target": targets}
        diagonal = self.form.diagonal(data) if diagonal is None else diagonal
        options |= {"upper": np.ascontiguousarray(upper), "curvature": diagonal}
        options |= {"loss": self.loss, "epsilon": self.epsilon, "table": self.first, "beta": beta, "idle": idle}
        sums = _core.coordinate_sums(nothing, nothing, targets, upper, self.loss, self.epsilon)  # at v = 0
        size = sums[self.n_outputs :]
        result = AscentResult(beta, np.inf, size, np.zeros(1), 0, False)
        last = np.full(self.n_outputs, np.inf)
        for sweep in range(1, max_iter + 1):
            met = np.zeros(self.n_outputs)
            order = rng.permutation(rows.shape[0])
            look = hopeless if sweep == 1 else None
            self._sweep(order, look, **options, sweep=sweep, gap=met, n_threads=n_threads)
            if progress is not None:
                progress(sweep, float(met.max()))
            if until is not None and until():
                result = result._replace(n_iter=sweep)
                break
            likely = _likely_gap(met, last)
            close = _all_within(likely, tol, size)
            if close and result.n_iter == 0:
                size = np.abs(self.measure_sample(data, targets, upper, beta).primal)
                close = _all_within(likely, tol, size)
            # What is met and does not fall is held up by rounding.
            if close or (met > 0.9 * last).any() or sweep == max_iter:
                result = self._measure(data, targets, upper, beta, sweep, tol, n_threads)
                if result.converged:
                    break
                size = np.abs(result.primal)
                idle[:] = 0  # rows at rest may be those that are missing
            last = met
        self._end_ascent(rows.shape[0])
        return result

    def _sweep(self, order: NDArray[np.intp], hopeless: Callable[[], bool] | None, **options: Any) -> None:
        """A sweep over rows in an order, or over the first eighth of them where it is `hopeless()` after these."""
        first = len(order) if hopeless is None else len(order) // _LOOK
        for start, stop in ((0, first), (first, len(order))):
            if start and (hopeless is None or hopeless()):
                return
            bad = _core.primal_ascend(**options, order=order[start:stop])
            if bad >= 0:
                raise overflowed(bad)

    def _end_ascent(self, n_rows: int) -> None:
        """Steps from here on go on from the solution, as the last iterate of so many rows."""
        self._begin_over_tables()
        self._restore(np.array([n_rows, 1.0, 0.0]), *self._stored())

    def go_to(self, table: NDArray[Any]) -> None:
        """Put the weights back to those of an earlier ascent."""
        self.first[:] = table
        self._served = None
        self._end_ascent(self.t)

    def measure_sample(self, rows: Observed, targets: Floats, upper: Floats, beta: Floats) -> AscentResult:
        """Gap and objective of all rows, estimated from evenly spaced ones: measuring all costs as
        much as several sweeps past rows at rest.
        """
        sample = np.arange(0, rows.shape[0], max(rows.shape[0] // _SAMPLE, 1))
        part = self._measure(rows[sample], targets[sample], upper[sample], beta[sample], 0, 0.0, 1)
        scale = rows.shape[0] / len(sample)
        return part._replace(primal=part.primal * scale, dual=part.dual * scale)

    def _measure(
        self, rows: Observed, targets: Floats, upper: Floats, beta: Floats, sweep: int, tol: float, n_threads: int
    ) -> AscentResult:
        values = self.decide(rows, iterate="last", n_threads=n_threads, table=self.first)
        sums = _core.coordinate_sums(beta, values, targets, upper, self.loss, self.epsilon).reshape(2, -1)
        primal = np.einsum("nk,nk->k", beta, values) / 2 + sums[1]
        gap = float((sums[0] / np.maximum(np.abs(primal), 1e-300)).max())
        return AscentResult(beta, gap, primal, primal - sums[0], sweep, gap <= tol)

    def state(self) -> dict[str, Any]:
        """Everything, as arrays and plain values; `from_state` goes on bit for bit."""
        own = self._shared_state() | {name: getattr(self, name) for name in ("first", "second", "clock")}
        if self.wide:
            own |= dict(zip(_PENDING, self._stored(), strict=True))
        return own | {"hash_bits": self.map.hash_bits}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> PrimalModel:
        """The model whose `state` this is. ValueError where its parts contradict each other."""
        _check_state(state)
        arrays = ("first", "second", "clock", *_PENDING)
        model = cls(**{name: value for name, value in state.items() if name not in arrays})
        for name in ("first", "second"):
            if state[name] is not None:
                getattr(model, name)[:] = np.ravel(state[name])
        stored = (state[name] for name in _PENDING) if model.wide else model._stored()
        model._restore(np.asarray(state["clock"]), *stored)
        return model


def _likely_gap(met: Floats, last: Floats) -> Floats:
    """The gap (outputs,) after a sweep: what the sweep met, less about what it gained on the `last` one."""
    gained = np.divide(met, last, out=np.ones_like(met), where=last > 0)
    return np.asarray(met * np.clip(1.1 * gained, 0.4, 1.0))


def _all_within(gap: Floats, tol: float, size: Floats) -> bool:
    return bool((gap <= tol * np.maximum(size, 1e-300)).all())


def _check_state(state: Mapping[str, Any]) -> None:
    """Every part of a state against every other, before the core reads any of them: it may come out of a file."""
    sizes: dict[str, int] = {}
    check_parts({name: state.get(name) for name in _HEAD}, _HEAD, "state_", sizes)
    if not has_map(state["form"]):
        raise ValueError("state_['form'] must be a kernel with a weight table (gamma 1, 2 or 3, degree 1). Fit again")
    table = FeatureMap(state["form"], state["n_features"], state["hash_bits"])
    dtype = np.dtype(state["dtype"])
    tables = floats(table.entries * state["n_outputs"], dtype=dtype)
    rules = _HEAD | {"first": tables, "second": Instance(type(None)) if state["iterate"] == "last" else tables}
    rules["clock"] = floats(3, dtype=np.float64)
    if _is_wide(table, dtype):
        rules[_PENDING[0]] = ObservedTable(("pending", "n_features"), dtype)
        rules |= dict.fromkeys(_PENDING[1:], floats("pending", "n_outputs", dtype=np.float64))
    check_parts(state, rules, "state_", sizes)


def _is_wide(table: FeatureMap, dtype: np.dtype[Any]) -> bool:
    """Whether steps are taken by blocks: a whole table of gamma 2 beyond the caches."""
    return table.form.gamma == 2 and not table.hash_bits and table.entries * dtype.itemsize >= _CACHES


def average_states(states: Sequence[dict[str, Any]], common: int = 0) -> dict[str, Any]:
    """One state from those of weight tables that went on from the same state (or none, `common`
    rows ago) with rows of their own.

    Tables are averaged with the rows each learned since as weights, iterate and running mean alike;
    the clock stands at all rows together, so that learning can go on. It is not the model of one
    machine that saw all rows. ValueError for states of other kernels, tables or step rules, of the
    online solver, or of dual coordinate ascent.
    """
    _refuse_unlike(states)
    first = states[0]
    models = [PrimalModel.from_state(state) for state in states]
    own = np.array([max(model.t - common, 0) for model in models], dtype=np.float64)
    share = own / own.sum() if own.sum() else np.full(len(own), 1 / len(own))
    last = sum(w * model.weights("last").astype(np.float64) for w, model in zip(share, models, strict=True))
    mean = sum(w * model.weights().astype(np.float64) for w, model in zip(share, models, strict=True))
    t = common + own.sum()
    clock, total = clock_at(t, **{name: first[name] for name in ("rho", "eta", "loss", "iterate")})
    dtype = np.asarray(first["first"]).dtype
    average = dict(first)
    for name in _PENDING:  # of wide tables: they are in the averages
        if name in average:
            average[name] = average[name][:0]
    average["first"] = np.asarray(last / clock[1], dtype=dtype)
    average["second"] = np.asarray(-total * mean, dtype=dtype)
    average["clock"] = clock
    return average


def _refuse_unlike(states: Sequence[dict[str, Any]]) -> None:
    """ValueError for no states, and for the first that is of no weight table or that did not begin as the first one."""
    if not states:
        raise ValueError("states must hold at least one state; got none. Pass state_ of fitted models.")
    first = states[0]
    for number, state in enumerate(states):
        if "hash_bits" not in state or state["second"] is None:
            raise ValueError(
                f"states must be of Algorithm 1 on the weight table; state {number} is not. Fit "
                "KarmaOnlineClassifier or KarmaOnlineRegressor with gamma 1, 2 or 3 and no budget."
            )
        other = next((name for name in _HEAD if state[name] != first[name]), None)
        if other is not None:
            raise ValueError(
                f"states must be of models that began alike; {other} of state {number} is {state[other]!r}, of state 0 "
                f"{first[other]!r}. Send one model, begun by partial_fit, to every shard."
            )
