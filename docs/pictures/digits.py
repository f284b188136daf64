"""Six of the digits that README's first command predicts: quadrants whose camera is off are hatched."""

import matplotlib.pyplot as plt
import numpy as np

from lacunar.datasets import load_digit_quadrants

X, y, _ = load_digit_quadrants()
axes = plt.subplots(1, 6, figsize=(7, 1.5), layout="constrained")[1]
for ax, row, digit in zip(axes, X[10:], y[10:], strict=False):
    ax.set_facecolor("#f3efe6")
    ax.fill_between([-0.5, 7.5], -0.5, 7.5, hatch="///", fc="#f3efe6", ec="#cbbf9f", lw=0)
    ax.imshow(np.ma.masked_invalid(row.reshape(8, 8)), cmap="gray_r", vmin=0, vmax=16, zorder=2)
    ax.set_title(f"a {digit}", fontsize=11)
    ax.set(xticks=[], yticks=[])
