"""The rank of a completion, chosen by cells that were hidden from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._codes import row_codes
from lacunar.lowrank.em import fit_em
from lacunar.observed import Observed

_HIDDEN = 10  # one observed cell in so many is hidden
_MOST = 64  # largest rank tried
_PATIENCE = 2  # ranks in a row that may do worse than the best before the search ends


def largest_rank(rows: Observed) -> int:
    """Below columns and rows: at either, nothing is left for the noise."""
    return max(min(rows.shape) - 1, 1)


def choose_rank(rows: Observed, *, rng: np.random.Generator, **options: Any) -> tuple[int, dict[int, float]]:
    """The smallest rank as good as the best on hidden cells, and the mean squared errors of all that were tried: 1, 2, 4, ...

    Cells are hidden one by one at random, a tenth of them; "as good" is within one standard error of the paired
    difference. `options` go to `fit_em`. Some two fits of the largest rank tried.
    """
    if rows.nnz < 2 * _HIDDEN:
        return 1, {}
    hidden = np.zeros(rows.nnz, bool)
    hidden[rng.permutation(rows.nnz)[: rows.nnz // _HIDDEN]] = True
    row = np.repeat(np.arange(rows.shape[0]), rows.row_counts)
    kept = np.bincount(row[~hidden], minlength=rows.shape[0])
    rest = Observed(np.concatenate([[0], np.cumsum(kept)]), rows.indices[~hidden], rows.values[~hidden], rows.shape)
    at, columns, values = row[hidden], rows.indices[hidden], rows.values[hidden]
    squares: dict[int, NDArray[np.float64]] = {}
    errors: dict[int, float] = {}
    for rank in _ranks(min(largest_rank(rows), _MOST)):
        model = fit_em(rest, rank, rng=rng, mean=True, **options)
        centred = rest.with_values(rest.values - model.mean[rest.indices])
        codes = row_codes(centred, model.basis, model.sigma2, n_jobs=options.get("n_jobs")).code
        guess = np.einsum("nk,nk->n", codes[at], model.basis[columns]) + model.mean[columns]
        squares[rank] = (guess - values) ** 2
        errors[rank] = float(squares[rank].mean())
        best = min(errors, key=errors.__getitem__)
        if list(errors).index(best) < len(errors) - _PATIENCE:
            break
    return next(rank for rank in errors if _as_good(squares[rank], squares[best])), errors


def _as_good(squares: NDArray[np.float64], best: NDArray[np.float64]) -> bool:
    worse = squares - best
    return bool(worse.mean() <= worse.std() / np.sqrt(len(worse)))


def _ranks(most: int) -> Iterator[int]:
    rank = 1
    while rank < most:
        yield rank
        rank *= 2
    yield most
