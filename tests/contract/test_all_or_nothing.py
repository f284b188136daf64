"""Whatever learns is found in the package by itself: a call that fails leaves the object as it was, whichever class and
method.
"""

import copy
import inspect

import numpy as np
import pandas as pd
import public
import pytest
import scipy.sparse as sparse
from faulty import Fault, calls_of, problem, quiet, state

from lacunar import Observed, active, completion, impute, karma, learner, lowrank, uncertainty
from lacunar._cuts import cuts_of
from lacunar.comparison import TableModel, UserError, load_problem
from lacunar.completion.pair_classifier import PairClassifier
from lacunar.encode import TableEncoder
from lacunar.explanation import Explanation
from lacunar.karma.selection import KernelSelection
from lacunar.karma.solvers import OnlineModel, PrimalModel
from lacunar.kernels import KernelForm
from lacunar.lowrank.parts import InMemory
from lacunar.papers import karma as papers_of_karma
from lacunar.papers import slrm, subspace
from lacunar.papers.completion import MatrixExponentiatedGradient, PrintedMEG

# Public methods that learn, besides those whose name begins with "fit"; `run` keeps what was told before it failed, as
# it says.
LEARN = {
    "partial_fit",
    "learn_one",
    "restore",
    "merge",
    "ask",
    "tell",
    "cancel",
    "add",
    "add_row",
    "add_col",
}
NOT_LEARNING = {
    ("TableModel", "fitted"): "gives the estimator",
}
X, Y = problem()
OTHER, OTHER_Y = problem(seed=1, n=50, d=5)
NUMBERS, OTHER_NUMBERS = np.nansum(X, axis=1), np.nansum(OTHER, axis=1)
MOMENTS = 6


def learning_methods():
    """Names of classes and of their methods that learn."""
    found = set()
    for cls in public.classes():
        for name in dir(cls):
            static = isinstance(inspect.getattr_static(cls, name), classmethod | staticmethod | property)
            learns = name in LEARN or name.startswith("fit")
            if learns and not static and callable(getattr(cls, name)) and (cls.__name__, name) not in NOT_LEARNING:
                found.add((cls.__name__, name))
    return found


# -- for every class a fitted object, and for every method a call that succeeds and calls that must not ---------------


def infinite(table):
    bad = table.copy()
    bad[3, 2] = np.inf
    return bad


def call(name, *given, **options):
    return lambda model: getattr(model, name)(*given, **options)


def of_table(make, y=None, other_y=None):
    """A learner of tables: `fit`, and what comes with it."""
    bad_rows = [infinite(OTHER), np.full(OTHER.shape, "x"), OTHER[:0]]
    bad = [(rows, other_y) for rows in bad_rows]
    if y is not None:
        bad += [(OTHER, other_y[:-1]), (OTHER, None)]
    model, methods = make(), {}
    for name in ("fit", "fit_transform"):
        if hasattr(model, name):
            methods[name] = call(name, OTHER, other_y), [call(name, *given) for given in bad]
    if hasattr(model, "fit_parts"):
        parts = [call("fit_parts", InMemory((rows, other_y))) for rows in bad_rows]
        methods["fit_parts"] = call("fit_parts", InMemory((OTHER, other_y))), parts
    return lambda: make().fit(X, y), methods


def of_stream(make, y=None, other_y=None, **options):
    """A learner of tables that goes on; a stream of batches ends at the one that fails, the first here."""
    begin, methods = of_table(make, y, other_y)
    more, labels = X[::-1].copy(), None if y is None else y[::-1]
    bad = [(infinite(more), labels), (more[:, :3], labels), (np.full(more.shape, "x"), labels)]
    if y is not None:
        bad.append((more, labels[:-1]))
    first = {} if "classes" not in options else {"classes": options["classes"]}
    methods["partial_fit"] = call("partial_fit", more, labels), [call("partial_fit", *given) for given in bad]
    streams = [[], [(infinite(OTHER), other_y)], [3]]
    methods["fit_batches"] = (
        lambda model: model.fit_batches(iter([(OTHER, other_y)]), **first),
        [lambda model, s=s: model.fit_batches(iter(s), **first) for s in streams],
    )
    return begin, methods


def of_steps(make, y, other_y, **options):
    """A stream of `of_stream` that learns rows one by one too."""
    begin, methods = of_stream(make, y, other_y, **options)
    row = {0: 1.0, 3: -0.5}
    methods["learn_one"] = (
        call("learn_one", row, y[0]),
        [call("learn_one", {0: np.inf}, y[0]), call("learn_one", {99: 1.0}, y[0]), call("learn_one", row, None)],
    )
    return begin, methods


FRAME = pd.DataFrame({"a": [1.0, 2.0] * 20, "b": ["x", "y"] * 20, "day": pd.Timestamp("2025-04-10")})
OTHER_FRAME = pd.DataFrame({"c": [1.0, None] * 30, "d": ["u", "v", "w"] * 20})
IDENTIFIERS = pd.DataFrame({"c": [1.0, 2.0] * 200, "id": [f"id{k}" for k in range(400)]})
PAIRS = np.random.default_rng(0).integers(12, size=(60, 2))
SIGNS = np.where(np.arange(60) % 3 == 0, -1, 1)


def of_encoder():
    bad = [IDENTIFIERS, OTHER_FRAME.assign(c=np.inf), OTHER_FRAME.assign(d=[[1]] * 60), OTHER_FRAME[:0]]
    methods = {name: (call(name, OTHER_FRAME), [call(name, X) for X in bad]) for name in ("fit", "fit_transform")}
    return lambda: TableEncoder().fit(FRAME), methods


def of_imputer(make):
    bad = [OTHER_FRAME.assign(c=np.inf), OTHER_FRAME.assign(d=[[1]] * 60), OTHER_FRAME[:0], sparse.eye_array(5)]
    model, methods = make(), {}
    for name in ("fit", "fit_transform"):
        if hasattr(model, name):
            methods[name] = call(name, OTHER_FRAME), [call(name, X) for X in bad]
    return lambda: make().fit(FRAME), methods


def of_learner(make, y, other_y):
    nested = OTHER_FRAME.assign(d=[[1]] * 60)
    bad = [(nested, other_y), (OTHER_FRAME.assign(c=np.inf), other_y), (OTHER_FRAME, other_y[:-1]), (OTHER_FRAME, None)]
    return lambda: make().fit(FRAME, y), {"fit": (call("fit", OTHER_FRAME, other_y), [call("fit", *b) for b in bad])}


def of_table_model():
    """The second problem is of text that the learner inside cannot take, and of another task."""
    first = load_problem(FRAME.assign(y=["u", "v"] * 20), "y")
    other = load_problem(OTHER_FRAME.assign(c=np.arange(60) % 7, y=np.arange(60.0)), "y")
    bad = [call("fit", other, frames=True), call("fit", None)]
    good = load_problem(OTHER_FRAME.assign(y=["r", "s"] * 30), "y")
    return lambda: TableModel(karma.KarmaClassifier()).fit(first), {"fit": (call("fit", good), bad)}


def of_pairs(make):
    other = np.roll(PAIRS, 7, axis=0)
    bad = [(other, SIGNS[:-1]), (other, np.arange(60)), (PAIRS[:, :1], SIGNS), (None, SIGNS)]
    return lambda: make().fit(PAIRS, SIGNS), {
        "fit": (call("fit", other, SIGNS), [call("fit", *given) for given in bad]),
        "partial_fit": (call("partial_fit", other, SIGNS), [call("partial_fit", *given) for given in bad]),
        "fit_batches": (
            lambda model: model.fit_batches(iter([(other, SIGNS)])),
            [lambda model, s=s: model.fit_batches(iter(s)) for s in ([], [3], [bad[0]])],
        ),
        "learn_one": (call("learn_one", 3, 4, 1), [call("learn_one", 3, 4, "maybe"), call("learn_one", [], 4, 1)]),
        "add_row": (None, [call("add_row", 3, None), call("add_row", "new", "no value that side information takes")]),
        "add_col": (None, [call("add_col", 3, None), call("add_col", "new", "no value that side information takes")]),
    }


def of_sampler(make):
    def begin():
        model = make().run(lambda indices: np.cos(3.0 * indices), 20)
        requests.append(model.ask(3)[0])  # the same in every model
        return model

    requests = []
    begin()
    request, values = requests[0], np.zeros(len(requests[0].indices))
    return begin, {
        "ask": (call("ask", 2), [call("ask", 0)]),
        "tell": (
            call("tell", request, values),
            [call("tell", request, values[:-1]), call("tell", request, values + np.inf), call("tell", 10**6, values)],
        ),
        "cancel": (call("cancel", request), [call("cancel", 10**6)]),
    }


def of_measuring():
    model = lowrank.GaussianRegressor(max_iter=3).fit(X, NUMBERS)

    def begin():
        loop = uncertainty.MeasuringLoop(model, budget=2)
        loop.add(X[:5])
        loop.ask()
        loop.add(X[5:9])
        return loop

    row = sorted(begin().pending_)[0]
    return begin, {
        "add": (call("add", X[9:]), [call("add", OTHER), call("add", infinite(X)), call("add", "x")]),
        "ask": (call("ask"), []),
        "tell": (call("tell", row, 1.0), [call("tell", row, np.inf), call("tell", row, "x"), call("tell", 77, 1.0)]),
    }


def of_selection():
    rng = np.random.default_rng(0)
    folds = cuts_of(np.array_split(rng.permutation(40), 2), 40)
    table = np.nan_to_num(X, nan=0.5)

    def begin():
        selection = KernelSelection(screen_rows=20, search_rows=30, full_rows=40, landmarks=10)
        selection.fit(table, NUMBERS[:, None], folds)
        return selection

    bad = [(table, NUMBERS[:-1, None], folds), (table, NUMBERS[:, None], [(np.arange(99), np.arange(99))])]
    rows = Observed.from_dense(table[:, :4])
    return begin, {
        "fit": (call("fit", table[:, :4], NUMBERS[:, None], folds), [call("fit", *given) for given in bad]),
        "fit_expansions": (
            call("fit_expansions", rows, np.arange(40)),
            [call("fit_expansions", rows, np.arange(400)), call("fit_expansions", None, np.arange(40))],
        ),
    }


def of_engine(kind):
    rows, targets = Observed.from_dense(X), (2.0 * Y - 1)[:, None]

    def begin():
        model = kind(KernelForm(gamma=2.0), X.shape[1], 1, loss="hinge", rho=0.05, dtype=np.float64)
        model.partial_fit(rows, targets)
        return model

    bad = [call("partial_fit", rows, targets[:-1]), call("partial_fit", Observed.from_dense(OTHER), targets)]
    return begin, {"partial_fit": (call("partial_fit", rows, targets), bad[:1])}


OTHER_LABELS = np.array(["r", "s"] * 30)
CLASSES = {"classes": [0, 1]}
CASES = {
    "KarmaClassifier": of_table(karma.KarmaClassifier, Y, OTHER_Y),
    "KarmaRegressor": of_table(karma.KarmaRegressor, NUMBERS, OTHER_NUMBERS),
    "KarmaClassifierCV": of_table(karma.KarmaClassifierCV, Y, OTHER_Y),
    "KarmaRegressorCV": of_table(karma.KarmaRegressorCV, NUMBERS, OTHER_NUMBERS),
    "KarmaFeatures": of_table(karma.KarmaFeatures),
    "KarmaOnlineClassifier": of_steps(
        lambda: karma.KarmaOnlineClassifier(random_state=0), Y, OTHER_Y, **CLASSES
    ),
    "KarmaOnlineRegressor": of_steps(
        lambda: karma.KarmaOnlineRegressor(random_state=0), NUMBERS, OTHER_NUMBERS
    ),
    "PrintedKarmaClassifier": of_steps(
        papers_of_karma.PrintedKarmaClassifier, Y, OTHER_Y, **CLASSES
    ),
    "PrintedKarmaRegressor": of_steps(
        lambda: papers_of_karma.PrintedKarmaRegressor(rho=1e4, loss="squared"), NUMBERS, OTHER_NUMBERS
    ),
    "KernelSelection": of_selection(),
    "OnlineModel": of_engine(OnlineModel),
    "PrimalModel": of_engine(PrimalModel),
    "TableEncoder": of_encoder(),
    "Imputer": of_imputer(impute.Imputer),
    "MultipleImputer": of_imputer(lambda: impute.MultipleImputer(2, sweeps=2)),
    "LowRankImputer": of_table(lambda: lowrank.LowRankImputer(random_state=0)),
    "GaussianRegressor": of_table(lambda: lowrank.GaussianRegressor(max_iter=3), NUMBERS, OTHER_NUMBERS),
    "SLRMRegressor": of_table(lambda: lowrank.SLRMRegressor(1, random_state=0), NUMBERS, OTHER_NUMBERS),
    "SLRMRegressorCV": of_table(lambda: lowrank.SLRMRegressorCV([1, 2], cv=2, random_state=0), NUMBERS, OTHER_NUMBERS),
    "SLRMOnlineRegressor": of_stream(lambda: lowrank.SLRMOnlineRegressor(1, random_state=0), NUMBERS, OTHER_NUMBERS),
    "MPCR": of_table(lambda: slrm.MPCR(1, random_state=0), NUMBERS, OTHER_NUMBERS),
    "SMPCR": of_table(lambda: slrm.SMPCR(1, max_iter=2, random_state=0), NUMBERS, OTHER_NUMBERS),
    "PrintedSLRM": of_stream(lambda: slrm.PrintedSLRM(1, gamma=0.99, random_state=0), NUMBERS, OTHER_NUMBERS),
    "PrintedPOPCA": of_stream(lambda: subspace.PrintedPOPCA(1)),
    "PrintedMBEG": of_sampler(lambda: subspace.PrintedMBEG(6, 2, r=4, m=10**5, random_state=0)),
    "PETRELS": of_stream(lambda: lowrank.PETRELS(1, random_state=0)),
    "GROUSE": of_stream(lambda: lowrank.GROUSE(1, random_state=0)),
    "POPCA": of_stream(lambda: lowrank.POPCA(2, refine=0, solver="dense", random_state=0)),
    "GeomClassifier": of_table(papers_of_karma.GeomClassifier, Y, OTHER_Y),
    "MatrixCompletionClassifier": of_table(
        lambda: papers_of_karma.MatrixCompletionClassifier(lam=1.0, mu=1e-2, random_state=0), Y, OTHER_Y
    ),
    "MatrixCompletionRegressor": of_table(
        lambda: papers_of_karma.MatrixCompletionRegressor(lam=1.0, mu=1e-2, random_state=0), NUMBERS, OTHER_NUMBERS
    ),
    "LacunarClassifier": of_learner(
        lambda: learner.LacunarClassifier(members=["logistic"], cv=2, random_state=0), FRAME["b"], OTHER_LABELS
    ),
    "LacunarRegressor": of_learner(
        lambda: learner.LacunarRegressor(members=["kernels"], cv=2, random_state=0), FRAME["a"], np.arange(60.0)
    ),
    "MaskConformalClassifier": of_learner(
        lambda: uncertainty.MaskConformalClassifier(learner.LacunarClassifier(members=["logistic"], cv=2), cv=2),
        FRAME["b"],
        OTHER_LABELS,
    ),
    "MaskConformalRegressor": of_learner(
        lambda: uncertainty.MaskConformalRegressor(learner.LacunarRegressor(members=["gaussian"], cv=2), cv=2),
        FRAME["a"],
        np.arange(60.0),
    ),
    "TableModel": of_table_model(),
    "OnlineMatrixClassifier": of_pairs(completion.OnlineMatrixClassifier),
    "MatrixExponentiatedGradient": of_pairs(MatrixExponentiatedGradient),
    "PrintedMEG": of_pairs(lambda: PrintedMEG(eta=0.3, gamma=0.5, D=8.0, m=12, n=12, random_state=0)),
    "ActivePOPCA": of_sampler(lambda: active.ActivePOPCA(6, 2, n_observed=3, random_state=0)),
    "MBEG": of_sampler(lambda: active.MBEG(6, 2, n_observed=4, refresh=8, random_state=0)),
    "MeasuringLoop": of_measuring(),
}  # fmt: skip
CASES["POPCA"][1]["merge"] = (
    lambda model: model.merge(lowrank.POPCA(2, refine=0, solver="dense").fit(X[::-1])),
    [call("merge", lowrank.POPCA(2).fit(OTHER)), call("merge", lowrank.POPCA(2)), call("merge", None)],
)
METHODS = [(cls, method) for cls, (_, methods) in CASES.items() for method in methods]
REFUSALS = (ValueError, TypeError, KeyError, IndexError, AttributeError, UserError)


def test_every_method_that_learns_is_tried():
    assert learning_methods() == set(METHODS)


def whole_state(model):
    """All that an object is; of a classifier of pairs what it answers, as ids that a failed call brought may stay
    known.
    """
    if isinstance(model, PairClassifier):
        return state(
            [model.decision_function(PAIRS), model.n_seen_, model.n_updates_, model.n_mistakes_, model.classes_]
        )
    return state(model.state() if isinstance(model, OnlineModel | PrimalModel) else model)


@pytest.mark.parametrize(("cls", "method"), METHODS)
def test_what_is_refused_changes_nothing(cls, method):
    begin, methods = CASES[cls]
    with quiet():
        model = begin()
        before = whole_state(model)
        for number, bad in enumerate(methods[method][1]):
            with pytest.raises(REFUSALS):
                bad(model)
            assert whole_state(model) == before, f"call {number}"


# What learns in steps keeps whole rows (test_whole_rows.py); `fit_transform` is two calls, of which the first stays.
IN_PART = {"partial_fit", "learn_one", "fit_transform"}


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "method"), [each for each in METHODS if each[1] not in IN_PART])
def test_what_fails_on_the_way_changes_nothing(cls, method):
    """An exception at moments spread over a call that would succeed."""
    begin, methods = CASES[cls]
    good = methods[method][0]
    if good is None:
        pytest.skip("this side information does not grow")
    with quiet():
        first, twin = begin(), begin()
        for number in np.unique(np.linspace(1, calls_of(lambda: good(twin)), MOMENTS + 1).astype(int))[:-1]:
            model = copy.deepcopy(first)
            before = whole_state(model)
            try:
                with Fault(number) as fault:
                    good(model)
            except (
                MemoryError,
                AttributeError,
            ):  # scikit-learn makes the latter of any error where it looks for a method
                assert whole_state(model) == before, fault.where


def displays():
    """One of every display, drawn."""
    plotting = pytest.importorskip("lacunar.plotting")
    pytest.importorskip("matplotlib.pyplot").switch_backend("agg")
    names, four = ["a", "b"], np.linspace(0.1, 0.9, 4)
    importance = {"column": names, **{key: np.ones(2) for key in ("value", "value_sd", "missing", "missing_sd")}}
    report = {"member": names, "score": four[:2], "weight": four[:2], "seconds": four[:2]}
    explanation = Explanation(
        np.outer(four, [1, -1]), four, np.outer(four, [1, 2]), names, None, np.zeros((4, 2)), np.zeros((4, 2))
    )
    return [
        plotting.WaterfallDisplay(explanation),
        plotting.BeeswarmDisplay(explanation),
        plotting.ScoresDisplay(names, four[:2], four[:2], [True, False], "loss"),
        plotting.CoefficientDisplay(names, four[:2]),
        plotting.ImportanceDisplay(importance),
        plotting.PoolDisplay(report),
        plotting.CoverageDisplay(four, {"a": four}, "RMSE"),
        plotting.CalibrationByMissingDisplay(np.arange(4) % 2, {"a": four}, {"a": four > 0.5}),
        plotting.ShareCurveDisplay(four, {"a": four[:, None]}, "RMSE"),
        plotting.RegretDisplay({"a": four}),
        plotting.ExpertWeightsDisplay(np.arange(4), {"a": four}),
        plotting.TrackingErrorDisplay(np.arange(4), {"a": four}, "error"),
        plotting.MissingnessDisplay.from_table(X),
        plotting.ImputedValuesDisplay({"a": four}, {"a": four[None]}),
        plotting.ChainsDisplay({"a": [four, four]}, {"a": 1.0}),
        plotting.OverimputationDisplay({"a": four}, {"a": [four, four]}),
        plotting.DeltaDisplay(four - 0.5, four, np.column_stack([four, four]), "a", "b"),
    ]


def test_a_picture_that_fails_leaves_the_display():
    """Axes that are none, a keyword that matplotlib does not know: what was drawn before is what the display still
    holds.
    """
    drawn, pyplot = [display.plot() for display in displays()], pytest.importorskip("matplotlib.pyplot")
    assert {type(display) for display in drawn} == set(public.classes("plot"))
    for display in drawn:
        for bad in ({"ax": "no axes"}, {"no_such_keyword": 1}):
            before = dict(vars(display))
            pyplot.close("all")  # it warns of many
            with pytest.raises((ValueError, TypeError, AttributeError)):
                display.plot(**bad)
            assert vars(display).keys() == before.keys(), type(display)
            assert all(vars(display)[name] is value for name, value in before.items()), type(display)
