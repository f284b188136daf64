"""One thread learns, others ask: every answer is that of the model after some whole number of calls.

LACUNAR_SERVING=10000 asks every class so many times.
"""

import copy
import functools
import inspect
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import public
import pytest
from faulty import LIBRARY, problem
from sklearn.base import clone

from lacunar import KarmaOnlineClassifier, KarmaOnlineRegressor
from lacunar.active import MBEG, ActivePOPCA
from lacunar.completion import Identity, OnlineMatrixClassifier
from lacunar.lowrank import GROUSE, PETRELS, POPCA, GaussianRegressor, SLRMOnlineRegressor
from lacunar.papers.completion import MatrixExponentiatedGradient
from lacunar.persistence import load_model, save_model
from lacunar.uncertainty import MeasuringLoop

ANSWERS = int(os.environ.get("LACUNAR_SERVING", "80"))  # of every class, by all threads that ask
ASKING = 2 if ANSWERS < 1000 else 8  # threads
CALLS = 8  # that learn, of one round
PATIENCE = 120  # seconds until a thread that waits is taken for one that waits for ever

# -- streams: how a model begins, what each call teaches it, what may be asked ------------------------------------------


def rows_of(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.4] = np.nan
    return X


def whole_copy(model):
    return pickle.loads(pickle.dumps(model))


def both(answer):
    """The arrays of an answer side by side."""
    return np.concatenate([np.ravel(part) for part in answer])


class Stream:
    """Calls to teach a model with, and questions by name."""

    def __init__(self, model, batches, questions, learn=lambda model, batch: model.partial_fit(*batch)):
        self.model, self.batches, self.questions, self.learn = model, batches, questions, learn

    def begun(self):
        """A model that has learned the first batch."""
        model = copy.deepcopy(self.model)
        self.learn(model, self.batches[0])
        return model

    @functools.cached_property
    def prefixes(self):
        """By question: the answers after one call, after two, and so on, as bytes."""
        model, answers = self.begun(), {name: [] for name in self.questions}
        for batch in [*self.batches[1:], None]:
            for name, ask in self.questions.items():
                answers[name].append(np.asarray(ask(model)).tobytes())
            if batch is not None:
                self.learn(model, batch)
        for name, known in answers.items():
            assert len(set(known)) == len(known), f"{name} does not tell prefixes apart"
        return answers


def rows_stream(model, questions, *, n=1000, d=30, labels=None):
    X = rows_of(n * CALLS, d)
    cuts = [slice(k * n, (k + 1) * n) for k in range(CALLS)]
    y = None if labels is None else labels(np.nan_to_num(X))
    first = ([0, 1, 2],) if labels is classes_of else ()
    batches = [(X[cut],) if y is None else (X[cut], y[cut], *(first if k == 0 else ())) for k, cut in enumerate(cuts)]
    return Stream(model, batches, questions)


def classes_of(X):
    return np.digitize(X[:, 0], [-0.5, 0.5])


def numbers_of(X):
    return X[:, :3].sum(axis=1)


ROWS = rows_of(60, 30, seed=9)
FEW = ROWS[:1]
PAIRS = np.random.default_rng(1).integers(40, size=(400, 2))
SIGNS = np.where((PAIRS % 2).sum(axis=1) == 1, 1, -1)


def classifier_questions():
    return {
        "decision_function": lambda m: m.decision_function(ROWS),
        "predict_proba": lambda m: m.predict_proba(FEW),
        "pickle": lambda m: whole_copy(m).decision_function(FEW),
    }


def pair_questions():
    return {
        "decision_function": lambda m: m.decision_function(PAIRS[:50]),
        "predict_proba": lambda m: m.predict_proba(PAIRS[:50]),
        "predict_proba_one": lambda m: np.array([*m.predict_proba_one(0, 1).values()]),
        "pickle": lambda m: whole_copy(m).decision_function(PAIRS[:5]),
    }


def subspace_questions():
    return {
        "transform": lambda m: m.transform(ROWS),
        "impute": lambda m: m.impute(ROWS),
        "pickle": lambda m: whole_copy(m).transform(FEW),
    }


def pairs_stream(model, **learned):
    batches = [(PAIRS[k::CALLS], SIGNS[k::CALLS]) for k in range(CALLS)]
    return Stream(model, batches, pair_questions(), lambda m, batch: m.partial_fit(*batch, **learned))


def tell(model, seed):
    rng = np.random.default_rng(seed)
    for request in model.ask(1):
        model.tell(request, rng.normal(size=len(request.indices)))


def sampler_stream(model, questions):
    start = copy.deepcopy(model).run(lambda indices: np.cos(3.0 * indices), 40)
    return Stream(start, [*range(CALLS)], questions, tell)


def measured(loop, value):
    loop.tell(value, float(value))


def measuring_stream():
    X, y = problem()
    loop = MeasuringLoop(GaussianRegressor(max_iter=3).fit(X, y.astype(float)), budget=9)
    loop.add(np.full((CALLS, X.shape[1]), np.nan))
    loop.ask()
    return Stream(
        loop,
        [*range(CALLS)],
        {"pickle": lambda m: both([(c := copy.copy(m)).rows_, c.spent_, [*c.pending_]])},
        measured,
    )


def regression_questions():
    return {
        "predict": lambda m: both(m.predict(ROWS, return_std=True)),
        "feature_coef_": lambda m: m.feature_coef_,
        **subspace_questions(),
    }


STREAMS = {
    "KarmaOnlineClassifier": lambda: rows_stream(
        KarmaOnlineClassifier(), classifier_questions(), labels=classes_of, n=1500
    ),
    "KarmaOnlineClassifier, rows": lambda: rows_stream(
        KarmaOnlineClassifier(2.5), classifier_questions(), labels=classes_of, n=200
    ),
    "KarmaOnlineRegressor": lambda: rows_stream(
        KarmaOnlineRegressor(),
        {"predict": lambda m: m.predict(ROWS), "one": lambda m: m.predict_one({0: 1.0, 3: 2.0})},
        n=5000,
        labels=numbers_of,
    ),
    "SLRMOnlineRegressor": lambda: rows_stream(
        SLRMOnlineRegressor(3, random_state=0), regression_questions(), labels=numbers_of
    ),
    "SLRMOnlineRegressor, per column": lambda: rows_stream(
        SLRMOnlineRegressor(3, correlation="per-column", random_state=0),
        {"predict": lambda m: m.predict(ROWS), "transform": lambda m: m.transform(ROWS)},
        labels=numbers_of,
    ),
    "PETRELS": lambda: rows_stream(
        PETRELS(3, random_state=0), {"components_": lambda m: m.components_, **subspace_questions()}
    ),
    "PETRELS, shared": lambda: rows_stream(PETRELS(3, correlation="shared", random_state=0), subspace_questions()),
    "GROUSE": lambda: rows_stream(
        GROUSE(3, random_state=0), {"score_samples": lambda m: m.score_samples(ROWS), **subspace_questions()}
    ),
    "POPCA": lambda: rows_stream(
        POPCA(3, random_state=0),
        {"covariance": lambda m: m.get_covariance(), "score": lambda m: m.score(ROWS), **subspace_questions()},
    ),
    "OnlineMatrixClassifier": lambda: pairs_stream(OnlineMatrixClassifier()),
    "MatrixExponentiatedGradient": lambda: pairs_stream(MatrixExponentiatedGradient(rows=Identity())),
    "ActivePOPCA": lambda: sampler_stream(
        ActivePOPCA(12, 2, n_observed=4, random_state=0),
        {"result": lambda m: m.result().covariance_, "pickle": lambda m: whole_copy(m).result().covariance_},
    ),
    "MBEG": lambda: sampler_stream(
        MBEG(12, 2, n_observed=4, refresh=2, random_state=0),
        {
            "result": lambda m: both([(r := m.result()).covariance_, r.weights_]),
            "copy": lambda m: whole_copy(m).potential_,
        },
    ),
    "MeasuringLoop": measuring_stream,
}


def public_online_classes():
    """Classes that packages of lacunar export and that learn in steps."""
    return [c for c in public.classes(most_dots=1) if {"partial_fit", "learn_one", "tell"} & set(dir(c))]


def test_every_class_that_learns_in_steps_is_here():
    of_a_paper = {"MatrixExponentiatedGradient"}
    assert {c.__name__ for c in public_online_classes()} | of_a_paper == {name.split(",")[0] for name in STREAMS}


# -- answers --------------------------------------------------------------------------------------------------------------


class Questioner:
    """What a thread that asks has met: answers, and those of no prefix or of an earlier one than the answer before."""

    def __init__(self, stream):
        self.stream, self.count, self.torn, self.back = stream, 0, [], []

    def round(self, model, learning):
        last = dict.fromkeys(self.stream.questions, 0)
        while learning.is_set():
            for name, ask in self.stream.questions.items():
                try:
                    came = np.asarray(ask(model)).tobytes()
                except Exception as error:  # a torn state raises whatever it likes
                    came = repr(error)
                self.count += 1
                prefixes = self.stream.prefixes[name]
                if came not in prefixes:
                    self.torn.append((name, came[:80]))
                elif prefixes.index(came) < last[name]:
                    self.back.append(name)
                else:
                    last[name] = prefixes.index(came)


@pytest.fixture
def hurried():
    """Threads that change places often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_answers_are_those_of_prefixes(name, hurried):
    stream = STREAMS[name]()
    questioners = [Questioner(stream) for _ in range(ASKING)]
    while sum(q.count for q in questioners) < ANSWERS:
        model, learning = stream.begun(), threading.Event()
        learning.set()
        threads = [threading.Thread(target=q.round, args=(model, learning)) for q in questioners]
        for thread in threads:
            thread.start()
        try:
            for batch in stream.batches[1:]:
                stream.learn(model, batch)
        finally:
            learning.clear()
            for thread in threads:
                thread.join(PATIENCE)
        for question, ask in stream.questions.items():
            assert np.asarray(ask(model)).tobytes() == stream.prefixes[question][-1], f"{question}: learned otherwise"
    answers, torn = sum(q.count for q in questioners), [t for q in questioners for t in q.torn]
    if "LACUNAR_SERVING" in os.environ:
        print(f"{name}: {len(torn)} torn of {answers}")
    assert not torn, f"{len(torn)} of {answers} answers were of no prefix: {torn[:3]}"
    assert not any(q.back for q in questioners)


class Pause:
    """Stops a thread at the n-th line of the package that it runs, until it may go on."""

    def __init__(self, number):
        self.number, self.count = number, 0
        self.there, self.go_on = threading.Event(), threading.Event()

    def trace(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(LIBRARY):
            return None
        if event == "line":
            self.count += 1
            if self.count == self.number:
                self.there.set()
                self.go_on.wait(PATIENCE)
        return self.trace

    def run(self, act):
        sys.settrace(self.trace)
        try:
            act()
        finally:
            sys.settrace(None)
            self.there.set()


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_a_thread_asks_in_the_midst_of_learning(name):
    """At moments of a call that learns, most of them near its end, where attributes change: answers are those before the call or after it."""
    stream = STREAMS[name]()
    begun = stream.begun()
    counting = Pause(0)
    counting.run(lambda: stream.learn(copy.deepcopy(begun), stream.batches[1]))
    last = counting.count
    moments = np.unique(np.clip([*np.linspace(1, last, 6), *range(last - 40, last, 3)], 1, last).astype(int))
    for moment in moments:
        model, pause, answers = copy.deepcopy(begun), Pause(moment), {}

        def ask(model=model, answers=answers):
            for question, answer in stream.questions.items():
                answers[question] = np.asarray(answer(model)).tobytes()

        learner = threading.Thread(target=pause.run, args=(lambda: stream.learn(model, stream.batches[1]),))  # noqa: B023
        asker = threading.Thread(target=ask)
        learner.start()
        assert pause.there.wait(PATIENCE)
        asker.start()
        asker.join(0.02)
        pause.go_on.set()
        learner.join(PATIENCE)
        asker.join(PATIENCE)
        torn = [q for q in stream.questions if answers.get(q) not in stream.prefixes[q][:2]]
        assert not torn, f"torn at line {moment} of {last}"


# -- no method is left out --------------------------------------------------------------------------------------------------

BY_PARTS = {  # methods that do not hold the lock from their beginning to their end
    "fit_batches": "takes the lock for every batch, so that others may ask while the next one is fetched",
    "merge": "takes the lock of the other model before its own, not within it",
    "run": "leaves the model to others while it waits for the oracle",
}


def lock_use(owner, name):
    """What a public method or property of a class does under its lock; the outermost of its wrappers but scikit-learn's counts."""
    method = inspect.getattr_static(owner, name)
    method = getattr(method, "fget", None) or getattr(method, "fn", method)
    while method.__module__.startswith("lacunar") and method.__code__.co_filename.find("sklearn") >= 0:
        method = method.__wrapped__
    return getattr(method, "locks", None) if method.__code__.co_filename.endswith("_lock.py") else None


def own_methods(cls):
    """Public methods and properties that the package defines."""
    for name in dir(cls):
        owner = next(base for base in cls.__mro__ if name in vars(base))
        static = inspect.getattr_static(cls, name)
        takes = inspect.isfunction(static) or isinstance(static, property) or hasattr(static, "fn")
        if not name.startswith("_") and takes and owner.__module__.startswith("lacunar"):
            yield name


@pytest.mark.parametrize("cls", public_online_classes(), ids=lambda c: c.__name__)
def test_every_public_method_takes_the_lock(cls):
    uses = {name: lock_use(cls, name) for name in own_methods(cls)}
    assert [name for name, use in uses.items() if use is None and name not in BY_PARTS] == []
    learning = {
        "fit",
        "partial_fit",
        "learn_one",
        "tell",
        "ask",
        "cancel",
        "add",
        "score_stream",
        "restore",
    }
    assert {name for name in learning & set(uses) if uses[name] != "changes"} == set()
    assert lock_use(cls, "__getstate__"), "a pickle or a file may be of half a call"


# -- the lock itself -----------------------------------------------------------------------------------------------------


def small_model():
    X, y = problem()
    return KarmaOnlineClassifier().partial_fit(X, y, classes=[0, 1]), X, y


def in_thread(act):
    """The thread and the list that gets what `act` returns."""
    results = []
    thread = threading.Thread(target=lambda: results.append(act()), daemon=True)
    thread.start()
    return thread, results


def test_the_lock_is_no_part_of_a_model():
    from lacunar._lock import _GUARDS, lock_of

    model, X, _ = small_model()
    before = (set(vars(model)), model.get_params())
    expected = model.predict(X)
    assert (set(vars(model)), model.get_params()) == before
    with lock_of(model):
        for other in (clone(model), copy.copy(model), copy.deepcopy(model), whole_copy(model)):
            if hasattr(other, "classes_"):
                thread, results = in_thread(lambda other=other: other.predict(X))
                thread.join(PATIENCE)
                np.testing.assert_array_equal(results[0], expected)
    key = id(model)
    assert key in _GUARDS
    del model
    assert key not in _GUARDS


def test_a_thread_may_ask_while_it_learns():
    model, X, y = small_model()

    def batches():
        for start in range(0, 40, 10):
            yield X[start : start + 10], y[start : start + 10]
            assert len(model.predict(X)) == 40  # the generator runs in the thread that learns

    from lacunar._lock import lock_of

    thread, results = in_thread(lambda: model.fit_batches(batches(), classes=[0, 1]))
    thread.join(PATIENCE)
    assert results
    with lock_of(model), lock_of(model):
        model.partial_fit(X, y).predict(X)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals between threads")
def test_ctrl_c_ends_the_waiting():
    from lacunar._lock import lock_of

    model, X, _ = small_model()
    leave, entered = threading.Event(), threading.Event()

    def hold():
        with lock_of(model):
            entered.set()
            leave.wait(PATIENCE)

    thread, _ = in_thread(hold)
    assert entered.wait(PATIENCE)
    main = threading.main_thread().ident
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores Ctrl-C
    try:
        threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            model.predict(X)
    finally:
        signal.signal(signal.SIGINT, before)
    leave.set()
    thread.join(PATIENCE)
    assert len(model.predict(X)) == 40


def run_alone(code):
    """A script that ends by itself, with status 0."""
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], timeout=PATIENCE, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_a_lock_of_its_own():
    run_alone("""
        import os, threading, warnings
        warnings.simplefilter("ignore")
        import numpy as np
        from lacunar import KarmaOnlineClassifier
        from lacunar._lock import changes, reads

        X = np.random.default_rng(0).normal(size=(40, 4))
        model = KarmaOnlineClassifier().partial_fit(X, X[:, 0] > 0, classes=[False, True])
        entered, leave = threading.Event(), threading.Event()

        def hold(model):
            entered.set()
            leave.wait(60)

        thread = threading.Thread(target=changes(hold), args=(model,))
        thread.start()
        entered.wait(60)
        waiting = threading.Thread(target=model.predict, args=(X,))
        waiting.start()
        child = os.fork()
        if child == 0:  # which has half of what the other thread did
            try:
                model.predict(X)
            except RuntimeError as error:
                os._exit(0 if "forks" in str(error) and "Load" in str(error) else 1)
            os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        leave.set()
        thread.join()
        waiting.join()
        child = os.fork()
        if child == 0:
            model.partial_fit(X, X[:, 0] > 0)
            os._exit(0 if len(model.predict(X)) == 40 else 1)
        status |= os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        entered.clear(), leave.clear()
        thread = threading.Thread(target=reads(hold), args=(model,))  # which leaves the model whole
        thread.start()
        entered.wait(60)
        child = os.fork()
        if child == 0:
            os._exit(0 if len(model.predict(X)) == 40 else 1)
        status |= os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        leave.set()
        thread.join()
        model.partial_fit(X, X[:, 0] > 0)
        raise SystemExit(status)
    """)


def test_two_models_merge_one_another():
    X = rows_of(400, 6)
    one, two = (POPCA(2, random_state=0).partial_fit(X[half]) for half in (slice(200), slice(200, 400)))
    threads = [in_thread(lambda a=a, b=b: [a.merge(b) for _ in range(20)]) for a, b in ((one, two), (two, one))]
    for thread, results in threads:
        thread.join(PATIENCE)
        assert results


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_learned_while_a_pickle_is_written_is_not_in_it(name):
    stream, buffers = STREAMS[name](), []
    model = stream.begun()

    def take(buffer):
        if not buffers:
            stream.learn(model, stream.batches[1])
        buffers.append(buffer)

    loaded = pickle.loads(pickle.dumps(model, protocol=5, buffer_callback=take), buffers=buffers)
    for question, ask in stream.questions.items():
        assert np.asarray(ask(loaded)).tobytes() == stream.prefixes[question][0], question


def test_a_file_is_of_a_moment_between_two_calls(tmp_path, hurried):
    stream = STREAMS["PETRELS"]()
    model, done = stream.begun(), threading.Event()

    def learn():
        for batch in stream.batches[1:]:
            stream.learn(model, batch)
        done.set()

    thread, _ = in_thread(learn)
    while not done.is_set():
        save_model(model, tmp_path / "model")
        assert load_model(tmp_path / "model").components_.tobytes() in stream.prefixes["components_"]
    thread.join(PATIENCE)
