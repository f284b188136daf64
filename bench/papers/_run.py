"""What every module here shares: cells that are computed once and kept, real tables, and the options of a run."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from bench.tools.records import bare, commit, digest, library
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from lacunar.datasets import fetch_dataset


class Unavailable(Exception):
    """Data or a package that an experiment needs is not there."""


@dataclass(frozen=True)
class Cell:
    """One computed value: of which function ("module:name"), with which arguments, at which commit, in how many seconds of CPU."""

    name: str
    compute: str
    task: tuple[Any, ...]
    value: Any
    seconds: float
    commit: str


@dataclass(frozen=True)
class Run:
    """One experiment's options: `quick` is the version for CI, `out` where tables, pictures and finished cells go."""

    name: str
    quick: bool
    out: Path
    jobs: int = 1
    fresh: bool = False
    seeds: int | None = None
    long: bool = False  # whether cells of many minutes each are computed too
    only: str = ""  # what names of cells must contain: the others are left out
    hours: float = float("inf")  # after which no further cell begins
    cells_used: list[Cell] = field(default_factory=list)

    def repeats(self, usual: int) -> int:
        """Seeds, splits or repeats to run: the usual number, or fewer where --seeds says so."""
        return usual if self.seeds is None else min(usual, self.seeds)

    @property
    def picture(self) -> Path:
        return self.out / f"{self.name}.png"

    def cells(self, compute: Callable[..., Any], tasks: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        """`compute(*task)` of every task, by its name, as JSON knows it; without those that `only` and `hours` leave out.

        Finished cells are kept in `out`/cells as they come, and read again by the next run: an interrupted run goes on where
        it was. A change of a task's arguments, or of the code that computes a cell, here or in the library, makes it a new one.
        """
        tasks = {name: task for name, task in tasks.items() if self.only in name}
        folder = self.out / "cells"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.jsonl"
        if self.fresh:
            path.unlink(missing_ok=True)
        source = digest(sources(compute))
        keys = {f"{compute.__name__} {name} {task!r} {source}": name for name, task in tasks.items()}
        kept = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
        found = {keys[line["key"]]: line for line in kept if line["key"] in keys}
        open_tasks = {key: tasks[name] for key, name in keys.items() if name not in found}
        if found and open_tasks:
            print(f"{self.name}: {len(found)} of {len(tasks)} cells are there already", flush=True)
        started, now = time.perf_counter(), commit()
        end = started + 3600 * self.hours
        work = (delayed(_timed)(compute, k, task) for k, task in open_tasks.items() if time.perf_counter() < end)
        with path.open("a", encoding="utf-8") as file:
            for key, value, seconds in Parallel(n_jobs=self.jobs, return_as="generator_unordered")(work):
                line = {"key": key, "value": value, "seconds": round(seconds, 1), "commit": now}
                found[keys[key]] = line
                file.write(json.dumps(line) + "\n")
                file.flush()
                self._progress(
                    keys[key], seconds, len(found), len(tasks), len(open_tasks), time.perf_counter() - started
                )
        whose = f"{compute.__module__}:{compute.__name__}"
        self.cells_used.extend(
            Cell(name, whose, tasks[name], line["value"], line["seconds"], line["commit"])
            for name, line in ((name, found[name]) for name in tasks if name in found)
        )
        return {name: found[name]["value"] for name in tasks if name in found}

    def _progress(self, cell: str, seconds: float, done: int, of: int, new: int, spent: float) -> None:
        left = spent * (of - done) / max(new - (of - done), 1)
        print(f"{self.name} [{done}/{of}] {cell}: {seconds:.1f} s, {left / 60:.1f} min left", flush=True)


def sources(compute: Callable[..., Any]) -> dict[str, str]:
    """Sources of a function, of what it names in bench.papers, and of the library that the modules of these import."""
    found: dict[str, str] = {}
    _follow(compute.__module__, compute.__name__, found)
    modules = {Path(inspect.getfile(importlib.import_module(m))) for m in {k.rpartition(".")[0] for k in found}}
    return found | library([path.read_text(encoding="utf-8") for path in sorted(modules)])


def _follow(module: str, name: str, found: dict[str, str]) -> None:
    """Sources of what a module of bench.papers calls `name`, and of all that this names: functions, classes and constants."""
    source = definitions(module).get(name)
    if source is None:  # imported from elsewhere
        value = getattr(sys.modules[module], name, None)
        home = getattr(value, "__module__", None) or _home(module, name)
        if isinstance(home, str) and home.startswith("bench.papers") and home != module:
            _follow(home, getattr(value, "__name__", name), found)
        return
    if f"{module}.{name}" in found:
        return
    found[f"{module}.{name}"] = bare(source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            _follow(module, node.id, found)


def _home(module: str, name: str) -> str | None:
    """The module of bench.papers from which another imports a constant."""
    return _homes(module).get(name)


@cache  # thousands of names are asked for
def _homes(module: str) -> dict[str, str | None]:
    nodes = [node for node in ast.parse(_text(module)).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module for node in reversed(nodes) for alias in node.names}


def _text(module: str) -> str:
    return Path(inspect.getfile(importlib.import_module(module))).read_text(encoding="utf-8")


@cache
def definitions(module: str) -> dict[str, str]:
    """Source of every function, class and constant that a module defines, by name."""
    text, found = _text(module), {}
    for node in ast.parse(text).body:
        names = [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        found |= dict.fromkeys(names, ast.get_source_segment(text, node) or "")
    return found


def _timed(compute: Callable[..., Any], key: str, task: tuple[Any, ...]) -> tuple[str, Any, float]:
    start = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # limits of iterations that the protocols themselves prescribe
        value = compute(*task)
    return key, plain(value), time.process_time() - start


def plain(value: Any) -> Any:
    """Numbers and lists of Python, which JSON writes and reads exactly."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def real(name: str, target: str | None = None) -> tuple[Any, Any]:
    """X and y of a public set: a local copy, or downloaded where that is possible."""
    try:
        X, y = fetch_dataset(name, target=target, return_X_y=True)
    except OSError as error:
        raise Unavailable(str(error)) from error
    return X, y
