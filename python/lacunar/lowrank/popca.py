"""`POPCA`: principal components of partially observed rows."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from numbers import Integral, Real
from operator import attrgetter
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lacunar._lock import changes, reads
from lacunar._log import warn_user
from lacunar._moments import Sums
from lacunar._products import row_product
from lacunar._random import fixed_seed, generator
from lacunar._state import all_or_nothing
from lacunar._typing import Floats
from lacunar.lowrank.diagnostics import Probe, describe, probe_rows, probe_tables, warn, warn_dependent
from lacunar.lowrank.em import FEW_PAIRS, refinable, refined, zero_filled
from lacunar.lowrank.hidden import (
    STEPS,
    TOL,
    choose_rank,
    choose_rank_of_moments,
    hidden_errors,
    hide,
    next_rank,
    tail_noise,
)
from lacunar.lowrank.model import LowRankGaussian, SubspaceModel
from lacunar.lowrank.moments import (
    Implicit,
    Spectrum,
    added,
    added_across,
    check_shift,
    column_means,
    covariance_of,
    dense_spectrum,
    free_spectrum,
    implicit_covariance,
    pair_sums,
)
from lacunar.lowrank.parts import Counts, FileParts, InMemory, RowParts, adopt_columns, check_part, count
from lacunar.observed import Observed, ObservedFile, rules
from lacunar.observed.batches import one_pass, rows_of
from lacunar.observed.cells import counted
from lacunar.observed.columns import column_spread, scales_of, standardised
from lacunar.observed.rules import COUNT, Number, Rule, Sometimes, Word, floats
from lacunar.observed.stored import over_files

_HIDDEN = 0.1  # share of entries that `score` hides
_LARGE = 1000  # columns from which products with rows beat forming the covariance
_LARGEST_TABLE = 8000  # columns up to which tables are formed unless solver="dense" asks for more
_TABLES = 8  # of (d, d) doubles, that forming and decomposing a covariance holds at its peak
_TO_SD = 1.4826  # of a median absolute deviation, for normal data


class POPCA(SubspaceModel):
    """Principal components of rows with missing entries, from covariances of the pairs of entries
    that were seen together.

    Algorithm 1 of Gonen et al. as printed is `lacunar.papers.subspace.PrintedPOPCA`.

    Parameters
    ----------
    n_components : int, float in (0, 1), "holdout" or None, default=None
        How many; a float is the share of variance to reach, "holdout" the number that predicts
        hidden entries best (as `LowRankImputer` chooses its rank; see Notes), None min(n, d): all
        that rows tell about. `impute` and `score` then use `n_impute_components_` of them, as all
        of them would fit noise.
    normalisers : str, float or array-like of shape (d,), default="auto"
        What sums over pairs are divided by: counts of rows with both ("pairwise"), or the counts
        expected of columns that are observed independently: from rates of columns, corrected for
        rows that differ in rate ("kappa"), from rates of columns ("feature"), from one rate
        ("global") or from given probabilities that an entry is observed, one or one a column.
        "auto" is "pairwise", and "kappa" where no (d, d) table is formed, as joint counts are not
        known there.
    pseudo_count : float, default=2
        Rows without evidence added to the counts of pairs.
    refine : int, default=10
        Most steps of variational EM on the observed entries, from the closed form; fewer when the
        subspace has settled, none for as many components as columns or more than 64. Where fewer
        than 20 rows show a pair, in the mean, the steps are also taken from singular vectors of
        rows filled with zeros, and the model of the larger evidence (the bound that EM raises) is
        kept.
    standardize : bool, default=False
        Divide columns by their standard deviations; components are then those of the correlation
        matrix. A column of one value is divided by its size.
    robust : None, "rows" or ("winsor", c), default=None
        Shorten rows longer than the median row, or clip cells at c deviations from the median, in
        fit.
    whiten : bool, default=False
        Codes of unit variance.
    solver : {"auto", "dense", "matrix-free"}, default="auto"
        Form the covariance, or multiply by rows only (int n_components < d or "holdout", any
        normalisers but "pairwise"). "auto" goes without from 1,000 columns where that is possible
        and, under normalisers="auto", columns of a sample of pairs are seen independently of each
        other; it refuses to form tables beyond 8,000 columns.
    unseen : {"error", "drop"}, default="error"
        What to do about columns without an observed entry; dropped ones have components 0 and stay
        missing in `impute`.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Draws hidden entries and the start of the matrix-free solver. None is a fixed draw.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Orthonormal rows, largest variance first, entry of largest modulus positive.
    explained_variance_, explained_variance_ratio_ : ndarrays of shape (k,)
        Variance along every component, and its share of the total variance.
    mean_, scale_ : ndarrays of shape (d,)
        What is subtracted from every column, and what it is divided by then.
    noise_variance_, total_variance_ : float
        Variance of a (standardised) column that no component explains, and the sum of the variances
        of all columns.
    n_components_, n_samples_seen_, n_features_in_ : int
        Numbers of components, of rows learned from and of columns of X.
    holdout_errors_ : ndarray of shape (n_tried, 2)
        With n_components="holdout" numbers that were tried and their mean squared errors at hidden
        entries, in units of the variance of a column; none for fewer than 20 entries.
    n_impute_components_ : int
        Components that `impute` and `score` use: `n_components_`, but with n_components=None as
        many (up to 64) as predict missing entries best when the covariance is split into one to
        learn from and one to judge by; refined where `refine` asks for it.
    n_seen_per_feature_ : ndarray of shape (d,)
        In how many rows every column was observed.
    diagnostics_ : dict
        median_joint_count, mean_joint_count, frac_pairs_unseen, kappa, independence_gap (mean
        relative deviation of joint counts from those of independent columns), effective_rows (with
        two entries or more), n_negative_eigenvalues, lambda_min. Without tables those of pairs are
        of the 2,016 pairs of 64 columns, n_negative_eigenvalues is -1, lambda_min rough.
    solver_ : str
        "dense" or "matrix-free": what ran.

    Raises
    ------
    ValueError
        Unseen columns, more components than columns, options that do not go together, merging of
        unlike states.

    Notes
    -----
    Accuracy is governed by n p^2, the rows in which a pair is seen: below 3 nothing works for some
    ten columns, with more columns less is enough. O(sum of squared entries of a row + d^3) time and
    some 8 d^2 numbers with the covariance formed; without, O(nnz k) a product (some 10 in all), and
    memory of the rows in float64 and a few vectors. Gonen, Rosenbaum, Eldar, Shalev-Shwartz,
    "Subspace Learning with Partial Information", JMLR 2016.

    "holdout" is the true number where there is one and every direction lowers the error at entries
    that a row hides: where directions exceed the noise and rows show more entries than there are
    directions. With fewer entries a row it is any number, whose errors are all alike; a smooth
    spectrum has no true number, and it takes as many as the entries support.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import POPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1)) @ np.ones((1, 6)) + 0.1 * rng.normal(size=(400, 6))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> np.round(POPCA(1).fit(X).components_, 1)
    array([[0.4, 0.4, 0.4, 0.4, 0.4, 0.4]])
    """

    _schema: ClassVar[dict[str, Rule]] = {
        **dict.fromkeys(("mean_", "scale_", "n_seen_per_feature_"), floats("d")),
        "components_": floats("k", "d"),
        **dict.fromkeys(("explained_variance_", "explained_variance_ratio_"), floats("k")),
        **dict.fromkeys(("noise_variance_", "total_variance_"), Number()),
        "n_components_": Number(whole=True, low=0, names="k"),
        "n_impute_components_": COUNT,
        "imputing_": Sometimes(
            rules.Parts(
                {
                    "mean": floats("d"),
                    "components": floats("imputing", "d"),
                    "variances": floats("imputing"),
                    "noise": Number(low=0),
                }
            )
        ),
        "n_samples_seen_": COUNT,
        "solver_": Word(("dense", "matrix-free")),
        "holdout_errors_": Sometimes(floats("tried", 2)),
        "state_": Sometimes(
            rules.Parts(
                {"shift": floats("d"), **dict.fromkeys("SNA", floats("d", "d", dtype=np.float64))}
                | dict.fromkeys(("nn", "paired", "m"), Number(low=0))
            )
        ),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"holdout"}),
            None,
        ],
        "normalisers": [
            StrOptions({"auto", "pairwise", "kappa", "feature", "global"}),
            Interval(Real, 0, 1, closed="right"),
            "array-like",
        ],
        "pseudo_count": [Interval(Real, 0, None, closed="left")],
        "refine": [Interval(Integral, 0, None, closed="left")],
        "standardize": ["boolean"],
        "robust": [StrOptions({"rows"}), tuple, None],
        "whiten": ["boolean"],
        "solver": [StrOptions({"auto", "dense", "matrix-free"})],
        "unseen": [StrOptions({"error", "drop"})],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_components: int | float | Literal["holdout"] | None = None,
        *,
        normalisers: Literal["auto", "pairwise", "kappa", "feature", "global"] | float | ArrayLike = "auto",
        pseudo_count: float = 2,
        refine: int = 10,
        standardize: bool = False,
        robust: Any = None,
        whiten: bool = False,
        solver: Literal["auto", "dense", "matrix-free"] = "auto",
        unseen: Literal["error", "drop"] = "error",
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.normalisers = normalisers
        self.pseudo_count = pseudo_count
        self.refine = refine
        self.standardize = standardize
        self.robust = robust
        self.whiten = whiten
        self.solver = solver
        self.unseen = unseen
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs

    @changes
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> POPCA:
        """Fit to the rows of X, afresh.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (n, d)
            A file is read once for every sum over rows, block by block, and is never in memory as a
            whole.
        y : ignored

        Returns
        -------
        self
        """
        if isinstance(X, ObservedFile):
            return self._fit_parts(FileParts(X), goes_on=False)
        rows = self._check_rows(X, reset=True)
        check_options(self, rows.shape[1])
        return self._fit_over(InMemory(rows if self.robust is None else winsorised(rows, self.robust)))

    @changes
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit_parts(self, parts: Any) -> POPCA:
        """Fit to rows in parts that may lie on other machines; only sums over the rows of a part
        leave it.

        Parameters
        ----------
        parts : object with methods map, each and total
            Of pairs (X, anything), as `SLRMRegressor.fit_parts` has them.
            `lacunar.distributed.fit_popca` passes parts that are Dask's.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As `fit`; parts of other columns; `robust` or n_components="holdout", which are not sums
            over rows.
        """
        return self._fit_parts(parts)

    def _fit_parts(self, parts: RowParts, *, goes_on: bool = True) -> POPCA:
        if self.robust is not None or self.n_components == "holdout":
            raise ValueError(
                "rows in parts are known by sums, so robust must be None and n_components no 'holdout'; got "
                f"{self.robust!r} and {self.n_components!r}. Change them, or use fit."
            )
        checked = parts.map(check_part, clone(self))
        check_options(self, adopt_columns(self, checked.each(attrgetter("columns"))))
        return self._fit_over(checked.map(attrgetter("rows"), keep=False), goes_on=goes_on)

    def _fit_over(self, parts: RowParts, *, goes_on: bool = True) -> POPCA:
        """The fit of checked rows in parts; with `goes_on` the tables of sums are kept, which `partial_fit` and `merge`
        need.
        """
        rng, counts = generator(fixed_seed(self.random_state)), count(parts, self.n_jobs)
        check_seen(counts.n, self.unseen)
        d = len(counts.n)
        may_be_free = self.solver == "matrix-free" or (self.solver == "auto" and d >= _LARGE)  # by `matrix_free`
        probe = probe_rows(parts, counts, rng) if may_be_free else None
        for name in ("state_", "holdout_errors_"):
            self.__dict__.pop(name, None)
        shift = counts.means
        k: Any = self.n_components
        if k == "holdout" and isinstance(parts, InMemory):
            k = self._chosen_rank(parts.part, rng)
        if matrix_free(self, d, k, probe):
            table = parts.map(standardised, shift, None, self.n_jobs)
            model, imputing = self._without_table(table, counts, int(k), probe, rng), None
        else:
            # Cross sums take most of the time. About the means of all rows they cancel.
            sums = Sums(*parts.total(pair_sums, shift, self.n_jobs, goes_on))
            model, imputing = self._from_tables(sums if goes_on else sums._replace(A=np.zeros_like(sums.S)), k, shift)
            if goes_on:
                self._keep(sums, shift)
        if imputing is not None:
            imputing = self._refined(imputing, parts, shift)
        self._publish(self._refined(model, parts, shift), shift, imputing)
        self.n_seen_per_feature_, self.n_samples_seen_ = counts.n, counts.m
        return self

    def _refined(self, model: LowRankGaussian, parts: RowParts, shift: Floats) -> LowRankGaussian:
        """The model after `refine` steps of EM on rows, where those make sense."""
        if not self.refine or not refinable(model):
            return model
        table = parts.map(standardised, shift, self.scale_, self.n_jobs)
        starts = [model]
        if self.diagnostics_["mean_joint_count"] < FEW_PAIRS:
            starts.append(zero_filled(model, table, self.n_jobs))
        return refined(starts, table, self.refine, centre=True, n_jobs=self.n_jobs)

    def _without_table(
        self, table: RowParts, counts: Counts, k: int, probe: Any, rng: np.random.Generator
    ) -> LowRankGaussian:
        """The closed form of centred rows by products with them; sets the attributes that `_from_tables` sets."""
        C = self._implicit(table)
        self.scale_ = self._scale(counts.means, C.diagonal)
        spectrum = free_spectrum(C.divided(self.scale_), k, rng)
        warn_dependent(probe)
        self._describe(probe, spectrum, expected=True)
        self.solver_ = "matrix-free"
        return model_of(spectrum, k, counts.n)

    def _implicit(self, table: Observed | RowParts) -> Implicit:
        return implicit_covariance(table, n_jobs=self.n_jobs, **self._moment())

    def _scale(self, mean: Floats, variance: Floats) -> Floats:
        """What columns (d,) of these means and variances are divided by."""
        return scales_of(mean, np.sqrt(np.maximum(variance, 0.0)))[0] if self.standardize else np.ones(len(mean))

    def _moment(self) -> dict[str, Any]:
        """Options of `covariance_of`: a word for the normalisers, or given probabilities that an entry is observed."""
        word = word_of(self.normalisers)
        p = self.normalisers if word == "known" else None
        return {"center": True, "weights": word, "p": p, "pseudo_count": self.pseudo_count}

    def _chosen_rank(self, rows: Observed, rng: np.random.Generator) -> int:
        """The number of components that predicts hidden entries best; the errors of all that were tried are kept."""
        spread = column_spread(rows, None, self.n_jobs)
        scale = scales_of(spread.mean, spread.deviation)[0]
        if not self.standardize:
            scale = np.full_like(scale, float(np.max(spread.deviation)) or 1.0)
        table = standardised(rows, spread.mean, scale, n_jobs=self.n_jobs)
        rank, errors = choose_rank(table, rng=rng, max_iter=STEPS, tol=TOL, n_jobs=self.n_jobs)
        self.holdout_errors_ = np.array(list(errors.items()), dtype=np.float64).reshape(-1, 2)
        return rank

    @changes
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, *, shift: Any = None) -> POPCA:
        """Add rows to the tables of sums and take the closed form of all of them; there is no
        refinement.

        Columns without an entry so far have components 0, with a warning: a later batch may have
        some.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Any number of rows; how they are split makes no difference but rounding.
        y : ignored
        shift : array-like of shape (d,), default=None
            What is subtracted before summing, for precision only, on the first call; the means of
            the first batch.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            After a matrix-free fit, which keeps no sums; beyond 8,000 columns unless
            solver="dense"; for options that need the rows. The model is as it was.

        Notes
        -----
        O(sum of squared entries of a row + d^3), 24 d^2 bytes.
        """
        if hasattr(self, "components_") and not hasattr(self, "state_"):
            raise ValueError(
                "partial_fit continues from tables of sums, and this model was fitted matrix-free or from a file, "
                "without them. Use solver='dense' and rows in memory or fit_batches, or start from a clone."
            )
        self._add_sums(X, shift)
        return self._from_stream()

    @changes
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_batches(self, batches: Iterable[Any], *, shift: Any = None) -> POPCA:
        """Fit in one pass over batches; memory is that of the tables and one batch.

        Parameters
        ----------
        batches : iterable of X or (X, y)
            Rows X, y ignored: what `lacunar.observed.read_batches` yields, or any generator.
        shift : array-like of shape (d,), default=None
            What is subtracted before summing, for precision only; the means of the first batch.

        Returns
        -------
        self
            The same as `partial_fit` batch by batch on a fresh estimator, with one closed form at
            the end.

        Raises
        ------
        ValueError
            No batch at all, or what `partial_fit` refuses: the model is then that of the batches
            before, or as before the call if it was the first.

        Notes
        -----
        O(sum of squared entries of a row, over all rows, + d^3), 24 d^2 bytes.
        """

        error = self._sum_batches(batches, shift)
        if error is not None:
            raise error
        return self

    @all_or_nothing
    def _sum_batches(self, batches: Iterable[Any], shift: Any) -> BaseException | None:
        """The closed form of the batches before one that fails, and its error."""

        def learn(model: POPCA, batch: Any) -> None:
            model._add_sums(rows_of(batch), None if hasattr(model, "state_") else shift)

        seen, error = vars(self).get("state_"), None
        try:
            one_pass(self, batches, learn)
        except BaseException as raised:
            if vars(self).get("state_") is seen:
                raise
            error = raised
        self._from_stream()
        return error

    @all_or_nothing
    def _add_sums(self, X: Any, shift: Any) -> None:
        first = not hasattr(self, "state_")
        rows = self._check_rows(X, reset=first)
        d = rows.shape[1]
        check_options(self, d)
        if self.solver == "auto" and d > _LARGEST_TABLE:
            refuse_tables(d, "partial_fit and merge")
        if self.robust is not None or self.n_components == "holdout" or self.solver == "matrix-free":
            raise ValueError(
                "partial_fit keeps sums, not rows, so robust must be None, n_components a number and solver not "
                f"'matrix-free'; got {self.robust!r}, {self.n_components!r} and {self.solver!r}. Change them, or use "
                "fit."
            )
        about = check_shift(shift, d)
        if first:
            about = column_means(rows) if about is None else about
            self._keep(pair_sums(rows, about, self.n_jobs), about)
        else:
            sums, about = self._kept()
            self._keep(added(sums, pair_sums(rows, about, self.n_jobs)), about)

    def _keep(self, sums: Sums, shift: Floats) -> None:
        self.state_ = {"shift": shift, **sums._asdict()}

    def _kept(self) -> tuple[Sums, Floats]:
        """The sums over all rows so far, and the shift (d,) that they are about."""
        return Sums(**{name: self.state_[name] for name in Sums._fields}), self.state_["shift"]

    def merge(self, other: POPCA) -> POPCA:
        """Add the rows that another model has seen, whatever its shift; exact.

        Parameters
        ----------
        other : POPCA
            Fitted by `partial_fit` or by `fit` with the covariance formed, on the same columns.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Other columns, or other `normalisers` or `standardize`; `robust` rows; a model without
            tables. The model is as it was.
        """
        if isinstance(other, POPCA):
            other = copy(other)  # under its own lock alone: two that merge one another would wait for ever
        return self._merge(other)

    @changes
    @all_or_nothing
    def _merge(self, other: POPCA) -> POPCA:
        check_alike(self, other)
        (sums, shift), (more, other_shift) = self._kept(), other._kept()
        self._keep(added_across(sums, shift, more, other_shift), shift)
        return self._from_stream()

    def _from_stream(self) -> POPCA:
        sums, shift = self._kept()
        n = np.diag(sums.N).copy()
        model, imputing = self._from_tables(sums, self.n_components, shift, refines=False)
        self._publish(model, shift + np.diag(sums.A) / np.maximum(n, 1), imputing)
        self.n_seen_per_feature_, self.n_samples_seen_ = n, sums.m
        warn_unseen(n)
        return self

    def _from_tables(
        self, sums: Sums, n_components: Any, shift: Floats, *, refines: bool = True
    ) -> tuple[LowRankGaussian, LowRankGaussian | None]:
        """The closed form in standardised columns, of sums about a shift, and that of fewer components which imputes
        where all are asked for.

        Sets `scale_`, `solver_`, `diagnostics_`, `total_variance_`. What `refines` begins at the next larger rank that
        is tried: its prior shrinks components that are too many, and cannot add any.
        """
        C = covariance_of(sums, **self._moment())
        self.scale_ = self._scale(shift + np.diag(sums.A) / np.maximum(np.diag(sums.N), 1), np.diag(C))
        C = C / np.outer(self.scale_, self.scale_)
        k = number_of_components(n_components, C, sums.m)
        spectrum = dense_spectrum(C, k)
        self._describe(probe_tables(sums), spectrum, expected=word_of(self.normalisers) not in ("auto", "pairwise"))
        self.solver_ = "dense"
        n = np.diag(sums.N)
        if n_components is not None:
            return model_of(spectrum, k, n), None
        most = max(k - 1, 1)
        rank = self._imputing_rank(C, sums, most)
        if refines and self.refine:
            rank = next_rank(rank, most)
        return model_of(spectrum, k, n), model_of(spectrum, rank, n)

    def _imputing_rank(self, C: Floats, sums: Sums, most: int) -> int:
        """How many components of a covariance impute best, at most `most`: from sums alone, so that all ways to fit
        have one answer.
        """
        n = np.diag(sums.N)
        seen = np.flatnonzero(n > 0)
        if not len(seen):
            return 1
        block, rng = np.ix_(seen, seen), generator(fixed_seed(self.random_state))
        counts = sums.N[block] + self.pseudo_count
        return choose_rank_of_moments(C[block], counts, n[seen] / max(sums.m, 1), min(most, len(seen)), rng)[0]

    def _describe(self, probe: Probe, spectrum: Spectrum, *, expected: bool) -> None:
        self.diagnostics_, self.total_variance_ = describe(probe, spectrum), spectrum.trace
        values = (
            () if self.n_components is None else spectrum.values
        )  # of None the last one is noise, which imputing leaves out
        warn(self.diagnostics_, values, len(self.scale_), expected=expected)

    def _publish(self, model: LowRankGaussian, shift: Floats, imputing: LowRankGaussian | None) -> None:
        if imputing is None:
            self.__dict__.pop("imputing_", None)
        else:
            self.imputing_ = {
                "mean": shift + imputing.mean * self.scale_,
                "components": imputing.components,
                "variances": imputing.variances,
                "noise": imputing.ridge,
            }
        self.mean_ = shift + model.mean * self.scale_
        self.components_, self.explained_variance_ = model.components, model.variances
        self.noise_variance_ = float(model.ridge)
        total = max(self.total_variance_, float(self.explained_variance_.sum()), 1e-300)
        self.explained_variance_ratio_ = self.explained_variance_ / total
        self.n_components_ = len(model.components)
        self.n_impute_components_ = len((imputing or model).components)

    def _imputing(self) -> tuple[Floats, LowRankGaussian]:
        """Means (d,) of columns and the model about them that `impute` and `score` use."""
        if "imputing_" not in vars(self):
            return self.mean_, self._gaussian()
        stored: dict[str, Any] = self.imputing_
        return stored["mean"], LowRankGaussian.principal(**stored | {"mean": np.zeros(len(self.mean_))})

    def _gaussian(self) -> LowRankGaussian:
        zero = np.zeros(len(self.mean_))
        return LowRankGaussian.principal(zero, self.components_, self.explained_variance_, self.noise_variance_)

    def _unit(self) -> Floats | float:
        return np.sqrt(np.maximum(self.explained_variance_, 1e-300)) if self.whiten else 1.0

    def _completed(self, rows: Observed) -> Floats:
        mean, model = self._imputing()
        latent = model.latent(standardised(rows, mean, self.scale_, n_jobs=self.n_jobs), n_jobs=self.n_jobs).latent
        return row_product(latent * model.sizes, model.components, self.n_jobs) * self.scale_ + mean

    def _unknown_columns(self) -> NDArray[np.bool_]:
        return np.equal(self.n_seen_per_feature_, 0)

    @reads
    @over_files
    def transform(self, X: Any, *, return_std: bool = False) -> Any:
        """Codes of rows from their observed entries: posterior means.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, d)
        return_std : bool, default=False
            Return posterior standard deviations (m, k), too.

        Returns
        -------
        Z : ndarray of shape (m, k), or (Z, std)
            Zeros for a row with nothing observed; a complete row is shrunk by (l - s2) / l.
        """
        if not return_std:
            return super().transform(X)
        check_is_fitted(self)
        model, unit = self._gaussian(), self._unit()
        posterior = self._latent(self._check_rows(X), model, inverse=True)
        diagonal = np.cumsum(np.arange(1, len(self.components_) + 1)) - 1
        std = np.sqrt(model.ridge * posterior.inverse[:, diagonal]) * model.sizes / unit
        return posterior.latent * model.sizes / unit, std

    @reads
    def score(self, X: Any, y: Any = None) -> float:
        """Minus the root mean squared error, in units of `scale_`, at a tenth of the entries,
        hidden and then imputed.

        Which are hidden is drawn from `random_state`. An error on entries that were used would be 0
        for short rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, d)
            Rows.
        y : object
            Ignored.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        squares, hidden = (float(column.sum()) for column in self._hidden(X, generator(fixed_seed(self.random_state))))
        if not hidden:
            raise ValueError(
                "X must have two observed entries, of which one can be hidden; it has fewer. Score more rows."
            )
        return -float(np.sqrt(squares / hidden))

    @over_files
    def _hidden(self, X: Any, rng: np.random.Generator) -> tuple[Floats, NDArray[np.intp]]:
        """Sums of the squared errors at hidden entries, and their number, of every row (m,)."""
        mean, model = self._imputing()
        table = standardised(self._check_rows(X), mean, self.scale_, n_jobs=self.n_jobs)
        hidden = drawn_hidden(table.nnz, rng)
        errors = hidden_errors(model, table, hide(table, hidden), hidden, self.n_jobs)
        n, row = table.shape[0], table.row_numbers[hidden]
        return np.bincount(row, errors, n).astype(np.float64), np.bincount(row, minlength=n)

    @reads
    def get_covariance(self) -> Floats:
        """Model covariance (d, d) of raw columns: components' variances plus noise. Positive
        definite; O(d^2 k).

        Returns
        -------
        covariance : ndarray of shape (d, d)
        """
        check_is_fitted(self)
        model = self._gaussian()
        basis = model.basis
        return (basis @ basis.T + model.ridge * np.eye(len(basis))) * np.outer(self.scale_, self.scale_)

    @reads
    def get_precision(self) -> Floats:
        """Inverse (d, d) of `get_covariance()`, by the k x k identity of Woodbury.

        Returns
        -------
        precision : ndarray of shape (d, d)
        """
        check_is_fitted(self)
        model = self._gaussian()
        basis, noise = model.basis, model.ridge
        inner = np.linalg.solve(basis.T @ basis + noise * np.eye(basis.shape[1]), basis.T)
        return (np.eye(len(basis)) - basis @ inner) / noise / np.outer(self.scale_, self.scale_)


def drawn_hidden(nnz: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A mask (nnz,) of hidden entries: each is hidden with probability one tenth, and at least one of two or more."""
    draws = rng.random(nnz)
    hidden: NDArray[np.bool_] = draws < _HIDDEN
    if nnz > 1 and not hidden.any():
        hidden[np.argmin(draws)] = True
    return hidden


def model_of(spectrum: Spectrum, k: int, n: NDArray[Any]) -> LowRankGaussian:
    """The model of the top k eigenpairs, about mean 0; columns without entries (n = 0, of (d,)) share no noise."""
    values = np.maximum(spectrum.values[:k], 0.0)
    noise = tail_noise(values, spectrum.trace, int(np.sum(n > 0)))
    return LowRankGaussian.principal(np.zeros(len(n)), spectrum.vectors[:k], values, noise)


def number_of_components(n_components: Any, C: Floats, m: int) -> int:
    """The number of components that `n_components` means: an int itself, a share of variance the fewest that reach it,
    None min(m, d).
    """
    d = len(C)
    if n_components is None:
        return min(m, d)
    if isinstance(n_components, Integral):
        return int(n_components)
    values = np.maximum(dense_spectrum(C, d).values, 0.0)
    share = np.cumsum(values) / max(float(np.trace(C)), 1e-300)
    return min(int(np.searchsorted(share, float(n_components)) + 1), d)


def word_of(normalisers: Any) -> str:
    """The normalisers as a word, "known" for given probabilities."""
    return normalisers if isinstance(normalisers, str) else "known"


def matrix_free(params: Any, d: int, n_components: Any, probe: Probe | None) -> bool:
    """Whether a POPCA avoids (d, d) tables: from 1,000 columns on, where normalisers are expected counts or "auto" may
    choose them.

    Those of "auto" are, where columns are seen independently of each other (`probe`), or tables would be too large.

    Raises
    ------
    ValueError
        When tables are needed and too large, and were not asked for by solver="dense".
    """
    if params.solver != "auto":
        return bool(params.solver == "matrix-free")
    possible = isinstance(n_components, Integral) and n_components < d and word_of(params.normalisers) != "pairwise"
    if d > _LARGEST_TABLE and not possible:
        refuse_tables(d, f"n_components={n_components!r} and normalisers={params.normalisers!r}")
    if not possible or d < _LARGE:
        return False
    chosen = word_of(params.normalisers) != "auto" or d > _LARGEST_TABLE
    return chosen or (probe is not None and probe.independent())


def refuse_tables(d: int, what: str) -> None:
    """Raise an error that says how large tables would be, and what to do."""
    size = _TABLES * 8 * d**2 / 2**30
    raise ValueError(
        f"{what} need tables of {d} x {d} numbers, {size:.0f} GiB in all; beyond {_LARGEST_TABLE} columns they must be "
        "asked for. Use fit with an integer n_components (or 'holdout') and normalisers='auto', or solver='dense' if "
        "they fit in memory."
    )


def check_options(params: Any, d: int) -> None:
    """Refuse options of a POPCA for d columns that do not go together."""
    k, robust = params.n_components, params.robust
    if isinstance(k, Integral) and int(k) > d:
        raise ValueError(f"n_components must be at most the number of columns, {d}; got {k}. Lower n_components.")
    if not isinstance(params.normalisers, str):
        _check_probabilities(np.asarray(params.normalisers), d)
    if isinstance(robust, tuple) and not (len(robust) == 2 and robust[0] == "winsor" and robust[1] > 0):
        raise ValueError(
            f"robust must be None, 'rows' or ('winsor', c) with c > 0; got {robust!r}. Pass ('winsor', 3)."
        )
    free = isinstance(k, Integral | str) and k != d and word_of(params.normalisers) != "pairwise"
    if params.solver == "matrix-free" and not free:
        raise ValueError(
            "solver='matrix-free' needs an integer n_components below the number of columns, or 'holdout', and "
            f"normalisers other than 'pairwise'; got {k!r} and {params.normalisers!r}. Use solver='dense'."
        )


def _check_probabilities(p: NDArray[Any], d: int) -> None:
    """Refuse normalisers that are no probabilities of d columns."""
    if p.shape not in ((), (d,)):
        raise ValueError(
            f"normalisers must be a word, a number or have shape ({d},); got {p.shape}. Pass one for every column."
        )
    if not (np.greater(p, 0).all() and np.less_equal(p, 1).all()):
        raise ValueError(
            "normalisers must be above 0 and at most 1 in every column; got others. Drop columns never observed."
        )


def check_seen(n: NDArray[np.float64], unseen: str) -> None:
    """Refuse columns without an entry, or say that they are left out."""
    lost = np.flatnonzero(n == 0)
    if len(lost) and unseen == "error":
        raise ValueError(f"{_unseen(lost)}. Every column must be observed. Drop these, or pass unseen='drop'.")
    if len(lost):
        warn_user(f"{_unseen(lost)}. Such columns are left out: their components are 0.")


def warn_unseen(n: NDArray[np.float64]) -> None:
    """Say which columns of a stream have no entry so far."""
    lost = np.flatnonzero(n == 0)
    if len(lost):
        warn_user(f"{_unseen(lost)} so far. Their components are 0 until they do.")


def _unseen(lost: NDArray[np.int64]) -> str:
    return f"X has {counted(len(lost), 'column')} without an observed entry, the first is column {lost[0]}"


def check_alike(one: Any, other: Any) -> None:
    """Refuse to merge models whose sums do not mean the same."""
    for model in (one, other):
        check_is_fitted(model, "components_")
        if not hasattr(model, "state_"):
            raise ValueError(
                "merge needs models with tables of sums; got one fitted matrix-free or from a file. Use fit_batches "
                "or solver='dense'."
            )
        if model.robust is not None:
            raise ValueError(
                f"merge adds sums of rows as they came; got robust={model.robust!r}, which changes rows by all rows of "
                "its own model. Fit on all rows at once, or with robust=None."
            )
    if one.n_features_in_ != other.n_features_in_ or not _same_names(one, other):
        raise ValueError(
            f"merge needs models of the same columns; got {one.n_features_in_} and {other.n_features_in_}, or other "
            "names. Fit both on the same columns in the same order."
        )
    for name in ("normalisers", "standardize"):
        mine, theirs = getattr(one, name), getattr(other, name)
        if not np.array_equal(np.asarray(mine, dtype=object), np.asarray(theirs, dtype=object)):
            raise ValueError(
                f"merge needs models of the same {name}; got {mine!r} and {theirs!r}. Fit both alike, or set_params."
            )


def _same_names(one: Any, other: Any) -> bool:
    names = [getattr(model, "feature_names_in_", None) for model in (one, other)]
    return names[0] is None or names[1] is None or list(names[0]) == list(names[1])


def location(rows: Observed) -> tuple[Floats, Floats]:
    """Median and scaled median absolute deviation (d,) of observed entries; scale 1 where it is 0."""
    d = rows.shape[1]
    middle, spread = np.zeros(d), np.ones(d)
    columns = rows.columns
    values = rows.values.astype(np.float64)[columns.positions]
    for j in np.flatnonzero(np.diff(columns.indptr)):
        part = values[columns.indptr[j] : columns.indptr[j + 1]]
        middle[j] = np.median(part)
        spread[j] = _TO_SD * np.median(np.abs(part - middle[j])) or 1.0
    return middle, spread


def winsorised(rows: Observed, how: object) -> Observed:
    """Rows with cells clipped at `c` deviations from the median ("winsor", c), or with long rows shortened ("rows")."""
    middle, spread = location(rows)
    with np.errstate(over="ignore"):
        z = (rows.values.astype(np.float64) - middle[rows.indices]) / spread[rows.indices]
    if isinstance(how, tuple):
        z = np.clip(z, -how[1], how[1])
    else:
        size = _lengths(rows, z)
        usual = np.median(size[rows.row_counts > 0]) if rows.nnz else 1.0
        z /= np.maximum(1.0, size / (usual or 1.0))[rows.row_numbers]
    return rows.with_values(z * spread[rows.indices] + middle[rows.indices])


def _lengths(rows: Observed, z: Floats) -> Floats:
    """Root mean square (n,) of the observed entries z of every row, by its largest: squares of 1e200 would overflow."""
    index = rows.row_numbers
    if len(far := np.flatnonzero(~np.isfinite(z))):
        row, column = int(index[far[0]]), int(rows.indices[far[0]])
        raise ValueError(
            "robust='rows' needs entries whose distance to the column's median, in its deviations, float64 holds; got "
            f"{rows.values[far[0]]:.3g} in row {row}, column {column}. Correct it, or pass robust=('winsor', 3)."
        )
    largest = np.zeros(rows.shape[0])
    np.maximum.at(largest, index, np.abs(z))
    unit = np.where(largest > 0, largest, 1.0)
    squares = np.bincount(index, (z / unit[index]) ** 2, minlength=rows.shape[0])
    return unit * np.sqrt(squares / np.maximum(rows.row_counts, 1))
