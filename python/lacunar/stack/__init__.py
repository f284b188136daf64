"""KARMA beside low-rank completion and any other model, combined on out-of-fold predictions."""

from lacunar.stack._completion import LowRankImputer
from lacunar.stack._stack import KarmaStackClassifier, KarmaStackRegressor

__all__ = ["KarmaStackClassifier", "KarmaStackRegressor", "LowRankImputer"]
