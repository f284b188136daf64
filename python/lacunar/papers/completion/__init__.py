"""Online matrix completion: Algorithms 1 and 2, the bounds and the synthetic matrices of Herbster, Pasteris and Tse (2020)."""

from lacunar.papers.completion.gradient import MatrixExponentiatedGradient
from lacunar.papers.completion.meg import PrintedMEG
from lacunar.papers.completion.norms import margin_complexity, max_norm
from lacunar.papers.completion.theory import (
    box_bound,
    hinge_regret_bound,
    least_quasi_dimension,
    least_quasi_dimension_bound,
    mistake_bound,
    pd_laplacian,
    quasi_dimension,
    quasi_dimension_bound,
    regret_bound,
)
from lacunar.papers.completion.worlds import make_biclustered, make_side_graph

__all__ = [
    "MatrixExponentiatedGradient",
    "PrintedMEG",
    "box_bound",
    "hinge_regret_bound",
    "least_quasi_dimension",
    "least_quasi_dimension_bound",
    "make_biclustered",
    "make_side_graph",
    "margin_complexity",
    "max_norm",
    "mistake_bound",
    "pd_laplacian",
    "quasi_dimension",
    "quasi_dimension_bound",
    "regret_bound",
]
