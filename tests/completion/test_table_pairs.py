"""table_pairs: the same pairs from every kind of table, every cell once, ids of frames."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from lacunar import Observed
from lacunar.completion import OnlineMatrixClassifier, table_pairs

TABLE = np.array([[1.0, np.nan, 0.0], [np.nan, np.nan, np.nan], [0.0, 1.0, np.nan]])
CELLS = {(0, 0, 1.0), (0, 2, 0.0), (2, 0, 0.0), (2, 1, 1.0)}
KINDS = {
    "array": TABLE,
    "list": TABLE.tolist(),
    "csr": sp.csr_array(([1.0, 0, 0, 1], ([0, 0, 2, 2], [0, 2, 0, 1])), (3, 3)),
    "csc": sp.csc_array(([1.0, 0, 0, 1], ([0, 0, 2, 2], [0, 2, 0, 1])), (3, 3)),
    "Observed": Observed.from_dense(TABLE),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_cell_once_from_every_kind_of_table(kind):
    (rows, cols), values = table_pairs(KINDS[kind], random_state=0)
    assert len(values) == 4
    assert set(zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True)) == CELLS
    again, _ = table_pairs(KINDS[kind], random_state=0)
    np.testing.assert_array_equal(rows, again[0])


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_give_their_names(kind):
    frame = pd.DataFrame(TABLE, columns=["a", "b", "c"], index=["x", "y", "z"])
    if kind != "pandas":
        frame = pl.DataFrame(TABLE, schema=["a", "b", "c"], orient="row")
        frame = frame.to_arrow() if kind == "arrow" else frame
    (rows, cols), values = table_pairs(frame, shuffle=False)
    assert cols.tolist() == ["a", "c", "a", "b"]
    assert rows.tolist() == (["x", "x", "z", "z"] if kind == "pandas" else [0, 0, 2, 2])
    np.testing.assert_array_equal(values, [1, 0, 0, 1])


def test_a_multi_index_gives_tuples():
    frame = pd.DataFrame([[1.0], [0.0]], index=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]), columns=["v"])
    assert table_pairs(frame, shuffle=False)[0][0].tolist() == [("a", 1), ("a", 2)]


def test_an_empty_table_and_what_is_refused():
    (rows, cols), values = table_pairs(np.full((2, 2), np.nan))
    assert len(rows) == len(cols) == len(values) == 0
    with pytest.raises(ValueError, match="row 0, column 1"):
        table_pairs([[1.0, np.inf]])
    with pytest.raises(TypeError, match="table_pairs"):
        OnlineMatrixClassifier().fit(KINDS["csr"], [1])
