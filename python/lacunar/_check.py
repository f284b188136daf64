"""The door: public input is checked here once, and only here are errors about it phrased."""

from __future__ import annotations

from lacunar import _core


def check_entries(indptr, indices, values, shape):
    fault = _core.find_fault(indptr, indices, values, shape[1])
    if fault is not None:
        raise ValueError(f"{fault}")
    return indptr, indices, values
