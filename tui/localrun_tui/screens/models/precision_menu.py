"""Choose a precision, a context and a KV codec by memory and speed. Gives a ModelChoice."""

import shutil
from collections.abc import Callable
from typing import ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from localrun.base.errors import LocalrunError, TokenError
from localrun.base.request import KVCodecName
from localrun.base.units import gib
from localrun.client.choice import ModelChoice
from localrun.hub.network.access import hub_cache
from localrun.hub.precision_offer import Offer, PrecisionChoice, Subject, read_offer
from localrun_tui.keys_in_order import keys_wait_for_dialog
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.screens.downloads.downloads import downloads_of
from localrun_tui.screens.models.memory_gauge import gauge
from localrun_tui.screens.models.model_rows import FLOOR_WORDS
from localrun_tui.screens.models.precision_compare import compare
from localrun_tui.screens.models.precision_items import COLUMNS, precision_item
from localrun_tui.screens.settings.token_question import ask_for_token
from localrun_tui.state.background import Task, run_in_background, tell
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.key_bar import KeyBar
from localrun_tui.widgets.leaving import Page
from localrun_tui.widgets.model_list import ModelList
from localrun_tui.widgets.toast import toast

DOWNLOADING = "downloading"
_LOOKING = "Looking at what there is and what fits…"
ELSEWHERE = (
    "On a server with GPUs: `localrun handover {} --gpus 1x80GiB` says what it takes there, and the lines to type."
)


class PrecisionMenu(Page[ModelChoice | str | None]):
    """Dismisses with the ModelChoice to load, with DOWNLOADING once a download was begun, or with None."""

    CSS_PATH = "precision_menu.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back", id="precision.back"),
        Binding("left", "context(-1)", "Context", id="precision.shorter", key_display="←→"),
        Binding("right", "context(1)", "Longer context", id="precision.longer", show=False),
        Binding("k", "codec", "KV cache", id="precision.codec"),
        Binding("c", "compare", "Compare", id="precision.compare"),
        Binding("r", "retry", "Try again", id="precision.retry"),
        Binding("t", "token", "Token", id="precision.token"),
    ]

    def __init__(self, subject: Subject, budget: Callable[[], int]) -> None:
        super().__init__()
        self.subject = subject
        self.budget = budget
        self.ctx = 0  # auto
        self.kv = "auto"
        self.offer: Offer | None = None
        self._asking: Task | None = None
        self._failure: LocalrunError | None = None
        self._beside: str | None = None  # key of the one that the highlighted one is compared with

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield Static(say(self.subject.name), id="title")
            yield Static("", id="licence")
        yield Static("", id="settings")
        yield ModelList[PrecisionChoice](COLUMNS)
        yield Static("", id="notes")
        yield Static("", id="gauge")
        yield KeyBar()

    def on_mount(self) -> None:
        self._list.options.focus()
        self._ask()

    def on_unmount(self) -> None:
        if self._asking is not None:
            self._asking.cancel()

    @property
    def _list(self) -> "ModelList[PrecisionChoice]":
        return self.query_one(ModelList)

    def _read(self, task: Task) -> Offer:
        return read_offer(self.subject, self.budget, task.on_cancel, lambda why: tell(self, self._wait, task, why))

    def _wait(self, task: Task, why: str) -> None:
        """Say what is waited for, while it is."""
        if not task.is_over:
            self._list.show([], f"{_LOOKING}\n{why}")

    def _ask(self) -> None:
        self._list.show([], _LOOKING)
        self._asking = run_in_background(self, self._read, self._ready, self._failed)

    def _failed(self, error: LocalrunError) -> None:
        self._failure = error
        self.refresh_bindings()
        self._list.show_error(error, "Token (t)")

    def _ready(self, offer: Offer) -> None:
        self.offer = offer
        self.ctx = offer.wished.ctx or 0
        self.kv = offer.wished.kv if offer.wished.kv in offer.codecs else "auto"
        licence = f"licence {offer.found.licence}" if offer.found and offer.found.licence else ""
        repo = offer.found.wanted.repo if offer.found and offer.found.wanted.repo != self.subject.name else ""
        self.query_one("#licence", Static).update(say(" · ".join(part for part in (licence, repo) if part)))
        self._show()
        lines = offer.lines(self.ctx, self.kv)
        wanted = self.subject.stored
        named = [one for one in lines if wanted and one.stored and one.stored.path == wanted.path]
        first = named[0] if len(named) == 1 else next((one for one in lines if one.recommended), None)
        if first is not None:
            self._list.highlight(first.key)

    def _show(self) -> None:
        """The table for the context and codec that are set."""
        offer = self.offer
        if offer is None:
            return
        rows = offer.lines(self.ctx, self.kv)
        largest = max((one.bytes for one in rows), default=0)
        self._list.show([precision_item(one, largest) for one in rows], "There is nothing to load.")
        muted, shown = "$foreground-muted", offer.context_for(self.ctx)
        parts = [("Context ", muted), (f"‹ {f'{self.ctx:,}' if self.ctx else 'auto'} ›", "bold")]
        parts += [("   KV cache ", muted), (f"‹ {self.kv} ›", "bold"), (f"   HERE is for {shown:,} tokens", muted)]
        self.query_one("#settings", Static).update(Content.assemble(*parts))
        best = offer.fit.recommended
        reason = f"★ {best.precision}: {offer.fit.reason}" if best else offer.fit.reason
        lines = [
            say(reason, "$text-accent" if best else "$text-error"),
            *(say(n, "$text-warning") for n in offer.notes),
            *([say(ELSEWHERE.format(self.subject.name))] if offer.fit.lacks_room else []),
            *([say(FLOOR_WORDS, "$foreground-muted")] if any(row.est_is_floor for row in offer.fit.rows) else []),
        ]
        self.query_one("#notes", Static).update(Content("\n").join(line for line in lines if line))

    @on(ModelList.Highlighted)
    def _show_gauge(self) -> None:
        item = self._list.highlighted
        beside = next((one.value for one in self._list.items if one.key == self._beside), None)
        words = gauge(item.value.fit) if item and item.value.fit else Content("")
        if item is not None and beside is not None:
            same = item.key == beside.key
            words = say("↑↓ chooses what to compare it with") if same else compare(beside, item.value)
        self.query_one("#gauge", Static).update(words)

    def action_compare(self) -> None:
        """Compare the highlighted one with those one goes to; again ends that."""
        item = self._list.highlighted
        self._beside = item.key if item and self._beside is None else None
        self._show_gauge()

    def action_back(self) -> None:
        self.dismiss(None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "token":
            return isinstance(self._failure, TokenError)
        has_failed = self._failure is not None
        return {"retry": has_failed, "context": not has_failed, "codec": not has_failed, "compare": not has_failed}.get(
            action, True
        )

    def action_retry(self) -> None:
        self._failure = None
        self.refresh_bindings()
        self._ask()

    def action_token(self) -> None:
        keys_wait_for_dialog(self.run_worker(self._ask_for_token()), self.app)

    async def _ask_for_token(self) -> None:
        """Ask for a token of the hub, and the hub again once there is one."""
        if await ask_for_token(self.app):
            self.action_retry()

    def action_context(self, step: int) -> None:
        if self.offer is not None:
            choices = sorted({0, self.offer.wished.ctx or 0, *self.offer.contexts})
            self.ctx = choices[(choices.index(self.ctx) + step) % len(choices)]
            self._show()

    def action_codec(self) -> None:
        if self.offer is not None:
            choices = ["auto", *self.offer.codecs]
            self.kv = choices[(choices.index(self.kv) + 1) % len(choices)]
            self._show()

    @on(ModelList.Chosen)
    def _choose(self, event: ModelList.Chosen) -> None:
        one: PrecisionChoice = event.item.value
        if one.stored is None:
            self._offer_download(one)
        elif one.fit is not None and one.fit.verdict == "no":
            facts = [("needs", gib(one.fit.total_bytes)), ("free", gib(one.fit.budget_bytes))]
            question = f"{one.name} needs more memory than is free. Load it all the same?"
            self.app.push_screen(ConfirmScreen(question, facts, "Load", danger=True), lambda yes: self._load(one, yes))
        else:
            self._load(one, True)

    def _load(self, one: PrecisionChoice, yes: bool | None) -> None:
        if yes and one.stored is not None:
            self.dismiss(ModelChoice(one.stored, one.stored.precision, self.ctx, self._codec(one)))

    def _codec(self, one: PrecisionChoice) -> KVCodecName:
        """The codec that the row showed, so that it is the one that is loaded."""
        return cast(KVCodecName, one.fit.kv_codec if one.fit else self.kv)

    def _offer_download(self, one: PrecisionChoice) -> None:
        offer = self.offer
        if offer is None or offer.found is None:
            return
        found, variant = offer.found, one.variant
        why = found.unreadable.get(one.name) or found.obstacle
        if why:
            toast(self, "It is not downloaded", f"This version cannot run it: {why}.", "warning")
            return
        if found.repo is None or variant is None:
            toast(self, "localrun is offline", "It can be downloaded once there is a network.", "warning")
            return
        free = _free_disk()
        known = downloads_of(self).find(found.repo.name, variant)
        missing = variant.bytes - (known.done if known else 0)
        facts = [
            ("from", found.repo.name),
            ("size", gib(variant.bytes) + (f", {gib(known.done)} of it here already" if known and known.done else "")),
            ("disk", f"{gib(free)} free" if free >= missing else f"{gib(missing - free)} too little: {gib(free)} free"),
            ("licence", found.licence or "none is named"),
            ("memory", _memory_words(one)),
        ]
        if found.repo.gated:
            facts.append(("consent", "its authors ask for it on the model's page"))
        question = f"Download {offer.subject.name} {variant.precision}?"
        harmless = free >= missing and (one.fit is None or one.fit.verdict != "no")

        def answered(yes: bool | None) -> None:
            if yes:
                downloads_of(self).start(found, variant, one.name, self.ctx, self._codec(one))
                self.dismiss(DOWNLOADING)

        self.app.push_screen(ConfirmScreen(question, facts, "Download", "Not now", danger=not harmless), answered)


def _free_disk() -> int:
    """Bytes free where downloads go."""
    cache = hub_cache()
    place = next(path for path in (cache, *cache.parents) if path.exists())
    return shutil.disk_usage(place).free


def _memory_words(one: PrecisionChoice) -> str:
    if one.fit is None:
        return "memory use unknown"
    needs = f"{gib(one.fit.total_bytes)} with {one.fit.ctx:,} tokens of context"
    return f"{needs}; {gib(one.fit.budget_bytes)} free"
