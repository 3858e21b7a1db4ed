"""`localrun explain`: the effect of the KV cache, measured on this machine or predicted for any model size."""

from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from localrun.base.errors import UsageError
from localrun.cli.console import note, show_progress, write, write_json
from localrun.cli.groups import JsonSwitch, LoadOptionFlags, ModelOptions, ServerOption, switch
from localrun.cli.server_choice import on_server
from localrun.cli.session import find_model, open_measured
from localrun.client.choice import ModelChoice
from localrun.client.remote.endpoint import Endpoint
from localrun.diagnose.explain.words import WORDS

if TYPE_CHECKING:
    from localrun.diagnose.explain.topic_report import TopicReport

_ANY = "Any model, by formula"
Topic = Annotated[
    str | None,
    typer.Argument(metavar="[TOPIC]", show_default=False, help=", ".join(WORDS), autocompletion=lambda: list(WORDS)),
]
SizeOption = Annotated[
    str | None,
    typer.Option(
        "--size",
        metavar="13B",
        help="predict by formula for a model of 1B, 3B, 7B, 8B, 13B, 32B or 70B; nothing is loaded",
        rich_help_panel=_ANY,
    ),
]
HeadsOption = Annotated[
    str | None, typer.Option("--heads", metavar="mha|gqa|mqa", help="with this kind of KV heads", rich_help_panel=_ANY)
]
ChatsOption = Annotated[
    int, typer.Option("--chats", metavar="N", min=1, max=4096, help="chats that run side by side", rich_help_panel=_ANY)
]
NoCache = Annotated[bool, switch("--no-kv-cache", "predict without a KV cache", _ANY)]


def explain(
    topic: Topic = None,
    *,
    model: ModelOptions,
    load: LoadOptionFlags,
    size: SizeOption = None,
    heads: HeadsOption = None,
    chats: ChatsOption = 1,
    no_kv_cache: NoCache = False,
    server: ServerOption = None,
    json: JsonSwitch = False,
) -> int:
    """Measure what the KV cache does here: numbers beside their formulas, one topic or all of them."""
    if topic is not None and topic not in WORDS:
        raise UsageError(f"there is no topic {topic!r}", f"one of {', '.join(WORDS)}")
    names = [topic] if topic else [*WORDS]
    if size is not None and server is not None:
        raise UsageError("--size predicts for no particular server", "leave one out")
    if size is not None:
        return predict(names, size, model, load, heads, chats, not no_kv_cache, json)
    if heads or chats > 1 or no_kv_cache:
        raise UsageError("--heads, --chats and --no-kv-cache need --size", "name one: --size 8B")
    if server is not None:
        return explain_server(
            on_server(server, model.model, {"precision": model.precision, **asdict(load)}), topic, json
        )
    stored = find_model(model)
    with open_measured(stored, load) as client:
        from localrun.client.measure import ask
        from localrun.diagnose.explain.topics import TOPICS

        reports = []
        for number, name in enumerate(names):
            reports.append(TOPICS[name](client.model, partial(ask, client)))
            if not json:
                show(reports[-1], number)
    if json:
        write_json({"model": client.info.name, "backend": client.info.backend, "topics": [*map(asdict, reports)]})
    return 0


def predict(
    names: list[str],
    size: str,
    model: ModelOptions,
    load: LoadOptionFlags,
    heads: str | None,
    chats: int,
    cached: bool,
    json: bool,
) -> int:
    """Predict the same topics by formula, for a model that need not be on disk."""
    from localrun.backends.registry import usual_backend, usual_memory
    from localrun.diagnose.predict.sizes import SIZES
    from localrun.diagnose.predict.times import Times
    from localrun.diagnose.predict.topics import PREDICTED
    from localrun.diagnose.predict.what_if import HEADS, PRECISIONS, WhatIf
    from localrun.fit.machine_rates import machine_rates
    from localrun.fit.weights import type_of

    if model.model:
        raise UsageError("--size predicts for no particular model", "leave -m out, or --size")
    chosen = SIZES[named(size, SIZES, "size")]
    kind = next(one for one in HEADS if one == named(heads, HEADS, "kind of heads")) if heads else None
    weights = "INT4" if model.precision == "auto" else model.precision.upper()
    if weights not in PRECISIONS and type_of(weights) is None:
        raise UsageError(
            f"there is no precision {weights}", f"one of {', '.join(PRECISIONS)}, or a type such as Q4_K_M"
        )
    codec = "f16" if load.kv in (None, "auto") else str(load.kv)
    what = WhatIf(chosen, weights, kind, codec, load.ctx or 8192, load.window, chats, cached)
    times = Times(what, machine_rates(), usual_memory().available)
    reports = [PREDICTED[name](times) for name in names]
    if json:
        title = f"{chosen.name} {weights}, as {chosen.of}"
        write_json({"model": title, "backend": usual_backend().name, "topics": [*map(asdict, reports)]})
    else:
        for number, report in enumerate(reports):
            show(report, number)
    return 0


def explain_server(choice: ModelChoice, topic: str | None, json: bool) -> int:
    """Measure what shows of a server from here. Raises UsageError for a topic that does not."""
    from localrun.client.remote.client import RemoteClient
    from localrun.client.remote.explain import ON_SERVER

    assert isinstance(choice.stored, Endpoint)
    if topic is not None and topic not in ON_SERVER:
        raise UsageError(f"{topic} does not show from outside a server", f"there are {', '.join(ON_SERVER)}")
    with RemoteClient(choice.stored) as client:
        note(client.info.notes[0])
        reports = [ON_SERVER[name](client, show_progress) for name in ([topic] if topic else ON_SERVER)]
        name = client.info.name
    show_progress("")
    if json:
        write_json({"model": name, "backend": "remote", "topics": [*map(asdict, reports)]})
        return 0
    for number, report in enumerate(reports):
        show(report, number)
    return 0


def named(value: str, known: Iterable[str], what: str) -> str:
    """Find a name in `known`, ignoring case. Raises UsageError."""
    for name in known:
        if name.lower() == value.lower():
            return name
    raise UsageError(f"there is no {what} {value!r}", f"one of {', '.join(known)}")


def show(report: "TopicReport", number: int) -> None:
    from localrun.diagnose.explain.draw import drawn

    write("\n\n" * bool(number) + "\n".join(drawn(report)) + "\n")
