"""The steps of Algorithm 1: step sizes, what both of its engines share, and the error of a step that diverges."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar._core import LOSSES
from lacunar._typing import Floats
from lacunar.karma.losses import has
from lacunar.kernels import KernelForm
from lacunar.observed import Observed
from lacunar.observed.memory import mark_private
from lacunar.observed.rules import Number, Rule, Word

Eta = Literal["theory", "printed", "constant"]
Iterate = Literal["weighted", "average", "last"]

# What the states of both engines have in common.
STEP_RULE: dict[str, Rule] = {
    "loss": Word(tuple(LOSSES)),
    "rho": Number(low=0, above=True),
    "epsilon": Number(low=0),
    "eta": Word(("theory", "printed", "constant")),
    "eta0": Number(low=0, above=True),
    "iterate": Word(("weighted", "average", "last")),
    "n_features": Number(whole=True, low=0, high=2**31 - 1, names="n_features"),
    "n_outputs": Number(whole=True, low=1, high=2**31 - 1, names="n_outputs"),
    "dtype": Word(("float32", "float64")),
}


class DivergedError(ValueError):
    """Values of an online model left the finite numbers at a row, which is not learned."""


class AlgorithmOne:
    """What `PrimalModel` and `OnlineModel` share: the kernel, the loss, and steps by one object of the core.

    That object has the clock, the tables that it was given, and the rows that it stores with their coefficients.
    """

    _core: _core.AlgorithmOne

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
        epsilon: float = 0.1,
        iterate: Iterate = "weighted",
        dtype: Any = np.float32,
    ) -> None:
        self.form, self.n_features, self.n_outputs, self.dtype = form, n_features, n_outputs, np.dtype(dtype)
        self.loss, self.rho, self.epsilon = loss, float(rho), float(epsilon)
        self.eta, self.eta0, self.iterate = eta, float(eta0), iterate

    def _begin(
        self, map_options: Any = None, first: Any = None, second: Any = None, *, block: int, budget: int = 0
    ) -> None:
        """A new object of the core, over two tables with the options of their map, or without."""
        on_sum, on_count, constant = self.form.coefficients()
        kernel = {"on_sum": on_sum, "on_count": on_count, "constant": constant, "degree": self.form.degree}
        kernel |= {"coef0": self.form.coef0, "shrink": 1 / (1 + self.form.coef0)}
        self._core = _core.AlgorithmOne(
            *(self.n_features, self.n_outputs, map_options, first, second, block, budget, kernel),
            single=self.dtype == np.float32,
        )
        self._budgeted = budget > 0

    @property
    def clock(self) -> Floats:
        """Steps taken, scale, reach and what a budget lost (4,): see step_clock.hpp."""
        return self._core.clock()

    @property
    def t(self) -> int:
        """Rows seen."""
        return int(self.clock[0])

    def partial_fit(
        self,
        rows: Observed,
        targets: Floats,
        weight: Floats | None = None,
        *,
        n_threads: int = 1,
        order: NDArray[np.int64] | None = None,
        decisions: Floats | None = None,
    ) -> Floats:
        """One step a row, in `order`; the values (n, outputs) of rows before their own steps, also
        in `decisions`.

        No bit depends on threads, nor on how calls are cut. After an error or an interrupt the
        first rows are learned, each of them whole: `t` says how many in all.

        Raises
        ------
        DivergedError
            The values or the step of a row left the finite numbers.
        ValueError
            The kernel of these rows cannot be held in the model's precision; nothing has changed.
        """
        data = self._readable(rows)
        decisions = np.zeros((rows.shape[0], self.n_outputs)) if decisions is None else decisions
        scale = self._row_scale(data)
        row = self._core.learn(
            *(data.indptr, data.indices, data.values, scale),
            np.ascontiguousarray(targets, dtype=np.float64),
            None if weight is None else np.ascontiguousarray(weight, dtype=np.float64),
            self.form.diagonal(data) if self._needs_diagonal() else None,
            np.arange(rows.shape[0]) if order is None else order,
            self._factors(data),
            self._step_rule(),
            self._largest_feature(data, scale),
            decisions,
            n_threads,
        )
        if row >= 0:
            raise diverged(row, self.eta, self.eta0, self.rho)
        return decisions

    def _needs_diagonal(self) -> bool:
        """Whether steps need k(x, x): to be limited, or to tell which rows a budget drops."""
        return self._budgeted or has(self.loss, "curvature") or has(self.loss, "kink")

    def _readable(self, rows: Observed) -> Observed:
        """Rows in the model's precision."""
        return rows.astype(self.dtype)

    def _row_scale(self, data: Observed) -> Floats | None:
        """What rows are multiplied by: 1 / sqrt(k(x, x)) for the cosine."""
        return self.form.row_scale(self.form.raw_diagonal(data)) if self.form.cosine else None

    def _factors(self, data: Observed) -> NDArray[Any] | None:
        """g by number of common columns: no row has more of them with one of these."""
        return self.form.table(int(data.row_counts.max(initial=0))).astype(self.dtype)

    def _largest_feature(self, data: Observed, scale: Floats | None) -> float:
        """A bound on what an entry of the tables gets of a row, but for its coefficient; 0 where there are none."""
        return 0.0

    def _step_rule(self) -> dict[str, Any]:
        """Loss and step sizes, as the core names them."""
        return {name: getattr(self, name) for name in ("loss", "epsilon", "rho", "eta", "eta0", "iterate")}

    def _stored(self) -> tuple[Observed, Floats, Floats]:
        """The stored rows with their first and second coefficients (rows, outputs), without copies."""
        indptr, indices, values, first, second = self._core.stored()
        arrays = mark_private(indptr), mark_private(indices), mark_private(values)
        return Observed._trusted(*arrays, (len(first), self.n_features)), first, second

    def _restore(self, clock: Floats, rows: Observed, first: Floats, second: Floats) -> None:
        """Go on from a clock (3,) or (4,), rows with their coefficients, and what the tables hold."""
        self._core.restore(
            np.concatenate([clock, np.zeros(4 - len(clock))]),
            *(rows.indptr, rows.indices, rows.values, self._row_scale(rows)),
            self.form.diagonal(rows) if self._budgeted else None,
            np.ascontiguousarray(first, dtype=np.float64),
            np.ascontiguousarray(second, dtype=np.float64),
        )

    def _shared_state(self) -> dict[str, Any]:
        """What the states of both engines have in common."""
        shared = {name: getattr(self, name) for name in STEP_RULE}
        return shared | {"form": self.form, "dtype": self.dtype.name}

    def _refuse_iterate(self, iterate: str) -> None:
        if iterate not in ("last", self.iterate):
            raise ValueError(
                f"iterate must be 'last' or {self.iterate!r}, the one kept from the start; got {iterate!r}. Make a "
                f"model with iterate={iterate!r}."
            )


def keeps_slopes(eta: str, loss: str) -> bool:
    """Whether every step is 1 / (rho t): v is then the sum of all slopes over -rho t, and its scale is known from t."""
    return eta == "printed" or (eta == "theory" and not has(loss, "curvature"))


def clock_at(t: float, *, rho: float, eta: str, loss: str, iterate: str) -> tuple[Floats, float]:
    """The clock of a model that begins after t steps, and the weight that the mean of t iterates has in their sum."""
    scale = 1 / (rho * max(t, 1)) if keeps_slopes(eta, loss) else 1.0
    if iterate == "weighted":
        return np.array([t, scale, 0.0]), t * (t + 1) / 2
    return np.array([t, scale, scale]), t


def diverged(row: int, eta: str, eta0: float, rho: float) -> DivergedError:
    """The error of a step that left the finite numbers at a row of the batch."""
    learned = "Rows before it may be learned: n_rows_seen_ counts them."
    if eta == "printed":
        return DivergedError(
            f"the step must keep values finite; the printed one, 1 / (rho t) with rho={rho:g} and no cap, overflows at "
            f"row {row} of the batch. Use a larger rho (twice the largest k(x, x) keeps the squared loss bounded), a "
            "batch learner, which minimises the same objective exactly, or KarmaOnlineRegressor, which caps the step. "
            f"{learned}"
        )
    step, remedy = (
        (f"a constant step eta={eta0:g} and ", "a smaller step, ")
        if eta == "constant"
        else ("", "normalize='cosine', ")
    )
    return DivergedError(
        f"the step must keep values finite; with {step}rho={rho:g} they overflow at row {row} of the batch. Use "
        f"{remedy}a larger rho or columns of smaller scale, and begin again, or leave the row out. {learned}"
    )


def overflowed(row: int) -> DivergedError:
    """The error of an ascent, which has no step to choose, that left the finite numbers at a row."""
    return DivergedError(
        f"the kernel must keep values finite; those of row {row} overflow. Use standardize=True, normalize='cosine' or "
        "a smaller C."
    )
