"""Tools that find files by name, and lines by a regular expression."""

import json
import marshal
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.base.request import Json
from localrun.chat.files import FoundFile, fits, walk
from localrun.tools.built_in import search_lines
from localrun.tools.built_in.file_text import as_text, read_bytes, shown_path
from localrun.tools.child import run_child
from localrun.tools.folders import Folders, is_inside
from localrun.tools.running_call import RunningCall, ToolError, ToolResult
from localrun.tools.tool import Tool

MAX_FOUND = 1000  # files or lines in a result
MAX_TEXT = 64 << 20  # bytes that are searched at once
MAX_LINE = 400  # characters that are shown of a line
GREP_SECONDS = 20.0
MAX_ANSWER = 8 << 20  # bytes of numbers of lines

_PATH: Json = {"type": "string", "description": "the folder to look in", "default": "."}


def glob_tool(folders: Folders) -> Tool:
    """The tool that finds files by name."""

    def run(arguments: Json, call: RunningCall) -> ToolResult:
        root = folders.real_path(arguments["path"])
        found, is_whole = _files(root, arguments["pattern"], call)
        lines = [shown_path(one.path, folders) for one in found[:MAX_FOUND]]
        return call.result("\n".join([*lines, *_left_out(len(found), is_whole)]) or "(no file fits)")

    return Tool(
        "glob",
        "Find files by name. Hidden files and what .gitignore leaves out are passed over.",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "such as *.py or docs/*.md"},
                "path": _PATH,
            },
            "required": ["pattern"],
        },
        run,
        asks="folder",
        scope=folders.scope,
    )


def grep_tool(folders: Folders) -> Tool:
    """The tool that finds matching lines."""

    def run(arguments: Json, call: RunningCall) -> ToolResult:
        path = folders.real_path(arguments["path"])
        if path.is_file():
            found, is_whole = [FoundFile(path, path.name)], True
        else:
            found, is_whole = _files(path, arguments["files"], call)
        texts = list(_texts(found, call))
        lines = []
        for text, numbers in zip(texts, _matches(arguments, [one.text for one in texts], call), strict=True):
            shown = text.text.split("\n")
            name = shown_path(text.path, folders)
            lines += [f"{name}:{number}: {shown[number - 1][:MAX_LINE]}" for number in numbers]
        more = _left_out(len(lines), is_whole and len(texts) == len(found))
        return call.result("\n".join([*lines[:MAX_FOUND], *more]) or "(no line matches)")

    return Tool(
        "grep",
        "Find lines of text files that match a regular expression (Python's).",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "a regular expression"},
                "path": {"type": "string", "description": "the folder or file to look in", "default": "."},
                "files": {"type": "string", "description": "which files, such as *.py", "default": "*"},
                "ignore_case": {"type": "boolean", "description": "whether a is A", "default": False},
            },
            "required": ["pattern"],
        },
        run,
        asks="folder",
        scope=folders.scope,
        seconds=GREP_SECONDS,
    )


@dataclass(frozen=True, slots=True)
class _Text:
    path: Path
    text: str


def _files(root: Path, pattern: str, call: RunningCall) -> tuple[list[FoundFile], bool]:
    """Files in a folder, and whether the search was complete."""
    if not is_inside(root, call.folders):
        raise ToolError(f"{root} is outside of the folders that are allowed")
    if not root.is_dir():
        raise ToolError(f"{root} is not a folder")
    files = walk(root)
    pattern = pattern.removeprefix("./").removeprefix("**/")
    return [one for one in files.found if not one.is_folder and fits(pattern, one.name)], files.is_whole


def _texts(found: list[FoundFile], call: RunningCall) -> Iterator[_Text]:
    """The texts of files, up to a total size; other files are skipped."""
    total = 0
    for one in found:
        call.check()
        try:
            data = read_bytes(one.path, call.folders, call)
        except ToolError:  # a link that leads out of the folder, too
            data = b"\0"
        total += len(data)
        if total > MAX_TEXT:
            return
        yield _Text(one.path, as_text(data) or "")


def _matches(arguments: Json, texts: list[str], call: RunningCall) -> list[list[int]]:
    """Numbers of the matching lines of each text, found in a process that can be ended."""
    pattern = arguments["pattern"]
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ToolError(f"{pattern[:200]} is no regular expression: {error}") from None
    command = [sys.executable, "-I", "-S", str(Path(search_lines.__file__))]
    request = marshal.dumps([pattern, arguments["ignore_case"], texts])
    output = run_child(command, call, given=request, most=2 * MAX_ANSWER)
    call.check()
    if output.code != 0 or output.dropped:
        raise ToolError("too many lines match" if output.dropped else "the search failed")
    found: list[list[int]] = json.loads(output.head + output.tail)
    return found


def _left_out(n: int, is_whole: bool) -> list[str]:
    """Lines that say what is not shown."""
    more = [f"({n - MAX_FOUND:,} more are left out)"] if n > MAX_FOUND else []
    return [*more, *([] if is_whole else ["(there is more than was looked at: name a folder further down)"])]
