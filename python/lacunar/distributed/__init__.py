"""Fits over many machines with Dask (extra `distributed`): sums where they are exact, averages where they are not.

Every function builds a Dask graph and computes it with whatever scheduler is current: threads, processes, or the
`dask.distributed.Client` of a cluster, which runs the tasks of a dead worker again.
"""

from lacunar.distributed.fits import apply, fit_karma, fit_popca, fit_slrm, gram
from lacunar.distributed.parts import shards

__all__ = ["apply", "fit_karma", "fit_popca", "fit_slrm", "gram", "shards"]
