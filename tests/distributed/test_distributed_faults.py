"""A worker killed in the middle of a fit, and a fit broken off: the same bits, and nothing left behind."""

import copy
import gc
import os
import signal
import time
import warnings

import numpy as np
import pytest
from test_distributed_slrm import cut, problem

from lacunar.distributed import fit_popca, fit_slrm
from lacunar.lowrank import POPCA, SLRMRegressor

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def client():
    with (
        warnings.catch_warnings(action="ignore"),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


class AtStep(SLRMRegressor):
    """Does something here, not on a worker, at a step of EM."""

    act = None

    def _progress(self, what):
        return lambda step, _: AtStep.act() if step == 3 and AtStep.act else None


def test_a_worker_that_dies_between_steps_is_survived(client):
    X, Y = problem()
    model = AtStep(3, lam1="inf", random_state=0, max_iter=6, tol=0.0)
    alone = SLRMRegressor(3, lam1="inf", random_state=0, max_iter=6, tol=0.0).fit(X, Y)
    whole = fit_slrm(model, cut(X, 6), cut(Y, 6))
    victims = []

    def kill():
        victims.append(next(iter(client.run(os.getpid).values())))
        os.kill(victims[0], signal.SIGKILL)

    AtStep.act = kill
    try:
        survived = fit_slrm(model, cut(X, 6), cut(Y, 6))
    finally:
        AtStep.act = None
    client.wait_for_workers(2, timeout=60)
    assert victims[0] not in client.run(os.getpid).values()
    for name in ("components_", "coef_", "mean_", "scale_", "label_variance_"):
        np.testing.assert_array_equal(getattr(survived, name), getattr(whole, name))
        np.testing.assert_allclose(getattr(survived, name), getattr(alone, name), rtol=1e-9)


def test_refinement_by_processes_is_that_of_one_machine(client):
    X, _ = problem()
    there = fit_popca(POPCA(3, random_state=0), cut(X, 6))
    here = POPCA(3, random_state=0).fit(X)
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-9)


def test_breaking_off_leaves_nothing_behind(client):
    X, Y = problem()
    model = AtStep(3, random_state=0, max_iter=6)
    before = copy.deepcopy(model.__dict__)

    def stop():
        raise KeyboardInterrupt

    AtStep.act = stop
    try:
        fit_slrm(model, cut(X, 6), cut(Y, 6))
    except KeyboardInterrupt as error:
        error.__traceback__ = None
    else:
        raise AssertionError("not interrupted")
    finally:
        AtStep.act = None
    assert model.__dict__ == before
    for _ in range(100):
        gc.collect()
        if not client.futures and not any(client.who_has().values()):
            break
        time.sleep(0.1)
    assert not client.futures
    assert not any(client.who_has().values())
