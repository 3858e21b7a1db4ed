"""config.toml and LOCALRUN_* variables: what a user may set once instead of typing it every time.

Precedence: flag > LOCALRUN_* > config.toml > the model's own generation settings > defaults. This module does the
second and third step; None means that neither said anything.
"""

import os
import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import fields
from pathlib import Path
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.errors import StorageError, UsageError
from localrun.base.files import write_whole
from localrun.base.lock import locked
from localrun.base.nearest import did_you_mean
from localrun.base.paths import folder, what_is_not_kept, writable_folder
from localrun.base.sanitize import clean
from localrun.base.setting_rows import DISK_CACHE_GIB, SETTINGS
from localrun.base.toml_file import MAX_BYTES, line_of, read_toml

FILE_NAME = "config.toml"
LOCK = "config.lock"  # beside it


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting; None where nothing was set."""

    model: str | None = None
    folders: str | None = None
    ctx: int | None = None  # 0: auto
    kv: str | None = None
    window: int | None = None
    threads: int | None = None
    backend: str | None = None
    device: int | None = None
    isa: str | None = None
    draft: str | None = None
    system: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop_on_loop: bool | None = None
    titles: bool | None = None
    theme: str | None = None
    notify: bool | None = None
    disk_cache: float | None = None  # GiB
    packed_weights: float | None = None  # GiB

    @property
    def model_folders(self) -> list[Path]:
        """Folders with models beside localrun's own."""
        return [Path(part).expanduser() for part in self.folders.split(os.pathsep)] if self.folders else []

    @property
    def disk_cache_bytes(self) -> int:
        return int((DISK_CACHE_GIB if self.disk_cache is None else self.disk_cache) * 2**30)

    @property
    def packed_weights_bytes(self) -> int | None:
        return None if self.packed_weights is None else int(self.packed_weights * 2**30)


_told: set[tuple[Path | None, str]] = set()  # keys of files that were looked at already
_ASIDE = ContextVar("settings aside", default=False)
_TYPED: dict[str, Any] = {}  # with the command, for as long as it runs
IN_ENVIRONMENT = ("model", "ctx", "kv", "threads", "backend", "device", "isa")

assert set(SETTINGS) == {field.name for field in fields(Settings)}


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read LOCALRUN_* and config.toml. UsageError names the variable, or the file and line, that is wrong."""
    found = read_sources(environ)
    if found.get("draft") == ("mtp", FILE_NAME):  # a preference: models without such a layer answer, too
        found["draft"] = "auto", FILE_NAME
    return Settings(**{key: value for key, (value, _) in found.items()})


def read_sources(environ: Mapping[str, str] = os.environ) -> dict[str, tuple[Any, str]]:
    """Every setting that was set: its value, and what set it: a variable, or config.toml. Raises like read_settings."""
    if _ASIDE.get():
        return {}
    found = {key: (value, FILE_NAME) for key, value in _read_file(config_file()).items()}
    for key in IN_ENVIRONMENT:
        variable = f"LOCALRUN_{key.upper()}"
        if environ.get(variable):
            found[key] = _parse(key, environ[variable], variable), variable
    return found | {key: (value, "the command line") for key, value in _TYPED.items()}


def set_for_this_run(values: Mapping[str, Any]) -> None:
    """Have settings hold before all others until the program ends; None sets nothing."""
    _TYPED.update({key: value for key, value in values.items() if value is not None})


@contextmanager
def settings_aside() -> Iterator[None]:
    """While open nothing is set: for looking at everything else where settings cannot be read."""
    token = _ASIDE.set(True)
    try:
        yield
    finally:
        _ASIDE.reset(token)


def tell_of_unknown_settings_by(tell: Callable[[str], object]) -> None:
    """The function that reports unknown keys of config.toml, each once; stderr by default."""
    global _tell
    _tell = tell


def _tell_stderr(text: str) -> None:
    with suppress(OSError, ValueError):
        print(f"localrun: {text}", file=sys.stderr)


_tell: Callable[[str], object] = _tell_stderr


def config_file() -> Path | None:
    """Where config.toml is or would be; None without a home folder."""
    home = folder("config")
    return home / FILE_NAME if home else None


def write_setting(key: str, value: str | None) -> Path:
    """Set `key` in config.toml, or take it out with None; comments and order stay. Gives the file written."""
    check_key(key)
    parsed = None if value is None else _parse(key, value, key)
    home = writable_folder("config")
    if home is None:
        raise StorageError(what_is_not_kept("config"), "set LOCALRUN_HOME to a folder you can write to")
    path = home / FILE_NAME
    try:
        with locked(home / LOCK):  # of two that change it at once, the second changes what the first wrote
            write_whole(path, _changed(path, key, "auto" if key == "ctx" and parsed == 0 else parsed))
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}", "free space; nothing was changed") from None
    return path


def unknown_settings() -> list[tuple[str, str]]:
    """Messages about keys of config.toml that are no settings, each with a hint. Raises like read_settings."""
    path = config_file()
    return list(_unknown(path, *read_toml(path)))


def check_key(key: str) -> None:
    """UsageError unless `key` is a setting; the hint names the nearest ones."""
    if key not in SETTINGS:
        raise UsageError(f"there is no setting {key!r}", _nearest(key))


def _nearest(key: str) -> str:
    return did_you_mean(key.replace("-", "_"), SETTINGS) or f"there are {', '.join(SETTINGS)}"


def _read_file(path: Path | None) -> dict[str, Any]:
    """The settings of a file. Unknown keys, as newer versions have, are reported once and ignored."""
    document, source = read_toml(path)
    new = [key for key in document if (path, key) not in _told]
    _told.update((path, key) for key in new)
    for what, hint in _unknown(path, new, source):
        _tell(f"{what}\n  {hint}")
    known = ((key, value) for key, value in document.items() if key in SETTINGS)
    return {key: _parse(key, value, f"{path}, line {line_of(key, source)}: {key}") for key, value in known}


def _unknown(path: Path | None, keys: Iterable[str], source: str) -> Iterator[tuple[str, str]]:
    """A message about each key that is no setting, and a hint."""
    for key in keys:
        if key not in SETTINGS:
            where = f"{path}, line {line_of(key, source)}"
            yield clean(f"{where}: there is no setting {key[:80]!r}: it is passed over"), _nearest(key[:80])


def _changed(path: Path, key: str, value: object) -> str:
    """The text of a file with a setting in it, or without that for None. UsageError where the file is broken."""
    import tomlkit

    _, source = read_toml(path)
    try:
        document = tomlkit.parse(source)
        if value is None:
            document.pop(key, None)
        else:
            document[key] = value
        changed = tomlkit.dumps(document)
    except (ValueError, RecursionError):  # tomlkit nests less deeply than tomllib
        raise UsageError(f"{path} cannot be changed", "write the setting into it yourself, or move it away") from None
    if len(changed.encode()) > MAX_BYTES:
        raise UsageError(f"{path} would be larger than {MAX_BYTES >> 10} KiB", "a shorter text is needed")
    return changed


def _parse(key: str, value: object, where: str) -> Any:
    try:
        return SETTINGS[key].parse(value)
    except ValueError as error:
        raise UsageError(f"{where} = {reprlib.repr(value)}: {error}", SETTINGS[key].help) from None
