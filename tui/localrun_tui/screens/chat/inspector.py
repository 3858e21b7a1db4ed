"""Inspector: the work of the engine for the last answer, and its memory, live and in plain words."""

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
from localrun.base.units import gib, ms, tps
from localrun.base.views import CacheView, ServerLoad
from localrun.diagnose.diagnosis import SHORT_WAIT_MS, Diagnosis, diagnose
from localrun.diagnose.draft_words import draft_words
from localrun.diagnose.facts import Facts, facts_of
from localrun.diagnose.server_words import load_words, time_words
from localrun.diagnose.words import DiagnosisWords, in_words, summary
from localrun.fit.rates import Rates
from localrun_tui.markdown.wrapping import wrap
from localrun_tui.screens.chat.cache_view import counts, group_lines, legend
from localrun_tui.screens.chat.explained import explained, page_about
from localrun_tui.widgets.meters import bar

Asking = Literal["asking"]  # the first look has not come back yet
EngineView = CacheView | ServerLoad | Asking
_NAME = 13  # cells for the name of a part of memory
_PARTS = {"KV cache": "KV, all chats"}  # more than the one of a chat that the lists of models count
_LOOK = 0.5  # seconds between two looks into the cache
_FORM = frozenset(["weights", "cache", "arithmetic", "evicted", "disk", "paging"])  # another one helps
_ODDS = "/odds: how sure the model was of each token"
_AS_PREDICTED = 1.1  # a part that takes more than this share of what was predicted stands out


class Lines(Widget):
    """Lines made for the width there is. A click on one opens the page of Explain about it."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self.auto_links = False  # they look like what they are
        self._shown: tuple[Mapping[str, Any], EngineView | None, Rates | None, ModelInfo | None]
        self._shown = {}, "asking", None, None

    def show(
        self, stats: Mapping[str, Any], view: EngineView | None, rates: Rates | None, info: ModelInfo | None
    ) -> None:
        if (stats, view, rates, info) != self._shown:
            self._shown = stats, view, rates, info
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.lines(width))

    def render(self) -> Content:
        return Content("\n").join(self.lines(self.size.width))

    def lines(self, width: int) -> list[Content]:
        width = max(width, 20)
        stats, view, rates, info = self._shown
        parts = [
            _timeline(stats, rates, width),
            _load(view, width) if isinstance(view, ServerLoad) else explained(_cache(view, bool(info), width), "cache"),
            explained(_memory(view, width), "memory") if isinstance(view, CacheView) else [],
            explained(_engine(info, width), "precision"),
        ]
        return [line for part in parts if part for line in (*part, Content())][:-1]

    @property
    def topic(self) -> str:
        """The page about what the last answer waited for most."""
        stats, _, rates, _ = self._shown
        facts = facts_of(stats, rates)
        found = diagnose(facts) if facts else None
        return page_about(found.cause if found else "unknown")


class Inspector(VerticalScroll, can_focus=True):
    """The panel. While open, it fetches the contents of the cache from time to time."""

    BORDER_TITLE = "Inspector"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "explain", "Explain figures", id="inspector.explain")]

    class WantsView(TextualMessage):
        """`show_view` wants what the cache holds now; it may take the engine a moment."""

    def __init__(self) -> None:
        super().__init__(id="inspector")
        self._lines = Lines("inspector-lines")
        self._stats: Mapping[str, Any] = {}
        self._rates: Rates | None = None
        self._info: ModelInfo | None = None
        self._view: EngineView | None = "asking"
        self._answered_last = True
        self._looked = 0.0

    def compose(self) -> ComposeResult:
        yield self._lines

    def show(
        self, stats: Mapping[str, Any], rates: Rates | None, info: ModelInfo | None, answered_last: bool = True
    ) -> None:
        """Figures of the last answer. May be called several times a second, open or not. `answered_last`: the sequence
        that the engine computed last is one of the chat that is shown."""
        self._stats, self._rates, self._info, self._answered_last = stats, rates, info, answered_last
        if not self.display:
            return
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
        self._lines.show(self._stats, view, self._rates, self._info)


def _timeline(stats: Mapping[str, Any], rates: Rates | None, width: int) -> list[Content]:
    facts = facts_of(stats, rates)
    if facts is None:
        return [_heading("Last answer"), *_remote(stats, width)]
    found = diagnose(facts)
    if found is None:
        return [
            _heading("Last answer"),
            *_muted("Nothing yet: ask something, and see here where the time goes.", width),
        ]
    times = facts.stages
    whole = sum(times.values())
    lines = [_heading(f"Last answer  {ms(whole)}")]
    for name, milliseconds in times.items():
        mark = "◀" if name == found.stage else " "
        number = f"{ms(milliseconds):>9} {mark}"
        room = max(width - 10 - len(number) - 1, 4)
        style = "$warning" if name == found.stage else "$primary"
        lines.append(Content.assemble(f"{name:<9} ", bar(milliseconds / whole, room, style), f" {number}"))
    return [
        *explained([*_summary(found, facts, width), *lines, *_wait(facts, width)], "phases"),
        *explained(_reuse(stats, width), "reuse"),
        *explained(draft_lines(stats, width), "drafts"),
        *_muted(_ODDS, width),
        *explained(_advice(in_words(found, facts), width), page_about(found.cause)),
    ]


def _wait(facts: Facts, width: int) -> list[Content]:
    """The reason of a wait, where it was long, or longer than all else."""
    wait = facts.stages.get("wait", 0.0)
    if wait < SHORT_WAIT_MS and wait < max(facts.stages.values()):
        return []
    n = facts.meanwhile.ahead
    others = "another answer that was" if n == 1 else f"{n} other answers that were"
    own = "until the engine had ended what it was doing, such as a title"
    own = own if wait >= SHORT_WAIT_MS else "the way to the engine and back, and a free moment of it"
    words = f"for {others} under way" if n else own
    return _muted(f"wait: {words}", width)


def _summary(found: Diagnosis, facts: Facts, width: int) -> list[Content]:
    """A sentence in plain words, and the key that does something about it."""
    words = summary(found, facts)
    if not words:
        return []
    key = "F7 loads it in another precision, context or codec." if found.slow and found.cause in _FORM else ""
    if found.slow and found.cause in ("cache", "attention", "evicted"):
        key += " Ctrl+N begins a new chat."
    return [*wrap(Content.assemble((words, "bold"), f" {key.strip()}" if key else ""), width), Content()]


def _remote(stats: Mapping[str, Any], width: int) -> list[Content]:
    """Figures of an answer from a server; it reports no others."""
    known = []
    if (prompt := stats.get("prompt_tokens")) is not None:
        cached = stats.get("cached_tokens")
        known.append(
            f"{prompt:,} tokens in the prompt" + (f", {cached:,} of them reused" if cached is not None else "")
        )
    if written := stats.get("completion_tokens"):
        known.append(f"{written:,} token{'' if written == 1 else 's'} in the answer")
    known += time_words(stats)
    if rate := stats.get("decode_tps"):
        known.append(tps(rate))
    words = (
        "It runs on a server, which says no more of it." if known else "It runs on a server, which says nothing of it."
    )
    return [*(line for fact in known for line in wrap(Content(fact), width)), *_muted(words, width)]


def _reuse(stats: Mapping[str, Any], width: int) -> list[Content]:
    """How much of the prompt came from the cache, and why no more."""
    note = clean(str(stats.get("cache_note") or ""), keep_newlines=False)
    words = f"{int(stats.get('cached_tokens') or 0):,} of {int(stats.get('prompt_tokens') or 0):,} prompt tokens reused"
    return wrap(Content.styled(f"{words}; the rest: {note}" if note else words, "$foreground-muted"), width)


def draft_lines(stats: Mapping[str, Any], width: int) -> list[Content]:
    """How many of the answer's tokens were guessed, and what they gained, or why none were; nothing where none were
    looked for."""
    words = clean(draft_words(stats), keep_newlines=False)
    return wrap(Content.styled(words, "$foreground-muted"), width) if words else []


def _advice(advice: DiagnosisWords, width: int) -> list[Content]:
    why = f"{advice.why[:1].upper()}{advice.why[1:]}."
    lines = [Content.styled(advice.title, "bold $text-warning"), *wrap(Content(clean(why)), width)]
    if advice.remedy:
        lines += wrap(Content(clean(f"{advice.remedy[:1].upper()}{advice.remedy[1:]}.")), width)
    return lines


def _engine(info: ModelInfo | None, width: int) -> list[Content]:
    """The device that computes, and the form in which it holds what."""
    if info is not None and info.backend == "remote":
        return [_heading("Engine"), *(line for said in info.server_says for line in wrap(Content(clean(said)), width))]
    if info is None:
        return []
    parts = [f"{gib(info.weights_bytes)} of weights" if info.weights_bytes else "", f"on {info.backend}"]
    parts += [f"KV cache as {info.kv_codec}" if info.kv_codec else "", f"context {info.ctx:,}" if info.ctx else ""]
    words = clean(", ".join(part for part in parts if part), keep_newlines=False)
    return [_heading("Engine"), *wrap(Content(words), width)]


def _load(load: ServerLoad, width: int) -> list[Content]:
    """The load of a server, by its own page of metrics."""
    return [_heading("Server now"), *(line for said in load_words(load) for line in wrap(Content(said), width))]


def _cache(view: CacheView | Asking | None, is_loaded: bool, width: int) -> list[Content]:
    if view is None or view == "asking" or not is_loaded:
        told = "This engine does not tell what it holds." if view is None else "Asking the engine what it holds…"
        words = told if is_loaded else "Empty: no model is loaded."
        return [_heading("KV cache"), *_muted(words, width)]
    lines = [_heading(f"KV cache  {view.n_tokens:,} of {view.ctx:,} tokens")]
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
    return [*lines, *_muted(f"{kept}. {view.used_blocks:,} of {view.total_blocks:,} blocks are in use.", width)]


def _memory(view: CacheView, width: int) -> list[Content]:
    if not view.memory:
        return []
    largest = max(max(part.predicted, part.measured) for part in view.memory) or 1
    heads = Content.styled(f"{'':<{_NAME}} {'at most':>10} {'so far':>10}", "$foreground-muted")
    lines = [_heading("Memory"), heads]
    for part in view.memory:
        name = clean(_PARTS.get(part.name, part.name), keep_newlines=False)[:_NAME]
        line = Content(f"{name:<{_NAME}} {gib(part.predicted, largest):>10} {gib(part.measured, largest):>10} ")
        room = width - line.cell_length
        style = "$primary" if part.measured <= part.predicted * _AS_PREDICTED else "$warning"
        lines.append(line + bar(part.measured / largest, room, style) if room >= 4 else line)
    return lines


def _heading(text: str) -> Content:
    return Content.styled(text, "bold $text-primary")


def _muted(text: str, width: int) -> list[Content]:
    return wrap(Content.styled(text, "$foreground-muted"), width)
