"""Online completion of a binary matrix, with side information about its rows and columns.

After Herbster, Pasteris and Tse, *Online Matrix Completion with Side Information*: the matrix exponentiated gradient
algorithm in kernel form, and a pool of cheap experts around it. `classifier` holds the pool, whose experts are in the core
(`pair_pool`, `bilinear`), and what users fit; `gradient` is the algorithm as a learner of its own, `engine` its arithmetic; `online` has the
verbs of both and `model` what learns behind them; `side`, `features`, `points` and `graph` are side information, `predictive` what it is worth.
"""

from lacunar.completion.classifier import OnlineMatrixClassifier
from lacunar.completion.features import Features
from lacunar.completion.gradient import MatrixExponentiatedGradient
from lacunar.completion.graph import Graph
from lacunar.completion.pairs import read_pair_batches, table_pairs
from lacunar.completion.points import KernelFunction
from lacunar.completion.predictive import Predictiveness, predictiveness
from lacunar.completion.side import Identity, Kernel, Mix

__all__ = [
    "Features",
    "Graph",
    "Identity",
    "Kernel",
    "KernelFunction",
    "MatrixExponentiatedGradient",
    "Mix",
    "OnlineMatrixClassifier",
    "Predictiveness",
    "predictiveness",
    "read_pair_batches",
    "table_pairs",
]
