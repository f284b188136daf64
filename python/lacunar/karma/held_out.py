"""Rows that are held out say when dual coordinate ascent has gone far enough."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lacunar._typing import Floats
from lacunar.karma.losses import loss_values
from lacunar.karma.table import PrimalModel
from lacunar.observed import Observed

# Shares of C that a fit goes through, each from the solution of the one before, and the most sweeps over the rows.
PATH = {0.01: 1, 0.1: 2, 1.0: np.inf}
_FIRST_SWEEPS = 2  # at a share, after which it ends where the one before had a smaller loss
_FAR = 1.1  # times that loss after one sweep, which a second does not make good
_HOPELESS = 1.2  # the same within a sweep
GAIN = 0.01  # of the loss of rows held out, without which C does not grow
_SWEEP_GAIN, _PATIENCE = 1e-3, 2  # the same of a sweep, and sweeps in a row without it that end an ascent


class Reached(NamedTuple):
    """What an ascent found at a share of C: the loss of rows held out, dual coordinates and the weight table."""

    share: float
    loss: float
    coef: Floats
    table: Floats


class HeldOut:
    """Tells an ascent after every sweep whether to end, by the mean loss of rows that it does not learn from."""

    def __init__(self, engine: PrimalModel, rows: Observed, targets: Floats, weight: Floats, n_threads: int) -> None:
        self._engine, self._rows, self._targets, self._n_threads = engine, rows, targets, n_threads
        self._weight = weight
        self._sweeps = self._idle = 0
        self._least = self._bar = self.loss = np.inf
        self._most = np.inf

    def begin(self, sweeps: float, bar: float) -> None:
        """Begin an ascent of so many sweeps at most, of two where the loss is then above the `bar`, and of one where it is
        far above.
        """
        self._most = sweeps
        self._sweeps, self._idle, self._least, self._bar = 0, 0, np.inf, bar

    def __call__(self) -> bool:
        """Measure the loss after a sweep; whether that was the last one."""
        self._measure()
        self._idle = 0 if self.loss < (1 - _SWEEP_GAIN) * self._least else self._idle + 1
        self._least, self._sweeps = min(self._least, self.loss), self._sweeps + 1
        late = self._least > (self._bar if self._sweeps >= _FIRST_SWEEPS else _FAR * self._bar)
        return late or self._sweeps >= self._most or self._idle >= _PATIENCE

    def hopeless(self) -> bool:
        """Whether the loss within a sweep is so far above the bar that the sweep will not make it good."""
        if np.isfinite(self._bar):
            self._measure()
        return self.loss > _HOPELESS * self._bar

    def _measure(self) -> None:
        engine = self._engine
        values = engine.decide(self._rows, n_threads=self._n_threads, table=engine.first)
        losses = loss_values(engine.loss, values, self._targets, engine.epsilon).sum(axis=1)
        self.loss = float(np.average(losses, weights=self._weight))
