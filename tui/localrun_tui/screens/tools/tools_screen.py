"""Tools screen: built-in tools, MCP servers and how they are, folders, and what is always allowed."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Static

from localrun.base.errors import LocalrunError, UsageError
from localrun.tools.allowed_tools import AllowedTool
from localrun.tools.mcp.chosen import PREFIX
from localrun.tools.mcp.config import ServerEntry, remove_server, write_server
from localrun.tools.mcp.listed import forget_list
from localrun.tools.tools_command import allow_folder
from localrun_tui.screens.dialogs.ask import AskOne, AskText
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.screens.tools.server_typed import offered_servers, server_typed
from localrun_tui.screens.tools.tool_rows import ToolFiles, ToolRow, tool_rows
from localrun_tui.state.background import run_in_background
from localrun_tui.widgets.columns import Column, Row, say
from localrun_tui.widgets.key_bar import KeyBar
from localrun_tui.widgets.leaving import Page
from localrun_tui.widgets.model_list import Item, ModelList
from localrun_tui.widgets.toast import toast, toast_error

if TYPE_CHECKING:
    from localrun.tools.chat_tools import ChatTools

REFRESH_SECONDS = 0.5
COLUMNS = (Column("WHAT"), Column("KIND", 10), Column("STATE", 13))

_ADD = """\
Name of an MCP server, then its URL or the command that starts it, such as
files npx -y @modelcontextprotocol/server-filesystem ."""


class ToolsScreen(Page[None]):
    """Enter switches a tool or a server, and takes back what was allowed. Servers start and stop on a thread."""

    CSS_PATH = "tools_screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Back", id="tools.back"),
        Binding("f", "folder", "Allow a folder", id="tools.folder"),
        Binding("a", "add", "Add a server", id="tools.add"),
        Binding("i", "take_over", "Import servers", id="tools.import"),
        Binding("delete,backspace", "remove", "Remove", id="tools.remove", key_display="del"),
    ]

    def __init__(self, tools: "ChatTools") -> None:
        super().__init__()
        self._tools = tools
        self._files = ToolFiles.read(tools)

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield Static("Tools", id="title")
            yield Static("", id="problem")
        yield ModelList[ToolRow](COLUMNS)
        yield Static("", id="detail")
        yield KeyBar()

    def on_mount(self) -> None:
        self._list.options.focus()
        self._show()
        self.set_interval(REFRESH_SECONDS, self._show)

    @property
    def _list(self) -> "ModelList[ToolRow]":
        return self.query_one(ModelList)

    @property
    def current(self) -> ToolRow | None:
        """The highlighted row."""
        item = self._list.highlighted
        return item.value if item else None

    def _show(self) -> None:
        """Show the rows as they are by now: servers start, fail and change their tools meanwhile."""
        self._list.show([_item(row) for row in tool_rows(self._tools, self._files)], "")
        self.query_one("#problem", Static).update(say("; ".join(self._files.servers.problems)))

    def _reload(self, key: str = "") -> None:
        """Show what was changed in files; the highlight goes to `key`."""
        self._files = ToolFiles.read(self._tools)
        self._show()
        if key:
            self._list.highlight(key)

    @on(ModelList.Highlighted)
    def _show_detail(self) -> None:
        row = self.current
        self.query_one("#detail", Static).update(say(row.about) if row else "")
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to remove all but what is built in."""
        return action != "remove" or bool(self.current and self.current.kind != "built in")

    @on(ModelList.Chosen)
    def _choose(self) -> None:
        match self.current.value if self.current else None:
            case str(name):
                self._switch(name)
            case ServerEntry(name=name):
                self._switch(f"{PREFIX}{name}")
            case Path() | AllowedTool():
                self.action_remove()

    def action_remove(self) -> None:
        match self.current.value if self.current else None:
            case Path() as folder:
                facts = [("then", "tools may not read in it; f allows it again")]
                allowed = self._tools.folders.allowed
                self._ask_to_remove(f"Take {folder} from the tools?", facts, lambda: allowed.remove(folder))
            case AllowedTool() as always:
                facts = [("then", "each call is asked about again")]
                question = f"No longer allow {always.name} without asking?"
                self._ask_to_remove(question, facts, lambda: self._tools.always.remove(always))
            case ServerEntry() as entry:
                facts = [("is", entry.target), ("then", "it is not in mcp.json any more")]
                question = f"Remove the MCP server “{entry.name}”?"
                self._ask_to_remove(question, facts, lambda: self._remove_server(entry.name))

    def _ask_to_remove(self, question: str, facts: list[tuple[str, str]], remove: Callable[[], object]) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self._attempt(remove)
                self._reload()

        self.app.push_screen(ConfirmScreen(question, facts, "Remove", "Keep", danger=True), answered)

    def action_folder(self) -> None:
        def answered(folder: str | None) -> None:
            if folder:
                self._attempt(lambda: allow_folder(self._tools, folder))

        self.app.push_screen(AskText("Folder that tools may read in, for this chat", "."), answered)

    def action_add(self) -> None:
        self._ask_for_server()

    def _ask_for_server(self, typed: str = "", problem: str = "") -> None:
        """Ask until the line names a server; what was typed stays, to be mended."""

        def answered(line: str | None) -> None:
            if line:
                try:
                    entry = server_typed(line)
                except UsageError as error:
                    self._ask_for_server(line, "; ".join(filter(None, (error.message, error.hint))))
                else:
                    self._attempt(lambda: self._add(entry))

        self.app.push_screen(AskText(_ADD, typed, problem), answered)

    def action_take_over(self) -> None:
        offered, text = offered_servers()
        if not offered:
            toast(self, "There are no servers to take over", text)
            return

        def answered(name: str | None) -> None:
            if name:
                self._attempt(lambda: self._add(offered[name][1]))

        rows = [(name, f"{name} of {source}", entry.target) for name, (source, entry) in offered.items()]
        self.app.push_screen(AskOne("Take over a server; nothing is started", rows, text), answered)

    def _add(self, entry: ServerEntry) -> None:
        write_server(entry)
        self._reload(_key("MCP server", entry.name))
        toast(self, f"{entry.name} is added", "Enter switches it on")

    def _remove_server(self, name: str) -> None:
        remove_server(name)
        forget_list(name)
        if name in self._tools.servers.names:
            self._switch(f"{PREFIX}{name}")

    def _switch(self, name: str) -> None:
        run_in_background(self, lambda task: self._tools.switch(name), lambda _: self._show(), self._fail)

    def _attempt(self, change: Callable[[], object]) -> None:
        try:
            change()
        except LocalrunError as error:
            self._fail(error)
        self._show()

    def _fail(self, error: LocalrunError) -> None:
        toast_error(self, error)


def _item(row: ToolRow) -> Item[ToolRow]:
    state = "$text-success" if row.state.startswith("on") else "$foreground-muted"
    cells = (say(row.name), say(row.kind, "$foreground-muted"), say(row.state, state))
    return Item(_key(row.kind, row.name), Row(COLUMNS, cells), row)


def _key(kind: str, name: str) -> str:
    return f"{kind} {name}"
