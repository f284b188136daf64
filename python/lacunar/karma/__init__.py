"""KARMA: kernel learning from rows with holes (Hazan, Livni, Mansour 2015)."""

from lacunar.karma._classifier import KarmaClassifier
from lacunar.karma._regressor import KarmaRegressor

__all__ = ["KarmaClassifier", "KarmaRegressor"]
