"""Fits over many machines with Dask (extra `distributed`): sums where they are exact, averages where they are not.

Every function builds a Dask graph and computes it with whatever scheduler is current: threads, processes, or the
`dask.distributed.Client` of a cluster, which runs the tasks of a dead worker again.
"""

from lacunar.distributed._apply import apply, gram
from lacunar.distributed._karma import fit_karma
from lacunar.distributed._popca import fit_popca
from lacunar.distributed._shards import shards
from lacunar.distributed._slrm import fit_slrm

__all__ = ["apply", "fit_karma", "fit_popca", "fit_slrm", "gram", "shards"]
