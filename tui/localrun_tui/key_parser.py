"""Parser of terminal input: keys and pastes that Textual's own parser takes for others."""

import re
from collections.abc import Iterator
from itertools import accumulate

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.keys import Keys
from textual.message import Message

from localrun_tui.widgets.fields import pasted

_ESC = "\x1b"
_BEGUN = {begun for known in ANSI_SEQUENCES_KEYS for begun in accumulate(known[:-1])}
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")  # a whole control sequence, ECMA-48, 5.4
_REPORT = re.compile(r"\x1b\[(M.{0,3}|<[\d;-]+[mM]|\?[\d;]+\$y|48;[\d;:]+t)", re.S)  # of the mouse, a mode, the size
_MARK_BEGUN = re.compile(r"\x1b(\[(2(0[01]?)?)?)?\Z")  # of a paste or of its end
_OTHER_KEY = re.compile(r"\x1b\[27;(\d+);(\d+)~")  # xterm's modifyOtherKeys, which tmux can send, too


class KeyParser(XTermParser):
    """Without a keyboard protocol, as in tmux, Alt with a key is ESC and that key. Textual knows that of letters alone:
    it takes Alt+Enter for Enter. What it knows no key for it holds back, together with what is typed after it, and then
    gives as text with ^ for ESC. Here a sequence of the terminal that is no key is left out, and ESC is never text.

    Textual reads a paste character by character, five seconds for a megabyte: its parser gets the marks around it only.
    """

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._paste: list[str] | None = None  # pieces of one that has begun
        self._tail = ""  # of what was read, where a mark may have begun

    def feed(self, data: str) -> Iterator[Message]:
        """Messages for what was read. In a paste ESC means no key."""
        if not data:
            yield from super().feed(data)
        while data:
            mark = BRACKETED_PASTE_START if self._paste is None else BRACKETED_PASTE_END
            before, found, data = (self._tail + data).partition(mark)
            tail = "" if found else _of_mark(before)
            if self._paste is None:
                self._paste = [] if found else None
                yield from super().feed((before + found)[len(self._tail) :])
            else:
                self._paste.append(before.removesuffix(tail))
                yield from self._end_paste() if found else ()
            self._tail = tail

    def _end_paste(self) -> Iterator[Message]:
        text, self._paste = pasted("".join(self._paste or ())), None
        for message in super().feed(BRACKETED_PASTE_END):
            yield events.Paste(text) if isinstance(message, events.Paste) else message

    def tick(self) -> Iterator[Message]:
        """Messages for keys that nothing followed in time. More than ESC [ is no key: the rest of a mark will come."""
        for message in super().tick() if len(self._tail) <= 2 else ():
            self._tail = ""
            yield message

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterator[events.Key]:
        if sequence == _ESC:  # of a sequence that is given as text
            return
        keys = [*super()._sequence_to_key_events(_OTHER_KEY.sub("\x1b[\\2;\\1u", sequence), alt)]
        if not keys and _SEQUENCE.fullmatch(sequence) and not _REPORT.fullmatch(sequence) and sequence not in _BEGUN:
            yield events.Key(Keys.Ignore, sequence)
        elif not keys and len(sequence) == 2 and sequence not in _BEGUN:
            yield from self._with_alt(sequence[1])
        else:
            yield from keys

    def _with_alt(self, character: str) -> Iterator[events.Key]:
        for key in super()._sequence_to_key_events(character, alt=True):
            if character == "\r" or (key.is_printable and not key.key.startswith("alt+")):
                key = events.Key(f"alt+{key.key}", key.character)
            yield key


def _of_mark(text: str) -> str:
    """The end of a text that may be the beginning of a paste's mark."""
    begun = _MARK_BEGUN.search(text)
    return begun[0] if begun else ""
