"""Model files: what comes back is what went in, and no file makes `load_model` do anything but load or refuse."""

import json
import os
import pickle
import random
import zipfile

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import lacunar
from lacunar import Observed
from lacunar.observed.container import read_archive, write_archive
from lacunar.persistence import load_model, registry, save_model


class Toy(BaseEstimator):
    """Every kind of state a family may keep."""

    def __init__(self, depth=3, weights=None, inner=None, dtype=None):
        self.depth, self.weights, self.inner, self.dtype = depth, weights, inner, dtype

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        self.table_ = Observed.from_dense(X)
        self.classes_ = np.array(["a", "ß", "long label"], dtype=object)
        self.text_ = np.array(["x", "yy"])
        self.coef_ = np.asfortranarray(X[:, :2])
        self.single_ = np.float32(0.1)
        self.mixed_ = {"grid": [1, 2.5, float("inf"), None, True], 3: (np.int64(4), "s"), "empty": np.zeros((0, 4))}
        self.converged_ = False
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.coef_[0].sum())


@pytest.fixture(autouse=True)
def known_toy(monkeypatch):
    monkeypatch.setitem(registry.CLASSES, "lacunar.Toy", (__name__, "Toy"))


@pytest.fixture
def toy():
    X = np.array([[1.0, 0.0, np.nan], [np.nan, 2.0, -1.0]])
    return Toy(weights={"a": 2.0, 1: 0.5}, inner=Toy(depth=7), dtype=np.float32).fit(np.nan_to_num(X, nan=0.5))


def assert_same(a, b):
    """Equal values of equal types, all the way down; NaN equals NaN."""
    assert type(a) is type(b)
    if isinstance(a, np.ndarray | np.generic):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, BaseEstimator):
        assert_same(vars(a), vars(b))
    elif isinstance(a, Observed):
        for name in ("shape", "indptr", "indices", "values"):
            assert_same(np.array(getattr(a, name)), np.array(getattr(b, name)))
    else:
        assert a == b


def test_round_trip_keeps_every_kind_of_state(toy, tmp_path):
    save_model(toy, tmp_path / "m.lacunar")
    back = load_model(tmp_path / "m.lacunar")
    assert_same(vars(toy), vars(back))
    assert back.coef_.flags.f_contiguous
    assert [p.name for p in tmp_path.iterdir()] == ["m.lacunar"]


def test_unfitted_round_trip(tmp_path):
    save_model(Toy(depth=9), tmp_path / "m.lacunar")
    assert vars(load_model(tmp_path / "m.lacunar")) == vars(Toy(depth=9))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda m: m.set_params(weights=len), r"Toy.weights of type .* Use numbers, strings"),
        (
            lambda m: m.set_params(inner=BaseEstimator()),
            r"Toy.inner of type BaseEstimator.* other libraries by joblib or skops",
        ),
        (lambda m: setattr(m, "_hidden", 1), "Toy._hidden"),
        (lambda m: setattr(m, "bad_", np.array([1, "a"], dtype=object)), "Toy.bad_"),
        (lambda m: setattr(m, "bad_", [1j]), r"Toy.bad_\[0\]"),
    ],
)
def test_what_is_no_plain_data_is_named_and_leaves_the_old_file(toy, tmp_path, change, named):
    path = tmp_path / "m.lacunar"
    path.write_bytes(b"old")
    change(toy)
    with pytest.raises(TypeError, match=named):
        save_model(toy, path)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_other_classes_are_refused(tmp_path):
    with pytest.raises(TypeError, match=r"BaseEstimator.*Known: "):
        save_model(BaseEstimator(), tmp_path / "m.lacunar")
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "m.lacunar")


def tampered(path, change):
    """Rewrites a model file, checksums and all, after changing its header."""
    header, arrays = read_archive(path, kind="model")
    change(header, arrays)
    write_archive(path, kind="model", header=header, arrays=arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda h, a: h.update(model_version=99),
        lambda h, a: h.update(extra=1),
        lambda h, a: h.update(model=3),
        lambda h, a: h["model"].update(class_name="subprocess.Popen"),
        lambda h, a: h["model"].update(class_name=["lacunar.Toy"]),
        lambda h, a: h["model"].update(t="__init__"),
        lambda h, a: h["model"].update(surprise=1),
        lambda h, a: h["model"]["params"].update(unknown=1),
        lambda h, a: h["model"]["state"].update(predict=1),
        lambda h, a: h["model"]["state"].update({"__class__": 1}),
        lambda h, a: h["model"]["state"].update({"_private": 1}),
        lambda h, a: h["model"]["state"].update(depth=1),
        lambda h, a: h["model"]["state"].update(n_features_in_=7),
        lambda h, a: h["model"]["state"].update(n_features_in_=-1),
        lambda h, a: h["model"]["state"].update(n_features_in_="3"),
        lambda h, a: h["model"]["state"].pop("coef_"),
        lambda h, a: h["model"]["state"].update(coef_=None),
        lambda h, a: h["model"]["state"]["coef_"].update(name="a999"),
        lambda h, a: h["model"]["state"]["table_"].update(shape=[2, 1]),
        lambda h, a: h["model"]["state"]["table_"].update(shape=[2]),
        lambda h, a: h["model"]["state"]["table_"].update(indices=h["model"]["state"]["table_"]["indptr"]),
        lambda h, a: h["model"]["state"].update(kind_={"t": "uuid", "value": "x"}),
        lambda h, a: h["model"]["state"].update(kind_={"t": "decimal", "value": "x"}),
        lambda h, a: h["model"]["state"].update(kind_={"t": "date", "value": 3}),
        lambda h, a: h["model"]["state"].update(kind_={"t": "frozenset", "items": [{"t": "list", "items": []}]}),
        lambda h, a: a.update(stray=np.zeros(1)),
        lambda h, a: a.update({h["model"]["state"]["table_"]["indices"]: np.full(6, 9, dtype=np.int32)}),
        lambda h, a: a.update({h["model"]["state"]["table_"]["indptr"]: np.array([0, 2**40, 6])}),
    ],
)
def test_forged_files_are_refused(toy, tmp_path, change):
    path = tmp_path / "m.lacunar"
    save_model(toy, path)
    tampered(path, change)
    with pytest.raises(ValueError, match=r"m\.lacunar"):
        load_model(path)


@pytest.mark.parametrize("version", [0, 2, 99])
def test_files_of_another_version_are_refused(toy, tmp_path, version):
    path = tmp_path / "m.lacunar"
    save_model(toy, path)
    tampered(path, lambda h, a: h.update(model_version=version))
    with pytest.raises(ValueError, match=rf"must be a model file of version 1; got version '{version}'"):
        load_model(path)


def test_deep_nesting_is_refused(toy, tmp_path):
    path = tmp_path / "m.lacunar"
    save_model(toy, path)
    node = 1
    for _ in range(200):
        node = {"t": "list", "items": [node]}
    tampered(path, lambda h, a: h["model"]["state"].update(deep_=node))
    with pytest.raises(ValueError, match="nests deeper"):
        load_model(path)


class Bomb:
    def __reduce__(self):
        return os.abort, ()


def test_pickles_do_not_run(tmp_path):
    pickle_file = tmp_path / "m.lacunar"
    pickle_file.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="sound"):
        load_model(pickle_file)
    spec = {"a0": {"dtype": "|O", "shape": [1], "crc32": 0}}
    with zipfile.ZipFile(pickle_file, "w") as members:
        content = {"model_version": 1, "lacunar": "0", "sklearn": "0", "model": None}
        members.writestr(
            "header.json", json.dumps({"format_version": 1, "kind": "model", "arrays": spec, "content": content})
        )
        with members.open("a0.npy", "w") as stream:
            np.lib.format.write_array(stream, np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="a0"):
        load_model(pickle_file)


def survives(path, original):
    try:
        back = load_model(path)
    except ValueError:
        return
    assert_same(vars(original), vars(back))


@pytest.mark.parametrize("seed", range(8))
def test_damaged_files_load_equal_or_are_refused(toy, tmp_path, seed):
    path, draw = tmp_path / "m.lacunar", random.Random(seed)
    save_model(toy, path)
    sound = path.read_bytes()
    for _ in range(60):
        broken = bytearray(sound)
        for _ in range(draw.choice([1, 1, 2, 8])):
            broken[draw.randrange(len(broken))] ^= 1 << draw.randrange(8)
        if draw.random() < 0.25:
            del broken[draw.randrange(len(broken)) :]
        path.write_bytes(broken)
        survives(path, toy)


def test_version_written_is_ours(toy, tmp_path):
    save_model(toy, tmp_path / "m.lacunar")
    header, _ = read_archive(tmp_path / "m.lacunar", kind="model")
    assert header["lacunar"] == lacunar.__version__
