"""The table of docs/what-takes-what.md is what the classes say, and each "no" says what it refuses."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from lacunar import LacunarRegressor

ROOT = Path(__file__).parents[2]
if not (ROOT / "bench" / "tools" / "takes.py").is_file() or not (ROOT / "docs").is_dir():
    pytest.skip("the sources are not beside the tests", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from bench.tools import takes  # noqa: E402

NAMES = [cls.__name__ for cls in takes.estimators()]


@pytest.fixture(scope="module")
def page():
    """Rows of the stored table: class -> heading -> cell."""
    head, _, *rows = [
        line for line in takes.PLACE.search(takes.PAGE.read_text(encoding="utf-8"))[0].splitlines() if line[:1] == "|"
    ]
    words = [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, *rows)]
    assert words[0] == ["class", *takes.COLUMNS]
    return {row[0].strip("`"): dict(zip(words[0][1:], row[1:], strict=True)) for row in words[1:]}


def test_every_public_estimator_has_a_row(page):
    assert list(page) == NAMES


@pytest.mark.parametrize("cls", takes.estimators(), ids=NAMES)
def test_the_table_is_what_the_class_says(cls, page, tmp_path):
    attempts = {heading: takes.attempt(cls, heading, tmp_path) for heading in takes.COLUMNS}
    assert {heading: cell for heading, (cell, _) in attempts.items()} == page[cls.__name__]
    unclear = {
        heading: str(refusal)
        for heading, (_, refusal) in attempts.items()
        if refusal is not None and not re.search(takes.COLUMNS[heading][1], str(refusal))
    }
    assert not unclear


def test_weights_that_change_nothing_are_no_yes(tmp_path):
    with pytest.raises(AssertionError):
        takes.attempt(Deaf, "`sample_weight`", tmp_path)


class SaysNothing(takes.BaseEstimator):
    """Takes everything, and answers NaN."""

    def fit(self, X, y, **more):
        return self

    def predict(self, X):
        return np.full((len(X), 2), np.nan)

    def explain(self, X):
        raise TypeError("something went wrong")


class Deaf(SaysNothing):
    """Takes weights, and answers the same."""

    def predict(self, X):
        return np.zeros((len(X), 2))


@pytest.mark.parametrize("heading", ["text", "`groups`", "gaps in y", "and gaps in them"])
def test_a_class_that_answers_nothing_is_no_yes(heading, tmp_path):
    with pytest.raises(AssertionError):
        takes.attempt(SaysNothing, heading, tmp_path)


def test_an_error_of_something_else_is_unclear(tmp_path):
    cell, refusal = takes.attempt(SaysNothing, "`explain`", tmp_path)
    assert cell == "no"
    assert not re.search(takes.COLUMNS["`explain`"][1], str(refusal))


def test_rows_that_miss_one_target_teach_the_others():
    """Each target of `LacunarRegressor` learns from the rows that have it, not from the few that have all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    truth = X @ rng.normal(size=(3, 2))
    Y = truth.copy()
    Y[:60, 0] = Y[60:, 1] = np.nan  # no row has both
    with pytest.warns(UserWarning, match="each target is learned from the rows that have it"):
        predicted = LacunarRegressor(members=["gaussian"], cv=2).fit(X, Y).predict(X)
    assert (np.mean((predicted - truth) ** 2, axis=0) < 0.05 * truth.var(axis=0)).all()
