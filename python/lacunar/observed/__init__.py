"""`Observed`: the sparse observed-entries format that every learner reads.

`_format` the class itself, `_construct` from arrays and frames, `_readers` from files, `_store` its own file.
"""

from lacunar.observed._format import Columns, Observed, Summary

__all__ = ["Columns", "Observed", "Summary"]
