"""Arguments that are neither tables nor labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lacunar.observed import Observed


def check_same_columns(X: Observed, Y: Observed | None) -> None:
    """Two tables of one kernel have the same columns."""
    if Y is not None and X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"X and Y must have the same columns; got {X.shape[1]} and {Y.shape[1]}. Select common columns first."
        )


def check_kernel_options(
    gammas: list[float], scale: object, constant: float, indicators: float, normalize: object, method: object
) -> None:
    """Options of the KARMA kernel that no array settles."""
    if not np.isfinite(constant):
        raise ValueError(f"constant must be a finite number; got {constant!r}. Use 1, or 0 for none.")
    if not 0 <= indicators < np.inf:
        raise ValueError(f"indicators must be finite and >= 0; got {indicators!r}. Use 1, or 0 for none.")
    for gamma in gammas:
        if not 0 < gamma < np.inf:
            raise ValueError(f"gamma must be positive; got {gamma:g}. Use 1 for 0-imputation, 2 to 4 for KARMA.")
    if not (
        scale in ("mean", "raw")
        if isinstance(scale, str)
        else isinstance(scale, int | float | np.number) and 0 < scale < np.inf
    ):
        raise ValueError(f"scale must be 'mean', 'raw' or a positive number; got {scale!r}.")
    if normalize not in (None, "trace", "cosine"):
        raise ValueError(f"normalize must be None, 'trace' or 'cosine'; got {normalize!r}.")
    if method not in ("auto", "dense", "spmm", "inverted"):
        raise ValueError(f"method must be 'auto', 'dense', 'spmm' or 'inverted'; got {method!r}.")


def check_composition(degree: object, coef0: float) -> None:
    """Degree and constant of a composed kernel."""
    if not isinstance(degree, int | np.integer) or isinstance(degree, bool) or degree < 1:
        raise ValueError(
            f"degree must be an integer >= 1; got {degree!r}. Use 1 for the kernel itself, 2 for its square."
        )
    if not 0 <= coef0 < np.inf:
        raise ValueError(f"coef0 must be finite and >= 0; got {coef0!r}. Use 1, or 0 for a pure power.")


def check_out(out: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """An array that results are written into."""
    sound = isinstance(out, np.ndarray) and out.shape == shape and out.dtype == dtype
    if not sound or not out.flags.carray:
        came = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise ValueError(
            f"out must be a aligned, writable, C-contiguous {dtype} array of shape {shape}; got {came}. Leave it out."
        )


def check_sparse_output(single: bool, constant: float, out: object, degree: int) -> None:
    """A sparse kernel is one kernel that is zero where nothing is in common."""
    if degree != 1:
        raise ValueError(f"dense_output=False needs degree=1; got {degree}. Leave dense_output out.")
    if not single or constant != 0 or out is not None:
        raise ValueError(
            "dense_output=False needs one gamma, constant=0 (with a constant no pair is zero) and no out; got "
            f"{'one gamma' if single else 'several gammas'}, constant={constant:g}, out={'given' if out is not None else None}."
        )


def refuse_range(needed: tuple[float, float], gamma: float, dtype: np.dtype[Any]) -> None:
    """Kernels whose numbers, from smallest divisor to largest value, leave the range of a dtype are refused unmade."""
    smallest, largest = needed
    limits = np.finfo(dtype)
    if not largest < float(limits.max) / 4:
        raise ValueError(
            f"the kernel must be representable in {dtype}; gamma={gamma:g} and these values need numbers up to {largest:.3g}. "
            "Use scale='mean', a smaller gamma, columns of smaller scale, or float64."
        )
    if not smallest > float(limits.tiny) / float(limits.eps):
        raise ValueError(
            f"the kernel must not be divided by numbers below the precision of {dtype}; normalize needs 1 / {smallest:.3g}. "
            "Use columns of larger scale, normalize=None, or float64."
        )
