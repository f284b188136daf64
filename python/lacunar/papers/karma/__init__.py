"""KARMA: Algorithm 1, the baselines of Section 5, the theorems and synthetic tables of Hazan, Livni and Mansour (2015).

0-imputation, the first of the baselines, is ``KarmaClassifier(gamma=1, loss="hinge", count_scale="raw", normalize=None)``: the linear kernel
on rows whose missing entries are 0, which is the column mean of standardised columns.
"""

from lacunar.papers.karma.algorithm import PrintedKarmaClassifier, PrintedKarmaRegressor
from lacunar.papers.karma.geom import GeomClassifier
from lacunar.papers.karma.matrix_completion import MatrixCompletionClassifier, MatrixCompletionRegressor

__all__ = [
    "GeomClassifier",
    "MatrixCompletionClassifier",
    "MatrixCompletionRegressor",
    "PrintedKarmaClassifier",
    "PrintedKarmaRegressor",
]
