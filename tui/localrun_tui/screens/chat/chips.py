"""Attached files and images as chips."""

from collections.abc import Sequence

from textual.widgets import Static

from localrun.base.content import Attachment, ImagePart
from localrun.base.views import ImageView
from localrun.chat.image_sizes import cost_of

MOST_SHOWN = 6  # chips; of more the latest
HINT = "(Ctrl+W before the text takes the last back)"


class Chips(Static):
    """One chip for each file; hidden while there are none."""

    def __init__(self) -> None:
        super().__init__(id="chips", markup=False)

    def show(self, attachments: Sequence[Attachment], costs: Sequence[ImageView]) -> None:
        """Show files, and what images among them cost."""
        n_hidden = max(len(attachments) - MOST_SHOWN, 0)
        chips = [chip_of(one, costs) for one in attachments[n_hidden:]]
        before = [f"{n_hidden:,} more"] if n_hidden else []
        self.update("  ".join([*before, *chips, f" {HINT}"]))
        self.display = bool(chips)


def chip_of(attachment: Attachment, costs: Sequence[ImageView] = ()) -> str:
    """A file or an image as a chip, with what an image costs."""
    if not isinstance(attachment, ImagePart):
        return f"▤ {attachment.chip}"
    cost = cost_of(attachment, costs)
    return f"▣ {attachment.chip}{f' · {cost}' if cost else ''}"
