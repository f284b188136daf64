"""What a linear model on a subspace makes of the columns that people know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lacunar.plotting._style import INK, OURS, PEERS, QUIET, RULE, axes_for, quiet


class CoefficientDisplay:
    """Coefficients in the columns of the table, the largest at the top.

    Parameters
    ----------
    names : sequence of str
        Of the columns.
    coef : array-like of shape (d,)
    n_shown : int, default=20
        At most so many, those of largest size.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.

    Examples
    --------
    >>> from lacunar.plotting import CoefficientDisplay
    >>> CoefficientDisplay(["age", "dose"], [0.1, -2.0]).shown()
    ['dose', 'age']
    """

    def __init__(self, names: Sequence[str], coef: ArrayLike, *, n_shown: int = 20) -> None:
        self.names = [str(name) for name in names]
        self.coef = np.asarray(coef, dtype=float)
        self.n_shown = n_shown

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, names: Sequence[str] | None = None, target: int = 0, n_shown: int = 20
    ) -> CoefficientDisplay:
        """From a fitted `SLRMRegressor`, `MPCRRegressor` (their `feature_coef_`) or any linear model (`coef_`).

        Parameters
        ----------
        estimator : fitted estimator
        names : sequence of str, optional
            Default `feature_names_in_`, else x0, x1, ...
        target : int, default=0
            Row of coefficients where there are several.
        n_shown : int, default=20

        Raises
        ------
        TypeError
            The estimator has neither `feature_coef_` nor `coef_`.
        """
        found = next(
            (getattr(estimator, name) for name in ("feature_coef_", "coef_") if hasattr(estimator, name)), None
        )
        if found is None:
            raise TypeError(
                f"estimator must be fitted and have feature_coef_ or coef_; got {type(estimator).__name__}. Fit it first, or "
                "pass names and coefficients to CoefficientDisplay."
            )
        coef = np.atleast_2d(np.asarray(found, dtype=float))[target]
        if names is None:
            names = list(getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(len(coef))]))
        return cls(names, coef, n_shown=n_shown)

    def _order(self) -> Any:
        return np.argsort(-np.abs(self.coef), kind="stable")[: self.n_shown]

    def shown(self) -> list[str]:
        """Names from the top."""
        return [self.names[j] for j in self._order()]

    def plot(self, ax: Any = None) -> CoefficientDisplay:
        """Draw into `ax` or a new figure."""
        order = self._order()
        ax = axes_for(ax, (6.4, 0.3 * len(order) + 0.9))
        quiet(ax)
        ax.set_axisbelow(True)
        ax.grid(axis="x", color=RULE, linewidth=0.8)
        values = self.coef[order]
        ax.barh(np.arange(len(order)), values, color=[OURS if v > 0 else PEERS for v in values], height=0.66)
        ax.axvline(0, color=QUIET, linewidth=0.8)
        ax.set_yticks(np.arange(len(order)), self.shown(), fontsize=9, color=INK)
        ax.set_ylim(len(order) - 0.5, -0.5)
        ax.set_xlabel("coefficient, in units of the column", color=QUIET, fontsize=9)
        self.ax_, self.figure_ = ax, ax.figure
        return self
