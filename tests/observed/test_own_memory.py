"""Tables lie in memory that nobody else writes to: what the caller writes during or after a check reaches no table."""

import subprocess
import sys
import textwrap
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from lacunar import Observed, _core
from lacunar.completion import Graph, Kernel
from lacunar.lowrank import POPCA
from lacunar.observed import ObservedFile, build, contract, read_batches, table, write_batches
from lacunar.observed.build import Lists
from lacunar.observed.memory import is_frozen, is_private, mark_private, owned

FAR = 2**31 - 5


def triplets(n=1000, width=7):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, width))
    X[rng.random(X.shape) < 0.3] = np.nan
    rows, cols = np.nonzero(~np.isnan(X))
    return X, rows, cols, X[rows, cols]


def meddling(monkeypatch, module, name, *victims):
    """The core's function of that name, as the module sees it, writes to the victims as soon as it has looked."""
    look = getattr(_core, name)

    def call(*args):
        answer = look(*args)
        for victim in victims:
            victim[:] = FAR if victim.dtype.kind == "i" else np.inf
        return answer

    core = SimpleNamespace(**{each: getattr(_core, each) for each in dir(_core)})
    setattr(core, name, call)
    monkeypatch.setattr(module, "_core", core)


def sound(rows):
    """As the contract says; the core looks at the arrays themselves."""
    return _core.find_fault(rows.indptr, rows.indices, rows.values, rows.shape[1]) is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_are_copied_before_they_are_checked(dtype, monkeypatch):
    X, *_ = triplets()
    given = Observed.from_dense(X.astype(dtype))
    arrays = [np.array(each) for each in (given.indptr, given.indices, given.values)]
    meddling(monkeypatch, contract, "find_fault", *arrays)
    assert Observed(*arrays, given.shape) == given
    assert arrays[1].min() == FAR
    other = np.array(given.values)
    meddling(monkeypatch, contract, "find_fault", other)
    assert given.with_values(other) == given


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_matrices_are_copied_before_scipy_converts_them(kind, index, monkeypatch):
    X, *_ = triplets()
    given = Observed.from_dense(X)
    matrix = given.to_scipy().asformat(kind).copy()
    if kind == "coo":
        matrix.coords = tuple(each.astype(index) for each in matrix.coords)
        victims, check = [*matrix.coords, matrix.data], "_check_coordinates"
    else:
        matrix.indptr, matrix.indices = matrix.indptr.astype(index), matrix.indices.astype(index)
        victims, check = [matrix.indptr, matrix.indices, matrix.data], "_check_offsets"
    look = getattr(contract, check)

    def call(*args):
        look(*args)
        for victim in victims:
            victim[:] = FAR

    monkeypatch.setattr(contract, check, call)
    assert Observed.from_scipy(matrix) == given
    assert victims[0].min() == FAR


def test_kernels_and_graphs_are_copied_before_scipy_converts_them(monkeypatch):
    ring = sp.csr_array(np.roll(np.eye(8), 1, axis=1) + np.roll(np.eye(8), -1, axis=1))
    look = contract._check_offsets
    for side, matrix in ((Kernel, sp.csr_array(ring + 3 * sp.eye_array(8))), (Graph, ring.copy())):

        def call(X, name, matrix=matrix):
            look(X, name)
            matrix.indices[:] = FAR

        monkeypatch.setattr(contract, "_check_offsets", call)
        side(matrix).begin()  # which would read far outside of its arrays
        assert matrix.indices.min() == FAR


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize(("attribute", "cut"), [("data", slice(-1)), ("indptr", slice(-1))])
def test_arrays_too_short_for_their_matrix_are_refused(kind, attribute, cut):
    matrix = Observed.from_dense(triplets()[0]).to_scipy().asformat(kind).copy()
    setattr(matrix, attribute, getattr(matrix, attribute)[cut])
    with pytest.raises(ValueError, match=r"X must have .* offsets and a value for every index"):
        Observed.from_scipy(matrix)


def test_coordinates_written_after_their_matrix_was_made_are_refused():
    matrix = Observed.from_dense(triplets()[0]).to_scipy().tocoo()
    matrix.row.flags.writeable = True
    matrix.row[3] = 10**6
    with pytest.raises(ValueError, match=r"row of X must be numbers 0 to 999, .* got 1000000 in entry 3"):
        Observed.from_scipy(matrix)
    with pytest.raises(ValueError, match="row of X must be numbers 0 to 999"):
        POPCA(1).fit(matrix)


# -- Arrow ------------------------------------------------------------------------------------------------------------


def lists(cols, values, counts):
    pa = pytest.importorskip("pyarrow")
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    columns = {"indices": cols, "values": values}
    return pa.RecordBatch.from_pydict({k: pa.ListArray.from_arrays(offsets, pa.array(v)) for k, v in columns.items()})


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lists_are_copied_out_of_the_callers_buffers(order, index, dtype, monkeypatch):
    X, rows, cols, values = triplets()
    if order == "descending":
        back = np.lexsort((-cols, rows))
        cols, values = cols[back], values[back]
    cols, values = cols.astype(index), values.astype(dtype)
    expected = Observed.from_dense(X.astype(dtype))
    batch = lists(cols, values, expected.row_counts)
    before, after = lists(cols.copy(), values.copy(), expected.row_counts), (cols, values)
    meddling(monkeypatch, build, "find_fault", *after)
    ((came, _),) = read_batches(batch, size=len(X), lists=Lists(X.shape[1]))
    assert after[0].min() == FAR
    monkeypatch.undo()
    ((expected, _),) = read_batches(before, size=len(X), lists=Lists(X.shape[1]))
    assert came == expected
    assert sound(came)


# -- what counts as ours ----------------------------------------------------------------------------------------------


def test_a_read_only_view_of_writable_memory_is_not_believed(tmp_path):
    room = bytearray(80)
    assert not is_frozen(np.frombuffer(memoryview(room).toreadonly()))
    assert not is_frozen(np.frombuffer(memoryview(np.zeros(10)).toreadonly()))
    assert is_frozen(np.frombuffer(bytes(80)))
    assert is_frozen(np.frombuffer(memoryview(bytes(80))))
    np.save(tmp_path / "a.npy", np.zeros(10))
    assert is_frozen(np.load(tmp_path / "a.npy", mmap_mode="r")[2:])
    assert not is_frozen(np.load(tmp_path / "a.npy", mmap_mode="r+"))
    pa = pytest.importorskip("pyarrow")
    numbers = np.zeros(10)
    assert not is_frozen(np.frombuffer(pa.py_buffer(numbers).slice(8)))
    assert not is_private(pa.array(numbers).to_numpy())


def test_what_is_not_said_to_be_ours_is_copied():
    numbers = np.arange(5.0)
    copied = owned(numbers)
    assert is_private(copied)
    assert not np.shares_memory(copied, numbers)
    assert np.shares_memory(owned(copied[1:]), copied)
    assert np.shares_memory(mark_private(numbers), numbers)
    assert owned(copied, np.float32).dtype == np.float32
    trusted = Observed._trusted(np.array([0, 5]), np.arange(5, dtype=np.int32), numbers, (1, 5))
    numbers[:] = 7.0
    assert trusted.values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_a_table_cannot_be_made_writable():
    X, *_ = triplets()
    given = Observed.from_dense(X)
    for rows in (given, given[3:9], given[[1, 5]], given.astype(np.float32), Observed.vstack([given, given])):
        for array in (rows.indptr, rows.indices, rows.values):
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True


def test_nothing_that_is_ours_is_copied_again(tmp_path, monkeypatch):
    X, rows, cols, values = triplets()
    frame = pytest.importorskip("pandas").DataFrame(X)
    scipy = Observed.from_dense(X).to_scipy()
    write_batches(tmp_path / "rows", [(Observed.from_dense(X), X[:, 0])])

    def never(array, dtype=None):
        raise AssertionError("a table of ours was copied")

    monkeypatch.setattr(table, "owned", never)
    given = Observed.from_dense(X)
    for other in (
        Observed.from_scipy(scipy),
        Observed.from_scipy(scipy.tocsc()),
        Observed.from_frame(frame),
        Observed.from_triplets(rows, cols, values, shape=X.shape),
        Observed.from_triplets(rows[::-1], cols[::-1], values[::-1], shape=X.shape),
        Observed.load(tmp_path / "rows"),
        Observed.vstack([given[:10], given[10:]]),
        given[np.arange(len(X))],
        Observed(given.indptr, given.indices, given.values, given.shape),
        given.astype(np.float32).astype(np.float64).with_values(given.values),
        Observed.vstack(batch[0] for batch in ObservedFile(tmp_path / "rows")),
    ):
        assert other == given
    for of in (given, ObservedFile(tmp_path / "rows")):
        POPCA(2).fit(of).transform(given)


# -- triplets ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sorted", "unsorted", "missing"])
def test_triplets_that_change_while_they_are_read_break_nothing(mode):
    # In a process of its own: what it guards against corrupts the heap. tests/cpp changes them between the two
    # readings.
    code = f"""
        import sys, threading, time
        import numpy as np
        from lacunar import Observed, _core

        n, mode = 200_000, {mode!r}
        row, col, value, stop = np.arange(n), np.zeros(n, np.int64), np.ones(n), False
        if mode != "sorted":
            row = row[::-1].copy()
        good = row[n // 2]

        def write():
            while not stop:
                if mode == "missing":
                    value[:] = 1.0
                    value[::2] = np.nan
                else:
                    row[n // 2] = 2**40
                    row[n // 2] = good
                    time.sleep(0)

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        until = time.monotonic() + 2
        while time.monotonic() < until:
            try:
                rows = Observed.from_triplets(row, col, value, shape=(n, 1))
            except (ValueError, RuntimeError):
                continue
            assert _core.find_fault(rows.indptr, rows.indices, rows.values, 1) is None
        stop = True
        thread.join()
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=120, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_a_change_of_triplets_is_named(monkeypatch):
    core = SimpleNamespace(triplet_entries=lambda *args: None)
    monkeypatch.setattr(build, "_core", core)
    with pytest.raises(RuntimeError, match="row, col and value must not change while they are read"):
        Observed.from_triplets([0], [0], [1.0])


def test_threads_may_write_to_what_became_a_table():
    X, *_ = triplets(20_000)
    given = Observed.from_dense(X)
    arrays = [np.array(each) for each in (given.indptr, given.indices, given.values)]
    stop = threading.Event()

    def write():
        last = arrays[1][-1]
        while not stop.wait(1e-4):
            arrays[1][-1] = FAR
            arrays[1][-1] = last

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(100):
            try:
                rows = Observed(*arrays, given.shape)
            except ValueError:
                continue  # the copy has what was written
            assert sound(rows)
    finally:
        stop.set()
        writer.join()
