"""The tool that runs a command: shown exactly as it runs, confirmed each time, and ended with all its processes."""

import os
from collections.abc import Sequence
from dataclasses import replace

from localrun.base.request import Json
from localrun.base.sanitize import clean
from localrun.tools.child import ChildOutput, run_child
from localrun.tools.folders import Folders
from localrun.tools.running_call import RunningCall, ToolError, ToolResult
from localrun.tools.tool import Tool

COMMAND_SECONDS = 120.0
_WORDS = 300  # characters of a result about how it ended
MAX_COMMAND = 8000  # characters


def shell_line(command: str) -> Sequence[str]:
    """The argument list that runs a command in a shell."""
    if os.name == "nt":
        return [os.environ.get("COMSPEC", "cmd.exe"), "/d", "/c", command]
    return ["/bin/sh", "-c", command]


def run_command_tool(folders: Folders) -> Tool:
    """The tool that runs a shell command, in the first allowed folder."""

    def preview(arguments: Json) -> str:
        command = arguments["command"]
        if len(command) > MAX_COMMAND:
            raise ToolError(f"the command has {len(command):,} characters; {MAX_COMMAND:,} are the most")
        if clean(command) != command or not command.strip():
            raise ToolError("the command is empty or has control characters, which could not be shown")
        return f"in {folders.base}\n$ {command}"

    def run(arguments: Json, call: RunningCall) -> ToolResult:
        if preview(arguments) != call.shown:
            raise ToolError("this is not what was accepted")
        output = run_child(shell_line(arguments["command"]), call, folder=folders.base, most=call.limit - _WORDS)
        text = output.head + (_gap(output) + output.tail if output.dropped else output.tail)
        ends = [text.decode("utf-8", "replace").rstrip("\n"), _end_line(output, call)]
        result = call.result("\n".join(filter(None, ends)), is_error=output.code != 0)
        return replace(result, bytes=result.bytes + output.dropped, cut=result.cut + output.dropped)

    return Tool(
        "run_command",
        "Run a command in a shell. The user is shown it and has to allow it.",
        {
            "type": "object",
            "properties": {"command": {"type": "string", "description": "the command line"}},
            "required": ["command"],
        },
        run,
        asks="each",
        preview=preview,
        seconds=COMMAND_SECONDS,
    )


def _gap(output: ChildOutput) -> bytes:
    return f"\n[{output.dropped:,} bytes were left out here]\n".encode()


def _end_line(output: ChildOutput, call: RunningCall) -> str:
    """Describe how the command ended."""
    if output.code is None:
        why = "stopped by the user" if call.is_cancelled else "ended because it wrote too much"
        return f"({why})" if call.seconds_left else f"(ended after {COMMAND_SECONDS:g} seconds)"
    more = f"; {output.left} processes that it left running were ended" if output.left else ""
    return f"(exit code {output.code}{more})"
