"""Low-rank completion of a table by a model with noise."""

from lacunar.stack._completion import LowRankImputer

__all__ = ["LowRankImputer"]
