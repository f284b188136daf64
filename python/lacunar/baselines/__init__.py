"""What the papers compare with: matrix completion with labels (mc-1, mc-b) and max-margin with absent features (geom).

`completion` has the learners on one matrix of features and labels, `continuation` the steps that complete it, `geom` the other one.
"""

from lacunar.baselines.completion import MatrixCompletionClassifier, MatrixCompletionRegressor
from lacunar.baselines.geom import GeomClassifier

__all__ = ["GeomClassifier", "MatrixCompletionClassifier", "MatrixCompletionRegressor"]
