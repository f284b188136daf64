"""`PrimalModel`: KARMA in its own feature space, one weight table instead of support rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar.karma._losses import diverged
from lacunar.karma._map import FeatureMap, choose_map
from lacunar.kernels import KernelForm
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
Eta = Literal["theory", "constant", "invscaling"]
Iterate = Literal["weighted", "average", "last"]

_SLICE = 2**17  # rows between two chances to interrupt
_SERVED = 2**24  # entries of a table kept between two calls of `decide`: small calls would only make it anew
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
        self.first = np.zeros(self.map.entries * n_outputs, self.dtype)
        self.second = None if iterate == "last" else np.zeros_like(self.first)
        self._served: tuple[Iterate, NDArray[Any]] | None = None
        self.clock = np.array([0.0, 1.0, 0.0])  # steps, scale, reach: see primal.hpp

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
    ) -> _Floats:
        """One step of Algorithm 1 for every row, in order; the values (n, outputs) of the rows before their own steps.

        Raises
        ------
        DivergedError
            The values left the finite numbers; nothing has changed.
        """
        order = np.arange(rows.shape[0]) if order is None else order
        data = rows.astype(self.dtype)
        decisions = np.zeros((rows.shape[0], self.n_outputs))
        curvature = self.map.form.diagonal(data) if self.loss in ("squared", "squared_hinge") else _NONE
        batch: dict[str, Any] = {"indptr": data.indptr, "indices": data.indices, "values": data.values}
        batch |= {"row_scale": self.map.row_scale(data), "curvature": curvature, "weight": weight}
        batch |= {"target": np.ascontiguousarray(targets), "decisions": decisions}
        self._served = None
        saved = self._save(rows)
        try:
            for start in range(0, len(order), _SLICE):
                self._descend(batch, order[start : start + _SLICE])
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt):  # an interrupt keeps the model of the last full slice
                self._restore(saved)
            raise
        return decisions

    def _descend(self, batch: dict[str, Any], order: NDArray[np.int64]) -> None:
        bad = _core.primal_descend(
            form=self.map.core,
            **batch,
            order=order,
            loss=self.loss,
            epsilon=self.epsilon,
            rho=self.rho,
            eta="inverse" if self.eta == "invscaling" else self.eta,
            eta0=self.eta0,
            power=self.power_t,
            averaging_by_step=self.iterate == "weighted",
            first=self.first,
            second=self.second,
            clock=self.clock,
        )
        if bad >= 0:
            raise diverged(int(bad), self.eta, self.eta0, self.rho)

    def _save(self, rows: Observed) -> tuple[Any, ...]:
        """What a failed step needs to be undone: the parts of the tables that these rows can reach."""
        part: Any = slice(None)
        if not self.map.hash_bits and self.map.form.gamma < 3 and rows.nnz < self.map.n_columns:
            touched = np.unique(np.concatenate([[0, self.map.n_columns + 1], rows.indices + 1]))
            part = touched[touched < len(self._by_row(self.first))]
        tables = [None if table is None else self._by_row(table)[part].copy() for table in (self.first, self.second)]
        return part, tables, self.clock.copy()

    def _by_row(self, table: NDArray[Any]) -> NDArray[Any]:
        return table if self.map.hash_bits else table.reshape(_core.primal_table_shape(self.map.core)[0], -1)

    def _restore(self, saved: tuple[Any, ...]) -> None:
        part, tables, clock = saved
        for table, old in zip((self.first, self.second), tables, strict=True):
            if table is not None:
                self._by_row(table)[part] = old
        self.clock[:] = clock

    def weights(self, iterate: Iterate | None = None) -> NDArray[Any]:
        """The table of an iterate: v_T, Theorem 2's mean of v_1 to v_T, or the mean with weights t."""
        iterate = iterate or self.iterate
        t, scale, reach = self.clock
        if iterate == "last" or t == 0:
            last: NDArray[Any] = (scale * self.first).astype(self.dtype)
            return last
        if self.second is None or iterate != self.iterate:
            raise ValueError(
                f"iterate must be 'last' or {self.iterate!r}, the one kept from the start; got {iterate!r}."
            )
        if iterate == "weighted":
            whole, total = reach, t * (t + 1) / 2
        else:
            whole, total = reach - scale, t
        mean: NDArray[Any] = ((whole / total) * self.first - self.second / total).astype(self.dtype)
        return mean

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
        _core.primal_decide(self.map.core, *entries, weights, decisions, n_threads)
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
        beta = np.zeros((len(upper), self.n_outputs))
        self.first[:], self.clock[:] = 0.0, (rows.shape[0], 1.0, 0.0)
        self.second, self.iterate, self._served = None, "last", None
        sweep, result = 0, AscentResult(beta, np.inf, np.zeros(1), np.zeros(1), 0, False)
        for sweep in range(1, max_iter + 1):
            met = np.zeros(self.n_outputs)
            order = rng.permutation(rows.shape[0])
            for start in range(0, len(order), _SLICE):
                part = order[start : start + _SLICE]
                bad = _core.primal_ascend(*entries, part, self.loss, self.epsilon, self.first, beta, met)
                if bad >= 0:
                    raise diverged(int(bad), "theory", 0.0, 0.0)
            if progress is not None:
                progress(sweep, float(met.max()))
            if self._worth_measuring(met, result, tol) or sweep == max_iter:
                result = self._measure(data, targets, upper, beta, sweep, tol, n_threads)
                if result.converged:
                    break
        return result

    def _worth_measuring(self, met: _Floats, last: AscentResult, tol: float) -> bool:
        """The gaps met in a sweep overstate the gap after it: measuring costs half a sweep, so wait until it can succeed."""
        return not np.isfinite(last.gap) or bool((met <= 4 * tol * np.maximum(np.abs(last.primal), 1e-300)).all())

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
        return {
            **own,
            "form": self.map.form,
            "n_features": self.map.n_columns,
            "hash_bits": self.map.hash_bits,
            "dtype": self.dtype.name,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> PrimalModel:
        """The model whose `state` this is."""
        arrays = ("first", "second", "clock")
        made = cls(**{name: value for name, value in state.items() if name not in arrays})
        for name in arrays:
            value = state[name]
            setattr(made, name, None if value is None else np.array(value))
        return made
