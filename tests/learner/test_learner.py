"""The one learner: what its members and its pool are, and that nothing is lost when one of them fails, time runs out or a user interrupts."""

import copy
import pickle
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference.learner import log_pool, summed_trees
from sklearn import config_context
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict

from lacunar import LacunarClassifier, LacunarRegressor, _core, load_model, save_model
from lacunar.learner import base, members
from lacunar.learner.ensemble import LogPool
from lacunar.learner.members import members_of
from lacunar.learner.trees import Trees
from lacunar.lowrank import GaussianRegressor
from lacunar.observed import Observed
from lacunar.uncertainty import MeasuringLoop, value_of_measuring
from lacunar.uncertainty.class_gaussians import ClassGaussians
from lacunar.uncertainty.shift import log_softmax

RNG = np.random.default_rng(0)
N = 240


def low_rank(n=N, d=8, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.1 * rng.normal(size=(n, d))
    y = X[:, 0] + 0.5 * np.abs(X[:, 1])
    X[rng.random(X.shape) < share] = np.nan
    return X, y


def frame(n=N):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "town": rng.choice(["Bonn", "Kiel", "Ulm", None], size=n),
            "since": pd.date_range("1965-01-01", periods=n),
            "member": rng.random(n) < 0.3,
        }
    )
    X.loc[::3, "age"] = np.nan
    return X, np.where(X["age"].fillna(0) + (X["town"] == "Kiel") > 0.4, "yes", "no")


X, Y = low_rank()
LABELS = np.digitize(Y, [0.0, 1.0])


@pytest.fixture(scope="module")
def classifier():
    return LacunarClassifier().fit(X, LABELS)


@pytest.fixture(scope="module")
def regressor():
    return LacunarRegressor().fit(X, Y)


@pytest.fixture(scope="module")
def of_frame():
    return LacunarClassifier().fit(*frame())


def test_answers(classifier, regressor):
    new, y = low_rank(seed=0, n=N)
    chances = classifier.predict_proba(new)
    assert chances.shape == (N, 3)
    assert np.allclose(chances.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert (classifier.predict(new) == classifier.classes_[chances.argmax(axis=1)]).all()
    assert set(classifier.report_) == {"member", "score", "weight", "seconds", "rows", "tested", "folds", "completed"}
    assert (
        classifier.report_["member"] == classifier.members_ == ["logistic", "gaussian", "kernels", "boosting", "forest"]
    )
    assert regressor.members_ == ["linear", "gaussian", "kernels", "boosting", "forest"]
    assert regressor.weights_.shape == (5,)
    held_out = 1 - np.mean((regressor.out_of_fold_ - y) ** 2) / y.var()
    assert held_out > max(regressor.report_["score"]) - 0.02


def test_out_of_fold_values_are_those_of_rows_not_seen():
    """Labels that are noise: members predict them no better than their shares."""
    y = np.random.default_rng(5).integers(2, size=N)
    model = LacunarClassifier().fit(X, y)
    loss = -np.log(model.out_of_fold_[np.arange(N), y]).mean()
    assert loss > np.log(2) - 0.05  # the pool itself has some ten numbers, fitted to these rows


# -- one result, however it is computed -------------------------------------------------------------------------------------


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def both(model_c, model_r, rows):
    return [model_c.predict_proba(rows), model_r.predict(rows)]


@pytest.mark.parametrize("n_jobs", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_threads_change_no_bit(classifier, regressor, n_jobs):
    others = LacunarClassifier(n_jobs=n_jobs).fit(X, LABELS), LacunarRegressor(n_jobs=n_jobs).fit(X, Y)
    assert same(both(classifier, regressor, X), both(*others, X))


@pytest.mark.parametrize("kind", ["csr", "coo", "observed", "frame", "list", "fortran"])
def test_formats_change_no_bit(classifier, regressor, kind):
    stored = ~np.isnan(X)
    made = {
        "csr": lambda: sp.csr_array((X[stored], np.nonzero(stored)), shape=X.shape),
        "coo": lambda: sp.coo_array((X[stored], np.nonzero(stored)), shape=X.shape),
        "observed": lambda: Observed.from_dense(X),
        "frame": lambda: pd.DataFrame(X),
        "list": lambda: X.tolist(),
        "fortran": lambda: np.asfortranarray(X),
    }[kind]()
    assert same(both(classifier, regressor, X), both(classifier, regressor, made))


def test_frames_asked_of_transformers_change_no_bit():
    X, y = frame(80)
    wanted = LacunarClassifier(members=["logistic"]).fit(X, y).predict_proba(X)
    with config_context(transform_output="pandas"):
        found = LacunarClassifier(members=["logistic"]).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(found, wanted)


def test_batches_change_no_bit(classifier, regressor, monkeypatch):
    whole = both(classifier, regressor, X)
    for size in (1, 7):
        cut = [
            np.concatenate(each)
            for each in zip(*(both(classifier, regressor, X[i : i + size]) for i in range(0, N, size)), strict=True)
        ]
        assert same(whole, cut)
    monkeypatch.setattr(base, "BATCH", 50)
    assert same(whole, both(classifier, regressor, X))


def test_another_seed_draws_otherwise():
    """The same seed: `test_threads_change_no_bit` fits once more."""
    one, other = (LacunarClassifier(members=["forest"], random_state=seed).fit(X, LABELS) for seed in (0, 1))
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("task", ["labels", "numbers"])
def test_stored_and_loaded(tmp_path, of_frame, task):
    rows, labels = frame()
    if task == "labels":
        model = of_frame
    else:
        model = LacunarRegressor().fit(rows[:120], np.c_[labels == "yes", np.arange(N)][:120])
    save_model(model, tmp_path / "model.lacunar")
    loaded = load_model(tmp_path / "model.lacunar")
    for name in ("predict", "predict_proba") if task == "labels" else ("predict",):
        assert np.array_equal(getattr(model, name)(rows), getattr(loaded, name)(rows))
    assert loaded.report_ == model.report_


# -- trees and the pool against their slow twins -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [HistGradientBoostingClassifier, HistGradientBoostingRegressor])
def test_boosted_trees_as_arrays(make):
    rng = np.random.default_rng(2)
    rows = np.c_[rng.normal(size=(500, 3)), rng.integers(40, size=500)]
    y = ((rows[:, 3] % 3) + (rows[:, 0] > 0)).astype(int) % 3
    rows[rng.random(rows.shape) < 0.2] = np.nan
    categorical = np.array([False, False, False, True])
    models = [
        make(max_iter=10, categorical_features=categorical, random_state=k).fit(rows[k::2], y[k::2]) for k in (0, 1)
    ]
    trees = Trees.of_boosting(models, categorical)
    if make is HistGradientBoostingRegressor:
        assert np.allclose(
            trees.sums(rows)[:, 0], np.mean([m.predict(rows) for m in models], axis=0), rtol=0, atol=1e-6
        )
    else:
        expected = np.mean([np.log(m.predict_proba(rows)) for m in models], axis=0)
        assert np.allclose(log_softmax(trees.sums(rows)), log_softmax(expected), rtol=0, atol=1e-6)
    assert np.allclose(trees.sums(rows), summed_trees(trees, rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("make", [ExtraTreesClassifier, ExtraTreesRegressor])
def test_forests_as_arrays(make):
    model = make(20, random_state=0).fit(X.astype(np.float32), LABELS)
    trees = Trees.of_forest(model, X.shape[1])
    expected = model.predict_proba(X) if make is ExtraTreesClassifier else model.predict(X)[:, None]
    assert np.allclose(trees.sums(X), expected, rtol=0, atol=1e-6)
    assert np.array_equal(trees.sums(X, 1), trees.sums(X, 2))


def test_trees_are_packed_once_and_copies_pack_their_own(monkeypatch):
    model = ExtraTreesRegressor(5, random_state=0).fit(X.astype(np.float32), LABELS)
    trees, pack, packed = Trees.of_forest(model, X.shape[1]), _core.Forest, []
    monkeypatch.setattr(_core, "Forest", lambda *arrays: packed.append(pack(*arrays)) or packed[-1])
    expected = trees.sums(X)
    assert np.array_equal(np.vstack([trees.sums(X[[i]]) for i in range(len(X))]), expected)
    assert len(packed) == 1
    untouched = pickle.dumps(Trees.of_forest(model, X.shape[1]))
    assert pickle.dumps(trees) == untouched
    for other in (copy.deepcopy(trees), pickle.loads(untouched)):
        assert np.array_equal(other.sums(X), expected)
    assert len(packed) == 3
    with pytest.raises(ValueError, match="rows has"):
        trees.sums(X[:, :-1])


def test_pool_is_the_shrunk_log_linear_one():
    rng = np.random.default_rng(3)
    codes = rng.integers(3, size=150)
    values = [rng.normal(size=(150, 3)) + s * np.eye(3)[codes] for s in (0.0, 1.0, 2.0)]
    pool = LogPool().fit(values, codes)
    logs = np.array([log_softmax(a * v + b) for a, v, b in zip(pool.slopes_, values, pool.intercepts_, strict=True)])
    weights, mixed = log_pool(logs, codes)
    assert np.allclose(pool.weights_, weights, rtol=0, atol=2e-3)
    assert np.allclose(pool.combine(values, len(codes)), mixed, rtol=0, atol=1e-2)


# -- the metric that is asked for -----------------------------------------------------------------------------------------------


def rare(n=600):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(n, 5))
    y = rows[:, 0] + rows[:, 1] + 1.5 * rng.normal(size=n) > 3.3
    rows[rng.random(rows.shape) < 0.2] = np.nan
    return rows, y.astype(int)


def test_a_score_that_these_classes_have_not_is_named_before_work_is_done(monkeypatch):
    monkeypatch.setattr(LacunarClassifier, "_fit_table", None)
    X = np.random.default_rng(0).normal(size=(60, 2))
    for scoring, reason in (("f1", "pos_label=1 is not a valid label"), ("r2", "")):
        model = LacunarClassifier(members=["logistic"], cv=2, scoring=scoring)
        with pytest.raises(
            ValueError, match=f"scoring must be a score of these classes; got '{scoring}': {reason}.*f1_macro"
        ):
            model.fit(X, np.where(X[:, 0] > 0, "ill", "well"))
    with pytest.raises(ValueError, match=r"got 'roc_auc': multi_class must be in"):
        LacunarClassifier(scoring="roc_auc").fit(X, np.arange(60) % 3)


def test_many_classes_are_remarked_on_once():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 40
    model = LacunarClassifier(members=["logistic", "boosting"], cv=2, scoring="f1_macro")
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(X, y)
    assert sum("number of unique classes" in str(warning.message) for warning in caught) == 1


def test_a_kind_of_folds_is_named_once():
    with pytest.raises(ValueError, match="parameter of LacunarClassifier") as raised:
        LacunarClassifier(cv=1).fit([[0.0], [1.0]], [0, 1])
    assert str(raised.value).count("an int in the range [2, inf)") == str(raised.value).count("split") == 1


def test_predictions_are_for_the_metric_asked():
    rows, y = rare()
    cheap = {"members": ["logistic", "gaussian"]}
    plain, balanced, f1 = (LacunarClassifier(**cheap, scoring=s) for s in ("accuracy", "balanced_accuracy", "f1"))
    with warnings.catch_warnings(action="ignore"):
        plain.fit(rows[:400], y[:400])
    assert (
        balanced_accuracy_score(y[400:], balanced.fit(rows[:400], y[:400]).predict(rows[400:]))
        > balanced_accuracy_score(y[400:], plain.predict(rows[400:])) + 0.1
    )
    assert f1_score(y[400:], f1.fit(rows[:400], y[:400]).predict(rows[400:])) >= f1_score(
        y[400:], plain.predict(rows[400:])
    )
    assert np.array_equal(plain.predict_proba(rows), balanced.predict_proba(rows))
    assert np.array_equal(balanced.predict(rows), balanced.classes_[(balanced.decision_function(rows) > 0).astype(int)])
    assert balanced.score(rows, y) == pytest.approx(balanced_accuracy_score(y, balanced.predict(rows)))


def test_a_class_never_predicted_is_said():
    rows = RNG.normal(size=(200, 3))
    with pytest.warns(UserWarning, match=r"no row is predicted out of fold as class 1:"):
        LacunarClassifier(members=["logistic"]).fit(rows, (np.arange(200) % 25 == 0).astype(int))


# -- what is lost, and what is not ------------------------------------------------------------------------------------------------


def test_a_member_that_fails_is_left_out(monkeypatch):
    def broken(self, training):
        raise FloatingPointError("on purpose")

    monkeypatch.setattr(members.ForestMember, "fit", broken)
    with pytest.warns(UserWarning, match=r"member 'forest' could not be fitted.*on purpose"):
        model = LacunarRegressor(members=["linear", "forest"]).fit(X, Y)
    assert model.members_ == ["linear"]
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(("kind", "y"), [(LacunarClassifier, LABELS), (LacunarRegressor, Y)])
def test_an_interrupt_leaves_the_model_as_it_was(monkeypatch, kind, y):
    """Also after members that are finished."""
    fresh, fitted = kind(members=["gaussian", "forest"]), kind(members=["gaussian"]).fit(X, y)
    fitted.set_params(members=["gaussian", "forest"])
    before = fitted.predict(X)

    def interrupted(self, training):
        raise KeyboardInterrupt

    monkeypatch.setattr(members.ForestMember, "fit", interrupted)
    for model in (fresh, fitted):
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert not [name for name in vars(fresh) if name.endswith("_")]
    assert fitted.members_ == ["gaussian"]
    assert np.array_equal(fitted.predict(X), before)


def test_a_failed_fit_changes_nothing(classifier):
    before = classifier.predict_proba(X)
    wrong = X.copy()
    wrong[3, 2] = np.inf
    with pytest.raises(ValueError, match="row 3, column 2"):
        classifier.fit(wrong, LABELS)
    assert np.array_equal(classifier.predict_proba(X), before)


def test_a_time_limit_brings_no_warnings_of_others():
    with warnings.catch_warnings(record=True, action="always") as caught:
        LacunarRegressor(members=["forest"], time_limit=60).fit(X[:40], Y[:40])
    assert [str(w.message) for w in caught if w.category is not UserWarning] == []


def test_columns_are_refused_in_the_name_of_the_learner():
    table = pd.DataFrame(X[:60], columns=list("abcdefgh"))
    model = LacunarRegressor(members=["linear"]).fit(table, Y[:60])
    with pytest.warns(UserWarning, match="valid feature names, but LacunarRegressor was fitted"):
        model.predict(X[:2])
    with (
        pytest.warns(UserWarning, match="but LacunarRegressor was fitted"),
        pytest.raises(ValueError, match="LacunarRegressor is expecting 8 features"),
    ):
        model.predict(X[:2, :3])


def test_time_limit_trains_fewer_members():
    started = time.process_time()
    with pytest.warns(UserWarning, match=r"time_limit=0.001 has shortened members .*boosting: left out"):
        model = LacunarClassifier(time_limit=1e-3).fit(X, LABELS)
    assert model.members_ == ["logistic"]
    assert time.process_time() - started < 10
    left_out = [
        name
        for name, text in zip(model.report_["member"], model.report_["shortened"], strict=True)
        if text == "left out"
    ]
    assert left_out == ["gaussian", "forest", "kernels", "boosting"]
    assert np.isnan(model.report_["score"][1:]).all()


@pytest.mark.parametrize(
    ("kind", "wrong", "allowed"),
    [
        (LacunarRegressor, ["logistic"], "linear, gaussian, kernels, boosting, forest; got"),
        (LacunarRegressor, ["gaussian", "logistic"], "linear, gaussian, kernels, boosting, forest; got"),
        (LacunarRegressor, ["table"], "linear, gaussian, kernels, boosting, forest; got"),
        (LacunarClassifier, ["table"], "logistic, gaussian, kernels, boosting, forest; got"),
        (LacunarClassifier, [["logistic"]], "logistic, gaussian, kernels, boosting, forest; got"),
    ],
)
def test_members_that_do_not_fit_the_task_are_refused(monkeypatch, kind, wrong, allowed):
    monkeypatch.setattr(
        base.TableViews, "fit_transform", lambda *_: pytest.fail("work was done before the names were checked")
    )
    with pytest.raises(
        ValueError, match=rf"members of a {kind.__name__} must be 'auto' or a list of some of {allowed}"
    ):
        kind(members=wrong).fit(X, Y > 0 if kind is LacunarClassifier else Y)


def test_a_named_member_that_has_nothing_to_learn_from_is_told():
    with pytest.warns(UserWarning, match="member 'gaussian' is left out.*two columns"):
        model = LacunarRegressor(members=["gaussian", "forest"]).fit(X[:, :1], Y)
    assert model.members_ == ["forest"]


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"members": ["trees"]}, "members of a LacunarRegressor must be"),
        ({"members": []}, "members of a LacunarRegressor must be.*at least one"),
        ({"cv": 1}, "cv"),
        ({"time_limit": 0}, "time_limit"),
        ({"cv": [(np.arange(5), np.arange(5, 9)), (np.arange(5), np.arange(8, 12))]}, "1 of them more than once"),
    ],
)
def test_wrong_parameters(parameters, match):
    with pytest.raises(ValueError, match=match):
        LacunarRegressor(**parameters).fit(X, Y)


# -- missing targets, missing columns, large tables -------------------------------------------------------------------------------


def test_targets_that_are_missing():
    both_targets = np.c_[Y, -Y]
    both_targets[::4, 1] = np.nan
    with pytest.warns(UserWarning, match=f"{N // 4} of {N} rows lack a label"):
        model = LacunarRegressor(members=["gaussian", "kernels"]).fit(X, both_targets)
    assert model.predict(X).shape == (N, 2)
    assert np.isnan(model.out_of_fold_).sum() == N // 4
    alone = LacunarRegressor(members=["gaussian", "kernels"]).fit(X, Y)
    assert np.allclose(model.predict(X)[:, 0], alone.predict(X), rtol=0, atol=1e-9)
    labels = LABELS.astype(float)
    labels[::3] = np.nan
    with pytest.warns(UserWarning, match=f"{N // 3} of {N} rows lack a label"):
        assert len(LacunarClassifier(members=["gaussian"]).fit(X, labels).out_of_fold_) == N - N // 3


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_numbers_known_only_in_rows_of_weight_zero_are_refused(several):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(40, 3)), np.repeat([0.0, 1.0], [10, 30])
    y = np.where(weight > 0, np.nan, X[:, 0])
    y = np.column_stack([X[:, 1], y]) if several else y
    which = "target 1 of y" if several else "y"
    with (
        pytest.warns(UserWarning, match="lack a label"),
        pytest.raises(ValueError, match=rf"sample_weight must .* in which {which} is. Raise"),
    ):
        LacunarRegressor().fit(X, y, sample_weight=weight)


def test_labels_known_only_in_rows_of_weight_zero_are_refused():
    X, weight = np.random.default_rng(0).normal(size=(40, 3)), np.repeat([0.0, 1.0], [10, 30])
    labels = np.where(weight > 0, np.nan, X[:, 0] > 0)
    with (
        pytest.warns(UserWarning, match="lack a label"),
        pytest.raises(ValueError, match=r"sample_weight times class_weight must be above 0"),
    ):
        LacunarClassifier().fit(X, labels, sample_weight=weight)
    with pytest.raises(ValueError, match="class_weight"):
        LacunarClassifier(class_weight={0: 0.0, 1: 0.0}).fit(X, X[:, 0] > 0)


def test_rows_of_weight_zero_teach_no_targets():
    weight = np.ones(100)
    weight[::5] = 0
    wrong = Y[:100].copy()
    wrong[::5] = 1e6
    fits = [LacunarRegressor(cv=2).fit(X[:100], y, sample_weight=weight).predict(X) for y in (Y[:100], wrong)]
    assert np.array_equal(*fits)


def test_columns_that_training_always_saw_are_completed():
    """Trained on complete rows, half of the entries missing at prediction: the answer follows what is left."""
    whole, y = low_rank(400, share=0.0)
    model = LacunarRegressor().fit(whole[:300], y[:300])
    new = whole[300:].copy()
    new[:, 0] = np.nan
    with warnings.catch_warnings(action="ignore"):
        assert model.score(new, y[300:]) > 0.9


def few(monkeypatch, *names):
    """Of all members those that are quick."""
    monkeypatch.setattr(
        base, "members_of", lambda labels: [name for name in members_of(labels=labels) if name in names]
    )


# -- what is left open -------------------------------------------------------------------------------------------------------------


def linear(n, share, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(n, 8))
    y = rows @ rng.normal(size=8) + 0.5 * rng.normal(size=n)
    rows[rng.random(rows.shape) < rng.uniform(0, share, size=(n, 1))] = np.nan
    return rows, y


def test_intervals_hold_for_any_number_of_missing_entries():
    rows, y = linear(2400, 0.9)
    model = LacunarRegressor(members=["gaussian"]).fit(rows[:800], y[:800])
    low, high = model.predict_interval(rows[800:]).T
    inside, missing = (low <= y[800:]) & (y[800:] <= high), np.isnan(rows[800:]).sum(axis=1)
    for part in (missing <= 1, (missing > 1) & (missing <= 4), missing > 4):
        assert 0.85 < inside[part].mean() < 0.95
    mean, std = model.predict(rows[800:], return_std=True)
    assert np.array_equal(mean, model.predict(rows[800:]))
    assert np.allclose((low + high) / 2, mean, rtol=0, atol=1e-9)
    assert std[missing > 5].mean() > 1.3 * std[missing <= 1].mean()
    assert 0.85 < np.sqrt(np.mean((y[800:] - mean) ** 2)) / np.sqrt(np.mean(std**2)) < 1.15
    assert (np.diff(model.predict_interval(rows, 0.5)) < np.diff(model.predict_interval(rows, 0.95))).all()


def test_an_end_of_a_target_that_is_never_negative_lies_below_zero_to_hold_its_prediction_alone():
    rows, y = linear(300, 0.6)
    targets = np.c_[np.exp(y / 3), y]
    model = LacunarRegressor(members=["gaussian"]).fit(rows, targets)
    free = model.predict_interval(rows, lower_bound=None)
    assert (free < 0).any(axis=(0, 2)).all()
    usual, quantiles = model.predict_interval(rows), model.predict_quantiles(rows, [0.01, 0.5])
    predicted = model.predict(rows)[:, 0]
    assert (predicted < 0).any()
    np.testing.assert_array_equal(usual[:, 0, 1], np.maximum(free[:, 0, 1], 0))
    np.testing.assert_array_equal(usual[:, 0, 0], np.minimum(np.maximum(free[:, 0, 0], 0), predicted))
    np.testing.assert_array_equal(model.predict_interval(rows, [0.9, 0.5])[:, 0, 0], usual[:, 0])
    np.testing.assert_array_equal(model.predict_interval(rows, lower_bound=0.0)[:, 0], np.maximum(free[:, 0], 0))
    np.testing.assert_array_equal(usual[:, 1], free[:, 1])
    assert quantiles[:, 0].min() == 0 > quantiles[:, 1].min()
    for bound, least in (("observed", targets.min(axis=0)[:, None]), (0.25, 0.25)):
        ends = model.predict_interval(rows, [0.9, 0.5], lower_bound=bound)
        np.testing.assert_array_equal(ends[:, :, 0], np.maximum(free, least))
    for bound in ("least", np.inf, [0.0]):
        with pytest.raises(ValueError, match="lower_bound must be a finite number, 'auto', 'observed' or None; got"):
            model.predict_interval(rows, lower_bound=bound)


def test_sets_hold_and_hold_the_likeliest():
    rows, y = linear(1600, 0.9)
    labels = np.digitize(y, [-2.0, 2.0])
    model = LacunarClassifier(members=["logistic", "gaussian"]).fit(rows[:600], labels[:600])
    sets = model.predict_set(rows[600:])
    assert 0.86 < sets[np.arange(1000), labels[600:]].mean() < 0.95
    assert sets[np.arange(1000), model.predict(rows[600:])].all()
    with pytest.raises(ValueError, match="level"):
        model.predict_set(rows, 1.5)


def test_several_targets_have_intervals():
    both_targets = np.c_[Y, -Y]
    both_targets[::4, 1] = np.nan
    with pytest.warns(UserWarning, match="rows lack a label"):
        model = LacunarRegressor(members=["gaussian"]).fit(X, both_targets)
    assert model.predict_interval(X).shape == (N, 2, 2)
    assert model.predict(X, return_std=True)[1].shape == (N, 2)


def measuring(model):
    """What entries are worth by a model of one group of targets, which learns it when it is first asked."""
    (part,) = model._parts()
    return part.kept.answer("measuring", lambda: model._measuring(part))


def test_value_of_measuring_is_that_of_the_gaussian_regressor():
    """One mechanism and one unit, squared units of y, whatever the target is measured in."""
    rows, y = linear(500, 0.5)
    model = LacunarRegressor(members=["gaussian"]).fit(rows, 10 * y)
    Z = model.views_.transform(rows).Z
    gaussian = GaussianRegressor(max_iter=30, tol=1e-3, random_state=model.seed_).fit(Z, 10 * y)
    values = model.value_of_measuring(rows[:20])
    assert np.allclose(values, gaussian.value_of_measuring(Z[:20]), rtol=1e-9)
    assert not values[~np.isnan(rows[:20])].any()
    dear = model.value_of_measuring(rows[:20], cost=np.full(8, 2.0))
    assert np.allclose(2 * dear, values)
    both = LacunarRegressor(members=["gaussian"]).fit(rows, np.c_[10 * y, -y])
    assert np.allclose(both.value_of_measuring(rows[:20]), values / np.var(10 * y), rtol=0.05, atol=1e-4)


def test_value_of_measuring_labels_is_information_about_the_class():
    """In nats, as the function has it of the same rows, in whatever units columns are."""
    rows, y = linear(500, 0.5)
    for labels in (np.where(y > 0, "high", "low"), np.digitize(y, [-1.0, 1.0])):
        model = LacunarClassifier(members=["gaussian"]).fit(rows, labels)
        assert not measuring(model).one_order_
        values = model.value_of_measuring(rows[:20])
        assert np.allclose(values, value_of_measuring(rows, labels, rows[:20]), rtol=1e-6, atol=1e-9)
        assert not values[~np.isnan(rows[:20])].any()
        dear = model.value_of_measuring(rows[:20], cost=np.full(8, 2.0))
        assert np.allclose(2 * dear, values)
        other = LacunarClassifier(members=["gaussian"]).fit(5 * rows + 3, labels)
        assert np.allclose(other.value_of_measuring(5 * rows[:20] + 3), values, rtol=1e-5, atol=1e-7)


@pytest.mark.filterwarnings("ignore:the rows to predict lack other entries")
def test_a_loop_around_the_classifier_buys_what_tells_of_classes_whose_spreads_differ():
    """AFABench's CUBE: class k has its bits, with little noise, in columns k, k + 1 and k + 2 of 20. Indicators have .66 of the classes right by 3 entries."""

    def cube(n, seed):
        rng = np.random.default_rng(seed)
        y = rng.integers(8, size=n)
        table = rng.normal(0.5, 0.3, size=(n, 20))
        for bit in range(3):
            table[np.arange(n), y + bit] = (y >> bit & 1) + rng.normal(0, 0.1, size=n)
        return table, y

    table, y = cube(1600, 1)
    full, truth = cube(300, 2)
    loop = MeasuringLoop(LacunarClassifier(members=["gaussian"]).fit(table, y), budget=3)
    loop.add(np.full(full.shape, np.nan))
    loop.run(lambda row, column: full[row, column])
    right = ClassGaussians().fit(Observed.from_dense(table), y).log_proba(loop.rows_).argmax(axis=1) == truth
    assert right.mean() > 0.76


def test_value_of_measuring_labels_of_wide_tables_is_that_of_the_low_rank():
    """Against classes' full Gaussians of the same means and covariance, conditioned entry by entry."""
    rng = np.random.default_rng(2)
    latent = rng.normal(size=(300, 3))
    full = latent @ rng.normal(size=(3, 101)) + 0.5 * rng.normal(size=(300, 101))
    rows, labels = np.where(rng.random(full.shape) < 0.5, np.nan, full), np.digitize(latent[:, 0], [-0.5, 0.5])
    model = LacunarClassifier(members=["gaussian"]).fit(rows, labels)
    posterior, classes, Z = model.posterior_, measuring(model), model.views_.transform(rows[:20]).Z
    assert classes.gaussians_ is None
    assert not classes.one_order_
    W = posterior.components_.T
    covariance = W @ classes.within_ @ W.T + posterior.noise_variance_ * np.eye(101)
    values = model.value_of_measuring(rows[:20])
    mixed = ClassGaussians()
    mixed.n_features_in_, mixed.mean_, mixed.scale_ = 101, posterior.mean_, np.ones(101)
    mixed.observed_columns_, mixed.log_shares_ = np.ones(101, dtype=bool), classes.log_shares_
    mixed.class_means_, mixed.class_covariances_ = classes.latent_means_ @ W.T, covariance[None]
    assert np.allclose(values, mixed.value_of_measuring(Z), rtol=1e-6, atol=1e-9)
    apart = [np.abs(np.corrcoef(full[:, j], labels)[0, 1]) for j in range(101)]
    assert np.corrcoef(model.value_of_measuring(np.full((1, 101), np.nan))[0], np.square(apart))[0, 1] > 0.9


@pytest.mark.parametrize("kind", [LacunarClassifier, LacunarRegressor])
def test_what_entries_are_worth_is_learned_at_the_first_question_and_once(kind, monkeypatch, tmp_path):
    model = kind(members=["gaussian"]).fit(X, LABELS if kind is LacunarClassifier else Y)
    assert "_asked" not in vars(model._parts()[0].kept)
    save_model(model, tmp_path / "model.lacunar")
    values = model.value_of_measuring(X)
    loaded = load_model(tmp_path / "model.lacunar")
    assert np.array_equal(loaded.value_of_measuring(X), values)
    assert values.max() > 0
    save_model(model, tmp_path / "asked.lacunar")
    assert np.array_equal(load_model(tmp_path / "asked.lacunar").value_of_measuring(X), values)
    copy = pickle.loads(pickle.dumps(model))
    assert "_asked" not in vars(copy._parts()[0].kept)
    monkeypatch.setattr(kind, "_measuring", lambda model, part: pytest.fail("learned twice"))
    assert np.array_equal(model.value_of_measuring(X), values)


def test_value_of_measuring_wide_tables_is_that_of_the_low_rank():
    """Against conditioning the joint Gaussian of (x, y) entry by entry."""
    rng = np.random.default_rng(2)
    latent = rng.normal(size=(300, 3))
    rows = latent @ rng.normal(size=(3, 101)) + 0.5 * rng.normal(size=(300, 101))
    rows[rng.random(rows.shape) < 0.5] = np.nan
    model = LacunarRegressor(members=["gaussian"]).fit(rows, 10 * latent[:, 0])
    posterior, codes, Z = model.posterior_, measuring(model), model.views_.transform(rows[:20]).Z
    assert codes.joint_ is None
    W, w = posterior.components_.T, codes.coef_[:, 0]
    for z, value in zip(Z, model.value_of_measuring(rows[:20]), strict=True):
        seen = np.flatnonzero(~np.isnan(z))
        inner = W[seen] @ W[seen].T + posterior.noise_variance_ * np.eye(len(seen))
        cov = np.eye(len(w)) - W[seen].T @ np.linalg.solve(inner, W[seen])
        expected = (W @ cov @ w) ** 2 / (np.einsum("pk,kl,pl->p", W, cov, W) + posterior.noise_variance_)
        expected *= np.var(10 * latent[:, 0])
        assert np.allclose(value, np.where(np.isnan(z), expected, 0.0), rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore:the rows to predict lack other entries")
def test_a_loop_around_the_learner_buys_no_worse_than_by_correlation():
    """In the mean over laws whose columns share latent numbers, where a low rank forgets which column is nearly free of noise."""
    errors = {"learner": [], "correlation": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        latent = rng.normal(size=(700, 3))
        full = latent @ rng.normal(size=(3, 12)) + rng.uniform(0.1, 1.5, 12) * rng.normal(size=(700, 12))
        y = latent @ rng.normal(size=3)
        rows = np.where(rng.random(full.shape) < 0.3, np.nan, full)[:400]
        arrived = np.where(rng.random(full.shape) < 0.75, np.nan, full)[400:]
        model = LacunarRegressor(members=["gaussian"]).fit(rows, y[:400])
        loop = MeasuringLoop(model, budget=3)
        loop.add(arrived)
        bought = {"learner": loop.run(lambda row, column, full=full: full[400 + row, column]).rows_}
        seen = ~np.isnan(rows)
        size = np.abs([np.corrcoef(rows[seen[:, j], j], y[:400][seen[:, j]])[0, 1] for j in range(12)])
        order = np.argsort(np.where(np.isnan(arrived), -size, 0.0), axis=1)[:, :3]
        at = np.arange(300)[:, None]
        bought["correlation"] = arrived.copy()
        bought["correlation"][at, order] = full[400:][at, order]
        for way, table in bought.items():
            errors[way].append(np.mean((model.predict(table) - y[400:]) ** 2) / y.var())
    assert np.mean(errors["learner"]) < 0.97 * np.mean(errors["correlation"]), errors


# -- what matters -----------------------------------------------------------------------------------------------------------------


def test_importance_tells_values_from_missing_entries():
    """The first column matters by its value, the second by being missing, the third not at all."""
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(500, 3))
    gone = rng.random((500, 3)) < 0.3
    y = rows[:, 0] + 2.0 * gone[:, 1]
    rows[gone] = np.nan
    model = LacunarRegressor(members=["gaussian", "boosting"]).fit(rows[:400], y[:400])
    table = model.importance(rows[400:], y[400:])
    assert table["column"] == ["x0", "x1", "x2"]
    assert table["value"][0] > 0.3 > 0.1 > max(abs(table["value"][1:]))
    assert table["missing"][1] > 0.3
    assert abs(table["missing"][2]) < 0.1
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.importance(rows[400:], y[400:420])
    labels = np.where(y > 0.5, "high", "low")
    model = LacunarClassifier(members=["boosting"]).fit(rows[:400], labels[:400])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.importance(rows[400:], labels[400:420])
    table = model.importance(rows[400:], labels[400:])
    assert table["missing"].argmax() == 1
    assert table["value"].argmax() == 0


def test_memory_limit_takes_a_sample(monkeypatch):
    rows, y = low_rank(3000)
    few(monkeypatch, "gaussian")
    with pytest.warns(UserWarning, match="memory_limit=20 MiB lets members learn from"):
        model = LacunarRegressor(memory_limit=20).fit(rows, y)
    assert model.members_ == ["gaussian"]
    assert np.isfinite(model.out_of_fold_).sum() < 1500


# -- scikit-learn's machinery ---------------------------------------------------------------------------------------------------


def test_under_search_and_cross_validation():
    search = GridSearchCV(LacunarClassifier(members=["logistic"]), {"cv": [3, 5]}, cv=2).fit(X, LABELS)
    assert search.best_params_["cv"] in (3, 5)
    assert cross_val_predict(
        LacunarClassifier(members=["logistic"]), X, LABELS, cv=2, method="predict_proba"
    ).shape == (N, 3)


def test_groups_stay_together():
    groups = np.arange(N) % 12
    folds = list(GroupKFold(4).split(X, LABELS, groups))
    model = LacunarClassifier(members=["logistic"], cv=folds).fit(X, LABELS)
    assert model.out_of_fold_.shape == (N, 3)


def test_categories_dates_and_truth_values(of_frame):
    rows, labels = frame()
    assert of_frame.score(rows, labels) > 0.9
    strange = rows.copy()
    strange.loc[0, "town"] = "Rom"
    with pytest.warns(UserWarning, match="'Rom' in 1 cell of column 'town'"):
        assert set(of_frame.predict(strange)) <= {"yes", "no"}


def test_lists_keep_numbers_beside_text():
    rows, labels = frame()
    mixed = [[age, town] for age, town in zip(rows["age"], rows["town"], strict=True)]
    model = LacunarClassifier(members=["logistic"]).fit(mixed, labels)
    assert model.views_.encoder_.kinds_ == ["number", "category"]


def test_free_text_is_left_out_with_a_warning():
    rows, labels = frame(300)
    rows["remark"] = [f"remark {k}" for k in range(300)]
    with pytest.warns(UserWarning, match="remark"):
        LacunarClassifier(members=["logistic"]).fit(rows, np.resize(labels, 300))


@pytest.mark.parametrize("kind", [LacunarClassifier, LacunarRegressor])
def test_value_of_measuring_is_in_one_order_where_the_gaussian_buys_worse(kind, monkeypatch, tmp_path):
    """Training rows with entries hidden settle it: a Gaussian that prefers the columns that tell least is not followed."""
    rng = np.random.default_rng(0)
    full = rng.normal(size=(400, 8))
    y = full[:, :3] @ [3.0, 2.0, 1.0] + 0.1 * rng.normal(size=400)
    rows = np.where(rng.random(full.shape) < 0.3, np.nan, full)
    target = (y > 0).astype(int) if kind is LacunarClassifier else y
    followed = kind(members=["gaussian"]).fit(rows, target)
    one = measuring(followed)
    owner, name = (GaussianRegressor, "_values") if kind is LacunarRegressor else (ClassGaussians, "value_of_measuring")
    right = getattr(owner, name)

    def worst_first(self, Z, *args):
        values = right(self, Z, *args)
        if isinstance(Z, Observed):  # of classes a row that shows nothing has what columns tell alone
            Z = Z.to_dense()
            if np.isnan(Z).all():
                return values
        return np.where(np.isnan(Z), 1 / np.maximum(values, 1e-9), 0.0)

    monkeypatch.setattr(owner, name, worst_first)
    model = kind(members=["gaussian"]).fit(rows, target)
    assert not one.one_order_
    assert measuring(model).one_order_
    values = model.value_of_measuring(rows)
    of_nothing = followed.value_of_measuring(np.full((1, 8), np.nan))[0]
    for j in range(8):
        seen = ~np.isnan(rows[:, j])
        centred = rows[seen, j] - rows[seen, j].mean()
        expected = np.mean(centred * (y[seen] - y.mean())) ** 2 / np.mean(centred**2)
        if kind is LacunarClassifier:
            expected = of_nothing[j]
        assert np.allclose(values[~seen, j], expected, rtol=0.02, atol=1e-6)
        assert not values[seen, j].any()
    save_model(model, tmp_path / "model.lacunar")
    assert np.array_equal(load_model(tmp_path / "model.lacunar").value_of_measuring(rows), values)
