"""What fails or is interrupted in the middle of a batch: the first rows are learned, each of them whole, and the model says how many."""

import copy
import functools
import itertools
import signal
import threading
from collections import deque

import numpy as np
import public
import pytest
from faulty import Fault, calls_of, quiet

from lacunar import KarmaOnlineClassifier, KarmaOnlineRegressor
from lacunar._lock import WholeRows, changes, reads
from lacunar.completion import Features, KernelFunction, OnlineMatrixClassifier
from lacunar.lowrank import GROUSE, PETRELS, POPCA, SLRMOnlineRegressor
from lacunar.papers.completion import MatrixExponentiatedGradient, PrintedMEG
from lacunar.papers.karma import PrintedKarmaClassifier, PrintedKarmaRegressor

RNG = np.random.default_rng(0)
BEGUN, BATCH = 200, 20_000
X = RNG.normal(size=(BEGUN + BATCH, 3)) @ RNG.normal(size=(3, 12)) + 0.2 * RNG.normal(size=(BEGUN + BATCH, 12))
NUMBERS = X[:, :3].sum(axis=1)
X[RNG.random(X.shape) < 0.4] = np.nan
LABELS = (NUMBERS > 0).astype(int)
PAIRS = RNG.integers(60, size=(BEGUN + BATCH, 2))
SIGNS = np.where(PAIRS.sum(axis=1) % 2 == 0, 1, -1)
ASKED = {"X": X[:50], "pairs": PAIRS[:50]}


class Stream:
    """A learner, its rows with their labels, where it says how many it has learned, and what it answers."""

    def __init__(self, make, data, count, answers, first=None):
        self.make, self.data, self.count, self.answers, self.first = make, data, count, answers, first or {}

    def begun(self):
        model = self.make()
        self.learn(model, 0, BEGUN, **self.first)
        return model

    def learn(self, model, start, stop, **options):
        with quiet():
            model.partial_fit(*(column[start:stop] for column in self.data), **options)

    def seen(self, model):
        return getattr(model, self.count)

    def said(self, model):
        with quiet():
            return [np.asarray(getattr(model, name)(self.data[0][:50])) for name in self.answers]


def rows(make, count="n_rows_seen_", labels=None, answers=("predict",), first=None):
    return Stream(make, (X,) if labels is None else (X, labels), count, answers, first)


class Pairs(Stream):
    """A learner of pairs; labels, or ratings for one with thresholds; pair by pair where `one`."""

    def __init__(self, make, answers=("decision_function", "predict_proba"), ratings=False, one=False):
        super().__init__(make, (PAIRS, RATINGS if ratings else SIGNS), "n_seen_", answers)
        self.one = one

    def learn(self, model, start, stop, **options):
        if not self.one or start == 0:
            return super().learn(model, start, stop, **options)
        for pair, label in zip(self.data[0][start:stop].tolist(), self.data[1][start:stop].tolist(), strict=True):
            model.learn_one(*pair, label)


RATINGS = 1 + (PAIRS.sum(axis=1) + RNG.integers(2, size=len(PAIRS))) % 3
FEATURES = RNG.normal(size=(60, 2))
CLASSES = {"classes": [0, 1]}
SUBSPACE = ("transform", "impute")
STREAMS = {
    "KarmaOnlineClassifier": rows(
        KarmaOnlineClassifier, labels=LABELS, answers=("decision_function", "predict_proba"), first=CLASSES
    ),
    "KarmaOnlineClassifier, rows": rows(
        lambda: KarmaOnlineClassifier(2.5, budget=300), labels=LABELS, answers=("decision_function", "predict_proba"), first=CLASSES
    ),
    "KarmaOnlineRegressor": rows(lambda: KarmaOnlineRegressor(loss="absolute"), labels=NUMBERS),
    "PrintedKarmaClassifier": rows(
        PrintedKarmaClassifier, labels=LABELS, answers=("decision_function",), first=CLASSES
    ),
    "PrintedKarmaRegressor": rows(lambda: PrintedKarmaRegressor(rho=1e4, loss="squared"), labels=NUMBERS),
    "SLRMOnlineRegressor": rows(
        lambda: SLRMOnlineRegressor(3, random_state=0), "n_samples_seen_", NUMBERS, ("predict", *SUBSPACE)
    ),
    "SLRMOnlineRegressor, per column": rows(
        lambda: SLRMOnlineRegressor(3, correlation="per-column", lam1=1.0, random_state=0), "n_samples_seen_", NUMBERS
    ),
    "PETRELS": rows(lambda: PETRELS(3, random_state=0), "n_samples_seen_", answers=SUBSPACE),
    "PETRELS, shared": rows(
        lambda: PETRELS(3, correlation="shared", random_state=0), "n_samples_seen_", answers=SUBSPACE
    ),
    "GROUSE": rows(lambda: GROUSE(3, random_state=0), "n_samples_seen_", answers=("score_samples", *SUBSPACE)),
    "POPCA": rows(lambda: POPCA(3, random_state=0), "n_samples_seen_", answers=SUBSPACE),
    **{
        f"{make.__name__}{name}": Pairs(functools.partial(make, **options), ratings=bool(options), one="one" in name)
        for make in (OnlineMatrixClassifier, MatrixExponentiatedGradient)
        for name, options in {
            "": {}, ", ratings": {"thresholds": "auto"}, ", ratings one by one": {"thresholds": "auto"}
        }.items()
    },
    "OnlineMatrixClassifier, points": Pairs(lambda: OnlineMatrixClassifier(KernelFunction(length_scale=9.0), Features(FEATURES))),
    "PrintedMEG": Pairs(
        lambda: PrintedMEG(eta=0.3, gamma=0.5, D=8.0, m=60, n=60, random_state=0), ("decision_function",)
    ),
}  # fmt: skip

ALL_OR_NOTHING = {
    "PrintedPOPCA",
    "PrintedSLRM",
}  # learn on a copy: a batch that fails changes nothing (test_all_or_nothing)


def test_every_class_that_learns_batches_is_here():
    found = {cls.__name__ for cls in public.classes("partial_fit", "fit")}
    assert found == {name.split(",")[0] for name in STREAMS} | ALL_OR_NOTHING


def says_that_it_is_half_changed(stream, model):
    try:
        stream.said(model)
    except RuntimeError as error:
        return "Load the model again" in str(error)
    return False


def same_as_a_prefix(stream, model, tolerance=0.0):
    """The model is one that has learned whole calls of BATCH rows and the first rows of another, now and later."""
    more = stream.seen(model) - BEGUN
    assert more >= 0
    twin = stream.begun()
    for _ in range(more // BATCH):
        stream.learn(twin, BEGUN, BEGUN + BATCH)
    if more % BATCH:
        stream.learn(twin, BEGUN, BEGUN + more % BATCH)
    assert stream.seen(twin) == stream.seen(model)
    for _ in range(2):
        for one, other in zip(stream.said(model), stream.said(twin), strict=True):
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
        for each in (model, twin):
            stream.learn(each, 0, BEGUN)
    return more


def tolerance_of(name):
    """To the bit; of pairs but for rounding: ids that a lost batch brought keep their places, and sums run in another order."""
    return 1e-9 if isinstance(STREAMS[name], Pairs) else 0.0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
@pytest.mark.parametrize("name", STREAMS)
def test_an_interrupt_leaves_whole_rows(name):
    stream = STREAMS[name]
    model = stream.begun()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            deque((stream.learn(model, BEGUN, BEGUN + BATCH) for _ in itertools.repeat(None)), maxlen=0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    same_as_a_prefix(stream, model, tolerance_of(name))


@pytest.mark.slow
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("name", STREAMS)
def test_an_error_at_any_call_leaves_whole_rows_or_says_so(name, error):
    """At calls of Python functions of the package spread over one batch."""
    stream = STREAMS[name]
    begun, end = stream.begun(), BEGUN + 300
    failed = lost = 0
    count = calls_of(lambda: stream.learn(copy.deepcopy(begun), BEGUN, end))
    for number in np.unique(np.linspace(1, count, 25).astype(int))[:-1]:
        model = copy.deepcopy(begun)
        try:
            with Fault(number, error):
                stream.learn(model, BEGUN, end)
        except (error, AttributeError):  # scikit-learn makes the latter of any error where it looks for a method
            failed += 1
        if says_that_it_is_half_changed(stream, model):
            lost += 1
        else:
            same_as_a_prefix(stream, model, tolerance_of(name))
    assert failed > 5
    assert lost == 0 if error is KeyboardInterrupt else lost < failed


@pytest.mark.parametrize("name", ["PETRELS", "PETRELS, shared", "GROUSE"])
def test_rows_before_one_that_overflows_are_learned(name):
    stream = STREAMS[name]
    model, bad = stream.begun(), X[BEGUN : BEGUN + 100].copy()
    bad[40, :] = 1e300
    with quiet(), pytest.raises(ValueError, match="row 40 overflow"):
        model.partial_fit(bad, *(labels[BEGUN : BEGUN + 100] for labels in stream.data[1:]))
    assert same_as_a_prefix(stream, model) == 40


@pytest.mark.parametrize("name", STREAMS)
def test_the_first_batch_is_learned_whole_or_not_at_all(name):
    stream = STREAMS[name]
    with quiet():
        count = calls_of(stream.begun)
        for number in np.linspace(count // 2, count - 1, 4).astype(int):
            model = stream.make()
            before = set(vars(model))
            try:
                with Fault(number, KeyboardInterrupt):
                    stream.learn(model, 0, BEGUN, **stream.first)
            except KeyboardInterrupt:
                assert set(vars(model)) == before
            else:
                assert stream.seen(model) == BEGUN


class Counter:
    """A model that learns rows in place, one of which may go wrong."""

    def __init__(self):
        self.sum, self.n_seen_ = np.zeros(1), 0

    @changes
    def learn(self, values, error=None, failing_keep=()):
        failures = list(failing_keep)

        def keep():
            if failures:
                raise failures.pop(0)
            self.n_seen_ = int(self.sum[0])

        with WholeRows(self, keep):
            for _ in range(values):
                self.sum += 1
            if error is not None:
                raise error

    @reads
    def ask(self):
        return self.n_seen_


def test_rows_that_were_learned_are_counted():
    model = Counter()
    model.learn(3)
    for error in (ValueError("no"), KeyboardInterrupt(), MemoryError()):
        with pytest.raises(type(error)):
            model.learn(2, error)
    assert model.ask() == 9


def test_an_interrupt_while_rows_are_counted_waits():
    model = Counter()
    with pytest.raises(KeyboardInterrupt):
        model.learn(3, failing_keep=[KeyboardInterrupt()])
    assert model.ask() == 3


@pytest.mark.parametrize("torn", ["within a row", "while rows are counted"])
def test_a_model_that_is_half_changed_says_so(torn):
    model, error = Counter(), MemoryError()
    if torn == "within a row":
        error.within_row = True
    with pytest.raises(MemoryError):
        model.learn(3, error, failing_keep=[] if torn == "within a row" else [MemoryError(), MemoryError()])
    for method in (lambda: model.learn(1), model.ask):
        with pytest.raises(RuntimeError, match=r"must be whole.*Load the model again"):
            method()
    assert Counter().ask() == 0


def test_threads_that_learn_and_ask_come_one_after_the_other():
    """Calls that add a row in two steps, by four threads: none is lost, and nobody sees one of the steps alone."""

    class Steps(Counter):
        @changes
        def add(self):
            self.sum += 1
            self.n_seen_ += 1

        @reads
        def differ(self):
            return self.sum[0] != self.n_seen_

    model, seen = Steps(), []
    teams = [threading.Thread(target=lambda: [model.add() for _ in range(2000)]) for _ in range(4)]
    teams += [threading.Thread(target=lambda: seen.extend(model.differ() for _ in range(2000))) for _ in range(2)]
    for thread in teams:
        thread.start()
    for thread in teams:
        thread.join(60)
    assert model.ask() == 8000
    assert not any(seen)
