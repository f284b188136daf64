"""Online completion of a binary matrix, with side information about its rows and columns.

`classifier` is what users fit; `pool` holds its experts, most of which are in the core (`pair_pool`, `bilinear`).
`pair_classifier` has the verbs of classifiers of pairs, `coding` their labels as signs, and `pair_model` what learns
behind them. `side`, `features`, `points` and `graph` are side information, `modes` the leading directions of kernels,
`predictive` what side information is worth. The algorithm of Herbster, Pasteris and Tse, *Online Matrix Completion with Side Information*, is in
`lacunar.papers.completion`.
"""

from lacunar.completion.classifier import OnlineMatrixClassifier
from lacunar.completion.features import Features
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
    "Mix",
    "OnlineMatrixClassifier",
    "Predictiveness",
    "predictiveness",
    "read_pair_batches",
    "table_pairs",
]
