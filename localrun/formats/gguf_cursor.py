"""A cursor over the bytes of a GGUF header: numbers, strings and arrays, each checked before it is allocated."""

import struct
from pathlib import Path
from typing import Any, NoReturn

from localrun.formats.files import Fetch, bad_file

# Our own limits: several times what the largest real files have.
MAX_HEADER_BYTES = 64 << 20
MAX_STRING_BYTES = 16 << 20
MAX_ELEMENTS = 4 << 20  # of all arrays of a file together

BOOL, STRING, ARRAY = 7, 8, 9
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", BOOL: "B", 10: "Q", 11: "q", 12: "d"}
_U64 = struct.Struct("<Q")
_FIRST_FETCH = 64 << 10


class Cursor:
    """Reads forward through the header of a file of `size` bytes; fetches what it needs, doubling each time.

    `what` names the thing being read for the message. Every method raises ModelFileError and nothing else.
    """

    def __init__(self, fetch: Fetch, size: int, path: Path) -> None:
        self.pos = 0
        self.size = size
        self.path = path
        self._fetch = fetch
        self._buffer = b""
        self._elements_left = MAX_ELEMENTS

    def fail(self, code: str, message: str, offset: int | None = None, hint: str = "") -> NoReturn:
        raise bad_file(code, message, self.path, self.pos if offset is None else offset, hint)

    def head(self, n_bytes: int) -> bytes:
        """The first bytes of the file, as many as there are, without moving."""
        self._fill(min(n_bytes, self.size), "the header")
        return self._buffer[:n_bytes]

    def number(self, code: str, what: str) -> Any:
        """One number, by its struct code."""
        return self._numbers(code, 1, what)[0]

    def string(self, what: str, max_bytes: int = MAX_STRING_BYTES, code: str = "TOO_BIG") -> str:
        """One string; longer than `max_bytes` is error `code`."""
        at = self.pos
        length = self.number("Q", what)
        self._check_end(self.pos + length, what)
        if length > max_bytes:
            self.fail(code, f"{what} is {length:,} bytes long, and {max_bytes:,} is the most that can be", at)
        start = self.pos
        self._advance(length, what)
        return self._decode(start, self.pos, what)

    def value(self, value_type: int, what: str) -> Any:
        """One value of a key: bool, int, float, str, or a list of one of them."""
        if value_type == ARRAY:
            return self._array(what)
        if value_type == STRING:
            return self.string(what)
        if value_type not in NUMBERS:
            self.fail("BAD_TYPE", f"{what} is of the unknown type {value_type}", self.pos - 4)
        return self._typed_numbers(value_type, 1, what)[0]

    def _array(self, what: str) -> list[Any]:
        at = self.pos
        element_type, count = self.number("I", what), self.number("Q", what)
        if element_type == ARRAY:
            self.fail("NESTED_ARRAY", f"{what} is an array of arrays", at)
        if element_type != STRING and element_type not in NUMBERS:
            self.fail("BAD_TYPE", f"{what} is an array of the unknown type {element_type}", at)
        min_bytes = _U64.size if element_type == STRING else struct.calcsize(NUMBERS[element_type])
        self._check_end(self.pos + count * min_bytes, what)
        self._elements_left -= count
        if self._elements_left < 0:
            self.fail("TOO_BIG", f"the arrays up to {what} have more than {MAX_ELEMENTS:,} elements", at)
        return self._strings(count, what) if element_type == STRING else self._typed_numbers(element_type, count, what)

    def _typed_numbers(self, value_type: int, count: int, what: str) -> list[Any]:
        at = self.pos
        values = self._numbers(NUMBERS[value_type], count, what)
        if value_type != BOOL:
            return list(values)
        if max(values, default=0) > 1:
            self.fail("BAD_BOOL", f"{what} holds a bool that is neither 0 nor 1", at)
        return [value == 1 for value in values]

    def _numbers(self, code: str, count: int, what: str) -> tuple[Any, ...]:
        start = self.pos
        layout = f"<{count}{code}"
        self._advance(struct.calcsize(layout), what)
        return struct.unpack_from(layout, self._buffer, start)

    def _strings(self, count: int, what: str) -> list[str]:
        """Like `string`, unrolled: vocabularies have half a million of them."""
        buffer, length, end = self._buffer, _U64.unpack_from, self.pos
        values: list[str] = []
        try:
            for _ in range(count):
                self.pos = end
                start = end + 8  # behind its length
                if start > len(buffer):
                    buffer = self._filled(start, what)
                end = start + length(buffer, self.pos)[0]
                if end > len(buffer):
                    buffer = self._filled(end, what)
                values.append(str(buffer[start:end], "utf-8"))
        except UnicodeDecodeError as error:
            self._fail_decoding(start, error, what)
        self.pos = end
        return values

    def _decode(self, start: int, end: int, what: str) -> str:
        try:
            return self._buffer[start:end].decode()
        except UnicodeDecodeError as error:
            self._fail_decoding(start, error, what)

    def _filled(self, end: int, what: str) -> bytes:
        self._fill(end, what)
        return self._buffer

    def _fail_decoding(self, start: int, error: UnicodeDecodeError, what: str) -> NoReturn:
        self.fail("BAD_UTF8", f"{what} is not UTF-8 text", start + error.start)

    def _advance(self, n_bytes: int, what: str) -> None:
        self._fill(self.pos + n_bytes, what)
        self.pos += n_bytes

    def _fill(self, end: int, what: str) -> None:
        have = len(self._buffer)
        if end <= have:
            return
        self._check_end(end, what)
        want = min(max(end - have, have, _FIRST_FETCH), self.size - have)
        self._buffer += self._fetch(have, want)
        if len(self._buffer) < end:
            self.fail("CHANGED", "the file became shorter while it was read", hint="load the model again")

    def _check_end(self, end: int, what: str) -> None:
        if end > self.size:
            missing = f"{end - self.size:,} bytes" if end - self.size < 1 << 40 else "far"
            self.fail("TRUNCATED", f"{what} ends {missing} behind the end of the file, which is cut short or damaged")
        if end > MAX_HEADER_BYTES:
            self.fail("TOO_BIG", f"the header is longer than {MAX_HEADER_BYTES:,} bytes, at {what}")
