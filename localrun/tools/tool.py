"""A tool that a model may call, built in or of an MCP server."""

import hashlib
import json
from collections.abc import Callable
from typing import Literal, TypeAlias

from localrun.base.dataclass import dataclass
from localrun.base.request import Json
from localrun.base.sanitize import clean
from localrun.tools.running_call import SECONDS, RunningCall, ToolResult

# When a person is asked: never, for a folder that was not allowed yet, before the first call, or before each.
Asks = Literal["never", "folder", "first", "each"]
RunTool: TypeAlias = Callable[[Json, RunningCall], ToolResult]
MAX_DESCRIPTION = 4000  # characters that a model is told; longer ones are cut


def _nothing(arguments: Json) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. `parameters` is the JSON schema of its arguments; `server` is empty for a built-in one.

    `run` takes arguments that are a JSON object and raises ToolError for a failure. `scope` is what a person allows
    with the tool: a host, or a path. `preview` shows what a call would do: a diff, a command. Both may raise ToolError.
    """

    name: str
    description: str
    parameters: Json
    run: RunTool
    server: str = ""
    asks: Asks = "first"
    scope: Callable[[Json], str] = _nothing
    preview: Callable[[Json], str] = _nothing
    seconds: float = SECONDS  # that a call may take

    @property
    def named(self) -> tuple[str, ...]:
        """Names on a command line: of a server's tool together with all of that server, and alone."""
        return (f"mcp:{self.server}", f"mcp:{self.server}/{self.name}") if self.server else (self.name,)

    @property
    def digest(self) -> str:
        """The hash that "always" is bound to: a tool with another description is asked about again."""
        identity = [self.server, self.name, self.description, self.parameters]
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    def as_function(self, name: str) -> Json:
        """The tool for a request in the OpenAI format, with this name. Descriptions of servers are untrusted text."""
        description = clean(self.description[:MAX_DESCRIPTION])
        return {
            "type": "function",
            "function": {"name": name, "description": description, "parameters": self.parameters},
        }
