"""`paper_learner(options="paper")` against Algorithms 1 and 2 word for word, ties and large steps included."""

from functools import partial

import numpy as np
import pytest
from reference import meg as twin

from lacunar.completion import Graph, Identity, Kernel, OnlineMatrixClassifier
from lacunar.completion.classifier import trial_draws
from lacunar.persistence import load_model, save_model

paper_learner = partial(OnlineMatrixClassifier, experts=None)  # the learner of the paper, without a pool around it


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
    model = paper_learner(
        *(Graph(A, kind="pd", normalize=False) for A in graphs),
        gamma="theory", blocks=(r, c), horizon=400, options="paper", random_state=0,
    )  # fmt: skip
    found = model.score_stream(i, j, y)
    draws = trial_draws(model.seed_, 0, 400) / 3
    y_bar, predicted, updated = twin.printed(*K, list(zip(i, j, y, strict=True)), D, 1 / 3, step, draws)
    np.testing.assert_allclose(found.values, y_bar, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(found.updated, updated)
    assert found.mistakes == np.sum(predicted != y)
    with pytest.warns(UserWarning, match="cut to 1"):
        model.set_params(options=None, step="theory", d="theory").fit((i, j), y)


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_conservative_learner_updates_at_every_mistake(one_by_one):
    """With D = m + n the first y_bar is exactly 0: +1 is predicted, so that label -1 is a mistake, though not below 0."""
    model = paper_learner(Identity(2), Identity(2), gamma=0.5, step=0.5, d=4, conservative=True, options="paper")
    assert model.decision_one(0, 0) == 0.0
    assert model.predict_one(0, 0) == 1
    updated = [model.learn_one(0, 0, -1)] if one_by_one else model.score_stream([0], [0], [-1]).updated.tolist()
    assert updated == [True]
    assert model.n_mistakes_ == 1
    assert model.decision_one(0, 0) < 0


def test_at_the_margin_there_is_no_update_as_printed():
    """y_bar = 1 exactly, the margin: D = 2 (m + n)."""
    for options, expected in ((None, True), ("paper", False)):
        model = paper_learner(Identity(2), Identity(2), gamma=1.0, step=0.5, d=8, options=options)
        assert model.decision_one(0, 0) == 1.0
        assert model.learn_one(0, 0, 1) is expected
        stream = paper_learner(Identity(2), Identity(2), gamma=1.0, step=0.5, d=8, options=options)
        assert stream.score_stream([0], [0], [1]).updated.tolist() == [expected]


def test_growing_ids_take_the_numbers_of_algorithm_2():
    rng = np.random.default_rng(1)
    M, N = (each @ each.T / 6 + np.eye(5) for each in rng.normal(size=(2, 5, 6)))
    trials = [
        (int(i), int(j), int(y)) for i, j, y in zip(*rng.integers(0, 5, (2, 60)), rng.choice([-1, 1], 60), strict=True)
    ]
    i, j, y = np.array(trials).T
    known = paper_learner(
        Kernel(M, normalize=False),
        Kernel(N, normalize=False),
        gamma=0.5,
        step=0.8,
        d=12.0,
        options="paper",
        random_state=0,
    )
    values = known.score_stream(i, j, y).values
    y_bar, _, _ = twin.printed(M, N, trials, 12.0, 0.5, 0.8, np.zeros(60))
    np.testing.assert_allclose(values, y_bar, rtol=1e-8, atol=1e-8)
    grown = paper_learner(gamma=0.5, step="theory", horizon=(100, 5, 5), d=12.0, options="paper", random_state=0)
    eye, step = np.eye(5), np.sqrt(12 * np.log(10) / 200)
    y_bar, _, _ = twin.printed(eye, eye, trials, 12.0, 0.5, step, np.zeros(60))
    np.testing.assert_allclose(grown.score_stream(i, j, y).values, y_bar, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"step": 1.5}, "step must be at most 1.*options='paper'"),
        ({"options": "paper", "step": 1.5, "d": 4.0}, "horizon must be .trials, rows, columns. for d=4.0"),
        ({"options": "paper", "step": "theory", "conservative": True}, "blocks must be"),
        ({"options": "paper", "experts": "auto"}, "experts must be None as printed"),
        ({"horizon": (9, 0, 3)}, "horizon must be a number of trials or"),
    ],
)
def test_what_does_not_go_together(options, match):
    with pytest.raises(ValueError, match=match):
        paper_learner(**options).learn_one("a", "b", 1)


def test_a_model_file_keeps_the_word(tmp_path):
    model = paper_learner(step=1.49, d=4.0, horizon=(9, 2, 2), options="paper", random_state=0).learn_one
    learner = model.__self__
    for pair in ((0, 0, 1), (0, 1, -1)):
        model(*pair)
    save_model(learner, tmp_path / "m.lacunar")
    again = load_model(tmp_path / "m.lacunar")
    assert again.get_params()["horizon"] == (9, 2, 2)
    assert again.decision_one(1, 1) == learner.decision_one(1, 1)
    assert again.predict_one(1, 1) == learner.predict_one(1, 1)
