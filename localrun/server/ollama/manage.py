"""Download and delete models for a client; without --manage, refuse with the command to type."""

import asyncio
import shlex
from collections.abc import AsyncGenerator, Callable
from functools import partial

from localrun.backends.registry import usual_memory
from localrun.base.errors import HubError, LocalrunError, UsageError, unexpected
from localrun.base.request import Json
from localrun.base.sanitize import clean
from localrun.hub.compatibility import require_runnable
from localrun.hub.disk.removal import plan_removal, remove, require_one
from localrun.hub.downloads.download import download
from localrun.hub.downloads.progress import (
    Control,
    DownloadEvent,
    DownloadFinished,
    DownloadNotice,
    DownloadProgress,
    DownloadStarted,
)
from localrun.hub.fits import recommended_variant
from localrun.hub.network.access import read_access
from localrun.hub.network.http import Http
from localrun.hub.remote.preview import must_find_on_hub, preview
from localrun.hub.resolve import resolve_all, resolve_listed
from localrun.server.refusal import Refusal

MAX_NAME = 200  # characters


def require_manage(may: bool, command: str, name: str) -> None:
    """Refuse, with the command to type, unless the server was started with --manage."""
    if not may:
        typed = f"localrun {command} {shlex.quote(clean(name, keep_newlines=False)[:MAX_NAME])}"
        what = f"this server changes no models: type `{typed}`, or start it with --manage"
        raise Refusal(403, what, "not_managed", "model")


async def pulled(name: str) -> AsyncGenerator[Json, None]:
    """Download a model, yielding progress for the client; closing the iterator cancels it. Raises LocalrunError."""
    loop, control = asyncio.get_running_loop(), Control()
    reports: asyncio.Queue[Json | LocalrunError] = asyncio.Queue()

    def report(progress: Json | LocalrunError) -> None:
        loop.call_soon_threadsafe(reports.put_nowait, progress)

    yield {"status": "pulling manifest"}
    task = loop.run_in_executor(None, _pull, name, report, control)
    try:
        while True:
            progress = await reports.get()
            if isinstance(progress, LocalrunError):
                raise progress
            yield progress
            if progress["status"] == "success":
                return
    finally:
        control.cancel()
        await asyncio.shield(task)


def delete(name: str) -> None:
    """Delete a model as `localrun rm` does. Raises LocalrunError."""
    resolve_listed(name)  # never a path
    models = resolve_all(name)
    require_one(models, name)
    remove(plan_removal(models), models)


def _pull(name: str, tell: Callable[[Json | LocalrunError], None], control: Control) -> None:
    """Download on this thread. The last report is success, or an error."""
    try:
        if "://" in name:
            raise UsageError("a model is named, not given by an address", "org/repo, or a name of `localrun search`")
        access = read_access()
        if access.offline:
            raise HubError("localrun is offline: nothing can be downloaded", "unset HF_HUB_OFFLINE")
        http = Http(access, lambda note: tell({"status": note}))
        try:
            found = preview(http, must_find_on_hub(name))
            assert found.repo is not None
            variant, _ = recommended_variant(found, usual_memory().available)
            require_runnable(http, found.repo, variant.files)
            control.check()
            download(http, found.repo, variant.files, partial(_tell_event, tell), control)
        finally:
            http.close()
        tell({"status": "success"})
    except LocalrunError as error:
        tell(error)
    except Exception as error:  # a bug of ours must reach the client, not vanish with the thread
        tell(unexpected(error))


def _tell_event(tell: Callable[[Json | LocalrunError], None], event: DownloadEvent) -> None:
    status = f"pulling {clean(event.file, keep_newlines=False)}"
    match event:
        case DownloadStarted(size=size, have=have):
            tell({"status": status, "digest": event.file, "total": size, "completed": have})
        case DownloadProgress(size=size, done=done):
            tell({"status": status, "digest": event.file, "total": size, "completed": done})
        case DownloadFinished(size=size):
            tell({"status": status, "digest": event.file, "total": size, "completed": size})
        case DownloadNotice(text=text):
            tell({"status": clean(text, keep_newlines=False)})
