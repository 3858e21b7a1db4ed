"""Write docs/cli.md from the help of the commands."""

from collections.abc import Iterator
from typing import Any

import typer

from localrun.cli.app import COMMANDS, command_line
from tools import ROOT

PAGE = ROOT / "docs" / "cli.md"
HEAD = """# Command line

Every command with its options; `localrun COMMAND --help` shows the same. `localrun` alone opens [the app](keys.md).
[Settings](settings.md) hold what you do not want to type every time; [JSON](json.md) and [exit codes](exit-codes.md)
are for scripts. MODEL is a path (a `.gguf` file or a safetensors folder), the name of a model as `localrun list` shows
it, or `org/repo` of the Hugging Face cache; `:Q4_K_M` behind it chooses a precision.

This page is made by `python -m tools.write_cli_docs` from the help of the commands; change that.
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"\n## localrun {name}\n\n{section(name, command)}" for name, command in commands())


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that the help shows, by its full name, in the order of the help."""
    root = typer.main.get_command(command_line())
    by_panel = sorted(COMMANDS, key=lambda name: [row[2] for row in COMMANDS.values()].index(COMMANDS[name][2]))
    for name in by_panel:
        yield from _walk(name, root.commands[name])  # type: ignore[attr-defined]


def _walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(command, "commands"):
        for inner, found in command.commands.items():
            yield from _walk(f"{name} {inner}", found)
    elif not command.hidden:
        yield name, command


def section(name: str, command: Any) -> str:
    """What it does, how it is called, and a table of arguments and options."""
    arguments = [one.metavar for one in command.params if one.param_type_name == "argument"]
    usage = " ".join(["localrun", name, "[OPTIONS]", *arguments])
    rows = [row(one) for one in command.params if one.help]
    table = ["\n| option | |\n|---|---|\n", *rows] if rows else []
    return "".join([f"{' '.join(command.help.split())}\n\n```\n{usage}\n```\n", *table])


def row(parameter: Any) -> str:
    name = f"`{parameter.metavar}`" if parameter.param_type_name == "argument" else _names(parameter)
    default = f" (default: {parameter.default})" if _shows_default(parameter) else ""
    cells = (cell.replace("|", "\\|") for cell in (name, parameter.help + default))
    return f"| {' | '.join(cells)} |\n"


def _names(option: Any) -> str:
    spelled = [*option.opts, *option.secondary_opts]
    value = f" {option.metavar}" if option.metavar else ""
    return ", ".join(f"`{name}{value}`" for name in sorted(spelled, key=len))


def _shows_default(parameter: Any) -> bool:
    return bool(parameter.show_default) and parameter.default not in (None, False, (), [])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
