"""Intervals where noise grows by a column, or by whether it is missing."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor

from lacunar import LacunarRegressor
from lacunar.persistence import load_model, save_model
from lacunar.uncertainty import MaskConformalRegressor
from lacunar.uncertainty.deviation import ColumnDeviation, sigma_by_columns


def law(n, seed, *, growth, share=0.5, by_mask=False):
    """A line in five columns of which the first is often missing; noise grows with it, or with its absence."""
    rng = np.random.default_rng(seed)
    X, noise = rng.normal(size=(n, 5)), rng.normal(size=n)
    hidden = rng.random(X.shape) < np.r_[share, np.full(4, 0.4 * share)]
    log_scale = growth * (hidden[:, 0] if by_mask else X[:, 0])
    y = 3 + X @ [1.0, 1.0, -1.0, 0.5, 0.0] + np.exp(log_scale) * noise
    return np.where(hidden, np.nan, X), y


def score(interval, y):
    low, high = interval.T
    return float(np.mean(high - low + 20 * np.maximum(np.maximum(low - y, y - high), 0)))


def inside(interval, y):
    return float(np.mean((interval[:, 0] <= y) & (y <= interval[:, 1])))


@pytest.mark.parametrize("by_mask", [False, True])
def test_intervals_are_wider_where_noise_is_larger(by_mask, tmp_path, monkeypatch):
    (X, y), (test, target) = (law(n, n, growth=0.8 + by_mask, by_mask=by_mask) for n in (600, 3000))
    model = MaskConformalRegressor().fit(X, y)
    interval = model.predict_interval(test)
    assert min(model.interval_scores_, key=model.interval_scores_.get).endswith("noise by columns")
    assert 0.86 < inside(interval, target) < 0.94
    np.testing.assert_allclose(model.predict_quantiles(test, [0.05, 0.95]), interval)
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_interval(test), interval)
    monkeypatch.setattr("lacunar.uncertainty.intervals.FEWEST_BY_COLUMNS", 601)
    usual = MaskConformalRegressor().fit(X, y)
    assert usual.column_deviation_ is None
    assert score(interval, target) < 0.95 * score(usual.predict_interval(test), target)


def test_even_noise_keeps_the_scale():
    X, y = law(600, 0, growth=0.0)
    assert MaskConformalRegressor().fit(X, y).column_deviation_ is None
    assert LacunarRegressor(members=["gaussian"]).fit(X, y).deviations_[0][0].column_deviation_ is None


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_gaps_that_training_did_not_have_are_covered(share, monkeypatch):
    """Complete training rows say what the first column does to the noise, not what it does to what gaps leave open."""
    (X, y), (test, target) = law(1000, 0, growth=0.7, share=0.0), law(3000, 1, growth=0.7, share=0.0)
    y, target = y + 3 * X[:, 1], target + 3 * test[:, 1]
    test = np.where(np.random.default_rng(2).random(test.shape) < share, np.nan, test)
    model = MaskConformalRegressor().fit(X, y)
    assert model.column_deviation_ is not None
    interval = model.predict_interval(test)
    assert 0.86 < inside(interval, target) < 0.94
    monkeypatch.setattr("lacunar.uncertainty.intervals.FEWEST_BY_COLUMNS", 1001)
    usual = MaskConformalRegressor().fit(X, y).predict_interval(test)
    assert score(interval, target) < score(usual, target)


def test_the_learner_has_wider_intervals_too(tmp_path, monkeypatch):
    (X, y), (test, target) = law(600, 600, growth=1.0), law(3000, 3000, growth=1.0)
    learner = LacunarRegressor(members=["gaussian"])
    model = learner.fit(X, y)
    interval = model.predict_interval(test)
    quantiles = model.predict_quantiles(test, [0.05, 0.95])
    log_loss = -norm.logpdf(target, *model.predict(test, return_std=True)).mean()
    assert 0.86 < inside(interval, target) < 0.94
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_interval(test), interval)
    monkeypatch.setattr("lacunar.uncertainty.shift.FEWEST_BY_COLUMNS", 601)
    usual = learner.fit(X, y)
    assert log_loss < -norm.logpdf(target, *usual.predict(test, return_std=True)).mean() - 0.1
    assert score(interval, target) < 0.95 * score(usual.predict_interval(test), target)
    assert score(quantiles, target) < 0.95 * score(usual.predict_quantiles(test, [0.05, 0.95]), target)


def test_scales_are_those_of_the_boosting():
    """Against scikit-learn's own predictions; rows of a fold are told by trees that have not seen it."""
    rng = np.random.default_rng(0)
    rows, scores = np.where(rng.random((200, 3)) < 0.3, np.nan, rng.normal(size=(200, 3))), rng.normal(size=200)
    scores *= 1 + np.isnan(rows[:, 0])
    boosting = HistGradientBoostingRegressor(
        loss="gamma", max_iter=20, learning_rate=0.1, max_leaf_nodes=4, min_samples_leaf=20, early_stopping=False
    )
    boosting.fit(rows, scores**2 / np.mean(scores**2))
    even = np.ones(200)
    np.testing.assert_allclose(
        ColumnDeviation().fit(rows, scores, even).sigma(rows, even), np.sqrt(boosting.predict(rows)), rtol=1e-5
    )
    fold, sigma = np.arange(200) % 4, rng.uniform(1, 2, 200)
    fitted = ColumnDeviation().fit(rows[fold != 1], scores[fold != 1], sigma[fold != 1])
    alone = fitted.sigma(rows[fold == 1], sigma[fold == 1])
    np.testing.assert_array_equal(sigma_by_columns(rows, scores, sigma, fold)[fold == 1], alone)


def test_what_gaps_leave_open_is_not_multiplied():
    """Variances beyond those of training rows have what is beyond added."""
    rng = np.random.default_rng(0)
    rows, scores, even = rng.normal(size=(200, 3)), rng.normal(size=200), np.ones(200)
    fitted = ColumnDeviation().fit(rows, scores * np.exp(rows[:, 0]), even)
    np.testing.assert_allclose(fitted.sigma(rows, 3 * even) ** 2, fitted.sigma(rows, even) ** 2 + 8)
    np.testing.assert_allclose(fitted.sigma(rows, even / 3), fitted.sigma(rows, even) / 3)


def test_predictions_may_be_exact_and_columns_empty():
    rows = np.column_stack([np.arange(150.0), np.full(150, np.nan)])
    for scores in (np.zeros(150), np.r_[np.inf, np.zeros(149)], np.r_[np.full(100, 1e300), np.zeros(50)]):
        for sigma in (np.ones(150), np.r_[np.full(100, 1e-300), np.full(50, 1e150)]):
            assert np.isfinite(ColumnDeviation().fit(rows, scores, sigma).sigma(rows, sigma)).all()


def test_wide_tables_and_many_targets_keep_the_scale(monkeypatch):
    """Trees of scores would take longer there than the members' least fits."""
    X, y = law(600, 600, growth=1.0)
    monkeypatch.setattr("lacunar.uncertainty.intervals.MOST_BY_COLUMNS", 4)
    monkeypatch.setattr("lacunar.learner.regressor.MOST_BY_COLUMNS", 9)
    assert MaskConformalRegressor().fit(X, y).column_deviation_ is None
    learner = LacunarRegressor(members=["gaussian"], random_state=0)
    assert learner.fit(X, y).deviations_[0][0].column_deviation_ is not None
    assert learner.fit(X, np.column_stack([y, y])).deviations_[0][0].column_deviation_ is None
