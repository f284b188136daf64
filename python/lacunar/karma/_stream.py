"""Streams: partial_fit, one-pass fits from batches, progressive validation, and dicts one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from lacunar._random import fixed_seed, generator
from lacunar._snapshot import SavePoint
from lacunar._threads import thread_count
from lacunar.karma._engine import EngineFits
from lacunar.karma._kernel_form import fit_form
from lacunar.karma._loss_values import loss_values
from lacunar.karma._map import has_map
from lacunar.karma._primal import PrimalModel
from lacunar.karma._weights import row_weights
from lacunar.observed import Observed
from lacunar.observed.batches import labelled, one_pass
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns

_Floats = NDArray[np.float64]


def can_stream(estimator: Any) -> bool:
    """Whether these options have a stream; else the AttributeError that says which do."""
    reason = None
    if estimator.solver == "gram":
        reason = "solver='auto', 'primal' or 'online'; got solver='gram', which needs all rows at once"
    elif estimator.loss == "crammer_singer":
        reason = "a loss other than 'crammer_singer', such as 'hinge', which takes one class against the rest"
    elif isinstance(getattr(estimator, "class_weight", None), str):
        reason = "class_weight None or a dict by label; got 'balanced', which needs all rows at once"
    if reason is not None:
        raise AttributeError(f"partial_fit, fit_batches and score_stream must have {reason}. Set it, or call fit.")
    return True


class StreamScore(NamedTuple):
    """Progressive validation: every row predicted before it was learned.

    Attributes
    ----------
    n_rows : int
    mistakes : int or None
        Rows whose label was predicted wrongly; None for regressors.
    loss : float
        Mean over rows of the loss, summed over outputs.
    regret : float or None
        `loss` minus that of the best batch solution on the same rows, in hindsight; None unless asked for.
    values : ndarray of shape (n, outputs)
        Decision values before each row's own step.
    """

    n_rows: int
    mistakes: int | None
    loss: float
    regret: float | None
    values: _Floats


class StreamFits(EngineFits):
    """What subclasses add: `_first_targets`, `_targets`, `_count_mistakes`."""

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> tuple[Observed, _Floats, _Floats]:
        """One batch: its standardised rows, targets (n, outputs) and values before the steps."""
        point = SavePoint(self)
        try:
            self._validate_params()
            begun = hasattr(self, "kernel_")
            from_gram = begun and not hasattr(self, "state_")
            if from_gram and self._fit_loss() != self._own_loss():
                raise ValueError(
                    f"partial_fit must go on with the loss of fit, which was {self._fit_loss()!r} and has no steps. Fit with "
                    "solver='online', or start from a clone."
                )
            table, target = self._read_batch(X, y, reset=not begun)
            weight = row_weights(sample_weight, table)
            targets = self._targets(target) if begun else self._first_targets(target, classes, weight)
            if begun and classes is not None:
                self._check_same_classes(classes)
            if not begun:
                self._begin(table, weight, targets.shape[1])
            weight = weight * self._balance(target)
            rows = scale_columns(table, self._columns())
            engine = self._begin_at_gram() if from_gram else self._live_engine()
            point.keeps_interrupted = True
            try:
                with engine.undone(rows):
                    values = engine.partial_fit(rows, targets, weight, n_threads=thread_count(self.n_jobs), undo=False)
                    self._adopt_engine(engine)
            except KeyboardInterrupt:
                self._adopt_engine(engine)  # with the rows that it has learned whole
                raise
            return rows, targets, values
        except BaseException as error:
            point.undo(error)
            raise

    def _read_batch(self, X: Any, y: Any, *, reset: bool) -> tuple[Observed, NDArray[Any]]:
        raise NotImplementedError

    def _first_targets(self, target: NDArray[Any], classes: Any, weight: _Floats) -> _Floats:
        raise NotImplementedError

    def _targets(self, target: NDArray[Any]) -> _Floats:
        raise NotImplementedError

    def _balance(self, target: NDArray[Any]) -> Any:
        return 1.0

    def _check_same_classes(self, classes: Any) -> None:
        raise NotImplementedError

    def _count_mistakes(self, values: _Floats, targets: _Floats) -> int | None:
        return None

    def _columns(self) -> ColumnScale:
        return ColumnScale(self.center_, self.scale_, self.observed_columns_)

    def _begin(self, table: Observed, weight: _Floats, n_outputs: int) -> None:
        """Columns, kernel and an empty engine from the first batch."""
        columns = fit_columns(table, weight, standardize=self.standardize)
        self.center_, self.scale_, seen = columns
        self.observed_columns_ = np.ones_like(seen)  # later batches may observe what this one does not
        self.kernel_ = fit_form(scale_columns(table, self._columns()), weight, self._kernel_options())
        self.solver_ = self._stream_solver()
        dtype = self._own_dtype(exact=False)
        self._adopt_engine(
            self._make_engine(self.solver_, n_outputs, self._stream_rho(), dtype, iterate=self._own_iterate())
        )

    # -- public ---------------------------------------------------------------------------------------------------

    def _fit_batches(self, batches: Iterable[Any], classes: Any) -> Any:
        """One pass over batches, starting afresh."""

        def learn(numbered: tuple[int, Any]) -> None:
            number, batch = numbered
            X, y, *weight = labelled(batch, most=3)
            self._learn(X, y, classes if number == 1 else None, weight[0] if weight else None)
            if self.verbose:
                print(f"[{self.solver_}] batch {number}: {self.n_rows_seen_} rows", flush=True)

        one_pass(self, enumerate(batches, 1), learn)
        return self

    def _score_stream(self, X: Any, y: Any, classes: Any, sample_weight: Any, regret: bool) -> StreamScore:
        rows, targets, values = self._learn(X, y, classes, sample_weight)
        weight = row_weights(sample_weight, rows)
        loss = self._mean_loss(values, targets, weight)
        gained = loss - self._best_loss(rows, targets, weight) if regret else None
        return StreamScore(len(values), self._count_mistakes(values, targets), loss, gained, values)

    def _mean_loss(self, values: _Floats, targets: _Floats, weight: _Floats) -> float:
        each = loss_values(self._own_loss(), values, targets, getattr(self, "epsilon", 0.1)).sum(axis=1)
        return float(np.average(each, weights=weight))

    def _best_loss(self, rows: Observed, targets: _Floats, weight: _Floats) -> float:
        """Mean loss, on these rows, of the minimiser of rho/2 |v|^2 + their mean loss."""
        if not has_map(self.kernel_):
            raise ValueError(
                f"regret=True must have gamma 1, 2 or 3, where the best batch solution is at hand; got "
                f"gamma={self.gamma:g}. Leave it out, or compare with a fit by solver='gram'."
            )
        best = self._make_engine("primal", targets.shape[1], self._stream_rho(), "float64", iterate="last")
        assert isinstance(best, PrimalModel)
        upper = weight / (self._stream_rho() * len(weight))
        rng = generator(fixed_seed(self.random_state))
        best.ascend(rows, targets, upper, tol=self.tol, max_iter=self.max_iter, rng=rng)
        return self._mean_loss(best.decide(rows), targets, weight)

    def learn_one(self, x: Mapping[Any, float], y: Any) -> Any:
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

    def predict_one(self, x: Mapping[Any, float]) -> Any:
        """Prediction for one row given as a dict; see `learn_one`.

        Parameters
        ----------
        x : mapping of column name or number to value
            Columns that are left out are missing.

        Returns
        -------
        prediction : label or float
        """
        return self.predict(self._row_of(x))[0]  # type: ignore[attr-defined]

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
            if value is not None and not isinstance(value, Real):
                raise ValueError(f"x[{name!r}] must be a number or None; got {value!r}. Encode it first.")
            if value is not None and value == value:
                entries.append((number[name], float(value)))
        entries.sort()
        columns, values = np.array([e[0] for e in entries], np.int32), np.array([e[1] for e in entries], np.float64)
        return Observed(np.array([0, len(entries)]), columns, values, (1, self.n_features_in_))
