# What _linalg uses of SciPy's Cython LAPACK: see cython_blas.pxd.
ctypedef double d

cdef void dpotrf(char *uplo, int *n, d *a, int *lda, int *info) noexcept nogil
cdef void dpotri(char *uplo, int *n, d *a, int *lda, int *info) noexcept nogil
