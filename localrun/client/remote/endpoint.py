"""A server that speaks the OpenAI protocol: its address and our key."""

from dataclasses import field
from urllib.parse import urlsplit

from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.hub.network.url_origin import Origin, is_this_machine, origin_of

_PAGES = ("/chat/completions", "/completions", "/models")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`url` is the address of the API or of one of its pages; without a `model`, the server's first one answers.

    `key_env` is the environment variable that the key was read from, `in_keyring` says that the system's keyring has
    it; else it is kept beside the address. `tokenizer`: a model or folder on this disk that counts its prompts where
    the server does not.
    """

    name: str
    url: str
    key: str = field(default="", repr=False)
    model: str = ""
    key_env: str = ""
    in_keyring: bool = False
    tokenizer: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Address of the API of an endpoint: an origin, and the path before all its routes."""

    origin: Origin
    path: str

    @property
    def host(self) -> str:
        """The host, and the port where it is not the usual one, for messages."""
        scheme, host, port = self.origin
        return host if port == {"http": 80, "https": 443}[scheme] else f"{host}:{port}"

    @property
    def is_here(self) -> bool:
        return is_this_machine(self.origin[1])


def place_of(endpoint: Endpoint) -> Place:
    """The place an address means: a page of the API is cut off, and /v1 is what a bare host has. Raises UsageError."""
    url = endpoint.url.strip()
    hint = "it looks like https://HOST:PORT/v1"
    if not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError("the server's address has characters that no address has", hint)
    try:
        parts = urlsplit(url)
        origin = origin_of(parts)
    except ValueError:
        raise UsageError(f"{url} is not the address of a server", hint) from None
    if origin[0] not in ("http", "https") or not origin[1] or parts.query or parts.fragment:
        raise UsageError(f"{url} is not the address of a server", hint)
    if parts.username is not None:
        raise UsageError("a key does not belong into the server's address", "give it as the key")
    check_key(endpoint.key)
    path = parts.path.rstrip("/")
    for page in _PAGES:
        path = path.removesuffix(page)
    return Place(origin, path or "/v1")


def check_key(key: str) -> None:
    """UsageError for a key that cannot be sent in a header."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(
            "the server's key is not one", "it has no spaces, line ends or special characters: copy it again"
        )
