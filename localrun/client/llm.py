"""The Python surface: one model, a few calls."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, assert_never

from localrun.base.adapter_choice import AdapterChoice, read_adapter
from localrun.base.check import check, check_load, check_request
from localrun.base.constraint import Constraint, of_schema, one_constraint
from localrun.base.content import TextPart, as_message_content
from localrun.base.errors import UsageError
from localrun.base.events import (
    Accepted,
    Completion,
    Done,
    ImageProgress,
    Loop,
    Prefill,
    PromptLogprobs,
    Token,
    ToolCallDelta,
)
from localrun.base.options import python_spelling
from localrun.base.request import (
    BackendName,
    KVCodecName,
    LoadOptions,
    Request,
    RequestImage,
    RequestMessage,
    Sampling,
    Think,
)
from localrun.base.tool_choice import names_of, tool_wish
from localrun.chat.images import seen_image
from localrun.client.interface import EngineClient, Generation
from localrun.client.schemas import schema_of

if TYPE_CHECKING:
    import numpy as np


class Options(TypedDict, total=False):
    """Options of every call; the default of one left out is the model's, or localrun's."""

    max_tokens: int | None  # longest answer; None: to the end of the context
    temperature: float | None  # 0 always takes the likeliest token
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repeat_penalty: float | None
    presence_penalty: float | None
    frequency_penalty: float | None
    logit_bias: Mapping[int, float]  # added to the logits, by token id
    seed: int | None  # the same one gives the same answer
    stop: str | Sequence[str]  # end before any of these
    stop_on_loop: bool  # end an answer that only repeats itself
    think: Think
    tools: Sequence[Mapping[str, Any]]  # in the OpenAI shape; `strict` ones are held to all of their schema, or refused
    tool_choice: Any  # auto, none, required, the name of a tool, or what OpenAI's protocols have
    parallel_tool_calls: bool  # more than one call in an answer
    schema: Any  # the answer is JSON that holds to a JSON schema (a dict), a dataclass, or a class of pydantic
    lenient: bool  # leave out what of it answers cannot be held to; notes of the answer say what
    regex: str  # the whole answer matches it
    grammar: str  # the answer is of it; in llguidance's dialect of Lark


class LLM:
    """A model to generate with. Weights load at the first call; calls on one LLM reuse each other's prefixes.

    A context manager. One without references frees its memory and threads. What is wrong with a call is a
    LocalrunError, whose hint says what to try.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        server: str | None = None,
        precision: str = "auto",
        backend: BackendName = "auto",
        device: int | None = None,
        threads: int | None = None,
        ctx: int | None = None,
        kv: KVCodecName = "auto",
        window: int | None = None,
        prefix_cache: bool = True,
        disk_cache: int = 0,
        packed_weights: int | None = 0,
        draft: str | Path = "auto",
        lora: str | Path | Sequence[str | Path] = (),
    ) -> None:
        """`model`: a path, a name of `localrun list`, or org/repo; None: the built-in one. `precision` chooses among
        those on disk. With `server`, a name of `localrun host list` or an address (its key is in LOCALRUN_SERVER_KEY),
        a model there answers, None: its first one, and the options below, which are the server's, are refused.

        `ctx=None`: as much as the model allows and memory holds. `window`: see only the first block and the last so
        many tokens. `disk_cache`: bytes of disk that what was computed may take, to be there the next time;
        `packed_weights`: those that weights may take as the kernels read them, for the next start, None: an eighth of
        what is free. `draft`: guess tokens ("lookup", "mtp", or the path of a model that drafts), and verify several in
        a step, which changes no answer.
        `device`: which NVIDIA GPU of several, as CUDA counts them; one for each process.
        `lora`: adapters beside its weights, FILE or FILE:SCALE each.
        """
        check(model is None or isinstance(model, str | Path), "model", model, "a name or a path is needed")
        check(isinstance(precision, str), "precision", precision, "a text is needed, such as Q4_K_M")
        check(server is None or isinstance(server, str), "server", server, "a name or an address is needed")
        self.model, self.precision, self.server = model or ("" if server else "builtin"), precision, server
        self.options = LoadOptions(
            Path(),
            backend=backend,
            device=device,
            threads=threads,
            ctx=ctx,
            kv=kv,
            window=window,
            prefix_cache=prefix_cache,
            disk_cache=disk_cache,
            packed_weights=packed_weights,
            draft=str(draft),
            adapters=adapters_of(lora),
        )
        check_load(self.options)
        if server is not None and (self.options != LoadOptions(Path()) or precision != "auto"):
            raise UsageError("how a model is held is the server's choice", "leave these options out, or `server`")
        self._client: EngineClient | None = None

    def generate(
        self, prompt: str, *, images: Sequence[str | Path | bytes] = (), **options: Unpack[Options]
    ) -> Completion:
        """Answer a prompt as one user message, after `images`: paths of files, or their bytes."""
        return self._answer(*seen_message(prompt, images), options)

    def chat(self, messages: Sequence[RequestMessage], **options: Unpack[Options]) -> Completion:
        """Answer the last of several messages ({"role": …, "content": …})."""
        return self._answer(messages, (), options)

    def stream(
        self, prompt: str, *, images: Sequence[str | Path | bytes] = (), **options: Unpack[Options]
    ) -> Iterator[str]:
        """The answer to a prompt, piece by piece. Leaving the iterator early cancels the rest."""
        with python_spelling():
            return texts(self._begin(*seen_message(prompt, images), options))

    def hidden(self, text: str | Sequence[int]) -> "np.ndarray":
        """Hidden rows after the last norm, f32 [n_tokens, hidden_size], of token ids, or of a text after the BOS token
        that the model may want: `last_hidden_state` in transformers. Raises UsageError for a model elsewhere."""
        from localrun.client.local import LocalClient

        is_ids = isinstance(text, Sequence) and all(isinstance(one, int) for one in text)
        check(isinstance(text, str) or is_ids, "text", text, "a text or token ids are needed")
        with python_spelling():
            if not isinstance(client := self._opened(), LocalClient):
                raise UsageError("a model on a server tells no hidden rows", "name a model of this machine")
            return client.hidden(text)

    def close(self) -> None:
        """Free the model; the next call loads it again."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def __enter__(self) -> "LLM":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(
        self, messages: Sequence[RequestMessage], images: Sequence[RequestImage], options: Options
    ) -> Completion:
        with python_spelling():
            for event in self._begin(messages, images, options):
                if isinstance(event, Done):
                    return event.completion
        raise AssertionError("a generation always ends with Done")

    def _begin(
        self, messages: Sequence[RequestMessage], images: Sequence[RequestImage], options: Options
    ) -> Generation:
        return self._opened().generate(replace(request_for(messages, options), images=tuple(images)))

    def _opened(self) -> EngineClient:
        if self._client is None:
            self._client = self._open()
        return self._client

    def _open(self) -> "EngineClient":
        if self.server is not None:
            from localrun.client.remote.client import RemoteClient
            from localrun.client.remote.endpoints import server_named

            return RemoteClient(replace(server_named(self.server), model=str(self.model)))
        from localrun.client.local import LocalClient
        from localrun.hub.resolve import resolve

        found = resolve(str(self.model), self.precision)
        return LocalClient(replace(self.options, path=found.path, name=found.name, precision=found.precision))


def request_for(messages: Sequence[RequestMessage], options: Options) -> Request:
    """The request of a call. Raises UsageError for an unknown option or a bad value."""
    unknown = sorted(set(options) - set(Options.__annotations__))
    if unknown:
        known = ", ".join(sorted(Options.__annotations__))
        raise UsageError(f"unknown option {', '.join(unknown)}", f"known options: {known}")
    is_list = isinstance(messages, Sequence) and not isinstance(messages, str | bytes)
    check(is_list, "messages", messages, '[{"role": "user", "content": "…"}] is needed')
    values: dict[str, Any] = dict(options)
    for name in ("stop", "tools"):
        if name in values:
            value = values[name]
            one = (value,) if isinstance(value, str) else value
            check(isinstance(one, Sequence) and not isinstance(one, bytes), name, value, "a list is needed")
            values[name] = tuple(one)
    values |= _tool_choice(values)
    chosen = {name: values.pop(name) for name in Sampling.__dataclass_fields__ if name in values}
    values["constraint"] = _constraint(values)
    request = Request(messages=tuple(messages), sampling=Sampling(**chosen), chat_id="python", priority="api", **values)
    check_request(request)
    return request


def _tool_choice(values: dict[str, Any]) -> dict[str, Any]:
    """The choice among tools, which is taken out of the options, as a request has it."""
    given = values.pop("tool_choice", None)
    is_name = isinstance(given, str) and given in names_of(values.get("tools", ()))
    try:
        wish = tool_wish({"type": "function", "name": given} if is_name else given)
    except ValueError as error:
        raise UsageError(f"tool_choice is {given!r}", str(error)) from None
    several = values.pop("parallel_tool_calls", True) if not wish.is_single else False
    return {"tool_choice": wish.choice, "allowed_tools": wish.allowed, "parallel_tool_calls": several}


def _constraint(values: dict[str, Any]) -> Constraint | None:
    """The constraint among options, which are taken out."""
    schema, lenient = values.pop("schema", None), values.pop("lenient", False)
    texts = {name: values.pop(name, None) for name in ("regex", "grammar")}
    for name, text in texts.items():
        check(text is None or isinstance(text, str), name, text, "a text is needed")
    check(isinstance(lenient, bool), "lenient", lenient, "True or False is needed")
    source = None if schema is None else of_schema(schema_of(schema)).source
    return one_constraint(source, **texts, is_lenient=lenient)


def adapters_of(lora: object) -> tuple[AdapterChoice, ...]:
    """The adapters of a call, one or several. Raises UsageError."""
    wanted = [lora] if isinstance(lora, str | Path) else lora
    check(isinstance(wanted, Sequence), "lora", lora, "FILE, FILE:SCALE, or a list of these is needed")
    found = []
    for one in wanted:  # type: ignore[attr-defined]
        try:
            check(isinstance(one, str | Path), "lora", one, "FILE or FILE:SCALE is needed")
            found.append(read_adapter(one))
        except ValueError as error:
            check(False, "lora", one, str(error))
    return tuple(found)


def seen_message(prompt: str, images: Sequence[str | Path | bytes]) -> tuple[list[RequestMessage], list[RequestImage]]:
    """A message of the user with images before its text. Raises ImageError for one that cannot be seen."""
    check(isinstance(prompt, str), "prompt", prompt, "a text is needed")
    check(isinstance(images, list | tuple), "images", images, "a list of paths or of the bytes of files is needed")
    seen = [seen_image(given_image(one)) for one in images]
    content = as_message_content((*(part for part, _ in seen), TextPart(prompt)))
    return [{"role": "user", "content": content}], [image for _, image in seen]


def given_image(given: object) -> Path | bytes:
    """An image by its path or its bytes. Raises UsageError for anything else."""
    if isinstance(given, bytes):
        return given
    check(isinstance(given, str | Path), "images", given, "paths of files are needed, or their bytes")
    assert isinstance(given, str | Path)
    return Path(given)


def texts(generation: Generation) -> Iterator[str]:
    """The pieces of text that belong to the answer."""
    try:
        with python_spelling():
            for event in generation:
                match event:
                    case Token(_, text, "answer") if text:
                        yield text
                    case Accepted() | ImageProgress() | Token() | Prefill() | PromptLogprobs():
                        pass
                    case ToolCallDelta() | Loop() | Done():
                        pass
                    case _:
                        assert_never(event)
    finally:
        generation.cancel()
