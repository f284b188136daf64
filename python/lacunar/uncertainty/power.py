"""A power transformation of the target, with straight ends."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from lacunar._typing import Floats
from lacunar.observed.rules import Number, Rule

_POWERS = np.arange(21) / 10  # from the logarithm to its mirror image: each maps all numbers to all numbers
_STRAIGHT = 0.15  # powers so near 1 change next to nothing
_NORMAL_QUARTILES = 1.349  # their distance, in standard deviations
_TINY = float(np.finfo(np.float64).tiny)


class TargetPower(BaseEstimator):
    """Yeo and Johnson's power transformation of a target around its median, of the power that makes it most normal.

    Powers are 0, 0.1, ..., 2. Beyond the smallest and the largest target of training the curve goes on as a straight
    line: its inverse never blows up, however far from the data a model predicts.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "median_": Number(),
        "scale_": Number(low=0, above=True),
        "power_": Number(low=0, high=2),
        "low_": Number(),
        "high_": Number(),
    }

    def fit(self, y: Floats) -> Self:
        """Choose the power for targets (n,)."""
        lower, self.median_, upper = (float(q) for q in np.quantile(y, [0.25, 0.5, 0.75]))
        scale = (upper - lower) / _NORMAL_QUARTILES
        self.scale_ = scale if scale > 0 else max(float(np.std(y)), _TINY)
        units = (y - self.median_) / self.scale_
        self.low_, self.high_ = float(units.min()), float(units.max())
        self.power_ = float(max(_POWERS, key=lambda power: _log_likelihood(units, power)))
        return self

    @property
    def bends(self) -> bool:
        """Whether the power clearly differs from 1."""
        return abs(self.power_ - 1) > _STRAIGHT

    def transform(self, y: Floats) -> Floats:
        """Targets (n,) of training, or between them, on the curve."""
        return _curve((y - self.median_) / self.scale_, self.power_)

    def inverse(self, values: Floats) -> Floats:
        """Targets of any values on the curve and its straight ends, of the same shape."""
        ends = np.array([self.low_, self.high_])
        first, last = _curve(ends, self.power_)
        slopes = _slope(ends, self.power_)
        units = _inverse_curve(np.clip(values, first, last), self.power_)
        units += np.minimum(values - first, 0.0) / slopes[0] + np.maximum(values - last, 0.0) / slopes[1]
        return np.asarray(units * self.scale_ + self.median_)


def _log_likelihood(units: Floats, power: float) -> float:
    """Log likelihood of the targets where their transforms are normal, up to a constant."""
    variance = max(float(_curve(units, power).var()), _TINY)
    slopes = float(np.log(_slope(units, power)).mean())
    return slopes - float(np.log(variance)) / 2


def _curve(units: Floats, power: float) -> Floats:
    """Yeo and Johnson's psi: Box and Cox's transformation of 1 + u above 0, its mirror image of power 2 - p below."""
    return np.where(units >= 0, _box_cox(np.abs(units), power), -_box_cox(np.abs(units), 2 - power))


def _box_cox(u: Floats, power: float) -> Floats:
    return np.asarray(np.log1p(u) if power == 0 else np.expm1(power * np.log1p(u)) / power)


def _slope(units: Floats, power: float) -> Floats:
    return np.asarray((1 + np.abs(units)) ** np.where(units >= 0, power - 1, 1 - power))


def _inverse_curve(values: Floats, power: float) -> Floats:
    size = np.abs(values)
    return np.where(values >= 0, _inverse_box_cox(size, power), -_inverse_box_cox(size, 2 - power))


def _inverse_box_cox(v: Floats, power: float) -> Floats:
    return np.asarray(np.expm1(v) if power == 0 else np.expm1(np.log1p(power * v) / power))
