"""The commands that measure a GPU run, on the emulated one: what they say of speed means nothing there."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from localrun_testing.emulator.cuda import EmulatedDevice, void

from benchmarks import gpu_minutes
from benchmarks.gpu_cases import errors_told, product_in_little_memory
from benchmarks.gpu_check import step_lines
from benchmarks.gpu_parts import DecodePart, DecodeStep
from benchmarks.gpu_report import ROWS, Report
from localrun.backends.cuda.availability import EMULATE
from localrun.backends.cuda.self_test import CASES
from localrun.backends.cuda.source import file_hashes

ROOT = Path(__file__).parents[3]


def run(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    environment = {**os.environ, EMULATE: "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)


def rows_of(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / ROWS).read_text("utf-8").splitlines()]


@pytest.mark.slow
def test_a_report_has_every_kernel_and_a_model(tmp_path: Path) -> None:
    done = run("gpu_check", "--save", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.json")
    report = json.loads(path.read_text("utf-8"))
    assert report["sources"] == file_hashes()
    assert {row["kernel"] for row in report["kernels"]} == {"linear", "linear in bulk", "attention", "norm", "logits"}
    exact = [row["error"] for row in report["kernels"] if row["kernel"] != "linear in bulk"]
    assert max(exact) < 1e-3
    assert report["bulk_pays"] > 0
    assert "prompts are not read in bulk on sm_80" in done.stdout
    assert report["models"]["tiny"]["decode_tps"] > 0
    assert len([row for row in rows_of(tmp_path) if row["kind"] == "kernel"]) == len(report["kernels"])


def test_a_few_minutes_measure_a_step_part_by_part(tmp_path: Path) -> None:
    done = run("gpu_minutes", "decode", "--save", str(tmp_path))
    assert done.returncode == 0, done.stdout
    (path,) = (tmp_path / "decode").glob("*.json")
    step = json.loads(path.read_text("utf-8"))["decode"]
    counts = {part["kind"].split()[0]: part["count"] for part in step["parts"]}
    assert {"linear", "attend_units", "attend_merge", "rms_norm", "embed"} <= counts.keys()
    assert step["n_launches"] == sum(part["count"] for part in step["parts"])
    log = (tmp_path / "log.txt").read_text("utf-8")
    assert "bottlenecks, in ms beyond reading the weights: " in log
    assert rows_of(tmp_path / "decode")[0]["kind"] == "limits"


def test_parts_go_on_after_one_that_fails_and_end_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = {"bad": "exit 3", "slow": "echo begun; exec sleep 60", "good": ""}  # which begins at once
    parts = {name: (2 if name == "slow" else 60, ("sh", "-c", line)) for name, line in shell.items()}
    monkeypatch.setattr(gpu_minutes, "PARTS", {**parts, "missing": (60, ("no-such-program",))})
    monkeypatch.setattr(gpu_minutes, "LEAST", 0)
    with (tmp_path / "log.txt").open("a") as log:
        deadline = time.monotonic() + 600
        ended = [gpu_minutes.run_part(name, tmp_path, log, deadline) for name in gpu_minutes.PARTS]
        assert not gpu_minutes.run_part("good", tmp_path, log, time.monotonic() - 1)
    assert ended == [False, False, True, False]
    text = (tmp_path / "log.txt").read_text()
    assert "== bad: exit 3" in text
    assert "begun" in text
    assert "== good: no time is left" in text


def test_tests_of_the_emulator_run_on_copies_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """In another process, as their part does, and in those that it begins."""
    monkeypatch.setenv(EMULATE, "1")
    command = (*gpu_minutes.MIRRORED, "-n", "1", "tests/kernels/cuda/test_norm.py")
    done = subprocess.run(command, cwd=ROOT, env=gpu_minutes.environment(), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout


def test_what_is_cut_short_keeps_its_rows(tmp_path: Path) -> None:
    report = Report(tmp_path)
    report.row("kernel", "one", error=1e-6)
    assert report.attempt("a part", lambda: 1 // 0) is None
    assert [row["kind"] for row in rows_of(tmp_path)] == ["kernel", "failed"]


def test_bottlenecks_are_what_takes_longer_than_reading_its_weights() -> None:
    parts = (DecodePart("linear", 4, 4e-3, 3_900_000_000), DecodePart("norm", 8, 2e-3, 0))
    step = DecodeStep(seconds=9e-3, asked=1e-3, graph=6e-3, n_launches=12, weight_bytes=3_900_000_000, parts=parts)
    *lines, last = step_lines("8B", step, copy_gbps=1000.0)
    assert "9.00 ms a token, 43% of copy" in lines[0]
    assert last.endswith("beyond the graph (3.00 ms), norm (2.00 ms), asking for launches (1.00 ms), linear (0.10 ms)")


@pytest.mark.parametrize(("change", "said"), [(0.0, "same bits"), (1.0, "OTHER BITS")])
def test_products_are_held_against_those_in_little_memory(
    change: float, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[torch.Tensor] = []

    def product(_: object, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> Callable[[], None]:
        made.append(out)
        return lambda: void(out.copy_(a.float() @ b.float().T + change * len(made)))

    monkeypatch.setattr(EmulatedDevice, "bf16_product", product)
    product_in_little_memory(Report(tmp_path), EmulatedDevice())
    assert [row["said"] for row in rows_of(tmp_path)] == [said]


def test_errors_of_cases_that_pass_are_told() -> None:
    with errors_told() as errors:
        for case in ("gates", "linear of few", "attention of floats"):
            assert CASES[case](EmulatedDevice()) == ""
    named = [error.split()[0] for error in errors]
    assert named[:3] == ["sigmoid", "gelu", "scale"]
    assert {"Q4_K", "Q6_K"} <= {*named}
    assert named[-1] == "attention"
