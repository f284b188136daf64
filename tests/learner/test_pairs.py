"""Pairs of categories: means of the target by pair of levels, where they are taken, and what is said of the columns they are made of."""

import warnings

import numpy as np
import pandas as pd
import pytest
from tests.reference.learner import pair_means

from lacunar import LacunarClassifier, LacunarRegressor, load_model, save_model
from lacunar.learner import base
from lacunar.learner.pairs import Pair, PairMeans, likely_pairs

LEVELS = (9, 7)


def goods(n=700, strength=1.0, first=0):
    """Two categories whose pair tells the target, another one, and a number, from row `first` on; some entries are missing."""
    rng, n, rows = np.random.default_rng(0), 3000, slice(first, first + n)
    shop, kind = (rng.integers(size, size=n) for size in LEVELS)
    X = pd.DataFrame({"shop": shop, "kind": kind, "other": rng.integers(6, size=n)}).map(lambda k: f"L{k}")
    X = X.mask(rng.random(X.shape) < 0.05).assign(x=rng.normal(size=n))
    y = strength * rng.normal(size=LEVELS)[shop, kind] + 0.5 * X["x"] + 0.3 * rng.normal(size=n)
    return X[rows].reset_index(drop=True), y.to_numpy()[rows]


def levels(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(size, size=n) for size in LEVELS]).astype(float)


def pair_of(table):
    return Pair.of(table, (0, 1), (LEVELS[0] + 1, LEVELS[1] + 1))


def silently(call, *arguments):
    with warnings.catch_warnings(action="ignore"):
        return call(*arguments)


# -- means by pair ----------------------------------------------------------------------------------------------------------


def test_means_agree_with_the_formula():
    table, y = levels(), np.random.default_rng(1).normal(size=300)
    pair = pair_of(table)
    ratios = pair.ratios(y[:, None], np.ones(300))
    means = PairMeans().fit(pair, y[:, None], np.ones(300)).transform(table)[:, 0]
    expected = pair_means(table[:, 0], table[:, 1], y, ratios[0])
    np.testing.assert_allclose(means, [expected[tuple(row)] for row in table.tolist()], rtol=1e-9, atol=1e-12)


def test_levels_not_seen_have_no_effect_and_missing_ones_no_mean():
    table, effects = levels(2000), np.random.default_rng(2).normal(size=LEVELS)
    y = effects[tuple(table.astype(int).T)]
    means = PairMeans().fit(pair_of(table), y[:, None], np.ones(2000))
    new = np.array([[0.0, 0.0], [np.nan, 0.0], [LEVELS[0], LEVELS[1]]])
    values = means.transform(new)[:, 0]
    np.testing.assert_allclose(values, [effects[0, 0] - effects.mean(), np.nan, 0.0], atol=0.1)


def test_a_row_has_no_part_in_its_own_mean(monkeypatch):
    """But for how strongly all means are shrunk."""
    monkeypatch.setattr("lacunar.learner.pairs.ratio_of", lambda sums: 2.0)
    rng = np.random.default_rng(3)
    pair, y = pair_of(levels(60)), rng.normal(size=(60, 1))
    cuts = [(np.r_[20:60], np.r_[:20]), (np.r_[:20, 40:60], np.r_[20:40]), (np.r_[:40], np.r_[40:60])]
    before = pair.without_own(y, np.ones(60), cuts)
    for row in range(60):
        changed = y.copy()
        changed[row] += 100.0
        assert pair.without_own(changed, np.ones(60), cuts)[row] == before[row]


@pytest.mark.parametrize("mean", [0.0, 5.0])
def test_pairs_are_looked_at_where_they_tell_more_than_their_levels(mean):
    rng = np.random.default_rng(4)
    table = np.column_stack([levels(1500), rng.integers(8, size=1500), rng.integers(2, size=1500)])
    first, second = table[:, :2].astype(int).T
    counts = {0: 9, 1: 7, 2: 8, 3: 2}
    of_levels = mean + rng.normal(size=9)[first] + rng.normal(size=7)[second] + rng.normal(size=1500)
    assert not [*likely_pairs(table, counts, of_levels[:, None], np.ones(1500), 2, 0)]
    of_pairs = of_levels + 0.7 * rng.normal(size=LEVELS)[first, second]
    pairs = [*likely_pairs(table, counts, np.column_stack([of_levels, of_pairs]), np.ones(1500), 2, 0)]
    assert [pair.places for pair in pairs] == [(0, 1)]


def test_a_third_category_is_looked_at_where_a_pair_tells_something():
    rng = np.random.default_rng(5)
    table = rng.integers(4, size=(2000, 4)).astype(float)
    a, b, c = table[:, :3].astype(int).T
    y = 2 * rng.normal(size=(4, 4, 4))[a, b, c] + rng.normal(size=2000)
    pairs = [*likely_pairs(table, dict.fromkeys(range(4), 4), y[:, None], np.ones(2000), 2, 0)]
    triples = [pair for pair in pairs if len(pair.places) == 3]
    assert triples
    assert all(set(pair.places) == {0, 1, 2} for pair in triples)
    means = PairMeans().fit(triples[0], y[:, None], np.ones(2000)).transform(table[:, triples[0].places])[:, 0]
    cells = pd.Series(y).groupby([a, b, c]).transform("mean").to_numpy()
    assert np.corrcoef(means, cells)[0, 1] > 0.98


@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_a_pair_that_determines_the_target_is_found_and_nothing_beside_it(noise):
    rng = np.random.default_rng(6)
    rows = rng.permutation(1800)
    table = np.column_stack([rows // 30 % 30, rows % 30, rng.integers(3, size=1800)]).astype(float)
    a, b = table[:, :2].astype(int).T
    y = np.where(rng.random((30, 30)) < 0.5, -1.0, 1.0)[a, b] + noise * rng.normal(size=1800)
    pairs = likely_pairs(table, {0: 30, 1: 30, 2: 3}, y[:, None], np.ones(1800), 2, 0)
    assert [pair.places for pair in pairs] == [(0, 1)]


def test_pairs_are_looked_at_in_rows_of_any_order_and_with_a_target():
    rng = np.random.default_rng(7)
    table = np.column_stack([rng.integers(9, size=16000), np.arange(16000) % 4]).astype(float)
    y = rng.normal(size=(9, 4))[tuple(table.astype(int).T)] + rng.normal(size=16000)
    y[::5] = np.nan
    assert likely_pairs(table, {0: 9, 1: 4}, y[:, None], np.ones(16000), 2, 0)


def test_pairs_of_few_rows_each_are_not_looked_at():
    table = np.random.default_rng(8).integers(40, size=(400, 2)).astype(float)
    assert not likely_pairs(table, {0: 40, 1: 40}, table[:, :1] * table[:, 1:], np.ones(400), 2, 0)


# -- the learner --------------------------------------------------------------------------------------------------------------


def fitted(task="regression", **options):
    X, y = goods()
    if task == "regression":
        return silently(LacunarRegressor(members=["boosting"], random_state=0, **options).fit, X, y)
    return silently(
        LacunarClassifier(members=["boosting"], random_state=0, **options).fit, X, np.digitize(y, [-0.5, 0.5])
    )


def test_three_categories_that_tell_together_are_taken(tmp_path):
    rng = np.random.default_rng(6)
    levels = rng.integers(4, size=(1500, 3))
    y = 2 * rng.normal(size=(4, 4, 4))[tuple(levels.T)] + rng.normal(size=1500)
    X = pd.DataFrame(levels, columns=list("abc")).map(lambda k: f"L{k}").assign(x=rng.normal(size=1500))
    model = LacunarRegressor(members=["boosting"], random_state=0).fit(X, y)
    (_, what), *_ = model.views_.what_is_added()[::-1]
    assert what.endswith((" and a", " and b", " and c"))
    save_model(model, tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").predict(X), model.predict(X))


@pytest.fixture(scope="module")
def model():
    return fitted()


def test_a_pair_that_tells_the_target_is_taken(model):
    assert model.views_.what_is_added() == [(0, "means of the target by its levels and those of kind")]
    X, y = goods(1400)
    fresh = 1 - np.mean((model.predict(X[700:]) - y[700:]) ** 2) / np.var(y[700:])
    own = 1 - np.mean((model.out_of_fold_ - y[:700]) ** 2) / np.var(y[:700])
    assert fresh > 0.55
    assert abs(own - fresh) < 0.12


def test_pairs_are_taken_for_classes_and_several_targets():
    assert fitted("classes").views_.added_.pair_means_[0].mean_.shape == (10, 8, 3)
    X, y = goods()
    both = LacunarRegressor(members=["boosting"], random_state=0).fit(X, np.column_stack([y, -y]))
    means = both.views_.added_.pair_means_[0].mean_
    np.testing.assert_allclose(means[..., 0], -means[..., 1], rtol=1e-9)


def test_means_of_a_large_table_are_learned_from_all_of_its_rows(monkeypatch):
    """Where columns are learned from a part of them."""
    X, y = goods(2200)
    part = LacunarRegressor(members=["boosting"], random_state=0).fit(X[:700], y[:700])
    monkeypatch.setattr(base, "_VIEWED", 700)
    whole = LacunarRegressor(members=["boosting"], random_state=0).fit(X, y)
    new, target = goods(800, first=2200)
    errors = [np.mean((model.predict(new) - target) ** 2) / np.var(target) for model in (part, whole)]
    assert errors[1] < 0.9 * errors[0]
    assert abs(np.mean((whole.out_of_fold_ - y) ** 2) / np.var(y) - errors[1]) < 0.1


def test_a_target_without_variance_has_no_means():
    X, y = goods()
    both = LacunarRegressor(random_state=0, members=["boosting"]).fit(X, np.column_stack([y, np.full(len(y), 3.0)]))
    assert both.views_.what_is_added()
    np.testing.assert_allclose(both.predict(X)[:, 1], 3.0, rtol=1e-6)


def test_completing_other_columns_leaves_means_of_other_folds():
    X, y = goods()
    X[["shop", "kind", "other"]] = X[["shop", "kind", "other"]].fillna("L1")
    X.loc[:3, "x"] = np.nan
    model = LacunarRegressor(members=["boosting"], random_state=0).fit(X, y)
    views = model.views_
    view = views.transform(X)
    (_, _, of_T, _), *_ = views._pairs()
    view.T[:, of_T] = 7.0
    completed = views.completed(view, np.zeros_like(view.Z), np.ones(view.T.shape[1], dtype=bool))
    assert not np.isnan(completed.T).any()
    assert (completed.T[:, of_T] == 7.0).all()


def test_levels_that_add_up_and_rows_that_tell_nothing_add_no_columns():
    X, y = goods(strength=0.0)
    added = LacunarRegressor(members=["boosting"], random_state=0).fit(X, y)
    assert not added.views_.what_is_added()


def test_rows_of_one_pair_are_no_copies_of_one_another():
    """Their means are the same within a fold, and their other entries by chance."""
    X, y = goods(2500)
    X = X[["shop", "kind"]].dropna()
    model = LacunarRegressor(members=["boosting"], random_state=0).fit(X, y[X.index])
    assert model.views_.added_.pair_means_
    explained = 1 - np.mean((model.out_of_fold_ - y[X.index]) ** 2) / np.var(y[X.index])
    assert explained > 0.55


def test_a_saved_model_answers_the_same(model, tmp_path):
    save_model(model, tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").predict(goods()[0]), model.predict(goods()[0]))


def test_a_row_is_answered_alike_alone_and_among_others(model):
    X = goods(20, first=900)[0]
    alone = np.concatenate([model.predict(X[k : k + 1]) for k in range(len(X))])
    np.testing.assert_allclose(model.predict(X), alone, rtol=1e-12)


def test_both_columns_are_as_important(model):
    X, y = goods(1400)
    table = model.importance(X[700:], y[700:])
    value = dict(zip(table["column"], table["value"], strict=True))
    assert min(value["shop"], value["kind"]) > 0.5 * max(value["shop"], value["kind"]) > 10 * abs(value["other"])


def test_a_mean_is_hidden_with_either_level(model):
    views = model.views_
    view = views.transform(goods(50, first=900)[0].fillna("L1"))
    (_, either, of_T, _), *_ = views._pairs()
    for column in range(view.T.shape[1]):
        hidden = np.zeros(view.T.shape, dtype=bool)
        hidden[:, column] = True
        shown = views.with_hidden(view, hidden)
        assert np.isnan(shown.T[:, of_T]).all() == (column in either)


def test_what_is_known_has_no_value_of_measuring(model):
    X = goods(60, first=900)[0]
    values = np.asarray(model.value_of_measuring(X))
    assert not values[X.notna().to_numpy()].any()
    assert values[X["shop"].isna().to_numpy(), 0].all()


def test_explanations_add_up(model):
    X = goods(6, first=900)[0]
    explained = model.explain(X, random_state=0)
    np.testing.assert_allclose(
        np.asarray(explained.values).sum(axis=1) + explained.base_values, model.predict(X), atol=1e-8
    )


def test_a_level_that_training_lacked_is_the_mean_over_its_levels_in_the_pair_too(model):
    X = pd.DataFrame({"shop": ["elsewhere"], "kind": ["L2"], "other": ["L0"], "x": [0.0]})
    with pytest.warns(UserWarning, match="elsewhere"):
        value = model.predict(X)[0]
    of_levels = [model.predict(X.assign(shop=f"L{k}"))[0] for k in range(LEVELS[0])]
    np.testing.assert_allclose(value, np.mean(of_levels), rtol=1e-9)
