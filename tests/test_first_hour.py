"""The tasks of a newcomer's first hour on the patients that the package ships, each in seconds and in as many lines as the pages say."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import lacunar
from lacunar import LacunarClassifier, LacunarRegressor, load_model, save_model
from lacunar.cli import main, parser
from lacunar.datasets import load_patients
from lacunar.karma import KarmaRegressor
from lacunar.uncertainty import missingness_report

TARGET = "In-hospital_death"
SOME = ["Age", "Gender", "GCS_last", "Lactate_last", "BUN_last", "UrineOutputSum", "Temp_lowest", "PaO2_first"]
QUICK = {"members": ["logistic", "gaussian"], "random_state": 0}


@pytest.fixture(scope="module")
def table():
    return pd.read_csv(load_patients().filename)


@pytest.fixture(scope="module")
def model(table):
    return LacunarClassifier(**QUICK).fit(table.loc[:299, SOME], table.loc[:299, TARGET])


def test_from_a_file_to_a_served_row(table, model, tmp_path):
    new = table.loc[300:, SOME]
    chances = model.predict_proba(new)[:, 1]
    assert 0 < chances.min() < chances.max() < 1
    sets = model.predict_set(new, 0.8)
    assert np.asarray(sets).shape == (100, 2)
    save_model(model, tmp_path / "patients.lacunar")
    served = load_model(tmp_path / "patients.lacunar")
    row = new.iloc[7]
    np.testing.assert_allclose(served.predict_proba(pd.DataFrame([row]))[:, 1], chances[7], rtol=1e-12)
    np.testing.assert_allclose(served.predict_proba(pd.DataFrame([row.to_dict()]))[:, 1], chances[7], rtol=1e-12)


@pytest.mark.parametrize("row", [lambda row: row, lambda row: row.to_dict(), lambda row: [row.to_dict()]])
def test_a_row_that_is_no_table_says_how_it_becomes_one(table, model, row):
    row = row(table.loc[300, SOME])
    with pytest.raises(TypeError, match=r"pandas\.DataFrame\(\[?X\]?\)"):
        model.predict(row)
    rows = row if isinstance(row, list) else [row]
    assert model.predict(pd.DataFrame(rows)).shape == (1,)


def test_a_row_may_lack_columns(model):
    with pytest.warns(UserWarning, match="X lacks columns of fit, taken as missing: Gender"):
        assert model.predict_proba(pd.DataFrame([{"Age": 80.0}])).shape == (1, 2)


def test_a_number_with_its_interval_and_its_reasons_for_one_row(table, tmp_path):
    """Of the patient as a Series and as a dict, by the model of a file."""
    seen = table[table["Temp_lowest"].notna()]
    columns = [name for name in SOME if name != "Temp_lowest"]
    old, new = seen.loc[:299], seen.loc[300:, columns]
    model = LacunarRegressor(members=["linear"], random_state=0).fit(old[columns], old["Temp_lowest"])
    ends = model.predict_interval(new)
    assert (ends[:, 0] < ends[:, 1]).all()
    save_model(model, tmp_path / "temperature.lacunar")
    served = load_model(tmp_path / "temperature.lacunar")
    for row in (new.iloc[7], new.iloc[7].to_dict()):
        one = pd.DataFrame([row])
        np.testing.assert_allclose(served.predict_interval(one)[0], ends[7], rtol=1e-9)
        why = served.explain(one)
        assert list(why.feature_names) == columns
        np.testing.assert_allclose(why.base_values + why.values.sum(axis=1), served.predict(one), rtol=1e-9)


def test_gaps_in_a_number_to_predict(table):
    """Kernels alone refuse them, and name who takes them; that learner does, one target or two."""
    X, y = table.loc[:99, SOME[:3]], table.loc[:99, ["Lactate_last", "BUN_last"]]
    assert y.isna().any().all()
    with pytest.raises(ValueError, match="of one or several targets LacunarRegressor"):
        KarmaRegressor().fit(X, y)
    with pytest.warns(UserWarning, match="lack a label"):
        assert LacunarRegressor(members=["linear"], cv=2).fit(X, y).predict(X).shape == (100, 2)


def test_what_is_missing_as_a_page_before_there_is_a_target(table, tmp_path):
    missingness_report(table[SOME]).save(tmp_path / "gaps.html")
    page = (tmp_path / "gaps.html").read_text(encoding="utf-8")
    assert all(name in page for name in SOME if table[name].isna().any())


def test_which_columns_matter(table, model):
    shown = repr(model.importance(table.loc[300:, SOME], table.loc[300:, TARGET], n_repeats=1))
    assert all(name in shown for name in SOME)


def test_why_of_one_patient_with_more_measurements_than_an_integer_has_bits(table):
    patients = table.drop(columns=TARGET)
    assert patients.loc[300].notna().sum() > 64
    model = LacunarClassifier(members=["gaussian"], random_state=0).fit(patients[:300], table.loc[:299, TARGET])
    row = patients[300:301]
    why = model.explain(row, n_permutations=4)
    assert why.feature_names[0] == "Age"
    np.testing.assert_allclose(why.base_values + why.values.sum(axis=1), model.predict_proba(row)[:, 1], rtol=1e-9)


def test_own_estimators_compete(table):
    own = make_pipeline(SimpleImputer(), KNeighborsClassifier())
    few = table[[TARGET, *SOME]]
    result = lacunar.compare(few, TARGET, learner="no columns", learners={"kNN": own}, metric="auc", folds=3, repeats=1)
    assert set(result.table["learner"]) == {"kNN", "no columns"}
    assert result.best_model_.predict(few[:3]).shape == (3,)
    twice = lacunar.compare(few, TARGET, learner="no columns", learners=[own, own], folds=3, repeats=1)
    assert set(twice.table["learner"]) == {"Pipeline", "Pipeline 2", "no columns"}


@pytest.mark.parametrize(
    ("learners", "error", "words"),
    [
        ([KNeighborsClassifier], TypeError, "learners must be estimators .* Make an instance"),
        (["KARMA"], TypeError, "learners must be estimators .* got 'KARMA'"),
        ({"KARMA": KNeighborsClassifier()}, ValueError, "'KARMA', which another learner has"),
    ],
)
def test_what_is_no_estimator_of_ones_own_is_refused(table, learners, error, words):
    with pytest.raises(error, match=words):
        lacunar.compare(table[[TARGET, *SOME]], TARGET, learners=learners)


def test_compare_as_json(capsys, table, tmp_path):
    path = str(tmp_path / "patients.csv")
    table[[TARGET, *SOME]].to_csv(path, index=False)
    options = [
        "--target",
        TARGET,
        "--learner",
        "no columns",
        "--learner",
        "KARMA gamma=2",
        "--folds",
        "3",
        "--repeats",
        "1",
    ]
    assert main(["compare", path, *options, "--json", "--quiet"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["best"] in {"no columns", "KARMA gamma=2"}
    assert (answer["target"], answer["rows"]) == (TARGET, 400)
    assert answer["learners"][0]["learner"] == answer["best"]
    assert answer["learners"][0]["worse by"] in (0, None)


def test_fit_within_a_time_limit(tmp_path, table, capsys):
    table[[TARGET, *SOME]].to_csv(tmp_path / "t.csv", index=False)
    model = str(tmp_path / "m.lacunar")
    fit = ["fit", str(tmp_path / "t.csv"), "--target", TARGET, "--output", model]
    assert main([*fit, "--time-limit", "1", "--n-jobs", "1"]) == 0
    estimator = load_model(model).estimator
    assert (estimator.time_limit, estimator.n_jobs) == (1, 1)
    assert main([*fit, "--learner", "random forest", "--time-limit", "1"]) == 2
    assert "--time-limit: random forest has no such setting" in capsys.readouterr().err
    assert main([*fit, "--n-jobs", "0"]) == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_options(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "time-limit" in script
    assert all(name in script for name in ("compare", "fit", "predict", "impute", "config"))


@pytest.mark.skipif(sys.platform == "win32", reason="bash is a Unix shell")
def test_bash_completes_by_the_script(capsys):
    assert main(["completion", "bash"]) == 0
    program = (
        capsys.readouterr().out + "\nCOMP_WORDS=(lacunar compare --js); COMP_CWORD=2; _lacunar; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["--json"]


def test_help_says_what_the_exit_status_means(capsys):
    for words in ([], ["compare"], ["predict"]):
        with pytest.raises(SystemExit):
            parser().parse_args([*words, "--help"])
        assert "130 interrupted" in " ".join(capsys.readouterr().out.split())
