"""`KarmaClassifier`: labels from rows with missing entries, by the kernel of KARMA."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Floats
from lacunar.karma.base import KarmaBatch, KarmaLabels, class_weights, drawn_order, drawn_rows, weighted_rows
from lacunar.karma.calibrate import fit_calibration
from lacunar.karma.losses import has
from lacunar.karma.solvers import cross_values, one_vs_rest, ridge_left_out, solve_classes
from lacunar.observed import Observed
from lacunar.observed.door import check_classes, validate_X_y
from lacunar.observed.rules import LABELS, Array, Rule, Sometimes, floats

LOSSES = ("squared", "hinge", "squared_hinge", "logistic", "crammer_singer")
_ENOUGH = 300  # rows left out, beyond which a third of them are
_FOLDS, _MOST_CROSSED = 5, 1000  # rows of folds that are solved again


@whole_answers
class KarmaClassifier(KarmaLabels, KarmaBatch):
    """Classifier on partially observed rows, with the kernel of Hazan, Livni and Mansour.

    Every row is compared with every other on the entries that both have: with s the inner product
    over the n common entries, a constant column of ones among them, the kernel is (s + a n) g(n /
    c), g(u) = 1 + u + ... + u^(gamma - 1) ([1]_, Theorem 4). No value is filled in; `gamma=1`
    equals imputation by the column mean, a larger gamma lets the model differ by which entries are
    observed.

    Parameters
    ----------
    gamma : float, default=2
        Longest sequence of observed columns the embedding distinguishes, >= 1; 1 to 4 are useful.
        Between integers the kernel is the mixture of the two neighbours (`lacunar.kernels.series`).
    C : float, default=1.0
        Weight of the summed loss against 1/2 ||v||^2, > 0. It is not divided by n or by the
        weights. With `normalize="trace"` the best values lie between 1e-3 and 1e3.
    loss : {"squared", "hinge", "squared_hinge", "logistic", "crammer_singer"}, default="squared"
        "squared" is solved in closed form, one class against the rest, and is at least as good as
        the others on most tables. "crammer_singer" treats all classes in one problem; where the
        best class has probability below 1/2 its optimum is near v = 0, so prefer the others on
        noisy labels.
    indicators : bool, default=False
        a above: whether the kernel also compares which entries are observed.
    normalize : {"trace", "cosine", None}, default="trace"
        Divide the kernel by its mean training diagonal, or by the norm of both rows; c is the mean
        number of observed entries of a training row. None divides nothing, c = 1: the kernel as
        [1]_ has it.
    standardize : bool, default=True
        Centre columns and divide by the standard deviation, over observed entries (weighted). A
        column of one value in all rows is left out; with gaps it stays, and counts as 0 where it is
        observed.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes by label; "balanced" gives all classes the same total weight.
    solver : {"auto", "gram", "primal"}, default="auto"
        "gram" solves over the n x n Gram; "primal" by dual coordinate ascent on a weight table, for
        gamma 1, 2 or 3, in O(o^2) a row of o entries. "auto" picks by rows, columns, observed
        entries, gamma and memory; `solver_` says which ran (rule and measurements:
        docs/measured/karma-solvers.md). From 20,000 rows on "auto" does not go to the minimum: its
        weight table goes from C / 100 to C / 10 and C as long as the loss of rows that are held out
        falls, then learns these rows too. `solver="primal"` goes to the minimum.
    tol : float, default=1e-3
        Relative duality gap at which the iterative losses and "primal" stop. Below 1e-4, and for
        the squared loss, the weight table is float64, else float32.
    max_iter : int, default=1000
        Their most passes over the rows.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: "absent" is missing, "nan" is zero (and only a stored NaN is
        missing).
    random_state : int, RandomState or None, default=None
        Order of the rows of "primal", and which rows calibrate probabilities. None is a fixed draw.
    n_jobs : int, default=None
        Threads of the kernel. None is 1, -1 all processors.
    verbose : int, default=0
        Whether the iterative losses report progress.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels, sorted.
    solver_ : str
        "gram" or "primal". The attributes of kept rows are those of "gram", `state_` and `gap_`
        those of "primal".
    dual_coef_ : ndarray of shape (n_support, 1 or k)
        Coefficients of the kept rows, one column for two classes.
    support_ : ndarray of shape (n_support,)
        Row numbers, in the table given to `fit`, of the kept rows.
    support_rows_ : Observed of shape (n_support, d)
        The kept rows, standardised.
    n_support_ : ndarray of shape (k,)
        Kept rows of every class.
    state_ : dict
        The weight table.
    gap_ : float
        Relative duality gap reached, at the share of C where the fit ended; estimated from some
        2,000 rows where held-out rows ended it.
    calibration_ : ndarray of shape (1 + outputs,)
        a and zeros, of `predict_proba`; absent with `loss="logistic"` and for one class.
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
        Iterations of the solver (1 in closed form).
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        In `fit`: infinite entries, missing labels, negative or all-zero weights, a solver that the
        kernel or loss does not have. In `predict`: other columns than in `fit`.

    Warns
    -----
    ConvergenceWarning
        An iterative loss stopped at `max_iter`; the message has the duality gap.

    See Also
    --------
    KarmaClassifierCV : Chooses the kernel and C by exact leave-one-out.
    KarmaOnlineClassifier : Algorithm 1 of the paper: streams, any number of rows at any gamma.

    Notes
    -----
    `sample_weight` means repetition: a row of weight 2 counts as two rows everywhere, in column
    means, kernel scale and loss; weight 0 removes the row. One class only gives a constant
    predictor. A row with nothing observed gets the value of the constant column. "gram" takes
    O(n^2) memory and O(n^3) time for the squared loss; "primal" O(d^2) memory and O(n o^2) a sweep
    for gamma 2. Probabilities are calibrated on values of rows that were left out: exactly, one by
    one (of a row of weight 2 one of both), for the squared loss over a Gram (300 rows, or a third
    of them if that is more); 2 % of the rows, without which "primal" goes on for some sweeps; of 5
    folds, or so many of them as have 1,000 rows, for other losses over a Gram. `normalize=None` and
    the hinge (for more than two classes "crammer_singer") are (3) of [1]_, solved exactly as in its
    section 5; departures of the defaults: docs/papers.md.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaClassifier
    >>> X = np.array([[2.0, np.nan], [1.5, 1.0], [-1.0, np.nan], [np.nan, -2.0]])
    >>> KarmaClassifier().fit(X, ["yes", "yes", "no", "no"]).predict(
    ...     [[np.nan, 3.0], [-2.0, np.nan]]
    ... )
    array(['yes', 'no'], dtype='<U3')
    >>> KarmaClassifier().fit(X, ["yes", "yes", "no", "no"]).predict_proba(
    ...     [[np.nan, 3.0], [-2.0, np.nan]]
    ... ).round(1)
    array([[0.1, 0.9],
           [1. , 0. ]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KarmaBatch._parameter_constraints,
        "loss": [StrOptions(set(LOSSES))],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    _schema: ClassVar[dict[str, Rule]] = {
        **KarmaBatch._schema,
        "classes_": LABELS,
        "n_support_": Sometimes(Array("i", ("c",), low=0)),
        "calibration_": Sometimes(floats("parts")),
    }
    _online = "KarmaOnlineClassifier"

    def __init__(
        self,
        gamma: float = 2,
        *,
        C: float = 1.0,
        loss: Literal["squared", "hinge", "squared_hinge", "logistic", "crammer_singer"] = "squared",
        indicators: bool = False,
        normalize: Literal["trace", "cosine"] | None = "trace",
        standardize: bool = True,
        class_weight: Any = None,
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
        self.indicators = indicators
        self.normalize = normalize
        self.standardize = standardize
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> KarmaClassifier:
        """Fit to rows with missing entries.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : array-like of shape (n,)
            Labels: numbers or strings.
        sample_weight : array-like of shape (n,), default=None
            Repetitions of the rows, >= 0.

        Returns
        -------
        self : KarmaClassifier
            After an error or an interrupt the model is as before the call.
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, *, searched: bool = False) -> KarmaClassifier:
        """`fit`. With the kernel and C of a search (`searched`): to the exact minimum, and without what calibrates
        probabilities.
        """
        table, labels = validate_X_y(self, X, y, sparse_missing=self.sparse_missing)
        check_classes(labels)
        table, labels, weight, index = weighted_rows(sample_weight, table, labels)
        self._forget()
        self.classes_, y_encoded = np.unique(labels, return_inverse=True)
        rows, n_classes = self._fit_kernel(table, weight), len(self.classes_)
        upper = weight * class_weights(self.class_weight, self.classes_, y_encoded, weight)
        if n_classes == 1:
            self._refuse_solver(self.solver)
            self.solver_, self.n_iter_ = "gram", 1
            self._keep(rows, np.zeros((len(y_encoded), 1)), index, y_encoded)
            return self
        self.solver_ = self._choose_solver(rows, self._n_outputs())
        exact = searched or self._solves_exactly(len(y_encoded))
        calibrated = not searched and self.loss != "logistic"
        left_out = self._left_out(y_encoded) if calibrated or not exact else None
        if self.solver_ == "primal":
            values = self._ascend(rows, one_vs_rest(y_encoded, n_classes), upper, left_out, exact=exact)
        elif has(self.loss, "closed_form") and left_out is not None:
            values = self._solve_ridge(rows, y_encoded, upper, np.minimum(1.0, 1.0 / weight), index, left_out)
        else:
            values = self._solve_dual(rows, y_encoded, upper, index, left_out)
        if calibrated and left_out is not None and values is not None:
            self.calibration_ = fit_calibration(values, y_encoded[left_out], upper[left_out], shifted=False)
        return self

    def _left_out(self, y_encoded: NDArray[np.intp]) -> NDArray[np.intp]:
        """Rows, drawn evenly over classes, whose values under fits without them calibrate probabilities."""
        n = len(y_encoded)
        if self.solver_ == "primal":
            return drawn_rows(n, self._n_held_out(n), y_encoded, self.random_state)
        order = drawn_order(n, y_encoded, self.random_state)
        if has(self.loss, "closed_form"):
            return np.sort(order[: max(_ENOUGH, n // 3)])
        folds = np.array_split(order, _FOLDS)
        return np.concatenate(folds[: int(np.ceil(min(_MOST_CROSSED / len(folds[0]), _FOLDS)))])

    def _solve_ridge(
        self,
        rows: Observed,
        y_encoded: NDArray[np.intp],
        upper: Floats,
        share: Floats,
        index: NDArray[np.intp],
        left_out: NDArray[np.intp],
    ) -> Floats:
        """Closed form; exact values of rows `left_out`, the last ones of the Gram, without a share of their weight."""
        order = np.concatenate([np.setdiff1d(np.arange(len(y_encoded)), left_out), left_out])
        targets = one_vs_rest(y_encoded, len(self.classes_))
        sorted_rows = rows if len(left_out) == len(y_encoded) else rows[order]
        sorted_coef, values = ridge_left_out(
            self._gram(sorted_rows), targets[order], self.C * upper[order], share[left_out]
        )
        coef = np.empty_like(sorted_coef)
        coef[order], self.n_iter_ = sorted_coef, 1
        self._keep(rows, coef, index, y_encoded)
        return values

    def _solve_dual(
        self,
        rows: Observed,
        y_encoded: NDArray[np.intp],
        upper: Floats,
        index: NDArray[np.intp],
        left_out: NDArray[np.intp] | None,
    ) -> Floats | None:
        """Over the Gram; values of rows `left_out` by fits without their folds."""
        options: dict[str, Any] = {"loss": self.loss, "tol": self.tol, "max_iter": self.max_iter}
        gram, n_classes = self._gram(rows), len(self.classes_)
        solved = solve_classes(gram, y_encoded, n_classes, self.C * upper, verbose=int(self.verbose), **options)
        coef, self.n_iter_ = solved
        self._keep(rows, coef, index, y_encoded)
        if left_out is None:
            return None
        size = -(-len(y_encoded) // _FOLDS)
        folds = [left_out[start : start + size] for start in range(0, len(left_out), size)]
        return cross_values(gram, y_encoded, n_classes, self.C * upper, folds, verbose=0, **options)

    def _keep(self, rows: Observed, coef: Floats, index: NDArray[np.intp], y_encoded: NDArray[np.intp]) -> None:
        self._keep_rows(rows, coef, index)
        self.n_support_ = np.bincount(y_encoded[np.any(coef != 0, axis=1)], minlength=len(self.classes_))
