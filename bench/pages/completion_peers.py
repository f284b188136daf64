"""What `completion.py` is measured against: Algorithm 1 by eigendecomposition, and the authors' public code."""

import importlib
import sys
import tempfile
import types
from pathlib import Path

import numpy as np
import scipy.linalg as sla


def pd_kernel(graph):
    """The paper's PDLaplacian kernel L^+ + R_L 11^T over twice its largest diagonal entry."""
    L = np.diag(graph.sum(axis=0)) - graph.toarray()
    K = np.linalg.pinv(L)
    K += K.diagonal().max()
    return K / (2 * K.diagonal().max())


def root(K):
    values, vectors = sla.eigh(K)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


class Literal:
    """Algorithm 1: log W and W, diagonalised anew at every update; a prediction is x^T W x."""

    def __init__(self, problem):
        self._problem, n = problem, problem.n
        self._roots = [root(pd_kernel(graph)) for graph, _ in problem.sides]
        self._log_w = np.log(problem.d / (2 * n)) * np.eye(2 * n)
        self._fresh()

    def _x(self, trials):
        rows, cols = self._roots
        return np.hstack([rows[self._problem.i[trials]], cols[self._problem.j[trials]]])

    def _fresh(self):
        theta, V = sla.eigh(self._log_w)
        self._w = (V * np.exp(theta)) @ V.T

    def replay(self, updates):
        """Brings the state to where these trials have updated too; not timed."""
        X = self._x(updates)
        self._log_w += X.T * (self._problem.step * self._problem.y[updates]) @ X
        self._fresh()

    def predict(self, t):
        x = self._x(t)
        return x @ self._w @ x - 1

    def update(self, t):
        """What an update costs; the state stays."""
        x = self._x(t)
        theta, V = sla.eigh(self._log_w + self._problem.step * self._problem.y[t] * np.outer(x, x))
        return (V * np.exp(theta)) @ V.T


class Authors:
    """github.com/lisatse/mcsi, run as published on files written for it."""

    def __init__(self, problem, folder):
        for name in ("matplotlib", "matplotlib.pyplot", "networkx"):  # imported, and not used here
            sys.modules.setdefault(name, types.ModuleType(name))
        sys.path.insert(0, folder)
        published = importlib.import_module("mcsi")
        sys.path.remove(folder)
        n, data = problem.n, problem.data
        with tempfile.TemporaryDirectory() as made:
            at = Path(made, "99", str(n))
            at.mkdir(parents=True)
            np.save(at / "bi_clust0.npy", data.labels.astype(float))
            for name, (graph, _) in zip(("row", "col"), problem.sides, strict=True):
                np.save(at / f"laplacian_{name}0.npy", np.diag(graph.sum(axis=0)) - graph.toarray())
                np.save(at / f"{name}_list1.npy", np.array([problem.cuts[name == "col"]]))
            self._game = published.Winnow((n, n), 0, "99", data_source=made, R_bound=False, lr=problem.step)
        assert np.isclose(np.exp(self._game.logW[0, 0]) * 2 * n, problem.d)
        self._problem, self._game.ilist = problem, data.order
        self._pending = None

    def replay(self, updates):
        """Brings the state to where these trials have updated too, by rank-one terms as theirs; not timed."""
        game, problem = self._game, self._problem
        X = np.hstack([game.psi_rows[problem.i[updates]], game.psi_cols[problem.j[updates]]])
        game.logW = game.logW + X.T * (problem.step * problem.y[updates]) @ X
        game.W = game._exponentiate(game.logW)

    def predict(self, t):
        self._game._construct_X(self._problem.i[t], self._problem.j[t])
        return np.trace(np.matmul(self._game.W, self._game.X)) - 1.0

    def update(self, t):
        """The lines of its update; the state stays."""
        game = self._game
        return game._exponentiate(game.logW + game.lr * self._problem.y[t] * game.X)
