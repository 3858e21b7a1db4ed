"""One message of the chat, drawn line by line: one widget however long it is, so that a long chat stays fast."""

from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.geometry import Offset, Region, Size
from textual.message import Message as TextualMessage
from textual.reactive import Reactive
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions

from localrun.base.dataclass import dataclass
from localrun.base.sanitize import clean
from localrun.chat.turn import may_go_on
from localrun_tui.markdown.inline import ACT, CODE, LINK
from localrun_tui.markdown.wide import STEP, Wide
from localrun_tui.screens.chat.composer import Composer
from localrun_tui.screens.chat.growing_height import GrowingHeight
from localrun_tui.screens.chat.message_document import MessageDocument
from localrun_tui.widgets.compositor import Growing, paint_now
from localrun_tui.widgets.words import index_at, word_at

if TYPE_CHECKING:
    from localrun.chat.tree import Message

_SPARE = 6  # of the screen's height, the part that may be empty below a live one


class MessageView(Growing, can_focus=True):
    """A message that was said, or with `live` one whose document still grows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "go(-1)", "Previous", show=False, id="message.previous"),
        Binding("down,j", "go(1)", "Next", show=False, id="message.next"),
        Binding("left,h", "walk(-1)", "Branch", id="message.branch-left", key_display="←→"),
        Binding("right,l", "walk(1)", "Next branch", show=False, id="message.branch-right"),
        Binding("c", "copy", "Copy", id="message.copy"),
        Binding("e", "edit", "Edit", id="message.edit"),
        Binding("r", "regenerate", "Again", id="message.regenerate"),
        Binding("g", "go_on", "Go on", id="message.go-on"),
        Binding("t", "toggle_thinking", "Thinking", id="message.thinking"),
        Binding("d", "toggle_results", "Results of tools", id="message.results"),
        Binding("w", "toggle_wrap", "Wrap code and tables, or not", show=False, id="message.wrap"),
        Binding("shift+left,H,less_than_sign", "shift(-1)", "Wide code: left", show=False, id="message.left"),
        Binding("shift+right,L,greater_than_sign", "shift(1)", "Wide code: right", show=False, id="message.right"),
        Binding("o", "open_links", "Links", show=False, id="message.links"),
        *(
            Binding(str(n), f"copy_code({n})", "Copy code", show=False, id=f"message.copy-code-{n}")
            for n in range(1, 10)
        ),
    ]

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), repaint=False)  # Textual's own lays all out again

    @dataclass
    class Go(TextualMessage):
        """Request to go to the message `step` below this one."""

        view: "MessageView"
        step: int

    @dataclass
    class Walk(TextualMessage):
        """Request to go to the branch `step` beside this one."""

        view: "MessageView"
        step: int

    @dataclass
    class Regenerate(TextualMessage):
        """Another answer to this message, or in place of it."""

        view: "MessageView"

    @dataclass
    class GoOn(TextualMessage):
        """Have the end of this answer, which was cut."""

        view: "MessageView"

    @dataclass
    class OpenLinks(TextualMessage):
        """Open a link of this message."""

        view: "MessageView"

    def __init__(self, message: "Message | None", name: str, branch: tuple[int, int] = (1, 1)) -> None:
        """`message` None: an answer on its way. `branch` is which of how many versions this is."""
        super().__init__(classes="answer" if message is None else message.role)
        self.message = message
        self.document = MessageDocument(message, name, branch)
        self.live = message is None
        self.growing_height = GrowingHeight()  # while it is live
        self._lines: tuple[int, list[Content]] | None = None

    def finish(self, message: "Message", branch: tuple[int, int]) -> None:
        """The answer is complete, and kept as `message`."""
        self.document.finish()
        self.document.keep(message.content)
        self.document.branch = branch
        self.message, self.live = message, False
        self.changed()

    def changed(self) -> None:
        """The document says something else: draw the lines that differ, and lay it out again only where it grows."""
        if self._lines is None:
            self.refresh(layout=True)
            return
        width, before = self._lines
        after = self.document.lines(width)
        self._lines = width, after
        differ = [y for y, (old, new) in enumerate(zip_longest(before, after)) if not _same(old, new)]
        self.changed_lines(differ)
        if self._height(len(after)) != self.size.height:
            self.clear_cached_dimensions()
            self.refresh(repaint=False, layout=True)  # a widget of another size is painted anyway
        elif differ:
            paint_now(self, Region(0, differ[0], width, differ[-1] + 1 - differ[0]))

    @property
    def source(self) -> str:
        """Text of the message as written."""
        return self.document.source

    def lines(self, width: int) -> list[Content]:
        """Lines of the whole message, in `width` cells."""
        if self._lines is None or self._lines[0] != width:
            self._lines = width, self.document.lines(width)
        return self._lines[1]

    # ---- drawing

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._height(len(self.lines(width)))

    def _height(self, n_lines: int) -> int:
        """Height in cells of `n_lines` lines; a live message may have some to spare."""
        return self.growing_height.height(n_lines, self.screen.size.height // _SPARE) if self.live else n_lines

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        lines = self.lines(width)
        if y >= len(lines) or not width:
            return Strip.blank(width, self.visual_style.rich_style)
        selection = self.text_selection
        line = lines[y]
        if selection is not None and (span := selection.get_span(y)) is not None:
            start, end = span
            chosen = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            line = line.stylize(chosen, start, len(line) if end == -1 else end)
        options = RenderOptions(self._get_style, {"text_wrap": "nowrap", "text_overflow": "clip"})
        (strip, *_) = line.render_strips(width, 1, self.visual_style, options)
        return strip.extend_cell_length(width, self.visual_style.rich_style).apply_offsets(0, y)

    @property
    def is_plain(self) -> bool:
        return self.live and super().is_plain

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(line.plain for line in self.lines(self.size.width))), "\n"

    # ---- what the user does with it

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        possible: dict[str, Callable[[], bool]] = {
            "walk": lambda: self.document.branch[1] > 1,
            "edit": lambda: not self.live,
            "go_on": lambda: self.message is not None and may_go_on(self.message),
            "open_links": lambda: bool(self.document.links),
            "toggle_wrap": lambda: self.document.has_wide,
            "shift": lambda: self.document.wide.whole,
            "toggle_results": lambda: self.document.has_results,
            "toggle_thinking": lambda: self.document.has_thinking,
        }
        return possible[action]() if action in possible else True

    def action_go(self, step: int) -> None:
        self.post_message(self.Go(self, step))

    def action_walk(self, step: int) -> None:
        self.post_message(self.Walk(self, step))

    def action_edit(self) -> None:
        """Edit at once: letters may follow."""
        if self.message is not None:
            self.screen.query_one(Composer).edit(self.message.id, self.message.content, self.message.role)

    def action_go_on(self) -> None:
        self.post_message(self.GoOn(self))

    def action_regenerate(self) -> None:
        self.post_message(self.Regenerate(self))

    def action_open_links(self) -> None:
        self.post_message(self.OpenLinks(self))

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(clean(self.source))

    def action_toggle_thinking(self) -> None:
        self.document.thinking_open = not self.document.thinking_open
        self.changed()

    def action_toggle_results(self) -> None:
        self.document.toggle_results()
        self._lay_out_anew()

    def action_toggle_wrap(self) -> None:
        """Code and tables as wide as they are, or in the width there is."""
        self.document.wide = Wide(whole=not self.document.wide.whole)
        self._lay_out_anew()

    def action_shift(self, step: int) -> None:
        self.document.wide = replace(self.document.wide, shift=max(self.document.wide.shift + step * STEP, 0))
        self._lay_out_anew()

    def _lay_out_anew(self) -> None:
        if self._lines is not None:
            self._rows.clear()
        self.changed()

    def action_copy_code(self, number: int) -> None:
        codes = self.document.codes
        if number <= len(codes):
            self.app.copy_to_clipboard(codes[number - 1])

    def on_click(self, event: Click) -> None:
        if event.chain > 1:
            event.prevent_default()  # Textual selects the message, and then all of them
            self._select(event)
            return
        meta = event.style.meta
        match meta.get(ACT):
            case "back" | "on" as way:
                self.action_walk(-1 if way == "back" else 1)
            case "thinking":
                self.action_toggle_thinking()
        if CODE in meta:
            self.action_copy_code(int(meta[CODE]))
        if LINK in meta:
            self.action_open_links()

    def _select(self, click: Click) -> None:
        """Select the word at a double click, else the whole message."""
        place = click.get_content_offset(self)
        lines = self.lines(self.size.width)
        if click.chain == 2 and place is not None and place.y < len(lines):
            text = lines[place.y].plain
            start, end = word_at(text, index_at(text, place.x))
            span = Selection(Offset(start, place.y), Offset(end, place.y))
            self.screen.selections = {self: span} if start < end else {}
        else:
            self.text_select_all()


def _same(old: Content | None, new: Content | None) -> bool:
    return old is new or (old is not None and new is not None and old.is_same(new))
