"""Scores of many kernels and values of C from one pass over the pairs and one eigendecomposition a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import rankdata

from lacunar._threads import one_blas_thread, thread_count
from lacunar.karma._kernel_form import KernelOptions, fit_form
from lacunar.karma._ridge import loo_path
from lacunar.kernels import pair_sums
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
Split = tuple[NDArray[np.intp], NDArray[np.intp]]


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
    scale: Any,
    constant: bool,
    expand: str | None = None,
) -> list[KernelOptions]:
    """All kernels of the search; gamma=1 (imputation by the column mean) is always among them."""
    every = sorted({1, *gammas})
    return [KernelOptions(g, scale, constant, a, norm, expand) for a, norm, g in product(indicators, normalize, every)]


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
            if verbose:
                left = (perf_counter() - begin) / (k + 1) * (len(grid) - k - 1)
                best = f"score {found.mean(axis=1).max():.4f}"
                print(f"[lacunar] kernel {k + 1}/{len(grid)} {_label(grid[k])}: {best}, {left:.1f} s left")
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
