"""Short probes of the machine's peak rates, and whether other programs were busy meanwhile. Torch-free."""

import time
from collections.abc import Iterator

import psutil

from localrun.backends.interface import Backend
from localrun.base.dataclass import dataclass
from localrun.base.processors import usual_threads

IDLE_ROUNDS, MOST_ROUNDS = 3, 8  # of about a tenth of a second; more while others compute
MOST_SECONDS = 2.0  # after which no other round begins: where many programs compute, each takes seconds
OTHERS = 0.15  # of all processors that others may use while a machine counts as idle


@dataclass(frozen=True, slots=True)
class Probed:
    """Bytes and multiply-adds per second; `idle`: no other program was busy."""

    read_bytes: float
    macs: float
    wide_macs: float
    idle: bool


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds of wall time, of busy processors, and of this process."""

    wall: float
    busy: float
    own: float

    @classmethod
    def now(cls) -> "Clock":
        times, own = psutil.cpu_times(), psutil.Process().cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "guest", 0.0)
        return cls(time.perf_counter(), sum(times) - idle, own.user + own.system)


def others(before: Clock, after: Clock, n_processors: int) -> float:
    """Share of all processors that other programs used between two clocks."""
    spent = (after.busy - before.busy) - (after.own - before.own)
    return max(0.0, spent) / max((after.wall - before.wall) * n_processors, 1e-9)


def probe(backend: Backend) -> Probed:
    """Measure some rounds where a backend computes, and return the best rates, of idle rounds if there were any."""
    return best_of(_rounds(backend))


def best_of(rounds: Iterator[Probed]) -> Probed:
    """The highest of each figure, of idle rounds where there are some; a few of those are enough."""
    taken: list[Probed] = []
    until = time.monotonic() + MOST_SECONDS
    for one in rounds:
        taken.append(one)
        enough = sum(each.idle for each in taken) >= IDLE_ROUNDS or len(taken) >= MOST_ROUNDS
        if enough or time.monotonic() > until:
            break
    good = [one for one in taken if one.idle] or taken
    read, macs, wide = (max(f) for f in zip(*((one.read_bytes, one.macs, one.wide_macs) for one in good), strict=True))
    return Probed(read, macs, wide, good[0].idle)


def _rounds(backend: Backend) -> Iterator[Probed]:
    """Measure rounds without end."""
    n_processors = psutil.cpu_count() or 1
    limits = backend.limit_probe(usual_threads())
    try:
        while True:
            before = Clock.now()
            found = limits.measure()
            company = others(before, Clock.now(), n_processors)
            yield Probed(1e9 * found.read_gbps, 1e9 * found.int8_gmacs, 1e9 * found.bf16_gmacs, company < OTHERS)
    finally:
        limits.close()
