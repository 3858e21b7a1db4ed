"""The files and images attached to the next message, and those that are read to be."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message as TextualMessage

from localrun.base.content import Attachment, FilePart, ImagePart
from localrun.base.dataclass import dataclass
from localrun.base.views import ImageView
from localrun.chat.files import read_files
from localrun.chat.image_sizes import next_size, resized
from localrun.chat.images import ImageShelf
from localrun.chat.left_out import Attached
from localrun.chat.long_text.condensed_file import ReadingWatch
from localrun_tui.screens.chat.chips import Chips
from localrun_tui.screens.chat.image_fold import ImageFold
from localrun_tui.state.file_reading import FileReading


class AttachedFiles(Vertical):
    """Their chips, and a fold with the last image."""

    class Changed(TextualMessage):
        """The attached files have changed."""

    @dataclass
    class LeftOut(TextualMessage):
        """Files that could not be attached."""

        words: str

    def __init__(self, images: Callable[[], Awaitable[ImageShelf]]) -> None:
        """`images` has the bytes of those that are attached."""
        super().__init__(id="attached")
        self.files: list[Attachment] = []
        self.reading = FileReading(self)
        self._images = images
        self._chips = Chips()
        self.fold = ImageFold(images)
        self.costs: Sequence[ImageView] = ()
        self._blind = ""

    def compose(self) -> ComposeResult:
        yield self._chips
        yield self.fold

    @property
    def images(self) -> list[ImagePart]:
        return [one for one in self.files if isinstance(one, ImagePart)]

    async def read_typed(self, typed: str) -> None:
        """Attach the files that a path, a glob or a folder means, or a part of a file. Raises LocalrunError."""
        await self.read(partial(read_files, typed, Path.cwd()))

    async def read(self, read: Callable[[ImageShelf, ReadingWatch], Attached]) -> None:
        """Attach what is read on a thread. Raises LocalrunError."""
        self.take(await self.reading.read(partial(read, await self._images())))

    def take(self, attached: Attached) -> None:
        """Attach files, and report those that cannot be."""
        self.add(*attached.files)
        if attached.left_out:
            self.post_message(self.LeftOut(attached.left_out))

    def add(self, *files: Attachment) -> None:
        """Attach files; one that is attached already stays the only one."""
        self.replace(dict.fromkeys([*self.files, *files]))

    def add_paste(self, text: str) -> None:
        """A pasted text that is too long for the editor."""
        self.add(FilePart(f"pasted text {len(self.files) + 1}", text))

    def take_back(self) -> None:
        """Detach the last file, if any."""
        self.replace(self.files[:-1])

    def replace(self, files: Iterable[Attachment]) -> None:
        """Replace the attached files."""
        self.files = list(files)
        self._show()
        self.post_message(self.Changed())

    def resize(self, typed: str) -> None:
        """Choose the size of images, as after /image. Raises UsageError."""
        self.replace(resized(self.files, typed))

    def take_next_size(self) -> None:
        """Send the last image in its next size."""
        last = self.images[-1]
        self.replace(dict.fromkeys(next_size(one) if one is last else one for one in self.files))

    def show_costs(self, costs: Sequence[ImageView], blind: str = "") -> None:
        """Show what images cost; `blind`: the reason why the model sees none, if so."""
        self.costs, self._blind = costs, blind
        self._show()

    def _show(self) -> None:
        self._chips.show(self.files, self.costs)
        self.fold.follow(self.images, self.costs, self._blind)
