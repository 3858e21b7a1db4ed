"""Measure a topic of `explain` on a loaded model, in the process that holds it."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from localrun.base.events import Completion, Done
from localrun.base.request import Request, Sampling
from localrun.client.interface import EngineClient

if TYPE_CHECKING:
    from localrun.diagnose.explain.topic_report import TopicReport
    from localrun.engine.load import LoadedModel

ANSWER = 16  # tokens


@runtime_checkable
class Explainer(Protocol):
    """A client that measures. `watch` gets the number of steps so far; an exception from it cancels."""

    def explain(self, topic: str, watch: Callable[[int], None]) -> "TopicReport": ...


def measure(
    model: "LoadedModel", topic: str, watch: Callable[[int], None], client_of: Callable[["LoadedModel"], EngineClient]
) -> "TopicReport":
    """Measure on the same weights with a cache of its own, so that chats keep theirs. Raises LocalrunError."""
    from localrun.diagnose.explain.isolated_engine import isolated_engine
    from localrun.diagnose.explain.topics import TOPICS

    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1
        watch(steps)

    with isolated_engine(model, count) as other:
        count()
        return TOPICS[topic](other, partial(ask, client_of(other)))


def ask(client: EngineClient, text: str) -> Completion:
    """A few tokens after `text`."""
    request = Request(prompt=text, sampling=Sampling(temperature=0.0), max_tokens=ANSWER)
    return next(event.completion for event in client.generate(request) if isinstance(event, Done))
