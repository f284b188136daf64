"""Colours and axes that all pictures share. matplotlib is imported on use."""

from __future__ import annotations

from itertools import cycle
from typing import Any, NamedTuple

OURS, PEERS, HOLE, SEEN = "#0b7a75", "#9aa5b1", "#f3efe6", "#33566b"
_STRONG = ("#0b7a75", "#56b4a9")
_LINES = ("#d55e00", "#0072b2", "#cc79a7", "#e69f00", "#7f7f7f")  # Okabe and Ito's, which all kinds of eyes tell apart
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))  # and dashes, for those who print


class Inks(NamedTuple):
    """Colours of words and rules, to suit the ground they stand on."""

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


def named_lines(ax: Any, xlabel: str, ylabel: str) -> None:
    """Labels, a light grid, and a legend beside the axes where there is something to name."""
    quiet(ax)
    words = inks(ax)
    ax.grid(axis="y", color=words.rule, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel(xlabel, color=words.quiet, fontsize=10)
    ax.set_ylabel(ylabel, color=words.quiet, fontsize=10)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize=10, labelcolor=words.ink, loc="center left", bbox_to_anchor=(1.0, 0.5))


def axes_for(ax: Any, size: tuple[float, float]) -> Any:
    """The axes given, or those of a new figure of pyplot's, as scikit-learn's displays do."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib, which is not installed: pip install 'lacunar[plot]'") from None
    return plt.subplots(figsize=size, layout="constrained")[1]


def quiet(ax: Any) -> None:
    """No frame, light ticks."""
    words = inks(ax)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(words.rule)
    ax.tick_params(colors=words.quiet, labelsize=9, length=0)
