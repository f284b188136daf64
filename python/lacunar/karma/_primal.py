"""`PrimalModel`: KARMA in its own feature space, one weight table instead of support rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar.karma._losses import diverged, keeps_slopes, overflowed
from lacunar.karma._map import FeatureMap, aligned_copy, aligned_zeros, choose_map, has_map
from lacunar.karma._support import STEP_RULE, Support
from lacunar.karma._wide import descend_by_blocks, is_wide, nothing_pending, with_pending
from lacunar.kernels import KernelForm
from lacunar.observed import Observed
from lacunar.observed.rules import Instance, Number, Rule, Table, check_parts, floats

_Floats = NDArray[np.float64]
Eta = Literal["theory", "printed", "constant", "invscaling"]
Iterate = Literal["weighted", "average", "last"]

_HEAD: dict[str, Rule] = {
    **STEP_RULE,
    "form": Instance(KernelForm),
    "hash_bits": Number(whole=True, low=0, high=40),
}
_SLICE = 2**17  # rows between two chances to interrupt
_SERVED = 2**24  # entries of a table kept between two calls of `decide`: small calls would only make it anew
_SAMPLE = 2048  # rows that tell how large the objective is
_NONE = np.zeros(0)  # curvatures, where no step needs them


class AscentResult(NamedTuple):
    """Dual coordinates (n, outputs) and, as the largest over outputs, relative gap; primal and dual by output."""

    coef: _Floats
    gap: float
    primal: _Floats
    dual: _Floats
    n_iter: int
    converged: bool


class PrimalModel:
    """Linear learner on the explicit features of a kernel with gamma 1, 2 or 3.

    `partial_fit` is Algorithm 1 of Hazan, Livni and Mansour, with the same iterates as over support rows; `ascend` is dual
    coordinate ascent on the batch objective. One row costs O(o^2) for gamma = 2, with o entries observed, whatever the
    number of rows.
    """

    def __init__(
        self,
        form: KernelForm,
        n_features: int,
        n_outputs: int,
        *,
        loss: str,
        rho: float,
        eta: Eta = "theory",
        eta0: float = 0.1,
        power_t: float = 0.5,
        epsilon: float = 0.1,
        iterate: Iterate = "weighted",
        dtype: Any = np.float32,
        memory_limit: int = 2**31,
        hash_bits: int | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype)
        made = choose_map(form, n_features, n_outputs, self.dtype, memory_limit)
        self.map = made if hash_bits is None else FeatureMap(form, n_features, hash_bits)
        self.n_outputs = n_outputs
        self.loss, self.rho, self.epsilon = loss, float(rho), float(epsilon)
        self.eta, self.eta0, self.power_t = eta, float(eta0), float(power_t)
        self.iterate = iterate
        self.first = aligned_zeros(self.map.entries * n_outputs, self.dtype)
        self.second = None if iterate == "last" else aligned_zeros(self.first.size, self.dtype)
        self._served: tuple[Iterate, NDArray[Any]] | None = None
        self.clock = np.array([0.0, 1.0, 0.0])  # steps, scale, reach: see primal.hpp
        self.pending: Support | None = None  # rows not yet in a wide table: see _wide.py
        self.torn = False  # some of them are, while they are put there
        if is_wide(self.map, self.dtype):
            self.pending = nothing_pending(self.map, n_outputs, self.dtype)

    @property
    def t(self) -> int:
        """Rows seen."""
        return int(self.clock[0])

    def partial_fit(
        self,
        rows: Observed,
        targets: _Floats,
        weight: _Floats | None = None,
        *,
        n_threads: int = 1,
        order: NDArray[np.int64] | None = None,
        undo: bool = True,
    ) -> _Floats:
        """One step of Algorithm 1 for every row, in order; the values (n, outputs) of the rows before their own steps.

        Threads have work on tables beyond the caches only, whose rows are taken in blocks; bits do not depend on them.

        Raises
        ------
        DivergedError
            The values left the finite numbers; nothing has changed.
        """
        order = np.arange(rows.shape[0]) if order is None else order
        data = rows.astype(self.dtype)
        decisions = np.zeros((rows.shape[0], self.n_outputs))
        self._served = None
        with self.undone(rows) if undo else nullcontext():
            if self.pending is not None:
                bad = descend_by_blocks(self, data, targets, weight, order, decisions, n_threads)
            else:
                bad = self._descend(data, np.ascontiguousarray(targets), weight, order, decisions)
            if bad >= 0:
                raise diverged(bad, self.eta, self.eta0, self.rho)
        return decisions

    @contextmanager
    def undone(self, rows: Observed) -> Iterator[None]:
        """A block that learns these rows; its exception takes them back, an interrupt keeps the rows learned whole.

        Unless it came while rows were put into wide tables together: then it takes back all rows of the call.
        """
        saved = self._save(rows)
        try:
            yield
        except BaseException as error:
            self._served = None
            if self.torn or not isinstance(error, KeyboardInterrupt):
                self._restore(saved)
            raise

    def step_rule(self) -> dict[str, Any]:
        """Loss and step sizes, as the core names them."""
        return {
            "loss": self.loss,
            "epsilon": self.epsilon,
            "rho": self.rho,
            "eta": "inverse" if self.eta == "invscaling" else self.eta,
            "eta0": self.eta0,
            "power": self.power_t,
            "averaging_by_step": self.iterate == "weighted",
        }

    def _descend(
        self, data: Observed, targets: _Floats, weight: _Floats | None, order: NDArray[np.int64], decisions: _Floats
    ) -> int:
        """Steps for these rows; -1, or the row that diverged. Writes the values before every row's own step."""
        curvature = self.map.form.diagonal(data) if self.loss in ("squared", "squared_hinge") else _NONE
        scale = self.map.row_scale(data)
        for start in range(0, len(order), _SLICE):
            bad = _core.primal_descend(
                form=self.map.core,
                indptr=data.indptr,
                indices=data.indices,
                values=data.values,
                row_scale=scale,
                curvature=curvature,
                weight=weight,
                target=targets,
                decisions=decisions,
                order=order[start : start + _SLICE],
                **self.step_rule(),
                first=self.first,
                second=self.second,
                clock=self.clock,
            )
            if bad >= 0:
                return bad
        return -1

    def _save(self, rows: Observed) -> tuple[Any, ...]:
        """What a failed call needs to be undone: tables, the parts of them that these rows can reach, and what is pending."""
        part: Any = slice(None)
        few = not self.map.hash_bits and self.map.form.gamma < 3 and rows.nnz < self.map.n_columns
        if few and not self._may_fold(rows.shape[0]):
            waiting = rows.indices[:0] if self.pending is None else self.pending.rows.indices
            touched = np.unique(np.concatenate([[0, self.map.n_columns + 1], rows.indices + 1, waiting + 1]))
            part = touched[touched < len(self._by_row(self.first))]
        tables = (self.first, self.second)
        old = [None if table is None else self._by_row(table)[part].copy() for table in tables]
        return part, tables, old, self.pending, self.clock.copy()

    def _may_fold(self, n_rows: int) -> bool:
        """Whether so many steps may rescale the tables, of which a fold touches every row: see step_clock.cpp."""
        if keeps_slopes(self.eta, self.loss):
            return False  # eta_t = 1 / (rho t): the scale is known from t
        t, scale, reach = self.clock
        eta = {"theory": 1 / (self.rho * (t + 1)), "constant": self.eta0}.get(
            self.eta, self.eta0 / (t + 1) ** self.power_t
        )
        least = scale * max(1 - eta * self.rho, 0.0) ** n_rows
        weighted = self.iterate == "weighted"
        most = reach + n_rows * scale * (t + n_rows if weighted else 1)
        return bool(least < 1e-17 or most > 500 * least * (t * (t + 1) / 2 if weighted else t))

    def _by_row(self, table: NDArray[Any]) -> NDArray[Any]:
        return table if self.map.hash_bits else table.reshape(_core.primal_table_shape(self.map.core)[0], -1)

    def _restore(self, saved: tuple[Any, ...]) -> None:
        part, tables, contents, self.pending, self.clock = saved
        self.torn = False
        self.first, self.second = tables
        for table, old in zip(tables, contents, strict=True):
            if table is not None:
                self._by_row(table)[part] = old

    def weights(self, iterate: Iterate | None = None) -> NDArray[Any]:
        """The table of an iterate: v_T, Theorem 2's mean of v_1 to v_T, or the mean with weights t."""
        iterate = iterate or self.iterate
        t, scale, reach = self.clock
        first, second = with_pending(self)
        if iterate == "last" or t == 0:
            return aligned_copy(scale * first, self.dtype)
        if second is None or iterate != self.iterate:
            raise ValueError(
                f"iterate must be 'last' or {self.iterate!r}, the one kept from the start; got {iterate!r}."
            )
        if iterate == "weighted":
            whole, total = reach, t * (t + 1) / 2
        else:
            whole, total = reach - scale, t
        return aligned_copy((whole / total) * first - second / total, self.dtype)

    def _serve(self, iterate: Iterate) -> NDArray[Any]:
        """`weights`, kept until the model learns again."""
        if self._served is not None and self._served[0] == iterate:
            return self._served[1]
        weights = self.weights(iterate)
        if weights.size <= _SERVED:
            self._served = iterate, weights
        return weights

    def decide(
        self, rows: Observed, *, iterate: Iterate | None = None, n_threads: int = 1, table: NDArray[Any] | None = None
    ) -> _Floats:
        """Values (n, outputs) of rows. O(o^2) a row for gamma = 2."""
        weights = self._serve(iterate or self.iterate) if table is None else table
        decisions = np.zeros((rows.shape[0], self.n_outputs))
        data = rows.astype(self.dtype)
        entries = (data.indptr, data.indices, data.values, self.map.row_scale(data))
        _core.primal_decide(self.map.core, *entries, weights, decisions, n_threads, self.pending is not None)
        return decisions

    def ascend(
        self,
        rows: Observed,
        targets: _Floats,
        upper: _Floats,
        *,
        tol: float,
        max_iter: int,
        rng: np.random.Generator,
        n_threads: int = 1,
        progress: Callable[[int, float], None] | None = None,
    ) -> AscentResult:
        """Minimise 1/2 |v|^2 + sum_i upper_i loss(f(x_i)) by dual coordinate ascent, to a relative duality gap.

        The same objective as the solvers over a Gram; afterwards the model is its solution. O(o^2) a row and sweep.
        """
        data, targets = rows.astype(self.dtype), np.ascontiguousarray(targets)
        scale, curvature = self.map.row_scale(data), self.map.form.diagonal(data)
        entries = (self.map.core, data.indptr, data.indices, data.values, scale, curvature, targets, upper)
        beta, idle = np.zeros((len(upper), self.n_outputs)), np.zeros(len(upper), np.int32)
        self.first[:], self.clock[:] = 0.0, (rows.shape[0], 1.0, 0.0)
        self.second, self.iterate, self._served = None, "last", None
        if self.pending is not None:
            self.pending = nothing_pending(self.map, self.n_outputs, self.dtype)
        size = _core.coordinate_sums(beta, beta, targets, upper, self.loss, self.epsilon)[self.n_outputs :]  # at v = 0
        result = AscentResult(beta, np.inf, size, np.zeros(1), 0, False)
        before = np.full(self.n_outputs, np.inf)
        for sweep in range(1, max_iter + 1):
            met = np.zeros(self.n_outputs)
            order = rng.permutation(rows.shape[0])
            for start in range(0, len(order), _SLICE):
                part = order[start : start + _SLICE]
                bad = _core.primal_ascend(*entries, part, self.loss, self.epsilon, self.first, beta, idle, sweep, met)
                if bad >= 0:
                    raise overflowed(int(bad))
            if progress is not None:
                progress(sweep, float(met.max()))
            # The gap after a sweep is what the sweep met, less about what it gained on the one before.
            gained = np.divide(met, before, out=np.ones_like(met), where=before > 0)
            likely = met * np.clip(1.1 * gained, 0.4, 1.0)
            close = bool((likely <= tol * np.maximum(size, 1e-300)).all())
            if close and result.n_iter == 0:
                size = self._guess_primal(data, targets, upper, beta)
                close = bool((likely <= tol * np.maximum(size, 1e-300)).all())
            # What is met and does not fall is held up by rounding.
            if close or (met > 0.9 * before).any() or sweep == max_iter:
                result = self._measure(data, targets, upper, beta, sweep, tol, n_threads)
                if result.converged:
                    break
                size = np.abs(result.primal)
                idle[:] = 0  # rows at rest may be those that are missing
            before = met
        return result

    def _guess_primal(self, rows: Observed, targets: _Floats, upper: _Floats, beta: _Floats) -> _Floats:
        """The objective from every so-manieth row: measuring costs as much as several sweeps past rows at rest."""
        some = np.arange(0, rows.shape[0], max(rows.shape[0] // _SAMPLE, 1))
        part = self._measure(rows[some], targets[some], upper[some], beta[some], 0, 0.0, 1)
        return np.abs(part.primal) * (rows.shape[0] / len(some))

    def _measure(
        self, rows: Observed, targets: _Floats, upper: _Floats, beta: _Floats, sweep: int, tol: float, n_threads: int
    ) -> AscentResult:
        values = self.decide(rows, iterate="last", n_threads=n_threads, table=self.first)
        sums = _core.coordinate_sums(beta, values, targets, upper, self.loss, self.epsilon).reshape(2, -1)
        primal = np.einsum("nk,nk->k", beta, values) / 2 + sums[1]
        gap = float((sums[0] / np.maximum(np.abs(primal), 1e-300)).max())
        return AscentResult(beta, gap, primal, primal - sums[0], sweep, gap <= tol)

    def state(self) -> dict[str, Any]:
        """Everything, as arrays and plain values; `from_state` goes on bit for bit."""
        names = ("loss", "rho", "epsilon", "eta", "eta0", "power_t", "iterate", "n_outputs", "first", "second", "clock")
        own = {name: getattr(self, name) for name in names}
        if self.pending is not None:
            first, second = self.pending.coefficients
            own |= {"pending_rows": self.pending.rows, "pending_first": first, "pending_second": second}
        return {
            **own,
            "form": self.map.form,
            "n_features": self.map.n_columns,
            "hash_bits": self.map.hash_bits,
            "dtype": self.dtype.name,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> PrimalModel:
        """The model whose `state` this is. ValueError where its parts contradict each other."""
        _check_state(state)
        arrays = ("first", "second", "clock")
        pending = ("pending_rows", "pending_first", "pending_second")
        made = cls(**{name: value for name, value in state.items() if name not in (*arrays, *pending)})
        for name in arrays:
            value = state[name]
            setattr(made, name, None if value is None else aligned_copy(np.ravel(value), np.asarray(value).dtype))
        if made.pending is not None:
            rows, first, second = (state[name] for name in pending)
            made.pending = Support.of(rows, np.asarray(first), np.asarray(second), made.map.form)
        return made


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
    if is_wide(table, dtype):
        rules["pending_rows"] = Table(("pending", "n_features"), dtype)
        rules |= dict.fromkeys(("pending_first", "pending_second"), floats("pending", "n_outputs", dtype=np.float64))
    check_parts(state, rules, "state_", sizes)
