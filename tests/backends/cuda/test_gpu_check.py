"""The command that measures a GPU runs, on the emulated one: what it says of speed means nothing there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from localrun.backends.cuda.availability import EMULATE
from localrun.backends.cuda.source import file_hashes

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_a_report_has_every_kernel_and_a_model(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.gpu_check", "--save", str(tmp_path)]
    environment = {**os.environ, EMULATE: "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.iterdir()
    report = json.loads(path.read_text("utf-8"))
    assert report["sources"] == file_hashes()
    assert {row["kernel"] for row in report["kernels"]} == {"linear", "linear in bulk", "attention", "norm", "logits"}
    exact = [row["error"] for row in report["kernels"] if row["kernel"] != "linear in bulk"]
    assert max(exact) < 1e-3
    assert report["bulk_pays"] > 0
    assert "prompts are not read in bulk on sm_80" in done.stdout
    assert report["models"]["tiny"]["decode_tps"] > 0
