"""`PrintedKarmaClassifier` and `PrintedKarmaRegressor`: Algorithm 1 of Hazan, Livni and Mansour to the letter."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from lacunar._typing import Floats
from lacunar.karma.base import Engine
from lacunar.karma.online import KarmaOnline, KarmaOnlineClassifier, KarmaOnlineRegressor
from lacunar.observed import Observed

_Schedule = Callable[[int], float]


class _AlgorithmOne(KarmaOnline):
    """The kernel of Theorem 4, the printed steps and the mean of the iterates, over rows in the order given."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "rho": [Interval(Real, 0, None, closed="neither")],
        "eta": [callable, Interval(Real, 0, None, closed="neither"), None],
    }
    # What the paper leaves no choice of.
    max_iter: int = 1
    budget: int | None = None
    class_weight: dict[Any, float] | None = None
    random_state: Any = None
    verbose: int = 0
    eta: Any

    def _kernel_options(self) -> dict[str, Any]:
        return {"gamma": self.gamma, "count_scale": "raw"}

    def _choose_solver(self) -> str:
        """The same iterates on a weight table where the kernel has one; steps from a function are taken over stored
        rows, as printed.
        """
        return "support" if callable(self.eta) else super()._choose_solver()

    def _rho_of(self, usual: float, targets: Floats, weight: Floats) -> float:
        """rho as printed, whatever the unit of the targets."""
        return float(self.rho)

    def _step_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"iterate": "average", "dtype": "float64"}
        if self.eta is None:
            return options | {"eta": "printed"}
        return options | {"eta": "constant", "eta0": self._eta(1)}

    def _eta(self, t: int) -> float:
        """eta_t, refused where it is no step."""
        step = float(self.eta(t) if callable(self.eta) else self.eta)
        if not (np.isfinite(step) and step > 0):
            raise ValueError(f"eta must give finite steps > 0; eta({t}) is {step:g}. Leave it out for 1 / (rho t).")
        return step

    def _steps(
        self, engine: Engine, rows: Observed, targets: Floats, weight: Floats, order: NDArray[np.intp], values: Floats
    ) -> None:
        if not callable(self.eta):
            return super()._steps(engine, rows, targets, weight, order, values)
        for i in order:
            row = slice(i, i + 1)
            engine.eta0 = self._eta(engine.t + 1)
            super()._steps(engine, rows[row], targets[row], weight[row], order[:1] * 0, values[row])
        return None

    def _order(self, n_rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
        return np.arange(n_rows)


class PrintedKarmaClassifier(_AlgorithmOne, KarmaOnlineClassifier):
    """Algorithm 1 (KARMA) of Hazan, Livni and Mansour to the letter, for labels.

    Step t moves v by -eta_t (rho v + l'(f(x_t), y_t) phi(x_t)), with the kernel (s (n^gamma - 1) /
    (n - 1)) of Theorem 4, raw counts n of common columns and a constant feature in place of a bias
    (section 5). Rows are taken in the order given, once; predictions are by the plain mean of v_1,
    ..., v_T (Theorem 2, item 2), in float64.

    Parameters
    ----------
    gamma : float, default=2
        Longest sequence of observed columns that the embedding distinguishes, >= 1.
    rho : float, default=0.25
        rho/2 ||v||^2 + mean loss is minimised. Algorithm 1 has 0 < rho < 1, Theorem 2 below 1/4, of
        which the default is the end, Theorem 3 `theory_rho`.
    eta : callable, float or None, default=None
        Steps eta_t: a function of t = 1, 2, ...; a number for all of them; or None for 1 / (rho t).
        A function is called for one row at a time, over stored rows; a model with a function of no
        name cannot be saved.
    loss : {"hinge", "squared_hinge", "logistic", "squared"}, default="hinge"
        l; one class against the rest. Steps have no cap: those of a loss without a Lipschitz
        constant diverge where rho is small beside k(x, x).
    standardize : bool, default=True
        Centre columns and divide by the standard deviation, over observed entries (section 5: data
        normalised).
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: "absent" is missing, "nan" is zero (and only a stored NaN is
        missing).
    n_jobs : int, default=None
        Threads of learning and of the kernel; no result depends on them. None is 1, -1 all
        processors.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels, sorted.
    solver_ : {"primal", "support"}
        Whether there is a weight table, or rows are stored.
    state_ : dict
        The weights, from which `partial_fit` goes on.
    recent_ : ndarray of shape (r, outputs + 2)
        Of the last 1,000 rows learned: values before they were learned, class and weight. They
        calibrate `predict_proba`.
    n_rows_seen_ : int
        Rows learned from.
    mean_, scale_, observed_columns_ : ndarrays of shape (d,)
        Mean and standard deviation of every column, and whether values in it count.
    kernel_ : KernelForm
        The kernel.
    n_iter_ : int
        Passes of `fit`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        In `fit` and `partial_fit`: infinite entries; labels that the loss does not take; an `eta`
        that gives no finite step above 0.
    lacunar.karma.steps.DivergedError
        Where the steps overflow, which those of the squared loss do unless rho is large: the rows
        before are learned.

    See Also
    --------
    lacunar.KarmaOnlineClassifier : The learner with the departures that predict better.
    lacunar.KarmaClassifier : The exact minimiser of the same objective.

    Notes
    -----
    A row of o entries costs O(o^gamma) on a weight table, which there is for gamma 1, 2 and 3 and
    steps that are no function. Otherwise rows are stored: step t costs O(t d), T steps O(T^2 d).

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.karma import PrintedKarmaClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> model = PrintedKarmaClassifier(rho=0.25, eta=lambda t: 1 / np.sqrt(t)).fit(X, y)
    >>> bool(model.score(X, y) > 0.7)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = (
        KarmaOnlineClassifier._parameter_constraints | _AlgorithmOne._parameter_constraints
    )

    def __init__(
        self,
        gamma: float = 2,
        rho: float = 0.25,
        *,
        eta: _Schedule | float | None = None,
        loss: Literal["hinge", "squared_hinge", "logistic", "squared"] = "hinge",
        standardize: bool = True,
        sparse_missing: Literal["absent", "nan"] = "absent",
        n_jobs: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.rho = rho
        self.eta = eta
        self.loss = loss
        self.standardize = standardize
        self.sparse_missing = sparse_missing
        self.n_jobs = n_jobs


class PrintedKarmaRegressor(_AlgorithmOne, KarmaOnlineRegressor):
    """Algorithm 1 (KARMA) of Hazan, Livni and Mansour to the letter, for numbers.

    As `PrintedKarmaClassifier`; targets are taken as they are, which the constant feature has to
    learn (`intercept_` is 0).

    Parameters
    ----------
    gamma : float, default=2
        Longest sequence of observed columns that the embedding distinguishes, >= 1.
    rho : float, default=0.25
        rho/2 ||v||^2 + mean loss is minimised. Algorithm 1 has 0 < rho < 1, Theorem 2 below 1/4, of
        which the default is the end, Theorem 3 `theory_rho`.
    eta : callable, float or None, default=None
        Steps eta_t: a function of t = 1, 2, ...; a number for all of them; or None for 1 / (rho t).
    loss : {"squared", "absolute", "epsilon_insensitive"}, default="absolute"
        l; Theorem 2 asks for a Lipschitz constant. Steps have no cap: those of the squared loss
        diverge where rho is small beside k(x, x).
    epsilon : float, default=0.1
        Of "epsilon_insensitive", max(0, |f - y| - epsilon), >= 0.
    standardize : bool, default=True
        Centre columns and divide by the standard deviation, over observed entries (section 5: data
        normalised).
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: "absent" is missing, "nan" is zero (and only a stored NaN is
        missing).
    n_jobs : int, default=None
        Threads of learning and of the kernel; no result depends on them. None is 1, -1 all
        processors.

    Attributes
    ----------
    intercept_ : float or ndarray of shape (t,)
        0.
    solver_ : {"primal", "support"}
        Whether there is a weight table, or rows are stored.
    state_ : dict
        The weights, from which `partial_fit` goes on.
    n_rows_seen_ : int
        Rows learned from.
    mean_, scale_, observed_columns_ : ndarrays of shape (d,)
        Mean and standard deviation of every column, and whether values in it count.
    kernel_ : KernelForm
        The kernel.
    n_iter_ : int
        Passes of `fit`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        In `fit` and `partial_fit`: infinite entries; targets that are no numbers; an `eta` that
        gives no finite step above 0.
    lacunar.karma.steps.DivergedError
        Where the steps overflow, which those of the squared loss do unless rho is large: the rows
        before are learned.

    See Also
    --------
    lacunar.KarmaOnlineRegressor : The learner with the departures that predict better.

    Notes
    -----
    A row of o entries costs O(o^gamma) on a weight table, which there is for gamma 1, 2 and 3 and
    steps that are no function. Otherwise rows are stored: step t costs O(t d), T steps O(T^2 d).

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.karma import PrintedKarmaRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> model = PrintedKarmaRegressor(gamma=1, rho=10.0).fit(X, X[:, 0] + 1)
    >>> model.n_rows_seen_
    400
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = (
        KarmaOnlineRegressor._parameter_constraints | _AlgorithmOne._parameter_constraints
    )

    def __init__(
        self,
        gamma: float = 2,
        rho: float = 0.25,
        *,
        eta: _Schedule | float | None = None,
        loss: Literal["squared", "absolute", "epsilon_insensitive"] = "absolute",
        epsilon: float = 0.1,
        standardize: bool = True,
        sparse_missing: Literal["absent", "nan"] = "absent",
        n_jobs: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.rho = rho
        self.eta = eta
        self.loss = loss
        self.epsilon = epsilon
        self.standardize = standardize
        self.sparse_missing = sparse_missing
        self.n_jobs = n_jobs

    def _first_targets(self, target: NDArray[Any], classes: Any, weight: Floats) -> Floats:
        self.intercept_ = np.zeros(target.shape[1:])[()]
        return self._targets(target)
