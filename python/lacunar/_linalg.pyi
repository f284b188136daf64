"""Products inside loops over SciPy's BLAS. Private: shapes and dtypes are checked by the callers."""

import numpy as np
from numpy.typing import NDArray

def block_lanczos(
    upper: NDArray[np.float64],
    lower: NDArray[np.float64],
    cells: NDArray[np.float64],
    row_sums: NDArray[np.float64],
    col_sums: NDArray[np.float64],
    i: NDArray[np.int32],
    j: NDArray[np.int32],
    steps: int,
    square: NDArray[np.float64],
    first: NDArray[np.float64],
    work: NDArray[np.float64],
) -> tuple[int, int, int]: ...
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
