"""How much less sure of a class one has to be for rows that lack more than any row of training did."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import BaseEstimator

from lacunar.observed.rules import Array, Number, Rule, floats
from lacunar.uncertainty.widening import Lacking, news_of, references

_Floats = NDArray[np.float64]
_Ints = NDArray[np.intp]

_START, _RIDGE = 0.5, 1e-3  # of the coefficients; the latter in units of a copy
_TAIL = 0.0  # of the training rows: three of them that lack as much have had their say in the calibration


class Softening(BaseEstimator):  # type: ignore[misc]
    """Log probabilities drawn to those of the classes' shares, learned from copies of training rows with further entries hidden.

    A row is news where fewer than three training rows lack as much; rows that are none keep their probabilities. Of the others the log probabilities over the shares of the classes are divided by
    1 plus a sum with coefficients >= 0 of the share that is missing, its square, and what the row leaves open.
    """

    _held: ClassVar[dict[str, Rule]] = {
        "reference_": floats("references", 3),
        "least_variance_": Number(low=0, above=True),
        "log_shares_": floats("c", high=0),
        "coef_": floats(3, low=0),
        "scores_": floats("copies", low=-1e-9, high=1),
        "score_missing_": floats("copies", low=0),
        "score_class_": Array("i", ("copies",), low=0),
    }

    def fit(
        self, rows: Lacking, labels: _Ints, weight: _Floats, copies: Lacking, copied: _Ints, logs: _Floats
    ) -> Softening:
        """From training rows, their classes and weights (n,), and copies of the rows numbered in `copied` with log probabilities (copies, c)."""
        self.reference_ = references(rows)
        self.least_variance_ = float(rows.variance.min())
        counts = np.bincount(labels, weights=weight, minlength=logs.shape[1]) + 1.0
        self.log_shares_ = np.log(counts / counts.sum())
        news, copy_labels = self.news(copies), labels[copied]
        over = logs - self.log_shares_
        self.coef_ = _slopes(self._features(copies), news, weight[copied], over, self.log_shares_, copy_labels)
        new = news > 0
        softened = self.softened(copies, logs)
        self.scores_ = 1.0 - np.exp(softened[np.arange(len(copy_labels)), copy_labels])[new]
        self.score_missing_, self.score_class_ = copies.n_missing[new], copy_labels[new]
        return self

    def news(self, rows: Lacking) -> _Floats:
        """How far rows are unlike those of training (m,), from 0 to 1."""
        return news_of(self.reference_, rows, _TAIL)

    def softened(self, rows: Lacking, logs: _Floats) -> _Floats:
        """Log probabilities (m, c) of rows whose ensemble says `logs`, which stay where a row is no news."""
        news = self.news(rows)
        rate = 1 / (1 + news * (self._features(rows) * self.coef_).sum(axis=1))
        drawn = _log_softmax(self.log_shares_ + rate[:, None] * (logs - self.log_shares_))
        return np.where((news > 0)[:, None], drawn, logs)

    def _features(self, rows: Lacking) -> _Floats:
        share = rows.n_missing / max(rows.missing.shape[1], 1)
        return np.column_stack([share, share**2, np.maximum(rows.variance - self.least_variance_, 0.0)])


def _slopes(
    features: _Floats, news: _Floats, weight: _Floats, logs: _Floats, log_shares: _Floats, labels: _Ints
) -> _Floats:
    """Coefficients >= 0 with the least log loss of the copies, each weighed by how far it is news and by its row's weight."""
    if not news @ weight:
        return np.zeros(features.shape[1])
    own = np.arange(len(labels))
    weight = news * weight / (news @ weight)

    def loss(coef: _Floats) -> tuple[float, _Floats]:
        rate = 1 / (1 + news * (features @ coef))
        drawn = _log_softmax(log_shares + rate[:, None] * logs)
        slope = (np.exp(drawn) * logs).sum(axis=1) - logs[own, labels]  # of the loss by the rate
        gradient = features.T @ (-weight * slope * rate**2 * news)
        return -float(weight @ drawn[own, labels]) + _RIDGE * float(coef @ coef), gradient + 2 * _RIDGE * coef

    start = np.full(features.shape[1], _START)
    bounds = [(0.0, None)] * len(start)
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x)


def _log_softmax(values: _Floats) -> _Floats:
    return np.asarray(values - np.logaddexp.reduce(values, axis=1, keepdims=True))
