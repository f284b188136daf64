"""Probabilities from values F: softmax(e^a F + b), a and b by maximum a posteriori on rows that were left out.

Platt, "Probabilistic outputs for support vector machines", 1999, with one slope for all classes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from lacunar._typing import Floats


def scaled(values: Floats, calibration: Floats) -> Floats:
    """e^a F + b, shape (n, outputs)."""
    logits: Floats = np.exp(calibration[0]) * values + calibration[1:]
    return logits


def all_classes(logits: Floats) -> Floats:
    """Logits of every class (..., k); of two classes, the first has 0 and the second the logit that is passed."""
    return logits if logits.shape[-1] > 1 else np.concatenate([np.zeros_like(logits), logits], axis=-1)


def fit_calibration(
    values: Floats, y_encoded: NDArray[np.intp], weight: Floats, usual: float | None = None, *, shifted: bool = True
) -> Floats:
    """(a, b) as one array (1 + outputs,) from values (n, outputs) of rows that took no part in them.

    The priors are normal of variance 1: a around the `usual` one, by default the log of half the number of classes (at
    least 1), to which values that are least squares of targets +-1 lead, and b around 0. Not `shifted`, b is 0, where
    probabilities must prefer the classes that values prefer.
    """
    outputs, rows = values.shape[1], np.arange(len(y_encoded))
    start = np.r_[usual_slope(outputs) if usual is None else usual, np.zeros(outputs)]

    def loss(calibration: Floats) -> tuple[float, Floats]:
        logs, off = log_softmax(all_classes(scaled(values, calibration)), axis=1), calibration - start
        total = -weight @ logs[rows, y_encoded] + 0.5 * off @ off
        slope = np.exp(logs)
        slope[rows, y_encoded] -= 1
        slope = (slope * weight[:, None])[:, -outputs:]
        return float(total), np.r_[np.exp(calibration[0]) * np.sum(slope * values), slope.sum(axis=0)] + off

    bounds = [(start[0] - 5.0, start[0] + 5.0)] + [(-20.0, 20.0) if shifted else (0.0, 0.0)] * outputs
    return np.asarray(
        minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-16, "gtol": 1e-9}).x,
        dtype=np.float64,
    )


def probabilities(values: Floats, calibration: Floats) -> Floats:
    """Probabilities (n, k) of the classes from values (n, outputs), with a and b."""
    shares: Floats = softmax(all_classes(scaled(values, calibration)), axis=1)
    return shares


def logistic_probabilities(values: Floats) -> Floats:
    """Probabilities (n, k) from logits (n, outputs) of the logistic loss, one class against the rest.

    They are divided by their sum.
    """
    if values.shape[1] == 1:
        return np.column_stack([expit(-values), expit(values)])
    one_against_rest = expit(values)
    total = one_against_rest.sum(axis=1, keepdims=True)
    shares: Floats = one_against_rest / np.where(total > 0, total, 1.0)
    return shares


def usual_slope(outputs: int) -> float:
    """Slope a that usually fits values of least squares on targets +-1."""
    return float(np.log(max(outputs / 2, 2.0 if outputs == 1 else 1.0)))
