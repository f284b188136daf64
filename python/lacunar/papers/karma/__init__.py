"""KARMA: Algorithm 1, the baselines of Section 5, the theorems and synthetic tables of Hazan, Livni and Mansour (2015).

0-imputation, the first of the baselines, is ``KarmaClassifier(gamma=1, loss="hinge", normalize=None)``: the linear kernel
on rows whose missing entries are 0, which is the column mean of standardised columns.
"""

from lacunar.papers.karma.algorithm import PrintedKarmaClassifier, PrintedKarmaRegressor
from lacunar.papers.karma.definitions import (
    block_predictor,
    embedding,
    embedding_weights,
    kernel_sum,
    linear_predictor,
    regularity,
    truncated_predictor,
)
from lacunar.papers.karma.geom import GeomClassifier
from lacunar.papers.karma.matrix_completion import MatrixCompletionClassifier, MatrixCompletionRegressor
from lacunar.papers.karma.theory import (
    embedding_size,
    gamma_needed,
    objective_bound,
    regret_bound,
    sample_bound,
    theory_rho,
    truncation_bound,
)
from lacunar.papers.karma.worlds import make_block_margin, make_rank_conflict, make_subspace_regression

__all__ = [
    "GeomClassifier",
    "MatrixCompletionClassifier",
    "MatrixCompletionRegressor",
    "PrintedKarmaClassifier",
    "PrintedKarmaRegressor",
    "block_predictor",
    "embedding",
    "embedding_size",
    "embedding_weights",
    "gamma_needed",
    "kernel_sum",
    "linear_predictor",
    "make_block_margin",
    "make_rank_conflict",
    "make_subspace_regression",
    "objective_bound",
    "regret_bound",
    "regularity",
    "sample_bound",
    "theory_rho",
    "truncated_predictor",
    "truncation_bound",
]
