"""Two models side by side: what they say, against loops over logits and answers of the engine itself."""

import json
import math
from pathlib import Path

import pytest
import torch
from localrun_testing.schemas import check
from localrun_testing.tiny_models import save

from localrun.base.errors import UsageError
from localrun.base.events import Done
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.cli.app import run_command_line
from localrun.client.local import LocalClient
from localrun.diagnose.compare import PASSAGE, QUESTION, compare
from localrun.engine.scratch_runs import ScratchRuns


def opened(folder: Path, precision: str) -> LocalClient:
    return LocalClient(LoadOptions(folder, precision=precision, ctx=512, threads=1))


def log_p(client: LocalClient, ids: list[int]) -> torch.Tensor:
    """f64 [n, vocabulary] of the next token at each position, a token at a time."""
    with ScratchRuns(client.model.engine.runner, client.model.engine.store) as run:
        rows = [torch.tensor(run.feed([token], at, [0]).row(0)) for at, token in enumerate(ids)]
    return torch.log_softmax(torch.stack(rows).double(), dim=1)


def greedy(client: LocalClient) -> tuple[int, ...]:
    request = Request(prompt=QUESTION, sampling=Sampling(temperature=0.0), max_tokens=64)
    return next(event.completion.token_ids for event in client.generate(request) if isinstance(event, Done))


def test_texts_of_two_precisions_are_compared(tmp_path: Path) -> None:
    folder = save("qwen3", tmp_path / "m", dtype=torch.bfloat16)
    with opened(folder, "bf16") as first, opened(folder, "int4") as second:
        found = compare(first.model, second.model, prompt=70, generate=6, repeats=2)
        ids = first.model.text.tokenizer.encode(PASSAGE, bos=True)[:512]
        p, q = log_p(first, ids), log_p(second, ids)
        answers = greedy(first), greedy(second)
    words = found.words
    assert words is not None
    rows = range(1, len(ids) - 1)  # the last has no next
    assert words.scored_tokens == len(rows)
    divergences = [sum(math.exp(a) * (a - b) for a, b in zip(p[n].tolist(), q[n].tolist(), strict=True)) for n in rows]
    assert words.kld_mean == pytest.approx(sum(divergences) / len(rows), rel=1e-3)
    assert words.kld_mean > 1e-6
    assert words.same_top1 == pytest.approx(sum(int(p[n].argmax() == q[n].argmax()) for n in rows) / len(rows))
    common = next((n for n, (a, b) in enumerate(zip(*answers, strict=False)) if a != b), None)
    if common is not None:  # answers of the engine end at a stop token
        assert words.first_difference == common
    a, b = found.sides
    assert (a.precision, b.precision) == ("bf16", "int4")
    assert b.memory[0].measured == b.memory[0].predicted < a.memory[0].measured
    assert found.decode_ratio is not None
    assert found.decode_ratio > 0
    assert a.prefill_tps is not None


def test_a_model_says_what_it_says() -> None:
    with LocalClient(LoadOptions(Path(resource("builtin/localrun-tiny.gguf")), ctx=1024, threads=1)) as client:
        found = compare(client.model, client.model, prompt=0, generate=4, repeats=1)
        with pytest.raises(UsageError, match="do not fit the context"):
            compare(client.model, client.model, prompt=4096, generate=0, repeats=1)
    assert found.words is not None
    assert (found.words.kld_mean, found.words.same_top1, found.words.first_difference) == (0.0, 1.0, None)
    assert (found.prefill_ratio, found.sides[0].prefill_tps) == (None, None)


def test_other_vocabularies_are_compared_by_speed_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save("qwen3", tmp_path / "m", dtype=torch.bfloat16)
    sizes = ("-p", "0", "-n", "4", "-r", "1", "--threads", "1")
    assert run_command_line(["bench", "--compare", "builtin", str(folder), *sizes]) == 0
    text = capsys.readouterr().out
    assert "Their vocabularies differ" in text
    assert "decode" in text
    assert run_command_line(["bench", str(folder), "--compare", "int8", "int2", *sizes, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    check(answer, "bench --compare")
    assert [side["precision"] for side in answer["sides"]] == ["int8", "int2"]
    assert answer["words"]["kld_mean"] > 0
    assert run_command_line(["bench", "--compare", "builtin", "nonsense"]) == 3
    assert run_command_line(["bench", "--compare", "builtin", "builtin", "-d", "64"]) == 2
