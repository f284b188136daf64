"""What the papers compare with: matrix completion with labels (mc-1, mc-b) and max-margin with absent features (geom)."""

from lacunar.baselines._geom import GeomClassifier
from lacunar.baselines._mc1 import MC1Classifier, MC1Regressor
from lacunar.baselines._mcb import MCBClassifier, MCBRegressor

__all__ = ["GeomClassifier", "MC1Classifier", "MC1Regressor", "MCBClassifier", "MCBRegressor"]
