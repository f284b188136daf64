"""`SLRMRegressor`: regression through a low-rank subspace learned from all rows at once, by EM or alternating least
squares.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from numbers import Integral, Real
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._log import say
from lacunar._random import fixed_seed, generator
from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Floats
from lacunar.lowrank.drawn import DrawnRows, Shares, drawn, gathered
from lacunar.lowrank.em import Fit, Progress, fit_als, fit_em
from lacunar.lowrank.hidden import RELAX, most_cells
from lacunar.lowrank.model import LowRankGaussian
from lacunar.lowrank.parts import FileParts, InMemory, RowParts, adopt_columns, agree_targets, columns_of, in_parts
from lacunar.lowrank.regression import Labelled, SubspaceRegression, label_squares, label_totals
from lacunar.lowrank.supervised import (
    LABEL_STEPS,
    LabelJudge,
    Labels,
    append_labels,
    fit_supervised,
    labels_gain,
    supervised_start,
    with_label_columns,
)
from lacunar.observed import Observed, ObservedFile
from lacunar.observed.columns import ColumnScale, scale_columns

_MANY_ROWS = 20_000  # from which on a fit begins at a sample of the rows


@whole_answers
class SLRMRegressor(SubspaceRegression):
    """Linear regression through a low-dimensional subspace that partially observed rows share.

    Rows are x = U a + noise, observed in part, and labels y = w a + noise. Subspace, weights and
    the ridge that latent coordinates need are learned together; labels may be missing (NaN) too. A
    row is predicted from the latent coordinates of its observed entries. The model is that of [1]_,
    fitted to all rows at once; `SLRMOnlineRegressor` learns from streams, and `lacunar.papers.slrm`
    has the algorithm as printed.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension d of the subspace, at most the number of columns. None is 10, or the number of
        columns where there are fewer, and less where columns have fewer than three entries for each
        (and more columns than rows 1.25 for each of its numbers). With a learned ridge and more
        entries, too many cost little.
    solver : {"em", "als"}, default="em"
        "em" is maximum likelihood (factor analysis with one noise variance), "als" alternating
        least squares with a learned ridge.
    lam1 : "auto", "inf" or float, default="auto"
        Weight of the entries against the label, in standard deviations of y, while the subspace is
        learned (lambda_1 of (5)). Infinite: the subspace does not see labels. A small one helps
        where y depends on a direction of little variance. "auto" is infinite, unless labels of rows
        that are held out are predicted better with a weight of .1 and one direction more a target.
        ("als" always has it infinite.)
    alpha : "auto" or float, default="auto"
        Ridge on w, in units of a row; "auto" is chosen by exact leave-one-out, and with finite
        `lam1` the w that EM learned with the subspace.
    max_iter : int, default=100
        Steps of "em", sweeps of "als".
    tol : float, default=1e-4
        Relative change of the basis at which they stop.
    standardize : bool, default=True
        Subtract column means and divide by standard deviations, over observed entries; by the
        largest of these where the noise of the columns is then more alike, as where all are of one
        unit. A column of one value in all rows is left out.
    clip : float or None, default=8.0
        Largest absolute value after standardising.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn; an int gives the same result again.
    n_jobs : int, default=None
        Threads. The result does not depend on it.
    verbose : int, default=0
        Whether to report steps.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Orthonormal rows that span the subspace of the standardised rows.
    coef_ : ndarray of shape (d,) or (d, targets)
        w in the coordinates of `components_`.
    feature_coef_ : ndarray of shape (D,) or (D, targets)
        U w in units of the data: what to show and interpret; no rotation of the subspace changes
        it.
    intercept_ : float or ndarray of shape (targets,)
        The prediction where all latent coordinates are 0.
    sizes_ : ndarray of shape (d,)
        Lengths of the columns of the basis in which latent coordinates have variance `tau_`.
    sigma2_ : float
        Variance of an entry's noise (standardised).
    tau_ : float
        Variance of a latent coordinate, so that `ridge_` = sigma2_ / tau_.
    ridge_ : float
        Strength of the ridge on latent coordinates.
    mean_, scale_, observed_columns_ : ndarrays of shape (D,)
        What is subtracted from every column, what it is divided by then, and whether it is used:
        not where `fit` never observed it, or saw one value in all rows.
    label_mean_, label_scale_, label_variance_ : ndarrays of shape (targets,)
        Mean and standard deviation of y, the latter 1 where y is constant; and variance of y around
        its prediction beside `spread_scale_` times what the missing entries leave, negative where y
        depends on the entries' own noise.
    spread_scale_ : ndarray of shape (targets,)
        Share of that which is an error of y: 1 where y is linear in a.
    n_components_ : int
        Dimension of the subspace, with the directions that `lam1="auto"` adds.
    n_iter_, n_singular_ : int
        Steps over all rows, and rows whose latent coordinates were not unique.
    converged_ : bool
        Whether `tol` was reached within `max_iter`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (D,)
        Only when X has column names.

    Raises
    ------
    ValueError
        In `fit`: infinite entries; `n_components` above the number of columns. In `predict`: no
        label was known.

    See Also
    --------
    SLRMRegressorCV : Chooses n_components, lam1 and alpha.
    SLRMOnlineRegressor : Streams of rows.

    Notes
    -----
    (5) is unchanged by U -> U Q, a -> Q^T a, w -> Q^T w but for the l1 norm of w, which therefore
    selects nothing: the penalty is a ridge. For classes there is `KarmaClassifier`.

    A step of "em" costs O(nnz d^2 + n d^3), a sweep of "als" O(nnz d^2 + (n + D) d^3). From 20,000
    rows on "em" begins at the model of a sample of rows with 2,000 entries a column, and ends where
    labels of the sample that are held out gain less than 1e-4 of their error; rows are drawn by a
    hash of what they hold, so that neither their order nor how they are stored matters.
    `lam1="auto"` adds at most five times ten steps on the rows, or the sample; where labels gain,
    the fit holds a second copy of the entries, with labels as further columns.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import SLRMRegressor
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(300, 2))
    >>> X = a @ rng.normal(size=(2, 12)) + 0.1 * rng.normal(size=(300, 12))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> y = a[:, 0]
    >>> model = SLRMRegressor(2, random_state=0).fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceRegression._parameter_constraints,
        "solver": [StrOptions({"em", "als"})],
        "lam1": [StrOptions({"auto", "inf"}), Interval(Real, 0, None, closed="neither")],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        solver: Literal["em", "als"] = "em",
        lam1: float | Literal["auto", "inf"] = "auto",
        alpha: float | Literal["auto"] = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        standardize: bool = True,
        clip: float | None = 8.0,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.lam1 = lam1
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.standardize = standardize
        self.clip = clip
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> SLRMRegressor:
        """Fit to rows and labels, both with missing values.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (n, D)
            A file is read once a step, block by block, and is never in memory as a whole.
        y : array-like of shape (n,) or (n, targets)
            NaN where unknown. None for a file, which holds its own labels.

        Returns
        -------
        self
        """
        if not isinstance(X, ObservedFile):
            checked = self._read(X, y)
            labels = self._fit_scales(*checked)
            self._fit_scaled(InMemory(checked), lambda: (self._standardised(checked[0]), labels))
            return self
        if y is not None or not X.has_labels:
            raise ValueError(
                f"labels of an ObservedFile must be in the file, and y None; got {X!r} "
                f"{'with' if X.has_labels else 'without'} labels and y of type {type(y).__name__}. Write both with "
                "lacunar.observed.write_batches."
            )
        return self._fit_parts(FileParts(X))

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit_parts(self, parts: Any) -> SLRMRegressor:
        """Fit to rows in parts that may lie on other machines; only sums over the rows of a part
        leave it.

        Parameters
        ----------
        parts : object with methods map, each and total
            Of pairs (X, y) as in `fit`. `map(step, *arguments)` returns parts made by
            `step(part, *arguments)`, with `keep=False` where they cost nothing and need not be
            stored; `each` the list of what it returns for every part, `total` the sums of the
            tuples it returns. `lacunar.distributed.fit_slrm` passes parts that are Dask's.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            RowParts with other columns or targets.
        """
        return self._fit_parts(parts)

    def _fit_parts(self, parts: RowParts) -> SLRMRegressor:
        checked = self._check_parts(parts)
        self._fit_scaled(checked, lambda: self._table_of(checked))
        return self

    def _check_parts(self, parts: RowParts) -> RowParts:
        """Checked rows and labels, whose means and scales are those of a new fit."""
        tables = parts.map(_check_part, clone(self))
        columns, targets = zip(*tables.each(attrgetter("columns", "targets")), strict=True)
        self._check_rank(adopt_columns(self, list(columns)))
        self.one_target_ = agree_targets(list(targets))
        self._fit_columns(tables.map(attrgetter("rows"), keep=False))
        self._fit_label_means(*tables.total(_label_totals))
        self._fit_label_scales(*tables.total(_label_squares, self.label_mean_))
        return tables

    def _table_of(self, checked: RowParts) -> RowParts:
        """Standardised rows and centred labels of checked parts."""
        return checked.map(_ready, *self._columns(), self.label_mean_, self.n_jobs)

    def _fit_scaled(self, checked: RowParts, standardised: Callable[[], Labelled | RowParts]) -> None:
        """Fit to rows as `standardised()` returns them, once more where one number for all columns suits better the
        model of the rows, or of a sample where they are many.
        """
        shares, table = self._shares(checked), standardised()
        if shares.all_rows:
            fit = self._fit_table(table, checked)
            if self._find_one_scale(fit.model, table):
                del table  # memory is for one
                table = standardised()
                fit = self._fit_table(table, checked)
        else:
            sample = self._drawn(checked, shares).map(_labelled, keep=False)
            if self._find_one_scale(self._fit_subspace(sample, RELAX).model, sample):
                del table  # memory is for one
                table = standardised()
            fit = self._fit_table(table, checked)
        self._store(fit, table, self.alpha)

    def _fit_table(self, table: Labelled | RowParts, checked: RowParts) -> Fit:
        """The model of standardised rows; of many rows by a few steps from the model of a sample, and with directions of
        the labels where they gain.

        `checked` are the rows and labels as they came, by which samples are drawn.
        """
        choosing = self.lam1 == "auto" and bool(np.any(self.labelled_))
        if self.solver == "als" or not (choosing or self.lam1 in ("auto", "inf")):
            return self._fit_subspace(table)
        shares = self._shares(checked)
        if shares.all_rows:
            return self._fit_few(table, self._drawn(checked, shares) if choosing else None)
        return self._fit_many(table, self._drawn(checked, shares))

    def _drawn(self, checked: RowParts, shares: Shares) -> RowParts:
        """The sampled rows, standardised, with centred labels."""
        return gathered(checked.map(drawn, shares).map(_ready_drawn, *self._columns(), self.label_mean_, self.n_jobs))

    def _fit_few(self, table: Labelled | RowParts, sample: RowParts | None) -> Fit:
        plain, labels = self._fit_subspace(table), self._labels()
        if sample is None or not labels_gain(sample, plain, labels, **self._ends()):
            return plain
        rows = in_parts(table)
        start = supervised_start(rows, plain, labels)
        return fit_supervised(rows, start, labels, self._progress("SLRM label step"), **self._ends())[0].rotated()

    def _fit_many(self, table: Labelled | RowParts, sample: RowParts) -> Fit:
        labels, judge = self._labels(), LabelJudge(sample, self._labels())
        rows = sample.map(_labelled, keep=False)
        plain = self._fit_subspace(rows, RELAX)
        if self.lam1 != "auto" or not labels_gain(sample, plain, labels, **self._ends()):
            return self._fit_subspace(table, RELAX, plain, judge)
        start = fit_supervised(rows, supervised_start(rows, plain, labels), labels, **self._ends())[1]
        ends = self._ends() | {"until": judge}
        return fit_supervised(in_parts(table), start, labels, self._progress("SLRM label step"), **ends)[0].rotated()

    def _shares(self, checked: RowParts) -> Shares:
        """The share of the rows that make a first model: all, or as many as hold 2,000 entries a column."""
        n, nnz, n_labelled = (int(total) for total in checked.total(_sizes))
        most = most_cells(len(self.mean_))
        if n < _MANY_ROWS or nnz <= 2 * most:
            return Shares(1.0, 1.0, 0)
        seed = int(generator(fixed_seed(self.random_state)).integers(2**31 - 1))
        share = most / nnz
        labelled = min(max(share, share * n / (2 * max(n_labelled, 1))), 1.0)
        return Shares(labelled, share, seed)

    def _labels(self) -> Labels:
        return Labels(self.alpha, self.label_scale_, self.n_jobs)

    def _ends(self) -> dict[str, Any]:
        """Where steps with labels end, if that is before their own number and tolerance."""
        return {"max_iter": min(self.max_iter, LABEL_STEPS), "tol": self.tol}

    def _fit_subspace(
        self,
        rows: Labelled | RowParts,
        relax: float = 1.0,
        start: Fit | None = None,
        until: Callable[[LowRankGaussian], bool] | None = None,
    ) -> Fit:
        """EM or ALS over rows with labels; with finite lam1 the standardised labels are columns of weight 1 /
        sqrt(lam1).

        Steps of EM are `relax` times as long, may begin at another fit, with its label weights, and end where
        `until(model)`.
        """
        lam1 = np.inf if self.lam1 == "auto" else float(self.lam1)
        joint = np.isfinite(lam1)
        weights = 1 / (np.sqrt(lam1) * self.label_scale_)
        tables: Observed | RowParts
        if isinstance(rows, tuple):
            tables = append_labels(rows, weights) if joint else rows[0]
        else:
            tables = rows.map(append_labels, weights) if joint else rows.map(itemgetter(0), keep=False)
        options: dict[str, Any] = {
            "rng": generator(self.random_state),
            "max_iter": self.max_iter,
            "tol": self.tol,
            "mean": self.standardize,
            "n_jobs": self.n_jobs,
            "progress": self._progress(f"SLRM {self.solver} step"),
        }
        if self.solver == "em":
            first = None if start is None else with_label_columns(start, weights if joint else weights[:0])
            fit = fit_em(tables, self.n_components_, relax=relax, start=first, until=until, **options)
        else:
            fit = fit_als(tables, self.n_components_, **options)
        if joint:
            fit = self._without_labels(fit, weights)
        return fit.rotated() if self.solver == "em" else fit  # the columns of ALS are all of length 1

    def _without_labels(self, fit: Fit, weights: Floats) -> Fit:
        """The model of the columns alone, and, of EM without a ridge, the w of the labels that were further columns,
        times `weights` (targets,).
        """
        basis, mean = fit.model.basis, fit.model.mean
        D = len(basis) - len(weights)
        # ALS coordinates of rows with a label have seen it: weights that fit them overstate what those without one
        # tell.
        w = basis[D:].T / weights if self.solver == "em" and self.alpha == "auto" else None
        model = fit.model._replace(mean=mean[:D], components=np.ascontiguousarray(basis[:D]).T)
        return fit._replace(model=model, weights=w)

    def _progress(self, what: str) -> Progress | None:
        """What a fit calls after every step: a report, or None without `verbose`."""
        return (lambda step, change: say(1, "%s %d: change %.3g", what, step, change)) if self.verbose else None


class _LabelledPart(NamedTuple):
    """Rows and labels of a part, checked."""

    rows: Observed
    labels: Floats
    targets: tuple[int, bool]  # how many, and whether y was a vector
    columns: tuple[int, Any]


def _check_part(part: tuple[Any, Any], checker: SLRMRegressor) -> _LabelledPart:
    """X and y of a part (X, y), checked by a copy of the estimator `checker`."""
    table, y = part
    checker = copy(checker)
    rows = checker._check_rows(table, reset=True)
    labels, one = checker._check_labels(y, rows)
    return _LabelledPart(rows, labels, (labels.shape[1], one), columns_of(checker))


def _sizes(part: Labelled) -> tuple[int, int, int]:
    """Numbers of rows, of entries, and of rows with a label."""
    return part[0].shape[0], part[0].nnz, int((~np.isnan(part[1])).any(axis=1).sum())


def _labelled(part: DrawnRows) -> Labelled:
    return part.rows, part.labels


def _ready_drawn(
    part: DrawnRows, columns: ColumnScale, clip: float | None, label_mean: Floats, n_jobs: int | None
) -> DrawnRows:
    """Drawn rows, standardised, with centred labels."""
    return DrawnRows(scale_columns(part.rows, columns, clip, n_jobs=n_jobs), part.labels - label_mean, part.keys)


def _label_totals(part: _LabelledPart) -> tuple[Floats, Floats]:
    return label_totals(part.labels)


def _label_squares(part: _LabelledPart, label_mean: Floats) -> tuple[Floats, Floats]:
    return label_squares(part.labels - label_mean)


def _ready(
    part: _LabelledPart, columns: ColumnScale, clip: float | None, label_mean: Floats, n_jobs: int | None
) -> Labelled:
    """Standardised rows and centred labels."""
    return scale_columns(part.rows, columns, clip, n_jobs=n_jobs), part.labels - label_mean
