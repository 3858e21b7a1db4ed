"""Turn token ids into an answer: text by channel, stop strings, figures."""

import itertools
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from localrun.base.draft_figures import DraftFigures
from localrun.base.events import (
    CacheFigures,
    Channel,
    Completion,
    ImageFigures,
    ImageProgress,
    Loop,
    MemoryFigures,
    ModelInfo,
    Prefill,
    PromptLogprobs,
    Timings,
    Token,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
)
from localrun.engine.figures import GenerationFigures
from localrun.engine.generation import GenerationState
from localrun.engine.handle import Finished, GenerationHandle, NewToken
from localrun.text.answer_parser import AnswerParser
from localrun.text.model_text import PromptIds
from localrun.text.stop import StopStrings


class AnswerStream:
    """The text of one generation. `hit` is set when a stop string ended the answer, with `is_single` also by a call."""

    def __init__(self, parser: AnswerParser, stops: Iterable[str], is_single: bool = False) -> None:
        self.parser = parser
        self.stops = StopStrings(stops)
        self.hit, self._is_single = False, is_single
        self.texts: dict[Channel, list[str]] = {"answer": [], "thinking": []}
        self.n_tokens = self.n_thinking = 0
        self._calls: list[list[ToolCallDelta]] = []

    def push(self, token_id: int) -> Iterator[Token | ToolCallDelta]:
        """The events of one new token: one, or more when its text spans thinking, answer and calls."""
        self.n_tokens += 1
        pieces = self.parser.push(token_id)
        if not pieces or isinstance(pieces[0], ToolCallDelta):
            yield self.token(token_id, "answer", "")
        for index, piece in enumerate(pieces):
            if isinstance(piece, ToolCallDelta):
                yield from self._call(piece)
            else:
                yield self.token(token_id if index == 0 else None, *piece)

    def flush(self) -> Iterator[Token | ToolCallDelta]:
        """Text that was held back, after the last token."""
        for piece in self.parser.flush():
            if isinstance(piece, ToolCallDelta):
                yield from self._call(piece)
            else:
                yield self.token(None, *piece)
        rest = "" if self.hit else self.stops.flush()
        if rest:
            self.texts["answer"].append(rest)
            yield Token(None, rest, "answer")

    def with_logprob(self, token: Token, logprob: TokenLogprob | None) -> Token:
        """The event of a token with its logprob, which further events of the same token go without."""
        if logprob is None or token.token_id is None:
            return token
        return replace(token, logprob=self.spelled(logprob))

    def spelled(self, logprob: TokenLogprob) -> TokenLogprob:
        """The same logprob with the bytes of its tokens."""
        piece = self.parser.tokenizer.piece
        top = tuple(replace(other, piece=piece(other.token_id)) for other in logprob.top)
        return replace(logprob, top=top, piece=piece(logprob.token_id))

    def text(self, channel: Channel) -> str:
        return "".join(self.texts[channel])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls so far."""
        return tuple(
            ToolCall(parts[0].id, parts[0].name, "".join(part.arguments for part in parts), parts[-1].is_complete)
            for parts in self._calls
        )

    def _call(self, part: ToolCallDelta) -> Iterator[ToolCallDelta]:
        """A part of a call, unless a stop string came before it."""
        if self.hit:
            return
        if part.begins:
            self._calls.append([])
        self._calls[-1].append(part)
        self.hit = self._is_single and part.is_complete
        yield part

    def token(self, token_id: int | None, channel: Channel, text: str) -> Token:
        if channel == "answer":
            text, hit = ("", True) if self.hit else self.stops.push(text)
            self.hit = self.hit or hit
        self.texts[channel].append(text)
        self.n_thinking += channel == "thinking" and token_id is not None
        return Token(token_id, text, channel)


def stream_answer(
    handle: GenerationHandle, answer: AnswerStream
) -> Iterator[ImageProgress | Prefill | PromptLogprobs | Token | ToolCallDelta | Loop | GenerationState]:
    """Events of a generation; the last one is its GenerationState. Closing the iterator cancels the generation."""
    try:
        for event in handle:
            if isinstance(event, NewToken):
                if answer.hit:  # computed after the stop string, before the engine knew of it
                    continue
                for said in [Token(event.token_id, "", "answer")] if event.ends else answer.push(event.token_id):
                    yield answer.with_logprob(said, event.logprob) if isinstance(said, Token) else said
                if answer.hit:
                    handle.cancel()
            elif isinstance(event, Finished):
                yield from answer.flush()
                yield event.sequence
            elif isinstance(event, PromptLogprobs):
                yield PromptLogprobs(tuple(map(answer.spelled, event.tokens)))
            else:
                yield event
    finally:
        handle.cancel()


def completion(
    state: GenerationState, answer: AnswerStream, info: ModelInfo, prompt: PromptIds, kv_budget: int, peak_rss: int
) -> Completion:
    """The figures of a finished generation. Tokens after a stop string are no part of the answer, nor right drafts of
    it."""
    end = state.n_prompt + answer.n_tokens if answer.hit else None
    token_ids = tuple(state.token_ids[state.n_prompt : end])
    figures = state.figures
    n_accepted = figures.accepted_in(len(token_ids)) if answer.hit else figures.n_accepted
    return Completion(
        model=info.name,
        precision=info.precision,
        backend=info.backend,
        text=answer.text("answer"),
        thinking=answer.text("thinking"),
        stop_reason="stop" if answer.hit else state.stop_reason or "cancelled",
        prompt_tokens=state.n_prompt,
        cached_tokens=figures.n_cached,
        completion_tokens=len(token_ids),
        thinking_tokens=answer.n_thinking,
        token_ids=token_ids,
        kv_codec=info.kv_codec,
        ctx=info.ctx,
        seed=state.request.seed,
        path=info.path,
        notes=(*info.notes, *prompt.notes),
        tool_calls=answer.tool_calls,
        loop_period=state.loop_period,
        stop_string=answer.stops.found,
        work=info.work,
        timings=timings(figures, info.load_ms, prompt),
        cache=CacheFigures(
            figures.note, figures.n_restored, figures.n_replayed, figures.prefill_rows, held_tokens=state.n_computed
        ),
        drafts=DraftFigures(figures.n_drafted, n_accepted, figures.n_searched, figures.draft_gain, info.drafts_off),
        device=figures.device,
        seen=image_figures(state),
        memory=MemoryFigures(peak_rss, figures.kv_bytes, figures.kept_kv_bytes, kv_budget, info.mapped_bytes),
    )


def image_figures(state: GenerationState) -> ImageFigures:
    if state.images is None:
        return ImageFigures()
    rows = [place.source.span.n_rows for place in state.images.places]
    return ImageFigures(len(rows), sum(rows), 1000 * state.figures.encode_seconds)


def timings(figures: GenerationFigures, load_ms: float, prompt: PromptIds) -> Timings:
    """Rates of a generation; 0 where there were too few tokens."""
    times, read = figures.token_times, figures.prefill_seconds
    before = prompt.render_ms + prompt.tokenize_ms
    decoding = times[-1] - times[0] if times else 0.0
    p50, p95 = gaps_ms(times)
    return Timings(
        load_ms=load_ms,
        ttft_ms=before + 1000 * (times[0] - figures.started) if times else 0.0,
        itl_ms_p50=p50,
        itl_ms_p95=p95,
        prefill_tps=figures.prefill_rows / read if read else 0.0,
        decode_tps=(len(times) - 1) / decoding if decoding > 0 else 0.0,
        render_ms=prompt.render_ms,
        tokenize_ms=prompt.tokenize_ms,
        queue_ms=1000 * (figures.queue_seconds or 0.0),
        restore_ms=1000 * figures.restore_seconds,
        prefill_ms=1000 * read,
        decode_ms=1000 * decoding,
    )


def gaps_ms(times: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile of the time between tokens, in milliseconds; `times` in seconds. 0 for one token."""
    gaps = sorted(1000 * (b - a) for a, b in itertools.pairwise(times))
    return (statistics.median(gaps), gaps[min(len(gaps) - 1, int(0.95 * len(gaps)))]) if gaps else (0.0, 0.0)
