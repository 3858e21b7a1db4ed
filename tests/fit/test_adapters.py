"""Adapters are counted before a load as the load counts them, and refused as it refuses them."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from localrun_testing.adapters import RANK, pairs_of_folder, write_peft
from localrun_testing.gguf_convert import convert
from localrun_testing.schemas import check
from localrun_testing.tiny_models import save

from localrun.base.adapter_choice import AdapterChoice
from localrun.base.errors import ModelFileError, UsageError
from localrun.base.request import LoadOptions
from localrun.cli.app import run_command_line
from localrun.engine.load import load
from localrun.fit.adapters import NO_ADAPTERS, added_by
from localrun.fit.shape import shape_of
from localrun.formats.safetensors import open_safetensors
from localrun.hub.disk.stored import stored_at
from localrun.hub.fits import fit_stored


@pytest.mark.parametrize(
    ("kind", "file_format"), [*product(("qwen2", "phi3", "granite-hybrid"), ("safetensors", "gguf"))]
)
def test_fit_and_a_load_say_the_same(kind: str, file_format: str, tmp_path: Path) -> None:
    folder = save(kind, tmp_path / "model")
    path = folder if file_format == "safetensors" else convert(folder, tmp_path / "model.gguf")
    pairs = pairs_of_folder(folder)
    adapters = tuple(AdapterChoice(write_peft(tmp_path / f"{n}", pairs), 0.5) for n in range(2))
    rows, plans = [], []
    for which in ((), adapters):
        rows.append(fit_stored(stored_at(path), 8 << 30, 128, adapters=which).rows[0])
        loaded = load(LoadOptions(path, ctx=128, threads=1, kv="f16", adapters=which))
        loaded.engine.close()
        plans.append(loaded.plan)
    (without, beside), (plan_without, plan) = rows, plans
    assert beside.weights_bytes == plan.weights_bytes == plan_without.weights_bytes + beside.adapter_bytes
    assert beside.scratch_bytes - without.scratch_bytes == plan.scratch_bytes - plan_without.scratch_bytes > 0
    assert beside.adapter_bytes > 0 == without.adapter_bytes
    assert beside.est_decode_tps < without.est_decode_tps
    assert (beside.precision, beside.file_bytes) == (without.precision, without.file_bytes)


def test_multiplications_are_those_of_the_two_matrices(tmp_path: Path) -> None:
    folder = save("qwen2", tmp_path / "model")
    pairs = pairs_of_folder(folder)
    shape = shape_of(open_safetensors(folder))
    added = added_by([AdapterChoice(write_peft(tmp_path / "a", pairs))], shape)
    assert added.macs == sum(RANK * (pair.a.shape[1] + pair.b.shape[0]) for pair in pairs.values())
    assert added_by([], shape) == NO_ADAPTERS
    with pytest.raises(UsageError, match="a model that can run"):
        added_by([AdapterChoice(tmp_path / "a")], replace(shape, obstacle="it cannot run"))


def test_an_adapter_of_another_model_is_refused(tmp_path: Path) -> None:
    folder, other = save("qwen2", tmp_path / "model"), save("gemma3", tmp_path / "other")
    adapter = write_peft(tmp_path / "a", pairs_of_folder(other))
    with pytest.raises(ModelFileError, match=r"it changes .*"):
        fit_stored(stored_at(folder), 8 << 30, adapters=[AdapterChoice(adapter)])


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save("qwen2", tmp_path / "model")
    adapter = write_peft(tmp_path / "a", pairs_of_folder(folder))

    def fit(*arguments: str) -> tuple[int, str]:
        return run_command_line(["fit", str(folder), *arguments]), capsys.readouterr().out

    code, out = fit("--lora", f"{adapter}:0.5", "--lora", "none", "--json", "--offline")
    assert code == 0
    check(answer := json.loads(out), "fit")
    assert all(row["adapter_bytes"] > 0 for row in answer["rows"])
    assert "of adapters, which every token reads" in fit("--lora", str(adapter))[1]
    (adapter / "adapter_config.json").write_text('{"peft_type": "LORA", "r": -1}')
    assert [fit("--lora", str(which))[0] for which in (adapter, tmp_path / "none", f"{adapter}:1e9")] == [6, 3, 2]
