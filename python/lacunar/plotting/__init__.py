"""Pictures of tables with missing entries, models and streams: Display classes like scikit-learn's. matplotlib is imported on use."""

from lacunar.plotting.bars import CoefficientDisplay, ImportanceDisplay, PoolDisplay, ScoresDisplay
from lacunar.plotting.curves import (
    CalibrationByMissingDisplay,
    CoverageDisplay,
    ExpertWeightsDisplay,
    RegretDisplay,
    ShareCurveDisplay,
    TrackingErrorDisplay,
)
from lacunar.plotting.missingness import MissingnessDisplay

__all__ = [
    "CalibrationByMissingDisplay",
    "CoefficientDisplay",
    "CoverageDisplay",
    "ExpertWeightsDisplay",
    "ImportanceDisplay",
    "MissingnessDisplay",
    "PoolDisplay",
    "RegretDisplay",
    "ScoresDisplay",
    "ShareCurveDisplay",
    "TrackingErrorDisplay",
]
