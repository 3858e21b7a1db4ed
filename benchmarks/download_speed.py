"""How fast `localrun pull` downloads beside curl: the same file from the same server on this machine, in turns.

    python -m benchmarks.download_speed [--mib 256 1024] [--rate 0 30 100 300] [--rounds 5] [--folder DIR]

The server is a process of its own that sends straight from the page cache; rate 0 is as fast as it can, else it is so
many MB/s over all connections together. All end with the file in the page cache, with --sync on the disk. localrun has
verified the sha256 by then and curl nothing, so curl with openssl stands beside it. Seconds are medians; a ratio is
the median over the rounds of the other's time by localrun's in the same round: above 1, localrun is faster.
"""

import argparse
import hashlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import ROOT
from localrun.hub.downloads.download import download
from localrun.hub.downloads.partial import write_out
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote.api import read_repo

Way = Callable[[str, Path], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--rate", type=float, nargs="+", default=[0.0], help="MB/s of the server; 0 for no limit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sync", action="store_true", help="wait for the disk, too")
    parser.add_argument("--folder", help="where files go")
    options = parser.parse_args()
    ways = {name: synced(way) for name, way in WAYS.items()} if options.sync else WAYS
    print(
        f"| MiB | server, MB/s | seconds of {' | '.join(ways)} | {' | '.join(f'÷ {name}' for name in list(ways)[1:])} |"
    )
    print("|" + "---|" * (1 + 2 * len(ways)))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for mib in options.mib:
            source = Path(folder) / "source"
            source.write_bytes(b"".join(random.Random(seed).randbytes(1 << 20) for seed in range(mib)))
            for rate in options.rate:
                with serving(source, rate) as url:
                    times = take_turns(ways, url, Path(folder) / "place", options.rounds)
                cells = [f"{mib}", f"{rate:g}" if rate else "no limit", *seconds_and_ratios(times)]
                print(f"| {' | '.join(cells)} |", flush=True)


def take_turns(ways: dict[str, Way], url: str, place: Path, rounds: int) -> list[list[float]]:
    """Seconds of each way in each round; the order turns round from one to the next."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in sorted(ways, reverse=bool(number % 2)):
            times[name].append(seconds(ways[name], url, place))
    return list(times.values())


def seconds(way: Way, url: str, place: Path) -> float:
    """Done twice, timed once: where memory is only lent to a virtual machine, the first to use it pays dearly."""
    elapsed = 0.0
    for _ in range(2):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        os.sync()
        started = time.perf_counter()
        way(url, place)
        elapsed = time.perf_counter() - started
    return elapsed


def seconds_and_ratios(times: list[list[float]]) -> list[str]:
    ours, *others = times
    ratios = [statistics.median(theirs / mine for mine, theirs in zip(ours, other, strict=True)) for other in others]
    return [*(f"{statistics.median(each):.3f}" for each in times), *(f"{ratio:.2f}" for ratio in ratios)]


def ours(url: str, place: Path) -> None:
    http = Http(Access(url, cache=place))
    repo = read_repo(http, "a/b")
    download(http, repo, repo.files)


def curl(url: str, place: Path) -> None:
    target, source = place / "x.gguf", f"{url}/a/b/resolve/main/x.gguf"
    subprocess.run(["curl", "--silent", "--fail", "--location", "--output", target, source], check=True)


def checked_curl(url: str, place: Path) -> None:
    curl(url, place)
    subprocess.run(["openssl", "dgst", "-sha256", place / "x.gguf"], check=True, stdout=subprocess.DEVNULL)


def synced(way: Way) -> Way:
    def both(url: str, place: Path) -> None:
        way(url, place)
        for path in place.rglob("*"):
            if path.is_file() and not path.is_symlink():
                write_out(path)

    return both


WAYS: dict[str, Way] = {"localrun": ours, "curl": curl, "curl && openssl sha256": checked_curl}


@contextmanager
def serving(source: Path, rate: float) -> Iterator[str]:
    sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
    command = [sys.executable, str(ROOT / "benchmarks" / "file_server.py"), str(source), sha256]
    if rate:
        command += ["--rate", str(rate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
