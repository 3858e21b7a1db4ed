"""Tools that read a file or list a folder."""

import stat

from localrun.base.request import Json
from localrun.base.small_file import kind_of
from localrun.tools.built_in.file_text import lines_of, read_text, shown_path
from localrun.tools.built_in.files_read import FilesRead
from localrun.tools.folders import Folders, list_inside
from localrun.tools.running_call import RunningCall, ToolResult
from localrun.tools.tool import Tool

MAX_LINES = 2000
MAX_ENTRIES = 1000


def read_file_tool(folders: Folders, read: FilesRead) -> Tool:
    """The tool that reads lines of a text file. `read` notes the file, which can be changed only while unchanged."""

    def run(arguments: Json, call: RunningCall) -> ToolResult:
        file = read_text(folders.real_path(arguments["path"]), call.folders, call)
        read.note(file.path, file.digest)
        lines = lines_of(file.text)
        first, most = arguments["first_line"], arguments["lines"]
        part = lines[first - 1 : first - 1 + most]
        if not part:
            return call.result(f"({shown_path(file.path, folders)} has {len(lines):,} lines)")
        end = first - 1 + len(part)
        more = "" if len(part) == len(lines) else f"\n(lines {first:,} to {end:,} of {len(lines):,})"
        return call.result("".join(part).rstrip("\n") + more)

    return Tool(
        "read_file",
        "Read a text file, or a part of it.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "the path of the file"},
                "first_line": {
                    "type": "integer",
                    "description": "the line to begin with; 1 is the first",
                    "default": 1,
                    "minimum": 1,
                    "maximum": 1_000_000_000,
                },
                "lines": {
                    "type": "integer",
                    "description": f"how many lines, {MAX_LINES} at most",
                    "default": MAX_LINES,
                    "minimum": 1,
                    "maximum": MAX_LINES,
                },
            },
            "required": ["path"],
        },
        run,
        asks="folder",
        scope=folders.scope,
    )


def list_tool(folders: Folders) -> Tool:
    """The tool that lists a folder."""

    def run(arguments: Json, call: RunningCall) -> ToolResult:
        path = folders.real_path(arguments["path"])
        entries = list_inside(path, call.folders)
        lines = []
        for name, status in entries[:MAX_ENTRIES]:
            kind = kind_of(status.st_mode).removeprefix("a ")
            if stat.S_ISDIR(status.st_mode):
                lines.append(f"{name}/")
            elif stat.S_ISREG(status.st_mode):
                lines.append(f"{name}  {status.st_size:,} bytes")
            else:
                lines.append(f"{name}  ({kind})")
        if len(entries) > MAX_ENTRIES:
            lines.append(f"({len(entries) - MAX_ENTRIES:,} more entries are left out)")
        return call.result("\n".join(line.replace("\n", "?") for line in lines) or "(the folder is empty)")

    return Tool(
        "list",
        "List the files and folders in a folder.",
        {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "the path of the folder", "default": "."}},
        },
        run,
        asks="folder",
        scope=folders.scope,
    )
