"""BLAS on one thread, here and in processes that tests start: on a busy machine its threads wait for one another for minutes."""

import os

for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
