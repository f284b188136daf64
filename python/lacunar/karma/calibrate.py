"""Probabilities from values: softmax(e^a F + b), a and b by maximum a posteriori on values of rows that were left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

_Floats = NDArray[np.float64]


def scaled(values: _Floats, calibration: _Floats) -> _Floats:
    """e^a F + b, shape (n, outputs)."""
    made: _Floats = np.exp(calibration[0]) * values + calibration[1:]
    return made


def _logits(values: _Floats, calibration: _Floats) -> _Floats:
    """Of every class (n, k): e^a F + b; for two classes, of which F (n, 1) speaks for the second, 0 and e^a F + b."""
    made = scaled(values, calibration)
    return made if made.shape[1] > 1 else np.column_stack([np.zeros(len(made)), made])


def fit_calibration(values: _Floats, codes: NDArray[np.intp], weight: _Floats) -> _Floats:
    """(a, b) as one array (1 + outputs,) from values (n, outputs) of rows that took no part in them.

    The priors are normal of variance 1: a around the log of half the number of classes (at least 1), to which values that are least squares
    of the codes +-1 lead, and b around 0.
    """
    outputs = values.shape[1]
    a = np.log(max(outputs / 2, 2.0 if outputs == 1 else 1.0))
    start = np.r_[a, np.zeros(outputs)]

    def loss(calibration: _Floats) -> tuple[float, _Floats]:
        logits = _logits(values, calibration)
        off = calibration - start
        total = -weight @ log_softmax(logits, axis=1)[np.arange(len(codes)), codes] + 0.5 * off @ off
        slope = softmax(logits, axis=1)
        slope[np.arange(len(codes)), codes] -= 1
        slope = (slope * weight[:, None])[:, -outputs:]
        return float(total), np.r_[np.exp(calibration[0]) * np.sum(slope * values), slope.sum(axis=0)] + off

    bounds = [(a - 5.0, a + 5.0)] + [(-20.0, 20.0)] * outputs
    return np.asarray(
        minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-16, "gtol": 1e-9}).x,
        dtype=np.float64,
    )


def probabilities(values: _Floats, calibration: _Floats) -> _Floats:
    """Probabilities (n, k) of the classes from values (n, outputs)."""
    shares: _Floats = softmax(_logits(values, calibration), axis=1)
    return shares
