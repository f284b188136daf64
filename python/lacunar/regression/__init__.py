"""Regression through a hidden subspace, from rows with holes: SLRM and its relatives."""

from lacunar.regression._mpcr import MPCRRegressor, SMPCRRegressor
from lacunar.regression._slrm import SLRMRegressor
from lacunar.regression._slrm_cv import SLRMRegressorCV

__all__ = ["MPCRRegressor", "SLRMRegressor", "SLRMRegressorCV", "SMPCRRegressor"]
