"""`Observed`: the sparse observed-entries format that every learner reads.

`table` the class itself, `build` from arrays and frames, `files` from and to files, `batches` what does not fit in memory,
`container` the layout on disk, `door` every check of public input, `rules` those of what a model file says.
"""

from lacunar.observed.batches import Triplets, read_batches, read_svmlight, write_batches
from lacunar.observed.table import Columns, Observed, Summary

__all__ = ["Columns", "Observed", "Summary", "Triplets", "read_batches", "read_svmlight", "write_batches"]
