"""The price of partial information in d: the question of the paper's section 4.

Gaussian rows of a two-dimensional subspace (variances .6, .4), r = 2: coherent, where the subspace lives on four attributes, and incoherent,
where it is a random one. Rows until the excess is .04 of the trace (mean over the eight seeds of a group), by steps of 1.2, for uniform and
adaptive active POPCA; the slope is that of log rows in log d, its error that over four groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from bench.papers._report import NO_CLAIM, Report, Verdict, mean_and_error, number, pictures, save, table, word
from bench.papers._run import Run

from lacunar.active import ActivePOPCA

TITLE = "POPCA, price in d"
STRENGTH = np.array([0.6, 0.4])
STEP = 0.1  # of a slope: what steps of 1.2 in rows may move it
GROUP = 8  # seeds whose mean excess says how many rows are enough


def basis_of(kind: str, d: int) -> Any:
    basis, live = np.zeros((2, d)), 4 if kind == "coherent" else d
    basis[:, :live] = np.linalg.qr(np.random.default_rng(d).normal(size=(live, 2)))[0].T
    return basis


def oracle_of(basis: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    loaded = basis * np.sqrt(STRENGTH)[:, None]
    return lambda indices: rng.normal(size=2) @ loaded[:, indices]


def excess(components: Any, basis: Any) -> float:
    return float(1 - np.sum(STRENGTH * np.sum((components @ basis.T) ** 2, axis=0)))


def rows_needed(kind: str, strategy: str, d: int, seeds: int, group: int = 0) -> int:
    basis, of_group = basis_of(kind, d), range(group * seeds, (group + 1) * seeds)
    models = [ActivePOPCA(d, 2, 2, strategy=strategy, center=False, random_state=s) for s in of_group]
    oracles = [oracle_of(basis, 500 + s) for s in of_group]
    m = 4 * d
    while True:
        for model, oracle in zip(models, oracles, strict=True):
            model.run(oracle, m - getattr(model, "n_told_", 0))
        if np.mean([excess(model.result().components_, basis) for model in models]) <= 0.04:
            return m
        m = int(1.2 * m)


def draw(sizes: list[int], found: dict[Any, list[int]], slopes: dict[Any, float], run: Run) -> Any:
    plt = pictures()
    figure, axis = plt.subplots(figsize=(6, 4.2))
    for (kind, strategy), rows in found.items():
        style = {"uniform": "--", "adaptive": "-"}[strategy]
        color = {"coherent": "C3", "incoherent": "C0"}[kind]
        axis.loglog(sizes, rows, f"o{style}", color=color, label=f"{kind}, {strategy}: d^{slopes[kind, strategy]:.1f}")
    axis.set_xlabel("d")
    axis.set_ylabel("rows until the excess is .04")
    axis.set_title("Price of seeing two attributes a row")
    axis.legend()
    return save(figure, run.picture)


def run(run: Run) -> Report:
    sizes, seeds, groups = ([8, 16, 32], 3, 1) if run.quick else ([8, 16, 32, 64, 128], GROUP, run.repeats(4))
    pairs = [(kind, strategy) for kind in ("coherent", "incoherent") for strategy in ("uniform", "adaptive")]
    tasks = {
        f"{kind}, {strategy}, d={d} group {g}": (kind, strategy, d, seeds, g)
        for g in range(groups)
        for kind, strategy in pairs
        for d in sizes
    }
    cells = run.cells(rows_needed, tasks)
    needed = {
        pair: np.array([[cells[f"{pair[0]}, {pair[1]}, d={d} group {g}"] for d in sizes] for g in range(groups)])
        for pair in pairs
    }
    found = {pair: np.exp(np.log(rows).mean(axis=0)).round().astype(int).tolist() for pair, rows in needed.items()}
    by_group = {
        pair: [float(np.polyfit(np.log(sizes), np.log(row), 1)[0]) for row in rows] for pair, rows in needed.items()
    }
    slopes = {pair: float(np.mean(values)) for pair, values in by_group.items()}
    error = {pair: mean_and_error(values)[1] for pair, values in by_group.items()}
    columns = [*(f"d={d}" for d in sizes), "slope"]
    shown = {
        f"{pair[0]}, {pair[1]}": dict(zip(columns, [*map(str, rows), number(by_group[pair])], strict=True))
        for pair, rows in found.items()
    }
    uniform = slopes["coherent", "uniform"]
    quadratic = abs(uniform - 2) <= max(2 * error["coherent", "uniform"], STEP)
    return Report(
        TITLE,
        table("subspace, draws", shown, columns),
        f"{groups} groups of {seeds} seeds: the first number of rows, by steps of 1.2, at which the mean excess of a group is .04, geometric means over groups; standard errors over groups in brackets",
        [
            Verdict(
                "the price of uniform draws is quadratic in d/r",
                "Corollary 3, Theorem 4",
                "slope 2",
                f"slope {number(by_group['coherent', 'uniform'], 2)} where the subspace lives on few attributes, {number(by_group['incoherent', 'uniform'], 2)} where it does not",
                word(bool(quadratic)),
                f"slope within two standard errors of 2, or within {STEP:g}, on few attributes",
                "the theorem's bound is the worst case; the second family is not",
            ),
            Verdict(
                "can a linear price be had without Theorem 7's condition?",
                "Section 4",
                "open",
                f"adaptive draws: slope {number(by_group['coherent', 'adaptive'], 2)} on few attributes, {number(by_group['incoherent', 'adaptive'], 2)} on all; no proof",
                NO_CLAIM,
                "-",
            ),
        ],
        {
            "uniform draws cost more than linearly in d": uniform > 1.2,
            "adaptive draws are cheaper on coherent subspaces": found["coherent", "adaptive"][-1]
            < found["coherent", "uniform"][-1] / 2,
        },
        picture=draw(sizes, found, slopes, run),
    )
