"""KARMA: kernel learning from rows with holes (Hazan, Livni, Mansour 2015)."""

from lacunar.karma._classifier import KarmaClassifier
from lacunar.karma._classifier_cv import KarmaClassifierCV
from lacunar.karma._regressor import KarmaRegressor
from lacunar.karma._regressor_cv import KarmaRegressorCV

__all__ = ["KarmaClassifier", "KarmaClassifierCV", "KarmaRegressor", "KarmaRegressorCV"]
