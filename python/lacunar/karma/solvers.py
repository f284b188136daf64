"""The solvers behind the KARMA estimators, for any precomputed Gram matrix."""

from lacunar.karma._dual import DualResult, solve_crammer_singer, solve_dual
from lacunar.karma._ridge import LooPath, loo_path, solve_ridge

__all__ = ["DualResult", "LooPath", "loo_path", "solve_crammer_singer", "solve_dual", "solve_ridge"]
