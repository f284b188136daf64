"""The pool of `OnlineMatrixClassifier` beside simple online learners and batch completion, on streams of real data.

`LACUNAR_DATA=FOLDER python bench/bench_pool.py [--orders 5] [--only votes ...]`: error and log loss over whole streams, every label predicted
before it is learned, means over random orders (films: the one order of time); the best of the simple learners in hindsight beside it.
`python bench/bench_pool.py --batch`: both fitted to the first half of a stream and asked about the second.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from lacunar.completion import Features, Graph, OnlineMatrixClassifier
from lacunar.lowrank import LowRankImputer

PAIRS = 6000  # of a network


class Stream(NamedTuple):
    """Pairs with labels -1 and 1, and what is known of rows and columns. groups: a label for every row."""

    i: Any
    j: Any
    y: Any
    rows: Any = None
    cols: Any = None
    groups: Any = None
    graph: Any = None


def table(name: str) -> Any:
    folder = os.environ["LACUNAR_DATA"]
    sys.path.insert(0, folder)
    import load

    return load.table(name)


def of_table(X: Any, above: float, rng: np.random.Generator, **known: Any) -> Stream:
    """What is observed of a table, in random order; positive above a number."""
    i, j = np.nonzero(np.isfinite(X))
    order = rng.permutation(len(i))
    i, j = i[order], j[order]
    return Stream(i, j, np.where(X[i, j] > above, 1, -1), **known)


def votes(name: str, sides: bool) -> Callable[[np.random.Generator], Stream]:
    def stream(rng: np.random.Generator) -> Stream:
        held = table(name)
        party, state = held.targets["party"][0], held.side["state"]
        known = {"rows": Features({"party": party.astype(str), "state": state}), "groups": party} if sides else {}
        return of_table(held.X, 0, rng, **known)

    return stream


def network(name: str) -> Any:
    A = sp.csr_array(table(name).X)
    A = sp.csr_array(((A + A.T) > 0).astype(float))
    A.setdiag(0)
    A.eliminate_zeros()
    return A


def communities(name: str) -> Callable[[np.random.Generator], Stream]:
    """Are two vertices of one community? The whole network is known."""

    def stream(rng: np.random.Generator) -> Stream:
        A, community = network(name), next(iter(table(name).targets.values()))[0]
        i, j = np.flatnonzero(community >= 0)[rng.integers(0, (community >= 0).sum(), (2, PAIRS))]
        return Stream(i, j, np.where(community[i] == community[j], 1, -1), Graph(A), Graph(A), graph=A)

    return stream


def links(name: str) -> Callable[[np.random.Generator], Stream]:
    """Is there an edge? Half of the edges are known; the others come with as many pairs without one."""

    def stream(rng: np.random.Generator) -> Stream:
        A = network(name)
        edges = sp.triu(A).tocoo()
        order = rng.permutation(edges.nnz)
        ends = np.column_stack([edges.coords[0], edges.coords[1]])[order]
        known, asked = ends[: len(ends) // 2], ends[len(ends) // 2 :]
        G = sp.coo_array((np.ones(len(known)), known.T), shape=A.shape).tocsr()
        G = sp.csr_array(G + G.T)
        others = rng.integers(0, A.shape[0], (4 * len(asked), 2))
        dense = A.toarray()
        others = others[(dense[others[:, 0], others[:, 1]] == 0) & (others[:, 0] != others[:, 1])][: len(asked)]
        pairs, y = np.concatenate([asked, others]), np.repeat([1, -1], [len(asked), len(others)])
        turn = rng.random(len(pairs)) < 0.5
        pairs[turn] = pairs[turn][:, ::-1]
        order = rng.permutation(len(pairs))[:PAIRS]
        return Stream(*pairs[order].T, y[order], Graph(G), Graph(G), graph=G)

    return stream


def films(rng: np.random.Generator) -> Stream:
    """MovieLens-100K in the order of time; like = 4 stars or more."""
    held = table("movielens100k")
    X, side = sp.coo_array(held.X), held.side
    order = np.argsort(side["time"], kind="stable")
    i, j, stars = X.coords[0][order], X.coords[1][order], X.data[order]
    users = Features(
        {n: held.targets[n][0].astype(float if n == "age" else str) for n in ("age", "gender", "occupation")}
    )
    kinds = Features(np.column_stack([side["item_genres"], side["item_year"]]))
    return Stream(i, j, np.where(stars >= 4, 1, -1), users, kinds)


def jokes(rng: np.random.Generator) -> Stream:
    return of_table(table("jester").X, 0, rng)


def rank_one(rng: np.random.Generator) -> Stream:
    signs = np.outer(rng.choice([-1, 1], 60), rng.choice([-1, 1], 40))
    return of_table(signs * np.where(rng.random((60, 40)) < 0.1, -1.0, 1.0), 0, rng)


STREAMS: dict[str, Callable[[np.random.Generator], Stream]] = {
    "rank one, 10 % flipped": rank_one,
    **{f"votes {name}": votes(name, False) for name in ("senate90", "senate106")},
    **{f"votes {name}, party and state": votes(name, True) for name in ("senate90", "senate106")},
    **{f"communities {name}": communities(name) for name in ("polbooks", "polblogs", "email_eu")},
    **{f"links {name}": links(name) for name in ("polbooks", "polblogs", "email_eu")},
    "films in time": films,
    "jokes": jokes,
}


def majority(keys: list[Any], y: list[int]) -> Iterator[float]:
    """P(y = 1) by counts of a key, one observation of all behind it."""
    counts: dict[Any, list[float]] = {}
    both = [1.0, 1.0]
    for key, label in zip(keys, y, strict=True):
        seen = counts.setdefault(key, [0.0, 0.0])
        yield (seen[1] + both[1] / sum(both)) / (sum(seen) + 1)
        seen[label > 0] += 1
        both[label > 0] += 1


def gradient(i: list[int], j: list[int], y: list[int], rank: int, rate: float) -> Iterator[float]:
    """Biases and factors by stochastic gradient."""
    rng = np.random.default_rng(0)
    U, V = (0.3 * rng.normal(size=(max(each) + 1, rank + 2)) for each in (i, j))
    U[:, 0], U[:, 1], V[:, 0], V[:, 1] = 1.0, 0.0, 0.0, 1.0
    for r, c, label in zip(i, j, y, strict=True):
        u, v = U[r].copy(), V[c].copy()
        p = 1 / (1 + np.exp(-u @ v))
        yield p
        error = rate * ((label > 0) - p)
        U[r, 1:] += error * v[1:] - 0.02 * rate * u[1:]
        V[c, np.arange(rank + 2) != 1] += (error * u - 0.02 * rate * v)[np.arange(rank + 2) != 1]


def logistic(F: Any, y: list[int]) -> Iterator[float]:
    """Logistic regression by AdaGrad."""
    w, squares = np.zeros(F.shape[1]), np.full(F.shape[1], 1e-2)
    for f, label in zip(F, y, strict=True):
        p = 1 / (1 + np.exp(-w @ f))
        yield p
        step = ((label > 0) - p) * f
        squares += step**2
        w += 0.5 * step / np.sqrt(squares)


def shared(stream: Stream) -> Any:
    """Constant, edge, common neighbours plain and by rarity, Jaccard's share, degrees."""
    A, i, j = stream.graph, stream.i, stream.j
    degree = A.sum(axis=1)
    common = np.asarray(A[i].multiply(A[j]).sum(axis=1)).ravel()
    rare = np.asarray((A @ sp.diags_array(1 / np.log(2 + degree)))[i].multiply(A[j]).sum(axis=1)).ravel()
    share = common / np.maximum(degree[i] + degree[j] - common, 1)
    edge = np.asarray(A[i, j]).ravel()
    return np.column_stack(
        [np.ones(len(i)), edge, np.log1p(common), rare, share, np.log1p(degree[i]), np.log1p(degree[j])]
    )


def simple(stream: Stream) -> dict[str, Any]:
    """P(y = 1) before each label by every simple learner."""
    i, j, y = (each.tolist() for each in stream[:3])
    made: dict[str, Iterator[float]] = {"majority": majority([0] * len(y), y), "column": majority(j, y)}
    for rate in (0.1, 0.2):
        made |= {f"{'biases' if not k else f'rank {k}'}, rate {rate}": gradient(i, j, y, k, rate) for k in (0, 1, 2, 5)}
    if stream.groups is not None:
        made["group and column"] = majority(list(zip(stream.groups[stream.i].tolist(), j, strict=True)), y)
    if stream.graph is not None:
        made["shared neighbours"] = logistic(shared(stream), y)
    return {name: np.array(list(each)) for name, each in made.items()}


def error(p: Any, y: Any) -> float:
    return float(np.mean((p >= 0.5) != (y > 0)))


def log_loss(p: Any, y: Any) -> float:
    return float(-np.log(np.clip(np.where(y > 0, p, 1 - p), 1e-15, 1)).mean())


def streams(names: list[str], orders: int) -> None:
    print("| stream | pairs | pool: error, log loss, us a pair | best simple: error, log loss |\n|---|---|---|---|")
    for name in names:
        found, others = [], []
        for seed in range(1 if name == "films in time" else orders):
            stream = STREAMS[name](np.random.default_rng(seed))
            start = time.process_time()
            score = OnlineMatrixClassifier(stream.rows, stream.cols).score_stream(*stream[:3])
            spent = 1e6 * (time.process_time() - start) / len(stream.y)
            found.append((score.error, score.loss, spent))
            others.append({key: (error(p, stream.y), log_loss(p, stream.y)) for key, p in simple(stream).items()})
        mean = {key: np.mean([each[key] for each in others], axis=0) for key in others[0]}
        best, sure = (min(mean, key=lambda key, k=k: mean[key][k]) for k in (0, 1))
        pool = "{:.4f}, {:.4f}, {:.0f}".format(*np.mean(found, axis=0))
        print(
            f"| {name} | {len(stream.y)} | {pool} | {mean[best][0]:.4f} ({best}), {mean[sure][1]:.4f} ({sure}) |",
            flush=True,
        )


def batch(names: list[str]) -> None:
    print("| table | pool, one pass | `LowRankImputer` on -1 and 1 |\n|---|---|---|")
    for name in names:
        i, j, y, *_ = STREAMS[name](np.random.default_rng(0))
        half = len(y) // 2
        pool = OnlineMatrixClassifier().fit((i[:half], j[:half]), y[:half])
        X = np.full((i.max() + 1, j.max() + 1), np.nan)
        X[i[:half], j[:half]] = y[:half]
        filled = LowRankImputer(random_state=0).fit_transform(X)
        wrong = np.mean((filled[i[half:], j[half:]] >= 0) != (y[half:] > 0))
        print(f"| {name} | {1 - pool.score((i[half:], j[half:]), y[half:]):.4f} | {wrong:.4f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--batch", action="store_true")
    parser.add_argument("--quick", action="store_true", help="one order of the one stream that is drawn, not read")
    options = parser.parse_args()
    if options.quick:
        options.orders, options.only = 1, ["rank one"]
    names = [name for name in STREAMS if any(word in name for word in options.only)]
    if options.batch:
        batch([name for name in names if not any(word in name for word in ("communities", "links", "party"))])
    else:
        streams(names, options.orders)


if __name__ == "__main__":
    main()
