"""Losses and errors of calibration as lines: against how much of a row is observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.utils.validation import check_consistent_length

from lacunar.observed.door import plain_target
from lacunar.plotting.rows import pattern_of
from lacunar.plotting.style import Curves

_ROWS_OF_A_BIN, _MOST_BINS = 30, 10  # of calibration errors


class CoverageDisplay(Curves):
    """Loss against the share of a row that is observed.

    Parameters
    ----------
    share : array-like of shape (n,)
        Share of entries observed, per row.
    losses : dict of str to array-like of shape (n,)
        Mean loss of every learner on each row; NaN where not tested.
    measure : str
        "error rate": the mean is shown; "RMSE": the root of the mean.
    n_bins : int, default=5
        Largest number of groups of rows, of about equal size.
    strong : sequence of str, default=()
        Names of the learners drawn in green.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.
    lines_ : dict of str to matplotlib Line2D
        After `plot`.

    Raises
    ------
    ValueError
        When losses and shares differ in number, or there is no row.

    See Also
    --------
    ShareCurveDisplay : Loss when more entries of the whole table are hidden.

    Examples
    --------
    >>> from lacunar.plotting import CoverageDisplay
    >>> display = CoverageDisplay([0.2, 0.2, 0.9, 0.9], {"a": [1, 0, 0, 0]}, "error rate").plot()
    """

    marker = "o"

    _unit, _place = 100, "{:.0f} %"  # of the share, and of a place as it is written below the axis

    def __init__(
        self, share: ArrayLike, losses: dict[str, Any], measure: str, *, n_bins: int = 5, strong: Sequence[str] = ()
    ) -> None:
        self.share = np.asarray(share, dtype=float)
        self.losses = {name: np.asarray(values, dtype=float) for name, values in losses.items()}
        self.measure = measure
        self.n_bins = n_bins
        self.strong = strong
        for name, values in self.losses.items():
            if values.shape != self.share.shape or not len(values):
                raise ValueError(
                    f"losses[{name!r}] must hold a number for each of {len(self.share)} rows, at least one; got shape "
                    f"{values.shape}."
                )

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        y_true: ArrayLike,
        y_pred: dict[str, Any],
        *,
        regression: bool = False,
        n_bins: int = 5,
        ax: Any = None,
        **line_kw: Any,
    ) -> CoverageDisplay:
        """Draw the predictions of several learners on the same rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            The rows that were predicted.
        y_true : array-like of shape (n,)
            Their labels.
        y_pred : dict of str to array-like of shape (n,)
            Predictions of every learner, the first in green.
        regression : bool, default=False
            Squared errors, shown as RMSE, instead of the error rate.
        n_bins : int, default=5
            Largest number of groups of rows, of about equal size.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : CoverageDisplay
            Drawn.
        """
        pattern, true = pattern_of(X), np.asarray(plain_target(y_true))
        check_consistent_length(pattern.row_counts, true, *y_pred.values())
        share = pattern.row_counts / max(pattern.shape[1], 1)
        losses = {
            name: np.square(np.asarray(predicted) - true) if regression else np.asarray(predicted) != true
            for name, predicted in y_pred.items()
        }
        measure, strong = "RMSE" if regression else "error rate", tuple(y_pred)[:1]
        return cls(share, losses, measure, n_bins=n_bins, strong=strong).plot(ax, **line_kw)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, n_bins: int = 5, ax: Any = None, **line_kw: Any
    ) -> CoverageDisplay:
        """Draw a fitted learner on rows that it has not seen.

        Parameters
        ----------
        estimator : fitted classifier or regressor
            Errors of a classifier, RMSE of a regressor.
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Fresh rows.
        y : array-like of shape (n,)
            Their labels.
        n_bins : int, default=5
            Largest number of groups of rows, of about equal size.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : CoverageDisplay
            Drawn.
        """
        predictions = {type(estimator).__name__: estimator.predict(X)}
        options = {"regression": is_regressor(estimator), "n_bins": n_bins, "ax": ax}
        return cls.from_predictions(X, y, predictions, **options, **line_kw)

    def groups(self) -> list[NDArray[np.intp]]:
        """Group rows by the share of them that is seen.

        Returns
        -------
        groups : list of ndarray of int
            Row numbers by rising share; rows of one share stay together, and small groups are
            merged.
        """
        edges = np.unique(np.quantile(self.share, np.linspace(0, 1, self.n_bins + 1)[1:-1]))
        bins = np.searchsorted(edges, self.share, side="left")
        smallest = max(len(self.share) // 40, 1)
        groups: list[NDArray[np.intp]] = []
        for b in np.unique(bins):
            rows = np.flatnonzero(bins == b)
            if groups and len(groups[-1]) < smallest:
                rows = np.concatenate([groups.pop(), rows])
            groups.append(rows)
        if len(groups) > 1 and len(groups[-1]) < smallest:
            last = groups.pop()
            groups[-1] = np.concatenate([groups[-1], last])
        return groups

    def _lines(self) -> tuple[ArrayLike, dict[str, Any]]:
        """A point for every group of rows."""
        groups = self.groups()
        heights = {name: np.array([_mean(values[rows]) for rows in groups]) for name, values in self.losses.items()}
        root = self.measure == "RMSE"
        return self._places(groups), {name: np.sqrt(means) if root else means for name, means in heights.items()}

    def _places(self, groups: list[NDArray[np.intp]]) -> list[float]:
        return [self._unit * float(self.share[rows].mean()) for rows in groups]

    def _labels(self) -> tuple[str, str]:
        return "share of the row that is observed", self.measure

    def _add(self, ax: Any) -> None:
        groups = self.groups()
        places = self._places(groups)
        words = [f"{self._place.format(p)}\n{len(rows)} rows" for p, rows in zip(places, groups, strict=True)]
        ax.set_xticks(places, words)


class CalibrationByMissingDisplay(CoverageDisplay):
    """How far probabilities are off, against the number of entries that a row lacks.

    Parameters
    ----------
    missing : array-like of shape (n,)
        Number of missing entries, per row.
    confidence : dict of str to array-like of shape (n,)
        Probability that every classifier gives the likeliest class of each row.
    right : dict of str to array-like of shape (n,)
        Whether that class is the row's.
    n_bins : int, default=5
        Largest number of groups of rows, of about equal size.
    strong : sequence of str, default=()
        Names of the classifiers drawn in green.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.
    lines_ : dict of str to matplotlib Line2D
        After `plot`.

    Raises
    ------
    ValueError
        When numbers of rows differ, or there is no row.

    See Also
    --------
    CoverageDisplay : The error rate, by how much of each row is seen.

    Notes
    -----
    The error of a group is the mean, over at most ten bins of equally many rows, at least 30,
    sorted by confidence, of |mean confidence - share of rows that are right| (Naeini, Cooper and
    Hauskrecht, AAAI 2015). It is above 0 by chance alone, the more the fewer the rows.

    Examples
    --------
    >>> from lacunar.plotting import CalibrationByMissingDisplay
    >>> display = CalibrationByMissingDisplay(
    ...     [0, 0, 3, 3], {"a": [0.9, 0.7, 0.9, 0.9]}, {"a": [1, 1, 1, 0]}
    ... ).plot()
    >>> display.errors()["a"].round(2)
    array([0.2, 0.4])
    """

    _unit, _place = 1, "{:.3g}"

    def __init__(
        self,
        missing: ArrayLike,
        confidence: dict[str, Any],
        right: dict[str, Any],
        *,
        n_bins: int = 5,
        strong: Sequence[str] = (),
    ) -> None:
        super().__init__(missing, right, "calibration error", n_bins=n_bins, strong=strong)
        self.confidence = {name: np.asarray(values, dtype=float) for name, values in confidence.items()}
        for name in right:
            confidences = self.confidence.get(name, np.empty(0))
            if confidences.shape != self.share.shape:
                raise ValueError(
                    f"confidence[{name!r}] must hold a number for each of {len(self.share)} rows; got shape {confidences.shape}."
                )

    @classmethod
    def from_predictions(  # type: ignore[override]  # X comes first here
        cls,
        X: Any,
        y_true: ArrayLike,
        y_prob: dict[str, Any],
        *,
        classes: ArrayLike | None = None,
        n_bins: int = 5,
        ax: Any = None,
        **line_kw: Any,
    ) -> CalibrationByMissingDisplay:
        """Draw the probabilities of several classifiers on the same rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            The rows that were predicted.
        y_true : array-like of shape (n,)
            Their labels.
        y_prob : dict of str to array-like of shape (n, k)
            Probabilities by every classifier, the first in green.
        classes : array-like of shape (k,), optional
            Labels of the columns; default the sorted labels of `y_true`.
        n_bins : int, default=5
            Largest number of groups of rows, of about equal size.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : CalibrationByMissingDisplay
            Drawn.
        """
        pattern, true = pattern_of(X), np.asarray(plain_target(y_true))
        check_consistent_length(pattern.row_counts, true)
        labels = np.unique(true) if classes is None else np.asarray(classes)
        shares = {name: np.asarray(p, dtype=float) for name, p in y_prob.items()}
        for name, p in shares.items():
            if p.shape != (pattern.shape[0], len(labels)):
                raise ValueError(
                    f"y_prob[{name!r}] must be of shape {(pattern.shape[0], len(labels))}, a column for each of {len(labels)} classes; "
                    f"got {p.shape}. Pass classes= where y_true lacks some."
                )
        confidence = {name: p.max(axis=1) for name, p in shares.items()}
        right = {name: labels[p.argmax(axis=1)] == true for name, p in shares.items()}
        missing = pattern.shape[1] - pattern.row_counts
        return cls(missing, confidence, right, n_bins=n_bins, strong=tuple(y_prob)[:1]).plot(ax, **line_kw)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, n_bins: int = 5, ax: Any = None, **line_kw: Any
    ) -> CalibrationByMissingDisplay:
        """Draw a fitted classifier on rows that it has not seen.

        Parameters
        ----------
        estimator : fitted classifier
            With `predict_proba`.
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Fresh rows.
        y : array-like of shape (n,)
            Their labels.
        n_bins : int, default=5
            Largest number of groups of rows, of about equal size.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : CalibrationByMissingDisplay
            Drawn.
        """
        predictions = {type(estimator).__name__: estimator.predict_proba(X)}
        return cls.from_predictions(X, y, predictions, classes=estimator.classes_, n_bins=n_bins, ax=ax, **line_kw)

    def errors(self) -> dict[str, NDArray[np.float64]]:
        """Calibration errors of the groups of rows.

        Returns
        -------
        errors : dict of str to ndarray of shape (groups,)
            By rising number of missing entries; `groups` says which rows.
        """
        groups = self.groups()
        return {
            name: np.array([_calibration_error(self.confidence[name][rows], right[rows]) for rows in groups])
            for name, right in self.losses.items()
        }

    def _lines(self) -> tuple[ArrayLike, dict[str, Any]]:
        return self._places(self.groups()), self.errors()

    def _labels(self) -> tuple[str, str]:
        return "missing entries of the row", self.measure

    def _add(self, ax: Any) -> None:
        super()._add(ax)
        ax.set_ylim(bottom=0)


def _calibration_error(confidence: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Mean over rows of the difference between confidence and share of right answers in their bin."""
    order = np.argsort(confidence, kind="stable")
    bins = np.array_split(order, int(np.clip(len(order) // _ROWS_OF_A_BIN, 1, _MOST_BINS)))
    off = [len(rows) * abs(float(confidence[rows].mean() - right[rows].mean())) for rows in bins]
    return float(np.sum(off) / len(order))


def _mean(losses: NDArray[np.float64]) -> float:
    """The mean of what is known, NaN where nothing is."""
    return float(np.nanmean(losses)) if np.isfinite(losses).any() else np.nan
