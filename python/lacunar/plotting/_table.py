"""Any table a picture may be drawn of, as observed entries."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from lacunar.observed import Observed


def table_of(X: Any) -> Observed:
    """Arrays with NaN, frames, sparse matrices (what is not stored is missing) and `Observed`."""
    if isinstance(X, Observed):
        return X
    if sp.issparse(X):
        return Observed.from_scipy(X)
    return Observed.from_frame(X) if hasattr(X, "columns") else Observed.from_dense(X)
