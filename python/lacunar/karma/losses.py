"""What losses have, what solvers need of them, and the one check that refuses a loss."""

from __future__ import annotations

import numpy as np

from lacunar import _core
from lacunar._core import LOSSES
from lacunar._typing import Floats

# What a loss may have, as errors call it. The core's table says it of losses of single values; the hinge of Crammer and
# Singer is one of all classes of a row.
_PIECES = {
    "slope": "a slope",
    "closed_form": "a closed form",
    "gram_dual": "a dual over a Gram",
    "classes_dual": "a dual of all classes",
    "dual": "a dual of single rows",
}
_HAS = LOSSES | {"crammer_singer": frozenset({"classes_dual"})}
# By solver: a loss must have one of these.
_NEEDS = {
    "gram": ("closed_form", "gram_dual", "classes_dual"),
    "primal": ("dual",),
    "auto": ("closed_form", "gram_dual", "classes_dual", "dual"),
    "online": ("slope",),
}


def has(loss: str, piece: str) -> bool:
    """Whether a loss has a piece: one of those that solvers need, or "curvature" or a "kink", which limit steps."""
    return piece in _HAS[loss]


def solves(solver: str, loss: str) -> bool:
    """Whether a loss has what a solver ("gram", "primal", either of them as "auto", or "online") needs."""
    return any(has(loss, piece) for piece in _NEEDS[solver])


def refuse_loss(solver: str, loss: str, online: str) -> None:
    """Refuse a loss that lacks what a solver needs; `online` names the learner whose rows take steps.

    Examples
    --------
    >>> refuse_loss("gram", "absolute", "KarmaOnlineRegressor")
    Traceback (most recent call last):
        ...
    ValueError: solver='gram' must have a loss with a closed form or a dual over a Gram or a dual of all classes; got \
loss='absolute', which has a slope and a dual of single rows. Use solver='primal' (gamma 1, 2 or 3) or \
KarmaOnlineRegressor or another loss.
    """
    if solves(solver, loss):
        return
    wish = " or ".join(_PIECES[piece] for piece in _NEEDS[solver])
    pieces = " and ".join(word for piece, word in _PIECES.items() if has(loss, piece)) or "none of what solvers need"
    of_batches = {"gram": "solver='gram'", "primal": "solver='primal' (gamma 1, 2 or 3)", "online": online}
    others = {"auto": "a batch learner"} if solver == "online" else of_batches
    remedies = [name for other, name in others.items() if solves(other, loss)] + ["another loss"]
    subject = online if solver == "online" else f"solver={solver!r}"
    raise ValueError(
        f"{subject} must have a loss with {wish}; got loss={loss!r}, which has {pieces}. Use {' or '.join(remedies)}."
    )


def loss_values(loss: str, f: Floats, y: Floats, epsilon: float = 0.1) -> Floats:
    """Loss of every value; y is +-1 for classification losses.

    Examples
    --------
    >>> loss_values("squared_hinge", np.array([0.5, 2.0]), np.array([1.0, 1.0]))
    array([0.25, 0.  ])
    """
    flat = _core.loss_values(loss, np.ascontiguousarray(f).ravel(), np.ascontiguousarray(y).ravel(), epsilon)
    return flat.reshape(np.shape(f))
