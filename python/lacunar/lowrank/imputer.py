"""`LowRankImputer`: missing entries filled from a low-rank model with noise."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lacunar._products import row_product
from lacunar._random import fixed_seed, generator
from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Floats
from lacunar.lowrank.em import fit_em, shrunk
from lacunar.lowrank.hidden import choose_rank, fit_chosen, largest_rank
from lacunar.lowrank.model import LowRankGaussian
from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns
from lacunar.observed.door import TakesMissing, validate_X
from lacunar.observed.rules import COLUMNS, COUNT, Array, Instance, Number, Rule, Sometimes, floats

_SHRINKING = 10  # most steps of variational EM after those of EM


@whole_answers
class LowRankImputer(OneToOneFeatureMixin, TransformerMixin, TakesMissing):
    """Complete rows from what they show, by probabilistic PCA on the observed entries.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Rank, below the numbers of rows and columns. "auto" tries 1, 2, 3, 4, 6, 8, 12, ... up to
        64, then ranks around the best, and takes the smallest whose error at observed cells hidden
        from it is at most half a per cent above the least: a tenth of the cells, up to five tenths
        one after another in small tables, and cells of a sample of the rows where a column has more
        than 2,000. Too small a rank cannot complete, too large a one fits noise.
    self_masking : bool, default=False
        Whether entries are missing by their own values: entry j with probability height_j exp(-(x_j
        - center_j)^2 / (2 variance_j)), all three learned by column. Without it entries are taken
        as missing at random given what a row shows. The table is held dense.
    max_iter : int, default=100
        Most steps of EM; with n_components="auto" at most 25, each 1.8 times as long as EM's own.
        At most ten steps of variational EM follow for up to 64 components, fewer than columns.
    tol : float, default=1e-4
        Relative change of the basis at which EM stops.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Draws hidden cells and the start of the fit. None is a fixed draw.
    n_jobs : int, default=None
        Threads: None is one, -1 all processors that this process may use.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Basis of the standardised rows.
    noise_variance_ : float
        Mean variance of a standardised entry around the components.
    rank_errors_ : ndarray of shape (n_tried, 2)
        Ranks that were tried and their mean squared errors on hidden standardised cells (no rows
        for a given rank).
    posterior_ : LowRankPosterior
        Only with `self_masking`: the model of the standardised rows, with `mask_height_`,
        `mask_center_` and `mask_variance_`.
    n_iter_ : int
        Steps of the fit.
    mean_, scale_ : ndarrays of shape (d,)
        What is subtracted from every column, and what it is divided by then.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Notes
    -----
    Observed entries stay; a missing one becomes its posterior mean. A column never observed becomes
    0. O(nnz k^2 + n k^3) a step of EM. The steps of variational EM (as `POPCA` takes) shrink
    components that few entries support, which EM alone overfits. Tipping and Bishop, "Probabilistic
    Principal Component Analysis", 1999; self-masking: Le Morvan et al., "NeuMiss networks", 2020,
    section 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import LowRankImputer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) @ rng.normal(size=(1, 6))
    >>> seen = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    >>> bool(np.abs(LowRankImputer(1, random_state=0).fit_transform(seen) - X).max() < 0.2)
    True
    """

    _schema: ClassVar[dict[str, Rule]] = {
        **COLUMNS,
        "components_": floats("k", "d"),
        "noise_variance_": Number(low=0),
        "rank_errors_": Array("f", ("tried", 2), finite=False),
        "n_iter_": COUNT,
        "posterior_": Sometimes(Instance(LowRankPosterior)),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "self_masking": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_components: int | Literal["auto"] = "auto",
        *,
        self_masking: bool = False,
        max_iter: int = 100,
        tol: float = 1e-4,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.self_masking = self_masking
        self.max_iter = max_iter
        self.tol = tol
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> LowRankImputer:
        """Learn the low-rank model.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : ignored

        Returns
        -------
        self : LowRankImputer
        """
        table = validate_X(self, X, reset=True, sparse_missing=self.sparse_missing)
        columns = fit_columns(table, np.ones(table.shape[0]), standardize=True, n_jobs=self.n_jobs)
        rows = scale_columns(table, columns, n_jobs=self.n_jobs)
        self.scale_, self.observed_columns_ = columns.scale, columns.seen
        rng = generator(fixed_seed(self.random_state))
        options: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "n_jobs": self.n_jobs}
        errors: dict[int, float] = {}
        if self.n_components == "auto":
            rank, errors = choose_rank(rows, rng=rng, **options)
            fit = fit_chosen(rows, rank, rng=rng, **options)
        else:
            fit = fit_em(rows, min(self.n_components, largest_rank(rows)), rng=rng, mean=True, **options)
        self.rank_errors_ = np.array(list(errors.items()), dtype=np.float64).reshape(-1, 2)
        model = shrunk(fit.model, rows, _SHRINKING, self.n_jobs)
        if self.self_masking:
            self.posterior_ = self._masked(rows, model)
            model = self.posterior_.gaussian()
        elif "posterior_" in vars(self):
            del self.posterior_
        self.components_, self.noise_variance_ = np.ascontiguousarray(model.components), float(model.ridge)
        self.mean_ = columns.mean + columns.scale * model.mean
        self.n_iter_ = self.posterior_.n_iter_ if self.self_masking else fit.n_iter
        return self

    def _masked(self, rows: Observed, start: LowRankGaussian) -> LowRankPosterior:
        """The model with self-masking of standardised rows, from one of entries missing at random."""
        options = {"max_rows": rows.shape[0], "random_state": fixed_seed(self.random_state), "n_jobs": self.n_jobs}
        posterior = LowRankPosterior(len(start.components), self_masking=True, max_iter=self.max_iter, **options)
        return posterior.fit(rows.to_dense(), start=start)

    def transform(self, X: Any) -> Floats:
        """Complete rows (m, d).

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
            Rows.

        Returns
        -------
        rows : ndarray of shape (m, d)
        """
        check_is_fitted(self)
        table = validate_X(self, X, reset=False, sparse_missing=self.sparse_missing)
        if self.self_masking:
            columns = ColumnScale(self.mean_ - self.scale_ * self.posterior_.mean_, self.scale_, self.observed_columns_)
            standard: Floats = self.posterior_.complete(scale_columns(table, columns).to_dense())
        else:
            columns = ColumnScale(self.mean_, self.scale_, self.observed_columns_)
            model = LowRankGaussian(self.mean_, self.components_, self.noise_variance_)
            latent = model.latent(scale_columns(table, columns), n_jobs=self.n_jobs).latent
            standard = row_product(latent, self.components_, self.n_jobs)
        completed = standard * columns.scale + columns.mean
        completed[table.row_numbers, table.indices] = table.values
        return completed
