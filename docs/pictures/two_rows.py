"""Two rows with missing entries, and the columns that both show."""

import matplotlib.pyplot as plt
import numpy as np

rows = np.array(
    [[1.2, np.nan, -0.4, 0.8, np.nan, 0.3, np.nan, 1.1], [0.9, 0.2, np.nan, 1.0, np.nan, 0.5, -0.7, np.nan]]
)
both = ~np.isnan(rows).any(axis=0)
ax = plt.subplots(figsize=(6.4, 2.1), layout="constrained")[1]
for i, name in enumerate(["row x", "row x'"]):
    ax.text(-0.2, -i + 0.35, name, ha="right", va="center")
    for j, value in enumerate(rows[i]):
        seen = not np.isnan(value)
        colour = "#0b7a75" if both[j] else "#cbd5d4" if seen else "white"
        ax.add_patch(plt.Rectangle((j, -i), 0.9, 0.7, fc=colour, ec="#9aa5b1", ls="-" if seen else ":"))
        ax.text(
            j + 0.45,
            -i + 0.35,
            f"{value:.1f}" if seen else "?",
            ha="center",
            va="center",
            color="white" if both[j] else "#52606d",
        )
common = np.prod(rows[:, both], axis=0).sum()
ax.text(4, -1.5, f"both show the n = {both.sum()} green columns; their products sum to s = {common:.2f}", ha="center")
ax.set(xlim=(-1.3, 8.1), ylim=(-1.8, 0.9))
ax.axis("off")
