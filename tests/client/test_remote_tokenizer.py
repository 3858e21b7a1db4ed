"""Prompts counted by a tokenizer on this disk, beside transformers' own count, until the server counts differently."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from localrun_testing.fake_chat_server import DONE, FakeChatServer, Reply, delta, event, failure, fake_chat_server
from localrun_testing.real_engines import tiny_checkpoint
from transformers import AutoTokenizer

from localrun.base.events import Completion, Done
from localrun.base.request import Request
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint

TALK = (
    {"role": "user", "content": "Hello, how are you?"},
    {"role": "assistant", "content": "The river is wide."},
    {"role": "user", "content": "<|b|> And the night?"},
)
ASKED = Request(messages=TALK)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint without its weights."""
    folder = tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"))
    (folder / "model.safetensors").unlink()
    (folder / "config.json").unlink()
    return folder


@pytest.fixture
def server() -> Iterator[FakeChatServer]:
    with fake_chat_server() as server:
        server.models = failure(404)
        yield server


def counted(folder: Path) -> int:
    plain = [{**message, "content": message["content"].replace("<|b|>", "")} for message in TALK]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = str(tokenizer.apply_chat_template(plain, add_generation_prompt=True, tokenize=False))
    return len(tokenizer.encode(text, add_special_tokens=False)) + len(
        "<|b|>"
    )  # its text in letters: this vocabulary has no longer token for them


def answered(client: RemoteClient, server: FakeChatServer, n_prompt: int) -> Completion:
    usage = event(choices=[], usage={"prompt_tokens": n_prompt, "completion_tokens": 1})
    server.replies = [Reply((delta(content="Yes"), delta("stop"), usage, DONE))]
    *_, last = client.generate(ASKED)
    assert isinstance(last, Done)
    return last.completion


@pytest.mark.parametrize("is_named", [True, False])
def test_a_folder_counts_as_transformers_does(server: FakeChatServer, folder: Path, is_named: bool) -> None:
    """Named by the user, or by a server on this machine."""
    place = Endpoint("lab", server.url, model="mine" if is_named else str(folder))
    client = RemoteClient(replace(place, tokenizer=str(folder)) if is_named else place)
    seen = client.preview(ASKED)
    assert seen is not None
    assert seen.n_tokens == counted(folder)
    whole = client.preview(ASKED, pieces=True)
    assert whole is not None
    assert "And the night?" in whole.text
    assert len(whole.ids) == len(whole.pieces) == seen.n_tokens


@pytest.mark.parametrize("more", [0, 1])
def test_a_count_that_differs_from_the_servers_is_left_out(server: FakeChatServer, folder: Path, more: int) -> None:
    client = RemoteClient(Endpoint("lab", server.url, model="mine", tokenizer=str(folder)))
    n = counted(folder)
    assert not any("tokenizer" in note for note in answered(client, server, n + 5).notes), "none was asked for yet"
    assert client.preview(ASKED) is not None
    notes = answered(client, server, n + more).notes
    assert any("where the server counts" in note for note in notes) == bool(more)
    assert (client.preview(ASKED) is None) == bool(more)


@pytest.mark.parametrize("model", ["tiny", "../tiny", "/nowhere/at/all", "\0", "builtin/../.."])
def test_without_one_nothing_is_counted(server: FakeChatServer, home: Path, model: str) -> None:
    client = RemoteClient(Endpoint("lab", server.url, model=model))
    assert client.preview(ASKED) is None
    assert RemoteClient(Endpoint("lab", server.url, model=model, tokenizer="/nowhere")).preview(ASKED) is None


def test_a_model_of_the_same_name_counts(server: FakeChatServer) -> None:
    seen = RemoteClient(Endpoint("lab", server.url, model="builtin")).preview(ASKED)
    assert seen is not None
    assert seen.n_tokens > 10
