"""The rows that Algorithm 1 keeps and their coefficients, in arrays with room for more."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar.kernels import KernelForm
from lacunar.observed import Observed
from lacunar.observed.rules import Number, Rule, Word

_Floats = NDArray[np.float64]

# What the states of both engines of Algorithm 1 have in common.
STEP_RULE: dict[str, Rule] = {
    "loss": Word(("squared", "hinge", "squared_hinge", "logistic", "absolute", "epsilon_insensitive")),
    "rho": Number(low=0, above=True),
    "epsilon": Number(low=0),
    "eta": Word(("theory", "printed", "constant", "invscaling")),
    "eta0": Number(low=0, above=True),
    "power_t": Number(low=0),
    "iterate": Word(("weighted", "average", "last")),
    "n_features": Number(whole=True, low=0, high=2**31 - 1, names="n_features"),
    "n_outputs": Number(whole=True, low=1, high=2**31 - 1, names="n_outputs"),
    "dtype": Word(("float32", "float64")),
}


def row_scales(form: KernelForm, rows: Observed) -> NDArray[Any] | None:
    """1 / sqrt(k(x, x)) of every row in its own precision, None without the cosine."""
    return form.row_scale(form.raw_diagonal(rows)).astype(rows.dtype) if form.cosine else None


def row_kernel(form: KernelForm, rows: Observed) -> tuple[Any, ...]:
    """The kernel between these rows and any others, as the core takes it."""
    longest = int(rows.row_counts.max(initial=0))  # no row shares more columns with one of these
    table = form.table(longest).astype(rows.dtype)
    return (*form.coefficients(), table, form.degree, form.coef0, 1 / (1 + form.coef0))


def _longer(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    """An array of at least `size` that begins with the first `used` of this one; itself where it is long enough."""
    if len(array) >= size:
        return array
    made = np.empty((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    made[:used] = array[:used]
    return made


class Support(NamedTuple):
    """`n_rows` rows of a table of `n_features` columns; what lies behind them in the arrays is nobody's.

    Never changed in place but behind `n_rows`: an older `Support` of the same arrays stays what it was.
    """

    n_features: int
    n_rows: int
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[Any]
    scale: NDArray[Any] | None
    first: _Floats
    second: _Floats

    @classmethod
    def of(cls, rows: Observed, first: _Floats, second: _Floats, form: KernelForm) -> Support:
        """Rows and their coefficients (n, outputs)."""
        arrays = np.array(rows.indptr), np.array(rows.indices), np.array(rows.values)  # to be written behind
        own = np.array(first), np.array(second)  # writable, which those of a mapped file are not
        return cls(rows.shape[1], rows.shape[0], *arrays, row_scales(form, rows), *own)

    @property
    def rows(self) -> Observed:
        """The rows, without a copy."""
        used = int(self.indptr[self.n_rows])
        arrays = self.indptr[: self.n_rows + 1], self.indices[:used], self.values[:used]
        return Observed._trusted(*arrays, (self.n_rows, self.n_features))

    @property
    def coefficients(self) -> tuple[_Floats, _Floats]:
        """Both (n_rows, outputs)."""
        return self.first[: self.n_rows], self.second[: self.n_rows]

    def with_room(self, rows: int, entries: int) -> Support:
        """The same with room for more rows; amortised O(what is added)."""
        used, size = int(self.indptr[self.n_rows]), self.n_rows + rows
        return self._replace(
            indptr=_longer(self.indptr, self.n_rows + 1, size + 1),
            indices=_longer(self.indices, used, used + entries),
            values=_longer(self.values, used, used + entries),
            scale=None if self.scale is None else _longer(self.scale, self.n_rows, size),
            first=_longer(self.first, self.n_rows, size),
            second=_longer(self.second, self.n_rows, size),
        )

    def folded(self, scale: float, reach: float) -> Support:
        """first <- scale first, second <- second - reach first."""
        first, second = self.coefficients
        with np.errstate(over="ignore", invalid="ignore"):  # the next row finds what is not finite
            return self._replace(first=scale * first, second=second - reach * first)

    @property
    def core(self) -> tuple[Any, ...]:
        """The arguments of the core."""
        return self[1:]
