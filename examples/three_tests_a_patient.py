"""
A clinic that buys three tests a patient
========================================

Twelve tests, four for each of three organs; those of one organ say nearly the same. Most values are missing on arrival, and three can be measured.
`MeasuringLoop` asks for the test that would narrow the prediction most (`value_of_measuring`), is told its result, and asks again while the budget lasts. The picture
compares it with buying at random and with the tests that correlate most with the outcome, which are all of one organ.
"""

import matplotlib.pyplot as plt
import numpy as np

from lacunar.lowrank import GaussianRegressor
from lacunar.uncertainty import MaskConformalRegressor, MeasuringLoop

rng = np.random.default_rng(0)
organs = rng.normal(size=(1100, 3))
X = np.repeat(organs, 4, axis=1) + 0.3 * rng.normal(size=(1100, 12))
y = organs @ [1.5, 1.2, 1.0] + 0.3 * rng.normal(size=1100)
train, test = np.arange(300), np.arange(300, 1100)
known = np.where(rng.random(X.shape) < 0.3, np.nan, X)[train]
arrived = np.where(rng.random(X.shape) < 0.9, np.nan, X)[test]
model = GaussianRegressor().fit(known, y[train])
size = np.abs([np.corrcoef(x[~np.isnan(x)], y[train][~np.isnan(x)])[0, 1] for x in known.T])
rules = {
    "at random": lambda rows: rng.random(rows.shape),
    "largest correlation first": lambda rows: np.tile(size, (len(rows), 1)),
}
after = {name: [arrived.copy()] for name in (*rules, "MeasuringLoop")}
for name, rule in rules.items():
    for _ in range(3):
        rows = after[name][-1].copy()
        best = np.argmax(np.where(np.isnan(rows), rule(rows), -1.0), axis=1)
        rows[np.arange(800), best] = X[test, best]
        after[name].append(rows)

# %%
# The clinic: every patient has a budget of three tests. Results come when they come; a test that cannot be done is told as NaN.
clinic = MeasuringLoop(model, budget=3)
clinic.add(arrived)
while requests := clinic.ask():
    for request in requests:
        clinic.tell(request, X[test[request.row], request.column])
    after["MeasuringLoop"].append(clinic.rows_.copy())
ax = plt.subplots(figsize=(7, 3.8), layout="constrained")[1]
for (name, tables), colour in zip(after.items(), ("#888888", "#d55e00", "#0b7a75"), strict=True):
    errors = [np.mean((model.predict(rows) - y[test]) ** 2) / y.var() for rows in tables]
    print(f"{name:26s} error after 0 and 3 tests: {errors[0]:.2f}, {errors[-1]:.2f}")
    ax.plot(errors, "o-", color=colour, lw=2, label=name)
ax.set(xlabel="tests bought for each patient", ylabel="squared error over the variance", xticks=range(4))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, fontsize=11)
plt.show()

# %%
# Intervals know what a patient lacks: nine in ten hold the truth before the tests and after them.
intervals = MaskConformalRegressor().fit(known, y[train])
for name, table in (("on arrival", arrived), ("complete", X[test])):
    low, high = intervals.predict_interval(table).T
    print(f"{name}: {np.mean((low <= y[test]) & (y[test] <= high)):.2f} covered, mean width {np.mean(high - low):.0f}")
