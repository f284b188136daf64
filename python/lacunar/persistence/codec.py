"""Estimators to a tree of JSON and a table of arrays, and back. Plain data only; what is not understood is refused.

A leaf that JSON has (None, bool, int, finite float, str) stands for itself; everything else is ``{"t": kind, ...}``.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from typing import Any, NoReturn
from uuid import UUID

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar.observed import Observed
from lacunar.observed.rules import check_fitted
from lacunar.persistence import composed, registry

MAX_DEPTH = 40
# Kept beside the attributes ending in "_": what set_output chose. Metadata requests are made again by the reader.
_EXTRA_STATE = {"_sklearn_output_config"}
# What is made again from what is stored, and what a file does not hold: a training table.
_NOT_STORED = {"_metadata_request", "_engine", "_training", "_mixture"}
# Ids that JSON lacks, by their text; a moment of pandas is stored as the one of the standard library that it equals.
_TEXTS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "decimal": (Decimal, str, Decimal),
    "uuid": (UUID, str, UUID),
}
_SCALAR_TYPES: dict[str, type] = {"float32": np.float32, "float64": np.float64, "float": float, "int": int}


class Encoder:
    """Turns values into nodes; `arrays` collects what goes beside the JSON."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def encode(self, value: Any, where: str) -> Any:
        """The node of one value; `where` names it in messages."""
        if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
            return value
        if isinstance(value, np.ndarray | np.generic | float):
            return self._array(value, where)
        if type(value) in (list, tuple, frozenset):
            items = sorted(value, key=repr) if type(value) is frozenset else value
            return {"t": type(value).__name__, "items": [self.encode(v, f"{where}[{i}]") for i, v in enumerate(items)]}
        for tag, (kind, write, read) in _TEXTS.items():
            if isinstance(value, kind) and _equal(read(write(value)), value):
                return {"t": tag, "value": write(value)}
        if type(value) is dict:
            pairs = [[self.encode(k, where), self.encode(v, f"{where}[{k!r}]")] for k, v in value.items()]
            return {"t": "dict", "items": pairs}
        if isinstance(value, Observed | sp.csr_array):
            tag, entries = ("observed", "values") if isinstance(value, Observed) else ("sparse", "data")
            parts = {name: self._store(getattr(value, name)) for name in ("indptr", "indices", entries)}
            return {"t": tag, "shape": list(value.shape), **parts}
        for name, kind in _SCALAR_TYPES.items():
            if value is kind:
                return {"t": "type", "name": name}
        return self._object(value, where)

    def _store(self, array: NDArray[Any]) -> str:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = array
        return name

    def _array(self, value: Any, where: str) -> dict[str, Any]:
        if isinstance(value, float) and not isinstance(value, np.generic):
            return {"t": "float", "value": repr(value)}  # nan and infinities, which JSON lacks
        array = np.asarray(value)
        node: dict[str, Any] = {"t": "array" if isinstance(value, np.ndarray) else "scalar"}
        if array.dtype.kind in "OT":
            if not all(type(item) is str for item in array.flat):
                _unstorable(where, value, "its elements are no plain strings")
            if any(item.endswith("\0") for item in array.flat):  # which NumPy takes for padding
                array, node["ended"] = array + ".", True
            array, node["objects"] = array.astype(str), True
        elif array.dtype.kind not in "biufU":
            _unstorable(where, value, f"its dtype is {array.dtype}")
        node["fortran"] = bool(array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous)
        return node | {"name": self._store(array)}

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        record = registry.name_of(type(value), registry.RECORDS)
        if record is not None:
            fields = {
                f.name: self.encode(getattr(value, f.name), f"{where}.{f.name}") for f in dataclasses.fields(value)
            }
            return {"t": "record", "class_name": record, "fields": fields}
        if registry.name_of(type(value), registry.SPLITTERS) is not None:
            return self._splitter(value, where)
        if composed.is_composed(value):
            return composed.encoded(value, where, self.encode)
        if registry.name_of(type(value), registry.CLASSES) is None:
            _unstorable(where, value, "its class is not one that a model file may name")
        # Side information takes frames and graphs; what it makes of them is plain.
        return self.estimator(value.plain() if hasattr(value, "plain") else value, where)

    def _splitter(self, value: Any, where: str) -> dict[str, Any]:
        """A splitter of scikit-learn, which a parameter `cv` may be, by its parameters."""
        names = [name for name in inspect.signature(type(value)).parameters if hasattr(value, name)]
        params = {name: self.encode(getattr(value, name), f"{where}.{name}") for name in names}
        return {"t": "splitter", "class_name": registry.name_of(type(value), registry.SPLITTERS), "params": params}

    def estimator(self, model: Any, where: str) -> dict[str, Any]:
        """Parameters and learned attributes of a registered estimator."""
        params = model.get_params(deep=False)
        # Not vars(): a model whose state lives in an engine writes it out for the occasion.
        attributes = model.__getstate__()
        state = {k: v for k, v in attributes.items() if k not in params and k not in _NOT_STORED}
        for key, value in state.items():
            if not _is_state(key):
                _unstorable(f"{where}.{key}", value, "only parameters and attributes ending in '_' are stored")
        return {
            "t": "estimator",
            "class_name": registry.name_of(type(model), registry.CLASSES),
            "params": {k: self.encode(v, f"{where}.{k}") for k, v in params.items()},
            "state": {k: self.encode(v, f"{where}.{k}") for k, v in state.items()},
        }


def _equal(one: Any, other: Any) -> bool:
    """Whether one id may stand for the other."""
    return bool(one == other) and hash(one) == hash(other)


def _is_state(name: str) -> bool:
    return name in _EXTRA_STATE or (name.isidentifier() and name.endswith("_") and not name.endswith("__"))


def _unstorable(where: str, value: object, reason: str) -> NoReturn:
    remedy = "Use numbers, strings, arrays or tuples for it before fitting."
    if hasattr(value, "get_params"):
        remedy = "Leave it out, or keep models with parts of other libraries by joblib or skops."
    raise TypeError(f"a model file holds plain data; got {where} of type {type(value).__name__}: {reason}. {remedy}")


class Decoder:
    """Turns nodes back into values, trusting nothing: every mismatch is a ValueError."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = dict(arrays)
        self._kinds: dict[str, Callable[..., Any]] = {
            **{kind.__name__: partial(self._items, kind) for kind in (list, tuple, frozenset)},
            **{tag: partial(_from_text, read) for tag, (_, _, read) in _TEXTS.items()},
            "float": self._float, "array": self._array, "scalar": self._scalar, "dict": self._dict,
            "observed": self._observed, "sparse": self._sparse, "type": self._type, "record": self._record,
            "estimator": self._estimator, "pipeline": self._pipeline, "columns": self._columns, "splitter": self._splitter,
        }  # fmt: skip

    def decode(self, node: Any, depth: int = 0) -> Any:
        """The value of one node."""
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if not isinstance(node, dict) or not isinstance(node.get("t"), str) or node["t"] not in self._kinds:
            raise ValueError(f"a node of the model file is of no known kind: {str(node)[:80]}")
        if depth > MAX_DEPTH:
            raise ValueError(f"the model file nests deeper than {MAX_DEPTH} levels")
        fields = {key: value for key, value in node.items() if key != "t"}
        try:
            return self._kinds[node["t"]](depth + 1, **fields)
        except (TypeError, AttributeError, KeyError, IndexError, OverflowError) as error:
            raise ValueError(f"a {node['t']!r} node of the model file is not understood: {error}") from None

    def finish(self) -> None:
        """Refuses a file with arrays that nothing refers to."""
        if self._arrays:
            raise ValueError(f"the model file holds arrays that no attribute refers to: {sorted(self._arrays)[:5]}")

    def _take(self, name: Any) -> NDArray[Any]:
        if not isinstance(name, str) or name not in self._arrays:
            raise ValueError(f"the model file refers to an array it does not hold, or twice: {str(name)[:80]!r}")
        return self._arrays.pop(name)

    def _float(self, depth: int, value: str) -> float:
        if value not in ("nan", "inf", "-inf"):
            raise ValueError(f"the model file holds a float it should not: {str(value)[:80]!r}")
        return float(value)

    def _array(self, depth: int, name: str, fortran: bool, objects: bool = False, ended: bool = False) -> NDArray[Any]:
        array = self._take(name)
        if objects:
            array = array.astype("O")
        if ended:
            array = np.array([text[:-1] for text in array.flat] + [None], dtype=object)[:-1].reshape(array.shape)
        return np.asfortranarray(array) if fortran else array

    def _scalar(self, depth: int, name: str, fortran: bool) -> Any:
        array = self._take(name)
        if array.ndim:
            raise ValueError(f"the model file gives shape {array.shape} to a scalar")
        return array[()]

    def _items(self, kind: Callable[..., Any], depth: int, items: list[Any]) -> Any:
        return kind(self.decode(item, depth) for item in items)

    def _dict(self, depth: int, items: list[Any]) -> dict[Any, Any]:
        return {self.decode(key, depth): self.decode(value, depth) for key, value in items}

    def _type(self, depth: int, name: str) -> type:
        return _SCALAR_TYPES[name]

    def _observed(self, depth: int, shape: list[int], indptr: str, indices: str, values: str) -> Observed:
        n, d = shape
        if type(n) is not int or type(d) is not int:
            raise ValueError(f"the model file holds a table of shape {shape}")
        return Observed(self._take(indptr), self._take(indices), self._take(values), (n, d))

    def _sparse(self, depth: int, shape: list[int], indptr: str, indices: str, data: str) -> Any:
        parts = (self._take(data), self._take(indices), self._take(indptr))
        if not all(type(size) is int for size in shape) or any(part.dtype.kind not in "iuf" for part in parts):
            raise ValueError(f"the model file holds a sparse matrix of shape {str(shape)[:80]}")
        matrix = sp.csr_array(parts, shape=tuple(shape))
        matrix.check_format(full_check=True)
        return matrix

    def _pipeline(self, depth: int, steps: list[list[Any]]) -> Any:
        return composed.pipeline(steps, lambda node: self.decode(node, depth))

    def _columns(self, depth: int, **fields: Any) -> Any:
        return composed.columns(**fields, decode=lambda node: self.decode(node, depth))

    def _splitter(self, depth: int, class_name: str, params: dict[str, Any]) -> Any:
        cls = registry.class_of(class_name, registry.SPLITTERS)
        return cls(**{key: self.decode(value, depth) for key, value in params.items()})

    def _record(self, depth: int, class_name: str, fields: dict[str, Any]) -> Any:
        cls = registry.class_of(class_name, registry.RECORDS)
        record = cls(**{key: self.decode(value, depth) for key, value in fields.items()})
        record._check_loaded()
        return record

    def _estimator(self, depth: int, class_name: str, params: dict[str, Any], state: dict[str, Any]) -> Any:
        cls = registry.class_of(class_name, registry.CLASSES)
        model = cls(**{key: self.decode(value, depth) for key, value in params.items()})
        for key, value in state.items():
            if not _is_state(key) or hasattr(cls, key) or key in params:
                raise ValueError(f"the model file sets {key[:80]!r}, which is no learned attribute of {cls.__name__}")
            setattr(model, key, self.decode(value, depth))
        check_fitted_state(model)
        return model


def _from_text(read: Callable[[str], Any], depth: int, value: str) -> Any:
    try:
        return read(value)
    except (ArithmeticError, ValueError):
        raise ValueError(f"the model file holds a value that is none of its kind: {str(value)[:80]!r}") from None


def check_fitted_state(model: Any) -> None:
    """Refuses parameters out of range and attributes that contradict each other: the one door of every class a file may name.

    `_schema` of a class gives a rule for what it learned, sizes d (columns), c (classes) and o (outputs of a classifier) settled
    here; `_check_loaded` is for what no rule says of one part alone.
    """
    if hasattr(model, "_parameter_constraints"):
        model._validate_params()
    sizes: dict[str, int] = {}
    n_features = getattr(model, "n_features_in_", None)
    if n_features is not None:
        whole = isinstance(n_features, int | np.integer) and not isinstance(n_features, bool)
        if not whole or not 0 <= n_features < 2**31:
            raise ValueError(f"the model file gives n_features_in_={str(n_features)[:80]}")
        sizes["d"] = int(n_features)
        names = getattr(model, "feature_names_in_", None)
        if names is not None and np.shape(names) != (n_features,):
            raise ValueError(f"the model file names {np.shape(names)} features where {n_features} were fitted")
    if "classes_" in vars(model):
        sizes |= _class_sizes(model.classes_)
    check_fitted(model, getattr(model, "_schema", {}), sizes)
    if hasattr(model, "_check_loaded"):
        model._check_loaded()
    for key, value in vars(model).items():
        if isinstance(value, Observed) and n_features is not None and value.shape[1] != n_features:
            raise ValueError(f"the model file's {key} has {value.shape[1]} columns where {n_features} were fitted")


def _class_sizes(classes: Any) -> dict[str, int]:
    """Number of classes, and of outputs: one for two classes."""
    sound = isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes)
    if not sound or len(np.unique(classes)) != len(classes) or (classes != classes).any():  # NaN is unlike itself
        raise ValueError("the model file's classes_ are not distinct labels in one dimension")
    return {"c": len(classes), "o": len(classes) if len(classes) > 2 else 1}
