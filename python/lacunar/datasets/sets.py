"""The public sets that `fetch_dataset` knows: where they come from, on what terms, and how their publisher's files are read."""

from __future__ import annotations

import csv
import gzip
import io
import tomllib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
_LONGEST_WORD = 200  # characters: an array of words is as wide as its longest


def read_columns(
    raw: Sequence[bytes],
    *,
    names: str,
    target: str,
    at: int,
    drop: Sequence[int] = (),
    first: int = 0,
    yes: int | None = None,
    task: str = "binary",
) -> Arrays:
    """Lines of numbers, "?" where missing: column `at` is the target, whose rows without a value are left out.

    Its classes count from `first`; or the one class `yes` is told from the others.
    """
    rows = [line.replace(",", " ").split() for part in raw for line in part.decode("utf-8-sig").splitlines()]
    table = np.array([[np.nan if v == "?" else float(v) for v in row] for row in rows if row])
    table = table[~np.isnan(table[:, at])]
    others = [j for j in range(table.shape[1]) if j != at % table.shape[1] and j not in drop]
    return {
        "X": table[:, others],
        "y": (table[:, at] - first if yes is None else table[:, at] == yes).astype(np.int64),
        "targets": np.array([target]),
        "tasks": np.array([task]),
        "feature_names": np.array(names.split()),
    }


def read_bands(raw: Sequence[bytes]) -> Arrays:
    """Rows of 40 fields of which the last is the label; the columns of numbers, "?" where missing.

    Rows end at their label, not at the end of a line: copies differ in where lines break, and one has marks between them.
    """
    fields = [field.strip() for field in raw[0].decode("latin-1").replace("\n", ",").split(",")]
    fields = [field for field in fields if field not in {"", "|1"}]
    rows = [fields[k : k + 40] for k in range(0, len(fields), 40)]
    wrong = next((k for k, row in enumerate(rows) if len(row) != 40 or row[-1] not in {"band", "noband"}), None)
    if wrong is not None:
        raise ValueError(f"each row must have 40 fields and end with band or noband; row {wrong} is {rows[wrong]}")
    numbers = [[np.nan if row[j] == "?" else float(row[j]) for j in (15, 16, 19, *range(20, 39))] for row in rows]
    return {
        "X": np.array(numbers),
        "y": np.array([row[-1] == "band" for row in rows]).astype(np.int64),
        "targets": np.array(["band"]),
        "tasks": np.array(["binary"]),
        "feature_names": np.array(BANDS.split()),
    }


def read_movielens_100k(raw: Sequence[bytes]) -> Arrays:
    """`ml-100k.zip` of GroupLens: u.data, u.user, u.item, u.genre, u.occupation."""

    def lines(name: str, mark: str) -> list[list[str]]:
        text = archive.read(f"ml-100k/{name}").decode("latin-1")
        return [line.split(mark) for line in text.splitlines() if line.strip()]

    with zipfile.ZipFile(io.BytesIO(raw[0])) as archive:
        ratings = np.array(lines("u.data", "\t"), dtype=np.int64)
        users, items = lines("u.user", "|"), lines("u.item", "|")
        genres = sorted(((int(code), name) for name, code in lines("u.genre", "|")))
        jobs = [job for (job,) in lines("u.occupation", "|")]
    arrays = _ratings(ratings, (len(users), len(items)))
    arrays |= _people([u[1] for u in users], [u[2] for u in users], [jobs.index(u[3]) for u in users])
    return arrays | {
        "side_item_genres": np.array([item[5:] for item in items], dtype=np.int64),
        "side_genre_names": _words([name for _, name in genres]),
        "side_occupation_names": _words(jobs),
        "side_user_zip": _words([user[4] for user in users]),
        "side_item_year": np.array([int(item[2][-4:]) if item[2] else 0 for item in items]),
    }


def read_movielens_1m(raw: Sequence[bytes]) -> Arrays:
    """`ml-1m.zip` of GroupLens: ratings.dat and users.dat."""

    def lines(name: str) -> list[list[str]]:
        return [line.split("::") for line in archive.read(f"ml-1m/{name}").decode("latin-1").splitlines() if line]

    with zipfile.ZipFile(io.BytesIO(raw[0])) as archive:
        ratings, users = np.array(lines("ratings.dat"), dtype=np.int64), lines("users.dat")
    arrays = _ratings(ratings, (len(users), 3952))
    del arrays["side_time"]
    return arrays | _people([u[2] for u in users], [u[1] for u in users], [int(u[3]) for u in users])


def read_physionet(raw: Sequence[bytes]) -> Arrays:
    """Columns of measurements and the target of a prepared set of the PhysioNet/CinC Challenge 2012; empty cells are
    missing.
    """
    head, *rows = csv.reader(io.StringIO(gzip.decompress(raw[0]).decode()))
    table = np.array([[float(cell) if cell else np.nan for cell in row] for row in rows])
    measured = [j for j, name in enumerate(head) if name not in PHYSIONET_OUTCOMES]
    return {
        "X": table[:, measured],
        "y": table[:, head.index(PHYSIONET_TARGET)].astype(np.int64),
        "targets": np.array([PHYSIONET_TARGET]),
        "tasks": np.array(["binary"]),
        "feature_names": np.array([head[j] for j in measured]),
    }


def _words(words: list[str]) -> NDArray[np.str_]:
    """An array of words, in which each takes as much memory as the longest."""
    longest = max(map(len, words), default=0)
    if longest > _LONGEST_WORD:
        raise ValueError(f"names must have at most {_LONGEST_WORD} characters; one has {longest}")
    return np.array(words)


def _ratings(ratings: NDArray[np.int64], shape: tuple[int, int]) -> Arrays:
    """CSR of (user, item, rating, time), both numbered from 1."""
    numbers = ratings[:, :2] - 1
    if (numbers < 0).any() or (numbers >= shape).any():
        raise ValueError(
            f"users and items must be numbered 1 to {shape[0]} and 1 to {shape[1]}; the ratings name others"
        )
    ratings = ratings[np.lexsort((ratings[:, 1], ratings[:, 0]))]
    counts = np.bincount(ratings[:, 0] - 1, minlength=shape[0])
    return {
        "indptr": np.concatenate([[0], np.cumsum(counts)]),
        "indices": ratings[:, 1] - 1,
        "values": ratings[:, 2],
        "shape": np.array(shape),
        "side_time": ratings[:, 3],
    }


def _people(age: list[str], gender: list[str], occupation: list[int]) -> Arrays:
    return {
        "targets": np.array(["age", "gender", "occupation"]),
        "tasks": np.array(["regression", "binary", "multiclass"]),
        "y": np.array(age, dtype=np.int64),
        "y_gender": np.array([int(g == "M") for g in gender]),
        "y_occupation": np.array(occupation),
    }


@dataclass(frozen=True)
class Source:
    """One set; without urls it is read from a local copy only."""

    origin: str
    terms: str
    urls: tuple[str, ...] = ()
    read: Callable[[Sequence[bytes]], Arrays] | None = None
    content: str = ""  # SHA-256 of its arrays, see `digest`
    files: tuple[str, ...] = ()  # SHA-256 of the files behind the urls, where the publisher's bytes never change


BANDS = """press unit_number plating_tank proof_cut viscosity caliper ink_temperature humidity roughness blade_pressure varnish_pct
press_speed ink_pct solvent_pct esa_voltage esa_amperage wax hardener roller_durometer current_density anode_space_ratio
chrome_content"""
PHYSIONET_TARGET = "In-hospital_death"
PHYSIONET_OUTCOMES = {"recordid", "SAPS-I", "SOFA", "Length_of_stay", "Survival", PHYSIONET_TARGET}
_READERS: dict[str, Callable[..., Arrays]] = {
    "columns": read_columns,
    "bands": read_bands,
    "physionet": read_physionet,
    "movielens_100k": read_movielens_100k,
    "movielens_1m": read_movielens_1m,
}


def _source(
    read: str | None = None,
    columns: Mapping[str, Any] | None = None,
    urls: Sequence[str] = (),
    files: Sequence[str] = (),
    **more: str,
) -> Source:
    """A set as `sets.toml` describes it."""
    reader = None if read is None else partial(_READERS[read], **(columns or {}))
    return Source(read=reader, urls=tuple(urls), files=tuple(files), **more)


SETS = {
    name: _source(**fields)
    for name, fields in tomllib.loads(Path(__file__).with_name("sets.toml").read_text(encoding="utf-8")).items()
}
