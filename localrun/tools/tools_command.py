"""`/tools` in a chat: the tools that the model may call, their folders, and permissions."""

from pathlib import Path

from localrun.base.errors import UsageError
from localrun.tools.allowed_tools import AllowedTool
from localrun.tools.chat_tools import ChatTools
from localrun.tools.running_call import ToolError

USAGE = "/tools NAMES chooses some, none, allow FOLDER lets them read there, forget NUMBER asks again"


def change_tools(tools: ChatTools, wanted: str) -> None:
    """Run what was typed after /tools. Raises UsageError."""
    what, _, rest = wanted.strip().partition(" ")
    match what:
        case "none":
            tools.choose([])
        case "allow":
            allow_folder(tools, rest.strip())
        case "forget":
            tools.always.remove(_numbered(tools, rest.strip()))
        case _:
            tools.choose([name for name in wanted.replace(",", " ").split() if name])


def allow_folder(tools: ChatTools, folder: str) -> None:
    """Let tools read a folder in this chat. Raises UsageError."""
    try:
        tools.folders.allow(Path(folder or ".").expanduser())
    except (ToolError, RuntimeError, OSError, ValueError) as error:
        raise UsageError(f"{folder} is not a folder", "name one that is there") from error


def tools_lines(tools: ChatTools) -> list[str]:
    """The state of the tools, in lines."""
    chosen = tools.chosen
    of_servers = [tool for tool in chosen if tool.server]
    lines = ["Tools that the model may call:" if tools else "Tools, all of them off:"]
    for tool in (*tools.known, *of_servers):
        name = f"{tool.server} {tool.name}".strip()
        lines.append(f"{'*' if tool in chosen else ' '} {name:13}  {tool.description.partition(chr(10))[0]}")
    folders = [f"  {folder}" for folder in tools.folders.allowed]
    lines += ["Folders that they may read in:", *(folders or ["  none yet"])]
    if always := list(tools.always):
        lines += ["Always allowed:", *(f"{number:3}  {one.name}" for number, one in enumerate(always, 1))]
    return [*lines, USAGE]


def _numbered(tools: ChatTools, number: str) -> AllowedTool:
    always = list(tools.always)
    if not number.isdecimal() or not 1 <= int(number[:9]) <= len(always):
        raise UsageError(f"nothing that is always allowed has the number {number}", "/tools shows them")
    return always[int(number) - 1]
