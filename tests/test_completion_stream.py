"""Progressive validation, the hedge, calibrated probabilities, the paper's tuning, recommendations."""

from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics import log_loss

from lacunar.completion import Graph, Identity, Kernel, OnlineMatrixClassifier
from lacunar.completion.model import Hedge, OnlineLogistic
from lacunar.papers.completion import make_biclustered, mistake_bound, quasi_dimension_bound

paper_learner = partial(OnlineMatrixClassifier, experts=None)  # the learner of the paper, without a pool around it


def entries(n=40, seed=0, **options):
    data = make_biclustered((n, n), n_clusters=(4, 4), random_state=seed, **options)
    return data, data.order // n, data.order % n, data.labels.ravel()[data.order]


def test_score_stream_counts_what_was_predicted_before():
    _, i, j, y = entries()
    score = paper_learner().score_stream(i, j, y, comparator="majority")
    assert score.n_rows == len(y)
    np.testing.assert_array_equal(score.running_mistakes, np.cumsum(np.where(score.values >= 0, 1, -1) != y))
    assert score.mistakes == score.running_mistakes[-1]
    assert score.error == score.mistakes / len(y)
    assert score.regret == score.mistakes - min(np.sum(y == 1), np.sum(y == -1)) == score.running_regret[-1]
    assert score.loss == pytest.approx(log_loss(y, score.probabilities))


def test_regret_against_a_matrix():
    data, i, j, y = entries()
    U = data.complete.ravel()[data.order]
    score = paper_learner().score_stream(i, j, y, comparator=U)
    np.testing.assert_array_equal(score.running_regret, score.running_mistakes - np.cumsum(y != U))


def test_an_empty_stream():
    model = paper_learner().partial_fit(["a"], ["x"], [1])
    score = model.score_stream([], [], [], comparator="majority")
    assert (score.n_rows, score.mistakes, score.error, score.regret, score.loss) == (0, 0, 0.0, 0.0, 0.0)
    assert model.n_seen_ == 1


def test_ratings_have_losses_and_comparators_too():
    rng = np.random.default_rng(0)
    i, j = rng.integers(6, size=200), rng.integers(6, size=200)
    stars = 1 + (i + j) % 4
    score = paper_learner(thresholds=[2, 3, 4]).score_stream(i, j, stars, comparator=stars)
    assert score.regret == score.mistakes > 0
    assert 0 < score.loss < 2 * np.log(4)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_a_hedge_costs_little_whatever_the_side_information_is_worth(noise):
    """At graph_noise 0.5 the graphs say nothing; at 0 nearly everything."""
    errors = {"auto": [], "given": [], "nothing": []}
    for seed in range(2):
        data, i, j, y = entries(n=32, graph_noise=noise, seed=seed)
        sides = {"rows": Graph(data.row_graph), "cols": Graph(data.column_graph)}
        for name, options in (("auto", {**sides, "experts": "auto"}), ("given", sides), ("nothing", {})):
            errors[name].append(paper_learner(**options).score_stream(i, j, y).error)
    mean = {name: np.mean(each) for name, each in errors.items()}
    assert mean["auto"] < min(mean["given"], mean["nothing"]) + 0.01
    assert (mean["given"] < mean["nothing"] - 0.1) == (noise == 0)


def test_the_hedge_keeps_its_bound_and_finds_the_best():
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 3000)
    u = np.clip(y[:, None] * [0.1, 0.4, 0.0] + rng.normal(size=(3000, 3)), -1, 1)
    hedge = Hedge(3)
    mixed = hedge.learn_block(u, y)
    losses = 0.5 * (1 - y[:, None] * u)
    regret = (0.5 * (1 - y * mixed)).sum() - losses.sum(axis=0).min()
    assert regret < 2 * np.sqrt(hedge.variance * np.log(3)) + 2 * np.log(3)
    assert hedge.weights[1] > 0.9
    np.testing.assert_allclose(hedge.losses, losses.sum(axis=0))


def test_calibration_is_near_the_best_curve_in_hindsight():
    rng = np.random.default_rng(0)
    scores = rng.uniform(-0.5, 0.5, 4000)
    y = np.where(rng.random(4000) < 1 / (1 + np.exp(-5 * np.clip(scores, -1 / 3, 1 / 3) - 0.5)), 1.0, -1.0)
    curve = OnlineLogistic(1 / 3)
    online = log_loss(y, curve.learn_block(scores, y))
    u = np.clip(3 * scores, -1, 1)
    best = minimize(lambda w: np.logaddexp(0, -y * (w[0] * u + w[1])).mean(), [1.0, 0.0]).fun
    assert online < best + 0.01
    np.testing.assert_allclose(
        curve.probabilities(scores[:5]), [deepcopy(curve).learn(s, 1.0) for s in scores[:5]], rtol=1e-14
    )


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_calibration_stays_finite_on_one_label(label):
    curve = OnlineLogistic(1 / 3)
    p = curve.learn_block(np.full(20_000, label), np.full(20_000, label))
    assert np.isfinite(curve.values).all()
    assert 0 < p.min() <= p.max() < 1


def test_probabilities_beat_the_randomised_rule():
    data, i, j, y = entries(n=60)
    sides = {"rows": Graph(data.row_graph), "cols": Graph(data.column_graph)}
    score = paper_learner(**sides).score_stream(i, j, y)
    rule = np.clip((1 / 3 + score.values) / (2 / 3), 0, 1)
    assert score.loss < 0.5 < log_loss(y, rule)


def test_the_papers_tuning_keeps_the_mistake_bound():
    """Theorem 1, realisable case: conservative, eta = gamma = 1/sqrt(k), D of Theorem 3."""
    data, i, j, _ = entries(flip=0.0)
    U, classes = data.complete.ravel()[data.order], (data.row_clusters, data.column_clusters)
    sides = {
        "rows": Graph(data.row_graph, kind="pd", normalize=False),
        "cols": Graph(data.column_graph, kind="pd", normalize=False),
    }
    model = paper_learner(**sides, gamma="theory", step="theory", d="theory", blocks=classes, conservative=True)
    score = model.score_stream(i, j, U)
    D = quasi_dimension_bound(*sides.values(), *classes)
    assert model._engine.members[0][0].tuning == (0.5, np.log(D / 80), "constant", 0.5, True, False)
    assert score.mistakes <= mistake_bound(D, 0.5, 40, 40)
    assert model.n_updates_ >= score.mistakes


def test_planned_steps():
    K = Identity(20)
    fixed = paper_learner(K, K, step="fixed", horizon=400, step_scale=0.5)
    fixed.learn_one(0, 0, 1)
    assert fixed._engine.members[0][0].tuning.number == pytest.approx(0.5 * np.sqrt(40 * np.log(40) / 800))
    theory = paper_learner(K, K, step="theory", horizon=400, d=60.0, gamma="theory", blocks=(9, 4))
    theory.learn_one(0, 0, 1)
    assert theory._engine.members[0][0].tuning[:4] == (0.5, np.log(1.5), "constant", np.sqrt(60 * np.log(40) / 800))
    with pytest.warns(UserWarning, match="cut to 1"):
        paper_learner(K, K, step="theory", horizon=4).learn_one(0, 0, 1)
    side = Kernel(np.ones((2, 2)))
    with pytest.raises(ValueError, match="infinite bound"):
        paper_learner(side, side, d="theory", blocks=([0, 1], [0, 1])).learn_one(0, 0, 1)


def test_recommendations_are_the_highest_scores():
    _, i, j, y = entries()
    model = paper_learner().fit((i, j), y)
    scores = model.decision_function([(3, c) for c in range(40)])
    best = model.recommend(3, 5)
    assert [score for _, score in best] == sorted(scores.tolist(), reverse=True)[:5]
    assert [scores[c] for c, _ in best] == [score for _, score in best]
    seen = [c for c, _ in best]
    assert not {c for c, _ in model.recommend(3, 5, exclude=seen)} & set(seen)
    assert {c for c, _ in model.recommend(3, 5, cols=[1, 2])} == {1, 2}
    assert model.recommend(3, cols=[1], exclude=[1]) == []
    assert len(model.recommend("new", 100)) == 40
    hedge = paper_learner(experts=[paper_learner()]).fit((i, j), y)  # a mixture of one
    two = paper_learner(experts=[paper_learner(), paper_learner()]).fit((i, j), y)
    assert hedge.recommend(3, 5) == model.recommend(3, 5)
    assert [c for c, _ in two.recommend(3, 5)] == [c for c, _ in model.recommend(3, 5)]  # though cut at the margin
