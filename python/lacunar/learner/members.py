"""The members of the learner: models of tables with missing entries that return out-of-fold values to the pool.

A member's `fit(training)` returns values (tested rows, k) of every row that a cut tests, by what that cut learns from, in ascending order of the rows,
and `predict(view, posterior)` those of other rows: one column a class in units of log probabilities up to `Calibration`, or one a target.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from lacunar._cuts import Cut, in_order
from lacunar._products import row_product
from lacunar._typing import Floats, Ints
from lacunar.karma.calibrate import all_classes
from lacunar.karma.selection import COMPLETED, KernelSelection
from lacunar.kernels import RadialForm
from lacunar.learner.folds import even_folds
from lacunar.learner.trees import BoostingMember, ForestMember, all_chances, log_chances, seconds_of_boosting
from lacunar.learner.views import TrainingSet, View
from lacunar.lowrank.posterior import LowRankPosterior, PosteriorRidge
from lacunar.lowrank.ridge import fold_ridge
from lacunar.observed.rules import COUNT, Array, Instance, Rule, floats
from lacunar.uncertainty.shift import log_softmax

_MOST_FOR_NEWTON = 200  # coefficients of logistic regression, whose Hessian is factorised
_MANY_ROWS = 20_000  # beyond which the penalty is chosen on a sample
_ROWS_FOR_PENALTY = 10_000
_MOST_INPUTS = 10**7  # numbers that a linear member of a large table learns from: rows by inputs
# Of a large table, from which kernels, and the Gaussian and the forest learn.
ROWS_OF_KERNELS, _ROWS_OF_OTHERS = 10_000, 20_000
_LANDMARKS = 1000  # of kernels on many rows: 1,500 take twice the time for half a per cent of the loss
# Beyond which kernels go through landmarks, which takes half the time of all 2,600 rows, for the same loss.
_ROWS_IN_FULL = 2000
_AVERAGED, _AVERAGED_OF_MANY = 4, 3  # kernels, each of which takes a pass over the landmarks' values of many rows
_PARTS, _ROWS_IN_PARTS = 24, 3000  # of so many rows at most, on each of which kernels are tested by all others
_FARTHEST = 2.0  # value of a class by least squares on -1 and 1: only rows far from all others go beyond


def _scores(values: Floats, n_classes: int) -> Floats:
    """One column a class from least-squares values, of which two classes have one: none is far out, so that no row alone spoils a pool or its answer."""
    if n_classes:
        values = np.clip(values, -_FARTHEST, _FARTHEST)
    return np.column_stack([-values, values]) if n_classes == 2 else values


class KernelMember(BaseEstimator):
    """Kernel ridge machines over missing entries: the average of the best by successive halving (`lacunar.karma.selection`)."""

    name = "kernels"
    _schema: ClassVar[dict[str, Rule]] = {"n_classes_": COUNT, "selection_": Instance(KernelSelection)}

    def fit(self, training: TrainingSet) -> Floats:
        self.n_classes_ = training.n_classes
        self.selection_ = KernelSelection(
            full_rows=_ROWS_IN_FULL,
            landmarks=_LANDMARKS,
            average=_AVERAGED if training.n <= _ROWS_IN_FULL else _AVERAGED_OF_MANY,
            random_state=training.seed,
            n_jobs=training.n_jobs,
        )
        complete = None if training.posterior is None else training.posterior.complete
        values = self.selection_.fit(
            training.view.Z,
            training.Y,
            _smaller_parts(training) if training.independent and training.n <= _ROWS_IN_PARTS else training.cuts,
            training.weight,
            complete,
            training.deadline,
            training.note(self.name),
            independent=training.independent,
        )
        return _scores(values, training.n_classes)

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> Floats:
        complete = None if posterior is None else partial(_completed, posterior, view.latent)
        return _scores(self.selection_.predict(view.Z, complete=complete), self.n_classes_)

    @property
    def completed(self) -> str:
        """What stands for a missing entry in the kernels that read one."""
        selection = self.selection_
        pairs = zip(selection.forms_, selection.chosen_, strict=True)
        ways = Counter(
            _with_flags("low-rank model" if chosen["table"] == COMPLETED else "mean", flags=form.mask > 0)
            for form, chosen in pairs
            if isinstance(form, RadialForm)
        )
        return "; ".join(f"{way}, {count} of {len(selection.forms_)} kernels" for way, count in ways.items())


def _smaller_parts(training: TrainingSet) -> list[Cut]:
    """Cuts that test a part of a fold each, and learn from the rest of it too: judged on two thirds of the rows alone, kernels look worse than the
    final ones are, and one factorisation gives the values of any cuts.
    """
    parts, a_fold = [], -(-_PARTS // len(training.cuts))
    for train, test in training.cuts:
        labels = None if training.labels is None else training.labels[test]
        for part in even_folds(labels, np.arange(len(test)), min(len(test), a_fold), training.seed):
            parts.append((np.union1d(train, np.delete(test, part)), test[part]))
    return parts


def _completed(posterior: LowRankPosterior, latent: Floats | None, Z: Floats) -> Floats:
    """Rows (m, p) with posterior means for what is missing, by their latent coordinates where all of them are known."""
    if latent is None or latent.shape != (len(Z), len(posterior.components_)):
        return posterior.complete(Z)
    return posterior.filled(Z, latent)


class GaussianMember(BaseEstimator):
    """Ridge regression on what a low-rank Gaussian says of a row, and on which entries are missing."""

    name = "gaussian"
    _schema: ClassVar[dict[str, Rule]] = {"n_classes_": COUNT, "ridge_": Instance(PosteriorRidge)}

    def fit(self, training: TrainingSet) -> Floats:
        assert training.posterior is not None
        self.n_classes_, self.ridge_ = training.n_classes, PosteriorRidge()
        values = self.ridge_.fit(
            training.view.Z,
            training.Y,
            training.cuts,
            training.posterior,
            training.weight,
            training.deadline,
            training.note(self.name),
        )
        return _scores(values, training.n_classes)

    def pilot(self, training: TrainingSet, whole: TrainingSet) -> float:
        assert training.posterior is not None
        ridge = PosteriorRidge(self_masking=False)
        ridge.fit(training.view.Z, training.Y, training.cuts, training.posterior, weight=training.weight)
        return 1.0

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> Floats:
        assert posterior is not None
        return _scores(self.ridge_.predict(view.Z, posterior), self.n_classes_)

    @property
    def completed(self) -> str:
        """What stands for a missing entry: latent coordinates are those of a completed row."""
        return _with_flags("low-rank model", flags=self.ridge_.kind_ != "latent")


class LogisticMember(BaseEstimator):
    """Logistic regression on numbers with 0 for the mean where missing, and on which entries are missing."""

    name = "logistic"
    cuts_test_all = True
    _schema: ClassVar[dict[str, Rule]] = {
        "n_classes_": COUNT,
        "flagged_": Array("b", ("p",)),
        "coef_": floats("k", "inputs"),
        "intercept_": floats("k"),
    }
    _PENALTIES = (0.1, 0.01, 1.0)  # there may be time for the first only
    _WEAKER = (10.0, 100.0, 1e3, 1e4)  # tried as long as they help: numbers that add up need them

    def fit(self, training: TrainingSet) -> Floats:
        rows = self._inputs(training)
        best, out = self._best(rows, training)
        self._learn(best, rows, training)
        return out

    def learn(self, training: TrainingSet) -> None:
        """The same without values out of fold: the penalty is chosen on a sample of many rows."""
        rows = self._inputs(training)
        few, places = training.thinned(_ROWS_FOR_PENALTY / training.n if training.n > _MANY_ROWS else 1.0)
        self._learn(self._best(rows[places], few)[0], rows, training)

    def _inputs(self, training: TrainingSet) -> Floats:
        self.n_classes_, self.flagged_ = training.n_classes, _flagged(training.view)
        return _inputs(training.view, self.flagged_)

    def _learn(self, C: float, rows: Floats, training: TrainingSet) -> None:
        assert training.labels is not None
        final = training.final
        model = _logistic(C, rows[final], training.labels[final], training.weights(final))
        self.coef_, self.intercept_ = model.coef_, model.intercept_

    def _best(self, rows: Floats, training: TrainingSet) -> tuple[float, Floats]:
        """The penalty of least loss out of fold among those for which there is time, and the values out of fold."""
        penalties = (*self._PENALTIES, *self._WEAKER)
        values: dict[float, Floats] = {}
        losses: dict[float, float] = {}
        longest = 0.0
        for C in penalties:
            if C in self._WEAKER and losses[max(losses)] > min(losses.values()):
                break
            started = perf_counter()
            if longest and training.left() < (1 + 1 / len(training.cuts)) * longest:
                training.shortened[self.name] = f"{len(losses)} of up to {len(penalties)} penalties"
                break
            values[C] = self._out_of_fold(rows, training, C)
            losses[C], longest = _log_loss(values[C], training), max(longest, perf_counter() - started)
        best = min(losses, key=lambda C: (losses[C], C))
        return best, values[best]

    def pilot(self, training: TrainingSet, whole: TrainingSet) -> float:
        assert training.labels is not None
        rows = _inputs(training.view, _flagged(training.view))
        _logistic(self._PENALTIES[0], rows, training.labels, training.weight)
        return 2.0 * (len(training.cuts) + 1)

    def _out_of_fold(self, rows: Floats, training: TrainingSet, C: float) -> Floats:
        assert training.labels is not None
        values = []
        for train, test in training.cuts:
            chances = np.full((len(test), training.n_classes), 1 / training.n_classes)
            if len(train) and np.ptp(training.labels[train]):  # not so of a class whose only row this cut holds out
                model = _logistic(C, rows[train], training.labels[train], training.weights(train))
                chances = all_chances(model.predict_proba(rows[test]), model.classes_, training.n_classes)
            values.append(log_chances(chances))
        return in_order(training.cuts, values)

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> Floats:
        raw = row_product(_inputs(view, self.flagged_), self.coef_.T, n_jobs) + self.intercept_
        return log_chances(np.exp(log_softmax(all_classes(raw))))

    @property
    def completed(self) -> str:
        """What stands for a missing entry."""
        return _with_flags("mean", flags=bool(self.flagged_.any()))


class LinearMember(BaseEstimator):
    """Ridge regression on numbers with 0 for the mean where missing, and on which entries are missing."""

    name = "linear"
    _schema: ClassVar[dict[str, Rule]] = {
        "n_classes_": COUNT,
        "flagged_": Array("b", ("p",)),
        "coef_": floats("inputs", "q"),
        "intercept_": floats("q"),
    }
    _PENALTIES = tuple(np.logspace(-4, 5, 19))  # a weak signal in few rows asks for thousands

    def fit(self, training: TrainingSet) -> Floats:
        self.n_classes_, self.flagged_ = training.n_classes, _flagged(training.view)
        rows = _inputs(training.view, self.flagged_)
        ridge = fold_ridge(rows, training.Y, training.cuts, training.weight, self._PENALTIES)
        self.coef_, self.intercept_ = ridge.coef, ridge.intercept
        return ridge.oof

    def pilot(self, training: TrainingSet, whole: TrainingSet) -> float:
        LinearMember().fit(training)
        return 1.0

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> Floats:
        return row_product(_inputs(view, self.flagged_), self.coef_, n_jobs) + self.intercept_

    @property
    def completed(self) -> str:
        """What stands for a missing entry."""
        return _with_flags("mean", flags=bool(self.flagged_.any()))


def _with_flags(way: str, *, flags: bool) -> str:
    return f"{way} and flags" if flags else way


def _flagged(view: View) -> NDArray[np.bool_]:
    """Columns of Z whose missing entries are an input of their own: those that are sometimes missing, and not nearly always."""
    share = np.isnan(view.Z).mean(axis=0)
    return np.asarray((share > 0.01) & (share < 0.99))


def _inputs(view: View, flagged: NDArray[np.bool_]) -> Floats:
    """Inputs (n, p + flagged) of the linear members: Z with 0, the mean, where missing, and which entries of some columns are missing.

    Where members read latent coordinates, these and their products in pairs too.
    """
    missing = np.isnan(view.Z)
    parts = [np.where(missing, 0.0, view.Z), missing[:, flagged]]
    if (latent := view.leading) is not None:
        parts += [latent, *(latent[:, [j]] * latent[:, j:] for j in range(latent.shape[1]))]
    return np.hstack(parts)


def _rows_of_inputs(training: TrainingSet) -> int:
    """The rows of a large table that a linear member learns from."""
    k = 0 if training.view.latent is None else training.view.latent.shape[1]
    return max(_MOST_INPUTS // (2 * int(training.view.Z.shape[1]) + k * (k + 3) // 2 + 1), _ROWS_OF_OTHERS)


def _logistic(C: float, rows: Floats, labels: Ints, weight: Floats | None) -> LogisticRegression:
    small = rows.shape[1] * len(np.unique(labels)) <= _MOST_FOR_NEWTON
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, LinAlgWarning):
            warnings.simplefilter("ignore", kind)  # not converged, or nearly singular: the pool judges it
        model = LogisticRegression(C=C, max_iter=100, tol=1e-3, solver="newton-cholesky" if small else "lbfgs")
        return model.fit(rows, labels, sample_weight=weight)


def _log_loss(logs: Floats, training: TrainingSet) -> float:
    assert training.labels is not None
    tested = training.tested
    own = logs[np.arange(len(tested)), training.labels[tested]]
    return -float(np.average(own, weights=training.weights(tested)))


class Member(Protocol):
    """The interface of a member, which an ensemble calls."""

    name: str
    n_classes_: int  # 0 for numbers

    def fit(self, training: TrainingSet) -> Floats:
        """Learn, and return values of the tested rows by what their cut learns from: log probabilities (tested, c) up to a calibration, or standardised
        targets (tested, q).
        """
        ...

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> Floats:
        """The same values of other rows (m, c) or (m, q)."""
        ...


class MemberKind(NamedTuple):
    """A kind of member: its class, the tasks it is for, when it takes part, and what it takes."""

    make: type[Member]
    for_labels: bool
    for_numbers: bool
    share: float  # of a time limit, beside those of other members; small ones begin
    rows_before: float  # rows that a fit takes as long for as for what does not depend on their number
    seconds: Callable[[TrainingSet], float]  # at most, roughly: of one target, in three folds, if nothing stops early
    takes_part: Callable[[TrainingSet], bool] = lambda training: True
    # Rows of a large table that it learns from; without a function it learns from all of them, by `cuts`.
    most_rows: Callable[[TrainingSet], int] | None = None
    for_large: Callable[[TrainingSet], bool] = lambda training: True  # whether it is one of "auto" there

    def of_task(self, n_classes: int) -> bool:
        """Whether it is for so many classes, 0 for numbers."""
        return self.for_labels if n_classes else self.for_numbers


def _entries(training: TrainingSet) -> float:
    return float(training.view.Z.size)


def _of_kernels(training: TrainingSet) -> float:
    return 0.05 + 1e-3 * min(training.n, _ROWS_IN_FULL) + 1e-4 * training.n


def _of_forest(training: TrainingSet) -> float:
    return 0.1 + 5e-6 * _entries(training)


# In the order in which they are worth their time.
MEMBERS: dict[str, MemberKind] = {
    kind.make.name: kind
    for kind in (
        MemberKind(LogisticMember, True, False, 1.0, 300, lambda t: 0.05 + 1e-6 * _entries(t), most_rows=_rows_of_inputs),
        MemberKind(LinearMember, False, True, 1.0, 1000, lambda t: 0.05 + 1e-6 * _entries(t), most_rows=_rows_of_inputs),
        MemberKind(
            GaussianMember, True, True, 1.0, 1000, lambda t: 0.05 + 2e-6 * t.n * min(t.view.Z.shape[1], 200), lambda t: t.posterior is not None,
            most_rows=lambda t: _ROWS_OF_OTHERS, for_large=lambda t: False,
        ),
        MemberKind(
            KernelMember, True, True, 5.0, 0, _of_kernels,
            most_rows=lambda t: ROWS_OF_KERNELS, for_large=lambda t: t.view.latent is not None,
        ),
        MemberKind(BoostingMember, True, True, 6.0, 1000, seconds_of_boosting),
        MemberKind(
            ForestMember, True, True, 2.0, 300, _of_forest, most_rows=lambda t: _ROWS_OF_OTHERS, for_large=lambda t: False
        ),
    )
}  # fmt: skip


def members_of(*, labels: bool) -> list[str]:
    """Names of the members for labels, or for numbers."""
    return [name for name, kind in MEMBERS.items() if (kind.for_labels if labels else kind.for_numbers)]
