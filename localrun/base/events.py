"""Events from an engine to a face while it works: plain frozen dataclasses that cross threads and processes."""

from dataclasses import asdict, field
from typing import Any, Literal

from localrun.base.dataclass import dataclass
from localrun.base.device_figures import DeviceFigures
from localrun.base.draft_figures import DraftFigures

LOOP_HINT = "A higher temperature, a repeat penalty of 1.1 or a larger model usually helps"

Channel = Literal["answer", "thinking"]
StopReason = Literal["stop", "length", "cancelled", "loop"]
WhoseEngine = Literal["own", "attached", "remote"]  # loaded for this program, shared by another localrun, on a server


@dataclass(frozen=True, slots=True)
class Work:
    """Cost of computing one token: bytes of weights, as they are held, and multiply-adds."""

    weight_bytes: int
    macs: int  # of 8-bit numbers
    wide_macs: int  # of wider ones
    attention_macs: int  # of wider ones, on top for each token before it


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """Interference with an answer from outside, as far as it was measured. Shares are of all processors of the machine,
    None where the answer was too short to tell."""

    changed_at: int | None = None  # the first token of the prompt that is not what this chat had there before
    changed_turn: int = 0  # the turn that is in; 0: what comes before the first, as the system prompt does
    evicted: bool = False  # more of the prompt was in the cache once
    ahead: int = 0  # answers that were under way when it was asked for
    beside_tokens: int = 0  # of other answers, computed in the same steps
    others_share: float | None = None  # used by other programs
    idle_share: float | None = None  # that nobody used
    page_faults: int | None = None  # of the engine that a disk had to answer; None where the system does not count
    stopped_ms: float = 0.0  # that a limit of the container kept it from computing
    hot_ms: float = 0.0  # that the processor was slowed down because it was hot


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Description of a loaded model. Sizes in bytes, times in milliseconds. Of a remote engine only what its server
    says is known: the rest is empty or 0."""

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
    work: Work | None = None  # None where unknown, or where other things than memory and arithmetic limit it
    mapped_bytes: int = 0  # of weights_bytes, those that stay on disk and are read as they are used
    can_roll: bool = False  # whether it may forget the middle of a text and go on
    drafts_off: str = ""  # why it guesses no tokens to verify several in a step; empty: it may
    fingerprint: str = ""  # of weights, arithmetic, cache and template: equal ones answer alike; empty: unknown
    bos_token: str = ""  # the tokens that texts begin and end with, as the vocabulary spells them
    eos_token: str = ""
    engine: WhoseEngine = "own"
    server_says: tuple[str, ...] = ()  # lines of a remote engine about itself
    why_blind: str = ""  # what would help a model that sees no images; empty: it sees them, or nothing is known


@dataclass(frozen=True, slots=True)
class Accepted:
    """A request was found right and waits for its turn: the first event, except of remote engines."""

    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Prefill:
    """Progress of reading the prompt, in tokens; `cached` of them came from the prefix cache. `note` says why no more
    of it was cached, in words for the user; empty when nothing was in the way."""

    done: int
    cached: int
    total: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class ImageProgress:
    """Progress of encoding an image of the prompt, before that is read: `number` (from 0 on) of `total` images, of
    which the `share` (0 to 1) is done. Images that were encoded before are not among them."""

    number: int
    total: int
    share: float


@dataclass(frozen=True, slots=True)
class TopLogprob:
    """A token that might have come, and ln of its probability. `piece`: its bytes, not always whole characters. The id
    is -1 where a server tells none."""

    token_id: int
    logprob: float
    piece: bytes = b""


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token that came, likewise, and the likeliest ones in its place, best first.

    The probabilities are the model's own, before temperature, penalties and bias. The first token of a prompt has none.
    """

    token_id: int
    logprob: float | None
    top: tuple[TopLogprob, ...] = ()
    piece: bytes = b""


@dataclass(frozen=True, slots=True)
class PromptLogprobs:
    """The next tokens of a prompt whose logprobs were asked for, in order; all come before the first Token."""

    tokens: tuple[TokenLogprob, ...]


@dataclass(frozen=True, slots=True)
class Token:
    """One new token and the text it completed (empty while a UTF-8 character or a stop string is pending).

    `token_id` is None for text that comes without a token of its own: the rest of one that ended the thinking, or
    what was held back when the answer ended. Where logprobs are asked for, the token that ends the answer comes, too.
    """

    token_id: int | None
    text: str
    channel: Channel
    logprob: TokenLogprob | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool. `arguments` are a JSON object as text; the beginning of one where the call is not complete,
    because the answer was cut or the model went on with something else."""

    id: str
    name: str
    arguments: str
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """The next part of the arguments of a call; the first, which has none of them yet, begins it.

    `index` counts the calls of an answer from 0 on. A call that begins ends the one before it, complete or not.
    """

    index: int
    id: str
    name: str
    arguments: str
    is_complete: bool = False  # nothing of this call follows

    @property
    def begins(self) -> bool:
        """Whether this is the first part of a call."""
        return not self.arguments and not self.is_complete


@dataclass(frozen=True, slots=True)
class Loop:
    """The answer repeats the same `period` tokens without an end. Comes once, when that is noticed."""

    period: int

    def __str__(self) -> str:
        what = "the same token" if self.period == 1 else f"the same {self.period:,} tokens"
        return f"the answer repeats itself: {what} over and over. {LOOP_HINT}"


@dataclass(frozen=True, slots=True)
class Timings:
    """How fast an answer was: milliseconds and tokens per second. None is what a server does not tell."""

    load_ms: float = 0.0
    ttft_ms: float = 0.0  # from the request to the first token, loading not included
    itl_ms_p50: float = 0.0
    itl_ms_p95: float = 0.0
    prefill_tps: float | None = None
    decode_tps: float | None = None
    render_ms: float = 0.0  # the chat template
    tokenize_ms: float = 0.0
    queue_ms: float = 0.0  # waiting for other answers
    restore_ms: float = 0.0  # reading saved blocks from disk
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    connect_ms: float | None = None  # until the connection to a server stood; None without one


@dataclass(frozen=True, slots=True)
class CacheFigures:
    """Tokens of a prompt found in the KV cache, and tokens it holds now. None is what a server does not tell."""

    cache_note: str = ""  # why no more of the prompt was cached
    restored_tokens: int = 0  # of the cached ones, read back from disk
    replayed_tokens: int = 0  # computed again for layers whose window had moved on
    computed_tokens: int | None = None  # of the prompt, read by the model this time, replayed ones included
    held_tokens: int | None = None  # of prompt and answer, in the KV cache when it ended


@dataclass(frozen=True, slots=True)
class ImageFigures:
    """Images of a prompt, and the milliseconds that encoding took: 0 where they were encoded before."""

    images: int = 0
    image_tokens: int = 0
    encode_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class MemoryFigures:
    """Bytes that an answer took. None is what a server does not tell."""

    peak_rss: int | None = None
    kv_bytes: int | None = None
    kept_kv_bytes: int | None = None  # KV cache of other chats and of earlier states of this one
    kv_budget_bytes: int | None = None  # what the KV cache may take in all
    mapped_bytes: int = 0  # of the weights, those that stay on disk


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished answer; `flat` has exactly the fields of `run --json`. None is what a server does not tell."""

    model: str
    precision: str
    backend: str
    text: str
    thinking: str
    stop_reason: StopReason
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int
    token_ids: tuple[int, ...]
    kv_codec: str
    ctx: int
    seed: int
    path: str = ""
    notes: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()  # whose text is in neither `text` nor `thinking`
    thinking_tokens: int | None = None  # of completion_tokens
    loop_period: int = 0  # tokens that it ended up repeating over and over; 0: it did not
    stop_string: str = ""  # that ended it; empty where none did
    work: Work | None = None
    meanwhile: Meanwhile | None = None
    engine: WhoseEngine = "own"
    timings: Timings = Timings()
    cache: CacheFigures = CacheFigures()
    drafts: DraftFigures = DraftFigures()
    device: DeviceFigures = field(default_factory=DeviceFigures)
    seen: ImageFigures = ImageFigures()
    memory: MemoryFigures = MemoryFigures()

    def flat(self) -> dict[str, Any]:
        """All fields as plain data on one level, those of groups of figures, such as timings and cache, among them."""
        fields: dict[str, Any] = {}
        for name, value in asdict(self).items():
            fields |= value if name in ("timings", "cache", "drafts", "device", "seen", "memory") else {name: value}
        return fields

    @property
    def n_steps(self) -> int:
        """Steps that decoded the tokens after the first one."""
        return self.completion_tokens - self.drafts.accepted_tokens - 1

    @property
    def ends_in_calls(self) -> bool:
        """Whether the model called tools and waits for their results: there are calls, and none of them is cut."""
        return bool(self.tool_calls) and all(call.is_complete for call in self.tool_calls)


@dataclass(frozen=True, slots=True)
class Done:
    """The last event of every generation that did not fail. `prompt_ids` are the ids the prompt became."""

    completion: Completion
    prompt_ids: tuple[int, ...] = ()


Event = Accepted | ImageProgress | Prefill | PromptLogprobs | Token | ToolCallDelta | Loop | Done
