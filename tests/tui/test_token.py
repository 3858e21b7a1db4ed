"""The token of Hugging Face: masked, kept by huggingface-hub, and nowhere else."""

import io
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import constants, hf_api
from huggingface_hub.errors import HfHubHTTPError
from localrun_testing.chat_app import chat_app, ready, type_text
from localrun_testing.fake_hub import FakeHub
from localrun_testing.pilots import LARGE, drive, screen_text, until, until_text
from textual.pilot import Pilot

from localrun.base.errors import HubError, TokenError, UsageError
from localrun.hub.network.http_errors import _TOKEN_PAGE
from localrun.hub.network.hub_token import keep_token
from localrun.hub.remote import api
from localrun_tui.screens.dialogs.ask import AskText

TOKEN = "hf_" + "a1B2" * 8


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    tokens: list[str] = []
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(huggingface_hub, "login", lambda token, add_to_git_credential: tokens.append(token))
    return tokens


def test_the_token_is_masked_and_goes_to_huggingface_hub_only(kept: list[str], home: Path, logged: io.StringIO) -> None:
    app, _ = chat_app(folder=home / "chats")

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/token")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AskText))
        await pilot.press(*TOKEN)
        await until_text(pilot, "•" * len(TOKEN))
        assert TOKEN not in screen_text(app)
        await pilot.press("enter")
        await until_text(pilot, "The token is kept")
        assert TOKEN not in screen_text(app)

    logging.getLogger().setLevel(logging.DEBUG)
    drive(app, steps)
    assert kept == [TOKEN]
    assert TOKEN not in logged.getvalue()
    assert not [path for path in home.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]


def test_where_the_token_goes_is_said_by_a_key_that_works_on_that_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    app, _ = chat_app()

    def refuse(*args: object) -> None:
        raise TokenError("the hub wants a token", _TOKEN_PAGE)

    monkeypatch.setattr(api, "search", refuse)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+o", "right", "right", "slash", *"qwen")
        await until_text(pilot, "goes into “Hugging Face token” (Ctrl+P)")
        await pilot.press("ctrl+p", *"hugging")
        await until_text(pilot, "for models whose authors want consent")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AskText))

    drive(app, steps, LARGE)


def test_it_is_asked_for_until_the_hub_accepts_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By huggingface-hub's own way of asking, and of keeping it."""
    monkeypatch.delenv("HF_TOKEN", raising=False)
    app, _ = chat_app(folder=home / "chats")
    wrong = "hf_" + "wrong" * 6

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/token")
        await pilot.press("enter")
        for typed, says in (("hf_short", "this is no token"), (wrong, "does not accept this token")):
            await until(pilot, lambda: isinstance(app.screen, AskText))
            await pilot.press(*typed)
            await until_text(pilot, "•" * len(typed))
            await pilot.press("enter")
            await until_text(pilot, says)
        await pilot.press(*TOKEN, "enter")
        await until_text(pilot, "The token is kept")

    with FakeHub({}, TOKEN) as hub:
        monkeypatch.setattr(hf_api.api, "endpoint", hub.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        kept = home / "token"
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(kept))
        monkeypatch.setattr(constants, "HF_STORED_TOKENS_PATH", str(home / "stored_tokens"))
        drive(app, steps)
        assert [seen.token for seen in hub.seen if "whoami" in seen.path] == [wrong, TOKEN]
    assert kept.read_text() == TOKEN


def test_what_is_no_token_or_is_refused_is_said_without_it(kept: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("", "token", "hf_", "hf_short", "hf_ab cdefghijkl", "hf_äbcdefghijkl"):
        with pytest.raises(UsageError, match="this is no token"):
            keep_token(wrong)
    assert kept == []

    def refuse(token: str, add_to_git_credential: bool) -> None:
        raise ValueError(f"Invalid token passed: {token}")

    monkeypatch.setattr(huggingface_hub, "login", refuse)
    with pytest.raises(HubError) as error:
        keep_token(TOKEN)
    assert TOKEN not in f"{error.value.message} {error.value.hint}"
    assert error.value.__cause__ is None
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    with pytest.raises(UsageError, match="HF_TOKEN is set"):
        keep_token(TOKEN)


@pytest.mark.parametrize(("status", "says"), [(401, "does not accept"), (403, "does not accept"), (503, "in trouble")])
def test_what_the_hub_says_to_a_token_is_told(status: int, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that the network is to be checked."""

    def refuse(token: str, add_to_git_credential: bool) -> None:
        error = HfHubHTTPError.__new__(HfHubHTTPError)
        error.response = SimpleNamespace(status_code=status)  # type: ignore[assignment]
        raise error

    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(huggingface_hub, "login", refuse)
    with pytest.raises(HubError) as error:
        keep_token(TOKEN)
    assert says in f"{error.value.message} {error.value.hint}"
