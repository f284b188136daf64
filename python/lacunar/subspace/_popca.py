"""`POPCA`: principal components of partially observed rows."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lacunar._check import validate_X
from lacunar._moments import Sums
from lacunar._random import generator
from lacunar.observed import Observed
from lacunar.subspace import _closed, _diagnostics
from lacunar.subspace._model import Model, fewest_components, hidden_cells, hidden_errors, refined
from lacunar.subspace._options import check_options, check_seen
from lacunar.subspace._robust import tamed
from lacunar.subspace._solve import dense_spectrum, free_spectrum
from lacunar.subspace._sums import added, added_across, column_means, pair_sums
from lacunar.subspace._transform import FittedSubspace

_Floats = NDArray[np.float64]
_MOST_TRIED = 20  # components that "holdout" tries
_HIDDEN = 0.1  # share of entries that "holdout" hides


class POPCA(FittedSubspace):
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
        ("global") or from `p` ("known"). "auto" is "pairwise", and "kappa" where no (d, d) table is formed.
    p : float or array-like of shape (d,), default=None
        Probabilities that an entry is observed, for weights="known".
    pseudo_count : float, default=2
        Rows without evidence added to the counts of pairs.
    refine : int, default=10
        Steps of EM on the observed entries, from the closed form. With refine=0, pseudo_count=0, center=False and weights "known" or
        "global" this is Algorithm 1 of the paper.
    scale : bool, default=False
        Standardise columns; components are then those of the correlation matrix.
    robust : None, "rows" or ("winsor", c), default=None
        Shorten rows longer than the median row, or clip cells at c deviations from the median, in fit.
    whiten : bool, default=False
        Codes of unit variance.
    codes : {"ridge", "ls"}, default="ridge"
        Codes of rows: posterior means, or least squares, which explodes for rows with about n_components entries.
    solver : {"auto", "dense", "matrix-free"}, default="auto"
        Form the covariance, or multiply by rows only (int n_components < d, weights "auto" or "kappa").
    unseen : {"error", "drop"}, default="error"
        What to do about columns without an observed entry; dropped ones have components 0.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Draws hidden entries and the start of the matrix-free solver.
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
        median_joint_count, frac_pairs_unseen, kappa, independence_gap, n_negative_eigenvalues, lambda_min.
    solver_ : str

    Raises
    ------
    ValueError
        Unseen columns, more components than columns, options that do not go together, merging of unlike states.

    Notes
    -----
    Accuracy is governed by n p^2, the rows in which a pair is seen: below 3 nothing works. O(n d^2 + d^3) with the covariance formed,
    O(nnz) a product without. Gonen, Rosenbaum, Eldar, Shalev-Shwartz, "Subspace Learning with Partial Information", JMLR 2016.

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
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
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
        check_options(self, rows.shape[1])
        rows = rows if self.robust is None else tamed(rows, self.robust)
        rng = generator(self.random_state)
        for name in ("tables_", "shift_"):
            if hasattr(self, name):
                delattr(self, name)
        n = np.bincount(rows.indices, minlength=rows.shape[1]).astype(np.float64)
        check_seen(n, self.unseen)
        shift = column_means(rows) if self.center else np.zeros(rows.shape[1])
        k: Any = self._held_out(rows, rng) if self.n_components == "holdout" else self.n_components
        if _closed.matrix_free(rows, self.solver, self.weights, k, rng):
            model = self._without_table(rows, shift, n, k, rng)
        else:
            self.solver_ = "dense"
            self.shift_, self.tables_ = shift, pair_sums(rows, shift, self.n_jobs)._asdict()
            model = self._from_tables(k)
        if self.refine and len(model.values) and model.values[0] > 0:
            table = rows.with_values((rows.values.astype(np.float64) - shift[rows.indices]) / self.scale_[rows.indices])
            model = refined(model, table, self.refine, centre=self.center, n_jobs=self.n_jobs)
        self._publish(model, shift)
        self.n_seen_per_feature_, self.n_samples_seen_ = n, rows.shape[0]
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, *, shift: Any = None) -> POPCA:
        """Add rows to the tables of sums and take the closed form of all of them; there is no refinement.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Any number of rows; how they are split makes no difference but rounding.
        y : ignored
        shift : array-like of shape (d,), default=None
            What is subtracted before summing, for precision only, on the first call; the means of the first batch.

        Returns
        -------
        self
        """
        first = not hasattr(self, "tables_")
        rows = validate_X(self, X, reset=first, sparse_missing=self.sparse_missing)
        check_options(self, rows.shape[1])
        if self.robust is not None or self.n_components == "holdout" or self.solver == "matrix-free":
            raise ValueError(
                "partial_fit keeps sums, not rows, so robust must be None, n_components a number and solver not 'matrix-free'; "
                f"got {self.robust!r}, {self.n_components!r} and {self.solver!r}. Change them, or use fit."
            )
        if first:
            start = column_means(rows) if self.center else np.zeros(rows.shape[1])
            self.shift_ = start if shift is None or not self.center else np.array(shift, dtype=np.float64)
        made = pair_sums(rows, self.shift_, self.n_jobs)
        self.tables_ = (made if first else added(Sums(**self.tables_), made))._asdict()
        return self._from_stream()

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
            Other columns, or a model without tables.
        """
        for model in (self, other):
            check_is_fitted(model)
            if not hasattr(model, "tables_"):
                raise ValueError(
                    "merge needs models with tables; got one fitted matrix-free. Use partial_fit or solver='dense'."
                )
        if self.n_features_in_ != other.n_features_in_ or self.center != other.center:
            raise ValueError(
                f"merge needs models of the same columns and centering; got {self.n_features_in_} and "
                f"{other.n_features_in_} columns, center {self.center} and {other.center}. Fit both alike."
            )
        sums, more = Sums(**self.tables_), Sums(**other.tables_)
        self.tables_ = added_across(sums, self.shift_, more, other.shift_)._asdict()
        return self._from_stream()

    def _from_stream(self) -> POPCA:
        sums = Sums(**self.tables_)
        self.solver_ = "dense"
        model = self._from_tables(self.n_components)
        n = np.diag(sums.N).copy()
        mean = self.shift_ + np.diag(sums.A) / np.maximum(n, 1) if self.center else self.shift_
        self._publish(model, mean)
        self.n_seen_per_feature_, self.n_samples_seen_ = n, sums.m
        return self

    def _covariance(self, pseudo_count: float) -> _Floats:
        sums = Sums(**self.tables_)
        how = {"center": self.center, "weights": self.weights, "p": self.p}
        return _closed.covariance_of(sums, pseudo_count=pseudo_count, **how)  # type: ignore[arg-type]

    def _from_tables(self, n_components: Any) -> Model:
        """The closed form in standardised columns; sets `scale_` and `diagnostics_`."""
        C = self._covariance(self.pseudo_count)
        d, sums = len(C), Sums(**self.tables_)
        self.scale_ = _closed.scale_of(np.diag(C)) if self.scale else np.ones(d)
        C = C / np.outer(self.scale_, self.scale_)
        k = _closed.number_of_components(n_components, C, sums.m)
        spectrum = dense_spectrum(C, k)
        self.diagnostics_, self.total_variance_ = _diagnostics.of_tables(sums, spectrum), spectrum.trace
        _diagnostics.warn(self.diagnostics_, spectrum.values)
        return _closed.model_of(spectrum, k, d)

    def _without_table(self, rows: Observed, shift: _Floats, n: _Floats, k: Any, rng: np.random.Generator) -> Model:
        values = rows.values.astype(np.float64) - shift[rows.indices]
        d = rows.shape[1]
        variance = np.bincount(rows.indices, values**2, minlength=d) / np.maximum(n - self.center, 1)
        self.scale_ = _closed.scale_of(variance) if self.scale else np.ones(d)
        table = rows.with_values(values / self.scale_[rows.indices])
        spectrum = free_spectrum(table, int(k), centred=self.center, rng=rng)
        entries = rows.row_counts.astype(np.float64)
        self.diagnostics_ = _diagnostics.of_counts(n, float(np.sum(entries * (entries - 1))), rows.shape[0])
        _diagnostics.warn(self.diagnostics_, spectrum.values)
        self.solver_, self.total_variance_ = "matrix-free", spectrum.trace
        return _closed.model_of(spectrum, int(k), d)

    def _held_out(self, rows: Observed, rng: np.random.Generator) -> int:
        """The fewest components within a standard error of the best at imputing a tenth of the entries."""
        d = rows.shape[1]
        seen, hidden = hidden_cells(rows, _HIDDEN, rng)
        mean = column_means(seen) if self.center else np.zeros(d)
        sums = pair_sums(seen, mean, self.n_jobs)
        how = {"center": self.center, "weights": self.weights, "p": self.p}
        C = _closed.covariance_of(sums, pseudo_count=self.pseudo_count, **how)  # type: ignore[arg-type]
        scale = _closed.scale_of(np.diag(C)) if self.scale else np.ones(d)
        spectrum = dense_spectrum(C / np.outer(scale, scale), d)
        tables = [t.with_values((t.values - mean[t.indices]) / scale[t.indices]) for t in (rows, seen)]
        most = max(min(_MOST_TRIED, d - 1), 1)
        models = [_closed.model_of(spectrum, k, d) for k in range(1, most + 1)]
        errors = [hidden_errors(model, tables[0], tables[1], hidden, self.n_jobs) for model in models]
        self.holdout_errors_ = np.sqrt([float(np.mean(each)) for each in errors])
        return 1 + fewest_components(errors)

    def _publish(self, model: Model, shift: _Floats) -> None:
        self.mean_ = shift + model.mean * self.scale_
        self.components_, self.explained_variance_ = model.components, model.values
        self.noise_variance_ = float(model.noise)
        total = max(self.total_variance_, float(model.values.sum()), 1e-300)
        self.explained_variance_ratio_ = model.values / total
        self.n_components_ = len(model.values)
