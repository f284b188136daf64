"""Online completion of a matrix of yes and no, with side information about its rows and columns.

After Herbster, Pasteris and Tse, *Online Matrix Completion with Side Information*: the matrix exponentiated gradient
algorithm in kernel form. `_side` is what is known of rows and columns, `_theory` what it is worth.
"""

from lacunar.completion._batches import read_pair_batches
from lacunar.completion._classifier import OnlineMatrixClassifier
from lacunar.completion._side import Features, Graph, Identity, Kernel, KernelFunction, Mix
from lacunar.completion._table import table_pairs
from lacunar.completion._theory import (
    Predictiveness,
    box_bound,
    max_norm,
    mistake_bound,
    pd_laplacian,
    predictiveness,
    quasi_dimension,
    quasi_dimension_bound,
    regret_bound,
)

__all__ = [
    "Features",
    "Graph",
    "Identity",
    "Kernel",
    "KernelFunction",
    "Mix",
    "OnlineMatrixClassifier",
    "Predictiveness",
    "box_bound",
    "max_norm",
    "mistake_bound",
    "pd_laplacian",
    "predictiveness",
    "quasi_dimension",
    "quasi_dimension_bound",
    "read_pair_batches",
    "regret_bound",
    "table_pairs",
]
