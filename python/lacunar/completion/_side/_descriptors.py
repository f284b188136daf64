"""The descriptors without a file of their own: `Identity`, `Kernel`, `KernelFunction`, `Mix`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from lacunar.completion._side._base import SideInformation
from lacunar.completion._side._checks import check_ids, check_kernel, check_positive, check_weight, index_names
from lacunar.completion._side._dense import DenseState, FunctionState, inverse_of, scale_kernel
from lacunar.completion._side._factor import FactorState, IdentityState
from lacunar.completion._side._functions import NAMED, VECTORS, PointKernel
from lacunar.completion._side._mixed import MixedState
from lacunar.completion._side._state import SideState, digest_of, plain_ids


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
            raise ValueError(f"n must be at least 1; got {self.n}. Leave it out for ids that come as they come.")
        return FactorState(np.empty((int(self.n), 0)), 1.0, 0.0, None, digest_of(identity=int(self.n)))


class Kernel(SideInformation):
    """A kernel matrix over all ids, K = M^+ of the paper.

    Parameters
    ----------
    K : array-like of shape (n, n), pandas DataFrame, or sparse matrix
        Symmetric and positive semidefinite, both up to 1e-8 (1e-5 in single precision); it may be singular.
    ids : sequence of n hashable ids, optional
        Default: the index of a pandas DataFrame, else 0 to n - 1.
    normalize : bool, default=True
        Unit diagonal, K_ij / sqrt(K_ii K_jj). False: K over its largest diagonal entry, R_M, as printed.
    precision : bool, default=False
        K is M itself, the positive definite side information matrix of the paper, and its inverse is the kernel.

    Notes
    -----
    `begin` is O(n^3 / 3), a Cholesky factorisation that shows K to be semidefinite, and raises ValueError for a K that
    is not square, finite, symmetric and positive semidefinite (definite to rounding with `precision`), or does not fit its ids.

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
        names = index_names(self.K)
        if names is not None and names != list(self.K.columns):
            raise ValueError("the columns of K must be its index, in the same order; they differ. Use K.loc[K.index].")
        dense = check_kernel(self.K)
        ids = check_ids(self.ids if self.ids is not None else names, len(dense), "K")
        kernel = inverse_of(dense) if self.precision else dense
        scaled = scale_kernel(kernel, normalize=bool(self.normalize))
        return DenseState(scaled, ids, digest_of(kernel=scaled, ids=ids))

    def _plain_params(self) -> dict[str, Any]:
        ids = self.ids if self.ids is not None else index_names(self.K)
        return {"K": check_kernel(self.K), "ids": plain_ids(ids)}


class KernelFunction(SideInformation):
    """A kernel function of points: the inductive setting (section 5, Algorithm 2), where ids come with their points.

    Parameters
    ----------
    f : {"gaussian", "min", "linear", "partition"} or callable, default="gaussian"
        - "gaussian": exp(-|x - t|^2 / (2 length_scale^2)).
        - "min": prod_i min(s(x)_i, s(t)_i) with s(x) = (r-1)/(2r) x + (r+1)/2 for x in [-r, r]^d (section 5.1).
        - "linear": <x, t> + epsilon [x = t].
        - "partition": [x = t] + epsilon for an id with itself (section 4.1); points are labels of parts.
        - a callable f(x, t) -> float, symmetric and positive semidefinite; what its values show to the contrary is
          refused when the point comes.
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
        A bound of f(x, x) for normalize=False. Default: 1 for "gaussian", r^d for "min", 1 + epsilon for "partition";
        the others have none.
    normalize : bool, default=True
        Unit diagonal, f(x, t) / sqrt(f(x, x) f(t, t)). False: f / radius, as in the paper.

    Notes
    -----
    The n-th point costs n values of f; memory O(n^2). `begin` raises ValueError for options out of range, `grow` for a point
    outside the domain; the state is then as before. A callable cannot be saved: `KernelFunction(f).resume(state)`.

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
        self.length_scale, self.r, self.epsilon, self.radius, self.normalize = (
            length_scale,
            r,
            epsilon,
            radius,
            normalize,
        )

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
        kernel = PointKernel(self.f, options)
        state = FunctionState(kernel, ids)
        for point in points:
            state.grow(point)
        state.seal()
        return state

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


class Mix(SideInformation):
    """Side information with a share for what all ids have in common and a share for each id's own ways.

    K = info K' + const 11^T + own I. On real data the own share decides whether wrong or thin side information hurts.

    Parameters
    ----------
    side : side information
        What is mixed; growing when it grows.
    info, const, own : float, defaults .6, .2, .2
        Not negative, summing to 1.

    Notes
    -----
    `begin` raises TypeError when `side` is no side information and ValueError when the weights do not sum to 1.

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
