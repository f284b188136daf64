"""KARMA: kernel learning from rows with missing entries (Hazan, Livni, Mansour 2015)."""

from lacunar.karma.classifier import KarmaClassifier
from lacunar.karma.cv import KarmaClassifierCV, KarmaRegressorCV
from lacunar.karma.features import KarmaFeatures
from lacunar.karma.online import KarmaOnlineClassifier, KarmaOnlineRegressor
from lacunar.karma.regressor import KarmaRegressor

__all__ = [
    "KarmaClassifier",
    "KarmaClassifierCV",
    "KarmaFeatures",
    "KarmaOnlineClassifier",
    "KarmaOnlineRegressor",
    "KarmaRegressor",
    "KarmaRegressorCV",
]
