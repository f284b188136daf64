import numpy as np

from lacunar import Observed


def test_columns_transpose():
    X = np.array([[1.0, np.nan, 0.0], [np.nan, np.nan, np.nan], [2.0, 3.0, np.nan]])
    obs = Observed.from_dense(X)
    cols = obs.columns
    np.testing.assert_array_equal(cols.indptr, [0, 2, 3, 4])
    np.testing.assert_array_equal(cols.rows, [0, 2, 2, 0])
    np.testing.assert_array_equal(obs.values[cols.positions], [1, 2, 3, 0])
