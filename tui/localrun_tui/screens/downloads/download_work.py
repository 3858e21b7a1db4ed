"""Background work of downloads: find unfinished ones, ask the hub, clean up, find the stored model."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from localrun.base.settings import read_settings, write_setting
from localrun.formats.gguf_names import is_gguf
from localrun.hub.disk.library import unfinished
from localrun.hub.disk.removal import discard
from localrun.hub.disk.stored import stored_at
from localrun.hub.downloads.partial import is_alive
from localrun.hub.names import parse_file_name
from localrun.hub.network.access import read_access
from localrun.hub.network.http import Http
from localrun.hub.remote.api import read_repo
from localrun.hub.remote.repo import RemoteFile, RemoteRepo
from localrun.hub.remote.variants import variants_of
from localrun_tui.screens.downloads.download import Download, download_key
from localrun_tui.screens.downloads.queue_file import left_queued

_ENDING_SECONDS = 5.0


def find_unfinished() -> list[Download]:
    """Find downloads that an earlier run began, or was going to, and no process works on."""
    found: dict[str, Download] = {}
    for journal, head, there in unfinished():
        if not is_alive(journal, head):
            key, precision = download_key(head.repo, head.file), parse_file_name(head.file).precision
            new = Download(key, head.repo, head.repo, precision, "unfinished", 0, 0, file=head.file)
            one = found.get(key, new)
            found[key] = replace(one, done=one.done + there, total=one.total + head.size)
    return list(({one.key: one for one in left_queued()} | found).values())


def find_files(download: Download) -> tuple[RemoteRepo, tuple[RemoteFile, ...]]:
    """All files of a precision that was begun. Raises LocalrunError."""
    http = Http(read_access())
    try:
        repo = read_repo(http, download.repo)
    finally:
        http.close()
    for variant in variants_of(repo, download.file):
        if any(download_key(repo.name, file.path) == download.key for file in variant.files):
            return repo, variant.files
    return repo, (repo.file(download.file),)


def remove_parts(download: Download) -> int:
    """Bytes freed. A download that was cancelled a moment ago needs another one to end."""
    freed, until = 0, time.monotonic() + _ENDING_SECONDS
    while True:
        parts = [part for part in unfinished() if part[1].repo == download.repo]
        mine = [part for part in parts if download_key(part[1].repo, part[1].file) == download.key]
        ended = [part for part in mine if not is_alive(part[0], part[1])]
        for journal, _, there in ended:
            discard(journal)
            freed += there
        if len(ended) == len(mine) or time.monotonic() > until:
            return freed
        time.sleep(0.1)


def find_arrived(download: Download, paths: Sequence[Path]) -> tuple[Download, bool]:
    """Add the model on disk to its download; the first one that is downloaded becomes the default (True)."""
    path = paths[0] if is_gguf(paths[0].name) else paths[0].parent
    form = "gguf" if is_gguf(path.name) else "safetensors"
    stored = next(model for model in stored_at(path, "hub", download.repo) if model.format == form)
    is_default = read_settings().model is None
    if is_default:
        write_setting("model", download.name)
    return replace(download, stored=replace(stored, precision=download.precision or stored.precision)), is_default
