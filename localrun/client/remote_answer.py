"""Convert the chunks of a server into events, text and figures."""

import time
from collections.abc import Iterator

from localrun.base.errors import EngineDiedError, EngineError
from localrun.base.events import Channel, Completion, ModelInfo, StopReason, Timings, Token, ToolCallDelta
from localrun.base.request import Json, Request
from localrun.client.event_stream import count_of, count_or_none, first_of
from localrun.client.remote_calls import RemoteCalls
from localrun.engine.answer import gaps_ms
from localrun.engine.loops import CHECK_TOKENS, loop_period
from localrun.text.reasoning import ReasoningSplitter

FEWEST_PIECES, LEAST_SECONDS = 8, 0.2  # of a stream, for a rate: what the network held back comes at once
_THINKING = ("reasoning_content", "reasoning", "thinking")


class RemoteAnswer:
    """Takes chunks with `push`, and what it held back with `flush`; `completion` is all of it."""

    def __init__(self, info: ModelInfo, request: Request) -> None:
        self.notes: list[str] = list(info.notes)
        self.loop_period = 0
        self.stops_on_loop = request.stop_on_loop
        self._looked_at = 0  # pieces
        self._info = info
        self._seed = request.sampling.seed or 0
        self._started = time.perf_counter()
        self._times: list[float] = []
        self._texts: dict[Channel, list[str]] = {"answer": [], "thinking": []}
        self._pieces: list[str] = []  # of both
        self._finish = ""
        self._usage: Json = {}
        self._calls, self._may_call = RemoteCalls(), bool(request.tools) and request.tool_choice != "none"
        # Some servers leave the tags in the text; only what begins an answer is taken for them.
        self._splitter: ReasoningSplitter | None = ReasoningSplitter("<think>", "</think>")

    def push(self, chunk: Json) -> Iterator[Token | ToolCallDelta]:
        """The events of one chunk, be it a delta of a stream, a whole message, or figures only."""
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = usage
        choice = first_of(chunk.get("choices"))
        message = choice.get("delta") or choice.get("message") or {"content": choice.get("text")}
        if isinstance(finish := choice.get("finish_reason"), str):
            self._finish = finish
        if not isinstance(message, dict):
            return
        thinking = next((text for name in _THINKING if isinstance(text := message.get(name), str) and text), "")
        content = message.get("content")
        if thinking:
            yield self._token("thinking", thinking)
        if isinstance(content, str) and content:
            yield from self._content(content)
        for call in self._calls.push(message.get("tool_calls")) if self._may_call else ():
            yield from self._flush_text()
            self._times.append(time.perf_counter())
            yield call

    def flush(self) -> Iterator[Token | ToolCallDelta]:
        """Text that was held back because it might have been a tag, and the end of the last call."""
        yield from self._flush_text()
        yield from self._calls.end(is_cut=self._finish in ("", "length"))

    def _flush_text(self) -> Iterator[Token]:
        if self._splitter is not None:
            for channel, text in self._splitter.flush():
                yield self._token(channel, text)

    def begins_to_loop(self) -> bool:
        """Whether the answer was now found to repeat itself, for the first time.

        Servers send no ids but text, nearly always a token at a time: its pieces stand for them. A loop
        that a server cuts differently each time is not noticed.
        """
        if self.loop_period or len(self._pieces) - self._looked_at < CHECK_TOKENS:
            return False
        self._looked_at = len(self._pieces)
        self.loop_period = loop_period(self._pieces)
        return self.loop_period > 0

    def check_whole(self, host: str) -> None:
        """Raise EngineDiedError unless the server reported the end."""
        if not self._finish and not self._times and not self._usage:
            raise EngineError(f"{host} ended its answer before it began", "send the message again")
        if not self._finish:
            what = f"{host} broke off in the middle of its answer"
            raise EngineDiedError(what, "send the message again; what has arrived is kept")

    def completion(self, reason: StopReason | None) -> Completion:
        """The figures: the server's own counts where it gives them, and times as they were here."""
        p50, p95 = gaps_ms(self._times)
        n_prompt, details = count_or_none(self._usage, "prompt_tokens"), self._usage.get("prompt_tokens_details")
        n_tokens = count_of(self._usage, "completion_tokens") or len(self._times)
        if "completion_tokens" not in self._usage and self._times:
            self.notes.append("the server gives no counts: pieces of text were counted as tokens")
        if self._finish == "content_filter":
            self.notes.append("a filter of the server ended the answer")
        if self._finish in ("tool_calls", "function_call") and not self._calls.calls:
            self.notes.append("the server says that a tool is called, but not which")
        seconds = self._times[-1] - self._times[0] if self._times else 0.0
        tells_rate = len(self._times) >= FEWEST_PIECES and seconds >= LEAST_SECONDS
        ttft = self._times[0] - self._started if self._times else 0.0
        return Completion(
            model=self._info.name,
            precision="",
            backend="remote",
            text="".join(self._texts["answer"]),
            thinking="".join(self._texts["thinking"]),
            stop_reason=reason or self._stop_reason(),
            prompt_tokens=n_prompt,
            cached_tokens=count_or_none(details, "cached_tokens"),
            completion_tokens=n_tokens,
            thinking_tokens=count_or_none(self._usage.get("completion_tokens_details"), "reasoning_tokens"),
            token_ids=(),
            tool_calls=self._calls.calls,
            kv_codec="",
            ctx=self._info.ctx,
            seed=self._seed,
            notes=tuple(self.notes),
            loop_period=self.loop_period,
            engine="remote",
            timings=Timings(  # no prefill_tps: the time to the first piece is that of the network and of a queue, too
                load_ms=self._info.load_ms,
                ttft_ms=1000 * ttft,
                itl_ms_p50=p50,
                itl_ms_p95=p95,
                decode_tps=(n_tokens - 1) / seconds if tells_rate else None,
            ),
        )

    def _stop_reason(self) -> StopReason:
        if self.loop_period and self.stops_on_loop:
            return "loop"
        return "length" if self._finish == "length" else "stop"

    def _content(self, text: str) -> Iterator[Token]:
        if self._splitter is None:
            yield self._token("answer", text)
            return
        for channel, piece in self._splitter.push(text):
            yield self._token(channel, piece)
            if channel == "answer" and piece.strip():
                yield from self._end_of_tags()

    def _end_of_tags(self) -> Iterator[Token]:
        splitter, self._splitter = self._splitter, None
        for _, rest in splitter.flush() if splitter else ():
            yield self._token("answer", rest)

    def _token(self, channel: Channel, text: str) -> Token:
        self._times.append(time.perf_counter())
        self._texts[channel].append(text)
        self._pieces.append(text)
        return Token(None, text, channel)
