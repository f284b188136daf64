"""Text that says numbers and dates: the encoder, the learner and the shell read it alike, and new rows as fit did."""

import csv
import json
import warnings
from datetime import date, time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from lacunar import LacunarClassifier, LacunarRegressor
from lacunar.cli import main
from lacunar.comparison import TableModel, load_problem, read_table
from lacunar.comparison.cells import UserError, read_cells
from lacunar.encode import TableEncoder
from lacunar.karma import KarmaClassifier
from lacunar.learner import base
from lacunar.observed.cells import MISSING, Reading
from lacunar.persistence import load_model, save_model

NAN = np.nan
MANY = [str(k) for k in range(20)]
COLUMNS = {
    "few digits": ["0", "1", "2", "1"],
    "digits": MANY,
    "a word among many": [*MANY, "<5"],
    "a word among few": ["0", "1", "2", "3+"],
    "a question mark": [*MANY, "?"],
    "decimal commas": ["1,5", "2,25", None, "-3,0"],
    "thousands": ["1.234,5", "12", "7.000"],
    "blanks": ["1 234", "5\u00a0678"],
    "units": ["5 kg", "7 kg", "12.5 kg"],
    "money": ["$5", "$1,200.50"],
    "per cent": ["5%", "12.5 %"],
    "two units": ["5 kg", "7 lb"],
    "units with and without a blank": ["5 kg", "7kg", "12.5kg"],
    "money and a number": ["$5", "$1,200.50", "-99"],
    "numbers and money": ["$5", "7", 9],
    "money that is owed": ["-$5", "$12", "$ -1,200.50"],
    "letters of several kinds": ["1A", "1B", "2A"],
    "points": ["1.234", "2.345"],
    "German days": ["31.03.2026", "01.02.2026"],
    "American days": ["03/31/2026", "01/02/2026"],
    "days of several kinds": ["31.03.2026", "1 Feb 2026 12:30"],
    "days": ["2026-03-31", "2026-02-01", "n/a"],
    "times": ["2026-03-31T12:30:00+02:00", "2026-02-01 08:00"],
    "a day and a word": ["2026-03-31"] * 9 + ["soon"],
    "month 13": ["2026-13-31", "2026-01-01"],
    "words": ["red", " green", "none", "NA", "", "."],
    "numbers and a word": [*range(12), "<5"],
    "a few numbers and a word": ["attic", 2.0, 1.5],
    "numbers and missing words": [1.0, "NA", 2.5],
    "fractions": [".5", "0.25", "1"],
    "decimals": [Decimal("1.5"), Decimal("NaN"), Decimal(2)],
    "truth values": [np.True_, None, False],
    "dates and a word": [date(2026, 3, 31)] * 9 + ["soon"],
    "bytes": [b"red", b"green", b"?"],
    "postcodes": ["00123", "10115", "99999"],
    "codes among numbers": [*MANY, "A12", "B3"],
    "months": ["01", "02", "12"],
    "times of day": ["12:30", "7:05", "?", "23:59"],
    "times with seconds": ["12:30:15", "07:05:00.5"],
    "halves of the day": ["1:05 PM", "12:00 am", "11:59 p.m."],
    "times and a word": ["12:30"] * 9 + ["noon"],
    "times of two kinds": ["12:30", "1:12:30", "0:45"],
    "no times": ["12:75", "7:5", "1:2"],
    "an hour 13 PM": ["13:05 PM", "1:05 PM"],
    "time objects": [time(12, 30), None, time(7, 5, 30)],
    "periods": [pd.Period("2026-03", "M"), pd.NaT, pd.Period("2026-04", "M")],
}


def read_by(door, frame):
    """The only column: what it holds, as text."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        if door == "encoder":
            encoder = TableEncoder(categories="ordinal").fit(frame)
            return encoder.kinds_[0], encoder.transform(frame)
        read = read_cells(frame.rename(columns=str), "t")[0]
        encoder = TableEncoder(categories="ordinal").fit(read)
        return encoder.kinds_[0], encoder.transform(read)


@pytest.mark.parametrize("name", COLUMNS)
def test_the_encoder_and_the_shell_read_alike(name):
    frame = pd.DataFrame({"c": COLUMNS[name]}, dtype=object)
    (kind, values), (expected_kind, expected) = read_by("encoder", frame), read_by("shell", frame)
    assert kind == expected_kind
    np.testing.assert_array_equal(values, expected)


KINDS = {
    "few digits": "number", "digits": "number", "a word among many": "number", "a word among few": "category", "a question mark": "number",
    "decimal commas": "number", "thousands": "number", "blanks": "number", "units": "number", "money": "number", "per cent": "number",
    "units with and without a blank": "number", "money and a number": "number", "numbers and money": "category", "money that is owed": "number",
    "letters of several kinds": "category", "two units": "category", "points": "number", "German days": "date", "American days": "date", "days of several kinds": "datetime",
    "days": "date", "times": "datetime", "a day and a word": "date", "month 13": "category", "words": "category",
    "numbers and a word": "number", "a few numbers and a word": "category", "numbers and missing words": "number", "fractions": "number",
    "decimals": "number", "truth values": "number", "dates and a word": "date", "bytes": "category", "postcodes": "category",
    "codes among numbers": "category", "months": "number",
    "times of day": "number", "times with seconds": "number", "halves of the day": "number", "times and a word": "number",
    "times of two kinds": "category", "no times": "category", "an hour 13 PM": "category", "time objects": "number", "periods": "date",
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(
    "make", [lambda f: f, lambda f: f["c"].to_numpy(dtype=object)[:, None]], ids=["frame", "array"]
)
@pytest.mark.filterwarnings("ignore:text in columns", "ignore:column '[c0]' has numbers with")
def test_what_a_column_is(name, make):
    assert TableEncoder().fit(make(pd.DataFrame({"c": COLUMNS[name]}, dtype=object))).kinds_ == [KINDS[name]]


def numbers(texts, **options):
    return TableEncoder(**options).fit_transform(pd.DataFrame({"c": texts}))[:, 0].tolist()


def test_numbers_are_what_is_written():
    assert numbers(["1.234,5", "12", "7.000"]) == [1234.5, 12, 7000]
    assert numbers(["1\u00a0234", "-5 678"]) == [1234, -5678]
    assert numbers(["€5", "€1,200.50"]) == [5, 1200.5]
    assert numbers(["5%", "12.5 %"]) == [5, 12.5]
    assert numbers(["($20.00)", "$1,200.50", "-$45"]) == [-20, 1200.5, -45]
    assert numbers(["(1.5)", "2.5"]) == [-1.5, 2.5]
    assert numbers(["$(3)", "$4"]) == [-3, 4]
    assert numbers([".5", "1e-3"]) == [0.5, 1e-3]
    assert numbers(["12:30", "7:05", "48:15"]) == [12.5, 7 + 5 / 60, 48.25]
    assert numbers(["12:30:36", "00:00:00"]) == [12.51, 0]
    assert numbers(["1:30 PM", "12:15 a.m.", "12:45 pm"]) == [13.5, 0.25, 12.75]
    assert numbers([time(12, 30), time(7, 15)]) == [12.5, 7.25]


@pytest.mark.parametrize(
    ("reading", "value", "example", "text"),
    [
        (Reading("time"), 12.5, "07:05", "12:30"),
        (Reading("time"), 7.25, "9:05", "7:15"),
        (Reading("time"), 13.25, "1:05 PM", "1:15 PM"),
        (Reading("time"), 0.5, "1:05 p.m.", "12:30 a.m."),
        (Reading("time"), 7.51, "12:30:15", "07:30:36"),
        (Reading("time"), -0.2, "12:30", "00:00"),
        (Reading("time"), 100.5, "48:15", "100:30"),
        (Reading("time"), 24.0, "48:15", "24:00"),
        (Reading(thousands=","), 30872.5, "1,000", "30,872.5"),
        (Reading(decimal=",", thousands="."), -1234567.5, "1.000,00", "-1.234.567,50"),
        (Reading(decimal=","), 1234.5, "1,00", "1234,50"),
        (Reading(prefix="$"), 300.0, "-$45", "$300"),
        (Reading(prefix="$"), -300.0, "$45", "-$300"),
        (Reading(prefix="$", thousands=","), 1300.0, "($2,045.50)", "$1,300.00"),
        (Reading(), 1.5, "(2.5)", "1.5"),
        (Reading(prefix="$"), 12.5, "$7.00", "$12.50"),
        (Reading(prefix="$"), 12.125, "$7.00", "$12.125"),
        (Reading(prefix="$"), 12.0, "$7", "$12"),
    ],
)
def test_values_are_written_as_their_column_is_and_read_back(reading, value, example, text):
    assert reading.written(value, example) == text
    assert float(reading.parsed([text])[text]) == max(value, 0 if reading.kind == "time" else value)


@pytest.mark.parametrize(("example", "text"), [("07:05", "23:59"), ("07:05:10", "23:59:59"), ("1:05 PM", "11:59 PM")])
def test_a_time_before_midnight_is_on_its_day(example, text):
    assert Reading("time").written(24 - 1e-7, example) == text


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_times_of_day_read_alike_as_text_and_by_their_type(library):
    texts = ["12:30", "07:15", None, "23:45"]
    typed = pl.DataFrame({"c": [None if text is None else time.fromisoformat(text) for text in texts]})
    typed = {"pandas": typed.to_pandas, "polars": lambda: typed, "arrow": typed.to_arrow}[library]()
    encoder = TableEncoder().fit(pd.DataFrame({"c": texts}))
    np.testing.assert_array_equal(encoder.transform(typed), encoder.transform(pd.DataFrame({"c": texts})))
    np.testing.assert_array_equal(TableEncoder().fit_transform(typed)[:, 0], [12.5, 7.25, NAN, 23.75])
    read = load_problem(typed, np.array(list("uvuv")), use=["c"]).X
    np.testing.assert_array_equal(read[:, 0], [12.5, 7.25, NAN, 23.75])


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, lambda table: pl.DataFrame(table).to_arrow()])
def test_declared_categories_stay_categories(kind):
    texts = (
        pd.Categorical(["1", "2", "3", "1"])
        if kind is pd.DataFrame
        else pl.Series(["1", "2", "3", "1"], dtype=pl.Categorical)
    )
    encoder = TableEncoder().fit(kind({"c": texts, "n": [1, 2, 3, 4]}))
    assert encoder.kinds_ == ["category", "number"]
    assert encoder.categories_[0].tolist() == ["1", "2", "3"]


def said(call):
    with warnings.catch_warnings(record=True, action="always") as caught:
        call()
    return [str(each.message) for each in caught if issubclass(each.category, UserWarning)]


def test_one_warning_names_column_word_and_count():
    frame = pd.DataFrame({"lead": [*MANY, "<5", "<5"], "when": ["2026-03-31"] * 21 + ["soon"], "ok": range(22)})
    encoder = TableEncoder()
    assert said(lambda: encoder.fit(frame)) == [
        "text in columns of numbers or dates that is neither is taken as missing: '<5' in 2 cells of column 'lead' (first in row 20); "
        "'soon' in 1 cell of column 'when' (first in row 21). Correct the cells if they mean something."
    ]
    assert said(lambda: encoder.transform(frame)) == []  # it was said
    (warning,) = said(lambda: encoder.transform(frame.replace("<5", ">100")))
    assert "'>100' in 2 cells of column 'lead'" in warning
    assert np.isnan(encoder.transform(frame)[20:, 0]).all()


@pytest.mark.parametrize("word", sorted(MISSING))
def test_missing_words_are_the_same_everywhere(word):
    frame = pd.DataFrame({"c": ["red", "green", word.upper(), f" {word} "], "n": ["1.5", "2", word, word.title()]})
    assert not said(lambda: TableEncoder().fit(frame))
    made = TableEncoder(categories="ordinal").fit_transform(frame)
    np.testing.assert_array_equal(made, [[1, 1.5], [0, 2], [NAN, NAN], [NAN, NAN]])
    assert read_cells(frame, "t")[0].isna().sum().tolist() == [2, 2]


# -- new rows ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fitted", "new", "expected"),
    [
        (["1.234,5", "12"], ["7.000", "1,5", 3], [7000, 1.5, 3]),
        (["1,234.5", "12"], ["7,000", "1.5", 3], [7000, 1.5, 3]),
        (["1,5", "12"], ["1,234", "2"], [1.234, 2]),
        (["5 kg", "7 kg"], ["1.5 kg", "2"], [1.5, 2]),
        ([1.5, 2.0], ["1.234", "2"], [1.234, 2]),
        ([["31.01.2026"], ["01.02.2026"]], ["03.02.2026"], [20487]),
        (["31/01/2026", "01/02/2026"], ["03/02/2026"], [20487]),
        (["01/31/2026", "01/02/2026"], ["02/03/2026"], [20487]),
    ],
)
def test_new_rows_are_read_as_in_fit(fitted, new, expected, tmp_path):
    """One row alone would leave it open."""
    encoder = TableEncoder().fit(pd.DataFrame({"c": np.ravel(np.array(fitted, dtype=object)), "n": range(len(fitted))}))
    save_model(encoder, tmp_path / "encoder")
    for model in (encoder, load_model(tmp_path / "encoder")):
        made = model.transform(pd.DataFrame({"c": pd.Series(new, dtype=object), "n": range(len(new))}))
        assert made[:, 0].tolist() == expected
        for row, value in zip(new, expected, strict=True):
            assert model.transform(pd.DataFrame({"c": pd.Series([row], dtype=object), "n": [0]}))[0, 0] == value


@pytest.mark.parametrize(
    ("fitted", "new"), [(["1.5", "2.5"], "1,5"), (["1,5", "2,5"], "1.5"), (["5 kg", "7 kg"], "5 lb")]
)
def test_what_is_written_otherwise_is_missing_and_said(fitted, new):
    encoder = TableEncoder().fit(pd.DataFrame({"c": fitted}))
    with pytest.warns(UserWarning, match=f"'{new}' in 1 cell of column 'c'"):
        assert np.isnan(encoder.transform(pd.DataFrame({"c": [new]}))).all()


@pytest.mark.parametrize("form", ["%Y-%m", "%m/%Y", "%b %Y", "%Y-%b"])
def test_months_are_dates_as_periods_are(form):
    months = pd.period_range("2025-03", periods=14, freq="M")
    read = TableEncoder().fit_transform(pd.DataFrame({"c": months.strftime(form)}))
    np.testing.assert_array_equal(read, TableEncoder().fit_transform(pd.DataFrame({"c": months})))
    assert TableEncoder().fit(pd.DataFrame({"c": [f"2026-{k}" for k in range(10, 90)]})).kinds_ == ["category"]


def test_one_cell_with_another_mark_is_missing_and_said():
    texts = [f"{k}.5" for k in range(20)]
    with pytest.warns(UserWarning, match=r"'1,5'"):
        read = numbers([*texts, "1,5"])
    np.testing.assert_array_equal(read, [*map(float, texts), NAN])
    mixed = TableEncoder().fit(pd.DataFrame({"c": [*texts, *(text.replace(".", ",") for text in texts)]}))
    assert mixed.kinds_ == ["category"]


@pytest.mark.parametrize(
    ("form", "odd"),
    [("%Y-%m-%d", ["0000-00-00", "2026-02-30"]), ("%d/%m/%Y", ["31/02/2026"]), ("%Y-%m-%d", ["13/05/2026"])],
)
def test_days_that_are_none_are_missing_and_said(form, odd):
    days = pd.date_range("2026-01-05", periods=40)
    with pytest.warns(UserWarning, match=odd[0]):
        read = TableEncoder().fit_transform(pd.DataFrame({"c": [*days.strftime(form), *odd]}))
    expected = TableEncoder().fit_transform(pd.DataFrame({"c": [*days, *[pd.NaT] * len(odd)]}))
    np.testing.assert_array_equal(read, expected)


@pytest.mark.parametrize("form", ["%m/%d/%Y %I:%M:%S %p", "%Y-%m-%d %H:%M:%S.%f789"])
def test_seconds_of_times_are_read(form):
    moments = pd.date_range("2026-01-25 22:10:30", periods=12, freq="7h")
    read = TableEncoder().fit_transform(pd.DataFrame({"c": moments.strftime(form)}))
    np.testing.assert_array_equal(read, TableEncoder().fit_transform(pd.DataFrame({"c": moments})))


@pytest.mark.parametrize(
    ("texts", "match", "options"),
    [
        (["1,234", "5,678"], r"column 'c' holds '1,234'.*comma.*TableEncoder\(decimal=','\)", {"decimal": ","}),
        (
            ["01/02/2026", "03/04/2026"],
            r"date of column 'c' may be 2026-02-01 or 2026-01-02.*dates='dmy'",
            {"dates": "dmy"},
        ),
    ],
)
def test_what_reads_in_two_ways_is_refused(texts, match, options):
    frame = pd.DataFrame({"c": texts * 10, "n": np.arange(20.0)})
    with pytest.raises(ValueError, match=match):
        TableEncoder().fit(frame)
    with pytest.raises(ValueError, match=match):
        LacunarRegressor(members=["gaussian"]).fit(frame, np.arange(20.0))
    made = TableEncoder(**options).fit(frame).transform(frame.head(1))
    assert made[0, 0] == (1.234 if "decimal" in options else 20485)
    clear = frame.assign(other=["1,5", "2,25"] * 10)  # which says what the mark is
    if "decimal" in options:
        assert TableEncoder().fit(clear).transform(clear)[0, 0] == 1.234


def test_a_reading_of_a_file_is_checked(tmp_path):
    for wrong in (
        Reading(kind="word"),
        Reading(decimal=";"),
        Reading(thousands="x"),
        Reading(order="ydm"),
        Reading(words=(1,)),
    ):
        encoder = TableEncoder().fit(pd.DataFrame({"c": ["1,5", "2"]}))
        encoder.readings_ = [wrong]
        save_model(encoder, tmp_path / "m")
        with pytest.raises(ValueError, match="a reading of text"):
            load_model(tmp_path / "m")
    encoder.readings_ = [Reading("date")]
    save_model(encoder, tmp_path / "m")
    with pytest.raises(ValueError, match="kinds_ and readings_"):
        load_model(tmp_path / "m")


# -- the learner and the shell ----------------------------------------------------------------------------------------------


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    number = rng.permutation(n)
    return number, np.where(number + 20 * rng.normal(size=n) > n / 2, "up", "down"), rng.normal(size=n)


@pytest.mark.parametrize(
    "make", [lambda f: f, pl.from_pandas, lambda f: pl.from_pandas(f).to_arrow(), lambda f: f.to_numpy(dtype=object)]
)
def test_the_learner_does_not_drop_numbers_that_are_text(make):
    number, y, other = table()
    model = LacunarClassifier(members=["gaussian", "logistic"])
    as_numbers = pd.DataFrame({"a": number.astype(float), "b": other})
    expected = model.fit(make(as_numbers), y).predict(make(as_numbers))
    as_text = as_numbers.assign(a=[str(k) for k in number])
    with warnings.catch_warnings(action="error"):
        assert (model.fit(make(as_text), y).predict(make(as_text)) == expected).all()
    with_words = as_text.assign(a=as_text["a"].where(number != 7, "<5").where(number != 8, "?"))
    (warning,) = said(lambda: model.fit(make(with_words), y))
    assert "'<5' in 1 cell of column" in warning
    assert model.views_.encoder_.kinds_ == ["number", "number"]


def test_the_learner_and_compare_see_the_same():
    number, y, other = table(120)
    frame = pd.DataFrame({"a": [f"{k},5" for k in number], "b": other, "y": y})
    problem = load_problem(frame, "y")
    np.testing.assert_array_equal(problem.X, TableEncoder().fit_transform(frame[["a", "b"]]))
    model = TableModel(KarmaClassifier()).fit(problem)
    alone = pd.DataFrame({"a": ["1,5"], "b": [0.5]})
    assert model.predict(alone)[0] == KarmaClassifier().fit(problem.X, problem.y).predict([[1.5, 0.5]])[0]


def test_compare_reads_decimals_and_bytes_as_the_encoder_does():
    number, y, other = table(80)
    frame = pd.DataFrame(
        {"price": [Decimal(int(k)) / 4 for k in number], "b": other, "word": [b"u", b"v"] * 40, "y": y}
    )
    problem = load_problem(frame, "y")
    assert list(problem.frame) == ["price", "b", "word"]
    np.testing.assert_array_equal(problem.X, TableEncoder().fit_transform(frame.drop(columns="y")))
    assert load_problem(frame, "price").task == "regression"
    with pytest.raises(UserError, match=r"column 'word' must hold text.*UTF-8.*in row 3. Decode"):
        load_problem(frame.assign(word=[*[b"u", b"v", b"u", b"\xff"], *[b"v"] * 76]), "y")


def test_names_that_are_the_same_text_are_refused():
    frame = pd.DataFrame([[1.0, 2.0, "p"], [2.0, 1.0, "q"]] * 10, columns=[1, "1", "y"])
    with pytest.raises(UserError, match=r"the column name '1' occurs more than once\. Rename"):
        load_problem(frame, "y")


@pytest.mark.parametrize("frames", [False, True])
def test_an_odd_cell_and_an_unseen_category_are_those_of_their_rows_alone(frames, tmp_path):
    """In a learner, and in a model of a comparison that has one, or an encoder with KARMA; also out of their files."""
    _, y, other = table()
    X = pd.DataFrame({"yes": y == "up", "b": other, "c": ["u", "v", "w"] * 100})
    learner = LacunarClassifier(members=["logistic"], random_state=0)
    problem = load_problem(X.assign(y=y), "y")
    model = TableModel(learner if frames else KarmaClassifier()).fit(problem, frames=frames)
    save_model(model, tmp_path / "m")
    new = pd.DataFrame({"yes": ["unknown", np.True_, "False", False], "b": 0.0, "c": ["u", "v", "w", "x"]})
    alone = pd.DataFrame({"yes": [None, True, False, False], "b": 0.0, "c": ["u", "v", "w", None]})
    models = [model, load_model(tmp_path / "m"), *([clone(learner).fit(X, y)] if frames else [])]
    for each in models:
        odd, unseen = said(lambda each=each: each.predict_proba(new))
        assert "'unknown' in 1 cell of column 'yes' (first in row 0)" in odd
        assert "'x' in 1 cell of column 'c' (first in row 3)" in unseen
        with warnings.catch_warnings(action="ignore"):
            found = each.predict_proba(new)
        expected = [each.predict_proba(alone[k : k + 1])[0] for k in range(4)]
        np.testing.assert_allclose(found[:3], expected[:3], rtol=0, atol=1e-12)
        assert np.abs(found[3] - expected[3]).max() > (1e-9 if frames else 1e-3)
        if frames:  # the learner takes what it never saw as any of the levels that it saw
            seen = each.predict_proba(pd.concat([alone[3:]] * 3).assign(c=["u", "v", "w"]))
            np.testing.assert_allclose(found[3], seen.mean(axis=0), rtol=0, atol=1e-9)


def test_batches_of_one_call_have_one_warning(monkeypatch):
    _, y, other = table()
    X = pd.DataFrame({"b": other, "c": ["u", "v", "w"] * 100})
    model = LacunarClassifier(members=["logistic"], random_state=0).fit(X, y)
    monkeypatch.setattr(base, "BATCH", 7)
    new = X[:50].assign(c=["u"] * 11 + ["x", "y"] + ["x"] * 37)
    (warning,) = [text for text in said(lambda: model.predict(new)) if "never saw" in text]
    assert "'x' in 38 cells, 'y' in 1 cell of column 'c' (first in row 11)" in warning


WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "json": lambda frame, path: path.write_text(json.dumps(frame.to_dict("records"))),
    "xlsx": lambda frame, path: frame.to_excel(path, index=False),
    "parquet": lambda frame, path: frame.to_parquet(path),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_codes_keep_their_zeros_and_numbers_among_them(kind, tmp_path):
    cells = zip(["00123", "10115", "00456"] * 20, ["A12", "17", "B3"] * 20, ["01", "02", "12"] * 20, strict=True)
    frame = pd.DataFrame(cells, columns=["zip", "mixed", "month"]).assign(y=["u", "v", "v"] * 20)
    WRITERS[kind](frame, tmp_path / f"t.{kind}")
    problem = load_problem(str(tmp_path / f"t.{kind}"), "y")
    assert problem.encoder.kinds_ == ["category", "category", "number"]
    assert [known.tolist() for known in problem.encoder.categories_[:2]] == [
        ["00123", "00456", "10115"],
        ["17", "A12", "B3"],
    ]
    model = TableModel(KarmaClassifier()).fit(problem)
    WRITERS[kind](frame[1:2].drop(columns="y"), tmp_path / f"n.{kind}")  # digits alone
    new = read_table(str(tmp_path / f"n.{kind}"), readings=model.readings_).frame
    assert new["zip"].tolist() == ["10115"]
    assert not said(lambda: model.predict(new))
    assert model.predict(new).tolist() == ["v"]


def test_the_shell_reads_new_rows_as_fit_did(tmp_path):
    """7.000 in a file of its own is seven; a model of a German table knows better."""
    number, y, _ = table(120)
    lines = [
        f"{k // 10}.{k % 10}00,5;{day % 28 + 1:02}/03/2026;{label}"
        for day, (k, label) in enumerate(zip(10 + number, y, strict=True))
    ]
    (tmp_path / "t.csv").write_text("a;day;y\n" + "\n".join(lines))
    (tmp_path / "new.csv").write_text("a;day\n7.000;02/03/2026\n")
    model, out = str(tmp_path / "m.lacunar"), str(tmp_path / "p.csv")
    assert main(["fit", str(tmp_path / "t.csv"), "--output", model, "--learner", "karma-2", "--quiet"]) == 0
    loaded = load_model(model)
    assert loaded.readings_["a"] == Reading(decimal=",", thousands=".")
    assert loaded.readings_["day"].order == "dmy"
    rows = []
    original = TableEncoder.transform

    def seen(self, X):
        rows.append(X)
        return original(self, X)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TableEncoder, "transform", seen)
        assert main(["predict", model, str(tmp_path / "new.csv"), "--output", out, "--quiet"]) == 0
    assert rows[-1]["a"].tolist() == [7000]
    assert rows[-1]["day"].tolist() == [pd.Timestamp("2026-03-02")]
    with open(out, newline="") as file:
        assert len(list(csv.reader(file))) == 2


def test_numbers_without_the_unit_of_the_others_and_owed_money_are_read():
    frame = pd.DataFrame({"c": ["-$5", "$12", "$ -1,200.50", "$3", "-99"]}, dtype=object)
    with pytest.warns(UserWarning, match=r"column 'c' has numbers with '\$', and 1 number without"):
        made = TableEncoder().fit_transform(frame)
    np.testing.assert_array_equal(made[:, 0], [-5, 12, -1200.5, 3, -99])
