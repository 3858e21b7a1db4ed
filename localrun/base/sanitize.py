"""Untrusted text on its way to a terminal: nothing a model, a file or the hub wrote may steer the terminal.

Escape sequences go as a whole, so that their parameters do not stay behind as litter; other control characters go
alone; characters that reorder or hide text become visible as `<U+202E>`.
"""

import re

_ESC, _BEL, _CAN, _SUB, _ST = "\x1b", "\x07", "\x18", "\x1a", "\x9c"
_CSI = "\x9b"
_STRING_OPENERS = {"P": "\x90", "X": "\x98", "]": "\x9d", "^": "\x9e", "_": "\x9f"}  # ESC form -> C1 form
_STRINGS = frozenset(_STRING_OPENERS.values())  # DCS, SOS, OSC, PM, APC
_MAX_STRING = 4096  # a control string that never ends may not swallow the rest of an answer

_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_REORDERING = r"\u202a-\u202e\u2066-\u206f\u180e\ufff9-\ufffb"  # embeddings, overrides, isolates, annotations
_HIDDEN = r"\U000e0000-\U000e007f"  # tags: a second, invisible text
_SURROGATES = r"\ud800-\udfff"  # not text: no terminal encoding has them
_CONTROL = re.compile(f"[{_CONTROLS}]")
_NAMED = re.compile(f"[{_REORDERING}{_HIDDEN}]")
_SURROGATE = re.compile(f"[{_SURROGATES}]")
_SUSPECT = re.compile(f"[{_CONTROLS}{_REORDERING}{_HIDDEN}{_SURROGATES}\\u2028\\u2029]")


def clean(text: str, keep_newlines: bool = True) -> str:
    """`text` without anything a terminal would obey. Without `keep_newlines`, line breaks and tabs become spaces."""
    return Cleaner(keep_newlines).feed(text)


class Cleaner:
    """`clean` for a stream: a sequence may be split anywhere between chunks, and an unfinished one is never shown."""

    def __init__(self, keep_newlines: bool = True) -> None:
        self._keep_newlines = keep_newlines
        self._state = "text"  # text | escape | csi | string | string-escape
        self._string_length = 0

    def feed(self, chunk: str) -> str:
        """The part of `chunk` that may be shown now."""
        if self._state == "text" and self._keep_newlines and not _SUSPECT.search(chunk):
            return chunk
        return "".join([self._step(char) for char in chunk])

    def _step(self, char: str) -> str:
        match self._state:
            case "text":
                return self._text(char)
            case "escape":
                return self._escape(char)
            case "csi":
                return self._csi(char)
        return self._string(char)

    def _text(self, char: str) -> str:
        if char == _ESC:
            self._state = "escape"
        elif char == _CSI:
            self._state = "csi"
        elif char in _STRINGS:
            self._open_string()
        elif char in "\n\t\u2028\u2029":
            return char if self._keep_newlines else " "
        elif _NAMED.match(char):
            return f"<U+{ord(char):04X}>"
        elif _SURROGATE.match(char):
            return "\ufffd"
        elif not _CONTROL.match(char):
            return char
        return ""

    def _escape(self, char: str) -> str:
        self._state = "text"
        if char == "[":
            self._state = "csi"
        elif char in _STRING_OPENERS:
            self._open_string()
        elif char == _ESC or "\x20" <= char <= "\x2f":  # an intermediate byte: the sequence goes on
            self._state = "escape"
        elif not "\x30" <= char <= "\x7e":
            return self._text(char)  # not a sequence at all
        return ""

    def _csi(self, char: str) -> str:
        if "\x20" <= char <= "\x3f":  # parameters and intermediates
            return ""
        self._state = "text"
        return "" if "\x40" <= char <= "\x7e" else self._text(char)

    def _open_string(self) -> None:
        self._state = "string"
        self._string_length = 0

    def _string(self, char: str) -> str:
        """Inside OSC, DCS and their like: up to BEL, ST or ESC \\, up to a line break, and never without end."""
        if self._state == "string-escape":
            self._state = "text"
            return "" if char == "\\" else self._escape(char)
        self._string_length += 1
        if char == _ESC:
            self._state = "string-escape"
        elif char in (_BEL, _ST, _CAN, _SUB) or self._string_length >= _MAX_STRING:
            self._state = "text"
        elif char == "\n":
            self._state = "text"
            return self._text(char)
        return ""
