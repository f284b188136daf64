"""`KarmaClassifierCV` and `KarmaRegressorCV`: kernels and C by successive halving, scored by exact leave-one-out."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lacunar._cuts import Cut
from lacunar._log import say
from lacunar._random import fixed_seed
from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Floats
from lacunar.karma.base import KarmaBatch, KarmaLabels, KarmaNumbers, class_weights, drawn_order, weighted_rows
from lacunar.karma.calibrate import fit_calibration, probabilities, scaled
from lacunar.karma.classifier import KarmaClassifier
from lacunar.karma.kernel_ridge import Data, Rows
from lacunar.karma.regressor import KarmaRegressor
from lacunar.karma.selection import (
    CS,
    PLAIN,
    Entry,
    Grid,
    KernelSelection,
    Trial,
    described,
    karma_entries,
    radial_entries,
    results_table,
)
from lacunar.karma.solvers import one_vs_rest
from lacunar.kernels import KernelForm
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns, scaled_rows
from lacunar.observed.door import TakesMissing, check_classes, validate_X, validate_X_y
from lacunar.observed.rules import (
    BOUNDED_COLUMNS,
    COUNT,
    LABELS,
    Array,
    Instance,
    Items,
    Number,
    OneOrMany,
    Rule,
    Sometimes,
    check_parts,
    floats,
)

# Values (n, outputs) of rows that were left out, and the numbers of the rows.
LeftOut = tuple[Floats, NDArray[np.intp]]
_EXACT = 5000  # rows to which the winners are fitted over the whole Gram
_MANY = 20_000  # rows above which a weight table is fitted, and no Gram
_HELD_OUT = 0.02  # share of many rows, _MOST_HELD_OUT at most, that decides between two tables
_MOST_HELD_OUT = 20_000
_HOLDOUT = 0.25  # share of rows the paper holds out


class KarmaSearch(TakesMissing):
    """Successive halving over kernels and C; the best are in `selection_`, or, of many rows, one of them is in
    `estimators_`.
    """

    columns_: list[Any]
    _model: Any
    _fitted: Any
    _values_of: Any
    _loss_of: Any
    _n_outputs: Any

    _schema: ClassVar[dict[str, Rule]] = {
        **{name: Number(finite=False) for name in ("best_score_", "zero_imputation_score_")},
        "classes_": Sometimes(LABELS),
        "best_index_": COUNT,
        "n_iter_": COUNT,
        "columns_": Items(Array("fb", ("d",)), 4),
        "chosen_": Items(Instance(dict)),
        "selection_": Instance(KernelSelection),
        "estimators_": Sometimes(Items(Instance(KarmaBatch), 1)),
        "calibration_": Sometimes(floats("parts")),
        "intercept_": Sometimes(OneOrMany((), "o")),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gammas": ["array-like"],
        "Cs": ["array-like", None],
        "indicators": ["array-like"],
        "standardize": ["boolean"],
        "cv": [
            StrOptions({"loo", "holdout"}),
            Interval(Integral, 2, None, closed="left"),
            HasMethods(["split", "get_n_splits"]),
            "array-like",
        ],
        "max_search_rows": [Interval(Integral, 1, None, closed="left")],
        "kernels": [StrOptions({"auto", "karma"})],
        "average": [Interval(Integral, 1, None, closed="left")],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def _search(
        self,
        X: Observed,
        y: NDArray[Any],
        targets: Floats,
        weight: Floats,
        loss_weight: Floats,
        splits: list[Cut] | None,
        y_encoded: Any = None,
    ) -> LeftOut:
        """Select and report; the selection fits the best kernels to all rows, or, of many rows, the best one is fitted
        as a model.
        """
        for name in ("selection_", "estimators_", "columns_", "calibration_"):
            self.__dict__.pop(name, None)
        many = len(weight) > _MANY
        auto = self.kernels == "auto" and not many
        scale = fit_columns(X, weight, standardize=self.standardize, n_jobs=self.n_jobs)
        rows, order = (
            scale_columns(X, scale, n_jobs=self.n_jobs),
            drawn_order(len(weight), y_encoded, self.random_state),
        )
        selection = KernelSelection(
            search_rows=int(self.max_search_rows), full_rows=_EXACT, average=int(self.average), n_jobs=self.n_jobs
        )
        selection.set_params(screen_rows=min(selection.screen_rows, selection.search_rows))
        tables = [PLAIN, *selection.fit_expansions(rows, order, ("gaussian", "levels") if auto else ())]
        grid = self._grid(tables, radial=auto, many=many)
        unit = float(np.sqrt(np.average(np.square(targets).mean(axis=1), weights=weight))) or 1.0
        data = Data(Rows(rows, None), targets / unit, loss_weight, splits)
        self.n_iter_ = 1
        if many:
            return self._fit_many(X, y, targets, weight, order, grid, selection.rungs(data, order, grid), unit)
        values = selection.run(data, order, grid, None)
        selection.coef_, selection.offset_ = selection.coef_ * unit, selection.offset_ * unit
        self.columns_, self.selection_ = list(scale), selection
        self._report(grid, selection.chosen_, unit)
        return values * unit, np.arange(len(weight))

    def _grid(self, tables: list[str], *, radial: bool, many: bool) -> Grid:
        """Kernels on these tables; for many rows only those of small weight tables."""
        gammas = sorted({1, *self.gammas})
        degree, indicators = (2 if self.kernels == "auto" and not many else 1), self.indicators
        if many:  # tables with indicators take twice the time
            gammas = [gamma for gamma in gammas if gamma in (1, 2)]
            indicators = [False] if False in indicators else indicators
        entries = [entry for table in tables for entry in karma_entries(table, gammas, indicators, degree=degree)]
        zero = [entry for entry in entries if _imputes_zero(entry)]
        Cs = CS if self.Cs is None else np.sort(np.asarray(self.Cs, dtype=np.float64).ravel())
        if not len(Cs) or not (np.isfinite(Cs).all() and Cs[0] > 0):
            raise ValueError(
                f"Cs must be one or more finite numbers > 0; got {self.Cs!r}. Leave it out for 1e-4 to 1e5."
            )
        return Grid(entries + (radial_entries(PLAIN) if radial else []), Cs, zero, verbose=int(self.verbose))

    def _report(self, grid: Grid, chosen: list[dict[str, Any]], unit: float) -> None:
        """The tables of all trials and of what was chosen, best first."""
        self.cv_results_ = results_table(grid.trials, unit)
        self.chosen_ = chosen
        say(self.verbose, "%d kernels and C tried; chosen, best first: %s", len(grid.trials), chosen)
        ranks = self.cv_results_["rank_test_score"]
        self.best_index_ = int(ranks.argmin())
        self.best_params_ = dict(self.cv_results_["params"][self.best_index_])
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        zero = [trial for trial in grid.trials if _imputes_zero(trial.entry)]
        last = max((trial.n_rows for trial in zero), default=0)
        scores = [-trial.error * unit**2 for trial in zero if trial.n_rows == last]
        self.zero_imputation_score_ = max(scores) if scores else float("nan")

    def _fit_many(
        self,
        X: Observed,
        y: NDArray[Any],
        targets: Floats,
        weight: Floats,
        order: NDArray[np.intp],
        grid: Grid,
        trials: list[Trial],
        unit: float,
    ) -> LeftOut:
        """Fit a weight table, as rows are many: of the best kernel of the largest gamma, or of the default kernel
        where its loss is lower on rows held out of both. Their values, and the numbers of these rows.
        """
        left_out = np.sort(order[-min(int(len(order) * _HELD_OUT), _MOST_HELD_OUT) :])
        train = np.setdiff1d(order, left_out)
        default = Trial(karma_entries(PLAIN, (2,), (False,), ("trace",), degree=1)[0], 1.0)
        most = max(trial.entry.options["gamma"] for trial in trials)
        best = next(trial for trial in trials if trial.entry.options["gamma"] == most)
        fits = []
        for trial in {(str(trial.entry), trial.C): trial for trial in (best, default)}.values():
            model = self._fitted(self._model(trial), X[train], y[train], weight[train])
            values = self._values_of(model, X[left_out])
            fits.append((self._loss_of(values, targets[left_out], y[left_out], weight[left_out]), trial, model, values))
        _, trial, model, values = min(fits, key=lambda fit: fit[0])
        error = np.average(np.square(values - targets[left_out]).mean(axis=1), weights=weight[left_out])
        grid.trials.append(trial._replace(errors=np.array([error / unit**2]), n_rows=len(left_out), rung=3))
        self.estimators_, self.n_iter_ = [model], model.n_iter_
        self._report(grid, [described(trial)], unit)
        return values, left_out

    def _model_params(self, trial: Trial) -> dict[str, Any]:
        """Parameters of a model of one kernel on the table itself."""
        names = ("standardize", "sparse_missing", "random_state", "n_jobs")
        shared = {name: getattr(self, name) for name in names}
        kernel = {name: trial.entry.options[name] for name in ("gamma", "normalize")}
        return {**kernel, "indicators": bool(trial.entry.options["indicators"]), "C": trial.C, **shared}

    def _check_loaded(self) -> None:
        """Refuse a loaded model whose selection or estimator is of other columns or classes."""
        d: Any = getattr(self, "n_features_in_", None)
        if "columns_" in vars(self) and len(self.columns_):
            check_parts(dict(zip(BOUNDED_COLUMNS, self.columns_, strict=True)), BOUNDED_COLUMNS, "columns_", {"d": d})
        selection = vars(self).get("selection_")
        if selection is not None and (selection.rows_.shape[1] != d or len(selection.offset_) != self._n_outputs()):
            raise ValueError("selection_ must be of the columns and targets of the search; it is not. Fit again")
        if "estimators_" in vars(self):
            self._check_models(d)

    def _check_models(self, d: Any) -> None:
        for model in self.estimators_:
            alike = np.array_equal(getattr(self, "classes_", 0), getattr(model, "classes_", 0))
            if getattr(model, "n_features_in_", None) != d or not alike:
                raise ValueError(
                    f"estimators_ must be of the columns and classes of the search; {model!r} is not. Fit again"
                )

    def _evaluate(self, X: Any) -> Floats:
        """Values (m, outputs) at rows X: of the selection, or of the model in `estimators_`."""
        check_is_fitted(self)
        if "selection_" in vars(self):
            rows = scaled_rows(self, X, ColumnScale(*self.columns_), sparse_missing=self.sparse_missing)
            return self.selection_.values(Rows(rows, None))
        table = validate_X(self, X, reset=False, sparse_missing=self.sparse_missing)
        values: Floats = self._values_of(self.estimators_[0], table)
        return values


def _holdout(y_encoded: NDArray[np.intp] | None, random_state: Any) -> Any:
    """One random split, stratified where every class can be on both sides."""
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit  # imports rich: not at import time

    possible = False
    if y_encoded is not None:
        counts = np.unique(y_encoded, return_counts=True)[1]
        test = len(y_encoded) * _HOLDOUT
        possible = counts.min() >= 2 and min(test, len(y_encoded) - test) >= len(counts)
    return (StratifiedShuffleSplit if possible else ShuffleSplit)(1, test_size=_HOLDOUT, random_state=random_state)


def make_splits(
    cv: Any, y: NDArray[Any], y_encoded: NDArray[np.intp] | None, present: NDArray[np.intp], random_state: Any
) -> list[Cut] | None:
    """Splits as positions among the rows `present`; None means leave-one-out.

    `cv` counts rows of the whole table: other rows are left out of each split, and empty splits are dropped.
    """
    if isinstance(cv, str) and cv == "loo":
        return None
    from sklearn.model_selection import KFold, StratifiedKFold, check_cv

    random_state = fixed_seed(random_state)

    if isinstance(cv, str):
        splitter = _holdout(y_encoded, random_state)
    elif isinstance(cv, int | np.integer):
        enough = y_encoded is not None and np.bincount(y_encoded).min() >= cv
        splitter = (StratifiedKFold if enough else KFold)(int(cv), shuffle=True, random_state=random_state)
    else:
        splitter = check_cv(cv, y, classifier=y_encoded is not None)
    position = np.full(len(y), -1, dtype=np.intp)
    position[present] = np.arange(len(present))
    splits = [(_present(position[a]), _present(position[b])) for a, b in splitter.split(np.zeros((len(y), 1)), y)]
    splits = [(train, test) for train, test in splits if len(train) and len(test)]
    if not splits:
        raise ValueError(
            f"cv must leave at least one split with training and test rows; got none from cv={cv!r} and {len(present)} rows "
            "of positive weight. Use cv='loo'."
        )
    return splits


def _present(position: NDArray[np.intp]) -> NDArray[np.intp]:
    return position[position >= 0]


def _imputes_zero(entry: Entry) -> bool:
    """Whether a kernel is that of rows filled by column means."""
    options = entry.options
    linear = entry.kind is KernelForm and options["gamma"] == 1 and options["degree"] == 1
    return linear and entry.table == PLAIN and not options["indicators"]


@whole_answers
class KarmaClassifierCV(KarmaLabels, KarmaSearch):
    """Kernel classifier whose kernels and C are chosen by exact leave-one-out, with probabilities.

    Successive halving: all kernels on 400 rows, the better ones on `max_search_rows` with a line
    search in C, and of those the `average` best that are within 5 % of the best squared error
    (classes coded +-1, one against the rest) are fitted to all rows and averaged. Every error is
    exact leave-one-out, from one Cholesky factorisation.

    Parameters
    ----------
    gammas : sequence of float, default=(1, 2, 3, 4)
        Values of gamma; 1 (imputation by the column mean) is always tried too.
    Cs : sequence of float, default=None
        Values of C, along which the line search goes. None is half decades from 1e-4 to 1e5.
    indicators : sequence of bool, default=(False, True)
        Kernels without and with the observed-indicator part.
    standardize : bool, default=True
        Centre columns and divide by the standard deviation, over observed entries (weighted). A
        column of one value in all rows is left out; with gaps it stays, and counts as 0 where it is
        observed.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes by label; "balanced" gives all classes the same total weight.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: "absent" is missing, "nan" is zero (and only a stored NaN is
        missing).
    n_jobs : int, default=None
        Threads of the kernel and of the search. None is 1, -1 all processors.
    cv : "loo", "holdout", int, splitter or iterable of splits, default="loo"
        How kernels and C are scored; "holdout" is a quarter of the rows at random, as in [1]_.
        Integers make stratified folds, plain ones where a class has fewer members.
    max_search_rows : int, default=1000
        Rows of the second rung, drawn at random; the winners are fitted to all rows. Above 5,000
        they are fitted through 1,500 rows drawn as landmarks; above 20,000 the best kernel of gamma
        2, or the default one, is fitted as a weight table to 98 % of the rows, and the others
        choose between the two.
    average : int, default=4
        Most kernels that are averaged.
    kernels : {"auto", "karma"}, default="auto"
        "auto" adds to the kernels of KARMA their squares for gamma 1 and 2; all of these on columns
        that are expanded, missing entries stay missing: a Gaussian of every column's values, and
        one indicator a level where a column has at most 8; and Gaussian and Laplace kernels of rows
        filled by column means, beside their masks. "karma" is KARMA's kernels alone.
    random_state : int, RandomState or None, default=None
        Draws the rows of "holdout", folds and the subsample, and orders those of "primal". None is
        a fixed draw.
    verbose : int, default=0
        1 prints what was chosen.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels, sorted.
    selection_ : KernelSelection
        The averaged kernels, fitted to all rows; but
    estimators_ : list of KarmaClassifier
        instead of it above 20,000 rows.
    chosen_ : list of dict
        Kernels and their C, best first.
    best_params_ : dict
        Kernel and C of the best.
    best_score_ : float
        Its negative mean squared error of the targets +-1.
    best_index_ : int
        Its place in `cv_results_`.
    zero_imputation_score_ : float
        Best score of gamma=1 without indicators, the kernel of 0-imputation, in the second rung.
    cv_results_ : dict of arrays
        As scikit-learn's searches: params, param_*, split*_test_score, mean_, std_ and
        rank_test_score; with rung and n_rows of a trial.
    calibration_ : ndarray of shape (2,) or (k + 1,)
        a and b of `predict_proba`.
    n_iter_ : int
        Iterations of the final model; 1 in closed form.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        As `KarmaClassifier`; or cv leaves no split.

    Notes
    -----
    2 n^3 / 3 flops a factorisation: two or three of 400 rows for each of some 80 kernels, about
    four of 1,000 for each of ten, one of all rows for each kernel that is averaged. `sample_weight`
    means repetition, but leave-one-out leaves a row out with its whole weight.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaClassifierCV
    >>> X = np.array(
    ...     [[2.0, np.nan], [1.5, 1.0], [1.0, 2.0], [-1.0, np.nan], [np.nan, -2.0], [-1.5, -1.0]]
    ... )
    >>> model = KarmaClassifierCV().fit(X, ["yes", "yes", "yes", "no", "no", "no"])
    >>> model.predict([[np.nan, 3.0], [-2.0, np.nan]])
    array(['yes', 'no'], dtype='<U3')
    >>> bool(model.predict_proba([[3.0, 3.0]])[0, 1] > 0.5)
    True
    """

    _schema: ClassVar[dict[str, Rule]] = {**KarmaSearch._schema, "classes_": LABELS}
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KarmaSearch._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        gammas: Sequence[float] = (1, 2, 3, 4),
        *,
        Cs: Sequence[float] | None = None,
        indicators: Sequence[bool] = (False, True),
        standardize: bool = True,
        class_weight: Any = None,
        cv: Any = "loo",
        max_search_rows: int = 1000,
        average: int = 4,
        kernels: Literal["auto", "karma"] = "auto",
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.gammas = gammas
        self.Cs = Cs
        self.indicators = indicators
        self.standardize = standardize
        self.class_weight = class_weight
        self.cv = cv
        self.max_search_rows = max_search_rows
        self.average = average
        self.kernels = kernels
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> KarmaClassifierCV:
        """Search, then fit the best kernels to all rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : array-like of shape (n,)
            Labels: numbers or strings.
        sample_weight : array-like of shape (n,), default=None
            Repetitions of the rows, >= 0.

        Returns
        -------
        self : KarmaClassifierCV
        """
        table, labels = validate_X_y(self, X, y, sparse_missing=self.sparse_missing)
        check_classes(labels)
        rows_present, target, weight, index = weighted_rows(sample_weight, table, labels)
        self.classes_, y_encoded = np.unique(target, return_inverse=True)
        balance = class_weights(self.class_weight, self.classes_, y_encoded, weight)
        # A row of weight 0 may have a label of its own: it is given any code and takes part in nothing.
        all_codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        splits = make_splits(self.cv, labels, all_codes, index, self.random_state)
        targets = one_vs_rest(y_encoded, len(self.classes_))
        values, rows = self._search(rows_present, target, targets, weight, weight * balance, splits, y_encoded)
        if len(self.classes_) > 1:
            self.calibration_ = fit_calibration(values, y_encoded[rows], (weight * balance)[rows])
        return self

    def _loss_of(self, values: Floats, targets: Floats, y: NDArray[Any], weight: Floats) -> float:
        """Log loss of the probabilities that values give after their calibration, two numbers on thousands of rows."""
        y_encoded = np.searchsorted(self.classes_, y)
        shares = probabilities(values, fit_calibration(values, y_encoded, weight))
        return -float(weight @ np.log(np.maximum(shares[np.arange(len(y_encoded)), y_encoded], 1e-12)))

    def _model(self, trial: Trial) -> KarmaClassifier:
        return KarmaClassifier(class_weight=self.class_weight, **self._model_params(trial))

    def _fitted(self, model: KarmaClassifier, X: Observed, y: NDArray[Any], weight: Floats) -> KarmaClassifier:
        return model._fit(X, y, weight, searched=True)  # the search calibrates its values

    def _values_of(self, model: Any, X: Observed) -> Floats:
        values: Floats = model.decision_function(X).reshape(X.shape[0], -1)
        return values

    def _decided(self, values: Floats) -> Floats:
        """Logits, e^a F + b; without `calibration_` (one class) the values F."""
        return scaled(values, self.calibration_) if "calibration_" in vars(self) else values


@whole_answers
class KarmaRegressorCV(KarmaNumbers, KarmaSearch):
    """Kernel regressor whose kernels and C are chosen by exact leave-one-out.

    Successive halving: all kernels on 400 rows, the better ones on `max_search_rows` with a line
    search in C, and of those the `average` best that are within 5 % of the best squared error are
    fitted to all rows and averaged. Every error is exact leave-one-out, from one Cholesky
    factorisation.

    Parameters
    ----------
    gammas : sequence of float, default=(1, 2, 3, 4)
        Values of gamma; 1 (imputation by the column mean) is always tried too.
    Cs : sequence of float, default=None
        Values of C, along which the line search goes. None is half decades from 1e-4 to 1e5.
    indicators : sequence of bool, default=(False, True)
        Kernels without and with the observed-indicator part.
    standardize : bool, default=True
        Centre columns and divide by the standard deviation, over observed entries (weighted). A
        column of one value in all rows is left out; with gaps it stays, and counts as 0 where it is
        observed.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: "absent" is missing, "nan" is zero (and only a stored NaN is
        missing).
    n_jobs : int, default=None
        Threads of the kernel and of the search. None is 1, -1 all processors.
    cv : "loo", "holdout", int, splitter or iterable of splits, default="loo"
        How kernels and C are scored; "holdout" is a quarter of the rows at random, as in [1]_.
    max_search_rows : int, default=1000
        Rows of the second rung, drawn at random; the winners are fitted to all rows. Above 5,000
        they are fitted through 1,500 rows drawn as landmarks; above 20,000 the best kernel of gamma
        2, or the default one, is fitted as a weight table to 98 % of the rows, and the others
        choose between the two.
    average : int, default=4
        Most kernels that are averaged.
    kernels : {"auto", "karma"}, default="auto"
        "auto" adds to the kernels of KARMA their squares for gamma 1 and 2; all of these on columns
        that are expanded, missing entries stay missing: a Gaussian of every column's values, and
        one indicator a level where a column has at most 8; and Gaussian and Laplace kernels of rows
        filled by column means, beside their masks. "karma" is KARMA's kernels alone.
    random_state : int, RandomState or None, default=None
        Draws the rows of "holdout", folds and the subsample, and orders those of "primal". None is
        a fixed draw.
    verbose : int, default=0
        1 prints what was chosen.

    Attributes
    ----------
    selection_ : KernelSelection
        The averaged kernels, fitted to all rows; but
    estimators_ : list of KarmaRegressor
        instead of it above 20,000 rows.
    chosen_ : list of dict
        Kernels and their C, best first.
    best_params_ : dict
        Kernel and C of the best.
    best_score_ : float
        Its negative mean squared error, in squared units of y.
    best_index_ : int
        Its place in `cv_results_`.
    zero_imputation_score_ : float
        Best score of gamma=1 without indicators, the kernel of 0-imputation, in the second rung.
    cv_results_ : dict of arrays
        As scikit-learn's searches: params, param_*, split*_test_score, mean_, std_ and
        rank_test_score; with rung and n_rows of a trial.
    intercept_ : float or ndarray of shape (t,)
        Mean of y.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        As `KarmaRegressor`; or cv leaves no split.

    Notes
    -----
    2 n^3 / 3 flops a factorisation: two or three of 400 rows for each of some 80 kernels, about
    four of 1,000 for each of ten, one of all rows for each kernel that is averaged. `sample_weight`
    means repetition, but leave-one-out leaves a row out with its whole weight.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaRegressorCV
    >>> X = np.array(
    ...     [[2.0, np.nan], [1.0, 1.0], [-1.0, -1.0], [np.nan, -2.0], [1.5, 1.5], [np.nan, -0.5]]
    ... )
    >>> model = KarmaRegressorCV().fit(X, [4.0, 2.0, -2.0, -4.0, 3.0, -1.0])
    >>> bool(model.predict([[2.0, 2.0]])[0] > 1)
    True
    """

    def __init__(
        self,
        gammas: Sequence[float] = (1, 2, 3, 4),
        *,
        Cs: Sequence[float] | None = None,
        indicators: Sequence[bool] = (False, True),
        standardize: bool = True,
        cv: Any = "loo",
        max_search_rows: int = 1000,
        average: int = 4,
        kernels: Literal["auto", "karma"] = "auto",
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.gammas = gammas
        self.Cs = Cs
        self.indicators = indicators
        self.standardize = standardize
        self.cv = cv
        self.max_search_rows = max_search_rows
        self.average = average
        self.kernels = kernels
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> KarmaRegressorCV:
        """Search, then fit the best kernels to all rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : array-like of shape (n,) or (n, t)
            Targets.
        sample_weight : array-like of shape (n,), default=None
            Repetitions of the rows, >= 0.

        Returns
        -------
        self : KarmaRegressorCV
        """
        table, target = validate_X_y(self, X, y, sparse_missing=self.sparse_missing, y_numeric=True, multi_output=True)
        rows, present_target, weight, index = weighted_rows(sample_weight, table, target.astype(np.float64))
        self.intercept_ = np.average(present_target, axis=0, weights=weight)
        splits = make_splits(self.cv, target, None, index, self.random_state)
        self._search(
            rows,
            present_target,
            (present_target - self.intercept_).reshape(len(present_target), -1),
            weight,
            weight,
            splits,
        )
        return self

    def _loss_of(self, values: Floats, targets: Floats, y: NDArray[Any], weight: Floats) -> float:
        return float(weight @ np.square(values - targets).mean(axis=1))

    def _model(self, trial: Trial) -> KarmaRegressor:
        return KarmaRegressor(**self._model_params(trial))

    def _fitted(self, model: KarmaRegressor, X: Observed, y: NDArray[Any], weight: Floats) -> KarmaRegressor:
        return model._fit(X, y, weight, searched=True)

    def _values_of(self, model: Any, X: Observed) -> Floats:
        values: Floats = model.predict(X).reshape(X.shape[0], -1) - self.intercept_
        return values
