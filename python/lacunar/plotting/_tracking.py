"""How well a stream of rows is followed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from lacunar.plotting._style import axes_for, line_colours, named_lines
from lacunar.plotting._table import table_of


class TrackingErrorDisplay:
    """Error of subspace trackers along a stream.

    Parameters
    ----------
    rows : array-like of shape (k,)
        Rows seen at every point.
    errors : dict of str to array-like of shape (k,)
    measure : str

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.

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
    def from_predictions(cls, residuals: dict[str, Any], *, window: int = 50) -> TrackingErrorDisplay:
        """From one residual a row and tracker, averaged over windows of rows."""
        arrays = {name: np.asarray(values, dtype=float) for name, values in residuals.items()}
        n = len(next(iter(arrays.values()))) // window * window
        means = {name: values[:n].reshape(-1, window).mean(axis=1) for name, values in arrays.items()}
        return cls(np.arange(window, n + 1, window), means, f"residual, mean of {window} rows")

    @classmethod
    def from_estimator(
        cls, estimators: Any, X: Any, *, basis: ArrayLike | None = None, window: int = 50
    ) -> TrackingErrorDisplay:
        """Follow a stream with fresh copies of one tracker or a dict of them, a window of rows at a time.

        Parameters
        ----------
        estimators : tracker, or dict of str to tracker
            With `partial_fit`, and `score_samples` or `components_`.
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        basis : array-like of shape (k, d) or (windows, k, d), optional
            The true subspace, or one a window: the error is then |P_true - P|^2 / 2k instead of the residual of every window before
            it is learned.
        window : int, default=50
        """
        table = table_of(X)
        trackers = estimators if isinstance(estimators, dict) else {type(estimators).__name__: estimators}
        true = None if basis is None else np.asarray(basis, dtype=float)
        errors = {name: list(_follow(clone(each), table, true, window)) for name, each in trackers.items()}
        n = table.shape[0] // window
        first = window if true is not None else 2 * window
        rows = np.arange(first, n * window + 1, window)
        return cls(rows, errors, "subspace error" if true is not None else f"relative residual, {window} rows ahead")

    def plot(self, ax: Any = None) -> TrackingErrorDisplay:
        """Draw into `ax` or a new figure, on a logarithmic scale."""
        ax = axes_for(ax, (8.2, 3.6))
        for colour, (name, values) in zip(
            line_colours(self.errors, tuple(self.errors)[:2]), self.errors.items(), strict=True
        ):
            ax.plot(self.rows, values, color=colour, linewidth=1.6, label=name)
        ax.set_yscale("log")
        named_lines(ax, "rows seen", self.measure)
        self.ax_, self.figure_ = ax, ax.figure
        return self


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
