"""What models with latent attention take, by the values of their classes: DeepSeek-V3's and GLM-4.7-Flash's own."""

from dataclasses import replace
from pathlib import Path

import pytest

from localrun.base.errors import UsageError
from localrun.diagnose.explain.memory import heads_formula
from localrun.diagnose.explain.topic_report import Bars
from localrun.diagnose.predict.memory_topics import memory
from localrun.diagnose.predict.sizes import Size
from localrun.diagnose.predict.times import Times
from localrun.diagnose.predict.what_if import HEADS, WhatIf, heads_of
from localrun.fit.bytes import kv_bytes, kv_bytes_by_codec
from localrun.fit.codecs import choose_codec
from localrun.fit.estimate import Candidate, Question, fit_table
from localrun.fit.plan import check_context
from localrun.fit.rates import Rates
from localrun.fit.shape import ModelShape, shape_of
from localrun.formats.metadata import Metadata
from localrun.hub.header_model import HeaderModel
from localrun.ops.kv import KV_CODECS

V3, GLM = "DeepseekV3ForCausalLM", "Glm4MoeLiteForCausalLM"
OF_GLM = {"MHA": 20, "GQA": 5, "MQA": 1}


def shape(architecture: str) -> ModelShape:
    path = Path("config.json")
    return shape_of(HeaderModel(path, "safetensors", Metadata({"architectures": [architecture]}, path), 0))


@pytest.mark.parametrize(("architecture", "billions"), [(V3, 671), (GLM, 30)])
def test_parameters_are_those_that_were_published(architecture: str, billions: int) -> None:
    found = shape(architecture)
    assert not found.obstacle
    assert found.n_params / 1e9 == pytest.approx(billions, rel=0.005)
    if architecture == V3:
        assert found.active_params / 1e9 == pytest.approx(37, rel=0.02)


def test_a_cache_is_the_latents_of_every_layer() -> None:
    config = shape(V3).config
    assert kv_bytes(config, KV_CODECS["f16"], 1 << 20) == 68.625 * (1 << 30)
    assert set(kv_bytes_by_codec(config).values()) == {61 * 576 * 2}


@pytest.mark.parametrize(
    ("wish", "codec", "told"),
    [("auto", "f16", ""), ("f16", "f16", ""), ("f32", "f32", ""), ("q8", "f16", "latents stay in 16 bits")],
)
@pytest.mark.parametrize("fitting", [100, 4096])
def test_latents_stay_in_16_bits(fitting: int, wish: str, codec: str, told: str) -> None:
    """Also where the whole context does not fit, and q8 would be taken for keys and values."""
    chosen = choose_codec(wish, shape(V3).config, None, lambda codec: fitting)
    assert (chosen.codec.name, chosen.ctx) == (codec, fitting)
    assert chosen.note.startswith(told)
    assert bool(chosen.note) == bool(told)


def test_the_table_lists_no_codec_that_changes_nothing() -> None:
    model, candidate = shape(GLM), Candidate("Q4_K_M", 18 << 30, 2 << 30, 4.8)
    rows = fit_table(model, [candidate], Question(64 << 30, Rates(1e10, 1e11))).rows
    assert {row.kv_codec for row in rows} == {"f16"}


def test_a_window_is_refused() -> None:
    config = shape(V3).config
    with pytest.raises(UsageError, match="no window can be put on layers with latent attention"):
        check_context(config, None, 128)
    assert config.for_window(64) == config


def test_sizes_of_latents_are_a_part_of_what_blocks_depend_on() -> None:
    config = shape(V3).config
    for changes in ({"eps": 1e-5}, {"value_dim": 64}, {"q_rank": None}, {"interleaved": False}):
        sizes = replace(config.latents[0], **changes)
        other = replace(config, layers=tuple(replace(spec, latent=sizes) for spec in config.layers))
        assert [*map(repr, other.computed)] != [*map(repr, config.computed)]


def test_what_is_explained_of_their_bytes() -> None:
    """A token takes one key in each layer, where heads of the same size would take a key and a value each."""
    of_glm = shape(GLM)
    assert heads_of(of_glm.config) is None
    assert heads_formula(of_glm.config) == ("47 layers · 576 numbers for all heads · 2 bytes", 47 * 576 * 2)
    size = Size("30B", "GLM-4.7-Flash", of_glm)
    found = {heads: WhatIf(size, heads=heads).token_bytes for heads in HEADS}
    assert found == {heads: 47 * 2 * n * 256 * 2 for heads, n in OF_GLM.items()}
    assert WhatIf(size).token_bytes == 47 * 576 * 2
    report = memory(Times(WhatIf(size), Rates(read_bytes=40e9, macs=200e9), None))
    assert report.figures[0].formula == "47 layers · 576 numbers for all heads · 2 bytes"
    pictures = [picture for picture in report.pictures if isinstance(picture, Bars)]
    bars = {name: value for picture in pictures for name, value in picture.values.items()}
    assert bars["latents (its own)"] == bars["f16"] == bars["q4"] == 8192 * 47 * 576 * 2
    assert "MQA 1" in bars
