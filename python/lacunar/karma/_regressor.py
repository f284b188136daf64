"""`KarmaRegressor`: numbers from rows with holes, by kernel ridge regression with the kernel of KARMA."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from lacunar._snapshot import SavePoint
from lacunar.karma._ridge import solve_ridge
from lacunar.karma._stream import StreamFits, StreamScore, can_stream
from lacunar.karma._weights import row_weights
from lacunar.observed import Observed
from lacunar.observed.door import validate_X_y
from lacunar.observed.rules import COUNT, OneOrMany, Rule


class KarmaRegressor(RegressorMixin, StreamFits):  # type: ignore[misc]
    """Kernel ridge regression on partially observed rows, with the kernel of Hazan, Livni and Mansour.

    With s the inner product of two rows over their n common entries, the kernel is (s + a n) g(n / c),
    g(u) = 1 + u + ... + u^(gamma - 1) ([1]_, Theorem 4). Nothing is imputed; `gamma=1` is imputation by the column mean.

    Parameters
    ----------
    gamma : float, default=2
        Longest sequence of observed columns the embedding distinguishes, >= 1; 1 to 4 are useful. Between integers the
        kernel is the mixture of the two neighbours (`lacunar.kernels.series`).
    C : float, default=1.0
        Weight of the summed squared loss against 1/2 ||v||^2, > 0. The fit is linear in y, so the best C does not
        depend on the unit of y; with `normalize="trace"` it lies between 1e-3 and 1e3 (to 1e6 for targets without
        noise).
    loss : {"squared", "absolute", "epsilon_insensitive"}, default="squared"
        "epsilon_insensitive" is max(0, |f - y| - epsilon). The latter two are solved by "primal" and "online".
    epsilon : float, default=0.1
        In the unit of y, >= 0.
    scale : "mean", "raw" or float, default="mean"
        c above: the mean number of observed entries of a training row, 1 (as in [1]_), or a number > 0.
    indicators : bool, default=False
        a above: whether the kernel also compares which entries are observed.
    normalize : {"trace", "cosine", None}, default="trace"
        Divide the kernel by its mean training diagonal, or by the norm of both rows (which loses the size of x).
    standardize : bool, default=True
        Centre columns and divide by the standard deviation, over observed entries (weighted). Constant columns are only
        centred.
    constant : bool, default=True
        Append a column of ones, always observed.
    degree : int, default=1
        Above 1 the kernel is ((k + coef0) / (1 + coef0))^degree ([1]_, section 6): products of features. Not with "primal".
    coef0 : float, default=1.0
        Weight of lower degrees, >= 0.
    options : {"paper"}, default=None
        "paper" is Algorithm 1 of [1]_ to the letter, on the kernel of Theorem 4: it sets `scale="raw"`, `normalize=None`,
        `indicators=False`, `constant=True`, `eta="theory"` without a cap, `iterate="average"` (Theorem 2), float64 and
        `intercept_` 0, and takes rows in the order given. `solver="auto"` then means "online"; `solver="gram"` minimises the
        objective of (3) exactly, for y less its mean as in section 5. The squared loss without a cap diverges unless rho is near 2 k(x, x). docs/as-printed.md.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: "absent" is missing, "nan" is zero (and only a stored NaN is missing).
    tol : float, default=1e-3
        Relative duality gap at which dual coordinate ascent stops.
    max_iter : int, default=1000
        Its most sweeps over the rows.
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
        Whether "primal" and "online" report progress.

    Attributes
    ----------
    intercept_ : float or ndarray of shape (t,)
        Weighted mean of y, taken off before the fit and added to predictions; 0 in Algorithm 1 of `options="paper"`.
    solver_ : str
        "gram", "primal" or "online". The attributes of kept rows are those of "gram" only.
    state_ : dict
        The weights of "primal" and "online", from which `partial_fit` goes on; after "gram" it goes on from the kept rows, by
        "online".
    n_rows_seen_ : int
        Rows learned from.
    dual_coef_ : ndarray of shape (n_support, 1 or t)
        Coefficients of the kept rows.
    support_ : ndarray of shape (n_support,)
        Row numbers, in the table given to `fit`, of the kept rows.
    support_rows_ : Observed of shape (n_support, d)
        The kept rows, standardised.
    n_support_ : int
    center_, scale_, observed_columns_ : ndarrays of shape (d,)
        Mean and standard deviation of every column, and whether `fit` ever observed it; other columns are ignored.
    kernel_ : KernelForm
        The kernel with its count scale and trace.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        In `fit`: infinite entries, y with holes, negative or all-zero weights, a solver that the kernel or loss
        does not have. In `predict` and `partial_fit`: other columns than in `fit`. `DivergedError`, which is a ValueError:
        values of Algorithm 1 left the finite numbers.

    See Also
    --------
    KarmaRegressorCV : Chooses the kernel and C by exact leave-one-out.

    Notes
    -----
    `sample_weight` means repetition, as in `KarmaClassifier`. A row with nothing observed gets the mean of y, corrected
    by the constant column. "gram" takes O(n^2) memory and n^3/3 multiplications; "primal" O(d^2) memory and O(n o^2) a
    sweep for gamma 2.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaRegressor
    >>> X = np.array([[2.0, np.nan], [1.0, 1.0], [-1.0, np.nan], [np.nan, -2.0]])
    >>> KarmaRegressor(C=100.0).fit(X, [4.0, 2.0, -2.0, -4.0]).predict([[np.nan, np.nan]]).round()
    array([0.])
    """

    _held: ClassVar[dict[str, Rule]] = {
        **StreamFits._held,
        "n_support_": COUNT,
        "intercept_": OneOrMany((), "o"),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **StreamFits._parameter_constraints,
        "loss": [StrOptions({"squared", "absolute", "epsilon_insensitive"})],
        "epsilon": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        gamma: float = 2,
        *,
        C: float = 1.0,
        loss: Literal["squared", "absolute", "epsilon_insensitive"] = "squared",
        epsilon: float = 0.1,
        scale: float | Literal["mean", "raw"] = "mean",
        indicators: bool = False,
        normalize: Literal["trace", "cosine"] | None = "trace",
        standardize: bool = True,
        constant: bool = True,
        degree: int = 1,
        coef0: float = 1.0,
        options: Literal["paper"] | None = None,
        sparse_missing: Literal["absent", "nan"] = "absent",
        tol: float = 1e-3,
        max_iter: int = 1000,
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
        self.epsilon = epsilon
        self.scale = scale
        self.indicators = indicators
        self.normalize = normalize
        self.standardize = standardize
        self.constant = constant
        self.degree = degree
        self.coef0 = coef0
        self.options = options
        self.sparse_missing = sparse_missing
        self.tol = tol
        self.max_iter = max_iter
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
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> KarmaRegressor:
        """Fit to rows with holes.

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
        table, target = validate_X_y(self, X, y, sparse_missing=self.sparse_missing, y_numeric=True, multi_output=True)
        weight = row_weights(sample_weight, table)
        index = np.flatnonzero(weight)
        if len(index) < len(weight):
            table, target, weight = table[index], target[index], weight[index]
        self._forget()
        target = target.astype(np.float64)
        self.intercept_ = self._offset(target, weight)
        rows = self._fit_rows(table, weight)
        centred = self._targets(target)
        self.solver_ = self._choose_solver(rows, centred.shape[1])
        if self.solver_ != "gram":
            self._fit_engine(self.solver_, rows, centred, weight, point)
            return
        coef = solve_ridge(self._fit_gram(rows), centred, 1.0, self.C * weight)
        self._keep_rows(rows, coef, index)
        self.n_support_, self.n_iter_ = len(self.support_), 1

    @available_if(can_stream)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> KarmaRegressor:
        """Go on with Algorithm 1 on a batch of rows, once each and in order.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : array-like of shape (n,) or (n, t)
        sample_weight : array-like of shape (n,), default=None
            Factors of the loss, >= 0.

        Returns
        -------
        self : KarmaRegressor
            The first batch fixes `intercept_`, column scales, count scale and trace. After an error the model is as
            before the call; an interrupt keeps the last full block.
        """
        self._learn(X, y, None, sample_weight)
        return self

    @available_if(can_stream)  # type: ignore[untyped-decorator]
    def fit_batches(self, batches: Iterable[Any]) -> KarmaRegressor:
        """Fit in one pass over an iterable of (X, y) or (X, y, sample_weight), in the memory of model and batch.

        After an error, of the iterable too, the model is that of the batches before it; where there is none, as before the call.
        """
        self._fit_batches(batches, None)
        return self

    @available_if(can_stream)  # type: ignore[untyped-decorator]
    def score_stream(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, regret: bool = False
    ) -> StreamScore:
        """`partial_fit`, with the mean loss of the predictions made before each row was learned.

        Parameters
        ----------
        X, y, sample_weight
            As in `partial_fit`.
        regret : bool, default=False
            Also solve the batch problem on these rows (gamma 1, 2 or 3) and compare with its mean loss.

        Returns
        -------
        score : StreamScore
            n_rows, mistakes (None), loss, regret, values (without `intercept_`).
        """
        return self._score_stream(X, y, None, sample_weight, regret)

    def _read_batch(self, X: Any, y: Any, *, reset: bool) -> tuple[Observed, NDArray[Any]]:
        options: dict[str, Any] = {"sparse_missing": self.sparse_missing, "y_numeric": True, "multi_output": True}
        table, target = validate_X_y(self, X, y, reset=reset, **options)
        return table, target.astype(np.float64)

    def _first_targets(self, target: NDArray[Any], classes: Any, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        self.intercept_ = self._offset(target, weight)
        return self._targets(target)

    def _offset(self, target: NDArray[Any], weight: NDArray[np.float64]) -> Any:
        """What is taken off the targets: their mean, as in section 5 of the paper; nothing in its Algorithm 1."""
        mean = np.average(target, axis=0, weights=weight)
        return mean * 0.0 if self.options == "paper" and self.solver != "gram" else mean

    def _targets(self, target: NDArray[Any]) -> NDArray[np.float64]:
        if target.shape[1:] != np.shape(self.intercept_):
            raise ValueError(
                f"y must have the outputs of the first batch, {np.shape(self.intercept_)}; got {target.shape[1:]} a row. "
                "Fit again for other targets."
            )
        centred: NDArray[np.float64] = (target - self.intercept_).reshape(len(target), -1)
        return centred

    def _n_outputs(self) -> int:
        return int(np.size(self.intercept_))

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predicted targets.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        y : ndarray of shape (m,) or (m, t)
        """
        values = self._evaluate(X)
        out: NDArray[np.float64] = (values[:, 0] if np.ndim(self.intercept_) == 0 else values) + self.intercept_
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
