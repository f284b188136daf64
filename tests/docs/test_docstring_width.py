"""The first screen of `help` of a learner says what it is."""

import inspect

import pytest

import lacunar

SCREEN = 40


@pytest.mark.parametrize(
    ("cls", "methods"),
    [
        (lacunar.LacunarClassifier, ("fit", "predict_proba", "explain")),
        (lacunar.LacunarRegressor, ("fit", "predict_interval", "explain")),
    ],
)
def test_the_first_screen_has_every_parameter_and_three_methods(cls, methods):
    screen = inspect.getdoc(cls).splitlines()[:SCREEN]
    assert set(inspect.signature(cls).parameters) <= {line.split(" : ")[0] for line in screen}
    for name in methods:
        assert [line for line in screen if line.startswith(f"- `{name}(")]
