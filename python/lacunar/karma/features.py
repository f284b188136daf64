"""`KarmaFeatures`: KARMA's kernel as features, exact or by landmarks."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from lacunar._eigen import canonical_turn
from lacunar._products import row_product
from lacunar._random import generator
from lacunar._state import all_or_nothing, whole_answers
from lacunar.karma.base import KarmaBase, kernel_options
from lacunar.karma.table import has_map
from lacunar.kernels import KernelForm
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns, scaled_rows
from lacunar.observed.door import TakesMissing, validate_X
from lacunar.observed.rules import BOUNDED_COLUMNS, Instance, Number, ObservedTable, Rule, Sometimes, Word, floats
from lacunar.observed.stored import over_files

_PROBES = 500  # rows that the error is estimated on
_BLOCK = 2**13  # rows compared with landmarks at once
_RANK = 1e-12  # eigenvalues of the landmarks' kernel below this share of the largest are rounding
_ENTRIES = 2**17  # entries whose temporaries are held at once


@whole_answers
class KarmaFeatures(TransformerMixin, TakesMissing):
    """Features of partially observed rows whose inner products are KARMA's kernel, for any linear
    learner.

    Parameters
    ----------
    gamma : float, default=2
        Longest sequence of observed columns that features tell apart, >= 1.
    method : {"auto", "exact", "nystroem"}, default="auto"
        "exact" gives sparse features, o for gamma = 1 and o^2 for gamma = 2 of a row with o
        entries; "nystroem" dense ones from kernel values with landmark rows, for any gamma. "auto"
        is "exact" for gamma 1 and 2 where the features of the rows given to `fit`, and one weight
        for each feature, fit in `memory_limit`.
    n_components : int, default=300
        Landmarks, at most the number of rows.
    indicators : bool, default=False
        Whether the kernel also compares which entries are observed.
    normalize : {"trace", "cosine", None}, default="trace"
        Divide the kernel by its mean training diagonal, or by the norm of both rows; numbers of
        common columns by the mean number of observed entries of a training row. None divides
        nothing.
    standardize : bool, default=True
        Centre columns and divide by the standard deviation, over observed entries (weighted). A
        column of one value in all rows is left out; with gaps it stays, and counts as 0 where it is
        observed.
    constant : bool, default=True
        Whether every row has a constant column of ones, always observed.
    memory_limit : int, default=2**31
        Bytes that exact features of one call may take: 12 to 16 an entry.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Draws the landmarks.
    n_jobs : int, default=None
        Threads of the kernel.

    Attributes
    ----------
    method_ : str
        "exact" or "nystroem".
    kernel_ : KernelForm
        The kernel with its count scale and trace.
    landmarks_ : Observed of shape (n_landmarks, d)
        Standardised landmark rows (Nystroem).
    whitening_ : ndarray of shape (n_landmarks, n_features_out)
        What kernel values with landmarks are multiplied by (Nystroem).
    approximation_error_ : float
        Mean share of k(x, x) that the features miss, on up to 500 rows that are no landmarks; 0 for
        exact features, NaN where every row is a landmark.
    mean_, scale_, observed_columns_ : ndarrays of shape (d,)
        What is subtracted from every column, what it is divided by then, and whether it is used:
        not where `fit` never observed it, or saw one value in all rows.
    reach_ : ndarray of shape (d,)
        How many standard deviations from its mean an entry counts at most: k - 1 in a column of k <
        30 entries, any number from 30 on and without `standardize`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        Exact features asked for another gamma, or beyond `memory_limit`; infinite entries.

    See Also
    --------
    KarmaClassifier : Uses the same features without writing them down (`solver="primal"`).

    Notes
    -----
    Exact features cost O(sum of o^2) time and memory, Nystroem O(n m o + n m^2) for m landmarks.
    Random sketches were measured and lose to both, so there are none. Hazan, Livni, Mansour, ICML
    2015, Theorem 4.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from lacunar.karma import KarmaFeatures
    >>> X = np.array([[2.0, np.nan], [1.5, 1.0], [-1.0, np.nan], [np.nan, -2.0]])
    >>> make_pipeline(KarmaFeatures(), LogisticRegression()).fit(X, [1, 1, 0, 0]).predict(
    ...     [[np.nan, 3.0]]
    ... )
    array([1])
    """

    _schema: ClassVar[dict[str, Rule]] = {
        **BOUNDED_COLUMNS,
        "kernel_": Instance(KernelForm),
        "method_": Word(("exact", "nystroem")),
        "landmarks_": Sometimes(ObservedTable(("landmarks", "d"))),
        "whitening_": Sometimes(floats("landmarks", "outputs")),
        "approximation_error_": Number(finite=False),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: rule for name, rule in KarmaBase._parameter_constraints.items() if name != "verbose"},
        "method": [StrOptions({"auto", "exact", "nystroem"})],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "constant": ["boolean"],
        "memory_limit": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        gamma: float = 2,
        *,
        method: Literal["auto", "exact", "nystroem"] = "auto",
        n_components: int = 300,
        indicators: bool = False,
        normalize: Literal["trace", "cosine"] | None = "trace",
        standardize: bool = True,
        constant: bool = True,
        memory_limit: int = 2**31,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.method = method
        self.n_components = n_components
        self.indicators = indicators
        self.normalize = normalize
        self.standardize = standardize
        self.constant = constant
        self.memory_limit = memory_limit
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> KarmaFeatures:
        """Learn columns, kernel and landmarks.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : ignored

        Returns
        -------
        self : KarmaFeatures
        """
        table = validate_X(self, X, reset=True, sparse_missing=self.sparse_missing)
        columns = fit_columns(table, np.ones(table.shape[0]), standardize=self.standardize)
        self.mean_, self.scale_, self.observed_columns_, self.reach_ = columns
        rows = scale_columns(table, columns)
        self.kernel_ = KernelForm.fit(rows, constant=float(self.constant), **kernel_options(self))
        self.method_ = self._choose(rows)
        self.approximation_error_ = 0.0
        if self.method_ == "nystroem":
            self._fit_landmarks(rows)
        return self

    def _choose(self, rows: Observed) -> str:
        explicit = self.kernel_.gamma in (1, 2) and has_map(self.kernel_)
        if self.method == "nystroem":
            return "nystroem"
        if self.method == "auto":
            fits = explicit and max(n_bytes(self.kernel_, rows), 8 * self._n_exact()) <= self.memory_limit
            return "exact" if fits else "nystroem"
        if not explicit:
            raise ValueError(
                f"method='exact' must have gamma 1 or 2, and no other factor in the kernel; got gamma={self.gamma:g} "
                f"and {self.kernel_}. Use method='nystroem'."
            )
        self._refuse_beyond_limit(rows)
        return "exact"

    def _n_exact(self) -> int:
        return n_features(self.kernel_, self.n_features_in_)

    def _refuse_beyond_limit(self, rows: Observed) -> None:
        size = n_bytes(self.kernel_, rows)
        if size > self.memory_limit:
            raise ValueError(
                f"exact features of {rows.shape[0]} rows must fit in memory_limit={self.memory_limit} bytes; they take "
                f"{size}. Raise it, transform in batches, use method='nystroem', or KarmaClassifier(solver='primal')."
            )

    def _fit_landmarks(self, rows: Observed) -> None:
        rng = generator(self.random_state)
        order = rng.permutation(rows.shape[0])
        chosen = np.sort(order[: min(self.n_components, rows.shape[0])])
        self.landmarks_ = rows[chosen]
        gram = np.asarray(self.kernel_.gram(self.landmarks_, dtype=np.float64, n_jobs=self.n_jobs))
        values, vectors = np.linalg.eigh(gram)
        values, vectors = values[::-1], vectors[:, ::-1]
        rank = int(np.sum(values > _RANK * max(float(values[0]), np.finfo(float).tiny)))
        if not rank:  # rows of zero norm only: one feature that is 0
            rank, values[0] = 1, np.inf
        values, vectors = values[:rank], vectors[:, :rank]
        self.whitening_ = np.ascontiguousarray(((vectors / np.sqrt(values)) @ canonical_turn(values, vectors))[:, ::-1])
        probes = rows[np.sort(order[len(chosen) : len(chosen) + _PROBES])]
        norms = self.kernel_.diagonal(probes)
        missed = norms - np.sum(np.square(self._landmark_features(probes)), axis=1)
        if len(norms):
            self.approximation_error_ = float(max(missed.sum() / norms.sum(), 0.0)) if norms.sum() > 0 else 0.0
        else:  # every row is a landmark: nothing is left to measure on
            self.approximation_error_ = float("nan")

    def _landmark_features(self, rows: Observed) -> NDArray[np.float64]:
        features = np.empty((rows.shape[0], self.whitening_.shape[1]))
        for start in range(0, rows.shape[0], _BLOCK):
            part = rows[start : start + _BLOCK]
            gram = self.kernel_.gram(part, self.landmarks_, dtype=np.float64, n_jobs=self.n_jobs)
            features[start : start + _BLOCK] = row_product(gram, self.whitening_, self.n_jobs)
        return features

    @over_files
    def transform(self, X: Any) -> Any:
        """Features of rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, d)

        Returns
        -------
        features : csr_array (exact) or ndarray (Nystroem) of shape (m, n_features_out)

        Raises
        ------
        ValueError
            Exact features of these rows beyond `memory_limit`.
        """
        check_is_fitted(self)
        columns = ColumnScale(self.mean_, self.scale_, self.observed_columns_, self.reach_)
        rows = scaled_rows(self, X, columns, sparse_missing=self.sparse_missing)
        if self.method_ == "nystroem":
            return self._landmark_features(rows)
        self._refuse_beyond_limit(rows)
        return exact_features(self.kernel_, rows)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features: "x_k [x_j]" for a value where a column is seen, "karmafeatures0"
        and so on for landmarks.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns; default those of `fit`.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self, "method_")
        if self.method_ == "nystroem":
            return np.array([f"karmafeatures{k}" for k in range(self.whitening_.shape[1])], dtype=object)
        names = [str(name) for name in _check_feature_names_in(self, input_features)] + ["1"] * bool(self.constant)
        channels = names + [f"seen({name})" for name in names] * bool(self.indicators)
        if self.kernel_.gamma == 1:
            return np.array(channels, dtype=object)
        return np.array([f"{channel} [{name}]" for name in names for channel in channels], dtype=object)

    @property
    def _n_features_out(self) -> int:
        if self.method_ == "nystroem":
            return int(self.whitening_.shape[1])
        return self._n_exact()


def widths(form: KernelForm, n_columns: int) -> tuple[int, int]:
    """Number of columns that are observed or not, and number of channels of values: every column, the constant, their
    indicators.
    """
    masks = n_columns + (form.constant != 0)
    return masks, masks * (2 if form.indicators else 1)


def n_features(form: KernelForm, n_columns: int) -> int:
    """Number of features of the exact map."""
    masks, channels = widths(form, n_columns)
    return channels if form.gamma == 1 else masks * channels


def row_entries(form: KernelForm, X: Observed) -> NDArray[np.int64]:
    """Numbers (n,) of entries of the features of every row: of order o or o^2."""
    seen = X.row_counts + (form.constant != 0)
    entries: NDArray[np.int64] = seen * (2 if form.indicators else 1)
    return entries if form.gamma == 1 else entries * seen


def _channels(form: KernelForm, X: Observed) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """By row: seen columns and their offsets, channels and values (sorted, so that features come out sorted)."""
    n, d = X.shape
    row = X.row_numbers
    columns, values = X.indices.astype(np.int64), X.values.astype(np.float64)
    if form.constant:
        row, columns = np.concatenate([row, np.arange(n)]), np.concatenate([columns, np.full(n, d)])
        values = np.concatenate([values, np.full(n, form.constant)])
        order = np.argsort(row, kind="stable")
        row, columns, values = row[order], columns[order], values[order]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
    if not form.indicators:
        return columns, offsets, columns, values
    masks = d + (form.constant != 0)
    both = np.concatenate([row, row])
    order = np.argsort(both, kind="stable")
    channels = np.concatenate([columns, masks + columns])[order]
    weights = np.concatenate([values, np.full(len(columns), np.sqrt(form.indicators))])[order]
    return columns, offsets, channels, weights


def _index_type(form: KernelForm, X: Observed) -> type[np.int32] | type[np.int64]:
    """int32 where columns and offsets fit: some linear learners of scikit-learn refuse int64."""
    return np.int32 if max(n_features(form, X.shape[1]), row_entries(form, X).sum()) < 2**31 else np.int64


def n_bytes(form: KernelForm, X: Observed) -> int:
    """Bytes of the CSR features: a value and a column each entry, an offset each row."""
    width = np.dtype(_index_type(form, X)).itemsize
    return int(row_entries(form, X).sum()) * (8 + width) + (X.shape[0] + 1) * width


def exact_features(form: KernelForm, X: Observed) -> sp.csr_array:
    """CSR features (n, n_features) whose inner products are the kernel's values.

    gamma = 2: x_k [j seen] / sqrt(c) for every seen pair of column j and channel k, and sqrt(1 + 1 / c) x_k where
    channel k is of column j itself; all over sqrt(trace), or over the row's norm for the cosine. O(o^2) a row. Rows are
    written by blocks into the result, so that temporaries stay at some 10 MB (a row of more entries than that is a
    block).
    """
    n, d = X.shape
    dtype = _index_type(form, X)
    offsets = np.concatenate([[0], np.cumsum(row_entries(form, X))])
    values, columns = np.empty(offsets[-1]), np.empty(offsets[-1], dtype)
    start = 0
    while start < n:
        stop = max(int(np.searchsorted(offsets, offsets[start] + _ENTRIES, side="right")) - 1, start + 1)
        part = slice(offsets[start], offsets[stop])
        values[part], columns[part] = _block(form, X[start:stop])
        start = stop
    return sp.csr_array((values, columns, offsets.astype(dtype)), shape=(n, n_features(form, d)))


def _block(form: KernelForm, X: Observed) -> tuple[NDArray[Any], NDArray[Any]]:
    """Values and columns of the entries of a few rows, one row after the other."""
    n, d = X.shape
    masks, width = widths(form, d)
    seen, offsets, channels, values = _channels(form, X)
    per_entry = width // max(masks, 1)
    scale = form.row_scale(form.raw_diagonal(X)) if form.cosine else np.full(n, 1 / np.sqrt(form.trace))
    counts = np.diff(offsets)
    if form.gamma == 1:
        return values * np.repeat(scale, counts * per_entry), channels
    sizes = counts * counts * per_entry
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    row_width = np.repeat(counts * per_entry, sizes)
    start = np.repeat(offsets[:-1], sizes)
    mask = seen[start + within // np.maximum(row_width, 1)]
    at = start * per_entry + within % np.maximum(row_width, 1)
    own = channels[at] % max(masks, 1) == mask
    c = form.count_scale
    factor = np.where(own, np.sqrt(1 + 1 / c), np.sqrt(1 / c)) * np.repeat(scale, sizes)
    return values[at] * factor, mask * width + channels[at]
