"""The prompt library: system prompts and templates with {{variables}}, each a Markdown file in the config folder.

    ---
    title: Explain code
    about: what it does, step by step
    kind: template
    ---
    Explain this code to {{reader|a newcomer}}: {{code}}

`kind` is system or template. A file of the user replaces one of the same name that ships with localrun.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Literal, cast, get_args

from localrun.base.dataclass import dataclass
from localrun.base.errors import NotFoundError, StorageError, UsageError
from localrun.base.files import write_whole
from localrun.base.nearest import did_you_mean
from localrun.base.parsers import is_unicode
from localrun.base.paths import folder, what_is_not_kept, writable_folder
from localrun.base.sanitize import clean
from localrun.base.small_file import read_small

PromptKind = Literal["system", "template"]
MAX_BYTES = 256 << 10  # of a file: it is to be a prompt
_VARIABLE = re.compile(r"\{\{\s*([\w -]+?)\s*(?:\|([^{}]*))?\}\}")
_NAME = re.compile(r"[\w-]{1,64}\Z")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of the library. `name` is that of its file."""

    name: str
    title: str
    about: str
    kind: PromptKind
    text: str
    shipped: bool = False

    @property
    def variables(self) -> dict[str, str]:
        """Variables of a template in order, each with its default."""
        found: dict[str, str] = {}
        for name, usual in _VARIABLE.findall(self.text):
            found[name] = found.get(name) or usual.strip()
        return found

    def filled(self, values: Mapping[str, str]) -> str:
        """The text with `values` inserted literally. UsageError for a missing one."""
        usual = self.variables

        def value(match: re.Match[str]) -> str:
            name = match[1]
            text = values.get(name) or usual[name]
            if not text:
                raise UsageError(f"the prompt {self.name} needs {name}", f"give a value for {name}")
            return text

        return _VARIABLE.sub(value, self.text)


def read_prompts() -> list[Prompt]:
    """All prompts of the library by name; unreadable files are skipped."""
    found: dict[str, Prompt] = {}
    for entry in sorted(files("localrun").joinpath("prompts").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".md"):
            found[entry.name[:-3]] = parse(entry.name[:-3], entry.read_text("utf-8"), shipped=True)
    home = prompt_folder()
    for path in sorted(home.glob("*.md")) if home and home.is_dir() else ():
        try:
            if _NAME.match(path.stem):
                found[path.stem] = parse(path.stem, read_small(path, MAX_BYTES).decode("utf-8-sig"))
        except (OSError, UnicodeDecodeError):
            continue
    return [found[name] for name in sorted(found)]


def find_prompt(name: str) -> Prompt:
    """Find a prompt by name. NotFoundError names the nearest ones."""
    known = {prompt.name: prompt for prompt in read_prompts()}
    if name not in known:
        raise NotFoundError(f"there is no prompt {name}", did_you_mean(name, known) or "/prompt shows them")
    return known[name]


def prompt_folder() -> Path | None:
    """Folder of the user's prompts, which need not exist."""
    home = folder("config")
    return home / "prompts" if home else None


def keep_prompt(name: str, text: str, kind: PromptKind = "template") -> Path:
    """Save a prompt.

    UsageError for an invalid or existing name or an empty text, StorageError where it cannot be written.
    """
    if not _NAME.match(name):
        raise UsageError(f"{name!r} is not a valid name for a prompt", "use letters, digits, - and _")
    home = writable_folder("config")
    if home is None:
        raise StorageError(what_is_not_kept("config"), "set LOCALRUN_HOME to a folder you can write to")
    if not is_unicode(text):
        raise UsageError("the prompt is not UTF-8 text", "convert it to UTF-8 first")
    path = home / "prompts" / f"{name}.md"
    if path.exists():
        raise UsageError(f"there is a prompt {name} already", f"choose another name, or change {path}")
    try:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, f"---\ntitle: {name}\nkind: {kind}\n---\n{text}\n")
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}", "free some space") from None
    return path


def parse(name: str, source: str, shipped: bool = False) -> Prompt:
    """Parse the file of a prompt; one without a header is a template as a whole."""
    head: dict[str, str] = {}
    lines = source.split("\n")
    if lines[0].strip() == "---" and "---" in (rest := [line.strip() for line in lines[1:]]):
        end = rest.index("---")
        pairs = (line.partition(":") for line in rest[:end] if ":" in line)
        head = {key.strip().lower(): value.strip().strip("\"'") for key, _, value in pairs}
        lines = lines[end + 2 :]
    kind = head.get("kind", "template")
    return Prompt(
        name,
        clean(head.get("title") or name, keep_newlines=False),
        clean(head.get("about", ""), keep_newlines=False),
        cast(PromptKind, kind) if kind in get_args(PromptKind) else "template",
        clean("\n".join(lines).strip()),
        shipped,
    )
