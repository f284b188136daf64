# Block Lanczos in the inner product u^T K v: the Krylov space of several pairs of matrix exponentiated gradient at once.
from libc.math cimport sqrt


cdef struct Product:
    # A = [diag(r) Y; Y^T diag(q)] and K = blockdiag(upper, lower); blocks of b vectors are (b, m + n), one vector a row.
    blas_int m, n, most
    const double* upper
    const double* lower
    const double* cells
    const double* row_sums
    const double* col_sums


cdef void by_a(Product* at, blas_int b, const double* p, double* u) noexcept nogil:
    cdef double one = 1.0, zero = 0.0
    cdef blas_int m = at.m, n = at.n, length = m + n, a, k
    # Row-major Y is column-major Y^T (n, m).
    dgemm(b"T", b"N", &m, &b, &n, &one, <double*>at.cells, &n, <double*>p + m, &length, &zero, u, &length)
    dgemm(b"N", b"N", &n, &b, &m, &one, <double*>at.cells, &n, <double*>p, &length, &zero, u + m, &length)
    for a in range(b):
        for k in range(m):
            u[a * length + k] += at.row_sums[k] * p[a * length + k]
        for k in range(n):
            u[a * length + m + k] += at.col_sums[k] * p[a * length + m + k]


cdef void by_k(Product* at, blas_int b, const double* u, double* w) noexcept nogil:
    cdef double one = 1.0, zero = 0.0
    cdef blas_int m = at.m, n = at.n, length = m + n
    dgemm(b"N", b"N", &m, &b, &m, &one, <double*>at.upper, &m, <double*>u, &length, &zero, w, &length)
    dgemm(b"N", b"N", &n, &b, &n, &one, <double*>at.lower, &n, <double*>u + m, &length, &zero, w + m, &length)


cdef blas_int orthonormalised(blas_int b, blas_int most, double floor, double* gram, double* values, double* root,
                              double* space) noexcept nogil:
    """Of gram = E V E^T (b, b), what is not negligible: E V^(-1/2) into gram (b, kept), V^(1/2) E^T into root (kept, b).

    Both column-major, columns `most` apart. Returns kept, or -1 where LAPACK fails, as it does for NaN.
    """
    cdef blas_int info = 0, size = 8 * most, a, c, kept = 0
    cdef double top, width
    for a in range(b):
        for c in range(b):
            if gram[a * most + c] != gram[a * most + c]:
                return -1
    dsyev(b"V", b"L", &b, gram, &most, values, space, &size, &info)
    if info != 0:
        return -1
    top = values[b - 1]
    for c in range(b - 1, -1, -1):
        # Pairs may be dependent, as the corners of a rectangle are; what is dropped enters squared.
        if values[c] <= 1e-14 * top or values[c] <= floor:
            break
        width = sqrt(values[c])
        for a in range(b):
            root[a * most + kept] = width * gram[c * most + a]
            space[kept * most + a] = gram[c * most + a] / width
        kept += 1
    for c in range(kept):
        for a in range(b):
            gram[c * most + a] = space[c * most + a]
    return kept


cdef void couple(double[:, ::1] square, blas_int at, blas_int b, blas_int kept, blas_int most, const double* root) noexcept nogil:
    cdef blas_int a, c
    for a in range(b):
        for c in range(kept):
            square[at + b + c, at + a] = square[at + a, at + b + c] = root[a * most + c]


cdef int expect_form(
    const double[:, ::1] upper, const double[:, ::1] lower, const double[:, ::1] cells, const double[::1] row_sums,
    const double[::1] col_sums,
) except -1:
    cdef Py_ssize_t m = upper.shape[0], n = lower.shape[0]
    if m < 1 or n < 1 or upper.shape[1] != m or lower.shape[1] != n:
        raise ValueError("upper (m, m) and lower (n, n) must be square and not empty.")
    if cells.shape[0] != m or cells.shape[1] != n or row_sums.shape[0] != m or col_sums.shape[0] != n:
        raise ValueError("cells must be (m, n), with a sum for every row and column.")
    return 0


cdef int expect_pairs(const int[::1] i, const int[::1] j, Py_ssize_t m, Py_ssize_t n) except -1:
    cdef Py_ssize_t a
    if i.shape[0] < 1 or j.shape[0] != i.shape[0]:
        raise ValueError("there must be a pair, and a column for every row.")
    for a in range(i.shape[0]):
        if i[a] < 0 or i[a] >= m or j[a] < 0 or j[a] >= n:
            raise ValueError(f"pairs must lie in the ({m}, {n}) matrix; got ({i[a]}, {j[a]}).")
    return 0


cdef int expect_room(
    Py_ssize_t b, Py_ssize_t length, Py_ssize_t steps, double[:, ::1] square, double[:, ::1] first, double[:, ::1] work
) except -1:
    if steps < 1 or square.shape[0] < b * steps or square.shape[1] < b * steps:
        raise ValueError("square must be (b steps, b steps) at least.")
    if first.shape[0] != b or first.shape[1] != b:
        raise ValueError("first must be (b, b).")
    # Five blocks of vectors, then gram, root and diagonal (b, b), b values, and the space of dsyev.
    if work.shape[1] < length or (work.shape[0] - 5 * b) * work.shape[1] < 3 * b * b + b + max(8 * b, b * b):
        raise ValueError("work is too small.")
    return 0


def block_lanczos(
    const double[:, ::1] upper, const double[:, ::1] lower, const double[:, ::1] cells, const double[::1] row_sums,
    const double[::1] col_sums, const int[::1] i, const int[::1] j, int steps, double[:, ::1] square,
    double[:, ::1] first, double[:, ::1] work,
):
    """The block tridiagonal matrix of A K from the pairs z = e_i + e_(m+j), and the pairs in its first block.

    upper (m, m) and lower (n, n) are the halved kernels, cells (m, n), i and j (b,). square (b steps, b steps) at least receives the
    matrix, first (b, b) its columns R with z = Q_1 R, row a for pair a; work (5 b + 12, m + n) at least 12 (b + 12) wide.
    Returns the order of the matrix, the order without the last block and the order of the first, or -1 for NaN.
    """
    cdef blas_int m = blas_size(upper.shape[0]), n = blas_size(lower.shape[0]), most = blas_size(i.shape[0])
    cdef blas_int length = blas_size(upper.shape[0] + lower.shape[0])
    cdef blas_int b = most, kept, before = 0, a, c, k, at = 0, last = 0, begun
    cdef double one = 1.0, zero = 0.0, minus = -1.0, largest, spent = 0.0
    expect_form(upper, lower, cells, row_sums, col_sums)
    expect_pairs(i, j, m, n)
    expect_room(most, length, steps, square, first, work)
    cdef double *q = &work[0, 0]
    cdef double *p = &work[most, 0]
    cdef double *old = &work[2 * most, 0]
    cdef double *u = &work[3 * most, 0]
    cdef double *w = &work[4 * most, 0]
    cdef double *gram = &work[5 * most, 0]
    cdef double *root = gram + most * most
    cdef double *diagonal = root + most * most
    cdef double *values = diagonal + most * most
    cdef double *space = values + most
    cdef double *swap
    cdef Product form
    form.m, form.n, form.most = m, n, most
    form.upper, form.lower, form.cells = &upper[0, 0], &lower[0, 0], &cells[0, 0]
    form.row_sums, form.col_sums = &row_sums[0], &col_sums[0]
    with nogil:
        square[:, :] = 0.0
        first[:, :] = 0.0
        for a in range(most):
            for k in range(m):
                w[a * length + k] = upper[i[a], k]
            for k in range(n):
                w[a * length + m + k] = lower[j[a], k]
            for k in range(length):
                u[a * length + k] = 0.0
            u[a * length + i[a]] = u[a * length + m + j[a]] = 1.0
            for c in range(most):
                gram[c * most + a] = upper[i[a], i[c]] + lower[j[a], j[c]]
        kept = orthonormalised(b, most, 0.0, gram, values, root, space)
        begun = kept
        for a in range(most):
            for c in range(kept):
                first[a, c] = root[a * most + c]
        for k in range(steps):
            if kept <= 0:
                break
            # The next block: q = u gram, p = w gram, and the one before in `old`.
            swap = old
            old = q
            q = swap
            dgemm(b"N", b"N", &length, &kept, &b, &one, u, &length, gram, &most, &zero, q, &length)
            dgemm(b"N", b"N", &length, &kept, &b, &one, w, &length, gram, &most, &zero, p, &length)
            before, b, last = b, kept, at
            by_a(&form, b, p, u)
            dgemm(b"T", b"N", &b, &b, &length, &one, p, &length, u, &length, &zero, diagonal, &most)
            largest = 0.0
            for a in range(b):
                for c in range(b):
                    square[at + a, at + c] = 0.5 * (diagonal[a * most + c] + diagonal[c * most + a])
                    largest = max(largest, square[at + a, at + c] * square[at + a, at + c])
            if k + 1 == steps:
                at += b
                break
            dgemm(b"N", b"N", &length, &b, &b, &minus, q, &length, diagonal, &most, &one, u, &length)
            if k > 0:
                dgemm(b"N", b"T", &length, &b, &before, &minus, old, &length, root, &most, &one, u, &length)
            by_k(&form, b, u, w)
            dgemm(b"T", b"N", &b, &b, &length, &one, u, &length, w, &length, &zero, gram, &most)
            kept = orthonormalised(b, most, 1e-30 * (1.0 + largest), gram, values, root, space)
            if kept > 0:
                couple(square, at, b, kept, most, root)
            at += b
            look(&spent, 2.0 * b * (<double>m * m + <double>n * n + 2.0 * m * n))
    if kept < 0:
        return -1, -1, -1
    return at, last, begun
