"""KarmaFeatures: inner products are the kernel's, exactly or as nearly as it says."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from lacunar import KarmaClassifier, KarmaOnlineClassifier, KarmaRegressor, Observed
from lacunar.karma import KarmaFeatures, base, features, solvers
from lacunar.karma.table import has_map
from lacunar.kernels import KernelForm
from lacunar.observed.columns import ColumnScale, scale_columns
from lacunar.persistence import load_model, save_model

KERNELS = [
    {"gamma": 1},
    {"gamma": 2},
    {"gamma": 2, "indicators": True, "normalize": "cosine"},
    {"gamma": 1, "indicators": True, "constant": False},
    {"gamma": 2, "normalize": None, "constant": False, "standardize": False},
    {"gamma": 2, "indicators": True},
]


def table(n=60, d=9, share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.2 * rng.normal(size=(n, d))
    y = X[:, 0] + 0.5 * X[:, 1]
    X[rng.random(X.shape) > share] = np.nan
    X[4] = np.nan
    return X, y


def gram(model, X):
    columns = ColumnScale(model.mean_, model.scale_, model.observed_columns_)
    return model.kernel_.gram(scale_columns(Observed.from_dense(X), columns))


@pytest.mark.parametrize("options", KERNELS, ids=str)
def test_exact_features_give_the_kernel(options):
    X, _ = table()
    model = KarmaFeatures(**options)
    made = model.fit_transform(X)
    assert sp.issparse(made)
    assert made.has_sorted_indices or made.has_canonical_format
    np.testing.assert_allclose((made @ made.T).toarray(), gram(model, X), atol=1e-12)
    assert made.shape[1] == len(model.get_feature_names_out()) == model._n_features_out
    assert model.approximation_error_ == 0


@pytest.mark.parametrize("gamma", [1, 2, 2.5, 4])
def test_all_landmarks_give_the_kernel_and_fewer_what_they_say(gamma):
    X, _ = table(n=300)
    every = KarmaFeatures(gamma, method="nystroem", n_components=300, random_state=0).fit(X)
    made = every.transform(X)
    np.testing.assert_allclose(made @ made.T, gram(every, X), atol=1e-6)
    some = KarmaFeatures(gamma, method="nystroem", n_components=40, random_state=0).fit(X)
    missed = 1 - np.sum(some.transform(X) ** 2) / np.trace(gram(some, X))
    assert 0 <= some.approximation_error_ < 0.6
    assert some.approximation_error_ == pytest.approx(missed * 300 / 260, abs=0.05)


def test_linear_learners_on_features_are_karma():
    X, y = table(n=200)
    karma = KarmaRegressor(gamma=2, C=1.0).fit(X, y)
    features = KarmaFeatures().fit_transform(X).toarray()
    shift = karma.intercept_ if hasattr(karma, "intercept_") else 0.0
    ridge = Ridge(alpha=0.5, fit_intercept=False, solver="cholesky").fit(features, y - shift)
    np.testing.assert_allclose(ridge.predict(features) + shift, karma.predict(X), atol=1e-8)
    labels = make_pipeline(KarmaFeatures(3, n_components=100, random_state=0), LogisticRegression()).fit(X, y > 0)
    assert labels.score(X, y > 0) > 0.75


@pytest.mark.parametrize("method", ["exact", "nystroem"])
def test_containers_files_and_threads_do_not_matter(method, tmp_path):
    X, _ = table()
    model = KarmaFeatures(method=method, n_components=20, random_state=0).fit(X)

    def dense(made):
        return made.toarray() if sp.issparse(made) else made

    expected = dense(model.transform(X))
    rows = Observed.from_dense(X)
    for form in (rows, sp.csr_array(rows.to_scipy()), sp.csc_matrix(rows.to_scipy())):
        np.testing.assert_array_equal(dense(model.transform(form)), expected)
    np.testing.assert_array_equal(dense(model.set_params(n_jobs=3).transform(X)), expected)
    save_model(model, tmp_path / "f.lacunar")
    np.testing.assert_array_equal(dense(load_model(tmp_path / "f.lacunar").transform(X)), expected)


def test_limits_are_named():
    X, _ = table()
    with pytest.raises(ValueError, match="method='exact' must have gamma 1 or 2"):
        KarmaFeatures(3, method="exact").fit(X)
    with pytest.raises(ValueError, match="memory_limit=100"):
        KarmaFeatures(method="exact", memory_limit=100).fit(X)
    assert KarmaFeatures(memory_limit=100, n_components=5).fit(X).method_ == "nystroem"


def test_the_limit_holds_for_transform_too_and_is_the_size():
    X, _ = table(n=400)
    made = KarmaFeatures(method="exact").fit_transform(X)
    size = made.data.nbytes + made.indices.nbytes + made.indptr.nbytes
    model = KarmaFeatures(method="exact", memory_limit=size).fit(X)
    model.transform(X)
    with pytest.raises(ValueError, match=f"memory_limit={size} bytes; they take"):
        model.transform(np.vstack([X, X[:40]]))
    with pytest.raises(ValueError, match=f"they take {size}"):
        KarmaFeatures(method="exact", memory_limit=size - 1).fit(X)


def test_auto_counts_the_weights_of_a_learner():
    wide = sp.csr_array(([1.0, 2.0], ([0, 1], [0, 49_999])), shape=(2, 50_000))
    assert KarmaFeatures().fit(wide).method_ == "nystroem"
    assert KarmaFeatures(1).fit(wide).method_ == "exact"


def test_rows_are_written_by_blocks(monkeypatch):
    X, _ = table(n=80)
    expected = KarmaFeatures(indicators=True).fit_transform(X)
    assert expected.indices.dtype == expected.indptr.dtype == np.int32
    for block in (1, 37, 1000):
        monkeypatch.setattr("lacunar.karma.features._ENTRIES", block)
        made = KarmaFeatures(indicators=True).fit_transform(X)
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(made, name), getattr(expected, name))


def test_no_error_is_claimed_without_rows_to_measure_on(tmp_path):
    X, _ = table()
    model = KarmaFeatures(3, n_components=60, random_state=0).fit(X)
    assert np.isnan(model.approximation_error_)
    save_model(model, tmp_path / "f.lacunar")
    assert np.isnan(load_model(tmp_path / "f.lacunar").approximation_error_)


def test_degenerate_rows():
    hole = np.full((3, 4), np.nan)
    assert KarmaFeatures().fit_transform(hole).shape[0] == 3
    bare = KarmaFeatures(method="nystroem", constant=False, random_state=0)
    np.testing.assert_array_equal(bare.fit_transform(hole), 0)


class Exponential(KernelForm):
    """A kernel with another factor of the number of common columns."""

    def table(self, largest):
        return np.exp(np.arange(largest + 1) / (20 * self.count_scale))


class Scaled(KernelForm):
    """A kernel with another coefficient of the sums."""

    def coefficients(self):
        on_sum, on_count, constant = super().coefficients()
        return 2 * on_sum, on_count, constant


class Squared(KernelForm):
    """A kernel that is composed with a square."""

    def compose(self, values):
        values *= values


@pytest.mark.parametrize("kernel", [Exponential, Scaled, Squared])
@pytest.mark.parametrize("gamma", [1, 2, 3])
def test_a_kernel_of_other_values_has_no_explicit_features(monkeypatch, kernel, gamma):
    """A kernel that was added to the form alone: nothing may learn with the features of the old one."""
    X, _ = table()
    y = np.arange(60) % 2
    for module in (base, features):
        monkeypatch.setattr(module, "KernelForm", kernel)
    assert not has_map(kernel.fit(Observed.from_dense(X), gamma=gamma, constant=1.0))
    assert KarmaFeatures(gamma).fit(X).method_ == "nystroem"
    with pytest.raises(ValueError, match=r"no other factor in the kernel.*Use method='nystroem'"):
        KarmaFeatures(gamma, method="exact").fit(X)
    assert KarmaOnlineClassifier(gamma).fit(X, y).solver_ == "support"
    monkeypatch.setattr(solvers, "_FEW_ROWS", 0)
    assert KarmaClassifier(gamma).fit(X, y).solver_ == "gram"
    with pytest.raises(ValueError, match="whose features fit in a table"):
        KarmaClassifier(gamma, solver="primal").fit(X, y)


@pytest.mark.parametrize("constant", [0.0, 1.0, 1e-3, 1e6])
@pytest.mark.parametrize("indicators", [0.0, 0.7, 1e6])
@pytest.mark.parametrize("gamma", [1, 2, 3])
def test_every_kernel_of_karma_has_them(gamma, indicators, constant):
    rows = Observed.from_dense(table()[0])
    for normalize in (None, "trace", "cosine"):
        for scale in ("raw", "mean", 1e-4, 1e4):
            options = {"gamma": gamma, "indicators": indicators, "constant": constant, "normalize": normalize}
            form = KernelForm.fit(rows, count_scale=scale, **options)
            assert has_map(form)
            assert not has_map(replace(form, degree=2))
            assert not has_map(replace(form, gamma=gamma + 0.5))
