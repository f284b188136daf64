"""What further holes would cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import clone, is_regressor
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from lacunar.datasets import hide_mcar
from lacunar.plotting._style import axes_for, line_styles, named_lines
from lacunar.plotting._table import table_of


class ShareCurveDisplay:
    """Learning curve over the share of entries that is observed: loss when more of a table is hidden at random.

    Parameters
    ----------
    shares : array-like of shape (k,)
        Share of the table that was observed.
    losses : dict of str to array-like of shape (k, repeats)
        Loss of every learner on held-out rows.
    measure : str
        Name of the loss.
    strong : sequence of str, default=()
        Names of the learners drawn in green.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.
    lines_ : dict of str to matplotlib Line2D
        After `plot`.

    See Also
    --------
    CoverageDisplay : Loss of one fit, by how much of each row is seen.

    Examples
    --------
    >>> from lacunar import KarmaRegressor
    >>> from lacunar.datasets import make_subspace_regression
    >>> from lacunar.plotting import ShareCurveDisplay
    >>> data = make_subspace_regression(200, 10, 2, share_observed=0.8, random_state=0)
    >>> display = ShareCurveDisplay.from_estimator(KarmaRegressor(), data.data, data.target, shares=[0.3, 1.0])
    >>> loss = display.losses["KarmaRegressor"].mean(axis=1)
    >>> bool(loss[0] > loss[1])
    True
    """

    def __init__(self, shares: ArrayLike, losses: dict[str, Any], measure: str, *, strong: Sequence[str] = ()) -> None:
        self.shares = np.asarray(shares, dtype=float)
        self.losses = {name: np.atleast_2d(np.asarray(values, dtype=float)) for name, values in losses.items()}
        self.measure = measure
        self.strong = strong

    @classmethod
    def from_estimator(
        cls,
        estimators: Any,
        X: Any,
        y: ArrayLike,
        *,
        shares: Sequence[float] = (0.2, 0.4, 0.6, 0.8, 1.0),
        n_repeats: int = 3,
        test_size: float = 0.3,
        random_state: int = 0,
        ax: Any = None,
        **line_kw: Any,
    ) -> ShareCurveDisplay:
        """Hide entries completely at random, fit fresh copies on some rows and test them on the others.

        Every learner gets the same holes and the same rows. Costs `n_repeats` fits a share and learner.

        Parameters
        ----------
        estimators : estimator, or dict of str to estimator
            All classifiers (error rate) or all regressors (RMSE); the first is drawn in green.
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Its own holes stay.
        y : array-like of shape (n,)
            Labels.
        shares : sequence of float, default=(0.2, 0.4, 0.6, 0.8, 1.0)
            Shares of the observed entries that are kept, in (0, 1].
        n_repeats : int, default=3
            Draws of holes and rows.
        test_size : float, default=0.3
            Share of the rows that are tested.
        random_state : int, default=0
            Of holes and rows.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : ShareCurveDisplay
            Drawn.
        """
        learners = estimators if isinstance(estimators, dict) else {type(estimators).__name__: estimators}
        table, target, regression = table_of(X), np.asarray(y), is_regressor(next(iter(learners.values())))
        complete = table.to_scipy() if sp.issparse(X) else table.to_dense()
        split = (ShuffleSplit if regression else StratifiedShuffleSplit)(
            n_repeats, test_size=test_size, random_state=random_state
        )
        losses = {name: np.empty((len(shares), n_repeats)) for name in learners}
        for k, share in enumerate(shares):
            for r, (train, test) in enumerate(split.split(complete, target)):
                holed = hide_mcar(complete, share, random_state=random_state + r).data
                for name, learner in learners.items():
                    made = clone(learner).fit(holed[train], target[train]).predict(holed[test])
                    wrong = np.square(made - target[test]) if regression else made != target[test]
                    losses[name][k, r] = np.sqrt(wrong.mean()) if regression else wrong.mean()
        seen = np.asarray(shares) * table.nnz / max(table.shape[0] * table.shape[1], 1)
        return cls(seen, losses, "RMSE" if regression else "error rate", strong=tuple(learners)[:1]).plot(ax, **line_kw)

    def plot(self, ax: Any = None, **line_kw: Any) -> ShareCurveDisplay:
        """Draw a line a learner, with a band of one standard error over repeats.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : ShareCurveDisplay
            This one, with `ax_`, `figure_` and `lines_`.
        """
        ax = axes_for(ax, (8.2, 3.6))
        self.lines_ = {}
        for style, (name, values) in zip(line_styles(self.losses, self.strong), self.losses.items(), strict=True):
            mean, repeats = values.mean(axis=1), values.shape[1]
            error = values.std(axis=1, ddof=1) / np.sqrt(repeats) if repeats > 1 else np.zeros(len(values))
            drawn = style | {"marker": "o", "linewidth": 2, "markersize": 6, "label": name} | line_kw
            self.lines_[name] = ax.plot(100 * self.shares, mean, **drawn)[0]
            ax.fill_between(
                100 * self.shares, mean - error, mean + error, color=drawn["color"], alpha=0.15, linewidth=0
            )
        named_lines(ax, "share of the table that is observed, %", self.measure)
        self.ax_, self.figure_ = ax, ax.figure
        return self
