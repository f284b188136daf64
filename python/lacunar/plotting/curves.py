"""Losses and errors as lines: against the share of a table that is observed, and along a stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_regressor
from sklearn.metrics import root_mean_squared_error, zero_one_loss
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from lacunar.observed.door import plain_target
from lacunar.plotting.rows import by_rows, draws_of, hide, pattern_of, take
from lacunar.plotting.style import Curves, inks


class ShareCurveDisplay(Curves):
    """Learning curve over the share of entries that is observed: loss when more of a table is
    hidden at random.

    Parameters
    ----------
    shares : array-like of shape (k,)
        Share of the table that was observed.
    losses : dict of str to array-like of shape (k, repeats)
        Loss of every learner on held-out rows.
    measure : str
        Name of the loss.
    strong : sequence of str, default=()
        Names of the learners drawn in green.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.
    lines_ : dict of str to matplotlib Line2D
        After `plot`.

    See Also
    --------
    CoverageDisplay : Loss of one fit, by how much of each row is seen.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaRegressor
    >>> from lacunar.plotting import ShareCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 10))
    >>> y = X.sum(axis=1)
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> display = ShareCurveDisplay.from_estimator(KarmaRegressor(), X, y, shares=[0.3, 1.0])
    >>> loss = display.losses["KarmaRegressor"].mean(axis=1)
    >>> bool(loss[0] > loss[1])
    True
    """

    marker = "o"

    def __init__(self, shares: ArrayLike, losses: dict[str, Any], measure: str, *, strong: Sequence[str] = ()) -> None:
        self.shares = np.asarray(shares, dtype=float)
        self.losses = {name: np.atleast_2d(np.asarray(values, dtype=float)) for name, values in losses.items()}
        self.measure = measure
        self.strong = strong

    @classmethod
    def from_estimator(
        cls,
        estimators: Any,
        X: Any,
        y: ArrayLike,
        *,
        shares: Sequence[float] = (0.2, 0.4, 0.6, 0.8, 1.0),
        n_repeats: int = 3,
        test_size: float = 0.3,
        random_state: int = 0,
        ax: Any = None,
        **line_kw: Any,
    ) -> ShareCurveDisplay:
        """Hide entries completely at random, fit fresh copies on some rows and test them on the
        others.

        Every learner gets the same missing entries and the same rows. Costs `n_repeats` fits a
        share and learner.

        Parameters
        ----------
        estimators : estimator, or dict of str to estimator
            All classifiers (error rate) or all regressors (RMSE); the first is drawn in green.
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            What it misses itself stays missing.
        y : array-like of shape (n,)
            Labels.
        shares : sequence of float, default=(0.2, 0.4, 0.6, 0.8, 1.0)
            Shares of the observed entries that are kept, in (0, 1].
        n_repeats : int, default=3
            Draws of missing entries and rows.
        test_size : float, default=0.3
            Share of the rows that are tested.
        random_state : int, default=0
            Of missing entries and rows.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : ShareCurveDisplay
            Drawn.

        Raises
        ------
        ValueError
            When a share is not in (0, 1].
        """
        learners = estimators if isinstance(estimators, dict) else {type(estimators).__name__: estimators}
        target, regression = np.asarray(plain_target(y)), is_regressor(next(iter(learners.values())))
        outside = [share for share in shares if not 0 < share <= 1]
        if outside:
            raise ValueError(
                f"shares must lie in (0, 1]; got {outside[0]}. Name shares of the observed entries that are kept."
            )
        split = (ShuffleSplit if regression else StratifiedShuffleSplit)(
            n_repeats, test_size=test_size, random_state=random_state
        )
        table, pattern = by_rows(X), pattern_of(X)
        losses = {name: np.empty((len(shares), n_repeats)) for name in learners}
        loss = root_mean_squared_error if regression else zero_one_loss
        for r, (train, test) in enumerate(split.split(np.empty((pattern.shape[0], 1)), target)):
            draws = draws_of(pattern, random_state + r)
            for k, share in enumerate(shares):
                hidden = hide(table, pattern, draws < share)
                for name, learner in learners.items():
                    predicted = clone(learner).fit(take(hidden, train), target[train]).predict(take(hidden, test))
                    losses[name][k, r] = loss(target[test], predicted)
        seen = np.asarray(shares) * len(pattern.indices) / max(pattern.shape[0] * pattern.shape[1], 1)
        return cls(seen, losses, "RMSE" if regression else "error rate", strong=tuple(learners)[:1]).plot(ax, **line_kw)

    def _lines(self) -> tuple[ArrayLike, dict[str, Any]]:
        """Means over the repeats."""
        return 100 * self.shares, {name: values.mean(axis=1) for name, values in self.losses.items()}

    def _labels(self) -> tuple[str, str]:
        return "share of the table that is observed, %", self.measure

    def _add(self, ax: Any) -> None:
        """A band of one standard error over the repeats around every line."""
        for name, values in self.losses.items():
            mean, repeats = values.mean(axis=1), values.shape[1]
            error = values.std(axis=1, ddof=1) / np.sqrt(repeats) if repeats > 1 else np.zeros(len(values))
            colour = self.lines_[name].get_color()
            ax.fill_between(100 * self.shares, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)


class RegretDisplay(Curves):
    """Running loss of learners that predict every row before they learn it; regret against a
    comparator.

    Parameters
    ----------
    losses : dict of str to array-like of shape (n,)
        Loss of every row before it was learned.
    comparator : array-like of shape (n,), optional
        Loss of a fixed predictor, the best in hindsight: regret, the difference of the sums, is
        drawn instead of the mean.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.
    lines_ : dict of str to matplotlib Line2D
        After `plot`.

    See Also
    --------
    lacunar.karma.KarmaOnlineClassifier.score_stream : Predicts every row, then learns it.
    lacunar.completion.OnlineMatrixClassifier.score_stream : The same for pairs.

    Examples
    --------
    >>> from lacunar.plotting import RegretDisplay
    >>> RegretDisplay({"a": [1, 1, 0, 0]}, comparator=[0, 1, 0, 0]).curves()["a"]
    array([1., 1., 1., 1.])
    """

    def __init__(self, losses: dict[str, Any], comparator: ArrayLike | None = None) -> None:
        self.losses = {name: np.asarray(values, dtype=float) for name, values in losses.items()}
        self.comparator = None if comparator is None else np.asarray(comparator, dtype=float)
        self.strong = tuple(losses)[:1]

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: dict[str, Any],
        *,
        comparator: ArrayLike | None = None,
        ax: Any = None,
        **line_kw: Any,
    ) -> RegretDisplay:
        """Draw the mistakes of predictions that were made before each label was seen.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels in order of arrival.
        y_pred : dict of str to array-like of shape (n,)
            Predictions of every learner, the first in green.
        comparator : array-like of shape (n,), optional
            Predictions of a fixed rule: regret is drawn instead of the mean.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : RegretDisplay
            Drawn.
        """
        true = np.asarray(plain_target(y_true))
        losses = {name: np.asarray(predicted) != true for name, predicted in y_pred.items()}
        return cls(losses, None if comparator is None else np.asarray(plain_target(comparator)) != true).plot(
            ax, **line_kw
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        comparator: ArrayLike | None = None,
        stream_params: dict[str, Any] | None = None,
        ax: Any = None,
        **line_kw: Any,
    ) -> RegretDisplay:
        """Put a classifier through a stream, which it predicts and learns, and draw its mistakes.

        Parameters
        ----------
        estimator : classifier with `score_stream`
            `KarmaClassifier` or `OnlineMatrixClassifier`, say. It learns the stream.
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Rows in order of arrival; of shape (n, 2), the pairs, for classifiers of pairs.
        y : array-like of shape (n,)
            Their labels.
        comparator : array-like of shape (n,), optional
            Predictions of a fixed rule: regret is drawn instead of the mean.
        stream_params : dict, optional
            For `score_stream`, such as `classes`.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : RegretDisplay
            Drawn.
        """
        name, options = type(estimator).__name__, stream_params or {}
        other = None if comparator is None else np.asarray(plain_target(comparator)) != np.asarray(plain_target(y))
        if hasattr(estimator, "decision_one"):  # pairs of ids, not rows
            pairs = np.asarray(X, dtype=object)
            score = estimator.score_stream(list(pairs[:, 0]), list(pairs[:, 1]), y, **options)
            return cls({name: np.diff(score.running_mistakes, prepend=0)}, other).plot(ax, **line_kw)
        score = estimator.score_stream(X, y, **options)
        values = np.asarray(score.values)
        values = values.reshape(len(values), -1)
        labels = (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
        return cls({name: np.asarray(estimator.classes_)[labels] != np.asarray(plain_target(y))}, other).plot(
            ax, **line_kw
        )

    def curves(self) -> dict[str, Any]:
        """Compute what is drawn.

        Returns
        -------
        curves : dict of str to ndarray of shape (n,)
            Regret after every row, or the running mean loss where there is no comparator.
        """
        if self.comparator is not None:
            return {name: np.cumsum(values - self.comparator) for name, values in self.losses.items()}
        return {name: np.cumsum(values) / np.arange(1, len(values) + 1) for name, values in self.losses.items()}

    def _lines(self) -> tuple[ArrayLike, dict[str, Any]]:
        curves = self.curves()
        return np.arange(1, 1 + max(map(len, curves.values()), default=0)), curves

    def _labels(self) -> tuple[str, str]:
        return "rows seen", "mean loss so far" if self.comparator is None else "regret"

    def _add(self, ax: Any) -> None:
        if self.comparator is not None:
            ax.axhline(0, color=inks(ax).quiet, linewidth=0.8)


class ExpertWeightsDisplay(Curves):
    """Weights of a pool's experts in the course of a stream.

    Parameters
    ----------
    trials : array-like of shape (k,)
        Pairs seen at every point.
    weights : dict of str to array-like of shape (k,)
        Of every expert at these points.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.
    lines_ : dict of str to matplotlib Line2D
        After `plot`.

    See Also
    --------
    lacunar.completion.OnlineMatrixClassifier : Whose pool it is.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.completion import OnlineMatrixClassifier
    >>> from lacunar.plotting import ExpertWeightsDisplay
    >>> i, j = np.random.default_rng(0).integers(0, 20, (2, 400))
    >>> model = OnlineMatrixClassifier().fit((i, j), (i + j) % 2)
    >>> display = ExpertWeightsDisplay.from_estimator(model, n=3)
    >>> len(display.weights)
    3
    """

    def __init__(self, trials: ArrayLike, weights: dict[str, Any]) -> None:
        self.trials = np.asarray(trials)
        self.weights = {name: np.asarray(values, dtype=float) for name, values in weights.items()}
        self.strong = tuple(weights)[:1]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n: int = 5, task: int = 0, ax: Any = None, **line_kw: Any
    ) -> ExpertWeightsDisplay:
        """Draw the experts that had most weight.

        Parameters
        ----------
        estimator : OnlineMatrixClassifier
            It has learned at least 32 pairs, after which weights are first written down.
        n : int, default=5
            Experts drawn: those with the largest mean weight.
        task : int, default=0
            Of several thresholds, which.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : ExpertWeightsDisplay
            Drawn.
        """
        trials, weights = estimator.expert_path_
        weights = weights[:, task]
        first = np.argsort(-weights.mean(axis=0) if len(weights) else np.zeros(weights.shape[1]), kind="stable")[:n]
        return cls(trials, {estimator.expert_names_[e]: weights[:, e] for e in first}).plot(ax, **line_kw)

    def _lines(self) -> tuple[ArrayLike, dict[str, Any]]:
        return self.trials, self.weights

    def _labels(self) -> tuple[str, str]:
        return "pairs seen", "weight"


class TrackingErrorDisplay(Curves):
    """Error of subspace trackers along a stream.

    Parameters
    ----------
    rows : array-like of shape (k,)
        Rows seen at every point.
    errors : dict of str to array-like of shape (k,)
        Of every tracker at these points.
    measure : str
        Name of the error.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        After `plot`.
    lines_ : dict of str to matplotlib Line2D
        After `plot`.

    See Also
    --------
    lacunar.lowrank.PETRELS, lacunar.lowrank.GROUSE : Trackers.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.plotting import TrackingErrorDisplay
    >>> from lacunar.lowrank import PETRELS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 8))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> display = TrackingErrorDisplay.from_estimator(PETRELS(2, random_state=0), X)
    >>> bool(display.errors["PETRELS"][-1] < 0.01)
    True
    """

    def __init__(self, rows: ArrayLike, errors: dict[str, Any], measure: str) -> None:
        self.rows = np.asarray(rows)
        self.errors = {name: np.asarray(values, dtype=float) for name, values in errors.items()}
        self.measure = measure
        self.strong = tuple(errors)[:1]

    @classmethod
    def from_predictions(
        cls, residuals: dict[str, Any], *, window: int = 50, ax: Any = None, **line_kw: Any
    ) -> TrackingErrorDisplay:
        """Draw one residual a row and tracker, averaged over windows of rows.

        Parameters
        ----------
        residuals : dict of str to array-like of shape (n,)
            Of every tracker, in order of arrival.
        window : int, default=50
            Rows that are averaged; what is left over at the end is not drawn.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : TrackingErrorDisplay
            Drawn.

        Raises
        ------
        ValueError
            When there are fewer rows than one window.
        """
        arrays = {name: np.asarray(values, dtype=float) for name, values in residuals.items()}
        n = _whole_windows(len(next(iter(arrays.values()))), window, 1) * window
        means = {name: values[:n].reshape(-1, window).mean(axis=1) for name, values in arrays.items()}
        measure = f"residual, mean of {window} rows"
        return cls(np.arange(window, n + 1, window), means, measure).plot(ax, **line_kw)

    @classmethod
    def from_estimator(
        cls,
        estimators: Any,
        X: Any,
        *,
        basis: ArrayLike | None = None,
        window: int = 50,
        ax: Any = None,
        **line_kw: Any,
    ) -> TrackingErrorDisplay:
        """Follow a stream with fresh copies of one tracker or a dict of them, a window of rows at a
        time.

        Parameters
        ----------
        estimators : tracker, or dict of str to tracker
            With `partial_fit`, and `score_samples` or `components_`.
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Rows in order of arrival.
        basis : array-like of shape (k, d) or (windows, k, d), optional
            The true subspace, or one a window: the error is then |P_true - P|^2 / 2k instead of the
            residual of every window before it is learned.
        window : int, default=50
            Rows learned between two points of the picture.
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        **line_kw : dict
            For matplotlib's `plot`.

        Returns
        -------
        display : TrackingErrorDisplay
            Drawn.

        Raises
        ------
        ValueError
            When there are fewer rows than one window, two where `basis` is not given.
        """
        table = by_rows(X)
        trackers = estimators if isinstance(estimators, dict) else {type(estimators).__name__: estimators}
        n = _whole_windows(table.shape[0], window, 2 if basis is None else 1)
        true = None if basis is None else np.asarray(basis, dtype=float)
        errors = {name: list(_follow(clone(tracker), table, true, window)) for name, tracker in trackers.items()}
        first = window if true is not None else 2 * window
        rows = np.arange(first, n * window + 1, window)
        measure = "subspace error" if true is not None else f"relative residual, {window} rows ahead"
        return cls(rows, errors, measure).plot(ax, **line_kw)

    def _lines(self) -> tuple[ArrayLike, dict[str, Any]]:
        """Errors below 1e-16 are drawn there, as the scale is logarithmic."""
        return self.rows, {name: np.maximum(values, 1e-16) for name, values in self.errors.items()}

    def _labels(self) -> tuple[str, str]:
        return "rows seen", self.measure

    def _add(self, ax: Any) -> None:
        ax.set_yscale("log")


def _whole_windows(n: int, window: int, least: int) -> int:
    if n < least * window:
        raise ValueError(
            f"a picture needs {least} window{'s'[: least > 1]} of rows, {least * window}; got {n} rows. Make window smaller."
        )
    return n // window


def _follow(tracker: Any, table: Any, true: NDArray[np.float64] | None, window: int) -> Iterable[float]:
    for number in range(table.shape[0] // window):
        part = take(table, slice(number * window, (number + 1) * window))
        if true is None:
            if number:
                yield float(np.mean(tracker.score_samples(part)))
            tracker.partial_fit(part)
            continue
        tracker.partial_fit(part)
        yield subspace_error(true[number] if true.ndim == 3 else true, tracker.components_)


def subspace_error(true: NDArray[np.float64], estimated: NDArray[np.float64]) -> float:
    """|P - Q|_F^2 / 2k for the projections on the spans of the rows of two (k, d) arrays: 0 equal, 1 orthogonal."""
    p, q = (np.linalg.qr(basis.T)[0] for basis in (true, estimated))
    return float(max(1.0 - np.square(p.T @ q).sum() / p.shape[1], 0.0))
