"""Measured facts of one answer that may explain why it was slow. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Literal, TypeVar

from localrun.base.dataclass import dataclass
from localrun.base.events import Meanwhile, Work
from localrun.fit.rates import Rates

Stage = Literal["template", "tokenise", "wait", "restore", "prefill", "decode"]
Record = TypeVar("Record")

PHASES: dict[Stage, str] = {
    "template": "render_ms",
    "tokenise": "tokenize_ms",
    "restore": "restore_ms",
    "prefill": "prefill_ms",
    "decode": "decode_ms",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of an answer.

    Times are in milliseconds, by stage in order; `rates` are those of the machine that answered, None where never
    measured.
    """

    stages: Mapping[Stage, float] = field(default_factory=dict)
    prompt_tokens: int = 0
    cached_tokens: int = 0
    computed_tokens: int = 0
    restored_tokens: int = 0
    completion_tokens: int = 0
    held_tokens: int = 0
    kv_bytes: int = 0
    kv_codec: str = ""
    weights_on_disk: int = 0
    cache_note: str = ""
    work: Work | None = None
    rates: Rates | None = None
    meanwhile: Meanwhile = field(default_factory=Meanwhile)
    accepted_tokens: int = 0  # of completion_tokens

    @property
    def n_steps(self) -> int:
        """Steps that decoded the tokens after the first one: a draft that was right saved one."""
        return self.completion_tokens - self.accepted_tokens - 1


def stages(stats: Mapping[str, Any]) -> dict[Stage, float]:
    """Milliseconds of each stage, from the figures of a Completion.

    `wait` is the rest of the time to the first token.
    """
    order: tuple[Stage, ...] = ("template", "tokenise", "wait", "restore", "prefill", "decode")
    found = {stage: _number(stats.get(name)) for stage, name in PHASES.items()}
    wait = max(0.0, _number(stats.get("ttft_ms")) - sum(took for stage, took in found.items() if stage != "decode"))
    return {stage: wait if stage == "wait" else found[stage] for stage in order}


def first_token_ms(stats: Mapping[str, Any]) -> float:
    """Milliseconds from the request to the first token of an answer with these figures: all stages before decode."""
    return sum(took for stage, took in stages(stats).items() if stage != "decode")


def facts_of(stats: Mapping[str, Any], rates: Rates | None) -> Facts | None:
    """Facts from the figures of an answer, which may be stored plain data. None for the answer of a server."""
    if stats.get("backend") == "remote":
        return None

    def whole(name: str) -> int:
        return int(_number(stats.get(name)))

    return Facts(
        stages=stages(stats),
        prompt_tokens=whole("prompt_tokens"),
        cached_tokens=whole("cached_tokens"),
        computed_tokens=whole("computed_tokens"),
        restored_tokens=whole("restored_tokens"),
        completion_tokens=whole("completion_tokens"),
        accepted_tokens=whole("accepted_tokens"),
        held_tokens=whole("held_tokens"),
        kv_bytes=whole("kv_bytes"),
        kv_codec=str(stats.get("kv_codec") or ""),
        weights_on_disk=whole("mapped_bytes"),
        cache_note=str(stats.get("cache_note") or ""),
        work=_record(Work, stats.get("work")),
        rates=rates,
        meanwhile=_record(Meanwhile, stats.get("meanwhile")) or Meanwhile(),
    )


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _record(kind: type[Record], value: Any) -> Record | None:
    """A record of a Completion, or rebuilt from stored plain data; None where that is malformed."""
    if isinstance(value, Mapping):
        names = [one.name for one in fields(kind)]  # type: ignore[arg-type]
        known = all(name in value and isinstance(value[name], int | float | None) for name in names)
        return kind(**{name: value[name] for name in names}) if known else None
    return value if isinstance(value, kind) else None
