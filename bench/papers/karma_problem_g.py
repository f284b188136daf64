"""Problem G of "Classification with Low Rank and Missing Data" on the matrix (1): the completion of least rank leaves a label open.

Rows of three kinds, [1, *, 1, *], [*, -1, *, -1] and [1, -1, 1, -1] with labels 1, -1 and 1, each 20 times, and once more without a label. What mc-1
and mc-b, KARMA as printed and geom say of these three.
"""

from __future__ import annotations

import numpy as np
from bench.papers._report import Report, Verdict, table, word
from bench.papers._run import Run

from lacunar.papers.karma import (
    GeomClassifier,
    MatrixCompletionClassifier,
    PrintedKarmaClassifier,
    make_rank_conflict,
)

TITLE = "KARMA, Problem G"
COPIES = 20
KINDS = {"[1, *, 1, *]": 1, "[*, -1, *, -1]": -1, "[1, -1, 1, -1]": 1}  # and their labels
COMPLETING = {"mc-1": "column", "mc-b": "bias"}
DIRECT = {
    "KARMA as printed, gamma = 1": lambda: PrintedKarmaClassifier(1, standardize=False),
    "KARMA as printed, gamma = 2": lambda: PrintedKarmaClassifier(2, standardize=False),
    "geom": lambda: GeomClassifier(C=10, standardize=False),
}


def cell(method: str, copies: int) -> list[int]:
    """Labels of one row of each kind that had none."""
    data = make_rank_conflict(copies)
    X, y = data.data[:-1], data.target[:-1]
    rows = X[::copies]
    if method in DIRECT:
        order = np.arange(3 * copies).reshape(3, copies).T.ravel()  # kinds in turn, as Algorithm 1 takes rows in order
        return [int(label) for label in DIRECT[method]().fit(X[order], y[order].astype(int)).predict(rows)]  # type: ignore[attr-defined]  # both classes predict
    model = MatrixCompletionClassifier(COMPLETING[method], lam=1.0, mu=1e-3, standardize=False)
    return [int(label) for label in model.fit(np.vstack([X, rows]), np.append(y, [np.nan] * 3)).transduction_[-3:]]


def least_rank() -> tuple[bool, set[float]]:
    """Whether completions of rank two keep what is known, and the labels that they give the last row."""
    data = make_rank_conflict()
    known = np.column_stack([data.data, data.target])
    kept = all(
        np.linalg.matrix_rank(Z) == 2 and (Z[~np.isnan(known)] == known[~np.isnan(known)]).all()
        for Z in data.completions
    )
    return kept, {float(Z[-1, -1]) for Z in data.completions}


def run(run: Run) -> Report:
    methods = [*COMPLETING, *DIRECT]
    found = run.cells(cell, {m: (m, COPIES) for m in methods})
    rows = {"label of its kind": {k: str(v) for k, v in KINDS.items()}}
    rows |= {m: dict(zip(KINDS, map(str, found[m]), strict=True)) for m in methods}
    kept, labels = least_rank()
    right = [m for m in DIRECT if found[m] == list(KINDS.values())]
    wrong = [m for m in COMPLETING if found[m] != list(KINDS.values())]
    return Report(
        TITLE,
        table("label of a row without one", rows, list(KINDS)),
        f"one matrix, each kind {COPIES} times with its label; nothing is drawn",
        [
            Verdict(
                "completions of rank two are optimal for Problem G and give the test row different labels",
                "Section 1, equation (1)",
                "labels 1 and -1",
                f"labels {', '.join(f'{x:g}' for x in sorted(labels))}, all of rank two; rank one is impossible",
                word(kept and labels == {-1.0, 1.0}),
                "completions of rank two with either label keep every known entry",
            ),
            Verdict(
                "completion is still ill-posed with abundant data",
                "Section 1",
                "-",
                f"{len(wrong)} of {len(COMPLETING)} methods that complete mislabel a row that repeats {COPIES} labelled ones",
                word(len(wrong) == len(COMPLETING)),
                "every method that completes mislabels a kind",
            ),
            Verdict(
                "the classification task is easy",
                "Section 1",
                "-",
                f"{len(right)} of {len(DIRECT)} direct methods label all kinds rightly",
                word(len(right) == len(DIRECT)),
                "every direct method labels all kinds rightly",
            ),
        ],
        {"direct methods label all kinds rightly": len(right) == len(DIRECT)},
    )
