"""Side information about the rows and columns of a matrix, known before its entries."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from lacunar._log import warn_user
from lacunar._typing import Floats
from lacunar.observed.contract import check_positions
from lacunar.observed.ids import read_ids
from lacunar.observed.rules import Instance, Number, check_parts

Kind = Literal["dense", "factor", "operator"]
DENSE_LIMIT = 4000  # ids: 128 MB of float64. Beyond, nothing that is no "dense" kind is written out.


class SideState:
    """Side information about the rows (or columns) of a matrix: a kernel K over ids, diagonal at most 1.

    kind: "dense" keeps K; "factor" is Phi Phi^T + own I + const 11^T; "operator" multiplies without holding K.
    ids: names of the first vertices, in order, when the descriptor knows names; None when ids are numbers 0..size-1,
    or, for growing kinds, whatever takes the next free vertex. is_pd_laplacian: whether K is the inverse of a
    PDLaplacian up to a factor, the first case of Theorem 3. digest: a short name of the side information as it was
    begun; growing does not change it.
    """

    kind: Kind
    ids: list[Hashable] | None = None
    grows = False
    is_pd_laplacian = False
    digest = ""

    @property
    def size(self) -> int:
        """Vertices known so far."""
        raise NotImplementedError

    def diagonal(self) -> Floats:
        """K_ii, shape (size,)."""
        raise NotImplementedError

    def columns(self, index: ArrayLike) -> Floats:
        """K[:, index], shape (size, k), C-contiguous."""
        raise NotImplementedError

    def apply(self, V: Floats) -> Floats:
        """K @ V, of V's shape (size, k) or (size,)."""
        raise NotImplementedError

    def dense(self) -> Floats:
        """K, shape (size, size), exactly symmetric; other kinds than "dense" up to `DENSE_LIMIT` ids."""
        if self.size > DENSE_LIMIT:
            raise ValueError(
                f"K may be written out for at most {DENSE_LIMIT} ids; there are {self.size}. Use apply() or columns()."
            )
        K = self.columns(np.arange(self.size))
        return (K + K.T) / 2  # a product of matrices may round (i, j) and (j, i) otherwise

    def factor(self) -> tuple[Floats, float, float]:
        """(Phi (size, d), own, const) of kind "factor"."""
        raise TypeError(f"only side information of kind 'factor' has a factor; this is {self.kind!r}. Use apply().")

    def grow(self, value: Any) -> int:
        """Add one more vertex and return its number."""
        vertex = self.size
        self.put(vertex, self.read(value))
        return vertex

    def read(self, value: Any) -> Any:
        """Check the value of one more vertex and return what `put` stores; ValueError or TypeError for a bad one."""
        raise ValueError(
            f"this side information knows {self.size} ids and takes no more; got {shown(value)}. Use side information "
            "that grows (Identity(), KernelFunction, Features with the new row's features)."
        )

    def put(self, vertex: int, point: Any) -> None:
        """Store vertex number `size`. point: what `read` returned. After an interrupt the same call may be repeated."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """What was added since the beginning, and the digest of the beginning, as plain data."""
        return {"digest": self.digest, **self._grown()}

    def grow_from(self, state: Mapping[str, Any]) -> None:
        """Add what a `state` holds to side information just begun; ValueError for a state of other side information."""
        digest = state.get("digest")
        if digest != self.digest:
            raise ValueError(
                f"the state must be of this side information; its digest is {digest!r}, this is {self.digest!r}. Pass "
                "the side information that it was of."
            )
        self._grow_again({name: part for name, part in state.items() if name != "digest"})

    def _grown(self) -> dict[str, Any]:
        return {}

    def _grow_again(self, grown: Mapping[str, Any]) -> None:
        check_parts(grown, {}, "a state of side information", {})


class RowStore:
    """An array (n, d) to which rows are appended; its memory doubles where it is full."""

    def __init__(self, rows: Floats) -> None:
        self._buffer, self.size = np.ascontiguousarray(rows, dtype=np.float64), len(rows)

    @property
    def rows(self) -> Floats:
        """The rows so far, a view (n, d)."""
        return self._buffer[: self.size]

    def put(self, n: int, row: Floats) -> None:
        """Store the last row (d,), number n."""
        if n == len(self._buffer):
            wider = np.empty((max(8, 2 * n), self._buffer.shape[1]))
            wider[:n] = self._buffer
            self._buffer = wider
        self._buffer[n] = row
        self.size = n + 1


def digest_of(**parts: Any) -> str:
    """A hash of named parts: arrays by dtype, shape and bytes, anything else by its repr."""
    seal = hashlib.blake2b(digest_size=12)
    for name in sorted(parts):
        part = parts[name]
        seal.update(f"|{name}=".encode())
        if isinstance(part, np.ndarray) and part.dtype.kind != "O":
            seal.update(f"{part.dtype.str}{part.shape}".encode())
            seal.update(np.ascontiguousarray(part).tobytes())
        else:
            seal.update(repr(part.tolist() if isinstance(part, np.ndarray) else part).encode())
    return seal.hexdigest()


def plain_ids(ids: Sequence[Hashable] | None) -> list[Hashable] | None:
    """Ids with NumPy's scalars turned into Python's objects."""
    return None if ids is None else [i.item() if isinstance(i, np.generic) else i for i in ids]


def shown(value: object) -> str:
    """A value as short text, for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def rounding(matrix: Any) -> float:
    """How far rounding may move entries of a computed matrix, as a share of the largest: 1e-8, in float32 1e-5."""
    dtype = getattr(matrix, "dtype", None)
    return 1e-5 if dtype in (np.float32, np.float16) else 1e-8


def check_kernel(K: Any) -> Floats:
    """Check that K (n, n) is finite, symmetric and positive semidefinite; return a symmetric copy. O(n^3 / 3)."""
    dense, slack = _as_square(K), rounding(K)
    if not np.isfinite(dense).all():
        row, column = (int(k) for k in np.argwhere(~np.isfinite(dense))[0])
        raise ValueError(
            f"K must be finite; got {dense[row, column]} in row {row}, column {column}. Replace or drop it."
        )
    scale = float(np.abs(dense).max(initial=0.0))
    gap = np.abs(dense - dense.T)
    if gap.size and gap.max() > slack * scale:
        row, column = (int(k) for k in np.unravel_index(gap.argmax(), gap.shape))
        raise ValueError(
            f"K must be symmetric; got {dense[row, column]:.6g} in row {row}, column {column} and "
            f"{dense[column, row]:.6g} in row {column}, column {row}. Pass (K + K.T) / 2 if that is what is meant."
        )
    dense = (dense + dense.T) / 2
    check_semidefinite(dense, slack)
    return dense


def _as_square(K: Any) -> Floats:
    if sp.issparse(K):
        if max(K.shape) > DENSE_LIMIT:
            raise ValueError(
                f"a sparse K may have at most {DENSE_LIMIT} ids; got shape {K.shape}. Use Graph (its inverse is what "
                "is sparse) or Features."
            )
        K = check_positions(K, "K").toarray()
    try:
        dense = np.array(K, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"K must be a matrix of numbers; got {type(K).__name__} ({error}).") from None
    if dense.ndim != 2 or dense.shape[0] != dense.shape[1]:
        raise ValueError(f"K must be square, a row and a column for every id; got shape {dense.shape}.")
    if not len(dense):
        raise ValueError("K must have at least one id; got an empty matrix. Use Identity() to begin with none.")
    return dense


def check_semidefinite(K: Floats, relative: float) -> None:
    """Raise ValueError where K (n, n) has an eigenvalue below -relative times its largest diagonal entry: K with that
    much on its diagonal has no Cholesky factor.
    """
    diagonal = np.diag(K)
    if (diagonal < 0).any():
        i = int(diagonal.argmin())
        raise ValueError(
            f"K must be positive semidefinite; got {diagonal[i]:.6g} on its diagonal, row {i}. Pass a kernel."
        )
    slack = relative * float(diagonal.max())
    lifted = K.copy()
    np.fill_diagonal(lifted, diagonal + slack + np.finfo(float).tiny)
    try:
        scipy.linalg.cholesky(lifted, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        smallest = float(scipy.linalg.eigh(K, eigvals_only=True, subset_by_index=[0, 0])[0])
        raise ValueError(
            f"K must be positive semidefinite; its smallest eigenvalue is {smallest:.6g}, the largest diagonal entry "
            f"{diagonal.max():.6g}. Add {abs(smallest):.3g} to the diagonal, or pass K @ K.T."
        ) from None


def check_ids(ids: Sequence[Hashable] | None, size: int, what: str) -> list[Hashable] | None:
    """Check that ids are `size` distinct ones and return them as a list; None stays None."""
    if ids is None:
        return None
    named = read_ids(list(ids), "ids")
    if len(named) != size:
        raise ValueError(f"ids must name every row of {what}; got {len(named)} ids for {size} rows. Pass one a row.")
    first: dict[Hashable, int] = {}
    for number, name in enumerate(named):
        known = first.setdefault(name, number)
        if known != number:
            raise ValueError(
                f"ids must be distinct; {shown(name)} names rows {known} and {number} of {what}. Drop one."
            )
    return named


def index_names(table: Any) -> list[Hashable] | None:
    """The index of a pandas frame as ids; None for a plain range, and for anything else."""
    index = getattr(table, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    return plain_ids(list(index))


def square_names(matrix: Any, what: str) -> list[Hashable] | None:
    """`index_names` of a frame whose columns are its index."""
    names = index_names(matrix)
    if names is not None and names != list(matrix.columns):
        raise ValueError(
            f"the columns of {what} must be its index, in the same order; they differ. Use {what}.loc[{what}.index]."
        )
    return names


def check_weight(value: Any, name: str, *, high: float = 1.0) -> float:
    """Check that a value is a finite number in [0, high] and return it."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number; got {type(value).__name__} {shown(value)}.")
    if not 0 <= value <= high:
        wish = f"from 0 to {high:g}" if np.isfinite(high) else "finite and at least 0"
        raise ValueError(f"{name} must be {wish}; got {value}.")
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite; got {value}.")
    return float(value)


def check_positive(value: Any, name: str) -> float:
    """Check that a value is a finite number above 0 and return it."""
    number = check_weight(value, name, high=np.inf)
    if number == 0:
        raise ValueError(f"{name} must be above 0; got 0.")
    return number


def check_index(index: ArrayLike, size: int) -> NDArray[np.int64]:
    """Check that an index holds vertices 0 to size - 1 and return it as an array (k,)."""
    numbers = np.atleast_1d(np.asarray(index))
    if numbers.size and numbers.dtype.kind not in "iu":
        raise TypeError(f"vertices must be integers 0 to {size - 1}; got dtype {numbers.dtype}.")
    outside = (numbers < 0) | (numbers >= size)
    if outside.any():
        raise IndexError(f"vertices must be 0 to {size - 1}; got {numbers[outside][0]}.")
    return numbers.astype(np.int64, copy=False)


class SideInformation(BaseEstimator):
    """Side information described, not yet begun: arguments stored untouched, validated by `begin`.

    Descriptors are scikit-learn objects without `fit`: `get_params`, `set_params`, `clone` and `repr` work.
    """

    def begin(self) -> SideState:
        """Check the arguments and make a new state, which an engine reads."""
        raise NotImplementedError

    def plain(self) -> SideInformation:
        """The same side information from plain data, for files: frames, graphs and scalars as
        arrays, csr_arrays and lists.

        Its state has the same digest. Raises what `begin` raises for arguments that cannot be read.
        """
        plain: SideInformation = type(self)(**{**self.get_params(deep=False), **self._plain_params()})
        return plain

    def _plain_params(self) -> dict[str, Any]:
        """By name, the constructor's arguments that may be other than plain data, as plain data."""
        return {}


class DenseState(SideState):
    """K (n, n) in memory, diagonal at most 1. A product is O(n^2)."""

    kind: Kind = "dense"

    def __init__(self, K: Floats, ids: list[Hashable] | None, digest: str, *, is_pd_laplacian: bool = False) -> None:
        self._K, self._size, self.ids, self.digest = np.ascontiguousarray(K), len(K), ids, digest
        self.is_pd_laplacian = is_pd_laplacian

    @property
    def size(self) -> int:
        return self._size

    def diagonal(self) -> Floats:
        return np.diagonal(self._K)[: self._size].copy()

    def columns(self, index: ArrayLike) -> Floats:
        # K is symmetric: its rows are read, which lie together.
        rows = self._K[check_index(index, self._size), : self._size]
        return np.ascontiguousarray(rows.T)

    def apply(self, V: Floats) -> Floats:
        return self._K[: self._size, : self._size] @ V

    def dense(self) -> Floats:
        """K itself, read-only, C-contiguous (a copy where it has room to grow)."""
        K = np.ascontiguousarray(self._K[: self._size, : self._size])
        K.flags.writeable = False
        return K

    def put_column(self, n: int, column: Floats, own: float) -> None:
        """Store the last vertex, number n: its kernel values (n,) with the others and `own` with itself. Memory doubles
        where it is full.
        """
        if n == len(self._K):
            wider = np.zeros((max(8, 2 * n), max(8, 2 * n)))
            wider[:n, :n] = self._K
            self._K = wider
        self._K[n, :n] = self._K[:n, n] = column
        self._K[n, n] = own
        self._size = n + 1

    @property
    def buffer(self) -> Floats:
        """The array that holds K in its first rows and columns."""
        return self._K


def inverse_of(M: Floats) -> Floats:
    """The kernel M^-1 (n, n), exactly symmetric, of a positive definite M. O(n^3)."""
    values, vectors = np.linalg.eigh(M)
    if values[0] <= len(M) * np.finfo(float).eps * values[-1]:
        raise ValueError(
            f"K must be positive definite for precision=True; its eigenvalues go from {values[0]:.3g} to "
            f"{values[-1]:.3g}. Add a multiple of the identity, or pass the kernel itself."
        )
    root = vectors / np.sqrt(values)
    kernel: Floats = root @ root.T
    return kernel


def scale_kernel(K: Floats, *, normalize: bool) -> Floats:
    """K with unit diagonal, or K over its largest diagonal entry. A zero diagonal entry becomes 1: an id of its own."""
    diagonal = np.diagonal(K).copy()
    top = float(diagonal.max())
    if top <= 0:
        raise ValueError("K must have a diagonal entry above 0; all are zero. Use Identity for no side information.")
    alone = diagonal <= np.finfo(float).eps * top
    if not normalize:
        return K / top
    if alone.any():
        warn_user(
            f"K is zero for {int(alone.sum())} of {len(K)} ids (first: number {int(alone.argmax())}): they have "
            "nothing "
            "in common with any other id.",
        )
    root = np.sqrt(np.where(alone, 1.0, diagonal))
    scaled: Floats = K / np.outer(root, root)
    scaled[alone] = scaled[:, alone] = 0.0
    np.fill_diagonal(scaled, 1.0)
    return scaled


class FactorState(SideState):
    """Phi (n, d), a weight for every id's own direction, one for the direction all share. A product is O(n d)."""

    kind: Kind = "factor"

    def __init__(self, Phi: Floats, own: float, const: float, ids: list[Hashable] | None, digest: str) -> None:
        self._phi, self.own, self.const = RowStore(Phi), own, const
        self.ids, self.digest = ids, digest

    @property
    def size(self) -> int:
        return self._phi.size

    def diagonal(self) -> Floats:
        Phi = self._phi.rows
        squares: Floats = np.einsum("ij,ij->i", Phi, Phi)
        return squares + (self.own + self.const)

    def columns(self, index: ArrayLike) -> Floats:
        index, Phi = check_index(index, self.size), self._phi.rows
        columns = np.ascontiguousarray(Phi @ Phi[index].T + self.const)
        columns[index, np.arange(len(index))] += self.own
        return columns

    def apply(self, V: Floats) -> Floats:
        Phi = self._phi.rows
        product: Floats = Phi @ (Phi.T @ V) + self.own * V + self.const * V.sum(axis=0)
        return product

    def put(self, vertex: int, point: Any) -> None:
        """Store a row of Phi (d,)."""
        self._phi.put(vertex, point)

    def factor(self) -> tuple[Floats, float, float]:
        """Phi is a read-only view (n, d)."""
        Phi = self._phi.rows
        Phi.flags.writeable = False
        return Phi, self.own, self.const


class IdentityState(FactorState):
    """A kernel under which different ids have nothing in common; ids may come at any time."""

    grows = True

    def read(self, value: Any) -> Any:
        """Return an empty row: an id needs no side information."""
        return np.empty(0)

    def _grown(self) -> dict[str, Any]:
        return {"size": self.size}

    def _grow_again(self, grown: Mapping[str, Any]) -> None:
        check_parts(grown, {"size": Number(whole=True, low=0, high=2**31)}, "a state of side information", {})
        self._phi = RowStore(np.empty((int(grown["size"]), 0)))


class MixedState(SideState):
    """K = info K' + const 11^T + own I of a begun K'; of the same kind, growing when K' does."""

    def __init__(self, base: SideState, info: float, const: float, own: float) -> None:
        self.base, self.info, self.const, self.own = base, info, const, own
        self.kind, self.ids, self.grows = base.kind, base.ids, base.grows
        self.digest = digest_of(mixed=base.digest, info=info, const=const, own=own)

    @property
    def size(self) -> int:
        return self.base.size

    def diagonal(self) -> Floats:
        return self.info * self.base.diagonal() + (self.const + self.own)

    def columns(self, index: ArrayLike) -> Floats:
        index = check_index(index, self.size)
        columns = self.info * self.base.columns(index) + self.const
        columns[index, np.arange(len(index))] += self.own
        return columns

    def apply(self, V: Floats) -> Floats:
        product: Floats = self.info * self.base.apply(V) + self.own * V + self.const * V.sum(axis=0)
        return product

    def dense(self) -> Floats:
        """K, a new array (size, size)."""
        K = self.info * self.base.dense() + self.const
        K.flat[:: self.size + 1] += self.own
        return K

    def factor(self) -> tuple[Floats, float, float]:
        """A new Phi (size, d), when the base has one."""
        Phi, own, const = self.base.factor()
        return np.sqrt(self.info) * Phi, self.info * own + self.own, self.info * const + self.const

    def read(self, value: Any) -> Any:
        return self.base.read(value)

    def put(self, vertex: int, point: Any) -> None:
        self.base.put(vertex, point)

    def _grown(self) -> dict[str, Any]:
        return {"base": self.base.state()}

    def _grow_again(self, grown: Mapping[str, Any]) -> None:
        check_parts(grown, {"base": Instance(Mapping)}, "a state of side information", {})
        self.base.grow_from(grown["base"])


class Identity(SideInformation):
    """No side information: ids have nothing in common (M = I; the quasi-dimension is then m + n).

    Parameters
    ----------
    n : int, optional
        Number of ids, which are then 0 to n - 1. Default: ids of any kind, new ones at any time.

    Notes
    -----
    `begin` raises TypeError or ValueError for an n that is no positive integer. O(1) memory.

    Examples
    --------
    >>> from lacunar.completion import Identity
    >>> Identity(3).begin().dense().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self, n: int | None = None) -> None:
        self.n = n

    def begin(self) -> SideState:
        """The state an engine reads, of kind "factor" with d = 0."""
        if self.n is None:
            return IdentityState(np.empty((0, 0)), 1.0, 0.0, None, digest_of(identity=None))
        if isinstance(self.n, bool) or not isinstance(self.n, int | np.integer):
            raise TypeError(f"n must be an integer or None; got {type(self.n).__name__} {self.n!r}.")
        if self.n < 1:
            raise ValueError(f"n must be at least 1; got {self.n}. Leave it out to take any id at any time.")
        return FactorState(np.empty((int(self.n), 0)), 1.0, 0.0, None, digest_of(identity=int(self.n)))


class Kernel(SideInformation):
    """A kernel matrix over all ids, K = M^+ of the paper.

    Parameters
    ----------
    K : array-like of shape (n, n), pandas DataFrame, or sparse matrix
        Symmetric and positive semidefinite, both up to 1e-8 (1e-5 in single precision); it may be
        singular.
    ids : sequence of n hashable ids, optional
        Default: the index of a pandas DataFrame, else 0 to n - 1.
    normalize : bool, default=True
        Unit diagonal, K_ij / sqrt(K_ii K_jj). False: K over its largest diagonal entry, R_M, as
        printed.
    precision : bool, default=False
        K is M itself, the positive definite side information matrix of the paper, and its inverse
        is the kernel.

    Notes
    -----
    `begin` is O(n^3 / 3), a Cholesky factorisation that shows K to be semidefinite, and raises
    ValueError for a K that is not square, finite, symmetric and positive semidefinite (definite to
    rounding with `precision`), or does not fit its ids.

    Examples
    --------
    >>> from lacunar.completion import Kernel
    >>> Kernel([[4.0, 1.0], [1.0, 1.0]]).begin().dense().tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """

    def __init__(
        self, K: Any, ids: Sequence[Hashable] | None = None, *, normalize: bool = True, precision: bool = False
    ) -> None:
        self.K, self.ids, self.normalize, self.precision = K, ids, normalize, precision

    def begin(self) -> SideState:
        """The state an engine reads, of kind "dense"."""
        names = square_names(self.K, "K")
        dense = check_kernel(self.K)
        ids = check_ids(self.ids if self.ids is not None else names, len(dense), "K")
        kernel = inverse_of(dense) if self.precision else dense
        scaled = scale_kernel(kernel, normalize=bool(self.normalize))
        return DenseState(scaled, ids, digest_of(kernel=scaled, ids=ids))

    def _plain_params(self) -> dict[str, Any]:
        ids = self.ids if self.ids is not None else index_names(self.K)
        return {"K": check_kernel(self.K), "ids": plain_ids(ids)}


class Mix(SideInformation):
    """Side information with a share for what all ids have in common and a share for each id's own
    ways.

    K = info K' + const 11^T + own I. On real data the own share decides whether wrong or thin side
    information hurts.

    Parameters
    ----------
    side : side information
        What is mixed; growing when it grows.
    info, const, own : float, defaults .6, .2, .2
        Not negative, summing to 1.

    Notes
    -----
    `begin` raises TypeError when `side` is no side information and ValueError when the weights do
    not sum to 1.

    Examples
    --------
    >>> from lacunar.completion import Kernel, Mix
    >>> Mix(Kernel([[1.0, 0.5], [0.5, 1.0]])).begin().dense().round(3).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """

    def __init__(self, side: SideInformation, *, info: float = 0.6, const: float = 0.2, own: float = 0.2) -> None:
        self.side, self.info, self.const, self.own = side, info, const, own

    def begin(self) -> SideState:
        """The state an engine reads, of the kind of what is mixed."""
        if not isinstance(self.side, SideInformation):
            raise TypeError(f"side must be side information (Graph, Features, ...); got {type(self.side).__name__}.")
        weights = [check_weight(getattr(self, name), name) for name in ("info", "const", "own")]
        if abs(sum(weights) - 1) > 1e-9:
            raise ValueError(f"info, const and own must sum to 1; got {weights}, which sum to {sum(weights):g}.")
        return MixedState(self.side.begin(), *weights)

    def _plain_params(self) -> dict[str, Any]:
        return {"side": self.side.plain()}


class JoinedState(SideState):
    """The mean of several kernels over the same ids; growing when all of them do."""

    def __init__(self, parts: list[SideState], ids: list[Hashable] | None) -> None:
        self.parts, self.ids = parts, ids
        self.kind = "factor" if all(part.kind == "factor" for part in parts) else "operator"
        self.grows = all(isinstance(part, FactorState) and part.grows for part in parts)
        self.digest = digest_of(joined=[part.digest for part in parts])

    @property
    def size(self) -> int:
        return self.parts[0].size

    def diagonal(self) -> Floats:
        diagonal: Floats = np.mean([part.diagonal() for part in self.parts], axis=0)
        return diagonal

    def columns(self, index: ArrayLike) -> Floats:
        columns: Floats = np.ascontiguousarray(np.mean([part.columns(index) for part in self.parts], axis=0))
        return columns

    def apply(self, V: Floats) -> Floats:
        product: Floats = np.mean([part.apply(V) for part in self.parts], axis=0)
        return product

    def factor(self) -> tuple[Floats, float, float]:
        """Every part's Phi side by side."""
        if self.kind != "factor":
            return super().factor()
        Phis, owns, consts = zip(*(part.factor() for part in self.parts), strict=True)
        return np.hstack(Phis) / np.sqrt(len(Phis)), float(np.mean(owns)), float(np.mean(consts))

    def read(self, value: Any) -> Any:
        """Return what every part reads of one more id, in their order."""
        if not self.grows or not isinstance(value, list | tuple | np.ndarray) or len(value) != len(self.parts):
            raise ValueError(
                f"a new id must come with {len(self.parts)} values, one for each side information; got {shown(value)}."
            )
        return [part.read(piece) for part, piece in zip(self.parts, value, strict=True)]

    def put(self, vertex: int, point: Any) -> None:
        for part, piece in zip(self.parts, point, strict=True):
            part.put(vertex, piece)

    def _grown(self) -> dict[str, Any]:
        return {f"part{k}": part.state() for k, part in enumerate(self.parts)}

    def _grow_again(self, grown: Mapping[str, Any]) -> None:
        check_parts(
            grown, {f"part{k}": Instance(Mapping) for k in range(len(self.parts))}, "a state of side information", {}
        )
        for k, part in enumerate(self.parts):
            part.grow_from(grown[f"part{k}"])


class Join(SideInformation):
    """Several kinds of side information about the same ids: what a list of them stands for.

    sides: side information, all of as many ids, named alike where it names them.
    """

    def __init__(self, sides: Sequence[SideInformation]) -> None:
        self.sides = sides

    def begin(self) -> SideState:
        """The state of all parts."""
        for side in self.sides:
            if not isinstance(side, SideInformation):
                raise TypeError(f"a list of side information must hold nothing else; got {type(side).__name__}.")
        states = [side.begin() for side in self.sides]
        if not states:
            raise ValueError("a list of side information must hold at least one; got none. Use None.")
        sizes, names = [side.size for side in states], [side.ids for side in states if side.ids is not None]
        if len(set(sizes)) > 1 or any(ids != names[0] for ids in names):
            raise ValueError(
                f"side information of one list must be of the same ids in one order; got sizes {sizes}. Sort them "
                "alike."
            )
        return JoinedState(states, names[0] if names else None)


def joined(described: SideInformation | Sequence[SideInformation] | None) -> SideInformation:
    """One descriptor of the side information of a side: `Identity` for None, the one in a list of one, a `Join` of
    several.
    """
    if described is None:
        return Identity()
    if isinstance(described, SideInformation):
        return described
    alone = len(described) == 1 and isinstance(described[0], SideInformation)
    return described[0] if alone else Join(described)
