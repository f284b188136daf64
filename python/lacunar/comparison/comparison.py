"""What a comparison of learners on the same folds found, and what its scores allow to conclude."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lacunar.comparison.cells import UserError, as_keywords, counted, listed, pandas_module, visible, with_keywords
from lacunar.comparison.learners import Learner
from lacunar.comparison.metrics import Metric
from lacunar.comparison.model import TableModel
from lacunar.comparison.problem import Problem
from lacunar.comparison.rival import Rival, Run, Split

if TYPE_CHECKING:
    import pandas as pd

SIGNIFICANCE = 0.05
FEW_SPLITS = 5  # below which intervals say little


@dataclass(frozen=True)
class Score:
    """A learner's line in the table. Seconds are means over splits; `mark` is "best", "tied",
    "open" (too few splits) or "".
    """

    learner: Learner
    mean: float = np.nan
    difference: float = np.nan  # from the best, above 0 is worse
    half_width: float = np.nan  # of the interval of the difference
    second: float = np.nan
    fit_seconds: float = np.nan
    predict_seconds: float = np.nan
    splits: int = 0
    unconverged: int = 0
    failure: str = ""
    cut: str = ""
    mark: str = ""

    @property
    def ended(self) -> bool:
        """Whether the learner neither failed nor was left out."""
        return not self.failure and not self.cut


@dataclass
class Comparison:
    """All runs of one comparison, finished or not; in a notebook it shows as its table.

    Attributes
    ----------
    table : DataFrame
        Learners, best first: score, difference from the best and half the width of its 95 %
        interval, a second score, seconds.
    best_model_ : TableModel
        The best learner fitted to all rows, on first use. Its `predict` takes frames.
    warnings : list of str
        What an analyst would look at in the data before believing the table.
    caveats : list of str
        What was shortened, left out or not reached, and why.
    """

    problem: Problem
    rivals: list[Rival]
    splits: list[Split]
    folds: int
    repeats: int
    stratified: bool
    seed: int
    metric: Metric
    second: Metric
    time_limit: float | None = None
    interrupted: bool = False
    stopped: bool = False  # by the time limit, before all splits were done
    in_python: bool = False  # sentences name keywords of `lacunar.compare`, not options of the shell

    @property
    def learners(self) -> list[Learner]:
        """The competitors, by number."""
        return [rival.learner for rival in self.rivals]

    @property
    def runs(self) -> list[Run]:
        """All fits that came to an end, learner by learner."""
        return [run for rival in self.rivals for run in rival.runs]

    @property
    def cuts(self) -> dict[int, str]:
        """Learners that were left out for the sake of time, and why."""
        return {k: rival.cut for k, rival in enumerate(self.rivals) if rival.cut}

    @property
    def enough(self) -> dict[int, int]:
        """Time limits that would keep learners of `cuts`, as far as can be told."""
        return {k: rival.enough for k, rival in enumerate(self.rivals) if rival.enough is not None}

    @property
    def n_rows(self) -> int:
        """Rows that learners are compared on: all, or of a large table a sample."""
        return max(sum(map(len, split)) for split in self.splits)

    def undecided(self) -> str:
        """Why there is no best learner, in a sentence with the remedy; "" where there is one. A
        constant alone is none.
        """
        ended = [score.learner for score in self.scores() if score.ended]
        if not ended:
            return "No learner finished, so there is nothing to compare."
        if not all(learner.baseline for learner in ended) or all(learner.baseline for learner in self.learners):
            return ""
        remedy = "Raise --time-limit, or look at the remarks in the table."
        if self.enough:
            k, seconds = min(self.enough.items(), key=lambda item: item[1])
            remedy = f"--time-limit {seconds} may let {self.learners[k].name} finish."
        names = listed([learner.name for learner in ended])
        return f"Nothing finished but {names}, which predicts the same for every row, so there is nothing to compare. {remedy}"

    def split_scores(self, k: int, metric: Metric | None = None) -> dict[int, float]:
        """Score of learner k on every split it finished."""
        return self.rivals[k].scores(metric or self.metric, self.problem)

    def scores(self) -> list[Score]:
        """Best first; then those that were cut, and failed learners last."""
        table = {k: self.split_scores(k) for k, rival in enumerate(self.rivals) if rival.done and not rival.failure}
        mute = [k for k in table if np.isnan([*table[k].values()]).all()]
        scored = {k: scores for k, scores in table.items() if k not in mute}
        whole = {k: scores for k, scores in scored.items() if not self.rivals[k].cut} or scored
        common = set.intersection(*map(set, whole.values())) if whole else set()
        common = common or set().union(*whole.values())
        values = {k: np.array([scores[s] for s in sorted(common) if s in scores]) for k, scores in whole.items()}
        order = sorted(values, key=lambda k: self.metric.sign * np.nanmean(values[k]))
        silent = f"gives no probabilities, which {self.metric.name} asks for"
        return [
            *(self._line(k, values[k], values[order[0]], k == order[0]) for k in order),
            *(self._cut_line(k, scored.get(k, {})) for k in self.cuts if k not in whole),
            *(Score(self.learners[k], cut=silent) for k in mute),
            *(Score(rival.learner, failure=rival.failure) for rival in self.rivals if rival.failure),
        ]

    def _cut_line(self, k: int, scores: dict[int, float]) -> Score:
        mean = float(np.mean([*scores.values()])) if scores else np.nan
        return Score(self.learners[k], mean, splits=len(scores), cut=self.rivals[k].cut)

    def _line(self, k: int, values: NDArray[np.float64], best: NDArray[np.float64], first: bool) -> Score:
        runs, difference, half, mark = self.rivals[k].runs, np.nan, np.nan, "best" if first else ""
        if not first and len(values) == len(best):
            worse = self.metric.sign * (values - best)
            difference, half = float(worse.mean()), half_width(worse, test_share=1 / self.folds)
            if not half < difference:  # also where the interval is not known
                mark = "tied" if len(values) >= FEW_SPLITS else "open"
        second = [score for score in self.split_scores(k, self.second).values() if np.isfinite(score)]
        return Score(
            self.learners[k], float(values.mean()), difference, half, float(np.mean(second)) if second else np.nan,
            float(np.mean([run.fit_seconds for run in runs])), float(np.mean([run.predict_seconds for run in runs])),
            len(values), sum(run.unconverged for run in runs), mark=mark,
        )  # fmt: skip

    def mark_of(self, score: Score) -> str:
        """Why a learner was cut, or how it compares with the best: the last column of the table at
        the shell and in the report.
        """
        best = "lowest" if self.metric.lower else "highest"
        best = "nothing to compare with" if self.undecided() else best
        marks = {"best": best, "tied": "not distinguishable", "open": "too few splits to tell"}
        return self._in_words(score.cut or marks.get(score.mark, ""))

    def _in_words(self, text: str) -> str:
        return as_keywords(text) if self.in_python else text

    @property
    def best(self) -> int:
        """Number of the best learner. Raises UserError where none finished."""
        first = next(iter(self.scores()), None)
        if first is None or first.failure or np.isnan(first.mean):
            raise UserError(
                "no learner finished, so there is no best one. Raise --time-limit, or look at the failures in the table."
            )
        return self.learners.index(first.learner)

    @cached_property
    def best_model_(self) -> TableModel:
        """The best learner fitted to all rows. Raises UserError where nothing but a constant finished."""
        with with_keywords() if self.in_python else nullcontext():
            why = self.undecided()
            if why:
                raise UserError(f"there is no best learner: {why[0].lower()}{why[1:]}")
            return TableModel.of(self.learners[self.best], self.problem, self.seed)

    @property
    def warnings(self) -> list[str]:
        """What was read and decided that an analyst would look at, each with its remedy."""
        notes = [note for note in self.problem.notes if note.startswith("Warning: ")]
        return [self._in_words(note.removeprefix("Warning: ")) for note in notes]

    @property
    def caveats(self) -> list[str]:
        """What was shortened, left out or not reached, and why: what a reader must know before
        believing the table.
        """
        scores = self.scores()
        loose = [score for score in scores if score.unconverged]
        lines = [
            *self._sampled(), *self._ended_early(scores), *self._left_out(),
            *(line for rival in self.rivals for line in rival.time_limit_reached()),
            *(f"{score.learner.name} did not converge in {counted(score.unconverged, 'fit')}." for score in loose),
            *self._about_classes(scores),
        ]  # fmt: skip
        return [self._in_words(line) for line in lines]

    def _sampled(self) -> list[str]:
        n = len(self.problem.y)
        if self.n_rows == n:
            return []
        return [
            f"Compared on {self.n_rows:,} of {n:,} rows, drawn at random. --max-rows takes more, and 0 all, which asks for a higher "
            "--time-limit. A model that is kept is fitted to all rows."
        ]

    def _ended_early(self, scores: list[Score]) -> list[str]:
        done, total = max((score.splits for score in scores if not score.cut), default=0), len(self.splits)
        if self.interrupted:
            return [f"Interrupted: scores are from the {done} of {total} splits that all learners finished."]
        if not self.stopped:
            return []
        return [
            f"Stopped after {done} of {total} splits by the time limit of {self.time_limit:g} s. --time-limit allows more, "
            "--folds and --repeats ask for less."
        ]

    def _left_out(self) -> list[str]:
        """Learners that were cut, and those of them that were ahead."""
        if not self.cuts:
            return []
        names = [self.learners[k].name for k in self.cuts]
        lines = [f"Left out: {listed(names)}. The table says why."]
        ahead = [] if self.undecided() else [self.learners[k].name for k in self.cuts if self._is_ahead(k)]
        if ahead:
            best = self.learners[self.best].name
            lines.append(
                f"{listed(ahead)} did better than {best} on the same rows before time ran out. Raise --time-limit."
            )
        return lines

    def _is_ahead(self, k: int) -> bool:
        """Whether a learner that was cut was better than the best on the splits that both finished."""
        mine, best = self.split_scores(k), self.split_scores(self.best)
        return self.metric.sign * sum(mine[s] - best[s] for s in mine.keys() & best) < 0

    def _about_classes(self, scores: list[Score]) -> list[str]:
        if self.problem.task != "classification":
            return []
        rare = "The rarest class has fewer rows than there are folds, so the folds are not stratified."
        by_class = self.stratified or self.problem.time is not None
        return [*([] if by_class else [rare]), *self._never_predicted(scores)]

    def _never_predicted(self, scores: list[Score]) -> list[str]:
        if not scores or not scores[0].ended or scores[0].learner.baseline:
            return []
        predicted = set(self.rivals[self.best].held_out(self.problem)[1].tolist())
        never = [label for label in self.problem.classes if label not in predicted]
        if not never:
            return []
        return [
            f"{scores[0].learner.name} never predicts {listed(map(repr, never))}. Compare with --metric balanced-error or --metric log-loss, "
            "which mind rare classes, or bring more rows of them."
        ]  # fmt: skip

    @property
    def table(self) -> pd.DataFrame:
        """The scores as a frame, best first."""
        return pandas_module().DataFrame(
            [
                {
                    "learner": s.learner.name, self.metric.name: s.mean, "worse by": s.difference, "±": s.half_width,
                    self.second.name: s.second, "fit seconds": s.fit_seconds, "predict seconds": s.predict_seconds, "splits": s.splits,
                    "remark": s.failure or self.mark_of(s),
                }
                for s in self.scores()
            ]
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """The table and what to know about it as plain values, None where there is none: what
        `lacunar compare --json` prints.
        """
        rows = [[None if cell != cell else cell for cell in row] for row in self.table.to_dict("split")["data"]]
        return {
            "source": self.problem.source,
            "target": self.problem.target,
            "task": self.problem.task,
            "rows": self.n_rows,
            "metric": self.metric.name,
            "best": None if self.undecided() else self.learners[self.best].name,
            "learners": [dict(zip(self.table.columns, row, strict=True)) for row in rows],
            "warnings": self.warnings,
            "caveats": self.caveats,
        }

    def _repr_html_(self) -> str:
        said = [("Look at:", text) for text in self.warnings] + [("Note:", text) for text in self.caveats]
        lines = "".join(f"<p><b>{head}</b> {escape(visible(text))}</p>" for head, text in said)
        shown = self.table.map(lambda cell: visible(cell) if isinstance(cell, str) else cell)
        with pandas_module().option_context("display.max_colwidth", None):  # or remarks are cut in the middle
            return f"{lines}{shown.to_html(index=False, na_rep='', float_format='%.4g', escape=True)}"

    def __repr__(self) -> str:
        head = f"Comparison of {counted(len(self.learners), 'learner')} on {self.problem.target}"
        return "\n".join([head, self.table.to_string(index=False), *map(visible, self.caveats)])


def half_width(differences: NDArray[np.float64], test_share: float) -> float:
    """Half the 95 % interval of a mean difference over J splits: t times the square root of (1/J + n_test/n_train) var.

    The corrected variance of Nadeau and Bengio (2003): splits share training rows, so that 1/J alone is too small.
    """
    count = len(differences)
    if count < 2:
        return np.nan
    spread = np.sqrt((1 / count + test_share / (1 - test_share)) * differences.var(ddof=1))
    return float(stats.t.ppf(1 - SIGNIFICANCE / 2, count - 1) * spread)
