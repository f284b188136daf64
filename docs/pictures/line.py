"""What one column tells of the other: a point whose height is missing is somewhere on a line, most likely near the cloud."""

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=150)
y = 0.8 * x + 0.35 * rng.normal(size=150)
slope, spread = (x @ y) / (x @ x), 2 * np.std(y - x * (x @ y) / (x @ x))
ax = plt.subplots(figsize=(4.6, 3.4), layout="constrained")[1]
ax.scatter(x, y, s=14, color="#9aa5b1", label="complete rows")
ax.axvline(1.2, color="#d55e00", ls=":", lw=1.5, label="a row with one entry")
ax.errorbar(1.2, 1.2 * slope, spread, fmt="o", color="#0b7a75", capsize=4, lw=2, label="what its other entry may be")
ax.set(xlabel="column 1", ylabel="column 2")
ax.legend(frameon=False, fontsize=10, loc="upper left")
ax.set_ylim(top=3.2)
