"""Side information: kernels by their formulas, growth, bad input, states that are saved."""

import json

import numpy as np
import pytest
from reference import side as slow
from sklearn.base import clone

from lacunar.completion import Features, Identity, Kernel, KernelFunction, Mix

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(-2, 2, size=(9, 3))
GRAM = POINTS @ POINTS.T + 0.1 * np.eye(9)
PARTS = ["a", "b", "a", "c", "b"]
TABLE = {
    "genre": ["war", "love", None, "war"],
    "year": [1990.0, 2001.0, np.nan, 1987.0],
    "old": [True, False, None, True],
}


def by_hand(x, t):
    return slow.gaussian(x, t, 0.7)


DESCRIPTORS = {
    "identity": Identity(5),
    "kernel": Kernel(GRAM),
    "kernel-raw": Kernel(GRAM, normalize=False),
    "gaussian": KernelFunction("gaussian", points=POINTS),
    "min": KernelFunction("min", points=POINTS, r=3.0),
    "linear": KernelFunction("linear", points=POINTS, epsilon=0.3),
    "partition": KernelFunction("partition", points=PARTS),
    "callable": KernelFunction(by_hand, points=list(POINTS)),
    "features": Features(TABLE),
    "features-own": Features(POINTS, own=0.3, const=0.1),
    "mix-identity": Mix(Identity(5)),
    "mix-kernel": Mix(Kernel(GRAM), info=0.5, const=0.4, own=0.1),
    "mix-features": Mix(Features(POINTS)),
    "mix-function": Mix(KernelFunction(points=POINTS)),
    "mix-mix": Mix(Mix(Features(POINTS, own=0.1))),
}
NEW = {"features": {"genre": "love", "year": 1995.0}, "callable": [1.0, 0.0, 1.0], "partition": "b"}


def expected(name):
    """K by its formula."""
    return {
        "identity": lambda: np.eye(5),
        "kernel": lambda: slow.corr(GRAM),
        "kernel-raw": lambda: GRAM / np.diag(GRAM).max(),
        "gaussian": lambda: slow.gram(slow.gaussian, POINTS),
        "min": lambda: slow.corr(slow.gram(lambda x, t: slow.min_kernel(x, t, 3.0), POINTS)),
        "linear": lambda: slow.corr(slow.gram(lambda x, t: slow.linear(x, t, 0.3), POINTS)),
        "partition": lambda: slow.corr(slow.one_hot(PARTS) @ slow.one_hot(PARTS).T + 0.1 * np.eye(5)),
        "callable": lambda: slow.gram(by_hand, POINTS),
        "features": table_kernel,
        "features-own": lambda: slow.mix(slow.cosine(standard(POINTS)), 0.6, 0.1, 0.3),
        "mix-identity": lambda: slow.mix(np.eye(5), 0.6, 0.2, 0.2),
        "mix-kernel": lambda: slow.mix(slow.corr(GRAM), 0.5, 0.4, 0.1),
        "mix-features": lambda: slow.mix(slow.cosine(standard(POINTS)), 0.6, 0.2, 0.2),
        "mix-function": lambda: slow.mix(slow.gram(slow.gaussian, POINTS), 0.6, 0.2, 0.2),
        "mix-mix": lambda: slow.mix(
            slow.mix(slow.mix(slow.cosine(standard(POINTS)), 0.9, 0.0, 0.1), 0.6, 0.2, 0.2), 0.6, 0.2, 0.2
        ),
    }[name]()


def standard(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def table_kernel():
    year = np.array(TABLE["year"])
    year = np.nan_to_num((year - np.nanmean(year)) / np.nanstd(year))
    old = np.array([1.0, 0.0, 0.0, 1.0])
    none = np.array([0.0, 0.0, 1.0, 0.0])  # the third id has no feature at all
    return slow.cosine(np.column_stack([slow.one_hot(TABLE["genre"]), year, old, none]))


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_kernel_is_that_of_the_formula(name):
    side, K = DESCRIPTORS[name].begin(), expected(name)
    assert side.size == len(K)
    np.testing.assert_allclose(side.columns(np.arange(side.size)), K, atol=1e-13)
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    assert side.diagonal().max() <= 1 + 1e-15
    if name != "kernel-raw":
        np.testing.assert_allclose(side.diagonal(), 1, atol=1e-14)


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_every_view_of_a_state_is_one_kernel(name):
    side = DESCRIPTORS[name].begin()
    if side.grows:
        side.grow(NEW.get(name, [0.5, -1.0, 0.25]))
    K, V = side.dense(), RNG.normal(size=(side.size, 3))
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(side.diagonal(), np.diag(K), atol=1e-15)
    np.testing.assert_allclose(side.columns([2, 0, 2]), K[:, [2, 0, 2]], atol=1e-15)
    assert side.columns([2, 0]).flags.c_contiguous
    assert side.columns([]).shape == (side.size, 0)
    np.testing.assert_allclose(side.apply(V), K @ V, atol=1e-13)
    np.testing.assert_allclose(side.apply(V[:, 0]), K @ V[:, 0], atol=1e-13)
    if side.kind == "factor":
        Phi, own, const = side.factor()
        np.testing.assert_allclose(Phi @ Phi.T + own * np.eye(side.size) + const, K, atol=1e-14)
    else:
        with pytest.raises(TypeError, match="has a factor"):
            side.factor()
    for wrong in (side.size, -1):
        with pytest.raises(IndexError, match=f"vertices must be 0 to {side.size - 1}"):
            side.columns([wrong])
    with pytest.raises(TypeError, match="must be integers"):
        side.columns([0.5])


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_states_are_restored_from_snapshots(name):
    descriptor = DESCRIPTORS[name]
    side = descriptor.begin()
    digest = side.digest
    if side.grows:
        side.grow(NEW.get(name, [0.5, -1.0, 0.25]))
    assert side.digest == digest == descriptor.begin().digest
    saved = side.state()
    json.dumps(saved, default=lambda leaf: leaf.tolist())  # plain data: nothing but arrays is foreign to JSON
    other = descriptor.begin()
    other.grow_from(saved)
    np.testing.assert_array_equal(other.dense(), side.dense())
    assert (other.ids, other.grows, other.kind, other.digest) == (side.ids, side.grows, side.kind, digest)
    if side.grows:
        assert other.grow(NEW.get(name, [1.5, 1.0, 0.25])) == side.size


def test_digests_tell_side_information_apart():
    digests = [d.begin().digest for d in DESCRIPTORS.values()]
    assert len(set(digests)) == len(digests)
    with pytest.raises(ValueError, match="of this side information"):
        Kernel(GRAM + np.eye(9)).begin().grow_from(Kernel(GRAM).begin().state())
    with pytest.raises(ValueError, match="of this side information"):
        KernelFunction("gaussian", points=POINTS[:3]).begin().grow_from(
            KernelFunction("gaussian", points=POINTS[1:4]).begin().state()
        )
    with pytest.raises(ValueError, match="its digest is None"):
        Kernel(GRAM).begin().grow_from({})


@pytest.mark.parametrize(
    ("descriptor", "grown"),
    [
        (Kernel(GRAM), {"size": 9}),
        (Mix(Kernel(GRAM)), {}),
        (Mix(Kernel(GRAM)), {"base": {"digest": ""}}),
        (Identity(), {"size": -1}),
        (Identity(), {"size": 1.5}),
        (Features(POINTS), {"phi": np.ones((2, 99))}),
        (Features(POINTS), {"phi": np.full((2, 3), np.nan)}),
        (KernelFunction("gaussian", points=POINTS), {"points": 3}),
        (KernelFunction("gaussian", points=POINTS), {"points": [[np.inf] * 3]}),
    ],
)
def test_damaged_snapshots_are_refused(descriptor, grown):
    side = descriptor.begin()
    with pytest.raises(ValueError, match="must"):
        side.grow_from({"digest": side.digest, **grown})


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_descriptors_are_scikit_learn_objects(name):
    descriptor = DESCRIPTORS[name]
    assert type(descriptor).__name__ in repr(descriptor)
    assert clone(descriptor).begin().digest == descriptor.begin().digest
    for parameter, value in descriptor.get_params(deep=False).items():
        assert getattr(descriptor, parameter) is value


def test_growing_one_by_one_is_growing_at_once():
    for f, points in (
        ("gaussian", POINTS),
        ("min", POINTS),
        ("linear", POINTS),
        ("partition", PARTS),
        (by_hand, POINTS),
    ):
        at_once, one_by_one = KernelFunction(f, points=points).begin(), KernelFunction(f).begin()
        assert one_by_one.size == 0
        assert [one_by_one.grow(point) for point in points] == list(range(len(points)))
        np.testing.assert_array_equal(one_by_one.dense(), at_once.dense())
    anyone = Identity().begin()
    assert [anyone.grow(name) for name in ("you", 3, (1, 2))] == [0, 1, 2]
    np.testing.assert_array_equal(anyone.dense(), np.eye(3))


def test_growth_far_beyond_the_first_memory():
    side = Features(RNG.normal(size=(3, 4)), own=0.1).begin()
    more = RNG.normal(size=(100, 4))
    for row in more:
        side.grow(row)
    assert side.size == 103
    np.testing.assert_allclose(side.diagonal(), 1)
    cloud = KernelFunction(by_hand).begin()
    for point in np.concatenate([more, more[:5]]):
        cloud.grow(point)
    np.testing.assert_allclose(cloud.dense(), slow.gram(by_hand, [*more, *more[:5]]), atol=1e-14)


@pytest.mark.parametrize(
    ("f", "value", "message"),
    [
        ("gaussian", [0.0, np.nan, 0.0], "must be finite"),
        ("gaussian", [0.0, np.inf, 0.0], "must be finite"),
        ("gaussian", [0.0, 1.0], "must be of 3 numbers"),
        ("gaussian", ["x", "y", "z"], "must be numbers"),
        ("min", [0.0, 2.5, 0.0], r"\[-2, 2\]; got 2.5 in column 1"),
        (lambda x, t: float("nan"), 1.0, "must be finite"),
        (lambda x, t: -1.0, 1.0, "must be above 0"),
    ],
)
def test_a_point_refused_changes_nothing(f, value, message):
    side = KernelFunction(f, points=[] if callable(f) else POINTS).begin()
    before = side.state() if not callable(f) else None
    with pytest.raises((ValueError, TypeError), match=message):
        side.grow(value)
    if before is not None:
        np.testing.assert_array_equal(side.state()["points"], before["points"])
        assert side.size == 9 == side.grow(POINTS[0])


def test_functions_that_are_no_kernels_are_found_out():
    side = KernelFunction(lambda x, t: 1.0 if x == t else -0.9).begin()
    side.grow("a")
    side.grow("b")
    with pytest.raises(ValueError, match="positive semidefinite; with the point 'c'"):
        side.grow("c")
    assert side.size == 2
    # Points in a dependent position: rank 2, so that the fourth value is settled by the others.
    flat = {(0, 1): 0.0, (0, 2): 1.0, (1, 2): 1.0, (0, 3): 1.0, (1, 3): -1.0, (2, 3): 0.5}
    side = KernelFunction(
        lambda x, t: {0: 1.0, 1: 1.0, 2: 2.0, 3: 2.0}[x] if x == t else flat[min(x, t), max(x, t)]
    ).begin()
    for point in range(3):
        side.grow(point)
    with pytest.raises(ValueError, match="positive semidefinite"):
        side.grow(3)


def test_what_does_not_grow_says_so():
    for descriptor in (Identity(3), Kernel(GRAM), Mix(Kernel(GRAM))):
        side = descriptor.begin()
        with pytest.raises(ValueError, match=rf"knows {side.size} ids and takes no more; got 'new'"):
            side.grow("new")


def test_functions_scaled_by_a_radius():
    raw = KernelFunction("min", points=POINTS, r=2.5, normalize=False).begin()
    np.testing.assert_allclose(
        raw.dense(), slow.gram(lambda x, t: slow.min_kernel(x, t, 2.5), POINTS) / 2.5**3, atol=1e-15
    )
    linear = KernelFunction("linear", normalize=False, radius=2.0).begin()
    linear.grow([1.0])
    with pytest.raises(ValueError, match=r"at most radius=2; got 4\.1"):
        linear.grow([2.0])
    assert linear.size == 1
    with pytest.raises(ValueError, match="radius must be given"):
        KernelFunction("linear", normalize=False).begin()
    with pytest.raises(ValueError, match="radius must be given"):
        KernelFunction("min", normalize=False).begin()
