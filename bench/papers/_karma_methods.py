"""Methods of KARMA's tables: `method(X, y, X_new, seed)` is what it predicts for the new rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from bench.papers.karma_figure2 import CS, imputed, paper_protocol
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # lets the next import be
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from lacunar import KarmaClassifier, KarmaClassifierCV, KarmaRegressorCV
from lacunar.kernels import karma_kernel
from lacunar.papers.karma import GeomClassifier, MatrixCompletionClassifier, MatrixCompletionRegressor

HARD_MARGIN = 1e4  # C times the mean diagonal: beyond it the hinge is a hard margin that no solver reaches


def raw_kernel(A: Any, B: Any, train: Any, gamma: int) -> Any:
    """The paper's kernel: columns standardised over the observed entries of the training rows, and a constant."""
    spread = np.nanstd(train, axis=0)
    a, b = ((M - np.nanmean(train, axis=0)) / np.where(spread > 0, spread, 1) for M in (A, B))
    return karma_kernel(a, b, gamma=gamma, count_scale="raw", constant=1.0)


def capped(gram: Any) -> Any:
    """Values of C without those of a hard margin, but at least the smallest."""
    return CS[: max(1, np.sum(np.mean(np.diag(gram)) * CS <= HARD_MARGIN))]


def dense(X: Any) -> Any:
    """Observed entries of a sparse table in a dense one, NaN elsewhere."""
    if not sp.issparse(X):
        return X
    table, entries = np.full(X.shape, np.nan), X.tocoo()
    table[entries.row, entries.col] = entries.data
    return table


def holdout(seed: int) -> StratifiedShuffleSplit:
    return StratifiedShuffleSplit(1, test_size=0.25, random_state=seed)


def paper_labels(gammas: tuple[int, ...], X: Any, y: Any, X_new: Any, seed: int) -> Any:
    grid = [{"gamma": [g], "C": capped(raw_kernel(X, X, X, g))} for g in gammas]
    loss = "hinge" if len(np.unique(y)) == 2 else "crammer_singer"  # as the experiments of the paper
    model = KarmaClassifier(loss=loss, normalize=None, solver="gram")
    return GridSearchCV(model, grid, cv=holdout(seed)).fit(X, y).predict(X_new)


def paper_numbers(gammas: tuple[int, ...], X: Any, y: Any, X_new: Any, seed: int) -> Any:
    return paper_protocol(gammas, seed).fit(X, y).predict(X_new)


def exact(X: Any, y: Any, X_new: Any, seed: int) -> Any:
    """The paper's objective and protocol by scikit-learn: LinearSVC without bias on features F, F F' = Gram."""
    fits = []
    for gamma in (1, 2, 3, 4):
        gram = raw_kernel(X, X, X, gamma)
        values, basis = np.linalg.eigh(gram)
        kept = values > 1e-12 * values[-1]
        root = np.sqrt(values[kept])
        kind = {"multi_class": "crammer_singer"} if len(np.unique(y)) > 2 else {"loss": "hinge"}
        model = LinearSVC(fit_intercept=False, max_iter=5000, random_state=0, **kind)
        search = GridSearchCV(model, {"C": capped(gram)}, cv=holdout(seed)).fit(basis[:, kept] * root, y)
        fits.append((gamma, basis[:, kept] / root, search))
    gamma, back, search = max(fits, key=lambda fit: fit[2].best_score_)
    return search.predict(raw_kernel(X_new, X, X, gamma) @ back)


def completed(kind: Any, intercept: str, X: Any, y: Any, X_new: Any, seed: int) -> Any:
    """mc-1 and mc-b: new rows are in the matrix, without labels."""
    known = np.concatenate([y.astype(float), np.full(len(X_new), np.nan)])
    return kind(intercept, random_state=seed).fit(np.vstack([X, X_new]), known).transduction_[len(X) :]


def searched(kind: Any, intercept: str, n_rows: int, X: Any, y: Any, X_new: Any, seed: int) -> Any:
    """The same with the lambda that a hidden quarter of the labels of `n_rows` training rows chooses, and mu by halves down to 5e-4.

    The path of the few rows ends at 2e-3: there, as at 5e-4 with all rows, ranks are some ten. Smaller mu take hours.
    """
    few, kind = np.random.default_rng(seed).permutation(len(X))[:n_rows], partial(kind, eta=0.5)
    lam = kind(intercept, mu_min=2e-3, random_state=seed).fit(X[few], y[few].astype(float)).lam_
    return completed(partial(kind, lam=lam, mu_min=5e-4), intercept, X, y, X_new, seed)


def absent(X: Any, y: Any, X_new: Any, seed: int) -> Any:
    """geom, C on the same holdout."""
    search = GridSearchCV(GeomClassifier(), {"C": 10.0 ** np.arange(-4, 4)}, cv=holdout(seed))
    return search.fit(X, y).predict(X_new)


def fitted(make: Callable[[int], Any], X: Any, y: Any, X_new: Any, seed: int) -> Any:
    return make(seed).fit(X, y).predict(X_new)


def linear(imputer: Any) -> GridSearchCV:
    model = make_pipeline(imputer, StandardScaler(), LogisticRegression(max_iter=2000))
    return GridSearchCV(model, {"logisticregression__C": 10.0 ** np.arange(-3, 3)}, cv=5)


def classifiers() -> dict[str, Callable[..., Any]]:
    return {
        "KarmaClassifierCV": partial(fitted, lambda seed: KarmaClassifierCV(random_state=seed)),
        "karma, paper protocol": partial(paper_labels, (1, 2, 3, 4)),
        "0-imputation, paper protocol": partial(paper_labels, (1,)),
        "exact, paper protocol": exact,
        "mc-1": partial(completed, MatrixCompletionClassifier, "column"),
        "mc-b": partial(completed, MatrixCompletionClassifier, "bias"),
        "geom": absent,
        "mean + linear": partial(fitted, lambda _: linear(SimpleImputer())),
        "mean + indicator + linear": partial(fitted, lambda _: linear(SimpleImputer(add_indicator=True))),
        "iterative + linear": partial(fitted, lambda seed: linear(IterativeImputer(random_state=seed))),
        "HistGradientBoosting": partial(fitted, lambda seed: HistGradientBoostingClassifier(random_state=seed)),
    }


def regressors() -> dict[str, Callable[..., Any]]:
    return {
        "KarmaRegressorCV": partial(fitted, lambda seed: KarmaRegressorCV(random_state=seed)),
        "karma, paper protocol": partial(paper_numbers, (1, 2, 3, 4)),
        "0-imputation, paper protocol": partial(paper_numbers, (1,)),
        "mc-1": partial(completed, MatrixCompletionRegressor, "column"),
        "mc-b": partial(completed, MatrixCompletionRegressor, "bias"),
        "mean + linear": partial(fitted, lambda _: imputed(SimpleImputer())),
        "mean + indicator + linear": partial(fitted, lambda _: imputed(SimpleImputer(add_indicator=True))),
        "iterative + linear": partial(fitted, lambda seed: imputed(IterativeImputer(random_state=seed))),
        "HistGradientBoosting": partial(fitted, lambda seed: HistGradientBoostingRegressor(random_state=seed)),
    }
