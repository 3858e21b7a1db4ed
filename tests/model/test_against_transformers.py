"""The logits are right: every architecture, from both file formats, over any cutting into steps."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _pytest.mark import ParameterSet
from localrun_testing.gguf_convert import prepare, write
from localrun_testing.oracle import difference, model_logits, reference_logits, token_ids
from localrun_testing.stepper import Stepper, random_chunks
from localrun_testing.tiny_models import TINY_MODELS, VOCAB_SIZE, build, round_weights, save
from safetensors import safe_open

from localrun.backends.reference.rows import RowReferenceOps
from localrun.ops.layouts import F32, FILE

MAX_ABS, NMSE = 1e-4, 1e-9  # transformers differs from itself in fp64 by 6e-6 and 1e-12

Reference = Callable[[str, str, Sequence[int]], torch.Tensor]
TinyFile = Callable[..., Path]
TinyStepper = Callable[[str, str], Stepper]

FORMATS = ("safetensors", "gguf")
CHUNKINGS: dict[str, Callable[[int], list[int]]] = {
    "at-once": lambda n: [n],
    "one-by-one": lambda n: [1] * 3 + [n - 20] + [1] * 7 + [10],  # from the beginning, and across the end of a block
    "random": lambda n: random_chunks(n, seed=n),
}


def cases_of(index: int, name: str) -> Iterator[ParameterSet]:
    """From both formats at once; chunks change nothing about a file, and models and formats take turns at them.

    All of a model side by side: a worker that has made its files computes the others, too.
    """
    for file_format in FORMATS:
        yield pytest.param(name, file_format, "at-once")
    for late, chunking in enumerate(("one-by-one", "random")):
        yield pytest.param(name, FORMATS[(index // 2 + late) % 2], chunking)


CASES = [case for index, name in enumerate(TINY_MODELS) for case in cases_of(index, name)]


@pytest.mark.parametrize(("name", "file_format", "chunking"), CASES)
def test_logits(name: str, file_format: str, chunking: str, tiny_stepper: TinyStepper, reference: Reference) -> None:
    n_tokens = 30 if name == "gemma2-27b" else 80  # 46 layers take their time
    ids = token_ids(n_tokens, VOCAB_SIZE)
    logits = tiny_stepper(name, file_format).logits(ids, CHUNKINGS[chunking](n_tokens))
    found = difference(logits, reference(name, file_format, ids))
    assert found.within(MAX_ABS, NMSE), found


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma3", "gpt-oss"])
def test_logits_over_several_blocks(name: str, tiny_folder: TinyFile, reference: Reference) -> None:
    ids = token_ids(200, VOCAB_SIZE)
    logits = Stepper(tiny_folder(name), ctx=256).logits(ids, random_chunks(200, seed=1))
    found = difference(logits, reference(name, "safetensors", ids))
    assert found.within(MAX_ABS, NMSE), found


@pytest.mark.parametrize("file_format", FORMATS)
def test_longrope_keeps_its_short_factors_in_a_short_context(
    file_format: str, tiny_folder: TinyFile, tiny_gguf: TinyFile, reference: Reference
) -> None:
    path = (tiny_gguf if file_format == "gguf" else tiny_folder)("phi3-longrope")
    ids = token_ids(60, VOCAB_SIZE)
    expected = reference("phi3-longrope", file_format, ids)
    assert difference(Stepper(path, ctx=64).logits(ids), expected).within(MAX_ABS, NMSE)
    assert not difference(Stepper(path, ctx=65).logits(ids), expected).within(MAX_ABS, NMSE)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sharded_checkpoints_of_narrow_floats(dtype: torch.dtype, tmp_path: Path) -> None:
    folder = save("qwen2", tmp_path, dtype=dtype, max_shard_size="60KB")
    assert len(list(folder.glob("*.safetensors"))) > 3
    ids = token_ids(40, VOCAB_SIZE)
    assert difference(Stepper(folder).logits(ids), reference_logits(folder, ids)).within(MAX_ABS, NMSE)


@pytest.mark.parametrize(
    ("qtype", "name"),
    [
        *product(
            ["F16", "BF16", "Q8_0", "Q4_0", "Q5_1"],
            ["llama-biases", "phi3", "gemma2", "qwen3-next", "lfm2-moe", "granite-hybrid", "nemotron-h-moe"],
        )
    ],
)
def test_quantised_weights_compute_what_they_decode_to(name: str, qtype: str, tiny_gguf: TinyFile) -> None:
    """Rows of packed types are permuted, split and looked up without loss."""
    ids = token_ids(40, VOCAB_SIZE)
    model = round_weights(build(name, **TINY_MODELS[name].gguf_view), qtype)
    found = difference(Stepper(tiny_gguf(name, qtype)).logits(ids), model_logits(model, ids))
    assert found.within(MAX_ABS, NMSE), found


@pytest.mark.parametrize("name", ["llama-biases", "qwen2"])
def test_gguf_with_q_k_and_v_in_one_tensor(
    name: str, tiny_folder: TinyFile, tmp_path: Path, reference: Reference
) -> None:
    writer = prepare(tiny_folder(name), tmp_path / "fused.gguf")
    tensors = writer.tensors[0]
    for index in range(3):
        for kind in ("weight", "bias"):
            parts: list[Any] = [tensors.pop(f"blk.{index}.attn_{part}.{kind}").tensor for part in "qkv"]
            writer.add_tensor(f"blk.{index}.attn_qkv.{kind}", np.concatenate(parts))
    write(writer)
    ids = token_ids(40, VOCAB_SIZE)
    found = difference(Stepper(tmp_path / "fused.gguf").logits(ids), reference(name, "gguf", ids))
    assert found.within(MAX_ABS, NMSE), found


def test_the_first_files_of_qwen3_next_have_queries_keys_values_and_gates_in_one_tensor(
    tiny_folder: TinyFile, tmp_path: Path, reference: Reference
) -> None:
    writer = prepare(tiny_folder("qwen3-next"), tmp_path / "fused.gguf")
    tensors = writer.tensors[0]
    with safe_open(tiny_folder("qwen3-next") / "model.safetensors", framework="np") as file:
        for index in range(3):
            del tensors[f"blk.{index}.attn_qkv.weight"], tensors[f"blk.{index}.attn_gate.weight"]
            fused = file.get_tensor(f"model.layers.{index}.linear_attn.in_proj_qkvz.weight")
            writer.add_tensor(f"blk.{index}.ssm_in.weight", fused)
    write(writer)
    ids = token_ids(40, VOCAB_SIZE)
    found = difference(Stepper(tmp_path / "fused.gguf").logits(ids), reference("qwen3-next", "gguf", ids))
    assert found.within(MAX_ABS, NMSE), found


@pytest.mark.parametrize("name", ["qwen3.5", "nemotron-h-moe"])
def test_layers_that_only_draft_are_read_over(
    name: str, tiny_folder: TinyFile, tmp_path: Path, reference: Reference
) -> None:
    writer = prepare(tiny_folder(name), tmp_path / "drafting.gguf")
    values = writer.kv_data[0]
    n_layers = values[f"{writer.arch}.block_count"].value
    for key, value in values.items():
        if key.startswith(f"{writer.arch}.") and isinstance(value.value, list) and len(value.value) == n_layers:
            value.value.append(max(value.value))
    values[f"{writer.arch}.block_count"].value += 1
    writer.add_uint32(f"{writer.arch}.nextn_predict_layers", 1)
    writer.add_tensor(f"blk.{n_layers}.nextn.eh_proj.weight", np.zeros((96, 192), np.float32))
    write(writer)
    ids = token_ids(40, VOCAB_SIZE)
    found = difference(Stepper(tmp_path / "drafting.gguf").logits(ids), reference(name, "gguf", ids))
    assert found.within(MAX_ABS, NMSE), found


def test_layouts_agree(tiny_gguf: TinyFile) -> None:
    ids = token_ids(20, VOCAB_SIZE)
    packed, decoded = (Stepper(tiny_gguf("granite", "Q8_0"), layout=layout) for layout in (FILE, F32))
    assert torch.equal(packed.logits(ids), decoded.logits(ids))


def test_a_half_precision_cache_stays_close(tiny_gguf: TinyFile, reference: Reference) -> None:
    ids = token_ids(80, VOCAB_SIZE)
    found = difference(Stepper(tiny_gguf("llama"), codec="f16").logits(ids), reference("llama", "gguf", ids))
    assert 1e-9 < found.nmse < 1e-6
    assert found.same_top1 == 1.0


@pytest.mark.parametrize("name", ["llama", "gemma3", "gpt-oss"])
def test_row_mode_is_exact_over_any_cutting(name: str, tiny_gguf: TinyFile, reference: Reference) -> None:
    ids = token_ids(40, VOCAB_SIZE)
    stepper = Stepper(tiny_gguf(name), ops=RowReferenceOps)
    at_once = stepper.logits(ids)
    assert difference(at_once, reference(name, "gguf", ids)).within(MAX_ABS, NMSE)
    assert torch.equal(at_once, stepper.logits(ids, random_chunks(40, seed=3)))
