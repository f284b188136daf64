"""Copies of a row stay in one fold, rows that agree by chance do not, and folds of tables without copies are as they were."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, RepeatedStratifiedKFold

import lacunar
from lacunar._cuts import cuts_among
from lacunar._random import generator
from lacunar.comparison import load_problem
from lacunar.comparison.schedule import make_splits
from lacunar.learner import LacunarClassifier, LacunarRegressor
from lacunar.learner.base import Table, Target
from lacunar.learner.folds import even_folds, repeats, rows_of, units_of

RNG = np.random.default_rng(0)


def slow_units(X):
    """By comparing every two rows."""
    units = []
    for row in X:
        alike = [unit for unit, other in zip(units, X, strict=False) if np.array_equal(row, other, equal_nan=True)]
        units.append(alike[0] if alike else max(units, default=-1) + 1)
    return np.array(units)


def doubled(X, seed=0):
    return np.random.default_rng(seed).permutation(np.vstack([X, X]))


def with_gaps(X, share=0.3):
    return np.where(RNG.uniform(size=X.shape) < share, np.nan, X)


COPIED = {
    "numbers": doubled(RNG.normal(size=(60, 3))),
    "with gaps": doubled(with_gaps(RNG.normal(size=(60, 6)))),
    "rounded": doubled(RNG.normal(size=(60, 5)).round(1)),
    "many copies of few rows": np.tile(RNG.normal(size=(25, 4)), (12, 1)),
    "one copy": np.vstack([X := RNG.normal(size=(60, 3)), X[7]]),
    "both zeros": np.vstack(
        [X := np.where(RNG.uniform(size=(60, 4)) < 0.3, 0.0, RNG.normal(size=(60, 4))), np.where(X == 0, -0.0, X)]
    ),
}


@pytest.mark.parametrize("table", COPIED)
def test_copies_are_one_unit(table):
    X = COPIED[table]
    np.testing.assert_array_equal(units_of(X), slow_units(X))
    assert repeats(units_of(X)) == len(X) - len(np.unique(X, axis=0, equal_nan=False)) or table in (
        "with gaps",
        "both zeros",
    )


FACTORIAL = np.array(np.meshgrid(*[range(3)] * 4)).reshape(4, -1).T.astype(float)
ALIKE_BY_CHANCE = {
    "one column": RNG.integers(0, 5, size=(200, 1)).astype(float),
    "two answers": RNG.integers(0, 2, size=(200, 4)).astype(float),
    "all combinations": np.tile(FACTORIAL, (5, 1)),
    "nothing observed": np.where(np.arange(200)[:, None] % 2, np.nan, RNG.normal(size=(200, 3))),
    "one number observed": np.where(np.arange(200)[:, None] % 2, [np.nan, np.nan, 1.0], RNG.normal(size=(200, 3))),
    "few different rows": np.tile(RNG.normal(size=(3, 6)), (40, 1)),
    "no columns": np.empty((30, 0)),
    "different rows": RNG.normal(size=(200, 3)),
}


@pytest.mark.parametrize("table", ALIKE_BY_CHANCE)
def test_rows_that_agree_by_chance_stand_for_themselves(table):
    X = ALIKE_BY_CHANCE[table]
    np.testing.assert_array_equal(units_of(X), np.arange(len(X)))


@pytest.mark.parametrize("labels", [None, np.sort(RNG.integers(0, 3, 101))])
def test_folds_without_copies_are_as_they_were(labels):
    order = generator(4).permutation(101)
    order = order if labels is None else order[np.argsort(labels[order], kind="stable")]
    for k, fold in enumerate(even_folds(labels, np.arange(101), 5, 4)):
        np.testing.assert_array_equal(fold, np.sort(order[k::5]))


@pytest.mark.parametrize("labels", [None, np.arange(60) % 3])
def test_folds_spread_units(labels):
    units = RNG.permutation(np.repeat(np.arange(60), 2))
    units = np.unique(np.unique(units, return_index=True)[1][units], return_inverse=True)[1]  # by first appearance
    folds = even_folds(None if labels is None else labels[units], units, 5, 0)
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(120))
    assert {len(fold) for fold in folds} == {24}
    assert all(not set(units[fold]) & set(np.delete(units, fold)) for fold in folds)
    assert [rows_of(np.unique(units[fold]), units).tolist() for fold in folds] == [fold.tolist() for fold in folds]


# -- the comparison -----------------------------------------------------------------------------------------------------


def noise(n=60, seed=1):
    generator = np.random.default_rng(seed)
    return pd.DataFrame(generator.normal(size=(n, 4)), columns=list("abcd")).assign(y=generator.integers(0, 2, n))


@pytest.mark.parametrize(("target", "kind"), [("y", RepeatedStratifiedKFold), ("a", RepeatedKFold)])
def test_splits_of_different_rows_are_those_of_scikit_learn(target, kind):
    problem = load_problem(noise(), target)
    splits, _ = make_splits(problem, 4, 2, 3)
    expected = kind(n_splits=4, n_repeats=2, random_state=3).split(problem.X, problem.y)
    for split, (train, test) in zip(splits, expected, strict=True):
        np.testing.assert_array_equal(split[0], train)
        np.testing.assert_array_equal(split[1], test)


@pytest.mark.parametrize("text", [False, True])
def test_copies_share_a_fold_of_the_comparison(text):
    table = noise().assign(e=[f"w{k % 17}" for k in range(60)] if text else 0)
    twice = pd.concat([table, table], ignore_index=True)
    problem = load_problem(twice, "y")
    said = [note for note in problem.notes if "60 rows repeat others" in note]
    assert len(said) == 1
    assert said[0].startswith("Warning: ")
    for train, test in make_splits(problem, 5, 2, 0)[0]:
        assert not set(train % 60) & set(test % 60)
        assert len(train) + len(test) == 120
    assert not [note for note in load_problem(table, "y").notes if "repeat" in note]


def test_noise_with_every_row_twice_is_noise():
    table = noise(150)
    result = lacunar.compare(pd.concat([table, table]), "y", learner=["random forest", "no columns"], repeats=1)
    scores = dict(zip(result.table["learner"], result.table["error rate"], strict=True))
    assert scores["random forest"] > 0.35


# -- the one learner ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [LacunarClassifier, LacunarRegressor])
def test_the_learner_keeps_copies_together(kind, monkeypatch):
    table, folds = noise(40), []
    original = kind._cuts

    def spying(self, *args, **options):
        folds.append(original(self, *args, **options))
        return folds[-1]

    monkeypatch.setattr(kind, "_cuts", spying)
    y = table["y"] if kind is LacunarClassifier else table["a"]
    kind(members=["gaussian"]).fit(pd.concat([table[["b", "c", "d"]]] * 2), [*y, *y])
    for _, fold in folds[0][0]:
        assert set(fold[fold < 40]) == set(fold[fold >= 40] - 40)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (
            [(np.arange(20), np.arange(20, 40)), (np.arange(20), np.arange(23, 26))],
            "tests 20, 3 of them more than once",
        ),
        ([(np.arange(40), np.arange(5))], "and 5 in a split that trains on them"),
        ([(np.arange(40), np.arange(0))], "tests 0, 0 of them"),
    ],
)
def test_a_splitter_that_tests_rows_twice_is_refused_with_a_way_that_works(cv, message):
    table = noise(40)
    with pytest.raises(ValueError, match=message) as raised:
        LacunarClassifier(members=["gaussian"], cv=cv).fit(table[["a", "b"]], table["y"])
    assert "GroupKFold with fit(..., groups=...)" in str(raised.value)
    LacunarClassifier(members=["gaussian"], cv=GroupKFold(5)).fit(
        table[["a", "b"]], table["y"], groups=np.arange(40) % 9
    )


@pytest.mark.parametrize(("n", "cv", "expected"), [(399, None, 5), (400, None, 3), (400, 4, 4), (4, None, 4)])
def test_number_of_folds(n, cv, expected):
    """Three by default, five of few rows, and no more than there are rows."""
    model = LacunarRegressor(cv=cv)
    model.seed_ = 0
    table, target = Table.of(np.zeros((n, 1))), Target(None, np.zeros((n, 1)), 0, None)
    cuts, independent = model._cuts(np.arange(n), table, np.arange(n), target)
    assert independent
    assert len(cuts) == expected
    assert np.array_equal(np.sort(np.concatenate([test for _, test in cuts])), np.arange(n))


@pytest.mark.parametrize(
    "cv", [None, KFold(4), list(KFold(4).split(np.zeros(90)))], ids=["folds", "splitter", "splits"]
)
@pytest.mark.parametrize("make", [LacunarClassifier, LacunarRegressor])
def test_rows_of_weight_zero_are_as_if_they_were_not_there(make, cv):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 3)), columns=list("abc")).mask(rng.random((90, 3)) < 0.2)
    X["d"] = rng.choice(["x", "y"], 90)
    y = (np.nan_to_num(X["a"]) + (X["d"] == "x") > 0.5).astype(float)
    weight = rng.integers(0, 3, 90)
    counted = weight > 0
    others = X.copy()
    others.loc[~counted, ["a", "d"]] = 1e6, "z"
    members = {"members": ["gaussian", "boosting"]}
    model = make(cv=cv, **members).fit(others, np.where(counted, y, 7.0), sample_weight=weight)
    if isinstance(cv, list):
        cv = cuts_among(cv, np.flatnonzero(counted), 90)
    without = make(cv=cv, **members).fit(X[counted], y[counted], sample_weight=weight[counted])
    answers = [getattr(m, "predict_proba", m.predict)(X) for m in (model, without)]
    np.testing.assert_allclose(*answers, rtol=1e-9)


@pytest.mark.parametrize("names", [("low", "high", "unsure"), (0, 1, 2)])
def test_rows_of_a_class_of_weight_zero_are_as_if_they_were_not_there(names):
    table = noise(90).drop(columns="y")
    y = np.array(names)[np.random.default_rng(0).integers(0, 3, 90)]
    counted, members = y != names[2], {"members": ["gaussian", "boosting"]}
    model = LacunarClassifier(class_weight={names[2]: 0, names[0]: 2}, **members).fit(table, y)
    without = LacunarClassifier(class_weight={names[0]: 2}, **members).fit(table[counted], y[counted])
    assert list(model.classes_) == sorted(names[:2])
    np.testing.assert_allclose(model.predict_proba(table), without.predict_proba(table), rtol=1e-9)


def test_a_class_of_weight_zero_that_no_row_has_is_an_error():
    table = noise(40)
    with pytest.raises(ValueError, match="class_weight"):
        LacunarClassifier(class_weight={"unsrue": 0}, members=["gaussian"]).fit(table[["a", "b"]], table["y"])
