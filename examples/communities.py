"""
Who belongs together?
=====================

Communities of a graph, asked for pair by pair: section 4.2 of Herbster, Pasteris and Tse.
"""

import warnings

import numpy as np

from lacunar.completion import Graph, Identity, Mix, OnlineMatrixClassifier, predictiveness


def friends(sizes=(15, 15, 15), near=0.4, far=0.05, seed=0):
    """A network of communities: adjacency (n, n) and the community of everybody; friends are mostly of one's own."""
    rng = np.random.default_rng(seed)
    community = np.repeat(np.arange(len(sizes)), sizes)
    likely = np.where(community[:, None] == community, near, far)
    edges = np.triu(rng.random(likely.shape) < likely, 1)
    return (edges | edges.T).astype(float), community


def pairs(community, count, seed=1):
    """Random pairs, and whether they are of one community: what a stream of questions would reveal."""
    i, j = np.random.default_rng(seed).integers(0, len(community), (2, count))
    return i, j, community[i] == community[j]


def main():
    warnings.simplefilter("ignore", UserWarning)  # of a network in pieces
    try:
        import networkx as nx

        graph = nx.karate_club_graph()
        community = np.array([graph.nodes[v]["club"] == "Officer" for v in graph])
        adjacency = nx.to_scipy_sparse_array(graph)
    except ImportError:
        adjacency, community = friends()
    i, j, together = pairs(community, 800)
    print(f"{len(community)} people, {together.mean():.0%} of the pairs of one community")
    known = {
        "nothing": Identity(len(community)),
        "the network, L^+": Mix(Graph(adjacency)),
        "the network, diffusion": Mix(Graph(adjacency, "spectral")),
    }
    for name, side in known.items():
        model = OnlineMatrixClassifier(side, side)
        score = model.score_stream(i, j, together)  # every pair is predicted, then learned
        found = predictiveness(side, i[:200], j[:200], together[:200])
        print(f"{name:24s} {score.error:.1%} mistakes; after 200 pairs its correlation was {found.correlation:.2f}")


if __name__ == "__main__":
    main()
