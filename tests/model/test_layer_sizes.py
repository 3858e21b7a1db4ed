"""Layers of one model that differ in key-value heads and feed-forward size, as the lists of a GGUF say it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from localrun_testing.gguf_convert import prepare, write
from localrun_testing.malformed import keys
from localrun_testing.oracle import difference, reference_logits, token_ids
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import TINY_MODELS, VOCAB_SIZE, TinyModel, build, save_tokenizer

N_HEADS, HEAD_DIM, FFN, SMALL_FFN = 6, 32, 160, 96
TWICE_SHARED = 2  # key-value heads of layers 0 and 1


def uneven(folder: Path) -> tuple[Path, torch.Tensor, list[int]]:
    """A model whose layers are alike for transformers, the same with what repeats or counts for nothing left out."""
    model, ids = build("alike"), token_ids(40, VOCAB_SIZE)
    with torch.no_grad():
        for layer in model.model.layers[:2]:
            for weight in (layer.self_attn.k_proj.weight, layer.self_attn.v_proj.weight):
                heads = weight.unflatten(0, (N_HEADS, HEAD_DIM))
                heads.copy_(heads[[0, 0, 0, 3, 3, 3]])
        model.model.layers[1].mlp.down_proj.weight[:, SMALL_FFN:] = 0
    model.save_pretrained(folder)
    save_tokenizer(folder)
    writer = prepare(folder, folder / "uneven.gguf")
    tensors: dict[str, Any] = writer.tensors[0]
    for index in (0, 1):
        for name in (f"blk.{index}.attn_k.weight", f"blk.{index}.attn_v.weight"):
            rows = tensors.pop(name).tensor.reshape(N_HEADS, HEAD_DIM, -1)
            writer.add_tensor(name, rows[[0, 3]].reshape(TWICE_SHARED * HEAD_DIM, -1).copy())
    for name in ("gate", "up"):
        weight = tensors.pop(f"blk.1.ffn_{name}.weight").tensor
        writer.add_tensor(f"blk.1.ffn_{name}.weight", weight[:SMALL_FFN].copy())
    down = tensors.pop("blk.1.ffn_down.weight").tensor
    writer.add_tensor("blk.1.ffn_down.weight", down[:, :SMALL_FFN].copy())
    keys(attention__head_count_kv=[2, 2, 6], feed_forward_length=[FFN, SMALL_FFN, FFN])(writer)
    write(writer)
    return folder / "uneven.gguf", reference_logits(folder, ids), ids


@pytest.mark.parametrize("native_threads", [0, 2])
def test_layers_may_differ_in_heads_and_feed_forward_size(
    native_threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {**TINY_MODELS["llama"].config, "num_key_value_heads": N_HEADS}
    monkeypatch.setitem(TINY_MODELS, "alike", TinyModel("llama", config))
    path, expected, ids = uneven(tmp_path)
    stepper = Stepper(path, native_threads=native_threads)
    assert [spec.n_kv_heads for spec in stepper.config.layers] == [2, 2, 6]
    assert [spec.ffn_size for spec in stepper.config.layers] == [FFN, SMALL_FFN, FFN]
    assert len(stepper.runner.groups) == 2, "layers of one shape share blocks"
    for chunks in (None, [7, 1, 32]):
        found = difference(stepper.logits(ids, chunks), expected)
        assert found.within(2e-3, 1e-5) if native_threads else found.within(1e-4, 1e-9), found
