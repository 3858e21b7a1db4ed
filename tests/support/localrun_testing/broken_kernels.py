"""Kernels broken on purpose, and kernels as they are, in processes of their own under sanitizers: who notices what."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

from localrun_testing import REPOSITORY
from localrun_testing.emulator.build import Sanitizer
from localrun_testing.gpu_cases import TEXTS, Name, platform_of

Schedule: TypeAlias = tuple[int, int]  # seed, poison
SCHEDULES: tuple[Schedule, ...] = ((0, 0xFF), (1, 0x00), (2, 0x3C))
WRONG = "wrong result"
_REPORT = re.compile(f"({WRONG}.*|(?:AddressSanitizer|ThreadSanitizer): .*|runtime error: .*|EmulatedFault: .*)")
_RUNTIMES = {"address": "libasan.so", "thread": "libtsan.so"}
_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=66",
    "OPENBLAS_NUM_THREADS": "1",  # ThreadSanitizer does not know how their threads wait
    "OMP_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Mutant:
    """edit: a file of kernels, what is replaced in it, once, and by what. case: of its platform's in gpu_cases.py.

    found: the sanitizers that notice ("": plain runs do), and what the report says, a pattern. schedules: the turns
    that threads take, until one of them shows it.
    """

    what: str
    edit: tuple[str, str, str]
    case: str
    found: dict[Sanitizer, str]
    schedules: tuple[Schedule, ...] = field(default=SCHEDULES[:1])

    @property
    def platform(self) -> Name:
        return platform_of(self.edit[0])

    def text(self) -> str:
        """The broken file."""
        file, old, new = self.edit
        whole = (TEXTS[self.platform].folder() / file).read_text()
        assert old in whole, f"{file} has no {old!r} any more: break it in another way"
        return whole.replace(old, new, 1)

    def report(self, sanitizer: Sanitizer, extra_bits: int | None = None) -> str:
        """What is said of it; empty where nobody notices. extra_bits: of CUDA's tensor cores, see EmulatedDevice."""
        replace = {self.edit[0]: self.text()}
        reports = (report(self.platform, self.case, sanitizer, s, replace, extra_bits) for s in self.schedules)
        return next(filter(None, reports), "")


def report(
    platform: Name,
    case: str,
    sanitizer: Sanitizer,
    schedule: Schedule,
    replace: dict[str, str],
    extra_bits: int | None = None,
) -> str:
    """What comes of a case; empty where it passes and no sanitizer objects."""
    device = {"sanitizer": sanitizer, "seed": schedule[0], "poison": schedule[1], "replace": replace}
    if extra_bits is not None:
        device["extra_bits"] = extra_bits
    told = {"platform": platform, "case": case, "device": device}
    environment = {**os.environ, **_OPTIONS, "PYTHONPATH": str(REPOSITORY / "tests" / "support")}
    if sanitizer:
        environment["LD_PRELOAD"] = str(runtime(sanitizer))
    command = [sys.executable, "-m", "localrun_testing.run_kernel_case"]
    done = subprocess.run(
        command, input=json.dumps(told), capture_output=True, text=True, env=environment, cwd=REPOSITORY, timeout=900
    )
    if done.returncode == 0:
        return ""
    said = _REPORT.search(done.stdout + done.stderr)
    if said:
        return said[0]
    assert done.returncode < 0, done.stdout + done.stderr  # nothing but a crash needs no words
    return f"killed by signal {-done.returncode}"


@cache
def runtime(sanitizer: Sanitizer) -> Path:
    """The library a sanitizer must find loaded before everything else."""
    found = subprocess.check_output(["g++", f"-print-file-name={_RUNTIMES[sanitizer]}"], text=True)
    return Path(found.strip())
