"""Colours and axes that all pictures share. matplotlib is imported on use."""

from __future__ import annotations

from itertools import cycle
from typing import Any

INK, QUIET, RULE = "#1f2933", "#6b7785", "#d9dee4"
OURS, PEERS, HOLE, SEEN = "#0b7a75", "#9aa5b1", "#f3efe6", "#33566b"
_LINES = ("#c8553d", "#5b6c9e", "#b08900", "#7d5ba6", "#8a8f98")
_STRONG = ("#0b7a75", "#6cc0b4")


def line_colours(names: Any, strong: Any = ()) -> list[str]:
    """One colour a name, greens for the strong ones."""
    ours, others = cycle(_STRONG), cycle(_LINES)
    return [next(ours if name in strong else others) for name in names]


def named_lines(ax: Any, xlabel: str, ylabel: str) -> None:
    """Labels, a light grid and a legend beside the axes."""
    quiet(ax)
    ax.grid(axis="y", color=RULE, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel(xlabel, color=QUIET, fontsize=9)
    ax.set_ylabel(ylabel, color=QUIET, fontsize=9)
    ax.legend(frameon=False, fontsize=9, labelcolor=INK, loc="center left", bbox_to_anchor=(1.0, 0.5))


def axes_for(ax: Any, size: tuple[float, float]) -> Any:
    """The axes given, or those of a new figure without a window."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib, which is not installed: pip install 'lacunar[plot]'") from None
    return Figure(figsize=size, layout="constrained").subplots()


def quiet(ax: Any) -> None:
    """No frame, light ticks."""
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(RULE)
    ax.tick_params(colors=QUIET, labelsize=9, length=0)
