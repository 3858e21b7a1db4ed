"""Parts shared by all forms of calls."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from localrun.base.dataclass import dataclass
from localrun.base.tool_choice import functions_of
from localrun.text.tool_calls.held_tool import HeldTool
from localrun.text.tool_calls.incoming import Incoming, Waiting
from localrun.text.tool_calls.lark import LarkRules
from localrun.text.tool_calls.schema_kinds import kinds_of

MAX_NAME = 256  # characters
MAX_ID = 256
SOME_ID = "/[A-Za-z0-9]{9}/"  # that any dialect takes


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call of a conversation, to be written in the form of its model."""

    id: str
    name: str
    arguments: Mapping[str, Any]


class CallSink(Protocol):
    """Receiver of a call as it is read."""

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
    """The tools of a request, as far as a parser needs them. `takes` says whether a call holds to its schema."""

    def __init__(
        self, tools: Sequence[Mapping[str, Any]] = (), takes: Callable[[WrittenCall], bool] = lambda call: True
    ) -> None:
        self.takes = takes
        functions = functions_of(tools)
        self.parameters: dict[str, Mapping[str, Any]] = {
            str(function["name"]): _mapping(function.get("parameters")) for function in functions if "name" in function
        }

    def __contains__(self, name: str) -> bool:
        return name in self.parameters

    def in_order(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments in the order of their schema, others behind."""
        named = _mapping(_mapping(self.parameters.get(name)).get("properties"))
        return {key: arguments[key] for key in (*named, *arguments) if key in arguments}

    def kind(self, name: str, key: str) -> str:
        """The type of an argument in its schema; empty where it has none, or several."""
        schema = _mapping(self.parameters.get(name))
        kinds = kinds_of(schema, _mapping(schema.get("properties")).get(key)) - {"null"}
        return kinds.pop() if len(kinds) == 1 else ""


class Syntax(Protocol):
    """A form of calls. `opens` begin a section of them, `marks` are all texts that may be tokens of their own."""

    @property
    def opens(self) -> tuple[str, ...]: ...

    @property
    def marks(self) -> tuple[str, ...]: ...

    def spelled(self, spell: "Spell") -> "Syntax":
        """The same form with its marks as they appear in the stream."""
        ...

    def read(self, opener: str, incoming: Incoming, sink: CallSink, tools: Tools) -> Waiting[None]:
        """Read a section whose opener was taken. Raises BrokenCallError where the text is not one."""
        ...

    def write(self, calls: Sequence[WrittenCall]) -> str:
        """Calls as a model writes them."""
        ...

    def grammar(self, rules: LarkRules, tools: Sequence[HeldTool], is_single: bool) -> str:
        """An expression of Lark for calls of these tools; for one call with `is_single`."""
        ...


class Spell(Protocol):
    """Function that spells a mark as in the stream."""

    def __call__(self, tag: str, /) -> str: ...


def tokens_among(texts: Iterable[str]) -> frozenset[str]:
    """The stand-ins of tokens in marks as spelled in the stream: these characters are in no text."""
    return frozenset(char for text in texts for char in text if "\ud800" <= char <= "\udfff")


def dumps(value: Any) -> str:
    """JSON as templates write it."""
    return json.dumps(value, ensure_ascii=False)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
