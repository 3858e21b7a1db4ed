"""Downloads at the command line: the chosen precision and why, progress on stderr, the first model as default."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from localrun.backends.registry import usual_memory
from localrun.base.errors import LocalrunError
from localrun.base.sanitize import clean
from localrun.base.settings import read_settings, write_setting
from localrun.base.units import gib
from localrun.cli.console import is_terminal, note
from localrun.hub.compatibility import require_runnable
from localrun.hub.disk.stored import StoredModel, stored_at
from localrun.hub.downloads.download import download
from localrun.hub.downloads.progress import (
    DownloadEvent,
    DownloadFinished,
    DownloadNotice,
    DownloadProgress,
    DownloadStarted,
    Emit,
)
from localrun.hub.fits import recommended_variant
from localrun.hub.network.access import read_access
from localrun.hub.network.http import Http
from localrun.hub.remote.preview import RepoPreview
from localrun.hub.remote.variants import Variant


@contextmanager
def open_hub(offline: bool = False) -> Iterator[Http]:
    """Open a connection to the hub; warns when a token would go to a mirror."""
    access = read_access(offline)
    if access.warning:
        note(access.warning)
    http = Http(access, note)
    try:
        yield http
    finally:
        http.close()


def choose(http: Http, found: RepoPreview) -> tuple[Variant, str]:
    """The precision that was asked for or that suits this machine, and why.

    Raises ModelFileError for a model that cannot be run.
    """
    assert found.repo is not None
    variant, why = recommended_variant(found, usual_memory().available)
    require_runnable(http, found.repo, variant.files)
    return variant, why


def pull(http: Http, found: RepoPreview, variant: Variant) -> tuple[StoredModel, dict[str, Any]]:
    """Download one precision. Returns the model on disk and the fields of `pull --json`."""
    assert found.repo is not None
    fetched = 0

    def count(event: DownloadEvent) -> None:
        nonlocal fetched
        fetched += event.fetched if isinstance(event, DownloadFinished) else 0
        show(event)

    with shown_progress(variant) as show:
        paths = download(http, found.repo, variant.files, count)
    path = paths[0] if variant.format == "gguf" else paths[0].parent
    stored = next(model for model in stored_at(path, "hub", found.repo.name) if model.format == variant.format)
    fields = {
        "name": found.wanted.name,
        "repo": found.repo.name,
        "precision": variant.precision or stored.precision,
        "path": str(path),
        "bytes": variant.bytes,
        "fetched": fetched,
        "commit": found.repo.commit,
        "default": make_default(found.wanted.name),
    }
    return stored, fields


def make_default(name: str) -> bool:
    """Make the first downloaded model the default; True when this model is the default now."""
    default = read_settings().model
    if default is not None:
        return default == name
    try:
        write_setting("model", name)
    except LocalrunError:
        return False
    note(f"{name} is now the default model (`localrun config model NAME` changes it)")
    return True


@contextmanager
def shown_progress(variant: Variant) -> Iterator[Emit]:
    """Show progress: bars on a terminal, elsewhere one line for each finished file."""
    if not is_terminal(sys.stderr):
        yield _tell_lines
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        total = bars.add_task("all files", total=variant.bytes, visible=len(variant.weights) > 1)
        tasks = {
            file.path: bars.add_task(clean(file.path, keep_newlines=False), total=file.size, visible=False)
            for file in variant.files
        }
        done_before = 0

        def show(event: DownloadEvent) -> None:
            nonlocal done_before
            task = tasks[event.file]
            match event:
                case DownloadStarted(have=have):
                    bars.reset(task, completed=have, visible=True)
                case DownloadProgress(done=done):
                    bars.update(task, completed=done)
                    bars.update(total, completed=done_before + done)
                case DownloadNotice(text=text):
                    bars.console.print(clean(text, keep_newlines=False), markup=False, highlight=False)
                case DownloadFinished(size=size):
                    done_before += size
                    bars.update(total, completed=done_before)
                    bars.update(task, completed=size, visible=False)
                    bars.console.print(_line(event), markup=False, highlight=False)

        yield show


def _tell_lines(event: DownloadEvent) -> None:
    if isinstance(event, DownloadNotice):
        note(event.text)
    elif isinstance(event, DownloadFinished):
        note(_line(event))


def _line(event: DownloadFinished) -> str:
    how = "was there" if event.size and not event.fetched else "downloaded and checked"
    return f"{clean(event.file, keep_newlines=False)}: {gib(event.size)}, {how}"
