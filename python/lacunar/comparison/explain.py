"""What a report says beside scores: which columns matter, what being missing says, and how each class fares."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_fscore_support
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lacunar._random import generator
from lacunar.comparison.cells import cut, pandas_module
from lacunar.comparison.comparison import Comparison
from lacunar.learner.importance import permutation_importance

if TYPE_CHECKING:
    import pandas as pd

_REPEATS, _ROWS = 3, 150
_SECONDS = 6.0  # of the processor, after which no more columns are looked at
_REPORT_ROWS, _REPORT_COLUMNS = 400, 12
_CLASSES = 30  # of the table class by class: the commonest


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]  # threads of small predictions wait for one another longer than they work
def importance(comparison: Comparison) -> dict[str, Any]:
    """How much the loss of the best learner rises on held-out rows of the first split when a column's values, or its missing entries, change places.

    Columns "column", "value", "value_sd", "missing", "missing_sd", as `ImportanceDisplay` draws them: log loss where the learner gives
    probabilities, otherwise the error rate; the squared error in units of the target's variance. O(columns) predictions.
    """
    train, test = comparison.splits[0]
    rows = test[:_ROWS]
    row_losses, y = _fitted_losses(comparison, train), comparison.problem.y[rows]
    frame = comparison.problem.frame.iloc[rows].reset_index(drop=True)

    def losses(tables: Iterable[_ChangeableFrame]) -> list[float]:
        frames = [table.frame for table in tables]
        stacked = pandas_module().concat(frames, ignore_index=True)
        return list(row_losses(stacked, np.tile(y, len(frames))).reshape(len(frames), -1).mean(axis=1))

    names, rng = [str(name) for name in frame.columns], generator(comparison.seed)
    return permutation_importance(names, _ChangeableFrame(frame), losses, _REPEATS, rng, seconds=_SECONDS)


class _ChangeableFrame:
    """A frame, where entries that are to be shown are drawn out of their column."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def missing(self, column: int) -> NDArray[np.bool_]:
        return np.asarray(self.frame.iloc[:, column].isna())

    def _with_column(self, column: int, values: pd.Series[Any]) -> _ChangeableFrame:
        return _ChangeableFrame(self.frame.assign(**{str(self.frame.columns[column]): values}))

    def with_values(self, column: int, rows: NDArray[np.intp], sources: NDArray[np.intp]) -> _ChangeableFrame:
        values = self.frame.iloc[:, column].copy()
        values.iloc[rows] = values.iloc[sources].to_numpy()
        return self._with_column(column, values)

    def with_mask(self, column: int, shown: NDArray[np.intp], hidden: NDArray[np.intp], rng: Any) -> _ChangeableFrame:
        values = self.frame.iloc[:, column].copy()
        values.iloc[shown] = values.iloc[rng.choice(np.flatnonzero(values.notna()), len(shown))].to_numpy()
        return self._with_column(column, values.mask(np.isin(np.arange(len(values)), hidden)))


def _fitted_losses(
    comparison: Comparison, train: NDArray[np.intp]
) -> Callable[[pd.DataFrame, NDArray[Any]], NDArray[np.float64]]:
    """Losses of rows by the best learner, fitted to the training rows of a split."""
    problem, learner = comparison.problem, comparison.learners[comparison.best]
    rows = problem.frame.iloc if learner.frames else problem.X
    classes = np.array(problem.classes)
    spread = 1.0 if classes.size else float(np.var(problem.y)) or 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = learner.make(comparison.seed).fit(rows[train], problem.y[train])

    def losses(frame: pd.DataFrame, y: NDArray[Any]) -> NDArray[np.float64]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X = frame if learner.frames else np.asarray(problem.encoder.transform(frame))
            if not classes.size:
                return np.asarray((np.ravel(model.predict(X)) - y) ** 2 / spread)
            if not hasattr(model, "predict_proba"):
                return np.asarray(np.ravel(model.predict(X)) != y, dtype=np.float64)
            chances = np.asarray(model.predict_proba(X))
        place = np.searchsorted(model.classes_, y).clip(max=len(model.classes_) - 1)
        lost: NDArray[np.float64] = -np.log(
            np.clip(np.where(model.classes_[place] == y, chances[np.arange(len(y)), place], 0.0), 1e-6, None)
        )
        return lost

    return losses


def of_missing(comparison: Comparison) -> tuple[list[str], list[list[str]]] | None:
    """Heading and rows of a table on why entries are missing and what that says of the target; None where nothing is missing."""
    from lacunar.uncertainty import missingness_report

    problem = comparison.problem
    share = problem.frame.isna().mean()
    columns = share[(share > 0) & (share < 1)].sort_values(ascending=False).index[:_REPORT_COLUMNS]
    if not len(columns):
        return None
    rows = np.linspace(0, len(problem.y) - 1, min(len(problem.y), _REPORT_ROWS)).astype(int)
    y = problem.y[rows] if problem.task == "regression" or len(problem.classes) == 2 else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = missingness_report(problem.frame.iloc[rows][columns], y, deltas=(0.0,))
    except ValueError:
        return None
    shift = f"share of {cut(problem.classes[1], 16)} where missing" if problem.classes else "target where missing"
    heading = ["column", "missing", "foreseen by other columns (AUC)", *([shift] if y is not None else [])]
    lines = []
    for j, name in enumerate(columns):
        line = [str(name), f"{share[name]:.0%}", _with_p(report.auc[j], report.auc_p_value[j], "{:.2f}")]
        if report.target_shift is not None and report.target_p_value is not None:
            line.append(_with_p(report.target_shift[j], report.target_p_value[j], "{:+.2f} sd"))
        lines.append(line)
    return heading, lines


def _with_p(value: float, p: float, form: str) -> str:
    return "" if not np.isfinite(value) else form.format(value) + (" *" if p < 0.05 else "")


def of_classes(comparison: Comparison) -> tuple[list[str], list[list[str]]] | None:
    """Heading and rows: for every class how many rows it has, and how many of them and of the rows predicted so are right."""
    if comparison.problem.task != "classification":
        return None
    y, predicted, _ = comparison.held_out(comparison.best)
    by_rows = sorted(comparison.problem.classes, key=lambda label: -int(np.sum(comparison.problem.y == label)))
    classes = by_rows[:_CLASSES]
    precision, recall, _, _ = precision_recall_fscore_support(y, predicted, labels=classes, zero_division=np.nan)
    rows = [
        [label, f"{int(np.sum(comparison.problem.y == label)):,}", _share(recall[k]), _share(precision[k])]
        for k, label in enumerate(classes)
    ]  # fmt: skip
    return ["class", "rows", "found", "right where predicted"], rows


def _share(value: float) -> str:
    return "never predicted" if np.isnan(value) else f"{value:.0%}"
