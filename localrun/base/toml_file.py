"""TOML files that people write: small, and errors are reported with their line."""

import re
import tomllib
from bisect import bisect_left
from pathlib import Path
from typing import Any

from localrun.base.errors import UsageError
from localrun.base.small_file import read_small

MAX_BYTES = 256 << 10
_HINT = "correct that line, or move the file away"
_NESTED = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){256}"""
)  # a.b.c…: see read_toml


def read_toml(path: Path | None) -> tuple[dict[str, Any], str]:
    """Parse a file, and return its text too; nothing without a file. UsageError names the file, and the line if one is
    wrong."""
    try:
        data = read_small(path, MAX_BYTES) if path else b""
    except (FileNotFoundError, NotADirectoryError):
        return {}, ""
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "correct the file, or move it away") from None
    try:
        source = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}, line {line}: this is not UTF-8 text", _HINT) from None
    if nested := _NESTED.search(source):  # the parser takes time by the square of their number
        line = source.count("\n", 0, nested.start()) + 1
        raise UsageError(f"{path}, line {line}: this is nested too deeply", _HINT)
    try:
        return tomllib.loads(source), source
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}", _HINT) from None
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets in brackets
        raise UsageError(f"{path}, line {_first_bad_line(source)}: this cannot be read", _HINT) from None


def line_of(key: str, source: str) -> int:
    """The line number of a key of the outermost table; 1 where it is spelled in some other way."""
    found = re.search(rf"""^[ \t]*(?:\[+[ \t]*)?(["']?){re.escape(key)}\1[ \t]*[.=\]]""", source, re.MULTILINE)
    return source.count("\n", 0, found.start()) + 1 if found else 1


def _first_bad_line(source: str) -> int:
    lines = source.split("\n")

    def is_bad(n_lines: int) -> bool:
        try:
            tomllib.loads("\n".join(lines[:n_lines]))
        except tomllib.TOMLDecodeError:  # cut in the middle of a value
            return False
        except (ValueError, RecursionError):
            return True
        return False

    return bisect_left(range(len(lines)), True, key=is_bad)
