"""Model files of which an attribute was taken out or changed: refused, or a model that answers as the original does."""

import contextlib
import copy
import json

import numpy as np
import pytest
from fuzz.models import MODELS, use

from lacunar import load_model, save_model
from lacunar.observed.container import read_archive, write_archive
from lacunar.observed.rules import trial_rows
from lacunar.persistence import _VERBS

SPARED = {
    "calibration_"
}  # a sound model of KARMA may be without: of one class, of the logistic loss, or uncalibrated within a search
SEEN_INSIDE: set[tuple[str, str]] = set()  # attributes of estimators inside others, which every model reads in one way
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


def arrays_of(node):
    """Names of the arrays that an attribute of an estimator is made of, nested estimators left out: they have attributes of their own."""
    if isinstance(node, dict) and node.get("t") != "estimator":
        for key, value in node.items():
            if key in ("name", "indptr", "indices", "values", "data") and isinstance(value, str):
                yield value
            yield from arrays_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from arrays_of(value)


def changed(array):
    """Arrays that are not what was written, each with what is wrong with it."""
    for axis in range(array.ndim):
        if array.shape[axis]:
            yield f"one less along {axis}", np.ascontiguousarray(np.delete(array, -1, axis=axis))
            yield f"one more along {axis}", np.ascontiguousarray(np.concatenate([array, array.take([0], axis)], axis))
    if array.size and array.dtype.kind == "f":
        yield "NaN", spoiled(array, np.nan)
        yield "text", array.astype(str)
    if array.size and array.dtype.kind in "iu":
        yield "too high", spoiled(array, np.iinfo(array.dtype).max)
        yield "negative", spoiled(array, -1) if array.dtype.kind == "i" else array[..., :0]
        yield "floats", array.astype(np.float64) + 0.5


def spoiled(array, value):
    copied = array.copy()
    copied.flat[array.size // 2] = value
    return copied


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
        for name in at(header["model"], place)["state"].keys() - SPARED:
            without = copy.deepcopy(header)
            node = at(without["model"], place)
            if place and (node["class_name"], name) in SEEN_INSIDE:
                continue
            if place:
                SEEN_INSIDE.add((node["class_name"], name))
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("family", "form"), FORMS)
def test_a_changed_array_ends_in_an_answer_or_a_value_error(family, form, tmp_path):
    path, wrong, seen = tmp_path / "m", [], set()
    header, arrays = saved(family, form, path)
    for place in estimators(header["model"]):
        node = at(header["model"], place)
        for attribute, value in node["state"].items():
            if (node["class_name"], attribute) in seen:  # in another part of the model
                continue
            seen.add((node["class_name"], attribute))
            for name in arrays_of(value):
                for what, array in changed(arrays[name]):
                    try:
                        with contextlib.suppress(ValueError):
                            use(forged(path, header, arrays | {name: array}))
                    except Exception as error:
                        wrong.append(f"{node['class_name']}.{attribute}, {what}: {error!r:.80}")
    assert not wrong, wrong


@pytest.mark.filterwarnings("ignore")
def test_an_array_in_the_place_of_another_is_refused(tmp_path):
    header, arrays = saved(
        "baselines", "mc-b", tmp_path / "m"
    )  # whose weights of labels were once taken for those of columns
    state = header["model"]["state"]
    arrays[state["label_components_"]["name"]] = arrays[state["components_"]["name"]]
    with pytest.raises(ValueError, match="label_components_ must be of shape"):
        forged(tmp_path / "m", header, arrays)
