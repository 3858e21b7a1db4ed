"""The load of an engine, as its page of metrics tells it in the text format of Prometheus."""

import math
import re
from collections.abc import Callable, Sequence

from localrun.base.dataclass import dataclass
from localrun.base.views import ServerLoad
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.engines import LLAMA_CPP, LOCALRUN, SGLANG, VLLM, RemoteEngine
from localrun.client.remote.pages import root_text

_SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)", re.ASCII)
_MOST_LINES = 50_000


@dataclass(frozen=True, slots=True)
class _Names:
    """Metrics of an engine: counts of requests, the share of the cache in use, and tokens that were in it, of all."""

    running: Sequence[str]
    waiting: Sequence[str]
    used: Sequence[str] = ()
    hits: Sequence[str] = ()
    queries: Sequence[str] = ()


_NAMES = {
    VLLM.name: _Names(
        ["vllm:num_requests_running"],
        ["vllm:num_requests_waiting"],
        ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"],
        ["vllm:prefix_cache_hits_total"],
        ["vllm:prefix_cache_queries_total"],
    ),
    SGLANG.name: _Names(
        ["sglang:num_running_reqs"],
        ["sglang:num_queue_reqs"],
        ["sglang:token_usage"],
        ["sglang:cached_tokens_total"],
        ["sglang:prompt_tokens_total"],
    ),
    LLAMA_CPP.name: _Names(
        ["llamacpp:requests_processing"],
        ["llamacpp:requests_deferred"],
        ["llamacpp:kv_cache_usage_ratio"],
        ["llamacpp:prompt_tokens_cached_total"],
    ),
    LOCALRUN.name: _Names(
        ['localrun_requests{phase="reading"}', 'localrun_requests{phase="writing"}'],
        ['localrun_requests{phase="queued"}'],
        (),
        ["localrun_cached_tokens_total"],
        ["localrun_prompt_tokens_total"],
    ),
}


def read_load(endpoint: Endpoint, engine: RemoteEngine) -> ServerLoad | None:
    """The load now; None where the engine has no page of metrics, or does not show it."""
    names = _NAMES.get(engine.name)
    samples = _samples(root_text(endpoint, "/metrics")) if names else {}
    if names is None or not samples:
        return None
    hits = _of(samples, names.hits, sum)
    queries = _of(samples, names.queries, sum)
    if engine == LLAMA_CPP and hits is not None:  # which counts those that it computed
        queries = hits + (_of(samples, ["llamacpp:prompt_tokens_total"], sum) or 0.0)
    return ServerLoad(
        running=_whole(_of(samples, names.running, sum)),
        waiting=_whole(_of(samples, names.waiting, sum)),
        cache_used=_of(samples, names.used, _mean),
        cache_hits=hits / queries if hits is not None and queries else None,
    )


def _samples(text: str) -> dict[str, list[float]]:
    """The values of each metric, under its name and under its name with labels."""
    found: dict[str, list[float]] = {}
    for line in text.split("\n", _MOST_LINES)[:_MOST_LINES]:
        match = _SAMPLE.match(line)
        value = _number(match["value"]) if match else None
        if match and value is not None:
            found.setdefault(match["name"], []).append(value)
            if match["labels"]:
                found.setdefault(f"{match['name']}{{{match['labels']}}}", []).append(value)
    return found


def _of(samples: dict[str, list[float]], names: Sequence[str], merged: Callable[[list[float]], float]) -> float | None:
    """The value under these names, over all engines of a server; None where there is none."""
    values = [value for name in names for value in samples.get(name, ())]
    return merged(values) if values else None


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value < 1e18 else None
