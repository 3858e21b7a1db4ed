"""A model hub on loopback that speaks the real endpoints, and that lies, stalls and breaks on demand.

Two servers: the hub itself (API, small files, redirects) and its store on another port, where large files lie behind
signed addresses and a token has no business. Nothing of localrun is used here; huggingface_hub is the judge of it.
"""

import gzip
import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

COMMIT = "c0ffee" * 6 + "c0de"
LARGE = 4096  # files of this size and more are stored as LFS
POLL_SECONDS = 0.01  # a server that is shut down ends after so long, and hundreds of tests have two


@dataclass
class FakeRepo:
    """One repository. `gated` wants the hub's token; `private` repositories do not exist without it."""

    files: dict[str, bytes]
    gated: bool = False
    private: bool = False
    commit: str = COMMIT
    card: dict[str, Any] = field(default_factory=lambda: {"license": "apache-2.0"})
    gguf: dict[str, Any] | None = None


@dataclass
class Trouble:
    """What goes wrong with a file: `kind` is one of the words in fake_hub_files; `times` None is for ever."""

    kind: str
    times: int | None = None
    at: int = 0  # the byte of the file, or the number of bytes sent, where it happens
    to: str = ""  # where a false redirect leads


@dataclass(frozen=True)
class Seen:
    """One request as a server saw it."""

    server: str  # hub | store
    method: str
    path: str
    range: str
    token: str
    sent: int  # bytes of a body


@cache
def bomb() -> bytes:
    """A little gzip that becomes a lot of nothing."""
    return gzip.compress(bytes(32 << 20), 1)


class FakeHub:
    """`with FakeHub({"org/name": FakeRepo({...})}) as hub:` serves on `hub.url`; `hub.seen` is what was asked."""

    def __init__(self, repos: Mapping[str, FakeRepo | dict[str, bytes]], token: str = "") -> None:
        self.repos = {name: repo if isinstance(repo, FakeRepo) else FakeRepo(repo) for name, repo in repos.items()}
        self.token = token
        self._seen: list[Seen | None] = []  # None while it is being answered
        self.trouble: dict[str, list[Trouble]] = {}  # by file name, or "api"
        self.bytes_per_second: float | None = None  # of a connection; what changes holds for those under way too
        self.fast_bytes = 0  # of every answer, before that rate
        self.names_of_headers: Callable[[str], str] = str  # str.lower for a proxy that speaks HTTP/2 on its other side
        self.is_unplugged = False  # whether every connection for a large file breaks, those under way included
        self.lock = threading.Lock()
        self._hashes: dict[int, tuple[bytes, str, str]] = {}  # kept with the content, so that no id is used twice
        self._servers = [FakeServer(self, "hub"), FakeServer(self, "store")]
        self.url, self.store_url = (f"http://127.0.0.1:{server.server_port}" for server in self._servers)

    def __enter__(self) -> "FakeHub":
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    @property
    def seen(self) -> list[Seen]:
        """Every request, as they came; the ones being answered right now too, where they soon come to an end."""
        give_up = time.monotonic() + 10
        while None in self._seen and time.monotonic() < give_up:
            time.sleep(0.001)
        return [seen for seen in self._seen if seen is not None]

    def has_come(self) -> int:
        """A request has come; its place among them, to be filled by `has_gone`."""
        with self.lock:
            self._seen.append(None)
            return len(self._seen) - 1

    def has_gone(self, place: int, seen: Seen) -> None:
        """The request of this place has been answered, or broken off."""
        self._seen[place] = seen

    def break_file(self, name: str, kind: str, times: int | None = None, at: int = 0, to: str = "") -> None:
        bomb()
        self.trouble.setdefault(name, []).append(Trouble(kind, times, at, to))

    def next_trouble(self, name: str) -> Trouble:
        """The trouble that this request for `name` meets; kind "" is none."""
        with self.lock:
            waiting = self.trouble.get(name, [])
            if not waiting:
                return Trouble("")
            if waiting[0].times is not None:
                waiting[0].times -= 1
                return waiting.pop(0) if waiting[0].times <= 0 else waiting[0]
            return waiting[0]

    def sent(self, name: str) -> int:
        """Bytes of the file `name` that left the servers."""
        return sum(seen.sent for seen in self.seen if seen.path.endswith("/" + quote(name)))

    def hashes(self, content: bytes) -> tuple[str, str]:
        """(sha256, git blob id) of a file."""
        if id(content) not in self._hashes:
            blob = hashlib.sha1(b"blob %d\0" % len(content))
            blob.update(content)
            self._hashes[id(content)] = content, hashlib.sha256(content).hexdigest(), blob.hexdigest()
        return self._hashes[id(content)][1:]

    def etag(self, content: bytes) -> str:
        sha256, blob = self.hashes(content)
        return sha256 if len(content) >= LARGE else blob


class FakeServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, hub: FakeHub, role: str) -> None:
        from localrun_testing.fake_hub_api import HubHandler  # which knows this file

        self.hub = hub
        self.role = role
        super().__init__(("127.0.0.1", 0), HubHandler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are what many tests are about."""
