"""The one place where an exception becomes a message and an exit code."""

import errno
import shlex
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from localrun.base.errors import DoesNotFitError, LocalrunError, UsageError
from localrun.base.nearest import did_you_mean
from localrun.base.sanitize import clean
from localrun.cli.console import ReaderGoneError, close_stdout, note, tell, write_json
from localrun.cli.open_app import looks_like_path

if TYPE_CHECKING:  # this is imported to tell that typer cannot be
    import typer

CANCELLED, READER_GONE = 130, 141
DOES_NOT_FIT = DoesNotFitError.exit_code
_CANCELLED_WORDS = {"pull": ("cancelled", "what has arrived is kept: the same command goes on from there")}
TEXT_COMMANDS = ("localrun run", "localrun tokenize")  # whose argument may begin with anything


def report(error: BaseException, arguments: Sequence[str]) -> int:
    """Report `error` on stderr, and on stdout where JSON was asked for. Returns the exit code."""
    as_json = _wants_json(arguments)
    causes = list(_causes(error))
    if any(isinstance(cause, ReaderGoneError | BrokenPipeError) for cause in causes):
        close_stdout()
        return READER_GONE
    if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
        first = arguments[0] if arguments else ""
        message, hint = _CANCELLED_WORDS.get(first, ("cancelled before there was an answer", ""))
        return _say(CANCELLED, "cancelled", message, hint, as_json)
    known = _as_localrun_error(error, arguments)
    if known is None:
        tell(clean("".join(traceback.format_exception(error))))
        what = f"an error inside localrun: {type(error).__name__}: {error}"
        known = LocalrunError(what, "this should not happen: please report it with the lines above")
    return _say(known.exit_code, known.kind, known.message, known.hint, as_json)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and those that caused it.

    Code that prints the help hides a broken pipe behind an exit.
    """
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__context__


def _as_localrun_error(error: BaseException, arguments: Sequence[str]) -> LocalrunError | None:
    if isinstance(error, LocalrunError):
        return error
    if isinstance(error, MemoryError):
        return DoesNotFitError("memory ran out", "try a smaller model or --ctx, or close other programs")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):  # of stdout: files have their own
        close_stdout()
        return LocalrunError("cannot write the answer: no space left on device", "free some space, or write elsewhere")
    if (module := _failed_import(error)) is not None:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        return LocalrunError(f"{module} cannot be imported: {why}", "reinstall localrun, and see what `pip check` says")
    import typer

    if isinstance(error, typer.TyperException):
        return _usage_error(error, arguments)
    return None


def _failed_import(error: BaseException) -> str | None:
    """Name of the module that is missing or fails to import; None where no import caused the error."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_code.co_name == "<module>"]
    names = [str(name) for frame in frames if (name := frame.f_globals.get("__name__")) != "__main__"]
    if isinstance(error, ImportError):
        return error.name or (names or ["a package"])[-1]
    return names[-1] if names else "a package" if isinstance(error, SyntaxError) else None


def _say(code: int, kind: str, message: str, hint: str, as_json: bool) -> int:
    note(f"localrun: {message}" + (f"\n  {hint}" if hint else ""))
    if as_json:
        try:
            write_json({"error": {"code": code, "kind": kind, "message": message, "hint": hint}})
        except (ReaderGoneError, LocalrunError):
            close_stdout()
    return code


def _usage_error(error: "typer.TyperException", arguments: Sequence[str]) -> UsageError:
    """Build the error for a wrong command line, with the words that may have been meant."""
    context = getattr(error, "ctx", None)
    first = [word for word in arguments[:1] if not word.startswith("-")]
    command = context.command_path if context else " ".join(["localrun", *first])
    hint, message = f"see `{command} --help`", error.format_message().rstrip(".")
    option = getattr(error, "option_name", "")
    if context and message.startswith("No such option"):
        known = [name for name in _options(context.command) if name.startswith("--")]
        near = did_you_mean(option, known) if option.startswith("--") else ""
        word = next((word for word in arguments if word.startswith(option)), option)
        if command in TEXT_COMMANDS and (" " in word or not near):
            near = f"a text that begins with - goes behind --: {command} -- {shlex.quote(word)};"
        if command == "localrun" and option in _options(context.command.get_command(context, "tui")):
            near = f"an option goes behind a command: `localrun tui {shlex.join(arguments)}` opens the app;"
        return UsageError(f"there is no option {option}", f"{near} {hint}".lstrip())
    if message.startswith("No such command") and not getattr(context, "parent", None):
        word = next(iter(first), "")
        if looks_like_path(word):
            return UsageError(f"there is no file or folder {word}", "`localrun FILE` opens the app on the model in it")
        hint += f", or did you mean {_with_model(word)}?"
    return UsageError(message, hint)


def _options(command: Any) -> list[str]:
    """All spellings of the options of a command."""
    return [name for parameter in command.params for name in parameter.opts]


def _with_model(word: str) -> str:
    """The command for a first word that is none: a model of this disk, or of the catalogue, else a prompt."""
    from localrun.hub.resolve import resolve
    from localrun.hub.suggest import catalogue_name

    with suppress(LocalrunError):
        resolve(word)
        return f"`localrun tui {shlex.quote(word)}`"
    return f"`localrun pull {shlex.quote(word)}`" if catalogue_name(word) else '`localrun run "…"`'


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for JSON, even where it could not be parsed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options or "--jsonl" in options


def leave_quietly() -> None:
    """Flush stdout; no error where the reader has closed it."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        close_stdout()
    tell("")
