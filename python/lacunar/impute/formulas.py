"""Columns that follow from others, such as a sum: their formulas as text, read without running any code."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from lacunar._typing import Floats
from lacunar.observed.cells import cut, listed

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_LARGEST = 1e300  # that a formula may write
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {"log": np.log, "exp": np.exp, "sqrt": np.sqrt, "abs": np.abs}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= _LARGEST


class Formula:
    """A formula over columns of numbers: + - * / **, numbers, parentheses, and log, exp, sqrt and abs."""

    def __init__(self, text: str, column: str, places: Mapping[str, int], wish: str = "") -> None:
        """`places` are the columns that it may name, by name; errors begin with `wish`."""
        self._wish = wish or "passive must give each column a formula"
        self.text, self.column, self._places = text, column, places
        try:
            self._tree = ast.parse(text, mode="eval").body
            names = self._names(self._tree)
        except RecursionError:
            self._refuse("it is nested too deeply")
        except (SyntaxError, TypeError) as error:
            self._refuse(str(error))
        self.places = sorted({places[name] for name in names})
        if not self.places:
            self._refuse("it names no column")

    def _names(self, node: ast.AST) -> set[str]:
        if isinstance(node, ast.Name) and node.id in self._places:
            return {node.id}
        if isinstance(node, ast.Constant) and _is_number(node.value):
            return set()
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return self._names(node.left) | self._names(node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._names(node.operand)
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in _FUNCTIONS and len(node.args) == 1:
            return self._names(node.args[0])
        self._refuse(f"{cut(ast.unparse(node))!r} is none of them")

    def _refuse(self, reason: str) -> NoReturn:
        raise ValueError(
            f"{self._wish} of columns of numbers with + - * / **, {', '.join(_FUNCTIONS)}; got "
            f"{cut(self.text)!r} for {cut(self.column)!r}: {reason}. Columns of numbers: {listed(self._places)}."
        )

    def of(self, columns: Mapping[int, Floats]) -> Floats:
        """Its values (n,) from columns (n,) by their places; an error where they are not finite."""
        values = self.values(columns)
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise ValueError(
                f"the formula of passive column {cut(self.column)!r}, {cut(self.text)!r}, must give finite numbers; got "
                f"{values[bad[0]]:g}. Give its columns bounds, or another formula."
            )
        return values

    def values(self, columns: Mapping[int, Floats]) -> Floats:
        """Its values, whatever they are, in the shape to which the columns broadcast."""
        shape = np.broadcast_shapes(*(column.shape for column in columns.values()))
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.asarray(self._value(self._tree, columns), dtype=np.float64), shape)

    def _value(self, node: Any, columns: Mapping[int, Floats]) -> Any:
        if isinstance(node, ast.Name):
            return columns[self._places[node.id]]
        if isinstance(node, ast.Constant):
            return np.float64(str(node.value))  # powers of Python's whole numbers have no end
        if isinstance(node, ast.BinOp):
            return _BINARY[type(node.op)](self._value(node.left, columns), self._value(node.right, columns))
        if isinstance(node, ast.UnaryOp):
            return -self._value(node.operand, columns)
        return _FUNCTIONS[node.func.id](self._value(node.args[0], columns))
