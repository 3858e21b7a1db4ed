"""An engine on another machine, or in another program: anything that speaks the OpenAI protocol."""

import itertools
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from localrun.base.check import check_request
from localrun.base.errors import EngineDiedError, EngineError, LocalrunError, NotFoundError
from localrun.base.events import CacheView, Channel, Completion, Done, Event, Loop, ModelInfo, StopReason, Token
from localrun.base.request import Request
from localrun.client.endpoint import Endpoint, place_of
from localrun.client.http_errors import no_api
from localrun.client.interface import Generation
from localrun.client.remote_http import End, Exchange, Json, LeftOut, get_json
from localrun.engine.loops import CHECK_TOKENS, loop_period
from localrun.text.reasoning import ReasoningSplitter

MAX_MODELS = 10_000
FEWEST_PIECES, LEAST_SECONDS = 8, 0.2  # of a stream that tell a rate: what was held back on the way comes at once
_THINKING = ("reasoning_content", "reasoning", "thinking")
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "presence_penalty", "frequency_penalty", "seed")
_CONTEXT = ("max_model_len", "context_length", "context_window", "n_ctx", "n_ctx_train")


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model a server offers, by the name it goes by there. `ctx` is 0 where the server does not tell."""

    id: str
    ctx: int = 0


def list_models(endpoint: Endpoint) -> tuple[RemoteModel, ...]:
    """The models of a server. LocalrunError says why it has none to list."""
    status, answer = get_json(endpoint, "/models")
    place = place_of(endpoint)
    if status != 200:
        what = f"{place.host} has no list of models at {place.path}/models"
        raise NotFoundError(what, "the address of an API usually ends in /v1; or give the model's name yourself")
    rows = answer.get("data") if isinstance(answer, dict) else answer
    if not isinstance(rows, list):
        raise no_api(place)
    return tuple(_model(row) for row in rows[:MAX_MODELS] if isinstance(row, dict) and isinstance(row.get("id"), str))


class RemoteClient:
    """One model of an endpoint. Sends the conversation there with every request; holds no cache of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        started = time.perf_counter()
        place = place_of(endpoint)
        model = _find_model(endpoint)
        self._endpoint = Endpoint(endpoint.name, endpoint.url, endpoint.key, model.id)
        self._exchanges: set[Exchange] = set()
        notes = [f"what you write goes to {place.host}"]
        if place.origin[0] == "http" and not place.is_here:
            notes.append(
                "without encryption: others on the network can read it" + (", and the key" * bool(endpoint.key))
            )
        milliseconds = 1000 * (time.perf_counter() - started)
        self._info = ModelInfo(
            name=model.id,
            path="",
            arch="",
            precision="",
            backend="remote",
            kv_codec="",
            ctx=model.ctx,
            weights_bytes=0,
            load_ms=milliseconds,
            notes=("; ".join(notes),),
        )

    @property
    def info(self) -> ModelInfo:
        return self._info

    def generate(self, request: Request) -> Generation:
        """Answer a request. EngineDiedError when the server breaks off, after what had arrived."""
        check_request(request)
        page, body = _body(request, self._endpoint.model)
        exchange = Exchange(self._endpoint, page, body)
        self._exchanges.add(exchange)
        return Generation(self._events(exchange, _Answer(self._info, request)), exchange.cancel)

    def _events(self, exchange: Exchange, answer: "_Answer") -> Iterator[Event]:
        try:
            while True:
                piece = exchange.next_piece()
                if piece is None or exchange.is_cancelled:
                    break
                if isinstance(piece, LocalrunError):
                    yield from answer.flush()
                    raise piece
                if isinstance(piece, LeftOut):
                    answer.notes.append(f"the server does not take {piece.name}: asked without it")
                elif isinstance(piece, End):
                    yield from answer.flush()
                    answer.check_whole(exchange.place.host)
                    break
                else:
                    yield from answer.push(piece)
                    if answer.begins_to_loop():
                        yield Loop(answer.loop_period)
                        if answer.stops_on_loop:
                            break
            yield from answer.flush()
            yield Done(answer.completion("cancelled" if exchange.is_cancelled else None))
        finally:
            self._exchanges.discard(exchange)
            exchange.cancel()

    def view(self) -> CacheView | None:
        """None: a server does not tell."""
        return None

    def close(self) -> None:
        """Hang up on the server; what has arrived is kept."""
        for exchange in list(self._exchanges):
            exchange.cancel()

    def __enter__(self) -> "RemoteClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Answer:
    """Chunks on their way to events, text and figures."""

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
        # Some servers leave the tags in the text; only what begins an answer is taken for them.
        self._splitter: ReasoningSplitter | None = ReasoningSplitter("<think>", "</think>")

    def push(self, chunk: Json) -> Iterator[Token]:
        """The events of one chunk, be it a delta of a stream, a whole message, or figures only."""
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = usage
        choice = _first(chunk.get("choices"))
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

    def flush(self) -> Iterator[Token]:
        """What was held back because it might have been a tag."""
        if self._splitter is not None:
            for channel, text in self._splitter.flush():
                yield self._token(channel, text)

    def begins_to_loop(self) -> bool:
        """Whether the answer is seen to repeat itself, for the first time.

        Servers send no ids but text, nearly always a token at a time: its pieces stand for them. A server that cuts its
        text anew each time round is not noticed.
        """
        if self.loop_period or len(self._pieces) - self._looked_at < CHECK_TOKENS:
            return False
        self._looked_at = len(self._pieces)
        self.loop_period = loop_period(self._pieces)
        return self.loop_period > 0

    def check_whole(self, host: str) -> None:
        """EngineDiedError unless the server said that it was done."""
        if not self._finish and not self._times and not self._usage:
            raise EngineError(f"{host} ended its answer before it began", "send the message again")
        if not self._finish:
            what = f"{host} broke off in the middle of its answer"
            raise EngineDiedError(what, "send the message again; what has arrived is kept")

    def completion(self, reason: StopReason | None) -> Completion:
        """The figures: the server's own counts where it gives them, and times as they were here."""
        gaps = sorted(1000 * (b - a) for a, b in itertools.pairwise(self._times))
        n_prompt, details = _said(self._usage, "prompt_tokens"), self._usage.get("prompt_tokens_details")
        n_tokens = _count(self._usage, "completion_tokens") or len(self._times)
        if "completion_tokens" not in self._usage and self._times:
            self.notes.append("the server gives no counts: pieces of text were counted as tokens")
        if self._finish == "content_filter":
            self.notes.append("a filter of the server ended the answer")
        if self._finish in ("tool_calls", "function_call"):
            self.notes.append("the server wants to call a tool, which is not shown")
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
            cached_tokens=_said(details, "cached_tokens"),
            completion_tokens=n_tokens,
            token_ids=(),
            load_ms=self._info.load_ms,
            ttft_ms=1000 * ttft,
            itl_ms_p50=statistics.median(gaps) if gaps else 0.0,
            itl_ms_p95=gaps[min(len(gaps) - 1, int(0.95 * len(gaps)))] if gaps else 0.0,
            prefill_tps=None,  # the time to the first piece is that of the network and of a queue, too
            decode_tps=(n_tokens - 1) / seconds if tells_rate else None,
            peak_rss=None,
            kv_bytes=None,
            kv_codec="",
            ctx=self._info.ctx,
            seed=self._seed,
            notes=tuple(self.notes),
            loop_period=self.loop_period,
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


def _find_model(endpoint: Endpoint) -> RemoteModel:
    """The model to ask; where the server lists none, the name is believed."""
    try:
        models = list_models(endpoint)
    except NotFoundError:
        if not endpoint.model:
            raise
        return RemoteModel(endpoint.model)
    host = place_of(endpoint).host
    if not models and not endpoint.model:
        raise NotFoundError(f"{host} has no models", "load one there")
    found = [model for model in models if model.id == endpoint.model] if endpoint.model else [models[0]]
    if models and not found:
        some = ", ".join(model.id for model in models[:5]) + (" …" if len(models) > 5 else "")
        raise NotFoundError(f"{host} has no model {endpoint.model}", f"it has {some}")
    return found[0] if found else RemoteModel(endpoint.model)


def _model(row: Json) -> RemoteModel:
    sizes = {**(row["meta"] if isinstance(row.get("meta"), dict) else {}), **row}
    return RemoteModel(row["id"], next((n for name in _CONTEXT if (n := _count(sizes, name))), 0))


def _body(request: Request, model: str) -> tuple[str, Json]:
    """The page to ask, and the request in its words; what was not chosen is left to the server."""
    sampling = request.sampling
    body: Json = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
    body |= {name: value for name in _SAMPLING if (value := getattr(sampling, name)) is not None}
    if sampling.repeat_penalty is not None:  # vLLM has one word for it, llama.cpp another
        body |= {"repeat_penalty": sampling.repeat_penalty, "repetition_penalty": sampling.repeat_penalty}
    if sampling.logit_bias:
        body["logit_bias"] = {str(token): bias for token, bias in sampling.logit_bias.items()}
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.stop:
        body["stop"] = list(request.stop)
    if request.prompt is not None:
        return "/completions", {**body, "prompt": request.prompt}
    if request.think != "auto":
        body["chat_template_kwargs"] = {"enable_thinking": request.think == "on"}
    if request.tools:
        body["tools"] = [dict(tool) for tool in request.tools]
    return "/chat/completions", {**body, "messages": list(request.messages)}


def _first(values: Any) -> Json:
    return values[0] if isinstance(values, list) and values and isinstance(values[0], dict) else {}


def _said(values: Any, name: str) -> int | None:
    """A number of tokens, None where the server gives none."""
    return _count(values, name) if isinstance(values, dict) and name in values else None


def _count(values: Any, name: str) -> int:
    """A number of tokens as a server gives it: 0 for anything that is none."""
    value = values.get(name) if isinstance(values, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else 0
