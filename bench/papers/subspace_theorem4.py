"""The law (d/r)^2 k / eps^2 of Theorem 4 on its own family: `python bench/papers/subspace_theorem4.py [--quick] [--picture FILE]`.

k coins of bias alpha = 16 eps: coin j shows u_j = (e_j + e_j+k) / sqrt 2 or u_j+k = (e_j+k - e_j) / sqrt 2, times a random sign. Finds the rows
uniform active POPCA with the right inclusion probabilities needs until the mean excess over seeds is at most eps, by steps of 1.15,
and prints m eps^2 r^2 / (d^2 k): constant, where the law holds.
"""

import argparse

import numpy as np
from threadpoolctl import threadpool_limits

from lacunar.active import ActivePOPCA


class Coins:
    """One distribution of the family and its rows."""

    def __init__(self, d, k, eps, seed):
        self.rng = np.random.default_rng(seed)
        self.k, self.alpha = k, 16 * eps
        self.heads = (1 + self.alpha * self.rng.choice([-1, 1], size=k)) / 2
        self.basis = np.zeros((2 * k, d))
        for j in range(k):
            self.basis[j, [j, j + k]] = 0.5**0.5
            self.basis[j + k, [j, j + k]] = -(0.5**0.5), 0.5**0.5

    def __call__(self, indices):
        coin, sign = self.rng.integers(self.k), self.rng.choice([-1.0, 1.0])
        return sign * self.basis[coin + self.k * (self.rng.random() >= self.heads[coin]), indices]

    def excess(self, components):
        strength = np.r_[self.heads, 1 - self.heads] / self.k
        best = np.sum(np.maximum(self.heads, 1 - self.heads)) / self.k
        return best - np.sum(strength * np.sum((self.basis @ components.T) ** 2, axis=1))


def rows_needed(d, k, r, eps, seeds):
    oracles = [Coins(d, k, eps, 100 + s) for s in range(seeds)]
    models = [
        ActivePOPCA(d, k, r, strategy="uniform", weights="design", center=False, random_state=s) for s in range(seeds)
    ]
    m = max(int(0.002 * (d / r) ** 2 * k / eps**2), 8)
    while True:
        for model, oracle in zip(models, oracles, strict=True):
            model.run(oracle, m - getattr(model, "n_told_", 0))
        found = [o.excess(model.result().components_) for model, o in zip(models, oracles, strict=True)]
        if np.mean(found) <= eps:
            return m
        m = int(np.ceil(1.15 * m))


def picture(rows, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 4.5))
    for k in sorted({row[1] for row in rows}):
        mine = [(row[0] / row[2]) ** 2 * k / row[3] ** 2 for row in rows if row[1] == k]
        axis.loglog(mine, [row[4] for row in rows if row[1] == k], "o", label=f"k = {k}")
    law = np.array(axis.get_xlim())
    axis.loglog(law, 0.014 * law, "k--", label=".014 (d/r)² k / eps²")
    axis.set_xlabel("(d/r)² k / eps²")
    axis.set_ylabel("rows needed")
    axis.set_title("Theorem 4's family")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three cells")
    parser.add_argument("--picture", default="subspace_theorem4.png")
    options = parser.parse_args()
    cells = [(8, k, r, eps) for k in (1, 2) for eps in (0.02, 0.01) for r in (2, 4, 8)] + [
        (16, 1, 2, 0.01),
        (16, 1, 4, 0.01),
    ]
    print("| d | k | r | eps | rows | rows eps² r² / (d² k) |\n|---|---|---|---|---|---|")
    rows = []
    for d, k, r, eps in cells[:3] if options.quick else cells:
        m = rows_needed(d, k, r, eps, 64)
        rows.append((d, k, r, eps, m))
        print(f"| {d} | {k} | {r} | {eps} | {m} | {m * eps**2 * r**2 / (d**2 * k):.4f} |", flush=True)
    picture(rows, options.picture)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
