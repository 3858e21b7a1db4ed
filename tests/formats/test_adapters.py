"""Adapters as PEFT, MLX and llama.cpp write them: what is read of them, and what is refused, by name."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from localrun_testing.adapters import Pair, random_pairs, write_gguf, write_mlx, write_peft
from safetensors.torch import load_file, save_file

from localrun.base.adapter_choice import AdapterChoice, read_adapter
from localrun.base.errors import LocalrunError, ModelFileError, NotFoundError
from localrun.formats.adapters.detect import open_adapter
from localrun.formats.adapters.matrices import read_a, read_b
from localrun.formats.adapters.peft import Patterns
from localrun.formats.metadata import Metadata

Q, DOWN = "model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.down_proj.weight"
PAIRS = random_pairs({Q: (24, 32), DOWN: (32, 48)}, rank=3)
GGUF_PAIRS = {"blk.0.attn_q.weight": PAIRS[Q], "blk.1.ffn_down.weight": PAIRS[DOWN]}
Change = Callable[[Path], object]


def config(**values: Any) -> Change:
    """adapter_config.json with other values."""

    def change(folder: Path) -> None:
        file = folder / "adapter_config.json"
        whole = {**json.loads(file.read_text()), **values}
        file.write_text(json.dumps({key: value for key, value in whole.items() if value is not ...}))

    return change


def tensors(**changed: torch.Tensor | None) -> Change:
    """Other tensors; `__` in a name stands for a dot."""

    def change(folder: Path) -> None:
        (file,) = folder.glob("*.safetensors")
        whole = load_file(file) | {name.replace("__", "."): values for name, values in changed.items()}
        save_file({name: values for name, values in whole.items() if values is not None}, file)

    return change


PREFIX = "base_model__model__model__layers__0__"
A_OF_Q, B_OF_Q = (f"{PREFIX}self_attn__q_proj__lora_{half}__weight" for half in "AB")
M = torch.ones
PEFT_REFUSED: dict[str, tuple[Change, str]] = {
    "DoRA": (config(use_dora=True), "DoRA"),
    "DoRA by its tensors": (tensors(**{f"{PREFIX}self_attn__q_proj__lora_magnitude_vector": M(24)}), "DoRA"),
    "another kind": (config(peft_type="IA3"), "IA3"),
    "modules_to_save": (config(modules_to_save=["lm_head"]), "modules_to_save"),
    "a whole tensor": (tensors(base_model__model__lm_head__weight=M(4, 4)), "lm_head"),
    "biases": (config(bias="all"), "biases"),
    "experts as parameters": (config(target_parameters=["mlp.experts.gate_up_proj"]), "experts"),
    "experts in one tensor": (tensors(**{A_OF_Q: M(2, 3, 32)}), "experts"),
    "tokens": (config(trainable_token_indices=[1]), "embeddings"),
    "repeated layers": (config(layer_replication=[[0, 2]]), "layer_replication"),
    "activated": (config(alora_invocation_tokens=[1]), "activated"),
    "changed weights": (config(init_lora_weights="pissa_niter_4"), "pissa"),
    "embeddings": (tensors(base_model__model__model__embed_tokens__lora_embedding_A=M(3, 9)), "embeddings"),
    "the output": (tensors(base_model__model__lm_head__lora_A__weight=M(3, 9)), "lm_head"),
    "eyes": (tensors(base_model__model__vision_tower__layers__0__q_proj__lora_A__weight=M(3, 9)), "eyes"),
    "a type of no float": (tensors(**{A_OF_Q: torch.ones(3, 32, dtype=torch.int32)}), "I32"),
    "patterns that never end": (config(rank_pattern={"(a+)+b": 3}), "pattern"),
    "patterns that take long": (config(rank_pattern={".*a.*b.*": 3}), "pattern"),
    "no pattern": (config(alpha_pattern={"q_proj(": 3}), "pattern"),
}  # fmt: skip
PEFT_LIES: dict[str, tuple[Change, str]] = {
    "half of a pair": (tensors(**{A_OF_Q: None}), "missing"),
    "ranks that differ": (tensors(**{A_OF_Q: M(2, 32)}), "differ in rank"),
    "a rank that is not said": (config(r=8), "of rank 3, and the config says 8"),
    "a rank of a pattern": (config(rank_pattern={"q_proj": 2}), "config says 2"),
    "a vector": (tensors(**{A_OF_Q: M(32)}), "matrix is needed"),
    "no alpha": (config(lora_alpha=...), "lora_alpha"),
    "alpha a text": (config(lora_alpha="16"), "lora_alpha"),
    "alpha not finite": (config(lora_alpha=float("nan")), "scale"),
    "no rank": (config(r=...), "'r'"),
    "patterns that are none": (config(rank_pattern=[1]), "object"),
    "no config": (lambda folder: (folder / "adapter_config.json").unlink(), "missing beside it"),
    "a config of something else": (lambda folder: (folder / "adapter_config.json").write_text("{}"), "PEFT nor"),
    "cut short": (lambda folder: (folder / "adapter_model.safetensors").write_bytes(b"\x99" + bytes(9)), "safetensors"),
}  # fmt: skip
MLX_REFUSED: dict[str, tuple[Change, str]] = {
    "DoRA": (config(fine_tune_type="dora"), "dora"),
    "DoRA by its tensors": (tensors(model__layers__0__self_attn__q_proj__m=M(24)), "DoRA"),
    "all weights": (config(fine_tune_type="full"), "full"),
    "whole tensors": (tensors(model__norm__weight=M(32)), "model.norm.weight"),
    "experts": (tensors(model__layers__0__self_attn__q_proj__lora_a=M(2, 32, 3)), "experts"),
    "embeddings": (tensors(model__embed_tokens__lora_a=M(9, 3)), "embeddings"),
    "an early version": (config(lora_parameters={"rank": 3, "alpha": 16, "scale": 10.0}), "early"),
}
MLX_LIES: dict[str, tuple[Change, str]] = {
    "no scale": (config(lora_parameters={"rank": 3}), "scale"),
    "another rank": (config(lora_parameters={"rank": 9, "scale": 2.0}), "config says 9"),
    "no parameters": (config(lora_parameters=...), "lora_parameters"),
}


# Of rank_pattern and alpha_pattern, as people write them.
EXPRESSIONS = (
    *("q_proj", "^model.layers.1.mlp.down_proj", r"layers\.[01]\.mlp", r"layers\.\d+\.self_attn\.q_proj"),
    *(r".*layers\.1\..*down_proj", r".*\.self_attn\.[qk]_proj", ".*attn.*", ".*_proj|mlp", r"(q|down)_proj", ".*"),
)


def cases(table: dict[str, tuple[Change, str]]) -> list[Any]:
    return [pytest.param(*values, id=name) for name, values in table.items()]


@pytest.mark.parametrize(("change", "told"), cases(PEFT_REFUSED | PEFT_LIES))
def test_what_is_wrong_with_an_adapter_of_peft_is_said(change: Change, told: str, tmp_path: Path) -> None:
    change(write_peft(tmp_path, PAIRS))
    with pytest.raises(ModelFileError, match=told) as caught:
        open_adapter(tmp_path)
    assert caught.value.exit_code == 6
    assert caught.value.hint


@pytest.mark.parametrize("pattern", EXPRESSIONS)
def test_patterns_fit_the_modules_that_they_fit_in_peft(pattern: str) -> None:
    patterns = Patterns(Metadata({"alpha_pattern": {pattern: 5}}, Path("adapter_config.json")), "alpha_pattern")
    for module in (Q.removesuffix(".weight"), DOWN.removesuffix(".weight"), "layers.11.self_attn.q_proj"):
        assert (patterns.value(module, 1.0) == 5) == bool(re.match(rf"(.*\.)?({pattern})$", module)), module


@pytest.mark.parametrize(("change", "told"), cases(MLX_REFUSED | MLX_LIES))
def test_what_is_wrong_with_an_adapter_of_mlx_is_said(change: Change, told: str, tmp_path: Path) -> None:
    change(write_mlx(tmp_path, PAIRS))
    with pytest.raises(ModelFileError, match=told):
        open_adapter(tmp_path)


@pytest.mark.parametrize(
    ("pairs", "kind", "told"),
    [
        pytest.param({"token_embd.weight": PAIRS[Q]}, "adapter", "token_embd", id="embeddings"),
        pytest.param(GGUF_PAIRS, "model", "no adapter", id="a model"),
    ],
)
def test_what_is_wrong_with_an_adapter_in_a_gguf_is_said(
    pairs: dict[str, Pair], kind: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match=told):
        open_adapter(write_gguf(tmp_path / "a.gguf", pairs, "llama", kind=kind))


def test_all_three_read_alike(tmp_path: Path) -> None:
    files = [
        open_adapter(write_peft(tmp_path / "peft", PAIRS, scale=0.5)),
        open_adapter(write_mlx(tmp_path / "mlx", PAIRS, scale=0.5) / "adapters.safetensors"),
        open_adapter(write_gguf(tmp_path / "a.gguf", GGUF_PAIRS, "llama", scale=0.5)),
    ]
    assert [file.format for file in files] == ["peft", "mlx", "gguf"]
    for file in files:
        assert file.ranks == (3,)
        for weight, pair in zip(file.pairs, PAIRS.values(), strict=True):
            assert file.pairs[weight].scale == 0.5
            np.testing.assert_array_equal(read_a(file, weight), pair.a.numpy())
            np.testing.assert_array_equal(read_b(file, weight), pair.b.numpy())
    assert len({file.sha256 for file in files}) == 3


def test_a_scale_of_the_config_is_part_of_what_an_adapter_is(tmp_path: Path) -> None:
    one, other = (open_adapter(write_peft(tmp_path / str(scale), PAIRS, scale=scale)) for scale in (0.5, 1.0))
    assert one.sha256 != other.sha256


def test_an_adapter_in_a_gguf_without_alpha_counts_once(tmp_path: Path) -> None:
    file = open_adapter(write_gguf(tmp_path / "a.gguf", GGUF_PAIRS, "llama", scale=0.0))
    assert {pair.scale for pair in file.pairs.values()} == {1.0}


def test_numbers_that_are_none_are_refused_as_they_are_read(tmp_path: Path) -> None:
    write_peft(tmp_path, {Q: Pair(torch.full((3, 32), torch.inf), PAIRS[Q].b)})
    file = open_adapter(tmp_path)
    with pytest.raises(ModelFileError, match="not finite"):
        read_a(file, next(iter(file.pairs)))


def test_a_folder_without_an_adapter_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no adapter"):
        open_adapter(tmp_path)
    (tmp_path / "adapter_model.bin").write_bytes(b"")
    with pytest.raises(LocalrunError, match=r"adapter_model\.bin is not read"):
        open_adapter(tmp_path)


@pytest.mark.parametrize(
    ("typed", "path", "scale"),
    [
        ("a.gguf", "a.gguf", 1.0),
        ("a.gguf:0.5", "a.gguf", 0.5),
        ("a:b:-2", "a:b", -2.0),
        ("a:b", "a:b", 1.0),
        ("there:1.5", "there:1.5", 1.0),
    ],
)
def test_a_scale_stands_behind_the_last_colon(
    typed: str, path: str, scale: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there:1.5").touch()
    choice = read_adapter(typed)
    assert choice == AdapterChoice(tmp_path / path, scale)
    assert read_adapter(str(choice)) == choice


@pytest.mark.parametrize("typed", ["", "a:nan", "a:inf", "a:1e9", "a\0b"])
def test_scales_and_paths_that_are_none_are_refused(typed: str) -> None:
    with pytest.raises(ValueError, match="needed"):
        read_adapter(typed)
