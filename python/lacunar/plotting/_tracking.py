"""How well a stream of rows is followed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from lacunar.plotting._style import axes_for, line_styles, named_lines
from lacunar.plotting._table import table_of


class TrackingErrorDisplay:
    """Error of subspace trackers along a stream.

    Parameters
    ----------
    rows : array-like of shape (k,)
        Rows seen at every point.
    errors : dict of str to array-like of shape (k,)
        Of every tracker at these points.
    measure : str
        Name of the error.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.
    lines_ : dict of str to matplotlib Line2D
        After `plot`.

    See Also
    --------
    lacunar.tracking.PETRELS, lacunar.tracking.GROUSE : Trackers.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.plotting import TrackingErrorDisplay
    >>> from lacunar.tracking import PETRELS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 8))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> display = TrackingErrorDisplay.from_estimator(PETRELS(2, random_state=0), X)
    >>> bool(display.errors["PETRELS"][-1] < 0.01)
    True
    """

    def __init__(self, rows: ArrayLike, errors: dict[str, Any], measure: str) -> None:
        self.rows = np.asarray(rows)
        self.errors = {name: np.asarray(values, dtype=float) for name, values in errors.items()}
        self.measure = measure

    @classmethod
    def from_predictions(
        cls, residuals: dict[str, Any], *, window: int = 50, ax: Any = None, **line_kw: Any
    ) -> TrackingErrorDisplay:
        """Draw one residual a row and tracker, averaged over windows of rows.

        Parameters
        ----------
        residuals : dict of str to array-like of shape (n,)
            Of every tracker, in order of arrival.
        window : int, default=50
            Rows that are averaged; what is left over at the end is not drawn.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : TrackingErrorDisplay
            Drawn.

        Raises
        ------
        ValueError
            When there are fewer rows than one window.
        """
        arrays = {name: np.asarray(values, dtype=float) for name, values in residuals.items()}
        n = _whole_windows(len(next(iter(arrays.values()))), window, 1) * window
        means = {name: values[:n].reshape(-1, window).mean(axis=1) for name, values in arrays.items()}
        measure = f"residual, mean of {window} rows"
        return cls(np.arange(window, n + 1, window), means, measure).plot(ax, **line_kw)

    @classmethod
    def from_estimator(
        cls,
        estimators: Any,
        X: Any,
        *,
        basis: ArrayLike | None = None,
        window: int = 50,
        ax: Any = None,
        **line_kw: Any,
    ) -> TrackingErrorDisplay:
        """Follow a stream with fresh copies of one tracker or a dict of them, a window of rows at a time.

        Parameters
        ----------
        estimators : tracker, or dict of str to tracker
            With `partial_fit`, and `score_samples` or `components_`.
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Rows in order of arrival.
        basis : array-like of shape (k, d) or (windows, k, d), optional
            The true subspace, or one a window: the error is then |P_true - P|^2 / 2k instead of the residual of every window before
            it is learned.
        window : int, default=50
            Rows learned between two points of the picture.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : TrackingErrorDisplay
            Drawn.

        Raises
        ------
        ValueError
            When there are fewer rows than one window, two where `basis` is not given.
        """
        table = table_of(X)
        trackers = estimators if isinstance(estimators, dict) else {type(estimators).__name__: estimators}
        n = _whole_windows(table.shape[0], window, 2 if basis is None else 1)
        true = None if basis is None else np.asarray(basis, dtype=float)
        errors = {name: list(_follow(clone(each), table, true, window)) for name, each in trackers.items()}
        first = window if true is not None else 2 * window
        rows = np.arange(first, n * window + 1, window)
        measure = "subspace error" if true is not None else f"relative residual, {window} rows ahead"
        return cls(rows, errors, measure).plot(ax, **line_kw)

    def plot(self, ax: Any = None, **line_kw: Any) -> TrackingErrorDisplay:
        """Draw a line a tracker on a logarithmic scale; errors below 1e-16 are drawn there.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : TrackingErrorDisplay
            This one, with `ax_`, `figure_` and `lines_`.
        """
        ax = axes_for(ax, (8.2, 3.6))
        self.lines_ = {}
        styles = line_styles(self.errors, tuple(self.errors)[:1])
        for style, (name, values) in zip(styles, self.errors.items(), strict=True):
            drawn = style | {"linewidth": 2, "label": name} | line_kw
            self.lines_[name] = ax.plot(self.rows, np.maximum(values, 1e-16), **drawn)[0]
        ax.set_yscale("log")
        named_lines(ax, "rows seen", self.measure)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _whole_windows(n: int, window: int, least: int) -> int:
    if n < least * window:
        raise ValueError(
            f"a picture needs {least} window{'s'[: least > 1]} of rows, {least * window}; got {n} rows. Make window smaller."
        )
    return n // window


def _follow(tracker: Any, table: Any, true: NDArray[np.float64] | None, window: int) -> Iterable[float]:
    for number in range(table.shape[0] // window):
        part = table[number * window : (number + 1) * window]
        if true is None:
            if number:
                yield float(np.mean(tracker.score_samples(part)))
            tracker.partial_fit(part)
            continue
        tracker.partial_fit(part)
        yield subspace_error(true[number] if true.ndim == 3 else true, tracker.components_)


def subspace_error(true: NDArray[np.float64], found: NDArray[np.float64]) -> float:
    """|P - Q|_F^2 / 2k for the projections on the spans of the rows of two (k, d) arrays: 0 equal, 1 orthogonal."""
    p, q = (np.linalg.qr(each.T)[0] for each in (true, found))
    return float(max(1.0 - np.square(p.T @ q).sum() / p.shape[1], 0.0))
