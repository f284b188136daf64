"""Rules for the arrays and numbers of a fitted object, checked all together before anything reads one of them.

A model file may say anything, and the compiled core trusts what it is given a size for. Every class that is stored
tells what it holds as a table from names to rules; sizes that several parts share have a name ("d" columns), which the
first part settles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from types import UnionType
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from lacunar.observed.table import Observed

Sizes = dict[str, int]
Dim = int | str
_LARGEST = 2**62  # of whole numbers: sums of two still fit
_KINDS = {"f": "floats", "i": "whole numbers", "b": "truth values", "U": "text", "fi": "numbers"}


class Rule(Protocol):
    """A check of one stored value."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """ValueError where the value breaks the rule; sizes that have no value yet take the ones it has."""
        ...


@dataclass(frozen=True)
class Array:
    """An array of numbers of one of the kinds "f", "i", "b", or text "U": shape by name or value, range with
    both ends.
    """

    kinds: str
    shape: tuple[Dim, ...]
    low: float = -math.inf
    high: float = math.inf
    finite: bool = True
    distinct: bool = False
    ascending: bool = False  # and distinct
    dtype: Any = None

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        kind = {"u": "i", "O": "U"}.get(kind, kind)
        if (
            not isinstance(value, np.ndarray)
            or kind not in tuple(self.kinds)
            or value.dtype != (self.dtype or value.dtype)
        ):
            self._refuse(value, where, sizes)
        _settle(value, self.shape, where, sizes)
        numeric = kind in "fi" and value.size
        if numeric and self.finite and not np.isfinite(value).all():
            _refuse(where, "finite", f"{_first(value, ~np.isfinite(value))}")
        if numeric and not np.isnan(value).all():
            if float(np.nanmin(value)) < self.low:
                _refuse(where, f"at least {self.low:g}", _first(value, value < self.low))
            if float(np.nanmax(value)) > self.high:
                _refuse(where, f"at most {self.high:g}", _first(value, value > self.high))
        if self.distinct and len(np.unique(value)) != value.size:
            _refuse(where, "without repeats", f"{value.size - len(np.unique(value))} repeats in {value.size} entries")

        if self.ascending and not np.array_equal(np.unique(value), value):
            _refuse(where, "in ascending order without repeats", _shown(value))

    def _refuse(self, value: Any, where: str, sizes: Sizes) -> NoReturn:
        wish = " or ".join(_KINDS.get(kind, kind) for kind in self.kinds)
        _refuse(where, f"an array of {self.dtype or wish} of shape {_wanted(self.shape, sizes)}", _shown(value))


@dataclass(frozen=True)
class Number:
    """A number, whole or not, within a range, both ends included unless `above` excludes the lower one."""

    whole: bool = False
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    finite: bool = True
    names: str | None = None  # a size that the number settles

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        sound = isinstance(value, Integral if self.whole else Real) and not isinstance(value, bool | np.bool_)
        if not sound or (isinstance(value, Integral) and abs(int(value)) > _LARGEST):
            _refuse(where, "a whole number" if self.whole else "a number", _shown(value))
        if self.finite and not math.isfinite(value):
            _refuse(where, "finite", str(value))
        if value < self.low or value > self.high or (self.above and value == self.low):
            _refuse(
                where, f"{'above' if self.above else 'at least'} {self.low:g} and at most {self.high:g}", str(value)
            )
        if self.names is not None and sizes.setdefault(self.names, int(value)) != value:
            _refuse(where, f"{sizes[self.names]}, as the parts around it", str(value))


@dataclass(frozen=True)
class OneOrMany:
    """A finite number for one output, or an array of one more dimension than `shape` for several."""

    shape: tuple[Dim, ...]
    outputs: str

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if np.ndim(value) > len(self.shape):
            floats(*self.shape, self.outputs).check(value, where, sizes)
            return
        (floats(*self.shape) if self.shape else Number()).check(value, where, sizes)
        if sizes.setdefault(self.outputs, 1) != 1:
            _refuse(where, f"of {sizes[self.outputs]} outputs", "one output")


@dataclass(frozen=True)
class ObservedTable:
    """An `Observed` of this shape and dtype; it has checked its own arrays."""

    shape: tuple[Dim, Dim]
    dtype: Any = None

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, Observed) or value.dtype != (self.dtype or value.dtype):
            _refuse(where, f"a table of {self.dtype or 'numbers'} of shape {_wanted(self.shape, sizes)}", _shown(value))
        _settle(value, self.shape, where, sizes)


@dataclass(frozen=True)
class Word:
    """Text: one of `words`, or any where there are none."""

    words: tuple[str, ...] = ()

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, str) or (self.words and value not in self.words):
            _refuse(where, f"one of {', '.join(self.words)}" if self.words else "text", _shown(value))


@dataclass(frozen=True)
class Flag:
    """A truth value: True or False."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, bool | np.bool_):
            _refuse(where, "True or False", _shown(value))


@dataclass(frozen=True)
class Instance:
    """An object of a class, or of one of several, that checks itself."""

    kind: type | UnionType

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, self.kind):
            _refuse(where, f"a {getattr(self.kind, '__name__', self.kind)}", _shown(value))


@dataclass(frozen=True)
class Optional:
    """A rule for None or a value that keeps the inner rule."""

    rule: Rule

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if value is not None:
            self.rule.check(value, where, sizes)


@dataclass(frozen=True)
class Sometimes:
    """A rule for an attribute that only some fits set. Attributes under every other rule must be present."""

    rule: Rule

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        self.rule.check(value, where, sizes)


@dataclass(frozen=True)
class Anything:
    """A rule for an attribute that must be present and may hold any value: `_check_loaded` checks it, or no prediction
    depends on it.
    """

    def check(self, value: Any, where: str, sizes: Sizes) -> None: ...


@dataclass(frozen=True)
class Items:
    """A list or tuple of parts that follow one rule."""

    rule: Rule
    length: Dim | None = None
    alike: bool = True  # whether sizes that one settles hold for the others

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, list | tuple):
            _refuse(where, "a list", _shown(value))
        if self.length is not None:
            _settle(np.empty(len(value)), (self.length,), where, sizes)
        for k, item in enumerate(value):
            self.rule.check(item, f"{where}[{k}]", sizes if self.alike else dict(sizes))


@dataclass(frozen=True)
class Parts:
    """A dict of exactly these parts."""

    rules: Mapping[str, Rule]

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        check_parts(value, self.rules, where, sizes)


def check_parts(parts: Any, rules: Mapping[str, Rule], where: str, sizes: Sizes) -> None:
    """Refuses a mapping that has other parts than the rules name, or one that breaks its rule."""
    if not isinstance(parts, Mapping) or set(parts) != set(rules):
        came = sorted(map(str, parts))[:30] if isinstance(parts, Mapping) else _shown(parts)
        _refuse(where, f"a dict of {', '.join(sorted(rules))}", str(came)[:300])
    for name, rule in rules.items():
        rule.check(parts[name], f"{where}[{name!r}]", sizes)


def check_fitted(model: Any, rules: Mapping[str, Rule], sizes: Sizes) -> None:
    """ValueError where a part of a fitted object breaks its rule, or is absent though it is not one that is there
    `Sometimes`.

    Columns, the size "d", are counted by `n_features_in_`, which must be there where a rule names them.
    """
    attributes = vars(model)
    if not any(name.endswith("_") for name in attributes):
        return
    counted = "d" in sizes
    for name, rule in rules.items():
        if name in attributes:
            rule.check(attributes[name], name, sizes)
        elif not isinstance(rule, Sometimes):
            _refuse(name, "among what the model learned", "none")
    if "d" in sizes and not counted:
        _refuse("n_features_in_", "among what the model learned", "none")


def floats(*shape: Dim, **more: Any) -> Array:
    """Finite floats."""
    return Array("f", shape, **more)


def whole(*shape: Dim, low: float = 0, **more: Any) -> Array:
    """Whole numbers, from 0 unless `low` says otherwise."""
    return Array("i", shape, low=low, **more)


LABELS = Array("biufU", ("c",), ascending=True)
COUNT = Number(whole=True, low=0)
COLUMNS: dict[str, Rule] = {
    "mean_": floats("d"),
    "scale_": floats("d", low=np.finfo(np.float64).tiny),
    "observed_columns_": Array("b", ("d",)),
}
BOUNDED_COLUMNS: dict[str, Rule] = {**COLUMNS, "reach_": floats("d", low=0)}


def _settle(value: Any, shape: Sequence[Dim], where: str, sizes: Sizes) -> None:
    came = np.shape(value) if isinstance(value, np.ndarray) else value.shape
    if len(came) != len(shape):
        _refuse(where, f"of shape {_wanted(shape, sizes)}", f"shape {came}")
    for wish, size in zip(shape, came, strict=True):
        if (sizes.setdefault(wish, size) if isinstance(wish, str) else wish) != size:
            _refuse(where, f"of shape {_wanted(shape, sizes)}", f"shape {came}")


def _wanted(shape: Sequence[Dim], sizes: Sizes) -> str:
    sizes_wanted = [str(sizes.get(dim, dim)) if isinstance(dim, str) else str(dim) for dim in shape]
    return f"({', '.join(sizes_wanted)}{',' * (len(sizes_wanted) == 1)})"


def _first(value: Any, wrong: Any) -> str:
    at = tuple(int(k) for k in np.argwhere(wrong)[0]) if np.any(wrong) else ()
    return f"{value[at]} at {at}"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic | Observed):
        return f"{value.dtype} of shape {value.shape}"
    return f"{type(value).__name__} {str(value)[:60]}"


def _refuse(where: str, wish: str, came: str) -> NoReturn:
    raise ValueError(f"{where} must be {wish}; got {came}. Fit again")


def trial_rows(model: Any) -> list[Any]:
    """Tables of one row that a loaded model must be able to read: one with nothing observed, one with entries.

    A class whose columns may hold something else than numbers says in `_trial_rows` what they hold. Of one that takes
    text and says nothing only the empty row is known to be right.
    """
    if hasattr(model, "_trial_rows"):
        return list(model._trial_rows())
    if hasattr(model, "steps"):  # a pipeline reads what its first step reads
        return trial_rows(model.steps[0][1])
    n_features = getattr(model, "n_features_in_", None)
    if n_features is None:
        return []
    tags = model.__sklearn_tags__().input_tags if hasattr(model, "__sklearn_tags__") else None
    if tags is None or tags.string or hasattr(model, "transformers"):
        return [np.full((1, n_features), None, dtype=object)]
    if n_features < 1:
        _refuse("n_features_in_", "a number of columns above 0", str(n_features))
    ends = sorted({0, int(n_features) - 1})
    values = _usual_values(model, int(n_features))
    return [
        Observed.from_triplets([0] * len(columns), columns, values[columns], shape=(1, int(n_features)))
        for columns in ([], ends)
    ]


def _usual_values(model: Any, n_features: int) -> NDArray[np.float64]:
    """A value for every column (d,) half a standard deviation above its mean, where the model knows both, else 0.5.

    What is usual elsewhere may be too large for a model in float32, in units of a column of 1e-40.
    """
    mean: Any = getattr(model, "mean_", None)
    scale: Any = getattr(model, "scale_", None)
    if np.shape(mean) != (n_features,) or np.shape(scale) != (n_features,):
        return np.full(n_features, 0.5)
    return np.asarray(mean + 0.5 * scale, dtype=np.float64)
