"""PETRELS and GROUSE as estimators: streams, codes, imputation, change detection, bad input."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from test_rls import table
from test_trackers import missed

from lacunar import Observed
from lacunar.lowrank import GROUSE, PETRELS
from lacunar.persistence import load_model, save_model

TRACKERS = [
    PETRELS(4, random_state=0),
    PETRELS(4, state="shared", forget="window", random_state=0),
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


@pytest.mark.parametrize("tracker", [PETRELS(3, random_state=0), GROUSE(3, random_state=0)], ids=repr)
def test_a_failed_step_changes_nothing(tracker):
    X, _, _, _ = table(100, 30, 3, 0.5)
    tracker.fit(X)
    before = pickle.dumps({k: v for k, v in vars(tracker).items() if k.endswith("_")})
    bad = X[:5].copy()
    bad[3] *= 1e200
    for wrong, message in (
        (bad, "row 3"),
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
    for tracker in (PETRELS(3, random_state=0), PETRELS(3, state="shared", random_state=0), GROUSE(3, random_state=0)):
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
        ({"state": "none"}, "state"),
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
