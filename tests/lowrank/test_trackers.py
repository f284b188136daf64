"""PETRELS and GROUSE: the passes of the core against their slow twins, and the estimators: streams, codes, imputation, bad input."""

import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from reference.slrm import code, grouse, modified_petrels, screened, shared_petrels
from sklearn.base import clone
from test_rls import DELTA, table

from lacunar import Observed, _core
from lacunar.lowrank import GROUSE, PETRELS
from lacunar.persistence import load_model, save_model


def run_grouse(X, U, damping=1.0, ridge=0.0, dtype=np.float64):
    d, rows = U.shape[1], Observed.from_dense(X.astype(dtype))
    state = {"v": U.copy(), "t": np.eye(d), "t_inverse": np.eye(d), "clock": np.zeros(_core.RLS_CLOCK)}
    prediction, residual = np.zeros(len(X)), np.zeros(len(X))
    entries, order = (rows.indptr, rows.indices, rows.values), np.arange(len(X))
    stopped = _core.grouse_pass(*entries, order, {"damping": damping, "ridge": ridge}, state, prediction, residual)
    return state["v"] @ state["t"], residual, stopped


class Shared:
    """A tracker with one correlation for all columns."""

    def __init__(self, U, **options):
        D, d = U.shape
        self.v, self.inverse, self.w = U.copy(), DELTA * np.eye(d), np.zeros(d)
        self.count, self.discount, self.sums = np.zeros(D), np.zeros(D), np.zeros(_core.SHARED_SUMS)
        self.latent_products, self.labelled, self.clock = np.zeros((d, d)), np.zeros(d), np.zeros(_core.RLS_CLOCK)
        plain = {"lam1": np.inf, "ridge": 0.0, "automatic": False, "forgetting": "fixed", "keep": 1.0}
        self.options = {**plain, "lost": 3.0, "start": 300.0, **options}

    def run(self, X, y=None):
        rows, order = Observed.from_dense(X), np.arange(len(X))
        self.prediction, self.residual = np.zeros(len(X)), np.zeros(len(X))
        entries = (rows.indptr, rows.indices, rows.values)
        return _core.shared_pass(*entries, order, y, self.options, vars(self), self.prediction, self.residual)


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


@pytest.mark.parametrize(
    "row",
    [[3.0, -4.0], [2.0], [3.0, 4.0, 0.0], [0.0, 0.0], [0.0, 0.0, 5.0], [np.nan]],
    ids=["in the subspace", "fewer entries than the rank", "more than the rank", "zeros", "orthogonal", "nothing seen"],
)
def test_grouse_makes_no_step_without_a_residual_or_a_code(row):
    """Numbers of which every product and sum is exact; and the row after it finds the subspace as it was."""
    U = np.eye(6)[:, :2]
    x = np.full((2, 6), np.nan)
    x[0, : len(row)] = row
    ours, residual, _ = run_grouse(x[:1], U)
    np.testing.assert_array_equal(ours, U)
    np.testing.assert_array_equal(grouse(x[:1], U), U)
    assert residual[0] == (1.0 if row[-1] == 5 else 0.0)
    x[1, [0, 2, 5]] = [1.0, 2.0, 2.0]
    np.testing.assert_allclose(run_grouse(x, U)[0], run_grouse(x[1:], U)[0], rtol=0, atol=1e-15)


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
    w = np.linalg.solve(ours.latent_products, ours.labelled)
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
    for name in ("v", "inverse", "count", "sums", "latent_products", "labelled", "clock"):
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


TRACKERS = [
    PETRELS(4, random_state=0),
    PETRELS(4, correlation="shared", random_state=0),
    PETRELS(4, correlation="shared", forget="window", random_state=0),
    PETRELS(4, precision="float32", forget=0.99, init="random", random_state=0),
    GROUSE(4, damping=0.5, random_state=0),
]


@pytest.mark.parametrize("tracker", TRACKERS, ids=repr)
def test_the_subspace_is_found_and_holes_are_filled(tracker):
    X, _, U, _ = table(3000, 50, 4, 0.4, noise=0.05)
    tracker.fit(X)
    assert missed(U, tracker.components_.T) < 1e-2
    np.testing.assert_allclose(tracker.components_ @ tracker.components_.T, np.eye(4), atol=1e-10)
    made, codes = tracker.impute(X[:100]), tracker.transform(X[:100])
    known = ~np.isnan(X[:100])
    np.testing.assert_array_equal(made[known], X[:100][known])
    np.testing.assert_allclose(tracker.inverse_transform(codes)[~known], made[~known])
    assert tracker.score_samples(X[-200:]).mean() < 0.05
    assert tracker.residual_ < 0.05


@pytest.mark.parametrize("tracker", TRACKERS, ids=repr)
def test_how_a_stream_is_split_makes_no_difference(tracker):
    X, _, _, start = table(400, 30, 4, 0.5)
    whole = clone(tracker).set_params(init=start.T).fit(X)
    parts = clone(tracker).set_params(init=start.T)
    for first in range(0, 400, 37):
        parts.partial_fit(X[first : first + 37])
    one = clone(tracker).set_params(init=start.T)
    for row in X:
        one.partial_fit(row[None])
    for other in (parts, one):
        np.testing.assert_array_equal(other.components_, whole.components_)
        assert other.residual_ == pytest.approx(whole.residual_)
        assert other.n_samples_seen_ == 400


@pytest.mark.parametrize("tracker", TRACKERS, ids=repr)
def test_containers_and_saved_models_go_on_the_same(tracker, tmp_path):
    X, _, _, _ = table(300, 30, 4, 0.5)
    rows = Observed.from_dense(X)
    for form in (rows, sp.csr_array(rows.to_scipy()), sp.csc_matrix(rows.to_scipy())):
        np.testing.assert_array_equal(tracker.fit(form).components_, tracker.fit(X).components_)
    save_model(tracker, tmp_path / "tracker.lacunar")
    again = load_model(tmp_path / "tracker.lacunar").partial_fit(X[:50])
    np.testing.assert_array_equal(again.components_, tracker.partial_fit(X[:50]).components_)
    copy = pickle.loads(pickle.dumps(tracker)).partial_fit(X[50:90])
    np.testing.assert_array_equal(copy.components_, tracker.partial_fit(X[50:90]).components_)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_codes_do_not_depend_on_threads(n_jobs):
    X, _, _, _ = table(1000, 30, 4, 0.5)
    tracker = PETRELS(4, random_state=0).fit(X)
    codes = tracker.transform(X)
    np.testing.assert_array_equal(tracker.set_params(n_jobs=n_jobs).transform(X), codes)


def test_a_change_is_seen_and_followed():
    first, second = table(1500, 60, 4, 0.4, 0.01, seed=1), table(600, 60, 4, 0.4, 0.01, seed=2)
    tracker = PETRELS(4, random_state=0).fit(first[0])
    before = tracker.score_samples(first[0][-100:]).mean()
    assert tracker.score_samples(second[0][:100]).mean() > 50 * before
    tracker.partial_fit(second[0])
    assert missed(second[2], tracker.components_.T) < 1e-3


@pytest.mark.parametrize(
    "tracker",
    [PETRELS(3, random_state=0), PETRELS(3, correlation="shared", random_state=0), GROUSE(3, random_state=0)],
    ids=repr,
)
def test_a_refused_batch_changes_nothing(tracker):
    X, _, _, _ = table(100, 30, 3, 0.5)
    tracker.fit(X)
    before = pickle.dumps({k: v for k, v in vars(tracker).items() if k.endswith("_")})
    for wrong, message in (
        (X[:, :7], "7 features"),
        (np.where(np.isnan(X), np.inf, X), "infinity|inf"),
    ):
        with pytest.raises(ValueError, match=message):
            tracker.partial_fit(wrong)
        assert pickle.dumps({k: v for k, v in vars(tracker).items() if k.endswith("_")}) == before
    tracker.partial_fit(X[:5])


def test_a_row_that_brings_one_new_column():
    tracker, row = PETRELS(1, init="random", random_state=0), np.full((1, 5), np.nan)
    for j in (0, 3, 1):
        row[:] = np.nan
        row[0, j] = 1.0
        tracker.partial_fit(row)
    assert tracker.n_samples_seen_ == 3


def test_degenerate_streams():
    X, _, _, _ = table(60, 20, 3, 0.5)
    X[:, 5], X[:, 6] = np.nan, 4.0
    X[2] = np.nan
    for tracker in (
        PETRELS(3, random_state=0),
        PETRELS(3, correlation="shared", random_state=0),
        GROUSE(3, random_state=0),
    ):
        tracker.fit(X)
        assert np.isfinite(tracker.components_).all()
        np.testing.assert_allclose(tracker.components_[:, 5], 0, atol=1e-8)
        np.testing.assert_array_equal(tracker.transform(X[2:3]), 0)
        assert tracker.score_samples(X[2:3]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 21}, "at most the number of columns"),
        ({"n_components": 0}, "n_components"),
        ({"forget": 1.5}, "forget"),
        ({"init": np.ones((2, 2))}, "init must have shape"),
        ({"correlation": "none"}, "correlation"),
    ],
)
def test_bad_parameters_are_named(options, message):
    X, _, _, _ = table(30, 20, 3, 0.5)
    with pytest.raises(ValueError, match=message):
        PETRELS(**{"n_components": 3, **options}).fit(X)


def test_more_directions_than_the_core_takes():
    with pytest.raises(ValueError, match="at most 64"):
        PETRELS(65).fit(np.random.default_rng(0).normal(size=(100, 80)))


@pytest.mark.parametrize("make", [PETRELS, GROUSE])
def test_the_default_dimension_fits_the_table(make):
    rng = np.random.default_rng(0)
    for D, k in ((1, 1), (4, 3), (11, 10), (30, 10)):
        assert make(random_state=0).fit(rng.normal(size=(40, D))).components_.shape == (k, D)
    assert make(init=np.eye(2, 6), random_state=0).fit(rng.normal(size=(40, 6))).components_.shape == (2, 6)


@pytest.mark.parametrize("d", [1, 3, 8, 11])
def test_every_memory_learns_a_row_by_recursive_least_squares(d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(22, d)) @ rng.normal(size=(d, 50)) + 0.1 * rng.normal(size=(22, 50))
    X[rng.random(X.shape) < 0.4] = np.nan
    tracker = PETRELS(d, init="random", random_state=0).partial_fit(X[:-1])
    before = {name: np.copy(value) for name, value in tracker.state_.items() if name != "options"}
    after = tracker.partial_fit(X[-1:]).state_
    columns = np.flatnonzero(~np.isnan(X[-1]))
    V, x = before["v"][columns], X[-1, columns]
    a = np.linalg.solve(V.T @ V + 1e-3 * np.eye(d), V.T @ x)
    for m, factor in enumerate([0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 1.0]):
        rows, unit = before["memory_lines"][:2, m]
        share = min(factor, max(2 * before["memory_rows"][0] / rows, 0.5))
        rows, unit = share * rows + 1, share * unit
        R_inverse = before["memory_inverse"][:, :, m]
        expected = np.linalg.inv(share * np.linalg.inv(R_inverse) + np.outer(a, a))
        np.testing.assert_allclose(after["memory_inverse"][:, :, m], expected, rtol=1e-7, atol=1e-12)
        gain = R_inverse @ a / share
        for j in columns[columns % _core.MEMORY_EVERY == 0]:
            place = j // _core.MEMORY_EVERY
            v, seen = before["memory_v"][place, :, m], before["memory_seen"][place, m] + 1 / unit
            share = rows / (seen * unit)
            v = v + (X[-1, j] - v @ a) * share / (1 + share * (a @ gain)) * gain
            np.testing.assert_allclose(after["memory_v"][place, :, m], v, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(after["memory_seen"][place, m], seen, rtol=1e-12)


def test_a_state_with_other_memories_is_refused():
    X, _, _, _ = table(60, 30, 3, 0.5)
    tracker = PETRELS(3, random_state=0).fit(X)
    state = tracker.state_
    tracker.state_ = {**state, **{name: state[name][:-1] for name in ("memory_v", "memory_seen")}}
    with pytest.raises(ValueError, match="8 places"):
        tracker._check_loaded()


def drifting(n, turn, noise, seed=0, D=200, d=3, share=0.3):
    """Rows of a subspace that turns by 90 degrees in `turn` rows, and its basis at every 50th row."""
    rng = np.random.default_rng(seed)
    first, second = np.split(np.linalg.qr(rng.normal(size=(D, 2 * d)))[0], 2, axis=1)
    angle, codes = np.pi / 2 / turn * np.arange(n), rng.normal(size=(n, d))
    X = np.cos(angle)[:, None] * (codes @ first.T) + np.sin(angle)[:, None] * (codes @ second.T)
    X = np.sqrt(D / d) * X + noise * rng.normal(size=X.shape)
    X[rng.random(X.shape) > share] = np.nan
    return X, [np.cos(a) * first + np.sin(a) * second for a in angle[49::50]]


def mean_missed(X, bases, **options):
    tracker, errors = PETRELS(**{"n_components": bases[0].shape[1], "random_state": 0, **options}), []
    for block, U in enumerate(bases):
        tracker.partial_fit(X[block * 50 : (block + 1) * 50])
        errors.append(missed(U, tracker.components_.T))
    return np.mean(errors[len(errors) // 5 :])


@pytest.mark.parametrize(("turn", "best"), [(500, (0.9, 0.95)), (2500, (0.95, 0.98)), (np.inf, (0.99, 1.0))])
@pytest.mark.parametrize("correlation", ["per-column", "shared"])
def test_what_is_remembered_fits_the_drift(turn, best, correlation):
    """Within a fifth of the best fixed factor, which is one of these two for that drift."""
    X, bases = drifting(2500, turn, 0.1)
    *fixed, learned = (mean_missed(X, bases, correlation=correlation, forget=f) for f in (*best, "auto"))
    assert learned < 1.2 * min(fixed)


@pytest.mark.parametrize(("correlation", "most"), [("per-column", 0.55), ("shared", 1.1)])
def test_columns_of_more_noise_do_not_pass_for_drift(correlation, most):
    """Their few entries are most of a row's errors, and are evidence of a drift as few entries are."""
    ratios = []
    for seed in range(4):
        X, bases = drifting(2000, np.inf, 0.3, seed, D=80, d=4, share=0.5)
        units = 10 ** np.random.default_rng(seed).uniform(-1.5, 1.5, 80)
        scaled = [np.linalg.qr(U * units[:, None])[0] for U in bases]
        *fixed, learned = (
            mean_missed(X * units, scaled, correlation=correlation, forget=f) for f in (0.99, 0.998, "auto")
        )
        ratios.append(learned / min(fixed))
    assert np.exp(np.mean(np.log(ratios))) < most


def test_the_ridge_of_a_stream_without_noise_vanishes():
    X, bases = drifting(2000, np.inf, 0.0)
    assert mean_missed(X, bases) < 1e-16
    assert mean_missed(X, bases, ridge=1e-3) > 1e-9


def with_outliers(n, kind="still", share=0.05, size=3.0, seed=0, D=60, d=3, seen=0.4, noise=0.05):
    """Rows with wild cells, and their basis at the end, another after half of the rows for "jump" and 50 later for "burst"."""
    rng = np.random.default_rng(seed)
    first, second = np.split(np.linalg.qr(rng.normal(size=(D, 2 * d)))[0], 2, axis=1)
    X = rng.normal(size=(n, d)) * np.sqrt(D / d) @ first.T
    if kind == "jump":
        X[n // 2 :] = rng.normal(size=(n - n // 2, d)) * np.sqrt(D / d) @ second.T
    if kind == "burst":
        angle = np.clip(np.arange(n) - n // 2, 0, 50) / 50 * np.pi / 2
        X = np.cos(angle)[:, None] * X + np.sin(angle)[:, None] * (rng.normal(size=(n, d)) * np.sqrt(D / d) @ second.T)
    X += noise * rng.normal(size=X.shape) + (rng.random(X.shape) < share) * size * rng.normal(size=X.shape)
    X[rng.random(X.shape) > seen] = np.nan
    return X, first if kind == "still" else second


ROBUST = [
    lambda **how: PETRELS(3, random_state=0, **how),
    lambda **how: PETRELS(3, correlation="shared", random_state=0, **how),
    lambda **how: GROUSE(3, damping=0.3, random_state=0, **how),
]


@pytest.mark.parametrize("make", ROBUST)
@pytest.mark.parametrize("kind", ["still", "jump"])
def test_wild_cells_are_left_out_and_a_change_is_not(make, kind):
    for seed in range(3):
        X, basis = with_outliers(1500, kind, seed=seed)
        robust, plain = (missed(basis, make(robust=how).fit(X).components_.T) for how in (True, False))
        assert robust < plain / 2 or robust < 0.003


@pytest.mark.parametrize("make", ROBUST)
@pytest.mark.parametrize("kind", ["still", "jump", "burst"])
@pytest.mark.parametrize(("seen", "noise"), [(0.4, 0.05), (0.15, 0.01)])
def test_without_wild_cells_a_robust_tracker_is_as_good(make, kind, seen, noise):
    lost = []
    for seed in range(3):
        X, basis = with_outliers(700, kind, share=0.0, seed=seed, seen=seen, noise=noise)
        X = X[:420]  # until 70 rows after the change
        robust, plain = (missed(basis, make(robust=how).fit(X).components_.T) for how in (True, False))
        lost.append(np.log(robust / plain) / 2)
    assert np.exp(np.mean(lost)) < 1.05


def test_columns_of_more_noise_are_still_learned():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(40, 2)))[0]
    X = rng.normal(size=(2000, 2)) * 6 @ basis.T + rng.normal(size=(2000, 40)) * np.where(np.arange(40) < 8, 0.5, 0.01)
    X[rng.random(X.shape) > 0.5] = np.nan
    errors = [missed(basis, PETRELS(2, robust=how, random_state=0).fit(X).components_.T) for how in (True, False)]
    assert errors[0] < 1.2 * errors[1] + 1e-6


@pytest.mark.parametrize("shape", [(80, 20, 2, 0.6), (60, 41, 8, 0.5)])
def test_what_is_left_out_is_that_of_the_twin(shape):
    X, _, start, _ = table(*shape)
    rng = np.random.default_rng(1)
    X = X + np.where(rng.random(X.shape) < 0.05, 20.0, 0.0)
    D, d = start.shape
    tracker = PETRELS(d, forget=1.0, ridge=1e-3, delta=DELTA, init=start.T, robust=True).fit(X)
    U, pool = np.linalg.qr(start)[0], np.tile(DELTA * np.eye(d), (D, 1, 1))
    deviation, in_row, level, n_cells = np.zeros(D), np.zeros(D), np.zeros(3), 0
    for x in X:
        kept = screened(x, U, deviation, in_row, level, 1e-3)
        n_cells += np.sum(~np.isnan(kept))
        seen = ~np.isnan(kept)
        if seen.any():
            modified_petrels(U, pool, seen, kept, code(U, seen, kept, 1e-3))
    assert n_cells < np.sum(~np.isnan(X)) - 10
    np.testing.assert_allclose(tracker.state_["v"], U, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(tracker.state_["deviation"], deviation, rtol=1e-9)
    np.testing.assert_array_equal(tracker.state_["left_out"], in_row)
    np.testing.assert_allclose(tracker.state_["level"], level, rtol=1e-6)


@pytest.mark.parametrize("make", ROBUST)
def test_a_robust_tracker_goes_on_the_same_when_loaded_or_split(make, tmp_path):
    X, _ = with_outliers(300)
    whole = make(robust=True).partial_fit(X[:100]).partial_fit(X[100:])
    half = make(robust=True).partial_fit(X[:100])
    save_model(half, tmp_path / "tracker.lacunar")
    loaded = load_model(tmp_path / "tracker.lacunar").partial_fit(X[100:250]).partial_fit(X[250:])
    np.testing.assert_array_equal(loaded.components_, whole.components_)
    half.state_["deviation"] = half.state_["deviation"][:-1].copy()
    with pytest.raises(ValueError, match="deviation"):
        half._check_loaded()


@pytest.mark.parametrize("make", ROBUST)
def test_rows_in_one_call_are_as_rows_one_by_one(make):
    """A short row after a long one, whose wild cells must not be seen in what the short one leaves free."""
    X, _ = with_outliers(120, size=30.0, seen=1.0)
    X[1::2, 7:] = np.nan
    whole, one_by_one = (make(robust=True).partial_fit(X[:20]) for _ in range(2))
    whole.partial_fit(X[20:])
    for row in X[20:]:
        one_by_one.partial_fit(row[None])
    np.testing.assert_array_equal(one_by_one.components_, whole.components_)


def exchanging(seed, n=3000, D=60, d=4, share=0.4):
    """Rows of noise a fifth of the energy; one of their directions is another after each 1,000. Bases of each row's time."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(D, 2 * d)))[0]
    bases = [np.column_stack([directions[:, d : d + j], directions[:, j:d]]) for j in range(n // 1000)]
    X = np.vstack([rng.normal(size=(1000, d)) * np.sqrt(D / d) @ basis.T for basis in bases])
    X += 0.5 * rng.normal(size=X.shape)
    X[rng.random(X.shape) > share] = np.nan
    return X, np.repeat(np.array(bases), 1000 // 50, axis=0)


@pytest.mark.parametrize("correlation", ["per-column", "shared"])
def test_exchanged_directions_are_found_as_by_the_best_fixed_factor(correlation):
    ratios = []
    for seed in range(3):
        X, bases = exchanging(seed)
        errors = [mean_missed(X, bases, forget=how, correlation=correlation) for how in ("auto", 0.96, 0.98, 0.99)]
        ratios.append(errors[0] / min(errors[1:]))
    assert np.exp(np.mean(np.log(ratios))) < 1.1**2  # of squared errors


def test_rows_of_new_columns_alone_do_no_harm():
    """Their codes in a basis that is all but 0 there were as long as 1 over it, and overflowed rows later."""
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(3, 40))
    X = rng.normal(size=(600, 3)) @ basis + 0.3 * rng.normal(size=(600, 40))
    X[rng.random(X.shape) > 0.6] = np.nan
    X[:300, 20:], X[300:310, :20] = np.nan, np.nan
    tracker = PETRELS(3, init=basis * np.where(np.arange(40) < 20, 1, 1e-20))
    tracker.partial_fit(X)
    assert missed(np.linalg.qr(basis.T)[0], tracker.components_.T) < 0.01


def out_in_blocks(seed, n=3000, D=60, d=4, groups=6, length=300):
    """Rows of d or d / 2 directions in turn; groups of columns are out three tenths of the time. The bases of every 50th row."""
    rng = np.random.default_rng(seed)
    basis, latent = np.linalg.qr(rng.normal(size=(D, d)))[0] * np.sqrt(D / d), rng.normal(size=(n, d))
    alive = [d if row // 600 % 2 == 0 else d // 2 for row in range(n)]
    latent *= np.arange(d) < np.array(alive)[:, None]
    X = latent @ basis.T + 0.3 * rng.normal(size=(n, D))
    out = np.repeat(rng.random((n // length, groups)) < 0.3, length, axis=0)
    X[np.repeat(out, D // groups, axis=1) | (rng.random(X.shape) > 0.6)] = np.nan
    return X, [basis[:, : alive[row]] / np.sqrt(D / d) for row in range(49, n, 50)]


def test_sensors_out_in_blocks_are_followed_nearly_as_by_the_best_fixed_factor():
    ratios = []
    for seed in (0, 1, 5):
        X, bases = out_in_blocks(seed)
        errors = [mean_missed(X, bases, n_components=4, forget=how) for how in ("auto", 0.98, 0.995, 1.0)]
        ratios.append(errors[0] / min(errors[1:]))
    assert np.exp(np.mean(np.log(ratios))) < 1.25


def test_what_is_known_of_a_column_is_never_less_than_of_a_new_one():
    """However long it is out, or however late it comes: else it would fit its first rows in all directions, noise too."""
    X, _ = exchanging(0, n=1000)
    X[:200, :10], X[100:300, 10:20] = np.nan, np.nan
    tracker = PETRELS(4, forget=0.9, delta=10.0, random_state=0)
    for start in range(0, 320, 10):
        tracker.partial_fit(X[start : start + 10])
    assert tracker.state_["pool"].max() <= 10


def test_the_scout_is_a_tracker_of_its_own():
    """With one correlation, and a factor that keeps as many rows as show a column 2.5 k times: 25 here."""
    X, _ = exchanging(0, n=1000, share=1.0)
    X[np.random.default_rng(1).random(X.shape).argsort(axis=1) >= 24] = np.nan
    both = PETRELS(4, random_state=0).fit(X)
    alone = PETRELS(4, forget=0.96, correlation="shared", ridge=1e-3, random_state=0).fit(X)
    for name in ("v", "inverse"):
        np.testing.assert_allclose(both.state_[f"scout_{name}"], alone.state_[name], rtol=1e-6, atol=1e-9)
    for name in ("scout_v", "scout_inverse", "scout_seen", "scout_line"):
        broken = {**both.state_, name: both.state_[name][:-1]}
        with pytest.raises(ValueError, match=name):
            type(both._tracker()).check(broken, (60, 4))


@pytest.mark.parametrize("correlation", ["per-column", "shared"])
def test_a_tracker_stored_before_there_were_scouts_goes_on(correlation):
    X, _ = exchanging(0, n=1000)
    tracker = PETRELS(4, correlation=correlation, random_state=0).partial_fit(X[:500])
    options = {name: value for name, value in tracker.state_["options"].items() if name != "scout"}
    kept = {name: value for name, value in tracker.state_.items() if not name.startswith("scout_")}
    tracker.state_ = {**kept, "options": options}
    tracker._check_loaded()
    assert np.isfinite(tracker.partial_fit(X[500:]).components_).all()


@pytest.mark.parametrize(
    "make", [PETRELS, partial(PETRELS, precision="float32"), partial(PETRELS, correlation="shared"), GROUSE]
)
@pytest.mark.parametrize("unit", [256.0**-4, 256.0**4])
def test_the_unit_of_the_values_does_not_matter(make, unit):
    """Not one bit for a power of 256; values about 1e-9 were learned late, and about 1e9 overflowed in float32."""
    X = exchanging(0, n=1000)[0][:300]
    X[0] = np.nan  # the first row that has values says what their unit is
    plain, scaled = (make(4, init="random", random_state=0).partial_fit(rows[:40]) for rows in (X, unit * X))
    for model, rows in ((plain, X), (scaled, unit * X)):
        model.partial_fit(rows[40:])
    np.testing.assert_array_equal(scaled.components_, plain.components_)
    np.testing.assert_array_equal(scaled.residual_, plain.residual_)
    scaled.state_ = {**scaled.state_, "options": {**scaled.state_["options"], "unit": 0.0}}
    with pytest.raises(ValueError, match="unit"):
        scaled._check_loaded()
