"""`karma_kernel`: the kernel of anything that is a table with holes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from lacunar._check import (
    SparseMissing,
    as_observed,
    check_composition,
    check_kernel_options,
    check_out,
    check_same_columns,
    check_sparse_output,
    float_dtype,
)
from lacunar.kernels._form import KernelForm, Method, Normalize, Scale
from lacunar.kernels._gram import compute_grams, compute_sparse_gram


def karma_kernel(
    X: Any,
    Y: Any = None,
    *,
    gamma: float | Sequence[float] = 2,
    scale: Scale = "mean",
    constant: float = 0.0,
    indicators: float = 0.0,
    normalize: Normalize = None,
    degree: int = 1,
    coef0: float = 1.0,
    sparse_missing: SparseMissing = "absent",
    dtype: DTypeLike | None = None,
    dense_output: bool = True,
    out: NDArray[Any] | None = None,
    method: Method = "auto",
    n_jobs: int | None = None,
) -> NDArray[Any] | sp.csr_array:
    """KARMA kernel between partially observed rows.

    k(x, x') = g(|o n o'| / c) <x, x'> over the columns observed in both, with g(u) = 1 + u + ... + u^(gamma - 1). Linear
    learners on its feature space compete with the best linear learner that sees the complete low-rank data.

    Parameters
    ----------
    X : array-like, frame, sparse matrix or Observed of shape (n, d)
        Rows with holes: NaN, null or entries not stored.
    Y : like X, of shape (m, d), optional
        Default X. When given, these are the reference rows (the training rows) that scales refer to.
    gamma : float or sequence of float, default=2
        Longest sequence of columns in the embedding; 1 is 0-imputation. Between integers it is the mixture of the two
        neighbours, which is positive semi-definite too (proof: `series`). A sequence gives all kernels from one pass.
    scale : {"mean", "raw"} or float, default="mean"
        The c that counts are divided by: the mean number of observed columns of the reference rows, 1 (the paper's raw
        form), or a number. With "mean" good regularisation hardly depends on gamma or the data set.
    constant : float, default=0.0
        Value of a constant feature, observed in every row, that is appended without storing it; 0 for none.
    indicators : float, default=0.0
        Weight a of the observed-indicator part: s + a n in place of s.
    normalize : {None, "trace", "cosine"}, default=None
        Divide by the mean diagonal of the reference rows, or by sqrt(k(x, x) k(x', x')).
    degree : int, default=1
        Above 1: ((k + coef0) / (1 + coef0))^degree of the normalised kernel, the composition of [1]_, section 6.
    coef0 : float, default=1.0
        Weight of lower degrees, >= 0.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse matrix does not store: missing, or zero.
    dtype : float32 or float64, optional
        Of the result; default that of X.
    dense_output : bool, default=True
        False gives a CSR array of the pairs that share a column (all others are 0), with unsorted indices like SciPy's
        products: one gamma, and no constant.
    out : ndarray of shape (n, m), or (q, n, m) for q gammas, optional
        C-contiguous array to fill and return.
    method : {"auto", "dense", "spmm", "inverted"}, default="auto"
        Path over the pairs; "auto" estimates the fastest from sizes and density. All give the same to rounding.
    n_jobs : int, optional
        Threads; None is 1, -1 all processors. The result does not depend on it.

    Returns
    -------
    ndarray of shape (n, m), or (q, n, m) for q gammas; csr_array of shape (n, m) without dense_output

    Raises
    ------
    ValueError
        For infinite entries, differing numbers of columns, gamma <= 0 or a kernel beyond the largest float.

    Notes
    -----
    The kernel is that of [1]_, Theorem 4. Time O(n m d / lanes) on dense tables, O(n m o) by sparse rows and O(n m v) by
    inverted index, for o entries a row and v common ones.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.kernels import karma_kernel
    >>> X = np.array([[1.0, 2.0, np.nan], [3.0, np.nan, 1.0]])
    >>> karma_kernel(X, gamma=3, scale="raw")
    array([[35.,  9.],
           [ 9., 70.]])
    """
    x = as_observed(X, sparse_missing=sparse_missing)
    y = None if Y is None else as_observed(Y, sparse_missing=sparse_missing)
    check_same_columns(x, y)
    gammas = [float(value) for value in np.atleast_1d(np.asarray(gamma, dtype=np.float64))]
    check_kernel_options(gammas, scale, constant, indicators, normalize, method)
    check_composition(degree, coef0)
    reference = x if y is None else y
    forms = [
        KernelForm.fit(
            reference,
            gamma=g,
            scale=scale,
            constant=constant,
            indicators=indicators,
            normalize=normalize,
            degree=degree,
            coef0=coef0,
        )
        for g in gammas
    ]
    result_dtype = float_dtype(dtype, x.dtype)
    shape = (x.shape[0], reference.shape[0])
    single = np.ndim(gamma) == 0
    if not dense_output:
        check_sparse_output(single, constant, out, degree)
        return compute_sparse_gram(forms[0], x, y, result_dtype, n_jobs)
    if out is not None:
        check_out(out, shape if single else (len(forms), *shape), result_dtype)
    filled = compute_grams(forms, x, y, result_dtype, n_jobs, None if out is None else out.reshape(-1, *shape), method)
    if out is not None:
        return out
    return filled[0] if single else filled
