"""The built-in tools, and how a person names them."""

from collections.abc import Sequence

from localrun.base.errors import UsageError
from localrun.base.nearest import did_you_mean
from localrun.tools.built_in.calculator import CALCULATOR
from localrun.tools.built_in.clock import TIME
from localrun.tools.built_in.command import run_command_tool
from localrun.tools.built_in.editing import edit_file_tool, write_file_tool
from localrun.tools.built_in.fetch import fetch_url_tool
from localrun.tools.built_in.files_read import FilesRead
from localrun.tools.built_in.finding import glob_tool, grep_tool
from localrun.tools.built_in.reading import list_tool, read_file_tool
from localrun.tools.folders import Folders
from localrun.tools.tool import Tool


def built_in_tools(folders: Folders) -> list[Tool]:
    """All built-in tools, for one chat."""
    read = FilesRead()
    return [
        CALCULATOR,
        TIME,
        read_file_tool(folders, read),
        list_tool(folders),
        glob_tool(folders),
        grep_tool(folders),
        edit_file_tool(folders, read),
        write_file_tool(folders, read),
        run_command_tool(folders),
        fetch_url_tool(),
    ]


def chosen_tools(tools: Sequence[Tool], names: Sequence[str]) -> list[Tool]:
    """Tools by name or unique prefix. Raises UsageError for an unknown or ambiguous name."""
    chosen: dict[str, Tool] = {}
    for name in names:
        fitting = [tool for tool in tools if tool.name == name] or [
            tool for tool in tools if tool.name.startswith(name) and name
        ]
        if len(fitting) != 1:
            known = [tool.name for tool in fitting or tools]
            hint = did_you_mean(name, known) or f"one of {', '.join(known)}"
            raise UsageError(f"{name} means {'several tools' if fitting else 'no tool'}", hint)
        chosen[fitting[0].name] = fitting[0]
    return list(chosen.values())
