"""Low-rank models of partially observed rows by EM, alternating least squares, and variational EM with a posterior of
the components.

All are steps of `run_em`: an expectation step over rows, in memory or in parts, and a maximisation step over columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lacunar import _core
from lacunar._eigen import canonical_turn, signed
from lacunar._latent import LARGEST_CORE_RANK, LatentRows, latent_rows
from lacunar._random import generator
from lacunar._threads import thread_count
from lacunar._typing import Floats
from lacunar.lowrank.model import LowRankGaussian
from lacunar.lowrank.parts import Counts, RowParts, added, column_totals, count, in_parts
from lacunar.lowrank.ridge import Total, solve_ridge
from lacunar.observed import Observed
from lacunar.observed.columns import row_blocks, standardised
from lacunar.observed.door import check_sums

Progress = Callable[[int, float], None]
_State = TypeVar("_State")

_TINY = 1e-200  # keeps ratios finite where every entry is 0
_LEAST_NOISE = 1e-12  # of a noise variance, in units of the mean square of an entry
_SPARE, _PRODUCTS = 20, 5  # of the randomised start: directions beside those wanted, products with X^T X
_SAME_RANK = 1e-12  # squared singular values below it, in units of the largest, are rounding
_SURE, _RESCUE = (
    1e-12,
    1e-8,
)  # ridges of columns, in units of their mean diagonal: with covariances of latent coordinates, without
_CHUNK = 2**20  # numbers of packed second moments held at once
_MOST_REFINED = 64  # components: a step takes their square in memory, for every column
FEW_PAIRS = 20  # rows that show a pair, in the mean, below which refinement begins at two places
_SETTLED = 1e-5  # mean squared sine between the subspaces of two steps that ends the refinement
# of a component's variance at the start of a refinement, in units of the noise: none starts, and so stays, at 0
_FAINT = 1e-6
_TINY_VARIANCE = 1e-200  # a variance whose quotients would leave float64
_BLOCK = 2**22  # numbers of unpacked matrices of columns held at once


class Fit(NamedTuple):
    """A model, how many steps it took, and whether they settled."""

    model: LowRankGaussian
    n_iter: int = 0
    converged: bool = False
    n_singular: int = 0  # rows whose latent coordinates were not unique, over all steps
    weights: Floats | None = (
        None  # (k, targets): of labels on latent coordinates, where they were learned with the model
    )

    def rotated(self) -> Fit:
        """The same model with basis = U diag(s), U orthonormal, s falling, and its weights."""
        u, s, right = np.linalg.svd(self.model.basis, full_matrices=False)
        turn = canonical_turn(s, u)
        axes = u @ turn
        turn *= np.sum(axes * signed(axes.T).T, axis=0)
        weights = None if self.weights is None else turn.T @ (right @ self.weights)
        return self._replace(model=self.model._replace(components=((u * s) @ turn).T), weights=weights)


# -- the driver -------------------------------------------------------------------------------------------------------


def run_em(
    step: Callable[[_State], tuple[_State, float]],
    state: _State,
    *,
    max_iter: int,
    tol: float = -1.0,
    progress: Progress | None = None,
    until: Callable[[_State], bool] | None = None,
) -> tuple[_State, int, bool]:
    """At most `max_iter` steps, until one changes the state by at most `tol` or is the last by `until`: the last state,
    how many steps, and whether they settled.

    `step(state)` returns the next state and the size of the change; `progress` hears of both.
    """
    for n_iter in range(1, max_iter + 1):
        state, change = step(state)
        if progress is not None:
            progress(n_iter, change)
        if change <= tol or (until is not None and until(state)):
            return state, n_iter, True
    return state, max_iter, False


def relaxed(
    old: Floats, loadings: Floats, old_noise: float, noise: float, relax: float, floor: float
) -> tuple[Floats, float]:
    """Loadings and noise after a step that is `relax` times as long; the noise moves by its logarithm, down to
    `floor`.
    """
    longer = max(old_noise, floor)
    return old + relax * (loadings - old), float(max(longer * min(noise / longer, 1e6) ** relax, floor))


def sums_over(rows: Observed | RowParts, weight: Floats | None = None, n_jobs: int | None = None) -> Total:
    """A function `total(step, *arguments)` that sums step(table, *arguments) over all parts of the rows."""
    return in_parts(rows).map(WeightedRows.of, weight, n_jobs, keep=False).total


class WeightedRows(NamedTuple):
    """A part of the rows, what each counts for, and threads to sum them with."""

    rows: Observed
    weight: Floats | None = None
    threads: int = 1

    @classmethod
    def of(cls, rows: Observed, weight: Floats | None, n_jobs: int | None) -> WeightedRows:
        """Rows of `weight` (n,)."""
        return cls(rows, weight, thread_count(n_jobs))

    def pieces(self, d: int) -> Iterator[WeightedRows]:
        """Consecutive pieces of the table, so short that second moments of d latent coordinates of a piece are a
        million numbers at most.
        """
        for piece in row_blocks(self.rows, max(_CHUNK // (d * (d + 1) // 2), 1)):
            yield self._replace(rows=self.rows[piece], weight=None if self.weight is None else self.weight[piece])


def table_sizes(table: WeightedRows) -> tuple[int, Floats, float]:
    """Number of rows, of entries in every column (D,), and the sum of their squares."""
    counts, _, squares = column_totals(table.rows, table.weight, n_jobs=table.threads)
    return table.rows.shape[0], counts, float(squares.sum())


# -- where fits start -------------------------------------------------------------------------------------------------


def first_basis(rows: Observed, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The leading d right singular vectors (D, d) of zero-filled rows, and singular values (d,); section 4.2 of the
    paper on SLRM.
    """
    return _singular_vectors(sums_over(rows), *rows.shape, d, rng)


def zero_filled(model: LowRankGaussian, rows: Observed | RowParts, n_jobs: int | None) -> LowRankGaussian:
    """A start for `refined`: k singular vectors of centred rows (n, D) filled with zeros, of the same total variance as
    `model`.

    Half of the variance is theirs, in equal parts, and half is noise.
    """
    k, D = model.components.shape
    total = float(np.sum(model.variances)) + float(model.ridge) * (D - k)
    basis = _singular_vectors(sums_over(rows, None, n_jobs), count(rows).m, D, k, generator(0))[0]
    return LowRankGaussian.principal(np.zeros(D), basis.T, np.full(k, total / (2 * k)), total / (2 * D))


def _singular_vectors(total: Total, n: int, D: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """`first_basis` of n rows of D columns, known by sums over them.

    Randomised subspace iteration (Halko, Martinsson and Tropp 2011, algorithm 4.4) by products with X^T X, which are
    sums over rows. Five of them, O(nnz d) each.
    """
    k = min(d, n, D)
    basis = np.linalg.qr(rng.normal(size=(D, min(k + _SPARE, D))))[0]
    for _ in range(_PRODUCTS - 1):
        basis = np.linalg.qr(total(gram_product, basis)[0])[0]
    products = total(gram_product, basis)[0]
    check_sums(products, "squares")
    vectors, squares, _ = np.linalg.svd(products, full_matrices=False)
    rank = int(np.sum(squares > _SAME_RANK * squares[0]))
    first = vectors[:, :rank] @ canonical_turn(squares[:rank], vectors[:, :rank], min(k, rank))
    if first.shape[1] < d:  # fewer rows than directions: the others are any that are orthogonal
        others = rng.normal(size=(D, d - first.shape[1]))
        first = np.column_stack([first, np.linalg.qr(np.column_stack([first, others]))[0][:, first.shape[1] :]])
    values = np.zeros(d)
    values[: min(k, len(squares))] = np.sqrt(squares[:k])
    return first, values


def gram_product(table: WeightedRows, V: Floats) -> tuple[Floats]:
    """X^T X V (D, v), X the rows with zeros for what is missing. O(nnz v)."""
    rows = table.rows
    return (_core.column_gram_product(rows.indptr, rows.indices, rows.values, np.ascontiguousarray(V), table.threads),)


def _first_model(
    total: Total, n: int, counts: Floats, size: float, d: int, rng: np.random.Generator
) -> LowRankGaussian:
    """The start of EM, from singular vectors of n zero-filled rows; `counts` are the entries of each column, `size` is
    the sum of their squares.
    """
    D, nnz = len(counts), float(counts.sum())
    basis, values = _singular_vectors(total, n, D, d, rng)
    share = max(nnz / max(n * D, 1), 1e-12)
    variance = np.square(values) / max(n * share, 1.0)  # of zero-filled rows, corrected for that
    mean = size / nnz if nnz else 1.0
    noise = max(mean - float(variance.sum()) / D, 0.1 * mean)
    return LowRankGaussian(np.zeros(D), (basis * np.sqrt(np.maximum(variance, 1e-3 * mean))).T, noise, noise)


# -- columns --------------------------------------------------------------------------------------------------------


def unpacked(packed: Floats, k: int) -> Floats:
    """Symmetric matrices (n, k, k) of lower triangles by rows (n, k (k + 1) / 2)."""
    row, column = np.tril_indices(k)
    full = np.empty((len(packed), k, k))
    full[:, row, column] = packed
    full[:, column, row] = packed
    return full


def solve_columns(packed: Floats, products: Floats, ridge: float) -> Floats:
    """v_j = G_j^-1 b_j (D, d), with a ridge in units of the mean diagonal of G_j; columns that no row saw stay 0."""
    d = products.shape[1]
    grams = unpacked(packed, d)
    mean = np.einsum("jkk->j", grams) / d
    seen = mean > 0
    loadings = np.zeros_like(products)
    loadings[seen] = solve_ridge(grams[seen], products[seen], (ridge * mean[seen])[:, None])
    return loadings


# -- maximum likelihood -----------------------------------------------------------------------------------------------


def fit_em(
    rows: Observed | RowParts,
    d: int,
    *,
    rng: np.random.Generator,
    max_iter: int = 100,
    tol: float = 1e-4,
    mean: bool = False,
    start: LowRankGaussian | None = None,
    weight: Floats | None = None,
    relax: float = 1.0,
    least_noise: float = _LEAST_NOISE,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    until: Callable[[LowRankGaussian], bool] | None = None,
) -> Fit:
    """Maximum likelihood of probabilistic PCA on the observed entries (Tipping and Bishop 1999, with missing entries).

    With `mean`, column means are parameters too: means of what happens to be observed are off by what is not. A row of
    `weight` (n,) w counts as w equal rows; it needs rows in memory. `relax` below 2 multiplies every step: EM shrinks
    the distance to its limit by factors in [0, 1), so that steps of 1.7 times the length arrive in about half as many
    (Salakhutdinov and Roweis 2003). `least_noise` is the least noise variance, in units of the mean square of an entry. Steps end too where
    `until(model)` says so.
    O(nnz d^2 + n d^3) a step, two thirds of it in products of matrices; D d^2 / 2 numbers of memory, and of every
    part's sums.
    """
    total = sums_over(rows, weight, n_jobs)
    n, counts, size = total(table_sizes)
    if start is None:
        if weight is None or not isinstance(rows, Observed):
            weighted = total
        else:  # rows whose squares count by their weights
            scaled = rows.with_values(rows.values * np.sqrt(np.repeat(weight, rows.row_counts)))
            weighted = sums_over(scaled, None, n_jobs)
        start = _first_model(weighted, int(n), counts, size, d, rng)
    n_seen, n_singular = max(float(counts.sum()), 1.0), 0
    floor = max(least_noise * size / n_seen, _TINY)

    def step(state: tuple[Floats, Floats, float]) -> tuple[tuple[Floats, Floats, float], float]:
        nonlocal n_singular
        basis, centre, old_noise = state
        old = np.column_stack([basis, centre]) if mean else basis
        packed, products, rescued = total(em_sums, basis, centre, old_noise, mean)
        n_singular += int(rescued)
        loadings = solve_columns(packed, products, _SURE)
        # E|x - V z|^2 = |x|^2 - 2 sum_j v_j b_j + sum_j v_j G_j v_j, and v_j solves G_j v_j = b_j
        noise = max((size - float(np.sum(loadings * products))) / n_seen, floor)
        if relax != 1:
            loadings, noise = relaxed(old, loadings, old_noise, noise, relax, floor)
        change = _norm(loadings - old) / max(_norm(loadings), 1e-300)
        return (loadings[:, :d], loadings[:, d] if mean else centre, noise), change

    def model_of(state: tuple[Floats, Floats, float]) -> LowRankGaussian:
        basis, centre, noise = state
        return LowRankGaussian(centre, basis.T, noise, noise)

    last = None if until is None else lambda state: until(model_of(state))
    first = (np.ascontiguousarray(start.basis), start.mean, start.ridge)
    state, n_iter, converged = run_em(step, first, max_iter=max_iter, tol=tol, progress=progress, until=last)
    return Fit(model_of(state), n_iter, converged, n_singular)


def _norm(x: Floats) -> float:
    return float(np.sqrt(np.sum(np.square(x))))


def em_sums(table: WeightedRows, basis: Floats, mean: Floats, noise: float, with_mean: bool) -> tuple[Any, ...]:
    """Sums by column of E z z^T, packed (D, d (d + 1) / 2), and of x E z (D, d), and how many rows needed a rescuing
    ridge; d is one larger `with_mean`.
    """
    d = basis.shape[1]
    if table.weight is None and d <= LARGEST_CORE_RANK:
        row, column = np.tril_indices(d)
        model = np.column_stack([basis[:, row] * basis[:, column], basis, mean])
        sums, _, rescued = factor_sums(table, model, d, float(noise))
        free, pairs = d + with_mean, (d + 1) * (d + 2) // 2
        return sums[:, : free * (free + 1) // 2], sums[:, pairs : pairs + free], rescued
    return added(_piece_sums(piece, basis, mean, noise, with_mean) for piece in table.pieces(d))


def factor_sums(table: WeightedRows, model: Floats, k: int, noise: float) -> tuple[Floats, Floats, int]:
    """Sums by column of E u u^T, packed, and of x E u, u = (z, 1), over rows; sum of E z z^T, packed; rows that needed
    rescue.

    `model` (D, k (k + 1) / 2 + k + 1) has, of each column, v v^T, packed, v and the mean. One pass of the core.
    """
    sums, moment = np.zeros((len(model), (k + 1) * (k + 2) // 2 + k + 1)), np.zeros(k * (k + 1) // 2)
    data = (table.rows.indptr, table.rows.indices, table.rows.values, model, k, noise)
    rescued = _core.factor_sums(*data, sums, moment, table.threads)
    if not np.isfinite(sums).all():
        check_sums(sums, "sums")
    return sums, moment, rescued


def _piece_sums(
    table: WeightedRows, basis: Floats, mean: Floats, noise: float, with_mean: bool
) -> tuple[Floats, Floats, int]:
    rows = standardised(table.rows, mean, n_jobs=table.threads)
    posterior = latent_rows(rows, basis, noise, inverse=True, n_jobs=table.threads)
    latent, covariance = posterior.latent, noise * posterior.inverse
    if with_mean:  # a direction more, whose coordinate is 1 for certain
        latent = and_one(latent)
        covariance = np.column_stack([covariance, np.zeros((len(latent), latent.shape[1]))])
    return *column_sums(table, latent, covariance), posterior.n_singular


def and_one(latent: Floats) -> Floats:
    return np.column_stack([latent, np.ones(len(latent))])


# -- alternating least squares ----------------------------------------------------------------------------------------


def fit_als(
    rows: Observed | RowParts,
    d: int,
    *,
    rng: np.random.Generator,
    ridge: float | None = None,
    max_iter: int = 100,
    tol: float = 1e-4,
    mean: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Alternating least squares with an orthonormal basis and a ridge on latent coordinates, learned when `ridge` is
    None.

    The ridge is sigma^2 / tau, noise of an entry over variance of a coordinate: sigma^2 = sum |x - U a|^2 / sum (o -
    freedom). O(nnz d^2 + (n + D) d^3) a sweep.
    """
    total = sums_over(rows, None, n_jobs)
    n, counts, _ = total(table_sizes)
    basis, _ = _singular_vectors(total, int(n), len(counts), d, rng)
    weight = 0.1 * float(counts.sum()) / max(n * len(counts), 1) if ridge is None else ridge
    start = LowRankGaussian(np.zeros(len(counts)), basis.T, weight, 1.0 if ridge is None else ridge)
    n_singular = 0

    def sweep(model: LowRankGaussian) -> tuple[LowRankGaussian, float]:
        nonlocal n_singular
        sums = total(als_sums, model.basis, model.mean, model.ridge, mean, ridge is None)
        packed, products, rescued, size, residual, freedom = sums
        n_singular += int(rescued)
        if ridge is None:
            noise, prior = _noise(size, residual, freedom, counts, model.basis)
            model = model._replace(ridge=noise / prior, noise=noise, prior=prior)
        loadings = solve_columns(packed, products, _RESCUE)
        new = np.linalg.qr(loadings[:, :d])[0]
        change = float(np.sqrt(max(d - _norm(model.basis.T @ new) ** 2, 0.0) / d))
        return model._replace(mean=loadings[:, d] if mean else model.mean, components=new.T), change

    model, n_iter, converged = run_em(sweep, start, max_iter=max_iter, tol=tol, progress=progress)
    return Fit(model, n_iter, converged, n_singular)


def _noise(size: float, residual: float, freedom: float, counts: Floats, basis: Floats) -> tuple[float, float]:
    """Variances of the noise and of a latent coordinate, from the squared residuals of entries whose squares sum to
    `size`.
    """
    nnz = float(counts.sum())
    noise = residual / max(freedom, 1.0)
    floor = max(_LEAST_NOISE * size / max(nnz, 1.0), _TINY)
    gram_trace = float(counts @ np.sum(np.square(basis), axis=1))
    prior = (size - nnz * noise) / max(gram_trace, 1e-300)
    return max(noise, floor), max(prior, floor)


def als_sums(
    table: WeightedRows, basis: Floats, mean: Floats, ridge: float, with_mean: bool, learns: bool
) -> tuple[Any, ...]:
    """Sums by column of z z^T, packed, and of x z; rows that needed rescue; squares of entries, squared residuals, and
    their
    degrees of freedom (with `learns`, else zeros)."""
    return added(_als_piece(piece, basis, mean, ridge, with_mean, learns) for piece in table.pieces(basis.shape[1]))


def _als_piece(
    table: WeightedRows, basis: Floats, mean: Floats, ridge: float, with_mean: bool, learns: bool
) -> tuple[Floats, Floats, int, float, float, float]:
    rows = standardised(table.rows, mean, n_jobs=table.threads)
    best = latent_rows(rows, basis, ridge, residual=True, inverse=learns, n_jobs=table.threads)
    latent = and_one(best.latent) if with_mean else best.latent
    size = float(np.sum(np.square(rows.values, dtype=np.float64)))
    freedom = _freedom(best, rows, ridge) if learns else 0.0
    return *column_sums(table, latent, None), best.n_singular, size, float(best.residual.sum()), freedom


def _freedom(best: LatentRows, rows: Observed, ridge: float) -> float:
    """Degrees of freedom of the residuals: sum (o - f) over rows of o entries, f = d - ridge tr (G + ridge I)^-1."""
    d, entries = best.latent.shape[1], rows.row_counts
    diagonal = np.cumsum(np.arange(1, d + 1)) - 1
    lost = np.where(entries > 0, d - ridge * best.inverse[:, diagonal].sum(axis=1), 0.0)
    return float(np.sum(entries - lost))


# -- rows and columns of a step ---------------------------------------------------------------------------------------


def column_sums(table: WeightedRows, latent: Floats, covariance: Floats | None) -> tuple[Floats, Floats]:
    """Sums by column of z z^T, packed (D, d (d + 1) / 2), and of x z (D, d), of a piece of the rows."""
    row, column = np.tril_indices(latent.shape[1])
    moments = latent[:, row] * latent[:, column]
    if covariance is not None:
        moments += covariance
    if table.weight is not None:
        moments *= table.weight[:, None]
        latent = latent * table.weight[:, None]
    entries = table.rows.to_scipy().T
    seen = type(entries)((np.ones(entries.nnz), entries.indices, entries.indptr), shape=entries.shape)
    return seen @ moments, entries @ latent


# -- EM with a posterior of the components ----------------------------------------------------------------------------


class _Uncertain(NamedTuple):
    """x_j = mean_j + v_j z + noise, z of unit covariance, v_j normal about row j of the model's basis, whose columns
    are orthogonal.
    """

    model: LowRankGaussian
    covariances: Floats  # (d, k (k + 1) / 2): of v_j, packed
    prior: Floats  # (k,): variance of an entry of v_j before it is seen


def refinable(model: LowRankGaussian) -> bool:
    """Whether `refined` can take this model: fewer components than columns, at most 64, and a leading variance above
    1e-200.
    """
    k, d = model.components.shape
    return 0 < k < d and k <= _MOST_REFINED and float(model.variances[0]) > _TINY_VARIANCE


def refined(
    starts: Sequence[LowRankGaussian], rows: Observed | RowParts, steps: int, *, centre: bool, n_jobs: int | None
) -> LowRankGaussian:
    """At most `steps` of variational EM from each start, models of principal components about mean 0: the model of the
    largest evidence. Means are parameters where `centre`.

    Rows of components have a normal prior whose variance is learned and a normal posterior, as in the variational PCA
    of Bishop (1999) for missing entries (Ilin and Raiko, "Practical approaches to principal component analysis in the
    presence of missing values", JMLR 2010); plain EM (Tipping and Bishop 1999) is the same without these covariances
    and the prior, and overfits columns seen rarely. Latent coordinates are whitened and rotated to the axes after every
    step. O(nnz k^2 + (n + d) k^3) a step, 2 d k^2 numbers.
    """
    counts, total = count(rows), sums_over(rows, None, n_jobs)
    size, n_seen = float(counts.squares.sum()), int((counts.n > 0).sum())

    def step(state: _Uncertain) -> tuple[_Uncertain, float]:
        new = _refining_step(state, total, counts, size, centre=centre)
        return new, float(1 - np.sum((_axes(state).T @ _axes(new)) ** 2) / _axes(new).shape[1])

    states = [run_em(step, _state_of(start, n_seen), max_iter=steps, tol=_SETTLED)[0] for start in starts]
    state = states[0] if len(states) == 1 else max(states, key=lambda state: _evidence(state, total))
    noise = state.model.ridge
    variances = np.sum(state.model.basis**2, axis=0) + noise
    return LowRankGaussian.principal(state.model.mean, signed(_axes(state).T), variances, noise)


def shrunk(model: LowRankGaussian, rows: Observed, steps: int, n_jobs: int | None) -> LowRankGaussian:
    """A model of `fit_em` after at most `steps` of variational EM, which shrink components that few entries support; as
    it is where `refinable` says no. Where few rows show a pair they start at singular vectors too, as EM may have left
    no noise to shrink by.
    """
    axes, lengths, _ = np.linalg.svd(model.basis, full_matrices=False)
    start = LowRankGaussian.principal(np.zeros(len(axes)), axes.T, lengths**2 + model.ridge, model.ridge)
    if not (rows.nnz and refinable(start)):
        return model
    table = in_parts(standardised(rows, model.mean))
    sparse = rows.nnz**2 < FEW_PAIRS * rows.shape[0] * rows.shape[1] ** 2
    starts = [start, zero_filled(start, table, n_jobs)] if sparse else [start]
    new = refined(starts, table, steps, centre=True, n_jobs=n_jobs)
    basis = (
        new.basis * (np.bincount(rows.indices, minlength=len(axes)) > 0)[:, None]
    )  # no rounding where nothing is seen
    return LowRankGaussian(model.mean + new.mean, np.ascontiguousarray(basis.T), new.ridge, new.ridge)


def _state_of(start: LowRankGaussian, n_seen: int) -> _Uncertain:
    """The state of a start, whose components have no posterior variance yet."""
    strength = np.maximum(start.variances - start.ridge, _FAINT * start.ridge)
    basis = start.components.T * np.sqrt(strength)
    d, k = basis.shape
    model = start._replace(components=basis.T, sizes=1.0)
    return _Uncertain(model, np.zeros((d, k * (k + 1) // 2)), np.sum(basis**2, axis=0) / max(n_seen, 1))


def _evidence(state: _Uncertain, total: Total) -> float:
    """The lower bound of the log likelihood that steps raise, up to a constant: that of the rows given the posterior of
    the components, less the divergence of that posterior from its prior.
    """
    basis, covariances, k = state.model.basis, state.covariances, len(state.prior)
    bound = total(_row_evidence, _column_moments(state), k, state.model.ridge)[0]
    seen = np.flatnonzero(covariances[:, 0] > 0)
    for block in _column_blocks(len(seen), k):
        at = seen[block]
        full = unpacked(covariances[at], k)
        second = (basis[at] ** 2 + np.einsum("jkk->jk", full)) / state.prior
        bound -= float(np.sum(second + np.log(state.prior)) - np.sum(np.linalg.slogdet(full)[1])) / 2
    return float(bound)


def _row_evidence(table: WeightedRows, model: Floats, k: int, noise: float) -> tuple[float]:
    """Sum over rows of the log likelihood, up to a constant; `model` as of `factor_sums`."""
    bound, pairs = -0.5 * table.rows.nnz * np.log(noise), k * (k + 1) // 2
    for piece in table.pieces(k):
        entries = standardised(piece.rows, model[:, -1], n_jobs=piece.threads).to_scipy()
        seen = type(entries)((np.ones(entries.nnz), entries.indices, entries.indptr), shape=entries.shape)
        precision = np.eye(k) + unpacked(seen @ model[:, :pairs], k) / noise
        pull = entries @ model[:, pairs:-1] / noise
        latent = np.linalg.solve(precision, pull[:, :, None])[:, :, 0]
        bound += 0.5 * float(np.sum(pull * latent) - np.sum(np.linalg.slogdet(precision)[1]))
        bound -= 0.5 * float(np.sum(np.square(entries.data, dtype=np.float64))) / noise
    return (float(bound),)


def _axes(state: _Uncertain) -> Floats:
    basis = state.model.basis
    axes: Floats = basis / np.linalg.norm(basis, axis=0)
    return axes


def _refining_step(state: _Uncertain, total: Total, counts: Counts, size: float, *, centre: bool) -> _Uncertain:
    """A step of variational EM from sums over rows: `counts` of the columns' entries, whose squares sum to `size`."""
    model, (k, d) = state.model, state.model.components.shape
    seen, nnz = counts.n > 0, max(float(counts.n.sum()), 1.0)
    grams, products, moment = _expectations(state, total, counts.used)
    free = k + 1 if centre else k  # the mean is a direction more, whose coordinate is 1 for certain
    ridge = np.zeros(free)
    ridge[:k] = model.ridge / state.prior
    loadings, covariances, residual = np.empty((d, free)), np.empty_like(state.covariances), size
    for block in _column_blocks(d, k):
        full = unpacked(grams[block], k + 1)[:, :free, :free]
        loadings[block], inverse, explained = _column_posteriors(full, products[block, :free], ridge, k)
        covariances[block] = _packed(np.where(seen[block, None, None], model.ridge * inverse, 0.0))
        residual -= explained - float(np.sum(unpacked(covariances[block], k) * full[:, :k, :k]))
    noise = max(residual / nnz, _LEAST_NOISE * size / nnz, 1e-300)
    mean = loadings[:, k] if centre else model.mean
    return _on_axes(loadings[:, :k], covariances, mean, noise, moment, int(seen.sum()))


def _column_posteriors(grams: Floats, products: Floats, ridge: Floats, k: int) -> tuple[Floats, Floats, float]:
    """Means w (m, free), inverses (m, k, k) of G + ridge, and the squares that w explains.

    E|x - v u|^2 = |x|^2 - 2 w b + w G w + tr(S G), S the covariance of v, and (G + ridge) w = b.
    """
    least = _LEAST_NOISE * np.einsum("jkk->j", grams)[:, None] + 1e-300
    inverse = np.linalg.inv(grams + (ridge + least)[:, :, None] * np.eye(len(ridge)))
    loadings = np.einsum("jkl,jl->jk", inverse, products)
    return loadings, inverse[:, :k, :k], float(np.sum(loadings * products)) + float(np.sum(loadings**2 * ridge))


def _column_blocks(d: int, k: int) -> list[slice]:
    """Slices of the d columns whose (k + 1, k + 1) matrices are unpacked together: at most four million numbers."""
    step = max(_BLOCK // (k + 1) ** 2, 1)
    return [slice(start, min(start + step, d)) for start in range(0, d, step)]


def _expectations(state: _Uncertain, total: Total, used: int) -> tuple[Floats, Floats, Floats]:
    """Sums by column of E u u^T, packed, and x E u (d, k + 1), u = (z, 1), and the mean of E z z^T (k, k)."""
    k = len(state.prior)
    pairs = (k + 1) * (k + 2) // 2
    sums, moment, _ = total(factor_sums, _column_moments(state), k, state.model.ridge)
    return sums[:, :pairs], sums[:, pairs:], unpacked(moment[None], k)[0] / max(used, 1)


def _column_moments(state: _Uncertain) -> Floats:
    """E v v^T of every column, packed, E v and the mean (d, k (k + 1) / 2 + k + 1), as `factor_sums` takes them."""
    basis = state.model.basis
    d, k = basis.shape
    row, column = np.tril_indices(k)
    moments = np.empty((d, len(row) + k + 1))
    for block in _column_blocks(d, k):
        moments[block, : len(row)] = basis[block][:, row] * basis[block][:, column] + state.covariances[block]
    moments[:, len(row) : -1], moments[:, -1] = basis, state.model.mean
    return moments


def _packed(full: Floats) -> Floats:
    """Lower triangles by rows (n, k (k + 1) / 2) of symmetric matrices (n, k, k)."""
    return full[:, *np.tril_indices(full.shape[1])]


def _on_axes(basis: Floats, covariances: Floats, mean: Floats, noise: float, moment: Floats, n_seen: int) -> _Uncertain:
    """The model with latent coordinates of unit covariance and orthogonal columns of the basis; `covariances` is turned
    in its place.
    """
    values, vectors = np.linalg.eigh(moment)
    root = vectors * np.sqrt(np.maximum(values, 1e-12 * max(float(values[-1]), 1e-300)))
    vectors, size, right = np.linalg.svd(basis @ root, full_matrices=False)
    size = np.maximum(size, 1e-12 * max(float(size[0]), 1e-150))
    axes = canonical_turn(size, vectors)
    turn = root @ right.T @ axes
    k = len(turn)
    for block in _column_blocks(len(basis), k):
        covariances[block] = _packed(turn.T @ unpacked(covariances[block], k) @ turn)
    basis = (vectors * size) @ axes
    diagonal = np.cumsum(np.arange(1, k + 1)) - 1
    prior = (np.sum(basis**2, axis=0) + covariances[:, diagonal].sum(axis=0)) / max(n_seen, 1)
    return _Uncertain(LowRankGaussian(mean, basis.T, noise, noise), covariances, prior)
