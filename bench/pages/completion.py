"""Online matrix completion with side information, measured: `OMP_NUM_THREADS=1 python bench/pages/completion.py PART ...`.

Parts, all when none is named:
  whole      all n^2 trials at n = 100 and 200 (biclustered matrix, noisy clique-star graphs, Appendix A of Herbster, Pasteris
             and Tse 2020) against Algorithm 1 by scipy.linalg.eigh, and against the authors' public code when --authors names a
             clone of lisatse/mcsi. The slow ones are timed on trials sampled along the run, from our state, and scaled: trials
             x cost of a prediction + updates x cost of an update. y_bar must agree to 1e-9 where sampled, decisions everywhere
             between our decision mode and our values.
  growth     CPU time of a trial at n = 100 ... 800 and its exponent; n = 400 whole.
  inductive  ids that arrive one by one, kernel grown, against all ids known in advance.
  sparse     2-D nearest-neighbour graphs with 10,000 and 100,000 vertices a side: seconds a prediction and peak memory.
  features   60 features in all, 1,000 and 100,000 rows and columns.
Times are CPU times of one thread, medians of runs in turn.
"""

import argparse
import resource
import time
from statistics import median

import numpy as np
import scipy.sparse as sp
from completion_peers import Authors, Literal
from scipy.spatial import cKDTree

from lacunar.completion import Features, Graph, KernelFunction
from lacunar.papers.completion import MatrixExponentiatedGradient, make_biclustered

GAMMA = 1 / 3


def clock(call, *given):
    start = time.process_time()
    result = call(*given)
    return time.process_time() - start, result


class Problem:
    """A whole run by the paper's recipe: PDLaplacians, D and step of the authors' code."""

    def __init__(self, n, noise, seed=0):
        self.n, self.data = n, make_biclustered((n, n), graph_noise=noise, random_state=seed)
        data = self.data
        self.i, self.j = np.divmod(data.order, n)
        self.y = data.labels[self.i, self.j].astype(float)
        self.sides = [(data.row_graph, data.row_clusters), (data.column_graph, data.column_clusters)]
        self.cuts = [cut(graph, classes) for graph, classes in self.sides]
        radii = [radius(graph) for graph, _ in self.sides]
        self.d = 4 * (sum(c * r for c, r in zip(self.cuts, radii, strict=True)) + 9 + 9 + 9)
        self.step = min(1.0, float(np.sqrt(self.d * np.log(2 * n) / (2 * n * n))))

    def model(self):
        graphs = (Graph(graph, kind="pd", normalize=False) for graph, _ in self.sides)
        return MatrixExponentiatedGradient(*graphs, d=self.d, step=self.step, gamma=GAMMA, calibrate=False)

    def decide(self, count=None):
        """CPU seconds of decisions and updates alone, as partial_fit makes them."""
        model = self.model()
        seconds, _ = clock(model.partial_fit, self.i[:count], self.j[:count], self.y[:count])
        return seconds, model

    def values(self, count=None):
        """CPU seconds of a run that gives y_bar of every trial, and the run."""
        model = self.model()
        return clock(model.score_stream, self.i[:count], self.j[:count], self.y[:count])


def laplacian(graph):
    return np.diag(graph.sum(axis=0)) - graph.toarray()


def radius(graph):
    return np.linalg.pinv(laplacian(graph)).diagonal().max()


def cut(graph, classes):
    """tr R^T L R of one-hot classes: twice the edges between them."""
    edges = graph.tocoo()
    return float((classes[edges.row] != classes[edges.col]).sum())


def whole(arguments):
    print("\nwhole runs: seconds of CPU, all n^2 trials")
    print(
        f"{'n':>4} {'beta':>5} {'updates':>8} {'ours':>8} {'values':>8} {'eigh':>9} {'ratio':>6} {'authors':>9} {'ratio':>6}"
    )
    for n in (24,) if arguments.quick else (100, 200):
        for noise in (0.0, 0.125):
            problem = Problem(n, noise)
            times = {"decide": [], "values": [], "eigh": [], "authors": []}
            for repeat in range(arguments.repeats):
                seconds, model = problem.decide()
                times["decide"].append(seconds)
                seconds, run = problem.values()
                times["values"].append(seconds)
                assert model.n_updates_ == int(run.updated.sum())
                slow = [Literal(problem)] + ([Authors(problem, arguments.authors)] if arguments.authors else [])
                for name, peer in zip(("eigh", "authors"), slow, strict=False):
                    times[name].append(sampled(problem, peer, run, arguments.samples, offset=repeat))
            mid = {name: median(t) if t else float("nan") for name, t in times.items()}
            ratios = [mid[name] / mid["decide"] for name in ("eigh", "authors")]
            print(
                f"{n:4} {noise:5} {int(run.updated.sum()):8} {mid['decide']:8.3f} {mid['values']:8.3f} "
                f"{mid['eigh']:9.1f} {ratios[0]:6.0f} {mid['authors']:9.1f} {ratios[1]:6.0f}"
            )


def sampled(problem, peer, run, samples, offset):
    """Whole-run seconds of a slow peer from trials sampled evenly, each at the state of our run."""
    count = len(problem.y)
    predicting, updating = [], []
    at = 0
    for t in range((7 * offset) % (count // samples), count, count // samples):
        peer.replay(np.flatnonzero(run.updated[at:t]) + at)
        at = t
        seconds, y_bar = clock(peer.predict, t)
        predicting.append(seconds)
        np.testing.assert_allclose(y_bar, run.values[t], rtol=1e-9, atol=1e-9)
        updating.append(clock(peer.update, t)[0])
    return count * np.mean(predicting) + int(run.updated.sum()) * np.mean(updating)


def growth(arguments):
    print(f"\ngrowth: CPU microseconds a trial, the first {arguments.share:.0%} of all, beta = 0")
    sizes, found = (20, 40) if arguments.quick else (100, 200, 400, 800), {"decide": [], "values": []}
    for n in sizes:
        problem = Problem(n, 0.0)
        count = round(arguments.share * n * n)  # of every size the same share: a matrix seldom seen is cheaper
        seconds, model = problem.decide(count)
        took, run = problem.values(count)
        assert model.n_updates_ == int(run.updated.sum())
        found["decide"].append(seconds / count)
        found["values"].append(took / count)
        print(f"n = {n:3}: decide {1e6 * seconds / count:7.1f}, values {1e6 * took / count:7.1f} over {count} trials")
    for name, each in found.items():
        print(f"exponent of {name}: {np.polyfit(np.log(sizes), np.log(each), 1)[0]:.2f}")
    n = 40 if arguments.quick else 400
    seconds, model = Problem(n, 0.0).decide()
    print(f"n = {n}, all {n * n:,} trials: {seconds:.1f} s, {model.n_updates_} updates")


def inductive(arguments):
    print("\ninductive against transductive: Gaussian kernel of points in the plane, all n^2 trials")
    for n in (20,) if arguments.quick else (100, 200):
        rng = np.random.default_rng(0)
        points, pillars = ([tuple(p) for p in rng.normal(size=(n, 2))] for _ in range(2))
        order = rng.permutation(n * n)
        rows, cols = [points[k] for k in order // n], [pillars[k] for k in order % n]
        y = np.sign([r[0] * c[0] + 0.3 for r, c in zip(rows, cols, strict=True)])
        times = {"grown": [], "known": []}
        for _ in range(arguments.repeats):
            updates = set()
            for name, known in (("grown", (None, None)), ("known", (points, pillars))):
                sides = [KernelFunction("gaussian", points=p, ids=p) for p in known]
                model = MatrixExponentiatedGradient(*sides, step=0.3, calibrate=False)
                seconds = 0.0
                for chunk in np.array_split(np.arange(n * n), n):
                    part = [rows[k] for k in chunk], [cols[k] for k in chunk], y[chunk]
                    seconds += clock(model.partial_fit, *part)[0]
                times[name].append(seconds)
                updates.add(model.n_updates_)
            assert len(updates) == 1
        grown, known = median(times["grown"]), median(times["known"])
        print(
            f"n = {n}: grown {1e6 * grown / n**2:.1f} us a trial, known {1e6 * known / n**2:.1f}, ratio {grown / known:.2f}"
        )


def neighbours(n, seed):
    """The 10 nearest neighbours of points in the plane, symmetric."""
    points = np.random.default_rng(seed).normal(size=(n, 2))
    near = cKDTree(points).query(points, k=11)[1][:, 1:]
    graph = sp.csr_array((np.ones(10 * n), (np.repeat(np.arange(n), 10), near.ravel())), shape=(n, n))
    return points, graph.maximum(graph.T)


def sparse(arguments):
    print("\nsparse graphs: 2-D nearest neighbours, 10 observations a row")
    for n in (1_000,) if arguments.quick else (10_000, 100_000):
        (points, rows), (pillars, cols) = neighbours(n, 0), neighbours(n, 1)
        model = MatrixExponentiatedGradient(Graph(rows, "pinv"), Graph(cols, "pinv"), calibrate=False)
        start = time.process_time()
        rng = np.random.default_rng(2)
        i, j = rng.integers(n, size=10 * n), rng.integers(n, size=10 * n)
        y = np.where(points[i, 0] * pillars[j, 0] > 0, 1, -1)
        few = arguments.learned if n < 50_000 else arguments.learned // 10
        model.partial_fit(i[:few], j[:few], y[:few])
        learning = time.process_time() - start
        asked = rng.integers(n, size=(2, 20))
        seconds = [clock(model.decision_one, a, b)[0] for a, b in asked.T]
        crowd, _ = clock(model.decision_function, rng.integers(n, size=(200, 2)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"m = n = {n}: begin and learn {few} trials {learning:.1f} s, a prediction {1e3 * median(seconds):.1f} ms, "
            f"of 200 at once {5 * crowd:.1f} ms, {model.n_updates_} updates, peak {peak:.2f} GiB"
        )


def features(arguments):
    print("\nfeatures: 30 a side, the state 60 x 60")
    for n in (1_000,) if arguments.quick else (1_000, 10_000, 100_000):
        rng = np.random.default_rng(0)
        X, Z = rng.normal(size=(2, n, 30))
        count = 500 if arguments.quick else 20_000
        i, j = rng.integers(n, size=(2, count))
        y = np.sign((X[i] * Z[j]).sum(axis=1) + rng.normal(size=count))
        model = MatrixExponentiatedGradient(
            Features(X, standardize=False), Features(Z, standardize=False), calibrate=False
        )
        model.partial_fit(i[:10], j[:10], y[:10])
        seconds, _ = clock(model.partial_fit, i[10:], j[10:], y[10:])
        took, _ = clock(model.score_stream, i, j, y)
        print(f"m = n = {n}: decide {1e6 * seconds / count:.1f} us a trial, values {1e6 * took / count:.1f}")


PARTS = {part.__name__: part for part in (whole, growth, inductive, sparse, features)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--authors", help="folder of a clone of github.com/lisatse/mcsi")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--samples", type=int, default=30, help="trials of the slow peers that are timed")
    parser.add_argument("--share", type=float, default=0.25, help="share of all n^2 trials that `growth` times")
    parser.add_argument("--learned", type=int, default=1_000, help="trials learned by `sparse`")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, decides no bar")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.repeats, chosen.samples, chosen.learned = 1, 5, 50
    for name in chosen.parts or PARTS:
        PARTS[name](chosen)
