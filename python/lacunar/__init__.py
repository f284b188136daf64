"""lacunar: learning from data with missing entries.

Estimators that fit partially observed tables directly: NaN in an array, null in a DataFrame, or an entry that a sparse
matrix does not store, is *missing*, and nothing is imputed before learning.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from lacunar._config import __version__, show_config
from lacunar.karma import (
    KarmaClassifier,
    KarmaClassifierCV,
    KarmaOnlineClassifier,
    KarmaOnlineRegressor,
    KarmaRegressor,
    KarmaRegressorCV,
)
from lacunar.observed import Observed
from lacunar.persistence import load_model, save_model

__all__ = [
    "KarmaClassifier",
    "KarmaClassifierCV",
    "KarmaOnlineClassifier",
    "KarmaOnlineRegressor",
    "KarmaRegressor",
    "KarmaRegressorCV",
    "LacunarClassifier",
    "LacunarRegressor",
    "Observed",
    "__version__",
    "load_model",
    "save_model",
    "show_config",
]
_FAMILIES = (
    "active", "baselines", "compare", "completion", "datasets", "distributed", "encode", "karma", "kernels", "learner",
    "lowrank", "model_selection", "observed", "persistence", "plotting", "uncertainty",
)  # fmt: skip


_LEARNERS = ("LacunarClassifier", "LacunarRegressor")  # which bring scikit-learn's trees with them


def __getattr__(name: str) -> _Any:
    """Families on first use: `lacunar.lowrank.POPCA` needs no import of its own, and the others are not loaded."""
    if name in _LEARNERS:
        return getattr(_import_module("lacunar.learner"), name)
    if name in _FAMILIES:
        return _import_module(f"lacunar.{name}")
    raise AttributeError(f"module 'lacunar' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FAMILIES, *_LEARNERS} - {"_import_module", "_Any"})
