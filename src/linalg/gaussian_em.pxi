# Conditional expectations and covariances of what rows lack, under one Gaussian: a small factorisation for every pattern.


cdef int invert(blas_int m, double* a) noexcept nogil:
    """The inverse of a symmetric positive definite matrix (m, m) in its place, both triangles; 0 where LAPACK succeeds."""
    cdef blas_int info = 0, i, j
    dpotrf(b"L", &m, a, &m, &info)
    if info == 0:
        dpotri(b"L", &m, a, &m, &info)
    if info != 0:
        return 1
    for j in range(m):
        for i in range(j + 1, m):
            a[i * m + j] = a[j * m + i]
    return 0


def conditional_moments(const double[:, ::1] precision, const double[:, ::1] pull, const double[::1] mean,
                        const Py_ssize_t[::1] rows, const Py_ssize_t[::1] starts, const Py_ssize_t[:, ::1] columns,
                        double[:, ::1] completed, double[:, ::1] spread, double[::1] work):
    """Adds to an E step the patterns that lack m columns each. False where a covariance is not positive definite.

    Pattern k is columns[k] (m,), lacked by rows[starts[k]:starts[k + 1]]. With L the `precision` (p, p) and `pull` (n, p) = (x - mean) L,
    0 for x - mean where x is missing: completed (n, p) receives mean - L_mm^-1 pull_m, and spread (p, p) adds L_mm^-1 for every row.
    `work` has m (m + 2) numbers.
    """
    cdef Py_ssize_t k, at, i, j, row, p = precision.shape[0], patterns = columns.shape[0]
    cdef blas_int m = blas_size(columns.shape[1]), one = 1
    cdef double plus = 1.0, zero = 0.0, spent = 0.0, weight
    cdef double* inverse = &work[0]
    cdef double* right = inverse + m * m
    cdef double* expected = right + m
    cdef const Py_ssize_t* lacks
    cdef int sound = 1
    cdef bint looks = handles_signals()
    cdef double* to
    with nogil:
        for k in range(patterns):
            lacks = &columns[k, 0]
            for i in range(m):
                for j in range(i + 1):
                    inverse[j * m + i] = precision[lacks[i], lacks[j]]
            if invert(m, inverse) != 0:
                sound = 0
                break
            for at in range(starts[k], starts[k + 1]):
                row = rows[at]
                for i in range(m):
                    right[i] = pull[row, lacks[i]]
                dsymv(b"L", &m, &plus, inverse, &m, right, &one, &zero, expected, &one)
                for i in range(m):
                    completed[row, lacks[i]] = mean[lacks[i]] - expected[i]
            weight = starts[k + 1] - starts[k]
            for i in range(m):
                to = &spread[lacks[i], 0]
                for j in range(m):
                    to[lacks[j]] += weight * inverse[i * m + j]
            if looks:
                look(&spent, <double>m * m * (m + 2 * weight))
    return sound == 1
