"""The KARMA kernel on observed entries (Hazan, Livni, Mansour 2015, Theorem 4), as plain functions.

First `karma_kernel`, the function of any table; then `KernelForm`, one kernel and its constants; and the calls of the
core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lacunar import _core
from lacunar._threads import thread_count
from lacunar._typing import Floats
from lacunar.observed import Observed
from lacunar.observed.door import SparseMissing, as_observed, float_dtype

CountScale = float | Literal["mean", "raw"]
Normalize = Literal["cosine", "trace"] | None
Method = Literal["auto", "dense", "spmm", "inverted"]
_Entries = tuple[Any, Any, Any, Any, Any, Any, int]  # indptr, indices and values of both tables, number of columns
_Constants = tuple[Any, Any, Any, Any]  # coefficients, tables, scales of rows and of columns

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


def karma_kernel(
    X: Any,
    Y: Any = None,
    *,
    gamma: float | Sequence[float] = 2,
    count_scale: CountScale = "mean",
    constant: float = 0.0,
    indicators: float = 0.0,
    normalize: Normalize = None,
    degree: int = 1,
    coef0: float = 1.0,
    sparse_missing: SparseMissing = "absent",
    dtype: DTypeLike | None = None,
    method: Method = "auto",
    n_jobs: int | None = None,
) -> NDArray[Any]:
    """KARMA kernel between partially observed rows.

    k(x, x') = g(|o n o'| / c) <x, x'> over the columns observed in both, with g(u) = 1 + u + ... + u^(gamma - 1).
    Linear learners on its feature space compete with the best linear learner that sees the complete low-rank data.

    Parameters
    ----------
    X : array-like, frame, sparse matrix or Observed of shape (n, d)
        Rows with missing entries: NaN, null or not stored.
    Y : like X, of shape (m, d), optional
        Default X. When given, these are the reference rows (the training rows) that scales refer to.
    gamma : float or sequence of float, default=2
        Longest sequence of columns in the embedding; 1 is 0-imputation. Between integers it is the mixture of the two
        neighbours, which is positive semi-definite too (proof: `series`). A sequence gives all kernels from one pass.
    count_scale : {"mean", "raw"} or float, default="mean"
        The c that counts are divided by: the mean number of observed columns of the reference rows, 1 (the paper's raw
        form), or a number. With "mean" good regularisation hardly depends on gamma or the data set.
    constant : float, default=0.0
        Value of a constant feature, observed in every row, that is appended without storing it; 0 for none.
    indicators : float, default=0.0
        Weight a of the observed-indicator part: s + a n in place of s.
    normalize : {None, "trace", "cosine"}, default=None
        Divide by the mean diagonal of the reference rows, or by sqrt(k(x, x) k(x', x')).
    degree : int, default=1
        Above 1: ((k + coef0) / (1 + coef0))^degree of the normalised kernel, the composition of [1]_, section 6.
    coef0 : float, default=1.0
        Weight of lower degrees, >= 0.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse matrix does not store: missing, or zero.
    dtype : float32 or float64, optional
        Of the result; default that of X.
    method : {"auto", "dense", "spmm", "inverted"}, default="auto"
        Path over the pairs; "auto" estimates the fastest from sizes and density. All give the same to rounding.
    n_jobs : int, optional
        Threads; None is 1, -1 all processors. The result does not depend on it.

    Returns
    -------
    ndarray of shape (n, m), or (q, n, m) for q gammas

    Raises
    ------
    ValueError
        For infinite entries, differing numbers of columns, gamma <= 0 or a kernel beyond the largest float.

    Notes
    -----
    The kernel is that of [1]_, Theorem 4. Time O(n m d / lanes) on dense tables, O(n m o) by sparse rows and O(n m v)
    by inverted index, for o entries a row and v common ones.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.kernels import karma_kernel
    >>> X = np.array([[1.0, 2.0, np.nan], [3.0, np.nan, 1.0]])
    >>> karma_kernel(X, gamma=3, count_scale="raw")
    array([[35.,  9.],
           [ 9., 70.]])
    """
    x = as_observed(X, sparse_missing=sparse_missing)
    y = None
    if Y is not None:
        y = as_observed(Y, sparse_missing=sparse_missing)
        check_same_columns(x, y)
    gammas: list[float] = np.atleast_1d(np.asarray(gamma, dtype=np.float64)).tolist()
    check_kernel_options(gammas, count_scale, constant, indicators, normalize, method, degree, coef0)
    options: dict[str, Any] = {"constant": constant, "indicators": indicators, "degree": degree, "coef0": coef0}
    options |= {"count_scale": count_scale, "normalize": normalize}
    sums = RowSums.of(x if y is None else y)
    forms = [KernelForm.from_sums(sums, gamma=g, **options) for g in gammas]
    grams = compute_grams(forms, x, y, float_dtype(dtype, x.dtype), n_jobs, method=method)
    return grams[0] if np.ndim(gamma) == 0 else grams


def check_same_columns(X: Observed, Y: Observed | None) -> None:
    """Two tables of one kernel have the same columns."""
    if Y is not None and X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"X and Y must have the same columns; got {X.shape[1]} and {Y.shape[1]}. Select common columns first."
        )


def check_kernel_options(
    gammas: list[float],
    count_scale: object = "mean",
    constant: float = 0.0,
    indicators: float = 0.0,
    normalize: object = None,
    method: object = "auto",
    degree: object = 1,
    coef0: float = 1.0,
) -> None:
    """Options of the KARMA kernel that no array settles."""
    if not np.isfinite(constant):
        raise ValueError(f"constant must be a finite number; got {constant!r}. Use 1, or 0 for none.")
    if not 0 <= indicators < np.inf:
        raise ValueError(f"indicators must be finite and >= 0; got {indicators!r}. Use 1, or 0 for none.")
    for gamma in gammas:
        if not 0 < gamma < np.inf:
            raise ValueError(f"gamma must be positive; got {gamma:g}. Use 1 for 0-imputation, 2 to 4 for KARMA.")
    if not (
        count_scale in ("mean", "raw")
        if isinstance(count_scale, str)
        else isinstance(count_scale, int | float | np.number) and 0 < count_scale < np.inf
    ):
        raise ValueError(f"count_scale must be 'mean', 'raw' or a positive number; got {count_scale!r}.")
    if normalize not in (None, "trace", "cosine"):
        raise ValueError(f"normalize must be None, 'trace' or 'cosine'; got {normalize!r}.")
    if method not in ("auto", "dense", "spmm", "inverted"):
        raise ValueError(f"method must be 'auto', 'dense', 'spmm' or 'inverted'; got {method!r}.")
    if not isinstance(degree, int | np.integer) or isinstance(degree, bool) or degree < 1:
        raise ValueError(
            f"degree must be an integer >= 1; got {degree!r}. Use 1 for the kernel itself, 2 for its square."
        )
    if not 0 <= coef0 < np.inf:
        raise ValueError(f"coef0 must be finite and >= 0; got {coef0!r}. Use 1, or 0 for a pure power.")


def refuse_range(needed: tuple[float, float], gamma: float, dtype: np.dtype[Any]) -> None:
    """ValueError for a kernel whose numbers, from smallest divisor to largest value, leave the range of the dtype; it
    is not computed.
    """
    smallest, largest = needed
    limits = np.finfo(dtype)
    if not largest < float(limits.max) / 4:
        raise ValueError(
            f"the kernel must be representable in {dtype}; gamma={gamma:g} and these values need numbers up to "
            f"{largest:.3g}. Use count_scale='mean', a smaller gamma, columns of smaller scale, or float64."
        )
    if not smallest > float(limits.tiny) / float(limits.eps):
        raise ValueError(
            f"the kernel must not be divided by numbers below the precision of {dtype}; normalize needs 1 / "
            f"{smallest:.3g}. Use columns of larger scale, normalize=None, or float64."
        )


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
    Theorem 4 of Hazan, Livni and Mansour (2015) has whole gamma only; the quotient (u^gamma - 1) / (u - 1) at other
    gamma gives no positive semi-definite kernel. The mixture does. Proof: N with N_ij = |o_i n o_j| is the Gram of the
    0/1 masks of the rows, and S with S_ij = <x_i, x_j> over common columns is the Gram of the rows filled with zeros.
    Both are positive semi-definite, so S * N^p is for every whole p >= 0 (entrywise products keep this: Schur), and so
    is a sum of these with weights >= 0. The weights here are 1 and t, with powers of the count scale c > 0. The same
    holds for S + a N, a >= 0, in place of S. The mixture is continuous in gamma, agrees with the theorem at whole
    gamma, and its features are those of phi_(k+1) with the sequences of k + 1 columns weighed by sqrt(t).

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


def row_squares(X: Observed) -> Floats:
    """Sum of squares of every row's observed entries, shape (n,). O(nnz)."""
    sums = np.zeros(X.shape[0])
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(sums), _ROWS):  # by blocks: a float64 copy of all values costs more than its sums
            offsets = X.indptr[start : start + _ROWS + 1]
            squares = np.square(X.values[offsets[0] : offsets[-1]], dtype=np.float64)
            filled = np.flatnonzero(np.diff(offsets))
            # Row by row: differences of one running sum would lose the small rows behind a large one.
            if len(filled):
                sums[start + filled] = np.add.reduceat(squares, offsets[filled] - offsets[0])
    return sums


def _mean(values: NDArray[Any], weight: Floats | None, empty: float) -> float:
    """Weighted mean; `empty` for no values."""
    return float(np.average(values, weights=weight)) if len(values) else empty


class RowSums(NamedTuple):
    """What kernels read of single rows (n,), sums of squares and numbers of observed columns, and the largest modulus
    of an entry.
    """

    squares: Floats
    sizes: NDArray[Any]
    largest: float

    @classmethod
    def of(cls, X: Observed) -> RowSums:
        """Sums of the rows of X. O(nnz)."""
        return cls(row_squares(X), np.diff(X.indptr), float(np.abs(X.values).max(initial=0)))


class RowPairSums(NamedTuple):
    """All that the kernels here read of n rows and m others.

    Sums of products and numbers of common observed columns over pairs, (n, m); sums of squares and numbers of observed
    columns of the rows (n,) and of the others (m,).
    """

    sums: NDArray[Any]
    counts: NDArray[np.int32]
    squares: Floats
    sizes: NDArray[Any]
    other_squares: Floats
    other_sizes: NDArray[Any]

    @classmethod
    def between(cls, X: Observed, Y: Observed | None = None, n_jobs: int | None = None) -> RowPairSums:
        """Sums over the pairs of rows of X and Y (default X)."""
        own = row_squares(X), X.row_counts
        other = own if Y is None else (row_squares(Y), Y.row_counts)
        return cls(*pair_sums(X, Y, n_jobs=n_jobs), *own, *other)


@dataclass(frozen=True)
class KernelForm:
    """One kernel of the family, with every data-dependent constant fitted.

    k(x, x') = (s + constant^2 + indicators (n + [constant])) g((n + [constant]) / count_scale) / trace, where s and n
    are the sum over and the number of common observed columns, and [constant] is 1 when there is a constant feature.
    With ``cosine`` the value is divided by sqrt(k(x, x) k(x', x')) instead; a row of zero norm stays zero. With
    ``degree`` p > 1 the kernel is ((k + coef0) / (1 + coef0))^p, the composition of section 6 of the paper; its
    diagonal stays near 1.

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
        """Refuse constants of a model file outside their ranges."""
        wrong = [name for name, low in _LEAST.items() if not low <= getattr(self, name) < np.inf]
        if wrong or not (self.gamma > 0 and self.count_scale > 0 and self.trace > 0):
            raise ValueError(
                "a kernel's constants must be finite, gamma and scales above 0, degree at least 1; got "
                f"{str(vars(self))[:200]}. Fit again"
            )

    @classmethod
    def fit(cls, reference: Observed, *, weight: Floats | None = None, **options: Any) -> KernelForm:
        """Settle the count scale and the trace on the rows the kernel refers to (the training rows). O(nnz).

        `weight` (n,) is how often each row counts; None is once. `options` are those of `from_sums`.
        """
        return cls.from_sums(RowSums.of(reference), weight, **options)

    @classmethod
    def from_sums(
        cls,
        rows: RowSums | RowPairSums,
        weight: Floats | None = None,
        *,
        gamma: float = 2.0,
        count_scale: CountScale = "mean",
        constant: float = 0.0,
        indicators: float = 0.0,
        normalize: Normalize = None,
        degree: int = 1,
        coef0: float = 1.0,
    ) -> KernelForm:
        """The kernel of `fit`, from the sums of squares and numbers of observed columns of the rows."""
        divisor = 1.0 if count_scale == "raw" else count_scale
        if divisor == "mean":
            divisor = max(_mean(rows.sizes, weight, 0.0), 0.0) + (constant != 0) or 1.0
        form = cls(float(gamma), float(divisor), float(constant), float(indicators), normalize == "cosine")
        if normalize == "trace":
            with np.errstate(over="ignore", invalid="ignore"):  # the door refuses what is not finite: `range_needed`
                trace = _mean(form.combine(rows.squares, rows.sizes), weight, 1.0)
            form = replace(form, trace=trace if trace > 0 else 1.0)
        return replace(form, degree=int(degree), coef0=float(coef0))

    def coefficients(self) -> tuple[float, float, float]:
        """(on_sum, on_count, constant) of the factor before g."""
        base = self.constant * self.constant + (self.indicators if self.constant else 0.0)
        return 1.0 / self.trace, self.indicators / self.trace, base / self.trace

    def table(self, largest: int) -> NDArray[np.float64]:
        """g (largest + 1,) by number of common observed columns, 0 to `largest`."""
        return series((np.arange(largest + 1) + (self.constant != 0)) / self.count_scale, self.gamma)

    def combine(self, sums: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
        """(s + constant^2 + indicators (n + [constant])) g / trace, in the dtype of the sums."""
        real = sums.dtype.type
        on_sum, on_count, constant = map(real, self.coefficients())
        values: NDArray[Any] = sums * on_sum
        values += counts.astype(sums.dtype) * on_count + constant if on_count else constant
        g = self.table(int(counts.max(initial=0)))
        if (g != 1).any():  # it is 1 everywhere at gamma=1
            # `take` in a mode reads an entry in a third of the time of an index, which is checked.
            values *= g.astype(sums.dtype).take(counts, mode="clip")
        return values

    def of_pairs(self, pairs: RowPairSums) -> NDArray[Any]:
        """The kernel from sums over pairs, shape (n, m), in their dtype. No range is checked."""
        values = self.combine(pairs.sums, pairs.counts)
        if self.cosine:
            values *= self.row_scale(self.combine(pairs.squares, pairs.sizes)).astype(values.dtype)[:, None]
            values *= self.row_scale(self.combine(pairs.other_squares, pairs.other_sizes)).astype(values.dtype)
        self.compose(values)
        return values

    def compose(self, values: NDArray[Any]) -> None:
        """From k to ((k + coef0) / (1 + coef0))^degree, in place; by products, whose bits do not depend on the
        place.
        """
        if self.degree == 1:
            return
        values += values.dtype.type(self.coef0)
        values *= values.dtype.type(1 / (1 + self.coef0))
        base = values.copy() if self.degree > 2 else values
        for _ in range(self.degree - 1):
            values *= base

    def raw_diagonal(self, X: Observed) -> NDArray[np.float64]:
        """k(x, x) before the cosine and the degree, shape (n,). O(nnz)."""
        with np.errstate(over="ignore", invalid="ignore"):  # the door refuses what is not finite: `range_needed`
            return self.combine(row_squares(X), X.row_counts)

    def range_needed(self, *tables: RowSums) -> tuple[float, float]:
        """Bounds (smallest, largest) on every number met on the way to the kernel between rows of these tables. O(n).

        By Cauchy-Schwarz no sum and no kernel value exceeds the larger of two diagonals. The smallest is that of what
        is divided by: the trace and, for the cosine, norms of rows that are not zero.
        """
        on_sum, on_count, base = map(abs, self.coefficients())
        counts = max(int(rows.sizes.max(initial=0)) for rows in tables)
        with np.errstate(over="ignore", invalid="ignore"):
            diagonals = np.concatenate([self.combine(rows.squares, rows.sizes) for rows in tables])
            value = max(rows.largest for rows in tables)
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

    def gram(
        self,
        X: Observed,
        Y: Observed | None = None,
        *,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
        method: Method = "auto",
    ) -> NDArray[Any]:
        """The kernel between the rows of X and those of Y (default X), shape (n, m)."""
        values: NDArray[Any] = compute_grams([self], X, Y, np.dtype(dtype), n_jobs, method=method)[0]
        return values


@dataclass(frozen=True)
class RadialForm:
    """exp(-D / (2 length^2)), or with ``laplace`` exp(-sqrt(D) / length), on rows filled by column means, and their
    masks.

    D(x, x') = |z - z'|^2 + mask |o - o'|^2, where z is the standardised row with 0 (the mean), or a completion, where
    an entry is missing, and o tells what is observed: a positive semi-definite kernel, since it is one of the vectors
    (z, sqrt(mask) o).

    Attributes
    ----------
    length : float
    mask : float
    laplace : bool
    """

    length: float
    mask: float = 0.25
    laplace: bool = False

    def _check_loaded(self) -> None:
        numbers = all(isinstance(value, int | float | np.number | np.bool_) for value in vars(self).values())
        if not numbers or not (0 < self.length < np.inf and 0 <= self.mask < np.inf):
            raise ValueError(f"a radial kernel must have a length above 0; got {str(vars(self))[:200]}. Fit again")

    @staticmethod
    def distances(pairs: RowPairSums, mask: float) -> NDArray[Any]:
        """D of every pair, shape (n, m), in the dtype of the sums."""
        real = pairs.sums.dtype.type
        values: NDArray[Any] = pairs.sums * real(-2.0)
        if mask:
            values -= pairs.counts.astype(values.dtype) * real(2.0 * mask)
        values += (pairs.squares + mask * pairs.sizes).astype(values.dtype)[:, None]
        values += (pairs.other_squares + mask * pairs.other_sizes).astype(values.dtype)
        np.maximum(values, 0.0, out=values)
        return values

    def of_pairs(self, pairs: RowPairSums) -> NDArray[Any]:
        """The kernel from sums over pairs, shape (n, m), in their dtype."""
        values = self.distances(pairs, self.mask)
        if self.laplace:
            np.sqrt(values, out=values)
            values *= values.dtype.type(-1.0 / self.length)
        else:
            values *= values.dtype.type(-0.5 / self.length**2)
        np.exp(values, out=values)
        return values


def fitted_kernels(
    specifications: Sequence[tuple[type[KernelForm | RadialForm], dict[str, Any]]],
    pairs: RowPairSums,
    weight: Floats,
    dtype: Any,
) -> list[tuple[KernelForm | RadialForm, NDArray[Any]]]:
    """Kernels by kind and options, fitted to rows by the sums over their pairs, with their Grams (n, n)."""
    sums = pairs._replace(sums=pairs.sums.astype(dtype, copy=False))
    kernels: list[tuple[KernelForm | RadialForm, NDArray[Any]]] = []
    for kind, options in specifications:
        if kind is KernelForm:
            form: Any = KernelForm.from_sums(pairs, weight, **options)
            with np.errstate(over="ignore", invalid="ignore"):
                largest = np.max(form.combine(pairs.squares, pairs.sizes), initial=form.trace)
            if not np.isfinite(largest):
                refuse_range((1.0, np.inf), form.gamma, np.dtype(np.float64))
        else:
            form = RadialForm(**options)
        kernels.append((form, form.of_pairs(sums)))
    return kernels


def _arguments(
    forms: Sequence[KernelForm], X: Observed, Y: Observed | None, dtype: np.dtype[Any]
) -> tuple[_Entries, _Constants]:
    """What the core takes, in the dtype of the result: the entries of both tables; coefficients, tables and scales of
    the forms.
    """
    rows = [RowSums.of(X)] if Y is None else [RowSums.of(X), RowSums.of(Y)]
    for form in forms:
        refuse_range(form.range_needed(*rows), form.gamma, dtype)
    x = X.astype(dtype)
    y = x if Y is None else Y.astype(dtype)
    row_scale = col_scale = None
    if any(form.cosine for form in forms):
        scales = [_scales(forms, sums).astype(dtype) for sums in rows]
        row_scale, col_scale = scales[0], scales[-1]
    coefficients = np.array([form.coefficients() for form in forms]).astype(dtype)
    most_shared = min(int(sums.sizes.max(initial=0)) for sums in rows)
    tables = np.array([form.table(most_shared) for form in forms]).astype(dtype)
    entries = (x.indptr, x.indices, x.values, y.indptr, y.indices, y.values, X.shape[1])
    return entries, (coefficients, tables, row_scale, col_scale)


def compute_grams(
    forms: Sequence[KernelForm],
    X: Observed,
    Y: Observed | None,
    dtype: np.dtype[Any],
    n_jobs: int | None,
    out: NDArray[Any] | None = None,
    method: Method = "auto",
) -> NDArray[Any]:
    """Several kernels from one pass over the pairs of rows, shape (q, n, m)."""
    entries, constants = _arguments(forms, X, Y, dtype)
    if out is None:
        out = np.empty((len(forms), X.shape[0], (X if Y is None else Y).shape[0]), dtype=dtype)
    _core.karma_gram(*entries, Y is None, *constants, out, method, thread_count(n_jobs))
    for form, values in zip(forms, out, strict=True):
        form.compose(values)
    return out


def _scales(forms: Sequence[KernelForm], rows: RowSums) -> NDArray[np.float64]:
    ones = np.ones(len(rows.sizes))
    return np.array([form.row_scale(form.combine(rows.squares, rows.sizes)) if form.cosine else ones for form in forms])


def pair_sums(
    X: Observed, Y: Observed | None = None, *, n_jobs: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Sums and numbers of common observed columns for every pair of rows: what every kernel of the family is made of.

    Parameters
    ----------
    X, Y : Observed of shape (n, d) and (m, d)
        Y defaults to X.
    n_jobs : int, optional
        Threads; None is 1, -1 all processors.

    Returns
    -------
    sums : ndarray of float64, shape (n, m)
    counts : ndarray of int32, shape (n, m)
    """
    entries, (_, ones, _, _) = _arguments([KernelForm(gamma=1.0)], X, Y, np.dtype(np.float64))
    out = np.empty((2, X.shape[0], (X if Y is None else Y).shape[0]))
    forms = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    constants = forms, np.repeat(ones, 2, axis=0), None, None
    _core.karma_gram(*entries, Y is None, *constants, out, "auto", thread_count(n_jobs))
    return out[0], out[1].astype(np.int32)
