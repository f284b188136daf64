"""Rows in pieces: shards of anything that Dask or a file system holds, and the steps and sums of a fit over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from lacunar.observed import Observed

Step = Callable[..., Any]
_TOGETHER = 4  # sums that one task adds: a task costs milliseconds, a sum its memory


def dask_module() -> Any:
    """The dask package, or how to get it."""
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
    X : dask array (n, d), dask dataframe, path of a folder of Parquet files with wide rows, or iterable of tables or delayed tables
        Tables are arrays with NaN, frames, sparse matrices, `Observed` or paths: of a Parquet file where it ends in .parquet, of an
        `Observed` file otherwise. An array is cut by rows only. Of a folder all .parquet files in it and in folders below are
        shards, in the order of their paths; what begins with "." or "_" is left out.
    y : None, str, dask array or series, or iterable with as many pieces
        A str names the column of a frame or Parquet file that holds the labels.

    Returns
    -------
    pairs : list of Delayed
        Of (table, labels), labels None without y.

    Raises
    ------
    ValueError
        Here: as many pieces of y as of X are not there, or none; folders named column=value, whose column no file holds. When a
        pair is computed, with its number: no rows, other than one label a row, a column name for what has no such column.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.distributed import shards
    >>> len(shards([np.eye(3), np.eye(3)], [[0, 1, 1], [1, 0, 0]]))
    2
    """
    delayed = dask_module().delayed
    if hasattr(X, "shape") and not hasattr(X, "to_delayed"):
        raise ValueError(f"X must come in pieces; got one {type(X).__name__}. Wrap it in a list, or cut it.")
    pieces = _pieces(X)
    if not pieces:
        raise ValueError("X must have at least one shard; got none. Check the folder or the iterable.")
    if y is None or isinstance(y, str):
        return [delayed(_read)(piece, y, number) for number, piece in enumerate(pieces)]
    labels = _pieces(y)
    if len(labels) != len(pieces):
        raise ValueError(
            f"y must come in as many pieces as X; got {len(labels)} and {len(pieces)}. Rechunk one like the other."
        )
    return [delayed(_pair)(*pair, number) for number, pair in enumerate(zip(pieces, labels, strict=True))]


def _pieces(X: Any) -> list[Any]:
    if isinstance(X, str | Path):
        return _files(Path(X)) if Path(X).is_dir() else [X]
    if hasattr(X, "to_delayed"):
        if getattr(X, "ndim", 1) == 2 and hasattr(X, "rechunk"):
            X = X.rechunk({1: -1})
        made = X.to_delayed()
        return list(made.ravel() if hasattr(made, "ravel") else made)
    if isinstance(X, Iterable):
        return list(X)
    raise ValueError(
        f"X must be a dask collection, a folder of Parquet files or an iterable of tables; got {type(X).__name__}. Wrap one table "
        "in a list."
    )


def _files(folder: Path) -> list[Any]:
    """Parquet files below a folder."""
    found = []
    for path in sorted(folder.rglob("*.parquet")):
        parts = path.relative_to(folder).parts
        split = next((part for part in parts[:-1] if "=" in part), None)
        if split is not None:
            raise ValueError(
                f"folders of Parquet files must not be partitioned by a column; got {split!r} in {folder}. Read them with "
                "dask.dataframe.read_parquet, which makes a column of it, and choose the columns to learn from."
            )
        if not any(part.startswith((".", "_")) for part in parts):
            found.append(path)
    return found


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
    """What is at a path; other tables as they are."""
    if not isinstance(piece, str | Path):
        return piece
    if Path(piece).suffix != ".parquet":
        return Observed.load(piece)
    import pandas as pd

    return pd.read_parquet(piece)


def numbered(step: Step, number: int, *given: Any) -> Any:
    """What step(*given) gives; errors about its input say the number of the shard."""
    try:
        return step(*given)
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"shard {number}: {error}") from error


class DaskParts:
    """What `fit_parts` of an estimator goes by.

    With `keep`, the parts that `map` makes are held by the workers that made them; otherwise they are made again from the
    shards at every step. Sums are taken of four neighbours, whichever finishes first, so that the bits are the same every time.
    """

    def __init__(self, pieces: list[Any], *, keep: bool) -> None:
        self.pieces, self.keep = pieces, keep

    def _tasks(self, step: Step, given: tuple[Any, ...]) -> list[Any]:
        delayed = dask_module().delayed
        sent = delayed(given, traverse=False)  # once, not with every task
        return [delayed(_run)(step, number, piece, sent) for number, piece in enumerate(self.pieces)]

    def map(self, step: Step, *given: Any) -> DaskParts:
        """Parts made by step(part, *given)."""
        made = self._tasks(step, given)
        return DaskParts(list(dask_module().persist(*made)) if self.keep else made, keep=self.keep)

    def each(self, step: Step, *given: Any) -> list[Any]:
        """What step(part, *given) makes of every part."""
        return list(dask_module().compute(*self._tasks(step, given)))

    def total(self, step: Step, *given: Any) -> tuple[Any, ...]:
        """Sums over the parts of the tuples that step(part, *given) makes."""
        made: tuple[Any, ...] = dask_module().compute(tree(self._tasks(step, given), _added))[0]
        return made


def tree(tasks: list[Any], join: Callable[..., Any]) -> Any:
    """One task that joins all, four neighbours first; a task left over moves up."""
    delayed = dask_module().delayed(join)
    while len(tasks) > 1:
        groups = [tasks[k : k + _TOGETHER] for k in range(0, len(tasks), _TOGETHER)]
        tasks = [delayed(*group) if len(group) > 1 else group[0] for group in groups]
    return tasks[0]


def _run(step: Step, number: int, part: Any, given: tuple[Any, ...]) -> Any:
    return numbered(step, number, _aligned(part), *(_aligned(each) for each in given))


def _aligned(given: Any) -> Any:
    """Arrays, alone or in tuples, where compiled loops can read them: those that came over the network may begin at any byte."""
    if isinstance(given, np.ndarray):
        return np.require(given, requirements="A")
    if isinstance(given, tuple):
        made = [_aligned(each) for each in given]
        return type(given)(*made) if hasattr(given, "_fields") else tuple(made)
    return given


def _added(*sums: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(reduce(add, each) for each in zip(*sums, strict=True))
