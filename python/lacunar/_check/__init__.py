"""The door: public input is checked here once, and only here are errors about it phrased.

A message says the argument, what it should be, what came (and in which row and column) and the remedy.
`_entries` the format itself, `_tables` what becomes an `Observed`, `_estimators` X and y of fit and predict, `_pairs`
pairs of ids and their labels, `_shards` whether shards agree, `_options` other arguments.
"""

from lacunar._check._entries import check_entries, float_dtype, is_frozen
from lacunar._check._estimators import (
    as_observed,
    check_partial_labels,
    check_partial_targets,
    check_target,
    is_hole,
    validate_X,
    validate_X_y,
)
from lacunar._check._options import (
    check_composition,
    check_kernel_options,
    check_out,
    check_same_columns,
    check_sparse_output,
    refuse_range,
)
from lacunar._check._pairs import read_id, read_ids, read_labels, read_pairs
from lacunar._check._ranges import check_codes, check_magnitude, check_sums, check_variances
from lacunar._check._shards import adopt_columns, agree_targets, columns_of
from lacunar._check._tables import (
    SparseMissing,
    check_dense,
    check_duplicates_policy,
    check_frame_columns,
    check_ids,
    check_sparse,
    check_triplets,
    refuse_duplicate,
)

__all__ = [
    "SparseMissing",
    "adopt_columns",
    "agree_targets",
    "as_observed",
    "check_codes",
    "check_composition",
    "check_dense",
    "check_duplicates_policy",
    "check_entries",
    "check_frame_columns",
    "check_ids",
    "check_kernel_options",
    "check_magnitude",
    "check_out",
    "check_partial_labels",
    "check_partial_targets",
    "check_same_columns",
    "check_sparse",
    "check_sparse_output",
    "check_sums",
    "check_target",
    "check_triplets",
    "check_variances",
    "columns_of",
    "float_dtype",
    "is_frozen",
    "is_hole",
    "read_id",
    "read_ids",
    "read_labels",
    "read_pairs",
    "refuse_duplicate",
    "refuse_range",
    "validate_X",
    "validate_X_y",
]
