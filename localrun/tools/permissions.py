"""Permissions of a chat: what its tools may do without a question, and the question for the rest."""

from pathlib import Path

from localrun.base.errors import RefusedCallError
from localrun.base.request import Json
from localrun.tools.allowed_tools import AllowedTools
from localrun.tools.consent import Allowed, Consent, ConsentQuestion
from localrun.tools.folders import Folders, is_inside
from localrun.tools.running_call import LIMIT, RunningCall
from localrun.tools.tool import Tool

_CHOICES: tuple[Allowed, ...] = ("once", "chat", "always", "no")
_EACH_TIME: tuple[Allowed, ...] = ("once", "no")


class Permissions:
    """`folders` may be read; anything else needs the consent."""

    def __init__(
        self,
        consent: Consent,
        folders: Folders,
        always: AllowedTools,
        limit: int = LIMIT,
    ) -> None:
        self.folders = folders
        self.limit = limit  # characters of a result
        self._consent = consent
        self._always = always
        self.names: set[str] = set()  # of tools that were allowed beforehand, on a command line
        self._chat: set[tuple[str, str]] = set()  # digests and scopes

    def permit(self, name: str, tool: Tool, arguments: Json) -> RunningCall | None:
        """The call as it may run; None where the person refused.

        Raises ToolError for a call that cannot be shown, and what the consent raises.
        """
        shown = tool.preview(arguments)
        scope = tool.scope(arguments)
        folders = self._folders_of(tool)
        if not self._is_allowed(name, tool, scope, folders):
            if tool.asks == "folder":
                scope = str(self.folders.to_ask_for(Path(scope)))
            choices = _EACH_TIME if tool.asks == "each" else _CHOICES
            answer = self._consent.ask(ConsentQuestion(tool, arguments, scope, shown, choices))
            if answer not in choices or answer == "no":
                return None
            self._remember(answer, tool, scope)
            if tool.asks == "folder":
                folders.append(Path(scope))
        return RunningCall(tool.seconds, self.limit, folders, shown)

    def _is_allowed(self, name: str, tool: Tool, scope: str, folders: list[Path]) -> bool:
        match tool.asks:
            case "never":
                return True
            case "folder":
                return is_inside(Path(scope), folders)
            case "first":
                chat = (tool.digest, scope) in self._chat or any(one.is_for(tool, scope) for one in self._always)
                return chat or not self.names.isdisjoint(tool.named)
            case "each":
                return name in self.names and (not scope or is_inside(Path(scope), folders))

    def _folders_of(self, tool: Tool) -> list[Path]:
        """Folders that a tool may read: those of the chat, and those always allowed to it."""
        own = [Path(one.scope) for one in self._always if tool.asks == "folder" and one.is_for(tool, one.scope)]
        return [*self.folders.allowed, *own]

    def forget_chat(self) -> None:
        """Revoke what was allowed for a chat."""
        self._chat.clear()

    def _remember(self, answer: Allowed, tool: Tool, scope: str) -> None:
        if answer == "chat" and tool.asks == "folder":
            self.folders.allow(Path(scope))
        elif answer == "chat":
            self._chat.add((tool.digest, scope))
        elif answer == "always":
            self._always.add(tool, scope)


class NeverAsked:
    """The consent where no person can be asked: a call that was not allowed beforehand ends the answer."""

    def ask(self, question: ConsentQuestion) -> Allowed:
        """Refuse the call."""
        what = f"the model called {question.tool.name}"
        if question.scope:
            what += f" for {question.scope}"
        raise RefusedCallError(f"{what}, which was not allowed", allowing_hint(question))


def allowing_hint(question: ConsentQuestion) -> str:
    """How a command line allows a call beforehand."""
    what = question.scope if question.tool.asks == "folder" else question.tool.named[-1]
    return f"--allow {what} allows it, or leave the tool out of --tools"
