"""What KARMA classifiers and regressors share: scaling, kernel, kept rows, evaluation in blocks."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lacunar._products import row_product
from lacunar.karma._kernel_form import KernelOptions, fit_form, kernel_block
from lacunar.kernels import KernelForm
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns
from lacunar.observed.door import validate_X
from lacunar.observed.rules import COLUMNS, COUNT, LABELS, Instance, Number, Rule, Table, floats, whole

_Floats = NDArray[np.float64]
_BLOCK_VALUES = 2**23  # kernel values held at once by predictions: 64 MB

_SHARED_CONSTRAINTS: dict[str, Any] = {
    "gamma": [Interval(Real, 1, None, closed="left")],
    "C": [Interval(Real, 0, None, closed="neither")],
    "scale": [StrOptions({"mean", "raw"}), Interval(Real, 0, None, closed="neither")],
    "indicators": ["boolean"],
    "normalize": [StrOptions({"trace", "cosine"}), None],
    "standardize": ["boolean"],
    "constant": ["boolean"],
    "degree": [Interval(Integral, 1, None, closed="left")],
    "coef0": [Interval(Real, 0, None, closed="left")],
    "options": [StrOptions({"paper"}), None],
    "sparse_missing": [StrOptions({"absent", "nan"})],
    "n_jobs": [Integral, None],
}


class KarmaBase(BaseEstimator):  # type: ignore[misc]
    """Kernel expansion over training rows; subclasses solve for the coefficients."""

    _parameter_constraints: ClassVar[dict[str, Any]] = _SHARED_CONSTRAINTS
    _held: ClassVar[dict[str, Rule]] = {
        **COLUMNS,
        "classes_": LABELS,
        "kernel_": Instance(KernelForm),
        "support_": whole("s", distinct=True),
        "support_rows_": Table(("s", "d")),
        "dual_coef_": floats("s", "o"),
        "n_iter_": COUNT,
        "gap_": Number(),
    }
    gamma: float
    scale: Any
    indicators: bool
    normalize: Any
    standardize: bool
    constant: bool
    degree: int
    coef0: float
    options: str | None
    sparse_missing: Any
    n_jobs: int | None

    def _kernel_options(self) -> KernelOptions:
        composition: dict[str, Any] = {"degree": self.degree, "coef0": self.coef0}
        if self.options == "paper":
            return KernelOptions(self.gamma, "raw", constant=True, indicators=False, normalize=None, **composition)
        return KernelOptions(self.gamma, self.scale, self.constant, self.indicators, self.normalize, **composition)

    def _fit_rows(self, X: Observed, weight: _Floats) -> Observed:
        """Learn columns and kernel from rows of weight > 0; the rows standardised. O(nnz)."""
        columns = fit_columns(X, weight, standardize=self.standardize)
        self.center_, self.scale_, self.observed_columns_ = columns
        rows = scale_columns(X, columns)
        self.kernel_ = fit_form(rows, weight, self._kernel_options())
        return rows

    def _gram(self, rows: Observed) -> NDArray[Any]:
        return kernel_block(self.kernel_, rows, None, rows.dtype, self.n_jobs)

    def _keep_rows(self, rows: Observed, coef: _Floats, index: NDArray[np.intp]) -> None:
        """Store the rows with a coefficient that is not zero; index numbers them among the rows given to fit."""
        used = np.flatnonzero(np.any(coef != 0, axis=1))
        self.support_, self.n_rows_seen_ = index[used], len(index)
        self.support_rows_ = rows if len(used) == len(coef) else rows[used]
        self.dual_coef_ = coef[used]

    def _evaluate(self, X: Any) -> _Floats:
        """Values (m, outputs) of the kernel expansion at rows X."""
        check_is_fitted(self)
        table = validate_X(self, X, reset=False, sparse_missing=self.sparse_missing)
        return self._expansion(scale_columns(table, ColumnScale(self.center_, self.scale_, self.observed_columns_)))

    def _expansion(self, rows: Observed) -> _Floats:
        """Values (m, outputs) at standardised rows."""
        values = np.zeros((rows.shape[0], self.dual_coef_.shape[1]))
        if not len(self.dual_coef_):
            return values
        step = max(_BLOCK_VALUES // len(self.dual_coef_), 1)
        dtype = self.support_rows_.dtype
        for start in range(0, len(values), step):
            stop = start + step
            block = kernel_block(self.kernel_, rows[start:stop], self.support_rows_, dtype, self.n_jobs)
            values[start:stop] = row_product(block, self.dual_coef_, self.n_jobs)
        return values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
