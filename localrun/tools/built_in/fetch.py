"""The tool that fetches a web page: confirmed for each host, and connected only to checked addresses."""

import http.client
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from urllib.parse import SplitResult, urljoin, urlsplit

from localrun.base.dataclass import dataclass
from localrun.base.request import Json
from localrun.hub.network.access import is_offline
from localrun.tools.built_in.page_text import text_of_page
from localrun.tools.built_in.public_address import IsAllowed, connect, is_public
from localrun.tools.running_call import RunningCall, ToolError, ToolResult
from localrun.tools.tool import Tool

MAX_PAGE = 5 << 20  # bytes
MAX_REDIRECTS = 5
FETCH_SECONDS = 30.0
_TEXTS = ("text/", "application/json", "application/xml", "application/xhtml", "application/javascript")
_PLAIN = re.compile(r"[!-~]+")  # ASCII, without white space and control characters
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class _Page:
    url: str
    kind: str  # content type
    charset: str
    data: bytes
    is_whole: bool


def fetch_url_tool(is_allowed: IsAllowed = is_public) -> Tool:
    """The tool that returns a page as text."""

    def run(arguments: Json, call: RunningCall) -> ToolResult:
        if is_offline():
            raise ToolError("localrun is set to be offline")
        page = _fetch(arguments["url"], call, is_allowed)
        if isinstance(page, str):
            return call.result(f"this leads to another host: {page}\nCall fetch_url with that, if it is wanted.")
        text = page.data.decode(page.charset, "replace")
        text = text_of_page(text) if "html" in page.kind else text
        more = "" if page.is_whole else f"\n(the page has more than {MAX_PAGE:,} bytes; the rest was not fetched)"
        return call.result(f"{page.url}\n\n{text}{more}")

    return Tool(
        "fetch_url",
        "Fetch a page from the internet as text.",
        {
            "type": "object",
            "properties": {"url": {"type": "string", "description": "the address, with http:// or https://"}},
            "required": ["url"],
        },
        run,
        scope=lambda arguments: _place(_parsed(arguments["url"])),
        preview=lambda arguments: f"fetch {_parsed(arguments['url']).geturl()}",
        seconds=FETCH_SECONDS,
    )


def _parsed(url: str) -> SplitResult:
    """The parts of a URL. Raises ToolError for one that is not a plain web page."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ToolError(f"this is no address: {error}") from None
    if parts.scheme not in _PORTS or not host or not _PLAIN.fullmatch(url):
        raise ToolError("this is no address of the web", "give one such as https://example.org/page")
    if "@" in parts.netloc:
        raise ToolError("addresses with a user or a password are not fetched")
    return parts


def _place(parts: SplitResult) -> str:
    """Host and port, as a person allows them."""
    port = parts.port or _PORTS[parts.scheme]
    return f"{parts.hostname}{'' if port == _PORTS[parts.scheme] else f':{port}'}"


def _fetch(url: str, call: RunningCall, is_allowed: IsAllowed) -> _Page | str:
    """Fetch the page, or return the redirect to another host, which needs a consent of its own."""
    first = _parsed(url)
    parts = first
    for _ in range(MAX_REDIRECTS):
        found = _get(parts, call, is_allowed)
        if isinstance(found, _Page):
            return found
        parts = _parsed(urljoin(parts.geturl(), found))
        if first.scheme == "https" and parts.scheme == "http":
            raise ToolError("the page leads from https to http, which is not followed")
        if _place(parts) != _place(first):
            return parts.geturl()
    raise ToolError(f"the page leads on more than {MAX_REDIRECTS} times")


def _get(parts: SplitResult, call: RunningCall, is_allowed: IsAllowed) -> _Page | str:
    """Fetch one page, or return its redirect."""
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    connection = http.client.HTTPConnection(host, port, timeout=FETCH_SECONDS)
    try:
        with closing(connection), _connected(connection, parts.scheme, host, port, call, is_allowed):
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("GET", path, headers={"User-Agent": "localrun", "Accept-Encoding": "identity"})
            return _answer(connection.getresponse(), parts.geturl(), call)
    except (OSError, http.client.HTTPException, ValueError) as error:
        call.check()
        raise ToolError(f"{host} did not answer as it should: {error or type(error).__name__}") from None


@contextmanager
def _connected(
    connection: http.client.HTTPConnection, scheme: str, host: str, port: int, call: RunningCall, is_allowed: IsAllowed
) -> Iterator[None]:
    """Connect `connection` to a checked address inside the block; the call's end closes it."""
    sock = connect(host, port, call, is_allowed)
    if scheme == "https":
        sock = ssl.create_default_context().wrap_socket(sock, server_hostname=host)
    connection.sock = sock

    def hang_up() -> None:
        while not call.wait(FETCH_SECONDS) and call.seconds_left:
            pass
        with suppress(OSError):
            sock.shutdown(2)

    threading.Thread(target=hang_up, daemon=True).start()
    yield


def _answer(response: http.client.HTTPResponse, url: str, call: RunningCall) -> _Page | str:
    if 300 <= response.status < 400 and (location := response.headers.get("Location")):
        return location
    if response.status != 200:
        raise ToolError(f"{url} cannot be had: {response.status} {response.reason}")
    kind = response.headers.get_content_type()
    if not kind.startswith(_TEXTS) and not kind.endswith(("+json", "+xml")):
        raise ToolError(f"{url} is {kind}, not text")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ToolError(f"{url} is compressed, which was not asked for")
    data = bytearray()
    while len(data) <= MAX_PAGE and (chunk := response.read1(1 << 16)):
        data += chunk
        call.check()
    call.check()  # one that was hung up on looks like one that ended
    if len(data) <= MAX_PAGE and response.length:
        raise ToolError(f"{url} broke off: {response.length:,} bytes are missing")
    charset = response.headers.get_content_charset("utf-8")
    try:
        "".encode(charset)
    except (LookupError, ValueError):
        charset = "utf-8"
    return _Page(url, kind, charset, bytes(data[:MAX_PAGE]), len(data) <= MAX_PAGE)
