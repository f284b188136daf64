"""Progressive validation, calibrated probabilities, planned steps."""

from copy import deepcopy

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics import log_loss

from lacunar.completion import Graph, Identity
from lacunar.papers.completion import MatrixExponentiatedGradient, make_biclustered
from lacunar.papers.completion.gradient import OnlineLogistic


def entries(n=40, seed=0, **options):
    data = make_biclustered((n, n), n_clusters=(4, 4), random_state=seed, **options)
    return data, data.order // n, data.order % n, data.labels.ravel()[data.order]


def test_score_stream_counts_what_was_predicted_before():
    _, i, j, y = entries()
    score = MatrixExponentiatedGradient().score_stream(i, j, y, comparator="majority")
    assert score.n_rows == len(y)
    np.testing.assert_array_equal(score.running_mistakes, np.cumsum(np.where(score.values >= 0, 1, -1) != y))
    assert score.mistakes == score.running_mistakes[-1]
    assert score.error == score.mistakes / len(y)
    assert score.regret == score.mistakes - min(np.sum(y == 1), np.sum(y == -1)) == score.running_regret[-1]
    assert score.loss == pytest.approx(log_loss(y, score.probabilities))


def test_regret_against_a_matrix():
    data, i, j, y = entries()
    U = data.complete.ravel()[data.order]
    score = MatrixExponentiatedGradient().score_stream(i, j, y, comparator=U)
    np.testing.assert_array_equal(score.running_regret, score.running_mistakes - np.cumsum(y != U))


def test_an_empty_stream():
    model = MatrixExponentiatedGradient().partial_fit(["a"], ["x"], [1])
    score = model.score_stream([], [], [], comparator="majority")
    assert (score.n_rows, score.mistakes, score.error, score.regret, score.loss) == (0, 0, 0.0, 0.0, 0.0)
    assert model.n_seen_ == 1


def test_ratings_have_losses_and_comparators_too():
    rng = np.random.default_rng(0)
    i, j = rng.integers(6, size=200), rng.integers(6, size=200)
    stars = 1 + (i + j) % 4
    score = MatrixExponentiatedGradient(thresholds=[2, 3, 4]).score_stream(i, j, stars, comparator=stars)
    assert score.regret == score.mistakes > 0
    assert 0 < score.loss < 2 * np.log(4)


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
    score = MatrixExponentiatedGradient(**sides).score_stream(i, j, y)
    rule = np.clip((1 / 3 + score.values) / (2 / 3), 0, 1)
    assert score.loss < 0.5 < log_loss(y, rule)


def test_planned_steps():
    K = Identity(20)
    fixed = MatrixExponentiatedGradient(K, K, step="fixed", horizon=400, step_scale=0.5)
    fixed.learn_one(0, 0, 1)
    assert fixed._engine.members[0].tuning.number == pytest.approx(0.5 * np.sqrt(40 * np.log(40) / 800))
    with pytest.warns(UserWarning, match="cut to 1"):
        MatrixExponentiatedGradient(K, K, step="fixed", horizon=4).learn_one(0, 0, 1)
