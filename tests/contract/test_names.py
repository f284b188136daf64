"""Frames whose columns are not those of fit: every estimator takes them by name."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from test_estimators import BASELINES, ESTIMATORS, LEARNERS, PRINTED, SUBSPACE_REGRESSORS, TRANSFORMERS, WRAPPERS

from lacunar import KarmaOnlineClassifier, LacunarClassifier, LacunarRegressor
from lacunar.encode import TableEncoder
from lacunar.lowrank import POPCA, GaussianRegressor
from lacunar.uncertainty import MeasuringLoop

KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": lambda frame: pl.from_pandas(frame).to_arrow(),
}
NAMES = list("abcde")


def frame(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(n, 5))
    X[rng.random(X.shape) < 0.15] = np.nan
    return pd.DataFrame(X, columns=NAMES)


X = frame()
Y = X["a"].fillna(0).to_numpy() + X["b"].fillna(0).to_numpy()
LABELS = np.where(Y > 0, "up", "down")


def quick(estimator):
    """With less to do: names are looked at before that."""
    if isinstance(estimator, LacunarClassifier | LacunarRegressor):
        return clone(estimator).set_params(members=["gaussian"])
    small = {"mu_min": 1e-2, "max_search_rows": 40}
    return clone(estimator).set_params(**{name: v for name, v in small.items() if name in estimator.get_params()})


def learned(estimator, table=X):
    with warnings.catch_warnings(action="ignore"):  # not converged
        return quick(estimator).fit(table, LABELS if is_classifier(estimator) else Y)


def answer(model, table):
    return np.asarray(model.predict(table) if hasattr(model, "predict") else model.transform(table))


def same(found, expected):
    np.testing.assert_array_equal(found, expected)


def said(caught):
    return [str(each.message) for each in caught if issubclass(each.category, UserWarning)]


# Rows without a column lack other entries than the training rows did: learners say that too, in words of their own.
LACKING = pytest.mark.filterwarnings("ignore:the rows to predict lack other entries")


EVERY = [*ESTIMATORS, *LEARNERS, *TRANSFORMERS, *SUBSPACE_REGRESSORS, *PRINTED, *BASELINES, *WRAPPERS]
ONE_OF_A_CLASS = list({type(estimator): estimator for estimator in EVERY}.values())


@LACKING
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", ONE_OF_A_CLASS, ids=lambda each: type(each).__name__)
def test_columns_go_by_name(estimator, kind):
    make = KINDS[kind]
    model = learned(estimator, make(X))
    assert list(model.feature_names_in_) == NAMES
    expected = answer(model, make(X))
    same(answer(model, make(X[NAMES[::-1]])), expected)
    with pytest.warns(UserWarning, match="X has") as caught:
        same(answer(model, make(X.assign(z=1.0, other=2.0)[["z", *NAMES[::-1], "other"]])), expected)
    assert said(caught) == ["X has columns that fit never saw, ignored: z, other."]
    with pytest.warns(UserWarning, match="X lacks") as caught:
        found = answer(model, make(X[["e", "c", "a"]]))
    assert said(caught)[0] == "X lacks columns of fit, taken as missing: b, d."
    assert sum("X lacks" in text or "X has" in text for text in said(caught)) == 1
    with warnings.catch_warnings(action="ignore"):
        same(found, answer(model, make(X.assign(b=np.nan, d=np.nan))))
    with pytest.raises(ValueError, match=r"columns of fit, a, b, c, d, e; got none of them, but v, w.*Rename"):
        answer(model, make(pd.DataFrame({"v": [1.0], "w": [2.0]})))


@pytest.mark.parametrize("estimator", ONE_OF_A_CLASS, ids=lambda each: type(each).__name__)
def test_two_columns_of_one_name_are_refused(estimator):
    twice = pd.concat([X, X[["b"]]], axis=1)
    for call in (lambda: learned(estimator, twice), lambda: answer(learned(estimator), twice)):
        with pytest.raises(ValueError, match=r"columns of different names; got 'b' 2 times"):
            call()


def test_a_table_without_names_is_as_scikit_learn_has_it():
    model = learned(GaussianRegressor())
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        same(model.predict(X.to_numpy()), model.predict(X))
    with pytest.warns(UserWarning, match="fitted without feature names"):
        learned(GaussianRegressor(), X.to_numpy()).predict(X)
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(ValueError, match="expecting 5 features"),
    ):
        model.predict(X.to_numpy()[:, :3])


def test_a_second_batch_goes_by_name():
    whole = (
        KarmaOnlineClassifier().partial_fit(X, LABELS, classes=["down", "up"]).partial_fit(X.assign(b=np.nan), LABELS)
    )
    model = KarmaOnlineClassifier().partial_fit(X, LABELS, classes=["down", "up"])
    with pytest.warns(UserWarning, match=r"X lacks columns of fit, taken as missing: b\."):
        model.partial_fit(X[["e", "d", "c", "a"]], LABELS)
    same(model.decision_function(X), whole.decision_function(X))
    assert list(model.feature_names_in_) == NAMES


def test_what_comes_back_has_the_columns_of_fit():
    model = POPCA(2, random_state=0).set_output(transform="pandas").fit(X)
    with pytest.warns(UserWarning, match="taken as missing: c"):
        made = model.impute(X.drop(columns="c").set_index(X.index + 100))
    assert list(made.columns) == NAMES
    assert list(made.index) == list(X.index + 100)


@LACKING
def test_one_warning_of_a_large_table(monkeypatch):
    """Rows are seen a batch at a time."""
    monkeypatch.setattr("lacunar.learner.base.BATCH", 20)
    model = LacunarRegressor(members=["gaussian"]).fit(X, Y)
    with pytest.warns(UserWarning, match="X lacks") as caught:
        model.predict(X.drop(columns="c"))
    assert sum("X lacks" in text for text in said(caught)) == 1


def test_every_question_of_the_learner_goes_by_name():
    model = LacunarRegressor(members=["gaussian"]).fit(X, Y)
    mixed = X[NAMES[::-1]]
    same(model.predict_interval(mixed), model.predict_interval(X))
    same(model.predict_quantiles(mixed), model.predict_quantiles(X))
    same(model.value_of_measuring(mixed), model.value_of_measuring(X))
    assert model.score(mixed, Y) == model.score(X, Y)
    assert model.importance(mixed, Y)["value"].tolist() == model.importance(X, Y)["value"].tolist()
    loop = MeasuringLoop(model)
    loop.add(mixed)
    same(loop.rows_, X.to_numpy())


def test_an_absent_column_of_text_or_dates_is_missing():
    table = pd.DataFrame(
        {"word": ["x", "y", "z"] * 20, "day": pd.date_range("2026-01-01", periods=60), "n": np.arange(60.0)}
    )
    for make in KINDS.values():
        encoder = TableEncoder().fit(make(table))
        with pytest.warns(UserWarning, match=r"taken as missing: word, day\.$"):
            made = encoder.transform(make(table[["n"]]))
        assert np.isnan(made[:, :-1]).all()
        same(made[:, -1], np.arange(60.0))


OTHER_NAMES = {
    "years": range(2019, 2024),
    "numbers in another order": [3, 1, 0, 4, 2],
    "dates": pd.date_range("2026-01-01", periods=5),
    "several levels": pd.MultiIndex.from_product([["u"], NAMES]),
    "numbers and text": [0, 1, "b", "c", 2.5],
}


@LACKING
@pytest.mark.parametrize("names", OTHER_NAMES.values(), ids=OTHER_NAMES)
@pytest.mark.parametrize("make", [GaussianRegressor, lambda: LacunarRegressor(members=["gaussian"])])
def test_names_that_are_no_text_go_by_name(names, make):
    table = X.set_axis(names, axis=1)
    model = learned(make(), table)
    assert list(model.feature_names_in_) == [str(name) for name in table.columns]
    expected = answer(model, table)
    same(answer(model, table[table.columns[::-1]]), expected)
    same(answer(model, pl.from_pandas(table.set_axis(map(str, table.columns), axis=1))), expected)
    with pytest.warns(UserWarning, match="X lacks columns of fit, taken as missing") as caught:
        answer(model, table[table.columns[[4, 0, 1, 2]]])
    assert said(caught)[0] == f"X lacks columns of fit, taken as missing: {table.columns[3]}."


def test_columns_without_names_are_named_by_their_numbers():
    """pandas numbers the columns of a frame that got no names, as those of an array are numbered."""
    table = X.set_axis(range(5), axis=1)
    for model in (learned(GaussianRegressor(), table), learned(GaussianRegressor(), X.to_numpy())):
        assert not hasattr(model, "feature_names_in_")
        expected = model.predict(X.to_numpy())
        same(model.predict(table), expected)
        same(model.predict(table[[4, 2, 0, 1, 3]]), expected)
        with pytest.warns(UserWarning, match="X lacks columns of fit, taken as missing: 2"):
            same(model.predict(table.drop(columns=2)), model.predict(table.mask(np.tile(np.arange(5) == 2, (60, 1)))))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        same(learned(GaussianRegressor()).predict(table), expected)
    with pytest.raises(ValueError, match="different names"):
        learned(GaussianRegressor(), table.set_axis([0, 1, 2, 2, 3], axis=1))
    with pytest.raises(ValueError, match="different names; got '1' 2 times"):
        learned(GaussianRegressor(), table.set_axis([0, 1, "1", 2, 3], axis=1))
