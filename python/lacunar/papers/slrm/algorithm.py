"""`PrintedSLRM`: Algorithm 1 of Ganti and Willett (2015), with Algorithm 2, to the letter."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._latent import latent_rows
from lacunar._log import warn_user
from lacunar._random import generator
from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Floats
from lacunar.lowrank.em import first_basis
from lacunar.lowrank.ridge import lasso_on_sums
from lacunar.lowrank.trackers import NotFiniteError, PerColumnRls
from lacunar.observed import Observed
from lacunar.papers.slrm.base import PrintedRegression, check_start, shortest_latent

_HELD_OUT = 0.25  # share of the rows that `fit` validates on where it gets no others


@whole_answers
class PrintedSLRM(PrintedRegression):
    """Algorithm 1 of [1]_ with Algorithm 2: subspace and label weights by stochastic steps, the best iterate on validation rows.

    `lacunar.lowrank.SLRMRegressor` minimises the same kind of objective more accurately and 10 to 30 times faster. Here, nothing is
    centred or scaled, there is no intercept, and rows that the gate of (6) refuses are predicted as 0.

    Parameters
    ----------
    d : int or None, default=None
        Dimension of the subspace, at most the number of columns and 64. None is 10, or the number of columns where there are fewer.
    lambda_1 : float, default=10.0
        Weight of the entries against the label in a code, in (5). Finite; [1]_ prints no value.
    lambda_2, lambda_3 : float, default=1e-3
        Weights of the l1 norm and of half the squared l2 norm of w, in (5). [1]_ prints no value.
    rho : float, default=1e-3
        Step of w: eta_t is rho for `constant_rounds` rounds, then rho / t.
    constant_rounds : int or None, default=None
        None is the number of training rows, one pass.
    delta : float, default=10.0
        Every inverse correlation R_j of Algorithm 2 starts as delta I.
    gamma : float, default=0.001
        Of (6): rows with lambda_min(U_O^T U_O) D / o < 1 - gamma for o observed entries are predicted as 0. The default is that of
        section 6, which refuses nearly every row with a missing entry.
    max_iter : int, default=1
        Passes over the training rows. Algorithm 1 makes one, section 6 up to 500.
    validate : {"step", "pass"} or None, default="step"
        Steps 9 to 13 after every step, as printed, or after every pass, which is faster by as much as there are rows in a pass and
        chooses no worse. With None `fit` holds no row out, and the last iterate is kept.
    U0 : array-like of shape (D, d), default=None
        Where U starts, with orthonormal columns. None is the singular vectors of the rows filled with zeros (section 4.2).
    w0 : array-like of shape (d,), default=None
        Where w starts. None is the lasso (4) on the projections of the rows on U0.
    random_state : int, RandomState or None, default=None
        Draws the rows that are held out.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        U^T: orthonormal rows.
    coef_ : ndarray of shape (d,)
        w.
    feature_coef_ : ndarray of shape (D,)
        U w, the weights of the columns of complete rows.
    validation_errors_ : list of float
        Mean squared errors on the rows held out, by step or pass.
    n_components_, n_features_in_ : int
    n_iter_, n_singular_ : int
        Passes, and rows whose code was not unique.

    See Also
    --------
    lacunar.lowrank.SLRMRegressor : The same model, to predict with.
    lacunar.lowrank.SLRMOnlineRegressor : The same model along a stream, without steps to choose.

    Notes
    -----
    A step costs O(o d^2 + d^3) for o entries, a validation as much for every row that is validated on.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, Algorithms 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.slrm import PrintedSLRM
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(400, 2))
    >>> X = a @ rng.normal(size=(2, 12))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> model = PrintedSLRM(2, gamma=0.99, rho=0.01, max_iter=5, validate="pass", random_state=0).fit(X[:300], a[:300, 0])
    >>> bool(model.score(X[300:], a[300:, 0]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PrintedRegression._parameter_constraints,
        **{name: [Interval(Real, 0, None, closed="neither")] for name in ("lambda_1", "lambda_2", "lambda_3")},
        "gamma": [Interval(Real, 0, 1, closed="left")],
        "validate": [StrOptions({"step", "pass"}), None],
    }

    def __init__(
        self,
        d: int | None = None,
        *,
        lambda_1: float = 10.0,
        lambda_2: float = 1e-3,
        lambda_3: float = 1e-3,
        rho: float = 1e-3,
        constant_rounds: int | None = None,
        delta: float = 10.0,
        gamma: float = 1e-3,
        max_iter: int = 1,
        validate: Literal["step", "pass"] | None = "step",
        U0: Any = None,
        w0: Any = None,
        random_state: Any = None,
    ) -> None:
        self.d = d
        self.lambda_1 = lambda_1
        self.lambda_2 = lambda_2
        self.lambda_3 = lambda_3
        self.rho = rho
        self.constant_rounds = constant_rounds
        self.delta = delta
        self.gamma = gamma
        self.max_iter = max_iter
        self.validate = validate
        self.U0 = U0
        self.w0 = w0
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit(self, X: Any, y: Any, *, X_val: Any = None, y_val: Any = None) -> PrintedSLRM:
        """Steps 1 to 14, over the rows in their order.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : array-like of shape (n,)
            NaN where unknown.
        X_val, y_val : array-likes as X and y, default=None
            The hold-out set of steps 9 to 13. Without them a quarter of the rows is held out, unless `validate` is None.

        Returns
        -------
        self
        """
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together; got one of them. Pass both, or none.")
        rows, labels = self._begin(X, y)
        rng, train = generator(self.random_state), np.arange(rows.shape[0])
        if X_val is None:
            share = 0.0 if self.validate is None else _HELD_OUT
            held_out = np.sort(rng.permutation(len(train))[: round(share * len(train))])
            train, held_rows, held_labels = np.setdiff1d(train, held_out), rows[held_out], labels[held_out]
        else:
            held_rows = self._check_rows(X_val)
            held_labels = self._check_labels(y_val, held_rows)
            held_rows = self._standardised(held_rows)
        rows, labels = rows[train], labels[train]
        U, w = check_start(self.U0, self.w0, rows.shape[1], self.n_components_)
        U = first_basis(rows, self.n_components_, rng)[0] if U is None else U
        w = first_weights(rows, labels, U, float(self.lambda_2)) if w is None else w
        known = np.flatnonzero(~np.isnan(held_labels))
        self._descend(rows, labels, U, w, held_rows[known], held_labels[known])
        return self

    def _descend(
        self, rows: Observed, labels: Floats, U: Floats, w: Floats, held_rows: Observed, held_labels: Floats
    ) -> None:
        """Steps 3 to 13 from U and w: keeps the iterate with the least validation error, the last one without rows to validate on."""
        n = rows.shape[0]
        tracker = PerColumnRls(
            U, w, lam1=float(self.lambda_1), lam2=float(self.lambda_2), lam3=float(self.lambda_3), rho=float(self.rho),
            delta=float(self.delta), constant_until=self.constant_rounds or max(n, 1), continuous=False, orthonormal=True,
        )  # fmt: skip
        best, errors = (U, w), list[float]()
        self.validation_errors_ = errors
        for part in self._rounds(n):
            try:
                tracker.run(rows[part], np.ascontiguousarray(labels[part]))
            except NotFiniteError as error:
                self._stop_at_overflow(errors, error)
                break
            if len(held_labels):
                iterate = tracker.basis(), tracker.w.copy()
                errors.append(validation_error(held_rows, held_labels, *iterate, float(self.gamma)))
                best = iterate if errors[-1] < min(errors[:-1], default=np.inf) else best
        U, w = best if errors else (tracker.basis(), tracker.w.copy())
        self._store(U, w, int(self.max_iter), tracker.n_singular)

    def _rounds(self, n: int) -> Iterator[slice]:
        """Rows between two validations, in the order of the rows."""
        size = 1 if self.validate == "step" else n
        for _ in range(self.max_iter):
            for start in range(0, n, size):
                yield slice(start, start + size)

    def _stop_at_overflow(self, errors: list[float], error: NotFiniteError) -> None:
        """A warning where an iterate before was finite, otherwise an error."""
        if not np.isfinite(min(errors, default=np.inf)):
            raise NotFiniteError(
                f"rho must keep the weights finite; with rho={self.rho:g} they overflow at the start. Use a smaller rho, or "
                "smaller values in X."
            ) from error
        warn_user(
            f"the weights overflow after validation {len(errors)} with rho={self.rho:g}; what was best on held-out rows is kept. "
            "Use a smaller rho.",
            ConvergenceWarning,
        )

    def _predictable(self, rows: Observed) -> NDArray[np.bool_]:
        return gate_passes(rows, self.components_.T, float(self.gamma))


def first_weights(rows: Observed, labels: Floats, U: Floats, lambda_2: float) -> Floats:
    """Step 1: the lasso (4) of the known labels on the projections of their rows."""
    known, start = ~np.isnan(labels), np.zeros(U.shape[1])
    if not known.any():
        return start
    latent = shortest_latent(rows[np.flatnonzero(known)], U)
    second, first = latent.T @ latent, latent.T @ labels[known]
    return lasso_on_sums(second, first, len(latent), lambda_2, 0.0, start, sweeps=100_000)


def validation_error(rows: Observed, labels: Floats, U: Floats, w: Floats, gamma: float) -> float:
    """Step 9: mean squared error of (6), which is 0 for rows that the gate refuses."""
    predictions, passes = np.zeros(len(labels)), np.flatnonzero(gate_passes(rows, U, gamma))
    predictions[passes] = latent_rows(rows[passes], U, 0.0).latent @ w
    with np.errstate(over="ignore"):
        return float(np.mean((predictions - labels) ** 2))


def gate_passes(rows: Observed, U: Floats, gamma: float) -> NDArray[np.bool_]:
    """The indicator of (6) by row: whether lambda_min(U_O^T U_O) D / o >= 1 - gamma. O(o d^2 + d^3) a row."""
    D, d = U.shape
    counts, least = rows.row_counts, np.zeros(rows.shape[0])
    enough = np.flatnonzero(counts >= d)  # the matrix of others is singular
    for start in range(0, len(enough), 1024):
        block = enough[start : start + 1024]
        parts = (U[rows.indices[rows.indptr[i] : rows.indptr[i + 1]]] for i in block)
        least[block] = np.linalg.eigvalsh(np.stack([part.T @ part for part in parts]))[:, 0]
    passes: NDArray[np.bool_] = (counts > 0) & (least * D >= (1 - gamma) * counts)
    return passes
