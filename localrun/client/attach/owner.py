"""Address of the running server of this user, in a small file for `localrun top` and programs that share its engine."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.files import write_whole
from localrun.base.paths import folder, writable_folder
from localrun.base.running_process import is_running
from localrun.base.state_file import read_state
from localrun.client.attach import private_socket

FILE = "server.json"  # beside the caches


@dataclass(frozen=True, slots=True)
class Owner:
    """A server that runs. Times in seconds since 1970; `started` is the process's, so that another one which was given
    the same number later is not taken for it."""

    pid: int
    started: float
    url: str  # empty where it listens on a Unix socket
    socket: str  # path of that; empty otherwise
    engine: str = ""  # path of the socket at which it shares its engine; empty where it does not


def running_server() -> Owner | None:
    """The latest server, if it still runs. The file of a killed one is removed."""
    home = folder("cache")
    owner = _read(read_state(home / FILE)) if home else None
    if owner is None or is_running(owner.pid, owner.started):
        return owner
    if owner.engine:
        private_socket.remove(Path(owner.engine))
    return None


@contextmanager
def announced(url: str, socket: str, engine: str = "") -> Iterator[None]:
    """Publish this server while open, unless another one runs already."""
    home = writable_folder("cache")
    if home is None or running_server() is not None:
        yield
        return
    import psutil

    own = Owner(os.getpid(), psutil.Process().create_time(), url, socket, engine)
    with suppress(OSError):
        write_whole(home / FILE, json.dumps(asdict(own)))
    try:
        yield
    finally:
        if running_server() == own:
            with suppress(OSError):
                Path(home / FILE).unlink()


def _read(values: dict[str, Any]) -> Owner | None:
    pid, started = values.get("pid"), values.get("started")
    places = [values.get(name, "") for name in ("url", "socket", "engine")]
    if not isinstance(pid, int) or not isinstance(started, float) or not 0 < pid < 1 << 31:
        return None
    return Owner(pid, started, *places) if all(isinstance(one, str) for one in places) else None
