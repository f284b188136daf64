"""Scores of learners side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lacunar.plotting._style import OURS, PEERS, axes_for, inks, quiet


class ScoresDisplay:
    """Scores with error bars, best at the top.

    Parameters
    ----------
    names : sequence of str
        Of the learners, from the top.
    means, errors : array-like of shape (k,)
        Score, lower is better, and its standard error.
    ours : sequence of bool
        Which are drawn in the strong colour.
    measure : str
        Name of the score.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.

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

    def plot(self, ax: Any = None, **line_kw: Any) -> ScoresDisplay:
        """Draw a point and an error bar a learner.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot` of the bars.

        Returns
        -------
        display : ScoresDisplay
            This one, with `ax_` and `figure_`.
        """
        ax = axes_for(ax, (8.2, 0.42 * len(self.names) + 0.7))
        quiet(ax)
        places = np.arange(len(self.names))
        ax.set_axisbelow(True)
        words = inks(ax)
        ax.grid(axis="x", color=words.rule, linewidth=0.8)
        for y, mean, error, ours in zip(places, self.means, self.errors, self.ours, strict=True):
            colour = OURS if ours else PEERS
            drawn = {"color": colour, "linewidth": 2.2, "solid_capstyle": "round"} | line_kw
            ax.plot([mean - error, mean + error], [y, y], **drawn)
            marker = "o" if ours else "s"
            ax.plot(mean, y, marker, color=drawn["color"], markersize=8, markeredgecolor=ax.get_facecolor())
        ax.set_yticks(places, list(self.names), fontsize=10, color=words.ink)
        ax.set_ylim(len(self.names) - 0.5, -0.5)
        ax.set_xlabel(f"{self.measure} (lower is better), ± one standard error", color=words.quiet, fontsize=10)
        self.ax_, self.figure_ = ax, ax.figure
        return self
