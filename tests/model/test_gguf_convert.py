"""The tests' own GGUF files are right: llama.cpp computes from them what transformers computes from the checkpoint."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from localrun_testing.llama_peer import llama_peer
from localrun_testing.oracle import difference, model_logits, token_ids
from localrun_testing.tiny_models import TINY_MODELS, VOCAB_SIZE, build

GELU_TABLE_NMSE = 1e-6  # ggml looks GELU up in a 16-bit table


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY_MODELS)
def test_llama_cpp_agrees_with_transformers(name: str, tiny_gguf: Callable[..., Path]) -> None:
    ids = token_ids(80, VOCAB_SIZE)
    reference = model_logits(build(name, **TINY_MODELS[name].llama_cpp_view), ids)
    with llama_peer(tiny_gguf(name)) as peer:
        found = difference(peer.logits(ids), reference)
    assert found.same_top1 == 1.0
    assert found.nmse <= (GELU_TABLE_NMSE if name.startswith("gemma") else 1e-10), found


@pytest.mark.slow
@pytest.mark.parametrize(("qtype", "nmse"), [("F16", 1e-5), ("Q8_0", 2e-3)])
def test_a_narrower_type_stays_close(qtype: str, nmse: float, tiny_gguf: Callable[..., Path]) -> None:
    ids = token_ids(40, VOCAB_SIZE)
    with llama_peer(tiny_gguf("llama", qtype)) as peer:
        assert difference(peer.logits(ids), model_logits(build("llama"), ids)).nmse <= nmse


@pytest.mark.slow
def test_the_peer_decodes_one_by_one_as_it_does_at_once(tiny_gguf: Callable[..., Path]) -> None:
    prompt = token_ids(10, VOCAB_SIZE)
    with llama_peer(tiny_gguf("mistral-full")) as peer:
        new = peer.greedy(prompt, 6)
        assert peer.logits(prompt + new).argmax(-1)[9:-1].tolist() == new


def test_windows_matter_in_the_reference() -> None:
    """Every window of a recipe is small enough to change the logits of these tests, or it would prove nothing."""
    ids = token_ids(80, VOCAB_SIZE)
    for name in ("mistral", "phi3", "gemma2", "gemma3", "gemma4"):
        windowed, full = model_logits(build(name), ids), model_logits(build(name, sliding_window=256), ids)
        assert torch.equal(windowed[0], full[0])
        assert difference(windowed, full).nmse > 1e-3, name
