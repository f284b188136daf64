"""What a POPCA keeps of rows it has seen, so that more can be added: tables of sums, from batches or other models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context

from lacunar._moments import Sums, moved
from lacunar._snapshot import SavePoint, all_or_nothing
from lacunar.observed.batches import one_pass, rows_of
from lacunar.observed.door import validate_X
from lacunar.observed.rules import COUNT, Number, Parts, Rule, Word, floats
from lacunar.subspace import _closed
from lacunar.subspace._diagnostics import Probe, describe, probe_tables, warn
from lacunar.subspace._model import Model
from lacunar.subspace._options import check_alike, check_options, check_shift, warn_unseen
from lacunar.subspace._solve import Spectrum, dense_spectrum
from lacunar.subspace._sums import added, added_across, column_means, pair_sums
from lacunar.subspace._transform import FittedSubspace

_Floats = NDArray[np.float64]


class StreamedSubspace(FittedSubspace):
    """`partial_fit` and `merge`, and the closed form of the tables they add to."""

    _held: ClassVar[dict[str, Rule]] = {
        **dict.fromkeys(("shift_", "mean_", "scale_", "n_seen_per_feature_"), floats("d")),
        "components_": floats("k", "d"),
        **dict.fromkeys(("explained_variance_", "explained_variance_ratio_"), floats("k")),
        **dict.fromkeys(("noise_variance_", "total_variance_"), Number()),
        "n_components_": Number(whole=True, low=0, names="k"),
        "n_samples_seen_": COUNT,
        "solver_": Word(("dense", "matrix-free")),
        "holdout_errors_": floats("tried", finite=False),
        "tables_": Parts(
            dict.fromkeys("SNA", floats("d", "d", dtype=np.float64))
            | dict.fromkeys(("nn", "paired", "m"), Number(low=0))
        ),
    }
    n_components: Any
    center: bool
    weights: Any
    p: Any
    pseudo_count: float
    scale: bool
    robust: Any
    solver: Any
    tables_: dict[str, Any]
    shift_: _Floats

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, *, shift: Any = None) -> Any:
        """Add rows to the tables of sums and take the closed form of all of them; there is no refinement.

        Columns without an entry so far have components 0, with a warning: a later batch may have some.

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

        Raises
        ------
        ValueError
            After a matrix-free fit, which keeps no sums; beyond 8,000 columns unless solver="dense"; for options that need the
            rows. The model is as it was.

        Notes
        -----
        O(sum of squared entries of a row + d^3), 24 d^2 bytes.
        """
        if hasattr(self, "components_") and not hasattr(self, "tables_"):
            raise ValueError(
                "partial_fit continues from tables of sums, and this model was fitted matrix-free without any. Fit with "
                "solver='dense', or start from a clone."
            )
        return self._add_batch(X, shift, first=not hasattr(self, "tables_"))

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_batches(self, batches: Iterable[Any], *, shift: Any = None) -> Any:
        """Fit in one pass over batches; memory is that of the tables and one batch.

        Parameters
        ----------
        batches : iterable of X or (X, y)
            X as in `partial_fit`, y ignored: what `lacunar.observed.read_batches` yields, or any generator.
        shift : array-like of shape (d,), default=None
            As in `partial_fit`.

        Returns
        -------
        self
            The same as `partial_fit` batch by batch on a fresh estimator, with one closed form at the end.

        Raises
        ------
        ValueError
            No batch at all, or what `partial_fit` refuses: the model is then that of the batches before, or as before the call if
            it was the first.

        Notes
        -----
        O(sum of squared entries of a row, over all rows, + d^3), 24 d^2 bytes.
        """

        def learn(batch: Any) -> None:
            first = not hasattr(self, "tables_")
            self._add_sums(rows_of(batch), shift if first else None, first=first)

        seen, point = self.__dict__.get("tables_"), SavePoint(self)
        try:
            one_pass(self, batches, learn)
        finally:
            if self.__dict__.get("tables_") is not seen:
                self._conclude(point)
        return self

    def _conclude(self, point: SavePoint) -> None:
        """The closed form of what a stream has summed, or all as before it."""
        try:
            self._from_stream()
        except BaseException as error:
            point.undo(error)
            raise

    def _add_batch(self, X: Any, shift: Any, *, first: bool) -> Any:
        self._add_sums(X, shift, first=first)
        return self._from_stream()

    @all_or_nothing
    def _add_sums(self, X: Any, shift: Any, *, first: bool) -> None:
        rows = validate_X(self, X, reset=first, sparse_missing=self.sparse_missing)
        d = rows.shape[1]
        check_options(self._how, d)
        _closed.check_stream(self._how.solver, d)
        if self._how.robust is not None or self.n_components == "holdout" or self._how.solver == "matrix-free":
            raise ValueError(
                "partial_fit keeps sums, not rows, so robust must be None, n_components a number and solver not 'matrix-free'; "
                f"got {self._how.robust!r}, {self.n_components!r} and {self._how.solver!r}. Change them, or use fit."
            )
        given = check_shift(shift, d)
        if first:
            self.shift_ = given if given is not None else column_means(rows) if self._how.center else np.zeros(d)
        made = pair_sums(rows, self.shift_, self.n_jobs)
        self.tables_ = (made if first else added(Sums(**self.tables_), made))._asdict()

    @all_or_nothing
    def merge(self, other: Any) -> Any:
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
            Other columns, or other `center`, `weights`, `p` or `scale`; `robust` rows; a model without tables. The model is as
            it was.
        """
        check_alike(self, other)
        sums, more = Sums(**self.tables_), Sums(**other.tables_)
        self.tables_ = added_across(sums, self.shift_, more, other.shift_)._asdict()
        return self._from_stream()

    def _from_stream(self) -> Any:
        sums = Sums(**self.tables_)
        n = np.diag(sums.N).copy()
        model = self._from_tables(self.n_components)
        mean = self.shift_ + np.diag(sums.A) / np.maximum(n, 1) if self._how.center else np.zeros(len(n))
        self._publish(model, mean)
        self.n_seen_per_feature_, self.n_samples_seen_ = n, sums.m
        warn_unseen(n)
        return self

    def _covariance(self, pseudo_count: float) -> _Floats:
        sums = Sums(**self.tables_)
        if not self._how.center and self.shift_.any():
            sums = moved(sums, -self.shift_)
        how = {"center": self._how.center, "weights": self._how.weights, "p": self._how.p}
        return _closed.covariance_of(sums, pseudo_count=pseudo_count, **how)  # type: ignore[arg-type]

    def _from_tables(self, n_components: Any) -> Model:
        """The closed form in standardised columns; sets `scale_`, `solver_`, `diagnostics_`, `total_variance_`."""
        C = self._covariance(self._how.pseudo_count)
        d, sums = len(C), Sums(**self.tables_)
        self.scale_ = _closed.scale_of(np.diag(C)) if self._how.scale else np.ones(d)
        C = C / np.outer(self.scale_, self.scale_)
        k = _closed.number_of_components(n_components, C, sums.m)
        spectrum = dense_spectrum(C, k)
        self._describe(probe_tables(sums), spectrum, expected=self._how.weights not in ("auto", "pairwise"))
        self.solver_ = "dense"
        return _closed.model_of(spectrum, k, np.diag(sums.N))

    def _describe(self, probe: Probe, spectrum: Spectrum, *, expected: bool) -> None:
        self.diagnostics_, self.total_variance_ = describe(probe, spectrum), spectrum.trace
        warn(self.diagnostics_, spectrum.values, len(self.scale_), expected=expected)

    def _publish(self, model: Model, shift: _Floats) -> None:
        self.mean_ = shift + model.mean * self.scale_
        self.components_, self.explained_variance_ = model.components, model.values
        self.noise_variance_ = float(model.noise)
        total = max(self.total_variance_, float(model.values.sum()), 1e-300)
        self.explained_variance_ratio_ = model.values / total
        self.n_components_ = len(model.values)
