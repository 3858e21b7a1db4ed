"""The same GGUF gives llama.cpp's perplexity and llama.cpp's text, whatever type its weights are in."""

from collections.abc import Callable
from pathlib import Path

import pytest
from localrun_testing.llama_peer import llama_peer, quantise
from localrun_testing.tiny_models import EOS_ID

from benchmarks.tiny_architectures import TINY, tiny_file
from localrun.base.events import Done
from localrun.base.request import BackendName, LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.diagnose.perplexity import perplexity
from localrun.engine.load import LoadedModel, load
from tools.builtin_data.compose import one_chat

pytestmark = pytest.mark.slow

CHUNKS = 4
BACKENDS: tuple[BackendName, ...] = ("reference", "cpu")
TOLERANCE = 0.005  # llama.cpp and our CPU backend round activations to 8 bits, each in its way; the reference does not


@pytest.fixture(scope="module")
def text() -> str:
    """What the built-in model was made to speak of; on foreign text it is so sure of itself that rounding decides."""
    talks = (one_chat(seed=7, index=index) for index in range(60))
    return "\n\n".join("\n".join(message.content for message in talk) for talk in talks)


def opened(path: Path, backend: BackendName) -> LoadedModel:
    return load(LoadOptions(path, backend=backend, threads=1, ctx=512))


@pytest.mark.parametrize("file_type", ["F16", "Q8_0", "Q4_K_M", "Q4_0", "Q6_K", "Q5_K_M", "IQ4_XS", "Q2_K"])
def test_perplexity(file_type: str, text: str, tmp_path: Path) -> None:
    path = quantise(resource("builtin/localrun-tiny.gguf"), tmp_path / f"{file_type}.gguf", file_type)
    with llama_peer(path, n_ctx=512) as peer:
        expected = peer.perplexity(text, CHUNKS)
    for backend in BACKENDS:
        model = opened(path, backend)
        found = perplexity(model, text, ctx=512, max_chunks=CHUNKS)
        model.engine.close()
        assert found.chunks == CHUNKS
        assert found.ppl == pytest.approx(expected, rel=TOLERANCE)


@pytest.mark.parametrize("name", [name for name in TINY if name != "gpt-oss"])  # no key says how its YaRN begins
def test_perplexity_of_every_kind_of_layer(name: str, text: str, tmp_path: Path) -> None:
    """Of random weights, in many chunks: where two experts are nearly equal, rounding chooses."""
    path = tiny_file(name, tmp_path / "model.gguf")
    with llama_peer(path, n_ctx=512) as peer:
        expected = peer.perplexity(text, 4 * CHUNKS)
    for backend in BACKENDS:
        model = opened(path, backend)
        found = perplexity(model, text, ctx=512, max_chunks=4 * CHUNKS)
        model.engine.close()
        assert found.ppl == pytest.approx(expected, rel=TOLERANCE)


@pytest.mark.parametrize(
    "name",
    [
        "llama",
        "qwen3",
        "gemma3",
        "gemma4-e2b",
        "smollm3",
        "muse-glimmer",
        "deepseek-v2-lite",
        "deepseek-v3",
        "glm-4.7-flash",
        "qwen3.5",
        "qwen3-next",
        "lfm2",
        "lfm2-moe",
        "granite-hybrid",
        "nemotron-h",
        "nemotron-h-moe",
    ],
)
def test_greedy_text(name: str, tiny_gguf: Callable[..., Path]) -> None:
    """The whole way: tokenizer, BOS, chunks, cache, sampler."""
    prompt, n_tokens = "the cat sat on the hat", 40
    with LocalClient(LoadOptions(tiny_gguf(name), backend="reference", threads=1, ctx=256, kv="f32")) as client:
        request = Request(prompt=prompt, sampling=Sampling(temperature=0.0, repeat_penalty=1.0), max_tokens=n_tokens)
        (done,) = (event for event in client.generate(request) if isinstance(event, Done))
    with llama_peer(tiny_gguf(name)) as peer:
        ids = peer.tokenize(prompt, add_bos=True)
        expected = peer.greedy(ids, n_tokens)
    assert done.completion.prompt_tokens == len(ids)
    found = list(done.completion.token_ids)
    assert found == expected[: len(found)]
    assert len(found) == n_tokens or expected[len(found)] == EOS_ID
