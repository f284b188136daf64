"""Which attributes to look at next: subspaces of rows whose entries are paid for one by one, by ask and tell.

`acquisition` has ask, tell, run and the result; `popca` and `mbeg` are the two strategies.
"""

from lacunar.active.acquisition import ActiveSubspace, Request
from lacunar.active.mbeg import MBEG
from lacunar.active.popca import ActivePOPCA

__all__ = ["MBEG", "ActivePOPCA", "ActiveSubspace", "Request"]
