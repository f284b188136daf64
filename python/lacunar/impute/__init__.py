"""Tables with their missing cells filled: once for a look or another tool, many times for conclusions."""

from lacunar.impute.analyses import CoxAnalysis, LinearAnalysis, LogisticAnalysis
from lacunar.impute.imputer import Imputer
from lacunar.impute.multiple import MultipleImputer
from lacunar.impute.pooling import PooledResult, pool

__all__ = ["CoxAnalysis", "Imputer", "LinearAnalysis", "LogisticAnalysis", "MultipleImputer", "PooledResult", "pool"]
