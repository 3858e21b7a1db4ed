"""Built-in tools for a folder that is allowed, and a person who is asked and sees what is shown."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from localrun.base.request import Json
from localrun.tools.allowed_tools import AllowedTools
from localrun.tools.arguments import check_arguments
from localrun.tools.built_in.registry import built_in_tools
from localrun.tools.consent import Allowed, ConsentQuestion
from localrun.tools.folders import Folders
from localrun.tools.permissions import Permissions
from localrun.tools.run_tool import run_tool
from localrun.tools.running_call import RunningCall, ToolResult
from localrun.tools.tool import Tool

posix = pytest.mark.skipif(os.name != "posix", reason="links, pipes and groups of processes are POSIX's")


def is_searching() -> bool:
    """Whether a process of ours searches lines; one may end while it is looked at."""
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if "search_lines" in " ".join(child.cmdline()):
                return True
    return False


class ToolRoom:
    """`asked` are the questions; the person says `answer` to each, after what happens `meanwhile`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folders = Folders([folder])
        self.tools = {tool.name: tool for tool in built_in_tools(self.folders)}
        self.asked: list[ConsentQuestion] = []
        self.meanwhile: Callable[[], object] = lambda: None  # while the person decides
        self.answer: Allowed = "once"
        self.permissions = Permissions(self, self.folders, AllowedTools(None))

    def ask(self, question: ConsentQuestion) -> Allowed:
        self.asked.append(question)
        self.meanwhile()
        return self.answer

    def permit(self, name: str, arguments: Json) -> tuple[Tool, Json, RunningCall | None]:
        tool = self.tools[name]
        checked = check_arguments(tool.parameters, arguments)
        return tool, checked, self.permissions.permit(name, tool, checked)

    def call(self, name: str, **arguments: object) -> ToolResult:
        tool, checked, running = self.permit(name, arguments)
        assert running is not None
        return run_tool(tool, checked, running)
