"""Numbers beside the matrices of a GGUF that their products are multiplied by, as files of NVFP4 have them."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from localrun_testing.gguf_convert import prepare, write
from localrun_testing.oracle import difference, token_ids
from localrun_testing.stepper import Stepper, random_chunks
from localrun_testing.tiny_models import VOCAB_SIZE

from localrun.base.errors import ModelFileError
from localrun.formats.gguf import open_gguf
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.weight_sizes import allocated_bytes, held_bytes
from localrun.ops.layouts import FILE

TinyFile = Callable[..., Path]

# Biases, experts with and without them, a shared one, fused matrices, mixers of three kinds, per-layer embeddings.
KINDS = (
    "llama-biases", "phi3", "qwen3-moe", "gpt-oss", "granite-hybrid-moe", "nemotron-h-moe", "qwen3.5-moe", "lfm2",
    "gemma4-e2b", "gemma4-moe",
)  # fmt: skip
NO_MATRICES = ("norm", "norm_1", "norm_2", "ffn_gate_inp", "ffn_gate_inp_shexp", "conv1d", "conv", "layer_output_scale",
    "rope_freqs", "rope_factors_long", "rope_factors_short")  # fmt: skip


def has_scale(name: str, shape: tuple[int, ...], kind: str) -> bool:
    if kind == "gemma4-moe" and "ffn_down_exps" in name:  # there the name is that of another number
        return False
    return name.endswith(".weight") and len(shape) > 1 and not name.split(".")[-2].endswith(NO_MATRICES)


def twins(folder: Path, target: Path, kind: str) -> tuple[Path, Path]:
    """A GGUF with scales, and one whose matrices are multiplied by them."""
    paths = target / "scaled.gguf", target / "folded.gguf"
    for path in paths:
        generator, writer = np.random.default_rng(0), prepare(folder, path)
        for name, info in list(writer.tensors[0].items()):
            matrix = np.asarray(info.tensor)
            if not has_scale(name, matrix.shape, kind):
                continue
            scale = generator.uniform(0.5, 2.0, len(matrix) if matrix.ndim == 3 else 1).astype(np.float32)
            if path == paths[0]:
                writer.add_tensor(name.removesuffix("weight") + "scale", scale)
                writer.add_tensor(name.removesuffix("weight") + "input_scale", np.full_like(scale, 3.0))
            else:
                info.tensor = matrix * (scale[:, None, None] if matrix.ndim == 3 else scale)
        write(writer)
    return paths


@pytest.mark.parametrize(("native_threads", "kind"), [*product([0, 2], KINDS)])
def test_products_are_multiplied_by_their_scales(
    kind: str, native_threads: int, tiny_folder: TinyFile, tmp_path: Path
) -> None:
    scaled, folded = (Stepper(path, native_threads=native_threads) for path in twins(tiny_folder(kind), tmp_path, kind))
    ids = token_ids(70, VOCAB_SIZE)
    found = scaled.logits(ids)
    assert difference(found, folded.logits(ids)).within(max_abs=2e-4, nmse=1e-9)
    if native_threads:
        assert torch.equal(scaled.logits(ids, random_chunks(70, seed=0)), found)


def test_scales_are_counted_in_memory(tiny_folder: TinyFile, tmp_path: Path) -> None:
    path, _ = twins(tiny_folder("qwen3-moe"), tmp_path, "qwen3-moe")
    source = open_gguf(path)
    refs = read_weight_refs(source, read_config(source))
    assert held_bytes(source, refs, FILE.nbytes) == allocated_bytes(Stepper(path).model.weights)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        pytest.param("blk.0.attn_q.scale", (2,), id="of two numbers"),
        pytest.param("blk.0.ffn_gate_exps.scale", (1,), id="one for six experts"),
        pytest.param("blk.0.ffn_gate_inp.scale", (96,), id="of a router"),
        pytest.param("blk.0.attn_norm.scale", (1,), id="of a norm"),
        pytest.param("blk.0.ffn_gate.scale", (1,), id="of a matrix that is not there"),
        pytest.param("blk.0.ffn_gate.input_scale", (1,), id="of what such a matrix reads"),
    ],
)
def test_scales_that_mean_nothing_are_refused(
    name: str, shape: tuple[int, ...], tiny_folder: TinyFile, tmp_path: Path
) -> None:
    writer = prepare(tiny_folder("qwen3-moe"), tmp_path / "model.gguf")
    writer.add_tensor(name, np.ones(shape, np.float32))
    write(writer)
    source = open_gguf(tmp_path / "model.gguf")
    with pytest.raises(ModelFileError, match=name) as caught:
        read_weight_refs(source, read_config(source))
    assert caught.value.code in ("BAD_TENSOR", "UNSUPPORTED")
