"""What was computed with one adapter is never used for another, nor for another scale of it: in memory and on disk."""

from pathlib import Path

import pytest
from localrun_testing.adapters import random_pairs, write_gguf

from localrun.base.adapter_choice import AdapterChoice
from localrun.base.events import Completion, Done
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.engine.opened_model import OpenedModel
from localrun.formats.gguf import open_gguf

MODEL = resource("localrun/builtin/localrun-tiny.gguf")
QUESTION = "Tell me about the KV cache. " * 12


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path))
    return tmp_path


def adapter(path: Path, seed: int) -> Path:
    shapes = {name: info.shape for name, info in open_gguf(MODEL).tensors.items()}
    return write_gguf(path, random_pairs(shapes, seed=seed, spread=0.15), "llama")


def ask(*adapters: tuple[Path, float], disk_cache: int = 1 << 30) -> tuple[Completion, str]:
    """The answer of a process that loads the model with them, and the fingerprint of what it keeps."""
    choices = tuple(AdapterChoice(*one) for one in adapters)
    options = LoadOptions(MODEL, ctx=1024, kv="f16", disk_cache=disk_cache, adapters=choices)
    messages = ({"role": "user", "content": QUESTION},)
    request = Request(messages=messages, sampling=Sampling(temperature=0.0), max_tokens=8, chat_id="a")
    with LocalClient(options) as client:
        (done,) = [event for event in client.generate(request) if isinstance(event, Done)]
        return done.completion, client.info.fingerprint


def test_each_adapter_and_scale_has_a_cache_of_its_own(tmp_path: Path) -> None:
    one, other = (adapter(tmp_path / f"{seed}.gguf", seed) for seed in (1, 2))
    wanted = [(), ((one, 1.0),), ((one, 0.5),), ((one, 0.0),), ((other, 1.0),), ((one, 1.0), (other, 1.0))]
    first = [ask(*adapters) for adapters in wanted]
    assert [answer.cache.restored_tokens for answer, _ in first] == [0] * len(wanted)
    assert len({fingerprint for _, fingerprint in first}) == len(wanted)
    again = [ask(*adapters) for adapters in wanted]
    for (answer, fingerprint), (before, kept) in zip(again, first, strict=True):
        assert fingerprint == kept
        assert answer.token_ids == before.token_ids
        assert answer.prompt_tokens is not None
        assert answer.cache.restored_tokens == answer.prompt_tokens - 1
    assert first[3][0].token_ids == first[0][0].token_ids, "one that counts for nothing changes nothing"
    assert first[1][0].token_ids != first[0][0].token_ids
    assert first[1][0].token_ids == ask((one, 1.0), disk_cache=0)[0].token_ids


def test_weights_that_are_held_otherwise_have_a_cache_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    _, before = ask()
    monkeypatch.setattr(OpenedModel, "own_types", ("F8_E4M3",))
    answer, after = ask()
    assert (answer.cache.restored_tokens, after == before) == (0, False)


def test_another_file_in_the_place_of_an_adapter_is_another_adapter(tmp_path: Path) -> None:
    path = adapter(tmp_path / "a.gguf", 1)
    _, before = ask((path, 1.0))
    adapter(path, 2)
    answer, after = ask((path, 1.0))
    assert answer.cache.restored_tokens == 0
    assert after != before
    path.rename(tmp_path / "moved.gguf")
    assert ask((tmp_path / "moved.gguf", 1.0))[0].cache.restored_tokens > 0, "what it is called counts for nothing"
