"""The fitted low-rank model of rows: codes, errors on hidden cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar._factor import Codes, row_codes
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
_LEAST_NOISE = 1e-3  # of sigma^2, in units of the mean variance of a column


class Model(NamedTuple):
    """x = mean + sum_i z_i components_i + noise, var z_i = values_i - noise."""

    mean: _Floats  # (d,)
    components: _Floats  # (k, d), orthonormal rows
    values: _Floats  # (k,)
    noise: float

    def basis(self) -> _Floats:
        """Components times the standard deviation of their codes (d, k)."""
        made: _Floats = self.components.T * np.sqrt(np.maximum(self.values - self.noise, 0.0))
        return made


def tail_noise(values: _Floats, trace: float, d: int) -> float:
    """Mean of the eigenvalues that are not kept, at least .001 of the mean of all."""
    rest = (trace - float(values.sum())) / (d - len(values)) if d > len(values) else 0.0
    return max(rest, _LEAST_NOISE * trace / max(d, 1), 1e-300)


def posterior(model: Model, rows: Observed, *, inverse: bool = False, n_jobs: int | None = None) -> Codes:
    """Codes of unit variance: z = sqrt(values - noise) times them is (V_o'V_o + s2 diag(1 / (l - s2)))^-1 V_o'(x_o - mean_o)."""
    return row_codes(rows, model.basis(), model.noise, inverse=inverse, n_jobs=n_jobs)


def hidden_cells(rows: Observed, share: float, rng: np.random.Generator) -> tuple[Observed, NDArray[np.bool_]]:
    """Rows without a random share of their entries, and which entries (nnz,) were hidden."""
    hidden = rng.random(rows.nnz) < share
    indptr = np.concatenate([[0], np.cumsum(~hidden)])[rows.indptr].astype(np.int64)
    return Observed(indptr, rows.indices[~hidden], rows.values[~hidden], rows.shape), hidden


def hidden_errors(
    model: Model, rows: Observed, seen: Observed, hidden: NDArray[np.bool_], n_jobs: int | None
) -> _Floats:
    """Squared errors of the posterior mean at hidden entries of `rows`, coded from `seen`; both about the model's mean."""
    made = posterior(model, seen, n_jobs=n_jobs).code
    index = np.repeat(np.arange(rows.shape[0]), rows.row_counts)[hidden]
    guess = np.einsum("ek,ek->e", made[index], model.basis()[rows.indices[hidden]])
    errors: _Floats = (rows.values[hidden] - guess) ** 2
    return errors


def fewest_components(errors: list[_Floats]) -> int:
    """Index of the first curve within one standard error, paired, of the best."""
    means = [float(np.mean(each)) for each in errors]
    best = int(np.argmin(means))
    for k, each in enumerate(errors[:best]):
        loss = each - errors[best]
        if loss.mean() <= loss.std() / np.sqrt(len(loss)):
            return k
    return best
