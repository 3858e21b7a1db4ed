"""Tools that change files: a person accepts the diff, and exactly that is written, or nothing."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.base.request import Json
from localrun.base.sanitize import clean
from localrun.tools.built_in.file_text import as_text, read_bytes
from localrun.tools.built_in.files_read import FilesRead
from localrun.tools.built_in.hunk import hunk
from localrun.tools.folders import Folders, write_inside
from localrun.tools.running_call import RunningCall, ToolError, ToolResult
from localrun.tools.tool import Tool

MAX_TEXT = 400_000  # characters of a text that is written
_BOM = b"\xef\xbb\xbf"
_PATH: Json = {"type": "string", "description": "the path of the file"}


@dataclass(frozen=True, slots=True)
class _Change:
    """A planned change of a file; `before` None for a new one."""

    path: Path
    before: str | None
    after: str
    has_bom: bool = False

    @property
    def shown(self) -> str:
        """The diff that a person accepts."""
        return hunk(str(self.path), self.before, self.after)

    @property
    def data(self) -> bytes:
        return (_BOM if self.has_bom else b"") + self.after.encode()


Plan = Callable[[Json, Path, str | None], str]  # the text of a file, from what it was


class _Editor:
    """Base of editing tools: the file is read again before it is written, and must be unchanged since the diff."""

    def __init__(self, folders: Folders, read: FilesRead, plan: Plan, needs_reading: bool) -> None:
        self._folders, self._read, self._plan = folders, read, plan
        self._needs_reading = needs_reading

    def scope(self, arguments: Json) -> str:
        return self._folders.scope(arguments)

    def preview(self, arguments: Json) -> str:
        return self._change(arguments).shown

    def run(self, arguments: Json, call: RunningCall) -> ToolResult:
        change = self._change(arguments)
        if change.shown != call.shown:
            raise ToolError(f"{change.path} changed since this was accepted", "read it again")
        write_inside(change.path, self._roots(change.path), change.data)
        self._read.note(change.path, hashlib.sha256(change.data).hexdigest())
        return call.result(f"{change.path} was {'changed' if change.before is not None else 'written'}")

    def _roots(self, path: Path) -> list[Path]:
        """Folders that the tool may write in: the allowed ones, and for an accepted change the file's own."""
        return [*self._folders.allowed, path.parent]

    def _change(self, arguments: Json) -> _Change:
        path = self._folders.real_path(arguments["path"])
        if not path.parent.is_dir():
            raise ToolError(f"there is no folder {path.parent}")
        if not path.exists():
            return _Change(path, None, _checked(self._plan(arguments, path, None)))
        data = read_bytes(path, self._roots(path))
        text = as_text(data)
        if text is None:
            raise ToolError(f"{path} is not a text file")
        known, digest = self._read.known(path), hashlib.sha256(data).hexdigest()
        if known is None and self._needs_reading:
            raise ToolError(f"{path} is there already and was not read", "read it first")
        if known not in (None, digest):
            raise ToolError(f"{path} changed since it was read", "read it again")
        return _Change(path, text, self._plan(arguments, path, text), data.startswith(_BOM))


def write_file_tool(folders: Folders, read: FilesRead) -> Tool:
    """The tool that writes a whole text file. An existing file must have been read, and be unchanged since."""

    def plan(arguments: Json, path: Path, before: str | None) -> str:
        text = _checked(arguments["text"])
        return text.replace("\n", "\r\n") if before is not None and "\r\n" in before else text

    return _editing_tool(
        _Editor(folders, read, plan, needs_reading=True),
        "write_file",
        "Write a text file. The user is shown the difference and has to accept it.",
        {"path": _PATH, "text": {"type": "string", "description": "all of the text"}},
    )


def edit_file_tool(folders: Folders, read: FilesRead) -> Tool:
    """The tool that replaces a text that occurs once in a file."""

    def plan(arguments: Json, path: Path, before: str | None) -> str:
        if before is None:
            raise ToolError(f"there is no file {path}", "write_file makes one")
        old, new = arguments["old_text"], _checked(arguments["new_text"])
        if "\r\n" in before:
            old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
        n = before.count(old) if old else 0
        if n != 1:
            what = f"old_text is in {path} {n} times" if n else f"old_text is not in {path}"
            raise ToolError(what, "give a text that is there exactly once, with lines around it")
        if old == new:
            raise ToolError("old_text and new_text are the same")
        return before.replace(old, new)

    return _editing_tool(
        _Editor(folders, read, plan, needs_reading=False),
        "edit_file",
        "Replace a text in a file. The user is shown the difference and has to accept it.",
        {
            "path": _PATH,
            "old_text": {"type": "string", "description": "the text to replace, which is in the file exactly once"},
            "new_text": {"type": "string", "description": "the text in its place"},
        },
    )


def _editing_tool(editor: _Editor, name: str, description: str, properties: Json) -> Tool:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(name, description, parameters, editor.run, asks="each", scope=editor.scope, preview=editor.preview)


def _checked(text: str) -> str:
    """A text that can be shown as it is written. Raises ToolError."""
    text = text.replace("\r\n", "\n")
    if len(text) > MAX_TEXT:
        raise ToolError(f"the text has {len(text):,} characters; {MAX_TEXT:,} are the most")
    if clean(text) != text:
        raise ToolError("the text has control characters, which could not be shown")
    return text
