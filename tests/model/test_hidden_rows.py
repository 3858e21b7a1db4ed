"""Hidden rows of a step, as a named result beside its logits: those of transformers, over any cutting into steps."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from localrun_testing.oracle import difference, token_ids, transformers
from localrun_testing.stepper import Stepper, random_chunks
from localrun_testing.tiny_models import VOCAB_SIZE

from localrun.backends.cpu.library import load_library

NATIVE = pytest.mark.skipif(load_library() is None, reason="no native library")


@pytest.mark.parametrize("threads", [0, pytest.param(2, marks=NATIVE)])
@pytest.mark.parametrize("name", ["llama", "gemma3", "qwen3.5", "qwen3.5-moe"])
def test_rows_after_the_last_norm(name: str, threads: int, tiny_folder: Callable[..., Path]) -> None:
    folder, ids = tiny_folder(name), token_ids(90, VOCAB_SIZE)
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    with torch.no_grad():
        expected = model.eval()(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state[0]
    found = Stepper(folder, native_threads=threads).hidden(ids, random_chunks(90, seed=2))
    assert difference(found, expected).nmse < 1e-8
