"""Tables with holes for the cases: rows of a subspace, each seen at the same number of columns."""

import numpy as np

from lacunar import Observed


def low_rank(n, d, rank, observed, *, noise=0.1, seed=0, dtype=np.float32):
    """Rows of a `rank`-dimensional subspace seen at `observed` of d columns, labels -1 or +1, and the basis (d, rank)."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, rank)))[0] * np.sqrt(d / rank)
    # One column of each of `observed` strata that start at a place of the row's own: distinct, and every pair of columns occurs.
    columns = np.arange(observed) * d // observed + rng.integers(0, d // observed, size=(n, observed))
    columns = np.sort((columns + rng.integers(0, d, size=(n, 1))) % d, axis=1)
    codes = rng.normal(size=(n, rank))
    values = np.einsum("nok,nk->no", basis[columns], codes) + noise * rng.normal(size=(n, observed))
    if noise:
        values = values.round(3)  # the same table whatever BLAS made the basis: instruction counts depend on it
    labels = np.where((codes[:, 0] > 0) ^ (rng.random(n) < 0.1), 1.0, -1.0)
    indptr = np.arange(0, n * observed + 1, observed, dtype=np.int64)
    rows = Observed(indptr, columns.ravel().astype(np.int32), values.ravel().astype(dtype), (n, d))
    return rows, labels, codes, basis


def dense_and_mask(rows):
    """Values with zeros for holes, and 1 where seen; both (n, d) float64."""
    dense = rows.to_dense().astype(np.float64)
    return np.nan_to_num(dense), (~np.isnan(dense)).astype(np.float64)
