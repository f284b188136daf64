"""Tables with holes: `Observed` made from every format, saved and loaded, cut and joined; column sums over observed entries."""

import atexit
import functools
import shutil
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from bench.hot import case
from bench.hot.data import low_rank
from lacunar import Observed
from lacunar.observed import read_batches

SMALL, LARGE = {"n": 400, "d": 60}, {"n": 100_000, "d": 500}
# Formats that are read line by line or hold a string a cell.
SLOW = {"n": 20_000, "d": 500}
# Loops of ours, whose instructions are counted; the others are SciPy's, pandas' and Python's.
OURS = {"dense", "dense columns", "triplets", "triplets in order", "arrow"}


@functools.cache
def scratch():
    """A folder that goes when the process does."""
    folder = tempfile.mkdtemp(prefix="lacunar-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def table(n, d):
    return low_rank(n, d, 5, 20, dtype=np.float64)[0]


def same_table(expected, found):
    found = found[0] if isinstance(found, tuple) else found
    for part in ("indptr", "indices", "values"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
    assert found.shape == expected.shape


def triplets(rows):
    """(row, column, value) shuffled, every tenth given twice."""
    entry = np.arange(rows.nnz)
    entry = np.random.default_rng(0).permutation(np.concatenate([entry, entry[::10]]))
    return np.repeat(np.arange(rows.shape[0]), rows.row_counts)[entry], rows.indices[entry], rows.values[entry]


def in_order(rows):
    return np.repeat(np.arange(rows.shape[0], dtype=np.int32), rows.row_counts), rows.indices, rows.values


def long_frame(rows):
    import pandas as pd

    i, j, value = (part[: rows.nnz] for part in triplets(rows))
    return pd.DataFrame({"row": np.char.mod("r%07d", i), "col": np.char.mod("c%07d", j), "value": value})


def frame_of(package, rows):
    import importlib

    names = [f"c{k}" for k in range(rows.shape[1])]
    dense = rows.to_dense()
    if package == "pandas":
        return importlib.import_module("pandas").DataFrame(dense, columns=names)
    columns = dict(zip(names, dense.T, strict=True))
    if package == "polars":
        return importlib.import_module("polars").DataFrame(columns).fill_nan(None)
    arrow = importlib.import_module("pyarrow")
    return arrow.table({name: arrow.array(column, from_pandas=True) for name, column in columns.items()})


def svmlight_file(rows):
    path = scratch() / f"{rows.shape[0]}.svm"
    with path.open("w", encoding="utf-8") as file:
        for start, stop in zip(rows.indptr, rows.indptr[1:], strict=False):
            entries = zip(rows.indices[start:stop], rows.values[start:stop], strict=True)
            file.write("1 " + " ".join(f"{j + 1}:{float(v)!r}" for j, v in entries) + "\n")
    return path


def parquet_file(rows):
    import pyarrow
    import pyarrow.parquet

    path = scratch() / f"{rows.shape[0]}.parquet"
    names = ("row", "col", "value")
    pyarrow.parquet.write_table(pyarrow.table(dict(zip(names, triplets(rows), strict=True))), path)
    return path


def list_file(rows):
    import pyarrow
    import pyarrow.parquet

    path = scratch() / f"{rows.shape[0]}.lists.parquet"
    arrays = {"indices": rows.indices, "values": rows.values}
    lists = {name: pyarrow.LargeListArray.from_arrays(rows.indptr, pyarrow.array(a)) for name, a in arrays.items()}
    pyarrow.parquet.write_table(pyarrow.table(lists), path)
    return path


READERS = {
    "dense": lambda rows: partial(Observed.from_dense, rows.to_dense()),
    "dense columns": lambda rows: partial(Observed.from_dense, np.asfortranarray(rows.to_dense())),
    "csr": lambda rows: partial(Observed.from_scipy, rows.to_scipy()),
    "csc": lambda rows: partial(Observed.from_scipy, rows.to_scipy().tocsc()),
    "coo": lambda rows: partial(Observed.from_scipy, rows.to_scipy().tocoo()),
    "triplets": lambda rows: partial(Observed.from_triplets, *triplets(rows), shape=rows.shape, duplicates="mean"),
    "triplets in order": lambda rows: partial(Observed.from_triplets, *in_order(rows), shape=rows.shape),
    "pandas": lambda rows: partial(Observed.from_frame, frame_of("pandas", rows)),
    "polars": lambda rows: partial(Observed.from_frame, frame_of("polars", rows)),
    "arrow": lambda rows: partial(Observed.from_frame, frame_of("arrow", rows)),
    "svmlight": lambda rows: partial(Observed.from_svmlight, svmlight_file(rows), n_features=rows.shape[1]),
    "parquet lists": lambda rows: partial(
        Observed.from_parquet, list_file(rows), lists=("indices", "values"), shape=rows.shape
    ),
    "parquet": lambda rows: partial(Observed.from_parquet, parquet_file(rows), shape=rows.shape, duplicates="last"),
}


def read(source, n, d):
    rows = table(n, d)
    return READERS[source](rows), partial(same_table, rows)


for _name in READERS:
    _large = SLOW if _name in {"pandas", "polars", "arrow", "svmlight"} else LARGE
    _sizes = {"small": {"source": _name, **SMALL}, "large": {"source": _name, **_large}}
    case(f"table from {_name}", **_sizes, counted=_name in OURS)(read)


@case("table from a long frame of strings", small=SMALL, large=SLOW, counted=False)
def read_long(n, d):
    rows = table(n, d)
    frame = long_frame(rows)

    def check(found):
        made, row_ids, col_ids = found
        back = made.to_scipy().tocoo()
        key = np.char.add(row_ids[back.coords[0]], col_ids[back.coords[1]])
        expected = frame.drop_duplicates(["row", "col"])
        order = np.argsort((expected["row"] + expected["col"]).to_numpy().astype(str))
        np.testing.assert_array_equal(back.data[np.argsort(key)], expected["value"].to_numpy()[order])

    return partial(Observed.from_long_frame, frame, row="row", col="col", value="value", duplicates="last"), check


@case("table checked", small=SMALL, large=LARGE)
def checked(n, d):
    """The door: indices sorted, unique and within the columns, values finite."""
    rows = table(n, d)
    return partial(Observed, rows.indptr, rows.indices, rows.values, (n, d)), partial(same_table, rows)


@case("columns", small={"n": 500, "d": 60}, large={"n": 200_000, "d": 500})
def columns(n, d, observed=20):
    made = low_rank(n, d, 5, observed)[0]
    parts = made.indptr, made.indices, made.values

    def check(found):
        order = np.argsort(parts[1], kind="stable")
        np.testing.assert_array_equal(found.positions, order)
        np.testing.assert_array_equal(found.rows, order // observed)

    return lambda: Observed(*parts, (n, d)).columns, check


@case("table saved and loaded", small=SMALL, large=LARGE, counted=False)
def saved(n, d):
    rows, path = table(n, d), scratch() / f"{n}.observed"

    def run():
        rows.save(path)
        return Observed.load(path)

    return run, partial(same_table, rows)


@case("rows taken and joined", small=SMALL, large=LARGE, counted=False)
def cut(n, d):
    rows = table(n, d)
    order = np.random.default_rng(0).permutation(n)
    back = np.argsort(order)

    def run():
        return Observed.vstack([rows[order[: n // 2]], rows[order[n // 2 :]]])[back]

    return run, partial(same_table, rows)


@case("rows in batches", small=SMALL, large=LARGE, counted=False)
def batched(n, d):
    rows = table(n, d)
    path = scratch() / f"{n}.rows"
    rows.save(path)

    def run():
        return sum(float(part.values.sum()) for part, _ in read_batches(path, size=1000))

    return run, lambda found: np.testing.assert_allclose(found, rows.values.sum(), rtol=1e-9)


@case("table to dense", small=SMALL, large={"n": 50_000, "d": 200}, counted=False)
def to_dense(n, d):
    rows = table(n, d)

    def check(dense):
        assert np.sum(~np.isnan(dense)) == rows.nnz
        np.testing.assert_allclose(np.nansum(dense), rows.values.sum())

    return rows.to_dense, check
