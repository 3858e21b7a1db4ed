"""What the headers of a model tell is told before its first byte of weights is fetched, as the loader would tell it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import safetensors.numpy
from localrun_testing.fake_hub import FakeHub
from localrun_testing.mxfp4_checkpoint import save_mxfp4
from localrun_testing.stub_gguf import stub_gguf, tensors_of

from localrun.base.errors import ModelFileError
from localrun.formats.detect import open_model_file
from localrun.formats.safetensors import open_safetensors
from localrun.hub.compatibility import require_runnable
from localrun.hub.disk.library import scan
from localrun.hub.disk.model_files import files_of_folder
from localrun.hub.disk.obstacles import stored_obstacle
from localrun.hub.disk.stored import stored_at
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote.api import read_repo
from localrun.model.headers import read_config, read_weight_refs

Serve = Callable[..., FakeHub]
AccessTo = Callable[..., Access]
Files = dict[str, bytes]
TINY = safetensors.numpy.save({"x": np.zeros(2, np.float32)})


def loader_says(folder: Path, files: Files) -> str:
    """What opening and loading these files from the disk would say; empty when they would load."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    path = next((folder / name for name in sorted(files) if name.endswith(".gguf")), folder)
    try:
        source = open_model_file(path)
        read_weight_refs(source, read_config(source))
    except ModelFileError as error:
        return error.message.removeprefix(f"{error.path}: ")
    return ""


@pytest.fixture
def hub_says(serve: Serve, access_to: AccessTo) -> Callable[[Files], tuple[str, int]]:
    """What is said of these files on a hub before their download, and how many bytes were fetched until then."""

    def ask(files: Files) -> tuple[str, int]:
        hub = serve({"a/b": files})
        http = Http(access_to(hub))
        repo = read_repo(http, "a/b")
        said = ""
        try:
            require_runnable(http, repo, repo.files)
        except ModelFileError as error:
            said = error.message.split(": ", 2)[2]  # nothing was downloaded: which file: why
        return said, sum(seen.sent for seen in hub.seen if "resolve" in seen.path)

    return ask


def ggufs(folder: Path) -> dict[str, Files]:
    """One reason a name, each of which a header tells."""
    big = 1 << 14  # rows: weights of 2 MB

    def stub(**changes: object) -> Files:
        return {"m-F16.gguf": stub_gguf(folder, "m-F16.gguf", rows=big, **changes)}  # type: ignore[arg-type]

    scaling = "qwen3.rope.scaling."
    return {
        "whole": stub(),
        "no matrix": stub(without=["blk.1.ffn_down.weight"]),
        "no norm": stub(without=["output_norm.weight"]),
        "layers that are not there": {**stub(), "m-F16.gguf": renamed(stub()["m-F16.gguf"], b"blk.1.", b"blk.2.")},
        "another shape": stub(more={"qwen3.attention.head_count_kv": 2}),
        "unknown rope": stub(more={scaling + "type": "wobble"}),
        "half a rope": stub(more={scaling + "type": "longrope"}),
        "a rope": stub(more={scaling + "type": "linear", scaling + "factor": 2}),
    }


REASONS = ["whole", "no matrix", "no norm", "layers that are not there", "another shape"]
ROPES = ["unknown rope", "half a rope", "a rope"]


def renamed(content: bytes, name: bytes, other: bytes) -> bytes:
    assert len(name) == len(other)
    return content.replace(name, other)


@pytest.mark.parametrize("reason", REASONS + ROPES)
def test_the_hub_is_asked_what_the_loader_would_ask(
    tmp_path: Path, hub_says: Callable[[Files], tuple[str, int]], reason: str
) -> None:
    files = ggufs(tmp_path)[reason]
    said, fetched = hub_says(files)
    assert said == loader_says(tmp_path, files)
    assert bool(said) == (reason not in ("whole", "a rope"))
    assert fetched < 1 << 18, "the header, and no weights"


@pytest.mark.parametrize("divisor", [1.5, 0.0])
def test_the_divisors_of_a_rope_are_read_before_the_weights(
    tmp_path: Path, hub_says: Callable[[Files], tuple[str, int]], divisor: float
) -> None:
    path = tmp_path / "r-F16.gguf"
    stub = stub_gguf(tmp_path, "s-F16.gguf", rows=1 << 14)
    path.write_bytes(stub)
    source = open_model_file(path)
    writer = gguf.GGUFWriter(path.with_name("x.gguf"), "qwen3")
    for key, value in source.metadata.items():
        if not key.startswith(("general.", "GGUF.")):
            writer.add_float32(key, value) if isinstance(value, float) else writer.add_uint32(key, value)
    for name, shape in tensors_of(1 << 14, 2).items():
        writer.add_tensor(name, np.zeros(shape, np.float32))
    writer.add_tensor("rope_freqs.weight", np.full(8, divisor, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    files = {"x.gguf": path.with_name("x.gguf").read_bytes()}
    path.unlink()
    (tmp_path / "s-F16.gguf").unlink()
    said, fetched = hub_says(files)
    assert said == loader_says(tmp_path, files)
    assert ("cannot divide" in said) == (divisor == 0)
    assert fetched < 1 << 18


CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "dtype": "float32",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "vocab_size": 320,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
}
LAYER = {
    **{f"self_attn.{name}_proj": [64, 64] for name in "qkvo"},
    "mlp.gate_proj": [128, 64],
    "mlp.up_proj": [128, 64],
    "mlp.down_proj": [64, 128],
    "input_layernorm": [64],
    "post_attention_layernorm": [64],
}


def checkpoint(without: str = "", **changes: object) -> Files:
    """Two shards of a llama, all zeros."""
    shapes = {"model.embed_tokens.weight": [320, 64], "model.norm.weight": [64]}
    shapes |= {f"model.layers.0.{name}.weight": shape for name, shape in LAYER.items()}
    shapes.pop(without, None)
    names = [f"model-{number:05d}-of-00002.safetensors" for number in (1, 2)]
    weight_map = {name: names[number % 2] for number, name in enumerate(shapes)}
    files = {"config.json": json.dumps({**CONFIG, **changes}).encode()}
    files["model.safetensors.index.json"] = json.dumps({"metadata": {}, "weight_map": weight_map}).encode()
    for file in names:
        header, at = {}, 0
        for name, shape in shapes.items():
            if weight_map[name] == file:
                n_bytes = 4 * int(np.prod(shape))
                header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n_bytes]}
                at += n_bytes
        raw = json.dumps(header).encode()
        files[file] = len(raw).to_bytes(8, "little") + raw + bytes(at)
    return files


@pytest.mark.parametrize("other", ["model-00003-of-00003.safetensors", "../../evil.safetensors", ""])
def test_an_index_that_names_what_is_not_there_is_told_before_the_download(
    tmp_path: Path, hub_says: Callable[[Files], tuple[str, int]], other: str
) -> None:
    index = "model.safetensors.index.json"
    files = checkpoint()
    weight_map = json.loads(files[index])["weight_map"]
    files[index] = json.dumps({"weight_map": weight_map | {"lm_head.weight": other} if other else {}}).encode()
    said, _ = hub_says(files)
    assert said == loader_says(tmp_path, files) != ""


CHECKPOINTS = {
    "whole": checkpoint(),
    "no matrix": checkpoint("model.layers.0.mlp.up_proj.weight"),
    "untied": checkpoint(tie_word_embeddings=False),
    "another shape": checkpoint(intermediate_size=192),
    "unknown rope": checkpoint(rope_scaling={"rope_type": "wobble", "factor": 2.0}),
    "half a rope": checkpoint(rope_scaling={"rope_type": "longrope"}),
    "a rope": checkpoint(rope_scaling={"rope_type": "linear", "factor": 2.0}),
}


@pytest.mark.parametrize("reason", CHECKPOINTS)
def test_so_is_a_checkpoint_in_shards(
    tmp_path: Path, hub_says: Callable[[Files], tuple[str, int]], reason: str
) -> None:
    said, _ = hub_says(CHECKPOINTS[reason])
    assert said == loader_says(tmp_path, CHECKPOINTS[reason])
    assert bool(said) == (reason not in ("whole", "a rope"))


@pytest.mark.parametrize("missing", ["", "model-2.safetensors"])
def test_codes_and_scales_in_two_files_are_one_tensor(
    tmp_path: Path, hub_says: Callable[[Files], tuple[str, int]], missing: str
) -> None:
    """gpt-oss in MXFP4: with the scales it runs, and without them it does not."""
    save_mxfp4(tmp_path)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir() if "token" not in path.name}
    if missing:
        del files[missing], files["model.safetensors.index.json"]
        (tmp_path / missing).unlink()
        (tmp_path / "model.safetensors.index.json").unlink()
    said, _ = hub_says(files)
    assert said == loader_says(tmp_path, files)
    assert ("gate_up_proj' is missing" in said) == bool(missing)


@pytest.mark.parametrize("reason", ROPES)
def test_stored_models_are_listed_with_their_rope(tmp_path: Path, reason: str) -> None:
    """By key-values alone, so of a longrope that lies in tensors nothing is known."""
    files = ggufs(tmp_path)[reason]
    (model,) = stored_at(tmp_path / "m-F16.gguf")
    model.path.write_bytes(files["m-F16.gguf"])
    assert ("unknown rope scaling 'wobble'" in stored_obstacle(model)) == (reason == "unknown rope")
    assert bool(stored_obstacle(model)) == (reason == "unknown rope")


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices of Unix")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("zero", "this is a device, not a file"),
        ("pipe", "this is a pipe, not a file"),
        ("big", "26,000,000 bytes, where at most 8,388,608 are sensible"),
        ("nested", "nested too deeply"),
        ("cut", "this is not valid JSON"),
    ],
)
def test_a_small_file_that_is_none_costs_its_own_model_only(home: Path, name: str, why: str) -> None:
    for model in ("good", "evil"):
        (home / f"models/{model}").mkdir(parents=True)
        (home / f"models/{model}/model.safetensors").write_bytes(TINY)
        (home / f"models/{model}/config.json").write_text("{}")
    for file in ("config.json", "model.safetensors.index.json"):
        path = home / "models/evil" / file
        path.unlink(missing_ok=True)
        if name == "zero":
            path.symlink_to("/dev/zero")
        elif name == "pipe":
            os.mkfifo(path)
        else:
            path.write_text({"big": " " * 26_000_000, "nested": "[" * 100_000, "cut": '{"a": '}[name])
    evil, good = (model for model in scan() if model.source == "models")
    assert why in stored_obstacle(evil)
    assert (good.name, good.precision) == ("good", "")
    with pytest.raises(ModelFileError, match=why):
        open_safetensors(evil.path)
    assert evil.path / "model.safetensors" in files_of_folder(evil.path)


@pytest.mark.parametrize("tensor", ["blk.0.ffn_latent_in.weight", "v.patch_embd.weight"])
def test_tensors_of_ollamas_models_are_looked_at_in_a_list(tmp_path: Path, tensor: str) -> None:
    """Those of eyes are left alone, others that have no place are told."""
    content = stub_gguf(tmp_path, "m-F16.gguf", besides={tensor: (4, 4)})
    path = tmp_path / "blob.gguf"
    path.write_bytes(content)
    (model,) = stored_at(path, "ollama")
    assert bool(stored_obstacle(model)) == (tensor == "blk.0.ffn_latent_in.weight")
