"""Notes to the desktop around the terminal: window title, and notifications of long work that has ended."""

import os
from collections.abc import Callable, Mapping

from localrun.base.sanitize import clean
from localrun.base.settings import read_settings

LONG_SECONDS = 15.0  # an answer that took longer may end while the user is elsewhere
_LONGEST = 120  # characters of a title or a notification


_KEEP, _GIVE_BACK = "\x1b[22;0t", "\x1b[23;0t"  # the title that the window had


class Desktop:
    """`write` writes to the terminal. `is_away`: whether the window lacks the focus; None where unknown."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._title = ""
        self.is_away: bool | None = None

    def name(self, title: str) -> None:
        """Give the window a title; it gets its own back with `leave`."""
        if title != self._title:
            self._write(("" if self._title else _KEEP) + title_codes(title))
            self._title = title

    def leave(self) -> None:
        if self._title:
            self._write(_GIVE_BACK)
            self._title = ""

    def tell(self, title: str, text: str, seconds: float) -> None:
        """Notify that something has ended, if it took long."""
        if seconds >= LONG_SECONDS and self.is_away is not False and may_notify(read_settings().notify):
            self._write(notification_codes(title, text))


def title_codes(title: str) -> str:
    """OSC 2: the title of the window."""
    return f"\x1b]2;{_plain(title)}\x07"


def notification_codes(title: str, text: str) -> str:
    """OSC 777, as urxvt, foot, VTE and Ghostty have it, and OSC 9, as iTerm2, kitty and Windows Terminal do; what a
    terminal does not know it passes over."""
    title, text = _plain(title).replace(";", ","), _plain(text).replace(";", ",")
    return f"\x1b]777;notify;{title};{text}\x07\x1b]9;{title}: {text}\x07"


def may_notify(setting: bool | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to notify: the setting, else not in tmux and screen, which keep such notes or show them as text."""
    return setting if setting is not None else not (environ.get("TMUX") or environ.get("STY"))


def _plain(text: str) -> str:
    return " ".join(clean(text, keep_newlines=False).split())[:_LONGEST]
