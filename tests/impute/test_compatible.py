"""Draws that agree with a regression: its parts against loops, coefficients without bias, every kind of column, bad input."""

import numpy as np
import pytest
from tests.reference import imputing as slow

from lacunar._random import generator
from lacunar.impute import CoxAnalysis, LinearAnalysis, LogisticAnalysis, MultipleImputer, multiple, pool
from lacunar.impute.analyses import CoxRegression, LinearRegression, LogisticRegression
from lacunar.persistence import load_model, save_model

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:.*sweeps have not settled", "ignore:5 draws are few")


def least_squares(A, y):
    coef, inverse, residual = slow.least_squares(A, y)
    return coef, inverse * residual / (len(y) - len(coef))


def survival(n, seed=0, ties=False):
    """Two covariates of correlation .5, times that end by an event or by chance, and whether it was the event."""
    rng = np.random.default_rng(seed)
    A = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=n)
    failure, censored = rng.exponential(size=n) * np.exp(-A @ [1.0, -1.0]), rng.exponential(2.0, size=n)
    time = np.minimum(failure, censored)
    return A, np.ceil(8 * time) if ties else time, (failure <= censored) * 1.0


@pytest.mark.parametrize("ties", [False, True])
def test_cox_against_loops(ties):
    A, time, event = survival(60, ties=ties)
    weight = np.random.default_rng(1).integers(0, 3, 60) * 1.0
    model = CoxRegression(time, event, weight)
    coef = np.array([0.4, -0.7])
    slope, information = model._derivatives(A[model._order], coef)
    expected = slow.cox_derivatives(A, time, event, weight, coef)
    np.testing.assert_allclose(slope + 0.16 * coef, expected[0], rtol=1e-9)
    np.testing.assert_allclose(information - 0.16 * np.eye(2), expected[1], rtol=1e-9)
    rng, draws, hazards = generator(0), [], []
    for _ in range(600):
        draws.append(model.draw(A, rng)[1])
        hazards.append(model._hazard / slow.breslow(A, time, event, weight, draws[-1]))
    mode = np.mean(draws, axis=0)
    assert np.linalg.norm(model._derivatives(A[model._order], mode)[0]) < 2.0
    np.testing.assert_allclose(np.cov(np.array(draws).T), np.linalg.inv(information), rtol=0.5, atol=0.01)
    np.testing.assert_allclose(np.nanmean(hazards, axis=0)[event > 0], 1.0, atol=0.15)


def test_likelihoods():
    rows, scores = np.array([0, 2]), np.array([[0.3, -1.0], [2.0, 0.5]])
    y, event, time = np.array([0.0, 5.0, 1.0]), np.array([0.0, 0.0, 1.0]), np.array([2.0, 3.0, 1.0])
    chance = 1 / (1 + np.exp(-scores))
    expected = np.where(y[rows] > 0, np.log(chance), np.log(1 - chance))
    np.testing.assert_allclose(LogisticRegression(y, None).log_likelihood(scores, rows), expected)
    np.testing.assert_allclose(LinearRegression(y, None).log_likelihood(scores, rows), -((y[rows] - scores) ** 2) / 2)
    cox = CoxRegression(time, event, None)
    cox._hazard = np.array([0.5, 0.9, 0.2])
    expected = event[rows] * scores - cox._hazard[rows] * np.exp(scores)
    np.testing.assert_allclose(cox.log_likelihood(scores, rows), expected)


def estimates(frame, analysis, fit, **options):
    return MultipleImputer(5, random_state=0, analysis=analysis, **options).fit(frame).analyse(fit).estimate


def cox_fit(table):
    A, time, event = table[["a", "b"]].to_numpy(), table["time"].to_numpy(), table["event"].to_numpy(dtype=float)
    model = CoxRegression(time, event, None)
    model.draw(A, generator(0))
    return model._coef, np.eye(2)


def test_cox_regressions_keep_their_coefficients():
    A, time, event = survival(3000)
    frame = pd.DataFrame({"a": A[:, 0], "b": A[:, 1], "time": time, "event": event > 0})
    full = cox_fit(frame)[0]
    holed = frame.assign(
        **{name: frame[name].mask(np.random.default_rng(k).random(3000) < 0.5) for k, name in enumerate("ab")}
    )
    assert np.abs(estimates(holed, CoxAnalysis("time", "event"), cox_fit) - full).max() < 0.09
    assert np.abs(estimates(holed, None, cox_fit) - full).max() > 0.12


def squares(n, seed=0):
    """y = x + x^2 + x z + e, where x is missing by y."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    x = 0.5 * z + rng.normal(size=n)
    frame = pd.DataFrame({"x": x, "z": z, "y": x + x**2 + x * z + rng.normal(size=n)})
    frame["x"] = frame["x"].mask(rng.random(n) < 1 / (1 + np.exp(1 - frame["y"] / 2)))
    return frame


def fit_squares(table):
    x, z = table["x"].to_numpy(), table["z"].to_numpy()
    return least_squares(np.column_stack([np.ones(len(x)), x, z, x**2, x * z]), table["y"].to_numpy())


def test_squares_and_interactions_keep_their_coefficients():
    frame, truth = squares(2000), [0, 1, 0, 1, 1]
    analysis = LinearAnalysis("y", ["x", "z", "x ** 2", "x * z"])
    assert np.abs(estimates(frame, analysis, fit_squares, sweeps=30) - truth).max() < 0.15
    assert np.abs(estimates(frame, None, fit_squares) - truth).max() > 0.25


def test_levels_and_outcomes_that_are_missing():
    rng = np.random.default_rng(0)
    n = 3000
    level, sure = rng.integers(0, 3, n), rng.random(n) < 0.5
    y = np.array([0.0, 1.0, -1.0])[level] + 1.5 * sure * (level == 1) + rng.normal(size=n)
    frame = pd.DataFrame({"level": pd.Categorical.from_codes(level, list("abc")), "sure": sure, "y": y})
    frame = frame.assign(sure=frame["sure"].astype("boolean")).mask(rng.random((n, 3)) < 0.3)

    def means(table):
        groups = table.groupby("level", observed=False)["y"]
        return groups.mean().to_numpy(), groups.var().to_numpy() / groups.size().to_numpy()

    imputer = MultipleImputer(5, random_state=0, analysis=LinearAnalysis("y")).fit(frame)
    np.testing.assert_allclose(imputer.analyse(means).estimate, [0.0, 1.75, -1.0], atol=0.15)
    for table in imputer.draws():
        assert not table.isna().any().any()
        pd.testing.assert_series_equal(table.dtypes, frame.dtypes)
    logistic = MultipleImputer(2, sweeps=2, analysis=LogisticAnalysis("sure", ["y", "level"])).fit(frame)
    assert all(table["sure"].dtype == "boolean" and table["sure"].notna().all() for table in logistic.draws())


def test_proposals_outside_a_formula_are_not_taken():
    rng = np.random.default_rng(0)
    income = np.exp(rng.normal(size=300))
    frame = pd.DataFrame({"income": income, "y": np.log(income) + rng.normal(size=300)})
    frame["income"] = frame["income"].mask(rng.random(300) < 0.5)
    for table in MultipleImputer(3, sweeps=3, analysis=LinearAnalysis("y", ["log(income)"])).fit(frame).draws():
        assert (table["income"] > 0).all()
    frame.loc[0, "income"] = 0.0
    with pytest.raises(ValueError, match="formulas that are finite in every row"):
        MultipleImputer(3, analysis=LinearAnalysis("y", ["log(income)"])).fit(frame)


def test_days_stay_days():
    rng = np.random.default_rng(0)
    days = pd.Series(np.datetime64("2020-03-01") + rng.integers(0, 500, 100).astype("timedelta64[D]")).astype(
        "datetime64[us]"
    )
    frame = pd.DataFrame({"day": days.mask(rng.random(100) < 0.3), "y": rng.normal(size=100)})
    (table,) = MultipleImputer(1, sweeps=2, analysis=LinearAnalysis("y")).fit(frame).draws()
    assert (table["day"] == table["day"].dt.normalize()).all()


def test_the_same_draws_by_every_door(tmp_path, monkeypatch):
    monkeypatch.setattr(multiple, "_LEAST_SHARED", 0)
    frame = squares(100)
    analysis = LinearAnalysis("y", ["x", "x ** 2", "z"])
    imputer = MultipleImputer(3, sweeps=2, analysis=analysis).fit(frame)
    save_model(imputer, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.analysis == analysis
    for other in (loaded, MultipleImputer(3, sweeps=2, analysis=analysis, n_jobs=2).fit(frame)):
        for one, two in zip(imputer.draws(), other.draws(frame), strict=True):
            pd.testing.assert_frame_equal(one, two)
    with pytest.raises(ValueError, match="must be the training table"):
        next(imputer.draws(frame[:50]))


def test_tables_without_gaps_or_censored_rows():
    A, time, _ = survival(50)
    frame = pd.DataFrame({"a": A[:, 0], "b": A[:, 1], "time": time, "event": True})
    (table,) = MultipleImputer(1, analysis=CoxAnalysis("time", "event")).fit(frame).draws()
    pd.testing.assert_frame_equal(table, frame)
    holed = frame.assign(a=frame["a"].mask(np.arange(50) % 3 == 0))
    tables = list(MultipleImputer(2, analysis=CoxAnalysis("time", "event")).fit(holed).draws())
    assert all(table.notna().all().all() for table in tables)
    weighted = MultipleImputer(2, analysis=CoxAnalysis("time", "event")).fit(holed, sample_weight=np.arange(50) % 2)
    assert pool([(table["a"].mean(), 1.0) for table in weighted.draws()]).estimate.size == 1


@pytest.mark.parametrize(
    ("analysis", "message"),
    [
        (CoxAnalysis("never", "event"), "as its time one of the columns"),
        (CoxAnalysis("x", "event"), "missing in no row"),
        (CoxAnalysis("z", "y"), "of booleans, of two levels, or of 0 and 1"),
        (LogisticAnalysis("z"), "of booleans, of two levels, or of 0 and 1"),
        (LinearAnalysis("event"), "a column of numbers"),
        (LinearAnalysis("y", ["y", "x"]), "neither are its outcome"),
        (LinearAnalysis("y", ["flat"]), "terms that vary"),
        (LinearAnalysis("y", ["follows", "x"]), "nor passive"),
        (LinearAnalysis("y", ["x * never"]), "analysis must have terms that are columns, or formulas"),
        (LinearAnalysis("y", []), "at least one term"),
    ],
)
def test_bad_analyses(analysis, message):
    frame = squares(60).assign(event=np.arange(60) % 2 == 0, flat=1.0, follows=np.nan)
    with pytest.raises(ValueError, match=message):
        MultipleImputer(2, analysis=analysis, passive={"follows": "x + z"}).fit(frame)


def test_terms_are_a_list():
    with pytest.raises(TypeError, match="terms must be a list"):
        LinearAnalysis("y", "x")
