"""Regression through a hidden subspace, from rows with holes: SLRM and its relatives."""

from lacunar.regression._mpcr import MPCRRegressor, SMPCRRegressor
from lacunar.regression._slrm import SLRMRegressor
from lacunar.regression._slrm_cv import SLRMRegressorCV
from lacunar.regression._theory import (
    coherence,
    slrm_complexity_bound,
    slrm_gate_level,
    slrm_loss_bound,
    slrm_risk_bound,
)

__all__ = [
    "MPCRRegressor",
    "SLRMRegressor",
    "SLRMRegressorCV",
    "SMPCRRegressor",
    "coherence",
    "slrm_complexity_bound",
    "slrm_gate_level",
    "slrm_loss_bound",
    "slrm_risk_bound",
]
