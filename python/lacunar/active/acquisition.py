"""Ask and tell: requests with frozen probabilities, answers in any order, refusals, costs, and the subspace that was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from lacunar import _moments
from lacunar._eigen import leading_eigenvectors, signed
from lacunar._latent import latent_rows
from lacunar._lock import WholeCopies, WholeRows, changes, lock_of, reads
from lacunar._products import row_product
from lacunar._random import generator, generator_at, state_of
from lacunar._state import all_or_nothing, copied
from lacunar._typing import Floats
from lacunar.observed.door import as_observed, read_answers
from lacunar.observed.rules import COUNT, Number, Parts, Rule, floats, whole

Ints = NDArray[np.int64]
Oracle = Callable[[Ints], ArrayLike]
_LARGEST = 1e100  # squares and their sums stay finite
_BLOCK = 1024  # most rows drawn at once in `run`
_TABLE = floats("attributes", "attributes", dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Request:
    """Attributes of one new row to look at.

    Attributes
    ----------
    id : int
        Number of the request; `tell` takes the request or its id.
    indices : ndarray of shape (<= n_observed,)
        Distinct attributes, ascending. All belong to the same row.
    cost : float
        Sum of their costs.
    """

    id: int
    indices: Ints
    cost: float


@dataclass(frozen=True, eq=False)
class ActiveSubspace:
    """A fitted subspace: what `result()` of `ActivePOPCA` and `MBEG` gives.

    Attributes
    ----------
    mean_ : ndarray of shape (d,)
        Zeros where the second moment, not the covariance, is decomposed.
    components_ : ndarray of shape (k, d)
        Orthonormal rows; the entry largest in modulus is positive.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (k,)
        Along the components, in the units of the squared entries, and as a share of the trace.
    noise_variance_ : float
        Mean variance of the other directions, at least 0.
    covariance_ : ndarray of shape (d, d)
        The estimate (covariance or second moment) as it is: it may have negative eigenvalues.
    n_samples_seen_ : int
    weights_ : ndarray of shape (d, d) or None
        MBEG only: the average of its weight matrices.
    """

    mean_: Floats
    components_: Floats
    explained_variance_: Floats
    explained_variance_ratio_: Floats
    noise_variance_: float
    covariance_: Floats
    n_samples_seen_: int
    weights_: Floats | None = None

    def get_covariance(self) -> Floats:
        """Model of the covariance (d, d): components and isotropic noise, positive semi-definite.

        Returns
        -------
        covariance : ndarray of shape (d, d)
        """
        strength = np.maximum(self.explained_variance_ - self.noise_variance_, 0)
        covariance: Floats = (self.components_.T * strength) @ self.components_
        covariance.flat[:: len(covariance) + 1] += self.noise_variance_
        return covariance

    def transform(self, X: Any) -> Floats:
        """Latent coordinates (n, k) of rows with missing entries: their posterior mean under the
        model of `get_covariance`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)

        Returns
        -------
        latent : ndarray of shape (n, k)
        """
        rows = as_observed(X)
        if rows.shape[1] != len(self.mean_):
            raise ValueError(
                f"X must have {len(self.mean_)} columns; got {rows.shape[1]}. Pass the attributes asked for."
            )
        centred = rows.with_values(rows.values - self.mean_[rows.indices])
        strength = np.sqrt(np.maximum(self.explained_variance_ - self.noise_variance_, 1e-12))
        ridge = max(self.noise_variance_, 1e-9 * float(np.mean(strength**2)))
        return latent_rows(centred, np.ascontiguousarray(self.components_.T * strength), ridge).latent * strength

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Complete rows (n, d) of latent coordinates (n, k).

        Parameters
        ----------
        X : array-like of shape (n, k)
            Latent coordinates.

        Returns
        -------
        rows : ndarray of shape (n, d)
        """
        return row_product(np.asarray(X, dtype=np.float64), self.components_) + self.mean_


class Acquisition(WholeCopies, BaseEstimator):
    """Base of the strategies: a subclass draws attributes, learns from rows and finds the subspace."""

    _written: ClassVar[tuple[str, ...]] = ("pending_", "state_")
    _schema: ClassVar[dict[str, Rule]] = {
        **dict.fromkeys(("n_asked_", "n_told_"), COUNT),
        "spent_": Number(low=0),
        "state_": Parts(dict.fromkeys("SNA", _TABLE)),
        "costs_": floats("attributes", low=np.finfo(np.float64).tiny),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_features": [Interval(Integral, 2, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_observed": [Integral],
        "costs": ["array-like", None],
        "random_state": ["random_state"],
    }
    n_features: int
    n_components: int
    n_observed: int
    costs: Any
    random_state: Any

    def _draw(self, rng: np.random.Generator, n: int) -> tuple[Ints, Floats]:
        """Attributes (n, w), and the probabilities (n, v) that the estimate will divide by."""
        raise NotImplementedError

    def _tables(self) -> dict[str, Floats]:
        """Tables (d, d) that rows are added to in place, by name."""
        return dict(self.state_)

    def _add(self, tables: dict[str, Floats], drawn: Ints, probability: Floats, values: Floats) -> None:
        """Add rows to copies of the `_tables`: drawn (n, w) as `_draw` gave them, values (n, w), NaN where refused."""
        add_rows(tables, _distinct(drawn), values)

    def _rows_in_force(self) -> int:
        """How many rows may be drawn before what they are drawn from changes."""
        raise NotImplementedError

    def _found(self) -> ActiveSubspace:
        """The subspace, after rows were told."""
        raise NotImplementedError

    @changes
    @all_or_nothing
    def _start(self) -> None:
        """Check the parameters and begin, unless begun."""
        if hasattr(self, "state_"):
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
        self.costs_, self.state_ = costs, empty_tables(d)
        self.pending_: dict[int, tuple[Ints, Floats]] = {}
        self.n_asked_, self.n_told_, self.spent_ = 0, 0, 0.0
        self._begin()

    def _check_sizes(self) -> None:
        d, r = self.n_features, self.n_observed
        if r < 2:
            raise ValueError(
                f"n_observed must be at least 2 attributes a row; got {r}. With one attribute a row no two are ever seen together, "
                "and distributions with different subspaces look the same: no method can tell them apart. Use n_observed=2."
            )
        if r > d or self.n_components > d:
            raise ValueError(
                f"n_observed and n_components must be at most n_features={d}; got {r} and {self.n_components}. Lower them."
            )
        self._check()

    def _check_loaded(self) -> None:
        """State of a model file: of `n_features` attributes, with requests that were possible."""
        if not hasattr(self, "state_"):
            return
        self._check_sizes()
        floats(self.n_features).check(self.costs_, "costs_", {})
        for number, (drawn, probability) in self.pending_.items():
            whole(self.n_observed, high=self.n_features - 1).check(drawn, f"pending_[{number!r}][0]", {})
            floats("pairs").check(probability, f"pending_[{number!r}][1]", {})
            Number(whole=True, low=0, high=self.n_asked_ - 1).check(number, "a number of pending_", {})
        generator_at(self.rng_)

    def _check(self) -> None:
        """Parameters of the strategy that exclude each other."""

    def _begin(self) -> None:
        """State of the strategy itself."""

    def _drawn(self, n: int) -> tuple[Ints, Floats]:
        rng = generator_at(self.rng_)
        drawn = self._draw(rng, n)
        self.rng_ = state_of(rng)
        self.n_asked_ += n
        return drawn

    @changes
    @all_or_nothing
    def ask(self, n: int = 1) -> list[Request]:
        """Requests for `n` new rows, drawn by what is known now; their indices and probabilities
        are frozen.

        Parameters
        ----------
        n : int, default=1
            How many requests, one a row.

        Returns
        -------
        list of Request
            Answer with `tell`, in any order, later or never: an unanswered request stays pending
            until `cancel`.
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

    @changes
    def tell(self, request: Request | int, values: ArrayLike | Mapping[int, float]) -> None:
        """Answer one request. A call that refuses the values leaves everything as it was.

        Parameters
        ----------
        request : Request or int
            What `ask` gave, or its id.
        values : array-like of shape (len(request.indices),), or mapping
            In the order of `request.indices`; NaN for an attribute that was refused. A mapping of
            attribute to value may leave refused attributes out. Refused attributes cost nothing and
            teach nothing.

        Raises
        ------
        ValueError
            For a request told before or never asked, another number of values, values beyond 1e100
            in modulus.
        """
        number, drawn, probability = self._pending_of(request)
        indices = np.unique(drawn)
        if isinstance(request, Request) and not np.array_equal(request.indices, indices):
            raise ValueError(
                f"request {number} must be one of this sampler's; got one for attributes {request.indices.tolist()} while "
                f"{indices.tolist()} were asked for. Tell it to the sampler that asked."
            )
        answers = _aligned(values, indices, number)
        row = answers[np.searchsorted(indices, drawn)]
        self._take(drawn[None], probability[None], row[None], number)

    @changes
    def cancel(self, request: Request | int) -> None:
        """Give up a request that will not be answered: it is pending no more, costs nothing and
        teaches nothing.

        Rows given up for reasons that have to do with their values make the estimate that of the
        others.

        Parameters
        ----------
        request : Request or int
            What `ask` gave, or its id.

        Raises
        ------
        ValueError
            For a request told or cancelled before, or never asked.
        """
        del self.pending_[self._pending_of(request)[0]]

    def _pending_of(self, request: Request | int) -> tuple[int, Ints, Floats]:
        """Number of a request that waits for its values, and what was drawn for it."""
        number = request.id if isinstance(request, Request) else int(request)
        if number not in getattr(self, "pending_", {}):
            known = 0 <= number < getattr(self, "n_asked_", 0)
            state = "told or cancelled already, or drawn by run" if known else "never asked for"
            raise ValueError(
                f"request must be one that waits for its values; got {number}, which was {state}. Call ask() for a new one."
            )
        return number, *self.pending_[number]

    @changes
    def _take(self, drawn: Ints, probability: Floats, values: Floats, number: int = -1) -> None:
        """Learn rows (n, w), all of them or none; request `number` waits no more. O(n w^2), and O(d^3) where it renews."""
        attributes, places = np.unique(drawn, return_inverse=True)
        at, places = np.ix_(attributes, attributes), places.reshape(drawn.shape)
        added = {name: table[at] for name, table in self._tables().items()}
        self._add(added, places, probability, values)
        distinct = _distinct(drawn)
        paid = (distinct >= 0) & ~np.isnan(values)
        spent, n_told = self.spent_ + float(self.costs_[distinct[paid]].sum()), self.n_told_ + len(drawn)

        def put(sampler: Acquisition) -> None:
            for name, table in sampler._tables().items():
                table[at] = added[name]
            sampler.__dict__.update(spent_=spent, n_told_=n_told)
            sampler.pending_.pop(number, None)

        if self._rows_in_force() <= len(drawn):
            self._renewed(put)
        else:
            with WholeRows(self, partial(put, self)):
                pass

    @all_or_nothing
    def _renewed(self, put: Callable[[Acquisition], None]) -> None:
        """Add rows to tables of its own, and renew what is drawn from."""
        self.__dict__.update({name: copied(vars(self)[name]) for name in self._written})
        put(self)
        self._renew_when_due()

    def _renew_when_due(self) -> None:
        """Renew what is drawn from, when due. `n_told_` and `state_` are up to date."""

    def run(self, oracle: Oracle, m: int, *, max_cost: float = np.inf) -> Any:
        """Ask and tell `m` rows, or until their cost reaches `max_cost`.

        Parameters
        ----------
        oracle : callable
            Takes the distinct attributes (at most `n_observed`,) of a new row, gives their values,
            NaN for a refusal.
        m : int
            At least 0.
        max_cost : float, default=inf
            Checked against `spent_` before each row.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For `m` or `max_cost` below 0.
        Exception
            Whatever the oracle raises; the rows answered before are kept.
        """
        if not isinstance(m, Integral) or m < 0:
            raise ValueError(f"m must be a whole number of at least 0; got {m!r}. Pass how many rows to ask for.")
        if not isinstance(max_cost, Real) or not max_cost >= 0:
            raise ValueError(f"max_cost must be a number of at least 0; got {max_cost!r}. Pass what all rows may cost.")
        self._start()
        remaining = int(m)
        while remaining > 0 and self.spent_ < max_cost:
            n = min(remaining, _BLOCK, max(self._rows_in_force(), 1)) if np.isinf(max_cost) else 1
            with lock_of(self):
                first, (drawn, probability) = self.n_asked_, self._drawn(n)
            values: list[Floats] = []
            try:
                values.extend(self._answer(oracle, row, first + i) for i, row in enumerate(drawn))
            finally:  # what was answered before an oracle failed was paid for, and is used
                if values:
                    self._take(drawn[: len(values)], probability[: len(values)], np.stack(values))
            remaining -= n
        return self

    def _answer(self, oracle: Oracle, drawn: Ints, number: int) -> Floats:
        indices, place = np.unique(drawn, return_inverse=True)
        return _aligned(oracle(indices), indices, number)[place]

    @reads
    def result(self) -> ActiveSubspace:
        """The subspace found so far, with the fitted attributes of scikit-learn's PCA. The same at
        every call. O(d^3).

        Returns
        -------
        result : ActiveSubspace
            A copy: what is told later does not change it.

        Raises
        ------
        ValueError
            When nothing was told.
        """
        if not getattr(self, "n_told_", 0):
            raise ValueError("result() needs rows; got none told. Call run(), or ask() and tell(), first.")
        return self._found()


def _aligned(values: ArrayLike | Mapping[int, float], indices: Ints, number: int) -> NDArray[np.float64]:
    """Values of one request in the order of its indices, NaN where refused."""
    if isinstance(values, Mapping):
        unknown = set(values) - set(indices.tolist())
        if unknown:
            raise ValueError(
                f"values of request {number} must be of attributes {indices.tolist()}; got {sorted(unknown)}, too. Leave them out."
            )
        values = [values.get(int(i), np.nan) for i in indices]
    answers = read_answers(values, f"values of request {number}")
    if answers.shape != indices.shape:
        raise ValueError(
            f"values of request {number} must be {len(indices)} numbers, one an attribute; got shape {answers.shape}. "
            "Put NaN where an attribute was refused."
        )
    large = np.abs(answers) > _LARGEST
    if large.any():
        at = int(np.argmax(large))
        raise ValueError(
            f"values of request {number} must be at most {_LARGEST:g} in modulus, or NaN; got {answers[at]:g} for attribute "
            f"{indices[at]}. Use NaN, or other units."
        )
    return answers


def _distinct(drawn: Ints) -> Ints:
    """`drawn` with the repetitions of an attribute in its row replaced by -1."""
    order = np.argsort(drawn, axis=1, kind="stable")
    ordered = np.take_along_axis(drawn, order, 1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = -1
    distinct = np.empty_like(drawn)
    np.put_along_axis(distinct, order, ordered, 1)
    return distinct


def empty_tables(d: int) -> dict[str, Floats]:
    """S_ij = sum x_i x_j, N_ij = rows with both, A_ij = sum x_i over rows that have j, too. N's diagonal counts entries."""
    return {name: np.zeros((d, d)) for name in ("S", "N", "A")}


def add_rows(tables: dict[str, Floats], indices: Ints, values: Floats) -> None:
    """Adds rows: indices (n, r), distinct in a row, -1 for none; values (n, r), NaN where refused. O(n r^2)."""
    seen = (indices >= 0) & ~np.isnan(values)
    x = np.where(seen, values, 0.0)
    both = seen[:, :, None] & seen[:, None, :]
    cell = (indices[:, :, None] * len(tables["S"]) + indices[:, None, :])[both]
    np.add.at(tables["N"].reshape(-1), cell, 1.0)
    np.add.at(tables["S"].reshape(-1), cell, (x[:, :, None] * x[:, None, :])[both])
    np.add.at(tables["A"].reshape(-1), cell, np.broadcast_to(x[:, :, None], both.shape)[both])


def means(tables: dict[str, Floats]) -> Floats:
    """Mean (d,) of each attribute over the rows that have it; 0 where none has."""
    return np.diag(tables["A"]) / np.maximum(np.diag(tables["N"]), 1)


def second_moment(tables: dict[str, Floats], pseudo_count: float = 0.0) -> Floats:
    """S / N (d, d), `pseudo_count` added to the counts off the diagonal; 0 where no row has both."""
    return _moments.second_moment(_sums(tables), "pairwise", pseudo_count=pseudo_count)


def covariance(tables: dict[str, Floats], pseudo_count: float = 0.0) -> Floats:
    """Covariance (d, d) centred by available cases, exactly unbiased given which entries were seen."""
    return _moments.covariance(_sums(tables), "pairwise", pseudo_count=pseudo_count)


def _sums(tables: dict[str, Floats]) -> _moments.Sums:
    """The tables as weights by joint counts see them: what rows have in all does not matter to these."""
    return _moments.Sums(tables["S"], tables["N"], tables["A"], nn=0.0, paired=0, m=0)


def subspace_of(C: Floats, mean: Floats, basis: Floats, n_seen: int, weights: Floats | None = None) -> ActiveSubspace:
    """The result with orthonormal columns `basis` (d, k), and the variances that the estimate C gives along them."""
    k = basis.shape[1]
    variance = np.einsum("ij,ij->j", basis, C @ basis)
    trace = float(np.trace(C))
    noise = max((trace - float(variance.sum())) / max(len(C) - k, 1), 0.0)
    ratio = variance / trace if trace > 0 else np.zeros(k)
    return ActiveSubspace(mean, signed(basis.T), variance, ratio, noise, C, n_seen, weights)


def leading(C: Floats, k: int) -> Floats:
    """Eigenvectors (d, k) of the algebraically largest eigenvalues, largest first."""
    return leading_eigenvectors(C, k)[1]
