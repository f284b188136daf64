"""The steps of Algorithm 1: losses and slopes, step sizes, what both of its engines share, and the error of a step that diverges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from lacunar import _core
from lacunar._core import LOSSES
from lacunar._typing import Floats
from lacunar.kernels import KernelForm
from lacunar.observed import Observed
from lacunar.observed.rules import Number, Rule, Word

Eta = Literal["theory", "printed", "constant"]
Iterate = Literal["weighted", "average", "last"]

# Losses whose steps are capped by their curvature. The core's table of losses is the only one.
QUADRATIC = tuple(name for name, curvature in LOSSES.items() if curvature > 0)
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
    """What `PrimalModel` and `OnlineModel` share: the kernel, the loss and the steps."""

    clock: Floats  # steps taken, scale, reach (and what a budget lost): see step_clock.hpp
    steps: Callable[..., Floats]

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

    @property
    def t(self) -> int:
        """Rows seen."""
        return int(self.clock[0])

    def step_rule(self) -> dict[str, Any]:
        """Loss and step sizes, as the core names them."""
        return {
            "loss": self.loss,
            "epsilon": self.epsilon,
            "rho": self.rho,
            "eta": self.eta,
            "eta0": self.eta0,
            "averaging_by_step": self.iterate == "weighted",
        }

    def lesson(
        self, data: Observed, targets: Floats, weight: Floats | None, scale: Any, *, curved: bool = False
    ) -> dict[str, Any]:
        """What is learned from these rows, as the core takes it, but for their order; `curved`: with k(x, x) for every loss."""
        return {
            "scale": scale,
            "target": np.ascontiguousarray(targets, dtype=np.float64),
            "weight": None if weight is None else np.ascontiguousarray(weight, dtype=np.float64),
            "curvature": self.form.diagonal(data) if curved or self.loss in QUADRATIC else None,
            "base": None,
        }

    def partial_fit(self, rows: Observed, targets: Floats, weight: Floats | None = None, **options: Any) -> Floats:
        """One step for every row, in order; the values (n, outputs) of the rows before their own steps. Options are those of `steps`.

        After an error or an interrupt the first rows are learned, each of them whole: `t` says how many in all.

        Raises
        ------
        DivergedError
            The values left the finite numbers.
        ValueError
            The kernel of these rows cannot be held in the model's precision; nothing has changed.
        """
        return self.steps(rows, targets, weight, **options)

    def _shared_state(self) -> dict[str, Any]:
        """What the states of both engines have in common."""
        shared = {name: getattr(self, name) for name in STEP_RULE}
        return shared | {"form": self.form, "dtype": self.dtype.name}

    def _refuse_iterate(self, iterate: str) -> None:
        if iterate != self.iterate:
            raise ValueError(
                f"iterate must be 'last' or {self.iterate!r}, the one kept from the start; got {iterate!r}."
            )


def keeps_slopes(eta: str, loss: str) -> bool:
    """Whether every step is 1 / (rho t): v is then the sum of all slopes over -rho t, and its scale is known from t."""
    return eta == "printed" or (eta == "theory" and loss not in QUADRATIC)


def clock_at(t: float, *, rho: float, eta: str, loss: str, iterate: str) -> tuple[Floats, float]:
    """The clock of a model that begins after t steps, and the weight that the mean of t iterates has in their sum."""
    scale = 1 / (rho * max(t, 1)) if keeps_slopes(eta, loss) else 1.0
    if iterate == "weighted":
        return np.array([t, scale, 0.0]), t * (t + 1) / 2
    return np.array([t, scale, scale]), t


def loss_values(loss: str, f: Floats, y: Floats, epsilon: float = 0.1) -> Floats:
    """Loss of every value; y is +-1 for classification losses.

    Examples
    --------
    >>> loss_values("squared_hinge", np.array([0.5, 2.0]), np.array([1.0, 1.0]))
    array([0.25, 0.  ])
    """
    flat = _core.loss_values(loss, np.ascontiguousarray(f).ravel(), np.ascontiguousarray(y).ravel(), epsilon)
    return flat.reshape(np.shape(f))


def diverged(row: int, eta: str, eta0: float, rho: float) -> DivergedError:
    """The error of a step that left the finite numbers at a row of the batch."""
    if eta == "printed":
        return DivergedError(
            f"the step must keep values finite; the printed one, 1 / (rho t) with rho={rho:g} and no cap, overflows at row {row} of "
            "the batch. Use a larger rho (twice the largest k(x, x) keeps the squared loss bounded), a batch learner, which "
            "minimises the same objective exactly, or KarmaOnlineRegressor, which caps the step. Rows before it may be learned: n_rows_seen_ counts them."
        )
    step, remedy = (
        (f"a constant step eta={eta0:g} and ", "a smaller step, ")
        if eta == "constant"
        else ("", "normalize='cosine', ")
    )
    return DivergedError(
        f"the step must keep values finite; with {step}rho={rho:g} they overflow at row {row} of the batch. Use {remedy}"
        "a larger rho or columns of smaller scale, and begin again. Rows before it may be learned: n_rows_seen_ counts them."
    )


def overflowed(row: int) -> DivergedError:
    """The error of an ascent, which has no step to choose, that left the finite numbers at a row."""
    return DivergedError(
        f"the kernel must keep values finite; those of row {row} overflow. Use standardize=True, normalize='cosine' or a smaller C."
    )
