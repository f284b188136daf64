"""Votes of people on films, two kinds of each: what is known, and what the blocks say of the next vote."""

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(3)
people, films = np.arange(8) % 2, np.arange(10) % 2
order = np.argsort(people, kind="stable"), np.argsort(films, kind="stable")
votes = np.where(people[:, None] == films, 1.0, -1.0)[np.ix_(*order)]
seen = rng.random(votes.shape) < 0.55
seen[1, 2] = False
ax = plt.subplots(figsize=(5, 3.4), layout="constrained")[1]
for i, j in np.ndindex(votes.shape):
    colour = "white" if not seen[i, j] else "#0b7a75" if votes[i, j] > 0 else "#e8b08a"
    ax.add_patch(plt.Rectangle((j, -i), 0.92, 0.92, fc=colour, ec="#9aa5b1", lw=0.8))
ax.text(2.46, -0.54, "?", ha="center", va="center", fontsize=15, weight="bold")
ax.text(5, 1.15, "films of two genres", ha="center")
ax.text(-0.25, -3, "people of two tastes", ha="center", va="center", rotation=90)
ax.text(5, -7.7, "green: liked   orange: disliked   white: not known", ha="center", fontsize=10)
ax.set(xlim=(-0.6, 10.2), ylim=(-8, 1.7), aspect="equal")
ax.axis("off")
