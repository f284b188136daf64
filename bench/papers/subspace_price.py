"""The price of partial information in d: `python bench/papers/subspace_price.py [--quick] [--picture FILE]`.

Gaussian rows of a two-dimensional subspace (variances .6, .4), r = 2: coherent, where the subspace lives on four attributes, and incoherent,
where it is a random one. Rows until the excess is .04 of the trace (mean over seeds), by steps of 1.2, for uniform and adaptive active
POPCA; the last column is the slope of log rows in log d.
"""

import argparse

import numpy as np
from threadpoolctl import threadpool_limits

from lacunar.active import ActivePOPCA

STRENGTH = np.array([0.6, 0.4])


def basis_of(kind, d):
    basis, live = np.zeros((2, d)), 4 if kind == "coherent" else d
    basis[:, :live] = np.linalg.qr(np.random.default_rng(d).normal(size=(live, 2)))[0].T
    return basis


def oracle_of(basis, seed):
    rng = np.random.default_rng(seed)
    loaded = basis * np.sqrt(STRENGTH)[:, None]
    return lambda indices: rng.normal(size=2) @ loaded[:, indices]


def excess(components, basis):
    return 1 - np.sum(STRENGTH * np.sum((components @ basis.T) ** 2, axis=0))


def rows_needed(kind, strategy, d, seeds):
    basis = basis_of(kind, d)
    models = [ActivePOPCA(d, 2, 2, strategy=strategy, center=False, random_state=s) for s in range(seeds)]
    oracles = [oracle_of(basis, 500 + s) for s in range(seeds)]
    m = 4 * d
    while True:
        for model, oracle in zip(models, oracles, strict=True):
            model.run(oracle, m - getattr(model, "n_told_", 0))
        if np.mean([excess(model.result().components_, basis) for model in models]) <= 0.04:
            return m
        m = int(1.2 * m)


def picture(sizes, results, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 4.5))
    for (kind, strategy), (rows, slope) in results.items():
        style = {"uniform": "--", "adaptive": "-"}[strategy]
        color = {"coherent": "C3", "incoherent": "C0"}[kind]
        axis.loglog(sizes, rows, f"o{style}", color=color, label=f"{kind}, {strategy}: d^{slope:.1f}")
    axis.set_xlabel("d")
    axis.set_ylabel("rows until the excess is .04")
    axis.set_title("Price of seeing two attributes a row")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="d up to 32, three seeds")
    parser.add_argument("--picture", default="subspace_price.png")
    options = parser.parse_args()
    sizes = [8, 16, 32] if options.quick else [8, 16, 32, 64, 128]
    print(
        "| subspace | draws | " + " | ".join(f"d={d}" for d in sizes) + " | slope |\n" + "|---" * (len(sizes) + 3) + "|"
    )
    results = {}
    for kind in ("coherent", "incoherent"):
        for strategy in ("uniform", "adaptive"):
            rows = [rows_needed(kind, strategy, d, 3 if options.quick else 8) for d in sizes]
            slope = np.polyfit(np.log(sizes), np.log(rows), 1)[0]
            results[kind, strategy] = rows, slope
            print(f"| {kind} | {strategy} | " + " | ".join(map(str, rows)) + f" | {slope:.2f} |", flush=True)
    picture(sizes, results, options.picture)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
