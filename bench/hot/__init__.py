"""Every hot loop of the library as a case: fixed data, a call to measure, a check of its answer.

`bench_hot_loops.py` times the cases, `instructions.py` counts the instructions of the small ones. A case is a function of
its sizes that makes the data and returns the call (repeatable: it starts from the same state every time) and the check.
One module a family: tables themselves in `tables`, Gram matrices and the engines over them in `karma`, what users fit in
`estimators`, `subspaces`, `active`, `regressions`, `pairs` and `baselines`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

Call = Callable[[], Any]
Check = Callable[[Any], None]


class Case(NamedTuple):
    make: Callable[..., tuple[Call, Check]]
    small: dict[str, Any]
    large: dict[str, Any]
    counted: bool  # whether instructions are counted: no, where BLAS or Python do the work

    def at(self, size: str) -> tuple[Call, Check]:
        return self.make(**getattr(self, size))


CASES: dict[str, Case] = {}


def case(
    name: str, *, small: dict[str, Any], large: dict[str, Any], counted: bool = True
) -> Callable[[Callable[..., tuple[Call, Check]]], Callable[..., tuple[Call, Check]]]:
    """Enters a function among the cases; a function may be entered under several names."""

    def enter(make: Callable[..., tuple[Call, Check]]) -> Callable[..., tuple[Call, Check]]:
        assert name not in CASES, name
        CASES[name] = Case(make, small, large, counted)
        return make

    return enter


from bench.hot import active, baselines, estimators, karma, pairs, regressions, subspaces, tables  # noqa: E402, F401  their import enters their cases
