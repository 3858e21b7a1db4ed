"""NaN and infinities in the small files of a model, as Python writes them: harmless where nobody reads them, and
refused by the name of their key where somebody does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.fake_hub import FakeHub

from localrun.base.errors import ModelFileError
from localrun.formats.safetensors import open_safetensors
from localrun.hub.compatibility import require_runnable
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote.api import read_repo
from localrun.model.archs.hf_classes import ALIASES
from localrun.model.headers import read_config
from localrun.text.load_text import load_text

TinyFile = Callable[..., Path]
FORMS = (
    "Infinity",
    "-Infinity",
    "NaN",
    "1e999",
    *(f'{{"__float__": "{n}"}}' for n in ("Infinity", "-Infinity", "NaN")),
)
FILES = ("config.json", "generation_config.json", "tokenizer_config.json")


def written(folder: Path, target: Path, file: str, changes: str) -> Path:
    """A copy of `folder` whose `file` has some more keys at its end, or at that of the language model's."""
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    values = json.loads((folder / file).read_text()) if (folder / file).exists() else {}
    if text := values.pop("text_config", None):
        changes = f'"text_config": {json.dumps(text).removesuffix("}")}, {changes}}}'
    before = json.dumps(values).removesuffix("}")
    (target / file).write_text(f"{before}{', ' * bool(values)}{changes}}}")
    return target


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("file", FILES)
def test_a_nonfinite_number_in_an_unread_key(file: str, form: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    folder = written(tiny_folder("llama"), tmp_path, file, f'"a": {form}, "b": {{"c": [0.0, {form}]}}')
    model, plain = open_safetensors(folder), open_safetensors(tiny_folder("llama"))
    assert read_config(model) == read_config(plain)
    assert load_text(model).sampling == load_text(plain).sampling


@pytest.mark.parametrize("name", ["nemotron-h", "granite-hybrid"])
@pytest.mark.parametrize("limits", ["[0.0, Infinity]", "[0, 1e999]", '[0.0, {"__float__": "Infinity"}]'])
def test_steps_without_a_limit(name: str, limits: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    folder = written(tiny_folder(name), tmp_path, "config.json", f'"time_step_limit": {limits}')
    assert read_config(open_safetensors(folder)) == read_config(open_safetensors(tiny_folder(name)))


USED: dict[str, tuple[str, Any]] = {
    "rms_norm_eps": ("llama", "NaN"),
    "max_position_embeddings": ("llama", "Infinity"),
    "hidden_size": ("llama", "-Infinity"),
    "vocab_size": ("llama", '{"__float__": "NaN"}'),
    "rope_parameters.rope_theta": ("llama", '{"rope_theta": Infinity}'),
    "rope_parameters.factor": ("llama", '{"rope_type": "linear", "factor": {"__float__": "Infinity"}}'),
    "rope_parameters.short_factor[1]": ("phi3-longrope", '{"rope_type": "longrope", "short_factor": [1, NaN]}'),
    "rope_parameters.full_attention.factor": ("gemma3", '{"full_attention": {"rope_type": "linear", "factor": NaN}}'),
    "sliding_window": ("mistral", "Infinity"),
    "final_logit_softcapping": ("gemma2", "NaN"),
    "query_pre_attn_scalar": ("gemma2", "1e999"),
    "logits_scaling": ("granite", "-Infinity"),
    "layer_rope_theta[3]": ("muse-glimmer", "[1e4, 1e4, 1e4, NaN, 1e4]"),
    "output_multiplier": ("muse-glimmer", "Infinity"),
    "no_rope_layers[0]": ("smollm3", "[NaN, 1, 1, 0, 1]"),
    "num_experts_per_tok": ("qwen3-moe", "Infinity"),
    "time_step_limit": ("nemotron-h", "[0.0, NaN]"),
}


@pytest.mark.parametrize("key", USED)
def test_in_a_key_that_is_used(key: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    name, value = USED[key]
    folder = written(tiny_folder(name), tmp_path, "config.json", f'"{key.split(".")[0].split("[")[0]}": {value}')
    with pytest.raises(ModelFileError) as caught:
        read_config(open_safetensors(folder))
    assert key in caught.value.message
    assert caught.value.path == str(folder / "config.json")


TINY = {
    "granitemoehybrid": "granite-hybrid",
    "qwen3_moe": "qwen3-moe",
    "qwen3_vl_moe_text": "qwen3-vl-moe",
    "gpt_oss": "gpt-oss",
    "nemotron_h": "nemotron-h",
    "deepseek_v2": "deepseek-v2-lite",
    "deepseek_v3": "deepseek-v3",
    "glm4_moe_lite": "glm-4.7-flash",
}


@pytest.mark.parametrize(("model_type", "alias"), [(name, alias) for name, row in ALIASES.items() for alias in row])
@pytest.mark.parametrize("value", ["NaN", '{"a": [Infinity]}'])
def test_in_another_spelling_of_a_key(
    model_type: str, alias: str, value: str, tiny_folder: TinyFile, tmp_path: Path
) -> None:
    folder = written(tiny_folder(TINY.get(model_type, model_type)), tmp_path, "config.json", f'"{alias}": {value}')
    with pytest.raises(ModelFileError, match=rf"\b{alias}\b"):
        read_config(open_safetensors(folder))


def test_in_a_setting_of_the_sampler(tiny_folder: TinyFile, tmp_path: Path) -> None:
    folder = written(tiny_folder("llama"), tmp_path, "generation_config.json", '"top_p": NaN')
    with pytest.raises(ModelFileError, match=r"generation_config\.json: top_p is nan"):
        load_text(open_safetensors(folder))


def test_a_download_blames_the_config(tiny_folder: TinyFile, tmp_path: Path) -> None:
    folder = written(tiny_folder("llama"), tmp_path, "config.json", '"rms_norm_eps": NaN')
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    with FakeHub({"org/m": files}) as hub:
        http = Http(Access(hub.url, "", False, tmp_path / "cache"))
        repo = read_repo(http, "org/m")
        with pytest.raises(ModelFileError, match=r"org/m/config\.json: rms_norm_eps is nan"):
            require_runnable(http, repo, repo.files)
