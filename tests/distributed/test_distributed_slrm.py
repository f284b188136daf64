"""SLRM over shards is SLRM on one machine: every sum of the fit adds up."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from lacunar import Observed
from lacunar.distributed import apply, fit_slrm
from lacunar.lowrank import SLRMRegressor

pytestmark = pytest.mark.slow

pytest.importorskip("dask")

LEARNED = ["feature_coef_", "intercept_", "mean_", "scale_", "components_", "coef_", "label_variance_", "label_mean_"]


def problem(n=600, d=14, k=3, seed=0):
    """Rows with holes, and two targets with holes."""
    rng = np.random.default_rng(seed)
    code = rng.normal(size=(n, k))
    X = code @ rng.normal(size=(k, d)) + 0.3 * rng.normal(size=(n, d)) + 5 * rng.normal(size=d)
    X[rng.random(X.shape) < 0.4] = np.nan
    Y = np.column_stack([code[:, 0] + 0.1 * rng.normal(size=n), 2 * code[:, 1] - code[:, 0] + 5])
    Y[rng.random(Y.shape) < 0.3] = np.nan
    return X, Y


def cut(table, k=4):
    return [table[part[0] : part[-1] + 1] for part in np.array_split(np.arange(table.shape[0]), k)]


def assert_alike(one, other, X, tol=1e-8):
    for name in LEARNED:
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * np.abs(b).max(), err_msg=name)
    assert one.n_iter_ == other.n_iter_
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=tol, atol=tol)


OPTIONS = {
    "em": {},
    "als": {"solver": "als"},
    "labels in the factorisation": {"lam1": 0.5},
    "labels in ALS": {"lam1": 0.5, "solver": "als"},
    "alpha": {"alpha": 0.1},
    "as it comes": {"standardize": False, "clip": None},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_shards_are_one_machine(options):
    X, Y = problem()
    model = SLRMRegressor(4, random_state=0, **options)
    whole = SLRMRegressor(4, random_state=0, **options).fit(X, Y)
    for k in (1, 2, 7):
        over = fit_slrm(model, cut(X, k), cut(Y, k))
        assert_alike(over, whole, X)
    assert not hasattr(model, "components_")


def test_one_target_stays_one_and_is_weighed_by_leave_one_out():
    X, Y = problem()
    whole = SLRMRegressor(2, random_state=0).fit(X, Y[:, 0])
    over = fit_slrm(SLRMRegressor(2, random_state=0), cut(X), cut(Y[:, 0]))
    assert over.predict(X).shape == (len(X),)
    assert_alike(over, whole, X)
    for one, other in zip(over.predict(X, return_std=True), whole.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)
    np.testing.assert_allclose(np.concatenate(apply(over, cut(X))), whole.predict(X), rtol=1e-8, atol=1e-8)


def sources(X, Y, folder):
    """The same rows and labels as everything that `shards` reads."""
    import dask
    import dask.array as da
    import dask.dataframe as dd

    names = [f"c{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names).assign(y=Y[:, 0])
    parquet, files = folder / "parquet", []
    parquet.mkdir()
    for number, part in enumerate(cut(frame)):
        part.to_parquet(parquet / f"{number}.parquet")
    for number, part in enumerate(cut(X)):
        files.append(str(folder / f"{number}.lacunar"))
        Observed.from_dense(part).save(files[-1])
    seen = np.nan_to_num(X, nan=0.0)
    coordinates = np.nonzero(~np.isnan(X))
    table = sp.csr_array((seen[coordinates], coordinates), shape=X.shape)
    y = Y[:, 0]
    yield "arrays", cut(X), cut(y)
    yield "sparse", cut(table), cut(y)
    yield "Observed", [Observed.from_dense(part) for part in cut(X)], cut(y)
    yield (
        "delayed",
        [dask.delayed(Observed.from_dense)(part) for part in cut(X)],
        [dask.delayed(part) for part in cut(y)],
    )
    yield "files", files, cut(y)
    yield "dask array", da.from_array(X, chunks=(len(X) // 4, 5)), da.from_array(y, chunks=len(X) // 4)
    yield "dask dataframe", dd.from_pandas(frame[names], npartitions=4), dd.from_pandas(frame["y"], npartitions=4)
    yield "column of a dask dataframe", dd.from_pandas(frame, npartitions=4), "y"
    yield "Parquet", parquet, "y"


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_every_kind_of_shard(tmp_path):
    X, Y = problem()
    model = SLRMRegressor(3, random_state=0, max_iter=15)
    whole = SLRMRegressor(3, random_state=0, max_iter=15).fit(X, Y[:, 0])
    for kind, rows, labels in sources(X, Y, tmp_path):
        over = fit_slrm(model, rows, labels)
        assert_alike(over, whole, X)
        assert hasattr(over, "feature_names_in_") == ("dataframe" in kind or kind == "Parquet")


def test_rows_that_are_read_again_are_the_same_rows():
    X, Y = problem()
    model = SLRMRegressor(3, random_state=0, max_iter=5)
    kept, again = (fit_slrm(model, cut(X), cut(Y), keep=keep) for keep in (True, False))
    np.testing.assert_array_equal(kept.components_, again.components_)
    np.testing.assert_array_equal(kept.coef_, again.coef_)


def test_single_precision_agrees_to_its_rounding():
    X, Y = problem()
    X = X.astype(np.float32)
    whole = SLRMRegressor(3, random_state=0).fit(X, Y)
    assert_alike(fit_slrm(SLRMRegressor(3, random_state=0), cut(X), cut(Y)), whole, X, tol=1e-5)


def test_what_some_shards_lack():
    X, Y = problem()
    X[:150, 3] = np.nan  # a column that the first of four shards never saw
    X[150:300] = np.nan  # a shard that saw nothing
    Y[:, 1] = np.nan  # a target that nobody knows
    Y[300:450] = np.nan  # a shard that knows no label
    X[:, 7] = np.nan  # a column that nobody saw
    model = SLRMRegressor(3, random_state=0)
    whole, over = SLRMRegressor(3, random_state=0).fit(X, Y), fit_slrm(model, cut(X), cut(Y))
    for name in ("feature_coef_", "mean_", "scale_", "components_"):
        np.testing.assert_allclose(getattr(over, name), getattr(whole, name), atol=1e-8)
    assert list(over.labelled_) == [True, False]
    assert not over.observed_columns_[7]
    assert over.observed_columns_[3]
    np.testing.assert_allclose(over.label_variance_, whole.label_variance_)
    few = [np.zeros((1, 14)), X[:1]]  # fewer rows than components
    assert np.isfinite(fit_slrm(model, few, [[1.0], [2.0]]).predict(X)).all()


def test_bad_shards_are_named():
    X, Y = problem(80)
    model, parts, labels = SLRMRegressor(2), cut(X), cut(Y)
    frames = [pd.DataFrame(part).add_prefix("c") for part in parts]

    def refused(match, rows=None, y=None):
        with pytest.raises(ValueError, match=match):
            fit_slrm(model, rows or parts, y or labels)

    refused("shard 2 has 13, shard 0 has 14", [*parts[:2], parts[2][:, 1:], parts[3]])
    refused("column 0 of shard 3 is 'c13', of shard 0 'c0'", [*frames[:3], frames[3].iloc[:, ::-1]])
    refused(
        "shard 1 has 20 rows and 19 labels",
        y=[labels[0], labels[1][1:], *labels[2:]],
    )
    refused("shard 3 has none", [*parts[:3], parts[3][:0]], [*labels[:3], labels[3][:0]])
    refused("shard 2: .*requires y to be passed", y=[*labels[:2], None, labels[3]])
    refused(
        r"y must have the same targets in every shard; it has shape \(n,\) in shard 1 and \(n, 2\) in shard 0",
        y=[labels[0], labels[1][:, 0], *labels[2:]],
    )
    refused("shard 0: X must be finite where observed", [np.where(np.isnan(parts[0]), np.inf, parts[0]), *parts[1:]])
    with pytest.raises(ValueError, match="as many pieces as X; got 3 and 4"):
        fit_slrm(model, parts, labels[:3])


def test_steps_are_reported_here(caplog):
    X, Y = problem(80)
    fit_slrm(SLRMRegressor(2, max_iter=3, tol=0.0, verbose=1), cut(X), cut(Y))
    assert caplog.text.count("SLRM em step") == 3
