"""Tables to try things on: the experiments of the papers, holes for complete tables, public sets."""

from lacunar.datasets._biclustered import make_biclustered, make_side_graph
from lacunar.datasets._default import load_breast_panels
from lacunar.datasets._fetch import dataset_names, fetch_dataset
from lacunar.datasets._mechanisms import hide_all_but, hide_by_row, hide_mar, hide_mcar, hide_mnar
from lacunar.datasets._panels import hide_blocks, hide_panels
from lacunar.datasets._regression import make_block_margin, make_sparse_regression, make_subspace_regression
from lacunar.datasets._spectra import make_coins, make_spiked

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
    "make_biclustered",
    "make_block_margin",
    "make_coins",
    "make_side_graph",
    "make_sparse_regression",
    "make_spiked",
    "make_subspace_regression",
]
