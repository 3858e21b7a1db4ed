"""Sentences about an answer of a server: times as they were here, and beside them those that the server tells."""

from collections.abc import Mapping
from typing import Any

from localrun.base.units import ms, percent
from localrun.base.views import ServerLoad


def time_words(stats: Mapping[str, Any]) -> list[str]:
    """The first token and those after it, as far as they were measured; `stats` is a Completion, flat."""
    first, connect = _of(stats, "ttft_ms"), _of(stats, "connect_ms")
    read, queued, written = (_of(stats, name) for name in ("prefill_ms", "queue_ms", "decode_ms"))
    n_tokens, rate = stats.get("completion_tokens") or 0, _of(stats, "decode_tps")
    lines = []
    if first:
        words = f"first token after {ms(first)}"
        if read:
            there = f"{ms(read)} to read the prompt" + (f" and {ms(queued)} in the queue" if queued else "")
            words += (
                f"; the server says {there}: {ms(max(first - read - queued, 0.0))} went by elsewhere, as on the network"
            )
        elif connect:
            words += f", {ms(connect)} of it to connect; the server does not say how long it read"
        lines.append(words)
    if rate and written and n_tokens > 1:
        lines.append(f"a token every {ms(1000 / rate)} as it came here, {ms(written / n_tokens)} by the server's clock")
    return lines


def load_words(load: ServerLoad) -> list[str]:
    """The load of a server, as far as it tells."""
    counts = [(load.running, "answered now"), (load.waiting, "waiting")]
    shares = [(load.cache_used, "of the KV cache in use"), (load.cache_hits, "of all prompt tokens found in it so far")]
    told = [f"{n:,} {words}" for n, words in counts if n is not None]
    return [*told, *(f"{percent(share, 1)} {words}" for share, words in shares if share is not None)]


def _of(stats: Mapping[str, Any], name: str) -> float:
    value = stats.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
