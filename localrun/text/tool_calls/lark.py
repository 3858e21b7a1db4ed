"""A grammar of calls in llguidance's dialect of Lark, rule by rule."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from localrun.base.constraint import JSON_STYLE

_PARTS = re.compile("([\ud800-\udfff])")  # stand-ins of tokens among letters
_SLASH = re.compile(r"(\\.)|[/\n\r]", re.DOTALL)


class LarkRules:
    """Collects rules and returns their names. Equal rules are stored once."""

    def __init__(self, ids: Mapping[str, Sequence[int]]) -> None:
        """Start empty. `ids`: token ids of each stand-in."""
        self._ids = ids
        self.tokens = frozenset(ids)
        self._names: dict[tuple[str, str], str] = {}
        self._bodies: dict[str, str] = {}

    def text(self, spelled: str) -> str:
        """A text as it appears in the stream: letters, and tokens."""
        parts = [self._token(part) if part in self.tokens else _quoted(part) for part in _PARTS.split(spelled) if part]
        return " ".join(parts)

    def rule(self, body: str) -> str:
        """Name of a rule with this body."""
        return self._named("r", body)

    def pattern(self, *regexes: str, without: Sequence[str] = (), before: str = "", after: str = "") -> str:
        """Text that matches all of these regular expressions and none of `without`, between two literals."""
        parts = [f"/{_in_slashes(regex)}/" for regex in regexes]
        parts += [f"~/{_in_slashes(regex)}/" for regex in without]
        joined = " & ".join(parts)
        around = [_quoted(before)] if before else []
        return self._named("T", " ".join([*around, f"({joined})", *([_quoted(after)] if after else [])]))

    def json(self, schema: Mapping[str, Any], is_lenient: bool) -> str:
        """A JSON value that conforms to a schema."""
        style = {**JSON_STYLE, "lenient": is_lenient}
        return self._named("r", f"%json {json.dumps({**schema, 'x-guidance': style})}")

    def open(self) -> str:
        """Name of a rule that may refer to itself; `close` sets its body."""
        name = f"r{len(self._bodies)}"
        self._bodies[name] = ""
        return name

    def close(self, name: str, body: str) -> None:
        """Set the body of an opened rule."""
        self._bodies[name] = body

    def source(self, start: str) -> str:
        """The whole grammar."""
        return "\n".join([f"start: {start}", *(f"{name}: {body}" for name, body in self._bodies.items())])

    def _named(self, kind: str, body: str) -> str:
        key = kind, body
        if key not in self._names:
            name = f"{kind}{len(self._bodies)}"
            self._names[key], self._bodies[name] = name, body
        return self._names[key]

    def _token(self, stand_in: str) -> str:
        return f"<[{','.join(map(str, self._ids[stand_in]))}]>"


def sequence(*parts: str) -> str:
    """A sequence of the non-empty parts."""
    return " ".join(filter(None, parts)) or '""'


def one_of(choices: Iterable[str]) -> str:
    """A choice, without duplicates."""
    return f"({' | '.join(dict.fromkeys(choices))})"


def repeated(one: str, separator: str, is_single: bool) -> str:
    """One or more; exactly one with `is_single`."""
    return one if is_single else f"{one} ({sequence(separator, one)})*"


def repeated_lines(one: str, separator: str, is_single: bool) -> str:
    """Repetition to the end of an answer: a separator may end it, or a model that writes one would be held to go on."""
    return one if is_single else f"{repeated(one, separator, is_single)} ({sequence(separator)})?"


def literal_regex(text: str) -> str:
    """A regular expression for exactly this text."""
    return "".join(char if char.isalnum() or ord(char) > 127 else f"\\x{{{ord(char):x}}}" for char in text)


def _in_slashes(regex: str) -> str:
    return _SLASH.sub(lambda found: found[1] or {"/": r"\/", "\n": r"\n", "\r": r"\r"}[found[0]], regex)


def _quoted(text: str) -> str:
    """A literal; surrogates that stand for no token become question marks."""
    return json.dumps(text.encode(errors="replace").decode(), ensure_ascii=False)
