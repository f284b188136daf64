"""Pictures show the numbers they claim to show, on light and dark grounds, in colours that all eyes tell apart."""

import functools
import inspect
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from doors import DOORS, FRAMES
from sklearn.linear_model import LinearRegression

from lacunar import KarmaClassifier, KarmaOnlineClassifier, KarmaRegressor, LacunarClassifier, Observed, plotting
from lacunar.completion import OnlineMatrixClassifier
from lacunar.lowrank import GROUSE, PETRELS, SLRMRegressor
from lacunar.plotting import (
    CalibrationByMissingDisplay,
    CoefficientDisplay,
    CoverageDisplay,
    ExpertWeightsDisplay,
    ImportanceDisplay,
    MissingnessDisplay,
    PoolDisplay,
    RegretDisplay,
    ScoresDisplay,
    ShareCurveDisplay,
    TrackingErrorDisplay,
    explanations,
    imputation,
    rows,
)
from lacunar.plotting.rows import draws_of, pattern_of
from lacunar.plotting.style import MISSING, OURS, PEERS, SEEN, line_styles

plt = pytest.importorskip("matplotlib.pyplot")
from matplotlib.colors import to_rgb  # noqa: E402


@pytest.fixture(autouse=True)
def _headless():
    plt.switch_backend("agg")


def holes(n=300, d=8, seed=0, rank=2):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, rank)))[0].T
    code = rng.normal(size=(n, rank))
    X = code @ basis
    return np.where(rng.random(X.shape) < 0.3, np.nan, X), code[:, 0], basis


@pytest.mark.parametrize(
    "form", [np.asarray, Observed.from_dense, pd.DataFrame, lambda X: Observed.from_dense(X).to_scipy()]
)
def test_missingness_is_the_same_from_every_form(form):
    X, _, _ = holes()
    display = MissingnessDisplay.from_table(form(X)).plot()
    np.testing.assert_allclose(display.image.mean(), np.isfinite(X).mean())
    np.testing.assert_array_equal(display.image, MissingnessDisplay.from_table(X).image)
    assert (np.diff(display.image.sum(axis=1)) <= 0).all()
    assert display.shape == X.shape


def test_missingness_of_a_large_sparse_table_is_its_shares():
    rng = np.random.default_rng(0)
    table = sp.random_array((20_000, 5_000), density=2e-3, random_state=rng, format="csr")
    display = MissingnessDisplay.from_table(table)
    assert display.image.shape == (400, 400)
    np.testing.assert_allclose(display.image.mean(), table.nnz / (20_000 * 5_000), rtol=1e-3)
    display.plot()
    assert MissingnessDisplay.from_table(np.full((3, 2), np.nan)).image.sum() == 0
    assert MissingnessDisplay.from_table(sp.csr_array((0, 4))).plot().image.shape == (1, 4)


def test_coverage_groups_rows_by_what_they_show():
    X, code, _ = holes()
    y = (code > 0).astype(int)
    model = KarmaClassifier().fit(X[:200], y[:200])
    display = CoverageDisplay.from_estimator(model, X[200:], y[200:]).plot()
    share = np.isfinite(X[200:]).mean(axis=1)
    np.testing.assert_allclose(display.share, share)
    np.testing.assert_array_equal(display.losses["KarmaClassifier"], model.predict(X[200:]) != y[200:])
    for display in (CoverageDisplay, CalibrationByMissingDisplay):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            display.from_estimator(model, X[200:], y[200:201])
    number = KarmaRegressor().fit(X[:200], code[:200])
    display = CoverageDisplay.from_estimator(number, X[200:], code[200:])
    assert display.measure == "RMSE"
    np.testing.assert_allclose(display.losses["KarmaRegressor"], (number.predict(X[200:]) - code[200:]) ** 2)


def test_calibration_errors_by_number_missing():
    rng = np.random.default_rng(0)
    missing = rng.integers(0, 3, 6000)
    sure = rng.uniform(0.5, 1, 6000)
    off = np.where(missing == 2, 0.2, 0.0)  # rows that lack two entries are right less often
    right = rng.random(6000) < sure - off
    X = np.where(np.arange(4) < missing[:, None], np.nan, 1.0)
    y = np.where(right, "b", "a")
    shares = np.column_stack([1 - sure, sure])
    display = CalibrationByMissingDisplay.from_predictions(X, y, {"sure": shares, "half": np.full((6000, 2), 0.5)})
    np.testing.assert_allclose(display.errors()["sure"], [0, 0, 0.2], atol=0.05)
    by_hand = [abs(0.5 - (y[missing == k] == "a").mean()) for k in range(3)]
    assert np.all(np.array(by_hand) <= display.errors()["half"] + 1e-12)  # bins of equal confidence
    np.testing.assert_allclose(display.lines_["sure"].get_xdata(), [0, 1, 2])
    group = np.flatnonzero(missing == 2)
    bins = np.array_split(group[np.argsort(sure[group], kind="stable")], 10)
    gaps = [len(rows) * abs(sure[rows].mean() - right[rows].mean()) for rows in bins]
    assert display.errors()["sure"][2] == pytest.approx(sum(gaps) / len(group))
    X, code, _ = holes()
    model = KarmaClassifier().fit(X[:200], code[:200] > 0)
    fitted = CalibrationByMissingDisplay.from_estimator(model, X[200:], code[200:] > 0)
    assert list(fitted.lines_) == ["KarmaClassifier"]
    with pytest.raises(ValueError, match="Pass classes="):
        CalibrationByMissingDisplay.from_predictions(X[:2], [1, 1], {"a": [[0.1, 0.9], [0.2, 0.8]]})
    with pytest.raises(ValueError, match="a number for each of 1 rows; got shape"):
        CalibrationByMissingDisplay([1], {}, {"a": [1]})


def test_coefficients_come_by_size_and_under_their_names():
    X, code, _ = holes()
    model = SLRMRegressor(2, random_state=0).fit(pd.DataFrame(X, columns=list("abcdefgh")), code)
    display = CoefficientDisplay.from_estimator(model, n_shown=3).plot()
    order = np.argsort(-np.abs(np.ravel(model.feature_coef_)))
    assert display.shown() == ["abcdefgh"[j] for j in order[:3]]
    line = LinearRegression().fit(np.eye(3), [1.0, 5.0, 2.0])
    assert CoefficientDisplay.from_estimator(line).shown() == ["x1", "x0", "x2"]
    with pytest.raises(TypeError, match="feature_coef_ or coef_; got KarmaClassifier"):
        CoefficientDisplay.from_estimator(KarmaClassifier())


def test_tracking_error_falls_and_matches_a_run_by_hand():
    X, _, basis = holes(n=500)
    display = TrackingErrorDisplay.from_estimator(
        {"a": PETRELS(2, random_state=0), "b": GROUSE(2, random_state=0)}, X, basis=basis
    )
    assert display.errors["a"][-1] < 1e-3
    assert list(display.rows) == list(range(50, 501, 50))
    tracker = PETRELS(2, random_state=0).partial_fit(X[:50])
    ahead = TrackingErrorDisplay.from_estimator(PETRELS(2, random_state=0), X)
    np.testing.assert_allclose(ahead.errors["PETRELS"][0], tracker.score_samples(X[50:100]).mean())
    assert list(ahead.rows) == list(range(100, 501, 50))
    ahead.plot()
    means = TrackingErrorDisplay.from_predictions({"x": np.arange(10.0)}, window=5)
    np.testing.assert_array_equal(means.errors["x"], [2.0, 7.0])


def test_weights_of_experts_are_those_of_the_pool():
    i, j = np.random.default_rng(0).integers(0, 10, (2, 200))
    model = OnlineMatrixClassifier().fit((i, j), (i + j) % 2)
    display = ExpertWeightsDisplay.from_estimator(model, n=4)
    assert len(display.lines_) == 4
    trials, weights = model.expert_path_
    for name, drawn in display.weights.items():
        np.testing.assert_array_equal(drawn, weights[:, 0, model.expert_names_.index(name)])
    np.testing.assert_array_equal(display.trials, trials)


def test_regret_is_a_difference_of_sums():
    display = RegretDisplay.from_predictions([1, 0, 1], {"a": [0, 0, 1], "b": [1, 0, 1]}, comparator=[1, 1, 1])
    np.testing.assert_array_equal(display.curves()["a"], [1, 0, 0])
    np.testing.assert_array_equal(display.curves()["b"], [0, -1, -1])
    display.plot()
    X, code, _ = holes()
    y = np.where(code > 0, "yes", "no")
    one = KarmaOnlineClassifier().partial_fit(X[:100], y[:100], classes=["no", "yes"])
    two = KarmaOnlineClassifier().partial_fit(X[:100], y[:100], classes=["no", "yes"])
    drawn = RegretDisplay.from_estimator(one, X[100:], y[100:]).plot()
    np.testing.assert_allclose(
        drawn.curves()["KarmaOnlineClassifier"][-1], two.score_stream(X[100:], y[100:]).mistakes / 200
    )


def test_scores_are_drawn_best_first():
    display = ScoresDisplay(["a", "b"], [0.1, 0.2], [0.01, np.nan], [True, False], "error rate").plot()
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["a", "b"]
    bar, point = display.ax_.get_lines()[:2]
    np.testing.assert_allclose(bar.get_xdata(), [0.09, 0.11])
    np.testing.assert_allclose(point.get_xdata(), [0.1])


IMPORTANCE = {
    "column": ["a", "b"],
    "value": [0.1, 0.2],
    "value_sd": [0.0, 0.01],
    "missing": [0.3, 0.0],
    "missing_sd": [0.0, 0.0],
}


REPORT = {"member": ["kernels", "forest"], "score": [0.9, 0.8], "weight": [0.7, 0.3], "seconds": [1.0, 2.0]}


def test_the_pool_has_a_bar_a_member():
    display = PoolDisplay(REPORT).plot()
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["kernels, 0.900", "forest, 0.800"]
    np.testing.assert_allclose([bar.get_width() for bar in display.ax_.patches], [0.7, 0.3])


def test_importance_has_two_bars_a_column():
    display = ImportanceDisplay(IMPORTANCE).plot()
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == display.shown() == ["a", "b"]
    np.testing.assert_allclose([bar.get_width() for bar in display.ax_.patches], [0.1, 0.2, 0.3, 0.0])
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["its value", "that it is missing"]


def test_what_is_drawn_is_what_is_held():
    X, code, basis = holes(n=500)
    y = (code > 0).astype(int)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    drawn = MissingnessDisplay.from_table(frame, alpha=0.9)
    np.testing.assert_array_equal(drawn.image_.get_array(), drawn.image)
    assert drawn.image_.get_alpha() == 0.9
    assert [label.get_text() for label in drawn.ax_.get_xticklabels()] == list("abcdefgh")

    model = SLRMRegressor(2, random_state=0).fit(frame, code)
    bars = CoefficientDisplay.from_estimator(model, n_shown=3, edgecolor="k").bars_
    np.testing.assert_allclose([bar.get_width() for bar in bars], CoefficientDisplay.from_estimator(model).coef[
        np.argsort(-np.abs(np.ravel(model.feature_coef_)))[:3]])  # fmt: skip

    made = {"right": y, "wrong": 1 - y}
    cover = CoverageDisplay.from_predictions(X, y, made, n_bins=3)
    assert set(cover.lines_["right"].get_ydata()) == {0.0}
    assert set(cover.lines_["wrong"].get_ydata()) == {1.0}
    assert [text.get_text() for text in cover.ax_.get_legend().get_texts()] == ["right", "wrong"]

    track = TrackingErrorDisplay.from_estimator(PETRELS(2, random_state=0), X, basis=basis, linewidth=5)
    np.testing.assert_allclose(track.lines_["PETRELS"].get_ydata(), np.maximum(track.errors["PETRELS"], 1e-16))
    assert track.lines_["PETRELS"].get_linewidth() == 5

    regret = RegretDisplay.from_predictions(y, made, comparator=y)
    np.testing.assert_array_equal(regret.lines_["wrong"].get_ydata(), np.arange(1, 501))


@pytest.mark.parametrize("form", [np.asarray, Observed.from_dense, lambda X: Observed.from_dense(X).to_scipy()])
def test_share_curves_fall_with_the_share_and_are_the_same_from_every_form(form):
    X, code, _ = holes()
    one = ShareCurveDisplay.from_estimator(KarmaRegressor(), form(X), code, shares=[0.3, 1.0], n_repeats=2)
    np.testing.assert_allclose(one.shares, np.array([0.3, 1.0]) * np.isfinite(X).mean())
    assert one.losses["KarmaRegressor"].shape == (2, 2)
    mean = one.losses["KarmaRegressor"].mean(axis=1)
    assert mean[0] > mean[1]
    np.testing.assert_allclose(one.lines_["KarmaRegressor"].get_ydata(), mean)
    again = ShareCurveDisplay.from_estimator({"a": KarmaRegressor()}, X, code, shares=[1.0], n_repeats=2)
    np.testing.assert_allclose(again.losses["a"][0], one.losses["KarmaRegressor"][1])


def test_pairs_of_a_matrix_have_a_regret_curve():
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 6, size=(80, 2))
    likes = (pairs.sum(axis=1) % 2).astype(bool)
    display = RegretDisplay.from_estimator(OnlineMatrixClassifier(), pairs, likes, comparator=np.zeros(80, bool))
    score = OnlineMatrixClassifier().score_stream(list(pairs[:, 0]), list(pairs[:, 1]), likes)
    assert display.curves()["OnlineMatrixClassifier"][-1] == score.mistakes - likes.sum()


def test_one_row_nothing_seen_and_ten_billion_cells():
    one = np.array([[1.0, np.nan, 0.0]])
    assert MissingnessDisplay.from_table(one).image.tolist() == [[1, 0, 1]]
    assert MissingnessDisplay.from_table(np.full((5, 4), np.nan)).image_.get_clim() == (0, 1)
    assert CoverageDisplay.from_predictions(one, [1], {"a": [0]}).lines_["a"].get_ydata().tolist() == [1.0]
    nothing = CoverageDisplay.from_predictions(np.full((3, 2), np.nan), [1, 0, 1], {"a": [0, 0, 0]})
    np.testing.assert_allclose(nothing.lines_["a"].get_xdata(), [0])
    assert RegretDisplay.from_predictions([1], {"a": [0]}).lines_["a"].get_ydata().tolist() == [1.0]
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 10**6, 200_000), rng.integers(0, 10**4, 200_000)
    wide = sp.coo_array((np.ones(200_000), (rows, cols)), shape=(10**6, 10**4)).tocsr()
    display = MissingnessDisplay.from_table(wide)
    np.testing.assert_allclose(display.image.mean(), wide.nnz / 1e10)
    assert "darkest" in display.ax_.get_xlabel()  # a scale that shows so few


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="needs 2 windows of rows, 100; got 60 rows"):
        TrackingErrorDisplay.from_estimator(PETRELS(2), np.ones((60, 3)))
    with pytest.raises(ValueError, match="at least one; got shape"):
        CoverageDisplay([], {"a": []}, "error rate")
    with pytest.raises(ValueError, match="a number for each of 1 names"):
        CoefficientDisplay(["a"], [1.0, 2.0])


def lightness_and_colour(colour, eyes):
    """CIE Lab of a colour as seen by eyes of one kind (Machado et al. 2009, severity 1)."""
    rgb = np.asarray(to_rgb(colour))
    linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ (eyes @ linear)
    x, y, z = np.cbrt(np.maximum(xyz / [0.9505, 1, 1.089], 1e-4))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


EYES = {
    "usual": np.eye(3),
    "no red": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "no green": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]),
    "no blue": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]),
}  # fmt: skip


@pytest.mark.parametrize("eyes", EYES)
def test_all_eyes_tell_the_colours_apart(eyes):
    far = [
        np.linalg.norm(lightness_and_colour(a, EYES[eyes]) - lightness_and_colour(b, EYES[eyes]))
        for a, b in [(OURS, PEERS), (MISSING, SEEN)]
    ]
    assert min(far) > 15
    lines = line_styles([*"abcdefg"], strong="ab")
    for a, b in combinations(lines, 2):
        colours = [lightness_and_colour(each["color"], EYES[eyes]) for each in (a, b)]
        assert np.linalg.norm(colours[0] - colours[1]) > 10 or a["linestyle"] != b["linestyle"]


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_words_stand_out_from_the_ground(style):
    def luminance(colour):
        rgb = np.asarray(to_rgb(colour))
        return np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92) @ [0.2126, 0.7152, 0.0722]

    with plt.style.context(style):
        displays = [
            ScoresDisplay(["a"], [0.1], [0.01], [True], "error rate").plot(),
            CoverageDisplay([0.1, 0.9], {"a": [0, 1]}, "error rate").plot(),
            CalibrationByMissingDisplay([0, 1], {"a": [0.6, 0.9]}, {"a": [0, 1]}).plot(),
            CoefficientDisplay(["a"], [1.0]).plot(),
            ImportanceDisplay(IMPORTANCE).plot(),
            PoolDisplay(REPORT).plot(),
            MissingnessDisplay.from_table([[1.0, np.nan]]),
        ]
        for display in displays:
            ax = display.ax_
            words = [ax.xaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels()]
            if ax.get_legend():
                words += ax.get_legend().get_texts()
            ground = luminance(display.figure_.get_facecolor()[:3])
            for word in words:
                light, dark = sorted([luminance(word.get_color()), ground], reverse=True)
                assert (light + 0.05) / (dark + 0.05) > 4.5, (type(display).__name__, word)


# -- every door ---------------------------------------------------------------------------------------------------------


def problem_of_doors():
    X, code, basis = holes(n=120, d=5)
    return X, code, np.where(code > 0, "yes", "no"), basis


def from_rows(make, target):
    """A display of a model that learned its first rows at the same door."""

    def display(form):
        X, code, word, _ = problem_of_doors()
        y = word if target == "word" else code
        return make(form(X[:80]), y[:80], form(X[80:]), y[80:])

    return display


# Everything of lacunar.plotting that takes a table, by name: a display from a function that brings an array to the door.
FROM_TABLES = {
    "MissingnessDisplay.from_table": lambda form: MissingnessDisplay.from_table(form(problem_of_doors()[0]), "vwxyz"),
    "CoverageDisplay.from_predictions": from_rows(
        lambda Z, z, X, y: CoverageDisplay.from_predictions(X, y, {"a": np.roll(y, 1)}, regression=True), "code"
    ),
    "CoverageDisplay.from_estimator": from_rows(
        lambda Z, z, X, y: CoverageDisplay.from_estimator(KarmaRegressor().fit(Z, z), X, y), "code"
    ),
    "CalibrationByMissingDisplay.from_predictions": from_rows(
        lambda Z, z, X, y: CalibrationByMissingDisplay.from_predictions(X, y, {"a": np.full((40, 2), [0.3, 0.7])}),
        "word",
    ),
    "CalibrationByMissingDisplay.from_estimator": from_rows(
        lambda Z, z, X, y: CalibrationByMissingDisplay.from_estimator(KarmaClassifier().fit(Z, z), X, y), "word"
    ),
    "ShareCurveDisplay.from_estimator": from_rows(
        lambda Z, z, X, y: ShareCurveDisplay.from_estimator(KarmaClassifier(), Z, z, shares=[0.5, 1.0], n_repeats=2),
        "word",
    ),
    "RegretDisplay.from_estimator": from_rows(
        lambda Z, z, X, y: RegretDisplay.from_estimator(
            KarmaOnlineClassifier(), X, y, comparator=np.full(40, "no"), stream_params={"classes": ["no", "yes"]}
        ),
        "word",
    ),
    "TrackingErrorDisplay.from_estimator": from_rows(
        lambda Z, z, X, y: TrackingErrorDisplay.from_estimator({"a": PETRELS(2, random_state=0)}, Z, window=20), "code"
    ),
    "ImportanceDisplay.from_estimator": from_rows(
        lambda Z, z, X, y: ImportanceDisplay.from_estimator(
            LacunarClassifier(members=["logistic"], random_state=0).fit(Z, z), X, y, n_repeats=1
        ),
        "word",
    ),
}


def test_every_display_that_takes_a_table_is_tested_at_every_door():
    takes_tables = {
        f"{name}.{method}"
        for name in plotting.__all__
        for method, function in inspect.getmembers(getattr(plotting, name), inspect.ismethod)
        if "X" in inspect.signature(function).parameters
    }
    takes_dense = {name for name in takes_tables if name.split(".")[0] in vars(imputation)}  # by tests of their own
    explains = {name for name in takes_tables if name.split(".")[0] in vars(explanations)}  # likewise
    assert (len(takes_dense), len(explains)) == (3, 2)
    assert takes_tables - takes_dense - explains == FROM_TABLES.keys()


def data_of(display):
    """What a display holds, without matplotlib's own objects."""
    return {name: value for name, value in vars(display).items() if not name.endswith("_")}


@functools.cache
def drawn_from_arrays(name):
    return FROM_TABLES[name](np.array)


@pytest.mark.filterwarnings("ignore:.* of the entries are missing, and 99 of 100 training rows had")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", FROM_TABLES)
def test_a_display_is_the_same_from_every_form(name, door):
    said, expected = FROM_TABLES[name](DOORS[door]), drawn_from_arrays(name)
    assert said.ax_.get_xlabel() == expected.ax_.get_xlabel()
    assert data_of(said).keys() == data_of(expected).keys()
    for key, value in data_of(expected).items():
        if door == "float32":  # of the codes of rows, in which models compute
            same_to_float32(data_of(said)[key], value)
        else:
            np.testing.assert_equal(data_of(said)[key], value, err_msg=key)


def same_to_float32(one, other):
    if isinstance(other, dict):
        assert one.keys() == other.keys()
        for key, value in other.items():
            same_to_float32(one[key], value)
    elif isinstance(other, np.ndarray) and other.dtype.kind == "f":
        np.testing.assert_allclose(one, other, atol=1e-5)
    else:
        np.testing.assert_equal(one, other)


@pytest.mark.parametrize("form", FRAMES.values(), ids=FRAMES)
def test_columns_of_a_frame_are_named(form):
    display = MissingnessDisplay.from_table(form(problem_of_doors()[0]))
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == [f"x{j}" for j in range(5)]


def mixed(n=150):
    """Columns of numbers, whole numbers, text and truth values; the text and one number say the class."""
    rng = np.random.default_rng(0)
    word = rng.choice(["u", "v"], n)
    columns = {
        "number": rng.normal(size=n),
        "whole": rng.integers(9, size=n),
        "text": word,
        "truth": rng.random(n) < 0.5,
    }
    return columns, np.where((columns["number"] + 2 * (word == "u")) > 1, "yes", "no")


MIXED = {
    "pandas": pd.DataFrame,
    "pandas, other index": lambda columns: pd.DataFrame(columns, index=range(1000, 1150)),
    "pandas, columns named by numbers": lambda columns: pd.DataFrame(dict(enumerate(columns.values()))),
    "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
    "Arrow": lambda columns: pytest.importorskip("pyarrow").table(columns),
}


@pytest.mark.parametrize("form", MIXED.values(), ids=MIXED)
def test_share_curves_of_tables_with_text_learn_from_their_cells(form):
    columns, y = mixed()
    learner = LacunarClassifier(members=["logistic"], cv=2, random_state=0)
    display = ShareCurveDisplay.from_estimator({"a": learner}, form(columns), y, shares=[0.3, 1.0], n_repeats=2)
    most, least = display.losses["a"].mean(axis=1)
    assert least < 0.15 < most  # one class in two is right by chance
    np.testing.assert_allclose(display.shares, [0.3, 1.0])


@pytest.mark.parametrize("share", [0, 1.5, np.nan])
def test_shares_lie_between_0_and_1(share):
    with pytest.raises(ValueError, match=r"shares must lie in \(0, 1\]; got"):
        ShareCurveDisplay.from_estimator(KarmaClassifier(), np.eye(20), np.arange(20) % 2, shares=[1.0, share])


def test_cells_that_are_hidden_do_not_depend_on_how_many_are_drawn_at_a_time(monkeypatch):
    pattern = pattern_of(problem_of_doors()[0])
    whole = draws_of(pattern, 7)
    monkeypatch.setattr(rows, "_CELLS_AT_ONCE", 12)
    np.testing.assert_array_equal(draws_of(pattern, 7), whole)
