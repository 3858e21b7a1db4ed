"""Explain the end of a worker process to the user."""

import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from localrun.base.errors import EngineDiedError, LocalrunError
from localrun.base.sanitize import clean
from localrun.formats.files import Stamp, stamp_at
from localrun.hub.disk.stored import shards_of

VMSTAT = Path("/proc/vmstat")
_AGAIN = "send the message again: the model is loaded for it"
_SMALLER = "choose a smaller context or precision, or close other programs"
_WEIGHTS = (".safetensors", ".gguf")
_LAST_LINES, _LAST_CHARS = 3, 400
_CRASHES = ("SIGSEGV", "SIGABRT", "SIGFPE", "SIGTRAP", "SIGSYS")
_WINDOWS_FAULT = 0xC0000000  # exit codes from here on are exceptions of the system


def oom_kills() -> int:
    """Processes that Linux has ended since it started because memory ran out; 0 where that is unknown."""
    with suppress(OSError, ValueError, StopIteration):
        lines = VMSTAT.read_text().splitlines()
        return int(next(line for line in lines if line.startswith("oom_kill ")).split()[1])
    return 0


def stamps_of(model: Path) -> dict[Path, Stamp]:
    """Stamps of the weight files of a model, to notice later changes."""
    with suppress(OSError, LocalrunError):
        folder = [file for file in model.iterdir() if file.suffix in _WEIGHTS] if model.is_dir() else []
        return {file: stamp_at(file) for file in folder or shards_of(model) or [model]}
    return {}


def exit_error(
    exit_code: int | None, said: bytes, *, was_oom: bool, files: Mapping[Path, Stamp] = MappingProxyType({})
) -> EngineDiedError:
    """The error for a process that ended by itself. `exit_code` as subprocess gives it, `said` the end of stderr,
    `files` those of the model, as they were when it was loaded."""
    what, hint = _words(exit_code, was_oom)
    if _signal_name(exit_code) == "SIGBUS" and (lost := _lost(files)):
        what, hint = f"{lost} while the engine read it (SIGBUS)", f"get the whole file again; then {_AGAIN}"
    last = _last_lines(said)
    return EngineDiedError(f"{what}; it last printed: {last}" if last else what, hint)


def _lost(files: Mapping[Path, Stamp]) -> str:
    """The first file that changed."""
    for path, then in files.items():
        try:
            now = stamp_at(path)
        except LocalrunError:
            return f"{path} went away"
        if now.size < then.size:
            return f"{path} was cut to {now.size:,} of {then.size:,} bytes"
        if now != then:
            return f"{path} was changed"
    return ""


def _words(code: int | None, was_oom: bool) -> tuple[str, str]:
    name = _signal_name(code)
    if name == "SIGKILL" and was_oom:
        return "memory ran out, and the system ended the engine", f"{_SMALLER}; then {_AGAIN}"
    if name == "SIGKILL":
        what = "the engine's process was killed: by the system where memory is short, or by hand"
        return what, f"{_AGAIN}; if it happens again, {_SMALLER}"
    if name == "SIGBUS":
        what = "the engine lost a file that it read from: it was changed, or its disk failed (SIGBUS)"
        return what, f"check that the model's file is whole, and the disk of the folder of caches; then {_AGAIN}"
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
