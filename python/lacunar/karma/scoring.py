"""Scores of many kernels and values of C: splits of rows, one pass over the pairs and one eigendecomposition a kernel."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from lacunar._log import say
from lacunar._random import fixed_seed
from lacunar._threads import one_blas_thread, thread_count
from lacunar.karma.base import KernelOptions, fit_form
from lacunar.karma.solvers import loo_path
from lacunar.kernels import pair_sums
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
_Ints = NDArray[np.intp]
Split = tuple[_Ints, _Ints]
HOLDOUT = 0.25  # share of rows the paper holds out


def search_rows(index: _Ints, codes: _Ints | None, limit: int, random_state: Any) -> _Ints:
    """At most `limit` of the rows, stratified by class where every class has two members; sorted."""
    if len(index) <= limit:
        return index
    splitter = _shuffle(
        None if codes is None else codes[index], train_size=limit, random_state=fixed_seed(random_state)
    )
    chosen, _ = next(splitter.split(index, None if codes is None else codes[index]))
    return np.sort(index[chosen])


def _shuffle(codes: _Ints | None, **sizes: Any) -> Any:
    """One random split, stratified where every class can be on both sides."""
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit  # imports rich: not at import time

    if codes is None:
        return ShuffleSplit(1, **sizes)
    counts = np.unique(codes, return_counts=True)[1]
    test = len(codes) - sizes["train_size"] if "train_size" in sizes else len(codes) * HOLDOUT
    possible = counts.min() >= 2 and min(test, len(codes) - test) >= len(counts)
    return (StratifiedShuffleSplit if possible else ShuffleSplit)(1, **sizes)


def make_splits(cv: Any, y: NDArray[Any], codes: _Ints | None, kept: _Ints, random_state: Any) -> list[Split] | None:
    """Splits as positions among the rows `kept`; None means leave-one-out.

    `cv` counts rows of the whole table: rows not kept are left out of each split, and empty splits are dropped.
    """
    if isinstance(cv, str) and cv == "loo":
        return None
    from sklearn.model_selection import KFold, StratifiedKFold, check_cv

    random_state = fixed_seed(random_state)

    if isinstance(cv, str):
        splitter = _shuffle(codes, test_size=HOLDOUT, random_state=random_state)
    elif isinstance(cv, int | np.integer):
        enough = codes is not None and np.bincount(codes).min() >= cv
        splitter = (StratifiedKFold if enough else KFold)(int(cv), shuffle=True, random_state=random_state)
    else:
        splitter = check_cv(cv, y, classifier=codes is not None)
    position = np.full(len(y), -1, dtype=np.intp)
    position[kept] = np.arange(len(kept))
    splits = [(_kept(position[a]), _kept(position[b])) for a, b in splitter.split(np.zeros((len(y), 1)), y)]
    splits = [(train, test) for train, test in splits if len(train) and len(test)]
    if not splits:
        raise ValueError(
            f"cv must leave at least one split with training and test rows; got none from cv={cv!r} and {len(kept)} rows "
            "of positive weight. Use cv='loo'."
        )
    return splits


def _kept(position: _Ints) -> _Ints:
    return position[position >= 0]


class SearchData(NamedTuple):
    """Standardised rows (n, d), targets (n, k), weights in the mean and in the loss (n,), splits or None for LOO."""

    rows: Observed
    targets: _Floats
    weight: _Floats
    loss_weight: _Floats
    splits: list[Split] | None


def kernel_grid(
    gammas: Sequence[float],
    indicators: Sequence[bool],
    normalize: Sequence[Any],
    count_scale: Any,
    expand: str | None = None,
) -> list[KernelOptions]:
    """All kernels of the search; gamma=1 (imputation by the column mean) is always among them."""
    every = sorted({1, *gammas})
    return [
        KernelOptions(g, a, norm, expand=expand, count_scale=count_scale)
        for a, norm, g in product(indicators, normalize, every)
    ]


def composed(grid: Sequence[KernelOptions]) -> list[KernelOptions]:
    """The squares (k + 1)^2 / 4 of the kernels of gamma 1 and 2: larger gammas gain nothing from it."""
    return [options._replace(degree=2) for options in grid if options.gamma <= 2]


def search(
    data: SearchData, grid: Sequence[KernelOptions], Cs: _Floats, *, n_jobs: int | None, verbose: int
) -> _Floats:
    """Negative mean squared errors, shape (kernels, len(Cs), splits); one "split" is leave-one-out.

    One pass over the pairs; for a kernel about 9 n^3 flops, and the same for every further split. Kernels are scored side by
    side by `n_jobs` threads, each of them with some 5 n^2 numbers of its own, and BLAS on one thread.
    """
    sums, counts = pair_sums(data.rows, n_jobs=n_jobs)
    scores = np.empty((len(grid), len(Cs), 1 if data.splits is None else len(data.splits)))

    def score(options: KernelOptions) -> _Floats:
        with one_blas_thread():
            gram = fit_form(data.rows, data.weight, options).from_sums(sums, counts, data.rows)
            if data.splits is None:
                return _leave_one_out(gram, data, Cs)[:, None]
            return np.column_stack([_one_split(gram, data, Cs, split) for split in data.splits])

    begin = perf_counter()
    with one_blas_thread():
        team = Parallel(n_jobs=min(thread_count(n_jobs), len(grid)), backend="threading", return_as="generator")
        for k, found in enumerate(team(delayed(score)(options) for options in grid)):
            scores[k] = found
            left, best = (perf_counter() - begin) / (k + 1) * (len(grid) - k - 1), found.mean(axis=1).max()
            say(verbose, "kernel %d/%d %s: score %.4f, %.1f s left", k + 1, len(grid), _label(grid[k]), best, left)
    return scores


def _label(options: KernelOptions) -> str:
    more = (f" degree={options.degree}" if options.degree > 1 else "") + (
        f" expand={options.expand}" if options.expand else ""
    )
    return f"gamma={options.gamma:g} indicators={options.indicators} normalize={options.normalize}{more}"


def _score(errors: _Floats, weight: _Floats) -> _Floats:
    """Negative weighted mean over rows, plain over outputs, of squared errors (g, n, k): shape (g,)."""
    return -np.average(np.square(errors).mean(axis=2), axis=1, weights=weight)


def _loss_weight(weight: _Floats) -> _Floats | None:
    return None if (weight == 1).all() else weight


def _leave_one_out(gram: _Floats, data: SearchData, Cs: _Floats) -> _Floats:
    path = loo_path(gram, data.targets, Cs, _loss_weight(data.loss_weight))
    return _score(path.errors, data.loss_weight)


def _one_split(gram: _Floats, data: SearchData, Cs: _Floats, split: Split) -> _Floats:
    train, test = split
    path = loo_path(gram[np.ix_(train, train)], data.targets[train], Cs, _loss_weight(data.loss_weight[train]))
    across = gram[np.ix_(test, train)]
    predictions = np.stack([across @ path.coef(float(C)) for C in Cs])
    return _score(predictions - data.targets[test], data.loss_weight[test])


def kernel_params(options: KernelOptions) -> dict[str, Any]:
    """What tells a kernel of the grid from those of the same gamma."""
    return {name: getattr(options, name) for name in ("indicators", "normalize", "degree", "expand")}


def results_table(grid: Sequence[KernelOptions], Cs: _Floats, scores: _Floats) -> dict[str, Any]:
    """`cv_results_` in the keys of scikit-learn's searches, one row a kernel and C."""
    params = [{"gamma": o.gamma, "C": float(C), **kernel_params(o)} for o, C in product(grid, Cs)]
    flat = scores.reshape(len(params), -1)
    table: dict[str, Any] = {f"param_{name}": np.array([p[name] for p in params]) for name in ("gamma", "C")}
    table["param_indicators"] = np.array([p["indicators"] for p in params])
    table["param_normalize"] = np.array([str(p["normalize"]) for p in params])
    table["param_degree"] = np.array([p["degree"] for p in params])
    table["param_expand"] = np.array([str(p["expand"]) for p in params])
    table["params"] = params
    for s in range(flat.shape[1]):
        table[f"split{s}_test_score"] = flat[:, s].copy()
    table["mean_test_score"] = flat.mean(axis=1)
    table["std_test_score"] = flat.std(axis=1)
    table["rank_test_score"] = rankdata(-table["mean_test_score"], method="min").astype(np.int32)
    return table


def best_kernels(scores: _Floats, average: int) -> list[tuple[int, int]]:
    """(kernel, C) of the best kernels, each with its own best C, best first; earlier ones win ties."""
    mean = scores.mean(axis=2)
    order = np.argsort(-mean.max(axis=1), kind="stable")[:average]
    return [(int(k), int(mean[k].argmax())) for k in order]


_FOLDS = 5


def choose_C(
    model: Any,
    X: Observed,
    codes: NDArray[np.intp],
    weight: _Floats,
    Cs: _Floats,
    limit: int,
    random_state: Any,
) -> float:
    """The C of least weighted loss over folds; the smallest of those that tie, the model's own without folds."""
    kept = search_rows(np.flatnonzero(weight), codes, limit, random_state)
    if len(kept) < _FOLDS:
        return float(model.C)
    splits = make_splits(_FOLDS, codes[kept], codes[kept], np.arange(len(kept)), random_state) or []
    losses = np.zeros(len(Cs))
    for train, test in ((kept[a], kept[b]) for a, b in splits):
        for c, C in enumerate(Cs):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the final fit warns
                fitted = (
                    clone(model).set_params(C=float(C), class_weight=None).fit(X[train], codes[train], weight[train])
                )
            losses[c] += float(weight[test] @ _row_losses(fitted, X[test], codes[test]))
    return float(Cs[losses.argmin()])


def _row_losses(fitted: Any, X: Observed, codes: NDArray[np.intp]) -> _Floats:
    """-log p(label) for the logistic loss, else 1 for a wrong label; (n,). A class that no training row had gets the least p."""
    if fitted.loss != "logistic":
        return np.asarray(fitted.predict(X) != codes, dtype=np.float64)
    share = np.zeros((len(codes), int(max(codes.max(), fitted.classes_.max())) + 1))
    share[:, fitted.classes_] = fitted.predict_proba(X)
    return -np.log(np.maximum(share[np.arange(len(codes)), codes], np.finfo(np.float64).eps))
