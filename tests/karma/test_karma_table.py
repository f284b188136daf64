"""KARMA on its own features: Algorithm 1 and dual coordinate ascent, against literal twins and the Gram solvers."""

import signal
import time

import numpy as np
import pytest
from isa import decided_by
from reference.online import algorithm_1, iterate_of

from lacunar import Observed
from lacunar.karma.solvers import PrimalModel, solve_dual, solve_ridge
from lacunar.karma.steps import DivergedError
from lacunar.karma.table import FeatureMap
from lacunar.kernels import KernelForm

LOSSES = ["hinge", "squared_hinge", "logistic", "squared", "absolute", "epsilon_insensitive"]
FORMS = {
    "linear": {"gamma": 1, "count_scale": "raw"},
    "paper": {"gamma": 2, "count_scale": "raw", "constant": 1.0},
    "trace": {"gamma": 2, "constant": 1.0, "normalize": "trace"},
    "indicators": {"gamma": 2, "constant": 1.0, "indicators": 0.7, "normalize": "cosine"},
    "three": {"gamma": 3, "constant": 1.0, "indicators": 1.0, "normalize": "trace"},
    "bare": {"gamma": 3, "count_scale": 2.5},
}


def problem(n=120, d=12, share=0.5, seed=0, outputs=1):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3))
    X = Z @ rng.normal(size=(3, d)) + 0.1 * rng.normal(size=(n, d))
    y = np.sign(Z @ rng.normal(size=(3, outputs)) + 0.3 * rng.normal(size=(n, outputs)))
    X[rng.random(X.shape) > share] = np.nan
    X[7] = np.nan  # a row with nothing observed
    return Observed.from_dense(X), y


def fitted(form, d=12, outputs=1, **options):
    made = {"loss": "hinge", "rho": 0.05, "dtype": np.float64, **options}
    return PrimalModel(form, d, outputs, **made)


def follows_the_twin(model, rows, y, weight=None):
    """Check the values before every step, and those of the iterate after all, against Algorithm 1 to the letter."""
    gram = model.form.gram(rows)
    steps = {"loss": model.loss, "eta": model.eta, "eta0": model.eta0, "weight": weight}
    values, iterates = algorithm_1(gram, y[:, 0], model.rho, **steps)
    made = model.partial_fit(rows, y, weight)[:, 0]
    np.testing.assert_allclose(made, values, rtol=1e-9, atol=1e-10 * np.abs(values).max())
    expected = gram @ iterate_of(iterates, model.iterate)
    np.testing.assert_allclose(model.decide(rows)[:, 0], expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", FORMS)
def test_the_features_are_those_of_the_kernel(name):
    rows, _ = problem()
    form = KernelForm.fit(rows, **FORMS[name])
    gram = form.gram(rows)
    rng = np.random.default_rng(1)
    beta = rng.normal(size=(120, 1))
    model = fitted(form, loss="squared")
    upper = np.full(120, 1e9)  # one sweep in order from targets that give these coefficients
    model.ascend(rows, gram @ beta, upper, tol=1e-12, max_iter=1, rng=rng)
    coef = model.ascend(rows, gram @ beta, upper, tol=1e-9, max_iter=3, rng=rng).coef
    np.testing.assert_allclose(model.decide(rows), gram @ coef, rtol=1e-9, atol=1e-9 * np.abs(gram @ coef).max())


def uneven(outputs, n=700, d=300, shares=(0.02, 0.07, 0.5, 0.9)):
    """Rows of very different lengths, so that dense and sparse ones take turns."""
    rng = np.random.default_rng(5)
    X = np.where(rng.random((n, d)) < rng.choice(shares, size=(n, 1)), rng.normal(size=(n, d)), np.nan)
    return Observed.from_dense(X), rng.choice([-1.0, 1.0], size=(n, outputs))


def tables_of(model):
    return [table for table in (model.first, model.second, model.clock) if table is not None]


@pytest.mark.parametrize(("outputs", "loss"), [(1, "squared_hinge"), (3, "hinge")])
@pytest.mark.parametrize("hash_bits", [0, 12])
def test_threads_that_share_single_rows_change_no_bit(outputs, loss, hash_bits):
    rows, y = uneven(outputs)
    expect_the_same_bits(rows, y, loss=loss, hash_bits=hash_bits)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("options", [{}, {"eta": "constant", "eta0": 1.0, "rho": 0.5}, {"iterate": "last"}])
def test_threads_with_copies_of_their_parts_of_the_table_change_no_bit(outputs, options):
    """All rows are dense and the call is long; the second options have the table folded once every 60 rows."""
    rows, y = uneven(outputs, shares=(0.5, 0.9))
    expect_the_same_bits(rows, y, **options)


def expect_the_same_bits(rows, y, **options):
    outputs = y.shape[1]
    form, options = KernelForm.fit(rows, **FORMS["trace"]), {"dtype": np.float32, **options}
    alone = fitted(form, rows.shape[1], outputs, **options)
    before = alone.partial_fit(rows, y)
    for n_threads in (2, 3, 64):
        time.sleep(0.01)  # past the rest that a busy core asks for
        team = fitted(form, rows.shape[1], outputs, **options)
        np.testing.assert_array_equal(team.partial_fit(rows, y, n_threads=n_threads), before)
        for got, expected in zip(tables_of(team), tables_of(alone), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("shares", [(0.02, 0.07, 0.5, 0.9), (0.5, 0.9)])
def test_threads_that_share_an_ascent_change_no_bit(outputs, shares):
    rows, y = uneven(outputs, shares=shares)
    form = KernelForm.fit(rows, **FORMS["trace"])

    def ascended(n_threads):
        model, rng = fitted(form, rows.shape[1], outputs), np.random.default_rng(0)
        result = model.ascend(rows, y, np.ones(len(y)), tol=1e-3, max_iter=5, rng=rng, n_threads=n_threads)
        return model.first, result.coef, result.gap

    for n_threads in (2, 5):
        for got, expected in zip(ascended(n_threads), ascended(1), strict=True):
            np.testing.assert_array_equal(got, expected)


def interrupted(call, seconds):
    """The call, which Ctrl-C ends after some seconds."""
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer that sends signals")
def test_an_interrupted_team_has_learned_whole_rows():
    rows, y = uneven(1, n=4000)
    form, order = KernelForm.fit(rows, **FORMS["trace"]), np.tile(np.arange(4000), 30)
    team, alone = (fitted(form, rows.shape[1], dtype=np.float32) for _ in range(2))
    interrupted(lambda: team.partial_fit(rows, y, n_threads=2, order=order), 0.15)
    assert 0 < team.t < len(order)
    alone.partial_fit(rows, y, order=order[: team.t])
    for got, expected in zip(tables_of(team), tables_of(alone), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("kind", ["last", "average", "weighted"])
def test_algorithm_1_is_literal(name, kind):
    rows, y = problem()
    follows_the_twin(fitted(KernelForm.fit(rows, **FORMS[name]), iterate=kind), rows, y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("eta", ["theory", "constant"])
def test_losses_and_steps_are_literal(loss, eta):
    rows, y = problem()
    form, weight = KernelForm.fit(rows, **FORMS["trace"]), np.random.default_rng(2).uniform(0.5, 2, 120)
    for kind in ("average", "weighted"):
        follows_the_twin(fitted(form, loss=loss, eta=eta, eta0=0.3, iterate=kind), rows, y, weight)


def test_a_scale_that_leaves_the_floats_is_folded():
    rows, y = problem()
    model = fitted(KernelForm.fit(rows, **FORMS["trace"]), rho=1.0, eta="constant", eta0=0.9)
    follows_the_twin(model, rows, y)
    assert 1e-18 <= model.clock[1] <= 1


@pytest.mark.parametrize("kind", ["last", "average", "weighted"])
def test_a_step_that_forgets_all_before_it_is_literal(kind):
    rows, y = problem()
    form = KernelForm.fit(rows, **FORMS["trace"])
    follows_the_twin(fitted(form, rho=0.5, eta="constant", eta0=2.0, iterate=kind), rows, y)  # eta0 rho = 1


@pytest.mark.parametrize("name", ["paper", "indicators", "three"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_ascent_solves_the_batch_problem(name, loss):
    rows, y = problem()
    form = KernelForm.fit(rows, **FORMS[name] | {"count_scale": "mean"})
    gram, upper = form.gram(rows), np.random.default_rng(3).uniform(0, 3, 120)
    upper[5] = 0.0
    batch = solve_dual(gram.astype(np.float32), y[:, 0], upper, loss=loss, tol=1e-6, max_iter=10**5)
    model = fitted(form, loss=loss)
    ours = model.ascend(rows, y, upper, tol=1e-8, max_iter=10**4, rng=np.random.default_rng(0))
    assert ours.converged
    np.testing.assert_allclose(ours.primal, batch.primal, rtol=3e-6)
    np.testing.assert_allclose(model.decide(rows), gram @ ours.coef, atol=1e-8)
    assert ours.coef[5, 0] == 0


def test_ascent_on_squares_is_ridge():
    rows, y = problem(outputs=3)
    form = KernelForm.fit(rows, **FORMS["trace"])
    gram = form.gram(rows)
    model = fitted(form, outputs=3, loss="squared")
    ours = model.ascend(rows, y, np.full(120, 2.0), tol=1e-10, max_iter=10**4, rng=np.random.default_rng(0))
    np.testing.assert_allclose(ours.coef, solve_ridge(gram, y, 1.0, np.full(120, 2.0)), atol=1e-4)


@pytest.mark.parametrize("loss", ["absolute", "epsilon_insensitive"])
def test_ascent_on_regression_losses_closes_the_gap(loss):
    rows, _ = problem()
    y = np.random.default_rng(4).normal(size=(120, 1))
    model = fitted(KernelForm.fit(rows, **FORMS["trace"]), loss=loss)
    ours = model.ascend(rows, y, np.full(120, 0.5), tol=1e-6, max_iter=10**4, rng=np.random.default_rng(0))
    assert ours.converged
    assert 0 <= ours.gap <= 1e-6
    assert (np.abs(ours.coef) <= 0.5).all()


@pytest.mark.parametrize("name", ["three", "indicators"])
@pytest.mark.parametrize("cut", [1, 7, 50])
def test_batches_make_no_difference_and_state_goes_on(cut, name):
    rows, y = problem(outputs=2)
    form = KernelForm.fit(rows, **FORMS[name])
    whole = fitted(form, outputs=2)
    expected = whole.partial_fit(rows, y)
    parts, made = fitted(form, outputs=2), []
    for start in range(0, 120, cut):
        parts = PrimalModel.from_state(parts.state())
        made.append(parts.partial_fit(rows[start : start + cut], y[start : start + cut]))
    np.testing.assert_array_equal(np.vstack(made), expected)
    np.testing.assert_array_equal(parts.weights(), whole.weights())


@pytest.mark.parametrize("n_threads", [2, 4])
def test_decisions_do_not_depend_on_threads(n_threads):
    rows, y = problem(n=3000)
    model = fitted(KernelForm.fit(rows, **FORMS["paper"]))
    model.partial_fit(rows, y)
    np.testing.assert_array_equal(model.decide(rows, n_threads=n_threads), model.decide(rows))


def test_single_precision_is_close():
    rows, y = problem(n=1000)
    form = KernelForm.fit(rows, **FORMS["trace"])
    pair = [fitted(form, dtype=dtype) for dtype in (np.float64, np.float32)]
    for model in pair:
        model.partial_fit(rows, y)
    wide, narrow = (model.decide(rows) for model in pair)
    np.testing.assert_allclose(narrow, wide, atol=2e-4 * np.abs(wide).max())


def test_sparse_rows_are_gathered_to_the_same_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 400))
    X[rng.random(X.shape) > 0.02] = np.nan
    rows, y = Observed.from_dense(X), np.sign(rng.normal(size=300))
    form = KernelForm.fit(rows, **FORMS["indicators"])
    values, _ = algorithm_1(form.gram(rows), y, 0.05)
    model = fitted(form, d=400)
    np.testing.assert_allclose(model.partial_fit(rows, y[:, None])[:, 0], values, atol=1e-8 * np.abs(values).max())


def test_a_folded_table_is_close_and_small():
    rows, y = problem(n=600, d=40)
    form = KernelForm.fit(rows, **FORMS["trace"])
    whole, folded = fitted(form, d=40, rho=0.01), fitted(form, d=40, rho=0.01, hash_bits=16)
    tight = fitted(form, d=40, memory_limit=2**10 * 16)
    for model in (whole, folded, tight):
        model.partial_fit(rows, y)
    assert folded.first.size == 2**16
    assert tight.map.hash_bits == 10
    assert tight.first.nbytes + tight.second.nbytes <= 2**14
    expected = whole.decide(rows)
    assert np.corrcoef(folded.decide(rows)[:, 0], expected[:, 0])[0, 1] > 0.99
    assert (np.sign(folded.decide(rows)) == np.sign(expected)).mean() > 0.97


@pytest.mark.parametrize("name", ["linear", "trace", "three"])
@pytest.mark.parametrize("caches", [2**23, 1])  # rows enter the table one by one, and by blocks
@pytest.mark.parametrize(("dtype", "huge"), [(np.float32, 1e300), (np.float32, 1e38), (np.float64, 1e308)])
@pytest.mark.parametrize("place", [0, 70, 119])
def test_divergence_is_found_at_its_row(monkeypatch, name, caches, dtype, huge, place):
    """The row that would take the table out of the finite numbers is named and left out; those before it are learned."""
    monkeypatch.setattr("lacunar.karma.table._CACHES", caches)
    rows, y = problem()
    model, twin = (fitted(KernelForm.fit(rows, **FORMS[name]), loss="squared", dtype=dtype) for _ in range(2))
    targets = y.copy()
    targets[place] = huge
    for each in (model, twin):
        each.partial_fit(rows, y)
    wish = rf"at row {place} of.*a larger rho or columns of smaller scale.*n_rows_seen_ counts"
    with pytest.raises(DivergedError, match=wish):
        model.partial_fit(rows, targets)
    assert model.t == 120 + place
    twin.partial_fit(rows[:place], y[:place])
    for each in (model, twin):
        assert np.isfinite(each.partial_fit(rows, y)).all()
    np.testing.assert_array_equal(model.weights(), twin.weights())


@pytest.mark.parametrize("caches", [2**23, 1])
def test_steps_that_grow_end_at_a_row_that_a_finite_table_names(monkeypatch, caches):
    """Printed steps of a small rho: every row takes the values further, until one would take them out of float32."""
    monkeypatch.setattr("lacunar.karma.table._CACHES", caches)
    rows, y = problem(n=3000)
    model = fitted(KernelForm.fit(rows, **FORMS["trace"]), loss="squared", eta="printed", rho=1e-4, dtype=np.float32)
    with pytest.raises(DivergedError, match="overflows at row") as caught:
        model.partial_fit(rows, y)
    assert 0 < model.t < 3000
    assert f"row {model.t} of" in str(caught.value)
    assert np.isfinite(model.first).all()
    assert np.isfinite(model.second).all()
    assert np.isfinite(PrimalModel.from_state(model.state()).weights()).all()


def test_an_iterate_that_was_not_kept_is_refused():
    rows, y = problem()
    model = fitted(KernelForm.fit(rows, **FORMS["trace"]), iterate="average")
    model.partial_fit(rows, y)
    with pytest.raises(ValueError, match="iterate must be 'last' or 'average'"):
        model.weights("weighted")
    assert np.isfinite(model.weights("last")).all()


def test_the_core_refuses_tables_that_do_not_fit():
    rows, _ = problem()
    model = fitted(KernelForm.fit(rows, **FORMS["trace"]))
    with pytest.raises(ValueError, match="table has"):
        model.decide(rows, table=np.zeros(3))
    with pytest.raises(ValueError, match="too many rows"):
        _ = FeatureMap(KernelForm(gamma=3.0, constant=1.0), 10**6).entries


def decided():
    """Values for `test_instruction_sets_agree`, which another process makes, too."""
    rows, y = problem(d=40)
    model = fitted(KernelForm.fit(rows, **FORMS["three"]), d=40)
    model.partial_fit(rows, y)
    return model.decide(rows)[:, 0]


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["base", "v3"])
def test_instruction_sets_agree(isa):
    np.testing.assert_allclose(decided_by(isa, __file__), decided(), rtol=1e-9)
