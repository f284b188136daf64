"""
What a subspace regression says of the columns
==============================================

`SLRMRegressor` learns in a few shared directions; `feature_coef_` translates its weights back to the columns people know, from rows
that never show all of them, labels missing for half. Green raises the prediction, grey lowers it: stress counts twice, diet once,
sleep not at all, which is how the data were made.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lacunar.lowrank import SLRMRegressor
from lacunar.plotting import CoefficientDisplay

rng = np.random.default_rng(0)
names = [f"{kind} {number}" for kind in ("diet", "sleep", "stress") for number in range(1, 6)]
factors = rng.normal(size=(600, 3))
loadings = np.kron(np.eye(3), rng.uniform(0.5, 1.5, size=5))  # every factor shows in five columns
X = factors @ loadings + 0.3 * rng.normal(size=(600, 15))
y = 2 * factors[:, 2] - factors[:, 0] + 0.2 * rng.normal(size=600)
X[rng.random(X.shape) < 0.5] = np.nan

labels = np.where(np.arange(600) < 300, y, np.nan)
model = SLRMRegressor(3, random_state=0).fit(pd.DataFrame(X, columns=names), labels)
value, std = model.predict(pd.DataFrame(X[300:], columns=names), return_std=True)
print(f"rows without a label: R^2 {1 - np.mean((value - y[300:]) ** 2) / np.var(y[300:]):.2f}, ")
print(f"within two standard deviations {np.mean(np.abs(value - y[300:]) < 2 * std):.0%}")

display = CoefficientDisplay.from_estimator(model, ax=plt.subplots(figsize=(5.6, 4.6), layout="constrained")[1])
print("largest:", ", ".join(display.shown()[:5]))
plt.show()
