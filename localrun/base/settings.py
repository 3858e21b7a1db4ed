"""config.toml and LOCALRUN_* variables: what a user may set once instead of typing it every time.

Precedence: flag > LOCALRUN_* > config.toml > the model's own generation settings > defaults. This module does the
second and third step; None means that neither said anything. One table drives reading, checking, writing and help.
"""

import os
import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

from localrun.base.dataclass import dataclass
from localrun.base.errors import StorageError, UsageError
from localrun.base.files import write_whole
from localrun.base.lock import locked
from localrun.base.nearest import did_you_mean
from localrun.base.parsers import context, folders, on_off, one_of, one_of_or_file, real, text, whole
from localrun.base.paths import folder, what_is_not_kept, writable_folder
from localrun.base.request import DRAFTERS, BackendName, KVCodecName
from localrun.base.sanitize import clean
from localrun.base.toml_file import MAX_BYTES, line_of, read_toml

FILE_NAME = "config.toml"
LOCK = "config.lock"  # beside it
DISK_CACHE_GIB = 8


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


@dataclass(frozen=True, slots=True)
class Setting:
    """One row: `parse` takes a TOML value or a string and gives the value to use, or raises ValueError.

    `unset` says in words what applies where nothing is set.
    """

    help: str
    parse: Callable[[object], Any]
    unset: str = "as the model says"

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it may be, where these are few."""
        return self.parse.names if isinstance(self.parse, one_of | on_off) else ()

    @property
    def placeholder(self) -> str:
        """The words for a synopsis; empty where any text will do."""
        return "|".join((*self.choices, *(("FILE",) if self.takes_file else ())))

    @property
    def takes_file(self) -> bool:
        return isinstance(self.parse, one_of_or_file)

    @property
    def range(self) -> str:
        """Accepted values in words; empty where any text will do."""
        if isinstance(self.parse, whole | real):
            return self.parse.range
        return ", ".join(self.choices) + (", or the path of a model" if self.takes_file else "")


SETTINGS: dict[str, Setting] = {
    "model": Setting("the model that answers when none is named", text, "builtin"),
    "folders": Setting(f"more folders with models, with {os.pathsep} between them", folders, "none"),
    "ctx": Setting("context length in tokens, or auto", context, "auto"),
    "kv": Setting("how the KV cache is stored", one_of(*get_args(KVCodecName)), "auto"),
    "window": Setting(
        "see only the first 64 tokens and the last N: the middle of a chat is lost", whole(64, 1 << 24), "off"
    ),
    "threads": Setting("CPU threads to compute with", whole(1, 1024), "one a core"),
    "backend": Setting("what to compute on", one_of(*get_args(BackendName)), "auto"),
    "device": Setting("which NVIDIA GPU, as `localrun doctor` numbers them", whole(0, 63), "0"),
    "isa": Setting("CPU instruction set of the native library", text, "the best this CPU has"),
    "draft": Setting(
        "guess tokens by lookup in the text, by a layer of the model (mtp) or by a FILE (a smaller model, an assistant,"
        " a drafter), and verify several in a step: answers stay the same",
        one_of_or_file(*DRAFTERS),
        "auto: lookup, and mtp where the model has it and there is room",
    ),
    "system": Setting("system message at the start of every chat", text, "none"),
    "max_tokens": Setting("longest answer in tokens", whole(1, 1 << 24), "to the end of the context"),
    "temperature": Setting("0 always takes the likeliest token", real(0, 2)),
    "top_k": Setting("choose among the k likeliest tokens; 0 is all", whole(0, 1 << 24)),
    "top_p": Setting("choose among the likeliest tokens of this mass", real(0, 1)),
    "min_p": Setting("drop tokens less likely than this share of the best", real(0, 1)),
    "repeat_penalty": Setting("divide the logits of tokens already seen; 1 is off", real(0.1, 10)),
    "presence_penalty": Setting("subtract once from tokens already used", real(-2, 2)),
    "frequency_penalty": Setting("subtract for every use of a token", real(-2, 2)),
    "seed": Setting("the same seed gives the same answer", whole(0, (1 << 64) - 1), "another one each time"),
    "stop_on_loop": Setting(
        "end an answer that only repeats itself", on_off(), "on in the app and on a terminal, off for scripts"
    ),
    "titles": Setting(
        "let the model name a chat once it has answered in it, while nothing else is to do; a server is asked once",
        on_off(),
        "on",
    ),
    "disk_cache": Setting(
        "GiB of disk for what was computed of chats, so that reopening one is quick; 0 keeps nothing",
        real(0, 1 << 20),
        str(DISK_CACHE_GIB),
    ),
    "packed_weights": Setting(
        "GiB of disk for weights as the kernels read them, so that a model starts sooner; 0 keeps only what memory does"
        " not hold",
        real(0, 1 << 20),
        "an eighth of what is free",
    ),
    "theme": Setting("colours of the app", text, "dark, or light where the terminal says so"),
    "notify": Setting(
        "tell the desktop when a long answer or download has ended", on_off(), "on, but not inside tmux or screen"
    ),
}
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
