"""The kernel of an estimator, with count scale and trace taken from its weighted training rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar.kernels import KernelForm
from lacunar.observed import Observed


class KernelOptions(NamedTuple):
    """What an estimator's parameters say about its kernel."""

    gamma: float
    scale: float | Literal["mean", "raw"]
    constant: bool
    indicators: bool
    normalize: Literal["trace", "cosine"] | None
    expand: str | None = None  # what the columns are expanded to before: see _expand.py
    degree: int = 1
    coef0: float = 1.0


def fit_form(X: Observed, weight: NDArray[np.float64], options: KernelOptions) -> KernelForm:
    """Kernel form on standardised rows X; the means behind scale="mean" and "trace" are weighted, as if rows repeated."""
    constant = float(options.constant)
    if options.scale == "mean":
        scale = float(np.average(X.row_counts, weights=weight)) + constant
    else:
        scale = 1.0 if options.scale == "raw" else float(options.scale)
    form = KernelForm(
        gamma=float(options.gamma),
        count_scale=scale if scale > 0 else 1.0,
        constant=constant,
        indicators=float(options.indicators),
        cosine=options.normalize == "cosine",
    )
    trace = float(np.average(form.diagonal(X), weights=weight)) if options.normalize == "trace" else 1.0
    return replace(form, trace=trace if trace > 0 else 1.0, degree=int(options.degree), coef0=float(options.coef0))


def kernel_block(form: KernelForm, X: Observed, Y: Observed | None, dtype: Any, n_jobs: int | None) -> NDArray[Any]:
    """Kernel values (n, m), C-contiguous."""
    return np.ascontiguousarray(form.gram(X, Y, dtype=dtype, n_jobs=n_jobs))
