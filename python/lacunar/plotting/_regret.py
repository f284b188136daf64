"""What learning along a stream costs against the best in hindsight."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lacunar.plotting._style import axes_for, inks, line_styles, named_lines


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
    lines_ : dict of str to matplotlib Line2D
        After `plot`.

    See Also
    --------
    lacunar.karma.KarmaClassifier.score_stream : Predicts every row, then learns it.
    lacunar.completion.OnlineMatrixClassifier.score_stream : The same for pairs.

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
        cls,
        y_true: ArrayLike,
        y_pred: dict[str, Any],
        *,
        comparator: ArrayLike | None = None,
        ax: Any = None,
        **line_kw: Any,
    ) -> RegretDisplay:
        """Draw the mistakes of predictions that were made before each label was seen.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels in order of arrival.
        y_pred : dict of str to array-like of shape (n,)
            Predictions of every learner, the first in green.
        comparator : array-like of shape (n,), optional
            Predictions of a fixed rule: regret is drawn instead of the mean.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : RegretDisplay
            Drawn.
        """
        true = np.asarray(y_true)
        losses = {name: np.asarray(made) != true for name, made in y_pred.items()}
        return cls(losses, None if comparator is None else np.asarray(comparator) != true).plot(ax, **line_kw)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        comparator: ArrayLike | None = None,
        stream_params: dict[str, Any] | None = None,
        ax: Any = None,
        **line_kw: Any,
    ) -> RegretDisplay:
        """Put a classifier through a stream, which it predicts and learns, and draw its mistakes.

        Parameters
        ----------
        estimator : classifier with `score_stream`
            `KarmaClassifier` or `OnlineMatrixClassifier`. It learns the stream.
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Rows in order of arrival; of shape (n, 2), the pairs, for `OnlineMatrixClassifier`.
        y : array-like of shape (n,)
            Their labels.
        comparator : array-like of shape (n,), optional
            Predictions of a fixed rule: regret is drawn instead of the mean.
        stream_params : dict, optional
            For `score_stream`, such as `classes`.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : RegretDisplay
            Drawn.
        """
        name, options = type(estimator).__name__, stream_params or {}
        other = None if comparator is None else np.asarray(comparator) != np.asarray(y)
        if name == "OnlineMatrixClassifier":
            pairs = np.asarray(X, dtype=object)
            score = estimator.score_stream(list(pairs[:, 0]), list(pairs[:, 1]), y, **options)
            return cls({name: np.diff(score.running_mistakes, prepend=0)}, other).plot(ax, **line_kw)
        score = estimator.score_stream(X, y, **options)
        values = np.asarray(score.values)
        values = values.reshape(len(values), -1)
        codes = (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
        return cls({name: np.asarray(estimator.classes_)[codes] != np.asarray(y)}, other).plot(ax, **line_kw)

    def curves(self) -> dict[str, Any]:
        """Compute what is drawn.

        Returns
        -------
        curves : dict of str to ndarray of shape (n,)
            Regret after every row, or the running mean loss where there is no comparator.
        """
        if self.comparator is not None:
            return {name: np.cumsum(values - self.comparator) for name, values in self.losses.items()}
        return {name: np.cumsum(values) / np.arange(1, len(values) + 1) for name, values in self.losses.items()}

    def plot(self, ax: Any = None, **line_kw: Any) -> RegretDisplay:
        """Draw a line a learner.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : RegretDisplay
            This one, with `ax_`, `figure_` and `lines_`.
        """
        ax = axes_for(ax, (8.2, 3.6))
        curves = self.curves()
        self.lines_ = {}
        for style, (name, values) in zip(line_styles(curves, tuple(curves)[:1]), curves.items(), strict=True):
            drawn = style | {"linewidth": 2, "label": name} | line_kw
            self.lines_[name] = ax.plot(np.arange(1, len(values) + 1), values, **drawn)[0]
        if self.comparator is not None:
            ax.axhline(0, color=inks(ax).quiet, linewidth=0.8)
        named_lines(ax, "rows seen", "mean loss so far" if self.comparator is None else "regret")
        self.ax_, self.figure_ = ax, ax.figure
        return self
