"""Tables of `learner.py`: public ones with missing values of their own, complete ones with entries hidden in several ways, tables made by rules.

`table(name)` gives X (an array with NaN, or a frame with text), y, whether y holds classes, and splits into training and test rows. Seeds are fixed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn import datasets
from sklearn.model_selection import KFold, StratifiedKFold

from lacunar.datasets import fetch_dataset

SEED_OF_FOLDS = 7


@dataclass
class Problem:
    """One table: splits are pairs of row numbers."""

    X: Any
    y: Any
    classes: bool
    splits: list[tuple[Any, Any]]


def problem(X: Any, y: Any, classes: bool, folds: int = 5) -> Problem:
    y = np.asarray(y, np.int64 if classes else float)
    splitter = (StratifiedKFold if classes else KFold)(folds, shuffle=True, random_state=SEED_OF_FOLDS)
    return Problem(X, y, classes, list(splitter.split(np.zeros(len(y)), y)))


# -- public tables ----------------------------------------------------------------------------------------------------


def public(name: str, classes: bool = True, folds: int = 5, rows: int | None = None) -> Problem:
    X, y = fetch_dataset(name, return_X_y=True)
    if rows is not None:
        kept = np.sort(np.random.default_rng(1).permutation(len(y))[:rows])
        X, y = X[kept], y[kept]
    return problem(X, y, classes, folds)


def senate(name: str) -> Problem:
    X, y = fetch_dataset(name, return_X_y=True)
    return problem(X[y >= 0], y[y >= 0], True)


def frame(X: Any, text: list[int]) -> pd.DataFrame:
    """A frame in which some columns hold text."""
    made = pd.DataFrame(X, columns=[f"v{j}" for j in range(X.shape[1])])
    for j in text:
        made[f"v{j}"] = pd.Series([None if v != v else f"L{v:g}" for v in X[:, j]], dtype=object, index=made.index)
    return made


def cleveland_text() -> Problem:
    """Disease or none, with four columns as text."""
    X, y = fetch_dataset("cleveland", return_X_y=True)
    return problem(frame(X, [2, 6, 10, 12]), y > 0, True)


def mammographic_text() -> Problem:
    X, y = fetch_dataset("mammographic", return_X_y=True)
    return problem(frame(X, [2, 3]), y, True)


def most_rated(name: str, target: str | None) -> tuple[Any, Any]:
    """The 200 columns with most entries, as an array."""
    X, y = fetch_dataset(name, target=target, return_X_y=True)
    X = sp.csc_array(X)
    dense = np.full((X.shape[0], 200), np.nan)
    for place, j in enumerate(np.argsort(-np.diff(X.indptr))[:200]):
        part = slice(X.indptr[j], X.indptr[j + 1])
        dense[X.indices[part], place] = X.data[part]
    return dense, y


def books() -> Problem:
    """Age of 1,886 readers with three ratings or more."""
    X, y = most_rated("books", None)
    kept = np.flatnonzero((y >= 5) & (y <= 100))
    kept = kept[(~np.isnan(X[kept])).sum(axis=1) >= 3]
    kept = np.sort(np.random.default_rng(2).permutation(kept)[:2000])
    return problem(X[kept], y[kept], False, 3)


def air_tickets() -> Problem:
    X, y = fetch_dataset("atp1d", return_X_y=True)
    return problem(at_random(X, 0.3, 3), y, False, 3)


def leukemia() -> Problem:
    X, y = fetch_dataset("leukemia", return_X_y=True)
    X = np.log(np.maximum(X[:, np.argsort(-X.var(axis=0))[:500]], 20))
    return problem(at_random(X, 0.3, 4), y, True)


# -- complete tables with entries hidden ------------------------------------------------------------------------------


def at_random(X: Any, share: float, seed: int) -> Any:
    """Entries missing completely at random."""
    X = np.array(X, float)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def large_hidden(X: Any, share: float, seed: int) -> Any:
    """Large values missing, with some noise in which: self-masking."""
    X, rng = np.array(X, float), np.random.default_rng(seed)
    scores = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9) + 0.5 * rng.standard_normal(X.shape)
    X[scores > np.quantile(scores, 1 - share, axis=0)] = np.nan
    return X


def hidden_by_others(X: Any, share: float, seed: int) -> Any:
    """Entries missing by what the first three columns hold, which stay complete."""
    X, rng = np.array(X, float), np.random.default_rng(seed)
    causes = (X[:, :3] - X[:, :3].mean(axis=0)) / (X[:, :3].std(axis=0) + 1e-9)
    scores = causes @ rng.standard_normal((3, X.shape[1])) + 0.7 * rng.standard_normal(X.shape)
    hidden = scores > np.quantile(scores, 1 - share, axis=0)
    hidden[:, :3] = False
    X[hidden] = np.nan
    return X


def complete(load: Callable[..., Any], classes: bool = True, folds: int = 5) -> Problem:
    """Nothing missing."""
    X, y = load(return_X_y=True)
    return problem(np.asarray(X, float), y, classes, folds)


def bundled(
    load: Callable[..., Any], hide: Callable[..., Any], share: float, seed: int, classes: bool = True
) -> Problem:
    X, y = load(return_X_y=True)
    return problem(hide(X, share, seed), y, classes)


def only_in_test(load: Callable[..., Any], seed: int, folds: int) -> Problem:
    """Complete training rows; half of the test rows' entries missing."""
    X, y = load(return_X_y=True)
    plain = problem(X, y, True, folds)
    splits = [(a, len(y) + b) for a, b in plain.splits]
    return Problem(np.vstack([X, at_random(X, 0.5, seed)]), np.r_[y, y].astype(np.int64), True, splits)


def digits_quadrants(folds: int = 3) -> Problem:
    """Two of the four quadrants of every picture missing."""
    X, y = datasets.load_digits(return_X_y=True)
    pictures = X.reshape(-1, 8, 8).copy()
    chosen = np.random.default_rng(5).random((len(X), 4)).argsort(axis=1)[:, :2]
    for quadrant in range(4):
        rows, top, left = (chosen == quadrant).any(axis=1), 4 * (quadrant // 2), 4 * (quadrant % 2)
        pictures[rows, top : top + 4, left : left + 4] = np.nan
    return problem(pictures.reshape(len(X), -1), y, True, folds)


def digits_seen(folds: int = 3) -> Problem:
    """30 % of the pixels seen."""
    X, y = datasets.load_digits(return_X_y=True)
    return problem(at_random(X, 0.7, 6), y, True, folds)


def diabetes_text() -> Problem:
    """Sex and age group as text."""
    X, y = datasets.load_diabetes(return_X_y=True)
    made = frame(hidden_by_others(X, 0.2, 15), [])
    made["v1"] = np.where(X[:, 1] > 0, "f", "m")
    groups = [None if v != v else f"a{int(np.clip((v + 0.11) * 40, 0, 8))}" for v in made["v0"]]
    made["v0"] = pd.Series(groups, dtype=object)
    return problem(made, y, False)


# -- tables made by rules: thresholds, interactions, categories, heavy tails ----------------------------------------------


@dataclass
class Made:
    """Numbers (n, p) and categories of one table, with the generator that goes on from there."""

    rng: np.random.Generator
    numbers: Any
    categories: list[Any]

    def score(self) -> Any:
        """Thresholds, an interaction, effects of levels: no linear function."""
        effects = [self.rng.standard_normal(c.max() + 1) for c in self.categories]
        x, (a, b, c) = self.numbers.T, self.categories
        return (
            1.2 * (x[1] > 0.3)
            - 1.0 * (x[0] > 1.5) * (a == 1)
            + 0.8 * np.where(a == 0, x[2], -x[2])
            + effects[1][b]
            + 0.7 * effects[2][c]
            + 0.5 * np.abs(x[3]) * (x[4] > 0)
        )

    def hidden(self, hidden: Any) -> pd.DataFrame:
        """The table as a frame, entries of `hidden` (n, columns) missing."""
        p = self.numbers.shape[1]
        made = pd.DataFrame(self.numbers, columns=[f"x{j}" for j in range(p)]).mask(hidden[:, :p])
        for j, codes in enumerate(self.categories):
            levels = [None if h else f"level {v}" for v, h in zip(codes, hidden[:, p + j], strict=True)]
            made[f"c{j}"] = pd.Series(levels, dtype=object)
        return made

    def at_random(self, share: float) -> pd.DataFrame:
        columns = self.numbers.shape[1] + len(self.categories)
        return self.hidden(self.rng.random((len(self.numbers), columns)) < share)


def make(n: int, seed: int, levels: tuple[int, ...] = (3, 8, 20), p: int = 8, heavy: bool = False) -> Made:
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal((n, p)) @ (np.eye(p) + 0.4 * rng.standard_normal((p, p)) / np.sqrt(p))
    if heavy:
        numbers = numbers * (1 / np.sqrt(rng.chisquare(2, (n, p)) / 2))
    numbers[:, 0] = np.exp(numbers[:, 0])
    return Made(rng, numbers, [rng.choice(k, n, p=rng.dirichlet(np.ones(k) * 2)) for k in levels])


def mixed_class() -> Problem:
    made = make(1200, 21)
    score = made.score() + 0.5 * made.rng.standard_normal(1200)
    return problem(made.at_random(0.15), score > np.median(score), True)


def mixed_reg() -> Problem:
    made = make(1200, 22)
    score = made.score() + 0.5 * made.rng.standard_normal(1200)
    return problem(made.at_random(0.25), score, False)


def mixed_informative() -> Problem:
    """That a value is missing says much of the label; three classes."""
    made = make(1500, 23)
    score, rng = made.score(), made.rng
    slopes = rng.choice([-1, 1], 11)[:, None]
    chance = 1 / (1 + np.exp(-(1.2 * (score - score.mean()) * slopes - 1).T))
    hidden = rng.random((1500, 11)) < chance * (np.arange(11) % 2 == 0)
    score += 0.8 * rng.standard_normal(1500)
    return problem(made.hidden(hidden), np.digitize(score, np.quantile(score, [0.33, 0.66])), True)


def mixed_heavy() -> Problem:
    """Columns of Student's t with 2 degrees of freedom, noise with 3."""
    made = make(1000, 24, heavy=True)
    x, rng = made.numbers.T, made.rng
    y = np.arctan(x[1]) + np.log1p(np.abs(x[2])) * (made.categories[0] > 0) + 0.5 * np.sign(x[3])
    y += 0.4 * rng.standard_t(3, 1000)
    return problem(made.at_random(0.2), y, False)


def mixed_rare() -> Problem:
    """6 % of the rows in the second class."""
    made = make(2000, 25)
    score = made.score() + 0.6 * made.rng.standard_normal(2000)
    return problem(made.at_random(0.2), score > np.quantile(score, 0.94), True, 3)


def mixed_rules() -> Problem:
    """A list of decisions with an exclusive or, 5 % of the labels wrong."""
    made = make(500, 26, (4, 40), 6)
    x, (a, b), rng = made.numbers.T, made.categories, made.rng
    rule = np.where(a == 2, x[1] > 0, np.where(x[2] > 0.5, b % 3 == 0, (x[3] > 0) ^ (x[4] > 0)))
    rule = rule ^ (rng.random(500) < 0.05)
    return problem(made.at_random(0.1), rule, True)


def friedman(share: float = 0.3) -> Problem:
    rng = np.random.default_rng(27)
    X = rng.random((1000, 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return problem(at_random(X, share, 28), y + rng.standard_normal(1000), False, 3)


def block(classes: bool) -> Problem:
    """Three blocks of 20 columns, each of which alone tells the five latent numbers; a row shows one block or two."""
    rng, n, m = np.random.default_rng(31), 1500, 2000
    latent, direction = rng.standard_normal((3 * (n + m), 5)), rng.standard_normal(5)
    direction /= np.linalg.norm(direction)
    latent = latent[np.abs(latent @ direction) > (0.1 if classes else -1)][: n + m]
    X = np.hstack([latent @ rng.standard_normal((5, 20)) for _ in range(3)])
    shown = rng.random((n + m, 3)).argsort(axis=1) < rng.integers(1, 3, (n + m, 1))
    X[~np.repeat(shown, 20, axis=1)] = np.nan
    y = latent @ direction
    return Problem(X, (y > 0).astype(np.int64) if classes else y, classes, [(np.arange(n), n + np.arange(m))])


def weak(signal: str, r2: float, hide: Callable[..., Any] | None, share: float, seed: int) -> Problem:
    """59 columns of Gaussian factors and noise that, complete, tell a share `r2` of the target; 400 rows to learn from, 4,000 to test."""
    rng, n, m, d = np.random.default_rng(seed), 400, 4000, 59
    factors = rng.standard_normal((n + m, int(rng.integers(3, 20))))
    X = factors @ rng.standard_normal((factors.shape[1], d)) / np.sqrt(factors.shape[1])
    X += rng.uniform(0.2, 1.0) * rng.standard_normal((n + m, d))
    causes = {"columns": X, "few": X[:, :5], "factors": factors}[signal]
    effect = causes @ rng.standard_normal(causes.shape[1])
    y = np.sqrt(r2) * effect / effect.std() + np.sqrt(1 - r2) * rng.standard_normal(n + m)
    return Problem(X if hide is None else hide(X, share, seed + 1), y, False, [(np.arange(n), n + np.arange(m))])


digits, cancer, wine, diabetes = (
    datasets.load_digits,
    datasets.load_breast_cancer,
    datasets.load_wine,
    datasets.load_diabetes,
)
TABLES: dict[str, Callable[[], Problem]] = {
    **{
        n: (lambda n=n: public(n))
        for n in ("hepatitis", "horses", "cleveland", "mammographic", "dermatology", "wisconsin")
    },
    "cleveland_df": cleveland_text,
    "mammographic_df": mammographic_text,
    "airquality3k": lambda: public("airquality", False, 3, 3000),
    "marketing3k": lambda: public("marketing", True, 3, 3000),
    "jester": lambda: public("jester", False, 3),
    "atp1d_mcar30": air_tickets,
    "senate106": lambda: senate("senate106"),
    "senate90": lambda: senate("senate90"),
    "books2k": books,
    "movielens_gender": lambda: problem(*most_rated("movielens100k", "gender"), True, 3),
    "leukemia_mcar30": leukemia,
    "digits_quadrants": digits_quadrants,
    "digits_30seen": digits_seen,
    "digits_shift": lambda: only_in_test(digits, 7, 2),
    "cancer_mar50": lambda: bundled(cancer, hidden_by_others, 0.5, 8),
    "cancer_self20": lambda: bundled(cancer, large_hidden, 0.2, 9),
    "cancer_shift": lambda: only_in_test(cancer, 10, 3),
    "wine_mcar50": lambda: bundled(wine, at_random, 0.5, 11),
    "wine_self50": lambda: bundled(wine, large_hidden, 0.5, 12),
    "diabetes_mcar20": lambda: bundled(diabetes, at_random, 0.2, 13, False),
    "diabetes_self50": lambda: bundled(diabetes, large_hidden, 0.5, 14, False),
    "diabetes_df": diabetes_text,
    "mixed_class": mixed_class,
    "mixed_reg": mixed_reg,
    "mixed_informative": mixed_informative,
    "mixed_heavy": mixed_heavy,
    "mixed_imbalance6": mixed_rare,
    "mixed_rules": mixed_rules,
    "friedman_mcar30": friedman,
    "block_reg": lambda: block(False),
    "block_margin": lambda: block(True),
}

# Tables without missing values, where one would try a linear model first; not among the 37.
COMPLETE: dict[str, Callable[[], Problem]] = {
    "complete_iris": lambda: complete(datasets.load_iris),
    "complete_wine": lambda: complete(wine),
    "complete_cancer": lambda: complete(cancer),
    "complete_digits": lambda: complete(digits, folds=3),
    "complete_diabetes": lambda: complete(diabetes, False),
    "complete_friedman": lambda: friedman(0.0),
    "complete_atp1d": lambda: problem(*fetch_dataset("atp1d", return_X_y=True), False, 3),  # type: ignore[call-arg]  # the star gives two
}

# Twelve weak linear signals: how much the complete columns tell, how entries are hidden, and in turn what the target is a function of.
HIDDEN: dict[str, tuple[Callable[..., Any] | None, float]] = {
    "complete": (None, 0.0),
    "mcar25": (at_random, 0.25),
    "mcar50": (at_random, 0.5),
    "self40": (large_hidden, 0.4),
}
SIGNALS = ("factors", "columns", "few")
WEAK: dict[str, Callable[[], Problem]] = {
    f"weak{100 * r2:02.0f}_{hiding}_{SIGNALS[k % 3]}": lambda k=k, r2=r2, hiding=hiding: weak(
        SIGNALS[k % 3], r2, *HIDDEN[hiding], seed=301 + 10 * k
    )
    for k, (r2, hiding) in enumerate(itertools.product((0.02, 0.05, 0.1), HIDDEN))
}


def table(name: str) -> Problem:
    return (TABLES | COMPLETE | WEAK)[name]()
