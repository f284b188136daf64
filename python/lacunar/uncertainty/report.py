"""`MissingnessReport`, shown as text, in a notebook, or as a page."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lacunar._typing import Bools, Floats, Ints
from lacunar.observed.cells import counted, cut, listed
from lacunar.uncertainty import hypertext
from lacunar.uncertainty.foresight import Foresight

_COLUMNS, _PATTERNS, _NAMES = 50, 20, 6  # that a page shows; and columns that one pattern names

# How to read the two columns of a report.
READ_AUC = (
    "AUC: how well all other columns foresee which entries are missing (0.5: not at all; 1: fully). "
    "Gaps that other columns foresee are no reason against filling in from those columns. "
    "Gaps that depend on the missing value itself would be one, which no table can show."
)
READ_SHIFT = (
    "Excess: how much higher the target is where the entry is missing than a linear model of all columns expects, in "
    "standard deviations. Where it is not 0, the gap may say something of the target that the other columns do not, "
    "so keep a flag of it if you fill it in; or the other columns act on the target other than linearly."
)


@dataclass(frozen=True)
class MissingnessReport:
    """What `missingness_report` found.

    Attributes
    ----------
    statistic : float
        Little's d^2: squared distances of the means of patterns of missing entries from the mean of
        all, weighted by rows.
    df : int
        Its degrees of freedom under missing completely at random (MCAR).
    p_value : float
        Of d^2 as chi-square; small speaks against MCAR. NaN without degrees of freedom.
    n_patterns : int
    columns : ndarray of str of shape (d,)
    share : ndarray of shape (d,)
        Of entries missing.
    auc : ndarray of shape (d,)
        Out of fold, of a logistic regression of the mask of a column on all other columns and their
        masks. Above 1/2: what is seen tells what is missing, so that entries are not MCAR; this
        alone is no reason against filling in from the other columns. NaN with fewer than 10 missing
        or observed entries.
    auc_p_value : ndarray of shape (d,)
        Mann-Whitney, multiplied by Holm's factor for several columns.
    target_shift : ndarray of shape (d,) or None
        Mean of y less its prediction (`GaussianRegressor`, out of fold), where the entry is missing
        less where it is not, in standard deviations of y: what the absence says about y beyond what
        the row shows. Other than 0: entries are missing by their own values or by y, or columns act
        on y other than linearly.
    target_p_value : ndarray of shape (d,) or None
        Welch's t-test, with Holm's factor.
    deltas : ndarray of shape (k,)
        Ascending: how much larger missing values are supposed to be than expected from their rows,
        in conditional standard deviations.
    sensitivity : ndarray of shape (d, k) or None
        Root mean square change of the predictions of y if all missing entries of a column are
        larger by delta, in standard deviations of y.
    patterns : ndarray of bool of shape (k, d)
        Which entries are missing together, the commonest pattern first.
    pattern_rows : ndarray of int of shape (k,)
        Rows of each pattern.
    foresight : tuple of Foresight
        What single columns foresee, (column, by, sign, auc, p_value) each: entries of a column are
        missing where column `by` has high or low values, a level, or a gap. Significant ones (p <
        .05), the strongest three of a column.
    """

    statistic: float
    df: int
    p_value: float
    n_patterns: int
    columns: NDArray[np.str_]
    share: Floats
    auc: Floats
    auc_p_value: Floats
    target_shift: Floats | None
    target_p_value: Floats | None
    deltas: Floats
    sensitivity: Floats | None
    patterns: Bools
    pattern_rows: Ints
    foresight: tuple[Foresight, ...]

    def __str__(self) -> str:
        lines = [
            f"Little's test of MCAR: d2 = {self.statistic:.4g}, df = {self.df}, p = {self.p_value:.3g} "
            f"({counted(self.n_patterns, 'pattern')})",
            f"{'column':<20} missing   AUC (p)          "
            + ("excess (p)       change at +1 sd" if self.sensitivity is not None else ""),
        ]
        for j in np.flatnonzero(self.share > 0):
            line = f"{self.columns[j][:20]:<20} {self.share[j]:6.1%}   {self.auc[j]:.2f} ({self.auc_p_value[j]:.2g})"
            if self.sensitivity is not None and self.target_shift is not None and self.target_p_value is not None:
                change = self._change(int(j))
                line = (
                    f"{line:<47} {self.target_shift[j]:+.2f} ({self.target_p_value[j]:.2g})".ljust(66) + f"{change:.3f}"
                )
            lines.append(line)
        return "\n".join([*lines, READ_AUC, *([READ_SHIFT] if self.target_shift is not None else [])])

    def to_html(self) -> str:
        """The report as a page of HTML that needs nothing beside it.

        Returns
        -------
        page : str
            Of big tables it shows the columns with most missing entries and the commonest patterns,
            and says of how many.
        """
        return hypertext.whole_page("lacunar", "Missingness report", self._repr_html_(), self._size())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page of `to_html`; it appears whole or not at all.

        Parameters
        ----------
        path : path-like

        Raises
        ------
        OSError
            When the place cannot be written.
        """
        hypertext.write_whole(path, self.to_html())

    def _repr_html_(self) -> str:
        sections = [self._by_column(), self._together(), self._foreseen(), self._of_the_target()]
        return hypertext.facts_list(self._facts()) + "".join(sections)

    def _change(self, column: int) -> float:
        """The change where missing values are larger by one standard deviation; NaN where deltas are all below or above."""
        assert self.sensitivity is not None
        return float(np.interp(1.0, self.deltas, self.sensitivity[column], left=np.nan, right=np.nan))

    def _size(self) -> str:
        return f"{counted(int(self.pattern_rows.sum()), 'row')}, {counted(len(self.columns), 'column')}"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("rows", f"{self.pattern_rows.sum():,}"),
            ("columns", f"{len(self.columns):,}"),
            ("columns with gaps", f"{np.count_nonzero(self.share):,}"),
            ("missing", _percent(float(self.share.mean()))),
            ("patterns", f"{len(self.patterns):,}"),
            ("Little's test of MCAR", "no test" if np.isnan(self.p_value) else f"p = {self.p_value:.2g}"),
        ]

    def _most_missing(self) -> Ints:
        order = np.argsort(-self.share, kind="stable")
        return order[self.share[order] > 0]

    def _of_columns(
        self,
        title: str,
        text: str,
        heading: list[str],
        order: Ints,
        note: str,
        cells: Callable[[int], list[str]],
        words: int = 0,
    ) -> str:
        """A section with a table of which every row is one of the columns in `order`; nothing where there are none."""
        rows = [[str(self.columns[j]), *cells(j)] for j in order[:_COLUMNS].tolist()]
        caption = _shown_of(len(rows), len(order), "column", note)
        return hypertext.section(title, text, hypertext.text_table(caption, heading, rows, words)) if rows else ""

    def _by_column(self) -> str:
        n, order = int(self.pattern_rows.sum()), self._most_missing()
        text = "A small p of Little's test says that entries are not missing completely at random (MCAR); a large one shows nothing."

        def cells(j: int) -> list[str]:
            return [_percent(self.share[j]), f"{round(n * self.share[j]):,}"]

        heading = ["column", "missing", "rows"]
        section = self._of_columns("Missing by column", text, heading, order, "most missing first", cells)
        return section or hypertext.section("Nothing is missing", "Every entry of the table is there.")

    def _together(self) -> str:
        n = int(self.pattern_rows.sum())
        cells = [
            f'<tr><th scope="row" class="name words">{hypertext.shown(self._named(pattern))}</th>'
            f"<td>{count:,}</td><td>{_percent(count / n)}</td></tr>"
            for pattern, count in zip(self.patterns[:_PATTERNS], self.pattern_rows[:_PATTERNS], strict=True)
        ]
        caption = _shown_of(len(cells), len(self.patterns), "pattern", "commonest first")
        table = hypertext.table_of(caption, ["missing together", "rows", "share"], cells)
        return hypertext.section("Missing together", "Rows that lack the same columns share a pattern.", table)

    def _named(self, pattern: Bools) -> str:
        return listed(self.columns[pattern], _NAMES) if pattern.any() else "nothing is missing"

    def _foreseen(self) -> str:
        order, heading = self._most_missing(), ["gaps of", "AUC", "p", "missing where (AUC of that alone)"]

        def cells(j: int) -> list[str]:
            return [f"{self.auc[j]:.2f}", f"{self.auc_p_value[j]:.2g}", self._foreseers(j)]

        order, note = order[np.isfinite(self.auc[order])], "foreseen, most missing first"
        return self._of_columns("What foresees gaps", READ_AUC, heading, order, note, cells, words=3)

    def _foreseers(self, column: int) -> str:
        foreseers = [
            f"{cut(self.columns[by])} {cut(sign)} ({auc:.2f})" for j, by, sign, auc, _ in self.foresight if j == column
        ]
        return "; ".join(foreseers)

    def _of_the_target(self) -> str:
        if self.target_shift is None or self.target_p_value is None or self.sensitivity is None:
            return ""
        shift, p = self.target_shift, self.target_p_value

        def cells(j: int) -> list[str]:
            return [f"{shift[j]:+.2f}", f"{p[j]:.2g}", f"{self._change(j):.3f}"]

        order, heading = self._most_missing(), ["column", "excess", "p", "change at +1 sd"]
        order, note = order[np.isfinite(shift[order])], "beside the target, most missing first"
        return self._of_columns("What gaps say of the target", READ_SHIFT, heading, order, note, cells)


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _shown_of(n: int, of: int, what: str, order: str) -> str:
    """A caption that says how many of a table's rows are shown."""
    return f"{counted(of, what)}, {order}" if n == of else f"{n:,} of {counted(of, what)}, {order}"
