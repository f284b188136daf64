"""Tables of docs/measured: the records that commands write, and the pages that are made of them.

    python -m bench.tools.records run NAME...   runs the commands of bench/tools/records.toml: what they print is the record
    python -m bench.tools.records write         puts every record into its place on the pages
    python -m bench.tools.records check         exit status 1, and the names, where a page is not what its records give

A record is a JSON file in docs/measured/records: the table, the command that made it, commit and date, how often it was run, and a hash of the
code that was measured. A page has a place for it, `<!-- table NAME -->` to `<!-- /table -->`; a figure within a sentence has
`<!-- figure NAME KEY -->` to `<!-- / -->`, which `write` never leaves at the
beginning of a line. Where the code has changed since, the page says so below its title. A NAME of bench/tools/views.toml is a table that is made of rows of
several records: docs/user quotes no figure but in such tables.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "docs" / "measured" / "records"
PAGES = ("docs/measured/*.md", "docs/user/*.md", "docs/index.md", "README.md")

# Input, files and the machine: tests hold these to the same answers, so a change there makes no figure old.
COMMON = {"observed", "persistence", "plotting", "cli", "comparison", "distributed", "datasets"}
COMMON |= {"_config", "_threads", "_log", "_state", "_lock", "_typing", "_core", "_linalg"}
KERNELS = {  # folders of cpp/lib and cpp/kernels that a family calls
    "karma": ("gram", "primal", "dual"),
    "kernels": ("gram",),
    "lowrank": ("rls", "sums"),
    "active": ("sums",),
    "completion": ("meg", "pool"),
}

# -- the code that is measured ------------------------------------------------------------------------------------------


@cache  # many records reach the same modules
def bare(source: str) -> str:
    """Python source without comments, docstrings and empty lines: the same text on every version of Python."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


@cache
def imported(source: str) -> frozenset[tuple[str, str]]:
    """(module, name) of everything that is imported from lacunar."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    return frozenset(
        (n.module, a.name) for n in nodes if n.module and n.module.split(".")[0] == "lacunar" for a in n.names
    )


@cache
def defined_in(module: str, name: str) -> str:
    """The module that defines a name which others hand on."""
    item = getattr(importlib.import_module(module), name, None)
    if item is None or isinstance(item, type(sys)):
        return f"{module}.{name}"
    found = getattr(item, "__module__", module)
    return found if isinstance(found, str) and found.startswith("lacunar") else module


def library(sources: Iterable[str]) -> dict[str, str]:
    """Bare source of the modules of lacunar that these sources reach, by path, and of the kernels of their families."""
    reached: dict[str, str] = {}
    names: set[tuple[str, str]] = set().union(*(imported(source) for source in sources))
    while names:
        module = defined_in(*names.pop())
        family = module.split(".")[1] if "." in module else ""
        path = ROOT / "python" / Path(*module.split(".")).with_suffix(".py")
        if not path.is_file() or family in COMMON or str(path.relative_to(ROOT)) in reached:
            continue
        source = path.read_text(encoding="utf-8")
        reached[str(path.relative_to(ROOT))] = bare(source)
        names |= imported(source)
        for kernel in KERNELS.get(family, ()):
            reached |= {str(p.relative_to(ROOT)): kernel_text(p) for p in sorted((ROOT / "cpp").glob(f"*/{kernel}/*"))}
    return reached


@cache
def kernel_text(path: Path) -> str:
    """C++ without comments and spaces."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
    return re.sub(r"\s+", " ", text)


def digest(parts: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def code_of(computes: list[str]) -> str:
    """Hash of what a record was computed by: "bench/NAME.py" is a script, "bench.papers.NAME:FUNCTION" a function."""
    parts: dict[str, str] = {}
    for item in computes:
        if ":" in item:
            from bench.papers._run import sources

            module, function = item.split(":")
            parts |= sources(getattr(importlib.import_module(module), function))
        else:
            source = (ROOT / item).read_text(encoding="utf-8")
            parts |= {item: bare(source)} | library([source])
    return digest(parts)


# -- records ------------------------------------------------------------------------------------------------------------


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def commit() -> str:
    """Short name of the commit; `+` where the library or bench differs from it."""
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "python", "cpp", "src", "bench")
    return git("rev-parse", "--short=7", "HEAD") + ("+" if changed else "")


def save(name: str, table: str, *, command: str, computes: list[str], repeats: str, **more: Any) -> Path:
    """Write a record. `repeats` says seeds or repeats and what the spread is; `figures` are {key: text} for sentences."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    record = {
        "command": command,
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "repeats": repeats,
        "computes": computes,
        "code": code_of(computes),
        "table": table.strip().splitlines(),
        **more,
    }
    return write_record(name, record)


def write_record(name: str, record: dict[str, Any]) -> Path:
    path = RECORDS / f"{name}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def listed() -> dict[str, dict[str, str]]:
    """The records that a command's output is: name -> command, repeats; `lines` is an expression for the lines to show, `computes` a source."""
    return tomllib.loads((ROOT / "bench" / "tools" / "records.toml").read_text(encoding="utf-8"))


def shown(output: str, lines: str) -> str:
    """The Markdown tables that a command printed, or else its lines as they are."""
    tables = [line if line.startswith("|") else "" for line in output.splitlines()]
    if any(tables):
        return re.sub(r"\n\n+", "\n\n", "\n".join(tables)).strip()
    text = "\n".join(line.rstrip() for line in output.splitlines() if re.search(lines, line))
    return "```text\n" + text.strip("\n") + "\n```"


def measure(name: str) -> Path:
    """Run the command of a record: what it prints, it shows as it comes."""
    wanted = listed()[name]
    words = shlex.split(wanted["command"])
    settings = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word) and not word.endswith("=..."))
    program, *words = [word for word in words if not re.match(r"[A-Z_]+=", word)]
    words = words if program == "python" else ["-m", program, *words]
    output = []
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", *words],
        cwd=ROOT,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            output.append(line)
    if process.returncode:
        raise SystemExit(f"{wanted['command']}: exit status {process.returncode}; {name} is left as it was.")
    source = wanted.get("computes") or next(word for word in words if word.endswith(".py"))
    table = shown("".join(output), wanted.get("lines", ""))
    return save(name, table, command=wanted["command"], computes=[source], repeats=wanted["repeats"])


def views() -> dict[str, dict[str, Any]]:
    """The tables that are made of other tables' rows, by name."""
    path = ROOT / "bench" / "tools" / "views.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def records_of(name: str) -> list[str]:
    """The records that a table is made of: itself, or those of a view."""
    return list(dict.fromkeys(row[1] for row in views()[name]["rows"])) if name in views() else [name]


def read(name: str) -> dict[str, Any]:
    path = RECORDS / f"{name}.json"
    if not path.is_file():
        raise SystemExit(
            f"a page asks for the record {name}, and {path} is not there. Run its command, or take the place out."
        )
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


# -- pages --------------------------------------------------------------------------------------------------------------

TABLE = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- /table -->)", re.S)
FIGURE = re.compile(r"(<!-- figure (\S+) (.+?) -->).*?(<!-- / -->)", re.S)
AGE = re.compile(r"\n<!-- age -->\n.*?<!-- /age -->\n", re.S)
HEAD = re.compile(r"^\|[ :|-]*-[ :|-]*\|$", re.M)  # the line below the head of a table
TORN = re.compile(r"(?<=[^\n])\n *(?=<!-- figure )")  # a line that begins with a comment is a block of HTML to Markdown
BEGINS = re.compile(r"^[ >*+-]*<!-- figure .*", re.M)
FIXED = "<!-- not measured -->\n"  # above a table of definitions or bounds


def duel(view: dict[str, Any], words: str, name: str, row: str) -> str:
    """A line of a view: what is compared, our figure, and the least of the rivals'."""
    head, figures = (lines := grid(read(name)["table"]))[0], {line[0]: line for line in lines[1:]}
    if row not in figures:
        raise SystemExit(f"a view asks for the row {row!r} of the record {name}, which has {', '.join(figures)}.")
    at = dict(zip(head[1:], figures[row][1:], strict=True))
    rivals = {
        rival: float(at[rival])
        for rival in at
        if rival not in (view["ours"], *view["without"], "") and at[rival] != "-"
    }
    best = [rival for rival, figure in rivals.items() if figure == min(rivals.values())]
    measure = f"[{head[0]}]({view['links'][name]})"
    return f"| {words} | {measure} | `{row}` | {at[view['ours']]} | {', '.join(best)} | {at[best[0]]} |"


def view_of(name: str) -> str:
    """The learner beside the best of its rivals, a line a row of a record, and where the figures come from."""
    view = views()[name]
    head = f"| {view['first']} | figure | of | lacunar | best rival | its figure |\n|---|---|---|---|---|---|"
    made = {f"commit `{(r := read(n))['commit']}`, {r['date']}" for n in records_of(name)}
    return "\n".join(
        [
            "",
            head,
            *(duel(view, *row) for row in view["rows"]),
            "",
            f"From the tables linked, {'; '.join(sorted(made))}.",
            "",
            "",
        ]
    )


def table_of(name: str) -> str:
    if name in views():
        return view_of(name)
    record = read(name)
    source = f"`{record['command']}`, commit `{record['commit']}`, {record['date']}; {record['repeats']}."
    return "\n" + "\n".join(record["table"]) + f"\n\n{source}\n\n"


def grid(table: list[str]) -> list[list[str]]:
    """Head and rows of a Markdown table, without what makes cells bold or code."""
    lines = [[cell.strip(" *`") for cell in line.strip("|").split("|")] for line in table if line.startswith("|")]
    return lines[:1] + lines[2:]


def cells(table: list[str]) -> dict[str, str]:
    """Cells of a Markdown table by "ROW COLUMN"; ROW is as many first cells as tell rows apart."""
    head, *rows = grid(table) or [[]]
    many = next((k for k in range(1, len(head)) if len({tuple(row[:k]) for row in rows}) == len(rows)), 1)
    return {f"{', '.join(row[:many])} {head[k]}": row[k] for row in rows for k in range(many, len(row))}


def figure_of(name: str, key: str) -> str:
    """What a sentence quotes: one of the record's own figures, or a cell of its table."""
    record = read(name)
    figures = {**cells(record["table"]), **record.get("figures", {})}
    if key not in figures:
        raise SystemExit(f"a page asks for the figure {key!r} of the record {name}, which has {', '.join(figures)}.")
    return str(figures[key])


def old(name: str) -> bool:
    record = read(name)
    return bool(record["code"] != code_of(record["computes"]))


def age(text: str, measured: bool) -> str:
    """What stands below the title: the records that are older than their code, and on a page of measurements the tables that no command wrote."""
    places = [found[1] for found in TABLE.findall(text)] + [found[1] for found in FIGURE.findall(text)]
    names = dict.fromkeys(name for place in places for name in records_of(place))
    older = [f"`{name}` ({read(name)['commit']})" for name in names if old(name)]
    rest = TABLE.sub("", text)
    copied = len(HEAD.findall(rest)) - rest.count(FIXED) if measured else 0
    lines = []
    if older:
        lines.append("Older than the code that they measure: " + ", ".join(older) + ".")
    if copied > 0:
        lines.append(f"Not compared with today's code: {copied} tables without a command below them.")
    return "\n<!-- age -->\n" + "".join(f"> {line}\n" for line in lines) + "<!-- /age -->\n" if lines else ""


def page(path: Path) -> str:
    """A page with its records put into their places."""
    text = AGE.sub("", path.read_text(encoding="utf-8"))
    text = TABLE.sub(lambda m: m[1] + table_of(m[2]) + m[3], text)
    text = TORN.sub(" ", FIGURE.sub(lambda m: m[1] + figure_of(m[2], m[3]) + m[4], text))
    if begins := BEGINS.search(text):
        raise SystemExit(f"{path}: a paragraph begins with a figure, and would be shown as it is: {begins[0][:60]}")
    title, line, rest = text.partition("\n")
    return title + line + age(text, path.parent.name == "measured") + rest if title.startswith("# ") else text


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tools.records", description=__doc__.split("\n\n")[0])
    parser.add_argument("verb", choices=["run", "write", "check"])
    parser.add_argument("name", nargs="*", help="of bench/tools/records.toml, for `run`")
    options = parser.parse_args(arguments)
    verb, wrong = options.verb, []
    if verb == "run":
        if unknown := set(options.name) - set(listed()):
            parser.error(f"{', '.join(sorted(unknown))}: not among {', '.join(listed())}")
        for name in options.name:
            print(f"wrote {measure(name).relative_to(ROOT)}", flush=True)
        return 0
    for path in (path for pattern in PAGES for path in sorted(ROOT.glob(pattern))):
        new = page(path)
        if new != path.read_text(encoding="utf-8") and verb == "write":
            path.write_text(new, encoding="utf-8")
        elif new != path.read_text(encoding="utf-8"):
            wrong.append(str(path.relative_to(ROOT)))
    if wrong:
        print(
            f"not what their records give: {', '.join(wrong)}. Run `python -m bench.tools.records write`.",
            file=sys.stderr,
        )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
