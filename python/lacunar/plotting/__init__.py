"""Pictures of tables with holes, models and streams: Display classes, as scikit-learn's. matplotlib is imported on use."""

from lacunar.plotting._coefficients import CoefficientDisplay
from lacunar.plotting._coverage import CoverageDisplay
from lacunar.plotting._missingness import MissingnessDisplay
from lacunar.plotting._regret import RegretDisplay
from lacunar.plotting._scores import ScoresDisplay
from lacunar.plotting._share_curve import ShareCurveDisplay
from lacunar.plotting._tracking import TrackingErrorDisplay

__all__ = [
    "CoefficientDisplay",
    "CoverageDisplay",
    "MissingnessDisplay",
    "RegretDisplay",
    "ScoresDisplay",
    "ShareCurveDisplay",
    "TrackingErrorDisplay",
]
