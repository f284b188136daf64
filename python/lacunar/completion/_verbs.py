"""One pair at a time, by river's verbs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lacunar.completion._draws import trial_draws
from lacunar.completion._labels import read_y
from lacunar.completion._live import Live
from lacunar.completion._model import Model
from lacunar.completion._stream import class_probabilities
from lacunar.observed.door import read_id, read_ids

Floats = NDArray[np.float64]


class OneByOne(Live):
    """`decision_one`, `predict_one`, `predict_proba_one`, `learn_one`, `add_row`, `add_col`, `recommend`."""

    unseen: str
    calibrate: bool

    def decision_one(self, row: Hashable, col: Hashable) -> Any:
        """y_bar of one pair, before or after any learning.

        Parameters
        ----------
        row, col : hashable
            Ids; unseen ones by the policy `unseen`.

        Returns
        -------
        y_bar : float, or ndarray of shape (L,) with L > 1 thresholds
            From -1 upwards; above 0 means the positive label.

        Raises
        ------
        ValueError
            An id without a vertex, where `unseen` or the side information gives it none.
        """
        return self._shaped(self._decide_one(row, col))

    def _decide_one(self, row: Hashable, col: Hashable) -> Floats:
        """y_bar of every task, (L,); the experts' scores are kept for the `learn_one` that may follow."""
        model = self._live()
        pair = (read_id(row, "row"), read_id(col, "col"))
        scores = model.score_one(pair, self.unseen)
        # Under "prior" the score of an unseen id is not that of the vertex it gets when it is learned.
        model.asked = None if self.unseen == "prior" else (pair, model.n_seen, scores)
        return np.array([model.combine(scores[k : k + 1], k)[0] for k in range(len(scores))])

    def predict_one(self, row: Hashable, col: Hashable) -> Any:
        """The label predicted for one pair; see `decision_one`.

        With randomized=True the draw belongs to the trial: asking again gives the same answer until something is learned. With
        calibrate=False and no experts the value is not computed, only on which side of 0 it lies: a third to a fifth of the work.

        Parameters
        ----------
        row, col : hashable
            Ids, seen before or not.

        Returns
        -------
        label : object
            One of `classes_`, or how many thresholds are reached.
        """
        if not (self._draws or self.calibrate):  # else a `learn_one` that follows wants the value
            signs = self._live().sign_one((read_id(row, "row"), read_id(col, "col")), self.unseen)
            if signs is not None:
                return self._coding().labels(signs[None])[0].item()
        scores = self._decide_one(row, col)[None]
        return self._coding().labels(self._signs(scores, self._live().n_seen))[0].item()

    def predict_proba_one(self, row: Hashable, col: Hashable) -> dict[Any, float]:
        """P(label) of one pair by label, as `predict_proba`.

        Parameters
        ----------
        row, col : hashable
            Ids, seen before or not.

        Returns
        -------
        probabilities : dict of label to float
        """
        scores = self._decide_one(row, col)[None]
        made = class_probabilities(self._reached(self._live(), scores))[0]
        return dict(zip(self.classes_.tolist(), made.tolist(), strict=True))

    def learn_one(self, row: Hashable, col: Hashable, y: Any) -> bool:
        """Learn the label of one pair; a new id gets a vertex.

        Parameters
        ----------
        row, col : hashable
        y : label

        Returns
        -------
        updated : bool
            Whether the learner changed: conservative learners change at mistakes only, others below the margin too.

        Raises
        ------
        ValueError, TypeError
            A label of no class, an id that the side information cannot take; the model is then as before.

        Notes
        -----
        Costs one prediction, or nothing but the update when `decision_one` of the same pair was the last call.
        """
        model = self._live()
        coding = self._coding()
        signs, coding = read_y([y], 1, coding, coding.thresholds)
        pair = (read_id(row, "row"), read_id(col, "col"))
        at = model.place(pair)
        updated = model.learn_one(at, signs[0], model.recall(pair, at), self.calibrate, self._signs)
        self._adopt_coding(coding)
        return updated

    def add_row(self, row: Hashable, value: Any) -> Self:
        """Make an unseen row known by what the side information wants of it: features, or a point of the kernel's domain.

        Parameters
        ----------
        row : hashable
            A new id.
        value : object
            Features by name, or a point.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When the id is known, or the side information does not grow.
        """
        self._live().add("rows", read_id(row, "row"), value)
        return self

    def add_col(self, col: Hashable, value: Any) -> Self:
        """Make an unseen column known; see `add_row`.

        Parameters
        ----------
        col : hashable
            A new id.
        value : object
            What the side information of columns wants of it.

        Returns
        -------
        self
        """
        self._live().add("cols", read_id(col, "col"), value)
        return self

    def recommend(
        self, row: Hashable, n: int = 10, *, cols: Sequence[Hashable] | None = None, exclude: Sequence[Hashable] = ()
    ) -> list[tuple[Any, float]]:
        """The columns a row most probably says yes to.

        Parameters
        ----------
        row : hashable
        n : int, default=10
            At most so many.
        cols : sequence of ids, default=None
            Candidates; None: every column known.
        exclude : sequence of ids, default=()
            Left out, such as what the row has judged already.

        Returns
        -------
        best : list of (column id, y_bar)
            Highest first, equal ones in the order of `cols`; with thresholds, the mean y_bar.

        Raises
        ------
        ValueError
            n below 1, or an unknown id under unseen="raise".
        """
        if not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n must be a positive integer; got {n!r}.")
        model = self._live()
        left = set(read_ids(exclude, "exclude"))
        known = list(model.tables[1].number) if cols is None else read_ids(cols, "cols")
        candidates = [each for each in known if each not in left]
        if not candidates:
            return []
        scores, order = model.ranking(([read_id(row, "row")] * len(candidates), candidates), self.unseen)
        return [(candidates[k], float(scores[k])) for k in order[:n]]

    # -- from scores to answers -------------------------------------------------------------------------------------

    def _shaped(self, scores: Floats) -> Any:
        """Scores (L,) as a number where there is one task."""
        return float(scores[0]) if len(scores) == 1 else scores

    def _signs(self, scores: Floats, first: int) -> Floats:
        """Predicted signs of scores (n, L) answered as trials first, first + 1, ...; a score of 0 is positive."""
        bar = np.zeros((len(scores), 1))
        if self._draws:
            bar = self._live().gammas[0] * trial_draws(self.seed_, first, len(scores))[:, None]
        return np.where(scores >= bar, 1.0, -1.0)

    def _reached(self, model: Model, scores: Floats) -> Floats:
        """P(y = 1) of every task, (n, L): calibrated, or the share of the randomised rule."""
        if not self.calibrate:
            gamma = model.gammas[0]
            made: Floats = np.clip((gamma + scores) / (2 * gamma), 0.0, 1.0)
            return made
        return np.stack([curve.probabilities(scores[:, k]) for k, curve in enumerate(model.curves)], axis=1)
