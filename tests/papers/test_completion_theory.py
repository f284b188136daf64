"""Theorems 1 and 3 as functions, the max-norm and the diagnostics of side information."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from reference import meg
from reference import side as slow
from reference import theory as twin
from sklearn.exceptions import ConvergenceWarning

from lacunar.completion import (
    Features,
    Graph,
    Identity,
    Kernel,
    KernelFunction,
    Mix,
    predictiveness,
)
from lacunar.papers.completion import (
    box_bound,
    hinge_regret_bound,
    least_quasi_dimension,
    least_quasi_dimension_bound,
    margin_complexity,
    max_norm,
    mistake_bound,
    pd_laplacian,
    quasi_dimension,
    quasi_dimension_bound,
    regret_bound,
)


def cliques(sizes, star=True):
    """Cliques of these sizes, joined as in section 4.1, and the clique of every vertex."""
    A = scipy.linalg.block_diag(*(np.ones((s, s)) - np.eye(s) for s in sizes))
    starts = np.cumsum([0, *sizes[:-1]])
    if star:
        A[starts[1:], 0] = A[0, starts[1:]] = 1
    return A, np.repeat(np.arange(len(sizes)), sizes)


def noisy(n, seed=0):
    """A connected graph with a pair of pieces of two kinds of weights."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.2), 1)
    A += np.diag(np.full(n - 1, 0.3), 1)
    return A + A.T


A30, CLASSES = noisy(30), np.arange(30) % 4
IN_PIECES = sp.block_diag([sp.csr_array(A) for A in (noisy(12), noisy(9, 1), np.zeros((1, 1)))], format="csr")
POINTS = np.random.default_rng(2).normal(size=(30, 3))

SIDES = {
    "identity": Identity(30),
    "kernel": Kernel(POINTS @ POINTS.T + np.eye(30)),
    "gaussian": KernelFunction("gaussian", points=POINTS, length_scale=0.5),
    "features": Features(POINTS, own=0.3, const=0.1),
    "mix-features": Mix(Features(POINTS)),
    "mix-graph": Mix(Graph(A30, kind="pinv")),
    "mix-graph-sparse": Mix(Graph(A30, method="sparse", kind="pinv")),
    **{
        f"{kind}-{method}-{normalize}": Graph(A30, kind, method=method, normalize=normalize)
        for kind in ("pd", "regularized")
        for method in ("dense", "sparse")
        for normalize in (True, False)
    },
}


@pytest.mark.parametrize("name", SIDES)
def test_quasi_dimension_is_that_of_the_formula(name):
    side, other = SIDES[name].begin(), SIDES["kernel"].begin()
    letters = np.array(list("abc"))[np.arange(30) % 3]
    K, L = side.dense(), other.dense()
    expected = 4 * slow.energy(K, CLASSES) + 3 * slow.energy(L, letters)
    assert quasi_dimension_bound(SIDES[name], other, CLASSES, letters) == pytest.approx(expected, rel=1e-8)
    pd = name.startswith("pd") and name.endswith("False")
    twice = 4 * slow.energy(K, CLASSES) + 16 if pd else 8 * slow.energy(K, CLASSES)
    assert quasi_dimension_bound(side, side, CLASSES, CLASSES) == pytest.approx(twice, rel=1e-8)


def test_quasi_dimension_of_pieces():
    with pytest.warns(UserWarning, match="3 pieces"):
        side = Graph(IN_PIECES, method="sparse", kind="pinv").begin()
    classes = np.arange(22) % 3
    expected = 6 * slow.energy(side.dense(), classes)
    assert quasi_dimension_bound(side, side, classes, classes) == pytest.approx(expected, rel=1e-9)


def test_quasi_dimension_of_ideal_side_information():
    """Section 4.1: O(k + l) for cliques joined to a star, whatever m; 2(k-1) edges are cut, as one-hot rows count."""
    bounds = []
    for size in (5, 20):
        A, classes = cliques([size] * 4)
        side = Graph(A, "pd", normalize=False)
        bounds.append(quasi_dimension_bound(side, side, classes, classes))
        R = np.equal.outer(classes, np.arange(4)).astype(float)
        assert np.trace(R.T @ slow.laplacian(A) @ R) == 2 * 3
    assert bounds[1] <= bounds[0] < 150
    shuffled = np.random.default_rng(0).permutation(classes)
    assert quasi_dimension_bound(side, side, shuffled, shuffled) > 5 * bounds[1]
    # Vacuous side information: m + n per class.
    assert quasi_dimension_bound(Identity(7), Identity(5), [0] * 7, [1] * 5) == 12


@pytest.mark.parametrize(
    "side",
    [
        Graph(A30, kind="pinv"),
        Graph(A30, method="sparse", kind="pinv"),
        Features(POINTS),
        Features(POINTS, const=0.2),
        Kernel(np.ones((30, 30))),
    ],
)
def test_quasi_dimension_of_singular_kernels_is_infinite(side):
    assert quasi_dimension_bound(side, Identity(2), CLASSES, [0, 1]) == np.inf


def test_quasi_dimension_refuses():
    with pytest.raises(ValueError, match=r"row_classes must give a class for each of 3 ids; got shape \(2,\)"):
        quasi_dimension_bound(Identity(3), Identity(2), [0, 1], [0, 1])
    with pytest.raises(ValueError, match="cols must know its ids"):
        quasi_dimension_bound(Identity(3), Identity(), [0, 1, 1], [])
    with pytest.raises(TypeError, match="rows must be side information"):
        quasi_dimension_bound(np.eye(3), Identity(2), [0, 1, 1], [0, 1])


def test_bounds_of_theorem_1():
    assert mistake_bound(12, 0.5, 7, 5) == pytest.approx(3.6 * 12 * 4 * np.log(12))
    assert regret_bound(12, 0.5, 7, 5, 35) == pytest.approx(4 * np.sqrt(2 * 12 * 4 * np.log(12) * 35))
    for wrong, message in (
        ({"gamma": 1.5}, "gamma must be above 0 and at most 1; got 1.5"),
        ({"gamma": np.nan}, "gamma must be"),
        ({"quasi_dimension": 0.5}, "quasi_dimension must be at least 1"),
        ({"m": 1, "n": 1}, "3 together"),
    ):
        with pytest.raises(ValueError, match=message):
            mistake_bound(**({"quasi_dimension": 5.0, "gamma": 0.5, "m": 5, "n": 5} | wrong))
    with pytest.raises(ValueError, match="n_trials must be at least 1"):
        regret_bound(5, 0.5, 5, 5, 0)


def test_pd_laplacian():
    np.testing.assert_allclose(pd_laplacian(A30), slow.pd_laplacian(A30), atol=1e-12)
    inverse = np.linalg.inv(pd_laplacian(A30))
    np.testing.assert_allclose(
        Graph(A30, "pd", normalize=False).begin().dense(), inverse / np.diag(inverse).max(), atol=1e-12
    )
    with pytest.raises(ValueError, match="must be connected; it has 3 pieces"):
        pd_laplacian(IN_PIECES)
    with pytest.raises(ValueError, match="at most 4000 vertices"):
        pd_laplacian(sp.diags_array([np.ones(5000), np.ones(5000)], offsets=[-1, 1], shape=(5001, 5001)))


@pytest.mark.parametrize(
    ("U", "norm"),
    [
        (np.eye(6), 1.0),
        (-3.5 * np.ones((4, 7)), 3.5),
        (scipy.linalg.hadamard(8), np.sqrt(8)),
        (2 * np.eye(7) - 1, 3 - 4 / 7),  # similarity of 7 communities, section 4.2
        ([[1, 1], [1, -1]], np.sqrt(2)),
        (np.zeros((3, 2)), 0.0),
        (np.diag([1.0, 0.0, 2.0]), 2.0),
        ([[5.0]], 5.0),
        (1e-200 * np.eye(3), 1e-200),
    ],
)
def test_max_norms_that_are_known(U, norm):
    found = max_norm(U)
    assert norm * (1 - 1e-12) <= found <= norm * (1 + 2e-6)


@pytest.mark.parametrize("shape", [(4, 6), (7, 7), (9, 5)])
@pytest.mark.parametrize("signs", [True, False])
def test_max_norm_against_the_dual(shape, signs):
    rng = np.random.default_rng(sum(shape))
    U = rng.choice([-1.0, 1.0], shape) if signs else rng.normal(size=shape)
    found = max_norm(U, tol=1e-9)
    assert found == pytest.approx(slow.max_norm_dual(U), rel=1e-6)
    assert max_norm(U.T, tol=1e-9) == pytest.approx(found, rel=1e-8)
    blocks = U[rng.integers(0, shape[0], 40)][:, rng.integers(0, shape[1], 30)]
    assert max_norm(blocks) <= found * (1 + 1e-6)  # block-invariant; some rows may not be drawn
    assert np.abs(U).max() <= found <= np.sqrt(min(shape)) * np.abs(U).max() * (1 + 1e-9)


def test_max_norm_refuses_and_warns():
    with pytest.raises(ValueError, match="finite; got nan in row 0, column 1"):
        max_norm([[1.0, np.nan]])
    with pytest.raises(ValueError, match="at least one entry"):
        max_norm(np.empty((0, 3)))
    with pytest.raises(ValueError, match="tol must be above 0"):
        max_norm([[1.0]], tol=0.0)
    U = np.random.default_rng(0).normal(size=(9, 9))
    with pytest.warns(ConvergenceWarning, match="lies between"):
        loose = max_norm(U, max_iter=2)
    assert loose >= max_norm(U)


def entries(side, noise, seed=0, n=24, places=40, seen=0.4):
    """Signs that the classes behind a side give, by class and place, some flipped, some seen."""
    rng = np.random.default_rng(seed)
    Y = rng.choice([-1.0, 1.0], (4, places))[side] * np.where(rng.random((n, places)) < noise, -1, 1)
    Y[rng.random((n, places)) >= seen] = np.nan
    index, other = np.nonzero(~np.isnan(Y))
    return Y, index, other, Y[index, other]


@pytest.mark.parametrize("method", ["dense", "sparse"])
def test_predictiveness_is_that_of_the_pairs(method):
    A, classes = cliques([6] * 4)
    side = Graph(A, method=method, kind="pinv").begin()
    Y, index, other, y = entries(classes, 0.1)
    found = predictiveness(side, index, other, y)
    correlation, agreement = slow.likeness(side.dense(), Y)
    assert found.correlation == pytest.approx(correlation, rel=1e-9)
    assert found.agreement_all == pytest.approx(agreement, rel=1e-12)
    assert (found.n_ids, found.p_value) == (24, 1 / 200)
    assert found.agreement_near > 0.75 > 0.6 > found.agreement_all
    # Other names of the same labels, and their order, change nothing.
    order = np.random.default_rng(1).permutation(len(y))
    again = predictiveness(side, index[order], other[order], np.where(y > 0, "yes", "no")[order])
    assert again.correlation == pytest.approx(found.correlation, rel=1e-12)


def test_predictiveness_of_useless_and_misleading_side_information():
    A, classes = cliques([6] * 4)
    shuffled = np.random.default_rng(5).permutation(classes)
    _, *seen = entries(shuffled, 0.1)
    assert predictiveness(Graph(A, kind="pinv"), *seen).p_value > 0.05
    alike = classes[:, None] == classes
    _, *seen = entries(classes, 0.0)
    against = Kernel(np.eye(24) + 0.05 * (np.eye(24) - alike) + 1 / 19)
    found = predictiveness(against, *seen)
    assert found.correlation < -0.3
    assert found.p_value > 0.95
    assert predictiveness(Identity(24), *seen).correlation == 0


def test_predictiveness_on_a_sample_and_without_pairs():
    A, classes = cliques([6] * 4)
    _, *seen = entries(classes, 0.1)
    found = predictiveness(Graph(A, kind="pinv"), *seen, max_ids=12, n_permutations=9)
    assert (found.n_ids, found.p_value) == (12, 0.1)
    nothing = predictiveness(Graph(A, kind="pinv"), [0, 1], [0, 1], [1, -1])
    assert np.isnan(nothing.correlation)
    assert nothing.n_pairs == 0


def test_a_cell_seen_again_counts_with_its_mean():
    A, classes = cliques([6] * 4)
    _, index, other, y = entries(classes, 0.1)
    doubled = predictiveness(Graph(A, kind="pinv"), [*index, *index], [*other, *other], [*y, *y], n_permutations=9)
    once = predictiveness(Graph(A, kind="pinv"), index, other, y, n_permutations=9)
    assert doubled == once


@pytest.mark.parametrize(
    ("index", "other", "y", "message"),
    [
        ([0, 1], [0], [1, -1], "as long as each other"),
        ([], [], [], "as long as each other"),
        ([0, 24], [0, 1], [1, -1], "index must be vertex numbers 0 to 23; got 0 to 24"),
        ([0, -1], [0, 1], [1, -1], "index must be vertex numbers"),
        ([0.5, 1], [0, 1], [1, -1], "index must be vertex numbers"),
        ([0, 1], ["a", "b"], [1, -1], "other must be vertex numbers"),
        ([0, 1, 2], [0, 1, 2], ["a", "b", "c"], "two labels or be finite numbers; got 3 labels"),
        ([0, 1, 2], [0, 1, 2], [0.0, np.nan, 1.0], "two labels or be finite numbers"),
    ],
)
def test_predictiveness_refuses(index, other, y, message):
    with pytest.raises(ValueError, match=message):
        predictiveness(Identity(24), index, other, y)


@pytest.mark.parametrize(("m", "n", "gamma"), [(2, 1, 0.6), (3, 2, 0.5), (3, 2, 0.7)])
def test_quasi_dimension_is_the_least_over_factors(m, n, gamma):
    rng = np.random.default_rng(m + n)
    M, N = (A @ A.T + 0.3 * np.eye(len(A)) for A in (rng.normal(size=(m, m)), rng.normal(size=(n, n))))
    U = np.where(rng.random((m, n)) < 0.5, 1.0, -1.0)
    sides = [Kernel(each, normalize=False, precision=True) for each in (M, N)]
    found = quasi_dimension(U, *sides, gamma, tol=1e-7)
    assert found == pytest.approx(twin.quasi_dimension(U, M, N, gamma), rel=1e-5)


def test_quasi_dimension_lies_below_theorem_3():
    rng = np.random.default_rng(0)
    A, classes = cliques([3, 3])
    graph = Graph(A, kind="pd", normalize=False)
    U = np.array([[1, -1], [-1, 1]])[classes][:, classes]
    gamma = 1 / max_norm(U) * (1 - 1e-7)
    assert 2 <= quasi_dimension(U, graph, graph, gamma) <= quasi_dimension_bound(graph, graph, classes, classes)
    noise = np.where(rng.random((6, 6)) < 0.5, 1, -1)
    assert quasi_dimension(noise, graph, graph, 0.3) > quasi_dimension(U, graph, graph, 0.3)


def test_quasi_dimension_of_nothing_known_and_of_too_large_a_margin():
    U = np.where(np.random.default_rng(1).random((4, 5)) < 0.5, 1, -1)
    assert quasi_dimension(U, Identity(4), Identity(5), 0.3) == pytest.approx(9, rel=1e-6)
    assert quasi_dimension(U, Identity(4), Identity(5), 1.0) == np.inf
    assert quasi_dimension(U, Kernel(np.ones((4, 4))), Identity(5), 0.3) == np.inf
    with pytest.raises(ValueError, match=r"U must have shape \(4, 5\)"):
        quasi_dimension(U.T, Identity(4), Identity(5), 0.3)
    with pytest.raises(ValueError, match="gamma must be"):
        quasi_dimension(U, Identity(4), Identity(5), 1.5)
    with pytest.warns(ConvergenceWarning, match="lies above"):
        quasi_dimension(U[:3, :3], *[Kernel(np.eye(3) + 0.5)] * 2, 0.4, tol=1e-14, max_iter=50)


def test_theorem_21_by_hand_and_below_equation_5():
    D, gamma, m, n, T = 20.0, 0.5, 30, 20, 2000
    cost = D * np.log(50)
    assert regret_bound(D, gamma, m, n, T, theorem=21) == pytest.approx(4 * np.sqrt(2 * cost * T) + 4 * cost)
    assert regret_bound(D, gamma, m, n, T, theorem=21) < regret_bound(D, gamma, m, n, T)
    with pytest.raises(ValueError, match="for Theorem 21; got 100"):
        regret_bound(D, gamma, m, n, 100, theorem=21)
    with pytest.raises(ValueError, match="theorem must be 1 or 21"):
        regret_bound(D, gamma, m, n, T, theorem=3)


@pytest.mark.parametrize("d", [1, 2])
def test_proposition_5_bounds_the_energy_of_separated_boxes(d):
    rng = np.random.default_rng(d)
    lower = np.array([[-2.0, -2.0], [0.5, -1.5], [-1.0, 1.25]])[:, :d]
    lower[:, 0] = [-2.0, -0.25, 1.5]
    upper = lower + 0.5
    X, box = twin.box_points(lower, upper, rng, 6)
    R = (box[:, None] == np.arange(3)).astype(float)
    energy = np.trace(R.T @ np.linalg.solve(twin.min_kernel(X, 2.0), R))
    assert energy <= box_bound(lower, upper)
    side = KernelFunction("min", r=2.0, points=list(X), normalize=False)
    bound = quasi_dimension_bound(side, side, box, box)
    assert bound <= 2 * 3 * 2.0**d * box_bound(lower, upper)
    with pytest.raises(ValueError, match="boxes 0 and 1 touch"):
        box_bound([[0.0], [1.0]], [[1.0], [2.0]])
    with pytest.raises(ValueError, match="lower <= upper"):
        box_bound([[1.0]], [[0.0]])


def test_a_precision_is_the_inverse_of_its_kernel():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(5, 7))
    M = M @ M.T
    given, inverse = Kernel(M, normalize=False, precision=True), Kernel(np.linalg.inv(M), normalize=False)
    np.testing.assert_allclose(given.begin().dense(), inverse.begin().dense(), rtol=1e-9)
    np.testing.assert_allclose(given.plain().begin().dense(), given.begin().dense(), rtol=0)
    with pytest.raises(ValueError, match="positive definite for precision=True"):
        Kernel(np.ones((2, 2)), precision=True).begin()


def signs_of(shape, seed):
    return np.random.default_rng(seed).choice([-1.0, 1.0], shape)


@pytest.mark.parametrize(
    ("U", "mc"),
    [
        (np.ones((3, 4)), 1.0),
        (scipy.linalg.hadamard(8), np.sqrt(8)),  # Forster: at least sqrt(m n) over the spectral norm
        (2 * np.eye(7) - 1, 3 - 4 / 7),  # symmetry: V = a I + b J, of which 2 I - J is least
        ([[3.0, -0.1], [20.0, 5.0]], np.sqrt(2)),
    ],
)
def test_margin_complexities_that_are_known(U, mc):
    assert mc * (1 - 1e-9) <= margin_complexity(U) <= mc * (1 + 2e-6)


@pytest.mark.parametrize(("shape", "seed"), [((3, 3), 0), ((3, 4), 1), ((4, 4), 5), ((4, 4), 6)])
def test_margin_complexity_is_the_largest_margin_of_unit_vectors(shape, seed):
    U = signs_of(shape, seed)
    found = margin_complexity(U, tol=1e-8)
    assert found == pytest.approx(twin.margin_complexity(U), rel=1e-5)
    rng = np.random.default_rng(seed)
    blocks = (U * rng.uniform(0.1, 9.0, shape))[rng.permutation(np.arange(12) % shape[0])]
    assert margin_complexity(blocks, tol=1e-8) == pytest.approx(found, rel=1e-7)  # signs only, and block-invariant


@pytest.mark.parametrize("seed", range(6))
def test_margin_complexity_lies_between_forster_and_the_max_norm(seed):
    U = signs_of((14, 11), seed)
    found = margin_complexity(U)
    assert np.sqrt(U.size) / np.linalg.norm(U, 2) <= found <= max_norm(U) * (1 + 1e-6)
    assert found >= 1


def test_margin_complexity_refuses_and_warns():
    for wrong, words in (
        ([[1.0, 0.0]], "got 0.0 in row 0, column 1"),
        ([[np.nan]], "got nan"),
        (np.ones(3), "one entry"),
    ):
        with pytest.raises(ValueError, match=words):
            margin_complexity(wrong)
    with pytest.raises(ValueError, match="max_iter at least 1"):
        margin_complexity([[1.0]], max_iter=0)
    with pytest.warns(ConvergenceWarning, match="margin_complexity lies between"):
        loose = margin_complexity(signs_of((9, 9), 0), max_iter=25, tol=1e-12)
    assert loose >= margin_complexity(signs_of((9, 9), 0)) * (1 - 2e-6)


@pytest.mark.parametrize(("m", "n", "gamma"), [(2, 1, 0.6), (3, 2, 0.5), (3, 2, 0.3)])
def test_least_quasi_dimension_is_the_least_over_factors(m, n, gamma):
    rng = np.random.default_rng(m + n)
    M, N = (A @ A.T + 0.3 * np.eye(len(A)) for A in (rng.normal(size=(m, m)), rng.normal(size=(n, n))))
    U = np.where(rng.random((m, n)) < 0.5, 1.0, -1.0)
    sides = [Kernel(each, normalize=False, precision=True) for each in (M, N)]
    found = least_quasi_dimension(U, *sides, gamma, tol=1e-7)
    assert found == pytest.approx(twin.quasi_dimension(U, M, N, gamma, at_least=True), rel=1e-5)
    assert found <= quasi_dimension(U, *sides, gamma) * (1 + 1e-5)
    assert least_quasi_dimension(3 * U, *sides, gamma, tol=1e-7) == found


def test_least_quasi_dimension_lies_below_theorem_3_and_ends_at_the_margin():
    A, classes = cliques([3, 3])
    graph = Graph(A, kind="pd", normalize=False)
    U = np.array([[1, -1], [-1, 1]])[classes][:, classes]
    gamma = 1 / margin_complexity(U) * (1 - 1e-7)
    assert 2 <= least_quasi_dimension(U, graph, graph, gamma) <= quasi_dimension_bound(graph, graph, classes, classes)
    noise = signs_of((4, 5), 1)
    assert least_quasi_dimension(noise, Identity(4), Identity(5), 0.3) == pytest.approx(9, rel=1e-6)
    assert least_quasi_dimension(noise, Identity(4), Identity(5), 1.0) == np.inf
    assert least_quasi_dimension(noise, Kernel(np.ones((4, 4))), Identity(5), 0.3) == np.inf
    with pytest.raises(ValueError, match=r"U must have shape \(4, 5\)"):
        least_quasi_dimension(noise.T, Identity(4), Identity(5), 0.3)
    with pytest.raises(ValueError, match=r"sign everywhere; got 0\.0 in row 0, column 0"):
        least_quasi_dimension(np.zeros((4, 5)), Identity(4), Identity(5), 0.3)


def world(seed=0, m=6, n=5, T=900):
    """Kernels, a comparator U, trials (i, j, y) with labels of U, and flipped ones."""
    rng = np.random.default_rng(seed)
    rows, cols = np.arange(m) % 2, np.arange(n) % 2
    M, N = ((labels[:, None] == labels) * 0.9 + 0.1 * np.eye(len(labels)) for labels in (rows, cols))
    U = signs_of((2, 2), seed + 3)[rows][:, cols]
    trials = [(i, j, U[i, j]) for i, j in zip(rng.integers(m, size=T), rng.integers(n, size=T), strict=True)]
    noisy_trials = [(i, j, y * rng.choice([1, 1, 1, -1])) for i, j, y in trials]
    return M, N, U, trials, noisy_trials


@pytest.mark.parametrize("seed", range(3))
def test_lemma_18_holds_for_the_printed_algorithm(seed):
    M, N, U, _, trials = world(seed)
    sides = [Kernel(each, normalize=False) for each in (M, N)]
    gamma = 1 / max_norm(U) * (1 - 1e-6)
    D, T = quasi_dimension(U, *sides, gamma) * (1 + 1e-5), len(trials)
    step = np.sqrt(D * np.log(11) / (2 * T))
    y_bar = meg.printed(M, N, trials, D, gamma, step, draws=np.zeros(T))[0]
    i, j, y = (np.array(column) for column in zip(*trials, strict=True))
    excess = (twin.hinge(y, y_bar, gamma) - twin.hinge(y, gamma * U[i, j], gamma)).sum()
    assert excess <= hinge_regret_bound(D, gamma, 6, 5, T)
    cost = D * np.log(11)
    assert hinge_regret_bound(D, gamma, 6, 5, T) == pytest.approx(4 / gamma * (np.sqrt(2 * cost * T) + cost))


@pytest.mark.parametrize("D_hat_over_D", [0.3, 1.0, 4.0])
def test_lemma_28_holds_for_the_printed_algorithm(D_hat_over_D):
    M, N, U, trials, _ = world()
    sides = [Kernel(each, normalize=False) for each in (M, N)]
    gamma = 1 / margin_complexity(U) * (1 - 1e-6)
    D = least_quasi_dimension(U, *sides, gamma) * (1 + 1e-5)
    D_hat = max(D_hat_over_D * D, 1.0)
    predicted = meg.printed(M, N, trials, D_hat, gamma, gamma)[1]
    mistakes = sum(p != y for p, (_, _, y) in zip(predicted, trials, strict=True))
    bound = mistake_bound(D, gamma, 6, 5, D_hat=D_hat)
    assert mistakes <= bound
    assert bound == pytest.approx(3.6 / gamma**2 * (D * (np.log(11) + np.log(D / D_hat)) + D_hat - D))
    assert bound >= mistake_bound(D, gamma, 6, 5) * (1 - 1e-12)  # D_hat = D is the best choice
    with pytest.raises(ValueError, match=r"D_hat must be at least 1; got 0\.5"):
        mistake_bound(D, gamma, 6, 5, D_hat=0.5)


def matrix_of(classes, other, seed=0):
    """Signs (len(classes), len(other)) of blocks; equal classes alone have equal rows."""
    blocks = np.array([[1, 1, -1], [1, -1, 1], [-1, 1, 1]])[: classes.max() + 1, : other.max() + 1]
    return blocks[np.ix_(classes, other)]


@pytest.mark.parametrize("count", [None, 2, 3, 5, 6])
@pytest.mark.parametrize("seed", range(3))
def test_theorem_3_at_its_least_is_the_least_of_all_decompositions(seed, count):
    rng, classes = np.random.default_rng(seed), np.array([0, 0, 1, 1, 1, 0])
    A = rng.normal(size=(6, 6))
    K = A @ A.T + 0.3 * np.eye(6)
    U = matrix_of(classes, np.array([0, 1, 2]))
    found = least_quasi_dimension_bound(U, Kernel(K, normalize=False), Identity(3), n_row_classes=count)
    assert found == pytest.approx(twin.least_side(np.linalg.inv(K), U, False, count) + 9, rel=1e-9)
    swapped = least_quasi_dimension_bound(U.T, Identity(3), Kernel(K, normalize=False), n_col_classes=count)
    assert swapped == pytest.approx(found, rel=1e-12)
    if count is None:
        assert found <= quasi_dimension_bound(Kernel(K, normalize=False), Identity(3), classes, range(3)) * (1 + 1e-12)


@pytest.mark.parametrize("count", [None, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_of_pd_laplacians_the_coarsest_decomposition_is_the_least(seed, count):
    classes = np.array([0, 0, 1, 1, 1, 0])
    A = noisy(6, seed)
    graph = Graph(A, kind="pd", normalize=False)
    U = matrix_of(classes, classes)
    found = least_quasi_dimension_bound(U, graph, graph, n_row_classes=count, n_col_classes=count)
    assert found == pytest.approx(2 * twin.least_side(pd_laplacian(A), U, True, count), rel=1e-9)
    if count in (None, 2):
        assert found == pytest.approx(quasi_dimension_bound(graph, graph, classes, classes), rel=1e-12)


def test_decompositions_that_cannot_be_are_refused():
    U = matrix_of(np.arange(14) % 2, np.arange(3))
    assert least_quasi_dimension_bound(U, Identity(14), Identity(3)) == 2 * 14 + 9
    apart = Kernel(np.eye(14) - 0.05 * (1 - np.eye(14)), normalize=False)
    assert np.isfinite(least_quasi_dimension_bound(U, apart, Identity(3)))
    wide = matrix_of(np.arange(28) % 2, np.arange(3))
    for call, words in (
        (lambda: least_quasi_dimension_bound(U, Identity(13), Identity(3)), r"U must have shape \(13, 3\)"),
        (lambda: least_quasi_dimension_bound(U, Identity(14), Identity(3), n_row_classes=1), "between 2, .* and 14"),
        (
            lambda: least_quasi_dimension_bound(wide, Kernel(np.eye(28) - 0.03 * (1 - np.eye(28))), Identity(3)),
            "12 equal",
        ),
        (lambda: least_quasi_dimension_bound([[0, 1]], Identity(1), Identity(2)), "a sign everywhere"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert least_quasi_dimension_bound(U[:2], Kernel(np.ones((2, 2))), Identity(3)) == np.inf
