"""What predictions from incomplete rows are worth: intervals and sets for the mask in hand, what to measure next, and why entries are missing."""

from lacunar.uncertainty.intervals import MaskConformalRegressor
from lacunar.uncertainty.measuring import Measurement, MeasuringLoop, value_of_measuring
from lacunar.uncertainty.mechanisms import missingness_report
from lacunar.uncertainty.report import MissingnessReport
from lacunar.uncertainty.sets import MaskConformalClassifier

__all__ = [
    "MaskConformalClassifier",
    "MaskConformalRegressor",
    "Measurement",
    "MeasuringLoop",
    "MissingnessReport",
    "missingness_report",
    "value_of_measuring",
]
