"""What `help` shows of public names fits a terminal of 100 columns, and the first screen of a learner says what it is."""

import importlib
import inspect
import pkgutil

import pytest

import lacunar

COLUMNS, SCREEN = 100, 40
CLASS_MARGIN, METHOD_MARGIN = 4, 8  # what `help` puts before a line


def public_docs():
    """(name, docstring, margin) of every name in an `__all__`, and of the public methods that are written in this package."""
    modules = [m.name for m in pkgutil.walk_packages(lacunar.__path__, "lacunar.")]
    for module in [name for name in modules if not any(part.startswith("_") for part in name.split("."))]:
        for name in getattr(importlib.import_module(module), "__all__", []):
            thing = getattr(importlib.import_module(module), name)
            if inspect.isclass(thing) or callable(thing):
                yield f"{module}.{name}", inspect.getdoc(thing), CLASS_MARGIN
            for base in thing.__mro__ if inspect.isclass(thing) else ():
                for key, value in vars(base).items() if base.__module__.startswith("lacunar") else ():
                    written = callable(value) or isinstance(value, classmethod | staticmethod | property)
                    if written and not key.startswith("_"):
                        yield f"{module}.{name}.{key}", inspect.getdoc(value), METHOD_MARGIN


def too_wide(text, margin):
    return [line for line in (text or "").splitlines() if margin + len(line) > COLUMNS]


def test_docstrings_fit_a_terminal():
    docs = list(public_docs())
    assert len(docs) > 500
    wide = {name: lines for name, text, margin in docs if (lines := too_wide(text, margin))}
    assert not wide


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
