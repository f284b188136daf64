"""Hidden cells choose the rank: observed entries are hidden from a fit, which is then asked for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._codes import row_codes
from lacunar.lowrank.em import Factors, fit_em, less
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
_HIDDEN = 10  # `choose_rank` hides every tenth observed cell
_MOST = 64  # largest rank that `choose_rank` tries
_PATIENCE = 4  # ranks in a row that may do worse than the best before the search ends
_JUDGES, _MOST_SETS = 3000, 5  # hidden cells that are enough to judge a rank, and sets of them at most
# Observed cells for each column, and in all, of the rows that a rank is judged on.
_CELLS_A_COLUMN, _LEAST_CELLS = 2000, 30_000
# Differences of errors that do not matter: in units of the least, and of the variance of a column.
_SAME, _EXACT = 0.005, 1e-6
STEPS, TOL = 25, 1e-3  # of EM at most, and where it stops to judge a rank
_SPACED = 0.8  # of the largest rank: what is tried below it
RELAX = 1.8  # length of a step of EM, in units of the step


def hide(rows: Observed, hidden: NDArray[np.bool_]) -> Observed:
    """The rows without their entries (nnz,) marked in `hidden`. O(nnz)."""
    indptr = np.concatenate([[0], np.cumsum(~hidden)])[rows.indptr].astype(np.int64)
    return Observed(indptr, rows.indices[~hidden], rows.values[~hidden], rows.shape)


def squared_errors(
    codes: _Floats, basis: _Floats, rows: Observed, hidden: NDArray[np.bool_], mean: _Floats | float = 0.0
) -> _Floats:
    """Squared errors of mean + basis z at the hidden entries of `rows`, for codes z (n, k) of what was not hidden."""
    at = rows.row_numbers[hidden]
    columns = rows.indices[hidden]
    shift = np.broadcast_to(mean, rows.shape[1])[columns]
    guess = np.einsum("ek,ek->e", codes[at], basis[columns]) + shift
    errors: _Floats = (guess - rows.values[hidden]) ** 2
    return errors


def fewest_as_good(errors: Sequence[_Floats]) -> int:
    """Index of the first model whose errors (n_hidden,) are, in the mean, within one paired standard error of the best."""
    best = errors[int(np.argmin([float(np.mean(each)) for each in errors]))]
    losses = (each - best for each in errors)
    return next(k for k, loss in enumerate(losses) if loss.mean() <= loss.std() / np.sqrt(len(loss)))


def largest_rank(rows: Observed) -> int:
    """Below the numbers of columns and rows: at either, nothing is left for the noise."""
    return max(min(rows.shape) - 1, 1)


def choose_rank(
    rows: Observed, *, rng: np.random.Generator, max_iter: int, tol: float, n_jobs: int | None = None
) -> tuple[int, dict[int, float]]:
    """The rank that predicts hidden cells best, and the mean squared errors of all that were tried: 1, 2, 3, 4, 6, 8, 12, ...

    A tenth of the observed cells is hidden, drawn one by one; small tables have it done with up to five such tenths, which share no
    cell. Large ones are judged by a sample of their rows. A few long steps of EM order the ranks as its limit does, so that the work is about
    that of one fit to the sample.
    """
    if rows.nnz < 2 * _HIDDEN:
        return 1, {}
    sample = sampled_rows(rows, rng)
    rows = rows if sample is None else rows[sample]
    order, size = rng.permutation(rows.nnz), rows.nnz // _HIDDEN
    tests = [_marked(order[start : start + size], rows.nnz) for start in range(0, size * _sets(size), size)]
    tables = [hide(rows, hidden) for hidden in tests]
    options: dict[str, Any] = {
        "max_iter": min(max_iter, STEPS),
        "tol": max(tol, TOL),
        "relax": RELAX,
        "n_jobs": n_jobs,
    }
    errors: dict[int, float] = {}
    for rank in _ranks(min(largest_rank(rows), _MOST)):
        parts = (_errors(rows, *part, rank, rng, options) for part in zip(tables, tests, strict=True))
        errors[rank] = float(np.mean([np.mean(part) for part in parts]))
        if list(errors).index(_best(errors)) < len(errors) - 1 - _PATIENCE:
            break
    return _best(errors), errors


def _best(errors: dict[int, float]) -> int:
    """The smallest rank whose error is that of the best, but for a difference that matters to nobody."""
    least = (1 + _SAME) * min(errors.values()) + _EXACT
    return next(rank for rank, error in errors.items() if error <= least)


def fit_chosen(
    rows: Observed, rank: int, *, rng: np.random.Generator, max_iter: int, tol: float, n_jobs: int | None = None
) -> Factors:
    """The model of the rank that was chosen, by at most as many long steps as chose it: with more, columns seen rarely are overfitted."""
    steps = min(max_iter, STEPS)
    return fit_em(rows, rank, rng=rng, mean=True, max_iter=steps, tol=tol, relax=RELAX, n_jobs=n_jobs)


def sampled_rows(
    rows: Observed, rng: np.random.Generator, labelled: NDArray[np.bool_] | None = None
) -> NDArray[np.intp] | None:
    """As many rows, in order, as hold the cells that a choice of the rank looks at; None for all.

    Rows that are `labelled` (n,) have their share, and as many as there are up to half of the sample.
    """
    most, n = max(_CELLS_A_COLUMN * rows.shape[1], _LEAST_CELLS), rows.shape[0]
    if rows.nnz <= most:
        return None
    order, size = rng.permutation(n), -(-n * most // rows.nnz)
    if labelled is None:
        return np.sort(order[:size])
    first, others = order[labelled[order]], order[~labelled[order]]
    share = max(-(-size * len(first) // n), min(len(first), size // 2))
    return np.sort(np.concatenate([first[:share], others[: size - share]]))


def _sets(size: int) -> int:
    """How many sets of `size` hidden cells judge a rank."""
    return min(max(-(-_JUDGES // size), 1), _MOST_SETS)


def _marked(places: NDArray[np.intp], n: int) -> NDArray[np.bool_]:
    marks = np.zeros(n, bool)
    marks[places] = True
    return marks


def _errors(
    rows: Observed,
    seen: Observed,
    hidden: NDArray[np.bool_],
    rank: int,
    rng: np.random.Generator,
    options: dict[str, Any],
) -> _Floats:
    """Squared errors at the hidden entries of a model of this rank that was fitted to what was `seen`."""
    model = fit_em(seen, rank, rng=rng, mean=True, **options)
    codes = row_codes(less(seen, model.mean), model.basis, model.sigma2, n_jobs=options["n_jobs"]).code
    return squared_errors(codes, model.basis, rows, hidden, model.mean)


def _ranks(most: int) -> Iterator[int]:
    """1, 2, 3, 4, 6, 8, 12, ... and the largest, which stands for those just below it."""
    rank, step = 1, 1
    while rank <= _SPACED * most and rank < most:
        yield rank
        rank += step
        if rank & (rank - 1) == 0 and rank > 2:  # a power of two
            step = rank // 2
    yield most
