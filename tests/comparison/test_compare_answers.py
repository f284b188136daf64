"""What a comparison gives is of the type of the target, and its seed reaches every learner."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lacunar
from lacunar.cli import main
from lacunar.comparison import TableModel, UserError, learners, load_problem
from lacunar.karma import KarmaClassifier, KarmaRegressor
from lacunar.persistence import load_model, save_model

RNG = np.random.default_rng(0)
A = RNG.normal(size=120)
HALF = (A > 0).astype(int)
THREE = np.digitize(A, [-0.5, 0.5])


def cells(values, of):
    return [of(value) for value in values.tolist()]


TARGETS = {  # the column, and what predictions are compared with and of which kind
    "int": (HALF, HALF, "i"),
    "uint8": (HALF.astype(np.uint8), HALF, "u"),
    "bool": (HALF == 1, HALF == 1, "b"),
    "float": (HALF + 0.0, HALF + 0.0, "f"),
    "halves": (THREE / 2, THREE / 2, "f"),
    "numbers whose text sorts otherwise": (np.array([9, 10, 100])[THREE], np.array([9, 10, 100])[THREE], "i"),
    "below zero": (np.array([-10, -2, 0])[THREE], np.array([-10, -2, 0])[THREE], "i"),
    "text": (np.array(["no", "yes"])[HALF], np.array(["no", "yes"])[HALF], "U"),
    "objects": (pd.Series(cells(HALF, bool), dtype=object), HALF == 1, "b"),
    "nullable int": (pd.array(HALF, dtype="Int64"), HALF, "i"),
    "nullable bool": (pd.array(HALF == 1, dtype="boolean"), HALF == 1, "b"),
    "category": (pd.Categorical(np.array(["no", "yes"])[HALF]), np.array(["no", "yes"])[HALF], "U"),
    "category of numbers": (pd.Categorical(HALF), HALF, "i"),
    "category of floats": (pd.Categorical(HALF + 0.0), HALF + 0.0, "f"),
    "category of booleans": (pd.Categorical(HALF == 1), HALF == 1, "b"),
    "numbers in text": (HALF.astype(str), HALF.astype(str), "U"),
    "leading zeros": (np.array(["010", "007"])[HALF], np.array(["010", "007"])[HALF], "U"),
    "truth in text": (np.array(["False", "True"])[HALF], np.array(["False", "True"])[HALF], "U"),
    "text with blanks": (np.array([" no", "yes "])[HALF], np.array(["no", "yes"])[HALF], "U"),
}


@pytest.mark.parametrize("task", [None, "classification"])
@pytest.mark.parametrize("kind", TARGETS)
def test_predictions_have_the_type_of_the_target(kind, task, tmp_path):
    column, expected, kinds = TARGETS[kind]
    if kind == "halves" and task is None:
        pytest.skip("numbers with decimals are guessed to be regression")
    table = pd.DataFrame({"a": A, "ill": column})
    model = TableModel(KarmaClassifier(gamma=2)).fit(load_problem(table, "ill", task))
    save_model(model, tmp_path / "m.lacunar")
    for asked in (model, load_model(tmp_path / "m.lacunar")):
        predicted = asked.predict(table)
        assert predicted.dtype.kind in kinds
        assert (predicted == expected).mean() > 0.6
        np.testing.assert_array_equal(asked.classes_, np.unique(expected))
        assert asked.classes_.dtype == predicted.dtype
        np.testing.assert_array_equal(asked.classes_[asked.predict_proba(table).argmax(axis=1)], predicted)
        assert asked.score(table, table["ill"]) == (predicted == expected).mean()


def test_whole_numbers_that_are_floats_for_missing_ones_stay_whole():
    column = HALF.astype(float)
    column[::7] = np.nan
    model = TableModel(KarmaClassifier(gamma=2)).fit(load_problem(pd.DataFrame({"a": A, "ill": column}), "ill"))
    assert model.predict(pd.DataFrame({"a": A})).dtype.kind == "i"
    with pytest.raises(UserError, match="row 0 has none"):
        model.score(pd.DataFrame({"a": A}), column)


FRAMES = {
    "pandas": lambda kind, cells: pd.DataFrame({"a": A, "ill": pd.array(cells, dtype=kind)}),
    "polars": lambda _, cells: pl.DataFrame({"a": A, "ill": cells}),
    "Arrow": lambda _, cells: pa.table({"a": A, "ill": cells}),
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("kind", ["boolean", "Int64", "Float64", "string"])
def test_missing_labels_change_no_type(name, kind):
    of = {"boolean": bool, "Int64": int, "Float64": float, "string": str}[kind]
    known = np.arange(120) % 7 > 0
    column = [of(value) if there else None for value, there in zip(HALF.tolist(), known, strict=True)]
    frame = FRAMES[name](kind, column)
    model = TableModel(KarmaClassifier(gamma=2)).fit(load_problem(frame, "ill"))
    assert [(type(label), label) for label in model.classes_.tolist()] == [(of, of(0)), (of, of(1))]
    assert {type(label) for label in model.predict(frame).tolist()} == {of}


def test_labels_beside_the_frame_keep_their_type():
    """A column of the target's name may stand in the frame, too."""
    frame, y = pd.DataFrame({"a": A, "ill": RNG.normal(size=120)}), pd.Series(HALF, name="ill").astype("category")
    model = TableModel(KarmaClassifier(gamma=2)).fit(load_problem(frame, y))
    assert model.classes_.tolist() == [0, 1]


def test_labels_of_mixed_types_are_text():
    column = pd.Series(cells(HALF, lambda v: v or "nobody"), dtype=object)
    model = TableModel(KarmaClassifier(gamma=2)).fit(load_problem(pd.DataFrame({"a": A, "ill": column}), "ill"))
    assert model.classes_.tolist() == ["1", "nobody"]


def test_score_of_numbers_is_r2():
    table = pd.DataFrame({"a": A, "y": 3 * A + 1})
    model = TableModel(KarmaRegressor()).fit(load_problem(table, "y"))
    y = table["y"].to_numpy()
    assert model.score(table, y) == pytest.approx(1 - ((model.predict(table) - y) ** 2).mean() / y.var())


@pytest.mark.parametrize(("cells", "words"), [("01", "01"), (["False", "True"], ["False", "True"]), ("jn", "jn")])
def test_labels_of_a_file_come_back_as_they_are_written(cells, words, tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text(
        "a,ill\n" + "".join(f"{a:.3f},{cells[half]}\n" for a, half in zip(A, HALF, strict=True)) + "0.1,\n"
    )
    model = str(tmp_path / "m.lacunar")
    assert main(["fit", str(table), "--output", model, "--learner", "mean + linear", "--quiet"]) == 0
    assert main(["predict", model, str(table), "--proba", "--quiet"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head == f"ill,ill={words[0]},ill={words[1]}"
    assert {row.split(",")[0] for row in rows} == set(words)


@pytest.mark.parametrize("labels", [np.array([0, 0]), np.array([0, 1, 2]), np.array([[0, 1]]), [0, 1], "no"])
def test_labels_of_a_forged_model_are_refused(labels, tmp_path):
    model = TableModel(KarmaClassifier(gamma=2)).fit(load_problem(pd.DataFrame({"a": A, "ill": HALF}), "ill"))
    model.labels_ = labels
    save_model(model, tmp_path / "m.lacunar")
    with pytest.raises(ValueError, match=r"labels_ must be the different labels"):
        load_model(tmp_path / "m.lacunar")


# -- seeds --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_seed_reaches_every_learner_that_draws(task):
    for learner in learners(task):
        parameters = getattr(learner.make(7), "get_params", dict)()
        seeds = {name: value for name, value in parameters.items() if name.endswith("random_state")}
        drawing = learner.ours or any(word in learner.name for word in ("forest", "gradient", "iterative"))
        assert not drawing or 7 in seeds.values(), learner.name
        assert not learner.ours or learner.make(8).random_state == 8, learner.name


def test_two_seeds_search_other_rows_and_one_seed_the_same():
    """More rows than KARMA's search begins with: which of them it sees is drawn."""
    generator = np.random.default_rng(1)
    X = generator.normal(size=(700, 3))
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=np.sin(2 * X[:, 0]) + generator.normal(size=700))
    problem = load_problem(table, "y")
    karma = next(learner for learner in learners("regression") if learner.name == "KARMA")
    first, again, other = (TableModel.of(karma, problem, seed).predict(table) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0


def test_random_state_of_compare_is_that_of_the_learners():
    table = pd.DataFrame({"a": A, "ill": HALF})
    result = lacunar.compare(table, "ill", learner="KARMA", folds=2, repeats=1, random_state=5)
    assert result.best_model_.estimator.random_state == 5
