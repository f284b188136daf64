"""What KARMA estimators share: columns, kernel, weights of rows, values at new rows, and the solvers of the batch
learners.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from lacunar._lock import WholeCopies, reads
from lacunar._log import say
from lacunar._products import row_product
from lacunar._random import fixed_seed, generator
from lacunar._threads import thread_count
from lacunar._typing import Floats
from lacunar.karma.calibrate import logistic_probabilities, probabilities
from lacunar.karma.held_out import GAIN, PATH, HeldOut, Reached
from lacunar.karma.losses import has, refuse_loss, solves
from lacunar.karma.solvers import Shape, choose_solver, gram_bytes, warn_if_unfinished
from lacunar.karma.support import OnlineModel
from lacunar.karma.table import AscentResult, PrimalModel, has_map
from lacunar.kernels import KernelForm
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns, scaled_rows
from lacunar.observed.door import FileScoreMixin, TakesMissing, check_sum_of_weights, read_weights
from lacunar.observed.rules import (
    BOUNDED_COLUMNS,
    COUNT,
    LABELS,
    Instance,
    Number,
    ObservedTable,
    Rule,
    Sometimes,
    Word,
    floats,
    whole,
)
from lacunar.observed.stored import over_files

Engine = PrimalModel | OnlineModel

MEMORY = 2**31  # bytes of a Gram with the copy that is factorised, and of a weight table, which is hashed above it
_BLOCK_VALUES = 2**23  # kernel values held at once by predictions: 64 MB
_LEFT_OUT_WEIGHT = 1e-9  # of a row that is left out, in units of its weight
_ROUGH = 10  # times the tolerance, to which the rows without some others are solved
_MANY_ROWS = 20_000  # from which on "auto" stops where rows that are held out say so
_HELD_OUT, _ENOUGH, _MOST_HELD_OUT = 0.02, 300, 20_000  # share of the rows that are left out, and their number
_ENOUGH_TO_STOP = 2000  # of them where they say when to stop
_FINE_TOL = 1e-4  # a float32 table stalls at relative gaps of 1e-6 to 1e-5


def row_weights(sample_weight: ArrayLike | None, X: Observed | Floats) -> Floats:
    """Weights (n,) as float64, refused when negative or all zero."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    cells = read_weights(sample_weight)
    weight: Floats = np.asarray(_check_sample_weight(cells if cells.ndim else cells[()], X, dtype=np.float64))
    negative = np.flatnonzero(weight < 0)
    if negative.size:
        row = int(negative[0])
        raise ValueError(
            f"Negative values in data passed to `sample_weight`: weights must be >= 0; got {weight[row]:g} in row "
            f"{row}. Drop the row or give it weight 0."
        )
    if not weight.any():
        raise ValueError(
            "Sample weights must not all be zero: at least one must be > 0; got zeros only. "
            "Leave sample_weight out to weigh all rows alike."
        )
    check_sum_of_weights(weight)
    return weight


def weighted_rows(
    sample_weight: ArrayLike | None, X: Observed, y: NDArray[Any]
) -> tuple[Observed, NDArray[Any], Floats, NDArray[np.intp]]:
    """Rows of weight > 0 with their targets and weights, and their numbers in X."""
    weight = row_weights(sample_weight, X)
    index = np.flatnonzero(weight)
    if len(index) == len(weight):
        return X, y, weight, index
    return X[index], y[index], weight[index], index


def penalty_unit(loss: str, centred: Floats, weight: Floats) -> float:
    """What multiplies C and divides rho, so that fits do not depend on the unit of the centred targets (n, outputs).

    The standard deviation of the targets, in the quadratic mean over several; 1 where they are constant, and for a loss
    with a closed form, whose fit is linear in y for any C.
    """
    if has(loss, "closed_form"):
        return 1.0
    largest = float(np.abs(centred).max(initial=0.0))
    if largest == 0:
        return 1.0
    return largest * float(np.sqrt(np.average(((centred / largest) ** 2).mean(axis=1), weights=weight)))


def class_weights(class_weight: Any, classes: NDArray[Any], y_encoded: NDArray[np.intp], weight: Floats) -> Floats:
    """Weight of every row's class, shape (n,); "balanced" gives every class the same total (of repeats)."""
    if class_weight is None:
        return np.ones(len(y_encoded))
    if class_weight == "balanced":
        total = np.bincount(y_encoded, weight, minlength=len(classes))
        factors: Floats = total.sum() / (len(classes) * total)
    else:
        factors = np.asarray(
            compute_class_weight(class_weight, classes=classes, y=classes[y_encoded]), dtype=np.float64
        )
    return factors[y_encoded]


def _drawn_places(n: int, y_encoded: NDArray[np.intp] | None, random_state: Any) -> NDArray[Any]:
    """Place (n,) of every row in a random order; with classes, the first rows of the order hold them in about their
    shares.
    """
    rng = generator(fixed_seed(random_state))
    order, places = rng.permutation(n), np.empty(n)
    groups = [order] if y_encoded is None else [order[y_encoded[order] == k] for k in range(int(y_encoded.max()) + 1)]
    for group in groups:
        places[group] = (np.arange(len(group)) + rng.random()) / max(len(group), 1)
    return places


def drawn_order(n: int, y_encoded: NDArray[np.intp] | None, random_state: Any) -> NDArray[np.intp]:
    """Rows in random order; with classes, its first rows hold them in about their shares."""
    return np.argsort(_drawn_places(n, y_encoded, random_state), kind="stable")


def drawn_rows(n: int, count: int, y_encoded: NDArray[np.intp] | None, random_state: Any) -> NDArray[np.intp]:
    """The first `count` rows of `drawn_order`, rising. O(n)."""
    return np.sort(np.argpartition(_drawn_places(n, y_encoded, random_state), count - 1)[:count])


def kernel_options(model: Any) -> dict[str, Any]:
    """Options of `KernelForm.fit` from the parameters of an estimator; without normalisation counts are not divided
    either.
    """
    scale = "raw" if model.normalize is None else "mean"
    return {
        "gamma": float(model.gamma),
        "indicators": float(model.indicators),
        "normalize": model.normalize,
        "count_scale": scale,
    }


class KarmaBase(WholeCopies, TakesMissing):
    """What all KARMA learners share: the columns and the kernel fitted to training rows, and values at new rows from
    `state_` or stored rows.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gamma": [Interval(Real, 1, None, closed="left")],
        "indicators": ["boolean"],
        "normalize": [StrOptions({"trace", "cosine"}), None],
        "standardize": ["boolean"],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _schema: ClassVar[dict[str, Rule]] = {
        **BOUNDED_COLUMNS,
        "classes_": Sometimes(LABELS),
        "kernel_": Instance(KernelForm),
        "n_iter_": COUNT,
        "n_rows_seen_": COUNT,
    }

    def _kernel_options(self) -> dict[str, Any]:
        """Keyword arguments of `KernelForm.fit` from the parameters."""
        return kernel_options(self)

    def _columns(self) -> ColumnScale:
        return ColumnScale(self.mean_, self.scale_, self.observed_columns_, self.reach_)

    def _fit_kernel(self, X: Observed, weight: Floats, *, later: bool = False) -> Observed:
        """Learn columns and kernel from rows of weight > 0; the rows standardised. O(nnz).

        Columns that these rows never observe are ignored for ever, unless rows that come `later` may observe them.
        """
        columns = fit_columns(X, weight, standardize=self.standardize, later=later, n_jobs=self.n_jobs)
        self.mean_, self.scale_, seen, self.reach_ = columns
        self.observed_columns_ = np.ones_like(seen) if later else seen
        rows = scale_columns(X, self._columns(), n_jobs=self.n_jobs)
        self.kernel_ = KernelForm.fit(rows, weight=weight, constant=1.0, **self._kernel_options())
        return rows

    def _store(self, engine: Engine) -> None:
        """Store an engine, its state and its number of rows in the attributes."""
        self.state_ = engine.state()
        self.n_rows_seen_ = engine.t
        self._engine = engine

    def _live_engine(self) -> Engine:
        """The engine at work, or a new one from `state_` after loading."""
        engine: Engine | None = self.__dict__.get("_engine")
        if engine is None:
            state = self.state_
            if state.get("n_features") != len(self.mean_) or state.get("form") != self.kernel_:
                raise ValueError("state_ is of another table or kernel than mean_ and kernel_; fit the model again.")
            engine = (PrimalModel if self.solver_ == "primal" else OnlineModel).from_state(state)
        return engine

    def _evaluate(self, X: Any) -> Floats:
        """Values (m, outputs) at rows X."""
        check_is_fitted(self)
        return self._expansion(scaled_rows(self, X, self._columns(), sparse_missing=self.sparse_missing))

    def _expansion(self, rows: Observed) -> Floats:
        """Values (m, outputs) at standardised rows."""
        return self._live_engine().decide(rows, n_threads=thread_count(self.n_jobs))

    def _check_loaded(self) -> None:
        """Refuse a loaded model whose state or coefficients have another number of outputs than it has classes or
        targets.
        """
        if "kernel_" not in vars(self):
            return
        outputs = self._n_outputs()
        if "state_" in vars(self) and self._live_engine().n_outputs != outputs:
            raise ValueError(f"state_ must have {outputs} outputs; got {self._live_engine().n_outputs}. Fit again")
        if "dual_coef_" in vars(self) and self.dual_coef_.shape[1] != outputs:
            raise ValueError(f"dual_coef_ must have {outputs} outputs; got {self.dual_coef_.shape[1]}. Fit again")

    @reads
    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_engine"}


class KarmaBatch(KarmaBase):
    """What the batch learners share: fits to all rows at once, over their Gram or by dual coordinate ascent on a weight
    table.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KarmaBase._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions({"auto", "gram", "primal"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    _schema: ClassVar[dict[str, Rule]] = {
        **KarmaBase._schema,
        "solver_": Word(("gram", "primal")),
        "support_": Sometimes(whole("s", distinct=True)),
        "support_rows_": Sometimes(ObservedTable(("s", "d"))),
        "dual_coef_": Sometimes(floats("s", "o")),
        "gap_": Sometimes(Number()),
    }

    def _choose_solver(self, X: Observed, n_outputs: int) -> str:
        """The solver of `fit`, refused where the kernel or the loss does not have it."""
        solver = str(self.solver)
        if solver == "auto" and not (solves("gram", self.loss) and solves("primal", self.loss)):
            solver = next((name for name in ("gram", "primal") if solves(name, self.loss)), "auto")
        elif solver == "auto":
            shape = Shape(*X.shape, X.nnz / max(X.shape[0], 1), n_outputs, has(self.loss, "closed_form"))
            solver = choose_solver(self.kernel_, shape, MEMORY)
            if solver == "gram" and gram_bytes(X.shape[0]) > MEMORY:
                raise ValueError(
                    f"solver='auto' must hold the Gram of {X.shape[0]} rows, {gram_bytes(X.shape[0]):.3g} bytes, in "
                    f"{MEMORY:.3g} bytes, since gamma={self.gamma:g} has no weight table. Use gamma 1, 2 or 3, "
                    f"{self._online}, or solver='gram' where memory allows."
                )
        self._refuse_solver(solver)
        return solver

    def _refuse_solver(self, solver: str) -> None:
        refuse_loss(solver, self.loss, self._online)
        if solver == "primal" and not has_map(self.kernel_):
            gram = "solver='gram' (to some ten thousand rows), " if solves("gram", self.loss) else ""
            raise ValueError(
                f"solver='primal' must have gamma 1, 2 or 3, whose features fit in a table; got gamma={self.gamma:g}. "
                f"Use {gram}{self._online} (any number), or gamma=3."
            )

    def _solves_exactly(self, n_rows: int) -> bool:
        """Whether "primal" goes to the minimum: for few rows, and where it is asked for by name."""
        return self.solver != "auto" or n_rows < _MANY_ROWS

    def _n_held_out(self, n_rows: int) -> int:
        """Number of rows of a weight table, of so many, that are left out of a fit."""
        least = min(_ENOUGH, n_rows / 5) if self._solves_exactly(n_rows) else _ENOUGH_TO_STOP
        return int(np.clip(_HELD_OUT * n_rows, least, _MOST_HELD_OUT)) or 1

    def _forget(self) -> None:
        """Drop what an earlier fit by another solver learned."""
        names = ("state_", "_engine", "gap_", "support_", "support_rows_", "dual_coef_", "n_support_", "calibration_")
        for name in names:
            self.__dict__.pop(name, None)

    def _gram(self, rows: Observed) -> NDArray[Any]:
        """Gram (n, n). MemoryError that names other solvers where memory does not hold it."""
        try:
            return self.kernel_.gram(rows, dtype=rows.dtype, n_jobs=self.n_jobs)
        except MemoryError as error:
            raise MemoryError(
                f"solver='gram' must hold {gram_bytes(rows.shape[0]):.3g} bytes for {rows.shape[0]} rows, and memory "
                f"does not. Use solver='primal' (gamma 1, 2 or 3) or {self._online}."
            ) from error

    def _keep_rows(self, rows: Observed, coef: Floats, index: NDArray[np.intp]) -> None:
        """Store the rows with a coefficient that is not zero; index numbers them among the rows given to fit."""
        used = np.flatnonzero(np.any(coef != 0, axis=1))
        self.support_, self.n_rows_seen_ = index[used], len(index)
        self.support_rows_ = rows if len(used) == len(coef) else rows[used]
        self.dual_coef_ = coef[used]

    def _ascend(
        self,
        rows: Observed,
        targets: Floats,
        weight: Floats,
        left_out: NDArray[np.intp] | None = None,
        unit: float = 1.0,
        exact: bool = True,
    ) -> Floats | None:
        """Dual coordinate ascent on the weight table, with C in this unit; what comes back are values of the rows
        `left_out` without them.

        To the minimum where `exact`, else along the path of `HeldOut`, which these rows end.
        """

        def report(sweep: int, gap: float) -> None:
            say(self.verbose, "[primal] sweep %d: duality gap met %.3g", sweep, gap)

        fine = exact and (self.loss == "squared" or self.tol < _FINE_TOL)
        engine = PrimalModel(
            self.kernel_,
            len(self.mean_),
            targets.shape[1],
            loss=self.loss,
            rho=1 / (self.C * unit * len(targets)),
            epsilon=getattr(self, "epsilon", 0.1),
            iterate="last",
            dtype="float64" if fine else "float32",
            memory_limit=MEMORY,
        )
        options: dict[str, Any] = {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "rng": generator(fixed_seed(self.random_state)),
            "n_threads": thread_count(self.n_jobs),
            "progress": report,
        }
        upper = self.C * unit * weight
        if not exact and left_out is not None:
            return self._ascend_path(engine, rows, targets, upper, left_out, options)
        result = engine.ascend(rows, targets, upper, **options)
        values = None if left_out is None else self._without(engine, rows, targets, weight, left_out, result, options)
        self._store_ascent(engine, result, result.n_iter)
        warn_if_unfinished([result], self.loss, self.tol)
        return values

    def _ascend_path(
        self,
        engine: PrimalModel,
        rows: Observed,
        targets: Floats,
        upper: Floats,
        left_out: NDArray[np.intp],
        options: dict[str, Any],
    ) -> Floats:
        """C grows as long as the rows `left_out` gain by it, and so do the sweeps at the last one; a last sweep has
        these rows too. The weights are the mean of those before and after it: rows visited last weigh less so.
        """
        rows, without = rows.astype(engine.dtype), upper.copy()
        without[left_out] *= _LEFT_OUT_WEIGHT
        options = options | {"diagonal": engine.form.diagonal(rows)}
        held_out = HeldOut(engine, rows[left_out], targets[left_out], upper[left_out], options["n_threads"])
        best, result, n_iter = None, None, 0
        for share, sweeps in PATH.items():
            held_out.begin(sweeps, np.inf if best is None else best.loss)
            result = engine.ascend(
                rows, targets, share * without, before=result, until=held_out, hopeless=held_out.hopeless, **options
            )
            n_iter += result.n_iter
            say(self.verbose, "[primal] %g C: loss of rows held out %.4g", share, held_out.loss)
            reached = Reached(share, held_out.loss, result.coef.copy(), engine.first.copy())
            gained = best is None or reached.loss < (1 - GAIN) * best.loss
            best = reached if best is None or reached.loss < best.loss else best
            if not gained:
                break
        assert best is not None
        engine.go_to(best.table)
        values = engine.decide(rows[left_out], n_threads=options["n_threads"])
        engine.rho /= best.share
        before = AscentResult(best.coef, np.inf, np.empty(0), np.empty(0), 0, False)
        last = engine.ascend(rows, targets, best.share * upper, before=before, until=lambda: True, **options)
        gap = engine.measure_sample(rows, targets, best.share * upper, last.coef).gap
        engine.go_to((best.table + engine.first) / 2)
        self._store_ascent(engine, last._replace(gap=gap), n_iter + 1)
        return values

    def _store_ascent(self, engine: PrimalModel, result: AscentResult, n_iter: int) -> None:
        self._store(engine)
        self.n_iter_, self.gap_ = int(n_iter), float(result.gap)

    def _without(
        self,
        engine: PrimalModel,
        rows: Observed,
        targets: Floats,
        weight: Floats,
        left_out: NDArray[np.intp],
        result: AscentResult,
        options: dict[str, Any],
    ) -> Floats:
        """Values of rows `left_out` under a fit in which they weigh next to nothing, reached from the solution; the
        engine then returns to the solution.
        """
        without, solution = self.C * weight, engine.first.copy()
        without[left_out] *= _LEFT_OUT_WEIGHT
        before = result._replace(coef=result.coef.copy())
        engine.ascend(rows, targets, without, before=before, **options | {"tol": _ROUGH * self.tol, "progress": None})
        values = engine.decide(rows[left_out], n_threads=options["n_threads"])
        engine.go_to(solution)
        return values

    def _expansion(self, rows: Observed) -> Floats:
        if self.solver_ == "primal":
            return super()._expansion(rows)
        values = np.zeros((rows.shape[0], self.dual_coef_.shape[1]))
        if not len(self.dual_coef_):
            return values
        step = max(_BLOCK_VALUES // len(self.dual_coef_), 1)
        dtype = self.support_rows_.dtype
        for start in range(0, len(values), step):
            part = slice(start, start + step)
            block = self.kernel_.gram(rows[part], self.support_rows_, dtype=dtype, n_jobs=self.n_jobs)
            values[part] = row_product(block, self.dual_coef_, self.n_jobs)
        return values


def label_of(values: Floats, classes: NDArray[Any]) -> NDArray[Any]:
    """The label of every row from one value (m,), positive for the second of two classes, or one a class (m, k)."""
    y_encoded = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
    labels: NDArray[Any] = classes[np.minimum(y_encoded, len(classes) - 1)]
    return labels


def _gives_probabilities(estimator: Any) -> bool:
    """Whether values are calibrated, or logits by the loss: not of the model inside a search, whose values the search
    calibrates.
    """
    fitted = "classes_" in vars(estimator)
    return not fitted or len(estimator.classes_) == 1 or estimator._calibrated() or estimator._logistic()


class KarmaLabels(FileScoreMixin, ClassifierMixin):
    """Labels and probabilities of a classifier from the values of `_evaluate`."""

    @reads
    @over_files
    def decision_function(self, X: Any) -> Floats:
        """Values of the classes; for two classes one value, positive for `classes_[1]`.

        Those of `KarmaClassifierCV` are the logits of its `predict_proba`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, d)

        Returns
        -------
        values : ndarray of shape (m,) or (m, k)
        """
        values = self._decided(self._evaluate(X))
        return values[:, 0] if values.shape[1] == 1 else values

    def _decided(self, values: Floats) -> Floats:
        """`decision_function` (m,) or (m, k) from the values (m, outputs)."""
        return values

    @reads
    @over_files
    def predict(self, X: Any) -> NDArray[Any]:
        """Label of every row.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, d)

        Returns
        -------
        labels : ndarray of shape (m,)
        """
        return label_of(self.decision_function(X), self.classes_)

    def _n_outputs(self) -> int:
        """Number of values of a row: one for two classes, else one a class."""
        return len(self.classes_) if len(self.classes_) > 2 else 1

    def _calibrated(self) -> bool:
        """Whether `_calibration` has its attributes."""
        return "calibration_" in vars(self)

    def _calibration(self) -> Floats:
        """Calibration (1 + outputs,): a, then b of every output."""
        calibration: Floats = self.calibration_
        return calibration

    def _logistic(self) -> bool:
        """Whether the values are logits by the loss."""
        return bool(self.loss == "logistic")

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if "calibration_" in vars(self) and len(self.calibration_) != self._n_outputs() + 1:
            raise ValueError(
                f"calibration_ must have {self._n_outputs() + 1} numbers; got {len(self.calibration_)}. Fit again"
            )

    @available_if(reads(_gives_probabilities))
    @reads
    @over_files
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes: softmax(e^a F + b) of the values F, a and b (0 but in a search) fitted to rows
        that were left out.

        A batch learner with `loss="logistic"` gives those of the loss: 1 / (1 + e^-F); for more than two classes one
        against the rest, divided by their sum.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, d)

        Returns
        -------
        probabilities : ndarray of shape (m, k)
            The class that `predict` gives is the likeliest.
        """
        values = self._evaluate(X)
        if len(self.classes_) == 1:
            return np.ones((len(values), 1))
        return probabilities(values, self._calibration()) if self._calibrated() else logistic_probabilities(values)


class KarmaNumbers(FileScoreMixin, RegressorMixin):
    """Predictions of a regressor from the values of `_evaluate`."""

    def _n_outputs(self) -> int:
        """Number of values of a row: one a target."""
        return int(np.size(self.intercept_))

    @reads
    @over_files
    def predict(self, X: Any) -> Floats:
        """Predicted targets.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, d)

        Returns
        -------
        y : ndarray of shape (m,) or (m, t)
        """
        values = self._evaluate(X)
        predicted: Floats = (values[:, 0] if np.ndim(self.intercept_) == 0 else values) + self.intercept_
        return predicted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
