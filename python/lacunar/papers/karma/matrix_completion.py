"""Matrix completion with labels: mc-1 of Goldberg et al., with a column of ones, and mc-b, with a bias."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
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
from lacunar.papers.karma.continuation import (
    Loss,
    Solution,
    Stacked,
    SvdSolver,
    continuation,
    largest_mu,
    make_threshold,
    mu_path,
    values_of,
)

Score = Callable[[Floats, NDArray[np.bool_]], float]  # error of values (n, m) on the hidden labels

_LAMBDAS = (1e-3, 1e-2, 1e-1, 1.0)  # tried by Goldberg et al.
_HOLDOUT = 0.25  # share of the known rows that is hidden: the quarter of Hazan et al.
_FEWEST = 4  # known labels below which none is hidden
_PATIENCE = 3  # values of mu in a row with a larger error than before, after which smaller ones are not tried


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
        self.mean_, self.scale_, self.observed_columns_ = columns[:3]
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
        What is subtracted from every column, what it is divided by then, and whether it is used:
        not where `fit` never observed it, or saw one value in all rows.
    n_iter_ : int
        Steps at the last mu.
    n_features_in_ : int
        Number of columns of X.
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
        Mean and standard deviation of every target, in whose units the matrix was completed.
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
        What is subtracted from every column, what it is divided by then, and whether it is used:
        not where `fit` never observed it, or saw one value in all rows.
    n_iter_ : int
        Steps at the last mu.
    n_features_in_ : int
        Number of columns of X.
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
