"""The downloads: progress, rate, time left and errors of each."""

from collections.abc import Sequence
from typing import ClassVar, Protocol, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.dom import DOMNode
from textual.widgets import Static

from localrun.base.options import in_app
from localrun.base.units import gib
from localrun.client.choice import ModelChoice
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.screens.downloads.download import Download
from localrun_tui.screens.downloads.downloads_queue import Downloads
from localrun_tui.widgets.columns import Column, Row, say
from localrun_tui.widgets.key_bar import KeyBar
from localrun_tui.widgets.leaving import Page
from localrun_tui.widgets.meters import bar
from localrun_tui.widgets.model_list import Item, ModelList
from localrun_tui.widgets.toast import toast

COLUMNS = (
    Column("MODEL"),
    Column("", 12),
    Column("DONE", 5, right=True),
    Column("SIZE", 9, right=True, from_width=70),
    Column("SPEED", 11, right=True),
    Column("LEFT", 8, right=True),
)
_BAR = 12
_WORDS = {
    "queued": "waits for its turn",
    "starting": "asks the hub",
    "paused": "paused",
    "done": "done and checked",
    "failed": "failed",
    "cancelled": "paused",  # as the app is left
    "unfinished": "not finished last time",
}


class HasDownloads(Protocol):
    """The part of the app that the screens of models need."""

    downloads: Downloads


def downloads_of(node: DOMNode) -> Downloads:
    """The queue of the app that `node` is in."""
    return cast(HasDownloads, node.app).downloads


class DownloadsScreen(Page[ModelChoice | None]):
    """Enter on a download that is done gives the ModelChoice to load it."""

    CSS_PATH = "downloads.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back", id="downloads.back"),
        Binding("space", "pause_or_resume", "Pause/resume", id="downloads.pause"),
        Binding("r", "retry", "Retry", id="downloads.retry"),
        Binding("d,delete", "remove", "Remove", id="downloads.remove", key_display="d"),
    ]

    def compose(self) -> ComposeResult:
        yield Static("Downloads", id="title")
        yield ModelList[Download](COLUMNS, chooses=_goes_on)
        yield Static("", id="detail")
        yield KeyBar()

    def on_mount(self) -> None:
        self.downloads = downloads_of(self)
        self.downloads.changed.subscribe(self, self._show)
        self.downloads.look_for_unfinished()
        self._show(self.downloads)
        self.query_one(ModelList).options.focus()
        if active := [one for one in self.downloads.all() if one.active]:
            self.query_one(ModelList).highlight(active[-1].key)  # the newest

    @property
    def current(self) -> Download | None:
        item: Item[Download] | None = self.query_one(ModelList).highlighted
        return item.value if item else None

    def _show(self, downloads: Downloads) -> None:
        empty = "Nothing is being downloaded.\nModels → Catalogue or Hub → Enter shows what fits; then you decide."
        self.query_one(ModelList).show(items_of(downloads.all()), empty)

    @on(ModelList.Highlighted)
    def _show_detail(self) -> None:
        self.query_one("#detail", Static).update(_detail(self.current) if self.current else "")
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what can be done now."""
        one = self.current
        state = one.state if one else ""
        allowed = {
            "pause_or_resume": state in ("queued", "running", "paused", "unfinished", "cancelled"),
            "retry": state == "failed",
            "remove": bool(one) and not (one and one.active),
        }
        return allowed.get(action, True)

    @on(ModelList.Chosen)
    def _choose(self, event: ModelList.Chosen) -> None:
        one: Download = event.item.value
        if one.choice is not None:
            self.dismiss(one.choice)
        elif _goes_on(one):
            self.downloads.resume(one.key)

    def action_back(self) -> None:
        self.dismiss(None)

    def action_pause_or_resume(self) -> None:
        if self.current and self.current.state in ("queued", "running"):
            self.downloads.pause(self.current.key)
        elif self.current:
            self.downloads.resume(self.current.key)

    def action_retry(self) -> None:
        if self.current:
            self.downloads.resume(self.current.key)

    def action_remove(self) -> None:
        one = self.current
        if one is None:
            return
        if one.state == "done":
            self.downloads.remove(one.key, lambda freed: None)
            return

        def answered(yes: bool | None) -> None:
            if yes and one is not None:
                self.downloads.remove(one.key, lambda freed: toast(self, f"{gib(freed)} are free again"))

        facts = [("removes", f"the {gib(one.done)} that have arrived")]
        question = f"Give up {one.name} {one.precision}?"
        self.app.push_screen(ConfirmScreen(question, facts, "Remove", "Keep", danger=True), answered)


class DownloadBadge(Static):
    """Summary of the downloads in a few characters: `↓ 2 · 34 %`. Empty without any."""

    DEFAULT_CSS = "DownloadBadge { width: auto; height: 1; color: $text-accent; }"

    def on_mount(self) -> None:
        downloads = downloads_of(self)
        downloads.changed.subscribe(self, self._show)
        downloads.look_for_unfinished()
        self._show(downloads)

    def _show(self, downloads: Downloads) -> None:
        self.update(say(badge_text(downloads.all())))


def badge_text(downloads: list[Download]) -> str:
    """Summary of those that run or wait; else of those that need the user."""
    active = [one for one in downloads if one.active]
    if active:
        done, total = sum(one.done for one in active), sum(one.total for one in active)
        what = active[0].short_name if len(active) == 1 else str(len(active))
        left = (active[0].silence or duration(active[0].seconds_left)) if len(active) == 1 else ""
        return " · ".join(filter(None, (f"↓ {what}", f"{100 * done // total if total else 0} %", left, "F8")))
    for state, word in (("failed", "failed"), ("paused", "paused"), ("unfinished", "not finished")):
        number = sum(one.state == state for one in downloads)
        if number:
            return f"↓ {number} {word} · F8"
    return ""


def duration(seconds: float | None) -> str:
    """`42 s`, `3 min`, `2 h 05`; empty when unknown."""
    if seconds is None or seconds > 100 * 3600:
        return ""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d}"


def _goes_on(one: Download) -> bool:
    """Whether Enter does something: it loads what is there, and resumes what is not on its way."""
    return one.choice is not None or not (one.active or one.state == "done")


def items_of(downloads: Sequence[Download]) -> list[Item[Download]]:
    """The lines of all downloads, with sizes in one unit."""
    largest = max((one.total for one in downloads), default=0)
    return [_item(one, largest) for one in downloads]


def _item(one: Download, largest: int) -> Item[Download]:
    runs = one.state == "running"
    style = {"done": "$success", "failed": "$error"}.get(one.state, "$primary" if runs else "$foreground 40%")
    cells = (
        say(f"{one.short_name} {one.precision}"),  # the detail names the repository
        bar(one.share, _BAR, style),
        say(f"{100 * one.share:.0f} %"),
        say(gib(one.total, largest)),
        say(f"{gib(one.rate)}/s" if runs and one.rate else ""),
        say(duration(one.seconds_left) if runs else ""),
    )
    return Item(one.key, Row(COLUMNS, cells, _state_line(one)), one)


def _state_line(one: Download) -> Content:
    if one.error is not None:
        return say(in_app(one.error.message), "$text-error")
    if one.state == "running":
        whole = one.total and one.done >= one.total
        so_far = "checks what has arrived" if whole else f"{gib(one.done, one.total)} of {gib(one.total, one.total)}"
        if one.note:
            return say(one.note, "$text-warning")
        silence = say(f" · {one.silence}", "$text-warning") if one.silence else Content()
        return say(so_far, "$foreground-muted") + silence
    style = "$text-success" if one.state == "done" else "$foreground-muted"
    return say(_WORDS[one.state], style)


def _detail(one: Download) -> Content:
    first = say(f"{one.repo} · {gib(one.done, one.total)} of {gib(one.total, one.total)}", "$foreground-muted")
    if one.error is not None:
        second = say(in_app(f"What to try: {one.error.hint}" if one.error.hint else one.error.message), "$text-warning")
    elif one.choice is not None:
        second = say("Enter loads it")
    elif one.state in ("paused", "unfinished", "cancelled"):
        second = say("Enter goes on where it stopped; nothing that has arrived is fetched again")
    else:
        second = say(one.note or "It goes on while you chat", "$foreground-muted")
    return Content("\n").join([first, second])
