"""Models of one column against their slow twins, and the sums of the sweeps against sums from scratch."""

import numpy as np
import pytest
from reference.imputing import (
    donor_of_few,
    least_squares,
    multinomial_mode,
    nearest_rows,
    odds_log_likelihood,
    place_of_few,
)

from lacunar import _core, _linalg
from lacunar._random import generator
from lacunar.impute import models
from lacunar.impute.chained import Chain, choose_predictors
from lacunar.impute.multiple import MultipleImputer
from lacunar.impute.plans import allowed_predictors, build_plan, learn_columns, ranks_of
from lacunar.impute.tables import read_table
from lacunar.persistence import load_model, save_model


def design(n=60, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([np.ones(n), rng.normal(size=(n, p - 1))]), rng


def test_a_line_is_least_squares():
    X, rng = design()
    Z = np.column_stack([X, X @ [0.5, 1.0, -1.0, 0.0] + rng.normal(size=60)])
    coef, inverse, residual = least_squares(X, Z[:, 4])
    lines = [models.fit_line(Z.T @ Z, 4, np.array([4]), 60, 0.0, generator(s)) for s in range(4000)]
    np.testing.assert_allclose(lines[0].coef[:4], coef, rtol=1e-8)
    drawn = np.array([line.drawn for line in lines])
    assert (drawn[:, 4] == 0).all()
    spread = residual / 54  # the mean of residual / chi^2 of 56 degrees of freedom
    np.testing.assert_allclose(np.cov(drawn[:, :4].T), spread * inverse, atol=0.1 * spread * inverse.max())


def test_a_line_of_repeated_columns_is_finite():
    """Without a ridge the Gram matrix has no factor until its diagonal has grown: fits are those of the columns once."""
    X, rng = design()
    y = X @ [0.5, 1.0, -1.0, 0.0] + rng.normal(size=60)
    Z = np.column_stack([X, X[:, 1] - X[:, 2], 3 * X[:, 3], y])
    line = models.fit_line(Z.T @ Z, 6, np.array([0, 6]), 60, 0.0, generator(0))
    coef, _, _ = least_squares(X[:, 1:], y)
    np.testing.assert_allclose(Z @ line.coef, X[:, 1:] @ coef, atol=1e-3)
    assert line.coef[0] == line.coef[6] == line.drawn[0] == line.drawn[6] == 0
    assert np.isfinite(line.drawn).all()
    with pytest.raises(ValueError, match="moderate size"):
        models.fit_line(-np.eye(3), 2, np.array([2]), 60, 0.0, generator(0))


@pytest.mark.parametrize("n_missing", [0, 1, 25])
def test_sums_and_fits_of_observed_rows_are_those_of_a_table_without_the_others(n_missing):
    X, rng = design()
    missing, observed = np.split(rng.permutation(60), [n_missing])
    remaining, fits, coef = np.empty((4, 4)), np.empty(60 - n_missing), rng.normal(size=4)
    _linalg.gram_without(X[missing], X.T @ X, remaining)
    np.testing.assert_allclose(remaining, X[observed].T @ X[observed], atol=1e-12)
    _linalg.fits_at(X, coef, observed, np.empty(60), fits)
    np.testing.assert_allclose(fits, X[observed] @ coef, atol=1e-14)


@pytest.mark.parametrize("n", [1, 3, 5, 40])
def test_donors_are_the_nearest(n):
    rng = np.random.default_rng(n)
    fits, targets = rng.normal(size=n), 2 * rng.normal(size=30)
    seen = [models.nearest(fits, targets, 5, np.inf, generator(s)) for s in range(60)]
    for j, target in enumerate(targets):
        assert {int(picks[j]) for picks in seen} == nearest_rows(fits, target, 5)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 5), (7, 3), (1000, 5)])
def test_places_are_those_of_the_slow_twin(n, k):
    rng = np.random.default_rng(n)
    ascending, targets, uniform = np.sort(rng.normal(size=n)), 2 * rng.normal(size=200), rng.random(200)
    order, everyone = rng.permutation(n), np.empty(0, dtype=np.int64)
    picks, is_far = _core.draw_nearest(ascending, order, everyone, targets, uniform, k, 0.1)
    expected = [place_of_few(ascending, *pair, k, 0.1) for pair in zip(targets, uniform, strict=True)]
    assert list(zip(picks.tolist(), is_far.tolist(), strict=True)) == [(order[j], far) for j, far in expected]


def test_places_in_a_sample_are_those_among_its_sorted_values():
    rng = np.random.default_rng(0)
    ascending, targets, uniform = np.sort(rng.normal(size=50)), 2 * rng.normal(size=200), rng.random(200)
    order, sample = rng.permutation(50), rng.integers(50, size=80)
    picks, is_far = _core.draw_nearest(ascending, order, sample, targets, uniform, 5, 0.1)
    places = np.sort(np.argsort(order)[sample])
    everyone = np.empty(0, dtype=np.int64)
    expected = _core.draw_nearest(ascending[places], order[places], everyone, targets, uniform, 5, 0.1)
    np.testing.assert_array_equal([picks, is_far], expected)


def test_places_need_as_many_values():
    values, order, everyone = np.zeros(3), np.arange(3), np.empty(0, dtype=np.int64)
    for k, uniform in ((0, values), (4, values), (2, np.zeros(2))):
        with pytest.raises(ValueError, match=r"k must be|uniform has"):
            _core.draw_nearest(values, order, everyone, values, uniform, k, 0.1)
    for sample in ([0, 3], [-1, 0]):
        with pytest.raises(ValueError, match="sample must hold"):
            _core.draw_nearest(values, order, np.array(sample), values, values, 2, 0.1)
    with pytest.raises(ValueError, match="order"):
        _core.draw_nearest(values, order[:2], everyone, values, values, 2, 0.1)


def test_far_donors_give_way_to_the_nearest():
    """Where five would not all be near, draws come from those of a bootstrap that are, as often as its slow twin says."""
    fits, targets, reach = np.array([0.0, 0.1, 0.15, 0.2, 0.9, 2.0]), np.array([0.12, 0.8, 2.5, -1.0, 1.44]), 0.2
    picks = np.array([models.nearest(fits, targets, 5, reach, generator(s)) for s in range(4000)])
    rng = generator(4000)
    for j, target in enumerate(targets):
        slow = [donor_of_few(fits, target, 5, reach, rng) for _ in range(4000)]
        np.testing.assert_allclose(np.bincount(picks[:, j], minlength=6), np.bincount(slow, minlength=6), atol=200)


def test_near_donors_are_all_of_the_rows():
    """Where five are near, draws come from them alone: no bootstrap adds to what the drawn parameters say."""
    fits, targets = np.r_[np.linspace(-1, 1, 41), 9.0], np.array([0.02, 8.0])
    picks = np.array([models.nearest(fits, targets, 5, 0.2, generator(s)) for s in range(300)])
    assert set(picks[:, 0].tolist()) == nearest_rows(fits, 0.02, 5)
    assert set(picks[:, 1].tolist()) > {41}


def test_few_donors_do_not_draw_towards_the_middle():
    """Fits of donors against what they were sought for: a slope near 1, where the five nearest of 100 rows have one of .94."""
    slopes = {0.09: [], np.inf: []}
    for seed in range(60):
        for reach, each in slopes.items():
            rng = generator(seed)
            fits, targets = rng.standard_normal((2, 100))
            each.append(fits[models.nearest(fits, targets, 5, reach, rng)] @ targets / (targets @ targets))
    assert abs(np.mean(slopes[0.09]) - 1) < 0.03 < abs(np.mean(slopes[np.inf]) - 1)


def test_equal_donors_are_drawn_alike():
    """Of 30 rows with one fit every one is drawn, not the first five."""
    picks = np.concatenate([models.nearest(np.zeros(30), np.zeros(20), 5, 0.1, generator(s)) for s in range(160)])
    counts = np.bincount(picks, minlength=30)
    assert counts.min() > 50
    assert counts.max() < 180


@pytest.mark.parametrize("k", [2, 4])
def test_multinomial_modes_and_draws(k):
    X, rng = design(300)
    places = rng.integers(0, k, 300) * (X[:, 1] > -1)
    mode = multinomial_mode(X, places, k)
    hot = (places[:, None] == np.arange(1, k)).astype(float)
    state = models.start_of("multinomial", np.ones(k), 4)
    drawn = np.array([models.fit_multinomial(X, hot, None, state, generator(s)) for s in range(1500)])
    spread = drawn.std(axis=0)
    assert (np.abs(state.parameters.reshape(k - 1, 4) - mode) < 0.1 * spread).all()
    assert (np.abs(drawn.mean(axis=0) - mode) < 0.2 * spread).all()
    chances = models.softmax(X, mode)[:, 1:]
    information = np.einsum("na,ni,nj->aij", chances * (1 - chances), X, X)[0] + np.diag([1e-4, *[0.16] * 3])
    if k == 2:
        np.testing.assert_allclose(np.cov(drawn[:, 0].T), np.linalg.inv(information), rtol=0.2, atol=3e-3)


def test_second_derivatives_of_few_rows_lead_to_the_same_mode():
    """A long table takes those of some rows on the way, and steps end at the mode all the same."""
    X, rng = design(9000)
    places = ((X[:, 1] + rng.logistic(size=9000)) > 1).astype(int) + (X[:, 2] > 1)
    hot = (places[:, None] == np.arange(1, 3)).astype(float)
    state = models.start_of("multinomial", np.ones(3), 4)
    drawn = models.fit_multinomial(X, hot, None, state, generator(0))
    mode = multinomial_mode(X, places, 3)
    assert np.abs(state.parameters.reshape(2, 4) - mode).max() < 0.03
    assert np.abs(drawn - mode).max() < 0.5


def test_odds_are_those_of_the_formula():
    X, rng = design(80)
    X, k = X[:, 1:], 4
    places = (rng.logistic(size=80) + X @ [1.0, -0.5, 0.0] > np.array([[-1.0], [0.0], [1.5]])).sum(axis=0)
    theta = np.array([-1.0, 0.2, 1.4, 0.7, -0.3, 0.1])
    slope, information = models._odds_slope(X, places, None, theta, k)
    step = 1e-6 * np.eye(6)
    numeric = [
        (odds_log_likelihood(theta + s, X, places, k) - odds_log_likelihood(theta - s, X, places, k)) / 2e-6
        for s in step
    ]
    np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-5)
    chances = models.odds(X, theta, k)
    expected = np.zeros((6, 6))  # the mean of products of slopes, over levels by their probabilities
    for row, chance in zip(X, chances, strict=True):
        for place in range(k):
            own = models._odds_slope(row[None], np.array([place]), None, theta, k)[0]
            expected += chance[place] * np.outer(own, own)
    np.testing.assert_allclose(information, expected, rtol=1e-8, atol=1e-10)


def test_separated_levels_get_finite_coefficients():
    X, _ = design(60)
    places = (X[:, 1] > 0).astype(int)
    state = models.start_of("multinomial", np.ones(2), 4)
    for seed in range(5):
        assert np.abs(models.fit_multinomial(X, places[:, None] * 1.0, None, state, generator(seed))).max() < 60
    odds = models.start_of("ordered", np.bincount(np.digitize(X[:, 1], [-0.5, 0.5])).astype(float), 3)
    assert np.isfinite(models.fit_odds(X[:, 1:], np.digitize(X[:, 1], [-0.5, 0.5]), None, odds, 3, generator(0))).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_the_sweeps_are_those_of_the_rows(weighted):
    """The Gram matrix that changes by rows is the one of the completed design, before and after every column."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=list("abc")).mask(rng.random((50, 3)) < 0.3)
    frame["c"] **= 3  # whose ranks stand beside it
    frame["d"] = pd.array(rng.random(50) < 0.5, dtype="boolean")
    frame["e"] = pd.Categorical(rng.choice(list("uvw"), 50))
    frame.loc[::4, ["d", "e"]] = pd.NA
    imputer = MultipleImputer()
    table = read_table(imputer, frame, reset=True)
    columns = table.columns(list(frame))
    values, wishes = table.values(columns), imputer._wishes()
    weight = rng.random(50) + 0.5 if weighted else None
    learned = learn_columns(columns, values, wishes, weight)
    plan, X = build_plan(columns, learned, values, wishes, weight, ridge=1e-5, n_donors=5, with_ranks=True)
    assert [target.ranks is not None for target in plan.targets] == [False, False, True, False, False]
    choose_predictors(plan, X, allowed_predictors(plan, columns, wishes))
    chain = Chain(plan, X, generator(0))
    w = np.ones(50) if weight is None else weight
    chain._gram()
    for target in plan.order:
        rows = chain.rows_without(target)
        chain.draw(target, chain._learn(target, rows), rows)
        np.testing.assert_allclose(chain._gram(), (chain.X * w[:, None]).T @ chain.X, atol=1e-10)
    for target in (t for t in plan.targets if t.is_number):
        rows = chain._gram() - chain._product(chain.X[target.missing], chain.X[target.missing], target.missing)
        coef, _, _ = least_squares(
            np.delete(chain.X[target.observed], target.own, axis=1),
            chain.X[target.observed, target.own.start],
            w[target.observed],
        )
        line = models.fit_line(rows, target.own.start, target.unused, len(target.observed), 0.0, generator(0))
        np.testing.assert_allclose(np.delete(line.coef, target.own), coef, rtol=1e-6, atol=1e-8)


def test_outcomes_of_heavy_tails_bias_coefficients_less():
    """By its values alone, an outcome of exponential noise leaves a slope of -1 at -.78."""
    off = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3000, 3)) + rng.normal(size=(3000, 1))
        y = X @ [1, -1, 0.5] + 2 * rng.exponential(size=3000)
        chance = 1 / (1 + np.exp(X[:, 0] / X[:, 0].std() + (y - y.mean()) / y.std()))
        holed = np.where(rng.random((3000, 3)) < chance[:, None] * [0, 1, 1], np.nan, X)
        draws = MultipleImputer(5, random_state=0).fit(np.column_stack([holed, y])).draws()
        fits = [np.linalg.lstsq(np.c_[table[:, :3], np.ones(3000)], table[:, 3], rcond=None)[0][1] for table in draws]
        off.append(np.mean(fits) - np.linalg.lstsq(np.c_[X, np.ones(3000)], y, rcond=None)[0][1])
    assert abs(np.mean(off)) < 0.16


def test_rows_that_come_later_have_the_ranks_of_fit(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_t(2, size=(300, 1))
    X = np.where(rng.random((300, 3)) < 0.2, np.nan, x + rng.normal(size=(300, 3)))
    imputer = MultipleImputer(3, sweeps=2, random_state=0).fit(X)
    assert imputer.models_[0]["drawn"].shape == (3, 1, 7)
    save_model(imputer, tmp_path / "m.lacunar")
    for one, two in zip(imputer.draws(X[:50]), load_model(tmp_path / "m.lacunar").draws(X[:50]), strict=True):
        np.testing.assert_array_equal(one, two)


def test_ranks_stand_beside_heavy_tails_alone():
    rng = np.random.default_rng(0)
    normal, flat, heavy = np.sort([rng.normal(size=400), rng.random(400), rng.standard_t(3, size=400).round(1)])
    assert ranks_of(normal) is ranks_of(1e-300 * normal) is None
    assert ranks_of(flat) is None
    many = np.sort(rng.normal(size=200_000))[np.linspace(0, 199_999, 500).astype(int)]
    assert ranks_of(many) is ranks_of(np.r_[0.0, np.ones(498), 2.0]) is None
    assert ranks_of(np.sort(rng.standard_t(4, size=500))) is not None
    values, ranks = ranks_of(heavy)
    slow = [np.mean(heavy < v) + np.mean(heavy == v) / 2 - 0.5 for v in values]
    np.testing.assert_allclose(ranks, np.array(slow) * 12**0.5)
    np.testing.assert_allclose(ranks_of(1e150 * heavy)[1], ranks)
