"""The command line: which commands there are, and what `localrun` alone does."""

import os
import sys
from typing import Annotated

import typer

from localrun.base.errors import UsageError
from localrun.cli.bench import bench
from localrun.cli.cache import cache
from localrun.cli.chat import chat
from localrun.cli.completion import VARIABLE, complete, completion
from localrun.cli.config import config
from localrun.cli.console import ONE_OR_MANY, is_terminal, open_streams, write
from localrun.cli.doctor import doctor
from localrun.cli.explain import explain
from localrun.cli.failure import leave_quietly, report
from localrun.cli.fit import fit
from localrun.cli.groups import command
from localrun.cli.history import history
from localrun.cli.list import list_models
from localrun.cli.open_app import is_plain, open_app
from localrun.cli.perplexity import perplexity
from localrun.cli.pull import pull_model
from localrun.cli.remove import remove
from localrun.cli.run import run
from localrun.cli.search import search
from localrun.cli.show import show
from localrun.cli.tokenize import tokenize
from localrun.cli.tui import tui

_CHAT, _MODELS, _MEASURE = "Chat", "Models", "Measure"

app = typer.Typer(
    name="localrun",
    help="Run a language model on your own machine.",
    epilog='Begin with: localrun run "Why is the second token faster than the first?"',
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, function, panel in (
    ("tui", tui, _CHAT),
    ("run", run, _CHAT),
    ("chat", chat, _CHAT),
    ("search", search, _MODELS),
    ("fit", fit, _MODELS),
    ("pull", pull_model, _MODELS),
    ("list", list_models, _MODELS),
    ("show", show, _MODELS),
    ("rm", remove, _MODELS),
    ("config", config, _MODELS),
    ("explain", explain, _MEASURE),
    ("tokenize", tokenize, _MEASURE),
    ("perplexity", perplexity, _MEASURE),
    ("bench", bench, _MEASURE),
    ("doctor", doctor, _MEASURE),
    ("completion", completion, _MODELS),
):
    app.command(name, rich_help_panel=panel)(command(function))
app.command("ls", hidden=True)(command(list_models))
app.add_typer(history, rich_help_panel=_CHAT)
app.add_typer(cache, rich_help_panel=_CHAT)


def _print_version(wanted: bool) -> None:
    if wanted:
        import localrun

        write(f"localrun {localrun.__version__}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _alone(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> int:
    """Without a command: the app on a terminal, a plain chat where it cannot draw; answer what comes through a pipe."""
    if context.invoked_subcommand is not None:
        return 0
    if not is_terminal(sys.stdin):
        return command(run)()
    if not is_terminal(sys.stdout):
        raise UsageError("stdout is not a terminal", ONE_OR_MANY)
    return command(chat)() if is_plain() else open_app()


def run_command_line(arguments: list[str]) -> int:
    """Run `localrun` with these arguments; gives the exit code and never raises."""
    open_streams()
    if VARIABLE in os.environ:
        return complete(app)
    try:
        code = _invoke(arguments)
    except BaseException as error:
        code = report(error, arguments)
    leave_quietly()
    return code


def _invoke(arguments: list[str]) -> int:
    """What typer's own call does, which also turns Ctrl-C and an end of input into bare exit codes."""
    line = typer.main.get_command(app)
    try:
        with line.make_context("localrun", arguments) as context:
            code = line.invoke(context)
    except typer.Exit as end:  # --help, --version
        code = end.exit_code
    return code if isinstance(code, int) else 0
