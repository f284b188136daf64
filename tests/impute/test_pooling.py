"""Rubin's rules against their formulas, and what an analysis may return."""

import numpy as np
import pytest
from reference.imputing import rubin

from lacunar.impute import MultipleImputer, pool


def results(m=5, k=3, df=40.0, seed=0):
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=k), np.diag(rng.random(k) + 12), df) for _ in range(m)]


def test_pooled_numbers_are_those_of_the_formulas():
    each = results()
    pooled = pool(each)
    for j in range(3):
        wanted = rubin([r[0][j] for r in each], [r[1][j, j] for r in each], 40.0)
        got = pooled.estimate, pooled.std_error, pooled.df, pooled.fraction_missing, pooled.relative_increase
        np.testing.assert_allclose([part[j] for part in got], wanted, rtol=1e-12)


def test_without_degrees_of_freedom_they_are_rubins():
    pooled = pool([r[:2] for r in results()])
    share = 1.2 * pooled.between / (pooled.within + 1.2 * pooled.between)
    np.testing.assert_allclose(pooled.df, 4 / share**2)


def test_equal_results_lose_nothing():
    pooled = pool([([1.0, 2.0], [0.1, 0.2], 30.0)] * 4)
    np.testing.assert_allclose(pooled.std_error, np.sqrt([0.1, 0.2]))
    np.testing.assert_array_equal(pooled.fraction_missing, 0.0)
    np.testing.assert_allclose(pooled.df, 31 / 33 * 30)
    assert np.isfinite(pooled.conf_int()).all()


def test_too_few_draws_are_said():
    far = [([float(k)], [0.1]) for k in range(3)]
    with pytest.warns(UserWarning, match=r"3 draws are few .* of the information about 'x0'.*n_imputations="):
        pool(far)


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ([(1.0, 1.0)], ValueError, "at least two"),
        ([(1.0, 1.0), "a"], TypeError, "from table 1"),
        ([([1.0, 2.0], [1.0])] * 2, ValueError, "shapes"),
        ([([1.0], [np.nan])] * 2, ValueError, "finite"),
        ([([1.0], [1.0]), ([1.0, 2.0], [1.0, 1.0])], ValueError, "same coefficients"),
        ([], ValueError, "at least two imputed tables.*got 0"),
        (None, TypeError, "results must be those of several imputed tables.*got NoneType"),
        ([([1.0, 2.0], np.ones((2, 3)))] * 2, ValueError, r"shapes \(2,\) and \(2, 3\) from table 0"),
        ([(1.0, 1.0), (1 + 2j, 1.0)], TypeError, "real numbers.*from table 1"),
        ([("x", 1.0)] * 2, TypeError, "real numbers.*from table 0"),
        ([(1.0, 1.0, "x")] * 2, TypeError, "degrees of freedom; got 1.0, 1.0, x from table 0"),
        ([(1.0, 1.0, np.nan)] * 2, ValueError, "degrees of freedom above 0, .*got nan from table 0"),
        ([(1.0, 1.0, 5), (1.0, 1.0, 0)], ValueError, "degrees of freedom above 0, .*got 0 from table 1"),
        ([(1e200, 1.0), (1e200, 2.0)], ValueError, r"at most 1e\+150"),
    ],
)
def test_what_is_no_result_is_refused(bad, error, words):
    with pytest.raises(error, match=words):
        pool(bad)


@pytest.mark.parametrize("level", [95, 0, np.nan, "x"])
def test_a_level_is_between_0_and_1(level):
    with pytest.raises(ValueError, match="level must be between"):
        pool(results()).conf_int(level)


@pytest.mark.parametrize("df", [None, np.inf])
def test_degrees_of_freedom_may_be_infinite(df):
    estimates = [r[:2] for r in results()]
    np.testing.assert_array_equal(pool([(*r, df) for r in estimates]).df, pool(estimates).df)


def test_estimates_without_error_have_a_statistic():
    pooled = pool([([1.0, 0.0], [0.0, 0.0])] * 2)
    np.testing.assert_array_equal(pooled.statistic, [np.inf, np.nan])
    np.testing.assert_array_equal(pooled.conf_int(), [[1.0, 1.0], [0.0, 0.0]])


def test_the_frame_has_a_row_a_coefficient():
    pytest.importorskip("pandas")
    pooled = pool(results())
    frame = pooled.summary_frame(0.9)
    assert list(frame.columns)[:6] == ["coef", "std err", "t", "P>|t|", "[0.05", "0.95]"]
    np.testing.assert_array_equal(frame["coef"], pooled.estimate)
    assert all(name in str(pooled) for name in pooled.names)


class Result:
    """What statsmodels and lifelines give, by their names of attributes."""

    def __init__(self, table, style):
        pd = pytest.importorskip("pandas")
        A = np.column_stack([np.ones(len(table)), table[:, 0]])
        coef = np.linalg.lstsq(A, table[:, 1], rcond=None)[0]
        variance = np.sum((table[:, 1] - A @ coef) ** 2) / (len(table) - 2)
        params, covariance = pd.Series(coef, ["one", "a"]), variance * np.linalg.inv(A.T @ A)
        if style == "statsmodels":
            self.params, self.df_resid, self.cov_params = params, len(table) - 2, lambda: covariance
        else:
            self.params_, self.variance_matrix_ = params, pd.DataFrame(covariance)


@pytest.fixture(scope="module")
def imputer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2)) @ [[1.0, 0.7], [0.0, 0.7]]
    X[rng.random(150) < 0.3, 0] = np.nan
    return MultipleImputer(random_state=0).fit(X)


def test_results_are_read_by_the_names_of_their_libraries(imputer):
    one = imputer.analyse(lambda table: Result(table, "statsmodels"))
    other = imputer.analyse(lambda table: Result(table, "lifelines"))
    assert one.names == other.names == ["one", "a"]
    np.testing.assert_array_equal(one.std_error, other.std_error)
    assert (one.df < other.df).all()
    assert one.conf_int()[1, 0] < 0.7 < one.conf_int()[1, 1]


def test_predictions_are_pooled_into_their_means(imputer):
    from sklearn.linear_model import LinearRegression, LogisticRegression

    pd = pytest.importorskip("pandas")
    rows = np.array([[-1.0], [0.0], [2.0]])
    models = [LinearRegression().fit(table[:, :1], table[:, 1]) for table in imputer.draws()]
    each = np.array([model.predict(rows) for model in models])
    pooled = pool(each)
    np.testing.assert_allclose(pooled.estimate, each.mean(axis=0))
    np.testing.assert_allclose(pooled.std_error, np.sqrt(1.05 * each.var(axis=0, ddof=1)))
    np.testing.assert_allclose(pooled.df, 19)
    assert np.isfinite(pooled.conf_int()).all()
    named = pool([pd.Series(values, ["low", "mid", "high"]) for values in each])
    np.testing.assert_array_equal(named.estimate, pooled.estimate)
    assert named.names == ["low", "mid", "high"]

    def chances(table):
        return LogisticRegression().fit(table[:, :1], table[:, 1] > 0).predict_proba(rows)

    shares = imputer.analyse(chances).estimate.reshape(3, 2)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (np.diff(shares[:, 1]) > 0).all()
    with pytest.raises(TypeError, match=r"got LinearRegression itself from table 0. Return model.predict\(rows\)"):
        pool(models)
    with pytest.raises(TypeError, match="Return predict_proba"):
        pool([np.array(["a", "b"])] * 2)


def test_statsmodels(imputer):
    formula = pytest.importorskip(
        "statsmodels.formula.api", reason="statsmodels is not installed: its results are not tried"
    )
    pd = pytest.importorskip("pandas")
    pooled = imputer.analyse(lambda table: formula.ols("b ~ a", pd.DataFrame(table, columns=["a", "b"])).fit())
    plain = imputer.analyse(lambda table: Result(table, "statsmodels"))
    assert pooled.names == ["Intercept", "a"]
    np.testing.assert_allclose(pooled.std_error, plain.std_error, rtol=1e-8)
    np.testing.assert_allclose(pooled.df, plain.df)
    logit = imputer.analyse(
        lambda table: formula.logit("b ~ a", pd.DataFrame({"a": table[:, 0], "b": (table[:, 1] > 0) * 1.0})).fit(disp=0)
    )
    assert np.isfinite(logit.summary_frame().to_numpy()).all()


@pytest.mark.filterwarnings("ignore:Starting with pandas version 4")  # of a call that lifelines makes
def test_lifelines(imputer):
    lifelines = pytest.importorskip("lifelines", reason="lifelines is not installed: its results are not tried")
    pd = pytest.importorskip("pandas")

    def analysis(table):
        frame = pd.DataFrame({"a": table[:, 0], "time": np.exp(table[:, 1]), "event": 1})
        return lifelines.CoxPHFitter().fit(frame, "time", "event")

    pooled = imputer.analyse(analysis)
    assert pooled.names == ["a"]
    assert pooled.estimate[0] < 0
