"""How fast this machine moves memory and multiplies: measured once in a fraction of a second, then remembered.

Measured by the native library's own threads where there is one, else by numpy: what will compute is what is measured.
"""

import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

from localrun.base.paths import folder, writable_folder
from localrun.fit.machine import cpu_limit
from localrun.ops.library import load_library
from localrun.ops.limits import LimitProbe

FILE_NAME = "rates.json"
KEPT_SECONDS = 86400.0
READ_SHARE, MAC_SHARE = 0.7, 0.4  # of the peak that is reached in practice
_ROUNDS = 5
_READ_BYTES = 64 << 20  # a thread; more than a cache holds
_SIDE = 1024  # of the matrices that are multiplied


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes a second read from memory by all cores, and multiply-adds a second, of 8-bit and of wider numbers."""

    read_bytes: float
    macs: float
    wide_macs: float = 0.0  # 0: not measured


def machine_rates() -> Rates:
    """What was measured on this machine within a day, or what is measured now (about a second).

    Only interference makes a machine slower than it is, so of two measurements the faster one counts.
    """
    key = _key()
    known, measured_at = _known(key)
    if known and 0 <= time.time() - measured_at < KEPT_SECONDS:
        return known
    rates = measure_rates()
    if known:
        rates = Rates(*map(max, astuple(rates), astuple(known)))
    home = writable_folder("cache")
    if home is not None:
        with suppress(OSError), tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=home, delete=False) as file:
            json.dump({key: {**asdict(rates), "measured_at": time.time()}}, file)
            file.close()
            os.replace(file.name, home / FILE_NAME)
    return rates


def known_rates() -> Rates | None:
    """What was ever measured on this machine; nothing is measured now."""
    return _known(_key())[0]


def _key() -> str:
    library = load_library()
    return f"{platform.node()} {platform.machine()} {cpu_limit()} {library.isa if library else 'numpy'}"


def _known(key: str) -> tuple[Rates | None, float]:
    home = folder("cache")
    return _read(home / FILE_NAME, key) if home else (None, 0.0)


def _read(path: Path, key: str) -> tuple[Rates | None, float]:
    """What a file says of this machine, and when it was measured; a file that is no such file says nothing."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(path.read_text("utf-8"))[key]
        rates = Rates(float(known["read_bytes"]), float(known["macs"]), float(known.get("wide_macs", 0.0)))
        if rates.read_bytes > 0 and rates.macs > 0:
            return rates, float(known["measured_at"])
    return None, 0.0


def measure_rates() -> Rates:
    """Measure now: the best of a few short runs, as only interference makes one slower."""
    return _measure_native() if load_library() else _measure_numpy()


def _measure_native() -> Rates:
    probe = LimitProbe(cpu_limit())
    try:
        limits = [probe.measure() for _ in range(_ROUNDS)]
    finally:
        probe.close()
    best = (max(figures) for figures in zip(*((m.read_gbps, m.int8_gmacs, m.bf16_gmacs) for m in limits), strict=True))
    return Rates(*(1e9 * figure for figure in best))


def _measure_numpy() -> Rates:
    import numpy as np

    n_threads = cpu_limit()
    blocks = [np.ones(_READ_BYTES // 4, np.float32) for _ in range(n_threads)]
    matrix = np.ones((_SIDE, _SIDE), np.float32)
    with ThreadPoolExecutor(n_threads) as pool:
        read = _best(lambda: list(pool.map(np.max, blocks)))
    multiply = _best(lambda: matrix @ matrix)
    return Rates(n_threads * _READ_BYTES / read, _SIDE**3 / multiply, _SIDE**3 / multiply)


def _best(run: Callable[[], object]) -> float:
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return max(min(seconds), 1e-9)
