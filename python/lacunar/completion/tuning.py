"""Options of a learner as numbers: margin, scale of the first weights, steps."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar.completion.energy import quasi_dimension_bound
from lacunar.completion.side import Floats, SideState


class Tuning(NamedTuple):
    """What the engine is told.

    schedule: "anytime" (number times the step for the trials so far), "constant" (number). strict: update below the margin only,
    not at it.
    """

    gamma: float
    log_scale: float
    schedule: str
    number: float
    conservative: bool
    strict: bool = False

    def steps(self, n_seen: int, sizes: NDArray[np.int64]) -> Floats:
        """Steps (n,) of the trials after the first `n_seen`, `sizes` (n,) the N of each; at most 1."""
        if self.schedule == "constant":
            return np.full(len(sizes), self.number)
        N, t = np.maximum(sizes, 3), n_seen + 1 + np.arange(len(sizes))
        made: Floats = np.minimum(1.0, self.number * np.sqrt(N * np.log(N) / (2.0 * t)))
        return made


def tune(options: Any, rows: SideState, cols: SideState) -> Tuning:
    """The numbers behind the options of a classifier (its parameters of the same names).

    As printed, what has no place in the paper gives way to the theorem's value: the step of any time and the neutral D.
    """
    paper = options.options == "paper"
    step = "theory" if paper and options.step in ("anytime", "fixed") else options.step
    d = "theory" if paper and options.d == "neutral" else options.d
    check_together(options, step, d)
    n_trials, *ids = options.horizon if isinstance(options.horizon, tuple) else (options.horizon,)
    size = sum(ids) if ids else rows.size + cols.size
    blocks = _blocks(options.blocks)
    gamma = 1.0 / math.sqrt(min(blocks)) if options.gamma == "theory" else float(options.gamma)
    quasi_dimension = _quasi_dimension(d, options.blocks, rows, cols)
    if quasi_dimension is not None:
        if size == 0:
            raise ValueError(
                f"horizon must be (trials, rows, columns) for d={d!r} where ids are not known at the beginning; got {options.horizon!r}. "
                "Pass the most rows and columns that may come, or use d='neutral'."
            )
        log_scale = math.log(quasi_dimension / size)
    else:
        log_scale = -math.log(_mean_square(rows, cols))
    schedule, number = _steps(options, step, gamma, quasi_dimension or float(size), size, n_trials)
    return Tuning(gamma, log_scale, schedule, number, bool(options.conservative), paper and not options.conservative)


def check_together(options: Any, step: Any, d: Any) -> None:
    """Options that ask for others."""
    planned = step == "fixed" or (step == "theory" and not options.conservative)
    if planned and options.horizon is None:
        raise ValueError(f"horizon must be the number of trials planned for step={step!r}; got None.")
    if options.options != "paper" and not isinstance(step, str) and step > 1:
        raise ValueError(
            f"step must be at most 1, where the defaults were measured; got {step}. Pass options='paper' for a larger one."
        )
    plan = options.horizon
    if isinstance(plan, tuple) and not (len(plan) == 3 and all(_is_count(n) and n >= 1 for n in plan)):
        raise ValueError(
            f"horizon must be a number of trials or (trials, rows, columns), whole numbers of at least 1; got {plan!r}."
        )
    blocks = options.blocks
    if isinstance(blocks, tuple) and not (
        len(blocks) == 2 and all(part >= 1 if _is_count(part) else np.ndim(part) == 1 for part in blocks)
    ):
        raise ValueError(f"blocks must be (k, l) or (row_classes, col_classes); got {blocks!r}.")
    if blocks is None and options.gamma == "theory":
        raise ValueError("blocks must be given for gamma='theory'; got None. Pass the number k of blocks, or (k, l).")
    if d == "theory" and (not isinstance(blocks, tuple) or any(_is_count(part) for part in blocks)):
        raise ValueError(
            f"blocks must be (row_classes, col_classes) for d='theory', the class of every row and column; got {blocks!r}."
        )


def _blocks(blocks: Any) -> tuple[int, int]:
    """k and l of a (k, l)-biclustered matrix."""
    if not isinstance(blocks, tuple):
        blocks = (blocks, blocks)
    k, m = (1 if part is None else part if _is_count(part) else len(np.unique(part)) for part in blocks)
    return (int(k), int(m))


def _is_count(part: Any) -> bool:
    return isinstance(part, int | np.integer) and not isinstance(part, bool)


def _quasi_dimension(d: Any, blocks: Any, rows: SideState, cols: SideState) -> float | None:
    """D of W_1 = D / N I; None where the first prediction settles it."""
    if d == "neutral":
        return None
    if d != "theory":
        return float(d)
    bound = float(quasi_dimension_bound(rows, cols, *blocks))
    if not math.isfinite(bound):
        raise ValueError(
            "d='theory' must have positive definite side information; Theorem 3 gives an infinite bound. Use Graph(kind='pd'), "
            "a share of own in Features or Mix, or d='neutral'."
        )
    return bound


def _mean_square(rows: SideState, cols: SideState) -> float:
    """Mean of |x|^2 = (K_ii + K_jj) / 2 over cells; 1 for a side without ids yet."""
    means = [float(np.mean(side.diagonal())) if side.size else 1.0 for side in (rows, cols)]
    return (means[0] + means[1]) / 2


def _steps(
    options: Any, step: Any, gamma: float, quasi_dimension: float, size: int, n_trials: Any
) -> tuple[str, float]:
    """Schedule and its number; but as printed, the theory's step is cut to 1, where its proof has long stopped to hold."""
    if step == "anytime":
        return "anytime", float(options.step_scale)
    if step not in ("fixed", "theory"):
        return "constant", float(step)
    if step == "theory" and options.conservative:
        return "constant", gamma
    if size == 0:
        raise ValueError(
            f"horizon must be (trials, rows, columns) for step={step!r} where ids are not known at the beginning; got "
            f"{options.horizon!r}. Pass the most rows and columns that may come, or use step='anytime' or a number."
        )
    scale = 1.0 if step == "theory" else float(options.step_scale)
    number = scale * math.sqrt(max(quasi_dimension, 1.0) * math.log(max(size, 3)) / (2.0 * n_trials))
    if options.options == "paper":
        return "constant", number
    if number > 1:
        warnings.warn(
            f"the step for horizon={n_trials} would be {number:.3g}; cut to 1. Theorem 1 says nothing for so few "
            "trials: use step='anytime'.",
            UserWarning,
            stacklevel=2,
        )
    return "constant", min(number, 1.0)
