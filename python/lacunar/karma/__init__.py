"""KARMA: kernel learning from rows with missing entries (Hazan, Livni, Mansour 2015)."""

from lacunar.karma.classifier import KarmaClassifier
from lacunar.karma.features import KarmaFeatures
from lacunar.karma.online import KarmaOnlineClassifier, KarmaOnlineRegressor
from lacunar.karma.regressor import KarmaRegressor
from lacunar.karma.search import KarmaClassifierCV, KarmaRegressorCV

__all__ = [
    "KarmaClassifier",
    "KarmaClassifierCV",
    "KarmaFeatures",
    "KarmaOnlineClassifier",
    "KarmaOnlineRegressor",
    "KarmaRegressor",
    "KarmaRegressorCV",
]
