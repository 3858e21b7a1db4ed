"""The field for a path: what is typed goes on to a folder or a model that is there, with Tab or →, as in a shell."""

import asyncio
import os
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.suggester import Suggester

from localrun.formats.gguf_names import is_gguf
from localrun_tui.widgets.fields import LineField

_MOST = 5000  # entries of a folder that are looked at


def is_typed_path(text: str) -> bool:
    """Whether what is typed into a list of models is meant as a path."""
    return text.startswith(("/", "~", "./", "../")) or os.path.isabs(text) or is_gguf(text)


class ModelPathField(LineField):
    """One line, for a path or for words."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "complete", show=False, id="path.complete")]

    def __init__(self, value: str = "", **named: Any) -> None:
        super().__init__(value, suggester=_Paths(), **named)

    def action_complete(self) -> None:
        before = self.value
        self.action_cursor_right()  # at the end it takes the suggestion
        if self.value == before:
            raise SkipAction


class _Paths(Suggester):
    """The first folder or .gguf, by name, that a typed path may go on to."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        return await asyncio.to_thread(longer_path, value) if is_typed_path(value) else None


def longer_path(typed: str) -> str | None:
    """`typed` up to the end of a name; None where no name goes on so."""
    folder, begun = os.path.split(typed)
    try:
        with os.scandir(Path(folder).expanduser()) as entries:
            fitting = [one for one in islice(entries, _MOST) if one.name.startswith(begun) and _is_shown(one, begun)]
    except (OSError, RuntimeError):  # RuntimeError: ~ of somebody unknown
        return None
    first = min(fitting, key=lambda one: one.name, default=None)
    if first is None or not first.name.isprintable():
        return None
    return os.path.join(folder, first.name) + ("/" if first.is_dir() else "")


def _is_shown(entry: os.DirEntry[str], begun: str) -> bool:
    return (not entry.name.startswith(".") or begun.startswith(".")) and (entry.is_dir() or is_gguf(entry.name))
