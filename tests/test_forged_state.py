"""Model files of which an attribute was taken out or changed: refused, or a model that answers as the original does."""

import copy
import json
import warnings

import numpy as np
import pytest
from fuzz.models import MODELS

from lacunar import load_model, save_model
from lacunar.observed.container import read_archive, write_archive
from lacunar.observed.rules import trial_rows
from lacunar.persistence import _VERBS

FORMS = [(family, form) for family, forms in MODELS.items() for form in forms]


def estimators(node, place=()):
    """Places of the estimators in a node, those inside others included."""
    if isinstance(node, dict):
        if node.get("t") == "estimator":
            yield place
        for key, value in node.items():
            yield from estimators(value, (*place, key))
    elif isinstance(node, list):
        for key, value in enumerate(node):
            yield from estimators(value, (*place, key))


def at(node, place):
    for key in place:
        node = node[key]
    return node


def names_of(node):
    """Names of the arrays that a node refers to."""
    text = json.dumps(node)
    return lambda name: f'"{name}"' in text


def answers(model):
    """What a model says of the rows that every loaded model must be able to read."""
    said = {}
    for k, rows in enumerate(trial_rows(model)):
        for verb in _VERBS:
            try:
                answer = getattr(model, verb)(rows) if hasattr(model, verb) else None
            except ValueError as error:
                answer = str(error)
            said[verb, k] = repr(answer.toarray() if hasattr(answer, "toarray") else answer)
    return said


def saved(family, form, path):
    model = MODELS[family][form]()
    save_model(model, path)
    return read_archive(path, kind="model")


def forged(path, header, arrays):
    names = names_of(header["model"])
    write_archive(path, kind="model", header=header, arrays={k: v for k, v in arrays.items() if names(k)})
    return load_model(path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("family", "form"), FORMS)
def test_an_attribute_that_is_missing_is_missed(family, form, tmp_path):
    path, wrong = tmp_path / "m", []
    header, arrays = saved(family, form, path)
    known = answers(load_model(path))
    for place in estimators(header["model"]):
        for name in at(header["model"], place)["state"]:
            without = copy.deepcopy(header)
            node = at(without["model"], place)
            del node["state"][name]
            try:
                said = answers(forged(path, without, arrays))
            except ValueError:
                continue
            except Exception as error:
                said = type(error).__name__
            if said != known:
                wrong.append(f"{node['class_name']}.{name}: {said if isinstance(said, str) else 'another answer'}")
    assert not wrong, wrong
