"""What a newcomer does in the first hour, task by task: files of every dialect, frames, the command, and what goes wrong with them."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

import lacunar
from lacunar.cli import main
from lacunar.comparison import Learner, UserError, evaluate, load_problem, print_table, read_table
from lacunar.karma import KarmaClassifier
from lacunar.persistence import load_model

pytest.importorskip("rich")

N = 60
RNG = np.random.default_rng(0)
SIZE = RNG.normal(size=N).round(3) * 10
LABEL = np.where(SIZE > 0, "big", "small")
FRAME = pd.DataFrame(
    {"size": SIZE, "other": RNG.normal(size=N).round(3), "colour": RNG.choice(["red", "blue"], N), "outcome": LABEL}
)
FRAME.loc[::7, "size"] = np.nan
FRAME.loc[::5, "colour"] = None
QUICK = ["--learner", "KARMA gamma=2", "--learner", "no columns", "--quiet"]


@pytest.fixture
def file(tmp_path):
    """Writes a table of text and gives its path."""

    def write(text, name="t.csv", encoding="utf-8"):
        (tmp_path / name).write_bytes(text.encode(encoding))
        return str(tmp_path / name)

    return write


@pytest.fixture
def table(tmp_path):
    FRAME.to_csv(tmp_path / "table.csv", index=False)
    return str(tmp_path / "table.csv")


def warned(problem, *words):
    return any(all(word in note for word in words) for note in problem.notes if note.startswith("Warning: "))


def rows(make, head="a,y", n=40):
    return "\n".join([head, *(make(k) for k in range(n))]) + "\n"


# -- dialects of text ---------------------------------------------------------------------------------------------------


def test_decimal_commas_are_numbers(file):
    problem = load_problem(file(rows(lambda k: f"{k},{k % 7}5;{'uv'[k % 2]}", "price;y")))
    assert problem.frame["price"].iloc[3] == 3.35
    assert any("decimal mark ','" in note for note in problem.notes)


def test_decimal_commas_with_dots_for_thousands(file):
    problem = load_problem(file(rows(lambda k: f"1.{k:03d},50;2.{k:03d};{'uv'[k % 2]}", "price;paid;y")))
    np.testing.assert_allclose(problem.frame["price"].iloc[:2], [1000.5, 1001.5])
    np.testing.assert_allclose(problem.frame["paid"].iloc[:2], [2000, 2001])  # the other column tells


@pytest.mark.parametrize("separator", [",", " ", "\u202f", "'"])
def test_thousands_are_numbers(file, separator):
    problem = load_problem(file(rows(lambda k: f"1{separator}{k:03d}.5\t{'uv'[k % 2]}", "price\ty")))
    assert problem.frame["price"].iloc[7] == 1007.5


def test_a_comma_that_may_be_either_is_asked_about(file, capsys):
    place = file(rows(lambda k: f'"1,{k:03d}",{"uv"[k % 2]}', "price,y"))
    with pytest.raises(UserError, match=r"price.*--decimal , or --thousands ,"):
        load_problem(place)
    assert load_problem(place, thousands=",").frame["price"].iloc[1] == 1001
    assert load_problem(place, decimal=",").frame["price"].iloc[1] == 1.001


def test_units_and_currency_are_left_out_of_numbers(file):
    problem = load_problem(file(rows(lambda k: f"{k} kg;€{k}.5;{k} %;{'uv'[k % 2]}", "weight;price;share;y")))
    assert problem.frame[["weight", "price", "share"]].iloc[4].tolist() == [4, 4.5, 4]


def test_a_word_among_numbers_is_missing_and_said(file):
    problem = load_problem(file(rows(lambda k: f"{'unknown' if k % 9 == 0 else k},{'uv'[k % 2]}")))
    assert int(problem.frame["a"].isna().sum()) == 5
    assert warned(problem, "'unknown'", "5 cells")


def test_words_for_missing_are_the_users(file):
    assert (
        load_problem(file(rows(lambda k: f"{-99 if k % 2 else k},{'uv'[k % 3 % 2]}")), na_values=["-99"]).missing_share
        == 0.5
    )


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
def test_separators_are_found(file, separator):
    place = file(
        rows(lambda k: separator.join([str(k % 5), str(k % 3), "uv"[k % 2]]), separator.join(["a", "b", "y"])), "t.data"
    )
    assert load_problem(place).frame.columns.tolist() == ["a", "b"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings_are_found(file, encoding):
    assert "größe" in load_problem(file(rows(lambda k: f"{k % 5},{'uv'[k % 2]}", "größe,y"), encoding=encoding)).frame


def test_a_file_without_header_keeps_its_first_row(file):
    place = file("".join(f"{k / 7:.2f},{k % 4},{'setosa' if k % 2 else 'virginica'}\n" for k in range(40)))
    problem = load_problem(place)
    assert len(problem.y) == 40
    assert warned(problem, "looks like data", "--header")
    assert load_problem(place, header=True).frame.columns.tolist() == ["0.00", "0"]
    assert load_problem(place, header=False).frame.columns.tolist() == ["c1", "c2"]


def test_a_file_of_letters_without_header(file):
    problem = load_problem(file("".join(f"{'ps'[k % 2]},{'xyz'[k % 3]},{'abc'[k % 3]}\n" for k in range(40))))
    assert problem.frame.columns.tolist() == ["c1", "c2"]


def test_years_are_a_header(file):
    assert load_problem(
        file(rows(lambda k: f"{k % 9},{k % 7},{'uv'[k % 2]}", "2019,2020,y"))
    ).frame.columns.tolist() == ["2019", "2020"]


@pytest.mark.parametrize(
    ("form", "first"),
    [("%d.%m.%Y", "2024-01-01"), ("%Y/%m/%d", "2024-01-01"), ("%d %b %Y", "2024-01-01"), ("%Y-%m-%d", "2024-01-01")],
)
def test_dates_become_features(file, form, first):
    days = pd.date_range(first, periods=40).strftime(form)
    problem = load_problem(file(rows(lambda k: f"{days[k]};{'uv'[k % 2]}", "day;y")))
    assert problem.encoder.kinds_ == ["date"]
    assert "day_weekday" in problem.encoder.get_feature_names_out()


def test_a_date_of_two_days_is_asked_about(file):
    place = file(rows(lambda k: f"{k % 12 + 1:02}/{k % 11 + 1:02}/2024;{'uv'[k % 2]}", "day;y"))
    with pytest.raises(UserError, match="--dates dmy or --dates mdy"):
        load_problem(place)
    assert load_problem(place, dates="dmy").frame["day"].iloc[1] == pd.Timestamp("2024-02-02")
    assert load_problem(place, dates="mdy").frame["day"].iloc[12] == pd.Timestamp("2024-01-02")


# -- kinds of files -----------------------------------------------------------------------------------------------------


def test_every_kind_of_file_holds_the_same_table(tmp_path):
    pytest.importorskip("openpyxl")
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    FRAME.to_csv(tmp_path / "t.csv.gz", index=False)
    FRAME.to_excel(tmp_path / "t.xlsx", index=False)
    FRAME.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    FRAME.to_json(tmp_path / "t.json", orient="records")
    FRAME.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.bin").write_bytes((tmp_path / "t.parquet").read_bytes())
    for name in ["t.csv", "t.csv.gz", "t.xlsx", "t.jsonl", "t.json", "t.parquet", "t.bin"]:
        problem = load_problem(str(tmp_path / name))
        np.testing.assert_allclose(problem.X, load_problem(FRAME).X, rtol=1e-14, err_msg=name)
        assert problem.y.tolist() == LABEL.tolist()


def test_standard_input(table, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(table).read_bytes())))
    assert main(["compare", "-", *QUICK, "--repeats", "1"]) == 0
    assert "KARMA gamma=2" in capsys.readouterr().out


def test_the_index_that_pandas_wrote_is_recognised(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv")
    problem = load_problem(str(tmp_path / "t.csv"))
    assert problem.frame.columns.tolist() == ["size", "other", "colour"]
    assert warned(problem, "left out", "index", "--use")


def test_a_truncated_archive_is_named(tmp_path, capsys):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n" * 100)[:30])
    assert main(["compare", str(tmp_path / "t.csv.gz")]) == 1
    assert "t.csv.gz: cannot be read" in capsys.readouterr().err


# -- what an analyst would warn of --------------------------------------------------------------------------------------


def test_a_column_that_is_the_target_in_disguise():
    problem = load_problem(FRAME.assign(code=np.where(LABEL == "big", 7, 3)))
    assert warned(problem, "code alone predicts", "--drop 'code'")
    assert not warned(load_problem(FRAME.drop(columns="size")), "alone")


def test_a_column_that_is_present_for_one_class_only():
    boat = [f"{k % 6}" if label == "big" and k % 3 else None for k, label in enumerate(LABEL)]
    assert warned(load_problem(FRAME.drop(columns="size").assign(boat=boat)), "boat is present almost only", "--drop")


def test_numbers_of_rows_and_identifiers():
    problem = load_problem(
        FRAME.assign(row=np.arange(1, N + 1), visit=np.arange(N), PassengerId=np.arange(N) * 7 % 101 + 900)[
            ["row", "visit", "PassengerId", *FRAME]
        ]
    )
    assert problem.frame.columns.tolist() == ["visit", "size", "other", "colour"]
    assert warned(problem, "PassengerId was left out", "--use 'PassengerId'")
    assert warned(problem, "visit numbers the rows", "--drop 'visit'")


def test_nothing_is_left_out_without_a_line_and_a_way_to_keep_it():
    frame = FRAME.assign(name=[f"person {k}" for k in range(N)])
    problem = load_problem(frame, "outcome")
    assert "name" not in problem.frame
    assert warned(problem, "name was left out", "'person 0'", "--use 'name'")
    assert "name" in load_problem(frame, "outcome", use=["name"]).frame


def test_a_follow_up_time():
    frame = FRAME.rename(columns={"other": "follow_up_days", "outcome": "death"})
    assert warned(load_problem(frame, "death"), "follow_up_days", "beforehand", "--drop")


def test_a_target_of_free_text_is_asked_for():
    frame = FRAME.assign(comment=[f"text {k} and more" for k in range(N)])
    with pytest.raises(UserError, match=r"--target.*outcome"):
        load_problem(
            frame.drop(columns="outcome")
            .assign(outcom=LABEL)[["size", "outcom", "comment"]]
            .rename(columns={"outcom": "outcome2"})
        )
    with pytest.raises(UserError, match="free text"):
        load_problem(frame, "comment")


def test_long_cells_are_cut():
    frame = FRAME.assign(essay=["x" * 5000 + str(k) for k in range(N)])
    assert max(map(len, load_problem(frame, "outcome").notes)) < 400


def test_columns_are_counted_as_in_the_file(table, capsys):
    main(["fit", table, "--output", table + ".lacunar", "--learner", "karma-2"])
    assert "60 rows, 3 columns" in capsys.readouterr().err


def test_a_class_that_is_never_predicted(tmp_path, capsys):
    frame = pd.DataFrame({"a": RNG.normal(size=80), "y": ["often"] * 74 + ["rarely"] * 6})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert main(["compare", str(tmp_path / "t.csv"), *QUICK, "--folds", "3", "--repeats", "2"]) == 0
    out = capsys.readouterr().out
    assert "no columns" in out.splitlines()[1] or "never predicts 'rarely'" in out


# -- frames -------------------------------------------------------------------------------------------------------------


def test_compare_takes_a_frame():
    result = lacunar.compare(
        FRAME, target="outcome", learner=["KARMA gamma=2", "gradient boosting", "no columns"], repeats=1
    )
    assert result.table["learner"].iloc[-1] == "no columns"
    assert {"error rate", "worse by", "±", "AUC"} <= set(result.table)
    assert "<table" in result._repr_html_()
    made = result.best_model_.predict(FRAME.drop(columns="outcome"))
    assert np.mean(made == LABEL) > 0.7


def test_compare_takes_values_as_the_target_and_other_frames():
    polars = pytest.importorskip("polars")
    frame = polars.from_pandas(FRAME.drop(columns="outcome"))
    result = lacunar.compare(frame, SIZE, learner=["mean + linear", "no columns"], folds=3, repeats=2, metric="mae")
    assert result.problem.task == "regression"
    assert result.table.columns[1] == "MAE"


def test_the_one_learner_takes_text_dates_and_booleans():
    frame = FRAME.assign(
        day=pd.date_range("2024-01-01", periods=N), sure=RNG.random(N) > 0.5, kind=FRAME["colour"].astype("category")
    )
    model = lacunar.LacunarClassifier(members=["logistic"]).fit(frame.drop(columns="outcome"), LABEL)
    assert model.predict(frame.drop(columns="outcome").head(3)).shape == (3,)


def test_missing_entries_of_any_frame_are_drawn():
    pytest.importorskip("matplotlib").use("agg")
    from lacunar.plotting import MissingnessDisplay

    frame = FRAME.assign(day=pd.Series(pd.date_range("2024-01-01", periods=N)).where(SIZE > 0))
    display = MissingnessDisplay.from_table(frame)
    assert display.image.mean() == pytest.approx(1 - frame.isna().to_numpy().mean())
    import matplotlib.pyplot as plt

    plt.close("all")


# -- the command --------------------------------------------------------------------------------------------------------


def test_the_winner_is_kept_and_predicts_frames(table, tmp_path, capsys):
    best = str(tmp_path / "best.lacunar")
    assert main(["compare", table, *QUICK, "--keep", best, "--repeats", "1"]) == 0
    model = load_model(best)
    assert np.mean(model.predict(FRAME) == LABEL) > 0.7
    assert model.predict_proba(FRAME.head(2)).shape == (2, 2) if hasattr(model.fitted(), "predict_proba") else True


@pytest.mark.parametrize(
    "learner",
    ["KARMA gamma=2", "mean + linear", "iterative + linear", "gradient boosting", "no columns"],
)
def test_fit_takes_every_name_of_the_table(table, tmp_path, learner, capsys):
    model, out = str(tmp_path / "m"), tmp_path / "p.csv"
    with warnings.catch_warnings(action="ignore"):
        assert main(["fit", table, "--output", model, "--learner", learner]) == 0
        assert main(["predict", model, table, "--output", str(out)]) == 0
        direct = load_model(model).predict(FRAME)
    assert pd.read_csv(out)["outcome"].tolist() == direct.tolist()


def test_a_learner_of_no_known_name(table, tmp_path, capsys):
    assert main(["fit", table, "--output", str(tmp_path / "m"), "--learner", "gradient bosting"]) == 2
    assert "Did you mean 'gradient boosting'?" in capsys.readouterr().err


def test_predictions_with_probabilities_and_columns(table, tmp_path, capsys):
    model = str(tmp_path / "m")
    main(["fit", table, "--output", model, "--learner", "gradient boosting", "--quiet"])
    assert main(["predict", model, table, "--proba", "--keep", "size,colour"]) == 0
    made = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert made.columns.tolist() == ["size", "colour", "outcome", "outcome=big", "outcome=small"]
    np.testing.assert_allclose(made["outcome=big"] + made["outcome=small"], 1)
    assert main(["predict", model, table, "--append"]) == 0
    assert pd.read_csv(io.StringIO(capsys.readouterr().out)).columns.tolist() == [*FRAME, "outcome_predicted"]
    assert main(["predict", model, table, "--interval"]) == 1
    assert "(--proba) gives probabilities" in capsys.readouterr().err


def test_copied_columns_are_as_they_are_written(tmp_path):
    rows = [f"{10**16 + 7 * k if k % 9 else ''};{k},50;{k % 27 + 1:02d}.03.2026;{'yn'[k % 2]}" for k in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["id;size;day;y", *rows]))
    table, model, out = (str(tmp_path / name) for name in ("t.csv", "m.lacunar", "out.csv"))
    assert main(["fit", table, "--learner", "no columns", "--output", model, "--quiet"]) == 0
    assert main(["predict", model, table, "--append", "--output", out, "--quiet"]) == 0
    text = {"dtype": str, "keep_default_na": False}
    copied, original = pd.read_csv(out, **text), pd.read_csv(table, sep=";", **text)
    pd.testing.assert_frame_equal(copied[[*original]], original)


def test_a_learner_that_is_fitted_again_repeats_no_warning(tmp_path, capsys):
    rows = [f"{k},{'yn'[k % 2] if k else 'rare'}" for k in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["a,y", *rows]))
    table, model = str(tmp_path / "t.csv"), str(tmp_path / "m.lacunar")
    assert main(["fit", table, "--learner", "mean + linear", "--output", model]) == 0
    assert "fewer than 3 rows are of class 'rare'" in capsys.readouterr().err
    assert main(["predict", model, table]) == 0
    assert capsys.readouterr().err == ""


def test_a_learner_that_needs_more_rows_says_what_to_do(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,b,y\n1,2,yes\n2,,no\n3,4,yes\n,1,no\n")
    table, model = str(tmp_path / "t.csv"), str(tmp_path / "m.lacunar")
    assert main(["fit", table, "--learner", "mean + linear", "--output", model]) == 1
    err = capsys.readouterr().err
    assert "mean + linear cannot be fitted" in err
    assert "Bring more rows, or take --learner lacunar." in err
    assert main(["fit", table, "--output", model]) == 0


def test_intervals(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    model = str(tmp_path / "m")
    with warnings.catch_warnings(action="ignore"):
        assert main(["fit", str(tmp_path / "t.csv"), "--target", "other", "--output", model, "--quiet"]) == 0
        assert main(["predict", model, str(tmp_path / "t.csv"), "--interval", "0.8"]) == 0
    made = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert (made["other_low"] <= made["other_high"]).all()


def test_metrics_decide(table, capsys):
    assert (
        main(
            [
                "compare",
                table,
                *QUICK,
                "--metric",
                "auc",
                "--folds",
                "3",
                "--repeats",
                "2",
                "--learner",
                "mean + linear",
            ]
        )
        == 0
    )
    assert "AUC" in capsys.readouterr().out.splitlines()[0]
    assert main(["compare", table, *QUICK, "--metric", "rmse"]) == 2
    assert "balanced-error" in capsys.readouterr().err


def test_what_takes_too_long_is_cut_and_said():
    problem = load_problem(FRAME)
    quick, twin, slow = (
        Learner(name, False, "", lambda seed, kind=kind: kind())
        for name, kind in (("quick", DummyClassifier), ("twin", DummyClassifier), ("slow", Slow))
    )
    comparison = evaluate(problem, [quick, twin, slow], folds=5, repeats=1, time_limit=1.0)
    assert "--time-limit" in next(s.cut for s in comparison.scores() if s.learner.name == "slow")
    comparison = evaluate(problem, [quick, slow], folds=5, repeats=1, fit_limit=0.05)
    assert "--fit-limit" in comparison.scores()[-1].cut


class Slow(DummyClassifier):
    def fit(self, X, y):
        time.sleep(0.3)
        return super().fit(X, y)


def test_a_cut_learner_that_was_ahead_is_named(capsys):
    problem = load_problem(FRAME)
    learners = [
        Learner(kind.__name__, False, "", lambda seed, kind=kind: kind()) for kind in (DummyClassifier, KarmaClassifier)
    ]
    comparison = evaluate(problem, learners, folds=5, repeats=1)
    comparison.rivals[1].cut = "too slow"
    print_table(comparison)
    assert "KarmaClassifier did better than DummyClassifier" in capsys.readouterr().out


def test_ctrl_c_in_the_first_second_prints_no_traceback(table):
    if os.name == "nt":
        pytest.skip("no such signal")
    process = subprocess.Popen(
        [sys.executable, "-m", "lacunar", "compare", table], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    time.sleep(0.6)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err


def test_the_version_needs_no_package():
    code = "import sys, lacunar.cli; print([m for m in ('numpy', 'sklearn', 'pandas', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_lines_of_json_are_read_by_their_content(file):
    lines = "\n".join(json.dumps({"a": k % 5, "when": f"2024-01-{k % 28 + 1:02}", "y": "uv"[k % 2]}) for k in range(40))
    assert load_problem(file(lines, "t.txt")).encoder.kinds_ == ["number", "date"]


def test_a_misspelt_column_gets_a_hint(table, capsys):
    assert main(["fit", table, "--output", table + ".m", "--drop", "colr"]) == 2
    assert "did you mean 'colour'" in capsys.readouterr().err


def test_the_report_can_be_read_aloud_and_on_a_phone(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    report = tmp_path / "r.html"
    assert main(["compare", str(tmp_path / "t.csv"), *QUICK, "--report", str(report), "--repeats", "1"]) == 0
    text = report.read_text(encoding="utf-8")
    for part in (
        "prefers-color-scheme: dark",
        'role="img"',
        "<caption>",
        'scope="col"',
        "width=device-width",
        "<title>",
        "<desc>",
    ):
        assert part in text
    for title in (
        "Differences",
        "Class by class",
        "What is missing",
        "What being missing says",
        "Where the errors are",
        "Which columns matter",
        "Next",
    ):
        assert f"<h2>{title}</h2>" in text
    assert "lacunar fit" in text


def test_one_fit_is_singular():
    from lacunar.comparison.cells import counted

    assert (counted(1, "fit"), counted(2, "fit")) == ("1 fit", "2 fits")


def test_the_separator_is_suggested_where_there_is_one_column(file):
    with pytest.raises(UserError, match="--sep"):
        load_problem(file(rows(lambda k: f"{k}~{'uv'[k % 2]}", "a~y")))


def test_the_reader_gives_back_what_the_file_says(file):
    read = read_table(file("a,b\n1,x\n2,\n"))
    assert read.frame["b"].isna().tolist() == [False, True]


# -- habits of Python ---------------------------------------------------------------------------------------------------


def test_impute_obeys_set_output():
    from lacunar.lowrank import POPCA

    frame = pd.DataFrame(
        RNG.normal(size=(40, 2)) @ RNG.normal(size=(2, 4)), columns=list("abcd"), index=range(100, 140)
    )
    frame = frame.mask(RNG.random(frame.shape) < 0.2)
    model = POPCA(2, random_state=0).fit(frame)
    plain = model.impute(frame)
    made = model.set_output(transform="pandas").impute(frame)
    assert made.columns.tolist() == list("abcd")
    assert made.index[0] == 100
    np.testing.assert_array_equal(made.to_numpy(), plain)


def test_a_pipeline_and_a_column_transformer_are_saved(tmp_path):
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline

    from lacunar.encode import TableEncoder
    from lacunar.lowrank import LowRankImputer

    X = FRAME.drop(columns="outcome")
    columns = ColumnTransformer(
        [("words", TableEncoder(), ["colour"]), ("numbers", LowRankImputer(1), ["size", "other"])], remainder="drop"
    )
    for model in (make_pipeline(TableEncoder(), KarmaClassifier()), make_pipeline(columns, KarmaClassifier())):
        model.fit(X, LABEL)
        lacunar.save_model(model, tmp_path / "m")
        again = lacunar.load_model(tmp_path / "m")
        assert again.predict(X).tolist() == model.predict(X).tolist()
        np.testing.assert_array_equal(again[:-1].transform(X), model[:-1].transform(X))
    lacunar.save_model(columns.fit(X), tmp_path / "c")
    again = lacunar.load_model(tmp_path / "c")
    assert again.get_feature_names_out().tolist() == columns.get_feature_names_out().tolist()


def test_a_pipeline_of_foreign_steps_is_refused_with_its_name(tmp_path):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    with pytest.raises(TypeError, match="standardscaler"):
        lacunar.save_model(make_pipeline(StandardScaler(), KarmaClassifier()), tmp_path / "m")


def test_the_search_says_how_far_it_is(caplog):
    X = FRAME[["size", "other"]]
    lacunar.KarmaClassifierCV(verbose=1, random_state=0).fit(X, LABEL)
    said = " ".join(record.getMessage() for record in caplog.records)
    for part in ("first rung:", "second rung:", "fitted to all 60 rows"):
        assert part in said


def test_zeros_that_look_like_missing_entries_are_warned_of():
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer

    from lacunar import Observed

    texts = [f"word{k % 7} word{k % 5} other{k % 3} more{k % 11}" for k in range(40)]
    onehot = np.eye(8)[np.arange(40) % 8]
    for X in (TfidfVectorizer().fit_transform(texts), sparse.csr_array(np.column_stack([RNG.normal(size=40), onehot]))):
        with pytest.warns(UserWarning, match="sparse_missing='nan'"):
            KarmaClassifier().fit(X, np.arange(40) % 2)
    ratings = sparse.random_array((40, 8), density=0.3, random_state=0, data_sampler=lambda size: RNG.normal(size=size))
    KarmaClassifier().fit(ratings.tocsr(), np.arange(40) % 2)
    assert isinstance(Observed.from_scipy(ratings.tocsr()), Observed)
