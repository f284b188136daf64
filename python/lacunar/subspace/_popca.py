"""`POPCA`: principal components of partially observed rows."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._moments import Sums
from lacunar._parts import Parts, Whole
from lacunar._random import fixed_seed, generator
from lacunar._snapshot import all_or_nothing
from lacunar.observed import Observed
from lacunar.observed.door import adopt_columns, validate_X
from lacunar.subspace import _closed
from lacunar.subspace._diagnostics import probe_rows, warn_dependent
from lacunar.subspace._model import Model, fewest_components, hidden_cells, hidden_errors
from lacunar.subspace._operator import Implicit, implicit_covariance
from lacunar.subspace._options import check_options, check_seen
from lacunar.subspace._refine import refinable, refined
from lacunar.subspace._robust import tamed
from lacunar.subspace._rows import centred, count, found_columns, means_over, opened, rows_of, standardised
from lacunar.subspace._solve import dense_spectrum, free_spectrum
from lacunar.subspace._stream import StreamedSubspace
from lacunar.subspace._sums import column_means, pair_sums

_MOST_TRIED = 20  # components that "holdout" tries
_HIDDEN = 0.1  # share of entries that "holdout" hides


class POPCA(StreamedSubspace):
    """Principal components of rows with holes, from covariances of the pairs of entries that were seen together.

    Parameters
    ----------
    n_components : int, float in (0, 1), "holdout" or None, default=None
        How many; a float is the share of variance to reach, "holdout" the fewest within a standard error of the best at
        imputing hidden entries (at most 20), None min(n, d).
    center : bool, default=True
        Centre by the means of observed entries. False takes the second moment, as the paper does.
    weights : {"auto", "pairwise", "kappa", "feature", "global", "known"}, default="auto"
        What sums over pairs are divided by: counts of rows with both ("pairwise"), or what independent columns make
        expect of them, corrected for rows that differ in rate ("kappa"), from rates of columns ("feature"), from one rate
        ("global") or from `p` ("known"). "auto" is "pairwise", and "kappa" where no (d, d) table is formed: that has no way
        of knowing joint counts.
    p : float or array-like of shape (d,), default=None
        Probabilities that an entry is observed, for weights="known".
    pseudo_count : float, default=2
        Rows without evidence added to the counts of pairs.
    refine : int, default=10
        Most steps of variational EM on the observed entries, from the closed form; fewer when the subspace has settled, none for
        as many components as columns or more than 64. `options="paper"` sets 0.
    scale : bool, default=False
        Standardise columns; components are then those of the correlation matrix.
    robust : None, "rows" or ("winsor", c), default=None
        Shorten rows longer than the median row, or clip cells at c deviations from the median, in fit.
    whiten : bool, default=False
        Codes of unit variance.
    codes : {"ridge", "ls"}, default="ridge"
        Codes of rows: posterior means, or least squares, which explodes for rows with about n_components entries.
    solver : {"auto", "dense", "matrix-free"}, default="auto"
        Form the covariance, or multiply by rows only (int n_components < d or "holdout", any weights but "pairwise"). "auto" goes
        without from 1,000 columns where that is possible and, under weights="auto", columns of a sample of pairs are seen
        independently of each other; it refuses to form tables beyond 8,000 columns.
    unseen : {"error", "drop"}, default="error"
        What to do about columns without an observed entry; dropped ones have components 0 and stay missing in `impute`.
    options : {"paper"}, default=None
        "paper" is Algorithm 1 as printed: it sets `center=False`, `pseudo_count=0`, `refine=0`, `scale=False`, `robust=None`,
        `codes="ls"`, and `weights="known"` where `p` = r / d is given, else "global", which measures it.
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
    mean_, scale_ : ndarrays of shape (d,)
    noise_variance_, total_variance_ : float
    n_components_, n_samples_seen_, n_features_in_ : int
    n_seen_per_feature_ : ndarray of shape (d,)
    diagnostics_ : dict
        median_joint_count, mean_joint_count, frac_pairs_unseen, kappa, independence_gap (mean relative deviation of joint counts
        from those of independent columns), effective_rows (with two entries or more), n_negative_eigenvalues, lambda_min.
        Without tables those of pairs are of the 2,016 pairs of 64 columns, n_negative_eigenvalues is -1, lambda_min rough.
    solver_ : str

    Raises
    ------
    ValueError
        Unseen columns, more components than columns, options that do not go together, merging of unlike states.

    Notes
    -----
    Accuracy is governed by n p^2, the rows in which a pair is seen: below 3 nothing works for some ten columns, with more columns
    less is enough. O(sum of squared entries of a row + d^3) time and some 8 d^2 numbers with the covariance formed; without,
    O(nnz) a product (some 40 in all), and memory of the rows in float64 and a few vectors. Gonen, Rosenbaum, Eldar, Shalev-Shwartz, "Subspace Learning with Partial Information", JMLR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.subspace import POPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1)) @ np.ones((1, 6)) + 0.1 * rng.normal(size=(400, 6))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> np.round(POPCA(1).fit(X).components_, 1)
    array([[0.4, 0.4, 0.4, 0.4, 0.4, 0.4]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"holdout"}),
            None,
        ],
        "center": ["boolean"],
        "weights": [StrOptions({"auto", "pairwise", "kappa", "feature", "global", "known"})],
        "p": [Interval(Real, 0, 1, closed="right"), "array-like", None],
        "pseudo_count": [Interval(Real, 0, None, closed="left")],
        "refine": [Interval(Integral, 0, None, closed="left")],
        "scale": ["boolean"],
        "robust": [StrOptions({"rows"}), tuple, None],
        "whiten": ["boolean"],
        "codes": [StrOptions({"ridge", "ls"})],
        "solver": [StrOptions({"auto", "dense", "matrix-free"})],
        "unseen": [StrOptions({"error", "drop"})],
        "options": [StrOptions({"paper"}), None],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_components: int | float | Literal["holdout"] | None = None,
        *,
        center: bool = True,
        weights: Literal["auto", "pairwise", "kappa", "feature", "global", "known"] = "auto",
        p: Any = None,
        pseudo_count: float = 2,
        refine: int = 10,
        scale: bool = False,
        robust: Any = None,
        whiten: bool = False,
        codes: Literal["ridge", "ls"] = "ridge",
        solver: Literal["auto", "dense", "matrix-free"] = "auto",
        unseen: Literal["error", "drop"] = "error",
        options: Literal["paper"] | None = None,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.center = center
        self.weights = weights
        self.p = p
        self.pseudo_count = pseudo_count
        self.refine = refine
        self.scale = scale
        self.robust = robust
        self.whiten = whiten
        self.codes = codes
        self.solver = solver
        self.unseen = unseen
        self.options = options
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> POPCA:
        """Fit to the rows of X, afresh.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : ignored

        Returns
        -------
        self
        """
        rows = validate_X(self, X, reset=True, sparse_missing=self.sparse_missing)
        check_options(self._how, rows.shape[1])
        return self._fit_over(Whole(rows if self._how.robust is None else tamed(rows, self._how.robust)))

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_parts(self, parts: Any) -> POPCA:
        """Fit to rows in parts that may lie on other machines; only sums over the rows of a part leave it.

        Parameters
        ----------
        parts : object with methods map, each and total
            Of pairs (X, anything), as `SLRMRegressor.fit_parts` has them. `lacunar.distributed.fit_popca` passes parts that are
            Dask's.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As `fit`; parts of other columns; `robust` or n_components="holdout", which are not sums over rows.
        """
        if self._how.robust is not None or self.n_components == "holdout":
            raise ValueError(
                "rows in parts are known by sums, so robust must be None and n_components no 'holdout'; got "
                f"{self._how.robust!r} and {self.n_components!r}. Change them, or use fit."
            )
        tables = parts.map(opened, clone(self))
        check_options(self._how, adopt_columns(self, tables.each(found_columns)))
        return self._fit_over(tables.map(rows_of))

    def _fit_over(self, parts: Parts) -> POPCA:
        rng, counts = generator(fixed_seed(self.random_state)), count(parts)
        check_seen(counts.n, self.unseen)
        d = len(counts.n)
        probe = probe_rows(parts, rng) if _closed.probed(self._how, d) else None
        for name in ("tables_", "shift_", "holdout_errors_"):
            if hasattr(self, name):
                delattr(self, name)
        shift = means_over(parts, counts.n) if self._how.center else np.zeros(d)
        k: Any = self.n_components
        if k == "holdout" and isinstance(parts, Whole):
            k = self._held_out(parts.part, probe, rng)
        if _closed.matrix_free(self._how, d, k, probe):
            model = self._without_table(parts.map(centred, shift), int(k), probe, rng)
        else:
            self.shift_, self.tables_ = shift, Sums(*parts.total(pair_sums, shift, self.n_jobs))._asdict()
            model = self._from_tables(k)
        if self._how.refine and refinable(model):
            table = parts.map(standardised, shift, self.scale_)
            model = refined(model, table, self._how.refine, centre=self._how.center, n_jobs=self.n_jobs)
        self._publish(model, shift)
        self.n_seen_per_feature_, self.n_samples_seen_ = counts.n, counts.m
        return self

    def _without_table(self, table: Parts, k: int, probe: Any, rng: np.random.Generator) -> Model:
        """The closed form of centred rows by products with them; sets what `_from_tables` sets."""
        C = self._implicit(table)
        self.scale_ = _closed.scale_of(C.diagonal) if self._how.scale else np.ones(len(C.rest))
        spectrum = free_spectrum(C.divided(self.scale_), k, rng)
        warn_dependent(probe)
        self._describe(probe, spectrum, expected=True)
        self.solver_ = "matrix-free"
        return _closed.model_of(spectrum, k, count(table).n)

    def _implicit(self, table: Observed | Parts) -> Implicit:
        how = {
            "weights": self._how.weights,
            "p": self._how.p,
            "center": self._how.center,
            "pseudo_count": self._how.pseudo_count,
        }
        return implicit_covariance(table, n_jobs=self.n_jobs, **how)

    def _held_out(self, rows: Observed, probe: Any, rng: np.random.Generator) -> int:
        """The fewest components within a standard error of the best at imputing a tenth of the entries."""
        d = rows.shape[1]
        most = max(min(_MOST_TRIED, d - 1), 1)
        seen, hidden = hidden_cells(rows, _HIDDEN, rng)
        mean = column_means(seen) if self._how.center else np.zeros(d)
        if _closed.matrix_free(self._how, d, most, probe):
            implicit = self._implicit(centred(seen, mean))
            scale = _closed.scale_of(implicit.diagonal) if self._how.scale else np.ones(d)
            spectrum = free_spectrum(implicit.divided(scale), most, rng)
        else:
            how = {
                "center": self._how.center,
                "weights": self._how.weights,
                "p": self._how.p,
                "pseudo_count": self._how.pseudo_count,
            }
            C = _closed.covariance_of(pair_sums(seen, mean, self.n_jobs), **how)
            scale = _closed.scale_of(np.diag(C)) if self._how.scale else np.ones(d)
            spectrum = dense_spectrum(C / np.outer(scale, scale), d)
        tables = [t.with_values((t.values - mean[t.indices]) / scale[t.indices]) for t in (rows, seen)]
        n = np.bincount(seen.indices, minlength=d)
        models = [_closed.model_of(spectrum, k, n) for k in range(1, most + 1)]
        errors = [hidden_errors(model, tables[0], tables[1], hidden, self.n_jobs) for model in models]
        self.holdout_errors_ = np.sqrt([float(np.mean(each)) for each in errors])
        return 1 + fewest_components(errors)
