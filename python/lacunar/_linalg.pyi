"""Products inside loops over SciPy's BLAS. Private: shapes and dtypes are checked by the callers."""

import numpy as np
from numpy.typing import NDArray

def squared_row_sums(
    Q: NDArray[np.float64], D: NDArray[np.float64], out: NDArray[np.float64], block: NDArray[np.float64]
) -> None: ...
