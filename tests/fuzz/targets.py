"""Every reader of files in the package."""

from __future__ import annotations

import dataclasses
import io
import tempfile
import zipfile
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import archives, models, mutate
from fuzz.oracle import Target
from lacunar import Observed
from lacunar.comparison import UserError, load_problem, read_table
from lacunar.datasets import fetch, fetch_dataset, sets
from lacunar.observed import ObservedFile, Triplets, read_batches, read_svmlight, write_batches
from lacunar.observed.blocks import PRECISIONS
from lacunar.persistence import load_model

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(8, 5))
TABLE[RNG.random(TABLE.shape) < 0.4] = np.nan


def observed_files() -> list[bytes]:
    tables = [
        Observed.from_dense(TABLE),
        Observed.from_dense(TABLE.astype(np.float32)),
        Observed.from_dense(np.zeros((0, 3))),
    ]
    wide = Observed.from_triplets([0, 0, 2], [3, 70_000, 5], [1.0, 2.0, 0.5], shape=(3, 100_000))
    batches: list[Any] = [[table] for table in (*tables, wide)]
    batches += [[(tables[0], np.arange(8) % 2, np.ones(8))], [(tables[1], np.array(list("abcdefgh")))]]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for each in batches:
            for precision in PRECISIONS:
                write_batches(Path(folder) / "t", each, precision=precision)
                found.append((Path(folder) / "t").read_bytes())
    return found


def read_all(place: Path) -> list[Observed]:
    """Whole, and block by block with what comes with the rows."""
    file = ObservedFile(place)
    file.labels(), file.weights()
    blocks = [batch[0] if isinstance(batch, tuple) else batch for batch in file]
    return [Observed.load(place), *blocks]


def use_observed(tables: list[Observed]) -> None:
    for table in tables:
        table.to_scipy().check_format(full_check=True)
        table[::-1]
        list(table.iter_batches(3 + table.shape[0] // 10))
        if table.shape[1] < 10_000:
            table.columns  # noqa: B018
            if table.shape[0] * table.shape[1] < 100_000:
                table.to_dense()


def last(batches: Any) -> list[Observed]:
    """The last rows; rows without entries come in any number, but are not held."""
    return [rows for rows, _ in deque(batches, maxlen=2)]


SVMLIGHT = [b"1 1:0.5 3:-2 # note\n-1 2:0\n", b"1 qid:3 1:1e-3\n\n# only a comment\n0\n"]
CSV = [b"a,colour,y\n1.5,red,0\n?,,1\n-2, blue ,0\nNA,null,1\n", b"1;2;3\n4;;6\n", b'name\ty\n"a ""b""\nc"\t1\nd\t2\n']
ARFF = [
    b"% c\n@RELATION r\n@attribute a numeric\n@attribute 'colour' {red, blue}\n@ATTRIBUTE y {0,1}\n@DATA\n1.5,'red',0\n?,?,1\n"
]


def npz_files() -> list[bytes]:
    sparse = Observed.from_dense(TABLE)
    parts = {
        "indptr": sparse.indptr,
        "indices": sparse.indices,
        "values": sparse.values,
        "shape": np.array(sparse.shape),
    }
    common: dict[str, Any] = {"y": np.arange(8) % 2, "targets": np.array(["y"]), "tasks": np.array(["binary"])}
    names = {"feature_names": np.array(["a", "b", "c", "d", "é"])}
    side = {f"side_g__{key}": value for key, value in parts.items()} | {"side_zip": np.array([b"x"])}
    return [archives.zipped({f"{n}.npy": archives.npy(v) for n, v in arrays.items()}, zipfile.ZIP_DEFLATED)
            for arrays in ({"X": TABLE} | common | names, parts | common | side, {"X": TABLE, "y": np.array(list("abababab"))})]  # fmt: skip


def parquet_files() -> list[bytes]:
    import datetime

    import pyarrow as pa
    import pyarrow.parquet as pq

    frames: list[dict[str, Any]] = [
        {"row": [0, 0, 1, 3], "col": [0, 2, 1, 0], "value": [1.0, None, 0.0, 4.0]},
        {"row": pa.array([0, 2**62, -1]), "col": pa.array([0, 1, 2**40]), "value": pa.array([1.0, float("nan"), float("inf")])},
        {"row": ["a", "b"], "col": [[1], [2]], "value": [{"k": 1}, None]},
        {"row": [0.5, 1.0], "col": [True, False], "value": pa.array([1, 2**63], pa.uint64())},
        {"a": [1.5, None, -2.0], "colour": ["red", None, "null"], "y": [0, 1, 0]},
        {"a": [datetime.date(2020, 1, 1), None], "b": [datetime.datetime(2020, 1, 1, 1), None], "c": [b"\xff", b""], "y": [True, None]},
        {"a": pa.array([1, 2], pa.decimal128(30, 2)), "y": pa.array(["u", "v"]).dictionary_encode(), "z": pa.nulls(2)},
    ]  # fmt: skip
    found = []
    for frame in frames:
        stream = io.BytesIO()
        pq.write_table(pa.table(frame), stream, compression="none", use_dictionary=False)
        found.append(stream.getvalue())
    return found


def dense_claim(data: bytes) -> int:
    """What a sparse text file asks for when it is made dense: 8 bytes a cell for a few copies, as far as that is allowed."""
    columns = max((int(n) for n in mutate.re.findall(rb"(\d{1,12}):", data)), default=0)
    cells = (columns + 1) * (data.count(b"\n") + 1)
    return 40 * cells + 1000 * columns if cells <= 10**7 else 0


DOWNLOAD = "hepatitis"


def movielens_files() -> list[bytes]:
    items = "1|Toy (1995)|01-Jan-1995||url" + "|0" * 19 + "\n"
    files = {
        "u.data": "1\t1\t5\t88\n",
        "u.user": "1|24|M|writer|85711\n",
        "u.item": items,
        "u.genre": "unknown|0\n",
        "u.occupation": "writer\n",
    }
    one = {"ratings.dat": "1::1193::5::978\n", "users.dat": "1::F::1::10::48067\n"}
    return [archives.zipped({f"ml-100k/{n}": t.encode() for n, t in files.items()}, zipfile.ZIP_DEFLATED),
            archives.zipped({f"ml-1m/{n}": t.encode() for n, t in one.items()}, zipfile.ZIP_DEFLATED)]  # fmt: skip


def download(name: str, place: Path) -> Any:
    """What a publisher's server may answer. Sums of files are not looked at, so that the parser is reached."""
    source = dataclasses.replace(sets.SETS[name], files=())
    real, fetch._bytes = fetch._bytes, lambda name, url: place.read_bytes()
    try:
        return fetch._downloaded(name, source, place.parent / "cache")
    finally:
        fetch._bytes = real


OBSERVED = ("observed/blocks.py", "observed/stored.py")
MODEL = (
    "persistence/__init__.py",
    "persistence/codec.py",
    "persistence/composed.py",
    "persistence/registry.py",
    "_state.py",
)
FILES = ("observed/files.py", "observed/table.py")
BATCHES = ("observed/batches.py", "observed/files.py")
TABLES = tuple(f"comparison/{name}.py" for name in ("reading", "lines", "packed", "cells"))
MODEL_USE = (ValueError, FloatingPointError)  # the second is OnlineMatrixClassifier's word for steps that are too large

TARGETS = {
    target.name: target
    for target in [
        Target("observed", observed_files, archives.change_rows, read_all, (ValueError,), use_observed, sources=OBSERVED),
        *(Target(f"model-{family}", lambda family=family: models.files(family), archives.change, load_model, (ValueError,), models.use,
                 MODEL_USE, sources=MODEL) for family in models.MODELS),
        Target("svmlight", lambda: SVMLIGHT, mutate.text, lambda place: [Observed.from_svmlight(place, batch_rows=2)[0]], (ValueError,), use_observed, sources=FILES),
        Target("svmlight-batches", lambda: SVMLIGHT, mutate.text, lambda place: last(read_svmlight(place, n_features=5, size=2)), (ValueError,), use_observed, sources=BATCHES),
        Target("parquet", parquet_files, mutate.raw, lambda place: [Observed.from_parquet(place, batch_rows=2)], (ValueError,), use_observed, sources=FILES),
        Target("batches", parquet_files, mutate.raw, lambda place: [rows for rows, _ in read_batches(place, size=2)], (ValueError,), use_observed, sources=BATCHES),
        Target("batches-triplets", parquet_files, mutate.raw, lambda place: last(read_batches(place, size=1000, triplets=Triplets(5))), (ValueError,), use_observed, sources=BATCHES),
        *(Target(f"table-{ending}", lambda seeds=seeds: seeds, mutate.text, lambda place: load_problem(str(place)), (UserError,),
                 file=f"hostile.{ending}", sources=TABLES) for ending, seeds in (("csv", CSV), ("tsv", CSV), ("arff", ARFF))),
        Target("table-svmlight", lambda: SVMLIGHT, mutate.text, lambda place: read_table(str(place)), (UserError,), file="hostile.svmlight", claim=dense_claim, sources=TABLES),
        Target("table-npz", npz_files, archives.change_npz, lambda place: read_table(str(place)), (UserError,), file="hostile.npz", sources=TABLES),
        Target("table-parquet", parquet_files, mutate.raw, lambda place: read_table(str(place)), (UserError,), file="hostile.parquet", sources=TABLES),
        Target("local-set", npz_files, archives.change_npz, lambda place: fetch_dataset(DOWNLOAD, data_home=place.parent), (ValueError,), file=f"{DOWNLOAD}.npz", sources=("datasets/fetch.py",)),
        Target("download", lambda: [b"2,30,2,?,1\n1,4,2,1,0\n"], mutate.text, lambda place: download(place.stem, place), (ValueError,), file=DOWNLOAD, sources=("datasets/fetch.py", "datasets/sets.py")),
        Target("download-zip", movielens_files, archives.change_zip, lambda place: download(place.name, place), (ValueError,), file="movielens100k", sources=("datasets/fetch.py", "datasets/sets.py")),
    ]
}  # fmt: skip
