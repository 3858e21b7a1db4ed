"""Inspector: the work of the engine for an answer, and its memory, live and in plain words."""

import time
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.message import Message as TextualMessage
from textual.widget import Widget

from localrun.base.events import ModelInfo
from localrun.base.sanitize import clean
from localrun.base.units import gib
from localrun.base.views import CacheView, ServerLoad
from localrun.diagnose.diagnosis import diagnose
from localrun.diagnose.facts import facts_of
from localrun.diagnose.server_words import load_words
from localrun.fit.rates import Rates
from localrun_tui.markdown.wrapping import wrap
from localrun_tui.screens.chat.answer_figures import answer_lines
from localrun_tui.screens.chat.cache_view import counts, group_lines, legend
from localrun_tui.screens.chat.figure_lines import explained, heading, muted
from localrun_tui.screens.chat.live_phases import LivePhases, live_lines
from localrun_tui.widgets.meters import bar

Asking = Literal["asking"]  # the first look has not come back yet
EngineView = CacheView | ServerLoad | Asking
AnswerFigures = Mapping[str, Any] | LivePhases  # of the last answer, or of the one under way
_NAME = 13  # cells for the name of a part of memory
_PARTS = {"KV cache": "KV, all chats"}  # more than the one of a chat that the lists of models count
_LOOK = 0.5  # seconds between two looks into the cache
_AS_PREDICTED = 1.1  # a part that takes more than this share of what was predicted stands out


class Lines(Widget):
    """Lines made for the width there is. A click on one opens the page of Explain about it."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self.auto_links = False  # they look like what they are
        self._shown: tuple[AnswerFigures, EngineView | None, Rates | None, ModelInfo | None]
        self._shown = {}, "asking", None, None

    def show(self, answer: AnswerFigures, view: EngineView | None, rates: Rates | None, info: ModelInfo | None) -> None:
        if (answer, view, rates, info) != self._shown:
            self._shown = answer, view, rates, info
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.lines(width))

    def render(self) -> Content:
        return Content("\n").join(self.lines(self.size.width))

    def lines(self, width: int) -> list[Content]:
        width = max(width, 20)
        answer, view, rates, info = self._shown
        parts = [
            live_lines(answer, width) if isinstance(answer, LivePhases) else answer_lines(answer, rates, width),
            _load(view, width) if isinstance(view, ServerLoad) else explained(_cache(view, bool(info), width), "cache"),
            explained(_memory(view, width), "memory") if isinstance(view, CacheView) else [],
            explained(_engine(info, width), "precision"),
        ]
        return [line for part in parts if part for line in (*part, Content())][:-1]

    @property
    def topic(self) -> str:
        """The page about what the last answer waited for most, or about phases as long as that is not known."""
        answer, _, rates, _ = self._shown
        facts = None if isinstance(answer, LivePhases) else facts_of(answer, rates)
        found = diagnose(facts) if facts else None
        return found.topic if found else "phases"


class Inspector(VerticalScroll, can_focus=True):
    """The panel. While open, it fetches the contents of the cache from time to time."""

    BORDER_TITLE = "Inspector"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "explain", "Explain figures", id="inspector.explain")]

    class WantsView(TextualMessage):
        """`show_view` wants what the cache holds now; it may take the engine a moment."""

    def __init__(self) -> None:
        super().__init__(id="inspector")
        self._lines = Lines("inspector-lines")
        self._answer: AnswerFigures = {}
        self._rates: Rates | None = None
        self._info: ModelInfo | None = None
        self._view: EngineView | None = "asking"
        self._answered_last = True
        self._looked = 0.0

    def compose(self) -> ComposeResult:
        yield self._lines

    def show(
        self, answer: AnswerFigures, rates: Rates | None, info: ModelInfo | None, answered_last: bool = True
    ) -> None:
        """May be called several times a second while it is open. `answered_last`: what the engine computed last is of
        the chat that is shown."""
        self._answer, self._rates, self._info, self._answered_last = answer, rates, info, answered_last
        self._show_lines()
        if time.monotonic() - self._looked > _LOOK:
            self._looked = time.monotonic()
            self.post_message(self.WantsView())

    def show_view(self, view: EngineView | None) -> None:
        """Show the contents of the cache; None: unknown."""
        self._view = view
        self._show_lines()

    async def action_explain(self) -> None:
        await self.run_action(f"app.explain({self._lines.topic!r})")

    def look_anew(self) -> None:
        """The last look was at another cache: `show` does not wait until it is time for the next one."""
        self._looked = 0.0

    def _show_lines(self) -> None:
        view = self._view
        if isinstance(view, CacheView) and not self._answered_last:
            view = view.for_another_chat()
        self._lines.show(self._answer, view, self._rates, self._info)


def _engine(info: ModelInfo | None, width: int) -> list[Content]:
    """The device that computes, and the form in which it holds what."""
    if info is not None and info.backend == "remote":
        return [heading("Engine"), *(line for said in info.server_says for line in wrap(Content(clean(said)), width))]
    if info is None:
        return []
    parts = [f"{gib(info.weights_bytes)} of weights" if info.weights_bytes else "", f"on {info.backend}"]
    parts += [f"KV cache as {info.kv_codec}" if info.kv_codec else "", f"context {info.ctx:,}" if info.ctx else ""]
    words = clean(", ".join(part for part in parts if part), keep_newlines=False)
    return [heading("Engine"), *wrap(Content(words), width)]


def _load(load: ServerLoad, width: int) -> list[Content]:
    """The load of a server, by its own page of metrics."""
    return [heading("Server now"), *(line for said in load_words(load) for line in wrap(Content(said), width))]


def _cache(view: CacheView | Asking | None, is_loaded: bool, width: int) -> list[Content]:
    if view is None or view == "asking" or not is_loaded:
        told = "This engine does not tell what it holds." if view is None else "Asking the engine what it holds…"
        words = told if is_loaded else "Empty: no model is loaded."
        return [heading("KV cache"), *muted(words, width)]
    lines = [heading(f"KV cache  {view.n_tokens:,} of {view.ctx:,} tokens")]
    for group in view.groups:
        lines += group_lines(group, -(-view.ctx // max(view.block_tokens, 1)), width, view.block_tokens)
    lines += legend(set(counts(view)), width)
    if view.kv.budget:
        chat, kept = gib(view.kv.chat, view.kv.budget), gib(view.kv.kept, view.kv.budget)
        whose = f"{chat} of this chat, {kept} kept of others" if view.kv.chat else f"{kept} kept of chats so far"
        lines += wrap(Content(f"{whose}; together they may take {gib(view.kv.budget, view.kv.budget)}."), width)
    kept = f"Kept for reuse: {view.tree_tokens:,} tokens of all chats"
    if view.disk_bytes:
        kept += f", {gib(view.disk_bytes)} more on disk"
    return [*lines, *muted(f"{kept}. {view.used_blocks:,} of {view.total_blocks:,} blocks are in use.", width)]


def _memory(view: CacheView, width: int) -> list[Content]:
    if not view.memory:
        return []
    largest = max(max(part.predicted, part.measured) for part in view.memory) or 1
    heads = Content.styled(f"{'':<{_NAME}} {'at most':>10} {'so far':>10}", "$foreground-muted")
    lines = [heading("Memory"), heads]
    for part in view.memory:
        name = clean(_PARTS.get(part.name, part.name), keep_newlines=False)[:_NAME]
        line = Content(f"{name:<{_NAME}} {gib(part.predicted, largest):>10} {gib(part.measured, largest):>10} ")
        room = width - line.cell_length
        style = "$primary" if part.measured <= part.predicted * _AS_PREDICTED else "$warning"
        lines.append(line + bar(part.measured / largest, room, style) if room >= 4 else line)
    return lines
