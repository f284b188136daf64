"""Kernels raced against one another: many on a few rows, some on more, the best on all, averaged.

Every kernel here is a function of sums and counts over pairs of rows, so that one pass over the pairs of a table makes
all its kernels. One Cholesky factorisation a penalty gives the exact leave-one-out errors and the exact predictions of any
folds [1, Section 3].

[1] R. Rifkin, R. Lippert, "Notes on Regularized Least Squares", MIT CSAIL TR-2007-025.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from numbers import Integral
from time import monotonic
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, blas, cho_factor, cho_solve, lapack
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lacunar._products import row_product
from lacunar._random import fixed_seed, generator
from lacunar._threads import one_blas_thread, thread_count
from lacunar.karma.expand import Expansion, check_expansion, expand, fit_expansion
from lacunar.kernels import KernelForm, PairSums, RadialForm, pair_sums
from lacunar.observed import Observed
from lacunar.observed.rules import Array, Instance, Items, Rule, Table, floats

__all__ = ["KernelRace"]
_Floats = NDArray[np.float64]
_Ints = NDArray[np.intp]
Complete = Callable[[_Floats], _Floats]
Form = KernelForm | RadialForm

PLAIN, COMPLETED = "plain", "completed"
_EXPANDED: tuple[Expansion, ...] = ("gaussian", "levels")
_LENGTHS = (0.35, 0.7, 1.4)  # of the radial kernels, in units of the root of the median squared distance
_MASK = 0.5  # weight of the mask's columns beside the others
_FIRST_CS = (0.3, 3.0)
_WIDER = 10.0  # from these to the next, below or above, for the _SECOND best kernels
_SECOND = 24
_STARTERS = 6  # of the second heat, and the best of each kind
_STEP = 10**0.5  # of the line search in C
_LEAST_C, _MOST_C = 1e-4, 1e5
_FLOAT32 = 1e5  # above this C n float32 leaves too little of 1 / (2 C)
_GAIN = 0.9995  # a step that gains less ends the line search
_CLOSE = 1.05  # models within this factor of the best squared error are averaged
_ABSENT = 1e-12  # what a weight of 0 counts as: such a row has a prediction and no say
_RIDGE = 1e-8  # on the diagonal of the landmarks' Gram
_EXPANSION_ROWS = 20_000
_BLOCK = 2**22  # kernel values made at once
_HELD = 2**26  # kernel values kept while landmarks are fitted: 512 MB


class Rows(NamedTuple):
    """Standardised rows, and the same completed where there is a completion."""

    observed: Observed
    completed: _Floats | None

    def take(self, index: Any) -> Rows:
        """Some of the rows."""
        return Rows(self.observed[index], None if self.completed is None else self.completed[index])


class Data(NamedTuple):
    """Rows to learn from, targets (n, q), weights (n,) above 0."""

    rows: Rows
    targets: _Floats
    weight: _Floats

    def take(self, index: Any) -> Data:
        """Some of the rows with theirs."""
        return Data(self.rows.take(index), self.targets[index], self.weight[index])


class Entry(NamedTuple):
    """A kernel of the race: the table that it reads and its options, of `KernelForm.settle` or of `RadialForm`."""

    table: str
    radial: bool
    options: dict[str, Any]

    def settle(self, pairs: PairSums, weight: _Floats, distance: float) -> Form:
        """The kernel with its constants settled on rows; `distance` is the root of their median squared distance."""
        if self.radial:
            return RadialForm(self.options["length"] * distance, _MASK**2, self.options["laplace"])
        return KernelForm.settle(pairs.squares, pairs.sizes, weight, constant=1.0, **self.options)


def entries(tables: Sequence[str]) -> list[Entry]:
    """All kernels of the race on these tables: 24 of KARMA's on each but the completed one, 6 radial on two of them."""
    found = []
    for table in tables:
        if table != COMPLETED:
            found += [
                Entry(table, False, {"indicators": a, "normalize": norm, "gamma": gamma, "degree": degree})
                for a, norm, gamma in product((0.0, 1.0), ("trace", "cosine"), (1, 2, 3, 4))
                for degree in (1, 2)[: 2 if gamma <= 2 else 1]
            ]
        if table in (PLAIN, COMPLETED):
            found += [
                Entry(table, True, {"length": length, "laplace": laplace})
                for length, laplace in product(_LENGTHS, (False, True))
            ]
    return found


class Solved(NamedTuple):
    """Kernel ridge regression, factorised: with G = W^(1/2) K W^(1/2) + I / (2 C) = L L^T, in the dtype of K,

    L^-1 (n, n); G^-1 W^(1/2) Y (n, q) and G^-1 W^(1/2) 1 (n, 1); the diagonal of G^-1 (n, 1).
    """

    inverse: NDArray[Any]
    beta: _Floats
    ones: _Floats
    diagonal: _Floats
    data: Data

    @classmethod
    def of(cls, gram: NDArray[Any], data: Data, C: float) -> Solved | None:
        """2 n^3 / 3 flops; None where the factorisation fails, at a C too large for the rounding of the Gram."""
        root = np.sqrt(data.weight)[:, None]
        system = np.array(gram, order="F")
        system *= root.astype(system.dtype)
        system *= root[:, 0].astype(system.dtype)
        system.flat[:: len(system) + 1] += system.dtype.type(1 / (2 * C))
        factorise, invert = lapack.get_lapack_funcs(("potrf", "trtri"), (system,))
        factor, failed = factorise(system, lower=1, clean=1, overwrite_a=1)
        if failed:
            return None
        inverse, _ = invert(factor, lower=1, overwrite_c=1)
        right = (np.column_stack([data.targets, np.ones(len(root))]) * root).astype(system.dtype)
        left = (inverse.T @ (inverse @ right)).astype(np.float64)
        diagonal = np.einsum("ij,ij->i", inverse.T, inverse.T).astype(np.float64)[:, None]
        return cls(inverse, left[:, :-1], left[:, -1:], diagonal, data)

    def coef(self) -> _Floats:
        """Coefficients (n, q) of the targets less their mean."""
        mean = _mean_without(self.data, np.empty(0, np.intp))
        return (self.beta - self.ones * mean) * np.sqrt(self.data.weight)[:, None]

    def left_out(self) -> _Floats:
        """Exact leave-one-out predictions (n, q): those of the regression on the targets less their mean, without the row."""
        weight, targets = self.data.weight[:, None], self.data.targets
        rest = np.maximum(weight.sum() - weight, _ABSENT)
        mean = (weight * targets).sum(axis=0) - weight * targets
        mean = np.where(rest > _ABSENT * weight.sum(), mean / rest, 0.0)
        made: _Floats = targets - (self.beta - self.ones * mean) / (self.diagonal * np.sqrt(weight))
        return made

    def held_out(self, folds: Sequence[_Ints]) -> _Floats:
        """Exact predictions (n, q) of every fold without its rows: the residuals are (G^-1)_FF^-1 (G^-1 Y)_F."""
        made = np.array(self.data.targets)
        for fold in folds:
            part = self.inverse[:, fold]
            beta = (self.beta - self.ones * _mean_without(self.data, fold))[fold]
            residual = np.linalg.solve((part.T @ part).astype(np.float64), beta)
            made[fold] -= residual / np.sqrt(self.data.weight[fold])[:, None]
        return made


def _mean_without(data: Data, fold: _Ints) -> _Floats:
    """Weighted mean of the targets of the rows outside a fold, shape (q,); 0 where there are none."""
    weight = data.weight.copy()
    weight[fold] = 0.0
    if weight.sum() <= _ABSENT * data.weight.sum():
        return np.zeros(data.targets.shape[1])
    return np.average(data.targets, axis=0, weights=weight)


def _error(predicted: _Floats, data: Data) -> float:
    """Weighted mean over rows, plain over targets, of squared errors; infinite where one is not finite."""
    found = float(np.average(np.square(predicted - data.targets).mean(axis=1), weights=data.weight))
    return found if np.isfinite(found) else np.inf


def _loo_error(gram: NDArray[Any], data: Data, C: float) -> float:
    solved = Solved.of(gram, data, C)
    return np.inf if solved is None else _error(solved.left_out(), data)


def _climb(gram: _Floats, data: Data, C: float) -> tuple[float, float]:
    """(error, C) of a line search in C by steps of sqrt(10), from a first C."""
    small = gram.astype(np.float32)
    tried: dict[float, float] = {}

    def error(power: int) -> float:
        if power not in tried:
            value = C * _STEP**power
            tried[power] = _loo_error(small if value * len(gram) < _FLOAT32 else gram, data, value)
        return tried[power]

    power = 0
    for step in (1, -1):
        while _LEAST_C < C * _STEP ** (power + step) < _MOST_C and error(power + step) < error(power) * _GAIN:
            power += step
    return error(power), C * _STEP**power


class Runner(NamedTuple):
    """A kernel in the race: its squared error so far and the C that gave it."""

    error: float
    entry: Entry
    C: float


class Fitted(NamedTuple):
    """A kernel fitted to all rows: coefficients (m, q) of the stored rows, out-of-fold values (n, q)."""

    runner: Runner
    form: Form
    coef: _Floats
    out_of_fold: _Floats


class Blocks:
    """Kernel values between rows and landmarks, a few rows at a time; kept when there are few."""

    def __init__(self, race: KernelRace, form: Form, table: str, data: Data, marks: Rows) -> None:
        self.race, self.form, self.table, self.data, self.marks = race, form, table, data, marks
        n_marks = marks.observed.shape[0]
        self.step = max(_BLOCK // n_marks, 1)
        self.kept: dict[int, _Floats] | None = {} if len(data.targets) * n_marks <= _HELD else None

    def of(self, fold: _Ints) -> Iterator[tuple[_Ints, _Floats]]:
        """(rows, values (rows, m)) of the rows of a fold."""
        for start in range(0, len(fold), self.step):
            rows = fold[start : start + self.step]
            yield rows, self._values(rows)

    def _values(self, rows: _Ints) -> _Floats:
        if self.kept is not None and rows[0] in self.kept:
            return self.kept[rows[0]]
        values = self.form.of_pairs(self.race._pairs(self.data.rows.take(rows), self.table, self.marks))
        if self.kept is not None:
            self.kept[rows[0]] = values
        return values

    def normal(self, fold: _Ints) -> tuple[_Floats, _Floats]:
        """Sums over a fold of w k k^T (m, m), its lower half, and of w k (y, 1)^T (m, q + 1)."""
        n_marks = self.marks.observed.shape[0]
        square = np.zeros((n_marks, n_marks), order="F")
        right = np.zeros((n_marks, self.data.targets.shape[1] + 1))
        for rows, values in self.of(fold):
            root = np.sqrt(self.data.weight[rows])[:, None]
            scaled = values * root
            square = blas.dsyrk(1.0, scaled.T, beta=1.0, c=square, lower=1, overwrite_c=1)
            right += scaled.T @ (np.column_stack([self.data.targets[rows], np.ones(len(rows))]) * root)
        return square, right


class KernelRace(BaseEstimator):  # type: ignore[misc]
    """Kernel ridge regression with the kernels and penalties that leave-one-out prefers, found by a race.

    All kernels are tried on `screen_rows` rows, the best and the best of each kind on `race_rows` with a line search in C, and of
    those the at most `average` within 5 % of the best squared error are fitted to all rows and averaged. Above `full_rows` rows
    they are fitted through `landmarks` rows.

    The kernels: KARMA's with gamma 1 to 4, on the columns, on bumps along them and on indicators of their levels; and radial ones of
    rows filled by column means, or completed, beside their masks.

    Parameters
    ----------
    screen_rows, race_rows, full_rows : int, default=400, 1000, 3000
        Rows of the two heats, and the most that are fitted without landmarks.
    landmarks : int, default=1500
        Rows whose kernel values are the features of a larger table.
    average : int, default=4
        Most kernels that are averaged.
    random_state : int, RandomState or None, default=0
        Draws the rows of the heats.
    n_jobs : int, default=None
        Threads. None is 1, -1 all processors. The result does not depend on it.

    Attributes
    ----------
    chosen_ : list of dict
        Kernels that are averaged, best first: table, parameters, C and the squared error of the race.
    forms_ : list of KernelForm or RadialForm
    coef_ : ndarray of shape (k, m, q)
        Coefficients of the stored rows for every kernel.
    offset_ : ndarray of shape (q,)
        Mean of the targets.
    rows_ : Observed of shape (m, p)
        Stored rows.
    completed_ : ndarray of shape (m, p) or None
        The same completed, when a kernel reads them.
    expansions_ : dict
        What expands columns, for the kernels that read it.

    Notes
    -----
    Out-of-fold values are exact, those of a refit without the fold with the same kernel and C. A factorisation at n rows
    takes 2 n^3 / 3 flops; the first heat has 72 to 84 kernels at two to three C.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML 2015.
    .. [2] R. Rifkin, R. Lippert, "Notes on Regularized Least Squares", MIT CSAIL TR-2007-025.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.karma.race import KernelRace
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(60, 3))
    >>> Y = Z[:, :1] * Z[:, 1:2]
    >>> race = KernelRace()
    >>> held_out = race.fit(Z, Y, np.array_split(np.arange(60), 5))
    >>> bool(np.mean((held_out - Y) ** 2) < 0.3 * Y.var())
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            name: [Interval(Integral, 1, None, closed="left")]
            for name in ("screen_rows", "race_rows", "full_rows", "landmarks", "average")
        },
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }
    _held: ClassVar[dict[str, Rule]] = {
        "chosen_": Items(Instance(dict), "kernels"),
        "forms_": Items(Instance(Form), "kernels"),
        "coef_": floats("kernels", "m", "q"),
        "offset_": floats("q"),
        "rows_": Table(("m", "d")),
        "completed_": Array("f", ("m", "d"), optional=True),
    }

    def __init__(
        self,
        *,
        screen_rows: int = 400,
        race_rows: int = 1000,
        full_rows: int = 3000,
        landmarks: int = 1500,
        average: int = 4,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.screen_rows = screen_rows
        self.race_rows = race_rows
        self.full_rows = full_rows
        self.landmarks = landmarks
        self.average = average
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        Z: _Floats,
        Y: _Floats,
        folds: Sequence[_Ints],
        weight: _Floats | None = None,
        complete: Complete | None = None,
        deadline: float | None = None,
    ) -> _Floats:
        """Race, fit the winners to all rows; their mean out-of-fold values.

        Parameters
        ----------
        Z : ndarray of shape (n, p)
            Standardised columns, NaN where missing.
        Y : ndarray of shape (n, q)
            Targets.
        folds : sequence of index arrays
            A partition of the rows.
        weight : ndarray of shape (n,), default=None
            Weights of the rows, >= 0.
        complete : callable, default=None
            From Z to Z with the missing entries filled; to be given to `predict` too.
        deadline : float, default=None
            A time of `time.monotonic`: what has not begun by then is left out.

        Returns
        -------
        out_of_fold : ndarray of shape (n, q)
            Every row predicted without the rows of its fold.
        """
        self._validate_params()
        data, order = self._settle(Z, Y, weight, complete)
        few = data.take(np.sort(order[: self.screen_rows]))
        runners = self._screen(few, deadline)
        runners = self._second_heat(data.take(np.sort(order[: self.race_rows])), _starters(runners), deadline)
        finalists = [each for each in runners[: self.average] if each.error <= _CLOSE * runners[0].error]
        if len(order) <= self.full_rows:
            stored = data.rows
            fitted = self._by_table(
                data, finalists, lambda pairs, each: self._fit_all(pairs, each, data, folds), deadline
            )
        else:
            stored = data.rows.take(np.sort(order[: self.landmarks]))
            marks = data.take(np.sort(order[: self.landmarks]))
            fitted = self._by_table(
                marks, finalists, lambda pairs, each: self._fit_marks(pairs, each, data, marks, folds), deadline
            )
        return self._keep(data, stored, fitted, folds)

    def predict(self, Z: _Floats, complete: Complete | None = None) -> _Floats:
        """Mean of the kernels' values.

        Parameters
        ----------
        Z : ndarray of shape (n, p)
            Columns standardised as in `fit`.
        complete : callable, default=None
            As in `fit`.

        Returns
        -------
        Y : ndarray of shape (n, q)
        """
        check_is_fitted(self)
        stored = Rows(self.rows_, self.completed_)
        made = np.tile(self.offset_, (len(Z), 1))
        step = max(_BLOCK // max(self.rows_.shape[0], 1), 1)
        for start in range(0, len(Z), step) if self.forms_ else ():
            part = slice(start, start + step)
            block = _rows(Z[part], None if self.completed_ is None else complete)
            for table in dict.fromkeys(each["table"] for each in self.chosen_):
                pairs = self._pairs(block, table, stored)
                for form, coef, each in zip(self.forms_, self.coef_, self.chosen_, strict=True):
                    if each["table"] == table:
                        made[part] += row_product(form.of_pairs(pairs), coef, self.n_jobs) / len(self.forms_)
        return made

    def _check_loaded(self) -> None:
        """Every kernel has its table."""
        if "rows_" not in vars(self):
            return
        tables = {each.get("table") for each in self.chosen_}
        for kind, fitted in self.expansions_.items():
            check_expansion(fitted, f"expansions_[{kind!r}]", self.rows_.shape[1])
        missing = tables - {PLAIN, *self.expansions_, *([] if self.completed_ is None else [COMPLETED])}
        if missing:
            raise ValueError(f"chosen_ must name tables that are stored; got {sorted(map(str, missing))}. Fit again")

    def _settle(self, Z: _Floats, Y: _Floats, weight: _Floats | None, complete: Complete | None) -> tuple[Data, _Ints]:
        """Data, and the rows of positive weight in random order; expansions are fitted on them."""
        weights = np.ones(len(Z)) if weight is None else np.asarray(weight, dtype=np.float64)
        data = Data(_rows(Z, complete), np.asarray(Y, dtype=np.float64), np.maximum(weights, _ABSENT))
        present = np.flatnonzero(weights > 0)
        order = generator(fixed_seed(self.random_state)).permutation(present if len(present) else len(Z))
        some = data.rows.observed[np.sort(order[:_EXPANSION_ROWS])]
        found = {kind: fit_expansion(some, kind) for kind in _EXPANDED}
        self.expansions_ = {kind: fitted for kind, fitted in found.items() if fitted is not None}
        return data, order

    def _pairs(self, rows: Rows, table: str, others: Rows | None = None) -> PairSums:
        """Sums over the pairs of rows and others (default the rows), of one table."""
        if table in _EXPANDED:
            fitted = self.expansions_[table]
            left = expand(rows.observed, fitted)
            right = None if others is None else expand(others.observed, fitted)
        else:
            left, right = rows.observed, None if others is None else others.observed
        pairs = PairSums.of_rows(*pair_sums(left, right, n_jobs=self.n_jobs), left, right)
        return (
            pairs if table != COMPLETED else _of_completed(pairs, rows, rows if others is None else others, self.n_jobs)
        )

    def _by_table(
        self, data: Data, items: Sequence[Runner], function: Callable[[PairSums, Runner], Any], deadline: float | None
    ) -> list[Any]:
        """function(pair sums of its table, item) of every item, in order; None where the deadline came first."""
        found: list[Any] = [None] * len(items)

        def work(pairs: PairSums, k: int) -> None:
            if k == 0 or deadline is None or monotonic() < deadline:
                with one_blas_thread():
                    found[k] = function(pairs, items[k])

        for table in dict.fromkeys(item.entry.table for item in items):
            pairs = self._pairs(data.rows, table)
            mine = [k for k, item in enumerate(items) if item.entry.table == table]
            team = Parallel(n_jobs=min(thread_count(self.n_jobs), len(mine)), backend="threading")
            team(delayed(work)(pairs, k) for k in mine)
        return found

    def _screen(self, few: Data, deadline: float | None) -> list[Runner]:
        """All kernels at two C, the better ones at a third, in float32; best first."""
        completed = [] if few.rows.completed is None else [COMPLETED]
        tables = [PLAIN, *self.expansions_, *completed]
        self.distances_ = {table: _median_distance(self._pairs(few.rows, table)) for table in [PLAIN, *completed]}

        def score(pairs: PairSums, runner: Runner, Cs: Sequence[float]) -> Runner:
            small = pairs._replace(sums=pairs.sums.astype(np.float32))
            gram = self._form(pairs, runner.entry, few.weight).of_pairs(small)
            tried = [Runner(_loo_error(gram, few, C), runner.entry, C) for C in Cs]
            return min([runner, *tried], key=lambda each: each.error)

        runners = [Runner(np.inf, entry, _FIRST_CS[0]) for entry in entries(tables)]
        runners = self._heat(few, runners, lambda pairs, each: score(pairs, each, _FIRST_CS), deadline)
        second = self._heat(few, runners[:_SECOND], lambda pairs, each: score(pairs, each, [_beyond(each.C)]), deadline)
        return second + runners[_SECOND:]

    def _second_heat(self, data: Data, runners: list[Runner], deadline: float | None) -> list[Runner]:
        """A line search in C for every kernel; best first."""

        def climb(pairs: PairSums, runner: Runner) -> Runner:
            gram = self._form(pairs, runner.entry, data.weight).of_pairs(pairs)
            error, C = _climb(gram, data, runner.C)
            return Runner(error, runner.entry, C)

        return self._heat(data, runners, climb, deadline)

    def _heat(
        self,
        data: Data,
        runners: Sequence[Runner],
        function: Callable[[PairSums, Runner], Runner],
        deadline: float | None,
    ) -> list[Runner]:
        found = [each for each in self._by_table(data, runners, function, deadline) if each is not None]
        return sorted(found, key=lambda each: each.error)

    def _form(self, pairs: PairSums, entry: Entry, weight: _Floats) -> Form:
        return entry.settle(pairs, weight, self.distances_.get(entry.table, 1.0))

    def _fit_all(self, pairs: PairSums, runner: Runner, data: Data, folds: Sequence[_Ints]) -> Fitted | None:
        """One kernel on all rows; None where no C gives a factorisation."""
        form, C = self._form(pairs, runner.entry, data.weight), runner.C
        gram = form.of_pairs(pairs)
        while (solved := Solved.of(gram, data, C)) is None:
            if C < _LEAST_C:
                return None
            C /= _WIDER
        error = _error(solved.left_out(), data)
        return Fitted(runner._replace(error=error, C=C), form, solved.coef(), solved.held_out(folds))

    def _fit_marks(
        self, pairs: PairSums, runner: Runner, data: Data, marks: Data, folds: Sequence[_Ints]
    ) -> Fitted | None:
        """One kernel on all rows through landmarks: min |v|^2 / (2 C) + sum of squared errors over v in their span."""
        form = self._form(pairs, runner.entry, marks.weight)
        gram = form.of_pairs(pairs)
        blocks = Blocks(self, form, runner.entry.table, data, marks.rows)
        penalty = gram / (2 * runner.C) + _RIDGE * len(gram) * np.eye(len(gram))
        parts = [blocks.normal(fold) for fold in folds]
        square, right = (sum(part) for part in zip(*parts, strict=True))
        out_of_fold = np.empty_like(data.targets)
        for fold, (part, side) in zip(folds, parts, strict=True):
            mean = _mean_without(data, fold)
            coef = _solve_normal(square - part, right - side, penalty, mean)
            out_of_fold[fold] = mean + np.vstack([values @ coef for _, values in blocks.of(fold)])
        coef = _solve_normal(square, right, penalty, _mean_without(data, np.empty(0, np.intp)))
        return Fitted(runner._replace(error=_error(out_of_fold, data)), form, coef, out_of_fold)

    def _keep(self, data: Data, stored: Rows, fitted: list[Fitted | None], folds: Sequence[_Ints]) -> _Floats:
        """Store the kernels that came through; the mean of their out-of-fold values."""
        good = [each for each in fitted if each is not None and np.isfinite(each.runner.error)]
        good = sorted(good, key=lambda each: each.runner.error)
        good = [each for each in good if each.runner.error <= _CLOSE * good[0].runner.error]
        completed = any(each.runner.entry.table == COMPLETED for each in good)
        self.rows_, self.completed_ = stored.observed, stored.completed if completed else None
        self.offset_ = _mean_without(data, np.empty(0, np.intp))
        self.forms_ = [each.form for each in good]
        self.coef_ = np.array([each.coef for each in good]).reshape(len(good), -1, len(self.offset_))
        self.chosen_ = [_described(each.runner) for each in good]
        used = {each["table"] for each in self.chosen_}
        self.expansions_ = {kind: each for kind, each in self.expansions_.items() if kind in used}
        out_of_fold = np.empty_like(data.targets)
        if good:
            return np.mean([each.out_of_fold for each in good], axis=0, out=out_of_fold)
        for fold in folds:
            out_of_fold[fold] = _mean_without(data, fold)
        return out_of_fold


def _solve_normal(square: _Floats, right: _Floats, penalty: _Floats, mean: _Floats) -> _Floats:
    """Coefficients (m, q) of the targets less a mean; a penalty that rounding spoils is raised."""
    side = right[:, :-1] - right[:, -1:] * mean
    ridge = 0.0
    while True:
        system = square + penalty
        system.flat[:: len(system) + 1] += ridge
        try:
            return np.asarray(cho_solve(cho_factor(system, lower=True, overwrite_a=True), side), dtype=np.float64)
        except LinAlgError:
            ridge = max(10 * ridge, _RIDGE * float(np.trace(square)))


def _rows(Z: _Floats, complete: Complete | None) -> Rows:
    return Rows(Observed.from_dense(Z), None if complete is None else np.asarray(complete(Z), dtype=np.float64))


def _of_completed(pairs: PairSums, rows: Rows, others: Rows, n_jobs: int | None) -> PairSums:
    """Pair sums whose products are those of completed rows; what is counted stays."""
    left, right = rows.completed, others.completed
    if left is None or right is None:
        raise ValueError("complete must be given to predict as it was to fit; got None. Pass the same completion.")
    squares = (np.square(each).sum(axis=1) for each in (left, right))
    sums = row_product(left, np.ascontiguousarray(right.T), n_jobs)
    return PairSums(sums, pairs.counts, next(squares), pairs.sizes, next(squares), pairs.other_sizes)


def _median_distance(pairs: PairSums) -> float:
    """Root of the median squared distance between different rows; 1 where it is 0."""
    n = len(pairs.squares)
    found = RadialForm.distances(pairs, _MASK**2)[np.triu_indices(n, 1)]
    middle = float(np.sqrt(np.median(found))) if len(found) else 0.0
    return middle if middle > 1e-6 else 1.0


def _starters(runners: Sequence[Runner]) -> list[Runner]:
    """The best, and the best of each kind of table and kernel; best first."""
    kinds: dict[tuple[str, bool], Runner] = {}
    for each in runners:
        kinds.setdefault((each.entry.table, each.entry.radial), each)
    chosen = [*runners[:_STARTERS], *kinds.values()]
    return [each for k, each in enumerate(chosen) if each not in chosen[:k]]


def _beyond(C: float) -> float:
    """The next C on the better side of the first two."""
    return C * _WIDER if _FIRST_CS[0] < C else C / _WIDER


def _described(runner: Runner) -> dict[str, Any]:
    entry = runner.entry
    return {"table": entry.table, "radial": entry.radial, **entry.options, "C": runner.C, "error": runner.error}
