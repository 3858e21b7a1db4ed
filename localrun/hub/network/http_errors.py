"""Refusals of the hub, as errors that a user can act on."""

import math

from localrun.base.errors import HubError, LocalrunError, NotFoundError, TokenError
from localrun.base.sanitize import clean
from localrun.hub.network.access import Access
from localrun.hub.network.connection import MIRROR_HINT
from localrun.hub.network.http import NetworkError, Response
from localrun.hub.network.rate_limit import seconds_to_wait
from localrun.hub.network.url_origin import host_of

_TOKEN_PAGE = "a token comes from huggingface.co/settings/tokens and goes into HF_TOKEN, or /token of the app"


def check_status(response: Response, access: Access, repo: str = "", file: str = "") -> None:
    """Raise for a status other than 200 or 206: NotFoundError, NetworkError (may pass) or HubError."""
    if response.status not in (200, 206):
        raise refusal(response, access, repo, file)


def refusal(response: Response, access: Access, repo: str, file: str) -> LocalrunError:
    """The error for a response that refuses the request."""
    status, code = response.status, response.headers.get("X-Error-Code", "")
    host = host_of(response.url)
    if code == "GatedRepo":
        return _gated(repo, access)
    if code == "RepoNotFound" or (status == 404 and not code and not file):
        hint = "check the spelling with `localrun search`; a private one needs HF_TOKEN"
        return NotFoundError(f"the hub has no {repo}", hint)
    if code == "EntryNotFound":
        return NotFoundError(
            f"{repo} has no file {clean(file, keep_newlines=False)}", f"`localrun show {repo}` lists them"
        )
    if code == "RevisionNotFound":
        return NotFoundError(f"{repo} has no such revision", "leave the revision out")
    if status == 429:
        seconds = seconds_to_wait(response.headers)
        wait = f"try again {_in_a_while(seconds)}"
        hint = wait if access.token else f"{wait}; with HF_TOKEN the limit is higher"
        return NetworkError(f"{host} asks localrun to slow down (too many requests)", hint, seconds or math.inf)
    if status == 401:
        return TokenError(f"{host} does not accept the token" if access.token else f"{host} wants a token", _TOKEN_PAGE)
    if status == 403:
        return TokenError(
            f"{host} does not allow this" + (f": {repo}" if repo else ""), f"{_TOKEN_PAGE}; it may need more rights"
        )
    if status == 404:
        return NotFoundError(f"{host} has no {clean(file or repo, keep_newlines=False)}", MIRROR_HINT)
    if status >= 500 or status == 408:
        seconds = seconds_to_wait(response.headers, is_limit=False) or 0.0
        hint = f"try again {_in_a_while(seconds) if seconds else 'in a minute'}"
        return NetworkError(f"{host} reports an internal error (status {status})", hint, seconds)
    return HubError(f"{host} sent an unexpected answer (status {status})", MIRROR_HINT)


def _in_a_while(seconds: float | None) -> str:
    if seconds is None:
        return "in a few minutes"
    if seconds <= 600:
        return f"in {seconds:.0f} s"
    minutes = math.ceil(seconds / 60)
    return f"in {minutes} minutes" if minutes <= 120 else f"in {math.ceil(minutes / 60)} hours"


def _gated(repo: str, access: Access) -> TokenError:
    page = f"{access.endpoint}/{repo}"
    if access.token:
        return TokenError(f"{repo} is gated, and your token has no access to it", f"ask for access at {page}")
    return TokenError(
        f"{repo} is gated: its authors want you to accept a licence", f"do so at {page}; then {_TOKEN_PAGE}"
    )
