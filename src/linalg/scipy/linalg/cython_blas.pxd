# What _linalg uses of SciPy's Cython BLAS, declared as SciPy declares it: Cython compares both signatures at import. With this
# copy the build needs neither SciPy nor NumPy, which pip would install a second time to build in isolation.
ctypedef double d

cdef void dsymv(char *uplo, int *n, d *alpha, d *a, int *lda, d *x, int *incx, d *beta, d *y, int *incy) noexcept nogil
cdef void dtrsv(char *uplo, char *trans, char *diag, int *n, d *a, int *lda, d *x, int *incx) noexcept nogil

cdef d ddot(int *n, d *dx, int *incx, d *dy, int *incy) noexcept nogil

cdef void dgemv(char *trans, int *m, int *n, d *alpha, d *a, int *lda, d *x, int *incx, d *beta, d *y, int *incy) noexcept nogil

cdef void dsyrk(char *uplo, char *trans, int *n, int *k, d *alpha, d *a, int *lda, d *beta, d *c, int *ldc) noexcept nogil
