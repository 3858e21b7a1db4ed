"""An engine on another machine, or in another program: anything that speaks the OpenAI protocol."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any

from localrun.base.check import check_request
from localrun.base.constraint import Constraint
from localrun.base.content import with_files_as_text
from localrun.base.errors import LocalrunError, UsageError
from localrun.base.events import Done, Event, Loop, ModelInfo, Prefill
from localrun.base.request import RANKS, Json, Request, RequestMessage, Think
from localrun.base.views import CacheView, PromptView, ServerLoad
from localrun.client.chat_salt import chat_salt, home_secret
from localrun.client.interface import Generation
from localrun.client.remote.answer import RemoteAnswer
from localrun.client.remote.count import count_prompt
from localrun.client.remote.endpoint import Endpoint, place_of
from localrun.client.remote.http import DroppedField, End, Exchange, with_schema_in_object
from localrun.client.remote.images import with_image_data
from localrun.client.remote.logprobs import FIELDS, asking_fields
from localrun.client.remote.metrics import read_load
from localrun.client.remote.models import find_model
from localrun.client.remote.probe import probe
from localrun.client.remote.tokenizer import DiskTokenizer
from localrun.text.reasoning import ReasoningTags

LOAD_SECONDS = 2.0
ON_THIS_MACHINE = "choose a model on this machine"
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "presence_penalty", "frequency_penalty", "seed")


class RemoteClient:
    """One model of an endpoint. Sends the conversation there with every request; holds no cache of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        started = time.perf_counter()
        place = place_of(endpoint)
        model = find_model(endpoint)
        self._endpoint = replace(endpoint, model=model.id)
        self._tokenizer = DiskTokenizer(endpoint, model.id)
        self._profile = probe(endpoint, model)
        self._engine = self._profile.engine
        self._secret = home_secret() if self._engine.chat else b""
        self._hinted = False
        self._load: ServerLoad | None = None
        self._load_until = 0.0
        self._exchanges: set[Exchange] = set()
        self._refused: dict[str, str] = {}  # fields that the server does not take, and the name that it has for them
        self._opened: dict[Think, ReasoningTags] = {}  # thoughts that its prompts open, as answers have shown
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
            ctx=self._profile.ctx,
            weights_bytes=0,
            load_ms=milliseconds,
            notes=("; ".join(notes),),
            engine="remote",
            why_blind="" if (blind := self._profile.why_blind) is None else f"{blind}: {ON_THIS_MACHINE}",
            server_says=self._profile.lines,
        )

    @property
    def info(self) -> ModelInfo:
        return self._info

    def generate(self, request: Request) -> Generation:
        """Answer a request. Raises EngineDiedError when the server breaks off, after the events that arrived."""
        check_request(request)
        if request.prompt_logprobs is not None:
            raise UsageError("a server is not asked for logprobs of a prompt", ON_THIS_MACHINE)
        if request.images and (why := self._profile.why_blind) is not None:
            raise UsageError(why, ON_THIS_MACHINE)
        if request.constraint is not None:
            check_remote(request.constraint)
        self._profile.check(request)
        page, body = _body(request, self._endpoint.model)
        exchange = Exchange(self._endpoint, page, self._known_to_be_taken({**body, **self._extras(request)}))
        self._exchanges.add(exchange)
        opened = None if request.continues else self._opened.get(request.think)
        return Generation(self._events(exchange, RemoteAnswer(self._info, request, opened), request), exchange.cancel)

    def _extras(self, request: Request) -> Json:
        """Fields that this engine takes beyond the protocol."""
        chat = {self._engine.chat: chat_salt(self._secret, request.chat_id)} if self._engine.chat else {}
        effort = {"reasoning_effort": _effort(request)} if self._engine.efforts and request.think != "auto" else {}
        return self._engine.streaming | chat | effort | self._rank(request) | self._going_on(request)

    def _rank(self, request: Request) -> Json:
        """Place of a request in the queue there, unless it is the usual one, or the engine says that it heeds none."""
        rank = RANKS[request.priority]
        heeds = self._engine.ranks and self._profile.abilities.get("priorities") is not False
        return {"priority": rank} if rank and heeds else {}

    def _going_on(self, request: Request) -> Json:
        """Fields of a request for the rest of an answer that was cut. Raises UsageError."""
        if not request.continues:
            return {}
        if self._engine.continues is None or not request.messages[-1].get("content"):
            what = "within a thought" if self._engine.continues else "on this server"
            raise UsageError(f"an answer that was cut {what} cannot be gone on with", "ask it to go on in a message")
        return self._engine.continues

    def _known_to_be_taken(self, body: Json) -> Json:
        """The body without the fields that the server has refused before."""
        taken = {name: value for field, value in body.items() if (name := self._refused.get(field, field))}
        if "json_schema" in self._refused and "response_format" in taken:
            taken["response_format"] = with_schema_in_object(taken["response_format"])
        return taken

    def _note_dropped(self, field: DroppedField, request: Request) -> str:
        """Remember a refused field. Returns the note for the user; empty where nothing is lost."""
        if field.instead or field.name in (*self._engine.streaming, self._engine.chat, *FIELDS):
            self._refused[field.name] = field.instead
            return ""
        if field.name.startswith("max_"):  # of this request only: there was no room for as long an answer
            return f"there is no room for {request.max_tokens:,} tokens: the answer may be as long as the context"
        self._refused[field.name] = ""
        return f"the server does not take {field.name}: asked without it"

    def _events(self, exchange: Exchange, answer: RemoteAnswer, request: Request) -> Iterator[Event]:
        try:
            while True:
                piece = exchange.next_piece()
                if piece is None or exchange.is_cancelled:
                    break
                if isinstance(piece, LocalrunError):
                    yield from answer.flush()
                    raise piece
                if isinstance(piece, DroppedField):
                    if note := self._note_dropped(piece, request):
                        answer.notes.append(note)
                elif isinstance(piece, Prefill):
                    yield piece
                elif isinstance(piece, End):
                    yield from answer.flush()
                    answer.check_whole(exchange.place.host)
                    break
                else:
                    yield from answer.push(piece)
                    if answer.begins_to_loop():
                        yield Loop(answer.loop_period)
                    if answer.is_over:
                        break
            yield from answer.flush()
            answer.connect_ms = exchange.connect_ms
            self._hint_at_counts(answer, exchange)
            answer.notes += filter(None, [self._tokenizer.compare(request, answer.n_prompt)])
            done = Done(answer.completion("cancelled" if exchange.is_cancelled else None))
            if answer.found_open is not None:
                self._opened[request.think] = answer.found_open
            yield done
        finally:
            self._exchanges.discard(exchange)
            exchange.cancel()

    def _hint_at_counts(self, answer: RemoteAnswer, exchange: Exchange) -> None:
        """Note once by which option the engine would count cached tokens, where it counts all others."""
        if self._engine.counts_by and answer.lacks_cached and not exchange.is_cancelled and not self._hinted:
            self._hinted = True
            answer.notes.append(
                f"{self._engine.name} counts cached tokens if it is started with {self._engine.counts_by}"
            )

    def preview(self, request: Request, pieces: bool = False) -> PromptView | None:
        """The prompt as the server's own tokenizer reads it, else one on this disk; None where there is neither."""
        check_request(request)
        _, body = _body(request, self._endpoint.model)
        if request.prompt_ids:
            return PromptView(len(request.prompt_ids), None)
        found = count_prompt(self._endpoint, self._engine, body | self._going_on(request), pieces)
        return found or self._tokenizer.count(request, pieces)

    def view(self) -> CacheView | None:
        """Always None: a server does not show its cache."""
        return None

    def load(self) -> ServerLoad | None:
        """The load of the server, not older than LOAD_SECONDS; None where it does not show it."""
        now = time.monotonic()
        if now >= self._load_until:
            self._load, self._load_until = read_load(self._endpoint, self._engine), now + LOAD_SECONDS
        return self._load

    def close(self) -> None:
        """Close the connection; what has arrived is kept."""
        for exchange in list(self._exchanges):
            exchange.cancel()

    def __enter__(self) -> "RemoteClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _body(request: Request, model: str) -> tuple[str, Json]:
    """Path and body of the call; options that were not chosen are left to the server."""
    sampling = request.sampling
    body: Json = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
    body |= {name: value for name in _SAMPLING if (value := getattr(sampling, name)) is not None}
    if sampling.repeat_penalty is not None:  # vLLM and llama.cpp name it differently
        body |= {"repeat_penalty": sampling.repeat_penalty, "repetition_penalty": sampling.repeat_penalty}
    if sampling.logit_bias:
        body["logit_bias"] = {str(token): bias for token, bias in sampling.logit_bias.items()}
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.stop:
        body["stop"] = list(request.stop)
    if request.constraint is not None:
        body["response_format"] = response_format(request.constraint)
    if request.prompt_ids or request.prompt is not None:
        prompt = {"prompt": list(request.prompt_ids) or request.prompt}
        return "/completions", body | prompt | asking_fields(request, is_chat=False)
    body |= asking_fields(request, is_chat=True)
    if request.think != "auto":
        body["chat_template_kwargs"] = {"enable_thinking": request.think == "on", "reasoning_effort": _effort(request)}
    if request.tools:
        body["tools"] = [dict(tool) for tool in request.tools]
        body |= _choice(request)
    return "/chat/completions", {**body, "messages": [_message(message, request) for message in request.messages]}


def _effort(request: Request) -> str:
    """The wish to think, for templates and engines that know levels of it."""
    return "high" if request.think == "on" else "low"


def _choice(request: Request) -> Json:
    """Which tools may or must be called, where that is not left to the model."""
    choice: Any = request.tool_choice
    if request.allowed_tools:
        tools = [{"type": "function", "function": {"name": name}} for name in request.allowed_tools]
        choice = {"type": "allowed_tools", "allowed_tools": {"mode": choice, "tools": tools}}
        if request.tool_choice == "required" and len(tools) == 1:  # which every server knows
            choice = tools[0]
    body: Json = {} if choice == "auto" else {"tool_choice": choice}
    return body if request.parallel_tool_calls else {**body, "parallel_tool_calls": False}


def check_remote(constraint: Constraint) -> None:
    """Raise UsageError for options that the protocol lacks."""
    if constraint.kind != "json_schema":
        what = f"a server cannot be asked to hold to a {constraint.name}"
        raise UsageError(what, "give a JSON schema, or choose a model on this machine")


def response_format(constraint: Constraint) -> Json:
    """A schema as a field of the protocol."""
    schema = {"name": "answer", "schema": json.loads(constraint.source), "strict": not constraint.is_lenient}
    return {"type": "json_schema", "json_schema": schema}


def _message(message: RequestMessage, request: Request) -> RequestMessage:
    """A message with files as text, images as data, and without an empty thought, which some servers refuse."""
    plain = with_files_as_text(message)
    if request.images and isinstance(plain.get("content"), list):
        plain["content"] = with_image_data(plain["content"], request.images)
    return {name: value for name, value in plain.items() if name != "reasoning_content" or value}
