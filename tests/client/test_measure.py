"""Topics of `explain` measured in the worker: with progress, a way out, and the chat's cache as it was."""

from collections.abc import Iterator

import pytest
from localrun_testing import REPOSITORY

from localrun.base.errors import EngineError
from localrun.base.events import Completion, Done
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.client.local import LocalClient
from localrun.client.measure import ANSWER
from localrun.client.worker.client import WorkerClient
from localrun.diagnose.explain.draw import drawn

BUILTIN = REPOSITORY / "localrun" / "builtin" / "localrun-tiny.gguf"
TURN = Request(
    messages=({"role": "user", "content": "Hello! What is a KV cache?"},),
    sampling=Sampling(temperature=0.0),
    max_tokens=8,
)


@pytest.fixture(scope="module")
def client() -> Iterator[WorkerClient]:
    with WorkerClient(LoadOptions(BUILTIN, ctx=512)) as opened:
        yield opened


def answer(client: WorkerClient) -> Completion:
    return next(event.completion for event in client.generate(TURN) if isinstance(event, Done))


@pytest.mark.parametrize("topic", ["cache", "memory", "reuse"])
def test_the_chat_finds_its_cache_as_it_was(client: WorkerClient, topic: str) -> None:
    answer(client)
    before = answer(client)
    assert before.cached_tokens
    report = client.explain(topic, lambda steps: None)
    after = answer(client)
    assert report.topic == topic
    assert "\n".join(drawn(report))
    for figure in report.figures:
        if figure.expected is not None and figure.measured is not None and not figure.at_best:
            assert figure.measured == pytest.approx(figure.expected)
    assert (after.cached_tokens, after.token_ids) == (before.cached_tokens, before.token_ids)


def test_a_measurement_can_be_cancelled(client: WorkerClient) -> None:
    heard: list[int] = []

    def watch(steps: int) -> None:
        heard.append(steps)
        if steps:
            raise EngineError("enough")

    with pytest.raises(EngineError, match="enough"):
        client.explain("phases", watch)
    assert heard[-1] > 0
    assert answer(client).completion_tokens > 0


def test_steps_of_answers_are_watched_too() -> None:
    heard: list[int] = []
    with LocalClient(LoadOptions(BUILTIN, ctx=512)) as opened:
        opened.explain("reuse", heard.append)
    assert heard == list(range(1, len(heard) + 1))
    assert len(heard) > ANSWER
