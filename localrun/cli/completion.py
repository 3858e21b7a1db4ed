"""Shell completion: the script for a shell, and the words that the script asks for."""

import os
import re
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from localrun.base.errors import LocalrunError, UsageError
from localrun.base.setting_rows import SETTINGS
from localrun.cli.console import write

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_LOCALRUN_COMPLETE"
_HARMLESS = re.compile(r"[\w./+-]+")  # shells evaluate what they are given: nothing else of a file's name reaches one
_SPECIAL = re.compile(r"[^\w .,-]+")
_BASH_WORDS = """    local words=() cword=$COMP_CWORD i
    for i in "${!COMP_WORDS[@]}"; do  # bash makes a word of the = in --kv=q8
        if [[ ${COMP_WORDS[i]} == "=" ]]; then
            (( i < COMP_CWORD && cword-- ))
        else
            words+=("${COMP_WORDS[i]}")
        fi
    done
"""
_WHERE = {
    "bash": 'eval "$(localrun completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(localrun completion zsh)"   in ~/.zshrc, behind compinit',
    "fish": "localrun completion fish > ~/.config/fish/completions/localrun.fish",
}


def complete_word(*words: str) -> Callable[[str], list[str]]:
    """Complete one of a few words."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete.lower())]


def completion(
    shell: Annotated[str, typer.Argument(metavar="|".join(SHELLS), autocompletion=complete_word(*SHELLS))],
) -> int:
    """Print the script that completes commands, options and model names."""
    if shell not in SHELLS:
        raise UsageError(f"there is no completion for {shell}", f"one of {', '.join(SHELLS)}")
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="localrun", complete_var=VARIABLE, shell=shell)
    if shell == "bash":
        script = script.replace("    COMPREPLY", f"{_BASH_WORDS}    COMPREPLY", 1)
        script = script.replace("${COMP_WORDS[*]}", "${words[*]}").replace(
            "COMP_CWORD=$COMP_CWORD", "COMP_CWORD=$cword"
        )
    write(f"{script.strip()}\n# {_WHERE[shell]}\n")
    return 0


def typed_command() -> str:
    """The command whose words are completed; empty while it is itself typed."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = line.split()
    return words[1] if len(words) > 2 or (len(words) == 2 and line[-1].isspace()) else ""


def complete(app: typer.Typer) -> int:
    """Answer the completion script, which asks through environment variables and reads words from stdout."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()
    try:
        app(args=[], prog_name="localrun", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except Exception:  # an error has no place in the middle of a command line
        return 1
    return 0


def complete_setting(incomplete: str) -> list[tuple[str, str]]:
    """Complete keys of config.toml, each with its help."""
    return [(key, _SPECIAL.sub(" ", row.help)) for key, row in SETTINGS.items() if key.startswith(incomplete)]


def complete_value(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete values of the key that was typed, where it has a short list of them."""
    key = ctx.params.get("key")
    if key == "model":
        return list(complete_any_model(incomplete))
    return complete_word(*SETTINGS[key].choices)(incomplete) if key in SETTINGS else []


def complete_precision(incomplete: str) -> list[str]:
    """Complete precisions as files spell them, and those that safetensors can be quantised to."""
    from localrun.formats.requantize import PRECISIONS
    from localrun.hub.names import RECOMMENDED

    names = ("auto", *RECOMMENDED, "Q2_K", "F16", "BF16", "F32", *PRECISIONS)
    found = [name for name in names if name.lower().startswith(incomplete.lower())]
    return [name.lower() for name in found] if incomplete.islower() else found  # shells take what begins as was typed


def complete_any_model(incomplete: str) -> Iterator[str]:
    """Complete names of models on disk, then those of the catalogue."""
    from localrun.hub.catalogue import read_catalogue

    there = list(complete_model(incomplete))
    yield from there
    yield from (name for name in read_catalogue() if name.startswith(incomplete.lower()) and name not in there)


def complete_model(incomplete: str) -> Iterator[str]:
    """Complete names of models on disk; none where the folders cannot be read."""
    from localrun.hub.disk.library import scan

    try:
        names = dict.fromkeys(model.name for model in scan())
    except (LocalrunError, OSError):
        return
    yield from (name for name in names if _HARMLESS.fullmatch(name) and name.lower().startswith(incomplete.lower()))


def complete_chat(incomplete: str) -> Iterator[tuple[str, str]]:
    """Complete ids of chats, each with its title."""
    from localrun.base.paths import folder
    from localrun.chat.journal import ChatStore

    for chat in ChatStore(folder("chats")).summaries():
        if chat.id.startswith(incomplete):
            yield chat.id, _SPECIAL.sub(" ", chat.title)
