"""Appendix A: biclustered 9 x 9, labels flipped at .1, graphs of decreasing worth: `python bench/papers/completion_synthetic.py`.

All n^2 entries in random order; the error is that of sign(y_bar) against the noisy label, so that .10 is the least one can hope for. "pool" is
`OnlineMatrixClassifier`; "alone" is `MatrixExponentiatedGradient`. Their defaults know nothing of k, U or T; "as printed" and "paper's tuning" are
told all of it (PDLaplacian, gamma, D and the step of Theorems 1 and 3). The first predicts at random, the other by the sign and with steps of at most 1.
Means over seeds; every learner sees the same matrices, graphs and orders.
"""

import argparse
import time

import numpy as np

from lacunar.completion import Graph, Mix, OnlineMatrixClassifier
from lacunar.papers.completion import MatrixExponentiatedGradient, PrintedMEG, make_biclustered, quasi_dimension_bound

BETAS = (0.0, 0.03125, 0.125, 0.5)
BARS = {0.0: 0.13, 0.03125: 0.19, 0.125: 0.25, 0.5: 0.33}


def learners(data):
    graphs = data.row_graph, data.column_graph
    given = {"rows": Graph(graphs[0], "pinv"), "cols": Graph(graphs[1], "pinv")}
    mixed = {"rows": Mix(given["rows"]), "cols": Mix(given["cols"])}
    pd = {"rows": Graph(graphs[0], kind="pd", normalize=False), "cols": Graph(graphs[1], kind="pd", normalize=False)}
    classes = data.row_clusters, data.column_clusters
    d = quasi_dimension_bound(pd["rows"].begin(), pd["cols"].begin(), *classes)
    step = min(1.0, np.sqrt(d * np.log(sum(data.labels.shape)) / (2 * data.labels.size)))
    gamma = 1 / np.sqrt(min(len(np.unique(part)) for part in classes))
    alone = MatrixExponentiatedGradient
    return {
        "pool": OnlineMatrixClassifier(Graph(graphs[0]), Graph(graphs[1])),
        "pool, no side information": OnlineMatrixClassifier(),
        "as printed": PrintedMEG(**pd, T=data.labels.size, blocks=classes, random_state=0),
        "alone": alone(**given),
        "alone, Mix": alone(**mixed),
        "alone, no side information": alone(),
        "alone, step_scale=.5": alone(**given, step_scale=0.5),
        "alone, step_scale=2": alone(**given, step_scale=2.0),
        "paper's tuning, sign": alone(**pd, gamma=gamma, d=d, step=step),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--protocol", default="paper", choices=["paper", "code"])
    parser.add_argument("--only", nargs="*", default=[""], help="learners whose names contain one of these")
    options = parser.parse_args()
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
            for name, learner in chosen_learners.items():
                start = time.process_time()
                score = learner.score_stream(i, j, y)
                loss = np.nan if score.loss is None else score.loss
                found.setdefault(name, []).append((score.error, loss, time.process_time() - start))
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
