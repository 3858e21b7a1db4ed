"""One message of the chat, drawn line by line: one widget however long it is, so that a long chat stays fast."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message as TextualMessage
from textual.reactive import Reactive
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions

from localrun.base.sanitize import clean
from localrun_tui.markdown.metas import ACT, CODE, LINK
from localrun_tui.screens.chat.room import Room
from localrun_tui.state.attachments import Attachment, split
from localrun_tui.widgets.compositor import Growing, paint_now

if TYPE_CHECKING:
    from localrun.chat.tree import Message

_SPARE = 6  # of the screen's height, the part that may be empty below a live one


class MessageView(Growing, can_focus=True):
    """A message that was said, or with `live` one that still grows by `feed` and `think`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "go(-1)", "Previous", show=False, id="message.previous"),
        Binding("down,j", "go(1)", "Next", show=False, id="message.next"),
        Binding("left,h", "walk(-1)", "Branch", id="message.branch-left", key_display="←→"),
        Binding("right,l", "walk(1)", "Next branch", show=False, id="message.branch-right"),
        Binding("c", "copy", "Copy", id="message.copy"),
        Binding("e", "edit", "Edit", id="message.edit"),
        Binding("r", "regenerate", "Again", id="message.regenerate"),
        Binding("t", "toggle_thinking", "Thinking", id="message.thinking"),
        Binding("o", "open_links", "Links", show=False, id="message.links"),
        *(
            Binding(str(n), f"copy_code({n})", "Copy code", show=False, id=f"message.copy-code-{n}")
            for n in range(1, 10)
        ),
    ]

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), repaint=False)  # Textual's own lays out and paints anew

    @dataclass
    class Go(TextualMessage):
        """To the message that is `step` below this one."""

        view: "MessageView"
        step: int

    @dataclass
    class Walk(TextualMessage):
        """To the branch that is `step` beside this one."""

        view: "MessageView"
        step: int

    @dataclass
    class Edit(TextualMessage):
        """Word this message anew."""

        view: "MessageView"

    @dataclass
    class Regenerate(TextualMessage):
        """Another answer to this message, or in place of it."""

        view: "MessageView"

    @dataclass
    class OpenLinks(TextualMessage):
        """Open a link of this message."""

        view: "MessageView"

    @dataclass
    class Copy(TextualMessage):
        """`text` belongs on the clipboard."""

        text: str
        what: str

    def __init__(self, message: "Message | None", name: str, branch: tuple[int, int] = (1, 1)) -> None:
        """`message` None: an answer on its way. `branch` is which of how many versions this is."""
        super().__init__(classes="answer" if message is None else message.role)
        self.message = message
        self.speaker = clean(name, keep_newlines=False)
        self.branch = branch
        self.live = message is None
        self.note = Content()  # the last line: what goes on, or what went wrong
        self.thinking_open = False
        self.thinking_title = "Thought"
        self.room = Room()  # while it is live
        from localrun_tui.markdown.text import MarkdownText  # after the first frame: an empty chat has no message

        text = message.text if message else ""
        self.attachments: list[Attachment] = []
        if message is not None and message.role == "user":
            self.attachments, text = split(message.text)
        self._plain = message is not None and message.role != "assistant"
        self._text = MarkdownText("" if self._plain else text)
        self._user_text = clean(text) if self._plain else ""
        self._thinking = MarkdownText(message.thinking if message else "")
        self._lines: tuple[int, list[Content]] | None = None

    # ---- what it says

    def feed(self, text: str) -> None:
        """More of the answer; `changed` shows it."""
        self._text.append(text)

    def think(self, text: str) -> None:
        """More of the thinking; `changed` shows it."""
        self._thinking.append(text)

    def finish(self, message: "Message", branch: tuple[int, int]) -> None:
        """The answer is complete, and kept as `message`."""
        self._text.append("", is_last=True)
        self._thinking.append("", is_last=True)
        self.message, self.branch, self.live = message, branch, False
        self.changed()

    def changed(self) -> None:
        """Something it shows is another: draw the lines that differ, and lay out anew only where it grows."""
        if self._lines is None:
            self.refresh(layout=True)
            return
        width, before = self._lines
        after = self._compose_lines(width)
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
        """Its text as it was written."""
        return self.message.text if self.message is not None and self._plain else self._text.source

    @property
    def links(self) -> list[str]:
        return self._text.links()

    # ---- lines

    def lines(self, width: int) -> list[Content]:
        """All that is drawn, in `width` cells."""
        if self._lines is None or self._lines[0] != width:
            self._lines = width, self._compose_lines(width)
        return self._lines[1]

    def _compose_lines(self, width: int) -> list[Content]:
        return [*self._head(width), *self._body(width), *self._foot(width)]

    def _head(self, width: int) -> list[Content]:
        name = Content.styled(self.speaker, "bold")
        index, n = self.branch
        if n == 1:
            return [name.truncate(width, ellipsis=True)]
        walk = Content.assemble(
            (" ‹ ", Style.from_meta({ACT: "back"})), f"{index}/{n}", (" › ", Style.from_meta({ACT: "on"}))
        ).stylize("$text-accent")
        name = name.truncate(max(width - walk.cell_length, 0), ellipsis=True)
        return [name.pad_right(width - walk.cell_length - name.cell_length) + walk]

    def _body(self, width: int) -> list[Content]:
        lines = self._thinking_lines(width)
        for attachment in self.attachments:
            lines.append(Content.styled(f" ▤ {attachment.chip} ", "$text-secondary on $secondary 15%").truncate(width))
        if self._plain:
            return [*lines, *Content(self._user_text).wrap(width)]
        body = self._text.lines(width)
        return [*lines, *([Content()] if lines and body else []), *body]

    def _thinking_lines(self, width: int) -> list[Content]:
        if not self._thinking.source.strip():
            return []
        arrow = "▾" if self.thinking_open else "▸"
        title = Content.styled(f"{arrow} {self.thinking_title}", "italic $foreground-muted")
        title = title.stylize(Style.from_meta({ACT: "thinking"})).truncate(width, ellipsis=True)
        if not self.thinking_open:
            return [title]
        bar = Content.styled("│ ", "$foreground 30%")
        return [title, *(bar + line.stylize("$foreground-muted") for line in self._thinking.lines(width - 2))]

    def _foot(self, width: int) -> list[Content]:
        return self.note.wrap(width) if self.note else []

    # ---- drawing

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._height(len(self.lines(width)))

    def _height(self, n_lines: int) -> int:
        """Cells for so many lines; a live one may have some to spare."""
        return self.room.height(n_lines, self.screen.size.height // _SPARE) if self.live else n_lines

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        lines = self.lines(width)
        if y >= len(lines):
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
            "walk": lambda: self.branch[1] > 1,
            "edit": lambda: self._plain and not self.live,
            "open_links": lambda: bool(self.links),
            "toggle_thinking": lambda: bool(self._thinking.source.strip()),
        }
        return possible[action]() if action in possible else True

    def action_go(self, step: int) -> None:
        self.post_message(self.Go(self, step))

    def action_walk(self, step: int) -> None:
        self.post_message(self.Walk(self, step))

    def action_edit(self) -> None:
        self.post_message(self.Edit(self))

    def action_regenerate(self) -> None:
        self.post_message(self.Regenerate(self))

    def action_open_links(self) -> None:
        self.post_message(self.OpenLinks(self))

    def action_copy(self) -> None:
        self.post_message(self.Copy(clean(self.source), "message"))

    def action_toggle_thinking(self) -> None:
        self.thinking_open = not self.thinking_open
        self.changed()

    def action_copy_code(self, number: int) -> None:
        codes = self._text.codes()
        if number <= len(codes):
            self.post_message(self.Copy(codes[number - 1], "code"))

    def on_click(self, event: Click) -> None:
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


def _same(old: Content | None, new: Content | None) -> bool:
    return old is new or (old is not None and new is not None and old.is_same(new))
