"""Predictions by formula of models that are not here, against published numbers and sums by brute force."""

import json
from dataclasses import replace
from math import prod

import pytest
from localrun_testing.schemas import check

from localrun.backends.registry import usual_backend
from localrun.cli import explain as command
from localrun.cli.app import run_command_line
from localrun.diagnose.explain.draw import drawn
from localrun.diagnose.explain.topic_report import Bars, Curve
from localrun.diagnose.predict.sizes import SIZES, Size
from localrun.diagnose.predict.textbook import kv_correction, weights_correction
from localrun.diagnose.predict.times import Times
from localrun.diagnose.predict.topics import PREDICTED
from localrun.diagnose.predict.what_if import HEADS, PRECISIONS, WhatIf, heads_of
from localrun.fit import machine_rates as of_machine
from localrun.fit.rates import Rates
from localrun.ops.kv import KV_CODECS

RATES = Rates(read_bytes=40e9, macs=200e9)
# as the pages of these models give them
PUBLISHED = {"1B": 1.24e9, "3B": 3.21e9, "7B": 6.74e9, "8B": 8.03e9, "13B": 13.02e9, "32B": 32.8e9, "70B": 70.6e9}


def n_params_by_hand(what: WhatIf, tied: bool) -> int:
    """Every matrix of a Llama, one by one."""
    config = what.config
    total = config.vocab_size * config.hidden_size * (1 if tied else 2)
    for spec in config.layers:
        q, kv = spec.n_heads * spec.head_dim, spec.n_kv_heads * spec.head_dim
        shapes = [(q, config.hidden_size), (kv, config.hidden_size), (kv, config.hidden_size), (config.hidden_size, q)]
        shapes += [(spec.ffn_size, config.hidden_size)] * 3
        total += sum(map(prod, shapes))
    return total


@pytest.mark.parametrize("name", SIZES)
def test_parameters_are_those_that_were_published(name: str) -> None:
    size = SIZES[name]
    assert size.shape.n_params == pytest.approx(PUBLISHED[name], rel=0.004)
    for heads in HEADS:
        what = WhatIf(size, heads=heads)
        assert what.n_params == n_params_by_hand(what, tied=name in ("1B", "3B"))


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("codec", [name for name in KV_CODECS if name != "f32"])
def test_a_cache_is_the_sum_of_its_vectors(heads: str, codec: str) -> None:
    """For each layer and KV head a key and a value of 128 numbers, one scale of two bytes for eight bits, and an offset
    more for four."""
    of_bits = {16: 256, 8: 128 + 2, 4: 64 + 4}
    bits = {"f16": (16, 16), "q8": (8, 8), "k8v4": (8, 4), "q4": (4, 4)}[codec]
    n_kv_heads = {"MHA": 64, "GQA": 8, "MQA": 1}[heads]
    what = WhatIf(SIZES["70B"], heads=next(one for one in HEADS if one == heads), codec=codec, ctx=1024, chats=3)
    a_token = sum(of_bits[k] for _ in range(80) for _ in range(n_kv_heads) for k in bits)
    assert what.token_bytes == a_token
    assert what.cache_bytes == 3 * sum(a_token for _ in range(1024))
    assert replace(what, cached=False).cache_bytes == 0


def test_a_window_keeps_its_tokens_and_the_first_block() -> None:
    what = WhatIf(SIZES["8B"], window=1024, ctx=65536)
    assert what.kv_bytes(512) == replace(what, window=None).kv_bytes(512)
    assert what.kv_bytes(65536) == what.kv_bytes(4096) == (1024 + 64 + 64) * what.token_bytes


def test_weights_take_their_bits_with_scales() -> None:
    weights = {name: WhatIf(SIZES["13B"], name).weights_bytes for name in PRECISIONS}
    bits = {"FP32": 32, "FP16": 16, "INT8": 8.5, "INT4": 4.5}
    counted = {name: int(SIZES["13B"].shape.n_params * of / 8) for name, of in bits.items()}
    assert {name: weights[name] for name in bits} == counted
    a_weight = usual_backend().matrix_bytes("Q2_K", 4096, 4096) / 4096**2  # unpacked, where no kernel reads it as it is
    assert weights["INT2"] == pytest.approx(SIZES["13B"].shape.n_params * a_weight)
    loaded = Size("mine", "mine", SIZES["1B"].shape, loaded=("Q4_K_M", 7))
    assert WhatIf(loaded, "Q4_K_M").weights_bytes == 7


def test_textbook_numbers_are_corrected() -> None:
    of_13b = kv_correction(WhatIf(SIZES["13B"]))
    assert "1 MB a token" in of_13b
    assert "819,200 bytes, 18 % less" in of_13b  # 2 · 40 layers · 40 heads · 128 · 2 bytes
    assert "524,288 bytes, 5 % more" in kv_correction(WhatIf(SIZES["7B"]))
    of_70b = kv_correction(WhatIf(SIZES["70B"]))
    assert "327,680 bytes: 8 KV heads" in of_70b
    assert "64 as in older models would take 2,621,440" in of_70b
    assert kv_correction(WhatIf(SIZES["8B"])) == ""
    assert "takes 6.5 GB" in weights_correction(WhatIf(SIZES["13B"], "INT4"))
    assert weights_correction(WhatIf(SIZES["13B"], "FP16")) == "", "26.03 GB are 26"
    assert weights_correction(WhatIf(SIZES["13B"], "INT4", heads="MQA")) == "", "another model"


def test_without_a_cache_all_is_computed_for_every_token() -> None:
    what = WhatIf(SIZES["1B"], ctx=1024)
    report = PREDICTED["cache"](Times(what, RATES))
    with_cache, without, last, last_without = (figure.expected for figure in report.figures)
    assert (what.prompt, what.answer) == (768, 256)
    assert with_cache == what.prompt + sum(1 for _ in range(what.answer - 1))
    assert without == sum(what.prompt + written for written in range(what.answer))
    times = Times(replace(what, cached=False), RATES)
    assert last is not None
    assert times.token(1024).longer * 1000 == pytest.approx(last_without)
    assert times.token(1024).longer == times.prefill(1024).longer
    (curve,) = report.pictures
    assert isinstance(curve, Curve)
    assert curve.lines["with"][-1] == pytest.approx(last)


@pytest.mark.parametrize("topic", PREDICTED)
@pytest.mark.parametrize("what", [WhatIf(), WhatIf(SIZES["13B"], "FP16", "MQA", "q4", 512, 512, 32, cached=False)])
def test_every_topic_fits_a_small_screen(topic: str, what: WhatIf) -> None:
    report = PREDICTED[topic](Times(what, RATES, 8 << 30))
    assert report.topic == topic
    assert any(figure.expected is not None for figure in report.figures)
    for width in (58, 78):
        assert max(map(len, drawn(report, width))) <= width


def test_bars_of_batches_follow_from_their_own_steps() -> None:
    times = Times(WhatIf(SIZES["1B"], "INT8", ctx=512), RATES)
    report = PREDICTED["batch"](times)
    (bars,) = report.pictures
    assert isinstance(bars, Bars)
    steps = {figure.name: figure.expected for figure in report.figures}
    for name, rate in bars.values.items():
        n = int(name.split()[0])
        assert rate == pytest.approx(1000 * n / (steps[f"a token for each of {n}"] or 0))


def test_own_heads_are_known() -> None:
    assert {name: heads_of(size.shape.config) for name, size in SIZES.items()} == {
        "1B": "GQA", "3B": "GQA", "7B": "MHA", "8B": "GQA", "13B": "MHA", "32B": "GQA", "70B": "GQA",
    }  # fmt: skip


def test_the_command_needs_no_model(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_machine, "machine_rates", lambda: RATES)
    monkeypatch.setattr(command, "open_measured", lambda *_: pytest.fail("a model was loaded"))
    asked = ["explain", "memory", "--size", "13b", "--precision", "int8", "--kv", "q8", "--ctx", "4096", "--json"]
    assert run_command_line([*asked, "--heads", "gqa", "--chats", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    check(found, "explain")
    what = WhatIf(SIZES["13B"], "INT8", "GQA", "q8", 4096, None, 2)
    figures = {figure["name"]: figure["expected"] for figure in found["topics"][0]["figures"]}
    assert figures["together"] == what.weights_bytes + 2 * 4096 * 40 * 8 * 2 * 130
    assert run_command_line(["explain", "--size", "9B"]) == 2
    assert "one of 1B, 3B" in capsys.readouterr().err
    assert run_command_line(["explain", "--size", "8B", "--precision", "int3x"]) == 2
    assert run_command_line(["explain", "memory", "--heads", "gqa"]) == 2
    assert "--size 8B" in capsys.readouterr().err
