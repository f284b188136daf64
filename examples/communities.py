"""
Who belongs together?
=====================

Communities of a graph, asked for pair by pair (section 4.2 of Herbster, Pasteris and Tse). Every answer is predicted before it is
seen; told the network of friends, the learner makes a quarter of the mistakes.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from lacunar.completion import Graph, Identity, Mix, predictiveness
from lacunar.papers.completion import MatrixExponentiatedGradient
from lacunar.plotting import RegretDisplay


def friends(sizes=(15, 15, 15), near=0.4, far=0.05, seed=0):
    """A network of communities: adjacency (n, n) and the community of everybody; friends are mostly of one's own."""
    rng = np.random.default_rng(seed)
    community = np.repeat(np.arange(len(sizes)), sizes)
    likely = np.where(community[:, None] == community, near, far)
    edges = np.triu(rng.random(likely.shape) < likely, 1)
    return (edges | edges.T).astype(float), community


def main():
    warnings.simplefilter("ignore", UserWarning)  # of a network in pieces
    try:
        import networkx as nx

        graph = nx.karate_club_graph()
        community = np.array([graph.nodes[v]["club"] == "Officer" for v in graph])
        adjacency = nx.to_scipy_sparse_array(graph)
    except ImportError:
        adjacency, community = friends()
    i, j = np.random.default_rng(1).integers(0, len(community), (2, 800))
    together = community[i] == community[j]
    print(f"{len(community)} people, {together.mean():.0%} of the pairs of one community")
    known = {
        "nothing": Identity(len(community)),
        "the network, L^+": Mix(Graph(adjacency, kind="pinv")),
        "the network, diffusion": Mix(Graph(adjacency, "spectral")),
    }
    wrong = {}
    for name, side in known.items():
        model = MatrixExponentiatedGradient(side, side)
        score = model.score_stream(i, j, together)  # every pair is predicted, then learned
        wrong[name] = np.diff(score.running_mistakes, prepend=0)
        found = predictiveness(side, i[:200], j[:200], together[:200])
        print(f"{name:24s} {score.error:.1%} mistakes; after 200 pairs its correlation was {found.correlation:.2f}")
    order = ["the network, diffusion", "the network, L^+", "nothing"]
    display = RegretDisplay({name: wrong[name] for name in order})
    display.plot(plt.subplots(figsize=(5.6, 3.8), layout="constrained")[1]).ax_.set(ylim=(0, 0.5), xlabel="pairs seen")
    plt.show()


if __name__ == "__main__":
    main()
