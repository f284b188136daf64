"""Waterfalls and swarms show the values of an explanation."""

from itertools import pairwise

import numpy as np
import pytest

from lacunar.explanation import Explanation
from lacunar.lowrank import GaussianRegressor
from lacunar.plotting import BeeswarmDisplay, WaterfallDisplay

pytest.importorskip("matplotlib.pyplot").switch_backend("agg")


def explained(outputs=1):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    Y = X @ rng.normal(size=(6, outputs))
    X[rng.random(X.shape) < 0.2] = np.nan
    return GaussianRegressor().fit(X, Y if outputs > 1 else Y[:, 0]), X


def test_a_waterfall_goes_from_the_base_to_the_prediction():
    model, X = explained()
    explanation = model.explain(X[:5])
    display = WaterfallDisplay(explanation, row=3, n_shown=4).plot()
    bars = display.bars_.patches
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars]
    assert len(bars) == 5
    assert ends[-1][0] == pytest.approx(explanation.base_values[3])
    assert ends[0][1] == pytest.approx(model.predict(X[3:4])[0])
    for (start, _), (_, below) in pairwise(ends):
        assert start == pytest.approx(below)
    low, high = display.ax_.get_xlim()
    assert low < min(map(min, ends)) - 0.05 * (high - low)  # room for the labels
    sizes = [abs(bar.get_width()) for bar in bars[:-1]]
    assert sizes == sorted(sizes, reverse=True)
    assert display.shown()[-1] == "2 others"
    whole = WaterfallDisplay(explanation, row=3).plot()
    assert any("missing" in name for name in whole.shown()) == bool(np.isnan(X[3]).any())
    drawn = WaterfallDisplay.from_estimator(model, X[:5], row=3, n_shown=4)
    assert drawn.shown() == display.shown()


def test_a_swarm_has_a_point_for_every_value_that_is_there():
    model, X = explained()
    explanation = model.explain(X[:50])
    display = BeeswarmDisplay(explanation, n_shown=3).plot()
    order = np.argsort(-np.abs(explanation.values).mean(axis=0))[:3]
    for y, (j, points) in enumerate(zip(order, display.ax_.collections, strict=True)):
        seen = ~np.isnan(X[:50, j])
        places = np.asarray(points.get_offsets())
        np.testing.assert_allclose(places[:, 0], explanation.values[seen, j])
        assert (np.abs(places[:, 1] - y) < 0.5).all()
        colours = points.get_facecolors()
        assert not np.allclose(colours[X[:50, j][seen].argmax()], colours[X[:50, j][seen].argmin()])
    assert all("missing" in name for name in display.shown())


def test_an_output_is_chosen_where_there_are_several():
    model, X = explained(2)
    explanation = model.explain(X[:9])
    for kind in (WaterfallDisplay, BeeswarmDisplay):
        with pytest.raises(ValueError, match=r"output must be one of \['0', '1'\]"):
            kind(explanation)
        assert "prediction of 1" in kind.from_estimator(model, X[:9], output="1").ax_.get_xlabel()


def test_swarms_of_words_and_of_nothing():
    data = np.array([["red", None], ["blue", None]], dtype=object)
    explanation = Explanation(
        np.array([[1.0, 0], [-1, 0]]), np.zeros(2), data, ["a", "b"], None, np.zeros((2, 2)), np.zeros((2, 2))
    )
    display = BeeswarmDisplay(explanation).plot()
    assert display.shown() == ["a", "b, 100% missing"]
    assert WaterfallDisplay(explanation).shown() == ["a = red", "b = missing"]
