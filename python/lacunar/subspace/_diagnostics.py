"""What tells whether a fit can be trusted, and warnings that say what to do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from lacunar._moments import Sums, joint_counts, kappa_of
from lacunar.subspace._solve import Spectrum

_FEW_JOINT = 3  # rows with both columns of a pair, in the median, below which nothing recovers the subspace
_UNSEEN = 0.01  # share of pairs never seen that is worth a warning


def of_tables(sums: Sums, spectrum: Spectrum) -> dict[str, Any]:
    """Median joint count, unseen pairs, kappa, independence gap and negative eigenvalues. O(d^2)."""
    n, d = np.diag(sums.N), len(sums.N)
    counts = sums.N[np.triu_indices(d, 1)]
    expected = joint_counts(sums, "kappa")[np.triu_indices(d, 1)]
    gap = float(np.mean(np.abs(counts - expected)) / max(float(np.mean(counts)), 1e-12)) if d > 1 else 0.0
    return {
        "median_joint_count": float(np.median(counts)) if d > 1 else float(n[0]),
        "frac_pairs_unseen": float(np.mean(counts == 0)) if d > 1 else 0.0,
        "kappa": kappa_of(n, sums.nn, sums.m),
        "independence_gap": gap,
        "n_negative_eigenvalues": spectrum.negative,
        "lambda_min": spectrum.smallest,
    }


def of_counts(n: Any, nn: float, m: int) -> dict[str, Any]:
    """The same from column counts (d,) alone: expected joint counts instead of seen ones; NaN for what needs pairs."""
    kappa = kappa_of(n, nn, m)
    return {
        "median_joint_count": float(kappa * np.median(n) ** 2 / max(m, 1)),
        "frac_pairs_unseen": float("nan"),
        "kappa": kappa,
        "independence_gap": float("nan"),
        "n_negative_eigenvalues": -1,
        "lambda_min": float("nan"),
    }


def warn(found: dict[str, Any], values: Any) -> None:
    """Warn where the closed form is hopeless, pairs were never seen, or the last component drowns in noise."""
    if found["median_joint_count"] < _FEW_JOINT:
        warnings.warn(
            f"half of the pairs of columns were seen together in at most {found['median_joint_count']:.3g} rows; below "
            f"{_FEW_JOINT} no method recovers the subspace. Collect more rows or drop rarely observed columns.",
            UserWarning,
            stacklevel=4,
        )
    if found["frac_pairs_unseen"] > _UNSEEN:
        warnings.warn(
            f"{found['frac_pairs_unseen']:.1%} of the pairs of columns were never seen together and count as uncorrelated. "
            "Keep refine > 0, which can bridge them, or collect rows that have both.",
            UserWarning,
            stacklevel=4,
        )
    if len(values) and values[-1] < -found["lambda_min"]:
        warnings.warn(
            f"eigenvalue {len(values)} of the covariance, {values[-1]:.3g}, is below the noise |lambda_min| = "
            f"{-found['lambda_min']:.3g}. Lower n_components, or pass n_components='holdout'.",
            UserWarning,
            stacklevel=4,
        )
