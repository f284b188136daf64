"""Pictures of filled tables: what was drawn beside what was observed, the chains, hidden entries that were drawn, and shifts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from lacunar._random import generator
from lacunar._typing import Floats
from lacunar.impute.columns import Column
from lacunar.impute.pooling import PooledResult
from lacunar.impute.tables import read_table
from lacunar.observed.cells import cut
from lacunar.observed.door import check_numbers
from lacunar.plotting.rows import by_rows, hide, pattern_of
from lacunar.plotting.style import OURS, PEERS, Inks, axes_for, inks, quiet

_ACROSS, _PANEL = 4, (2.6, 2.1)  # panels beside one another, and their size in inches
_BINS = 20
_FEWEST_DRAWS = 20  # of which the least and the largest hold 90 %
_SHIFTS = 9
_FURTHEST = 2.0  # standard deviations by which drawn values are shifted


class Panels:
    """A small picture for every column: what displays of imputed columns share.

    A display names its columns by `_names`, and draws one by `_draw`.
    """

    n_shown: int

    def _names(self) -> list[str]:
        raise NotImplementedError

    def _draw(self, ax: Any, name: str, words: Inks) -> None:
        raise NotImplementedError

    def shown(self) -> list[str]:
        """Read which columns are drawn.

        Returns
        -------
        names : list of str
        """
        return self._names()[: self.n_shown]

    def plot(self, ax: Any = None) -> Self:
        """Draw a panel for every column.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Whose place the panels take; default a new figure.

        Returns
        -------
        display : Self
            This one, with `ax_`, `axes_`, a dict of the panels by column, and `figure_`.
        """
        names = self.shown()
        across = max(min(len(names), _ACROSS), 1)
        down = max(-(-len(names) // across), 1)
        ax = axes_for(ax, (_PANEL[0] * across, _PANEL[1] * down))
        from matplotlib.gridspec import GridSpecFromSubplotSpec

        words = inks(ax)
        ax.set_axis_off()
        grid = GridSpecFromSubplotSpec(down, across, subplot_spec=ax.get_subplotspec())
        panels = {}
        for k, name in enumerate(names):
            panel = ax.figure.add_subplot(grid[k // across, k % across])
            panel.set_facecolor(ax.get_facecolor())
            quiet(panel, grid="y")
            panel.set_title(cut(name, 24), fontsize=10, color=words.ink, parse_math=False)
            self._draw(panel, name, words)
            panels[name] = panel
        self.ax_, self.axes_, self.figure_ = ax, panels, ax.figure
        return self


class ImputedValuesDisplay(Panels):
    """Observed and imputed values of every column with missing entries, a panel each: densities of
    numbers, shares of levels.

    The two may differ where entries are missing by what the other columns say; a difference that
    those do not explain is a reason to look again at the models, or at why entries are missing.

    Parameters
    ----------
    observed : dict of str to array-like of shape (n_observed,)
        Values by column; places of levels where `levels` names the column.
    imputed : dict of str to array-like of shape (n_imputations, n_missing)
        What was drawn.
    levels : dict of str to sequence of str, default=None
        Names of the levels, of columns of levels.
    n_shown : int, default=12
        Largest number of columns drawn, those with most missing.

    Attributes
    ----------
    axes_ : dict of str to matplotlib Axes
        After `plot`, the panels by column.
    ax_, figure_ : matplotlib Axes, whose place they take, and Figure
        After `plot`.

    See Also
    --------
    OverimputationDisplay : Draws of entries whose values are known.

    Examples
    --------
    >>> from lacunar.plotting import ImputedValuesDisplay
    >>> display = ImputedValuesDisplay({"a": [1, 2, 3]}, {"a": [[2.0], [3.0]]})
    >>> display.shown()
    ['a']
    """

    def __init__(
        self,
        observed: Mapping[str, Any],
        imputed: Mapping[str, Any],
        levels: Mapping[str, Sequence[str]] | None = None,
        *,
        n_shown: int = 12,
    ) -> None:
        self.observed = {name: np.asarray(values, dtype=float) for name, values in observed.items()}
        self.imputed = {name: np.atleast_2d(np.asarray(values, dtype=float)) for name, values in imputed.items()}
        self.levels = dict(levels or {})
        self.n_shown = n_shown

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, n_shown: int = 12, ax: Any = None) -> ImputedValuesDisplay:
        """Draw what a fitted imputer makes of a table.

        Parameters
        ----------
        estimator : fitted Imputer or MultipleImputer
            Its completed tables are read.
        X : frame or array-like of shape (n, d)
            The training table, or new rows.
        n_shown : int, default=12
            Largest number of columns drawn, those with most missing.
        ax : matplotlib Axes, optional
            Whose place the panels take; default a new figure.

        Returns
        -------
        display : ImputedValuesDisplay
            Drawn.
        """
        check_is_fitted(estimator)
        columns = estimator.columns_
        before = _numbers(estimator, X)
        tables = list(estimator.draws(X)) if hasattr(estimator, "draws") else [estimator.transform(X)]
        after = [_numbers(estimator, table) for table in tables]
        observed, imputed = {}, {}
        for j, column in enumerate(columns):
            draws = np.array([numbers[j][np.isnan(before[j])] for numbers in after])
            if draws.size and not np.isnan(draws).any():
                observed[column.name], imputed[column.name] = before[j][~np.isnan(before[j])], draws
        return cls(observed, imputed, _levels(columns), n_shown=n_shown).plot(ax)

    def _names(self) -> list[str]:
        return sorted(self.imputed, key=lambda name: -self.imputed[name].shape[1])

    def heights(self, name: str) -> tuple[Floats, Floats, Floats]:
        """Read what the panel of one column shows.

        Parameters
        ----------
        name : str
            Of the column.

        Returns
        -------
        places : ndarray of shape (k + 1,) or (k,)
            Edges of k bins of numbers, or the places of k levels.
        observed : ndarray of shape (k,)
            Density of the observed numbers, or shares of the observed levels.
        imputed : ndarray of shape (n_imputations, k)
            The same of the imputed ones, in every draw.
        """
        seen, drawn = self.observed[name], self.imputed[name]
        if name in self.levels:
            k = len(self.levels[name])
            shares = [
                np.bincount(values.astype(np.intp), minlength=k) / max(len(values), 1) for values in [seen, *drawn]
            ]
            return np.arange(k, dtype=float), shares[0], np.array(shares[1:])
        edges = np.histogram_bin_edges(np.concatenate([seen, drawn.ravel()]), bins=_BINS)
        densities = [np.histogram(values, edges, density=True)[0] for values in [seen, *drawn]]
        return edges, np.nan_to_num(densities[0]), np.array(densities[1:])

    def _draw(self, ax: Any, name: str, words: Inks) -> None:
        """Observed ones filled in grey, every draw a thin green line, or its share a green dot."""
        places, observed, imputed = self.heights(name)
        ax.set_yticks([])
        if name in self.levels:
            ax.bar(places, observed, color=PEERS, width=0.7)
            ax.plot(np.tile(places, (len(imputed), 1)).T, imputed.T, "o", color=OURS, markersize=3.5, alpha=0.6)
            ax.set_xticks(places, [str(level)[:12] for level in self.levels[name]], fontsize=8, parse_math=False)
            return
        ax.stairs(observed, places, fill=True, color=PEERS)
        for heights in imputed:
            ax.stairs(heights, places, color=OURS, linewidth=0.9, alpha=0.6)


class ChainsDisplay(Panels):
    """Means of the drawn values of every column by sweep, a line for each chain.

    Chains that have settled cross one another and show no trend.

    Parameters
    ----------
    traces : dict of str to array-like of shape (n_imputations, sweeps)
        Means by column.
    convergence : dict of str to float
        Square root of the variance between chains over that within; near 1 where sweeps have
        settled.
    n_shown : int, default=12
        Largest number of columns drawn, those that have settled least.

    Attributes
    ----------
    axes_ : dict of str to matplotlib Axes
        After `plot`, the panels by column.
    ax_, figure_ : matplotlib Axes, whose place they take, and Figure
        After `plot`.

    See Also
    --------
    lacunar.impute.MultipleImputer : Whose `traces_` are drawn.

    Examples
    --------
    >>> from lacunar.plotting import ChainsDisplay
    >>> ChainsDisplay(
    ...     {"a": [[0.1, 0.2], [0.3, 0.1]], "b": [[0, 5], [9, 6]]}, {"a": 1.0, "b": 1.7}
    ... ).shown()
    ['b', 'a']
    """

    def __init__(self, traces: Mapping[str, Any], convergence: Mapping[str, float], *, n_shown: int = 12) -> None:
        self.traces = {name: np.asarray(means, dtype=float) for name, means in traces.items()}
        self.convergence = dict(convergence)
        self.n_shown = n_shown

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_shown: int = 12, ax: Any = None) -> ChainsDisplay:
        """Draw the chains of a fitted imputer.

        Parameters
        ----------
        estimator : fitted MultipleImputer
            Its `traces_` are drawn.
        n_shown : int, default=12
            Largest number of columns drawn, those that have settled least.
        ax : matplotlib Axes, optional
            Whose place the panels take; default a new figure.

        Returns
        -------
        display : ChainsDisplay
            Drawn.
        """
        check_is_fitted(estimator)
        drawn = [j for j in range(len(estimator.columns_)) if not np.isnan(estimator.traces_[:, :, j]).all()]
        names = {j: estimator.columns_[j].name for j in drawn}
        traces = {name: estimator.traces_[:, :, j] for j, name in names.items()}
        return cls(traces, {name: float(estimator.convergence_[j]) for j, name in names.items()}, n_shown=n_shown).plot(
            ax
        )

    def _names(self) -> list[str]:
        return sorted(self.traces, key=lambda name: -np.nan_to_num(self.convergence[name]))

    def _draw(self, ax: Any, name: str, words: Inks) -> None:
        means = self.traces[name]
        ax.plot(np.arange(1, means.shape[1] + 1), means.T, color=OURS, linewidth=0.9, alpha=0.6)
        ax.set_xlabel(f"sweep; ratio {self.convergence[name]:.2f}", fontsize=8, color=words.quiet)
        ax.xaxis.get_major_locator().set_params(integer=True)


class OverimputationDisplay(Panels):
    """Observed entries that were hidden and drawn, against their values, with how often the
    intervals of the draws hold them.

    Parameters
    ----------
    values : dict of str to array-like of shape (k,)
        Entries that were hidden, by column; places of levels where `levels` names the column.
    draws : dict of str to array-like of shape (n_imputations, k)
        What was drawn for them.
    levels : dict of str to sequence of str, default=None
        Names of the levels, of columns of levels.
    level : float, default=0.9
        Share that an interval should hold.
    n_shown : int, default=12
        Largest number of columns drawn.

    Attributes
    ----------
    axes_ : dict of str to matplotlib Axes
        After `plot`, the panels by column.
    ax_, figure_ : matplotlib Axes, whose place they take, and Figure
        After `plot`.

    See Also
    --------
    lacunar.impute.Imputer : Whose `imputed_` says how far single values are off.

    Notes
    -----
    Honaker, King and Blackwell, "Amelia II", 2011, who hide one entry at a time and keep the model,
    which has seen it; here the model never sees what it draws. An interval goes between order
    statistics of the draws such that it holds one more draw with probability `level`; of few draws
    it is as wide as these are.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.plotting import OverimputationDisplay
    >>> draws = np.random.default_rng(0).normal(size=(20, 3))
    >>> display = OverimputationDisplay({"a": [0.0, 0.1, 9.0]}, {"a": draws})
    >>> print(round(display.held()["a"], 2))
    0.67
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        draws: Mapping[str, Any],
        levels: Mapping[str, Sequence[str]] | None = None,
        *,
        level: float = 0.9,
        n_shown: int = 12,
    ) -> None:
        self.values = {name: np.asarray(entries, dtype=float) for name, entries in values.items()}
        self.draws = {name: np.asarray(drawn, dtype=float) for name, drawn in draws.items()}
        self.levels = dict(levels or {})
        self.level = level
        self.n_shown = n_shown

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        n_parts: int = 5,
        level: float = 0.9,
        n_shown: int = 12,
        random_state: int = 0,
        ax: Any = None,
    ) -> OverimputationDisplay:
        """Hide the observed entries of a table part by part, and draw each part by an imputer that
        learns from the others.

        Parameters
        ----------
        estimator : MultipleImputer
            Fitted or not; copies of it are fitted, with at least 20 draws.
        X : frame or array-like of shape (n, d)
            The table.
        n_parts : int, default=5
            Parts, at least 2, each hidden once. More parts hide less at a time, and take as many
            fits.
        level : float, default=0.9
            Share that an interval should hold.
        n_shown : int, default=12
            Largest number of columns drawn.
        random_state : int, default=0
            Draws the parts.
        ax : matplotlib Axes, optional
            Whose place the panels take; default a new figure.

        Returns
        -------
        display : OverimputationDisplay
            Drawn.
        """
        if not isinstance(n_parts, int) or n_parts < 2:
            raise ValueError(
                f"n_parts must be an integer of at least 2; got {n_parts!r}. Each part is hidden once: pass 5."
            )
        imputer = clone(estimator).set_params(n_imputations=max(estimator.n_imputations, _FEWEST_DRAWS))
        table, pattern = by_rows(X), pattern_of(X)
        parts = generator(random_state).permutation(len(pattern.indices)) % n_parts
        values: dict[str, list[Floats]] = {}
        draws: dict[str, list[Floats]] = {}
        for part in range(n_parts):
            hidden = hide(table, pattern, parts != part)
            for name, (entries, drawn) in _drawn(imputer.fit(hidden), X, hidden).items():
                values.setdefault(name, []).append(entries)
                draws.setdefault(name, []).append(drawn)
        joined = {name: np.concatenate(entries) for name, entries in values.items()}
        together = {name: np.concatenate(drawn, axis=1) for name, drawn in draws.items()}
        return cls(joined, together, _levels(imputer.columns_), level=level, n_shown=n_shown).plot(ax)

    def _names(self) -> list[str]:
        return list(self.values)

    def intervals(self, name: str) -> Floats:
        """Read the ends of the intervals of a column of numbers.

        Parameters
        ----------
        name : str
            Of the column.

        Returns
        -------
        ends : ndarray of shape (k, 2)
        """
        tail = (1 - self.level) / 2
        ends: Floats = np.quantile(self.draws[name], [tail, 1 - tail], axis=0, method="weibull")
        return ends.T

    def held(self) -> dict[str, float]:
        """Share of hidden entries that came back, by column.

        Returns
        -------
        shares : dict of str to float
            Of numbers the share within their intervals, which should be near `level`; of levels the
            share of draws that are right.
        """
        shares = {}
        for name, values in self.values.items():
            if name in self.levels:
                shares[name] = float(np.mean(self.draws[name] == values))
            else:
                low, high = self.intervals(name).T
                shares[name] = float(np.mean((low <= values) & (values <= high)))
        return shares

    def _draw(self, ax: Any, name: str, words: Inks) -> None:
        """Of numbers a line for each interval, green where it holds the entry; of levels the share of right draws by
        level.
        """
        values, share = self.values[name], self.held()[name]
        if name in self.levels:
            right = (self.draws[name] == values).mean(axis=0)
            names = self.levels[name]
            means = [float(right[values == k].mean()) if (values == k).any() else 0.0 for k in range(len(names))]
            ax.bar(np.arange(len(names)), means, color=OURS, width=0.7)
            ax.set_xticks(np.arange(len(names)), [str(level)[:12] for level in names], fontsize=8, parse_math=False)
            ax.set_xlabel(f"{share:.0%} of draws right", fontsize=8, color=words.quiet)
            return
        low, high = self.intervals(name).T
        holds = (low <= values) & (values <= high)
        for rows, colour in ((holds, OURS), (~holds, "#d55e00")):
            ax.vlines(values[rows], low[rows], high[rows], color=colour, linewidth=0.7, alpha=0.5)
        ax.axline((float(values.mean()),) * 2, slope=1, color=words.quiet, linewidth=0.8)
        ax.set_xlabel(f"observed; {share:.0%} of intervals hold it", fontsize=8, color=words.quiet)


class DeltaDisplay:
    """A pooled coefficient against a shift of all drawn values of one column, and the shift at
    which the conclusion turns.

    Parameters
    ----------
    deltas : array-like of shape (k,)
        Shifts, ascending.
    estimate : array-like of shape (k,)
        Pooled estimates.
    ends : array-like of shape (k, 2)
        Ends of their intervals.
    column, coefficient : str
        Names of the shifted column and of the coefficient.
    null : float, default=0
        What the interval may hold or not.

    Attributes
    ----------
    tipping_point : float
        The smallest shift, in modulus, at which the interval begins to hold `null`, or ceases to,
        between shifts by lines; NaN where the conclusion is the same for all shifts.
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.

    Raises
    ------
    ValueError
        When shapes differ, or shifts do not ascend across 0.

    See Also
    --------
    lacunar.impute.MultipleImputer.analyse : Its `delta` shifts drawn values.

    Examples
    --------
    >>> from lacunar.plotting import DeltaDisplay
    >>> display = DeltaDisplay(
    ...     [-2, 0, 2], [0.0, 1.0, 2.0], [[-0.5, 0.5], [0.5, 1.5], [1.5, 2.5]], "income", "age"
    ... )
    >>> float(display.tipping_point)
    -1.0
    """

    def __init__(
        self,
        deltas: ArrayLike,
        estimate: ArrayLike,
        ends: ArrayLike,
        column: str,
        coefficient: str,
        *,
        null: float = 0.0,
    ) -> None:
        self.deltas = np.asarray(deltas, dtype=float)
        self.estimate = np.asarray(estimate, dtype=float)
        self.ends = np.asarray(ends, dtype=float)
        self.column = column
        self.coefficient = coefficient
        self.null = null
        k = len(self.deltas)
        if self.estimate.shape != (k,) or self.ends.shape != (k, 2) or not (np.diff(self.deltas) > 0).all():
            raise ValueError(
                f"deltas must be k ascending numbers, with estimate (k,) and ends (k, 2); got shapes {self.deltas.shape}, "
                f"{self.estimate.shape} and {self.ends.shape}. Sort the shifts, and pass an estimate for each."
            )
        if not self.deltas[0] <= 0 <= self.deltas[-1]:
            raise ValueError(
                f"deltas must reach from 0 or below to 0 or above; got {self.deltas[0]:g} to {self.deltas[-1]:g}. Add 0."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        analysis: Callable[[Any], Any],
        X: Any,
        column: str,
        *,
        coefficient: str | int = 0,
        deltas: Sequence[float] | None = None,
        null: float = 0.0,
        level: float = 0.95,
        ax: Any = None,
        **line_kw: Any,
    ) -> DeltaDisplay:
        """Pool an analysis for every shift, and draw one coefficient.

        Parameters
        ----------
        estimator : fitted MultipleImputer
            Its drawn values are shifted.
        analysis : callable
            As in `MultipleImputer.analyse`.
        X : frame or array-like of shape (n, d)
            The training table.
        column : str
            The column of numbers whose drawn values are shifted.
        coefficient : str or int, default=0
            Name or place of the coefficient.
        deltas : sequence of float, default=None
            Shifts, which reach across 0. None: nine up to two standard deviations of the column in
            either direction.
        null : float, default=0
            What the interval may hold or not.
        level : float, default=0.95
            Of the intervals.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : DeltaDisplay
            Drawn.
        """
        check_is_fitted(estimator)
        column = str(column)
        shifts = _shifts_of(estimator, X, column) if deltas is None else np.unique(_numbers_of(deltas))
        pooled = [estimator.analyse(analysis, X, delta={column: shift}) for shift in shifts.tolist()]
        place = _place_of(coefficient, pooled[0])
        ends = [result.conf_int(level)[place] for result in pooled]
        estimates = [result.estimate[place] for result in pooled]
        return cls(shifts, estimates, ends, column, pooled[0].names[place], null=null).plot(ax, **line_kw)

    @property
    def tipping_point(self) -> float:
        """The smallest shift in modulus at which the interval begins to hold `null`, or ceases to."""
        margin = np.maximum(self.ends[:, 0] - self.null, self.null - self.ends[:, 1])  # above 0 where null lies outside
        sides = np.sort(np.append(self.deltas, 0.0)) if 0 not in self.deltas else self.deltas
        margin = np.interp(sides, self.deltas, margin)
        turns = np.flatnonzero((margin[1:] > 0) != (margin[:-1] > 0))
        if not turns.size:
            return float("nan")
        share = margin[turns] / (margin[turns] - margin[turns + 1])
        places = sides[turns] + share * (sides[turns + 1] - sides[turns])
        return float(places[np.argmin(np.abs(places))])

    def plot(self, ax: Any = None, **line_kw: Any) -> DeltaDisplay:
        """Draw the coefficient and its interval against the shift.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : DeltaDisplay
            This one, with `ax_` and `figure_`.
        """
        ax = axes_for(ax, (6.4, 3.2))
        quiet(ax, grid="y")
        words, turn = inks(ax), self.tipping_point
        ax.fill_between(self.deltas, *self.ends.T, color=OURS, alpha=0.25, linewidth=0)
        ax.plot(self.deltas, self.estimate, **({"color": OURS, "linewidth": 2} | line_kw))
        ax.axhline(self.null, color=words.quiet, linewidth=0.8)
        if not np.isnan(turn):
            ax.axvline(turn, color="#d55e00", linewidth=1.2, linestyle="--")
        said = "the conclusion is the same for all" if np.isnan(turn) else f"the conclusion turns at {turn:.3g}"
        ax.set_xlabel(f"added to drawn values of {self.column}; {said}", color=words.quiet, parse_math=False)
        ax.set_ylabel(f"coefficient of {self.coefficient}", color=words.quiet, parse_math=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _numbers(estimator: Any, X: Any) -> list[Floats]:
    """The columns of a table as numbers, places of levels among them, as a fitted imputer reads them."""
    return [values.numbers for values in read_table(estimator, X, reset=False).values(estimator.columns_)]


def _levels(columns: Sequence[Column]) -> dict[str, list[str]]:
    return {column.name: [str(level) for level in column.levels] for column in columns if column.levels}


def _drawn(imputer: Any, X: Any, hidden: Any) -> dict[str, tuple[Floats, Floats]]:
    """Values (k,) of the entries of X that `hidden` lacks, and what a fitted imputer draws for them, (m, k), by column."""
    known, shown = _numbers(imputer, X), _numbers(imputer, hidden)
    rows = [np.flatnonzero(~np.isnan(a) & np.isnan(b)) for a, b in zip(known, shown, strict=True)]
    tables = [_numbers(imputer, table) for table in imputer.draws(hidden)]
    answer = {}
    for j, column in enumerate(imputer.columns_):
        draws = np.array([numbers[j][rows[j]] for numbers in tables])
        if draws.size and not np.isnan(draws).any():
            answer[column.name] = known[j][rows[j]], draws
    return answer


def _numbers_of(deltas: Any) -> Floats:
    numbers = check_numbers(deltas, "deltas", ensure_2d=False) if np.size(deltas) else np.empty(0)
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError(f"deltas must be a list of shifts; got shape {np.shape(deltas)}. Pass such as [-1, 0, 1].")
    return numbers


def _shifts_of(estimator: Any, X: Any, name: str) -> Floats:
    """Nine shifts of a column, whole ones for whole numbers."""
    places = {column.name: j for j, column in enumerate(estimator.columns_) if column.kind in ("number", "whole")}
    if name not in places:
        raise ValueError(
            f"column must name a column of numbers of X, one of {', '.join(places)}; got {name!r}. Name one of them."
        )
    spread = float(np.nanstd(_numbers(estimator, X)[places[name]]))
    shifts = np.linspace(-_FURTHEST * spread, _FURTHEST * spread, _SHIFTS)
    return np.unique(np.rint(shifts)) if estimator.columns_[places[name]].kind == "whole" else shifts


def _place_of(coefficient: str | int, pooled: PooledResult) -> int:
    if isinstance(coefficient, str) and coefficient in pooled.names:
        return pooled.names.index(coefficient)
    if isinstance(coefficient, int) and -len(pooled.names) <= coefficient < len(pooled.names):
        return coefficient
    raise ValueError(
        f"coefficient must be a name or place among {', '.join(pooled.names)}; got {coefficient!r}. Correct it."
    )
