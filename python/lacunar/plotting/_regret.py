"""What learning along a stream costs against the best in hindsight."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lacunar.plotting._style import QUIET, axes_for, line_colours, named_lines


class RegretDisplay:
    """Running loss of learners that predict every row before they learn it; regret against a comparator.

    Parameters
    ----------
    losses : dict of str to array-like of shape (n,)
        Loss of every row before it was learned.
    comparator : array-like of shape (n,), optional
        Loss of a fixed predictor, the best in hindsight: regret, the difference of the sums, is drawn instead of the mean.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.

    Examples
    --------
    >>> from lacunar.plotting import RegretDisplay
    >>> RegretDisplay({"a": [1, 1, 0, 0]}, comparator=[0, 1, 0, 0]).curves()["a"]
    array([1., 1., 1., 1.])
    """

    def __init__(self, losses: dict[str, Any], comparator: ArrayLike | None = None) -> None:
        self.losses = {name: np.asarray(values, dtype=float) for name, values in losses.items()}
        self.comparator = None if comparator is None else np.asarray(comparator, dtype=float)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_pred: dict[str, Any], *, comparator: ArrayLike | None = None
    ) -> RegretDisplay:
        """From labels in order of arrival and progressive predictions; `comparator` holds predictions too. Mistakes are counted."""
        true = np.asarray(y_true)
        losses = {name: np.asarray(made) != true for name, made in y_pred.items()}
        return cls(losses, None if comparator is None else np.asarray(comparator) != true)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, **options: Any) -> RegretDisplay:
        """From a classifier with `score_stream`, which it is put through (and learns from); `options` go there."""
        score = estimator.score_stream(X, y, **options)
        values = np.asarray(score.values)
        values = values.reshape(len(values), -1)
        codes = (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
        return cls({type(estimator).__name__: np.asarray(estimator.classes_)[codes] != np.asarray(y)})

    def curves(self) -> dict[str, Any]:
        """Regret after every row, or the running mean loss where there is no comparator."""
        if self.comparator is not None:
            return {name: np.cumsum(values - self.comparator) for name, values in self.losses.items()}
        return {name: np.cumsum(values) / np.arange(1, len(values) + 1) for name, values in self.losses.items()}

    def plot(self, ax: Any = None) -> RegretDisplay:
        """Draw into `ax` or a new figure."""
        ax = axes_for(ax, (8.2, 3.6))
        curves = self.curves()
        for colour, (name, values) in zip(line_colours(curves, tuple(curves)[:1]), curves.items(), strict=True):
            ax.plot(np.arange(1, len(values) + 1), values, color=colour, linewidth=1.6, label=name)
        if self.comparator is not None:
            ax.axhline(0, color=QUIET, linewidth=0.8)
        named_lines(ax, "rows seen", "mean loss so far" if self.comparator is None else "regret")
        self.ax_, self.figure_ = ax, ax.figure
        return self
