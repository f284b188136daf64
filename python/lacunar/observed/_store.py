"""`Observed` on disk: one archive of three arrays that can be memory-mapped."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from lacunar._archive import read_archive, write_archive

if TYPE_CHECKING:
    from lacunar.observed._format import Observed

KIND = "observed"


def save(table: Observed, path: str | os.PathLike[str], *, as_folder: bool) -> None:
    """Write the three arrays and the shape."""
    arrays: dict[str, NDArray[Any]] = {"indptr": table.indptr, "indices": table.indices, "values": table.values}
    write_archive(path, kind=KIND, header={"shape": list(table.shape)}, arrays=arrays, as_folder=as_folder)


def load(cls: type[Observed], path: str | os.PathLike[str], *, mmap: bool = True) -> Observed:
    """Read what `save` wrote.

    Parameters
    ----------
    path : path-like
        A file or a folder.
    mmap : bool, default=True
        Map the arrays instead of reading them: a table larger than memory can be walked with `iter_batches`. The
        contract is checked entry by entry either way (one sequential pass); checksums only when not mapped.

    Raises
    ------
    ValueError
        When the file is not such a file, is damaged, of an unknown version, or breaks the contract of the format.
    """
    header, arrays = read_archive(path, kind=KIND, mmap=mmap)
    shape = header.get("shape")
    sizes_known = isinstance(shape, list) and len(shape) == 2 and all(type(size) is int and size >= 0 for size in shape)
    if shape is None or not sizes_known or set(arrays) != {"indptr", "indices", "values"}:
        raise ValueError(
            f"{os.fspath(path)!r} must hold indptr, indices, values and a shape; got {sorted(arrays)[:5]}, {str(shape)[:80]}."
        )
    try:
        return cls(arrays["indptr"], arrays["indices"], arrays["values"], (shape[0], shape[1]))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{os.fspath(path)!r} breaks the contract of the format: {error}") from None
