"""Filling tables: what hidden entries come back as, how often pooled intervals hold the truth, and CPU seconds.

    OMP_NUM_THREADS=1 python bench/pages/impute.py [--only hidden|coverage|tails|mixed|rivals|speed] [--quick]

"hidden": entries of real tables are hidden at random and by other columns; the root mean squared error in standard deviations of the
columns, of `lacunar.impute.Imputer` beside `IterativeImputer` of scikit-learn with BayesianRidge, with ExtraTrees and with a random forest (as
missForest), `KNNImputer`, and softImpute and the regularised PCA of missMDA by their formulas.
"coverage": how often intervals of nominal 95 % hold each of four coefficients of linear, logistic and Cox regressions, where three columns
miss 10, 30 and 50 % by chance (MCAR) or by the other columns (MAR). "tails": the same by
the noise of the outcome. "mixed": the same by kind of effect in tables with categories. "rivals": beside R's mice and Amelia, where installed. "speed": 20 draws, 10 sweeps.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # lets the next import be
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from lacunar.datasets import hide_mar, hide_mcar
from lacunar.impute import CoxAnalysis, Imputer, LinearAnalysis, LogisticAnalysis, MultipleImputer, pool

# -- entries that were hidden -------------------------------------------------------------------------------------------


def trees() -> Any:
    forest = ExtraTreesRegressor(50, min_samples_leaf=2, random_state=0)
    return IterativeImputer(forest, max_iter=5, random_state=0)


def forest() -> Any:
    """Stekhoven and Buehlmann (2012): random forests, a third of the columns at a split."""
    grown = RandomForestRegressor(30, max_features=1 / 3, random_state=0)
    return IterativeImputer(grown, max_iter=4, random_state=0)


def low_rank(X: Any, start: Any, shrink: Callable[[Any], Any], steps: int) -> Any:
    """The table with gaps filled by its singular values, shrunk, again and again."""
    gone = np.isnan(X)
    filled = np.where(gone, start, X)
    for _ in range(steps):
        mean = filled.mean(axis=0)
        left, sizes, right = np.linalg.svd(filled - mean, full_matrices=False)
        filled = np.where(gone, left * shrink(sizes) @ right + mean, X)
    return filled


def soft(X: Any, share: float) -> Any:
    """Mazumder, Hastie and Tibshirani (2010): every singular value less a share of the largest."""
    largest = np.linalg.norm(np.nan_to_num(X), 2)
    return low_rank(X, 0.0, lambda sizes: np.maximum(sizes - share * largest, 0.0), 60)


def regularised(X: Any, rank: int) -> Any:
    """Josse and Husson (2016): the first singular values, less what noise adds to them."""

    def shrink(sizes: Any) -> Any:
        noise = np.mean(sizes[rank:] ** 2) if rank < len(sizes) else 0.0
        return np.where(np.arange(len(sizes)) < rank, np.maximum(sizes - noise / np.maximum(sizes, 1e-12), 0.0), 0.0)

    return low_rank(X, np.nanmean(X, axis=0), shrink, 100)


def chosen(fill: Callable[[Any, Any], Any], settings: Any) -> Any:
    """A filler with the setting that gives a tenth of the entries back best."""

    def best(X: Any) -> Any:
        rows, columns = np.nonzero(~np.isnan(X) & (np.random.default_rng(0).random(X.shape) < 0.1))
        part = X.copy()
        part[rows, columns] = np.nan
        part[:, np.isnan(part).all(axis=0)] = 0.0
        errors = [np.mean((fill(part, setting) - X)[rows, columns] ** 2) for setting in settings]
        return fill(X, settings[int(np.argmin(errors))])

    return FunctionTransformer(best)


FILLERS: dict[str, Callable[[], Any]] = {
    "lacunar": lambda: Imputer(random_state=0),
    "ridge": lambda: IterativeImputer(random_state=0),
    "extra trees": trees,
    "missForest": forest,
    "neighbours": lambda: KNNImputer(),
    "softImpute": lambda: chosen(soft, (0.5, 0.3, 0.2, 0.1, 0.05, 0.02)),
    "missMDA": lambda: chosen(regularised, (0, 1, 2, 3, 4, 5)),
}


def tables(quick: bool, most: int = 1000) -> Iterator[tuple[str, Any]]:
    """Complete tables of numbers, at most so many rows of each, drawn at random, in standard deviations."""
    loaders: dict[str, Callable[[], Any]] = {
        "iris": lambda: datasets.load_iris().data,
        "wine": lambda: datasets.load_wine().data,
        "diabetes": lambda: datasets.load_diabetes(scaled=False).data,
        "breast cancer": lambda: datasets.load_breast_cancer().data,
        "linnerud": lambda: np.hstack(datasets.load_linnerud(return_X_y=True)),
        "digits": lambda: datasets.load_digits().data[:, 18:46],
        "friedman": lambda: np.column_stack(datasets.make_friedman1(600, 6, random_state=0)),
        "spiral": lambda: np.column_stack(datasets.make_swiss_roll(600, noise=0.3, random_state=0)),
    }
    with contextlib.suppress(ImportError):
        from statsmodels import datasets as more

        names = ("anes96", "ccard", "copper", "fair", "modechoice", "scotland", "star98", "statecrime")
        loaders |= {name: functools.partial(complete_numbers, getattr(more, name)) for name in names}
    for name in list(loaders)[: 3 if quick else None]:
        X = np.asarray(loaders[name](), dtype=float)
        X = X[np.sort(np.random.default_rng(0).permutation(len(X))[:most])]
        yield name, StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])


def complete_numbers(module: Any) -> Any:
    """The columns of numbers of a data set of statsmodels that miss nothing."""
    return module.load_pandas().data.select_dtypes("number").dropna(axis=1).to_numpy(dtype=float)


def hidden(quick: bool, most: int = 1000, shares: tuple[float, ...] = (0.1, 0.3, 0.6)) -> None:
    ways = {f"MCAR {share:.0%}": (hide_mcar, share) for share in shares} | {"MAR 30%": (hide_mar, 0.3)}
    print("| table | rows x columns | missing | " + " | ".join(FILLERS) + " |")
    print("|---" * (3 + len(FILLERS)) + "|")
    errors, seconds = [], []
    for name, X in tables(quick, most):
        for way, (hide, share) in ways.items():
            seen = np.asarray(hide(X, 1 - share, random_state=0).data)
            mask = np.isnan(seen) & ~np.isnan(X)
            pairs = [filled_by(make, seen, X, mask) for make in FILLERS.values()]
            errors.append([error for error, _ in pairs])
            seconds.append([cost for _, cost in pairs])
            print_row([name, f"{len(X)} x {X.shape[1]}", way], errors[-1])
    table = np.array(errors)
    for title, values in (
        ("mean rank", (table.argsort(axis=1).argsort(axis=1) + 1.0).mean(axis=0)),
        ("share within .02 of the best", (table <= np.nanmin(table, axis=1, keepdims=True) + 0.02).mean(axis=0)),
        ("median CPU, of that of ridge", np.median(np.array(seconds) / np.array(seconds)[:, [1]], axis=0)),
    ):
        print_row([title, "", ""], values)


def filled_by(make: Callable[[], Any], seen: Any, X: Any, mask: Any) -> tuple[float, float]:
    """Root mean squared error at hidden entries, and CPU seconds."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filled = make().fit_transform(seen)
    error = float(np.sqrt(np.mean((filled - X)[mask] ** 2))) if filled.shape == X.shape else np.nan
    return error, time.process_time() - begun


def print_row(titles: list[str], values: Any) -> None:
    print("| " + " | ".join([*titles, *(f"{value:.3f}" for value in values)]) + " |", flush=True)


# -- coverage -----------------------------------------------------------------------------------------------------------

BETA = np.array([0.8, -0.8, 0.4, 0.0])  # of four columns of correlation .5


def least_squares(A: Any, y: Any) -> tuple[Any, Any, float]:
    """Coefficients, their covariance, and degrees of freedom."""
    inverse, df = np.linalg.inv(A.T @ A), len(A) - A.shape[1]
    coef = inverse @ A.T @ y
    return coef, inverse * np.sum((y - A @ coef) ** 2) / df, df


def newton(coef: Any, slope_and_information: Callable[[Any], tuple[Any, Any]]) -> tuple[Any, Any]:
    """A mode, and the inverse of its information."""
    for _ in range(30):
        slope, information = slope_and_information(coef)
        step = np.linalg.solve(information, slope)
        coef = coef + step * min(1.0, 1.0 / np.abs(step).max())
        if np.abs(step).max() < 1e-8:
            break
    return coef, np.linalg.inv(information)


def logistic(A: Any, y: Any) -> tuple[Any, Any]:
    def derivatives(coef: Any) -> tuple[Any, Any]:
        chance = 1 / (1 + np.exp(-A @ coef))
        return A.T @ (y - chance), (A * (chance * (1 - chance))[:, None]).T @ A

    return newton(np.zeros(A.shape[1]), derivatives)


def cox(X: Any, time: Any, event: Any) -> tuple[Any, Any]:
    """Partial likelihood of times without ties."""
    order = np.argsort(-time)
    X, event = X[order], event[order] > 0

    def derivatives(coef: Any) -> tuple[Any, Any]:
        risk = np.exp(X @ coef)
        total = risk.cumsum()
        mean = (risk[:, None] * X).cumsum(axis=0) / total[:, None]
        square = (risk[:, None, None] * X[:, :, None] * X[:, None]).cumsum(axis=0) / total[:, None, None]
        return (X - mean)[event].sum(axis=0), (square - mean[:, :, None] * mean[:, None])[event].sum(axis=0)

    return newton(np.zeros(X.shape[1]), derivatives)


def with_ones(table: Any) -> Any:
    return np.column_stack([table[:, :4], np.ones(len(table))])


def linear_world(X: Any, rng: Any) -> tuple[Any, Callable[[Any], Any]]:
    y = X @ BETA + 1.5 * rng.normal(size=len(X))
    return y[:, None], lambda table: least_squares(with_ones(table), table[:, 4])


def logistic_world(X: Any, rng: Any) -> tuple[Any, Callable[[Any], Any]]:
    y = (rng.logistic(size=len(X)) + X @ BETA > 0) * 1.0
    return y[:, None], lambda table: logistic(with_ones(table), y)


def cox_world(X: Any, rng: Any) -> tuple[Any, Callable[[Any], Any]]:
    """What stands for the outcome are the event and the cumulative hazard of Nelson and Aalen (White and Royston 2009)."""
    failure, censored = rng.exponential(size=len(X)) * np.exp(-X @ BETA), rng.exponential(2.0, size=len(X))
    time, event = np.minimum(failure, censored), (failure <= censored) * 1.0
    at_risk = len(X) - np.argsort(np.argsort(time))
    hazard = np.array([np.sum((event / at_risk)[time <= t]) for t in time])
    return np.column_stack([event, hazard]), lambda table: cox(table[:, :4], time, event)


WORLDS = {"linear": linear_world, "logistic": logistic_world, "Cox": cox_world}
ANALYSES = {
    "linear": LinearAnalysis("c4"),
    "logistic": LogisticAnalysis("c4"),
    "Cox": CoxAnalysis("c5", "c4"),  # the hazard orders the rows as times do
}


def hide_columns(X: Any, outcome: Any, share: float, at_random: bool, rng: Any) -> Any:
    """Three of four columns with `share` missing; unless by chance, by the first column and the outcome."""
    lean = X[:, 0] + (outcome[:, 0] - outcome[:, 0].mean()) / outcome[:, 0].std() if not at_random else np.zeros(len(X))
    middle = np.quantile(lean + rng.logistic(size=len(X)), share)
    X = X.copy()
    for j in (1, 2, 3):
        X[lean + rng.logistic(size=len(X)) < middle, j] = np.nan
    return X


def in_frame(table: Any, is_truth: bool) -> Any:
    """The table as a frame whose fifth column are truth values, where the outcome is one."""
    import pandas as pd

    frame = pd.DataFrame(table, columns=[f"c{j}" for j in range(table.shape[1])])
    return frame.assign(c4=frame["c4"] > 0) if is_truth else frame


def one_coverage(name: str, n: int, share: float, at_random: bool, method: str, seed: int) -> tuple[Any, Any]:
    """Which intervals hold the truth, and their widths."""
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal(np.zeros(4), 0.5 * np.ones((4, 4)) + 0.5 * np.eye(4), size=n)
    outcome, analysis = WORLDS[name](X, rng)
    frame = in_frame(np.column_stack([hide_columns(X, outcome, share, at_random, rng), outcome]), name != "linear")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"analysis": ANALYSES[name]} if method == "analysis" else {"method": method}
        imputer = MultipleImputer(random_state=seed, **options).fit(frame)
        pooled = imputer.analyse(lambda table: analysis(table.to_numpy(dtype=float)))
    ends = pooled.conf_int()[:4]
    return (ends[:, 0] <= BETA) & (ends[:, 1] >= BETA), ends[:, 1] - ends[:, 0]


def coverage(
    quick: bool, repeats: int = 100, sizes: tuple[int, ...] = (100, 500), models: tuple[str, ...] = tuple(WORLDS),
    methods: tuple[str, ...] = ("pmm",),
) -> None:  # fmt: skip
    """Coverage of every coefficient by model, mechanism, share missing and rows."""
    repeats = 3 if quick else repeats
    print(
        f"{'model':10}{'':6}{'missing':>8}{'rows':>6}{'method':>10}{'coverage':>29}{'mean':>7}{'width':>7}  of {repeats}"
    )
    for name in models:
        for at_random, share, n in itertools.product((True, False), (0.1, 0.3, 0.5), (100,) if quick else sizes):
            for method in methods:
                pairs = [one_coverage(name, n, share, at_random, method, seed) for seed in range(repeats)]
                hits, widths = (np.array(part) for part in zip(*pairs, strict=True))
                shares = " ".join(f"{share:.3f}" for share in hits.mean(axis=0))
                print(
                    f"{name:10}{'MCAR' if at_random else 'MAR':6}{share:8.0%}{n:6}{method:>10}{shares:>29}{hits.mean():7.3f}"
                    f"{widths.mean():7.3f}",
                    flush=True,
                )


def tails(quick: bool, repeats: int = 200, n: int = 600) -> None:
    """Coverage by the noise of the outcome, by which entries are missing."""
    noises: dict[str, Callable[[Any], Any]] = {
        "normal": lambda rng: rng.normal(size=n),
        "t(4)": lambda rng: rng.standard_t(4, size=n) / np.sqrt(2),
        "exponential": lambda rng: rng.exponential(size=n),
        "lognormal": lambda rng: np.exp(rng.normal(size=n)) / np.sqrt(np.e**2 - np.e),
        "exponential, downwards": lambda rng: -rng.exponential(size=n),  # entries are missing in the tail
    }
    repeats = 2 if quick else repeats
    print(f"{'noise':24}{'missing':>8}{'method':>8}{'coverage':>29}{'mean':>7}{'width':>7}  of {repeats}")
    for (name, noise), share, method in itertools.product(noises.items(), (0.3, 0.5), ("pmm", "norm")):
        pairs = [one_of_tails(noise, n, share, method, seed) for seed in range(repeats)]
        hits, widths = (np.array(part) for part in zip(*pairs, strict=True))
        shares = " ".join(f"{share:.3f}" for share in hits.mean(axis=0))
        print(f"{name:24}{share:8.0%}{method:>8}{shares:>29}{hits.mean():7.3f}{widths.mean():7.3f}", flush=True)


def one_of_tails(noise: Callable[[Any], Any], n: int, share: float, method: str, seed: int) -> tuple[Any, Any]:
    """Which intervals hold the truth, and their widths."""
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal(np.zeros(4), 0.5 * np.ones((4, 4)) + 0.5 * np.eye(4), size=n)
    y = X @ BETA + 1.5 * noise(rng)
    table = np.column_stack([hide_columns(X, y[:, None], share, False, rng), y])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imputer = MultipleImputer(method=method, random_state=seed).fit(table)
        ends = imputer.analyse(lambda drawn: least_squares(with_ones(drawn), drawn[:, 4])).conf_int()[:4]
    return (ends[:, 0] <= BETA) & (ends[:, 1] >= BETA), ends[:, 1] - ends[:, 0]


# -- mixed tables --------------------------------------------------------------------------------------------------------

EFFECTS = {
    "number": 0.5,
    "skewed": 0.3,
    "bounded": 0.8,
    "truth": -0.7,
    "c: b": 0.6,
    "c: c": -0.6,
    "d: b": 0.5,
    "d: c": 0.0,
    "d: d": -0.5,
}


def mixed_frame(rng: Any, n: int) -> Any:
    """Two numbers, one of them complete, a skewed and a bounded one, a truth value, three and four levels, and the outcome."""
    import pandas as pd

    z = rng.multivariate_normal(np.zeros(6), 0.4 * np.ones((6, 6)) + 0.6 * np.eye(6), size=n)
    c, d = np.digitize(z[:, 4], [-0.4, 0.6]), np.digitize(z[:, 5] + 0.5 * (z[:, 4] > 0.6), [-0.7, 0.1, 0.9])
    frame = pd.DataFrame(
        {
            "complete": z.sum(axis=1) + rng.normal(size=n),
            "number": z[:, 0],
            "skewed": np.exp(0.7 * z[:, 1]),
            "bounded": 1 / (1 + np.exp(-1.5 * z[:, 2])),
            "truth": z[:, 3] > 0.3,
            "c": pd.Categorical.from_codes(c, list("abc")),
            "d": pd.Categorical.from_codes(d, list("abcd")),
        }
    )
    design = mixed_design(frame)
    frame["y"] = design[:, 1:-1] @ np.array(list(EFFECTS.values())) + rng.normal(size=n)
    return frame


def mixed_design(frame: Any) -> Any:
    """The column of ones, the columns of EFFECTS, and the complete one, whose effect is 0."""
    levels = [frame[name].astype(str) == level for name, level in (key.split(": ") for key in EFFECTS if ":" in key)]
    numbers = [frame[name].astype(float) for name in ("number", "skewed", "bounded", "truth")]
    return np.column_stack([np.ones(len(frame)), *numbers, *levels, frame["complete"]]).astype(float)


def joint_shares(frame: Any) -> Any:
    """Shares (3, 4) of the levels of both categories together."""
    places = 4 * frame["c"].cat.codes.to_numpy() + frame["d"].cat.codes.to_numpy()
    return np.bincount(places, minlength=12).reshape(3, 4) / len(frame)


def mixed(quick: bool, repeats: int = 150, n: int = 300) -> None:
    """Coverage by kind of effect, and how far joint shares of two categories lie from those of the complete tables."""
    repeats = 2 if quick else repeats
    truth, hits, widths, off = np.array(list(EFFECTS.values())), [], [], []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        full = mixed_frame(rng, n)
        lean = full["complete"] / full["complete"].std() + full["y"] / full["y"].std()
        chance = 1 / (1 + np.exp(1.2 - 0.5 * lean))
        frame = full.copy()
        for name in ("number", "skewed", "truth", "c", "d"):
            frame[name] = frame[name].astype("boolean") if name == "truth" else frame[name]
            frame[name] = frame[name].mask(rng.random(n) < chance)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tables = list(MultipleImputer(random_state=seed).fit(frame).draws())
            ends = pool([least_squares(mixed_design(table), table["y"].to_numpy()) for table in tables]).conf_int()[
                1:-1
            ]
        hits.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        widths.append(ends[:, 1] - ends[:, 0])
        off.append(np.mean([joint_shares(table) for table in tables], axis=0) - joint_shares(full))
    for k, name in enumerate(EFFECTS):
        print(f"{name:10} coverage {np.mean(hits, axis=0)[k]:.3f}, width {np.mean(widths, axis=0)[k]:.3f}")
    error = np.std(off, axis=0) / np.sqrt(repeats)
    print(
        f"mean coverage {np.mean(hits):.3f}; joint shares off by {np.abs(np.mean(off, axis=0)).max():.4f} at most, standard error "
        f"{error.max():.4f}; {repeats} tables",
        flush=True,
    )


# -- R ------------------------------------------------------------------------------------------------------------------

R_SCRIPT = """
suppressMessages({library(mice); library(Amelia)})
options(digits = 12)
args <- commandArgs(TRUE)
for (k in seq_len(as.integer(args[2])) - 1) {
  table <- read.csv(file.path(args[1], paste0(k, ".csv")))
  begun <- proc.time()
  one <- mice(table, m = 20, maxit = 10, printFlag = FALSE, seed = k)
  seconds <- sum((proc.time() - begun)[1:2])
  pooled <- summary(pool(with(one, lm(c4 ~ c0 + c1 + c2 + c3))), conf.int = TRUE)
  cat("mice", seconds, pooled[2:5, "2.5 %"], pooled[2:5, "97.5 %"], "\\n")
  set.seed(k)
  begun <- proc.time()
  two <- amelia(table, m = 20, p2s = 0)
  seconds <- sum((proc.time() - begun)[1:2])
  fits <- lapply(two$imputations, function(t) lm(c4 ~ c0 + c1 + c2 + c3, data = t))
  pooled <- summary(pool(as.mira(fits)), conf.int = TRUE)
  cat("Amelia", seconds, pooled[2:5, "2.5 %"], pooled[2:5, "97.5 %"], "\\n")
}
"""


def rivals(quick: bool, repeats: int = 20) -> None:
    """Coverage, width and CPU seconds beside R's mice and Amelia, where R has them: linear, n=200, 30 % missing at random."""
    repeats = 2 if quick else repeats
    if shutil.which("Rscript") is None:
        print("R is not installed: nothing to stand beside")
        return
    lines: dict[str, list[list[float]]] = {"lacunar": []}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(repeats):
            rng = np.random.default_rng(seed)
            X = rng.multivariate_normal(np.zeros(4), 0.5 * np.ones((4, 4)) + 0.5 * np.eye(4), size=200)
            outcome, analysis = linear_world(X, rng)
            frame = in_frame(np.column_stack([hide_columns(X, outcome, 0.3, False, rng), outcome]), False)
            frame.to_csv(f"{folder}/{seed}.csv", index=False, na_rep="NA")
            begun = time.process_time()
            tables = list(MultipleImputer(random_state=seed).fit(frame).draws())
            seconds = time.process_time() - begun
            ends = pool([analysis(table.to_numpy()) for table in tables]).conf_int()[:4]
            lines["lacunar"].append([seconds, *ends[:, 0], *ends[:, 1]])
        script = Path(folder) / "rivals.R"
        script.write_text(R_SCRIPT, encoding="utf-8")
        said = subprocess.run(
            ["Rscript", str(script), folder, str(repeats)], capture_output=True, text=True, check=False
        )
    if said.returncode:
        print("R has no mice or no Amelia: " + said.stderr.strip().splitlines()[-1])
    for line in said.stdout.splitlines():
        name, *numbers = line.split()
        if name in ("mice", "Amelia"):
            lines.setdefault(name, []).append([float(number) for number in numbers])
    for name, rows in lines.items():
        table = np.array(rows)
        low, high = table[:, 1:5], table[:, 5:9]
        hits = (low <= BETA) & (high >= BETA)
        print(
            f"{name:10} coverage {hits.mean():.3f}, width {(high - low).mean():.3f}, median CPU s {np.median(table[:, 0]):.3f}, "
            f"{len(table)} tables",
            flush=True,
        )


# -- seconds ------------------------------------------------------------------------------------------------------------


def wide_table(n: int, p: int, mixed: bool) -> Any:
    """Five factors; with `mixed` a fifth of the columns booleans and a fifth four levels; 30 % missing."""
    import pandas as pd

    rng = np.random.default_rng(0)
    X = 0.6 * rng.normal(size=(n, 5)) @ rng.normal(size=(5, p)) + rng.normal(size=(n, p))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(p)])
    for j in range(p if mixed else 0):
        if j % 5 == 0:
            frame[f"c{j}"] = pd.array(X[:, j] > 0, dtype="boolean")
        elif j % 5 == 1:
            frame[f"c{j}"] = pd.Categorical(np.array(list("abcd"))[np.digitize(X[:, j], [-1, 0, 1])])
    return frame.mask(rng.random((n, p)) < 0.3)


def speed(quick: bool) -> None:
    drawing_seconds(wide_table(60, 5, True), 1)  # imports what is imported at the first use
    for n, p, mixed in ((200, 5, False), (2000, 20, False), (2000, 20, True), (10_000, 50, False), (10_000, 50, True))[
        : 3 if quick else None
    ]:
        frame = wide_table(n, p, mixed)
        processor, alone = drawing_seconds(frame, 1)
        line = f"{n} x {p}{' mixed' if mixed else ''}: 20 draws in {processor:.2f} CPU s"
        if n >= 10_000:
            line += f", with n_jobs=2 {alone / drawing_seconds(frame, 2)[1]:.2f} times as fast"
        print(line, flush=True)


def drawing_seconds(frame: Any, n_jobs: int) -> tuple[float, float]:
    """Seconds of the processor, and by the clock, of 20 draws."""
    begun = time.process_time(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in MultipleImputer(n_jobs=n_jobs).fit(frame).draws():
            pass
    return time.process_time() - begun[0], time.perf_counter() - begun[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["hidden", "coverage", "tails", "mixed", "rivals", "speed"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=100, help="tables of a cell of coverage")
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 500])
    parser.add_argument("--models", nargs="+", default=list(WORLDS), choices=list(WORLDS), help="of `coverage`")
    parser.add_argument(
        "--methods", nargs="+", default=["pmm"], choices=["pmm", "norm", "analysis"], help="of `coverage`"
    )
    parser.add_argument("--most", type=int, default=1000, help="rows of a real table at most, of `hidden`")
    parser.add_argument(
        "--shares", type=float, nargs="*", default=[0.1, 0.3, 0.6], help="missing at random, of `hidden`"
    )
    args = parser.parse_args()
    hide = functools.partial(hidden, most=args.most, shares=tuple(args.shares))
    cover = functools.partial(
        coverage, repeats=args.repeats, sizes=tuple(args.rows), models=tuple(args.models), methods=tuple(args.methods)
    )
    parts = {"hidden": hide, "coverage": cover, "tails": tails, "mixed": mixed, "rivals": rivals, "speed": speed}
    for name, run in parts.items():
        if args.only in (None, name):
            run(args.quick)


if __name__ == "__main__":
    main()
