"""Threads of BLAS and OpenMP, and of the whole suite: the number of processes, and what is left to `-m slow`."""

import os
import sys
import tracemalloc

import pytest

# One thread each, here and in processes that tests start: on a busy machine threads wait for one another for minutes.
for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# What tests share lies in this folder: here it is on the path already, in processes that tests start by this.
os.environ["PYTHONPATH"] = os.pathsep.join([os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])])


_LEAVES_SLOW = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """The whole suite in two processes, a file in one of them, and without what is marked slow, unless `-n`, `--pdb` or `-m` says otherwise.

    Files that are named run whole, in this process.
    """
    # A worker is told the same arguments: without this it would start two workers of its own, and those two more each.
    whole = config.args_source is config.ArgsSource.TESTPATHS and not hasattr(config, "workerinput")
    config.stash[_LEAVES_SLOW] = whole and not config.option.markexpr
    if (
        whole
        and config.pluginmanager.hasplugin("xdist")
        and not config.option.usepdb
        and config.option.numprocesses is None
    ):
        config.option.numprocesses, config.option.dist = 2, "loadfile"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """A worker of pytest-xdist is told, for it cannot see whether the whole suite was asked for."""
    node.workerinput["leaves_slow"] = node.config.stash[_LEAVES_SLOW]


def pytest_collection_modifyitems(config, items):
    """Leave slow tests out of the whole suite."""
    of_worker = getattr(config, "workerinput", {}).get("leaves_slow", False)
    if of_worker or config.stash.get(_LEAVES_SLOW, False):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """An expected failure keeps its message alone: pytest parses every file of a traceback, half a second with those of scikit-learn."""
    try:
        return (yield)
    except Exception as error:
        if item.get_closest_marker("xfail"):
            error.__traceback__ = error.__cause__ = error.__context__ = None
        raise error


@pytest.fixture(autouse=True)
def _nothing_is_left_open():
    """Else a test is warned of figures, and counts memory, of the tests before it, whichever those are in its process."""
    yield
    tracemalloc.stop()  # which the judge of hostile files leaves on from input to input
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
