"""How fast `localrun pull` downloads beside curl: the same file, the same server on this machine, in turns.

    python benchmarks/download_speed.py [--mib 256] [--rate 100] [--rounds 3] [--folder /dev/shm]

localrun also verifies the sha256 and waits until the disk has everything; curl does neither, so it is timed alone and
together with `sha256sum` and `sync`. --rate limits the server to so many MB/s over all connections together, as a
network would; without it the disk and the two cores that server and client share are the limit, not the network.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from localrun_testing.fake_hub import FakeHub  # noqa: E402

from localrun.hub.access import Access  # noqa: E402
from localrun.hub.api import read_repo  # noqa: E402
from localrun.hub.download import download  # noqa: E402
from localrun.hub.http import Http  # noqa: E402
from localrun.hub.transfer import CONNECTIONS  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rate", type=float, help="MB/s of the server, over all connections")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where files go; /dev/shm leaves the disk out of it")
    options = parser.parse_args()
    content = b"".join(random.Random(seed).randbytes(1 << 20) for seed in range(options.mib))
    with FakeHub({"a/b": {"x.gguf": content}}) as hub, tempfile.TemporaryDirectory(dir=options.folder) as folder:
        ways = {"localrun": ours, "curl": curl, "curl + sha256sum + sync": checked_curl}
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, way in ways.items():
                if options.rate:
                    hub.bytes_per_second = options.rate * 1e6 / (CONNECTIONS if way is ours else 1)
                times[name].append(timed(way, hub, Path(folder) / "place"))
        report(times, options.mib)


def timed(way: Callable[[FakeHub, Path], None], hub: FakeHub, place: Path) -> float:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    os.sync()
    started = time.perf_counter()
    way(hub, place)
    return time.perf_counter() - started


def ours(hub: FakeHub, place: Path) -> None:
    http = Http(Access(hub.url, cache=place))
    repo = read_repo(http, "a/b")
    download(http, repo, repo.files)


def curl(hub: FakeHub, place: Path) -> None:
    url = f"{hub.url}/a/b/resolve/main/x.gguf"
    subprocess.run(["curl", "--silent", "--fail", "--location", "--output", place / "x.gguf", url], check=True)


def checked_curl(hub: FakeHub, place: Path) -> None:
    curl(hub, place)
    subprocess.run(["sha256sum", place / "x.gguf"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["sync", place / "x.gguf"], check=True)


def report(times: dict[str, list[float]], mib: int) -> None:
    best = {name: min(seconds) for name, seconds in times.items()}
    for name, seconds in times.items():
        ratio = best[name] / best["localrun"]
        print(
            f"{name:26} {mib / best[name]:7.1f} MiB/s best, {mib / statistics.median(seconds):7.1f} median;"
            f" localrun is {ratio:.2f} times as fast"
        )


if __name__ == "__main__":
    main()
