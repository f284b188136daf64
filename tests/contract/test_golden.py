"""Answers that are stored: fits give them still, and a model file answers to the bit as the model that it holds."""

import numpy as np
import pytest
from golden import record
from rounding import rounding

from lacunar.persistence import load_model, save_model

KNOWN = dict(np.load(record.ANSWERS, allow_pickle=False))


def expected(name):
    return {key.removeprefix(f"{name}/"): value for key, value in KNOWN.items() if key.startswith(f"{name}/")}


def size_of(value):
    return np.nanmax(np.abs(value), initial=0) if np.isfinite(value).any() else 0


def ties(wanted, rtol):
    """Rows whose label turns with the last bit: their two best scores are nearer than what is forgiven. None without scores."""
    if "decision_function" not in wanted:
        return None
    scores = wanted["decision_function"]
    scores = np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
    best = np.sort(scores, axis=1)
    return best[:, -1] - best[:, -2] <= 2 * rtol * size_of(scores)


def assert_same(found, wanted, rtol):
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert found[key].shape == value.shape, key
        tied = ties(wanted, rtol) if key == "predict" else None
        if tied is not None:
            np.testing.assert_array_equal(found[key][~tied], value[~tied], err_msg=key)
        elif value.dtype.kind in "US":
            np.testing.assert_array_equal(found[key], value, err_msg=key)
        else:
            np.testing.assert_allclose(found[key], value, rtol=rtol, atol=rtol * size_of(value), err_msg=key)


def test_only_ties_are_left_out():
    """Of the labels that are stored, those of the row without an entry at most."""
    for name, case in record.CASES.items():
        tied = ties(expected(name), max(1e-9, rounding(case.dtype, record.TERMS)))
        assert tied is None or set(np.flatnonzero(tied)) <= {3}, name


def test_every_case_is_stored():
    assert {key.partition("/")[0] for key in KNOWN} == {*record.CASES, "functions"}


@pytest.fixture(scope="module", params=record.CASES)
def fitted(request):
    """Name of a case, its model and the answers of that."""
    model = record.fitted(request.param)
    return request.param, model, record.answers(model)


def test_fits_answer_as_they_did(fitted):
    name, _, found = fitted
    case, wanted = record.CASES[name], expected(name)
    assert found.keys() - wanted.keys() <= {"predict_proba"}  # which more models have now
    rtol = max(case.rtol, rounding(case.dtype, record.TERMS))
    assert_same({key: found.get(key) for key in wanted}, wanted, rtol)


def test_model_files_answer_as_the_model_did(fitted, tmp_path):
    _, model, wanted = fitted
    save_model(model, tmp_path / "model.lacunar")
    found = record.answers(load_model(tmp_path / "model.lacunar"))
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert found[key].dtype == value.dtype, key
        np.testing.assert_array_equal(found[key], value, err_msg=key)


def test_generators_kernels_and_folds_answer_as_they_did():
    assert_same(record.function_answers(), expected("functions"), 1e-9)
