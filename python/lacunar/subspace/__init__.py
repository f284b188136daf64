"""Principal components of tables with holes."""

from lacunar.subspace._popca import POPCA
from lacunar.subspace._sums import PairSums, column_pair_sums
from lacunar.subspace._theory import popca_error_bound, popca_sample_bound

__all__ = ["POPCA", "PairSums", "column_pair_sums", "popca_error_bound", "popca_sample_bound"]
