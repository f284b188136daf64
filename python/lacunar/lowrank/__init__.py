"""Low-rank models of partially observed rows: subspaces, trackers of streams, imputation, and regression through a subspace."""

from lacunar.lowrank.gaussian import GaussianRegressor
from lacunar.lowrank.imputer import LowRankImputer
from lacunar.lowrank.moments import PairSums, column_pair_sums
from lacunar.lowrank.online import SLRMOnlineRegressor
from lacunar.lowrank.popca import POPCA
from lacunar.lowrank.slrm import SLRMRegressor
from lacunar.lowrank.slrm_cv import SLRMRegressorCV
from lacunar.lowrank.trackers import GROUSE, PETRELS

__all__ = [
    "GROUSE",
    "PETRELS",
    "POPCA",
    "GaussianRegressor",
    "LowRankImputer",
    "PairSums",
    "SLRMOnlineRegressor",
    "SLRMRegressor",
    "SLRMRegressorCV",
    "column_pair_sums",
]
