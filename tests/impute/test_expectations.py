"""What `Imputer` is made of: no entry takes part in what is said of it while it is hidden, and weights go to the model that gives entries back."""

import numpy as np
import pytest

from lacunar.impute.chained import Target
from lacunar.impute.expectations import Forest, Trial, fit_joint, hide_in_turn, weigh


def number(place):
    none = np.empty(0)
    return Target(place, "pmm", slice(place + 1, place + 2), none.astype(int), none.astype(int), none, none)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(90, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(90, 4))
    Z[rng.random(Z.shape) < 0.2] = np.nan
    Z[:, 3] = np.nan_to_num(Z[:, 3])  # a column without gaps is never hidden
    return Z


def test_every_entry_is_hidden_once_from_its_own_row(table):
    targets, joint = [number(j) for j in range(4)], fit_joint(table, 0)
    hidden = hide_in_turn(targets, table, joint, 0)
    assert sorted(hidden.parts) == [0, 1, 2]
    for place in hidden.parts:
        known, completed = hidden.without(place)
        np.testing.assert_array_equal(hidden.rows[known], np.flatnonzero(~np.isnan(table[:, place])))
        assert not np.isnan(completed).any()
        assert (completed[:, place] != table[hidden.rows[known], place]).all()
    changed = table.copy()
    known, completed = hidden.without(1)
    changed[hidden.rows[known[7]], 1] += 5.0
    _, again = hide_in_turn(targets, changed, joint, 0).without(1)
    np.testing.assert_array_equal(again[7], completed[7])
    assert (again != completed).any()  # other rows were completed by a Gaussian that knew the entry


def test_trees_that_speak_of_a_row_have_not_learned_from_it():
    rng = np.random.default_rng(1)
    X, wanted = rng.normal(size=(60, 3)), rng.normal(size=(60, 1))
    forest = Forest(number(2), X, wanted, 2, 0, None)
    changed = wanted.copy()
    changed[11] += 100.0
    other = Forest(number(2), X, changed, 2, 0, None)
    assert other.unseen[11] == forest.unseen[11]
    assert np.abs(other.unseen - forest.unseen).max() > 1.0
    assert abs(other.answer(X)[11] - forest.answer(X)[11]) > 1.0
    np.testing.assert_array_equal(Forest(number(2), X, wanted, 2, 0, 2).unseen, forest.unseen)
    assert forest.answer(X[:0]).shape == (0, 1)


def trial(place, n, sigma_joint, sigma_forest):
    rng = np.random.default_rng(place)
    truth = rng.normal(size=(n, 1))
    joint, forest = (truth + sigma * rng.normal(size=(n, 1)) for sigma in (sigma_joint, sigma_forest))
    return Trial(number(place), truth, np.zeros(1), joint, forest)


def test_weights_go_to_the_model_that_gives_entries_back():
    common, recoveries = weigh({0: trial(0, 2000, 0.1, 5.0), 1: trial(1, 2000, 5.0, 0.1), 2: trial(2, 6, 5.0, 0.1)})
    assert recoveries[0].weights[0] > 0.9
    assert recoveries[1].weights[1] > 0.9
    np.testing.assert_allclose(recoveries[2].weights, common, atol=0.1)  # six entries say little
    assert (recoveries[0].weights >= 0).all()
    assert recoveries[1].explained > 0.95
    noise = weigh({0: trial(0, 2000, 50.0, 50.0)})[1][0]
    assert noise.weights.max() < 0.05  # what neither knows is left to the mean
    assert weigh({})[0].tolist() == [0.5, 0.5]
