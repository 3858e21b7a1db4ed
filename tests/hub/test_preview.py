"""What is told before a download, against files made by the gguf package and served by the fake hub."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from localrun_testing import tiny_models
from localrun_testing.fake_hub import FakeHub, FakeRepo
from localrun_testing.instruction_sets import using
from localrun_testing.mlx_checkpoint import save_named, save_packed
from localrun_testing.packed_checkpoint import awq, gptq, save_integers
from localrun_testing.stub_gguf import stub_gguf

from localrun.base.errors import HubError, ModelFileError, NotFoundError
from localrun.base.request import LoadOptions
from localrun.engine.load import load
from localrun.fit.shape import shape_of
from localrun.fit.weights import held_share
from localrun.hub.disk.stored import stored_at
from localrun.hub.fits import fit_preview, fit_stored, recommended_variant
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote import preview as preview_module
from localrun.hub.remote.api import read_repo
from localrun.hub.remote.headers import read_remote
from localrun.hub.remote.preview import find_on_hub, must_find_on_hub, preview
from localrun.hub.remote.variants import choose_variant, other_models, variants_of
from localrun.model.layer_weights import AttentionWeights
from localrun.model.weight_sizes import allocated_bytes

Serve = Callable[..., FakeHub]
AccessTo = Callable[..., Access]
GIB = 1 << 30
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "torch_dtype": "bfloat16",
    "head_dim": 16,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 500,
    "max_position_embeddings": 16384,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
    "rope_theta": 1e6,
}


def gguf_bytes(path: Path, n_tokens: int = 60_000, vocabulary_first: bool = False, arch: str = "qwen3") -> bytes:
    """A model of 3 layers with a vocabulary of more than a MiB."""
    writer = gguf.GGUFWriter(path, arch)
    tokens = [f"token-{number:012d}" for number in range(n_tokens)]
    if vocabulary_first:
        writer.add_token_list(tokens)
    writer.add_context_length(16384)
    writer.add_embedding_length(64)
    writer.add_block_count(3)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_key_length(16)
    writer.add_value_length(16)
    writer.add_layer_norm_rms_eps(1e-6)
    if not vocabulary_first:
        writer.add_token_list(tokens)
    writer.add_tensor("token_embd.weight", np.zeros((n_tokens, 64), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return gguf_bytes(tmp_path_factory.mktemp("gguf") / "m.gguf")


def look(access: Access, name: str, precision: str = "auto") -> object:
    return preview(Http(access), must_find_on_hub(name, precision))


def test_a_header_costs_one_small_request_and_no_vocabulary(serve: Serve, access_to: AccessTo, model: bytes) -> None:
    hub = serve({"a/b-GGUF": {"b-Q8_0.gguf": model}})
    http = Http(access_to(hub))
    repo = read_repo(http, "a/b-GGUF")
    remote = read_remote(http, repo, variants_of(repo)[0])
    assert remote.fetched == hub.sent("b-Q8_0.gguf") == 64 << 10
    shape = shape_of(remote)
    assert (shape.config.n_layers, shape.config.vocab_size, shape.config.max_context) == (3, 60_000, 16384)
    assert shape.n_params == 60_000 * 64 + 3 * (2 * 64 * 16 * 6 + 3 * 64 * 128)


def test_hyperparameters_behind_the_vocabulary_are_found_too(serve: Serve, access_to: AccessTo, tmp_path: Path) -> None:
    content = gguf_bytes(tmp_path / "m.gguf", vocabulary_first=True)
    http = Http(access_to(serve({"a/b": {"b-F16.gguf": content}})))
    repo = read_repo(http, "a/b")
    remote = read_remote(http, repo, variants_of(repo)[0])
    assert shape_of(remote).config.n_layers == 3
    assert 1 << 20 < remote.fetched < len(content)


def test_a_safetensors_model_is_read_from_its_config(serve: Serve, access_to: AccessTo) -> None:
    files = {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": bytes(50_000), "tokenizer.json": b"{}"}
    hub = serve({"a/b": {**files, "README.md": b"x", "other.bin": b"x"}})
    found = preview(Http(access_to(hub)), must_find_on_hub("a/b"))
    (variant,) = found.variants
    assert (variant.precision, variant.format) == ("bf16", "safetensors")
    assert [file.path for file in variant.files] == ["model.safetensors", "config.json", "tokenizer.json"]
    assert variant.weights_bytes == 50_000
    assert found.shape is not None
    assert found.shape.config.n_layers == 3
    assert hub.sent("model.safetensors") == 0
    rows = fit_preview(found, 8 * GIB, ctx=4096).rows
    assert {(row.precision, row.approximate) for row in rows} == {
        ("bf16", False),
        ("int8", True),
        ("int4", True),
        ("int2", True),
    }
    chosen, why = recommended_variant(found, 8 * GIB)
    assert (chosen.precision, "--precision int8" in why) == ("bf16", True)
    for precision in ("bf16", "int4"):
        asked = preview(Http(access_to(hub)), must_find_on_hub("a/b", precision))
        assert recommended_variant(asked, 8 * GIB)[0].precision == "bf16"


SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "mtp.safetensors"]


@pytest.mark.parametrize(
    ("there", "taken"),
    [
        (["model.safetensors", "consolidated.safetensors", "params.json"], ["model.safetensors"]),
        (["model.safetensors", "model.fp16.safetensors"], ["model.safetensors"]),
        (["model.safetensors", "adapter_model.safetensors", "original/consolidated.00.pth"], ["model.safetensors"]),
        (["model.safetensors", "pytorch_model.bin", "flax_model.msgpack", "onnx/model.onnx"], ["model.safetensors"]),
        (
            ["model.safetensors", "model.safetensors.index.json", "model-00001-of-00001.safetensors"],
            ["model.safetensors"],
        ),
        (
            [
                *SHARDS,
                "model.safetensors.index.json",
                "consolidated.safetensors",
                "model.fp16-00001-of-00002.safetensors",
            ],
            SHARDS,
        ),
        (["consolidated.safetensors"], ["consolidated.safetensors"]),
        (["model.fp16.safetensors"], ["model.fp16.safetensors"]),
        (["weights.safetensors", "consolidated.safetensors"], ["weights.safetensors"]),
    ],
)
def test_weights_are_downloaded_once(
    serve: Serve, access_to: AccessTo, tmp_path: Path, there: list[str], taken: list[str]
) -> None:
    """Those that loading opens, and the same are counted on disk."""
    index = json.dumps({"weight_map": {name: name for name in taken}}).encode()
    files = {name: index if "index" in name else bytes(5000 + 100 * i) for i, name in enumerate(there)}
    files["config.json"] = json.dumps(CONFIG).encode()
    (variant,) = variants_of(read_repo(Http(access_to(serve({"a/b": files}))), "a/b"))
    assert [file.path for file in variant.weights] == taken
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (stored,) = stored_at(tmp_path)
    assert stored.bytes == sum(len(files[name]) for name in taken)


def test_predicted_sizes_of_quantised_floats_match_a_load(
    serve: Serve, access_to: AccessTo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a model with a large vocabulary, from its config alone and from its weights."""
    sizes = {"hidden_size": 256, "intermediate_size": 512, "vocab_size": 2048, "num_attention_heads": 8, "head_dim": 32}
    recipe = tiny_models.TINY_MODELS["qwen3"]
    monkeypatch.setitem(tiny_models.TINY_MODELS, "qwen3", replace(recipe, config={**recipe.config, **sizes}))
    folder = tiny_models.save("qwen3", tmp_path / "model", dtype=torch.bfloat16)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    found = preview(Http(access_to(serve({"a/b": files}))), must_find_on_hub("a/b"))
    exact = {row.precision: row.weights_bytes for row in fit_stored(stored_at(folder), 8 * GIB, ctx=128).rows}
    for one in found.candidates:
        assert one.weights_bytes == pytest.approx(exact[one.precision], rel=0.02), one.precision


def test_a_model_on_disk_that_would_not_load_fits_nowhere(tmp_path: Path) -> None:
    lost = "blk.1.ffn_up.weight"
    stub_gguf(tmp_path, "whole-F16.gguf")
    stub_gguf(tmp_path, "torn-F16.gguf", without=[lost])
    assert fit_stored(stored_at(tmp_path / "whole-F16.gguf"), 8 * GIB).recommended
    with pytest.raises(ModelFileError, match=f"tensor '{lost}' is missing"):
        fit_stored(stored_at(tmp_path / "torn-F16.gguf"), 8 * GIB)


def test_precisions_split_models_and_what_is_none(serve: Serve, access_to: AccessTo) -> None:
    names = ("b-Q8_0.gguf", "b-Q4_K_M.gguf", "mmproj-b-F16.gguf", "b.imatrix.gguf", "notes.txt")
    split = [f"BF16/b-BF16-{part:05d}-of-00003.gguf" for part in (2, 3, 1)]
    lost = ["b-Q2_K-00001-of-00002.gguf"]
    sizes = {name: bytes(5000 + len(name)) for name in (*names, *split, *lost)}
    http = Http(access_to(serve({"a/b": sizes})))
    repo = read_repo(http, "a/b")
    assert [variant.precision for variant in variants_of(repo)] == ["Q8_0", "Q4_K_M", "BF16"]
    assert [file.path for file in choose_variant("a/b", variants_of(repo), "bf16").files] == sorted(split)
    assert choose_variant("a/b", variants_of(repo), "b-Q8_0.gguf").precision == "Q8_0"
    assert choose_variant("a/b", variants_of(repo), split[0]).precision == "BF16"
    with pytest.raises(NotFoundError, match="a/b has no Q4_K_S") as caught:
        choose_variant("a/b", variants_of(repo), "Q4_K_S")
    assert "did you mean Q4_K_M? There is Q8_0, Q4_K_M, BF16" in caught.value.hint


@pytest.mark.parametrize(
    ("files", "labels"),
    [
        (["m-IQ4_XS-imat.gguf", "m-Q4_K_M-imat.gguf"], ["IQ4_XS", "Q4_K_M"]),
        (["m-Q4_K_M.gguf", "m-Q4_K_M-imat.gguf"], ["Q4_K_M", "Q4_K_M-imat"]),
        (["m-BF16-Q8_0.gguf", "m-BF16-Q4_K_M.gguf", "m-BF16.gguf"], ["Q8_0", "Q4_K_M", "BF16"]),
        (["m-F16.gguf", "m-Q4_K_M.gguf", "m-Q4_K_M-f16.gguf"], ["F16", "Q4_K_M", "Q4_K_M-f16"]),
        (["m-Q4_K_M.GGUF", "M-Q8_0.Gguf"], ["Q4_K_M", "Q8_0"]),
        (["m-Q8_0.gguf", "M-Q8_0.gguf"], ["Q8_0", "Q8_0"]),
        (["Q4_K_M.gguf", "Q8_0.gguf"], ["Q4_K_M", "Q8_0"]),
        (["Q4_K_M/m.gguf", "UD-Q2_K_XL/m.gguf"], ["Q4_K_M", "UD-Q2_K_XL"]),
        (["Q4_K_M/m.gguf", "m.gguf"], ["Q4_K_M", "m"]),
        (["m-Q4_K_M-imat-00001-of-00002.gguf", "m-Q4_K_M-imat-00002-of-00002.gguf"], ["Q4_K_M"]),
        (["m-Q4_K_M.gguf", "._m-Q4_K_M.gguf", "__MACOSX/m-Q8_0.gguf"], ["Q4_K_M"]),
    ],
)
def test_a_precision_is_found_wherever_it_stands_in_a_name(
    serve: Serve, access_to: AccessTo, files: list[str], labels: list[str]
) -> None:
    contents = {name: bytes(5000 + number) for number, name in enumerate(files)}
    variants = variants_of(read_repo(Http(access_to(serve({"a/m": contents}))), "a/m"))
    assert [variant.precision for variant in variants] == labels
    for variant in variants:
        for file in variant.files:
            assert choose_variant("a/m", variants, file.path) == variant
    if len(set(labels)) == len(labels):
        for label in labels:
            assert choose_variant("a/m", variants, label.lower().removeprefix("ud-")).precision == label


@pytest.mark.parametrize(
    ("repo", "files", "main", "others"),
    [
        ("a/m-GGUF", {"m-F16.gguf": 9000, "draft-BF16.gguf": 5000}, ["m-F16.gguf"], ["draft-BF16.gguf"]),
        ("a/m-GGUF", {"m-F16.gguf": 9000, "m-mtp-Q8_0.gguf": 5000}, ["m-F16.gguf"], ["m-mtp-Q8_0.gguf"]),
        (
            "a/big",
            {"x-Q8_0.gguf": 9000, "x-Q4_0.gguf": 8000, "y-Q8_0.gguf": 5000},
            ["x-Q4_0.gguf", "x-Q8_0.gguf"],
            ["y-Q8_0.gguf"],
        ),
        ("a/big", {"x-Q8_0.gguf": 9000, "y-Q8_0.gguf": 5000}, ["x-Q8_0.gguf"], ["y-Q8_0.gguf"]),
        (
            "a/qwen3-8b",
            {"Qwen3-8B-Q4_K_M.gguf": 9000, "Qwen3-0.6B-Q8_0.gguf": 5000, "Qwen3-0.6B-F16.gguf": 5001},
            ["Qwen3-8B-Q4_K_M.gguf"],
            ["Qwen3-0.6B-Q8_0.gguf"],
        ),
        ("a/m-draft-GGUF", {"m-draft-F16.gguf": 5000}, ["m-draft-F16.gguf"], []),
        (
            "a/m",
            {"Q8_0/m-Q8_0.gguf": 9000, "BF16/m-BF16.gguf": 9001, "mmproj-m-F16.gguf": 5000},
            ["Q8_0/m-Q8_0.gguf", "BF16/m-BF16.gguf"],
            [],
        ),
    ],
)
def test_several_models_in_one_repository(
    serve: Serve, access_to: AccessTo, repo: str, files: dict[str, int], main: list[str], others: list[str]
) -> None:
    listed = read_repo(Http(access_to(serve({repo: {name: bytes(size) for name, size in files.items()}}))), repo)
    variants = variants_of(listed)
    assert [variant.files[0].path for variant in variants] == main
    assert other_models(listed, variants) == others
    for name in others:
        assert choose_variant(repo, variants_of(listed, name), name).files[0].path == name


def test_the_shape_is_that_of_the_main_model(serve: Serve, access_to: AccessTo, tmp_path: Path) -> None:
    """Not that of the small one that drafts for it."""
    files = {
        "m-F16.gguf": stub_gguf(tmp_path, "m-F16.gguf", layers=30),
        "draft-BF16.gguf": stub_gguf(tmp_path, "d-F16.gguf", rows=32),
    }
    http = Http(access_to(serve({"a/m-GGUF": files})))
    found = preview(http, must_find_on_hub("a/m-GGUF"))
    assert found.shape is not None
    assert found.shape.config.n_layers == 30
    assert recommended_variant(found, 8 * GIB)[0].files[0].path == "m-F16.gguf"
    draft = preview(http, must_find_on_hub("a/m-GGUF:draft-BF16.gguf"))
    assert draft.shape is not None
    assert draft.shape.config.n_layers == 2


@pytest.mark.parametrize("trouble", ["lost", "broken"])
def test_one_bad_file_is_not_in_the_way_of_the_others(
    serve: Serve, access_to: AccessTo, tmp_path: Path, trouble: str
) -> None:
    whole = stub_gguf(tmp_path, "m-F16.gguf")
    hub = serve({"a/m": {"m-F16.gguf": whole, "m-Q2_K.gguf": bytes(5000)}})
    access = access_to(hub)
    repo = read_repo(Http(access), "a/m")
    if trouble == "lost":
        del hub.repos["a/m"].files["m-Q2_K.gguf"]
    shape, note, _ = preview_module._read_shape(Http(access), repo, variants_of(repo), "")
    assert (shape is not None, note) == (True, "")
    shape, note, _ = preview_module._read_shape(Http(access), repo, variants_of(repo)[:1], "")
    assert shape is None
    assert note


def test_a_repository_without_a_model(serve: Serve, access_to: AccessTo) -> None:
    access = access_to(serve({"a/b": {"README.md": b"hello"}}))
    with pytest.raises(NotFoundError, match="holds no model"):
        look(access, "a/b")


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF\x09\0\0\0" + bytes(5000), b"<html>" + bytes(5000)])
def test_a_file_that_is_none_has_no_shape(serve: Serve, access_to: AccessTo, content: bytes) -> None:
    access = access_to(serve({"a/b": {"b-Q8_0.gguf": content}}))
    found = preview(Http(access), must_find_on_hub("a/b"))
    assert found.shape is None
    assert found.note
    with pytest.raises(HubError, match="cannot tell what"):
        fit_preview(found, 8 * GIB)


@pytest.mark.parametrize("trouble", ["whole", "wrong-range", "short", "cut"])
def test_parts_that_are_not_what_was_asked_for(serve: Serve, access_to: AccessTo, model: bytes, trouble: str) -> None:
    hub = serve({"a/b": {"b-Q8_0.gguf": model}})
    hub.break_file("b-Q8_0.gguf", trouble, at=100)
    with pytest.raises(HubError):
        look(access_to(hub), "a/b")


def test_an_architecture_that_cannot_run_yet_still_has_a_size(
    serve: Serve, access_to: AccessTo, tmp_path: Path
) -> None:
    content = gguf_bytes(tmp_path / "m.gguf", arch="nemotron")
    found = preview(Http(access_to(serve({"a/b": {"b-Q8_0.gguf": content}}))), must_find_on_hub("a/b"))
    assert found.shape is not None
    assert "nemotron" in found.shape.obstacle
    assert fit_preview(found, 8 * GIB).rows


def test_fit_and_the_recommended_precision(serve: Serve, access_to: AccessTo, model: bytes) -> None:
    files = {"b-Q8_0.gguf": model, "b-Q4_K_M.gguf": model[:-200_000], "b-BF16.gguf": model + bytes(100_000)}
    http = Http(access_to(serve({"a/b": files})))
    found = preview(http, must_find_on_hub("a/b"))
    rows = fit_preview(found, 8 * GIB, ctx=4096, parallel=2).rows
    assert {(row.precision, row.ctx, row.approximate) for row in rows} == {
        (precision, 4096, False) for precision in ("Q4_K_M", "Q8_0", "BF16")
    }
    assert rows[0].weights_bytes == int(len(files["b-Q4_K_M.gguf"]) * held_share("Q4_K_M"))
    assert recommended_variant(found, 8 * GIB)[0].precision == "Q8_0"
    assert recommended_variant(found, 1000)[0].precision == "Q4_K_M"
    asked = preview(http, must_find_on_hub("a/b:Q4_K_M"))
    assert {row.precision for row in fit_preview(asked, 8 * GIB).rows} == {"Q4_K_M"}
    assert recommended_variant(asked, 8 * GIB)[0].precision == "Q4_K_M"


def test_offline_the_catalogue_has_to_do(serve: Serve, access_to: AccessTo) -> None:
    access = access_to(serve({}), offline=True)
    for name in ("qwen3-4b", "Qwen/Qwen3-4B-GGUF"):
        found = preview(Http(access), must_find_on_hub(name))
        assert found.approximate
        with using("generic"):  # others keep scales beside keys and values
            rows = fit_preview(found, 16 * GIB).rows
        assert {row.precision for row in rows} == {"Q4_K_M", "Q8_0"}
        assert all(row.approximate for row in rows)
        q4 = next(row for row in rows if row.precision == "Q4_K_M")
        assert q4.weights_bytes == pytest.approx(2.5e9, rel=0.03)  # the file on the hub has 2.50 GB
        kv = next(row for row in rows if (row.ctx, row.kv_codec) == (4096, "f16")).kv_bytes
        assert kv == (4096 + 128) * 36 * 8 * 128 * 4
    with pytest.raises(HubError, match="offline, and a/b"):
        preview(Http(access), must_find_on_hub("a/b"))


@pytest.mark.parametrize(
    ("text", "precision", "repo", "wanted"),
    [
        ("qwen3-4b", "auto", "Qwen/Qwen3-4B-GGUF", ""),
        ("QWEN3-4B:q8_0", "auto", "Qwen/Qwen3-4B-GGUF", "q8_0"),
        ("qwen3-4b", "bf16", "Qwen/Qwen3-4B", "bf16"),
        ("gemma-3-1b", "F16", "ggml-org/gemma-3-1b-it-GGUF", "F16"),
        ("org/repo", "Q4_0", "org/repo", "Q4_0"),
        ("hf.co/org/repo:x.gguf", "auto", "org/repo", "x.gguf"),
    ],
)
def test_hub_names_are_parsed_into_repo_and_precision(text: str, precision: str, repo: str, wanted: str) -> None:
    found = find_on_hub(text, precision)
    assert found is not None
    assert (found.repo, found.precision) == (repo, wanted)


def test_of_a_quantised_checkpoint_the_headers_tell_what_it_takes(
    serve: Serve, access_to: AccessTo, tmp_path: Path
) -> None:
    named = save_named(tiny_models.save("qwen3", tmp_path / "hf", hub_config=True), tmp_path / "named")
    found = {}
    for bits in (4, 8):
        folder, _ = save_packed(named, tmp_path / str(bits), "affine", bits)
        hub = serve({"a/b": {path.name: path.read_bytes() for path in folder.iterdir()}})
        told = preview(Http(access_to(hub)), must_find_on_hub("a/b"))
        (here,) = {row.weights_bytes for row in fit_stored(stored_at(folder)[:1], 8 * GIB).rows if " " in row.precision}
        (before,) = {row.weights_bytes for row in fit_preview(told, 8 * GIB).rows if " " in row.precision}
        assert before == here
        found[bits] = {one.precision for one in told.candidates}
        assert hub.sent("model.safetensors") < (folder / "model.safetensors").stat().st_size / 2
    assert found == {4: {"int4 g32"}, 8: {"int8 g32"}}  # both are held as they are


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True, "desc_act": False}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=["f32", "f16", "bf16"])
@pytest.mark.parametrize("pack", ["mlx", "gptq", "awq"])
def test_headers_tell_the_bytes_of_a_load_whatever_scales_are(
    pack: str, dtype: torch.dtype, serve: Serve, access_to: AccessTo, tmp_path: Path
) -> None:
    plain = tiny_models.save("qwen3", tmp_path / "hf", hub_config=True)
    if pack == "mlx":
        folder, _ = save_packed(save_named(plain, tmp_path / "named"), tmp_path, "affine", 4, dtype)
    elif pack == "gptq":
        folder, _ = save_integers(plain, tmp_path, gptq, GPTQ, dtype=dtype)
    else:
        folder, _ = save_integers(plain, tmp_path, awq, AWQ, symmetric=False, dtype=dtype)
    hub = serve({"a/b": {path.name: path.read_bytes() for path in folder.iterdir()}})
    told = preview(Http(access_to(hub)), must_find_on_hub("a/b"))
    (before,) = {row.weights_bytes for row in fit_preview(told, 8 * GIB).rows if " " in row.precision}
    loaded = load(LoadOptions(folder, ctx=128, threads=1))
    loaded.close()
    assert before == loaded.plan.weights_bytes == allocated_bytes(loaded.model.weights)
    first = loaded.model.weights.layers[0].mixing
    assert isinstance(first, AttentionWeights)
    assert ("_F32_" in first.q.packed.qtype) == (dtype == torch.float32)


def test_of_one_that_a_file_beside_its_config_declares_likewise(
    serve: Serve, access_to: AccessTo, tmp_path: Path
) -> None:
    plain = tiny_models.save("qwen3", tmp_path / "hf", hub_config=True)
    folder, _ = save_integers(plain, tmp_path, awq, {}, symmetric=False, dtype=torch.float16)
    (folder / "quant_config.json").write_text(json.dumps({"w_bit": 4, "q_group_size": 32, "version": "GEMM"}))
    hub = serve({"a/b": {path.name: path.read_bytes() for path in folder.iterdir()}})
    told = preview(Http(access_to(hub)), must_find_on_hub("a/b"))
    assert [one.precision for one in told.candidates] == ["awq int4 g32"]
    assert "quant_config.json" in {file.path for variant in told.variants for file in variant.files}
    here, before = (fit.rows[0] for fit in (fit_stored(stored_at(folder), 8 * GIB), fit_preview(told, 8 * GIB)))
    assert here.weights_bytes == before.weights_bytes


@pytest.mark.parametrize("text", ["builtin", "qwen3-5b", "", ":", "./x.gguf", "a/b/c", "\x1b[2J"])
def test_names_that_mean_nothing_on_the_hub(text: str) -> None:
    assert find_on_hub(text) is None
    with pytest.raises(NotFoundError) as caught:
        must_find_on_hub(text)
    assert caught.value.hint
    assert "\x1b" not in caught.value.message


def test_a_malformed_config_is_an_error_of_the_file(serve: Serve, access_to: AccessTo) -> None:
    for config in (b"[]", b"{", b"null", json.dumps({**CONFIG, "num_hidden_layers": -1}).encode()):
        files = {"config.json": config, "model.safetensors": bytes(50_000)}
        found = preview(Http(access_to(serve({"a/b": FakeRepo(files)}))), must_find_on_hub("a/b"))
        assert found.shape is None
