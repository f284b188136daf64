"""Fits over shards: equal to one machine where sums allow, close where averages must do, whole when a worker dies."""

import os
import signal
import warnings

import numpy as np
import pandas as pd
import pytest

from lacunar import KarmaClassifier, KarmaOnlineClassifier, KarmaOnlineRegressor, KarmaRegressor, Observed
from lacunar.distributed import apply, fit_karma, fit_popca, gram, shards
from lacunar.karma.solvers import average_states
from lacunar.kernels import karma_kernel
from lacunar.lowrank import POPCA

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask")


def problem(n=4000, d=12, seed=0):
    rng = np.random.default_rng(seed)
    code = rng.normal(size=(n, 3))
    X = code @ rng.normal(size=(3, d)) + 0.1 * rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.4] = np.nan
    return X, np.where(code[:, 0] > 0, "up", "down"), code[:, 0]


def cut(array, k=5):
    return np.array_split(array, k)


def sources(X, tmp_path):
    """The same rows as a list, Observed shards, a dask array, a dask dataframe and a folder of Parquet files."""
    import dask.array as da
    import dask.dataframe as dd

    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    for k, part in enumerate(np.array_split(np.arange(len(X)), 5)):
        frame.iloc[part].to_parquet(tmp_path / f"{k}.parquet")
    yield cut(X)
    yield [Observed.from_dense(part) for part in cut(X)]
    yield da.from_array(X, chunks=(len(X) // 5, 5))
    yield dd.from_pandas(frame, npartitions=5)
    yield tmp_path


@pytest.mark.filterwarnings("ignore")
def test_popca_of_shards_is_popca_of_all_rows(tmp_path):
    X, _, _ = problem()
    whole = POPCA(3, refine=0).partial_fit(X)
    for source in sources(X, tmp_path):
        fitted = fit_popca(POPCA(3, refine=0), source)
        np.testing.assert_allclose(fitted.get_covariance(), whole.get_covariance(), atol=1e-10)
        np.testing.assert_allclose(np.abs(fitted.components_), np.abs(whole.components_), atol=1e-8)
        assert fitted.n_samples_seen_ == len(X)


def test_one_shard_is_one_machine():
    X, y, _ = problem()
    for loss in ("hinge", "squared", "logistic"):
        alone = KarmaOnlineClassifier(loss=loss, rho=1e-3)
        shard = fit_karma(alone, [X], [y], classes=["down", "up"], first_rows=500)
        alone.partial_fit(X[:500], y[:500], classes=["down", "up"]).partial_fit(X[500:], y[500:])
        np.testing.assert_allclose(shard.decision_function(X), alone.decision_function(X), atol=1e-4)  # float32
        for model in (shard, alone):  # and learning goes on alike
            model.partial_fit(X[:700], y[:700])
        np.testing.assert_allclose(shard.decision_function(X), alone.decision_function(X), atol=1e-4)


def test_shards_average_and_rounds_help():
    X, y, number = problem(6000)
    train, test = slice(0, 5000), slice(5000, None)
    model = KarmaOnlineClassifier(rho=1e-3)
    one = KarmaOnlineClassifier(rho=1e-3).partial_fit(X[train], y[train], classes=["down", "up"])
    many = fit_karma(model, cut(X[train]), cut(y[train]), classes=["down", "up"])
    assert many.n_rows_seen_ == 5000
    assert np.mean(many.predict(X[test]) != y[test]) <= np.mean(one.predict(X[test]) != y[test]) + 0.02
    assert not hasattr(model, "classes_")
    value = KarmaOnlineRegressor(rho=1e-3)
    errors = [
        np.mean((fit_karma(value, cut(X[train]), cut(number[train]), rounds=r).predict(X[test]) - number[test]) ** 2)
        for r in (1, 4)
    ]
    assert errors[1] < errors[0] < 0.5
    with pytest.raises(ValueError, match=r"must keep a weight table over shards.*gamma=2.5"):
        fit_karma(KarmaOnlineClassifier(2.5), cut(X), cut(y), classes=["down", "up"])


def test_karma_of_every_kind_of_shard(tmp_path):
    X, y, number = problem(1000)
    options = {"loss": "hinge", "rho": 1e-2}
    listed = fit_karma(KarmaOnlineClassifier(**options), cut(X), cut(y), classes=["down", "up"], first_rows=50)
    value = fit_karma(KarmaOnlineRegressor(rho=1e-2), cut(X), cut(number), first_rows=50)
    for source in sources(X, tmp_path):
        with warnings.catch_warnings(action="ignore"):  # of names of columns that predict does not get
            fitted = fit_karma(KarmaOnlineClassifier(**options), source, cut(y), classes=["down", "up"], first_rows=50)
            np.testing.assert_array_equal(fitted.decision_function(X), listed.decision_function(X))
            numbers = fit_karma(KarmaOnlineRegressor(rho=1e-2), source, cut(number), first_rows=50)
            np.testing.assert_array_equal(numbers.predict(X), value.predict(X))


def test_predictions_and_kernel_blocks_are_those_of_one_machine():
    X, y, _ = problem(600)
    model = KarmaClassifier().fit(X, y)
    np.testing.assert_array_equal(np.concatenate(apply(model, cut(X))), model.predict(X))
    blocks = gram(cut(X), reference_scale=4.0, gamma=3)
    np.testing.assert_allclose(np.block(dask.compute(blocks)[0]), karma_kernel(X, gamma=3, count_scale=4.0), rtol=1e-12)
    with pytest.raises(ValueError, match="normalize must be None or 'cosine' by blocks"):
        gram(cut(X), reference_scale=1.0, normalize="trace")
    with pytest.raises(AttributeError):
        apply(model, cut(X), "no_such_method")


def test_what_cannot_be_cut_is_refused(tmp_path):
    X, y, _ = problem(50)
    with pytest.raises(ValueError, match=r"as many pieces as X; got 2 and 5"):
        shards(cut(X), cut(y, 2))
    with pytest.raises(ValueError, match="at least one shard"):
        shards(tmp_path)
    with pytest.raises(ValueError, match="must be a dask collection"):
        shards(3)
    with pytest.raises(ValueError, match="must name a column"):
        dask.compute(shards(cut(X), "y"))
    with pytest.raises(ValueError, match="X must come in pieces; got one ndarray"):
        shards(X)
    frame = pd.DataFrame(X).add_prefix("c").assign(y=y)
    table, labels = dask.compute(shards([frame], "y")[0])[0]
    assert list(labels) == list(y)
    assert table.shape == X.shape
    with pytest.raises(ValueError, match="shard 1, a DataFrame, has no such column"):
        dask.compute(shards([frame, table], "y"))
    for fit in (lambda *data: fit_karma(KarmaOnlineClassifier(), *data, classes=["down", "up"]), shards):
        with pytest.raises(ValueError, match="shard 2 has 10 rows and 9 labels"):
            dask.compute(fit(cut(X), [*cut(y)[:2], cut(y)[2][:9], *cut(y)[3:]]))
        with pytest.raises(ValueError, match="shard 1 has none"):
            dask.compute(fit([cut(X)[0], X[:0]], [cut(y)[0], y[:0]]))
    with pytest.raises(ValueError, match="shard 1: X has 11 features"):
        apply(KarmaRegressor().fit(X, np.arange(50.0)), [X, X[:, 1:]])


def test_folders_of_parquet_files(tmp_path):
    X, _, number = problem(60)
    frame = pd.DataFrame(X).add_prefix("c").assign(y=pd.array(number, dtype="Float64"))
    frame.loc[3, "y"] = pd.NA
    for name, part in zip(("2024/b", "2024/a", "2023/z", "top"), cut(np.arange(60), 4), strict=True):
        path = tmp_path / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        frame.iloc[part].to_parquet(path)
    (tmp_path / "_temporary.parquet").write_text("not one of them")
    pairs = dask.compute(shards(tmp_path, "y"))[0]
    order = np.concatenate([cut(np.arange(60), 4)[k] for k in (2, 1, 0, 3)])
    np.testing.assert_array_equal(np.concatenate([table.to_numpy() for table, _ in pairs]), X[order])
    labels = np.concatenate([labels for _, labels in pairs])
    assert labels.dtype == np.float64
    np.testing.assert_array_equal(labels, np.where(order == 3, np.nan, number[order]))
    for one in (tmp_path / "top.parquet", str(tmp_path / "top.parquet")):
        assert dask.compute(shards(one))[0][0][0].shape == (15, 13)
        assert dask.compute(shards([one], "y"))[0][0][0].shape == (15, 12)
    (tmp_path / "year=2025").mkdir()
    frame.to_parquet(tmp_path / "year=2025" / "a.parquet")
    with pytest.raises(
        ValueError, match=r"must not be partitioned by a column; got 'year=2025'.*dask\.dataframe\.read_parquet"
    ):
        shards(tmp_path, "y")


def test_states_that_began_apart_do_not_average():
    X, y, _ = problem(300)
    models = [KarmaOnlineClassifier().partial_fit(part, label, classes=["down", "up"])
              for part, label in zip(cut(X, 2), cut(y, 2), strict=True)]  # fmt: skip
    with pytest.raises(ValueError, match="must be of models that began alike; form of state 1"):
        average_states([model.state_ for model in models])
    online = KarmaOnlineClassifier(budget=10**6).partial_fit(X, y, classes=["down", "up"])
    with pytest.raises(ValueError, match="must be of Algorithm 1 on the weight table"):
        average_states([online.state_])
    with pytest.raises(ValueError, match="at least one state"):
        average_states([])


def _slow(part):
    import time

    time.sleep(0.5)
    return part


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_dies_is_survived():
    distributed = pytest.importorskip("distributed")
    X, _, _ = problem()
    whole = fit_popca(POPCA(3, refine=0), cut(X, 8))
    with (
        warnings.catch_warnings(action="ignore"),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = client.run(os.getpid)
        slow = [dask.delayed(_slow)(part) for part in cut(X, 8)]
        victim = next(iter(pids.values()))
        import threading

        threading.Timer(1.0, os.kill, (victim, signal.SIGKILL)).start()
        fitted = fit_popca(POPCA(3, refine=0), slow)
        assert victim not in client.run(os.getpid).values()
    np.testing.assert_array_equal(fitted.components_, whole.components_)


def test_karma_over_shards_asks_for_classes_in_its_own_words():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(60, 3)), np.arange(60) % 2
    with pytest.raises(
        ValueError, match=r"classes must hold all labels for KarmaOnlineClassifier.*fit_karma\(\.\.\., classes="
    ):
        fit_karma(KarmaOnlineClassifier(), [rows], [labels])
    with pytest.raises(ValueError, match=r"classes must be None for KarmaOnlineRegressor.*Leave it out"):
        fit_karma(KarmaOnlineRegressor(), [rows], [labels], classes=[0, 1])
    begun = KarmaOnlineClassifier().partial_fit(rows, labels, classes=[0, 1])
    assert fit_karma(begun, [rows], [labels]).n_rows_seen_ > 60
