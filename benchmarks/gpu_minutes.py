"""The truth of an NVIDIA GPU in a few minutes: everything that only a GPU can show, what matters most first.

    python -m benchmarks.gpu_minutes [--seconds 540] [--save FOLDER] [PART …]

Parts, each a process with a limit of its own; what fails keeps none of the others from running:

    card      nvidia-smi
    cases     versions, all kernels compiled, every case of the self-test with its error
    decode    a token of an 8B, in one graph, kind by kind of launch: five bottlenecks by name
    bits      the emulator's own tests, on the GPU
    kernels   GB/s and errors of single kernels, those of one row first
    models    tokens a second of an 8B, a 1B, a 14B, a 4B with recurrent layers and two mixtures
    engine    chats on the GPU beside the CPU
    memcheck  the cases under compute-sanitizer

Lines go to FOLDER/log.txt and rows to FOLDER/rows.jsonl as soon as they are known, so a run that is cut short keeps
what it had. With LOCALRUN_EMULATE_CUDA=1 it runs on the emulator, to try the script: speeds mean nothing there.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Timer
from typing import TextIO

from benchmarks import ROOT

EMULATE = "LOCALRUN_EMULATE_CUDA"
LEAST = 15  # seconds that are worth starting a part for
GRACE = 5  # seconds between asking a part to end and ending it
TESTS = (
    *("tests/kernels/cuda/test_linear.py", "tests/kernels/cuda/test_norm.py", "tests/kernels/gpu/test_attention.py"),
    *("tests/kernels/gpu/test_rope_append.py", "tests/kernels/gpu/test_logits.py"),
    *("tests/kernels/gpu/test_elementwise.py", "tests/backends/cuda/test_models.py"),
    "tests/backends/cuda/test_bulk.py",
)
PYTEST = (sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider")
MIRRORED = (*PYTEST, "-p", "localrun_testing.gpu_mirror", "-k", "not metal and not Metal", "-m", "not slow")
CHECK = (sys.executable, "-m", "benchmarks.gpu_check", "--anyway")
CASES = (sys.executable, "-m", "benchmarks.gpu_cases")
FACTS = "--query-gpu=name,driver_version,memory.total,memory.used,clocks.sm,clocks.mem"
PARTS: Mapping[str, tuple[int, tuple[str, ...]]] = {  # seconds at most, and the command
    "card": (15, ("nvidia-smi", FACTS, "--format=csv")),
    "cases": (90, (*CASES, "--save", "{folder}")),
    "decode": (100, (*CHECK, "--only", "decode", "--save", "{folder}/decode")),
    "bits": (150, (*MIRRORED, "-n", str(min(6, os.cpu_count() or 1)), *TESTS)),
    "kernels": (110, (*CHECK, "--only", "kernels", "--save", "{folder}/kernels")),
    "models": (130, (*CHECK, "--only", "models", "--save", "{folder}/models")),
    "engine": (80, (*PYTEST, "tests/engine/test_gpu.py", "-k", "not pretended")),
    "memcheck": (90, ("compute-sanitizer", "--tool", "memcheck", *CASES)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="some of them, in this order; all by default")
    parser.add_argument("--seconds", type=float, default=540.0, help="for all parts together")
    parser.add_argument("--save", type=Path, help="folder for what is found; a new one by default")
    asked = parser.parse_args()
    if unknown := [name for name in asked.parts if name not in PARTS]:
        parser.error(f"there is no part called {unknown[0]}; there are {', '.join(PARTS)}")
    folder = asked.save or Path(tempfile.mkdtemp(prefix="gpu-minutes-"))
    folder.mkdir(parents=True, exist_ok=True)
    deadline, failed = time.monotonic() + asked.seconds, []
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        for name in asked.parts or PARTS:
            if not run_part(name, folder, log, deadline):
                failed.append(name)
        tell(log, f"== kept in {folder}; failed or cut short: {', '.join(failed) or 'nothing'}")
    sys.exit(1 if failed else 0)


def run_part(name: str, folder: Path, log: TextIO, deadline: float) -> bool:
    """Run a part, its lines shown and kept as they come -> whether it ended well, in time."""
    limit, command = PARTS[name]
    seconds = min(limit, deadline - time.monotonic())
    if seconds < LEAST:
        tell(log, f"== {name}: no time is left")
        return False
    tell(log, f"== {name}, {seconds:.0f} s at most")
    started, text = time.monotonic(), [word.format(folder=folder) for word in command]
    try:
        process = subprocess.Popen(
            text, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    except OSError as error:
        tell(log, f"== {name}: {error}")
        return False
    alarms = (Timer(seconds, process.send_signal, [signal.SIGINT]), Timer(seconds + GRACE, process.kill))
    for alarm in alarms:
        alarm.start()
    assert process.stdout is not None
    for line in process.stdout:
        tell(log, line.rstrip("\n"))
    code = process.wait()
    for alarm in alarms:
        alarm.cancel()
    tell(log, f"== {name}: exit {code} after {time.monotonic() - started:.0f} s")
    return code == 0


def tell(log: TextIO, line: str) -> None:
    print(line, flush=True)
    log.write(f"{line}\n")
    log.flush()


def environment() -> dict[str, str]:
    """For the parts: this checkout's sources, whether it is installed or not."""
    sources = [str(ROOT), str(ROOT / "tui"), str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", "")]
    mirror = {"LOCALRUN_MIRROR": "copy"} if os.environ.get(EMULATE) == "1" else {}
    return {**os.environ, **mirror, "PYTHONPATH": os.pathsep.join(filter(None, sources)), "PYTHONUNBUFFERED": "1"}


if __name__ == "__main__":
    main()
