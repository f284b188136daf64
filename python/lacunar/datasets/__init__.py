"""Tables to try things on: the experiments of the papers, mechanisms of missingness, public sets."""

from lacunar.datasets.fetch import dataset_names, fetch_dataset
from lacunar.datasets.hide import (
    hide_all_but,
    hide_blocks,
    hide_by_row,
    hide_mar,
    hide_mcar,
    hide_mnar,
    hide_panels,
    load_breast_panels,
    load_digit_quadrants,
)
from lacunar.datasets.make import (
    make_biclustered,
    make_block_margin,
    make_coins,
    make_side_graph,
    make_sparse_regression,
    make_spiked,
    make_subspace_regression,
)

__all__ = [
    "dataset_names",
    "fetch_dataset",
    "hide_all_but",
    "hide_blocks",
    "hide_by_row",
    "hide_mar",
    "hide_mcar",
    "hide_mnar",
    "hide_panels",
    "load_breast_panels",
    "load_digit_quadrants",
    "make_biclustered",
    "make_block_margin",
    "make_coins",
    "make_side_graph",
    "make_sparse_regression",
    "make_spiked",
    "make_subspace_regression",
]
