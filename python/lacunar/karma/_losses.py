"""A step that diverges, named."""

from __future__ import annotations


class DivergedError(ValueError):
    """Values of an online model left the finite numbers; the model is as it was before the call."""


def overflowed(row: int) -> DivergedError:
    """The error of an ascent, which has no step to choose, that left the finite numbers at a row."""
    return DivergedError(
        f"the kernel must keep values finite; those of row {row} overflow. Use standardize=True, normalize='cosine', a smaller C, "
        "or dtype='float64'."
    )


def keeps_slopes(eta: str, loss: str) -> bool:
    """Whether every step is 1 / (rho t): v is then the sum of all slopes over -rho t, and its scale is known from t."""
    return eta == "printed" or (eta == "theory" and loss not in ("squared", "squared_hinge"))


def diverged(row: int, eta: str, eta0: float, rho: float) -> DivergedError:
    """The error of a step that left the finite numbers at a row of the batch."""
    if eta == "printed":
        return DivergedError(
            f"the step must keep values finite; the printed one, 1 / (rho t) with rho={rho:g} and no cap, overflows at row {row} of "
            "the batch. Use a larger rho (twice the largest k(x, x) keeps the squared loss bounded), solver='gram', which "
            "minimises the same objective exactly, or leave out options='paper'. The model is as it was before."
        )
    step = "eta='theory'" if eta == "theory" else f"eta={eta!r} with eta0={eta0:g}"
    return DivergedError(
        f"the step must keep values finite; with {step} and rho={rho:g} they overflow at row {row} of the batch. Use "
        "eta='theory', a smaller eta0 or C, normalize='cosine', or dtype=float64. The model is as it was before."
    )
