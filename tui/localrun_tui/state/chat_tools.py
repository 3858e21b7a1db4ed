"""The tools of the app's chats; the question whether one may run waits for the user."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from localrun.base.request import Json, Request
from localrun.client.interface import EngineClient, Generation
from localrun_tui.state.pending_consent import PendingConsent

if TYPE_CHECKING:
    from localrun.chat.journal import Chat
    from localrun.tools.chat_tools import ChatTools
    from localrun.tools.consent import Allowed, ConsentQuestion
    from localrun.tools.loop import ToolLoop


class AppTools:
    """Made when they are first wanted: an app without tools imports none of them."""

    def __init__(self, tell: Callable[[PendingConsent], Any]) -> None:
        """`tell` is called with each question, on the thread of an answer."""
        self._tell = tell
        self.pending: PendingConsent | None = None
        self._is_given_up = False  # the answer under way is stopped: nothing more is asked

    @cached_property
    def tools(self) -> "ChatTools":
        """All of them, none of which is chosen at first."""
        from localrun.tools.allowed_tools import AllowedTools
        from localrun.tools.chat_tools import ChatTools
        from localrun.tools.folders import Folders

        tools = ChatTools(self, Folders(), AllowedTools.at_home())
        tools.begin_chat()
        return tools

    @property
    def are_known(self) -> bool:
        """Whether they were wanted yet."""
        return "tools" in vars(self)

    def ask(self, question: "ConsentQuestion") -> "Allowed":
        """The user's answer; "no" where the answer under way is stopped meanwhile. On the thread of that answer."""
        self.pending = pending = PendingConsent(question)
        if self._is_given_up:  # before there was a question
            pending.answer("no")
        else:
            self._tell(pending)
        return pending.wait()

    def give_up(self) -> None:
        """Answer what is asked, and what is asked before the next answer, with no."""
        self._is_given_up = True
        if self.pending is not None:
            self.pending.answer("no")

    @property
    def for_model(self) -> tuple[Json, ...]:
        """The chosen tools, as far as servers have listed theirs."""
        return self.tools.for_model if self.are_known else ()

    def wait_for_servers(self) -> None:
        """Wait until servers of tools have told theirs."""
        if self.are_known:
            self.tools.servers.wait()

    def generate(self, client: EngineClient, request: Request) -> "Generation | ToolLoop":
        """An answer, which may call the tools of the request."""
        self._is_given_up = False
        if not request.tools:
            return client.generate(request)
        return self.tools.answer(client.generate, request, client.info.ctx)

    def leave(self, chat: "Chat | None") -> None:
        """Take back what was allowed for a chat; before there is one, it is for the first."""
        if chat is not None and self.are_known:
            self.tools.begin_chat()
            if self.pending is not None:
                self.pending.leave_chat()

    def close(self) -> None:
        """End the servers of tools."""
        self.give_up()
        if self.are_known:
            self.tools.close()
