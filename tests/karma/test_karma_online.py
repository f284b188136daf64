"""Streams of batches: what is refused leaves the model as it was; what is learned is what `partial_fit` would learn."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

from lacunar import KarmaClassifier, KarmaOnlineClassifier, KarmaOnlineRegressor, Observed
from lacunar.karma.steps import DivergedError
from lacunar.observed import read_batches
from lacunar.papers.karma import PrintedKarmaRegressor

MODELS = [
    KarmaOnlineClassifier(),
    KarmaOnlineClassifier(2.5, loss="logistic"),
    KarmaOnlineRegressor(loss="absolute"),
    KarmaOnlineRegressor(budget=10**6),
]


def table(model=None, n=120, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] - X[:, 1]
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, (np.where(y > 0, "yes", "no") if model is not None and is_classifier(model) else y)


def begun(model):
    X, y = table(model)
    first = {"classes": ["no", "yes"]} if is_classifier(model) else {}
    return copy.deepcopy(model).partial_fit(X[:60], y[:60], **first), X, y


def values(model, X):
    return getattr(model, "decision_function", model.predict)(X)


every = pytest.mark.parametrize("model", MODELS, ids=repr)


@every
def test_batches_are_one_stream(model):
    going, X, y = begun(model)
    going.partial_fit(X[60:61], y[60:61]).partial_fit(X[61:], y[61:])
    whole, _, _ = begun(model)
    whole.partial_fit(X[60:], y[60:])
    np.testing.assert_allclose(values(going, X), values(whole, X), rtol=1e-5, atol=1e-6)
    assert going.n_rows_seen_ == 120
    options = {"classes": ["no", "yes"]} if is_classifier(model) else {}
    once = copy.deepcopy(model).fit_batches(((X[a : a + 60], y[a : a + 60]) for a in (0, 60)), **options)
    np.testing.assert_array_equal(values(once, X), values(whole, X))


@pytest.mark.parametrize("model", [KarmaOnlineClassifier(), KarmaOnlineRegressor()], ids=repr)
@pytest.mark.parametrize("first", [1, 2, 5])
def test_a_small_first_batch_neither_blinds_nor_blows_up(model, first):
    X, y = table(model, n=900)
    options = {"classes": ["no", "yes"]} if is_classifier(model) else {}
    going = copy.deepcopy(model).partial_fit(X[:first], y[:first], **options)
    going.partial_fit(X[first:600], y[first:600])
    bounded = going.reach_ < 1e100  # where the first batch had a spread
    assert (going.reach_[bounded] == 8).all()
    assert bounded.any() == (first > 1)
    assert going.score(X[600:], y[600:]) > (0.6 if is_classifier(model) else 0.2)


def test_a_column_that_the_first_batch_lacks_counts_in_its_own_units():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    X[:, 0] = rng.uniform(9, 20, size=1500)
    y = (X[:, 0] - 14.5) / 3
    first = X[:50].copy()
    first[:, 0] = np.nan
    going = KarmaOnlineRegressor(random_state=0).partial_fit(first, y[:50]).partial_fit(X[50:1000], y[50:1000])
    assert going.score(X[1000:], y[1000:]) > 0.2  # entries of 8 at most all look alike: -.2


@every
def test_a_table_on_disk_is_read_by_batches(model, tmp_path):
    going, X, y = begun(model)
    going.partial_fit(X[60:], y[60:])
    Observed.from_dense(X).save(tmp_path / "table")
    batches = read_batches(tmp_path / "table", size=60, target=y)
    options = {"classes": ["no", "yes"]} if is_classifier(model) else {}
    np.testing.assert_array_equal(values(copy.deepcopy(model).fit_batches(batches, **options), X), values(going, X))


def bad_batches(X, y):
    numeric = y.dtype.kind == "f"
    hole = np.full(60, np.nan) if numeric else np.array([None, *y[1:60]], dtype=object)
    infinite = X[:60].copy()
    infinite[7, 2] = np.inf
    return {
        "changed features": (X[:60, :4], y[:60], "features"),
        "empty": (X[:0], y[:0], "minimum of 1"),
        "no label": (X[:60], hole, "NaN"),
        "infinite": (infinite, y[:60], "row 7, column 2"),
        "lengths": (X[:60], y[:59], "inconsistent"),
        "new": (X[:60], np.column_stack([y[:60]] * 2) if numeric else np.where(y[:60] == "yes", "maybe", "no"), "y "),
    }


@every
@pytest.mark.parametrize("kind", ["changed features", "empty", "no label", "infinite", "lengths", "new"])
def test_a_refused_batch_changes_nothing(model, kind):
    going, X, y = begun(model)
    before, names = values(going, X), sorted(vars(going))
    X_bad, y_bad, match = bad_batches(X, y)[kind]
    with pytest.raises(ValueError, match=match):
        going.partial_fit(X_bad, y_bad)
    np.testing.assert_array_equal(values(going, X), before)
    assert (sorted(vars(going)), going.n_rows_seen_) == (names, 60)
    fresh = copy.deepcopy(model)
    if kind not in ("changed features", "new"):
        with pytest.raises(ValueError, match=match):
            fresh.partial_fit(X_bad, y_bad, **({"classes": ["no", "yes"]} if y.dtype.kind == "U" else {}))
        assert not hasattr(fresh, "n_features_in_")


def test_rows_without_label_are_pointed_to_slrm():
    going, X, y = begun(KarmaOnlineRegressor())
    y[3] = np.nan
    with pytest.raises(ValueError, match=r"row 3.*SLRMRegressor"):
        going.partial_fit(X, y)


def test_classes_are_settled_by_the_first_call():
    going, X, y = begun(KarmaOnlineClassifier())
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        going.partial_fit(X, y, classes=["no", "yes", "maybe"])
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        KarmaOnlineClassifier().partial_fit(X, y)
    three = KarmaOnlineClassifier(class_weight={"yes": 2.0}).partial_fit(X, y, classes=["maybe", "no", "yes"])
    assert three.decision_function(X).shape == (120, 3)


def test_one_class_and_classes_that_never_come():
    X, _ = table()
    only = KarmaOnlineClassifier(loss="logistic").fit(X, ["only"] * 120)
    assert set(only.predict(X)) == {"only"}
    assert only.predict_proba(X).shape == (120, 1)


@pytest.mark.parametrize("gamma", [2, 2.5])
def test_a_step_that_diverges_is_named(gamma):
    X, y = table()
    wild = PrintedKarmaRegressor(gamma, 1.0, loss="absolute", eta=1e6)
    with pytest.raises(DivergedError, match=r"a constant step eta=1e\+06.*Use a smaller step"):
        wild.partial_fit(X, y)
    assert not hasattr(wild, "state_")
    wild.set_params(eta=1e-3).partial_fit(X, y)  # nothing was begun
    slow = PrintedKarmaRegressor(gamma, 1.0, loss="absolute", eta=2.5).partial_fit(X, y)
    seen = 0
    for _ in range(40):  # every step multiplies the model by -1.5
        seen += 120
        try:
            slow.partial_fit(X, y)
        except DivergedError:
            break
    else:
        pytest.fail("it never diverged")
    assert seen <= slow.n_rows_seen_ < seen + 120


def test_weights_beyond_the_table_are_refused():
    X, y = table()
    model, _, _ = begun(KarmaOnlineRegressor(loss="absolute"))
    before = values(model, X)
    with pytest.raises(ValueError, match="a sum of at most 1e"):
        model.partial_fit(X, y, sample_weight=np.full(120, 1e300))
    np.testing.assert_array_equal(values(model, X), before)


def test_weights_that_leave_the_finite_numbers_are_refused_at_their_row():
    X, y = table()
    weight = np.ones(120)
    weight[7] = 1e140
    (model, X, y), (twin, _, _) = (begun(KarmaOnlineClassifier(loss="logistic")) for _ in range(2))
    seen = model.n_rows_seen_
    with pytest.raises(DivergedError, match="at row 7 of"):
        model.partial_fit(X, y, sample_weight=weight)
    assert model.n_rows_seen_ == seen + 7
    np.testing.assert_array_equal(values(model, X), values(twin.partial_fit(X[:7], y[:7]), X))


@pytest.mark.parametrize("loss", ["absolute", "epsilon_insensitive"])
@pytest.mark.parametrize("gamma", [2, 2.5])
def test_first_steps_of_a_bounded_slope_do_not_pass_their_targets(gamma, loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = 100 * (X @ np.arange(6)) + 1000
    X[rng.random(X.shape) < 0.1] = np.nan
    model = KarmaOnlineRegressor(gamma, loss=loss, epsilon=10.0).partial_fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.6


@pytest.mark.parametrize("gamma", [2, 2.5])
def test_progressive_validation(gamma):
    X, y = table(KarmaOnlineClassifier(), n=600)
    model = KarmaOnlineClassifier(gamma, rho=1e-3)
    first = model.score_stream(X[:300], y[:300], ["no", "yes"], regret=gamma == 2)
    twin = KarmaOnlineClassifier(gamma, rho=1e-3).partial_fit(X[:300], y[:300], classes=["no", "yes"])
    np.testing.assert_array_equal(model.decision_function(X), twin.decision_function(X))
    signs = np.where(y[:300] == "yes", 1.0, -1.0)[:, None]
    assert first.loss == pytest.approx(np.maximum(0, 1 - signs * first.values).mean())
    assert first.mistakes == np.count_nonzero((first.values > 0) != (signs > 0))
    assert first.values[0] == 0
    second = model.score_stream(X[300:], y[300:])
    assert second.mistakes < 100
    assert second.regret is None
    if gamma == 2:
        exact = KarmaClassifier(loss="hinge", C=1 / (300 * 1e-3), tol=1e-6, solver="gram").fit(X[:300], y[:300])
        best = np.maximum(0, 1 - signs[:, 0] * exact.decision_function(X[:300])).mean()
        assert first.regret == pytest.approx(first.loss - best, abs=0.01)
        assert first.regret > 0
    else:
        with pytest.raises(ValueError, match="regret=True must have gamma 1, 2 or 3"):
            model.score_stream(X, y, regret=True)


def test_a_regressor_reports_its_loss():
    X, y = table(n=400)
    model = KarmaOnlineRegressor(rho=0.05)
    scores = [model.score_stream(X[a : a + 200], y[a : a + 200], regret=True) for a in (0, 200)]
    assert scores[1].loss < scores[0].loss < np.var(y)
    assert scores[0].mistakes is None
    assert scores[0].regret > 0


@every
def test_one_row_at_a_time(model):
    pandas = pytest.importorskip("pandas")
    X, y = table(model)
    options = {"classes": ["no", "yes"]} if is_classifier(model) else {}
    going = copy.deepcopy(model).partial_fit(pandas.DataFrame(X[:60], columns=list("abcde")), y[:60], **options)
    same, _, _ = begun(model)
    row = {name: value for name, value in zip("abcde", X[60], strict=True) if value == value}
    assert going.learn_one({**row, "a": row.get("a")}, y[60]) is going
    same.partial_fit(X[60:61], y[60:61])
    np.testing.assert_array_equal(going.predict_one(row), same.predict(X[60:61])[0])
    with pytest.raises(ValueError, match="got 'z'"):
        going.learn_one({"z": 1.0}, y[60])
    with pytest.raises(NotFittedError, match="Call partial_fit on some rows first"):
        copy.deepcopy(model).learn_one(row, y[60])


@pytest.mark.parametrize("model", [KarmaOnlineClassifier(), KarmaOnlineClassifier(loss="squared")], ids=repr)
def test_predictions_are_never_of_an_older_model(model):
    X, y = table(model)
    going = copy.deepcopy(model).fit_batches([(X[:60], y[:60])], classes=["no", "yes"])
    for _ in range(3):
        before = values(going, X)
        np.testing.assert_array_equal(before, values(going, X))
        going.partial_fit(X[60:], y[60:])
        assert not np.array_equal(values(going, X), before)
        np.testing.assert_array_equal(values(going, X), values(pickle.loads(pickle.dumps(going)), X))
    going.fit(X, y)
    fitted = values(copy.deepcopy(model).fit(X, y), X)
    np.testing.assert_array_equal(values(going, X), fitted)


def test_one_pass_needs_the_memory_of_model_and_batch():
    rng = np.random.default_rng(0)

    def batches(count):
        for _ in range(count):
            X = rng.normal(size=(2000, 20))
            yield X, X[:, 0]

    def peak(count):
        tracemalloc.start()
        KarmaOnlineRegressor().fit_batches(batches(count))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(1)
    assert peak(20) < 1.2 * peak(2)


def test_progress_and_row_order(caplog):
    X, y = table(KarmaOnlineClassifier())
    KarmaClassifier(solver="primal", verbose=1, random_state=0).fit(X, y)
    KarmaOnlineClassifier(max_iter=2, verbose=1).fit(X, y)
    KarmaOnlineClassifier(verbose=1).fit_batches([(X, y)], classes=["no", "yes"])
    for line in ("[primal] sweep 1", "[primal] pass 2: 240 rows", "batch 1: 120 rows"):
        assert line in caplog.text
    seeds = [KarmaOnlineClassifier(random_state=s).fit(X, y).decision_function(X) for s in (0, 0, 1)]
    np.testing.assert_array_equal(seeds[0], seeds[1])
    assert not np.array_equal(seeds[0], seeds[2])
    with pytest.raises(ValueError, match="it was empty"):
        KarmaOnlineClassifier().fit_batches([], classes=["no", "yes"])
