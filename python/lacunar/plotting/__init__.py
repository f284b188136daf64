"""Pictures of tables with missing entries, models and streams: Display classes like scikit-learn's. matplotlib is imported on use."""

from lacunar.plotting.bars import CoefficientDisplay, ImportanceDisplay, PoolDisplay, ScoresDisplay
from lacunar.plotting.coverage import CalibrationByMissingDisplay, CoverageDisplay
from lacunar.plotting.curves import ExpertWeightsDisplay, RegretDisplay, ShareCurveDisplay, TrackingErrorDisplay
from lacunar.plotting.explanations import BeeswarmDisplay, WaterfallDisplay
from lacunar.plotting.imputation import (
    ChainsDisplay,
    DeltaDisplay,
    ImputedValuesDisplay,
    OverimputationDisplay,
)
from lacunar.plotting.missingness import MissingnessDisplay

__all__ = [
    "BeeswarmDisplay",
    "CalibrationByMissingDisplay",
    "ChainsDisplay",
    "CoefficientDisplay",
    "CoverageDisplay",
    "DeltaDisplay",
    "ExpertWeightsDisplay",
    "ImportanceDisplay",
    "ImputedValuesDisplay",
    "MissingnessDisplay",
    "OverimputationDisplay",
    "PoolDisplay",
    "RegretDisplay",
    "ScoresDisplay",
    "ShareCurveDisplay",
    "TrackingErrorDisplay",
    "WaterfallDisplay",
]
