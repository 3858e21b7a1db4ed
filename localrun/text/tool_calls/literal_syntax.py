"""Calls written as a language has them: `f(city='Paris')` as in Python, and `call:f{city:…}` of Gemma."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localrun.text.tool_calls.incoming import BrokenCallError, Incoming, Waiting
from localrun.text.tool_calls.syntax import MAX_NAME, CallSink, Spell, Tools, WrittenCall, tokens_among
from localrun.text.tool_calls.values import ValueReader

_NAME = re.compile(r"[\w.:/-]+")


@dataclass(frozen=True, slots=True)
class PythonSyntax:
    """A list of calls of Python's between `open` and `close`. Without `open` only tools that there are count."""

    open: str
    close: str

    @property
    def opens(self) -> tuple[str, ...]:
        return (self.open,) if self.open else ("[",)

    @property
    def marks(self) -> tuple[str, ...]:
        return self.open, self.close

    def spelled(self, spell: Spell) -> "PythonSyntax":
        return replace(self, open=spell(self.open), close=spell(self.close))

    def read(self, opener: str, incoming: Incoming, sink: CallSink, tools: Tools) -> Waiting[None]:
        if self.open:
            yield from incoming.expect("[")
        reader = ValueReader(incoming, marks=tokens_among(self.marks))
        while True:
            name = (yield from incoming.upto(("(", *tokens_among(self.marks)), MAX_NAME)).strip()
            if not _NAME.fullmatch(name) or (not self.open and name not in tools):
                raise BrokenCallError
            sink.begin(name)
            yield from reader.object("(", ")", "=", sink.arguments)
            sink.end()
            if (yield from incoming.expect(",", "]")) == "]":
                break
        if self.close:
            yield from incoming.skip_space()
            yield from incoming.match((self.close,))

    def write(self, calls: Sequence[WrittenCall]) -> str:
        return f"{self.open}[{', '.join(map(_python_call, calls))}]{self.close}"


def _python_call(call: WrittenCall) -> str:
    return f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"


@dataclass(frozen=True, slots=True)
class GemmaSyntax:
    """`call:NAME{key:value,…}` between `open` and `close`; strings are between two `quote`."""

    open: str = "<|tool_call>"
    close: str = "<tool_call|>"
    quote: str = '<|"|>'

    @property
    def opens(self) -> tuple[str, ...]:
        return (self.open,)

    @property
    def marks(self) -> tuple[str, ...]:
        return self.open, self.close, self.quote

    def spelled(self, spell: Spell) -> "GemmaSyntax":
        return GemmaSyntax(*map(spell, self.marks))

    def read(self, opener: str, incoming: Incoming, sink: CallSink, tools: Tools) -> Waiting[None]:
        marks = tokens_among((self.open, self.close))
        reader = ValueReader(incoming, (self.quote, '"'), marks)
        yield from incoming.expect("call:")
        name = (yield from incoming.upto(("{", *marks), MAX_NAME)).strip()
        if not name:
            raise BrokenCallError
        sink.begin(name)
        yield from reader.object("{", "}", ":", sink.arguments)
        sink.end()
        yield from incoming.skip_space()
        yield from incoming.match((self.close,))

    def write(self, calls: Sequence[WrittenCall]) -> str:
        return "".join(f"{self.open}call:{call.name}{self._value(call.arguments)}{self.close}" for call in calls)

    def _value(self, value: Any) -> str:
        if isinstance(value, Mapping):
            return f"{{{','.join(f'{key}:{self._value(item)}' for key, item in value.items())}}}"
        if isinstance(value, list):
            return f"[{','.join(map(self._value, value))}]"
        if isinstance(value, str):
            return f"{self.quote}{value}{self.quote}"
        return {True: "true", False: "false", None: "null"}.get(value, str(value)) if _is_word(value) else str(value)


def _is_word(value: Any) -> bool:
    return value is None or isinstance(value, bool)
