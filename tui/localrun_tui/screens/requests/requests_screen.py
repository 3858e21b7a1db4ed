"""Requests of other programs: client, progress, and reason for waiting. In the app, and as `localrun top`."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar, Protocol

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Static

from localrun.base.errors import LocalrunError
from localrun.server.monitor.rows import RequestRow
from localrun_tui.widgets.columns import Column, Row, say
from localrun_tui.widgets.key_bar import KeyBar
from localrun_tui.widgets.leaving import Page
from localrun_tui.widgets.model_list import Item, ModelList

REFRESH_SECONDS = 0.5
COLUMNS = (
    Column("CLIENT"),
    Column("PHASE", 20),
    Column("READ", 5, right=True),
    Column("CACHED", 7, right=True, from_width=100),
    Column("WRITTEN", 8, right=True),
    Column("TOK/S", 7, right=True, from_width=70),
    Column("LEFT", 6, right=True, from_width=100),
)
NOTHING = "No request is under way.\nOther programs ask at the address above; `localrun launch` sets them up."


class RequestSource(Protocol):
    """Source of the requests. `rows`, `cancel` and `raise_priority` raise LocalrunError."""

    @property
    def address(self) -> str: ...

    @property
    def attached(self) -> Sequence[str]:
        """Programs attached to the engine, as of the last rows."""
        ...

    async def rows(self) -> Sequence[RequestRow]: ...

    async def cancel(self, number: int) -> None: ...

    async def raise_priority(self, number: int) -> None: ...


class RequestsScreen(Page[None]):
    """A row a request, the oldest first."""

    CSS_PATH = "requests.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back", id="requests.back"),
        Binding("x,delete", "cancel", "End it", id="requests.cancel", key_display="x"),
        Binding("r", "raise_priority", "Goes first", id="requests.raise"),
    ]

    def __init__(self, source: RequestSource) -> None:
        super().__init__()
        self._source = source
        self._shown: tuple[str, list[RequestRow], str] | None = None
        self._has_current = False  # as the keys on the screen have it

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield Static("Requests", id="title")
            yield Static(say(self._source.address), id="address")
        yield ModelList[RequestRow](COLUMNS, chooses=lambda row: False)
        yield Static("", id="detail")
        yield KeyBar()

    async def on_mount(self) -> None:
        self.query_one(ModelList).options.focus()
        await self._refresh()
        self.set_interval(REFRESH_SECONDS, self._refresh)

    @property
    def current(self) -> RequestRow | None:
        item: Item[RequestRow] | None = self.query_one(ModelList).highlighted
        return item.value if item else None

    async def _refresh(self) -> None:
        try:
            rows, problem = await self._source.rows(), ""
        except LocalrunError as error:
            rows, problem = [], f"{error.message}\n{error.hint}".strip()
        attached = f" · attached: {', '.join(self._source.attached)}" if self._source.attached else ""
        shown = (f"{self._source.address}{attached}", list(rows), problem)
        if shown == self._shown:  # drawing it again would cost whoever asks
            return
        self._shown = shown
        self.query_one("#address", Static).update(say(shown[0]))
        self.query_one(ModelList).show([_item(row) for row in rows], problem or NOTHING)
        self._show_detail()

    def on_model_list_highlighted(self) -> None:
        self._show_detail()

    def _show_detail(self) -> None:
        row, detail = self.current, self.query_one("#detail", Static)
        detail.update(say(_detail(row)) if row else "")
        if self._has_current != (row is not None):
            self._has_current = row is not None
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer keys for a request only where there is one."""
        return action not in ("cancel", "raise_priority") or self.current is not None

    async def action_cancel(self) -> None:
        await self._ask(self._source.cancel)

    async def action_raise_priority(self) -> None:
        await self._ask(self._source.raise_priority)

    async def _ask(self, call: Callable[[int], Coroutine[Any, Any, None]]) -> None:
        """Call for the current request."""
        if self.current is None:
            return
        try:
            await call(self.current.number)
        except LocalrunError as error:
            self.notify(error.message, severity="warning", markup=False)
        await self._refresh()

    def action_back(self) -> None:
        self.dismiss(None)


def _item(row: RequestRow) -> Item[RequestRow]:
    share = f"{row.read_tokens / row.prompt_tokens:.0%}" if row.prompt_tokens else ""
    cached = f"{row.cached_tokens / row.prompt_tokens:.0%}" if row.prompt_tokens else ""
    cells = (
        row.client or row.protocol,
        f"waits for {row.waits_for}" if row.waits_for else row.phase,
        share,
        cached,
        str(row.written_tokens),
        "" if row.rate is None else f"{row.rate:.1f}",
        "" if row.seconds_left is None else f"{row.seconds_left:.0f} s",
    )
    return Item(str(row.number), Row(COLUMNS, [say(cell) for cell in cells]), row)


def _detail(row: RequestRow) -> str:
    """Details that do not fit in the row."""
    session = f" · session {row.session}" if row.session else ""
    tokens = f"{row.prompt_tokens:,} tokens of prompt, {row.cached_tokens:,} of them cached"
    left = "" if row.seconds_left is None else f", {row.seconds_left:.0f} s left"
    return f"{tokens} · asked {row.seconds:.0f} s ago{left} · {row.model} · {row.protocol}{session}"
