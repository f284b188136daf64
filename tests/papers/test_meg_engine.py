"""The engine of matrix completion against Algorithms 1 and 2 as printed, and its forms against one another."""

import numpy as np
import pytest
import threadpoolctl
from reference.meg import inductive, transductive

from lacunar.completion import Features, Identity, Kernel, KernelFunction, Mix
from lacunar.completion.side import SideState
from lacunar.papers.completion import make_biclustered
from lacunar.papers.completion.engine import Engine

GAMMA = 0.4


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The twins diagonalise thousands of tiny matrices, which threads of a busy machine slow down fiftyfold."""
    with threadpoolctl.threadpool_limits(1):
        yield


def gaussian(n, seed, width=1.0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * width))


def uneven(n, seed):
    """A kernel with diagonal between 0.3 and 1."""
    size = np.random.default_rng(seed).uniform(0.55, 1, n)
    size[0] = 1
    return size[:, None] * gaussian(n, seed) * size


def singular(n, seed):
    F = np.random.default_rng(seed).normal(size=(n, 4))
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    return F @ F.T


def trials(m, n, seed=0, extra=40):
    """Every entry once in random order, then some again with labels drawn anew: repeated and contradicting."""
    data = make_biclustered((m, n), n_clusters=(3, 2), random_state=seed)
    i, j = np.divmod(np.concatenate([data.order, data.order[:extra]]), n)
    y = data.labels[i, j].astype(float)
    y[m * n :] = np.random.default_rng(seed).choice([-1.0, 1.0], extra)
    return i, j, y


def restored(sides, state):
    """A new engine that goes on from a state."""
    return Engine.from_state(state, *sides)


class Operator(SideState):
    """Side information of kind "operator" over a small kernel."""

    kind, size = "operator", 0

    def __init__(self, K):
        self.K, self.size = K, len(K)

    def diagonal(self):
        return self.K.diagonal().copy()

    def apply(self, V):
        return self.K @ V

    def columns(self, index):
        return np.ascontiguousarray(self.K[:, index])


M, N = 19, 14
VECTORS = np.random.default_rng(5).normal(size=(M, 3))
SIDES = {
    "dense": (lambda: Kernel(gaussian(M, 1)).begin(), lambda: Kernel(gaussian(N, 2)).begin()),
    "uneven": (
        lambda: Kernel(uneven(M, 1), normalize=False).begin(),
        lambda: Kernel(uneven(N, 2), normalize=False).begin(),
    ),
    "singular": (lambda: Kernel(singular(M, 1)).begin(), lambda: Kernel(singular(N, 2)).begin()),
    "identity": (lambda: Identity(M).begin(), lambda: Identity(N).begin()),
    "mixed": (lambda: Mix(Features(VECTORS)).begin(), lambda: Kernel(gaussian(N, 2)).begin()),
    "features": (lambda: Features(VECTORS).begin(), lambda: Features(VECTORS[:N, ::-1], const=0.3).begin()),
    "operator": (lambda: Operator(gaussian(M, 1)), lambda: Identity(N).begin()),
}


@pytest.fixture(params=SIDES)
def sides(request):
    return tuple(make() for make in SIDES[request.param])


def gram(side):
    return side.apply(np.eye(side.size))


def engine(sides, D=24.6, **options):
    # D away from m + n: y_bar would be 0 exactly on untouched cells, and such ties fall either way in the twins.
    return Engine(*sides, np.log(D / (M + N)), **options)


@pytest.mark.parametrize(("D", "step"), [(24.6, 0.35), (310.0, 0.9), (33.5, np.linspace(1.4, 0.05, M * N + 40))])
def test_values_are_those_of_algorithm_1(sides, D, step):
    i, j, y = trials(M, N)
    expected, updates = transductive(*map(gram, sides), list(zip(i, j, y, strict=True)), D, GAMMA, step)
    y_bar, updated = engine(sides, D).run(i, j, y, step, GAMMA, values=True)
    np.testing.assert_array_equal(updated, updates)
    np.testing.assert_allclose(y_bar, expected, rtol=1e-9, atol=1e-9)
    sign, decided = engine(sides, D).run(i, j, y, step, GAMMA)
    np.testing.assert_array_equal(decided, updates)
    np.testing.assert_array_equal(sign, np.where(expected >= 0, 1, -1))


def test_growing_engine_is_algorithm_2():
    i, j, y = trials(M, N, extra=0)
    points, pillars = VECTORS, VECTORS[:N] ** 2
    expected, updates = inductive(
        *(np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 2) for X in (points, pillars)),
        list(zip(i, j, y, strict=True)), 24.6, GAMMA, 0.35,
    )  # fmt: skip
    rows, cols = (KernelFunction("gaussian", length_scale=1.0).begin() for _ in range(2))
    grown = Engine(rows, cols, np.log(24.6 / (M + N)))
    at_row, at_col, y_bar = {}, {}, []
    for a, b, label in zip(i, j, y, strict=True):
        if a not in at_row:
            at_row[a] = rows.grow(points[a])
            grown.grow()
        if b not in at_col:
            at_col[b] = cols.grow(pillars[b])
            grown.grow()
        one, _ = grown.run([at_row[a]], [at_col[b]], [label], 0.35, GAMMA, values=True)
        y_bar.append(one[0])
    np.testing.assert_allclose(y_bar, expected, rtol=1e-9, atol=1e-9)
    # Proposition 4: the transductive algorithm over everybody who came.
    full = Engine(rows, cols, np.log(24.6 / (M + N)))
    known, updated = full.run([at_row[a] for a in i], [at_col[b] for b in j], y, 0.35, GAMMA, values=True)
    np.testing.assert_allclose(known, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(updated, updates)


def test_one_at_a_time_is_the_run(sides):
    i, j, y = trials(M, N)
    one, all_at_once = engine(sides), engine(sides)
    y_bar, updated = all_at_once.run(i, j, y, 0.5, GAMMA, values=True)
    for t in range(len(i)):
        sign, update = one.decide(i[t], j[t], y[t], GAMMA)
        assert one.score(i[t], j[t]) == y_bar[t]
        assert np.log1p(y_bar[t]) == pytest.approx(one.log_score(i[t], j[t]), abs=1e-12)
        assert (sign, update) == ((1 if y_bar[t] >= 0 else -1), updated[t])
        if update:
            one.learn(i[t], j[t], 0.5 * y[t])


def test_pieces_and_resuming_change_no_bit(sides):
    i, j, y = trials(M, N)
    whole, parts = engine(sides), engine(sides)
    expected, _ = whole.run(i, j, y, 0.5, GAMMA, values=True)
    signs, _ = engine(sides).run(i, j, y, 0.5, GAMMA)
    found, found_signs, decided = [], [], engine(sides)
    for piece in np.array_split(np.arange(len(i)), 7):
        found.append(parts.run(i[piece], j[piece], y[piece], 0.5, GAMMA, values=True)[0])
        found_signs.append(decided.run(i[piece], j[piece], y[piece], 0.5, GAMMA)[0])
        parts, decided = (restored(sides, e.state()) for e in (parts, decided))
    np.testing.assert_array_equal(np.concatenate(found), expected)
    np.testing.assert_array_equal(np.concatenate(found_signs), signs)


def test_scores_of_many_pairs(sides):
    i, j, y = trials(M, N)
    model = engine(sides)
    model.run(i, j, y, 0.5, GAMMA)
    rows, cols = (a.ravel() for a in np.indices((M, N)))
    one_by_one = [model.score(a, b) for a, b in zip(rows, cols, strict=True)]
    np.testing.assert_allclose(model.scores(rows, cols), one_by_one, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.scores(rows[:3], cols[:3]), one_by_one[:3], rtol=1e-9, atol=1e-9)


def test_lists_and_tables_agree():
    m, n = 120, 110
    sides = Kernel(gaussian(m, 1)).begin(), Kernel(gaussian(n, 2)).begin()
    data = make_biclustered((m, n), random_state=1)
    i, j = np.divmod(data.order[:2600], n)
    y = data.labels[i, j].astype(float)
    lists, tables = (Engine(*sides, 0.02) for _ in range(2))
    first = slice(0, 400)
    for model in (lists, tables):
        model.run(i[first], j[first], y[first], 0.7, 0.6)
    state = lists.state()
    assert not state["table"]
    tables = restored(sides, {**state, "table": True})
    assert tables.state()["table"]
    pairs = i[:300], j[::-1][:300]
    np.testing.assert_allclose(tables.scores(*pairs), lists.scores(*pairs), rtol=1e-12, atol=1e-12)
    results = [model.run(i, j, y, 0.7, 0.6, values=True) for model in (lists, tables)]
    assert lists.state()["table"]  # which it became on the way
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_features_are_a_kernel():
    X, Z = np.random.default_rng(0).normal(size=(2, 30, 4))
    rows, cols = Features(X).begin(), Features(Z).begin()
    by_features, by_kernels = Engine(rows, cols), Engine(Kernel(gram(rows)).begin(), Kernel(gram(cols)).begin())
    assert by_features.by_features
    assert not by_kernels.by_features
    i, j = np.divmod(np.random.default_rng(1).permutation(900), 30)
    y = np.sign((X[i] * Z[j]).sum(1))
    found, expected = (e.run(i, j, y, 0.4, 0.3, values=True) for e in (by_features, by_kernels))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(by_features.run(i, j, y, 0.4, 0.3)[1], by_kernels.run(i, j, y, 0.4, 0.3)[1])


def test_several_engines_share_growing_sides():
    rows, cols = Features(VECTORS[:5]).begin(), Identity().begin()
    models = [Engine(rows, cols) for _ in range(2)]
    for k in range(20):
        cols.grow(f"column {k}")
        for model in models:
            model.grow()
            model.learn(k % 5, k, 0.5)
    rows.grow(VECTORS[7])
    for model in models:
        model.grow()
    assert models[0].score(5, 3) == models[1].score(5, 3) != 0


def test_a_label_and_its_opposite_leave_nothing():
    model = Engine(Identity(5).begin(), Kernel(gaussian(6, 0)).begin())
    model.learn(2, 3, 0.37)
    assert model.score(2, 3) > 0
    model.learn(2, 3, -0.37)
    assert model.score(2, 3) == 0
    assert len(model.state()["cells"]) == 0


@pytest.mark.parametrize(("strict", "updates"), [(False, 1), (True, 0)])
def test_ties(strict, updates):
    sides = Identity(4).begin(), Identity(4).begin()
    for values in (False, True):
        sign, updated = Engine(*sides).run([0], [0], [-1], 0.5, 0.0, strict=strict, values=values)
        assert updated.sum() == updates
        assert sign[0] == (0 if values else 1)
    _, updated = Engine(*sides).run([0], [0], [-1], 0.5, 0.9, conservative=True, strict=strict)
    assert updated.sum() == updates


def test_no_kernel_at_all():
    model = Engine(*(Kernel(np.diag([1.0, 0.0]), normalize=False).begin() for _ in range(2)))
    assert model.log_score(1, 1) == -np.inf
    assert model.score(1, 1) == -1
    assert model.decide(1, 1, 1.0, 0.5) == (-1, True)


def test_steps_beyond_the_exponential_stay_in_logarithms():
    model = Engine(*(Kernel(gaussian(4, s)).begin() for s in (0, 1)))
    model.learn(0, 0, 5000.0)
    assert model.score(0, 0) == np.inf
    assert model.log_score(0, 0) == pytest.approx(5000.0)
    assert model.decide(0, 0, -1.0, 0.5) == (1, True)


def same(state, other):
    assert state.keys() == other.keys()
    for name in state:
        np.testing.assert_array_equal(state[name], other[name])


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("bad", [1e308, np.nan, np.inf])
def test_trials_before_a_step_that_is_not_finite_are_learned(sides, bad, values):
    i, j, y = trials(M, N)
    model, twin = engine(sides), engine(sides)
    steps = np.full(len(i), 0.5)
    steps[90:] = bad
    with pytest.raises(FloatingPointError, match=r"in trial (9\d|[123]\d\d).*The trials before it are learned"):
        model.run(i, j, y, steps, GAMMA, values=values)
    first = slice(0, model.n_seen)
    assert model.n_seen >= 90
    twin.run(i[first], j[first], y[first], steps[first], GAMMA, values=values)
    same(twin.state(), model.state())
    with pytest.raises(FloatingPointError, match="finite"):
        model.learn(0, 0, np.nan)


def test_nan_in_a_kernel_is_an_error():
    class Broken(Operator):
        def apply(self, V):
            return np.full_like(V, np.nan)

    model = Engine(Broken(np.eye(3)), Identity(3).begin())
    model.learn(0, 0, 0.5)
    before = model.state()
    for ask in (lambda: model.score(0, 0), lambda: model.decide(0, 0, 1.0, 0.5), lambda: model.scores([0], [0])):
        with pytest.raises(FloatingPointError, match="NaN"):
            ask()
    with pytest.raises(FloatingPointError, match="in trial 0"):
        model.run([0, 1], [0, 1], [1, 1], 0.5, 0.5)
    same(before, model.state())


def test_an_error_in_a_product_comes_through():
    class Failing(Operator):
        calls = 0

        def apply(self, V):
            Failing.calls += 1
            if Failing.calls > 20:
                raise KeyboardInterrupt
            return super().apply(V)

    model = Engine(Failing(np.eye(5)), Kernel(gaussian(5, 0)).begin())
    i, j = np.divmod(np.arange(25), 5)
    before = model.state()
    with pytest.raises(KeyboardInterrupt):
        model.run(i, j, np.ones(25), 0.5, 0.5)
    Failing.calls = -1000
    again = Engine.from_state(before, model.rows, model.cols)
    same(before, again.state())


def test_pairs_out_of_range():
    model = Engine(Identity(3).begin(), Identity(4).begin())
    for call in (
        lambda: model.score(3, 0),
        lambda: model.learn(0, 4, 0.1),
        lambda: model.run([0], [-1], [1], 0.1, 0.1),
    ):
        with pytest.raises(IndexError):
            call()
