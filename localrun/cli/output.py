"""Output of an answer: its text as it comes, or JSON for a program."""

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from localrun.base.check import MAX_LOGPROBS
from localrun.base.content import CallPart
from localrun.base.dataclass import dataclass
from localrun.base.events import (
    Accepted,
    Channel,
    Completion,
    Done,
    ImageProgress,
    Loop,
    Prefill,
    PromptLogprobs,
    Token,
    TokenLogprob,
    ToolCallDelta,
)
from localrun.base.parsers import whole
from localrun.base.request import Request
from localrun.base.tool_events import CallsMade, ToolDone, ToolStarted, TurnEvent
from localrun.cli.console import AnswerWriter, PrefillNotes, ThinkingWriter, note, write_json
from localrun.cli.groups import checked, switch
from localrun.cli.logprobs import logprob_fields
from localrun.cli.session import CancelOnInterrupt
from localrun.client.interface import EngineClient, Generation
from localrun.tools.words import call_line, result_line

if TYPE_CHECKING:
    from localrun.tools.chat_tools import ChatTools
    from localrun.tools.loop import ToolLoop


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Options for the output."""

    stats: Annotated[bool, switch("--stats", "speed and memory, on stderr")] = False
    jsonl: Annotated[bool, switch("--jsonl", "events as they happen, one JSON object a line")] = False

    @property
    def as_data(self) -> bool:
        """Whether a program reads the output."""
        return self.jsonl


@dataclass(frozen=True, slots=True)
class RunOutput(OutputOptions):
    """Options for the output of a single answer."""

    json: Annotated[bool, switch("--json", "the answer and its figures as one JSON object")] = False
    logprobs: Annotated[
        int | None,
        typer.Option(
            "--logprobs",
            parser=checked(whole(0, MAX_LOGPROBS), "N"),
            metavar="N",
            help="the probability of each token, and the N likeliest in its place; on stderr, or in the JSON",
            show_default=False,
        ),
    ] = None

    @property
    def as_data(self) -> bool:
        return self.json or self.jsonl


def stream_answer(
    client: EngineClient,
    request: Request,
    take: Callable[[TurnEvent], None] = lambda event: None,
    *,
    show_thinking: bool,
    jsonl: bool = False,
    as_text: bool = True,
    tools: "ChatTools | None" = None,
    logprobs: list[TokenLogprob] | None = None,
) -> Done:
    """Run one request and write its text, or the events of --jsonl, to stdout.

    `take` receives each event first; `logprobs`, those that come. Ctrl-C cancels the answer, not the program.
    """
    show = _write_event if jsonl else _ShownAnswer(show_thinking, as_text).show
    with CancelOnInterrupt() as ctrl_c:
        if jsonl:
            write_json({"type": "start"})
        generation: Generation | ToolLoop
        if request.tools and tools is not None:
            generation = tools.answer(client.generate, request, client.info.ctx)
        else:
            generation = client.generate(request)
        for event in ctrl_c.watch(generation):
            take(event)
            if logprobs is not None and isinstance(event, Token) and event.logprob is not None:
                logprobs.append(event.logprob)
            show(event)
            if isinstance(event, Done):
                if as_text and request.constraint is not None and event.completion.stop_reason != "stop":
                    note(f"the answer was cut: it may not hold to the {request.constraint.name} yet")
                return event
    raise AssertionError("a stream ends with Done or raises")


def _write_event(event: TurnEvent) -> None:
    """Write one line of --jsonl."""
    match event:
        case Accepted() | PromptLogprobs():
            pass
        case ImageProgress():
            write_json({"type": "image", **asdict(event)})
        case Prefill(done, cached, total):
            write_json({"type": "prefill", "done": done, "cached": cached, "total": total})
        case Token(token_id, text, channel, logprob):
            told = {} if logprob is None else {"logprob": logprob_fields(logprob)}
            write_json({"type": "token", "id": token_id, "text": text, "channel": channel, **told})
        case ToolCallDelta():
            write_json({"type": "tool_call", **asdict(event)})
        case Loop(period):
            write_json({"type": "loop", "period": period})
        case CallsMade():
            pass
        case ToolStarted(id):
            write_json({"type": "tool_started", "id": id})
        case ToolDone(result):
            fields = asdict(result)
            write_json({"type": "tool_result", "ms": 1000 * fields.pop("seconds"), **fields})
        case Done(completion):
            write_json({"type": "done", **as_fields(completion)})
        case _:
            assert_never(event)


class _ShownAnswer:
    """Show the answer on stdout (not for a program) and notes for the user on stderr."""

    def __init__(self, show_thinking: bool, as_text: bool) -> None:
        self._show_thinking, self._as_text = show_thinking, as_text
        self._calls: dict[str, CallPart] = {}
        self._answer, self._thinking, self._progress = AnswerWriter(), ThinkingWriter(), PrefillNotes()

    def show(self, event: TurnEvent) -> None:
        match event:
            case Accepted() | PromptLogprobs() | ToolCallDelta():
                pass
            case ImageProgress():
                if self._as_text:
                    self._progress.tell_image(event)
            case Prefill(done, _, total):
                if self._as_text:
                    self._progress.tell(done, total)
            case Token(_, text, channel):
                self._show_text(text, channel)
            case Loop():
                self._end_line()
                note(f"{event}")
            case CallsMade(calls=calls):
                self._end_line()
                self._calls = {call.id: call for call in calls}
            case ToolStarted(id):
                note(f"({call_line(self._calls[id])})")
            case ToolDone(result):
                note(f"({result_line(result)})")
            case Done():
                self._end_line()
            case _:
                assert_never(event)

    def _show_text(self, text: str, channel: Channel) -> None:
        match channel:
            case "answer":
                if self._as_text:
                    self._thinking.end()
                    self._answer.feed(text)
            case "thinking":
                if self._show_thinking:
                    self._thinking.feed(text)
            case _:
                assert_never(channel)

    def _end_line(self) -> None:
        self._thinking.end()
        self._answer.end()


def as_fields(completion: Completion) -> dict[str, object]:
    """The fields of `run --json`; `path` only where the model is a file."""
    values = completion.flat()
    if not completion.path:
        del values["path"]
    return values
