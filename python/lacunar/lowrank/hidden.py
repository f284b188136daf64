"""Hidden cells choose the rank: observed entries are hidden from a fit, which is then asked for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._codes import row_codes
from lacunar.lowrank.em import fit_em, less
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
_HIDDEN = 10  # `choose_rank` hides every tenth observed cell
_MOST = 64  # largest rank that `choose_rank` tries
_PATIENCE = 2  # ranks in a row that may do worse than the best before the search ends


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


def choose_rank(rows: Observed, *, rng: np.random.Generator, **options: Any) -> tuple[int, dict[int, float]]:
    """The smallest rank as good as the best on hidden cells, and the mean squared errors of all that were tried: 1, 2, 4, ...

    A tenth of the observed cells is hidden, drawn one by one; `fewest_as_good` says what is as good. `options` go to `fit_em`.
    The work is about that of two fits of the largest rank tried.
    """
    if rows.nnz < 2 * _HIDDEN:
        return 1, {}
    hidden = np.zeros(rows.nnz, bool)
    hidden[rng.permutation(rows.nnz)[: rows.nnz // _HIDDEN]] = True
    rest = hide(rows, hidden)
    squares: dict[int, _Floats] = {}
    for rank in _ranks(min(largest_rank(rows), _MOST)):
        model = fit_em(rest, rank, rng=rng, mean=True, **options)
        codes = row_codes(less(rest, model.mean), model.basis, model.sigma2, n_jobs=options.get("n_jobs")).code
        squares[rank] = squared_errors(codes, model.basis, rows, hidden, model.mean)
        if np.argmin([each.mean() for each in squares.values()]) < len(squares) - _PATIENCE:
            break
    chosen = list(squares)[fewest_as_good(list(squares.values()))]
    return chosen, {rank: float(each.mean()) for rank, each in squares.items()}


def _ranks(most: int) -> Iterator[int]:
    rank = 1
    while rank < most:
        yield rank
        rank *= 2
    yield most
