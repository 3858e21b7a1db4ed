"""An error as an HTTP response: a status, a code for programs, a sentence for people."""

import math
import re
from collections.abc import Mapping
from dataclasses import field

from localrun.base.dataclass import dataclass
from localrun.base.errors import (
    DiskFullError,
    DoesNotFitError,
    EngineDiedError,
    HubError,
    LocalrunError,
    ModelFileError,
    NotFoundError,
    PromptTooLongError,
    StorageError,
    TokenError,
    UsageError,
)
from localrun.base.sanitize import clean
from localrun.hub.network.http import NetworkError

RETRY_SECONDS = 1
CANCELLED = "cancelled"
_PATH = re.compile(r"(?<![\w:/.])(?:[A-Za-z]:\\|/)(?:[^\s/\\:'\"]+[/\\])+([^\s/\\:'\"]*)")


@dataclass(eq=False)
class Refusal(Exception):
    """A call that is refused. `param`: the field at fault; `figures`: numbers for programs."""

    status: int
    message: str
    code: str = "invalid_request_error"
    param: str | None = None
    retry_after: int | None = None  # seconds
    figures: Mapping[str, int] = field(default_factory=dict)
    closes: bool = False  # the connection

    @property
    def headers(self) -> dict[str, str]:
        closing = {"connection": "close"} if self.closes else {}
        if self.retry_after is not None:
            return {**closing, "retry-after": str(self.retry_after)}
        return {**closing, "x-should-retry": "false"} if self.is_lasting else closing

    @property
    def is_lasting(self) -> bool:
        """Whether trying again cannot help. The SDKs of OpenAI and Anthropic try every error of a server again, unless
        it says so."""
        return self.status >= 500 and self.retry_after is None

    @property
    def kind(self) -> str:
        """The type of the error, in OpenAI's terms."""
        match self.status:
            case 401:
                return "authentication_error"
            case 403:
                return "permission_error"
            case 404:
                return "not_found_error"
            case 429:
                return "rate_limit_error"
            case status if status >= 500:
                return "server_error"
        return "invalid_request_error"


def refusal_of(error: LocalrunError, field: str | None = None) -> Refusal:
    """The Refusal of an error of ours; `field`: the one at fault. Paths of this machine are shortened to file names."""
    message = without_paths(f"{error.message} ({error.hint})" if error.hint else error.message)
    match error:
        case PromptTooLongError(n_tokens=n_tokens, ctx=ctx):
            known = {name: n for name, n in (("n_prompt_tokens", n_tokens), ("n_ctx", ctx)) if n}
            return Refusal(400, message, "context_length_exceeded", figures=known)
        case UsageError():
            return Refusal(400, message, param=field or error.field or None)
        case NotFoundError():
            return Refusal(404, message, "model_not_found", "model")
        case DoesNotFitError():
            return Refusal(503, message, "does_not_fit")
        case ModelFileError():
            return Refusal(500, message, "bad_model_file")
        case EngineDiedError():
            return Refusal(503, message, "engine_died", retry_after=RETRY_SECONDS)
        case NetworkError(wait_seconds=seconds):
            wait = math.ceil(seconds) if 0 < seconds < math.inf else None
            return Refusal(503, message, "hub_unreachable", retry_after=wait)
        case TokenError():
            return Refusal(403, message, "hub_access")
        case DiskFullError() | StorageError():
            return Refusal(507, message, "no_room")
        case HubError():
            return Refusal(502, message, "hub_error")
    return Refusal(500, message, f"{error.kind}_error")


def without_paths(text: str) -> str:
    """A message without the folders of this machine and without control sequences."""
    return _PATH.sub(lambda found: found[1], clean(text))


def cancelled() -> Refusal:
    """The refusal of a request that was cancelled on this machine. Clients do not retry this status."""
    return Refusal(499, "this request was cancelled", CANCELLED)


def stopping() -> Refusal:
    """The refusal of what the server could not answer before its end."""
    return Refusal(
        503, "the server has been stopped before this was answered", "server_stopped", retry_after=RETRY_SECONDS
    )


def busy(waiting: int) -> Refusal:
    """The queue is full."""
    return Refusal(429, f"{waiting} requests wait already", "queue_full", retry_after=RETRY_SECONDS)
