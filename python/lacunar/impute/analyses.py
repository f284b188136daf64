"""Regressions that missing entries are drawn to agree with (Bartlett et al. 2015): their parameters drawn, and the likelihood of rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
from scipy.linalg import lapack

from lacunar._typing import Floats, Ints
from lacunar.impute.columns import Column
from lacunar.impute.formulas import Formula
from lacunar.impute.models import PRIOR, Newton, draw_around, factor_of, fit_line, fit_multinomial, share_of_step
from lacunar.observed.cells import cut, listed

_MOST_STEPS = 25
_CLOSE = 1e-4  # of a step's gain for each coefficient
_TINY = 1e-300
_LARGEST = 500.0  # linear predictor whose exponential is finite


class _Analysis:
    """What the analyses share."""

    outcomes: ClassVar[tuple[str, ...]]  # its fields that name columns of the outcome
    terms: Sequence[Any] | None

    def __post_init__(self) -> None:
        if not isinstance(self.terms, list | tuple | None):
            raise TypeError(f"terms must be a list of columns and formulas; got {cut(repr(self.terms))}. Pass a list.")

    _check_loaded = __post_init__


@dataclass(frozen=True)
class LinearAnalysis(_Analysis):
    """A linear regression that missing entries are drawn to agree with, for `MultipleImputer`.

    Parameters
    ----------
    outcome : str
        Column of numbers. Its missing entries are drawn from the regression.
    terms : list of str, default=None
        Columns and formulas of columns of numbers and booleans, such as "age * dose", "age ** 2" or
        "log(income)". None: all columns but the outcome.

    Raises
    ------
    TypeError
        `terms` that are no list. What a table does not have, `MultipleImputer.fit` refuses.

    See Also
    --------
    LogisticAnalysis : Of a column of two values.
    CoxAnalysis : Of times to an event.

    References
    ----------
    Bartlett, Seaman, White and Carpenter, "Multiple imputation of covariates by fully conditional
    specification: accommodating the substantive model", Statistical Methods in Medical Research 24,
    2015.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from lacunar.impute import LinearAnalysis, MultipleImputer
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"x": rng.normal(size=200)})
    >>> table["y"] = table["x"] ** 2 + rng.normal(size=200)
    >>> table["x"] = table["x"].mask(rng.random(200) < 0.3)
    >>> analysis = LinearAnalysis("y", ["x", "x ** 2"])
    >>> draws = MultipleImputer(5, random_state=0, analysis=analysis).fit(table).draws()
    >>> sum(int(drawn.isna().sum().sum()) for drawn in draws)
    0
    """

    outcome: str
    terms: Sequence[Any] | None = None
    outcomes: ClassVar = ("outcome",)


@dataclass(frozen=True)
class LogisticAnalysis(_Analysis):
    """A logistic regression that missing entries are drawn to agree with, for `MultipleImputer`.

    Parameters
    ----------
    outcome : str
        Column of booleans, of two levels, or of 0 and 1. Its missing entries are drawn from the
        regression.
    terms : list of str, default=None
        As in `LinearAnalysis`.

    Raises
    ------
    TypeError
        `terms` that are no list. What a table does not have, `MultipleImputer.fit` refuses.

    See Also
    --------
    LinearAnalysis, CoxAnalysis : Of numbers, and of times.

    References
    ----------
    Bartlett, Seaman, White and Carpenter, "Multiple imputation of covariates by fully conditional
    specification: accommodating the substantive model", Statistical Methods in Medical Research 24,
    2015.

    Examples
    --------
    >>> from lacunar.impute import LogisticAnalysis
    >>> LogisticAnalysis("died", ["age", "age * dose"])
    LogisticAnalysis(outcome='died', terms=['age', 'age * dose'])
    """

    outcome: str
    terms: Sequence[Any] | None = None
    outcomes: ClassVar = ("outcome",)


@dataclass(frozen=True)
class CoxAnalysis(_Analysis):
    """A Cox regression that missing entries are drawn to agree with, for `MultipleImputer`.

    Parameters
    ----------
    time : str
        Column of numbers: time to the event or to the end of observation. None may be missing.
    event : str
        Column of booleans, or of 0 and 1: whether the event was seen. None may be missing.
    terms : list of str, default=None
        As in `LinearAnalysis`.

    Raises
    ------
    TypeError
        `terms` that are no list. What a table does not have, `MultipleImputer.fit` refuses.

    See Also
    --------
    LinearAnalysis, LogisticAnalysis : Of numbers, and of two values.

    Notes
    -----
    Breslow's partial likelihood, with a weak normal prior of the coefficients; steps of the
    cumulative hazard are drawn from their posterior. O(n q^2) a sweep for q columns of the design.

    References
    ----------
    Bartlett, Seaman, White and Carpenter, "Multiple imputation of covariates by fully conditional
    specification: accommodating the substantive model", Statistical Methods in Medical Research 24,
    2015.

    Examples
    --------
    >>> from lacunar.impute import CoxAnalysis
    >>> CoxAnalysis("months", "died", ["age", "log(dose)"])
    CoxAnalysis(time='months', event='died', terms=['age', 'log(dose)'])
    """

    time: str
    event: str
    terms: Sequence[Any] | None = None
    outcomes: ClassVar = ("time", "event")


# -- terms --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """A column of the table, or a formula of some, as columns of the regression's design."""

    places: Sequence[int]
    levels: int = 0
    formula: Formula | None = None

    def design(self, columns: Mapping[int, Floats]) -> Floats:
        """Its columns (..., width) from columns (...) of the table in their own units."""
        if self.formula is not None:
            return self.formula.values(columns)[..., None]
        values = columns[self.places[0]]
        if self.levels:
            return np.asarray(values[..., None] == np.arange(1, self.levels), dtype=np.float64)
        return values[..., None]


@dataclass(frozen=True)
class Regression:
    """An analysis over the columns of one table."""

    terms: Sequence[Term]
    places: Sequence[int]  # of the columns of the outcome
    outcome: Sequence[Floats]  # their values (n,), NaN where missing
    model: type

    def design(self, columns: Mapping[int, Floats]) -> Floats:
        """Its columns (n, q) without the column of ones, from completed columns (n,) of the table."""
        parts = [term.design(columns) for term in self.terms]
        for term, part in zip(self.terms, parts, strict=True):
            if term.formula is not None and not np.isfinite(part).all():
                wish = "have formulas that are finite in every row"
                _refuse(wish, term.formula.text, "Give another, or bounds to its columns")
        return np.column_stack(parts)

    def of(self, columns: Mapping[int, Floats], weight: Floats | None) -> Any:
        """The model of the outcome as it stands in completed columns (n,), in which constant ones do not appear."""
        return self.model(*(columns.get(k, y) for k, y in zip(self.places, self.outcome, strict=True)), weight)


def regression_of(
    analysis: Any, columns: list[Column], numbers: list[Floats], varies: Sequence[bool], passive: Collection[str]
) -> Regression:
    """The regression of an analysis over columns, of which some vary and some follow from others; ValueError where it names none."""
    places = {column.name: place for place, column in enumerate(columns)}
    outcomes = [str(getattr(analysis, name)) for name in analysis.outcomes]
    for name, role in zip(outcomes, analysis.outcomes, strict=True):
        if name not in places or name in passive:
            wish = f"have as its {role} one of the columns {listed(places)}, but for those of passive"
            _refuse(wish, name, "Correct the name")
        _check_outcome(role, analysis, columns[places[name]], numbers[places[name]])
    able = {name: k for name, k in places.items() if varies[k] and name not in outcomes and name not in passive}
    names = list(able) if analysis.terms is None else [str(term) for term in analysis.terms]
    terms = [_term(name, columns, able) for name in names]
    if not terms:
        _refuse("have at least one term that varies", str(analysis.terms), "Name columns or formulas")
    own = [places[name] for name in outcomes]
    return Regression(terms, own, [numbers[k] for k in own], _MODELS[type(analysis)])


def _term(name: str, columns: list[Column], able: Mapping[str, int]) -> Term:
    if name in able:
        column = columns[able[name]]
        return Term([able[name]], 0 if column.is_number else len(column.levels))
    if name in {column.name for column in columns}:
        wish = "have terms that vary, and that neither are its outcome nor passive"
        _refuse(wish, name, "Leave it out, or write its formula")
    plain = {other: k for other, k in able.items() if columns[k].kind in ("number", "whole", "boolean")}
    formula = Formula(name, name, plain, "analysis must have terms that are columns, or formulas")
    return Term(formula.places, formula=formula)


def _check_outcome(role: str, analysis: Any, column: Column, numbers: Floats) -> None:
    is_binary = column.kind == "boolean" or np.isin(numbers[~np.isnan(numbers)], [0.0, 1.0]).all()
    if type(analysis) is CoxAnalysis and np.isnan(numbers).any():
        _refuse(f"have a {role} that is missing in no row", column.name, "Drop the rows without it")
    if role == "time" or type(analysis) is LinearAnalysis:
        if column.kind not in ("number", "whole"):
            _refuse(f"have as its {role} a column of numbers", column.name, "Name another column")
    elif not is_binary or len(column.levels) > 2:
        wish = f"have as its {role} a column of booleans, of two levels, or of 0 and 1"
        _refuse(wish, column.name, "Name another column")


def _refuse(wish: str, value: str, remedy: str) -> NoReturn:
    raise ValueError(f"analysis must {wish}; got {cut(value)!r}. {remedy}.")


# -- regressions --------------------------------------------------------------------------------------------------------------


class LinearRegression:
    """y = b0 + A b + sigma e, with y as it stands at every call."""

    def __init__(self, y: Floats, weight: Floats | None) -> None:
        self._y, self._weight, self._sigma = y, weight, 1.0

    def draw(self, A: Floats, rng: np.random.Generator) -> tuple[float, Floats]:
        """The intercept and coefficients (q,) from their posterior given A (n, q)."""
        design = np.column_stack([np.ones(len(A)), A, self._y])
        weighted = design if self._weight is None else design * self._weight[:, None]
        n = len(A) if self._weight is None else int(np.count_nonzero(self._weight))
        at = design.shape[1] - 1
        line = fit_line(design.T @ weighted, at, np.array([at]), n, 0.0, rng)
        self._sigma = line.sigma
        return float(line.drawn[0]), line.drawn[1:-1]

    def log_likelihood(self, scores: Floats, rows: Ints) -> Floats:
        """Of linear predictors (k, m) of rows (m,), but for what is the same in all."""
        return np.asarray(-0.5 * ((self._y[rows] - scores) / self._sigma) ** 2)

    def outcomes(self, scores: Floats, rng: np.random.Generator) -> Floats:
        """Outcomes (m,) of rows with these linear predictors, drawn."""
        return np.asarray(scores + self._sigma * rng.standard_normal(len(scores)))


class LogisticRegression:
    """P(y = 1) = logistic(b0 + A b), with y as it stands at every call."""

    def __init__(self, y: Floats, weight: Floats | None) -> None:
        self._y, self._weight = y, weight
        self._state: Newton | None = None

    def draw(self, A: Floats, rng: np.random.Generator) -> tuple[float, Floats]:
        """As in `LinearRegression`."""
        design = np.column_stack([np.ones(len(A)), A])
        self._state = self._state or Newton(np.zeros(design.shape[1]))
        drawn = fit_multinomial(design, self._y[:, None], self._weight, self._state, rng)[0]
        return float(drawn[0]), drawn[1:]

    def log_likelihood(self, scores: Floats, rows: Ints) -> Floats:
        """As in `LinearRegression`."""
        return np.asarray(self._y[rows] * scores - np.logaddexp(0.0, scores))

    def outcomes(self, scores: Floats, rng: np.random.Generator) -> Floats:
        """As in `LinearRegression`."""
        return np.asarray(rng.logistic(size=len(scores)) + scores > 0, dtype=np.float64)


class CoxRegression:
    """Proportional hazards: coefficients by Breslow's partial likelihood, and steps of the cumulative hazard from their posterior."""

    def __init__(self, time: Floats, event: Floats, weight: Floats | None) -> None:
        self._order = np.argsort(-time, kind="stable")  # rows at risk at a row's time come before it
        ascending = -time[self._order]
        self._first = np.searchsorted(ascending, ascending)  # first and last row of the same time
        self._last = np.searchsorted(ascending, ascending, side="right") - 1
        self._weight = np.ones(len(time)) if weight is None else weight[self._order]
        self._event, self._events = event, event[self._order] * self._weight
        self._coef, self._hazard = np.empty(0), np.zeros(len(time))

    def draw(self, A: Floats, rng: np.random.Generator) -> tuple[float, Floats]:
        """As in `LinearRegression`, without an intercept; the cumulative hazard is kept."""
        A = A[self._order]
        coef = self._coef if self._coef.size else np.zeros(A.shape[1])
        for _ in range(_MOST_STEPS):
            slope, information = self._derivatives(A, coef)
            factor = factor_of(information)
            step = lapack.dpotrs(factor, slope, lower=1)[0]
            coef = coef + step * share_of_step(A @ step)
            if slope @ step < _CLOSE * len(coef):
                break
        self._coef, drawn = coef, coef + draw_around(factor, rng)
        steps = rng.gamma(self._events) / self._at_risk(self._weight * np.exp(A @ drawn))
        self._hazard[self._order] = self._until(steps)
        return 0.0, drawn

    def _at_risk(self, risk: Floats) -> Floats:
        """Sums (n,) over the rows of a row's time and later."""
        return np.asarray(np.maximum(risk.cumsum()[self._last], _TINY))

    def _until(self, steps: Floats) -> Floats:
        """Sums (n,) over the rows of a row's time and earlier."""
        return np.asarray(steps[::-1].cumsum()[::-1][self._first])

    def _derivatives(self, A: Floats, coef: Floats) -> tuple[Floats, Floats]:
        """Slope (q,) and information (q, q), with a normal prior, of rows in descending order of times."""
        risk = self._weight * np.exp(A @ coef)
        at_risk = self._at_risk(risk)
        mean = (risk[:, None] * A).cumsum(axis=0)[self._last] / at_risk[:, None]
        expected = risk * self._until(self._events / at_risk)
        slope = A.T @ (self._events - expected) - PRIOR * coef
        information = (A * expected[:, None]).T @ A - (mean * self._events[:, None]).T @ mean
        return slope, information + PRIOR * np.eye(len(coef))

    def log_likelihood(self, scores: Floats, rows: Ints) -> Floats:
        """As in `LinearRegression`."""
        return np.asarray(self._event[rows] * scores - self._hazard[rows] * np.exp(np.minimum(scores, _LARGEST)))


_MODELS = {LinearAnalysis: LinearRegression, LogisticAnalysis: LogisticRegression, CoxAnalysis: CoxRegression}
