"""Bad input of OnlineMatrixClassifier: a clear error, and the state untouched."""

import contextlib
import copy
import datetime
import decimal
import uuid

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from faulty import Fault, calls_of

from lacunar.completion import Features, Graph, Identity, Kernel, KernelFunction, Mix, OnlineMatrixClassifier
from lacunar.completion.pair_model import IdTable
from lacunar.papers.completion import MatrixExponentiatedGradient
from lacunar.persistence import load_model, save_model

K = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.0]])
PAIRS = [(0, 0), (0, 1), (1, 2), (2, 1), (2, 2)]


def learned(**options):
    options = {"rows": Kernel(K), "cols": Kernel(K)} | options
    rows, cols = zip(*PAIRS, strict=True)
    return MatrixExponentiatedGradient(**options).partial_fit(rows, cols, [1, 0, 1, 1, 0])


def same(a, b):
    """States of plain data, compared to the bit."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return np.array_equal(a, b)


BAD_STREAMS = [
    (([0, 9], [0, 0], [1, 0]), ValueError, r"rows must be ids that Kernel knows.*got 9"),
    (([0, 1], [0, "x"], [1, 0]), ValueError, r"cols must be ids that Kernel knows.*got 'x'"),
    (([0, 1], [0, 1], [1, 2]), ValueError, r"y must hold the labels 0 and 1 of what came before; got 2 at position 1"),
    (([0, 1], [0, 1], [1, -1]), ValueError, r"labels 0 and 1.*got -1"),
    (([0, 1], [0, 1], [1, np.nan]), ValueError, r"NaN or infinity.*position 1"),
    (([0, 1], [0, 1], [1, np.inf]), ValueError, "NaN or infinity"),
    (([0, 1], [0, 1], [1, None]), ValueError, "position 1"),
    (([0, 1], [0, 1], [1]), ValueError, r"one label for each of 2 pairs; got shape \(1,\)"),
    (([0, 1], [0], [1, 0]), ValueError, "one length; got 2 and 1"),
    (([0, None], [0, 1], [1, 0]), ValueError, r"rows\[1\] must be an id"),
    (([0, 1], [0, [1]], [1, 0]), TypeError, r"cols\[1\] must be hashable.*list"),
    (([0, 1], [0, float("nan")], [1, 0]), ValueError, r"cols\[1\]"),
    (("ab", [0, 1], [1, 0]), TypeError, "sequence of ids"),
]


@pytest.mark.parametrize(("stream", "kind", "message"), BAD_STREAMS)
def test_bad_streams_leave_the_state_untouched(stream, kind, message):
    model = learned()
    before = copy.deepcopy(model.state())
    for call in (model.partial_fit, model.score_stream):
        with pytest.raises(kind, match=message):
            call(*stream)
        assert same(model.state(), before)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([(0, 9)], [1]),
        ([(0, 0)], [5]),
        ([(0, 0)], None),
        ([], []),
        ([(0, 0)] * 3, [1, 2, 3]),
        ([(0, 0), (0, 1)], [-1, 0]),
        ([0, 1], [0, 1]),
    ],
)
def test_a_failed_fit_leaves_the_old_one(X, y):
    model = learned()
    before = copy.deepcopy(model.state())
    with pytest.raises((ValueError, TypeError)):
        model.fit(X, y)
    assert same(model.state(), before)


@pytest.mark.parametrize(
    ("pair", "message"), [((9, 0), "rows"), ((0, 9), "cols"), ((None, 0), "row must be"), ((0, []), "col must be")]
)
def test_bad_pairs_one_by_one(pair, message):
    model = learned()
    before = copy.deepcopy(model.state())
    for call in (model.decision_one, model.predict_one, model.predict_proba_one, lambda *p: model.learn_one(*p, 1)):
        with pytest.raises((ValueError, TypeError), match=message):
            call(*pair)
    with pytest.raises(ValueError, match="labels 0 and 1"):
        model.learn_one(0, 0, "yes")
    assert same(model.state(), before)


BAD_OPTIONS = [
    ({"gamma": 0}, "gamma"),
    ({"gamma": 1.5}, "gamma"),
    ({"gamma": float("nan")}, "gamma"),
    ({"step": 0.0}, "step"),
    ({"step": 2.0}, "step"),
    ({"step": float("inf")}, "step"),
    ({"step": "slow"}, "step"),
    ({"step_scale": 0}, "step_scale"),
    ({"step": "fixed"}, "horizon"),
    ({"horizon": (9, 0, 3)}, "horizon must be a number of trials or"),
    ({"horizon": 0}, "horizon"),
    ({"gamma": "theory"}, "gamma"),
    ({"d": "theory"}, "'d'"),
    ({"d": 0.5}, "'d'"),
    ({"thresholds": [3, 2]}, "thresholds"),
    ({"thresholds": [np.nan]}, "thresholds"),
    ({"unseen": "guess"}, "unseen"),
    ({"rows": K}, "rows"),
    ({"rows": None, "cols": None, "d": 5.0}, "'neutral'"),
    ({"rows": None, "cols": None, "step": "fixed", "horizon": 9}, "'anytime'"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_bad_options(options, message):
    options = {"rows": Kernel(K), "cols": Kernel(K)} | options
    with pytest.raises((ValueError, TypeError), match=message):
        MatrixExponentiatedGradient(**options).partial_fit([0], [0], [1])
    model = learned()
    expected, before = model.decision_function(PAIRS), model.get_params(deep=False)
    model.set_params(**options)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(PAIRS, [0, 1, 0, 1, 0])
    model.set_params(**before)
    np.testing.assert_array_equal(model.decision_function(PAIRS), expected)


two = sp.csr_array(np.kron(np.eye(2), [[0, 1], [1, 0]]))
BAD_SIDES = [
    (lambda: Kernel([[1.0, 2.0], [2.0, 1.0]]), "semidefinite"),
    (lambda: Kernel([[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
    (lambda: Kernel([[1.0, np.nan], [np.nan, 1.0]]), "finite"),
    (lambda: Kernel([[1.0, np.inf], [np.inf, 1.0]]), "finite"),
    (lambda: Kernel(K, ids=["a", "b"]), "ids"),
    (lambda: Features([[1.0, np.inf], [0.0, 1.0]]), "finite"),
    (lambda: Identity(0), "n"),
    (lambda: Mix(Kernel(K), info=0.9), "sum"),
    (lambda: Graph(two, kind="pd"), "connected|pieces"),
]


@pytest.mark.parametrize(("side", "message"), BAD_SIDES)
def test_bad_side_information(side, message):
    with pytest.raises(ValueError, match=message):
        MatrixExponentiatedGradient(side()).learn_one(0, 0, 1)


def test_graphs_in_pieces_and_lone_vertices_go_on_learning():
    lone = sp.csr_array(np.pad(two.toarray(), (0, 1)))
    with pytest.warns(UserWarning, match="piece|component|connected|alone"):
        model = MatrixExponentiatedGradient(Graph(lone, kind="pinv")).fit(
            [(k, c) for k in range(5) for c in "xy"] * 4, [k < 2 for k in range(5) for _ in "xy"] * 4
        )
    scores = model.decision_function([(k, "x") for k in range(5)])
    assert (scores[:2] > 0.1).all()
    assert (scores[2:] < -0.1).all()


def test_a_point_outside_the_domain_changes_nothing():
    model = MatrixExponentiatedGradient(KernelFunction("min", r=2.0))
    model.partial_fit([(0.5, 1.0), (-1.0, 0.0)], ["x", "y"], [1, 0])
    expected = model.decision_function([((0.5, 1.0), "x")])
    with pytest.raises(ValueError, match=r"\(9.0, 0.0\)"):
        model.partial_fit([(0.5, 1.0), (9.0, 0.0)], ["x", "y"], [1, 0])
    with pytest.raises(ValueError, match=r"\(9.0, 0.0\)"):
        model.learn_one((9.0, 0.0), "x", 1)
    np.testing.assert_array_equal(model.decision_function([((0.5, 1.0), "x")]), expected)
    assert model.n_seen_ == 2


OTHERS = {
    "kernel": {"rows": Kernel(K + 0.01 * np.ones((3, 3)))},
    "ids": {"rows": Kernel(K, ids=["a", "b", "c"])},
    "kind": {"rows": Identity(3)},
    "size": {"rows": Identity(4)},
    "nothing": {"rows": None, "cols": None},
    "thresholds": {"thresholds": [1, 2]},
}


@pytest.mark.parametrize("options", OTHERS.values(), ids=OTHERS)
def test_states_of_another_classifier_are_refused(options):
    state = learned().state()
    other = (
        learned(**options)
        if options.get("rows", 0) is None or "ids" not in str(options)
        else MatrixExponentiatedGradient(**options)
    )
    before = copy.deepcopy(other.state())
    with pytest.raises(ValueError, match="this side information"):
        type(other).from_state(state, **other.get_params(deep=False))
    assert same(other.state(), before)


@pytest.mark.parametrize(
    "damage",
    [
        {},
        {"tables": []},
        {"engines": 3},
        {"curves": [[1.0]]},
        {"n_seen": None},
        {"n_seen": -1},
        {"curves": [[np.nan] * 5]},
    ],
)
def test_damaged_states_are_refused(damage):
    model = learned()
    before = copy.deepcopy(model.state())
    with pytest.raises(ValueError, match="state must"):
        type(model).from_state(before | damage if damage else {}, **model.get_params(deep=False))
    assert same(model.state(), before)


def test_files_of_other_side_information_are_refused(tmp_path):
    model = learned()
    model.rows.K = np.eye(3)  # someone changes what the state was learned with
    save_model(model, tmp_path / "m.lacunar")
    with pytest.raises(ValueError, match="side information"):
        load_model(tmp_path / "m.lacunar")


def test_a_comparator_that_does_not_fit_is_refused():
    model = learned()
    before = copy.deepcopy(model.state())
    for comparator, message in (("best", "majority"), ([1], "one label"), ([1, 3], "labels 0 and 1")):
        with pytest.raises(ValueError, match=message):
            model.score_stream([0, 1], [0, 1], [1, 0], comparator=comparator)
    assert same(model.state(), before)


GROWING = {
    "nothing": (None, None),
    "vectors": (KernelFunction("gaussian"), (1.0, 2.0)),
    "a function": (KernelFunction(lambda x, y: min(x, y) + 1.0), 3.0),
    "features": (Features([[0.0, 1.0], [1.0, 2.0]]), [3.0, 4.0]),
    "several": ([Features([[0.0, 1.0], [1.0, 2.0]]), Features(["a", "b"])], ([3.0, 4.0], ["a"])),
    "mixed": (Mix(KernelFunction("gaussian")), (1.0,)),
}


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("name", GROWING)
def test_an_id_that_was_on_its_way_arrives_or_never_came(name, error):
    """An error at any call leaves the table with the id and its point, or without them, when it is asked next."""
    side, value = GROWING[name]

    def grown(number=None):
        table = IdTable(side, "rows")
        with contextlib.suppress(error), Fault(number or 10**9, error):
            table.add("new", value)
        return table, table.place("new", "prior")

    empty, full = IdTable(side, "rows"), grown()[0]
    found = set()
    for number in range(1, calls_of(grown)):
        table, vertex = grown(number)
        expected = full if vertex >= 0 else empty
        assert same(table.state(), expected.state())
        np.testing.assert_array_equal(table.side.dense(), expected.side.dense())
        np.testing.assert_array_equal(table.side.diagonal(), expected.side.diagonal())
        found.add(vertex >= 0)
        if vertex < 0:
            assert table.add("new", value) == empty.side.size
        np.testing.assert_array_equal(table.side.dense(), full.side.dense())
    assert found == {True, False}


IDS = [
    b"ab",
    frozenset(["b", "a", 3]),
    (1, b"c", ("x", None)),
    uuid.UUID(int=7),
    decimal.Decimal("1.50"),
    datetime.date(2020, 2, 29),
    datetime.time(12, 30),
    datetime.datetime(2020, 2, 29, 12, tzinfo=datetime.UTC),
    pd.Timestamp("2020-02-29 12:30"),
    np.datetime64("2020-02-29"),
    "x" * 10_000,
    "\ud800",
    2**70,
    True,
]


def test_ids_of_every_plain_kind_are_saved(tmp_path):
    ids = [name for number, name in enumerate(IDS) for _ in range(2 + number % 2)]
    model = OnlineMatrixClassifier().partial_fit(ids, ids[::-1], [number % 3 > 0 for number in range(len(ids))])
    save_model(model, tmp_path / "m.lacunar")
    again = load_model(tmp_path / "m.lacunar")
    assert same(again.state(), model.state())
    assert [again.decision_one(name, "new") for name in IDS] == [model.decision_one(name, "new") for name in IDS]
    assert len({again.decision_one(name, "new") for name in IDS}) > 2


@pytest.mark.parametrize("name", [(1, np.nan), frozenset([np.inf]), ("a", (np.nan,)), decimal.Decimal("nan"), pd.NaT])
def test_ids_that_hold_nan_are_no_ids(name):
    """A tuple that holds NaN equals itself, and none that is read from a file."""
    model = OnlineMatrixClassifier().partial_fit([0], [0], [1])
    for call in (lambda: model.learn_one(name, 0, 1), lambda: model.partial_fit([name], [0], [1])):
        with pytest.raises(ValueError, match="must be an id, not NaN"):
            call()
    with pytest.raises(ValueError, match=r"ids\[1\] must be an id"):
        OnlineMatrixClassifier(Features(np.eye(2), ids=[0, name])).learn_one(0, 0, 1)
    assert model.n_seen_ == 1


@pytest.mark.parametrize("ids", [{0, 1}, {0: 1, 1: 2}, frozenset([0, 1])])
def test_what_has_no_order_names_no_rows(ids):
    with pytest.raises(TypeError, match="rows must be a sequence of ids"):
        OnlineMatrixClassifier().partial_fit(ids, [0, 1], [0, 1])


@pytest.mark.parametrize("rating", [0, 6, 2.5, -1, 1e9, False])
def test_a_rating_that_was_not_named_is_refused_and_nothing_is_learned(rating):
    model = OnlineMatrixClassifier(thresholds="auto").partial_fit([0, 1], [0, 1], [1, 5], classes=[1, 2, 3, 4, 5])
    before = copy.deepcopy(model.state())
    for call in (
        lambda: model.learn_one(0, 1, rating),
        lambda: model.partial_fit([0, 1], [1, 0], [1, rating]),
        lambda: model.score_stream([0, 1], [1, 0], [rating, 1]),
        lambda: model.score_stream([0], [1], [1], comparator=[rating]),
    ):
        with pytest.raises(ValueError, match=r"ratings \[1, 2, 3, 4, 5\].*got .* at position \d. Recode it, name all"):
            call()
        assert same(model.state(), before)
    assert model.score([(0, 0), (0, 1)], [rating, rating]) == 0
    model.learn_one(0, 1, 3.0)
    with pytest.raises(ValueError, match="name all by classes="):
        OnlineMatrixClassifier(thresholds="auto").partial_fit([0], [0], [rating], classes=[1, 2, 3, 4, 5])


@pytest.mark.parametrize("classes", [[1, 2], [1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4]])
def test_other_ratings_are_not_named_later(classes):
    model = OnlineMatrixClassifier(thresholds="auto").partial_fit([0], [0], [1], classes=[1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit([0], [0], [1], classes=classes)
    model.partial_fit([0], [0], [1], classes=[5, 4, 3, 2, 1])
    assert model.n_seen_ == 2


@pytest.mark.parametrize("thresholds", ["AUTO", ["a"], {2}, [[1, 2]], [1, 1]])
def test_thresholds_are_refused_by_name(thresholds):
    with pytest.raises(ValueError, match=r"'?thresholds'? .*must be"):
        OnlineMatrixClassifier(thresholds=thresholds).partial_fit([0, 1], [0, 1], [1, 2])


@pytest.mark.parametrize("before", [None, [2, 3], "auto"])
@pytest.mark.parametrize("after", [None, [2, 4], [2, 3, 4], "auto"])
def test_thresholds_stay_until_the_next_fit(before, after):
    model = OnlineMatrixClassifier(thresholds=before).partial_fit([0, 1], [0, 1], [0, 1])
    model.set_params(thresholds=after)
    if before == after:
        assert model.partial_fit([0], [1], [1]).n_seen_ == 3
        return
    for call in (lambda: model.partial_fit([0], [1], [1]), lambda: model.predict([(0, 1)]), lambda: copy.copy(model)):
        with pytest.raises(ValueError, match=r"thresholds must stay .* got .* Set them back, or fit again"):
            call()
    assert model.set_params(thresholds=before).n_seen_ == 2
    assert model.set_params(thresholds=after).fit([(0, 1), (1, 1)], [0, 1]).n_seen_ == 2


def test_missing_values_of_frames_are_no_ids():
    rows = pd.Series(pd.array([1, None], dtype="Int64"))
    with pytest.raises(ValueError, match=r"rows\[1\] must be an id, not NaN, infinity or None; got <NA>"):
        OnlineMatrixClassifier().partial_fit(rows, [0, 1], [0, 1])


def test_a_list_in_a_list_is_no_side_information():
    with pytest.raises(TypeError, match="must hold nothing else; got list"):
        OnlineMatrixClassifier([[Identity(3)]]).learn_one(0, 0, 1)


@pytest.mark.parametrize("weight", [[-1.0], [np.nan], [0.0], [1.0, 2.0]])
def test_scores_refuse_bad_weights_and_no_pairs(weight):
    model = OnlineMatrixClassifier().partial_fit([0], [0], [1])
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        model.score([(0, 0)], [1], sample_weight=weight)
    with pytest.raises(ValueError, match="at least one pair to be scored"):
        model.score([], [])


def test_errors_about_long_ids_are_short():
    model = OnlineMatrixClassifier(Identity(3), unseen="raise")
    for call in (lambda: model.learn_one("x" * 10_000, 0, 1), lambda: model.predict_one("x" * 10_000, 0)):
        with pytest.raises(ValueError, match=r"'xxxx.*\.\.\.") as error:
            call()
        assert len(str(error.value)) < 400
