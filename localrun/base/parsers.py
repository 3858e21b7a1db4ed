"""Parsers of settings: each takes a TOML value or a string and gives the value to use, or raises ValueError."""

import math
import os
from collections.abc import Sequence
from pathlib import Path


class whole:
    """A parser of whole numbers within [low, high]."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    @property
    def range(self) -> str:
        return f"a whole number from {self.low:,} to {self.high:,}"

    def __call__(self, value: object) -> int:
        try:
            if isinstance(value, bool) or not isinstance(value, int | str):
                raise ValueError
            number = int(value)
        except ValueError:
            number = self.low - 1
        if not self.low <= number <= self.high:
            raise ValueError(f"a whole number from {self.low} to {self.high} is needed")
        return number


class real:
    """A parser of finite numbers within [low, high]."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    @property
    def range(self) -> str:
        return f"a number from {self.low:g} to {self.high:,.10g}"

    def __call__(self, value: object) -> float:
        try:
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise ValueError
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if not self.low <= number <= self.high:
            raise ValueError(f"a number from {self.low:g} to {self.high:g} is needed")
        return number


class one_of:
    """A parser of one of these words, in any case."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __call__(self, value: object) -> str:
        word = str(value).lower()
        if word not in self.names:
            raise ValueError(f"one of {', '.join(self.names)} is needed")
        return word


class one_of_or_file(one_of):
    """A parser of one of these words, or of the path of a file or folder that is there."""

    def __call__(self, value: object) -> str:
        path = Path(str(value)).expanduser()
        if str(value).lower() not in self.names and path.exists():
            return str(path.absolute())
        try:
            return super().__call__(value)
        except ValueError:
            raise ValueError(neither(self.names, path)) from None


def neither(names: Sequence[str], path: Path) -> str:
    """The reason against a text that is none of these words, and no path of what is there."""
    missing = "there is no such file; " if path.suffix or len(path.parts) > 1 else ""
    return f"{missing}one of {', '.join(names)} is needed, or the path of a model"


class on_off:
    """A parser of on or off, or of what TOML and shells say for them."""

    names = ("on", "off")

    def __call__(self, value: object) -> bool:
        word = str(value).lower()
        if word not in ("on", "true", "1", "off", "false", "0"):
            raise ValueError("on or off is needed")
        return word in ("on", "true", "1")


def folders(value: object) -> str:
    """A parser of folders with the system's separator between them; each absolute, or below `~`."""
    for part in text(value).split(os.pathsep):
        if not os.path.isabs(os.path.expanduser(part)):
            raise ValueError(f"folders are needed that begin with / or ~, with {os.pathsep} between them")
    return text(value)


def text(value: object) -> str:
    """A parser of any text but the empty one."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text is needed")
    if not is_unicode(value):
        raise ValueError("a text in UTF-8 is needed")
    return value


def is_unicode(value: str) -> bool:
    """Whether this is text: bytes of a command line that are not UTF-8 come as lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def context(value: object) -> int:
    """A parser of a context length; `auto`, which is 0, is as much as the model allows and memory holds."""
    return 0 if value == "auto" else whole(1, 1 << 24)(value)
