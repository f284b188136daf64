"""Matrix exponentiated gradient with side information, Algorithms 1 and 2 as printed (Herbster, Pasteris, Tse 2020).

`M` and `N` below are the kernels M^+ and N^+ of rows and columns. Every trial diagonalises log W anew.
"""

import numpy as np


def root(K):
    """The symmetric square root of a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(K)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def score(log_w, x):
    """tr(exp(log W) x x^T) - 1."""
    values, vectors = np.linalg.eigh(log_w)
    return np.exp(values) @ (vectors.T @ x) ** 2 - 1


def embedding(M, N, R_M, R_N):
    """Columns x of all rows and of all columns, (m + n, m) and (m + n, n)."""
    rows = np.vstack([root(M) / np.sqrt(2 * R_M), np.zeros((len(N), len(M)))])
    cols = np.vstack([np.zeros((len(M), len(N))), root(N) / np.sqrt(2 * R_N)])
    return rows, cols


def transductive(M, N, trials, D, gamma, step):
    """Algorithm 1: y_bar and whether there was an update, of every (i, j, y). step: one number, or one a trial."""
    m, n = len(M), len(N)
    rows, cols = embedding(M, N, M.diagonal().max(), N.diagonal().max())
    log_w = np.log(D / (m + n)) * np.eye(m + n)
    steps = np.broadcast_to(step, len(trials))
    y_bar, updated = np.zeros(len(trials)), np.zeros(len(trials), bool)
    for t, (i, j, y) in enumerate(trials):
        x = rows[:, i] + cols[:, j]
        y_bar[t] = score(log_w, x)
        if y * y_bar[t] <= gamma:
            updated[t] = True
            log_w = log_w + steps[t] * y * np.outer(x, x)
    return y_bar, updated


def inductive(M, N, trials, D, gamma, step, radii=None, strict=False):
    """Algorithm 2: the same from the kernels among the rows and columns of updates so far and the current pair.

    radii: R of both kernel functions; None: of the ids that come. strict: no update at the margin, as printed.
    """
    R_M, R_N = (M.diagonal().max(), N.diagonal().max()) if radii is None else radii
    steps = np.broadcast_to(step, len(trials))
    y_bar, updated = np.zeros(len(trials)), np.zeros(len(trials), bool)
    seen_rows, seen_cols, updates = [], [], []
    for t, (i, j, y) in enumerate(trials):
        at_rows = seen_rows + [i] * (i not in seen_rows)
        at_cols = seen_cols + [j] * (j not in seen_cols)
        rows, cols = embedding(M[np.ix_(at_rows, at_rows)], N[np.ix_(at_cols, at_cols)], R_M, R_N)
        log_w = np.log(D / (len(M) + len(N))) * np.eye(len(rows))
        for s in updates:
            x = rows[:, at_rows.index(trials[s][0])] + cols[:, at_cols.index(trials[s][1])]
            log_w += steps[s] * trials[s][2] * np.outer(x, x)
        y_bar[t] = score(log_w, rows[:, at_rows.index(i)] + cols[:, at_cols.index(j)])
        if y * y_bar[t] < gamma or (y * y_bar[t] == gamma and not strict):
            updated[t] = True
            updates.append(t)
            seen_rows, seen_cols = at_rows, at_cols
    return y_bar, updated


def printed(M, N, trials, D, gamma, step, draws=None):
    """Algorithm 1 to the letter: y_bar, predictions and updates; draws (T,) of Y_t in (-gamma, gamma), None for conservative updates.

    Ties: sign(0) = +1. Below the margin, not at it, there is an update; conservative ones are at y y_bar <= 0, which every mistake
    is, as Lemma 25 needs.
    """
    rows, cols = embedding(M, N, M.diagonal().max(), N.diagonal().max())
    log_w = np.log(D / (len(M) + len(N))) * np.eye(len(M) + len(N))
    y_bar, predicted, updated = np.zeros(len(trials)), np.zeros(len(trials)), np.zeros(len(trials), bool)
    for t, (i, j, y) in enumerate(trials):
        x = rows[:, i] + cols[:, j]
        y_bar[t] = score(log_w, x)
        predicted[t] = 1 if y_bar[t] >= (0 if draws is None else draws[t]) else -1
        updated[t] = y * y_bar[t] <= 0 if draws is None else y * y_bar[t] < gamma
        if updated[t]:
            log_w = log_w + step * y * np.outer(x, x)
    return y_bar, predicted, updated


def star_of_cliques(classes):
    """Adjacency of section 4.1: a clique for every class, one vertex of each joined to one of the first."""
    A = (classes[:, None] == classes).astype(float)
    np.fill_diagonal(A, 0)
    first = [np.flatnonzero(classes == k)[0] for k in np.unique(classes)]
    for v in first[1:]:
        A[first[0], v] = A[v, first[0]] = 1
    return A


def pd_laplacian(A):
    """L + (1/m)(1/m)^T / R_L of section 2."""
    L = np.diag(A.sum(axis=0)) - A
    return L + 1 / (len(A) ** 2 * np.linalg.pinv(L).diagonal().max())
