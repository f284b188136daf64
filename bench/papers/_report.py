"""What an experiment hands back, and how it is shown: a Markdown table, verdicts, a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Verdict:
    """A claim of a paper: where it stands, its figure there, ours, the verdict, the rule that gives it, and what differs and how we know."""

    claim: str
    source: str
    paper: str
    ours: str
    word: str
    rule: str
    differs: str = "-"

    def row(self, title: str) -> str:
        place = title if self.source in title else f"{title}, {self.source}"
        return (
            f"| {place} | {self.claim} | {self.paper} | {self.ours} | **{self.word}**: {self.rule} | {self.differs} |"
        )


def word(holds: bool) -> str:
    return "reproduces" if holds else "does not"


def share(count: int, of: int) -> str:
    """A verdict of several comparisons of one kind."""
    return word(count == of) if count in (0, of) else f"{count} of {of}"


NO_CLAIM = "no claim"
HEADER = (
    "| figure, table or law | the claim | its figure | ours | verdict and its rule | what differs, and how we know |\n"
    "|---|---|---|---|---|---|"
)


@dataclass
class Report:
    """`repeats` says how often and what the spread is; `trends` are sentences with whether they hold: claims, or what was found instead."""

    title: str
    table: str
    repeats: str
    verdicts: list[Verdict] = field(default_factory=list)
    trends: dict[str, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    picture: Path | None = None

    def body(self) -> str:
        """The table, and the notes below it."""
        return "\n".join([self.table, *([""] * bool(self.notes)), *(f"- {note}" for note in self.notes)])

    def markdown(self) -> str:
        lines = [f"# {self.title}", "", self.body(), "", f"{self.repeats}.", ""]
        lines += [HEADER, *(v.row(self.title) for v in self.verdicts), ""]
        lines += [f"- {'holds' if holds else 'FAILS'}: {sentence}" for sentence, holds in self.trends.items()]
        if self.picture is not None:
            lines += ["", f"![{self.title}]({self.picture.name})"]
        return "\n".join(lines) + "\n"


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Mean and its standard error; one value has none (NaN)."""
    found = np.array(list(values), dtype=float)
    spread = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
    return float(found.mean()), float(spread)


def read_table(lines: Sequence[str]) -> dict[str, dict[str, str]]:
    """The rows of a Markdown table by their first cell: what stands in the others, by the head of the column."""
    head, _, *rows = [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines if line.startswith("|")
    ]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def read_number(shown: str) -> tuple[float, float]:
    """Mean and standard error of what `number` shows; infinite where it diverges, an error of 0 where there is none."""
    if shown == "diverges":
        return float("inf"), 0.0
    mean, _, error = shown.partition(" (")
    return float(mean), float(error.rstrip(")")) if error else 0.0


def above(a: str, b: str) -> bool:
    """Whether the mean that `a` shows is above that of `b` by more than two standard errors of their difference, as if they were independent."""
    (x, dx), (y, dy) = read_number(a), read_number(b)
    return x - y > 2 * float(np.hypot(dx, dy)) if np.isfinite(y) else False


def number(values: Sequence[float] | None, digits: int = 3) -> str:
    """Mean (standard error) to significant digits; "-" where there is nothing, "diverges" where some value is beyond 1e6."""
    if values is None or len(values) == 0 or np.isnan(values).any():
        return "-"
    if not np.isfinite(values).all() or np.max(np.abs(values)) > 1e6:
        return "diverges"
    mean, spread = mean_and_error(values)
    return f"{mean:.{digits}g}" + (f" ({spread:.1g})" if np.isfinite(spread) else "")


def table(first: str, rows: Mapping[str, Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Markdown: one line a row; cells are text already, or lists of values over seeds."""
    lines = ["| " + " | ".join([first, *columns]) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, row in rows.items():
        cells = (row.get(column) for column in columns)
        lines.append("| " + " | ".join([name, *(c if isinstance(c, str) else number(c) for c in cells)]) + " |")
    return "\n".join(lines)


def by_seed(cells: Mapping[str, Mapping[str, float | None]]) -> dict[str, dict[str, list[float]]]:
    """Cells called "<name> seed <s>" put together: name -> method -> values over seeds (None in JSON is NaN)."""
    rows: dict[str, dict[str, list[float]]] = {}
    for key, run in cells.items():
        row = rows.setdefault(key.rpartition(" seed ")[0], {})
        for method, value in run.items():
            row.setdefault(method, []).append(np.nan if value is None else value)
    return rows


def pictures() -> Any:
    """pyplot without a window."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def save(figure: Any, path: Path) -> Path:
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    pictures().close(figure)
    return path


def lines(
    axis: Any,
    at: Sequence[float],
    rows: Iterable[Mapping[str, Sequence[float] | str]],
    methods: Iterable[str],
    **style: Any,
) -> None:
    """Means with bars of one standard error, one line a method; values over seeds, or what a table shows of them."""
    rows = list(rows)
    for name in methods:
        values = (row[name] for row in rows)
        middle, spread = np.array([read_number(v) if isinstance(v, str) else mean_and_error(v) for v in values]).T
        axis.errorbar(at, middle, np.nan_to_num(spread), marker="o", markersize=3, capsize=2, label=name, **style)
