"""The one place where an exception becomes a message and an exit code."""

import errno
import sys
import traceback
from collections.abc import Iterator

import typer

from localrun.base.errors import DoesNotFitError, LocalrunError, UsageError
from localrun.base.sanitize import clean
from localrun.cli.console import ReaderGoneError, close_stdout, note, tell, write_json

CANCELLED, READER_GONE = 130, 141
DOES_NOT_FIT = DoesNotFitError.exit_code


def report(error: BaseException, as_json: bool) -> int:
    """Tell the user about `error`, on stderr and with `as_json` as an object on stdout too. Gives the exit code."""
    causes = list(_causes(error))
    if any(isinstance(cause, ReaderGoneError | BrokenPipeError) for cause in causes):
        close_stdout()
        return READER_GONE
    if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
        return _say(CANCELLED, "cancelled", "cancelled before there was an answer", "", as_json)
    known = _as_localrun_error(error)
    if known is None:
        tell(clean("".join(traceback.format_exception(error))))
        what = f"an error inside localrun: {type(error).__name__}: {error}"
        known = LocalrunError(what, "this should not happen: please report it with the lines above")
    return _say(known.exit_code, known.kind, known.message, known.hint, as_json)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and those it came from: the help is printed by code that hides a broken pipe in an exit."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__context__


def _as_localrun_error(error: BaseException) -> LocalrunError | None:
    if isinstance(error, LocalrunError):
        return error
    if isinstance(error, MemoryError):
        return DoesNotFitError("memory ran out", "try a smaller model or --ctx, or close other programs")
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        close_stdout()
        return LocalrunError("no space is left on the device", "free some space, or write elsewhere")
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "localrun"
        message = error.format_message().rstrip(".")
        behind_run = ', or did you mean `localrun run "…"`?' if message.startswith("No such command") else ""
        return UsageError(message, f"see `{command} --help`{behind_run}")
    return None


def _say(code: int, kind: str, message: str, hint: str, as_json: bool) -> int:
    note(f"localrun: {message}" + (f"\n  {hint}" if hint else ""))
    if as_json:
        try:
            write_json({"error": {"code": code, "kind": kind, "message": message, "hint": hint}})
        except (ReaderGoneError, LocalrunError):
            close_stdout()
    return code


def wants_json(arguments: list[str]) -> bool:
    """Whether the command line asks for JSON, known even where it could not be parsed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options or "--jsonl" in options


def leave_quietly() -> None:
    """Flush what is left; whoever closed the other end does not hear about it."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        close_stdout()
