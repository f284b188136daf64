"""The pool of `OnlineMatrixClassifier` beside simple online learners and batch completion, on streams of real data.

`LACUNAR_DATA=FOLDER python bench/pages/pool.py [--orders 5] [--only votes ...]`: error, log loss and calibration error over whole streams, every
label predicted before it is learned, means over random orders (films: the one order of time); the best of the simple learners in hindsight beside it.
`--batch`: the pool and batch completion (implicit and river where they are installed) fitted to the first half of a stream and asked about the second.
`--cold`: a fifth of the rows asked about with nothing learned of them but by what their side information says.
`--latency`: how long single pairs take in `learn_one`, on a generated stream (`--pairs 1000000 --rows 3000 --columns 1000`), or on one of those named by `--only`: percentiles and the longest.
`--flips`: generated streams whose labels all flip now and then, beside factors by stochastic gradient.
`--million`: the million ratings of MovieLens-1M in a random order, as likes, and how long they take; `--ratings`: as stars.
"""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
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
        return Stream(*pairs[order].T, y[order], Graph(G), Graph(G), graph=G)  # type: ignore[call-arg]  # the star gives two

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


def million_films(rng: np.random.Generator) -> Stream:
    X = sp.coo_array(table("movielens1m").X)
    order = rng.permutation(X.nnz)
    return Stream(X.coords[0][order], X.coords[1][order], np.where(X.data[order] >= 4, 1, -1))


def likes(rng: np.random.Generator) -> Stream:
    """Generated: 300 people in six circles of friends and 100 things, the taste of a circle, of all and of one's own."""
    circle, m, n = rng.integers(0, 6, 300), 300, 100
    A = np.triu(rng.random((m, m)) < np.where(circle[:, None] == circle, 0.12, 0.01), 1).astype(float)
    taste = 1.2 * rng.normal(size=(6, n))[circle] + 0.7 * rng.normal(size=n) + 0.5 * rng.normal(size=(m, n))
    i, j = rng.integers(0, m, 8000), rng.integers(0, n, 8000)
    G = sp.csr_array(A + A.T)
    return Stream(i, j, np.where(rng.random(8000) < 1 / (1 + np.exp(-taste[i, j])), 1, -1), Graph(G))


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
    "likes with friends": likes,
    "films in time": films,
    "jokes": jokes,
}
COLD = (
    "votes senate90, party and state",
    "votes senate106, party and state",
    "films in time",
    "likes with friends",
    "links",
    "communities",
)


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


def calibration(p: Any, y: Any) -> float:
    """Expected calibration error: |mean of p - share of positives| over ten bins of p, weighted by their sizes."""
    bin_of = np.minimum((10 * p).astype(int), 9)
    gap = np.bincount(bin_of, p - (y > 0), 10)
    return float(np.abs(gap).sum() / len(y))


def streams(names: list[str], orders: int) -> None:
    print(
        "| stream | pairs | pool: error, log loss, calibration error, us a pair | best simple: error, log loss |\n|---|---|---|---|"
    )
    for name in names:
        found, others = [], []
        for seed in range(1 if name == "films in time" else orders):
            stream = STREAMS[name](np.random.default_rng(seed))
            start = time.process_time()
            score = OnlineMatrixClassifier(stream.rows, stream.cols).score_stream(*stream[:3])
            spent = 1e6 * (time.process_time() - start) / len(stream.y)
            found.append((score.error, score.loss, calibration(score.probabilities, stream.y), spent))
            others.append({key: (error(p, stream.y), log_loss(p, stream.y)) for key, p in simple(stream).items()})
        mean = {key: np.mean([each[key] for each in others], axis=0) for key in others[0]}
        best, sure = (min(mean, key=lambda key, k=k: mean[key][k]) for k in (0, 1))
        pool = "{:.4f}, {:.4f}, {:.4f}, {:.0f}".format(*np.mean(found, axis=0))
        print(
            f"| {name} | {len(stream.y)} | {pool} | {mean[best][0]:.4f} ({best}), {mean[sure][1]:.4f} ({sure}) |",
            flush=True,
        )


def of_pool(stream: Stream, half: int) -> Any:
    """What each of these learners makes of the second half: at least 0 for a positive label."""
    i, j, y = stream[:3]
    model = OnlineMatrixClassifier(stream.rows, stream.cols).fit((i[:half], j[:half]), y[:half])
    return model.decision_function((i[half:], j[half:]))


def of_imputer(stream: Stream, half: int) -> Any:
    i, j, y = stream[:3]
    X = np.full((i.max() + 1, j.max() + 1), np.nan)
    X[i[:half], j[:half]] = y[:half]
    return LowRankImputer(random_state=0).fit_transform(X)[i[half:], j[half:]]


def of_als(stream: Stream, half: int) -> Any:
    """Biases and factors by alternating ridge regressions on -1 and 1, rank and penalty by a tenth of the first half."""
    i, j, y = (each[:half] for each in stream[:3])
    hold, keep = np.arange(half) % 10 == 0, np.arange(half) % 10 > 0
    shape = stream.i.max() + 1, stream.j.max() + 1

    def wrong(choice: tuple[int, float]) -> float:
        return error(0.5 + als(i[keep], j[keep], y[keep], shape, *choice)(i[hold], j[hold]), y[hold])

    best = min(((rank, penalty) for rank in (1, 2, 5, 10) for penalty in (1.0, 4.0)), key=wrong)
    return als(i, j, y, shape, *best)(stream.i[half:], stream.j[half:])


def als(i: Any, j: Any, y: Any, shape: tuple[int, int], rank: int, penalty: float) -> Callable[[Any, Any], Any]:
    rng, mean = np.random.default_rng(0), y.mean()
    U, V = (0.3 * rng.normal(size=(size, rank + 2)) for size in shape)
    U[:, 0], V[:, 1] = 1.0, 1.0  # bias of the column, bias of the row
    for _ in range(15):
        for index, of, A, B, fixed in ((i, j, U, V, 0), (j, i, V, U, 1)):
            order = np.argsort(index, kind="stable")
            free = np.arange(rank + 2) != fixed
            for rows in np.split(order, np.flatnonzero(np.diff(index[order])) + 1):
                F = B[of[rows]]
                rest = y[rows] - mean - F[:, fixed]
                A[index[rows[0]], free] = np.linalg.solve(
                    F[:, free].T @ F[:, free] + penalty * np.eye(rank + 1), F[:, free].T @ rest
                )
    return lambda a, b: mean + (U[a] * V[b]).sum(axis=1)


def of_implicit(package: ModuleType, stream: Stream, half: int) -> Any:
    """Likes have preference 1, dislikes 0, both with confidence 20."""
    i, j, y = stream[:3]
    X = sp.csr_array((20.0 * y[:half], (i[:half], j[:half])), shape=(i.max() + 1, j.max() + 1))
    model = package.cpu.als.AlternatingLeastSquares(factors=8, regularization=4.0, num_threads=1, random_state=0)
    model.fit(sp.csr_matrix(X), show_progress=False)
    return (model.user_factors[i[half:]] * model.item_factors[j[half:]]).sum(axis=1) - 0.5


def of_river(package: ModuleType, stream: Stream, half: int) -> Any:
    model = package.reco.BiasedMF(n_factors=5, l2_bias=0.02, l2_latent=0.02, seed=0)
    for a, b, label in zip(*(each[:half].tolist() for each in stream[:3]), strict=True):
        model.learn_one(a, b, label)
    return np.array(
        [model.predict_one(a, b) for a, b in zip(stream.i[half:].tolist(), stream.j[half:].tolist(), strict=True)]
    )


def installed(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def batch(names: list[str]) -> None:
    made: dict[str, Callable[[Stream, int], Any]] = {
        "pool, one pass": of_pool,
        "`LowRankImputer` on -1 and 1": of_imputer,
        "ALS": of_als,
    }
    if (package := installed("implicit")) is not None:
        importlib.import_module("implicit.cpu.als")
        made["implicit, ALS"] = partial(of_implicit, package)
    if (package := installed("river")) is not None:
        importlib.import_module("river.reco")
        made["river, BiasedMF, one pass"] = partial(of_river, package)
    print("| stream | " + " | ".join(made) + " |\n" + "|---" * (1 + len(made)) + "|")
    for name in names:
        stream = STREAMS[name](np.random.default_rng(0))
        half = len(stream.y) // 2
        wrong = [np.mean((each(stream, half) >= 0) != (stream.y[half:] > 0)) for each in made.values()]
        print(f"| {name} | " + " | ".join(f"{each:.4f}" for each in wrong) + " |", flush=True)


def cold(names: list[str], orders: int) -> None:
    """Nothing was learned of a fifth of the rows (in a network: vertices, on either side)."""
    print(
        "| stream | pool with sides: error, log loss | without | majority of the column | of group and column |\n"
        + "|---" * 5
        + "|"
    )
    for name in names:
        found = []
        for seed in range(orders):
            rng = np.random.default_rng(seed)
            stream = STREAMS[name](rng)
            i, j, y = stream[:3]
            hidden = rng.random(max(i.max(), j.max()) + 1) < 0.2
            new = hidden[i] | hidden[j] if stream.graph is not None else hidden[i]
            told, asked = (i[~new], j[~new]), (i[new], j[new])
            made = []
            for sides in ((stream.rows, stream.cols), (None, None)):
                model = OnlineMatrixClassifier(*sides, unseen="prior" if sides == (None, None) else "grow").fit(
                    told, y[~new]
                )
                p = model.predict_proba(asked)[:, 1]
                made += [error(p, y[new]), log_loss(p, y[new])]
            keys = [j] if stream.groups is None else [j, stream.groups[i] + 10**6 * j]
            for key in keys:
                votes_of = {k: y[~new][key[~new] == k].sum() for k in np.unique(key)}
                usual = np.array([votes_of[k] or y[~new].sum() for k in key[new].tolist()])
                made.append(np.mean((usual >= 0) != (y[new] > 0)))
            found.append(made)
        mean = np.mean(found, axis=0)
        last = f"{mean[5]:.4f}" if len(mean) > 5 else ""
        print(
            f"| {name} | {mean[0]:.4f}, {mean[1]:.4f} | {mean[2]:.4f}, {mean[3]:.4f} | {mean[4]:.4f} | {last} |",
            flush=True,
        )


def gibbs(
    i: Any, j: Any, y: Any, shape: tuple[int, int], sweeps: int = 200, rank: int = 10
) -> Callable[[Any, Any], Any]:
    """Bayesian matrix factorisation with biases: the mean of Gibbs samples of the last two thirds of the sweeps."""
    rng, mean, d = np.random.default_rng(0), y.mean(), rank + 1
    blocks = [0.3 * rng.normal(size=(size, d)) for size in shape]  # bias, factors
    sides = [(np.unique(vertex), [(of[k], y[k] - mean) for k in parts(vertex)]) for vertex, of in ((i, j), (j, i))]
    precision, samples = 1.0, []
    for sweep in range(sweeps):
        for side, (own_rows, lists) in enumerate(sides):
            own, other = blocks[side], blocks[1 - side]
            prior = rng.gamma(len(own_rows) / 2 + 1, 2 / (np.square(own[own_rows]).sum(axis=0) + 0.5))
            H, right = np.tile(np.diag(prior), (len(own_rows), 1, 1)), np.empty((len(own_rows), d, 1))
            for k, (index, target) in enumerate(lists):
                F = other[index]
                rest = target - F[:, 0]
                F[:, 0] = 1.0
                H[k] += precision * F.T @ F
                right[k, :, 0] = precision * F.T @ rest
            L = np.linalg.cholesky(H)
            centre = np.linalg.solve(L, right) + rng.normal(size=right.shape)
            own[own_rows] = np.linalg.solve(L.transpose(0, 2, 1), centre)[..., 0]
        U, V = (block.copy() for block in blocks)
        precision = rng.gamma(len(y) / 2, 2 / np.square(y - mean - of_blocks(U, V, i, j)).sum())
        if sweep >= sweeps // 3:
            samples.append((U, V))
    return lambda a, b: np.clip(mean + np.mean([of_blocks(U, V, a, b) for U, V in samples], axis=0), 1, 5)


def parts(index: Any) -> list[Any]:
    """Places of every value of an index, values ascending."""
    order = np.argsort(index, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(index[order])) + 1)


def of_blocks(U: Any, V: Any, i: Any, j: Any) -> Any:
    return U[i, 0] + V[j, 0] + np.einsum("tk,tk->t", U[i, 1:], V[j, 1:])


def stars_of_river(package: ModuleType, i: Any, j: Any, stars: Any, rate: float) -> Any:
    sgd = package.optim.SGD
    model = package.reco.BiasedMF(
        n_factors=5, bias_optimizer=sgd(rate), latent_optimizer=sgd(rate), l2_bias=0.02, l2_latent=0.02, seed=0
    )
    expected = np.empty(len(stars))
    for t, (row, column, rating) in enumerate(zip(i.tolist(), j.tolist(), stars.tolist(), strict=True)):
        expected[t] = model.predict_one(row, column)
        model.learn_one(row, column, rating)
    return np.clip(expected, 1, 5)


def million_ratings() -> None:
    """RMSE of the stars expected before each rating is learned, in a random order, by tenths of the stream. Bayesian
    matrix factorisation learns anew from all ratings before a tenth: what hindsight and patience reach.
    """
    X = sp.coo_array(table("movielens1m").X)
    order = np.random.default_rng(0).permutation(X.nnz)
    i, j, stars = X.coords[0][order], X.coords[1][order], X.data[order]
    print("| learner | CPU s | RMSE | by tenths |\n|---|---|---|---|")

    def row(name: str, spent: float, expected: Any) -> None:
        off = np.square(expected - stars)
        tenths = [np.sqrt(part.mean()) for part in np.array_split(off, 10)]
        cells = " ".join("-" if np.isnan(each) else f"{each:.4f}" for each in tenths)
        print(f"| {name} | {spent:.0f} | {np.sqrt(off.mean()):.4f} | {cells} |".replace("nan", "-"), flush=True)

    start = time.process_time()
    score = OnlineMatrixClassifier(thresholds="auto").score_stream(i, j, stars, classes=range(1, 6))
    row("pool", time.process_time() - start, 1 + score.probabilities.sum(axis=1))
    if (package := installed("river")) is not None:
        importlib.import_module("river.reco")
        for rate in (0.01, 0.02, 0.05):
            start = time.process_time()
            expected = stars_of_river(package, i, j, stars, rate)
            row(f"river, BiasedMF, rate {rate}", time.process_time() - start, expected)
    expected, start = np.full(len(stars), np.nan), time.process_time()
    for tenth in (3, 6, 9):
        learned, asked = tenth * len(stars) // 10, np.array_split(np.arange(len(stars)), 10)[tenth]
        model = gibbs(i[:learned], j[:learned], stars[:learned], X.shape)
        expected[asked] = model(i[asked], j[asked])
    row("matrix factorisation by Gibbs samples, learned anew", time.process_time() - start, expected)


def million() -> None:
    stream = million_films(np.random.default_rng(0))
    start = time.process_time()
    score = OnlineMatrixClassifier().score_stream(*stream[:3])
    spent, most = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"pool: error {score.error:.4f}, log loss {score.loss:.4f}, {spent:.0f} CPU s, {most:.2f} GiB at most",
        flush=True,
    )
    i, j, y = (each.tolist() for each in stream[:3])
    for rank, rate in ((0, 0.1), (2, 0.1), (5, 0.1), (5, 0.05)):
        p = np.array(list(gradient(i, j, y, rank, rate)))
        print(
            f"rank {rank}, rate {rate}: error {error(p, stream.y):.4f}, log loss {log_loss(p, stream.y):.4f}",
            flush=True,
        )


def of_factors(n: int, rows: int, columns: int, rank: int, seed: int) -> Stream:
    """Generated: uniformly drawn pairs, biases and factors of a rank in the log-odds."""
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(rows, rank)), rng.normal(size=(columns, rank))
    i, j = rng.integers(0, rows, n), rng.integers(0, columns, n)
    odds = (U[i] * V[j]).sum(axis=1) + 0.7 * (rng.normal(size=rows)[i] + rng.normal(size=columns)[j])
    return Stream(i, j, np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), 1, -1))


@np.errstate(over="ignore")  # long steps of the gradient
def flips(n: int) -> None:
    """All labels flip after every 1,000 of n pairs: error of the pool beside that of factors by stochastic gradient, the best of ten in hindsight."""
    print(
        "| rows x columns, rank | pool: error, log loss, us a pair | rank 5, rate 0.2 | best gradient |\n"
        + "|---" * 4
        + "|"
    )
    for rows, columns, rank in ((20, 10, 1), (20, 10, 2), (30, 20, 2), (40, 30, 1), (60, 40, 1), (60, 40, 2)):
        rng = np.random.default_rng(0)
        U, V = rng.normal(size=(rows, rank)), rng.normal(size=(columns, rank))
        i, j, turn = rng.integers(0, rows, n), rng.integers(0, columns, n), np.arange(n) // 1000 % 2
        y = np.where((U[i] * V[j]).sum(axis=1) > 0, 1, -1) * np.where(turn, -1, 1)
        start = time.process_time()
        score = OnlineMatrixClassifier().score_stream(i, j, y)
        spent = 1e6 * (time.process_time() - start) / len(y)
        others = {}
        for k, rate in [(k, rate) for k in (2, 5) for rate in (0.1, 0.2, 0.4, 0.8, 1.6)]:
            p = np.array(list(gradient(i.tolist(), j.tolist(), y.tolist(), k, rate)))
            others[f"rank {k}, rate {rate}"] = error(p, y), log_loss(p, y)
        best = min(others, key=lambda name: others[name][0])
        cells = ["{:.3f}, {:.3f}".format(*others[name]) for name in ("rank 5, rate 0.2", best)]
        print(
            f"| {rows} x {columns}, {rank} | {score.error:.3f}, {score.loss:.3f}, {spent:.0f} | {cells[0]} | {cells[1]} ({best}) |",
            flush=True,
        )


def latency(stream: Stream) -> None:
    """Times of every `learn_one`; CPU time beside wall-clock time, which a busy machine lengthens."""
    model = OnlineMatrixClassifier(stream.rows, stream.cols)
    n = len(stream.y)
    times = np.empty((n, 2), np.int64)
    for t, pair in enumerate(zip(*(part.tolist() for part in stream[:3]), strict=True)):
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        model.learn_one(*pair)
        times[t] = time.thread_time_ns() - cpu, time.perf_counter_ns() - wall
    milliseconds = times / 1e6
    print("| ms | median | 90 % | 99 % | 99.9 % | 99.99 % | most | sum, s |\n" + "|---" * 8 + "|")
    for name, column in zip(("CPU", "wall clock"), milliseconds.T, strict=True):
        shares = np.percentile(column, [50, 90, 99, 99.9, 99.99, 100])
        print(f"| {name} | " + " | ".join(f"{share:.3f}" for share in shares) + f" | {column.sum() / 1e3:.1f} |")
    longest = np.argsort(milliseconds[:, 0])[::-1][:20]
    print("longest, CPU ms at pair: " + ", ".join(f"{milliseconds[t, 0]:.1f} at {t + 1:,}" for t in longest))
    print(f"errors {model.n_mistakes_ / n:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[""])
    for other in ("batch", "cold", "flips", "latency", "million", "ratings"):
        parser.add_argument(f"--{other}", action="store_true")
    for size, default in (("pairs", 10**6), ("rows", 3000), ("columns", 1000)):
        parser.add_argument(f"--{size}", type=int, default=default, help="of --latency")
    parser.add_argument(
        "--quick", action="store_true", help="one order of the one stream that is drawn, not read; short flips, latency"
    )
    options = parser.parse_args()
    if options.quick:
        options.orders, options.only = 1, ["rank one"]
        flips(1200)
        latency(of_factors(2000, 60, 40, 3, 0))
    names = [name for name in STREAMS if any(word in name for word in options.only)]
    if options.million:
        million()
    elif options.ratings:
        million_ratings()
    elif options.flips:
        flips(20000)
    elif options.latency and options.only == [""]:
        latency(of_factors(options.pairs, options.rows, options.columns, 3, 0))
    elif options.latency:
        for name in names:
            print(f"\n{name}")
            latency(STREAMS[name](np.random.default_rng(0)))
    elif options.cold:
        cold([name for name in names if any(word in name for word in COLD)], options.orders)
    elif options.batch:
        batch([name for name in names if not any(word in name for word in ("communities", "links", "party"))])
    else:
        streams(names, options.orders)


if __name__ == "__main__":
    main()
