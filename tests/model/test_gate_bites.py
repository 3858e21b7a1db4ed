"""The comparison with transformers fails when the model is wrong: each classic mistake, made on purpose."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from localrun_testing.oracle import difference, token_ids
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import VOCAB_SIZE

from localrun.backends.reference import ops as reference_ops
from localrun.backends.reference.attention import visible
from localrun.model.archs.gemma2 import Gemma2
from localrun.model.archs.llama import Llama
from localrun.model.archs.qwen3 import Qwen3
from localrun.model.config import ModelConfig

Reference = Callable[[str, str, Sequence[int]], torch.Tensor]
TinyFile = Callable[..., Path]


def caught(
    path: Path, reference: Reference, change: Callable[[ModelConfig], ModelConfig] = lambda config: config
) -> bool:
    """Whether the gate turns red for the model at `path` (stem = recipe) once `change` is applied to its config."""
    ids = token_ids(80, VOCAB_SIZE)
    name = path.name.split(".")[0]
    found = difference(Stepper(path, change=change).logits(ids), reference(name, "gguf", ids))
    return not found.within(1e-4, 1e-9)


def every_layer(**values: Any) -> Callable[[ModelConfig], ModelConfig]:
    return lambda config: replace(config, layers=tuple(replace(layer, **values) for layer in config.layers))


def every_rope(scale_theta: float) -> Callable[[ModelConfig], ModelConfig]:
    return lambda config: replace(config, ropes=tuple(replace(r, theta=r.theta * scale_theta) for r in config.ropes))


CONFIG_MISTAKES: dict[str, tuple[str, Callable[[ModelConfig], ModelConfig]]] = {
    "wrong rope base": ("llama", every_rope(1.01)),
    "rope where there is none": ("smollm3", every_layer(rope=0)),
    "one rope for both kinds of layer": ("gemma3", every_layer(rope=0)),
    "rope in layers that see everything": ("muse-glimmer", every_layer(rope=0)),
    "embeddings not normed": ("muse-glimmer", lambda c: replace(c, norms_embedding=False)),
    "norms after a block with the eps of all": ("muse-glimmer", every_layer(post_eps=None)),
    "rope scaling ignored": (
        "llama-llama3-rope",
        lambda c: replace(c, ropes=tuple(replace(rope, divisors=None) for rope in c.ropes)),
    ),
    "window one too long": ("phi3", every_layer(window=17)),
    "window one too short": ("phi3", every_layer(window=15)),
    "windows everywhere": ("gemma2", every_layer(window=16)),
    "no score cap": ("gemma2", every_layer(attn_softcap=None)),
    "no logit cap": ("gemma2", lambda c: replace(c, logit_softcap=None)),
    "score scale of the smaller models": ("gemma2-27b", every_layer(attn_scale=24**-0.5)),
    "one rope for heads of two sizes": ("gemma4", every_layer(rope=1)),
    "pairs that should stand still turn": (
        "gemma4",
        lambda c: replace(c, ropes=tuple(replace(rope, divisors=None) for rope in c.ropes)),
    ),
    "values without a norm": ("gemma4-e2b", every_layer(v_norm=False)),
    "scores scaled by the size of heads": ("gemma4", every_layer(attn_scale=24**-0.5)),
    "the first layer's keys and values": (
        "gemma4-e2b",
        lambda c: replace(c, layers=tuple(replace(s, shares_cache=0) if s.shares_cache == 4 else s for s in c.layers)),
    ),
    "embeddings not scaled": ("gemma3", lambda c: replace(c, embed_scale=1.0)),
    "residuals not scaled": ("granite", every_layer(residual_scale=1.0)),
    "logits not scaled": ("granite", lambda c: replace(c, logit_scale=1.0)),
    "queries not scaled by position": ("ministral-3", lambda c: replace(c, query_scale=None)),
    "wrong activation": ("llama", every_layer(activation="gelu")),
    "eps of another model": ("llama", lambda c: replace(c, rms_eps=1e-3)),
}


@pytest.mark.parametrize("mistake", CONFIG_MISTAKES)
def test_config_mistake(mistake: str, tiny_gguf: TinyFile, reference: Reference) -> None:
    name, change = CONFIG_MISTAKES[mistake]
    assert caught(tiny_gguf(name), reference, change)


def test_rows_of_q_and_k_left_interleaved(
    tiny_gguf: TinyFile, reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Llama, "permuted_in_gguf", False)
    assert caught(tiny_gguf("llama"), reference)


def test_rows_of_q_and_k_permuted_for_nothing(
    tiny_gguf: TinyFile, reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Qwen3, "permuted_in_gguf", True)
    assert caught(tiny_gguf("qwen3"), reference)


@pytest.mark.parametrize("shift", [-1, 1])
def test_causal_mask_off_by_one(
    shift: int, tiny_gguf: TinyFile, reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shifted(
        positions: torch.Tensor, slots: torch.Tensor, window: None, sink_window: None, reach: torch.Tensor
    ) -> torch.Tensor:
        return visible(positions + shift, slots, window, sink_window, reach + shift)

    monkeypatch.setattr(reference_ops, "visible", shifted)
    assert caught(tiny_gguf("llama"), reference)


def test_norm_weights_without_their_offset(
    tiny_folder: TinyFile, reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Gemma2, "hf_norm_offset", 0.0)
    ids = token_ids(80, VOCAB_SIZE)
    logits = Stepper(tiny_folder("gemma2")).logits(ids)
    assert not difference(logits, reference("gemma2", "safetensors", ids)).within(1e-4, 1e-9)


def test_queries_without_their_factor(tiny_folder: TinyFile, reference: Reference) -> None:
    """A GGUF has it as weights of a norm."""
    ids, change = token_ids(80, VOCAB_SIZE), every_layer(attn_scale=32**-0.5)
    logits = Stepper(tiny_folder("muse-glimmer"), change=change).logits(ids)
    assert not difference(logits, reference("muse-glimmer", "safetensors", ids)).within(1e-4, 1e-9)


def test_nothing_is_caught_without_a_mistake(tiny_gguf: TinyFile, reference: Reference) -> None:
    for name in sorted({name for name, _ in CONFIG_MISTAKES.values()}):
        assert not caught(tiny_gguf(name), reference)
