"""Folds over entries, cold rows and cold columns: they cover, they balance, they do not leak."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import cross_val_score

from lacunar.model_selection import ColdColumnKFold, ColdRowKFold, EntryKFold

pl = pytest.importorskip("polars")  # it has no free-threaded wheel

KINDS = {EntryKFold: lambda r, c: (r, c), ColdRowKFold: lambda r, c: r, ColdColumnKFold: lambda r, c: c}


def pairs(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(30, size=n), rng.integers(20, size=n)])  # with repeated cells


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shuffle", [True, False])
def test_folds_cover_and_keep_keys_together(kind, shuffle):
    X = pairs()
    key = [KINDS[kind](*pair) for pair in X.tolist()]
    seen = []
    for train, test in kind(4, shuffle=shuffle, random_state=0).split(X):
        assert not {key[k] for k in train} & {key[k] for k in test}
        assert (np.diff(train) > 0).all()  # the order of the stream
        assert len(test) > len(X) / 8
        seen += test.tolist()
    assert sorted(seen) == list(range(len(X)))


@pytest.mark.parametrize("kind", KINDS)
def test_any_ids_and_containers_give_the_same_folds(kind):
    X = pairs()
    names = [(f"row {r}", ("col", c)) for r, c in X.tolist()]
    objects = np.empty((len(X), 2), dtype=object)
    objects[:, 0], objects[:, 1] = [a for a, _ in names], [b for _, b in names]
    frame = pd.DataFrame({"who": [a for a, _ in names], "what": X[:, 1]})
    forms = [X, X.tolist(), names, objects, frame, pl.from_pandas(frame), (X[:, 0], [b for _, b in names])]
    folds = [[test.tolist() for _, test in kind(3, random_state=1).split(form)] for form in forms]
    assert all(each == folds[0] for each in folds)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_repeatable(kind):
    X = pairs()

    def folds(state):
        return [test.tolist() for _, test in kind(3, random_state=state).split(X)]

    assert folds(0) == folds(0)
    assert folds(0) != folds(1)
    assert kind(3, random_state=0).get_n_splits() == 3
    assert "n_splits=3" in repr(kind(3))


def test_works_in_cross_val_score():
    X = pairs()
    y = X[:, 0] % 2
    scores = cross_val_score(clone(DummyClassifier()), X, y, cv=ColdRowKFold(3, random_state=0))
    assert scores.shape == (3,)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((3, 3)), "pairs"),
        (np.zeros(3), "pairs"),
        ([(1, 2), (3,)], "position 1"),
        (["ab", "cd"], "pairs"),
        (7, "pairs"),
        ([(1, np.nan), (1, 2)], r"cols\[0\]"),
        ([(1, 2), (None, 2)], r"rows\[1\]"),
        ([([1], 2), (1, 2)], "hashable"),
        (([1, 2], [1]), "one length"),
        ((np.zeros((2, 2)), [1, 2]), "one-dimensional"),
        (("ab", [1, 2]), "sequence of ids"),
        (pd.DataFrame({"a": [1], "b": [1], "c": [1]}), "two columns"),
        ([(1, 2), (1, 2)], "n_splits"),
        ([], "n_splits"),
    ],
)
def test_what_are_no_pairs_is_refused(X, message):
    with pytest.raises((ValueError, TypeError), match=message):
        list(EntryKFold(2).split(X))


@pytest.mark.parametrize("n_splits", [1, 0, 2.5, 40])
def test_number_of_folds(n_splits):
    with pytest.raises(ValueError, match="n_splits"):
        list(ColdRowKFold(n_splits).split(pairs()))
