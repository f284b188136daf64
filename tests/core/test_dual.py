"""The dual solvers against brute force, scikit-learn and their own duality gap."""

import numpy as np
import pytest
from reference import dual as twin
from sklearn.svm import SVC

from lacunar import _core
from lacunar.karma.solvers import solve_crammer_singer, solve_dual

LOSSES = ("hinge", "squared_hinge", "logistic")
TIGHT = {"tol": 1e-9, "max_iter": 20000}


def make_problem(n, seed=0, duplicates=True):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 4))
    if duplicates and n > 8:
        Z[7] = Z[3]
    K = ((Z @ Z.T + 1) ** 2 / 10).astype(np.float32)
    y = np.where(Z[:, 0] * Z[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    return K, y, rng.uniform(0.1, 2, size=n)


def gap_of(K, y, upper, coef, loss):
    primal = twin.primal(K, y, upper, coef, loss)
    return (primal - twin.dual(K, y, upper, coef, loss)) / primal


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n", [2, 15, 16, 17, 41])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_matches_brute_force(loss, n, C):
    K, y, weight = make_problem(n)
    K64, upper = K.astype(float), C * weight
    result = solve_dual(K, y, upper, loss=loss, **TIGHT)
    expected = twin.solve(K64, y, upper, loss)
    best = twin.primal(K64, y, upper, expected, loss)
    assert result.converged
    assert result.primal <= best * (1 + 1e-6)
    assert result.primal == pytest.approx(twin.primal(K64, y, upper, result.coef, loss), rel=1e-9)
    assert result.dual == pytest.approx(twin.dual(K64, y, upper, result.coef, loss), rel=1e-9)
    # |v - v*|^2 / 2 <= primal - optimum bounds how far two near-optimal functions may be apart
    reach = np.sqrt(np.diag(K64).max()) * (np.sqrt(2 * 1e-9 * best) + np.sqrt(2 * max(best - result.dual, 0)))
    np.testing.assert_allclose(K64 @ result.coef, K64 @ expected, atol=reach + 1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_the_gap_is_what_it_says(loss, tol):
    K, y, upper = make_problem(300)
    result = solve_dual(K, y, upper, loss=loss, tol=tol)
    assert result.converged
    assert result.gap <= tol
    assert result.gap == pytest.approx(gap_of(K.astype(float), y, upper, result.coef, loss), rel=1e-5, abs=1e-12)
    alpha = y * result.coef
    assert alpha.min() >= 0
    if loss != "squared_hinge":
        assert (alpha <= upper).all()


def test_more_rows_than_a_block_of_the_sweep():
    K, y, upper = make_problem(777)
    result = solve_dual(K, y, upper, tol=1e-6)
    assert gap_of(K.astype(float), y, upper, result.coef, "hinge") <= 1e-6 * (1 + 1e-5)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_no_bias_is_sklearn_with_weights_up_to_its_bias(C):
    # SVC fits a free bias. A large constant in the kernel is nearly free, so the two must agree closely.
    K, y, weight = make_problem(60, duplicates=False)
    K64, constant = K.astype(float), 300.0
    theirs = SVC(C=C, kernel="precomputed", tol=1e-8).fit(K64, y, sample_weight=weight)
    shifted = (K64 + constant).astype(np.float32)
    ours = solve_dual(shifted, y, C * weight, tol=1e-8, max_iter=100000)
    assert ours.converged
    np.testing.assert_allclose(shifted @ ours.coef, theirs.decision_function(K64), atol=0.02)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_repeats(loss):
    K, y, _ = make_problem(30)
    repeats = np.arange(30) % 4
    row = np.repeat(np.arange(30), repeats)
    once = solve_dual(K, y, 0.5 * repeats, loss=loss, **TIGHT)
    many = solve_dual(np.ascontiguousarray(K[np.ix_(row, row)]), y[row], np.full(len(row), 0.5), loss=loss, **TIGHT)
    assert once.primal == pytest.approx(many.primal, rel=1e-8)
    np.testing.assert_allclose(K @ once.coef, K[:, row] @ many.coef, atol=2e-3)
    assert not once.coef[repeats == 0].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_degenerate_problems(loss):
    one = solve_dual(np.array([[2.0]], dtype=np.float32), np.array([-1.0]), np.array([0.7]), loss=loss, **TIGHT)
    assert one.converged
    assert one.coef[0] < 0
    zero = solve_dual(np.zeros((5, 5), dtype=np.float32), np.array([1.0, -1, 1, 1, -1]), np.ones(5), loss=loss, **TIGHT)
    assert zero.converged
    assert zero.primal == pytest.approx(5 * (np.log(2) if loss == "logistic" else 1))
    K, y, _ = make_problem(20)
    nothing = solve_dual(K, y, np.zeros(20), loss=loss)
    assert nothing.converged
    assert not nothing.coef.any()


@pytest.mark.parametrize("loss", LOSSES)
def test_is_deterministic(loss):
    K, y, upper = make_problem(90)
    first, second = (solve_dual(K, y, upper, loss=loss) for _ in range(2))
    np.testing.assert_array_equal(first.coef, second.coef)


def test_slices_do_not_change_the_answer(monkeypatch, caplog):
    K, y, upper = make_problem(64)
    whole = solve_dual(K, y, upper, tol=1e-8)
    monkeypatch.setattr("lacunar._dual._SLICE_ENTRIES", 64 * 16)
    sliced = solve_dual(K, y, upper, tol=1e-8, verbose=1)
    np.testing.assert_allclose(sliced.coef, whole.coef, atol=1e-4)
    assert caplog.text.count("relative gap") > 1


def test_running_out_of_passes_is_reported():
    K, y, upper = make_problem(200)
    result = solve_dual(K, y, 1e4 * upper, tol=1e-10, max_iter=1)
    assert not result.converged
    assert result.n_iter == 1
    assert result.gap > 1e-10


def test_interrupt_between_slices_reaches_the_caller(monkeypatch):
    K, y, upper = make_problem(50)
    calls = []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return (1, 1.0, 0.0, 1.0, False)

    monkeypatch.setattr(_core, "dual_ascend", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solve_dual(K, y, upper)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", [(0, 0), (3, 3), (0, 4)])
def test_broken_gram_is_refused(bad, where):
    K, y, upper = make_problem(12)
    K[where] = K[where[::-1]] = bad
    for loss in ("hinge", "logistic"):
        with pytest.raises(ValueError, match="Gram"):
            solve_dual(K, y, upper, loss=loss)
    with pytest.raises(ValueError, match="Gram"):
        solve_crammer_singer(K, np.arange(12) % 3, 3, upper)


def test_wrong_sizes_and_types_are_refused():
    K, y, upper = make_problem(12)
    with pytest.raises(ValueError, match="upper"):
        solve_dual(K, y, upper[:-1])
    with pytest.raises(TypeError):
        solve_dual(K.astype(float), y, upper)
    with pytest.raises(ValueError, match="loss"):
        solve_dual(K, y, upper, loss="absolute")
    with pytest.raises(ValueError, match=r"classes_index .* 0 to 11"):
        solve_crammer_singer(K, np.arange(12), 3, upper)


@pytest.mark.parametrize(("n_classes", "C"), [(2, 0.1), (3, 2.0), (5, 2.0)])
def test_crammer_singer_matches_brute_force(n_classes, C):
    K, _, upper = make_problem(10)
    K64, label, upper = K.astype(float), np.random.default_rng(5).integers(n_classes, size=10), C * upper
    upper[4] = 0
    result = solve_crammer_singer(K, label, n_classes, upper, **TIGHT)
    best = twin.multiclass_primal(K64, label, upper, twin.solve_multiclass(K64, label, n_classes, upper))
    assert result.converged
    assert result.primal <= best * (1 + 1e-6)
    assert result.primal == pytest.approx(twin.multiclass_primal(K64, label, upper, result.coef), rel=1e-9)
    assert result.dual == pytest.approx(twin.multiclass_dual(K64, label, result.coef), rel=1e-9)
    np.testing.assert_allclose(result.coef.sum(axis=1), 0, atol=1e-9)
    assert not result.coef[4].any()


def test_crammer_singer_of_two_classes_is_the_hinge():
    # v_1 = -v_0 = v/2 and f = f_1 - f_0: 1/2 sum |v_k|^2 = 1/4 |v|^2, so upper doubles.
    K, y, upper = make_problem(50)
    multi = solve_crammer_singer(K, (y > 0).astype(int), 2, upper, **TIGHT)
    plain = solve_dual(K, y, 2 * upper, **TIGHT)
    assert multi.primal == pytest.approx(plain.primal / 2, rel=1e-7)
    np.testing.assert_allclose(K @ (multi.coef[:, 1] - multi.coef[:, 0]), K @ plain.coef, atol=2e-3)


def test_crammer_singer_degenerate_problems():
    zero = solve_crammer_singer(np.zeros((4, 4), dtype=np.float32), np.array([0, 1, 2, 0]), 4, np.ones(4))
    assert zero.converged
    assert zero.primal == pytest.approx(4)
    one = solve_crammer_singer(np.ones((1, 1), dtype=np.float32), np.array([1]), 3, np.array([5.0]), **TIGHT)
    assert one.converged
    np.testing.assert_allclose(one.coef, [[-1 / 3, 2 / 3, -1 / 3]], atol=1e-6)
