"""`KarmaRegressor`: numbers from rows with holes, by kernel ridge regression with the kernel of KARMA."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, _fit_context

from lacunar._check import validate_X_y
from lacunar.karma._base import KarmaBase
from lacunar.karma._ridge import solve_ridge
from lacunar.karma._weights import row_weights


class KarmaRegressor(RegressorMixin, KarmaBase):  # type: ignore[misc]
    """Kernel ridge regression on partially observed rows, with the kernel of Hazan, Livni and Mansour.

    With s the inner product of two rows over their n common entries, the kernel is (s + a n) g(n / c),
    g(u) = 1 + u + ... + u^(gamma - 1) ([1]_, Theorem 4). Nothing is imputed; `gamma=1` is imputation by the column mean.

    Parameters
    ----------
    gamma : float, default=2
        Longest sequence of observed columns the embedding distinguishes, >= 1; 1 to 4 are useful.
    C : float, default=1.0
        Weight of the summed squared loss against 1/2 ||v||^2, > 0. The fit is linear in y, so the best C does not
        depend on the unit of y; with `normalize="trace"` it lies between 1e-3 and 1e3 (to 1e6 for targets without
        noise).
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
    options : {"paper"}, default=None
        "paper" sets `scale="raw"`, `normalize=None`, `indicators=False`, `constant=True`.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: "absent" is missing, "nan" is zero (and only a stored NaN is missing).
    n_jobs : int, default=None
        Threads of the kernel. None is 1, -1 all processors.

    Attributes
    ----------
    intercept_ : float or ndarray of shape (t,)
        Weighted mean of y, taken off before the fit and added to predictions.
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
        In `fit`: infinite entries, y with holes, negative or all-zero weights. In `predict`: other columns than in `fit`.

    See Also
    --------
    KarmaRegressorCV : Chooses the kernel and C by exact leave-one-out.

    Notes
    -----
    `sample_weight` means repetition, as in `KarmaClassifier`. A row with nothing observed gets the mean of y, corrected
    by the constant column. O(n^2) memory, n^3/3 multiplications.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = KarmaBase._parameter_constraints

    def __init__(
        self,
        gamma: float = 2,
        *,
        C: float = 1.0,
        scale: float | Literal["mean", "raw"] = "mean",
        indicators: bool = False,
        normalize: Literal["trace", "cosine"] | None = "trace",
        standardize: bool = True,
        constant: bool = True,
        options: Literal["paper"] | None = None,
        sparse_missing: Literal["absent", "nan"] = "absent",
        n_jobs: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.C = C
        self.scale = scale
        self.indicators = indicators
        self.normalize = normalize
        self.standardize = standardize
        self.constant = constant
        self.options = options
        self.sparse_missing = sparse_missing
        self.n_jobs = n_jobs

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
        """
        table, target = validate_X_y(self, X, y, sparse_missing=self.sparse_missing, y_numeric=True, multi_output=True)
        weight = row_weights(sample_weight, table)
        index = np.flatnonzero(weight)
        if len(index) < len(weight):
            table, target, weight = table[index], target[index], weight[index]
        target = target.astype(np.float64)
        self.intercept_ = np.average(target, axis=0, weights=weight)
        rows, gram = self._fit_kernel(table, weight)
        centred = (target - self.intercept_).reshape(len(target), -1)
        coef = solve_ridge(gram, centred, 1.0, self.C * weight)
        self._keep_rows(rows, coef, index)
        self.n_support_ = len(self.support_)
        return self

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
