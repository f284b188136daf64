"""One partly observed matrix of features, labels and ones: its smooth loss and the steps that suit it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lacunar.observed import Observed

_Floats = NDArray[np.float64]
Loss = Literal["logistic", "squared"]

_SHARE = 0.95  # of 1 / Lipschitz constant: the 3.8 = 0.95 * 4 of Goldberg et al.


@dataclass(frozen=True)
class Stacked:
    """Rows [features (d), labels (m), ones (0 or 1)]; the last m + [ones] columns are the block, held dense.

    The column of ones of mc-1 is reset to 1 after every threshold. The gradient step then starts from 1, as it would end
    there for an observed entry of weight 1 / step: the reset is that entry, and no other case.
    """

    rows: Observed  # (n, d)
    labels: _Floats  # (n, m), NaN where unknown; 0 and 1 under the logistic loss
    loss: Loss
    ones: bool
    lam: float

    @property
    def shape(self) -> tuple[int, int]:
        """Of the whole matrix."""
        return self.rows.shape[0], self.rows.shape[1] + self.labels.shape[1] + self.ones

    @property
    def n_entries(self) -> int:
        """|Omega_X|, at least 1."""
        return max(self.rows.nnz, 1)

    @property
    def label_weight(self) -> float:
        """lambda / |Omega_Y|."""
        return self.lam / max(int(np.count_nonzero(~np.isnan(self.labels))), 1)

    @property
    def step(self) -> float:
        """tau_Z: the smaller of what labels and features allow."""
        return min(_SHARE / (self.label_weight * self._curvature), float(self.n_entries))

    @property
    def bias_step(self) -> float:
        """tau_b: a bias meets at most n labels."""
        return _SHARE / (self.label_weight * self._curvature * max(self.rows.shape[0], 1))

    @property
    def _curvature(self) -> float:
        return 0.25 if self.loss == "logistic" else 1.0

    def gradient(self, entries: _Floats, block: _Floats, bias: _Floats) -> Gradient:
        """Of the loss at a matrix with these observed entries (nnz,) and this block (n, m + [ones])."""
        m = self.labels.shape[1]
        value = block[:, :m] + bias
        fitted = expit(value) if self.loss == "logistic" else value
        made = np.zeros_like(block)
        made[:, :m] = np.nan_to_num(fitted - self.labels) * self.label_weight
        if self.ones:
            made[:, m] = (block[:, m] - 1.0) / self.step
        return Gradient((entries - self.rows.values) / self.n_entries, made)


class Gradient(NamedTuple):
    """Nonzero only on observed features and in the block."""

    entries: _Floats  # (nnz,)
    block: _Floats  # (n, m + [ones])
