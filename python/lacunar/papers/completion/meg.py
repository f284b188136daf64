"""`PrintedMEG`: Algorithms 1 and 2 of Herbster, Pasteris and Tse to the letter."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from lacunar._random import generator
from lacunar._typing import Floats
from lacunar.completion.pair_classifier import PairClassifier
from lacunar.completion.pair_model import PairModel, Pairs
from lacunar.completion.side import SideInformation, SideState
from lacunar.papers.completion.gradient import GradientBatch, GradientModel, Tuning
from lacunar.papers.completion.theory import quasi_dimension_bound

_BLOCK = 4096  # draws made at a time


class PrintedModel(GradientModel):
    """A gradient model that predicts sign(y_bar - Y) with Y uniform in (-gamma, gamma), keyed by seed and trial."""

    def __init__(self, options: Any, n_tasks: int, seed: int) -> None:
        super().__init__(options, n_tasks)
        self.seed, self.conservative = seed, bool(options.conservative)

    def signs(self, scores: Floats, first: int) -> Floats:
        """sign(y_bar - Y) of trials first, first + 1, ...; Y = 0 when conservative. A difference of 0 is positive."""
        if self.conservative:
            return super().signs(scores, first)
        draws = trial_draws(self.seed, first, len(scores))
        return np.where(scores >= self.gamma * draws[:, None], 1.0, -1.0)

    def signs_one(self, pair: tuple[Hashable, Hashable], policy: str) -> Floats:
        """sign(y_bar - Y) of one pair, (1,): the draw belongs to the trial, and stays until something is learned."""
        return PairModel.signs_one(self, pair, policy)

    def batch(self, pairs: Pairs, y: Floats, *, values: bool) -> GradientBatch:
        """Pairs with labels y (n, L)."""
        return super().batch(pairs, y, values=values or not self.conservative)

    def _learned(self) -> dict[str, Any]:
        return {"seed": self.seed, **super()._learned()}

    def _take(self, state: Mapping[str, Any]) -> None:
        if not isinstance(state["seed"], int) or isinstance(state["seed"], bool):
            raise ValueError("a state must hold a seed; it does not")
        self.seed = state["seed"]
        super()._take(state)


class PrintedMEG(PairClassifier):
    """Matrix exponentiated gradient with side information as printed: Algorithm 1, or 2 where ids
    come.

    Predicts sign(y_bar - Y) with Y uniform in (-gamma, gamma), which is right less often than
    sign(y_bar), and updates at y y_bar < gamma; when conservative, predicts sign(y_bar) and updates
    at y y_bar <= 0. `lacunar.papers.completion.MatrixExponentiatedGradient` is the tuned learner.

    Parameters
    ----------
    rows, cols : side information, default=None
        Their kernels are the paper's M^+ and N^+. None takes any id and knows nothing of it: the
        identity (Algorithm 2).
    eta : float > 0, default=None
        Learning rate. None: sqrt(D log(m + n) / (2 T)) of Theorem 1, or gamma when conservative.
    gamma : float in (0, 1], default=None
        Margin. None: 1 / sqrt(min(k, l)) of `blocks`.
    D : float >= 1, default=None
        Estimate of the quasi-dimension. None: the bound of Theorem 3 for the classes of `blocks`.
    conservative : bool, default=False
        Update at mistakes only.
    T : int, default=None
        Trials planned, for eta=None.
    m, n : int, default=None
        The most rows and columns that may come, as Algorithm 2 wants them; None: those that the
        side information knows at the beginning.
    blocks : int, (int, int) or (row_classes, col_classes), default=None
        Blocks k x l of the matrix, or the class of every row and column.
    random_state : int, RandomState or None, default=None
        For the draws Y.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Negative and positive label. Before a negative label is seen: -1 and 1.
    n_seen_, n_updates_, n_mistakes_ : int
        Numbers of pairs seen, of those that changed the learner, and of those predicted wrongly
        before they were learned.

    Raises
    ------
    ValueError
        In `fit`, `partial_fit` and `learn_one`: labels of more than two kinds, ids that the side
        information does not know, or parameters that None leaves to others which are not given.

    See Also
    --------
    lacunar.papers.completion.MatrixExponentiatedGradient : The tuned learner.
    regret_bound, mistake_bound : The bounds of Theorem 1.

    Notes
    -----
    A trial costs O(k N^2) for N = m + n ids and some ten steps k of Lanczos, where the paper has
    O(N^3) for Algorithm 1 and O(N^4) for Algorithm 2.

    Algorithm 1 prints an update at y y_bar < gamma also for conservative learners, with gamma = 0;
    the proof of (6) needs one at every mistake, and sign(0) counts as +1. Mistakes exceed those of
    a matrix U by at most 4 sqrt(2 D log(m + n) T) / gamma in expectation (Theorem 1 of [1]_).

    References
    ----------
    .. [1] M. Herbster, S. Pasteris, L. Tse, "Online Matrix Completion with Side Information",
       NeurIPS 2020, Algorithms 1 and 2, Theorem 1.

    Examples
    --------
    >>> from lacunar.completion import Identity
    >>> from lacunar.papers.completion import PrintedMEG
    >>> model = PrintedMEG(Identity(2), Identity(2), eta=0.5, gamma=0.5, D=4, conservative=True)
    >>> model.predict_one(0, 0), model.learn_one(0, 0, -1), model.predict_one(0, 0)
    (1, True, -1)
    """

    calibrate = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "rows": [SideInformation, list, None],
        "cols": [SideInformation, list, None],
        "eta": [Interval(Real, 0, None, closed="neither"), None],
        "gamma": [Interval(Real, 0, 1, closed="right"), None],
        "D": [Interval(Real, 1, None, closed="left"), None],
        "conservative": ["boolean"],
        "T": [Interval(Integral, 1, None, closed="left"), None],
        "m": [Interval(Integral, 1, None, closed="left"), None],
        "n": [Interval(Integral, 1, None, closed="left"), None],
        "blocks": [Interval(Integral, 1, None, closed="left"), tuple, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        rows: SideInformation | list[SideInformation] | None = None,
        cols: SideInformation | list[SideInformation] | None = None,
        *,
        eta: float | None = None,
        gamma: float | None = None,
        D: float | None = None,
        conservative: bool = False,
        T: int | None = None,
        m: int | None = None,
        n: int | None = None,
        blocks: Any = None,
        random_state: Any = None,
    ) -> None:
        self.rows = rows
        self.cols = cols
        self.eta = eta
        self.gamma = gamma
        self.D = D
        self.conservative = conservative
        self.T = T
        self.m = m
        self.n = n
        self.blocks = blocks
        self.random_state = random_state

    def _model(self, n_tasks: int) -> PrintedModel:
        return PrintedModel(self, n_tasks, int(generator(self.random_state).integers(2**31)))

    def _tuning(self, rows: SideState, cols: SideState) -> Tuning:
        """The numbers behind the parameters: where they are None, those of the theorems."""
        self._check_blocks()
        size = (rows.size if self.m is None else self.m) + (cols.size if self.n is None else self.n)
        if size == 0:
            raise ValueError(
                "m and n must be given where ids are not known at the beginning; got None. Pass the most rows and "
                "columns that may come."
            )
        D = self._bound(rows, cols) if self.D is None else float(self.D)
        gamma = 1.0 / math.sqrt(min(_counts(self.blocks))) if self.gamma is None else float(self.gamma)
        eta = self._theorem_rate(gamma, D, size) if self.eta is None else float(self.eta)
        return Tuning(gamma, math.log(D / size), False, eta, bool(self.conservative), not self.conservative)

    def _check_blocks(self) -> None:
        """Blocks of one of their forms, where something else asks for them."""
        blocks = self.blocks
        if isinstance(blocks, tuple) and not (
            len(blocks) == 2 and all(part >= 1 if _is_count(part) else np.ndim(part) == 1 for part in blocks)
        ):
            raise ValueError(
                f"blocks must be (k, l) or (row_classes, col_classes); got {blocks!r}. Pass two numbers, or two vectors."
            )
        if blocks is None and self.gamma is None:
            raise ValueError("blocks must be given for gamma=None; got None. Pass the number k of blocks, or (k, l).")
        if self.D is None and (not isinstance(blocks, tuple) or any(_is_count(part) for part in blocks)):
            raise ValueError(
                "blocks must be (row_classes, col_classes) for D=None, the class of every row and column; got "
                f"{blocks!r}."
            )

    def _bound(self, rows: SideState, cols: SideState) -> float:
        """The quasi-dimension that Theorem 3 allows."""
        bound = float(quasi_dimension_bound(rows, cols, *self.blocks))
        if not math.isfinite(bound):
            raise ValueError(
                "D=None must have positive definite side information; Theorem 3 gives an infinite bound. Use "
                "Graph(kind='pd'), a share of own in Features or Mix, or pass D."
            )
        return bound

    def _theorem_rate(self, gamma: float, D: float, size: int) -> float:
        """Eta of Theorem 1, which may be above 1."""
        if self.conservative:
            return gamma
        if self.T is None:
            raise ValueError("T must be the number of trials planned for eta=None; got None. Pass T, or eta.")
        return math.sqrt(max(D, 1.0) * math.log(max(size, 3)) / (2.0 * self.T))


def _counts(blocks: Any) -> tuple[int, int]:
    """k and l of a (k, l)-biclustered matrix."""
    if not isinstance(blocks, tuple):
        blocks = (blocks, blocks)
    k, m = (part if _is_count(part) else len(np.unique(part)) for part in blocks)
    return (int(k), int(m))


def _is_count(part: Any) -> bool:
    return isinstance(part, int | np.integer) and not isinstance(part, bool)


def trial_draws(seed: int, first: int, n: int) -> NDArray[np.float64]:
    """Uniform numbers in [-1, 1) of trials first, ..., first + n - 1: the same however the stream is cut."""
    blocks = range(first // _BLOCK, (first + max(n, 1) - 1) // _BLOCK + 1)
    draws = np.concatenate([_block(seed, block) for block in blocks])
    start = first - blocks[0] * _BLOCK
    return draws[start : start + n]


@lru_cache(maxsize=8)
def _block(seed: int, block: int) -> NDArray[np.float64]:
    draws = generator((seed + block) % (2**32 - 1)).uniform(-1.0, 1.0, _BLOCK)
    draws.flags.writeable = False
    return draws
