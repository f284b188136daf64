"""Pictures of filled tables hold what the imputer drew, find models that are wrong, and say where a conclusion turns."""

import warnings

import numpy as np
import pytest
from doors import FRAMES
from sklearn.exceptions import NotFittedError

from lacunar.impute import Imputer, MultipleImputer
from lacunar.plotting import ChainsDisplay, DeltaDisplay, ImputedValuesDisplay, OverimputationDisplay

pd = pytest.importorskip("pandas")
plt = pytest.importorskip("matplotlib.pyplot")

pytestmark = pytest.mark.filterwarnings("ignore:.*sweeps have not settled|4 draws are few")


@pytest.fixture(autouse=True)
def _headless():
    plt.switch_backend("agg")
    yield
    plt.close("all")


def survey(n=200):
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "x": x,
            "y": x + 0.5 * rng.normal(size=n),
            "count": rng.poisson(4, n).astype(float),
            "level": np.where(x + rng.normal(size=n) > 0, "up", "down"),
        }
    )
    holes = rng.random((n, 4)) < 0.2
    holes[:, 0] = False
    return frame.mask(holes)


@pytest.fixture(scope="module")
def fitted():
    frame = survey()
    return frame, MultipleImputer(4, sweeps=4, random_state=0).fit(frame)


def test_imputed_values_are_those_of_the_draws(fitted):
    frame, imputer = fitted
    display = ImputedValuesDisplay.from_estimator(imputer, frame)
    assert set(display.shown()) == {"y", "count", "level"}
    for name in ("y", "count"):
        rows = frame[name].isna()
        np.testing.assert_array_equal(display.imputed[name], [table[name][rows] for table in imputer.draws()])
        np.testing.assert_array_equal(display.observed[name], frame[name][~rows])
        edges, observed, imputed = display.heights(name)
        np.testing.assert_allclose(np.append(observed @ np.diff(edges), imputed @ np.diff(edges)), 1)
    places, observed, imputed = display.heights("level")
    assert places.tolist() == [0, 1]
    np.testing.assert_allclose(observed[1], (frame["level"].dropna() == "up").mean())
    rows = frame["level"].isna()
    np.testing.assert_allclose(imputed[:, 1], [(table["level"][rows] == "up").mean() for table in imputer.draws()])
    assert list(display.axes_) == display.shown()
    assert [text.get_text() for text in display.axes_["level"].get_xticklabels()] == ["down", "up"]


def test_one_filled_table_is_one_draw_and_columns_that_stay_missing_are_left_out():
    frame = survey().assign(empty=np.nan)
    with pytest.warns(UserWarning, match="left missing"):
        imputer = Imputer().fit(frame)
    display = ImputedValuesDisplay.from_estimator(imputer, frame, n_shown=2)
    assert set(display.imputed) == {"y", "count", "level"}
    assert display.imputed["y"].shape == (1, frame["y"].isna().sum())
    assert len(display.axes_) == 2


@pytest.mark.parametrize("form", FRAMES.values(), ids=FRAMES)
def test_every_frame_gives_the_same(form):
    X = survey(80)[["x", "y"]].to_numpy()
    options = {"sweeps": 2, "random_state": 0}
    expected = ImputedValuesDisplay.from_estimator(MultipleImputer(3, **options).fit(X), X)
    said = ImputedValuesDisplay.from_estimator(MultipleImputer(3, **options).fit(form(X)), form(X))
    np.testing.assert_array_equal(said.imputed["x1"], expected.imputed["x1"])
    one, other = (
        OverimputationDisplay.from_estimator(MultipleImputer(**options), Z, n_parts=3, n_shown=1) for Z in (X, form(X))
    )
    np.testing.assert_array_equal(one.draws["x1"], other.draws["x1"])


def test_chains_are_the_traces(fitted):
    imputer = fitted[1]
    display = ChainsDisplay.from_estimator(imputer)
    assert set(display.traces) == {"y", "count", "level"}
    ratios = [display.convergence[name] for name in display.shown()]
    assert ratios == sorted(ratios, reverse=True)
    np.testing.assert_array_equal(display.traces["y"], imputer.traces_[:, :, 1])
    lines = display.axes_["y"].get_lines()
    np.testing.assert_array_equal([line.get_ydata() for line in lines], imputer.traces_[:, :, 1])


def test_intervals_of_hidden_entries_hold_nine_in_ten():
    frame = survey(300)
    display = OverimputationDisplay.from_estimator(MultipleImputer(sweeps=4, random_state=0), frame, n_parts=3)
    shares = display.held()
    for name in ("x", "y", "count"):
        assert len(display.values[name]) == frame[name].notna().sum()  # every observed entry once
        np.testing.assert_array_equal(np.sort(display.values[name]), np.sort(frame[name].dropna()))
        assert abs(shares[name] - 0.9) < 0.06
    assert 0.55 < shares["level"] < 0.8
    assert f"{shares['y']:.0%} of intervals" in display.axes_["y"].get_xlabel()


def test_a_model_that_is_wrong_shows():
    """Draws around a mean that lie closer to it than entries do hold few of them."""
    rng = np.random.default_rng(0)
    wrong = OverimputationDisplay({"a": rng.normal(size=500)}, {"a": 0.3 * rng.normal(size=(20, 500))})
    right = OverimputationDisplay({"a": rng.normal(size=500)}, {"a": rng.normal(size=(20, 500))})
    assert wrong.held()["a"] < 0.6
    assert abs(right.held()["a"] - 0.9) < 0.04


def mean_of(name):
    return lambda table: (table[name].mean(), table[name].var() / len(table))


def test_where_a_conclusion_turns(fitted):
    frame, imputer = fitted
    missing = frame["count"].isna().mean()
    null = float(imputer.analyse(mean_of("count")).estimate[0]) - 0.4
    display = DeltaDisplay.from_estimator(imputer, mean_of("count"), frame, "count", null=null)
    assert (display.deltas == np.rint(display.deltas)).all()  # of whole numbers
    np.testing.assert_allclose(np.diff(display.estimate), missing * np.diff(display.deltas))
    assert -5 < display.tipping_point < 0
    low = np.interp(display.tipping_point, display.deltas, display.ends[:, 0])
    np.testing.assert_allclose(low, null)
    assert f"turns at {display.tipping_point:.3g}" in display.ax_.get_xlabel()
    never = DeltaDisplay.from_estimator(imputer, mean_of("y"), frame, "y", deltas=[0.1, 0, -0.1], null=-99.0)
    assert np.isnan(never.tipping_point)
    assert "same for all" in never.ax_.get_xlabel()


def test_a_turn_is_the_nearest_to_no_shift():
    ends = np.column_stack([[0.5, -1.0, 1.0, 2.0], [9.0] * 4])
    assert DeltaDisplay([-3, -1, 1, 3], [1.0] * 4, ends, "a", "b").tipping_point == 0.0
    assert DeltaDisplay([-4, -2, 0, 2], [1.0] * 4, ends[[0, 1, 3, 3]], "a", "b").tipping_point == pytest.approx(-4 / 3)


def test_what_cannot_be_drawn_is_refused(fitted):
    frame, imputer = fitted
    with pytest.raises(ValueError, match="column must name a column of numbers of X, one of x, y, count; got 'level'"):
        DeltaDisplay.from_estimator(imputer, mean_of("y"), frame, "level")
    with pytest.raises(ValueError, match="coefficient must be a name or place among x0; got 'b'"):
        DeltaDisplay.from_estimator(imputer, mean_of("y"), frame, "y", deltas=[0], coefficient="b")
    for deltas in (["x"], [], [[0.0, 1.0]], [np.nan]):
        with pytest.raises(ValueError, match="deltas"):
            DeltaDisplay.from_estimator(imputer, mean_of("y"), frame, "y", deltas=deltas)
    for display in (ChainsDisplay.from_estimator, lambda model: ImputedValuesDisplay.from_estimator(model, frame)):
        with pytest.raises(NotFittedError):
            display(MultipleImputer())
    with pytest.raises(ValueError, match="reach from 0 or below"):
        DeltaDisplay([1, 2], [0, 0], np.zeros((2, 2)), "a", "b")
    with pytest.raises(ValueError, match="Sort the shifts"):
        DeltaDisplay([2, 1], [0, 0], np.zeros((2, 2)), "a", "b")
    for parts in (1, 0.5):
        with pytest.raises(ValueError, match="n_parts must be"):
            OverimputationDisplay.from_estimator(imputer, frame, n_parts=parts)


def test_panels_take_the_place_of_an_axes(fitted):
    figure, axes = plt.subplots(1, 2)
    with warnings.catch_warnings(action="error"):
        display = ChainsDisplay.from_estimator(fitted[1], ax=axes[1])
        figure.canvas.draw()
    assert display.figure_ is figure
    assert all(panel.get_position().x0 > 0.5 for panel in display.axes_.values())
