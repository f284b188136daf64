"""Tables as observed entries, cell by cell."""

import numpy as np


def dense_entries(X, dtype):
    """(indptr, indices, values) of the cells of a dense table that are not NaN."""
    X = np.asarray(X).astype(dtype)
    seen = ~np.isnan(X)
    return np.concatenate([[0], np.cumsum(seen.sum(axis=1))]), np.nonzero(seen)[1], X[seen]


def triplet_entries(row, col, value, n_rows, duplicates):
    """(indptr, indices, values) of triplets in any order, those of one cell settled: the last of them, or their mean."""
    cells = {}
    for i, j, v in zip(row.tolist(), col.tolist(), value, strict=True):
        if not np.isnan(v):
            cells.setdefault((i, j), []).append(v)
    keys = sorted(cells)
    one = {"last": lambda all_of: all_of[-1], "mean": lambda all_of: np.sum(all_of, dtype=np.float64) / len(all_of)}
    values = np.array([one[duplicates](cells[key]) for key in keys], dtype=value.dtype)
    counts = np.bincount([i for i, _ in keys], minlength=n_rows) if keys else np.zeros(n_rows, np.int64)
    return np.concatenate([[0], np.cumsum(counts)]), np.array([j for _, j in keys], dtype=np.int64), values


def list_entries(columns, values):
    """(indptr, indices, values) of rows that are lists of columns and of values; None is no list, and no value."""
    pairs = [
        sorted((j, v) for j, v in zip(js or [], vs or [], strict=True) if v is not None and not np.isnan(v))
        for js, vs in zip(columns, values, strict=True)
    ]
    flat = [pair for row in pairs for pair in row]
    return np.cumsum([0, *map(len, pairs)]), np.array([j for j, _ in flat], int), np.array([v for _, v in flat], float)
