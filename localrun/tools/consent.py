"""The question whether a tool may run, and a person's answer."""

from typing import Literal, Protocol

from localrun.base.dataclass import dataclass
from localrun.base.request import Json
from localrun.tools.tool import Tool

Allowed = Literal["once", "chat", "always", "no"]


@dataclass(frozen=True, slots=True)
class ConsentQuestion:
    """A call that waits for consent.

    `scope` is what is allowed with it: a folder, a host; `preview` is what it would do. All of it is untrusted text, to
    be cleaned where it is shown.
    """

    tool: Tool
    arguments: Json
    scope: str
    preview: str
    choices: tuple[Allowed, ...]


class Consent(Protocol):
    """A person who is asked, or a rule in their place. Text of a model or a tool is never an answer."""

    def ask(self, question: ConsentQuestion) -> Allowed:
        """Wait for the answer; raises what ends the turn."""
        ...
