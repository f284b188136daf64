"""Subspaces: sums over pairs of columns, POPCA in all its forms, codes of rows."""

from functools import partial

import numpy as np

from bench.hot import case
from bench.hot.data import dense_and_mask, low_rank
from lacunar.lowrank import POPCA, column_pair_sums
from lacunar.papers.subspace import PrintedPOPCA


def missed(components, basis):
    """Share of the true basis (d, k) outside the learned rows (k, d)."""
    learned, true = np.linalg.qr(components.T)[0], np.linalg.qr(basis)[0]
    return 1 - np.linalg.norm(learned.T @ true) ** 2 / true.shape[1]


def close_to(basis, most, model):
    share = missed(model.components_, basis)
    assert share < most, f"{share} of the subspace is missed, {most} is allowed"


@case("pair sums", small={"n": 400, "d": 40}, large={"n": 50_000, "d": 300})
def pair_sums(n, d, share=4):
    """POPCA in closed form: X^T X over rows, divided by the chance that a pair is seen together."""
    rows, _, _, _ = low_rank(n, d, 3, d // share, dtype=np.float64)

    def check(model):
        values, seen = dense_and_mask(rows)
        p = seen.mean()
        second = (values.T @ values) / n / np.where(np.eye(d, dtype=bool), p, p * p)
        expected = np.linalg.eigh(second)[1][:, -3:]
        assert missed(model.components_, expected) < 1e-9

    return lambda: PrintedPOPCA(3).fit(rows), check


SCATTER = {"n": 400, "d": 120, "observed": 6}


@case("pair sums, stripes", small=SCATTER, large={"n": 50_000, "d": 2000, "observed": 100})
@case("pair sums, bits", small={"n": 400, "d": 60, "observed": 12}, large={"n": 50_000, "d": 300, "observed": 60})
@case("pair sums, products", small={"n": 400, "d": 60, "observed": 30}, large={"n": 50_000, "d": 300, "observed": 150})
@case(
    "pair sums, by column", small={"n": 100, "d": 3200, "observed": 10}, large={"n": 20_000, "d": 8000, "observed": 80}
)
def sums(n, d, observed):
    """Products, joint counts and sums across: by density and width."""
    rows = low_rank(n, d, 3, observed, dtype=np.float64)[0]
    shift = np.linspace(-1, 1, d)

    def check(found):
        seen = rows.to_scipy()
        values, seen.data = seen.copy(), np.ones(rows.nnz)
        values.data = rows.values - shift[rows.indices]
        some = [0, d // 2, d - 1]
        for table, left, right in (
            (found.product, values, values),
            (found.counts, seen, seen),
            (found.cross, values, seen),
        ):
            np.testing.assert_allclose(table[some], (left[:, some].T @ right).toarray(), rtol=1e-9, atol=1e-9)

    return partial(column_pair_sums, rows, shift, cross=True), check


@case("fit, POPCA", small={"n": 400, "d": 40, "solver": "dense"}, large={"n": 20_000, "d": 300, "solver": "dense"})
@case(
    "fit, POPCA matrix-free",
    small={"n": 400, "d": 40, "solver": "matrix-free"},
    large={"n": 20_000, "d": 3000, "solver": "matrix-free"},
    counted=False,  # how often the rows are read is SciPy's: 2 % fewer instructions with 1.13 than with 1.17
)
def popca(n, d, solver, share=4):
    rows, _, _, basis = low_rank(n, d, 3, d // share, dtype=np.float64)
    made = partial(POPCA, 3, solver=solver, random_state=0)
    return lambda: made().fit(rows), partial(close_to, basis, 0.01)


CLOSED = {"refine": 0, "random_state": 0}


@case("fit, POPCA closed form", small={"n": 400, "d": 40}, large={"n": 50_000, "d": 300}, counted=False)
@case(
    "fit, POPCA matrix-free closed form",
    small={"n": 2000, "d": 12, "share": 2, "solver": "matrix-free"},  # so few columns that no iteration restarts
    large={"n": 20_000, "d": 5000, "solver": "matrix-free", "share": 50},
)
def closed(n, d, share=4, solver="dense"):
    rows, _, _, basis = low_rank(n, d, 3, d // share, dtype=np.float64)
    return lambda: POPCA(3, solver=solver, **CLOSED).fit(rows), partial(close_to, basis, 0.05)


@case("fit, POPCA by holdout", small={"n": 400, "d": 30}, large={"n": 10_000, "d": 100}, counted=False)
def holdout(n, d):
    rows, _, _, basis = low_rank(n, d, 3, d // 3, dtype=np.float64)

    def check(model):
        assert model.n_components_ == 3
        close_to(basis, 0.01, model)

    return lambda: POPCA("holdout", random_state=0).fit(rows), check


@case("fit, POPCA robust by rows", small={"n": 400, "d": 30}, large={"n": 20_000, "d": 200}, counted=False)
def robust(n, d):
    """Every fiftieth row is a hundred times too large."""
    rows, _, _, basis = low_rank(n, d, 3, d // 3, dtype=np.float64)
    loud = np.repeat(np.where(np.arange(n) % 50, 1.0, 100.0), rows.row_counts)
    wrong = rows.with_values(rows.values * loud)
    return lambda: POPCA(3, robust="rows", random_state=0).fit(wrong), partial(close_to, basis, 0.05)


@case("stream, POPCA", small={"n": 1000, "d": 40, "batches": 4}, large={"n": 50_000, "d": 300}, counted=False)
def popca_stream(n, d, batches=20):
    """Batches, every other one to another model, and the two merged: the closed form of all rows."""
    rows = low_rank(n, d, 3, d // 4, dtype=np.float64)[0]
    parts = [rows[k::batches] for k in range(batches)]

    def run():
        left, right = POPCA(3, **CLOSED), POPCA(3, **CLOSED)
        for k in range(0, batches, 2):
            left.partial_fit(parts[k])
            right.partial_fit(parts[k + 1])
        return left.merge(right)

    def check(model):
        assert missed(model.components_, POPCA(3, **CLOSED).fit(rows).components_.T) < 1e-9

    return run, check


@case("POPCA imputes and scores", small={"n": 200, "d": 40}, large={"n": 20_000, "d": 300}, counted=False)
def imputed(n, d, share=4):
    rows, _, codes, basis = low_rank(n, d, 3, d // share, dtype=np.float64)
    model = POPCA(3, random_state=0).fit(rows)

    def check(found):
        filled, score = found
        whole = codes @ basis.T
        assert np.mean((filled - whole) ** 2) < 0.1 * np.mean(whole**2)
        assert np.isfinite(score)

    return lambda: (model.impute(rows), model.score(rows)), check


@case("row codes", small={"n": 200, "d": 60, "rank": 8}, large={"n": 20_000, "d": 400, "rank": 16})
@case("row codes, 32", small={"n": 200, "d": 100, "rank": 32}, large={"n": 10_000, "d": 400, "rank": 32})
@case(
    "row codes beyond 64 directions",
    small={"n": 3000, "d": 160, "rank": 70, "some": 50},
    large={"n": 10_000, "d": 400, "rank": 70},
    counted=False,
)
def row_codes(n, d, rank, share=2, some=None):
    rows = low_rank(n, d, rank, d // share, noise=0.0, dtype=np.float64)[0]
    model = PrintedPOPCA(rank).fit(rows)

    def check(codes):
        values, seen = dense_and_mask(rows)
        for i in range(5):
            o = seen[i] > 0
            expected = np.linalg.lstsq(model.components_[:, o].T, values[i, o], rcond=None)[0]
            np.testing.assert_allclose(codes[i], expected, rtol=1e-6, atol=1e-8)

    return partial(model.transform, rows[:some]), check
