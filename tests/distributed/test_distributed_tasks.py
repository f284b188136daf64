"""What fits over shards cost a scheduler, and how sums are grouped: by tasks, never in other bits."""

import math

import numpy as np
import pytest
from test_distributed_slrm import cut, problem

from lacunar import KarmaOnlineClassifier, Observed
from lacunar.distributed import fit_karma, fit_popca, fit_slrm
from lacunar.distributed import parts as over
from lacunar.lowrank import POPCA, SLRMRegressor

dask = pytest.importorskip("dask")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
MOST = 15  # tasks a shard, where a thread has four
SHARDS = 4
X, Y = problem()

FITS = {
    "POPCA, table": lambda parts, labels: fit_popca(POPCA(3, refine=0), parts),
    "POPCA, refined": lambda parts, labels: fit_popca(POPCA(3), parts),
    "POPCA, matrix-free": lambda parts, labels: fit_popca(POPCA(3, solver="matrix-free", random_state=0), parts),
    "SLRM, EM": lambda parts, labels: fit_slrm(
        SLRMRegressor(3, lam1="inf", max_iter=20, tol=0, random_state=0), parts, labels
    ),
    "SLRM, ALS": lambda parts, labels: fit_slrm(
        SLRMRegressor(3, solver="als", max_iter=20, tol=0, random_state=0), parts, labels
    ),
    "KARMA": lambda parts, labels: fit_karma(
        KarmaOnlineClassifier(), parts, [each[:, 0] > 0 for each in labels], classes=[False, True], rounds=3
    ),
}


def tasks(fit):
    """How many tasks it took; what the local scheduler keeps of earlier rounds it passes on under the same key."""
    run = set()
    with dask.callbacks.Callback(pretask=lambda *given: run.add(given[0])):
        fit()
    return len(run)


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_tasks_a_shard(fit, monkeypatch):
    monkeypatch.setattr(over, "_lanes", lambda: 1)
    labels = np.nan_to_num(Y[:, :1])
    assert tasks(lambda: fit(cut(X, SHARDS), cut(labels, SHARDS))) <= MOST * SHARDS


def test_tasks_where_labels_add_directions(monkeypatch):
    monkeypatch.setattr(over, "_lanes", lambda: 1)
    labels = cut(np.nan_to_num(Y[:, :1]), SHARDS)
    model = SLRMRegressor(3, max_iter=20, tol=0, random_state=0)
    assert tasks(lambda: fit_slrm(model, cut(X, SHARDS), labels)) <= 4 * MOST * SHARDS  # five folds, ten steps each


def test_tasks_where_every_shard_has_a_thread(monkeypatch):
    monkeypatch.setattr(over, "_lanes", lambda: SHARDS)
    assert (
        tasks(lambda: FITS["POPCA, table"](cut(X, SHARDS), None)) <= 4 * SHARDS + 2
    )  # read, columns, counts, table; sums of two
    assert tasks(lambda: FITS["POPCA, matrix-free"](cut(X, SHARDS), None)) <= MOST * SHARDS + MOST


def test_the_bits_do_not_depend_on_threads_or_groups(monkeypatch, tmp_path):
    paths = [str(tmp_path / f"{k}.rows") for k in range(7)]
    for path, part in zip(paths, cut(X, 7), strict=True):
        Observed.from_dense(part).save(path)
    made = []
    for lanes, keep in ((1, True), (3, False), (100, True)):
        monkeypatch.setattr(over, "_lanes", lambda lanes=lanes: lanes)
        made.append(fit_slrm(SLRMRegressor(3, max_iter=3, random_state=0), paths, cut(Y, 7), keep=keep))
    for other in made[1:]:
        np.testing.assert_array_equal(other.coef_, made[0].coef_)
        np.testing.assert_array_equal(other.components_, made[0].components_)


@pytest.mark.parametrize("n", range(1, 40))
def test_sums_of_groups_are_those_of_one_tree(n):
    values = [(np.array([x]),) for x in np.random.default_rng(n).normal(size=n) * 10.0 ** np.arange(n)]
    whole = over.added(values)[0]
    for size in (1, 2, 4, 8, 16, 32):
        groups = [over.added(values[k : k + size]) for k in range(0, n, size)]
        assert over.added(groups)[0] == whole


@pytest.mark.parametrize("lanes", [1, 2, 4, 7, 64])
@pytest.mark.parametrize("n", [1, 3, 4, 7, 16, 100, 1000])
def test_groups_keep_every_thread_busy(n, lanes):
    size = over.group_size(n, lanes)
    groups = math.ceil(n / size)
    longest = min(math.ceil(groups / lanes) * size, n)
    assert size & (size - 1) == 0
    assert longest <= max(1.25 * n / lanes, math.ceil(n / lanes))
    assert lanes > 1 or size >= n


def test_shards_of_dask_go_alone(monkeypatch):
    array = pytest.importorskip("dask.array")
    monkeypatch.setattr(over, "_lanes", lambda: 1)
    parts = over.DaskParts.of(array.from_array(X, chunks=(100, -1)), keep=True)
    assert [len(group.parts) for group in parts._groups] == [1] * 6
    whole = over.DaskParts.of(cut(X, 6), keep=True)
    assert [len(group.parts) for group in whole._groups] == [6]
