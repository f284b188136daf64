"""Rows with a level that training did not have are predicted as the average over the levels that it had, and never as missing."""

import warnings

import numpy as np
import pandas as pd
import pytest

from lacunar import LacunarClassifier, LacunarRegressor, load_model, save_model

LEVELS = ["amber", "green", "red"]
MEMBERS = ["kernels", "boosting", "forest"]


def table(n=160):
    """Levels, numbers beside them, and a target that is far off where the level is missing."""
    rng = np.random.default_rng(0)
    colour = rng.choice([*LEVELS, None], n, p=[0.2, 0.2, 0.4, 0.2])
    X = pd.DataFrame({"colour": colour, "size": rng.choice(["s", "m", "l"], n), "x": rng.normal(size=n)})
    y = X["colour"].map({"red": 1.0, "green": 2.0, "amber": 3.0}).fillna(9.0) + X["x"] + (X["size"] == "l")
    return X, y.to_numpy(float) + 0.1 * rng.normal(size=n)


def fitted(task, members=("linear", "boosting")):
    X, y = table()
    if task == "regression":
        return LacunarRegressor(members=list(members), cv=2, random_state=0).fit(X, y)
    members = ["logistic" if name == "linear" else name for name in members]
    return LacunarClassifier(members=members, cv=2, random_state=0).fit(X, np.where(y > 3, "high", "low"))


def new_rows(colours):
    return pd.DataFrame({"colour": colours, "size": "s", "x": np.linspace(-1, 1, len(colours))})


def silently(method, X):
    with warnings.catch_warnings(action="ignore"):
        return method(X)


@pytest.fixture(scope="module")
def regressor():
    return fitted("regression")


@pytest.fixture(scope="module")
def classifier():
    return fitted("classification")


@pytest.mark.parametrize("member", MEMBERS)
def test_an_unseen_level_is_the_average_over_levels_with_every_member(member):
    model, X = fitted("regression", [member]), new_rows(["blue"] * 3)
    mean = np.mean([model.predict(X.assign(colour=level)) for level in LEVELS], axis=0)
    np.testing.assert_allclose(silently(model.predict, X), mean, rtol=1e-12)
    assert np.all(silently(model.predict, X) < model.predict(X.assign(colour=None)) - 1)


def test_probabilities_are_averaged(classifier):
    X = new_rows(["blue"] * 3)
    chances = [
        classifier.ensemble_.predict(classifier.views_.transform(X.assign(colour=k)), classifier.posterior_)
        for k in LEVELS
    ]
    logs = classifier._predicted(classifier.ensemble_, silently(classifier.views_.transform, X))
    np.testing.assert_allclose(np.exp(logs), np.mean(np.exp(chances), axis=0), rtol=1e-12)
    np.testing.assert_allclose(silently(classifier.predict_proba, X).sum(axis=1), 1.0, rtol=1e-12)


def test_a_row_is_answered_alike_alone_and_among_others(regressor):
    X = new_rows(["blue", "red", None, "white", "blue"])
    X.loc[3:, "size"] = "huge"
    alone = np.concatenate([silently(regressor.predict, X[k : k + 1]) for k in range(len(X))])
    np.testing.assert_array_equal(silently(regressor.predict, X), alone)
    known = X.index.isin([1, 2])
    np.testing.assert_array_equal(regressor.predict(X[known]), alone[known])


def test_one_warning_names_column_level_and_meaning(regressor):
    X = new_rows(["blue", "red", "blue"])
    X.loc[1, "size"] = "huge"
    with pytest.warns(UserWarning, match="fit never saw") as caught:
        regressor.predict(X)
    assert [str(w.message) for w in caught] == [
        "categories that fit never saw: 'blue' in 2 cells of column 'colour' (first in row 0); 'huge' in 1 cell of column "
        "'size' (first in row 1). They are predicted as the average over those that it saw."
    ]
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "door",
    [
        lambda X: X.astype({"colour": "category"}),
        lambda X: X.astype(object),
        lambda X: pytest.importorskip("polars").DataFrame(X),
        lambda X: pytest.importorskip("pyarrow").Table.from_pandas(X),
    ],
    ids=["categories", "objects", "polars", "Arrow"],
)
def test_every_door_knows_an_unseen_level(door, regressor, classifier):
    X = new_rows(["blue", "red", None])
    for method in (regressor.predict, classifier.predict_proba):
        np.testing.assert_array_equal(silently(method, door(X)), silently(method, X))


def test_every_door_of_arrays_knows_an_unseen_level():
    X, y = table()
    model = LacunarRegressor(members=["linear"], random_state=0).fit(X.to_numpy(dtype=object), y)
    frames = LacunarRegressor(members=["linear"], random_state=0).fit(X, y)
    new = new_rows(["blue", "red", None])
    np.testing.assert_array_equal(silently(model.predict, new.to_numpy(dtype=object)), silently(frames.predict, new))


def test_intervals_and_sets_are_of_the_averaged_prediction(regressor, classifier):
    X = new_rows(["blue", "red"])
    values, std = silently(lambda X: regressor.predict(X, return_std=True), X)
    np.testing.assert_array_equal(values, silently(regressor.predict, X))
    np.testing.assert_allclose(silently(regressor.predict_interval, X).mean(axis=1), values, rtol=1e-9)
    assert np.all(std > 0)
    likeliest = silently(classifier.predict_proba, X).argmax(axis=1)
    assert silently(classifier.predict_set, X)[np.arange(2), likeliest].all()


def test_a_saved_model_answers_the_same(regressor, tmp_path):
    X = new_rows(["blue", "red", None])
    save_model(regressor, tmp_path / "m")
    np.testing.assert_array_equal(silently(load_model(tmp_path / "m").predict, X), silently(regressor.predict, X))


def test_other_questions_take_an_unseen_level(regressor):
    X = new_rows(["blue", "red", None, "green"])
    assert np.isfinite(silently(lambda X: regressor.importance(X, np.arange(4.0), n_repeats=1)["value"], X)).all()
    values = silently(regressor.value_of_measuring, X)
    assert values[0, 2] == 0.0
    assert np.isfinite(values).all()


def test_many_levels_and_two_unseen_at_once_lie_among_the_seen():
    rng = np.random.default_rng(1)
    levels, sizes = rng.integers(100, size=1500), rng.choice(["s", "m", "l"], 1500)
    X = pd.DataFrame({"level": [f"L{k}" for k in levels], "size": sizes, "x": rng.normal(size=1500)})
    y = levels / 100 + (sizes == "l")
    model = LacunarRegressor(members=["boosting"], cv=2, random_state=0).fit(X, y)
    value = silently(model.predict, pd.DataFrame({"level": ["new"], "size": ["huge"], "x": [0.0]}))
    assert abs(float(value[0]) - (0.5 + 1 / 3)) < 0.15


def test_the_average_is_nearer_to_new_levels_than_a_missing_one():
    """Levels held out of a table where missing says something else."""
    rng = np.random.default_rng(2)
    levels, effects = rng.integers(24, size=900), rng.normal(size=24)
    missing = rng.random(900) < 0.2
    y = np.where(missing, 4.0, effects[levels]) + 0.1 * rng.normal(size=900)
    colour = np.where(missing, None, np.char.add("L", levels.astype(str)).astype(object))
    X = pd.DataFrame({"colour": colour, "x": rng.normal(size=900)})
    held_out = (levels >= 18) & ~missing
    model = LacunarRegressor(random_state=0, members=["linear", "forest"], cv=2).fit(X[~held_out], y[~held_out])
    error = np.mean((silently(model.predict, X[held_out]) - y[held_out]) ** 2)
    as_missing = np.mean((silently(model.predict, X[held_out].assign(colour=None)) - y[held_out]) ** 2)
    assert error < 1.2 * np.var(effects) + 0.1
    assert error < as_missing / 4


@pytest.mark.parametrize("door", ["objects", "text", "polars", "Arrow"])
def test_an_odd_cell_of_truth_values_is_missing_in_its_row_alone(door):
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"member": rng.random(200) < 0.5, "x": rng.normal(size=200)})
    model = LacunarRegressor(members=["linear"], random_state=0).fit(X, 3.0 * X["member"] + X["x"])
    rows, expected = X[:20].astype(object), model.predict(X[:20])
    rows.iloc[4, 0] = "unknown"
    without = model.predict(rows.assign(member=rows["member"].where(rows.index != 4, None)))
    if door != "objects":
        rows["member"] = rows["member"].astype(str)
    if door == "polars":
        rows = pytest.importorskip("polars").DataFrame(rows.astype({"x": float}))
    if door == "Arrow":
        rows = pytest.importorskip("pyarrow").Table.from_pandas(rows.astype({"x": float}))
    with pytest.warns(UserWarning, match="'unknown' in 1 cell of column 'member'"):
        found = model.predict(rows)
    np.testing.assert_array_equal(found, without)
    np.testing.assert_array_equal(np.delete(found, 4), np.delete(expected, 4))


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_level_of_one_row_is_out_of_fold_as_an_unseen_one(task):
    """Its fold has not learned it: not as missing, which means a target of 9 here, but as the average over the levels that were learned."""
    X, y = table(300)
    rows = np.flatnonzero(X["colour"].notna())[::40]
    X.loc[rows, "colour"] = [f"rare {k}" for k in range(len(rows))]
    y[rows] = 2.0 + X["x"][rows] + (X["size"][rows] == "l")
    options = {"members": ["boosting"], "cv": 3, "random_state": 0}
    if task == "regression":
        out_of_fold = LacunarRegressor(**options).fit(X, y).out_of_fold_
        assert np.abs(np.ravel(out_of_fold)[rows] - y[rows]).max() < 3.0
        missing = np.flatnonzero(X["colour"].isna())
        assert np.ravel(out_of_fold)[missing].mean() > 7.0
    else:
        model = LacunarClassifier(**options).fit(X, np.where(y > 6, "high", "low"))
        np.testing.assert_allclose(model.out_of_fold_.sum(axis=1), 1.0)
        assert model.out_of_fold_[rows, 1].min() > 0.5  # "low"


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_level_that_one_fold_lacks_is_not_missing_to_its_trees(task, tmp_path):
    """Levels of two rows, of which a fold of three learns neither, one or both: a target of 9 where the level is missing is no part of the answer."""
    X, y = table(300)
    rows = np.flatnonzero(X["colour"].notna())[:200].reshape(5, 40)[:, :2]
    for k, pair in enumerate(rows):
        X.loc[pair, "colour"] = f"rare {k}"
        y[pair] = 2.0 + X["x"][pair] + (X["size"][pair] == "l")
    rare, options = X.iloc[rows.ravel()], {"members": ["boosting"], "cv": 3, "random_state": 0}
    kind, target = (
        (LacunarRegressor, y) if task == "regression" else (LacunarClassifier, np.where(y > 6, "high", "low"))
    )
    model = kind(**options).fit(X, target)
    save_model(model, tmp_path / "model.lacunar")
    loaded = load_model(tmp_path / "model.lacunar")
    if task == "regression":
        answers = loaded.predict(rare)
        assert np.abs(answers - y[rows.ravel()]).max() < 1.0
        np.testing.assert_array_equal(answers, model.predict(rare))
    else:
        answers = loaded.predict_proba(rare)
        assert answers[:, 1].min() > 0.9  # "low"
        np.testing.assert_array_equal(answers, model.predict_proba(rare))
