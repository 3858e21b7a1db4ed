"""Prompt screen: the exact prompt, token by token, and the cached ones among them."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import RenderOptions
from textual.widgets import Static

from localrun.base.sanitize import clean
from localrun.base.views import PromptView
from localrun.chat.overflow import SINK_TOKENS
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.key_hint import KeyHint
from localrun_tui.widgets.leaving import Dialog

# sign and style by what becomes of a token; signs differ, so that it reads without colour
CACHED, NEW, OUTSIDE = ("▓", "$success"), ("█", "$warning"), ("·", "$foreground-muted")
UNKNOWN = ("│", "$foreground-muted")  # on a server, which does not say


def fate(position: int, view: PromptView, ctx: int) -> tuple[str, str]:
    """The treatment of the token at a position: reused, computed, or out of sight where the window rolls on."""
    if ctx and view.n_tokens >= ctx and SINK_TOKENS <= position < view.n_tokens + 1 - (ctx - SINK_TOKENS):
        return OUTSIDE
    if view.n_cached is None:
        return UNKNOWN
    return CACHED if position < view.n_cached else NEW


def token_rows(view: PromptView, ctx: int, width: int, with_ids: bool) -> list[Content]:
    """Rows of tokens, each with its id or without; a new one begins behind a line break, and where the fate changes."""
    rows: list[Content] = []
    parts: list[Content] = []
    cells, before = 0, None
    for position, (token_id, piece) in enumerate(zip(view.ids, view.pieces, strict=True)):
        now = fate(position, view, ctx)
        text = clean(piece.replace("\n", "⏎").replace("\t", "⇥"), keep_newlines=False) or "∅"
        part = Content.styled(text, "underline" if position % 2 else "")
        if with_ids:
            part += Content.styled(f" {token_id} ", "$foreground-muted")
        if parts and (cells + part.cell_length > width - 9 or now != before):
            rows.append(Content("").join(parts))
            parts = []
        if not parts:
            parts, cells = [Content.styled(f"{now[0]} {position:>6} ", now[1])], 0
        parts.append(part)
        cells, before = cells + part.cell_length, now
        if "\n" in piece:
            rows.append(Content("").join(parts))
            parts = []
    return [*rows, *([Content("").join(parts)] if parts else [])]


def legend(view: PromptView) -> Content:
    """The signs, and how many tokens have each."""
    if view.n_cached is None:
        return Content.styled("the server does not say which of them it has computed already", UNKNOWN[1])
    reused, new = min(view.n_cached, view.n_tokens), max(view.n_tokens - view.n_cached, 0)
    return Content.assemble(
        (f"{CACHED[0]} {reused:,} computed already", CACHED[1]),
        "   ",
        (f"{NEW[0]} {new:,} to be computed", NEW[1]),
        "   ",
        (f"{OUTSIDE[0]} out of sight", OUTSIDE[1]),
    )


class TokenRows(ScrollView, can_focus=True):
    """Draws the rows that are in sight only, since a prompt may have a hundred thousand tokens."""

    def __init__(self) -> None:
        super().__init__(id="tokens")
        self._rows: list[Content] = []

    def show(self, rows: list[Content]) -> None:
        self._rows = rows
        self.styles.height = max(len(rows), 1)
        self.virtual_size = Size(self.size.width, len(rows))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        number, width = self.scroll_offset.y + y, self.size.width
        if number >= len(self._rows):
            return Strip.blank(width, self.visual_style.rich_style)
        options = RenderOptions(self._get_style, {"text_wrap": "nowrap", "text_overflow": "clip"})
        (strip, *_) = self._rows[number].render_strips(width, 1, self.visual_style, options)
        return strip.extend_cell_length(width, self.visual_style.rich_style)


class PromptScreen(Dialog[None]):
    """`n_hidden` messages of the chat are not in the prompt at all; `rolls`: what is too much goes out of sight."""

    CSS_PATH = "prompt_screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close", id="prompt.close"),
        Binding("i", "toggle_ids", "Ids", id="prompt.ids"),
    ]

    def __init__(self, view: PromptView, ctx: int, n_hidden: int, rolls: bool) -> None:
        super().__init__()
        self.view, self.ctx, self.n_hidden, self.rolls = view, ctx, n_hidden, rolls
        self.with_ids = True

    def compose(self) -> ComposeResult:
        view = self.view
        hidden = "1 message" if self.n_hidden == 1 else f"{self.n_hidden} messages"
        with Vertical(id="box"):
            title = f"What the model sees: {view.n_tokens:,} tokens" + (f" of {self.ctx:,}" if self.ctx else "")
            yield Static(say(title), id="question")
            yield Static(legend(view))
            if self.n_hidden:
                yield Static(say(f"▲ {hidden} before these are not in it", "$text-warning"))
            if self.ctx and view.n_tokens >= self.ctx and not self.rolls:
                yield Static(say(f"⚠ {view.n_tokens + 1 - self.ctx:,} tokens too many to be answered", "$text-warning"))
            yield TokenRows()
        yield KeyHint("↑↓ Page↑ Page↓ scroll, i shows ids or not, Escape closes")

    def on_mount(self) -> None:
        self.query_one(TokenRows).focus()
        self.call_after_refresh(self._show)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    def action_toggle_ids(self) -> None:
        self.with_ids = not self.with_ids
        self._show()

    def _show(self) -> None:
        rows = self.query_one(TokenRows)
        rows.show(token_rows(self.view, self.ctx if self.rolls else 0, max(rows.size.width, 20), self.with_ids))
