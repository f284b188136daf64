"""What a test may forgive: the rounding of a sum, which BLAS and instruction sets add in other orders."""

import numpy as np


def rounding(dtype, terms):
    """The most by which two orders of adding `terms` numbers differ, as a share of the sum of their moduli.

    Each order is off by at most (terms - 1) u / (1 - (terms - 1) u), u = eps / 2 (Higham, Accuracy and Stability of Numerical
    Algorithms, section 4.2), so that two differ by at most terms * eps.
    """
    return terms * float(np.finfo(dtype).eps)
