"""`Features`: tables of numbers and categories as side information."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar._typing import Floats
from lacunar.completion.side import (
    FactorState,
    RowStore,
    SideInformation,
    SideState,
    check_ids,
    check_weight,
    digest_of,
    index_names,
    plain_ids,
    shown,
)
from lacunar.encode import as_labels, column_of, columns_of_frame, objects
from lacunar.observed import Observed
from lacunar.observed.columns import column_spread, scales_of
from lacunar.observed.contract import as_array, check_positions, unmasked
from lacunar.observed.numbers import as_frame
from lacunar.observed.rules import check_parts, floats

Column = NDArray[Any]  # numbers (float64, NaN where missing) or names of categories (objects, "" where missing)
Columns = dict[str, Column]
_CATEGORIES = (nw.String, nw.Categorical, nw.Enum)


def read_table(X: Any) -> Columns:
    """The columns of an array (n,) or (n, d), a sparse matrix, a mapping of sequences or a data frame."""
    if sp.issparse(X):
        X = check_positions(X, "X").toarray()  # what is not stored is a zero here: features, not observations
    if isinstance(X, Mapping):
        columns = {str(name): _column(name, values) for name, values in X.items()}
        sizes = {name: len(values) for name, values in columns.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"every column of X must have a value for every id; got lengths {sizes}.")
    elif (frame := as_frame(X)) is not None:
        columns = _of_frame(nw.from_native(frame, eager_only=True))
    else:
        columns = _of_array(as_array(X, keep_kind=True))
    if not columns:
        raise ValueError("X must have at least one feature; got none.")
    for name, values in columns.items():
        if values.dtype.kind == "M":
            raise TypeError(
                f"column {name!r} must hold numbers, booleans or categories; it holds dates. Convert or drop it."
            )
    return columns


def read_row(values: Any, names: Sequence[str]) -> Columns:
    """One row: a mapping from names (those not there are missing), or a sequence in the order of the columns."""
    if hasattr(values, "to_dict") and not isinstance(values, Mapping):
        values = values.to_dict() if getattr(values, "ndim", 1) == 1 else {k: next(iter(v)) for k, v in values.items()}
    if isinstance(values, Mapping):
        value_of = {str(name): value for name, value in values.items()}
        unknown = sorted(set(value_of) - set(names))
        if unknown:
            raise ValueError(f"features must be of the columns known at the beginning; got {unknown[0]!r}. Drop it.")
        return {name: _column(name, [value_of.get(name)]) for name in names}
    row = (
        [values] if np.isscalar(values) else list(np.ravel(np.asarray(unmasked(values, keep_kind=True), dtype=object)))
    )
    if len(row) != len(names):
        raise ValueError(f"a row must have {len(names)} features, as at the beginning; got {len(row)}.")
    return {name: _column(name, [value]) for name, value in zip(names, row, strict=True)}


def _of_array(array: NDArray[Any]) -> Columns:
    table = array[:, None] if array.ndim == 1 else array
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(f"X must have a row for every id and at least one feature; got shape {array.shape}.")
    return {str(k): _column(str(k), column) for k, column in enumerate(table.T)}


def _of_frame(frame: Any) -> Columns:
    for name, dtype in frame.schema.items():
        if not dtype.is_numeric() and dtype not in (nw.Boolean, nw.Object, *_CATEGORIES):
            raise TypeError(
                f"column {name!r} must hold numbers, booleans or categories; it is {dtype}. Convert or drop it."
            )
    columns = dict(columns_of_frame(frame))
    for name, dtype in frame.schema.items():  # numbers may be names of categories, too
        if dtype in _CATEGORIES and columns[name].dtype != object and not np.isnan(columns[name]).all():
            columns[name] = as_labels(columns[name])
    return columns


def _column(name: Any, values: Any) -> Column:
    array = as_array(values, keep_kind=True) if isinstance(values, np.ndarray) else objects(values)
    if array.dtype.kind not in "fiubOUS":
        raise TypeError(
            f"column {name!r} must hold numbers or categories; got dtype {array.dtype}. Convert or drop it."
        )
    return column_of(array, name)


class FeatureTable:
    """Columns as they were at the beginning, and the rows of Phi they give: (n, d), of length 1 when normalised.

    A column of numbers gives (x - mean) / standard deviation, one of 0 and 1 (or booleans) itself, one of categories an
    indicator a category. A missing value gives 0 in all of its column's places: it makes no two rows alike or
    different, and the other columns of the row count for more, as the row is scaled to length 1 over what it has. A row
    with no feature at all gets the last place of Phi, which no other row has: alike to its kind, orthogonal to the
    rest.
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
                raise ValueError("X must hold an entry that is not missing or zero; it holds none. Use Identity.")
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
                    "with normalize=False a row's features may have at most the squared length known at the "
                    f"beginning, {self.radius:.6g}; got {length[0] ** 2:.6g} for {shown(came)}. Use normalize=True."
                )
            Phi = np.column_stack([raw, np.zeros(len(raw))]) / np.sqrt(self.radius)
        scaled: Floats = np.sqrt(self.weight) * Phi
        return scaled


def _fit(name: str, values: NDArray[Any], standardize: bool) -> dict[str, Any]:
    if values.dtype == object:
        levels = sorted(set(values) - {""})
        return {"name": name, "levels": levels, "center": 0.0, "scale": 1.0}
    seen = values[~np.isnan(values)]
    center, scale = 0.0, 1.0
    if standardize and not np.isin(seen, (0.0, 1.0)).all():
        spread = column_spread(Observed.from_dense(seen[:, None]), None)
        (scale,), (constant,) = scales_of(spread.mean, spread.deviation)
        center, scale = float(spread.mean[0]), np.inf if constant else float(scale)  # a constant column says nothing
    return {"name": name, "levels": None, "center": center, "scale": scale}


def _encode(column: Mapping[str, Any], values: NDArray[Any]) -> Floats:
    name, levels = column["name"], column["levels"]
    if levels is None:
        if values.dtype == object:
            raise ValueError(f"feature {name!r} must be a number, as at the beginning; got {shown(values[0])}.")
        scaled = (values - column["center"]) / column["scale"]
        return np.where(np.isnan(values), 0.0, scaled)[:, None]
    # A category that was not there at the beginning counts as missing.
    block: Floats = np.equal.outer(as_labels(values), np.array(levels, dtype=object)).astype(np.float64)
    return block


class FeatureState(FactorState):
    """Features of ids, to which rows of the same features may be added."""

    grows = True

    def __init__(
        self, Phi: Floats, own: float, const: float, ids: list[Hashable] | None, digest: str, table: FeatureTable
    ) -> None:
        super().__init__(Phi, own, const, ids, digest)
        self._features, self._n_begun = table, len(Phi)

    @property
    def table_columns(self) -> list[dict[str, Any]]:
        """The table's columns in the order of their places in Phi; those with levels have a place for each."""
        return self._features.columns

    def read(self, value: Any) -> Any:
        """The features of one more id: a row of numbers, or a mapping from the names of the columns."""
        return self._features.encode_row(value)

    def _grown(self) -> dict[str, Any]:
        return {"phi": self._phi.rows[self._n_begun :].copy()}

    def _grow_again(self, grown: Mapping[str, Any]) -> None:
        begun = self._phi.rows
        rule = floats("rows", begun.shape[1], dtype=np.float64)
        check_parts(grown, {"phi": rule}, "a state of side information", {})
        self._phi = RowStore(np.concatenate([begun, grown["phi"]]))


class Features(SideInformation):
    """What is known of every id, as numbers and categories: a kernel of low rank.

    K = info Phi Phi^T + const 11^T + own I with info = 1 - own - const. With own = 0 the cost of
    learning does not depend on the number of ids, only on the number d of places.

    Parameters
    ----------
    X : array-like of shape (n,) or (n, d), sparse matrix, mapping of columns, or data frame
        Rows are ids. Columns of numbers are standardised; of 0 and 1 or booleans, taken as they
        are; of strings or categories, one-hot. Missing values (NaN, None, null, empty text) give
        zeros in all places of their column: they make no two ids alike. In a sparse matrix what is
        not stored is zero.
    ids : sequence of n hashable ids, optional
        Default: the index of a pandas DataFrame, else 0 to n - 1.
    own, const : float, default=0.0
        Shares of each id's own direction and of the direction all share. `Mix` does the same
        outside.
    standardize : bool, default=True
        Whether columns of numbers are centred and divided by their standard deviation.
    normalize : bool, default=True
        Rows of Phi have length 1, over the features the row has; ids without any feature share one
        place of their own. False: Phi over the largest length.

    Notes
    -----
    `begin` is O(n d) and raises ValueError for infinities, for no column and for ids that do not
    fit. More ids come with `grow(features)`; a category that was not there at the beginning counts
    as missing.

    Examples
    --------
    >>> from lacunar.completion import Features
    >>> side = Features({"genre": ["war", "love", "war"], "old": [True, True, None]}).begin()
    >>> side.dense().round(2).tolist()
    [[1.0, 0.5, 0.71], [0.5, 1.0, 0.0], [0.71, 0.0, 1.0]]
    >>> side.grow({"genre": "love"})
    3
    """

    def __init__(
        self,
        X: Any,
        ids: Sequence[Hashable] | None = None,
        *,
        own: float = 0.0,
        const: float = 0.0,
        standardize: bool = True,
        normalize: bool = True,
    ) -> None:
        self.X, self.ids, self.own, self.const = X, ids, own, const
        self.standardize, self.normalize = standardize, normalize

    def begin(self) -> SideState:
        """The state an engine reads, of kind "factor", growing."""
        own, const = check_weight(self.own, "own"), check_weight(self.const, "const")
        if own + const > 1:
            raise ValueError(f"own + const must be at most 1; got {own:g} + {const:g}.")
        table, Phi = FeatureTable.fitted(
            self.X, standardize=bool(self.standardize), normalize=bool(self.normalize), weight=1 - own - const
        )
        ids = check_ids(self.ids if self.ids is not None else index_names(self.X), len(Phi), "X")
        return FeatureState(Phi, own, const, ids, digest_of(phi=Phi, own=own, const=const, ids=ids), table)

    def _plain_params(self) -> dict[str, Any]:
        columns = {n: c.tolist() if c.dtype == object else c for n, c in read_table(self.X).items()}
        return {"X": columns, "ids": plain_ids(self.ids if self.ids is not None else index_names(self.X))}
