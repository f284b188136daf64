"""The command as a person at the shell meets it: results on stdout, messages on stderr, exit codes, no tracebacks."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

import lacunar.comparison.terminal as shell
from lacunar.cli import main
from lacunar.comparison import Learner, TableModel, load_problem, read_table
from lacunar.karma import KarmaClassifier, KarmaClassifierCV
from lacunar.persistence import load_model, save_model


class Impatient(DummyClassifier):
    def predict(self, X):
        raise KeyboardInterrupt


@pytest.fixture
def table(tmp_path):
    generator = np.random.default_rng(0)
    rows = ["size,colour,outcome"]
    for _ in range(60):
        size, colour = generator.normal(), generator.choice(["red", "blue", ""])
        rows.append(f"{'' if generator.uniform() < 0.2 else size},{colour},{'big' if size > 0 else 'small'}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    return str(tmp_path / "t.csv")


@pytest.fixture
def quick(monkeypatch):
    """Two learners that take no time."""

    def use(*makers):
        made = [Learner(f"learner {i}", False, "quick", lambda seed, m=m: m()) for i, m in enumerate(makers)]
        monkeypatch.setattr(shell, "learners", lambda task, seconds: made)

    use(DummyClassifier, KarmaClassifier)
    return use


def failing(argv, code, message, capsys):
    assert main(argv) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("lacunar: ")
    assert "Traceback" not in err


def test_compare(table, tmp_path, quick, capsys):
    report = tmp_path / "r.html"
    assert main(["compare", table, "--report", str(report), "--repeats", "1"]) == 0
    out, err = capsys.readouterr()
    assert "learner 1" in out
    assert "* lowest" in out
    assert "Task: classification" in err
    assert report.stat().st_size > 5000


def test_compare_quiet(table, quick, capsys):
    assert main(["compare", table, "--quiet", "--repeats", "1"]) == 0
    out, err = capsys.readouterr()
    assert "learner 1" in out
    assert err == ""


def test_interrupted_compare_still_reports(table, tmp_path, quick, capsys):
    quick(DummyClassifier, Impatient)
    report = tmp_path / "r.html"
    assert main(["compare", table, "--report", str(report), "--quiet"]) == 130
    assert "Interrupted" in capsys.readouterr().out
    assert "Interrupted" in report.read_text(encoding="utf-8")
    report.write_text("whole")
    assert main(["compare", table, "--report", str(report), "--quiet"]) == 130
    assert report.read_text() == "whole"
    assert "Interrupted" in (tmp_path / "r.interrupted.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("learner", ["karma-2", "karma"])
def test_fit_and_predict(table, tmp_path, learner, capsys):
    model, out = str(tmp_path / "m.lacunar"), str(tmp_path / "p.csv")
    assert main(["fit", table, "--output", model, "--learner", learner, "--target", "outcome"]) == 0
    assert main(["predict", model, table, "--output", out]) == 0
    with open(out, newline="") as file:
        rows = list(csv.reader(file))
    problem = load_problem(table)
    made = KarmaClassifierCV() if learner == "karma" else KarmaClassifier(gamma=2)
    expected = made.fit(problem.X, problem.y).predict(problem.X)
    assert rows == [["outcome"], *([label] for label in expected)]
    capsys.readouterr()
    assert main(["predict", model, table]) == 0
    assert capsys.readouterr().out.split() == ["outcome", *expected]


def test_model_is_the_one_in_memory(table, tmp_path):
    model = TableModel(KarmaClassifier()).fit(load_problem(table))
    save_model(model, tmp_path / "m.lacunar")
    again = load_model(tmp_path / "m.lacunar")
    X = read_table(table).frame.drop(columns="outcome")
    np.testing.assert_array_equal(again.encoder_.transform(X), model.encoder_.transform(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_predict_notes_what_is_absent_or_new(table, tmp_path, capsys):
    model = str(tmp_path / "m.lacunar")
    main(["fit", table, "--output", model, "--learner", "karma-2"])
    (tmp_path / "new.csv").write_text("colour,extra\ngreen,1\nred,2\n")
    capsys.readouterr()
    assert main(["predict", model, str(tmp_path / "new.csv")]) == 0
    out, err = capsys.readouterr()
    assert len(out.split()) == 3
    assert "taken as missing: size" in err
    assert "green" in err
    (tmp_path / "other.csv").write_text("z,w\n1,2\n")
    failing(["predict", model, str(tmp_path / "other.csv")], 1, "none of the model's columns", capsys)


def test_hostile_models(table, tmp_path, capsys):
    model = tmp_path / "m.lacunar"
    failing(["predict", str(model), table], 1, "no such file", capsys)
    model.write_bytes(b"PK\x03\x04 not a model")
    failing(["predict", str(model), table], 1, "m.lacunar", capsys)
    pd.read_csv(table).to_excel(tmp_path / "t.xlsx")
    failing(["predict", str(tmp_path / "t.xlsx"), table], 1, "this is no model file. The model comes first", capsys)
    save_model(KarmaClassifier(), model)
    failing(["predict", str(model), table], 1, "holds a KarmaClassifier", capsys)
    save_model(TableModel(KarmaClassifier()), model)
    failing(["predict", str(model), table], 1, "holds a TableModel, not a model", capsys)
    save_model(TableModel(KarmaClassifier()).fit(load_problem(table)), model)
    whole = model.read_bytes()
    model.write_bytes(whole[: len(whole) // 2])
    failing(["predict", str(model), table], 1, "m.lacunar", capsys)


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["compare", "{dir}/none.csv"], 1, "no such file"),
        (["compare", "{dir}"], 1, "not a file with a table"),
        (["compare", "{table}", "--target", "outcme"], 2, "did you mean 'outcome'"),
        (["compare", "{table}", "--task", "regression"], 2, "is text"),
        (["fit", "{table}", "--time", "colour", "--output", "{dir}/m"], 2, "must hold numbers or dates; it holds text"),
        (
            ["fit", "{dir}/words.csv", "--time", "w", "--output", "{dir}/m"],
            2,
            "must hold numbers or dates; it holds text",
        ),
        (["compare", "{table}", "--report", "{dir}/no/r.html"], 1, "no folder"),
        (["compare", "{table}", "--report", "{dir}"], 1, "cannot be written"),
        (["compare", "{table}", "--folds", "50", "--quiet"], 1, "too few"),
        (["compare", "{table}", "--n-jobs", "0"], 2, "--n-jobs"),
        (["fit", "{table}", "--output", "{dir}/no/m"], 1, "no folder"),
        (["fit", "{table}", "--output", "{dir}"], 1, "it is a folder"),
        (["fit", "{dir}/nothing.csv", "--output", "{dir}/m"], 1, "the file is empty"),
        (["fit", "{dir}/header.csv", "--output", "{dir}/m"], 1, "the table has no rows"),
        (["fit", "{dir}/column.csv", "--output", "{dir}/m"], 1, "one column only"),
        (
            ["fit", "{dir}/names.csv", "--output", "{dir}/m"],
            1,
            "'a' occurs more than once. Rename one of them, or say --no-header",
        ),
        (
            ["fit", "{dir}/other.lacunar", "--output", "{dir}/m"],
            1,
            "a file of lacunar's own, such as a model, and no table",
        ),
        (
            ["predict", "{table}", "{table}", "--output", "{dir}/m.csv"],
            1,
            "this is no model file. The model comes first",
        ),
        (["predict", "{dir}/other.lacunar", "{table}", "--output", "{dir}/no/m.csv"], 1, "no folder"),
        (["predict", "{dir}", "{table}"], 1, "this is no model file"),
        (["fit", "{dir}/one.csv", "--output", "{dir}/m"], 1, "one class only"),
        (["fit", "{dir}/empty.csv", "--output", "{dir}/m"], 1, "missing in every row"),
    ],
)
def test_errors(argv, code, message, table, tmp_path, capsys):
    (tmp_path / "one.csv").write_text("a,y\n1,u\n2,u\n")
    (tmp_path / "empty.csv").write_text("a,y\n1,\n2,?\n")
    (tmp_path / "nothing.csv").write_text("")
    (tmp_path / "header.csv").write_text("a,b\n")
    (tmp_path / "column.csv").write_text("a\n1\n2\n")
    (tmp_path / "names.csv").write_text("a,a,y\n1,2,u\n3,4,v\n")
    (tmp_path / "words.csv").write_text("w,a,y\n" + "".join(f"w{k}x,{k},{'uv'[k % 2]}\n" for k in range(150)))
    save_model(KarmaClassifier(), tmp_path / "other.lacunar")
    before = sorted(tmp_path.iterdir())
    failing([a.format(dir=tmp_path, table=table) for a in argv], code, message, capsys)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "argv", [[], ["unknown"], ["compare", "--folds", "1"], ["fit", "t.csv"], ["compare", "--seed", "4294967296"]]
)
def test_usage(argv, capsys):
    with pytest.raises(SystemExit) as left:
        main(argv)
    assert left.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_as_module(tmp_path, capsys):
    assert main(["config"]) == 0
    assert capsys.readouterr().out.startswith("lacunar")
    command = [sys.executable, "-m", "lacunar", "compare", str(tmp_path / "none.csv")]
    environment = os.environ | {"PYTHONWARNINGS": "error"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip().endswith("no such file.")


def test_words_for_text_reach_the_reader(tmp_path, capsys):
    rows = "".join(f"{k},5|{'-9' if k % 7 == 0 else k % 3}|{'uv'[k % 2]}\n" for k in range(30))
    (tmp_path / "t.csv").write_bytes(f"größe|b|y\n{rows}".encode("latin-1"))
    words = ["--sep", "|", "--decimal", ",", "--encoding", "latin-1", "--na-values", "-9"]
    model = str(tmp_path / "m")
    assert main(["fit", str(tmp_path / "t.csv"), "--output", model, "--learner", "karma-2", *words]) == 0
    assert load_model(model).encoder_.kinds_ == ["number", "number"]
    assert main(["predict", model, str(tmp_path / "t.csv"), *words]) == 0
    assert len(capsys.readouterr().out.split()) == 31


@pytest.mark.slow
@pytest.mark.parametrize("absent", ["pandas", "rich"])
def test_what_is_not_installed_is_named(absent, table, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.split(".")[0] == absent]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, absent, None)
    failing(["compare", table, "--quiet", "--repeats", "1"], 1, "pip install 'lacunar[cli]'", capsys)


# -- outputs ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def model(table, tmp_path):
    place = tmp_path / "m.lacunar"
    save_model(TableModel(KarmaClassifier(gamma=2)).fit(load_problem(table)), place)
    return str(place)


@pytest.mark.parametrize("link", [None, "symbolic", "hard", "other words"])
@pytest.mark.parametrize(
    ("command", "over"),
    [
        ("fit {table} --output {over}", "table"),
        ("predict {model} {table} --output {over}", "table"),
        ("predict {model} {table} --output {over}", "model"),
        ("compare {table} --report {over}", "table"),
        ("compare {table} --keep {over}", "table"),
    ],
)
def test_no_output_takes_the_place_of_an_input(command, over, link, table, model, tmp_path, capsys):
    """Whatever the name is by which the input is called; and before any work is done."""
    kept = {"table": table, "model": model}[over]
    before, inode = Path(kept).read_bytes(), os.stat(kept).st_ino
    name = str(tmp_path / "other.csv")
    if link == "symbolic":
        os.symlink(kept, name)
    elif link == "hard":
        os.link(kept, name)
    else:
        name = kept if link is None else str(tmp_path / ".." / tmp_path.name / os.path.basename(kept))
    words = [word.format(table=table, model=model, over=name) for word in command.split()]
    failing(words, 2, f"that is the {over}", capsys)
    assert (Path(kept).read_bytes(), os.stat(kept).st_ino) == (before, inode)


def test_standard_input_is_not_written_over(table, model, monkeypatch, capsys):
    before = Path(table).read_bytes()
    with open(table) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["predict", model, "-", "--output", table]) == 2
    assert "that is the table" in capsys.readouterr().err
    assert Path(table).read_bytes() == before


def test_two_outputs_are_two_files(table, tmp_path, capsys):
    name = str(tmp_path / "one.html")
    failing(["compare", table, "--report", name, "--keep", name], 2, "that is the file of --report too", capsys)
    assert not os.path.exists(name)


READERS = {
    "csv": pd.read_csv, "tsv": lambda place: pd.read_csv(place, sep="\t"), "csv.gz": pd.read_csv, "tsv.bz2": lambda place: pd.read_csv(place, sep="\t"),
    "CSV.XZ": lambda place: pd.read_csv(place, compression="xz"), "parquet": pd.read_parquet, "xlsx": pd.read_excel,
}  # fmt: skip


@pytest.mark.parametrize("ending", READERS)
def test_the_ending_says_what_is_written(ending, table, model, tmp_path):
    place = tmp_path / f"p.{ending}"
    assert main(["predict", model, table, "--proba", "--append", "--output", str(place), "--quiet"]) == 0
    assert (
        main(["predict", model, table, "--proba", "--append", "--output", str(tmp_path / "plain.csv"), "--quiet"]) == 0
    )
    table, plain = (
        frame.astype(object).where(frame.notna(), None)
        for frame in (READERS[ending](place), pd.read_csv(tmp_path / "plain.csv"))
    )
    pd.testing.assert_frame_equal(table, plain)
    first = place.read_bytes()[:4]
    assert first.startswith(
        {"gz": b"\x1f\x8b", "bz2": b"BZh", "XZ": b"\xfd7zX", "quet": b"PAR1", "xlsx": b"PK"}.get(
            ending[-4:].split(".")[-1], b"size"
        )
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("predict {model} {table} --output {dir}/p.json", ".parquet, .xlsx; '.json' is not among them"),
        ("predict {model} {table} --output {dir}/p", "this one has none"),
        ("predict {model} {table} --output {dir}/p.gz", "'.gz' is not among them"),
        ("predict {model} {table} --output {dir}/p.lacunar", ".csv, .tsv"),
        ("compare {table} --report {dir}/r.csv", "There are .html, .htm; '.csv' is not among them"),
        ("compare {table} --keep {dir}/r.html", "Name it MODEL.lacunar"),
        ("fit {table} --output {dir}/r.parquet", "Name it MODEL.lacunar"),
    ],
)
def test_an_ending_that_says_something_else_is_refused(command, message, table, model, tmp_path, capsys):
    before = sorted(tmp_path.iterdir())
    failing([word.format(table=table, model=model, dir=tmp_path) for word in command.split()], 2, message, capsys)
    assert sorted(tmp_path.iterdir()) == before


def test_text_in_a_workbook_is_no_formula(model, tmp_path):
    (tmp_path / "new.csv").write_text("size,colour,note\n1,red,=1+1\n2,blue,plain\n")
    place = tmp_path / "p.xlsx"
    assert main(["predict", model, str(tmp_path / "new.csv"), "--keep", "note", "--output", str(place), "--quiet"]) == 0
    assert pd.read_excel(place)["note"].tolist() == ["=1+1", "plain"]


def test_what_a_format_cannot_hold_leaves_nothing_half_written(model, tmp_path, capsys):
    (tmp_path / "new.csv").write_text("size,colour,note\n1,red,a\x01b\n2,blue,plain\n")
    before = sorted(tmp_path.iterdir())
    argv = [
        "predict",
        model,
        str(tmp_path / "new.csv"),
        "--keep",
        "note",
        "--output",
        str(tmp_path / "p.xlsx"),
        "--quiet",
    ]
    failing(argv, 1, "cannot be written as .xlsx", capsys)
    assert sorted(tmp_path.iterdir()) == before


def test_a_device_has_no_ending(table, model, tmp_path):
    assert main(["predict", model, table, "--output", os.devnull, "--quiet"]) == 0


@pytest.mark.parametrize(
    ("task", "argv", "message"),
    [
        (
            "classification",
            ["--interval"],
            "predict_interval (--interval): the model predicts classes of 'y', and intervals are of numbers. predict_proba (--proba)",
        ),
        (
            "regression",
            ["--proba"],
            "predict_proba (--proba): the model predicts numbers, 'y', and probabilities are of classes. predict_interval (--interval)",
        ),
        (
            "regression",
            ["--interval"],
            "predict_interval (--interval): KarmaRegressor gives no intervals. Fit the learner lacunar",
        ),
    ],
)
def test_what_a_model_does_not_give(task, argv, message, tmp_path, capsys):
    table = str(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text(
        "a,y\n" + "".join(f"{k},{k % 2 if task == 'classification' else k / 7}\n" for k in range(20))
    )
    assert main(["fit", table, "--output", str(tmp_path / "m.lacunar"), "--learner", "karma-2", "--quiet"]) == 0
    failing(["predict", str(tmp_path / "m.lacunar"), table, *argv], 1, message, capsys)


# -- impute -------------------------------------------------------------------------------------------------------------------


def test_impute_fills_every_cell(table, tmp_path, capsys):
    assert main(["impute", table, "--output", str(tmp_path / "filled.csv")]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "size: " in err
    assert "colour: " in err
    before, after = pd.read_csv(table), pd.read_csv(tmp_path / "filled.csv")
    assert list(after) == list(before)
    assert not after.isna().any().any()
    pd.testing.assert_frame_equal(after.where(before.notna()), before)


def test_impute_draws(table, tmp_path, capsys):
    argv = ["impute", table, "--draws", "3", "--sweeps", "2", "--quiet", "--output"]
    assert main([*argv, str(tmp_path / "draws.parquet")]) == 0
    assert capsys.readouterr() == ("", "")
    before, after = pd.read_csv(table), pd.read_parquet(tmp_path / "draws.parquet")
    assert after["draw"].tolist() == np.repeat([1, 2, 3], 60).tolist()
    assert not after.isna().any().any()
    one, two = (after[after["draw"] == k].reset_index(drop=True) for k in (1, 2))
    assert (one["size"] != two["size"])[before["size"].isna()].any()
    np.testing.assert_allclose(one["size"][before["size"].notna()], before["size"].dropna())


def test_impute_keeps_whole_numbers_whole(tmp_path):
    (tmp_path / "t.csv").write_text("n,x\n" + "".join(f"{k if k % 4 else ''},{k / 7}\n" for k in range(1, 40)))
    assert main(["impute", str(tmp_path / "t.csv"), "--quiet", "--output", str(tmp_path / "o.csv")]) == 0
    assert "." not in "".join(line.split(",")[0] for line in (tmp_path / "o.csv").read_text().splitlines())


def test_what_is_left_as_it_is_is_not_said_to_be_filled(tmp_path, capsys):
    rows = ["".join(np.random.default_rng(k).choice(list("abcdefgh"), 8)) if k % 7 else "" for k in range(80)]
    (tmp_path / "t.csv").write_text("name,x,none\n" + "".join(f"{name},{len(name)},\n" for name in rows))
    for more in ([], ["--draws", "2", "--sweeps", "1"]):
        assert main(["impute", str(tmp_path / "t.csv"), *more, "--output", str(tmp_path / "o.csv")]) == 0
        said = capsys.readouterr().err
        assert "The table stays as it is." in said
        assert not re.search(r"(name|none): \d+ (filled|drawn)", said)


@pytest.mark.parametrize("command", ["fit", "impute"])
def test_a_sentinel_is_told_once_with_the_option(command, tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [f"{-999 if k % 9 == 0 else rng.normal():.6g},{rng.normal():.6g},{'uv'[k % 2]}" for k in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows]))
    more = ["--target", "y", "--time-limit", "1"] if command == "fit" else []
    output = str(tmp_path / ("m.lacunar" if command == "fit" else "o.csv"))
    assert main([command, str(tmp_path / "t.csv"), *more, "--output", output]) == 0
    said = capsys.readouterr().err
    assert said.count("-999 in 7 rows") == 1
    assert "--na-values a=-999" in said


_AS_WRITTEN = """x,day,stamp,iso,price,code,mass,truth
1.50,03/04/2020,2020-01-02 10:00,2020-05-06,"1,50",007,"1 000,5 kg",YES
2.50,13/04/2020,2020-01-03 11:00,2020-05-07,"2,50",008,"1 200,5 kg",NO
3.00,,2020-01-04 12:30,2020-05-08,"3,25",009,"1 000,5 kg",
1e1,15/04/2020,,,"1.234,25",010,,YES
5.00,16/04/2020,2020-01-06 10:00,2020-05-09,,,"3 000,5 kg",YES
,17/04/2020,2020-01-07 10:00,2020-05-11,"7,10",012,"2 000,5 kg",NO
"""


@pytest.mark.parametrize("more", [[], ["--draws", "2", "--method", "norm"]])
def test_impute_keeps_observed_cells_as_they_are_written(more, tmp_path):
    """Dates, numbers and codes of text stay to the letter, and what is filled is written alike."""
    (tmp_path / "t.csv").write_text(_AS_WRITTEN)
    assert main(["impute", str(tmp_path / "t.csv"), *more, "--quiet", "--output", str(tmp_path / "o.csv")]) == 0
    before, after = (pd.read_csv(tmp_path / name, dtype=str) for name in ("t.csv", "o.csv"))
    after = after.iloc[:6][list(before)]
    pd.testing.assert_frame_equal(after.where(before.notna()), before)
    shapes = {
        "day": r"\d\d/04/2020",
        "stamp": r"2020-01-0\d \d\d:\d\d",
        "iso": r"2020-05-\d\d",
        "price": r"-?[\d.]+(,\d+)?",
    }
    shapes |= {"mass": r"-?[\d ]+(,\d+)? kg", "code": r"0\d\d", "truth": "YES|NO"}
    for name, shape in shapes.items():
        assert after[name].str.fullmatch(shape).all(), after[name]
    assert main(["impute", str(tmp_path / "t.csv"), *more, "--quiet", "--output", str(tmp_path / "o.parquet")]) == 0
    assert pd.read_parquet(tmp_path / "o.parquet")["day"].dtype.kind == "M"


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["--output", "t.csv"], 2, "would be lost"),
        (["--output", "o.docx"], 2, "the ending of the name"),
        (["--output", "o.csv", "--n-jobs", "0"], 2, "--n-jobs must be"),
        (["--output", "o.csv", "--na-values", "z=-9"], 2, "no column 'z'"),
        (["--output", "o.csv", "--na-values", "draww=gone"], 2, "no column 'draww'"),
        (["--output", "o.csv", "--draws", "2"], 1, "has a column `draw`"),
    ],
)
def test_impute_refuses(more, code, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("draw,x\n1,2\n2,\n3,1\n")
    failing(["impute", "t.csv", *more], code, message, capsys)
