"""KARMA estimators against exact solutions by scikit-learn, and on input that has nothing to learn from."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge

from lacunar import (
    KarmaClassifier,
    KarmaClassifierCV,
    KarmaOnlineClassifier,
    KarmaOnlineRegressor,
    KarmaRegressor,
    KarmaRegressorCV,
)
from lacunar.karma.base import drawn_order, drawn_rows
from lacunar.karma.classifier import LOSSES
from lacunar.karma.solvers import one_vs_rest, solve_classes, solve_ridge
from lacunar.kernels import karma_kernel
from lacunar.observed import Observed
from lacunar.observed.columns import scale_columns

CLASSIFIERS = [KarmaClassifier, KarmaClassifierCV]
EVERY = [*CLASSIFIERS, KarmaRegressor, KarmaRegressorCV]


def standardised(X, reference):
    return (X - np.nanmean(reference, axis=0)) / np.nanstd(reference, axis=0)


def table(seed=0, n=80, d=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(2, 3, size=(n, d))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, y


def grams(train, test, **options):
    """Kernels that the estimators must have used, from the public function."""
    options = {"constant": 1.0, "normalize": "trace", **options}
    a, b = standardised(train, train), standardised(test, train)
    return karma_kernel(a, **options), karma_kernel(b, a, **options)


@pytest.mark.parametrize(("n", "d", "gap"), [(3, 10, 0.3), (3, 30, 0.7), (5, 10, 0.7), (5, 200, 0.7)])
def test_columns_of_two_entries_say_little(n, d, gap):
    rng = np.random.default_rng([n, d])
    X, y = rng.normal(size=(n + 200, d)), rng.normal(size=n + 200)
    X[rng.random(X.shape) < gap] = np.nan
    for model in (KarmaRegressor(), KarmaOnlineRegressor(), KarmaRegressorCV()):
        predicted = model.fit(X[:n], y[:n]).predict(X[n:])
        assert np.mean((predicted - y[n:]) ** 2) < 4 * np.mean((y[:n].mean() - y[n:]) ** 2), model


@pytest.mark.parametrize("options", [{}, {"indicators": True}, {"normalize": "cosine", "gamma": 3}])
def test_regressor_is_kernel_ridge(options):
    X, y = table()
    model = KarmaRegressor(C=3.0, **options).fit(X, y)
    gram, across = grams(X, X[:20], **{"gamma": 2, **options})
    exact = KernelRidge(alpha=1 / 6, kernel="precomputed").fit(gram, y - y.mean())
    np.testing.assert_allclose(model.predict(X[:20]), exact.predict(across) + y.mean(), rtol=1e-8)


def test_unit_of_y_does_not_matter():
    X, y = table()
    np.testing.assert_allclose(
        KarmaRegressorCV().fit(X, 1000 * y + 5).predict(X),
        1000 * KarmaRegressorCV().fit(X, y).predict(X) + 5,
        rtol=1e-8,
    )


def test_hinge_is_the_support_vector_machine_without_bias():
    """SVC has a free bias, so the exact solution is projected gradient ascent on the dual box, run to the end."""
    X, y = table()
    labels = np.where(y > 0, 1.0, -1.0)
    gram, _ = grams(X, X, gamma=2)
    quadratic = gram * np.outer(labels, labels)
    alpha, steepest = np.zeros(len(y)), np.linalg.norm(quadratic, 2)
    for _ in range(20000):
        alpha = np.clip(alpha + (1 - quadratic @ alpha) / steepest, 0, 1.0)
    model = KarmaClassifier(loss="hinge", tol=1e-6).fit(X, labels)
    np.testing.assert_allclose(model.decision_function(X), gram @ (alpha * labels), atol=5e-3)
    assert model.n_support_.sum() == len(model.support_) == len(model.dual_coef_) < len(y)


def test_search_scores_are_honest_leave_one_out():
    X, y = table(n=12)
    X = standardised(X, X)
    search = KarmaRegressorCV(gammas=(2,), Cs=(0.7,), standardize=False, kernels="karma").fit(X, y)
    best = search.best_params_
    options = {name: best[name] for name in ("gamma", "normalize", "indicators")}
    gram = karma_kernel(X, constant=1.0, **options)
    errors = []
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        mean = y[rest].mean()
        model = KernelRidge(alpha=1 / 1.4, kernel="precomputed").fit(gram[np.ix_(rest, rest)], y[rest] - mean)
        errors.append(model.predict(gram[i : i + 1, rest])[0] + mean - y[i])
    assert search.best_score_ == pytest.approx(-np.mean(np.square(errors)), rel=1e-9)


@pytest.mark.parametrize("cv", ["loo", "holdout", 3])
def test_search_reports_zero_imputation(cv):
    X, y = table()
    search = KarmaClassifierCV(gammas=(2,), cv=cv, kernels="karma", random_state=0).fit(X, y > 0)
    results = search.cv_results_
    assert set(results["param_gamma"]) == {1, 2}
    tried = {(p["gamma"], p["indicators"], p["normalize"]) for p in results["params"]}
    assert len(tried) == 2 * 2 * 2
    assert search.best_score_ == results["mean_test_score"][results["rung"] == results["rung"].max()].max()
    assert search.best_score_ >= search.zero_imputation_score_
    zero = [p["gamma"] == 1 and not p["indicators"] for p in results["params"]]
    assert results["rung"][zero].max() >= 2
    assert results["rank_test_score"][search.best_index_] == 1
    assert results["params"][search.best_index_] == search.best_params_


def test_search_on_a_subsample_fits_all_rows():
    X, y = table()
    search = KarmaClassifierCV(max_search_rows=30, random_state=0).fit(X, y > 0)
    assert search.selection_.rows_.shape == X.shape
    assert set(search.cv_results_["n_rows"]) == {30, 80}


def test_verbose_search_says_where_it_is(caplog):
    X, y = table(n=20)
    KarmaRegressorCV(gammas=(1,), verbose=1).fit(X, y)
    assert "kernels and C tried; chosen, best first" in caplog.text


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities(classes):
    X, y = table(n=150)
    codes = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    models = [
        KarmaClassifier(loss="logistic"),
        KarmaClassifierCV(),
        KarmaClassifierCV(kernels="karma"),
        CalibratedClassifierCV(KarmaClassifier(), cv=3),
        *(KarmaClassifier(loss=loss) for loss in LOSSES if loss != "logistic"),
        *(KarmaClassifier(loss=loss, solver="primal") for loss in ("squared", "hinge")),
        *(KarmaOnlineClassifier(loss=loss) for loss in ("squared", "hinge", "logistic")),
    ]
    for model in models:
        shares = model.fit(X, codes).predict_proba(X)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        truth = shares[np.arange(len(codes)), codes]
        assert -np.log(truth).mean() < 0.9 * np.log(classes)
        np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_are_of_exact_leave_one_out_values(classes, weighted):
    X, y = table(n=40)
    codes = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    weight = np.random.default_rng(0).choice([0.5, 1, 3], 40) if weighted else np.ones(40)
    model = KarmaClassifier(C=0.3).fit(X, codes, weight)
    rows = scale_columns(Observed.from_dense(X), model._columns())
    gram = model.kernel_.gram(rows)
    targets = one_vs_rest(codes, classes)
    left_out = np.empty_like(targets)
    for i in range(40):
        rest = np.maximum(weight - (np.arange(40) == i), 0)  # without one repetition of row i
        left_out[i] = gram[i] @ solve_ridge(gram, targets, 0.3, rest)
    a = slope_by_definition(left_out, codes, weight)
    np.testing.assert_allclose(model.calibration_, [a, *np.zeros(targets.shape[1])], atol=1e-5)
    made = np.exp(a) * (gram @ model.dual_coef_)
    made = made if classes > 2 else np.column_stack([np.zeros(40), made])
    shares = np.exp(made) / np.exp(made).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), shares, atol=1e-4)


@pytest.mark.parametrize(
    ("n", "count", "classes"), [(500, 17, None), (500, 17, 2), (301, 300, 5), (40, 40, 3), (9, 1, 2)]
)
def test_drawn_rows_begin_the_drawn_order(n, count, classes):
    labels = None if classes is None else np.random.default_rng(n).integers(classes, size=n)
    for seed in range(5):
        rows = drawn_rows(n, count, labels, seed)
        np.testing.assert_array_equal(rows, np.sort(drawn_order(n, labels, seed)[:count]))


def test_a_third_of_many_rows_is_left_out_whatever_their_order():
    X, y = table(n=1200)
    order = np.argsort(y)
    model = KarmaClassifier().fit(X[order], y[order] > 0)
    rows = scale_columns(Observed.from_dense(X[order]), model._columns())
    coef = solve_ridge(model.kernel_.gram(rows), one_vs_rest((y[order] > 0).astype(int), 2), 1.0)
    np.testing.assert_allclose(model.dual_coef_, coef, rtol=1e-9, atol=1e-12)
    held = model._left_out((y[order] > 0).astype(int))
    assert len(held) == 400
    assert abs((y[order][held] > 0).mean() - (y > 0).mean()) < 0.01


@pytest.mark.parametrize(
    ("loss", "solver"), [("hinge", "gram"), ("crammer_singer", "gram"), ("hinge", "primal"), ("squared", "primal")]
)
def test_other_solvers_calibrate_on_rows_that_they_left_out(loss, solver):
    X, y = table(n=120)
    codes = np.digitize(y, [-0.5, 0.5])
    model = KarmaClassifier(loss=loss, solver=solver, tol=1e-6).fit(X, codes)
    plain = KarmaClassifier(loss=loss, solver=solver, tol=1e-6)._fit(X, codes, None, searched=True)
    bound = np.sqrt(2e-6 * 120)  # of v by strong convexity, the objective being at most the number of rows at v = 0
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=bound)
    held = model._left_out(codes)
    folds = [held] if solver == "primal" else [held[start : start + 24] for start in range(0, 120, 24)]
    values = []
    for fold in folds:
        without = np.ones(120)
        without[fold] = 1e-9  # the columns and the kernel are those of all rows
        values.append(KarmaClassifier(loss=loss, solver="gram", tol=1e-7)._fit(X, codes, None, searched=True))
        values[-1] = _values_with(values[-1], X, codes, without)[fold]
    found = slope_by_definition(np.concatenate(values), codes[held], np.ones(len(held)))
    assert model.calibration_[0] == pytest.approx(found, abs=0.03)


def _values_with(model, X, codes, upper):
    """Values of all rows after a fit with these weights and the kernel of a model."""
    gram = model.kernel_.gram(scale_columns(Observed.from_dense(X), model._columns()))
    coef, _ = solve_classes(gram, codes, 3, upper, loss=model.loss, tol=1e-7, max_iter=10_000, verbose=0)
    return gram @ coef


def slope_by_definition(values, codes, weight):
    """a of softmax(e^a F) by maximum a posteriori."""
    outputs = values.shape[1]
    usual = np.log(2) if outputs == 1 else np.log(max(outputs / 2, 1))

    def loss(a):
        logits = np.exp(a) * (values if outputs > 1 else np.column_stack([np.zeros(len(values)), values]))
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return -weight @ logs[np.arange(len(codes)), codes] + 0.5 * (a - usual) ** 2

    return minimize_scalar(loss, bounds=(-5, 5), method="bounded", options={"xatol": 1e-8}).x


def test_streams_calibrate_on_values_before_rows_are_learned():
    X, y = table(n=1500)
    model = KarmaOnlineClassifier(loss="squared").partial_fit(X[:100], y[:100] > 0, classes=[False, True])
    scores = [model.score_stream(X[k : k + 350], y[k : k + 350] > 0) for k in range(100, 1500, 350)]
    values = np.concatenate([score.values for score in scores])[-1000:]
    np.testing.assert_array_equal(model.recent_[:, :1], values)
    found = slope_by_definition(values, (y[-1000:] > 0).astype(int), np.ones(1000))
    assert model._calibration()[0] == pytest.approx(found, abs=1e-5)


def test_unfinished_solver_warns_with_its_gap():
    X, y = table()
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        KarmaClassifier(loss="hinge", C=1e4, max_iter=1).fit(X, y > 0)


@pytest.mark.parametrize("model", EVERY)
class TestNothingToLearnFrom:
    def target(self, model, y):
        return y > 0 if model in CLASSIFIERS else y

    def test_empty_row_predicts_the_prior(self, model):
        X, y = table()
        y = y - y.mean() + (8 if model not in CLASSIFIERS else 2)
        prior = model().fit(X, self.target(model, y)).predict(np.full((1, 5), np.nan))[0]
        assert prior == pytest.approx(1 if model in CLASSIFIERS else 8, abs=1.5)

    def test_empty_table(self, model):
        y = np.arange(9.0) - 3
        found = model().fit(np.full((9, 4), np.nan), self.target(model, y)).predict(np.ones((2, 4)))
        np.testing.assert_allclose(found, 1.0, atol=1e-6)  # majority and mean are both 1

    def test_one_row(self, model):
        found = model().fit([[1.0, np.nan]], self.target(model, np.array([3.0]))).predict([[0.0, 0.0]])
        assert found[0] == self.target(model, np.array([3.0]))[0]

    def test_column_unknown_to_fit_is_ignored(self, model):
        X, y = table()
        X[:, 2] = np.nan
        fitted = model().fit(X, self.target(model, y))
        with_value = X.copy()
        with_value[:, 2] = 1e6
        np.testing.assert_array_equal(fitted.predict(with_value), fitted.predict(X))

    def test_constant_column(self, model):
        X, y = table()
        X[:, 2] = 1e6 + 1e-9 * np.arange(80)
        assert np.isfinite(model().fit(X, self.target(model, y)).predict(X)).all()

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_bad_y(self, model, bad):
        X, y = table()
        y[5] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            model().fit(X, y)

    def test_infinite_entry(self, model):
        X, y = table()
        X[4, 1] = np.inf
        with pytest.raises(ValueError, match=r"row 4, column 1"):
            model().fit(X, self.target(model, y))

    @pytest.mark.parametrize("weight", [np.zeros(80), -np.ones(80)])
    def test_bad_weights(self, model, weight):
        X, y = table()
        with pytest.raises(ValueError, match=r"[Ww]eight"):
            model().fit(X, self.target(model, y), sample_weight=weight)


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_one_class_is_a_constant(model):
    X, _ = table(n=10)
    assert set(model().fit(X, ["only"] * 10).predict(X)) == {"only"}


def test_a_class_with_one_member():
    X, y = table()
    codes = (y > 0).astype(int)
    codes[0] = 2
    for cv in ("loo", "holdout", 5):
        assert KarmaClassifierCV(cv=cv, random_state=0).fit(X, codes).decision_function(X).shape == (80, 3)


def test_class_weight_moves_the_border():
    X, y = table()
    labels = np.where(y > 3, "rare", "common")
    plain = (KarmaClassifier().fit(X, labels).predict(X) == "rare").sum()
    for weight in ("balanced", {"rare": 5.0, "common": 1.0}):
        assert (KarmaClassifier(class_weight=weight).fit(X, labels).predict(X) == "rare").sum() > plain
