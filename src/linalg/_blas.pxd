# The BLAS routines _linalg uses, through SciPy's capsules. The integer type has one name here, so that a SciPy whose
# Cython BLAS is declared over `blas_int` needs a change in this line only.
from scipy.linalg.cython_blas cimport dsymv
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

ctypedef int blas_int
