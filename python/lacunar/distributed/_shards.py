"""Row shards of anything that Dask or a file system holds in pieces."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lacunar.observed import Observed


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
    X : dask array (n, d), dask dataframe, folder of Parquet files with wide rows, or iterable of tables or delayed tables
        Tables are arrays with NaN, frames, sparse matrices, `Observed` or paths (str) of its files. An array is cut by rows only.
    y : None, str, dask array or series, or iterable with as many pieces
        A str names the column of a frame or Parquet file that holds the labels.

    Returns
    -------
    pairs : list of Delayed
        Of (table, labels), labels None without y.

    Raises
    ------
    ValueError
        As many pieces of y as of X are not there, or none; a column name for what has no columns.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.distributed import shards
    >>> len(shards([np.eye(3), np.eye(3)], [[0, 1, 1], [1, 0, 0]]))
    2
    """
    delayed = dask_module().delayed
    pieces = _pieces(X)
    if not pieces:
        raise ValueError("X must have at least one shard; got none. Check the folder or the iterable.")
    if y is None or isinstance(y, str):
        return [delayed(_read)(piece, y) for piece in pieces]
    labels = _pieces(y)
    if len(labels) != len(pieces):
        raise ValueError(
            f"y must come in as many pieces as X; got {len(labels)} and {len(pieces)}. Rechunk one like the other."
        )
    return [delayed(_pair)(piece, label) for piece, label in zip(pieces, labels, strict=True)]


def _pieces(X: Any) -> list[Any]:
    if isinstance(X, str | Path):
        return sorted(Path(X).glob("*.parquet"))
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


def _read(piece: Any, target: str | None) -> tuple[Any, Any]:
    if isinstance(piece, Path):
        import pandas as pd

        piece = pd.read_parquet(piece)
    if target is None:
        return _table(piece), None
    if not hasattr(piece, "drop"):
        raise ValueError(
            f"y={target!r} must name a column of X; got a {type(piece).__name__}, which has none. Pass labels."
        )
    return _table(piece.drop(columns=[target])), piece[target].to_numpy()


def _pair(piece: Any, labels: Any) -> tuple[Any, Any]:
    if isinstance(piece, Path):
        piece, _ = _read(piece, None)
    return _table(piece), labels


def _table(piece: Any) -> Any:
    return Observed.load(piece) if isinstance(piece, str) else piece  # the path of an `Observed` file
