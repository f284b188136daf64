"""`OnlineModel`: Algorithm 1 over the rows it stores, for kernels of any gamma."""

from __future__ import annotations

from typing import Any

import numpy as np

from lacunar._typing import Floats
from lacunar.karma.steps import STEP_RULE, AlgorithmOne
from lacunar.kernels import KernelForm, RowSums, refuse_range
from lacunar.observed import Observed
from lacunar.observed.rules import Instance, Number, ObservedTable, Optional, Rule, check_parts, floats

_ARRAYS = ("rows", "first", "second", "clock")
_STATE: dict[str, Rule] = {
    **STEP_RULE,
    "form": Instance(KernelForm),
    "budget": Optional(Number(whole=True, low=1)),
    "block": Number(whole=True, low=1),
    "first": floats("rows", "n_outputs", dtype=np.float64),
    "second": floats("rows", "n_outputs", dtype=np.float64),
    "clock": floats(4, dtype=np.float64),
}


class OnlineModel(AlgorithmOne):
    """Algorithm 1 of Hazan, Livni and Mansour over support rows: the same iterates as `PrimalModel`
    where both exist.

    Only rows with a slope are stored. v = scale * sum_i first_i phi(x_i); `second` holds what the
    mean of the iterates must not count twice, so that a step moves no older coefficient. A block of
    rows is compared with the stored rows at once and then followed row by row; sums run in order of
    arrival, so that every block size makes the same decisions to the bit. O(stored rows) kernel
    values a row.

    With a `budget`, the stored rows of least |coef| sqrt(k(x, x)) leave after every block: no value
    f(x) moves by more than what `lost` grows by times sqrt(k(x, x)).
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
        self._begin(block=block, budget=budget or 0)

    @property
    def rows(self) -> Observed:
        """The stored rows."""
        return self._stored()[0]

    @property
    def first(self) -> Floats:
        """Coefficients (stored rows, outputs) of v but for its scale."""
        return self._stored()[1]

    @property
    def second(self) -> Floats:
        """What the mean of the iterates must not count, (stored rows, outputs)."""
        return self._stored()[2]

    @property
    def lost(self) -> float:
        """Sum over dropped rows of |coef| sqrt(k(x, x)), each at the time it was dropped."""
        return float(self.clock[3])

    def _readable(self, rows: Observed) -> Observed:
        """Rows in the model's precision; every kernel value between rows that pass is finite, by Cauchy and Schwarz."""
        refuse_range(self.form.range_needed(RowSums.of(rows)), self.form.gamma, self.dtype)
        return super()._readable(rows)

    def coef(self, iterate: str | None = None) -> Floats:
        """Coefficients (stored rows, outputs) of v_(T+1), of the mean of v_1 to v_T, or of that
        with weights t.
        """
        iterate = iterate or self.iterate
        self._refuse_iterate(iterate)
        return self._core.coefficients(iterate)

    def decide(self, rows: Observed, *, iterate: str | None = None, n_threads: int = 1) -> Floats:
        """Values (n, outputs) of rows."""
        data, values = self._readable(rows), np.zeros((rows.shape[0], self.n_outputs))
        arrays = (data.indptr, data.indices, data.values, self._row_scale(data), self._factors(data))
        self._core.decide(*arrays, self.coef(iterate), values, n_threads)
        return values

    def state(self) -> dict[str, Any]:
        """Everything, as arrays and plain values; `from_state` goes on bit for bit."""
        arrays = dict(zip(_ARRAYS, (*self._stored(), self.clock), strict=True))
        return self._shared_state() | {"budget": self.budget, "block": self.block} | arrays

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> OnlineModel:
        """The model whose `state` this is. ValueError where its parts contradict each other."""
        check_parts({name: state.get(name) for name in STEP_RULE}, STEP_RULE, "state_", {})
        rows = ObservedTable(("rows", "n_features"), np.dtype(state["dtype"]))
        check_parts(state, _STATE | {"rows": rows}, "state_", {})
        model = cls(**{name: value for name, value in state.items() if name not in _ARRAYS})
        model._restore(np.asarray(state["clock"]), *(state[name] for name in _ARRAYS[:3]))
        return model
