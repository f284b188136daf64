"""POPCA beside what else finds a subspace in rows with holes: `python bench/papers/subspace_peers.py [--quick] [--picture FILE]`.

d = 50 columns, k = 3 equal spikes in random directions, signal variance equal to noise variance (snr 1) or a fifth of it, every entry seen
with probability p. Normalised excess (0 perfect, 1 a random subspace), means over seeds, and seconds of CPU for a fit, medians.

mean-impute       PCA of rows whose holes are filled with column means
iterative PCA     fill, take k components, fill again with their reconstruction, until nothing moves (Kiers 1997); "reg": with singular
                  values shrunk by the noise (Josse and Husson 2012)
soft-impute       singular values less lambda, lambda the best of a path at a tenth of the entries, hidden (Mazumder et al. 2010)
POPCA, refine=0   the closed form;  POPCA: the default, with at most ten steps of variational EM
full data         PCA of the rows without holes
"""

import argparse
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from lacunar.lowrank import POPCA

D, K = 50, 3
CELLS = [
    (1, 100, 0.1),
    (1, 1000, 0.05),
    (1, 100, 0.2),
    (1, 1000, 0.1),
    (1, 100, 0.5),
    (1, 10_000, 0.05),
    (1, 1000, 0.2),
]
CELLS += [(1, 1000, 0.5), (0.2, 1000, 0.1), (0.2, 1000, 0.2), (0.2, 1000, 0.5)]


def rows_of(snr, n, p, seed):
    """Rows with holes, the same rows whole, and the subspace (D, K)."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(D, K)))[0]
    X = np.sqrt(snr * D / K) * rng.normal(size=(n, K)) @ basis.T + rng.normal(size=(n, D))
    return np.where(rng.random((n, D)) < p, X, np.nan), X, basis


def excess(components, basis):
    return (1 - np.sum((components @ basis) ** 2) / K) / (1 - K / D)


def top(table, k=K):
    return np.linalg.svd(table, full_matrices=False)[2][:k]


def filled(X):
    """Rows about their columns' means, with 0 for holes, and where there were none."""
    seen = ~np.isnan(X)
    mean = np.nansum(X, axis=0) / np.maximum(seen.sum(axis=0), 1)
    return np.where(seen, X - mean, 0.0), seen


def mean_impute(X):
    return top(filled(X)[0])


def iterative_pca(X, shrink=False, steps=200, tol=1e-5):
    table, seen = filled(X)
    known = table.copy()
    for _ in range(steps):
        mean = table.mean(axis=0)
        left, size, right = np.linalg.svd(table - mean, full_matrices=False)
        noise = np.mean(size[K:] ** 2) if shrink else 0.0
        kept = (size[:K] ** 2 - noise) / size[:K]
        new = np.where(seen, known, (left[:, :K] * kept) @ right[:K] + mean)
        moved, table = np.linalg.norm(new - table) / np.linalg.norm(new), new
        if moved < tol:
            break
    return top(table - table.mean(axis=0))


def soft_impute(X, steps=60, path=8):
    table, seen = filled(X)
    rng = np.random.default_rng(0)
    hidden = seen & (rng.random(X.shape) < 0.1)
    largest = np.linalg.norm(np.where(hidden, 0, table), 2)
    lambdas = largest * np.geomspace(0.7, 0.03, path)

    def solved(known, mask, values):
        Z = np.zeros_like(known)
        for lam in values:
            for _ in range(steps):
                left, size, right = np.linalg.svd(np.where(mask, known, Z), full_matrices=False)
                new = (left * np.maximum(size - lam, 0)) @ right
                done, Z = np.linalg.norm(new - Z) < 1e-4 * max(np.linalg.norm(Z), 1e-12), new
                if done:
                    break
            yield Z

    errors = [np.sum((Z - table)[hidden] ** 2) for Z in solved(table, seen & ~hidden, lambdas)]
    for Z in solved(table, seen, lambdas[: int(np.argmin(errors)) + 1]):
        last = Z
    return top(last)


METHODS = {
    "mean-impute": lambda X, whole: mean_impute(X),
    "iterative PCA": lambda X, whole: iterative_pca(X),
    "iterative PCA, reg": lambda X, whole: iterative_pca(X, shrink=True),
    "soft-impute": lambda X, whole: soft_impute(X),
    "POPCA, refine=0": lambda X, whole: POPCA(K, refine=0, unseen="drop").fit(X).components_,
    "POPCA": lambda X, whole: POPCA(K, unseen="drop").fit(X).components_,
    "full data": lambda X, whole: top(whole - whole.mean(axis=0)),
}


def cell(snr, n, p, seeds):
    """Mean excess, its standard error and median CPU seconds of every method."""
    lost, seconds = ({name: [] for name in METHODS} for _ in range(2))
    for seed in range(seeds):
        X, whole, basis = rows_of(snr, n, p, seed)
        for name, method in METHODS.items():
            start = time.process_time()
            found = method(X, whole)
            seconds[name].append(time.process_time() - start)
            lost[name].append(excess(found, basis))
    return {
        name: (np.mean(lost[name]), np.std(lost[name]) / np.sqrt(seeds), np.median(seconds[name])) for name in METHODS
    }


def picture(results, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), sharey=True)
    for axis, snr in zip(axes, (1, 0.2), strict=True):
        cells = sorted((n * p * p, n, p) for s, n, p in results if s == snr)
        for name in METHODS:
            values = [results[snr, n, p][name][0] for _, n, p in cells]
            style = {"POPCA": "k-", "full data": "k:"}.get(name, "--")
            axis.loglog([x for x, *_ in cells], values, style, marker=".", label=name)
        axis.set_xlabel("n p$^2$, rows that show a pair")
        axis.set_title(f"signal variance {snr:g} of the noise's")
    axes[0].set_ylabel("normalised excess")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two seeds, at most 1,000 rows")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--picture", default="subspace_peers.png")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # that columns are unseen, or pairs too few, is the subject here
    cells = [c for c in CELLS if c[1] <= 1000] if options.quick else CELLS
    print("| snr | n | p | n p^2 | " + " | ".join(METHODS) + " |\n" + "|---" * (len(METHODS) + 4) + "|")
    results = {}
    for snr, n, p in cells:
        found = results[snr, n, p] = cell(snr, n, p, 2 if options.quick else options.seeds)
        best = min(value for name, (value, *_) in found.items() if name != "full data")
        shown = [f"{'**' if v == best else ''}{v:.3g}{'**' if v == best else ''}" for v, *_ in found.values()]
        print(f"| {snr:g} | {n} | {p} | {n * p * p:.3g} | " + " | ".join(shown) + " |", flush=True)
    print(
        "\nCPU seconds a fit at (1000, .2): " + ", ".join(f"{k} {v[2]:.3g}" for k, v in results[1, 1000, 0.2].items())
    )
    picture(results, options.picture)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
