"""`localrun run`: one prompt, one answer."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from localrun.base.constraint import Constraint
from localrun.base.content import Content, FilePart, ImagePart, TextPart, as_message_content, text_of
from localrun.base.errors import NotFoundError, PromptTooLongError, UsageError
from localrun.base.events import Completion, Done, TokenLogprob
from localrun.base.request import Request, RequestImage, RequestMessage
from localrun.chat.images import seen_image
from localrun.chat.journal import Chat
from localrun.chat.sight import require_sight
from localrun.chat.turn import TurnOptions
from localrun.cli.chats import ContinueSwitch, begin, choice_for, open_for, open_store
from localrun.cli.completion import complete_model
from localrun.cli.console import at_terminal, note, write_json
from localrun.cli.constraint_options import ConstraintOptions
from localrun.cli.failure import CANCELLED
from localrun.cli.groups import AnswerOptions, EngineFlags, HubOptions, ModelOptions, ServerOption, switch
from localrun.cli.logprobs import logprob_fields, tell_logprobs
from localrun.cli.output import RunOutput, as_fields, stream_answer
from localrun.cli.session import Answering, open_engine
from localrun.cli.text_input import typed_text
from localrun.cli.text_options import TextOptions
from localrun.cli.tool_options import ToolOptions
from localrun.cli.tool_servers import ready_tools
from localrun.cli.turn import Stream, answer_in
from localrun.client.choice import ModelChoice
from localrun.client.interface import EngineClient
from localrun.hub.resolve import resolve

if TYPE_CHECKING:
    from localrun.tools.chat_tools import ChatTools


def run(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL] PROMPT", show_default=False, autocompletion=complete_model),
    ] = None,
    *,
    image: Annotated[
        list[str] | None, typer.Option("--image", metavar="FILE", help="an image that the model sees before PROMPT")
    ] = None,
    raw: Annotated[bool, switch("--raw", "the prompt as it is, without the chat template")] = False,
    go_on: ContinueSwitch = False,
    server: ServerOption = None,
    text: TextOptions,
    output: RunOutput,
    model: ModelOptions,
    hub: HubOptions,
    answer: AnswerOptions,
    constraints: ConstraintOptions,
    tools: ToolOptions,
    load: EngineFlags,
) -> int:
    """Answer one prompt. stdin, when it is a pipe or a file, is appended to PROMPT or is the prompt."""
    named, prompt = split_words(words or [], model.model)
    prompt = typed_text(prompt)
    model = replace(model, model=named)
    shared = Answering(answer, as_data=output.as_data)
    _check(output, shared, raw, go_on, text.in_parts and not prompt)
    _check_images(bool(image), raw, text.in_parts)
    constraint = constraints.constraint()
    chat_tools = tools.chat_tools() if tools.is_given else None
    _check_tools(chat_tools, raw, constraint)
    if not (prompt or text.file or image or output.json or constraint) and at_terminal():
        from localrun.cli.chat import chat

        return chat(
            go_on=go_on, server=server, model=model, hub=hub, answer=answer, tools=tools, load=load, output=output
        )
    last = begin(open_store(), True, answer.system, shared.system) if go_on else None
    choice = choice_for(last, model, hub, load, server)
    texts = text.texts(prompt)
    seen = _attach(last, image or [])
    stream, logprobs = _stream(output, answer.show_thinking, chat_tools)
    with closing(chat_tools) if chat_tools else nullcontext(), closing(_open(last, choice, load)) as client:
        options = replace(shared.options(last, constraint, ready_tools(chat_tools)), logprobs=output.logprobs)
        for line in () if output.as_data else client.info.notes:
            note(line)
        whole = _whole_prompt(client, prompt, texts, text)
        with _naming_in_parts(bool(texts)):
            if last is None:
                completion = stream(client, _request(options, shared.system, whole, raw, seen)).completion
            else:
                content: Content = (*(part for part, _ in seen), TextPart(whole))
                completion = _go_on(last, content, client, options, stream)
    _report(output, completion, client.info.notes, logprobs)
    return CANCELLED if completion.stop_reason == "cancelled" else 0


def _report(output: RunOutput, completion: Completion, told: Sequence[str], logprobs: list[TokenLogprob]) -> None:
    """Write what goes with an answer: notes that were not `told` before, that it is empty, the JSON of --json, or the
    logprobs, and the figures of --stats."""
    for line in () if output.as_data else completion.notes:
        if line not in told:
            note(line)
    if not (completion.text or output.as_data) and completion.stop_reason == "stop":
        note("the answer is empty: it ended before its first word")
    if output.json:
        wanted = {} if output.logprobs is None else {"logprobs": list(map(logprob_fields, logprobs))}
        write_json(as_fields(completion) | wanted)
    elif not output.as_data:
        tell_logprobs(logprobs)
    if output.stats:
        from localrun.cli.stats import show_stats

        show_stats(completion)


def _open(last: Chat | None, choice: ModelChoice, load: EngineFlags) -> EngineClient:
    """Open the engine that answers, in the chat `last` where that chat is continued."""
    program = "localrun run"
    return open_engine(choice, load, program) if last is None else open_for(last, choice, load, program)


def _check(output: RunOutput, shared: Answering, raw: bool, go_on: bool, lacks_question: bool) -> None:
    """Raise UsageError for options that exclude each other, or lack another."""
    if lacks_question:
        raise UsageError("--in-parts needs a question", 'localrun run --in-parts "What went wrong?" --file server.log')
    if output.json and output.jsonl:
        raise UsageError("--json and --jsonl exclude each other")
    if raw and go_on:
        raise UsageError("--raw has no chat to go on with", "leave one of --raw and --continue out")
    if raw and shared.system:
        raise UsageError("--raw leaves no place for a system message", "put it into the prompt, or leave --raw out")


def _check_images(sees: bool, raw: bool, in_parts: bool) -> None:
    """Raise UsageError for options that have no place for images."""
    blind = {"--raw": raw, "--in-parts": in_parts}
    for option in (name for name, is_given in blind.items() if sees and is_given):
        raise UsageError(f"--image has no place beside {option}", "leave one of the two out")


def _check_tools(tools: "ChatTools | None", raw: bool, constraint: Constraint | None) -> None:
    """Raise UsageError for options that cannot be combined with tools."""
    if tools and raw:
        raise UsageError("--raw has no place for tools", "leave one of --raw and --tools out")
    if tools and constraint is not None:
        what = f"the {constraint.name} constrains the answer from its first word, so no tool could be called"
        raise UsageError(what, "leave one of the two out")


def _whole_prompt(client: EngineClient, prompt: str, texts: list[tuple[str, str]], options: TextOptions) -> str:
    """Join PROMPT and the texts; with --in-parts the notes on those that do not fit. A question about long texts comes
    last, where small models see it best."""
    if options.in_parts:
        from localrun.cli.long_text import prompt_in_parts

        return prompt_in_parts(client, prompt, texts)
    if options.condensed and prompt:
        return text_of((*(FilePart(name, text) for name, text in texts), TextPart(prompt)))
    return "\n\n".join(text for text in (prompt, *(text for _, text in texts)) if text)


@contextmanager
def _naming_in_parts(has_texts: bool) -> Iterator[None]:
    """Name --in-parts where files or stdin make a prompt too long."""
    try:
        yield
    except PromptTooLongError as error:
        if not has_texts:
            raise
        hint = f"{error.hint}; `localrun run --condensed` reads a log, and --in-parts any text, part by part"
        raise PromptTooLongError(error.message, hint, error.n_tokens, error.ctx) from None


def split_words(words: list[str], model: str | None) -> tuple[str | None, str]:
    """Split the positional arguments into MODEL (None where none was named) and PROMPT."""
    if len(words) > 2 or (len(words) == 2 and model is not None):
        raise UsageError(f"{len(words)} words where one prompt is expected", "quote the prompt")
    if len(words) == 2:
        return words[0], words[1]
    prompt = words[0] if words else ""
    if prompt and model is None and at_terminal() and _is_model(prompt):
        hint = f'`localrun run -m {prompt} "…"` or `localrun chat {prompt}`'
        raise UsageError(f"{prompt} is a model, not a prompt", hint)
    return model, prompt


def _is_model(text: str) -> bool:
    try:
        return bool(resolve(text))
    except NotFoundError:
        return False


def _stream(
    output: RunOutput, show_thinking: bool, tools: "ChatTools | None"
) -> "tuple[partial[Done], list[TokenLogprob]]":
    """The function that runs a request and shows its answer in the chosen form, and the list that gets its logprobs."""
    logprobs: list[TokenLogprob] = []
    stream = partial(
        stream_answer,
        show_thinking=show_thinking,
        jsonl=output.jsonl,
        as_text=not output.as_data,
        tools=tools,
        logprobs=logprobs,
    )
    return stream, logprobs


def _attach(chat: Chat | None, paths: Sequence[str]) -> list[tuple[ImagePart, RequestImage | None]]:
    """Images for a request, or kept with the chat that goes on. Raises ImageError or StorageError."""
    files = [Path(path).expanduser() for path in paths]
    return [seen_image(file) if chat is None else (chat.images.attach(file), None) for file in files]


def _request(
    options: TurnOptions,
    system: str | None,
    prompt: str,
    raw: bool,
    seen: Sequence[tuple[ImagePart, RequestImage | None]],
) -> Request:
    messages: tuple[RequestMessage, ...] = ()
    if not raw:
        first = ({"role": "system", "content": system},) if system else ()
        content = as_message_content((*(part for part, _ in seen), TextPart(prompt)))
        messages = (*first, {"role": "user", "content": content})
    request = options.request(messages, prompt=prompt if raw else None)
    return replace(request, images=tuple(image for _, image in seen if image is not None))


def _go_on(chat: Chat, content: Content, client: EngineClient, options: TurnOptions, stream: Stream) -> Completion:
    """Answer a next message of a chat. Raises UsageError for images that the model does not see."""
    require_sight(client.info, content)
    chat.set_aside()
    message = chat.add_user(content)
    completion = answer_in(chat, message.id, client, options, stream).completion
    if chat.problem:
        note(chat.problem)
    return completion
