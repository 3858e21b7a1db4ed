"""`localrun explain`: what the KV cache does on this machine, measured while one waits."""

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from localrun.base.errors import UsageError
from localrun.base.events import Completion, Done
from localrun.base.request import Request, Sampling
from localrun.cli.console import write, write_json
from localrun.cli.groups import JsonSwitch, LoadOptionFlags, ModelOptions
from localrun.cli.session import find_model, open_client

if TYPE_CHECKING:
    from localrun.client.local import LocalClient

NAMES = ("cache", "phases", "memory", "reuse", "window", "batch", "price")  # of diagnose/explain/topics.py
Topic = Annotated[
    str | None,
    typer.Argument(metavar="[TOPIC]", show_default=False, help=", ".join(NAMES), autocompletion=lambda: list(NAMES)),
]


def explain(topic: Topic = None, *, model: ModelOptions, load: LoadOptionFlags, json: JsonSwitch = False) -> int:
    """What the KV cache does here: measured numbers beside their formulas, one topic or all of them."""
    if topic is not None and topic not in NAMES:
        raise UsageError(f"there is no topic {topic!r}", f"one of {', '.join(NAMES)}")
    stored = find_model(model)
    with open_client(stored, load) as client:
        from localrun.diagnose.explain.draw import drawn
        from localrun.diagnose.explain.topics import TOPICS

        lessons = []
        for number, name in enumerate([topic] if topic else NAMES):
            lesson = TOPICS[name](client.model, partial(ask, client))
            lessons.append(asdict(lesson))
            if not json:
                write("\n\n" * bool(number) + "\n".join(drawn(lesson)) + "\n")
    if json:
        write_json({"model": client.info.name, "backend": client.info.backend, "topics": lessons})
    return 0


def ask(client: "LocalClient", text: str) -> Completion:
    """A few tokens after `text`."""
    request = Request(prompt=text, sampling=Sampling(temperature=0.0), max_tokens=16)
    return next(event.completion for event in client.generate(request) if isinstance(event, Done))
