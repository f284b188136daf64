"""Recursive least squares over observed entries: the compiled pass against Algorithms 1 and 2 as printed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa import decided_by
from reference.slrm import petrels, slrm, tracking_memory

from lacunar import Observed, _core
from lacunar.lowrank import PETRELS

DELTA = 10.0


def table(n, D, d, share, noise=0.1, seed=0):
    """X (n, D) with holes, y (n) with every fifth label missing, the subspace (D, d) and a start near it."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(D, d)))[0]
    A = rng.normal(size=(n, d))
    X = 3 * A @ U.T + noise * rng.normal(size=(n, D))
    X[rng.random(X.shape) > share] = np.nan
    y = A @ rng.normal(size=d)
    y[::5] = np.nan
    start = np.linalg.qr(U + 0.02 * rng.normal(size=U.shape))[0]
    return X, y, U, start


def first_pool(D, d, single):
    stride = _core.rls_stride(d, single)
    diagonal = (
        [i * (i + 3) // 2 for i in range(d)] if single else np.cumsum([0] + [i // 8 * 8 + 8 for i in range(d - 1)])
    )
    block = np.zeros(stride, np.float32 if single else np.float64)
    block[np.asarray(diagonal) + (0 if single else np.arange(d))] = DELTA
    return np.tile(block, (D, 1))


class Pass:
    """The state of one tracker and the options of the pass."""

    def __init__(self, U, w=None, *, single=False, **options):
        D, d = U.shape
        self.v, self.w = U.copy(), np.zeros(d) if w is None else w.copy()
        self.t, self.t_inverse = np.eye(d), np.eye(d)
        self.slot, self.discount = np.arange(D, dtype=np.int32), np.zeros(D)
        self.pool, self.clock = first_pool(D, d, single), np.zeros(_core.RLS_CLOCK)
        self.latent_products, self.labelled, self.labels = np.zeros((d, d)), np.zeros(d), np.zeros(1)
        plain = {"lam1": np.inf, "lam2": 0.0, "lam3": 0.0, "rho": 0.0, "constant_until": 1, "continuous": True}
        rule = {"ridge": 0.0, "automatic": False, "cap": 1e6, "delta": DELTA, "orthonormal": False}
        keeping = {"forgetting": "fixed", "keep": 1.0, "lost": 3.0, "start": 300.0}
        self.options = {**plain, **rule, **keeping, **options}

    def run(self, X, y=None):
        rows = Observed.from_dense(X)
        self.prediction, self.residual = np.zeros(len(X)), np.zeros(len(X))
        order, entries = np.arange(len(X)), (rows.indptr, rows.indices, rows.values)
        return _core.rls_pass(*entries, order, y, self.options, vars(self), self.prediction, self.residual)

    @property
    def U(self):
        return self.v @ self.t


SLRM = {"lam1": 10.0, "lam2": 1e-3, "lam3": 1e-3, "rho": 1e-2}


@pytest.mark.parametrize("shape", [(300, 60, 6, 0.5), (300, 200, 10, 0.2), (300, 40, 12, 0.8), (300, 30, 1, 0.3)])
@pytest.mark.parametrize("orthonormal", [True, False])
def test_slrm_is_the_literal_algorithm(shape, orthonormal):
    X, y, _, start = table(*shape)
    D, d = start.shape
    w = np.random.default_rng(1).normal(size=d)
    R = np.tile(DELTA * np.eye(d), (D, 1, 1))
    U, w_end, before = slrm(X, y, start, w, R, **SLRM, constant_until=100, orthonormalize=orthonormal)
    ours = Pass(start, w, **SLRM, constant_until=100, orthonormal=orthonormal)
    assert ours.run(X, y) == -1
    scale = np.abs(U @ U.T).max()
    np.testing.assert_allclose(ours.U @ ours.U.T, U @ U.T, atol=1e-10 * scale)
    np.testing.assert_allclose(ours.U @ ours.w, U @ w_end, atol=1e-10 * np.abs(U @ w_end).max())
    np.testing.assert_allclose(ours.prediction, before, rtol=1e-6, atol=1e-8 * np.abs(before).max())
    if orthonormal:
        np.testing.assert_allclose(ours.U.T @ ours.U, np.eye(d), atol=1e-12)


@pytest.mark.parametrize("orthonormal", [True, False])
@settings(max_examples=8, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 49))
def test_rows_with_fewer_entries_than_directions_get_the_shortest_code(seed, orthonormal):
    """The shortest code that step 5 allows, in U's coordinates: U = V T is kept with any T."""
    rng = np.random.default_rng(seed)
    D, d, n = rng.integers((15, 3, 80), (60, 13, 200))
    X, y, _, start = table(n, D, d, min(1.2 * d / D, 0.9), seed=seed)
    assert ((~np.isnan(X)).sum(axis=1) < d).any()
    w, R = rng.normal(size=d), np.tile(DELTA * np.eye(d), (D, 1, 1))
    U, w_end, _ = slrm(X, y, start, w, R, **SLRM, constant_until=100, orthonormalize=orthonormal)
    ours = Pass(start, w, **SLRM, constant_until=100, orthonormal=orthonormal)
    assert ours.run(X, y) == -1
    np.testing.assert_allclose(ours.U, U, atol=1e-8 * np.abs(U).max())
    np.testing.assert_allclose(ours.w, w_end, atol=1e-8 * np.abs(w_end).max())


@pytest.mark.parametrize(("schedule", "continuous"), [("mairal", True), ("literal", False)])
def test_step_sizes_of_the_label_weights(schedule, continuous):
    X, y, _, start = table(200, 40, 5, 0.6)
    w, R = np.ones(5), np.tile(DELTA * np.eye(5), (40, 1, 1))
    _, expected, _ = slrm(X, y, start, w, R, **SLRM, constant_until=20, schedule=schedule)
    ours = Pass(start, w, **SLRM, constant_until=20, continuous=continuous, orthonormal=True)
    ours.run(X, y)
    np.testing.assert_allclose(ours.w, expected, rtol=1e-9)


@pytest.mark.parametrize(("forget", "ridge"), [(1.0, 0.0), (0.98, 0.1), (0.9, 1.0)])
def test_petrels_with_lazy_forgetting_discounts_every_column(forget, ridge):
    X, _, _, start = table(300, 40, 5, 0.4)
    expected = petrels(X, start, np.tile(DELTA * np.eye(5), (40, 1, 1)), forget, ridge)
    ours = Pass(start, keep=forget, ridge=ridge, cap=1e300)
    ours.run(X)
    np.testing.assert_allclose(ours.v, expected, atol=1e-9 * np.abs(expected).max())


def test_single_precision_state_stays_close():
    X, y, _, start = table(600, 60, 9, 0.5)
    pair = [Pass(start, **SLRM, constant_until=100, orthonormal=True, single=single) for single in (False, True)]
    for each in pair:
        each.run(X, y)
    np.testing.assert_allclose(pair[1].U @ pair[1].U.T, pair[0].U @ pair[0].U.T, atol=1e-5)


def test_chunks_make_no_difference():
    X, y, _, start = table(300, 50, 4, 0.5)
    options = {**SLRM, "constant_until": 100, "orthonormal": True, "forgetting": "window"}
    whole, parts = Pass(start, **options), Pass(start, **options)
    whole.run(X, y)
    for first in range(0, 300, 7):
        parts.run(X[first : first + 7], np.ascontiguousarray(y[first : first + 7]))
    for name in ("v", "t", "w", "pool", "clock"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


def test_labels_without_weight_change_nothing_but_w():
    X, y, _, start = table(200, 40, 5, 0.5)
    blind, seeing = Pass(start), Pass(start, lam1=1e14, lam2=0.0, lam3=0.0, rho=1e-3)
    blind.run(X)
    seeing.run(X, y)
    np.testing.assert_allclose(seeing.v, blind.v, atol=1e-10)


@pytest.mark.parametrize("single", [False, True])
def test_a_long_run_with_forgetting_stays_finite_and_orthonormal(single):
    X, _, U, start = table(2000, 30, 4, 0.5, noise=0.05)
    tracker = Pass(start, keep=0.95, ridge=1e-3, orthonormal=True, single=single)
    for _ in range(50):
        assert tracker.run(X) == -1
    assert tracker.clock[0] == 100_000
    np.testing.assert_allclose(tracker.U.T @ tracker.U, np.eye(4), atol=1e-10)
    assert np.linalg.norm(U - tracker.U @ (tracker.U.T @ U)) ** 2 / 4 < 1e-2


def test_memories_follow_a_change():
    first, second = table(1500, 60, 4, 0.4, 0.01, seed=1), table(300, 60, 4, 0.4, 0.01, seed=2)
    errors = []
    for forget in ("auto", 1.0):
        tracker = PETRELS(4, forget=forget, init=first[3].T).fit(first[0]).partial_fit(second[0])
        U, Q = second[2], tracker.components_
        errors.append(np.linalg.norm(U - Q.T @ (Q @ U)) ** 2 / 4)
    assert errors[0] < 1e-3 < errors[1]


def test_degenerate_rows():
    X, y, _, start = table(60, 30, 6, 0.5)
    X[3] = np.nan  # nothing observed
    X[4] = np.where(np.arange(30) < 2, 1.0, np.nan)  # fewer entries than directions
    X[:, 7] = np.nan  # never observed
    ours = Pass(start, **SLRM, constant_until=10, orthonormal=True)
    assert ours.run(X, y) == -1
    assert ours.clock[0] == 59  # the empty row is no step
    assert ours.clock[5] >= 1  # singular rows are counted
    assert np.isfinite(ours.U).all()


def test_a_row_beyond_the_floats_stops_the_pass():
    X, y, _, start = table(20, 30, 3, 0.8)
    X[11] *= 1e200
    ours = Pass(start, **SLRM, constant_until=10, orthonormal=True)
    assert ours.run(X, y) == 11
    assert np.isfinite(ours.v).all()


def decided():
    """Values for `test_instruction_sets_agree`, which another process makes, too."""
    X, y, _, start = table(100, 40, 11, 0.6)
    one = Pass(start, **SLRM, constant_until=20, orthonormal=True)
    one.run(X, y)
    return one.U @ one.w


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["base", "v3"])
def test_instruction_sets_agree(isa):
    np.testing.assert_allclose(decided_by(isa, __file__), decided(), atol=1e-9)


def test_arrays_that_do_not_fit_are_refused():
    X, _, _, start = table(5, 30, 3, 0.8)
    ours = Pass(start)
    ours.clock = np.zeros(2)
    with pytest.raises(ValueError, match="clock has 2"):
        ours.run(X)
    with pytest.raises(ValueError, match="rank"):
        _core.rls_stride(_core.RLS_MOST_RANK + 1, single=False)


def test_memories_are_their_twin():
    """The factors of every row, the weights and the basis, before and after a change of the subspace."""
    first, second = table(300, 40, 3, 0.5, 0.05, seed=1), table(150, 40, 3, 0.5, 0.05, seed=2)
    X, start = np.vstack([first[0], second[0]]), first[3]
    U, keeps, weights = tracking_memory(X, start, DELTA, 1e-3)
    ours, logs = PETRELS(3, init=start.T, delta=DELTA), [0.0]
    for row in X:
        ours.partial_fit(row[None])
        logs.append(ours.state_["clock"][1])
    np.testing.assert_allclose(np.exp(np.diff(logs)), keeps, rtol=1e-6)
    np.testing.assert_allclose(np.exp(ours.state_["memory_lines"][2]), weights, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(ours.state_["v"], U, atol=1e-7 * np.abs(U).max())
    assert keeps[20:300].min() > 0.8 > keeps[300:].min()
