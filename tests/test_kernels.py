"""The KARMA kernel: three paths, two dtypes, any threads, one answer, that of the slow twin."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.karma import embedding, karma_gram
from sklearn.svm import SVC

from lacunar import Observed
from lacunar.kernels import (
    KernelForm,
    RowPairSums,
    fitted_kernels,
    karma_kernel,
    pair_sums,
    series,
)

METHODS = ["dense", "spmm", "inverted"]
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}


def holes(n, d, share, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.random((n, d)) > share] = np.nan
    return X


def close(ours, twin, dtype):
    np.testing.assert_allclose(
        ours, twin, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * np.abs(twin).max(initial=1e-300)
    )


def test_theorem_4_is_the_product_of_the_embeddings():
    X = holes(6, 4, 0.6)
    for gamma in (1, 2, 3):
        features = np.array([embedding(x, gamma) for x in X])
        np.testing.assert_allclose(karma_kernel(X, gamma=gamma, count_scale="raw"), features @ features.T, atol=1e-12)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 299))
def test_every_gamma_gives_a_positive_semi_definite_kernel(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 60)), int(rng.integers(1, 30))
    X = holes(n, d, rng.uniform(0.05, 1), seed) * 10 ** rng.uniform(-2, 2, d)
    options = {
        "count_scale": rng.choice(["mean", "raw"]),
        "constant": float(rng.integers(2)),
        "indicators": float(rng.integers(2)),
        "normalize": rng.choice([None, "trace", "cosine"]),
        "degree": int(rng.integers(1, 3)),
    }
    for gamma in (0.5, 1.5, 2.5, *rng.uniform(0.01, 9, 5), *rng.integers(1, 9, 2)):
        eigenvalues = np.linalg.eigvalsh(karma_kernel(X, gamma=gamma, **options))
        assert eigenvalues[0] >= -1e-14 * n * max(eigenvalues[-1], 0), (gamma, options)


def test_between_integers_the_kernel_is_the_mixture_and_continuous():
    X = holes(20, 8, 0.6)
    low, high, between = (karma_kernel(X, gamma=gamma, count_scale=3.0) for gamma in (2, 3, 2.25))
    np.testing.assert_allclose(between, 0.75 * low + 0.25 * high, rtol=1e-13)
    counts = np.array([0.0, 0.5, 1.0, 1.5])
    for gamma in (20_000.5, 9_999.5):  # summed or by the closed form, where it converges and where it grows
        expected = 0.5 * series(counts[:3], gamma - 0.5) + 0.5 * series(counts[:3], gamma + 0.5)
        np.testing.assert_allclose(series(counts[:3], gamma), expected, rtol=1e-12)
    assert series(counts[3:], 20_000.5) == np.inf


@pytest.mark.parametrize("shape", [(1, 1, 3), (5, 1, 40), (65, 33, 31), (193, 70, 65), (200, 385, 7), (390, 391, 100)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", METHODS)
def test_paths_agree_with_the_twin(method, dtype, shape):
    n, m, d = shape
    X, Y = holes(n, d, 0.5).astype(dtype), holes(m, d, 0.4, seed=1).astype(dtype)
    options = {"method": method, "count_scale": "raw"}
    close(karma_kernel(X, Y, **options), karma_gram(X.astype(float), Y.astype(float), 2), dtype)
    own = karma_kernel(X, **options)
    close(own, karma_gram(X.astype(float), X.astype(float), 2), dtype)
    np.testing.assert_array_equal(own, own.T)


@pytest.mark.parametrize("gamma", [1, 2, 3, 4, 2.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", METHODS)
def test_gamma_constant_indicators_and_scale(method, dtype, gamma):
    X, Y = holes(70, 12, 0.6).astype(dtype), holes(90, 12, 0.6, seed=1).astype(dtype)
    ours = karma_kernel(X, Y, gamma=gamma, count_scale=5.5, constant=1.0, indicators=0.5, method=method)
    close(ours, karma_gram(X.astype(float), Y.astype(float), gamma, 5.5, 1.0, 0.5), dtype)


@pytest.mark.parametrize("normalize", [None, "trace", "cosine"])
@pytest.mark.parametrize("degree", [2, 3, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_composition_is_a_power_of_the_normalised_kernel(dtype, degree, normalize):
    X, Y = holes(40, 9, 0.6).astype(dtype), holes(50, 9, 0.6, seed=1).astype(dtype)
    options = {"gamma": 2, "normalize": normalize, "indicators": 1.0, "constant": 1.0}
    plain = karma_kernel(X.astype(float), Y.astype(float), **options)
    close(karma_kernel(X, Y, degree=degree, coef0=0.5, **options), ((plain + 0.5) / 1.5) ** degree, dtype)
    rows = Observed.from_dense(X.astype(float))
    form = KernelForm.fit(rows, gamma=2, normalize=normalize, degree=degree, coef0=0.5)
    gram = form.gram(rows)
    np.testing.assert_allclose(form.diagonal(rows), np.diag(gram), rtol=1e-12)
    np.testing.assert_allclose(form.of_pairs(RowPairSums.between(rows)), gram, rtol=1e-12)
    for method in METHODS:
        np.testing.assert_allclose(form.gram(rows[:17], rows, method=method), gram[:17], rtol=1e-11)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": 0}, "degree must be an integer >= 1; got 0"),
        ({"degree": 1.5}, "degree must be an integer >= 1; got 1.5"),
        ({"coef0": -1.0}, "coef0 must be finite and >= 0; got -1.0"),
        ({"degree": 400, "coef0": 0.0, "count_scale": "raw", "gamma": 4}, "the kernel must be representable"),
    ],
)
def test_compositions_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        karma_kernel(100 * holes(5, 4, 0.8), **options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("normalize", [None, "trace", "cosine"])
def test_several_gammas_from_one_pass(method, normalize):
    X = holes(210, 15, 0.4)
    options = {"normalize": normalize, "method": method, "constant": 1.0}
    together = karma_kernel(X, gamma=[1, 2, 3.5], **options)
    for k, gamma in enumerate([1, 2, 3.5]):
        np.testing.assert_array_equal(together[k], karma_kernel(X, gamma=gamma, **options))


@pytest.mark.parametrize("indicators", [0.0, 1.0])
def test_cosine_and_trace(indicators):
    X = holes(50, 8, 0.5)
    X[3] = np.nan
    raw = karma_kernel(X, indicators=indicators)
    cosine = karma_kernel(X, normalize="cosine", indicators=indicators)
    norm = np.sqrt(np.diag(raw))
    np.testing.assert_allclose(cosine * np.outer(norm, norm), raw, atol=1e-12)
    assert not cosine[3].any()
    np.testing.assert_allclose(np.diag(cosine), norm > 0, rtol=1e-12)
    np.testing.assert_allclose(np.diag(karma_kernel(X, normalize="trace", indicators=indicators)).mean(), 1.0)


@pytest.mark.parametrize("method", METHODS)
def test_result_does_not_depend_on_threads(method):
    X = holes(3000, 30, 0.3)  # enough work for three threads
    one = karma_kernel(X, method=method, normalize="cosine", n_jobs=1)
    np.testing.assert_array_equal(karma_kernel(X, method=method, normalize="cosine", n_jobs=3), one)


def test_result_does_not_depend_on_the_container():
    X = holes(60, 9, 0.5)
    rows, columns = np.nonzero(~np.isnan(X))
    coo = sp.coo_array((X[rows, columns], (rows, columns)), shape=X.shape)
    for same in (coo.tocsr(), sp.csc_matrix(coo), Observed.from_dense(X), X.tolist()):
        np.testing.assert_array_equal(karma_kernel(same), karma_kernel(X))


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["base", "v3", "v4", "v4+vpopcntdq"])
def test_result_does_not_depend_on_the_instruction_set(isa):
    code = (
        "import numpy as np, sys; from lacunar.kernels import karma_kernel\n"
        "rng = np.random.default_rng(0); X = rng.normal(size=(250, 70)); X[rng.random(X.shape) > .5] = np.nan\n"
        "K = [karma_kernel(X.astype(t), gamma=3, method=m).astype(float) for t in ('f4', 'f8') for m in "
        f"{METHODS}]\n"
        "full = rng.normal(size=(20, 2100)); full[rng.random(full.shape) > .99] = np.nan\n"  # more words than bytes count
        f"W = [karma_kernel(full, gamma=3, method=m) for m in {METHODS}]\n"
        "np.savez(sys.stdout.buffer, tall=K, wide=W)"
    )
    environment = {**os.environ, "LACUNAR_ISA": isa}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    if b"asks for more than this processor" in done.stderr:
        pytest.skip(f"this processor or build has no {isa}")
    assert done.returncode == 0, done.stderr.decode()
    import io

    grams = np.load(io.BytesIO(done.stdout))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 70))
    X[rng.random(X.shape) > 0.5] = np.nan
    for k, gram in enumerate(grams["tall"]):
        dtype = np.float32 if k < 3 else np.float64
        close(gram, karma_kernel(X, gamma=3), dtype)
    full = rng.normal(size=(20, 2100))
    full[rng.random(full.shape) > 0.99] = np.nan
    seen = ~np.isnan(full)
    common, sums = seen.astype(float) @ seen.T, np.nan_to_num(full) @ np.nan_to_num(full).T
    mean = seen.sum(axis=1).mean()
    for gram in grams["wide"]:
        close(gram, sums * (1 + common / mean + (common / mean) ** 2), np.float64)


def test_unknown_instruction_set_is_refused():
    environment = {**os.environ, "LACUNAR_ISA": "v9"}
    done = subprocess.run([sys.executable, "-c", "import lacunar"], env=environment, capture_output=True, check=False)
    assert done.returncode != 0
    assert b"must be base, v3, v4 or v4+vpopcntdq" in done.stderr


@pytest.mark.parametrize("method", METHODS)
def test_degenerate_tables(method):
    nothing = np.full((4, 3), np.nan)
    np.testing.assert_array_equal(karma_kernel(nothing, method=method), np.zeros((4, 4)))
    np.testing.assert_array_equal(
        karma_kernel(nothing, constant=1.0, count_scale="raw", method=method), np.full((4, 4), 2.0)
    )
    assert karma_kernel(np.empty((0, 3)), method=method).shape == (0, 0)
    assert karma_kernel(np.empty((2, 0)), method=method).tolist() == [[0, 0], [0, 0]]
    for normalize in ("trace", "cosine"):
        assert not karma_kernel(nothing, normalize=normalize, method=method).any()


def test_it_is_positive_semidefinite():
    X = holes(80, 10, 0.5)
    for options in ({}, {"gamma": 4}, {"indicators": 1.0}, {"normalize": "cosine"}, {"constant": 1.0}):
        eigenvalues = np.linalg.eigvalsh(karma_kernel(X, **options))
        assert eigenvalues.min() > -1e-10 * eigenvalues.max()


def test_pair_sums_make_every_kernel():
    X, Y = Observed.from_dense(holes(30, 8, 0.5)), Observed.from_dense(holes(20, 8, 0.5, seed=1))
    for normalize in (None, "trace", "cosine"):
        form = KernelForm.fit(Y, gamma=3, constant=1.0, indicators=1.0, normalize=normalize)
        np.testing.assert_allclose(form.of_pairs(RowPairSums.between(X, Y)), form.gram(X, Y), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(form.diagonal(X), np.diag(form.gram(X)), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0}, "gamma must be positive"),
        ({"gamma": 30, "count_scale": "raw", "dtype": np.float32}, "float32"),
        ({"gamma": 400, "count_scale": "raw"}, "float64"),
        ({"count_scale": -1.0}, "count_scale must"),
        ({"count_scale": np.inf}, "count_scale must"),
        ({"constant": np.nan}, "constant must"),
        ({"constant": 1e200}, "must be representable"),
        ({"indicators": -1.0}, "indicators must"),
        ({"indicators": np.inf}, "indicators must"),
        ({"normalize": "l2"}, "normalize must"),
        ({"method": "fast"}, "method must"),
        ({"Y": np.ones((2, 3))}, "same columns"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        karma_kernel(holes(5, 60, 0.9), **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("normalize", [None, "trace", "cosine"])
@pytest.mark.parametrize("size", [1e200, 1e155, 1e30, 1e19, 1e18, 1e-18, 1e-25, 1e-30, 1e-160])
def test_extreme_values_are_refused_or_right(size, normalize, dtype):
    X = np.array([[size, np.nan], [size, size], [1.0, size]])
    try:
        made = karma_kernel(X, normalize=normalize, dtype=dtype)
    except ValueError:
        with pytest.raises(ValueError, match=r"the kernel must.*or float64"):
            karma_kernel(X, normalize=normalize, dtype=dtype)
        return
    assert np.isfinite(made).all()
    if normalize == "cosine":
        np.testing.assert_allclose(np.diag(made), 1.0, rtol=1e-6)


def test_a_small_row_behind_a_large_one_keeps_its_norm():
    X = np.array([[1e9, 1e9], [1.0, 1.0], [1e-3, 2e-3]])
    np.testing.assert_allclose(karma_kernel(X, gamma=1, normalize="cosine")[1, :2], 1.0, rtol=1e-12)
    np.testing.assert_allclose(KernelForm(gamma=1.0).diagonal(Observed.from_dense(X)), (X**2).sum(axis=1), rtol=1e-14)


def test_sums_and_searched_kernels_are_refused_where_they_overflow():
    with pytest.raises(ValueError, match="must be representable"):
        pair_sums(Observed.from_dense([[1e200]]))
    rows = Observed.from_dense(np.ones((2, 30)))
    with pytest.raises(ValueError, match="gamma=1000"):
        fitted_kernels(
            [(KernelForm, {"gamma": 1000.0, "count_scale": "raw"})], RowPairSums.between(rows), np.ones(2), np.float64
        )


def test_large_gamma_is_exact_where_it_fits():
    X = np.ones((2, 50))
    assert karma_kernel(X, gamma=5, count_scale="raw")[0, 1] == 50 * sum(50**k for k in range(5))


@pytest.mark.parametrize("first", [0, 25_000])
def test_columns_of_many_entries_are_listed_by_several_threads(first):
    """With the first half of the columns empty, too: threads have ranges of columns."""
    rng = np.random.default_rng(0)
    columns = np.sort(first + rng.permuted(np.tile(np.arange(250), (4000, 1)), axis=1)[:, :60] * 100, axis=1)
    indptr = np.arange(4001) * 60
    Y = Observed(indptr, columns.astype(np.int32).ravel(), rng.normal(size=240_000), (4000, 50_000))
    X = Y[:20]
    one = karma_kernel(X, Y, method="inverted")
    np.testing.assert_allclose(one, karma_kernel(X, Y, method="spmm"), rtol=1e-12, atol=1e-12)
    for n_jobs in (2, 3):
        np.testing.assert_array_equal(karma_kernel(X, Y, method="inverted", n_jobs=n_jobs), one)


def test_svc_learns_from_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    y = X[:, 0] + X[:, 1] > 0
    X[rng.random(X.shape) < 0.2] = np.nan
    gram = karma_kernel(X, constant=1.0)
    assert SVC(kernel="precomputed").fit(gram[:150, :150], y[:150]).score(gram[150:, :150], y[150:]) > 0.7


def test_warning_for_counts_that_store_no_zero():
    X = sp.csr_array((np.random.default_rng(0).random((40, 30)) < 0.1).astype(float))
    with pytest.warns(UserWarning, match="sparse_missing"):
        karma_kernel(X.tocsr())
