"""The first line: the chat on the left; the model, or its load progress, on the right."""

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from localrun.base.events import ModelInfo
from localrun.base.units import gib
from localrun.client.choice import ModelChoice
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.meters import bar
from localrun_tui.widgets.model_name import model_name


class TopBar(Widget):
    """Both sides shrink to the width there is; the model's name goes last."""

    def __init__(self) -> None:
        super().__init__(id="top")
        self._title = ""
        self._is_kept = True
        self._loading = ""  # name of the model being loaded
        self._right: list[Content] = [Content("no model")]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1

    def show_title(self, title: str, is_kept: bool = True) -> None:
        """Show the title of the chat, and whether what is said in it is not written to the disk."""
        if (title, is_kept) != (self._title, self._is_kept):
            self._title, self._is_kept = title, is_kept
            self.refresh()

    def show_model(self, info: ModelInfo | None, choice: ModelChoice | None) -> None:
        """Show the loaded model, where it runs, and what counts beside its weights."""
        if info is None:
            self._right = [Content.styled("no model: Ctrl+O", "$text-warning")]
        else:
            name = model_name(info.name, info.precision)
            names = ", ".join(one.path.stem for one in (choice.adapters if choice else None) or ())
            beside = [say(f"+ {names}")] if names else []
            self._right = [name, *beside, *([Content("on a server")] if info.backend == "remote" else [])]
        self.refresh()

    def show_load(self, name: str) -> None:
        """Show that a model is being loaded."""
        self._loading = name
        self.show_progress(0, 0)

    def show_progress(self, done: int, total: int) -> None:
        """Show how many bytes of it are there; `total` 0 where unknown."""
        share = done / total if total else 0.0
        bytes_of = f"{gib(done)} of {gib(total)}" if total else ""
        self._right = [
            Content.assemble("loading ", model_name(self._loading), " ", bar(share, 12, "$warning"), f" {share:.0%}"),
            Content(bytes_of),
            Content("Esc gives up"),
        ]
        self.refresh()

    def render(self) -> Content:
        width = self.size.width
        right = [part for part in self._right if part]
        dot = Content.styled(" · ", "$foreground 40%")
        while len(right) > 1 and dot.join(right).cell_length > width * 0.6:
            right.pop()
        end = dot.join(right)
        warning = Content("") if self._is_kept else Content.styled(" · not kept", "$text-warning")
        room = max(width - end.cell_length - warning.cell_length - 2, 0)
        title = (Content.styled("◆ ", "$accent") + say(self._title or "New chat", "bold")).truncate(room, ellipsis=True)
        title += warning
        return title + Content(" " * max(width - title.cell_length - end.cell_length, 1)) + end
