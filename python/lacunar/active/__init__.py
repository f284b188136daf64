"""Which attributes to look at next: subspaces from rows that are paid for by the entry, as ask and tell.

`_acquisition` ask, tell and run; `_tables` what is kept of the rows; `_popca` and `_mbeg` the two strategies; `_entropy`
the relative-entropy projection and the decomposition of the paper; `_result` the fitted subspace.
"""

from lacunar.active._acquisition import Request
from lacunar.active._mbeg import MBEG
from lacunar.active._popca import ActivePOPCA
from lacunar.active._result import ActiveSubspace
from lacunar.active._theory import mbeg_error_bound, mbeg_sample_bound

__all__ = ["MBEG", "ActivePOPCA", "ActiveSubspace", "Request", "mbeg_error_bound", "mbeg_sample_bound"]
