"""From starting the program to its first token, beside llama.cpp: whole processes, the file in the page cache.

    python -m benchmarks.cold_start MODEL.gguf [--rounds 7]

localrun is its command line as a user calls it (Python, numpy, the chat template and all): as it starts for the first
time, when it packs the weights, and from then on, when it finds them packed. llama.cpp is its library driven by a few
lines of Python, so it has no such start of its own. Printed are medians and those of the differences.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.installed import installed
from benchmarks.kv_quality import machine
from benchmarks.side_by_side import Engine
from localrun.base.processors import usual_threads

PROMPT = "one two three four"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        first, later = Path(folder) / "first", Path(folder) / "later"
        first.mkdir()
        (first / "config.toml").write_text("packed_weights = 0\n")
        pack_all(asked.model, later)
        times = [
            (localrun_seconds(asked.model, first), localrun_seconds(asked.model, later), llama_cpp_seconds(asked.model))
            for _ in range(asked.rounds + 1)
        ][1:]  # the first warms up
    print(f"{asked.model.name}, {usual_threads()} threads, {machine()}")
    print(f"llama.cpp {statistics.median(peer for *_, peer in times):.2f} s")
    for name, place in (("localrun, weights to pack", 0), ("localrun, packed before", 1)):
        late = statistics.median(row[place] - row[2] for row in times)
        print(f"{name} {statistics.median(row[place] for row in times):.2f} s, later by {late:.2f} s")


def pack_all(model: Path, home: Path, python: Path = Path(sys.executable)) -> None:
    """Start until all weights are there: each start goes on where the one before ended."""
    n_before, n = -1, 0
    while n != n_before:
        localrun_seconds(model, home, python)
        n_before, n = n, len(list(home.glob("cache/weights/*/*.packed")))


def localrun_seconds(model: Path, home: Path, python: Path = Path(sys.executable)) -> float:
    """To the first byte of an answer; returns when the process has ended."""
    options = ["--model", str(model), "--max-tokens", "1", "--temperature", "0", "--no-stdin"]
    command = [str(python), "-P", "-m", "localrun", "run", *options, PROMPT]
    env = {**installed(), "LOCALRUN_HOME": str(home)}
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0, env=env) as process:
        assert process.stdout is not None
        if not process.stdout.read(1):
            raise SystemExit("localrun did not answer")
        return time.perf_counter() - started


def llama_cpp_seconds(model: Path) -> float:
    """Four tokens, the logits of the last; the time ends with the answer, not with the process."""
    started = time.perf_counter()
    engine = Engine("llama.cpp", path=str(model), threads=usual_threads(), ctx=512, batch=1, flash=True)
    engine.ask(measure={"kind": "prefill", "n": 4, "depth": 0, "batch": 1})
    elapsed = time.perf_counter() - started
    engine.close()
    return elapsed


if __name__ == "__main__":
    main()
