"""
Completion: neither sufficient nor necessary
============================================

Figure 1 and Eq. 1 of Hazan, Livni and Mansour: a completion of rank one that mixes separable points, and rows that completion
mislabels although it was given the same rows with labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from lacunar import KarmaClassifier
from lacunar.baselines import MC1Classifier, MCBClassifier

NAN = np.nan

# %%
# Points left and above against right and below the origin; one of two coordinates is hidden at random. Arrows go from a point to its
# completion on the line x2 = x1, which keeps what was observed.
rng = np.random.default_rng(0)
label = np.where(np.arange(40) % 2 == 0, 1, -1)
full = np.column_stack([-label, label]) * rng.uniform(0.5, 2.0, size=(40, 2))
X = full.copy()
X[np.arange(40), rng.integers(0, 2, 40)] = NAN
karma = KarmaClassifier(gamma=1, C=10, standardize=False)
print("Figure 1:", karma.fit(X, label).score(X, label), "right without completion")

onto = np.repeat(np.nansum(X, axis=1)[:, None], 2, axis=1)
color = np.where(label > 0, "tab:green", "tab:red")
ax = plt.subplots(figsize=(4.5, 4.5), layout="constrained")[1]
ax.axline((0, 0), slope=1, color="hotpink", lw=1)
ax.quiver(*full.T, *(onto - full).T, angles="xy", scale_units="xy", scale=1, width=0.002, color="0.7")
ax.scatter(*full.T, c=color, label="complete: separable")
ax.scatter(*onto.T, marker="x", c=color, label="completed: not")
ax.legend(loc="upper left", bbox_to_anchor=(0.0, 0.45), fontsize=8)
plt.show()

# %%
# Three kinds of rows, each given 20 times with its label and once without.
rows = np.array([[1, NAN, 1, NAN], [NAN, -1, NAN, -1], [1, -1, 1, -1]])
seen, labels = np.repeat(rows, 20, axis=0), np.repeat([1, -1, 1], 20)
print("Eq. 1, labels of the three rows: [ 1 -1  1]")
print("  KARMA:", karma.fit(seen, labels).predict(rows))
for kind in (MC1Classifier, MCBClassifier):
    model = kind(lam=1.0, mu=1e-3, standardize=False).fit(np.vstack([seen, rows]), np.append(labels, [NAN] * 3))
    print(f"  {kind.__name__}:", model.transduction_[-3:].astype(int))
