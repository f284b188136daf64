"""
Which attributes to look at
===========================

Only two attributes of a row can be afforded. `ActivePOPCA` draws them uniformly, as in the paper, or by what it has learned so
far; the picture shows how many rows each needs when most attributes say nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

from lacunar.active import ActivePOPCA

rng = np.random.default_rng(0)
scale = np.where(np.arange(32) < 4, 3.0, 0.3)  # four attributes carry nearly everything
basis = np.linalg.qr(scale[:, None] * rng.normal(size=(32, 2)))[0]
covariance = basis @ np.diag([9.0, 4.0]) @ basis.T + 0.05 * np.eye(32)
root = np.linalg.cholesky(covariance)


def oracle(indices):
    """One fresh row, and what was asked of it."""
    return (root @ rng.normal(size=32))[indices]


rows = [250, 500, 1000, 2000, 4000]
ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")[1]
best = np.sort(np.linalg.eigvalsh(covariance))[-2:].sum()
for strategy, colour in ("uniform", "#d55e00"), ("adaptive", "#0b7a75"):
    sampler, missed = ActivePOPCA(32, 2, 2, strategy=strategy, random_state=0), []
    for seen, total in zip([0, *rows], rows, strict=False):
        found = sampler.run(oracle, total - seen).result().components_
        missed.append(1 - np.trace(found @ covariance @ found.T) / best)
    print(f"{strategy:9s} variance missed after {rows[0]} and {rows[-1]} rows: {missed[0]:.3f}, {missed[-1]:.4f}")
    ax.loglog(rows, missed, "-o" if strategy == "adaptive" else "--s", color=colour, lw=2, label=strategy)
ax.set(xlabel="rows, two attributes each", ylabel="share of the variance missed")
ax.set_xticks(rows, [str(m) for m in rows])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, fontsize=11)
plt.show()
