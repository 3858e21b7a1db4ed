"""The files and images attached to the next message."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message as TextualMessage

from localrun.base.content import Attachment, FilePart, ImagePart
from localrun.base.views import ImageView
from localrun.chat.image_sizes import next_size, resized
from localrun.chat.images import ImageShelf
from localrun_tui.screens.chat.chips import Chips
from localrun_tui.screens.chat.image_fold import ImageFold


class AttachedFiles(Vertical):
    """Their chips, and a fold with the last image."""

    class Changed(TextualMessage):
        """The attached files have changed."""

    def __init__(self, images: Callable[[], Awaitable[ImageShelf]]) -> None:
        """`images` has the bytes of those that are attached."""
        super().__init__(id="attached")
        self.files: list[Attachment] = []
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
