"""What an engine tells a face while it works: plain frozen dataclasses that cross threads and processes."""

from dataclasses import dataclass, field
from typing import Literal

Channel = Literal["answer", "thinking"]
StopReason = Literal["stop", "length", "cancelled"]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What was loaded. Sizes in bytes, times in milliseconds."""

    name: str
    path: str
    arch: str
    precision: str
    backend: str
    kv_codec: str
    ctx: int
    weights_bytes: int
    load_ms: float
    notes: tuple[str, ...] = ()  # what a user should know: a named default template, a slow path


@dataclass(frozen=True, slots=True)
class Prefill:
    """Progress of reading the prompt, in tokens; `cached` of them came from the prefix cache."""

    done: int
    cached: int
    total: int


@dataclass(frozen=True, slots=True)
class Token:
    """One new token and the text it completed (empty while a UTF-8 character or a stop string is pending).

    `token_id` is None for text that comes without a token of its own: the rest of one that ended the thinking, or
    what was held back when the answer ended.
    """

    token_id: int | None
    text: str
    channel: Channel


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished answer: exactly the fields of `run --json`. Durations ms, rates tokens/s, sizes bytes."""

    model: str
    precision: str
    backend: str
    text: str
    thinking: str
    stop_reason: StopReason
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    token_ids: tuple[int, ...]
    load_ms: float
    ttft_ms: float
    itl_ms_p50: float
    itl_ms_p95: float
    prefill_tps: float
    decode_tps: float
    peak_rss: int
    kv_bytes: int
    kv_codec: str
    ctx: int
    seed: int
    path: str = ""
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Done:
    """The last event of every generation that did not fail."""

    completion: Completion


Event = Prefill | Token | Done
