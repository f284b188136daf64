"""The one learner, which stands on several families: every kind of member on the table as it is, pooled on out-of-fold values."""

from lacunar.learner.classifier import LacunarClassifier
from lacunar.learner.regressor import LacunarRegressor

__all__ = ["LacunarClassifier", "LacunarRegressor"]
