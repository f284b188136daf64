"""`Imputer`: a table of any kind in, the same table without gaps out."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import narwhals.stable.v1 as nw
import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from lacunar._answers import ColumnTable
from lacunar._random import fixed_seed, generator
from lacunar._state import all_or_nothing, whole_answers
from lacunar._threads import one_blas_thread
from lacunar._typing import Floats
from lacunar.impute.chained import Plan, Target
from lacunar.impute.columns import Column
from lacunar.impute.expectations import Mixture, Recovery, answer, fit_joint, units_of, weigh
from lacunar.impute.plans import NO_WISHES, Learned, build_plan, constant_cells, learn_columns
from lacunar.impute.tables import AnyTable, Table, Values, names_of, no_rows, read_table, warn_of_columns
from lacunar.lowrank.gaussian import Gaussian
from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.observed.rules import Anything, Array, Instance, Items, Rule, Sometimes, floats

_HEADS = ("column", "kind", "missing", "hidden", "explained", "error", "gaussian_weight", "forest_weight")
_DAY = 86_400e6  # microseconds


@whole_answers
class Imputer(AnyTable, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """One completed table, of the same kind: for a look, a picture, or a tool that takes no gaps.

    Every missing cell becomes what is expected of it given the rest of its row: a number within the
    range observed, or the likeliest level. Names, index, types, categories and their order,
    booleans, dates, whole numbers and up to four decimals stay.

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
    imputed_ : ColumnTable
        A dict of lists that prints as a table, with `to_frame()`. How well observed entries came
        back that were hidden, by "column": its "kind", the numbers
        of "missing" and of "hidden" entries, the share of the variance "explained" (1 is perfect, 0
        no better than the mean or the usual shares of levels), the "error" (root mean squared in
        units of the column, of dates in days, or the share of wrong levels), "gaussian_weight" and
        "forest_weight".
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
        The Gaussian of the standardised table; only beyond 100 columns.
    weights_ : ndarray of shape (d, 2)
        Of the Gaussian and of the forest, by column.
    recovery_ : ndarray of shape (d, 4)
        Of which `imputed_` is made: missing, hidden, explained, error.
    seed_ : int
        What draws of `fit` and `transform` begin from.
    n_features_in_ : int
        Number of columns of X.
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
    Expected values are a weighted sum, column by column, of the joint Gaussian of all columns,
    learned by EM, of a forest of 25 to 100 extremely randomised trees on completed rows, and of the
    column's mean. Observed entries are hidden, a tenth to a fifth at a time, and the Gaussian
    completes their rows without knowing them; from such rows the trees learn. Weights are those
    that give the hidden entries back best, and with few entries near those of all columns together.
    Ties between levels go to the first.

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
        "weights_": floats("d", 2, low=0),
        "recovery_": Array("f", ("d", 4), finite=False),
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

    @_fit_context(prefer_skip_nested_validation=True)
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

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """`fit`, and the table without its gaps: it is read once.

        Parameters
        ----------
        X : frame (pandas, polars, Arrow) or array-like, shape (n, d)
        y : ignored

        Returns
        -------
        table : of the kind of X, or the frame that `set_output` asks for, shape (n, d)
        """
        return self._filled(*self._learn(X))

    def _learn(self, X: Any) -> tuple[Table, list[Values]]:
        """What `fit` does; the table, and its columns as numbers."""
        table = read_table(self, X, reset=True)
        self.columns_ = table.columns(names_of(self))
        values = table.values(self.columns_)
        self.learned_ = learn_columns(self.columns_, values, NO_WISHES, None)
        plan, self.table_ = self._plan(values)
        self.seed_ = int(generator(fixed_seed(self.random_state)).integers(2**31 - 1))
        for name in ("location_", "covariance_", "posterior_", "_mixture"):
            self.__dict__.pop(name, None)
        with one_blas_thread():
            self._report(values, *(self._weighed() if plan.targets else weigh({})))
        warn_of_columns(self.columns_, values)
        return table, values

    def _plan(self, values: list[Values]) -> tuple[Plan, Floats]:
        """The plan of the columns, and the design (n, p) with NaN where entries are missing."""
        plan, X = build_plan(self.columns_, self.learned_, values, NO_WISHES, None, ridge=0.0, n_donors=1)
        for target in plan.targets:
            X[target.missing, target.own] = np.nan
        return plan, X[:, 1:]

    def _weighed(self) -> tuple[Floats, dict[int, Recovery]]:
        """Learn both models; their weights in all columns, and how well hidden entries of each came back."""
        joint = fit_joint(units_of(self.table_).of(self.table_), self.seed_)
        if isinstance(joint, Gaussian):
            self.location_, self.covariance_ = joint.mean, joint.covariance
        else:
            self.posterior_ = joint
        return self._models().common, self._models().recoveries

    def _models(self) -> Mixture:
        """Both models; a model file holds no forests, which are grown again."""
        if "_mixture" not in vars(self):
            targets = self._plan(no_rows(self.columns_))[0].targets
            joint = self.posterior_ if "posterior_" in vars(self) else Gaussian(self.location_, self.covariance_)
            self._mixture = Mixture(targets, self.table_, joint, self.seed_, self.n_jobs, self.verbose)
        return self._mixture

    def _report(self, values: list[Values], common: Floats, recoveries: dict[int, Recovery]) -> None:
        """Store the weights of both models, and how well hidden entries came back."""
        none = Recovery(0, common, np.nan, np.nan)
        parts = [(v.missing.sum(), recoveries.get(j, none)) for j, v in enumerate(values)]
        self.weights_ = np.array([recovery.weights for _, recovery in parts])
        self.recovery_ = np.array([(missing, r.hidden, r.explained, r.error) for missing, r in parts])

    @property
    def imputed_(self) -> ColumnTable:
        """How well observed entries came back that were hidden."""
        check_is_fitted(self, "recovery_")
        kinds = [column.kind for column in self.columns_]
        missing, hidden, explained, error = self.recovery_.T
        error = error / np.where(np.array(kinds) == "date", _DAY, 1.0)
        parts = (missing.astype(int), hidden.astype(int), explained, error, *self.weights_.T)
        columns = [[column.name for column in self.columns_], kinds, *(part.tolist() for part in parts)]
        return ColumnTable(zip(_HEADS, columns, strict=True))

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
        return self._filled(*self._read(X))

    def _read(self, X: Any) -> tuple[Table, list[Values]]:
        check_is_fitted(self, "weights_")
        table = read_table(self, X, reset=False)
        return table, table.values(self.columns_)

    def _filled(self, table: Table, values: list[Values]) -> Any:
        expected = self._expected(values).items()
        cells = {place: (rows, self._values(target, part)) for place, (target, rows, part) in expected}
        filled = table.filled(cells | constant_cells(self.learned_, values), self.columns_)
        return self._in_container(filled)

    def _expected(self, values: list[Values]) -> dict[int, tuple[Target, Any, Floats]]:
        """By column, the rows (m,) whose cell is missing and what is expected there (m, width): a standard number, or
        probabilities of levels.
        """
        plan, X = self._plan(values)
        if not plan.order:
            return {}
        with one_blas_thread():
            answers = self._models().expected(plan.order, X)
        missing = {t.place: values[t.place].missing[t.missing] for t in plan.order}  # not levels that fit never saw
        return {t.place: (t, t.missing[missing[t.place]], answers[t.place][missing[t.place]]) for t in plan.order}

    def _values(self, target: Target, expected: Floats) -> Floats:
        """What is expected as values of the column: within the range observed and with its decimals, and the likeliest level."""
        if not target.is_number:
            places: Floats = expected.argmax(axis=1).astype(np.float64)
            return places
        values: Floats = np.clip(expected[:, 0] * target.scale + target.centre, target.sample[0], target.sample[-1])
        return target.rounded(values)

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
        _, values = self._read(X)
        probabilities, expected = {}, self._expected(values)
        for j, column in enumerate(self.columns_):
            if column.levels:
                shares = (values[j].numbers[:, None] == np.arange(len(column.levels))).astype(np.float64)
                if j in expected:
                    _, rows, chances = expected[j]
                    shares[rows] = chances
                elif len(self.learned_[j].sample) == 1:
                    shares[values[j].missing, int(self.learned_[j].sample[0])] = 1.0
                probabilities[column.name] = shares
        return probabilities

    def _in_container(self, filled: Any) -> Any:
        """The frame that `set_output` asks for, of frames of another library."""
        wish = _get_output_config("transform", self)["dense"]
        if wish == "default" or isinstance(filled, np.ndarray):
            return filled
        frame = nw.from_native(filled, eager_only=True)
        return frame.to_pandas() if wish == "pandas" else frame.to_polars()

    def _check_loaded(self) -> None:
        """Refuse a model file whose parts do not belong together."""
        if "weights_" not in vars(self):
            return
        plan, empty = self._plan(no_rows(self.columns_))
        has_joint = "posterior_" in vars(self) or {"location_", "covariance_"} <= vars(self).keys()
        sound = type(self.seed_) is int and 0 <= self.seed_ < 2**31 and has_joint == bool(plan.targets)
        if self.table_.shape[1] != empty.shape[1] or not sound or np.isinf(self.table_).any():
            raise ValueError("the parts of the imputer in the model file do not belong together. Fit again")
        if plan.targets and np.isnan(self.table_).all(axis=0).any():
            raise ValueError("table_ of the model file has columns without entries. Fit again")
        for target in (t for t in plan.targets if not t.is_number):
            own = answer(target, self.table_)
            if not np.isin(own[~np.isnan(own[:, 0])], (0.0, 1.0)).all():
                raise ValueError("table_ of the model file holds levels that its columns do not have. Fit again")
