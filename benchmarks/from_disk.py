"""Models larger than memory, beside llama.cpp: both in a control group whose limit holds a part of the weights.

    python -m benchmarks.from_disk --folder /tmp/models [--shapes qwen3-30b-a3b-6 llama-3.2-3b] [--type Q4_K_M]
                                   [--share 0.6] [--tokens 24] [--rounds 3] [--threads N]

Needs llama-cpp-python, and the right to make a control group (root, version 1 or 2 with the memory controller). The
limit is `share` of the file and what a program takes besides. llama.cpp maps the file, and must not repack its weights
there: what it repacks does not fit, and the system ends it. localrun maps what does not fit of its packed weights.
Every round begins with nothing of either in the page cache and a prompt of 16 tokens; then `tokens` are decoded.
Printed: tokens a second within the limit and without it, their ratios, what localrun expected, what a token read from
disk, and the anonymous memory that was taken once a chat had filled the context, beside what was planned for that.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.engine_worker import bindings
from benchmarks.synthetic_models import SHAPES, model_file
from localrun.base.processors import usual_threads

GROUPS = Path("/sys/fs/cgroup")
PROGRAM = 450 << 20  # bytes besides the weights: the interpreter, cache and working memory, what is left to others
CTX = 512


@contextlib.contextmanager
def control_group(limit: int) -> Iterator[Path]:
    """A group that may hold so many bytes."""
    first = (GROUPS / "memory").is_dir()
    group = (GROUPS / "memory" if first else GROUPS) / f"localrun-{os.getpid()}"
    group.mkdir()
    try:
        (group / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(limit))
        yield group
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()


def forget(path: Path) -> None:
    """Nothing of the files is in memory any more."""
    for file in [path] if path.is_file() else path.rglob("*.packed"):
        with open(file, "rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def ask(engine: str, path: Path, options: argparse.Namespace, group: Path | None) -> dict[str, Any]:
    """What a process of its own says that loads and decodes, in a group."""
    request = {"path": str(path), "tokens": options.tokens, "threads": options.threads, "repack": group is None}
    command = [sys.executable, __file__, "--worker", engine, "--folder", str(options.folder), json.dumps(request)]
    enter = (lambda: (group / "cgroup.procs").write_text(str(os.getpid()))) if group else None
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=enter)
    if done.returncode:
        raise SystemExit(f"{engine} ended with code {done.returncode}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def work(engine: str, request: dict[str, Any]) -> dict[str, Any]:
    """In the group: load, read a prompt, decode."""
    import psutil

    from benchmarks.engine_worker import LlamaCpp

    n = request["tokens"]
    if engine == "llama.cpp":
        peer = LlamaCpp(request["path"], request["threads"], CTX, 1, True, repack=request["repack"])
        peer.measure("prefill", 16, 0, 1)
        return {"rate": n / peer.measure("decode", n, 16, 1)}
    from localrun.base.request import LoadOptions
    from localrun.diagnose.bench import BenchCase, run_case
    from localrun.engine.generation import GenerationRequest
    from localrun.engine.load import load
    from localrun.engine.sampler import SamplerSettings

    before = psutil.Process().memory_info()
    model = load(LoadOptions(Path(request["path"]), threads=request["threads"], ctx=CTX, kv="f16", prefix_cache=False))
    run_case(model.engine, BenchCase("prefill", 16, 0, 1), True)
    read = psutil.Process().io_counters().read_bytes
    rate = n / run_case(model.engine, BenchCase("decode", n, 16, 1), True)
    read = psutil.Process().io_counters().read_bytes - read
    filling = GenerationRequest(tuple(range(CTX - 72)), 70, frozenset(), SamplerSettings(temperature=0.0), seed=0)
    model.engine.scheduler.cost.rows_per_second = 1e12  # whole chunks, as on a faster machine
    for _ in model.engine.submit(filling):
        pass
    memory, plan = psutil.Process().memory_info(), model.plan
    return {
        "rate": rate,
        "read": read / n,
        "mapped": plan.mapped_bytes,
        "notes": [note for note in model.info.notes if "disk" in note],
        "anonymous": memory.rss - (memory.shared - before.shared),  # less pages of files
        "planned": plan.peak_after(1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "localrun-from-disk")
    parser.add_argument("--shapes", nargs="+", default=["qwen3-30b-a3b-6", "llama-3.2-3b"], choices=SHAPES)
    parser.add_argument("--type", default="Q4_K_M")
    parser.add_argument("--share", type=float, default=0.6)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=usual_threads())
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("request", nargs="?", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["LOCALRUN_HOME"] = str(options.folder / "home")
    if options.worker:
        print(json.dumps(work(options.worker, json.loads(options.request))))
        return
    for shape in options.shapes:
        path = model_file(options.folder, shape, options.type, bindings())
        limit = int(options.share * path.stat().st_size) + PROGRAM
        found: dict[str, list[dict[str, Any]]] = {}
        for _ in range(options.rounds):
            for engine in ("llama.cpp", "localrun"):
                for limited in (True, False):
                    forget(path)
                    forget(options.folder / "home")
                    with control_group(limit) if limited else contextlib.nullcontext() as group:
                        answer = ask(engine, path, options, group)
                    found.setdefault(f"{engine} {'limited' if limited else 'free'}", []).append(answer)
                    print(shape, engine, "limited" if limited else "free", answer, file=sys.stderr, flush=True)
        rates = {name: [one["rate"] for one in answers] for name, answers in found.items()}
        ratio = statistics.median(
            ours / peer for ours, peer in zip(rates["localrun limited"], rates["llama.cpp limited"], strict=True)
        )
        last = found["localrun limited"][-1]
        print(f"{shape} {options.type}, {path.stat().st_size / 2**30:.2f} GiB, limit {limit / 2**30:.2f} GiB")
        for name, values in rates.items():
            print(f"  {name:20} {statistics.median(values):6.2f} tok/s  ({', '.join(f'{v:.2f}' for v in values)})")
        print(f"  localrun / llama.cpp within the limit: {ratio:.2f}")
        print(f"  {last['mapped'] / 2**30:.2f} GiB mapped; {'; '.join(last['notes'])}")
        reads = ", ".join(f"{one['read'] / 2**20:.1f}" for one in found["localrun limited"])
        print(f"  MiB that a token read from the disk: {reads}")
        print(f"  anonymous memory {last['anonymous'] / 2**20:.0f} MiB, planned {last['planned'] / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
