"""Tables of features to rows of Phi: numbers standardised, categories one-hot, holes contributing nothing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar.completion._side._read_table import Columns, category, read_row, read_table
from lacunar.completion._side._state import Floats, shown
from lacunar.observed.rules import Flag, Instance, Items, Number, Optional, Parts, Rule, Word, check_parts

_COLUMN: dict[str, Rule] = {
    "name": Word(),
    "levels": Optional(Items(Instance(Hashable))),
    "center": Number(),
    "scale": Number(low=0, above=True, finite=False),  # infinite for a constant column
}
_STATE: dict[str, Rule] = {
    "columns": Items(Parts(_COLUMN)),
    "normalize": Flag(),
    "weight": Number(low=0),
    "radius": Number(low=0, above=True),
}


class FeatureTable:
    """Columns as they were at the beginning, and the rows of Phi they give: (n, d), of length 1 when normalised.

    A column of numbers gives (x - mean) / standard deviation, one of 0 and 1 (or booleans) itself, one of categories an
    indicator a category. A hole gives 0 in all of its column's places: it makes no two rows alike or different, and the
    other columns of the row count for more, as the row is scaled to length 1 over what it has. A row with no feature at
    all gets the last place of Phi, which no other row has: alike to its kind, orthogonal to the rest.
    """

    def __init__(self, columns: list[dict[str, Any]], *, normalize: bool, weight: float, radius: float = 1.0) -> None:
        self.columns, self.normalize, self.weight, self.radius = columns, normalize, weight, radius

    @classmethod
    def fitted(cls, X: Any, *, standardize: bool, normalize: bool, weight: float) -> tuple[FeatureTable, Floats]:
        """The table's columns and its rows of Phi, (n, d)."""
        read = read_table(X)
        table = cls([_fit(n, c, standardize) for n, c in read.items()], normalize=normalize, weight=weight)
        raw = table._raw(read)
        if not normalize:
            table.radius = float((raw**2).sum(axis=1).max())
            if not table.radius > 0:
                raise ValueError("X must say something; all its features are holes or zeros. Use Identity.")
        return table, table._finish(raw, None)

    def encode_row(self, values: Any) -> Floats:
        """One more row of Phi, shape (d,)."""
        row: Floats = self._finish(self._raw(read_row(values, [c["name"] for c in self.columns])), values)[0]
        return row

    def _raw(self, read: Columns) -> Floats:
        blocks = [_encode(column, read[column["name"]]) for column in self.columns]
        return np.concatenate(blocks, axis=1)

    def _finish(self, raw: Floats, came: Any) -> Floats:
        length = np.sqrt((raw**2).sum(axis=1))
        none = length == 0
        if self.normalize:
            Phi = np.column_stack([raw / np.where(none, 1.0, length)[:, None], none])
        else:
            if came is not None and length[0] ** 2 > self.radius * (1 + 1e-12):
                raise ValueError(
                    f"with normalize=False a row's features may have at most the squared length known at the beginning, "
                    f"{self.radius:.6g}; got {length[0] ** 2:.6g} for {shown(came)}. Use normalize=True."
                )
            Phi = np.column_stack([raw, np.zeros(len(raw))]) / np.sqrt(self.radius)
        scaled: Floats = np.sqrt(self.weight) * Phi
        return scaled

    def state(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "columns": [dict(c) for c in self.columns],
            "normalize": self.normalize,
            "weight": self.weight,
            "radius": self.radius,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> FeatureTable:
        """The table that was saved."""
        check_parts(state, _STATE, "a table of features", {})
        for column in state["columns"]:
            if column["levels"] is not None and len(set(column["levels"])) != len(column["levels"]):
                raise ValueError(f"levels of a column must be distinct; got {shown(column['levels'])}. Save it again")
        rest = {name: state[name] for name in ("normalize", "weight", "radius")}
        return cls([dict(column) for column in state["columns"]], **rest)

    @property
    def width(self) -> int:
        """Columns of Phi: one a number, one a level, one for rows without features."""
        return sum(1 if column["levels"] is None else len(column["levels"]) for column in self.columns) + 1


def _fit(name: str, values: NDArray[Any], standardize: bool) -> dict[str, Any]:
    if values.dtype == object:
        levels = sorted({v for v in values if v is not None})
        return {"name": name, "levels": levels, "center": 0.0, "scale": 1.0}
    seen = values[~np.isnan(values)]
    center, scale = 0.0, 1.0
    if standardize and not np.isin(seen, (0.0, 1.0)).all():
        center, scale = float(seen.mean()), float(seen.std())
        # A standard deviation below this share of the values is rounding: the column is constant and says nothing.
        if scale <= 1e-7 * float(np.abs(seen).max()):
            scale = np.inf
    return {"name": name, "levels": None, "center": center, "scale": scale}


def _encode(column: Mapping[str, Any], values: NDArray[Any]) -> Floats:
    name, levels = column["name"], column["levels"]
    if levels is None:
        if values.dtype == object:
            raise ValueError(f"feature {name!r} must be a number, as at the beginning; got {shown(values[0])}.")
        scaled = (values - column["center"]) / column["scale"]
        return np.where(np.isnan(values), 0.0, scaled)[:, None]
    place = {level: k for k, level in enumerate(levels)}
    block = np.zeros((len(values), len(levels)))
    for row, value in enumerate(values.tolist()):
        level = category(value)
        if level in place:  # a category never met before is a hole
            block[row, place[level]] = 1.0
    return block
