"""Every example in a docstring runs and prints what it says; every public name has its place in the reference."""

import doctest
import re
from pathlib import Path

import pytest
from public import MODULES, is_private

import lacunar


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples(module):
    names = {"Observed": lacunar.Observed}
    result = doctest.testmod(module, extraglobs=names, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


REFERENCE = Path(__file__).parents[2] / "docs" / "api.rst"
# Modules inside a family have plain names; public is what a module lists in `__all__`.
PUBLIC = [
    m for m in MODULES[1:] if not is_private(m.__name__) and hasattr(m, "__all__") and m.__name__ != "lacunar.cli"
]


@pytest.mark.skipif(not REFERENCE.exists(), reason="the docs are not beside the tests")
@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_public_names_are_in_the_reference(module):
    name = module.__name__
    listed = re.search(rf"currentmodule:: {re.escape(name)}\n(.*?)(?=currentmodule::|\Z)", REFERENCE.read_text(), re.S)
    assert listed, f"docs/api.rst has no section for {name}"
    missing = set(module.__all__) - set(listed[1].split())
    assert not missing, f"docs/api.rst lacks {sorted(missing)} of {name}"
