"""Chained equations (van Buuren 2018): every column drawn in turn given all others, on sums that change by rows.

The Gram matrix of the rows where a column is observed is that of all rows less that of the rows where it is missing, and when
its missing entries have been drawn only these rows of the Gram matrix change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from lacunar import _linalg
from lacunar._typing import Bools, Floats, Ints
from lacunar.impute.analyses import Regression
from lacunar.impute.formulas import Formula
from lacunar.impute.models import (
    REACH,
    draw_levels,
    fit_line,
    fit_multinomial,
    fit_odds,
    fit_one_against_rest,
    nearest,
    odds,
    shares,
    softmax,
    start_of,
)

MOST_TOGETHER = 8  # levels of one multinomial model; more are learned one against the rest
KEPT_DONORS = 500  # of a column and draw, for rows that come later
_ROWS_A_PREDICTOR = 3  # at least

Parameters = dict[str, Floats]  # of one column in one draw


@dataclass
class Target:
    """One column as the sweeps see it: its columns of the design, and which rows and columns its model is learned from."""

    place: int  # of the column in the table
    method: str  # "pmm", "norm", "multinomial", "rest" or "ordered"
    own: slice  # its columns of the design
    missing: Ints
    observed: Ints  # rows from which its model is learned
    values: Floats  # (observed,): numbers in units of the column, or places of levels
    sample: Floats  # of them, from which missing entries begin
    levels: int = 0
    centre: float = 0.0
    scale: float = 1.0
    decimals: int | None = None  # of all its values, where they are few
    step: float = 0.0  # of which all dates are multiples: days stay days, minutes minutes
    low: float = -np.inf
    high: float = np.inf
    used: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # columns of the design
    unused: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    is_chosen: bool = False  # whether it uses few columns of many
    formula: Formula | None = None
    ranks: tuple[Floats, Floats] | None = None  # of heavy tails: values in ascending order, and their standard ranks

    @property
    def is_number(self) -> bool:
        """Whether it is a standardised column of the design, with its ranks beside it where it has them."""
        return self.levels == 0

    def rounded(self, values: Floats) -> Floats:
        """Numbers with as many decimals as the column, and dates in its unit."""
        if self.step:
            return np.asarray(np.rint(values / self.step) * self.step)
        return values if self.decimals is None else np.round(values, self.decimals)

    def values_of(self, design: Floats) -> Floats:
        """Values (n,) from its columns of the design (n, width)."""
        if self.is_number:
            return np.asarray(design[:, 0] * self.scale + self.centre)
        return np.asarray(design @ np.arange(1.0, self.levels))

    def design(self, values: Floats) -> Floats:
        """Its columns of the design (n, width)."""
        if self.is_number:
            standard = (values - self.centre) / self.scale
            return standard[:, None] if self.ranks is None else np.c_[standard, np.interp(values, *self.ranks)]
        return np.asarray(values[:, None] == np.arange(1, self.levels), dtype=np.float64)


@dataclass
class Plan:
    """What all chains share: the columns in their order of the table, how many columns the design has, and weights of rows."""

    targets: list[Target]
    width: int
    n_rows: int
    ridge: float
    n_donors: int
    weight: Floats | None = None
    regression: Regression | None = None  # that draws agree with

    @cached_property
    def order(self) -> list[Target]:
        """Columns with missing entries, the most complete first."""
        return sorted((t for t in self.targets if len(t.missing)), key=lambda t: len(t.missing))


@dataclass
class Draw:
    """What one chain leaves: the missing entries of each column, its last parameters, and means of every sweep."""

    values: dict[int, Floats]
    parameters: dict[int, Parameters]
    trace: dict[int, Floats]  # means of the drawn values of each column, (sweeps,)


def choose_predictors(plan: Plan, X: Floats, allowed: Mapping[int, Bools]) -> None:
    """Settle which columns of the design (n, width) each column uses: those allowed, or the most correlated where rows are few."""
    for target in (t for t in plan.targets if t.formula is None):
        able = allowed[target.place].copy()
        able[target.own] = False
        able[0] = target.method != "ordered"  # whose cuts stand for the column of ones
        most = max(len(target.observed) // _ROWS_A_PREDICTOR, 1)
        target.is_chosen = bool(able.sum() > most)
        if target.is_chosen:
            able = _most_correlated(target, X, able, most)
        target.used, target.unused = np.flatnonzero(able), np.flatnonzero(~able)
        target.is_chosen |= len(target.used) < plan.width // 2


def _most_correlated(target: Target, X: Floats, able: Bools, most: int) -> Bools:
    rows = X[target.observed]
    own = target.design(target.values)
    own = own - own.mean(axis=0)
    rows = rows - rows.mean(axis=0)
    sizes = np.sqrt((rows**2).sum(axis=0))[:, None] * np.sqrt((own**2).sum(axis=0))
    scores = np.abs(rows.T @ own / np.maximum(sizes, 1e-300)).max(axis=1)
    scores[~able] = -1.0
    scores[0] = 2.0 if able[0] else -1.0
    chosen = np.zeros_like(able)
    chosen[np.argsort(-scores, kind="stable")[:most]] = True
    return chosen & able


# -- one chain ----------------------------------------------------------------------------------------------------------------


class Chain:
    """The completed design of one draw, and the sweeps over it."""

    def __init__(self, plan: Plan, observed: Floats, rng: np.random.Generator) -> None:
        """`observed` (n, width) is the design, whatever it holds where entries are missing: that is drawn from those observed."""
        self.plan, self.rng = plan, rng
        self.X = observed.copy()
        self._rows_of = np.empty_like(self.X)  # of observed rows, used again: new memory costs more than to fill it
        self.values: dict[int, Floats] = {}  # missing entries of each column
        self._entries: dict[int, Floats] = {}  # the same as columns of the design
        # Completed columns, in their own units.
        self.columns = {t.place: t.values_of(observed[:, t.own]) for t in plan.targets}
        self.newton: dict[int, Any] = {}
        self._sums: Floats | None = None
        for target in plan.targets:
            self.columns[target.place][target.observed] = target.values
            self._begin(target)
        for target in plan.targets:
            if target.formula is not None:
                self._set(target, self._by_formula(target))

    def _begin(self, target: Target) -> None:
        if target.levels and len(target.used):
            counts = np.bincount(target.values.astype(np.intp), minlength=target.levels).astype(np.float64)
            n_used = len(target.used) if target.is_chosen else self.plan.width
            self.newton[target.place] = start_of(target.method, np.maximum(counts, 0.5), n_used)
        if target.formula is None:
            self._set(target, target.sample[self.rng.integers(0, len(target.sample), len(target.missing))])

    def _set(self, target: Target, values: Floats) -> None:
        self.values[target.place] = values
        self.columns[target.place][target.missing] = values
        self._entries[target.place] = self.X[target.missing, target.own] = target.design(values)

    def sweep(self, keep: bool = False) -> dict[int, Parameters]:
        """Every column with missing entries once; with `keep` the parameters of all columns."""
        self._sums = None
        learned: dict[int, Parameters] = {}
        for target in self.plan.order:
            if target.formula is not None:
                continue
            rows = self.rows_without(target)
            parameters = self._learn(target, rows)
            self.draw(target, parameters, rows)
            if keep:
                learned[target.place] = self._thinned(target, parameters)
        if keep:
            self._sums = None
            complete = (t for t in self.plan.targets if not len(t.missing) and t.formula is None)
            learned |= {t.place: self._thinned(t, self._learn(t, self.rows_without(t))) for t in complete}
        return learned

    def rows_without(self, target: Target) -> Floats:
        """The rows (m, width) of the design where a column is missing."""
        return self.X.take(target.missing, axis=0)

    def _gram(self) -> Floats:
        """The Gram matrix of all rows, kept up to date by `draw`."""
        if self._sums is None:
            self._sums = self._product(self.X, self.X, None)
        return self._sums

    def _gram_without(self, without: Floats, missing: Ints) -> Floats:
        """The Gram matrix without some rows (m, width) of the design."""
        if self.plan.weight is not None:
            return self._gram() - self._product(without, without, missing)
        remaining = np.empty((self.plan.width, self.plan.width))
        _linalg.gram_without(without, self._gram(), remaining)
        return remaining

    def _product(self, A: Floats, B: Floats, rows: Ints | None) -> Floats:
        if self.plan.weight is None:
            return A.T @ B
        weight = self.plan.weight if rows is None else self.plan.weight[rows]
        return np.asarray(A.T @ (B * weight[:, None]))

    def _learn(self, target: Target, without: Floats) -> Parameters:
        """Parameters of a column given the others, drawn; of a matching column also the fits of its observed rows.

        `without` are the rows (m, width) where it is missing.
        """
        if target.is_number:
            return self._learn_number(target, without)
        rows = self._rows(target)
        weight = None if self.plan.weight is None else self.plan.weight[target.observed]
        state = self.newton[target.place]
        if target.method == "ordered":
            theta = fit_odds(rows, target.values.astype(np.intp), weight, state, target.levels, self.rng)
            return {"cuts": theta[: target.levels - 1], "drawn": self._spread(target, theta[None, target.levels - 1 :])}
        if target.method == "rest":
            hot = (target.values[:, None] == np.arange(target.levels)).astype(np.float64)
            return {"drawn": self._spread(target, fit_one_against_rest(rows, hot, weight, state, self.rng))}
        drawn = fit_multinomial(rows, target.design(target.values), weight, state, self.rng)
        return {"drawn": self._spread(target, drawn)}

    def _rows(self, target: Target) -> Floats:
        """The design of the rows where a column is observed: the columns that it uses, or all with 0 in the few others."""
        rows = self.X.take(target.observed, axis=0, out=self._rows_of[: len(target.observed)], mode="clip")
        if target.is_chosen:
            return np.asarray(rows.take(target.used, axis=1))
        rows[:, target.unused] = 0.0
        return rows

    def _spread(self, target: Target, coef: Floats) -> Floats:
        """Coefficients (k, columns of `_rows`) among all columns of the design."""
        if not target.is_chosen:
            coef[:, target.unused] = 0.0
            return coef
        spread = np.zeros((len(coef), self.plan.width))
        spread[:, target.used] = coef
        return spread

    def _learn_number(self, target: Target, without: Floats) -> Parameters:
        plan, at = self.plan, target.own.start
        if target.is_chosen:
            columns: Ints = np.append(target.used, at)
            rows: Floats = self.X.take(target.observed, axis=0).take(columns, axis=1)
            gram = self._product(rows, rows, target.observed)
            line = fit_line(gram, len(columns) - 1, np.array([len(columns) - 1]), len(rows), plan.ridge, self.rng)
            both = self._spread(target, np.vstack([line.coef[:-1], line.drawn[:-1]]))
            coef, drawn = both[:1].ravel(), both[1:].ravel()
        else:
            gram = self._gram_without(without, target.missing)
            line = fit_line(gram, at, target.unused, len(target.observed), plan.ridge, self.rng)
            coef, drawn = line.coef, line.drawn
        parameters = {"drawn": drawn[None], "sigma": np.array([line.sigma])}
        if target.method == "pmm":
            parameters["fits"] = fits = np.empty(len(target.observed))
            _linalg.fits_at(self.X, coef, target.observed, np.empty(plan.n_rows), fits)
            parameters["values"] = target.values
        return parameters

    def draw(self, target: Target, parameters: Parameters, rows: Floats) -> None:
        """Draw the missing entries of one column, by its rows (m, width) of the design, and what follows from it."""
        before = self._entries[target.place]
        self._set(target, self._drawn(target, rows, parameters))
        if self._sums is not None:
            self._change_sums(target, rows, before, self._sums)
        self._follow(target.place)

    def _drawn(self, target: Target, rows: Floats, parameters: Parameters) -> Floats:
        """Values of the missing entries of a column, by its rows (m, width) of the design."""
        return draw_values(target, rows, parameters, self.plan.n_donors, self.rng)

    def _change_sums(self, target: Target, rows: Floats, before: Floats, sums: Floats) -> None:
        """Change the Gram matrix by a column that was drawn; `rows` (m, width), where it is missing, are those `before`."""
        after = self._entries[target.place]
        change = self._product(rows, after - before, target.missing)
        change[target.own] += self._product(after - before, after, target.missing)
        sums[:, target.own] += change
        sums[target.own] = sums[:, target.own].T

    def _follow(self, place: int) -> None:
        """Compute anew what formulas make of a column."""
        for other in self.plan.targets:
            if other.formula is not None and place in other.formula.places and len(other.missing):
                self._set(other, self._by_formula(other))
                self._sums = None

    def _by_formula(self, target: Target) -> Floats:
        assert target.formula is not None
        return target.formula.of({p: self.columns[p][target.missing] for p in target.formula.places})

    def _thinned(self, target: Target, parameters: Parameters) -> Parameters:
        """Parameters with at most KEPT_DONORS donors, one at random of each run in the order of their fits."""
        if target.method != "pmm":
            return parameters
        order = np.argsort(parameters["fits"], kind="stable")
        if len(order) > KEPT_DONORS:
            edges = np.linspace(0, len(order), KEPT_DONORS + 1).astype(np.intp)
            order = order[self.rng.integers(edges[:-1], edges[1:])]
        line = {name: parameters[name] for name in ("drawn", "sigma")}
        return line | {name: parameters[name][order] for name in ("fits", "values")}


def draw_values(
    target: Target, rows: Floats, parameters: Parameters, n_donors: int, rng: np.random.Generator
) -> Floats:
    """Values (m,) of a column for rows (m, width) of the design, in its own units."""
    drawn = parameters["drawn"]
    if target.method == "pmm":
        reach = REACH * float(parameters["sigma"][0])
        return parameters["values"][nearest(parameters["fits"], rows @ drawn[0], n_donors, reach, rng)]
    if target.method == "norm":
        return normal_values(target, rows @ drawn[0], float(parameters["sigma"][0]), rng)
    return draw_levels(level_chances(target, rows, parameters), rng)


def level_chances(target: Target, rows: Floats, parameters: Parameters) -> Floats:
    """Probabilities (m, levels) of the levels of a column for rows (m, width) of the design."""
    drawn = parameters["drawn"]
    if target.method == "ordered":
        return odds(rows, np.r_[parameters["cuts"], drawn[0]], target.levels)
    return (shares if target.method == "rest" else softmax)(rows, drawn)


def normal_values(target: Target, mean: Floats, sigma: float, rng: np.random.Generator) -> Floats:
    """Normal draws within the bounds of the column, with its decimals."""
    low, high = ((bound - target.centre) / target.scale for bound in (target.low, target.high))
    if np.isinf(low) and np.isinf(high):
        values = mean + sigma * rng.standard_normal(len(mean))
    else:
        below, above = ndtr((low - mean) / sigma), ndtr((high - mean) / sigma)
        chance = below + rng.random(len(mean)) * (above - below)
        values = np.clip(mean + sigma * ndtri(np.clip(chance, 1e-300, 1 - 1e-16)), low, high)
    values = np.clip(values * target.scale + target.centre, target.low, target.high)
    return target.rounded(values)


def run_chain(chain: Chain, sweeps: int) -> Draw:
    """One draw: the missing entries after `sweeps` sweeps, and the parameters of the last."""
    trace, parameters = {target.place: np.empty(sweeps) for target in chain.plan.order}, {}
    for k in range(sweeps):
        parameters = chain.sweep(keep=k == sweeps - 1)
        for place, means in trace.items():
            means[k] = chain.values[place].mean()
    return Draw(chain.values, parameters, trace)


def draw_rows(
    plan: Plan, observed: Floats, parameters: Mapping[int, Parameters], sweeps: int, rng: np.random.Generator
) -> dict[int, Floats]:
    """Missing entries of new rows by parameters that were learned: sweeps that learn nothing. `plan` says what these rows lack."""
    chain = Chain(plan, observed, rng)
    for _ in range(sweeps if len(plan.order) > 1 else 1):
        for target in plan.order:
            if target.formula is None:
                chain.draw(target, parameters[target.place], chain.rows_without(target))
    return chain.values
