"""Logprobs of prompts are those of transformers, and their mean is what `perplexity` finds."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from localrun_testing.oracle import token_ids
from localrun_testing.tiny_models import VOCAB_SIZE

from localrun.base.events import PromptLogprobs, TokenLogprob
from localrun.base.request import LoadOptions, Request
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.diagnose.perplexity import chunks_of, perplexity

TEXT = "Why is the second token faster than the first? The first has to read the whole prompt. " * 20


def logprobs_of(client: LocalClient, ids: Sequence[int]) -> list[TokenLogprob]:
    request = Request(prompt_ids=tuple(ids), prompt_logprobs=5, max_tokens=1)
    return [token for event in client.generate(request) if isinstance(event, PromptLogprobs) for token in event.tokens]


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_logprobs_are_those_of_transformers(
    name: str, tiny_folder: Callable[..., Path], reference: Callable[[str, str, Sequence[int]], torch.Tensor]
) -> None:
    ids = token_ids(200, VOCAB_SIZE)
    wanted = torch.log_softmax(reference(name, "safetensors", ids).double(), dim=-1)
    with LocalClient(LoadOptions(tiny_folder(name), backend="reference", kv="f32", ctx=256)) as client:
        first, *found = logprobs_of(client, ids)
    assert (first.token_id, first.logprob, len(found)) == (ids[0], None, len(ids) - 1)
    for row, token in enumerate(found):
        assert token.logprob == pytest.approx(float(wanted[row, token.token_id]), abs=1e-4)
        best = wanted[row].topk(5)
        assert [top.logprob for top in token.top] == pytest.approx(best.values.tolist(), abs=1e-4)
        assert token.top[0].token_id == int(best.indices[0])


def test_their_mean_is_the_nll_of_perplexity() -> None:
    with LocalClient(LoadOptions(resource("builtin/localrun-tiny.gguf"), ctx=256)) as client:
        measured = perplexity(client.model, TEXT, ctx=128)
        losses: list[float] = []
        for ids in chunks_of(client.model.text.tokenizer, TEXT, 128):
            losses += [-token.logprob for token in logprobs_of(client, ids)[65:] if token.logprob is not None]
    assert math.fsum(losses) / len(losses) == measured.nll
    assert len(losses) == measured.tokens
