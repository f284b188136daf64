"""Learners that stand on several families: KARMA beside low-rank completion, combined on out-of-fold predictions."""

from lacunar.learner.stack import KarmaStackClassifier, KarmaStackRegressor

__all__ = ["KarmaStackClassifier", "KarmaStackRegressor"]
