"""HTTP for a server that answers chats: one connection a request, never a redirect, the key to this server only."""

import http.client
import json
import queue
import re
import socket
import ssl
import threading
import time
from email.message import Message
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.errors import EngineDiedError, EngineError, LocalrunError, UsageError
from localrun.base.events import Prefill
from localrun.base.request import Json
from localrun.client.remote.endpoint import Endpoint, Place, place_of
from localrun.client.remote.event_stream import StreamError, read_events
from localrun.client.remote.http_errors import asks_for_less, no_api, status_error
from localrun.client.remote.logprobs import FIELDS
from localrun.hub.network.access import is_offline
from localrun.hub.network.connection import Connection, break_off, reason_of
from localrun.hub.network.http import USER_AGENT

FIRST_SECONDS = 900.0  # until a server begins its answer: it may have a queue, and a long prompt to read
IDLE_SECONDS = 120.0  # between two pieces of one
WAIT_SECONDS = 1.0  # between checks that the thread is alive
MAX_BODY = 8 << 20
MAX_ANSWER = 64 << 20
_OPTIONAL = (
    *("stream_options", "top_k", "min_p", "repeat_penalty", "repetition_penalty"),
    *(
        "chat_template_kwargs",
        "seed",
        "logit_bias",
        "return_progress",
        "cache_salt",
        "prompt_cache_key",
        "reasoning_effort",
        "priority",
    ),
    *FIELDS,
)
_PROGRESS = re.compile(
    r" *keepalive (\d{1,9})/(\d{1,9})"
)  # tokens of the prompt, as mlx_lm.server tells while it reads


@dataclass(frozen=True, slots=True)
class DroppedField:
    """A field that the server refused, so that the request is sent again without it; `instead` by another name."""

    name: str
    instead: str = ""


class End:
    """The stream ended as it should."""


StreamPiece = Json | DroppedField | Prefill | End | LocalrunError


class Exchange:
    """One request under way on a thread of its own, so that waiting for it can end at any time."""

    def __init__(self, endpoint: Endpoint, page: str, body: Json) -> None:
        self.place = place_of(endpoint)
        check_online(self.place)
        self.pieces: queue.SimpleQueue[StreamPiece | None] = queue.SimpleQueue()
        self.is_cancelled = False
        self.connect_ms: float | None = None  # of the last connection
        self._endpoint, self._page, self._body = endpoint, page, body
        self._packed()
        self._sock: socket.socket | None = None
        self._n_bytes = 0
        self._thread = threading.Thread(target=self._run, name="localrun-remote", daemon=True)
        self._thread.start()

    def next_piece(self) -> StreamPiece | None:
        """Wait for it, as long as the thread that reads it runs."""
        while True:
            is_alive = self._thread.is_alive()
            try:
                return self.pieces.get(timeout=WAIT_SECONDS if is_alive else 0)
            except queue.Empty:
                if not is_alive:
                    what = f"lost the connection to {self.place.host} (this process was forked)"
                    return EngineDiedError(what, "send the message again")

    def cancel(self) -> None:
        """Close the connection; None is the last piece."""
        self.is_cancelled = True
        self.pieces.put(None)
        if self._sock is not None:
            break_off(self._sock)

    def _run(self) -> None:
        try:
            self._exchange()
            self.pieces.put(End())
        except LocalrunError as error:
            self.pieces.put(error)
        except (OSError, http.client.HTTPException, ValueError) as error:
            what = f"the connection to {self.place.host} broke off in the middle: {_why(error)}"
            self.pieces.put(EngineDiedError(what, "send the message again; what has arrived is kept"))
        except Exception as error:  # a bug of ours must reach the face, not vanish with the thread
            self.pieces.put(EngineError(f"localrun failed: {type(error).__name__}: {error}", "please report this"))

    def _exchange(self) -> None:
        while True:
            connection, raw = self._ask()
            try:
                if raw.status == 200:
                    if self._read(raw) or not self._body["stream"]:
                        return
                    self._body["stream"] = False  # some servers give an error message only then
                    self._body.pop("stream_options", None)
                    continue
                said = raw.read(MAX_BODY)
            finally:
                connection.close()
            if not is_refusal(raw.status, said) or not (dropped := self._drop(said)):
                raise status_error(raw.status, raw.headers, said, self._endpoint, self.place)
            for field in dropped:
                self.pieces.put(field)

    def _drop(self, said: bytes) -> list[DroppedField]:
        """Leave out, or name differently, the fields that an error is about; none where it is about something else."""
        if "max_tokens" in self._body and b"max_completion_tokens" in said:  # models of OpenAI that reason
            self._body["max_completion_tokens"] = self._body.pop("max_tokens")
            return [DroppedField("max_tokens", "max_completion_tokens")]
        wanted = self._body.get("response_format", {})
        if wanted.get("type") == "json_schema" and b"json_object" in said:  # llama_cpp.server takes its schema there
            self._body["response_format"] = with_schema_in_object(wanted)
            return [DroppedField("json_schema", "json_object")]
        refused = [name for name in _OPTIONAL if name.encode() in said]
        refused += FIELDS if set(FIELDS) & set(refused) else ()  # one is nothing without the other
        unwanted = [name for name in dict.fromkeys(refused) if name in self._body]
        if not unwanted and asks_for_less(said):
            unwanted = [name for name in ("max_tokens", "max_completion_tokens") if name in self._body]
        for name in unwanted:
            del self._body[name]
        return [DroppedField(name) for name in unwanted]

    def _ask(self) -> tuple[Connection, http.client.HTTPResponse]:
        began = time.perf_counter()
        connection = connect(self.place)
        self.connect_ms = 1000 * (time.perf_counter() - began)
        self._sock = connection.sock
        if self.is_cancelled:
            break_off(connection.sock)
        connection.sock.settimeout(FIRST_SECONDS)
        headers = {**headers_of(self._endpoint), "Content-Type": "application/json", "Accept": "text/event-stream"}
        page = f"{self.place.path}{self._page}"
        try:
            return connection, connection.ask(page, headers, self._packed(), FIRST_SECONDS)[0]
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise unreachable(self.place, error) from None

    def _packed(self) -> bytes:
        try:
            return json.dumps(self._body).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"the request cannot be sent: {error}") from None

    def _read(self, raw: http.client.HTTPResponse) -> bool:
        """Every chunk of an answer, whether it is a stream or one body; False where there was none."""
        check_encoding(raw.headers, self.place)
        kind = raw.headers.get_content_type()
        if kind == "application/json":
            self._put(raw.read(MAX_BODY).decode("utf-8", "replace"))
            return True
        if kind != "text/event-stream":
            raise no_api(self.place)
        assert self._sock is not None
        self._sock.settimeout(IDLE_SECONDS)

        def read_line(limit: int) -> bytes:
            line = raw.readline(limit)
            self._n_bytes += len(line)
            if self._n_bytes > MAX_ANSWER:
                raise StreamError(f"the answer has more than {MAX_ANSWER:,} bytes")
            return line

        has_any = False
        for data in read_events(read_line, self._take_comment):
            if data.strip() == "[DONE]":
                break
            self._put(data)
            has_any = True
        return has_any

    def _take_comment(self, text: str) -> None:
        if progress := _PROGRESS.match(text):
            self.pieces.put(Prefill(int(progress[1]), 0, int(progress[2])))

    def _put(self, text: str) -> None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise StreamError("what came is not JSON of this protocol")
        if value.get("error"):
            raise status_error(_status_in(value["error"]), Message(), text.encode(), self._endpoint, self.place)
        self.pieces.put(value)


def is_refusal(status: int, said: bytes) -> bool:
    """Whether a server found a request wrong; llama_cpp.server says so with 500."""
    return status in (400, 422) or (status == 500 and b"validation error" in said)


def with_schema_in_object(response_format: Json) -> Json:
    """A schema as servers without `json_schema` take it."""
    return {"type": "json_object", "schema": response_format["json_schema"]["schema"]}


def connect(place: Place) -> Connection:
    """An open connection to where the user says the server is, be that in a private network or on this machine."""
    connection = Connection(place.origin, may_be_private=True)
    try:
        connection.connect()
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        connection.close()
        raise unreachable(place, error) from None
    return connection


def unreachable(place: Place, error: Exception) -> EngineError:
    """The error for no connection, or none that answers."""
    if isinstance(error, ssl.SSLCertVerificationError):
        what = f"{place.host} shows a certificate that is not trusted: {error.verify_message}"
        return EngineError(what, "if it is your own, name its certificate in SSL_CERT_FILE")
    if isinstance(error, ssl.SSLError):
        return EngineError(f"{place.host} does not speak TLS there", "if it is a plain server, use http:// instead")
    if isinstance(error, ConnectionRefusedError):
        return EngineError(f"nothing listens at {place.host}", "start the server there, or correct the address")
    what = f"{place.host} cannot be reached: {_why(error)}"
    return EngineError(what, "check the address and the network; is https:// or http:// right?")


def check_online(place: Place) -> None:
    """UsageError where the user wants no network, except for servers on this machine."""
    if is_offline() and not place.is_here:
        what = f"localrun is offline, and {place.host} is not this machine"
        raise UsageError(what, "unset LOCALRUN_OFFLINE and HF_HUB_OFFLINE to use it")


def check_encoding(headers: Message, place: Place) -> None:
    """EngineError for a compressed body, since none was asked for."""
    if (headers.get("Content-Encoding") or "identity").lower() != "identity":
        raise EngineError(f"{place.host} sends a compressed answer, which was not asked for", "look at its proxy")


def headers_of(endpoint: Endpoint) -> dict[str, str]:
    """The headers of every request: the key, where there is one."""
    headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", "Connection": "close"}
    return {**headers, "Authorization": f"Bearer {endpoint.key}"} if endpoint.key else headers


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, StreamError) else reason_of(error)


def _status_in(error: Any) -> int:
    """The HTTP status that an error within a stream names, else that of a server with trouble of its own."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500
