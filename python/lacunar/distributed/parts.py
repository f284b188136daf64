"""Rows in pieces: shards of anything that Dask or a file system holds, and the steps and sums of a fit over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lacunar.observed import Observed

Step = Callable[..., Any]
_TOGETHER = 4  # sums that one task adds, a power of two: a task costs milliseconds, a sum its memory
_LARGE = 2**18  # bytes of arguments that are sent to a worker once, by a task of their own


def dask_module() -> Any:
    """Import dask. ImportError says how to install it."""
    try:
        import dask
    except ImportError:
        raise ImportError(
            "lacunar.distributed needs dask, which is not installed: pip install 'lacunar[distributed]'"
        ) from None
    return dask


def shards(X: Any, y: Any = None) -> list[Any]:
    """Delayed (rows, labels) pairs, one a shard, in order.

    Parameters
    ----------
    X : dask array or dataframe (n, d), Parquet folder, or iterable of tables or delayed ones
        Tables are arrays with NaN, frames, sparse matrices, `Observed` or paths: of a Parquet file
        where it ends in .parquet, of an `Observed` file otherwise. An array is cut by rows only. Of
        a folder all .parquet files in it and in folders below are shards, in the order of their
        paths; what begins with "." or "_" is left out.
    y : None, str, dask array or series, or iterable with as many pieces
        A str names the column of a frame or Parquet file that holds the labels.

    Returns
    -------
    pairs : list of Delayed
        Of (table, labels), labels None without y.

    Raises
    ------
    ValueError
        Here: as many pieces of y as of X are not there, or none; folders named column=value, whose
        column no file holds. When a pair is computed, with its number: no rows, other than one
        label a row, a column name for what has no such column.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.distributed import shards
    >>> len(shards([np.eye(3), np.eye(3)], [[0, 1, 1], [1, 0, 0]]))
    2
    """
    delayed = dask_module().delayed
    return [delayed(step)(*arguments) for step, arguments in _recipes(X, y)]


class Recipe(NamedTuple):
    """A function and the arguments from which it makes the pair (rows, labels) of a shard."""

    step: Step
    arguments: tuple[Any, ...]


def _recipes(X: Any, y: Any) -> list[Recipe]:
    if hasattr(X, "shape") and not hasattr(X, "to_delayed"):
        raise ValueError(f"X must come in pieces; got one {type(X).__name__}. Wrap it in a list, or cut it.")
    pieces = _pieces(X)
    if not pieces:
        raise ValueError("X must have at least one shard; got none. Check the folder or the iterable.")
    if y is None or isinstance(y, str):
        return [Recipe(_read, (piece, y, number)) for number, piece in enumerate(pieces)]
    labels = _pieces(y)
    if len(labels) != len(pieces):
        raise ValueError(
            f"y must come in as many pieces as X; got {len(labels)} and {len(pieces)}. Rechunk one like the other."
        )
    return [Recipe(_pair, (*pair, number)) for number, pair in enumerate(zip(pieces, labels, strict=True))]


def _pieces(X: Any) -> list[Any]:
    if isinstance(X, str | Path):
        return _files(Path(X)) if Path(X).is_dir() else [X]
    if hasattr(X, "to_delayed"):
        if getattr(X, "ndim", 1) == 2 and hasattr(X, "rechunk"):
            X = X.rechunk({1: -1})
        pieces = X.to_delayed()
        return list(pieces.ravel() if hasattr(pieces, "ravel") else pieces)
    if isinstance(X, Iterable):
        return list(X)
    raise ValueError(
        f"X must be a dask collection, a folder of Parquet files or an iterable of tables; got {type(X).__name__}. Wrap one table "
        "in a list."
    )


def _files(folder: Path) -> list[Any]:
    """Parquet files below a folder."""
    files = []
    for path in sorted(folder.rglob("*.parquet")):
        parts = path.relative_to(folder).parts
        split = next((part for part in parts[:-1] if "=" in part), None)
        if split is not None:
            raise ValueError(
                f"folders of Parquet files must not be partitioned by a column; got {split!r} in {folder}. Read them with "
                "dask.dataframe.read_parquet, which makes a column of it, and choose the columns to learn from."
            )
        if not any(part.startswith((".", "_")) for part in parts):
            files.append(path)
    return files


def _read(piece: Any, target: str | None, number: int) -> tuple[Any, Any]:
    table = _table(piece)
    if target is None:
        return _checked(table, None, number)
    if not hasattr(table, "drop") or target not in getattr(table, "columns", ()):
        raise ValueError(
            f"y={target!r} must name a column of every shard; shard {number}, a {type(table).__name__}, has no such column. Pass "
            "labels, or the name of a column."
        )
    return _checked(table.drop(columns=[target]), _values(table[target]), number)


def _pair(piece: Any, labels: Any, number: int) -> tuple[Any, Any]:
    return _checked(_table(piece), labels, number)


def _checked(table: Any, labels: Any, number: int) -> tuple[Any, Any]:
    rows = table.shape[0] if hasattr(table, "shape") else len(table)
    if rows == 0:
        raise ValueError(f"every shard must have rows; shard {number} has none. Leave it out, or repartition.")
    if labels is not None and len(labels) != rows:
        raise ValueError(
            f"y must have a label for every row; shard {number} has {rows} rows and {len(labels)} labels. Cut both alike, and "
            "pass NaN for a row without a label."
        )
    return table, labels


def _values(column: Any) -> Any:
    """Labels of a column of a frame; nulls of numbers as NaN."""
    from pandas.api.types import is_extension_array_dtype, is_numeric_dtype

    if is_extension_array_dtype(column.dtype) and is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype="float64", na_value=float("nan"))
    return column.to_numpy()


def _table(piece: Any) -> Any:
    """Read the table at a path; other tables come back as they are."""
    if not isinstance(piece, str | Path):
        return piece
    if Path(piece).suffix != ".parquet":
        return Observed.load(piece)
    import pandas as pd

    return pd.read_parquet(piece)


def numbered(step: Step, number: int, *arguments: Any) -> Any:
    """What step(*arguments) gives; errors about its input say the number of the shard."""
    try:
        return step(*arguments)
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"shard {number}: {error}") from error


class Group(NamedTuple):
    """Neighbouring shards that one task goes through."""

    first: int  # number of the first shard
    parts: Any  # recipes, or the Delayed list of what workers keep


class DaskParts:
    """What `fit_parts` of an estimator goes by.

    With `keep`, the parts that `map` makes are held by the workers that made them; otherwise they are made again from the
    shards at every step. A task costs milliseconds, so one goes through as many shards as leave every thread a task, and adds
    up its sums; shards that are Dask's go alone. Sums are those of a binary tree over the shards, whoever adds and whichever
    finishes first, so that the bits are the same every time and for any number of workers.
    """

    def __init__(
        self, groups: list[Group], steps: tuple[tuple[Step, tuple[Any, ...]], ...] = (), *, keep: bool
    ) -> None:
        self._groups, self._steps, self._keep = groups, steps, keep

    @classmethod
    def of(cls, X: Any, y: Any = None, *, keep: bool) -> DaskParts:
        """Parts (rows, labels) of what `shards` takes."""
        recipes = _recipes(X, y)
        lazy = any(dask_module().is_dask_collection(argument) for recipe in recipes for argument in recipe.arguments)
        size = 1 if lazy else group_size(len(recipes), _lanes())
        groups = [Group(first, recipes[first : first + size]) for first in range(0, len(recipes), size)]
        return cls(groups, keep=keep)

    def _tasks(self, run: Callable[..., Any], step: Step, arguments: tuple[Any, ...]) -> list[Any]:
        delayed, steps = dask_module().delayed, (*self._steps, (step, arguments))
        size = sum(
            argument.nbytes for _, arguments in steps for argument in arguments if isinstance(argument, np.ndarray)
        )
        sent = (
            delayed(steps, traverse=False) if size * len(self._groups) > _LARGE else steps
        )  # once, or with every task
        return [delayed(run)(group.first, group.parts, sent) for group in self._groups]

    def map(self, step: Step, *arguments: Any, keep: bool = True) -> DaskParts:
        """Parts made by step(part, *arguments); without `keep` made anew whenever they are looked at, for steps that cost nothing."""
        if not (self._keep and keep):
            return DaskParts(self._groups, (*self._steps, (step, arguments)), keep=self._keep)
        persisted = dask_module().persist(*self._tasks(_results, step, arguments))
        groups = [group._replace(parts=parts) for group, parts in zip(self._groups, persisted, strict=True)]
        return DaskParts(groups, keep=True)

    def each(self, step: Step, *arguments: Any) -> list[Any]:
        """Results of step(part, *arguments), one a part, in order."""
        return [
            result for results in dask_module().compute(*self._tasks(_results, step, arguments)) for result in results
        ]

    def total(self, step: Step, *arguments: Any) -> tuple[Any, ...]:
        """Sums over the parts of the tuples that step(part, *arguments) makes."""
        tasks, add_up = self._tasks(_total, step, arguments), dask_module().delayed(added)
        while len(tasks) > 1:
            tasks = [add_up(tasks[k : k + _TOGETHER]) for k in range(0, len(tasks), _TOGETHER)]
        sums: tuple[Any, ...] = dask_module().compute(tasks[0])[0]
        return sums


def group_size(n_shards: int, lanes: int) -> int:
    """The most shards, a power of two, that a task may go through without keeping so many threads busy a quarter longer."""
    size = longest_allowed = 1
    while size < n_shards:
        size *= 2
        longest = min(-(-n_shards // size // lanes) * size, n_shards)
        longest_allowed = size if longest * lanes <= 1.25 * n_shards else longest_allowed
    return longest_allowed


def _lanes() -> int:
    """Threads of the cluster that will compute, or of this machine where none was started."""
    try:
        client: Any = import_module("distributed").get_client()
    except (ImportError, ValueError):  # ValueError: no client
        return int(import_module("dask.system").CPU_COUNT)
    return max(sum(map(int, client.nthreads().values())), 1)


def _parts(first: int, parts: list[Any], steps: tuple[tuple[Step, tuple[Any, ...]], ...]) -> Iterator[Any]:
    for number, part in enumerate(parts, first):
        if isinstance(part, Recipe):
            part = part.step(*part.arguments)
        for step, arguments in steps:
            part = numbered(step, number, _aligned(part), *(_aligned(argument) for argument in arguments))
        yield part


def _results(*arguments: Any) -> list[Any]:
    return list(_parts(*arguments))


def _total(*arguments: Any) -> tuple[Any, ...]:
    return added(_parts(*arguments))


def added(sums: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Sums of the members of tuples: neighbours first, then neighbours of those; what has none moves up."""
    held: list[tuple[int, tuple[Any, ...]]] = []  # 2^level tuples each
    for total in sums:
        level = 0
        while held and held[-1][0] == level:
            total, level = _plus(held.pop()[1], total), level + 1
        held.append((level, total))
    return reduce(lambda later, earlier: _plus(earlier, later), (total for _, total in reversed(held)))


def _plus(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _aligned(argument: Any) -> Any:
    """Arrays, alone or in tuples and lists, where compiled loops can read them: those that came over the network may begin at any byte."""
    if isinstance(argument, np.ndarray):
        return np.require(argument, requirements="A")
    if isinstance(argument, tuple | list):
        members = [_aligned(member) for member in argument]
        return type(argument)(*members) if hasattr(argument, "_fields") else type(argument)(members)
    return argument
