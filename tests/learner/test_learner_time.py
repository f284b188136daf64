"""The time limit of the one learner: members are shortened rather than left out, the limit is used, and what it cost is said. The clock moves by work alone."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from lacunar import LacunarClassifier, LacunarRegressor
from lacunar._cuts import cuts_of
from lacunar._symmetric import SymmetricBoosting
from lacunar.karma import selection
from lacunar.learner import base, ensemble, members, trees, views
from lacunar.learner import regressor as regressor_module
from lacunar.learner.targets import TargetVariance
from lacunar.lowrank import posterior
from lacunar.plotting import PoolDisplay

ALL_MEMBERS = {"gaussian", "forest", "kernels", "boosting"}


def table(n, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.5 * rng.normal(size=(n, d))
    y = X[:, 0] * X[:, 1] + 0.5 * np.abs(X[:, 2]) + 0.2 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


class WorkClock:
    """A clock that only work moves: so many seconds for a fit by its rows, trees or kernel values."""

    def __init__(self, monkeypatch, slowness=1.0):
        self.now, self.slowness, self.patch = 0.0, slowness, monkeypatch.setattr
        for module in (base, ensemble, members, trees, views, selection, regressor_module, posterior):
            self.patch(module, "perf_counter", lambda: self.now)
        for kind in (HistGradientBoostingClassifier, HistGradientBoostingRegressor, SymmetricBoosting):
            self.charge_iterations(kind)
        for kind in (ExtraTreesClassifier, ExtraTreesRegressor):
            self.charge(kind, "fit", self.of_forest)
        self.charge(members, "_logistic", lambda C, rows, *args: 3e-5 * len(rows))
        self.charge(selection, "squared_errors", lambda gram, *args: 3e-9 * len(gram) ** 2.5)
        self.charge(
            selection.KernelSelection,
            "_fit_marks",
            lambda r, form, gram, trial, data, **more: 1e-8 * len(data.targets) * len(gram) ** 1.5,
        )
        self.charge(selection.KernelSelection, "_fit_all", lambda r, form, gram, *args, **more: 3e-10 * len(gram) ** 3)
        self.charge(posterior.PosteriorRidge, "_candidates", lambda r, Z, *args: 1e-4 * len(Z))
        self.charge(
            posterior.LowRankPosterior, "fit", lambda p, Z, *args, **more: 1e-6 * p.max_iter * min(len(Z), p.max_rows)
        )
        self.charge(TargetVariance, "fit", lambda t, p, Z, *args: 5e-5 * len(Z))
        self.charge(TargetVariance, "variances", lambda t, p, Z: 5e-5 * len(Z))

    def charge(self, owner, name, seconds):
        function = getattr(owner, name)

        def charged(*args, **more):
            self.now += self.slowness * seconds(*args, **more)
            return function(*args, **more)

        self.patch(owner, name, charged)

    def charge_iterations(self, kind):
        """Boosting takes time by the iterations that it has made in the end."""
        function = kind.fit

        def charged(model, X, y, **more):
            before = getattr(model, "n_iter_", 0)
            function(model, X, y, **more)
            trees = (model.n_iter_ - before) * (len(np.unique(y)) if "Classifier" in kind.__name__ else 1)
            self.now += self.slowness * trees * (1e-3 + 2e-6 * len(X))
            return model

        self.patch(kind, "fit", charged)

    def of_forest(self, model, X, y, sample_weight=None):
        return (model.n_estimators - len(getattr(model, "estimators_", ()))) * (1e-3 + 1e-5 * len(X))


def fitted(kind, n, limit, clock, **more):
    X, y = table(n + 500)
    target = np.digitize(y, [-0.5, 0.8]) if kind is LacunarClassifier else y
    began = clock.now
    with warnings.catch_warnings(record=True, action="always") as caught:
        model = kind(time_limit=limit, **more).fit(X[:n], target[:n])
    said = [str(w.message) for w in caught if "time_limit" in str(w.message)]
    return model, clock.now - began, model.score(X[n:], target[n:]), said


@pytest.mark.slow
@pytest.mark.parametrize("limit", [6.0, 20.0])
@pytest.mark.parametrize("kind", [LacunarClassifier, LacunarRegressor])
def test_the_limit_is_used_and_kept_and_no_member_is_left_out(kind, limit, monkeypatch):
    monkeypatch.setattr(base, "_AMPLE", np.inf)
    clock = WorkClock(monkeypatch, slowness=5.0)
    model, seconds, score, said = fitted(kind, 3500, limit, clock)
    assert 0.7 * limit <= seconds <= 1.1 * limit
    assert set(model.members_) >= ALL_MEMBERS
    assert score > (0.5 if kind is LacunarClassifier else 0.3)
    shortened = dict(zip(model.report_["member"], model.report_["shortened"], strict=True))
    assert shortened["boosting"]
    assert len(said) == 1
    assert all(f"{name}: {text}" in said[0] for name, text in shortened.items() if text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LacunarClassifier, LacunarRegressor])
def test_a_limit_that_is_long_enough_shortens_nothing(kind, monkeypatch):
    clock = WorkClock(monkeypatch, slowness=1e-3)
    model, _, _, said = fitted(kind, 700, 600.0, clock)
    assert set(model.report_) == {"member", "score", "weight", "seconds", "rows", "tested", "folds", "completed"}
    assert set(model.members_) >= ALL_MEMBERS
    assert not said


def answers(model, X):
    return model.predict_proba(X) if isinstance(model, LacunarClassifier) else model.predict(X)


@pytest.mark.parametrize("n", [60, 700])
@pytest.mark.parametrize("kind", [LacunarClassifier, LacunarRegressor])
def test_a_limit_far_above_the_cost_changes_no_bit(kind, n, monkeypatch):
    """Neither where it is ample by numbers, nor where the clock is watched."""
    X, y = table(n)
    target = y if kind is LacunarRegressor else np.digitize(y, [-0.5, 0.8])
    free = kind().fit(X, target)
    for ample in (base._AMPLE, np.inf):
        monkeypatch.setattr(base, "_AMPLE", ample)
        limited = kind(time_limit=1e4).fit(X, target)
        assert limited.members_ == free.members_
        np.testing.assert_array_equal(limited.weights_, free.weights_)
        np.testing.assert_array_equal(limited.out_of_fold_, free.out_of_fold_)
        np.testing.assert_array_equal(answers(limited, X), answers(free, X))


def test_an_ample_limit_is_told_by_numbers_and_not_by_the_clock(monkeypatch):
    free = fitted(LacunarRegressor, 300, None, WorkClock(monkeypatch))[0]
    limited, _, _, said = fitted(LacunarRegressor, 300, 60.0, WorkClock(monkeypatch, slowness=1e3))
    assert not said
    np.testing.assert_array_equal(limited.out_of_fold_, free.out_of_fold_)


@pytest.mark.parametrize(("n", "d", "classes", "least", "most"), [(720, 68, 10, 2.0, 4.0), (5000, 20, 2, 3.0, 8.0)])
def test_expected_seconds_are_near_what_fits_take(n, d, classes, least, most):
    """3 and 4 s on one core of 2024. Half of the limit that `compare` begins with is ample for the first, which is its embedded table."""
    codes = np.arange(n) % classes
    training = replace(
        training_of(codes, np.array_split(np.arange(n), 3)),
        view=views.View(np.zeros((n, d)), np.zeros((n, d))),
        n_classes=classes,
        posterior=object(),
    )
    expected = LacunarClassifier()._expected_seconds(training)
    assert least <= expected <= most
    assert n > 1000 or base._AMPLE * expected <= 6.0


def test_em_of_limits_between_two_powers_of_two_is_the_same():
    budgets = [LacunarRegressor(time_limit=limit)._em_budget(100_000, 200) for limit in (8.0, 9.3, 15.9, 16.1)]
    assert budgets[0] == budgets[1] == budgets[2] != budgets[3]
    assert LacunarRegressor(time_limit=1e6)._em_budget(100_000, 200) == LacunarRegressor()._em_budget(100_000, 200)


def test_what_is_shortened_is_said_as_it_happens(monkeypatch, caplog):
    monkeypatch.setattr(base, "_AMPLE", np.inf)
    clock = WorkClock(monkeypatch, slowness=5.0)
    with caplog.at_level("INFO", logger="lacunar"):
        model, _, _, _ = fitted(LacunarRegressor, 2500, 10.0, clock, verbose=1)
    text = model.report_["shortened"][model.report_["member"].index("boosting")]
    assert f"boosting: shortened, {text}" in caplog.text


def training_of(codes, folds):
    view = views.View(np.zeros((len(codes), 2)), np.zeros((len(codes), 2)))
    return views.TrainingSet(
        view=view, as_came=view, categorical=np.zeros(2, dtype=bool), labels=codes, Y=np.zeros((len(codes), 3)), n_classes=3,
        cuts=cuts_of(folds, len(codes)), weight=np.arange(1.0, len(codes) + 1), posterior=None, seed=0,
    )  # fmt: skip


def test_thinned_trainings_keep_every_class_and_the_folds():
    codes = np.repeat([0, 1, 2], [900, 90, 3])
    folds = [np.arange(k, 993, 5) for k in range(5)]
    training = training_of(codes, folds)
    thinned, rows = training.thinned(0.1)
    assert np.bincount(codes[rows]).tolist() == [90, 9, 3]
    assert np.array_equal(thinned.labels, codes[rows])
    assert np.array_equal(thinned.tested, np.arange(102))
    assert all(np.isin(rows[small], large).all() for (_, small), large in zip(thinned.cuts, folds, strict=True))
    assert np.isclose(thinned.weight.mean(), 1.0)
    assert training.thinned(1.0)[0] is training
    learning = training.learning_from(rows)
    for train, test in learning.cuts:
        assert not np.intersect1d(train, test).size
        assert np.isin(train, rows).all()
    assert np.array_equal(learning.tested, np.arange(993))
    assert np.array_equal(learning.final, rows)


def test_a_picture_says_which_members_were_left_out():
    report = {
        "member": ["logistic", "forest"],
        "score": [0.8, np.nan],
        "weight": [1.0, 0.0],
        "shortened": ["", "left out"],
    }
    assert PoolDisplay(report).shown() == ["logistic, 0.800", "forest, left out"]
