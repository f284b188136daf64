"""NumPy's masked arrays mean at every door what an array with NaN means; dates, durations and complex numbers are refused there."""

import datetime
import inspect
import warnings
from copy import deepcopy

import numpy as np
import public
import pytest
import scipy.sparse as sp
from faulty import problem, quiet, state
from sklearn.base import clone
from test_estimators import default_instances

import lacunar
from lacunar import KarmaClassifier, KarmaOnlineClassifier, KarmaRegressor, LacunarClassifier, Observed
from lacunar.active import ActivePOPCA
from lacunar.comparison import load_problem
from lacunar.completion import Features, OnlineMatrixClassifier, table_pairs
from lacunar.encode import TableEncoder
from lacunar.kernels import karma_kernel
from lacunar.lowrank import POPCA, GaussianRegressor, LowRankImputer
from lacunar.papers.karma import MatrixCompletionClassifier
from lacunar.uncertainty import MeasuringLoop, missingness_report, value_of_measuring

X, Y = problem()
MASKED = np.ma.array(np.where(np.isnan(X), -999.0, X), mask=np.isnan(X))  # with a number under the mask that would show
QUICK = {"members": ["gaussian"], "max_iter": 20}


def answers(call, *tables):
    """What a call answers to every table, as text that tells any two apart; an error is an answer."""
    states = []
    for table in tables:
        with quiet(), np.errstate(all="ignore"):
            try:
                states.append(state(call(table)))
            except Exception as error:
                states.append(f"{type(error).__name__}: {error}")
    return states


def same(call, masked=MASKED, plain=X):
    there, here = answers(call, masked, plain)
    assert there == here
    return here


# -- every estimator ----------------------------------------------------------------------------------------------------


def instances():
    estimators = default_instances()
    for each in estimators:
        quick = {name: value for name, value in QUICK.items() if name in each.get_params(deep=False)}
        each.set_params(
            **{name: value for name, value in quick.items() if name != "max_iter" or "Matrix" in repr(each)}
        )
        if "random_state" in each.get_params(deep=False):
            each.set_params(random_state=0)
    return estimators


def methods_of(estimator):
    """Public methods whose first argument is a table, or batches of them."""
    methods = {}
    for name, method in inspect.getmembers(type(estimator), callable):
        parameters = [] if name.startswith(("_", "set_")) else [*inspect.signature(method).parameters.values()][1:]
        if parameters and parameters[0].name in ("X", "batches"):
            methods[name] = parameters
    return methods


# Arguments beside the table, by name. What has a default keeps it.
ARGUMENTS = {"y": Y, "classes": [0, 1]}
LEARNS = ("fit", "partial_fit", "fit_batches", "fit_transform")


def without_seconds(model):
    """The model without what it says of time, in the parts that it holds, too."""
    for part in vars(model).values() if hasattr(model, "get_params") else []:
        for each in part if isinstance(part, list) else [part]:
            without_seconds(each)
    if hasattr(model, "get_params") and hasattr(model, "seconds_"):
        model.seconds_ = []
    return model


def call_of(estimator, name, parameters):
    """A call of one argument, the table, on a model that is fitted where the method does not fit it itself."""
    needed = [p.name for p in parameters[1:] if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    extra = {each: ARGUMENTS[each] for each in needed}
    if name == "partial_fit" and any(p.name == "classes" for p in parameters):
        extra["classes"] = [0, 1]
    fitted = None
    if name not in LEARNS:
        with quiet(), np.errstate(all="ignore"):
            fitted = clone(estimator).fit(X, Y)

    def call(table):
        model = clone(estimator) if fitted is None else deepcopy(fitted)
        if parameters[0].name == "batches":
            supervised = name == "fit_batches" and "y" in inspect.signature(estimator.fit).parameters
            halves = [slice(0, 20), slice(20, None)]
            labelled = (
                supervised and inspect.signature(estimator.fit).parameters["y"].default is inspect.Parameter.empty
            )
            table = [(table[half], Y[half]) if labelled else table[half] for half in halves]
        output = getattr(model, name)(table, **extra)
        return [without_seconds(output), without_seconds(model)]

    return call


CASES = [(each, name, parameters) for each in instances() for name, parameters in methods_of(each).items()]


@pytest.mark.parametrize(
    ("estimator", "name", "parameters"), CASES, ids=[f"{type(each).__name__}.{name}" for each, name, _ in CASES]
)
def test_every_method_reads_a_mask_as_nan(estimator, name, parameters):
    if name == "inverse_transform":
        with quiet(), np.errstate(all="ignore"):
            codes = np.array(clone(estimator).fit(X, Y).transform(X))
        mask = np.zeros(codes.shape, dtype=bool)
        mask[0] = True
        same(call_of(estimator, name, parameters), np.ma.array(codes, mask=mask), np.where(mask, np.nan, codes))
    else:
        same(call_of(estimator, name, parameters))


def test_the_cases_are_answered():
    """Most cases compare answers, not errors: the arguments fit."""
    with quiet(), np.errstate(all="ignore"):
        for model in (KarmaClassifier(), GaussianRegressor(), LowRankImputer(random_state=0)):
            assert not answers(lambda table, model=model: clone(model).fit(table, Y), MASKED)[0].startswith(
                ("ValueError", "TypeError")
            )


@pytest.mark.parametrize(
    "model", [KarmaClassifier(), KarmaRegressor(), KarmaOnlineClassifier(random_state=0), POPCA(1)], ids=repr
)
@pytest.mark.parametrize(
    "kind",
    ["list of masked rows", "float32", "int64", "bool", "object", "a mask that is all False", "Fortran order"],
)
def test_masked_arrays_of_every_kind(model, kind):
    whole = np.nan_to_num(X)
    masked, plain = {
        "list of masked rows": lambda: (list(MASKED), X),
        "float32": lambda: (MASKED.astype(np.float32), X.astype(np.float32)),
        "int64": lambda: (
            np.ma.array((9 * whole).astype(int), mask=np.isnan(X)), np.where(np.isnan(X), np.nan, (9 * whole).astype(int))
        ),
        "bool": lambda: (np.ma.array(whole > 0, mask=np.isnan(X)), np.where(np.isnan(X), np.nan, whole > 0)),
        "object": lambda: (MASKED.astype(object), X),
        "a mask that is all False": lambda: (np.ma.array(whole), whole),
        "Fortran order": lambda: (np.ma.array(np.asfortranarray(MASKED.data), mask=MASKED.mask), X),
    }[kind]()  # fmt: skip
    same(lambda table: clone(model).fit(table, Y), masked, plain)
    assert Observed.from_dense(masked) == Observed.from_dense(plain)
    assert Observed.from_dense(masked).dtype == (np.float32 if kind == "float32" else np.float64)


# -- every function and constructor -------------------------------------------------------------------------------------


def loop_of(table):
    model = GaussianRegressor().fit(X, Y)
    loop = MeasuringLoop(model)
    loop.add(table)
    return loop.rows_


FUNCTIONS = {
    "MeasuringLoop.from_rows": lambda table: MeasuringLoop.from_rows(table, Y).model.value_of_measuring(X[:5]),
    "MissingnessDisplay.from_table": lambda table: (
        lacunar.plotting.MissingnessDisplay.from_table(table).ax_.images[0].get_array()
    ),
    "Observed.from_dense": lambda table: Observed.from_dense(table).to_dense(),
    "CalibrationByMissingDisplay.from_predictions": lambda table: (
        lacunar.plotting.CalibrationByMissingDisplay.from_predictions(
            table, Y, {"half": np.full((len(Y), 2), 0.5)}
        ).losses
    ),
    "CoverageDisplay.from_predictions": lambda table: lacunar.plotting.CoverageDisplay.from_predictions(
        table, Y, {"all": np.ones((len(Y), 2), dtype=bool)}, regression=False
    ).lines_.keys(),
    "column_pair_sums": lambda table: lacunar.lowrank.column_pair_sums(table),
    "hide_all_but": lambda table: lacunar.datasets.hide_all_but(table, 1, random_state=0),
    "hide_blocks": lambda table: lacunar.datasets.hide_blocks(table, [[0, 1]], random_state=0),
    "hide_by_row": lambda table: lacunar.datasets.hide_by_row(table, np.full(len(Y), 0.5), random_state=0),
    "hide_mar": lambda table: lacunar.datasets.hide_mar(table, random_state=0),
    "hide_mcar": lambda table: lacunar.datasets.hide_mcar(table, random_state=0),
    "hide_mnar": lambda table: lacunar.datasets.hide_mnar(table, random_state=0),
    "hide_panels": lambda table: lacunar.datasets.hide_panels(table, 2, random_state=0),
    "karma_kernel": lambda table: karma_kernel(table),
    "missingness_report": lambda table: missingness_report(table, random_state=0),
    "table_pairs": lambda table: table_pairs(table, random_state=0),
    "value_of_measuring": lambda table: value_of_measuring(X, Y, table, random_state=0),
}
# A first argument X or table that is no dense table of numbers.
OTHERS = {
    "choose_target": "a Table of lacunar.comparison",
    "pair_sums": "Observed only",
    "from_scipy": "sparse matrices",
    "apply": "Dask: shards go through the methods of estimators",
    "fit_karma": "Dask: shards go through the methods of estimators",
    "fit_popca": "Dask: shards go through the methods of estimators",
    "fit_slrm": "Dask: shards go through the methods of estimators",
    "gram": "Dask: shards go through karma_kernel",
    "shards": "Dask: reads nothing",
    "least_quasi_dimension": "kernels of rows and columns",
    "quasi_dimension": "kernels of rows and columns",
    "quasi_dimension_bound": "numbers of rows",
    "from_estimator": "goes through methods of estimators and the constructor of its class",
    "split": "counts rows, or takes pairs of ids",
    "get_n_splits": "counts rows",
}
NAMES = ("X", "table", "rows")


def public_functions():
    """Functions, and class methods of what is no estimator, that take a table."""
    for dotted, item in public.exported(1):
        name = dotted.rpartition(".")[2]
        if inspect.isfunction(item):
            yield name, item
        elif inspect.isclass(item) and not hasattr(item, "fit"):
            for inner, method in inspect.getmembers(item, inspect.ismethod):
                yield f"{name}.{inner}", method


def test_every_function_of_a_table_is_here():
    taking = {
        name for name, function in public_functions()
        if not name.rpartition(".")[2].startswith("_") and set(NAMES) & set(list(inspect.signature(function).parameters)[:2])
    }  # fmt: skip
    known = {name for name in taking if name in FUNCTIONS or name in OTHERS or name.rpartition(".")[2] in OTHERS}
    assert taking == known


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_reads_a_mask_as_nan(name):
    if "Display" in name:
        pytest.importorskip("matplotlib").use("Agg")
    assert not same(FUNCTIONS[name]).startswith(("TypeError", "AttributeError", "KeyError")), "the arguments fit"


def test_tables_beside_the_first_argument():
    same(lambda table: karma_kernel(X, table))
    same(lambda table: value_of_measuring(table, Y, X[:5], random_state=0))
    same(loop_of)
    same(lambda table: load_problem(table, Y).X)
    same(lambda table: Features(table).begin().dense())


def test_values_of_triplets():
    value = np.ma.array([1.0, -999.0, 3.0], mask=[False, True, False])
    table = Observed.from_triplets([0, 0, 1], [0, 1, 1], value)
    np.testing.assert_array_equal(table.to_dense(), [[1.0, np.nan], [np.nan, 3.0]])
    with pytest.raises(TypeError, match="row must be integers"):
        Observed.from_triplets(np.ma.array([0, 0, 1], mask=[True, False, False]), [0, 1, 1], value)
    with pytest.raises(ValueError, match="values must be finite; got nan"):
        Observed.from_dense([[1.0, 2.0]]).with_values(np.ma.array([1.0, 2.0], mask=[True, False]))


def test_masked_answers_of_a_request():
    model = ActivePOPCA(4, 2, n_observed=2, random_state=0)
    other = ActivePOPCA(4, 2, n_observed=2, random_state=0)
    (request,), (again,) = model.ask(1), other.ask(1)
    mask = np.arange(len(request.indices)) == 0
    model.tell(request, np.ma.array(np.full(len(mask), 2.0), mask=mask))
    other.tell(again, np.where(mask, np.nan, 2.0))
    assert state(model) == state(other)


def test_rows_of_one():
    model = KarmaOnlineClassifier(random_state=0).fit(X, Y)
    assert model.predict_one({0: 1.0, 1: np.ma.masked}) == model.predict_one({0: 1.0})


@pytest.mark.parametrize("make", [TableEncoder, lambda: LacunarClassifier(members=["logistic"], random_state=0)])
def test_masked_text_and_objects(make):
    town = np.array(["Bonn", "Kiel", "Ulm", "Bonn"] * 10)
    mask = np.zeros((40, 2), dtype=bool)
    mask[::5] = True
    masked = np.ma.array(np.c_[town, town[::-1]], mask=mask)
    plain = np.where(mask, None, masked.data.astype(object))
    for table in (masked, masked.astype(object)):
        model, other = without_seconds(make().fit(table, Y)), without_seconds(make().fit(plain, Y))
        assert state(model) == state(other)


def test_masked_dates_of_the_encoder():
    dates = np.ma.array(np.array([["2020-01-01"], ["2020-01-02"], ["1900-01-01"]], "M8[D]"), mask=[[0], [0], [1]])
    columns = TableEncoder().fit_transform(dates)
    assert np.isnan(columns[2]).all()
    assert columns[1, 0] - columns[0, 0] == 1


def test_records_are_refused():
    records = np.ma.array([(1.0, 2), (3.0, 4)], dtype=[("a", float), ("b", int)], mask=[(False, True), (False, False)])
    for call in (Observed.from_dense, lambda table: KarmaClassifier().fit(table, [0, 1]), TableEncoder().fit):
        with pytest.raises(
            TypeError, match=r"X must be an array of one dtype; got a masked array of records with fields a, b\. Stack"
        ):
            call(records)


# -- labels and weights -------------------------------------------------------------------------------------------------


LABELS = np.ma.array(Y, mask=np.arange(len(Y)) % 5 == 0)


def test_masked_labels_are_missing():
    for model in (KarmaClassifier(), KarmaRegressor()):
        with pytest.raises(ValueError, match="Input y contains NaN"):
            model.fit(X, LABELS)
    with pytest.raises(ValueError, match="must be known"):
        OnlineMatrixClassifier().fit([(0, 1), (1, 0)], np.ma.array([1, 0], mask=[True, False]))
    plain = [None if masked else int(label) for label, masked in zip(Y, LABELS.mask, strict=True)]
    for model in (
        LacunarClassifier(members=["logistic"], random_state=0),
        MatrixCompletionClassifier(lam=1.0, mu=1e-2, random_state=0),
    ):
        with quiet():
            there, here = (without_seconds(clone(model).fit(X, y)) for y in (LABELS, plain))
        assert state(there) == state(here)
        assert there.classes_.dtype.kind == "i"
    number = np.ma.array(np.nan_to_num(X[:, 0]), mask=LABELS.mask)
    assert state(GaussianRegressor().fit(X, number)) == state(GaussianRegressor().fit(X, number.filled(np.nan)))


def test_masked_scores():
    model = KarmaRegressor().fit(X, Y)
    same(
        lambda y: model.score(X, y), np.ma.array(Y.astype(float), mask=LABELS.mask), LABELS.astype(float).filled(np.nan)
    )


@pytest.mark.parametrize("model", [KarmaClassifier(), LacunarClassifier(members=["logistic"]), KarmaOnlineClassifier()])
def test_a_masked_weight_is_an_error(model):
    weight = np.ma.array(np.ones(len(Y)), mask=np.arange(len(Y)) == 3)
    with pytest.raises(ValueError, match="sample_weight must be known for every row; it is masked in row 3"):
        model.fit(X, Y, sample_weight=weight)
    fitted = clone(model).fit(X, Y)
    with pytest.raises(ValueError, match="sample_weight must be known"):
        fitted.score(X, Y, sample_weight=weight)


def test_masked_ids_are_refused():
    ids = np.ma.array([0, 1, 2], mask=[False, True, False])
    with pytest.raises(ValueError, match=r"rows\[1\] must be an id"):
        OnlineMatrixClassifier().fit((ids, [0, 1, 2]), [1, 0, 1])


# -- what is no number --------------------------------------------------------------------------------------------------


DATES = np.array([["2020-01-01", "NaT"], ["2020-01-03", "2020-01-02"]], "M8[s]")
CALLS = {
    "from_dense": Observed.from_dense,
    "karma": lambda table: KarmaClassifier().fit(table, [0, 1]),
    "imputer": lambda table: LowRankImputer(1).fit(table),
    "hide": lambda table: lacunar.datasets.hide_mcar(table, random_state=0),
    "kernel": karma_kernel,
}


@pytest.mark.parametrize("name", CALLS)
def test_dates_and_durations_are_refused(name):
    for table in (DATES, np.ma.array(DATES, mask=[[1, 0], [0, 0]]), DATES.astype("M8[ns]")):
        with pytest.raises(
            TypeError, match=r"must be numeric or boolean; it is datetime64.*lacunar\.encode\.TableEncoder"
        ):
            CALLS[name](table)
    with pytest.raises(TypeError, match=r"it is timedelta64\[s\]\. Divide by np\.timedelta64"):
        CALLS[name](DATES - DATES[0, 0])
    with pytest.raises(ValueError, match="Complex data not supported"):
        CALLS[name](np.ones((2, 2)) * 1j)


@pytest.mark.parametrize("name", ["from_dense", "karma", "imputer", "kernel"])
def test_objects_that_are_no_numbers_are_refused(name):
    encode = r"lacunar\.encode\.TableEncoder makes numbers of text"
    remedies = {datetime.date(2020, 1, 1): encode, datetime.timedelta(1): encode, 1j: encode, "a": encode}
    for cell, remedy in {**remedies, (1, 2): r"Make columns of it, or leave it out\."}.items():
        table = np.empty((2, 2), dtype=object)
        table[:] = 1.0
        table[1, 0] = cell
        with pytest.raises((TypeError, ValueError), match=remedy):
            CALLS[name](table)


def test_sparse_and_triplets_of_complex_numbers_and_dates():
    with pytest.raises(ValueError, match="Complex data"):
        Observed.from_scipy(sp.csr_array(np.eye(2) * 1j))
    with pytest.raises(ValueError, match="value must be real numbers"):
        Observed.from_triplets([0], [0], [1j])
    with pytest.raises(TypeError, match="value must be numeric"):
        Observed.from_triplets([0], [0], DATES[0, :1])


def test_durations_are_days_to_the_encoder():
    days = DATES - DATES[0, 0]
    with warnings.catch_warnings(action="error"):
        encoder = TableEncoder().fit(days)
        assert encoder.kinds_ == ["number", "number"]
        expected = [[0.0, np.nan], [2.0, 1.0]]
        np.testing.assert_array_equal(encoder.transform(days), expected)
        np.testing.assert_array_equal(TableEncoder().fit_transform(days.astype(object)), expected)
    pd = pytest.importorskip("pandas")
    np.testing.assert_array_equal(TableEncoder().fit_transform(pd.DataFrame(days)), expected)
