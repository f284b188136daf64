"""Which lines of a reader were reached: a line tracer over the files that a target names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import lacunar
from fuzz.oracle import Target

PACKAGE = Path(lacunar.__file__).parent


@contextmanager
def lines_of(target: Target) -> Iterator[None]:
    """Prints the share of lines inside functions that were run."""
    reached: dict[str, set[int]] = {str(PACKAGE / source): set() for source in target.sources}

    def on_line(frame: FrameType, event: str, argument: Any) -> Any:
        reached[frame.f_code.co_filename].add(frame.f_lineno)
        return on_line

    def on_call(frame: FrameType, event: str, argument: Any) -> Any:
        return on_line if frame.f_code.co_filename in reached else None

    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(None)
        for source, lines in reached.items():
            known = _lines_in_functions(Path(source))
            missed = sorted(known - lines)
            print(
                f"    {Path(source).name}: {1 - len(missed) / len(known):.0%} of {len(known)} lines; not {missed}",
                flush=True,
            )


def _lines_in_functions(source: Path) -> set[int]:
    """Lines with code below the level of modules and classes."""
    found: set[int] = set()

    def walk(code: CodeType, inside: bool) -> None:
        if inside:
            found.update(line for _, _, line in code.co_lines() if line and line != code.co_firstlineno)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                walk(constant, inside or bool(constant.co_flags & 0x2))  # newlocals: a function, and no class body

    walk(compile(source.read_text(encoding="utf-8"), str(source), "exec"), inside=False)
    return found
