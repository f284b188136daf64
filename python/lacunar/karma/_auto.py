"""Which solver `solver="auto"` means, from the shape of the data; docs/karma-solvers.md explains the rule."""

from __future__ import annotations

from typing import Literal, NamedTuple

from lacunar.karma._map import has_map
from lacunar.kernels import KernelForm

Solver = Literal["gram", "primal", "online"]

# Below this many rows the Gram is solved, exactly, in a fraction of a second whatever the table would cost.
_FEW_ROWS = 3000
# Nanoseconds, one core (docs/karma-solvers.md): a visit of a row to the weight table and each float it reads there; a pair
# of the Gram with its share of an iterative solver's passes; a multiplication of the Cholesky factorisation.
_VISIT_NS, _TABLE_NS, _PAIR_NS, _FLOP_NS = 150.0, 0.13, 2.5, 0.025
_SWEEPS = 16


class Shape(NamedTuple):
    """What the rule reads: sizes, mean observed entries of a row, outputs, whether the loss has a closed form."""

    n_rows: int
    n_columns: int
    observed: float
    n_outputs: int
    closed_form: bool


def gram_bytes(n_rows: int) -> int:
    """Memory of a Gram and the copy its solver factorises."""
    return 16 * n_rows**2


def table_floats(form: KernelForm, shape: Shape) -> float:
    """Floats of the weight table one visit of a row reads: a stripe for every observed column (gamma 2) or pair (3)."""
    o, width = shape.observed + 1, (shape.n_columns + 1) * (2 if form.indicators else 1)
    stripes = {1: 1.0, 2: 1 + o, 3: 1 + o + o * (o - 1) / 2}[int(form.gamma)]
    return stripes * min(width, 16 * o)


def choose_solver(form: KernelForm, shape: Shape, memory_limit: int) -> Solver:
    """The solver of least estimated time among those that fit in memory.

    Examples
    --------
    >>> form = KernelForm(gamma=2)
    >>> choose_solver(form, Shape(500, 30, 20, 1, True), 2**31)
    'gram'
    >>> choose_solver(form, Shape(1_000_000, 200, 30, 1, True), 2**31)
    'primal'
    >>> choose_solver(KernelForm(gamma=2.5), Shape(1_000_000, 200, 30, 1, True), 2**31)
    'online'
    """
    n = shape.n_rows
    gram_fits = gram_bytes(n) <= memory_limit
    if not has_map(form):
        return "gram" if gram_fits else "online"
    if n <= _FEW_ROWS and gram_fits:
        return "gram"
    outputs = 1 if shape.closed_form else shape.n_outputs
    gram = _PAIR_NS * n**2 * outputs + (_FLOP_NS * n**3 / 3 if shape.closed_form else 0.0)
    primal = _SWEEPS * n * shape.n_outputs * (_VISIT_NS + _TABLE_NS * table_floats(form, shape))
    return "gram" if gram_fits and gram < primal else "primal"
