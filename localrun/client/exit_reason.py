"""Why a worker process is gone, in words for its user."""

import signal
import sys
from contextlib import suppress
from pathlib import Path

from localrun.base.errors import EngineDiedError
from localrun.base.sanitize import clean

VMSTAT = Path("/proc/vmstat")
_AGAIN = "send the message again: the model is loaded for it"
_SMALLER = "choose a smaller context or precision, or close other programs"
_LAST_LINES, _LAST_CHARS = 3, 400
_CRASHES = ("SIGSEGV", "SIGABRT", "SIGFPE", "SIGTRAP", "SIGSYS")
_WINDOWS_FAULT = 0xC0000000  # exit codes from here on are exceptions of the system


def oom_kills() -> int:
    """Processes that Linux has ended since it started because memory ran out; 0 where that is not told."""
    with suppress(OSError, ValueError, StopIteration):
        lines = VMSTAT.read_text().splitlines()
        return int(next(line for line in lines if line.startswith("oom_kill ")).split()[1])
    return 0


def exit_error(exit_code: int | None, said: bytes, *, was_oom: bool) -> EngineDiedError:
    """The error for a process that ended by itself. `exit_code` as subprocess gives it, `said` the end of stderr."""
    what, hint = _words(exit_code, was_oom)
    last = _last_lines(said)
    return EngineDiedError(f"{what}; it last printed: {last}" if last else what, hint)


def _words(code: int | None, was_oom: bool) -> tuple[str, str]:
    name = _signal_name(code)
    if name == "SIGKILL" and was_oom:
        return "memory ran out, and the system ended the engine", f"{_SMALLER}; then {_AGAIN}"
    if name == "SIGKILL":
        what = "the engine's process was killed: by the system where memory is short, or by hand"
        return what, f"{_AGAIN}; if it happens again, {_SMALLER}"
    if name == "SIGBUS":
        what = "the engine lost the model's file: it was changed, or its disk failed (SIGBUS)"
        return what, f"check that the file is whole; then {_AGAIN}"
    if name == "SIGILL":
        what = "the engine used an instruction this processor lacks (SIGILL)"
        return what, "set LOCALRUN_ISA=generic, and please report it"
    if name in _CRASHES or (code is not None and code >= _WINDOWS_FAULT):
        return f"the engine crashed ({name or hex(code or 0)})", f"{_AGAIN}; if it happens again, please report it"
    if name:
        return f"the engine's process was ended ({name})", _AGAIN
    how = "without a reason" if code is None else f"with exit code {code}"
    return f"the engine's process ended {how}", f"{_AGAIN}; if it happens again, please report it"


def _signal_name(code: int | None) -> str:
    if code is None or code >= 0 or sys.platform == "win32":
        return ""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _last_lines(said: bytes) -> str:
    lines = [line.strip() for line in clean(said.decode("utf-8", "replace")).splitlines()]
    return " / ".join([line for line in lines if line][-_LAST_LINES:])[-_LAST_CHARS:]
