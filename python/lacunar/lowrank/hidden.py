"""The choice of a rank by the error at observed cells that are hidden from a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar._typing import Floats
from lacunar.lowrank.em import Fit, fit_em
from lacunar.lowrank.model import LowRankGaussian
from lacunar.observed import Observed
from lacunar.observed.columns import standardised

_HIDDEN = 10  # `choose_rank` hides every tenth observed cell
_MOST = 64  # largest rank that `choose_rank` tries
_PATIENCE = 4  # ranks in a row that may do worse than the best before the search ends
_JUDGES, _MOST_SETS = 3000, 5  # hidden cells that are enough to judge a rank, and sets of them at most
# Observed cells for each column, and in all, of the rows that a rank is judged on.
_CELLS_A_COLUMN, _LEAST_CELLS = 2000, 30_000
# Differences of errors that do not matter: in units of the least, and of the variance of a column.
_SAME, _EXACT = 0.005, 1e-6
STEPS, TOL = 25, 1e-3  # of EM at most, and where it stops to judge a rank
_FLAT = 1e-12  # variance of a column, in units of the largest, whose errors are none
_LEAST_NOISE = 1e-3  # of sigma^2, in units of the mean variance of a column
_SPACED = 0.8  # of the largest rank: what is tried below it
# Of `choose_rank_of_moments`: the share of rows that a model is of, entries judged a draw, drawn rows, draws, and
# columns times draws.
_SHARE, _JUDGED, _MASKS, _DRAWS, _DRAWN = 0.9, 500, (4, 64), (1, 4), 400
RELAX = 1.8  # length of a step of EM, in units of the step


def hide(rows: Observed, hidden: NDArray[np.bool_]) -> Observed:
    """The rows without their entries (nnz,) marked in `hidden`. O(nnz)."""
    indptr = np.concatenate([[0], np.cumsum(~hidden)])[rows.indptr].astype(np.int64)
    return Observed(indptr, rows.indices[~hidden], rows.values[~hidden], rows.shape)


def squared_errors(
    latent: Floats, basis: Floats, rows: Observed, hidden: NDArray[np.bool_], mean: Floats | float = 0.0
) -> Floats:
    """Squared errors of mean + basis z at the hidden entries of `rows`, for latent coordinates z (n, k) of what was not
    hidden.
    """
    at = rows.row_numbers[hidden]
    columns = rows.indices[hidden]
    shift = np.broadcast_to(mean, rows.shape[1])[columns]
    guess = np.einsum("ek,ek->e", latent[at], basis[columns]) + shift
    errors: Floats = (guess - rows.values[hidden]) ** 2
    return errors


def hidden_errors(
    model: LowRankGaussian, rows: Observed, seen: Observed, hidden: NDArray[np.bool_], n_jobs: int | None
) -> Floats:
    """Squared errors of posterior means at hidden entries of `rows` given what was `seen`, both about the
    model's mean.
    """
    return squared_errors(model.latent(seen, n_jobs=n_jobs).latent, model.basis, rows, hidden)


def tail_noise(values: Floats, trace: float, d: int) -> float:
    """Mean of the d - k eigenvalues beside the k `values`, where all sum to `trace`; at least .001 of the mean
    of all.
    """
    remainder = (trace - float(values.sum())) / (d - len(values)) if d > len(values) else 0.0
    return max(remainder, _LEAST_NOISE * trace / max(d, 1), 1e-300)


def largest_rank(rows: Observed) -> int:
    """One less than the smaller number of rows and columns, at least 1: with as many there would be no noise."""
    return max(min(rows.shape) - 1, 1)


def choose_rank(
    rows: Observed, *, rng: np.random.Generator, max_iter: int, tol: float, n_jobs: int | None = None
) -> tuple[int, dict[int, float]]:
    """The rank that predicts hidden cells best, and the mean squared errors of all ranks that were tried, by
    `best_rank`, of rows in units of the variance of their cells.

    A tenth of the observed cells is hidden, drawn one by one; small tables have it done with up to five such tenths,
    which share no cell. Large ones are judged by a sample of their rows. A few long steps of EM order the ranks as its
    limit does, so that the work is about that of one fit to the sample.
    """
    if rows.nnz < 2 * _HIDDEN:
        return 1, {}
    sample = sampled_rows(rows, rng)
    rows = rows if sample is None else rows[sample]
    tests = hidden_tenths(rows.nnz, rng)
    tables = [hide(rows, hidden) for hidden in tests]
    options: dict[str, Any] = {
        "max_iter": min(max_iter, STEPS),
        "tol": max(tol, TOL),
        "relax": RELAX,
        "n_jobs": n_jobs,
    }

    def error(rank: int) -> float:
        errors = (_errors(rows, *fold, rank, rng, options) for fold in zip(tables, tests, strict=True))
        return float(np.mean([np.mean(squares) for squares in errors]))

    return best_rank(error, largest_rank(rows))


def choose_rank_of_moments(
    covariance: Floats, counts: Floats, rates: Floats, most: int, rng: np.random.Generator
) -> tuple[int, dict[int, float]]:
    """The number of leading eigenvectors of a covariance that predicts missing entries best, and mean squared errors,
    as of `choose_rank`.

    Nothing is known of the rows but the covariance (d, d), the `counts` (d, d) of rows that its entries come from, and
    the `rates` (d,) at which columns are seen. Noise like its own, W, thins it: C + W sqrt((1 - f) / f) and C - W
    sqrt(f / (1 - f)) are like the covariances of a share f of the rows and of the others, and independent, as W has the
    variance that C has about its expectation (Rasines and Young, "Splitting strategies for post-selection inference",
    2023). The model is of the one, and its mean squared error at entries of drawn rows that are missing a sum of
    entries of the other.
    """
    d, size = len(covariance), float(np.max(np.diag(covariance)))
    if size <= 0:
        return 1, {}
    covariance = covariance / size
    rates = np.minimum(rates, 1 - 1 / _HIDDEN)
    n_masks = int(np.clip(-(-_JUDGED // max(float(np.sum(1 - rates)), 1e-300)), *_MASKS))
    draw = _moment_noise(covariance, counts, float(np.mean(rates)), rng)
    halves = []
    for _ in range(int(np.clip(_DRAWN // d, *_DRAWS))):
        noise, masks = draw(), rng.random((n_masks, d)) < rates
        halves += [_half(covariance, sign * noise, masks) for sign in (1, -1)]
    unit = np.maximum(np.diag(covariance), _FLAT)

    def error(rank: int) -> float:
        return float(np.mean([_moment_error(half, rank, unit) for half in halves]))

    return best_rank(error, most)


class _Half(NamedTuple):
    """Eigenvalues of a thinned covariance, falling, its eigenvectors (d, d), the other covariance, and entries of rows
    that are seen.
    """

    values: Floats
    vectors: Floats
    other: Floats
    masks: NDArray[np.bool_]


def _half(covariance: Floats, noise: Floats, masks: NDArray[np.bool_]) -> _Half:
    values, vectors = np.linalg.eigh(covariance + noise * np.sqrt((1 - _SHARE) / _SHARE))
    return _Half(values[::-1], vectors[:, ::-1], covariance - noise * np.sqrt(_SHARE / (1 - _SHARE)), masks)


def _moment_noise(covariance: Floats, counts: Floats, rate: float, rng: np.random.Generator) -> Callable[[], Floats]:
    """Draws W (d, d): of the variance of every entry of a covariance of normal rows.

    Entries of a row or column of it have a correlation of about `rate`, as they share rows; as such a share of W has
    the correlations of complete rows, and the other none.
    """
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    variance = np.diag(root @ root)
    deviation = np.sqrt(np.outer(variance, variance) + covariance**2)
    np.fill_diagonal(deviation, variance)  # as the diagonal of what is drawn has variance 2

    def draw() -> Floats:
        shared, own = (_symmetric_normal(len(root), rng) for _ in range(2))
        noise = rate * (root @ shared @ root) + np.sqrt(1 - rate**2) * deviation * own
        drawn: Floats = noise / np.sqrt(np.maximum(counts, 1.0))
        return drawn

    return draw


def _symmetric_normal(d: int, rng: np.random.Generator) -> Floats:
    """A symmetric matrix (d, d) of normal entries of variance 1, on the diagonal 2."""
    normal = rng.normal(size=(d, d))
    symmetric: Floats = (normal + normal.T) / np.sqrt(2)
    return symmetric


def _moment_error(half: _Half, rank: int, unit: Floats) -> float:
    """Mean squared error, in `unit` (d,), of the posterior means of entries that rows miss, where rows have the other
    covariance.

    Means are V_h K x_o, K = (V_o' V_o + noise)^-1 V_o', so that errors are C_hh - 2 V_h K C_oh + V_h K C_oo K' V_h'.
    """
    d, other = len(unit), half.other
    values = np.maximum(half.values[:rank], 0.0)
    noise = tail_noise(values, float(half.values.sum()), d)
    basis = half.vectors[:, :rank] * np.sqrt(np.maximum(values - noise, 0.0))
    total = n_missing = 0.0
    for seen in half.masks:
        part, missing = basis[seen], ~seen
        onto = np.linalg.solve(part.T @ part + noise * np.eye(rank), part.T)
        products = onto @ other[seen]
        second = products[:, seen] @ onto.T
        errors = np.diag(other)[missing] + np.sum(
            (basis[missing] @ second - 2 * products[:, missing].T) * basis[missing], axis=1
        )
        total += float(np.sum(errors / unit[missing]))
        n_missing += len(errors)
    return total / max(n_missing, 1.0)


def next_rank(rank: int, most: int) -> int:
    """The rank that would be tried after this one, up to `most`."""
    return next((larger for larger in _ranks(min(most, _MOST)) if larger > rank), rank)


def best_rank(error: Callable[[int], float], most: int) -> tuple[int, dict[int, float]]:
    """The smallest rank whose error is at most half a per cent above the least, and the errors of all that were tried.

    These are 1, 2, 3, 4, 6, 8, 12, ... up to `most`, until more than `_PATIENCE` in a row do no better than the best;
    then those halfway between the best and its neighbours.
    """
    errors: dict[int, float] = {}
    for rank in _ranks(min(most, _MOST)):
        errors[rank] = error(rank)
        if list(errors).index(_best(errors)) < len(errors) - 1 - _PATIENCE:
            break
    errors |= {rank: error(rank) for rank in _halfway(list(errors), _best(errors))}
    return _best(errors), dict(sorted(errors.items()))


def _halfway(ranks: list[int], best: int) -> list[int]:
    """Ranks between the best and the ones next to it that were tried."""
    at = ranks.index(best)
    return [(best + near) // 2 for near in ranks[max(at - 1, 0) : at + 2] if abs(best - near) > 1]


def _best(errors: dict[int, float]) -> int:
    """The smallest rank whose error is at most half a per cent above the least."""
    least = (1 + _SAME) * min(errors.values()) + _EXACT
    return min(rank for rank, error in errors.items() if error <= least)


def fit_chosen(
    rows: Observed, rank: int, *, rng: np.random.Generator, max_iter: int, tol: float, n_jobs: int | None = None
) -> Fit:
    """The model of the rank that was chosen, by at most as many long steps as chose it: with more, columns seen rarely
    are overfitted.
    """
    steps = min(max_iter, STEPS)
    return fit_em(rows, rank, rng=rng, mean=True, max_iter=steps, tol=tol, relax=RELAX, n_jobs=n_jobs)


def most_cells(d: int) -> int:
    """Observed entries of the rows that are looked at first, of a table of d columns."""
    return max(_CELLS_A_COLUMN * d, _LEAST_CELLS)


def sampled_rows(
    rows: Observed, rng: np.random.Generator, labelled: NDArray[np.bool_] | None = None
) -> NDArray[np.intp] | None:
    """As many rows, in order, as hold the cells that a choice of the rank looks at; None for all.

    Rows that are `labelled` (n,) have their share, and as many as there are up to half of the sample.
    """
    most, n = most_cells(rows.shape[1]), rows.shape[0]
    if rows.nnz <= most:
        return None
    order, size = rng.permutation(n), -(-n * most // rows.nnz)
    if labelled is None:
        return np.sort(order[:size])
    first, others = order[labelled[order]], order[~labelled[order]]
    share = max(-(-size * len(first) // n), min(len(first), size // 2))
    return np.sort(np.concatenate([first[:share], others[: size - share]]))


def hidden_tenths(nnz: int, rng: np.random.Generator) -> list[NDArray[np.bool_]]:
    """Masks (nnz,) of the cells that are hidden to judge a rank: as many tenths as hold 3,000 cells, at most 5, which
    share no cell.
    """
    order, size = rng.permutation(nnz), max(nnz // _HIDDEN, 1)
    sets = min(max(-(-_JUDGES // size), 1), _MOST_SETS)
    return [marked(order[start : start + size], nnz) for start in range(0, min(size * sets, nnz), size)]


def marked(places: NDArray[np.intp], n: int) -> NDArray[np.bool_]:
    """A mask (n,) that is True at these places."""
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
) -> Floats:
    """Squared errors at the hidden entries of a model of this rank that was fitted to what was `seen`."""
    model = fit_em(seen, rank, rng=rng, mean=True, **options).model
    latent = model.latent(standardised(seen, model.mean), n_jobs=options["n_jobs"]).latent
    return squared_errors(latent, model.basis, rows, hidden, model.mean)


def _ranks(most: int) -> Iterator[int]:
    """1, 2, 3, 4, 6, 8, 12, ... and the largest, which stands for those just below it."""
    rank, step = 1, 1
    while rank <= _SPACED * most and rank < most:
        yield rank
        rank += step
        if rank & (rank - 1) == 0 and rank > 2:  # a power of two
            step = rank // 2
    yield most
