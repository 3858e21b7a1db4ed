"""What comes out of an answer: its text as it comes, or JSON for a program."""

from dataclasses import asdict, dataclass
from typing import Annotated, Protocol

from localrun.base.events import Completion, Done, Loop, Prefill, Token
from localrun.base.request import Request
from localrun.cli.console import AnswerWriter, PrefillNotes, ThinkingWriter, note, write_json
from localrun.cli.groups import switch
from localrun.cli.session import CancelOnInterrupt
from localrun.client.interface import Generation


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What comes out."""

    stats: Annotated[bool, switch("--stats", "speed and memory, on stderr")] = False
    jsonl: Annotated[bool, switch("--jsonl", "events as they happen, one JSON object a line")] = False

    @property
    def as_data(self) -> bool:
        """Whether it is for a program."""
        return self.jsonl


@dataclass(frozen=True, slots=True)
class RunOutput(OutputOptions):
    """The same of a single answer."""

    json: Annotated[bool, switch("--json", "the answer and its figures as one JSON object")] = False

    @property
    def as_data(self) -> bool:
        return self.json or self.jsonl


class Generates(Protocol):
    """The part of a client that answers."""

    def generate(self, request: Request) -> Generation: ...


def stream_answer(
    client: Generates, request: Request, show_thinking: bool, *, jsonl: bool = False, as_text: bool = True
) -> Done:
    """Run one request: text to stdout as it comes, or the events of --jsonl. Ctrl-C ends the answer, not us."""
    answer, thinking, progress = AnswerWriter(), ThinkingWriter(), PrefillNotes()
    with CancelOnInterrupt() as ctrl_c:
        if jsonl:
            write_json({"type": "start"})
        for event in ctrl_c.watch(client.generate(request)):
            match event:
                case Done(completion):
                    if jsonl:
                        write_json({"type": "done", **as_fields(completion)})
                    thinking.end()
                    answer.end()
                    return event
                case Prefill(done, _, total) if as_text:
                    progress.tell(done, total)
                case Prefill(done, cached, total) if jsonl:
                    write_json({"type": "prefill", "done": done, "cached": cached, "total": total})
                case Loop(period) if jsonl:
                    write_json({"type": "loop", "period": period})
                case Loop():
                    thinking.end()
                    answer.end()
                    note(f"{event}")
                case Token(token_id, text, channel) if jsonl:
                    write_json({"type": "token", "id": token_id, "text": text, "channel": channel})
                case Token(_, text, "answer") if as_text:
                    thinking.end()
                    answer.feed(text)
                case Token(_, text, "thinking") if show_thinking:
                    thinking.feed(text)
    raise AssertionError("a stream ends with Done or raises")


def as_fields(completion: Completion) -> dict[str, object]:
    """The fields of `run --json`; `path` only where the model is a file."""
    values = asdict(completion)
    if not completion.path:
        del values["path"]
    return values
