"""Text and columns of many levels at the doors of the comparison: learners that read text see them, all others what they saw without them."""

import numpy as np
import pandas as pd
import pytest

from lacunar.cli import main
from lacunar.comparison import TableModel, UserError, compare, load_problem
from lacunar.comparison.learners import learner_named
from lacunar.persistence import load_model

WORDS = {1: ["excellent", "lovely", "superb"], 0: ["awful", "broken", "terrible"]}
OTHERS = ["the", "room", "staff", "food", "door", "hotel", "pool", "street", "view", "and"]
BOTH = {"learner": ["lacunar", "boosting"], "folds": 2, "repeats": 1, "time_limit": None}


def reviews(n=420, seed=0):
    """Sentences, all different, of which one word tells the label; numbers that tell nothing."""
    rng = np.random.default_rng(seed)
    good = rng.integers(2, size=n)
    texts = [
        " ".join(rng.permutation([rng.choice(WORDS[k]), *rng.choice(OTHERS, 6)])) + f" {i}" for i, k in enumerate(good)
    ]
    table = {"text": texts, "x": rng.normal(size=n), "mood": np.where(good, "good", "bad")}
    return pd.DataFrame(table)


def said(problem, *words):
    return any(all(word in note for word in words) for note in problem.notes)


def check(comparison):
    errors = comparison.table.set_index("learner")["error rate"]
    assert errors["lacunar"] < 0.25  # measured .03
    assert errors["gradient boosting"] > 0.4
    assert said(comparison.problem, "'lacunar'", "text", "--drop", "--use")
    assert not comparison.warnings


def test_a_frame_is_compared_with_its_text():
    check(compare(reviews(), "mood", **BOTH))


def test_a_file_is_learned_with_its_text(tmp_path, capsys):
    table = reviews()
    table.to_csv(tmp_path / "t.csv", index=False)
    new = reviews(200, seed=1)
    new.to_csv(tmp_path / "new.csv", index=False)
    model = str(tmp_path / "m.lacunar")
    assert main(["fit", str(tmp_path / "t.csv"), "--learner", "lacunar", "--output", model]) == 0
    assert "learners that read text" in capsys.readouterr().err
    assert main(["predict", model, str(tmp_path / "new.csv"), "--output", str(tmp_path / "p.csv")]) == 0
    predicted = pd.read_csv(tmp_path / "p.csv")["mood"]
    assert (predicted == new["mood"]).mean() > 0.75
    absent = new.drop(columns="text")
    with pytest.warns(UserWarning, match="missing") as caught:
        assert len(load_model(model).predict(absent)) == 200
    warned = [str(warning.message) for warning in caught]
    assert sum("taken as missing: text" in text for text in warned) == 1
    assert sum(text.count("'text' is missing in 100%") for text in warned) == 1  # not once a number made of it


def test_others_get_what_they_get_without_the_text():
    table = reviews()
    problem, without = load_problem(table, "mood"), load_problem(table.drop(columns="text"), "mood")
    np.testing.assert_array_equal(problem.X, without.X)
    assert list(problem.frame) == ["text", "x"]
    model = compare(table, "mood", **{**BOTH, "learner": "boosting"}).best_model_
    assert model.predict(table.drop(columns="text")).shape == (len(table),)  # without a warning


def test_levels_of_several_rows_are_shown_although_they_hold_no_words():
    """Codes with several rows each may tell something, those of one row or with the name of identifiers do not."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=900), "shop": [f"s{k % 150:03}" for k in range(900)]})
    table["visit_id"], table["key"] = table["shop"], [f"k{k}" for k in range(900)]
    problem = load_problem(table.assign(y=rng.normal(size=900)), "y")
    assert list(problem.frame) == ["x", "shop"]
    assert said(problem, "visit_id was left out", "identifiers", "--use")
    assert said(problem, "key was left out", "identifiers", "--use")
    assert said(problem, "learners that read text", "shop")


def test_what_one_keeps_is_a_category_for_all():
    problem = load_problem(reviews(200), "mood", use=["text"])
    assert problem.X.shape == (200, 201)
    assert not said(problem, "learners that read text")


def test_learners_of_numbers_are_left_out_of_a_table_of_text_alone():
    table = reviews()[["text", "mood"]]
    comparison = compare(table, "mood", **{**BOTH, "learner": ["lacunar", "KARMA", "no columns"]})
    remarks = comparison.table.set_index("learner")["remark"]
    assert remarks["KARMA"] == "left out, for the table holds text of many levels alone, which it does not read"
    assert comparison.table["learner"][0] == "lacunar"
    for name in ("KARMA", "boosting"):
        with pytest.raises(UserError, match=r"text of many levels alone.*--learner lacunar"):
            TableModel.of(learner_named("classification", name), load_problem(table, "mood"))
