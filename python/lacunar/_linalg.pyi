"""Products inside loops over SciPy's BLAS. Private: shapes and dtypes are checked by the callers."""

import numpy as np
from numpy.typing import NDArray

def conditional_moments(
    precision: NDArray[np.float64],
    pull: NDArray[np.float64],
    mean: NDArray[np.float64],
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    completed: NDArray[np.float64],
    spread: NDArray[np.float64],
    work: NDArray[np.float64],
) -> bool: ...
def fit_line(
    gram: NDArray[np.float64],
    target: int,
    unused: NDArray[np.int64],
    ridge: float,
    tiny: float,
    chi_square: float,
    normal: NDArray[np.float64],
    lines: NDArray[np.float64],
) -> float: ...
def gram_without(rows: NDArray[np.float64], gram: NDArray[np.float64], remaining: NDArray[np.float64]) -> None: ...
def fits_at(
    X: NDArray[np.float64],
    coef: NDArray[np.float64],
    rows: NDArray[np.int64],
    of_all: NDArray[np.float64],
    fits: NDArray[np.float64],
) -> None: ...
