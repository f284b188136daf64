"""The kernel of KARMA as features for any linear learner, and categories as columns with holes."""

from lacunar.features._category_encoder import CategoryEncoder
from lacunar.features._karma_features import KarmaFeatures

__all__ = ["CategoryEncoder", "KarmaFeatures"]
