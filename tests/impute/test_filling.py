"""`Imputer`: the same kind of table, what is expected of each kind of column, and how well hidden entries come back."""

import datetime as dt
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pytest
from test_multiple import holes, mixed

from lacunar.impute import Imputer, MultipleImputer, imputer
from lacunar.persistence import load_model, save_model

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def fitted():
    frame = holes(mixed(), keep=["complete"])
    return frame, Imputer().fit(frame)


def test_a_frame_keeps_everything(fitted):
    frame, imputer = fitted
    table = imputer.transform(frame)
    assert not table.isna().any().any()
    pd.testing.assert_series_equal(table.dtypes, frame.dtypes)
    pd.testing.assert_index_equal(table.index, frame.index)
    pd.testing.assert_frame_equal(table.where(frame.notna()), frame.where(frame.notna()))
    for name in ("number", "float32", "whole", "day", "zone", "duration", "date"):
        seen = frame[name].dropna()
        assert table[name].min() >= seen.min()
        assert table[name].max() <= seen.max()
    assert "never" not in set(table["category"])
    assert (table["day"] == table["day"].dt.normalize()).all()
    pd.testing.assert_frame_equal(Imputer().fit_transform(frame), table)


def test_other_tables_keep_their_kind():
    pl = pytest.importorskip("polars")
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[::5, 1] = np.nan
    filled = Imputer().fit_transform(X)
    frame = pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(pl.col("b").fill_nan(None))
    for table in (frame, frame.to_arrow(), frame.to_arrow().to_batches()[0]):
        answer = Imputer().fit_transform(table)
        assert isinstance(answer, type(table))
        np.testing.assert_allclose(np.asarray(answer.to_pandas()), filled, rtol=1e-12)
    assert Imputer().fit_transform(X.astype(np.float32)).dtype == np.float32


def temporal():
    """A frame of polars with moments and durations in units that are not microseconds, times of day and decimals."""
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    hours = np.rint(2391.7 * rng.normal(size=24)).astype(int)
    ms, ns = pl.Series(hours * 3_600_000), pl.Series(hours * 3_600_000_000_000 + 7)
    frame = pl.DataFrame(
        {
            "z": hours / 2000,
            "decimal": [Decimal(f"{hour / 2000:.2f}") for hour in hours],
            "time": [dt.time(int(hour) % 24) for hour in hours],
            "ms": ms.cast(pl.Datetime("ms", "Europe/Berlin")),
            "ns": ns.cast(pl.Datetime("ns")),
            "duration": ms.cast(pl.Duration("ms")),
        }
    )
    gone = {name: pl.Series(rng.random(24) > 0.25) for name in frame.columns[1:]}
    return frame.with_columns(pl.when(seen).then(pl.col(name)).alias(name) for name, seen in gone.items())


@pytest.mark.parametrize("library", ["polars", "arrow", "pandas", "pandas of arrow"])
@pytest.mark.filterwarnings("ignore:columns give one another:UserWarning")
def test_moments_decimals_and_half_precision_stay_what_they_are(library):
    pa = pytest.importorskip("pyarrow")
    frame = temporal()
    table = {
        "polars": lambda: frame,
        "arrow": frame.to_arrow,
        "pandas": lambda: frame.to_pandas().assign(half=frame["z"].to_numpy().astype("f2")),
        "pandas of arrow": lambda: frame.to_arrow().to_pandas(types_mapper=pd.ArrowDtype),
    }[library]()
    if library == "pandas":
        table.loc[::4, "half"] = np.nan
    for filled in (Imputer().fit_transform(table), next(MultipleImputer(2, sweeps=2).fit(table).draws())):
        types = [list(t.schema.types if isinstance(t, pa.Table) else t.dtypes) for t in (filled, table)]
        assert types[0] == types[1]
        before, after = (t if isinstance(t, pd.DataFrame) else pa.table(t).to_pandas() for t in (table, filled))
        assert not after.isna().any().any()
        for name in before.columns[1:]:
            seen = before[name].notna()
            assert (after[name][seen] == before[name][seen]).all()
            assert {type(cell) for cell in after[name]} == {type(cell) for cell in after[name][seen]}
            low, high = before[name][seen].min(), before[name][seen].max()
            low = low - pd.Timedelta(1, "us") if name == "ns" else low  # filled in microseconds
            assert after[name][~seen].between(low, high).all()


def test_fit_transform_reads_its_table_once(monkeypatch):
    X, tables, read = np.array([[1.0, 2.0], [np.nan, 3.0], [2.0, 5.0], [3.0, np.nan]]), [], imputer.read_table
    monkeypatch.setattr(imputer, "read_table", lambda *args, **options: tables.append(args) or read(*args, **options))
    filled = Imputer().fit_transform(X)
    assert len(tables) == 1
    np.testing.assert_array_equal(Imputer().fit(X).transform(X), filled)
    assert len(tables) == 3


def test_names_and_frames_that_are_asked_for():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1.0, 2.0, None, 4.0], "b": ["u", None, "v", "u"]})
    imputer = Imputer().set_output(transform="pandas").fit(frame)
    assert list(imputer.get_feature_names_out()) == ["a", "b"]
    answer = imputer.transform(frame)
    assert isinstance(answer, pd.DataFrame)
    assert list(answer.columns) == ["a", "b"]
    assert isinstance(imputer.set_output(transform="polars").transform(frame.to_pandas()), pl.DataFrame)
    table = Imputer().set_output(transform="pandas").fit_transform(np.array([[1.0, 2.0], [np.nan, 3.0], [2.0, 5.0]]))
    assert list(table.columns) == ["x0", "x1"]


def test_what_is_expected():
    """A number from a line, a number from a curve, a level from a number: each by the model that knows it."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 500)
    frame = pd.DataFrame(
        {
            "x": x,
            "line": 2 * x + 0.1 * rng.normal(size=500),
            "curve": x**2 + 0.1 * rng.normal(size=500),
            "level": np.where(x > 0, "up", "down"),
        }
    )
    seen = holes(frame, 0.2, keep=["x"])
    imputer = Imputer().fit(seen)
    table = imputer.transform(seen)
    for name in ("line", "curve"):
        rows = seen[name].isna()
        assert np.sqrt(np.mean((table[name] - frame[name])[rows] ** 2)) < 0.25
    rows = seen["level"].isna()
    assert (table["level"] == frame["level"])[rows].mean() > 0.95
    report = imputer.imputed_.to_frame().set_index("column")
    assert [line.split()[0] for line in repr(imputer.imputed_).splitlines()] == [
        "column",
        "x",
        "line",
        "curve",
        "level",
    ]
    assert (report.loc[["line", "curve", "level"], "explained"] > 0.9).all()
    assert report.loc["curve", "forest_weight"] > 0.9
    assert report.loc["x", "missing"] == 0
    assert report.loc["level", "error"] < 0.1


def test_noise_is_said_to_be_noise():
    frame = holes(pd.DataFrame(np.random.default_rng(0).normal(size=(400, 3)), columns=list("abc")))
    assert np.max(Imputer().fit(frame).imputed_["explained"]) < 0.15


def test_probabilities(fitted):
    frame, imputer = fitted
    chances = imputer.probabilities(frame)
    table = imputer.transform(frame)
    assert set(chances) == {column.name for column in imputer.columns_ if column.levels}
    for column in imputer.columns_:
        if column.levels:
            shares = chances[column.name]
            np.testing.assert_allclose(shares.sum(axis=1), 1)
            known = frame[column.name].notna().to_numpy()
            assert set(shares[known].ravel().tolist()) == {0.0, 1.0}
            best = [str(column.levels[k]) for k in shares.argmax(axis=1)]
            assert best == [str(cell) for cell in table[column.name]]


def test_new_rows_and_files(fitted, tmp_path):
    frame, imputer = fitted
    new = frame.iloc[:9].drop(columns="number").assign(number=np.nan)[list(frame)[::-1]]
    table = imputer.transform(new)
    assert not table.isna().any().any()
    save_model(imputer, tmp_path / "m.lacunar")
    for other in (load_model(tmp_path / "m.lacunar"), pickle.loads(pickle.dumps(imputer))):
        pd.testing.assert_frame_equal(other.transform(new), table)


def test_two_processors_give_the_same(fitted):
    frame, imputer = fitted
    pd.testing.assert_frame_equal(Imputer(n_jobs=2).fit_transform(frame), imputer.transform(frame))


def test_many_columns():
    rng = np.random.default_rng(0)
    full = pd.DataFrame(rng.normal(size=(60, 3)) @ rng.normal(size=(3, 101)))
    seen = pd.concat([holes(full.iloc[:, :12], 0.1), full.iloc[:, 12:]], axis=1)
    table = Imputer().fit_transform(seen)
    assert np.sqrt(np.mean((table - full).to_numpy()[seen.isna()] ** 2)) < 0.5


def test_what_is_hard():
    frame = pd.DataFrame(
        {
            "a": [1.0, np.nan, 3.0],
            "b": ["u", None, "v"],
            "empty": [np.nan] * 3,
            "one": [None, 5.0, None],
            "same": [2.0, np.nan, 2.0],
        }
    )
    with pytest.warns(UserWarning, match="no entry is observed of empty"):
        table = Imputer().fit_transform(frame)
    assert table["empty"].isna().all()
    assert not table.drop(columns="empty").isna().any().any()
    assert table["one"].tolist() == [5.0] * 3
    assert table["same"].tolist() == [2.0] * 3
    with warnings.catch_warnings(action="error"):
        assert Imputer().fit_transform(pd.DataFrame({"a": [1.0, np.nan, 2.0, 6.0]}))["a"][1] == 3.0
        names = holes(pd.DataFrame({"name": [f"n{k}" for k in range(40)], "a": np.arange(40.0)}))
        assert not Imputer().fit_transform(names).isna().any().any()  # nearly as many levels as rows
    with pytest.raises(ValueError, match="row 1, column 'a'"):
        Imputer().fit(pd.DataFrame({"a": [1.0, np.inf]}))


def columns_of_rare_types(n=40):
    """Times of day, periods and a sparse column, each with gaps."""
    rng = np.random.default_rng(0)
    hours, others = rng.integers(0, 24, n), rng.integers(0, 9, n)
    times = [dt.time(int(hour), 30) if k % 6 else None for k, hour in enumerate(hours)]
    periods = pd.Series(pd.period_range("2020-01", periods=n, freq="M")).where(np.arange(n) % 5 > 0)
    sparse = pd.arrays.SparseArray(np.where(np.arange(n) % 4 == 0, np.nan, others))
    return pd.DataFrame({"x": hours + rng.normal(size=n), "time": times, "period": periods, "sparse": sparse})


def test_times_periods_and_sparse_columns_come_back_as_such():
    frame = columns_of_rare_types()
    for filled in (
        Imputer().fit_transform(frame),
        next(MultipleImputer(2, sweeps=1, method="norm").fit(frame).draws()),
    ):
        assert not filled.isna().any().any()
        pd.testing.assert_series_equal(filled.dtypes, frame.dtypes)
        assert set(map(type, filled["time"])) == {dt.time}
        seen = frame.notna()
        pd.testing.assert_frame_equal(filled.where(seen), frame.where(seen))


def test_times_of_arrow_and_polars_come_back_as_such():
    pl = pytest.importorskip("polars")
    frame = pl.from_pandas(columns_of_rare_types()[["x", "time"]])
    for table in (frame, frame.to_arrow()):
        filled = pl.from_arrow(Imputer().fit_transform(table)) if table is not frame else Imputer().fit_transform(table)
        assert filled.schema == frame.schema
        assert filled["time"].null_count() == 0
