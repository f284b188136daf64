import numpy as np

from lacunar import Observed


def test_columns_transpose():
    X = np.array([[1.0, np.nan, 0.0], [np.nan, np.nan, np.nan], [2.0, 3.0, np.nan]])
    obs = Observed.from_dense(X)
    cols = obs.columns
    np.testing.assert_array_equal(cols.indptr, [0, 2, 3, 4])
    np.testing.assert_array_equal(cols.rows, [0, 2, 2, 0])
    np.testing.assert_array_equal(obs.values[cols.positions], [1, 2, 3, 0])


def test_squared_row_sums():
    from lacunar import _linalg

    rng = np.random.default_rng(0)
    Q, D = np.asfortranarray(rng.normal(size=(7, 5))), np.asfortranarray(rng.normal(size=(5, 3)))
    out = np.empty((3, 7))
    _linalg.squared_row_sums(Q, D, out, np.empty((4, 5), order="F"))
    np.testing.assert_allclose(out, ((Q * Q) @ D).T, rtol=1e-13)
