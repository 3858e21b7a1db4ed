"""The command line: the table of commands, and `localrun` without a command."""

import os
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Annotated

import typer

from localrun.base.errors import UsageError
from localrun.cli.completion import VARIABLE, complete, typed_command
from localrun.cli.console import ONE_OR_MANY, is_terminal, open_streams, write
from localrun.cli.failure import leave_quietly, report
from localrun.cli.groups import command
from localrun.cli.open_app import is_plain, open_app, opens_model
from localrun.cli.values import use_own_checks

_CHAT, _MODELS, _MEASURE, _HIDDEN = "Chat", "Models", "Measure", ""

# Commands and groups of them, in the order of the help: the module of localrun.cli, the name in it, the panel.
COMMANDS = {
    "tui": ("tui", "tui", _CHAT),
    "run": ("run", "run", _CHAT),
    "chat": ("chat", "chat", _CHAT),
    "serve": ("serve", "serve", _CHAT),
    "launch": ("launch", "launch", _CHAT),
    "host": ("host", "host", _CHAT),
    "mcp": ("mcp", "mcp", _CHAT),
    "search": ("search", "search", _MODELS),
    "fit": ("fit", "fit", _MODELS),
    "handover": ("handover", "handover", _MODELS),
    "pull": ("pull", "pull_model", _MODELS),
    "list": ("list", "list_models", _MODELS),
    "ls": ("list", "list_models", _HIDDEN),
    "show": ("show", "show", _MODELS),
    "rm": ("remove", "remove", _MODELS),
    "config": ("config", "config", _MODELS),
    "explain": ("explain", "explain", _MEASURE),
    "tokenize": ("tokenize", "tokenize", _MEASURE),
    "perplexity": ("perplexity", "perplexity", _MEASURE),
    "bench": ("bench", "bench", _MEASURE),
    "doctor": ("doctor", "doctor", _MEASURE),
    "top": ("top", "top", _MEASURE),
    "completion": ("completion", "completion", _MODELS),
    "history": ("history", "history", _CHAT),
    "cache": ("cache", "cache", _CHAT),
}


def command_line(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Build the typer program with these commands.

    Only the modules of `names` are imported, so that `localrun run` does not wait for those of `localrun bench`.
    """
    use_own_checks()
    line = typer.Typer(
        name="localrun",
        help="Run a language model on your own machine.",
        epilog='Begin with: localrun run "Why is the second token faster than the first?"',
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    line.callback(invoke_without_command=True)(_alone)
    for name in names:
        module, found, panel = COMMANDS[name]
        entry = getattr(import_module(f"localrun.cli.{module}"), found)
        if isinstance(entry, typer.Typer):
            line.add_typer(entry, rich_help_panel=panel)
        else:
            line.command(name, rich_help_panel=panel, hidden=panel == _HIDDEN)(command(entry))
    return line


def _print_version(wanted: bool) -> None:
    if wanted:
        import localrun

        write(f"localrun {localrun.__version__}\n")
        raise typer.Exit


def _alone(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> int:
    """Without a command: open the app, or a plain chat where the terminal cannot draw; answer a prompt from a pipe."""
    if context.invoked_subcommand is not None:
        return 0
    if not is_terminal(sys.stdin):
        from localrun.cli.run import run

        return command(run)()
    if not is_terminal(sys.stdout):
        raise UsageError("stdout is not a terminal", ONE_OR_MANY)
    if not is_plain():
        return open_app()
    from localrun.cli.chat import chat

    return command(chat)()


def run_command_line(arguments: list[str], begin: Callable[[], None] = lambda: None) -> int:
    """Run `localrun` with these arguments and return the exit code; never raises.

    `begin` runs first; an error that it raises ends the command.
    """
    open_streams()
    try:
        begin()
        code = complete(command_line(_needed([typed_command()]))) if VARIABLE in os.environ else _invoke(arguments)
    except BaseException as error:
        code = report(error, arguments)
    leave_quietly()
    return code


def _invoke(arguments: list[str]) -> int:
    """Run typer's own call, which also turns Ctrl-C and an end of input into bare exit codes."""
    if opens_model(arguments, COMMANDS):
        arguments = ["tui", *arguments]
    line = typer.main.get_command(command_line(_needed(arguments)))
    try:
        with line.make_context("localrun", [*arguments]) as context:  # which empties its list
            code = line.invoke(context)
    except typer.Exit as end:  # --help, --version
        code = end.exit_code
    return code if isinstance(code, int) else 0


def _needed(arguments: list[str]) -> Iterable[str]:
    """Commands to import: the one that is named, none for the version, and all for the help and what is no command."""
    if arguments == ["--version"]:
        return ()
    return arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS
