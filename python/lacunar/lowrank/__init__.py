"""Low-dimensional subspaces of partially observed rows: principal components, trackers of streams."""

from lacunar.lowrank.moments import PairSums, column_pair_sums
from lacunar.lowrank.popca import POPCA
from lacunar.lowrank.theory import popca_error_bound, popca_sample_bound
from lacunar.lowrank.trackers import GROUSE, PETRELS

__all__ = [
    "GROUSE",
    "PETRELS",
    "POPCA",
    "PairSums",
    "column_pair_sums",
    "popca_error_bound",
    "popca_sample_bound",
]
