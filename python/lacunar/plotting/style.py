"""Colours, axes and lines that all pictures share. matplotlib is imported on use."""

from __future__ import annotations

from itertools import cycle
from typing import Any, NamedTuple, Self

from numpy.typing import ArrayLike

OURS, PEERS, MISSING, SEEN = "#0b7a75", "#9aa5b1", "#f3efe6", "#33566b"
_STRONG = ("#0b7a75", "#56b4a9")
# Okabe and Ito's colours, distinct for colour-blind readers too.
_LINES = ("#d55e00", "#0072b2", "#cc79a7", "#e69f00", "#7f7f7f")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))  # and dashes, for prints without colour


class Inks(NamedTuple):
    """Colours of words and rules that stand out from the background."""

    ink: str
    quiet: str
    rule: str


def inks(ax: Any) -> Inks:
    """Dark words on light axes, light words on dark ones."""
    from matplotlib.colors import to_rgba

    ground = ax.figure.get_facecolor() if to_rgba(ax.get_facecolor())[3] == 0 else ax.get_facecolor()
    red, green, blue, opaque = to_rgba(ground)
    light = opaque < 0.5 or 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
    return Inks("#1f2933", "#52606d", "#d9dee4") if light else Inks("#f0f3f6", "#b8c2cc", "#4a5561")


def line_styles(names: Any, strong: Any = ()) -> list[dict[str, Any]]:
    """Colour and dashes of every name: greens for the strong ones, no two of the first seven alike."""
    names = list(names)
    ours, others, dashes = cycle(_STRONG), cycle(_LINES), cycle(_DASHES)
    solid = cycle(("-", "--"))
    return [
        {"color": next(ours), "linestyle": next(solid)}
        if name in strong
        else {"color": next(others), "linestyle": next(dashes)}
        for name in names
    ]


def axes_for(ax: Any, size: tuple[float, float]) -> Any:
    """The axes given, or those of a new figure of pyplot's, as scikit-learn's displays do."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib, which is not installed: pip install 'lacunar[plot]'") from None
    return plt.subplots(figsize=size, layout="constrained")[1]


def quiet(ax: Any, grid: str | None = None) -> None:
    """No frame, light ticks, a light grid behind along one axis where it is named."""
    words = inks(ax)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(words.rule)
    ax.tick_params(colors=words.quiet, labelsize=9, length=0)
    if grid is not None:
        ax.grid(axis=grid, color=words.rule, linewidth=0.8)
        ax.set_axisbelow(True)


class Curves:
    """A line for every learner over common places, with a legend: what displays of losses and errors share.

    A display gives its lines by `_lines`, the names of its axes by `_labels`, and what else it draws by `_add`.
    """

    strong: Any = ()  # names drawn in green
    marker: str | None = None

    def _lines(self) -> tuple[ArrayLike, dict[str, Any]]:
        """Places (k,), and the heights (k,) of every line."""
        raise NotImplementedError

    def _labels(self) -> tuple[str, str]:
        raise NotImplementedError

    def _add(self, ax: Any) -> None:
        """Draw what is not a line."""

    def plot(self, ax: Any = None, **line_kw: Any) -> Self:
        """Draw a line for every name.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : Self
            This one, with `ax_`, `figure_` and `lines_`.
        """
        ax = axes_for(ax, (8.2, 3.6))
        places, lines = self._lines()
        common = {"linewidth": 2} | ({"marker": self.marker, "markersize": 6} if self.marker else {})
        self.lines_ = {
            name: ax.plot(places, heights, **(style | common | {"label": name} | line_kw))[0]
            for style, (name, heights) in zip(line_styles(lines, self.strong), lines.items(), strict=True)
        }
        self._add(ax)
        self._legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _legend(self, ax: Any) -> None:
        """Labels, a light grid, and a legend beside the axes where there is something to name."""
        quiet(ax, grid="y")
        words, (xlabel, ylabel) = inks(ax), self._labels()
        ax.set_xlabel(xlabel, color=words.quiet, fontsize=10)
        ax.set_ylabel(ylabel, color=words.quiet, fontsize=10)
        if self.lines_:
            ax.legend(frameon=False, fontsize=10, labelcolor=words.ink, loc="center left", bbox_to_anchor=(1.0, 0.5))
