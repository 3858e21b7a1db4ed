"""From starting the program to its first token, beside llama.cpp: whole processes, the file in the page cache.

    python benchmarks/cold_start.py MODEL.gguf [--rounds 7]

localrun is its command line as a user calls it (Python, numpy, the chat template and all). llama.cpp is its library
driven by a few lines of Python, so it has no such start of its own. Printed are medians and that of the differences.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.installed import installed  # noqa: E402
from benchmarks.kv_quality import machine  # noqa: E402
from benchmarks.side_by_side import Engine  # noqa: E402
from localrun.base.processors import usual_threads  # noqa: E402

PROMPT = "one two three four"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    ours, theirs = [], []
    for number in range(asked.rounds + 1):  # the first warms up
        mine, peers = localrun_seconds(asked.model), llama_cpp_seconds(asked.model)
        if number:
            ours.append(mine)
            theirs.append(peers)
    late = statistics.median(mine - peers for mine, peers in zip(ours, theirs, strict=True))
    print(f"{asked.model.name}, {usual_threads()} threads, {machine()}")
    times = statistics.median(ours), statistics.median(theirs), late
    print("localrun {:.2f} s, llama.cpp {:.2f} s, later by {:.2f} s".format(*times))


def localrun_seconds(model: Path) -> float:
    options = ["--model", str(model), "--max-tokens", "1", "--temperature", "0", "--no-stdin"]
    command = [sys.executable, "-m", "localrun", "run", *options, PROMPT]
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0, env=installed()
    ) as process:
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
