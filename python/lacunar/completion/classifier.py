"""`OnlineMatrixClassifier`: a binary matrix, predicted and learned entry by entry, by a pool of experts."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions

from lacunar._lock import changes
from lacunar._typing import Floats
from lacunar.completion.pair_classifier import PairClassifier
from lacunar.completion.pool import PoolModel
from lacunar.completion.side import SideInformation


class OnlineMatrixClassifier(PairClassifier):
    """Online completion of a binary matrix with side information, by a pool of experts.

    Rows and columns are ids of any hashable kind (users and films, voters and bills, vertices and
    vertices); each observation is a pair with a label. Every pair is predicted, then learned; pairs
    may come again and contradict what came before.

    Parameters
    ----------
    rows, cols : side information, default=None
        `Identity`, `Kernel`, `KernelFunction`, `Features`, `Graph` or `Mix`; a list of several;
        None is `Identity()`, which knows nothing and takes any id.
    thresholds : "auto", float or ascending floats, default=None
        Labels are ratings: one question "rating >= threshold" each. Classes are then 0..L, the
        number of thresholds reached; with "auto" the ratings themselves, those of the first batch
        (or `classes`), each but the lowest a threshold.
    unseen : {"grow", "raise", "prior"}, default="grow"
        Cold start: what predictions about ids without observations or side information do. "grow":
        use what the side information says of them, an error where it says nothing; "raise":
        ValueError; "prior": the pool's prior.
    verbose : int, default=0
        1 says about once a second how many pairs of a stream are learned.

    Attributes
    ----------
    classes_ : ndarray of shape (2,) or (L + 1,)
        Negative and positive label. Before a negative label is seen: -1 and 1.
    n_seen_, n_updates_, n_mistakes_ : int
        Numbers of pairs seen, of those that changed the learner, and of those predicted wrongly
        before they were learned.
    expert_weights_ : ndarray of shape (L, E)
        Weight of every expert (E of them) in the pool of every threshold (L).
    expert_names_ : list of E strings
        Names of the experts, in the order of `expert_weights_`.
    expert_path_ : (ndarray of shape (T,), ndarray of shape (T, L, E))
        Trials at which the pool wrote its weights down, and the weights.

    See Also
    --------
    lacunar.papers.completion.MatrixExponentiatedGradient : The learner of the paper for such
        matrices.

    Notes
    -----
    With several thresholds a pool of its own learns which share of them a pair reaches, and its
    answer is one more expert at every threshold, beside few that a threshold keeps for itself: a
    rating teaches all of them. Experts are
    majorities, biases, low rank, features, neighbours, and products of the modes of rows and
    columns where both are graphs or kernels, mixed and hedged in log loss. The pool's log loss
    exceeds that of its best expert by at most log E + log(T + 1) over T trials, and that of the
    best sequence of experts by log((E - 1)(T + 1)) more for every switch: fixed share (Herbster and
    Warmuth, "Tracking the best expert", 1998) with share 1 / (t + 1), for a loss that is mixable
    with step 1. Its y_bar is 2 P(y = 1) - 1. Low-rank experts are refitted from all pairs seen at
    growing times, a little at every one of the pairs that follow, so that memory is that of the
    pairs and no pair of a long stream waits for a refit.

    Examples
    --------
    >>> from lacunar.completion import OnlineMatrixClassifier
    >>> model = OnlineMatrixClassifier()
    >>> for film in ("Alien", "Heat", "Ran"):
    ...     for who, likes in (("ann", True), ("bob", False)):
    ...         updated = model.learn_one(who, film, likes)
    >>> model.predict_one("ann", "Solaris"), model.predict_one("bob", "Solaris")
    (True, False)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "rows": [SideInformation, list, None],
        "cols": [SideInformation, list, None],
        "thresholds": [StrOptions({"auto"}), Real, "array-like", None],
        "unseen": [StrOptions({"grow", "raise", "prior"})],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        rows: SideInformation | list[SideInformation] | None = None,
        cols: SideInformation | list[SideInformation] | None = None,
        *,
        thresholds: str | ArrayLike | None = None,
        unseen: str = "grow",
        verbose: int = 0,
    ) -> None:
        self.rows = rows
        self.cols = cols
        self.thresholds = thresholds
        self.unseen = unseen
        self.verbose = verbose

    def _model(self, n_tasks: int) -> PoolModel:
        return PoolModel(self, n_tasks)

    @property
    @changes
    def expert_weights_(self) -> NDArray[np.float64]:
        """Weights of the experts, shape (L, E)."""
        return self._pool().weights

    @property
    @changes
    def expert_names_(self) -> list[str]:
        """Names of the experts, E of them, in the order of their weights."""
        return self._pool().names

    @property
    @changes
    def expert_path_(self) -> tuple[NDArray[np.int64], Floats]:
        """The weights in the course of the stream: trials (T,), and weights (T, L, E) at each of
        them.
        """
        return self._pool().path()

    def _pool(self) -> PoolModel:
        return cast(PoolModel, self._live())
