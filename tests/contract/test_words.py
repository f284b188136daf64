"""One word for one thing: names of constructor parameters and fitted attributes of all public estimators."""

import ast
import inspect
from pathlib import Path

import pytest
from test_layers import SOURCES, of_every, tree_of

from lacunar.persistence.registry import CLASSES, class_of

# Another word for it -> the word here.
PARAMETERS = {
    "scale": "standardize (of columns) or normalize (of the kernel)",
    "scaling": "standardize",
    "standardise": "standardize",
    "passes": "max_iter",
    "max_passes": "max_iter",
    "n_passes": "max_iter",
    "n_rounds": "max_iter",
    "max_rounds": "max_iter",
    "epochs": "max_iter",
    "n_epochs": "max_iter",
    "n_iter": "max_iter",
    "rank": "n_components",
    "k": "n_components",
    "eps": "tol",
    "max_support": "budget",
    "seed": "random_state",
    "state": "a word for what it chooses; state_ is what a stream goes on from",
    "threads": "n_jobs",
    "n_threads": "n_jobs",
    "missing": "sparse_missing",
}
ATTRIBUTES = {
    "center_": "mean_",
    "centre_": "mean_",
    "means_": "mean_",
    "std_": "scale_",
    "U_": "components_",
    "basis_": "components_",
    "tracker_": "state_",
    "tables_": "state_",
    "n_passes_": "n_iter_",
    "n_rounds_": "n_iter_",
    "n_sweeps_": "n_iter_",
}
# A class that needs both words: what the other one means there.
BOTH = {
    (
        "lacunar.GeomClassifier",
        "n_rounds",
    ): "rounds of new weights, in each of which a solver makes at most max_iter passes"
}
BUDGET = "karma"  # the only family with a `budget`: rows that an online kernel learner keeps


def family_of(cls: type) -> str:
    return f"{cls.__module__}.".split(".")[1]


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_parameters(name):
    cls = class_of(name, CLASSES)
    if family_of(cls) == "papers":  # the words of the papers
        return
    found = [parameter for parameter in inspect.signature(cls).parameters if (name, parameter) not in BOTH]
    assert not {parameter: PARAMETERS[parameter] for parameter in found if parameter in PARAMETERS}
    assert "budget" not in found or family_of(cls) == BUDGET


def attributes_of(path: Path) -> set[str]:
    """Attributes that a file sets or reads of any object."""
    return {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}


@of_every(SOURCES)
def test_attributes(path):
    assert not {name: ATTRIBUTES[name] for name in sorted(attributes_of(path) & set(ATTRIBUTES))}
