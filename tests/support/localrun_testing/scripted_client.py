"""An engine for tests of the app: it plays a script of events, and can be slow, think, fail and die."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from localrun.base.errors import EngineDiedError, LocalrunError
from localrun.base.events import (
    CacheFigures,
    Completion,
    Done,
    Event,
    ImageProgress,
    MemoryFigures,
    ModelInfo,
    Prefill,
    StopReason,
    Timings,
    Token,
    ToolCall,
    ToolCallDelta,
    Work,
)
from localrun.base.request import ProgressCallback, Request
from localrun.base.views import CacheView, GroupView, ImageView, KVBytes, MemoryPart, PromptView, SizeView
from localrun.client.interface import Generation
from localrun.diagnose.explain.topic_report import Bars, Figure, TopicReport
from localrun.fit.rates import Rates
from localrun_testing.waiting import PATIENCE

INFO = ModelInfo(
    name="qwen3-4b",
    path="/models/qwen3-4b-Q4_K_M.gguf",
    arch="qwen3",
    precision="Q4_K_M",
    backend="cpu",
    kv_codec="q8",
    ctx=8192,
    weights_bytes=2_497_281_120,
    load_ms=1840.0,
)
RATES = Rates(read_bytes=160e9, macs=2e12)
WORK = Work(weight_bytes=2_497_281_120, macs=4 * 10**9, wide_macs=0, attention_macs=0)
VIEW = CacheView(
    n_tokens=1500,
    ctx=8192,
    block_tokens=64,
    groups=(
        GroupView("6 layers", 6, None, "q8", 557_056, "r" * 15 + "d" * 4 + "c" * 5),
        GroupView("30 layers, window 512", 30, 512, "q8", 2_785_280, "w" * 14 + "r" * 2 + "c" * 8),
    ),
    used_blocks=48,
    total_blocks=256,
    tree_tokens=4096,
    disk_bytes=73_400_320,
    memory=(
        MemoryPart("weights", 2_497_281_120, 2_501_000_000),
        MemoryPart("KV cache", 620_000_000, 618_659_840),
        MemoryPart("whole process", 3_840_000_000, 3_900_000_000),
    ),
    kv=KVBytes(113_246_208, 201_326_592, 620_000_000),
)
COMPLETION = Completion(
    model="qwen3-4b", precision="Q4_K_M", backend="cpu", text="", thinking="", stop_reason="stop",
    prompt_tokens=1474, cached_tokens=1216, completion_tokens=0, token_ids=(),
    kv_codec="q8", ctx=8192, seed=1, path="/models/qwen3-4b-Q4_K_M.gguf", work=WORK,
    timings=Timings(
        load_ms=1840.0, ttft_ms=612.0, itl_ms_p50=24.0, itl_ms_p95=29.0, prefill_tps=421.6, decode_tps=41.3,
        render_ms=0.4, tokenize_ms=1.1, restore_ms=18.0, prefill_ms=592.0, decode_ms=1912.0,
    ),
    cache=CacheFigures(restored_tokens=256, computed_tokens=258),
    memory=MemoryFigures(
        peak_rss=3_900_000_000, kv_bytes=113_246_208, kept_kv_bytes=201_326_592, kv_budget_bytes=620_000_000
    ),
)  # fmt: skip

ANSWER = """The **KV cache** keeps keys and values, so that each new token reads *only* what is new.

- prefill is limited by arithmetic
- decode is limited by `memory bandwidth`

```python
def attend(q, cache):
    return softmax(q @ cache.keys.T) @ cache.values
```

| codec | bytes |
|---|---:|
| f16 | 147,456 |
| q8 | 78,336 |
"""


@dataclass(frozen=True, slots=True)
class Script:
    """One answer. Texts are cut into tokens of `piece` characters; times are seconds."""

    text: str = "Hello!"
    thinking: str = ""
    piece: int = 4
    delay: float = 0.0  # before every token
    prefill: tuple[ImageProgress | Prefill, ...] = (Prefill(12, 0, 12),)
    prefill_delay: float = 0.0  # before every Prefill but the first
    never_reads_all: bool = False  # hangs after the last Prefill until it is cancelled
    dies_after: int | None = None  # tokens
    fails: LocalrunError | None = None  # instead of the first event
    never_ends: bool = False  # hangs after the last token until it is cancelled
    completion: Completion = COMPLETION
    calls: tuple[ToolCall, ...] = ()  # of tools, after the text

    def tokens(self) -> list[Token]:
        pieces = [(text[i : i + self.piece], channel) for text, channel in self._channels() for i in self._cuts(text)]
        return [Token(number, piece, channel) for number, (piece, channel) in enumerate(pieces)]  # type: ignore[arg-type]

    def _channels(self) -> tuple[tuple[str, str], tuple[str, str]]:
        return (self.thinking, "thinking"), (self.text, "answer")

    def _cuts(self, text: str) -> range:
        return range(0, len(text), self.piece)


@dataclass
class ScriptedClient:
    """Plays `scripts` in turn, the last one again and again; `requests` are what it was asked."""

    scripts: list[Script] = field(default_factory=lambda: [Script()])
    info: ModelInfo = INFO
    cache: CacheView | None = VIEW
    requests: list[Request] = field(default_factory=list)
    closed: bool = False
    measured: list[str] = field(default_factory=list)  # topics; one that is named `hangs` until it is given up
    hangs: str = ""
    sizes: dict[str, SizeView] = field(default_factory=dict)  # of every image
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def generate(self, request: Request) -> Generation:
        self._cancelled = threading.Event()  # the answers come one after another
        return Generation(self.events(request), self._cancelled.set)

    def events(self, request: Request) -> Iterator[Event]:
        script = self.scripts[min(len(self.requests), len(self.scripts) - 1)]
        self.requests.append(request)
        if script.fails:
            raise script.fails
        yield from self._prefill(script)
        tokens: list[Token] = []
        for token in script.tokens():
            if script.dies_after is not None and len(tokens) >= script.dies_after:
                raise EngineDiedError("the engine is gone: killed by signal 9", "send a message to start it again")
            if self._wait(script.delay):
                break
            tokens.append(token)
            yield token
        for index, call in enumerate(script.calls):
            for arguments, ends in (("", False), (call.arguments, False), ("", call.is_complete)):
                yield ToolCallDelta(index, call.id, call.name, arguments, ends)
        while script.never_ends and not self._wait(0.01):
            pass
        yield self._done(script, tokens)

    def _prefill(self, script: Script) -> Iterator[Event]:
        for number, step in enumerate(script.prefill):
            if number and self._wait(script.prefill_delay):
                return
            yield step
        while script.never_reads_all and not self._wait(0.01):
            pass

    def _wait(self, seconds: float) -> bool:
        """Whether it was cancelled by then."""
        return self._cancelled.wait(seconds) if seconds else self._cancelled.is_set()

    def _done(self, script: Script, tokens: list[Token]) -> Done:
        reason: StopReason = "cancelled" if self._cancelled.is_set() else script.completion.stop_reason
        completion = replace(
            script.completion,
            text="".join(token.text for token in tokens if token.channel == "answer"),
            thinking="".join(token.text for token in tokens if token.channel == "thinking"),
            tool_calls=script.calls,
            stop_reason=reason,
            completion_tokens=len(tokens),
            token_ids=tuple(token.token_id for token in tokens if token.token_id is not None),
            cache=replace(script.completion.cache, held_tokens=(script.completion.prompt_tokens or 0) + len(tokens)),
        )
        return Done(completion, tuple(range(1000, 1000 + (completion.prompt_tokens or 0))))

    def preview(self, request: Request, pieces: bool = False) -> PromptView | None:
        """A token a word."""
        words = " ".join(str(message["content"]) for message in request.messages).split(" ")
        ids, texts = (tuple(range(len(words))), tuple(f"{word} " for word in words)) if pieces else ((), ())
        images = tuple(ImageView(image.sha256, self.sizes) for image in request.images)
        return PromptView(len(words), min(2, len(words)), ids, texts, "".join(texts), images)

    def view(self) -> CacheView | None:
        return self.cache

    def explain(self, topic: str, watch: Callable[[int], None]) -> TopicReport:
        """A lesson with one number."""
        self.measured.append(topic)
        for step in range(10_000 if topic == self.hangs else 3):
            watch(step)
            time.sleep(0.01)
        figure = Figure("a late token", "ms", "counted", 7.0, 7.5)
        return TopicReport(topic, "Title", "Text", (figure,), (Bars("Speed", "tok/s", {"one": 1.0}),), "So it is.")

    def close(self) -> None:
        self.closed = True
        self._cancelled.set()


def opener(
    client: ScriptedClient, gate: threading.Event | None = None, fails: LocalrunError | None = None
) -> Callable[..., ScriptedClient]:
    """What Session takes to open a client: reports progress in ten steps, the last one once `gate` is set."""

    def open_client(choice: object, progress: ProgressCallback) -> ScriptedClient:
        for step in range(11):
            if step == 10 and gate is not None:
                assert gate.wait(PATIENCE)
            progress(step * client.info.weights_bytes // 10, client.info.weights_bytes)
        if fails:
            raise fails
        return client

    return open_client
