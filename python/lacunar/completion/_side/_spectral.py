"""Diffusion on a graph, by its leading eigenvectors: a kernel of low rank for crowded graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from lacunar.completion._side._state import Floats

_SMALL = 500  # vertices: all eigenvectors at once


def diffusion_features(A: Any, n_components: int, diffusion: float, *, normalize: bool) -> Floats:
    """Phi (n, n_components + 1): leading eigenvectors of D^-1/2 A D^-1/2, D = degrees plus their mean, with weights of heat.

    Column k is v_k exp(diffusion (l_k / l_1 - 1) / 2), so that Phi Phi^T is the heat kernel of the graph cut to its slowest
    modes; rows have length 1 when normalised. The mean degree in D keeps small pieces from taking the leading places
    (regularised spectral clustering). Vertices without an edge, or that no mode
    reaches, share the last column.
    """
    degrees = np.asarray(A.sum(axis=1)).ravel()
    root = 1.0 / np.sqrt(degrees + degrees.mean())
    values, vectors = _leading(sp.csr_array(A * root[:, None] * root), min(n_components, A.shape[0]))
    modes = vectors * np.exp(0.5 * diffusion * (values / values[0] - 1.0))
    length = np.linalg.norm(modes, axis=1)
    none = (length <= 1e-6 * length.max()) | (degrees == 0)  # rounding, not a place in the graph
    scale = np.where(none, 1.0, length) if normalize else np.full(len(length), length.max())
    Phi: Floats = np.column_stack([np.where(none[:, None], 0.0, modes / scale[:, None]), none])
    return Phi


def _leading(S: Any, k: int) -> tuple[Floats, Floats]:
    """The k largest eigenvalues, falling, and their vectors (n, k) of a symmetric csr_array."""
    n = S.shape[0]
    if n <= _SMALL or k >= n - 1:
        values, vectors = scipy.linalg.eigh(S.toarray(), subset_by_index=[n - k, n - 1])
    else:
        start = np.cos(np.arange(n, dtype=np.float64))  # the same every time, and no eigenvector
        values, vectors = eigsh(S, k=k, which="LA", v0=start)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]
