"""Figure 3 of "Classification with Low Rank and Missing Data": blocks of columns seen or missed together, by sample size.

Rows in a subspace of dimension 20 in 200, a random division into three blocks, each seen with probability 1/3 given that one is. The
paper says "mean square error" and "large margin" and gives neither the labels nor the margin, so both readings are here: the target
w.x, and its sign for rows at least one standard deviation from the boundary, fitted by squared loss. Errors on 2000 fresh rows.
"""

from __future__ import annotations

from pathlib import Path

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
    table,
    word,
)
from bench.papers._run import Run
from bench.papers.karma_figure2 import imputed, paper_protocol
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer

from lacunar import KarmaRegressorCV
from lacunar.papers.karma import make_block_margin

TITLE = "KARMA, Figure 3"
BOTH_READINGS = "the paper gives neither labels nor margin, so w.x and its sign with margin 1 were both run"
SIZES = (100, 200, 500, 1000, 2000)
LONG = (10_000,)  # the paper's m, of which a cell takes a quarter of an hour and 4 GB
READINGS = {"w.x": None, "sign, margin 1": 1.0}
DRAWN = ("karma, paper protocol", "0-imputation", "mean + ridge", "HistGB")


def cell(margin: float | None, n: int, seed: int, n_test: int) -> dict[str, float]:
    data = make_block_margin(n + n_test, margin=margin, random_state=seed)
    X, y = data.data, data.target.astype(float)
    models = {
        "karma, paper protocol": paper_protocol((1, 2, 3, 4), seed),
        "karma, gamma = 2": paper_protocol((2,), seed),
        "KarmaRegressorCV()": KarmaRegressorCV(random_state=seed),
        "0-imputation": paper_protocol((1,), seed),
        "mean + ridge": imputed(SimpleImputer()),
        "mean + indicators + ridge": imputed(SimpleImputer(add_indicator=True)),
        "HistGB": HistGradientBoostingRegressor(random_state=0),
    }
    return {name: np.mean((m.fit(X[:n], y[:n]).predict(X[n:]) - y[n:]) ** 2) for name, m in models.items()}


def draw(shown: dict[str, dict[str, str]], path: Path) -> Path:
    """The picture of a table."""
    plt = pictures()
    figure, axes = plt.subplots(1, len(READINGS), figsize=(4.5 * len(READINGS), 4), squeeze=False)
    for axis, reading in zip(axes[0], READINGS, strict=True):
        rows = {int(name.rpartition("=")[2]): row for name, row in shown.items() if name.startswith(f"{reading}, m=")}
        lines(axis, sorted(rows), [rows[n] for n in sorted(rows)], DRAWN)
        axis.set_xscale("log")
        axis.set_xlabel("sample size")
        axis.set_title(f"target {reading}")
    axes[0][0].set_ylabel("mean square error")
    axes[0][-1].legend(fontsize=7)
    return save(figure, path)


def claims(shown: dict[str, dict[str, str]]) -> list[Verdict]:
    """The paper's sentences about the rows of the table, each with the rule that decides it."""
    karma, zero, noise = "karma, paper protocol", "0-imputation", "by more than two standard errors"
    last = max(
        int(name.rpartition("=")[2]) for name, row in shown.items() if " (" in row[karma]
    )  # of one seed there is no error
    large = {reading: shown[f"{reading}, m={last}"] for reading in READINGS}
    seen = ", ".join(f"{reading}: {row[karma]} against {row[zero]}" for reading, row in large.items())
    small, exact = shown["w.x, m=200"], large["w.x"]
    ran = "" if last == LONG[0] else f"; m = {LONG[0]:,} was not run here"
    return [
        Verdict("karma significantly outperforms 0-imputation", "Section 5.1.2", "a picture", f"m = {last}, {seen}", word(all(above(row[zero], row[karma]) for row in large.values())), f"lower mean error, {noise}, for both targets", BOTH_READINGS + ran),
        Verdict("gamma >= 3 expresses a target of zero expected loss", "Section 5.1.2", "loss 0", f"{exact[karma]} at m = {last}; gamma = 2 stays at {exact['karma, gamma = 2']}", word(read_number(exact[karma])[0] < 1e-3), "mean error below .001 of the variance"),
        Verdict("a comparably small sample is enough", "Section 5.1.2", "a picture", f"m = 200: {small[karma]} against {small[zero]}", word(above(small[zero], small[karma])), f"at m = 200, the number of columns, lower mean error {noise}"),
    ]  # fmt: skip


def run(run: Run) -> Report:
    sizes, seeds, n_test = ((200, 500), 1, 600) if run.quick else (SIZES + LONG * run.long, run.repeats(5), 2000)
    tasks = {
        f"{reading}, m={n} seed {s}": (margin, n, s, n_test)
        for s in range(seeds)
        for reading, margin in READINGS.items()
        for n in sizes
    }
    rows = by_seed(run.cells(cell, tasks))
    made = table("target, rows", rows, list(next(iter(rows.values()))))
    counts = {name: len(next(iter(row.values()))) for name, row in rows.items()}
    fewer = "".join(f"; {count} of {name}" for name, count in counts.items() if count < seeds)
    repeats = f"{seeds} seeds, standard errors in brackets{fewer}"
    if run.only:
        return Report(TITLE, made, repeats)
    large = {reading: rows[f"{reading}, m={sizes[-1]}"] for reading in READINGS}
    last = {r: {name: np.mean(values) for name, values in row.items()} for r, row in large.items()}
    wins = {r: last[r]["karma, paper protocol"] < 0.7 * last[r]["0-imputation"] for r in READINGS}
    exact = last["w.x"]["karma, paper protocol"]
    return Report(
        TITLE,
        made,
        repeats,
        [] if run.quick else claims(read_table(made.splitlines())),
        {
            "karma is exact where the target is w.x": exact < 1e-2,
            "karma is below .7 of 0-imputation, whatever the reading": all(wins.values()),
            "gamma = 2 is not enough for exactness": last["w.x"]["karma, gamma = 2"] > 3 * exact,
        },
        picture=draw(read_table(made.splitlines()), run.picture),
    )
