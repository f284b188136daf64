"""Loss against how much of a row is seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor

from lacunar.plotting._style import axes_for, line_colours, named_lines
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

    @classmethod
    def from_predictions(
        cls, X: Any, y_true: ArrayLike, y_pred: dict[str, Any], *, regression: bool = False, n_bins: int = 5
    ) -> CoverageDisplay:
        """From rows X (n, d), their labels and the predictions of every learner.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y_true : array-like of shape (n,)
        y_pred : dict of str to array-like of shape (n,)
        regression : bool, default=False
            Squared errors, shown as RMSE, instead of the error rate.
        n_bins : int, default=5
        """
        table, true = table_of(X), np.asarray(y_true)
        share = table.row_counts / max(table.shape[1], 1)
        losses = {
            name: np.square(np.asarray(made) - true) if regression else np.asarray(made) != true
            for name, made in y_pred.items()
        }
        return cls(share, losses, "RMSE" if regression else "error rate", n_bins=n_bins, strong=tuple(y_pred)[:1])

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, *, n_bins: int = 5) -> CoverageDisplay:
        """From a fitted classifier or regressor and rows it has not seen."""
        made = {type(estimator).__name__: estimator.predict(X)}
        return cls.from_predictions(X, y, made, regression=is_regressor(estimator), n_bins=n_bins)

    def groups(self) -> list[NDArray[np.intp]]:
        """Row numbers of every group, by rising share; rows of one share stay together. Small groups are merged."""
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

    def plot(self, ax: Any = None) -> CoverageDisplay:
        """Draw into `ax` or a new figure."""
        ax = axes_for(ax, (8.2, 3.6))
        groups = self.groups()
        places = [100 * self.share[rows].mean() for rows in groups]
        for colour, (name, values) in zip(line_colours(self.losses, self.strong), self.losses.items(), strict=True):
            heights = np.array(
                [np.nanmean(values[rows]) if np.isfinite(values[rows]).any() else np.nan for rows in groups]
            )
            heights = np.sqrt(heights) if self.measure == "RMSE" else heights
            ax.plot(
                places, heights, "-o", color=colour, linewidth=1.8, markersize=5, markeredgecolor="white", label=name
            )
        labels = [f"{place:.0f} %\n{len(rows)} rows" for place, rows in zip(places, groups, strict=True)]
        ax.set_xticks(places, labels)
        named_lines(ax, "share of the row that is observed", self.measure)
        self.ax_, self.figure_ = ax, ax.figure
        return self
