"""lacunar: learning from data with holes.

Estimators that fit partially observed tables directly: NaN in an array, null in a DataFrame, or an entry that a sparse
matrix does not store, is *missing*, and nothing is imputed before learning.
"""

from lacunar._config import __version__, show_config
from lacunar.karma import KarmaClassifier, KarmaClassifierCV, KarmaRegressor, KarmaRegressorCV
from lacunar.observed import Observed

__all__ = [
    "KarmaClassifier",
    "KarmaClassifierCV",
    "KarmaRegressor",
    "KarmaRegressorCV",
    "Observed",
    "__version__",
    "show_config",
]
