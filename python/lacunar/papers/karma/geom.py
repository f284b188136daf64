"""`GeomClassifier`: max-margin classification, every row's margin measured in the subspace it observes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from lacunar._dual import solve_dual
from lacunar._log import say, warn_user
from lacunar._products import row_product
from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Floats
from lacunar.kernels import KernelForm
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns, scaled_rows
from lacunar.observed.door import ScoreMixin, TakesMissing, check_classes, validate_X_y
from lacunar.observed.rules import COLUMNS, COUNT, LABELS, ObservedTable, Rule, floats, whole

_SETTLED = 1e-6  # change of every s below which further rounds repeat the last


@whole_answers
class GeomClassifier(ScoreMixin, ClassifierMixin, TakesMissing):
    """Max-margin classifier on rows with absent features, by Chechik, Heitz, Elidan, Abbeel and
    Koller.

    The margin of row i is y_i w.x_i / ||w^(i)||, where w^(i) is w on the columns that the row has.
    With s_i = ||w^(i)|| / ||w|| it minimises 1/2 ||w||^2 + C sum_i max(0, 1 - y_i w.x_i / s_i),
    which is not convex: every round solves it for fixed s, from s = 1, and then computes s anew
    [1]_. Without missing entries s stays 1 and this is the support vector machine.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed hinge loss, > 0.
    kernel : {"linear", "poly"}, default="linear"
        Inner product of rows over their common columns, or (that + constant)^degree: kernels that
        see features through inner products only.
    degree : int, default=2
        Of "poly", >= 1.
    n_rounds : int, default=5
        Most rounds; [2]_ uses 5.
    min_scale : float, default=1e-3
        Least s_i, in (0, 1]: the weight of a row in which w has few of its columns grows as 1 /
        s_i.
    standardize : bool, default=True
        Subtract the mean of each column and divide by its standard deviation, over observed
        entries. [2]_ says that data were normalised for KARMA and does not say it for this method.
    constant : bool, default=True
        Append a column of ones that every row has; it takes the place of a bias.
    tol : float, default=1e-3
        Relative duality gap of a round.
    max_iter : int, default=1000
        Most passes of a round.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    n_jobs : int, default=None
        Threads of the kernel.
    verbose : int, default=0
        Whether to report every round.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels, sorted; at most two.
    subspace_scale_ : ndarray of shape (n,)
        s_i of the training rows under the final w.
    objective_ : ndarray of shape (n_iter_,)
        The objective above, s taken from w itself, after every round. It need not fall: nothing in
        [1]_ makes it.
    dual_coef_ : ndarray of shape (n_support,)
        w is the sum of these multiples of the kept rows.
    support_ : ndarray of shape (n_support,)
        Row numbers of the kept rows.
    support_rows_ : Observed of shape (n_support, d)
        The kept rows, standardised.
    mean_, scale_, observed_columns_ : ndarrays of shape (d,)
        What is subtracted from every column, what it is divided by then, and whether it is used:
        not where `fit` never observed it, or saw one value in all rows.
    n_iter_ : int
        Rounds made: fewer when s no longer changes.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        In `fit`: infinite entries, missing labels or more than two. In `predict`: other columns
        than in `fit`.

    Warns
    -----
    ConvergenceWarning
        A round ended at `max_iter`.

    See Also
    --------
    lacunar.KarmaClassifier : The kernel method that [2]_ measures against this one; `gamma=1` is
        the first round.

    Notes
    -----
    The column of ones belongs to every subspace and counts in ||w^(i)||. O(n^2) memory; a round
    costs a dual solution over the n x n Gram and O(nnz) for s, or O(n_support^2 o) for each pattern
    of o observed columns under "poly".

    References
    ----------
    .. [1] G. Chechik, G. Heitz, G. Elidan, P. Abbeel, D. Koller, "Max-margin Classification of Data
       with Absent Features", JMLR 9, 2008.
    .. [2] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.karma import GeomClassifier
    >>> X = np.array([[2.0, np.nan], [1.5, 1.0], [-1.0, np.nan], [np.nan, -2.0]])
    >>> GeomClassifier().fit(X, ["yes", "yes", "no", "no"]).predict([[np.nan, 3.0], [-2.0, np.nan]])
    array(['yes', 'no'], dtype='<U3')
    """

    _schema: ClassVar[dict[str, Rule]] = {
        **COLUMNS,
        "classes_": LABELS,
        "subspace_scale_": floats("n"),
        "objective_": floats("rounds", finite=False),
        "n_iter_": COUNT,
        "support_": whole("s", distinct=True),
        "support_rows_": ObservedTable(("s", "d")),
        "dual_coef_": floats("s"),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"linear", "poly"})],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "min_scale": [Interval(Real, 0, 1, closed="right")],
        "standardize": ["boolean"],
        "constant": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Literal["linear", "poly"] = "linear",
        degree: int = 2,
        n_rounds: int = 5,
        min_scale: float = 1e-3,
        standardize: bool = True,
        constant: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        sparse_missing: Literal["absent", "nan"] = "absent",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.n_rounds = n_rounds
        self.min_scale = min_scale
        self.standardize = standardize
        self.constant = constant
        self.tol = tol
        self.max_iter = max_iter
        self.sparse_missing = sparse_missing
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> GeomClassifier:
        """Fit to rows with absent features.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : array-like of shape (n,)
            Labels of two classes: numbers or strings.

        Returns
        -------
        self : GeomClassifier
        """
        table, target = validate_X_y(self, X, y, sparse_missing=self.sparse_missing)
        check_classes(target)
        self.classes_, y_encoded = np.unique(target, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {type_of_target(target)}. "
                "Use sklearn.multiclass.OneVsRestClassifier, or lacunar.KarmaClassifier."
            )
        columns = fit_columns(table, np.ones(table.shape[0]), standardize=self.standardize)
        self.mean_, self.scale_, self.observed_columns_ = columns[:3]
        rows = scale_columns(table, columns)
        dual = np.zeros(table.shape[0])
        self.subspace_scale_, self.objective_, self.n_iter_ = np.ones(len(dual)), np.zeros(0), 0
        if len(self.classes_) == 2:
            dual = self._rounds(rows, np.where(y_encoded == 1, 1.0, -1.0))
        self.support_ = np.flatnonzero(dual)
        self.support_rows_, self.dual_coef_ = rows[self.support_], dual[self.support_]
        return self

    def _rounds(self, rows: Observed, sign: Floats) -> Floats:
        """Coefficients (n,) of the rows in w."""
        gram, path = self._kernel(rows), []
        scale, dual = np.ones(len(sign)), np.zeros(len(sign))
        for n_iter in range(1, self.n_rounds + 1):
            dual = self._solve((gram / np.outer(scale, scale)).astype(np.float32), sign) / scale
            before, (scale, size) = scale, self._scales(rows, dual)
            losses = np.maximum(0.0, 1.0 - sign * (gram @ dual) / scale)
            path.append(0.5 * size**2 + self.C * float(losses.sum()))
            say(self.verbose, "GeomClassifier round %d: objective %.6g, least s %.3g", n_iter, path[-1], scale.min())
            if np.abs(scale - before).max() <= _SETTLED:
                break
        self.subspace_scale_, self.objective_, self.n_iter_ = scale, np.array(path), n_iter
        return dual

    def _solve(self, gram: NDArray[np.float32], sign: Floats) -> Floats:
        result = solve_dual(gram, sign, np.full(len(sign), float(self.C)), tol=self.tol, max_iter=self.max_iter)
        if not result.converged:
            warn_user(
                f"GeomClassifier stopped a round at a relative duality gap of {result.gap:.3g} after {result.n_iter} "
                f"passes, tol={self.tol:g}. Raise max_iter, tol or min_scale, or lower C.",
                ConvergenceWarning,
            )
        return result.coef

    def _kernel(self, rows: Observed, others: Observed | None = None) -> Floats:
        form = KernelForm(gamma=1.0, constant=float(self.constant))
        gram: Floats = form.gram(rows, others, n_jobs=self.n_jobs)
        if self.kernel == "poly":
            base = gram.copy()
            for _ in range(self.degree - 1):  # products have the same bits in every place of an array; powers may not
                gram *= base
        return gram

    def _scales(self, rows: Observed, dual: Floats) -> tuple[Floats, float]:
        """s (n,) of the rows under w, and ||w||."""
        index = np.flatnonzero(dual)
        support = rows[index], dual[index], float(self.constant)
        norms, size = (
            linear_norms(rows, *support) if self.kernel == "linear" else poly_norms(rows, *support, self.degree)
        )
        if size == 0.0:
            return np.ones(len(norms)), 0.0
        return np.clip(norms / size, self.min_scale, 1.0), size

    def decision_function(self, X: Any) -> Floats:
        """w.x over the observed columns, positive for `classes_[1]`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        values : ndarray of shape (m,)
            Not divided by the row's s, which changes no sign. Zeros when `fit` saw one class only.
        """
        check_is_fitted(self)
        columns = ColumnScale(self.mean_, self.scale_, self.observed_columns_)
        rows = scaled_rows(self, X, columns, sparse_missing=self.sparse_missing)
        if not len(self.support_):
            return np.zeros(rows.shape[0])
        return row_product(self._kernel(rows, self.support_rows_), self.dual_coef_, self.n_jobs)

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of every row.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        labels : ndarray of shape (m,)
        """
        positive = self.decision_function(X) > 0
        return self.classes_[np.where(positive, len(self.classes_) - 1, 0)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def linear_norms(rows: Observed, support: Observed, dual: Floats, constant: float) -> tuple[Floats, float]:
    """||w^(i)|| (n,) over the observed columns of every row and the constant one, and ||w||. O(nnz)."""
    squares = np.square(support.to_scipy().T @ dual)
    always = (constant * float(dual.sum())) ** 2
    pattern = sp.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)  # 1 where observed
    return np.sqrt(pattern @ squares + always), float(np.sqrt(squares.sum() + always))


def poly_norms(rows: Observed, support: Observed, dual: Floats, constant: float, degree: int) -> tuple[Floats, float]:
    """`linear_norms` for w = sum dual_j phi(x_j) under the kernel (x.x' + constant^2)^degree.

    In the subspace of some columns w is the same sum over the rows of `support` cut to these columns: its norm is
    sqrt(dual K dual). O(n_support^2 o) for every pattern of o observed columns that occurs.
    """

    def norm(columns: sp.csc_array) -> float:
        gram = (columns @ columns.T).toarray()
        return float(np.sqrt(max(dual @ (gram + constant**2) ** degree @ dual, 0.0)))

    table, known, norms = support.to_scipy().tocsc(), {}, np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        seen = rows.indices[rows.indptr[i] : rows.indptr[i + 1]]
        key = seen.tobytes()
        if key not in known:
            known[key] = norm(table[:, seen])
        norms[i] = known[key]
    return norms, norm(table)
