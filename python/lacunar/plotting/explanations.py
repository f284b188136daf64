"""What values add to predictions: of one row as a waterfall, of many as a swarm for every feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from lacunar._typing import Floats, Ints
from lacunar.explanation import Explanation, missing_cells
from lacunar.plotting.bars import Bars
from lacunar.plotting.style import OURS, PEERS, Inks

_BINS, _HEIGHT = 40, 0.38  # places along the axis in which points are stacked, and how high at most
_ROOM = 0.14  # beside the bars, as a share of their width
_LONGEST = 18  # of a value beside the name of its feature


def _of_one_output(explanation: Explanation, output: Any) -> Explanation:
    if explanation.values.ndim == 3 and output is None:
        raise ValueError(
            f"output must be one of {explanation.output_names}, as the explanation has several; got None. Choose one."
        )
    return explanation.output(output)


def _of_features(values: Floats, n_shown: int) -> Ints:
    """Features whose values (m, d) are largest on average, first the largest."""
    return np.argsort(-np.abs(values).mean(axis=0), kind="stable")[:n_shown]


def _unit(explanation: Explanation) -> str:
    names = explanation.output_names
    return "prediction" if names is None else f"prediction of {names[-1]}"


class WaterfallDisplay(Bars):
    """One row from the base at the bottom to its prediction at the top: a bar for what each value
    adds, the largest at the top.

    Parameters
    ----------
    explanation : Explanation
        As `explain` returns it.
    row : int, default=0
        Which of its rows.
    output : str or int, default=None
        Name or number of the output, where there are several.
    n_shown : int, default=10
        Largest number of features drawn; the others are one bar together.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.
    bars_ : matplotlib BarContainer
        After `plot`, from the top.

    See Also
    --------
    BeeswarmDisplay : Many rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import GaussianRegressor
    >>> from lacunar.plotting import WaterfallDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = GaussianRegressor().fit(X, X @ [1.0, 3.0])
    >>> WaterfallDisplay(model.explain([[2.0, 1.0]])).shown()
    ['x1 = 1', 'x0 = 2']
    """

    _shape = (6.4, 0.36, 1.0)

    def __init__(self, explanation: Explanation, *, row: int = 0, output: Any = None, n_shown: int = 10) -> None:
        self.explanation = _of_one_output(explanation, output)[row]
        self.row, self.output, self.n_shown = row, output, n_shown

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        row: int = 0,
        output: Any = None,
        n_shown: int = 10,
        ax: Any = None,
        **bar_kw: Any,
    ) -> WaterfallDisplay:
        """Explain the rows of X and draw one.

        Parameters
        ----------
        estimator : fitted LacunarClassifier, LacunarRegressor or GaussianRegressor
        X : table of shape (m, d)
        row : int, default=0
            Which of the rows.
        output : str or int, default=None
            Name or number of the output, where there are several.
        n_shown : int, default=10
            Largest number of features drawn.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **bar_kw : dict
            For matplotlib's `barh`.

        Returns
        -------
        display : WaterfallDisplay
            Drawn.
        """
        return cls(estimator.explain(X), row=row, output=output, n_shown=n_shown).plot(ax, **bar_kw)

    def _order(self) -> Ints:
        return _of_features(self.explanation.values, self.n_shown)

    def _steps(self) -> Floats:
        """What each bar adds, from the top."""
        values, order = self.explanation.values[0], self._order()
        others = np.delete(values, order)
        return np.append(values[order], others.sum()) if others.size else values[order]

    def _names(self) -> list[str]:
        data, order = self.explanation.data[0], self._order()
        missing = missing_cells(self.explanation.data)[0]
        names = [f"{self.explanation.feature_names[j]} = {'missing' if missing[j] else _short(data[j])}" for j in order]
        n_left = len(data) - len(order)
        return [*names, f"{n_left} other{'s' * (n_left > 1)}"] if n_left else names

    def _label(self) -> str:
        base, prediction = self.explanation.base_values[0], self.explanation.predictions[0]
        return f"{_unit(self.explanation)}, from {base:.3g} (nothing known) to {prediction:.3g}"

    def _draw(self, ax: Any, words: Inks, kw: dict[str, Any]) -> None:
        """What raises the prediction in green, what lowers it in grey, each from where the bar below it ends."""
        steps = self._steps()
        starts = self.explanation.base_values[0] + np.append(np.cumsum(steps[::-1])[::-1][1:], 0.0)
        drawn = {"color": [OURS if step > 0 else PEERS for step in steps], "height": 0.66, "left": starts} | kw
        self.bars_ = ax.barh(np.arange(len(steps)), steps, **drawn)
        ax.bar_label(self.bars_, [f"{step:+.2g}" for step in steps], padding=3, color=words.ink, fontsize=9)
        ends = np.concatenate([starts, starts + steps])
        room = _ROOM * (np.ptp(ends) or 1.0)  # for the labels: bars are drawn to the edge of the axes otherwise
        ax.set_xlim(ends.min() - room, ends.max() + room)
        ax.axvline(self.explanation.base_values[0], color=words.quiet, linewidth=0.8)


def _short(cell: Any) -> str:
    text = f"{cell:.4g}" if isinstance(cell, (int, float, np.number)) else str(cell)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


class BeeswarmDisplay(Bars):
    """What values add to the predictions of many rows: for every feature a point a row that shows
    it, those that move predictions most at the top.

    Points are green where the feature's value is high among the rows, grey where it is low; of
    features that are no numbers all are green.

    Parameters
    ----------
    explanation : Explanation
        As `explain` returns it.
    output : str or int, default=None
        Name or number of the output, where there are several.
    n_shown : int, default=12
        Largest number of features drawn.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.

    See Also
    --------
    WaterfallDisplay : One row.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import GaussianRegressor
    >>> from lacunar.plotting import BeeswarmDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = GaussianRegressor().fit(X, X @ [1.0, 3.0])
    >>> BeeswarmDisplay(model.explain(X)).shown()
    ['x1', 'x0']
    """

    _shape = (6.4, 0.42, 1.0)

    def __init__(self, explanation: Explanation, *, output: Any = None, n_shown: int = 12) -> None:
        self.explanation = _of_one_output(explanation, output)
        self.output, self.n_shown = output, n_shown

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, output: Any = None, n_shown: int = 12, ax: Any = None, **point_kw: Any
    ) -> BeeswarmDisplay:
        """Explain the rows of X and draw them.

        Parameters
        ----------
        estimator : fitted LacunarClassifier, LacunarRegressor or GaussianRegressor
        X : table of shape (m, d)
        output : str or int, default=None
            Name or number of the output, where there are several.
        n_shown : int, default=12
            Largest number of features drawn.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **point_kw : dict
            For matplotlib's `scatter`.

        Returns
        -------
        display : BeeswarmDisplay
            Drawn.
        """
        return cls(estimator.explain(X), output=output, n_shown=n_shown).plot(ax, **point_kw)

    def _names(self) -> list[str]:
        share = missing_cells(self.explanation.data).mean(axis=0)
        names = self.explanation.feature_names
        order = _of_features(self.explanation.values, self.n_shown)
        return [f"{names[j]}, {share[j]:.0%} missing" if share[j] else names[j] for j in order]

    def _label(self) -> str:
        return f"added to the {_unit(self.explanation)}; green: high values of the feature"

    def _draw(self, ax: Any, words: Inks, kw: dict[str, Any]) -> None:
        values, missing = self.explanation.values, missing_cells(self.explanation.data)
        low, high = np.asarray(_rgb(PEERS)), np.asarray(_rgb(OURS))
        width = (values.max() - values.min()) / _BINS or 1.0
        for y, j in enumerate(_of_features(values, self.n_shown)):
            rows = np.flatnonzero(~missing[:, j])
            shade = _ranks(self.explanation.data[rows, j])[:, None]
            drawn = {"c": low * (1 - shade) + high * shade, "s": 12, "linewidths": 0} | kw
            ax.scatter(values[rows, j], y + _stacked(values[rows, j], width), **drawn)
        ax.axvline(0, color=words.quiet, linewidth=0.8)


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(colour)


def _ranks(cells: Any) -> Floats:
    """Shares of the cells that are lower, between 0 and 1; 1 for all that are no numbers."""
    try:
        numbers = cells.astype(np.float64)
    except (TypeError, ValueError):
        return np.ones(len(cells))
    return np.asarray(np.searchsorted(np.sort(numbers), numbers) / max(len(numbers) - 1, 1))


def _stacked(values: Floats, width: float) -> Floats:
    """Heights of points about 0, so that those of one bin lie beside each other."""
    bins = np.floor(values / width).astype(np.intp)
    _, place, counts = np.unique(bins, return_inverse=True, return_counts=True)
    order = np.argsort(place, kind="stable")
    number = np.empty(len(values), dtype=np.intp)
    number[order] = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    side = np.where(number % 2, 1.0, -1.0) * ((number + 1) // 2)
    return np.asarray(side / max(counts.max(initial=1), 10) * 2 * _HEIGHT)
