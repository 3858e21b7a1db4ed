"""GET /metrics: counters of the server in the text format of Prometheus."""

from collections import Counter
from collections.abc import Iterable

from localrun.server.monitor.live import LiveRequest

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HELP = {
    "requests_total": "requests that are over, by address and outcome",
    "prompt_tokens_total": "tokens of prompts",
    "cached_tokens_total": "tokens of prompts that were in the cache",
    "restored_tokens_total": "of these, tokens that came from the disk",
    "computed_tokens_total": "tokens of prompts that were computed",
    "completion_tokens_total": "tokens of answers",
    "cache_breaks_total": "prompts that were not cached to their end, by what had changed",
    "queue_seconds_total": "seconds that requests waited for others",
    "load_seconds_total": "seconds that requests waited for a model",
    "prefill_seconds_total": "seconds that prompts were read",
    "decode_seconds_total": "seconds that answers were written",
}


class Metrics:
    """Counts requests as they end."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()

    def count(self, live: LiveRequest) -> None:
        """Count a request that is over."""
        self._add("requests_total", 1, path=live.protocol, outcome=live.outcome or "failed")
        if live.cache_break:
            self._add("cache_breaks_total", 1, kind=live.cache_break)
        self._add("load_seconds_total", live.load_ms / 1000)
        if (completion := live.completion) is None:
            return
        cache, timings = completion.cache, completion.timings
        self._add("prompt_tokens_total", completion.prompt_tokens or 0)
        self._add("cached_tokens_total", completion.cached_tokens or 0)
        self._add("restored_tokens_total", cache.restored_tokens)
        self._add("computed_tokens_total", cache.computed_tokens or 0)
        self._add("completion_tokens_total", completion.completion_tokens)
        self._add("queue_seconds_total", timings.queue_ms / 1000)
        self._add("prefill_seconds_total", timings.prefill_ms / 1000)
        self._add("decode_seconds_total", timings.decode_ms / 1000)

    def text(self, under_way: Iterable[LiveRequest]) -> str:
        """All counts, and the requests under way by phase."""
        lines = []
        for name, what in _HELP.items():
            lines += [f"# HELP localrun_{name} {what}", f"# TYPE localrun_{name} counter"]
            counts = {labels: value for (counted, labels), value in self._counts.items() if counted == name}
            lines += [f"localrun_{name}{_labels(labels)} {value:g}" for labels, value in sorted(counts.items())]
        phases = Counter(live.phase for live in under_way)
        lines += ["# HELP localrun_requests requests under way, by phase", "# TYPE localrun_requests gauge"]
        lines += [f"localrun_requests{_labels((('phase', phase),))} {n}" for phase, n in sorted(phases.items())]
        return "\n".join(lines) + "\n"

    def _add(self, name: str, value: float, **labels: str) -> None:
        self._counts[name, tuple(sorted(labels.items()))] += value  # type: ignore[assignment]


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inner}}}" if inner else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
