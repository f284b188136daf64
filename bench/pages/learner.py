"""`LacunarClassifier` and `LacunarRegressor` beside their peers on 37 tables, or `--tables` (of `learner_tables.py`): error, log loss, CPU seconds, mean ranks.

    OMP_NUM_THREADS=1 LACUNAR_DATA=... python bench/pages/learner.py [--tables horses,mixed_rules] [--learners lacunar,forest] [--out FILE] [--record]
    OMP_NUM_THREADS=1 LACUNAR_DATA=... python bench/pages/learner.py --complete [--record]

The same folds for all. "*": more than one standard error behind the best, where the error is of the mean over folds with Nadeau and Bengio's
correction, or over the rows of a single test set. Finished fits are kept in FILE (JSON lines). Peers are what a careful user would write: their
own handling of missing values and of text where they have it; LightGBM, CatBoost and XGBoost, as their authors ship them, AutoGluon and FLAML
in the seconds of the clock that ours took on the same fold, where they are installed. A run of all takes an hour and a half of one core.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from learner_ensembles import AutoGluon, Flaml, stacking
from learner_tables import COMPLETE, TABLES, Problem, table
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # lets the next import be
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from lacunar import KarmaClassifierCV, KarmaRegressorCV, LacunarClassifier, LacunarRegressor

sys.path.insert(0, str(Path(__file__).parents[2]))  # where the tools are a package
from bench.tools import records

QUICK = ["hepatitis", "wine_self50", "diabetes_self50"]
LEAST = 1e-7  # of a probability in the log loss


class Columns:
    """Text as each peer wants it: one column a level, categories, or words."""

    def __init__(self, X: Any) -> None:
        is_text = {c: str(X[c].dtype) in ("object", "str") for c in X} if hasattr(X, "columns") else {}
        self.levels = {c: sorted(X[c].dropna().unique(), key=str) for c, text in is_text.items() if text}
        self.frame = bool(is_text)

    def numbers(self, X: Any) -> Any:
        return (
            np.column_stack([part for c in X for part in self._flags(X[c], c)]) if self.frame else np.asarray(X, float)
        )

    def _flags(self, column: Any, name: str) -> list[Any]:
        if name not in self.levels:
            return [column.to_numpy(float)]
        levels = self.levels[name][1:] if len(self.levels[name]) == 2 else self.levels[name]
        missing = pd.isna(column).to_numpy()
        return [np.where(missing, np.nan, (column == level).to_numpy(float)) for level in levels]

    def categories(self, X: Any) -> Any:
        if not self.levels:
            return np.asarray(X, float)
        return X.assign(**{c: pd.Categorical(X[c], categories=levels) for c, levels in self.levels.items()})

    def words(self, X: Any) -> Any:
        if not self.frame:
            return np.asarray(X, float)
        return X.assign(**{c: X[c].map(lambda v: "missing" if pd.isna(v) else str(v)) for c in self.levels})

    def table(self, X: Any) -> Any:
        return X


class Peer(BaseEstimator):
    """A recipe `make(X, y, classes)` for an estimator, `make(classes, seconds)` of one with a limit, and the columns it wants."""

    def __init__(self, make: Callable[..., Any], columns: str, limited: bool = False) -> None:
        self.make = make
        self.columns = columns
        self.limited = limited

    def fit(self, X: Any, y: Any, classes: bool, seconds: float | None = None) -> Peer:
        self.reader_ = Columns(X)
        made = self._read(X)
        keywords = (
            {"cat_features": list(self.reader_.levels)} if self.columns == "words" and self.reader_.levels else {}
        )
        model = self.make(classes, seconds) if self.limited else self.make(made, y, classes)
        self.model_ = model.fit(made, y, **keywords)
        return self

    def _read(self, X: Any) -> Any:
        return getattr(self.reader_, self.columns)(X)

    def predict(self, X: Any) -> Any:
        return np.ravel(self.model_.predict(self._read(X)))

    def chances(self, X: Any) -> Any:
        return self.model_.predict_proba(self._read(X)) if hasattr(self.model_, "predict_proba") else None


def lacunar(X: Any, y: Any, classes: bool) -> Any:
    return LacunarClassifier(random_state=0) if classes else LacunarRegressor(random_state=0)


def karma(X: Any, y: Any, classes: bool) -> Any:
    return KarmaClassifierCV(random_state=0) if classes else KarmaRegressorCV(random_state=0)


def boosting(X: Any, y: Any, classes: bool) -> Any:
    made = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return made(random_state=0, categorical_features="from_dtype")


def lightgbm(X: Any, y: Any, classes: bool, **parameters: Any) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    return (LGBMClassifier if classes else LGBMRegressor)(n_jobs=1, verbose=-1, random_state=0, **parameters)


def lightgbm_tuned(X: Any, y: Any, classes: bool) -> Any:
    """The best of six settings, the default among them, on a quarter of the rows, where iterations stop too; fitted to all."""
    from lightgbm import early_stopping

    rng = np.random.default_rng(0)
    same = y if classes and np.bincount(y).min() >= 2 else None
    learned, held = train_test_split(np.arange(len(y)), test_size=0.25, random_state=0, stratify=same)
    part = X.iloc if hasattr(X, "iloc") else X
    most = 120 if classes and len(np.unique(y)) > 3 else 300
    tried = []
    for setting in [{}, *(drawn(rng) for _ in range(5))]:
        model = lightgbm(X, y, classes, n_estimators=most, **setting)
        stop = early_stopping(20, verbose=False)
        model.fit(part[learned], y[learned], eval_set=[(part[held], y[held])], callbacks=[stop])
        loss = next(iter(next(iter(model.best_score_.values())).values()))
        tried.append((loss, len(tried), setting, max(model.best_iteration_, 5)))
    _, _, setting, iterations = min(tried)
    return lightgbm(X, y, classes, n_estimators=int(iterations * 1.2), **setting)


def drawn(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "learning_rate": float(np.exp(rng.uniform(np.log(0.03), np.log(0.15)))),
        "num_leaves": int(rng.integers(4, 48)),
        "min_child_samples": int(rng.integers(3, 30)),
        "reg_lambda": float(np.exp(rng.uniform(np.log(0.01), np.log(10)))),
        "colsample_bytree": float(rng.uniform(0.4, 1)),
        "subsample": float(rng.uniform(0.6, 1)),
        "subsample_freq": 1,
    }


def catboost(X: Any, y: Any, classes: bool) -> Any:
    """As its authors ship it: 1,000 iterations, and their own choice of the rest."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    return (CatBoostClassifier if classes else CatBoostRegressor)(
        random_seed=0, thread_count=1, verbose=False, allow_writing_files=False
    )


def xgboost(X: Any, y: Any, classes: bool) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    return (XGBClassifier if classes else XGBRegressor)(n_jobs=1, random_state=0, enable_categorical=True)


def filled(flags: bool = False) -> SimpleImputer:
    return SimpleImputer(keep_empty_features=True, add_indicator=flags)


def forest(X: Any, y: Any, classes: bool) -> Pipeline:
    made = RandomForestClassifier if classes else RandomForestRegressor
    return make_pipeline(filled(), made(200, random_state=0, n_jobs=1, max_features="sqrt" if classes else 0.33))


def linear(classes: bool) -> Any:
    if not classes:
        return RidgeCV(np.logspace(-2, 4, 13))
    Cs = {"C": [0.01, 0.1, 1, 10]}
    return GridSearchCV(LogisticRegression(max_iter=200, tol=1e-3), Cs, cv=3, scoring="neg_log_loss")


def mean_flags(X: Any, y: Any, classes: bool) -> Pipeline:
    return make_pipeline(filled(flags=True), StandardScaler(), linear(classes))


def iterative(X: Any, y: Any, classes: bool) -> Pipeline:
    near = 15 if X.shape[1] > 30 else None
    fill = IterativeImputer(max_iter=5, random_state=0, n_nearest_features=near, keep_empty_features=True)
    return make_pipeline(fill, StandardScaler(), linear(classes))


def svm(X: Any, y: Any, classes: bool) -> Any:
    search = GridSearchCV(SVC() if classes else SVR(), {"C": [0.3, 1, 3, 10]}, cv=3)
    made = make_pipeline(filled(), StandardScaler(), search)
    return made if classes else TransformedTargetRegressor(made, transformer=StandardScaler())


LEARNERS = {
    "lacunar": Peer(lacunar, "table"),
    "boosting": Peer(boosting, "categories"),
    "lightgbm": Peer(lightgbm, "categories"),
    "lightgbm_tuned": Peer(lightgbm_tuned, "categories"),
    "catboost": Peer(catboost, "words"),
    "xgboost": Peer(xgboost, "categories"),
    "autogluon": Peer(AutoGluon, "table", limited=True),
    "flaml": Peer(Flaml, "categories", limited=True),
    "stacking": Peer(stacking, "numbers"),
    "forest": Peer(forest, "numbers"),
    "mean_flags": Peer(mean_flags, "numbers"),
    "iterative": Peer(iterative, "numbers"),
    "svm": Peer(svm, "numbers"),
    "karma": Peer(karma, "numbers"),
}

OURS, PART = "lacunar", "karma"
SMALL = ("hepatitis", "horses", "cleveland", "mammographic", "dermatology", "wisconsin")  # of KARMA's Table 1
TITLES = {  # of the columns of the page
    OURS: "`Lacunar`",
    "boosting": "HistGB",
    "lightgbm": "LightGBM",
    "lightgbm_tuned": "LightGBM tuned",
    "catboost": "CatBoost",
    "xgboost": "XGBoost",
    "autogluon": "AutoGluon",
    "flaml": "FLAML",
    "stacking": "stacking",
    "forest": "forest",
    "mean_flags": "mean + flags + linear",
    "iterative": "iterative + linear",
    "svm": "SVM",
    "karma": "`KarmaCV`",
}


def installed() -> list[str]:
    """Learners whose packages are there."""
    absent = [
        name
        for name in ("lightgbm", "catboost", "xgboost", "autogluon", "flaml")
        if importlib.util.find_spec(name) is None
    ]
    return [name for name in LEARNERS if not name.startswith(tuple(absent))] if absent else list(LEARNERS)


def log_loss(y: Any, chances: Any, known: Any) -> float:
    whole = np.full((len(y), int(max(known.max(), y.max())) + 1), LEAST)
    whole[:, known] = np.clip(chances, LEAST, 1)
    return float(-np.log(whole[np.arange(len(y)), y] / whole.sum(axis=1)).mean())


def fitted(problem: Problem, learner: str, fold: int, limit: float | None) -> dict[str, Any]:
    """Error (or RMSE), log loss, seconds, and for a single test set the loss of every row; `limit` is for those that take one."""
    train, test = problem.splits[fold]
    part = problem.X.iloc if hasattr(problem.X, "iloc") else problem.X
    y, start, clock = problem.y[test], time.process_time(), time.perf_counter()
    model = clone(LEARNERS[learner]).fit(part[train], problem.y[train], problem.classes, limit)
    middle, wall = time.process_time(), time.perf_counter() - clock
    predicted = model.predict(part[test])
    losses = (predicted != y).astype(float) if problem.classes else (predicted - y) ** 2
    found: dict[str, Any] = {"error": float(losses.mean() if problem.classes else np.sqrt(losses.mean()))}
    found |= {"fit": middle - start, "wall": wall, "predict": time.process_time() - middle}
    chances = model.chances(part[test]) if problem.classes else None
    if chances is not None:
        found["log loss"] = log_loss(y, chances, np.unique(problem.y[train]))
    if len(problem.splits) == 1:
        found["losses"] = [float(f"{v:.6g}") for v in losses]
    return found


def spread(problem: Problem, ours: list[dict[str, Any]], other: list[dict[str, Any]]) -> float:
    """Standard error of the difference of two mean errors: Nadeau and Bengio's over folds, or over rows."""
    if len(ours) > 1:
        train, test = problem.splits[0]
        apart = np.array([a["error"] - b["error"] for a, b in zip(ours, other, strict=True)])
        return float(np.sqrt((1 / len(apart) + len(test) / len(train)) * apart.var(ddof=1)))
    apart = np.array(ours[0]["losses"]) - np.array(other[0]["losses"])
    by_rows = float(apart.std() / np.sqrt(len(apart)))
    return by_rows if problem.classes else by_rows / (2 * other[0]["error"] + 1e-12)


Fits = dict[str, dict[str, list[dict[str, Any]]]]  # table -> learner -> folds


class Figures:
    """What a table says of one quantity (`error`, `log loss`): means over folds, and how far behind the best each learner is."""

    def __init__(self, fits: Fits, problems: dict[str, Problem], key: str) -> None:
        self.fits, self.problems, self.key = fits, problems, key
        self.names = [n for n in fits if any(key in fold for folds in fits[n].values() for fold in folds)]
        self.learners = [m for m in fits[self.names[0]] if key in fits[self.names[0]][m][0]]
        self.means = {
            n: {m: float(np.mean([fold[key] for fold in fits[n][m]])) for m in self.learners} for n in self.names
        }

    @property
    def ranked(self) -> list[str]:
        """Learners that have a rank: KARMA alone is a part of ours."""
        return [m for m in self.learners if m != PART]

    def best(self, name: str) -> str:
        return min(self.ranked, key=lambda m: self.means[name][m])

    def behind(self, name: str, learner: str, other: str) -> bool:
        """By more than one standard error, or .01 of the log loss."""
        apart = self.means[name][learner] - self.means[name][other]
        fits = self.fits[name]
        return apart > (0.01 if self.key != "error" else spread(self.problems[name], fits[learner], fits[other]))

    def level(self, learner: str) -> int:
        """On how many tables a learner is level with the best."""
        return sum(learner == self.best(n) or not self.behind(n, learner, self.best(n)) for n in self.names)

    def ranks(self) -> dict[str, float]:
        ranks = [rankdata([self.means[n][m] for m in self.ranked]) for n in self.names]
        return dict(zip(self.ranked, np.mean(ranks, axis=0).tolist(), strict=True))

    def table(self, title: str) -> str:
        """Markdown: bold is the best, a star behind ours says that it is not level with it."""
        lines = [head(title, self.learners)]
        for name in self.names:
            lines.append(f"| {name} | " + " | ".join(self.cell(name, m) for m in self.learners) + " |")
        ranks = self.ranks()
        lines.append(
            "| mean rank | " + " | ".join(f"{ranks[m]:.2f}" if m in ranks else "-" for m in self.learners) + " |"
        )
        lines.append(
            f"| level with the best, of {len(self.names)} | "
            + " | ".join(str(self.level(m)) for m in self.learners)
            + " |"
        )
        return "\n".join(lines)

    def cell(self, name: str, learner: str) -> str:
        best = self.best(name)
        text = figure(self.means[name][learner])
        if learner == best:
            return f"**{text}**"
        return text + "*" * (learner == OURS and self.behind(name, learner, best))

    def sentences(self) -> dict[str, str]:
        """What pages quote: every mean by table and learner, and the counts."""
        quoted = {f"{n} {m}": figure(v) for n, row in self.means.items() for m, v in row.items()}
        ranks = self.ranks()
        others = sorted((v, m) for m, v in ranks.items() if m != OURS)
        quoted |= {"tables": str(len(self.names)), "learners": str(len(ranks)), "rank": f"{ranks[OURS]:.2f}"}
        quoted["next"] = ", ".join(f"{TITLES[m]} {v:.2f}" for v, m in others[:3])
        quoted["lost"] = ", ".join(self.loss(n) for n in self.names if self.behind(n, OURS, self.best(n))) or "none"
        for m in self.learners:
            quoted[f"level {m}"] = str(self.level(m))
            quoted[f"ahead of {m}"] = str(sum(self.behind(n, m, OURS) for n in self.names))
            quoted[f"behind {m}"] = str(sum(self.behind(n, OURS, m) for n in self.names))
            small = [self.means[n][m] for n in SMALL if n in self.means]
            quoted[f"mean of six {m}"] = figure(float(np.mean(small))) if small else "-"
        return quoted

    def loss(self, name: str) -> str:
        best, row = self.best(name), self.means[name]
        return f"`{name}` ({TITLES[best]} {figure(row[best])}, ours {figure(row[OURS])})"


def head(key: str, learners: list[str]) -> str:
    """The first two lines of a table, with the names that the page has."""
    return f"| {key} | " + " | ".join(TITLES[m] for m in learners) + " |\n" + "|---" * (len(learners) + 1) + "|"


def figure(value: float) -> str:
    """Four digits, without the zero before the point."""
    return f"{value:.4f}".lstrip("0") if 0.001 <= value < 1 or value == 0 else f"{value:.4g}"


def seconds_of(fits: Fits) -> tuple[str, dict[str, str]]:
    """CPU seconds of one fit, the mean of the folds of a table: median and largest of the tables, and how many times as long ours takes."""
    learners = list(fits[next(iter(fits))])
    seconds = np.array([[np.mean([fold["fit"] for fold in fits[name][m]]) for m in learners] for name in fits])
    rows = {"median of tables": np.median(seconds, axis=0), "largest": seconds.max(axis=0)}
    if OURS in learners:
        rows["ours takes so many times as long, median"] = np.median(
            seconds[:, [learners.index(OURS)]] / seconds, axis=0
        )
    lines = [head("CPU seconds of one fit", learners)]
    lines += [f"| {name} | " + " | ".join(f"{v:.2g}" for v in row) + " |" for name, row in rows.items()]
    names = ("median", "largest", "times")
    quoted = {
        f"{name} {m}": f"{v:.2g}"
        for name, row in zip(names, rows.values(), strict=False)
        for m, v in zip(learners, row, strict=True)
    }
    return "\n".join(lines), quoted


def parts(fits: Fits, problems: dict[str, Problem]) -> dict[str, tuple[str, dict[str, str]]]:
    """Tables of the page and what sentences quote of them, by the last word of their records' names."""
    classes = {n: v for n, v in fits.items() if problems[n].classes}
    numbers = {n: v for n, v in fits.items() if not problems[n].classes}
    found = {}
    for word, part, key, title in (
        ("error", classes, "error", "error rate"),
        ("rmse", numbers, "error", "RMSE"),
        ("log_loss", classes, "log loss", "log loss"),
    ):
        if part:
            figures = Figures(part, problems, key)
            found[word] = figures.table(title), figures.sentences()
    found["seconds"] = seconds_of(fits)
    return found


def record(name: str, words: str, tables: dict[str, tuple[str, dict[str, str]]], repeats: str) -> None:
    for word, (table_, figures) in tables.items():
        records.save(
            f"{name}_{word}",
            table_,
            command=f"OMP_NUM_THREADS=1 LACUNAR_DATA=... python bench/pages/learner.py{words}",
            computes=["bench/pages/learner.py", "bench/pages/learner_tables.py"],
            repeats=repeats,
            figures=figures,
        )


def read_fits(path: Path | None) -> dict[tuple[Any, ...], Any]:
    if path is None or not path.is_file():
        return {}
    return {tuple(key): value for key, value in map(json.loads, path.read_text().splitlines())}


def key_of(name: str, learner: str, fold: int) -> tuple[Any, ...]:
    """A fit of ours is that of today's library; peers are what their packages are."""
    return (name, learner, fold, CODE) if learner in (OURS, PART) else (name, learner, fold)


CODE = records.digest(records.library([Path(__file__).read_text(encoding="utf-8")]))


def fit_of(
    problem: Problem, name: str, learner: str, fold: int, done: dict[tuple[Any, ...], Any], out: Path | None
) -> Any:
    """What a learner did on a fold: of the fits that are done, or fitted now and added to them and to their file."""
    key = key_of(name, learner, fold)
    if key in done:
        return done[key]
    limit = done[key_of(name, OURS, fold)]["wall"] if LEARNERS[learner].limited else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done[key] = fitted(problem, learner, fold, limit)
    if out is not None:
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, done[key]]) + "\n")
    return done[key]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--complete", action="store_true", help="the tables without missing values instead")
    parser.add_argument("--learners", default=",".join(installed()))
    parser.add_argument("--out", type=Path, help="file of finished fits, read again by the next run")
    parser.add_argument("--quick", action="store_true", help="three small tables, four learners, one fold")
    parser.add_argument("--record", action="store_true", help="write the tables of docs/measured/which-learner.md")
    options = parser.parse_args()
    names = QUICK if options.quick else list(COMPLETE) if options.complete else options.tables.split(",")
    learners = ["lacunar", "boosting", "forest", "mean_flags"] if options.quick else options.learners.split(",")
    done = read_fits(options.out)
    fits: Fits = {}
    problems: dict[str, Problem] = {}
    for name in names:
        try:
            problems[name] = table(name)
        except OSError as error:
            print(f"{name}: left out, {error}", flush=True)
            continue
        folds = range(1 if options.quick else len(problems[name].splits))
        fits[name] = {
            learner: [fit_of(problems[name], name, learner, fold, done, options.out) for fold in folds]
            for learner in learners
        }
        means = ", ".join(f"{m} {np.mean([f['error'] for f in fits[name][m]]):.4g}" for m in learners)
        print(f"{name}: {means}", flush=True)
    if options.quick:
        return
    tables = parts(fits, problems)
    print("\n\n".join(text for text, _ in tables.values()))
    if options.record:
        folds = "five folds, three for the larger tables, two for `digits_shift`, one test set of 2,000 rows for the blocks; run once"
        record("complete" if options.complete else "learner", " --complete" * options.complete, tables, folds)


if __name__ == "__main__":
    main()
