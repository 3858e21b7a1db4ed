"""Compare a loaded engine with the one that a load would give."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol, runtime_checkable

from localrun.base.errors import LocalrunError
from localrun.base.events import ModelInfo
from localrun.base.request import LoadOptions
from localrun.formats.files import stamp_at
from localrun.hub.disk.stored import shards_of
from localrun.storage.chat_codec import codec_before

_FILES = (".safetensors", ".gguf", ".json", ".jinja", ".model")  # of a folder: weights and tokenizer
Versions = Mapping[str, tuple[int, ...]]  # of files: size, times, inode and device


@runtime_checkable
class LoadedEngine(Protocol):
    """A client that knows the load options of its engine, and the versions of its files."""

    options: LoadOptions
    files: Versions

    @property
    def info(self) -> ModelInfo: ...


def versions_of(options: LoadOptions) -> Versions:
    """Current versions of the files of a model and its adapters; empty where one cannot be read."""
    with suppress(OSError, LocalrunError):
        files = [file for path in (options.path, *(one.path for one in options.adapters)) for file in _files_of(path)]
        return {str(file.resolve()): stamp_at(file).exact for file in files}
    return {}


def _files_of(model: Path) -> list[Path]:
    folder = [file for file in model.iterdir() if file.suffix in _FILES] if model.is_dir() else []
    return folder or shards_of(model) or [model]


def difference(wanted: LoadOptions, engine: LoadedEngine) -> str:
    """First difference between the engine and `wanted`, in words; empty where there is none.

    What was left open is the same where it was left open for both, and what was chosen also where it came of that. A
    context may be longer.
    """
    loaded, info = engine.options, engine.info
    if _adapters(loaded) != _adapters(wanted):
        return f"the adapter {loaded.adapters[0].path.name} loaded" if loaded.adapters else "no adapter loaded"
    if not engine.files or set(versions_of(wanted)) != set(engine.files):
        return "another model loaded"
    if versions_of(wanted) != engine.files:
        return "loaded the model before its file changed"
    before = codec_before(wanted) if wanted.kv == "auto" and wanted.disk_cache else None
    checks = (
        (wanted.precision in (loaded.precision, info.precision), f"the model in {info.precision}"),
        (_has_room(wanted, loaded, info), f"a context of {info.ctx:,} tokens"),
        (wanted.kv == loaded.kv or wanted.kv == info.kv_codec, f"its KV cache in {info.kv_codec}"),
        (before is None or before.name == info.kv_codec, f"its KV cache in {info.kv_codec}, this chat another"),
        (wanted.window == loaded.window, f"a window of {loaded.window:,} tokens" if loaded.window else "no window"),
        (wanted.backend in (loaded.backend, info.backend), f"the {info.backend} backend"),
        (wanted.threads == loaded.threads, f"{loaded.threads or 'the usual number of'} threads"),
        (wanted.prefix_cache == loaded.prefix_cache, f"{'a' if loaded.prefix_cache else 'no'} prefix cache"),
        (wanted.draft in ("auto", loaded.draft), "drafts of another kind"),
        (not wanted.disk_cache or bool(loaded.disk_cache), "nothing of chats on disk"),
    )
    return next((words for is_same, words in checks if not is_same), "")


def _adapters(options: LoadOptions) -> list[tuple[Path, float]]:
    return [(one.path.resolve(), one.scale) for one in options.adapters]


def _has_room(wanted: LoadOptions, loaded: LoadOptions, info: ModelInfo) -> bool:
    return wanted.ctx == loaded.ctx or (wanted.ctx is not None and wanted.ctx <= info.ctx)
