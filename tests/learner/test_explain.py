"""What values add to predictions of the one learner: all sets where these are few, permutations beyond; tables of any kind; the answer object."""

import sys
import types

import numpy as np
import pytest
from reference.shapley import shapley

from lacunar import LacunarClassifier, LacunarRegressor, Observed
from lacunar.explanation import Explanation

pd = pytest.importorskip("pandas")


def world(n=160, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d)))
    y = X[:, 0] + np.abs(X[:, 1]) + 0.2 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.25] = np.nan
    return X, y


MODELS = {
    "two classes": lambda X, y: LacunarClassifier(members=["logistic", "gaussian"], cv=2).fit(
        X, np.where(y > 1, "b", "a")
    ),
    "three classes": lambda X, y: LacunarClassifier(members=["logistic"], cv=2).fit(X, np.digitize(y, [0, 1.5])),
    "numbers": lambda X, y: LacunarRegressor(members=["linear", "kernels"], cv=2).fit(X, y),
    "targets": lambda X, y: LacunarRegressor(members=["linear"], cv=2).fit(
        X, np.column_stack([y, np.where(y > 0, X[:, 2], np.nan)])
    ),
}


def predicted(model, rows):
    if isinstance(model, LacunarRegressor):
        return model.predict(rows).reshape(len(rows), -1)
    chances = model.predict_proba(rows)
    return chances[:, 1:] if chances.shape[1] == 2 else chances


@pytest.mark.filterwarnings("ignore:the rows to predict lack", "ignore:.* rows lack a label")
@pytest.mark.parametrize("kind", MODELS)
def test_values_are_those_of_all_sets(kind):
    X, y = world()
    model = MODELS[kind](X, y)
    rows = np.vstack([X[:4], np.full(5, np.nan), np.arange(5.0)])
    explanation = model.explain(rows)
    for i, row in enumerate(rows):
        base, values = shapley(lambda sets: predicted(model, sets), row)
        np.testing.assert_allclose(explanation.base_values.reshape(6, -1)[i], base, atol=1e-9)
        np.testing.assert_allclose(explanation.values.reshape(6, 5, -1)[i], values, atol=1e-9)
    assert not explanation.standard_errors.any()
    outputs = {"two classes": ["a", "b"], "three classes": ["0", "1", "2"], "numbers": None, "targets": ["0", "1"]}[
        kind
    ]
    assert explanation.output_names == outputs
    assert explanation.values.ndim == (2 if kind in ("two classes", "numbers") else 3)


def test_permutations_are_within_their_errors_of_all_sets():
    X, y = world(d=7)
    model = LacunarRegressor(members=["gaussian", "linear"], cv=2).fit(X, y)
    rows = np.nan_to_num(X[:10])
    exact = model.explain(rows, n_permutations=40)
    assert not exact.standard_errors.any()
    squares = []
    for seed in range(10):  # the rows of one answer share their permutations
        sampled = model.explain(rows, n_permutations=20, random_state=seed)
        z = (sampled.values - exact.values) / np.maximum(sampled.standard_errors, 0.02 * np.abs(exact.values).mean())
        squares.append(np.mean(z**2))
    assert 0.6 < np.sqrt(np.mean(squares)) < 1.5
    for each in (sampled, exact):
        np.testing.assert_allclose(each.predictions, model.predict(rows), atol=1e-9)
    np.testing.assert_allclose(
        model.explain(rows[3:4], n_permutations=20, random_state=9).values[0], sampled.values[3], atol=1e-9
    )
    with pytest.raises(ValueError, match="n_permutations must be an even number of at least 4; got 5"):
        model.explain(rows, n_permutations=5)


def frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.choice(["red", "green", "blue"], n)
    when = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
    made = pd.DataFrame({"size": rng.normal(size=n), "kind": kind, "when": when, "same": 1.0})
    y = made["size"] + 2.0 * (kind == "red")
    made.loc[rng.random(n) < 0.2, "kind"] = None
    made.loc[rng.random(n) < 0.2, "when"] = pd.NaT
    return made, y


def test_frames_keep_names_and_cells():
    X, y = frame()
    model = LacunarRegressor(members=["linear"], cv=2).fit(X, y)
    explanation = model.explain(X[:30])
    assert explanation.feature_names == ["size", "kind", "when", "same"]
    assert explanation.data[0, 1] == X["kind"][0] or pd.isna(X["kind"][0])
    np.testing.assert_allclose(explanation.predictions, model.predict(X[:30]), atol=1e-9)
    red = (X["kind"][:30] == "red").to_numpy()
    assert (
        explanation.values[red, 1].mean() > explanation.values[~red & X["kind"][:30].notna().to_numpy(), 1].mean() + 1
    )
    assert not explanation.values[X["kind"][:30].isna().to_numpy(), 1].any()
    assert not explanation.values[:, 3].any()  # nothing is learned of a constant
    turned = model.explain(X[:30][["when", "same", "size", "kind"]])
    np.testing.assert_array_equal(turned.values, explanation.values)
    assert set(explanation.summary()["feature"][:2]) == {"size", "kind"}
    lacking = pytest.warns(UserWarning, match="lacks columns of fit")
    with lacking:
        without = model.explain(X[:3].drop(columns="kind"))
    assert not without.values[:, 1].any()
    assert pd.isna(without.data[:, 1]).all()


def test_containers_are_explained_alike():
    X, y = world()
    model = LacunarRegressor(members=["linear"], cv=2).fit(X, y)
    one = model.explain(X[:8])
    table = Observed.from_dense(X[:8])
    for rows in (table, table.to_scipy(), pd.DataFrame(X[:8])):
        other = model.explain(rows)
        np.testing.assert_allclose(other.values, one.values, atol=1e-12)
        np.testing.assert_array_equal(other.data, one.data)
    assert one.feature_names == ["x0", "x1", "x2", "x3", "x4"]


def test_an_absence_adds_what_the_gap_says():
    """The target is whether column 0 is missing, which its expected value does not say."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 4))
    X[rng.random(X.shape) < 0.3] = np.nan
    y = np.isnan(X[:, 0]) * 4.0 + 0.1 * rng.normal(size=200)
    model = LacunarRegressor(members=["linear", "gaussian"], cv=2).fit(X, y)
    explanation, missing = model.explain(X[:40]), np.isnan(X[:40])
    assert not explanation.absences[~missing].any()
    assert explanation.absences[missing[:, 0], 0].min() > 2
    assert np.abs(explanation.absences[missing[:, 1], 1]).max() < 1
    row = np.flatnonzero(missing[:, 0])[0]
    view = model.views_.transform(X[row : row + 1])
    expected = model.posterior_.complete(view.Z)[0, 0] * model.views_.scale_[0] + model.views_.mean_[0]
    gap_filled = np.where(np.arange(4) == 0, expected, X[row])
    difference = model.predict(X[row : row + 1]) - model.predict([gap_filled])
    np.testing.assert_allclose(explanation.absences[row, 0], difference[0], atol=1e-9)
    assert "absence" in repr(explanation[row])


def made(outputs=None):
    rng = np.random.default_rng(0)
    shape = (4, 3) if outputs is None else (4, 3, len(outputs))
    data = np.array([[1.0, 2.0, np.nan]] * 4)
    return Explanation(
        rng.normal(size=shape),
        np.zeros((4, *shape[2:])),
        data,
        ["a", "b", "c"],
        outputs,
        np.zeros(shape),
        np.zeros(shape),
    )


def test_an_explanation_is_a_table_with_names():
    one, several = made(), made(["no", "yes"])
    assert len(one) == 4
    assert len(one[1]) == 1
    assert [len(row) for row in one] == [1, 1, 1, 1]
    np.testing.assert_array_equal(np.asarray(one), one.values)
    assert len(one[[0, 2]]) == 2
    np.testing.assert_array_equal(several.output("yes").values, several.values[:, :, 1])
    np.testing.assert_array_equal(several.output(0).values, several.values[:, :, 0])
    with pytest.raises(ValueError, match=r"output must be one of \['no', 'yes'\]"):
        several.output("maybe")
    table = several.to_frame()
    assert list(table.columns) == ["row", "output", "feature", "data", "value", "standard_error", "absence"]
    picked = table[(table["row"] == 2) & (table["output"] == "yes") & (table["feature"] == "b")]
    assert picked["value"].item() == several.values[2, 1, 1]
    assert picked["data"].item() == 2
    assert list(one.to_frame().columns) == ["row", "feature", "data", "value", "standard_error", "absence"]
    assert "4 rows by 3 features" in repr(several)
    assert "mean_abs yes" in repr(several)
    assert "nothing known" in repr(one[0])
    summary = one.summary()
    assert summary["missing"][summary["feature"].index("c")] == 1


def test_shap_takes_an_explanation(monkeypatch):
    with_fields = types.ModuleType("shap")
    with_fields.Explanation = lambda **fields: fields
    monkeypatch.setitem(sys.modules, "shap", with_fields)
    one = made()
    fields = one.to_shap()
    assert fields["values"] is one.values
    assert fields["base_values"] is one.base_values
    assert fields["feature_names"] == ["a", "b", "c"]
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match="pip install shap"):
        one.to_shap()


def test_answers_are_those_of_a_moment():
    assert all(hasattr(cls.explain, "__wrapped__") for cls in (LacunarClassifier, LacunarRegressor))


def test_cells_of_a_nullable_type_are_missing_where_they_are():
    """pandas' NA is neither true nor false."""
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0] * 20, "flag": pd.array([True, None, False] * 20, dtype="boolean")})
    model = LacunarRegressor(members=["linear"], cv=2).fit(X, np.arange(60.0))
    explained = model.explain(X[:3])
    np.testing.assert_array_equal(
        explained.summary()["missing"], np.where(np.array(explained.summary()["feature"]) == "flag", 1 / 3, 0)
    )
    assert "flag" in repr(explained)
