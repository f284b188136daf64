"""Principal components of tables with holes."""

from lacunar.subspace._popca import POPCA
from lacunar.subspace._sums import PairSums, column_pair_sums

__all__ = ["POPCA", "PairSums", "column_pair_sums"]
