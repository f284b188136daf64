"""Tables that no cache holds: the literal iterates, the same bits however rows are cut, pending rows kept."""

import signal

import numpy as np
import pytest
from test_karma_table import FORMS, LOSSES, fitted, follows_the_twin, interrupted, problem

from lacunar import KarmaOnlineClassifier, Observed
from lacunar.karma.solvers import PrimalModel, average_states
from lacunar.karma.steps import DivergedError
from lacunar.kernels import KernelForm
from lacunar.persistence import load_model, save_model

WIDE = ["paper", "trace", "indicators"]


@pytest.fixture(autouse=True)
def small_blocks_and_caches(monkeypatch):
    monkeypatch.setattr("lacunar.karma.table._CACHES", 1)
    monkeypatch.setattr("lacunar.karma.table._BLOCK", 32)


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("kind", ["last", "average", "weighted"])
def test_algorithm_1_is_literal(name, kind):
    rows, y = problem()
    model = fitted(KernelForm.fit(rows, **FORMS[name]), iterate=kind)
    assert model.wide
    follows_the_twin(model, rows, y)
    assert len(model.state()["pending_first"]) > 0  # 120 rows leave some behind


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("eta", ["theory", "constant"])
def test_losses_and_steps_are_literal(loss, eta):
    rows, y = problem()
    form, weight = KernelForm.fit(rows, **FORMS["trace"]), np.random.default_rng(2).uniform(0.5, 2, 120)
    follows_the_twin(fitted(form, loss=loss, eta=eta, eta0=0.3), rows, y, weight)


@pytest.mark.parametrize(("eta0", "rho"), [(0.9, 1.0), (2.0, 0.5)])  # the scale leaves the floats; every step forgets
@pytest.mark.parametrize("kind", ["last", "average", "weighted"])
def test_folds_are_literal(eta0, rho, kind):
    rows, y = problem()
    form = KernelForm.fit(rows, **FORMS["trace"])
    follows_the_twin(fitted(form, rho=rho, eta="constant", eta0=eta0, iterate=kind), rows, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", [{}, {"eta": "constant", "eta0": 18.0}], ids=["theory", "folds"])
def test_batches_threads_and_state_give_the_same_bits(dtype, options):
    rows, y = problem(n=300, d=90, share=0.2, outputs=2)
    form = KernelForm.fit(rows, **FORMS["indicators"])
    whole = fitted(form, d=90, outputs=2, dtype=dtype, **options)
    expected = whole.partial_fit(rows, y)
    for cut, n_threads in ((1, 1), (7, 2), (50, 3), (299, 4)):
        model, made = fitted(form, d=90, outputs=2, dtype=dtype, **options), []
        for start in range(0, 300, cut):
            model = PrimalModel.from_state(model.state())
            made.append(model.partial_fit(rows[start : start + cut], y[start : start + cut], n_threads=n_threads))
        np.testing.assert_array_equal(np.vstack(made), expected)
        np.testing.assert_array_equal(model.weights(), whole.weights())
        decided = np.vstack([model.decide(rows[:100], n_threads=n_threads), model.decide(rows[100:])])
        np.testing.assert_array_equal(decided, whole.decide(rows))


def test_order_of_rows_is_followed():
    rows, y = problem()
    form, order = KernelForm.fit(rows, **FORMS["trace"]), np.random.default_rng(0).permutation(120)
    first, second = fitted(form), fitted(form)
    np.testing.assert_array_equal(
        first.partial_fit(rows, y, order=order)[order], second.partial_fit(rows[order], y[order])
    )


@pytest.mark.parametrize("options", [{}, {"eta": "constant", "eta0": 18.0}], ids=["theory", "folds"])
def test_a_row_that_diverges_is_not_learned(options):
    rows, y = problem(d=200, share=0.05)
    model = fitted(KernelForm.fit(rows, **FORMS["trace"]), d=200, loss="absolute", **options)
    model.partial_fit(rows, y)
    kept, t = model.decide(rows), model.t
    target = y[:5].copy()
    model.loss, target[0] = "squared", np.inf
    with np.errstate(all="ignore"), pytest.raises(DivergedError, match="row 0"):
        model.partial_fit(rows[100:105], target)
    assert model.t == t
    np.testing.assert_allclose(model.decide(rows), kept, rtol=1e-6)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer that sends signals")
def test_an_interrupt_leaves_whole_rows():
    rows, y = problem(n=2000, d=60)
    form, order = KernelForm.fit(rows, **FORMS["trace"]), np.tile(np.arange(2000), 100)
    model, twin = (fitted(form, d=60) for _ in range(2))
    interrupted(lambda: model.partial_fit(rows, y, order=order), 0.1)
    assert 0 < model.t < len(order)
    twin.partial_fit(rows, y, order=order[: model.t])
    for each in (model, twin):
        each.partial_fit(rows, y)
    np.testing.assert_array_equal(model.weights(), twin.weights())


def test_an_average_has_what_was_pending_in_its_tables():
    rows, y = problem()
    models = [fitted(KernelForm.fit(rows, **FORMS["trace"])) for _ in range(2)]
    for model, part in zip(models, (slice(0, 50), slice(50, 100)), strict=True):
        model.partial_fit(rows[part], y[part])
    made = PrimalModel.from_state(average_states([model.state() for model in models]))
    np.testing.assert_allclose(made.decide(rows), np.mean([model.decide(rows) for model in models], axis=0), atol=1e-10)
    assert np.isfinite(made.partial_fit(rows, y)).all()


def test_ascent_forgets_what_was_pending():
    rows, y = problem()
    form = KernelForm.fit(rows, **FORMS["trace"])
    fresh, used = fitted(form), fitted(form)
    used.partial_fit(rows[:50], y[:50])
    made = [
        m.ascend(rows, y, np.ones(120), tol=1e-6, max_iter=1000, rng=np.random.default_rng(0)) for m in (fresh, used)
    ]
    np.testing.assert_array_equal(made[0].coef, made[1].coef)
    np.testing.assert_array_equal(fresh.decide(rows), used.decide(rows))


def test_models_are_kept_with_what_is_pending(tmp_path):
    rows, y = problem()
    model = KarmaOnlineClassifier(random_state=0).fit(rows, y[:, 0])
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    expected = model.partial_fit(rows[:50], y[:50, 0]).decision_function(rows)
    np.testing.assert_array_equal(again.partial_fit(rows[:50], y[:50, 0]).decision_function(rows), expected)


def test_pending_rows_that_do_not_fit_are_refused():
    rows, y = problem()
    model = fitted(KernelForm.fit(rows, **FORMS["trace"]))
    model.partial_fit(rows, y)
    for bad in (np.zeros((1, 1)), np.full(model.state()["pending_first"].shape, np.nan)):
        with pytest.raises(ValueError, match="pending_first"):
            PrimalModel.from_state({**model.state(), "pending_first": bad})


def test_empty_batches_and_rows():
    rows, y = problem()
    model = fitted(KernelForm.fit(rows, **FORMS["trace"]))
    assert model.partial_fit(rows[:0], y[:0]).shape == (0, 1)
    hole = Observed.from_dense(np.full((40, 12), np.nan))
    assert np.isfinite(model.partial_fit(hole, y[:40])).all()
    assert model.decide(rows).shape == (120, 1)
