"""lacunar: learning from data with missing entries.

Estimators that take partially observed tables as they are: NaN in an array, null in a DataFrame, or an entry that a sparse
matrix does not store, is *missing*. You fill nothing in; where a learner fills gaps for itself, its docstring says so.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from lacunar._config import __version__, show_config

if _TYPE_CHECKING:
    from lacunar.completion import OnlineMatrixClassifier
    from lacunar.encode import TableEncoder
    from lacunar.impute import Imputer, MultipleImputer
    from lacunar.karma import (
        KarmaClassifier,
        KarmaClassifierCV,
        KarmaOnlineClassifier,
        KarmaOnlineRegressor,
        KarmaRegressor,
        KarmaRegressorCV,
    )
    from lacunar.learner import LacunarClassifier, LacunarRegressor
    from lacunar.lowrank import POPCA, LowRankImputer, SLRMRegressor
    from lacunar.observed import Observed
    from lacunar.persistence import load_model, save_model
    from lacunar.plotting import MissingnessDisplay

__all__ = [
    "POPCA",
    "Imputer",
    "KarmaClassifier",
    "KarmaClassifierCV",
    "KarmaOnlineClassifier",
    "KarmaOnlineRegressor",
    "KarmaRegressor",
    "KarmaRegressorCV",
    "LacunarClassifier",
    "LacunarRegressor",
    "LowRankImputer",
    "MissingnessDisplay",
    "MultipleImputer",
    "Observed",
    "OnlineMatrixClassifier",
    "SLRMRegressor",
    "TableEncoder",
    "__version__",
    "compare",
    "load_model",
    "save_model",
    "show_config",
]
_FAMILIES = (
    "active", "comparison", "completion", "datasets", "distributed", "encode", "explanation", "impute", "karma", "kernels",
    "learner", "lowrank", "model_selection", "observed", "papers", "persistence", "plotting", "uncertainty",
)  # fmt: skip
_HOME = {  # of names that are imported on first use: `lacunar --version` waits for none of them
    **{name: "karma" for name in __all__ if name.startswith("Karma")},
    **{name: "learner" for name in __all__ if name.startswith("Lacunar")},
    "Imputer": "impute",
    "LowRankImputer": "lowrank",
    "MissingnessDisplay": "plotting",
    "MultipleImputer": "impute",
    "Observed": "observed",
    "OnlineMatrixClassifier": "completion",
    "POPCA": "lowrank",
    "SLRMRegressor": "lowrank",
    "TableEncoder": "encode",
    "compare": "comparison",
    "load_model": "persistence",
    "save_model": "persistence",
}


def __getattr__(name: str) -> _Any:
    """Names and families on first use: `lacunar.lowrank.POPCA` needs no import of its own, and the others are not loaded."""
    if name in _HOME:
        attribute = getattr(_import_module(f"lacunar.{_HOME[name]}"), name)
        globals()[name] = attribute
        return attribute
    if name in _FAMILIES:
        return _import_module(f"lacunar.{name}")
    raise AttributeError(f"module 'lacunar' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FAMILIES, *_HOME} - {"_import_module", "_Any", "_TYPE_CHECKING"})
