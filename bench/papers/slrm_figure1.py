"""Figure 1 of "Sparse Linear Regression With Missing Data" with our figures.

D=100 columns, d=30 directions, w with 10 entries that are not 0; rows seen at rate p in training, .75 in validation and test. Panel a:
noiseless, by number of rows; b: noise on entries; c: noise on entries and labels; d: by p at noise variance 1; n = 12,800 in b to d, as in the
paper. Penalties and steps of both methods are chosen on 1,000 validation rows; six passes (the paper: at most 500). The paper does not say p of a to c.
The printed gate, gamma = .001, refuses nearly every row with a missing entry, so it is open here.
"""

from __future__ import annotations

import contextlib
from itertools import pairwise
from typing import Any

import numpy as np
from bench.papers._report import (
    Report,
    Verdict,
    above,
    by_seed,
    lines,
    pictures,
    read_number,
    read_table,
    save,
    share,
    table,
    word,
)
from bench.papers._run import Run
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from lacunar.lowrank import SLRMRegressor
from lacunar.papers.slrm import MPCR, SMPCR, PrintedSLRM, make_sparse_regression

TITLE = "SLRM, Figure 1"
RANK = 30
COLUMNS = 100
RIDGES = np.logspace(-4, 5, 19)
OPEN = 1 - 1e-9  # of (6): the printed .001 refuses nearly every row with a missing entry
PENALTIES = (1e-3, 1e-1)
VALIDATION = 1000  # rows; the paper gives no number
DRAWN = ("SLRM (paper)", "SMPCR", "SLRMRegressor", "mean + ridge", "HistGB", "Bayes")
PAPERS, PEERS = DRAWN[0], DRAWN[1]

SIZES = (100, 200, 400, 800, 1600, 3200)
RATES = (0.2, 0.35, 0.5, 0.75, 0.95)
# Panel -> position on its axis -> (n, p, variance of the noise on entries, on labels)
PANELS: dict[str, dict[float, tuple[int, float, float, float]]] = {
    "a p=.75": {n: (n, 0.75, 0, 0) for n in SIZES},
    "a p=.4": {n: (n, 0.4, 0, 0) for n in SIZES},
    "b": {s: (12800, 0.75, s, 0) for s in (0.01, 0.1, 0.5, 2)},
    "c": {s: (12800, 0.75, s, s) for s in (0.1, 0.5, 1, 2)},
    "d": {p: (12800, p, 1, 1) for p in RATES},
}
RATE = "the paper does not say p of (a): two are here"
FEWER = "six passes here, up to 500 there; both searched by the same validation rows"
AXES = {"a": "n", "b": "var of entries' noise", "c": "var of both noises", "d": "p"}


def world_of(n: int, p: float, sx2: float, sy2: float, seed: int) -> Any:
    """Rows of one world: `make_sparse_regression` at the paper's sizes, with validation rows of their own."""
    noise = {"sigma_x": sx2**0.5, "sigma_y": sy2**0.5}
    return make_sparse_regression(n, share_observed=p, **noise, n_validation=VALIDATION, random_state=seed)


def error_of(world: Any, predicted: Any) -> float:
    return float(np.mean((predicted - world.test.target) ** 2))


def bayes_error(world: Any, sx2: float) -> float:
    """Of E[y | observed entries], U and w known."""
    means = []
    for x in world.test.data:
        seen = ~np.isnan(x)
        part = world.basis[seen]
        means.append(np.linalg.solve(part.T @ part + max(sx2, 1e-10) * np.eye(RANK), part.T @ x[seen]) @ world.weights)
    return error_of(world, np.array(means))


def best(world: Any, models: list[Any]) -> float:
    """Test error of the model with the least error on the validation rows, as the paper chooses."""
    held_out, errors = {"X_val": world.validation.data, "y_val": world.validation.target}, {}
    for model in models:
        with contextlib.suppress(ValueError):  # this step diverged in its first pass
            model.fit(world.data, world.target, **(held_out if isinstance(model, PrintedSLRM) else {}))
            errors[model] = float(np.mean((model.predict(held_out["X_val"]) - held_out["y_val"]) ** 2))
    return error_of(world, min(errors, key=errors.__getitem__).predict(world.test.data)) if errors else float("inf")


def slrm_models(d: int, passes: int, penalties: tuple[float, ...] = PENALTIES) -> list[Any]:
    """lambda_1, lambda_2 = lambda_3 and rho of Algorithm 1: "a coarse range is enough"."""
    return [
        PrintedSLRM(
            d, lambda_1=entries, lambda_2=penalty, lambda_3=penalty, rho=rho, max_iter=passes, validate="pass", gamma=OPEN, random_state=0
        )
        for entries in (1.0, 10.0, 100.0)
        for penalty in penalties
        for rho in (1e-3, 1e-2)
    ]  # fmt: skip


def smpcr_models(d: int, passes: int, penalties: tuple[float, ...] = PENALTIES) -> list[Any]:
    """lambda and rho of SMPCR, as printed: PETRELS first, then the lasso by steps."""
    steps = (1e-4, 1e-3, 1e-2)
    return [SMPCR(d, lam=lam, rho=rho, max_iter=passes, random_state=0) for lam in penalties for rho in steps]


def cell(n: int, p: float, sx2: float, sy2: float, seed: int, passes: int) -> dict[str, float | None]:
    world = world_of(n, p, sx2, sy2, seed)

    def plain(model: Any) -> float:
        return error_of(world, model.fit(world.data, world.target).predict(world.test.data))

    return {
        "SLRM (paper)": best(world, slrm_models(RANK, passes)),
        "SMPCR": best(world, smpcr_models(RANK, passes)),
        "MPCR": plain(MPCR(RANK, random_state=0)),
        "SLRMRegressor": plain(SLRMRegressor(RANK, max_iter=200, random_state=0)),
        "mean + ridge": plain(make_pipeline(SimpleImputer(keep_empty_features=True), RidgeCV(RIDGES))),
        "HistGB": plain(HistGradientBoostingRegressor(random_state=0)),
        "Bayes": bayes_error(world, sx2),
    }


def wins(row: dict[str, list[float]]) -> int:
    """Seeds at which the paper's algorithm is below SMPCR."""
    return int(np.sum(np.array(row[PAPERS]) < np.array(row[PEERS])))


def draw(panels: dict[str, dict[float, Any]], rows: dict[str, Any], run: Run) -> Any:
    plt = pictures()
    figure, axes = plt.subplots(1, len(panels), figsize=(3.2 * len(panels), 3.4), squeeze=False)
    for axis, (panel, places) in zip(axes[0], panels.items(), strict=True):
        lines(axis, list(places), [rows[f"{panel} {at:g}"] for at in places], DRAWN)
        axis.set_yscale("log")
        axis.set_xscale("linear" if panel[0] == "d" else "log")
        axis.set_xlabel(AXES[panel[0]])
        axis.set_title(f"({panel})")
    axes[0][0].set_ylabel("test mean squared error")
    axes[0][-1].legend(fontsize=6)
    return save(figure, run.picture)


def below(rows: list[dict[str, str]]) -> tuple[int, int, int]:
    """Rows where the mean of SLRM is below that of SMPCR, is below by more than two standard errors, and is above by as much."""
    pairs = [(row[PAPERS], row[PEERS]) for row in rows]
    lower = sum(read_number(ours)[0] < read_number(theirs)[0] for ours, theirs in pairs)
    return lower, sum(above(theirs, ours) for ours, theirs in pairs), sum(above(*pair) for pair in pairs)


def beside(lower: int, surely_lower: int, surely_higher: int, of: int) -> str:
    noise = "by more than two standard errors"
    return f"lower at {lower} of {of} points; {noise} lower at {surely_lower}, higher at {surely_higher}"


def claims(shown: dict[str, dict[str, str]]) -> list[Verdict]:
    """The paper's sentences about the rows of the table, each with the rule that decides it."""

    def of(panel: str) -> list[dict[str, str]]:
        return [row for name, row in shown.items() if name.startswith(panel)]

    def path(panel: str, method: str = PAPERS) -> str:
        return f"({panel.strip()}) {method} " + ", ".join(row[method] for row in of(panel))

    def falls(panel: str, method: str) -> bool:
        rows = of(panel)
        return above(rows[0][method], rows[-1][method]) and not any(
            above(b[method], a[method]) for a, b in pairwise(rows)
        )

    def moves(rows: list[dict[str, str]], sign: int) -> bool:
        means = {m: [read_number(row[m])[0] for row in rows] for m in (PAPERS, PEERS)}
        return all(sign * (b - a) > 0 for line in means.values() for a, b in pairwise(line))

    def fallen(panel: str) -> str:
        first, *_, last = of(panel)
        return f"({panel}) " + ", ".join(f"{m} from {first[m]} to {last[m]}" for m in (PAPERS, PEERS))

    def rise(method: str) -> str:
        (low, a), (high, b) = (read_number(of("c ")[k][method]) for k in (0, -1))
        return f"{high - low:.3g} ({np.hypot(a, b):.1g})"

    panels = {p: below(of(p)) for p in ("a p=.75", "a p=.4")}
    n_lower, n_points = (sum(len(of(p)) if k else panels[p][0] for p in panels) for k in (0, 1))
    count = "; ".join(f"({p}) {beside(*panels[p], len(of(p)))}" for p in panels)
    smaller = {p: [above(row[PEERS], row[PAPERS]) for row in of(p)] for p in ("b ", "c ")}
    seen = [row for name, row in shown.items() if name.startswith("d ") and float(name[2:]) * COLUMNS > RANK]
    both = [row for row in seen if all(np.isfinite(read_number(row[m])[0]) for m in (PAPERS, PEERS))]
    source, picture, noise = "Section 6", "a picture", "two standard errors"
    return [
        Verdict("the performance of both improves with increasing n (a)", source, picture, f"{fallen('a p=.75')}; {fallen('a p=.4')}", word(all(falls(p, m) for p in panels for m in (PAPERS, PEERS))), f"the last mean is below the first, and none is above the one before, by more than {noise}", RATE),
        Verdict("the average error of SLRM is lower than that of SMPCR for all n (a)", source, picture, count, share(n_lower, n_points), "the mean is below SMPCR's at every n", f"{RATE}; where n is 800 and more at p = .75 both errors are the floor of the penalties that are searched, 1e-3 and .1 (`slrm_floor` searches 1e-6); {FEWER}"),
        Verdict("errors rise with the noise (b, c)", source, picture, f"{path('b ')}; {path('c ')}", word(moves(of("b "), 1) and moves(of("c "), 1)), "means of both methods rise from point to point"),
        Verdict("the error of SLRM is always substantially smaller (b, c)", source, picture, "; ".join(f"({p.strip()}) {sum(v)} of {len(v)} points" for p, v in smaller.items()), word(all(map(all, smaller.values()))), f"the mean is below SMPCR's by more than {noise} at every point", FEWER),
        Verdict("SLRM seems to be more noise tolerant than SMPCR (c)", source, picture, "; ".join(f"{m} rises by {rise(m)}" for m in (PAPERS, PEERS)), word(above(rise(PEERS), rise(PAPERS))), f"its mean rises by less from the least noise to the most, by more than {noise}", FEWER),
        Verdict("the error of both goes down as p increases (d)", source, picture, f"{path('d ')}; {path('d ', PEERS)}", word(len(both) > 1 and moves(both, -1)), f"means of both methods fall from point to point where both are finite and rows show more than {RANK} entries", f"at p = .2 a row shows 20 entries for {RANK} directions; {FEWER}"),
    ]  # fmt: skip


def run(run: Run) -> Report:
    panels, seeds, passes = PANELS, run.repeats(3), 6
    if run.quick:
        panels, seeds, passes = {"a p=.4": {n: (n, 0.4, 0, 0) for n in (200, 800)}}, 1, 4
    tasks = {
        f"{panel} {at:g} seed {seed}": (*setting, seed, passes)
        for seed in range(seeds)  # a whole figure of one seed before the next seed's
        for panel, places in panels.items()
        for at, setting in places.items()
    }
    rows = by_seed(run.cells(cell, tasks))
    shown = {name: {**row, "SLRM < SMPCR": f"{wins(row)} of {seeds}"} for name, row in rows.items()}
    small, large = rows["a p=.4 200"], rows["a p=.4 800"]
    made = table("panel, at", shown, [*small, "SLRM < SMPCR"])
    return Report(
        TITLE,
        made,
        f"{seeds} seeds, standard errors in brackets",
        [] if run.quick else claims(read_table(made.splitlines())),
        {
            "errors fall with n": np.mean(large[PAPERS]) < np.mean(small[PAPERS]),
            "at p = .4 SLRM is below SMPCR": np.mean(large[PAPERS]) < np.mean(large[PEERS]),
            "SLRMRegressor is far below both": np.mean(large["SLRMRegressor"]) < 0.1 * np.mean(large[PEERS]),
        },
        picture=draw(panels, rows, run),
    )
