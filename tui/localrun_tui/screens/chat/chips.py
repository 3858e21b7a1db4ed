"""The files and images attached to the next message."""

from collections.abc import Iterable

from textual.message import Message as TextualMessage
from textual.widgets import Static

from localrun.base.content import Attachment, FilePart, ImagePart


class Chips(Static):
    """One chip for each file; hidden while there are none."""

    class Changed(TextualMessage):
        """The attached files have changed."""

    def __init__(self) -> None:
        super().__init__(id="chips", markup=False)
        self.attachments: list[Attachment] = []

    def add(self, *attachments: Attachment) -> None:
        """Attach files; one that is attached already stays the only one."""
        self.replace(dict.fromkeys([*self.attachments, *attachments]))

    def add_paste(self, text: str) -> None:
        """A pasted text that is too long for the editor."""
        self.add(FilePart(f"pasted text {len(self.attachments) + 1}", text))

    def take_back(self) -> None:
        """Detach the last file, if any."""
        self.replace(self.attachments[:-1])

    def replace(self, attachments: Iterable[Attachment]) -> None:
        """Replace the attached files."""
        self.attachments = list(attachments)
        names = "  ".join(chip_of(attachment) for attachment in self.attachments)
        self.update(f"{names}   (Alt+Backspace before the text takes the last one back)" if names else "")
        self.display = bool(names)
        self.post_message(self.Changed())


def chip_of(attachment: Attachment) -> str:
    """A file or an image as a chip."""
    return f"{'▣' if isinstance(attachment, ImagePart) else '▤'} {attachment.chip}"
