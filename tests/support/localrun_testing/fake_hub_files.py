"""The part of the fake hub that sends files: whole or a range, slowly, broken off, or wrong."""

import json
import re
import socket
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import quote

from localrun_testing.fake_hub import LARGE, FakeHub, FakeRepo, FakeServer, Trouble, bomb

BREAKS_OFF = ("cut", "reset", "drip", "stall")
_SEND_BYTES = 256 << 10


class FileHandler(BaseHTTPRequestHandler):
    """Answers requests, and sends files, or what goes wrong with them."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FakeServer
    sent = 0  # bytes of bodies, for the request being answered

    def log_message(self, *args: object) -> None:
        """Quiet."""

    def send_header(self, keyword: str, value: str) -> None:
        super().send_header(self.server.hub.names_of_headers(keyword), value)

    @property
    def hub(self) -> FakeHub:
        return self.server.hub

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

    def send_file(self, name: str, content: bytes, headers: Mapping[str, str]) -> None:
        trouble = self.hub.next_trouble(name) if self.command == "GET" else Trouble("")
        if self.answered_instead(trouble):
            return
        is_range = bool(self.headers.get("Range")) and trouble.kind != "whole"
        start, end = self.asked_range(len(content)) if is_range else (0, len(content))
        body = spoiled(memoryview(content)[start:end], start, trouble)
        headers = dict(headers)
        if trouble.kind in ("gzip", "bomb"):
            headers["Content-Encoding"] = "gzip"
        if is_range:
            first, total = start + (trouble.kind == "wrong-range"), len(content) + (trouble.kind == "wrong-total")
            headers["Content-Range"] = f"bytes {first}-{first + (end - start) - 1}/{total}"
        self.send_response(206 if is_range else 200)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.send_body(body, trouble.at if trouble.kind in BREAKS_OFF else None, trouble.kind)

    def answered_instead(self, trouble: Trouble) -> bool:
        """Whether there was something else to say than the file."""
        match trouble.kind:
            case "busy":
                self.answer(503, {"error": "busy"})
            case "expired":
                self.answer(403, {"error": "signature expired"})
            case "html":
                self.answer(200, b"<!doctype html><html>log in</html>", {"Content-Type": "text/html"})
            case "silent":
                time.sleep(trouble.at or 5)
                self.close_connection = True
            case _:
                return False
        return True

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


def spoiled(body: memoryview, start: int, trouble: Trouble) -> bytes | memoryview:
    """The bytes of a file from `start` on, as trouble has them."""
    match trouble.kind:
        case "other-bytes":  # the right header over the bytes of another place
            return bytes(len(body))
        case "flip" if start <= trouble.at < start + len(body):
            flipped = bytearray(body)
            flipped[trouble.at - start] ^= 0x10
            return bytes(flipped)
        case "bomb":
            return bomb()
        case "long":
            return bytes(body) + b"more"
        case "short":
            return body[: max(0, len(body) - 7)]
    return body
