"""
Sensors with gaps, and a subspace that jumps
============================================

Forty sensors move together in three directions, each reports a third of the time, and half-way the directions change. `PETRELS` and
`GROUSE` take a reading at a time, at a cost that does not grow with the number of readings. Both find the new directions within some
hundred readings; PETRELS gets lower.
"""

import matplotlib.pyplot as plt
import numpy as np

from lacunar.lowrank import GROUSE, PETRELS
from lacunar.plotting import TrackingErrorDisplay

rng = np.random.default_rng(0)
before, after = (np.linalg.qr(rng.normal(size=(40, 3)))[0].T for _ in range(2))
first = np.arange(4000) < 2000
readings = rng.normal(size=(4000, 3))
X = np.where(first[:, None], readings @ before, readings @ after) + 0.01 * rng.normal(size=(4000, 40))
X[rng.random(X.shape) < 2 / 3] = np.nan

truth = np.repeat([before, after], 40, axis=0)  # the subspace of every window of 50 readings
trackers = {"PETRELS": PETRELS(3, random_state=0), "GROUSE": GROUSE(3, random_state=0)}
ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")[1]
display = TrackingErrorDisplay.from_estimator(trackers, X, basis=truth, ax=ax)
for name, errors in display.errors.items():
    print(
        f"{name:8s} error before the jump {errors[39]:.1e}, right after {errors[40]:.2f}, at the end {errors[-1]:.1e}"
    )
plt.show()
