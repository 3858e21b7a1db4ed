"""The tools of a plain chat: one that names none loads no module of them."""

from typing import TYPE_CHECKING

from localrun.base.request import Json
from localrun.cli.tool_options import ToolOptions
from localrun.cli.tool_servers import ready_tools

if TYPE_CHECKING:
    from localrun.tools.chat_tools import ChatTools


class LineTools:
    """`known` are made at once where the command line names some, else by the first /tools. Raises UsageError."""

    def __init__(self, options: ToolOptions, at_keyboard: bool) -> None:
        self._options, self._at_keyboard = options, at_keyboard
        self.known: ChatTools | None = self._made() if options.is_given else None

    def wanted(self) -> "ChatTools":
        """The tools, made now if they were not before."""
        if self.known is None:
            self.known = self._made()
        return self.known

    def ready(self) -> tuple[Json, ...]:
        """Tools of the next request."""
        return ready_tools(self.known)

    def begin_chat(self) -> None:
        """Take back what was allowed for the chat before."""
        if self.known is not None:
            self.known.begin_chat()

    def close(self) -> None:
        """End the servers."""
        if self.known is not None:
            self.known.close()

    def _made(self) -> "ChatTools":
        from localrun.cli.tool_consent import AskedInLines

        tools = self._options.chat_tools(AskedInLines() if self._at_keyboard else None)
        tools.begin_chat()
        return tools
