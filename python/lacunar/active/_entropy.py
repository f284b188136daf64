"""The convex hull of projections: relative-entropy projection onto it, decomposition into its corners."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def project_logs(logs: Floats, k: int) -> Floats:
    """Logs of the eigenvalues min(c mu, 1) that sum to k: the projection onto {0 <= lam <= 1, tr = k}, from log mu (d,).

    The t largest are capped, t the smallest with c_t mu_{t+1} <= 1, c_t = (k - t) / sum of the rest. O(d log d), no
    overflow for any size of `logs`. Source: Warmuth and Kuzmin (2008), Tsuda et al. (2005); Algorithm 2 of the paper.
    """
    if k >= len(logs):
        return np.zeros_like(logs)
    ordered = np.sort(logs)[::-1]
    tails = np.logaddexp.accumulate(ordered[::-1])[::-1]
    scales = np.log(k - np.arange(k)) - tails[:k]
    capped = int(np.argmax(scales + ordered[:k] <= 1e-12))  # true for some t <= k - 1: the last has (k - t) = 1
    projected: Floats = np.minimum(scales[capped] + logs, 0.0)
    return projected


def decompose(lam: Floats, k: int) -> list[tuple[float, NDArray[np.int64]]]:
    """Algorithm 3: eigenvalues 0 <= lam <= 1 with sum k as a mixture of at most d sets of k eigenvectors.

    Returns
    -------
    list of (beta, members)
        beta > 0 sum to 1; members (k,) are positions in `lam`. sum of beta over the sets of a position is its lam.
    """
    left, terms = lam / k, []
    total = 1.0
    for _ in range(2 * len(lam)):
        members = np.argsort(-left, kind="stable")[:k]
        rest = np.delete(left, members)
        beta = min(float(left[members].min()) * k, total - k * float(rest.max(initial=0.0)))
        if beta <= 1e-15:  # rounding left only crumbs
            break
        terms.append((beta, members))
        left[members] -= beta / k
        left = np.maximum(left, 0.0)
        total -= beta
        if total <= 1e-12:
            break
    mass = sum(beta for beta, _ in terms)
    return [(beta / mass, members) for beta, members in terms]
