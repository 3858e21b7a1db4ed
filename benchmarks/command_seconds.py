"""CPU seconds of whole commands, beside another checkout of localrun: starting, importing, answering one token.

    python -m benchmarks.command_seconds OTHER [--rounds 9] [--model MODEL.gguf]

Each has its own .venv with its library compiled. They take turns, every other round the other way round. CPU seconds,
of all threads, hardly grow where other programs compute beside them. Printed are the medians and the median of the
ratios of rounds; more than 1 means that this checkout takes less.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from benchmarks import ROOT
from benchmarks.installed import installed
from benchmarks.kv_quality import machine

COMMANDS = (
    "--version",
    "config",
    "list",
    "show builtin",
    "fit builtin",
)
ANSWER = "run --no-stdin --temperature 0 --max-tokens 1 --model {} hello"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--model", help="measures an answer of this one alone")
    asked = parser.parse_args()
    commands = [ANSWER.format(asked.model)] if asked.model else [*COMMANDS, ANSWER.format("builtin")]
    print(f"{machine()}, {asked.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        homes = Path(folder) / "other", Path(folder) / "this"
        pythons = [checkout.resolve() / ".venv/bin/python" for checkout in (asked.other, ROOT)]
        for command in commands:
            compare(command, list(zip(pythons, homes, strict=True)), asked.rounds)


def compare(command: str, checkouts: list[tuple[Path, Path]], n_rounds: int) -> None:
    rounds = []
    for number in range(n_rounds + 1):
        order = checkouts if number % 2 else checkouts[::-1]
        seconds = {python: cpu_seconds(python, home, command) for python, home in order}
        rounds.append([seconds[python] for python, _ in checkouts])
    theirs, ours = zip(*rounds[1:], strict=True)  # the first warms up, and compiles the modules
    ratio = statistics.median(other / this for other, this in rounds[1:])
    name = command.split(" --", maxsplit=1)[0]
    print(f"{name:14} {statistics.median(theirs):.3f} → {statistics.median(ours):.3f} s, ratio {ratio:.3f}", flush=True)


def cpu_seconds(python: Path, home: Path, command: str) -> float:
    """CPU seconds of a process, in a home of its own."""
    called = [str(python), "-P", "-m", "localrun", *command.split()]
    env = {**installed(), "LOCALRUN_HOME": str(home)}
    with subprocess.Popen(called, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"localrun {command} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
