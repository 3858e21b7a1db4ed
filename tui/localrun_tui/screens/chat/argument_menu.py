"""Suggestions behind a command: the values that its argument may have."""

import os
import shlex
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from textual.content import Content

from localrun_tui.screens.chat.suggestions import Suggestion
from localrun_tui.widgets.columns import say

ArgumentValues = Iterable[tuple[str, str]]  # each with words about it
_MOST = 40
_MOST_ENTRIES = 5000  # of a folder that are looked at
_ADAPTER_FILES = ("adapter_config.json", "adapters.safetensors")  # in folders of PEFT and of MLX


def takes_argument(text: str) -> bool:
    """Whether the text is a command whose values are known, and a space."""
    command, space, _ = text.partition(" ")
    return bool(space) and "\n" not in text and (command in _VALUES or command == "/lora")


def suggested_arguments(text: str) -> list[Suggestion]:
    """Rows for the values that contain what is typed behind the command, those that begin so first.

    Reads the disk: call it on a thread.
    """
    command, _, typed = text.partition(" ")
    if command == "/lora":
        return _adapters(typed)
    wanted = typed.strip().lower()
    fitting = [(value, words) for value, words in _VALUES[command]() if wanted in value.lower()]
    fitting.sort(key=lambda one: not one[0].lower().startswith(wanted))
    return [
        Suggestion(
            command,
            Content.assemble(say(value, "bold"), ("  ", ""), say(words, "$foreground-muted")),
            argument=value,
        )
        for value, words in fitting[:_MOST]
    ]


def _adapters(typed: str) -> list[Suggestion]:
    """Rows for the files and folders that a typed path goes on to; Tab goes into a folder. None for several words."""
    folder, begun = os.path.split(typed)
    if not typed or " " in typed:
        return []
    try:
        with os.scandir(Path(folder or ".").expanduser()) as entries:
            fitting = [one for one in islice(entries, _MOST_ENTRIES) if one.name.startswith(begun) and _may_adapt(one)]
    except (OSError, ValueError, RuntimeError):  # RuntimeError: ~ of somebody unknown
        return []
    fitting.sort(key=lambda one: one.name)
    return [_adapter(one, os.path.join(folder, one.name), typed) for one in fitting[:_MOST]]


def _adapter(entry: os.DirEntry[str], path: str, typed: str) -> Suggestion:
    is_folder = entry.is_dir()
    is_adapter = not is_folder or any(os.path.isfile(os.path.join(entry.path, name)) for name in _ADAPTER_FILES)
    row = Content.assemble(say(path, "bold"), ("  adapter" if is_adapter else "  folder", "$foreground-muted"))
    leads_to = f"{path}/" if is_folder else ""
    return Suggestion("/lora", row, argument=shlex.quote(path), replaces=typed, leads_to=leads_to)


def _may_adapt(entry: os.DirEntry[str]) -> bool:
    return entry.name.isprintable() and (entry.is_dir() or entry.name.lower().endswith((".gguf", ".safetensors")))


def _models() -> ArgumentValues:
    from localrun.hub.disk.aliases import without_aliases
    from localrun.hub.disk.library import scan

    found = sorted(without_aliases(scan()), key=lambda one: -(one.last_used or 0.0))
    names = [one.name for one in found]
    for one in found:
        several = names.count(one.name) > 1 and one.precision
        yield (f"{one.name}:{one.precision}", "") if several else (one.name, one.precision)


def _prompts() -> ArgumentValues:
    from localrun.chat.prompts import read_prompts

    return [(one.name, one.title) for one in read_prompts()]


def _policies() -> ArgumentValues:
    from localrun.chat.overflow import POLICIES

    return [(name, f"{title}: {words}") for name, (title, words) in POLICIES.items()]


def _topics() -> ArgumentValues:
    from localrun.diagnose.explain.words import WORDS

    return [(name, words.title) for name, words in WORDS.items()]


_VALUES: dict[str, Callable[[], ArgumentValues]] = {
    "/retry-with": _models,
    "/prompt": _prompts,
    "/policy": _policies,
    "/explain": _topics,
}
