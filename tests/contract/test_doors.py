"""One table, however it comes: every public estimator answers at every door as for the array of float64 with NaN."""

import functools
import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from doors import DOORS, FRAMES, SPARSE, arrow, pandas, polars
from sklearn.base import clone, is_classifier
from test_estimators import ESTIMATORS as VARIANTS
from test_estimators import NO_ARRAYS, is_default, printed_estimators, public_estimators, values

from lacunar import KarmaClassifier
from lacunar.completion import OnlineMatrixClassifier
from lacunar.encode import TableEncoder
from lacunar.kernels import karma_kernel
from lacunar.lowrank import GaussianRegressor, column_pair_sums
from lacunar.observed import Observed, ObservedFile, write_batches
from lacunar.uncertainty import missingness_report, value_of_measuring

ESTIMATORS = {
    each.__name__: each for each in (*public_estimators(), *printed_estimators()) if each.__name__ not in NO_ARRAYS
}

# Small models: the doors are the subject.
SETTINGS = {
    "GROUSE": {"n_components": 2},
    "GaussianRegressor": {"max_iter": 3},
    "KarmaClassifierCV": {"kernels": "karma", "gammas": (1, 2), "Cs": (0.1, 1.0)},
    "KarmaRegressorCV": {"kernels": "karma", "gammas": (1, 2), "Cs": (0.1, 1.0)},
    "LacunarClassifier": {"members": ["logistic"], "cv": 2},
    "LacunarRegressor": {"members": ["gaussian"], "cv": 2},
    "LowRankImputer": {"max_iter": 5},
    "MaskConformalClassifier": {"estimator": KarmaClassifier(), "cv": 2},
    "MaskConformalRegressor": {"estimator": GaussianRegressor(max_iter=3), "cv": 2},
    "MatrixCompletionClassifier": {"lam": 1.0, "mu": 1e-2},
    "MatrixCompletionRegressor": {"lam": 1.0, "mu": 1e-2},
    "PETRELS": {"n_components": 2},
    "POPCA": {"n_components": 2},
    "SLRMRegressorCV": {"n_components": [1, 2], "cv": 2},
}
OPTIONS = {"importance": {"n_repeats": 1, "random_state": 0}, "value_of_measuring": {}}

# What cells of float32 may change: sums of such values are rounded to 2^-24. A solver that stops at a gap stops elsewhere.
SLACK = {"GeomClassifier": 5e-3}


@functools.cache
def problem():
    """Rows of rank two that float32 holds exactly, a third of the entries missing, some of the others 0, and numbers of rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(48, 2)) @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(48, 5))
    y = X[:, 0] - X[:, 1]
    X = X.astype(np.float32).astype(np.float64)
    X[::7, 2] = 0.0
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, y


def estimator_of(name):
    model = ESTIMATORS[name](**SETTINGS.get(name, {}))
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


def target_of(name):
    y = problem()[1]
    return np.where(y > 0, "high", "low") if is_classifier(ESTIMATORS[name]()) else y


@functools.cache
def methods_of(name):
    """Public methods whose first argument is X, rows of a table, and whether they take y."""
    found = {}
    for method, function in inspect.getmembers(ESTIMATORS[name], callable):
        if not method.startswith("_") and method != "inverse_transform":  # of coordinates
            first, *others = [*list(inspect.signature(function).parameters)[1:], None]
            if first == "X":
                found[method] = "y" in others
    return found


def answers(name, form):
    """What models that learned and are asked at a door say, by method: `form` makes the table of an array."""
    X, _ = problem()
    table, target, methods = form(X), target_of(name), methods_of(name)
    model, said = estimator_of(name).fit(table, target), {}
    for method in sorted(methods.keys() - {"fit", "fit_transform", "partial_fit", "score_stream"}):
        given = (target,) if methods[method] else ()
        said[method] = getattr(model, method)(table, *given, **OPTIONS.get(method, {}))
    if "fit_transform" in methods:
        said["fit_transform"] = estimator_of(name).fit_transform(table, target)
    if "partial_fit" in methods:
        said["partial_fit"] = learned_in_parts(name, form)
    if "score_stream" in methods:
        classes = {"classes": ["high", "low"]} if is_classifier(model) else {}
        said["score_stream"] = estimator_of(name).score_stream(table, target, **classes).values
    return said


def learned_in_parts(name, form):
    (X, _), target = problem(), target_of(name)
    model = estimator_of(name)
    classes = {"classes": ["high", "low"]} if is_classifier(model) else {}
    for rows in (slice(0, 30), slice(30, 48)):
        model.partial_fit(form(X[rows]), target[rows], **classes)
    ask = next(
        getattr(model, method) for method in ("decision_function", "predict", "transform") if hasattr(model, method)
    )
    return ask(form(X))


@functools.cache
def of_the_array(name):
    return answers(name, np.array)


def same(one, other, slack):
    """The same numbers, within `slack` of the largest; labels, sets of labels and names are equal."""
    if isinstance(one, tuple | dict):
        parts = [tuple(each.items()) if isinstance(each, dict) else each for each in (one, other)]
        for mine, theirs in zip(*parts, strict=True):
            same(mine, theirs, slack)
        return
    one, other = (np.asarray(each.toarray() if sp.issparse(each) else each) for each in (one, other))
    if one.dtype.kind != "f" or not slack:
        np.testing.assert_array_equal(one, other)
    else:
        np.testing.assert_allclose(one, other, rtol=0, atol=slack * max(np.nanmax(np.abs(other), initial=0.0), 1.0))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_answers_are_those_of_the_array(name, door):
    said, expected = answers(name, DOORS[door]), of_the_array(name)
    assert said.keys() == expected.keys()
    for method, answer in said.items():
        same(answer, expected[method], SLACK.get(name, 1e-5) if door == "float32" else 0)


@pytest.mark.parametrize("door", ["csr_array, int64", "csc_matrix, int32"])
@pytest.mark.parametrize("estimator", [each for each in VARIANTS if not is_default(each)], ids=repr)
def test_variants_of_karma_answer_alike(estimator, door):
    """Their solvers and tables read rows in ways of their own."""
    X, y = problem()
    target, S = np.where(y > 0, "high", "low") if is_classifier(estimator) else y, DOORS[door](X)
    np.testing.assert_array_equal(
        values(clone(estimator).fit(S, target), S), values(clone(estimator).fit(X, target), X)
    )


# -- files --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_file_is_read_where_the_method_says_so_and_else_refused(name, tmp_path):
    X, _ = problem()
    target, methods = target_of(name), methods_of(name)
    model = estimator_of(name).fit(X, target)
    file = write_batches(tmp_path / "rows", [(Observed.from_dense(X), target)])
    for method in methods.keys() - {"fit_transform"}:
        ask = getattr(estimator_of(name) if method in ("fit", "partial_fit", "score_stream") else model, method)
        reads_files = "ObservedFile" in (ask.__doc__ or "")
        if reads_files and method == "fit":
            continue  # a fit of its own, block by block: tests of batches
        if reads_files:
            same(ask(file), ask(*((X, target) if methods[method] else (X,))), 0)
        else:
            with pytest.raises((TypeError, ValueError), match="must be a table in memory"):
                ask(file, *((target,) if methods[method] else ()))


# -- tables of text, and pairs ------------------------------------------------------------------------------------------

# A table of columns of text and dates is never sparse.
NOT_ENCODED = dict.fromkeys(SPARSE, "a sparse matrix .* which holds numbers already")


@pytest.mark.parametrize("door", [door for door in DOORS if door != "Observed"])
def test_tables_are_encoded_alike(door):
    X, _ = problem()
    if door in NOT_ENCODED:
        with pytest.raises(TypeError, match=NOT_ENCODED[door]):
            TableEncoder().fit(DOORS[door](X))
        return
    encoder = TableEncoder().fit(DOORS[door](X))
    np.testing.assert_array_equal(encoder.transform(DOORS[door](X)), TableEncoder().fit_transform(X))


PAIRS = np.random.default_rng(0).integers(6, size=(60, 2))
PAIR_DOORS = {
    "list": lambda pairs: [tuple(pair) for pair in pairs.tolist()],
    "two arrays": lambda pairs: (pairs[:, 0], pairs[:, 1]),
    "int32": lambda pairs: pairs.astype(np.int32),
    "Fortran order": np.asfortranarray,
    "objects": lambda pairs: pairs.astype(object),
    "pandas": lambda pairs: pandas(pairs).astype(int),
    "pandas, nullable": lambda pairs: pandas(pairs).astype("Int64"),
    "polars": lambda pairs: polars(pairs).cast(pytest.importorskip("polars").Int64),
    "Arrow": lambda pairs: arrow(pairs).cast(pytest.importorskip("pyarrow").schema([("x0", "int64"), ("x1", "int64")])),
}


@pytest.mark.parametrize("door", PAIR_DOORS)
def test_pairs_are_learned_alike(door):
    likes = PAIRS.sum(axis=1) % 2
    expected = OnlineMatrixClassifier().fit(PAIRS, likes)
    form = PAIR_DOORS[door]
    model = OnlineMatrixClassifier().fit(form(PAIRS), likes)
    for method in ("decision_function", "predict", "predict_proba", "predict_expected"):
        np.testing.assert_array_equal(getattr(model, method)(form(PAIRS)), getattr(expected, method)(PAIRS))


@pytest.mark.parametrize("door", SPARSE)
def test_a_sparse_matrix_is_no_pairs(door):
    with pytest.raises((TypeError, ValueError), match="pairs"):
        OnlineMatrixClassifier().fit(DOORS[door](PAIRS.astype(float)), PAIRS.sum(axis=1) % 2)


def test_doors_and_settings_name_what_there_is():
    assert SETTINGS.keys() | SLACK.keys() <= ESTIMATORS.keys()


# -- functions ----------------------------------------------------------------------------------------------------------


def numbers_of(report):
    """All but the names of columns, which an array has not."""
    return {name: value for name, value in vars(report).items() if name != "columns" and value is not None}


FUNCTIONS = {
    "missingness_report": lambda X, y: numbers_of(missingness_report(X, y, deltas=(0.0,))),
    "value_of_measuring": lambda X, y: value_of_measuring(X, y, X, n_bags=1),
    "karma_kernel": lambda X, y: karma_kernel(X, X),
    "column_pair_sums": lambda X, y: column_pair_sums(X),
}


@functools.cache
def plain_answer(name):
    return FUNCTIONS[name](*problem())


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_tables_answer_alike(name, door):
    X, y = problem()
    # Columns that lie one after the other are summed in another order than rows.
    same(FUNCTIONS[name](DOORS[door](X), y), plain_answer(name), 1e-5 if door == "float32" else 1e-12)


@pytest.mark.parametrize("form", FRAMES.values(), ids=FRAMES)
def test_a_report_names_the_columns_of_a_frame(form):
    assert missingness_report(form(problem()[0]), deltas=(0.0,)).columns.tolist() == ["x0", "x1", "x2", "x3", "x4"]


def test_a_table_of_entries_is_refused_where_cells_or_pairs_are_wanted(tmp_path):
    table = Observed.from_dense(np.eye(3))
    write_batches(tmp_path / "rows", [table])
    for numbers, what in ((table, "an Observed table"), (table.to_scipy(), r"a sparse matrix \(csr_array\)")):
        with pytest.raises(TypeError, match=rf"got {what} of shape \(3, 3\), which holds numbers already. Pass it to"):
            TableEncoder().fit(numbers)
    with pytest.raises(TypeError, match="must be a table in memory"):
        TableEncoder().fit(ObservedFile(tmp_path / "rows"))
    with pytest.raises(TypeError, match="an Observed table is not supported"):
        OnlineMatrixClassifier().fit(table, [1, -1, 1])
