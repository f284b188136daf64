"""The bounds that make decisions certain: on the largest eigenvalue of S A S and on the trace of its exponential."""

import numpy as np
import pytest

from lacunar.completion import Features, Graph, Identity, Mix
from lacunar.papers.completion import make_biclustered
from lacunar.papers.completion.engine import Engine


def problem(n, noise, seed, kind):
    data = make_biclustered((n, n), graph_noise=noise, random_state=seed)
    i, j = np.divmod(data.order, n)
    sides = tuple(Graph(graph, kind=kind).begin() for graph in (data.row_graph, data.column_graph))
    return sides, i, j, data.labels[i, j].astype(float)


def eigenvalues(engine):
    """Of A K, which are those of S A S."""
    m, n = engine.rows.size, engine.cols.size
    cells, A, K = engine.cells(), np.zeros((m + n, m + n)), np.zeros((m + n, m + n))
    rows, cols = cells["row_seats"], m + cells["col_seats"]
    A[rows[cells["cell_rows"]], cols[cells["cell_cols"]]] = cells["cells"]
    A += A.T
    A[rows, rows], A[cols, cols] = cells["row_sums"], cells["col_sums"]
    K[:m, :m], K[m:, m:] = 0.5 * engine.rows.apply(np.eye(m)), 0.5 * engine.cols.apply(np.eye(n))
    return np.linalg.eigvals(A @ K).real


# The first is one where a bound by a few Lanczos steps from a random vector lies a whole unit too low.
@pytest.mark.parametrize(
    ("noise", "seed", "kind", "step", "log_scale"),
    [(0.03, 5, "pinv", 1.0, 1.5), (0.0, 0, "pd", 0.3, 0.01), (0.3, 1, "pinv", 0.05, -0.5), (0.0, 2, "pinv", 1.0, 0.01)],
)
def test_decisions_are_those_of_values(noise, seed, kind, step, log_scale):
    sides, i, j, y = problem(50, noise, seed, kind)
    deciding, valued = Engine(*sides, log_scale), Engine(*sides, log_scale)
    for part in np.array_split(np.arange(len(i)), 6):
        trials = i[part], j[part], y[part], step, 0.33
        sign, updated = deciding.run(*trials)
        y_bar, updates = valued.run(*trials, values=True)
        np.testing.assert_array_equal(updated, updates)
        np.testing.assert_array_equal(sign, np.where(y_bar >= 0, 1, -1))
        found = eigenvalues(deciding)
        for engine in (deciding, valued):
            state = engine.state()
            assert state["bound"] > found.max()
            assert (
                state["trace"] >= np.exp(found).sum() - (100 - len(state["row_seats"]) - len(state["col_seats"])) - 1e-9
            )
            assert np.log(state["trace"]) < found.max() + 8  # and of use


@pytest.mark.parametrize("known", [False, True])
def test_bound_of_learning_one_by_one(known):
    rng = np.random.default_rng(0)
    side = Mix(Features(rng.normal(size=(20, 3)))).begin()
    engine = Engine(side, Identity(15).begin(), 0.2)
    for _ in range(300):
        i, j = rng.integers(20), rng.integers(15)
        engine.learn(i, j, rng.choice([-0.4, 0.4]), engine.log_score(i, j) if known else np.nan)
        assert engine.state()["bound"] > eigenvalues(engine).max()
    engine.run([0], [0], [1], [1e4], 0.4)
    assert engine.state()["bound"] > eigenvalues(engine).max()


def test_bound_after_a_failure_is_that_of_the_trials_before():
    engine = Engine(Identity(30).begin(), Identity(30).begin())
    with pytest.raises(FloatingPointError):
        engine.run(np.arange(30), np.arange(30), np.ones(30), [0.5] * 29 + [np.nan], 0.5)
    assert engine.n_seen == 29
    engine.run(np.arange(30), np.arange(30), np.ones(30), 0.5, 0.5)
    found = eigenvalues(engine)
    assert engine.state()["bound"] > found.max()
    assert engine.state()["trace"] >= np.exp(found).sum()
