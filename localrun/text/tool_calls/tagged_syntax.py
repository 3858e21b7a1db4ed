"""Calls whose arguments are texts between tags: Qwen3-Coder's XML, Seed, MiniMax, GLM, DeepSeek V3.2 and others.

Strings are written literally, everything else as JSON; an attribute of the tag or the schema of the tool says which.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.text.tool_calls.held_tool import HeldTool
from localrun.text.tool_calls.incoming import SPACE, BrokenCallError, EmitText, Incoming, Waiting
from localrun.text.tool_calls.lark import LarkRules, one_of, repeated, repeated_lines, sequence
from localrun.text.tool_calls.syntax import MAX_NAME, CallSink, Spell, Tools, WrittenCall, dumps, tokens_among
from localrun.text.tool_calls.tagged_values import TaggedValues, as_json
from localrun.text.tool_calls.values import MAX_KEY, escaped

_MAX_ATTRIBUTES = 256  # characters
_MARKS = ("open", "begin", "name_end", "name_close", "key", "key_end", "value_begin", "value_end", "end", "close")
_SOME_KEY = "[A-Za-z_][A-Za-z0-9_]{0,63}"
_OBJECT = frozenset(("type", "properties", "required", "additionalProperties"))


@dataclass(frozen=True, slots=True)
class TaggedSyntax:
    """`open`, and for each call `begin` NAME `name_end` (`key` KEY `key_end` VALUE `value_end`)* `end`; then `close`.

    `name_close` and `value_begin` end tags that may hold more than a name or a key: `attributes` are those of an
    argument's tag for a string, and for JSON. An unterminated name ends at the line end or the first key. With
    `is_bare` a `begin` without the opener counts, too, before an existing tool.
    """

    open: str
    begin: str
    name_end: str
    key: str
    key_end: str
    value_end: str
    end: str
    close: str
    name_close: str = ""
    value_begin: str = ""
    value_close: str = ""  # of a tag that repeats the key
    attributes: tuple[str, str] = ("", "")
    line: str = "\n"  # between the parts
    pad: str = ""  # beside a value
    is_section: bool = False  # all calls are between the same marks; else each is between its own
    is_bare: bool = False

    @property
    def opens(self) -> tuple[str, ...]:
        return (self.open, self.begin) if self.is_bare else (self.open,)

    @property
    def marks(self) -> tuple[str, ...]:
        return tuple(text for name in _MARKS if (text := getattr(self, name)))

    def spelled(self, spell: Spell) -> "TaggedSyntax":
        marks: dict[str, Any] = {name: spell(getattr(self, name)) for name in _MARKS}
        return replace(self, **marks)

    def read(self, opener: str, incoming: Incoming, sink: CallSink, tools: Tools) -> Waiting[None]:
        if opener == self.open and self.begin:
            yield from incoming.expect(self.begin)
        yield from self._call(incoming, sink, tools, opener != self.open)
        while self.begin:
            yield from incoming.skip_space()
            if not (yield from incoming.match((self.begin,))):
                break
            yield from self._call(incoming, sink, tools, opener != self.open)
        if self.close != self.end:
            yield from incoming.match((self.close,))

    def write(self, calls: Sequence[WrittenCall]) -> str:
        written = [self._written(call) for call in calls]
        if self.is_section:
            return self.line.join([self.open, *written, self.close])
        if not self.begin:
            return self.line.join(self.open + one for one in written)
        return "\n".join(self.line.join([self.open, one, self.close]) for one in written)

    def grammar(self, rules: LarkRules, tools: Sequence[HeldTool], is_single: bool) -> str:
        known = Tools([{"name": tool.name, "parameters": tool.schema} for tool in tools])
        one = rules.rule(one_of(self._rule(rules, tool, known) for tool in tools))
        opens, closes, line = rules.text(self.open), rules.text(self.close), self._line(rules)
        if self.is_section:
            return sequence(opens, line, repeated(one, line, is_single), line, closes)
        if not self.begin:
            return repeated_lines(rules.rule(sequence(opens, one)), line, is_single)
        return repeated_lines(rules.rule(sequence(opens, line, one, line, closes)), rules.text("\n"), is_single)

    def _line(self, rules: LarkRules) -> str:
        """Optional line end between the parts."""
        return f"({rules.text(self.line)})?" if self.line else ""

    def _rule(self, rules: LarkRules, tool: HeldTool, known: Tools) -> str:
        """Rule for a call: the arguments that the schema names, in order; any where it names none."""
        tool.check_keywords(tool.schema, _OBJECT)
        properties, required = tool.schema.get("properties") or {}, tool.schema.get("required") or ()
        tool.leave_out(*(f"required {key}" for key in required if key not in properties))
        more = tool.schema.get("additionalProperties", True)
        members = []
        for key, schema in properties.items():
            member = self._member(rules, tool, rules.text(key), schema, known.kind(tool.name, key))
            members.append(member if key in required else f"({member})?")
        if not properties and more is not False:
            members = [f"({self._member(rules, tool, rules.pattern(_SOME_KEY), more, '')})*"]
        line = self._line(rules)
        begin = rules.text(f"{self.begin}{tool.name}{self.name_end}{self.name_close}")
        return sequence(begin, *members, line, rules.text(self.end))

    def _member(self, rules: LarkRules, tool: HeldTool, key: str, schema: Any, kind: str) -> str:
        """Rule for one argument."""
        values = TaggedValues(rules, tool, self.pad + self.value_end, self.pad)
        kinds = ("string", "any") if any(self.attributes) else (kind, kind)
        choices = []
        for is_text, value in values.choices(schema, *kinds):
            begin = rules.text(f"{self.attributes[not is_text]}{self.value_begin}{self.pad}")
            choices.append(sequence(begin, value))
        after = (key, rules.text(self.value_close)) if self.value_close else ()
        opens = self._line(rules), rules.text(self.key), key, rules.text(self.key_end)
        return rules.rule(sequence(*opens, one_of(choices), *after))

    def _written(self, call: WrittenCall) -> str:
        parts = [f"{self.begin}{call.name}{self.name_end}{self.name_close}"]
        for key, value in call.arguments.items():
            is_text = isinstance(value, str)
            tag = f"{self.key}{key}{self.key_end}{self.attributes[not is_text]}{self.value_begin}"
            after = f"{self.value_end}{key}{self.value_close}" if self.value_close else self.value_end
            parts.append(f"{tag}{self.pad}{value if is_text else dumps(value)}{self.pad}{after}")
        return self.line.join([*parts, self.end])

    def _call(self, incoming: Incoming, sink: CallSink, tools: Tools, has_to_be_known: bool) -> Waiting[None]:
        name = yield from self._name(incoming)
        if not name or (has_to_be_known and name not in tools):
            raise BrokenCallError
        sink.begin(name)
        before = "{"
        while (yield from incoming.expect(self.key, self.end)) == self.key:
            key = (yield from incoming.upto((self.key_end, *self._tokens(self.key_end)), MAX_KEY)).strip(SPACE)
            yield from incoming.expect(self.key_end)
            attributes = yield from _rest_of_tag(incoming, self.value_begin)
            sink.arguments(f"{before}{dumps(incoming.plain(key))}: ")
            before = ", "
            yield from self._value(incoming, sink.arguments, _kind_of(attributes) or tools.kind(name, key))
            yield from _rest_of_tag(incoming, self.value_close)
        sink.arguments("{}" if before == "{" else "}")
        sink.end()

    def _name(self, incoming: Incoming) -> Waiting[str]:
        if not self.name_end:
            return (yield from incoming.upto(("\n", self.key, self.end), MAX_NAME)).strip(SPACE)
        name = yield from incoming.upto((self.name_end, "\n", *self._tokens(self.name_end)), MAX_NAME)
        yield from incoming.expect(self.name_end)
        yield from _rest_of_tag(incoming, self.name_close)
        return name.strip(SPACE)

    def _value(self, incoming: Incoming, emit: EmitText, kind: str) -> Waiting[None]:
        """Read a value up to its end; of unknown kind: JSON if it parses."""
        yield from incoming.match(tuple(filter(None, (self.pad,))))
        if kind == "string":
            emit('"')
            yield from self._raw(incoming, lambda text: emit(escaped(text)))
            emit('"')
            return
        parts: list[str] = []
        yield from self._raw(incoming, parts.append)
        emit(as_json("".join(parts), kind))

    def _raw(self, incoming: Incoming, emit: EmitText) -> Waiting[None]:
        """Read the text of a value. An end that is followed by no part of a call is text."""
        ends = tuple({self.pad + self.value_end, self.value_end})
        tokens = self._tokens(self.value_end)
        while True:
            end = yield from incoming.pass_on((*ends, *tokens), lambda text: emit(incoming.plain(text)))
            if end not in ends:
                raise BrokenCallError
            if self.value_close or tokens_among(ends) or (yield from self._goes_on(incoming)):
                return
            emit(end)

    def _goes_on(self, incoming: Incoming) -> Waiting[bool]:
        """Whether the next part of a call comes."""
        n = 0
        while True:
            text = yield from incoming.peek(n + 1)
            if len(text) <= n:
                return True
            if text[n] not in SPACE:
                break
            n += 1
        for part in (self.key, self.end):
            if (yield from incoming.peek(n + len(part)))[n:] == part:
                return True
        return False

    def _tokens(self, *but: str) -> frozenset[str]:
        """The marks that are tokens, which belong to no text."""
        return tokens_among(self.marks) - tokens_among(but)


def _rest_of_tag(incoming: Incoming, end: str) -> Waiting[str]:
    """Read attributes of a tag and take its end."""
    if not end:
        return ""
    text = yield from incoming.upto((end,), _MAX_ATTRIBUTES)
    yield from incoming.expect(end)
    return text


def _kind_of(attributes: str) -> str:
    """The kind of a value by its tag's attributes; empty where they say nothing."""
    if 'string="' in attributes:
        return "string" if 'string="true"' in attributes else "any"
    if 'type="' in attributes:
        return "string" if 'type="string"' in attributes else "any"
    return ""
