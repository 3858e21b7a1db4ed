"""Query a running server for its model and its requests, over its address or its Unix socket."""

import http.client
import json
import os
import socket
import sys
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from localrun.base.errors import EngineError, NotFoundError, UsageError
from localrun.base.sanitize import clean
from localrun.client.attach.host import AttachedProgram
from localrun.client.attach.owner import Owner, running_server
from localrun.hub.network.url_origin import origin_of
from localrun.server.options import KEY_VARIABLE

SECONDS = 5.0
MAX_BYTES = 4 << 20


class MonitorClient:
    """Client of the monitor of this user's server, or of the one at `url`, which may lack the http://. The `key` is
    else that of the environment. Raises NotFoundError where none runs."""

    def __init__(self, url: str = "", key: str = "") -> None:
        owner = Owner(0, 0.0, url if "://" in url else f"http://{url}", "") if url else running_server()
        if owner is None:
            raise NotFoundError("no server runs", "`localrun serve` starts one")
        self._owner = owner
        self._key = key or os.environ.get(KEY_VARIABLE, "")

    @property
    def address(self) -> str:
        """Address of the server as shown to the user."""
        return self._owner.url or self._owner.socket

    @property
    def url(self) -> str:
        """URL of the server. UsageError where it has only a Unix socket."""
        if not self._owner.url:
            raise UsageError("that server listens on a Unix socket only", "start it without --socket")
        return self._owner.url

    def state(self) -> dict[str, Any]:
        """The loaded model and the requests under way, as `top --json` shows them."""
        return self._ask("GET", "/v1/localrun/requests")

    def cancel(self, number: int) -> None:
        """Cancel a request. Raises NotFoundError where it is over."""
        self._ask("DELETE", f"/v1/localrun/requests/{number}")

    def raise_priority(self, number: int) -> None:
        """Have a request go before lower classes. Raises NotFoundError where it is over."""
        self._ask("POST", f"/v1/localrun/requests/{number}/raise", {})

    def load(self, model: str = "") -> dict[str, Any]:
        """Load a model, the default one for an empty name, and return it as `state` shows it; its `id` is its name in
        requests. Waits without a limit."""
        self._ask("POST", "/v1/responses", {"model": model, "input": "", "store": False})
        loaded = self.state().get("model")
        if not isinstance(loaded, dict):
            raise EngineError("that server has let go of its model", "try again")
        listed = self._ask("GET", "/v1/models")["data"]
        id = next((row["id"] for row in listed if "context_length" in row), loaded["name"])
        return {**loaded, "id": id}

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        bearer = {"authorization": f"Bearer {self._key}"} if self._key else {}
        headers = {"content-type": "application/json", **bearer}
        connection = _connection(self._owner, SECONDS if body is None else None)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            values = json.loads(answer.read(MAX_BYTES))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise EngineError(
                f"{self.address} does not answer: {error or type(error).__name__}", "is it still there?"
            ) from None
        finally:
            connection.close()
        if answer.status == 401:
            raise UsageError("that server needs its key", f"set {KEY_VARIABLE}")
        if answer.status == 200 and isinstance(values, dict):
            return values
        said = values.get("error") if isinstance(values, dict) else None
        if not isinstance(said, dict) or not isinstance(said.get("message"), str):
            raise EngineError(f"that server answers {answer.status}", "is it localrun?")
        what = clean(said["message"], keep_newlines=False)
        raise NotFoundError(what) if answer.status == 404 else EngineError(what)


def attached_names(state: dict[str, Any]) -> list[str]:
    """Programs attached to the engine of the server, with their processes."""
    rows = [row for row in state.get("attached", ()) if isinstance(row, dict)]
    return [str(AttachedProgram(clean(str(row.get("name"))), row.get("pid"))) for row in rows]


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, seconds: float | None) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        if sys.platform == "win32":
            raise OSError("Windows has no Unix sockets")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _connection(owner: Owner, seconds: float | None) -> http.client.HTTPConnection:
    if owner.socket:
        return _UnixConnection(owner.socket, seconds)
    with suppress(ValueError, http.client.InvalidURL):
        scheme, host, port = origin_of(urlsplit(owner.url))
        if scheme == "http" and host:
            return http.client.HTTPConnection(host, port, timeout=seconds)
    raise UsageError(f"{owner.url} is no address of a server", "it looks like http://127.0.0.1:11434")
