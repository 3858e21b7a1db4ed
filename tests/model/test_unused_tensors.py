"""Every tensor of a checkpoint is used, known as none of the language model, or refused by its name."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from localrun_testing.oracle import difference, reference_logits, token_ids
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import VOCAB_SIZE
from safetensors.torch import load_file, save_file

from localrun.base.errors import ModelFileError
from localrun.formats.safetensors import open_safetensors
from localrun.model.headers import read_config, read_weight_refs

TinyFile = Callable[..., Path]
ATTENTION = "model.layers.0.self_attn."
EXPERTS = "model.language_model.layers.0.mlp.experts.gate_up"


def rewritten(folder: Path, target: Path, add: dict[str, torch.Tensor], drop: str = "") -> Path:
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    tensors = load_file(folder / "model.safetensors")
    tensors.pop(drop, None)
    save_file({**tensors, **add}, target / "model.safetensors", {"format": "pt"})
    return target


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("llama", ATTENTION + "rotary_emb.inv_freq"),
        *(("llama", ATTENTION + name) for name in ("k_proj.input_scale_ub", "kv_scale", "prob_output_scale")),
        ("mistral", ATTENTION + "k_proj.activation_scale"),
        *(("qwen3-vl-moe", f"{EXPERTS}_proj_{kind}") for kind in ("activation_scale", "input_global_scale")),
        ("llama", "mtp.fc.weight"),
        ("qwen3.5", "model.mtp.layers.0.mlp.up_proj.weight"),
        ("qwen2", "visual.patch_embed.proj.weight"),
        ("gemma3", "vision_tower.vision_model.embeddings.weight"),
        ("gemma3", "multi_modal_projector.mm_soft_emb_norm.weight"),
    ],
)
def test_known_as_none_of_the_language_model(name: str, tensor: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    source = open_safetensors(rewritten(tiny_folder(name), tmp_path, {tensor: torch.ones(8)}))
    plain = open_safetensors(tiny_folder(name))
    assert read_weight_refs(source, read_config(source)) == read_weight_refs(plain, read_config(plain))


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("llama", "score.weight"),
        ("llama", "v_head.summary.weight"),
        ("llama", "lm_head.bias"),
        ("llama", "draft.lm_head.weight"),
        ("llama", "model.layers.3.mlp.up_proj.weight"),
        ("llama", ATTENTION + "q_proj.lora_A.weight"),
        ("llama", ATTENTION + "q_proj.bias"),
        ("llama", "model.layers.0.mlp.up_proj.bias"),
        ("llama", ATTENTION + "q_norm.weight"),
        ("mistral", ATTENTION + "v_proj.bias"),
        ("qwen2", ATTENTION + "o_proj.bias"),
        ("qwen3", ATTENTION + "k_proj.bias"),
        ("gemma2", ATTENTION + "k_proj.bias"),
        ("mixtral", ATTENTION + "k_proj.bias"),
        ("phi3", ATTENTION + "qkv_proj.bias"),
    ],
)
def test_of_no_use(name: str, tensor: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    """Biases among them: transformers leaves out those that neither the class nor the config speaks of."""
    source = open_safetensors(rewritten(tiny_folder(name), tmp_path, {tensor: torch.ones(8)}))
    with pytest.raises(ModelFileError, match=tensor) as caught:
        read_weight_refs(source, read_config(source))
    assert caught.value.code == "UNSUPPORTED"


@pytest.mark.parametrize(("name", "drop"), [("llama-biases", "k_proj"), ("qwen2", "v_proj"), ("gpt-oss", "o_proj")])
def test_a_bias_that_one_layer_lacks(name: str, drop: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    source = open_safetensors(rewritten(tiny_folder(name), tmp_path, {}, f"{ATTENTION}{drop}.bias"))
    with pytest.raises(ModelFileError, match=f"bias of .*{drop}") as caught:
        read_weight_refs(source, read_config(source))
    assert caught.value.code == "MISSING_TENSOR"


def test_a_bare_model_runs_with_an_output_tied_to_it(tiny_folder: TinyFile, tmp_path: Path) -> None:
    """As AutoModel saves it: no head, and names without `model.`."""
    folder = rewritten(tiny_folder("qwen2"), tmp_path, {})
    tensors = load_file(folder / "model.safetensors")
    bare = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    save_file(bare, folder / "model.safetensors", {"format": "pt"})
    ids = token_ids(20, VOCAB_SIZE)
    found = difference(Stepper(folder).logits(ids), reference_logits(tiny_folder("qwen2"), ids))
    assert found.within(1e-4, 1e-9), found
