"""The trackers of the core: GROUSE and PETRELS with a shared correlation, against their slow twins."""

import numpy as np
import pytest
from reference.slrm import grouse, shared_petrels
from test_rls import DELTA, table

from lacunar import Observed, _core


def run_grouse(X, U, damping=1.0, ridge=0.0, dtype=np.float64):
    d, rows = U.shape[1], Observed.from_dense(X.astype(dtype))
    state = (U.copy(), np.eye(d), np.eye(d), np.zeros(_core.RLS_CLOCK))
    residual = np.zeros(len(X))
    entries, order = (rows.indptr, rows.indices, rows.values), np.arange(len(X))
    stopped = _core.grouse_pass(*entries, order, damping, ridge, *state, residual)
    return state[0] @ state[1], residual, stopped


class Shared:
    """A tracker with one correlation for all columns."""

    def __init__(self, U, **options):
        D, d = U.shape
        self.v, self.inverse, self.w = U.copy(), DELTA * np.eye(d), np.zeros(d)
        self.count, self.discount, self.sums = np.zeros(D), np.zeros(D), np.zeros(_core.SHARED_SUMS)
        self.codes, self.labelled, self.clock = np.zeros((d, d)), np.zeros(d), np.zeros(_core.RLS_CLOCK)
        plain = {"lam1": np.inf, "ridge": 0.0, "automatic": False, "forgetting": "fixed", "keep": 1.0}
        self.options = {**plain, "lost": 3.0, "start": 300.0, **options}

    def run(self, X, y=None):
        rows, state = Observed.from_dense(X), (self.v, self.inverse, self.count, self.discount, self.sums)
        more = (self.codes, self.labelled, self.w, self.clock)
        self.prediction, self.residual = np.zeros(len(X)), np.zeros(len(X))
        entries, order = (rows.indptr, rows.indices, rows.values), np.arange(len(X))
        return _core.shared_pass(*entries, order, y, self.options, *state, *more, self.prediction, self.residual)


def missed(U, V):
    """|(I - P_V) U|^2 / d for orthonormal U."""
    Q = np.linalg.qr(V)[0]
    return np.linalg.norm(U - Q @ (Q.T @ U)) ** 2 / U.shape[1]


@pytest.mark.parametrize("damping", [1.0, 0.2])
@pytest.mark.parametrize("shape", [(400, 60, 6, 0.5), (500, 300, 10, 0.15), (200, 20, 5, 0.8), (300, 60, 6, 0.12)])
def test_grouse_is_the_greedy_step(shape, damping):
    X, _, _, start = table(*shape)
    U, residual, stopped = run_grouse(X, start, damping)
    expected = grouse(X, start, damping)
    assert stopped == -1
    np.testing.assert_allclose(U @ U.T, expected @ expected.T, atol=1e-12)
    np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-12)
    assert ((residual >= 0) & (residual <= 1)).all()


def test_grouse_turns_by_ninety_degrees():
    U = np.eye(6)[:, :2]
    x = np.full((1, 6), np.nan)
    x[0, [0, 1, 2, 5]] = [1e-14, 2e-14, 3.0, -4.0]  # all but orthogonal to the subspace
    ours, _, _ = run_grouse(x, U)
    expected = grouse(x, U)
    np.testing.assert_allclose(ours @ ours.T, expected @ expected.T, atol=1e-12)


@pytest.mark.parametrize(("keep", "ridge"), [(1.0, 0.0), (0.99, 0.1)])
def test_shared_is_its_twin(keep, ridge):
    X, _, _, start = table(600, 50, 5, 0.4)
    ours = Shared(start, keep=keep, ridge=ridge)
    assert ours.run(X) == -1
    expected = shared_petrels(X, start, DELTA * np.eye(5), keep, ridge)
    np.testing.assert_allclose(ours.v, expected, atol=1e-9 * np.abs(expected).max())


def test_shared_finds_subspace_ridge_and_label():
    X, y, U, _ = table(6000, 80, 4, 0.3, noise=0.3)
    start = np.linalg.qr(np.random.default_rng(5).normal(size=U.shape))[0]
    ours = Shared(start, ridge=0.1, automatic=True, forgetting="window")
    ours.run(X, y)
    assert missed(U, ours.v) < 1e-2
    w = np.linalg.solve(ours.codes, ours.labelled)
    ours.w[:] = w
    before = ours.v.copy()
    ours.run(X[:500], None)  # predictions of the next rows, made before their steps
    known = ~np.isnan(y[:500])
    assert np.var(y[:500][known] - ours.prediction[:500][known]) < 0.25 * np.var(y[:500][known])
    assert np.linalg.norm(ours.v - before) > 0


def test_the_scale_of_a_long_run_does_not_drift():
    X, _, U, start = table(2000, 40, 3, 0.4, noise=0.5)
    ours = Shared(start, ridge=0.1, automatic=True, forgetting="window")
    for _ in range(20):
        assert ours.run(X) == -1
    assert 0.3 < np.linalg.norm(ours.v) / np.sqrt(3) < 3
    assert missed(U, ours.v) < 1e-2


@pytest.mark.parametrize("width", [1, 13])
def test_chunks_make_no_difference(width):
    X, y, _, start = table(1300, 40, 3, 0.4)
    options = {"ridge": 0.1, "automatic": True, "forgetting": "window"}
    whole, parts = Shared(start, **options), Shared(start, **options)
    whole.run(X, y)
    for first in range(0, 1300, width):
        parts.run(X[first : first + width], np.ascontiguousarray(y[first : first + width]))
    for name in ("v", "inverse", "count", "sums", "codes", "labelled", "clock"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_degenerate_rows_do_no_harm(dtype):
    X, _, _, start = table(100, 30, 4, 0.5)
    X[0], X[1, 2:], X[:, 5], X[2] = np.nan, np.nan, np.nan, 0.0
    U, _, stopped = run_grouse(X, start, dtype=dtype)
    assert stopped == -1
    assert np.isfinite(U).all()
    ours = Shared(start)
    assert ours.run(X) == -1
    assert np.isfinite(ours.v).all()
    X[50] *= 1e200
    assert Shared(start).run(X) == 50
    assert run_grouse(X, start)[2] == 50
