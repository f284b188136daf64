"""`KarmaOnlineClassifier` and `KarmaOnlineRegressor`: Algorithm 1 of Hazan, Livni and Mansour, on tables and streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._lock import WholeRows, changes, reads
from lacunar._log import say
from lacunar._random import fixed_seed, generator
from lacunar._state import all_or_nothing
from lacunar._stream import StreamScore
from lacunar._threads import thread_count
from lacunar._typing import Floats
from lacunar.karma.base import (
    MEMORY,
    Engine,
    KarmaBase,
    KarmaLabels,
    KarmaNumbers,
    penalty_unit,
    row_weights,
    weighted_rows,
)
from lacunar.karma.calibrate import fit_calibration
from lacunar.karma.losses import loss_values, refuse_loss
from lacunar.karma.solvers import one_vs_rest
from lacunar.karma.support import OnlineModel
from lacunar.karma.table import PrimalModel, has_map
from lacunar.observed import Observed
from lacunar.observed.batches import labelled, one_pass
from lacunar.observed.columns import scale_columns
from lacunar.observed.door import check_classes, is_missing, plain_target, validate_X_y
from lacunar.observed.rules import COUNT, LABELS, Anything, OneOrMany, Rule, Sometimes, Word, floats

_STREAM_RHO = 1e-4  # of partial_fit, where the number of rows is not known
_RECENT = 1000  # rows whose values before they were learned calibrate probabilities


class KarmaOnline(KarmaBase):
    """Algorithm 1, over rows or batches. Subclasses read labels: `_read`, `_first_targets`, `_targets`, `_row_factors`."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KarmaBase._parameter_constraints,
        "rho": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "budget": [Interval(Integral, 1, None, closed="left"), None],
    }
    _written: ClassVar[tuple[str, ...]] = ("state_",)
    _schema: ClassVar[dict[str, Rule]] = {
        **KarmaBase._schema,
        "solver_": Word(("primal", "support")),
        "n_iter_": Sometimes(COUNT),
        "state_": Anything(),
    }

    def _choose_solver(self) -> str:
        """The weight table where the kernel has one and no budget asks for rows, else stored rows."""
        return "primal" if has_map(self.kernel_) and self.budget is None else "support"

    def _engine_for(self, solver: str, n_outputs: int, rho: float, **options: Any) -> Engine:
        """A new engine, by name of the solver."""
        refuse_loss("online", self.loss, type(self).__name__)
        loss: dict[str, Any] = {"loss": self.loss, "rho": rho, "epsilon": getattr(self, "epsilon", 0.1)}
        shared = loss | self._step_options() | options
        if solver == "primal":
            return PrimalModel(self.kernel_, len(self.mean_), n_outputs, memory_limit=MEMORY, **shared)
        return OnlineModel(self.kernel_, len(self.mean_), n_outputs, budget=self.budget, **shared)

    def _rho_of(self, usual: float, targets: Floats, weight: Floats) -> float:
        """The rho of a new engine, by the first targets (n, outputs) and their weights."""
        return float(self.rho or usual)

    def _step_options(self) -> dict[str, Any]:
        """Keyword arguments of an engine: step sizes, iterate and precision where they differ from its defaults."""
        return {}

    def _steps(
        self, engine: Engine, rows: Observed, targets: Floats, weight: Floats, order: NDArray[np.intp], values: Floats
    ) -> None:
        """One step for every row, in an order; `values` (n, outputs) gets those of the rows before their own steps."""
        engine.partial_fit(rows, targets, weight, order=order, decisions=values, n_threads=thread_count(self.n_jobs))

    def _order(self, n_rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Row numbers in the order of one pass of `fit`."""
        return rng.permutation(n_rows)

    def _forget(self) -> None:
        """Drop what was learned before, also by another solver."""
        for name in ("state_", "_engine", "n_iter_", "n_rows_seen_", "recent_"):
            self.__dict__.pop(name, None)

    @changes
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit in `max_iter` passes over the rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : array-like of shape (n,), for numbers also (n, t)
            Labels, numbers or strings; or targets.
        sample_weight : array-like of shape (n,), default=None
            Factors of the loss, >= 0; rows of weight 0 take no part.

        Returns
        -------
        self
            After an error or an interrupt the model is as before the call.
        """
        table, target = self._read(X, y, reset=True)
        table, target, weight, _ = weighted_rows(sample_weight, table, target)
        self._forget()
        targets = self._first_targets(target, target, weight)
        rows = self._fit_kernel(table, weight)
        self.solver_ = self._choose_solver()
        rho = self._rho_of(1 / len(targets), targets, weight)
        engine = self._engine_for(self.solver_, targets.shape[1], rho)
        self._pass_over(engine, rows, targets, weight * self._row_factors(target))
        self._store(engine)
        return self

    def _pass_over(self, engine: Engine, rows: Observed, targets: Floats, weight: Floats) -> None:
        rng = generator(fixed_seed(self.random_state))
        for number in range(1, self.max_iter + 1):
            order, values = self._order(len(targets), rng), np.zeros(targets.shape)
            self._steps(engine, rows, targets, weight, order, values)
            if number == 1:
                self._remember(values, targets, weight, order)
            self.n_iter_ = number
            say(self.verbose, "[%s] pass %d: %d rows", self.solver_, number, engine.t)

    @changes
    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> tuple[Observed, Floats, Floats]:
        """One batch: its standardised rows, targets (n, outputs) and values before the steps.

        The first one, which fixes the columns and the kernel, is learned whole or not at all.
        """
        if hasattr(self, "kernel_"):
            return self._learn_more(X, y, classes, sample_weight)
        return self._learn_first(X, y, classes, sample_weight)

    @all_or_nothing
    def _learn_first(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> tuple[Observed, Floats, Floats]:
        self._validate_params()
        table, target = self._read(X, y, reset=True)
        weight = row_weights(sample_weight, table)
        targets = self._first_targets(target, classes, weight)
        self._fit_kernel(table, weight, later=True)
        self.solver_ = self._choose_solver()
        rho = self._rho_of(_STREAM_RHO, targets, weight)
        self._store(self._engine_for(self.solver_, targets.shape[1], rho))
        return self._learn_rows(table, targets, weight * self._row_factors(target))

    def _learn_more(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> tuple[Observed, Floats, Floats]:
        self._validate_params()
        table, target = self._read(X, y, reset=False)
        weight = row_weights(sample_weight, table)
        targets = self._targets(target)
        if classes is not None:
            self._check_same_classes(classes)
        return self._learn_rows(table, targets, weight * self._row_factors(target))

    def _learn_rows(self, table: Observed, targets: Floats, weight: Floats) -> tuple[Observed, Floats, Floats]:
        rows, engine = scale_columns(table, self._columns()), self._live_engine()
        values, before, order = np.zeros(targets.shape), engine.t, np.arange(len(targets))

        recent = {name: value for name, value in vars(self).items() if name == "recent_"}

        def keep() -> None:
            self._store(engine)
            self.__dict__.update(recent)
            self._remember(values, targets, weight, order[: engine.t - before])

        with WholeRows(self, keep):
            self._steps(engine, rows, targets, weight, order, values)
        return rows, targets, values

    def _read(self, X: Any, y: Any, *, reset: bool) -> tuple[Observed, NDArray[Any]]:
        raise NotImplementedError

    def _first_targets(self, target: NDArray[Any], classes: Any, weight: Floats) -> Floats:
        """Fit the classes or the intercept to the first rows; their targets (n, outputs)."""
        raise NotImplementedError

    def _targets(self, target: NDArray[Any]) -> Floats:
        """Targets (n, outputs) of labels or numbers."""
        raise NotImplementedError

    def _row_factors(self, target: NDArray[Any]) -> Any:
        return 1.0

    def _check_same_classes(self, classes: Any) -> None:
        raise NotImplementedError

    def _remember(self, values: Floats, targets: Floats, weight: Floats, order: NDArray[np.intp]) -> None:
        """Keep the values that the last of these rows, learned in an order, had before."""

    def _mistakes(self, values: Floats, targets: Floats) -> int | None:
        return None

    def _fit_batches(self, batches: Iterable[Any], classes: Any) -> Self:
        """One pass over batches, starting afresh."""

        numbers = count(1)

        def learn(model: KarmaOnline, batch: Any) -> None:
            number = next(numbers)
            X, y, *weight = labelled(batch, most=3)
            model._learn(X, y, classes if number == 1 else None, weight[0] if weight else None)
            say(model.verbose, "[%s] batch %d: %d rows", model.solver_, number, model.n_rows_seen_)

        one_pass(self, batches, learn)
        return self

    def _score_stream(self, X: Any, y: Any, classes: Any, sample_weight: Any, regret: bool) -> StreamScore:
        rows, targets, values = self._learn(X, y, classes, sample_weight)
        weight = row_weights(sample_weight, rows)
        loss = self._mean_loss(values, targets, weight)
        gained = loss - self._best_loss(rows, targets, weight) if regret else None
        return StreamScore(len(values), self._mistakes(values, targets), loss, gained, values)

    def _mean_loss(self, values: Floats, targets: Floats, weight: Floats) -> float:
        losses = loss_values(self.loss, values, targets, getattr(self, "epsilon", 0.1)).sum(axis=1)
        return float(np.average(losses, weights=weight))

    def _best_loss(self, rows: Observed, targets: Floats, weight: Floats) -> float:
        """Mean loss, on these rows, of the minimiser of rho/2 |v|^2 + their mean loss."""
        if not has_map(self.kernel_):
            raise ValueError(
                f"regret=True must have gamma 1, 2 or 3, where the best batch solution is at hand; got "
                f"gamma={self.gamma:g}. Leave it out, or compare with a batch learner fitted by solver='gram'."
            )
        refuse_loss("primal", self.loss, type(self).__name__)
        rho = self._live_engine().rho
        best = self._engine_for("primal", targets.shape[1], rho, iterate="last", dtype="float64")
        assert isinstance(best, PrimalModel)
        rng = generator(fixed_seed(self.random_state))
        best.ascend(rows, targets, weight / (rho * len(weight)), tol=1e-3, max_iter=1000, rng=rng)
        return self._mean_loss(best.decide(rows), targets, weight)

    @changes
    def learn_one(self, x: Mapping[Any, float], y: Any) -> Self:
        """Learn one row given as a dict, after a first `partial_fit` or `fit`.

        Parameters
        ----------
        x : dict of column name (or number) to value
            What is not there, None or NaN is missing.
        y : label or number

        Returns
        -------
        self

        Raises
        ------
        NotFittedError
            Before the first batch: one row has no standard deviations to scale columns by.
        ValueError
            A key that is no column, or y missing.
        """
        self._learn(self._row_of(x), np.array([y]), None, None)
        return self

    @reads
    def predict_one(self, x: Mapping[Any, float]) -> Any:
        """Prediction for one row given as a dict, before `learn_one` takes it.

        Parameters
        ----------
        x : mapping of column name or number to value
            Columns that are left out are missing.

        Returns
        -------
        prediction : label or float
        """
        return self.predict(self._row_of(x))[0]

    def _row_of(self, x: Mapping[Any, float]) -> Observed:
        if not hasattr(self, "kernel_"):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: learn_one and predict_one go on from a first batch, "
                "which scales the columns. Call partial_fit on some rows first."
            )
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        number = {name: j for j, name in enumerate(names)}
        entries: list[tuple[int, float]] = []
        for name, value in x.items():
            if name not in number:
                raise ValueError(f"x must have columns of the first batch only; got {name!r}. Drop it, or fit again.")
            if is_missing(value):
                continue
            if not isinstance(value, Real):
                raise ValueError(f"x[{name!r}] must be a number or None; got {value!r}. Encode it first.")
            entries.append((number[name], float(value)))
        entries.sort()
        columns, values = np.array([e[0] for e in entries], np.int32), np.array([e[1] for e in entries], np.float64)
        return Observed(np.array([0, len(entries)]), columns, values, (1, self.n_features_in_))


class KarmaOnlineClassifier(KarmaLabels, KarmaOnline):
    """Classifier by Algorithm 1 of Hazan, Livni and Mansour: one step a row, from tables, batches
    or dicts.

    The kernel is that of `KarmaClassifier`. A row that comes is predicted in time and memory that
    do not grow with the rows seen (on the weight table, gamma 1, 2 or 3) or grow with those stored
    (any gamma, bounded by `budget`).

    Parameters
    ----------
    gamma : float, default=2
        Longest sequence of observed columns the embedding distinguishes, >= 1; 1 to 4 are useful.
    loss : {"hinge", "squared_hinge", "logistic", "squared"}, default="hinge"
        One class against the rest.
    rho : float, default=None
        rho/2 ||v||^2 + mean loss is minimised. None is 1/n in `fit` of n rows and 1e-4 in
        `partial_fit`; C of `KarmaClassifier` is 1 / (rho n).
    max_iter : int, default=1
        Passes of `fit` over the rows.
    budget : int, default=None
        None keeps one weight table for gamma 1, 2 or 3, and for other gamma every row that had a
        slope. A number asks for rows, at most so many: those of least |coef| sqrt(k(x, x)) leave.
        What they were worth adds up in state_["clock"][3], which bounds the change of f(x) /
        sqrt(k(x, x)).
    indicators : bool, default=False
        Whether the kernel also compares which entries are observed.
    normalize : {"trace", "cosine", None}, default="trace"
        Divide the kernel by its mean diagonal over the rows of `fit` or of the first batch, or by
        the norm of both rows; numbers of common columns by the mean number of observed entries of
        those rows. None divides nothing.
    standardize : bool, default=True
        Centre columns and divide by the standard deviation, over observed entries (weighted). A
        column of one value in all rows is left out; with gaps it stays, and counts as 0 where it is
        observed. A stream learns both from its first batch: a column of one value there is divided
        by the size of that value (at least 1), and one that grows along the stream, as time stamps
        do, is better passed as differences.
    class_weight : dict, default=None
        Weights of the classes by label.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: "absent" is missing, "nan" is zero (and only a stored NaN is
        missing).
    random_state : int, RandomState or None, default=None
        Order of the rows in `fit`. None is a fixed one.
    n_jobs : int, default=None
        Threads of learning and of the kernel; no result depends on them. None is 1, -1 all
        processors.
    verbose : int, default=0
        Whether passes and batches are reported.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels, sorted.
    solver_ : {"primal", "support"}
        Whether there is a weight table, or rows are stored.
    state_ : dict
        The weights, from which `partial_fit` goes on.
    recent_ : ndarray of shape (r, outputs + 2)
        Of the last 1,000 rows learned (by `fit` in its first pass): values before they were
        learned, class and weight. They calibrate `predict_proba`.
    n_rows_seen_ : int
        Rows learned from, as often as they were.
    mean_, scale_, observed_columns_ : ndarrays of shape (d,)
        Mean and standard deviation of every column, and whether values in it count; after
        `partial_fit` all do.
    reach_ : ndarray of shape (d,)
        How many standard deviations from its mean an entry counts at most: k - 1 in a column of k <
        30 entries, counted by weight, any number from 30 on and without `standardize`; after a
        first `partial_fit` at least 8, and any number in a column that had no spread.
    kernel_ : KernelForm
        The kernel with its count scale and trace.
    n_iter_ : int
        Passes of `fit`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        Infinite entries, missing or new labels, negative or all-zero weights, other columns than in
        the first call. `DivergedError`, which is a ValueError: values left the finite numbers.

    See Also
    --------
    KarmaClassifier : The exact minimiser on all rows at once.
    lacunar.papers.karma.PrintedKarmaClassifier : Algorithm 1 to the letter.

    Notes
    -----
    Step t has length 1 / (rho t), at most what the curvature of a squared loss allows. Predictions
    are by the mean of the iterates with weights t. A weight scales a step, which is near repetition
    of the row. `score_stream` predicts each row before it learns it. O(o^2) a row of o entries on
    the table of gamma 2, O(stored rows) kernel values on stored rows.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaOnlineClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> model = KarmaOnlineClassifier().partial_fit(X[:200], y[:200], classes=["no", "yes"])
    >>> bool(model.score_stream(X[200:], y[200:]).error < 0.3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KarmaOnline._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge", "logistic", "squared"})],
        "class_weight": [dict, None],
    }
    _schema: ClassVar[dict[str, Rule]] = {
        **KarmaOnline._schema,
        "classes_": LABELS,
        "recent_": floats("recent", "told"),
    }

    def __init__(
        self,
        gamma: float = 2,
        *,
        loss: Literal["hinge", "squared_hinge", "logistic", "squared"] = "hinge",
        rho: float | None = None,
        max_iter: int = 1,
        budget: int | None = None,
        indicators: bool = False,
        normalize: Literal["trace", "cosine"] | None = "trace",
        standardize: bool = True,
        class_weight: dict[Any, float] | None = None,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.gamma = gamma
        self.loss = loss
        self.rho = rho
        self.max_iter = max_iter
        self.budget = budget
        self.indicators = indicators
        self.normalize = normalize
        self.standardize = standardize
        self.class_weight = class_weight
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @changes
    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on with Algorithm 1 on a batch of rows, once each and in order.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : array-like of shape (n,)
        classes : array-like of shape (k,), default=None
            All labels; required in the first call.
        sample_weight : array-like of shape (n,), default=None
            Factors of the loss, >= 0.

        Returns
        -------
        self
            The first batch fixes column scales, count scale and trace, and is learned whole or not
            at all. After an error or an interrupt in a later one its first rows are learned, each
            of them whole: `n_rows_seen_` says how many in all.
        """
        self._learn(X, y, classes, sample_weight)
        return self

    def fit_batches(self, batches: Iterable[Any], *, classes: ArrayLike) -> Self:
        """Fit in one pass over batches; memory is that of the model and one batch.

        Parameters
        ----------
        batches : iterable of (X, y) or (X, y, sample_weight)
            Rows, their answers and weights: what `lacunar.observed.read_batches` yields, or any
            generator.
        classes : array-like of shape (k,)
            All labels.

        Returns
        -------
        self
            After an error, of the iterable too, the model has learned the batches before it, and of
            one that fails what `partial_fit` says; where there is none before it, it is as before
            the call.
        """
        return self._fit_batches(batches, classes)

    @changes
    def score_stream(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        regret: bool = False,
    ) -> StreamScore:
        """`partial_fit`, with the predictions made before each row was learned.

        Parameters
        ----------
        X : table of shape (n, d)
            Rows in the order of the stream; missing entries are NaN, null, or not stored.
        y : array-like of shape (n,)
            Their labels.
        classes : array-like of shape (k,), default=None
            All labels; needed in the first call unless y has them all.
        sample_weight : array-like of shape (n,), default=None
            Weights, >= 0; None is 1.
        regret : bool, default=False
            Also solve the batch problem on these rows (gamma 1, 2 or 3) and compare with its mean
            loss.

        Returns
        -------
        score : StreamScore
            n_rows, mistakes, loss, regret, values.
        """
        return self._score_stream(X, y, classes, sample_weight, regret)

    def _read(self, X: Any, y: Any, *, reset: bool) -> tuple[Observed, NDArray[Any]]:
        table, labels = validate_X_y(self, X, y, reset=reset, sparse_missing=self.sparse_missing)
        check_classes(labels)
        return table, labels

    def _first_targets(self, target: NDArray[Any], classes: Any, weight: Floats) -> Floats:
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit: all labels that may come.")
        self.classes_ = np.unique(np.asarray(plain_target(classes)))
        return self._targets(target)

    def _targets(self, target: NDArray[Any]) -> Floats:
        new = np.flatnonzero(~np.isin(target, self.classes_))
        if len(new):
            raise ValueError(
                f"y must hold the labels of the first call; got {target[new[0]]!r} in row {new[0]}. Name all labels in "
                "classes= of the first partial_fit, or fit again."
            )
        return one_vs_rest(np.searchsorted(self.classes_, target), max(len(self.classes_), 2))

    def _row_factors(self, target: NDArray[Any]) -> Any:
        weight = self.class_weight or {}
        factors = np.array([float(weight.get(label, 1.0)) for label in self.classes_])
        return factors[np.searchsorted(self.classes_, target)]

    def _check_same_classes(self, classes: Any) -> None:
        if not np.array_equal(np.unique(np.asarray(plain_target(classes))), self.classes_):
            raise ValueError(
                f"classes must be those of the first call, {self.classes_}; got {np.unique(np.asarray(plain_target(classes)))}. Leave it out."
            )

    def _remember(self, values: Floats, targets: Floats, weight: Floats, order: NDArray[np.intp]) -> None:
        last = order[-_RECENT:]
        y_encoded = targets[last].argmax(axis=1) if targets.shape[1] > 1 else targets[last, 0] > 0
        calibration_rows = np.column_stack([values[last], y_encoded, weight[last]])
        before = vars(self).get("recent_", calibration_rows[:0])
        self.recent_ = np.concatenate([before, calibration_rows])[-_RECENT:]

    def _calibrated(self) -> bool:
        return "recent_" in vars(self)

    def _calibration(self) -> Floats:
        values, y_encoded, weight = self.recent_[:, :-2], self.recent_[:, -2], self.recent_[:, -1]
        usual = 0.0 if self.loss == "logistic" else None
        return fit_calibration(values, y_encoded.astype(np.intp), weight, usual, shifted=False)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if "recent_" in vars(self):
            outputs = self._n_outputs()
            y_encoded = self.recent_[:, -2] if self.recent_.shape[1] == outputs + 2 else np.array([-1.0])
            if not np.isin(y_encoded, np.arange(max(len(self.classes_), 2))).all():
                raise ValueError(f"recent_ must have {outputs} values, a class and a weight a row. Fit again")

    def _mistakes(self, values: Floats, targets: Floats) -> int:
        if values.shape[1] == 1:
            return int(np.count_nonzero((values > 0) != (targets > 0)))
        return int(np.count_nonzero(values.argmax(axis=1) != targets.argmax(axis=1)))


class KarmaOnlineRegressor(KarmaNumbers, KarmaOnline):
    """Regression by Algorithm 1 of Hazan, Livni and Mansour: one step a row, from tables, batches
    or dicts.

    As `KarmaOnlineClassifier`, for numbers.

    Parameters
    ----------
    gamma : float, default=2
        Longest sequence of observed columns the embedding distinguishes, >= 1; 1 to 4 are useful.
    loss : {"squared", "absolute", "epsilon_insensitive"}, default="squared"
        "epsilon_insensitive" is max(0, |f - y| - epsilon).
    epsilon : float, default=0.1
        In the unit of y, >= 0.
    rho : float, default=None
        rho/2 ||v||^2 + mean loss is minimised. None is 1/n in `fit` of n rows and 1e-4 in
        `partial_fit`; C of `KarmaRegressor` is 1 / (rho n). It is divided by the standard deviation
        of y in `fit` or the first batch (1 where y is constant), except for the squared loss, whose
        fit is linear in y.
    max_iter : int, default=1
        Passes of `fit` over the rows.
    budget : int, default=None
        None keeps one weight table for gamma 1, 2 or 3, and for other gamma every row that had a
        slope. A number asks for rows, at most so many: those of least |coef| sqrt(k(x, x)) leave.
    indicators : bool, default=False
        Whether the kernel also compares which entries are observed.
    normalize : {"trace", "cosine", None}, default="trace"
        Divide the kernel by its mean diagonal over the rows of `fit` or of the first batch, or by
        the norm of both rows; numbers of common columns by the mean number of observed entries of
        those rows. None divides nothing.
    standardize : bool, default=True
        Centre columns and divide by the standard deviation, over observed entries (weighted). A
        column of one value in all rows is left out; with gaps it stays, and counts as 0 where it is
        observed. A stream learns both from its first batch: a column of one value there is divided
        by the size of that value (at least 1), and one that grows along the stream, as time stamps
        do, is better passed as differences.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: "absent" is missing, "nan" is zero (and only a stored NaN is
        missing).
    random_state : int, RandomState or None, default=None
        Order of the rows in `fit`. None is a fixed one.
    n_jobs : int, default=None
        Threads of learning and of the kernel; no result depends on them. None is 1, -1 all
        processors.
    verbose : int, default=0
        Whether passes and batches are reported.

    Attributes
    ----------
    intercept_ : float or ndarray of shape (t,)
        Weighted mean of y in `fit` or the first batch, taken off before the steps and added to
        predictions.
    solver_ : {"primal", "support"}
        Whether there is a weight table, or rows are stored.
    state_ : dict
        The weights, from which `partial_fit` goes on.
    n_rows_seen_ : int
        Rows learned from, as often as they were.
    mean_, scale_, observed_columns_ : ndarrays of shape (d,)
        Mean and standard deviation of every column, and whether values in it count; after
        `partial_fit` all do.
    reach_ : ndarray of shape (d,)
        How many standard deviations from its mean an entry counts at most: k - 1 in a column of k <
        30 entries, counted by weight, any number from 30 on and without `standardize`; after a
        first `partial_fit` at least 8, and any number in a column that had no spread.
    kernel_ : KernelForm
        The kernel with its count scale and trace.
    n_iter_ : int
        Passes of `fit`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        Infinite entries, missing values in y, negative or all-zero weights, other columns or
        outputs than in the first call. `DivergedError`, which is a ValueError: values left the
        finite numbers.

    See Also
    --------
    KarmaRegressor : The exact minimiser on all rows at once.
    lacunar.papers.karma.PrintedKarmaRegressor : Algorithm 1 to the letter.

    Notes
    -----
    Step t has length 1 / (rho t), at most what the curvature of a squared loss allows; a step of
    another loss ends at the latest where the loss of the row is least (a proximal step).
    Predictions are by the mean of the iterates with weights t. A weight scales a step, which is
    near repetition of the row. `score_stream` predicts each row before it learns it. O(o^2) a row
    of o entries on the table of gamma 2, O(stored rows) kernel values on stored rows.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaOnlineRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = 2 * X[:, 0] + 5
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> model = KarmaOnlineRegressor(rho=1e-3).fit_batches([(X[:200], y[:200]), (X[200:], y[200:])])
    >>> model.n_rows_seen_, bool(model.score(X, y) > 0.5)
    (400, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KarmaOnline._parameter_constraints,
        "loss": [StrOptions({"squared", "absolute", "epsilon_insensitive"})],
        "epsilon": [Interval(Real, 0, None, closed="left")],
    }
    _schema: ClassVar[dict[str, Rule]] = {**KarmaOnline._schema, "intercept_": OneOrMany((), "o")}

    def __init__(
        self,
        gamma: float = 2,
        *,
        loss: Literal["squared", "absolute", "epsilon_insensitive"] = "squared",
        epsilon: float = 0.1,
        rho: float | None = None,
        max_iter: int = 1,
        budget: int | None = None,
        indicators: bool = False,
        normalize: Literal["trace", "cosine"] | None = "trace",
        standardize: bool = True,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.gamma = gamma
        self.loss = loss
        self.epsilon = epsilon
        self.rho = rho
        self.max_iter = max_iter
        self.budget = budget
        self.indicators = indicators
        self.normalize = normalize
        self.standardize = standardize
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @changes
    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Go on with Algorithm 1 on a batch of rows, once each and in order.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : array-like of shape (n,) or (n, t)
        sample_weight : array-like of shape (n,), default=None
            Factors of the loss, >= 0.

        Returns
        -------
        self
            The first batch fixes `intercept_`, column scales, count scale and trace, and is learned
            whole or not at all. After an error or an interrupt in a later one its first rows are
            learned, each of them whole: `n_rows_seen_` says how many in all.
        """
        self._learn(X, y, None, sample_weight)
        return self

    def fit_batches(self, batches: Iterable[Any]) -> Self:
        """Fit in one pass over batches; memory is that of the model and one batch.

        Parameters
        ----------
        batches : iterable of (X, y) or (X, y, sample_weight)
            Rows, their answers and weights: what `lacunar.observed.read_batches` yields, or any
            generator.

        Returns
        -------
        self
            After an error, of the iterable too, the model has learned the batches before it, and of
            one that fails what `partial_fit` says; where there is none before it, it is as before
            the call.
        """
        return self._fit_batches(batches, None)

    @changes
    def score_stream(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, regret: bool = False
    ) -> StreamScore:
        """`partial_fit`, with the mean loss of the predictions made before each row was learned.

        Parameters
        ----------
        X : table of shape (n, d)
            Rows in the order of the stream; missing entries are NaN, null, or not stored.
        y : array-like of shape (n,) or (n, t)
            Their targets.
        sample_weight : array-like of shape (n,), default=None
            Weights, >= 0; None is 1.
        regret : bool, default=False
            Also solve the batch problem on these rows (gamma 1, 2 or 3) and compare with its mean
            loss.

        Returns
        -------
        score : StreamScore
            n_rows, mistakes (None), loss, regret, values (without `intercept_`).
        """
        return self._score_stream(X, y, None, sample_weight, regret)

    def _read(self, X: Any, y: Any, *, reset: bool) -> tuple[Observed, NDArray[Any]]:
        options: dict[str, Any] = {"sparse_missing": self.sparse_missing, "y_numeric": True, "multi_output": True}
        table, target = validate_X_y(self, X, y, reset=reset, **options)
        return table, target.astype(np.float64)

    def _rho_of(self, usual: float, targets: Floats, weight: Floats) -> float:
        return super()._rho_of(usual, targets, weight) / penalty_unit(self.loss, targets, weight)

    def _first_targets(self, target: NDArray[Any], classes: Any, weight: Floats) -> Floats:
        self.intercept_ = np.average(target, axis=0, weights=weight)
        return self._targets(target)

    def _targets(self, target: NDArray[Any]) -> Floats:
        if target.shape[1:] != np.shape(self.intercept_):
            raise ValueError(
                f"y must have the outputs of the first batch, {np.shape(self.intercept_)}; got {target.shape[1:]} a row. "
                "Fit again for other targets."
            )
        centred: Floats = (target - self.intercept_).reshape(len(target), -1)
        return centred
