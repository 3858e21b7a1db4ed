"""The question whether a tool may run, and the answer of a person to it."""

from dataclasses import dataclass
from typing import Literal, Protocol

from localrun.base.request import Json
from localrun.tools.tool import Tool

Allowed = Literal["once", "chat", "always", "no"]


@dataclass(frozen=True, slots=True)
class ConsentQuestion:
    """A call that waits for a yes. `scope` is what is allowed along with it: a folder, a host; `preview` is what it
    would do. All of it is untrusted text, to be cleaned where it is shown."""

    tool: Tool
    arguments: Json
    scope: str
    preview: str
    choices: tuple[Allowed, ...]


class Consent(Protocol):
    """A person who is asked, or a rule that stands for one. No text of a model or of a tool is an answer."""

    def ask(self, question: ConsentQuestion) -> Allowed:
        """The answer. Waits for it; raises what ends the turn."""
        ...
