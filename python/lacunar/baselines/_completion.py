"""What mc-1 and mc-b share: columns, the choice of lambda and mu on hidden labels, unseen rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lacunar._codes import row_codes
from lacunar._products import row_product
from lacunar._random import fixed_seed, generator
from lacunar.baselines._continuation import (
    Solution,
    Steps,
    SvdSolver,
    continuation,
    largest_mu,
    make_threshold,
    mu_path,
    values_of,
)
from lacunar.baselines._stacked import Loss, Stacked
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns
from lacunar.observed.door import validate_X
from lacunar.observed.rules import COLUMNS, COUNT, LABELS, Array, Number, Rule, floats

_Floats = NDArray[np.float64]
Score = Callable[[_Floats, NDArray[np.bool_]], float]  # error of values (n, m) on the hidden labels

_LAMBDAS = (1e-3, 1e-2, 1e-1, 1.0)  # tried by Goldberg et al.
_FEWEST = 4  # known labels below which none is hidden
_PATIENCE = 3  # values of mu in a row with a larger error than before, after which smaller ones are not tried


class MatrixCompletion(BaseEstimator):  # type: ignore[misc]
    """A stacked matrix of features and labels, completed with a small nuclear norm."""

    _held: ClassVar[dict[str, Rule]] = {
        **COLUMNS,
        "classes_": LABELS,
        "basis_": floats("d", "k"),
        "label_basis_": floats("o", "k"),
        "bias_": floats("o"),
        "ones_basis_": floats("ones"),
        "rank_": Number(whole=True, low=0, names="k"),
        **dict.fromkeys(("lam_", "mu_", "ridge_", "ones_weight_"), Number(low=0)),
        "n_iter_": COUNT,
        "transduction_": Array("biufU", ("n",), finite=False),
    }
    _ones: ClassVar[bool]
    _loss: ClassVar[Loss]
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "lam": [Interval(Real, 0, None, closed="neither"), StrOptions({"holdout"})],
        "mu": [Interval(Real, 0, None, closed="neither"), StrOptions({"holdout"})],
        "mu_min": [Interval(Real, 0, None, closed="neither")],
        "eta": [Interval(Real, 0, 1, closed="neither")],
        "holdout": [Interval(Real, 0, 1, closed="neither")],
        "standardize": ["boolean"],
        "svd_solver": [StrOptions({"auto", "full", "truncated"})],
        "accelerate": ["boolean"],
        "max_rank": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "options": [StrOptions({"paper"}), None],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        lam: Any = "holdout",
        mu: Any = "holdout",
        mu_min: float = 1e-5,
        eta: float = 0.25,
        holdout: float = 0.25,
        standardize: bool = True,
        svd_solver: Any = "auto",
        max_rank: int | None = None,
        accelerate: bool = True,
        tol: float = 1e-5,
        max_iter: int = 1000,
        options: str | None = None,
        sparse_missing: Any = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.lam = lam
        self.mu = mu
        self.mu_min = mu_min
        self.eta = eta
        self.holdout = holdout
        self.standardize = standardize
        self.svd_solver = svd_solver
        self.max_rank = max_rank
        self.accelerate = accelerate
        self.tol = tol
        self.max_iter = max_iter
        self.options = options
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _complete(self, table: Observed, labels: _Floats, hide: NDArray[np.bool_] | None, score: Score) -> _Floats:
        """Fit to a table and labels (n, m) with NaN where unknown; `hide` (n,) are the rows to choose lambda and mu on."""
        columns = fit_columns(table, np.ones(table.shape[0]), standardize=self.standardize and not self._as_printed)
        self.center_, self.scale_, self.observed_columns_ = columns.center, columns.scale, columns.seen
        stacked = Stacked(scale_columns(table, columns), labels, self._loss, self._ones, 1.0)
        rng = generator(fixed_seed(self.random_state))
        self.lam_, self.mu_ = self._choose(stacked, hide, score, rng)
        final = Stacked(stacked.rows, labels, self._loss, self._ones, self.lam_)
        solution = list(self._walk(final, self.mu_, rng))[-1]
        if not solution.converged:
            far = f"{solution.left:.2g} of its norm"
            left = f"its last step was {far}" if self._as_printed else f"the matrix is about {far} from the solution"
            warnings.warn(
                f"{type(self).__name__} stopped at max_iter={self.max_iter} for mu={self.mu_:.3g}: {left}, "
                f"tol={self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._keep(final, solution)
        return values_of(final, solution)

    @property
    def _as_printed(self) -> bool:
        return bool(self.options == "paper")

    def _walk(self, stacked: Stacked, smallest: float, rng: np.random.Generator) -> Iterator[Solution]:
        """Solutions down to mu = `smallest`."""
        solver: SvdSolver = "full" if self._as_printed else self.svd_solver
        first = largest_mu(stacked, make_threshold(stacked.shape, solver, 1, rng))
        threshold = make_threshold(stacked.shape, solver, None if self._as_printed else self.max_rank, rng)
        printed = self._as_printed
        options = Steps(not self._ones, self.tol, self.max_iter, self.accelerate and not printed, printed)
        for found in continuation(stacked, mu_path(first, smallest, self.eta), threshold, options):
            if self.verbose:
                shown = (
                    f"lambda {stacked.lam:g}, mu {found.mu:.3g}: rank {len(found.matrix.sizes)}, {found.n_iter} steps"
                )
                print(f"[lacunar] {type(self).__name__} {shown}, {found.left:.2g} left", flush=True)
            yield found

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
            walk = self._walk(Stacked(stacked.rows, labels, stacked.loss, stacked.ones, lam), floor, rng)
            errors: list[float] = []
            for found in walk:
                if self.mu != "holdout" and found.mu > floor:
                    continue
                errors.append(score(values_of(stacked, found), hide))
                if errors[-1] < best:
                    best, chosen = errors[-1], (lam, found.mu)
                if self.mu == "holdout" and min(errors[-_PATIENCE:]) > min(errors):
                    break
        return chosen

    def _keep(self, stacked: Stacked, solution: Solution) -> None:
        """Rows of the column factors, scaled so that a row's code is ridge regression on them."""
        d, m, matrix = stacked.rows.shape[1], stacked.labels.shape[1], solution.matrix
        factors = matrix.right * np.sqrt(matrix.sizes)
        self.basis_, self.label_basis_ = factors[:d], factors[d : d + m]
        self.bias_, self.ridge_ = solution.bias, solution.mu * stacked.n_entries
        # Weight 1 / step against 1 / |Omega_X| of a feature: a longer entry of a longer row.
        self.ones_basis_ = factors[d + m] if stacked.ones else np.zeros(0)
        self.ones_weight_ = float(np.sqrt(stacked.n_entries / stacked.step)) if stacked.ones else 0.0
        self.rank_, self.n_iter_ = len(matrix.sizes), solution.n_iter

    def _check_loaded(self) -> None:
        """The column of ones has a code where the model has such a column, and nowhere else."""
        if "basis_" in vars(self) and len(self.ones_basis_) != (self.basis_.shape[1] if self._ones else 0):
            raise ValueError(
                f"ones_basis_ must fit a basis_ of shape {self.basis_.shape}; got {self.ones_basis_.shape}"
            )

    def _codes(self, X: Any) -> tuple[Observed, _Floats]:
        check_is_fitted(self, "basis_")
        table = validate_X(self, X, reset=False, sparse_missing=self.sparse_missing)
        if self.rank_ == 0:
            return table, np.zeros((table.shape[0], 0))
        rows, basis = scale_columns(table, ColumnScale(self.center_, self.scale_, self.observed_columns_)), self.basis_
        if self._ones:
            rows = _with_last(rows, self.ones_weight_)
            basis = np.vstack([basis, self.ones_weight_ * self.ones_basis_])
        return table, row_codes(rows, basis, self.ridge_, n_jobs=self.n_jobs).code

    def _values(self, X: Any) -> _Floats:
        """Values (n, m) of the labels of unseen rows."""
        made: _Floats = row_product(self._codes(X)[1], self.label_basis_.T, self.n_jobs) + self.bias_
        return made

    def impute(self, X: Any) -> _Floats:
        """Rows (n, d) with what is missing completed against the learned row space; observed entries stay.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Rows.

        Returns
        -------
        rows : ndarray of shape (n, d)
        """
        table, codes = self._codes(X)
        made: _Floats = row_product(codes, self.basis_.T, self.n_jobs) * self.scale_ + self.center_
        made[np.repeat(np.arange(table.shape[0]), table.row_counts), table.indices] = table.values
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def hidden_rows(
    known: NDArray[np.bool_], codes: NDArray[np.intp] | None, share: float, random_state: Any
) -> NDArray[np.bool_] | None:
    """A share of the known rows, of every class where classes allow; None when there are too few to hide any."""
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit  # imports rich: not at import time

    index = np.flatnonzero(known)
    count = round(share * len(index))
    if len(index) < _FEWEST or count < 1 or count >= len(index):
        return None
    stratified = codes is not None and bool(
        np.bincount(codes[index]).min() >= 2 and min(count, len(index) - count) > codes.max()
    )
    splitter = (StratifiedShuffleSplit if stratified else ShuffleSplit)(
        1, test_size=count, random_state=fixed_seed(random_state)
    )
    _, test = next(splitter.split(index, codes[index] if codes is not None else None))
    hide = np.zeros(len(known), dtype=bool)
    hide[index[test]] = True
    return hide


def _with_last(rows: Observed, value: float) -> Observed:
    """One more column, observed everywhere."""
    ends = rows.indptr[1:]
    return Observed(
        rows.indptr + np.arange(rows.shape[0] + 1),
        np.insert(rows.indices, ends, rows.shape[1]),
        np.insert(rows.values.astype(np.float64), ends, value),
        (rows.shape[0], rows.shape[1] + 1),
    )
