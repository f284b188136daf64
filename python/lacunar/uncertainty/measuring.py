"""`value_of_measuring`: what each missing entry of new rows would tell about the target, by a shrunk model of other
rows; `MeasuringLoop`: buying by it.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from lacunar._answers import NamedArray
from lacunar._lock import WholeCopies, changes
from lacunar._random import fixed_seed, generator
from lacunar._typing import Floats
from lacunar.lowrank import GaussianRegressor
from lacunar.lowrank.gaussian import check_prices
from lacunar.observed import Observed
from lacunar.observed.door import read_answers, read_target, validate_X
from lacunar.uncertainty.class_gaussians import ClassGaussians
from lacunar.uncertainty.masks import as_frame_of, as_numbers, encoder_of

_MANY = 20  # different whole numbers, more than which are no classes
_SHRINKAGE, _FEWEST_ADDED = 0.15, 0.4  # of the covariance: a share of the rows, and rows


def value_of_measuring(
    X: Any, y: Any, rows: Any, *, cost: Any = None, n: int = 1, n_bags: int = 1, random_state: Any = None
) -> Floats:
    """What a missing entry of a row is expected to tell about the target, if it were measured.

    Of numbers the fall of their variance, by `GaussianRegressor.value_of_measuring` of a model
    whose covariance is shrunk by 15 % of the rows, since an unshrunk one overrates entries below
    some hundred rows. Of classes the mutual information of class and entry, where the rows of every
    class are a Gaussian. Of several models, `n_bags`, each of a sample of the rows with
    replacement, the mean.

    Parameters
    ----------
    X : array-like with NaN, frame or Observed, shape (n_rows, d)
        Rows to learn from.
    y : array-like of shape (n_rows,) or (n_rows, targets)
        Numbers, or classes: text, truth values, at most 20 different whole numbers that are not
        floats.
    rows : array-like with NaN, frame or Observed, shape (m, d)
        Rows of which something is to be measured.
    cost : array-like of shape (d,), optional
        Above 0: values are divided by it.
    n : int, default=1
        Entries to buy for a row, by a greedy plan: see `GaussianRegressor.value_of_measuring`.
    n_bags : int, default=1
        1 takes the rows themselves.
    random_state : int, RandomState or None, default=None
        Draws the samples. None is a fixed draw.

    Returns
    -------
    value : ndarray of shape (m, d)
        Prints with the names of the columns, and has `to_frame`; of a frame with text the columns
        are those that `TableEncoder` makes of it, and so are those of `cost`. 0 where the entry is
        known. In squared units of y, for several targets in shares of their variances, and for
        classes in nats.

    Raises
    ------
    ValueError
        If `n` or `n_bags` is below 1, or a table or target is not as above.

    See Also
    --------
    lacunar.lowrank.GaussianRegressor : One model of numbers, and its exact value.
    MeasuringLoop.from_rows : Buys by these values.

    Notes
    -----
    The class c of a row that shows x_o has the chance p(c | x_o), and a missing entry x_j the mean
    and variance that the Gaussian of class c gives it: the value is I(c; x_j | x_o) = E log p(x_j |
    c, x_o) / p(x_j | x_o). Classes share one covariance, or have covariances of their own that are
    shrunk to it: rows that are left out, with further entries hidden, choose by their log loss.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.uncertainty import value_of_measuring
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = X @ [3.0, 1.0, 0.0]
    >>> value_of_measuring(X, y, [[np.nan, np.nan, 1.0]]).round()
    array([[7., 1., 0.]])
    """
    for name, number in (("n", n), ("n_bags", n_bags)):
        if not isinstance(number, Integral) or number < 1:
            raise ValueError(f"{name} must be a whole number of at least 1; got {number!r}. Pass 1.")
    encoder = encoder_of(X)
    table, candidates = as_numbers(X, encoder), as_numbers(rows, encoder)
    target = _target(y)
    check_consistent_length(table, target.values)
    rng, n_rows = generator(fixed_seed(random_state)), len(table)
    total = 0.0
    for _ in range(int(n_bags)):
        drawn = rng.integers(n_rows, size=n_rows) if n_bags > 1 else np.arange(n_rows)
        total = total + target.model(table, drawn).value_of_measuring(candidates, cost=cost, n=n)
    names = [f"x{j}" for j in range(table.shape[1])] if encoder is None else encoder.get_feature_names_out()
    return NamedArray(np.asarray(total) / n_bags, names)


class MeasuredTarget(NamedTuple):
    """Numbers (n,) or (n, targets), or the numbers (n,) of classes."""

    values: NDArray[Any]
    of_classes: bool

    def model(self, table: Floats, rows: NDArray[np.intp]) -> Any:
        """A model of some rows that values what is to be measured."""
        if self.of_classes:
            labels = np.unique(self.values[rows], return_inverse=True)[1]
            return ClassGaussians().fit(Observed.from_dense(table[rows]), labels.ravel())
        shrinkage = max(_SHRINKAGE * len(rows), _FEWEST_ADDED)
        return GaussianRegressor(shrinkage=shrinkage, tol=1e-3).fit(table[rows], self.values[rows])


def _target(y: Any) -> MeasuredTarget:
    target = read_target(y, multi_output=True).values
    several = target.ndim == 2 and target.shape[1] > 1
    if several or target.dtype.kind == "f" or (target.dtype.kind in "iu" and len(np.unique(target)) > _MANY):
        return MeasuredTarget(read_target(y, y_numeric=True, multi_output=True).values, of_classes=False)
    return MeasuredTarget(np.unique(target, return_inverse=True)[1].ravel(), of_classes=True)


class Measurement(NamedTuple):
    """One entry to measure.

    Attributes
    ----------
    row : int
        Number of the row, as `MeasuringLoop.add` gave it.
    column : int
    cost : float
    """

    row: int
    column: int
    cost: float


class MeasuringLoop(WholeCopies):
    """Buys missing entries of rows one after another, by what they would tell about the target,
    within a budget a row.

    `ask` says which entry of every row to measure next, `tell` takes its value: rows come, wait and
    are answered in any order.

    Parameters
    ----------
    model : fitted model with `value_of_measuring`
        `GaussianRegressor`, `LacunarRegressor` or `LacunarClassifier`. It is not changed.
    budget : float, default=3
        Most that the entries of one row may cost together, > 0.
    cost : array-like of shape (d,), default=None
        Prices of the columns, > 0; None is 1 each. Entries are bought by value over price.
    least_value : float, default=0
        An entry whose value over price is not above it is never bought, >= 0.

    Attributes
    ----------
    rows_ : ndarray of shape (m, d)
        Rows with what has been measured.
    spent_ : ndarray of shape (m,)
        What was paid for each.
    pending_ : dict of int to Measurement
        What was asked for and not told yet, by row.

    Raises
    ------
    ValueError
        Prices or a budget that are not above 0, rows of other columns than the model's.

    See Also
    --------
    value_of_measuring : The values alone, by a model of training rows.
    lacunar.active.ActivePOPCA : Which attributes of new rows teach the covariance most, without a
        target.

    Notes
    -----
    One call of `value_of_measuring` on the open rows a round. Buying the best entry, and asking
    again once it is known, is greedy: no plan of several entries ahead.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import GaussianRegressor
    >>> from lacunar.uncertainty import MeasuringLoop
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> model = GaussianRegressor().fit(X, X @ [3.0, 2.0, 0.0])
    >>> loop = MeasuringLoop(model, budget=2)
    >>> loop.add([[np.nan, np.nan, np.nan]])
    array([0])
    >>> while requests := loop.ask():
    ...     for request in requests:
    ...         print("measure column", request.column)
    ...         loop.tell(request, 1.0)
    measure column 0
    measure column 1
    >>> loop.rows_
    array([[ 1.,  1., nan]])
    """

    _written: ClassVar[tuple[str, ...]] = ("rows_", "spent_", "pending_", "_refused")

    def __init__(self, model: Any, *, budget: float = 3, cost: Any = None, least_value: float = 0) -> None:
        check_is_fitted(model)
        if not hasattr(model, "value_of_measuring"):
            raise TypeError(
                f"model must have value_of_measuring; got {model!r}. Pass a GaussianRegressor, a LacunarRegressor or a "
                "LacunarClassifier, or begin with MeasuringLoop.from_rows."
            )
        d = int(model.n_features_in_)
        self.cost = check_prices(cost, d)
        numbers = isinstance(budget, Real) and isinstance(least_value, Real)
        if not numbers or not budget > 0 or not least_value >= 0:
            raise ValueError(
                f"budget must be above 0 and least_value at least 0; got {budget!r} and {least_value!r}. Pass what a "
                "row may cost."
            )
        self.model, self.budget, self.least_value = model, float(budget), float(least_value)
        self.rows_, self.spent_ = np.empty((0, d)), np.empty(0)
        self.pending_: dict[int, Measurement] = {}
        self._refused = np.empty((0, d), dtype=bool)

    @classmethod
    def from_rows(cls, X: Any, y: Any, *, budget: float = 3, cost: Any = None, least_value: float = 0) -> Self:
        """A loop that buys by the values of `value_of_measuring(X, y, ...)`: of classes, the entry
        that is to tell most about the class.

        Parameters
        ----------
        X : array-like with NaN, frame or Observed, shape (n, d)
            Rows to learn from: numbers, as the rows to measure are.
        y : array-like of shape (n,) or (n, targets)
            Numbers, or classes: text, truth values, at most 20 different whole numbers that are not
            floats.
        budget : float, default=3
            Most that the entries of one row may cost together, > 0.
        cost : array-like of shape (d,), default=None
            Prices of the columns, > 0; None is 1 each.
        least_value : float, default=0
            An entry whose value over price is not above it is never bought: in squared units of y,
            or in nats.

        Returns
        -------
        loop : MeasuringLoop
        """
        table, target = as_numbers(X, None), _target(y)
        check_consistent_length(table, target.values)
        model = target.model(table, np.arange(len(table)))
        validate_X(model, X, reset=True)  # names of columns
        return cls(model, budget=budget, cost=cost, least_value=least_value)

    @changes
    def add(self, rows: Any) -> NDArray[np.intp]:
        """Take in rows to measure.

        Parameters
        ----------
        rows : array-like with NaN or frame, shape (m, d)
            Numbers.

        Returns
        -------
        numbers : ndarray of int of shape (m,)
            Of the rows, in `rows_`.
        """
        table = validate_X(self.model, rows, reset=False).to_dense().astype(np.float64)
        first = len(self.rows_)
        self.rows_ = np.vstack([self.rows_, table])
        self.spent_ = np.append(self.spent_, np.zeros(len(table)))
        self._refused = np.vstack([self._refused, np.zeros(table.shape, dtype=bool)])
        return np.arange(first, len(self.rows_))

    @changes
    def ask(self) -> list[Measurement]:
        """The best affordable entry of every row that is not waiting for an answer.

        Returns
        -------
        requests : list of Measurement
            Empty when nothing is left to buy, or all of it is pending.
        """
        waiting = np.setdiff1d(np.arange(len(self.rows_)), list(self.pending_))
        budget_left = np.maximum(self.budget - self.spent_[waiting], 0) * (1 + 1e-12)
        possible = np.isnan(self.rows_[waiting]) & ~self._refused[waiting] & (self.cost <= budget_left[:, None])
        open_rows = possible.any(axis=1)
        if not open_rows.any():
            return []
        waiting, possible = waiting[open_rows], possible[open_rows]
        rows, names = self.rows_[waiting], getattr(self.model, "feature_names_in_", None)
        rows = rows if names is None else as_frame_of(rows, names)
        values = np.where(possible, self.model.value_of_measuring(rows, cost=self.cost), -np.inf)
        best = values.argmax(axis=1)
        worth = values[np.arange(len(best)), best] > self.least_value
        requests = [
            Measurement(int(row), int(column), float(self.cost[column]))
            for row, column in zip(waiting[worth], best[worth], strict=True)
        ]
        self.pending_.update({request.row: request for request in requests})
        return requests

    @changes
    def tell(self, request: Measurement | int, value: float) -> None:
        """Answer a request.

        Parameters
        ----------
        request : Measurement or int
            What `ask` gave, or its row.
        value : float
            NaN where it could not be measured: then it costs nothing and is not asked for again.

        Raises
        ------
        ValueError
            For a row that waits for no answer, another column than the one asked for, an infinite
            value; nothing has changed.
        """
        row = request.row if isinstance(request, Measurement) else request
        pending = self.pending_.get(int(row)) if isinstance(row, Integral) and not isinstance(row, bool) else None
        if pending is None or (isinstance(request, Measurement) and request != pending):
            raise ValueError(
                f"request must be one that waits for its value; got {request!r}. Call ask() for a new one."
            )
        measured = read_answers(value, f"value of row {row}, column {pending.column},")
        if measured.ndim or np.isinf(measured):
            raise ValueError(
                f"value must be a number, or NaN where it could not be measured; got {value!r} for row {row}, column "
                f"{pending.column}. Pass NaN."
            )
        if np.isnan(measured):
            self._refused[row, pending.column] = True
        else:
            self.rows_[row, pending.column] = measured
            self.spent_[row] += pending.cost
        del self.pending_[row]

    def run(self, measure: Callable[[int, int], float]) -> Self:
        """Ask and tell until nothing is left to buy.

        Parameters
        ----------
        measure : callable
            Takes the numbers of a row and a column, gives the value or NaN. What it raises ends the
            run; rows told before keep their values.

        Returns
        -------
        self
        """
        if not callable(measure):
            raise TypeError(f"measure must be a function of a row and a column; got {measure!r}. Pass what measures.")
        while self.pending_ or self.ask():
            for request in list(self.pending_.values()):
                self.tell(request, measure(request.row, request.column))
        return self
