"""Six ways to hide entries of one complete table; what is kept is dark."""

import matplotlib.pyplot as plt
import numpy as np

from lacunar import datasets

table = np.random.default_rng(0).normal(size=(60, 12))
blocks = [range(4), range(4, 8), range(8, 12)]
hidden = {
    "hide_mcar": datasets.hide_mcar(table, 0.5, random_state=0),
    "hide_by_row": datasets.hide_by_row(table, np.linspace(0, 1, 60), random_state=0),
    "hide_mar": datasets.hide_mar(table, 0.5, random_state=0),
    "hide_mnar": datasets.hide_mnar(table, 0.5, strength=4.0, random_state=0),
    "hide_blocks": datasets.hide_blocks(table, blocks, 0.5, random_state=0),
    "hide_panels": datasets.hide_panels(table, blocks, random_state=0),
}
axes = plt.subplots(1, 6, figsize=(7, 2.4), layout="constrained", sharey=True)[1]
for ax, (name, made) in zip(axes, hidden.items(), strict=True):
    ax.imshow(np.isnan(made.data), aspect="auto", cmap="bone", interpolation="nearest")
    ax.set_title(name, fontsize=10)
    ax.set(xticks=[], yticks=[])
