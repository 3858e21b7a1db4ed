"""One model in four precisions: each is made of the same floats, and compared by brute force."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from localrun_testing import REPOSITORY

from localrun.base.request import LoadOptions
from localrun.client.local import LocalClient
from localrun.diagnose.explain import precision
from localrun.diagnose.explain.float_weights import FloatWeights
from localrun.diagnose.explain.precision import Taken, advice, truth, variants
from localrun.diagnose.explain.sampled_texts import sampled_texts
from localrun.engine.opened_model import open_model
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.requantize import ENCODERS

BUILTIN = Path(REPOSITORY / "localrun" / "builtin" / "localrun-tiny.gguf")
NAME = "blk.0.ffn_up.weight"


def decoded(source: Any, name: str) -> torch.Tensor:
    info = source.tensors[name]
    raw = torch.frombuffer(source.read(name), dtype=torch.uint8)
    return QUANT_TYPES[info.qtype].decode(raw, info.shape)


def test_every_precision_is_made_of_the_same_floats() -> None:
    source = open_model(LoadOptions(BUILTIN, prefix_cache=False)).source
    own = decoded(source, NAME)
    made = variants(source)
    assert torch.equal(decoded(made["F16"], NAME), own.to(torch.float16).float())
    for name, one in made.items():
        qtype = one.tensors[NAME].qtype
        if name != "F16":
            raw = ENCODERS[qtype](own.to(torch.float16).float()).reshape(-1)
            assert torch.equal(decoded(one, NAME), QUANT_TYPES[qtype].decode(raw, own.shape)), name
    assert made["F16"].tensors["blk.0.attn_norm.weight"] == source.tensors["blk.0.attn_norm.weight"]


def test_rows_are_read_as_the_whole_is() -> None:
    floats = FloatWeights(open_model(LoadOptions(BUILTIN, prefix_cache=False)).source)
    whole, n_cols = floats.read(NAME), floats.tensors[NAME].shape[-1]
    assert floats.read(NAME, 3, 5) == whole[3 * 2 * n_cols : 8 * 2 * n_cols]


def test_a_text_of_its_own_is_as_likely_as_the_model_is_sure() -> None:
    """Each token was drawn by the chances that the model gives it: none is one that it holds for impossible."""
    with LocalClient(LoadOptions(BUILTIN, ctx=256)) as client:
        texts = sampled_texts(client.model)
        assert texts == sampled_texts(client.model), "the same every time"
        ids, begin = texts[0]
        with precision.loaded(
            client.model, open_model(LoadOptions(BUILTIN)), open_model(LoadOptions(BUILTIN)).source
        ) as one:
            found = precision.measured(one, one, texts, open_model(LoadOptions(BUILTIN)).source)
    assert len(ids) > begin > 0
    assert found.kld == 0
    assert found.same_top1 == 100
    assert found.predicted_bytes == found.held_bytes
    assert 0 < found.nll < math.log(50)


def taken(kld: float, held: float, nll: float = 1.0, tps: float = 10.0) -> Taken:
    return Taken(held, held, 2 * tps, tps, nll, kld, 100.0)


def test_the_advice_is_the_smallest_that_stays_close() -> None:
    each = {"F16": taken(0, 16), "INT8": taken(0.001, 8), "INT4": taken(0.01, 4, tps=30), "INT2": taken(1.0, 2, 2.0)}
    assert advice(each).startswith("INT4 is the smallest that stays within 0.02 nats of F16 here, INT4 the fastest.")
    assert f"{np.e:.2f} times as surprising: it is for trying out" in advice(each)
    each["INT2"] = taken(1.0, 5, 2.0)
    assert "more memory than INT4" in advice(each)


def test_the_file_types_loss_is_stated() -> None:
    source = open_model(LoadOptions(BUILTIN, prefix_cache=False)).source
    assert truth(source).startswith("The file holds Q8_0: those weights, decoded, are the truth here")
    assert truth(FloatWeights(source)) == ""


def test_a_large_model_is_reported_by_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "LARGEST", 1000)
    monkeypatch.setattr(precision, "take", lambda *_: pytest.fail("it was encoded"))
    plan = SimpleNamespace(weights_bytes=7_000_000, mapped_bytes=0)
    model: Any = SimpleNamespace(info=SimpleNamespace(path=str(BUILTIN)), plan=plan, file_bytes_per_token=6_000_000)
    report = precision.explain(model)
    assert all(figure.measured is None for figure in report.figures)
    n = sum(math.prod(ref.shape) for ref in open_model(LoadOptions(BUILTIN)).refs.values())
    assert report.figures[0].expected == 2 * n
    assert "would take about" in report.conclusion
