"""Choosing a file to go along with a message."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.suggester import Suggester
from textual.widgets import DirectoryTree, Input, Static

from localrun.base.errors import LocalrunError
from localrun.chat.files import may_be_attached, read_files, read_one
from localrun.chat.images import ImageShelf
from localrun.chat.left_out import Attached, TooLongError
from localrun.chat.long_text.condensed_file import ReadingWatch
from localrun_tui.state.file_reading import FileReading
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.fields import LineField
from localrun_tui.widgets.key_hint import KeyHint
from localrun_tui.widgets.leaving import Dialog


class PathSuggester(Suggester):
    """Completes a path from what is in its folder."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        folder, _, begun = value.rpartition("/")
        try:
            names = sorted(
                f"{path.name}/" if path.is_dir() else path.name
                for path in Path(f"{folder}/" if folder or value[:1] == "/" else ".").expanduser().iterdir()
            )
        except (OSError, ValueError, RuntimeError):
            return None
        name = next((name for name in names if begun and name.startswith(begun) and name != begun), None)
        return None if name is None or not name.isprintable() else value[: len(value) - len(begun)] + name


class SafeTree(DirectoryTree):
    """A folder's files without hidden ones, and without those that cannot be attached; names are foreign text."""

    ICON_NODE, ICON_NODE_EXPANDED, ICON_FILE = "▸ ", "▾ ", "  "

    def filter_paths(self, paths: Iterable[Path]) -> Iterable[Path]:
        return [path for path in paths if may_be_attached(path.name)]

    def render_label(self, node, base_style, style):  # type: ignore[no-untyped-def]
        label = super().render_label(node, base_style, style)
        label.plain = say(label.plain).plain
        return label


class PathField(LineField):
    """A path, completed by Tab."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "complete", show=False, id="attach.complete")]

    def action_complete(self) -> None:
        if not self._suggestion:
            raise SkipAction
        self.action_end()
        self.action_cursor_right()


class AttachScreen(Dialog[Attached | TooLongError | None]):
    """A file: typed, with completion, or found in the tree below; a folder or a glob is typed. It stays open until
    something could be read, or is too long to be."""

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel", id="attach.cancel")]

    def __init__(self, root: Path, shelf: ImageShelf) -> None:
        """Images are kept on the shelf."""
        super().__init__()
        self.root = root
        self.shelf = shelf
        self._reading = FileReading(self)

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static("Attach a file: text, PDF or image", id="question")
            yield PathField(
                placeholder="path of a file, a folder or a glob",
                suggester=PathSuggester(),
                id="answer",
                compact=True,
            )
            yield Static("", id="problem")
            yield SafeTree(self.root, id="tree")
        yield KeyHint("Tab completes, then goes to the files; Enter attaches, Escape leaves")

    @on(Input.Submitted)
    def _take_typed(self, event: Input.Submitted) -> None:
        typed = event.value.strip().strip("'\"")
        if typed:
            self._take(lambda watch: read_files(typed, self.root, self.shelf, watch))

    @on(DirectoryTree.FileSelected)
    def _take_found(self, event: DirectoryTree.FileSelected) -> None:
        self._take(lambda watch: Attached([read_one(event.path, self.shelf)]))

    def _take(self, read: Callable[[ReadingWatch], Attached]) -> None:
        """Read on a thread: Escape leaves meanwhile."""
        if not self._reading.under_way:
            self.run_worker(self._read(read), exit_on_error=False)

    async def _read(self, read: Callable[[ReadingWatch], Attached]) -> None:
        try:
            attached = await self._reading.read(read)
        except TooLongError as error:
            self.dismiss(error)
        except LocalrunError as error:
            self._say(f"{error.message}: {error.hint}")
        else:
            self.dismiss(attached)

    @on(FileReading.Progressed)
    def _tell_of_reading(self, event: FileReading.Progressed) -> None:
        if event.words:
            self._say(f"{event.words}; Escape stops it")

    def _say(self, words: str) -> None:
        if self.is_mounted:
            self.query_one("#problem", Static).update(say(words))

    def on_unmount(self) -> None:
        self._reading.stop()

    @on(Input.Changed)
    def _forget_problem(self) -> None:
        self._say("")
