"""The model of a server that an option names, instead of one on this machine."""

from collections.abc import Mapping
from dataclasses import replace

from localrun.base.errors import UsageError
from localrun.client.choice import ModelChoice
from localrun.client.remote.endpoints import server_named


def on_server(server: str, model: str | None, others: Mapping[str, object]) -> ModelChoice:
    """The choice of a model there, or of its first one; `others` are options that only a model here has.

    Raises UsageError where one of these was typed, NotFoundError for an unknown server.
    """
    if chosen := [_spelled(name) for name, value in others.items() if _is_chosen(value)]:
        raise UsageError(f"{' and '.join(chosen)}: the server decides that", "leave it out, or leave --server out")
    return ModelChoice(replace(server_named(server), model=model or ""))


def _is_chosen(value: object) -> bool:
    return value is not None and value is not False and value != "auto"


def _spelled(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
