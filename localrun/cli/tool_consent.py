"""The question whether a tool may run, in plain lines at a terminal."""

import json

from localrun.base.sanitize import clean
from localrun.cli.console import note
from localrun.cli.line.input import ask_line, drop_typed_ahead
from localrun.cli.session import unless_interrupted
from localrun.tools.consent import Allowed, ConsentQuestion
from localrun.tools.words import argument_rows

_WORDS: dict[Allowed, str] = {"once": "once", "chat": "this chat", "always": "always", "no": "no"}
_ANSWERS: dict[str, Allowed] = {
    **{word: choice for choice, word in _WORDS.items()},
    "o": "once",
    "y": "once",
    "yes": "once",
    "c": "chat",
    "chat": "chat",
    "a": "always",
}


class AskedInLines:
    """Ask a person at the terminal. Only a word of the answer, typed after the question, allows a call; anything else,
    Enter, the end of input and Ctrl-C mean no."""

    def ask(self, question: ConsentQuestion) -> Allowed:
        """Show what would run, and read the answer."""
        tool = question.tool
        name = clean(" ".join(filter(None, (tool.server, tool.name))), keep_newlines=False)
        note(f"The model wants to call {name}:")
        if question.preview:
            note("\n".join(f"  {line}" for line in question.preview.split("\n")))
        else:
            rows = argument_rows(json.dumps(question.arguments, ensure_ascii=False))
            note(
                "\n".join(f"  {key}: {clean(value, keep_newlines=False)}" for key, value in rows) or "  (no arguments)"
            )
        where = f" for {clean(question.scope, keep_newlines=False)}" if question.scope else ""
        ways = " / ".join(_WORDS[choice] for choice in question.choices)
        answer = _line(f"Allow{where}? {ways} [no] ").strip().lower()
        chosen = _ANSWERS.get(answer, "no")
        return chosen if chosen in question.choices else "no"


def _line(prompt: str) -> str:
    """Read one line; empty where Ctrl-C or the end of input came instead. Ctrl-C cancels the answer, too."""

    def ask() -> str:
        try:
            drop_typed_ahead()
            return ask_line(prompt)
        except EOFError:
            return ""

    return unless_interrupted(ask, "")
