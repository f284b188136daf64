"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import lacunar

MODULES = [
    module.name
    for module in pkgutil.walk_packages(lacunar.__path__, "lacunar.")
    if not module.name.endswith(("__main__", "._core", "._linalg"))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    names = {"Observed": lacunar.Observed}
    result = doctest.testmod(module, extraglobs=names, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
