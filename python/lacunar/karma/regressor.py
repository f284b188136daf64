"""`KarmaRegressor`: numbers from rows with missing entries, by kernel ridge regression with the kernel of KARMA."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._state import all_or_nothing, whole_answers
from lacunar.karma.base import KarmaBatch, KarmaNumbers, drawn_rows, penalty_unit, weighted_rows
from lacunar.karma.solvers import solve_ridge
from lacunar.observed.door import validate_X_y
from lacunar.observed.rules import COUNT, OneOrMany, Rule, Sometimes


@whole_answers
class KarmaRegressor(KarmaNumbers, KarmaBatch):
    """Kernel ridge regression on partially observed rows, with the kernel of Hazan, Livni and
    Mansour.

    With s the inner product of two rows over their n common entries, a constant column of ones
    among them, the kernel is (s + a n) g(n / c), g(u) = 1 + u + ... + u^(gamma - 1) ([1]_, Theorem
    4). No value is filled in; `gamma=1` equals imputation by the column mean.

    Parameters
    ----------
    gamma : float, default=2
        Longest sequence of observed columns the embedding distinguishes, >= 1; 1 to 4 are useful.
        Between integers the kernel is the mixture of the two neighbours (`lacunar.kernels.series`).
    C : float, default=1.0
        Weight of the summed loss against 1/2 ||v||^2, > 0. The best one does not depend on the unit
        of y: the squared loss has a fit that is linear in y, and for the others C is in standard
        deviations of y (of several targets in their quadratic mean). With `normalize="trace"` it
        lies between 1e-3 and 1e3 (to 1e6 for targets without noise).
    loss : {"squared", "absolute", "epsilon_insensitive"}, default="squared"
        "epsilon_insensitive" is max(0, |f - y| - epsilon). The latter two are solved by "primal".
    epsilon : float, default=0.1
        In the unit of y, >= 0.
    indicators : bool, default=False
        a above: whether the kernel also compares which entries are observed.
    normalize : {"trace", "cosine", None}, default="trace"
        Divide the kernel by its mean training diagonal, or by the norm of both rows; c is the mean
        number of observed entries of a training row. None divides nothing, c = 1: the kernel as
        [1]_ has it. "cosine" loses the size of x.
    standardize : bool, default=True
        Centre columns and divide by the standard deviation, over observed entries (weighted). A
        column of one value in all rows is left out; with gaps it stays, and counts as 0 where it is
        observed.
    solver : {"auto", "gram", "primal"}, default="auto"
        "gram" solves over the n x n Gram; "primal" by dual coordinate ascent on a weight table, for
        gamma 1, 2 or 3, in O(o^2) a row of o entries. "auto" picks by rows, columns, observed
        entries, gamma and memory; `solver_` says which ran (rule and measurements:
        docs/measured/karma-solvers.md). From 20,000 rows on "auto" does not go to the minimum: its
        weight table goes from C / 100 to C / 10 and C as long as the loss of rows that are held out
        falls, then learns these rows too. `solver="primal"` goes to the minimum.
    tol : float, default=1e-3
        Relative duality gap at which "primal" stops. Below 1e-4, and for the squared loss, its
        table is float64, else float32.
    max_iter : int, default=1000
        Its most sweeps over the rows.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: "absent" is missing, "nan" is zero (and only a stored NaN is
        missing).
    random_state : int, RandomState or None, default=None
        Order of the rows of "primal". None is a fixed one.
    n_jobs : int, default=None
        Threads of the kernel. None is 1, -1 all processors.
    verbose : int, default=0
        Whether "primal" reports progress.

    Attributes
    ----------
    intercept_ : float or ndarray of shape (t,)
        Weighted mean of y, taken off before the fit and added to predictions.
    solver_ : str
        "gram" or "primal". The attributes of kept rows are those of "gram", `state_` and `gap_`
        those of "primal".
    dual_coef_ : ndarray of shape (n_support, 1 or t)
        Coefficients of the kept rows.
    support_ : ndarray of shape (n_support,)
        Row numbers, in the table given to `fit`, of the kept rows.
    support_rows_ : Observed of shape (n_support, d)
        The kept rows, standardised.
    n_support_ : int
        Number of kept rows.
    state_ : dict
        The weight table.
    gap_ : float
        Relative duality gap reached, at the share of C where the fit ended; estimated from some
        2,000 rows where held-out rows ended it.
    n_rows_seen_ : int
        Rows learned from.
    mean_, scale_, observed_columns_ : ndarrays of shape (d,)
        Mean and standard deviation of every column, and whether it is used: not where
        `fit` never observed it, or saw one value in all rows.
    reach_ : ndarray of shape (d,)
        How many standard deviations from its mean an entry counts at most: k - 1 in a column of k <
        30 entries, counted by weight, any number from 30 on and without `standardize`.
    kernel_ : KernelForm
        The kernel with its count scale and trace.
    n_iter_ : int
        Sweeps of "primal", 1 in closed form.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        In `fit`: infinite entries, missing values in y, negative or all-zero weights, a solver that
        the kernel or loss does not have. In `predict`: other columns than in `fit`.

    Warns
    -----
    ConvergenceWarning
        "primal" stopped at `max_iter`; the message has the duality gap.

    See Also
    --------
    KarmaRegressorCV : Chooses the kernel and C by exact leave-one-out.
    KarmaOnlineRegressor : Algorithm 1 of the paper: streams, any number of rows at any gamma.

    Notes
    -----
    `sample_weight` means repetition: a row of weight 2 counts as two rows everywhere. A row with
    nothing observed gets the mean of y, corrected by the constant column. "gram" takes O(n^2)
    memory and n^3/3 multiplications; "primal" O(d^2) memory and O(n o^2) a sweep for gamma 2.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaRegressor
    >>> X = np.array([[2.0, np.nan], [1.0, 1.0], [-1.0, np.nan], [np.nan, -2.0]])
    >>> KarmaRegressor(C=100.0).fit(X, [4.0, 2.0, -2.0, -4.0]).predict([[np.nan, np.nan]]).round()
    array([0.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KarmaBatch._parameter_constraints,
        "loss": [StrOptions({"squared", "absolute", "epsilon_insensitive"})],
        "epsilon": [Interval(Real, 0, None, closed="left")],
    }
    _schema: ClassVar[dict[str, Rule]] = {
        **KarmaBatch._schema,
        "n_support_": Sometimes(COUNT),
        "intercept_": OneOrMany((), "o"),
    }
    _online = "KarmaOnlineRegressor"

    def __init__(
        self,
        gamma: float = 2,
        *,
        C: float = 1.0,
        loss: Literal["squared", "absolute", "epsilon_insensitive"] = "squared",
        epsilon: float = 0.1,
        indicators: bool = False,
        normalize: Literal["trace", "cosine"] | None = "trace",
        standardize: bool = True,
        solver: Literal["auto", "gram", "primal"] = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.gamma = gamma
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.indicators = indicators
        self.normalize = normalize
        self.standardize = standardize
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> KarmaRegressor:
        """Fit to rows with missing entries.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : array-like of shape (n,) or (n, t)
            Targets.
        sample_weight : array-like of shape (n,), default=None
            Repetitions of the rows, >= 0.

        Returns
        -------
        self : KarmaRegressor
            After an error or an interrupt the model is as before the call.
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, *, searched: bool = False) -> KarmaRegressor:
        """`fit`; of a kernel and a C that a search has chosen it goes to the minimum."""
        table, target = validate_X_y(self, X, y, sparse_missing=self.sparse_missing, y_numeric=True, multi_output=True)
        table, target, weight, index = weighted_rows(sample_weight, table, target.astype(np.float64))
        self._forget()
        self.intercept_ = np.average(target, axis=0, weights=weight)
        rows = self._fit_kernel(table, weight)
        centred = (target - self.intercept_).reshape(len(target), -1)
        self.solver_ = self._choose_solver(rows, centred.shape[1])
        if self.solver_ == "primal":
            exact = searched or self._solves_exactly(len(centred))
            n = len(centred)
            left_out = None if exact else drawn_rows(n, self._n_held_out(n), None, self.random_state)
            self._ascend(rows, centred, weight, left_out, penalty_unit(self.loss, centred, weight), exact)
            return self
        self._keep_rows(rows, solve_ridge(self._gram(rows), centred, 1.0, self.C * weight), index)
        self.n_support_, self.n_iter_ = len(self.support_), 1
        return self
