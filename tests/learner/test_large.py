"""Large tables: members learn from all rows but held-out parts, which weigh them; no number of rows is learned from less than a smaller one."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GroupKFold, KFold

from lacunar import LacunarClassifier, LacunarRegressor
from lacunar._cuts import cuts_of
from lacunar.learner import base, folds, trees
from lacunar.learner.folds import large_cuts, units_of
from lacunar.learner.members import KernelMember
from lacunar.learner.views import TrainingSet, View
from lacunar.persistence import load_model, save_model


def low_rank(n, seed=0, share=0.2):
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, 2))
    X = latent @ np.random.default_rng(9).normal(size=(2, 8)) + 0.3 * rng.normal(size=(n, 8))
    X[rng.random(X.shape) < share] = np.nan
    return X, latent[:, 0] * latent[:, 1] + 0.1 * rng.normal(size=n)


def thresholds(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = ((np.abs(X[:, 0]) > 0.7) & (np.abs(X[:, 1]) > 0.2)) ^ (rng.random(n) < 0.05)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y.astype(int)


@pytest.fixture
def small(monkeypatch):
    """Tables are large from 301 rows on, and have two halves; batches and pilots are smaller too."""
    for name, size in (("MOST_FOLDED", 300), ("BATCH", 250), ("_VIEWED", 500)):
        monkeypatch.setattr(base, name, size)
    monkeypatch.setattr(folds, "_ROWS_OF_MODELS", 0)
    monkeypatch.setattr(trees, "_LARGE_TREES", 60)
    monkeypatch.setattr(trees, "_PILOT_LATENT_TREES", 20)
    monkeypatch.setattr(trees, "_LARGE_PATIENCE", 20)


def plan(n):
    """The training set of n rows of one column."""
    model = LacunarRegressor(members=["linear"])
    X, y = np.random.default_rng(0).normal(size=(n, 1)), np.zeros(n)
    table = base.Table.of(X)
    target = base.Target(None, y[:, None], 0, None)
    view, table = model._fit_table(table, None, np.arange(n), target)
    return model._training(table, view, np.arange(n), target, np.inf)


COUNTS = 19_999, 20_000, 20_001, 40_001, 60_000, 80_001, 89_999, 90_000, 90_001, 250_000


def test_every_row_is_learned_from_whatever_their_number():
    for n in COUNTS:
        training = plan(n)
        assert training.large == (n > 20_000)
        assert len(training.final) == n
        assert training.all_in_cuts
        for train, test in training.cuts:
            assert not np.isin(test, train).any()


def test_rows_of_a_model_change_by_a_tenth_at_most():
    counts = range(21_000, 200_000, 9_000)
    cuts = [large_cuts(None, np.arange(n), 0) for n in counts]
    shares = [np.mean([len(train) for train, _ in of_n]) / n for of_n, n in zip(cuts, counts, strict=True)]
    assert np.isclose(shares[0], 0.9)
    assert np.abs(np.diff(shares)).max() < 0.12
    assert min(shares) >= 0.5
    assert [len(of_n) for of_n in cuts] == sorted((len(of_n) for of_n in cuts), reverse=True)
    assert {len(of_n) for of_n in cuts} == {2, 3}
    assert max(len(test) for of_n in cuts for _, test in of_n) <= 20_001


@pytest.mark.parametrize("rows_of_models", [0, 600])
def test_boosting_is_the_mean_of_the_models_of_all_cuts(small, monkeypatch, rows_of_models):
    monkeypatch.setattr(folds, "_ROWS_OF_MODELS", rows_of_models)
    X, y = thresholds(1600)
    model = LacunarClassifier(members=["logistic", "boosting"]).fit(X[:600], y[:600])
    cuts = large_cuts(y[:600], np.arange(600), model.seed_)
    assert set(model.report_["rows"]) == {600}
    assert set(model.report_["tested"]) == {60 * len(cuts)}
    boosting = model.ensemble_.members_[model.members_.index("boosting")]
    assert boosting.shares_ == [1.0]  # one group of models
    assert len(boosting.trees_[0][0].roots_) == len(cuts) * boosting.n_iter_[0]


@pytest.mark.parametrize("rows_of_models", [0, 800])
def test_a_tested_part_has_the_shares_of_the_classes_and_keeps_copies_together(monkeypatch, rows_of_models):
    monkeypatch.setattr(folds, "_ROWS_OF_MODELS", rows_of_models)
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(500, 3)), 2, axis=0)
    labels = np.repeat(rng.permutation(np.repeat([0, 1], [450, 50])), 2)
    units = units_of(X)
    cuts = large_cuts(labels, units, 0)
    assert len(np.unique(np.concatenate([train for train, _ in cuts]))) == 1000
    assert len(np.unique(np.concatenate([test for _, test in cuts]))) == 100 * len(cuts)
    for train, test in cuts:
        assert np.bincount(labels[test]).tolist() == [90, 10]
        assert len(train) == (500 if rows_of_models == 0 else 800)
        assert not set(units[test]) & set(units[train])


@pytest.mark.parametrize("rows_of_models", [0, 400])
@pytest.mark.parametrize("seed", range(5))
def test_no_class_is_tested_that_was_not_learned(monkeypatch, seed, rows_of_models):
    monkeypatch.setattr(folds, "_ROWS_OF_MODELS", rows_of_models)
    labels = np.r_[np.zeros(300, int), [1], [2, 2], np.full(5, 3)]
    cuts = large_cuts(labels, np.arange(len(labels)), seed)
    for train, test in cuts:
        assert set(labels[test]) <= set(labels[train])
    assert set(labels[np.concatenate([train for train, _ in cuts])]) == {0, 1, 2, 3}


@pytest.mark.parametrize("n_groups", [2, 3, 5, 11])
@pytest.mark.parametrize("rows_of_models", [0, 400])
def test_few_groups_are_all_learned_and_no_cut_tests_nothing(monkeypatch, n_groups, rows_of_models):
    monkeypatch.setattr(folds, "_ROWS_OF_MODELS", rows_of_models)
    groups = np.random.default_rng(0).integers(0, n_groups, 600)
    cuts = large_cuts(None, groups, 0)
    assert len(np.unique(np.concatenate([train for train, _ in cuts]))) == 600
    for train, test in cuts:
        assert len(test)
        assert not set(groups[train]) & set(groups[test])


def test_members_of_few_rows_learn_once_from_rows_that_no_cut_tests(small, monkeypatch):
    monkeypatch.setattr("lacunar.learner.members.ROWS_OF_KERNELS", 200)
    fits = []
    learn = KernelMember.fit
    monkeypatch.setattr(
        KernelMember, "fit", lambda member, training: fits.append(training.Y) or learn(member, training)
    )
    X, y = low_rank(600)
    model = LacunarRegressor(members=["kernels"]).fit(X, y)
    assert len(fits) == 1
    tested = np.isfinite(model.out_of_fold_)
    assert not set(fits[0][:, 0]) & set((y[tested] - model.target_mean_) / model.target_scale_)
    assert model.report_["rows"] == [200]
    assert model.report_["tested"] == [120]


@pytest.mark.parametrize("task", ["labels", "numbers"])
def test_members_learn_from_all_rows(small, task):
    rows, y = low_rank(900)
    target = y > 0 if task == "labels" else y
    model = (LacunarClassifier if task == "labels" else LacunarRegressor)().fit(rows[:600], target[:600])
    report = model.report_
    assert set(report["rows"]) == {600}
    assert set(report["tested"]) == {120}
    assert "forest" not in report["member"]
    assert "gaussian" not in report["member"]
    assert model.score(rows[600:], target[600:]) > (0.8 if task == "labels" else 0.6)
    held = np.isfinite(model.out_of_fold_.reshape(600, -1)).all(axis=1)
    assert held.sum() == 120


def test_latent_coordinates_are_read_where_they_help(small):
    X, y = low_rank(1600)
    assert LacunarRegressor(members=["linear"]).fit(X, y).ensembles_[0].latent_
    X, y = thresholds(4000)
    model = LacunarRegressor(members=["boosting", "linear"]).fit(X, y)
    assert not model.ensembles_[0].latent_
    assert model.members_ == ["boosting"]  # the other has little weight, and is dropped
    assert model.report_["member"] == ["boosting", "linear"]
    assert model.report_["weight"][1] == 0 < model.report_["rows"][1]
    assert model.report_["completed"][1].startswith("mean")
    assert model.weights_.shape == (1,)


def test_members_that_were_named_learn_from_large_tables_too(small):
    X, y = low_rank(500)
    model = LacunarRegressor(members=["gaussian", "forest"]).fit(X, y)
    assert set(model.report_["member"]) == {"gaussian", "forest"}
    assert set(model.report_["rows"]) == {500}


def test_sparse_and_dense_tables_give_the_same_model(small):
    X, y = low_rank(700, share=0.7)
    stored = ~np.isnan(X)
    table = sp.csr_array((X[stored], np.nonzero(stored)), shape=X.shape)
    models = [LacunarRegressor(members=["linear", "boosting"]).fit(rows, y) for rows in (X, table)]
    assert np.array_equal(models[0].predict(X), models[1].predict(table))


def test_a_saved_model_answers_the_same(small, tmp_path):
    X, y = low_rank(500)
    model = LacunarClassifier(members=["logistic", "boosting"]).fit(X, np.digitize(y, [-0.5, 0.5]))
    save_model(model, tmp_path / "model.lac")
    loaded = load_model(tmp_path / "model.lac")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.report_ == model.report_


def test_intervals_and_standard_deviations_hold(small):
    X, y = low_rank(3000)
    model = LacunarRegressor(members=["linear"]).fit(X[:2000], y[:2000])
    low, high = model.predict_interval(X[2000:]).T
    assert 0.84 < np.mean((low <= y[2000:]) & (y[2000:] <= high)) < 0.96
    new = X[2000:].copy()
    new[:, :5] = np.nan
    with warnings.catch_warnings(action="ignore"):  # rows that lack more than training's
        low, high = model.predict_interval(new).T
    assert np.mean((low <= y[2000:]) & (y[2000:] <= high)) > 0.8


def test_sets_hold(small):
    X, y = low_rank(3000)
    labels = (y > 0).astype(int)
    model = LacunarClassifier(members=["logistic"]).fit(X[:2000], labels[:2000])
    sets = model.predict_set(X[2000:])
    assert 0.85 < sets[np.arange(1000), labels[2000:]].mean() < 0.97


def test_several_targets_weights_and_gaps_in_targets(small):
    X, y = low_rank(320)
    Y = np.c_[y, np.nan_to_num(X[:, 0])]
    Y[::3, 1] = np.nan
    weight = np.random.default_rng(3).uniform(0.5, 2, 320)
    weight[::5] = 0
    wrong = Y.copy()
    wrong[::5] = 1e6
    with warnings.catch_warnings(action="ignore"):  # rows lack a label
        fits = [LacunarRegressor(members=["linear"]).fit(X, targets, sample_weight=weight) for targets in (Y, wrong)]
    assert np.array_equal(fits[0].predict(X), fits[1].predict(X))
    assert fits[0].predict_interval(X).shape == (320, 2, 2)


def test_rare_classes_are_learned(small):
    X, y = low_rank(900)
    labels = np.where(y > np.sort(y)[-12], "rare", np.where(y > 0, "high", "low"))
    labels[0] = "once"
    with warnings.catch_warnings(action="ignore"):  # one is never predicted
        model = LacunarClassifier(members=["logistic", "boosting"]).fit(X, labels)
    assert set(model.classes_) == {"high", "low", "once", "rare"}
    chances = model.predict_proba(X)
    assert np.isfinite(chances).all()
    rare = chances[:, list(model.classes_).index("rare")]
    assert rare[labels == "rare"].mean() > 5 * rare[labels != "rare"].mean()


def test_a_class_of_few_rows_is_in_every_pilot(small, monkeypatch):
    monkeypatch.setattr(trees, "_PILOT_OF_LATENT", 50)
    X, _ = thresholds(900)
    labels = np.zeros(900, dtype=int)
    labels[[5, 300, 800]] = 1
    with warnings.catch_warnings(action="ignore"):  # one is never predicted
        chances = LacunarClassifier(members=["boosting"]).fit(X, labels).predict_proba(X)
    assert np.isfinite(chances).all()
    assert np.median(chances[:, 1]) < 0.05


def test_categories_and_text(small):
    X, y = thresholds(800)
    level = np.random.default_rng(1).integers(6, size=800)
    frame = pd.DataFrame(X).assign(word=np.array(list("abcdef"), dtype=object)[level])
    frame.columns = frame.columns.map(str)
    labels = np.where(level == 2, "c", np.where(y > 0, "u", "v"))
    model = LacunarClassifier(members=["boosting"]).fit(frame[:600], labels[:600])
    assert model.score(frame[600:], labels[600:]) > 0.8


@pytest.mark.parametrize("cv", [KFold(3), "groups"])
def test_splitters_fold_large_tables_as_they_say(small, cv):
    X, y = low_rank(330)
    groups = np.arange(330) % 30
    cv = list(GroupKFold(3).split(X, y, groups)) if cv == "groups" else cv
    model = LacunarRegressor(members=["linear", "boosting", "forest"], cv=cv).fit(X, y)
    assert np.isfinite(model.out_of_fold_).all()
    assert set(model.report_["tested"]) == {330}
    assert set(model.report_["rows"]) == {330}


def test_groups_are_not_seen_by_those_who_predict_them(small):
    """Targets that are noise, one a group, told by a column that names the group."""
    groups = np.repeat(np.arange(60), 10)
    rng = np.random.default_rng(0)
    y = rng.normal(size=60)[groups]
    X = np.c_[groups + 0.01 * rng.normal(size=600), rng.normal(size=(600, 2))]
    for members in (["boosting"], ["gaussian"], ["forest"]):
        model = LacunarRegressor(members=members, cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)
        assert model.report_["score"][0] < 0.2


def test_a_memory_limit_says_how_many_rows_are_learned_from(small):
    X, y = low_rank(1500)
    with pytest.warns(UserWarning, match=r"memory_limit=5 MiB lets members learn from 3\d\d of 1,500 rows"):
        model = LacunarRegressor(members=["linear"], memory_limit=5).fit(X, y)
    assert max(model.report_["rows"]) < 330


def test_rows_within_memory_never_fall_as_the_limit_grows():
    limits = [1, 10, 100, 200, 330, 365, 380, 400, 1000, 10_000]
    rows = [LacunarRegressor(memory_limit=limit)._most_rows(20) for limit in limits]
    assert rows == sorted(rows)
    assert rows[0] == 1000
    assert rows[-1] > 1_000_000


def test_a_time_limit_shortens_boosting(small, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(base, "_AMPLE", np.inf)  # so that the clock is watched
    for module in (base, trees):
        monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    monkeypatch.setattr("lacunar.learner.views.perf_counter", lambda: now[0])
    monkeypatch.setattr("lacunar.learner.ensemble.perf_counter", lambda: now[0])
    fit = trees.HistGradientBoostingRegressor.fit

    def slow(model, X, y, *args, **more):
        before = len(getattr(model, "_predictors", ()))
        fit(model, X, y, *args, **more)
        now[0] += 0.02 * (model.n_iter_ - before) * model.warm_start  # members' alone: not those of intervals
        return model

    monkeypatch.setattr(trees.HistGradientBoostingRegressor, "fit", slow)
    X, y = low_rank(800)
    with pytest.warns(UserWarning, match="time_limit=1.2 has shortened members"):
        model = LacunarRegressor(members=["boosting"], time_limit=1.2).fit(X, y)
    assert now[0] <= 1.2
    assert "of up to 60 iterations" in model.report_["shortened"][0]


def view_of(n):
    return View(np.zeros((n, 2)), np.zeros((n, 2)))


def test_parts_of_a_training_set_know_what_they_test():
    training = TrainingSet(
        view=view_of(100), as_came=view_of(10), categorical=np.zeros(2, dtype=bool), labels=None,
        Y=np.arange(100.0)[:, None], n_classes=0, cuts=cuts_of([np.arange(0, 100, 10)], 100), weight=None, posterior=None, seed=0,
        units=np.arange(100),
    )  # fmt: skip
    judged = training.judged
    assert judged.Y[:, 0].tolist() == list(range(0, 100, 10))
    assert len(judged.as_came.T) == 10
    part = training.take(np.arange(5, 45))
    assert part.tested.tolist() == [5, 15, 25, 35]
    assert len(part.as_came.T) == 4
    sample = training.sample(training.cuts[0][0], 30)
    assert sample.n == 30
    assert not sample.large
    assert np.array_equal(sample.tested, np.arange(30))
    assert not set(sample.Y[:, 0]) & set(range(0, 100, 10))


@pytest.mark.parametrize("kind", ["numbers", "an outlier later on", "categories"])
def test_views_made_in_batches_are_those_made_at_once(small, kind):
    X, y = low_rank(600)
    if kind == "an outlier later on":
        X[400, 3] = 1e4
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)])
    if kind == "categories":
        table["word"] = np.array(list("abc"), dtype=object)[np.arange(600) % 3]
    model = LacunarRegressor(members=["linear"]).fit(table, y)
    view = model._viewed(base.Table.of(table), np.arange(600), base.Remarks())
    whole = model.views_.transform(table)
    assert (view.Z is view.T) == (kind == "numbers")
    assert np.array_equal(view.Z, whole.Z.astype(np.float32), equal_nan=True)
    assert np.array_equal(view.T, whole.T.astype(np.float32), equal_nan=True)
