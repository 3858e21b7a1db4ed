"""A server of the OpenAI protocol on loopback that answers, lies, stalls and hangs up on demand."""

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Seen:
    """One request as the server saw it."""

    method: str
    path: str
    key: str
    body: dict[str, Any]


@dataclass
class Reply:
    """Raw bytes to answer with, piece by piece; afterwards the connection is closed, reset or left as it is."""

    pieces: tuple[bytes, ...]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})
    end: str = "close"  # close | reset | stall | chunked | cut chunk


def event(**values: Any) -> bytes:
    """One event of a stream, with JSON in it."""
    return b"data: " + json.dumps(values).encode() + b"\n\n"


def delta(finish: str | None = None, **message: Any) -> bytes:
    """One event that adds to the answer."""
    return event(choices=[{"index": 0, "delta": message, "finish_reason": finish}])


DONE = b"data: [DONE]\n\n"
HELLO = Reply(
    (
        delta(role="assistant", content=""),
        delta(content="Hello"),
        delta(content=", wörld"),
        delta("stop"),
        event(
            choices=[],
            usage={"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}},
        ),
        DONE,
    )
)


def said(text: str) -> Reply:
    """An answer with this text."""
    return Reply((delta(content=text), delta("stop"), DONE))


def calling(name: str, **arguments: object) -> Reply:
    """An answer that calls a tool, in one piece."""
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return Reply((delta(tool_calls=[call]), delta("tool_calls"), DONE))


def failure(status: int, message: Any = None, **headers: str) -> Reply:
    """An error as most servers send it."""
    body = {"error": {"message": message, "type": "x", "code": None}}
    return Reply((json.dumps(body).encode(),), status, {"Content-Type": "application/json", **headers})


def as_json(value: Any) -> Reply:
    """An answer of JSON in one body."""
    return Reply((json.dumps(value).encode(),), headers={"Content-Type": "application/json"})


class FakeChatServer:
    """`models` is the list, or a Reply in its place; `replies` go out in turn, the last one again and again. `pages`
    are those beside the API: JSON, a Reply, or a function of the body that returns one of them."""

    def __init__(self) -> None:
        self.models: list[dict[str, Any]] | Reply = [{"id": "tiny", "max_model_len": 4096}, {"id": "big"}]
        self.replies: list[Reply] = [HELLO]
        self.pages: dict[str, Any] = {}
        self.key = ""
        self.seen: list[Seen] = []  # of the API
        self.probed: list[Seen] = []  # beside it
        self.hung_up = threading.Event()  # a client left before we were done
        self.closing = threading.Event()
        self.lock = threading.Lock()
        fake = self

        class Handler(_Handler):
            server_of = fake

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def next_reply(self) -> Reply:
        with self.lock:
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


class _Handler(BaseHTTPRequestHandler):
    server_of: FakeChatServer

    def do_GET(self) -> None:
        if not self.path.startswith("/v1/"):
            self.send_page({})
            return
        fake = self.note({})
        if fake.key and self.headers.get("Authorization") != f"Bearer {fake.key}":
            self.send(failure(401, "Incorrect API key provided"))
        elif not self.path.endswith("/models"):
            self.send(failure(404, "Not Found"))
        elif isinstance(fake.models, Reply):
            self.send(fake.models)
        else:
            self.send(as_json({"object": "list", "data": fake.models}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.startswith("/v1/"):
            self.send_page(body)
            return
        self.send(self.note(body).next_reply())

    def send_page(self, body: dict[str, Any]) -> None:
        page = self.note(body).pages.get(self.path, failure(404, "Not Found"))
        found = page(body) if callable(page) else page
        self.send(found if isinstance(found, Reply) else as_json(found))

    def note(self, body: dict[str, Any]) -> FakeChatServer:
        fake, key = self.server_of, self.headers.get("Authorization", "")
        seen = fake.seen if self.path.startswith("/v1/") else fake.probed
        seen.append(Seen(self.command, self.path, key.removeprefix("Bearer "), body))
        return fake

    def send(self, reply: Reply) -> None:
        self.protocol_version = "HTTP/1.1"
        self.close_connection = True
        chunked = "chunk" in reply.end
        try:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if chunked:
                self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in reply.pieces:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
                self.wfile.flush()
            self.finish_as(reply.end)
        except OSError:  # it left without reading all of it
            self.server_of.hung_up.set()

    def finish_as(self, end: str) -> None:
        if end == "chunked":
            self.wfile.write(b"0\r\n\r\n")
        elif end == "cut chunk":
            self.wfile.write(b"ff\r\nhal")
        elif end == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif end == "stall":
            self.connection.settimeout(0.05)
            while not self.server_of.closing.is_set():
                with suppress(TimeoutError):
                    if not self.connection.recv(1):
                        self.server_of.hung_up.set()
                        return

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def fake_chat_server() -> Iterator[FakeChatServer]:
    """A server that runs as long as the block does."""
    fake = FakeChatServer()
    thread = threading.Thread(target=fake.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.closing.set()
        fake.http.shutdown()
        fake.http.server_close()
        thread.join()
