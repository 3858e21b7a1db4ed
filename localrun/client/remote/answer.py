"""Convert the chunks of a server into events, text and figures."""

import json
import time
from collections.abc import Iterable, Iterator

from localrun.base.errors import EngineDiedError, EngineError
from localrun.base.events import Channel, Completion, ModelInfo, Prefill, StopReason, Timings, Token, ToolCallDelta
from localrun.base.request import Json, Request
from localrun.base.sanitize import clean
from localrun.client.remote.calls import RemoteCalls
from localrun.client.remote.event_stream import count_of, count_or_none, first_of, number_of, text_of
from localrun.client.remote.logprobs import logprobs_of, with_logprobs
from localrun.client.remote.text import RemoteText, closed_thought
from localrun.engine.answer import gaps_ms
from localrun.engine.loops import CHECK_TOKENS, loop_period
from localrun.text.reasoning import ReasoningTags
from localrun.text.stop import StopStrings

FEWEST_PIECES, LEAST_SECONDS = 8, 0.2  # of a stream, for a rate: what the network held back comes at once
_THINKING = ("reasoning_content", "reasoning", "thinking")
_FAILED = ("abort", "error", "network_error")  # finish reasons of an answer that is not whole
_NOTES = {"content_filter": "a filter of the server ended the answer", "repetition": "the server ended it as a loop"}
_REFUSES = "the model refuses"
_USUAL = ("", "stop", "length", "tool_calls", "function_call")


class RemoteAnswer:
    """The answer of a server: `push` takes chunks, `flush` returns what was held back; `completion` is all of it.

    `opened`: the tags of a thought that the prompt has opened already. Where an answer shows that its prompt did so,
    `found_open` are those tags afterwards.
    """

    def __init__(self, info: ModelInfo, request: Request, opened: ReasoningTags | None = None) -> None:
        self.notes: list[str] = list(info.notes)
        self.loop_period = 0
        self.stops_on_loop = request.stop_on_loop
        self.found_open: ReasoningTags | None = None
        self._looked_at = 0  # pieces
        self._info = info
        self._seed = request.sampling.seed or 0
        self._started = time.perf_counter()
        self._times: list[float] = []
        self._texts: dict[Channel, list[str]] = {"answer": [], "thinking": []}
        self._pieces: list[str] = []  # of both
        self._finish = ""
        self._usage: Json = {}
        self._told: Json = {}  # times of the server's own clock
        self.connect_ms: float | None = None
        self._calls, self._may_call = RemoteCalls(), bool(request.tools) and request.tool_choice != "none"
        self._wants_json = request.constraint is not None
        self._wants_logprobs, self._has_logprobs = request.logprobs is not None, False
        self._text = RemoteText(opened)
        self._stops = StopStrings(request.stop)  # some servers send the stop string, too

    @property
    def is_over(self) -> bool:
        """Whether a stop string came, or a loop that ends the answer: what comes is no part of it."""
        return bool(self._stops.found) or (self.loop_period > 0 and self.stops_on_loop)

    @property
    def lacks_cached(self) -> bool:
        """Whether the server counted the prompt, but not how much of it was cached."""
        return "prompt_tokens" in self._usage and not isinstance(self._usage.get("prompt_tokens_details"), dict)

    @property
    def n_prompt(self) -> int | None:
        """Tokens of the prompt, as the server counts them."""
        return count_or_none(self._usage, "prompt_tokens")

    def push(self, chunk: Json) -> Iterator[Prefill | Token | ToolCallDelta]:
        """The events of one chunk, be it a delta of a stream, a whole message, or figures only."""
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = usage
        for name in ("timings", "localrun"):  # llama.cpp's field, and ours
            if isinstance(told := chunk.get(name), dict):
                self._told = told
        if isinstance(progress := chunk.get("prompt_progress"), dict) and not self._times:
            done, cached, total = (count_of(progress, name) for name in ("processed", "cache", "total"))
            yield Prefill(done, cached, total)
        choice = first_of(chunk.get("choices"))
        message = choice.get("delta") or choice.get("message") or {"content": choice.get("text")}
        if isinstance(finish := choice.get("finish_reason"), str):
            self._finish = finish
        if not isinstance(message, dict):
            return
        logprobs = logprobs_of(choice.get("logprobs")) if self._wants_logprobs else ()
        self._has_logprobs = self._has_logprobs or bool(logprobs)
        yield from with_logprobs(self._texts_of(message), logprobs)
        for call in self._calls.push(message.get("tool_calls")) if self._may_call else ():
            yield from self._flush_text()
            self._times.append(time.perf_counter())
            yield call

    def _texts_of(self, message: Json) -> Iterator[Token]:
        """The text of one message or delta."""
        if thinking := next((text for name in _THINKING if (text := text_of(message.get(name)))), ""):
            yield self._token("thinking", thinking)
        if refusal := text_of(message.get("refusal")):
            if _REFUSES not in self.notes:
                self.notes.append(_REFUSES)
            yield from self._content(refusal)
        if content := text_of(message.get("content")):
            yield from self._content(content)

    def flush(self) -> Iterator[Token | ToolCallDelta]:
        """Text that was held back because it might have been a tag or a stop string, and the end of the last call."""
        yield from self._flush_text()
        yield from self._calls.end(is_cut=self._finish in ("", "length"))

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
        """Raise EngineDiedError unless the server reported an end that is none of its own failures."""
        if not self._finish and not self._times and not self._usage:
            raise EngineError(f"{host} ended its answer before it began", "send the message again")
        if not self._finish or self._finish in _FAILED:
            says = f" and says {self._finish}" if self._finish else ""
            what = f"{host} broke off in the middle of its answer{says}"
            raise EngineDiedError(what, "send the message again; what has arrived is kept")

    def completion(self, reason: StopReason | None) -> Completion:
        """The figures: the server's own counts where it gives them, and times as they were here.

        `reason`: why we ended the answer, None where the server did.
        """
        p50, p95 = gaps_ms(self._times)
        details = self._usage.get("prompt_tokens_details")
        n_tokens = count_of(self._usage, "completion_tokens") or len(self._times)
        if "completion_tokens" not in self._usage and self._times:
            is_ours = reason is not None or self.is_over  # to end
            whose = "an answer that is stopped is not counted there" if is_ours else "it gives no counts"
            self.notes.append(f"pieces of text from the server were counted as tokens: {whose}")
        if self._wants_logprobs and self._times and not self._has_logprobs:
            self.notes.append("the server gave no logprobs, which were asked for")
        self._note_finish()
        seconds = self._times[-1] - self._times[0] if self._times else 0.0
        tells_rate = len(self._times) >= FEWEST_PIECES and seconds >= LEAST_SECONDS
        ttft = self._times[0] - self._started if self._times else 0.0
        text, thinking = self._split_texts()
        self._note_form(text)
        return Completion(
            model=self._info.name,
            precision="",
            backend="remote",
            text=text,
            thinking=thinking,
            stop_reason=reason or self._stop_reason(),
            prompt_tokens=self.n_prompt,
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
            stop_string=self._stops.found,
            engine="remote",
            timings=Timings(  # the time to the first piece tells no prefill_tps: it is the network's and a queue's, too
                load_ms=self._info.load_ms,
                connect_ms=self.connect_ms,
                queue_ms=number_of(self._told, "queue_ms"),
                prefill_ms=number_of(self._told, "prompt_ms", "prefill_ms"),
                decode_ms=number_of(self._told, "predicted_ms", "decode_ms"),
                ttft_ms=1000 * ttft,
                itl_ms_p50=p50,
                itl_ms_p95=p95,
                decode_tps=(n_tokens - 1) / seconds if tells_rate else None,
            ),
        )

    def _note_finish(self) -> None:
        if self._finish in ("tool_calls", "function_call") and not self._calls.calls:
            self.notes.append("the server says that a tool is called, but not which")
        if self._finish in _NOTES:
            self.notes.append(_NOTES[self._finish])
        elif self._finish not in _USUAL:
            said = clean(self._finish, keep_newlines=False)[:40]
            self.notes.append(f"the server says that the answer ended by {said}")

    def _note_form(self, text: str) -> None:
        """Some servers pass over a schema without a word."""
        if not self._wants_json or self._calls.calls or self._finish != "stop":
            return
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            self.notes.append("the server did not hold to the schema: the answer is no JSON")

    def _split_texts(self) -> tuple[str, str]:
        """Answer and thinking. A thought that the prompt opened is known by its end only: it was told as answer."""
        text, thinking = "".join(self._texts["answer"]), "".join(self._texts["thinking"])
        if thinking or (found := closed_thought(text)) is None:
            return text, thinking
        thinking, text, self.found_open = found
        self.notes.append("the answer began with a thought that the server does not mark; the next one is told apart")
        return text, thinking

    def _stop_reason(self) -> StopReason:
        if self._finish == "repetition" or (self.loop_period and self.stops_on_loop):
            return "loop"
        return "length" if self._finish == "length" and not self._stops.found else "stop"

    def _content(self, text: str) -> Iterator[Token]:
        yield from self._tokens(self._text.push(text))

    def _flush_text(self) -> Iterator[Token]:
        yield from self._tokens(self._text.flush())
        if rest := self._stops.flush():
            yield self._token("answer", rest)

    def _tokens(self, pieces: Iterable[tuple[Channel, str]]) -> Iterator[Token]:
        """The tokens of pieces; of the answer as far as no stop string can begin in them."""
        for channel, piece in pieces:
            yield self._token(channel, self._stops.push(piece)[0] if channel == "answer" else piece)

    def _token(self, channel: Channel, text: str) -> Token:
        self._times.append(time.perf_counter())
        self._texts[channel].append(text)
        self._pieces.append(text)
        return Token(None, text, channel)
