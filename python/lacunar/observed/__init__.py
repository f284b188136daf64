"""`Observed`: the sparse observed-entries format that every learner reads.

`_format` the class itself, `_construct` from arrays and frames, `_readers` from files, `_batches` from files in pieces, `_store` its own file.
"""

from lacunar.observed._batches import Triplets, read_batches
from lacunar.observed._format import Columns, Observed, Summary

__all__ = ["Columns", "Observed", "Summary", "Triplets", "read_batches"]
