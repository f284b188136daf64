"""Probabilities and sets of `LacunarClassifier` for rows that lack more than the training rows did."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize

from lacunar import LacunarClassifier, load_model, save_model
from lacunar.uncertainty.shift import ExtraMissingProbabilities, Lacking

pytestmark = pytest.mark.filterwarnings("ignore:.*lack other entries:UserWarning")
ROOT = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(8), np.arange(8))))
WEIGHTS = np.array([1.0, -1, 2, 0, 0.5, 0, -0.5, 1])


def law(n, rng):
    X = rng.normal(size=(n, 8)) @ ROOT.T
    return X, np.digitize(X @ WEIGHTS + 0.5 * rng.normal(size=n), [-1.0, 1.0])


def hidden(X, share, rng):
    return np.where(rng.random(X.shape) < share, np.nan, X)


@pytest.fixture(scope="module")
def of_complete_rows():
    rng = np.random.default_rng(5)
    X, y = law(400, rng)
    return LacunarClassifier(members=["gaussian", "logistic"], random_state=0).fit(X, y), *law(1500, rng)


def log_loss(model, X, y):
    return -np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean()


@pytest.mark.parametrize("condition", ["missing", "class"])
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_sets_cover_rows_that_lack_more_than_any_of_training(of_complete_rows, share, condition):
    model, X, y = of_complete_rows
    inside = model.predict_set(hidden(X, share, np.random.default_rng(1)), condition=condition)
    assert inside[np.arange(len(y)), y].mean() > 0.86
    assert inside.mean() < 0.95


def test_probabilities_soften(of_complete_rows, monkeypatch):
    model, X, y = of_complete_rows
    rows = hidden(X, 0.6, np.random.default_rng(2))
    soft = log_loss(model, rows, y)
    monkeypatch.setattr(model, "extra_missing_", None)
    assert soft < log_loss(model, rows, y) - 0.1
    assert soft < np.log(3)


def test_rows_like_those_of_training_keep_their_probabilities_and_sets(of_complete_rows, monkeypatch):
    model, X, _ = of_complete_rows
    chances, sets = model.predict_proba(X), model.predict_set(X)
    monkeypatch.setattr(model, "extra_missing_", None)
    np.testing.assert_array_equal(model.predict_proba(X), chances)
    np.testing.assert_array_equal(model.predict_set(X), sets)


def test_extra_missing_is_stored(of_complete_rows, tmp_path):
    model, X, _ = of_complete_rows
    rows = hidden(X[:100], 0.5, np.random.default_rng(3))
    save_model(model, tmp_path / "model.lacunar")
    for copy in (load_model(tmp_path / "model.lacunar"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.predict_proba(rows), model.predict_proba(rows))
        np.testing.assert_array_equal(copy.predict_set(rows), model.predict_set(rows))


def test_few_rows_and_one_class_have_none():
    X, y = law(30, np.random.default_rng(4))
    assert LacunarClassifier(members=["gaussian"], cv=2).fit(X[:9], y[:9] > 0).extra_missing_ is None
    assert LacunarClassifier(members=["gaussian"], cv=2).fit(X, np.zeros(30)).extra_missing_ is None


def test_coefficients_minimise_the_log_loss_of_the_copies():
    """Against a search without derivatives, from the definition."""
    rng = np.random.default_rng(6)
    missing = np.vstack([np.zeros((50, 4), dtype=bool), rng.random((600, 4)) < 0.5])
    variance = 1.0 + missing.sum(axis=1)
    rows = Lacking(np.where(missing, np.nan, 0.0), missing[:, 0] * 1.0, variance, np.zeros(650))
    labels = np.arange(650) % 50 % 3
    logs = rng.normal(size=(650, 3)) + 1.5 * (labels[:, None] == np.arange(3)) * (1 - missing.mean(axis=1))[:, None]
    logs = 4 * logs - np.logaddexp.reduce(4 * logs, axis=1, keepdims=True)
    training, copies = rows.take(np.arange(50)), rows.take(np.arange(50, 650))
    weight, copied = 0.5 + rng.random(50), np.arange(600) % 50
    soft = ExtraMissingProbabilities().fit(training, labels[:50], weight, copies, copied, logs[50:])
    novelty = soft.novelty(copies)
    assert set(novelty) == {0.0, 1.0}
    shares = np.bincount(labels[:50], weight) + 1.0
    prior = np.log(shares / shares.sum())

    def loss(coef):
        total = 0.0
        for place, (row, label) in enumerate(zip(logs[50:], labels[50:], strict=True)):
            share = missing[50 + place].mean()
            rate = 1 / (
                1 + novelty[place] * (coef[0] * share + coef[1] * share**2 + coef[2] * (variance[50 + place] - 1))
            )
            drawn = prior + rate * (row - prior)
            total -= weight[copied[place]] * novelty[place] * (drawn[label] - np.log(np.exp(drawn).sum()))
        return total / (weight[copied] * novelty).sum() + 1e-3 * np.sum(coef**2)

    best = minimize(loss, np.full(3, 0.5), method="Nelder-Mead", bounds=[(0, None)] * 3, options={"maxfev": 300}).fun
    assert loss(soft.coef_) < best + 1e-4
    same = novelty == 0
    assert same.any()
    np.testing.assert_array_equal(soft.softened(copies, logs[50:])[same], logs[50:][same])


def test_classes_that_weigh_more_are_drawn_to_more():
    rng = np.random.default_rng(7)
    X, y = law(300, rng)
    nothing = np.full((1, 8), np.nan)
    for class_weight, share in ((None, np.mean(y == 1)), ({0: 1, 1: 8, 2: 1}, 0.8)):
        model = LacunarClassifier(members=["gaussian"], cv=2, class_weight=class_weight).fit(X, y)
        assert abs(np.exp(model.extra_missing_.log_shares_[1]) - share) < 0.1
        assert model.predict_proba(nothing)[0, 1] > 0.8 * share
