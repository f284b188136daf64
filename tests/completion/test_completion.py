"""MatrixExponentiatedGradient: the paper's algorithm, the same however the stream is cut, labels, probabilities, files."""

import pickle

import numpy as np
import pytest
from reference.completion import algorithm_1
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from lacunar.completion import Features, Identity, Kernel, KernelFunction, Mix, OnlineMatrixClassifier, pool
from lacunar.model_selection import ColdColumnKFold, ColdRowKFold, EntryKFold
from lacunar.papers.completion import MatrixExponentiatedGradient, engine, gradient
from lacunar.persistence import load_model, save_model

M, N = 9, 7


def gram(n, seed):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    K = X @ X.T + 0.5 * np.eye(n)
    return K / np.sqrt(np.outer(K.diagonal(), K.diagonal()))


def stream(n=240, seed=0, noise=0.1):
    """Repeated, partly contradicting observations of a 2 x 2 biclustered matrix."""
    rng = np.random.default_rng(seed)
    i, j = rng.integers(M, size=n), rng.integers(N, size=n)
    U = np.where((i % 2) == (j % 2), 1, -1)
    return i.tolist(), j.tolist(), np.where(rng.random(n) < noise, -U, U)


def sides():
    return {"rows": Kernel(gram(M, 0)), "cols": Kernel(gram(N, 1))}


FORMS = {
    "nothing": {},
    "kernels": sides(),
    "features": {
        "rows": Features(np.random.default_rng(3).normal(size=(M, 2)), own=0.2, const=0.1),
        "cols": Identity(N),
    },
    "mixed": {"rows": Mix(Kernel(gram(M, 0)))},
    "conservative": {**sides(), "conservative": True, "step": 0.3},
    "uncalibrated": {**sides(), "calibrate": False},
    "margin": {"gamma": 0.5},
}
every = pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
ALL = [(i, j) for i in range(M) for j in range(N)]


def facts(model):
    return model.n_seen_, model.n_updates_, model.n_mistakes_


@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize("d", [16.4, 30.0])
def test_scores_are_those_of_algorithm_1(conservative, d):
    i, j, y = stream()
    model = MatrixExponentiatedGradient(**sides(), d=d, step=0.4, gamma=0.35, conservative=conservative)
    score = model.score_stream(i, j, y)
    expected, updated = algorithm_1(
        gram(M, 0),
        gram(N, 1),
        zip(i, j, strict=True),
        y,
        D=d,
        steps=np.full(len(y), 0.4),
        gamma=0.35,
        conservative=conservative,
    )
    np.testing.assert_allclose(score.values, expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(score.updated, updated)
    assert score.mistakes == np.sum(np.where(expected >= 0, 1, -1) != y) == model.n_mistakes_


def test_anytime_steps_and_the_neutral_start():
    i, j, y = stream()
    steps = np.minimum(1, 0.7 * np.sqrt((M + N) * np.log(M + N) / (2 * np.arange(1, len(y) + 1))))
    expected, _ = algorithm_1(gram(M, 0), gram(N, 1), zip(i, j, strict=True), y, D=M + N, steps=steps, gamma=1 / 3)
    got = MatrixExponentiatedGradient(**sides(), step_scale=0.7).score_stream(i, j, y).values
    np.testing.assert_allclose(got, expected, atol=1e-9)
    assert got[0] == pytest.approx(0, abs=1e-12)


def test_proposition_4_inductive_is_transductive():
    """Points that come one by one, in any order, are the kernel given whole (R is 1 for both)."""
    i, j, y = stream()
    points = [(0.3 * k, k % 3) for k in range(M)]
    f = KernelFunction("gaussian", length_scale=0.8)
    K = np.array([[np.exp(-np.sum(np.subtract(a, b) ** 2) / 2 / 0.8**2) for a in points] for b in points])
    inductive = MatrixExponentiatedGradient(f, step=0.3).score_stream([points[k] for k in i], j, y)
    transductive = MatrixExponentiatedGradient(Kernel(K), Identity(N), step=0.3).score_stream(i, j, y)
    np.testing.assert_allclose(inductive.values, transductive.values, atol=1e-9)


@every
def test_the_stream_may_be_cut_anywhere(options):
    i, j, y = stream(120)
    whole = MatrixExponentiatedGradient(**options)
    score = whole.score_stream(i, j, y)
    cut, one = MatrixExponentiatedGradient(**options), MatrixExponentiatedGradient(**options)
    wrong = 0
    for a, b in ((0, 1), (1, 50), (50, 50), (50, 120)):
        cut.partial_fit(i[a:b], j[a:b], y[a:b])
    for row, col, label in zip(i, j, y, strict=True):
        wrong += one.predict_one(row, col) != label
        one.learn_one(row, col, label)
    assert facts(whole) == facts(cut) == facts(one)
    assert wrong == score.mistakes
    expected = whole.decision_function(ALL)
    for other in (cut, one):
        np.testing.assert_allclose(other.decision_function(ALL), expected, atol=1e-8)
        np.testing.assert_allclose(other.predict_proba(ALL), whole.predict_proba(ALL), atol=1e-7)
    np.testing.assert_array_equal(one.predict(ALL), whole.predict(ALL))
    one_by_one = [whole.decision_one(*pair) for pair in ALL[:5]]
    np.testing.assert_allclose(one_by_one, expected[:5], atol=1e-9)


@every
def test_a_prediction_is_the_sign_of_its_value_and_changes_nothing(options):
    i, j, y = stream(120)
    model = MatrixExponentiatedGradient(**{**options, "calibrate": False}).partial_fit(i, j, y)
    before = pickle.dumps(model)
    predicted = [model.predict_one(*pair) for pair in ALL]
    assert pickle.dumps(model) == before
    np.testing.assert_array_equal(predicted, model.predict(ALL))
    np.testing.assert_array_equal(predicted, [1 if model.decision_one(*pair) >= 0 else -1 for pair in ALL])


@every
def test_files_and_pickles_resume_exactly(options, tmp_path):
    i, j, y = stream(160)
    model = MatrixExponentiatedGradient(**options).partial_fit(i[:80], j[:80], y[:80])
    model.decision_one(i[80], j[80])  # a question changes nothing
    state = model.state()
    copies = [
        pickle.loads(pickle.dumps(model)),
        MatrixExponentiatedGradient.from_state(state, **clone(model).get_params(deep=False)),
    ]
    save_model(model, tmp_path / "m.lacunar")
    copies.append(load_model(tmp_path / "m.lacunar"))
    model.partial_fit(i[80:], j[80:], y[80:])
    for copy in copies:
        copy.partial_fit(i[80:], j[80:], y[80:])
        assert facts(copy) == facts(model)
        np.testing.assert_array_equal(copy.decision_function(ALL), model.decision_function(ALL))
        np.testing.assert_array_equal(copy.predict_proba(ALL), model.predict_proba(ALL))


def test_ids_of_any_kind_at_any_time():
    i, j, y = stream()
    kinds = [lambda k: k, str, lambda k: ("user", k), lambda k: f"{k}" if k % 2 else k, lambda k: frozenset([k])]
    expected = MatrixExponentiatedGradient().score_stream(i, j, y).values
    for kind in kinds:
        got = MatrixExponentiatedGradient().score_stream([kind(k) for k in i], [kind(k) for k in j], y).values
        np.testing.assert_array_equal(got, expected)
    for form in (np.array(i), np.array(i, dtype=np.int32)):
        np.testing.assert_array_equal(MatrixExponentiatedGradient().score_stream(form, j, y).values, expected)


def test_asking_about_unseen_ids_changes_nothing():
    i, j, y = stream()
    asked, not_asked = MatrixExponentiatedGradient(), MatrixExponentiatedGradient()
    for k in range(60):
        asked.decision_one("nobody", j[k])
        asked.predict_one(f"new {k}", f"new {k}")
        assert asked.learn_one(i[k], j[k], y[k]) == not_asked.learn_one(i[k], j[k], y[k])
    np.testing.assert_array_equal(asked.decision_function(ALL), not_asked.decision_function(ALL))
    assert len(asked._engine.rows.number) == len({*i[:60]})  # sixty strangers share one vertex


def test_unseen_policies():
    model = MatrixExponentiatedGradient().partial_fit(["a", "b"] * 4, ["x"] * 8, [1, 1] * 4)
    assert model.decision_one("new", "x") > 0  # what is known of the column
    refusing = clone(model).set_params(unseen="raise").partial_fit(["a"], ["x"], [1])
    with pytest.raises(ValueError, match=r"cols must be ids known.*'y' at position 1.*unseen='grow'"):
        refusing.predict([("a", "x"), ("a", "y")])
    prior = clone(model).set_params(unseen="prior").partial_fit(["a"], ["x"], [1])
    assert prior.decision_function([("a", "x"), ("new", "x"), ("a", "y")])[1:].tolist() == [0, 0]
    assert prior.predict_one("new", "x") == 1
    prior.learn_one("new", "x", -1)
    assert prior.decision_one("new", "x") != 0


def test_new_ids_bring_their_features():
    model = MatrixExponentiatedGradient(Features(np.array([[1.0, 0.0], [0.0, 1.0]]), ids=["a", "b"], standardize=False))
    model.partial_fit(["a", "b"] * 5, list("vwxyz") * 2, [1, 0] * 5)
    with pytest.raises(ValueError, match="add_row"):
        model.decision_one("c", "v")
    model.add_row("c", [1.0, 0.0]).add_row("d", [0.0, 1.0])
    assert model.decision_one("c", "new") > 0 > model.decision_one("d", "new")
    with pytest.raises(ValueError, match="known among the rows"):
        model.add_row("c", [1.0, 0.0])
    with pytest.raises(ValueError, match="Just learn it"):
        MatrixExponentiatedGradient(Identity(3)).add_row(5, None)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ((False, True), [False, True]),
        ((0, 1), [0, 1]),
        ((-1, 1), [-1, 1]),
        ((0.0, 1.0), [0, 1]),
        (("no", "yes"), ["no", "yes"]),
    ],
)
def test_kinds_of_labels(labels, classes):
    i, j, y = stream()
    expected = MatrixExponentiatedGradient().fit((i, j), y)
    named = np.array(labels)[(y > 0).astype(int)]
    model = MatrixExponentiatedGradient().fit(np.column_stack([i, j]), named)
    assert model.classes_.tolist() == classes
    np.testing.assert_array_equal(model.decision_function(ALL), expected.decision_function(ALL))
    np.testing.assert_array_equal(model.predict(ALL), np.array(labels)[(expected.predict(ALL) > 0).astype(int)])
    assert model.score(np.column_stack([i, j]), named) == expected.score((i, j), y)
    assert set(model.predict_proba_one(0, 0)) == set(classes)


def test_labels_settle_with_the_first_negative_one():
    model = MatrixExponentiatedGradient()
    model.learn_one("a", "x", 1)
    assert model.classes_.tolist() == [-1, 1]
    told = MatrixExponentiatedGradient()
    told.learn_one("a", "x", True)
    assert told.predict_one("a", "x") is True
    model.learn_one("b", "x", 0)
    assert model.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="labels 0 and 1 of what came before; got -1"):
        model.learn_one("b", "x", -1)
    first = MatrixExponentiatedGradient().partial_fit(["a"], ["x"], ["yes"], classes=["yes", "no"])
    assert first.predict_one("a", "x") == "yes"
    with pytest.raises(ValueError, match="classes must be those"):
        first.partial_fit(["a"], ["x"], ["yes"], classes=["yes", "maybe"])


def test_ratings_by_thresholds():
    rng = np.random.default_rng(0)
    i, j = rng.integers(8, size=400), rng.integers(8, size=400)
    stars = 1 + (i % 3) + (j % 3)  # 1 to 5
    model = MatrixExponentiatedGradient(thresholds=[2, 3, 4, 5])
    score = model.score_stream(i, j, stars)
    assert score.values.shape == score.probabilities.shape == (400, 4)
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]
    pairs = np.column_stack([i, j])
    assert model.score(pairs, stars) > 0.6 > np.mean(stars == 3)
    P = model.predict_proba(pairs)
    assert P.shape == (400, 5)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1)
    single = MatrixExponentiatedGradient(thresholds=4).partial_fit(i, j, stars)
    np.testing.assert_array_equal(
        single.decision_function(pairs),
        MatrixExponentiatedGradient().partial_fit(i, j, stars >= 4).decision_function(pairs),
    )
    np.testing.assert_allclose(single.decision_function(pairs), model.decision_function(pairs)[:, 2], atol=1e-9)


def test_contradictions_cancel():
    model = MatrixExponentiatedGradient(step=0.5)
    model.learn_one("a", "x", 1)
    assert model.decision_one("a", "x") > 0.3
    assert model.learn_one("a", "x", -1)
    assert model.decision_one("a", "x") == pytest.approx(0, abs=1e-12)
    conservative = MatrixExponentiatedGradient(conservative=True, step=0.5)
    assert conservative.learn_one("a", "x", -1)  # y_bar = 0 is a mistake
    assert not conservative.learn_one("a", "x", -1)


def test_scikit_learn_uses_it():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(20, size=600), rng.integers(15, size=600)])
    y = (X[:, 0] % 2 == X[:, 1] % 2).astype(int)
    parity = {"rows": Kernel(np.add.outer(np.arange(20), np.arange(20)) % 2 == 0), "cols": None}
    assert cross_val_score(MatrixExponentiatedGradient(), X, y, cv=EntryKFold(3, random_state=0)).mean() > 0.8
    cold = [
        cross_val_score(MatrixExponentiatedGradient(**s), X, y, cv=ColdRowKFold(3, random_state=0)).mean()
        for s in ({}, parity)
    ]
    assert cold[0] < 0.65 < 0.9 < cold[1]  # nothing is known of a new row but what side information says
    assert cross_val_score(MatrixExponentiatedGradient(), X, y, cv=ColdColumnKFold(3, random_state=0)).mean() < 0.65
    with pytest.raises(NotFittedError):
        MatrixExponentiatedGradient().predict(X)
    assert MatrixExponentiatedGradient().predict_one(1, 2) == 1  # the verbs of a stream begin with nothing


# -- memory that ends within a pair --------------------------------------------------------------------------------------


@pytest.mark.parametrize("learn", ["partial_fit", "learn_one"])
@pytest.mark.parametrize("learner", [OnlineMatrixClassifier, MatrixExponentiatedGradient])
def test_a_model_that_learned_half_a_pair_refuses_work(monkeypatch, learner, learn):
    """The error comes, then every call says what to do."""

    def no_memory(call, *args):
        error = MemoryError()
        error.within_row = True
        raise error

    pairs, y = [("a", "x"), ("b", "x"), ("a", "y")], [1, 0, 1]
    model, other = learner().fit(pairs, y), learner().fit(pairs, y)
    with monkeypatch.context() as patched:
        for module in (pool, engine, gradient):
            patched.setattr(module, "within_row", no_memory)
        with pytest.raises(MemoryError):
            model.partial_fit(pairs, y) if learn == "partial_fit" else model.learn_one("a", "x", 0)
    calls = {
        "predict": (pairs,),
        "predict_proba": (pairs,),
        "predict_one": ("a", "x"),
        "partial_fit": (pairs, y),
        "learn_one": ("a", "x", 1),
        "state": (),
        "__getstate__": (),
    }
    for name, arguments in calls.items():
        with pytest.raises(RuntimeError, match=r"must be whole.*Load the model again"):
            getattr(model, name)(*arguments)
    assert other.predict(pairs).tolist() == learner().fit(pairs, y).predict(pairs).tolist()
