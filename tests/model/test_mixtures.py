"""Mixtures as files have them, against transformers: shared experts, biases, dense layers among others, fused tensors.

One architecture is a toy of these tests: what a row of the table needs beside the rules of its experts.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from localrun_testing.gguf_convert import convert, prepare, write
from localrun_testing.mxfp4_checkpoint import save_mxfp4
from localrun_testing.oracle import difference, model_logits, reference_logits, token_ids
from localrun_testing.small_model import reference_executor, small_model
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import TINY_MODELS, VOCAB_SIZE, TinyModel, build, save, save_tokenizer
from safetensors.torch import load_file, save_file

from localrun.backends.cpu.backend import CpuBackend
from localrun.backends.cpu.layout import CpuLayout
from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.registry import BACKENDS
from localrun.base.errors import ModelFileError
from localrun.formats.requantize import ENCODERS, PRECISIONS
from localrun.formats.safetensors import open_safetensors
from localrun.model import archs
from localrun.model.archs.base import Arch
from localrun.model.archs.experts import ExpertRules
from localrun.model.archs.gpt_oss import GptOss
from localrun.model.archs.names import HF_EXPERT_NAMES
from localrun.model.config import Mixture
from localrun.model.expert_weights import ExpertNamer
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.load import Loader, load_model
from localrun.model.precision import in_precision
from localrun.model.shapes import mixture_shapes
from localrun.model.weight_ref import check_tensor
from localrun.model.weight_sizes import allocated_bytes, held_bytes
from localrun.ops.instructions import Experts, Moe, Router
from localrun.ops.layouts import F32, FILE, Layout, RowReader
from localrun.ops.types import Routing

MAX_ABS, NMSE = 1e-4, 1e-9
WHOLE_BLOCKS = {"int8": (64, 96), "int4": (64, 96), "int2": (256, 768)}  # sizes whose rows are some, of every precision
COMMON = {**TINY_MODELS["llama"].config, "moe_intermediate_size": 48, "num_experts_per_tok": 3}
SHARED_NAMES = {
    f"shared_{part}": f"layers.{{}}.mlp.shared_experts.{part}_proj.weight" for part in ("gate", "up", "down")
}


class Glm4Moe(Arch):
    """Some experts of the best groups by sigmoid and bias, a shared one, and a dense first layer."""

    name = "glm4moe"
    gguf = ("glm4moe",)
    hf = ("Glm4MoeForCausalLM",)
    hf_names = {  # noqa: RUF012
        **HF_EXPERT_NAMES,
        **SHARED_NAMES,
        "choice_bias": "layers.{}.mlp.gate.e_score_correction_bias",
    }
    qk_norm = "head"
    experts = ExpertRules("sigmoid", choice_bias=True)


CONFIGS: dict[str, dict[str, Any]] = {
    "glm4_moe": {
        **COMMON, "n_routed_experts": 8, "n_group": 4, "topk_group": 2, "n_shared_experts": 2,
        "routed_scaling_factor": 2.5, "first_k_dense_replace": 1, "use_qk_norm": True, "attention_bias": True,
    },
    "qwen2_moe": {**COMMON, "num_experts": 6, "shared_expert_intermediate_size": 80, "mlp_only_layers": [1]},
    "granitemoeshared": {
        **TINY_MODELS["granite"].config, "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 48,
        "shared_intermediate_size": 80,
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, config in CONFIGS.items():
        monkeypatch.setitem(TINY_MODELS, kind, TinyModel(kind, config))
    monkeypatch.setattr(archs, "ARCHS", (*archs.ARCHS, Glm4Moe()))


@pytest.mark.parametrize("layout", [FILE, F32], ids=["file", "f32"])
@pytest.mark.parametrize("kind", CONFIGS)
def test_a_checkpoint_gives_the_logits_of_transformers(kind: str, layout: Layout, tmp_path: Path) -> None:
    folder, ids = save(kind, tmp_path), token_ids(40, VOCAB_SIZE)
    found = difference(Stepper(folder, layout=layout).logits(ids), reference_logits(folder, ids))
    assert found.within(MAX_ABS, NMSE), found


@pytest.mark.parametrize("kind", ["glm4_moe", "qwen2_moe"])
def test_a_gguf_gives_the_logits_of_transformers(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alike = {**CONFIGS[kind], "mlp_only_layers": []}  # no GGUF names them
    monkeypatch.setitem(TINY_MODELS, kind, TinyModel(kind, alike))
    folder, ids = save(kind, tmp_path), token_ids(40, VOCAB_SIZE)
    found = difference(Stepper(convert(folder, tmp_path / "model.gguf")).logits(ids), model_logits(build(kind), ids))
    assert found.within(MAX_ABS, NMSE), found


@pytest.mark.parametrize("qtype", ["F32", "Q8_0"])
@pytest.mark.parametrize("native_threads", [0, 2])
def test_gate_and_up_of_all_experts_may_be_one_tensor(qtype: str, native_threads: int, tmp_path: Path) -> None:
    """The fused file decodes to the numbers of the one that has them apart, and so computes the same bits."""
    folder = save("qwen3-moe", tmp_path)
    apart = convert(folder, tmp_path / "apart.gguf", qtype)
    writer = prepare(folder, tmp_path / "fused.gguf", qtype)
    tensors = writer.tensors[0]
    for index in range(TINY_MODELS["qwen3-moe"].config["num_hidden_layers"]):
        parts = [tensors.pop(f"blk.{index}.ffn_{part}_exps.weight") for part in ("gate", "up")]
        both = np.concatenate([part.tensor for part in parts], axis=1)
        writer.add_tensor(f"blk.{index}.ffn_gate_up_exps.weight", both, raw_dtype=parts[0].dtype)
    write(writer)
    ids = token_ids(40, VOCAB_SIZE)
    steppers = (Stepper(path, native_threads=native_threads) for path in (apart, tmp_path / "fused.gguf"))
    expected, found = (stepper.logits(ids) for stepper in steppers)
    assert torch.equal(found, expected)


def test_experts_may_be_transposed_and_gate_and_up_take_turns(tmp_path: Path) -> None:
    """gpt-oss: the layer that is loaded computes what transformers' does, with biases of router and experts."""
    source, model = open_safetensors(save("gpt-oss", tmp_path)), build("gpt-oss")
    mixture = Mixture(6, Routing(3), biases=True)
    spec = replace(small_model().config.layers[0], ffn_size=64, mixture=mixture)
    refs = dict(ExpertNamer(GptOss(), source, "model.", 1).refs(mixture, mixture_shapes(96, spec, mixture)))
    for ref in refs.values():
        check_tensor(source, ref)
    loader = Loader(source, refs, F32, None, lambda done, total: None)
    gate, up, down, router = (loader.linear(name) for name in ("gate", "up", "down", "router"))
    x = 20 * torch.randn(1, 13, 96, generator=torch.Generator().manual_seed(7))  # the clamp bites
    op = Moe(x[0], Router(router.packed, mixture.routing, router.bias), Experts(gate, up, down, "clamped_silu_mul"))
    with torch.no_grad():
        expected = model.model.layers[1].mlp(x)[0]
    (found,) = ReferenceOps(reference_executor(small_model(), 1).pool, torch.device("cpu")).moe(op)
    assert torch.allclose(found, expected[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_experts_in_one_tensor_are_quantised_as_each_would_be(
    precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, n = "granitemoeshared", 4
    ffn, hidden = WHOLE_BLOCKS[precision]
    sizes = {"hidden_size": hidden, "intermediate_size": ffn}
    monkeypatch.setitem(TINY_MODELS, kind, TinyModel(kind, {**CONFIGS[kind], **sizes}))
    source, qtype = open_safetensors(save(kind, tmp_path, dtype=torch.bfloat16)), PRECISIONS[precision]
    small = in_precision(source, precision)
    weights = load_model(small, FILE).weights
    names = {"gate": ("input", slice(ffn)), "up": ("input", slice(ffn, 2 * ffn)), "down": ("output", slice(hidden))}
    for weight, (tensor, rows) in names.items():
        name = f"model.layers.1.block_sparse_moe.{tensor}_linear.weight"
        shape = source.tensors[name].shape
        experts = torch.frombuffer(source.read(name), dtype=torch.bfloat16).float().view(shape)[:, rows]
        encoded = [ENCODERS[qtype](expert.contiguous()) for expert in experts]
        loaded = getattr(weights.layers[1], weight).packed
        assert loaded.qtype == qtype
        assert torch.equal(loaded.planes[0].flatten(), torch.cat([raw.flatten() for raw in encoded]))
        whole = small.read(name)
        n_bytes = len(whole) // (n * shape[1])
        assert small.read(name, 37, 41) == whole[37 * n_bytes : 78 * n_bytes], "any rows, of two experts too"
    refs = read_weight_refs(small, read_config(small))
    assert allocated_bytes(weights) == held_bytes(small, refs, FILE.nbytes)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_transposed_experts_are_quantised_as_each_would_be(
    precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of the file are columns of the matrix there, and rows of gate and up take turns."""
    ffn, hidden = WHOLE_BLOCKS[precision]
    sizes = {"hidden_size": hidden, "intermediate_size": ffn}
    monkeypatch.setitem(TINY_MODELS, "gpt-oss", TinyModel("gpt_oss", {**TINY_MODELS["gpt-oss"].config, **sizes}))
    source, qtype = open_safetensors(save("gpt-oss", tmp_path, dtype=torch.bfloat16)), PRECISIONS[precision]
    small = in_precision(source, precision)
    weights = load_model(small, FILE).weights
    picks = {
        "gate": ("gate_up", slice(0, None, 2)),
        "up": ("gate_up", slice(1, None, 2)),
        "down": ("down", slice(None)),
    }
    for weight, (tensor, rows) in picks.items():
        name = f"model.layers.1.mlp.experts.{tensor}_proj"
        shape = source.tensors[name].shape
        experts = torch.frombuffer(source.read(name), dtype=torch.bfloat16).float().view(shape).swapaxes(1, 2)[:, rows]
        encoded = [ENCODERS[qtype](expert.contiguous()).flatten() for expert in experts]
        loaded = getattr(weights.layers[1], weight).packed
        assert loaded.qtype == qtype
        assert torch.equal(loaded.planes[0].flatten(), torch.cat(encoded))
    assert allocated_bytes(weights) == held_bytes(small, read_weight_refs(small, read_config(small)), FILE.nbytes)


@pytest.mark.parametrize("precision", ["bf16", "int8", "int4"])
@pytest.mark.parametrize("sizes", [{}, {"hidden_size": 64, "moe_intermediate_size": 32}], ids=["oblong", "square"])
def test_experts_may_be_transposed_or_not(sizes: dict[str, int], precision: str, tmp_path: Path) -> None:
    """Qwen3-VL's mixtures as they are published, and as transformers 5 writes them."""
    model = build("qwen3-vl-moe", **sizes)
    model.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    ids, found = token_ids(40, VOCAB_SIZE), []
    for _ in range(2):
        source = in_precision(open_safetensors(tmp_path), precision)
        found.append(load_model(source, FILE).weights.layers[1])
        if precision == "bf16":
            save_tokenizer(tmp_path, VOCAB_SIZE)
            assert difference(Stepper(tmp_path).logits(ids), model_logits(model, ids)).within(MAX_ABS, NMSE)
        turned = {name: t.transpose(1, 2).contiguous() if ".experts." in name else t for name, t in tensors.items()}
        save_file(turned, tmp_path / "model.safetensors", {"format": "pt"})
    for weight in ("gate", "up", "down"):
        before, after = (getattr(layer, weight).packed for layer in found)
        assert before.qtype == after.qtype
        assert torch.equal(before.unpack(), after.unpack())


def test_transposed_experts_of_odd_sizes_stay_floats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 48 numbers are no blocks of 32: what can be quantised is, beside what cannot."""
    odd = {**TINY_MODELS["gpt-oss"].config, "intermediate_size": 48}
    monkeypatch.setitem(TINY_MODELS, "gpt-oss", TinyModel("gpt_oss", odd))
    folder, ids = save("gpt-oss", tmp_path), token_ids(40, VOCAB_SIZE)
    weights = load_model(in_precision(open_safetensors(folder), "int8"), FILE).weights.layers[1]
    assert [weight.packed.qtype for weight in (weights.gate, weights.up, weights.down) if weight] == [
        "Q8_0",
        "Q8_0",
        "F32",
    ]
    found = difference(Stepper(folder).logits(ids), reference_logits(folder, ids))
    assert found.within(MAX_ABS, NMSE), found


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_the_kernels_read_transposed_experts_one_by_one(precision: str, tmp_path: Path) -> None:
    """Slabs of whole experts, on several threads: packed they are what the reference decodes."""
    if why := BACKENDS["cpu"].why_unavailable():
        pytest.skip(why)
    small = in_precision(open_safetensors(save("gpt-oss", tmp_path)), precision)
    rows = RowReader(PRECISIONS[precision], 6 * 2880, 2880, lambda first, n: np.empty(0, np.uint8), granule=2880)
    assert rows.slab_rows(multiple=16) == 2880
    packed, plain = (load_model(small, layout).weights for layout in (CpuLayout(CpuBackend().calls, 2), F32))
    for found, expected in zip(packed.layers, plain.layers, strict=True):
        for weight in ("gate", "up", "down"):
            matrices = (getattr(layer, weight).packed.unpack() for layer in (found, expected))
            assert torch.equal(*matrices)


@pytest.mark.parametrize("native_threads", [0, 2])
def test_experts_may_be_codes_and_scales_in_two_tensors(native_threads: int, tmp_path: Path) -> None:
    """gpt-oss as it is published: MXFP4 stays as it is, in whole and in rows that take turns."""
    model, ids = save_mxfp4(tmp_path), token_ids(80, VOCAB_SIZE)
    stepper = Stepper(tmp_path, native_threads=native_threads)
    assert {layer.gate.packed.qtype for layer in stepper.model.weights.layers if layer.gate} == {"MXFP4"}
    found = difference(stepper.logits(ids), model_logits(model, ids))
    if native_threads:  # activations are rounded to 8 bits there, and rounding may choose between two experts
        assert found.nmse < 3e-2
    else:
        assert found.within(MAX_ABS, NMSE), found


def test_a_number_that_is_none_in_a_transposed_expert_is_found(tmp_path: Path) -> None:
    folder = save("gpt-oss", tmp_path)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.layers.1.mlp.experts.gate_up_proj"][2, 5, 7] = torch.nan
    save_file(tensors, folder / "model.safetensors")
    for precision in ("bf16", *PRECISIONS):
        with pytest.raises(ModelFileError, match=r"expert 2 of the tensor .*gate_up_proj.* is not finite"):
            load_model(in_precision(open_safetensors(folder), precision), FILE)


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_kernels_know_shared_experts_and_groups(kind: str, tmp_path: Path) -> None:
    if why := BACKENDS["cpu"].why_unavailable():
        pytest.skip(why)
    ids, folder = token_ids(80, VOCAB_SIZE), save(kind, tmp_path)
    found = difference(Stepper(folder, native_threads=2).logits(ids), reference_logits(folder, ids))
    assert found.within(MAX_ABS, NMSE), found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_group": 3}, "3 of 8 experts cannot be chosen from 2 of 3 groups"),
        ({"topk_group": 5}, "from 5 of 4 groups"),
        ({"num_experts_per_tok": 5}, "5 of 8 experts cannot be chosen from 2 of 4 groups"),
        ({"n_group": 8, "topk_group": 8}, "groups of 1 experts cannot be ranked by 2"),
        ({"norm_topk_prob": 1}, "norm_topk_prob should be true or false, not int"),
        ({"mlp_only_layers": 1}, "mlp_only_layers should be a list"),
        ({"n_shared_experts": 3}, r"shared_experts.gate_proj.weight' has shape \[96, 96\], expected \[144, 96\]"),
        ({"first_k_dense_replace": 0}, "is missing"),
    ],
)
def test_a_mixture_that_makes_no_sense_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = save("glm4_moe", tmp_path) / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    source = open_safetensors(tmp_path)
    with pytest.raises(ModelFileError, match=said):
        read_weight_refs(source, read_config(source))


@pytest.mark.parametrize("kind", ["phi3", "granitemoeshared", "gpt-oss"])
def test_progress_ends_at_all_that_is_read(kind: str, tmp_path: Path) -> None:
    """Weights that share a tensor read their own rows of it, and count no others."""
    told: list[tuple[int, int]] = []
    load_model(open_safetensors(save(kind, tmp_path)), FILE, progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1]
    assert len({total for _, total in told}) == 1
