"""TableEncoder: categories as columns, missing cells as missing, the same from every kind of table."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from lacunar import KarmaClassifier, KarmaRegressor, LacunarClassifier
from lacunar.encode import TableEncoder
from lacunar.impute import Imputer
from lacunar.persistence import load_model, save_model

DATA = {"n": [1.5, None, 3.0, 4.0], "two": ["u", "v", None, "u"], "three": ["c", None, "a", "b"]}
NAN = np.nan
# n, two == "v", three == "a", "b", "c"
EXPECTED = np.array([[1.5, 0, 0, 0, 1], [NAN, 1, NAN, NAN, NAN], [3, NAN, 1, 0, 0], [4, 0, 0, 1, 0]])


def categorical():
    return pd.DataFrame(DATA).astype({"two": "category", "three": "category"})


TABLES = {
    "pandas": lambda: pd.DataFrame(DATA),
    "pandas string": lambda: pd.DataFrame(DATA).convert_dtypes(),
    "pandas categorical": categorical,
    "polars": lambda: pl.DataFrame(DATA),
    "polars categorical": lambda: pl.DataFrame(DATA).with_columns(pl.col("two", "three").cast(pl.Categorical)),
    "polars enum": lambda: pl.DataFrame(DATA).with_columns(pl.col("two").cast(pl.Enum(["u", "v"]))),
    "arrow": lambda: pl.DataFrame(DATA).to_arrow(),
    "array of objects": lambda: pd.DataFrame(DATA).to_numpy(dtype=object),
    "lists": lambda: [list(row) for row in zip(*DATA.values(), strict=True)],
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_gives_the_same(kind):
    X = TABLES[kind]()
    np.testing.assert_array_equal(TableEncoder().fit_transform(X), EXPECTED)


def test_names_go_with_the_columns():
    encoder = TableEncoder().fit(pd.DataFrame(DATA))
    assert list(encoder.get_feature_names_out()) == ["n", "two_v", "three_a", "three_b", "three_c"]
    every = TableEncoder(drop_binary=False).fit(TABLES["lists"]())
    assert list(every.get_feature_names_out()) == ["x0", "x1_u", "x1_v", "x2_a", "x2_b", "x2_c"]
    assert list(every.get_feature_names_out(["n", "two", "three"]))[1] == "two_u"
    with pytest.raises(ValueError, match="input_features"):
        encoder.get_feature_names_out(["a", "b", "c"])
    frame = TableEncoder().set_output(transform="pandas").fit_transform(pd.DataFrame(DATA))
    assert list(frame.columns) == list(encoder.get_feature_names_out())


def test_numbers_and_booleans_are_numbers_and_empty_text_is_a_hole():
    X = pd.DataFrame({"b": [True, False, None], "i": [1, 2, 3], "t": ["x", "", "y"], "none": [None, None, None]})
    table = TableEncoder().fit_transform(X)
    np.testing.assert_array_equal(table, [[1, 1, 0, NAN], [0, 2, NAN, NAN], [NAN, 3, 1, NAN]])


def test_numbers_of_all_types_come_together_or_one_by_one():
    X = pd.DataFrame({"b": [True, False], "i": [1, 2], "u": np.array([3, 4], np.uint64), "f": [0.5, np.nan]})
    expected = [[1, 1, 3, 0.5], [0, 2, 4, NAN]]
    for made in (X, X.convert_dtypes(), pl.from_pandas(X), pl.from_pandas(X).to_arrow(), X.astype({"b": object})):
        np.testing.assert_array_equal(TableEncoder().fit_transform(made), expected)


# -- a column at fit, and what comes later ------------------------------------------------------------------------------


# By what they hold: cells of equal value, in any type that they come in.
EQUAL = {
    "truth": {
        "bool": np.array([True, False, True]),
        "bool of pandas": pd.array([True, False, True], dtype="boolean"),
        "bool of Arrow": pd.Series([True, False, True], dtype="bool[pyarrow]"),
        "objects": pd.Series([True, False, True], dtype=object),
        "objects of NumPy": pd.Series([np.True_, np.False_, np.True_], dtype=object),
        "whole": [1, 0, 1],
        "floats": [1.0, 0.0, 1.0],
        "text": ["True", "False", "True"],
        "bytes": pd.Series([b"True", b"False", b"True"], dtype=object),
        "mixed": pd.Series([True, "False", np.True_], dtype=object),
        "category": pd.Categorical([True, False, True]),
    },
    "grades": {
        "whole": [3, 1, 2],
        "floats": [3.0, 1.0, 2.0],
        "single": np.array([3, 1, 2], np.float32),
        "text": ["3", "1", "2"],
        "text of floats": ["3.0", "1.0", "2.0"],
        "decimals": pd.Series([Decimal(3), Decimal("1.0"), Decimal("2.00")], dtype=object),
        "decimals of Arrow": pd.Series([3, 1, 2], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        "fractions": pd.Series([Fraction(3), Fraction(1), Fraction(2)], dtype=object),
        "mixed": pd.Series([3, np.float32(1), "2"], dtype=object),
        "category of whole": pd.Categorical([3, 1, 2]),
        "category of floats": pd.Categorical([3.0, 1.0, 2.0]),
        "category of text": pd.Categorical(["3", "1", "2"]),
    },
    "words": {
        "text": ["red", "gr\u00fcn", "blue"],
        "string": pd.array(["red", "gr\u00fcn", "blue"], dtype="string"),
        "bytes": pd.Series([w.encode() for w in ("red", "gr\u00fcn", "blue")], dtype=object),
        "binary of Arrow": pd.Series([w.encode() for w in ("red", "gr\u00fcn", "blue")], dtype=pd.ArrowDtype(pa.binary())),
        "NumPy's text": pd.Series(list(np.array(["red", "gr\u00fcn", "blue"])), dtype=object),
        "category": pd.Categorical(["red", "gr\u00fcn", "blue"]),
    },
    "prices": {
        "floats": [1.5, 2.25, 0.125],
        "decimals": pd.Series([Decimal("1.5"), Decimal("2.25"), Decimal("0.125")], dtype=object),
        "fractions": pd.Series([Fraction(3, 2), Fraction(9, 4), Fraction(1, 8)], dtype=object),
        "text": ["1.5", "2.25", ".125"],
        "bytes": pd.Series([b"1.5", b"2.25", b"0.125"], dtype=object),
    },
    "days": {
        "dates": pd.Series([datetime.date(2026, 3, k) for k in (31, 1, 13)], dtype=object),
        "times": pd.to_datetime(["2026-03-31", "2026-03-01", "2026-03-13"]),
        "text": ["2026-03-31", "2026-03-01", "2026-03-13"],
        "objects of NumPy": pd.Series([np.datetime64(f"2026-03-{k}") for k in (31, "01", 13)], dtype=object),
        "mixed": pd.Series([datetime.date(2026, 3, 31), "2026-03-01", pd.Timestamp("2026-03-13")], dtype=object),
    },
    "durations": {
        "timedelta": pd.to_timedelta([1.5, 2, 3], unit="D"),
        "objects": pd.Series([datetime.timedelta(1.5), datetime.timedelta(2), np.timedelta64(3, "D")], dtype=object),
        "floats": [1.5, 2.0, 3.0],
    },
}  # fmt: skip
PAIRS = [(holds, at_fit, later) for holds, types in EQUAL.items() for at_fit in types for later in types]


@pytest.mark.parametrize(("holds", "at_fit", "later"), PAIRS)
def test_equal_values_have_equal_encodings_whatever_type_they_come_in(holds, at_fit, later):
    """Nothing is missing, nothing is said, and one row alone reads as it does among others; also out of an array of objects."""
    fitted = pd.DataFrame({"c": EQUAL[holds][at_fit]})
    encoder = TableEncoder()
    expected = encoder.fit_transform(fitted)
    assert np.isfinite(expected).all()
    new = pd.DataFrame({"c": EQUAL[holds][later]})
    np.testing.assert_array_equal(encoder.transform(new), expected)
    np.testing.assert_array_equal(encoder.transform(new[1:2]), expected[1:2])
    objects = TableEncoder().fit(fitted.astype(object).to_numpy())
    if "category" not in at_fit:  # an array does not say so of a number
        np.testing.assert_array_equal(objects.transform(new.astype(object).to_numpy()), expected)


@pytest.mark.parametrize(("holds", "at_fit", "later"), PAIRS)
def test_one_odd_cell_is_missing_or_unseen_in_its_row_alone(holds, at_fit, later):
    encoder = TableEncoder()
    expected = encoder.fit_transform(pd.DataFrame({"c": EQUAL[holds][at_fit]}))
    cells = pd.Series(list(pd.Series(EQUAL[holds][later])), dtype=object)
    cells[1] = "odd"
    with pytest.warns(UserWarning, match=r"'odd' in 1 cell of column 'c' \(first in row 1\)") as caught:
        found = encoder.transform(pd.DataFrame({"c": cells}))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(found[[0, 2]], expected[[0, 2]])
    if encoder.kinds_ != ["category"]:
        assert np.isnan(found[1]).all()
    else:
        assert found[1].tolist() == ([0.5] if found.shape[1] == 1 else [0.0] * found.shape[1])


def test_unseen_categories_are_none_of_those_that_were_seen():
    X, new = pd.DataFrame({"c": ["a", "b", "c"], "t": list("uvu")}), pd.DataFrame({"c": ["a", "d"], "t": ["w", None]})
    said = r"categories that fit never saw: 'd' in 1 cell of column 'c' \(first in row 1\); 'w' in 1 cell of column 't' \(first in row 0\)"

    def encoded(meaning, **options):
        with pytest.warns(UserWarning, match=f"{said}. They are {meaning}") as caught:
            found = TableEncoder(**options).fit(X).transform(new)
        assert len(caught) == 1
        return found

    other = "taken as observed, and as none of those that fit saw"
    np.testing.assert_array_equal(encoded(other), [[1, 0, 0, 0.5], [0, 0, 0, NAN]])
    np.testing.assert_array_equal(encoded(other, drop_binary=False), [[1, 0, 0, 0, 0], [0, 0, 0, NAN, NAN]])
    np.testing.assert_array_equal(encoded(other, categories="ordinal"), [[0, 2], [3, NAN]])
    missing = encoded("taken as missing", handle_unknown="missing")
    np.testing.assert_array_equal(missing, [[1, 0, 0, NAN], [NAN, NAN, NAN, NAN]])
    with pytest.raises(ValueError, match="got 'd' in row 1, column 'c'"):
        TableEncoder(handle_unknown="error").fit(X).transform(new)


def test_kernels_find_an_unseen_level_unlike_a_missing_one():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", None], 300)
    y = np.select([colour == "red", colour == "green"], [1.0, 2.0], 6.0)
    X = pd.DataFrame({"colour": colour, "x": rng.normal(size=300)})
    model = make_pipeline(TableEncoder(), KarmaRegressor()).fit(X, y)
    with pytest.warns(UserWarning, match="'blue' in 1 cell of column 'colour'"):
        red, green, missing, blue = model.predict(pd.DataFrame({"colour": ["red", "green", None, "blue"], "x": 0.0}))
    assert abs(blue - missing) > 1
    assert min(red, green) - 0.5 < blue < max(red, green) + 0.5


def test_values_that_several_categories_share_are_told_by_name():
    encoder = TableEncoder(categories="ordinal").fit(pd.DataFrame({"c": ["1.0", "1", "True", "x"]}))
    new = pd.DataFrame({"c": pd.Series(["True", 1, "1.0", "x"], dtype=object)})
    assert encoder.transform(new)[:, 0].tolist() == [2, 0, 1, 3]


def test_a_file_whose_categories_were_written_with_a_point_reads_whole_numbers(tmp_path):
    encoder = TableEncoder(handle_unknown="missing").fit(pd.DataFrame({"c": pd.Categorical([1, 2, 3])}))
    encoder.categories_ = [np.array(["1.0", "2.0", "3.0"], dtype=object)]
    save_model(encoder, tmp_path / "m")
    for cells in ([3, 1], [3.0, 1.0], pd.Categorical([3.0, 1.0]), ["3", "1"]):
        found = load_model(tmp_path / "m").transform(pd.DataFrame({"c": cells}))
        np.testing.assert_array_equal(found, [[0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    "make", [lambda f: f, lambda f: f.to_numpy(), lambda f: pa.table({"c": pa.array(f["c"], pa.binary())})]
)
def test_bytes_that_are_no_text_are_refused_with_their_row(make):
    frame = pd.DataFrame({"c": pd.Series([b"x", b"\xff\xfe"], dtype=object)})
    with pytest.raises(
        TypeError, match=r"column ('c'|0) must hold text, or bytes of text in UTF-8; got b'\\xff\\xfe' in row 1. Decode"
    ):
        TableEncoder().fit(make(frame))


def test_text_of_bytes_in_an_array():
    text = np.array([["x", "1.5"], ["y", "2"]])
    encoder = TableEncoder().fit(text.astype("S3"))
    assert encoder.categories_[0].tolist() == ["x", "y"]
    np.testing.assert_array_equal(encoder.transform(text), [[0, 1.5], [1, 2]])


def test_a_batch_whose_categories_look_like_numbers():
    encoder = TableEncoder().fit(np.array([["1"], ["2"], ["x"]], dtype=object))
    np.testing.assert_array_equal(encoder.transform(np.array([[2], [None]], dtype=object)), [[0, 1, 0], [NAN] * 3])


def test_whole_numbers_of_128_bits_and_masked_objects():
    frame = pl.DataFrame({"a": [1, None, 2**70], "b": [3, 4, 5]}, schema={"a": pl.Int128, "b": pl.Int128})
    np.testing.assert_array_equal(TableEncoder().fit_transform(frame), [[1, 3], [NAN, 4], [2.0**70, 5]])
    masked = np.array([[1.0, "u"], [np.ma.masked, "v"], [2.0, np.ma.masked]], dtype=object)
    np.testing.assert_array_equal(TableEncoder().fit_transform(masked), [[1, 0], [NAN, 1], [2, NAN]])


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"column 'id'.*Drop it"):
        TableEncoder(max_categories=3).fit(pd.DataFrame({"id": list("abcd")}))
    numbers = TableEncoder().fit(pd.DataFrame({"n": [1.0, 2.0]}))
    with pytest.warns(UserWarning, match="'many' in 1 cell of column 'n'"):
        np.testing.assert_array_equal(numbers.transform(pd.DataFrame({"n": ["1", "many"]})), [[1], [NAN]])
    np.testing.assert_array_equal(numbers.transform(pd.DataFrame({"n": ["1", ""]})), [[1], [NAN]])
    with pytest.raises(ValueError, match="row 1, column 'n'"):
        TableEncoder().fit(pd.DataFrame({"n": [1.0, np.inf]}))
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        TableEncoder().fit(pd.DataFrame({"n": []}))


def test_in_front_of_a_learner_and_in_a_file(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "c": rng.choice(["a", "b", "c"], 200)})
    y = (X["c"] == "b").to_numpy()
    X = X.mask(rng.random(X.shape) < 0.1)
    model = make_pipeline(TableEncoder(), KarmaClassifier()).fit(X, y)
    assert model.score(X, y) > 0.9
    save_model(model[0], tmp_path / "encoder")
    np.testing.assert_array_equal(load_model(tmp_path / "encoder").transform(X), model[0].transform(X))


@pytest.mark.parametrize("as_array", [False, True])
def test_learners_say_which_column_holds_text(as_array):
    X = pd.DataFrame({"n": [1.0, None], "c": [None, "red"]}).astype(object)
    place = "column 1" if as_array else "column 'c'"
    with pytest.raises(ValueError, match=f"'red' in row 1, {place}.*TableEncoder"):
        KarmaClassifier().fit(X.to_numpy() if as_array else X, [0, 1])


DATES = ["2026-03-31", None, "2024-02-29"]
DAYS = np.array([[20543, 3, 31, 1], [NAN] * 4, [19782, 2, 29, 3]])  # days since 1970, month, day, weekday from Monday


@pytest.mark.parametrize(
    "made",
    [
        lambda: pd.DataFrame({"d": DATES}),
        lambda: pd.DataFrame({"d": pd.to_datetime(DATES)}),
        lambda: pd.DataFrame({"d": pd.to_datetime(DATES).tz_localize("UTC")}),
        lambda: pd.DataFrame({"d": pd.to_datetime(DATES)}).convert_dtypes(dtype_backend="pyarrow"),
        lambda: pd.DataFrame({"d": [None if d is None else datetime.date.fromisoformat(d) for d in DATES]}),
        lambda: pl.DataFrame({"d": DATES}).with_columns(pl.col("d").str.to_date()),
        lambda: pl.DataFrame({"d": DATES}).with_columns(pl.col("d").str.to_date()).to_arrow(),
        lambda: np.array([DATES], dtype="datetime64[ns]").T,
    ],
)
def test_dates_are_several_numbers(made):
    encoder = TableEncoder().fit(made())
    np.testing.assert_array_equal(encoder.transform(made()), DAYS)
    assert [name.partition("_")[2] for name in encoder.get_feature_names_out()] == ["days", "month", "day", "weekday"]
    assert encoder.kinds_ == ["date"]


def test_times_of_day_are_hours_in_utc():
    X = pd.DataFrame({"t": ["2026-03-31T12:30", "2026-03-31T14:30+02:00", ""]})
    encoder = TableEncoder().fit(X)
    assert list(encoder.get_feature_names_out())[-1] == "t_hour"
    np.testing.assert_array_equal(encoder.transform(X)[:, -1], [12.5, 12.5, NAN])
    np.testing.assert_array_equal(encoder.transform(X)[0], encoder.transform(X)[1])
    with pytest.warns(UserWarning, match="'soon' in 1 cell of column 't'"):
        made = encoder.transform(pd.DataFrame({"t": ["2026-03-31", "soon"]}))
    assert np.isnan(made).all(axis=1).tolist() == [False, True]
    assert TableEncoder().fit(pd.DataFrame({"t": ["2026-13-31", "2026-01-01"]})).kinds_ == ["category"]  # no month 13


@pytest.mark.parametrize("lost", [[None, None], [np.nan, np.nan], ["", None]])
def test_a_column_missing_in_fit_takes_whatever_comes(lost):
    encoder = TableEncoder().fit(pd.DataFrame({"a": [1.0, 2.0], "c": lost}))
    assert encoder.kinds_ == ["number", "empty"]
    for later, found in ((["Y", None], NAN), ([pd.Timestamp("2026-01-01")] * 2, NAN), ([5.0, 5.0], 5)):
        np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"a": [1.0, 2.0], "c": later}))[:, 1], [found] * 2)


def test_ordinal_categories_are_for_trees():
    from sklearn.ensemble import HistGradientBoostingClassifier

    X = pd.DataFrame({"n": np.arange(60.0), "c": ["b", "a", "c"] * 20})
    encoder = TableEncoder(categories="ordinal").fit(X)
    made = encoder.transform(X.mask(X == "c"))
    np.testing.assert_array_equal(made[:3], [[0, 1], [1, 0], [2, NAN]])
    np.testing.assert_array_equal(encoder.is_categorical_, [False, True])
    np.testing.assert_array_equal(TableEncoder().fit(X).is_categorical_, [False] * 4)
    assert list(encoder.get_feature_names_out()) == ["n", "c"]
    trees = HistGradientBoostingClassifier(categorical_features=encoder.is_categorical_)
    assert trees.fit(encoder.transform(X), X["c"] == "a").score(encoder.transform(X), X["c"] == "a") == 1.0


def test_text_is_refused_or_left_out():
    X = pd.DataFrame({"note": [f"note {k}" for k in range(5)], "n": np.arange(5.0)})
    with pytest.raises(ValueError, match=r"5 in column 'note'.*text='drop'"):
        TableEncoder(max_categories=4).fit(X)
    encoder = TableEncoder(max_categories=4, text="drop").fit(X)
    assert encoder.kinds_ == ["dropped", "number"]
    assert list(encoder.get_feature_names_out()) == ["n"]
    np.testing.assert_array_equal(encoder.transform(X), X[["n"]])
    with pytest.raises(ValueError, match="1 columns of free text"):
        TableEncoder(max_categories=4, text="drop").fit(X[["note"]])


def test_yes_and_no_are_one_column_like_booleans():
    X = pd.DataFrame({"word": ["yes", "no", None], "bool": pd.array([True, False, None], dtype="boolean")})
    np.testing.assert_array_equal(TableEncoder().fit_transform(X), [[1, 1], [0, 0], [NAN, NAN]])


@pytest.mark.parametrize(
    "change", [{"kinds_": ["number"]}, {"kinds_": ["number", "number"]}, {"kinds_": ["number", "x"]}]
)
def test_files_whose_parts_contradict_each_other_are_refused(change, tmp_path):
    encoder = TableEncoder().fit(pd.DataFrame({"n": [1.0, 2.0], "c": ["u", "v"]}))
    vars(encoder).update(change)
    save_model(encoder, tmp_path / "m")
    with pytest.raises(ValueError, match="kinds_"):
        load_model(tmp_path / "m")


def test_folds_in_which_a_text_column_is_all_missing():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=60), "rare": [None] * 60})
    X.loc[[3, 4], "rare"] = ["Y", "N"]
    y = (X["x"] > 0).to_numpy()
    scores = cross_val_score(make_pipeline(TableEncoder(), KarmaClassifier()), X, y, cv=KFold(4))
    assert scores.mean() > 0.9


def test_whole_numbers_among_text_have_no_point():
    mixed = pd.DataFrame({"floor": ["attic", 2.0, 1.5]})
    encoder = TableEncoder().fit(mixed)
    assert encoder.categories_[0].tolist() == ["1.5", "2", "attic"]
    np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"floor": [2.0, 1.5]})), [[0, 1, 0], [1, 0, 0]])


@pytest.mark.parametrize("cell", [[1, 2], (1,), {"a": 1}, np.ones(2), list(range(10_000))])
def test_cells_that_hold_several_values_are_refused(cell):
    with pytest.raises(TypeError, match=r"column 'c' must hold numbers, text or dates; got .{4,60} in row 1"):
        TableEncoder().fit(pd.DataFrame({"c": pd.Series(["x", cell], dtype=object)}))


@pytest.mark.parametrize(
    "column", [np.array([1j, 2j]), np.array([None, 2 + 0j], dtype=object), np.array([1j, 2], dtype=np.complex64)]
)
def test_complex_numbers_are_refused_with_their_place(column):
    with pytest.raises(
        TypeError, match=r"column 'c' must hold numbers, text or dates; got .*j.* in row [01]. Complex data not"
    ):
        TableEncoder().fit(pd.DataFrame({"c": column}))


def test_text_that_hardly_repeats_is_dropped_as_text_of_many_values_is():
    """45 names in 80 rows are identifiers; in 90 rows, two each, they are categories; missing cells are not counted."""
    names = [f"name{k}" for k in range(45)]
    for cells, kind in (
        (names + names[:35], "dropped"),
        (names * 2, "category"),
        (names + names[:35] + [None] * 99, "dropped"),
    ):
        X = pd.DataFrame({"name": cells, "x": np.arange(float(len(cells)))})
        assert TableEncoder(text="drop").fit(X).kinds_ == [kind, "number"]
        assert TableEncoder().fit(X).kinds_ == ["category", "number"]
    few = pd.DataFrame({"name": names[:40], "x": np.arange(40.0)})
    assert TableEncoder(text="drop").fit(few).kinds_ == ["category", "number"]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((4, 2)) * 1j, "Complex data not supported"),
        ([[1.0, 2.0]] * 3 + [[1.0]], "must have rows of one length"),
    ],
)
def test_arrays_that_hold_no_cells_are_refused_at_every_door(X, message):
    for estimator in (TableEncoder(), LacunarClassifier(), Imputer()):
        with pytest.raises(ValueError, match=message):
            estimator.fit(X, [0, 1, 0, 1])


def test_a_record_batch_has_the_names_of_its_columns():
    batch = pa.RecordBatch.from_pydict({"a": [1.0, 2.0], "b": ["u", "v"]})
    encoder = TableEncoder().fit(batch)
    np.testing.assert_array_equal(encoder.transform(batch.select(["b", "a"])), [[1.0, 0.0], [2.0, 1.0]])
    assert encoder.get_feature_names_out().tolist() == ["a", "b_v"]


def test_numbers_with_and_without_a_unit_are_said():
    mixed = pd.DataFrame({"rate": ["12%", "7%", 0.35, "8%"]})
    with pytest.warns(UserWarning, match="'rate' has numbers with '%', and 1 number without"):
        encoder = TableEncoder().fit(mixed)
    np.testing.assert_array_equal(encoder.transform(mixed).ravel(), [12, 7, 0.35, 8])
