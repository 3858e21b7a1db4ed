"""The app with a real engine whose model sees: tokens of an image see each other both ways."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from localrun_testing.chat_app import CHOICE, ask, chat_screen, ready
from localrun_testing.pilots import drive, until, until_text
from localrun_testing.seeing_gemma import save_seeing_gemma
from PIL import Image
from textual.pilot import Pilot

from localrun.base.request import LoadOptions
from localrun.chat.files import read_files
from localrun.chat.journal import ChatStore
from localrun.chat.tree import Message
from localrun.client.local import LocalClient
from localrun_tui.app import LocalrunApp


@pytest.fixture
def client(tmp_path: Path) -> Iterator[LocalClient]:
    with LocalClient(LoadOptions(save_seeing_gemma("both-ways", tmp_path), ctx=1024)) as opened:
        yield opened


def test_an_image_in_the_middle_of_a_chat_is_counted_seen_and_cached(
    client: LocalClient, home: Path, tmp_path: Path
) -> None:
    (home / "config.toml").write_text("max_tokens = 8\ntemperature = 0.0\n")
    path = tmp_path / "noise.png"
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (41, 70, 3), dtype=np.uint8)).save(path)
    app = LocalrunApp(lambda choice, progress: client, lambda: ChatStore(None), lambda: CHOICE)
    kept: list[Message] = []

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        screen = chat_screen(pilot)
        await ask(pilot, "hi")
        screen.composer.attached.take(read_files(str(path), tmp_path, await screen.session.images()))
        await until_text(pilot, "▣ noise.png 70 × 41 · ")
        await until(pilot, lambda: screen.composer.attached.costs)
        (view,) = screen.composer.attached.costs
        assert view.sizes["full"].n_tokens > 50
        await ask(pilot, "what?")
        await ask(pilot, "sure?")
        chat = screen.session.chat
        assert chat is not None
        await until(pilot, lambda: len(chat.tree) == 6)
        kept.extend(chat.tree.messages())
        assert kept[3].stats["images"] == 1
        assert kept[3].stats["image_tokens"] == view.sizes["full"].n_tokens

    drive(app, steps)
    first, last = (kept[number].stats for number in (3, 5))
    assert last["cached_tokens"] >= first["prompt_tokens"] - 1
    assert not last["encode_ms"]
