# cython: boundscheck=False, wraparound=False, cdivision=True, language_level=3, freethreading_compatible=True, autotestdict=False
"""Products inside loops, over SciPy's BLAS. Private: shapes and dtypes are checked by the callers."""
from cpython.exc cimport PyErr_CheckSignals

from _blas cimport blas_int, dgemm, dsyev, dsyevd

import numpy as np

# Flops between two looks for an interrupt: a look may wait for the interpreter.
cdef double LOOK_AFTER = 1e9


cdef int look(double* spent, double flops) except -1 nogil:
    """Raises what a signal asks for, once enough has been computed since the last look."""
    spent[0] += flops
    if spent[0] >= LOOK_AFTER:
        spent[0] = 0.0
        with gil:
            PyErr_CheckSignals()
    return 0


include "block_lanczos.pxi"


# LAPACK counts the workspace of dsyevd, 1 + 6 n + 2 n^2 numbers, in integers of 32 bits.
cdef enum:
    MOST_ROWS = 32766


cdef blas_int blas_size(Py_ssize_t size) except -1:
    if size > 2147483647:
        raise ValueError(f"sizes of BLAS must fit 32 bits; got {size}.")
    return <blas_int>size


def squared_row_sums(const double[::1, :] Q, const double[::1, :] D, double[:, ::1] out, double[::1, :] block):
    """out[g, i] = sum_j Q[i, j]^2 D[j, g]: the diagonals of Q diag(D[:, g]) Q^T for every g.

    Q (n, m), D (m, g), out (g, n); block (b, m) is workspace, b rows of Q squared at a time, so that no second n x m
    table is made. 2 n m g flops.
    """
    cdef blas_int n = blas_size(Q.shape[0]), m = blas_size(Q.shape[1]), g = blas_size(D.shape[1])
    cdef blas_int b = blas_size(block.shape[0]), rows, start, i, j
    cdef double one = 1.0, zero = 0.0, spent = 0.0
    if D.shape[0] != m or out.shape[0] != g or out.shape[1] != n or b < 1 or block.shape[1] != m:
        raise ValueError("Q (n, m), D (m, g), out (g, n) and block (at least one row, m) must fit one another.")
    if n == 0 or m == 0 or g == 0:
        out[:, :] = 0.0
        return
    with nogil:
        start = 0
        while start < n:
            rows = min(b, n - start)
            for j in range(m):
                for i in range(rows):
                    block[i, j] = Q[start + i, j] * Q[start + i, j]
            # Column-major out^T (n, g) has leading dimension n: out[g, i] row-major is that very layout.
            dgemm(b"N", b"N", &rows, &g, &m, &one, &block[0, 0], &b, <double*>&D[0, 0], &m, &zero, &out[0, start], &n)
            start += rows
            look(&spent, 2.0 * rows * m * g)


def symmetric_eigen(double[::1, :] A, double[::1] values):
    """Eigenvalues of A (n, n), ascending, into values (n,), and its eigenvectors over A, one a column.

    The lower triangle is read. LAPACK's divide and conquer without the GIL, which scipy.linalg.eigh keeps: that is what
    lets decompositions of several matrices run side by side. About 9 n^3 flops, and 2 n^2 numbers of workspace. ValueError
    above 32,766 rows, where LAPACK cannot say how much that is.
    """
    if A.shape[0] != A.shape[1] or values.shape[0] != A.shape[0]:
        raise ValueError("A must be square, with one eigenvalue a row.")
    if A.shape[0] > MOST_ROWS:
        raise ValueError(
            f"a symmetric matrix to be decomposed must have at most {MOST_ROWS} rows, since LAPACK counts its workspace in "
            f"32 bits; got {A.shape[0]}. Use fewer rows, or a solver that needs no decomposition."
        )
    cdef blas_int n = <blas_int>A.shape[0], size = -1, n_integers = -1, info = 0, integer
    cdef double number
    cdef double[::1] work
    cdef blas_int[::1] integers
    if n == 0:
        return
    dsyevd(b"V", b"L", &n, &A[0, 0], &n, &values[0], &number, &size, &integer, &n_integers, &info)
    size, n_integers = <blas_int>number, integer
    work, integers = np.empty(size), np.empty(n_integers, dtype=np.intc)
    with nogil:
        dsyevd(b"V", b"L", &n, &A[0, 0], &n, &values[0], &work[0], &size, &integers[0], &n_integers, &info)
    if info != 0:
        raise np.linalg.LinAlgError(f"the eigenvalues of a symmetric ({n}, {n}) matrix did not converge (LAPACK's info {info})")
