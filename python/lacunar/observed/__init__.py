"""`Observed`: the sparse observed-entries format that every learner reads.

`table` the class itself, `build` from arrays and frames, `files` from files of others and Arrow, `blocks` and `stored`
its own file, `batches` what does not fit in memory, `container` the file of models, `door` every check of tables and
targets, `rules` those of what a model file says.
"""

from lacunar.observed.batches import Triplets, read_batches, read_svmlight
from lacunar.observed.build import Lists
from lacunar.observed.stored import ObservedFile, write_batches
from lacunar.observed.table import Columns, Observed

__all__ = [
    "Columns",
    "Lists",
    "Observed",
    "ObservedFile",
    "Triplets",
    "read_batches",
    "read_svmlight",
    "write_batches",
]
