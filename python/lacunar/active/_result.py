"""What an acquisition found, in the words of scikit-learn's PCA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lacunar._factor import row_codes
from lacunar._products import row_product
from lacunar.observed.door import as_observed

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ActiveSubspace:
    """A fitted subspace: what `result()` of `ActivePOPCA` and `MBEG` gives.

    Attributes
    ----------
    mean_ : ndarray of shape (d,)
        Zeros where the second moment, not the covariance, is decomposed.
    components_ : ndarray of shape (k, d)
        Orthonormal rows; the entry largest in modulus is positive.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (k,)
        Along the components, in the units of the squared entries, and as a share of the trace.
    noise_variance_ : float
        Mean variance of the other directions, at least 0.
    covariance_ : ndarray of shape (d, d)
        The estimate (covariance or second moment) as it is: it may have negative eigenvalues.
    n_samples_seen_ : int
    weights_ : ndarray of shape (d, d) or None
        MBEG only: the average of its weight matrices.
    """

    mean_: Floats
    components_: Floats
    explained_variance_: Floats
    explained_variance_ratio_: Floats
    noise_variance_: float
    covariance_: Floats
    n_samples_seen_: int
    weights_: Floats | None = None

    def get_covariance(self) -> Floats:
        """Model of the covariance (d, d): components and isotropic noise, positive semi-definite.

        Returns
        -------
        covariance : ndarray of shape (d, d)
        """
        strength = np.maximum(self.explained_variance_ - self.noise_variance_, 0)
        made: Floats = (self.components_.T * strength) @ self.components_
        made.flat[:: len(made) + 1] += self.noise_variance_
        return made

    def transform(self, X: Any) -> Floats:
        """Codes (n, k) of rows with holes: their posterior mean under the model of `get_covariance`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)

        Returns
        -------
        codes : ndarray of shape (n, k)
        """
        rows = as_observed(X)
        if rows.shape[1] != len(self.mean_):
            raise ValueError(
                f"X must have {len(self.mean_)} columns; got {rows.shape[1]}. Pass the attributes asked for."
            )
        centred = rows.with_values(rows.values - self.mean_[rows.indices])
        strength = np.sqrt(np.maximum(self.explained_variance_ - self.noise_variance_, 1e-12))
        ridge = max(self.noise_variance_, 1e-9 * float(np.mean(strength**2)))
        codes: Floats = row_codes(centred, np.ascontiguousarray(self.components_.T * strength), ridge).code * strength
        return codes

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Complete rows (n, d) of codes (n, k).

        Parameters
        ----------
        X : array-like of shape (n, k)
            Codes.

        Returns
        -------
        rows : ndarray of shape (n, d)
        """
        made: Floats = row_product(np.asarray(X, dtype=np.float64), self.components_) + self.mean_
        return made


def subspace_of(C: Floats, mean: Floats, basis: Floats, n_seen: int, weights: Floats | None = None) -> ActiveSubspace:
    """The record of orthonormal columns `basis` (d, k), with the variances the estimate C gives along them."""
    k = basis.shape[1]
    signs = np.sign(basis[np.argmax(np.abs(basis), axis=0), np.arange(k)])
    variance = np.einsum("ij,ij->j", basis, C @ basis)
    trace = float(np.trace(C))
    noise = max((trace - float(variance.sum())) / max(len(C) - k, 1), 0.0)
    ratio = variance / trace if trace > 0 else np.zeros(k)
    return ActiveSubspace(mean, np.ascontiguousarray((basis * signs).T), variance, ratio, noise, C, n_seen, weights)


def leading(C: Floats, k: int) -> Floats:
    """Eigenvectors (d, k) of the algebraically largest eigenvalues, largest first."""
    vectors: Floats = np.linalg.eigh(C)[1][:, : -k - 1 : -1]
    return vectors
