"""From token ids to what a person reads: text by channel, stop strings, figures."""

import itertools
import statistics
from collections.abc import Iterable, Iterator
from typing import TypedDict

from localrun.base.events import Channel, Completion, Loop, ModelInfo, Prefill, Token
from localrun.engine.generation import GenerationState
from localrun.engine.handle import Finished, GenerationHandle, NewToken
from localrun.text.answer_parser import AnswerParser
from localrun.text.model_text import PromptIds
from localrun.text.stop import StopStrings


class AnswerStream:
    """The text of one generation. `hit` is set when a stop string ended the answer."""

    def __init__(self, parser: AnswerParser, stops: Iterable[str]) -> None:
        self.parser = parser
        self.stops = StopStrings(stops)
        self.hit = False
        self.texts: dict[Channel, list[str]] = {"answer": [], "thinking": []}

    def push(self, token_id: int) -> Iterator[Token]:
        """The events of one new token: one, or two when its text spans thinking and answer."""
        pieces = self.parser.push(token_id) or [("answer", "")]
        for index, (channel, text) in enumerate(pieces):
            yield self.token(token_id if index == 0 else None, channel, text)

    def flush(self) -> Iterator[Token]:
        """What was held back, once no more tokens come."""
        for channel, text in self.parser.flush():
            yield self.token(None, channel, text)
        rest = "" if self.hit else self.stops.flush()
        if rest:
            self.texts["answer"].append(rest)
            yield Token(None, rest, "answer")

    def text(self, channel: Channel) -> str:
        return "".join(self.texts[channel])

    def token(self, token_id: int | None, channel: Channel, text: str) -> Token:
        if channel == "answer":
            text, hit = ("", True) if self.hit else self.stops.push(text)
            self.hit = self.hit or hit
        self.texts[channel].append(text)
        return Token(token_id, text, channel)


def stream_answer(handle: GenerationHandle, answer: AnswerStream) -> Iterator[Prefill | Token | Loop | GenerationState]:
    """Events of a generation; the last one is its GenerationState. Closing the iterator cancels the generation."""
    try:
        for event in handle:
            if isinstance(event, Prefill | Loop):
                yield event
            elif isinstance(event, NewToken):
                if answer.hit:  # computed after the stop string, before the engine heard of it
                    continue
                yield from answer.push(event.token_id)
                if answer.hit:
                    handle.cancel()
            elif isinstance(event, Finished):
                yield from answer.flush()
                yield event.sequence
    finally:
        handle.cancel()


def completion(
    sequence: GenerationState, answer: AnswerStream, info: ModelInfo, prompt: PromptIds, kv_budget: int, peak_rss: int
) -> Completion:
    """The figures of a finished generation."""
    token_ids = tuple(sequence.token_ids[sequence.n_prompt :])
    return Completion(
        model=info.name,
        precision=info.precision,
        backend=info.backend,
        text=answer.text("answer"),
        thinking=answer.text("thinking"),
        stop_reason="stop" if answer.hit else sequence.stop_reason or "cancelled",
        completion_tokens=len(token_ids),
        token_ids=token_ids,
        load_ms=info.load_ms,
        peak_rss=peak_rss,
        kv_bytes=sequence.kv_bytes,
        kv_codec=info.kv_codec,
        ctx=info.ctx,
        seed=sequence.request.seed,
        path=info.path,
        notes=(*info.notes, *prompt.notes),
        cache_note=sequence.note,
        render_ms=prompt.render_ms,
        tokenize_ms=prompt.tokenize_ms,
        loop_period=sequence.loop_period,
        kept_kv_bytes=sequence.kept_kv_bytes,
        kv_budget_bytes=kv_budget,
        work=info.work,
        mapped_bytes=info.mapped_bytes,
        **prompt_counts(sequence),
        **pace(sequence),
    )


class PromptCounts(TypedDict):
    """Where the tokens of a prompt came from, by the fields of a Completion."""

    prompt_tokens: int
    cached_tokens: int
    restored_tokens: int
    replayed_tokens: int
    computed_tokens: int
    held_tokens: int


def prompt_counts(sequence: GenerationState) -> PromptCounts:
    return {
        "prompt_tokens": sequence.n_prompt,
        "cached_tokens": sequence.n_cached,
        "restored_tokens": sequence.n_restored,
        "replayed_tokens": sequence.n_replayed,
        "computed_tokens": sequence.prefill_rows,
        "held_tokens": sequence.n_computed,
    }


class Pace(TypedDict):
    """How fast a generation was, by the fields of a Completion; 0 for what there was too little of."""

    ttft_ms: float
    itl_ms_p50: float
    itl_ms_p95: float
    prefill_tps: float
    decode_tps: float
    restore_ms: float
    prefill_ms: float
    decode_ms: float


def pace(sequence: GenerationState) -> Pace:
    times, read = sequence.token_times, sequence.prefill_seconds
    gaps = sorted(1000 * (b - a) for a, b in itertools.pairwise(times))
    decoding = times[-1] - times[0] if times else 0.0
    return {
        "ttft_ms": 1000 * (times[0] - sequence.started) if times else 0.0,
        "itl_ms_p50": statistics.median(gaps) if gaps else 0.0,
        "itl_ms_p95": gaps[min(len(gaps) - 1, int(0.95 * len(gaps)))] if gaps else 0.0,
        "prefill_tps": sequence.prefill_rows / read if read else 0.0,
        "decode_tps": len(gaps) / decoding if decoding > 0 else 0.0,
        "restore_ms": 1000 * sequence.restore_seconds,
        "prefill_ms": 1000 * read,
        "decode_ms": 1000 * decoding,
    }
