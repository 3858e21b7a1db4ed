"""Shell completion: the script for a shell, and what model names there are."""

import re
from collections.abc import Iterator
from typing import Annotated

import typer

from localrun.base.errors import LocalrunError, UsageError
from localrun.cli.console import write

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_LOCALRUN_COMPLETE"
_HARMLESS = re.compile(r"[\w./+-]+")  # shells evaluate what they are given: nothing else of a file's name reaches one
_SPECIAL = re.compile(r"[^\w .,-]+")
_WHERE = {
    "bash": 'eval "$(localrun completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(localrun completion zsh)"   in ~/.zshrc, behind compinit',
    "fish": "localrun completion fish > ~/.config/fish/completions/localrun.fish",
}


def completion(shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish")]) -> int:
    """Print the script that completes commands, options and model names."""
    if shell not in SHELLS:
        raise UsageError(f"there is no completion for {shell}", f"one of {', '.join(SHELLS)}")
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="localrun", complete_var=VARIABLE, shell=shell)
    write(f"{script.strip()}\n# {_WHERE[shell]}\n")
    return 0


def complete(app: typer.Typer) -> int:
    """Answer the script: it asks through the environment, and wants nothing but words on stdout."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()
    try:
        app(args=[], prog_name="localrun", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except Exception:  # in the middle of a command line nobody wants to read about it
        return 1
    return 0


def complete_model(incomplete: str) -> Iterator[str]:
    """Names on disk that begin so; nothing where they cannot be read."""
    from localrun.hub.library import scan

    try:
        names = dict.fromkeys(model.name for model in scan())
    except (LocalrunError, OSError):
        return
    yield from (name for name in names if _HARMLESS.fullmatch(name) and name.lower().startswith(incomplete.lower()))


def complete_chat(incomplete: str) -> Iterator[tuple[str, str]]:
    """Ids of chats, with their titles."""
    from localrun.base.paths import folder
    from localrun.chat.journal import ChatStore

    for chat in ChatStore(folder("chats")).summaries():
        if chat.id.startswith(incomplete):
            yield chat.id, _SPECIAL.sub(" ", chat.title)
