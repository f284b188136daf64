"""Diagnostics of a fit of POPCA, and warnings where it should not be trusted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar._log import warn_user
from lacunar._moments import Sums, expected_counts, joint_counts, kappa_of
from lacunar._typing import Floats
from lacunar.lowrank.moments import Spectrum
from lacunar.lowrank.parts import Counts, RowParts
from lacunar.observed import Observed

_FEW_JOINT = 3  # rows with both columns of a pair, in the median, below which nothing recovers the subspace
_FEW_SEEN = 150  # the mean count times the number of columns
_UNSEEN = 0.01  # share of pairs never seen that is worth a warning
_DEPENDENT = 0.25  # mean relative gap of joint counts, beyond sampling noise, that independence forgives
_PROBED = 64  # random columns whose 2,016 pairs stand for all


class Probe(NamedTuple):
    """Joint counts of some pairs of columns, and the counts that are expected where columns are seen independently of
    each other.
    """

    counts: Floats  # (pairs,)
    expected: Floats  # (pairs,)
    kappa: float
    paired: int  # rows with two entries or more
    fewest: float  # entries of the median column: the count when there is no pair

    def independent(self) -> bool:
        """Whether joint counts differ from the expected ones by no more than Poisson counts do."""
        gap = np.sum((self.counts - self.expected) ** 2) - np.sum(self.expected)
        return bool(gap <= _DEPENDENT**2 * np.sum(self.expected**2))


def probe_rows(parts: RowParts, counts: Counts, rng: np.random.Generator) -> Probe:
    """Joint counts of the pairs of 64 random columns, as seen and as expected. O(nnz)."""
    m, n, nn, paired, *_ = counts
    chosen = np.sort(rng.choice(len(n), size=min(_PROBED, len(n)), replace=False))
    joint = parts.total(_joint_counts, chosen)[0]
    side = expected_counts("kappa", n, nn, m).pair[chosen]
    upper = np.triu_indices(len(chosen), 1)
    return Probe(joint[upper], np.outer(side, side)[upper], kappa_of(n, nn, m), paired, float(np.median(n)))


def _joint_counts(rows: Observed, chosen: NDArray[np.int64]) -> tuple[Floats]:
    """Numbers of rows that have both columns of a pair (chosen, chosen)."""
    place = np.full(rows.shape[1], -1, np.int32)
    place[chosen] = np.arange(len(chosen))
    counts = np.zeros((len(chosen), len(chosen)), np.int64)
    _core.column_pair_counts(rows.indptr, rows.indices, rows.values, place, counts, rows.shape[1], 1)
    return (counts.astype(np.float64),)


def probe_tables(sums: Sums) -> Probe:
    """Joint counts of all pairs of columns, as seen and as expected. O(d^2)."""
    upper = np.triu_indices(len(sums.N), 1)
    n = np.diag(sums.N).copy()
    kappa = kappa_of(n, sums.nn, sums.m)
    return Probe(sums.N[upper], joint_counts(sums, "kappa")[upper], kappa, sums.paired, float(np.median(n)))


def describe(probe: Probe, spectrum: Spectrum) -> dict[str, Any]:
    """The fitted attributes of POPCA that describe its data, by name."""
    counts, paired = probe.counts, len(probe.counts) > 0
    gap = float(np.mean(np.abs(counts - probe.expected)) / max(float(np.mean(counts)), 1e-12)) if paired else 0.0
    return {
        "median_joint_count": float(np.median(counts)) if paired else probe.fewest,
        "mean_joint_count": float(np.mean(counts)) if paired else probe.fewest,
        "frac_pairs_unseen": float(np.mean(counts == 0)) if paired else 0.0,
        "kappa": probe.kappa,
        "independence_gap": gap,
        "effective_rows": probe.paired,
        "n_negative_eigenvalues": spectrum.negative,
        "lambda_min": spectrum.smallest,
    }


def warn_dependent(probe: Probe) -> None:
    """Warn where pairs are not seen as often as normalisers of expected counts assume."""
    if not probe.independent():
        warn_user(
            "columns are not observed independently of each other (panels, or blocks of rows), so that normalisers "
            "of expected counts are biased. Keep refine > 0, or use solver='dense' with normalisers='pairwise' where "
            "its tables fit.",
        )


def warn(diagnostics: dict[str, Any], values: Any, d: int, *, expected: bool) -> None:
    """Warn where pairs were seen too rarely or never, or where the last component is below the noise.

    With joint counts y, noise has eigenvalues up to 2 sqrt(d / y) variances, and a component with a share s of the
    variance has s d. The component is seen where y d > 4 / s^2: y > 3 for the 50 columns and shares of a sixth that the
    threshold was measured on. With `expected` counts, a pair that was not seen is not taken for uncorrelated.
    """
    median = diagnostics["median_joint_count"]
    if median < _FEW_JOINT and diagnostics["mean_joint_count"] * d < _FEW_SEEN:
        warn_user(
            f"half of the pairs of columns were seen together in at most {median:.3g} rows; below {_FEW_JOINT} no "
            "method recovers the subspace of so few columns. Collect more rows or drop rarely observed columns.",
        )
    if diagnostics["frac_pairs_unseen"] > _UNSEEN and not expected:
        warn_user(
            f"{diagnostics['frac_pairs_unseen']:.1%} of the pairs of columns were never seen together and count as "
            "uncorrelated. Keep refine > 0, which can bridge them, or collect rows that have both.",
        )
    if len(values) and values[-1] < -diagnostics["lambda_min"]:
        warn_user(
            f"eigenvalue {len(values)} of the covariance, {values[-1]:.3g}, is below the noise |lambda_min| = "
            f"{-diagnostics['lambda_min']:.3g}. Lower n_components, or pass n_components='holdout'.",
        )
