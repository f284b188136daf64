"""The solvers behind the KARMA estimators: over any precomputed Gram matrix, over support rows, and over a weight table."""

from lacunar._dual import DualResult, solve_crammer_singer, solve_dual
from lacunar.karma._average import average_states
from lacunar.karma._online import OnlineModel
from lacunar.karma._primal import AscentResult, PrimalModel
from lacunar.karma._ridge import LooPath, loo_path, solve_ridge

__all__ = [
    "AscentResult",
    "DualResult",
    "LooPath",
    "OnlineModel",
    "PrimalModel",
    "average_states",
    "loo_path",
    "solve_crammer_singer",
    "solve_dual",
    "solve_ridge",
]
