"""Figure 2 of the SLRM paper, on the tasks that are there, in its protocol: appendix B.

Rows of training, validation and test are drawn anew, in the paper's numbers; rank, penalties and steps of both methods are chosen on the
validation rows; medians of five draws of the mean squared error over the variance of y. Leukemia retains a tenth of its training entries.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from bench.papers._report import Report, Verdict, by_seed, pictures, read_table, save, share, word
from bench.papers._report import table as markdown
from bench.papers._run import Run, real
from bench.papers.slrm_figure1 import best, error_of, slrm_models, smpcr_models
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from lacunar.datasets import hide_mcar
from lacunar.lowrank import SLRMRegressor

TITLE = "SLRM, Figure 2"
# Task -> (data, target, rows to train on, to validate on, to test on): the sizes of appendix B.
TASKS: dict[str, tuple[str, str | None, int, int, int]] = {
    "leukemia": ("leukemia", None, 30, 20, 22),
    "ctslice": ("ctslice", None, 100, 100, 100),
    **{f"atp1d {name}": ("atp1d", name, 200, 50, 46) for name in ("ALLminpA", "ALLminp0", "aDLminpA", "aCOminpA", "aFLminpA", "aUAminpA")},
}  # fmt: skip
RIDGES = np.logspace(-3, 6, 19)
RETAINED = 0.1  # of leukemia's training entries
SEEN = 0.75  # of the entries of the others: the paper does not say
DRAWS = 5
LONG = {"leukemia": 25}  # draws with --long: of 22 rows to test, five decide nothing
PASSES = 15
RANKS = (
    2,
    5,
    10,
    20,
    40,
)  # the paper's are those of 99 % of the variance: with --long, by `cell_99`
PAPERS, PEERS = "SLRM (paper)", "SMPCR"


def drawn(name: str, seed: int) -> Bunch:
    """Training, validation and test rows: columns standardised and labels centred by those of training, entries hidden after."""
    data, target, *sizes = TASKS[name]
    X, y = real(data, target)
    order = np.random.default_rng(seed).permutation(len(y))[: sum(sizes)]
    parts = np.split(order, np.cumsum(sizes)[:-1])
    scaler, centre = StandardScaler().fit(X[parts[0]]), float(np.mean(y[parts[0]]))
    shares = (
        (RETAINED, 1.0, 1.0) if name == "leukemia" else (SEEN,) * 3
    )  # the paper hides leukemia's training entries only
    train, validation, test = (
        Bunch(
            data=hide_mcar(scaler.transform(X[part]), share, random_state=10 * seed + k).data, target=y[part] - centre
        )
        for k, (part, share) in enumerate(zip(parts, shares, strict=True))
    )
    return Bunch(**train, validation=validation, test=test)


def boosted(world: Bunch) -> float:
    """Test error of gradient boosting, which refuses columns without two different values."""
    X = world.data
    kept = np.nanmax(X, axis=0, initial=-np.inf) > np.nanmin(X, axis=0, initial=np.inf)
    model = HistGradientBoostingRegressor(random_state=0).fit(X[:, kept], world.target)
    return error_of(world, model.predict(world.test.data[:, kept]))


def cell(name: str, seed: int, ranks: tuple[int, ...]) -> dict[str, float]:
    """Test errors over the variance of the test labels."""
    world = drawn(name, seed)
    ranks = tuple(d for d in ranks if d < min(world.data.shape))
    imputed = make_pipeline(SimpleImputer(keep_empty_features=True), RidgeCV(RIDGES)).fit(world.data, world.target)
    errors = {
        PAPERS: best(world, [m for d in ranks for m in slrm_models(d, PASSES)]),
        PEERS: best(world, [m for d in ranks for m in smpcr_models(d, PASSES)]),
        "SLRMRegressor": best(world, [SLRMRegressor(d, random_state=0) for d in ranks]),
        "mean + ridge": error_of(world, imputed.predict(world.test.data)),
        "HistGB": boosted(world),
    }
    return {method: value / float(np.var(world.test.target)) for method, value in errors.items()}


def rank_99(name: str) -> int:
    """Components of 99 % of the variance of all rows, standardised, as section 6 chooses d: 155 on our rows of ctslice, 181 on the paper's."""
    data, target, *_ = TASKS[name]
    sizes = np.linalg.svd(StandardScaler().fit_transform(real(data, target)[0]), compute_uv=False) ** 2
    return int(np.searchsorted(np.cumsum(sizes) / sizes.sum(), 0.99) + 1)


def cell_99(name: str, seed: int) -> dict[str, float]:
    """Test errors of both methods of the paper at its rank, over the variance of the test labels."""
    world, d = drawn(name, seed), rank_99(name)
    errors = {PAPERS: best(world, slrm_models(d, PASSES)), PEERS: best(world, smpcr_models(d, PASSES))}
    return {method: value / float(np.var(world.test.target)) for method, value in errors.items()}


def draw(shown: dict[str, dict[str, str]], path: Path) -> Path:
    """The picture of a table: medians, and bars from the least to the largest."""
    plt = pictures()
    figure, axes = plt.subplots(1, len(shown), figsize=(1.6 * len(shown), 3.6), squeeze=False, sharey=True)
    for axis, (name, row) in zip(axes[0], shown.items(), strict=True):
        values = {m: [float(part) for part in re.findall(r"[\d.]+", text)] for m, text in row.items() if text != "-"}
        median, least, largest = np.array(list(values.values())).T
        # Rounded to fewer digits than the median, an end may lie on its other side.
        axis.errorbar(list(values), median, np.maximum([median - least, largest - median], 0), fmt="o", capsize=3)
        axis.set_title(name, fontsize=9)
        axis.set_yscale("log")
        axis.tick_params(axis="x", rotation=80, labelsize=7)
    axes[0][0].set_ylabel("MSE / var y")
    return save(figure, path)


def claims(shown: dict[str, dict[str, str]]) -> list[Verdict]:
    """The paper's sentences about the medians; those at its own ranks are said beside the others."""
    every = {name: [float(row[m].split()[0]) for m in (PAPERS, PEERS)] for name, row in shown.items()}
    names = [name for name in shown if name in TASKS]
    medians = {name: every[name] for name in names}
    below = [name for name, (ours, theirs) in medians.items() if ours < theirs]
    differ = "ctslice has 757 of its 53,500 rows here; colon cancer and ATP7d are not to be had; the paper gives no share of entries for ctslice and ATP: three quarters here; columns are standardised, where the paper divides prices by 1000; on leukemia, it says, SLRM might at times be worse; ranks are chosen on the validation rows, where the paper has those of 99 % of the variance"
    at_99 = [f"{name}: {ours:.2f} against {theirs:.2f}" for name, (ours, theirs) in every.items() if name not in names]
    differ += f" (by these, so many draws as stand below the table, {', '.join(at_99)})" * bool(at_99)
    tickets = [name for name in names if name.startswith("atp1d")]
    gains = [1 - medians[name][0] / medians[name][1] for name in tickets if name in below]
    return [
        Verdict(
            "the median error of SLRM is below SMPCR's on all tasks",
            "Section 6.1",
            "a picture",
            ", ".join(f"{name} {ours:.2f} against {theirs:.2f}" for name, (ours, theirs) in medians.items()),
            share(len(below), len(names)),
            "lower median of the draws; so few draws give no margin",
            differ,
        ),
        Verdict(
            "on almost all of the tasks of ATP1d SLRM far outperforms SMPCR",
            "Section 6.1",
            "a picture",
            f"lower on {len(gains)} of {len(tickets)}, by {min(gains):.0%} to {max(gains):.0%}",
            word(len(gains) >= len(tickets) - 1),
            "lower median on all tasks but one at least, as the paper gives no number for far",
            "as above",
        ),
    ]


def run(run: Run) -> Report:
    names, draws = (["atp1d ALLminpA"], 1) if run.quick else (list(TASKS), run.repeats(DRAWS))
    ranks = (5,) if run.quick else RANKS
    of_task = {name: LONG.get(name, draws) if run.long else draws for name in names}
    found = by_seed(
        run.cells(cell, {f"{name} seed {s}": (name, s, ranks) for name in names for s in range(of_task[name])})
    )
    at_99 = {}
    if run.long:
        tasks = {f"{name}, d = {rank_99(name)} seed {s}": (name, s) for name in names for s in range(draws)}
        at_99 = by_seed(run.cells(cell_99, tasks))
    rows = {name: {m: middle(values) for m, values in row.items()} for name, row in (found | at_99).items()}
    made = markdown("median of MSE / var y", rows, [PAPERS, PEERS, "SLRMRegressor", "mean + ridge", "HistGB"])
    counts = {name: len(row[PAPERS]) for name, row in (found | at_99).items()}
    others = "".join(f"; {count} of {name}" for name, count in counts.items() if count != draws)
    repeats = f"{draws} draws{others}; in brackets the least and the largest"
    if run.only:
        return Report(TITLE, made, repeats)
    median = {n: {m: float(np.median(v)) for m, v in row.items()} for n, row in found.items()}
    below = [n for n in names if median[n][PAPERS] < median[n][PEERS]]
    return Report(
        TITLE,
        made,
        repeats,
        [] if run.quick else claims(read_table(made.splitlines())),
        {
            "where a target is a number every method has less than the variance": all(
                value < 1 for n in names if n != "leukemia" for value in median[n].values()
            ),
            **({} if run.quick else {"SLRM is below SMPCR on most tasks": len(below) > len(names) / 2}),
        },
        [],
        draw(read_table(made.splitlines()), run.picture),
    )


def middle(values: list[float]) -> str:
    """Median, least and largest."""
    return f"{np.median(values):.3f} ({min(values):.2f}-{max(values):.2f})"
