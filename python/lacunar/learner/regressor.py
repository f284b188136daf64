"""`LacunarRegressor`: the answer to "I have a table with missing values and numbers to predict"."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from lacunar._snapshot import all_or_nothing
from lacunar.learner.base import LacunarBase, Table, Target, report
from lacunar.learner.ensemble import Ensemble
from lacunar.learner.views import View
from lacunar.observed.door import SparseMissing, check_partial_targets, check_target
from lacunar.observed.rules import Array, Flag, Instance, Items, Rule, floats

_Floats = NDArray[np.float64]
_Ints = NDArray[np.intp]


class LacunarRegressor(RegressorMixin, MultiOutputMixin, LacunarBase):  # type: ignore[misc]
    """Regression on a table with missing values, with nothing to choose: four kinds of learners, pooled on out-of-fold values.

    Kernel machines over observed entries, a low-rank Gaussian with ridge regression, gradient boosting and extremely randomised trees are trained on
    the table as it is; their predictions are summed with weights that least squares on out-of-fold values gives them. No member imputes before it
    learns, except that columns which training always saw are completed where they are missing at prediction.

    Parameters
    ----------
    members : "auto" or list of {"gaussian", "kernels", "boosting", "forest"}, default="auto"
        What is trained; "auto" is all of them.
    cv : int or splitter, default=5
        Folds of the out-of-fold values; a splitter must test every row once.
    time_limit : float, default=None
        Seconds after which no member begins and trees stop growing; one member is always trained.
    sparse_missing : {"absent", "nan"}, default="absent"
        What is missing in a sparse matrix: entries it does not store, or stored NaN.
    random_state : int, RandomState or None, default=None
        Folds, trees and subsamples; None is seed 0.
    n_jobs : int, default=None
        Threads. Answers do not depend on it.
    verbose : bool or int, default=False
        A line for every member.

    Attributes
    ----------
    weights_ : ndarray of shape (members,) or (targets, members)
        Of the members in the sum. With targets known in different rows, a list with one for each group of targets.
    members_ : list of str
        Members that were trained.
    report_ : dict of lists
        Columns "member", "score" (R2 out of fold), "weight", "seconds": `pandas.DataFrame(model.report_)` is a table.
    out_of_fold_ : ndarray of shape (n,) or (n, targets)
        Predictions of the training rows by members that had not seen them; NaN where the target is unknown.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        Infinite numbers, no known target, members of no known name, weights that are negative or all zero.

    Warns
    -----
    UserWarning
        A member fails and is left out; far more is missing at prediction than in training; a column of free text is left out.

    See Also
    --------
    LacunarClassifier : The same for labels.
    lacunar.lowrank.SLRMRegressor : The low-rank Gaussian alone, with standard deviations.

    Notes
    -----
    Weights w >= 0 minimise the out-of-fold squared error, shrunk to equal weights by 1 + 400/n in units of the best member's error. Kernels: Hazan,
    Livni and Mansour, ICML 2015; Gaussian: the latent model of Ganti and Willett, 2015, by EM. Rows whose target is missing (NaN) teach the low-rank
    Gaussian. O(n^2 d) up to 3,000 rows, O(n (1500 + d) d) beyond.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import LacunarRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=200)
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> model = LacunarRegressor(members=["gaussian", "kernels"]).fit(X[:150], y[:150])
    >>> bool(model.score(X[150:], y[150:]) > 0.7)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**LacunarBase._parameter_constraints}
    _held: ClassVar[dict[str, Rule]] = {
        **LacunarBase._held,
        "ensembles_": Items(Instance(Ensemble), length="groups"),
        "targets_": Items(Array("i", ("in_group",), low=0), length="groups", alike=False),
        "target_mean_": floats("q"),
        "target_scale_": floats("q", low=np.finfo(np.float64).tiny),
        "flat_": Flag(),
        "out_of_fold_": Instance(np.ndarray),
    }

    def __init__(
        self,
        *,
        members: Any = "auto",
        cv: Any = 5,
        time_limit: float | None = None,
        sparse_missing: SparseMissing = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.members = members
        self.cv = cv
        self.time_limit = time_limit
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the members and their weights.

        Parameters
        ----------
        X : frame (pandas, polars, Arrow), array with NaN, sparse matrix or Observed, shape (n, d)
            Numbers, booleans, categories, text of few levels and dates; missing entries are NaN, None or NA.
        y : array-like of shape (n,) or (n, targets)
            Numbers; NaN where unknown.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows.

        Returns
        -------
        self : LacunarRegressor
        """
        deadline = self._deadline()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. Pass one number a row."
            )
        table, given = Table.of(X), check_partial_targets(y, flatten=True)
        check_consistent_length(table.X, given)
        self.flat_ = given.ndim == 1
        Y = given.reshape(len(given), -1)
        weight = self._weight(sample_weight, len(Y))
        counted = np.ones(len(Y), dtype=bool) if weight is None else weight > 0
        self._fit_table(table, weight)
        self.target_mean_, self.target_scale_ = _scales(Y[counted], None if weight is None else weight[counted])
        scaled = (Y - self.target_mean_) / self.target_scale_
        self.ensembles_: list[Ensemble] = []
        self.targets_: list[_Ints] = []
        self.out_of_fold_ = np.full(Y.shape, np.nan)
        groups = _groups(~np.isnan(scaled) & counted[:, None])
        for left, (targets, rows) in zip(range(len(groups), 0, -1), groups, strict=True):
            until = deadline if np.isinf(deadline) else deadline - self._left_of(deadline) * (left - 1) / left
            each = None if weight is None else weight[rows] / weight[rows].mean()
            target = Target(None, scaled[np.ix_(rows, targets)], 0, each)
            made, values = self._trained(table, rows, target, until)
            self.ensembles_.append(made)
            self.targets_.append(targets)
            self.out_of_fold_[np.ix_(rows[self._sample(rows, None)], targets)] = (
                values * self.target_scale_[targets] + self.target_mean_[targets]
            )
        if self.flat_:
            self.out_of_fold_ = self.out_of_fold_[:, 0]
        return self

    def predict(self, X: Any) -> _Floats:
        """Predicted numbers.

        Parameters
        ----------
        X : as in `fit`, shape (m, d)

        Returns
        -------
        values : ndarray of shape (m,) or (m, targets)
        """
        check_is_fitted(self)
        made = self._in_batches(X, self._values)
        return made[:, 0] if self.flat_ else made

    def _values(self, view: View) -> _Floats:
        """Predictions (m, targets)."""
        made = np.empty((len(view.Z), len(self.target_mean_)))
        for each, targets in zip(self.ensembles_, self.targets_, strict=True):
            made[:, targets] = each.predict(view, self.posterior_, self.n_jobs)
        return made * self.target_scale_ + self.target_mean_

    def importance(self, X: Any, y: Any, *, n_repeats: int = 5, random_state: Any = None) -> dict[str, Any]:
        """How much worse predictions get when a column's values, or which of them are missing, are those of other rows.

        Parameters
        ----------
        X : as in `fit`, shape (m, d)
            Rows that the model has not seen say most.
        y : array-like of shape (m,) or (m, targets)
            Numbers.
        n_repeats : int, default=5
            Permutations of every column.
        random_state : int, RandomState or None, default=None
            Draws them; None is seed 0.

        Returns
        -------
        table : dict of columns
            "column"; "value" and "value_sd", mean and standard deviation of the rise of the squared error, in units of the targets' variance, when observed values
            are permuted among the rows that have one; "missing" and "missing_sd", the same when it is missing in as many other rows, and
            filled by the low-rank model where it was missing. `lacunar.plotting.ImportanceDisplay` draws it.

        Notes
        -----
        2 d n_repeats predictions of all rows. Columns that say the same share their importance (Breiman 2001, section 10).
        """
        check_is_fitted(self)
        target = check_target(y, y_numeric=True, multi_output=True).reshape(-1, len(self.target_mean_))

        def loss(view: View) -> float:
            return float((((self._values(view) - target) / self.target_scale_) ** 2).mean())

        return self._importance(X, loss, n_repeats, random_state)

    @property
    def members_(self) -> list[str]:
        """Members that were trained."""
        return list(self.ensembles_[0].names_)

    @property
    def weights_(self) -> Any:
        """Of the members in the sum."""
        every = [each.weights() for each in self.ensembles_]
        return every[0] if len(every) == 1 else every

    @property
    def report_(self) -> dict[str, Any]:
        """Member, score, weight and seconds, as columns; with the number of the group of targets where there are several."""
        return report(self.ensembles_)


def _scales(Y: _Floats, weight: _Floats | None) -> tuple[_Floats, _Floats]:
    """Mean and standard deviation of the known targets, per column."""
    known = ~np.isnan(Y)
    each = known * (np.ones(len(Y)) if weight is None else weight)[:, None]
    total = np.maximum(each.sum(axis=0), 1e-300)
    mean = (np.where(known, Y, 0.0) * each).sum(axis=0) / total
    spread = np.sqrt((np.where(known, Y - mean, 0.0) ** 2 * each).sum(axis=0) / total)
    return mean, np.where(spread > 1e-12 * np.maximum(np.abs(mean), 1e-280), spread, 1.0)


def _groups(known: NDArray[np.bool_]) -> list[tuple[_Ints, _Ints]]:
    """Targets that are known in the same rows, and those rows."""
    patterns, group = np.unique(known, axis=1, return_inverse=True)
    return [(np.flatnonzero(group.ravel() == k), np.flatnonzero(patterns[:, k])) for k in range(patterns.shape[1])]
