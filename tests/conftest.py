"""Threads of BLAS and OpenMP, and of the whole suite: the number of processes, and what is left to `-m slow`."""

import os
import sys

import pytest

# One thread each, here and in processes that tests start: on a busy machine threads wait for one another for minutes.
for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """The whole suite in two processes, a file in one of them, and without what is marked slow, unless `-n`, `--pdb` or `-m` says otherwise.

    Files that are named run whole, in this process.
    """
    # A worker is told the same arguments: without this it would start two workers of its own, and those two more each.
    whole = config.args_source is config.ArgsSource.TESTPATHS and not hasattr(config, "workerinput")
    if whole and not config.option.markexpr:
        config.option.markexpr = "not slow"
    if (
        whole
        and config.pluginmanager.hasplugin("xdist")
        and not config.option.usepdb
        and config.option.numprocesses is None
    ):
        config.option.numprocesses, config.option.dist = 2, "loadfile"


@pytest.fixture(autouse=True)
def _figures_are_closed():
    """Else a test is warned of figures that the tests before it left open, whichever those are in its process."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
