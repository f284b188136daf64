"""Algorithm 1 of KARMA to the letter, against the same steps written out on the features of Definition 4."""

import numpy as np
import pytest
from reference.online import as_printed
from sklearn.base import clone

from lacunar import KarmaClassifier
from lacunar.karma.steps import DivergedError
from lacunar.kernels import karma_kernel
from lacunar.papers.karma import PrintedKarmaClassifier, PrintedKarmaRegressor
from lacunar.persistence import load_model, save_model


def table(seed=0, n=80, d=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(2, 3, size=(n, d))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, y


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


def falling(t):
    return 1e-3 / np.sqrt(t)


def test_the_kernel_is_that_of_theorem_4():
    X, y = table()
    model = PrintedKarmaClassifier(3, rho=1e3).fit(X, y > 0)
    raw = KarmaClassifier(gamma=3, normalize=None).fit(X, y > 0)
    for form in (model.kernel_, raw.kernel_):
        assert (form.count_scale, form.trace, form.indicators, form.cosine, form.constant) == (1, 1, 0, False, 1)
    number = PrintedKarmaRegressor(loss="absolute", rho=10.0).fit(X, y)
    assert number.intercept_ == 0
    assert number.state_["dtype"] == "float64"


@pytest.mark.parametrize("eta", [None, falling], ids=["printed", "function"])
@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("solver", ["support", "primal"])
@pytest.mark.parametrize("loss", ["squared", "hinge", "squared_hinge", "logistic", "absolute", "epsilon_insensitive"])
def test_it_is_algorithm_1_to_the_letter(monkeypatch, loss, solver, seed, gamma, eta):
    X, y = table(n=40, d=4, seed=seed)
    X_new, _ = table(n=15, d=4, seed=seed + 50)
    y = y + 3  # a bias, which the constant feature has to learn
    constant = [with_ones(X), with_ones(X_new)]
    labels = loss in ("hinge", "squared_hinge", "logistic")
    cls = PrintedKarmaClassifier if labels else PrintedKarmaRegressor
    monkeypatch.setattr(cls, "_choose_solver", lambda model: solver)
    rho = float(2 * np.diag(karma_kernel(constant[0], gamma=gamma, count_scale="raw")).max())
    steps = eta and (lambda t: eta(t) / rho)
    model = cls(gamma, rho, loss=loss, eta=steps, standardize=False)
    target = np.where(y > 3, 1.0, -1.0) if labels else y
    values, expected = as_printed(constant[0], target, constant[1], gamma, rho, loss, steps)
    model.fit(X, target)
    made = model.decision_function(X_new) if labels else model.predict(X_new)
    np.testing.assert_allclose(made, expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())
    again = clone(model)
    options = {"classes": [-1, 1]} if labels else {}
    score = again.score_stream(X, target, **options)
    np.testing.assert_allclose(score.values[:, 0], values, rtol=1e-8, atol=1e-10 * np.abs(values).max())
    streamed = again.decision_function(X_new) if labels else again.predict(X_new)
    np.testing.assert_allclose(streamed, expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())


def test_the_defaults_are_the_papers_loss_and_steps():
    X, y = table(n=40, d=4)
    model = PrintedKarmaClassifier(rho=0.25, standardize=False).fit(X, y > 0)
    assert (model.state_["loss"], model.state_["rho"]) == ("hinge", 0.25)
    for default in (PrintedKarmaClassifier().fit(X, y > 0), PrintedKarmaRegressor().fit(X, y)):
        assert default.state_["rho"] == 0.25  # of Theorem 2, whatever the number of rows
    with pytest.raises(ValueError, match="rho"):
        PrintedKarmaRegressor(rho=None).fit(X, y)
    assert np.isfinite(PrintedKarmaRegressor().partial_fit(X, y).predict(X)).all(), (
        "the default loss needs no large rho"
    )
    _, expected = as_printed(with_ones(X), np.where(y > 0, 1.0, -1.0), with_ones(X), 2, 0.25, "hinge")
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("n", [400, 1600])
@pytest.mark.parametrize("gamma", [1, 2])
def test_the_default_regressor_learns(n, gamma):
    """Targets of variance 1: 1 / n for rho, which nobody printed, had an error of thousands."""
    X, y = table(n=n)
    y = (y - y.mean()) / y.std()
    assert np.mean((PrintedKarmaRegressor(gamma).fit(X, y).predict(X) - y) ** 2) < 0.7


def test_steps_without_a_cap_diverge_and_say_so():
    X, y = (np.tile(part, (10, 1)) for part in table(n=40, d=4))
    with pytest.raises(DivergedError, match=r"1 / \(rho t\) with rho=0\.00025 and no cap, overflows at row \d+ of the"):
        PrintedKarmaRegressor(4, rho=2.5e-4, loss="squared").fit(X, y.ravel())


def test_a_function_that_gives_1_over_rho_t_gives_the_printed_iterates():
    X, y = table()
    printed, function = (PrintedKarmaClassifier(rho=0.5, eta=eta).fit(X, y > 0) for eta in (None, lambda t: 2 / t))
    np.testing.assert_allclose(function.decision_function(X), printed.decision_function(X), rtol=1e-9, atol=1e-12)
    assert (printed.solver_, function.solver_) == ("primal", "support")


@pytest.mark.parametrize("step", [0.0, -1.0, np.nan, np.inf])
def test_what_is_no_step_is_refused_and_rows_before_are_learned(step):
    X, y = table()
    model, twin = (
        PrintedKarmaClassifier(rho=0.5, eta=lambda t: 1 / t if t <= 100 else step).fit(X, y > 0) for _ in range(2)
    )
    rows = 100 - model.n_rows_seen_
    with pytest.raises(ValueError, match=r"eta must give finite steps > 0; eta\(101\) is"):
        model.partial_fit(X, y > 0)
    assert model.n_rows_seen_ == 100
    np.testing.assert_array_equal(
        model.decision_function(X), twin.partial_fit(X[:rows], y[:rows] > 0).decision_function(X)
    )


def test_a_model_with_a_number_is_saved(tmp_path):
    X, y = table()
    model = PrintedKarmaRegressor(rho=10.0, loss="absolute", eta=1e-4).fit(X, y)
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), model.predict(X))
