"""Ask and tell: requests with frozen probabilities, answers in any order, refusals, costs, exact resumption."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from lacunar._random import generator, resumed, state_of
from lacunar._snapshot import SavePoint, all_or_nothing
from lacunar.active._result import ActiveSubspace
from lacunar.active._tables import Cells, Floats, Ints, add_rows, empty_tables
from lacunar.observed.rules import COUNT, Number, Parts, Rule, floats, whole

Oracle = Callable[[Ints], ArrayLike]
_LARGEST = 1e100  # squares and their sums stay finite
_BLOCK = 1024  # most rows drawn at once in `run`


@dataclass(frozen=True, eq=False)
class Request:
    """Attributes of one new row to look at.

    Attributes
    ----------
    id : int
        Number of the request; `tell` takes the request or its id.
    indices : ndarray of shape (<= budget,)
        Distinct attributes, ascending. All belong to the same row.
    cost : float
        Sum of their costs.
    """

    id: int
    indices: Ints
    cost: float


class Acquisition(BaseEstimator):  # type: ignore[misc]
    """Base of the strategies: subclasses draw, learn from rows and read off the subspace."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_features": [Interval(Integral, 2, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "budget": [Integral],
        "alpha": [Interval(Real, 0, 1, closed="right")],
        "costs": ["array-like", None],
        "random_state": ["random_state"],
    }
    n_features: int
    n_components: int
    budget: int
    costs: Any
    random_state: Any

    def _draw(self, rng: np.random.Generator, n: int) -> tuple[Ints, Floats]:
        """Attributes (n, w), and the probabilities (n, v) that the estimate will divide by."""
        raise NotImplementedError

    def _learn(self, drawn: Ints, probability: Floats, values: Floats) -> None:
        """Use rows: drawn (n, w) as `_draw` gave them, values (n, w), NaN where refused."""
        raise NotImplementedError

    def _rows_in_force(self) -> int:
        """How many rows may be drawn before what they are drawn from changes."""
        raise NotImplementedError

    def result(self) -> ActiveSubspace:
        """The subspace found so far."""
        raise NotImplementedError

    @all_or_nothing
    def _start(self) -> None:
        """Check the parameters and begin, unless begun."""
        if hasattr(self, "tables_"):
            return
        self._validate_params()
        self._check_sizes()
        d = self.n_features
        costs = np.ones(d) if self.costs is None else np.array(self.costs, dtype=np.float64)
        if costs.shape != (d,) or not np.all(np.isfinite(costs) & (costs > 0)):
            raise ValueError(
                f"costs must be {d} positive numbers, one an attribute; got shape {costs.shape}. Pass None for equal costs."
            )
        self.rng_ = state_of(generator(self.random_state))
        self.costs_, self.tables_ = costs, empty_tables(d)
        self.pending_: dict[int, tuple[Ints, Floats]] = {}
        self.n_asked_, self.n_told_, self.spent_ = 0, 0, 0.0
        self._begin()

    def _check_sizes(self) -> None:
        d, r = self.n_features, self.budget
        if r < 2:
            raise ValueError(
                f"budget must be at least 2 attributes a row; got {r}. With one attribute a row no two are ever seen together, "
                "and distributions with different subspaces look the same: no method can tell them apart. Use budget=2."
            )
        if r > d or self.n_components > d:
            raise ValueError(
                f"budget and n_components must be at most n_features={d}; got {r} and {self.n_components}. Lower them."
            )
        self._check()

    _held: ClassVar[dict[str, Rule]] = {
        **dict.fromkeys(("n_asked_", "n_told_", "renew_at_", "renewed_at_"), COUNT),
        **dict.fromkeys(("spent_", "share_"), Number(low=0)),
        "tables_": Parts(dict.fromkeys("SNA", floats("attributes", "attributes", dtype=np.float64))),
        "costs_": floats("attributes", low=np.finfo(np.float64).tiny),
    }

    def _check_loaded(self) -> None:
        """State out of a model file: of this many attributes, finite, with requests that were possible."""
        if not hasattr(self, "tables_"):
            return
        self._check_sizes()
        d, r = self.n_features, self.budget
        arrays = [self.costs_, *(self.tables_[name] for name in "SNA"), *self._learned()]
        if any(array.shape not in ((d,), (2, d), (d, d)) or not np.isfinite(array).all() for array in arrays):
            raise ValueError(f"the sampler's state is not of {d} attributes")
        if self.costs_.shape != (d,) or (self.costs_ <= 0).any() or any(self.tables_[n].shape != (d, d) for n in "SNA"):
            raise ValueError("the sampler's costs or tables are of another shape")
        for number, (drawn, probability) in self.pending_.items():
            whole(r, high=d - 1).check(drawn, f"pending_[{number!r}][0]", {})
            floats("pairs").check(probability, f"pending_[{number!r}][1]", {})
            Number(whole=True, low=0, high=self.n_asked_ - 1).check(number, "a number of pending_", {})
        resumed(self.rng_)

    def _learned(self) -> list[Floats]:
        """Arrays of the strategy itself: (d,), (2, d) or (d, d)."""
        return []

    def _check(self) -> None:
        """Parameters of the strategy that exclude each other."""

    def _begin(self) -> None:
        """State of the strategy itself."""

    def _drawn(self, n: int) -> tuple[Ints, Floats]:
        rng = resumed(self.rng_)
        drawn = self._draw(rng, n)
        self.rng_ = state_of(rng)
        self.n_asked_ += n
        return drawn

    @all_or_nothing
    def ask(self, n: int = 1) -> list[Request]:
        """Requests for `n` new rows, drawn by what is known now; their indices and probabilities are frozen.

        Parameters
        ----------
        n : int, default=1

        Returns
        -------
        list of Request
            Answer with `tell`, in any order, later or never: an unanswered request stays pending until `cancel`.
        """
        if n < 1:
            raise ValueError(f"n must be at least 1; got {n}. Ask for one row or more.")
        self._start()
        first = self.n_asked_
        drawn, probability = self._drawn(n)
        requests = []
        for i in range(n):
            indices = np.unique(drawn[i])
            requests.append(Request(first + i, indices, float(self.costs_[indices].sum())))
        self.pending_.update({first + i: (drawn[i], probability[i]) for i in range(n)})
        return requests

    def tell(self, request: Request | int, values: ArrayLike | Mapping[int, float]) -> None:
        """Answer one request. A call that raises leaves everything as it was.

        Parameters
        ----------
        request : Request or int
            What `ask` gave, or its id.
        values : array-like of shape (len(request.indices),), or mapping
            In the order of `request.indices`; NaN for an attribute that was refused. A mapping of attribute to value may
            leave refused attributes out. Refused attributes cost nothing and teach nothing.

        Raises
        ------
        ValueError
            For a request told before or never asked, another number of values, values beyond 1e100 in modulus.
        """
        number = request.id if isinstance(request, Request) else int(request)
        drawn, probability = self._pending_of(number)
        indices = np.unique(drawn)
        if isinstance(request, Request) and not np.array_equal(request.indices, indices):
            raise ValueError(
                f"request {number} must be one of this sampler's; got one for attributes {request.indices.tolist()} while "
                f"{indices.tolist()} were asked for. Tell it to the sampler that asked."
            )
        told = _aligned(values, indices, number)
        row = told[np.searchsorted(indices, drawn)]
        self._take(drawn[None], probability[None], row[None])
        del self.pending_[number]

    def cancel(self, request: Request | int) -> None:
        """Give up a request that will not be answered: it is pending no more, costs nothing and teaches nothing.

        Rows given up for reasons that have to do with their values make the estimate that of the others.

        Parameters
        ----------
        request : Request or int
            What `ask` gave, or its id.

        Raises
        ------
        ValueError
            For a request told or cancelled before, or never asked.
        """
        number = request.id if isinstance(request, Request) else int(request)
        self._pending_of(number)
        del self.pending_[number]

    def _pending_of(self, number: int) -> tuple[Ints, Floats]:
        if number not in getattr(self, "pending_", {}):
            known = 0 <= number < getattr(self, "n_asked_", 0)
            state = "told or cancelled already, or drawn by run" if known else "never asked for"
            raise ValueError(
                f"request must be one that waits for its values; got {number}, which was {state}. Call ask() for a new one."
            )
        drawn, probability = self.pending_[number]
        return drawn, probability

    def _take(self, drawn: Ints, probability: Floats, values: Floats) -> None:
        """Learn rows, or be as before."""
        distinct = _distinct(drawn)
        point, cells = SavePoint(self), Cells(self._sums(), drawn)
        try:
            self._learn(drawn, probability, values)
            add_rows(self.tables_, distinct, values)
            paid = (distinct >= 0) & ~np.isnan(values)
            self.spent_ += float(self.costs_[distinct[paid]].sum())
            self.n_told_ += len(drawn)
            self._told()
        except BaseException as error:
            cells.restore()
            point.undo(error)
            raise

    def _sums(self) -> list[Floats]:
        """Tables (d, d) that rows are added to in place."""
        return list(self.tables_.values())

    def _told(self) -> None:
        """Renew what is drawn from, when due. `n_told_` and `tables_` are up to date."""

    def run(self, oracle: Oracle, m: int, *, max_cost: float = np.inf) -> Any:
        """Ask and tell `m` rows, or until their cost reaches `max_cost`.

        Parameters
        ----------
        oracle : callable
            Takes the distinct attributes (at most `budget`,) of a new row, gives their values, NaN for a refusal.
        m : int
        max_cost : float, default=inf
            Checked against `spent_` before each row.

        Returns
        -------
        self

        Raises
        ------
        Exception
            Whatever the oracle raises; the rows answered before are kept.
        """
        self._start()
        left = int(m)
        while left > 0 and self.spent_ < max_cost:
            n = min(left, _BLOCK, max(self._rows_in_force(), 1)) if np.isinf(max_cost) else 1
            first = self.n_asked_
            drawn, probability = self._drawn(n)
            values: list[Floats] = []
            try:
                values.extend(self._answer(oracle, row, first + i) for i, row in enumerate(drawn))
            finally:  # what was answered before an oracle failed was paid for, and is used
                if values:
                    self._take(drawn[: len(values)], probability[: len(values)], np.stack(values))
            left -= n
        return self

    def _answer(self, oracle: Oracle, drawn: Ints, number: int) -> Floats:
        indices, place = np.unique(drawn, return_inverse=True)
        told = _aligned(oracle(indices), indices, number)
        return told[place]


def _aligned(values: ArrayLike | Mapping[int, float], indices: Ints, number: int) -> NDArray[np.float64]:
    """Values of one request in the order of its indices, NaN where refused."""
    if isinstance(values, Mapping):
        unknown = set(values) - set(indices.tolist())
        if unknown:
            raise ValueError(
                f"values of request {number} must be of attributes {indices.tolist()}; got {sorted(unknown)}, too. Leave them out."
            )
        values = [values.get(int(i), np.nan) for i in indices]
    told = np.asarray(values, dtype=np.float64)
    if told.shape != indices.shape:
        raise ValueError(
            f"values of request {number} must be {len(indices)} numbers, one an attribute; got shape {told.shape}. "
            "Put NaN where an attribute was refused."
        )
    large = np.abs(told) > _LARGEST
    if large.any():
        at = int(np.argmax(large))
        raise ValueError(
            f"values of request {number} must be at most {_LARGEST:g} in modulus, or NaN; got {told[at]:g} for attribute "
            f"{indices[at]}. Use NaN, or other units."
        )
    return told


def _distinct(drawn: Ints) -> Ints:
    """`drawn` with the repetitions of an attribute in its row replaced by -1."""
    order = np.argsort(drawn, axis=1, kind="stable")
    ordered = np.take_along_axis(drawn, order, 1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = -1
    made = np.empty_like(drawn)
    np.put_along_axis(made, order, ordered, 1)
    return made
