"""`LLM.hidden`: the last hidden state of transformers, however the text is cut into steps."""

from pathlib import Path

import numpy as np
import pytest
import torch
from localrun_testing.oracle import token_ids, transformers
from localrun_testing.tiny_models import VOCAB_SIZE, save

import localrun
from localrun.base.errors import UsageError


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3", "qwen3.5"])
def test_hidden_rows_are_the_last_hidden_state(name: str, tmp_path: Path) -> None:
    folder = save(name, tmp_path / "m")
    body = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    with localrun.LLM(folder, kv="f32", threads=1) as llm:
        for n in (1, 70, 200, 130):  # the last is in the cache as the beginning of the one before
            ids = [int(one) for one in token_ids(n, VOCAB_SIZE)]
            with torch.no_grad():
                expected = body(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state[0].numpy()
            found = llm.hidden(ids)
            assert found.shape == expected.shape
            assert found.dtype == np.float32
            assert np.abs(found - expected).max() < 2e-3 * np.abs(expected).max()


def test_a_text_begins_with_bos_and_answers_go_on() -> None:
    with localrun.LLM("builtin", ctx=256) as llm:
        before = llm.generate("Hello!", temperature=0, max_tokens=8).text
        rows = llm.hidden("The second token comes from the cache.")
        assert rows.ndim == 2
        assert np.isfinite(rows).all()
        assert (llm.hidden("The second token comes from the cache.") == rows).all()
        assert llm.generate("Hello!", temperature=0, max_tokens=8).text == before
        with pytest.raises(UsageError, match="text is 3"):
            llm.hidden(3)  # type: ignore[arg-type]
        with pytest.raises(UsageError):
            llm.hidden([])
        with pytest.raises(UsageError):
            llm.hidden([10**9])
