"""`Observed`: the sparse observed-entries format that every learner reads.

`_format` the class itself, `_construct` from arrays and frames, `_readers` from files, `_batches` and `_triplets` from files in pieces, `_store` its own file, `_write` that file in pieces.
"""

from lacunar.observed._batches import read_batches
from lacunar.observed._format import Columns, Observed, Summary
from lacunar.observed._readers import read_svmlight
from lacunar.observed._triplets import Triplets
from lacunar.observed._write import write_batches

__all__ = ["Columns", "Observed", "Summary", "Triplets", "read_batches", "read_svmlight", "write_batches"]
