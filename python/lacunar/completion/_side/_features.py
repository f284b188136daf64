"""`Features`: rows of features as side information."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from lacunar.completion._side._base import SideInformation
from lacunar.completion._side._checks import check_ids, check_weight, index_names
from lacunar.completion._side._factor import FeatureState
from lacunar.completion._side._read_table import read_table
from lacunar.completion._side._state import SideState, digest_of, plain_ids
from lacunar.completion._side._table import FeatureTable


class Features(SideInformation):
    """What is known of every id, as numbers and categories: a kernel of low rank.

    K = info Phi Phi^T + const 11^T + own I with info = 1 - own - const. With own = 0 the cost of learning does not depend
    on the number of ids, only on the number d of places.

    Parameters
    ----------
    X : array-like of shape (n,) or (n, d), sparse matrix, mapping of columns, or data frame
        Rows are ids. Columns of numbers are standardised; of 0 and 1 or booleans, taken as they are; of strings
        or categories, one-hot. Holes (NaN, None, null) give zeros in all places of their column: they make no two ids alike.
        In a sparse matrix what is not stored is zero.
    ids : sequence of n hashable ids, optional
        Default: the index of a pandas DataFrame, else 0 to n - 1.
    own, const : float, default=0.0
        Shares of each id's own direction and of the direction all share. `Mix` does the same outside.
    standardize : bool, default=True
        Whether columns of numbers are centred and divided by their standard deviation.
    normalize : bool, default=True
        Rows of Phi have length 1, over the features the row has; ids without any feature share one place of
        their own. False: Phi over the largest length.

    Notes
    -----
    `begin` is O(n d) and raises ValueError for infinities, for no column and for ids that do not fit. More ids come with
    `grow(features)`; a category not met at the beginning is a hole.

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
