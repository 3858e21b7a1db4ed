"""Call the tools of the MCP server at a URL, as a chat would: the client that the conformance suite starts."""

import json
import os
import sys
from contextlib import closing
from typing import Any

from localrun.tools.mcp.config import ServerEntry
from localrun.tools.mcp.servers import McpServers
from localrun.tools.running_call import RunningCall, ToolError
from localrun.tools.tool import Tool


def main() -> None:
    """List the tools, and make the calls that the suite asks for; without any, call each with numbers."""
    with closing(McpServers([ServerEntry("suite", url=sys.argv[1])], use_kept=False)) as servers:
        servers.wait()
        assert servers.problems() == []
        tools = {tool.name: tool for tool in servers.tools()}
        wanted = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")).get("toolCalls")
        calls = [(one["name"], one["arguments"]) for one in wanted or ()]
        calls = calls or [(name, arguments_for(tool, tools)) for name, tool in tools.items()]
        for name, arguments in calls:
            try:
                print(tools[name].run(arguments, RunningCall()))
            except ToolError as error:
                print(error.message)


def arguments_for(tool: Tool, tools: dict[str, Tool]) -> dict[str, Any]:
    """A number for every argument; one that is called `schema` is that of the first tool, as it was received."""
    first = next(iter(tools.values()))
    names = tool.parameters.get("properties", {})
    return {name: first.parameters if name == "schema" else number for number, name in enumerate(names, 1)}


if __name__ == "__main__":
    main()
