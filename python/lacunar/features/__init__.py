"""The kernel of KARMA as features for any linear learner."""

from lacunar.features._karma_features import KarmaFeatures

__all__ = ["KarmaFeatures"]
