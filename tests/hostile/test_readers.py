"""Hostile files: what was found by fuzzing stays refused, and a short round of every harness in `fuzz` finds nothing."""

import io
import json
import os
import zipfile

import numpy as np
import pytest

if os.name == "nt":
    pytest.skip("the harness limits memory and forks", allow_module_level=True)
pytest.importorskip("pyarrow")

from fuzz import archives, models
from fuzz.oracle import Finding, judge
from fuzz.targets import TARGETS

from lacunar import Observed
from lacunar.comparison import UserError, load_problem, read_table
from lacunar.datasets import fetch_dataset
from lacunar.kernels import KernelForm
from lacunar.lowrank import SLRMRegressor
from lacunar.observed import Triplets, read_batches
from lacunar.observed.container import read_npz
from lacunar.persistence import load_model, save_model


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_short_round_finds_nothing(name, tmp_path):
    import random
    import warnings

    with warnings.catch_warnings(action="ignore"):  # models of few rows
        seeds = TARGETS[name].seeds()
    rng = random.Random(os.environ.get("LACUNAR_FUZZ", "0") + name)
    for data in [*seeds, *(TARGETS[name].mutate(rng.choice(seeds), rng, seeds) for _ in range(40))]:
        judge(TARGETS[name], data, tmp_path, slack=10)


def test_the_judge_sees_what_it_should(tmp_path):
    from dataclasses import replace

    calm = TARGETS["svmlight"]
    for read, complaint in [
        (lambda place: {}["x"], "KeyError leaks"),
        (lambda place: int("x"), "does not name the file"),
        (lambda place: np.zeros(10**8), "allocated"),
        (lambda place: os.system("true"), "os.system"),
    ]:
        with pytest.raises(Finding, match=complaint):
            judge(replace(calm, read=read, use=lambda value: None), b"", tmp_path)


# -- archives ---------------------------------------------------------------------------------------------------------


def forged(path, change):
    """A file of one array whose header says what `change` makes of it."""
    arrays = {"a": np.arange(3.0)}
    header = {"format_version": 1, "kind": "model", "arrays": {}, "content": {"shape": [1, 3]}}
    data = archives.pack(header, arrays)
    header, arrays = archives.unpack(data)
    change(header, arrays)
    path.write_bytes(archives.pack(header, arrays, listed=False))


@pytest.mark.parametrize(
    "change",
    [
        lambda h, a: h.update(format_version=10**4000),
        lambda h, a: h["arrays"]["a"].update(shape=[1] * 70),
        lambda h, a: h["arrays"]["a"].update(shape=[0, 2**61, 2**61]),
        lambda h, a: h["arrays"]["a"].update(dtype="<f3"),
    ],
)
def test_headers_that_once_leaked_errors(change, tmp_path):
    forged(tmp_path / "t", change)
    with pytest.raises(ValueError, match="t' is not a sound"):
        load_model(tmp_path / "t")


def test_a_number_of_too_many_digits(tmp_path):
    with zipfile.ZipFile(tmp_path / "t", "w") as members:
        members.writestr("header.json", '{"format_version": ' + "9" * 5000 + "}")
    with pytest.raises(ValueError, match="not a sound"):
        load_model(tmp_path / "t")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no plain file"):
        Observed.load(tmp_path / "pipe")


# -- models -----------------------------------------------------------------------------------------------------------


def forge(tmp_path, family, form, change):
    import warnings

    path = tmp_path / "model"
    with warnings.catch_warnings(action="ignore"):
        save_model(models.MODELS[family][form](), path)
    header, arrays = archives.unpack(path.read_bytes())
    change(header["content"]["model"], arrays)
    path.write_bytes(archives.pack(header, arrays))
    return path


def refused(tmp_path, family, form, change):
    path = forge(tmp_path, family, form, change)
    with pytest.raises(ValueError, match="model' is not a sound"):
        load_model(path)


def test_a_graph_out_of_a_file_never_reaches_scipys_converters(tmp_path):
    """A segmentation fault, once: indices of a saved graph were trusted."""

    def change(model, arrays):
        adjacency = model["params"]["cols"]["params"]["adjacency"]
        arrays[adjacency["indices"]][:] = 2**30

    refused(tmp_path, "completion", "sparse graph", change)


def test_a_law_that_can_draw_nothing(tmp_path):
    """An endless loop, once: a law of NaN draws the same attribute for ever."""
    refused(tmp_path, "active", "popca", lambda m, a: a[m["state"]["laws_"]["name"]].fill(np.nan))
    model = models.MODELS["active"]["popca"]()
    model.laws_[:] = [1, 0, 0, 0]
    with pytest.raises(ValueError, match="chance to be drawn"):
        model.ask()


def test_slots_beyond_the_pool(tmp_path):
    """Memory that is not the model's would be read and written."""

    def change(model, arrays):
        items = dict(model["state"]["state_"]["items"])
        arrays[items["slot"]["name"]][:] = 10**6

    with pytest.raises(ValueError, match=r"state_\['slot'\] must give each of 4 places of the pool"):
        load_model(forge(tmp_path, "subspace", "petrels rows", change))


def test_steep_kernels_do_not_hang():
    with pytest.raises(ValueError, match="at most 1000"):
        KernelForm(degree=10**9)
    assert np.isfinite(KernelForm(gamma=1e15, count_scale=4.0).table(3)).all()


@pytest.mark.parametrize("raw", [b"\x02", b"\xff"])
def test_truth_values_are_two(raw, tmp_path):
    arrays = {"seen": np.frombuffer(raw, np.bool_)}
    (tmp_path / "m").write_bytes(
        archives.pack({"format_version": 1, "kind": "model", "arrays": {}, "content": {}}, arrays)
    )
    with pytest.raises(ValueError, match="truth values"):
        load_model(tmp_path / "m")


# -- .npz, text and Parquet -------------------------------------------------------------------------------------------


def npz(path, **members):
    path.write_bytes(
        archives.zipped({f"{n}.npy": m if isinstance(m, bytes) else archives.npy(m) for n, m in members.items()})
    )
    return path


def claim(shape, dtype="<f8"):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False, "shape": shape})
    return head.getvalue()


@pytest.mark.parametrize(
    "content", [claim((2**40,)), claim((2**62, 2**62)), claim((3,), "|O"), claim((2,), "<U2000000000"), b"\x93NUMPY"]
)
def test_npz_members_that_claim_more_than_they_hold(content, tmp_path):
    path = npz(tmp_path / "hepatitis.npz", X=content)
    for read, error in (
        (lambda: read_npz(path), ValueError),
        (lambda: read_table(str(path)), UserError),
        (lambda: fetch_dataset("hepatitis", data_home=tmp_path), ValueError),
    ):
        with pytest.raises(error, match=r"hepatitis\.npz"):
            read()


@pytest.mark.parametrize(
    ("indices", "indptr"), [([0, 2**30], [0, 1, 2]), ([0, -5], [0, 1, 2]), ([0, 1], [0, 2**20, 2])]
)
def test_sparse_npz_files_never_reach_scipys_converters(indices, indptr, tmp_path):
    """A segmentation fault, once."""
    parts = {"indptr": np.array(indptr), "indices": np.array(indices), "values": np.ones(2), "shape": np.array([2, 3])}
    common = {"y": np.arange(2), "targets": np.array(["y"]), "tasks": np.array(["binary"])}
    path = npz(tmp_path / "hepatitis.npz", **parts, **common)
    with pytest.raises(UserError, match=r"hepatitis\.npz"):
        read_table(str(path))
    with pytest.raises(ValueError, match=r"hepatitis\.npz"):
        fetch_dataset("hepatitis", data_home=tmp_path)


def test_one_long_cell_does_not_widen_all(tmp_path):
    """Four bytes a character in every row of the column, once: gigabytes out of a file of half a megabyte."""
    import tracemalloc

    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "x" * 100_000 + ",0\n" + "z,1\n" * 20_000)
    tracemalloc.start()
    try:
        load_problem(str(path), "y")
        assert tracemalloc.get_traced_memory()[1] < 100 * path.stat().st_size
    finally:
        tracemalloc.stop()
    with pytest.raises(UserError, match="no class"):
        load_problem(str(path), "a")


@pytest.mark.slow
def test_many_columns_take_no_time_squared(tmp_path):
    path = tmp_path / "t.csv"
    names = [f"n{k}" for k in range(50_000)]
    path.write_text(",".join([*names, "n49999"]) + "\n" + ",".join("1" * 50_001) + "\n")
    with pytest.raises(UserError, match="'n49999' occurs more than once"):
        read_table(str(path))
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * 50_000) + "\n" + ",".join(["2"] * 50_000) + "\n")
    assert load_problem(str(path)).X.shape == (2, 49_999)


@pytest.mark.parametrize("line", ["1 99999999:1", "1 2000000:1"])
def test_one_column_number_does_not_ask_for_all_memory(line, tmp_path):
    (tmp_path / "t.svmlight").write_text(f"{line}\n")
    with pytest.raises(UserError, match="too empty"):
        read_table(str(tmp_path / "t.svmlight"))


def test_svmlight_of_another_encoding_names_the_line(tmp_path):
    (tmp_path / "t").write_bytes(b"1 1:2 # caf\xe9\n0 1:\xff\n")
    with pytest.raises(ValueError, match=r"t', line 2"):
        Observed.from_svmlight(tmp_path / "t")
    (tmp_path / "t").write_bytes(b"1 1:2 # caf\xe9\n")
    assert Observed.from_svmlight(tmp_path / "t")[0].shape == (1, 1)
    with pytest.raises(ValueError, match="t'"):
        Observed.from_svmlight(tmp_path / "t", n_features=0)


def triplets(path, row, col=None):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"row": row, "col": col or [0] * len(row), "value": [1.0] * len(row)}), path)
    return path


def test_parquet_that_is_none_or_leads_into_the_desert(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 nothing PAR1")
    for read in (lambda: Observed.from_parquet(path), lambda: list(read_batches(path))):
        with pytest.raises(ValueError, match=r"t\.parquet' cannot be read"):
            read()
    triplets(path, ["a", "b"])
    with pytest.raises(ValueError, match=r"t\.parquet' cannot be read"):
        Observed.from_parquet(path)
    triplets(path, [0, 2**40])
    with pytest.raises(ValueError, match="Renumber the rows"):
        Observed.from_parquet(path)
    with pytest.raises(ValueError, match="Renumber the rows"):
        list(read_batches(path, triplets=Triplets(2)))
    with pytest.raises(FileNotFoundError):
        Observed.from_parquet(tmp_path / "absent")


def test_downloads_of_something_else_are_refused_by_name(tmp_path):
    from fuzz.targets import download

    (tmp_path / "hepatitis").write_bytes(json.dumps({"error": 404}).encode())
    with pytest.raises(ValueError, match=r"hepatitis: https.* is not this set"):
        download("hepatitis", tmp_path / "hepatitis")


@pytest.mark.parametrize("width", [True, 3, -1])
def test_a_model_whose_parts_do_not_fit_is_refused(tmp_path, width):
    """Wider rows than the basis has, which the core would read beyond it; found by fuzzing."""
    X = np.arange(40.0).reshape(10, 4) % 7
    model = SLRMRegressor(2).fit(X, X[:, 0])
    model.n_features_in_ = width
    if width == 3:  # and columns to suit
        for name in ("mean_", "scale_", "observed_columns_"):
            setattr(model, name, getattr(model, name)[:3])
    save_model(model, tmp_path / "forged")
    with pytest.raises(ValueError, match="not a sound model file"):
        load_model(tmp_path / "forged")


@pytest.mark.parametrize("digits", [300, 5001])
def test_whole_numbers_of_many_digits_are_read_or_refused(digits, tmp_path):
    """pandas raised an error of its own at 4,300 of them. Found by fuzzing."""
    path = tmp_path / "t.csv"
    path.write_text(
        "a,b,y\n" + "\n".join(f"{'1' * digits if k == 3 else k},x{k % 3} 1,{k % 2}" for k in range(12)) + "\n"
    )
    if digits == 300:
        assert read_table(str(path)).frame["a"].astype(float).max() == float("1" * digits)
    else:
        with pytest.raises(UserError):
            load_problem(str(path))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("intercept", ["column", "bias"])
def test_a_completion_with_more_outputs_than_classes_is_refused(intercept, tmp_path):
    from lacunar.papers.karma import MatrixCompletionClassifier

    X = np.random.default_rng(0).normal(size=(24, 4))
    model = MatrixCompletionClassifier(intercept, max_iter=5, random_state=0).fit(X, np.arange(24) % 3)
    save_model(model, tmp_path / "m")
    assert len(load_model(tmp_path / "m").predict(X)) == 24
    model.classes_ = model.classes_[:2]
    save_model(model, tmp_path / "m")
    with pytest.raises(ValueError, match="label_components_ must be of shape"):
        load_model(tmp_path / "m")


def test_a_completion_of_a_rank_beyond_its_matrix_is_refused(tmp_path):
    from lacunar.papers.karma import MatrixCompletionRegressor

    X = np.random.default_rng(0).normal(size=(24, 4))
    model = MatrixCompletionRegressor("bias", lam=1.0, mu=1e-2, random_state=0).fit(X, X[:, 0])
    model.components_, model.label_components_ = np.ones((4097, 4)), np.ones((4097, 1))
    model.rank_ = 4097  # whose products would take half a gigabyte
    save_model(model, tmp_path / "m")
    with pytest.raises(ValueError, match="components_ must have at most 6 rows"):
        load_model(tmp_path / "m")
