"""A model hub on loopback that speaks the real endpoints, and that lies, stalls and breaks on demand.

Two servers: the hub itself (API, small files, redirects) and its store on another port, where large files lie behind
signed addresses and a token has no business. Nothing of localrun is used here; huggingface_hub is the judge of it.
"""

import gzip
import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

COMMIT = "c0ffee" * 6 + "c0de"
LARGE = 4096  # files of this size and more are stored as LFS
POLL_SECONDS = 0.01  # a server that is shut down ends after so long, and hundreds of tests have two
_SEND_BYTES = 256 << 10


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
    """What goes wrong with a file: `kind` is one of the words in `_Handler.send_file`; `times` None is for ever."""

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
def _bomb() -> bytes:
    """A little gzip that becomes a lot of nothing."""
    return gzip.compress(bytes(32 << 20), 1)


class FakeHub:
    """`with FakeHub({"org/name": FakeRepo({...})}) as hub:` serves on `hub.url`; `hub.seen` is what was asked."""

    def __init__(self, repos: Mapping[str, FakeRepo | dict[str, bytes]], token: str = "") -> None:
        self.repos = {name: repo if isinstance(repo, FakeRepo) else FakeRepo(repo) for name, repo in repos.items()}
        self.token = token
        self._seen: list[Seen] = []
        self.n_answering = 0
        self.trouble: dict[str, list[Trouble]] = {}  # by file name, or "api"
        self.bytes_per_second: float | None = None  # of a connection; what changes holds for those under way too
        self.fast_bytes = 0  # of every answer, before that rate
        self.names_of_headers: Callable[[str], str] = str  # str.lower for a proxy that speaks HTTP/2 on its other side
        self.is_unplugged = False  # whether every connection for a large file breaks, those under way included
        self.lock = threading.Lock()
        self._hashes: dict[int, tuple[bytes, str, str]] = {}  # kept with the content, so that no id is used twice
        self._servers = [_Server(self, "hub"), _Server(self, "store")]
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
        """Every request, the ones being answered right now included where they come to an end soon."""
        give_up = time.monotonic() + 10
        while self.n_answering and time.monotonic() < give_up:
            time.sleep(0.001)
        return list(self._seen)

    def note(self, seen: Seen | None) -> None:
        """A request has come (None), or has been answered."""
        with self.lock:
            self.n_answering += 1 if seen is None else -1
            if seen is not None:
                self._seen.append(seen)

    def break_file(self, name: str, kind: str, times: int | None = None, at: int = 0, to: str = "") -> None:
        _bomb()
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


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, hub: FakeHub, role: str) -> None:
        self.hub = hub
        self.role = role
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *args: object) -> None:
        """Quiet."""

    def send_header(self, keyword: str, value: str) -> None:
        super().send_header(self.server.hub.names_of_headers(keyword), value)

    def do_GET(self) -> None:
        self.hub = self.server.hub
        self.sent = 0
        self.hub.note(None)
        url = urlsplit(self.path)
        try:
            if self.server.role == "store":
                self.serve_store(unquote(url.path))
            else:
                self.serve_hub(unquote(url.path), parse_qs(url.query))
        except OSError:
            self.close_connection = True
        finally:
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            asked = self.headers.get("Range", "")
            self.hub.note(Seen(self.server.role, self.command, url.path, asked, token, self.sent))

    do_HEAD = do_POST = do_GET

    def has_token(self) -> bool:
        return bool(self.hub.token) and self.headers.get("Authorization") == f"Bearer {self.hub.token}"

    def answer(self, status: int, body: Any = b"", headers: Mapping[str, str] | None = None) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)
            self.sent += len(raw)

    def refuse(self, status: int, code: str, message: str) -> None:
        self.answer(status, {"error": message}, {"X-Error-Code": code, "X-Error-Message": message})

    # --- the hub ---

    def serve_hub(self, path: str, query: dict[str, list[str]]) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if path.startswith("/api/") and self.trouble_of_api():
            return
        if path == "/api/models":
            self.answer(200, [self.summary(name) for name in self.found(query)])
            return
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree|paths-info)/([^/]+))?(?:/.*)?", path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        match = api or file
        if match is None:
            self.refuse(404, "", "Not found")
            return
        repo = self.hub.repos.get(match[1])
        if repo is None or (repo.private and not self.has_token()):
            self.refuse(401 if not self.headers.get("Authorization") else 404, "RepoNotFound", "Repository not found")
        elif match is file:
            self.serve_file(match[1], repo, match[2], match[3])
        elif match[3] and match[3] not in ("main", repo.commit):
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {match[3]}")
        elif match[2] == "tree":
            self.answer(200, [self.entry(name, content) for name, content in repo.files.items()])
        elif match[2] == "paths-info":
            wanted = parse_qs(body.decode()).get("paths") or json.loads(body or b"{}").get("paths", [])
            self.answer(200, [self.entry(name, repo.files[name]) for name in wanted if name in repo.files])
        else:
            blobs = query.get("blobs", [""])[0].lower() in ("true", "1")
            siblings = [self.sibling(name, content, blobs) for name, content in repo.files.items()]
            self.answer(200, {**self.summary(match[1]), "siblings": siblings})

    def trouble_of_api(self) -> bool:
        trouble = self.hub.next_trouble("api")
        match trouble.kind:
            case "":
                return False
            case "rate-limit":
                self.answer(429, {"error": "Too many requests"}, {"Retry-After": str(trouble.at or 77)})
            case "busy":
                self.answer(503, {"error": "busy"})
            case "bad-token":
                self.answer(401, {"error": "Invalid credentials in Authorization header"})
            case "forbidden":
                self.answer(403, {"error": "Forbidden"})
            case "html":
                self.answer(200, b"<!doctype html><html>log in</html>", {"Content-Type": "text/html"})
            case "deep":
                self.answer(200, b"[" * 200_000)
            case "twice":
                self.answer(200, 2 * [self.summary(name) for name in self.hub.repos])
            case "list":
                self.answer(200, [1, None, "x", {"id": 7}])
            case "gzip":
                self.answer(200, _bomb(), {"Content-Encoding": "gzip"})
            case "huge":
                self.send_response(200)
                self.end_headers()
                self.pour(b'{"a": "' + b"x" * (1 << 20), 64)
            case "drip":
                self.send_response(200)
                self.send_header("Content-Length", "1000000")
                self.end_headers()
                for _ in range(200):
                    self.wfile.write(b" ")
                    time.sleep(0.05)
            case "silent":
                time.sleep(trouble.at or 5)
            case "redirect":
                self.answer(302, b"", {"Location": trouble.to})
            case kind:
                raise AssertionError(kind)
        self.close_connection = True
        return True

    def pour(self, piece: bytes, times: int) -> None:
        for _ in range(times):
            self.wfile.write(piece)
            self.sent += len(piece)
        self.close_connection = True

    def found(self, query: dict[str, list[str]]) -> Iterator[str]:
        words = query.get("search", [""])[0].lower().split()
        filters = query.get("filter", [])
        names = [name for name, repo in self.hub.repos.items() if not repo.private]
        matching = [name for name in names if all(word in name.lower() for word in words)]
        limit = int(query.get("limit", ["1000"])[0])
        for name in matching[:limit]:
            if "gguf" not in filters or any(file.endswith(".gguf") for file in self.hub.repos[name].files):
                yield name

    def summary(self, name: str) -> dict[str, Any]:
        repo = self.hub.repos[name]
        row: dict[str, Any] = {"_id": name, "id": name, "modelId": name, "sha": repo.commit, "private": repo.private}
        row |= {"gated": "manual" if repo.gated else False, "downloads": 100 + len(name), "likes": 3}
        row |= {"tags": ["gguf", f"license:{repo.card.get('license', '')}"], "cardData": repo.card}
        row["lastModified"] = "2026-01-02T03:04:05.000Z"
        return {**row, "gguf": repo.gguf} if repo.gguf else row

    def sibling(self, name: str, content: bytes, blobs: bool) -> dict[str, Any]:
        row: dict[str, Any] = {"rfilename": name}
        if blobs:
            sha256, blob = self.hub.hashes(content)
            row |= {"size": len(content), "blobId": blob}
            if len(content) >= LARGE:
                row["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 134}
        return row

    def entry(self, name: str, content: bytes) -> dict[str, Any]:
        sha256, blob = self.hub.hashes(content)
        row: dict[str, Any] = {"type": "file", "path": name, "size": len(content), "oid": blob}
        if len(content) >= LARGE:
            row["lfs"] = {"oid": sha256, "size": len(content), "pointerSize": 134}
        return row

    # --- files ---

    def serve_file(self, repo_name: str, repo: FakeRepo, revision: str, name: str) -> None:
        if revision not in ("main", repo.commit):
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        elif repo.gated and not self.has_token():
            status = 403 if self.headers.get("Authorization") else 401
            self.refuse(status, "GatedRepo", "Access to model is restricted")
        elif name not in repo.files:
            headers = {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"}
            self.answer(404, {"error": "Entry not found"}, {**headers, "X-Repo-Commit": repo.commit})
        elif len(repo.files[name]) >= LARGE:
            self.redirect(repo_name, repo, name)
        else:
            etag = self.hub.etag(repo.files[name])
            self.send_file(name, repo.files[name], {"X-Repo-Commit": repo.commit, "ETag": f'"{etag}"'})

    def redirect(self, repo_name: str, repo: FakeRepo, name: str) -> None:
        """To the store, as the real hub does; or to where a liar would have us go."""
        content = repo.files[name]
        trouble = self.hub.next_trouble(f"redirect {name}")
        etag = "0" * 64 if trouble.kind == "etag" else self.hub.etag(content)
        headers = {
            "X-Repo-Commit": "f" * 40 if trouble.kind == "commit" else repo.commit,
            "X-Linked-Etag": f'"{etag}"',
            "X-Linked-Size": str(len(content) + (trouble.kind == "size")),
            "Location": trouble.to or f"{self.hub.store_url}/{repo_name}/{quote(name)}?signature=s3cr3t",
            "Accept-Ranges": "bytes",
        }
        self.answer(302, b"", headers)

    def serve_store(self, path: str) -> None:
        _, owner, repo, name = path.split("/", 3)
        self.send_file(name, self.hub.repos[f"{owner}/{repo}"].files[name], {"ETag": '"store-has-its-own"'})

    def send_file(self, name: str, content: bytes, headers: dict[str, str]) -> None:
        trouble = self.hub.next_trouble(name) if self.command == "GET" else Trouble("")
        start, end = self.asked_range(len(content))
        partial = bool(self.headers.get("Range")) and trouble.kind != "whole"
        if trouble.kind == "whole":
            start, end = 0, len(content)
        first, total = start, len(content)
        body: bytes | memoryview = memoryview(content)[start:end]
        cut: int | None = None
        match trouble.kind:
            case "busy":
                self.answer(503, {"error": "busy"})
                return
            case "expired":
                self.answer(403, {"error": "signature expired"})
                return
            case "html":
                self.answer(200, b"<!doctype html><html>log in</html>", {"Content-Type": "text/html"})
                return
            case "silent":
                time.sleep(trouble.at or 5)
                self.close_connection = True
                return
            case "wrong-range":
                first += 1
            case "wrong-total":
                total += 1
            case "other-bytes":  # the right header over the bytes of another place
                body = bytes(len(body))
            case "flip" if start <= trouble.at < end:
                flipped = bytearray(body)
                flipped[trouble.at - start] ^= 0x10
                body = bytes(flipped)
            case "gzip":
                headers = {**headers, "Content-Encoding": "gzip"}
            case "bomb":
                body = _bomb()
                headers = {**headers, "Content-Encoding": "gzip"}
            case "long":
                body = bytes(body) + b"more"
            case "short":
                body = body[: max(0, len(body) - 7)]
            case "cut" | "reset" | "drip" | "stall":
                cut = trouble.at
        if partial:
            headers = {**headers, "Content-Range": f"bytes {first}-{first + (end - start) - 1}/{total}"}
        self.send_response(206 if partial else 200)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.send_body(body, cut, trouble.kind)

    def asked_range(self, size: int) -> tuple[int, int]:
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        return (0, size) if match is None else (int(match[1]), min(int(match[2] or size - 1) + 1, size))

    def send_body(self, body: bytes | memoryview, cut: int | None, how: str) -> None:
        sent = 0
        while sent < len(body):
            rate = self.hub.bytes_per_second  # a slow connection brings little at a time, not much now and then
            step = _SEND_BYTES if rate is None else max(1024, min(64 << 10, int(rate / 10)))
            if self.hub.is_unplugged or (cut is not None and sent >= cut):
                self.break_off(how)
                return
            stop = sent + step if cut is None or how == "drip" else min(sent + step, cut)
            piece = body[sent : min(stop, len(body))]
            self.wfile.write(piece)
            sent += len(piece)
            self.sent += len(piece)
            if sent > self.hub.fast_bytes:
                self.pace(len(piece))

    def pace(self, n_bytes: int) -> None:
        """Take the time that so many bytes take."""
        began = time.monotonic()
        while rate := self.hub.bytes_per_second:
            left = began + n_bytes / rate - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.05))

    def break_off(self, how: str) -> None:
        self.close_connection = True
        if how in ("drip", "stall"):
            time.sleep(5)
        elif how == "reset":  # RST instead of FIN
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        else:
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
