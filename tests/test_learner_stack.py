"""Stacks and low-rank completion: they recover what is recoverable, and the combination follows the better member."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils import get_tags

from lacunar import KarmaRegressorCV, Observed
from lacunar.learner import KarmaStackClassifier, KarmaStackRegressor
from lacunar.lowrank import LowRankImputer


def at_random(n=500, d=20, rank=4, share=0.7, seed=0):
    """A low-rank table whose entries are missing at random: completion's case."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    y = X @ rng.normal(size=d)
    holes = np.where(rng.random(X.shape) < share, X, np.nan)
    return holes, y / y.std(), X


def panels(n=500, seed=0):
    """Rows seen in one of three panels, y another function in each: KARMA's case."""
    rng = np.random.default_rng(seed)
    X, panel = rng.normal(size=(n, 12)), rng.integers(3, size=n)
    weights = rng.normal(size=(3, 12))
    seen = np.array([[j // 4 == p or j // 4 == (p + 1) % 3 for j in range(12)] for p in range(3)])[panel]
    y = np.where(seen, X * weights[panel], 0).sum(axis=1)
    return np.where(seen, X, np.nan), y / y.std()


def error(model, X, y):
    return np.mean((model.fit(X[:350], y[:350]).predict(X[350:]) - y[350:]) ** 2)


def test_completion_recovers_a_low_rank_table():
    holes, _, X = at_random()
    made = LowRankImputer(4, random_state=0).fit_transform(holes)
    seen = ~np.isnan(holes)
    np.testing.assert_array_equal(made[seen], holes[seen])
    assert np.mean((made - X)[~seen] ** 2) < 0.05 * np.var(X)


def test_rank_is_chosen_by_hidden_cells():
    full, _, X = at_random(n=600, rank=10, share=0.7)
    chosen = LowRankImputer(random_state=0).fit(full)
    assert 10 <= len(chosen.components_) <= 19
    missing = np.isnan(full)
    small = LowRankImputer(4, random_state=0).fit_transform(full)
    assert np.mean((chosen.transform(full) - X)[missing] ** 2) < 0.2 * np.mean((small - X)[missing] ** 2)
    ranks, errors = chosen.rank_errors_.T
    assert len(chosen.components_) <= ranks[np.argmin(errors)]
    assert errors[list(ranks).index(len(chosen.components_))] < 1.1 * errors.min()
    noisy = at_random(n=80, rank=2, share=0.3)[0] + np.random.default_rng(1).normal(size=(80, 20))
    assert len(LowRankImputer(random_state=0).fit(noisy).components_) <= 4
    again = LowRankImputer(random_state=0).fit(full)
    np.testing.assert_array_equal(again.components_, chosen.components_)


def test_completion_of_degenerate_tables():
    holes, _, _ = at_random(n=30)
    holes[:, 3], holes[4], holes[:, 5] = np.nan, np.nan, 2.0
    made = LowRankImputer(50, random_state=0).fit_transform(Observed.from_dense(holes))
    assert np.isfinite(made).all()
    np.testing.assert_array_equal(made[:, 3], 0)
    np.testing.assert_allclose(made[:, 5], 2.0)


@pytest.mark.parametrize("case", [at_random, panels])
def test_the_stack_is_near_the_better_member(case):
    X, y, *_ = case()
    members = {"stack": KarmaStackRegressor(), "karma": KarmaRegressorCV()}
    errors = {name: error(model, X, y) for name, model in members.items()}
    stack = members["stack"]
    alone = stack.named_estimators_["completion"].predict(X[350:])
    errors["completion"] = np.mean((alone - y[350:]) ** 2)
    assert (errors["completion"] < errors["karma"]) == (case is at_random)
    assert errors["stack"] < 1.1 * min(errors["karma"], errors["completion"])
    assert (stack.final_estimator_.coef_ >= 0).all()


def test_labels_other_members_and_containers():
    X, y, _ = at_random(n=200)
    labels = np.where(y > 0, "high", "low")
    model = KarmaStackClassifier().fit(X[:150], labels[:150])
    assert model.score(X[150:], labels[150:]) > 0.8
    np.testing.assert_array_equal(model.predict(Observed.from_dense(X)), model.predict(X))
    assert model.predict_proba(X[:3]).shape == (3, 2)
    more = [("karma", KarmaRegressorCV()), ("trees", HistGradientBoostingRegressor(max_iter=20))]
    assert KarmaStackRegressor(more).fit(X, y).named_estimators_.keys() == {"karma", "trees"}


@pytest.mark.parametrize("stack", [KarmaStackClassifier, KarmaStackRegressor])
def test_default_members_are_members(stack):
    X, y, _ = at_random(n=120)
    y = y > 0 if stack is KarmaStackClassifier else y
    model = stack()
    assert set(model.named_estimators) == {"karma", "completion"}
    assert get_tags(model).input_tags.sparse
    assert get_tags(model).input_tags.allow_nan
    model.fit(X, y)
    assert model.estimators is None
    prefix = stack.__name__.lower()
    assert list(model.get_feature_names_out()) == [f"{prefix}_karma", f"{prefix}_completion"]
    assert model.transform(X).shape == (120, 2)
    np.testing.assert_array_equal(model.predict(Observed.from_dense(X).to_scipy()), model.predict(X))


@pytest.mark.parametrize("stack", [KarmaStackClassifier, KarmaStackRegressor])
def test_weights_reach_the_members(stack):
    X, y, _ = at_random(n=160)
    y[80:] = -y[80:]  # a second half that says the opposite
    labels = (y > 0) if stack is KarmaStackClassifier else y
    weight = np.where(np.arange(160) < 80, 1.0, 1e-3)
    plain, weighted = stack().fit(X, labels), stack().fit(X, labels, sample_weight=weight)
    for name in ("karma", "completion"):
        first, second = (m.named_estimators_[name].score(X[:80], labels[:80]) for m in (plain, weighted))
        assert second > first + 0.1, name
