"""Labels keep the type that users gave, rows without a label are counted, and frames of text, sizes of numbers and
threads are checked.
"""

import datetime
import warnings
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from faulty import LEARNERS, answer, problem, quiet
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import make_classification
from test_doors import SETTINGS
from test_estimators import NO_ARRAYS, public_estimators

from lacunar import (
    KarmaClassifier,
    KarmaOnlineClassifier,
    KarmaRegressor,
    LacunarClassifier,
    LacunarRegressor,
    Observed,
)
from lacunar._threads import thread_count
from lacunar.completion import OnlineMatrixClassifier
from lacunar.encode import TableEncoder
from lacunar.kernels import karma_kernel
from lacunar.lowrank import GROUSE, PETRELS, POPCA, GaussianRegressor, LowRankImputer, SLRMRegressor
from lacunar.lowrank.parts import fit_columns_over
from lacunar.observed.columns import fit_columns
from lacunar.papers.karma import MatrixCompletionClassifier
from lacunar.papers.slrm import MPCR, SMPCR
from lacunar.uncertainty import MaskConformalClassifier, MaskConformalRegressor, missingness_report, value_of_measuring

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

X, Y = problem()
LABELS = {
    "bool": [bool(label) for label in Y],
    "int": [int(label) + 3 for label in Y],
    "float": [float(label) for label in Y],
    "str": ["no" if label else "yes" for label in Y],
}
DTYPES = {
    "bool": ("boolean", "bool[pyarrow]"),
    "int": ("Int64", "Int8", "int64[pyarrow]"),
    "float": ("Float64", "Float32", "double[pyarrow]"),
    "str": ("string[python]", "string[pyarrow]", "str"),
}


def containers(kind, labels):
    """The labels, None where missing, as every library holds them."""
    yield "list", labels
    for dtype in DTYPES[kind]:
        yield f"pandas {dtype}", pd.Series(labels, dtype=dtype)
    yield "pandas category", pd.Series(labels, dtype="category")
    yield "pandas category of objects", pd.Series(labels, dtype=object).astype("category")
    yield "pandas objects", pd.Series(labels, dtype=object)
    yield "objects", np.array(labels, dtype=object)
    yield "pandas array", pd.array(labels, dtype=DTYPES[kind][0])
    yield "pandas frame", pd.DataFrame({"y": pd.array(labels, dtype=DTYPES[kind][0])})
    yield "polars", pl.Series(labels)
    yield "polars frame", pl.DataFrame({"y": labels})
    yield "Arrow array", pa.array(labels)
    yield "Arrow dictionary", pa.array(labels).dictionary_encode()
    yield "Arrow chunks", pa.chunked_array([labels[:7], labels[7:]])
    if kind == "int":
        yield "polars of 128 bits", pl.Series(labels, dtype=pl.Int128)
    if kind == "str" and hasattr(np.dtypes, "StringDType"):  # NumPy 2
        yield "text of NumPy", np.array(labels, dtype=np.dtypes.StringDType(na_object=None))


def check_classes(model, kind, predicted):
    expected = sorted(set(LABELS[kind]))
    assert model.classes_.tolist() == expected
    assert [type(label) for label in model.classes_.tolist()] == [type(label) for label in expected]
    assert {type(label) for label in np.asarray(predicted).tolist()} <= {type(expected[0])}


def classifiers():
    for cls in public_estimators():
        if is_classifier(cls()) and cls.__name__ not in NO_ARRAYS:
            yield cls(**SETTINGS.get(cls.__name__, {}))


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("model", list(classifiers()), ids=lambda model: type(model).__name__)
def test_classes_keep_their_type(model, kind):
    with quiet():
        expected = clone(model).fit(X, np.array(LABELS[kind])).predict(X)
    for name, y in containers(kind, LABELS[kind]):
        with quiet():
            fitted = clone(model).fit(X, y)
        check_classes(fitted, kind, fitted.predict(X))
        assert fitted.predict(X).tolist() == expected.tolist(), name
        assert fitted.score(X, y) == fitted.score(X, np.array(LABELS[kind])), name


@pytest.mark.parametrize("model", list(classifiers()), ids=lambda model: type(model).__name__)
def test_numbers_with_fractions_are_no_classes(model):
    y = np.array(LABELS["float"])
    y[5] = 0.25
    with pytest.raises(ValueError, match=r"Unknown label type: .* got 0\.25 in row 5\. Take a regressor"):
        clone(model).fit(X, y)
    if isinstance(model, LacunarClassifier | MatrixCompletionClassifier):
        y[2] = np.nan
        with pytest.raises(ValueError, match=r"got 0\.25 in row 5"):
            clone(model).fit(X, y)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(
    "model",
    [LacunarClassifier(members=["logistic"], cv=2), MatrixCompletionClassifier(lam=1.0, mu=1e-2)],
    ids=lambda m: type(m).__name__,
)
def test_missing_labels_change_no_type(model, kind):
    labels = [None if k % 5 == 0 else label for k, label in enumerate(LABELS[kind])]
    for _, y in containers(kind, labels):
        with quiet():
            fitted = clone(model).fit(X, y)
        check_classes(fitted, kind, fitted.predict(X))


@pytest.mark.parametrize("kind", LABELS)
def test_missing_labels_are_refused_where_all_must_be_known(kind):
    labels = [None if k == 5 else label for k, label in enumerate(LABELS[kind])]
    for _, y in containers(kind, labels):
        with pytest.raises(ValueError, match="Input y contains NaN"), quiet():
            KarmaClassifier().fit(X, y)


def test_streams_keep_their_classes():
    y = pl.Series(LABELS["bool"])
    model = KarmaOnlineClassifier().partial_fit(X[:20], y[:20], classes=pd.Series([False, True], dtype="boolean"))
    model.partial_fit(X[20:], y[20:], classes=pl.Series([True, False]))
    check_classes(model, "bool", model.predict(X))
    pairs = [(k % 7, k % 5) for k in range(40)]
    model = OnlineMatrixClassifier().fit(pairs, pd.Series(LABELS["bool"], dtype="boolean"))
    assert model.predict(pairs).dtype == bool


@pytest.mark.parametrize(
    "y",
    [
        pd.Series([1.5, None] * 20, dtype="Float64"), pl.Series([1.5, None] * 20),
        pd.Series([1, None] * 20, dtype="Int64"), pa.array([1, None] * 20),
    ],
    ids=["Float64", "polars", "Int64", "Arrow"],
)  # fmt: skip
def test_numbers_with_missing_ones(y):
    values = np.where(np.arange(40) % 2, np.nan, 1.5 if "1.5" in str(y) else 1.0)
    for model in (GaussianRegressor(), SLRMRegressor(1, random_state=0)):
        with quiet():
            there, here = clone(model).fit(X, y), clone(model).fit(X, values)
        np.testing.assert_array_equal(there.predict(X), here.predict(X))
    with pytest.raises(ValueError, match="Input y contains NaN"):
        KarmaRegressor().fit(X, y)


def test_dates_are_no_targets():
    dates = np.datetime64("2020-01-01") + np.arange(40)
    for model in (KarmaClassifier(), KarmaRegressor(), GaussianRegressor(), LacunarClassifier(), SLRMRegressor()):
        for y in (dates, pd.Series(dates), dates - dates[0]):
            with pytest.raises(TypeError, match=r"y must hold labels or numbers; it holds dates or durations"):
                model.fit(X, y)


# -- rows without a label ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [LacunarClassifier(members=["logistic"]), LacunarRegressor(members=["gaussian"])],
    ids=lambda m: type(m).__name__,
)
def test_rows_without_a_label_are_counted_once(model):
    y = np.where(np.arange(40) < 6, np.nan, Y)
    with warnings.catch_warnings(record=True, action="always") as said:
        model.fit(X, y)
    texts = [str(warning.message) for warning in said if "lack a label" in str(warning.message)]
    assert len(texts) == 1
    assert texts[0].startswith("6 of 40 rows lack a label")
    assert next(w.filename for w in said if "lack a label" in str(w.message)) == __file__
    with warnings.catch_warnings(record=True, action="always") as said:
        model.fit(X, Y)
    assert not [w for w in said if "lack a label" in str(w.message)]


# -- frames of text and dates -----------------------------------------------------------------------------------------


WORDS = [None, "7", "b", "c"] * 10
FRAMES = {
    "pandas": lambda column: pd.DataFrame({"a": np.arange(40.0), "u": column}),
    "pandas objects": lambda column: pd.DataFrame({"a": np.arange(40.0), "u": pd.Series(column, dtype=object)}),
    "pandas category": lambda column: pd.DataFrame({"a": np.arange(40.0), "u": pd.Series(column).astype("category")}),
    "text alone": lambda column: pd.DataFrame({"u": column}),
    "polars": lambda column: pl.DataFrame({"a": np.arange(40.0), "u": column}),
    "Arrow": lambda column: pa.table({"a": np.arange(40.0), "u": column}),
}
MODELS = {
    "karma": lambda X: KarmaClassifier().fit(X, Y),
    "popca": lambda X: POPCA(1).fit(X),
    "imputer": lambda X: LowRankImputer(1).fit(X),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("name", MODELS)
def test_text_is_named(name, kind):
    with pytest.raises(
        ValueError,
        match=r"X must hold numbers; got 'b' in row 2, column 'u' \(.*lacunar\.encode\.TableEncoder.*LacunarClassifier",
    ):
        MODELS[name](FRAMES[kind](WORDS))


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("name", ["karma", "imputer"])
def test_dates_in_frames_are_named(name, kind):
    dates = [datetime.date(2020, 1, 1) + datetime.timedelta(k) for k in range(40)]
    stamps = [datetime.datetime(2020, 1, 1) + datetime.timedelta(k) for k in range(40)]
    for column in (dates, stamps, [stamp - stamps[0] for stamp in stamps]):
        with pytest.raises(TypeError, match=r"column 'u'.*lacunar\.encode\.TableEncoder"):
            MODELS[name](FRAMES[kind](column))


def test_a_frame_of_text_with_a_date_column_goes_to_the_learner():
    frame = pd.DataFrame({"town": ["Bonn", "Kiel"] * 20, "day": pd.date_range("2020", periods=40), "x": X[:, 0]})
    assert LacunarClassifier(members=["logistic"]).fit(frame, Y).predict(frame).shape == (40,)
    assert TableEncoder().fit(frame).kinds_ == ["category", "date", "number"]


# -- sizes of numbers -------------------------------------------------------------------------------------------------


# `raw` numbers matter to these: the paper's own settings, and subspaces of rows as they are.
RAW = {"slrm-paper", "mpcr", "smpcr", "popca", "popca-tables", "popca-free", "petrels", "petrels-shared", "grouse"}
POWERS = [-996, -700, -548, -540, -500, 500, 510, 548, 996]  # 1e-300 to 1e300


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - RAW - {"karma-cv", "karma-regressor-cv"}))
def test_columns_of_any_size_give_the_same_answers(name):
    """Powers of two change no digit, so nothing but the size can change an answer."""
    expected = answer(clone(LEARNERS[name]).fit(X, Y), X)
    for power in POWERS:
        table = np.ldexp(X, power)
        answers = answer(clone(LEARNERS[name]).fit(table, Y), table)
        scale = np.ldexp(1.0, power) if name == "imputer" else 1.0
        np.testing.assert_array_equal(answers, expected * scale, err_msg=f"2**{power}")


@pytest.mark.parametrize("make", [LacunarClassifier, LacunarRegressor])
def test_columns_of_any_size_and_the_learner(make):
    model = make(members=["gaussian"], random_state=0)
    expected = clone(model).fit(X, Y).predict(X)
    for power in POWERS:
        table = np.ldexp(X, power)
        np.testing.assert_array_equal(clone(model).fit(table, Y).predict(table), expected)


def test_one_column_of_another_size():
    table = X.copy()
    table[:, 2] *= 2.0**-560
    np.testing.assert_array_equal(KarmaRegressor().fit(table, Y).predict(table), KarmaRegressor().fit(X, Y).predict(X))


@pytest.mark.parametrize("power", [-1000, -560, 0, 560, 1000])
def test_scales_of_parts_are_those_of_all_rows(power):
    rows, weight = Observed.from_dense(np.ldexp(X, power)), np.ones(len(X))
    whole, one = (
        fit_columns(rows, weight, standardize=True),
        fit_columns(Observed.from_dense(X), weight, standardize=True),
    )
    np.testing.assert_array_equal(whole.mean, np.ldexp(one.mean, power))
    np.testing.assert_array_equal(whole.scale, np.ldexp(one.scale, power))
    parts, _ = fit_columns_over(rows, None)
    np.testing.assert_allclose(parts.scale, whole.scale, rtol=1e-12)
    np.testing.assert_allclose(np.ldexp(parts.mean, -power), np.ldexp(whole.mean, -power), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("value", [0.0, 1e-200, 1e200])
def test_a_constant_column_of_any_size_is_constant(value):
    rows = Observed.from_dense(np.column_stack([np.full(40, value), X[:, 0]]))
    columns = fit_columns(rows, np.ones(40), standardize=True)
    assert not columns.seen[0]
    assert columns.seen[1]


def test_a_column_below_the_range_is_named():
    table = np.nan_to_num(X)
    table[:, 1] = 5e-324 * np.arange(40)
    with pytest.raises(ValueError, match="a mean and a standard deviation that float64 holds; those of column 1"):
        KarmaClassifier().fit(table, Y)


@pytest.mark.parametrize("power", [-1000, -548, -520])
@pytest.mark.parametrize(
    "model",
    [POPCA(1), POPCA(1, solver="matrix-free"), PETRELS(1), GROUSE(1), MPCR(1), SMPCR(1, max_iter=2)],
    ids=repr,
)
def test_rows_as_they_are_must_have_squares(model, power):
    streams = hasattr(model, "partial_fit") and getattr(model, "solver", None) != "matrix-free"
    labels = (Y,) if is_regressor(model) else ()
    for learn in (model.fit, *([clone(model).partial_fit] if streams else [])):
        with pytest.raises(ValueError, match=r"so that .*squares do not vanish"):
            learn(np.ldexp(X, power), *labels)
    with quiet():
        clone(model).fit(np.where(np.isnan(X), np.nan, 0.0), *labels)  # zeros are zeros


NUMBERS = sorted(name for name in LEARNERS if "regressor" in name or name[:4] in ("slrm", "gaus", "mpcr", "smpc"))


@pytest.mark.parametrize("name", NUMBERS)
def test_small_targets_are_refused(name):
    y = Y - 0.3
    for power in (-1000, -548, -510):
        with pytest.raises(ValueError, match=r"y must reach 1e-150 in modulus.*Use other units"):
            clone(LEARNERS[name]).fit(X, np.ldexp(y, power))
    with quiet():
        clone(LEARNERS[name]).fit(X, np.zeros(len(Y)))


@pytest.mark.parametrize("power", [-1000, -548, -400, 400])
def test_the_learner_scales_targets(power):
    y = Y + 0.1 * np.arange(len(Y))
    model = LacunarRegressor(members=["gaussian"], random_state=0)
    expected = clone(model).fit(X, y).predict(X)
    np.testing.assert_array_equal(clone(model).fit(X, np.ldexp(y, power)).predict(X), np.ldexp(expected, power))


# -- threads ----------------------------------------------------------------------------------------------------------


THREADED = {
    "from_dense": lambda n_jobs: Observed.from_dense(X, n_jobs=n_jobs),
    "karma_kernel": lambda n_jobs: karma_kernel(X, n_jobs=n_jobs),
    "karma": lambda n_jobs: KarmaClassifier(n_jobs=n_jobs).fit(X, Y),
    "popca": lambda n_jobs: POPCA(1, n_jobs=n_jobs).fit(X),
    "slrm": lambda n_jobs: SLRMRegressor(1, n_jobs=n_jobs).fit(X, Y),
    "learner": lambda n_jobs: LacunarClassifier(members=["logistic"], n_jobs=n_jobs).fit(X, Y),
}


@pytest.mark.parametrize("name", THREADED)
def test_numbers_of_threads_are_checked(name):
    for n_jobs in (2**31, -(2**31) - 1, 2**70, 2**15 + 1, np.int64(2**40), 0):
        with pytest.raises(
            ValueError, match=r"n_jobs must be None, a positive number of threads .* of at most 32768 threads; got"
        ):
            THREADED[name](n_jobs)
    for n_jobs in (2.0, "2", True, np.bool_(True), np.float64(1)):
        with pytest.raises((TypeError, ValueError), match=r"n_jobs"):
            THREADED[name](n_jobs)
    for n_jobs in (None, 1, -1, -2, np.int32(2), np.uint8(1)):
        THREADED[name](n_jobs)


def test_numbers_of_threads_are_python_integers():
    assert type(thread_count(np.int64(3))) is int


# -- functions that take labels ---------------------------------------------------------------------------------------


def test_functions_read_labels_of_any_library():
    numbers = np.nan_to_num(X[:, 0])
    for y in (pd.Series(Y, dtype="Int64"), pl.Series(Y.tolist()), pa.array(Y.tolist())):
        np.testing.assert_array_equal(
            value_of_measuring(X, y, X[:3], random_state=0), value_of_measuring(X, Y, X[:3], random_state=0)
        )
    report = missingness_report(X, pl.Series(numbers.tolist()), random_state=0)
    np.testing.assert_array_equal(report.target_shift, missingness_report(X, numbers, random_state=0).target_shift)


def test_the_example_of_scikit_learn_keeps_bool():
    table, labels = make_classification(60, random_state=0)
    assert KarmaClassifier().fit(table, pd.Series(labels > 0, dtype="boolean")).predict(table).dtype == bool


@pytest.mark.parametrize("container", [np.array, list, pd.DataFrame, pl.DataFrame, pa.table])
def test_several_columns_of_labels_are_refused_with_a_remedy(container):
    columns = {"a": LABELS["str"], "b": LABELS["str"]}
    y = container(
        columns if container in (pd.DataFrame, pl.DataFrame, pa.table) else list(zip(*columns.values(), strict=True))
    )
    with pytest.raises(
        ValueError, match=rf"one target a row; got shape \({len(Y)}, 2\). Fit one model for each column"
    ):
        KarmaClassifier().fit(X, y)


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        (["a"] * 8, ValueError, r"sample_weight must hold numbers; got 'a' in row 0 .* Pass a number for every row\."),
        ([1.0, None] * 4, ValueError, r"sample_weight must be finite; got nan in row 1\. Give the row weight 0"),
        ([1.0] * 7 + [np.inf], ValueError, r"sample_weight must be finite; got inf in row 7\."),
        (np.array(["2020-01-01"] * 8, "M8[D]"), TypeError, "sample_weight must be numeric"),
    ],
    ids=["text", "None", "infinity", "dates"],
)
@pytest.mark.parametrize("model", [KarmaRegressor(), LacunarRegressor(members=["linear"])])
def test_weights_that_are_no_numbers_are_named(model, weight, error, message):
    X, y = np.arange(16.0).reshape(8, 2), np.arange(8.0)
    with pytest.raises(error, match=message):
        model.fit(X, y, sample_weight=weight)
    with pytest.raises(error, match=message):
        model.fit(X, y).score(X, y, sample_weight=weight)


@pytest.mark.parametrize(
    ("model", "form"),
    [
        *product([LacunarClassifier(), LacunarRegressor()], [np.array, pd.DataFrame, sp.csr_array]),
        *product([TableEncoder()], [np.array, pd.DataFrame]),  # it takes no sparse tables
    ],
)
def test_tables_without_rows_or_columns_are_named(model, form):
    with pytest.raises(ValueError, match=r"0 sample\(s\) .* a minimum of 1 is required"):
        model.fit(form(np.zeros((0, 3))), [])
    with pytest.raises(ValueError, match=r"0 feature\(s\) .* a minimum of 1 is required\.|got a table of shape"):
        model.fit(form(np.zeros((4, 0))), [0, 1, 0, 1])


@pytest.mark.parametrize("model", [MaskConformalClassifier(KarmaClassifier()), MaskConformalRegressor()])
def test_wrappers_say_that_they_need_a_target(model):
    with pytest.raises(ValueError, match=r"requires y to be passed, but the target y is None\. Pass one"):
        model.fit(np.eye(8), None)
