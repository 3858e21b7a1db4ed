"""Parser of an answer in which tools may be called: text on its channels, and calls, in order."""

from localrun.base.events import Channel
from localrun.text.reasoning import Splitter
from localrun.text.tool_calls.events import CallEvents, Piece
from localrun.text.tool_calls.incoming import BrokenCallError, Incoming, Waiting
from localrun.text.tool_calls.syntax import Spell, Syntax, Tools, tokens_among
from localrun.text.tool_calls.unmarked import UNMARKED, read_unmarked
from localrun.text.tool_calls.values import ValueReader


class CallParser:
    """Finds calls in a stream, wherever it is cut; other text goes to the splitter of thinking and answer.

    A mark that is a token of its own begins a call anywhere, even in a thought; one written in letters only in the
    answer, with `is_at_start` only at its start. Text that begins like a call but is not one stays text. A call that
    breaks off is reported as far as it was read, and text follows. With `must_call` the answer is constrained to calls:
    an unfinished beginning is not text. With `reads_unmarked` an answer that is only a call counts without marks, too.
    """

    def __init__(
        self, syntax: Syntax, tools: Tools, splitter: Splitter | None, events: CallEvents, plain: Spell = str,
        is_at_start: bool = False, must_call: bool = False, reads_unmarked: bool = False,
    ) -> None:  # fmt: skip
        self._syntax, self._tools, self._splitter, self._events = syntax, tools, splitter, events
        self._is_at_start, self._must_call = is_at_start, must_call
        self._may_be_unmarked = reads_unmarked  # and nothing was tried so far
        self._incoming = Incoming(plain)
        self._reader = self._read()
        self._step()

    def push(self, text: str) -> list[Piece]:
        """Take text; returns the pieces that are certain, in order, none of them empty."""
        self._incoming.push(text)
        self._step()
        return self._events.take()

    def flush(self) -> list[Piece]:
        """Return the rest, once no more text comes."""
        self._incoming.has_ended = True
        self._step()
        if self._splitter is not None:
            self._say(self._splitter.flush())
        self._events.flush()
        return self._events.take()

    def _step(self) -> None:
        """Read as far as the text goes."""
        next(self._reader, None)

    def _read(self) -> Waiting[None]:
        while True:
            opener = yield from self._text()
            if not opener:
                return
            if opener in self._syntax.opens:
                yield from self._section(opener)
            else:
                yield from self._unmarked(opener)
            self._may_be_unmarked = False

    def _text(self) -> Waiting[str]:
        """Read text up to the opener of a section of calls, which is taken; empty at the end."""
        while True:
            opens = self._syntax.opens
            if self._is_at_start and self._events.has_said:
                opens = tuple(filter(tokens_among, opens))
            if self._may_be_unmarked and not self._events.has_said:
                opens = (*opens, *UNMARKED)
            opener = yield from self._incoming.pass_on(opens, self._split)
            if not opener or self._may_open(opener):
                return opener
            self._split(opener)

    def _may_open(self, opener: str) -> bool:
        if tokens_among((opener,)):
            return True
        if self._splitter is not None and self._splitter.is_inside:
            return False
        is_at_start = self._is_at_start or opener not in self._syntax.opens
        return not (is_at_start and self._events.has_said)

    def _section(self, opener: str) -> Waiting[None]:
        """Read calls up to where they end or break off. Other text becomes text again."""
        self._incoming.remember()
        self._events.begin_section()
        try:
            yield from self._syntax.read(opener, self._incoming, self, self._tools)
        except BrokenCallError:
            if self._events.is_in_call:
                self._events.cut()
            else:
                self._split(("" if self._events.has_called else opener) + self._incoming.remembered)

    def _unmarked(self, opener: str) -> Waiting[None]:
        """Read a call without marks; where it is none, its opener is text, and what follows is read anew."""
        self._incoming.remember()
        reader = ValueReader(self._incoming, marks=tokens_among(self._syntax.marks))
        try:
            yield from read_unmarked(opener, reader, self, self._tools)
        except BrokenCallError:
            self._incoming.give_back(self._incoming.remembered)
            self._split(opener)

    def begin(self, name: str, id: str = "") -> None:
        """Begin a call."""
        self._events.begin(name, id)

    def arguments(self, text: str) -> None:
        """Add to its arguments, as JSON."""
        self._events.arguments(text)

    def end(self) -> None:
        """Complete the call."""
        self._events.end()
        self._incoming.remember()

    def _split(self, text: str) -> None:
        """Pass on text outside of calls."""
        pieces: list[tuple[Channel, str]] = self._splitter.push(text) if self._splitter else [("answer", text)]
        self._say(pieces)

    def _say(self, pieces: list[tuple[Channel, str]]) -> None:
        for channel, text in pieces:
            if channel == "thinking" or not self._must_call:
                self._events.say(channel, text)
