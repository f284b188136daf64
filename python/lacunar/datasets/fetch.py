"""`fetch_dataset`: a public set from a local copy, the user's cache or its publisher, in this order.

A copy is the publisher's own file, or an .npz of `X` (n, d) with NaN, or `indptr`, `indices`, `values` and `shape` of a CSR matrix of observed entries; `targets` and
`tasks` (names, and "binary", "multiclass" or "regression"); `y` and, for further targets, `y_<name>`; `feature_names`; `side_<name>`.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import Bunch

from lacunar.datasets.sets import SETS, Arrays, Source
from lacunar.observed.container import read_npz, replace_file

SECONDS = 60  # without an answer from a publisher
MAX_ANSWER = 64 * 2**20  # bytes; the largest set has 6 MB


def dataset_names() -> list[str]:
    """Names that `fetch_dataset` knows.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from lacunar.datasets import dataset_names
    >>> dataset_names()[:3]
    ['mammographic', 'cleveland', 'dermatology']
    """
    return list(SETS)


def fetch_dataset(
    name: str,
    *,
    target: str | None = None,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """A public set with missing entries: a table with NaN, or a sparse matrix whose stored entries
    are the observed ones.

    A copy is looked for in `data_home`, or else in the folder named by the environment variable
    LACUNAR_DATA and in `~/lacunar_data`: `<name>.npz`, or the publisher's own file under that name,
    such as `movielens1m.zip`. What is found nowhere is downloaded from its publisher, compared with
    a checksum and kept in `data_home`, or else in `~/lacunar_data`. No set is part of this package,
    since some may not be redistributed; `load_patients` has 400 rows of one.

    Parameters
    ----------
    name : str
        One of `dataset_names()`.
    target : str or None, default=None
        Which target, for sets with several; None: the first; "all": all targets, as columns.
    data_home : path or None, default=None
        Folder of local copies and of what is downloaded.
    download_if_missing : bool, default=True
    return_X_y : bool, default=False
        Return `(data, target)` only.
    as_frame : bool, default=False
        `data` as a pandas DataFrame under the names of the columns, for sets that have such names.

    Returns
    -------
    found : Bunch
        data : ndarray (n, d) with NaN, DataFrame, or csr_array (n, d)
            float64. For graphs the symmetric 0/1 adjacency matrix.
        target : ndarray of shape (n,) or (n, n_targets)
            float64 for "regression", else int64 from 0 (-1: unlabelled).
        task : {"binary", "multiclass", "regression"}
            What the target is.
        targets : dict of str to str
            Every target and its task.
        feature_names : list of str
            Empty where there are none.
        side : dict of str to ndarray or csr_array
            Side information; empty for most sets.
        origin, terms : str
            Who published the set, and the terms of its use.

    Raises
    ------
    ValueError
        When the set or the target is unknown, a download differs from its checksum, a local copy is
        damaged or another file, or `as_frame` is set and the columns have no names.
    FileNotFoundError
        When there is no local copy and it may not, or cannot, be downloaded.
    OSError
        When the publisher cannot be reached; the message says where a copy may be put.

    Examples
    --------
    >>> from lacunar.datasets import fetch_dataset
    >>> fetch_dataset("hepatitis", data_home="nowhere", download_if_missing=False)
    Traceback (most recent call last):
    ...
    FileNotFoundError: hepatitis is not in nowhere. ...
    """
    if name not in SETS:
        raise ValueError(f"name must be one of {', '.join(SETS)}; got {name!r}.")
    path, arrays = _arrays(name, data_home, download_if_missing)
    with _sound(f"{os.fspath(path)!r} is no copy of {name}", "Remove it, or name another folder."):
        tasks = {str(t): str(task) for t, task in zip(arrays["targets"], arrays["tasks"], strict=True)}
        first = next(iter(tasks))
    if target not in {None, "all", *tasks}:
        raise ValueError(f"target of {name} must be one of {', '.join(tasks)} or 'all'; got {target!r}.")
    with _sound(f"{os.fspath(path)!r} is no copy of {name}", "Remove it, or name another folder."):
        bunch = bunch_of(arrays, name, tasks, first if target is None else target)
    if as_frame:
        bunch.data = frame_of(bunch, name)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _arrays(name: str, data_home: str | os.PathLike[str] | None, may_download: bool) -> tuple[Path, Arrays]:
    """Where a copy is, and what it holds."""
    if path := _local(f"{name}.npz", data_home):
        return path, read_npz(path)
    source = SETS[name]
    if len(source.files) == 1 and (path := _local(_own_name(name, source), data_home)):
        return path, _read(name, source, [path.read_bytes()], [os.fspath(path)])
    if not may_download:
        raise FileNotFoundError(f"{name} is not in {_places(data_home)}. {_remedy(name)}")
    path = _downloaded(name, source, Path(data_home) if data_home is not None else _cache())
    return path, read_npz(path)


def frame_of(bunch: Bunch, name: str) -> Any:
    """The rows as a pandas DataFrame."""
    if not bunch.feature_names:
        raise ValueError(f"as_frame must be False for {name}, whose columns have no names; got True. Leave it out.")
    import pandas as pd

    return pd.DataFrame(bunch.data, columns=bunch.feature_names)


def _cache() -> Path:
    return Path.home() / "lacunar_data"


def _folders(data_home: str | os.PathLike[str] | None) -> list[Path]:
    if data_home is not None:
        return [Path(data_home)]
    named = os.environ.get("LACUNAR_DATA")
    return [*([Path(named)] if named else []), _cache()]


def _places(data_home: str | os.PathLike[str] | None) -> str:
    return " or ".join(map(str, _folders(data_home)))


def _local(file: str, data_home: str | os.PathLike[str] | None) -> Path | None:
    paths = [folder / file for folder in _folders(data_home)]
    return next((path for path in paths if path.is_file()), None)


def _own_name(name: str, source: Source) -> str:
    """Under what name a copy of the publisher's one file is looked for: that of the set, with the file's ending."""
    file = source.urls[0].rpartition("/")[2]
    return name + file[file.index(".") :]


def _remedy(name: str) -> str:
    return f"Put {name}.npz into a folder and name it by data_home= or the environment variable LACUNAR_DATA."


def _downloaded(name: str, source: Source, folder: Path) -> Path:
    if source.read is None:
        raise FileNotFoundError(
            f"{name} ({source.origin}; {source.terms}) is read from a local copy only: there is none in {folder}. {_remedy(name)}"
        )
    arrays = _read(name, source, [_bytes(name, url) for url in source.urls], source.urls)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.npz"
    replace_file(path, lambda stream: np.savez_compressed(stream, **arrays))  # type: ignore[arg-type]  # no array is called as its options are
    return path


def _read(name: str, source: Source, raw: list[bytes], origins: Sequence[str]) -> Arrays:
    """What the publisher's files hold, if files and content have their checksums."""
    sums = [hashlib.sha256(part).hexdigest() for part in raw]
    if source.files and tuple(sums) != source.files:
        raise ValueError(f"{name}: {origins[0]} should have SHA-256 {source.files[0]}; got {sums[0]}. {_remedy(name)}")
    with _sound(f"{name}: {origins[0]} is not this set", _remedy(name)):
        assert source.read is not None
        arrays = source.read(raw)
        content = digest(arrays)
    if content != source.content:
        raise ValueError(
            f"{name}: the content behind {origins[0]} should have SHA-256 {source.content}; got {content}. The "
            f"publisher changed it, or the file is damaged. {_remedy(name)}"
        )
    return arrays


def _bytes(name: str, url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            body = bytes(answer.read(MAX_ANSWER + 1))
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise OSError(f"{name} could not be downloaded from {url}: {error}. {_remedy(name)}") from error
    if len(body) > MAX_ANSWER:
        raise ValueError(f"{name}: {url} sent more than {MAX_ANSWER} bytes, which no set has. {_remedy(name)}")
    return body


def digest(arrays: Arrays) -> str:
    """SHA-256 of what a set says, whatever its dtypes: entries, targets and their names."""
    checksum = hashlib.sha256()

    def add(values: NDArray[Any], dtype: str) -> None:
        values = np.asarray(values).astype(dtype)
        if dtype == "<f8":
            values = np.where(np.isnan(values), np.nan, values)  # one pattern of bits for all NaN
        checksum.update(repr(values.shape).encode() + np.ascontiguousarray(values).tobytes())

    for key in ("indptr", "indices", "shape"):
        if key in arrays:
            add(arrays[key], "<i8")
    add(arrays["values"] if "indptr" in arrays else arrays["X"], "<f8")
    for k, target in enumerate(arrays["targets"]):
        checksum.update(f"{target} {arrays['tasks'][k]}".encode())
        add(arrays["y" if k == 0 else f"y_{target}"], "<f8")
    return checksum.hexdigest()


@contextmanager
def _sound(complaint: str, remedy: str) -> Iterator[None]:
    """Turn what a damaged or foreign file raises into a ValueError that says so."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # readers raise whatever the bytes lead them to
        raise ValueError(f"{complaint}: {type(error).__name__}: {str(error)[:200]}. {remedy}") from None


def bunch_of(arrays: Arrays, name: str, tasks: dict[str, str], chosen: str) -> Bunch:
    """The `Bunch` that `fetch_dataset` returns, from the arrays of a set."""
    first = next(iter(tasks))

    def values(t: str) -> NDArray[Any]:
        return arrays["y" if t == first else f"y_{t}"].astype(np.float64 if tasks[t] == "regression" else np.int64)

    side = {k[5:]: _text(v) for k, v in arrays.items() if k.startswith("side_") and "__" not in k}
    for key in [k[5:-8] for k in arrays if k.startswith("side_") and k.endswith("__indptr")]:
        side[key] = _csr(arrays, f"side_{key}__")
    return Bunch(
        data=_csr(arrays, "") if "indptr" in arrays else arrays["X"].astype(np.float64),
        target=np.column_stack([values(t) for t in tasks]) if chosen == "all" else values(chosen),
        task=tasks[first if chosen == "all" else chosen],
        targets=tasks,
        feature_names=[str(f) for f in _text(arrays.get("feature_names", np.array([])))],
        side=side,
        origin=SETS[name].origin,
        terms=SETS[name].terms,
    )


def _text(values: NDArray[Any]) -> NDArray[Any]:
    return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values


def _csr(arrays: Arrays, prefix: str) -> sp.csr_array:
    parts = tuple(
        arrays[prefix + key].astype(t) for key, t in (("values", float), ("indices", np.int32), ("indptr", np.int32))
    )
    matrix = sp.csr_array(parts, shape=tuple(int(v) for v in arrays[prefix + "shape"]))
    matrix.check_format(full_check=True)
    return matrix
