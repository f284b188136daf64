"""Which entries of a table are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar.observed.cells import cut
from lacunar.plotting.rows import Pattern, by_rows, is_frame, pattern_of
from lacunar.plotting.style import MISSING, SEEN, axes_for, inks

_PICTURE = 400  # rows and columns of the picture; more are averaged
_PATTERNS = 2**26  # cells up to which rows are sorted by their whole pattern


class MissingnessDisplay:
    """Which entries of a table are there, rows ordered by their pattern.

    Parameters
    ----------
    image : ndarray of shape (at most 400, at most 400)
        Share seen of every cell of the picture.
    shape : (int, int)
        Of the table.
    names : sequence of str, optional
        Of the columns; shown when there are at most 40.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.
    image_ : matplotlib AxesImage
        After `plot`.

    See Also
    --------
    CoverageDisplay : What missing entries cost a learner.

    Notes
    -----
    O(nnz) time and memory beside the table: a sparse table never becomes dense.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.plotting import MissingnessDisplay
    >>> display = MissingnessDisplay.from_table([[1.0, np.nan], [2.0, 3.0]])
    >>> display.image
    array([[1., 1.],
           [1., 0.]])
    """

    def __init__(self, image: NDArray[np.float64], shape: tuple[int, int], names: Sequence[str] | None = None) -> None:
        self.image = image
        self.shape = shape
        self.names = names

    @classmethod
    def from_table(
        cls, X: Any, names: Sequence[str] | None = None, *, ax: Any = None, **image_kw: Any
    ) -> MissingnessDisplay:
        """Draw any table, of any size: an array with NaN, a frame, a sparse matrix or `Observed`.
        O(nnz + cells sorted).

        Rows are sorted by pattern, most complete first; beyond 2^26 cells by their number of
        entries only. Neighbours are averaged into at most 400 x 400 cells; columns keep their
        order.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            What a sparse matrix does not store is missing.
        names : sequence of str, optional
            Of the columns. Default those of a frame.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **image_kw : dict
            For matplotlib's `imshow`.

        Returns
        -------
        display : MissingnessDisplay
            Drawn.
        """
        pattern = pattern_of(X)
        names = list(by_rows(X).columns) if names is None and is_frame(X) else names
        return cls(_image(pattern), pattern.shape, names).plot(ax, **image_kw)

    def plot(self, ax: Any = None, **image_kw: Any) -> MissingnessDisplay:
        """Draw the map: dark where seen, light where missing.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **image_kw : dict
            For matplotlib's `imshow`.

        Returns
        -------
        display : MissingnessDisplay
            This one, with `ax_`, `figure_` and `image_`.
        """
        ax = axes_for(ax, (8.2, 3.6))
        from matplotlib.colors import LinearSegmentedColormap

        n, d = self.shape
        colours = LinearSegmentedColormap.from_list("seen", [MISSING, SEEN])
        largest = float(self.image.max(initial=0.0))
        darkest = 1.0 if largest > 0.5 or largest == 0 else largest  # or a sparse table would look empty
        extent = (0, max(d, 1), max(n, 1), 0)
        drawn = {
            "cmap": colours,
            "vmin": 0,
            "vmax": darkest,
            "aspect": "auto",
            "interpolation": "nearest",
            "extent": extent,
        }
        self.image_ = ax.imshow(self.image, **(drawn | image_kw))
        for side in ax.spines.values():
            side.set_visible(False)
        words = inks(ax)
        ax.tick_params(colors=words.quiet, labelsize=9, length=0)
        if d <= 60:
            ax.vlines(np.arange(1, d), 0, n, color=ax.get_facecolor(), linewidth=0.8)
        self._label(ax, "" if darkest == 1 else f" (darkest: {100 * darkest:.2g} % seen)")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _label(self, ax: Any, shade: str) -> None:
        """Names of few columns, or what columns are with the meaning of a shade; numbers and order of the rows."""
        (n, d), words = self.shape, inks(ax)
        if self.names is not None and d <= 40:
            short = [cut(name, 20) for name in self.names]
            ax.set_xticks(np.arange(d) + 0.5, short, rotation=90 if d > 8 else 0, fontsize=8, parse_math=False)
        else:
            ax.set_xlabel("column" + shade, color=words.quiet, fontsize=10)
        ax.set_yticks([0, n], ["1", str(n)])
        ax.set_ylabel(
            "rows, ordered by pattern" if n * d <= _PATTERNS else "rows, most complete first", color=words.quiet
        )


def _row_order(pattern: Pattern) -> NDArray[np.intp]:
    """Most complete rows first; among equals by pattern, columns most often seen first."""
    n, d = pattern.shape
    if n * d > _PATTERNS:
        return np.argsort(-pattern.row_counts, kind="stable")
    seen = np.zeros((n, d), bool)
    seen[pattern.row_numbers, pattern.indices] = True
    keys = [seen[:, j] for j in np.argsort(-seen.mean(axis=0), kind="stable")] if n else []
    return np.lexsort([*keys, pattern.row_counts])[::-1]


def _image(pattern: Pattern) -> NDArray[np.float64]:
    """Share seen by cell of the picture, from one count over the entries."""
    n, d = pattern.shape
    height, width = max(min(n, _PICTURE), 1), max(min(d, _PICTURE), 1)
    place = np.empty(n, np.int64)
    place[_row_order(pattern)] = np.arange(n) * height // max(n, 1)
    column = np.arange(d) * width // max(d, 1)
    cells = np.repeat(place, pattern.row_counts) * width + column[pattern.indices]
    counts = np.bincount(cells, minlength=height * width).reshape(height, width)
    area = np.outer(np.bincount(place, minlength=height), np.bincount(column, minlength=width))
    image: NDArray[np.float64] = counts / np.maximum(area, 1)
    return image
