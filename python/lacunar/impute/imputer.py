"""`Imputer`: a table of any kind in, the same table without gaps out."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import narwhals.stable.v1 as nw
import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from lacunar._log import say
from lacunar._random import fixed_seed, generator
from lacunar._state import all_or_nothing, whole_answers
from lacunar._threads import one_blas_thread
from lacunar._typing import Bools, Floats
from lacunar.impute.chained import Plan, Target
from lacunar.impute.expectations import Forest, Joint, Recovery, Units, by_joint, fit_joint, hide, units_of, weigh
from lacunar.impute.plans import NO_WISHES, Learned, build_plan, learn_columns
from lacunar.impute.tables import AnyTable, Column, Table, Values, names_of, no_rows, read_table, warn_of_columns
from lacunar.lowrank.gaussian import Gaussian
from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.observed.rules import Anything, Array, Instance, Items, Rule, Sometimes, floats

_HEADS = ("column", "kind", "missing", "hidden", "explained", "error", "forest_weight")
_DAY = 86_400e6  # microseconds
_UNKNOWN = 0.5  # weight of the forest where no hidden entries choose it


@whole_answers
class Imputer(AnyTable, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One completed table, of the same kind: for a look, a picture, or a tool that takes no gaps.

    Every missing cell becomes what is expected of it given the rest of its row: a number within the
    range observed, or the likeliest level. Names, index, types, categories and their order,
    booleans, dates and whole numbers stay.

    Parameters
    ----------
    n_jobs : int, default=None
        Processors of the forests. The result is the same for any number.
    random_state : int, RandomState or None, default=None
        Draws hidden entries and forests. None is a fixed draw.
    verbose : int, default=0
        Whether progress is logged.

    Attributes
    ----------
    imputed_ : dict of lists
        How well observed entries came back that were hidden, by "column": its "kind", the numbers
        of "missing" and of "hidden" entries, the share of the variance "explained" (1 is perfect, 0
        no better than the mean or the usual shares of levels), the "error" (root mean squared in
        units of the column, of dates in days, or the share of wrong levels) and "forest_weight".
        `pandas.DataFrame(imputer.imputed_)` shows it.
    columns_ : list of Column
        What each column holds: name, kind and levels.
    learned_ : list of Learned
        Scale and sample of values of each column.
    table_ : ndarray of shape (n, p)
        The training table as the models see it, from which the forests are grown.
    location_, covariance_ : ndarrays of shape (p,), (p, p)
        The Gaussian of the standardised table; absent beyond 100 columns, where `posterior_` is of
        low rank.
    posterior_ : LowRankPosterior
    forest_weight_ : ndarray of shape (d,)
    seed_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        Infinite numbers.
    TypeError
        Sparse matrices, `Observed` tables and files: every cell is filled, so the table is dense.

    Warns
    -----
    UserWarning
        Columns without observed entries, and text of more than 50 levels, which stay missing;
        levels of new rows that fit never saw.

    See Also
    --------
    MultipleImputer : Several tables, for coefficients, tests and intervals, which one filled table
        makes too sure.
    lacunar.learner.LacunarClassifier : Predicts from missing values as they are.
    lacunar.lowrank.LowRankImputer : Large and sparse tables of numbers.

    Notes
    -----
    Expected values are a weighted mean, column by column, of the joint Gaussian of all columns,
    learned by EM, and of a forest of 25 extremely randomised trees on completed rows. The weight is
    the one that gives back a tenth of the observed entries best, which are hidden for that; of a
    column without missing entries it is the mean of the others. Ties between levels go to the
    first.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.impute import Imputer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) @ [[1.0, 2.0, -1.0]] + 0.1 * rng.normal(size=(200, 3))
    >>> seen = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> bool(np.abs(Imputer().fit_transform(seen) - X).max() < 1.0)
    True
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "columns_": Items(Instance(Column), length="d"),
        "learned_": Items(Instance(Learned), length="d"),
        "table_": Array("f", ("rows", "p"), finite=False),
        "location_": Sometimes(floats("p")),
        "covariance_": Sometimes(floats("p", "p")),
        "posterior_": Sometimes(Instance(LowRankPosterior)),
        "forest_weight_": floats("d", low=0, high=1),
        "imputed_": Anything(),
        "seed_": Anything(),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(self, *, n_jobs: int | None = None, random_state: Any = None, verbose: int = 0) -> None:
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Imputer:
        """Learn how the columns depend on one another.

        Parameters
        ----------
        X : frame (pandas, polars, Arrow) or array-like, shape (n, d)
            NaN, None and NA are missing.
        y : ignored

        Returns
        -------
        self : Imputer
        """
        self._learn(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """`fit`, and the table without its gaps.

        Parameters
        ----------
        X : frame (pandas, polars, Arrow) or array-like, shape (n, d)
        y : ignored

        Returns
        -------
        table : of the kind of X, shape (n, d)
        """
        table, values = self._learn(X)
        return self._filled(table, values)

    def _learn(self, X: Any) -> tuple[Table, list[Values]]:
        table = read_table(self, X, reset=True)
        self.columns_ = table.columns(names_of(self))
        values = table.values(self.columns_)
        self.learned_ = learn_columns(self.columns_, values, NO_WISHES, None)
        plan, self.table_ = self._plan(values)
        rng = generator(fixed_seed(self.random_state))
        self.seed_ = int(rng.integers(2**31 - 1))
        for name in ("location_", "covariance_", "posterior_", "_forests"):
            self.__dict__.pop(name, None)
        with one_blas_thread():
            recoveries = self._recover(plan, values, rng) if plan.targets else {}
            self._store(plan)
        self._report(plan, values, recoveries)
        warn_of_columns(self.columns_, values)
        return table, values

    def _plan(self, values: list[Values]) -> tuple[Plan, Floats]:
        """The plan of the columns, and the design (n, p) with NaN where entries are missing."""
        plan, X = build_plan(self.columns_, self.learned_, values, NO_WISHES, None, ridge=0.0, n_donors=1)
        for target in plan.targets:
            X[target.missing, target.own] = np.nan
        return plan, X[:, 1:]

    def _recover(self, plan: Plan, values: list[Values], rng: np.random.Generator) -> dict[int, Recovery]:
        """Hide observed entries, learn from the others, and weigh the two models by how well they give back what is hidden."""
        observed = np.column_stack([~np.isnan(v.numbers) for v in values])
        hidden = hide(plan, observed, rng)
        if not hidden:
            return {}
        X, seen = self.table_.copy(), observed.copy()
        for target in plan.targets:
            rows = hidden.get(target.place, np.empty(0, dtype=np.intp))
            X[rows, target.own.start - 1 : target.own.stop - 1] = np.nan
            seen[rows, target.place] = False
        units = units_of(self.table_)
        completed = fit_joint(units.of(X), self.seed_).expected(units.of(X))
        recoveries = {}
        for target in plan.order:
            if target.place in hidden:
                recoveries[target.place] = self._recovered(target, units, completed, hidden[target.place], seen, values)
                say(self.verbose, "hidden entries of column %d of %d", len(recoveries), len(hidden))
        return recoveries

    def _recovered(
        self, target: Target, units: Units, completed: Floats, rows: Any, seen: Bools, values: list[Values]
    ) -> Recovery:
        numbers = values[target.place].numbers
        known = np.flatnonzero(seen[:, target.place])
        forest = None
        if self.table_.shape[1] > target.own.stop - target.own.start:  # there are others
            forest = Forest(target, completed, known, numbers[known], self.seed_, self.n_jobs).answer(completed[rows])
        return weigh(target, numbers[rows], by_joint(target, units, completed[rows]), forest)

    def _store(self, plan: Plan) -> None:
        if not plan.targets:
            return
        joint = fit_joint(units_of(self.table_).of(self.table_), self.seed_)
        if joint.posterior is not None:
            self.posterior_ = joint.posterior
        elif joint.gaussian is not None:
            self.location_, self.covariance_ = joint.gaussian.mean, joint.gaussian.covariance

    def _report(self, plan: Plan, values: list[Values], recoveries: dict[int, Recovery]) -> None:
        others = self.table_.shape[1] > 1
        usual = float(np.mean([r.weight for r in recoveries.values()])) if recoveries else _UNKNOWN * others
        self.forest_weight_ = np.full(len(self.columns_), usual)
        report: dict[str, list[Any]] = {head: [] for head in _HEADS}
        for j, (column, v) in enumerate(zip(self.columns_, values, strict=True)):
            recovery = recoveries.get(j, Recovery(0, usual, np.nan, np.nan))
            self.forest_weight_[j] = recovery.weight
            row = (
                column.name,
                column.kind,
                int(v.missing.sum()),
                recovery.hidden,
                recovery.explained,
                recovery.error / (_DAY if column.kind == "date" else 1),
                recovery.weight,
            )
            for head, cell in zip(_HEADS, row, strict=True):
                report[head].append(cell)
        self.imputed_ = report

    # -- answers ------------------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """The table without its gaps.

        Parameters
        ----------
        X : frame or array-like, shape (m, d)

        Returns
        -------
        table : of the kind of X, or the frame that `set_output` asks for, shape (m, d)
        """
        check_is_fitted(self, "forest_weight_")
        table = read_table(self, X, reset=False)
        return self._filled(table, table.values(self.columns_))

    def _filled(self, table: Table, values: list[Values]) -> Any:
        cells = {}
        for place, (target, rows, expected) in self._expected(values).items():
            shown = values[place].missing[rows]
            cells[place] = rows[shown], self._values(target, expected[shown])
        for j, part in enumerate(self.learned_):
            if len(part.sample) == 1:
                rows = np.flatnonzero(values[j].missing)
                cells[j] = rows, np.full(len(rows), part.sample[0])
        return self._in_container(table.filled(cells, self.columns_))

    def _expected(self, values: list[Values]) -> dict[int, tuple[Target, Any, Floats]]:
        """By column, the rows where it is missing and what is expected there: a standard number, or probabilities of levels."""
        plan, X = self._plan(values)
        if not plan.order:
            return {}
        units = units_of(self.table_)
        with one_blas_thread():
            completed = self._joint().expected(units.of(X))
            return {t.place: (t, t.missing, self._answer(t, units, completed[t.missing])) for t in plan.order}

    def _answer(self, target: Target, units: Units, completed: Floats) -> Floats:
        weight = self.forest_weight_[target.place]
        joint = by_joint(target, units, completed)
        if weight == 0:
            return joint
        return joint + weight * (self._forest(target.place).answer(completed) - joint)  # type: ignore[no-any-return]

    def _joint(self) -> Joint:
        if "posterior_" in vars(self):
            return Joint(None, self.posterior_)
        return Joint(Gaussian(self.location_, self.covariance_), None)

    def _forest(self, place: int) -> Forest:
        """The forest of one column, grown from the training table when it is first asked; a model file does not hold it."""
        forests: dict[int, Forest] = self.__dict__.setdefault("_forests", {})
        if place not in forests:
            Z = units_of(self.table_).of(self.table_)
            numbers = self._training_values(place)
            plan, _ = self._plan(no_rows(self.columns_))
            target = next(t for t in plan.targets if t.place == place)
            rows = np.flatnonzero(~np.isnan(numbers))
            forests[place] = Forest(target, self._joint().expected(Z), rows, numbers[rows], self.seed_, self.n_jobs)
        return forests[place]

    def _training_values(self, place: int) -> Floats:
        """Values of a column of the training table, from the design."""
        plan, _ = self._plan(no_rows(self.columns_))
        target = next(t for t in plan.targets if t.place == place)
        own = self.table_[:, target.own.start - 1 : target.own.stop - 1]
        if target.is_number:
            numbers: Floats = own[:, 0] * target.scale + target.centre
            return numbers
        places: Floats = np.where(np.isnan(own[:, 0]), np.nan, own @ np.arange(1, target.levels))
        return places

    def _values(self, target: Target, expected: Floats) -> Floats:
        """What is expected as values of the column: within the range observed, whole where it is, and the likeliest level."""
        if not target.is_number:
            places: Floats = expected.argmax(axis=1).astype(np.float64)
            return places
        values: Floats = np.clip(expected[:, 0] * target.scale + target.centre, target.sample[0], target.sample[-1])
        if self.columns_[target.place].kind == "date":
            step = _DAY if not np.any(target.sample % _DAY) else 1.0  # days stay days
            return np.rint(values / step) * step
        return np.rint(values) if target.whole else values

    def probabilities(self, X: Any) -> dict[str, Floats]:
        """Probabilities of the levels of every column of levels or booleans: 1 for the one that a
        row shows.

        Parameters
        ----------
        X : frame or array-like, shape (m, d)

        Returns
        -------
        probabilities : dict of ndarray of shape (m, levels)
            By name of the column, in the order of `columns_[j].levels`; 0 for all where a row has a
            level that fit never saw.
        """
        check_is_fitted(self, "forest_weight_")
        table = read_table(self, X, reset=False)
        values = table.values(self.columns_)
        found, expected = {}, self._expected(values)
        for j, column in enumerate(self.columns_):
            if column.levels:
                shares = (values[j].numbers[:, None] == np.arange(len(column.levels))).astype(np.float64)
                if j in expected:
                    _, rows, chances = expected[j]
                    shown = values[j].missing[rows]
                    shares[rows[shown]] = chances[shown]
                elif len(self.learned_[j].sample) == 1:
                    shares[values[j].missing, int(self.learned_[j].sample[0])] = 1.0
                found[column.name] = shares
        return found

    def _in_container(self, filled: Any) -> Any:
        """The frame that `set_output` asks for, of frames of another library."""
        wish = _get_output_config("transform", self)["dense"]
        if wish == "default" or isinstance(filled, np.ndarray):
            return filled
        frame = nw.from_native(filled, eager_only=True)
        return frame.to_pandas() if wish == "pandas" else frame.to_polars()

    def _check_loaded(self) -> None:
        """Refuse a model file whose parts do not belong together."""
        if "forest_weight_" not in vars(self):
            return
        plan, empty = self._plan(no_rows(self.columns_))
        has_joint = "posterior_" in vars(self) or {"location_", "covariance_"} <= vars(self).keys()
        sound = type(self.seed_) is int and 0 <= self.seed_ < 2**31 and has_joint == bool(plan.targets)
        if self.table_.shape[1] != empty.shape[1] or not sound or np.isinf(self.table_).any():
            raise ValueError("the parts of the imputer in the model file do not belong together. Fit again")
        if plan.targets and np.isnan(self.table_).all(axis=0).any():
            raise ValueError("table_ of the model file has columns without entries. Fit again")
        for target in plan.targets:
            numbers = self._training_values(target.place)
            if not target.is_number and not np.isin(numbers[~np.isnan(numbers)], np.arange(target.levels)).all():
                raise ValueError("table_ of the model file holds levels that its columns do not have. Fit again")
