"""Every form in which a table comes, made of one array with NaN: what the tests of doors share."""

import numpy as np
import pytest
import scipy.sparse as sp

from lacunar.observed import Observed


def names_of(X):
    return [f"x{j}" for j in range(X.shape[1])]


def every_other_cell(X):
    """The cells as every second row and column of a larger array."""
    larger = np.full((2 * X.shape[0], 2 * X.shape[1]), 7.0)
    larger[::2, ::2] = X
    return larger[::2, ::2]


def read_only(X):
    copy = X.copy()
    copy.flags.writeable = False
    return copy


def masked(X):
    """Numbers under the mask that would change every answer if they counted."""
    return np.ma.masked_array(np.where(np.isnan(X), 123.0, X), np.isnan(X))


def pandas(X):
    return pytest.importorskip("pandas").DataFrame(X, columns=names_of(X))


def pandas_of_arrow(X):
    pytest.importorskip("pyarrow")
    return pandas(X).astype("Float64").astype("float64[pyarrow]")


def polars(X):
    return pytest.importorskip("polars").DataFrame(columns_of(X))


def arrow(X):
    return pytest.importorskip("pyarrow").table(columns_of(X))


def columns_of(X):
    """Lists of numbers and None by name."""
    return {
        name: [None if np.isnan(v) else float(v) for v in column] for name, column in zip(names_of(X), X.T, strict=True)
    }


def sparse(X, container, width):
    """A sparse matrix that stores what is observed, with index arrays of this width."""
    rows, columns = np.nonzero(~np.isnan(X))
    table = container((X[rows, columns], (rows, columns)), shape=X.shape)
    if table.format == "coo" and hasattr(table, "coords"):
        table.coords = tuple(numbers.astype(width) for numbers in table.coords)
    for name in ("row", "col") if table.format == "coo" else ("indptr", "indices"):
        if table.format != "coo" or not hasattr(table, "coords"):
            setattr(table, name, getattr(table, name).astype(width))
    return table


def of_scipy(container, width):
    return lambda X: sparse(X, container, width)


CONTAINERS = (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.coo_array, sp.coo_matrix)
FRAMES = {
    "pandas": pandas,
    "pandas, nullable": lambda X: pandas(X).astype("Float64"),
    "pandas of Arrow": pandas_of_arrow,
    "polars": polars,
    "Arrow": arrow,
}
ARRAYS = {
    "float32": lambda X: X.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "every other cell": every_other_cell,
    "read-only": read_only,
    "masked array": masked,
}
SPARSE = {  # every format with indices of both widths
    f"{container.__name__}, {np.dtype(width)}": of_scipy(container, width)
    for container, width in zip(CONTAINERS, (np.int64, np.int32) * 3, strict=True)
}
DOORS = ARRAYS | FRAMES | SPARSE | {"Observed": Observed.from_dense}
