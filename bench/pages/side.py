"""Side information, measured: `OMP_NUM_THREADS=1 python bench/pages/side.py PART ... [--data FOLDER]`.

Parts, all when none is named:
  graphs    nearest-neighbour graphs in 2, 3 and 5 dimensions: seconds of `begin` (factor and exact diagonal), of a product and
            of a column, entries of the factor, peak memory; the diagonal must agree with solves to 1e-12.
  dense     1,000 and 3,000 vertices: solves against K in memory, which must agree to 1e-12.
  pieces    what a graph in pieces should say: errors of defaults on 60 x 60 matrices of 9 x 9 blocks, 10 % flipped, whose graphs
            are the clusters' cliques, whole or thinned, with no edge between.
  noise     the same for the paper's connected graphs (Appendix A, n = 80) by their noise beta; "pd" is the paper's PDLaplacian.
  networks  community membership (section 4.2), error over random pairs; needs the folder of networks.
Times are CPU times of one thread, medians.
"""

import argparse
import os
import resource
import sys
import time
import warnings
from statistics import median

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from lacunar.completion import Graph, Identity, Kernel, Mix
from lacunar.papers.completion import MatrixExponentiatedGradient, make_biclustered


def clock(call, *given, repeats=1):
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        result = call(*given)
        seconds.append(time.process_time() - start)
    return median(seconds), result


def neighbours(n, dim, k=10, seed=0):
    points = np.random.default_rng(seed).uniform(size=(n, dim))
    near = cKDTree(points).query(points, k + 1)[1][:, 1:]
    A = sp.csr_array((np.ones(n * k), (np.repeat(np.arange(n), k), near.ravel())), shape=(n, n))
    return A.maximum(A.T)


def graphs(arguments):
    print("\nnearest-neighbour graphs, k = 10, kind='regularized'")
    for n, dim in ((500, 2), (500, 3)) if arguments.quick else ((10_000, 2), (10_000, 3), (100_000, 2), (10_000, 5)):
        A = neighbours(n, dim)
        begin, side = clock(lambda A=A: Graph(A, "regularized").begin())
        v = np.random.default_rng(1).normal(size=n)
        apply, _ = clock(side.apply, v, repeats=20)
        index = np.random.default_rng(2).integers(0, n, 3)
        column, _ = clock(side.columns, index[:1], repeats=5)
        # corr(K) has a diagonal of 1 only if the diagonal by selected inversion is that of the solves.
        np.testing.assert_allclose(side.columns(index)[index, range(3)], 1.0, rtol=0, atol=1e-12)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"n={n:7,} dim={dim}: begin {begin:6.2f} s, product {apply * 1e3:6.2f} ms, column {column * 1e3:6.2f} ms, "
            f"peak so far {peak:.2f} GiB",
            flush=True,
        )


def dense(arguments):
    print("\nsolves against K in memory, 2-D neighbours, kind='pinv'")
    for n in (200,) if arguments.quick else (1_000, 3_000):
        A = neighbours(n, 2)
        times = {}
        products = {}
        V = np.random.default_rng(1).normal(size=(n, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            for method in ("sparse", "dense"):
                begin, side = clock(lambda m=method, A=A: Graph(A, method=m, kind="pinv").begin())
                apply, products[method] = clock(side.apply, V, repeats=20)
                times[method] = begin, apply
        np.testing.assert_allclose(products["sparse"], products["dense"], atol=1e-12 * np.abs(products["dense"]).max())
        said = (f"{m} begin {b:.3f} s, product with 2 vectors {a * 1e3:.2f} ms" for m, (b, a) in times.items())
        print(f"n={n:6,}: " + "; ".join(said), flush=True)


def error(rows, cols, i, j, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = MatrixExponentiatedGradient(rows, cols, calibrate=False)
        return model.score_stream(i, j, y).error


def centred(A):
    """corr(L^+) of every piece by itself, nothing added: what not to do."""
    A = A.toarray()
    K = np.linalg.pinv(np.diag(A.sum(axis=1)) - A, rcond=1e-10, hermitian=True)
    alone = A.sum(axis=1) == 0
    K[alone, alone] = 1.0
    root = np.sqrt(np.diag(K))
    return Kernel(K / np.outer(root, root))


def pieces(arguments):
    print("\ngraphs in pieces: error over all entries, mean of 3 seeds")
    n, k = (20, 3) if arguments.quick else (60, 9)
    sides = {
        "nothing": lambda A: Identity(n),
        "L^+ centred by pieces": centred,
        "pinv": Graph,
        "regularized": lambda A: Graph(A, "regularized"),
        "spectral": lambda A: Graph(A, "spectral"),
    }
    for kept in (1.0, 0.3, 0.15):
        found = {name: [] for name in sides}
        for seed in range(3):
            rng = np.random.default_rng(seed)
            clusters = rng.integers(0, k, (2, n))
            y = rng.choice([-1, 1], (k, k))[clusters[0]][:, clusters[1]] * np.where(rng.random((n, n)) < 0.1, -1, 1)
            A = []
            for c in clusters:
                edges = np.triu((c[:, None] == c) & (rng.random((n, n)) < kept), 1)
                A.append(sp.csr_array((edges | edges.T).astype(float)))
            i, j = np.divmod(rng.permutation(n * n), n)
            for name, make in sides.items():
                found[name].append(error(Mix(make(A[0])), Mix(make(A[1])), i, j, y[i, j]))
        print(f"edges kept {kept:.0%}: " + ", ".join(f"{m} {np.mean(e):.3f}" for m, e in found.items()), flush=True)


def noise(arguments):
    n, betas = (24, (0.125,)) if arguments.quick else (80, (0.0, 0.03125, 0.125, 0.5))
    sides = {"nothing": lambda A: Identity(n)}
    for kind in ("pinv", "regularized", "spectral"):
        sides[kind] = lambda A, kind=kind: Graph(A, kind)
        sides[f"Mix {kind}"] = lambda A, kind=kind: Mix(Graph(A, kind))
    sides["pd, raw"] = lambda A: Graph(A, "pd", normalize=False)
    print(f"\nAppendix A, n = {n}, defaults: error over all entries, mean of 3 seeds")
    for beta in betas:
        found = {name: [] for name in sides}
        for seed in range(3):
            data = make_biclustered((n, n), graph_noise=beta, random_state=seed)
            i, j = np.divmod(data.order, n)
            for name, make in sides.items():
                found[name].append(error(make(data.row_graph), make(data.column_graph), i, j, data.labels[i, j]))
        print(f"beta {beta:<7}: " + ", ".join(f"{m} {np.mean(e):.3f}" for m, e in found.items()), flush=True)


def networks(arguments):
    if not arguments.data:
        print("\nnetworks: no folder; give --data or set LACUNAR_DATA")
        return
    sys.path.insert(0, arguments.data)
    from load import load

    print("\ncommunity membership: error over random pairs, every pair predicted before it is learned")
    every = (("karate", 1_100), ("polbooks", 3_000), ("email_eu", 4_000), ("polblogs", 4_000))
    for name, count in (("karate", 100),) if arguments.quick else every:
        A, community, _ = load(name)
        labelled = np.flatnonzero(community >= 0)
        i, j = labelled[np.random.default_rng(0).integers(0, len(labelled), (2, count))]
        y = community[i] == community[j]
        sides = {"nothing": Identity(A.shape[0])}
        for kind in ("pinv", "regularized", "spectral"):
            sides[kind], sides[f"Mix {kind}"] = Graph(A, kind), Mix(Graph(A, kind))
        said = []
        for label, side in sides.items():
            seconds, wrong = clock(error, side, side, i, j, y)
            said.append(f"{label} {wrong:.3f} ({seconds:.1f} s)")
        constant = min(y.mean(), 1 - y.mean())
        print(f"{name}, {A.shape[0]} vertices, {count} pairs: constant {constant:.3f}, " + ", ".join(said), flush=True)


PARTS = {part.__name__: part for part in (graphs, dense, pieces, noise, networks)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="parts to run")
    parser.add_argument("--data", default=os.environ.get("LACUNAR_DATA"), help="folder of the networks and load.py")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, decides no bar")
    arguments = parser.parse_args()
    for part in arguments.parts or PARTS:
        PARTS[part](arguments)
