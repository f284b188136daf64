"""Kernel functions of points, named (section 5 of the paper) or given, with the points they have met."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lacunar.completion._side._definite import GrowingGram
from lacunar.completion._side._state import Floats, RowStore, refuse_state, shown
from lacunar.observed.rules import Flag, Number, Rule, check_parts

NAMED = ("min", "gaussian", "linear", "partition")
VECTORS = ("min", "gaussian", "linear")


_OPTIONS: dict[str, Rule] = {
    "r": Number(low=1, above=True),
    "length_scale": Number(low=0, above=True),
    "epsilon": Number(low=0),
    "normalize": Flag(),
    "radius": Number(low=0, above=True, optional=True),
}


def min_transform(x: Floats, r: float) -> Floats:
    """s(x) = (r-1)/(2r) x + (r+1)/2 of section 5.1: [-r, r] onto [1, r]."""
    return (r - 1) / (2 * r) * x + (r + 1) / 2


class PointKernel:
    """Values of a kernel between a new point and those met before, scaled to a diagonal of at most 1.

    `measure(point)` returns (column (n,), own value) and remembers the point; `take()` makes it one of those met. Options:
    r (min), length_scale (gaussian), epsilon (linear, partition), radius (sup of k(x, x); for normalize=False).
    """

    def __init__(
        self, f: str | Callable[[Any, Any], float], options: Mapping[str, Any], dim: int | None = None
    ) -> None:
        self.f, self.options = f, dict(options)
        self._vectors = RowStore(np.empty((0, dim))) if dim is not None else None
        self._points: list[Any] = []
        self._own: list[float] = []  # k(x, x) before scaling
        self._gram = GrowingGram() if callable(f) else None
        self._pending: tuple[Any, float] | None = None

    def measure(self, value: Any) -> tuple[Floats, float]:
        """Scaled kernel values (n,) with the points met, and with itself."""
        point = self._read(value)
        raw, own = self._raw(point)
        if not (np.isfinite(raw).all() and np.isfinite(own)):
            raise ValueError(f"the kernel function must be finite; it is not for {shown(value)}. Check that point.")
        if not own > 0:
            raise ValueError(
                f"the kernel of a point with itself must be above 0; got {own} for {shown(value)}. Raise epsilon."
            )
        if self._gram is not None:
            self._gram.measure(raw, own, value)
        self._pending = (point, own)
        if self.options["normalize"]:
            return raw / (np.sqrt(self._own) * np.sqrt(own)), 1.0
        radius = float(self.options["radius"])
        if own > radius * (1 + 1e-12):
            raise ValueError(
                f"the kernel of a point with itself must be at most radius={radius:g}; got {own:.6g} for {shown(value)}. "
                "Raise radius, or use normalize=True."
            )
        return raw / radius, own / radius

    def take(self) -> None:
        """The point last measured is met."""
        assert self._pending is not None
        point, own = self._pending
        if isinstance(point, np.ndarray) and self.f in VECTORS:
            if self._vectors is None:
                self._vectors = RowStore(np.empty((0, point.size)))
            self._vectors.append(point)
        self._points.append(point)
        self._own.append(own)
        if self._gram is not None:
            self._gram.take()
        self._pending = None

    def state(self) -> dict[str, Any]:
        """The function's name, its options and the points met."""
        name = (
            self.f if isinstance(self.f, str) else f"{self.f.__module__}.{getattr(self.f, '__qualname__', 'callable')}"
        )
        points: Any = [p.tolist() if isinstance(p, np.ndarray | np.generic) else p for p in self._points]
        if self._vectors is not None:
            points = self._vectors.rows.copy()
        return {"function": name, "options": dict(self.options), "points": points}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], begun: PointKernel | None) -> PointKernel:
        """The function that was saved, with no points yet; one that has no name must be given again."""
        name, options = state["function"], state["options"]
        check_parts(options, _OPTIONS, "options of a kernel function", {})
        if begun is not None and begun.state()["function"] == name:
            return cls(begun.f, options)
        if name not in NAMED:
            refuse_state(f"it was of the function {name}, which cannot be saved: resume it from KernelFunction(f)")
        return cls(name, options)

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
                f"a point of the 'min' kernel must lie in [-r, r] = [{-self.options['r']:g}, {self.options['r']:g}]; got "
                f"{point[k]:g} in column {k}. Raise r, or scale the points."
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
