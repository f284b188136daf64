"""The low-rank model of rows, and its refinement: expectation maximisation that counts how uncertain the components are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar._codes import row_codes
from lacunar._eigen import canonical_turn, signed
from lacunar.lowrank.em import factor_sums, to_sum, unpacked
from lacunar.lowrank.hidden import squared_errors
from lacunar.lowrank.parts import Counts, Parts, count, in_parts
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
_MOST = 64  # components that are refined: a step takes their square in memory, for every column
_SETTLED = 1e-5  # mean squared sine between the subspaces of two steps that ends the refinement
_LEAST = 1e-12  # of noise, in units of the mean square of an entry; of a column's sums, in units of their diagonal
_FAINT = 1e-6  # of a component's variance at the start, in units of the noise: none starts, and so stays, at 0
_NOTHING = 1e-200  # a variance whose quotients would leave float64
_BLOCK = 2**22  # numbers of unpacked matrices of columns held at once


class Model(NamedTuple):
    """x = mean + sum_i z_i components_i + noise, var z_i = values_i - noise."""

    mean: _Floats  # (d,)
    components: _Floats  # (k, d), orthonormal rows
    values: _Floats  # (k,)
    noise: float

    def basis(self) -> _Floats:
        """Components times the standard deviation of their codes (d, k)."""
        return self.components.T * np.sqrt(np.maximum(self.values - self.noise, 0.0))


def hidden_errors(
    model: Model, rows: Observed, seen: Observed, hidden: NDArray[np.bool_], n_jobs: int | None
) -> _Floats:
    """Squared errors of the posterior mean at hidden entries of `rows`, coded from `seen`; both about the model's mean."""
    basis = model.basis()
    return squared_errors(row_codes(seen, basis, model.noise, n_jobs=n_jobs).code, basis, rows, hidden)


class _State(NamedTuple):
    """x_j = mean_j + v_j z + noise, z of unit covariance, v_j normal about basis_j."""

    basis: _Floats  # (d, k), orthogonal columns
    spread: _Floats  # (d, k (k + 1) / 2), covariances of v_j, packed
    mean: _Floats  # (d,)
    noise: float
    prior: _Floats  # (k,): variance of an entry of v_j before it is seen


def refinable(model: Model) -> bool:
    """Whether there is noise beside few enough components, and variance."""
    k, d = model.components.shape
    return 0 < k < d and k <= _MOST and float(model.values[0]) > _NOTHING


def refined(model: Model, rows: Observed | Parts, steps: int, *, centre: bool, n_jobs: int | None) -> Model:
    """At most `steps` of variational EM from this model (about mean 0) on rows; means are parameters where `centre`.

    Rows of components have a normal prior whose variance is learned and a normal posterior, as in the variational PCA of
    Bishop (1999) for missing entries (Ilin and Raiko, "Practical approaches to principal component analysis in the presence of missing
    values", JMLR 2010); plain EM (Tipping and Bishop 1999) is the same without spread and prior, and overfits columns seen
    rarely. Codes are whitened and rotated to the axes after every step. O(nnz k^2 + (n + d) k^3) a step, 2 d k^2 numbers.
    """
    parts = in_parts(rows)
    counts = count(parts, n_jobs)
    seen = counts.n > 0
    strength = np.maximum(model.values - model.noise, _FAINT * model.noise)
    basis = model.components.T * np.sqrt(strength)
    d, k = basis.shape
    prior = np.sum(basis**2, axis=0) / max(int(seen.sum()), 1)
    state = _State(basis, np.zeros((d, k * (k + 1) // 2)), model.mean, model.noise, prior)
    size, tables = float(counts.squares.sum()), parts.map(to_sum, None, n_jobs, keep=False)
    for _ in range(steps):
        axes, state = _axes(state), _step(state, tables, counts, size, centre=centre)
        if 1 - np.sum((axes.T @ _axes(state)) ** 2) / k < _SETTLED:
            break
    values = np.sum(state.basis**2, axis=0) + state.noise
    return Model(state.mean, signed(_axes(state).T), values, state.noise)


def _axes(state: _State) -> _Floats:
    made: _Floats = state.basis / np.linalg.norm(state.basis, axis=0)
    return made


def _step(state: _State, tables: Parts, counts: Counts, size: float, *, centre: bool) -> _State:
    d, k = state.basis.shape
    seen, nnz = counts.n > 0, max(float(counts.n.sum()), 1.0)
    grams, products, moment = _expectations(state, tables, counts.used)
    free = k + 1 if centre else k  # the mean is a direction more, whose code is 1 for certain
    ridge = np.zeros(free)
    ridge[:k] = state.noise / state.prior
    made, spread, left = np.empty((d, free)), np.empty_like(state.spread), size
    for some in _blocks(d, k):
        full = unpacked(grams[some], k + 1)[:, :free, :free]
        made[some], inverse, explained = _column_posteriors(full, products[some, :free], ridge, k)
        spread[some] = _packed(np.where(seen[some, None, None], state.noise * inverse, 0.0))
        left -= explained - float(np.sum(unpacked(spread[some], k) * full[:, :k, :k]))
    noise = max(left / nnz, _LEAST * size / nnz, 1e-300)
    mean = made[:, k] if centre else state.mean
    return _on_axes(made[:, :k], spread, mean, noise, moment, int(seen.sum()))


def _column_posteriors(grams: _Floats, products: _Floats, ridge: _Floats, k: int) -> tuple[_Floats, _Floats, float]:
    """Means w (m, free), inverses (m, k, k) of G + ridge, and the squares that w explains.

    E|x - v u|^2 = |x|^2 - 2 w b + w G w + tr(spread G), and (G + ridge) w = b.
    """
    least = _LEAST * np.einsum("jkk->j", grams)[:, None] + 1e-300
    inverse = np.linalg.inv(grams + (ridge + least)[:, :, None] * np.eye(len(ridge)))
    made = np.einsum("jkl,jl->jk", inverse, products)
    return made, inverse[:, :k, :k], float(np.sum(made * products)) + float(np.sum(made**2 * ridge))


def _blocks(d: int, k: int) -> list[slice]:
    """Columns whose matrices are unpacked together."""
    step = max(_BLOCK // (k + 1) ** 2, 1)
    return [slice(start, min(start + step, d)) for start in range(0, d, step)]


def _expectations(state: _State, tables: Parts, used: int) -> tuple[_Floats, _Floats, _Floats]:
    """Sums by column of E u u^T, packed, and x E u (d, k + 1), u = (z, 1), and the mean of E z z^T (k, k)."""
    d, k = state.basis.shape
    row, column = np.tril_indices(k)
    model = np.empty((d, len(row) + k + 1))
    for some in _blocks(d, k):
        model[some, : len(row)] = state.basis[some][:, row] * state.basis[some][:, column] + state.spread[some]
    model[:, len(row) : -1], model[:, -1] = state.basis, state.mean
    pairs = (k + 1) * (k + 2) // 2
    sums, moment, _ = tables.total(factor_sums, model, k, state.noise)
    return sums[:, :pairs], sums[:, pairs:], unpacked(moment[None], k)[0] / max(used, 1)


def _packed(full: _Floats) -> _Floats:
    """Lower triangles by rows (n, k (k + 1) / 2) of symmetric matrices (n, k, k)."""
    return full[:, *np.tril_indices(full.shape[1])]


def _on_axes(basis: _Floats, spread: _Floats, mean: _Floats, noise: float, moment: _Floats, n_seen: int) -> _State:
    """The same model with codes of unit covariance and orthogonal columns of the basis; `spread` is turned in its place."""
    values, vectors = np.linalg.eigh(moment)
    root = vectors * np.sqrt(np.maximum(values, 1e-12 * max(float(values[-1]), 1e-300)))
    left, size, right = np.linalg.svd(basis @ root, full_matrices=False)
    size = np.maximum(size, 1e-12 * max(float(size[0]), 1e-150))
    axes = canonical_turn(size, left)
    turn = root @ right.T @ axes
    k = len(turn)
    for some in _blocks(len(basis), k):
        spread[some] = _packed(turn.T @ unpacked(spread[some], k) @ turn)
    basis = (left * size) @ axes
    diagonal = np.cumsum(np.arange(1, k + 1)) - 1
    prior = (np.sum(basis**2, axis=0) + spread[:, diagonal].sum(axis=0)) / max(n_seen, 1)
    return _State(basis, spread, mean, noise, prior)
