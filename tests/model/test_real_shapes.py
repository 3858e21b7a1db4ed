"""Real sizes: what passes on toys may overflow, or cost too much memory, with wide layers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from localrun_testing.gguf_convert import convert
from localrun_testing.oracle import difference, reference_logits, token_ids
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import build, save_tokenizer

EIGHT_B = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 2,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 2000,
}
HALF_B = {**EIGHT_B, "hidden_size": 1024, "intermediate_size": 3584, "num_attention_heads": 8, "vocab_size": 32000}

MEASURE = """
import sys
import torch  # what it takes is not what loading takes
from localrun.formats.gguf import open_gguf
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.load import load_model
from localrun.model.weight_sizes import held_bytes
from localrun.ops.layouts import FILE
from localrun_testing.resources import peak_growth

source = open_gguf(sys.argv[1])
with peak_growth() as growth:
    model = load_model(source, FILE)
held = held_bytes(source, read_weight_refs(source, read_config(source)), FILE.nbytes)
print(growth.bytes, held, max(info.nbytes for info in source.tensors.values()))
"""


@pytest.mark.slow
def test_a_few_layers_of_an_8b_model(tmp_path: Path) -> None:
    build("llama", **EIGHT_B).to(torch.bfloat16).save_pretrained(tmp_path, max_shard_size="500MB")
    ids = token_ids(20, EIGHT_B["vocab_size"])
    expected = reference_logits(tmp_path, ids)
    stepper = Stepper(tmp_path, ctx=64)
    for chunks in ([20], [16, 1, 3]):
        found = difference(stepper.logits(ids, chunks), expected)
        assert found.within(max_abs=1e-3, nmse=1e-9), found  # sums of 14336 products


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_loading_holds_the_result_and_one_tensor(tmp_path: Path) -> None:
    build("llama", **HALF_B).to(torch.float16).save_pretrained(tmp_path)
    save_tokenizer(tmp_path, HALF_B["vocab_size"])
    path = convert(tmp_path, tmp_path / "model.gguf", "F16")
    command = [sys.executable, "-c", MEASURE, str(path)]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    output = subprocess.check_output(command, text=True, timeout=120, env=paths)
    peak, held, largest = map(int, output.split())
    assert held * 0.9 < peak < held + 1.2 * largest + (8 << 20), (peak, held, largest)
