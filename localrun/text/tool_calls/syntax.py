"""Parts that all forms of calls have in common."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from localrun.text.tool_calls.incoming import Incoming, Waiting

MAX_NAME = 256  # characters
MAX_ID = 256


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call of a conversation, to be written as its model would have."""

    id: str
    name: str
    arguments: Mapping[str, Any]


class CallSink(Protocol):
    """Is told of a call as it is read."""

    def begin(self, name: str, id: str = "") -> None:
        """A call begins."""
        ...

    def arguments(self, text: str) -> None:
        """More of its arguments, as JSON."""
        ...

    def end(self) -> None:
        """The call is complete."""
        ...


class Tools:
    """The tools of a request, as far as a parser has to know them."""

    def __init__(self, tools: Sequence[Mapping[str, Any]] = ()) -> None:
        functions = [function for tool in tools if isinstance(function := tool.get("function", tool), Mapping)]
        self.parameters: dict[str, Mapping[str, Any]] = {
            str(function["name"]): _mapping(function.get("parameters")) for function in functions if "name" in function
        }

    def __contains__(self, name: str) -> bool:
        return name in self.parameters

    def kind(self, name: str, key: str) -> str:
        """The type of an argument in its schema; empty where it does not say, or says several."""
        schema = _mapping(_mapping(_mapping(self.parameters.get(name)).get("properties")).get(key))
        kinds = _kinds(schema) - {"null"}
        return kinds.pop() if len(kinds) == 1 else ""


class Syntax(Protocol):
    """A form of calls. `opens` begin a section of them, `marks` are all texts that may be tokens of their own."""

    @property
    def opens(self) -> tuple[str, ...]: ...

    @property
    def marks(self) -> tuple[str, ...]: ...

    def spelled(self, spell: "Spell") -> "Syntax":
        """The same form with its marks as they are in the stream."""
        ...

    def read(self, opener: str, incoming: Incoming, sink: CallSink, tools: Tools) -> Waiting[None]:
        """Read a section whose opener was taken. Raises BrokenCallError where what comes is none."""
        ...

    def write(self, calls: Sequence[WrittenCall]) -> str:
        """Calls as a model writes them."""
        ...


class Spell(Protocol):
    """How a mark is written in the stream."""

    def __call__(self, tag: str, /) -> str: ...


def tokens_among(texts: Iterable[str]) -> frozenset[str]:
    """The stand-ins of tokens in marks as they are spelled in the stream: these characters are in no text."""
    return frozenset(char for text in texts for char in text if "\ud800" <= char <= "\udfff")


def dumps(value: Any) -> str:
    """JSON as templates write it."""
    return json.dumps(value, ensure_ascii=False)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    """The types that a schema allows; empty for any."""
    kind, values = schema.get("type"), schema.get("enum")
    if isinstance(kind, str | list):
        return {kind} if isinstance(kind, str) else set(filter(None, map(str, kind)))
    if isinstance(values, list) and values:
        return {"string" if isinstance(value, str) else "null" if value is None else "any" for value in values}
    several = [one for name in ("anyOf", "oneOf") if isinstance(found := schema.get(name), list) for one in found]
    kinds = [_kinds(_mapping(one)) for one in several[:64]]
    return set().union(*kinds) if all(kinds) else set()
