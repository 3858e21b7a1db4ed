"""Whole models on the emulated GPU, beside the reference, and beside themselves in other steps."""

import random
from pathlib import Path

import pytest
import torch
from localrun_testing import tiny_models
from localrun_testing.emulated_cuda import CudaStepper, emulated_device
from localrun_testing.kv_cases import nmse, run, sizes
from localrun_testing.latent_cases import LatentCase
from localrun_testing.sequence_inputs import sequence_input
from localrun_testing.stepper import Stepper, chunks_across_a_block, random_chunks, random_chunks_of_blocks
from localrun_testing.sure_chat import NEAR_A_BLOCK_END, SURE_CHAT

from localrun.backends.cuda.availability import EMULATE
from localrun.backends.cuda.translator import CudaTranslator
from localrun.backends.gpu.executor import GpuExecutor
from localrun.backends.gpu.layouts import GpuLayout
from localrun.base.events import Completion, Done
from localrun.base.request import BackendName, KVCodecName, LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.ops.kv import BLOCK_TOKENS

BUILTIN = resource("localrun/builtin/localrun-tiny.gguf")
N_TOKENS = 90
GREEDY = Sampling(temperature=0.0)
RECURRENT = ("qwen3.5", "lfm2", "granite-hybrid")
MIXTURES = ("qwen3-moe", "qwen2-moe", "gpt-oss")
BY_KERNELS = ("qwen2-window", "phi3-longrope", "olmo3", "granite", "apertus", "muse-glimmer", *RECURRENT, *MIXTURES)
PARTLY_BY_TORCH = ("gemma2", "gemma3", "mixtral", "gemma4", "gemma4-moe")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny")


def token_ids(vocab: int = tiny_models.VOCAB_SIZE) -> list[int]:
    return random.Random(0).choices(range(vocab), k=N_TOKENS)


@pytest.mark.parametrize("name", [*BY_KERNELS, *PARTLY_BY_TORCH])
def test_logits_are_those_of_the_reference(name: str, folder: Path) -> None:
    """Of every kind of model, what kernels do not compute included; matrices of floats, and a cache of f32."""
    path, ids = tiny_models.save(name, folder / name), token_ids()
    found = CudaStepper(path, codec="f32").logits(ids)
    expected = Stepper(path, codec="f32").logits(ids)
    assert (found - expected).abs().max() <= 1e-4
    assert nmse(found, expected) < 1e-9


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        *((name, "f16") for name in BY_KERNELS),
        *(("olmo3", "q8"), ("phi3-longrope", "q4")),
        pytest.param("qwen3.5", "q8", marks=pytest.mark.slow),  # states beside rings
    ],
)
def test_steps_do_not_show_in_a_result(name: str, codec: str, folder: Path) -> None:
    """Whole, one by one across a block, and in random chunks up to its end and on: one arithmetic reads and decodes."""
    path, ids = tiny_models.save(name, folder / name), token_ids()
    one = CudaStepper(path, codec=codec)
    assert not one.executor.program.by_torch
    whole = one.logits(ids)
    for chunks in (chunks_across_a_block(N_TOKENS), random_chunks_of_blocks(N_TOKENS, seed=5)):
        assert torch.equal(CudaStepper(path, codec=codec).logits(ids, chunks), whole)


def test_latent_attention_is_torchs_beside_kernels() -> None:
    case = LatentCase(n_tokens=80)
    request = case.request(case.forward(GpuLayout()), *sizes(case))
    executor = GpuExecutor(CudaTranslator, emulated_device(), request)
    assert executor.program.by_torch == {"head_linear", "latent_append", "attention"}
    out = run(case, executor, [1, 62, 16, 1])
    assert nmse(out[case.telling_rows], case.expected(case.telling_rows)) < 1e-9


def test_a_chat_goes_on_beside_the_prompt_of_another(folder: Path) -> None:
    """One row among 50 of another text, whose keys nobody shares: to the same bits as by itself."""
    path, ids = tiny_models.save("olmo3", folder / "olmo3"), token_ids()
    alone, together = CudaStepper(path), CudaStepper(path)
    chat, prompt = ids[:71], ids[20:70]
    want = torch.cat((alone.logits(chat)[-1:], CudaStepper(path).logits(prompt)))
    together.logits(chat[:-1])
    n_groups = len(together.runner.groups)
    tables = [[(block,) * n_groups for block in blocks] for blocks in (together.blocks[:2], together.blocks[2:3])]
    views = [sequence_input(t, n, n_groups) for t, n in zip(tables, (len(chat), len(prompt)), strict=True)]
    found = together.runner.compute([(chat[-1:], len(chat) - 1), (prompt, 0)], views, range(51))
    assert {bucket.n_alone for bucket in together.executor.program.launches} == {0, 1}
    assert torch.equal(torch.as_tensor(found.rows), want)


def test_quantised_weights_and_steps_of_the_model_that_is_inside() -> None:
    ids = token_ids(256)
    whole = CudaStepper(BUILTIN).logits(ids)
    assert nmse(whole, Stepper(BUILTIN, codec="f16").logits(ids)) < 1e-3
    assert torch.equal(CudaStepper(BUILTIN).logits(ids, random_chunks(N_TOKENS, seed=2)), whole)


def test_an_answer_across_blocks_is_that_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EMULATE, "1")
    request = Request(messages=NEAR_A_BLOCK_END, max_tokens=18, sampling=GREEDY)
    found = []
    backends: tuple[BackendName, ...] = ("cuda", "cpu")
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


@pytest.mark.parametrize("codec", ["q4", "q8", "f16"])
def test_chats_answer_as_on_the_processor(codec: KVCodecName, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was computed before is used again."""
    monkeypatch.setenv(EMULATE, "1")
    found, expected = answers("cuda", codec), answers("cpu", codec)
    assert [one.token_ids for one in found] == [one.token_ids for one in expected]
    assert (found[1].cached_tokens or 0) >= 64
