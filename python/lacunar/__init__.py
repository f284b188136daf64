"""lacunar: learning from data with holes.

Estimators that fit partially observed tables directly: NaN in an array, null in a DataFrame, or an entry that a sparse
matrix does not store, is *missing*, and nothing is imputed before learning.
"""

from lacunar._config import __version__, show_config
from lacunar.karma import KarmaClassifier, KarmaRegressor
from lacunar.observed import Observed

__all__ = ["KarmaClassifier", "KarmaRegressor", "Observed", "__version__", "show_config"]
