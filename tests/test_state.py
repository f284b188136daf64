"""All or nothing, and the logger."""

import logging

import numpy as np
import pytest

from lacunar import OnlineMatrixClassifier, _log
from lacunar._state import all_or_nothing
from lacunar.papers.completion import MatrixExponentiatedGradient


class Model:
    def __init__(self):
        self.n_ = 0

    @all_or_nothing
    def count(self, error=None):
        self.n_ += 1
        self.new_ = True
        if error is not None:
            raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_a_failure_changes_nothing(error):
    model = Model()
    with pytest.raises(error):
        model.count(error)
    assert vars(model) == {"n_": 0}
    model.count()
    assert vars(model) == {"n_": 1, "new_": True}


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
