"""The Hugging Face token, kept where `hf auth login` keeps it."""

import os
import re

from localrun.base.errors import HubError, UsageError

TOKENS_PAGE = "huggingface.co/settings/tokens"
_TOKEN = re.compile(r"hf_[A-Za-z0-9]{8,}")
_REFUSED = (401, 403)  # unauthorized, forbidden
_PLACES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")  # that go first


def keep_token(token: str) -> None:
    """Have huggingface-hub check a token with the hub, and keep it. HubError where it does not; none has the token."""
    token = token.strip()
    if not _TOKEN.fullmatch(token):
        raise UsageError("this is no token: one is hf_ and at least 8 letters or digits", f"copy it from {TOKENS_PAGE}")
    if named := next((name for name in _PLACES if os.environ.get(name)), None):
        raise UsageError(f"{named} is set and goes before any other token", f"unset {named}, or set it to this token")
    from huggingface_hub import login
    from huggingface_hub.errors import HfHubHTTPError

    refused = HubError("Hugging Face does not accept this token", f"make a new one at {TOKENS_PAGE}")
    try:
        login(token, add_to_git_credential=False)
    except HfHubHTTPError as error:
        if error.response.status_code in _REFUSED:
            raise refused from None
        raise HubError("the token cannot be checked and kept", "the hub is in trouble: try again later") from None
    except OSError as error:
        raise HubError("the token cannot be checked and kept", _reason(error)) from None
    except ValueError:
        raise refused from None


def _reason(error: OSError) -> str:
    return error.strerror or "check the network, then try again"
