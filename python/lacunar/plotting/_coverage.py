"""Loss against how much of a row is seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor

from lacunar.plotting._style import axes_for, line_styles, named_lines
from lacunar.plotting._table import table_of


class CoverageDisplay:
    """Loss against the share of a row that is observed.

    Parameters
    ----------
    share : array-like of shape (n,)
        Share of entries observed, per row.
    losses : dict of str to array-like of shape (n,)
        Mean loss of every learner on each row; NaN where not tested.
    measure : str
        "error rate": the mean is shown; "RMSE": the root of the mean.
    n_bins : int, default=5
        At most so many groups of about equal size.
    strong : sequence of str, default=()
        Names of the learners drawn in green.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.
    lines_ : dict of str to matplotlib Line2D
        After `plot`.

    Raises
    ------
    ValueError
        When losses and shares differ in number, or there is no row.

    See Also
    --------
    ShareCurveDisplay : Loss when more entries of the whole table are hidden.

    Examples
    --------
    >>> from lacunar.plotting import CoverageDisplay
    >>> display = CoverageDisplay([0.2, 0.2, 0.9, 0.9], {"a": [1, 0, 0, 0]}, "error rate").plot()
    """

    def __init__(
        self, share: ArrayLike, losses: dict[str, Any], measure: str, *, n_bins: int = 5, strong: Sequence[str] = ()
    ) -> None:
        self.share = np.asarray(share, dtype=float)
        self.losses = {name: np.asarray(values, dtype=float) for name, values in losses.items()}
        self.measure = measure
        self.n_bins = n_bins
        self.strong = strong
        for name, values in self.losses.items():
            if values.shape != self.share.shape or not len(values):
                raise ValueError(
                    f"losses[{name!r}] must hold a number for each of {len(self.share)} rows, at least one; got shape "
                    f"{values.shape}."
                )

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        y_true: ArrayLike,
        y_pred: dict[str, Any],
        *,
        regression: bool = False,
        n_bins: int = 5,
        ax: Any = None,
        **line_kw: Any,
    ) -> CoverageDisplay:
        """Draw the predictions of several learners on the same rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            The rows that were predicted.
        y_true : array-like of shape (n,)
            Their labels.
        y_pred : dict of str to array-like of shape (n,)
            Predictions of every learner, the first in green.
        regression : bool, default=False
            Squared errors, shown as RMSE, instead of the error rate.
        n_bins : int, default=5
            At most so many groups of about equal size.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : CoverageDisplay
            Drawn.
        """
        table, true = table_of(X), np.asarray(y_true)
        share = table.row_counts / max(table.shape[1], 1)
        losses = {
            name: np.square(np.asarray(made) - true) if regression else np.asarray(made) != true
            for name, made in y_pred.items()
        }
        measure, strong = "RMSE" if regression else "error rate", tuple(y_pred)[:1]
        return cls(share, losses, measure, n_bins=n_bins, strong=strong).plot(ax, **line_kw)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, n_bins: int = 5, ax: Any = None, **line_kw: Any
    ) -> CoverageDisplay:
        """Draw a fitted learner on rows that it has not seen.

        Parameters
        ----------
        estimator : fitted classifier or regressor
            Errors of a classifier, RMSE of a regressor.
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Fresh rows.
        y : array-like of shape (n,)
            Their labels.
        n_bins : int, default=5
            At most so many groups of about equal size.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : CoverageDisplay
            Drawn.
        """
        made = {type(estimator).__name__: estimator.predict(X)}
        options = {"regression": is_regressor(estimator), "n_bins": n_bins, "ax": ax}
        return cls.from_predictions(X, y, made, **options, **line_kw)

    def groups(self) -> list[NDArray[np.intp]]:
        """Group rows by the share of them that is seen.

        Returns
        -------
        groups : list of ndarray of int
            Row numbers by rising share; rows of one share stay together, and small groups are merged.
        """
        edges = np.unique(np.quantile(self.share, np.linspace(0, 1, self.n_bins + 1)[1:-1]))
        bins = np.searchsorted(edges, self.share, side="left")
        smallest = max(len(self.share) // 40, 1)
        groups: list[NDArray[np.intp]] = []
        for b in np.unique(bins):
            rows = np.flatnonzero(bins == b)
            if groups and len(groups[-1]) < smallest:
                rows = np.concatenate([groups.pop(), rows])
            groups.append(rows)
        if len(groups) > 1 and len(groups[-1]) < smallest:
            last = groups.pop()
            groups[-1] = np.concatenate([groups[-1], last])
        return groups

    def plot(self, ax: Any = None, **line_kw: Any) -> CoverageDisplay:
        """Draw a line a learner, a point a group of rows.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : CoverageDisplay
            This one, with `ax_`, `figure_` and `lines_`.
        """
        ax = axes_for(ax, (8.2, 3.6))
        groups = self.groups()
        places = [100 * self.share[rows].mean() for rows in groups]
        self.lines_ = {}
        for style, (name, values) in zip(line_styles(self.losses, self.strong), self.losses.items(), strict=True):
            heights = np.array(
                [np.nanmean(values[rows]) if np.isfinite(values[rows]).any() else np.nan for rows in groups]
            )
            heights = np.sqrt(heights) if self.measure == "RMSE" else heights
            drawn = style | {"marker": "o", "linewidth": 2, "markersize": 6, "label": name} | line_kw
            self.lines_[name] = ax.plot(places, heights, **drawn)[0]
        labels = [f"{place:.0f} %\n{len(rows)} rows" for place, rows in zip(places, groups, strict=True)]
        ax.set_xticks(places, labels)
        named_lines(ax, "share of the row that is observed", self.measure)
        self.ax_, self.figure_ = ax, ax.figure
        return self
