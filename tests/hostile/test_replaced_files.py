"""A file that is replaced while it is read: a reader gives what one of the two files holds, or says that it was replaced."""

import numpy as np
import pytest

from lacunar import Observed, load_model, save_model
from lacunar.karma import KarmaRegressor
from lacunar.observed import blocks, container, write_batches

X = np.random.default_rng(0).normal(size=(40, 3))


def then(monkeypatch, module, name, act):
    """Let `act` run once, as soon as the function has answered."""
    function, acts = getattr(module, name), [act]

    def once(*given, **options):
        answer = function(*given, **options)
        if acts:
            acts.pop()()
        return answer

    monkeypatch.setattr(module, name, once)


@pytest.mark.parametrize("step", ["_members_by_name", "_parse", "_load"])
def test_a_model_is_loaded_from_one_file(step, tmp_path, monkeypatch):
    path = tmp_path / "m"
    old, new = KarmaRegressor(3).fit(X, X[:, 0]), KarmaRegressor(3).fit(X[:30] + 1, X[:30, 0])
    save_model(old, path)
    then(monkeypatch, container, step, lambda: save_model(new, path))
    np.testing.assert_array_equal(load_model(path).predict(X), old.predict(X))
    np.testing.assert_array_equal(load_model(path).predict(X), new.predict(X))


@pytest.mark.parametrize("step", ["_parsed", "_read", "_fill"])
def test_a_table_is_loaded_from_one_file(step, tmp_path, monkeypatch):
    path = tmp_path / "t"
    Observed.from_dense(X).save(path)
    then(monkeypatch, blocks, step, lambda: write_batches(path, [Observed.from_dense(-X[:20])]))
    np.testing.assert_array_equal(Observed.load(path).to_dense(), X)
    np.testing.assert_array_equal(Observed.load(path).to_dense(), -X[:20])
