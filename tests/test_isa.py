"""One answer, whatever instruction set LACUNAR_ISA names: every table of kernels, in processes of their own."""

import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest

# One array for each table of pointers in cpp/lib/dispatch.cpp that its own tests do not compare already.
CODE = """
import contextlib, sys
import numpy as np
from lacunar import Observed, show_config
from lacunar.completion import Kernel, OnlineMatrixClassifier
from lacunar.karma.solvers import OnlineModel, solve_crammer_singer, solve_dual
from lacunar.kernels import KernelForm, karma_kernel
from lacunar.subspace import POPCA
from lacunar.tracking import GROUSE, PETRELS

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 5)) @ rng.normal(size=(5, 37)) + 0.1 * rng.normal(size=(150, 37))
X[rng.random(X.shape) > 0.5] = np.nan
y = np.where(rng.normal(size=150) > 0, 1.0, -1.0)
gram = karma_kernel(X.astype(np.float32), normalize="cosine")
made = {"gram": gram}
made["dual"] = gram @ solve_dual(gram, y, np.ones(150), tol=1e-6, max_iter=10**5).coef
made["classes"] = gram @ solve_crammer_singer(gram, np.arange(150) % 3, 3, np.ones(150), tol=1e-6, max_iter=10**5).coef
for name, dtype in ("online f32", np.float32), ("online f64", np.float64):
    rows = Observed.from_dense(X.astype(dtype))
    form = KernelForm.fit(rows, gamma=2, constant=1.0, normalize="trace")
    model = OnlineModel(form, 37, 1, loss="logistic", rho=1e-2, iterate="last", dtype=dtype, block=64)
    made[name] = model.partial_fit(rows, y[:, None])
made["POPCA"] = np.abs(POPCA(5, random_state=0).fit(X).transform(X))
for tracker in (GROUSE, PETRELS):
    fitted = tracker(5, init="random", random_state=0).partial_fit(X)
    made[tracker.__name__] = fitted.components_.T @ fitted.components_
i, j = rng.integers(0, 20, size=(2, 200))
side = Kernel(np.exp(-0.1 * np.abs(np.subtract.outer(np.arange(20), np.arange(20)))))
made["MEG"] = OnlineMatrixClassifier(side, side).score_stream(i, j, np.where(i > j, 1, -1)).values
np.savez(sys.stdout.buffer, **made)
with contextlib.redirect_stdout(sys.stderr):
    show_config()
"""
CLOSE = {"gram": 1e-5, "dual": 2e-2, "classes": 2e-2, "online f32": 1e-3}  # float32, or up to the solver's gap


def answers(isa):
    environment = {name: value for name, value in os.environ.items() if name != "LACUNAR_ISA"}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment | {"LACUNAR_ISA": isa}, capture_output=True, check=False
    )
    if b"asks for more than this processor" in done.stderr:
        pytest.skip(f"this processor or build has no {isa}")
    said = done.stderr.decode()
    assert done.returncode == 0, said
    assert re.search(rf"^instruction set +{isa}$", said, re.MULTILINE), said
    with np.load(io.BytesIO(done.stdout)) as found:
        return dict(found)


@pytest.fixture(scope="module")
def base():
    return answers("base")


@pytest.mark.parametrize("isa", ["v3", "v4"])
def test_every_instruction_set_answers_alike(base, isa):
    for name, found in answers(isa).items():
        close = CLOSE.get(name, 1e-8)
        np.testing.assert_allclose(found, base[name], rtol=0, atol=close * np.abs(base[name]).max(), err_msg=name)
