"""Calls of Harmony, the format of gpt-oss: a message whose header names a function, and whose text is JSON."""

from collections.abc import Sequence

from localrun.base.dataclass import dataclass
from localrun.base.events import Channel
from localrun.text.harmony import CHANNEL, HARMONY, MESSAGE, START, HarmonySplitter
from localrun.text.tool_calls.events import CallEvents, Piece
from localrun.text.tool_calls.held_tool import HeldTool
from localrun.text.tool_calls.incoming import SPACE, BrokenCallError, Incoming, Waiting
from localrun.text.tool_calls.lark import LarkRules, one_of, sequence
from localrun.text.tool_calls.syntax import CallSink, Spell, Tools, WrittenCall, dumps
from localrun.text.tool_calls.values import ValueReader

_FUNCTIONS = "functions."
_CONSTRAIN = "<|constrain|>"


@dataclass(frozen=True, slots=True)
class HarmonySyntax:
    """Syntax of calls: each is a message of its own, announced by its header."""

    opens: tuple[str, ...] = ()
    marks: tuple[str, ...] = (START, CHANNEL, MESSAGE, _CONSTRAIN, *HARMONY.ends)

    def spelled(self, spell: Spell) -> "HarmonySyntax":
        return HarmonySyntax(marks=tuple(map(spell, self.marks)))

    def read(self, opener: str, incoming: Incoming, sink: CallSink, tools: Tools) -> Waiting[None]:
        raise BrokenCallError
        yield

    def write(self, calls: Sequence[WrittenCall]) -> str:
        start, channel, message, constrain, *_, end = self.marks
        before = f"{start}assistant{channel}commentary to={_FUNCTIONS}"
        between = f" {constrain}json{message}"
        return "".join(f"{before}{call.name}{between}{dumps(call.arguments)}{end}" for call in calls)

    def grammar(self, rules: LarkRules, tools: Sequence[HeldTool], is_single: bool) -> str:
        """Grammar of an answer from the header of its first message on: thoughts, comments, and a call at its end."""
        return sequence(self._before(rules), self._call(rules, tools))

    def grammar_of_answer(self, rules: LarkRules, tools: Sequence[HeldTool]) -> str:
        """Grammar of an answer that may call nothing."""
        _, channel, message, *_ = map(rules.text, self.marks)
        final = sequence(channel, '"final"', message, _words(rules))
        return sequence(self._before(rules), one_of((self._call(rules, tools), rules.rule(final))))

    def _before(self, rules: LarkRules) -> str:
        """Messages up to the header of the last."""
        start, channel, message, _, end, *_ = map(rules.text, self.marks)
        kind = one_of(('"analysis"', '"commentary"'))
        one = sequence(channel, kind, message, _words(rules), end, start, '"assistant"')
        return f"({one})*"

    def _call(self, rules: LarkRules, tools: Sequence[HeldTool]) -> str:
        """A call up to the token that ends the answer."""
        _, channel, message, constrain, *_ = map(rules.text, self.marks)
        calls = []
        for tool in tools:
            to = rules.text(f" to={_FUNCTIONS}{tool.name}")
            header = one_of((sequence(channel, '"commentary"', to), sequence(to, channel, '"commentary"')))
            arguments = rules.json(tool.schema, not tool.is_strict)
            calls.append(sequence(header, f'(" "? ({constrain})? "json")?', message, arguments))
        return rules.rule(one_of(calls))


def _words(rules: LarkRules) -> str:
    return rules.pattern("(?s:.*)")


class HarmonyCallParser:
    """Parser of thinking, answer and calls."""

    def __init__(self, splitter: HarmonySplitter, tools: Tools, events: CallEvents, plain: Spell) -> None:
        self._splitter, self._tools, self._events, self._plain = splitter, tools, events, plain
        self._incoming = Incoming(plain)
        self._reader: Waiting[None] | None = None  # of the arguments of the call that is open
        splitter.sink = self

    def push(self, text: str) -> list[Piece]:
        """Take text; returns the pieces that are certain, in order, none of them empty."""
        self._splitter.push(text)
        return self._events.take()

    def flush(self) -> list[Piece]:
        """Return the rest, once no more text comes."""
        self._splitter.flush()
        self.end()
        self._events.flush()
        return self._events.take()

    def begin(self, recipient: str) -> bool:
        """Begin a message to a recipient; returns whether it is a call."""
        self.end()
        name = recipient.removeprefix(_FUNCTIONS)
        if not recipient.startswith(_FUNCTIONS) and name not in self._tools:
            return False
        self._incoming = Incoming(self._plain)
        self._events.begin(name)
        self._reader = ValueReader(self._incoming).object("{", "}", ":", self._events.arguments)
        return True

    def take(self, channel: Channel, text: str) -> None:
        """Take text of a message: of the open call, or of a channel."""
        if self._reader is None:
            self._events.say(channel, text)
            return
        self._incoming.push(text)
        self._step(channel)

    def end(self) -> None:
        """End the message."""
        if self._reader is None:
            return
        if not self._incoming.remembered.strip(SPACE) and not self._incoming.held.strip(SPACE):
            self._events.arguments("{}")
            self._events.end()
            self._reader = None
            return
        self._incoming.has_ended = True
        self._step("answer")

    def _step(self, channel: Channel) -> None:
        """Read as far as the text goes; text after the arguments, or that breaks them, is text of the answer."""
        assert self._reader is not None
        try:
            next(self._reader)
        except StopIteration:
            self._events.end()
        except BrokenCallError:
            self._events.cut()
        else:
            return
        self._reader = None
        if rest := self._incoming.held.strip(SPACE):
            self._events.say(channel, rest)
