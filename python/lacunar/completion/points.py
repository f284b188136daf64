"""`KernelFunction`: kernels of points, named (section 5 of the paper) or given, with the points they have met."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from lacunar._typing import Floats
from lacunar.completion.side import (
    DenseState,
    RowStore,
    SideInformation,
    SideState,
    check_ids,
    check_positive,
    digest_of,
    plain_ids,
    shown,
)
from lacunar.observed.rules import Instance, check_parts

_ROUNDING = 1e-8  # of the own values: rounding in a function that a user wrote
NAMED = ("min", "gaussian", "linear", "partition")
VECTORS = ("min", "gaussian", "linear")


class GrowingGram:
    """Pivot-free Cholesky of a growing Gram matrix: rows W with K = W W^T up to 1e-8. O(n rank) a point.

    A new point's row w solves W w = k; what is left of its own value, k(x, x) - |w|^2, opens a new direction, is
    rounding, or is negative: then the function is no kernel. The same for its left-over products with points met
    before.
    """

    def __init__(self) -> None:
        self._rows, self._own = RowStore(np.empty((0, 64))), np.empty(0)
        self._basis: list[int] = []  # points that opened a direction, in order

    def direction(self, column: Floats, own: float, value: Any) -> tuple[Floats, float]:
        """Row w of a new point and what is left of its own value; refuses kernel values (n,) that no kernel has."""
        rank, rows = len(self._basis), self._rows.rows
        w = np.zeros(rows.shape[1])
        for k, point in enumerate(self._basis):  # forward substitution: rows of the basis are lower triangular
            w[k] = (column[point] - rows[point, :k] @ w[:k]) / rows[point, k]
        remainder = own - float(w[:rank] @ w[:rank])
        off = np.abs(column - rows @ w)
        allowed = np.sqrt(_ROUNDING * self._own * own)  # |<x - proj x, y - proj y>| of points y the basis spans
        if remainder < -_ROUNDING * own or (off > np.maximum(allowed, _ROUNDING * np.sqrt(self._own * own))).any():
            raise ValueError(
                f"the kernel function must be positive semidefinite; with the point {shown(value)} (number "
                f"{len(column)}) its Gram matrix is not. Pass a symmetric positive semidefinite function."
            )
        return w, remainder

    def put(self, n: int, direction: tuple[Floats, float], own: float) -> None:
        """Point n, the last one, belongs to the Gram matrix."""
        w, remainder = direction
        basis = [point for point in self._basis if point < n]
        if remainder > _ROUNDING * own:
            rank = len(basis)
            if rank == w.size:
                rows = np.zeros((n, 2 * rank))
                rows[:, :rank] = self._rows.rows[:n, :rank]
                self._rows, w = RowStore(rows), np.concatenate([w, np.zeros(rank)])
            w[rank] = np.sqrt(remainder)
            basis.append(n)
        self._rows.put(n, w)
        self._own, self._basis = np.append(self._own[:n], own), basis


def min_transform(x: Floats, r: float) -> Floats:
    """s(x) = (r-1)/(2r) x + (r+1)/2 of section 5.1: [-r, r] onto [1, r]."""
    return (r - 1) / (2 * r) * x + (r + 1) / 2


class FunctionState(DenseState):
    """K grown from a kernel function, one point at a time; the k-th point costs k values of the function.

    f and its options as of `KernelFunction`, radius the largest f(x, x) for normalize=False.
    """

    grows = True

    def __init__(
        self,
        f: str | Callable[[Any, Any], float],
        options: Mapping[str, Any],
        points: Sequence[Any] = (),
        ids: list[Hashable] | None = None,
    ) -> None:
        super().__init__(np.empty((0, 0)), ids, "")
        self.f, self.options = f, dict(options)
        self._points: list[Any] = []
        self._vectors: RowStore | None = None  # the points again, where they are vectors
        self._own: list[float] = []  # f(x, x) before scaling
        self._gram = GrowingGram() if callable(f) else None
        for point in points:
            self.grow(point)
        name = f if isinstance(f, str) else f"{f.__module__}.{getattr(f, '__qualname__', 'callable')}"
        self.digest = digest_of(ids=ids, function=name, options=self.options, points=self._plain_points(0))
        self._n_begun = self.size

    def read(self, value: Any) -> Any:
        """A point of the function's domain."""
        point = self._read(value)
        raw, own = self._raw(point)
        if not (np.isfinite(raw).all() and np.isfinite(own)):
            raise ValueError(f"the kernel function must be finite; it is not for {shown(value)}. Check that point.")
        if not own > 0:
            raise ValueError(
                f"the kernel of a point with itself must be above 0; got {own} for {shown(value)}. Raise epsilon."
            )
        direction = None if self._gram is None else self._gram.direction(raw, own, value)
        return point, own, direction, *self._scaled(raw, own, value)

    def put(self, vertex: int, point: Any) -> None:
        value, own, direction, column, scaled = point
        if self.f in VECTORS:
            self._vectors = self._vectors or RowStore(np.empty((0, value.size)))
            self._vectors.put(vertex, value)
        self._points[vertex:], self._own[vertex:] = [value], [own]
        if self._gram is not None:
            self._gram.put(vertex, direction, own)
        self.put_column(vertex, column, scaled)

    def _scaled(self, raw: Floats, own: float, value: Any) -> tuple[Floats, float]:
        """Kernel values (n,) and that of the point itself, on a diagonal of at most 1."""
        if self.options["normalize"]:
            return raw / (np.sqrt(self._own) * np.sqrt(own)), 1.0
        radius = float(self.options["radius"])
        if own > radius * (1 + 1e-12):
            raise ValueError(
                f"the kernel of a point with itself must be at most radius={radius:g}; got {own:.6g} for "
                f"{shown(value)}. Raise radius, or use normalize=True."
            )
        return raw / radius, own / radius

    def _plain_points(self, first: int) -> Any:
        if self._vectors is not None:
            return self._vectors.rows[first:].copy()
        return [p.tolist() if isinstance(p, np.ndarray | np.generic) else p for p in self._points[first:]]

    def _grown(self) -> dict[str, Any]:
        return {"points": self._plain_points(self._n_begun)}

    def _grow_again(self, grown: Mapping[str, Any]) -> None:
        check_parts(grown, {"points": Instance(Collection)}, "a state of side information", {})
        for point in grown["points"]:
            self.grow(point)

    def _read(self, value: Any) -> Any:
        """A vector of finite numbers in the domain, or the point as it is."""
        if self.f not in VECTORS:
            return value.item() if isinstance(value, np.generic) else value
        try:
            point = np.atleast_1d(np.array(value, dtype=np.float64))
        except (TypeError, ValueError):
            raise TypeError(f"a point of the {self.f!r} kernel must be numbers; got {shown(value)}.") from None
        if point.ndim != 1 or (self._vectors is not None and point.size != self._vectors.rows.shape[1]):
            wish = "one-dimensional" if self._vectors is None else f"of {self._vectors.rows.shape[1]} numbers"
            raise ValueError(f"a point of the {self.f!r} kernel must be {wish}; got shape {point.shape}.")
        if not np.isfinite(point).all():
            raise ValueError(f"a point of the {self.f!r} kernel must be finite; got {shown(value)}. Fill or drop it.")
        if self.f == "min" and np.abs(point).max(initial=0) > self.options["r"]:
            k = int(np.abs(point).argmax())
            raise ValueError(
                f"a point of the 'min' kernel must lie in [-r, r] = [{-self.options['r']:g}, {self.options['r']:g}]; "
                f"got {point[k]:g} in column {k}. Raise r, or scale the points."
            )
        return point

    def _raw(self, point: Any) -> tuple[Floats, float]:
        if callable(self.f):
            return np.array([float(self.f(point, x)) for x in self._points]), float(self.f(point, point))
        if self.f == "partition":
            same = np.array([x == point for x in self._points], dtype=np.float64)
            return same, 1.0 + self.options["epsilon"]
        met = self._vectors.rows if self._vectors is not None else np.empty((0, point.size))
        if self.f == "gaussian":
            return np.exp(((met - point) ** 2).sum(axis=1) / (-2 * self.options["length_scale"] ** 2)), 1.0
        if self.f == "linear":
            equal = (met == point).all(axis=1)
            return met @ point + self.options["epsilon"] * equal, float(point @ point) + self.options["epsilon"]
        r = self.options["r"]
        return np.minimum(min_transform(met, r), min_transform(point, r)).prod(axis=1), float(
            min_transform(point, r).prod()
        )


class KernelFunction(SideInformation):
    """A kernel function of points: the inductive setting (section 5, Algorithm 2), where ids come
    with their points.

    Parameters
    ----------
    f : {"gaussian", "min", "linear", "partition"} or callable, default="gaussian"
        - "gaussian": exp(-|x - t|^2 / (2 length_scale^2)).
        - "min": prod_i min(s(x)_i, s(t)_i) with s(x) = (r-1)/(2r) x + (r+1)/2 for x in [-r, r]^d
          (section 5.1).
        - "linear": <x, t> + epsilon [x = t].
        - "partition": [x = t] + epsilon for an id with itself (section 4.1); points are labels of
          parts.
        - a callable f(x, t) -> float, symmetric and positive semidefinite; what its values show to
          the contrary is refused when the point comes.
    points : sequence of points, optional
        Those known at the beginning, in order.
    ids : sequence of hashable ids, optional
        Names of `points`.
    length_scale : float, default=1.0
        Of "gaussian".
    r : float, default=2.0
        Of "min": points lie in [-r, r]^d; Proposition 5 asks for r >= 2.
    epsilon : float, default=0.1
        Of "linear" and "partition"; above 0.
    radius : float, optional
        A bound of f(x, x) for normalize=False. Default: 1 for "gaussian", r^d for "min", 1 +
        epsilon for "partition"; the others have none.
    normalize : bool, default=True
        Unit diagonal, f(x, t) / sqrt(f(x, x) f(t, t)). False: f / radius, as in the paper.

    Notes
    -----
    The n-th point costs n values of f; memory O(n^2). `begin` raises ValueError for options out of
    range, `grow` for a point outside the domain; the state is then as before. A model file holds no
    callable: see `OnlineMatrixClassifier.state`.

    Examples
    --------
    >>> from lacunar.completion import KernelFunction
    >>> side = KernelFunction("gaussian", points=[[0.0], [1.0]]).begin()
    >>> side.grow([0.0])
    2
    >>> side.dense().round(3).tolist()
    [[1.0, 0.607, 1.0], [0.607, 1.0, 0.607], [1.0, 0.607, 1.0]]
    """

    def __init__(
        self,
        f: str | Callable[[Any, Any], float] = "gaussian",
        *,
        points: Sequence[Any] | None = None,
        ids: Sequence[Hashable] | None = None,
        length_scale: float = 1.0,
        r: float = 2.0,
        epsilon: float = 0.1,
        radius: float | None = None,
        normalize: bool = True,
    ) -> None:
        self.f, self.points, self.ids = f, points, ids
        self.length_scale, self.r, self.epsilon = length_scale, r, epsilon
        self.radius, self.normalize = radius, normalize

    def begin(self) -> SideState:
        """The state an engine reads, of kind "dense", growing."""
        if not callable(self.f) and self.f not in NAMED:
            raise ValueError(f"f must be one of {', '.join(NAMED)} or a function of two points; got {self.f!r}.")
        if self.r is None or not self.r > 1:
            raise ValueError(f"r must be above 1 (Proposition 5: at least 2); got {self.r!r}.")
        options: dict[str, Any] = {
            "length_scale": check_positive(self.length_scale, "length_scale"),
            "r": check_positive(self.r, "r"),
            "epsilon": check_positive(self.epsilon, "epsilon"),
            "normalize": bool(self.normalize),
        }
        options["radius"] = self._radius(options)
        points = [] if self.points is None else list(self.points)
        ids = None if self.ids is None else check_ids(self.ids, len(points), "points")
        return FunctionState(self.f, options, points, ids)

    def _plain_params(self) -> dict[str, Any]:
        if self.points is None:
            return {}
        points: Any = [p.tolist() if isinstance(p, np.ndarray | np.generic) else p for p in self.points]
        return {"points": np.array(points, np.float64) if self.f in VECTORS else points, "ids": plain_ids(self.ids)}

    def _radius(self, options: dict[str, Any]) -> float | None:
        if options["normalize"] or self.radius is not None:
            return None if self.radius is None else check_positive(self.radius, "radius")
        if self.f == "min":
            if self.points is None or not len(self.points):
                raise ValueError(
                    "radius must be given (r^d) for the 'min' kernel with normalize=False and no points yet."
                )
            return float(options["r"] ** np.size(self.points[0]))
        if self.f == "gaussian":
            return 1.0
        if self.f == "partition":
            return float(1 + options["epsilon"])
        raise ValueError("radius must be given, a bound of f(x, x), for this f with normalize=False; got None.")
