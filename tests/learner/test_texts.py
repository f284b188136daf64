"""Columns of text and of many levels: means of the target by level, numbers of character n-grams, and whether they are taken."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import TimeSeriesSplit

from lacunar import LacunarClassifier, LacunarRegressor, load_model, save_model
from lacunar._cuts import cuts_of
from lacunar.learner import base
from lacunar.learner import levels as levels_module
from lacunar.learner.added import AddedColumns, LearnedFrom
from lacunar.learner.levels import LevelMeans, without_own
from lacunar.learner.texts import TextNumbers
from lacunar.learner.views import TableViews

GOOD, BAD = ["excellent", "lovely", "superb", "happy"], ["awful", "broken", "terrible", "sad"]
OTHERS = ["the", "room", "staff", "food", "door", "hotel", "pool", "street", "view", "and"]
OPTIONS = {"members": ["linear"], "random_state": 0}


def shops(n=1200, levels=300, seed=0):
    """More levels than trees take, of four rows each, that tell most of the target."""
    rng = np.random.default_rng(seed)
    shop, effects = rng.integers(levels, size=n), rng.normal(size=levels)
    X = pd.DataFrame({"shop": [f"shop {k}" for k in shop], "x": rng.normal(size=n)})
    return X, 2 * effects[shop] + X["x"].to_numpy() + 0.5 * rng.normal(size=n)


def reviews(n=700, seed=0):
    """Texts that are all different, of which a few words tell the target."""
    rng = np.random.default_rng(seed)
    n_good, n_bad = rng.poisson(1.5, n), rng.poisson(1.5, n)
    texts = [
        " ".join(rng.permutation([*rng.choice(GOOD, good), *rng.choice(BAD, bad), *rng.choice(OTHERS, 8)]))
        for good, bad in zip(n_good, n_bad, strict=True)
    ]
    return pd.DataFrame({"text": texts, "x": rng.normal(size=n)}), n_good - n_bad + 0.3 * rng.normal(size=n)


def explained(model, X, y):
    return 1 - np.mean((model.predict(X) - y) ** 2) / np.var(y)


# -- means by level -----------------------------------------------------------------------------------------------------------


def test_means_of_balanced_levels_are_those_of_random_effects():
    """By the formulas of one-way analysis of variance."""
    rng = np.random.default_rng(0)
    levels, size = 12, 5
    values = rng.normal(size=levels)[:, None] + 0.7 * rng.normal(size=(levels, size))
    names = np.repeat([f"l{k:02}" for k in range(levels)], size).astype(object)
    means = LevelMeans().fit(names, values.reshape(-1, 1), np.ones(levels * size), 3)
    within = values.var(axis=1, ddof=1).mean()
    between = values.mean(axis=1).var(ddof=1) - within / size
    trust = between / (between + within / size)
    expected = trust * (values.mean(axis=1) - values.mean())
    np.testing.assert_allclose(means.transform(names[::size])[:, 0], expected, rtol=1e-10)
    np.testing.assert_allclose(means.transform(np.array(["new", ""], dtype=object))[:, 0], [0.0, np.nan])


def test_levels_that_tell_nothing_have_one_mean():
    rng = np.random.default_rng(1)
    names = rng.choice(list("abcdefgh"), 4000).astype(object)
    Y = rng.normal(size=(4000, 2))
    means = LevelMeans().fit(names, Y, np.ones(4000), 0).mean_
    assert np.all(np.abs(means) < 0.05)


def test_folds_are_not_told_apart_by_means_that_tell_nothing():
    """A mean over levels, or a scale, that differs between folds says which fold a row is of."""
    rng = np.random.default_rng(4)
    names, y = rng.integers(60, size=600).astype(str).astype(object), rng.normal(size=600)
    cuts = [(np.r_[200:600], np.r_[:200]), (np.r_[:200, 400:600], np.r_[200:400]), (np.r_[:400], np.r_[400:600])]
    means = without_own(names, y[:, None], np.ones(600), cuts)[:, 0]
    parts = [means[test] for _, test in cuts]
    assert max(abs(part.mean()) for part in parts) < 0.2 * means.std()
    assert max(part.std() for part in parts) < 2 * min(part.std() for part in parts)


FOLDS = [(np.r_[20:60], np.r_[:20]), (np.r_[:20, 40:60], np.r_[20:40]), (np.r_[:40], np.r_[40:60])]
IN_TIME = [(np.r_[:30], np.r_[30:45]), (np.r_[:45], np.r_[45:60])]


def test_columns_of_many_rows_are_judged_on_the_folds_asked_for(monkeypatch):
    """Means of later rows would tell earlier ones what nobody knows beforehand."""
    cuts, fit_transform = [], AddedColumns.fit_transform
    monkeypatch.setattr(base, "MOST_FOLDED", 500)
    monkeypatch.setattr(
        AddedColumns,
        "fit_transform",
        lambda added, rows, T, kinds, learned: (
            cuts.extend(learned.cuts) or fit_transform(added, rows, T, kinds, learned)
        ),
    )
    LacunarRegressor(cv=TimeSeriesSplit(3), **OPTIONS).fit(*shops(800))
    assert len(cuts) == 3
    assert all(train.max() < test.min() for train, test in cuts)


@pytest.mark.parametrize("cuts", [FOLDS, IN_TIME], ids=["folds", "time"])
def test_a_row_has_no_part_in_its_own_mean(cuts, monkeypatch):
    """But for how strongly all means are shrunk, which is one number a target."""
    monkeypatch.setattr(levels_module, "ratio_of", lambda groups: 2.0)
    rng = np.random.default_rng(2)
    names, Y = rng.choice(list("abcde"), 60).astype(object), rng.normal(size=(60, 1))
    before = without_own(names, Y, np.ones(60), cuts)
    for row in range(60):
        changed = Y.copy()
        changed[row] += 100.0
        after = without_own(names, changed, np.ones(60), cuts)
        assert after[row] == before[row]


def test_rows_that_are_tested_later_have_no_part_in_means_of_time():
    rng = np.random.default_rng(3)
    names, Y = rng.choice(list("abcde"), 60).astype(object), rng.normal(size=(60, 1))
    changed = Y.copy()
    changed[45:] += 100.0
    before, after = (without_own(names, target, np.ones(60), IN_TIME) for target in (Y, changed))
    np.testing.assert_array_equal(before[:45], after[:45])


# -- numbers of text ----------------------------------------------------------------------------------------------------------


def test_texts_that_are_alike_have_numbers_that_are_near():
    X, _ = reviews(300)
    numbers = TextNumbers().fit(X["text"].to_numpy(object), 0, 0)
    same, typo, other, missing = numbers.transform(
        np.array(["a lovely hotel", "a lovelly hotel", "broken door", ""], dtype=object)
    )
    assert np.linalg.norm(same - typo) < 0.5 * np.linalg.norm(same - other)
    assert np.isnan(missing).all()
    assert numbers.components_.shape[0] == 20


def test_numbers_of_a_text_do_not_depend_on_other_texts():
    texts = reviews(200)[0]["text"].to_numpy(object)
    numbers = TextNumbers().fit(texts, 0, 0)
    np.testing.assert_allclose(numbers.transform(texts[3:4]), numbers.transform(texts)[3:4], rtol=1e-12, atol=1e-14)


def test_two_different_texts_are_enough():
    numbers = TextNumbers().fit(np.array(["yes please", "no", ""], dtype=object), 0, 0)
    assert numbers.transform(np.array(["no", "unlike both"], dtype=object)).shape == (2, 1)


# -- the learner --------------------------------------------------------------------------------------------------------------


def test_many_levels_tell_what_they_know_of_new_rows():
    X, y = shops()
    with warnings.catch_warnings(action="error"):  # nothing is left out
        model = LacunarRegressor(**OPTIONS).fit(X[:900], y[:900])
    assert explained(model, X[900:], y[900:]) > 0.6
    own = 1 - np.mean((model.out_of_fold_ - y[:900]) ** 2) / np.var(y[:900])
    assert abs(own - explained(model, X[900:], y[900:])) < 0.1
    assert explained(LacunarRegressor(**OPTIONS).fit(X[["x"]][:900], y[:900]), X[["x"]][900:], y[900:]) < 0.4


def test_free_text_tells_what_it_says():
    X, y = reviews()
    model = LacunarRegressor(**OPTIONS).fit(X[:500], y[:500])
    assert explained(model, X[500:], y[500:]) > 0.5
    alone = LacunarRegressor(**OPTIONS).fit(X[["text"]][:500], y[:500])
    assert explained(alone, X[["text"]][500:], y[500:]) > 0.5


def test_labels_by_text():
    X, y = reviews()
    labels = np.where(y > 0, "good", "bad")
    model = LacunarClassifier(members=["logistic"], random_state=0).fit(X[:500], labels[:500])
    assert model.score(X[500:], labels[500:]) > 0.8


def test_identifiers_are_left_out_with_a_warning():
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"key": [f"{k:06x}" for k in rng.choice(16**6, 400, replace=False)], "x": rng.normal(size=400)})
    y = X["x"].to_numpy() + 0.5 * rng.normal(size=400)
    with pytest.warns(UserWarning, match=r"more than 250 different values, .* are left out .*: key\."):
        model = LacunarRegressor(**OPTIONS).fit(X, y)
    without = LacunarRegressor(**OPTIONS).fit(X[["x"]], y)
    np.testing.assert_array_equal(model.predict(X), without.predict(X[["x"]]))


def test_a_table_of_identifiers_alone_predicts_the_mean_and_says_so():
    rng = np.random.default_rng(5)
    X, y = pd.DataFrame({"key": [f"{k:06x}" for k in rng.integers(16**6, size=400)]}), rng.normal(size=400)
    with pytest.warns(UserWarning, match="left out"):
        model = LacunarRegressor(**OPTIONS).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y.mean(), atol=1e-9)


@pytest.mark.parametrize("n", [249, 250, 251])
def test_text_is_read_from_fewer_levels_than_trees_can_hold_too(n):
    """A text of 249 different values says what one of 251 does."""
    X, y = reviews(n)
    X["text"] = [f"{text} {row}" for row, text in enumerate(X["text"])]
    views = TableViews()
    folds = [np.arange(n)[k::3] for k in range(3)]
    learned = LearnedFrom((y / y.std())[:, None], np.ones(n), cuts_of(folds, n), 0, None, numbers=True)
    views.fit_transform(X, lambda _: learned)
    assert dict(views.what_is_added())[0] == "numbers of its character n-grams"


@pytest.mark.parametrize("n_levels", [249, 250, 251])
def test_means_of_levels_are_taken_of_as_many_levels_as_there_are(n_levels):
    rng = np.random.default_rng(0)
    shop = np.repeat(np.arange(n_levels), 4)
    X = pd.DataFrame({"shop": [f"shop {k}" for k in shop], "x": rng.normal(size=len(shop))})
    y = rng.normal(size=n_levels)[shop] + 0.3 * rng.normal(size=len(shop))
    views, folds = TableViews(), np.array_split(rng.permutation(len(shop)), 3)
    cuts = cuts_of([np.sort(fold) for fold in folds], len(shop))
    learned = LearnedFrom(y[:, None], np.ones(len(shop)), cuts, 0, None, numbers=True)
    view = views.fit_transform(X, lambda _: learned)
    assert views.what_is_added()[0] == (0, "means of the target by level")
    means = view.T[:, list(views.source_).index(0)]
    assert np.corrcoef(means, y)[0, 1] > 0.8


@pytest.mark.parametrize("n_levels", [60, 200, 300])
def test_levels_that_tell_nothing_do_not_make_the_own_estimate_too_good(n_levels):
    rng = np.random.default_rng(6)
    X = pd.DataFrame({"level": [f"L{k}" for k in rng.integers(n_levels, size=900)], "x": rng.normal(size=900)})
    y = rng.normal(size=900)
    with warnings.catch_warnings(action="ignore"):
        model = LacunarRegressor(members=["linear", "boosting"], cv=3, random_state=0).fit(X, y)
    assert np.mean((model.out_of_fold_ - y) ** 2) > 0.97 * np.var(y)


def test_means_of_a_large_table_are_learned_from_all_of_its_rows(monkeypatch):
    """Where columns are learned from a part of them, in which levels have three rows each."""
    monkeypatch.setattr(base, "_VIEWED", 3000)
    X, y = shops(8000, levels=1000)
    model = LacunarRegressor(**OPTIONS).fit(X[:6000], y[:6000])
    assert len(model.views_.added_.level_means_[0].known_) == X["shop"][:6000].nunique()
    own = 1 - np.mean((model.out_of_fold_ - y[:6000]) ** 2) / np.var(y[:6000])
    assert explained(model, X[6000:], y[6000:]) > 0.85
    assert abs(own - explained(model, X[6000:], y[6000:])) < 0.05


def test_copies_of_a_row_have_no_part_in_its_mean_in_a_large_table(monkeypatch):
    monkeypatch.setattr(base, "_VIEWED", 3000)
    X, y = shops(2000, levels=700)
    y = y + 3 * np.random.default_rng(9).normal(size=2000)
    with warnings.catch_warnings(action="ignore"):  # rows of a shop are alike
        model = LacunarRegressor(**OPTIONS).fit(pd.concat([X[:1500]] * 4, ignore_index=True), np.tile(y[:1500], 4))
    own = 1 - np.mean((model.out_of_fold_ - np.tile(y[:1500], 4)) ** 2) / np.var(y[:1500])
    assert own < explained(model, X[1500:], y[1500:]) + 0.1


def test_unlabelled_rows_and_weights_are_taken():
    X, y = shops()
    y[::7] = np.nan
    weight = np.ones(len(y))
    weight[1::7] = 0.0
    with pytest.warns(UserWarning, match="lack a label"):
        model = LacunarRegressor(**OPTIONS).fit(X, y, sample_weight=weight)
    kept = ~np.isnan(y) & (weight > 0)
    assert np.mean((model.predict(X[kept]) - y[kept]) ** 2) < 0.5 * np.var(y[kept])


def test_several_targets_have_means_of_their_own():
    X, y = shops()
    Y = np.column_stack([y, -2 * y, X["x"]])
    Y[::5, 2] = np.nan
    with warnings.catch_warnings(action="ignore"):
        model = LacunarRegressor(**OPTIONS).fit(X[:900], Y[:900])
    predicted = model.predict(X[900:])
    assert np.mean((predicted[:, 1] + 2 * y[900:]) ** 2) < 0.45 * np.var(2 * y[900:])


def new_rows():
    X, _ = shops(6, seed=0)
    return X.assign(shop=["shop 1", "shop 2", None, "somewhere else", "shop 1", "shop 5"])


@pytest.fixture(scope="module")
def model():
    return LacunarRegressor(**OPTIONS).fit(*shops())


@pytest.mark.parametrize(
    "door",
    [
        lambda X: X.astype({"shop": "category"}),
        lambda X: X.astype({"shop": object}),
        lambda X: pytest.importorskip("polars").DataFrame(X),
        lambda X: pytest.importorskip("pyarrow").Table.from_pandas(X),
        lambda X: X[["x", "shop"]],
    ],
    ids=["categories", "objects", "polars", "Arrow", "another order"],
)
def test_every_door_reads_text_alike(door, model):
    X = new_rows()
    np.testing.assert_array_equal(model.predict(door(X)), model.predict(X))


def test_an_array_of_objects_reads_as_a_frame(model):
    X, y = shops()
    of_array = LacunarRegressor(**OPTIONS).fit(X.to_numpy(dtype=object), y)
    np.testing.assert_array_equal(of_array.predict(new_rows().to_numpy(dtype=object)), model.predict(new_rows()))


def test_a_row_is_answered_alike_alone_and_among_others(model):
    X = new_rows()
    alone = np.concatenate([model.predict(X[k : k + 1]) for k in range(len(X))])
    np.testing.assert_allclose(model.predict(X), alone, rtol=1e-12)


@pytest.mark.parametrize("data", [shops, reviews], ids=["levels", "text"])
def test_a_saved_model_answers_the_same(data, tmp_path):
    X, y = data(400) if data is reviews else data(900)
    model = LacunarRegressor(**OPTIONS).fit(X, y)
    assert model.views_.what_is_added()
    save_model(model, tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").predict(X[:9]), model.predict(X[:9]))


def test_an_unseen_level_of_a_column_of_means_lies_among_the_levels():
    X, y = shops(1500, levels=150)
    model = LacunarRegressor(**OPTIONS).fit(X, y)
    assert model.views_.what_is_added()
    new = pd.DataFrame({"shop": ["elsewhere"], "x": [0.0]})
    with pytest.warns(UserWarning, match="'elsewhere' in 1 cell of column 'shop'"):
        value = model.predict(new)[0]
    levels = [model.predict(new.assign(shop=level))[0] for level in X["shop"].unique()]
    assert abs(value - np.mean(levels)) < 0.1 * np.std(levels)


@pytest.mark.parametrize("strength", [0.4, 1.0])
def test_the_own_estimate_holds_where_means_are_taken(strength, monkeypatch):
    """Of levels few enough for trees, where a mean beside its level would tell of the fold that a row is in."""
    monkeypatch.setattr("lacunar.learner.added._Pilot.is_better_with", lambda pilot, columns: True)
    rng = np.random.default_rng(7)
    level, effects, x = rng.integers(60, size=3000), strength * rng.normal(size=60), rng.normal(size=3000)
    X, y = pd.DataFrame({"level": [f"L{k}" for k in level], "x": x}), effects[level] + x + rng.normal(size=3000)
    model = LacunarRegressor(members=["linear", "boosting"], cv=3, random_state=0).fit(X[:900], y[:900])
    own, new = np.mean((model.out_of_fold_ - y[:900]) ** 2), np.mean((model.predict(X[900:]) - y[900:]) ** 2)
    assert own > 0.92 * new


def test_what_is_done_is_said(caplog):
    X, y = shops(900)
    with caplog.at_level("INFO", logger="lacunar"):
        LacunarRegressor(**OPTIONS, verbose=True).fit(X, y)
    assert [record.getMessage() for record in caplog.records].count("column shop: means of the target by level") == 1


def test_other_questions_take_text(model):
    X = new_rows()
    importance = model.importance(X, np.arange(6.0), n_repeats=1)
    assert importance["column"] == ["shop", "x"]
    assert np.isfinite(model.value_of_measuring(X)).all()
    assert model.predict_interval(X).shape == (6, 2)
