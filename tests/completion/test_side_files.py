"""Descriptors of side information in model files: frames, graphs and sparse matrices come back as plain data."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from lacunar.completion import Features, Graph, Identity, Kernel, KernelFunction, Mix
from lacunar.persistence import load_model, save_model

pl = pytest.importorskip("polars")  # it has no free-threaded wheel

RNG = np.random.default_rng(0)
GRAM = np.eye(4) + 0.5
RING = sp.coo_array(np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1))
FRAME = pd.DataFrame(
    {
        "job": pd.Categorical(["a", None, "b", "a"]),
        "zip": pd.Categorical([101, 202, 101, None]),
        "age": [20.0, np.nan, 31.0, 44.0],
        "new": pd.array([True, None, False, True], dtype="boolean"),
        "none": [None, None, None, None],
    },
    index=["ann", "bob", "cyd", "dan"],
)
POINTS = RNG.normal(size=(3, 2))

DESCRIPTORS = {
    "identity": Identity(3),
    "growing identity": Identity(),
    "kernel frame": Kernel(pd.DataFrame(GRAM, index=list("abcd"), columns=list("abcd"))),
    "kernel sparse": Kernel(sp.csc_array(GRAM)),
    "gaussian": KernelFunction(points=[tuple(p) for p in POINTS], ids=["x", "y", "z"]),
    "partition": KernelFunction("partition", points=np.array(["u", "v", "u"])),
    "frame": Features(FRAME, own=0.1),
    "polars": Features(pl.DataFrame({"job": ["a", None, "b"], "age": [1.0, 2.0, None]})),
    "codes": Features(np.array(["3", "1", "2", "3"])),
    "sparse features": Features(sp.csr_array(RNG.integers(0, 3, (5, 4)))),
    "graph": Graph(RING, "pd", ids=np.arange(6) * 10),
    "int64 graph": Graph(
        sp.csr_array((RING.tocsr().data, RING.tocsr().indices.astype(np.int64), RING.tocsr().indptr)), kind="pinv"
    ),
    "mixed graph": Mix(Graph(RING, method="sparse", kind="pinv"), info=0.5, const=0.3, own=0.2),
}


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_descriptors_survive_files_inside_others(name, tmp_path):
    descriptor = DESCRIPTORS[name]
    begun = descriptor.begin()
    save_model(Mix(descriptor), tmp_path / "side.lacunar")
    back = load_model(tmp_path / "side.lacunar")
    assert type(back.side) is type(descriptor)
    again = back.side.begin()
    assert (again.digest, again.ids, again.size) == (begun.digest, begun.ids, begun.size)
    assert again.grows == begun.grows
    if begun.size:
        np.testing.assert_array_equal(again.dense(), begun.dense())
    mixed = back.begin()
    mixed.grow_from(Mix(descriptor).begin().state())
    assert mixed.size == begun.size


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_plain_is_plain_already(name):
    plain = DESCRIPTORS[name].plain()
    assert plain.plain().begin().digest == plain.begin().digest == DESCRIPTORS[name].begin().digest


def test_networkx_graphs_survive_files(tmp_path):
    nx = pytest.importorskip("networkx")
    descriptor = Mix(Graph(nx.karate_club_graph(), kind="pinv"))
    save_model(descriptor, tmp_path / "side.lacunar")
    assert load_model(tmp_path / "side.lacunar").begin().digest == descriptor.begin().digest


def test_functions_are_no_plain_data(tmp_path):
    with pytest.raises(TypeError, match=r"side\.f of type function"):
        save_model(Mix(KernelFunction(lambda x, t: float(x == t))), tmp_path / "side.lacunar")


def outside_its_shape():
    sound = sp.csr_array(RING)
    broken = sp.csr_array((sound.data, sound.indices.copy(), sound.indptr), shape=(6, 6))
    broken.indices[3] = 77  # after SciPy's own check
    return broken


def test_a_forged_sparse_matrix_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as unchecked:
        unchecked.setattr(Graph, "plain", lambda self: self)
        save_model(Graph(outside_its_shape(), kind="pinv"), tmp_path / "side.lacunar")
    with pytest.raises(ValueError, match="not a sound model file"):
        load_model(tmp_path / "side.lacunar")


@pytest.mark.parametrize(("make", "name"), [(Graph, "adjacency"), (Kernel, "K"), (Features, "X")])
def test_numbers_outside_a_sparse_matrix_are_named(make, name):
    """SciPy adds, transposes and fills such matrices out of bounds."""
    with pytest.raises(ValueError, match=f"indices of {name} must be columns 0 to 5; got 77 in row 1"):
        make(outside_its_shape()).plain()
