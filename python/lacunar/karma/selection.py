"""Kernels by successive halving: all of them on a few rows, the better ones on more, the best on all rows, averaged.

Every kernel here is a function of sums and counts over pairs of rows, so that one pass over the pairs of a table makes
all its kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from numbers import Integral
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lacunar._cuts import Cut, in_order, tested_rows
from lacunar._log import say
from lacunar._products import row_product
from lacunar._random import fixed_seed, generator
from lacunar._state import all_or_nothing
from lacunar._threads import one_blas_thread, thread_count
from lacunar._typing import Floats, Ints
from lacunar.karma.expansion import EXPANSIONS, Expansion, check_expansion, expand, fit_expansion
from lacunar.karma.kernel_ridge import (
    ABSENT,
    BLOCK,
    RIDGE,
    Blocks,
    Data,
    Form,
    PairsOfTable,
    Rows,
    Solved,
    Sums,
    pieces_of,
    solve_normal,
    squared_error,
    squared_errors,
    tested_values,
)
from lacunar.kernels import KernelForm, RadialForm, RowPairSums, fitted_kernels
from lacunar.observed import Observed
from lacunar.observed.rules import Anything, Array, Instance, Items, ObservedTable, Optional, Rule, floats

__all__ = ["KernelSelection"]
Complete = Callable[[Floats], Floats]
Note = Callable[[str], None]

PLAIN, COMPLETED = "plain", "completed"
_LENGTHS = (0.35, 0.7, 1.4)  # of the radial kernels, in units of the root of the median squared distance
_MASK = 0.5  # weight of the mask's columns beside the others
_FIRST_CS = (0.3, 3.0)  # of the first rung, on the grid
_WIDER = 10.0  # from these to the next, below or above, for the _SECOND best kernels
_SECOND = 24
_FEWEST_HALVED = 300  # rows of the first rung, from which all kernels are tried on half of them
_CANDIDATES = 6  # of the second rung, and the best of each kind
_FAR = 1.25  # times the best squared error of the first rung, beyond which the best of a kind is not searched
CS = 10.0 ** np.arange(-4, 5.5, 0.5)
_FLOAT32 = 1e5  # above this C n float32 leaves too little of 1 / (2 C)
_GAIN = 0.9995  # a step that gains less ends the line search
_CLOSE = 1.05  # models within this factor of the best squared error are averaged
_EXPANSION_ROWS = 20_000
_SHARED_ROWS = 1000  # whose pair sums are kept between rungs
_PILOT_MARKS, _FEWER_MARKS = 150, (1000, 700, 500, 300)  # landmarks where time is short
_MARKS_POWER = 1.5  # of the landmarks, to which a fit takes time, between what kernel values and what products take
USABLE = 0.8  # of the seconds left that an estimate may fill
TICK = 1e-6  # seconds that anything takes at least
_RUNGS_SHARE = 0.5  # of the time
_PILOT_ROWS, _ROWS_POWER = 120, 2.3  # of a rung where time is short, and the power of the rows to which it takes time
_WORTH_A_RUNG = 1.5  # times as many rows, for which the first rung is run again


class Entry(NamedTuple):
    """A kernel of the selection: the table that it reads and its options, of `KernelForm.from_sums` or of
    `RadialForm`.
    """

    table: str
    kind: type[KernelForm | RadialForm]
    options: dict[str, Any]


class Trial(NamedTuple):
    """A kernel and a C tried on some rows: mean squared errors (splits,), infinite where there is no solution."""

    entry: Entry
    C: float
    errors: Floats = np.array([np.inf])
    n_rows: int = 0
    rung: int = 0

    @property
    def error(self) -> float:
        """Mean over the splits."""
        return float(self.errors.mean())


@dataclass
class Grid:
    """Kernels to select from, values of C in ascending order, and kernels protected from the first rung; what the
    selection finds.

    `trials` are all kernels and C tried so far; `pairs` pair sums of few rows, for rungs of the same rows; `distances`
    the median distances between rows by table. What has not begun by the `deadline`, a time of `perf_counter`, is left
    out; `note` is called with what the deadline cost the fit to all rows.
    """

    entries: list[Entry]
    Cs: Floats = field(default_factory=CS.copy)
    protected: Sequence[Entry] = ()
    trials: list[Trial] = field(default_factory=list)
    pairs: dict[tuple[int, str], tuple[Rows, RowPairSums]] = field(default_factory=dict)
    distances: dict[str, float] = field(default_factory=dict)
    deadline: float = np.inf
    note: Note | None = None
    verbose: int = 0

    def scaled(self, entry: Entry, pairs: RowPairSums) -> dict[str, Any]:
        """Options of a kernel, a length in units of the rows' median distance in the first rung."""
        if entry.kind is KernelForm:
            return entry.options
        if entry.table not in self.distances:
            self.distances[entry.table] = _median_distance(pairs)
        return {**entry.options, "length": entry.options["length"] * self.distances[entry.table]}


def karma_entries(
    table: str,
    gammas: Sequence[float] = (1, 2, 3, 4),
    indicators: Sequence[bool] = (False, True),
    normalize: Sequence[Any] = ("trace", "cosine"),
    degree: int = 2,
) -> list[Entry]:
    """KARMA's kernels on a table. Powers up to `degree` of those of gamma 1 and 2; larger gammas gain nothing from
    them.
    """
    return [
        Entry(
            table,
            KernelForm,
            {
                "gamma": gamma,
                "indicators": float(a),
                "normalize": norm,
                "degree": power,
                "count_scale": "mean",
                "constant": 1.0,
            },
        )
        for a, norm, gamma in product(indicators, normalize, gammas)
        for power in range(1, (degree if gamma <= 2 else 1) + 1)
    ]


def radial_entries(table: str) -> list[Entry]:
    """Radial kernels on a table; their lengths are in units of a distance that is fitted to rows."""
    return [
        Entry(table, RadialForm, {"length": length, "mask": _MASK**2, "laplace": laplace})
        for length, laplace in product(_LENGTHS, (False, True))
    ]


def _climb(gram: Floats, data: Data, start: Trial, Cs: Floats) -> list[Trial]:
    """Trials of a line search along the grid of C."""
    small = gram.astype(np.float32)
    trials: dict[int, Trial] = {}

    def error(k: int) -> float:
        if k not in trials:
            errors = squared_errors(small if Cs[k] * len(gram) < _FLOAT32 else gram, data, Cs[k])
            trials[k] = Trial(start.entry, float(Cs[k]), errors, len(gram), 2)
        return trials[k].error

    at = int(np.abs(np.log(Cs / start.C)).argmin())
    error(at)
    for step in (1, -1):
        while 0 <= at + step < len(Cs) and error(at + step) < error(at) * _GAIN:
            at += step
    return list(trials.values())


class Fitted(NamedTuple):
    """A kernel fitted to all rows: coefficients (m, q) of the stored rows, values (tested rows, q) of rows left out."""

    trial: Trial
    form: Form
    coef: Floats
    out_of_fold: Floats


class KernelSelection(BaseEstimator):
    """Kernel ridge regression with the kernels and penalties that leave-one-out prefers, found by
    successive halving.

    All kernels are tried on `screen_rows` rows, the best and the best of each kind on `search_rows`
    with a line search in C, and of those the at most `average` within 5 % of the best squared error
    are fitted to all rows and averaged: above `full_rows` rows through `landmarks` rows, whose
    kernel values are features. Kernels are KARMA's with gamma 1 to 4, on the columns, on bumps
    along them and on indicators of their levels; and radial ones of rows filled by column means, or
    completed, beside their masks. The first rung has 72 to 84 kernels at two C; where its rows are
    300 or more it tries these on half of them, and only the best 24 and the best of each kind on
    all. A factorisation at n rows takes 2 n^3 / 3 flops.

    `chosen_` are the averaged kernels as dicts (table, parameters, C, squared error), best first,
    and `forms_` their forms; `coef_` (kernels, m, q) the coefficients of the stored rows `rows_`
    (m, p), `completed_` (m, p) these rows completed where a kernel reads that, and `offset_` (q,)
    the mean of the targets. R. Rifkin, R. Lippert, "Notes on Regularized Least Squares", MIT CSAIL
    TR-2007-025, has the closed forms.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            name: [Interval(Integral, 1, None, closed="left")]
            for name in ("screen_rows", "search_rows", "full_rows", "landmarks", "average")
        },
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }
    _schema: ClassVar[dict[str, Rule]] = {
        "chosen_": Items(Instance(dict), "kernels"),
        "forms_": Items(Instance(Form), "kernels"),
        "coef_": floats("kernels", "m", "q"),
        "offset_": floats("q"),
        "rows_": ObservedTable(("m", "columns")),
        "completed_": Optional(Array("f", ("m", "columns"))),
        "expansions_": Anything(),
    }

    def __init__(
        self,
        *,
        screen_rows: int = 400,
        search_rows: int = 1000,
        full_rows: int = 3000,
        landmarks: int = 1500,
        average: int = 4,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.screen_rows = screen_rows
        self.search_rows = search_rows
        self.full_rows = full_rows
        self.landmarks = landmarks
        self.average = average
        self.random_state = random_state
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(
        self,
        Z: Floats,
        Y: Floats,
        cuts: Sequence[Cut],
        weight: Floats | None = None,
        complete: Complete | None = None,
        deadline: float = np.inf,
        note: Note | None = None,
        *,
        independent: bool = True,
    ) -> Floats:
        """Select kernels for targets Y (n, q) of standardised rows Z (n, p), NaN where missing, and
        fit the best to all rows; values (tested rows, q) of the cuts' test rows by what each cut
        learns from, by ascending numbers of rows.

        No row is tested twice. `complete` maps Z to Z with the missing entries filled. To keep the
        `deadline`, a time of `perf_counter`, rungs have fewer rows and fits fewer landmarks, and
        `note` is called with what that cost. Kernels and penalties that are not `independent` of
        the cuts are chosen by the cuts, others by leave-one-out.
        """
        self._validate_params()
        weights = np.ones(len(Z)) if weight is None else np.asarray(weight, dtype=np.float64)
        present = np.flatnonzero(weights > 0)
        order = generator(fixed_seed(self.random_state)).permutation(present if len(present) else len(Z))
        splits = None if independent else [(train, test) for train, test in cuts if len(train)]
        data = Data(_rows(Z, complete), np.asarray(Y, dtype=np.float64), np.maximum(weights, ABSENT), splits)
        tables = [PLAIN, *self.fit_expansions(data.rows.observed, order)]
        entries = [entry for table in tables for entry in karma_entries(table)] + radial_entries(PLAIN)
        if complete is not None:
            entries += radial_entries(COMPLETED)
        return self.run(data, order, Grid(entries, deadline=deadline, note=note), cuts)

    def fit_expansions(self, rows: Observed, order: Ints, kinds: Sequence[Expansion] = EXPANSIONS) -> list[str]:
        """Learn to expand the columns of standardised rows (n, p) from the first ones of an order;
        the names of the tables that this makes.
        """
        sample = rows[np.sort(order[:_EXPANSION_ROWS])]
        expansions = {kind: fit_expansion(sample, kind) for kind in kinds}
        self.expansions_ = {kind: fitted for kind, fitted in expansions.items() if fitted is not None}
        return list(self.expansions_)

    def run(self, data: Data, order: Ints, grid: Grid, cuts: Sequence[Cut] | None) -> Floats:
        """Rungs on the first rows of an order (of rows of positive weight), then the best kernels
        on all rows; exact values (tested rows, q) of every tested row by what its cut learns from.
        Cuts of None are leave-one-out. All trials go to the grid.
        """
        deadline, wall = grid.deadline, perf_counter()
        if np.isfinite(deadline):
            grid.deadline = wall + _RUNGS_SHARE * (deadline - wall)
        trials = self.rungs(data, order, grid)
        grid.deadline = deadline
        finalists = [trial for trial in trials[: self.average] if trial.error <= _CLOSE * trials[0].error]
        say(grid.verbose, "%d kernels are fitted to all %d rows", len(finalists), len(order))
        everything = data._replace(splits=None)
        n_marks = len(order) if len(order) <= self.full_rows else self.landmarks
        if np.isfinite(deadline) and len(order) > _PILOT_MARKS:
            n_marks, finalists = self._in_time(everything, order, grid, finalists, n_marks, cuts)
        if n_marks == len(order):
            marks, fit = everything, partial(self._fit_all, data=everything, cuts=cuts)
        else:
            marks = everything.take(np.sort(order[:n_marks]))
            fit = partial(self._fit_marks, data=everything, marks=marks.rows, cuts=cuts, pairs={})
        fitted = self._by_table(marks, grid, finalists, fit)
        if data.splits is None:
            grid.trials += [kernel.trial for kernel in fitted if kernel is not None]
        return self._keep(everything, marks.rows, fitted, data.splits is not None)

    def _in_time(
        self, data: Data, order: Ints, grid: Grid, finalists: list[Trial], wished: int, cuts: Sequence[Cut] | None
    ) -> tuple[int, list[Trial]]:
        """Landmarks (or all rows) and kernels for which there is time, by what a fit through few landmarks takes."""
        marks, started = data.take(np.sort(order[:_PILOT_MARKS])), perf_counter()
        fit = partial(self._fit_marks, data=data, marks=marks.rows, cuts=cuts, pairs={})
        self._by_table(marks, grid, finalists[:1], fit)
        seconds = max(perf_counter() - started, TICK)
        sizes = [wished, *(size for size in _FEWER_MARKS if size < wished), _PILOT_MARKS]
        for size in sizes:
            seconds_a_kernel = seconds * (size / _PILOT_MARKS) ** _MARKS_POWER
            n_kernels = int(USABLE * (grid.deadline - perf_counter()) / seconds_a_kernel)
            if n_kernels >= min(len(finalists), 2) or size == _PILOT_MARKS:
                break
        if size < wished or n_kernels < len(finalists):
            n_kernels = max(min(n_kernels, len(finalists)), 1)
            if grid.note is not None:
                grid.note(f"{n_kernels} of {len(finalists)} kernels through {size} of {wished} rows")
        return size, finalists[: max(n_kernels, 1)]

    def rungs(self, data: Data, order: Ints, grid: Grid) -> list[Trial]:
        """Two rungs on the first rows of an order, the second with a line search in C; the best
        trial of every kernel of the second one, best first. All trials go to the grid.
        """
        screen_rows, search_rows, screened = self.screen_rows, self.search_rows, list[Trial]()
        if np.isfinite(grid.deadline) and len(order) > _PILOT_ROWS:
            screen_rows, search_rows, screened = self._rungs_in_time(data, order, grid)
        if screen_rows > _PILOT_ROWS or not screened:
            grid.distances.clear()  # those of the rung that was timed are of few rows
            say(grid.verbose, "first rung: %d kernels on %d rows", len(grid.entries), min(screen_rows, len(order)))
            screened = self._screen(data, order[:screen_rows], grid)
        candidates = _candidates(screened, grid)
        say(grid.verbose, "second rung: %d kernels on %d rows", len(candidates), min(search_rows, len(order)))
        search = data.take(np.sort(order[:search_rows]))
        return self._rung(search, grid, candidates, lambda _, gram, trial: _climb(gram, search, trial, grid.Cs))

    def _rungs_in_time(self, data: Data, order: Ints, grid: Grid) -> tuple[int, int, list[Trial]]:
        """Rows of the two rungs for which there is time, by a first rung on few rows, and what that rung says."""
        started = perf_counter()
        screened = self._screen(data, order[:_PILOT_ROWS], grid)
        seconds = perf_counter() - started
        half = max(grid.deadline - perf_counter(), 0.0) / 2
        times = (half / max(seconds, TICK)) ** (1 / _ROWS_POWER)
        screen_rows = int(np.clip(times, 1.0, self.screen_rows / _PILOT_ROWS) * _PILOT_ROWS)
        search_rows = int(np.clip(times, 1.0, self.search_rows / _PILOT_ROWS) * _PILOT_ROWS)
        return (screen_rows if times > _WORTH_A_RUNG else _PILOT_ROWS), search_rows, screened

    def predict(self, Z: Floats, complete: Complete | None = None) -> Floats:
        """Mean of the kernels' values (n, q) at rows Z (n, p), standardised and completed as in
        `fit`.
        """
        check_is_fitted(self)
        return self.values(_rows(Z, None if self.completed_ is None else complete))

    def values(self, rows: Rows) -> Floats:
        """Mean of the kernels' values (n, q) at standardised rows, completed ones with them where a
        kernel reads these.
        """
        n, stored = rows.observed.shape[0], Rows(self.rows_, self.completed_)
        predicted = np.tile(self.offset_, (n, 1))
        step = max(BLOCK // max(self.rows_.shape[0], 1), 1)
        for start in range(0, n, step) if self.forms_ else ():
            part = slice(start, start + step)
            block = rows.take(part)
            for form, coef, pairs in self._with_pairs(block, stored):
                predicted[part] += row_product(form.of_pairs(pairs), coef, self.n_jobs) / len(self.forms_)
        return predicted

    def _with_pairs(self, rows: Rows, stored: Rows) -> Iterator[tuple[Form, Floats, RowPairSums]]:
        """Every kernel and its coefficients, with the pair sums of rows and stored rows in its table, table by table."""
        for table in dict.fromkeys(chosen["table"] for chosen in self.chosen_):
            pairs = self._pairs(rows, table, stored)
            for form, coef, chosen in zip(self.forms_, self.coef_, self.chosen_, strict=True):
                if chosen["table"] == table:
                    yield form, coef, pairs

    def _check_loaded(self) -> None:
        """Refuse a loaded model with a kernel whose table is not stored."""
        if "rows_" not in vars(self):
            return
        tables = {chosen.get("table") for chosen in self.chosen_}
        for kind, fitted in self.expansions_.items():
            check_expansion(fitted, f"expansions_[{kind!r}]", self.rows_.shape[1])
        missing = tables - {PLAIN, *self.expansions_, *([] if self.completed_ is None else [COMPLETED])}
        if missing:
            raise ValueError(f"chosen_ must name tables that are stored; got {sorted(map(str, missing))}. Fit again")

    def _shared_pairs(self, rows: Rows, table: str, grid: Grid) -> RowPairSums:
        """Pair sums of rows, stored in the grid for rungs of the same rows."""
        key = (id(rows.observed), table)
        if key not in grid.pairs:
            if rows.observed.shape[0] > _SHARED_ROWS:
                return self._pairs(rows, table)
            grid.pairs[key] = rows, self._pairs(rows, table)
        return grid.pairs[key][1]

    def _pairs(self, rows: Rows, table: str, others: Rows | None = None) -> RowPairSums:
        """Sums over the pairs of rows and others (default the rows), of one table."""
        if table == COMPLETED:
            return _of_completed(rows, rows if others is None else others, self.n_jobs)
        other_table = None if others is None else self._table(others, table)
        return RowPairSums.between(self._table(rows, table), other_table, self.n_jobs)

    def _table(self, rows: Rows, table: str) -> Observed:
        """Rows of a table; those of the stored rows are expanded when they are first asked for. Neither copies nor
        files hold them.
        """
        if table not in EXPANSIONS:
            return rows.observed
        stored = rows.observed is vars(self).get("rows_")
        tables: dict[str, Observed] = self.__dict__.setdefault("_stored_tables", {}) if stored else {}
        if table not in tables:
            tables[table] = expand(rows.observed, self.expansions_[table])
        return tables[table]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_stored_tables", None)
        return state

    def _by_table(
        self,
        data: Data,
        grid: Grid,
        items: Sequence[Trial],
        function: Callable[[Form, NDArray[Any], Trial], Any],
        real: Any = np.float64,
    ) -> list[Any]:
        """List of function(kernel, Gram, item) of every item, in their order, one table after the other; None where the
        deadline came first.
        """
        results: list[Any] = [None] * len(items)

        def work(k: int, form: Form, gram: NDArray[Any]) -> None:
            if k == 0 or perf_counter() < grid.deadline:
                with one_blas_thread():
                    results[k] = function(form, gram, items[k])

        jobs = thread_count(self.n_jobs)
        for batch, kernels in self._batches(data, grid, items, real, jobs):
            with one_blas_thread():
                team = Parallel(n_jobs=min(jobs, len(batch)), backend="threading")
                team(delayed(work)(k, form, gram) for k, (form, gram) in zip(batch, kernels, strict=True))
        return results

    def _batches(
        self, data: Data, grid: Grid, items: Sequence[Trial], real: Any, jobs: int
    ) -> Iterator[tuple[list[int], list[tuple[Form, NDArray[Any]]]]]:
        """Numbers of items with their kernels and Grams: a table's at once or, as Grams of many rows fill memory, one a
        thread.
        """
        for table in dict.fromkeys(item.entry.table for item in items):
            pairs = self._shared_pairs(data.rows, table, grid)
            numbers = [k for k, item in enumerate(items) if item.entry.table == table]
            at_once = len(numbers) if len(data.targets) <= _SHARED_ROWS else jobs
            for start in range(0, len(numbers), at_once):
                batch = numbers[start : start + at_once]
                specifications = [(items[k].entry.kind, grid.scaled(items[k].entry, pairs)) for k in batch]
                yield batch, fitted_kernels(specifications, pairs, data.weight, real)

    def _screen(self, data: Data, rows: Ints, grid: Grid) -> list[Trial]:
        """All kernels at two C, of many rows on half of them, then the better ones and the best of each kind on all rows
        and at a third C; in float32, best first.
        """
        first = [grid.Cs[np.abs(np.log(grid.Cs / C)).argmin()] for C in _FIRST_CS]
        halved = len(rows) >= _FEWEST_HALVED
        screen = data.take(np.sort(rows))
        half = data.take(np.sort(rows[: len(rows) // 2])) if halved else screen

        def score(rows: Data, gram: NDArray[Any], trial: Trial, Cs: Sequence[float]) -> list[Trial]:
            return [Trial(trial.entry, float(C), squared_errors(gram, rows, C), len(gram), 1) for C in Cs]

        def again(gram: NDArray[Any], trial: Trial) -> list[Trial]:
            C = trial.C * (_WIDER if first[0] < trial.C else 1 / _WIDER)
            C = grid.Cs[np.abs(np.log(grid.Cs / C)).argmin()]
            beyond = [] if C in first else [C]
            return (
                score(screen, gram, trial, [trial.C, *beyond])
                if halved
                else [trial, *score(screen, gram, trial, beyond)]
            )

        entries = [Trial(entry, 1.0) for entry in grid.entries]
        trials = self._rung(
            half, grid, entries, lambda _, gram, start: score(half, gram, start, sorted(set(first))), np.float32
        )
        best = _distinct([*trials[:_SECOND], *(_best_of_kinds(trials) if halved else [])])
        if halved:
            grid.distances.clear()  # those of half the rows
        return _distinct(
            [*self._rung(screen, grid, best, lambda _, gram, start: again(gram, start), np.float32), *trials]
        )

    def _rung(
        self,
        data: Data,
        grid: Grid,
        trials: Sequence[Trial],
        function: Callable[[Form, NDArray[Any], Trial], list[Trial]],
        real: Any = np.float64,
    ) -> list[Trial]:
        """The best of the trials that `function` makes of every trial; best first."""
        searches = [search for search in self._by_table(data, grid, trials, function, real) if search is not None]
        grid.trials += [search for several in searches for search in several]
        best = [min(several, key=lambda search: search.error) for several in searches]
        return sorted(best, key=lambda search: search.error)

    def _fit_all(
        self, form: Form, gram: Floats, trial: Trial, *, data: Data, cuts: Sequence[Cut] | None
    ) -> Fitted | None:
        """One kernel on all rows; None where no C gives a factorisation."""
        C = trial.C
        while (solved := Solved.of(gram, data, C)) is None:
            if CS[0] > C:
                return None
            C /= _WIDER
        alone = solved.left_out()
        trial = Trial(trial.entry, C, np.array([squared_error(alone, data)]), len(gram), 3)
        if cuts is None:
            return Fitted(trial, form, solved.coef(), alone)
        values = [tested_values(gram, data, C, cut, solved) for cut in cuts]
        if any(value is None for value in values):
            return None
        return Fitted(trial, form, solved.coef(), in_order(cuts, [value for value in values if value is not None]))

    def _fit_marks(
        self,
        form: Form,
        gram: Floats,
        trial: Trial,
        *,
        data: Data,
        marks: Rows,
        cuts: Sequence[Cut] | None,
        pairs: PairsOfTable,
    ) -> Fitted | None:
        """One kernel on all rows through landmarks: min |v|^2 / (2 C) + sum of squared errors over v in their span."""
        table = trial.entry.table
        blocks = Blocks(form, table, data, len(gram), lambda rows: self._pairs(rows, table, marks), pairs)
        penalty = gram / (2 * trial.C) + RIDGE * len(gram) * np.eye(len(gram))
        sums = Sums.by(blocks, pieces_of(cuts, len(data.targets)))
        if cuts is None:
            tested, values = np.arange(len(data.targets)), blocks.left_out(sums.square + penalty, sums.right)
        else:
            tested, values = tested_rows(cuts), blocks.tested(cuts, sums, penalty)
        coef = solve_normal(sums.square, sums.right, penalty, data.mean())
        trial = Trial(trial.entry, trial.C, np.array([squared_error(values, data, tested)]), len(data.targets), 3)
        return Fitted(trial, form, coef, values)

    def _keep(self, data: Data, stored: Rows, fitted: list[Fitted | None], in_order: bool) -> Floats:
        """Store the kernels that came through, `in_order` of the rungs or of their errors; the mean of their
        out-of-fold values.
        """
        good = [one for one in fitted if one is not None and np.isfinite(one.trial.error)]
        if not good:
            raise ValueError(
                "sample_weight and class_weight must leave some kernel and C with finite errors; with weights up to "
                f"{float(data.weight.max()):g} none has. Divide the weights by their mean."
            )
        if not in_order:
            good = sorted(good, key=lambda one: one.trial.error)
            good = [one for one in good if one.trial.error <= _CLOSE * good[0].trial.error]
        completed = any(one.trial.entry.table == COMPLETED for one in good)
        self.rows_, self.completed_ = stored.observed, stored.completed if completed else None
        self._stored_tables: dict[str, Observed] = {}  # those of an earlier fit
        self.offset_ = data.mean()
        self.forms_ = [one.form for one in good]
        self.coef_ = np.array([one.coef for one in good]).reshape(len(good), -1, len(self.offset_))
        self.chosen_ = [
            {"table": one.trial.entry.table, **described(one.trial), "error": one.trial.error} for one in good
        ]
        used = {one["table"] for one in self.chosen_}
        self.expansions_ = {kind: one for kind, one in self.expansions_.items() if kind in used}
        return np.asarray(np.mean([one.out_of_fold for one in good], axis=0))


def _rows(Z: Floats, complete: Complete | None) -> Rows:
    return Rows(Observed.from_dense(Z), None if complete is None else np.asarray(complete(Z), dtype=np.float64))


def _of_completed(rows: Rows, others: Rows, n_jobs: int | None) -> RowPairSums:
    """Pair sums whose products are those of completed rows; counted are the columns observed in both."""
    own, other = rows.completed, others.completed
    if own is None or other is None:
        raise ValueError("complete must be given to predict as it was to fit; got None. Pass the same completion.")
    squares = (np.square(table).sum(axis=1) for table in (own, other))
    sums = row_product(own, np.ascontiguousarray(other.T), n_jobs)
    counts = (_seen(rows.observed) @ _seen(others.observed).T).astype(np.int32)
    sizes = (part.observed.row_counts for part in (rows, others))
    return RowPairSums(sums, counts, next(squares), next(sizes), next(squares), next(sizes))


def _seen(table: Observed) -> NDArray[np.float32]:
    """Ones (n, p) where entries are observed, whose products are whole numbers and exact in any order of summation."""
    seen = np.zeros(table.shape, dtype=np.float32)
    seen[np.repeat(np.arange(len(seen)), table.row_counts), table.indices] = 1.0
    return seen


def _median_distance(pairs: RowPairSums) -> float:
    """Root of the median squared distance between different rows; 1 where it is 0."""
    n = len(pairs.squares)
    squared = RadialForm.distances(pairs, _MASK**2)[np.triu_indices(n, 1)]
    middle = float(np.sqrt(np.median(squared))) if len(squared) else 0.0
    return middle if middle > 1e-6 else 1.0


def _candidates(trials: Sequence[Trial], grid: Grid) -> list[Trial]:
    """The best, the best of each kind of table and kernel, and those that stay; best first."""
    near = [trial for trial in _best_of_kinds(trials) if trial.error <= _FAR * trials[0].error]
    return _distinct([*trials[:_CANDIDATES], *near, *(trial for trial in trials if trial.entry in grid.protected)])


def _best_of_kinds(trials: Sequence[Trial]) -> list[Trial]:
    """The first trial of each kind of table and kernel."""
    kinds: dict[Any, Trial] = {}
    for trial in trials:
        kinds.setdefault((trial.entry.table, trial.entry.kind), trial)
    return list(kinds.values())


def _distinct(trials: Sequence[Trial]) -> list[Trial]:
    """The first trial of each kernel."""
    entries = [trial.entry for trial in trials]
    return [trial for k, trial in enumerate(trials) if trial.entry not in entries[:k]]


def described(trial: Trial) -> dict[str, Any]:
    """A kernel and its C as plain data."""
    options = trial.entry.options
    if trial.entry.kind is RadialForm:
        kernel = {
            "kernel": "laplace" if options["laplace"] else "gaussian",
            "length": options["length"],
            "expand": None,
        }
    else:
        kernel = {name: options[name] for name in ("gamma", "normalize", "degree")}
        kernel["indicators"] = bool(options["indicators"])
        kernel["expand"] = None if trial.entry.table == PLAIN else trial.entry.table
    return {**kernel, "C": trial.C}


def results_table(trials: Sequence[Trial], unit: float = 1.0) -> dict[str, Any]:
    """`cv_results_` in the keys of scikit-learn's searches, one row a kernel and C of a rung; errors in squared units.

    Trials of a later rung, on more rows or in higher precision, rank before those of an earlier one.
    """
    last = {(str(trial.entry), trial.C, trial.n_rows): trial for trial in trials}
    shown = list(last.values())
    params = [described(trial) for trial in shown]
    table: dict[str, Any] = {"params": params}
    for name in ("gamma", "indicators", "normalize", "degree", "expand", "kernel", "length", "C"):
        default = {"kernel": "karma", "gamma": np.nan, "length": np.nan, "degree": 1, "indicators": False}.get(name)
        column = [one.get(name, default) for one in params]
        table[f"param_{name}"] = np.array([str(v) for v in column] if name in ("normalize", "expand") else column)
    table["rung"], table["n_rows"] = np.array([t.rung for t in shown]), np.array([t.n_rows for t in shown])
    splits = max(len(trial.errors) for trial in shown)
    scores = np.full((len(shown), splits), np.nan)
    for k, trial in enumerate(shown):
        scores[k, : len(trial.errors)] = -trial.errors * unit**2
    for s in range(splits):
        table[f"split{s}_test_score"] = scores[:, s].copy()
    table["mean_test_score"] = np.nanmean(scores, axis=1)
    finite_scores = np.where(np.isfinite(scores), scores, np.nan)
    table["std_test_score"] = np.array([np.nanstd(row) if np.isfinite(row).any() else np.nan for row in finite_scores])
    place = np.lexsort([-table["mean_test_score"], -table["rung"]])
    table["rank_test_score"] = np.empty(len(shown), dtype=np.int32)
    table["rank_test_score"][place] = np.arange(1, len(shown) + 1)
    return table
