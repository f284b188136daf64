"""One model by every solver: the same objective, the same answers, whatever the format, width, dtype and threads."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from reference.online import slope
from sklearn.base import is_regressor
from sklearn.utils._param_validation import StrOptions

from lacunar import KarmaClassifier, KarmaOnlineClassifier, KarmaOnlineRegressor, KarmaRegressor, Observed, _core
from lacunar.karma import base, classifier, held_out, losses
from lacunar.karma.losses import loss_values
from lacunar.karma.solvers import OnlineModel, PrimalModel, Shape, choose_solver
from lacunar.kernels import KernelForm
from lacunar.persistence import load_model, save_model

DEFINITIONS = {
    "squared": lambda f, y: (f - y) ** 2,
    "hinge": lambda f, y: np.maximum(0, 1 - y * f),
    "squared_hinge": lambda f, y: np.maximum(0, 1 - y * f) ** 2,
    "logistic": lambda f, y: np.log1p(np.exp(-y * f)),
    "absolute": lambda f, y: np.abs(f - y),
    "epsilon_insensitive": lambda f, y: np.maximum(0, np.abs(f - y) - 0.1),
}
LOSSES = list(_core.LOSSES)
ONLINE = [
    KarmaOnlineClassifier(max_iter=2, random_state=0),
    KarmaOnlineClassifier(2.5, loss="logistic", random_state=0),
    KarmaOnlineRegressor(3, budget=10**6, loss="epsilon_insensitive", random_state=0),
]
TABLES = [
    KarmaClassifier(solver="primal", random_state=0),
    KarmaRegressor(solver="primal", random_state=0),
    KarmaRegressor(solver="primal", loss="absolute", random_state=0),
]


def table(n=150, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] - X[:, 1] + 0.5 * X[:, 2]
    X[rng.random(X.shape) < 0.3] = np.nan
    X[3] = np.nan
    return X, y


def target(model, y, classes=2):
    if is_regressor(model):
        return y
    return np.array(["low", "middle", "high"])[np.digitize(y, [0.0] if classes == 2 else [-0.7, 0.7])]


def values(model, X):
    return getattr(model, "decision_function", model.predict)(X)


@pytest.mark.parametrize("loss", ["squared", "hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", [{"gamma": 1}, {"indicators": True}, {"gamma": 3, "normalize": "cosine"}])
def test_primal_agrees_with_the_gram(loss, classes, kernel):
    X, y = table()
    model = KarmaClassifier(loss=loss, tol=1e-7, random_state=0, max_iter=20000, **kernel)
    labels = target(model, y, classes)
    primal = model.set_params(solver="primal").fit(X, labels).decision_function(X)
    assert model.gap_ <= 1e-7
    gram = model.set_params(solver="gram", tol=1e-6).fit(X, labels).decision_function(X)
    np.testing.assert_allclose(primal, gram, atol=5e-3)
    assert not hasattr(model, "state_")


def test_ridge_by_the_table_with_weights_and_outputs():
    X, y = table()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    Y = np.column_stack([y, 1 + y**2])
    model = KarmaRegressor(C=3.0, solver="primal", tol=1e-10, random_state=0).fit(X, Y, weight)
    exact = KarmaRegressor(C=3.0, solver="gram").fit(X, Y, weight)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-4)


def test_both_engines_take_the_same_steps():
    X, y = table()
    rows, labels = Observed.from_dense(X), np.column_stack([np.sign(y), np.sign(y - 1)])
    form = KernelForm.fit(rows, gamma=3, constant=1.0, indicators=1.0, normalize="cosine")
    made = [cls(form, 6, 2, loss="hinge", rho=0.01, dtype=np.float64) for cls in (PrimalModel, OnlineModel)]
    first, second = (model.partial_fit(rows, labels) for model in made)
    np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(made[0].decide(rows), made[1].decide(rows), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_have_the_values_of_their_definition(loss):
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=50) * 3, np.sign(rng.normal(size=50))
    np.testing.assert_allclose(loss_values(loss, f, y), DEFINITIONS[loss](f, y), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_have_the_slopes_of_the_slow_twin(loss):
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=50) * 3, np.sign(rng.normal(size=50))
    numeric = (loss_values(loss, f + 1e-6, y) - loss_values(loss, f - 1e-6, y)) / 2e-6
    np.testing.assert_allclose([slope(loss, *pair) for pair in zip(f, y, strict=True)], numeric, atol=1e-6)


@pytest.mark.parametrize("model", [*ONLINE, *TABLES], ids=repr)
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, Observed])
@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_format_and_index_width_do_not_matter(model, container, width):
    X, y = table()
    labels = target(model, y, 3)
    S = Observed.from_dense(X)
    if container is not Observed:
        S = container(S.to_scipy())
        S.indptr, S.indices = S.indptr.astype(width), S.indices.astype(width)
    expected = values(model.fit(X, labels), X)
    np.testing.assert_array_equal(values(model.fit(S, labels), S), expected)
    np.testing.assert_array_equal(values(model.set_params(n_jobs=3).fit(S, labels), X), expected)
    model.set_params(n_jobs=None)


@pytest.mark.parametrize("model", ONLINE, ids=repr)
def test_models_are_kept_and_go_on(model, tmp_path):
    X, y = table()
    labels = target(model, y)
    model.fit(X, labels)
    save_model(model, tmp_path / "model")
    copies = [load_model(tmp_path / "model"), pickle.loads(pickle.dumps(model))]
    expected = values(model.partial_fit(X[:50], labels[:50]), X)
    for copy in copies:
        np.testing.assert_array_equal(values(copy.partial_fit(X[:50], labels[:50]), X), expected)


def test_a_budget_bounds_the_stored_rows():
    X, y = table(300)
    model = KarmaOnlineClassifier(2.5, budget=40, random_state=0)
    labels = target(model, y)
    assert np.mean(model.fit(X, labels).predict(X) == labels) > 0.75
    assert model.state_["rows"].shape[0] == 40
    assert model.state_["clock"][3] > 0


@pytest.mark.parametrize("gamma", [2, 2.5])
@pytest.mark.parametrize("name", ["first", "second", "clock"])
@pytest.mark.parametrize("bad", [3, np.zeros(0), np.full(4, np.inf), np.zeros(3, np.int64)], ids=str)
def test_a_file_with_other_arrays_is_refused(gamma, name, bad, tmp_path):
    X, y = table(60)
    model = KarmaOnlineClassifier(gamma, random_state=0).fit(X, target(KarmaClassifier(), y))
    model.state_ = {**model.state_, name: bad}
    save_model(model, tmp_path / "model")
    with pytest.raises(ValueError, match="not a sound model file"):
        load_model(tmp_path / "model")


def test_passes_approach_the_exact_solution():
    X, y = table(400)
    labels = target(KarmaClassifier(), y)
    exact = KarmaClassifier(loss="hinge", C=0.1, tol=1e-6).fit(X, labels).decision_function(X)
    far = [
        np.abs(model.fit(X, labels).decision_function(X) - exact).max()
        for budget in (None, 10**6)
        for passes in (1, 30)
        for model in [KarmaOnlineClassifier(rho=1 / 40, budget=budget, max_iter=passes, random_state=0)]
    ]
    assert far[1] < 0.4 * far[0]
    assert far[3] < 0.4 * far[2]


@pytest.mark.parametrize(
    ("gamma", "n", "d", "observed", "expected"),
    [
        (2, 100, 20, 10, "gram"),
        (2, 1_000_000, 200, 30, "primal"),
        (3, 1_000_000, 50, 20, "primal"),
        (2, 200_000, 4000, 100, "primal"),
        (2.5, 5000, 50, 30, "gram"),
    ],
)
def test_auto_rule(gamma, n, d, observed, expected):
    assert choose_solver(KernelForm(gamma=gamma), Shape(n, d, observed, 1, True), 2**31) == expected


def test_auto_is_shown_and_keeps_to_the_memory(monkeypatch):
    X, y = table()
    assert KarmaRegressor().fit(X, y).solver_ == "gram"
    assert KarmaRegressor(loss="absolute").fit(X, y).solver_ == "primal"
    monkeypatch.setattr(base, "MEMORY", 2**17)
    assert KarmaRegressor().fit(X, y).solver_ == "primal"
    with pytest.raises(
        ValueError, match=r"must hold the Gram of 150 rows.*gamma=2.5 has no weight.*KarmaOnlineRegressor"
    ):
        KarmaRegressor(gamma=2.5).fit(X, y)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (
            KarmaClassifier(gamma=4, solver="primal"),
            r"gamma 1, 2 or 3.*got gamma=4.*solver='gram'.*KarmaOnlineClassifier",
        ),
        (
            KarmaClassifier(loss="crammer_singer", solver="primal"),
            r"a dual of single rows; got loss='crammer_singer'.*Use solver='gram'",
        ),
        (KarmaRegressor(loss="absolute", solver="gram"), r"a closed form.*got loss='absolute'.*Use solver='primal'"),
        (KarmaRegressor(gamma=4, loss="absolute"), r"gamma 1, 2 or 3.*got gamma=4.*KarmaOnlineRegressor"),
    ],
)
def test_impossible_solvers_name_the_alternatives(model, match):
    X, y = table()
    with pytest.raises(ValueError, match=match):
        model.fit(X, target(model, y))


PARTIAL = {  # by what a loss has, the solvers that refuse it
    (): ("gram", "primal", "auto", "online"),
    ("slope",): ("gram", "primal", "auto"),
    ("slope", "curvature"): ("gram", "primal", "auto"),
    ("dual",): ("gram", "online"),
    ("closed_form",): ("primal", "online"),
}


@pytest.mark.parametrize(("pieces", "solver"), [(has, name) for has, names in PARTIAL.items() for name in names])
@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_a_loss_without_what_the_solver_needs_is_refused(monkeypatch, pieces, solver, kind):
    """A loss that was added to the words of the parameter alone: no solver may take it for another one."""
    batch, online = (
        (KarmaClassifier, KarmaOnlineClassifier) if kind == "classifier" else (KarmaRegressor, KarmaOnlineRegressor)
    )
    model = online(loss="cubic") if solver == "online" else batch(loss="cubic", solver=solver)
    words = {**model._parameter_constraints, "loss": [StrOptions({"cubic"})]}
    monkeypatch.setattr(type(model), "_parameter_constraints", words)
    monkeypatch.setitem(losses._HAS, "cubic", frozenset(pieces))
    X, y = table()
    with pytest.raises(
        ValueError, match=r"must have a loss with a .*; got loss='cubic', which has .*\. Use .*another loss"
    ):
        model.fit(X, target(model, y))
    if solver == "online":
        more = {"classes": ["low", "middle"]} if kind == "classifier" else {}
        with pytest.raises(ValueError, match="must have a loss with a slope; got loss='cubic'"):
            model.partial_fit(X, target(model, y), **more)
    assert not hasattr(model, "kernel_")


def test_auto_takes_the_solver_that_has_the_loss():
    X, y = table()
    for loss in (*LOSSES, "crammer_singer"):
        able = [solver for solver in ("gram", "primal") if losses.solves(solver, loss)]
        assert able, loss
        model = (KarmaClassifier if loss in classifier.LOSSES else KarmaRegressor)(loss=loss)
        assert model.fit(X, target(model, y)).solver_ == able[0], loss


def test_the_core_asks_for_the_same_pieces():
    gram, ones = np.eye(2, dtype=np.float32), np.ones(2)
    with pytest.raises(ValueError, match="loss 'absolute' has no dual over a Gram"):
        _core.dual_ascend(gram, ones, ones, "absolute", np.zeros(2), ones, np.zeros(2), 1, 0.1)
    for loss in LOSSES:
        assert losses.has(loss, "slope")


def noisy_rows(n, seed=0, d=40, more=2000):
    """Rows of rank 4 with holes, a fifth of whose labels are wrong, and 2,000 more."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n + more, 4))
    X = a @ rng.normal(size=(4, d))
    X[rng.random(X.shape) < 0.7] = np.nan
    y = (a[:, 0] > 0) ^ (rng.random(len(a)) < 0.2)
    return X[:n], y[:n], X[n:], y[n:]


def test_many_rows_end_where_rows_held_out_say_so():
    X, y, X_new, y_new = noisy_rows(22_000)
    early, exact = KarmaClassifier().fit(X, y), KarmaClassifier(solver="primal").fit(X, y)
    assert early.solver_ == exact.solver_ == "primal"
    assert early.n_iter_ < exact.n_iter_
    assert early.score(X_new, y_new) > exact.score(X_new, y_new)
    twin = KarmaOnlineClassifier(random_state=0).fit(X, y)
    assert early.score(X_new, y_new) >= twin.score(X_new, y_new) - 0.005
    np.testing.assert_array_equal(KarmaClassifier(n_jobs=2).fit(X, y).predict_proba(X_new), early.predict_proba(X_new))
    np.testing.assert_array_equal(
        KarmaClassifier().fit(Observed.from_dense(X), y).decision_function(X_new), early.decision_function(X_new)
    )
    log_loss = -np.log(early.predict_proba(X_new)[np.arange(len(y_new)), y_new.astype(int)]).mean()
    assert log_loss < 0.98 * np.log(2)


def test_a_share_of_C_that_is_hopeless_ends_within_its_sweep_and_changes_nothing(monkeypatch):
    X, y, X_new, _ = noisy_rows(20_000, d=20, more=100)
    visits, ascend = [], _core.primal_ascend
    monkeypatch.setattr(_core, "primal_ascend", lambda **given: visits.append(len(given["order"])) or ascend(**given))
    early, n_early = KarmaClassifier().fit(X, y), sum(visits)
    monkeypatch.setattr(held_out, "_HOPELESS", np.inf)
    whole = KarmaClassifier().fit(X, y)
    assert sum(visits) - n_early - n_early > 0.5 * len(y)
    np.testing.assert_array_equal(early.predict_proba(X_new), whole.predict_proba(X_new))


def test_an_early_end_hinges_little_on_the_order_of_the_rows():
    X, y, X_new, y_new = (
        part if part.ndim == 1 else Observed.from_dense(part) for part in noisy_rows(22_000, 3, more=10_000)
    )
    scores = [KarmaClassifier(random_state=order).fit(X, y).score(X_new, y_new) for order in range(1, 5)]
    assert np.ptp(scores) < 0.006  # .008 where the last visits count in full
    assert np.mean(scores) > KarmaOnlineClassifier(random_state=0).fit(X, y).score(X_new, y_new)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_many_numbers_without_noise_go_on_to_all_of_C(loss):
    X, _, X_new, _ = noisy_rows(21_000)
    weights = np.random.default_rng(1).normal(size=X.shape[1])
    y, y_new = (np.nansum(table * weights, axis=1) for table in (X, X_new))
    early, exact = (KarmaRegressor(loss=loss, solver=solver, n_jobs=1).fit(X, y) for solver in ("auto", "primal"))
    assert 1 - early.score(X_new, y_new) < 1.1 * (1 - exact.score(X_new, y_new)) + 1e-4


def test_a_search_fits_its_own_C_to_the_end():
    X, y, X_new, _ = noisy_rows(21_000)
    searched = KarmaClassifier(C=0.5)._fit(X, y, None, searched=True)
    exact = KarmaClassifier(C=0.5, solver="primal").fit(X, y)
    np.testing.assert_array_equal(searched.decision_function(X_new), exact.decision_function(X_new))
