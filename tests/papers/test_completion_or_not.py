"""Completion is neither sufficient nor necessary: Figure 1 and Eq. 1 of Hazan, Livni and Mansour, docs/measured/papers-baselines.md."""

import numpy as np
import pytest

from lacunar import KarmaClassifier
from lacunar.papers.karma import GeomClassifier, MatrixCompletionClassifier

NAN = np.nan
DIRECT = [KarmaClassifier(gamma=1, C=10, standardize=False), GeomClassifier(C=10, standardize=False)]
COMPLETING = [MatrixCompletionClassifier(word, lam=1.0, mu=1e-3, standardize=False) for word in ("column", "bias")]

EQ1 = np.array([[1, NAN, 1, NAN], [NAN, -1, NAN, -1], [1, -1, 1, -1], [1, NAN, 1, NAN]])
LABELS = np.array([1, -1, 1, NAN])


def figure1(n=40, seed=0):
    """Points left and above against right and below the origin, one of two coordinates hidden at random."""
    rng = np.random.default_rng(seed)
    label = np.where(np.arange(n) % 2 == 0, 1, -1)
    full = np.column_stack([-label, label]) * rng.uniform(0.5, 2.0, size=(n, 2))
    X = full.copy()
    X[np.arange(n), rng.integers(0, 2, n)] = np.nan
    return full, X, label


def completed_to(X, slope):
    """The completion of rank one on the line x2 = slope x1: observed coordinates stay."""
    first = np.where(np.isnan(X[:, 0]), X[:, 1] / slope, X[:, 0])
    return np.column_stack([first, slope * first])


def least_error(points, label):
    """Of any half-line on the line through the points: no linear classifier does better on them."""
    order = np.argsort(points[:, 0])
    ahead = np.concatenate([[0], np.cumsum(label[order])])  # sum of labels left of a threshold
    wrong = (len(label) - np.abs(2 * ahead - ahead[-1])) / 2
    return wrong.min() / len(label)


@pytest.mark.parametrize("seed", range(5))
def test_figure_1(seed):
    full, X, label = figure1(seed=seed)
    np.testing.assert_array_equal(np.sign(full @ [-1, 1]), label)  # separable
    bad, good = completed_to(X, 1.0), completed_to(X, -1.0)
    for points in (bad, good):
        assert np.linalg.matrix_rank(points) == 1
        np.testing.assert_array_equal(points[~np.isnan(X)], X[~np.isnan(X)])
    assert np.linalg.norm(bad, "nuc") == pytest.approx(np.linalg.norm(good, "nuc"))  # nothing tells them apart
    assert least_error(good, label) == 0
    assert least_error(bad, label) > 0.2  # not separable
    for model in DIRECT:
        assert model.fit(X, label).score(X, label) == 1
    for model in COMPLETING:  # labels are part of the matrix and pick the right line
        known = np.where(np.arange(40) < 20, label, np.nan)
        np.testing.assert_array_equal(model.fit(X, known).transduction_, label)


def test_equation_1_has_completions_of_least_rank_that_disagree():
    known = np.column_stack([EQ1, LABELS])
    columns = np.tile([1.0, -1.0, 1.0, -1.0], (4, 1))  # odd columns 1, even columns -1; then either label
    rows = np.array([[1.0], [-1.0], [1.0], [1.0]]) * np.ones(5)  # rows constant, but for the third
    rows[2] = [1, -1, 1, -1, 1]
    completions = [np.column_stack([columns, [1, -1, 1, label]]) for label in (1, -1)] + [rows]
    for Z in completions:
        np.testing.assert_array_equal(Z[~np.isnan(known)], known[~np.isnan(known)])
        assert np.linalg.matrix_rank(Z) == 2
    assert [Z[3, 4] for Z in completions] == [1, -1, 1]
    # Rank one is impossible: every row would be a multiple of the third, and the second shows -1 of its -1 and of its 1.
    np.testing.assert_array_equal(known[1, [1, 4]] / known[2, [1, 4]], [1, -1])


@pytest.mark.parametrize("copies", [1, 20])
def test_equation_1_is_easy_without_completion(copies):
    """Rows like the three given: direct methods label them all, completion mislabels one that repeats labelled rows."""
    X, y = np.repeat(EQ1[:3], copies, axis=0), np.repeat(LABELS[:3], copies)
    for model in DIRECT:
        np.testing.assert_array_equal(model.fit(X, y.astype(int)).predict(EQ1[:3]), LABELS[:3])
    for model in COMPLETING:
        found = model.fit(np.vstack([X, EQ1[:3]]), np.append(y, [NAN] * 3)).transduction_
        np.testing.assert_array_equal(found[:-3], y)  # labelled rows keep their labels
        np.testing.assert_array_equal(found[-3:], [1, 1, 1])  # their unlabelled copies: the second is wrong
