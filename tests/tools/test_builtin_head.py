"""The head of the built-in model: its file computes what was trained, and guesses most of what the body says."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from localrun_testing.drafts import Guessing
from localrun_testing.small_model import finish, greedy

from localrun.backends.cpu.library import load_library
from localrun.base.request import LoadOptions, Request
from localrun.client.local import LocalClient
from localrun.engine.generation import GenerationState
from localrun.engine.load import LoadedModel, load
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.fit.draft_memory import draft_memory
from localrun.formats.detect import open_model_file
from tools.train_builtin_head import BODY, Body, Head, save

pytestmark = pytest.mark.skipif(load_library() is None, reason="no native library")
ASKED = ("Hello!", "What is the KV cache?", "Tell me a story about Mia.", "What is 12 + 7?", "How do I get a model?")


class OneDeep(Guessing):
    """One guess a step."""

    def wish(self, sequences: Sequence[GenerationState], decoding: Sequence[object], rows: int) -> int:
        return min(1, rows)


def opened(draft: str, depths: Guessing | None = None) -> LoadedModel:
    model = load(LoadOptions(BODY, draft=draft, ctx=512, threads=1, kv="f32"))
    if depths is not None:
        assert model.engine.scheduler.speculation is not None
        model.engine.scheduler.speculation.depths, model.engine.scheduler.speculation.new_drafter = depths, None
    return model


def answers(model: LoadedModel) -> list[GenerationState]:
    """Greedy answers to all that is asked."""
    ends = frozenset(model.text.tokenizer.eog_ids)
    prompts = [model.text.prepare(Request(messages=({"role": "user", "content": one},)), 0).ids for one in ASKED]
    return [finish(model.engine.submit(greedy(list(ids), 60, ends))) for ids in prompts]


def test_a_file_guesses_as_the_head_that_was_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random weights: shapes, halves, norms and the order of rows for rotary positions are those of the training."""
    torch.manual_seed(3)
    body = Body(BODY)
    head = Head(body)
    save(tmp_path / "head.gguf", head, body)
    model = opened(str(tmp_path / "head.gguf"), Guessing())
    assert model.engine.scheduler.speculation is not None
    guesses = model.engine.scheduler.speculation.model
    assert guesses is not None
    found, plain = list[tuple[list[int], tuple[int, ...]]](), guesses.draft

    def watched(sequences: Sequence[GenerationState], depth: int) -> list[DraftedTokens]:
        drafts = plain(sequences, depth)
        found.extend((list(s.token_ids), draft.tokens) for s, draft in zip(sequences, drafts, strict=True))
        return drafts

    monkeypatch.setattr(guesses, "draft", watched)
    answers(model)
    right = total = 0
    client = LocalClient.over(model)
    for ids, draft in found[::7]:
        expected = rolled_out(head, body, ids, torch.tensor(client.hidden(ids)), len(draft))
        right += sum(a == b for a, b in zip(expected, draft, strict=True))
        total += len(draft)
    model.close()
    assert total > 20
    assert right >= 0.9 * total, (right, total)


@torch.no_grad()
def rolled_out(head: Head, body: Body, ids: list[int], hidden: torch.Tensor, depth: int) -> list[int]:
    """The likeliest tokens after a text, by the body's hidden rows, then by the head's own."""
    ids, rows = list(ids), hidden[:-1]
    for _ in range(depth):
        out = head(body.embed[torch.tensor(ids[1:])][None], rows[None])[0, -1:]
        ids.append(int((out @ body.output.T).argmax()))
        rows = torch.cat([rows, out])
    return ids[len(ids) - depth :]


def test_a_head_beside_its_model_is_found_and_counted(tmp_path: Path) -> None:
    body, beside = Body(BODY), tmp_path / "tiny-mtp.gguf"
    save(beside, Head(body), body)
    path = tmp_path / "tiny.gguf"
    path.write_bytes(BODY.read_bytes())
    source = open_model_file(path)
    for draft in ("mtp", str(beside)):
        model = load(LoadOptions(path, draft=draft, ctx=256, threads=1))
        assert model.plan.draft is not None
        counted, n_bytes = draft_memory(draft, source)
        assert counted is not None
        assert len(counted.layers) == len(model.plan.draft.config.layers) == 1
        assert model.draft_bytes == n_bytes > 900_000
        model.close()
    assert draft_memory("auto", source) == (None, 0)
    assert load_without(path) == 0


def load_without(path: Path) -> int:
    """Bytes of what drafts in a load that asks for nothing."""
    model = load(LoadOptions(path, ctx=256, threads=1))
    model.close()
    return model.draft_bytes


def test_the_shipped_head_is_right_about_most_tokens() -> None:
    """`--draft mtp` finds it beside the body; answers are the same."""
    plain, drafting = opened("off"), opened("mtp", OneDeep())
    try:
        before, after = answers(plain), answers(drafting)
    finally:
        plain.close()
        drafting.close()
    assert [one.token_ids for one in before] == [one.token_ids for one in after]
    n_drafted, n_accepted = (sum(getattr(one.figures, key) for one in after) for key in ("n_drafted", "n_accepted"))
    assert n_accepted > 0.6 * n_drafted > 30
