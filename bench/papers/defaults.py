"""Our defaults beside the printed algorithms, in twelve worlds of the papers.

Printed is the algorithm of the paper in its protocol: what the paper chooses on rows held out is chosen so here, and a stream comes to both in
the same batches. A default is told the dimension where the printed algorithm is, and nothing else. Errors are in variances of the labels, excess in traces,
or shares of mistakes. A ratio is that of means over seeds, default over printed, both of them at least 1e-6.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from bench.papers._report import Report, by_seed, number, table
from bench.papers._run import Run
from bench.papers.completion_table1 import cell as biclustered
from bench.papers.completion_table1 import stream_of
from bench.papers.karma_figure2 import paper_protocol
from bench.papers.slrm_figure1 import best, error_of, slrm_models
from bench.papers.subspace_active import cell as active
from sklearn.utils import Bunch

from lacunar import KarmaRegressorCV
from lacunar.completion import Graph, OnlineMatrixClassifier
from lacunar.datasets import hide_mcar
from lacunar.lowrank import POPCA, SLRMOnlineRegressor, SLRMRegressor, SLRMRegressorCV
from lacunar.papers.completion import make_biclustered
from lacunar.papers.karma import make_block_margin, make_subspace_regression
from lacunar.papers.slrm import make_sparse_regression
from lacunar.papers.subspace import PrintedPOPCA, make_coins

TITLE = "Defaults"
ALLOWED = 1.02  # times the printed error
NOTHING = 1e-6  # what counts as no error
PASSES = 6
BATCH = 100  # rows that a stream brings at once
Errors = dict[str, float]


def karma(data: Bunch, n: int, seed: int) -> Errors:
    """Errors on the rows behind the first n."""
    X, y = data.data, data.target.astype(float)
    models = {"printed": paper_protocol((1, 2, 3, 4), seed), "KarmaRegressorCV": KarmaRegressorCV(random_state=seed)}
    return {name: float(np.mean((m.fit(X[:n], y[:n]).predict(X[n:]) - y[n:]) ** 2)) for name, m in models.items()}


def slrm(world: Bunch, d: int) -> Errors:
    models = {
        "SLRMRegressor": SLRMRegressor(d, random_state=0),
        "SLRMRegressorCV": SLRMRegressorCV([d], random_state=0),
        "SLRMOnlineRegressor": SLRMOnlineRegressor(d, random_state=0),
    }
    errors = {
        name: error_of(world, m.fit(world.data, world.target).predict(world.test.data)) for name, m in models.items()
    }
    return in_variances(world, {"printed": best(world, slrm_models(d, PASSES)), **errors})


def slrm_stream(world: Bunch, d: int) -> Errors:
    """One pass over batches; the printed algorithm validates after each of them."""
    held_out = {"X_val": world.validation.data, "y_val": world.validation.target}
    models = []
    for model in slrm_models(d, 1):
        with contextlib.suppress(ValueError):  # steps that overflow
            models.append(streamed(model, world, **held_out))
    errors = {
        "printed": min(models, key=lambda model: model.best_error_),
        "SLRMOnlineRegressor": streamed(SLRMOnlineRegressor(d, random_state=0), world),
    }
    return in_variances(world, {name: error_of(world, m.predict(world.test.data)) for name, m in errors.items()})


def streamed(model: Any, world: Bunch, **held_out: Any) -> Any:
    for start in range(0, len(world.target), BATCH):
        batch = slice(start, start + BATCH)
        model.partial_fit(world.data[batch], world.target[batch], **held_out)
    return model


def in_variances(world: Bunch, errors: Errors) -> Errors:
    return {name: error / float(np.var(world.test.target)) for name, error in errors.items()}


def little_variance(n: int, seed: int, d: int = 3, D: int = 30) -> Bunch:
    """Rows of d directions and one of little variance, on which alone y depends."""
    rng = np.random.default_rng(seed)
    sizes = np.r_[np.full(d, 1.5), 0.4] * (D / d) ** 0.5
    basis = np.linalg.qr(rng.normal(size=(D, d + 1)))[0] * sizes

    def drawn(m: int, part: int) -> Bunch:
        latent = rng.normal(size=(m, d + 1))
        complete = latent @ basis.T + 0.5 * rng.normal(size=(m, D))
        hidden = hide_mcar(complete, 0.6, random_state=10 * seed + part)
        return Bunch(data=hidden.data, target=latent[:, d] + 0.3 * rng.normal(size=m))

    return Bunch(**drawn(n, 0), validation=drawn(1000, 1), test=drawn(2000, 2))


def coins(n: int, share: float, seed: int) -> Errors:
    """Excess of the subspace of one coin's likelier side."""
    data = make_coins(n, 8, 1, eps=0.03, share_observed=share, random_state=seed)
    models = {"printed": PrintedPOPCA(1, 8 * share), "POPCA": POPCA(1)}
    least = float(np.trace(data.components @ data.second_moment @ data.components.T))
    found = {name: model.fit(data.data).components_ for name, model in models.items()}
    return {name: least - float(np.trace(V @ data.second_moment @ V.T)) for name, V in found.items()}


def mbeg(d: int, seed: int) -> Errors:
    errors = active(d, 1, 2, 1, seed)
    return {"printed": errors["MBEG sampled"], "MBEG": errors["MBEG erm"], "ActivePOPCA": errors["adaptive"]}


def completion(n: int, beta: float, seed: int) -> Errors:
    """Error rates on a stream of all entries."""
    errors = biclustered(n, beta, seed, "paper")
    i, j, y, _ = stream_of(data := make_biclustered((n, n), graph_noise=beta, random_state=seed))
    pool = OnlineMatrixClassifier(Graph(data.row_graph), Graph(data.column_graph))
    return {
        "printed": errors["random"],
        "MatrixExponentiatedGradient": errors["default"],
        "OnlineMatrixClassifier": pool.score_stream(i, j, y).error,
    }


def sparse(n: int, p: float, noise: float, seed: int) -> Bunch:
    return make_sparse_regression(
        n, share_observed=p, sigma_x=noise**0.5, sigma_y=noise**0.5, random_state=seed
    )  # D = 100, d = 30


WORLDS: dict[str, Any] = {
    "KARMA, Figure 2, p = .5": lambda seed: karma(make_subspace_regression(1500, share_observed=0.5, random_state=seed), 500, seed),
    "KARMA, Figure 3, w.x": lambda seed: karma(make_block_margin(1200, random_state=seed), 200, seed),
    "KARMA, Figure 3, sign, margin 1": lambda seed: karma(make_block_margin(1200, margin=1.0, random_state=seed), 200, seed),
    "SLRM, Figure 1 (a), p = .75": lambda seed: slrm(sparse(400, 0.75, 0.0, seed), 30),
    "SLRM, Figure 1 (a), p = .4": lambda seed: slrm(sparse(400, 0.4, 0.0, seed), 30),
    "SLRM, Figure 1 (c), noise .1": lambda seed: slrm(sparse(800, 0.75, 0.1, seed), 30),
    "SLRM, a direction of little variance": lambda seed: slrm(little_variance(300, seed), 3),
    "SLRM, a stream without noise": lambda seed: slrm_stream(sparse(800, 0.75, 0.0, seed), 30),
    "SLRM, a stream with noise .1": lambda seed: slrm_stream(sparse(800, 0.75, 0.1, seed), 30),
    "POPCA, Theorem 4, r = 4 of 8": lambda seed: coins(2000, 0.5, seed),
    "MBEG, Theorem 7, d = 6": lambda seed: mbeg(6, seed),
    "Side information, Table 1, n = 40, beta = .125": lambda seed: completion(40, 0.125, seed),
}  # fmt: skip


def cell(name: str, seed: int) -> Errors:
    return WORLDS[name](seed)


def ratio(default: list[float], printed: list[float]) -> float:
    return max(float(np.mean(default)), NOTHING) / max(float(np.mean(printed)), NOTHING)


def run(run: Run) -> Report:
    seeds = 1 if run.quick else run.repeats(3)
    worlds = [name for name in WORLDS if not (run.quick and name.startswith("SLRM, Figure"))]
    found = by_seed(run.cells(cell, {f"{w} seed {s}": (w, s) for w in worlds for s in range(seeds)}))
    ratios = {
        (w, name): ratio(row[name], row["printed"]) for w, row in found.items() for name in row if name != "printed"
    }
    columns = ["printed", "default", "default / printed"]
    shown = {
        f"{w}: {name}": dict(
            zip(columns, [number(found[w]["printed"]), number(found[w][name]), f"{times:.3g}"], strict=True)
        )
        for (w, name), times in ratios.items()
    }
    return Report(
        TITLE,
        table("world: default", shown, columns),
        f"{seeds} seeds, standard errors in brackets",
        [],
        {f"every default has at most {ALLOWED} times the printed error": max(ratios.values()) <= ALLOWED},
        [f"{sum(times <= ALLOWED for times in ratios.values())} of {len(ratios)} defaults have at most {ALLOWED} times the printed error; the largest ratio is {max(ratios.values()):.3g}."],
    )  # fmt: skip
