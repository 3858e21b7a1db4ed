"""Write a message in the user's editor."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from localrun.base.errors import UsageError
from localrun.base.sanitize import clean


def editor_command(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The command in $VISUAL or $EDITOR. UsageError where neither is set."""
    for name in ("VISUAL", "EDITOR"):
        try:
            if words := shlex.split(environ.get(name, "")):
                return words
        except ValueError:
            raise UsageError(f"${name} is no command: {environ[name]}", "a quote in it is not closed") from None
    raise UsageError("no editor is set", "export EDITOR=nano, or whichever you like, before localrun starts")


def write_outside(app: App[Any], text: str) -> str:
    """Leave the terminal to the editor until it is done; gives the text, made safe. Raises UsageError."""
    command = editor_command()
    try:
        with app.suspend():
            return clean(edit_outside(text, command))
    except SuspendNotSupported:
        raise UsageError("this terminal cannot be left for an editor", "write here") from None


def edit_outside(text: str, command: list[str]) -> str:
    """The text as it was left; blocks until the editor is. UsageError where it cannot be started, or failed."""
    with tempfile.TemporaryDirectory(prefix="localrun-") as folder:
        path = Path(folder) / "message.md"
        path.write_text(text, "utf-8")
        try:
            code = subprocess.run([*command, str(path)], check=False).returncode
            written = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{command[0]} did not work: {error}", "see $VISUAL and $EDITOR") from None
    if code:
        raise UsageError(f"{command[0]} ended with {code}", "the message is as it was")
    return written.removesuffix("\n")
