"""`read_target`: one reading of labels and numbers, whatever may be unknown."""

from datetime import date, time, timedelta

import numpy as np
import pandas as pd
import pytest

from lacunar.observed.door import flat_target, read_labels, read_target

PERIODS = pd.Series(pd.period_range("2020-01", periods=3, freq="M"))
LABELS = {
    "text": (np.array(["b", None, "a"], dtype=object), ["b", "a"], "U"),
    "whole": (np.array([3, None, 1], dtype=object), [3, 1], "i"),
    "bool": (np.array([True, None, False], dtype=object), [True, False], "b"),
    "floats": (np.array([3.0, np.nan, 1.0]), [3.0, 1.0], "f"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_known_labels_keep_their_type(kind):
    y, known, dtype_kind = LABELS[kind]
    target = read_target(y, unknown="some")
    assert target.known.tolist() == [True, False, True]
    assert target.values[target.known].tolist() == known
    assert target.values.dtype.kind == dtype_kind


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("y_numeric", [False, True])
def test_an_unknown_label_is_named_where_all_must_be_known(kind, y_numeric):
    if kind == "text" and y_numeric:
        with pytest.raises(ValueError, match="y must hold numbers; got 'b' in row 0"):
            read_target(LABELS[kind][0], y_numeric=True)
        return
    with pytest.raises(ValueError, match=r"contains NaN or infinity: y must be known and finite; got \w+ in row 1\."):
        read_target(LABELS[kind][0], y_numeric=y_numeric)


@pytest.mark.parametrize("unknown", ["none", "some", "all"])
@pytest.mark.parametrize("y_numeric", [False, True])
def test_infinity_is_refused(unknown, y_numeric):
    for shape in ((3,), (3, 1)):
        y = np.reshape([1.0, 2.0, -np.inf], shape)
        with pytest.raises(ValueError, match=r"infinity.*finite.*-inf.* in row 2\."):
            read_target(y, y_numeric=y_numeric, multi_output=len(shape) == 2, unknown=unknown)


def test_how_many_may_be_unknown():
    y = np.array([[1.0, np.nan], [np.nan, np.nan], [2.0, np.nan]])
    for several in (y[:, 1], y):
        where = r"every row of target 1" if several.ndim == 2 else "every row"
        with pytest.raises(ValueError, match=f"NaN in {where}: at least one value must be known; got 3 unknown ones"):
            read_target(several, y_numeric=True, multi_output=True, unknown="some")
        target = read_target(several, y_numeric=True, multi_output=True, unknown="all")
        np.testing.assert_array_equal(target.values, several)
        np.testing.assert_array_equal(target.known, ~np.isnan(several))


@pytest.mark.parametrize("dtype", [np.float32, np.int16, bool, object])
def test_numbers_are_float64_in_every_container(dtype):
    y = np.array([0, 1, 1]).astype(dtype)
    for form in (y, list(y), y[::-1][::-1], y[:, None], np.asfortranarray(np.column_stack([y, y]))):
        target = read_target(form, y_numeric=True, multi_output=True)
        assert target.values.dtype == np.float64
        np.testing.assert_array_equal(target.values, np.asarray(form).astype(float))


def test_squares_must_not_vanish_unless_the_caller_scales():
    with pytest.raises(ValueError, match=r"y must reach 1e-150 in modulus"):
        read_target([1e-200, 0.0], y_numeric=True)
    assert read_target([1e-200, 0.0], y_numeric=True, allow_tiny=True).values[0] == 1e-200
    with pytest.raises(ValueError, match=r"y must be at most 1e\+150 in modulus"):
        read_target([1e200, 0.0], y_numeric=True, allow_tiny=True)


def test_one_column_is_made_flat_with_a_warning():
    column = np.array([[1.0], [2.0]])
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        assert flat_target(column).tolist() == [1.0, 2.0]
    assert flat_target(np.eye(2)).shape == (2, 2)


def test_labels_of_pairs_are_as_many_as_the_pairs():
    with pytest.raises(ValueError, match=r"one label for each of 3 pairs; got shape \(2,\)"):
        read_labels(["a", "b"], 3)
    with pytest.raises(ValueError, match="got None in position 1"):
        read_labels(["a", None], 2)
    assert read_labels([], 0).shape == (0,)


@pytest.mark.parametrize("y", [[date(2020, 1, 1), None], [time(12), time(13)], [timedelta(1)], PERIODS])
@pytest.mark.parametrize("y_numeric", [False, True])
def test_dates_and_times_among_objects_are_refused_as_their_arrays_are(y, y_numeric):
    with pytest.raises(TypeError, match="it holds dates or durations"):
        read_target(y, unknown="some", y_numeric=y_numeric)
