# A regression on others by sums, and a draw of it: what chained equations learn of one column in one sweep.


cdef int factor(blas_int p, double* a, const double* diagonal) noexcept nogil:
    """The Cholesky factor of a symmetric matrix (p, p) in its lower triangle, by columns; 0 where it has one.

    `diagonal` (p,) is that of the matrix, which grows until LAPACK succeeds; the other triangle is left as it is.
    """
    cdef blas_int info = 0, i, j, tries
    cdef double largest = 0.0, more = 0.0, step
    dpotrf(b"L", &p, a, &p, &info)
    if info == 0:
        return 0
    for j in range(p):
        largest = max(largest, diagonal[j])
    step = 1e-12 * largest
    for tries in range(12):
        more += step
        step *= 10.0
        for j in range(p):
            a[j * p + j] = diagonal[j] + more
            for i in range(j + 1, p):
                a[j * p + i] = a[i * p + j]
        dpotrf(b"L", &p, a, &p, &info)
        if info == 0:
            return 0
    return 1


def fit_line(double[:, ::1] gram, Py_ssize_t target, const Py_ssize_t[::1] unused, double ridge, double tiny,
             double chi_square, const double[::1] normal, double[:, ::1] lines):
    """The standard deviation of the residuals, drawn, of the regression of one column of a design on others; -1 without a factor.

    `gram` (p, p) of the design is written over. `unused` columns take no part, the target among them. lines (3, p) receives the
    coefficients, a draw of them and the penalised diagonal. `chi_square` and `normal` (p,) are what is random.
    """
    cdef blas_int p = blas_size(gram.shape[0]), one = 1
    cdef Py_ssize_t i, j, k
    cdef double* a = &gram[0, 0]
    cdef double* coef = &lines[0, 0]
    cdef double* drawn = &lines[1, 0]
    cdef double* diagonal = &lines[2, 0]
    cdef double square = gram[target, target], explained, sigma = -1.0
    with nogil:
        for j in range(p):
            coef[j] = gram[target, j]
        for k in range(unused.shape[0]):
            i = unused[k]
            coef[i] = 0.0
            for j in range(p):
                gram[i, j] = gram[j, i] = 0.0
            gram[i, i] = 1.0
        for j in range(p):
            gram[j, j] += ridge * gram[j, j] + tiny
            diagonal[j] = gram[j, j]
        if factor(p, a, diagonal) == 0:
            dtrsv(b"L", b"N", b"N", &p, a, &p, coef, &one)
            explained = ddot(&p, coef, &one, coef, &one)
            for j in range(p):
                drawn[j] = coef[j]
            dtrsv(b"L", b"T", b"N", &p, a, &p, coef, &one)
            for j in range(p):
                explained += ridge / (1.0 + ridge) * diagonal[j] * coef[j] * coef[j]
            sigma = sqrt(max(square - explained, tiny * max(square, tiny)) / chi_square)
            for j in range(p):
                drawn[j] += sigma * normal[j]
            dtrsv(b"L", b"T", b"N", &p, a, &p, drawn, &one)
            for k in range(unused.shape[0]):
                drawn[unused[k]] = 0.0
    return sigma


def gram_without(const double[:, ::1] rows, const double[:, ::1] gram, double[:, ::1] remaining):
    """The Gram matrix of a design without some of its rows (m, p): `gram` (p, p) is that of all, `remaining` (p, p) receives it."""
    cdef blas_int p = blas_size(rows.shape[1]), m = blas_size(rows.shape[0])
    cdef Py_ssize_t i, j
    cdef double one = 1.0, nothing = 0.0
    with nogil:
        dsyrk(b"L", b"N", &p, &m, &one, <double*>&rows[0, 0], &p, &nothing, &remaining[0, 0], &p)
        for i in range(p):
            for j in range(i, p):
                remaining[i, j] = remaining[j, i] = gram[i, j] - remaining[i, j]


def fits_at(const double[:, ::1] X, const double[::1] coef, const Py_ssize_t[::1] rows, double[::1] of_all, double[::1] fits):
    """Values (m,) of a line at some rows (m,) of a design X (n, p); of_all (n,) is work space."""
    cdef blas_int n = blas_size(X.shape[0]), p = blas_size(X.shape[1]), step = 1
    cdef double one = 1.0, nothing = 0.0
    cdef Py_ssize_t i
    with nogil:
        dgemv(b"T", &p, &n, &one, <double*>&X[0, 0], &p, <double*>&coef[0], &step, &nothing, &of_all[0], &step)
        for i in range(rows.shape[0]):
            fits[i] = of_all[rows[i]]
