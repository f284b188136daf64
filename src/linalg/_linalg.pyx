# cython: boundscheck=False, wraparound=False, cdivision=True, language_level=3, freethreading_compatible=True, autotestdict=False
"""Products inside loops, over SciPy's BLAS. Private: shapes and dtypes are checked by the callers."""
from threading import get_ident as _get_ident, main_thread as _main_thread

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport sqrt

from scipy.linalg.cython_blas cimport ddot, dgemv, dsymv, dsyrk, dtrsv
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

ctypedef int blas_int  # SciPy's: int in its own declarations

# Flops between two looks for an interrupt: a look may wait for the interpreter.
cdef double LOOK_AFTER = 1e9


cdef bint handles_signals():
    """Whether this is Python's main thread: others do not ask for the interpreter, which may be closing down."""
    return _get_ident() == _main_thread().ident


cdef int look(double* spent, double flops) except -1 nogil:
    """Raises what a signal asks for, once enough has been computed since the last look. In the main thread."""
    spent[0] += flops
    if spent[0] >= LOOK_AFTER:
        spent[0] = 0.0
        with gil:
            PyErr_CheckSignals()
    return 0


cdef blas_int blas_size(Py_ssize_t size) except -1:
    if size > 2147483647:
        raise ValueError(f"sizes of BLAS must fit 32 bits; got {size}.")
    return <blas_int>size


include "gaussian_em.pxi"
include "lines.pxi"
