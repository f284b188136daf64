"""One kernel of the family: its formula and the constants that data settle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lacunar._check import refuse_range
from lacunar.observed import Observed

Scale = float | Literal["mean", "raw"]
Normalize = Literal["cosine", "trace"] | None
Method = Literal["auto", "dense", "spmm", "inverted"]

_ROWS = 4096  # rows whose squares are held at once
_HORNER = 10_000  # terms that are summed; more are as good as infinitely many but where u is near 1
_LEAST = {
    "gamma": 0.0,
    "count_scale": 0.0,
    "constant": -np.inf,
    "indicators": 0.0,
    "trace": 0.0,
    "degree": 1,
    "coef0": 0.0,
}
_STEEPEST = 1000  # degree of a composition: beyond it floats keep nothing of the kernel but its diagonal


def series(counts: NDArray[Any], gamma: float) -> NDArray[np.float64]:
    """g(u) = 1 + u + ... + u^(gamma - 1), and between integers the mixture of the two neighbours.

    For gamma = k + t with k whole and 0 <= t < 1, g_gamma = (1 - t) g_k + t g_(k+1) = 1 + u + ... + u^(k-1) + t u^k.

    Parameters
    ----------
    counts : array-like
        u >= 0, of any shape.
    gamma : float
        Above 0.

    Returns
    -------
    values : ndarray
        Of the shape of `counts`.

    Notes
    -----
    Theorem 4 of Hazan, Livni and Mansour (2015) has whole gamma only; the quotient (u^gamma - 1) / (u - 1) at other gamma gives no
    positive semi-definite kernel. The mixture does. Proof: N with N_ij = |o_i n o_j| is the Gram of the 0/1 masks of the rows, and S
    with S_ij = <x_i, x_j> over common columns is the Gram of the rows filled with zeros. Both are positive semi-definite, so
    S * N^p is for every whole p >= 0 (entrywise products keep this: Schur), and so is a sum of these with weights >= 0. The
    weights here are 1 and t, with powers of the count scale c > 0. The same holds for S + a N, a >= 0, in place of S.
    The mixture is continuous in gamma, agrees with the theorem at whole gamma, and its features are those of phi_(k+1) with the
    sequences of k + 1 columns weighed by sqrt(t).

    Examples
    --------
    >>> series(np.array([0.0, 1.0, 3.0]), 3)
    array([ 1.,  3., 13.])
    >>> series(np.array([0.0, 1.0, 3.0]), 2.5)  # halfway between gamma 2 and 3
    array([1. , 2.5, 8.5])
    """
    u = np.asarray(counts, dtype=np.float64)
    whole = int(gamma)
    if gamma <= _HORNER:
        total = np.full_like(u, gamma - whole)  # Horner on floats: exact where the result is, no quotient near u = 1
        for _ in range(whole):
            total = total * u + 1.0
        return total
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotient = np.expm1(whole * np.log(u)) / (u - 1.0)
        last = (gamma - whole) * u**whole if gamma > whole else 0.0
    return np.where(u == 0.0, 1.0, np.where(np.abs(u - 1.0) < 1e-12, whole, quotient)) + last


@dataclass(frozen=True)
class KernelForm:
    """One kernel of the family, with every data-dependent constant settled.

    k(x, x') = (s + constant^2 + indicators (n + [constant])) g((n + [constant]) / count_scale) / trace, where s and n are
    the sum over and the number of common observed columns, and [constant] is 1 when there is a constant feature. With
    ``cosine`` the value is divided by sqrt(k(x, x) k(x', x')) instead; a row of zero norm stays zero. With ``degree`` p > 1
    the kernel is ((k + coef0) / (1 + coef0))^p, the composition of section 6 of the paper; its diagonal stays near 1.

    Attributes
    ----------
    gamma : float
    count_scale : float
        The c of n / c: 1 is the paper's raw kernel.
    constant : float
        Value of the constant feature; 0 means none.
    indicators : float
        Weight of the observed-indicator part.
    cosine : bool
    trace : float
        What the kernel is divided by.
    degree : int
    coef0 : float
        Counts with a degree above 1 only.
    """

    gamma: float = 2.0
    count_scale: float = 1.0
    constant: float = 0.0
    indicators: float = 0.0
    cosine: bool = False
    trace: float = 1.0
    degree: int = 1
    coef0: float = 1.0

    def __post_init__(self) -> None:
        # By any way to a form, a model file included.
        if not all(isinstance(value, int | float | np.number | np.bool_) for value in vars(self).values()):
            raise TypeError(f"a kernel's constants must be numbers; got {str(vars(self))[:200]}.")
        if self.degree > _STEEPEST:
            raise ValueError(
                f"degree must be at most {_STEEPEST}; got {self.degree}. A float keeps nothing of such a power."
            )

    def _check_loaded(self) -> None:
        """Constants out of a model file; those of rows may be infinite until the door refuses them in its own words."""
        wrong = [name for name, low in _LEAST.items() if not low <= getattr(self, name) < np.inf]
        if wrong or not (self.gamma > 0 and self.count_scale > 0 and self.trace > 0):
            raise ValueError(
                "a kernel's constants must be finite, gamma and scales above 0, degree at least 1; got "
                f"{str(vars(self))[:200]}. Fit again"
            )

    @classmethod
    def fit(
        cls,
        reference: Observed,
        *,
        gamma: float = 2.0,
        scale: Scale = "mean",
        constant: float = 0.0,
        indicators: float = 0.0,
        normalize: Normalize = None,
        degree: int = 1,
        coef0: float = 1.0,
    ) -> KernelForm:
        """Settle the count scale and the trace on the rows the kernel refers to (the training rows). O(nnz)."""
        count_scale = 1.0 if scale == "raw" else scale
        if count_scale == "mean":
            counts = reference.row_counts
            count_scale = max(float(counts.mean()) if counts.size else 0.0, 0.0) + (constant != 0) or 1.0
        form = cls(
            float(gamma),
            float(count_scale),
            float(constant),
            float(indicators),
            normalize == "cosine",
            degree=int(degree),
            coef0=float(coef0),
        )
        if normalize != "trace":
            return form
        trace = float(form.raw_diagonal(reference).mean()) if reference.shape[0] else 1.0
        return replace(form, trace=trace if trace > 0 else 1.0)

    def coefficients(self) -> tuple[float, float, float]:
        """(on_sum, on_count, constant) of the factor before g."""
        base = self.constant * self.constant + (self.indicators if self.constant else 0.0)
        return 1.0 / self.trace, self.indicators / self.trace, base / self.trace

    def table(self, largest: int) -> NDArray[np.float64]:
        """g by number of common observed columns, 0 to `largest`."""
        return series((np.arange(largest + 1) + (self.constant != 0)) / self.count_scale, self.gamma)

    def _combine(self, sums: NDArray[Any], counts: NDArray[Any], table: NDArray[np.float64]) -> NDArray[np.float64]:
        on_sum, on_count, constant = self.coefficients()
        values: NDArray[np.float64] = (on_sum * sums + (on_count * counts + constant)) * table[counts]
        return values

    def compose(self, values: NDArray[Any]) -> None:
        """From k to ((k + coef0) / (1 + coef0))^degree, in place; by products, whose bits do not depend on the place."""
        if self.degree == 1:
            return
        values += values.dtype.type(self.coef0)
        values *= values.dtype.type(1 / (1 + self.coef0))
        base = values.copy() if self.degree > 2 else values
        for _ in range(self.degree - 1):
            values *= base

    def raw_diagonal(self, X: Observed) -> NDArray[np.float64]:
        """k(x, x) before the cosine and the degree, shape (n,). O(nnz)."""
        counts = X.row_counts
        sums = np.zeros(X.shape[0])
        with np.errstate(over="ignore", invalid="ignore"):  # the door refuses what is not finite: `range_needed`
            for start in range(0, len(sums), _ROWS):  # by blocks: a float64 copy of all values costs more than its sums
                offsets = X.indptr[start : start + _ROWS + 1]
                squares = np.square(X.values[offsets[0] : offsets[-1]], dtype=np.float64)
                filled = np.flatnonzero(np.diff(offsets))
                # Row by row: differences of one running sum would lose the small rows behind a large one.
                if len(filled):
                    sums[start + filled] = np.add.reduceat(squares, offsets[filled] - offsets[0])
            return self._combine(sums, counts, self.table(int(counts.max(initial=0))))

    def range_needed(self, X: Observed, Y: Observed | None = None) -> tuple[float, float]:
        """Bounds (smallest, largest) on every number met on the way to the kernel between X and Y. O(nnz).

        By Cauchy-Schwarz no sum and no kernel value exceeds the larger of two diagonals. The smallest is that of what is
        divided by: the trace and, for the cosine, norms of rows that are not zero.
        """
        tables = [rows for rows in (X, Y) if rows is not None]
        diagonals = np.concatenate([self.raw_diagonal(rows) for rows in tables])
        on_sum, on_count, base = map(abs, self.coefficients())
        counts = max(int(rows.row_counts.max(initial=0)) for rows in tables)
        with np.errstate(over="ignore", invalid="ignore"):
            value = max(float(np.abs(rows.values).max(initial=0)) for rows in tables)
            sums = value * value * max(counts, 1)
            before = on_sum * sums + on_count * counts + base
            last = np.array([1.0 if self.cosine else diagonals.max(initial=0)])
            self.compose(last)
            largest = np.array([diagonals.max(initial=0), sums, before, on_sum, self.table(counts)[-1], last[0]])
        positive = diagonals[diagonals > 0] if self.cosine else diagonals[:0]
        return min(self.trace, float(positive.min(initial=1.0))), float(largest.max())

    def row_scale(self, raw_diagonal: NDArray[np.float64]) -> NDArray[np.float64]:
        """1 / sqrt(k(x, x)), and 0 for a row of zero norm."""
        norm = np.sqrt(raw_diagonal)
        return np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)

    def diagonal(self, X: Observed) -> NDArray[np.float64]:
        """k(x, x) of every row, shape (n,)."""
        values = self.raw_diagonal(X)
        if self.cosine:
            values = np.asarray(values > 0, dtype=np.float64)
        self.compose(values)
        return values

    def from_sums(
        self, sums: NDArray[np.float64], counts: NDArray[np.int32], X: Observed, Y: Observed | None = None
    ) -> NDArray[np.float64]:
        """The kernel from sums and counts of `pair_sums`, shape (n, m): many kernels share one pass over pairs."""
        refuse_range(self.range_needed(X, Y), self.gamma, sums.dtype)
        values = self._combine(sums, counts, self.table(int(counts.max(initial=0))))
        if self.cosine:
            rows = self.row_scale(self.raw_diagonal(X))
            columns = rows if Y is None else self.row_scale(self.raw_diagonal(Y))
            values *= rows[:, None]
            values *= columns
        self.compose(values)
        return values

    def gram(
        self,
        X: Observed,
        Y: Observed | None = None,
        *,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
        out: NDArray[Any] | None = None,
        method: Method = "auto",
    ) -> NDArray[Any]:
        """The kernel between the rows of X and those of Y (default X), shape (n, m)."""
        filled = None if out is None else out[None]
        from lacunar.kernels._gram import compute_grams  # which needs this class

        made: NDArray[Any] = compute_grams([self], X, Y, np.dtype(dtype), n_jobs, filled, method)[0]
        return made
