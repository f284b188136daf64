"""One answer, whatever instruction set LACUNAR_ISA names: every table of kernels, in processes of their own."""

import io
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lacunar import _core

# One array for each table of pointers in cpp/lib/parallel/dispatch.cpp that its own tests do not compare already.
CODE = """
import contextlib, sys
import numpy as np
from lacunar import Observed, _core, show_config
from lacunar.completion import Kernel, OnlineMatrixClassifier
from lacunar.karma.solvers import OnlineModel, solve_crammer_singer, solve_dual
from lacunar.kernels import KernelForm, karma_kernel
from lacunar.lowrank import POPCA
from lacunar.lowrank import GROUSE, PETRELS

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
rows, basis = Observed.from_dense(np.nan_to_num(X)), rng.normal(size=(37, 21))
parts = np.empty((150, 21)), np.empty(150), np.empty((150, 231))
_core.latent_rows(rows.indptr, rows.indices, rows.values, basis, 0.5, *parts, 1)
made |= dict(zip(("codes", "what is left", "inverses"), parts))
for width in 1, 2, 3, 8, 11:
    v = rng.normal(size=(37, width))
    made[f"products {width}"] = _core.column_gram_product(rows.indptr, rows.indices, rows.values, v, 1)
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
    assert re.search(rf"^instruction set +{re.escape(isa)}$", said, re.MULTILINE), said
    with np.load(io.BytesIO(done.stdout)) as found:
        return dict(found)


@pytest.fixture(scope="module")
def base():
    return answers("base")


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["v3", "v4", "v4+vpopcntdq"])
def test_every_instruction_set_answers_alike(base, isa):
    for name, found in answers(isa).items():
        close = CLOSE.get(name, 1e-8)
        np.testing.assert_allclose(found, base[name], rtol=0, atol=close * np.abs(base[name]).max(), err_msg=name)


# Bits of cpuid's words, from Intel's manual and not from the source: what -march=x86-64-v3 and -v4 let a compiler use.
WORDS = ("leaf1_ecx", "leaf7_ebx", "leaf7_ecx", "extended_ecx", "xcr0")
V3 = [("leaf1_ecx", bit) for bit in (0, 9, 12, 13, 19, 20, 22, 23, 27, 28, 29)]
V3 += [("leaf7_ebx", 3), ("leaf7_ebx", 5), ("leaf7_ebx", 8), ("extended_ecx", 0), ("extended_ecx", 5)]
V4 = [("leaf7_ebx", bit) for bit in (16, 17, 28, 30, 31)]
COUNTING = [("leaf7_ecx", 14)]
YMM, ZMM = [("xcr0", bit) for bit in (1, 2)], [("xcr0", bit) for bit in (5, 6, 7)]


def runs(*bits):
    """The instruction set of a processor with these bits."""
    words = dict.fromkeys(WORDS, 0)
    for word, bit in bits:
        words[word] |= 1 << bit
    return _core.isa_of(**words).partition(",")[0]


def test_a_level_is_entered_with_all_its_features_only():
    haswell = [*V3, *YMM]
    skylake = [*haswell, *V4, *ZMM]
    assert runs() == "base"
    assert runs(*haswell) == "v3"
    for lost in haswell:
        assert runs(*(bit for bit in [*skylake, *COUNTING] if bit != lost)) == "base", lost
    assert runs(*skylake) == "v4"  # no processor before Ice Lake has VPOPCNTDQ
    for lost in [*V4, *ZMM]:
        assert runs(*(bit for bit in [*skylake, *COUNTING] if bit != lost)) == "v3", lost
    assert runs(*skylake, *COUNTING) == "v4+vpopcntdq"


def test_what_is_missing_is_told():
    words = dict.fromkeys(WORDS, 2**64 - 1) | dict.fromkeys(WORDS[:-1], 2**32 - 1)
    assert _core.isa_of(**words | {"xcr0": 7}) == "v3, then lacks zmm registers (not saved by the system)"
    without = words | {"leaf1_ecx": 2**32 - 1 - (1 << 22)}
    assert _core.isa_of(**without) == "base, then lacks movbe"


@pytest.mark.skipif(platform.machine() in ("x86_64", "AMD64"), reason="there are more instruction sets here")
def test_where_one_instruction_set_is_built_nothing_is_missing():
    assert _core.build_info()["instruction set found"] == "base"


def test_show_config_tells_what_was_found_and_what_is_used(capsys):
    from lacunar import show_config

    show_config()
    said = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    used, found = said["instruction set"].strip(), said["instruction set found"].strip()
    assert used == os.environ.get("LACUNAR_ISA") or found.partition(",")[0] == used


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not Path("/proc/cpuinfo").exists(), reason="no /proc/cpuinfo of x86-64"
)
def test_the_system_names_the_features_that_were_found():
    flags = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE).group(1).split())
    found = _core.build_info()["instruction set found"].partition(",")[0]
    v3 = {
        "pni",
        "ssse3",
        "fma",
        "cx16",
        "sse4_1",
        "sse4_2",
        "movbe",
        "popcnt",
        "avx",
        "f16c",
        "bmi1",
        "avx2",
        "bmi2",
        "lahf_lm",
        "abm",
    }
    v4 = {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"}
    levels = [v3, v3 | v4, v3 | v4 | {"avx512_vpopcntdq"}]
    assert found in (
        "base",
        ["base", "v3", "v4", "v4+vpopcntdq"][sum(level <= flags for level in levels)],
    )  # base: built without
