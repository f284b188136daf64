"""`PrintedMEG` against Algorithms 1 and 2 word for word, ties and large steps included."""

import numpy as np
import pytest
from reference import meg as twin
from reference import theory
from sklearn.base import clone

from lacunar.completion import Graph, Identity, Kernel, KernelFunction
from lacunar.papers.completion import (
    MatrixExponentiatedGradient,
    PrintedMEG,
    make_biclustered,
    mistake_bound,
    quasi_dimension_bound,
)
from lacunar.papers.completion.meg import trial_draws
from lacunar.persistence import load_model, save_model


def setting(n=20, k=9, seed=0):
    """Appendix A: a (9, 9)-biclustered matrix with a tenth of the labels flipped, and ideal graphs; all entries in random order."""
    rng = np.random.default_rng(seed)
    r, c = (rng.permutation(np.arange(n) % k) for _ in range(2))
    U = rng.choice([-1, 1], size=(k, k))[r][:, c]
    order = rng.permutation(n * n)
    i, j = order // n, order % n
    y = U[i, j] * np.where(rng.random(n * n) < 0.1, -1, 1)
    return r, c, i, j, y


def test_the_papers_own_setting_has_a_step_above_one():
    r, c, i, j, y = setting()
    graphs = [twin.star_of_cliques(each) for each in (r, c)]
    L = [twin.pd_laplacian(A) for A in graphs]
    K = [np.linalg.inv(each) for each in L]
    energy = [np.sum([np.sum(M[np.ix_(g == k, g == k)]) for k in range(9)]) for M, g in zip(L, (r, c), strict=True)]
    D = sum(2 * e * each.diagonal().max() for e, each in zip(energy, K, strict=True)) + 4 * 9
    step = np.sqrt(D * np.log(40) / (2 * 400))
    assert step > 1
    model = PrintedMEG(*(Graph(A, kind="pd", normalize=False) for A in graphs), blocks=(r, c), T=400, random_state=0)
    found = model.score_stream(i, j, y)
    draws = trial_draws(model._live().seed, 0, 400) / 3
    y_bar, predicted, updated = twin.printed(*K, list(zip(i, j, y, strict=True)), D, 1 / 3, step, draws)
    np.testing.assert_allclose(found.values, y_bar, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(found.updated, updated)
    assert found.mistakes == np.sum(predicted != y)


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_conservative_learner_updates_at_every_mistake(one_by_one):
    """With D = m + n the first y_bar is exactly 0: +1 is predicted, so that label -1 is a mistake, though not below 0."""
    model = PrintedMEG(Identity(2), Identity(2), gamma=0.5, eta=0.5, D=4, conservative=True)
    assert model.decision_one(0, 0) == 0.0
    assert model.predict_one(0, 0) == 1
    updated = [model.learn_one(0, 0, -1)] if one_by_one else model.score_stream([0], [0], [-1]).updated.tolist()
    assert updated == [True]
    assert model.n_mistakes_ == 1
    assert model.decision_one(0, 0) < 0


def test_at_the_margin_there_is_no_update_as_printed():
    """y_bar = 1 exactly, the margin: D = 2 (m + n)."""
    tuned = MatrixExponentiatedGradient(Identity(2), Identity(2), gamma=1.0, step=0.5, d=8)
    printed = PrintedMEG(Identity(2), Identity(2), gamma=1.0, eta=0.5, D=8)
    for model, expected in ((tuned, True), (printed, False)):
        stream = clone(model)
        assert model.decision_one(0, 0) == 1.0
        assert model.learn_one(0, 0, 1) is expected
        assert stream.score_stream([0], [0], [1]).updated.tolist() == [expected]


def test_growing_ids_take_the_numbers_of_algorithm_2():
    rng = np.random.default_rng(1)
    M, N = (each @ each.T / 6 + np.eye(5) for each in rng.normal(size=(2, 5, 6)))
    trials = [
        (int(i), int(j), int(y)) for i, j, y in zip(*rng.integers(0, 5, (2, 60)), rng.choice([-1, 1], 60), strict=True)
    ]
    i, j, y = np.array(trials).T
    known = PrintedMEG(
        Kernel(M, normalize=False),
        Kernel(N, normalize=False),
        gamma=0.5,
        eta=0.8,
        D=12.0,
        random_state=0,
    )
    values = known.score_stream(i, j, y).values
    y_bar, _, _ = twin.printed(M, N, trials, 12.0, 0.5, 0.8, np.zeros(60))
    np.testing.assert_allclose(values, y_bar, rtol=1e-8, atol=1e-8)
    grown = PrintedMEG(gamma=0.5, T=100, m=5, n=5, D=12.0, random_state=0)
    eye, step = np.eye(5), np.sqrt(12 * np.log(10) / 200)
    y_bar, _, _ = twin.printed(eye, eye, trials, 12.0, 0.5, step, np.zeros(60))
    np.testing.assert_allclose(grown.score_stream(i, j, y).values, y_bar, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("conservative", [False, True])
def test_points_that_come_have_the_radius_of_their_kernel_function(conservative):
    """Algorithm 2 in boxes (section 5.1): R is r^d of the min kernel, whatever points came."""
    rng = np.random.default_rng(2)
    points, others = rng.uniform(-2, 1, (5, 2)), rng.uniform(-2, 1, (4, 2))
    i, j, y = rng.integers(0, 5, 50), rng.integers(0, 4, 50), rng.choice([-1, 1], 50)
    side = KernelFunction("min", r=2.0, radius=4.0, normalize=False)
    options = {"eta": 0.8, "gamma": 0.5, "D": 12.0, "m": 5, "n": 4, "conservative": conservative}
    model = PrintedMEG(side, side, **options, random_state=0)
    stream = model.score_stream([tuple(points[row]) for row in i], [tuple(others[col]) for col in j], y)
    kernels = theory.min_kernel(points, 2.0), theory.min_kernel(others, 2.0)
    margin = {"gamma": 0.0} if conservative else {"gamma": 0.5, "strict": True}
    y_bar, updated = twin.inductive(
        *kernels, list(zip(i, j, y, strict=True)), 12.0, step=0.8, radii=(4.0, 4.0), **margin
    )
    np.testing.assert_allclose(stream.values, y_bar, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(stream.updated, updated)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"eta": 1.5, "gamma": 0.5, "D": 4.0}, "m and n must be given"),
        ({"conservative": True}, "blocks must be given for gamma=None"),
        ({"gamma": 0.5}, "blocks must be .row_classes, col_classes. for D=None"),
        ({"gamma": 0.5, "blocks": 2}, "blocks must be .row_classes, col_classes. for D=None"),
        ({"blocks": (2, 0)}, "blocks must be .k, l. or"),
        ({"gamma": 0.5, "D": 4.0, "m": 2, "n": 2}, "T must be the number of trials"),
        ({"gamma": 0.5, "D": 0.5}, "'D'"),
        ({"eta": 0.0}, "'eta'"),
        ({**dict.fromkeys(("rows", "cols"), Kernel(np.ones((2, 2)))), "blocks": ([0, 1], [0, 1])}, "infinite bound"),
        ({"rows": Identity(2), "cols": Identity(3), "blocks": ([0, 1], [0, 1])}, "classes"),
    ],
)
def test_what_does_not_go_together(options, match):
    with pytest.raises(ValueError, match=match):
        PrintedMEG(**options).learn_one(0, 0, 1)


@pytest.mark.parametrize("conservative", [False, True])
def test_the_stream_may_be_cut_anywhere_and_goes_on_from_its_state(conservative, tmp_path):
    *_, i, j, y = setting()
    options = {"eta": 0.3, "D": 4.0, "gamma": 1 / 3, "m": 20, "n": 20, "conservative": conservative, "random_state": 0}
    whole, cut, one = (PrintedMEG(**options) for _ in range(3))
    score = whole.score_stream(i, j, y)
    assert score.loss is None
    wrong = 0
    for row, col, label in zip(i.tolist(), j.tolist(), y.tolist(), strict=True):
        wrong += one.predict_one(row, col) != label
        one.learn_one(row, col, label)
    cut.partial_fit(i[:90], j[:90], y[:90])
    save_model(cut, tmp_path / "m.lacunar")
    copies = [
        cut,
        PrintedMEG.from_state(cut.state(), **options | {"random_state": 5}),
        load_model(tmp_path / "m.lacunar"),
    ]
    for model in copies:
        model.partial_fit(i[90:], j[90:], y[90:])
    for model in (*copies, one):
        assert (model.n_updates_, model.n_mistakes_) == (whole.n_updates_, whole.n_mistakes_)
        np.testing.assert_allclose(model.decision_function((i, j)), whole.decision_function((i, j)), atol=1e-8)
        np.testing.assert_array_equal(model.predict((i, j)), whole.predict((i, j)))
    assert wrong == score.mistakes
    with pytest.raises(ValueError, match="seed"):
        PrintedMEG.from_state(whole.state() | {"seed": "x"}, **options)


def test_randomised_draws_belong_to_the_trial():
    *_, i, j, y = setting()
    model = PrintedMEG(eta=0.3, gamma=1 / 3, D=4.0, m=20, n=20, random_state=3).partial_fit(i, j, y)
    assert model.predict_one(0, 0) == model.predict_one(0, 0) == model.predict([(0, 0)])[0]
    shares = []
    for pair in ((0, 0), (0, 1)):
        many = model.predict([pair] * 4000)
        shares.append(np.mean(many == 1))
        rule = model.predict_proba([pair])[0, 1]
        assert shares[-1] == pytest.approx(rule, abs=0.03)


def test_the_papers_tuning_keeps_the_mistake_bound():
    """Theorem 1, realisable case: conservative, eta = gamma = 1/sqrt(k), D of Theorem 3."""
    data = make_biclustered((40, 40), n_clusters=(4, 4), flip=0.0, random_state=0)
    i, j = np.divmod(data.order, 40)
    U, classes = data.complete.ravel()[data.order], (data.row_clusters, data.column_clusters)
    sides = {
        "rows": Graph(data.row_graph, kind="pd", normalize=False),
        "cols": Graph(data.column_graph, kind="pd", normalize=False),
    }
    model = PrintedMEG(**sides, blocks=classes, conservative=True)
    score = model.score_stream(i, j, U)
    D = quasi_dimension_bound(*sides.values(), *classes)
    assert model._engine.members[0].tuning == (0.5, np.log(D / 80), False, 0.5, True, False)
    assert score.mistakes <= mistake_bound(D, 0.5, 40, 40)
    assert model.n_updates_ >= score.mistakes


def test_a_model_file_keeps_the_word(tmp_path):
    model = PrintedMEG(eta=1.49, D=4.0, gamma=1 / 3, m=2, n=2, random_state=0).learn_one
    learner = model.__self__
    for pair in ((0, 0, 1), (0, 1, -1)):
        model(*pair)
    save_model(learner, tmp_path / "m.lacunar")
    again = load_model(tmp_path / "m.lacunar")
    assert again.get_params()["eta"] == 1.49
    assert again.decision_one(1, 1) == learner.decision_one(1, 1)
    assert again.predict_one(1, 1) == learner.predict_one(1, 1)
