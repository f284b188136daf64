"""Two ways to make inputs for a target: seeded mutations in plain Python, and atheris with the same mutators."""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from fuzz.oracle import SECONDS, Finding, Target, judge, signature

KEPT = 400  # inputs to mutate further


class Log:
    """Counts of outcomes, and one input for every kind of finding."""

    def __init__(self, target: Target, findings: Path, report: Path) -> None:
        self.target, self.folder, self.report, self.reported = target, findings, report, 0.0
        self.counts: Counter[str] = Counter()
        self.known: set[str] = set()
        self.watched = float("-inf")

    def run(self, data: bytes, place: Path, slack: float) -> str:
        """The outcome of one input; a finding is kept and the search goes on."""
        self.counts["inputs"] += 1
        (place / "input").write_bytes(data)  # found there by the parent after a crash
        self._watch(slack)
        try:
            outcome = judge(self.target, data, place, slack=slack)
        except Finding as finding:
            outcome = "finding"
            self._keep(finding, data)
        self.counts[outcome] += 1
        if time.monotonic() > self.reported + 1:
            self.tell()
        return outcome

    def tell(self) -> None:
        """Counts for the parent: neither a crash nor libFuzzer gives a last chance to."""
        self.reported = time.monotonic()
        self.report.write_text(json.dumps(self.counts | {"kinds of findings": len(self.known)}))

    def _watch(self, slack: float) -> None:
        """Ends the process where it hangs inside compiled code; set now and then only, for it starts a thread."""
        if time.monotonic() > self.watched + 10:
            self.watched = time.monotonic()
            faulthandler.dump_traceback_later(20 * SECONDS * slack, exit=True)

    def _keep(self, finding: Finding, data: bytes) -> None:
        kind = signature(finding)
        if kind in self.known:
            return
        self.known.add(kind)
        name = f"{self.target.name}-{hashlib.sha256(kind.encode()).hexdigest()[:10]}"
        (self.folder / name).write_bytes(data)
        cause = finding.__cause__ or finding
        told = "".join(traceback.format_exception(cause))
        (self.folder / f"{name}.txt").write_text(
            f"{self.target.name}: {finding}\n{kind}\n\n{told}", encoding="utf-8", errors="replace"
        )
        print(f"FINDING {self.target.name}: {finding}\n        {kind}", file=sys.stderr, flush=True)


def seeded(target: Target, log: Log, place: Path, *, seconds: float, inputs: float, seed: int, slack: float) -> None:
    """Mutations of the seeds and of what led to a new outcome, until the time or the number of inputs is used up."""
    rng, seeds = Random(f"{seed} {target.name}"), target.seeds()
    kept, seen, end = list(seeds), set[int](), time.monotonic() + seconds
    for data in seeds:
        log.run(data, place, slack)
    while time.monotonic() < end and log.counts["inputs"] < inputs:
        data = target.mutate(rng.choice(kept if rng.random() < 0.5 else seeds), rng, kept)
        if log.run(data, place, slack) == "read" and len(kept) < KEPT and len(data) not in seen:
            seen.add(len(data))
            kept.append(data)


def with_atheris(
    target: Target, log: Log, place: Path, *, seconds: float, seed: int, slack: float, corpus: Path
) -> None:
    """libFuzzer's search by coverage; it ends the process."""
    import atheris

    seeds = target.seeds()
    corpus = corpus / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for k, data in enumerate(seeds):
        (corpus / f"seed{k}").write_bytes(data)

    def one(data: bytes) -> None:
        log.run(data, place, slack)

    def custom(data: bytes, max_size: int, seed: int) -> bytes:
        rng = Random(seed)
        made = atheris.Mutate(data, max_size) if rng.random() < 0.1 else target.mutate(data, rng, seeds)
        return made if len(made) <= max_size else data

    options = [
        f"-max_total_time={max(1, round(seconds))}",
        f"-seed={seed + 1}",
        f"-max_len={max(map(len, seeds)) * 4 + 4096}",
        "-rss_limit_mb=4096",
    ]
    options += [f"-timeout={int(20 * SECONDS * slack)}", f"-artifact_prefix={log.folder}/{target.name}-"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one, custom_mutator=custom)
    atheris.Fuzz()


def in_child(target: Target, findings: Path, act: Callable[[Log, Path], None]) -> dict[str, int]:
    """Runs it in a forked process, so that a crash ends one target and is seen; returns the counts."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a disk would be most of the time
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        place = Path(folder)
        log = Log(target, findings, place / "counts.json")
        child = os.fork()
        if child == 0:
            os._exit(_guarded(act, log, place))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        counts: dict[str, int] = json.loads(log.report.read_text()) if log.report.exists() else {}
        if status:
            counts["ended with"] = status
            if (place / "input").exists():
                shutil.copy(place / "input", findings / f"{target.name}-last")
    return counts


def _guarded(act: Callable[[Log, Path], None], log: Log, place: Path) -> int:
    try:
        act(log, place)
    except BaseException:
        traceback.print_exc()
        return 70
    log.tell()
    sys.stdout.flush()
    return 0
