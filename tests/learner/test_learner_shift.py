"""Rows to predict that lack other entries than the training rows did."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import GammaRegressor
from threadpoolctl import threadpool_info, threadpool_limits

from lacunar import LacunarRegressor, load_model, save_model
from lacunar.uncertainty.deviation import PredictiveDeviation
from lacunar.uncertainty.shift import ExtraMissingVariance, Lacking, further_hidden

QUICK = {"members": ["gaussian", "kernels"], "random_state": 0}
ROOT = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(8), np.arange(8))))


def law(n, rng, nonlinear=False):
    X = rng.normal(size=(n, 8)) @ ROOT.T
    y = X @ [1.0, -1, 2, 0, 0.5, 0, -0.5, 1] + 0.5 * rng.normal(size=n)
    return X, y + nonlinear * 2 * np.sin(2 * X[:, 0]) * X[:, 1]


def hidden(X, share, rng):
    return np.where(rng.random(X.shape) < share, np.nan, X)


@pytest.fixture(scope="module", params=[False, True], ids=["linear", "nonlinear"])
def of_complete_rows(request):
    """A regressor of complete rows, and other rows of the same law."""
    rng = np.random.default_rng(11)
    X, y = law(400, rng, request.param)
    return LacunarRegressor(**QUICK).fit(X, y), *law(1500, rng, request.param)


@pytest.mark.filterwarnings("ignore:.*missing:UserWarning")
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_intervals_cover_rows_that_lack_more_than_any_of_training(of_complete_rows, share):
    model, X, y = of_complete_rows
    rows = hidden(X, share, np.random.default_rng(1))
    low, high = model.predict_interval(rows).T
    assert np.mean((low <= y) & (y <= high)) > 0.86
    complete = np.ptp(model.predict_interval(X), axis=1).mean()
    assert (high - low).mean() > 1.3 * complete


@pytest.mark.filterwarnings("ignore:.*missing:UserWarning")
def test_quantiles_are_below_their_share_of_rows_that_lack_more(of_complete_rows):
    """At 60 % missing, where those of the training rows' residuals would be far too near to each other."""
    model, X, y = of_complete_rows
    found = model.predict_quantiles(hidden(X, 0.6, np.random.default_rng(1)), [0.1, 0.5, 0.9])
    np.testing.assert_allclose((y[:, None] <= found).mean(axis=0), [0.1, 0.5, 0.9], atol=0.1)
    complete = model.predict_quantiles(X, [0.1, 0.5, 0.9])
    assert np.mean(found[:, 2] - found[:, 0]) > 1.3 * np.mean(complete[:, 2] - complete[:, 0])


@pytest.mark.filterwarnings("ignore:.*missing:UserWarning")
def test_standard_deviations_say_how_far_such_rows_are_off(of_complete_rows):
    model, X, y = of_complete_rows
    mean, std = model.predict(hidden(X, 0.6, np.random.default_rng(2)), return_std=True)
    assert 0.8 < np.sqrt(np.mean((y - mean) ** 2) / np.mean(std**2)) < 1.25


def test_intervals_of_rows_like_those_of_training_are_those_of_the_residuals(of_complete_rows, monkeypatch):
    model, X, _ = of_complete_rows
    intervals, (_, std) = model.predict_interval(X), model.predict(X, return_std=True)
    monkeypatch.setattr(ExtraMissingVariance, "novelty", lambda self, rows: np.zeros(len(rows.missing)))
    np.testing.assert_array_equal(model.predict_interval(X), intervals)
    np.testing.assert_array_equal(model.predict(X, return_std=True)[1], std)


@pytest.mark.filterwarnings("ignore:.*missing:UserWarning")
def test_widened_intervals_are_stored(of_complete_rows, tmp_path):
    model, X, _ = of_complete_rows
    rows = hidden(X[:100], 0.5, np.random.default_rng(3))
    save_model(model, tmp_path / "model.lacunar")
    np.testing.assert_array_equal(
        load_model(tmp_path / "model.lacunar").predict_interval(rows), model.predict_interval(rows)
    )


def test_what_a_row_lacks_is_counted_before_columns_are_completed(of_complete_rows):
    """Columns that training always saw are completed for the members, and are still missing."""
    model, X, _ = of_complete_rows
    row = X[:1].copy()
    row[0, 2] = np.nan
    whole, lacking = (np.ptp(model.predict_interval(rows)) for rows in (X[:1], row))
    assert lacking > 1.5 * whole


def test_further_hidden_hides_by_value_in_some_rows():
    rng = np.random.default_rng(0)
    T = rng.normal(size=(4000, 3))
    T[:500, 0] = np.nan
    mask = further_hidden(T, rng)
    assert not mask[:500, 0].any()
    of_row = mask[500:].mean(axis=1)
    assert (of_row.min(), of_row.max()) == (0, 1)
    assert abs(of_row.mean() - 0.475) < 0.03
    together = np.corrcoef((T[500:] * ~mask[500:]).T)  # large values are hidden together, or small ones
    assert np.all(together[np.triu_indices(3, 1)] < 0.2)
    one = mask[500:] & (of_row[:, None] < 0.5)
    assert np.abs(T[500:][one]).mean() > np.abs(T[500:]).mean() + 0.05  # large or small, more often than those between


def lacking(missing, variance):
    return Lacking(np.where(missing, np.nan, 0.0), missing[:, :1].sum(axis=1) * 1.0, variance, np.zeros(len(missing)))


def test_rows_are_news_that_lack_or_leave_open_more_than_a_twentieth_of_training():
    rng = np.random.default_rng(0)
    missing = rng.random((400, 6)) < 0.3
    missing[:, 0] = False
    rows = lacking(missing, 1.0 + missing.sum(axis=1))
    copied = np.arange(400)
    extra = ExtraMissingVariance().fit(
        rows, rng.normal(size=400), np.arange(400) % 3, rows, copied, rng.normal(size=400)
    )
    usual = np.array([[False, True, True, False, False, False]])
    assert extra.novelty(lacking(usual, np.array([3.0]))) == 0
    assert extra.novelty(lacking(usual, np.array([30.0]))) == 1
    assert extra.novelty(lacking(np.ones((1, 6), dtype=bool), np.array([3.0]))) == 1
    usual[0, 0] = True  # a column that training always saw
    assert extra.novelty(lacking(usual, np.array([3.0]))) == 1


def test_tables_without_anything_to_learn_from_have_intervals():
    y = np.random.default_rng(0).normal(size=40)
    model = LacunarRegressor().fit(np.ones((40, 3)), y)
    assert np.ptp(model.predict_interval(np.full((2, 3), np.nan)), axis=1) == pytest.approx([3.0, 3.0], abs=1.5)


def test_scales_are_learned_on_one_thread(monkeypatch):
    """Threads of OpenMP for a few hundred rows take eight times as long on a busy machine."""
    threads, fit = [], GammaRegressor.fit

    def watched(self, *args):
        threads.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp")
        return fit(self, *args)

    monkeypatch.setattr(GammaRegressor, "fit", watched)
    with threadpool_limits(2, user_api="openmp"):
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"} == {2}
        rng = np.random.default_rng(0)
        PredictiveDeviation().fit(rng.normal(size=50), rng.normal(size=50), np.ones(50), np.zeros(50))
    assert set(threads) == {1}


def test_most_copies_hide_values_on_one_side():
    """Four of five: where large values are missing, predictions are off to one side."""
    rng = np.random.default_rng(1)
    T = rng.normal(size=(3000, 30))
    mask = further_hidden(T, rng)
    enough = np.abs(mask.mean(axis=1) - 0.5) < 0.2
    apart = np.array([row[m].mean() - row[~m].mean() for row, m in zip(T[enough], mask[enough], strict=True)])
    assert 0.7 < np.mean(np.abs(apart) > 0.8) < 0.9
    assert abs(np.mean(apart > 0) - 0.5) < 0.05
