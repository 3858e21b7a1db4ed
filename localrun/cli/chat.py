"""`localrun chat`: plain lines, nothing redrawn; for terminals of any kind, screen readers and scripts."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from localrun.base.errors import LocalrunError, UsageError
from localrun.base.events import Completion
from localrun.base.request import Message, Request
from localrun.cli.consent import find_or_pull
from localrun.cli.console import at_terminal, is_terminal, note, tell, write_json
from localrun.cli.failure import CANCELLED
from localrun.cli.groups import AnswerOptions, HubOptions, LoadOptionFlags, ModelOptions
from localrun.cli.run import OutputOptions, as_fields, stream_answer
from localrun.cli.session import Answering, answering, open_client, show_stats
from localrun.cli.text_input import decode

if TYPE_CHECKING:
    from localrun.client.local import LocalClient


def chat(
    named: Annotated[str | None, typer.Argument(metavar="[MODEL]", show_default=False)] = None,
    *,
    output: OutputOptions,
    model: ModelOptions,
    hub: HubOptions,
    answer: AnswerOptions,
    load: LoadOptionFlags,
) -> int:
    """Chat line by line. With stdin from a pipe or a file, every line is one message and stdout has the answers."""
    if named and model.model:
        raise UsageError("two models are named", "leave one out")
    if output.json:
        raise UsageError("chat has --jsonl, one object a turn; --json is for one answer", "add --jsonl, or use run")
    shared = answering(answer)
    stored = find_or_pull(replace(model, model=named or model.model), hub)
    with open_client(stored, load) as client:
        session = Chat(client, shared, output, answer.show_thinking)
        if is_terminal(sys.stdin):
            return session.talk(f"{stored.name} {stored.precision}".strip())
        return session.follow_script()


class Chat:
    """A conversation and the commands that change it."""

    def __init__(self, client: "LocalClient", shared: Answering, output: OutputOptions, show_thinking: bool) -> None:
        self._client = client
        self._shared = shared
        self._output = output
        self._show_thinking = show_thinking
        self._messages: list[Message] = []
        self._last: Completion | None = None
        self._commands: dict[str, tuple[str, Callable[[str], None]]] = {
            "/help": ("what these commands do", self._help),
            "/new": ("forget everything and begin again", self._new),
            "/undo": ("take the last message and its answer back", self._undo),
            "/retry": ("another answer to the last message", self._retry),
            "/edit": ("TEXT: the last message, worded anew", self._edit),
            "/save": ("FILE: write the chat as Markdown, or as JSON to FILE.json", self._save),
            "/stats": ("speed and memory of the last answer", self._stats),
            "/quit": ("leave (so does Ctrl-D)", self._quit),
        }

    def talk(self, title: str) -> int:
        """With a person at the terminal: errors are told and the chat goes on."""
        for line in (*self._client.info.notes, f"localrun chat with {title}. /help shows the commands, Ctrl-D leaves."):
            note(line)
        for text in _typed_messages():
            try:
                self._take(text)
            except EOFError:
                break
            except LocalrunError as error:
                note(f"{error.message}\n  {error.hint}".rstrip())
        return 0

    def follow_script(self) -> int:
        """With lines from a pipe: the first error ends it, and so does Ctrl-C."""
        for text in _piped_messages():
            try:
                self._take(text)
            except EOFError:
                break
            if self._last and self._last.stop_reason == "cancelled":
                return CANCELLED
        return 0

    def _take(self, text: str) -> None:
        if text.startswith("/") and not text.startswith("//"):
            name, _, rest = text.partition(" ")
            if name not in self._commands:
                raise UsageError(f"there is no command {name}", "/help shows them; // begins a message with a slash")
            self._commands[name][1](rest.strip())
        else:
            self._send(text.removeprefix("/") if text.startswith("//") else text)

    def _send(self, text: str) -> None:
        """Answer one more message; it is not kept where there is no answer to it."""
        self._messages.append({"role": "user", "content": text})
        try:
            completion = stream_answer(
                self._client, self._request(), self._show_thinking, as_text=not self._output.jsonl
            )
        except BaseException:
            self._messages.pop()
            raise
        self._last = completion
        self._messages.append({"role": "assistant", "content": completion.text})
        if self._output.jsonl:
            write_json({"type": "done", **as_fields(completion)})
        if completion.stop_reason == "cancelled":
            note("(stopped)")
        if self._output.stats:
            show_stats(completion)

    def _request(self) -> Request:
        shared = self._shared
        system = [{"role": "system", "content": shared.system}] if shared.system else []
        return Request(
            messages=(*system, *self._messages),
            sampling=shared.sampling,
            max_tokens=shared.max_tokens,
            stop=shared.stop,
            think=shared.think,
        )

    def _help(self, _: str) -> None:
        width = max(map(len, self._commands))
        note("\n".join(f"{name:{width}}  {what}" for name, (what, _) in self._commands.items()))
        note("A line that ends in \\ goes on in the next one. Ctrl-C stops an answer.")

    def _new(self, _: str) -> None:
        self._messages.clear()
        note("(a new chat)")

    def _undo(self, _: str) -> None:
        note(f"(took back: {self._take_back()})")

    def _retry(self, _: str) -> None:
        self._send(self._take_back())

    def _edit(self, text: str) -> None:
        if not text:
            raise UsageError("/edit needs the new text", "/edit TEXT")
        self._take_back()
        self._send(text)

    def _take_back(self) -> str:
        """Drop the last message and its answer; gives the message."""
        if not self._messages:
            raise UsageError("there is no message yet")
        *self._messages, asked, _ = self._messages
        return str(asked["content"])

    def _save(self, name: str) -> None:
        if not name:
            raise UsageError("/save needs a file name", "/save chat.md")
        path = Path(name).expanduser()
        if path.suffix == ".json":
            text = json.dumps(self._request().messages, ensure_ascii=False, indent=2)
        else:
            text = "\n\n".join(f"**{m['role']}**\n\n{m['content']}" for m in self._request().messages)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text + "\n")
        except FileExistsError:
            raise UsageError(f"{path} exists already", "choose another name") from None
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} cannot be written: {error}") from None
        note(f"(saved to {path})")

    def _stats(self, _: str) -> None:
        if self._last is None:
            raise UsageError("there is no answer yet")
        show_stats(self._last)

    def _quit(self, _: str) -> None:
        raise EOFError


def _typed_messages() -> Iterator[str]:
    """Messages typed at a terminal; a line that ends in a backslash goes on in the next one."""
    if os.environ.get("TERM") != "dumb":
        with suppress(ImportError):
            import readline  # noqa: F401  (gives input() editing and history)
    lines: list[str] = []
    while True:
        try:
            line = _input("… " if lines else "> ")
        except EOFError:
            tell("\n")
            return
        except KeyboardInterrupt:
            lines.clear()
            note("\n(Ctrl-D or /quit leaves)")
            continue
        lines.append(line)
        if line.endswith("\\"):
            lines[-1] = line[:-1]
            continue
        text = "\n".join(lines).strip()
        lines.clear()
        if text:
            yield text


def _input(prompt: str) -> str:
    """One line from the terminal. The prompt goes to stdout only where that is the same terminal."""
    try:
        if at_terminal():
            return input(prompt)
        tell(prompt)
        return input()
    except UnicodeDecodeError:
        raise UsageError("that line was not UTF-8 text") from None


def _piped_messages() -> Iterator[str]:
    """One message a line, as they arrive."""
    if sys.stdin is None:
        return
    for number, line in enumerate(sys.stdin.buffer, 1):
        text = decode(line, f"line {number} of stdin").strip()
        if text:
            yield text
