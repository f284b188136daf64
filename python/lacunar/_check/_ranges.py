"""Numbers whose squares leave float64 are refused where they come in, not met as NaN where they come out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 1e150  # sums of squares of so large numbers stay finite


def check_magnitude(values: NDArray[Any], name: str) -> None:
    """Targets (n,) or (n, targets) of moderate size; NaN is let through."""
    large = np.abs(values) > LARGEST
    if large.any():
        at = np.argwhere(large)[0]
        raise ValueError(
            f"{name} must be at most {LARGEST:g} in modulus, so that squares stay finite; got {values[tuple(at)]:g} in row "
            f"{int(at[0])}. Use other units."
        )


def check_variances(variance: NDArray[np.float64]) -> None:
    """Variances (d,) of columns that did not overflow."""
    bad = np.flatnonzero(~np.isfinite(variance))
    if bad.size:
        raise ValueError(
            f"columns must have variances that float64 holds; that of column {int(bad[0])} overflows. Divide the column by its "
            f"largest value, or leave out values beyond {LARGEST:g}."
        )


def check_sums(sums: NDArray[np.float64], what: str) -> None:
    """Sums of products of entries that did not overflow."""
    if not np.isfinite(sums).all():
        raise ValueError(
            f"X must hold values whose {what} float64 can hold; they overflow. Scale the columns (sklearn.preprocessing."
            f"StandardScaler keeps NaN), or leave out values beyond {LARGEST:g}."
        )


def check_codes(codes: NDArray[np.float64]) -> None:
    """Codes (n, d) of rows that did not overflow."""
    bad = np.flatnonzero(~np.isfinite(codes).all(axis=1))
    if bad.size:
        raise ValueError(
            f"X must hold values whose sums float64 can hold; those of row {int(bad[0])} overflow. Leave out values beyond "
            f"{LARGEST:g}, or scale the columns."
        )
