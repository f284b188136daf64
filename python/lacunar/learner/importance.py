"""Permutation importance of columns, apart for their values and for which of them are missing; of views and of frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import process_time
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from lacunar._typing import Floats, Ints
from lacunar.learner.views import TableViews, View


class ChangeableTable(Protocol):
    """A table of which copies are made that differ in one column, by its number."""

    def missing(self, column: int) -> NDArray[np.bool_]:
        """Which rows lack the column (n,)."""
        ...

    def with_values(self, column: int, rows: Ints, sources: Ints) -> Self:
        """A copy whose `rows` hold what the rows `sources` of this table hold."""
        ...

    def with_mask(self, column: int, shown: Ints, hidden: Ints, rng: Any) -> Self:
        """A copy whose rows `hidden` lack the column; the rows `shown`, which lacked it, hold something."""
        ...


def permutation_importance(
    names: Sequence[str],
    table: Any,
    losses: Callable[[Iterable[Any]], Sequence[float]],
    n_repeats: int,
    rng: Any,
    *,
    order: Sequence[int] | None = None,
    seconds: float = np.inf,
) -> dict[str, Any]:
    """How much the loss of a `ChangeableTable` rises, as columns "column", "value", "value_sd", "missing" and "missing_sd".

    A column's observed values, or which of its entries are missing, are those of other rows; mean and standard deviation over the repeats.
    `losses` has one loss for each table. Where `n_repeats` of all columns take more than so many seconds of the processor, columns have fewer, and where
    one takes more, those at the end of `order` have none and no line.
    """
    started, before = process_time(), losses([table])[0]
    order = range(len(names)) if order is None else order
    rises = {kind: np.zeros((n_repeats, len(names))) for kind in ("value", "missing")}
    repeated = np.zeros(len(names), dtype=np.intp)
    for place, column in enumerate(order):
        repeats = _affordable(n_repeats, int(repeated.sum()), len(names) - place, process_time() - started, seconds)
        if not repeats:
            break
        kinds = _kinds(table.missing(column))
        after = losses(_copies(table, column, kinds, repeats, rng)) if kinds else []
        for k, kind in enumerate(kinds):
            rises[kind][:repeats, column] = np.asarray(after[k :: len(kinds)]) - before
        repeated[column] = repeats
    done = np.flatnonzero(repeated)
    counted = np.arange(n_repeats)[:, None] < repeated[done]
    importances: dict[str, Any] = {"column": [names[int(column)] for column in done]}
    for kind, rise in rises.items():
        importances[kind] = rise[:, done].mean(axis=0, where=counted)
        importances[f"{kind}_sd"] = rise[:, done].std(axis=0, where=counted)
    return importances


def _affordable(n_repeats: int, n_done: int, n_columns: int, spent: float, seconds: float) -> int:
    """Repeats of the next column, so that the columns that are left have as many: one at least, and none when time is up."""
    if spent > seconds:
        return 0
    if not n_done or np.isinf(seconds):
        return n_repeats
    return int(np.clip((seconds - spent) * n_done / (max(spent, 1e-9) * n_columns), 1, n_repeats))


def _kinds(missing: NDArray[np.bool_]) -> list[str]:
    """What can be permuted in a column: nothing where all is missing, and no mask where nothing is."""
    if missing.all():
        return []
    return ["value", "missing"] if missing.any() else ["value"]


def _copies(table: Any, column: int, kinds: list[str], n_repeats: int, rng: Any) -> Iterator[Any]:
    missing = table.missing(column)
    seen = np.flatnonzero(~missing)
    for _ in range(n_repeats):
        yield table.with_values(column, seen, rng.permutation(seen))
        if "missing" in kinds:
            hidden = rng.permutation(missing)
            yield table.with_mask(column, np.flatnonzero(missing & ~hidden), np.flatnonzero(hidden), rng)


class ChangeableView:
    """A view whose missing entries are filled, where they are to be shown, as `complete` has them, or by the mean."""

    def __init__(self, views: TableViews, view: View, complete: Callable[[Floats], Floats] | None) -> None:
        self._views, self.view = views, view
        self._filled = view if complete is None else filled(views, view, complete)

    def _parts(self, column: int) -> tuple[Ints, Ints]:
        """Columns of Z and of T that are made of a column of the table; none where nothing was learned of it."""
        of_T = np.flatnonzero(self._views.source_ == column)
        return np.flatnonzero(np.isin(self._views.places_, of_T)), of_T

    def missing(self, column: int) -> NDArray[np.bool_]:
        _, of_T = self._parts(column)
        if not of_T.size:
            return np.ones(len(self.view.T), dtype=bool)
        return np.asarray(np.isnan(self.view.T[:, of_T]).any(axis=1))

    def _copied(self, column: int, rows: Ints, sources: View) -> ChangeableView:
        copy = object.__new__(ChangeableView)
        copy._views, copy._filled = self._views, self._filled
        parts = []
        for array, source, places in zip(self.view[:2], sources[:2], self._parts(column), strict=True):
            changed = array.copy()
            changed[np.ix_(rows, places)] = source[:, places]
            parts.append(changed)
        copy.view = self._views.with_pairs(View(*parts))
        return copy

    def with_values(self, column: int, rows: Ints, sources: Ints) -> ChangeableView:
        return self._copied(column, rows, View(self.view.Z[sources], self.view.T[sources]))

    def with_mask(self, column: int, shown: Ints, hidden: Ints, rng: Any) -> ChangeableView:
        copy = self._copied(column, shown, View(self._filled.Z[shown], self._filled.T[shown]))
        for array, places in zip(copy.view[:2], self._parts(column), strict=True):
            array[np.ix_(hidden, places)] = np.nan
        self._views.with_pairs(copy.view)
        return copy


def filled(views: TableViews, view: View, complete: Callable[[Floats], Floats]) -> View:
    """Without missing entries: what an entry might have been."""
    completed = views.completed(view, complete(view.Z), np.ones(view.T.shape[1], dtype=bool))
    return View(np.nan_to_num(completed.Z), np.nan_to_num(completed.T))
