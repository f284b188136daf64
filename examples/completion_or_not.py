"""Completion is neither sufficient nor necessary: Figure 1 and Eq. 1 of Hazan, Livni and Mansour, as numbers and a picture."""

import tempfile
from pathlib import Path

import numpy as np

from lacunar import KarmaClassifier
from lacunar.baselines import MC1Classifier, MCBClassifier

NAN = np.nan


def points(n=40):
    """Left and above against right and below the origin; one of two coordinates is hidden at random."""
    rng = np.random.default_rng(0)
    label = np.where(np.arange(n) % 2 == 0, 1, -1)
    full = np.column_stack([-label, label]) * rng.uniform(0.5, 2.0, size=(n, 2))
    X = full.copy()
    X[np.arange(n), rng.integers(0, 2, n)] = NAN
    return full, X, label


def draw(full, X, label, path):
    """Arrows go from a point to its completion on the line x2 = x1, which keeps what was observed."""
    try:
        import matplotlib
    except ImportError:
        return "install matplotlib for the picture"
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    onto = np.repeat(np.nansum(X, axis=1)[:, None], 2, axis=1)
    figure, axes = plt.subplots(figsize=(4.5, 4.5))
    axes.axline((0, 0), slope=1, color="hotpink", lw=1)
    axes.quiver(*full.T, *(onto - full).T, angles="xy", scale_units="xy", scale=1, width=0.002, color="0.7")
    axes.scatter(*full.T, c=np.where(label > 0, "tab:green", "tab:red"), label="complete: separable")
    axes.scatter(*onto.T, marker="x", c=np.where(label > 0, "tab:green", "tab:red"), label="completed: not")
    axes.legend()
    figure.savefig(path, dpi=120)
    return path


full, X, label = points()
print(
    "Figure 1:", KarmaClassifier(gamma=1, C=10, standardize=False).fit(X, label).score(X, label), "right, not completed"
)
print(draw(full, X, label, Path(tempfile.gettempdir()) / "completion_or_not.png"))

rows = np.array([[1, NAN, 1, NAN], [NAN, -1, NAN, -1], [1, -1, 1, -1]])
seen, labels = np.repeat(rows, 20, axis=0), np.repeat([1, -1, 1], 20)
print("Eq. 1, labels of the three rows: [ 1 -1  1]")
print("  KARMA:", KarmaClassifier(gamma=1, C=10, standardize=False).fit(seen, labels).predict(rows))
for kind in (MC1Classifier, MCBClassifier):
    model = kind(lam=1.0, mu=1e-3, standardize=False).fit(np.vstack([seen, rows]), np.append(labels, [NAN] * 3))
    print(f"  {kind.__name__}:", model.transduction_[-3:].astype(int))
