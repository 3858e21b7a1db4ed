"""Choosing a text file to go along with a message."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.suggester import Suggester
from textual.widgets import DirectoryTree, Input, Static

from localrun.base.content import FilePart
from localrun.base.errors import UsageError
from localrun.chat.attachments import read_attachment
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.fields import LineField


class PathSuggester(Suggester):
    """Completes a path from what is in its folder."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        folder, _, begun = value.rpartition("/")
        try:
            names = sorted(
                path.name for path in Path(f"{folder}/" if folder or value[:1] == "/" else ".").expanduser().iterdir()
            )
        except (OSError, ValueError, RuntimeError):
            return None
        name = next((name for name in names if begun and name.startswith(begun) and name != begun), None)
        return None if name is None or not name.isprintable() else value[: len(value) - len(begun)] + name


class SafeTree(DirectoryTree):
    """A folder's files without hidden ones; names are foreign text."""

    ICON_NODE, ICON_NODE_EXPANDED, ICON_FILE = "▸ ", "▾ ", "  "

    def filter_paths(self, paths: Iterable[Path]) -> Iterable[Path]:
        return [path for path in paths if not path.name.startswith(".")]

    def render_label(self, node, base_style, style):  # type: ignore[no-untyped-def]
        label = super().render_label(node, base_style, style)
        label.plain = say(label.plain).plain
        return label


class AttachScreen(ModalScreen[FilePart | None]):
    """A file: typed, with completion, or found in the tree below. It stays open until a file could be read."""

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel", id="attach.cancel")]

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static("Attach a text file", id="question")
            yield LineField(placeholder="path of a text file", suggester=PathSuggester(), id="answer", compact=True)
            yield Static("", id="problem")
            yield SafeTree(self.root, id="tree")
            yield Static("→ completes, Enter attaches, Tab goes to the files, Escape leaves", id="hint")

    @on(Input.Submitted)
    async def _take_typed(self, event: Input.Submitted) -> None:
        typed = event.value.strip().strip("'\"")
        if typed:
            await self._take(Path(typed))

    @on(DirectoryTree.FileSelected)
    async def _take_found(self, event: DirectoryTree.FileSelected) -> None:
        await self._take(event.path)

    async def _take(self, path: Path) -> None:
        try:
            attachment = await asyncio.to_thread(lambda: read_attachment(path.expanduser()))
        except (UsageError, RuntimeError) as error:  # there is no such user's home
            words = f"{error.message}: {error.hint}" if isinstance(error, UsageError) else str(error)
            self.query_one("#problem", Static).update(say(words))
        else:
            self.dismiss(attachment)

    @on(Input.Changed)
    def _forget_problem(self) -> None:
        self.query_one("#problem", Static).update("")
