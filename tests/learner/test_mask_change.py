"""A warning where rows to predict lack other entries than the training rows did."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference.masks import compared as slowly_compared
from reference.masks import has_unseen_pair as slowly_unseen
from scipy.special import expit

from lacunar import LacunarClassifier, LacunarRegressor, Observed, load_model, save_model
from lacunar.learner.masks import MaskComparison

ROOT = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(8), np.arange(8))))
SHIFT = 1.27  # expit(2 (x - SHIFT / 2)) has a mean of about .3 over the standard normal law


def complete(n, rng):
    return rng.normal(size=(n, 8)) @ ROOT.T


def at_random(X, rng, share=0.3):
    return np.where(rng.random(X.shape) < share, np.nan, X)


def by_value(X, rng):
    return np.where(rng.random(X.shape) < expit(2 * X - SHIFT), np.nan, X)


def by_first(X, rng):
    """Columns of about the same share missing as in `at_random`, all by the first column, which is complete."""
    missing = rng.random(X.shape) < expit(2 * X[:, :1] - SHIFT)
    missing[:, 0] = False
    return np.where(missing, np.nan, X)


def but_first(X, rng):
    rows = at_random(X, rng, 0.31)
    rows[:, 0] = X[:, 0]
    return rows


def whole(X, rng):
    return X


def halves(X, rng):
    """Every row lacks the first four columns or the last four."""
    return np.where((rng.random((len(X), 1)) < 0.5) == (np.arange(8) < 4), np.nan, X)


CHANGES = [
    (whole, at_random), (at_random, whole), (by_value, at_random), (at_random, by_value), (by_first, but_first),
    (but_first, by_first), (by_value, whole),
]  # fmt: skip


def summary(hide, n=600, seed=0):
    rng = np.random.default_rng(seed)
    return MaskComparison().fit(hide(complete(n, rng), rng), 0)


NAMES = [f"x{j}" for j in range(8)]


@pytest.mark.parametrize(("trained", "new"), CHANGES, ids=lambda hide: hide.__name__)
def test_another_mechanism_is_seen_in_two_hundred_rows(trained, new):
    comparison, rng = summary(trained), np.random.default_rng(1)
    said = [bool(comparison.differences(new(complete(200, rng), rng), NAMES)) for _ in range(20)]
    assert sum(said) >= 19


@pytest.mark.parametrize("hide", [whole, at_random, by_value, by_first], ids=lambda hide: hide.__name__)
@pytest.mark.parametrize("n_rows", [60, 200, 1500])
def test_the_mechanism_of_training_is_none(hide, n_rows):
    comparison, rng = summary(hide), np.random.default_rng(2)
    said = [bool(comparison.differences(hide(complete(n_rows, rng), rng), NAMES)) for _ in range(30)]
    assert sum(said) <= 2


def test_rare_answers_and_heavy_tails_are_no_change():
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.random(4000) < 0.01 * k for k in range(1, 9)]).astype(float)
    rows = at_random(np.hstack([rows, rng.standard_cauchy(size=(4000, 4))]), rng, 0.05)
    comparison = MaskComparison().fit(rows[:1000], 0)
    said = [bool(comparison.differences(rows[first : first + 100], NAMES + NAMES)) for first in range(1000, 4000, 100)]
    assert sum(said) <= 2


def test_values_that_move_are_no_change_of_masks_where_nothing_is_missing():
    comparison, rng = summary(whole), np.random.default_rng(4)
    assert not comparison.differences(complete(200, rng) + 3, NAMES)


@pytest.mark.parametrize(("trained", "new"), [(at_random, by_value), (by_first, at_random), (whole, by_value)])
def test_all_comparisons_are_those_of_the_slow_twin(trained, new):
    rng = np.random.default_rng(5)
    training, batch = np.round(trained(complete(150, rng), rng), 1), np.round(new(complete(70, rng), rng), 1)
    comparison = MaskComparison().fit(training, 0)
    for z, slow in zip(comparison.compare(batch), slowly_compared(batch, training), strict=True):
        np.testing.assert_allclose(z, slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("trained", [halves, at_random, whole, by_first])
@pytest.mark.parametrize("new", [halves, at_random, whole])
def test_unseen_pairs_are_those_of_the_slow_twin(trained, new):
    rng = np.random.default_rng(5)
    training, batch = trained(complete(150, rng), rng), new(complete(30, rng), rng)
    unseen = MaskComparison().fit(training, 0).has_unseen_pair(batch)
    np.testing.assert_array_equal(unseen, slowly_unseen(batch, training))
    assert unseen.mean() > 0.8 if trained is halves and new is not halves else trained is by_first or not unseen.any()


def test_few_rows_are_not_compared():
    assert summary(whole).compare(np.full((49, 8), np.nan)) is None
    assert summary(whole, n=49).compare(np.full((200, 8), np.nan)) is None
    assert summary(whole).differences(np.full((50, 8), np.nan), NAMES)


def test_of_many_columns_some_have_their_pairs_compared():
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(300, 130))
    comparison = MaskComparison().fit(at_random(rows, rng), 0)
    assert comparison.together_.shape == (100, 100)
    assert not comparison.differences(at_random(rng.normal(size=(200, 130)), rng), [str(j) for j in range(130)])
    batch = rows[:200].copy()
    batch[:, 4] = np.nan  # which is in no pair
    assert 4 not in comparison.paired_
    batch = np.where(np.arange(130) == 4, np.nan, at_random(batch, rng))
    assert "'4' is missing in 100%" in comparison.differences(batch, [str(j) for j in range(130)])[0]


def trained(kind, hide, n=300):
    rng = np.random.default_rng(7)
    X = complete(n, rng)
    y = X @ np.ones(8) + rng.normal(size=n)
    return kind(members=["gaussian"], cv=2).fit(hide(X, rng), y > 0 if kind is LacunarClassifier else y)


@pytest.fixture(scope="module", params=[LacunarClassifier, LacunarRegressor])
def model(request):
    return trained(request.param, whole)


def calls(model):
    if isinstance(model, LacunarClassifier):
        labels = lambda X: np.ones(X.shape[0], dtype=bool)  # noqa: E731
        return [
            model.predict, model.predict_proba, model.predict_log_proba, model.decision_function, model.predict_set,
            lambda X: model.score(X, labels(X)),
        ]  # fmt: skip
    return [
        model.predict, model.predict_interval, model.predict_quantiles, lambda X: model.predict(X, return_std=True),
        lambda X: model.score(X, np.arange(float(X.shape[0]))),
    ]  # fmt: skip


def warned(call, X):
    with warnings.catch_warnings(record=True, action="always") as caught:
        call(X)
    return [str(warning.message) for warning in caught if "lack other entries" in str(warning.message)]


def test_every_call_says_it_once_with_the_columns(model):
    rng = np.random.default_rng(8)
    rows = complete(60, rng)
    same = rows.copy()
    rows[rng.random(60) < 0.5, 3] = np.nan
    for call in calls(model):
        for _ in range(2):
            (message,) = warned(call, rows)
            assert "'x3' is missing in" in message
            assert "(training: 0%)" in message
            assert "rain on rows like these" in message
        assert not warned(call, same)


def test_doors_say_the_same(model):
    rng = np.random.default_rng(9)
    rows = at_random(complete(80, rng), rng, 0.4)
    messages = warned(model.predict, rows)
    observed = ~np.isnan(rows)
    sparse = sp.csr_array((rows[observed], np.nonzero(observed)), shape=rows.shape)
    for door in (sparse, Observed.from_dense(rows), np.ma.masked_invalid(rows)):
        assert warned(model.predict, door) == messages
    assert len(messages) == 1


def test_frames_name_their_columns():
    rng = np.random.default_rng(10)
    frame = pd.DataFrame(complete(200, rng), columns=[f"lab {k}" for k in range(8)])
    frame["ward"] = pd.Categorical(rng.choice(["a", "b"], 200))
    model = LacunarClassifier(members=["gaussian"], cv=2).fit(frame, frame["lab 0"] > 0)
    assert not warned(model.predict, frame[:100])
    frame.loc[rng.random(200) < 0.6, "ward"] = None
    assert "'ward' is missing in" in warned(model.predict, frame)[0]


def test_a_long_table_is_compared_whole(monkeypatch, model):
    """By rows from all of its batches, once."""
    monkeypatch.setattr("lacunar.learner.base.BATCH", 500)
    rng = np.random.default_rng(11)
    rows = complete(2600, rng)
    assert not warned(model.predict, rows)
    rows[2000:, 5] = np.nan
    (message,) = warned(model.predict, rows)
    assert "'x5' is missing in 23% (training: 0%)" in message
    assert "comparison of 867 of them" in message


def test_what_is_compared_is_stored(model, tmp_path):
    rng = np.random.default_rng(12)
    rows = at_random(complete(100, rng), rng, 0.2)
    save_model(model, tmp_path / "model.lacunar")
    messages = warned(model.predict, rows)
    assert warned(load_model(tmp_path / "model.lacunar").predict, rows) == messages
    assert warned(pickle.loads(pickle.dumps(model)).predict, rows) == messages
    assert len(messages) == 1


def test_a_file_whose_comparison_is_of_other_columns_is_refused(tmp_path):
    model = trained(LacunarRegressor, whole, 60)
    model.masks_ = MaskComparison().fit(np.zeros((60, 3)), 0)
    save_model(model, tmp_path / "model.lacunar")
    with pytest.raises(ValueError, match="do not fit together"):
        load_model(tmp_path / "model.lacunar")


def test_where_values_alone_differ_it_says_what_that_may_be():
    model = trained(LacunarRegressor, at_random)
    rng = np.random.default_rng(13)
    rows = at_random(complete(200, rng), rng)
    rows[:, 2] += 1
    (message,) = warned(model.predict, rows)
    assert "observed values of 'x2' are larger" in message
    assert "the values themselves may have changed" in message


def test_an_absent_column_is_warned_of_once():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"]).mask(rng.random((200, 3)) < 0.2)
    model = LacunarRegressor(members=["linear"]).fit(frame, rng.normal(size=200))
    absent = "X lacks columns of fit, taken as missing: b."
    for rows, n_warnings in ((frame, 1), (frame.assign(a=np.nan), 2)):  # another change is still told
        with warnings.catch_warnings(record=True, action="always") as caught:
            model.predict(rows.drop(columns="b"))
        messages = [str(w.message) for w in caught]
        assert messages[0] == absent
        assert len(messages) == n_warnings
    assert "'a' is missing in 100%" in messages[1]
    assert "'b'" not in messages[1]


def test_intervals_rest_on_values_where_training_masks_no_longer_hold(tmp_path):
    """Training entries are missing by their own values, those of new rows at random: members read the wrong thing."""
    rng = np.random.default_rng(0)
    X, slopes = complete(400, rng), rng.normal(size=8)
    y = X @ slopes + 0.5 * rng.normal(size=400)
    model = LacunarRegressor(members=["linear", "boosting"], random_state=0).fit(by_value(X, rng), y)
    full = complete(1500, rng)
    target = full @ slopes + 0.5 * rng.normal(size=1500)
    rows = at_random(full, rng, 0.6)
    with pytest.warns(UserWarning, match="lack other entries"):
        interval, quantiles = model.predict_interval(rows), model.predict_quantiles(rows, [0.05, 0.5, 0.95])
    assert 0.86 < np.mean((interval[:, 0] <= target) & (target <= interval[:, 1])) < 0.96
    assert np.mean(quantiles[:, 0] <= target) > 0.88  # entries were missing where they were large
    few = [model.predict_interval(rows[first : first + 40]) for first in range(0, 1480, 40)]  # too few to be compared
    low, high = np.vstack(few).T
    assert np.mean((low <= target[:1480]) & (target[:1480] <= high)) < 0.85
    with pytest.warns(UserWarning, match="lack other entries"):
        together = model.predict_interval(np.vstack([rows, full[:40]]))
    np.testing.assert_allclose(together[:1500], interval, atol=0.02)
    usual = by_value(full, rng)
    np.testing.assert_array_equal(model.predict_interval(usual)[:9], model.predict_interval(usual[:9]))
    save_model(model, tmp_path / "model")
    with pytest.warns(UserWarning, match="lack other entries"):
        np.testing.assert_array_equal(load_model(tmp_path / "model").predict_interval(rows), interval)


def test_intervals_rest_on_values_of_rows_that_lack_single_columns_of_blocks():
    """No training row tells how columns of two halves go together: what members add up of both is less certain than of one."""
    rng = np.random.default_rng(2)
    cause = rng.normal(size=(1800, 2))
    X = cause @ rng.normal(size=(2, 8)) + 0.6 * rng.normal(size=(1800, 8))
    y = X.sum(axis=1) + 2.0 * (X[:, 0] > 0) + rng.normal(size=1800)
    model = LacunarRegressor(members=["linear", "boosting"], random_state=0).fit(halves(X[:300], rng), y[:300])
    rows = at_random(X[300:], rng)
    with pytest.warns(UserWarning, match="lack other entries"):
        low, high = model.predict_interval(rows).T
    assert np.mean((low <= y[300:]) & (y[300:] <= high)) > 0.8  # .69 by the learner alone
    few = model.predict_interval(rows[:9])  # whatever rows come beside them
    np.testing.assert_allclose(few, np.column_stack([low, high])[:9], rtol=1e-9)


def test_intervals_of_changed_masks_reach_the_mean_of_the_training_targets():
    """Middles that are off it are so because of what is missing; only rows that lack something reach farther."""
    rng = np.random.default_rng(0)
    X = complete(400, rng)
    y = X.sum(axis=1) + 0.5 * rng.normal(size=400)
    model = LacunarRegressor(members=["linear", "boosting"], random_state=0).fit(at_random(X, rng), y)
    full = complete(1500, rng)
    target, rows = full.sum(axis=1) + 0.5 * rng.normal(size=1500), by_value(full, rng)
    rows[:100] = full[:100]
    with pytest.warns(UserWarning, match="lack other entries"):
        low, high = model.predict_interval(rows).T
    with pytest.warns(UserWarning, match="lack other entries"):
        quantiles = model.predict_quantiles(rows, [0.05, 0.5, 0.95])
    gaps = np.isnan(rows).any(axis=1)
    assert np.mean((low <= target) & (target <= high)) > 0.86
    assert np.mean(target > high) < 0.1
    median = quantiles[gaps, 1]
    assert np.mean(quantiles[gaps, 2] - median) > np.mean(median - quantiles[gaps, 0])  # to the side of the targets
    assert np.mean((high - low)[~gaps]) < 0.5 * np.mean((high - low)[gaps])


def test_a_level_never_seen_is_neither_missing_nor_a_larger_value():
    """It is warned of by name as a level; of masks and values there is nothing to say."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=300), "city": rng.choice(["Bern", "Oslo", "Rome"], 300)})
    y = X["x"] + rng.normal(size=300)
    X = X.mask(rng.random(X.shape) < 0.2)
    model = LacunarRegressor(members=["linear", "boosting"], random_state=0).fit(X, y)
    new = X.assign(city=X["city"].mask(X["city"].notna() & (rng.random(300) < 0.3), "Vaduz"))
    assert warned(model.predict, new) == []
    with pytest.warns(UserWarning, match="'Vaduz' in .* cells of column 'city'"):
        model.predict(new)
    assert warned(model.predict, new.assign(x=np.where(rng.random(300) < 0.7, np.nan, 0.0)))
