"""Public sets as their publishers give them, turned into the arrays of one .npz each.

A set is a dict: `X` (n, d) with NaN, or `indptr`, `indices`, `values` and `shape` of a CSR matrix of observed entries; `targets` and
`tasks` (names, and "binary", "multiclass" or "regression"); `y` and, for further targets, `y_<name>`; `feature_names`; `side_<name>`.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def read_columns(
    raw: Sequence[bytes],
    *,
    names: str,
    target: str,
    at: int,
    drop: Sequence[int] = (),
    label: Callable[[NDArray[np.float64]], NDArray[Any]],
    task: str = "binary",
) -> Arrays:
    """Lines of numbers, "?" where missing: column `at` is the target; its rows without a value are left out."""
    rows = [line.replace(",", " ").split() for part in raw for line in part.decode("utf-8-sig").splitlines()]
    table = np.array([[np.nan if v == "?" else float(v) for v in row] for row in rows if row])
    table = table[~np.isnan(table[:, at])]
    others = [j for j in range(table.shape[1]) if j != at % table.shape[1] and j not in drop]
    return {
        "X": table[:, others],
        "y": label(table[:, at]).astype(np.int64),
        "targets": np.array([target]),
        "tasks": np.array([task]),
        "feature_names": np.array(names.split()),
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
    made = _ratings(ratings, (len(users), len(items)))
    made |= _people([u[1] for u in users], [u[2] for u in users], [jobs.index(u[3]) for u in users])
    return made | {
        "side_item_genres": np.array([item[5:] for item in items], dtype=np.int64),
        "side_genre_names": np.array([name for _, name in genres]),
        "side_occupation_names": np.array(jobs),
        "side_user_zip": np.array([user[4] for user in users]),
        "side_item_year": np.array([int(item[2][-4:]) if item[2] else 0 for item in items]),
    }


def read_movielens_1m(raw: Sequence[bytes]) -> Arrays:
    """`ml-1m.zip` of GroupLens: ratings.dat and users.dat."""

    def lines(name: str) -> list[list[str]]:
        return [line.split("::") for line in archive.read(f"ml-1m/{name}").decode("latin-1").splitlines() if line]

    with zipfile.ZipFile(io.BytesIO(raw[0])) as archive:
        ratings, users = np.array(lines("ratings.dat"), dtype=np.int64), lines("users.dat")
    made = _ratings(ratings, (len(users), 3952))
    del made["side_time"]
    return made | _people([u[2] for u in users], [u[1] for u in users], [int(u[3]) for u in users])


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
