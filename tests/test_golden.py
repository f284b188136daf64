"""Answers of version 0.1.0: its model files go on loading and predicting the same, and new fits give the same."""

import numpy as np
import pytest
from golden import record

KNOWN = dict(np.load(record.ANSWERS, allow_pickle=False))


def expected(name):
    return {key.partition("/")[2]: value for key, value in KNOWN.items() if key.startswith(f"{name}/")}


def assert_same(found, wanted, rtol):
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert found[key].shape == value.shape, key
        if value.dtype.kind in "US":
            np.testing.assert_array_equal(found[key], value, err_msg=key)
        else:
            size = np.nanmax(np.abs(value), initial=0) if np.isfinite(value).any() else 0
            np.testing.assert_allclose(found[key], value, rtol=rtol, atol=rtol * size, err_msg=key)


def test_every_case_is_stored():
    assert {key.partition("/")[0] for key in KNOWN} == {*record.CASES, "functions"}


@pytest.mark.parametrize("name", [name for name, case in record.CASES.items() if case.stored])
def test_stored_models_answer_as_they_did(name):
    assert_same(record.answers(record.loaded(name)), expected(name), 1e-9)


@pytest.mark.parametrize("name", [name for name, case in record.CASES.items() if case.fits])
def test_new_fits_answer_as_they_did(name):
    found, wanted = record.answers(record.fitted(name)), expected(name)
    assert found.keys() - wanted.keys() <= {"predict_proba"}  # which more models have now
    assert_same({key: found.get(key) for key in wanted}, wanted, record.CASES[name].rtol)


def test_generators_kernels_and_folds_answer_as_they_did():
    assert_same(record.function_answers(), expected("functions"), 1e-9)
