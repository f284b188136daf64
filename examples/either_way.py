"""
Compare rows, or complete them?
===============================

Entries of a low-rank table missing at random are best completed; columns missing in blocks are best left missing. `KarmaStackRegressor`
fits both ways and weighs them by out-of-fold predictions: in either case the stack (green) is level with the better of the two.
"""

import matplotlib.pyplot as plt
import numpy as np

from lacunar.datasets import make_block_margin, make_subspace_regression
from lacunar.learner import KarmaStackRegressor
from lacunar.plotting import ScoresDisplay

cases = {
    "at random": make_subspace_regression(700, 20, 8, share_observed=0.6, random_state=0),
    "in blocks": make_block_margin(700, 60, 6, random_state=0),
}
names, errors, spreads, ours = [], [], [], []
for case, data in cases.items():
    X, y, train = data.data, data.target, np.arange(700) < 300
    stack = KarmaStackRegressor(cv=3).fit(X[train], y[train])
    print(f"{case}: weights of KARMA and completion {np.round(stack.final_estimator_.coef_, 2)}")
    members = dict(zip(("KARMA", "completion"), stack.estimators_, strict=True))
    for name, model in {**members, "stack": stack}.items():
        squares = (model.predict(X[~train]) - y[~train]) ** 2
        names.append(f"{case}: {name}")
        errors.append(squares.mean())
        spreads.append(squares.std() / np.sqrt(len(squares)))
        ours.append(name == "stack")
ax = plt.subplots(figsize=(7, 3.6), layout="constrained")[1]
ScoresDisplay(names, errors, spreads, ours, "squared error").plot(ax)
plt.show()
