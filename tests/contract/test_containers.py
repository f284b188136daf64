"""One table of container x type of column x class: every cell answers as for the array of float64 with NaN, or is refused with words.

A container, a type or a class is one line more. A cell that is refused raises a TypeError or ValueError that names the argument and a
remedy; none gives another answer.
"""

import datetime
import functools
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from test_doors import ESTIMATORS, estimator_of

from lacunar import KarmaClassifier, KarmaRegressor, LacunarClassifier, LacunarRegressor, Observed
from lacunar.completion import Features, Graph, OnlineMatrixClassifier
from lacunar.encode import TableEncoder
from lacunar.kernels import karma_kernel
from lacunar.lowrank import GaussianRegressor, LowRankImputer
from lacunar.observed import read_batches
from lacunar.plotting import MissingnessDisplay
from lacunar.uncertainty import MaskConformalRegressor, missingness_report, value_of_measuring

pytestmark = pytest.mark.filterwarnings("ignore")  # of convergence, and of names where the array has none
NAMES = ["x0", "x1", "x2"]

# -- types of columns: what a cell of a number v, or of one that is missing, is ------------------------------------------


def with_gaps(X, cell, missing):
    """The table as lists of columns of cells."""
    return [[missing if np.isnan(v) else cell(v) for v in column] for column in X.T]


def day(v):
    return datetime.date(2020, 1, 1) + datetime.timedelta(int(v))


TYPES = {
    "float": float,
    "int": int,
    "bool": lambda v: v > 0,
    "Decimal": lambda v: Decimal(repr(float(v))),
    "text of numbers": lambda v: repr(float(v)),
    "bytes of numbers": lambda v: repr(float(v)).encode(),
    "date": day,
    "datetime": lambda v: datetime.datetime(2020, 1, 1) + datetime.timedelta(int(v)),
    "duration": lambda v: datetime.timedelta(int(v)),
}
REFUSED = {"date", "datetime", "duration"}  # by whatever wants numbers


# -- containers: made of lists of columns of Python's cells, None where missing ------------------------------------------


def array_of_objects(columns, missing=None):
    table = np.empty((len(columns[0]), len(columns)), dtype=object)
    for j, column in enumerate(columns):
        table[:, j] = [missing if cell is None else cell for cell in column]
    return table


def array(columns):
    """An array of the type that NumPy has for the cells; floats where one is missing."""
    first = next(cell for cell in columns[0] if cell is not None)
    if isinstance(first, datetime.date):
        return array_of_objects(columns).astype("M8[s]")
    if isinstance(first, datetime.timedelta):
        return array_of_objects(columns).astype("m8[s]")
    complete = not any(cell is None for column in columns for cell in column)
    if isinstance(first, str | bytes | Decimal) or not complete:
        return array_of_objects(columns, np.nan)
    return np.array(columns).T


def masked(columns):
    mask = np.array([[cell is None for cell in column] for column in columns]).T
    first = next(cell for cell in columns[0] if cell is not None)
    filled = array([[first if cell is None else cell for cell in column] for column in columns])
    return np.ma.masked_array(filled, mask)


def pandas(columns, dtype=None):
    return pd.DataFrame({name: pd.Series(column, dtype=dtype) for name, column in zip(NAMES, columns, strict=True)})


def pandas_nullable(columns):
    return pandas(columns, object).convert_dtypes()


def arrow_columns(columns):
    return {name: pa.array(column) for name, column in zip(NAMES, columns, strict=True)}


def pandas_of_arrow(columns):
    return pd.DataFrame(
        {
            name: pd.Series(pd.array(column, pd.ArrowDtype(column.type)))
            for name, column in arrow_columns(columns).items()
        }
    )


def pandas_of_dictionaries(columns):
    return pd.DataFrame(
        {
            name: pd.array(column.dictionary_encode(), pd.ArrowDtype(column.dictionary_encode().type))
            for name, column in arrow_columns(columns).items()
        }
    )


def pandas_sparse(columns, fill):
    """Sparse columns of floats, whose zeros, or whose gaps, are not stored."""
    values = [[np.nan if cell is None else cell for cell in column] for column in columns]
    if not all(isinstance(cell, int | float | bool) for column in values for cell in column):
        pytest.skip("pandas has sparse columns of numbers only")
    return pd.DataFrame(
        {
            name: pd.arrays.SparseArray(np.array(column, float), fill_value=fill)
            for name, column in zip(NAMES, values, strict=True)
        }
    )


def encoded(columns, nulls="mask"):
    return pa.table({name: column.dictionary_encode(nulls) for name, column in arrow_columns(columns).items()})


def runs(columns):
    import pyarrow.compute as pc

    return pa.table({name: pc.run_end_encode(column) for name, column in arrow_columns(columns).items()})


def chunked(columns):
    return pa.concat_tables([pa.table(arrow_columns(columns)).slice(0, 7), pa.table(arrow_columns(columns)).slice(7)])


def polars(columns):
    return pl.DataFrame(dict(zip(NAMES, columns, strict=True)))


def narwhals(columns):
    import narwhals as nw

    return nw.from_native(polars(columns))


CONTAINERS = {
    "array": array,
    "array of objects": array_of_objects,
    "array of objects with NaN": lambda columns: array_of_objects(columns, np.nan),
    "array of objects with NA": lambda columns: array_of_objects(columns, pd.NA),
    "array of objects with NaT": lambda columns: array_of_objects(columns, pd.NaT),
    "array of objects with NumPy's NaT": lambda columns: array_of_objects(columns, np.timedelta64("NaT")),
    "masked array": masked,
    "lists": lambda columns: [list(row) for row in zip(*columns, strict=True)],
    "pandas": pandas,
    "pandas, objects": lambda columns: pandas(columns, object),
    "pandas, category": lambda columns: pandas(columns, "category"),
    "pandas, nullable": pandas_nullable,
    "pandas of Arrow": pandas_of_arrow,
    "pandas of dictionaries": pandas_of_dictionaries,
    "pandas, sparse": lambda columns: pandas_sparse(columns, 0.0),
    "pandas, sparse gaps": lambda columns: pandas_sparse(columns, np.nan),
    "polars": polars,
    "narwhals": narwhals,
    "Arrow": lambda columns: pa.table(arrow_columns(columns)),
    "Arrow, record batch": lambda columns: pa.RecordBatch.from_pydict(arrow_columns(columns)),
    "Arrow, chunks": chunked,
    "Arrow, slice": lambda columns: pa.table(arrow_columns([[None, *column] for column in columns])).slice(1),
    "Arrow, dictionary": encoded,
    "Arrow, null in the dictionary": lambda columns: encoded(columns, "encode"),
    "Arrow, runs": runs,
}
GAPS = ("complete", "gaps", "an empty column")


@functools.cache
def numbers(kind, gaps):
    """Cells that every type holds exactly: whole numbers, some of them 0."""
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 4, size=(40, 3)).astype(float)
    if gaps != "complete":
        X[rng.random(X.shape) < 0.3] = np.nan
    if gaps == "an empty column":
        X[:, 1] = np.nan
    return X


@functools.cache
def plain(kind, gaps):
    """The array of float64 with NaN that the cells mean."""
    X = numbers(kind, gaps)
    return np.where(np.isnan(X), np.nan, X > 0) if kind == "bool" else X


def table_of(container, kind, gaps):
    columns = with_gaps(numbers(kind, gaps), TYPES[kind], None)
    try:
        return CONTAINERS[container](columns)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, StopIteration) as error:
        pytest.skip(f"no such table: {error}")


def is_clear(error):
    """Argument, wish, what came and remedy: a sentence on what must be, and one more."""
    text = str(error)
    return " must " in text and text.count(". ") >= 1


# -- the reading itself: every container and type -----------------------------------------------------------------------

READERS = {
    "from_dense": lambda X: Observed.from_dense(X).to_dense(),
    "from_frame": lambda X: Observed.from_frame(X).to_dense(),
    "an estimator": lambda X: estimator_reads(X),
    "read_batches": lambda X: np.vstack([rows.to_dense() for rows, _ in read_batches(X, size=11)]),
}
# What a reader does not take at all, whatever it holds.
TAKES = {
    "from_frame": lambda container: container.startswith(("pandas", "polars", "narwhals", "Arrow")),
    "read_batches": lambda container: container.startswith("Arrow"),
}


def estimator_reads(X):
    from lacunar.observed.door import validate_X

    return validate_X(GaussianRegressor(), X, reset=True).to_dense()


@pytest.mark.parametrize(
    ("reader", "container"), [(r, c) for r in READERS for c in CONTAINERS if TAKES.get(r, bool)(c)]
)
def test_every_container_reads_as_the_array(reader, container):
    for kind, gaps in product(TYPES, GAPS):
        try:
            table = table_of(container, kind, gaps)
        except pytest.skip.Exception:  # no such table
            continue
        if kind in REFUSED:
            with pytest.raises((TypeError, ValueError)) as caught:
                READERS[reader](table)
            assert is_clear(caught.value), (kind, gaps, caught.value)
        else:
            np.testing.assert_array_equal(READERS[reader](table), plain(kind, gaps), err_msg=f"{kind}, {gaps}")


# -- classes: those that any table may reach, and every container once --------------------------------------------------


@functools.cache
def fitted(name):
    X = plain("float", "gaps")
    with np.errstate(all="ignore"):
        y = np.nan_to_num(X[:, 0]) + 0.1 * np.arange(len(X))
        return estimator_of(name).fit(
            pandas(list(X.T)), np.where(y > 1, "high", "low") if is_classifier(ESTIMATORS[name]()) else y
        )


def answer(model, table):
    ask = next(getattr(model, verb) for verb in ("predict", "transform") if hasattr(model, verb))
    found = ask(table)
    return found.toarray() if sp.issparse(found) else np.asarray(found)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_class_answers_as_for_the_array(name):
    model, wanted = fitted(name), answer(fitted(name), plain("float", "gaps"))
    for container in CONTAINERS:
        table = table_of(container, "float", "gaps")
        if name == "MaskConformalClassifier" or name == "MaskConformalRegressor":
            # A pandas frame of other columns than of numbers goes to the estimator as it is.
            table = table if not container.startswith("pandas") else pandas(list(plain("float", "gaps").T))
        np.testing.assert_array_equal(answer(model, table), wanted, err_msg=container)


# -- labels and targets -------------------------------------------------------------------------------------------------

SERIES = {
    "list": list,
    "tuple": tuple,
    "array": lambda y: np.array(y, dtype=object) if None in y else np.array(y),
    "pandas": pd.Series,
    "pandas, objects": lambda y: pd.Series(y, dtype=object),
    "pandas, nullable": lambda y: pd.Series(y, dtype=object).convert_dtypes(),
    "pandas, category": lambda y: pd.Series(y, dtype="category"),
    "pandas of Arrow": lambda y: pd.Series(pd.array(pa.array(y), pd.ArrowDtype(pa.array(y).type))),
    "pandas index": pd.Index,
    "polars": pl.Series,
    "Arrow": pa.array,
    "Arrow, chunks": lambda y: pa.chunked_array([y[:7], y[7:]]),
    "Arrow, dictionary": lambda y: pa.array(y).dictionary_encode(),
    "frame of pandas": lambda y: pd.DataFrame({"y": y}),
    "frame of polars": lambda y: pl.DataFrame({"y": y}),
    "frame of Arrow": lambda y: pa.table({"y": y}),
}
TARGETS = {"text": ["a", "b"] * 20, "floats": [0.5, 2.0] * 20, "ints": [3, 4] * 20}


@pytest.mark.parametrize("kind", TARGETS)
def test_targets_in_every_container(kind):
    X, y = plain("float", "gaps"), TARGETS[kind]
    models = [KarmaClassifier(), LacunarClassifier(members=["logistic"], cv=2)] if kind != "floats" else []
    models += [KarmaRegressor(), GaussianRegressor(max_iter=3)] if kind != "text" else []
    for model in models:
        here = model.fit(X, np.array(y)).predict(X).tolist()
        for container, series in SERIES.items():
            # A frame of one column asks for one column of predictions where a model has several.
            assert model.fit(X, series(y)).predict(X).ravel().tolist() == here, container


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, np.ma.masked], ids=str)
@pytest.mark.parametrize("container", SERIES)
@pytest.mark.parametrize("kind", TARGETS)
def test_a_missing_target_is_no_class(kind, container, missing):
    X, y = plain("float", "gaps"), [*TARGETS[kind][:-1], missing]
    try:
        target = SERIES[container](y)
    except Exception as error:
        pytest.skip(f"no such series: {error}")
    if container == "array" and target.dtype.kind == "U":
        pytest.skip("the array holds the text 'nan'")
    for model in (KarmaClassifier(), KarmaRegressor()):
        with pytest.raises((TypeError, ValueError), match=r"y (contains NaN|must (hold|be))"):
            model.fit(X, target)


@pytest.mark.parametrize("container", SERIES)
@pytest.mark.parametrize("model", [KarmaClassifier(), LacunarClassifier(members=["logistic"], cv=2)], ids=repr)
def test_labels_that_end_in_nul_are_refused(model, container):
    if container == "array":
        pytest.skip("an array of text has dropped it")
    with pytest.raises(ValueError, match=r"y must hold labels that do not end in the character NUL.*in row 0"):
        model.fit(plain("float", "gaps"), SERIES[container](["a\0", "a"] * 20))


@pytest.mark.parametrize("container", ["list", "tuple", "pandas, objects"])
def test_labels_of_several_kinds_are_refused(container):
    for labels in (["a", 1] * 20, ["1", 1.0] * 20):
        with pytest.raises(TypeError, match="y must hold labels of one kind; got strings and others"):
            KarmaClassifier().fit(plain("float", "gaps"), SERIES[container](labels))


@pytest.mark.parametrize("container", SERIES)
@pytest.mark.parametrize(
    "model",
    [KarmaRegressor(), GaussianRegressor(), LacunarRegressor(), MaskConformalRegressor(GaussianRegressor())],
    ids=repr,
)
def test_text_in_a_regressor_is_named(model, container):
    with pytest.raises(ValueError, match=r"y must hold numbers; got 'a' in row 0.*use a classifier"):
        model.fit(plain("float", "gaps"), SERIES[container](TARGETS["text"]))


@pytest.mark.parametrize("y", [{"a": 1}, "text", {1, 2}, iter([1, 2])], ids=["dict", "text", "set", "iterator"])
def test_what_is_no_target(y):
    for model in (KarmaRegressor(), GaussianRegressor(), KarmaClassifier()):
        with pytest.raises(TypeError, match=r"y must hold a label for every row; got a .* Pass a list"):
            model.fit(plain("float", "gaps"), y)


# -- ids of long frames -------------------------------------------------------------------------------------------------

LONG = {
    "pandas": pd.DataFrame,
    "pandas, objects": lambda columns: pd.DataFrame(columns, dtype=object),
    "pandas, category": lambda columns: pd.DataFrame(columns).astype({"row": "category"}),
    "pandas, nullable": lambda columns: pd.DataFrame(columns, dtype=object).convert_dtypes(),
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "Arrow": lambda columns: pa.table({name: pa.array(cells) for name, cells in columns.items()}),
    "Arrow, record batch": lambda columns: pa.RecordBatch.from_pydict(
        {name: pa.array(cells) for name, cells in columns.items()}
    ),
    "Arrow, dictionary": lambda columns: pa.table(
        {name: pa.array(cells).dictionary_encode() for name, cells in columns.items()}
    ),
}
IDS = {
    "text": ["u", "t", "u"],
    "text that ends in NUL": ["u\0", "u", "u\0"],
    "ints": [7, 2, 7],
    "floats": [1.5, 0.5, 1.5],
}


@pytest.mark.parametrize("container", LONG)
@pytest.mark.parametrize("kind", IDS)
def test_ids_in_every_container(kind, container):
    frame = LONG[container]({"row": IDS[kind], "col": ["a", "b", "b"], "value": [1.0, 2.0, 3.0]})
    if kind == "text that ends in NUL" and frame["row"][0] == frame["row"][1]:
        pytest.skip("the categories of this pandas do not tell texts that end in NUL apart")
    table, rows, columns = Observed.from_long_frame(frame, row="row", col="col", value="value")
    assert rows.tolist() == sorted(set(IDS[kind]))
    assert columns.tolist() == ["a", "b"]
    np.testing.assert_array_equal(table.to_dense(), [[np.nan, 2.0], [1.0, 3.0]])


@pytest.mark.parametrize("container", LONG)
@pytest.mark.parametrize("bad", [None, np.nan, np.inf, pd.NaT], ids=str)
def test_what_is_no_id_is_refused(container, bad):
    good = datetime.datetime(2020, 1, 1) if bad is pd.NaT else 1.0
    for name in ("row", "col"):
        columns = {"row": [good, good, good], "col": [good, good, good], "value": [1.0, 2.0, 3.0]}
        columns[name] = [good, bad, good]
        if bad is pd.NaT and not container.startswith("pandas"):
            columns[name] = [good, None, good]
        with pytest.raises(
            ValueError, match=rf"column '{name}' must hold an id in every line; it is (null|inf) in line 1"
        ):
            Observed.from_long_frame(LONG[container](columns), row="row", col="col", value="value")


def test_ids_of_several_kinds_are_refused():
    frame = pd.DataFrame({"row": [1, "a"], "col": [1, 2], "value": [1.0, 2.0]})
    with pytest.raises(TypeError, match=r"column 'row' must hold ids of one kind; got int and str\."):
        Observed.from_long_frame(frame, row="row", col="col", value="value")


# -- what is no table ---------------------------------------------------------------------------------------------------


class AnnData:
    """What the class of that name has."""

    X = np.eye(3)
    obs = var = pd.DataFrame(np.eye(3))
    shape = (3, 3)


class ArrowStream:
    """What hands its rows over by Arrow's protocol alone."""

    def __arrow_c_stream__(self, requested_schema=None):
        return FRAME.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("learner", [KarmaRegressor(), LacunarRegressor(members=["linear"])])
@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"x0": [[1.0], [2.0]]}),
        pa.table({"x0": [{"z": 1.0}, {"z": 2.0}]}),
        pa.table({"x0": [[1.0], [2.0]]}),
        pd.DataFrame({"x0": [[1.0], [2.0]]}),
    ],
    ids=["lists of polars", "structs of Arrow", "lists of Arrow", "lists"],
)
def test_cells_of_several_values_are_refused_without_a_remedy_that_fails(learner, table):
    with pytest.raises(TypeError, match=r"column '?x0'?.* Make columns of it, or leave it out\.$"):
        learner.fit(table, [0.0, 1.0])


def test_record_batches_are_read_where_tables_of_arrow_are():
    pairs = pa.table({"user": ["a", "b", "a", "b"], "item": [1, 2, 2, 1]})
    table = pa.table({"x": [*range(20), None], "word": ["u", "v", "u"] * 7})
    edges = pa.table({"from": ["a", "b", "c", "d"], "to": ["b", "c", "d", "a"]})
    calls = {
        "pairs": (pairs, lambda X: OnlineMatrixClassifier().fit(X, [0, 1, 1, 0]).predict_proba(X)),
        "report": (table, lambda X: str(missingness_report(X))),
        "features": (table, lambda X: Features(X).begin().digest),
        "graph": (edges, lambda X: Graph(X).begin().digest),
        "picture": (table, lambda X: MissingnessDisplay.from_table(X).names),
    }
    for name, (frame, call) in calls.items():
        np.testing.assert_array_equal(call(frame.to_batches()[0]), call(frame), name)
    with pytest.raises(TypeError, match=r"X must be pairs .* got LazyFrame\. Pass a list"):
        OnlineMatrixClassifier().fit(pl.from_arrow(pairs).lazy(), [0, 1, 1, 0])


def test_text_in_arrays_is_reported_and_measured():
    frame = pd.DataFrame({"x": [*range(39), None], "word": ["u", "v", "u", None] * 10})
    cells, y = frame.to_numpy(dtype=object), np.arange(40.0)
    of_cells, of_frame = missingness_report(cells, y), missingness_report(frame, y)
    np.testing.assert_array_equal(of_cells.share, of_frame.share)
    assert of_cells.p_value == of_frame.p_value
    values = value_of_measuring(cells, y, cells[-2:])
    np.testing.assert_array_equal(values, value_of_measuring(frame, y, frame[-2:]))


FRAME = pandas(list(np.eye(3)))
NO_TABLES = {
    "one-dimensional": (np.ones(3), r"two-dimensional \(rows, columns\); got shape \(3,\)\. Reshape your data"),
    "a flat list": ([1.0, 2.0, 3.0], "a list of 3 cells. Reshape your data"),
    "three-dimensional": (np.ones((2, 2, 2)), r"two-dimensional .* got shape \(2, 2, 2\)"),
    "dict": ({"x0": 1.0}, r"got a dict\. Use pandas\.DataFrame\(\[X\]\)"),
    "list of dicts": ([{"x0": 1.0}], r"got a list of dicts\. Use pandas\.DataFrame\(X\)"),
    "Series": (FRAME.iloc[0], r"got a Series\. Use pandas\.DataFrame\(\[X\]\) for one row"),
    "Series of polars": (pl.Series([1.0, 2.0]), "got a Series"),
    "array of Arrow": (pa.array([1.0, 2.0]), "got a DoubleArray"),
    "lazy frame": (pl.from_pandas(FRAME).lazy(), r"got a LazyFrame\. Compute it first: X\.collect\(\)"),
    "AnnData": (AnnData(), r"got a AnnData\. Pass its values: X\.to_df\(\)"),
    "None": (None, "got None"),
    "path": ("rows.csv", r"got 'rows\.csv'\. Read the file first"),
    "set": ({1.0}, r"got a set\. Make a list"),
    "one number": (np.float64(3), r"two-dimensional .* got shape \(\)"),
    "reader of Arrow": (ArrowStream(), r"got a ArrowStream\. Pass pyarrow\.table\(X\)"),
    "no container": (object(), r"got a object\. Make an array or a frame"),
    "parts of a frame": (FRAME.groupby("x0"), r"got a DataFrameGroupBy whose parts differ"),
}
SPARSE_SHAPES = {
    "one-dimensional": lambda: sp.coo_array(np.array([1.0, 0, 2])),
    "three-dimensional": lambda: sp.coo_array(np.ones((2, 2, 2))),
}
CALLS = {
    "from_dense": Observed.from_dense,
    "KarmaRegressor.fit": lambda X: KarmaRegressor().fit(X, [0.0, 1.0, 2.0]),
    "KarmaRegressor.predict": lambda X: fitted("KarmaRegressor").predict(X),
    "GaussianRegressor": lambda X: fitted("GaussianRegressor").predict(X),
    "LowRankImputer": lambda X: LowRankImputer(1).fit(X),
    "LacunarClassifier": lambda X: fitted("LacunarClassifier").predict(X),
    "LacunarRegressor": lambda X: fitted("LacunarRegressor").predict(X),
    "MaskConformalRegressor": lambda X: fitted("MaskConformalRegressor").predict(X),
    "TableEncoder": lambda X: TableEncoder().fit(X),
    "karma_kernel": karma_kernel,
}


@pytest.mark.parametrize("what", NO_TABLES)
@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_table_is_refused_with_a_remedy(name, what):
    X, words = NO_TABLES[what]
    with pytest.raises((TypeError, ValueError), match=f"^X must (be|have) .*{words}"):
        CALLS[name](X)


@pytest.mark.parametrize("what", ["dict", "Series", "lazy frame", "AnnData", "None", "path"])
def test_from_frame_takes_frames(what):
    X, words = NO_TABLES[what]
    with pytest.raises(TypeError, match=words):
        Observed.from_frame(X)
    with pytest.raises(
        TypeError, match=r"df must be a pandas, polars or Arrow table; got a ndarray\. Use Observed\.from_dense"
    ):
        Observed.from_frame(np.eye(3))


@pytest.mark.parametrize("shape", SPARSE_SHAPES)
@pytest.mark.parametrize("name", ["from_scipy", *sorted(CALLS.keys() - {"from_dense", "TableEncoder"})])
def test_sparse_arrays_of_other_dimensions(name, shape):
    call = CALLS.get(name, Observed.from_scipy)
    try:
        sparse = SPARSE_SHAPES[shape]()
    except ValueError:
        pytest.skip("sparse arrays of this SciPy have at most two dimensions")
    with pytest.raises(ValueError, match="X must be two-dimensional"):
        call(sparse)


@pytest.mark.parametrize("level", [[0.5, 0.9], (0.9,), np.array([0.5, 0.9]), "0.9", None], ids=str)
def test_one_level_is_asked_for(level):
    X = plain("float", "gaps")
    # None is the level of the constructor of the wrapper
    for name in ("LacunarClassifier", *["MaskConformalClassifier"] * (level is not None)):
        with pytest.raises(
            TypeError, match=r"level must be one number between 0 and 1; got .* Ask once for each level"
        ):
            fitted(name).predict_set(X, level=level)


@pytest.mark.parametrize("level", [[0.5, 0.9], (0.9,), np.array([0.5, 0.9]), np.float32(0.5)], ids=str)
@pytest.mark.parametrize("name", ["LacunarRegressor", "MaskConformalRegressor"])
def test_several_levels_are_asked_for(name, level):
    X = plain("float", "gaps")
    assert fitted(name).predict_interval(X, level=level).shape == (*X.shape[:1], *np.shape(level), 2)
    assert fitted(name).predict_quantiles(X, level=level).shape == (*X.shape[:1], *np.shape(level))


# -- cells ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell", [10**400, Decimal("1e400"), "1e400", float("inf"), np.longdouble("1e400")], ids=lambda c: str(c)[:9]
)
@pytest.mark.parametrize("container", ["array of objects", "pandas, objects"])
def test_a_number_beyond_float64_is_named(cell, container):
    table = CONTAINERS[container](
        [[1.0, cell], [1.0, 2.0]] if container == "array of objects" else [[1.0, cell], [1.0, 2.0], [0.0, 1.0]]
    )
    for call in (Observed.from_dense, lambda X: LowRankImputer(1).fit(X)):
        with pytest.raises(ValueError, match=r"(float64 holds|must be finite).* row 1, column"):
            call(table)


@pytest.mark.parametrize("cell", [1j, np.complex128(1j), np.datetime64("2020-01-01"), np.timedelta64(5, "s"), [1.0], {"a": 1}, (1, 2), np.ones(2), "word", b"word"], ids=repr)  # fmt: skip
@pytest.mark.parametrize(
    "make",
    [lambda columns: array_of_objects(columns), lambda columns: pandas(columns, object)],
    ids=["array", "pandas"],
)
def test_a_cell_that_is_no_number_is_named(cell, make):
    column = np.empty(2, dtype=object)
    column[0], column[1] = 1.0, cell
    remedy = "Make columns of it" if isinstance(cell, list | dict | tuple | np.ndarray) else "TableEncoder"
    for call in (Observed.from_dense, lambda X: LowRankImputer(1).fit(X), karma_kernel):
        with pytest.raises(
            (TypeError, ValueError), match=rf"X must hold numbers; got .* in row 1, column ('x0'|0) \(.*{remedy}"
        ):
            call(make([list(column), [1.0, 2.0], [3.0, 4.0]]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [2, 3, 10, 1000])
def test_a_mean_of_finite_numbers_is_finite(n, dtype):
    largest = np.finfo(dtype).max
    for signs, mean in (([1], 1.0), ([-1], -1.0), ([1, 1, -1], np.resize([1, 1, -1], n).mean())):
        values = np.resize(signs, n).astype(dtype) * largest
        table = Observed.from_triplets(np.zeros(n, int), np.zeros(n, int), values, duplicates="mean")
        np.testing.assert_allclose(table.values / largest, [mean], rtol=0, atol=n * np.finfo(dtype).eps)
