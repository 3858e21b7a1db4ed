"""Hyperparameters: both spellings of config.json and GGUF say the same, and what files leave out is known."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as _transformers
from localrun_testing.oracle import difference, model_logits, token_ids
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import TINY_MODELS, VOCAB_SIZE, build, changed, randomise, save

from localrun.base.errors import ModelFileError
from localrun.formats.gguf import open_gguf
from localrun.formats.safetensors import open_safetensors
from localrun.model.config import ModelConfig
from localrun.model.headers import read_config
from localrun.text.load_text import load_text

transformers: Any = _transformers  # its annotations are partial
TinyFile = Callable[..., Path]


def config_with(folder: Path, target: Path, **changes: Any) -> ModelConfig:
    """The config of a copy of `folder` whose config.json is changed; a value of ... drops the key."""
    (target / "config.json").write_text(
        json.dumps(changed(json.loads((folder / "config.json").read_text()), **changes))
    )
    for file in folder.glob("*.safetensors"):
        (target / file.name).symlink_to(file)
    return read_config(open_safetensors(target))


@pytest.mark.parametrize("name", TINY_MODELS)
def test_both_spellings_of_config_json(name: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    newer = save(name, tmp_path)
    values = json.loads((newer / "config.json").read_text())
    assert values.get("text_config", values).keys() & {"rope_parameters", "layers_block_type"}, "the newer spelling"
    assert read_config(open_safetensors(newer)) == read_config(open_safetensors(tiny_folder(name)))


def test_a_byte_order_mark_is_no_damage(tiny_folder: TinyFile, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder("llama"), tmp_path / "marked")
    for name in ("config.json", "tokenizer_config.json"):  # as an editor on Windows leaves them
        (folder / name).write_text((folder / name).read_text(), "utf-8-sig")
    marked, plain = open_safetensors(folder), open_safetensors(tiny_folder("llama"))
    assert read_config(marked) == read_config(plain)
    assert load_text(marked).tokenizer.encode("hi", bos=True) == load_text(plain).tokenizer.encode("hi", bos=True)


def test_gemma3_of_sizes_only(tiny_folder: TinyFile, tmp_path: Path) -> None:
    """The larger Gemma 3 models' config.json leaves nearly everything to defaults."""
    sizes: dict[str, Any] = {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    }
    scaling = {"rope_scaling": {"factor": 8.0, "rope_type": "linear"}}
    folder = tiny_folder("gemma3")
    (tmp_path / "sparse").mkdir()
    (tmp_path / "full").mkdir()
    own: dict[str, Any] = dict.fromkeys(json.loads((folder / "config.json").read_text()), ...)
    names = {"architectures": ["Gemma3ForConditionalGeneration"]}
    sparse = config_with(folder, tmp_path / "sparse", **own | names | {"text_config": sizes | scaling})
    full = transformers.Gemma3TextConfig(**sizes, **scaling).to_dict()
    assert sparse == config_with(folder, tmp_path / "full", **own | full | names)
    assert (sparse.layers[0].window, sparse.layers[5].window) == (1024, None)
    assert (sparse.ropes[0].theta, sparse.ropes[1].theta) == (1e6, 1e4)
    assert sparse.ropes[0].divisors == (8.0,) * 128


def test_text_side_of_a_multimodal_checkpoint(tmp_path: Path) -> None:
    vision = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.Gemma3Config(
        text_config=json.loads(json.dumps(TINY_MODELS["gemma3"].config)),
        vision_config={**vision, "image_size": 28, "patch_size": 14},
        mm_tokens_per_image=4,
    )
    model: Any = transformers.Gemma3ForConditionalGeneration(config)
    randomise(model, seed=1)
    model.save_pretrained(tmp_path)
    ids = token_ids(60, VOCAB_SIZE)
    with torch.no_grad():
        expected = model(input_ids=torch.tensor([ids])).logits[0]
    assert difference(Stepper(tmp_path).logits(ids), expected).within(1e-4, 1e-9)


@pytest.mark.parametrize(
    ("name", "changes", "windows"),
    [
        ("mistral", {}, [16, 16, 16]),
        ("mistral", {"sliding_window": None}, [None, None, None]),
        ("mistral", {"sliding_window": 512}, [None, None, None]),  # reaches past the context
        ("qwen2-window", {}, [None, None, 16, 16]),
        ("qwen2-window", {"layer_types": ...}, [None, None, 16, 16]),
        ("qwen2-window", {"layer_types": ..., "max_window_layers": ...}, [None] * 4),
        ("qwen2-window", {"use_sliding_window": False}, [None] * 4),
        ("qwen2-window", {"use_sliding_window": ...}, [None] * 4),
        ("qwen2-moe", {"layer_types": ...}, [16, None, None]),
        ("qwen2-moe", {"layer_types": ..., "max_window_layers": 3}, [16, None, 16]),
        ("qwen2-moe", {"layer_types": ..., "use_sliding_window": False}, [None] * 3),
        ("llama", {"sliding_window": 16}, [None, None, None]),  # left over from another architecture
        ("gemma2", {"layer_types": ...}, [16, None, 16, None]),
        ("gemma3", {"sliding_window_pattern": 3}, [16, 16, None, 16, 16, None, 16, 16]),
        ("olmo3", {"layer_types": ...}, [16, 16, 16, None, 16]),
        ("muse-glimmer", {}, [16, 16, 16, None, 16]),
        ("muse-glimmer", {"layer_types": ...}, [None, 16, 16, 16, None]),  # counted from the last one
        (
            "smollm3",
            {"use_sliding_window": True, "sliding_window": 16, "layer_types": ...},
            [None, None, None, 16, None],
        ),
    ],
)
def test_which_layers_are_windowed(
    name: str, changes: dict[str, Any], windows: list[int | None], tiny_folder: TinyFile, tmp_path: Path
) -> None:
    config = config_with(tiny_folder(name), tmp_path, **changes)
    assert [layer.window for layer in config.layers] == windows
    assert [layer.kind for layer in config.layers] == ["full" if w is None else "window" for w in windows]


@pytest.mark.parametrize(
    ("name", "changes", "without_rope"),
    [
        ("smollm3", {"no_rope_layers": ...}, [3]),
        ("smollm3", {"no_rope_layers": ..., "no_rope_layer_interval": 2}, [1, 3]),
        ("smollm3", {"no_rope_layers": [1, 0, 1, 1, 0]}, [1, 4]),
        ("muse-glimmer", {}, [3]),
        ("muse-glimmer", {"layer_rope_theta": ...}, [0, 4]),  # counted from the last one
        ("muse-glimmer", {"layer_rope_theta": [0, 1e4, 0, 1e4, 1e4]}, [0, 2]),
    ],
)
def test_layers_without_rope(
    name: str, changes: dict[str, Any], without_rope: list[int], tiny_folder: TinyFile, tmp_path: Path
) -> None:
    config = config_with(tiny_folder(name), tmp_path, **changes)
    assert [index for index, layer in enumerate(config.layers) if layer.rope is None] == without_rope


def test_local_layers_keep_their_rope_when_the_window_covers_everything(tiny_folder: TinyFile, tmp_path: Path) -> None:
    config = config_with(tiny_folder("gemma3"), tmp_path, sliding_window=512)
    assert config.window is None
    assert [layer.rope for layer in config.layers] == [1, 1, 1, 1, 1, 0, 1, 1]


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("gemma2", {"final_logit_softcapping": ..., "attn_logit_softcapping": ...}, (30.0, 50.0)),
        ("gemma2", {"final_logit_softcapping": None, "attn_logit_softcapping": None}, (None, None)),
    ],
)
def test_a_key_set_to_null_is_not_a_key_left_out(
    name: str, changes: dict[str, Any], expected: tuple[float | None, ...], tiny_folder: TinyFile, tmp_path: Path
) -> None:
    config = config_with(tiny_folder(name), tmp_path, **changes)
    assert (config.logit_softcap, config.layers[0].attn_softcap) == expected


def test_dynamic_scaling_changes_nothing_within_the_context(tiny_folder: TinyFile, tmp_path: Path) -> None:
    dynamic = {"rope_type": "dynamic", "factor": 2.0}
    config = config_with(tiny_folder("llama"), tmp_path, rope_scaling=dynamic)
    within = [replace(rope, original_context=None) for rope in config.ropes]  # where the scaling would begin
    assert replace(config, ropes=tuple(within)) == read_config(open_safetensors(tiny_folder("llama")))
    ids = token_ids(80, VOCAB_SIZE)
    scaled = build("llama", rope_parameters=dynamic | {"rope_theta": 10000.0})
    assert torch.equal(model_logits(scaled, ids), model_logits(build("llama"), ids))


def test_untied_checkpoint_without_its_output(tmp_path: Path) -> None:
    """transformers would make one up; a model that babbles is worse than an error."""
    folder = save("qwen2", tmp_path)
    config_path = folder / "config.json"
    config_path.write_text(
        config_path.read_text().replace('"tie_word_embeddings": true', '"tie_word_embeddings": false')
    )
    with pytest.raises(ModelFileError, match="lm_head"):
        Stepper(folder)


def test_a_gguf_cannot_say_that_mistral_has_windows(tiny_gguf: TinyFile) -> None:
    config = read_config(open_gguf(tiny_gguf("mistral")))
    assert (config.arch, config.window) == ("llama", None)


def test_a_wrapper_around_a_language_model_of_another_kind(tiny_folder: TinyFile, tmp_path: Path) -> None:
    """Mistral3ForConditionalGeneration also wraps models with compressed keys and values."""
    folder = tiny_folder("mistral-small-3")
    text = json.loads((folder / "config.json").read_text())["text_config"]
    with pytest.raises(ModelFileError, match="of the kind 'mistral4', is not"):
        config_with(folder, tmp_path, text_config={**text, "model_type": "mistral4"})
