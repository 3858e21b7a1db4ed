"""Calls that are a name and a JSON object, with marks around them: Mistral, DeepSeek, Kimi, and others."""

from collections.abc import Sequence
from dataclasses import replace

from localrun.base.dataclass import dataclass
from localrun.text.tool_calls.held_tool import HeldTool
from localrun.text.tool_calls.incoming import BrokenCallError, Incoming, Waiting
from localrun.text.tool_calls.lark import LarkRules, one_of, repeated, sequence
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

_MARKS = ("section", "open", "before_id", "after_id", "named", "close", "section_end")


@dataclass(frozen=True, slots=True)
class NamedSyntax:
    """`section`, and for each call `open` name `named` {…} `close`; at last `section_end`.

    `before_id` comes between name and id, where the form has ids; `after_id` between id and name. Kimi's ids are the
    name as written, `functions.NAME:0`: `prefix` and `number_sign` split it.
    """

    open: str
    named: str
    close: str = ""
    section: str = ""
    section_end: str = ""
    before_id: str = ""
    after_id: str = ""
    prefix: str = ""
    number_sign: str = ""

    @property
    def opens(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.section, self.open)))

    @property
    def marks(self) -> tuple[str, ...]:
        return tuple(text for name in _MARKS if (text := getattr(self, name)))

    def spelled(self, spell: Spell) -> "NamedSyntax":
        return replace(self, **{name: spell(getattr(self, name)) for name in _MARKS})

    def read(self, opener: str, incoming: Incoming, sink: CallSink, tools: Tools) -> Waiting[None]:
        if opener != self.open:
            yield from incoming.expect(self.open)
        yield from self._call(incoming, sink)
        while True:
            yield from incoming.skip_space()
            found = yield from incoming.match(tuple(filter(None, (self.open, self.section_end))))
            if found != self.open:
                return
            yield from self._call(incoming, sink)

    def write(self, calls: Sequence[WrittenCall]) -> str:
        return f"{self.section}{''.join(map(self._written, calls))}{self.section_end}"

    def grammar(self, rules: LarkRules, tools: Sequence[HeldTool], is_single: bool) -> str:
        calls = repeated(rules.rule(one_of(self._rule(rules, tool) for tool in tools)), "", is_single)
        if not self.section:
            return calls
        whole = sequence(rules.text(self.section), calls, rules.text(self.section_end))
        return one_of((whole, calls))  # models forget the section

    def _rule(self, rules: LarkRules, tool: HeldTool) -> str:
        """Rule for a call of a tool."""
        id_before = (SOME_ID, rules.text(self.after_id)) if self.after_id else ()
        number = (rules.text(self.number_sign), "/[0-9]{1,3}/") if self.number_sign else ()
        id_behind = (rules.text(self.before_id), SOME_ID) if self.before_id else ()
        name = rules.text(f"{self.prefix}{tool.name}")
        arguments = rules.json(tool.schema, not tool.is_strict)
        opens, named, closes = map(rules.text, (self.open, self.named, self.close))
        return sequence(opens, *id_before, name, *number, *id_behind, named, arguments, closes)

    def _written(self, call: WrittenCall) -> str:
        name = call.id if self.number_sign else f"{self.prefix}{call.name}"
        if self.after_id:
            name = f"{call.id}{self.after_id}{name}"
        id = f"{self.before_id}{call.id}" if self.before_id else ""
        return f"{self.open}{name}{id}{self.named}{dumps(call.arguments)}{self.close}"

    def _call(self, incoming: Incoming, sink: CallSink) -> Waiting[None]:
        id = ""
        if self.after_id:
            id = (yield from incoming.upto((self.after_id,), MAX_ID)).strip()
            yield from incoming.expect(self.after_id)
        ends = tuple(filter(None, (self.before_id, self.named)))
        # A model may leave the mark before the arguments out, as older ones of Mistral have none.
        name = (yield from incoming.upto((*ends, "{", *tokens_among(self.marks)), MAX_NAME)).strip()
        if (yield from incoming.match(ends)) == self.before_id != "":
            id = (yield from incoming.upto((self.named, *tokens_among(self.marks)), MAX_ID)).strip()
            yield from incoming.expect(self.named)
        if self.number_sign:
            id, name = name, name.removeprefix(self.prefix).rpartition(self.number_sign)[0] or name
        else:
            name = name.removeprefix(self.prefix)
        if not name:
            raise BrokenCallError
        sink.begin(name, id)
        if (yield from incoming.skip_space()) != "{" and (yield from self._is_over(incoming)):
            sink.arguments("{}")
        else:
            yield from ValueReader(incoming, marks=tokens_among(self.marks)).object("{", "}", ":", sink.arguments)
        sink.end()
        if self.close:
            yield from incoming.skip_space()
            yield from incoming.match((self.close.lstrip(),))

    def _is_over(self, incoming: Incoming) -> Waiting[bool]:
        """Whether a call ends without any arguments."""
        if self.close:
            return bool((yield from incoming.match((self.close.lstrip(),))))
        return incoming.has_ended
