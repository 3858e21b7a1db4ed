"""Calls that are JSON objects, single or in a list: Hermes, Mistral Nemo, Llama 3, Nemotron, Apertus and others."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.text.tool_calls.held_tool import HeldTool
from localrun.text.tool_calls.incoming import BrokenCallError, Incoming, Waiting
from localrun.text.tool_calls.lark import LarkRules, one_of, repeated, repeated_lines, sequence
from localrun.text.tool_calls.syntax import (
    MAX_ID,
    MAX_NAME,
    SOME_ID,
    CallSink,
    Spell,
    Tools,
    WrittenCall,
    dumps,
    tokens_among,
)
from localrun.text.tool_calls.values import ValueReader

_NAMES = ("name", "tool_name")
_ARGUMENTS = ("arguments", "parameters", "args")
_IDS = ("id", "call_id", "tool_call_id")


@dataclass(frozen=True, slots=True)
class JsonSyntax:
    """`{"name": …, "arguments": {…}}` between `open` and `close`.

    With `is_list` all calls are in one list, else each is between marks of its own. With `is_keyed` a call is `{name:
    {…}}`. `id` is the key of an id that the form has. `bare` is a text that may replace the opener, as one that a model
    forgot; it counts only before a call of an existing tool.
    """

    open: str
    close: str
    is_list: bool = False
    is_keyed: bool = False
    name: str = "name"
    arguments: str = "arguments"
    id: str = ""
    pad: str = ""  # beside the JSON within the marks
    between: str = ""  # two calls
    bare: tuple[str, ...] = ()
    writes_marks: bool = True

    @property
    def opens(self) -> tuple[str, ...]:
        return (*((self.open,) if self.open else ()), *self.bare)

    @property
    def marks(self) -> tuple[str, ...]:
        return self.open, self.close

    def spelled(self, spell: Spell) -> "JsonSyntax":
        return replace(self, open=spell(self.open), close=spell(self.close))

    def read(self, opener: str, incoming: Incoming, sink: CallSink, tools: Tools) -> Waiting[None]:
        known = None if opener == self.open else tools
        reader = ValueReader(incoming, marks=tokens_among(self.marks))
        first = opener if opener == "{" else (yield from incoming.skip_space())
        if first == "[":
            incoming.take(1)
            yield from self._list(reader, sink, known)
        else:
            yield from self._call(reader, sink, known, opener == "{")
            while (yield from incoming.skip_space()) in ("{", ";", ","):  # more of them between the same marks
                yield from incoming.match((";", ","))
                yield from self._call(reader, sink, known)
        if self.close:
            yield from incoming.skip_space()
            yield from incoming.match((self.close,))

    def write(self, calls: Sequence[WrittenCall]) -> str:
        written = [dumps(self._object(call)) for call in calls]
        opens, closes = (self.open + self.pad, self.pad + self.close) if self.writes_marks else ("", "")
        if self.is_list:
            return f"{opens}[{', '.join(written)}]{closes}"
        return self.between.join(f"{opens}{one}{closes}" for one in written)

    def grammar(self, rules: LarkRules, tools: Sequence[HeldTool], is_single: bool) -> str:
        one = rules.rule(one_of(self._written(rules, tool) for tool in tools))
        opens, closes = rules.text(self.open + self.pad), rules.text(self.pad + self.close)
        if self.is_list:
            return sequence(opens, '"["', repeated(one, '", "', is_single), '"]"', closes)
        if self.writes_marks:
            return repeated_lines(rules.rule(sequence(opens, one, closes)), rules.text(self.between), is_single)
        return sequence(f"({opens})?", repeated(one, rules.text(self.between), is_single))

    def _written(self, rules: LarkRules, tool: HeldTool) -> str:
        """Rule for a call of a tool."""
        arguments = rules.json(tool.schema, not tool.is_strict)
        if self.is_keyed:
            return sequence(rules.text(f"{{{dumps(tool.name)}: "), arguments, '"}"')
        before = f"{{{dumps(self.name)}: {dumps(tool.name)}, {dumps(self.arguments)}: "
        id = sequence(rules.text(f', {dumps(self.id)}: "'), SOME_ID, rules.text('"')) if self.id else ""
        return sequence(rules.text(before), arguments, id, '"}"')

    def _object(self, call: WrittenCall) -> Mapping[str, Any]:
        if self.is_keyed:
            return {call.name: call.arguments}
        with_id = {self.id: call.id} if self.id else {}
        return {self.name: call.name, self.arguments: call.arguments, **with_id}

    def _list(self, reader: ValueReader, sink: CallSink, known: Tools | None) -> Waiting[None]:
        if (yield from reader.incoming.skip_space()) == "]":
            raise BrokenCallError
        while True:
            yield from self._call(reader, sink, known)
            if (yield from reader.incoming.expect(",", "]")) == "]":
                return

    def _call(self, reader: ValueReader, sink: CallSink, known: Tools | None, is_open: bool = False) -> Waiting[None]:
        """Read one object. The arguments are passed on as they come if the name came before them."""
        if not is_open:
            yield from reader.incoming.expect("{")
        name, id, kept = "", "", "{}"
        has_begun = False
        while True:
            key = yield from reader.key(":")
            if self.is_keyed and not name:
                name = _checked(key, known)
                sink.begin(name)
                yield from _arguments(reader, sink.arguments)
                has_begun = True
            elif key in _NAMES or (key == "function" and (yield from reader.incoming.skip_space()) != "{"):
                name = _checked((yield from _text(reader, MAX_NAME)), known)
            elif key in _IDS:
                id = yield from _text(reader, MAX_ID)
            elif key in _ARGUMENTS and name:
                sink.begin(name, id)
                has_begun = True
                yield from _arguments(reader, sink.arguments)
            elif key in _ARGUMENTS:
                parts: list[str] = []
                yield from _arguments(reader, parts.append)
                kept = "".join(parts)
            else:
                yield from reader.buffered()
            if (yield from reader.incoming.expect(",", "}")) == "}":
                break
        if not name:
            raise BrokenCallError
        if not has_begun:
            sink.begin(name, id)
            sink.arguments(kept)
        sink.end()


def _checked(name: str, known: Tools | None) -> str:
    if not name or len(name) > MAX_NAME or (known is not None and name not in known):
        raise BrokenCallError
    return name


def _text(reader: ValueReader, most: int) -> Waiting[str]:
    """Read a value that is a text."""
    value = json.loads((yield from reader.buffered()))
    if not isinstance(value, str) or len(value) > most:
        raise BrokenCallError
    return value


def _arguments(reader: ValueReader, emit: Any) -> Waiting[None]:
    """Read an object, which may be written as a text or be missing."""
    first = yield from reader.incoming.skip_space()
    if first == "{":
        yield from reader.value(emit)
        return
    value = json.loads((yield from reader.buffered()))
    try:
        value = json.loads(value) if isinstance(value, str) and value.strip() else value or {}
    except (ValueError, RecursionError):
        raise BrokenCallError from None
    if not isinstance(value, dict):
        raise BrokenCallError
    emit(dumps(value))
