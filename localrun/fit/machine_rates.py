"""Rates of this machine, measured once and stored in a file."""

import platform
import time
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from localrun.backends.interface import Backend
from localrun.backends.registry import usual_backend
from localrun.base.events import Completion
from localrun.base.paths import folder, writable_folder
from localrun.base.processors import cpu_name, usual_threads
from localrun.base.state_file import change_state, read_state
from localrun.fit.probe import Probed, probe
from localrun.fit.rates import ENCODE, Rates

FILE_NAME = "machine.json"
IDLE_SECONDS, BUSY_SECONDS = 30 * 86400.0, 600.0  # that figures hold: taken while others computed they may be too low
GAIN = 1.02  # less is not worth a write
PROBE = 2  # raised when what is measured changes: older figures are left alone then


def machine_rates(refresh: bool = False, backend: Backend | None = None) -> Rates:
    """Rates of this machine where `backend` computes, by default the usual one; measured now where they are unknown,
    old, or measured beside other programs."""
    backend = backend or usual_backend()
    known, measured_at = _known(backend)
    age = time.time() - measured_at
    if known and not refresh and 0 <= age < (IDLE_SECONDS if known.idle else BUSY_SECONDS):
        return known
    found = _rates(probe(backend))
    if known and known.idle and age > IDLE_SECONDS and found.idle:  # the machine may have changed
        return _keep(backend, replace(found, reached=known.reached))
    return _keep(backend, known.better(found) if known else found)


def known_rates(backend: Backend | None = None) -> Rates | None:
    """Stored rates of this machine where `backend` computes, by default the usual one, without measuring."""
    return _known(backend or usual_backend())[0]


def note_limits(found: Probed) -> None:
    """Store rates that were measured for another purpose, where they are higher."""
    backend = usual_backend()
    known, measured_at = _known(backend)
    if known is None:
        _keep(backend, _rates(found))
    else:
        _keep(backend, known.better(_rates(found)), None if found.idle else measured_at)


def learn(answer: Completion, backend: Backend | None = None) -> None:
    """Store the speed of an answer that `backend` computed, by default the usual one, where it is the fastest so far
    and stored rates exist to compare it with."""
    backend = backend or usual_backend()
    known, measured_at = _known(backend)
    if known is None or answer.work is None:
        return
    work, kv_bytes = answer.work, answer.memory.kv_bytes or 0
    n_tokens = answer.cache.computed_tokens or 0
    seen = (answer.cached_tokens or 0) + n_tokens / 2
    better = known.after("prefill", work, n_tokens, answer.timings.prefill_ms / 1000, seen=seen)
    better = better.after("decode", work, answer.n_steps, answer.timings.decode_ms / 1000, kv_bytes)
    before, after = _figures(known), _figures(better)
    if any(value > GAIN * before.get(name, 0.0) for name, value in after.items()):
        _keep(backend, better, measured_at)


def learn_encoding(tflop: float, seconds: float, backend: Backend) -> None:
    """Store how fast an image was encoded, where that is the fastest so far and there are stored rates."""
    known, measured_at = _known(backend)
    if known is None:
        return
    better = known.after_encoding(tflop, seconds)
    if better.reached.get(ENCODE, 0.0) > GAIN * known.reached.get(ENCODE, 0.0):
        _keep(backend, better, measured_at)


def _figures(rates: Rates) -> dict[str, float]:
    return {"read": rates.read_bytes, "macs": rates.macs, "wide": rates.wide_macs, **rates.reached}


def _rates(found: Probed) -> Rates:
    return Rates(found.read_bytes, found.macs, found.wide_macs, found.idle)


def _key(backend: Backend) -> str:
    details = backend.details()
    computes = details.get("isa") or details.get("device") or "numpy"
    driver = f" by driver {details['driver']}" if details.get("driver") else ""
    return f"{cpu_name()}, {platform.machine()}, {usual_threads()} threads, {computes}{driver}, probe {PROBE}"


def _known(backend: Backend) -> tuple[Rates | None, float]:
    """Stored rates and the time of their measurement; None for a missing or malformed file."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        known = read_machine()[_key(backend)]
        read, macs, wide = (float(known[name]) for name in ("read_bytes", "macs", "wide_macs"))
        reached = {str(name): float(share) for name, share in known["reached"].items()}
        if read > 0 and macs > 0 and wide >= 0 and all(0 < share <= 1 for share in reached.values()):
            return Rates(read, macs, wide, bool(known["idle"]), reached), float(known["measured_at"])
    return None, 0.0


def _keep(backend: Backend, rates: Rates, measured_at: float | None = None) -> Rates:
    write_machine(_key(backend), {**asdict(rates), "measured_at": time.time() if measured_at is None else measured_at})
    return rates


def read_machine() -> dict[str, Any]:
    """All rows of the file, one per machine, since several may share a home folder; empty without a file."""
    home = folder("cache")
    return read_state(home / FILE_NAME) if home is not None else {}


def write_machine(key: str, row: dict[str, Any]) -> None:
    """Store one machine's row atomically, since another process may read or write at the same time."""
    home = writable_folder("cache")
    if home is not None:
        change_state(home / FILE_NAME, lambda rows: {**rows, key: row})
