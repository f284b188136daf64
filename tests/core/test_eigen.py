"""Answers follow from eigenspaces, not from the bases and signs that LAPACK chose for them on this machine."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from lacunar import _eigen
from lacunar.active import MBEG, ActivePOPCA
from lacunar.active.acquisition import leading
from lacunar.completion import Features, Graph, Kernel, OnlineMatrixClassifier, graph
from lacunar.karma import KarmaFeatures
from lacunar.lowrank import GROUSE, PETRELS, POPCA, LowRankImputer, SLRMRegressor, em, moments
from lacunar.lowrank.em import Fit
from lacunar.lowrank.model import LowRankGaussian
from lacunar.observed import Observed
from lacunar.papers.subspace import PrintedMBEG

EIGH, SVD, SCIPY_EIGH = np.linalg.eigh, np.linalg.svd, moments.eigh
RNG = np.random.default_rng(0)
D = 6


def rotation(values, rng):
    """Orthonormal (n, n): random within each run of equal values, which are sorted; a random sign where it is alone."""
    turn = np.zeros((len(values), len(values)))
    edges = np.flatnonzero(np.abs(np.diff(values)) > 1e-12 * np.abs(values).max(initial=0)) + 1
    for run in np.split(np.arange(len(values)), edges):
        turn[np.ix_(run, run)] = np.linalg.qr(rng.normal(size=(len(run), len(run))))[0]
    return turn


@pytest.fixture(params=range(3))
def another_lapack(request, monkeypatch):
    """Lets eigh and svd return other bases of the same spaces, which are as right."""

    def install():
        rng = np.random.default_rng(request.param)

        def turned(eigh):
            def other(matrix, *args, **options):
                values, vectors = eigh(matrix, *args, **options)
                return values, vectors @ rotation(values, rng) if vectors.ndim == 2 else vectors

            return other

        def svd(matrix, full_matrices=True, **options):
            if full_matrices or np.ndim(matrix) > 2:
                return SVD(matrix, full_matrices, **options)
            left, sizes, right = SVD(matrix, full_matrices, **options)
            turn = rotation(sizes, rng)
            return left @ turn, sizes, turn.T @ right

        monkeypatch.setattr(np.linalg, "eigh", turned(EIGH))
        monkeypatch.setattr(np.linalg, "svd", svd)
        monkeypatch.setattr(moments, "eigh", turned(SCIPY_EIGH))

    return install


def same_answers(answers, install, tolerance=1e-8):
    """What `answers()` gives before and after LAPACK is another one; each differs by rounding over gaps of at least .01."""
    before = [np.asarray(part) for part in answers()]
    install()
    for old, new in zip(before, answers(), strict=True):
        np.testing.assert_allclose(new, old, rtol=0, atol=tolerance * max(1.0, np.abs(old).max(initial=0)))


def cliques(count, size):
    return np.kron(np.eye(count), np.ones((size, size)) - np.eye(size))


def ring(n):
    return np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1)


def balanced(n, levels):
    """A column of categories, each as often as the others."""
    return {"kind": [f"level {k % levels}" for k in range(n)]}


SIDES = {
    "a kernel of two eigenvalues": Kernel(np.eye(12) + 0.5),
    "a kernel whose eigenspace is cut": Kernel(np.eye(24) + 0.5),
    "a kernel of blocks, cut": Kernel(np.kron(np.eye(24), np.ones((2, 2))) + 0.1 * np.eye(48)),
    "a ring": Graph(ring(12)),
    "a ring with its kernel": Graph(ring(12), kind="pinv"),
    "cliques": Graph(cliques(5, 4)),
    "cliques, more than are kept": Graph(cliques(24, 3)),
    "categories, more than are kept": Features(balanced(40, 20)),
    "categories, most of which nobody has": Features(np.eye(24)[:6]),
}


@pytest.mark.parametrize("name", SIDES)
def test_a_pool_learns_from_eigenspaces(name, another_lapack):
    n = 6
    i, j = RNG.integers(0, n, (2, 120))
    y = np.where((i < 3) ^ (j % 2 == 0) ^ (RNG.random(120) < 0.1), 1, -1)

    def answers():
        model = OnlineMatrixClassifier(rows=SIDES[name], cols=SIDES[name])
        model.partial_fit(i, j, y)
        return [model.predict_proba((np.repeat(np.arange(n), n), np.tile(np.arange(n), n)))]

    same_answers(answers, another_lapack)


@pytest.mark.parametrize("k", [3, 7, 30])
@pytest.mark.parametrize("A", [ring(30), cliques(10, 3)], ids=["ring", "cliques"])
def test_spectral_features_are_those_of_the_graph(A, k, another_lapack):
    same_answers(lambda: [Graph(A, "spectral", n_components=k).begin().factor()[0]], another_lapack, 1e-9)


def torus(m, n):
    return sp.csr_array(
        sp.kron(sp.csr_array(ring(m)), sp.eye_array(n)) + sp.kron(sp.eye_array(m), sp.csr_array(ring(n)))
    )


LARGE = {
    "torus": torus(24, 24),  # eigenspaces of 4 and 8
    "cut torus": torus(24, 24),
    "cliques": sp.csr_array(cliques(60, 10)),  # an eigenspace of 60, of which 13 are kept
}


@pytest.mark.parametrize("name", LARGE)
def test_lanczos_finds_the_same_whatever_is_rounded(name, monkeypatch):
    """Products with an error in their last bits, as another order of additions makes them."""
    k, A = {"torus": 13, "cut torus": 7, "cliques": 13}[name], LARGE[name]
    before = graph.diffusion_features(A, k, 3.0, normalize=False)
    rng, lanczos = np.random.default_rng(1), graph.eigsh

    def rounded(S, **options):
        def times(x):
            return (S @ x) * (1 + 4e-16 * rng.normal(size=x.shape))

        return lanczos(LinearOperator(S.shape, matvec=times, dtype=np.float64), **options)

    monkeypatch.setattr(graph, "eigsh", rounded)
    np.testing.assert_allclose(graph.diffusion_features(A, k, 3.0, normalize=False), before, atol=1e-9)


@pytest.mark.parametrize("name", ["torus", "cliques"])
def test_lanczos_leaves_no_direction_of_an_eigenspace_out(name):
    A = LARGE[name]
    values, vectors = graph._leading(A / 20, 13)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A.toarray() / 20)[::-1][:13], atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(13), atol=1e-12)


def white_rows(n=30):
    """Rows (n, D) of mean 0 whose covariance is a multiple of the identity."""
    rows = RNG.normal(size=(n, D))
    return np.sqrt(n) * np.linalg.qr(rows - rows.mean(axis=0))[0]


def one_hot_rows():
    """Rows that observe one column each, and so have nothing in common but the constant."""
    return np.where(np.eye(D) > 0, 1.0, np.nan)


@pytest.mark.parametrize("gamma", [1, 2, 3])
def test_landmark_features_follow_from_the_kernel(gamma, another_lapack):
    X = one_hot_rows()

    def answers():
        model = KarmaFeatures(gamma, method="nystroem", standardize=False, random_state=0).fit(X)
        return [model.transform(X), model.transform(np.vstack([X[:2], np.ones((1, D))]))]

    same_answers(answers, another_lapack)


ROWS = white_rows()
TARGET = ROWS @ np.arange(1.0, D + 1)
LOW_RANK = {
    "POPCA": lambda: POPCA(2, refine=0, random_state=0),
    "POPCA, refined": lambda: POPCA(2, random_state=0),
    "POPCA by products": lambda: POPCA(2, solver="matrix-free", refine=0, random_state=0),
    "imputer": lambda: LowRankImputer(2, max_iter=5, tol=0, random_state=0),
    "SLRM": lambda: SLRMRegressor(2, max_iter=5, random_state=0),
    "SLRM, als": lambda: SLRMRegressor(2, solver="als", lam1=1.0, max_iter=5, random_state=0),
    "PETRELS": lambda: PETRELS(2, random_state=0),
    "GROUSE": lambda: GROUSE(2, random_state=0),
}


@pytest.mark.filterwarnings("ignore")  # five steps do not converge
@pytest.mark.parametrize("name", LOW_RANK)
def test_low_rank_models_follow_from_the_rows(name, another_lapack):
    question = np.where(RNG.random(ROWS.shape) < 0.3, np.nan, RNG.normal(size=ROWS.shape))

    def answers():
        model = LOW_RANK[name]().fit(ROWS, TARGET)
        verbs = [verb for verb in ("transform", "impute", "predict", "score_samples") if hasattr(model, verb)]
        return [model.components_, *(getattr(model, verb)(question) for verb in verbs)]

    same_answers(answers, another_lapack)


@pytest.mark.parametrize(
    "model",
    [
        lambda: ActivePOPCA(D, 3, 2, random_state=0),
        lambda: MBEG(D, 2, random_state=0),
        lambda: PrintedMBEG(D, 2, m=10**5, random_state=0),
    ],
    ids=["ActivePOPCA", "MBEG", "PrintedMBEG"],
)
def test_active_subspaces_follow_from_the_estimate(model, another_lapack):
    """After constant answers, whose second moment has one eigenvector and a space of all others."""

    def answers():
        fitted = model()
        fitted.run(lambda indices: np.ones(len(indices)), 30)
        result = fitted.result()
        return [result.components_, result.mean_]

    same_answers(answers, another_lapack)


def test_leading_eigenvectors_of_the_identity(another_lapack):
    same_answers(lambda: [leading(np.eye(9), 4), leading(np.diag([3.0, 2, 2, 2, 1]), 2)], another_lapack, 1e-12)


def test_the_first_basis_and_the_axes_of_a_model(another_lapack):
    rows = Observed.from_dense(ROWS)
    u = np.linalg.qr(RNG.normal(size=(9, 4)))[0]
    model = LowRankGaussian(np.zeros(9), (u * [2.0, 1.0, 1.0, 1.0]).T, 1.0)
    fit = Fit(model, weights=np.arange(4.0)[:, None])

    def answers():
        turned = fit.rotated()
        return [em.first_basis(rows, 3, np.random.default_rng(0))[0], turned.model.basis, turned.weights]

    same_answers(answers, another_lapack, 1e-10)
    turned = fit.rotated()
    np.testing.assert_allclose(turned.model.basis @ turned.weights, model.basis @ fit.weights, atol=1e-12)


def test_canonical_vectors_are_eigenvectors_in_order():
    K = np.eye(7) + np.outer(np.arange(7.0), np.arange(7.0))
    values, vectors = _eigen.leading_eigenvectors(K, 4)
    np.testing.assert_allclose(K @ vectors, vectors * values, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-14)
    assert (np.diff(values) <= 1e-12).all()
    whole = _eigen.leading_eigenvectors(K)[1]
    np.testing.assert_allclose(whole[:, :4], vectors, atol=1e-12)  # a cut keeps what comes before it


def test_a_basis_is_completed_outside_its_span():
    basis = np.linalg.qr(RNG.normal(size=(8, 3)))[0]
    longer = _eigen.completed(basis, 6)
    np.testing.assert_array_equal(longer[:, :3], basis)
    np.testing.assert_allclose(longer.T @ longer, np.eye(6), atol=1e-14)
    turned = _eigen.completed(basis @ np.linalg.qr(RNG.normal(size=(3, 3)))[0], 6)
    np.testing.assert_allclose(turned[:, 3:], longer[:, 3:], atol=1e-12)


def test_signs_do_not_hang_on_a_tie():
    row = np.array([[0.5, -0.5, 0.1]])
    for nudge in (0.0, 1e-15, -1e-15):
        nudged = row * (1 + np.array([0.0, nudge, 0.0]))
        np.testing.assert_array_equal(_eigen.signed(-nudged), nudged)
