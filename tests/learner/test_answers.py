"""Answers with names: importances, reports and values of measuring are tables that one can read, and the dicts and arrays that they were."""

import copy
import json
import pickle

import numpy as np
import pytest

from lacunar import LacunarRegressor
from lacunar._answers import ColumnTable, NamedArray
from lacunar.lowrank import GaussianRegressor
from lacunar.plotting import ImportanceDisplay, PoolDisplay
from lacunar.uncertainty import value_of_measuring

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["age", "dose", "weight"])
    y = X["dose"] * 3 + X["age"]
    X = X.mask(rng.random(X.shape) < 0.2)
    return LacunarRegressor(members=["linear", "gaussian"], cv=2).fit(X, y), X, y


def test_reports_and_importances_are_dicts_that_print_as_tables(fitted):
    model, X, y = fitted
    report, importance = model.report_, model.importance(X, y, n_repeats=2)
    assert report["member"] == ["linear", "gaussian"]
    assert report == dict(report)
    header, *lines = repr(report).split("\n")
    assert header.split()[:3] == ["member", "score", "weight"]
    assert len(lines) == 2
    assert repr(importance).split("\n")[2].startswith("dose")
    assert list(importance.to_frame()["column"]) == ["age", "dose", "weight"]
    pd.testing.assert_frame_equal(report.to_frame(), pd.DataFrame(dict(report)))
    assert json.loads(json.dumps(report))["member"] == ["linear", "gaussian"]
    assert pickle.loads(pickle.dumps(report)) == copy.deepcopy(report) == report
    assert ImportanceDisplay(importance).shown()[0] == "dose"
    assert len(PoolDisplay(report).shown()) == 2


def test_values_of_measuring_are_arrays_with_names(fitted):
    model, X, y = fitted
    rows = pd.DataFrame([[np.nan, np.nan, 1.0]] * 12, columns=X.columns)
    answers = (
        model.value_of_measuring(rows),
        GaussianRegressor().fit(X, y).value_of_measuring(rows),
        value_of_measuring(X, y, rows),
        value_of_measuring(X, np.where(y > 0, "a", "b"), rows),
    )
    for values in answers:
        text = repr(values)
        assert "12 rows by 3 columns" in text
        assert "2 more rows" in text
        assert text.split("\n")[2].split()[1] == "dose"
        assert "weight" not in text  # known: nothing to measure
        assert list(values.to_frame().columns) == ["age", "dose", "weight"]
        assert repr(values[:2]) == repr(np.asarray(values)[:2])
        assert repr(2 * values) == repr(2 * np.asarray(values))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(values)), values)
    assert value_of_measuring(X.to_numpy(), y, rows.to_numpy()).feature_names == ["x0", "x1", "x2"]


def test_long_tables_and_long_cells_are_cut():
    table = ColumnTable({"name": ["x" * 50] * 40, "number": np.arange(40) / 3})
    lines = repr(table).split("\n")
    assert lines[-1] == "... 10 more rows"
    assert max(map(len, lines)) < 60
    assert repr(ColumnTable({})) == ""
    assert "0 rows by 2 columns" in repr(NamedArray(np.zeros((0, 2)), ["a", "b"]))
