"""Appendix A: biclustered 9 x 9, labels flipped at .1, graphs of decreasing worth: `python bench/papers/completion_synthetic.py`.

All n^2 entries in random order; the error is that of sign(y_bar) against the noisy label, so that .10 is the least one can hope for. "pool" is
the classifier by default; of the others all but options='paper' are its `experts=None`. The defaults know nothing of k, U or T; "paper" is
told all of it (PDLaplacian, gamma, D and the step of Theorems 1 and 3) and predicts at random as printed, "paper, sign" without the draw.
Means over seeds; every learner sees the same matrices, graphs and orders.
"""

import argparse
import time
import warnings

import numpy as np

from lacunar.completion import Graph, Mix, OnlineMatrixClassifier
from lacunar.papers.completion import make_biclustered

BETAS = (0.0, 0.03125, 0.125, 0.5)
BARS = {0.0: 0.13, 0.03125: 0.19, 0.125: 0.25, 0.5: 0.33}


def learners(data):
    graphs = data.row_graph, data.column_graph
    given = {"rows": Graph(graphs[0], "pinv"), "cols": Graph(graphs[1], "pinv")}
    mixed = {"rows": Mix(given["rows"]), "cols": Mix(given["cols"])}
    pd = {"rows": Graph(graphs[0], kind="pd", normalize=False), "cols": Graph(graphs[1], kind="pd", normalize=False)}
    paper = {
        **pd, "gamma": "theory", "d": "theory", "step": "theory", "horizon": data.labels.size,
        "blocks": (data.row_clusters, data.column_clusters),
    }  # fmt: skip
    pool = {"experts": "pool"}
    return {
        "pool": pool | {"rows": Graph(graphs[0]), "cols": Graph(graphs[1])},
        "pool, no side information": pool,
        "options='paper'": paper | {"options": "paper", "random_state": 0},
        "defaults": given,
        "defaults, Mix": mixed,
        "experts='auto'": given | {"experts": "auto"},
        "no side information": {},
        "step_scale=.5": given | {"step_scale": 0.5},
        "step_scale=2": given | {"step_scale": 2.0},
        "paper, sign": paper,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--protocol", default="paper", choices=["paper", "code"])
    parser.add_argument("--only", nargs="*", default=[""], help="learners whose names contain one of these")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the theory's step is above 1 at small n, and says so
    for beta in BETAS:
        found = {}
        for seed in range(options.seeds):
            data = make_biclustered(
                (options.n, options.n), graph_noise=beta, protocol=options.protocol, random_state=seed
            )
            i, j, y = data.order // options.n, data.order % options.n, data.labels.ravel()[data.order]
            chosen_learners = {
                name: each for name, each in learners(data).items() if any(word in name for word in options.only)
            }
            for name, chosen in chosen_learners.items():
                start = time.process_time()
                score = OnlineMatrixClassifier(**{"experts": None, **chosen}).score_stream(i, j, y)
                found.setdefault(name, []).append((score.error, score.loss, time.process_time() - start))
        bar = f", bar {BARS[beta]}" if options.n == 80 else ""
        print(f"beta {beta}, n {options.n}, {options.seeds} seeds, graphs of the {options.protocol}{bar}")
        for name, each in found.items():
            error, loss, seconds = np.mean(each, axis=0)
            spread = np.std([e for e, *_ in each], ddof=1) if len(each) > 1 else 0.0
            print(
                f"{name:>22s}: error {error:.4f} (sd {spread:.4f}), log loss {loss:.4f}, {seconds:.2f} s CPU",
                flush=True,
            )


if __name__ == "__main__":
    main()
