"""Algorithm 1 over support rows: literal iterates, the same bits for any block and thread, budgets, divergence."""

import signal

import numpy as np
import pytest
from isa import decided_by
from reference.online import algorithm_1
from test_karma_table import FORMS, LOSSES, follows_the_twin, interrupted, problem

from lacunar import Observed
from lacunar.karma.solvers import OnlineModel, PrimalModel
from lacunar.karma.steps import DivergedError
from lacunar.kernels import KernelForm

KERNELS = {**FORMS, "real gamma": {"gamma": 2.5, "constant": 1.0}, "six": {"gamma": 6, "normalize": "cosine"}}
KERNELS["composed"] = {"gamma": 2, "constant": 1.0, "normalize": "cosine", "degree": 3, "coef0": 0.5}


def fitted(form, d=12, outputs=1, **options):
    made = {"loss": "hinge", "rho": 0.05, "dtype": np.float64, **options}
    return OnlineModel(form, d, outputs, **made)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("kind", ["last", "average", "weighted"])
def test_algorithm_1_is_literal(name, kind):
    rows, y = problem()
    follows_the_twin(fitted(KernelForm.fit(rows, **KERNELS[name]), iterate=kind, block=50), rows, y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("eta", ["theory", "constant"])
def test_losses_and_steps_are_literal(loss, eta):
    rows, y = problem()
    form, weight = KernelForm.fit(rows, **FORMS["trace"]), np.random.default_rng(2).uniform(0.5, 2, 120)
    for kind in ("average", "weighted"):
        follows_the_twin(fitted(form, loss=loss, eta=eta, eta0=0.3, iterate=kind, block=32), rows, y, weight)


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_a_scale_that_leaves_the_floats_is_folded(block):
    rows, y = problem()
    form = KernelForm.fit(rows, **FORMS["trace"])
    follows_the_twin(fitted(form, rho=1.0, eta="constant", eta0=0.9, block=block), rows, y)


@pytest.mark.parametrize("block", [1, 7, 1000])
@pytest.mark.parametrize("loss", ["hinge", "squared"])  # every row; the fourth alone, which has no curvature
@pytest.mark.parametrize("kind", ["last", "average", "weighted"])
def test_a_step_that_forgets_all_before_it_is_literal(block, loss, kind):
    rows, y = problem()
    form, weight = KernelForm.fit(rows, **FORMS["trace"]), np.where(np.arange(120) == 3, 0.0, 1.0)
    model = fitted(form, loss=loss, rho=0.5, eta="constant", eta0=2.0, block=block, iterate=kind)  # eta0 rho = 1
    follows_the_twin(model, rows, y, weight)


@pytest.mark.parametrize("eta", ["theory", "constant"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7])
@pytest.mark.parametrize("name", ["indicators", "three", "real gamma", "composed"])
def test_blocks_and_threads_give_the_same_bits(dtype, share, name, eta):
    rows, y = problem(n=400, d=90, share=share, outputs=2)
    form = KernelForm.fit(rows, **KERNELS[name])
    made = []
    for block, n_threads in ((1, 1), (5, 1), (100, 1), (1024, 2), (150, 3)):
        # The constant step's scale leaves the floats several times on the way.
        model = fitted(form, d=90, outputs=2, dtype=dtype, block=block, eta=eta, eta0=18.0)
        model.partial_fit(rows[:50], y[:50], n_threads=n_threads)  # how calls are cut makes no difference either
        values = model.partial_fit(rows[50:], y[50:], n_threads=n_threads)
        made.append((values, model.first, model.second, model.decide(rows[:40], n_threads=n_threads)))
    for other in made[1:]:
        for mine, theirs in zip(made[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_it_is_the_primal_where_both_exist():
    rows, y = problem(n=400, outputs=3)
    form = KernelForm.fit(rows, **FORMS["three"])
    online = fitted(form, outputs=3)
    table = PrimalModel(form, 12, 3, loss="hinge", rho=0.05, dtype=np.float64)
    np.testing.assert_allclose(online.partial_fit(rows, y), table.partial_fit(rows, y), atol=1e-8)
    np.testing.assert_allclose(online.decide(rows), table.decide(rows), atol=1e-9)


def test_only_margin_violators_are_stored_and_state_goes_on():
    rows, y = problem(n=600)
    form = KernelForm.fit(rows, **KERNELS["real gamma"])
    whole = fitted(form)
    whole.partial_fit(rows, y)
    assert 0 < len(whole.first) < 600
    half = fitted(form)
    half.partial_fit(rows[:300], y[:300])
    again = OnlineModel.from_state(half.state())
    again.partial_fit(rows[300:], y[300:])
    np.testing.assert_array_equal(again.first, whole.first)
    with pytest.raises(ValueError, match=r"'second'\] must be of shape"):
        OnlineModel.from_state({**half.state(), "first": half.first[:-1]})


def test_a_budget_bounds_what_is_stored_and_what_is_lost():
    rows, y = problem(n=600)
    form = KernelForm.fit(rows, **FORMS["trace"])
    whole, small = fitted(form), fitted(form, budget=40, block=100)
    whole.partial_fit(rows, y)
    small.partial_fit(rows, y)
    assert len(small.first) <= 40
    assert small.lost > 0
    right = (np.sign(small.decide(rows)) == y).mean()
    assert right > (np.sign(whole.decide(rows)) == y).mean() - 0.15


def test_a_budget_moves_values_by_no_more_than_it_says():
    rows, y = problem(n=200)
    form = KernelForm.fit(rows, **FORMS["trace"])
    model = fitted(form)
    model.partial_fit(rows, y)
    before = model.decide(rows)
    model = OnlineModel.from_state({**model.state(), "budget": 20})
    model.partial_fit(rows[:0], y[:0])
    moved = np.abs(model.decide(rows) - before)[:, 0]
    assert (moved <= model.lost * np.sqrt(form.diagonal(rows)) * (1 + 1e-9)).all()


@pytest.mark.parametrize("place", [0, 70, 119])
@pytest.mark.parametrize("budget", [None, 25])
def test_divergence_is_found_at_its_row(place, budget):
    rows, y = problem()
    form = KernelForm.fit(rows, **FORMS["trace"])
    model, twin = (fitted(form, loss="squared", block=30, budget=budget) for _ in range(2))
    targets = y.copy()
    targets[place] = np.finfo(float).max
    for each in (model, twin):
        each.partial_fit(rows, y)
    with pytest.raises(DivergedError, match=f"at row {place} of"):
        model.partial_fit(rows, targets)
    assert model.t == 120 + place
    twin.partial_fit(rows[:place], y[:place])
    for each in (model, twin):
        assert np.isfinite(each.partial_fit(rows, y)).all()
    for name in ("first", "second", "clock"):
        np.testing.assert_array_equal(getattr(model, name), getattr(twin, name))


@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
def test_a_first_step_that_forgets_everything_has_nothing_to_forget(loss):
    rows, y = problem()
    rows = Observed.vstack([Observed.from_dense(np.full((1, 12), np.nan)), rows])  # k(x, x) = 0 without a constant
    y = np.vstack([[[1.0]], y])
    form = KernelForm.fit(rows, **FORMS["bare"])
    for kind in ("last", "average", "weighted"):
        follows_the_twin(fitted(form, loss=loss, iterate=kind, block=7), rows, y)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer that sends signals")
@pytest.mark.parametrize("budget", [None, 60])
@pytest.mark.parametrize("eta", ["theory", "constant"])  # of the second every step forgets what was before
def test_an_interrupt_leaves_whole_rows(budget, eta):
    rows, y = problem(n=2000)
    form, order = KernelForm.fit(rows, **FORMS["trace"]), np.tile(np.arange(2000), 2000)
    model, twin = (fitted(form, block=50, budget=budget, eta=eta, eta0=20.0) for _ in range(2))
    interrupted(lambda: model.partial_fit(rows, y, order=order), 0.1)
    assert 0 < model.t < len(order)
    twin.partial_fit(rows, y, order=order[: model.t])
    for name in ("first", "second", "clock"):
        np.testing.assert_array_equal(getattr(model, name), getattr(twin, name))
    np.testing.assert_array_equal(model.rows.to_scipy().toarray(), twin.rows.to_scipy().toarray())


def test_a_kept_state_does_not_change_with_the_model():
    rows, y = problem(n=600)
    model = fitted(KernelForm.fit(rows, **FORMS["trace"]), rho=1.0, eta="constant", eta0=0.9)  # folds now and then
    model.partial_fit(rows[:300], y[:300])
    before = model.state()
    kept = {name: np.array(before[name]) for name in ("first", "second", "clock")}
    model.partial_fit(rows[300:], y[300:])
    for name, value in kept.items():
        np.testing.assert_array_equal(before[name], value)


def test_long_rows_and_rows_of_thousands_of_columns():
    rng = np.random.default_rng(0)
    long, wide = rng.normal(size=(90, 700)), rng.normal(size=(90, 5000))
    long[rng.random(long.shape) > 0.9] = np.nan  # more entries a row than a byte counts
    wide[rng.random(wide.shape) > 0.005] = np.nan  # most columns are in no lane
    for X in (long, wide):
        rows, y = Observed.from_dense(X), np.sign(rng.normal(size=(90, 1)))
        form = KernelForm.fit(rows, gamma=2.5, constant=1.0, indicators=0.5, normalize="cosine")
        values, _ = algorithm_1(form.gram(rows), y[:, 0], 0.05)
        got = fitted(form, d=X.shape[1]).partial_fit(rows, y)[:, 0]
        np.testing.assert_allclose(got, values, rtol=1e-9, atol=1e-10)


def decided():
    """Values for `test_instruction_sets_agree`, which another process makes, too."""
    rows, y = problem(n=300, d=40)
    model = fitted(KernelForm.fit(rows, **KERNELS["real gamma"]), d=40)
    model.partial_fit(rows, y)
    return model.decide(rows)[:, 0]


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["base", "v3"])
def test_instruction_sets_agree(isa):
    np.testing.assert_allclose(decided_by(isa, __file__), decided(), rtol=1e-9)


def test_empty_rows_and_empty_batches():
    rows, y = problem()
    model = fitted(KernelForm.fit(rows, **FORMS["bare"]))
    assert model.partial_fit(rows[:0], y[:0]).shape == (0, 1)
    assert model.decide(rows).shape == (120, 1)
    hole = Observed.from_dense(np.full((3, 12), np.nan))
    assert np.isfinite(model.partial_fit(hole, y[:3])).all()
