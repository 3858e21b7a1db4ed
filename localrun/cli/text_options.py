"""Options of the texts that go along with a prompt: files and stdin."""

from pathlib import Path
from typing import Annotated

import typer

from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.cli.console import ONE_OR_MANY
from localrun.cli.groups import switch
from localrun.cli.text_input import read_condensed, read_stdin, read_text_file


@dataclass(frozen=True, slots=True)
class TextOptions:
    """Files and stdin, and how they are read."""

    file: Annotated[list[str] | None, typer.Option("--file", metavar="FILE", help="append its text to PROMPT")] = None
    in_parts: Annotated[
        bool,
        switch("--in-parts", "read files and stdin that do not fit the context part by part; PROMPT is the question"),
    ] = False
    condensed: Annotated[
        bool, switch("--condensed", "of files and stdin, lines that are alike once, with how many they are: for logs")
    ] = False
    no_stdin: Annotated[bool, switch("--no-stdin", "do not read stdin")] = False

    def texts(self, prompt: str) -> list[tuple[str, str]]:
        """The texts of files and of stdin, with their names. UsageError where there is no text at all."""
        files = self.file or []
        read = read_condensed if self.condensed else read_text_file
        texts = [(Path(name).name, read(name)) for name in files]
        if not self.no_stdin:
            wait = "reading stdin … (--no-stdin skips it)" if prompt or files else ""
            texts.append(("stdin", read_condensed("-") if self.condensed else read_stdin(wait)))
        texts = [(name, text) for name, text in texts if text]
        if not (prompt or texts):
            raise UsageError("there is no prompt", ONE_OR_MANY)
        return texts
