"""`MultipleImputer`: several completed tables, whose differences say how uncertain what is missing is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import f
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lacunar._log import say, warn_user
from lacunar._random import fixed_seed, generator
from lacunar._state import all_or_nothing, whole_answers
from lacunar._threads import one_blas_thread, thread_count
from lacunar._typing import Floats, Ints
from lacunar.impute.analyses import CoxAnalysis, LinearAnalysis, LogisticAnalysis
from lacunar.impute.chained import Chain, Draw, Parameters, Plan, choose_predictors, draw_rows, run_chain
from lacunar.impute.columns import Column
from lacunar.impute.compatible import CompatibleChain
from lacunar.impute.plans import (
    Learned,
    Wishes,
    allowed_predictors,
    build_plan,
    check_bounds,
    check_models,
    constant_cells,
    learn_columns,
)
from lacunar.impute.pooling import PooledResult, analysed
from lacunar.impute.tables import AnyTable, Table, Values, names_of, no_rows, read_table, warn_of_columns
from lacunar.observed.cells import cut, listed
from lacunar.observed.door import check_numbers, check_sum_of_weights
from lacunar.observed.rules import Anything, Array, Instance, Items, Optional, Rule, Word, floats, whole

_LEAST_SHARED = 100_000  # entries of the design: threads of smaller ones mostly wait for the interpreter
_CORRELATED = 4.0  # times the variance between chains of independent sweeps: what sweeps have that keep 0.8 of the last
_SURE = 0.999
_EXACT = 1e-10  # variance of a combination of standardised columns that is an identity
_WIDEST = 500  # columns among which identities are looked for


@whole_answers
class MultipleImputer(AnyTable, BaseEstimator):
    """Several completed tables by chained equations, and conclusions pooled over them.

    One completed table takes its filled values for observed ones, and its standard errors come out
    too small. Here every missing cell is drawn `n_imputations` times, given all other columns, with
    models whose parameters are drawn too; `analyse` fits a model to each table and pools the
    results by Rubin's rules.

    Parameters
    ----------
    n_imputations : int, default=20
        Completed tables, each from a chain of its own.
    sweeps : int, default=10
        How often every column is drawn in turn before a chain's table is taken.
    method : {"pmm", "norm"} or dict, default="pmm"
        How numbers are drawn. "pmm", predictive mean matching: the value of one of the rows whose
        predictions are nearest, so that skewed columns stay skewed and whole numbers whole. "norm":
        a normal draw, within `bounds`. A dict has a method for each column that it names: "pmm" or
        "norm" for numbers, "multinomial" or "ordered" (proportional odds) for levels.
    n_donors : int, default=5
        Rows from which matching draws, at most: predictions further off than a fifth of the
        standard deviation of the residuals are left out, but for the nearest. Without that, draws
        at the ends of the range lie nearer to the mean, and coefficients nearer to 0. Where fewer
        rows are that near, they are those of a bootstrap of the rows, a new one for every draw.
    ridge : float, default=1e-5
        Added to the diagonal of least squares, as a share of it.
    predictors : dict, default=None
        For columns that it names, the list of columns from which they are drawn. None, and of other
        columns: all, or the most correlated ones, at most a third as many as the column has
        observed rows.
    keep_missing : list of str, default=None
        Columns that predict others, and whose own missing cells stay missing.
    not_predictors : list of str, default=None
        Columns that are filled, and predict no others.
    bounds : dict, default=None
        Columns of numbers to (low, high), None for an open end. Draws stay within.
    passive : dict, default=None
        Columns of numbers to formulas of other columns, such as {"s": "a + b"}: their missing cells
        follow from the others. Formulas have numbers, names of columns, ``+ - * / **``,
        parentheses, log, exp, sqrt and abs.
    analysis : LinearAnalysis, LogisticAnalysis or CoxAnalysis, default=None
        The regression that follows. Its covariates are drawn in agreement with it, interactions,
        squares and hazards included, which chained equations alone only come near to. Numbers are
        then drawn by "norm", and rows that `fit` never saw cannot be drawn.
    n_jobs : int, default=None
        Chains at once; small tables take one. The draws are the same for any number.
    random_state : int, RandomState or None, default=None
        Seed of the draws. None is a fixed one.
    verbose : int, default=0
        Whether progress is logged.

    Attributes
    ----------
    columns_ : list of Column
        What each column holds: name, kind and levels.
    convergence_ : ndarray of shape (d,)
        Square root of the variance between chains over that within, of means of drawn values in the
        second half of the sweeps; near 1 where the sweeps have settled, NaN for a column without
        draws.
    traces_ : ndarray of shape (n_imputations, sweeps, d)
        Means of the drawn values of each column (of places of levels) by chain and sweep; NaN for a
        column without draws.
    imputed_ : list of ndarray of shape (n_imputations, missing) or None
        Drawn values of each column of the training table; places of levels, and microseconds since
        1970 for dates.
    learned_ : list of Learned
        Scale and sample of values of each column.
    models_ : list of dict or None
        Parameters of the last sweep, by column, and of matching columns donors: what fills new
        rows.
    seeds_ : ndarray of shape (n_imputations,)
        What the draws of every table begin from.
    rows_ : str
        Digest of the training table.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        Infinite numbers; a parameter that names no column of X; times or events of a Cox regression
        that are missing; bounds that observed values break; a formula that gives no number.
    TypeError
        Sparse matrices, `Observed` tables and files: every cell is filled, so the table is dense.

    Warns
    -----
    UserWarning
        Columns without observed entries, and text of more than 50 levels, which stay missing;
        sweeps that have not settled; columns that others give exactly, whose identity draws do not
        keep.

    See Also
    --------
    Imputer : One completed table, for a look or another tool.
    pool : Rubin's rules for results of your own.

    Notes
    -----
    Booleans and levels are drawn from logistic and multinomial models with normal priors, with
    drawn parameters; from 9 levels on one against the rest. Ordered are pandas' ordered categories,
    Arrow's ordered dictionaries and polars' Enum. Dates are numbers that are matched. Levels that
    no row shows stay in the type of the column and are never drawn. A constant column is filled
    with its constant. A column of numbers with heavy tails predicts others by its values and by its
    ranks. With `analysis`, a column is drawn from its model given the other covariates
    times the likelihood of the outcome. To predict, take `lacunar.learner.LacunarClassifier`, which
    learns from missing values as they are. O(m sweeps (n p^2 + p^4)) for p columns of numbers.

    van Buuren, "Flexible Imputation of Missing Data", 2018; Bartlett, Seaman, White and Carpenter,
    "Multiple imputation of covariates by fully conditional specification: accommodating the
    substantive model", 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.impute import MultipleImputer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ [[1.0, 0.8], [0.0, 0.6]]
    >>> X[rng.random(200) < 0.3, 1] = np.nan
    >>> imputer = MultipleImputer(random_state=0).fit(X)
    >>> pooled = imputer.analyse(lambda table: (table[:, 1].mean(), table[:, 1].var() / 200))
    >>> bool(0.1 < pooled.fraction_missing[0] < 0.4)
    True
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "columns_": Items(Instance(Column), length="d"),
        "learned_": Items(Instance(Learned), length="d"),
        "convergence_": Array("f", ("d",), finite=False),
        "traces_": Array("f", ("m", "sweeps", "d"), finite=False),
        "imputed_": Items(Optional(floats("m", "missing")), length="d", alike=False),
        "models_": Items(Optional(Anything()), length="d"),
        "seeds_": whole("m"),
        "rows_": Word(),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_imputations": [Interval(Integral, 1, None, closed="left")],
        "sweeps": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"pmm", "norm"}), Mapping],
        "n_donors": [Interval(Integral, 1, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "predictors": [Mapping, None],
        "keep_missing": ["array-like", None],
        "not_predictors": ["array-like", None],
        "bounds": [Mapping, None],
        "passive": [Mapping, None],
        "analysis": [LinearAnalysis, LogisticAnalysis, CoxAnalysis, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_imputations: int = 20,
        *,
        sweeps: int = 10,
        method: Any = "pmm",
        n_donors: int = 5,
        ridge: float = 1e-5,
        predictors: Mapping[str, Sequence[str]] | None = None,
        keep_missing: Sequence[str] | None = None,
        not_predictors: Sequence[str] | None = None,
        bounds: Mapping[str, tuple[float | None, float | None]] | None = None,
        passive: Mapping[str, str] | None = None,
        analysis: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_imputations = n_imputations
        self.sweeps = sweeps
        self.method = method
        self.n_donors = n_donors
        self.ridge = ridge
        self.predictors = predictors
        self.keep_missing = keep_missing
        self.not_predictors = not_predictors
        self.bounds = bounds
        self.passive = passive
        self.analysis = analysis
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MultipleImputer:
        """Run the chains.

        Parameters
        ----------
        X : frame (pandas, polars, Arrow) or array-like, shape (n, d)
            NaN, None and NA are missing. Include the outcome of the analysis that follows, or its
            coefficients will be too small.
        y : ignored
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows in every model; rows of weight 0 are filled and teach nothing.

        Returns
        -------
        self : MultipleImputer
        """
        table = read_table(self, X, reset=True)
        self.columns_ = table.columns(names_of(self))
        values = table.values(self.columns_)
        wishes = self._wishes()
        wishes.check(self.columns_)
        weight = _weights(sample_weight, table.n_rows)
        self.columns_ = [_able_to_follow(column, wishes) for column in self.columns_]
        self.learned_ = learn_columns(self.columns_, values, wishes, weight)
        plan, observed = self._plan(values, wishes, weight)
        for target in plan.targets:
            check_bounds(target, self.columns_[target.place])
        choose_predictors(plan, observed, allowed_predictors(plan, self.columns_, wishes))
        self.seeds_ = generator(fixed_seed(self.random_state)).integers(2**31 - 1, size=self.n_imputations)
        self._keep(plan, values, self._run(plan, observed))
        self.rows_, self._training = _digest(values), (_copied(table), _missing_rows(values))
        self._warn(plan, observed, values)
        return self

    def _wishes(self) -> Wishes:
        """The parameters about columns, whose names are text as in `columns_`."""
        method, methods = (self.method, {}) if isinstance(self.method, str) else ("pmm", _by_name(self.method))
        predictors = _by_name(self.predictors)
        for name, chosen in predictors.items():
            if isinstance(chosen, list | tuple):
                predictors[name] = list(map(str, chosen))
        unfilled, unused = (list(map(str, names or ())) for names in (self.keep_missing, self.not_predictors))
        bounds, passive = _by_name(self.bounds), _by_name(self.passive)
        return Wishes(method, methods, predictors, unfilled, unused, bounds, passive, self.analysis)

    def _plan(self, values: list[Values], wishes: Wishes, weight: Floats | None) -> tuple[Plan, Floats]:
        return build_plan(
            self.columns_, self.learned_, values, wishes, weight,
            ridge=float(self.ridge), n_donors=int(self.n_donors), with_ranks=True,
        )  # fmt: skip

    def _run(self, plan: Plan, observed: Floats) -> list[Draw]:
        jobs = min(thread_count(self.n_jobs), self.n_imputations) if observed.size >= _LEAST_SHARED else 1
        tasks = (delayed(self._chain)(plan, observed, k) for k in range(self.n_imputations))
        return list(Parallel(n_jobs=jobs, prefer="threads")(tasks))

    def _chain(self, plan: Plan, observed: Floats, k: int) -> Draw:
        with one_blas_thread():
            chain = Chain if plan.regression is None else CompatibleChain
            draw = run_chain(chain(plan, observed, generator(int(self.seeds_[k]))), self.sweeps)
        say(self.verbose, "chain %d of %d", k + 1, self.n_imputations)
        return draw

    def _keep(self, plan: Plan, values: list[Values], draws: list[Draw]) -> None:
        """Store what the chains left, by column."""
        d, m = len(self.columns_), len(draws)
        self.imputed_: list[Floats | None] = [None] * d
        self.models_: list[Parameters | None] = [None] * d
        self.traces_ = np.full((m, self.sweeps, d), np.nan)
        for target in plan.targets:
            self.imputed_[target.place] = np.array([draw.values[target.place] for draw in draws])
            if target.formula is None and plan.regression is None:
                parts = [draw.parameters[target.place] for draw in draws]
                self.models_[target.place] = {name: np.array([part[name] for part in parts]) for name in parts[0]}
            if len(target.missing):
                self.traces_[:, :, target.place] = [draw.trace[target.place] for draw in draws]
        for j, (_, constant) in constant_cells(self.learned_, values).items():
            if self.imputed_[j] is None:
                self.imputed_[j] = np.tile(constant, (m, 1))
        self.convergence_ = _between_within(self.traces_)

    # -- warnings -----------------------------------------------------------------------------------------------------------

    def _warn(self, plan: Plan, observed: Floats, values: list[Values]) -> None:
        names = [column.name for column in self.columns_]
        warn_of_columns(self.columns_, values)
        lacks = [c.is_used and not len(part.sample) for c, part in zip(self.columns_, self.learned_, strict=True)]
        follows = {t.place for t in plan.targets if t.formula is not None}
        unlearned = [names[j] for j in np.flatnonzero(lacks) if j not in follows]
        if unlearned:
            warn_user(
                f"no row of a weight above 0 has an entry of {listed(unlearned)}: left missing. Weigh such rows, or drop the columns."
            )
        slow = [names[j] for j in np.flatnonzero(self.convergence_ > _unsettled(*self.traces_.shape[:2]))]
        if slow:
            warn_user(
                f"{self.sweeps} sweeps have not settled for {listed(slow)}: their chains differ more than they move. Raise sweeps, or leave "
                "out columns that say nearly the same."
            )
        exact = _identities(plan, observed, values)
        if exact:
            warn_user(
                f"columns give one another exactly: {listed(names[j] for j in exact)}. Draws do not keep such an identity: name one of them in "
                "passive, with its formula."
            )

    # -- draws --------------------------------------------------------------------------------------------------------------

    def draws(self, X: Any = None, delta: Mapping[str, float] | None = None) -> Iterator[Any]:
        """Completed tables, one for each imputation.

        Parameters
        ----------
        X : frame or array-like, shape (m, d), default=None
            New rows, which are drawn by the models of the training table, all of them together.
            None, and the training table itself, give the draws of `fit`.
        delta : dict, default=None
            Columns of numbers to what is added to their drawn values: entries that are missing
            because of their own values lie off what the others say, and a conclusion holds for as
            long as it survives such shifts.

        Returns
        -------
        tables : iterator of n_imputations tables
            Of the kind of X: frames keep their names, index and types.
        """
        check_is_fitted(self)
        shifts = self._shifts(delta)
        if X is None:
            if not hasattr(self, "_training"):
                raise ValueError(
                    "X must be the training table where the model was loaded from a file, which does not hold it; got None. Pass the table: "
                    "its draws are those of fit."
                )
            return self._training_draws(*self._training, shifts)
        table = read_table(self, X, reset=False)
        values = table.values(self.columns_)
        if self.analysis is not None and _digest(values) != self.rows_:
            raise ValueError(
                "X must be the training table where draws agree with an analysis, which says nothing of outcomes of other rows; got another. Pass "
                "None, or fit without analysis."
            )
        if _digest(values) == self.rows_:
            return self._training_draws(table, _missing_rows(values), shifts)
        return self._new_draws(table, values, shifts)

    def _training_draws(self, table: Table, missing: list[Ints], shifts: Mapping[int, float]) -> Iterator[Any]:
        for k in range(len(self.seeds_)):
            drawn = {j: part[k] for j, part in enumerate(self.imputed_) if part is not None}
            yield table.filled(self._shown(drawn, missing, shifts), self.columns_)

    def _shown(
        self, drawn: Mapping[int, Floats], missing: list[Ints], shifts: Mapping[int, float]
    ) -> dict[int, tuple[Ints, Floats]]:
        """Rows and values of the columns whose missing cells are filled."""
        left_missing = self._wishes().keep_missing
        shown = {j: values for j, values in drawn.items() if self.columns_[j].name not in left_missing}
        return {j: (missing[j], values + shifts.get(j, 0.0)) for j, values in shown.items()}

    def _shifts(self, delta: Mapping[str, float] | None) -> dict[int, float]:
        """`delta` by the places of the columns."""
        if not isinstance(delta, Mapping | None):
            raise TypeError(
                f"delta must be a dict of columns and shifts; got {cut(repr(delta))} of type {type(delta).__name__}. Pass {{name: shift}}."
            )
        places = {column.name: j for j, column in enumerate(self.columns_) if column.kind in ("number", "whole")}
        passive = self._wishes().passive
        text, delta = " ".join(passive.values()), _by_name(delta)
        for name, shift in delta.items():
            is_shift = isinstance(shift, Real) and np.isfinite(float(shift))
            if name not in places or not is_shift or (self.columns_[places[name]].kind == "whole" and shift % 1):
                raise ValueError(
                    f"delta must give columns of numbers, {listed(places)}, finite shifts, whole ones for whole numbers; got {shift!r} for "
                    f"{name!r}. Correct it."
                )
            if name in passive or re.search(rf"\b{re.escape(name)}\b", text):
                raise ValueError(
                    f"delta must leave out columns that passive names, which would no longer follow; got {name!r}. Shift another column."
                )
        return {places[name]: float(shift) for name, shift in delta.items()}

    def _new_draws(self, table: Table, values: list[Values], shifts: Mapping[int, float]) -> Iterator[Any]:
        plan, observed = self._plan(values, self._wishes(), None)
        missing = _missing_rows(values)
        shown = {t.place: values[t.place].missing[t.missing] for t in plan.targets}
        constants = {j: constant for j, (_, constant) in constant_cells(self.learned_, values).items()}
        models = {j: model for j, model in enumerate(self.models_) if model is not None}
        for k, seed in enumerate(self.seeds_):
            parameters = {j: {name: part[k] for name, part in model.items()} for j, model in models.items()}
            with one_blas_thread():
                drawn = draw_rows(plan, observed, parameters, self.sweeps, generator(int(seed)).spawn(1)[0])
            drawn = constants | {j: column[shown[j]] for j, column in drawn.items()}
            yield table.filled(self._shown(drawn, missing, shifts), self.columns_)

    def analyse(
        self, analysis: Callable[[Any], Any], X: Any = None, delta: Mapping[str, float] | None = None
    ) -> PooledResult:
        """The same analysis of every completed table, pooled by Rubin's rules.

        Parameters
        ----------
        analysis : callable
            Takes a completed table; returns a result with `params` and `cov_params()`, as
            statsmodels has them, or one of lifelines, or a tuple (estimate, covariance), or an
            array of predictions, as in `pool`.
        X : frame or array-like, shape (m, d), default=None
            As in `draws`.
        delta : dict, default=None
            As in `draws`.

        Returns
        -------
        pooled : PooledResult
        """
        return analysed(analysis, self.draws(X, delta))

    def _check_loaded(self) -> None:
        """Refuse a model file whose parts do not belong together."""
        if "models_" not in vars(self):
            return
        wishes = self._wishes()
        wishes.check(self.columns_)
        none = no_rows(self.columns_)
        for column, part in zip(self.columns_, self.learned_, strict=True):
            if not column.is_number and not all(0 <= place < max(len(column.levels), 1) for place in part.sample):
                raise ValueError("learned_ and columns_ of the model file contradict each other. Fit again")
        for column, drawn in zip(self.columns_, self.imputed_, strict=True):
            if drawn is not None and column.levels and not np.isin(drawn, np.arange(len(column.levels))).all():
                raise ValueError("imputed_ and columns_ of the model file contradict each other. Fit again")
        plan, _ = self._plan(none, wishes, None)
        fitted = [t for t in plan.targets if t.formula is None and plan.regression is None]
        methods = {t.place: (t.method, t.levels) for t in fitted}
        check_models(self.models_, methods, {"m": len(self.seeds_), "width": plan.width})


def _by_name(wish: Mapping[Any, Any] | None) -> dict[str, Any]:
    """A parameter by names of columns as text."""
    return {str(name): value for name, value in (wish or {}).items()}


def _able_to_follow(column: Column, wishes: Wishes) -> Column:
    """The column; one of numbers where nothing was observed and a formula says what it is."""
    follows = column.kind == "empty" and column.name in wishes.passive
    return replace(column, kind="number") if follows else column


def _weights(weight: Any, n: int) -> Floats | None:
    """Weights (n,) with mean 1."""
    if weight is None:
        return None
    numbers = check_numbers(weight, "sample_weight", ensure_2d=False)
    if numbers.shape != (n,) or (numbers < 0).any() or not numbers.any():
        raise ValueError(
            f"sample_weight must be {n} numbers of at least 0, and not all zero; got shape {numbers.shape}, least "
            f"{numbers.min(initial=np.inf):g}. Give every row a weight."
        )
    check_sum_of_weights(numbers)
    return np.asarray(numbers / numbers.mean())


def _missing_rows(values: list[Values]) -> list[Ints]:
    """Rows where each column is missing."""
    return [np.flatnonzero(v.missing) for v in values]


def _digest(values: list[Values]) -> str:
    """What tells the training table from any other."""
    digest = sha256()
    for v in values:
        # Containers differ in the bits of NaN, and some have no negative zero.
        numbers = np.where(np.isnan(v.numbers), np.nan, v.numbers + 0.0)
        digest.update(numbers.tobytes() + v.missing.tobytes())
    return digest.hexdigest()


def _copied(table: Table) -> Table:
    """The table, safe from what its owner writes into it; polars and Arrow write into none."""
    copy = getattr(table.native, "copy", None)
    return table if copy is None else table._replace(native=copy())


def _between_within(traces: Floats) -> Floats:
    """Square root of the variance between chains over that within (Gelman and Rubin 1992), in the second half of the sweeps (d,)."""
    m, sweeps, d = traces.shape
    half = traces[:, sweeps // 2 :]
    n = half.shape[1]
    if m < 2 or n < 2:
        return np.full(d, np.nan)
    within = half.var(axis=1, ddof=1).mean(axis=0)
    between = half.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(all="ignore"):
        ratio = np.sqrt((n - 1) / n + between / within)
    return np.where(within > 0, ratio, np.where(np.isnan(within), np.nan, 1.0))


def _unsettled(m: int, sweeps: int) -> float:
    """The ratio of `_between_within` beyond which so many chains have not settled, and not by chance."""
    n = sweeps - sweeps // 2
    return float(np.sqrt((n - 1) / n + _CORRELATED * f.ppf(_SURE, max(m - 1, 1), m * max(n - 1, 1)) / n))


def _identities(plan: Plan, observed: Floats, values: list[Values]) -> list[int]:
    """Columns of numbers with missing entries that a combination of others gives exactly in the rows that show all of them."""
    numbers = [t for t in plan.targets if t.is_number and t.formula is None]
    if not 2 <= len(numbers) <= _WIDEST:
        return []
    rows = np.flatnonzero(~np.isnan(np.column_stack([values[t.place].numbers for t in numbers])).any(axis=1))
    if len(rows) < len(numbers) + 3:
        return []
    Z = observed[np.ix_(rows, [t.own.start for t in numbers])]
    Z = Z - Z.mean(axis=0)
    scales = np.sqrt((Z**2).mean(axis=0))
    sizes, vectors = np.linalg.eigh((Z.T @ Z) / len(Z) / np.maximum(np.outer(scales, scales), 1e-300))
    exact = (np.abs(vectors[:, sizes < _EXACT]) > 1e-3).any(axis=1)
    identities = [t.place for t, flag in zip(numbers, exact, strict=True) if flag]
    missing = {t.place for t in numbers if len(t.missing)}
    return identities if missing & set(identities) else []
