"""Going back after a failure, and the logger."""

import logging

import numpy as np
import pytest
from faulty import Fault

from lacunar import OnlineMatrixClassifier, _log
from lacunar._lock import changes, reads
from lacunar._state import Entries, all_or_nothing, going_back
from lacunar.papers.completion import MatrixExponentiatedGradient


class Engine:
    """An array that is changed in place."""

    def __init__(self):
        self.table = np.zeros(3)

    def state(self):
        return {"table": self.table}

    @classmethod
    def from_state(cls, state):
        engine = cls()
        engine.table = state["table"]
        return engine


class Model:
    def __init__(self):
        self.n_, self.engine_ = 0, Engine()

    def learn(self, error=None, *, keep=False, keeps_interrupted=False):
        with going_back(self, self.engine_) as point:
            point.keeps_interrupted = keeps_interrupted
            self.n_, self.new_ = self.n_ + 1, True
            self.engine_.table += 1
            if keep:
                point.keep()
                self.n_ += 1
                self.engine_.table += 1
            if error is not None:
                raise error
        return self

    @all_or_nothing
    def count(self, error=None):
        self.n_ += 1
        if error is not None:
            raise error


def state_of(model):
    return model.n_, model.engine_.table.tolist(), hasattr(model, "new_")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_a_failure_changes_nothing(error):
    model = Model()
    engine = model.engine_
    with pytest.raises(error):
        model.learn(error)
    assert state_of(model) == (0, [0, 0, 0], False)
    assert model.engine_ is engine
    with pytest.raises(error):
        model.count(error)
    assert model.n_ == 0
    assert state_of(model.learn()) == (1, [1, 1, 1], True)


def test_entries_go_back_in_place():
    table, clock = np.arange(12.0).reshape(4, 3), np.zeros(2)
    rows = np.array([1, 3])

    def fail():
        with going_back(Entries((table, rows), (clock, ...))):
            table[rows] += 1
            clock[:] = 1
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    np.testing.assert_array_equal(table, np.arange(12.0).reshape(4, 3))
    np.testing.assert_array_equal(clock, 0)


class Lost:
    """A model whose engine cannot go back."""

    def __init__(self):
        self.engine_ = Engine()

    @changes
    def learn(self):
        with going_back(self.engine_):
            raise ValueError("no")

    @reads
    def ask(self):
        return 1


def test_a_model_that_could_not_go_back_says_so(monkeypatch):
    def refuse(state):
        raise MemoryError

    model = Lost()
    with pytest.raises(ValueError, match="no"):
        model.learn()
    assert model.ask() == 1
    monkeypatch.setattr(Engine, "from_state", refuse)
    with pytest.raises(ValueError, match="no"):
        model.learn()
    for method in (model.learn, model.ask):
        with pytest.raises(RuntimeError, match=r"must be whole.*Load the model again"):
            method()
    assert Lost().ask() == 1


def test_what_is_kept_stays():
    model = Model()
    with pytest.raises(ValueError, match="late"):
        model.learn(ValueError("late"), keep=True)
    assert state_of(model) == (1, [1, 1, 1], True)


def test_what_is_released_is_not_undone():
    model = Model()

    def late():
        with going_back(model, model.engine_) as point:
            point.release()
            model.n_ = 7
            raise ValueError("late")

    with pytest.raises(ValueError, match="late"):
        late()
    assert model.n_ == 7


def test_an_interrupt_may_leave_what_is_whole():
    model = Model()
    with pytest.raises(KeyboardInterrupt):
        model.learn(KeyboardInterrupt, keeps_interrupted=True)
    assert model.n_ == 1
    with pytest.raises(ValueError, match="no"):
        model.learn(ValueError("no"), keeps_interrupted=True)
    assert model.n_ == 1


@pytest.mark.parametrize("number", range(1, 12))
def test_a_failure_on_the_way_in_or_out_changes_nothing(number):
    model = Model()
    try:
        with Fault(number, MemoryError()):
            model.learn()
    except MemoryError:
        assert state_of(model) == (0, [0, 0, 0], False)
    else:
        assert state_of(model) == (1, [1, 1, 1], True)


def test_verbose_writes_to_stderr(monkeypatch, capsys):
    """In a program that has set up no logging."""
    monkeypatch.setattr(_log.logger, "handlers", [])
    monkeypatch.setattr(_log.logger, "propagate", False)
    _log.say(0, "not %d", 1)
    _log.say(1, "pass %d of %s", 1, "two")
    _log.say(1, "pass 2")
    assert capsys.readouterr().err == "pass 1 of two\npass 2\n"


def test_verbose_goes_where_logging_goes(caplog, capsys):
    with caplog.at_level(logging.INFO, logger="lacunar"):
        _log.say(1, "pass %d", 1)
    assert caplog.messages == ["pass 1"]
    assert "pass" not in capsys.readouterr().err


@pytest.mark.parametrize("learner", [OnlineMatrixClassifier, MatrixExponentiatedGradient])
def test_a_stream_of_pairs_says_how_far_it_is(caplog, monkeypatch, learner):
    monkeypatch.setattr(_log, "_PAUSE", 0.0)
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 20, size=(5000, 2)), rng.integers(0, 2, size=5000)
    with caplog.at_level(logging.INFO, logger="lacunar"):
        learner().fit(X, y)
        assert not caplog.messages
        learner(verbose=1).fit(X, y)
    assert caplog.messages[-1].startswith("5000 of 5000 pairs")
    assert len(caplog.messages) > 1
