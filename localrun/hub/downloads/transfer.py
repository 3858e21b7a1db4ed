"""Transfer of the missing chunks of one file, over several connections, each response checked against its request."""

import re
import threading
import time
from collections import deque
from typing import BinaryIO

from localrun.base.errors import HubError
from localrun.hub.disk.own_files import open_own
from localrun.hub.downloads.journal import CHUNK_BYTES
from localrun.hub.downloads.partial import Partial
from localrun.hub.downloads.progress import Control, Meter
from localrun.hub.network.connection import MIRROR_HINT
from localrun.hub.network.http import LONGEST_WAIT, Headers, Http, NetworkError, Response
from localrun.hub.network.http_errors import check_status
from localrun.hub.network.url_origin import host_of
from localrun.hub.remote.api import file_url
from localrun.hub.remote.repo import RemoteFile, RemoteRepo
from localrun.hub.safe_names import is_etag

CONNECTIONS = 4
RETRY_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # by the number of failures in a row without a byte
STOP_SECONDS = 3.0  # for a thread that is just connecting; it finds out before it writes anything
WARM_UP_SECONDS = 0.25  # between one connection and the next
FAST_LINE = 500e6  # bytes a second: beyond, the hash and the disk are the limit, and more connections only cost
_MIN_SPAN, _MAX_SPAN, _SPAN_SECONDS = 8, 256, 2.0  # chunks asked for at a time, and how long that should take
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


class Transfer:
    """Fetch chunks into `partial` in threads of its own.

    `arrived` are chunks in the file that the caller has to record. `failure` is what ended the transfer early,
    `retries` are the reasons of retries, and `progressed` signals a new chunk.
    """

    def __init__(
        self, http: Http, repo: RemoteRepo, file: RemoteFile, partial: Partial, control: Control, meter: Meter
    ) -> None:
        self.failure: BaseException | None = None
        self.arrived: deque[int] = deque()
        self.retries: deque[str] = deque()
        self.progressed = threading.Condition()
        self._http = http
        self._repo = repo
        self._file = file
        self._partial = partial
        self._control = control
        self._meter = meter
        self._stopped = False
        self._n_running = 0
        self._place = ""  # where the hub sent us: asked directly until it fails
        self._missing = missing_chunks(partial)
        self._lock = threading.Lock()
        self._nothing_left = threading.Event()  # every chunk has been asked for
        self._threads = [
            threading.Thread(target=self._work, args=(number,), name="localrun-download", daemon=True)
            for number in range(min(CONNECTIONS, -(-len(self._missing) // _MIN_SPAN)))
        ]

    def start(self) -> None:
        self._n_running = len(self._threads)
        for thread in self._threads:
            thread.start()

    @property
    def is_running(self) -> bool:
        return self._n_running > 0

    def stop(self) -> None:
        """Stop, and wait until all writes have ended."""
        self._stopped = True
        self._nothing_left.set()
        if self.is_running:
            self._http.close()
        for thread in self._threads:
            thread.join(STOP_SECONDS)

    def _work(self, number: int) -> None:
        """Run one connection: the first at once, the others while they add speed."""
        try:
            self._wait_for_turn(number)
            buffer = memoryview(bytearray(CHUNK_BYTES))
            with open_own(self._partial.path, "r+b") as part:
                rate = 0.0
                while span := self._next_span(rate):
                    started = time.monotonic()
                    self._fetch_span(part, buffer, *span)
                    rate = (span[1] - span[0] + 1) / max(time.monotonic() - started, 1e-3)
        except BaseException as error:
            self.failure = self.failure or error
            self._stopped = True
        finally:
            self._nothing_left.set()
            with self.progressed:
                self._n_running -= 1
                self.progressed.notify_all()

    def _wait_for_turn(self, number: int) -> None:
        """Start connections one after the other, and none more while the line is full."""
        turn, rate = 0, 0.0
        while (turn < number or rate > FAST_LINE) and not self._nothing_left.is_set():
            before = self._meter.fetched
            self._nothing_left.wait(WARM_UP_SECONDS)
            rate = (self._meter.fetched - before) / WARM_UP_SECONDS
            turn += 1

    def _next_span(self, rate: float) -> tuple[int, int] | None:
        """Choose a run of missing chunks (first and last) that takes a few seconds at `rate` chunks per second.

        So there are few requests, and all connections end at about the same time.
        """
        with self._lock:
            if self._stopped or not self._missing:
                return None
            most = max(_MIN_SPAN, min(int(rate * _SPAN_SECONDS), len(self._missing) // 2, _MAX_SPAN))
            first = last = self._missing.popleft()
            while self._missing and self._missing[0] == last + 1 and last + 1 - first < most:
                last = self._missing.popleft()
            if not self._missing:
                self._nothing_left.set()
            return first, last

    def _fetch_span(self, part: BinaryIO, buffer: memoryview, first: int, last: int) -> None:
        """Fetch chunks `first` to `last` inclusive; a broken connection resumes at the byte where it broke."""
        position = _Position(self._partial.bounds(first)[0], self._partial.bounds(last)[1])
        failures = 0
        while position.at < position.end and not self._stopped:
            before = position.at
            try:
                self._fetch(part, buffer, position)
            except NetworkError as error:
                self._place = ""
                failures = 0 if position.at > before else failures + 1
                if failures >= len(RETRY_SECONDS) or error.wait_seconds > LONGEST_WAIT:
                    raise
                seconds = max(RETRY_SECONDS[failures], error.wait_seconds)
                self.retries.append(error.message + (f" for {seconds:.0f} s" if error.wait_seconds else ""))
                self._pause(seconds)

    def _fetch(self, part: BinaryIO, buffer: memoryview, position: "_Position") -> None:
        start, end = position.at, position.end
        is_whole = (start, end) == (0, self._file.size)
        headers = {} if is_whole else {"Range": f"bytes={start}-{end - 1}"}
        url = self._place or file_url(self._http, self._repo.name, self._repo.commit, self._file.path)
        with self._http.get(url, headers) as response:
            self._check(response, start, end, is_whole)
            self._place = response.url
            part.seek(start)
            while position.at < end and not self._stopped:
                self._control.check()
                _, chunk_end = self._partial.bounds(position.at // CHUNK_BYTES)
                n_read = response.read_into(buffer[: chunk_end - position.at])
                if n_read == 0:
                    raise NetworkError(f"{host_of(response.url)} hung up", "try again: what has arrived is kept")
                if not self._stopped:
                    self._write(part, buffer[:n_read], position)

    def _write(self, part: BinaryIO, data: memoryview, position: "_Position") -> None:
        """Write, and report a chunk that is complete."""
        self._partial.check_claim()
        n_bytes = len(data)
        while data:
            data = data[part.write(data) :]
        position.at += n_bytes
        self._meter.add(n_bytes)
        chunk = (position.at - 1) // CHUNK_BYTES
        if position.at == self._partial.bounds(chunk)[1]:
            with self.progressed:
                self.arrived.append(chunk)
                self.progressed.notify_all()

    def _check(self, response: Response, start: int, end: int, is_whole: bool) -> None:
        """Refuse a response that is not exactly these bytes of exactly this file."""
        host = host_of(response.url)
        if (response.hops or self._place) and 400 <= response.status < 500 and response.status != 429:
            raise NetworkError(f"{host} refuses the file (status {response.status})", "try again in a minute")
        check_status(response, self._http.access, self._repo.name, self._file.path)
        for headers in (*response.hops, response.headers):
            self._check_identity(headers, host)
        size = self._file.size
        if is_whole and response.status == 200:
            expected = size
        elif response.status != 206:
            raise HubError(f"{host} sent the whole file instead of the requested part", MIRROR_HINT)
        else:
            match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if match is None or [int(n) for n in match.groups()] != [start, end - 1, size]:
                raise HubError(f"{host} sent a different part of the file than requested", MIRROR_HINT)
            expected = end - start
        if response.headers.get("Content-Length", str(expected)) != str(expected):
            raise HubError(f"{host} sent a file whose size differs from the hub's listing", MIRROR_HINT)

    def _check_identity(self, headers: Headers, host: str) -> None:
        commit = headers.get("X-Repo-Commit", self._repo.commit)
        etag = headers.get("X-Linked-Etag", "").strip('"') or self._file.etag
        own = headers.get("ETag", "").strip('"') if "X-Repo-Commit" in headers else ""
        if "X-Linked-Etag" not in headers and is_etag(own):
            etag = own
        size = headers.get("X-Linked-Size", str(self._file.size))
        if (commit, etag, size) != (self._repo.commit, self._file.etag, str(self._file.size)):
            raise HubError(f"{host} serves a different file than the hub lists", MIRROR_HINT)

    def _pause(self, seconds: float) -> None:
        """Wait, at most until the transfer is stopped."""
        with self.progressed:
            self.progressed.wait_for(lambda: self._stopped, seconds)


class _Position:
    """Position in a span: the next byte, and the end."""

    def __init__(self, at: int, end: int) -> None:
        self.at = at
        self.end = end


def missing_chunks(partial: Partial) -> deque[int]:
    return deque(chunk for chunk in range(partial.n_chunks) if chunk not in partial.chunks)
