"""Every example in a docstring runs and prints what it says; every public name has its place in the reference."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

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


REFERENCE = Path(__file__).parents[2] / "docs" / "api.rst"
# Modules inside a family have plain names; public is what a module lists in `__all__`.
PUBLIC = [
    name
    for name in MODULES
    if not any(part.startswith("_") for part in name.split(".")) and hasattr(importlib.import_module(name), "__all__")
]


@pytest.mark.skipif(not REFERENCE.exists(), reason="the docs are not beside the tests")
@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "lacunar.cli"])
def test_public_names_are_in_the_reference(name):
    listed = re.search(rf"currentmodule:: {re.escape(name)}\n(.*?)(?=currentmodule::|\Z)", REFERENCE.read_text(), re.S)
    assert listed, f"docs/api.rst has no section for {name}"
    missing = set(getattr(importlib.import_module(name), "__all__", [])) - set(listed[1].split())
    assert not missing, f"docs/api.rst lacks {sorted(missing)} of {name}"
