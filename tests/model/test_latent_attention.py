"""Latent attention as files have it: halves of a matrix in one or apart, rope in either order, layers that draft."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from localrun_testing.adapters import Pair, merged_folder, pairs_of_folder, write_gguf, write_peft
from localrun_testing.gguf_convert import convert, prepare, write
from localrun_testing.llama_peer import llama_peer
from localrun_testing.malformed import key, keys, refused, tensor
from localrun_testing.mlx_checkpoint import save_named, save_packed
from localrun_testing.oracle import difference, model_logits, token_ids
from localrun_testing.stepper import Stepper, random_chunks
from localrun_testing.tiny_models import TINY_MODELS, VOCAB_SIZE, TinyModel, build, save
from safetensors.torch import load_file, save_file

from localrun.base.errors import ModelFileError
from localrun.formats.gguf import open_gguf
from localrun.formats.metadata import Metadata
from localrun.formats.safetensors import open_safetensors
from localrun.formats.source import TensorInfo
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.load import load_model
from localrun.model.precision import in_precision
from localrun.model.weight_sizes import allocated_bytes, held_bytes
from localrun.ops.layouts import FILE

TinyFile = Callable[..., Path]
LATENT = ("deepseek-v2-lite", "deepseek-v3", "glm-4.7-flash")
HEADS, RANK, NOPE, ROPE, VALUE = 6, 32, 24, 16, 48
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 64}
IDS = token_ids(80, VOCAB_SIZE)
MAX_ABS, NMSE = 1e-4, 1e-9


@dataclass(frozen=True)
class Changed:
    """A file with other key-values and an embedding of another vocabulary; it is not read."""

    source: Any
    metadata: Metadata
    vocabulary: int

    @property
    def tensors(self) -> dict[str, TensorInfo]:
        embed = self.source.tensors["token_embd.weight"]
        return {**self.source.tensors, "token_embd.weight": replace(embed, shape=(self.vocabulary, 96))}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)


@pytest.fixture
def variant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """`variant(name, key=value, …)` → the checkpoint of a recipe with other settings, as `build("variant")`."""

    def make(name: str, dtype: torch.dtype = torch.float32, **changes: Any) -> Path:
        recipe = TINY_MODELS[name]
        monkeypatch.setitem(TINY_MODELS, "variant", TinyModel(recipe.model_type, {**recipe.config, **changes}))
        return save("variant", tmp_path / "variant", dtype=dtype)

    return make


def in_one(writer: gguf.GGUFWriter, qtype: str = "F32") -> None:
    """What makes keys and values in one tensor, and the keys of heads in the place of those that are cached."""
    tensors: dict[str, Any] = writer.tensors[0]
    for name in [name for name in tensors if name.endswith("attn_k_b.weight")]:
        block = name.removesuffix(".attn_k_b.weight")
        both = both_of(tensors.pop(name).tensor, tensors.pop(f"{block}.attn_v_b.weight").tensor)
        kind = gguf.GGMLQuantizationType[qtype]
        writer.add_tensor(f"{block}.attn_kv_b.weight", gguf.quants.quantize(both, kind), raw_dtype=kind)
    values = {name.removeprefix("deepseek2.attention."): value for name, value in writer.kv_data[0].items()}
    values["key_length"].value, values["value_length"].value = NOPE + ROPE, VALUE
    values["head_count_kv"].value = HEADS
    for name in ("key_length_mla", "value_length_mla"):
        del writer.kv_data[0][f"deepseek2.attention.{name}"]


def both_of(keys_of: np.ndarray, values_of: np.ndarray) -> np.ndarray:
    """[heads, rank, dims] and [heads, dims, rank] -> [heads · dims of both, rank]"""
    return np.concatenate((keys_of.swapaxes(1, 2), values_of), axis=1).reshape(-1, keys_of.shape[1]).copy()


@pytest.mark.parametrize("name", LATENT)
def test_early_ggufs_have_keys_and_values_in_one(name: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    for path, change in ((tmp_path / "apart.gguf", lambda writer: None), (tmp_path / "one.gguf", in_one)):
        writer = prepare(tiny_folder(name), path)
        change(writer)
        write(writer)
    apart, one = (Stepper(tmp_path / f"{file}.gguf") for file in ("apart", "one"))
    assert one.config == apart.config
    assert torch.equal(one.logits(IDS), apart.logits(IDS))


@pytest.mark.slow
def test_llama_cpp_reads_early_ggufs_alike(tiny_folder: TinyFile, tmp_path: Path) -> None:
    writer = prepare(tiny_folder("deepseek-v3"), tmp_path / "one.gguf")
    in_one(writer)
    write(writer)
    with llama_peer(tmp_path / "one.gguf") as peer:
        found = difference(Stepper(tmp_path / "one.gguf").logits(IDS), peer.logits(IDS))
    assert found.nmse < 1e-10, found


def test_quantised_in_one_they_are_the_numbers_of_the_file(tiny_folder: TinyFile, tmp_path: Path) -> None:
    """Rows of values stay in the type of the file; transposed keys have no blocks of it."""
    writer = prepare(tiny_folder("deepseek-v3"), tmp_path / "one.gguf")
    in_one(writer, "Q8_0")
    write(writer)
    source = open_gguf(tmp_path / "one.gguf")
    layer: Any = load_model(source, FILE).weights.layers[1].mixing
    (both,) = (t for t in gguf.GGUFReader(tmp_path / "one.gguf").tensors if t.name == "blk.1.attn_kv_b.weight")
    heads = gguf.quants.dequantize(both.data, both.tensor_type).reshape(HEADS, NOPE + VALUE, RANK)
    assert (layer.k_b.packed.qtype, layer.v_b.packed.qtype) == ("F32", "Q8_0")
    assert np.array_equal(layer.k_b.packed.unpack(), heads[:, :NOPE].swapaxes(1, 2).reshape(-1, NOPE))
    assert np.array_equal(layer.v_b.packed.unpack(), heads[:, NOPE:].reshape(-1, RANK))
    for first, n in ((0, 1), (31, 3), (30, 70), (HEADS * RANK - 1, 1)):  # rows of several heads, and of parts of one
        raw = np.frombuffer(source.read("blk.1.attn_k_b.weight", first, n), np.float32).reshape(n, NOPE)
        assert np.array_equal(raw, layer.k_b.packed.unpack(first, n))
    assert source.nbytes == sum(int(t.n_bytes) for t in gguf.GGUFReader(tmp_path / "one.gguf").tensors)


def test_what_is_there_in_one_and_apart_is_read_apart(tiny_folder: TinyFile, tmp_path: Path) -> None:
    """As ik_llama.cpp writes it: matrices one after the other."""
    writer = prepare(tiny_folder("glm-4.7-flash"), tmp_path / "both.gguf")
    tensors: dict[str, Any] = writer.tensors[0]
    for name in [name for name in tensors if name.endswith(("attn_k_b.weight", "attn_v_b.weight"))]:
        data = tensors.pop(name).tensor
        writer.add_tensor(name, data.reshape(-1, data.shape[2]).copy())
    for index in range(3):
        writer.add_tensor(f"blk.{index}.attn_kv_b.weight", np.full((HEADS * (NOPE + VALUE), RANK), 7, np.float32))
    write(writer)
    expected = Stepper(tiny_folder("glm-4.7-flash")).logits(IDS)
    assert torch.equal(Stepper(tmp_path / "both.gguf").logits(IDS), expected)


@pytest.mark.parametrize("file_format", ["safetensors", "gguf"])
def test_v2_ranks_groups_by_their_best_expert(file_format: str, variant: Callable[..., Path], tmp_path: Path) -> None:
    grouped = {"topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2, "num_experts_per_tok": 2}
    path = variant("deepseek-v2-lite", q_lora_rank=40, **grouped)
    stepper = Stepper(convert(path, tmp_path / "model.gguf") if file_format == "gguf" else path)
    assert {spec.mixture.routing.group_rank for spec in stepper.config.layers if spec.mixture} == {1}
    found = difference(stepper.logits(IDS), model_logits(build("variant"), IDS))
    assert found.within(MAX_ABS, NMSE), found


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("deepseek-v3", {"rope_interleave": False}),
        ("glm-4.7-flash", {"rope_interleave": False}),
        ("glm-4.7-flash", {"mlp_layer_types": ["sparse", "dense", "sparse"]}),
        ("glm-4.7-flash", {"q_lora_rank": None}),
        ("deepseek-v3", {"norm_topk_prob": False, "tie_word_embeddings": True}),
        ("deepseek-v3", {"rope_parameters": {"rope_type": "default", "rope_theta": 5000.0}}),
        ("deepseek-v3", {"rope_parameters": {**YARN, "mscale": 0.5, "mscale_all_dim": 1.5}}),
        ("deepseek-v3", {"rope_parameters": YARN}),
    ],
)
def test_other_settings_of_a_checkpoint(name: str, changes: dict[str, Any], variant: Callable[..., Path]) -> None:
    found = difference(Stepper(variant(name, **changes)).logits(IDS), model_logits(build("variant"), IDS))
    assert found.within(MAX_ABS, NMSE), found


def test_layers_of_a_checkpoint_that_only_draft_are_left_alone(tiny_folder: TinyFile, tmp_path: Path) -> None:
    """As DeepSeek-V3 has them, with an embedding of their own that comes first in the file."""
    folder = tmp_path / "drafting"
    save("deepseek-v3", folder)
    tensors = load_file(folder / "model.safetensors")
    layer = {name: values for name, values in tensors.items() if name.startswith("model.layers.2.")}
    drafting = {name.replace(".2.", ".3.", 1): torch.full_like(values, torch.nan) for name, values in layer.items()}
    drafting |= {f"model.layers.3.{name}.weight": torch.full((96, 192), torch.nan) for name in ("eh_proj", "enorm")}
    drafting["model.layers.3.embed_tokens.weight"] = torch.full((VOCAB_SIZE, 96), torch.nan)
    save_file(drafting | tensors, folder / "model.safetensors", {"format": "pt"})
    assert torch.equal(Stepper(folder).logits(IDS), Stepper(tiny_folder("deepseek-v3")).logits(IDS))
    del drafting["model.layers.3.eh_proj.weight"]
    save_file(drafting | tensors, folder / "model.safetensors", {"format": "pt"})
    refused(folder, "UNSUPPORTED", check)


def test_mlx_has_matrices_of_heads(tiny_folder: TinyFile, tmp_path: Path) -> None:
    named = save_named(tiny_folder("glm-4.7-flash"), tmp_path / "named")
    tensors = load_file(named / "model.safetensors")
    for name in [name for name in tensors if name.endswith("kv_b_proj.weight")]:
        heads = tensors.pop(name).unflatten(0, (HEADS, -1))
        tensors[name.replace("kv_b_proj", "embed_q")] = heads[:, :NOPE].transpose(1, 2).contiguous()
        tensors[name.replace("kv_b_proj", "unembed_out")] = heads[:, NOPE:].contiguous()
    save_file(tensors, named / "model.safetensors")
    expected = Stepper(tiny_folder("glm-4.7-flash")).logits(IDS)
    assert torch.equal(Stepper(named).logits(IDS), expected)
    packed, plain = save_packed(named, tmp_path, "affine", 4)
    assert difference(Stepper(packed).logits(IDS), Stepper(plain).logits(IDS)).within(MAX_ABS, NMSE)


@pytest.mark.parametrize(("precision", "qtype"), [("int8", "Q8_0"), ("int4", "Q4_0")])
def test_transposed_keys_are_quantised_as_other_matrices(
    precision: str, qtype: str, variant: Callable[..., Path]
) -> None:
    folder = variant("deepseek-v3", torch.bfloat16, qk_nope_head_dim=64)
    source = in_precision(open_safetensors(folder), precision)
    weights, plain = (load_model(one, FILE).weights for one in (source, open_safetensors(folder)))
    for name in ("k_b", "v_b"):
        held, exact = (getattr(one.layers[0].mixing, name).packed for one in (weights, plain))
        assert (held.qtype, exact.qtype) == (qtype, "BF16")
        assert difference(held.unpack(), exact.unpack()).nmse < 1e-2
    refs = read_weight_refs(source, read_config(source))
    assert allocated_bytes(weights) == held_bytes(source, refs, FILE.nbytes)


@pytest.mark.parametrize("name", LATENT)
def test_any_cutting_into_steps_gives_the_same_logits(name: str, tiny_stepper: Any) -> None:
    stepper = tiny_stepper(name, "safetensors")
    ids = token_ids(150, VOCAB_SIZE)
    whole = stepper.logits(ids)
    for chunks in ([1] * 150, random_chunks(150, seed=5)):
        assert difference(stepper.logits(ids, chunks), whole).within(MAX_ABS, NMSE)


def test_latents_are_cached_once(tiny_folder: TinyFile) -> None:
    stepper = Stepper(tiny_folder("glm-4.7-flash"), codec="f16")
    assert [group.kind.title for group in stepper.runner.groups] == ["latents"]
    assert stepper.runner.block_sizes == [64 * 2 * (RANK + ROPE) * stepper.config.n_layers]


def test_norms_of_latents_have_the_eps_of_their_format(tiny_gguf: TinyFile, variant: Callable[..., Path]) -> None:
    """Transformers' classes have one of their own; llama.cpp has that of all norms."""
    checkpoint = read_config(open_safetensors(variant("glm-4.7-flash", rms_norm_eps=1e-5)))
    assert checkpoint.rms_eps == 1e-5
    assert [one.eps for one in checkpoint.latents] == [1e-6]
    source = open_gguf(tiny_gguf("glm-4.7-flash"))
    values = Metadata({**source.metadata, "deepseek2.attention.layer_norm_rms_epsilon": 1e-5}, source.path)
    assert [one.eps for one in read_config(Changed(source, values, VOCAB_SIZE)).latents] == [1e-5]


def test_adapters_of_all_but_what_is_made_of_latents(tiny_folder: TinyFile, tmp_path: Path) -> None:
    folder = tiny_folder("deepseek-v3")
    pairs = pairs_of_folder(folder)
    of_both = {name: pair for name, pair in pairs.items() if "kv_b_proj" in name}
    others = {name: pair for name, pair in pairs.items() if name not in of_both}
    assert of_both
    assert any("q_b_proj" in name for name in others)
    merged = Stepper(merged_folder(folder, tmp_path / "merged", others)).logits(IDS)
    adapted = Stepper(folder, adapters=[(write_peft(tmp_path / "adapter", others), 1.0)]).logits(IDS)
    assert difference(adapted, merged).within(MAX_ABS, 1e-6)
    with pytest.raises(ModelFileError, match="it changes how keys and values are made of latents"):
        Stepper(folder, adapters=[(write_peft(tmp_path / "both", of_both), 1.0)])


def test_adapters_of_single_heads_are_refused(tiny_gguf: TinyFile, tmp_path: Path) -> None:
    name, n_in, n_out = "blk.0.attn_v_b.weight", RANK, HEADS * VALUE
    pairs = {name: Pair(torch.ones(2, n_in), torch.ones(n_out, 2))}
    adapter = write_gguf(tmp_path / "adapter.gguf", pairs, arch="deepseek2")
    with pytest.raises(ModelFileError, match="it changes how keys and values are made of latents"):
        Stepper(tiny_gguf("deepseek-v3"), adapters=[(adapter, 1.0)])


@pytest.mark.parametrize(
    ("n_layers", "vocabulary", "score"), [(47, 154_880, "sigmoid"), (47, 129_280, "softmax"), (3, 154_880, "softmax")]
)
def test_ggufs_that_do_not_say_how_experts_are_scored(
    n_layers: int, vocabulary: int, score: str, tiny_gguf: TinyFile
) -> None:
    """The first ones of GLM-4.7-Flash are told by their sizes, as llama.cpp does."""
    source = open_gguf(tiny_gguf("glm-4.7-flash"))
    values = {**source.metadata, "deepseek2.block_count": n_layers, "deepseek2.vocab_size": vocabulary}
    del values["deepseek2.expert_gating_func"]
    config = read_config(Changed(source, Metadata(values, source.path), vocabulary))
    mixtures = [spec.mixture for spec in config.layers if spec.mixture]
    assert {mixture.routing.score for mixture in mixtures} == {score}
    assert {mixture.choice_bias for mixture in mixtures} == {score == "sigmoid"}


def check(path: Path) -> None:
    """Everything that is looked at before a weight is read."""
    source = open_safetensors(path) if path.is_dir() else open_gguf(path)
    read_weight_refs(source, read_config(source))


HPARAM, TENSOR = "BAD_HPARAM", "BAD_TENSOR"
BROKEN: dict[str, tuple[Any, str]] = {
    **{f"rank {n}": (key(".attention.kv_lora_rank", n), HPARAM) for n in (0, -1, 1 << 31, 2.5, "512")},
    **{f"queries of rank {n}": (key(".attention.q_lora_rank", n), HPARAM) for n in (-1, 1 << 31, "768")},
    **{f"keys of {n}": (key(".attention.key_length_mla", n), HPARAM) for n in (0, ROPE, 1 << 31)},
    "no rank": (key(".attention.kv_lora_rank", ...), HPARAM),
    "keys without values": (key(".attention.value_length_mla", ...), HPARAM),
    "no rope": (key(".rope.dimension_count", ...), HPARAM),
    "rope of odd dims": (key(".rope.dimension_count", 15), HPARAM),
    "more that turns than there is": (key(".rope.dimension_count", 64), HPARAM),
    "heads that latents are not for": (key(".attention.head_count_kv", 2), HPARAM),
    "another rank than the tensors'": (keys(attention__kv_lora_rank=48, attention__key_length=64), "UNSUPPORTED"),
    "keys of another size": (key(".attention.key_length_mla", NOPE + ROPE + 8), TENSOR),
    "values of another size": (key(".attention.value_length_mla", VALUE + 8), TENSOR),
    "what is cached is of another size": (key(".attention.key_length", 72), "UNSUPPORTED"),
    "queries of another rank": (key(".attention.q_lora_rank", 48), TENSOR),
    "queries of no rank": (key(".attention.q_lora_rank", 0), "MISSING_TENSOR"),
    "no keys of heads": (tensor("blk.1.attn_k_b.weight", ...), "MISSING_TENSOR"),
    "keys that are not transposed": (
        tensor("blk.1.attn_k_b.weight", np.zeros((HEADS, NOPE, RANK), np.float32)),
        TENSOR,
    ),
    "experts scored otherwise": (key(".expert_gating_func", 3), "UNSUPPORTED"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_ggufs_that_make_no_sense(case: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    change, code = BROKEN[case]
    writer = prepare(tiny_folder("deepseek-v3"), tmp_path / "model.gguf")
    change(writer)
    write(writer)
    refused(tmp_path / "model.gguf", code, check)


@pytest.mark.parametrize(
    "shape", [(HEADS * (NOPE + VALUE) + 1, RANK), (HEADS * NOPE, RANK), (HEADS, NOPE + VALUE, RANK), (432,)]
)
def test_matrices_in_one_of_no_heads(shape: tuple[int, ...], tiny_folder: TinyFile, tmp_path: Path) -> None:
    writer = prepare(tiny_folder("deepseek-v3"), tmp_path / "model.gguf")
    in_one(writer)
    tensor("blk.1.attn_kv_b.weight", np.zeros(shape, np.float32))(writer)
    write(writer)
    refused(tmp_path / "model.gguf", TENSOR, check)
