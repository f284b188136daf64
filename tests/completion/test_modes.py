"""Features of kernels that grow."""

import numpy as np
import pytest

from lacunar.completion import Kernel, KernelFunction
from lacunar.completion.modes import KernelModes, leading_modes

POINTS = np.random.default_rng(0).normal(size=(40, 2))


def begun(n):
    return KernelFunction("gaussian", points=list(POINTS[:n]), length_scale=1.5).begin()


def grown(n):
    """A state of n points at the beginning to which the others came, and its modes."""
    state = begun(n)
    modes = KernelModes(state, 16)
    for point in POINTS[n:]:
        state.grow(point)
    return state, modes


@pytest.mark.parametrize("n", [20, 5])
def test_features_of_new_points_are_those_of_nystroem(n):
    state, modes = grown(n)
    K = state.dense()
    values, vectors = np.linalg.eigh(K[:n, :n])
    kept = np.argsort(-values)[:16]
    kept = kept[values[kept] > 1e-10 * values.max()]
    places = K[:, :n] @ vectors[:, kept] / np.sqrt(values[kept])
    found = modes.features(range(40))
    np.testing.assert_allclose(found @ found.T, places @ places.T, atol=1e-8)


@pytest.mark.parametrize("n", [0, 3])
def test_directions_bring_the_products_near_the_kernel(n):
    state, modes = grown(n)
    K, errors = state.dense(), []
    for vertex in range(n, 40):
        if modes.opens(vertex):
            modes.open(vertex)
            place = modes.features([vertex])[0]
            assert place @ place == pytest.approx(K[vertex, vertex])
            errors.append(np.abs(K - modes.features(range(40)) @ modes.features(range(40)).T).max())
    assert len(modes.landmarks) == len(errors) > 3
    assert errors[-1] <= 0.1 + 1e-9  # all that a point may lack without opening a direction
    assert all(remainder < 0.1 + 1e-9 for remainder in K.diagonal() - (modes.features(range(40)) ** 2).sum(axis=1))


def test_places_learned_so_far_stay():
    _, modes = grown(0)
    before = np.zeros((40, 16))
    for vertex in range(40):
        if modes.opens(vertex):
            modes.open(vertex)
            after = modes.features(range(40))
            taken = len(modes.landmarks) - 1
            np.testing.assert_array_equal(after[:, :taken], before[:, :taken])
            before = after


def test_features_hang_on_no_other_vertex_that_is_asked_about():
    _, modes = grown(10)
    together = modes.features(range(40))
    for vertex in range(40):
        np.testing.assert_array_equal(modes.features([vertex])[0], together[vertex])


def test_a_full_set_opens_nothing():
    state, modes = grown(0)
    narrow = KernelModes(state, 2)
    assert narrow.full
    assert not any(narrow.opens(vertex) for vertex in range(40))
    assert not modes.full


def test_modes_of_a_kernel_of_low_rank_are_as_many_as_its_rank():
    state = Kernel(np.outer([1.0, -1, 1, 1], [1.0, -1, 1, 1])).begin()
    modes = leading_modes(state.dense(), 3)
    np.testing.assert_allclose(modes @ modes.T, state.dense(), atol=1e-7)
    assert KernelModes(state, 3).modes.any(axis=0).tolist() == [True, False, False]
