"""Matrix completion with labels: mc-1 of Goldberg et al., with a column of ones, and mc-b, with a bias.

The learners come first. Below them one partly observed matrix of features and labels is completed by fixed point
continuation: a step is a gradient step and a singular value threshold, and the weight mu of the nuclear norm falls from
value to value. In order: the matrix and its loss, low rank as two factors, the thresholds, the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, qr, svd
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from lacunar._latent import latent_rows
from lacunar._log import say, warn_user
from lacunar._products import row_product
from lacunar._random import fixed_seed, generator
from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Floats
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns
from lacunar.observed.door import (
    ScoreMixin,
    TakesMissing,
    check_classes,
    in_container,
    read_target,
    require_y,
    validate_X,
)
from lacunar.observed.rules import COLUMNS, COUNT, LABELS, Array, Flag, Number, Rule, Sometimes, floats

Loss = Literal["logistic", "squared"]
SvdSolver = Literal["auto", "full", "truncated"]
Score = Callable[[Floats, NDArray[np.bool_]], float]  # error of values (n, m) on the hidden labels

_LAMBDAS = (1e-3, 1e-2, 1e-1, 1.0)  # tried by Goldberg et al.
_HOLDOUT = 0.25  # share of the known rows that is hidden: the quarter of Hazan et al.
_FEWEST = 4  # known labels below which none is hidden
_PATIENCE = 3  # values of mu in a row with a larger error than before, after which smaller ones are not tried

_STEP = 0.95  # of 1 / Lipschitz constant: the 3.8 = 0.95 * 4 of Goldberg et al.

_FULL_WORK = 2e8  # n D min(n, D) up to which "auto" decomposes the whole matrix: some 20 ms a step
_ROWS = 256  # rows of the low-rank matrix that are written out at once
_ENTRIES = 4096  # entries whose factors are gathered at once
_SPARSER = 25  # one entry in so many cells: from there on gathering beats writing out rows (measured: equal at 4 %)
_SPARE = 8  # columns of a block beyond those wanted: they carry the directions that come next
_SWEEPS = 30

# A truncated decomposition is as exact as this share of the last step's change, and of at most this change: what it
# misses is found again from where it stopped.
_SHARE, _LOOSEST = 0.1, 1e-2

_RESOLVED = 1e-6  # relative change down to which inner products of factors tell it to a few digits
_WINDOW = 5  # steps whose largest change is compared with that of as many before, at least


class _MatrixCompletion(TakesMissing):
    """A stacked matrix of features and labels, completed with a small nuclear norm."""

    _schema: ClassVar[dict[str, Rule]] = {
        **COLUMNS,
        "classes_": Sometimes(LABELS),
        "components_": floats("k", "d"),
        "label_components_": floats("k", "o"),
        "ones_component_": floats("ones"),
        "bias_": floats("o"),
        "rank_": Number(whole=True, low=0, names="k"),
        **dict.fromkeys(("lam_", "mu_", "ridge_", "ones_weight_"), Number(low=0)),
        "n_iter_": COUNT,
        "transduction_": Array(LABELS.kinds, ("n",), finite=False),
    }
    _loss: ClassVar[Loss]
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "intercept": [StrOptions({"column", "bias"})],
        "lam": [Interval(Real, 0, None, closed="neither"), StrOptions({"holdout"})],
        "mu": [Interval(Real, 0, None, closed="neither"), StrOptions({"holdout"})],
        "mu_min": [Interval(Real, 0, None, closed="neither")],
        "eta": [Interval(Real, 0, 1, closed="neither")],
        "standardize": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "momentum": ["boolean"],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        intercept: Literal["column", "bias"] = "column",
        *,
        lam: Any = "holdout",
        mu: Any = "holdout",
        mu_min: float = 1e-5,
        eta: float = 0.25,
        standardize: bool = True,
        tol: float = 1e-5,
        max_iter: int = 1000,
        momentum: bool = True,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.intercept = intercept
        self.lam = lam
        self.mu = mu
        self.mu_min = mu_min
        self.eta = eta
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.momentum = momentum
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.verbose = verbose

    def _table(self, X: Any, y: Any) -> Observed:
        """The table of X for `fit`, which needs a y."""
        require_y(self, y, "Pass NaN for unlabelled rows.")
        return validate_X(self, X, reset=True, sparse_missing=self.sparse_missing)

    def _complete(self, table: Observed, labels: Floats, hide: NDArray[np.bool_] | None, score: Score) -> Floats:
        """Fit to a table and labels (n, m) with NaN where unknown; `hide` (n,) are the rows to choose lambda
        and mu on.
        """
        columns = fit_columns(table, np.ones(table.shape[0]), standardize=self.standardize)
        self.mean_, self.scale_, self.observed_columns_ = columns
        stacked = Stacked(scale_columns(table, columns), labels, self._loss, self.intercept == "column", 1.0)
        rng = generator(fixed_seed(self.random_state))
        self.lam_, self.mu_ = self._choose(stacked, hide, score, rng)
        final = replace(stacked, lam=self.lam_)
        solution = list(self._walk(final, self.mu_, rng))[-1]
        if not solution.converged:
            share = f"{solution.distance:.2g} of its norm"
            distance = (
                f"the matrix is about {share} from the solution" if self.momentum else f"its last step was {share}"
            )
            warn_user(
                f"{type(self).__name__} stopped at max_iter={self.max_iter} for mu={self.mu_:.3g}: {distance}, "
                f"tol={self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
            )
        self._keep(final, solution)
        return values_of(final, solution)

    def _walk(self, stacked: Stacked, smallest: float, rng: np.random.Generator) -> Iterator[Solution]:
        """Solutions down to mu = `smallest`."""
        solver: SvdSolver = "auto" if self.momentum else "full"
        first = largest_mu(stacked, make_threshold(stacked.shape, solver, 1, rng))
        threshold = make_threshold(stacked.shape, solver, None, rng)
        mus = mu_path(first, smallest, self.eta)
        for solution in continuation(stacked, mus, threshold, self.tol, self.max_iter, momentum=self.momentum):
            shown = type(self).__name__, stacked.lam, solution.mu, len(solution.matrix.sizes), solution.n_iter
            say(self.verbose, "%s lambda %g, mu %.3g: rank %d, %d steps, %.2g left", *shown, solution.distance)
            yield solution

    def _choose(
        self, stacked: Stacked, hide: NDArray[np.bool_] | None, score: Score, rng: np.random.Generator
    ) -> tuple[float, float]:
        """lambda and mu of least error on the hidden labels, whose features stay in the matrix."""
        lams = _LAMBDAS if self.lam == "holdout" else (float(self.lam),)
        floor = float(self.mu_min if self.mu == "holdout" else self.mu)
        if "holdout" not in (self.lam, self.mu):
            return lams[0], floor
        if hide is None:
            return lams[len(lams) // 2], floor
        labels = np.where(hide[:, None], np.nan, stacked.labels)
        best, chosen = np.inf, (lams[0], floor)
        for lam in lams:
            errors: list[float] = []
            for solution in self._walk(replace(stacked, labels=labels, lam=lam), floor, rng):
                if self.mu != "holdout" and solution.mu > floor:
                    continue
                errors.append(score(values_of(stacked, solution), hide))
                if errors[-1] < best:
                    best, chosen = errors[-1], (lam, solution.mu)
                if self.mu == "holdout" and min(errors[-_PATIENCE:]) > min(errors):
                    break
        return chosen

    def _hidden(self, known: NDArray[np.bool_], y_encoded: NDArray[np.intp] | None) -> NDArray[np.bool_] | None:
        """A share of the known rows, of every class (`y_encoded`) where classes allow; None when there are too few to hide
        any.
        """
        from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit  # imports rich: not at import time

        index = np.flatnonzero(known)
        count = round(_HOLDOUT * len(index))
        if len(index) < _FEWEST or count < 1 or count >= len(index):
            return None
        groups = None if y_encoded is None else y_encoded[index]
        fewest = min(count, len(index) - count)
        stratified = groups is not None and np.bincount(groups).min() >= 2 and fewest > groups.max()
        splitter = StratifiedShuffleSplit if stratified else ShuffleSplit
        _, test = next(splitter(1, test_size=count, random_state=fixed_seed(self.random_state)).split(index, groups))
        hide = np.zeros(len(known), dtype=bool)
        hide[index[test]] = True
        return hide

    def _keep(self, stacked: Stacked, solution: Solution) -> None:
        """Rows of the column factors, scaled so that a row's latent coordinates are ridge regression on them."""
        d, m, matrix = stacked.rows.shape[1], stacked.labels.shape[1], solution.matrix
        factors = np.ascontiguousarray((matrix.right * np.sqrt(matrix.sizes)).T)
        self.components_, self.label_components_ = factors[:, :d], factors[:, d : d + m]
        self.bias_, self.ridge_ = solution.bias, solution.mu * stacked.n_entries
        # Weight 1 / step against 1 / |Omega_X| of a feature: a longer entry of a longer row.
        self.ones_component_ = factors[:, d + m] if stacked.ones else np.zeros(0)
        self.ones_weight_ = float(np.sqrt(stacked.n_entries / stacked.step)) if stacked.ones else 0.0
        self.rank_, self.n_iter_ = len(matrix.sizes), solution.n_iter

    def _check_loaded(self) -> None:
        """The column of ones has coordinates where the model has such a column, and nowhere else; no rank is larger
        than the completed matrix.
        """
        if "components_" not in vars(self):
            return
        most = self.components_.shape[1] + self.label_components_.shape[1] + 1  # columns, labels and ones
        if len(self.components_) > most:
            raise ValueError(f"components_ must have at most {most} rows; got {len(self.components_)}. Fit again")
        wish = len(self.components_) if self.intercept == "column" else 0
        if len(self.ones_component_) != wish:
            raise ValueError(f"ones_component_ must be {wish} numbers; got {len(self.ones_component_)}. Fit again")

    def _latent(self, X: Any) -> tuple[Observed, Floats]:
        check_is_fitted(self, "components_")
        table = validate_X(self, X, reset=False, sparse_missing=self.sparse_missing)
        if self.rank_ == 0:
            return table, np.zeros((table.shape[0], 0))
        rows = scale_columns(table, ColumnScale(self.mean_, self.scale_, self.observed_columns_))
        basis = self.components_.T
        if self.intercept == "column":
            rows = _with_last(rows, self.ones_weight_)
            basis = np.vstack([basis, self.ones_weight_ * self.ones_component_])
        return table, latent_rows(rows, basis, self.ridge_).latent

    def _values(self, X: Any) -> Floats:
        """Values (n, m) of the labels of unseen rows."""
        return row_product(self._latent(X)[1], self.label_components_) + self.bias_

    def impute(self, X: Any) -> Any:
        """Rows with missing entries completed against the learned row space; observed entries stay.
        O(nnz rank^2).

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Rows.

        Returns
        -------
        rows : ndarray of shape (n, d)
        """
        table, latent = self._latent(X)
        completed: Floats = row_product(latent, self.components_) * self.scale_ + self.mean_
        completed[table.row_numbers, table.indices] = table.values
        return in_container(self, completed, X)


@whole_answers
class MatrixCompletionClassifier(ScoreMixin, ClassifierMixin, _MatrixCompletion):
    """mc-1 and mc-b: labels as further columns of a partly observed matrix of low rank.

    Minimises mu ||Z||_* + lam / |Omega_Y| sum log(1 + exp(-y z)) + 1 / |Omega_X| sum (x - z)^2 / 2
    over matrices Z of features and labels by fixed point continuation [1]_. It is transductive:
    rows to predict belong into `fit`, with NaN (or None) for a label.

    Parameters
    ----------
    intercept : {"column", "bias"}, default="column"
        "column" is mc-1: the matrix has a column of ones, reset to 1 after every step. "bias" is
        mc-b: every label has a bias of its own, moved by gradient steps of length 3.8 |Omega_Y| /
        (lam n).
    lam : float or "holdout", default="holdout"
        Weight of the labels' mean loss against the features', > 0. "holdout" tries 1e-3 to 1 by
        decades, on a quarter of the known rows that is hidden; their features stay in the matrix.
        With fewer than 4 such rows nothing is hidden, and "holdout" means 0.1 and `mu_min`.
    mu : float or "holdout", default="holdout"
        Weight of the nuclear norm, > 0, on the scale of mean losses. "holdout" reads it off the
        continuation.
    mu_min : float, default=1e-5
        Where the continuation ends under "holdout".
    eta : float, default=0.25
        Factor between two values of mu, in (0, 1).
    standardize : bool, default=True
        Subtract the mean of each column and divide by its standard deviation, over observed
        entries.
    tol : float, default=1e-5
        Distance to the solution, relative to the norm of the matrix, at which the steps at one mu
        end: estimated from how fast the changes of the steps fall.
    max_iter : int, default=1000
        Most steps at one mu.
    momentum : bool, default=True
        Whether a step starts from beyond the last iterate (Nesterov). False makes the printed
        steps, by full decompositions; `tol` is then the relative change of the matrix in a step,
        which says nothing of the distance to the solution. Neither [1]_ nor [2]_ says that columns
        were standardised (`standardize=False`).
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Which labels are hidden, and where block iteration starts. None is a fixed draw.
    verbose : int, default=0
        Whether to report every mu.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Known labels, sorted.
    transduction_ : ndarray of shape (n,)
        Label that the completed matrix gives to every row of `fit`, known ones included.
    lam_, mu_ : float
        The weights used.
    rank_ : int
        Of the completed matrix.
    components_ : ndarray of shape (rank, d)
        Column factors of the standardised features: right singular vectors times roots of singular
        values.
    label_components_ : ndarray of shape (rank, m)
        The same of the labels.
    ones_component_ : ndarray of shape (rank,) or (0,)
        The same of the column of ones, where there is one.
    ones_weight_ : float
        Length of the entry 1 in a row, against 1 of a feature; 0 under `intercept="bias"`.
    bias_ : ndarray of shape (m,)
        Of every label; zeros under `intercept="column"`.
    ridge_ : float
        mu times the number of observed entries: the ridge of a row's latent coordinates.
    mean_, scale_, observed_columns_ : ndarrays of shape (d,)
    n_iter_ : int
        Steps at the last mu.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        In `fit`: infinite entries or labels, no known label. In `predict`: other columns than in
        `fit`.

    Warns
    -----
    ConvergenceWarning
        The steps at the last mu ended at `max_iter`.

    See Also
    --------
    lacunar.KarmaClassifier : Classifies without completing anything.

    Notes
    -----
    Two classes are one label column, more are the 0/1 matrix of [2]_ under the same logistic loss.
    Unlike in `sklearn.semi_supervised`, -1 is a class: write ``np.where(y == -1, np.nan, y)`` where
    it means unknown. mc-1 is usually better than mc-b where columns are not centred.

    [1]_ resets the column of ones to 1 after every threshold, which they call a projection. The
    labels and features that follow are those of an ordinary proximal step with the ones observed
    under weight 1/(2 step), the step being min(3.8 |Omega_Y| / lam, |Omega_X|): that problem is
    what is solved, and the weight is the only trace of the step.

    Momentum is reset where it points back: the same fixed point in fewer steps, which is why
    it is the default; the problem, its weights and what is learned from the
    solution are the same without. Singular vectors of matrices of up to 2e8 = n D min(n, D) are
    those of a full decomposition; larger ones are never written out: a block of vectors is iterated
    from those of the step before. A step costs O(n d min(n, d)) and O(n d) memory, or O(nnz rank +
    (n + d) rank^2) and O(nnz + (n + d) rank).

    Unseen rows are our extension; [1]_ predicts rows of the matrix only. With Z = P Q' split
    evenly, the fixed point makes every unlabelled row of P the ridge regression of the row's
    entries on rows of Q with ridge mu |Omega_X|: `predict` does the same for a row that was not
    there, so that it agrees with `transduction_` for one that was, unlabelled.

    References
    ----------
    .. [1] A. Goldberg, X. Zhu, B. Recht, J.-M. Xu, R. Nowak, "Transduction with Matrix Completion:
       Three Birds with One Stone", NIPS 2010.
    .. [2] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, sections 1 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.karma import MatrixCompletionClassifier
    >>> X = np.array(
    ...     [[2.0, 2.1], [1.5, np.nan], [-1.0, -1.2], [np.nan, -2.0], [1.0, np.nan], [-1.0, np.nan]]
    ... )
    >>> y = np.array(["yes", "yes", "no", "no", None, None])
    >>> model = MatrixCompletionClassifier(lam=1.0, mu=0.01).fit(X, y)
    >>> model.transduction_[4:], model.predict([[np.nan, 3.0]])
    (array(['yes', 'no'], dtype='<U3'), array(['yes'], dtype='<U3'))
    """

    _loss: ClassVar[Loss] = "logistic"

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Complete a table and its labels.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Labelled rows and those to predict.
        y : array-like of shape (n,)
            Numbers or strings; NaN, None or NA where unknown.

        Returns
        -------
        self
        """
        table = self._table(X, y)
        target, known = read_target(y, unknown="some")
        check_consistent_length(table, target)
        check_classes(target, known)
        self.classes_, known_encoded = np.unique(target[known], return_inverse=True)
        y_encoded = np.zeros(len(target), dtype=np.intp)
        y_encoded[known] = known_encoded
        labels = np.full((len(target), 1 if len(self.classes_) <= 2 else len(self.classes_)), np.nan)
        labels[known] = (known_encoded[:, None] == self._columns()).astype(np.float64)
        if len(self.classes_) == 1:
            labels[known] = 0.5  # whose log odds are 0: a constant predictor, and no bias that grows for ever
        hide = self._hidden(known, y_encoded)

        def score(values: Floats, hidden: NDArray[np.bool_]) -> float:
            return float(np.mean(self._decide(values[hidden]) != y_encoded[hidden]))

        self.transduction_ = self.classes_[self._decide(self._complete(table, labels, hide, score))]
        return self

    def _columns(self) -> NDArray[np.intp]:
        """Class that every label column says yes to."""
        n_classes = len(self.classes_)
        return np.arange(n_classes) if n_classes > 2 else np.array([n_classes - 1])

    def _decide(self, values: Floats) -> NDArray[np.intp]:
        if values.shape[1] > 1:
            return np.asarray(values.argmax(axis=1), dtype=np.intp)
        return np.where(values[:, 0] > 0, len(self.classes_) - 1, 0)

    def decision_function(self, X: Any) -> Floats:
        """Values of the classes for unseen rows; for two classes one value, positive for
        `classes_[1]`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        values : ndarray of shape (m,) or (m, k)
            Log odds under the logistic loss.
        """
        values = self._values(X)
        return values if values.shape[1] > 1 else values[:, 0]

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of every unseen row, completed against the learned row space.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        labels : ndarray of shape (m,)
        """
        values = self._values(X)
        return self.classes_[self._decide(values)]


@whole_answers
class MatrixCompletionRegressor(ScoreMixin, RegressorMixin, _MatrixCompletion):
    """mc-1 and mc-b for numbers: targets as further columns of a partly observed matrix of low
    rank, under squared loss.

    Minimises mu ||Z||_* + lam / |Omega_Y| sum (y - z)^2 / 2 + 1 / |Omega_X| sum (x - z)^2 / 2 over
    matrices Z of features and targets by fixed point continuation [1]_, [2]_. It is transductive:
    rows to predict belong into `fit`, with NaN for a target. Targets are standardised over the
    known ones.

    Parameters
    ----------
    intercept : {"column", "bias"}, default="column"
        "column" is mc-1: the matrix has a column of ones, reset to 1 after every step. "bias" is
        mc-b: every target has a bias of its own, moved by gradient steps of length 0.95 |Omega_Y| /
        (lam n).
    lam : float or "holdout", default="holdout"
        Weight of the targets' mean loss against the features', > 0. "holdout" tries 1e-3 to 1 by
        decades, on a quarter of the known rows that is hidden; their features stay in the matrix.
        With fewer than 4 such rows nothing is hidden, and "holdout" means 0.1 and `mu_min`.
    mu : float or "holdout", default="holdout"
        Weight of the nuclear norm, > 0, on the scale of mean losses. "holdout" reads it off the
        continuation.
    mu_min : float, default=1e-5
        Where the continuation ends under "holdout".
    eta : float, default=0.25
        Factor between two values of mu, in (0, 1).
    standardize : bool, default=True
        Subtract the mean of each column and divide by its standard deviation, over observed
        entries.
    tol : float, default=1e-5
        Distance to the solution, relative to the norm of the matrix, at which the steps at one mu
        end: estimated from how fast the changes of the steps fall.
    max_iter : int, default=1000
        Most steps at one mu.
    momentum : bool, default=True
        Whether a step starts from beyond the last iterate (Nesterov). False makes the printed
        steps, by full decompositions; `tol` is then the relative change of the matrix in a step,
        which says nothing of the distance to the solution. Neither [1]_ nor [2]_ says that columns
        were standardised (`standardize=False`).
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Which targets are hidden, and where block iteration starts. None is a fixed draw.
    verbose : int, default=0
        Whether to report every mu.

    Attributes
    ----------
    transduction_ : ndarray of shape (n,) or (n, targets)
        What the completed matrix gives to every row of `fit`, known ones included.
    target_mean_, target_scale_ : ndarrays of shape (targets,)
    lam_, mu_ : float
        The weights used.
    rank_ : int
        Of the completed matrix.
    components_ : ndarray of shape (rank, d)
        Column factors of the standardised features: right singular vectors times roots of singular
        values.
    label_components_ : ndarray of shape (rank, targets)
        The same of the targets.
    ones_component_ : ndarray of shape (rank,) or (0,)
        The same of the column of ones, where there is one.
    ones_weight_ : float
        Length of the entry 1 in a row, against 1 of a feature; 0 under `intercept="bias"`.
    bias_ : ndarray of shape (targets,)
        Of every target, standardised; zeros under `intercept="column"`.
    ridge_ : float
        mu times the number of observed entries: the ridge of a row's latent coordinates.
    mean_, scale_, observed_columns_ : ndarrays of shape (d,)
    n_iter_ : int
        Steps at the last mu.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        In `fit`: infinite entries or targets, a target that is known nowhere. In `predict`: other
        columns than in `fit`.

    Warns
    -----
    ConvergenceWarning
        The steps at the last mu ended at `max_iter`.

    See Also
    --------
    MatrixCompletionClassifier : The same for labels; its notes on steps, costs and unseen rows hold
        here.
    lacunar.lowrank.SLRMRegressor : A noise model in place of the nuclear norm; takes NaN in y, too.

    Notes
    -----
    The weight 1/(2 step) of the column of ones is that of the step min(0.95 |Omega_Y| / lam,
    |Omega_X|).

    References
    ----------
    .. [1] A. Goldberg, X. Zhu, B. Recht, J.-M. Xu, R. Nowak, "Transduction with Matrix Completion:
       Three Birds with One Stone", NIPS 2010.
    .. [2] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, sections 1 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.karma import MatrixCompletionRegressor
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(200, 2))
    >>> X = a @ rng.normal(size=(2, 10))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> y = np.where(np.arange(200) < 100, a[:, 0], np.nan)
    >>> model = MatrixCompletionRegressor(random_state=0).fit(X, y)
    >>> bool(np.mean((model.transduction_[100:] - a[100:, 0]) ** 2) < 0.05)
    True
    """

    _schema: ClassVar[dict[str, Rule]] = {
        **_MatrixCompletion._schema,
        "one_target_": Flag(),
        "target_mean_": floats("o"),
        "target_scale_": floats("o"),
        "transduction_": Array("f", ("n",), finite=False),
    }
    _loss: ClassVar[Loss] = "squared"

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Complete a table and its targets.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Rows with a target and those to predict.
        y : array-like of shape (n,) or (n, targets)
            NaN where unknown.

        Returns
        -------
        self
        """
        table = self._table(X, y)
        target = read_target(y, y_numeric=True, multi_output=True, unknown="some").values
        check_consistent_length(table, target)
        self.one_target_, target = target.ndim == 1, target.reshape(len(target), -1)
        self.target_mean_, spread = np.nanmean(target, axis=0), np.nanstd(target, axis=0)
        self.target_scale_ = np.where(spread > 0, spread, 1.0)
        labels = (target - self.target_mean_) / self.target_scale_
        hide = self._hidden(~np.isnan(labels).all(axis=1), None)

        def score(values: Floats, hidden: NDArray[np.bool_]) -> float:
            return float(np.nanmean(np.square(values - labels)[hidden]))

        self.transduction_ = self._in_units(self._complete(table, labels, hide, score))
        return self

    def _in_units(self, values: Floats) -> Floats:
        predicted: Floats = values * self.target_scale_ + self.target_mean_
        return predicted[:, 0] if self.one_target_ else predicted

    def predict(self, X: Any) -> Floats:
        """Targets of unseen rows, completed against the learned row space.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        y : ndarray of shape (m,) or (m, targets)
        """
        return self._in_units(self._values(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _with_last(rows: Observed, value: float) -> Observed:
    """One more column, observed everywhere."""
    ends = rows.indptr[1:]
    return Observed(
        rows.indptr + np.arange(rows.shape[0] + 1),
        np.insert(rows.indices, ends, rows.shape[1]),
        np.insert(rows.values.astype(np.float64), ends, value),
        (rows.shape[0], rows.shape[1] + 1),
    )


@dataclass(frozen=True)
class Stacked:
    """Rows [features (d), labels (m), ones (0 or 1)]; the last m + [ones] columns are the block, held dense.

    The column of ones of mc-1 is reset to 1 after every threshold. The gradient step then starts from 1, as it would
    end there for an observed entry of weight 1 / step: the reset is that entry, and no other case.
    """

    rows: Observed  # (n, d)
    labels: Floats  # (n, m), NaN where unknown; 0 and 1 under the logistic loss
    loss: Loss
    ones: bool
    lam: float

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the whole matrix."""
        return self.rows.shape[0], self.rows.shape[1] + self.labels.shape[1] + self.ones

    @property
    def n_entries(self) -> int:
        """|Omega_X|, at least 1."""
        return max(self.rows.nnz, 1)

    @property
    def label_weight(self) -> float:
        """lambda / |Omega_Y|."""
        return self.lam / max(int(np.count_nonzero(~np.isnan(self.labels))), 1)

    @property
    def step(self) -> float:
        """tau_Z: the smaller of what labels and features allow."""
        return min(_STEP / (self.label_weight * self._curvature), float(self.n_entries))

    @property
    def bias_step(self) -> float:
        """tau_b: a bias meets at most n labels."""
        return _STEP / (self.label_weight * self._curvature * max(self.rows.shape[0], 1))

    @property
    def _curvature(self) -> float:
        return 0.25 if self.loss == "logistic" else 1.0

    def gradient(self, entries: Floats, block: Floats, bias: Floats) -> Gradient:
        """Of the loss at a matrix with these observed entries (nnz,) and this block (n, m + [ones])."""
        m = self.labels.shape[1]
        value = block[:, :m] + bias
        fitted = expit(value) if self.loss == "logistic" else value
        block_gradient = np.zeros_like(block)
        block_gradient[:, :m] = np.nan_to_num(fitted - self.labels) * self.label_weight
        if self.ones:
            block_gradient[:, m] = (block[:, m] - 1.0) / self.step
        return Gradient((entries - self.rows.values) / self.n_entries, block_gradient)


class Gradient(NamedTuple):
    """Gradient of the loss: its entries on observed features, and the block of the last columns; zero elsewhere."""

    entries: Floats  # (nnz,)
    block: Floats  # (n, m + [ones])


class Factored(NamedTuple):
    """left @ right.T, `right` orthonormal after a threshold; `sizes` its singular values, `start` the next block."""

    left: Floats  # (n, r)
    right: Floats  # (D, r)
    sizes: Floats  # (r,)
    start: Floats | None  # (D, k >= r)

    @classmethod
    def zero(cls, shape: tuple[int, int]) -> Factored:
        return cls(np.zeros((shape[0], 0)), np.zeros((shape[1], 0)), np.zeros(0), None)

    def at(self, rows: Observed) -> Floats:
        """Values (nnz,) at the observed cells: entry by entry where few are, else a few whole rows at a time."""
        values, right = np.empty(rows.nnz), self.right[: rows.shape[1]]
        line = rows.row_numbers
        if rows.nnz * _SPARSER < rows.shape[0] * rows.shape[1]:
            for start in range(0, rows.nnz, _ENTRIES):
                part = slice(start, start + _ENTRIES)
                np.einsum("ij,ij->i", self.left[line[part]], right[rows.indices[part]], out=values[part])
            return values
        basis = np.ascontiguousarray(right.T)
        for start in range(0, rows.shape[0], _ROWS):
            part = slice(*rows.indptr[[start, min(start + _ROWS, rows.shape[0])]])
            values[part] = (self.left[start : start + _ROWS] @ basis)[line[part] - start, rows.indices[part]]
        return values

    def inner(self, other: Factored) -> float:
        """Sum of products of the entries. O((n + D) r^2)."""
        return float(np.sum((self.left.T @ other.left) * (self.right.T @ other.right)))

    def beyond(self, before: Factored, share: float) -> Factored:
        """self + share (self - before); its `sizes` are those of self."""
        left = np.hstack([(1 + share) * self.left, -share * before.left])
        return Factored(left, np.hstack([self.right, before.right]), self.sizes, self.start)


def cores(*matrices: Factored) -> list[Floats]:
    """Small matrices A_i with matrix_i = P A_i Q', P and Q orthonormal and common to all.

    Differences of the small ones are exact to rounding; inner products of the factors lose half of the digits.
    """
    ends = np.cumsum([0, *(matrix.left.shape[1] for matrix in matrices)])
    left, right = (
        qr(np.hstack(sides), mode="r", check_finite=False)[0]
        for sides in ([matrix.left for matrix in matrices], [matrix.right for matrix in matrices])
    )
    return [left[:, a:b] @ right[:, a:b].T for a, b in pairwise(ends)]


class Moved:
    """Z - step * gradient: low rank, sparse on the features and dense in the last few columns; never written out."""

    def __init__(self, base: Factored, rows: Observed, entries: Floats, block: Floats) -> None:
        """`entries` (nnz,) and `block` (n, e) are what is added to `base`."""
        self.base, self.block = base, block
        self.sparse = sp.csr_array((entries, rows.indices, rows.indptr), shape=rows.shape)
        self.shape = rows.shape[0], rows.shape[1] + block.shape[1]

    def times(self, right: Floats) -> Floats:
        """(n, k) of right (D, k)."""
        d = self.sparse.shape[1]
        product: Floats = self.base.left @ (self.base.right.T @ right)
        product += self.sparse @ right[:d] + self.block @ right[d:]
        return product

    def transposed_times(self, left: Floats) -> Floats:
        """(D, k) of left (n, k)."""
        product: Floats = self.base.right @ (self.base.left.T @ left)
        product += np.vstack([self.sparse.T @ left, self.block.T @ left])
        return product

    def dense(self) -> Floats:
        """Written out, for small matrices."""
        full: Floats = self.base.left @ self.base.right.T
        full[:, : self.sparse.shape[1]] += self.sparse.toarray()
        full[:, self.sparse.shape[1] :] += self.block
        return full


Threshold = Callable[[Moved, float, float], Factored]  # of a matrix, a level and an accuracy


def threshold_exactly(matrix: Moved, level: float, accuracy: float, *, max_rank: int) -> Factored:
    """Singular values less `level`. O(n D min(n, D)).

    From the eigenvectors of the smaller Gram, where the digits that lie between the largest singular value and `level`
    leave enough for `accuracy` (relative to the largest), else from a singular value decomposition, some five times the
    work.
    """
    full = matrix.dense()
    tall = full.shape[0] >= full.shape[1]
    gram = full.T @ full if tall else full @ full.T
    values, vectors = eigh(gram, check_finite=False)
    sizes = np.sqrt(np.maximum(values, 0.0))[::-1][:max_rank]
    if np.finfo(float).eps * sizes[0] > accuracy * level:
        return _by_svd(full, level, max_rank)
    above = sizes > level
    sizes, vectors = sizes[above], vectors[:, ::-1][:, : len(above)][:, above]
    if tall:
        return Factored(full @ vectors * (1 - level / sizes), vectors, sizes - level, None)
    return Factored(vectors * (sizes - level), full.T @ vectors / sizes, sizes - level, None)


def _by_svd(full: Floats, level: float, max_rank: int) -> Factored:
    left, sizes, right = svd(full, full_matrices=False, check_finite=False)
    above = sizes[:max_rank] > level
    left, sizes, right = left[:, : len(above)][:, above], sizes[: len(above)][above], right[: len(above)][above].T
    return Factored(left * (sizes - level), right, sizes - level, None)


def threshold_truncated(
    matrix: Moved, level: float, accuracy: float, *, max_rank: int, rng: np.random.Generator
) -> Factored:
    """The same from products with the matrix: block iteration from the last step's directions, widened until enough.

    `accuracy` is what a sweep may still change in a singular value, relative to the largest. O((nnz + (n + D) r) k) a
    sweep.
    """
    most = min(matrix.shape)
    start = matrix.base.start
    width = min(_SPARE, most) if start is None else start.shape[1]
    start = rng.normal(size=(matrix.shape[1], width)) if start is None else start
    while True:
        left, sizes, right = _block_iteration(matrix, start, level, accuracy)
        rank = int(np.count_nonzero(sizes > level))
        if rank >= max_rank or len(sizes) == most or rank + _SPARE // 2 <= len(sizes):
            break
        wider = min(len(sizes) + max(_SPARE, len(sizes) // 2), most, max_rank + _SPARE)
        if wider == len(sizes):
            break
        start = np.hstack([right, rng.normal(size=(matrix.shape[1], wider - len(sizes)))])
    rank, following = min(rank, max_rank), right[:, : rank + 2 * _SPARE]
    return Factored(left[:, :rank] * (sizes[:rank] - level), right[:, :rank], sizes[:rank] - level, following)


def _block_iteration(matrix: Moved, start: Floats, level: float, accuracy: float) -> tuple[Floats, Floats, Floats]:
    right, before = start, np.zeros(start.shape[1])
    for _ in range(_SWEEPS):
        left, _ = qr(matrix.times(right), mode="economic", check_finite=False)
        right, sizes, turn = svd(matrix.transposed_times(left), full_matrices=False, check_finite=False)
        n_above = max(int(np.count_nonzero(sizes > level)), 1)  # what is below converges slowest, and is cut off
        if np.abs(sizes - before)[:n_above].max() <= accuracy * max(sizes[0], 1e-300):
            break
        before = sizes
    return left @ turn.T, sizes, right


class Iterate(NamedTuple):
    """The unknowns, and what the loss sees of them; all but `inner` is linear."""

    matrix: Factored
    bias: Floats  # (m,)
    entries: Floats  # (nnz,)
    block: Floats  # (n, m + [ones])

    @classmethod
    def of(cls, stacked: Stacked, matrix: Factored, bias: Floats) -> Iterate:
        """The iterate of a matrix and a bias, with the observed cells of the matrix."""
        block = matrix.left @ matrix.right[stacked.rows.shape[1] :].T
        return cls(matrix, bias, matrix.at(stacked.rows), block)

    def beyond(self, before: Iterate, share: float) -> Iterate:
        """self + share (self - before)."""
        bias, entries, block = (
            (1 + share) * now - share * then for now, then in zip(self[1:], before[1:], strict=True)
        )
        return Iterate(self.matrix.beyond(before.matrix, share), bias, entries, block)

    def inner(self, other: Iterate) -> float:
        return self.matrix.inner(other.matrix) + float(self.bias @ other.bias)


class Solution(NamedTuple):
    """Where the continuation stands after the steps at one mu."""

    mu: float
    matrix: Factored
    bias: Floats  # (m,)
    n_iter: int
    distance: float  # relative: to the fixed point as estimated or, without momentum, the change of the last step
    converged: bool


def values_of(stacked: Stacked, solution: Solution) -> Floats:
    """Values (n, m) of the labels, bias included."""
    d, m = stacked.rows.shape[1], stacked.labels.shape[1]
    return solution.matrix.left @ solution.matrix.right[d : d + m].T + solution.bias


def make_threshold(
    shape: tuple[int, int], svd_solver: SvdSolver, max_rank: int | None, rng: np.random.Generator
) -> Threshold:
    """How a matrix of this shape is decomposed, at most `max_rank` singular values of it kept."""
    most = min(shape) if max_rank is None else min(max_rank, *shape)
    work = float(shape[0]) * shape[1] * min(shape)
    if svd_solver == "full" or (svd_solver == "auto" and work <= _FULL_WORK):
        return partial(threshold_exactly, max_rank=most)
    return partial(threshold_truncated, max_rank=most, rng=rng)


def largest_mu(stacked: Stacked, threshold: Threshold) -> float:
    """The least mu at which the matrix is zero: the largest singular value of the gradient there.

    `threshold` need keep one singular value only.
    """
    zero = Iterate.of(stacked, Factored.zero(stacked.shape), np.zeros(stacked.labels.shape[1]))
    slope = stacked.gradient(zero.entries, zero.block, zero.bias)
    moved = threshold(Moved(zero.matrix, stacked.rows, slope.entries, slope.block), 0.0, _SHARE * _LOOSEST)
    return float(moved.sizes.max(initial=0.0))


def mu_path(largest: float, smallest: float, eta: float) -> Iterator[float]:
    """largest * eta, largest * eta^2, ... and `smallest`."""
    mu = largest * eta
    while mu > smallest:
        yield mu
        mu *= eta
    yield smallest


def continuation(
    stacked: Stacked, mus: Iterator[float], threshold: Threshold, tol: float, max_iter: int, *, momentum: bool = True
) -> Iterator[Solution]:
    """Solutions along falling mu, each started from the one before, of at most `max_iter` steps each.

    A step is Z <- S_{step mu}(Z - step grad); without a column of ones also b <- b - bias_step grad_b, from the same
    gradient. It starts from beyond the last iterate (Nesterov), momentum reset where it points back, and steps end
    where the distance to the solution is `tol`. Without momentum, as Goldberg et al. and Hazan et al. print it, `tol`
    is the change of a step.
    """
    solution = Solution(np.inf, Factored.zero(stacked.shape), np.zeros(stacked.labels.shape[1]), 0, np.inf, False)
    for mu in mus:
        yield (solution := _solve(stacked, solution, mu, threshold, tol, max_iter, momentum))


def _solve(
    stacked: Stacked, start: Solution, mu: float, threshold: Threshold, tol: float, max_iter: int, momentum: bool
) -> Solution:
    """The solution after the steps at one mu."""
    before = here = point = Iterate.of(stacked, start.matrix, start.bias)
    weight, change, changes, distance = 1.0, np.inf, list[float](), np.inf
    while len(changes) < max_iter and distance > tol:
        accuracy = _SHARE * min(max(change, tol), _LOOSEST)
        # Matrix and bias move together under one label: with momentum, half a step each.
        length = 1.0 if stacked.ones or not momentum else 0.5
        after = _step(stacked, point, mu, threshold, accuracy, length)
        changes.append(change := _change(here, after))
        distance = distance_left(changes) if momentum else change
        before, here = here, after
        if not momentum:
            point = here
            continue
        if _turns_back(point, here, before, change):
            weight = 1.0
        following = (1 + np.sqrt(1 + 4 * weight**2)) / 2
        share, weight = (weight - 1) / following, following
        point = here.beyond(before, share)
    return Solution(mu, here.matrix, here.bias, len(changes), distance, distance <= tol)


def distance_left(changes: list[float]) -> float:
    """An estimate of the distance to the fixed point: what the changes of steps to come add up to, from those so far.

    Changes fall like a geometric series in the end, though not from step to step under momentum: the largest of the
    last quarter of the steps is compared with the largest of the quarter before. Infinite while they do not fall.
    """
    window = max(len(changes) // 4, _WINDOW)
    if len(changes) < 2 * window:
        return np.inf if changes[-1] > 0 else 0.0
    now, then = max(changes[-window:]), max(changes[-2 * window : -window])
    return now if now == 0 else window * now * now / (then - now) if now < then else np.inf


def _step(stacked: Stacked, point: Iterate, mu: float, threshold: Threshold, accuracy: float, length: float) -> Iterate:
    m = stacked.labels.shape[1]
    slope = stacked.gradient(point.entries, point.block, point.bias)
    step, bias_step = length * stacked.step, 0.0 if stacked.ones else length * stacked.bias_step
    moved = Moved(point.matrix, stacked.rows, -step * slope.entries, -step * slope.block)
    bias = point.bias - bias_step * slope.block[:, :m].sum(axis=0)
    return Iterate.of(stacked, threshold(moved, step * mu, accuracy), bias)


def _change(before: Iterate, after: Iterate) -> float:
    """Relative change of matrix or bias."""
    size = max(float(np.linalg.norm(before.matrix.sizes)), 1.0)
    squared = float(np.sum(before.matrix.sizes**2)) + float(np.sum(after.matrix.sizes**2))
    moved = float(np.sqrt(max(squared - 2 * before.matrix.inner(after.matrix), 0.0)))
    if moved < _RESOLVED * size:
        moved = float(np.linalg.norm(np.subtract(*cores(before.matrix, after.matrix))))
    shift, bias = (float(np.abs(b).max(initial=0.0)) for b in (after.bias - before.bias, before.bias))
    return max(moved / size, shift / max(bias, 1.0))


def _turns_back(point: Iterate, here: Iterate, before: Iterate, change: float) -> bool:
    """Whether <point - here, here - before> > 0: momentum points away from where the gradient leads [O'Donoghue,
    Candes].
    """
    if change >= _RESOLVED:
        return point.inner(here) - point.inner(before) - here.inner(here) + here.inner(before) > 0
    A, B, C = cores(point.matrix, here.matrix, before.matrix)
    return float(np.sum((A - B) * (B - C))) + float((point.bias - here.bias) @ (here.bias - before.bias)) > 0
