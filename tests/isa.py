"""What a test file computes, by another instruction set: in a process of its own, which reads the variable when it starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lacunar import _core


def decided_by(isa, file):
    """Numbers that `decided` of the test file returns; skipped where processor or build have no such set."""
    if isa == "v3" and _core.build_info()["instruction set"] == "base":
        pytest.skip("this processor or build has no v3")
    file = Path(file)
    command = [sys.executable, "-c", f"import {file.stem} as test; print(test.decided().tolist())"]
    environment = {**os.environ, "LACUNAR_ISA": isa}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=file.parent, check=True)
    return json.loads(done.stdout)
