"""Attached files and images as chips."""

from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from localrun.base.content import Attachment, ImagePart
from localrun.base.views import ImageView
from localrun.chat.image_sizes import cost_of
from localrun_tui.markdown.wrapping import wrap
from localrun_tui.widgets.columns import say

MOST_SHOWN = 6  # chips; of more the latest
HINT = "(Ctrl+W before the text takes the last back)"
_GAP = "  "


class Chips(Widget):
    """One chip for each file; hidden while there are none."""

    def __init__(self) -> None:
        super().__init__(id="chips")
        self._chips: list[str] = []

    def show(self, attachments: Sequence[Attachment], costs: Sequence[ImageView]) -> None:
        """Show files, and what images among them cost."""
        n_hidden = max(len(attachments) - MOST_SHOWN, 0)
        chips = [chip_of(one, costs) for one in attachments[n_hidden:]]
        before = [f"{n_hidden:,} more"] if n_hidden else []
        self._chips = [*before, *chips, HINT]
        self.display = bool(chips)
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width))

    def render(self) -> Content:
        return Content("\n").join(self._lines(self.size.width))

    def _lines(self, width: int) -> list[Content]:
        """Chips one beside the other; one that does not fit goes on to the next line, whole where a line has room."""
        lines = [Content()]
        for chip in map(say, self._chips):
            longer = Content(_GAP if lines[-1] else "").join([lines[-1], chip])
            if longer.cell_length <= width:
                lines[-1] = longer
            else:
                lines += wrap(chip, width)
        return lines if lines[0] else lines[1:]


def chip_of(attachment: Attachment, costs: Sequence[ImageView] = ()) -> str:
    """A file or an image as a chip, with what an image costs."""
    if not isinstance(attachment, ImagePart):
        return f"▤ {attachment.chip}"
    cost = cost_of(attachment, costs)
    return f"▣ {attachment.chip}{f' · {cost}' if cost else ''}"
