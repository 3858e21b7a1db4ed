"""Values of arguments as models write them, read as they arrive and emitted as JSON.

JSON, Python literals and Gemma's maps differ in how strings and keys are quoted, and in the names of true, false and
null. All of them are read here, in every dialect; the output is always JSON, or the beginning of it.
"""

import json
import re
from collections.abc import Mapping

from localrun.base.dataclass import dataclass
from localrun.text.tool_calls.incoming import SPACE, BrokenCallError, EmitText, Incoming, Waiting

MAX_DEPTH = 64
MAX_KEY = 1024  # characters
_MAX_NUMBER = 1024  # characters
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_WORDS = {"true": "true", "True": "true", "false": "false", "False": "false"} | dict.fromkeys(("null", "None"), "null")
_ENDS_WORD = (",", "}", "]", ")", *SPACE)
_LETTERS = dict(zip("ntrbfav0", "\n\t\r\b\f\a\v\0", strict=True))
_ESCAPES: Mapping[str, str] = {**_LETTERS, "/": "/", "\\": "\\", "'": "'", '"': '"', "\n": ""}
_SURROGATES = re.compile("[\ud800-\udfff]")
_HEX_DIGITS = {"u": 4, "x": 2, "U": 8}


@dataclass(frozen=True, slots=True)
class ValueReader:
    """Reads values between `quotes`; `marks` are stand-ins of tokens that no value contains."""

    incoming: Incoming
    quotes: tuple[str, ...] = ('"', "'")
    marks: frozenset[str] = frozenset()

    def value(self, emit: EmitText, depth: int = 0) -> Waiting[None]:
        """Read one value. Raises BrokenCallError where something else comes, or nesting is too deep."""
        first = yield from self.incoming.skip_space()
        if depth > MAX_DEPTH:
            raise BrokenCallError
        if first == "{":
            yield from self.object("{", "}", ":", emit, depth)
        elif first in ("[", "("):
            yield from self._list("]" if first == "[" else ")", emit, depth)
        elif quote := (yield from self.incoming.match(self.quotes)):
            emit('"')
            yield from self._string(quote, emit)
            emit('"')
        else:
            yield from self._word(emit)

    def object(self, opens: str, closes: str, colon: str, emit: EmitText, depth: int = 0) -> Waiting[None]:
        """Read members between two brackets; also the arguments of a Python call."""
        yield from self.incoming.expect(opens)
        emit("{")
        before = ""
        while True:
            if (yield from self._ends(closes)):
                break
            emit(before)
            key = yield from self.key(colon)
            emit(json.dumps(key, ensure_ascii=False) + ": ")
            yield from self.value(emit, depth + 1)
            before = yield from self._separator(closes)
        emit("}")

    def key(self, colon: str) -> Waiting[str]:
        """Read a key, quoted or bare, and the sign after it."""
        yield from self.incoming.skip_space()
        quote = yield from self.incoming.match(self.quotes)
        if quote:
            key = yield from self.text(quote)
        else:
            key = (yield from self.incoming.upto((colon, *self.marks), MAX_KEY)).strip(SPACE)
        yield from self.incoming.expect(colon)
        return self.incoming.plain(key)

    def text(self, quote: str) -> Waiting[str]:
        """Read the rest of a string whose quote was taken."""
        parts: list[str] = []
        yield from self._string(quote, parts.append)
        text: str = json.loads(f'"{"".join(parts)}"')
        return text

    def buffered(self) -> Waiting[str]:
        """Read a complete value, as JSON."""
        parts: list[str] = []
        yield from self.value(parts.append)
        return "".join(parts)

    def _list(self, closes: str, emit: EmitText, depth: int) -> Waiting[None]:
        self.incoming.take(1)
        emit("[")
        before = ""
        while True:
            if (yield from self._ends(closes)):
                break
            emit(before)
            yield from self.value(emit, depth + 1)
            before = yield from self._separator(closes)
        emit("]")

    def _ends(self, closes: str) -> Waiting[bool]:
        """Take a closing bracket if it comes; returns whether it did."""
        yield from self.incoming.skip_space()
        return bool((yield from self.incoming.match((closes,))))

    def _separator(self, closes: str) -> Waiting[str]:
        """Take the comma between two items; a bracket stays. Returns the text to write before the next item."""
        found = yield from self.incoming.skip_space()
        if found == closes:
            return ""
        yield from self.incoming.expect(",")
        return ", "

    def _word(self, emit: EmitText) -> Waiting[None]:
        """Read a number, or true, false or null in any spelling."""
        word = yield from self.incoming.upto((*_ENDS_WORD, *self.marks), _MAX_NUMBER)
        json_word = _WORDS.get(word) or (word if _NUMBER.fullmatch(word) else "")
        if not json_word:
            self.incoming.give_back(word)
            raise BrokenCallError
        emit(json_word)

    def _string(self, quote: str, emit: EmitText) -> Waiting[None]:
        """Read the inside of a string with JSON's escapes. Backslashes are escapes only between letter quotes."""
        escapes = quote in ('"', "'")
        ends = (quote, *self.marks, *(("\\",) if escapes else ()))
        while True:
            end = yield from self.incoming.pass_on(ends, lambda text: emit(escaped(self.incoming.plain(text))))
            if end == quote:
                return
            if end != "\\":
                raise BrokenCallError
            emit(escaped((yield from self._escape())))

    def _escape(self) -> Waiting[str]:
        """Read an escape; an unknown one stays as written, backslash included, as in Python."""
        letter = yield from self.incoming.peek()
        self.incoming.take(1)
        if n := _HEX_DIGITS.get(letter, 0):
            code = yield from self._code(n)
            if 0xD800 <= code < 0xDC00 and (yield from self.incoming.peek(2)) == "\\u":
                self.incoming.take(2)
                low = yield from self._code(4)
                pair = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                return chr(pair) if 0xDC00 <= low < 0xE000 else f"\ufffd{_char(low)}"
            return _char(code)
        return _ESCAPES.get(letter, f"\\{letter}")

    def _code(self, n: int) -> Waiting[int]:
        digits = yield from self.incoming.peek(n)
        if len(digits) < n or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
            raise BrokenCallError
        return int(self.incoming.take(n), 16)


def escaped(text: str) -> str:
    """Text as it stands within a string of JSON. Lone surrogates, which are not text, become U+FFFD."""
    return json.dumps(_SURROGATES.sub("\ufffd", text), ensure_ascii=False)[1:-1]


def _char(code: int) -> str:
    """A character; U+FFFD for an invalid code."""
    return "\ufffd" if 0xD800 <= code < 0xE000 or code > 0x10FFFF else chr(code)
