"""Scores and coefficients, one line for every name, the first at the top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lacunar.plotting.style import OURS, PEERS, Inks, axes_for, inks, quiet


class Bars:
    """A row for every name, the first at the top, over a light grid: what displays of scores and coefficients share.

    A display gives its names by `_names`, draws by `_draw`, and names its x-axis by `_label`; `_shape` are the width of a new figure and the
    heights of a row and of what is beside the rows.
    """

    _shape = (6.4, 0.42, 0.9)

    def shown(self) -> list[str]:
        """Read the names from the top.

        Returns
        -------
        names : list of str
        """
        return self._names()

    def _names(self) -> list[str]:
        raise NotImplementedError

    def _label(self) -> str:
        raise NotImplementedError

    def _draw(self, ax: Any, words: Inks, kw: dict[str, Any]) -> None:
        raise NotImplementedError

    def plot(self, ax: Any = None, **bar_kw: Any) -> Self:
        """Draw a bar for every name.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **bar_kw : dict
            For matplotlib's `barh` (of `ScoresDisplay`, `plot`).

        Returns
        -------
        display : Self
            This one, with `ax_` and `figure_`.
        """
        names, (width, row, beside) = self.shown(), self._shape
        ax = axes_for(ax, (width, row * len(names) + beside))
        quiet(ax, grid="x")
        words = inks(ax)
        ax.set_yticks(np.arange(len(names)), names, fontsize=10, color=words.ink)
        ax.set_ylim(len(names) - 0.5, -0.5)
        self._draw(ax, words, bar_kw)
        ax.set_xlabel(self._label(), color=words.quiet, fontsize=10)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _largest(sizes: NDArray[np.float64], n: int) -> NDArray[np.intp]:
    return np.argsort(-sizes, kind="stable")[:n]


class ScoresDisplay(Bars):
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
    >>> display = ScoresDisplay(
    ...     ["a", "b"], [0.1, 0.2], [0.01, 0.02], [True, False], "error rate"
    ... ).plot()
    """

    _shape = (8.2, 0.42, 0.7)

    def __init__(
        self, names: Sequence[str], means: ArrayLike, errors: ArrayLike, ours: Sequence[bool], measure: str
    ) -> None:
        self.names = names
        self.means = np.asarray(means, dtype=float)
        self.errors = np.nan_to_num(np.asarray(errors, dtype=float))
        self.ours = ours
        self.measure = measure

    def _names(self) -> list[str]:
        return list(self.names)

    def _label(self) -> str:
        return f"{self.measure} (lower is better), ± one standard error"

    def _draw(self, ax: Any, words: Inks, kw: dict[str, Any]) -> None:
        for y, (mean, error, ours) in enumerate(zip(self.means, self.errors, self.ours, strict=True)):
            drawn = {"color": OURS if ours else PEERS, "linewidth": 2.2, "solid_capstyle": "round"} | kw
            ax.plot([mean - error, mean + error], [y, y], **drawn)
            marker = "o" if ours else "s"
            ax.plot(mean, y, marker, color=drawn["color"], markersize=8, markeredgecolor=ax.get_facecolor())


class CoefficientDisplay(Bars):
    """Coefficients in the columns of the table, the largest at the top.

    Parameters
    ----------
    names : sequence of str
        Of the columns.
    coef : array-like of shape (d,)
        One number a column.
    n_shown : int, default=20
        Largest number of coefficients drawn; the others are the smallest.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.
    bars_ : matplotlib BarContainer
        After `plot`, from the top.

    Raises
    ------
    ValueError
        When there are not as many names as coefficients.

    See Also
    --------
    lacunar.lowrank.SLRMRegressor : Its `feature_coef_` is drawn.

    Examples
    --------
    >>> from lacunar.plotting import CoefficientDisplay
    >>> CoefficientDisplay(["age", "dose"], [0.1, -2.0]).shown()
    ['dose', 'age']
    """

    _shape = (6.4, 0.3, 0.9)

    def __init__(self, names: Sequence[str], coef: ArrayLike, *, n_shown: int = 20) -> None:
        self.names = [str(name) for name in names]
        self.coef = np.asarray(coef, dtype=float)
        self.n_shown = n_shown
        if self.coef.shape != (len(self.names),):
            raise ValueError(
                f"coef must hold a number for each of {len(self.names)} names; got shape {self.coef.shape}. For a model with "
                "several targets, choose a row of its coefficients."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        names: Sequence[str] | None = None,
        target: int = 0,
        n_shown: int = 20,
        ax: Any = None,
        **bar_kw: Any,
    ) -> CoefficientDisplay:
        """Draw a fitted `SLRMRegressor`, or another model with `feature_coef_`, or any linear model
        (`coef_`).

        Parameters
        ----------
        estimator : fitted estimator
            With `feature_coef_` or `coef_`.
        names : sequence of str, optional
            Default `feature_names_in_`, else x0, x1, ...
        target : int, default=0
            Row of coefficients where there are several.
        n_shown : int, default=20
            Largest number of coefficients drawn; the others are the smallest.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **bar_kw : dict
            For matplotlib's `barh`.

        Returns
        -------
        display : CoefficientDisplay
            Drawn.

        Raises
        ------
        TypeError
            The estimator has neither `feature_coef_` nor `coef_`.
        """
        coefficients = next(
            (getattr(estimator, name) for name in ("feature_coef_", "coef_") if hasattr(estimator, name)), None
        )
        if coefficients is None:
            raise TypeError(
                f"estimator must be fitted and have feature_coef_ or coef_; got {type(estimator).__name__}. Fit it first, or "
                "pass names and coefficients to CoefficientDisplay."
            )
        coef = np.atleast_2d(np.asarray(coefficients, dtype=float))[target]
        if names is None:
            names = list(getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(len(coef))]))
        return cls(names, coef, n_shown=n_shown).plot(ax, **bar_kw)

    def _order(self) -> NDArray[np.intp]:
        return _largest(np.abs(self.coef), self.n_shown)

    def _names(self) -> list[str]:
        return [self.names[j] for j in self._order()]

    def _label(self) -> str:
        return "coefficient, in units of the column"

    def _draw(self, ax: Any, words: Inks, kw: dict[str, Any]) -> None:
        """Draw the bars, positive ones in green, negative ones in grey."""
        values = self.coef[self._order()]
        drawn = {"color": [OURS if v > 0 else PEERS for v in values], "height": 0.66} | kw
        self.bars_ = ax.barh(np.arange(len(values)), values, **drawn)
        ax.axvline(0, color=words.quiet, linewidth=0.8)


class ImportanceDisplay(Bars):
    """What columns matter to a learner: that their values are these, and that they are missing, two
    bars a column.

    Parameters
    ----------
    importance : dict of columns
        As `LacunarClassifier.importance` returns it.
    n_shown : int, default=20
        Largest number of columns drawn, those that matter most.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.

    See Also
    --------
    lacunar.LacunarClassifier.importance : Makes the table.

    Examples
    --------
    >>> from lacunar.plotting import ImportanceDisplay
    >>> table = {
    ...     "column": ["age", "dose"],
    ...     "value": [0.1, 0.4],
    ...     "value_sd": [0, 0],
    ...     "missing": [0.2, 0],
    ...     "missing_sd": [0, 0],
    ... }
    >>> ImportanceDisplay(table).shown()
    ['dose', 'age']
    """

    _shape = (6.4, 0.42, 1.2)

    def __init__(self, importance: Mapping[str, Any], *, n_shown: int = 20) -> None:
        self.importance = importance
        self.n_shown = n_shown

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_repeats: int = 5, n_shown: int = 20, ax: Any = None, **bar_kw: Any
    ) -> ImportanceDisplay:
        """Permute the columns of X and draw.

        Parameters
        ----------
        estimator : fitted LacunarClassifier or LacunarRegressor
        X : table of shape (m, d)
            Rows, best those the model has not seen.
        y : array-like of shape (m,)
            Their targets.
        n_repeats : int, default=5
            Permutations of every column.
        n_shown : int, default=20
            Largest number of columns drawn.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **bar_kw : dict
            For matplotlib's `barh`.

        Returns
        -------
        display : ImportanceDisplay
            Drawn.
        """
        return cls(estimator.importance(X, y, n_repeats=n_repeats), n_shown=n_shown).plot(ax, **bar_kw)

    def _order(self) -> NDArray[np.intp]:
        return _largest(np.maximum(self.importance["value"], self.importance["missing"]), self.n_shown)

    def _names(self) -> list[str]:
        return [str(self.importance["column"][j]) for j in self._order()]

    def _label(self) -> str:
        return "loss gained by permuting, on the rows given"

    def _draw(self, ax: Any, words: Inks, kw: dict[str, Any]) -> None:
        """Values in green, missing entries in grey, one standard deviation over permutations as a line."""
        order = self._order()
        for name, shift, colour, label in (
            ("value", -0.18, OURS, "its value"),
            ("missing", 0.18, PEERS, "that it is missing"),
        ):
            sizes, spread = (np.asarray(self.importance[key], dtype=float)[order] for key in (name, f"{name}_sd"))
            drawn = {"color": colour, "height": 0.34, "label": label, "xerr": spread, "ecolor": words.quiet} | kw
            ax.barh(np.arange(len(order)) + shift, sizes, **drawn)
        ax.axvline(0, color=words.quiet, linewidth=0.8)
        ax.legend(frameon=False, fontsize=10, labelcolor=words.ink)


class PoolDisplay(Bars):
    """Members of the one learner: the weight of each in the pool, its own score beside its name.

    Parameters
    ----------
    report : dict of columns
        `report_` of a fitted `LacunarClassifier` or `LacunarRegressor`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.

    See Also
    --------
    lacunar.LacunarClassifier : Whose members are drawn.

    Examples
    --------
    >>> from lacunar.plotting import PoolDisplay
    >>> PoolDisplay(
    ...     {"member": ["kernels", "forest"], "score": [0.9, 0.8], "weight": [0.7, 0.3]}
    ... ).shown()
    ['kernels, 0.900', 'forest, 0.800']
    """

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.report = report

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **bar_kw: Any) -> PoolDisplay:
        """Draw a fitted learner.

        Parameters
        ----------
        estimator : fitted LacunarClassifier or LacunarRegressor
            Its `report_` is drawn.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **bar_kw : dict
            For matplotlib's `barh`.

        Returns
        -------
        display : PoolDisplay
            Drawn.
        """
        return cls(estimator.report_).plot(ax, **bar_kw)

    def _names(self) -> list[str]:
        pairs = zip(self.report["member"], self.report["score"], strict=True)
        return [f"{name}, {'left out' if np.isnan(score) else f'{score:.3f}'}" for name, score in pairs]

    def _label(self) -> str:
        return "weight in the pool; beside the name its score out of fold"

    def _draw(self, ax: Any, words: Inks, kw: dict[str, Any]) -> None:
        weights = np.asarray(self.report["weight"], dtype=float)
        ax.barh(np.arange(len(weights)), weights, **({"color": OURS, "height": 0.66} | kw))
