"""From the columns of a table to the plan of the sweeps: the design, what predicts what, and what is kept for rows that come later."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NoReturn

import numpy as np

from lacunar._typing import Bools, Floats, Ints
from lacunar.impute.analyses import regression_of
from lacunar.impute.chained import KEPT_DONORS, MOST_TOGETHER, Plan, Target
from lacunar.impute.columns import Column
from lacunar.impute.formulas import Formula
from lacunar.impute.tables import Values
from lacunar.observed.cells import cut, listed
from lacunar.observed.rules import Rule, check_parts, floats

_UNITS = 86_400e6, 3600e6, 60e6, 1e6, 1e3  # of time, in microseconds
_MOST_DECIMALS = 4  # that filled numbers keep
_HEAVY = 3.0, 0.8  # standard errors of a fourth moment beyond that of a normal column; of many rows without the ends


@dataclass(frozen=True)
class Wishes:
    """Parameters of `MultipleImputer` about columns, by their names."""

    method: str  # of numbers that `methods` does not name
    methods: Mapping[str, str]
    predictors: Mapping[str, Sequence[str]]
    keep_missing: Sequence[str]
    not_predictors: Sequence[str]
    bounds: Mapping[str, tuple[float | None, float | None]]
    passive: Mapping[str, str]
    analysis: Any = None

    def check(self, columns: list[Column]) -> None:
        """ValueError where a parameter names a column that the table lacks, or a method that does not fit it."""
        kinds = {column.name: column for column in columns}
        for name, chosen in self.predictors.items():
            if isinstance(chosen, str) or not isinstance(chosen, Collection):
                self._refuse_shape("predictors", name, "a list of columns", chosen, "Pass [] for none")
        for name, ends in self.bounds.items():
            if not _are_bounds(ends):
                wish = "a pair (low, high) in ascending order"
                self._refuse_shape("bounds", name, wish, ends, "None leaves an end open")
        named = {
            "method": list(self.methods),
            "predictors": [name for key, value in self.predictors.items() for name in [key, *value]],
            "keep_missing": list(self.keep_missing),
            "not_predictors": list(self.not_predictors),
            "bounds": list(self.bounds),
            "passive": list(self.passive),
        }
        for parameter, names in named.items():
            unknown = [name for name in names if name not in kinds]
            if unknown:
                raise ValueError(
                    f"{parameter} must name columns of X, {listed(kinds)}; got {cut(repr(unknown[0]))}. Correct the name."
                )
        for parameter in ("bounds", "passive"):
            odd = [name for name in named[parameter] if not _is_plain_number(kinds[name])]
            if odd:
                raise ValueError(
                    f"{parameter} must name columns of numbers; got {cut(odd[0])!r}, which holds {kinds[odd[0]].kind}. Leave it out."
                )
        for column in columns:
            if column.is_used:
                self.method_of(column)

    def method_of(self, column: Column) -> str:
        """How a column is drawn."""
        named, wish = column.name in self.methods, self.methods.get(column.name, self.method)
        if column.is_number:
            if wish not in ("pmm", "norm"):
                self._refuse(column, wish, "'pmm' or 'norm'")
            if self.analysis is not None:
                return "norm"
            return "pmm" if column.kind == "date" else wish
        if named and wish not in ("multinomial", "ordered"):
            self._refuse(column, wish, "'multinomial' or 'ordered'")
        ordered = wish == "ordered" if named else column.kind == "ordered"
        if ordered and len(column.levels) > 2:
            return "ordered"
        return "multinomial" if len(column.levels) <= MOST_TOGETHER else "rest"

    def _refuse_shape(self, parameter: str, name: Any, wish: str, value: Any, remedy: str) -> NoReturn:
        raise ValueError(
            f"{parameter} must give each column {wish}; got {cut(repr(value))} for {cut(name)!r}. {remedy}."
        )

    def _refuse(self, column: Column, wish: str, wishes: str) -> None:
        raise ValueError(
            f"method must be {wishes} for column {cut(column.name)!r}, which holds {column.kind}; got {wish!r}. Correct it, or leave the column out."
        )


def _are_bounds(ends: Any) -> bool:
    """Whether these are two numbers in ascending order, None for an open end."""
    if not isinstance(ends, Collection) or len(ends) != 2:
        return False
    if not all(end is None or isinstance(end, Real) for end in ends):
        return False
    low, high = ends
    return bool((-np.inf if low is None else low) <= (np.inf if high is None else high))


NO_WISHES = Wishes("pmm", {}, {}, (), (), {}, {})


def _is_plain_number(column: Column) -> bool:
    return column.kind in ("number", "whole", "empty")


@dataclass(frozen=True)
class Learned:
    """What `fit` learned of one column beside its models: its scale, the constant that it is, and a sample of its values."""

    centre: float
    scale: float
    sample: Floats  # at most KEPT_DONORS values, evenly spaced in their order; one of a constant column, none of an unused one

    @property
    def varies(self) -> bool:
        """Whether the column is in the design."""
        return len(self.sample) > 1

    def _check_loaded(self) -> None:
        rules: dict[str, Rule] = {"sample": floats("sample")}
        check_parts({"sample": self.sample}, rules, "a column", {})
        if not (np.isfinite(self.centre) and np.isfinite(self.scale) and self.scale > 0):
            raise ValueError("a column of the model file has no scale above 0")


def learn_columns(columns: list[Column], values: list[Values], wishes: Wishes, weight: Floats | None) -> list[Learned]:
    """Scales and samples of all columns; rows of weight 0 teach nothing. Of passive columns also what their formulas give."""
    counts = None if weight is None else weight > 0
    numbers = [v.numbers for v in values]
    for place, formula in _formulas(columns, wishes).items():
        own, given = numbers[place], formula.values({p: numbers[p] for p in formula.places})
        numbers[place] = np.where(np.isnan(own) & np.isfinite(given), given, own)
    return [_learned(column, part, counts) for column, part in zip(columns, numbers, strict=True)]


def _learned(column: Column, numbers: Floats, counts: Bools | None) -> Learned:
    seen = numbers[~np.isnan(numbers) if counts is None else ~np.isnan(numbers) & counts]
    if not column.is_used or not seen.size:
        return Learned(0.0, 1.0, np.empty(0))
    seen = np.sort(seen)
    if seen[0] == seen[-1]:
        return Learned(float(seen[0]), 1.0, seen[:1])
    sample = seen if len(seen) <= KEPT_DONORS else seen[np.linspace(0, len(seen) - 1, KEPT_DONORS).astype(np.intp)]
    if not column.is_number:
        return Learned(0.0, 1.0, sample)
    centre = float(seen.mean())
    return Learned(centre, max(float((seen - centre).std()), np.finfo(np.float64).tiny), sample)


def constant_cells(learned: list[Learned], values: list[Values]) -> dict[int, tuple[Ints, Floats]]:
    """Rows where constant columns are missing and their constant for each, by place."""
    rows = {j: np.flatnonzero(values[j].missing) for j, part in enumerate(learned) if len(part.sample) == 1}
    return {j: (own, np.full(len(own), learned[j].sample[0])) for j, own in rows.items()}


def build_plan(
    columns: list[Column], learned: list[Learned], values: list[Values], wishes: Wishes, weight: Floats | None,
    *, ridge: float, n_donors: int, with_ranks: bool = False,
) -> tuple[Plan, Floats]:  # fmt: skip
    """The plan of the sweeps, and the design (n, width) of what is observed, 0 where entries are missing.

    `with_ranks`: the design has those of heavy-tailed columns beside them.
    """
    n, first, targets = len(values[0].numbers), 1, []
    formulas = _formulas(columns, wishes)
    for place, (column, part, v) in enumerate(zip(columns, learned, values, strict=True)):
        if not part.varies and place not in formulas:
            continue
        ranks = ranks_of(part.sample) if with_ranks and column.is_number and place not in formulas else None
        width = 1 + (ranks is not None) if column.is_number else len(column.levels) - 1
        target = _target(place, column, part, v, wishes, slice(first, first + width), weight)
        target.formula, target.ranks = formulas.get(place), ranks
        targets.append(target)
        first += width
    X = np.zeros((n, first))
    X[:, 0] = 1.0
    for target in targets:
        known = np.flatnonzero(~np.isnan(values[target.place].numbers))
        X[known, target.own] = target.design(values[target.place].numbers[known])
    plan = Plan(targets, first, n, ridge, n_donors, weight)
    if wishes.analysis is not None:
        numbers, varies = [v.numbers for v in values], [part.varies for part in learned]
        plan.regression = regression_of(wishes.analysis, columns, numbers, varies, wishes.passive)
    return plan, X


def _formulas(columns: list[Column], wishes: Wishes) -> dict[int, Formula]:
    places = {column.name: k for k, column in enumerate(columns)}
    able = [c.name for c in columns if c.kind in ("number", "whole") and c.name not in wishes.passive]
    numbers = {name: places[name] for name in able}
    return {places[name]: Formula(text, name, numbers) for name, text in wishes.passive.items()}


def _target(
    place: int, column: Column, part: Learned, v: Values, wishes: Wishes, own: slice, weight: Floats | None
) -> Target:
    known = ~np.isnan(v.numbers)
    observed = np.flatnonzero(known if weight is None else known & (weight > 0))
    low, high = wishes.bounds.get(column.name, (None, None))
    return Target(
        place, wishes.method_of(column), own, np.flatnonzero(~known), observed, v.numbers[observed], part.sample,
        levels=0 if column.is_number else len(column.levels),
        centre=part.centre, scale=part.scale, decimals=_decimals_of(column, part.sample), step=_step_of(column, part.sample),
        low=-np.inf if low is None else float(low), high=np.inf if high is None else float(high),
    )  # fmt: skip


def ranks_of(sample: Floats) -> tuple[Floats, Floats] | None:
    """Different values in ascending order and their standard ranks, where tails are heavy.

    Given an outcome with tails heavier than those of its noise in other columns, these are no line in it, but nearly one in it and its
    ranks together.
    """
    # Evenly spaced in the order of many rows: both ends stand for fewer rows than the others.
    are_many = len(sample) == KEPT_DONORS
    inner = sample[1:-1] if are_many else sample
    off = inner - inner.mean()
    off = off / max(np.abs(off).max(), 1e-300)  # whose powers neither overflow nor vanish
    if np.mean(off**4) <= (3 + _HEAVY[are_many] * np.sqrt(24 / len(inner))) * np.mean(off**2) ** 2:
        return None
    values, counts = np.unique(sample, return_counts=True)
    return values, ((counts.cumsum() - counts / 2) / len(sample) - 0.5) * np.sqrt(12)


def _decimals_of(column: Column, sample: Floats) -> int | None:
    """How many decimals the numbers of a column have at most; None where they are many. Those of single precision are nearest to such."""
    if column.kind != "number":
        return 0 if column.kind == "whole" else None
    single = sample.astype(np.float32)
    for decimals in range(1, _MOST_DECIMALS + 1):
        rounded = np.round(sample, decimals)
        if (rounded == sample).all() or ((single == sample).all() and (rounded.astype(np.float32) == single).all()):
            return decimals
    return None


def _step_of(column: Column, sample: Floats) -> float:
    """The largest unit of time of which all dates are multiples; 0 of other columns."""
    return next((u for u in _UNITS if not np.any(sample % u)), 1.0) if column.kind == "date" else 0.0


def check_bounds(target: Target, column: Column) -> None:
    """ValueError where an observed value lies outside the bounds of its column."""
    outside = np.flatnonzero((target.values < target.low) | (target.values > target.high))
    if outside.size:
        row = int(target.observed[outside[0]])
        raise ValueError(
            f"bounds of column {cut(column.name)!r} must hold its observed values; got {target.values[outside[0]]:g} in row {row}, "
            f"outside {target.low:g} to {target.high:g}. Widen the bounds, or make the value missing."
        )


def allowed_predictors(plan: Plan, columns: list[Column], wishes: Wishes) -> dict[int, Bools]:
    """Which columns of the design each column may use."""
    own = {columns[target.place].name: target.own for target in plan.targets}
    formulas = [target for target in plan.targets if target.formula is not None]
    outcomes = [] if plan.regression is None else [t for t in plan.targets if t.place in plan.regression.places]
    masks = {}
    for target in plan.targets:
        name = columns[target.place].name
        chosen = wishes.predictors.get(name)
        mask = np.full(plan.width, chosen is None)
        mask[0] = True
        for other in chosen or ():
            mask[own.get(other, slice(0, 0))] = True
        for other in wishes.not_predictors:
            mask[own.get(other, slice(0, 0))] = False
        for outcome in outcomes:
            mask[outcome.own] = False
        for passive in formulas:  # a column that follows from this one would only give it back
            if passive.formula is not None and target.place in passive.formula.places:
                mask[passive.own] = False
        masks[target.place] = mask
    return masks


_PARTS: dict[str, dict[str, Rule]] = {
    "pmm": {
        "drawn": floats("m", 1, "width"),
        "sigma": floats("m", 1, low=0),
        "fits": floats("m", "donors"),
        "values": floats("m", "donors"),
    },
    "norm": {"drawn": floats("m", 1, "width"), "sigma": floats("m", 1, low=0)},
    "multinomial": {"drawn": floats("m", "levels", "width")},
    "rest": {"drawn": floats("m", "levels", "width")},
    "ordered": {"drawn": floats("m", 1, "width"), "cuts": floats("m", "levels")},
}


def check_models(models: Sequence[Any], methods: Mapping[int, tuple[str, int]], sizes: dict[str, int]) -> None:
    """ValueError where stored parameters of columns are not those of their methods; `methods` also gives numbers of levels."""
    for place, parameters in enumerate(models):
        if (parameters is None) != (place not in methods):
            raise ValueError("the models of the columns in the model file do not belong to them. Fit again")
        if parameters is not None:
            method, levels = methods[place]
            own = sizes | {"levels": levels if method == "rest" else levels - 1}
            check_parts(parameters, _PARTS[method], f"models_[{place}]", own)
            if method == "pmm" and not own["donors"]:
                raise ValueError(f"models_[{place}] of the model file has no donors. Fit again")
