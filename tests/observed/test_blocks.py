"""Blocks of a file of rows: the codec against its slow twin, what a hostile block may say, and the file around them."""

import os
import subprocess
import sys
import threading
import zlib

import numpy as np
import pytest
from reference import blocks as slow

from lacunar import Observed, _core
from lacunar.lowrank import POPCA, SLRMRegressor
from lacunar.observed import ObservedFile, read_batches, write_batches
from lacunar.observed import blocks as fast

RNG = np.random.default_rng(0)
SHAPES = {  # rows, columns, share: short and long gaps, escapes of both kinds, whole rows, empty rows, no entries, no columns
    "dense": (40, 23, 1.0),
    "short gaps": (300, 90, 0.1),
    "long rows": (3, 5000, 0.3),
    "escapes": (500, 3000, 0.01),
    "wide": (400, 90_000, 3e-4),
    "widest": (50, 2**31 - 1, 2e-8),
    "nothing seen": (30, 7, 0.0),
    "one column": (100, 1, 0.5),
    "no columns": (4, 0, 0.0),
}


def table(shape, dtype=np.float64, draw=RNG.normal):
    n, d, share = SHAPES[shape]
    rows = [np.unique(RNG.integers(0, max(d, 1), RNG.poisson(share * d))) for _ in range(n)]
    if share == 1:
        rows = [np.arange(d)] * n
    rows[0] = rows[0][:0] if share < 1 else rows[0]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return Observed(indptr, np.concatenate(rows).astype(np.int32), draw(size=indptr[-1]).astype(dtype), (n, d))


def encoded(rows, precision="lossless"):
    data, size, lost = _core.encode_block(*arrays(rows), rows.shape[1], fast.PRECISIONS.index(precision))
    return data, size, lost


def arrays(rows):
    return rows.indptr, rows.indices, rows.values


def decoded(data, rows):
    made = tuple(np.full_like(each, 77) for each in arrays(rows))
    _core.decode_block(data, rows.shape[1], *made)
    return made


def same(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("precision", fast.PRECISIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_both_ways_as_the_slow_twin(shape, dtype, precision):
    rows = table(shape, dtype)
    data, size, lost = encoded(rows, precision)
    found = decoded(data, rows)
    gap_bytes, kind = (int(each) for each in data[25:27])
    if rows.shape[1] < 10**6:  # the twin counts all columns
        assert data.tobytes() == slow.encode(*arrays(rows), rows.shape[1], gap_bytes=gap_bytes, kind=kind)
        same(found, slow.decode(data.tobytes(), rows.shape[1], dtype))
    same(found[:2], arrays(rows)[:2])
    if precision == "lossless":
        same(found[2:], arrays(rows)[2:])
    elif rows.nnz:
        error = np.sqrt(np.sum((found[2] - rows.values.astype(float)) ** 2) / np.sum(rows.values.astype(float) ** 2))
        np.testing.assert_allclose(np.sqrt(lost / size), error, rtol=1e-6)
        assert error < {slow.HALVES: 5e-4, slow.SCALED: 2e-2}[kind]


@pytest.mark.parametrize("gap_bytes", [0, 1, 2])
@pytest.mark.parametrize("shape", ["dense", "short gaps", "long rows", "escapes", "wide", "nothing seen"])
def test_every_kind_of_columns_is_read(shape, gap_bytes):
    rows = table(shape)
    data = slow.encode(*arrays(rows), rows.shape[1], gap_bytes=gap_bytes, kind=slow.DOUBLES)
    same(decoded(np.frombuffer(data, np.uint8).copy(), rows), arrays(rows))
    twice = 0 if gap_bytes else rows.shape[0] * -(-rows.shape[1] // 8)  # bits, which are slow to read, count twice
    assert len(encoded(rows)[0]) <= len(data) + twice, "the writer takes the shortest"


@pytest.mark.parametrize(
    ("draw", "kind", "bytes_each"),
    [
        (lambda size: RNG.integers(-127, 128, size), slow.WHOLE, 1),
        (lambda size: np.where(RNG.random(size) < 0.5, -0.0, 1.0), slow.HALVES, 2),
        (lambda size: RNG.choice([65504.0, -(2.0**-24), 2.0**-14, 0.5, 1e-7 * 0], size), slow.HALVES, 2),
        (lambda size: RNG.normal(size=size).astype(np.float32), slow.FLOATS, 4),
        (lambda size: RNG.choice([1e300, 5e-324, 0.1], size), slow.DOUBLES, 8),
    ],
)
def test_lossless_values_take_the_fewest_bytes_that_hold_them(draw, kind, bytes_each):
    rows = table("short gaps", draw=draw)
    data = encoded(rows)[0]
    assert data[26] == (
        slow.FLOATS if 65504.0 in rows.values else kind
    )  # the largest half rounds to itself and is left out
    found = decoded(data, rows)[2]
    np.testing.assert_array_equal(found.view(np.uint64), rows.values.view(np.uint64))
    assert len(data) >= bytes_each * rows.nnz


def test_float16_rounds_as_numpy_does():
    values = np.concatenate(
        [RNG.normal(size=20_000) * 10.0 ** RNG.integers(-9, 4, 20_000), [0.0, -0.0, 6e-8, 2.9e-8, 2048.5, 2049.5]]
    )
    values = values[np.abs(values) < 60_000].astype(np.float32)
    rows = Observed(np.array([0, len(values)]), np.arange(len(values), dtype=np.int32), values, (1, len(values)))
    found = decoded(encoded(rows, "float16")[0], rows)[2]
    np.testing.assert_array_equal(found.view(np.uint32), values.astype(np.float16).astype(np.float32).view(np.uint32))


def test_what_float16_and_int8_cannot_hold_stays_exact_or_finer():
    rows = table("short gaps")
    far = rows.with_values(np.where(np.arange(rows.nnz) == 5, 7e4, rows.values))
    assert encoded(far, "float16")[0][26] == slow.DOUBLES
    assert encoded(rows.with_values(np.full(rows.nnz, 1e300)), "int8")[0][26] == slow.DOUBLES
    assert encoded(table("wide"), "int8")[0][26] == slow.HALVES, "scales of so many columns would be most of it"


@pytest.mark.parametrize("isa", ["base", "v3", "v4"])
def test_every_instruction_set_reads_the_same(isa, tmp_path):
    tables = [table(shape) for shape in SHAPES if shape != "widest"]
    for k, rows in enumerate(tables):
        rows.save(tmp_path / f"{k}")
    code = (
        "import sys; from lacunar import Observed; [Observed.load(each).save(each + '.again') for each in sys.argv[1:]]"
    )
    names = [str(tmp_path / f"{k}") for k in range(len(tables))]
    done = subprocess.run(
        [sys.executable, "-c", code, *names], env=os.environ | {"LACUNAR_ISA": isa}, capture_output=True, check=False
    )
    if b"asks for more than this processor" in done.stderr:
        pytest.skip(f"this processor or build has no {isa}")
    assert done.returncode == 0, done.stderr
    for rows, name in zip(tables, names, strict=True):
        assert Observed.load(name + ".again") == rows


# -- hostile blocks ---------------------------------------------------------------------------------------------------


def forged(shape="short gaps", gap_bytes=1, kind=slow.DOUBLES, **sections):
    """A sound block, and where its sections begin."""
    rows = table(shape)
    data = np.frombuffer(slow.encode(*arrays(rows), rows.shape[1], gap_bytes=gap_bytes, kind=kind), np.uint8).copy()
    n_escapes = int(data[16:24].view("<u8")[0])
    escapes = 32 + -(-rows.shape[0] * int(data[24]) // 8) * 8
    gaps = escapes + -(-4 * n_escapes // 8) * 8
    width = -(-rows.shape[1] // 8) * rows.shape[0] if gap_bytes == 0 else gap_bytes * rows.nnz
    return rows, data, {"escapes": escapes, "gaps": gaps, "values": gaps + -(-width // 8) * 8}


def put(data, at, value, dtype):
    data[at : at + np.dtype(dtype).itemsize] = np.frombuffer(np.array([value], dtype).tobytes(), np.uint8)


@pytest.mark.parametrize(
    ("shape", "gap_bytes", "section", "value", "dtype", "complaint"),
    [
        ("short gaps", 1, 0, 2**62, "<u8", "sections are not as long"),
        ("short gaps", 1, 8, 2**63, "<u8", "do not fit each other"),
        ("short gaps", 1, 16, 2**60, "<u8", "do not fit each other"),
        ("short gaps", 1, 16, 1, "<u8", "sections are not as long"),
        ("short gaps", 1, 24, 3, "u1", "lengths are of an unknown kind"),
        ("short gaps", 1, 25, 3, "u1", "columns are of an unknown kind"),
        ("short gaps", 1, 26, 9, "u1", "values are of an unknown kind"),
        ("short gaps", 1, 31, 1, "u1", "does not end in zeros"),
        ("short gaps", 1, 32, 91, "u1", "its row 0 has more entries than columns"),
        ("dense", 0, 32, 22, "u1", "its row 39 ends before the entries"),
        ("short gaps", 1, "gaps", 0, "u1", "has columns that are not"),
        ("short gaps", 1, "gaps", 255, "u1", "has columns that are not"),
        ("long rows", 2, "gaps", 65535, "<u2", "has columns that are not"),
        ("escapes", 1, "escapes", 0, "<u4", "has columns that are not"),
        ("escapes", 1, "escapes", 2**32 - 1, "<u4", "has columns that are not"),
        ("dense", 0, "gaps", 0x7F, "u1", "has columns that are not"),
        ("dense", 0, 32 + 40 + 2, 0xFF, "u1", "has columns that are not"),
        ("short gaps", 1, "values", np.nan, "<f8", "has a value that is not finite"),
        ("short gaps", 1, "values", np.inf, "<f8", "has a value that is not finite"),
    ],
)
def test_a_hostile_block_is_refused(shape, gap_bytes, section, value, dtype, complaint):
    rows, data, starts = forged(shape, gap_bytes)
    put(data, starts.get(section, section), value, dtype)
    with pytest.raises(ValueError, match=complaint):
        decoded(data, rows)


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("LACUNAR_ISA") == "base", reason="it is what runs")
def test_the_portable_loops_refuse_the_same():
    run = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        __file__,
        "-k",
        "hostile_block or every_byte or left_over",
    ]
    done = subprocess.run(run, env=os.environ | {"LACUNAR_ISA": "base"}, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()


def test_escapes_that_are_left_over_are_refused():
    rows, data, starts = forged("escapes")
    gaps = data[starts["gaps"] : starts["gaps"] + rows.nnz]
    last = np.flatnonzero(gaps == 0)[-1]
    gaps[last] = 1
    with pytest.raises(ValueError, match="leaves escapes over"):
        decoded(data, rows)


def test_every_byte_of_a_block_changed_is_refused_or_keeps_the_contract():
    for shape in ("short gaps", "escapes", "dense"):
        rows = table(shape)
        sound = encoded(rows)[0]
        for position in RNG.integers(0, len(sound), 600):
            data = sound.copy()
            data[position] ^= RNG.integers(1, 256)
            try:
                found = decoded(data, rows)
            except ValueError:
                continue
            Observed(*found, rows.shape)  # which checks everything


# -- the file ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """Blocks of few entries, so that files of several are small."""
    monkeypatch.setattr(fast, "_ENTRIES", 400)
    monkeypatch.setattr(fast, "_ROWS", 64)


def with_labels(rows, size=50):
    n = rows.shape[0]
    y, weight = np.arange(n) % 3, np.linspace(0, 1, n)
    return [(rows[a : a + size], y[a : a + size], weight[a : a + size]) for a in range(0, n, size)], y, weight


@pytest.mark.parametrize("shape", SHAPES)
def test_files_come_back(shape, small, tmp_path):
    rows = table(shape)
    rows.save(tmp_path / "t")
    file = ObservedFile(tmp_path / "t")
    assert (file.shape, file.nnz, file.dtype, len(file)) == (rows.shape, rows.nnz, rows.dtype, rows.shape[0])
    assert file.read() == rows == Observed.load(tmp_path / "t") == Observed.vstack(list(file))
    assert (file.labels(), file.weights(), file.error) == (None, None, 0.0)


def test_labels_and_weights_come_with_their_rows(small, tmp_path):
    rows = table("short gaps", np.float32)
    batches, y, weight = with_labels(rows)
    file = write_batches(tmp_path / "t", batches)
    np.testing.assert_array_equal(file.labels(), y)
    np.testing.assert_array_equal(file.weights(), weight)
    made = list(file)
    assert len(made) > 5
    for k, expected in enumerate((y, weight), 1):
        np.testing.assert_array_equal(np.concatenate([each[k] for each in made]), expected)
    again = list(read_batches(tmp_path / "t", size=37))
    assert [len(labels) for _, labels in again[:-1]] == [37] * (len(again) - 1)
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in again]), y)


@pytest.mark.parametrize(
    "labels", [np.array(["a", "ccc"] * 150), np.arange(300) > 7, np.array(["a", "b"] * 150, object), np.zeros((300, 2))]
)
def test_labels_of_every_kind(labels, small, tmp_path):
    rows = table("short gaps")
    file = write_batches(tmp_path / "t", [(rows[:9], labels[:9]), (rows[9:], labels[9:])])
    np.testing.assert_array_equal(file.labels(), labels)
    with pytest.raises(TypeError, match="numbers, truth values or text"):
        write_batches(tmp_path / "u", [(rows, np.array([None, "a", 3.0] * 100, object))])


@pytest.mark.parametrize("start", [0, 1, 63, 64, 299, 300])
def test_a_pass_goes_on_where_it_was_left(start, small, tmp_path):
    rows = table("short gaps")
    rows.save(tmp_path / "t")
    rest = list(ObservedFile(tmp_path / "t").batches(start=start))
    assert Observed.vstack([rows[:0], *rest]) == rows[start:]
    with pytest.raises(ValueError, match="start must be a row from 0 to 300"):
        ObservedFile(tmp_path / "t").batches(start=301)


def test_a_reader_that_is_left_stops_its_thread(small, tmp_path):
    table("short gaps").save(tmp_path / "t")
    before = threading.active_count()
    walk = iter(ObservedFile(tmp_path / "t"))
    next(walk)
    assert threading.active_count() == before + 1
    del walk
    assert threading.active_count() == before


def test_opening_reads_no_block_and_a_pass_names_the_one_that_is_damaged(small, tmp_path):
    rows, path = table("short gaps"), tmp_path / "t"
    rows.save(path)
    data = bytearray(path.read_bytes())
    data[int(ObservedFile(path)._file.table["offset"][2]) + 40] ^= 1
    path.write_bytes(data)
    file = ObservedFile(path)
    with pytest.raises(ValueError, match=r"t' is not a sound lacunar file: block 2 does not match its checksum"):
        list(file)


def test_a_block_that_breaks_the_contract_names_file_block_and_row(small, tmp_path):
    rows, path = table("short gaps"), tmp_path / "t"
    rows.save(path)
    entry = ObservedFile(path)._file.table[1]
    data = bytearray(path.read_bytes())
    block = data[int(entry["offset"]) : int(entry["offset"] + entry["size"])]
    block[32] = 255
    data[int(entry["offset"]) + 32] = 255
    old, new = (int(each).to_bytes(4, "little") for each in (entry["crc32"], zlib.crc32(block)))
    path.write_bytes(refooted(bytes(data).replace(old, new)))
    with pytest.raises(
        ValueError, match="t' is not a sound lacunar file: block 1: its row 0 has more entries than columns"
    ):
        Observed.load(path)


def refooted(data):
    """The checksum of the footer brought up to date."""
    tail = np.frombuffer(data[-32:], fast._TAIL).copy()
    tail["crc32"] = zlib.crc32(data[int(tail["offset"][0]) : -32])
    return data[:-32] + tail.tobytes()


def test_checksums_are_compared_once(small, tmp_path, monkeypatch):
    table("short gaps").save(tmp_path / "t")
    file = ObservedFile(tmp_path / "t")
    list(file)
    compared = []
    monkeypatch.setattr(
        fast.zlib, "crc32", lambda data, *start: (compared.append(len(data)), zlib_crc32(data, *start))[1]
    )
    list(ObservedFile(tmp_path / "t"))
    assert compared[0], "the footer"
    assert not any(compared[1:]), "rows are not; labels are, which here are none"


zlib_crc32 = zlib.crc32


def test_blocks_stay_as_they_were_when_later_ones_are_read(small, tmp_path):
    rows = table("short gaps")
    rows.save(tmp_path / "t")
    kept = list(ObservedFile(tmp_path / "t"))
    assert len(kept) > 6
    assert Observed.vstack(kept) == rows
    views = [piece.values[:1] for piece in fast.BlockFile(tmp_path / "t").blocks()]
    assert [each[0] for each in views] == [each.values[0] for each in kept], "a view holds its block, too"


def test_a_file_written_anew_is_not_mixed_with_the_old_one(small, tmp_path):
    table("short gaps").save(tmp_path / "t")
    file = ObservedFile(tmp_path / "t")
    table("escapes").save(tmp_path / "t")
    with pytest.raises(ValueError, match="was written anew"):
        list(file)


def test_other_versions_and_other_files_are_refused(tmp_path):
    table("dense").save(tmp_path / "t")
    data = (tmp_path / "t").read_bytes()
    for changed, complaint in {
        data[:7] + b"\x02" + data[8:]: "of format version 2 and this lacunar reads 1",
        b"PK\x03\x04" + data[4:]: "does not begin like a file of rows",
        data[:-1]: "may be cut off",
        b"": "does not begin",
    }.items():
        (tmp_path / "t").write_bytes(changed)
        with pytest.raises(ValueError, match=f"t' is not a sound lacunar file: .*{complaint}"):
            ObservedFile(tmp_path / "t")
    with pytest.raises(FileNotFoundError, match="no such file"):
        Observed.load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="precision must be one of"):
        table("dense").save(tmp_path / "t", precision="float8")


def low_rank(n=400, d=12):
    made = RNG.normal(size=(n, 3)) @ RNG.normal(size=(3, d)) + 0.2 * RNG.normal(size=(n, d))
    y = made[:, 0] + 0.1 * RNG.normal(size=n)
    made[RNG.random(made.shape) < 0.5] = np.nan
    return Observed.from_dense(made), y


@pytest.mark.parametrize(
    "options", [{}, {"solver": "matrix-free", "normalisers": "kappa"}, {"refine": 0}, {"standardize": True}]
)
def test_popca_of_a_file_is_that_of_its_rows(options, small, tmp_path):
    rows, _ = low_rank()
    rows.save(tmp_path / "t")
    whole, parts = (POPCA(2, random_state=0, **options).fit(X) for X in (rows, ObservedFile(tmp_path / "t")))
    np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-4 if "solver" in options else 1e-9)
    np.testing.assert_allclose(
        parts.explained_variance_, whole.explained_variance_, rtol=1e-3 if "solver" in options else 1e-9
    )


def test_popca_of_a_file_keeps_no_sums_to_go_on_from(tmp_path):
    rows, _ = low_rank()
    rows.save(tmp_path / "t")
    model = POPCA(2, random_state=0).fit(rows).fit(ObservedFile(tmp_path / "t"))
    with pytest.raises(ValueError, match="matrix-free or from a file"):
        model.partial_fit(rows)


@pytest.mark.parametrize("options", [{}, {"solver": "als"}, {"lam1": 1.0}])
def test_slrm_of_a_file_is_that_of_its_rows(options, small, tmp_path):
    rows, y = low_rank()
    file = write_batches(tmp_path / "t", [(rows, y)])
    whole = SLRMRegressor(2, random_state=0, max_iter=5, **options).fit(rows, y)
    parts = SLRMRegressor(2, random_state=0, max_iter=5, **options).fit(file)
    np.testing.assert_allclose(parts.predict(rows), whole.predict(rows), atol=1e-7)
