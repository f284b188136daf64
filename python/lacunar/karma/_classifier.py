"""`KarmaClassifier`: labels from rows with holes, by the kernel of KARMA."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from lacunar._snapshot import SavePoint
from lacunar.karma._classifier_stream import ClassifierStream
from lacunar.karma._probabilities import Probabilities
from lacunar.karma._solve import one_vs_rest, solve_classes
from lacunar.karma._weights import class_weights, row_weights
from lacunar.observed import Observed
from lacunar.observed.door import validate_X_y

LOSSES = ("squared", "hinge", "squared_hinge", "logistic", "crammer_singer")


class KarmaClassifier(Probabilities, ClassifierMixin, ClassifierStream):  # type: ignore[misc]
    """Classifier on partially observed rows, with the kernel of Hazan, Livni and Mansour.

    Every row is compared with every other on the entries that both have: with s the inner product over the n common
    entries, the kernel is (s + a n) g(n / c), g(u) = 1 + u + ... + u^(gamma - 1) ([1]_, Theorem 4). Nothing is imputed;
    `gamma=1` is imputation by the column mean, a larger gamma lets the model differ by which entries are observed.

    Parameters
    ----------
    gamma : float, default=2
        Longest sequence of observed columns the embedding distinguishes, >= 1; 1 to 4 are useful. Between integers the
        kernel is the mixture of the two neighbours (`lacunar.kernels.series`).
    C : float, default=1.0
        Weight of the summed loss against 1/2 ||v||^2, > 0. It is not divided by n or by the weights. With
        `normalize="trace"` the best values lie between 1e-3 and 1e3.
    loss : {"squared", "hinge", "squared_hinge", "logistic", "crammer_singer"}, default="squared"
        "squared" is solved in closed form, one class against the rest, and is at least as good as the others on most
        tables. "crammer_singer" treats all classes in one problem; where the best class has probability below 1/2
        its optimum is near v = 0, so prefer the others on noisy labels.
    scale : "mean", "raw" or float, default="mean"
        c above: the mean number of observed entries of a training row, 1 (as in [1]_), or a number > 0.
    indicators : bool, default=False
        a above: whether the kernel also compares which entries are observed.
    normalize : {"trace", "cosine", None}, default="trace"
        Divide the kernel by its mean training diagonal, or by the norm of both rows.
    standardize : bool, default=True
        Centre columns and divide by the standard deviation, over observed entries (weighted). Constant columns are only
        centred.
    constant : bool, default=True
        Append a column of ones, always observed; it takes the place of a bias.
    degree : int, default=1
        Above 1 the kernel is ((k + coef0) / (1 + coef0))^degree ([1]_, section 6): products of features. Not with "primal".
    coef0 : float, default=1.0
        Weight of lower degrees, >= 0.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes by label; "balanced" gives all classes the same total weight.
    options : {"paper"}, default=None
        "paper" is Algorithm 1 of [1]_ to the letter, on the kernel of Theorem 4: it sets `scale="raw"`, `normalize=None`,
        `indicators=False`, `constant=True`, `eta="theory"` without a cap, `iterate="average"` (Theorem 2) and float64, and takes
        rows in the order given. `solver="auto"` then means "online", and `loss="squared"` the hinge; with more than two
        classes the hinge is Crammer and Singer's, over the Gram. `solver="gram"` minimises the objective of (3) exactly,
        as the experiments of section 5 did. Departures of the defaults: docs/as-printed.md.
    tol : float, default=1e-3
        Relative duality gap at which the iterative losses stop.
    max_iter : int, default=1000
        Limit of the iterative losses, in passes over the rows.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: "absent" is missing, "nan" is zero (and only a stored NaN is missing).
    solver : {"auto", "gram", "primal", "online"}, default="auto"
        "gram" solves over the n x n Gram; "primal" on a weight table, for gamma 1, 2 or 3, in O(o^2) a row of o entries;
        "online" is Algorithm 1 over stored rows, for any gamma. "auto" picks by rows, columns, observed entries, gamma
        and memory; `solver_` says which ran (rule and measurements: docs/karma-solvers.md).
    passes : int, default=None
        "primal": passes of Algorithm 1, or None for dual coordinate ascent to `tol`. "online": None is 1.
    rho : float, default=None
        Algorithm 1 minimises rho/2 ||v||^2 + mean loss. None is 1/(C n) in `fit` and 1e-4/C in `partial_fit`.
    eta : {"theory", "constant", "invscaling"}, default="theory"
        Step t of Algorithm 1: 1/(rho t), eta0, or eta0 / t^power_t; capped by the curvature of the squared losses.
    eta0, power_t : float, default=0.1, 0.5
    iterate : {"weighted", "average", "last"}, default="weighted"
        Iterate of Algorithm 1 that predicts: the mean with weights t, the plain mean, or the last.
    block_size : int, default=1024
        Rows that "online" compares with the stored rows at once.
    max_support : int, default=None
        Most rows that "online" stores; those of least |coef| sqrt(k(x, x)) leave. What they were worth adds up in
        state_["clock"][3], which bounds the change of f(x) / sqrt(k(x, x)).
    budget : {"remove", "project"}, default="remove"
        Drop such rows, or spread them over the rows that stay.
    memory_limit : float, default=2**31
        Bytes of the Gram and the weight table; above it the table is hashed.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Of the weight table; "auto" is float64 for the squared loss to `tol` and tol < 1e-4, else float32.
    random_state : int, RandomState or None, default=None
        Order of the rows of "primal" and "online" in `fit`. None is a fixed one.
    n_jobs : int, default=None
        Threads of the kernel. None is 1, -1 all processors.
    verbose : int, default=0
        Whether the iterative losses report progress.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels, sorted.
    solver_ : str
        "gram", "primal" or "online". The attributes of kept rows are those of "gram" only.
    state_ : dict
        The weights of "primal" and "online", from which `partial_fit` goes on; after "gram" it goes on from the kept rows, by
        "online".
    n_rows_seen_ : int
        Rows learned from.
    dual_coef_ : ndarray of shape (n_support, 1 or k)
        Coefficients of the kept rows, one column for two classes.
    support_ : ndarray of shape (n_support,)
        Row numbers, in the table given to `fit`, of the kept rows.
    support_rows_ : Observed of shape (n_support, d)
        The kept rows, standardised.
    n_support_ : ndarray of shape (k,)
        Kept rows of every class.
    center_, scale_, observed_columns_ : ndarrays of shape (d,)
        Mean and standard deviation of every column, and whether `fit` ever observed it; other columns are ignored.
    kernel_ : KernelForm
        The kernel with its count scale and trace.
    n_iter_ : int
        Iterations of the solver (1 in closed form).
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        In `fit`: infinite entries, labels with holes, negative or all-zero weights, a solver that the kernel or loss does
        not have. In `predict` and `partial_fit`: other columns than in `fit`. `DivergedError`, which is a ValueError:
        values of Algorithm 1 left the finite numbers.

    Warns
    -----
    ConvergenceWarning
        An iterative loss stopped at `max_iter`; the message has the duality gap.

    See Also
    --------
    KarmaClassifierCV : Chooses the kernel and C by exact leave-one-out.

    Notes
    -----
    `sample_weight` means repetition: a row of weight 2 counts as two rows everywhere, in column means, kernel scale and
    loss; weight 0 removes the row. One class only gives a constant predictor. A row with nothing observed gets
    the value of the constant column. "gram" takes O(n^2) memory and O(n^3) time for the squared loss; "primal" O(d^2)
    memory and O(n o^2) a sweep for gamma 2. In one pass of Algorithm 1 a weight scales a step, which is near repetition.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaClassifier
    >>> X = np.array([[2.0, np.nan], [1.5, 1.0], [-1.0, np.nan], [np.nan, -2.0]])
    >>> KarmaClassifier().fit(X, ["yes", "yes", "no", "no"]).predict([[np.nan, 3.0], [-2.0, np.nan]])
    array(['yes', 'no'], dtype='<U3')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ClassifierStream._parameter_constraints,
        "loss": [StrOptions(set(LOSSES))],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        gamma: float = 2,
        *,
        C: float = 1.0,
        loss: Literal["squared", "hinge", "squared_hinge", "logistic", "crammer_singer"] = "squared",
        scale: float | Literal["mean", "raw"] = "mean",
        indicators: bool = False,
        normalize: Literal["trace", "cosine"] | None = "trace",
        standardize: bool = True,
        constant: bool = True,
        degree: int = 1,
        coef0: float = 1.0,
        class_weight: Any = None,
        options: Literal["paper"] | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        sparse_missing: Literal["absent", "nan"] = "absent",
        solver: Literal["auto", "gram", "primal", "online"] = "auto",
        passes: int | None = None,
        rho: float | None = None,
        eta: Literal["theory", "constant", "invscaling"] = "theory",
        eta0: float = 0.1,
        power_t: float = 0.5,
        iterate: Literal["weighted", "average", "last"] = "weighted",
        block_size: int = 1024,
        max_support: int | None = None,
        budget: Literal["remove", "project"] = "remove",
        memory_limit: float = 2**31,
        dtype: Literal["auto", "float32", "float64"] = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.gamma = gamma
        self.C = C
        self.loss = loss
        self.scale = scale
        self.indicators = indicators
        self.normalize = normalize
        self.standardize = standardize
        self.constant = constant
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.options = options
        self.tol = tol
        self.max_iter = max_iter
        self.sparse_missing = sparse_missing
        self.solver = solver
        self.passes = passes
        self.rho = rho
        self.eta = eta
        self.eta0 = eta0
        self.power_t = power_t
        self.iterate = iterate
        self.block_size = block_size
        self.max_support = max_support
        self.budget = budget
        self.memory_limit = memory_limit
        self.dtype = dtype
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> KarmaClassifier:
        """Fit to rows with holes.

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
            After an error the model is as before the call; an interrupt keeps the last full block of "primal" and "online".
        """
        point = SavePoint(self)
        try:
            self._fit(X, y, sample_weight, point)
        except BaseException as error:
            point.undo(error)
            raise
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, point: SavePoint) -> None:
        table, target = validate_X_y(self, X, y, sparse_missing=self.sparse_missing)
        check_classification_targets(target)
        weight = row_weights(sample_weight, table)
        index = np.flatnonzero(weight)
        if len(index) < len(weight):
            table, target, weight = table[index], target[index], weight[index]
        self.classes_, codes = np.unique(target, return_inverse=True)
        self._forget()
        rows = self._fit_rows(table, weight)
        weight = weight * class_weights(self.class_weight, self.classes_, codes, weight)
        n_classes = len(self.classes_)
        if n_classes == 1:
            self._refuse_solver("gram" if self.solver == "auto" else self.solver)
            self.solver_, self.n_iter_ = "gram", 1
            self._keep_classes(rows, np.zeros((len(codes), 1)), codes, index)
            return
        several = self._fit_loss() != self._own_loss()
        self.solver_ = "gram" if several else self._choose_solver(rows, 1 if n_classes == 2 else n_classes)
        if self.solver_ == "gram":
            self._keep_classes(rows, self._solve(self._fit_gram(rows), codes, self.C * weight), codes, index)
        else:
            self._fit_engine(self.solver_, rows, one_vs_rest(codes, n_classes), weight, point)

    def _fit_loss(self) -> str:
        """The loss of `fit`: the paper takes Crammer and Singer's for more than two classes, which is solved over a Gram."""
        loss = self._own_loss()
        several = self.options == "paper" and loss == "hinge" and len(self.classes_) > 2
        return "crammer_singer" if several and self.solver in ("auto", "gram") else loss

    def _keep_classes(
        self, rows: Observed, coef: NDArray[np.float64], codes: NDArray[np.intp], index: NDArray[np.intp]
    ) -> None:
        self._keep_rows(rows, coef, index)
        self.n_support_ = np.bincount(codes[np.any(coef != 0, axis=1)], minlength=len(self.classes_))

    def _n_outputs(self) -> int:
        return len(self.classes_) if len(self.classes_) > 2 else 1

    def _solve(self, gram: NDArray[Any], codes: NDArray[np.intp], upper: NDArray[np.float64]) -> NDArray[np.float64]:
        coef, self.n_iter_ = solve_classes(
            gram,
            codes,
            len(self.classes_),
            upper,
            loss=self._fit_loss(),
            tol=self.tol,
            max_iter=self.max_iter,
            verbose=int(self.verbose),
        )
        return coef

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Values of the classes; for two classes one value, positive for `classes_[1]`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        values : ndarray of shape (m,) or (m, k)
            Zeros when `fit` saw one class only.
        """
        values = self._evaluate(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of every row.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        labels : ndarray of shape (m,)
        """
        values = self.decision_function(X)
        codes = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels
