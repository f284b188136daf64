"""Tables of rare types, new rows in other types than those of `fit`, and parameters that make no sense: an answer or an error that says why."""

import datetime as dt
import warnings

import numpy as np
import pytest

from lacunar.impute import Imputer, MultipleImputer

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


def beside(cells, n=24):
    """A frame of a number and of a column of these cells, again and again."""
    number = np.random.default_rng(0).normal(size=n)
    if isinstance(cells, pl.Series):
        return pl.DataFrame({"x": number, "c": pl.concat([cells] * (n // len(cells)))})
    if isinstance(cells, pa.Array):
        return pa.table({"x": number, "c": pa.chunked_array([cells] * (n // len(cells)))})
    return pd.DataFrame({"x": number, "c": pd.concat([pd.Series(cells)] * (n // len(cells)), ignore_index=True)})


def one_draw(frame, **options):
    return next(MultipleImputer(2, sweeps=1, **options).fit(frame).draws())


def cells_of(table):
    column = table["c"]
    return column.to_pylist() if isinstance(table, pa.Table) else column.to_list()


@pytest.mark.parametrize(
    "cells",
    [
        pd.arrays.IntervalArray.from_tuples([(0, 1), (1, 2), None]),
        pd.array([2**64 - 1, 1, None], dtype="UInt64"),
        pl.Series([2**100, 1, None], dtype=pl.Int128),
        pd.Series([b"x", b"y", None], dtype=object),
        pd.Series([1.5, dt.date(2020, 1, 1), None], dtype=object),
        pa.array(["x", "y", None], pa.string_view()),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["x", "y", None])),
    ],
    ids=["intervals", "uint64", "int128", "bytes", "mixed", "views", "null level"],
)
def test_filled_cells_are_some_of_the_column(cells):
    frame = beside(cells)
    table = one_draw(frame)
    assert type(table) is type(frame)
    before, after = cells_of(frame), cells_of(table)
    assert set(after) == set(before[:2])
    assert {type(cell) for cell in after} == {type(cell) for cell in before[:2]}


@pytest.mark.parametrize("method", ["norm", "once"])
@pytest.mark.filterwarnings("ignore:columns give one another:UserWarning")
def test_filled_numbers_have_the_decimals_of_their_column(method):
    cents = pd.Series([12.5, 13.25, np.nan, 7.1, 8.11, 9.0])
    frame = beside(cents).assign(single=lambda t: t["c"].astype("f4"), real=lambda t: t["c"] / 3)
    filled = Imputer().fit_transform(frame) if method == "once" else one_draw(frame, method=method)
    rows = frame["c"].isna()
    assert (filled["c"] == filled["c"].round(2)).all()
    assert (filled["single"] == filled["single"].astype("f8").round(2).astype("f4")).all()
    assert (filled["real"] != filled["real"].round(4))[rows].any()
    assert set(filled["c"][rows]) - set(cents)


@pytest.mark.parametrize("unit", ["D", "h", "min", "s", "ms"])
def test_filled_moments_have_the_unit_of_their_column(unit):
    steps = pd.Series(np.random.default_rng(0).integers(1, 900, 24)).mask(np.arange(24) % 4 == 0)
    frame = beside(pd.Timestamp("2020-01-01") + pd.to_timedelta(steps, unit=unit))
    filled = Imputer().fit_transform(frame)["c"]
    assert (filled == filled.dt.floor(unit)).all()


def test_whole_numbers_stay_within_their_type():
    frame = beside(pd.array([0, 1, 250, None], dtype="UInt8"), n=40)
    table = one_draw(frame, method="norm")
    assert table["c"].dtype == "UInt8"
    assert not table["c"].isna().any()


LEVELS = beside(pd.Series(["x", "y", "z", None], dtype=object))
SIZES = beside(pd.Categorical([10, 20, 30, None]))
ORDERED = beside(pd.Categorical(["low", "middle", "high", None], ["low", "middle", "high"], ordered=True))


@pytest.mark.parametrize(
    ("frame", "cells"),
    [
        (LEVELS, pd.Categorical(["y"] + [None] * 11)),
        (LEVELS, pl.Series(["y"] + [None] * 11, dtype=pl.Enum(["y"]))),
        (ORDERED, pd.Categorical(["high"] + [None] * 11, ["high"], ordered=True)),
        (SIZES, pd.Categorical([20] + [None] * 11)),
        (SIZES, pd.array([20] + [None] * 11, dtype="Int64")),
        (SIZES, pl.Series([20] + [None] * 11)),
    ],
    ids=["levels", "polars", "ordered", "numbered", "numbers", "polars numbers"],
)
def test_new_rows_whose_type_lacks_levels_get_them(frame, cells):
    """Batches that were made categories by themselves, and levels that are numbers there."""
    new, levels = beside(cells, n=12), set(frame["c"].dropna())
    for table in MultipleImputer(8, sweeps=1).fit(frame).draws(new):
        assert set(cells_of(table)) <= levels
    table = Imputer().fit(frame).transform(new)
    assert set(cells_of(table)) <= levels
    if frame is ORDERED:
        assert list(table["c"].cat.categories) == ["low", "middle", "high"]


@pytest.mark.parametrize(
    ("frame", "cells", "words"),
    [
        (LEVELS, [1, None], "column 'c' must hold levels, as in fit, x, y, z; got a column of numbers"),
        (beside([True, False, None]), ["yes", None], "column 'c' must hold booleans, as in fit; got 'yes' in row 0"),
        (beside([True, False, None]), [2.0, None], "column 'c' must hold booleans, as in fit; got .* in row 0"),
    ],
    ids=["levels", "text", "two"],
)
@pytest.mark.filterwarnings("ignore:X has levels that fit never saw")
def test_new_rows_of_another_kind_are_refused(frame, cells, words):
    for table in (pd.DataFrame({"x": [0.0, 1.0], "c": cells}), pl.DataFrame({"x": [0.0, 1.0], "c": cells})):
        with pytest.raises(ValueError, match=words):
            Imputer().fit(frame).transform(table)


@pytest.mark.parametrize(
    "library", [pd.Series, lambda cells: pl.Series(cells).cast(pl.Datetime("ms"))], ids=["pandas", "polars"]
)
@pytest.mark.parametrize("year", [1200, 9999, 0, 10_000], ids=str)
def test_years_far_from_ours_are_filled_or_refused(library, year):
    dates = np.datetime64(f"{year:04}-01-01", "ms") + np.arange(12) * np.timedelta64(1, "D")
    dates[5] = np.datetime64("NaT")
    frame = (pd.DataFrame if library is pd.Series else pl.DataFrame)({"d": library(dates), "x": np.arange(12.0)})
    if 1 <= year <= 9999:
        assert Imputer().fit_transform(frame)["d"][5].year == year
        return
    with pytest.raises(ValueError, match=r"years 1 to 9999; got .* in row 0, column 'd'. Make numbers"):
        Imputer().fit(frame)


@pytest.mark.parametrize("library", [pd, pl])
def test_durations_that_python_has_not_are_refused(library):
    days = np.array([1.5e9, 2e9, np.nan, 1e9] * 5)
    durations = (86_400e3 * np.nan_to_num(days)).astype("timedelta64[ms]")
    durations[np.isnan(days)] = np.timedelta64("NaT")
    frame = library.DataFrame({"d": library.Series(durations), "x": np.arange(20.0)})
    with pytest.raises(ValueError, match=r"at most 999999999 days.* for column 'd'. Make numbers"):
        Imputer().fit_transform(frame)


NUMBERS = pd.DataFrame({"a": [1.5, np.nan, 2.25, 4.0] * 6, "b": np.arange(24.0), "c": [np.nan, 1.0, 2.5] * 8})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bounds": {"a": (5, -5)}}, r"bounds must give each column a pair .*got \(5, -5\) for 'a'"),
        ({"bounds": {"a": (np.nan, 5)}}, "bounds must give each column a pair"),
        ({"bounds": {"a": (5,)}}, "bounds must give each column a pair"),
        ({"bounds": {"a": "xy"}}, "bounds must give each column a pair"),
        ({"bounds": {"a": None}}, "bounds must give each column a pair"),
        ({"predictors": {"a": "bc"}}, "predictors must give each column a list of columns; got 'bc' for 'a'"),
        ({"predictors": {"a": None}}, "predictors must give each column a list"),
        ({"passive": {"a": "b + 1", "b": "a - 1"}}, "'b' is none of them"),
        ({"passive": {"c": "a + zz"}}, "'a \\+ zz' for 'c': 'zz' is none of them"),
        ({"passive": {"c": "-" * 5000 + "a"}}, "nested too deeply"),
        ({"passive": {"c": "a + " + "9" * 400}}, "is none of them. Columns of numbers: a, b"),
        ({"passive": {"c": "a + 9**9**9**9"}}, "must give finite numbers; got inf"),
        ({"passive": {"c": "a + 1 / 0"}}, "must give finite numbers; got inf"),
    ],
)
def test_parameters_that_make_no_sense(options, words):
    with pytest.raises(ValueError, match=words):
        MultipleImputer(2, sweeps=1, **options).fit(NUMBERS)


@pytest.mark.parametrize(("delta", "error"), [({"a": "x"}, ValueError), ({"a": None}, ValueError), ([1.0], TypeError)])
def test_shifts_that_are_none(delta, error):
    with pytest.raises(error, match="delta must"):
        MultipleImputer(2, sweeps=1).fit(NUMBERS).draws(delta=delta)


def test_a_column_whose_rows_weigh_nothing_stays_missing():
    imputer = MultipleImputer(2, sweeps=1)
    with pytest.warns(UserWarning, match="no row of a weight above 0 has an entry of a: left missing"):
        imputer.fit(NUMBERS, sample_weight=NUMBERS["a"].isna() * 1.0)
    assert next(imputer.draws()).isna().sum().to_dict() == {"a": 6, "b": 0, "c": 0}


def test_columns_are_named_by_tuples():
    frame = NUMBERS.set_axis(pd.MultiIndex.from_tuples([("a", 1), ("b", 2), ("c", 3)]), axis=1)
    table = one_draw(frame, keep_missing=[("a", 1)], bounds={("c", 3): (0, 9)}, predictors={("c", 3): [("b", 2)]})
    assert list(table.columns) == list(frame.columns)
    assert table.isna().sum().tolist() == [6, 0, 0]


def test_a_reader_who_stops_early_spoils_nothing():
    imputer = MultipleImputer(3, sweeps=1).fit(NUMBERS)
    draws = imputer.draws()
    first = next(draws)
    draws.close()

    def interrupted(table):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        imputer.analyse(interrupted)
    pd.testing.assert_frame_equal(next(imputer.draws()), first)
    running = imputer.draws()
    next(running)
    imputer.set_params(n_imputations=2).fit(NUMBERS[["a", "b"]])
    assert [table.shape for table in running] == [(24, 3), (24, 3)]


def test_errors_of_an_analysis_say_from_which_table_they_came():
    imputer = MultipleImputer(3, sweeps=1).fit(NUMBERS)
    tables = iter(range(3))

    def analysis(table):
        if next(tables) == 1:
            raise np.linalg.LinAlgError("Singular matrix")
        return 1.0, 0.04

    with pytest.raises(np.linalg.LinAlgError, match="Singular") as caught:
        imputer.analyse(analysis)
    assert caught.value.__notes__ == ["The analysis of imputed table 1 raised this."]
    with pytest.raises(TypeError, match="analysis must be a function of a completed table; got 'mean'"):
        imputer.analyse("mean")
    with warnings.catch_warnings(action="ignore"):
        assert imputer.analyse(lambda table: table.mean()).names == ["a", "b", "c"]


def test_cells_under_a_hard_mask_are_filled():
    numbers = NUMBERS.to_numpy()
    masked = np.ma.masked_array(np.nan_to_num(numbers, nan=9.0), np.isnan(numbers), hard_mask=True)
    filled = Imputer(random_state=0).fit_transform(masked)
    np.testing.assert_array_equal(np.ma.getdata(filled), Imputer(random_state=0).fit_transform(numbers))
    assert not np.ma.is_masked(filled)


def test_arrow_columns_keep_numbers_as_levels_and_truths():
    levels = beside(pa.array([1.5, 2.0, None, 2.0]).dictionary_encode())
    filled = Imputer(random_state=0).fit_transform(levels)
    assert filled.schema == levels.schema
    assert set(cells_of(filled)) == {1.5, 2.0}
    numbers = Imputer(random_state=0).fit(beside([1.0, 0.0, 1.0, None]))
    truths = numbers.transform(beside(pa.array([True, False, None])))
    assert set(cells_of(truths)) == {True, False}


def test_the_training_table_is_known_without_its_negative_zeros():
    frame = NUMBERS.assign(a=[-0.0, *NUMBERS["a"][1:]])
    imputer = MultipleImputer(2, sweeps=1).fit(frame)
    again = next(imputer.draws(frame.assign(a=[0.0, *NUMBERS["a"][1:]])))
    pd.testing.assert_frame_equal(again, next(imputer.draws()))
