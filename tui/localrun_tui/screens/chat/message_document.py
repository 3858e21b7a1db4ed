"""Layout of one message in lines. No widget: `message_view.py` draws them."""

from typing import TYPE_CHECKING

from textual.content import Content
from textual.style import Style

from localrun.base.content import Content as MessageContent
from localrun.base.content import FilePart, attachments_in, has_calls, typed_text
from localrun.base.sanitize import clean
from localrun_tui.markdown.inline import ACT
from localrun_tui.markdown.wide import Wide
from localrun_tui.markdown.wrapping import wrap
from localrun_tui.screens.chat.chips import chip_of
from localrun_tui.screens.chat.history_groups import with_hits

if TYPE_CHECKING:
    from localrun.chat.tree import Message
MEASURE = 100  # cells
_MOST_ERRORS = 8  # lines of a log, below its name


class MessageDocument:
    """Name, thinking, files, text and note of a message; an answer on its way grows by `feed` and `think`."""

    def __init__(self, message: "Message | None", name: str, branch: tuple[int, int] = (1, 1)) -> None:
        """`message` None: an answer on its way. `branch` is which of how many versions this is."""
        from localrun_tui.markdown.text import MarkdownText  # after the first frame: an empty chat has no message

        self.speaker = clean(name, keep_newlines=False)
        self.branch = branch
        self.wide = Wide()
        self.note = Content()  # the last line: progress, or an error
        self.thinking_open = False
        self.results_open = False
        self.marked: list[str] = []  # searched words
        self.thinking_title = "Thought"
        self.is_markdown = message is None or message.role == "assistant"  # else it is shown as it was written
        content = message.content if message else ()
        self.attachments = attachments_in(content)
        text = self._calls_as_text(content) if has_calls(content) else typed_text(content)
        self._content: MessageContent = content if has_calls(content) else ()
        self._written = message.text if message else ""
        self._plain = "" if self.is_markdown else clean(text)
        self._text = MarkdownText(text if self.is_markdown else "")
        self._thinking = MarkdownText(message.thinking if message else "")

    # ---- text

    def _calls_as_text(self, content: MessageContent) -> str:
        from localrun_tui.screens.chat.call_lines import answer_markdown

        return answer_markdown(content, self.results_open)

    @property
    def has_results(self) -> bool:
        """Whether there are results of tools to write out or fold."""
        return bool(self._content)

    def keep(self, content: MessageContent) -> None:
        """Take the content that an answer on its way has come to."""
        self._content = content if has_calls(content) else ()

    def toggle_results(self) -> None:
        """Write the results of tools out, or fold them."""
        self.results_open = not self.results_open
        self._text = type(self._text)(self._calls_as_text(self._content))

    def feed(self, text: str) -> None:
        """Append text of the answer."""
        self._text.append(text)

    def think(self, text: str) -> None:
        """Append text of the thinking."""
        self._thinking.append(text)

    def finish(self) -> None:
        """End the text."""
        self._text.append("", is_last=True)
        self._thinking.append("", is_last=True)

    @property
    def source(self) -> str:
        """Source text of the message."""
        return self._text.source if self.is_markdown else self._written

    @property
    def has_thinking(self) -> bool:
        return bool(self._thinking.source.strip())

    @property
    def links(self) -> list[str]:
        return self._text.links()

    @property
    def has_wide(self) -> bool:
        """Whether anything in it may be wider than the screen."""
        return self.is_markdown and self._text.has_wide()

    @property
    def codes(self) -> list[str]:
        """Code blocks of the message."""
        return self._text.codes()

    # ---- lines

    def lines(self, width: int) -> list[Content]:
        """Lines of the whole message in `width` cells, at least one. Text is no wider than one reads with ease."""
        width = max(width if self.wide.whole else min(width, MEASURE), 1)
        return [*self._head(width), *(self._with_hits(line) for line in self._body(width)), *self._foot(width)]

    def _with_hits(self, line: Content) -> Content:
        return with_hits(line, self.marked) if self.marked else line

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
            chip = Content.styled(f" {chip_of(attachment)} ", "$text-secondary on $secondary 15%")
            lines.append(chip.truncate(width, ellipsis=True))
            if isinstance(attachment, FilePart):
                lines += _error_lines(attachment.text, width)
        if not self.is_markdown:
            return [*lines, *wrap(Content(self._plain), width)]
        body = self._text.lines(width, self.wide)
        return [*lines, *([Content()] if lines and body else []), *body]

    def _thinking_lines(self, width: int) -> list[Content]:
        if not self.has_thinking:
            return []
        arrow = "▾" if self.thinking_open else "▸"
        title = Content.styled(f"{arrow} {self.thinking_title}", "italic $foreground-muted")
        title = title.stylize(Style.from_meta({ACT: "thinking"})).truncate(width, ellipsis=True)
        if not self.thinking_open:
            return [title]
        bar = Content.styled("│ ", "$foreground 30%")
        return [title, *(bar + line.stylize("$foreground-muted") for line in self._thinking.lines(width - 2))]

    def _foot(self, width: int) -> list[Content]:
        return wrap(self.note, width) if self.note else []


def _error_lines(text: str, width: int) -> list[Content]:
    """The errors of a log that goes along condensed: they are as they are, whatever a model says of them."""
    from localrun.chat.long_text.condensed import error_lines

    errors = error_lines(text)
    shown = [clean(line, keep_newlines=False) for line in errors[:_MOST_ERRORS]]
    more = [f"… {len(errors) - len(shown):,} more: /sees shows all"] if len(shown) < len(errors) else []
    return [line.stylize("$foreground-muted") for one in (*shown, *more) for line in wrap(Content(one), width)]
