"""Pictures of tables with holes and of comparisons: Display classes, as scikit-learn's. matplotlib is imported on use."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["CoverageDisplay", "MissingnessDisplay", "ScoresDisplay"]

INK, QUIET, RULE = "#1f2933", "#6b7785", "#d9dee4"
OURS, PEERS, HOLE, SEEN = "#0b7a75", "#9aa5b1", "#f3efe6", "#33566b"
_STRONG = ("#0b7a75", "#6cc0b4")
_LINES = ("#c8553d", "#5b6c9e", "#b08900", "#7d5ba6", "#8a8f98")
_PICTURE_ROWS = 400  # rows of the missingness picture; more are averaged


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    """The axes given, or those of a new figure without a window."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib, which is not installed: pip install 'lacunar[plot]'") from None
    return Figure(figsize=size, layout="constrained").subplots()


def _quiet(ax: Any) -> None:
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(RULE)
    ax.tick_params(colors=QUIET, labelsize=9, length=0)


class MissingnessDisplay:
    """Which entries of a table are there, rows ordered by their pattern.

    Parameters
    ----------
    seen : ndarray of shape (n, d), bool
    names : sequence of str, optional
        Of the columns; shown when there are at most 40.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.plotting import MissingnessDisplay
    >>> display = MissingnessDisplay.from_array([[1.0, np.nan], [2.0, 3.0]]).plot()
    """

    def __init__(self, seen: NDArray[np.bool_], names: Sequence[str] | None = None) -> None:
        self.seen = seen
        self.names = names

    @classmethod
    def from_array(cls, X: ArrayLike, names: Sequence[str] | None = None) -> MissingnessDisplay:
        """From an array (n, d) with NaN."""
        return cls(~np.isnan(np.asarray(X, dtype=float)), names)

    def image(self) -> NDArray[np.float64]:
        """Share seen, (at most 400, d): rows sorted by pattern, most complete first, neighbours averaged."""
        weights = self.seen.mean(axis=0)
        keys = [self.seen[:, j] for j in np.argsort(-weights, kind="stable")] + [self.seen.sum(axis=1)]
        ordered = self.seen[np.lexsort(keys)[::-1]].astype(float)
        if len(ordered) <= _PICTURE_ROWS:
            return ordered
        return np.array([part.mean(axis=0) for part in np.array_split(ordered, _PICTURE_ROWS)])

    def plot(self, ax: Any = None) -> MissingnessDisplay:
        """Draw into `ax` or a new figure."""
        ax = _axes(ax, (8.2, 3.6))
        from matplotlib.colors import LinearSegmentedColormap

        n, d = self.seen.shape
        colours = LinearSegmentedColormap.from_list("seen", [HOLE, SEEN])
        ax.imshow(
            self.image(), cmap=colours, vmin=0, vmax=1, aspect="auto", interpolation="nearest", extent=(0, d, n, 0)
        )
        for side in ax.spines.values():
            side.set_visible(False)
        ax.tick_params(colors=QUIET, labelsize=9, length=0)
        if d <= 60:
            ax.vlines(np.arange(1, d), 0, n, color="white", linewidth=0.8)
        if self.names is not None and d <= 40:
            short = [name if len(name) <= 20 else name[:19] + "…" for name in self.names]
            ax.set_xticks(np.arange(d) + 0.5, short, rotation=90 if d > 8 else 0, fontsize=8)
        else:
            ax.set_xlabel("column", color=QUIET, fontsize=9)
        ax.set_yticks([0, n], ["1", str(n)])
        ax.set_ylabel("rows, ordered by pattern", color=QUIET, fontsize=9)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ScoresDisplay:
    """Scores with error bars, best at the top.

    Parameters
    ----------
    names : sequence of str
    means, errors : array-like of shape (k,)
        Score, lower is better, and its standard error.
    ours : sequence of bool
        Which are drawn in the strong colour.
    measure : str
        Name of the score.

    Examples
    --------
    >>> from lacunar.plotting import ScoresDisplay
    >>> display = ScoresDisplay(["a", "b"], [0.1, 0.2], [0.01, 0.02], [True, False], "error rate").plot()
    """

    def __init__(
        self, names: Sequence[str], means: ArrayLike, errors: ArrayLike, ours: Sequence[bool], measure: str
    ) -> None:
        self.names = names
        self.means = np.asarray(means, dtype=float)
        self.errors = np.nan_to_num(np.asarray(errors, dtype=float))
        self.ours = ours
        self.measure = measure

    def plot(self, ax: Any = None) -> ScoresDisplay:
        """Draw into `ax` or a new figure."""
        ax = _axes(ax, (8.2, 0.42 * len(self.names) + 0.7))
        _quiet(ax)
        places = np.arange(len(self.names))
        ax.set_axisbelow(True)
        ax.grid(axis="x", color=RULE, linewidth=0.8)
        for y, mean, error, ours in zip(places, self.means, self.errors, self.ours, strict=True):
            colour = OURS if ours else PEERS
            ax.plot([mean - error, mean + error], [y, y], color=colour, linewidth=2.2, solid_capstyle="round")
            ax.plot(mean, y, "o", color=colour, markersize=8, markeredgecolor="white", markeredgewidth=1.2)
        ax.set_yticks(places, list(self.names), fontsize=10, color=INK)
        ax.set_ylim(len(self.names) - 0.5, -0.5)
        ax.set_xlabel(f"{self.measure} (lower is better), ± one standard error", color=QUIET, fontsize=9)
        self.ax_, self.figure_ = ax, ax.figure
        return self


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

    def _colours(self) -> list[str]:
        strong, others = cycle(_STRONG), cycle(_LINES)
        return [next(strong if name in self.strong else others) for name in self.losses]

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
        ax = _axes(ax, (8.2, 3.6))
        _quiet(ax)
        ax.grid(axis="y", color=RULE, linewidth=0.8)
        ax.set_axisbelow(True)
        groups = self.groups()
        places = [100 * self.share[rows].mean() for rows in groups]
        for colour, (name, values) in zip(self._colours(), self.losses.items(), strict=True):
            heights = np.array(
                [np.nanmean(values[rows]) if np.isfinite(values[rows]).any() else np.nan for rows in groups]
            )
            heights = np.sqrt(heights) if self.measure == "RMSE" else heights
            ax.plot(
                places, heights, "-o", color=colour, linewidth=1.8, markersize=5, markeredgecolor="white", label=name
            )
        labels = [f"{place:.0f} %\n{len(rows)} rows" for place, rows in zip(places, groups, strict=True)]
        ax.set_xticks(places, labels)
        ax.set_xlabel("share of the row that is observed", color=QUIET, fontsize=9)
        ax.set_ylabel(self.measure, color=QUIET, fontsize=9)
        ax.legend(frameon=False, fontsize=9, labelcolor=INK, loc="center left", bbox_to_anchor=(1.0, 0.5))
        self.ax_, self.figure_ = ax, ax.figure
        return self
