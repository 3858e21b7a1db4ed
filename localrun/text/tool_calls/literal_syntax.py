"""Calls written as in a language: `f(city='Paris')` of Python, and `call:f{city:…}` of Gemma."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.text.tool_calls.held_tool import HeldTool
from localrun.text.tool_calls.incoming import BrokenCallError, Incoming, Waiting
from localrun.text.tool_calls.lark import LarkRules, one_of, repeated, sequence
from localrun.text.tool_calls.literal_values import LiteralStyle, LiteralValues
from localrun.text.tool_calls.syntax import MAX_NAME, CallSink, Spell, Tools, WrittenCall, tokens_among
from localrun.text.tool_calls.values import ValueReader

_NAME = re.compile(r"[\w.:/-]+")
_PYTHON = LiteralStyle({True: "True", False: "False", None: "None"}, ("'", '"'), ", ", ": ", has_bare_keys=False)
_WORDS = {True: "true", False: "false", None: "null"}


@dataclass(frozen=True, slots=True)
class PythonSyntax:
    """A list of Python calls between `open` and `close`. Without `open` only existing tools count."""

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

    def grammar(self, rules: LarkRules, tools: Sequence[HeldTool], is_single: bool) -> str:
        written = []
        for tool in tools:
            members = LiteralValues(rules, tool, _PYTHON).members(tool.schema, "=", is_bare=True)
            written.append(sequence(rules.text(f"{tool.name}("), f"({members})", '")"'))
        calls = repeated(rules.rule(one_of(written)), '", "', is_single)
        return sequence(rules.text(f"{self.open}["), calls, rules.text(f"]{self.close}"))


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

    def grammar(self, rules: LarkRules, tools: Sequence[HeldTool], is_single: bool) -> str:
        style = LiteralStyle(_WORDS, (self.quote,), ",", ":", has_bare_keys=True)
        opens, closes, written = rules.text(f"{self.open}call:"), rules.text(f"}}{self.close}"), []
        for tool in tools:
            members = LiteralValues(rules, tool, style).members(tool.schema, ":", is_bare=True)
            written.append(sequence(opens, rules.text(f"{tool.name}{{"), f"({members})", closes))
        return repeated(rules.rule(one_of(written)), "", is_single)

    def _value(self, value: Any) -> str:
        if isinstance(value, Mapping):
            return f"{{{','.join(f'{key}:{self._value(item)}' for key, item in value.items())}}}"
        if isinstance(value, list):
            return f"[{','.join(map(self._value, value))}]"
        if isinstance(value, str):
            return f"{self.quote}{value}{self.quote}"
        return _WORDS[value] if value is None or isinstance(value, bool) else str(value)
