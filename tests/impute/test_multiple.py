"""`MultipleImputer` at every door: kinds of columns and tables, the same draws however they are made, options, bad input."""

import datetime
import pickle
import threading
import warnings

import numpy as np
import pytest

from lacunar.impute import MultipleImputer, multiple
from lacunar.persistence import load_model, save_model

pd = pytest.importorskip("pandas")

quietly = pytest.mark.filterwarnings("ignore:.*sweeps have not settled|columns give one another")
pytestmark = quietly


def holes(frame, share=0.25, seed=1, keep=()):
    mask = np.random.default_rng(seed).random(frame.shape) < share
    mask[:, [frame.columns.get_loc(name) for name in keep]] = False
    return frame.mask(mask)


def mixed(n=100):
    """A column of every kind and type, none of them empty."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    level = np.array(["a", "b", "c"])[(rng.logistic(size=n) + x > np.array([[-1.0], [1.0]])).sum(axis=0)]
    days = pd.to_datetime("2020-03-01") + pd.to_timedelta((50 * x).astype(int), unit="D")
    plain = [datetime.date(2020, 1, 1) + datetime.timedelta(int(k)) for k in rng.integers(0, 99, n)]
    return pd.DataFrame(
        {
            "number": x + rng.normal(size=n),
            "float32": x.astype(np.float32) + rng.normal(size=n).astype(np.float32),
            "whole": pd.array(rng.poisson(3, n), dtype="Int64"),
            "complete": rng.integers(0, 5, n),
            "boolean": pd.array(x > rng.normal(size=n), dtype="boolean"),
            "truths": np.array((x > rng.normal(size=n)).tolist(), dtype=object),
            "category": pd.Categorical(level, categories=["c", "a", "b", "never"]),
            "numbered": pd.Categorical(rng.integers(1, 4, n)),
            "ordered": pd.Categorical(level, categories=["a", "b", "c"], ordered=True),
            "text": level.astype(object),
            "day": days,
            "zone": days.tz_localize("Europe/Berlin"),
            "duration": pd.to_timedelta(rng.integers(1, 9, n), unit="D"),
            "date": np.array(plain, dtype=object),
            "constant": 1.5,
        },
        index=[f"r{k}" for k in range(n)],
    )


@pytest.fixture(scope="module")
def fitted():
    frame = holes(mixed(), keep=["complete"])
    with warnings.catch_warnings(action="ignore"):
        return frame, MultipleImputer(3, sweeps=3, random_state=0).fit(frame)


def same(one, other):
    for a, b in zip(one, other, strict=True):
        pd.testing.assert_frame_equal(a, b)


def test_kinds(fitted):
    kinds = {column.name: column.kind for column in fitted[1].columns_}
    assert kinds == {
        "number": "number", "float32": "number", "whole": "whole", "complete": "whole", "boolean": "boolean", "truths": "boolean",
        "category": "levels", "numbered": "levels", "ordered": "ordered", "text": "levels", "day": "date", "zone": "date",
        "duration": "whole", "date": "date", "constant": "number",
    }  # fmt: skip


def test_frames_of_pandas_keep_everything(fitted):
    frame, imputer = fitted
    tables = list(imputer.draws())
    assert len(tables) == 3
    for table in tables:
        assert not table.isna().any().any()
        pd.testing.assert_series_equal(table.dtypes, frame.dtypes)
        pd.testing.assert_index_equal(table.index, frame.index)
        pd.testing.assert_frame_equal(table.where(frame.notna()), frame.where(frame.notna()))
        assert {type(cell) for cell in table["truths"]} == {bool}
        assert {type(cell) for cell in table["date"]} == {datetime.date}
        assert "never" not in set(table["category"])
        assert set(table["whole"]) <= set(frame["whole"].dropna())
    assert any((tables[0][name] != tables[1][name]).any() for name in frame)


def test_names_that_are_no_text_stay():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=[2020, 2021])
    frame.iloc[::5, 0] = np.nan
    table = next(MultipleImputer(2, sweeps=2).fit(frame).draws())
    assert list(table.columns) == [2020, 2021]
    assert not table.isna().any().any()


def test_frames_of_polars_and_arrow_keep_everything(fitted):
    pl = pytest.importorskip("polars")
    frame = pl.from_pandas(fitted[0].drop(columns=["truths", "date", "numbered"])).with_columns(
        enum=pl.Series([None, "v", "u", "v"] * 25, dtype=pl.Enum(["u", "v"]))
    )
    for table in MultipleImputer(2, sweeps=2).fit(frame).draws():
        assert table.schema == frame.schema
        assert sum(table.null_count().row(0)) == 0
    arrow = frame.to_arrow()
    imputer = MultipleImputer(2, sweeps=2).fit(arrow)
    ordered = arrow.schema.field("enum").type.ordered  # releases of polars differ
    assert {column.name: column.kind for column in imputer.columns_}["enum"] == ("ordered" if ordered else "levels")
    for table in imputer.draws():
        assert table.schema == arrow.schema
        assert sum(table.column(name).null_count for name in table.column_names) == 0


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, np.nan], [2.0, 2.5]]),
        np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, np.nan], [2.0, 2.5]], dtype=np.float32),
        np.array([[1, "a"], [None, "b"], [2, "a"], [3, None]], dtype=object),
        np.array([["a", "long"], ["", "b"], ["a", "b"]]),
        np.ma.masked_array([[1, 2], [3, 4], [5, 7]], [[0, 0], [0, 1], [0, 0]]),
        np.array([["2020-01-01"], ["NaT"], ["2021-05-05"]], dtype="datetime64[D]"),
    ],
    ids=lambda X: str(X.dtype),
)
def test_arrays_keep_their_type(X):
    for table in MultipleImputer(2, sweeps=2).fit(X).draws():
        assert type(table) is type(X)
        assert table.dtype == X.dtype
        assert not np.ma.getmaskarray(table).any()
        assert not any(cell is None or cell != cell or cell == "" for cell in table.ravel().tolist())


def test_small_tables_take_one_thread(monkeypatch):
    """Two threads took twice as long as one for a table of 2,000 x 20: they wait for the interpreter."""
    threads, X = set(), np.random.default_rng(0).normal(size=(1000, 20))
    X[::3, ::2] = np.nan
    run = multiple.run_chain
    monkeypatch.setattr(multiple, "run_chain", lambda *args: threads.add(threading.get_ident()) or run(*args))
    MultipleImputer(4, sweeps=1, n_jobs=2).fit(X)
    assert threads == {threading.get_ident()}
    monkeypatch.setattr(multiple, "_LEAST_SHARED", 21_000)
    MultipleImputer(4, sweeps=1, n_jobs=2).fit(X)
    assert len(threads) > 1


def test_the_draws_are_the_same_however_they_are_made(fitted, tmp_path, monkeypatch):
    frame, imputer = fitted
    known = list(imputer.draws())
    same(known, imputer.draws(frame.copy()))
    same(known, pickle.loads(pickle.dumps(imputer)).draws())
    monkeypatch.setattr(multiple, "_LEAST_SHARED", 0)
    more = MultipleImputer(5, sweeps=3, random_state=0, n_jobs=2).fit(frame)
    same(known, list(more.draws())[:3])
    save_model(imputer, tmp_path / "m.lacunar")
    loaded = load_model(tmp_path / "m.lacunar")
    same(known, loaded.draws(frame))
    with pytest.raises(ValueError, match="Pass the table"):
        loaded.draws()
    new = frame.iloc[:20].drop(columns="number").assign(number=np.nan)
    same(imputer.draws(new), loaded.draws(new))


def test_writing_into_the_frame_changes_no_draws(fitted):
    frame = fitted[0][["number", "text"]].copy()
    imputer = MultipleImputer(2, sweeps=2).fit(frame)
    known = list(imputer.draws())
    frame.iloc[:, 0] = 7.0
    same(known, imputer.draws())


def test_new_rows_follow_the_models_of_the_training_table():
    rng = np.random.default_rng(0)
    a = rng.normal(size=2000)
    frame = pd.DataFrame({"a": a, "b": 3 * a + rng.normal(size=2000), "c": np.where(a > 0, "up", "down")})
    imputer = MultipleImputer(40, sweeps=5, random_state=0).fit(frame)
    new = pd.DataFrame({"a": [np.nan, 1.0, np.nan], "b": [6.0, np.nan, -6.0], "c": [None, None, None]}, index=[7, 8, 9])
    tables = list(imputer.draws(new))
    for table in tables:
        assert list(table.index) == [7, 8, 9]
        assert not table.isna().any().any()
    a = np.array([table["a"] for table in tables])
    np.testing.assert_allclose(a.mean(axis=0), [1.8, 1.0, -1.8], atol=0.25)
    assert 0.15 < a[:, 0].std() < 0.6  # 1 / sqrt(10)
    b = np.array([table["b"] for table in tables])[:, 1]
    assert abs(b.mean() - 3) < 0.6
    assert 0.6 < b.std() < 1.5
    assert all(table["c"].tolist()[0] == "up" and table["c"].tolist()[2] == "down" for table in tables)


def test_levels_that_fit_never_saw_stay():
    frame = holes(pd.DataFrame({"a": np.arange(40.0), "c": ["u", "v"] * 20}))
    imputer = MultipleImputer(2, sweeps=2).fit(frame)
    new = pd.DataFrame({"a": [np.nan, 1.0], "c": ["w", None]})
    with pytest.warns(UserWarning, match="'w' of 'c'"):
        tables = list(imputer.draws(new))
    assert all(table["c"][0] == "w" and table["c"][1] in ("u", "v") for table in tables)
    assert not any(table.isna().any().any() for table in tables)


def test_an_absent_column_is_drawn():
    frame = holes(pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 7, "c": ["u", "v"] * 20}))
    imputer = MultipleImputer(2, sweeps=2).fit(frame)
    with pytest.warns(UserWarning, match="lacks columns of fit"):
        tables = list(imputer.draws(frame[["b"]].iloc[:5]))
    assert list(tables[0].columns) == ["a", "b", "c"]
    assert not tables[0].isna().any().any()
    with pytest.raises(ValueError, match="column 'a' must hold numbers"):
        list(imputer.draws(frame.iloc[:5].assign(a="x")))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("absent", [False, True])
def test_rows_that_show_nothing_of_a_column(library, absent):
    """Columns of nulls have the type of nothing, and those that are absent have none: they come back in one that holds their values."""
    rng = np.random.default_rng(0)
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, 40), unit="D")
    frame = pd.DataFrame({"a": rng.normal(size=40), "c": ["u", "v"] * 20, "b": [True, False] * 20, "d": days})
    imputer = MultipleImputer(2, sweeps=2).fit(frame)
    new = {"a": [0.5, 0.7]} | ({} if absent else {name: [None, None] for name in "cbd"})
    if library == "pandas":
        rows = pd.DataFrame(new, index=[5, 9])
    else:
        module = pytest.importorskip(library)
        rows = module.DataFrame(new) if library == "polars" else module.table(new)
    with warnings.catch_warnings(action="ignore"):
        table = next(imputer.draws(rows))
    assert type(table) is type(rows)
    table = table if library == "pandas" else table.to_pandas()
    assert list(table.columns) == ["a", "c", "b", "d"]
    assert table["a"].tolist() == [0.5, 0.7]
    assert set(table["c"]) <= {"u", "v"}
    assert set(table["b"].tolist()) <= {True, False}
    assert set(pd.to_datetime(table["d"])) <= set(days)
    assert library != "pandas" or list(table.index) == [5, 9]


# -- options ------------------------------------------------------------------------------------------------------------------


def pair(n=300):
    rng = np.random.default_rng(0)
    a = rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": a + 0.3 * rng.normal(size=n), "c": rng.normal(size=n)})


def test_columns_that_are_kept_missing_predict():
    frame = holes(pair())
    for table in MultipleImputer(2, keep_missing=["a"]).fit(frame).draws():
        pd.testing.assert_series_equal(table["a"], frame["a"])
        assert not table[["b", "c"]].isna().any().any()
        both = frame["b"].isna() & frame["a"].notna()
        assert np.corrcoef(table["b"][both], frame["a"][both])[0, 1] > 0.8


@pytest.mark.parametrize("options", [{"not_predictors": ["a"]}, {"predictors": {"b": ["c"]}}])
def test_columns_that_do_not_predict(options):
    frame = holes(pair(), keep=["a"])
    for table in MultipleImputer(2, **options).fit(frame).draws():
        rows = frame["b"].isna()
        assert abs(np.corrcoef(table["b"][rows], table["a"][rows])[0, 1]) < 0.3


def test_bounds():
    frame = holes(pair().assign(a=lambda t: t["a"].abs()))
    free = pd.concat(MultipleImputer(5, method="norm").fit(frame).draws())
    held = pd.concat(MultipleImputer(5, method="norm", bounds={"a": (0, 3.2)}).fit(frame).draws())
    assert free["a"].min() < 0 <= held["a"].min()
    assert held["a"].max() <= 3.2
    with pytest.raises(ValueError, match=r"bounds of column 'a' must hold .* in row \d+"):
        MultipleImputer(bounds={"a": (1, None)}).fit(frame)


def test_passive_columns_follow():
    full = pair().assign(s=lambda t: t["a"] + 2 * t["c"])
    frame = holes(full)
    with pytest.warns(UserWarning, match="give one another exactly: a, c, s"):
        MultipleImputer(2, sweeps=2).fit(frame)
    imputer = MultipleImputer(3, passive={"s": "a + 2 * c"}).fit(frame)
    for table in imputer.draws():
        rows = frame["s"].isna()
        np.testing.assert_allclose(table["s"][rows], (table["a"] + 2 * table["c"])[rows], atol=1e-12)
    new = frame.iloc[:9].assign(s=np.nan)
    for table in imputer.draws(new):
        np.testing.assert_allclose(table["s"], table["a"] + 2 * table["c"], atol=1e-12)
    empty = MultipleImputer(2, passive={"s": "a * c"}).fit(frame.assign(s=np.nan))
    assert all(np.allclose(table["s"], table["a"] * table["c"]) for table in empty.draws())


@pytest.mark.parametrize(
    "text", ["__import__('os')", "a +", "a.real", "a if c else b", "lambda: 0", "z", "s", "f(a)", "1"]
)
def test_formulas_run_no_code(text):
    frame = holes(pair().assign(s=0.0, t="x"))
    with pytest.raises(ValueError, match="passive must give"):
        MultipleImputer(passive={"s": text}).fit(frame)


def test_formulas_without_a_value_are_refused():
    frame = holes(pair().assign(s=1.0))
    with pytest.raises(ValueError, match="'s', 'log\\(a\\)', must give finite numbers"):
        MultipleImputer(passive={"s": "log(a)"}).fit(frame)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"predictors": {"z": ["a"]}}, "predictors must name columns"),
        ({"keep_missing": ["z"]}, "keep_missing must name"),
        ({"method": {"a": "ordered"}}, "method must be 'pmm' or 'norm' for column 'a'"),
        ({"method": {"t": "norm"}}, "method must be 'multinomial' or 'ordered'"),
        ({"bounds": {"t": (0, 1)}}, "bounds must name columns of numbers"),
        ({"sweeps": 0}, "sweeps"),
    ],
)
def test_options_that_do_not_fit(options, words):
    with pytest.raises(ValueError, match=words):
        MultipleImputer(**options).fit(pair().assign(t="x"))


def test_rows_of_weight_0_teach_nothing():
    frame = holes(pair())
    odd = frame.copy()
    odd.loc[200:, "b"] = 1000.0
    weight = np.r_[np.ones(200), np.zeros(100)]
    table = next(MultipleImputer(1).fit(odd, sample_weight=weight).draws())
    rows = odd["b"].isna()
    assert rows.any()
    assert table["b"][rows].max() < 10


def test_weights_weigh():
    """Two kinds of rows that say the opposite: the draws follow the heavy ones."""
    rng = np.random.default_rng(0)
    a, heavy = rng.normal(size=400), np.arange(400) % 2 == 0
    frame = pd.DataFrame({"a": a, "b": np.where(heavy, a, -a) * 2})
    frame.loc[:99, "b"] = np.nan
    table = next(MultipleImputer(1, method="norm").fit(frame, sample_weight=np.where(heavy, 100.0, 1.0)).draws())
    assert np.corrcoef(table["a"][:100], table["b"][:100])[0, 1] > 0.8


def test_shifts_of_what_is_drawn():
    frame = holes(pair().assign(n=lambda t: (3 * t["a"]).round()))
    imputer = MultipleImputer(2, sweeps=2).fit(frame)
    for plain, moved in zip(imputer.draws(), imputer.draws(delta={"a": 0.5, "n": -2}), strict=True):
        for name, shift in (("a", 0.5), ("n", -2.0), ("b", 0.0)):
            np.testing.assert_allclose(moved[name] - plain[name], shift * frame[name].isna())
    means = [imputer.analyse(lambda t: (t["a"].mean(), 0.01), delta={"a": d}).estimate[0] for d in (0.0, 1.0)]
    np.testing.assert_allclose(means[1] - means[0], frame["a"].isna().mean())
    for bad in ({"z": 1.0}, {"a": np.nan}, {"n": 0.5}):
        with pytest.raises(ValueError, match="delta must give"):
            imputer.draws(delta=bad)
    passive = MultipleImputer(2, sweeps=2, passive={"b": "a + 1"}).fit(frame)
    for name in ("a", "b"):
        with pytest.raises(ValueError, match="delta must leave out"):
            passive.draws(delta={name: 1.0})


# -- what is hard -------------------------------------------------------------------------------------------------------------


def no_gaps(frame, **options):
    tables = list(MultipleImputer(2, **options).fit(frame).draws())
    assert not any(table.isna().any().any() for table in tables)
    return tables


def test_more_columns_than_rows():
    no_gaps(holes(pd.DataFrame(np.random.default_rng(0).normal(size=(25, 60)))), sweeps=2)


def test_columns_and_levels_that_are_hardly_there():
    x = np.arange(60.0)
    frame = pd.DataFrame(
        {"x": x, "rare": ["once"] + ["s", "t"] * 29 + ["s"], "constant": "k", "two": np.nan, "pair": None}
    )
    frame["pair"] = frame["pair"].astype(object)
    frame.loc[[3, 9], "two"] = [1.0, 2.0]
    frame.loc[[3, 9], "pair"] = ["u", "v"]
    frame.loc[::7, ["rare", "constant"]] = None
    for table in no_gaps(frame):
        assert set(table["constant"]) == {"k"}
        assert set(table["pair"]) == {"u", "v"}


def test_a_level_follows_exactly_from_a_number():
    x = np.random.default_rng(0).normal(size=200)
    frame = holes(pd.DataFrame({"x": x, "b": pd.array(x > 0, dtype="boolean"), "c": np.where(x > 0.5, "u", "v")}))
    rows = frame["b"].isna() & (frame["x"].abs() > 1)
    for table in no_gaps(frame):
        assert (table["b"][rows] == (frame["x"][rows] > 0)).mean() > 0.9


def test_one_row_and_one_column():
    with pytest.warns(UserWarning, match="no entry is observed of b: left missing"):
        table = next(MultipleImputer(1).fit(pd.DataFrame({"a": [1.0], "b": [np.nan]})).draws())
    assert table["a"][0] == 1.0
    assert np.isnan(table["b"][0])
    no_gaps(holes(pd.DataFrame({"a": np.arange(30.0)})))


def test_text_of_many_levels_is_left():
    frame = holes(pd.DataFrame({"id": [f"n{k}" for k in range(99)], "a": np.arange(99.0)}))
    with pytest.warns(UserWarning, match="identifiers or free text: id"):
        table = next(MultipleImputer(1).fit(frame).draws())
    pd.testing.assert_series_equal(table["id"], frame["id"])
    assert not table["a"].isna().any()


@pytest.mark.parametrize("levels", [12, 40])
def test_many_levels(levels):
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    c = np.array([f"l{k:02}" for k in np.clip((x * 2 + levels / 2).astype(int), 0, levels - 1)])
    frame = holes(pd.DataFrame({"x": x, "c": c}), keep=["x"])
    tables = no_gaps(frame, sweeps=3)
    rows = frame["c"].isna()
    distance = [abs(int(a[1:]) - int(b[1:])) for a, b in zip(tables[0]["c"][rows], c[rows], strict=True)]
    assert np.mean(distance) < 2.2


@pytest.mark.filterwarnings("default")
def test_what_is_said_of_a_fit():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1)) + 0.05 * rng.normal(size=(200, 4))
    frame = holes(pd.DataFrame(x, columns=list("abcd")), 0.6)
    with pytest.warns(UserWarning, match="6 sweeps have not settled for"):
        MultipleImputer(20, sweeps=6).fit(frame)
    with warnings.catch_warnings(action="error"):
        loose = pair().assign(b=lambda t: t["a"] + rng.normal(size=300))
        for seed in range(3):
            MultipleImputer(20, random_state=seed).fit(holes(loose))


def test_infinite_numbers_are_refused():
    with pytest.raises(ValueError, match="row 3, column 'a'"):
        MultipleImputer().fit(pair().assign(a=lambda t: t["a"].where(t.index != 3, np.inf)))


def test_matching_keeps_correlations_where_half_is_missing():
    """Five columns of correlation .8: tables that are matched have the correlations of tables that are drawn from normal residuals."""
    rng, above = np.random.default_rng(1), np.triu_indices(5, 1)
    sizes = {"pmm": [], "norm": []}
    for seed in range(15):
        Z = rng.multivariate_normal(np.zeros(5), 0.8 + 0.2 * np.eye(5), size=200)
        Z[rng.random(Z.shape) < 0.5] = np.nan
        for method, means in sizes.items():
            tables = MultipleImputer(2, method=method, random_state=seed).fit(Z).draws()
            means.append(np.mean([np.corrcoef(table.T)[above].mean() for table in tables]))
    assert abs(np.mean(sizes["pmm"]) - np.mean(sizes["norm"])) < 0.007


def test_coverage():
    """Intervals of a regression on tables with a third of two columns missing at random: 95 of 100, give or take chance."""
    beta, hits = np.array([1.0, -1.0, 0.5]), []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.multivariate_normal(np.zeros(2), [[1, 0.5], [0.5, 1]], size=150)
        y = beta[0] + X @ beta[1:] + rng.normal(size=150)
        Z = np.column_stack([X, y])
        Z[rng.random(150) < 1 / (1 + np.exp(1 - y)), 1] = np.nan

        def analysis(table):
            A = np.column_stack([np.ones(150), table[:, :2]])
            inverse = np.linalg.inv(A.T @ A)
            coef = inverse @ A.T @ table[:, 2]
            return coef, inverse * np.sum((table[:, 2] - A @ coef) ** 2) / 147, 147

        with warnings.catch_warnings(action="ignore"):
            ends = MultipleImputer(10, sweeps=5, random_state=seed).fit(Z).analyse(analysis).conf_int()
        hits.append((ends[:, 0] <= beta) & (beta <= ends[:, 1]))
    assert np.mean(hits) > 0.89
    assert np.mean(hits) < 0.995
