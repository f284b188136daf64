"""
Compare rows, or complete them?
===============================

Entries of a low-rank table missing at random are best completed; columns missing in blocks are best left missing. `LacunarRegressor`
fits both ways, and trees beside them, and weighs all by out-of-fold predictions: in either case the pool (green) is level with the best.
"""

import matplotlib.pyplot as plt
import numpy as np

from lacunar import LacunarRegressor
from lacunar.papers.karma import make_block_margin, make_subspace_regression
from lacunar.plotting import ScoresDisplay

cases = {
    "at random": make_subspace_regression(700, 20, 8, share_observed=0.6, random_state=0),
    "in blocks": make_block_margin(700, 60, 6, random_state=0),
}
names, errors, spreads, ours = [], [], [], []
for case, data in cases.items():
    X, y, train = data.data, data.target, np.arange(700) < 300
    models = {
        "KARMA": LacunarRegressor(members=["kernels"]),
        "completion": LacunarRegressor(members=["gaussian"]),
        "pool": LacunarRegressor(),
    }
    for name, model in models.items():
        model.fit(X[train], y[train])
        squares = (model.predict(X[~train]) - y[~train]) ** 2
        names.append(f"{case}: {name}")
        errors.append(squares.mean())
        spreads.append(squares.std() / np.sqrt(len(squares)))
        ours.append(name == "pool")
print({name: round(float(weight), 2) for name, weight in zip(model.members_, model.weights_, strict=True)})
ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")[1]
ScoresDisplay(names, errors, spreads, ours, "squared error").plot(ax)
plt.show()
