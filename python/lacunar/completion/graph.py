"""`Graph`: which rows (or columns) are neighbours, as side information."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, cg, eigsh, splu

from lacunar import _core
from lacunar._eigen import SAME, canonical_turn, reference
from lacunar._log import warn_user
from lacunar._typing import Floats
from lacunar.completion.side import (
    DENSE_LIMIT,
    DenseState,
    FactorState,
    Kind,
    SideInformation,
    SideState,
    check_ids,
    check_index,
    check_positive,
    check_weight,
    digest_of,
    plain_ids,
    rounding,
    shown,
    square_names,
)
from lacunar.observed.contract import check_positions
from lacunar.observed.numbers import as_frame

# A trailing block of the factor this full and this large is inverted densely, by LAPACK: 3x faster where fill is heavy.
_FULL, _LARGE = 0.8, 500
_FEW = 500  # vertices: all eigenvectors at once
_LOOSE = 1e-9  # residual of an eigenvector that tells whether its value was left out
_EXACT, _MOST_PRODUCTS = 1e-13, 20_000  # residual of what is projected out of an eigenspace, and where that ends
_SMALL = 1000  # vertices: the engine has K in hand, and asks it for seen vertices only
_DEARER = 12  # an entry of a sparse factor costs this many of a dense matrix
_BLOCK = 64  # columns solved for at once
_PULL = 4.0  # of a piece on its vertices, in units of R_L: measured, docs/user/side-information.md
KINDS = ("auto", "pinv", "regularized", "pd", "spectral")


def read_adjacency(adjacency: Any, ids: Sequence[Hashable] | None = None) -> tuple[sp.csr_array, list[Hashable] | None]:
    """(A, ids): a symmetric csr_array of positive weights, no loops; the names of its vertices when it has some.

    Of a list of edges the vertices are `ids`, or its ends in the order of their coming.
    """
    if hasattr(adjacency, "is_directed") and hasattr(adjacency, "edges"):
        if adjacency.is_directed():
            raise ValueError("adjacency must be an undirected graph; got a directed one. Use graph.to_undirected().")
        return _of_edges(list(adjacency.edges(data="weight", default=1.0)), list(adjacency.nodes))
    edges = _edges(adjacency)
    if edges is not None:
        return _of_edges(edges, ids)
    return check_adjacency(adjacency), square_names(adjacency, "adjacency")


def _edges(edges: Any) -> list[tuple[Any, ...]] | None:
    """(id, id) or (id, id, weight) of every edge: of tuples, or of an array or frame of two or three columns that is no
    matrix.
    """
    if isinstance(edges, list | tuple) and edges and all(isinstance(edge, tuple) for edge in edges):
        return list(edges)
    if isinstance(edges, list) and edges and all(isinstance(edge, list) and len(edge) in (2, 3) for edge in edges):
        return None if len(edges) == len(edges[0]) else [tuple(edge) for edge in edges]
    if isinstance(edges, np.ndarray) and edges.ndim == 2 and edges.shape[1] in (2, 3) and len(edges) != edges.shape[1]:
        return [tuple(edge) for edge in edges.tolist()]
    native = as_frame(edges)
    if native is not None:
        frame = nw.from_native(native, eager_only=True)
        if frame.shape[1] in (2, 3) and frame.shape[0] != frame.shape[1]:
            return list(frame.iter_rows())
        if frame.shape == (3, 3) and not all(dtype.is_numeric() for dtype in frame.schema.values()):
            return list(frame.iter_rows())
    return None


def _of_edges(
    edges: list[tuple[Any, ...]], ids: Sequence[Hashable] | None
) -> tuple[sp.csr_array, list[Hashable] | None]:
    """Edges given twice, in either direction, add up; one without a weight has weight 1."""
    for k, edge in enumerate(edges):
        if len(edge) not in (2, 3):
            raise ValueError(
                f"an edge must be (id, id) or (id, id, weight); got {shown(edge)} at position {k}. Pass a matrix as "
                "an array."
            )
    ends = [plain_ids(edge[:2]) or [] for edge in edges]
    names = list(dict.fromkeys(v for pair in ends for v in pair)) if ids is None else plain_ids(list(ids)) or []
    number = {name: k for k, name in enumerate(names)}
    for k, (u, v) in enumerate(ends):
        if u not in number or v not in number:
            raise ValueError(f"edges must join known ids; got {shown(edges[k])} at position {k}. Add its ends to ids.")
    row, column = np.array([[number[u], number[v]] for u, v in ends], dtype=np.int64).reshape(-1, 2).T
    weight = np.array([_weight(edge, k) for k, edge in enumerate(edges)])
    both_ways = np.concatenate([row, column]), np.concatenate([column, row])
    A = sp.coo_array((np.concatenate([weight, weight]), both_ways), shape=(len(names), len(names)))
    return check_adjacency(A), names


def _weight(edge: tuple[Any, ...], position: int) -> float:
    try:
        return float(edge[2]) if len(edge) == 3 else 1.0
    except (TypeError, ValueError):
        raise TypeError(
            f"weights of edges must be numbers; got {shown(edge)} at position {position}. Leave the weight out, or "
            "pass a number."
        ) from None


def check_adjacency(adjacency: Any) -> sp.csr_array:
    """Square, finite, not negative, symmetric up to rounding; loops are dropped (D - A does not see them)."""
    if sp.issparse(adjacency):
        adjacency = check_positions(adjacency, "adjacency")
    try:
        A = sp.csr_array(adjacency, dtype=np.float64, copy=True)
    except (TypeError, ValueError):
        raise TypeError(
            f"adjacency must be a matrix of weights, edges or a networkx graph; got {shown(adjacency)}. Pass numbers of "
            "shape (n, n), or a list of tuples (id, id)."
        ) from None
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] == 0:
        raise ValueError(
            f"adjacency must be square, a row and a column for every vertex; got shape {A.shape}. Pass both, or edges "
            "as a list of tuples (id, id)."
        )
    A.sum_duplicates()
    _refuse_weights(A)
    _refuse_asymmetry(A, rounding(adjacency))
    A = sp.csr_array((A + A.T) / 2)
    A.setdiag(0.0)
    A.eliminate_zeros()
    A.sort_indices()
    if A.nnz == 0:
        raise ValueError("adjacency must have at least one edge between two vertices; got none. Use Identity.")
    numbers = (A.indices.astype(np.int32), A.indptr.astype(np.int32))  # one width: the same graph has one digest
    return sp.csr_array((A.data, *numbers), shape=A.shape)


def _refuse_weights(A: sp.csr_array) -> None:
    """ValueError for the first weight of an edge that is not finite, else the first below 0."""
    for wrong, wish in ((~np.isfinite(A.data), "finite"), (A.data < 0, "not negative")):
        if wrong.any():
            k = int(wrong.argmax())
            row = int(np.searchsorted(A.indptr, k, side="right")) - 1
            raise ValueError(
                f"weights of edges must be {wish}; got {A.data[k]} in row {row}, column {A.indices[k]}. Drop that edge."
            )


def _refuse_asymmetry(A: sp.csr_array, tolerance: float) -> None:
    """ValueError where an edge weighs more in one direction, by more than this share of the largest weight."""
    gap = sp.coo_array(abs(A - A.T))
    if gap.nnz and gap.data.max() > tolerance * A.data.max():
        k = int(gap.data.argmax())
        row, column = (int(i[k]) for i in gap.coords)
        raise ValueError(
            f"adjacency must be symmetric; got {A[row, column]:.6g} in row {row}, column {column} and "
            f"{A[column, row]:.6g} in row {column}, column {row}. Pass A.maximum(A.T) or (A + A.T) / 2."
        )


def components(A: sp.csr_array) -> NDArray[np.int64]:
    """The number of each vertex's component, (n,)."""
    labels: NDArray[np.int64] = connected_components(A, directed=False)[1].astype(np.int64)
    return labels


class SparseInverse:
    """M^-1 for a sparse symmetric positive definite M (n, n): one L D L^T factorisation, ordered by minimum degree.

    A product with k vectors is O(k nnz(L)). Raises ValueError when M is not positive definite.
    """

    def __init__(self, M: sp.csc_array) -> None:
        options = {"SymmetricMode": True}
        refused = "the graph's matrix must be positive definite to rounding; it is not. Use regularization."
        try:
            lu = splu(sp.csc_array(M), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
        except RuntimeError as error:  # a pivot of exactly 0, as of weights that differ by more than 1e16
            raise ValueError(refused) from error
        self._pivots: Floats = lu.U.diagonal()
        # Without exchanges of rows U is D L^T, and positive pivots are what makes M positive definite.
        if not (np.array_equal(lu.perm_r, lu.perm_c) and (self._pivots > 0).all()):
            raise ValueError(refused)
        L = sp.csc_array(sp.tril(lu.L, -1, format="csc"))
        L.sort_indices()
        self._lower = (
            L.indptr.astype(np.int64),
            L.indices.astype(np.int32),
            np.ascontiguousarray(L.data, dtype=np.float64),
        )
        self._place = lu.perm_c.astype(np.int32)

    @property
    def fill(self) -> int:
        """Entries of the factor."""
        return len(self._lower[1]) + len(self._pivots)

    def apply(self, V: Floats) -> Floats:
        """M^-1 V for V of shape (n,) or (n, k)."""
        right = np.ascontiguousarray(V, dtype=np.float64).reshape(len(V), -1)
        return _core.factor_solve(*self._lower, self._pivots, self._place, right).reshape(V.shape)

    def diagonal(self) -> Floats:
        """diag(M^-1), shape (n,): exact, from the entries of M^-1 on the pattern of L only."""
        start = _dense_from(np.diff(self._lower[0]))
        n = len(self._pivots)
        L = sp.csc_array((self._lower[2], self._lower[1], self._lower[0]), shape=(n, n))
        tail = L[start:, start:].toarray() + np.eye(n - start)
        selected: Floats = _core.selected_inverse(
            *self._lower, self._pivots, _inverse_of(tail * np.sqrt(self._pivots[start:]))
        )[self._place]
        return selected


def _dense_from(counts: NDArray[Any]) -> int:
    """The first column from which on the strict triangle is nearly full and not too large."""
    n = len(counts)
    size = np.arange(min(n, DENSE_LIMIT) + 1)
    held = np.concatenate([[0], np.cumsum(counts[::-1])])[: len(size)]
    full = np.flatnonzero(held >= _FULL * size * (size - 1) / 2)
    size_of_tail = int(full.max(initial=0))
    return n - size_of_tail if size_of_tail >= _LARGE else n


def _inverse_of(lower: Floats) -> Floats:
    """(C C^T)^-1 of a lower triangle C (k, k), exactly symmetric, C order."""
    if not len(lower):
        return np.empty((0, 0))
    inverse, info = scipy.linalg.lapack.dpotri(np.asfortranarray(lower), lower=1, overwrite_c=1)
    assert info == 0
    inverse = np.tril(inverse)
    return np.ascontiguousarray(inverse + np.tril(inverse, -1).T)


def laplacian(A: sp.csr_array) -> sp.csc_array:
    """D - A, csc."""
    return sp.csc_array(sp.diags_array(A.sum(axis=1)) - A)


def regularized(A: sp.csr_array, rho: float) -> SparseInverse:
    """(L + rho I)^-1."""
    return SparseInverse(laplacian(A) + rho * sp.eye_array(A.shape[0], format="csc"))


class PseudoInverse:
    """L^+, of each component by itself.

    With one vertex g of every component left out the Laplacian is positive definite; G is its inverse, zero at g. On a
    component, J centring it, L^+ = J G J, and L^+_ii = G_ii - 2 (G 1)_i / n + 1^T G 1 / n^2 over its n vertices.
    """

    def __init__(self, A: sp.csr_array) -> None:
        n = A.shape[0]
        self._label: NDArray[np.int64] = components(A)
        self._sizes: Floats = np.bincount(self._label).astype(np.float64)
        ground = np.zeros(n, dtype=bool)
        # The best connected vertex of each component: its long column stays out of the factor.
        order = np.lexsort((-np.diff(A.indptr), self._label))
        ground[order[np.unique(self._label[order], return_index=True)[1]]] = True
        self._kept = np.flatnonzero(~ground)
        self._member = sp.csr_array((np.ones(n), (self._label, np.arange(n))), shape=(len(self._sizes), n))
        self._inverse = SparseInverse(laplacian(A)[self._kept][:, self._kept])

    @property
    def fill(self) -> int:
        """Entries of the factor."""
        return self._inverse.fill

    def apply(self, V: Floats) -> Floats:
        return self._centred(self._grounded(self._centred(V)))

    def diagonal(self) -> Floats:
        own = np.zeros(len(self._label))
        own[self._kept] = self._inverse.diagonal()
        ones = self._grounded(np.ones(len(self._label)))
        total = (self._member @ ones) / self._sizes**2
        exact: Floats = own - 2 * ones / self._sizes[self._label] + total[self._label]
        # A vertex alone has L^+_ii = 0; elsewhere it is positive, and rounding stays far below it.
        return np.where(self._sizes[self._label] == 1, 0.0, exact)

    def _grounded(self, V: Floats) -> Floats:
        out = np.zeros_like(V)
        out[self._kept] = self._inverse.apply(V[self._kept])
        return out

    def _centred(self, V: Floats) -> Floats:
        if len(self._sizes) == 1:
            single: Floats = V - V.mean(axis=0)
            return single
        mean = (self._member @ V) / (self._sizes if V.ndim == 1 else self._sizes[:, None])
        several: Floats = V - mean[self._label]
        return several


class Written:
    """A kernel written out, for graphs small or dense enough."""

    def __init__(self, K: Floats) -> None:
        self._K = K

    def apply(self, V: Floats) -> Floats:
        return self._K @ V

    def diagonal(self) -> Floats:
        return np.diag(self._K).copy()


def written_kernel(A: sp.csr_array, rho: float | None) -> Written:
    """(L + rho I)^-1, or L^+ for rho None, by one dense inverse, O(n^3).

    With U the components' unit vectors, which span the null space of L, L^+ = (L + t U U^T)^-1 - U U^T / t for any
    t > 0.
    """
    L = laplacian(A).toarray()
    if rho is not None:
        return Written(_inverse_of(scipy.linalg.cholesky(L + rho * np.eye(len(L)), lower=True)))
    label = components(A)
    same = (label[:, None] == label) / np.bincount(label)[label]
    t = float(np.diag(L).mean())
    return Written(_inverse_of(scipy.linalg.cholesky(L + t * same, lower=True)) - same / t)


def diffusion_features(A: sp.csr_array, n_components: int, diffusion: float, *, normalize: bool) -> Floats:
    """Phi (n, n_components + 1): leading eigenvectors of D^-1/2 A D^-1/2, D = degrees plus their mean, with weights of
    heat.

    Column k is v_k exp(diffusion (l_k / l_1 - 1) / 2), so that Phi Phi^T is the heat kernel of the graph cut to its
    slowest modes; rows have length 1 when normalised. The mean degree in D keeps small pieces from taking the leading
    places (regularised spectral clustering). Vertices without an edge, or that no mode
    reaches, share the last column.
    """
    degrees = np.asarray(A.sum(axis=1)).ravel()
    root = 1.0 / np.sqrt(degrees + degrees.mean())
    k = min(n_components, A.shape[0])
    values, vectors = _leading(sp.csr_array(A * root[:, None] * root), k)
    modes = (vectors * np.exp(0.5 * diffusion * (values / values[0] - 1.0))) @ canonical_turn(values, vectors, k)
    length = np.linalg.norm(modes, axis=1)
    none = (length <= 1e-6 * length.max()) | (degrees == 0)  # rounding, not a place in the graph
    scale = np.where(none, 1.0, length) if normalize else np.full(len(length), length.max())
    Phi: Floats = np.column_stack([np.where(none[:, None], 0.0, modes / scale[:, None]), none])
    return Phi


def _leading(S: sp.csr_array, k: int) -> tuple[Floats, Floats]:
    """At least k largest eigenvalues, falling, and their vectors of a symmetric csr_array (n, n), whose spectrum is in
    [-1, 1].
    """
    n = S.shape[0]
    if n <= _FEW or k >= n - 1:
        values, vectors = np.linalg.eigh(S.toarray())  # LAPACK's choice of some fails on cliques
    else:
        values, vectors = _by_lanczos(S, k)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _by_lanczos(S: sp.csr_array, k: int) -> tuple[Floats, Floats]:
    """The k largest eigenvalues (k,) and their vectors (n, k) of S, by Lanczos.

    Lanczos sees one direction of an eigenspace, that of its start; others come in by rounding, in any order. So what it
    left out is looked at: larger eigenvalues are taken in, and of a space that k cuts the reference's projections stand
    for it.
    """
    values, vectors = eigsh(S, k=k, which="LA", v0=reference(S.shape[0], 1)[:, 0])
    for _ in range(k):
        least, gap = int(np.argmin(values)), SAME * np.abs(values).max()
        value, vector = _largest_outside(S, vectors)
        if value <= values[least] + gap:
            break
        values[least], vectors[:, least] = value, vector
    cut = values <= values[least] + gap
    if value >= values[least] - gap:
        above = vectors[:, ~cut]
        vectors[:, cut] = _projected(S, float(values[cut].mean()), above, reference(S.shape[0], int(cut.sum())))
    return values, vectors


def _largest_outside(S: sp.csr_array, vectors: Floats) -> tuple[float, Floats]:
    """The largest eigenvalue and vector (n,) of S on what is orthogonal to `vectors` (n, r), eigenvectors of S."""
    n, r = vectors.shape

    def times(x: Floats) -> Floats:
        product: Floats = S @ x - 3.0 * (vectors @ (vectors.T @ x))  # which sends their eigenvalues below -1
        return product

    start = reference(n, 1)[:, 0]
    outside = LinearOperator(S.shape, matvec=times, dtype=np.float64)
    value, vector = eigsh(outside, k=1, which="LA", v0=start, tol=_LOOSE, ncv=min(2 * r + 1, n))
    return float(value[0]), vector[:, 0]


def _projected(S: sp.csr_array, value: float, above: Floats, directions: Floats) -> Floats:
    """Orthonormal projections of `directions` (n, c) on the eigenspace of a value; `above` are all eigenvectors of
    larger ones.

    On what is orthogonal to `above`, value - S is positive semidefinite and 0 on the eigenspace only, so that conjugate
    gradients from 0 on (value - S) x = (value - S) g give the part of g outside of it.
    """

    def times(x: Floats) -> Floats:
        product: Floats = value * x - S @ x
        return product - above @ (above.T @ product)

    outside = LinearOperator(S.shape, matvec=times, dtype=np.float64)
    inside = directions - above @ (above.T @ directions)
    for j, start in enumerate(inside.T.copy()):
        inside[:, j] -= cg(outside, times(start), rtol=_EXACT, atol=0.0, maxiter=_MOST_PRODUCTS)[0]
    axes: Floats = np.linalg.qr(inside)[0]
    return axes


class GraphState(SideState):
    """K = S (B + shared P^T P) S + diag(alone): B a kernel of the Laplacian, P the components, S a diagonal of scales.

    `shared` is R_L for the paper's PDLaplacian (M^+ = L^+ + R_L 11^T), and 4 R_L for the pseudoinverse of a graph in
    pieces. There L^+ alone, centred piece by piece, would make the neighbours in a small piece opposites: -1 for the
    two ends of an edge alone. Vertices without an edge, of which L^+ knows nothing, have K_ii = 1 and nothing in common
    with any other.
    """

    kind: Kind = "operator"

    def __init__(
        self,
        A: sp.csr_array,
        kernel: SparseInverse | PseudoInverse | Written,
        how: dict[str, Any],
        ids: list[Hashable] | None,
    ) -> None:
        self._A, self._kernel, self._how, self.ids = A, kernel, how, ids
        label = components(A)
        n, pieces = len(label), int(label.max()) + 1
        raw = kernel.diagonal()
        pull = {"pd": 1.0, "pinv": _PULL if pieces > 1 else 0.0, "regularized": 0.0}[how["kind"]]
        self._shared = pull * float(raw.max())
        self._alone: NDArray[np.bool_] = (np.diff(A.indptr) == 0) & (how["kind"] != "regularized")
        whole = raw + self._shared
        root = np.sqrt(np.where(self._alone, 1.0, whole) if how["normalize"] else np.full(n, whole.max()))
        self._scale: Floats = np.where(self._alone, 0.0, 1.0 / root)
        self._diagonal: Floats = np.where(self._alone, 1.0, whole * self._scale**2)
        self._member = sp.csr_array((np.ones(n), (label, np.arange(n))), shape=(pieces, n))
        self.is_pd_laplacian = how["kind"] == "pd" and not how["normalize"]
        self.digest = graph_digest(A, ids, how)

    @classmethod
    def of(cls, A: sp.csr_array, how: dict[str, Any], ids: list[Hashable] | None, *, method: str) -> GraphState:
        """The kernel of a checked adjacency matrix, by "dense" or "sparse" inversion, or what "auto" finds cheaper."""
        rho = _rho(A, how) if how["kind"] == "regularized" else None
        n = A.shape[0]
        if method == "dense" or (method == "auto" and n <= _SMALL):
            return cls(A, written_kernel(A, rho), how, ids)
        kernel = PseudoInverse(A) if rho is None else regularized(A, rho)
        if method == "auto" and n <= DENSE_LIMIT and kernel.fill > n * n / _DEARER:
            return cls(A, written_kernel(A, rho), how, ids)
        return cls(A, kernel, how, ids)

    def cheapest(self) -> SideState:
        """This state, or K in memory where it was written out."""
        if not isinstance(self._kernel, Written):
            return self
        return DenseState(self.dense(), self.ids, self.digest, is_pd_laplacian=self.is_pd_laplacian)

    @property
    def size(self) -> int:
        return len(self._scale)

    def diagonal(self) -> Floats:
        return self._diagonal.copy()

    def columns(self, index: ArrayLike) -> Floats:
        index = check_index(index, self.size)
        out = np.empty((self.size, len(index)))
        for begin in range(0, len(index), _BLOCK):
            block = index[begin : begin + _BLOCK]
            units = np.zeros((self.size, len(block)))
            units[block, np.arange(len(block))] = 1.0
            out[:, begin : begin + _BLOCK] = self.apply(units)
        return out

    def apply(self, V: Floats) -> Floats:
        wide = V if V.ndim == 1 else V.T  # scales along the last axis, whichever V is
        scaled = np.ascontiguousarray((wide * self._scale).T)
        product = self._kernel.apply(scaled)
        if self._shared:
            product = product + self._shared * (self._member.T @ (self._member @ scaled))
        back: Floats = product.T * self._scale + wide * self._alone
        return np.ascontiguousarray(back.T)

    def energy(self, R: Floats) -> float:
        """tr(R^T K^-1 R) for R (size, k), infinite when K is singular. O(edges k).

        On a piece of n vertices the inverse of L^+ + shared 11^T is L + 11^T / (n^2 shared).
        """
        regularized = self._how["kind"] == "regularized"
        if not (regularized or self._shared):
            return float("inf")
        joined = np.where(self._alone, 0.0, 1.0)[:, None]
        X = R * joined / np.where(self._alone, 1.0, self._scale)[:, None]
        energy = float((X * (laplacian(self._A) @ X)).sum() + (R**2 * self._alone[:, None]).sum())
        if regularized:
            return energy + _rho(self._A, self._how) * float((X**2).sum())
        means = (self._member @ X) / np.asarray(self._member.sum(axis=1)).reshape(-1, 1)
        return energy + float((means**2).sum()) / self._shared


def _rho(A: sp.csr_array, how: Mapping[str, Any]) -> float:
    """The share of the mean degree that kind "regularized" adds to the diagonal of L."""
    return float(how["regularization"] * A.sum() / A.shape[0])


def graph_digest(A: sp.csr_array, ids: list[Hashable] | None, how: Mapping[str, Any]) -> str:
    """The name of a graph and of what is made of it."""
    return digest_of(indptr=A.indptr, indices=A.indices, data=A.data, ids=ids, **how)


class Graph(SideInformation):
    """Neighbours are likely to be alike: a kernel of the graph's Laplacian L = D - A (sections 2
    and 4.1).

    Parameters
    ----------
    adjacency : array-like, sparse matrix or frame of shape (n, n), networkx graph, or edges
        Symmetric, weights of edges not negative. Loops are ignored. What a sparse matrix does not
        store is no edge. Edges: a list of tuples (id, id) or (id, id, weight), or an array or frame
        of two or three such columns, which is not square.
    kind : {"auto", "pinv", "regularized", "pd", "spectral"}, default="auto"
        - "auto": what predicts best on networks: "spectral". The pool of `OnlineMatrixClassifier`
          also uses the graph itself, whatever the kind: votes of neighbours, and shared neighbours
          where both sides are one graph.
        - "pinv": L^+. What a graph in pieces knows is who belongs together: vertices of a piece
          share a direction.
        - "regularized": (L + rho I)^-1 with rho = `regularization` times the mean degree; for any
          graph.
        - "pd": the inverse of the paper's PDLaplacian, L^+ + R_L 11^T; for a connected graph.
        - "spectral": diffusion along edges, cut to its `n_components` slowest modes. For crowded
          graphs (friends, links, votes), where L^+ says little more than degrees, and for graphs
          whose factor fills up. As cheap as `Features`.
    ids : sequence of n hashable ids, optional
        Default: the index of a DataFrame, the nodes of a networkx graph, the ends of edges in their
        order, else 0 to n - 1.
    regularization : float, default=0.1
        Of "regularized".
    n_components : int, default=32
        Modes of "spectral".
    diffusion : float, default=5.0
        How far "spectral" looks along edges.
    normalize : bool, default=True
        Unit diagonal, K_ij / sqrt(K_ii K_jj). False: K over its largest diagonal entry; with
        kind="pd" that is the paper.
    method : {"auto", "dense", "sparse"}, default="auto"
        "dense" writes K out (at most 4000 vertices); "sparse" solves with a sparse factor of L.
        "auto": dense up to 1000 vertices, and up to 4000 where a product with K is the cheaper one.
        "spectral" has no use for it.

    Notes
    -----
    `begin` factorises once; diag(L^+) and R_L are exact, by inverting on the pattern of the factor
    only. Cost and memory are those of the factor: about n log n for graphs in the plane, and much
    more for graphs of neighbours in many dimensions, for which `Features` are the cheaper side
    information. Digits: as dense to 1e-12.

    `begin` raises ValueError for an adjacency that is not square, finite, symmetric and
    non-negative or has no edge, and for a graph in pieces with kind="pd"; it warns of pieces with
    kind="pinv".

    Examples
    --------
    >>> from lacunar.completion import Graph
    >>> path = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> Graph(path, kind="pd", normalize=False).begin().dense().round(2).tolist()
    [[1.0, 0.4, 0.1], [0.4, 0.7, 0.4], [0.1, 0.4, 1.0]]
    """

    def __init__(
        self,
        adjacency: Any,
        kind: str = "auto",
        ids: Sequence[Hashable] | None = None,
        *,
        regularization: float = 0.1,
        n_components: int = 32,
        diffusion: float = 5.0,
        normalize: bool = True,
        method: str = "auto",
    ) -> None:
        self.adjacency, self.kind, self.ids = adjacency, kind, ids
        self.regularization, self.normalize, self.method = regularization, normalize, method
        self.n_components, self.diffusion = n_components, diffusion

    def begin(self) -> SideState:
        """The state an engine reads, of kind "dense" or "operator"; of kind "factor" for
        "spectral".
        """
        for name, known in (("kind", KINDS), ("method", ("auto", "dense", "sparse"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}; got {getattr(self, name)!r}.")
        how = {
            "kind": self.kind,
            "regularization": check_positive(self.regularization, "regularization"),
            "normalize": bool(self.normalize),
        }
        A, names = read_adjacency(self.adjacency, self.ids)
        ids = check_ids(self.ids if self.ids is not None else names, A.shape[0], "adjacency")
        if self.kind in ("auto", "spectral"):
            return self._spectral(A, ids)
        self._see_pieces(A)
        if self.method == "dense" and A.shape[0] > DENSE_LIMIT:
            raise ValueError(
                f"method='dense' is for at most {DENSE_LIMIT} vertices; got {A.shape[0]}. Use method='sparse'."
            )
        return GraphState.of(A, how, ids, method=self.method).cheapest()

    def _spectral(self, A: sp.csr_array, ids: list[Hashable] | None) -> SideState:
        k, diffusion, normalize = (
            self.n_components,
            check_weight(self.diffusion, "diffusion", high=np.inf),
            bool(self.normalize),
        )
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"n_components must be an integer above 0; got {k!r}.")
        Phi = diffusion_features(A, int(k), diffusion, normalize=normalize)
        how = {"kind": "spectral", "n_components": int(k), "diffusion": diffusion, "normalize": normalize}
        return FactorState(Phi, 0.0, 0.0, ids, graph_digest(A, ids, how))

    def _plain_params(self) -> dict[str, Any]:
        A, names = read_adjacency(self.adjacency, self.ids)
        return {"adjacency": A, "ids": plain_ids(self.ids if self.ids is not None else names)}

    def _see_pieces(self, A: sp.csr_array) -> None:
        sizes = np.bincount(components(A))
        if len(sizes) == 1 or self.kind == "regularized":
            return
        came = f"the graph has {len(sizes)} pieces, {int((sizes == 1).sum())} of them single vertices"
        if self.kind == "pd":
            raise ValueError(
                f"kind='pd' needs a connected graph; {came}. Use kind='regularized' or 'pinv', or join them."
            )
        warn_user(
            f"{came}: ids of different pieces have nothing in common, those of one piece much. kind='regularized' "
            "weighs pieces by their edges instead.",
        )
