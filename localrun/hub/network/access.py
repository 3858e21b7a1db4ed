"""Access to the hub: endpoint, token and offline mode, from HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE and the like."""

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from urllib.parse import urlsplit

from localrun.base.dataclass import dataclass
from localrun.base.errors import HubError, UsageError
from localrun.base.small_file import NotAFileError, TooBigError, read_small

HUGGING_FACE = "https://huggingface.co"
_MAX_TOKEN_BYTES = 4 << 10
_TRUE = ("1", "on", "yes", "true")


@dataclass(frozen=True, slots=True)
class Access:
    """A hub and how to reach it. The token never shows in a repr, and is sent to `endpoint` only."""

    endpoint: str = HUGGING_FACE
    token: str = field(default="", repr=False)
    offline: bool = False
    cache: Path = Path("~/.cache/huggingface/hub")  # where downloads go, in the layout that others read too

    @property
    def warning(self) -> str:
        """Warning for a user whose token would be sent to another host than Hugging Face; else empty."""
        if self.token and self.endpoint != HUGGING_FACE:
            return f"your Hugging Face token goes to {self.endpoint} (HF_ENDPOINT): unset HF_TOKEN if that is not yours"
        return ""


def read_access(offline: bool = False, environ: Mapping[str, str] = os.environ) -> Access:
    """Read the access from the environment; `offline` is the flag. UsageError for an endpoint that is not a URL."""
    endpoint = (environ.get("HF_ENDPOINT") or HUGGING_FACE).rstrip("/")
    try:
        parts = urlsplit(endpoint)
        valid = parts.scheme in ("http", "https") and parts.hostname and not parts.username and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        raise UsageError("HF_ENDPOINT is not the address of a hub", "unset it, or set it to https://HOST")
    return Access(endpoint, _token(environ), offline or is_offline(environ), hub_cache(environ))


def is_offline(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether environment variables forbid use of the network."""
    return any(environ.get(name, "").lower() in _TRUE for name in ("HF_HUB_OFFLINE", "LOCALRUN_OFFLINE"))


def hub_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Path of the Hugging Face cache, which need not exist."""
    return Path(os.path.expanduser(environ.get("HF_HUB_CACHE") or _hf_home(environ) / "hub"))


def _hf_home(environ: Mapping[str, str]) -> Path:
    home = environ.get("HF_HOME") or os.path.join(environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(os.path.expanduser(home))


def _token(environ: Mapping[str, str]) -> str:
    """HF_TOKEN, else the token that `hf auth login` stored."""
    token = environ.get("HF_TOKEN") or environ.get("HUGGING_FACE_HUB_TOKEN") or ""
    if not token:
        path = Path(environ.get("HF_TOKEN_PATH") or _hf_home(environ) / "token").expanduser()
        try:
            token = read_small(path, _MAX_TOKEN_BYTES).decode()
        except (NotAFileError, TooBigError) as error:
            raise HubError(
                f"no token can be read from {path}: {error.strerror}", "set HF_TOKEN, or unset HF_TOKEN_PATH"
            ) from None
        except (OSError, ValueError):
            return ""
    token = token.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise HubError(
            "the Hugging Face token is malformed", "set HF_TOKEN to a token from huggingface.co/settings/tokens"
        )
    return token
