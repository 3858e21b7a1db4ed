"""Tools, folders and what is always allowed, on one screen: Enter switches a tool, allows, or takes back."""

from typing import TYPE_CHECKING, Any

from textual.app import App

from localrun_tui.screens.dialogs.ask import AskOne, AskText

if TYPE_CHECKING:
    from localrun.tools.chat_tools import ChatTools

_FOLDER = "folder"


async def choose_tools(app: App[Any], tools: "ChatTools") -> None:
    """Let the user change them until Escape."""
    from localrun.tools.tools_command import allow_folder

    chosen = ""
    while choice := await app.push_screen_wait(AskOne("Tools", tool_rows(tools), _words(tools), current=chosen)):
        chosen = choice
        kind, _, name = choice.partition(" ")
        match kind:
            case "tool":
                names = [tool.name for tool in tools.built_in]
                names = [one for one in names if one != name] if name in names else [*names, name]
                tools.choose([*names, *(f"mcp:{server}" for server in tools.servers.names)])
            case "server":
                servers = [one for one in tools.servers.names if one != name]
                servers = servers if name in tools.servers.names else [*servers, name]
                tools.choose([*(tool.name for tool in tools.built_in), *(f"mcp:{server}" for server in servers)])
            case "always":
                tools.always.remove(list(tools.always)[int(name)])
            case _:
                folder = await app.push_screen_wait(AskText("Folder that tools may read in, for this chat", "."))
                if folder is not None:
                    allow_folder(tools, folder)


def tool_rows(tools: "ChatTools") -> list[tuple[str, str, str]]:
    """Key, title and explanation of each."""
    from localrun.tools.mcp.config import read_servers

    on = {True: "on ", False: "off"}
    rows = [(f"tool {one.name}", f"{on[one in tools.built_in]} {one.name}", one.description) for one in tools.known]
    for entry in read_servers().usable:
        rows.append((f"server {entry.name}", f"{on[entry.name in tools.servers.names]} {entry.name}", "an MCP server"))
    rows.append((_FOLDER, "Allow a folder …", "tools may read in it and below, for this chat"))
    rows += [
        (f"always {number}", f"Ask again: {one.name}", "it is always allowed now")
        for number, one in enumerate(tools.always)
    ]
    return rows


def _words(tools: "ChatTools") -> str:
    folders = ", ".join(map(str, tools.folders.allowed))
    return f"Folders that they may read in: {folders or 'none yet'}"
