"""Parts of rows as Dask tasks: steps run where a part is, and sums of what they make come back through a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lacunar.distributed._shards import dask_module, numbered

Step = Callable[..., Any]


class DaskParts:
    """What `fit_parts` of an estimator goes by.

    With `keep`, the parts that `map` makes are held by the workers that made them; otherwise they are made again from the
    shards at every step. Sums are taken in pairs of neighbours, whoever finishes first: the same bits every time.
    """

    def __init__(self, pieces: list[Any], *, keep: bool) -> None:
        self.pieces, self.keep = pieces, keep

    def _tasks(self, step: Step, given: tuple[Any, ...]) -> list[Any]:
        delayed = dask_module().delayed
        sent = delayed(given, traverse=False)  # once, not with every task
        return [delayed(_run)(step, number, piece, sent) for number, piece in enumerate(self.pieces)]

    def map(self, step: Step, *given: Any) -> DaskParts:
        """Parts made by step(part, *given)."""
        made = self._tasks(step, given)
        return DaskParts(list(dask_module().persist(*made)) if self.keep else made, keep=self.keep)

    def each(self, step: Step, *given: Any) -> list[Any]:
        """What step(part, *given) makes of every part."""
        return list(dask_module().compute(*self._tasks(step, given)))

    def total(self, step: Step, *given: Any) -> tuple[Any, ...]:
        """Sums over the parts of the tuples that step(part, *given) makes."""
        made: tuple[Any, ...] = dask_module().compute(tree(self._tasks(step, given), _added))[0]
        return made


def tree(tasks: list[Any], join: Callable[[Any, Any], Any]) -> Any:
    """One task that joins all, neighbours first; a task left over moves up."""
    delayed = dask_module().delayed(join)
    while len(tasks) > 1:
        pairs = [tasks[k : k + 2] for k in range(0, len(tasks), 2)]
        tasks = [delayed(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return tasks[0]


def _run(step: Step, number: int, part: Any, given: tuple[Any, ...]) -> Any:
    return numbered(step, number, part, *given)


def _added(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))
