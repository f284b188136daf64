"""Look-ahead by block Krylov spaces against trials one by one in the core."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from lacunar import _linalg
from lacunar.completion import Kernel, KernelFunction
from lacunar.completion import engine as ahead
from lacunar.completion.engine import Engine

M, N = 40, 33
RNG = np.random.default_rng(0)
POINTS, PILLARS = RNG.normal(size=(M, 2)), RNG.normal(size=(N, 2))


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    monkeypatch.setattr(ahead, "_FEWEST", 0)


def smooth():
    return tuple(KernelFunction("gaussian", points=X).begin() for X in (POINTS, PILLARS))


def low_rank():
    """Singular kernels, where pairs to come are dependent: the space of many is small."""
    return tuple(Kernel(np.cos(np.subtract.outer(X[:, 0], X[:, 0]))).begin() for X in (POINTS, PILLARS))


def stream(count, seed=0):
    rng = np.random.default_rng(seed)
    i, j = rng.integers(M, size=count), rng.integers(N, size=count)
    y = np.where(POINTS[i, 0] * PILLARS[j, 0] + 0.3 * rng.normal(size=count) > 0, 1.0, -1.0)
    return i, j, y


def in_core(engine, i, j, y, step, gamma, strict=False):
    out, updated = np.empty(len(i)), np.empty(len(i), dtype=np.uint8)
    trials = i.astype(np.int32), j.astype(np.int32), y, np.full(len(i), step)
    engine.run_in_core(*trials, gamma, strict, True, out, updated)
    return np.expm1(out), updated.astype(bool)


@pytest.mark.parametrize("sides", [smooth, low_rank])
@pytest.mark.parametrize("scale", [0.03, 1.7])
@pytest.mark.parametrize("step", [0.2, 1.0])
def test_values_decisions_and_state(sides, scale, step):
    i, j, y = stream(3000)
    looking, plain = Engine(*sides(), scale), Engine(*sides(), scale)
    start = slice(0, 150)  # some vertices have seats, some not
    for engine in (looking, plain):
        in_core(engine, i[start], j[start], y[start], step, 0.4)
    rest = slice(150, None)
    assert ahead.pays(looking, i[rest], j[rest])
    y_bar, updated = looking.run(i[rest], j[rest], y[rest], step, 0.4, values=True)
    expected, updates = in_core(plain, i[rest], j[rest], y[rest], step, 0.4)
    assert_array_equal(updated, updates)
    assert_allclose(y_bar, expected, rtol=1e-9, atol=1e-9)
    after, wanted = looking.snapshot(), plain.snapshot()
    for name in after:
        assert_allclose(after[name], wanted[name], rtol=1e-6 if name in ("bound", "trace") else 0)


def test_ties_go_to_the_core():
    i, j, y = stream(400, seed=3)
    diagonal = tuple(Kernel(np.eye(size)).begin() for size in (M, N))
    found, expected = Engine(*diagonal), Engine(*diagonal)
    y_bar, updated = found.run(i, j, y, 0.5, 0.0, values=True)
    wanted, updates = in_core(expected, i, j, y, 0.5, 0.0)
    assert (wanted == 0).sum() > 20  # untouched cells, exactly at the threshold
    assert_array_equal(updated, updates)
    assert_allclose(y_bar, wanted, atol=1e-9)


def test_one_pair_again_and_again():
    """A block of one dimension."""
    count = 100
    i, j = np.full(count, 3), np.full(count, 4)
    y = np.where(np.arange(count) % 7 == 0, -1.0, 1.0)
    found = Engine(*smooth(), 0.1).run(i, j, y, 0.3, 0.5, values=True)
    expected = in_core(Engine(*smooth(), 0.1), i, j, y, 0.3, 0.5)
    assert_array_equal(found[1], expected[1])
    assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, 1e308])
def test_not_finite(bad):
    i, j, y = stream(600)
    engine = Engine(*smooth(), 0.1)
    engine.run(i[:200], j[:200], y[:200], 0.5, 0.4)
    before = engine.snapshot()
    steps = np.full(600, 0.5)
    steps[300:] = bad
    with pytest.raises(FloatingPointError, match=r"in trial 3\d\d|pair"):
        engine.run(i, j, y, steps, 0.4, values=True)
    engine.restore(before)
    after = engine.snapshot()
    for name in before:
        assert_array_equal(before[name], after[name])
    assert np.isfinite(engine.score(0, 0))


def test_pairs_out_of_range():
    engine = Engine(*smooth())
    with pytest.raises(IndexError):
        engine.run(np.full(100, M), np.zeros(100), np.ones(100), 0.1, 0.4, values=True)


def test_block_tridiagonal_matrix():
    """x^T exp(H) x in the first block is z^T K exp(A K) z, for all pairs at once."""
    rng = np.random.default_rng(1)
    upper, lower = (0.5 * side.dense() for side in smooth())
    cells = rng.normal(size=(M, N)) * (rng.random((M, N)) < 0.1)
    i, j = (rng.integers(size, size=6).astype(np.int32) for size in (M, N))
    i[5], j[5] = i[0], j[0]  # dependent
    steps = 8
    square, first = np.empty((6 * steps, 6 * steps)), np.empty((6, 6))
    work = np.empty((5 * 6 + 12, max(M + N, 12 * 18)))
    sums = np.ascontiguousarray(cells.sum(1)), np.ascontiguousarray(cells.sum(0))
    order, shorter, begun = _linalg.block_lanczos(upper, lower, cells, *sums, i, j, steps, square, first, work)
    assert begun == 5
    assert shorter == order - 5
    K = np.block([[upper, np.zeros((M, N))], [np.zeros((N, M)), lower]])
    A = np.block([[np.diag(sums[0]), cells], [cells.T, np.diag(sums[1])]])
    theta, V = np.linalg.eigh(square[:order, :order])
    x = np.zeros((6, order))
    x[:, :begun] = first[:, :begun]
    Z = np.zeros((M + N, 6))
    Z[i, np.arange(6)] = Z[M + j, np.arange(6)] = 1
    values, vectors = np.linalg.eigh(K)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    spread, basis = np.linalg.eigh(root @ A @ root)
    exact = (basis * np.exp(spread)) @ basis.T
    assert_allclose(((x @ V) * np.exp(theta)) @ (x @ V).T, Z.T @ root @ exact @ root @ Z, atol=1e-9)


def test_nan_is_told():
    work, square, first = np.empty((42, 216)), np.empty((24, 24)), np.empty((6, 6))
    K = np.full((M, M), np.nan)
    pairs = np.arange(6, dtype=np.int32)
    form = K, K, np.zeros((M, M)), np.zeros(M), np.zeros(M)
    assert _linalg.block_lanczos(*form, pairs, pairs, 4, square, first, work) == (-1, -1, -1)
