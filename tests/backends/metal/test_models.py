"""Whole models on the emulated Apple GPU, beside the reference, and beside themselves in other steps."""

import random
from pathlib import Path

import pytest
import torch
from localrun_testing import tiny_models
from localrun_testing.emulated_metal import MetalStepper
from localrun_testing.kv_cases import nmse
from localrun_testing.stepper import Stepper, chunks_across_a_block, random_chunks, random_chunks_of_blocks
from localrun_testing.sure_chat import NEAR_A_BLOCK_END, SURE_CHAT

from localrun.backends.metal.availability import EMULATE
from localrun.base.events import Completion, Done
from localrun.base.request import BackendName, KVCodecName, LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.ops.kv import BLOCK_TOKENS

BUILTIN = resource("localrun/builtin/localrun-tiny.gguf")
N_TOKENS = 90
GREEDY = Sampling(temperature=0.0)
BY_KERNELS = (
    *("olmo3", "qwen2-window", "phi3-longrope", "granite", "apertus", "muse-glimmer", "qwen3.5", "lfm2"),
    *("granite-hybrid", "qwen3-moe", "qwen2-moe", "gpt-oss"),
)
PARTLY_BY_TORCH = ("gemma2", "gemma3", "gemma4")
MOST_DISPATCHES = 8  # of a layer, in a step that decodes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny")


def token_ids(vocab: int = tiny_models.VOCAB_SIZE) -> list[int]:
    return random.Random(0).choices(range(vocab), k=N_TOKENS)


@pytest.mark.parametrize("name", [*BY_KERNELS, *PARTLY_BY_TORCH])
def test_logits_are_those_of_the_reference(name: str, folder: Path) -> None:
    """Of every kind of model, what kernels do not compute included; matrices of floats, and a cache of f32."""
    path, ids = tiny_models.save(name, folder / name), token_ids()
    found = MetalStepper(path, codec="f32").logits(ids)
    expected = Stepper(path, codec="f32").logits(ids)
    assert (found - expected).abs().max() <= 1e-4
    assert nmse(found, expected) < 1e-9


@pytest.mark.parametrize("name", BY_KERNELS)
def test_steps_do_not_show_in_a_result(name: str, folder: Path) -> None:
    """Whole, one by one across a block, and in random chunks up to its end and on: one arithmetic reads and decodes."""
    path, ids = tiny_models.save(name, folder / name), token_ids()
    one = MetalStepper(path)
    assert not one.executor.program.by_torch
    whole = one.logits(ids)
    for chunks in (chunks_across_a_block(N_TOKENS), random_chunks_of_blocks(N_TOKENS, seed=5)):
        assert torch.equal(MetalStepper(path).logits(ids, chunks), whole)


def test_a_decoding_step_has_few_dispatches() -> None:
    """Of the model that is inside, whose layers have matrices of more than one layout."""
    one = MetalStepper(BUILTIN)
    one.step([7], 0)
    ((bucket, launches),) = one.executor.program.launches.items()
    assert bucket.rows == 1
    n_layers = len(one.config.layers)
    assert (len(launches) - 2) / n_layers <= MOST_DISPATCHES  # beside the embedding and the last norm


@pytest.mark.slow
def test_quantised_weights_and_steps_of_the_model_that_is_inside() -> None:
    ids = token_ids(256)
    whole = MetalStepper(BUILTIN).logits(ids)
    assert nmse(whole, Stepper(BUILTIN, codec="f16").logits(ids)) < 1e-7  # activations stay f32
    assert torch.equal(MetalStepper(BUILTIN).logits(ids, random_chunks(N_TOKENS, seed=2)), whole)


def test_an_answer_across_blocks_is_that_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EMULATE, "1")
    request = Request(messages=NEAR_A_BLOCK_END, max_tokens=18, sampling=GREEDY)
    found = []
    backends: tuple[BackendName, ...] = ("mps", "cpu")
    for backend in backends:
        with LocalClient(LoadOptions(BUILTIN, backend=backend, kv="f16", ctx=512)) as client:
            found += [event.completion for event in client.generate(request) if isinstance(event, Done)]
    assert (found[0].prompt_tokens or 0) + 8 < BLOCK_TOKENS < (found[0].prompt_tokens or 0) + 16
    assert len(found[0].token_ids or ()) == 18
    assert found[0].token_ids == found[1].token_ids


def answers(backend: BackendName, codec: KVCodecName) -> list[Completion]:
    """Two turns of a chat, of which the second goes on with the first."""
    with LocalClient(LoadOptions(BUILTIN, backend=backend, kv=codec, ctx=512)) as client:
        assert not [note for note in client.info.notes if note.startswith("slow")]
        requests = [Request(messages=SURE_CHAT[:n], max_tokens=4, sampling=GREEDY) for n in (3, 5)]
        return [event.completion for one in requests for event in client.generate(one) if isinstance(event, Done)]


@pytest.mark.parametrize("codec", ["q8", "f16", "q4"])
def test_chats_answer_as_on_the_processor(codec: KVCodecName, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was computed before is used again."""
    monkeypatch.setenv(EMULATE, "1")
    found, expected = answers("mps", codec), answers("cpu", codec)
    assert [one.token_ids for one in found] == [one.token_ids for one in expected]
    assert (found[1].cached_tokens or 0) >= 64
