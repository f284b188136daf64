"""What `help` shows of public names fits a terminal of 100 columns, and the first screen of a learner says what it is."""

import inspect

import pytest
from public import documented

import lacunar

COLUMNS, SCREEN = 100, 40
CLASS_MARGIN, METHOD_MARGIN = 4, 8  # what `help` puts before a line


def too_wide(text, margin):
    return [line for line in (text or "").splitlines() if margin + len(line) > COLUMNS]


def test_docstrings_fit_a_terminal():
    docs = {
        name: (inspect.getdoc(item), is_member) for name, item, is_member in documented() if is_member or callable(item)
    }
    assert len(docs) > 500
    margins = CLASS_MARGIN, METHOD_MARGIN
    assert not {
        name: lines for name, (text, is_member) in docs.items() if (lines := too_wide(text, margins[is_member]))
    }


def test_a_wide_line_is_found():
    assert too_wide("short\n" + "x" * 97, CLASS_MARGIN) == ["x" * 97]
    assert not too_wide("x" * 96, CLASS_MARGIN)
    assert too_wide("x" * 96, METHOD_MARGIN)


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
