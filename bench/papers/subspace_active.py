"""MBEG inside its legal regime against active POPCA: `python bench/papers/subspace_active.py [--quick] [--picture FILE]`.

Rows are +-u, u of dimension k on coherent pairs of attributes, plus a tail, in the unit ball. m is 2 d^4 r log d / (d + r), the least that
Theorem 7 allows (alpha = eta d^2 = 1/2), and multiples. Excess is the lost second moment <P* - P, C>, mean over seeds (of
"sampled": over the draw of Algorithm 3, too); the bound is the theorem's, k sqrt(8 (d + r) log d / (r m)).
"""

import argparse

import numpy as np
from threadpoolctl import threadpool_limits

from lacunar.active import MBEG, ActivePOPCA

COLUMNS = ("bound", "MBEG sampled", "MBEG topk", "MBEG erm", "lazy erm", "uniform", "adaptive")


def family(d, k):
    """Eigenvalues and orthonormal rows (d, d): pairs (e_2j + e_2j+1) / sqrt 2 first, .8 of the trace on the first k."""
    basis = np.zeros((d, d))
    for j in range(d // 2):
        basis[j, 2 * j : 2 * j + 2] = 0.5**0.5
        basis[d // 2 + j, 2 * j : 2 * j + 2] = 0.5**0.5, -(0.5**0.5)
    return np.r_[np.full(k, 0.8 / k), np.full(d - k, 0.2 / (d - k))], basis


def oracle_of(strength, basis, seed):
    """x = +-a direction drawn with probability its eigenvalue: |x| = 1."""
    rng = np.random.default_rng(seed)
    law = np.cumsum(strength)
    law[-1] = 1

    def oracle(indices):
        return basis[np.searchsorted(law, rng.random(), side="right"), indices] * rng.choice([-1.0, 1.0])

    return oracle


def excess(components, strength, basis):
    k = len(components)
    return strength[:k].sum() - np.sum(strength * np.sum((basis @ components.T) ** 2, axis=1))


def expected_excess(W, k, strength, basis):
    """Of output="sampled", over the draw of Algorithm 3: the excess of the averaged W itself."""
    return strength[:k].sum() - np.sum(strength * np.einsum("ij,jk,ik->i", basis, W, basis))


def cell(d, k, r, times, seeds):
    """Mean excess of every method, in the order of COLUMNS, and m."""
    strength, basis = family(d, k)
    m = int(np.ceil(times * 2 * d**4 * r * np.log(d) / (d + r)))
    rows = []
    for seed in range(seeds):
        literal = MBEG(d, k, r, eta="theory", alpha="theory", lazy=False, horizon=m, random_state=seed)
        models = [literal.run(oracle_of(strength, basis, seed), m)] + [
            model.run(oracle_of(strength, basis, seed), m)
            for model in (
                MBEG(d, k, r, output="erm", random_state=seed),
                ActivePOPCA(d, k, r, strategy="uniform", center=False, random_state=seed),
                ActivePOPCA(d, k, r, center=False, random_state=seed),
            )
        ]
        found = [literal.set_params(output=o).result().components_ for o in ("topk", "erm")]
        found += [model.result().components_ for model in models[1:]]
        rows.append([excess(components, strength, basis) for components in found])
        rows[-1].insert(0, expected_excess(literal.result().weights_, k, strength, basis))
    bound = k * np.sqrt(8 * (d + r) * np.log(d) / (r * m))
    return m, np.r_[bound, np.mean(rows, axis=0)]


def picture(results, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4.5))
    places = np.arange(len(results))
    for j, name in enumerate(COLUMNS):
        axis.plot(places, [values[j] for _, values in results.values()], "o-" if j else "k--", label=name)
    axis.set_xticks(places, [f"d={d} k={k} r={r}\nm={m}" for (d, k, r, _), (m, _) in results.items()], fontsize=7)
    axis.set_yscale("log")
    axis.set_ylabel("excess")
    axis.set_title("MBEG where its theorem holds, and PCA of chosen attributes")
    axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two small cells, three seeds")
    parser.add_argument("--picture", default="subspace_active.png")
    options = parser.parse_args()
    cells = [(6, 1, 2, 1), (8, 1, 2, 1), (8, 2, 4, 1), (8, 1, 2, 4), (12, 1, 2, 1)]
    print("| d k r | m | " + " | ".join(COLUMNS) + " |\n" + "|---" * (len(COLUMNS) + 2) + "|")
    results = {}
    for one in cells[:2] if options.quick else cells:
        m, values = results[one] = cell(*one, 3 if options.quick else 8)
        print(f"| {one[0]} {one[1]} {one[2]} | {m} | " + " | ".join(f"{v:.2g}" for v in values) + " |", flush=True)
    picture(results, options.picture)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
