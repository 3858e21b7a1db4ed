"""The command that measures a Mac runs, on the emulated one: what it says of speed means nothing there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from localrun.backends.metal.availability import EMULATE
from localrun.backends.metal.source import KERNELS

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_a_report_has_every_kernel_and_a_model(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.gpu_check", "--save", str(tmp_path)]
    environment = {**os.environ, EMULATE: "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.iterdir()
    report = json.loads(path.read_text("utf-8"))
    assert (report["platform"], report["arch"]) == ("Metal", "Apple7")
    assert report["sources"] == KERNELS.file_hashes()
    assert {row["kernel"] for row in report["kernels"]} == {"linear", "attention", "norm", "logits"}
    assert max(row["error"] for row in report["kernels"]) < 1e-5
    assert report["models"]["tiny"]["batch_tps"] > 0
