"""Imputation: missing entries filled from a model of the rows."""

from lacunar.impute.imputer import LowRankImputer

__all__ = ["LowRankImputer"]
