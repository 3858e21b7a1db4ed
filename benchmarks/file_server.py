"""Serves one file as the hub does: listing, redirect, ranges. In a process of its own, straight from the page cache.

    python -m benchmarks.file_server FILE SHA256 [--rate 100]

Prints its address. --rate is MB/s over all connections together, as a line to the internet has it.
"""

import argparse
import json
import os
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "c0ffee" * 6 + "c0de"


class Line:
    """What all connections share."""

    def __init__(self, bytes_per_second: float | None) -> None:
        self.rate = bytes_per_second
        self.piece = 1 << 20 if bytes_per_second is None else 64 << 10
        self._free_at = 0.0
        self._lock = threading.Lock()

    def take(self, n_bytes: int) -> None:
        """Wait until so many bytes have gone through."""
        if self.rate is not None:
            with self._lock:
                self._free_at = max(self._free_at, time.monotonic() - 0.01) + n_bytes / self.rate
            time.sleep(max(0.0, self._free_at - time.monotonic()))


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, path: Path, sha256: str, line: Line) -> None:
        self.path, self.sha256, self.line = path, sha256, line
        self.size = path.stat().st_size
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        server = self.server
        if self.path.startswith("/api/"):
            lfs = {"sha256": server.sha256, "size": server.size}
            sibling = {"rfilename": "x.gguf", "size": server.size, "lfs": lfs}
            body = json.dumps({"id": "a/b", "sha": COMMIT, "gated": False, "siblings": [sibling]}).encode()
            self.answer(200, {"Content-Length": str(len(body))})
            self.wfile.write(body)
        elif self.path.startswith("/a/b/resolve/"):
            linked = {"X-Linked-Etag": f'"{server.sha256}"', "X-Linked-Size": str(server.size)}
            self.answer(302, {"Location": "/store", "X-Repo-Commit": COMMIT, "Content-Length": "0", **linked})
        else:
            self.send_file()

    def answer(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send_file(self) -> None:
        size, line = self.server.size, self.server.line
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        start, end = (int(asked[1]), int(asked[2]) + 1) if asked else (0, size)
        headers = {"Content-Length": str(end - start)}
        if asked:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        self.answer(206 if asked else 200, headers)
        with self.server.path.open("rb") as file:
            while start < end:
                sent = os.sendfile(self.connection.fileno(), file.fileno(), start, min(line.piece, end - start))
                line.take(sent)
                start += sent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("sha256")
    parser.add_argument("--rate", type=float)
    options = parser.parse_args()
    line = Line(options.rate * 1e6 if options.rate else None)
    server = Server(options.file, options.sha256, line)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
