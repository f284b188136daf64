"""Intervals and sets for the mask in hand, what to measure next, and reports of why entries are missing."""

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info, threadpool_limits

from lacunar import LacunarClassifier, LacunarRegressor, Observed
from lacunar.encode import TableEncoder
from lacunar.lowrank import GaussianRegressor, LowRankImputer, SLRMRegressor
from lacunar.persistence import load_model, save_model
from lacunar.uncertainty import (
    MaskConformalClassifier,
    MaskConformalRegressor,
    MeasuringLoop,
    missingness_report,
    value_of_measuring,
)
from lacunar.uncertainty.boosted import BoostedGaussian
from lacunar.uncertainty.conformal import ConformalScores, quantile, quantiles_at
from lacunar.uncertainty.foresight import holm
from lacunar.uncertainty.mechanisms import little_test, mask_evidence
from lacunar.uncertainty.power import TargetPower
from lacunar.uncertainty.report import READ_AUC, READ_SHIFT


def world(n=600, d=8, seed=0, shares=(0.2,)):
    rng = np.random.default_rng(seed)
    X = 1 + rng.normal(size=(n, d)) @ np.linalg.cholesky(0.6 + 0.4 * np.eye(d)).T
    y = X @ np.linspace(-1, 3, d) + rng.normal(size=n)
    X[rng.random(X.shape) < rng.choice(shares, (n, 1))] = np.nan
    return X, y


def boosting():
    return HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=6, random_state=0)


WRAPPED = {
    "ours": MaskConformalRegressor(),
    "ours, any masks": MaskConformalRegressor(masks="any"),
    "ours, CV+": MaskConformalRegressor(method="cv+"),
    "SLRM": MaskConformalRegressor(SLRMRegressor(5, random_state=0)),
    "boosting": MaskConformalRegressor(boosting()),
    "boosting, any masks": MaskConformalRegressor(boosting(), masks="any"),
    "boosting, CV+": MaskConformalRegressor(boosting(), method="cv+"),
    "pipeline": MaskConformalRegressor(make_pipeline(LowRankImputer(3), Ridge())),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_coverage_does_not_depend_on_the_mask(name):
    X, y = world()
    test, target = world(3000, seed=1, shares=(0, 0.2, 0.5, 0.8))
    interval = clone(WRAPPED[name]).fit(X, y).predict_interval(test)
    inside = (interval[:, 0] <= target) & (target <= interval[:, 1])
    share = np.isnan(test).mean(axis=1)
    slack = 0.06 if name.startswith("ours") else 0.1
    for rows in (share == 0, (share > 0) & (share < 0.5), share >= 0.5):
        assert abs(inside[rows].mean() - 0.9) < slack


def test_scores_are_residuals_out_of_fold():
    X, y = world(100)
    model = MaskConformalRegressor(GaussianRegressor(), cv=4).fit(X, y)
    for k in range(4):
        out = model.score_fold_ == k
        mean, std = GaussianRegressor().fit(X[~out], y[~out]).predict(X[out], return_std=True)
        np.testing.assert_allclose(model.scores_.scores_[out], (y[out] - mean) / std)
    mean, std = GaussianRegressor().fit(X, y).predict(X, return_std=True)
    ordered, k = np.sort(model.scores_.scores_), int(np.ceil(0.9 * 101))  # a tenth of the rows in each tail
    expected = np.column_stack([mean + ordered[100 - k] * std, mean + ordered[k - 1] * std])
    np.testing.assert_allclose(model.predict_interval(X, level=0.8), expected)
    np.testing.assert_allclose(model.predict(X), mean)


def test_cv_plus_is_the_literal_one():
    X, y = world(60)
    model = MaskConformalRegressor(SLRMRegressor(3, random_state=0), method="cv+", cv=3).fit(X, y)
    test = world(5, seed=1)[0]
    ends = np.array([one.predict(test, return_std=True) for one in model.estimators_])  # (folds, 2, rows)
    for i, (low, high) in enumerate(model.predict_interval(test)):
        mean, wide = (ends[model.score_fold_, part, i] for part in (0, 1))
        reached = np.sort(mean + wide * model.scores_.scores_)
        k = int(np.ceil(0.95 * 61))
        assert low == pytest.approx(reached[60 - k])
        assert high == pytest.approx(reached[k - 1])


def test_quantiles():
    assert quantile(np.arange(1.0, 20.0), 0.9) == 18
    assert quantile(np.arange(1.0, 9.0), 0.9) == np.inf
    scores, missing = np.arange(1.0, 101.0), np.repeat([0.0, 10.0], 50)
    copied = np.zeros(100, dtype=bool)
    at = np.array([0.0, 10.0])
    low, high = ConformalScores().fit(scores, missing, 10, copied=copied).near(at, 0.8)
    assert (low, high) == (41, 91)  # rows 10 apart of 10 columns weigh exp(-10)
    copied[50:] = True
    half_copied = ConformalScores().fit(scores, missing, 10, copied=copied)
    assert half_copied.near(at, 0.8)[1] == 91  # copies count where no row is near
    assert half_copied.near(at, 0.99)[0] == np.inf


def test_many_rows_that_are_not_quite_near_leave_little_open():
    """Two hundred of one weight have the quantile of two hundred; of ten columns, ten more missing is far."""
    scores, ones = np.arange(1.0, 201.0), np.ones(200)
    conformal_scores = ConformalScores().fit(scores, ones, 10)
    assert conformal_scores.near(np.array([1.0, 0.0, 2.0]), 0.9).tolist() == [quantile(scores, 0.9)] * 3
    assert conformal_scores.near(np.array([11.0]), 0.9)[0] == np.inf


@pytest.mark.parametrize(("n", "groups", "folds"), [(99, None, 5), (100, None, 10), (400, None, 5), (150, 20, 5)])
def test_few_rows_have_more_folds(n, groups, folds):
    X, y = world(n, d=2)
    model = MaskConformalRegressor(GaussianRegressor())
    model.fit(X, y, groups=None if groups is None else np.arange(n) % groups)
    assert np.unique(model.score_fold_).tolist() == list(range(folds))


def test_trees_answer_a_missing_entry_by_their_mean_over_what_it_may_be():
    X = np.random.default_rng(0).normal(size=(400, 2))
    model = BoostedGaussian().fit(X, X[:, 0] ** 2)  # to a Gaussian the first column says as little as the second
    mean, std = model.predict([[0.0, 0.0], [0.0, np.nan], [np.nan, 0.0]], return_std=True)
    assert np.abs(mean[:2]).max() < 0.1 < 0.4 < mean[2]  # the squares of the draws; in the middle the trees say 0
    assert std[2] > 1.05 * max(std[:2])
    many = np.repeat([[np.nan, 0.0], [0.0, np.nan]], 20_000, axis=0)  # more draws than are held at once
    assert model.predict(many) == pytest.approx(np.repeat(mean[[2, 1]], 20_000), rel=1e-9)


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_text_of_any_frame_reaches_the_estimator(kind):
    pandas, other = pytest.importorskip("pandas"), pytest.importorskip(kind)
    pytest.importorskip("pyarrow")  # by which polars becomes pandas
    rng = np.random.default_rng(2)
    columns = {"a": rng.normal(size=60), "k": rng.choice(["u", "v"], 60).tolist()}
    frame, y = pandas.DataFrame(columns), columns["a"] + (np.array(columns["k"]) == "u")
    foreign = (other.DataFrame if kind == "polars" else other.table)(columns)
    model = MaskConformalRegressor(LacunarRegressor(members=["gaussian"], cv=2), cv=2)
    expected = model.fit(frame, y).predict_interval(frame)
    np.testing.assert_array_equal(model.fit(foreign, y).predict_interval(foreign), expected)


def mixed_frame(pandas):
    """Rows with a column of text, which the target follows."""
    rng = np.random.default_rng(2)
    frame = pandas.DataFrame({"a": rng.normal(size=60), "k": rng.choice(["u", "v"], 60)})
    return frame, frame["a"] + (frame["k"] == "u") + 0.1 * rng.normal(size=60)


@pytest.mark.parametrize("kind", ["objects", "masked", "text", "list"])
def test_text_in_arrays_reaches_the_estimator(kind):
    frame, y = mixed_frame(pytest.importorskip("pandas"))
    cells = frame.to_numpy(dtype=object)
    hidden = np.ma.masked_array(np.where(np.eye(60, 2), "none", cells), np.eye(60, 2))
    forms = {"objects": cells, "masked": hidden, "text": cells.astype(str), "list": cells.tolist()}
    inside = LacunarRegressor(members=["linear"], cv=2, random_state=0)
    model = MaskConformalRegressor(inside, cv=2).fit(forms[kind], y)
    expected = inside.fit(forms[kind], y).predict(forms[kind])
    np.testing.assert_array_equal(model.predict(forms[kind]), expected)
    bands = model.predict_interval(forms[kind])
    assert np.mean((bands[:, 0] <= y) & (y <= bands[:, 1])) > 0.85
    labels = np.where(y > 0, "high", "low")
    sets = MaskConformalClassifier(LacunarClassifier(members=["logistic"], cv=2), cv=2).fit(forms[kind], labels)
    assert np.mean(sets.predict(forms[kind]) == labels) > 0.9


@pytest.mark.parametrize("options", [{}, {"masks": "any"}, {"method": "cv+"}])
@pytest.mark.filterwarnings("error")
def test_the_default_makes_numbers_of_text(options, tmp_path):
    frame, y = mixed_frame(pytest.importorskip("pandas"))
    model = MaskConformalRegressor(**options).fit(frame, y)
    bands = model.predict_interval(frame)
    assert np.mean((bands[:, 0] <= y) & (y <= bands[:, 1])) > 0.85
    assert (bands[:, 1] - bands[:, 0]).mean() < 0.6  # of those that read no text it is more than 1.6
    numbers = TableEncoder().fit(frame).transform(frame)
    if "masks" not in options:  # whose copies hide cells of text whole
        np.testing.assert_array_equal(
            MaskConformalRegressor(**options).fit(numbers, y).predict_interval(numbers), bands
        )
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_interval(frame), bands)
    cells = frame.to_numpy(dtype=object)
    np.testing.assert_array_equal(model.fit(cells, y).predict_interval(cells), bands)


@pytest.mark.filterwarnings("error")
def test_sets_of_the_default_make_numbers_of_text(tmp_path):
    frame, y = mixed_frame(pytest.importorskip("pandas"))
    model = MaskConformalClassifier().fit(frame, y > 0.5)
    sets = model.predict_set(frame)
    assert sets[np.arange(60), (y > 0.5).astype(int)].mean() > 0.85
    assert sets.sum(axis=1).mean() < 1.3
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_set(frame), sets)


def test_the_default_says_what_it_reads_of_new_levels():
    frame, y = mixed_frame(pytest.importorskip("pandas"))
    model = MaskConformalRegressor().fit(frame, y)
    with pytest.warns(UserWarning, match="categories that fit never saw: 'w' in 1 cell of column 'k'"):
        model.predict_interval(frame[:3].assign(k=["u", "w", "v"]))


@pytest.mark.parametrize("options", [{}, {"method": "cv+"}, {"estimator": HistGradientBoostingRegressor()}])
@pytest.mark.parametrize("row", [3, 58])
def test_an_entry_far_from_a_fold_is_named_by_its_row(options, row):
    """A fold that leaves the entry out has no standard deviation as large."""
    X, y = world(n=60)
    X[row, 2] = 1e160
    with pytest.raises(ValueError, match=f"got 1e\\+160 in row {row}, column 2"):
        MaskConformalRegressor(**options).fit(X, y)
    with pytest.raises(ValueError, match=f"got 1e\\+160 in row {row}, column 2"):
        MaskConformalClassifier().fit(X, y > 0)


def test_text_in_arrays_stays_text_whatever_comes_with_it():
    """Rows whose texts all read as numbers hold the same text."""
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    names, cells = rng.choice(["01", "02", "x9"], 150), np.empty((150, 2), dtype=object)
    cells[:, 0], cells[:, 1] = rng.normal(size=150), names
    y = cells[:, 0].astype(float) + 5 * (names == "01") - 5 * (names == "02") + 0.1 * rng.normal(size=150)
    rows = np.flatnonzero(names != "x9")[:6]
    model = MaskConformalRegressor(LacunarRegressor(members=["linear"], cv=2, random_state=0), cv=2).fit(cells, y)
    np.testing.assert_array_equal(model.predict(cells[rows]), model.predict(cells)[rows])
    np.testing.assert_array_equal(model.predict_interval(cells[rows]), model.predict_interval(cells)[rows])


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.filterwarnings("error")
def test_a_frame_whose_text_is_missing_keeps_its_names(library):
    pandas, library = pytest.importorskip("pandas"), pytest.importorskip(library)
    frame, y = mixed_frame(pandas)
    model = MaskConformalRegressor(LacunarRegressor(members=["linear"], cv=2, random_state=0), cv=2).fit(frame, y)
    lacking = library.DataFrame({"k": [None, None], "a": [0.5, -1.0]})
    np.testing.assert_array_equal(model.predict(lacking), model.estimator_.predict(lacking))


def test_trees_draw_from_low_rank_too():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 120)) + 0.1 * rng.normal(size=(200, 120))
    X[rng.random(X.shape) < 0.3] = np.nan
    model = BoostedGaussian().fit(X, rng.normal(size=200))
    assert model.drawn_.shape == (8, 120)
    assert np.corrcoef(np.std(model.drawn_, axis=0), np.nanstd(X, axis=0))[0, 1] > 0.5
    assert np.isfinite(model.predict(X, return_std=True)).all()


def test_rows_that_lack_less_do_not_stand_in_for_copies():
    scores = np.r_[np.linspace(0, 1, 1000), np.linspace(2, 3, 300)]
    missing, copied = np.repeat([0.0, 2.0], [1000, 300]), np.repeat([False, True], [1000, 300])
    complete, lacking = ConformalScores().fit(scores, missing, 8, copied=copied).near(np.array([0.0, 2.0]), 0.5)
    assert complete == pytest.approx(0.5, abs=0.01)
    assert 2 < lacking < 2.5  # copies lack as much, and there are more than a hundred of the others


LEVELS = [0.9, 0.02, 0.5, 0.1, 0.7, 0.5]
QUANTILES = {
    "wrapper": MaskConformalRegressor(),
    "wrapper, any masks": MaskConformalRegressor(masks="any"),
    "wrapper, CV+": MaskConformalRegressor(SLRMRegressor(3, random_state=0), method="cv+", cv=3),
    "learner": LacunarRegressor(members=["gaussian", "linear"], random_state=0),
}


def skewed_world(n, seed=0):
    X, y = world(n, seed=seed)
    return X, y + 3 * np.random.default_rng(seed).exponential(size=n) ** 2


def pinball(target, quantiles, levels):
    below = target[:, None] - quantiles
    return np.maximum(levels * below, (np.array(levels) - 1) * below).mean()


@pytest.mark.filterwarnings("ignore:.*lack other entries:UserWarning")
@pytest.mark.parametrize("name", QUANTILES)
def test_quantiles_are_of_the_shares_asked_for(name, tmp_path):
    (X, y), (test, target) = skewed_world(600), skewed_world(3000, 1)
    model = clone(QUANTILES[name]).fit(X, y)
    found = model.predict_quantiles(test, LEVELS)
    assert found.shape == (3000, 6)
    np.testing.assert_allclose(np.mean(target[:, None] <= found, axis=0), LEVELS, atol=0.06)
    assert (np.diff(found[:, np.argsort(LEVELS)], axis=1) >= 0).all()
    np.testing.assert_array_equal(found[:, 2], found[:, 5])
    one = model.predict_quantiles(test, 0.9)
    assert one.shape == (3000,)
    np.testing.assert_array_equal(one, found[:, 0])
    assert model.predict_quantiles(test[:2]).shape == (2, 3)
    interval = model.predict_interval(test, level=0.8)
    if name.startswith("wrapper"):
        np.testing.assert_array_equal(interval, found[:, [3, 0]])
    else:
        (low, high), centre = interval.T, model.predict(test)
        symmetric = pinball(target, np.column_stack([low, centre, high]), [0.1, 0.5, 0.9])
        assert pinball(target, found[:, [3, 2, 0]], [0.1, 0.5, 0.9]) < 0.97 * symmetric  # which knows of no skew
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_quantiles(test[:50], LEVELS), found[:50])


@pytest.mark.filterwarnings("ignore:.*lack other entries:UserWarning")
@pytest.mark.parametrize("name", QUANTILES)
def test_intervals_of_several_levels(name):
    X, y = world(300)
    model = clone(QUANTILES[name]).fit(X, y)
    test = world(40, seed=1, shares=(0, 0.6))[0]
    both = model.predict_interval(test, level=[0.9, 0.5])
    assert both.shape == (40, 2, 2)
    for k, level in enumerate((0.9, 0.5)):
        np.testing.assert_array_equal(both[:, k], model.predict_interval(test, level=level))
    assert model.predict_interval(test, level=np.array([0.9])).shape == (40, 1, 2)
    assert model.predict_interval(test, level=np.float64(0.9)).shape == (40, 2)


@pytest.mark.parametrize("name", ["wrapper", "wrapper, any masks", "learner"])
def test_quantiles_are_the_ends_of_intervals_where_residuals_are_symmetric(name):
    """A score of either sign for every row: each of them as far out as the other, the tails are equal."""
    X, y = world(300)
    model = clone(QUANTILES[name]).fit(X, y)
    kept = [model.scores_] if hasattr(model, "scores_") else [model.deviations_[0][0].scores_]
    kept += [] if hasattr(model, "scores_") else [model.deviations_[0][0].copy_scores_]
    for scores in kept:
        scores.fit(
            np.r_[scores.scores_, -scores.scores_],
            np.tile(scores.n_missing_, 2),
            scores.n_columns_,
            copied=np.tile(scores.copied_, 2),
            copies_count=scores.copies_count_,
        )
    interval, quantiles = model.predict_interval(X[:50], 0.9), model.predict_quantiles(X[:50], [0.05, 0.5, 0.95])
    apart = np.abs(quantiles[:, ::2] - interval) / np.ptp(interval, axis=1)[:, None]
    assert np.median(apart) < 0.03  # one place in the sorted scores
    assert np.median(np.abs(quantiles[:, 1] - model.predict(X[:50])) / np.ptp(interval, axis=1)) < 0.03


def test_quantiles_of_several_targets():
    X, y = world(200)
    Y = np.column_stack([y, -10 * y, y**2 - 1])
    Y[::5, 1] = np.nan  # of another group, whose targets come between those of the first
    with pytest.warns(UserWarning, match="lack a label"):
        model = LacunarRegressor(members=["gaussian"], random_state=0).fit(X, Y)
    found = model.predict_quantiles(X[:9], [0.2, 0.8])
    assert found.shape == (9, 3, 2)
    assert model.predict_quantiles(X[:9], 0.5).shape == (9, 3)
    interval = model.predict_interval(X[:9], level=[0.6, 0.8, 0.9])
    assert interval.shape == (9, 3, 3, 2)
    assert model.predict_interval(X[:9]).shape == (9, 3, 2)
    predicted, std = model.predict(X[:9], return_std=True)
    assert predicted.shape == std.shape == (9, 3)
    np.testing.assert_allclose(interval[:, :, 0].mean(axis=2), predicted)
    assert (np.abs(found.mean(axis=2) - predicted) < std).all()


def test_few_rows_have_infinite_quantiles():
    X, y = world(12)
    for name in ("wrapper", "wrapper, CV+", "learner"):
        model = clone(QUANTILES[name]).fit(X, y)
        with pytest.warns(UserWarning, match=r"ends of 12 of 12 rows .* level=0.99 needs 99 .* there are 12 in all"):
            quantiles = model.predict_quantiles(X, [0.01, 0.5, 0.99])
        with pytest.warns(UserWarning, match=r"level=0.98 needs 49 .* Ask for a level nearer 0.5, or fit to"):
            assert np.isinf(model.predict_interval(X, [0.98, 0.5])[:, 0]).all()
        assert (quantiles[:, 0] == -np.inf).all()
        assert np.isfinite(quantiles[:, 1]).all()
        assert (quantiles[:, 2] == np.inf).all()


def test_quantiles_do_not_cross_where_a_tail_ends():
    """Of a level with too few scores near others stand in, which may be smaller."""
    ends = {0.5: 2.0, 0.7: 3.0, 0.9: 1.0}
    found = quantiles_at(np.array([0.9, 0.5, 0.7]), lambda level, tail, side: np.full(2, ends[level]))
    np.testing.assert_array_equal(found, [[3.0, 2.0, 3.0]] * 2)


@pytest.mark.parametrize("name", ["wrapper", "learner"])
def test_levels_are_shares(name):
    X, y = world(60)
    model = clone(QUANTILES[name]).fit(X, y)
    wrong = (0, 1, 1.5, [0.5, 1], np.nan, [], "0.9", [0.5, "0.9"], [[0.5]], {"a": 0.5}, np.array("x"), object())
    for level in wrong:
        for ask in (model.predict_interval, model.predict_quantiles):
            with pytest.raises((ValueError, TypeError), match=r"level must be .*between 0 and 1.*got.* Pass"):
                ask(X, level)


# -- the base that is chosen ------------------------------------------------------------------------------------------


def chosen_law(name, n, seed=0):
    """Correlated columns; a linear law, one that bends, or a skewed one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) @ np.linalg.cholesky(0.4 + 0.6 * np.eye(5)).T
    y = X[:, 0] + 0.5 * X[:, 1] + 0.4 * rng.normal(size=n)
    if name == "bent":
        y += 2 * np.sin(3 * X[:, 2])
    elif name == "skewed":
        y = np.exp(y)
    return np.where(rng.random(X.shape) < 0.1, np.nan, X), y


def interval_score(interval, target):
    low, high = interval.T
    return float(np.mean(high - low + 20 * (np.maximum(low - target, 0) + np.maximum(target - high, 0))))


CHOSEN = {"linear": "Gaussian", "bent": "boosted", "skewed": "boosted, power"}


@pytest.mark.parametrize("name", CHOSEN)
def test_the_default_takes_the_base_with_the_least_interval_score(name, tmp_path):
    (X, y), (test, target) = chosen_law(name, 500), chosen_law(name, 3000, 1)
    model = MaskConformalRegressor().fit(X, y)
    assert type(model.estimator_) is (BoostedGaussian if "boosted" in CHOSEN[name] else GaussianRegressor)
    assert (model.power_ is not None) == ("power" in CHOSEN[name])
    assert CHOSEN[name] == min(model.interval_scores_, key=model.interval_scores_.get)
    given = MaskConformalRegressor(GaussianRegressor(warm_start=True)).fit(X, y)
    chosen, usual = (model.predict_interval(test), given.predict_interval(test))
    inside = np.mean((chosen[:, 0] <= target) & (target <= chosen[:, 1]))
    assert 0.86 < inside < 0.94
    if name == "linear":
        np.testing.assert_allclose(chosen, usual, atol=1e-4)  # where EM stops
    else:
        assert interval_score(chosen, target) < 0.85 * interval_score(usual, target)
    assert model.score(test, target) > given.score(test, target) - 0.02
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_interval(test), chosen)
    rescaled = MaskConformalRegressor().fit(X, 1024 * y).predict_interval(test[:50])
    np.testing.assert_allclose(rescaled, 1024 * chosen[:50], rtol=1e-6)


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0, 1.7, 2.0])
def test_a_power_is_undone_and_never_blows_up(power):
    y = np.random.default_rng(0).normal(size=300) * 1e3 + 5
    curve = TargetPower().fit(y)
    curve.power_ = power
    np.testing.assert_allclose(curve.inverse(curve.transform(y)), y, rtol=1e-9)
    values = np.linspace(-50, 50, 2001)
    undone = curve.inverse(values)
    assert np.isfinite(undone).all()
    assert (np.diff(undone) > 0).all()
    steps = np.diff(undone)[[0, 1, -2, -1]]
    np.testing.assert_allclose(steps[[0, 2]], steps[[1, 3]], rtol=1e-6)  # straight beyond the data
    np.testing.assert_array_equal(curve.inverse(np.array([-np.inf, np.inf])), [-np.inf, np.inf])


@pytest.mark.parametrize("y", [np.zeros(150), np.r_[np.zeros(149), 1e6], np.tile([0.0, 1.0], 75)])
def test_targets_of_few_values_have_finite_intervals(y):
    X = np.random.default_rng(0).normal(size=(150, 2))
    with np.errstate(over="ignore"):
        found = MaskConformalRegressor().fit(X, y).predict_interval(X[:5])
    assert np.isfinite(found).all()


def test_no_end_lies_below_the_bound():
    X, y = chosen_law("skewed", 200)
    free = MaskConformalRegressor(GaussianRegressor(), lower_bound=None).fit(X, y)
    assert (free.predict_interval(X) < y.min()).any()
    usual = MaskConformalRegressor(GaussianRegressor()).fit(X, y)
    held = np.minimum(np.maximum(free.predict_interval(X), 0.0), np.c_[usual.predict(X), np.full(len(X), np.inf)])
    assert (usual.predict(X) < 0).any()
    np.testing.assert_array_equal(usual.predict_interval(X), held)
    np.testing.assert_array_equal(usual.predict_interval(X, [0.9, 0.5])[:, 0], held)
    assert usual.predict_quantiles(X, 0.01).min() == 0
    for bound, least in ((0.0, 0.0), ("observed", y.min()), (0.5, 0.5), (-1.5, -1.5)):
        model = MaskConformalRegressor(GaussianRegressor(), lower_bound=bound).fit(X, y)
        np.testing.assert_array_equal(model.predict_interval(X), np.maximum(free.predict_interval(X), least))
        assert model.predict_quantiles(X, 0.01).min() == least
    mixed = MaskConformalRegressor(GaussianRegressor()).fit(X, y - 0.5)
    np.testing.assert_allclose(mixed.predict_interval(X), free.predict_interval(X) - 0.5)  # some targets are below 0
    few = MaskConformalRegressor(SLRMRegressor(2, random_state=0), method="cv+", cv=3, lower_bound=0).fit(X[:8], y[:8])
    with pytest.warns(UserWarning, match="there are 8 in all"):
        np.testing.assert_array_equal(few.predict_interval(X, 0.95), np.tile([0.0, np.inf], (200, 1)))


def test_rows_too_few_for_a_tail_have_symmetric_intervals():
    """Twelve rows have a quantile of .9 and none of .95."""
    X, y = world(12)
    model = MaskConformalRegressor(GaussianRegressor()).fit(X, y)
    low, high = model.predict_interval(X).T
    np.testing.assert_allclose((low + high) / 2, model.predict(X))
    assert np.isfinite(high).all()


def test_intervals_of_frames_and_containers(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = world(200)
    model = MaskConformalRegressor().fit(X, y)
    expected = model.predict_interval(X)
    np.testing.assert_allclose(MaskConformalRegressor().fit(Observed.from_dense(X), y).predict_interval(X), expected)
    np.testing.assert_array_equal(model.predict_interval(X[3:5]), expected[3:5])
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_interval(X), expected)
    frame = pd.DataFrame(X).rename(columns=str)
    frame["kind"] = pd.Categorical(np.where(y > 0, "a", "b"))
    wrapped = HistGradientBoostingRegressor(max_iter=20, categorical_features="from_dtype", random_state=0)
    made = MaskConformalRegressor(wrapped).fit(frame, y).predict_interval(frame)
    assert np.isfinite(made).all()
    assert np.mean((made[:, 0] <= y) & (y <= made[:, 1])) > 0.85


def test_wishes_that_cannot_be_met():
    X, y = world(50)
    with pytest.raises(ValueError, match="at least cv=5 rows"):
        MaskConformalRegressor().fit(X[:3], y[:3])
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        MaskConformalRegressor().fit(X, y).predict_interval(X, level=1)
    with pytest.raises(ValueError, match="2 classes or more; got 1 class, 'a'"):
        MaskConformalClassifier().fit(X, ["a"] * 50)
    fractions = np.r_[1.0, 2.0, 0.5, np.ones(47)]
    with pytest.raises(ValueError, match=r"y must hold classes; got 0.5 in row 2. Take a regressor .* cut them"):
        MaskConformalClassifier().fit(X, fractions)
    with pytest.raises(ValueError, match=r"X must have rows and columns; got shape \(0, 8\)"):
        missingness_report(X[:0])
    with pytest.raises(ValueError, match=r"cost must be 8 numbers above 0, one a column; got shape \(1,\)"):
        value_of_measuring(X, y, X, cost=2.0)


@pytest.mark.parametrize("masks", ["natural", "any"])
@pytest.mark.parametrize("estimator", [None, HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=6)])
def test_sets_cover_for_every_number_missing(estimator, masks):
    X, y = world(900)
    test, target = world(3000, seed=1, shares=(0, 0.2, 0.6))
    cuts = np.quantile(y, [0.33, 0.67])
    words = np.array(["low", "middle", "high"])
    y, target = words[np.digitize(y, cuts)], words[np.digitize(target, cuts)]
    model = MaskConformalClassifier(estimator, masks=masks).fit(X, y)
    sets = model.predict_set(test)
    inside = sets[np.arange(3000), np.searchsorted(model.classes_, target)]
    share = np.isnan(test).mean(axis=1)
    for rows in (share == 0, (share > 0) & (share < 0.4), share >= 0.4):
        assert 0.84 < inside[rows].mean() < 0.97
    assert sets[share == 0].sum(axis=1).mean() < sets[share >= 0.4].sum(axis=1).mean()
    assert (model.predict_set(test, level=0.5).sum(axis=1) <= sets.sum(axis=1)).all()
    np.testing.assert_allclose(model.predict_proba(test[:5]).sum(axis=1), 1)
    assert set(model.predict(test[:50])) <= set(words)


def test_the_value_of_measuring_over_samples():
    X, y = world(400, shares=(0.1,))
    rows = np.full((2, 8), np.nan)
    rows[1, :4] = 1.0
    values = value_of_measuring(X, y, rows, n_bags=3)
    exact = GaussianRegressor().fit(X, y).value_of_measuring(rows)
    assert np.corrcoef(values[0], exact[0])[0, 1] > 0.95
    assert not values[1, :4].any()
    one = value_of_measuring(X, y, rows, n_bags=1)
    np.testing.assert_allclose(one, GaussianRegressor(shrinkage=60, tol=1e-3).fit(X, y).value_of_measuring(rows))
    words = np.where(y > np.median(y), "yes", "no")
    assert np.argmax(value_of_measuring(X, words, rows)[0]) == np.argmax(exact[0])
    whole = np.round(10 * y)  # floats are numbers, whole or not
    found = value_of_measuring(X, whole, rows)
    np.testing.assert_allclose(found, 100 * value_of_measuring(X, whole / 10, rows), rtol=1e-9)
    np.testing.assert_allclose(found, value_of_measuring(X, whole.astype(int), rows), rtol=1e-9)
    with pytest.raises(ValueError, match="n_bags"):
        value_of_measuring(X, y, rows, n_bags=0)


def test_a_loop_buys_what_tells_most_within_the_budget():
    X, y = world(400, shares=(0.2,))
    full, _ = world(40, seed=3, shares=(0,))
    arrived = np.where(np.random.default_rng(4).random(full.shape) < 0.7, np.nan, full)
    model, cost = GaussianRegressor().fit(X, y), np.array([1.0, 2, 1, 1, 2, 1, 1, 3])
    loop = MeasuringLoop(model, budget=4, cost=cost)
    np.testing.assert_array_equal(loop.add(arrived[:25]), np.arange(25))
    np.testing.assert_array_equal(loop.add(arrived[25:]), np.arange(25, 40))
    loop.run(lambda row, column: full[row, column])
    for i, row in enumerate(arrived):
        known, left = row.copy(), 4.0
        while True:
            values = np.where(cost <= left, model.value_of_measuring(known[None], cost=cost)[0], 0.0)
            if not values.any():
                break
            best = values.argmax()
            known[best], left = full[i, best], left - cost[best]
        np.testing.assert_array_equal(loop.rows_[i], known)
        assert loop.spent_[i] == 4 - left
    assert loop.ask() == []


def test_a_loop_takes_answers_in_any_order_and_refusals():
    X, y = world(300)
    model = GaussianRegressor().fit(X, y)
    loop = MeasuringLoop(model, budget=1)
    loop.add(np.full((2, 8), np.nan))
    first, second = loop.ask()
    assert first.column == second.column == model.value_of_measuring(np.full((1, 8), np.nan)).argmax()
    assert loop.ask() == []  # all is pending
    with pytest.raises(ValueError, match=r"must be a number, or NaN .* row 1"):
        loop.tell(second, np.inf)
    loop.tell(second.row, np.nan)
    again = loop.ask()[0]
    assert (again.row, again.column == second.column, loop.spent_[1]) == (1, False, 0)
    with pytest.raises(ValueError, match="waits for its value"):
        loop.tell(second, 1.0)
    loop.tell(again, 1.0)
    loop.tell(first, 2.0)
    assert loop.ask() == []
    assert loop.rows_[0, first.column] == 2
    assert MeasuringLoop(model, least_value=1e9).add([[np.nan] * 8]).tolist() == [0]
    dear = MeasuringLoop(model, least_value=1e9)
    dear.add([[np.nan] * 8])
    assert dear.ask() == []
    with pytest.raises(ValueError, match="has 2 features, but GaussianRegressor is expecting 8"):
        dear.add([[1.0, 2.0]])
    with pytest.raises(ValueError, match="cost must be 8 numbers above 0"):
        MeasuringLoop(model, cost=[1.0, 0.0])
    for budget, least in ((0, 0), (-1, 0), (np.nan, 0), ("three", 0), (None, 0), (3, "none"), (3, -1)):
        with pytest.raises(ValueError, match="budget must be above 0 and least_value at least 0; got"):
            MeasuringLoop(model, budget=budget, least_value=least)
    with pytest.raises(TypeError, match="model must have value_of_measuring; got Ridge"):
        MeasuringLoop(Ridge().fit([[0.0], [1.0]], [0.0, 1.0]))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("high", r"value of row 0, column \d, must hold numbers; got 'high' .* Answer with numbers, NaN"),
        ([1.0, 2.0], r"value must be a number, or NaN .*; got \[1.0, 2.0\] for row 0, column \d. Pass NaN."),
        (-np.inf, "got -inf for row 0"),
        (1j, "value of row 0"),
    ],
)
def test_answers_are_numbers(answer, message):
    X, y = world(60)
    loop = MeasuringLoop(GaussianRegressor().fit(X, y), budget=2)
    loop.add(np.full((1, 8), np.nan))
    with pytest.raises((ValueError, TypeError), match=message):
        loop.run(lambda row, column: answer)
    assert np.isnan(loop.rows_).all()
    assert loop.spent_[0] == 0
    for request in ("a", None, 1.5, [0]):
        with pytest.raises(ValueError, match="request must be one that waits for its value; got"):
            loop.tell(request, 1.0)
    with pytest.raises(TypeError, match="measure must be a function of a row and a column; got 5"):
        loop.run(5)
    loop.run(lambda row, column: None)  # as any door reads it: not measured
    assert np.isnan(loop.rows_).all()


def test_a_loop_serves_the_one_learner():
    X, y = world(150)
    model = LacunarRegressor(members=["gaussian"]).fit(X, y)
    loop = MeasuringLoop(model, budget=2)
    loop.add(X[:5])
    missing = np.isnan(X[:5]).sum(axis=1)
    loop.run(lambda row, column: 1.0)
    np.testing.assert_array_equal(np.isnan(loop.rows_).sum(axis=1), np.maximum(missing - 2, 0))


# New York, May to September 1973 (Chambers, Cleveland, Kleiner and Tukey, "Graphical Methods for Data Analysis", 1983): R's `airquality`, 0 for missing.
OZONE = "41 36 12 18 0 28 23 19 8 0 7 16 11 14 18 14 34 6 30 11 1 11 4 32 0 0 0 23 45 115 37 0 0 0 0 0 0 29 0 71 39 0 0 23 0 0 21 37 20 12 13 0 0 0 0 0 0 0 0 0 0 135 49 32 0 64 40 77 97 97 85 0 10 27 0 7 48 35 61 79 63 16 0 0 80 108 20 52 82 50 64 59 39 9 16 78 35 66 122 89 110 0 0 44 28 65 0 22 59 23 31 44 21 9 0 45 168 73 0 76 118 84 85 96 78 73 91 47 32 20 23 21 24 44 21 28 9 13 46 18 13 24 16 13 23 36 7 14 30 0 14 18 20"
SOLAR = "190 118 149 313 0 0 299 99 19 194 0 256 290 274 65 334 307 78 322 44 8 320 25 92 66 266 0 13 252 223 279 286 287 242 186 220 264 127 273 291 323 259 250 148 332 322 191 284 37 120 137 150 59 91 250 135 127 47 98 31 138 269 248 236 101 175 314 276 267 272 175 139 264 175 291 48 260 274 285 187 220 7 258 295 294 223 81 82 213 275 253 254 83 24 77 0 0 0 255 229 207 222 137 192 273 157 64 71 51 115 244 190 259 36 255 212 238 215 153 203 225 237 188 167 197 183 189 95 92 252 220 230 259 236 259 238 24 112 237 224 27 238 201 238 14 139 49 20 193 145 191 131 223"
WIND = "7.4 8.0 12.6 11.5 14.3 14.9 8.6 13.8 20.1 8.6 6.9 9.7 9.2 10.9 13.2 11.5 12.0 18.4 11.5 9.7 9.7 16.6 9.7 12.0 16.6 14.9 8.0 12.0 14.9 5.7 7.4 8.6 9.7 16.1 9.2 8.6 14.3 9.7 6.9 13.8 11.5 10.9 9.2 8.0 13.8 11.5 14.9 20.7 9.2 11.5 10.3 6.3 1.7 4.6 6.3 8.0 8.0 10.3 11.5 14.9 8.0 4.1 9.2 9.2 10.9 4.6 10.9 5.1 6.3 5.7 7.4 8.6 14.3 14.9 14.9 14.3 6.9 10.3 6.3 5.1 11.5 6.9 9.7 11.5 8.6 8.0 8.6 12.0 7.4 7.4 7.4 9.2 6.9 13.8 7.4 6.9 7.4 4.6 4.0 10.3 8.0 8.6 11.5 11.5 11.5 9.7 11.5 10.3 6.3 7.4 10.9 10.3 15.5 14.3 12.6 9.7 3.4 8.0 5.7 9.7 2.3 6.3 6.3 6.9 5.1 2.8 4.6 7.4 15.5 10.9 10.3 10.9 9.7 14.9 15.5 6.3 10.9 11.5 6.9 13.8 10.3 10.3 8.0 12.6 9.2 10.3 10.3 16.6 6.9 13.2 14.3 8.0 11.5"
TEMPERATURE = "67 72 74 62 56 66 65 59 61 69 74 69 66 68 58 64 66 57 68 62 59 73 61 61 57 58 57 67 81 79 76 78 74 67 84 85 79 82 87 90 87 93 92 82 80 79 77 72 65 73 76 77 76 76 76 75 78 73 80 77 83 84 85 81 84 83 83 88 92 92 89 82 73 81 91 80 81 82 84 87 85 74 81 82 86 85 82 86 88 86 83 81 81 81 82 86 85 87 89 90 90 92 86 86 82 80 79 77 79 76 78 78 77 72 75 79 81 86 88 97 94 96 94 91 92 93 93 87 84 80 78 75 73 81 76 77 71 71 78 67 76 68 82 64 71 81 69 63 70 77 75 76 68"


def new_york():
    days = [31, 30, 31, 31, 30]
    columns = [np.array(text.split(), dtype=float) for text in (OZONE, SOLAR, WIND, TEMPERATURE)]
    month, day = np.repeat([5.0, 6, 7, 8, 9], days), np.concatenate([np.arange(1.0, k + 1) for k in days])
    table = np.column_stack([*columns, month, day])
    return np.where(table == 0, np.nan, table)


def test_littles_test_is_that_of_naniar():
    """R's naniar::mcar_test(airquality): statistic 35.1, df 14, p.value 0.00142, missing.patterns 4."""
    statistic, df, p, patterns = little_test(new_york())
    assert round(statistic, 1) == 35.1
    assert (df, patterns) == (14, 4)
    assert p == pytest.approx(0.00142, abs=5e-6)


def test_littles_test_rejects_as_often_as_it_should():
    rng = np.random.default_rng(0)
    p = []
    for _ in range(60):
        X = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4))
        p.append(little_test(np.where(rng.random(X.shape) < 0.2, np.nan, X))[2])
    assert np.mean(np.array(p) < 0.1) < 0.1 + 3 * np.sqrt(0.09 / 60)
    assert chi2.sf(1.0, 1) < np.max(p)


def test_a_report_tells_mechanisms_apart():
    rng = np.random.default_rng(0)
    full = rng.normal(size=(1500, 4)) @ np.linalg.cholesky(0.5 + 0.5 * np.eye(4)).T
    y = full @ [1.0, 1.0, 2.0, 0.0] + 0.5 * rng.normal(size=1500)
    X = full.copy()
    X[rng.random(1500) < 0.3, 0] = np.nan  # completely at random
    X[full[:, 3] > 0.7, 1] = np.nan  # by another column
    X[full[:, 2] > 0.7, 2] = np.nan  # by its own value
    report = missingness_report(X, y)
    assert report.p_value < 1e-6
    assert report.auc_p_value[0] > 0.01
    assert report.auc[1] > 0.95
    assert report.target_p_value[0] > 0.01
    assert report.target_p_value[2] < 1e-6
    assert report.target_shift[2] > 0.3
    np.testing.assert_allclose(report.sensitivity[:, list(report.deltas).index(0.0)], 0, atol=1e-12)
    assert report.sensitivity[2, -1] > report.sensitivity[2, -2] > 0
    assert not report.sensitivity[3].any()
    text = str(report)
    assert text.startswith("Little's test of MCAR")
    assert text.splitlines()[5:] == [READ_AUC, READ_SHIFT]
    assert str(missingness_report(X)).splitlines()[5:] == [READ_AUC]


def test_complete_columns_foresee_gaps_and_the_target():
    """What a complete column explains is no evidence that a gap says something of the target."""
    rng = np.random.default_rng(0)
    age, income = rng.normal(size=(2, 600))
    y = age + 0.5 * rng.normal(size=600)
    income[rng.random(600) < 1 / (1 + np.exp(-3 * age))] = np.nan
    table = np.column_stack([age, income])
    alone, beside = (mask_evidence(X, y, np.random.default_rng(0)) for X in (table[:, 1:], table))
    assert alone.target_p_value[0] < 1e-6
    assert beside.target_p_value[1] > 0.05
    assert beside.auc[1] > 0.85
    one = mask_evidence(table, y, np.random.default_rng(0), np.array([True, False]))
    assert np.isnan(one.auc).all()  # the column asked for has no gap


def test_masks_of_wide_tables_are_foreseen_as_those_of_narrow_ones():
    """More inputs than rows: the same logistic regression in fewer coordinates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 120))
    X[X[:, 1] > 0.3, 0] = np.nan
    X[:20, 2] = np.nan
    auc = mask_evidence(X, None, np.random.default_rng(0), np.arange(120) == 0).auc[0]
    seen = np.delete((np.nan_to_num(X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)), 0, axis=1)
    inputs, labels = np.column_stack([seen, np.isnan(X[:, 2])]), np.isnan(X[:, 0])
    split = StratifiedKFold(5, shuffle=True, random_state=int(np.random.default_rng(0).integers(2**31)))
    model = LogisticRegression(C=1.0, max_iter=1000, tol=1e-8)
    scores = cross_val_predict(model, inputs, labels, cv=split, method="decision_function")
    assert auc == pytest.approx(roc_auc_score(labels, scores), abs=0.01)


def test_masks_are_foreseen_without_threads_of_blas(monkeypatch):
    """Threads of its small products wait for one another for twenty times what they work."""
    threads = []

    def counted(*arguments, **options):
        threads.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return cross_val_predict(*arguments, **options)

    monkeypatch.setattr("lacunar.uncertainty.mechanisms.cross_val_predict", counted)
    with threadpool_limits(2):
        mask_evidence(world(60, 3)[0], None, np.random.default_rng(0))
    assert set(threads) == {1}


def test_reports_of_any_table():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": ["x", None, "y", "x"] * 10, "b": [1.0, 2.0, None, 4.0] * 10})
    report = missingness_report(frame, ["u", "v"] * 20)
    assert list(report.columns) == ["a", "b"]
    for X in (np.full((5, 3), np.nan), np.ones((5, 3)), np.ones((1, 1)), new_york()):
        assert np.isfinite(missingness_report(X).share).all()
    with pytest.raises(ValueError, match="two classes; got 3"):
        missingness_report(np.ones((3, 2)), ["a", "b", "c"])


def test_frames_of_categories_and_dates_are_reported_by_column():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80), "kind": rng.choice(["u", "v", "w"], 80)}).astype({"kind": object})
    frame["since"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300, 80), unit="D")
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    frame.loc[frame["x"] > 0.5, "since"] = pd.NaT
    report = missingness_report(frame, frame["x"].fillna(0))
    assert list(report.columns) == ["x", "kind", "since"]
    np.testing.assert_allclose(report.share, frame.isna().mean())
    assert report.auc_p_value[2] < 0.01 < report.auc_p_value[1]
    with config_context(transform_output="pandas"):
        np.testing.assert_array_equal(missingness_report(frame).auc, report.auc)
        assert value_of_measuring(frame, frame["x"].fillna(0), frame[:4]).shape[0] == 4


def test_holm():
    np.testing.assert_allclose(holm(np.array([0.01, np.nan, 0.04, 0.03])), [0.03, np.nan, 0.06, 0.06])


# -- sets by class ----------------------------------------------------------------------------------------------------


def six_classes(n, seed, law=0):
    """Six classes of 50 % down to 2 % of the rows."""
    rng = np.random.default_rng(law)
    means, basis = 1.3 * rng.normal(size=(6, 8)), rng.normal(size=(4, 8))
    rng = np.random.default_rng(seed)
    y = rng.choice(6, size=n, p=[0.5, 0.25, 0.12, 0.07, 0.04, 0.02])
    X = means[y] + rng.normal(size=(n, 4)) @ basis + 0.5 * rng.normal(size=(n, 8))
    return np.where(rng.random(X.shape) < rng.choice([0, 0.2, 0.6], (n, 1)), np.nan, X), y


def sets_of(model, rows, condition):
    if isinstance(model, LacunarClassifier):
        return model.predict_set(rows, condition=condition)
    return model.set_params(condition=condition).predict_set(rows)


@pytest.mark.parametrize(
    "model",
    [
        MaskConformalClassifier(),
        MaskConformalClassifier(masks="any"),
        LacunarClassifier(members=["logistic", "gaussian"]),
    ],
    ids=["wrapper", "any masks", "learner"],
)
def test_sets_cover_every_class_for_every_number_missing(model, tmp_path):
    (X, y), (test, target) = six_classes(2000, 1), six_classes(6000, 2)
    model = clone(model).fit(X, y)
    covered = {}
    for condition in ("missing", "class"):
        sets = sets_of(model, test, condition)
        inside = sets[np.arange(len(test)), target]
        covered[condition] = [inside[target == k].mean() for k in range(6)]
        assert 0.88 < inside.mean() < 0.96
    assert min(covered["missing"]) < 0.5  # what is not promised without it
    assert min(covered["class"]) > 0.84
    share = np.isnan(test).mean(axis=1)
    for rows in (share == 0, (share > 0) & (share < 0.4), share >= 0.4):
        assert inside[rows].mean() > 0.86
        assert inside[rows & (target >= 3)].mean() > 0.8
    assert sets[np.arange(len(test)), model.predict_proba(test).argmax(axis=1)].all()
    save_model(model, tmp_path / "sets")
    np.testing.assert_array_equal(sets_of(load_model(tmp_path / "sets"), test, "class"), sets)


@pytest.mark.parametrize("copies", [False, True])
def test_a_class_of_too_few_rows_is_in_every_set(copies):
    """Eight rows allow no quantile at level .9, however many copies they have; nine allow their largest score."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [8, 9, 200])
    scores, missing = rng.random(len(labels)), rng.integers(0, 5, len(labels)).astype(float)
    copied = np.zeros(len(labels), dtype=bool)
    if copies:
        labels, scores, missing = np.tile(labels, 4), np.r_[scores, rng.random(3 * len(scores))], np.tile(missing, 4)
        copied = np.arange(len(labels)) >= len(copied)
    at = np.array([0.0, 2.0, 50.0])
    kept = ConformalScores().fit(scores, missing, 5, labels=labels, copied=copied, copies_count=copies)
    quantiles = kept.of_classes(at, 0.9, 3)
    assert np.isinf(quantiles[:, 0]).all()
    assert np.isfinite(quantiles[:, 1:]).all()
    # nobody of a class lacks 50 entries: all its rows stand in
    assert quantiles[2, 2] == quantile(scores[labels == 2], 0.9)
    if not copies:
        assert quantiles[0, 1] == scores[labels == 1].max()
        own = labels == 2
        near = ConformalScores().fit(scores[own], missing[own], 5).near(at[:2], 0.9)
        np.testing.assert_array_equal(quantiles[:2, 2], near)


@pytest.mark.filterwarnings("ignore:no row is predicted out of fold as:UserWarning")
@pytest.mark.parametrize("kind", ["wrapper", "learner"])
def test_rare_classes_are_named_and_share_a_quantile(kind):
    """At level .9 a class needs nine rows for a quantile of its own."""
    (X, y), (test, target) = six_classes(300, 1), six_classes(3000, 2)
    few = np.flatnonzero(y >= 4)[:10]
    rows = np.sort(np.r_[np.flatnonzero(y < 4), few])
    counts = np.bincount(y[rows], minlength=6)
    assert 0 < counts[4] < 9 or 0 < counts[5] < 9
    model = MaskConformalClassifier() if kind == "wrapper" else LacunarClassifier(members=["logistic"])
    model.fit(X[rows], y[rows])
    covered = {}
    for condition in ("missing", "auto", "class"):
        if condition == "class":
            sets = sets_of(model, test, condition)
        else:
            with pytest.warns(UserWarning, match=r"fewer rows than the 9 that level=0.9 needs.*condition='class'"):
                sets = sets_of(model, test, condition)
        inside, rare = sets[np.arange(len(test)), target], counts[target] < 9
        covered[condition] = inside[rare].mean()
        sizes = sets.sum(axis=1).mean()
        assert sizes < 6
    assert covered["missing"] < 0.6
    assert covered["auto"] > covered["missing"] + 0.1
    assert covered["class"] == 1


def test_classes_with_rows_enough_have_quantiles_of_their_own():
    rng = np.random.default_rng(0)
    labels, scores = np.repeat([0, 1, 2, 3], [200, 20, 5, 5]), rng.random(230)
    kept = ConformalScores().fit(scores, np.zeros(230), 3, labels=labels)
    at = np.zeros(2)
    found, own = kept.conditional("auto", at, 0.9, 4), kept.of_classes(at, 0.9, 4)
    np.testing.assert_array_equal(found[:, :2], own[:, :2])
    assert np.isinf(own[:, 2:]).all()
    assert (found[:, 2:] == quantile(scores[labels >= 2], 0.9)).all()
    alone = ConformalScores().fit(scores[:225], np.zeros(225), 3, labels=labels[:225])
    assert (alone.conditional("auto", at, 0.9, 3)[:, 2] == alone.quantiles(at, 0.9)).all()


# -- groups and known shifts ------------------------------------------------------------------------------------------


def grouped(n_groups, size, seed):
    """Rows of groups with an offset each, which a column that is the same in a group would tell."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    place, offset = rng.normal(size=n_groups)[groups], 2 * rng.normal(size=n_groups)[groups]
    X = np.column_stack([rng.normal(size=(len(groups), 2)), place])
    y = X[:, 0] + offset + 0.3 * rng.normal(size=len(groups))
    return np.where(rng.random(X.shape) < 0.1, np.nan, X), y, groups


def test_groups_are_left_out_as_a_whole():
    (X, y, groups), (test, target, _) = grouped(60, 10, 0), grouped(300, 5, 1)
    neighbours = HistGradientBoostingRegressor(max_iter=50, learning_rate=0.2, random_state=0)
    covered = []
    for of_rows in (None, groups):
        model = MaskConformalRegressor(neighbours).fit(X, y, groups=of_rows)
        low, high = model.predict_interval(test).T
        covered.append(np.mean((low <= target) & (target <= high)))
    assert covered[0] < 0.75  # what a row of a known group is off by
    assert 0.83 < covered[1] < 0.97
    fold = model.score_fold_[: len(y)]
    assert all(len(set(fold[groups == k])) == 1 for k in range(60))
    named = MaskConformalRegressor(neighbours).fit(X, y, groups=[f"person {k}" for k in groups])
    np.testing.assert_array_equal(named.predict_interval(test[:9]), model.predict_interval(test[:9]))
    with pytest.raises(ValueError, match=r"at least cv=5 different groups.*got 3. Lower cv"):
        MaskConformalRegressor().fit(X, y, groups=groups % 3)
    with pytest.raises(ValueError, match="groups must name the group of every row"):
        MaskConformalRegressor().fit(X, y, groups=groups[:5])


def test_classes_of_new_groups_are_covered():
    (X, y, groups), (test, target, _) = grouped(150, 6, 2), grouped(300, 5, 3)
    y, target = (np.digitize(part, [-1.5, 1.5]) for part in (y, target))
    model = MaskConformalClassifier(HistGradientBoostingClassifier(max_iter=20, learning_rate=0.3, random_state=0))
    covered = [
        model.fit(X, y, groups=of_rows).predict_set(test)[np.arange(len(test)), target].mean()
        for of_rows in (None, groups)
    ]
    assert covered[0] < covered[1] - 0.05
    assert covered[1] > 0.85


def shifted(n, mean, seed):
    """The noise grows with the first column, whose mean is what shifts; a density over that of mean 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + np.array([mean, 0, 0])
    y = X.sum(axis=1) + rng.normal(size=n) * np.exp(0.7 * X[:, 0])
    return X, y, np.exp(1.2 * X[:, 0] - 0.72)


@pytest.mark.parametrize("method", ["refit", "cv+"])
def test_likelihood_ratios_carry_coverage_to_shifted_rows(method):
    (X, y, ratio), (test, target, own) = shifted(800, 0, 0), shifted(2000, 1.2, 1)
    model = MaskConformalRegressor(GaussianRegressor(), method=method, cv=3)
    low, high = model.fit(X, y).predict_interval(test).T
    assert np.mean((low <= target) & (target <= high)) < 0.8
    model.fit(X, y, likelihood_ratio=ratio)
    with pytest.warns(UserWarning, match="of 2000 rows are infinite: .* more where likelihood_ratio is large"):
        low, high = model.predict_interval(test, likelihood_ratio=own).T
    assert 0.84 < np.mean((low <= target) & (target <= high)) < 0.97
    rescaled = model.fit(X, y, likelihood_ratio=1024 * ratio)
    with pytest.warns(UserWarning, match="of 2000 rows are infinite"):
        np.testing.assert_array_equal(rescaled.predict_interval(test, likelihood_ratio=1024 * own)[:, 0], low)
    with pytest.warns(UserWarning, match=r"level=0.9, which needs 9; the 800 rows count as 8.0, and coverage may be"):
        model.fit(X, y, likelihood_ratio=np.arange(800) < 8)
    ones = model.fit(X, y, likelihood_ratio=np.ones(800)).predict_interval(test[:50])
    np.testing.assert_allclose(ones, model.fit(X, y).predict_interval(test[:50]))
    with pytest.raises(ValueError, match="fit was told of none"):
        model.predict_interval(test, likelihood_ratio=own)
    masked = np.ma.masked_array(ratio, np.arange(800) == 5)
    said_of = ((ratio[:3], "shape"), (-ratio, "row 0"), (0 * ratio, "zeros alone"), (["high"] * 800, "high"))
    for wrong, said in (*said_of, (masked, "nan in row 5")):
        with pytest.raises(ValueError, match=rf"likelihood_ratio must be 800 finite numbers.*got.*{said}"):
            model.fit(X, y, likelihood_ratio=wrong)


def test_likelihood_ratios_weigh_near_scores_and_classes():
    """A score of weight 3 counts as three of weight 1."""
    rng = np.random.default_rng(0)
    scores, missing, labels = rng.random(60), rng.integers(0, 4, 60).astype(float), rng.integers(0, 2, 60)
    weights = rng.integers(1, 4, 60)
    repeated = [np.repeat(part, weights) for part in (scores, missing)]
    kept = ConformalScores().fit(scores, missing, 4, labels=labels, weights=weights.astype(float))
    many = ConformalScores().fit(*repeated, 4, labels=np.repeat(labels, weights))
    at, own = np.arange(4.0), np.ones(4)
    for level in (0.3, 0.8):
        np.testing.assert_array_equal(kept.near(at, level, own=own), many.near(at, level))
        np.testing.assert_array_equal(kept.overall(level, own=own), np.full(4, many.overall(level)))
        np.testing.assert_array_equal(
            kept.conditional("class", at, level, 2, own), many.conditional("class", at, level, 2)
        )
    assert np.isinf(kept.overall(0.9, own=np.array([1e-9, 1e9]))).tolist() == [False, True]


def test_conditions_are_three():
    X, y = six_classes(300, 1)
    with pytest.raises(ValueError, match="condition"):
        MaskConformalClassifier(condition="label").fit(X, y)
    model = LacunarClassifier(members=["logistic"], class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match=r"condition must be 'missing', 'class' or 'auto'; got 'label'"):
        model.predict_set(X, condition="label")
