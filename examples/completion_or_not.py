"""
Completion: neither sufficient nor necessary
============================================

Figure 1 and Eq. 1 of Hazan, Livni and Mansour: a completion of rank one that mixes separable points, and rows that completion
mislabels although it was given the same rows with labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from lacunar import KarmaClassifier
from lacunar.papers.karma import MatrixCompletionClassifier

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
ax = plt.subplots(figsize=(5.6, 5.4), layout="constrained")[1]
ax.axline((0, 0), slope=1, color="0.6", lw=1)
ax.quiver(*full.T, *(onto - full).T, angles="xy", scale_units="xy", scale=1, width=0.002, color="0.75")
for side, color, shape in ((1, "#0b7a75", "o"), (-1, "#d55e00", "s")):
    ax.scatter(*full[label == side].T, c=color, marker=shape, label=f"label {side:+d}: separable")
    ax.scatter(*onto[label == side].T, edgecolors=color, facecolors="none", marker=shape, label="completed: mixed")
ax.set(xlabel="first coordinate", ylabel="second coordinate", aspect="equal")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, fontsize=10)
plt.show()

# %%
# Three kinds of rows, each given 20 times with its label and once without.
rows = np.array([[1, NAN, 1, NAN], [NAN, -1, NAN, -1], [1, -1, 1, -1]])
seen, labels = np.repeat(rows, 20, axis=0), np.repeat([1, -1, 1], 20)
print("Eq. 1, labels of the three rows: [ 1 -1  1]")
print("  KARMA:", karma.fit(seen, labels).predict(rows))
for name, intercept in (("mc-1", "column"), ("mc-b", "bias")):
    model = MatrixCompletionClassifier(intercept, lam=1.0, mu=1e-3, standardize=False)
    model.fit(np.vstack([seen, rows]), np.append(labels, [NAN] * 3))
    print(f"  {name}:", model.transduction_[-3:].astype(int))
